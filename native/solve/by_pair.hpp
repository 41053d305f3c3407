// A budget for each action: any solver, asked pair by pair.
//
// Nature never has to choose between actions, so that with F_a the worst case of action a alone
//
//     F(v)(s) = min_a F_a(v)(s),        F^x(v)(s) = sum_a x_a F_a(v)(s),
//
// and an optimal policy plays one action. F_a is the update of the set with one budget a state, on the
// pair as a state with one action. An action whose nominal value is not below the worst case of another
// one is not asked: first comes the action that was best in the last sweep, then all that are still open.
//
// Memory: that of the solver, for every pair; a pair that was not asked has none.
#pragma once

#include <vector>

#include "../data.hpp"

namespace drmdp {

template <class Solver, class Real>
class ByPair {
public:
    // `layout` is that of the pairs, A the number of actions of a state.
    ByPair(const Layout<Real>& layout, const Point& point, const Extra& extra, Index A, Index start,
           Index stop)
        : layout_(layout), point_(point), A_(A),
          solver_(layout, point, extra, start * A, stop * A), nominal_(A), asked_(A) {}

    void update(Index s, double tol, const Memory& pairs, const Found& of_pairs, const Found& found) {
        const View<double> policy = found.policy[s];
        Index lowest = -1, played = -1;
        for (Index a = 0; a < A_; ++a) {
            asked_[a] = 0;
            if (!layout_.available[s * A_ + a]) continue;
            nominal_[a] = nominal(s * A_ + a);
            if (lowest < 0 || nominal_[a] < nominal_[lowest]) lowest = a;
            if (policy[a] > 0.0 && (played < 0 || nominal_[a] < nominal_[played])) played = a;
        }
        if (lowest < 0) return;
        const Index begin = played >= 0 ? played : lowest;
        ask(s, begin, tol, pairs, of_pairs);
        const double worst = of_pairs.upper[s * A_ + begin];
        for (Index a = 0; a < A_; ++a)
            if (layout_.available[s * A_ + a] && !asked_[a] && nominal_[a] < worst)
                ask(s, a, tol, pairs, of_pairs);
        Index best = begin;
        found.lower[s] = INFINITE, found.passes[s] = 0.0;
        for (Index a = 0; a < A_; ++a) {
            const Index k = s * A_ + a;
            policy[a] = 0.0;
            if (!asked_[a]) {
                forget(k, pairs);
                continue;
            }
            found.passes[s] += of_pairs.passes[k] / double(A_);
            if (of_pairs.lower[k] < found.lower[s]) found.lower[s] = of_pairs.lower[k];
            if (of_pairs.upper[k] < of_pairs.upper[s * A_ + best]) best = a;
        }
        found.upper[s] = of_pairs.upper[s * A_ + best], policy[best] = 1.0;
    }

    // Every action that found.policy plays against nature.
    void evaluate(Index s, double tol, const Memory& pairs, const Found& of_pairs,
                  const Found& found) {
        found.upper[s] = found.lower[s] = found.passes[s] = 0.0;
        for (Index a = 0; a < A_; ++a) {
            const Index k = s * A_ + a;
            const double x = found.policy[s][a];
            if (!layout_.available[k] || !(x > 0.0)) {
                forget(k, pairs);
                continue;
            }
            ask(s, a, tol, pairs, of_pairs);
            found.upper[s] += x * of_pairs.upper[k];
            found.lower[s] += x * of_pairs.lower[k];
            found.passes[s] += of_pairs.passes[k] / double(A_);
        }
    }

private:
    void ask(Index s, Index a, double tol, const Memory& pairs, const Found& of_pairs) {
        of_pairs.policy[s * A_ + a][0] = 1.0;
        solver_.update(s * A_ + a, tol, pairs, of_pairs);
        asked_[a] = 1;
    }

    // What a pair is worth before nature moves.
    double nominal(Index pair) const {
        const Row<double> row = layout_.mean_row(pair);
        const Index first = layout_.first(pair);
        double value = 0.0, paid = 0.0;
        for (Index j = 0; j < row.size; ++j) value += row[j] * point_.value[layout_.indices[first + j]];
        if (!layout_.next_costs.empty())
            for (Index j = 0; j < row.size; ++j) paid += row[j] * layout_.next_costs[first + j];
        return layout_.costs[pair] + (layout_.discount(pair) * value + paid);
    }

    static void forget(Index pair, const Memory& pairs) {
        pairs.by_action[pair][0] = 0.0;
        for (double& x : pairs.by_row[pair]) x = 0.0;
    }

    const Layout<Real>& layout_;
    const Point& point_;
    Index A_;
    Solver solver_;
    std::vector<double> nominal_;
    std::vector<char> asked_;
};

}  // namespace drmdp
