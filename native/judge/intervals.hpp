// The proof of intervals; nothing that is handed over is needed.
//
// l <= z <= h are the bounds in force of a row. U: for any threshold eta weak duality gives
//
//     max { z.u : l <= z <= h, sum z = 1 } <= eta + sum_{u>eta} h (u - eta) + sum_{u<eta} l (u - eta),
//
// with equality at the stake of the last state that is filled. L: the value of the row that has its lower
// bounds and fills the rest from the top, built here.
//
// **Rounding.** The bounds in force and the sum of a row are off by (K + 8) e, relatively, K being its
// entries. So U is off by (K + 16) e times the sum of the sizes of its terms. The row built is that near to
// one which is exactly allowed, its value takes K + 8 further roundings, and it has no part above 1: L is off
// by 4 (K + 16) e.
#pragma once

#include <numeric>

#include "sums.hpp"

namespace drmdp::judge {

class Intervals {
public:
    Intervals(const Layout<double>& layout, const Sight& sight, const Claim& claim, Index start,
              Index stop)
        : layout_(layout), claim_(claim), state_(layout, sight, start, stop) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        double above = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!layout_.available[s * layout_.A + a]) continue;
            double high = 0.0;
            state_.worth[a] = bound(s, a, high);
            above += claim_.policy[s][a] * std::min(high, 0.0);
        }
        state_.close(above, claim_, proved);
    }

private:
    // Bounds on the value of a row; returns L.
    double bound(Index s, Index a, double& high) {
        const Index pair = s * layout_.A + a, K = layout_.length(pair), first = layout_.first(pair);
        const View<double> u = state_.stakes(a);
        const double r = layout_.radius[s], margin = double(K + 16) * EPSILON;
        const auto least = [&](Index j) { return std::max(layout_.mean[first + j] - r, 0.0); };
        const auto most = [&](Index j) { return std::min(layout_.data[first + j] + r, 1.0); };
        order_.resize(K);
        std::iota(order_.begin(), order_.end(), Index(0));
        std::stable_sort(order_.begin(), order_.end(), [&](Index j, Index k) { return u[j] > u[k]; });
        double left = 1.0, worth = 0.0, eta = -1.0;
        for (Index j = 0; j < K; ++j) left -= least(j), worth += least(j) * u[j];
        for (Index j : order_) {
            eta = u[j];
            if (!(left > 0.0)) break;
            const double take = std::min(left, most(j) - least(j));
            worth += take * u[j];
            left -= take;
            if (!(left > 0.0)) break;
        }
        double above = eta, size = -eta;
        for (Index j = 0; j < K; ++j) {
            const double z = u[j] > eta ? most(j) : least(j);
            above += z * (u[j] - eta);
            size += z * std::fabs(u[j] - eta);
        }
        high = above + margin * (size + 1.0);
        return worth - 4.0 * margin;
    }

    const Layout<double>& layout_;
    const Claim& claim_;
    State<double> state_;
    std::vector<Index> order_;
};

}  // namespace drmdp::judge
