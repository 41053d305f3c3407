// The proof of sets with one budget for all actions of a state, costs of rows added up.
//
// U, at any multiplier tau > 0 of the budget B, with bounds on the conjugates
// h_ia(t) = max_z t z.u_a - C_ia(z):
//
//     sum_a x_a sum_i w_i z_ia.u_a <= (B + sum_a sum_i w_i h_ia(tau x_a))/tau
//                                     for every z with sum_a sum_i w_i C_ia(z_ia) <= B.
//
// L: the value of the rows (1 - f) z(t1) + f z(t2), built anew from three numbers an action, whose costs
// are measured. Costs are convex and 0 at the data, so that the share min(1, B/sum C) of the way from the
// data costs at most B. Around the mean kernel the one row of the mean stands for all.
//
// **Rounding.** Adding up N rows and A actions takes (N + A + 8) e times what is added, and B, tau and
// the share some e more.
//
// A row proof is an object with
//
//     open_state()            what it remembers of rows of other states is forgotten
//     dual(row, t)            >= h(t), by weak duality at a threshold of its own, margin included
//     measure(row, mixture)   worth: at most the value of the row that three numbers stand for;
//                             cost: at least what it costs, infinite where it is nothing allowed
//     budget(radius)
//     FAINT                   radii below move nothing that L counts
//
// Any 0 <= t < infinity is a price, and a wrong one gives a poor bound, not a false one.
#pragma once

#include "sums.hpp"

namespace drmdp::judge {

struct Measured {
    double worth, cost;
};

template <class RowProof, class Real>
class SharedBudget {
public:
    // n_mean: the kernels behind the mean row that stands for all; 0 where rows are kernels.
    SharedBudget(const Layout<Real>& layout, const Sight& sight, const Claim& claim, const Extra& extra,
                 Index n_mean, Index start, Index stop)
        : layout_(layout), claim_(claim), n_mean_(n_mean), state_(layout, sight, start, stop),
          proof_(made<RowProof>(extra, sight, layout.unlisted, layout.longest(start, stop))) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        proof_.open_state();
        const Index A = layout_.A, N = layout_.N;
        const double radius = RowProof::budget(layout_.radius[s]);
        const View<const double> x = claim_.policy[s], mixtures = claim_.by_row[s];
        std::vector<double> bent(A);
        double spent = 0.0;
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            state_.worth[a] = bent[a] = state_.mean_worth(a, std::max(N, n_mean_));
            const View<const double> mixture = mixtures.part(3 * a, 3);
            if (!(mixture[0] > 0.0 || mixture[1] > 0.0)) continue;
            bent[a] = -double(N + 8) * EPSILON;
            for (Index i = 0; i < N; ++i) {
                const Measured measured = proof_.measure(state_.row(a, i, n_mean_), mixture);
                bent[a] += layout_.weights[i] * measured.worth;
                spent += layout_.weights[i] * measured.cost;
            }
        }
        const bool faint = layout_.radius[s] < RowProof::FAINT;
        const double budget = faint ? 0.0 : radius * (1.0 - double(N + A + 16) * EPSILON);
        const double share = spent <= budget ? 1.0 : spent < INFINITE ? budget / spent : 0.0;
        for (double& own : proved.share[s]) own = share;
        for (Index a = 0; a < A; ++a)
            if (layout_.available[s * A + a] && bent[a] != state_.worth[a])
                state_.worth[a] = (1.0 - share) * state_.worth[a] + share * bent[a] - 8.0 * EPSILON;
        state_.close(std::min(above(s, radius, x), 0.0), claim_, proved);
    }

private:
    // The multiplier that is claimed, 0 if it is none.
    double price(Index s, View<const double> x) const {
        double total = 0.0;
        for (Index a = 0; a < layout_.A; ++a)
            if (x[a] > 0.0 && claim_.by_action[s][a] > 0.0) total += claim_.by_action[s][a];
        return total > 0.0 && total < 1e200 ? total : 0.0;
    }

    // Upper bound on sum_a x_a y_a.u.
    double above(Index s, double budget, View<const double> x) {
        const Index N = layout_.N;
        if (!(budget > 0.0)) {
            double still = 0.0;
            for (Index a = 0; a < layout_.A; ++a) {
                if (!(x[a] > 0.0)) continue;
                const SeenRow<double> row = state_.mean_row(a);
                const double off = 4.0 * double(row.K + std::max(N, n_mean_) + 8) * EPSILON;
                still += x[a] * (1.0 - off) * row.worth();
            }
            return still;
        }
        const double tau = price(s, x);
        if (!(tau > 0.0)) return 0.0;
        double total = budget, size = budget;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(x[a] > 0.0)) continue;
            for (Index i = 0; i < N; ++i) {
                const double h = layout_.weights[i] * proof_.dual(state_.row(a, i, n_mean_), tau * x[a]);
                total += h;
                size += std::fabs(h);
            }
        }
        return (total + double(N + layout_.A + 16) * EPSILON * size) / tau;
    }

    const Layout<Real>& layout_;
    const Claim& claim_;
    Index n_mean_;
    State<Real> state_;
    RowProof proof_;
};

}  // namespace drmdp::judge
