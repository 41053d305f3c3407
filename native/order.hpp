// v as a sweep looks at it: its range, and what is read of its states in descending order (data.hpp).
#pragma once

#include "stakes.hpp"
#include "vectors.hpp"

namespace drmdp {

// max v and max v - min v; fills u = (v - max v)/span, 0 on the plateau at the top, if there is room.
struct Top {
    double top, span;
};

inline Top look(View<const double> value, double discount, View<double> u) {
    const Ends ends = ends_of(value);
    const double span = ends.high - ends.low;
    const bool wide = discount * span > TINY;
    for (Index k = 0; k < u.size(); ++k) {
        const double x = wide ? (value[k] - ends.high) / span : 0.0;
        u[k] = x > -FLAT ? 0.0 : x;
    }
    return {ends.high, span};
}

// u, its prefix sums and `below` for states in descending order; the largest u below 0, or the last.
inline double add_up(View<const double> common, View<const std::int32_t> states, View<double> u,
                     View<double> sum1, View<double> sum2, View<std::int32_t> below) {
    const Index n = states.size();
    Index second = n - 1, filled = 0;
    sum1[0] = sum2[0] = 0.0;
    for (Index k = 0; k < n; ++k) {
        const double x = common[states[k]];
        u[k] = x;
        sum1[k + 1] = sum1[k] + x, sum2[k + 1] = sum2[k] + x * x;
        const Index part = Index(-x * double(n)) < n - 1 ? Index(-x * double(n)) : n - 1;
        for (; filled <= part; ++filled) below[filled] = std::int32_t(k);
        if (x != 0.0 && k < second) second = k;
    }
    for (; filled < n; ++filled) below[filled] = std::int32_t(n);
    return u[second];
}

}  // namespace drmdp
