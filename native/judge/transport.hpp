// The proof of transport. Costs are those of the lists: D <= 1, D(j, j) = 0, in whose unit the radius is.
//
// Order 1 is proved on the mean kernel, as if it were the only one; order infinity kernel by kernel. For each
// kernel i, at any price tau > 0 and with t_a = tau x_a,
//
//     sum_a x_a z_ia.u_a <= (B + sum_a h_ia(t_a))/tau,    h_ia(t) = sum_j y_ia(j) max_k [t u_k - D(j, k)],
//
// for every z_i that costs at most B: any plan gives sum pi (t u_k - D) <= h. Without a budget tau is so small
// that every D > 0 exceeds what it could gain, and the same bound says what the moves bring that cost nothing.
//
// L: every source j goes to its best targets at t1 and t2 in the shares 1 - f and f, found here among all of
// its list. What this plan costs bounds the distance from above; that is convex and 0 at the data, so that the
// share min(1, B/cost) of the way costs at most B.
//
// **Rounding.** With k the best target of j, D(j, k) <= t (u_k - u_j) <= t, so that t u_k - D(j, k) is off by at
// most 2 e t, and so is h, beside (depth(K) + 16) e t for the sum of numbers of size <= t. A plan's cost is a sum of
// numbers >= 0, right up to (depth(K) + 16) e, relatively, and its value one of numbers of size <= 1. D itself is
// off by 2 e, relatively, so by 2 e t where it is used. The mean kernel is off by 4 (K + N + 4) e, relatively, in
// all of this.
#pragma once

#include "shared_budget.hpp"

namespace drmdp::judge {

template <class Real>
class Transport {
public:
    // n_mean: the kernels behind the mean row that stands for all; 0 where rows are kernels.
    Transport(const Layout<Real>& layout, const Sight& sight, const Claim& claim, const Extra& extra,
              Index n_mean, Index start, Index stop)
        : layout_(layout), sight_(sight), claim_(claim), extra_(extra), n_mean_(n_mean),
          state_(layout, sight, start, stop), still_(layout.A), moved_(layout.A) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        s_ = s;
        const Index N = layout_.N;
        const View<double> shares = proved.share[s];
        double above = 0.0;
        std::fill(state_.worth.begin(), state_.worth.end(), -double(N + 8) * EPSILON);
        for (Index i = 0; i < N; ++i) {
            double share = 0.0;
            above += layout_.weights[i] * std::min(visit(i, share), 0.0);
            for (Index a = 0; a < layout_.A; ++a) {
                const double worth = (1.0 - share) * still_[a] + share * moved_[a];
                state_.worth[a] += layout_.weights[i] * (worth - 8.0 * EPSILON);
            }
            for (Index n = i; n < (n_mean_ > 0 ? shares.size() : i + 1); ++n) shares[n] = share;
        }
        state_.close(std::min(above + double(N + 8) * EPSILON, 0.0), claim_, proved);
    }

private:
    static constexpr double STILL = 1e-150;  // a price at which only moves that cost nothing are made

    // A row, and where its mass can go.
    struct Source {
        SeenRow<Real> row;
        View<const std::int32_t> list;  // (K)
        View<const double> u;           // stakes of the targets
    };

    // Upper bound on the values of kernel i, infinite where there is none; what its rows are worth, and the
    // share of their move that is surely allowed.
    double visit(Index i, double& share) {
        const double budget = layout_.radius[s_], tau = budget > 0.0 ? price(i) : STILL;
        const Index A = layout_.A;
        double total = budget, size = budget, spent = 0.0;
        for (Index a = 0; a < A; ++a) {
            still_[a] = moved_[a] = 0.0;
            if (!layout_.available[s_ * A + a]) continue;
            const Source source = seen(a, i);
            const Measured plan = measure(source, mixture(a, i));
            moved_[a] = plan.worth, spent += plan.cost;
            still_[a] = source.row.worth() - source.row.roundings() * EPSILON;
            const double x = claim_.policy[s_][a];
            if (!(x > 0.0 && tau > 0.0)) continue;
            const double h = dual(source, tau * x);
            total += h, size += std::fabs(h);
        }
        const double allowed = budget * (1.0 - double(A + 16) * EPSILON);
        share = spent <= allowed ? 1.0 : spent < INFINITE ? allowed / spent : 0.0;
        const double best = (total + double(A + 16) * EPSILON * size) / tau;
        return tau > 0.0 && best == best ? best : INFINITE;
    }

    Source seen(Index a, Index i) {
        SeenRow<Real> row = state_.row(a, i);
        if (n_mean_ > 0) row.off = 4.0 * double(row.K + n_mean_ + 4);
        const View<const std::int32_t> list = extra_.list_of.part(layout_.first(s_ * layout_.A + a), row.K);
        return {row, list, layout_.common ? sight_.u : row.u};
    }
    View<const double> mixture(Index a, Index i) const {
        const View<const double> all = claim_.by_row[s_];
        const Index width = all.size() / layout_.A;
        return all.part(a * width + (width > 3 ? 3 * i : 0), 3);
    }
    // The price that is claimed for kernel i, 0 if it is none.
    double price(Index i) const {
        double total = 0.0;
        for (Index a = 0; a < layout_.A; ++a)
            if (claim_.policy[s_][a] > 0.0 && claim_.by_action[s_][a] > 0.0) total += claim_.by_action[s_][a];
        if (n_mean_ == 0) total *= std::max(claim_.by_kernel[s_][i], 0.0);
        return total > 0.0 && total < 1e200 ? total : 0.0;
    }

    // Upper bound on h(t).
    double dual(const Source& source, double t) const {
        const SeenRow<Real>& row = source.row;
        const double total = row.scale * block_sum(row.K, [&](Index j) {
            if (!(row.raw(j) > 0.0)) return 0.0;
            double best = -INFINITE;
            for (Index k = extra_.list_at[source.list[j]]; k < extra_.list_at[source.list[j] + 1]; ++k)
                best = std::max(best, t * extra_.stake(k, source.u) - extra_.list_cost[k]);
            return row.raw(j) * best;
        });
        return total + (row.roundings() + 8.0) * EPSILON * t;
    }

    // The best target of a list at t, which is 0 where mass stays; at infinity the nearest of the highest stake.
    Index target(const Source& source, Index list, double t) const {
        Index at = extra_.list_at[list];
        double best = -INFINITE;
        for (Index k = at; t > 0.0 && k < extra_.list_at[list + 1]; ++k) {
            const double x = extra_.stake(k, source.u);
            const double score = t == INFINITE ? x : t * x - extra_.list_cost[k];
            if (score > best || (score == best && x > extra_.stake(at, source.u))) best = score, at = k;
        }
        return at;
    }

    // Follow what is claimed of a row: where each source goes.
    Measured measure(const Source& source, View<const double> mixture) const {
        const SeenRow<Real>& row = source.row;
        const double f = mixture[2] >= 0.0 && mixture[2] <= 1.0 ? mixture[2] : 0.0;
        const auto sum = [&](auto of) {
            return row.scale * block_sum(row.K, [&](Index j) {
                if (!(row.raw(j) > 0.0)) return 0.0;
                return row.raw(j) * ((1.0 - f) * of(places_[2 * j]) + f * of(places_[2 * j + 1]));
            });
        };
        places_.resize(2 * row.K);
        for (Index j = 0; j < row.K; ++j)
            for (Index side = 0; side < 2 && row.raw(j) > 0.0; ++side)
                places_[2 * j + side] = target(source, source.list[j], mixture[side]);
        const double n = (2.0 * row.roundings()) * EPSILON;
        return {sum([&](Index k) { return extra_.stake(k, source.u); }) - n,
                sum([&](Index k) { return extra_.list_cost[k]; }) * (1.0 + n)};
    }

    const Layout<Real>& layout_;
    const Sight& sight_;
    const Claim& claim_;
    const Extra& extra_;
    Index n_mean_, s_ = 0;
    State<Real> state_;
    std::vector<double> still_, moved_;  // (A) worths
    mutable std::vector<Index> places_;  // (2 K) where the mass of each source goes
};

}  // namespace drmdp::judge
