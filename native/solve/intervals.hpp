// Intervals: the lower bounds are paid first, and the rest of the mass goes to the best next states.
//
// `data` holds the upper bounds, `mean` the lower ones, both widened by the radius r:
// l = max(lower - r, 0), h = min(upper + r, 1). With the next states in descending order of u,
//
//     V_a = max { z.u : l <= z <= h, sum z = 1 } = sum l u + sum_k min(h_k - l_k, what is left) u_k,
//     F' = min_a cost_a + V_a.
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
#include "../stakes.hpp"

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

class Intervals {
public:
    Intervals(const Layout<double>& layout, const Point& point, const Extra&, Index start, Index stop)
        : layout_(layout), point_(point), state_(layout, start, stop) {}

    void update(Index s, double, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        double best = INFINITE;
        Index played = 0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(state_.cost[a] - 1.0 < best)) continue;
            const double value = state_.cost[a] + worst(s, a, memory.by_action[s][a]);
            if (value < best) best = value, played = a;
        }
        for (double& x : found.policy[s]) x = 0.0;
        found.policy[s][played] = 1.0;
        close(s, best, found);
    }

    void evaluate(Index s, double, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        double value = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            const double x = found.policy[s][a];
            if (x > 0.0) value += x * (state_.cost[a] + worst(s, a, memory.by_action[s][a]));
        }
        close(s, value, found);
    }

    // Nature's row of a pair, times x: lower bounds, and the rest from the top.
    void write(Index s, const Rows& rows) {
        if (!state_.open(layout_, point_, s)) return;
        for (Index a = 0; a < layout_.A; ++a) {
            const double x = rows.weights[s][a];
            if (!(x > 0.0)) continue;
            const Index pair = s * layout_.A + a, at = rows.entry_at[pair];
            const Box box(layout_, pair, layout_.radius[s]);
            mass_.assign(box.size(), 0.0);
            fill(box, state_.of(a), [&](Index j, double z) { mass_[j] += z; });
            for (Index j = 0; j < box.size(); ++j) {
                rows.states[at + j] = layout_.indices[layout_.first(pair) + j];
                rows.mass.set(at + j, x * mass_[j]);
            }
        }
    }

private:
    void close(Index s, double value, const Found& found) const {
        found.upper[s] = found.lower[s] = state_.base + state_.unit * value;
        found.passes[s] = 1.0;
    }

    // Gives mass to entries, the lower bounds first and then from the top; returns the pivot.
    template <class Give>
    Index fill(const Box& box, View<const double> u, Give give) {
        double left = 1.0;
        for (Index j = 0; j < box.size(); ++j) left -= box.low(j), give(j, box.low(j));
        rank(u, box.size(), order_);
        Index pivot = order_.back();
        for (Index n = box.size() - 1; n >= 0 && left > 0.0; --n) {
            pivot = order_[n];
            const double take = std::min(left, box.high(pivot) - box.low(pivot));
            give(pivot, take);
            left -= take;
        }
        return pivot;
    }

    // V_a, from the pivot of the last sweep if that is still right.
    double worst(Index s, Index a, double& pivot) {
        const Box box(layout_, s * layout_.A + a, layout_.radius[s]);
        const View<double> u = state_.of(a);
        if (pivot >= 0.0 && pivot < double(box.size())) {
            const double eta = u[Index(pivot)];
            double mass = 0.0, value = 0.0, least = 0.0, most = 0.0;
            for (Index j = 0; j < box.size(); ++j) {
                const double low = box.low(j), high = box.high(j);
                const double z = u[j] > eta ? high : u[j] < eta ? low : 0.0;
                mass += z, value += z * u[j];
                least += u[j] == eta ? low : 0.0, most += u[j] == eta ? high : 0.0;
            }
            if (mass + least <= 1.0 && mass + most >= 1.0) return value + (1.0 - mass) * eta;
        }
        double value = 0.0;
        pivot = double(fill(box, u, [&](Index j, double z) { value += z * u[j]; }));
        return value;
    }

    const Layout<double>& layout_;
    const Point& point_;
    Stakes state_;
    std::vector<Index> order_;
    std::vector<double> mass_;
};

}  // namespace drmdp
