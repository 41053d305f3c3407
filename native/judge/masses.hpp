// The proof of l1 with a distance for each kernel, within one budget of order p, 1 <= p <= infinity: nature moves
// masses m_ia to the top, d_i = 2 sum_a m_ia.
//
// **From above**, for any prices lambda_i >= 0, by Hoelder's inequality with |lambda| = (sum_i w_i lambda_i^q)^(1/q),
// 1/p + 1/q = 1:
//
//     U = sum_i w_i B_i + theta |lambda|,     B_i = sum_a sum_t y max(x_a u, -2 lambda_i),
//
// as a unit of mass gains at most x_a |u| and costs 2 lambda_i. **From below**: the value of rows from which the
// masses handed over are taken, from the lowest stakes on; masses are pulled into the ball by theta/D,
// D = (sum_i w_i d_i^p)^(1/p), or for p = infinity by theta/d_i.
//
// **Rounding.** x_a u as computed is what other stakes, off by e/2, would give. B_i has terms of one sign and is
// off by n e, relatively, n being the depth of its sums and of those behind y. Of an entry with y as computed
// the part take/y is moved: no entry becomes negative, and the masses moved, as well as their gains, are off by
// (n + K) e, relatively, which the budget makes room for.
#pragma once

#include "norms.hpp"

namespace drmdp::judge {

template <class Real>
class Masses {
public:
    Masses(const Layout<Real>& layout, const Sight& sight, const Claim& claim, const Extra& extra, Index start,
           Index stop)
        : layout_(layout), claim_(claim), order_(extra.order), state_(layout, sight, start, stop), price_(layout.N),
          gain_(layout.N), far_(layout.N) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        const Index A = layout_.A, N = layout_.N;
        const double theta = layout_.radius[s];
        const View<const double> x = claim_.policy[s], w = layout_.weights;
        Index longest = 0;
        for (Index a = 0; a < A; ++a) longest = std::max(longest, layout_.length(s * A + a));
        const double terms = 2.0 * depth(longest) + double(A) + 16.0;
        for (Index i = 0; i < N; ++i) {
            const double price = claim_.by_kernel[s][i];
            price_[i] = !(theta > 0.0) ? 1.0 : price > 0.0 && price < 1e100 ? price : 0.0;
            gain_[i] = far_[i] = 0.0;
            for (Index a = 0; a < A; ++a)
                if (layout_.available[s * A + a]) far_[i] += 2.0 * mass(s, a, i);
        }
        const double slack = terms + double(2 * longest + A + 16);
        const double most = theta * (1.0 - slack * EPSILON), all = norm_above(order_, w, far_);
        for (Index i = 0; i < N; ++i) {
            const double far = order_ < INFINITE ? all : far_[i];
            proved.share[s][i] = far <= most ? 1.0 : far < INFINITE && most > 0.0 ? most / far : 0.0;
        }
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            bool bent = x[a] > 0.0;
            for (Index i = 0; i < N; ++i) bent = bent || mass(s, a, i) > 0.0;
            state_.worth[a] = bent ? visit(s, a, x[a], terms + double(longest), proved.share[s])
                                   : state_.mean_worth(a, N);
        }
        double above = theta > 0.0 ? theta * norm_above(conjugate(order_), w, price_) : 0.0, size = above;
        for (Index i = 0; i < N; ++i) above += w[i] * gain_[i], size -= w[i] * gain_[i];
        state_.close(std::min(above + (terms + double(N) + 8.0) * EPSILON * size, 0.0), claim_, proved);
    }

private:
    double mass(Index s, Index a, Index i) const {
        const double own = claim_.by_row[s][a * layout_.N + i];
        return own > 0.0 ? own : 0.0;
    }

    // An action's part of B, and what it is worth after the moves, at least.
    double visit(Index s, Index a, double x, double terms, View<const double> shares) {
        const View<const double> u = state_.stakes(a);
        order_of(u);
        double worth = -double(layout_.N + 8) * EPSILON;
        for (Index i = 0; i < layout_.N; ++i) {
            const SeenRow<Real> row = state_.row(a, i);
            const double cut = -2.0 * price_[i];
            if (x > 0.0)
                gain_[i] += row.scale * block_sum(row.K, [&](Index j) {
                    return row.raw(j) * std::max(x * u[j], cut);
                });
            double left = shares[i] * mass(s, a, i), gain = 0.0;
            for (Index k = 0; k < row.K && left > 0.0; ++k) {
                const Index j = ascending_[k];
                const double take = std::min(left, row[j]);
                gain -= take * u[j], left -= take;
            }
            worth += layout_.weights[i] * ((1.0 + terms * EPSILON) * row.worth() + (1.0 - terms * EPSILON) * gain);
        }
        return worth;
    }

    void order_of(View<const double> u) {
        ascending_.resize(u.size());
        for (Index j = 0; j < u.size(); ++j) ascending_[j] = j;
        std::sort(ascending_.begin(), ascending_.end(), [&](Index a, Index b) {
            return u[a] < u[b] || (u[a] == u[b] && a < b);
        });
    }

    const Layout<Real>& layout_;
    const Claim& claim_;
    double order_;
    State<Real> state_;
    std::vector<double> price_, gain_, far_;  // (N) lambda, B, d
    std::vector<Index> ascending_;
};

}  // namespace drmdp::judge
