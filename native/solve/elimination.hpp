// Small dense systems of linear equations, by elimination with row pivoting.
#pragma once

#include <cmath>
#include <utility>

#include "../views.hpp"

namespace drmdp {

// Bring the first n columns of n rows of m numbers to the identity; false if they are singular.
inline bool eliminate(View<double> rows, Index n, Index m) {
    for (Index c = 0; c < n; ++c) {
        Index best = c;
        for (Index r = c + 1; r < n; ++r)
            if (std::fabs(rows[r * m + c]) > std::fabs(rows[best * m + c])) best = r;
        if (!(std::fabs(rows[best * m + c]) > 1e-200)) return false;
        const View<double> pivot = rows.part(c * m, m);
        if (best != c)
            for (Index k = c; k < m; ++k) std::swap(pivot[k], rows[best * m + k]);
        const double scale = 1.0 / pivot[c];
        for (Index k = c; k < m; ++k) pivot[k] *= scale;
        for (Index r = 0; r < n; ++r) {
            const View<double> row = rows.part(r * m, m);
            const double factor = row[c];
            if (r == c || factor == 0.0) continue;
            for (Index k = c; k < m; ++k) row[k] -= factor * pivot[k];
        }
    }
    return true;
}

}  // namespace drmdp
