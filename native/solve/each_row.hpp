// Every row of every action bends by the full radius, and the best action is played. Nature never has to
// choose between actions, so that with g_ia what row (i, a) gains
//
//     F' = min_a cost_a + V0_a + sum_i w_i g_ia(r).
//
// Rows tell cost_a + V0_a + sum_i w_i g_ia(r) of a pair. Gains are not negative: an action whose partial
// sum has reached the best value so far may be left there.
// Actions are taken in ascending order of the sum before the first row. F' <= 0, the value of an
// unconstrained nature, which it is from r = 1 on. U = L up to rounding.
//
// Memory: by_kernel holds the radius.
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
        Index played = 0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (state_.cost[a] < state_.cost[played]) played = a;
            left_[a] = 1;
        }
        double best = 0.0;
        while (true) {
            Index next = -1;
            double low = best;
            for (Index a = 0; a < layout_.A; ++a)
                if (left_[a] && state_.cost[a] + state_.nominal[a] < low)
                    next = a, low = state_.cost[a] + state_.nominal[a];
            if (next < 0) break;
            left_[next] = 0;
            const double value = bent(s, next, best);
            if (value < best) best = value, played = next;
        }
        for (double& x : found.policy[s]) x = 0.0;
        found.policy[s][played] = 1.0;
        close(s, best, memory, found);
    }

    void evaluate(Index s, double, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        double value = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            const double x = found.policy[s][a];
            if (x > 0.0) value += x * bent(s, a, INFINITE);
        }
        close(s, value, memory, found);
    }

private:
    void close(Index s, double value, const Memory& memory, const Found& found) const {
        for (double& r : memory.by_kernel[s]) r = layout_.radius[s];
        found.upper[s] = found.lower[s] = state_.base + state_.unit * value;
        found.passes[s] = 1.0;
    }

    // Value of an action, or anything from `enough` on if it is not below.
    double bent(Index s, Index a, double enough) {
        const double r = layout_.radius[s], cost = state_.cost[a], low = cost + state_.nominal[a];
        if (!(r > 0.0)) return low;
        return std::min(rows_.bent(s * layout_.A + a, state_.of(a), r, low, enough), cost);
    }

    const Layout<Real>& layout_;
    const Point& point_;
    Stakes state_;
    Rows rows_;
    std::vector<char> left_;
};

}  // namespace drmdp
