// The proof of sets in which every row has the radius theta for itself.
//
// U: sum_a x_a sum_i w_i b_ia, b_ia at least the value of row (i, a) at theta. L: the value of rows built
// anew from a radius for each kernel, whose costs are measured; they are convex and 0 at the data, so that
// the share theta/C of the way from the data costs at most theta, for every row of the kernel.
//
// **Rounding.** As in `shared_budget.hpp`.
#pragma once

#include "shared_budget.hpp"

namespace drmdp::judge {

template <class RowProof, class Real>
class EachRow {
public:
    EachRow(const Layout<Real>& layout, const Sight& sight, const Claim& claim, const Extra& extra,
            Index n_mean, Index start, Index stop)
        : layout_(layout), claim_(claim), n_mean_(n_mean), state_(layout, sight, start, stop),
          proof_(made<RowProof>(extra, sight, layout.unlisted, layout.longest(start, stop))),
          rows_(layout.A * layout.N) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        const Index A = layout_.A, N = layout_.N;
        const double theta = layout_.radius[s], more = double(N + A + 16) * EPSILON;
        double above = 0.0;
        for (Index i = 0; i < N; ++i) proved.share[s][i] = bend(s, i, theta * (1.0 - more));
        for (Index i = N; i < proved.share[s].size(); ++i) proved.share[s][i] = proved.share[s][0];
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            const double x = claim_.policy[s][a];
            state_.worth[a] = -double(N + 8) * EPSILON;
            for (Index i = 0; i < N; ++i) {
                const Bent& row = rows_[a * N + i];
                const double f = proved.share[s][i], w = layout_.weights[i];
                state_.worth[a] += w * ((1.0 - f) * row.still + f * row.moved.worth);
                if (x > 0.0) above += x * w * std::min(most(a, i, theta, row.still), 0.0) * (1.0 - more);
            }
        }
        state_.close(above, claim_, proved);
    }

private:
    struct Bent {
        double still;  // worth of the data
        Measured moved;
    };

    // Build the rows of kernel i; the share of their moves that is surely allowed.
    double bend(Index s, Index i, double budget) {
        const double radius = claim_.by_kernel[s][i], mixture[] = {radius, 0.0, 0.0};
        double spent = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!layout_.available[s * layout_.A + a]) continue;
            const SeenRow<Real> row = state_.row(a, i, n_mean_);
            Bent& bent = rows_[a * layout_.N + i];
            bent.still = row.worth() * (1.0 + (2.0 * row.roundings() + 8.0) * EPSILON);
            bent.moved = {bent.still, 0.0};
            if (radius > 0.0) bent.moved = proof_.measure(row, {mixture, 3});
            spent = std::max(spent, bent.moved.cost);
        }
        return spent <= budget ? 1.0 : spent < INFINITE ? budget / spent : 0.0;
    }

    double most(Index a, Index i, double theta, double still) {
        const SeenRow<Real> row = state_.row(a, i, n_mean_);
        if (theta > 0.0) return proof_.most(row, theta);
        return still * (1.0 - 2.0 * (2.0 * row.roundings() + 8.0) * EPSILON);
    }

    const Layout<Real>& layout_;
    const Claim& claim_;
    Index n_mean_;
    State<Real> state_;
    RowProof proof_;
    std::vector<Bent> rows_;
};

}  // namespace drmdp::judge
