// Every row of every action bends by the full radius, and the best action is played. Nature never has to
// choose between actions, so that with g_ia what row (i, a) gains
//
//     F' = min_a cost_a + V0_a + sum_i w_i g_ia(r).
//
// Rows tell cost_a + V0_a + sum_i w_i g_ia(r) of a pair, and what it is worth at least, from where they
// begin. Gains are not negative: an action whose partial sum has reached the best value so far may be left
// there. Actions are taken in ascending order of the least. F' <= 0, the value of an unconstrained nature.
// U = L up to rounding.
//
// Memory: by_kernel holds the radius, by_action what rows keep of a pair.
#pragma once

#include "../stakes.hpp"

namespace drmdp {

template <class Rows, class Real>
class EachRow {
public:
    EachRow(const Layout<Real>& layout, const Point& point, const Extra& extra, Index start, Index stop)
        : layout_(layout), point_(point), state_(layout, start, stop),
          rows_(layout, point, extra, start, stop), left_(layout.A) {}

    void update(Index s, double, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        Index played = state_.best().cheapest;
        std::fill(left_.begin(), left_.end(), char(1));
        double best = 0.0;
        while (true) {
            Index next = -1;
            double low = best;
            for (Index a = 0; a < layout_.A; ++a)
                if (left_[a] && rows_.least(state_, a) < low) next = a, low = rows_.least(state_, a);
            if (next < 0) break;
            left_[next] = 0;
            const double value = bent(s, next, best, memory);
            if (value < best) best = value, played = next;
        }
        std::fill(found.policy[s].begin(), found.policy[s].end(), 0.0);
        found.policy[s][played] = 1.0;
        close(s, best, memory, found);
    }

    void evaluate(Index s, double, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        double value = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            const double x = found.policy[s][a];
            if (x > 0.0) value += x * bent(s, a, INFINITE, memory);
        }
        close(s, value, memory, found);
    }

private:
    void close(Index s, double value, const Memory& memory, const Found& found) const {
        for (double& r : memory.by_kernel[s]) r = layout_.radius[s];
        state_.close(s, value, value, 1.0, found);
    }

    // Value of an action, or anything from `enough` on if it is not below.
    double bent(Index s, Index a, double enough, const Memory& memory) {
        const double value = rows_.bent(state_, s, a, enough, memory.by_action[s][a]);
        return std::min(value, state_.cost[a]);
    }

    const Layout<Real>& layout_;
    const Point& point_;
    Stakes state_;
    Rows rows_;
    std::vector<char> left_;
};

}  // namespace drmdp
