// A small dense quadratic program on a simplex: the Newton step of a solver whose policy is unknown.
//
//     minimise  g.d + 1/2 d'H d,   d = z - x,   over  z >= 0, sum z = 1,
//
// H symmetric and positive semidefinite up to rounding, g the gradient at the feasible x. A primal
// active-set method: free at first is the support of x; each step minimises over the free variables
// and stops at the first bound it meets; where it meets none, the variable with the most negative
// multiplier is set free. Every step descends, so that one cut short is still a direction of descent.
//
// The sum is removed by eliminating its largest variable p, d_p = -sum_{j != p} d_j. That gives
// curvature along x, where H has none, and holds when variables differ by many orders of magnitude: no
// sum mixes the scales, and Cholesky's method does not see the scale of a variable. A pivot lost to
// rounding is replaced by a small one: a long step, which the bounds cut.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../views.hpp"

namespace drmdp {

class SimplexQp {
public:
    explicit SimplexQp(Index most)
        : most_(most), gradient_(most), noise_(most), step_(most), factor_(most * most), order_(most),
          free_(most) {}

    // Fills z with the minimiser of the first n variables, rows of H being `most` apart; false, and z = x,
    // if something is not finite.
    bool solve(View<const double> H, View<const double> g, View<const double> x, Index n,
               View<double> z) {
        n_ = n, size_ = 0.0;
        bool finite = true, whole = false;
        for (Index j = 0; j < n; ++j) {
            z[j] = x[j], free_[j] = x[j] > 0.0;
            size_ = std::max(size_, std::fabs(g[j]));
            finite = finite && std::isfinite(g[j]);
        }
        Index last = -1;  // set free last
        for (Index step = 0; finite && step < 20 + 8 * n; ++step) {
            const Index pivot = largest(z);
            free_[pivot] = 1;
            differentiate(H, g, x, z);
            if (whole) {
                last = most_negative(pivot);
                if (last < 0) break;
                free_[last] = 1;
            }
            minimise(H, pivot);
            const Index met = advance(z, finite);
            whole = met < 0;
            if (met >= 0 && met == last && z[met] <= 0.0) break;  // stopped at once: rounding
        }
        const Index pivot = largest(z);
        double others = 0.0;
        for (Index j = 0; j < n; ++j) others += j == pivot ? 0.0 : z[j];
        z[pivot] = 1.0 - others;
        for (Index j = 0; j < n; ++j) finite = finite && z[j] >= 0.0 && z[j] < 1e300;
        if (!finite)
            for (Index j = 0; j < n; ++j) z[j] = x[j];
        return finite;
    }

private:
    static constexpr double LOST = 1e-14;  // a pivot this small beside its diagonal entry is rounding
    static constexpr double FLAT_CURVATURE = 1e-12;  // takes its place, beside the gradient
    static constexpr double NOISE = 1e-15;  // rounding of a gradient, beside the sum of its terms

    Index largest(View<const double> z) const {
        return std::max_element(z.begin(), z.begin() + n_) - z.begin();
    }

    // The gradient g + H (z - x), and its rounding.
    void differentiate(View<const double> H, View<const double> g, View<const double> x,
                       View<const double> z) {
        for (Index j = 0; j < n_; ++j) {
            double total = g[j], size = std::fabs(g[j]);
            for (Index k = 0; k < n_; ++k) {
                const double term = H[j * most_ + k] * (z[k] - x[k]);
                total += term, size += std::fabs(term);
            }
            gradient_[j] = total, noise_[j] = NOISE * size;
        }
    }

    // The bound variable whose multiplier is most negative, beyond rounding; -1 if there is none.
    Index most_negative(Index pivot) const {
        Index best = -1;
        double least = 0.0;
        for (Index j = 0; j < n_; ++j) {
            if (free_[j]) continue;
            const double multiplier = gradient_[j] + noise_[j] + noise_[pivot] - gradient_[pivot];
            if (multiplier < least) best = j, least = multiplier;
        }
        return best;
    }

    // The step to the minimiser over the free variables, by Cholesky's method.
    void minimise(View<const double> H, Index pivot) {
        Index count = 0;
        for (Index j = 0; j < n_; ++j) {
            step_[j] = 0.0;
            if (free_[j] && j != pivot) order_[count++] = j;
        }
        const auto at = [&](Index j, Index k) { return H[j * most_ + k]; };
        for (Index r = 0; r < count; ++r) {
            const Index j = order_[r];
            double right = gradient_[pivot] - gradient_[j];
            double* const row = &factor_[r * most_];
            for (Index c = 0; c <= r; ++c) {
                const Index k = order_[c];
                const double* const other = &factor_[c * most_];
                double entry = at(j, k) - at(pivot, k) - (at(j, pivot) - at(pivot, pivot));
                const double diagonal = std::fabs(entry);
                for (Index i = 0; i < c; ++i) entry -= row[i] * other[i];
                if (c < r) {
                    row[c] = entry / other[c];
                    right -= row[c] * step_[k];
                    continue;
                }
                if (!(entry > LOST * diagonal))
                    entry = std::max(LOST * diagonal, FLAT_CURVATURE * size_ + 1e-290);
                row[r] = std::sqrt(entry);
                step_[j] = right / row[r];
            }
        }
        double balance = 0.0;
        for (Index r = count - 1; r >= 0; --r) {
            const Index j = order_[r];
            double value = step_[j];
            for (Index i = r + 1; i < count; ++i) value -= factor_[i * most_ + r] * step_[order_[i]];
            step_[j] = value / factor_[r * most_ + r];
            balance += step_[j];
        }
        step_[pivot] = -balance;
    }

    // Go as far as the bounds allow, at most the whole step; returns the variable whose bound is met.
    Index advance(View<double> z, bool& finite) {
        Index met = -1;
        double share = 1.0;
        for (Index j = 0; j < n_; ++j) {
            finite = finite && std::isfinite(step_[j]);
            if (step_[j] < 0.0 && z[j] + share * step_[j] < 0.0) share = z[j] / -step_[j], met = j;
        }
        if (!finite) return -1;
        for (Index j = 0; j < n_; ++j) z[j] = std::max(z[j] + share * step_[j], 0.0);
        if (met >= 0) z[met] = 0.0, free_[met] = 0;
        return met;
    }

    Index most_, n_ = 0;
    double size_ = 0.0;
    std::vector<double> gradient_, noise_, step_, factor_;
    std::vector<Index> order_;
    std::vector<char> free_;
};

}  // namespace drmdp
