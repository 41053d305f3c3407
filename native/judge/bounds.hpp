// What a proof makes of vectors of all states: v as it looks at it, the policy that it takes for played,
// and bounds on fixed points.
#pragma once

#include "sums.hpp"

namespace drmdp::judge {

struct Top {
    double top, span;
};

// The range of v, and u = (v - max v)/span, if there is room for it.
inline Top look(View<const double> value, double discount, View<double> u) {
    double top = value[0], low = value[0];
    for (const double x : value) top = x > top ? x : top, low = x < low ? x : low;
    const double span = top - low;
    const bool wide = discount * span > TINY;
    for (Index k = 0; k < u.size(); ++k) u[k] = wide ? (value[k] - top) / span : 0.0;
    return {top, span};
}

// A sum, and what its additions lost so far.
struct Kept {
    double total = 0.0, lost = 0.0;

    DRMDP_INLINE void add(double x) {
        const double now = total + x, own = now - total;
        lost += (total - (now - own)) + (x - own);
        total = now;
    }
    DRMDP_INLINE double sum() const { return total + lost; }
};

// R1(k+1) = R1(k) + k g and R2(k+1) = R2(k) + g (2 R1(k) + k g), g = u_{k-1} - u_k >= 0 (`sums.hpp`).
inline void fill_rises(View<const double> down, View<double> rise, View<double> rise2) {
    Kept first, second;
    for (Index k = 0; k < 2 && k < rise.size(); ++k) rise[k] = rise2[k] = 0.0;
    for (Index k = 1; k < down.size(); ++k) {
        const double gap = down[k - 1] - down[k], more = double(k) * gap;
        second.add(gap * (2.0 * first.sum() + more));
        first.add(more);
        rise[k + 1] = first.sum(), rise2[k + 1] = second.sum();
    }
}

// The positive probabilities of available actions; all 0 in states where they do not add up to 1, not
// even roughly.
inline void clean(Table<const double> policy, View<const std::uint8_t> available, Table<double> played) {
    const Index A = policy.columns(), S = A ? available.size() / A : 0;
    for (Index s = 0; s < S; ++s) {
        double total = 0.0;
        for (Index a = 0; a < A; ++a) {
            const double x = policy[s][a];
            played[s][a] = available[s * A + a] && x > 0.0 ? x : 0.0;
            total += played[s][a];
        }
        if (!(std::fabs(total - 1.0) <= 0.5))
            for (Index a = 0; a < A; ++a) played[s][a] = 0.0;
    }
}

// Steps L - v and U - v of a sweep, and the steps that follow them: lambda/(1 - lambda) times the least of
// the one, the largest of the other.
struct Steps {
    View<const double> value, lower, upper;
    View<const std::uint8_t> terminal;
    double size;  // of all steps to come
};

// Bounds on the fixed point from below (side = -1) or above (+1), rounded that way; none beyond `limit`.
inline void bound(const Steps& steps, double further, double limit, double side, View<double> out) {
    const View<const double> own = side < 0.0 ? steps.lower : steps.upper;
    for (Index s = 0; s < out.size(); ++s) {
        const double v = steps.value[s];
        const double size = std::fabs(v) + std::fabs(steps.lower[s]) + std::fabs(steps.upper[s]) + steps.size;
        const double x = v + own[s] + further + side * (8 * EPSILON) * size;
        out[s] = steps.terminal[s] ? 0.0 : (side < 0.0 ? x < limit : x > limit) ? limit : x;  // NaN stays
    }
}

}  // namespace drmdp::judge
