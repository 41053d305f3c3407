// Transport:   h(t) = sum_j y_j max_k [t u_k - D(j, k)],     C = the least cost of a plan from y to z. Costs are those
// of the lists: D <= 1, D(j, j) = 0, in whose unit the radius is.
//
// Any plan gives sum pi (t u_k - D) <= h. Without a budget t is so small that every D > 0 exceeds what it could
// gain, and the same bound says what the moves bring that cost nothing. The row at t: every source j goes to its best
// target, found here among all of its list. What this plan costs bounds the distance from above.
//
// Order 1 is proved on the mean kernel, as if it were the only one; order infinity kernel by kernel.
//
// **Rounding.** With k the best target of j, D(j, k) <= t (u_k - u_j) <= t, so that t u_k - D(j, k) is off by at
// most 2 e t, and so is h, beside (depth(K) + 16) e t for the sum of numbers of size <= t. A plan's cost is a sum of
// numbers >= 0, right up to (depth(K) + 16) e, relatively, and its value one of numbers of size <= 1. D itself is
// off by 2 e, relatively, so by 2 e t where it is used. The mean kernel is off by 4 (K + N + 4) e, relatively, in
// all of this.
#pragma once

#include "../ball.hpp"

namespace drmdp::judge {

class Transport : public Additive {
public:
    static constexpr bool FREE = true;
    Transport(const Extra& extra, const Sight& sight, bool, Index) : extra_(extra), sight_(sight) {}
    void open_state() {}
    static double budget(double radius) { return radius; }
    template <class Real>
    static double order(const Question<Real>& q) { return q.n_mean > 0 ? 1.0 : INFINITE; }

    template <class Real>
    Priced dual(const SeenRow<Real>& row, double t, double) const {
        const double total = row.scale * block_sum(row.K, [&](Index j) {
            if (!(row.raw(j) > 0.0)) return 0.0;
            const Index list = extra_.list_of[row.first + j];
            double best = -INFINITE;
            for (Index k = extra_.list_at[list]; k < extra_.list_at[list + 1]; ++k)
                best = std::max(best, t * stake(row, k) - extra_.list_cost[k]);
            return row.raw(j) * best;
        });
        return {total + (row.roundings() + 8.0) * EPSILON * t};
    }

    template <class Real>
    Measured mixed(const SeenRow<Real>& row, View<const double> mixture) {
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
                places_[2 * j + side] = target(row, extra_.list_of[row.first + j], mixture[side]);
        const double n = 2.0 * row.roundings() * EPSILON;
        return {sum([&](Index k) { return stake(row, k); }) - n,
                sum([&](Index k) { return extra_.list_cost[k]; }) * (1.0 + n)};
    }

private:
    template <class Real>
    double stake(const SeenRow<Real>& row, Index k) const {
        return extra_.stake(k, sight_.u.empty() ? row.u : sight_.u);
    }

    // The best target of a list at t, which is 0 where mass stays; at infinity the nearest of the highest stake.
    template <class Real>
    Index target(const SeenRow<Real>& row, Index list, double t) const {
        Index at = extra_.list_at[list];
        double best = -INFINITE;
        for (Index k = at; t > 0.0 && k < extra_.list_at[list + 1]; ++k) {
            const double x = stake(row, k), score = t == INFINITE ? x : t * x - extra_.list_cost[k];
            if (score > best || (score == best && x > stake(row, at))) best = score, at = k;
        }
        return at;
    }

    const Extra& extra_;
    const Sight& sight_;
    std::vector<Index> places_;  // (2 K) where the mass of each source goes
};

}  // namespace drmdp::judge
