// Intervals: the lower bounds are paid first, and the rest of the mass goes to the best next states.
//
// `data` holds the upper bounds, `mean` the lower ones, both widened by the radius r:
// l = max(lower - r, 0), h = min(upper + r, 1). With the next states in descending order of u,
//
//     V_a = max { z.u : l <= z <= h, sum z = 1 } = sum l u + sum_k min(h_k - l_k, what is left) u_k,
//     F' = min_a cost_a + V_a       (`each_row.hpp`).
//
// The last state that gets something is the pivot: states above it are full, states below it have their
// lower bound. So a pair whose pivot is the one of the last sweep needs no order: with eta = u of the pivot,
// M = sum_{u>eta} h + sum_{u<eta} l and l=, h= the sums at u = eta, the pivot is right if
// M + l= <= 1 <= M + h=, and then V_a = sum_{u>eta} h u + sum_{u<eta} l u + (1 - M) eta. U = L up to rounding.
//
// Memory: by_action holds the pivot, as a place among the entries of its pair.
#pragma once

#include "../nature.hpp"
#include "../sorting.hpp"

namespace drmdp {

// The bounds in force of a pair.
struct Box {
    View<const double> lower, upper;
    double r;

    Box(const Layout<double>& layout, Index pair, double radius)
        : lower(layout.mean.part(layout.first(pair), layout.length(pair))),
          upper(layout.data.part(layout.first(pair), layout.length(pair))), r(radius) {}

    Index size() const { return lower.size(); }
    double low(Index j) const { return std::max(lower[j] - r, 0.0); }
    double high(Index j) const { return std::min(upper[j] + r, 1.0); }
};

// Gives mass to entries, the lower bounds first and then from the top; returns the pivot.
template <class Give>
Index fill(const Box& box, View<const double> u, std::vector<Index>& order, Give give) {
    double left = 1.0;
    for (Index j = 0; j < box.size(); ++j) left -= box.low(j), give(j, box.low(j));
    rank(u, box.size(), order);
    Index pivot = order.back();
    for (Index n = box.size() - 1; n >= 0 && left > 0.0; --n) {
        pivot = order[n];
        const double take = std::min(left, box.high(pivot) - box.low(pivot));
        give(pivot, take);
        left -= take;
    }
    return pivot;
}

class IntervalRows {
public:
    IntervalRows(const Layout<double>& layout, const Point&, const Extra&, Index, Index) : layout_(layout) {}

    static double least(const Stakes& state, Index a) { return state.cost[a] - 1.0; }

    // cost_a + V_a, from the pivot of the last sweep if that is still right.
    double bent(Stakes& state, Index s, Index a, double, double& pivot) {
        const Box box(layout_, s * layout_.A + a, layout_.radius[s]);
        const View<const double> u = state.of(a);
        double value = state.cost[a];
        if (pivot >= 0.0 && pivot < double(box.size())) {
            const double eta = u[Index(pivot)];
            double mass = 0.0, worth = 0.0, least = 0.0, most = 0.0;
            for (Index j = 0; j < box.size(); ++j) {
                const double low = box.low(j), high = box.high(j);
                const double z = u[j] > eta ? high : u[j] < eta ? low : 0.0;
                mass += z, worth += z * u[j];
                least += u[j] == eta ? low : 0.0, most += u[j] == eta ? high : 0.0;
            }
            if (mass + least <= 1.0 && mass + most >= 1.0) return value + worth + (1.0 - mass) * eta;
        }
        pivot = double(fill(box, u, order_, [&](Index j, double z) { value += z * u[j]; }));
        return value;
    }

private:
    const Layout<double>& layout_;
    std::vector<Index> order_;
};

class IntervalNature {
public:
    explicit IntervalNature(const Response<double>& asked) : layout_(asked.layout) {}

    void open(const Written&) {}
    void add(const Written& to, Index, const Row<double>&, double x, double) {
        const Box box(layout_, to.pair, layout_.radius[to.s]);
        fill(box, to.u, order_, [&](Index j, double z) { to.mass[j] += x * z; });
    }

private:
    const Layout<double>& layout_;
    std::vector<Index> order_;
};

}  // namespace drmdp
