// l1 of every order p > 1: masses m_ia are moved to the top from the lowest stakes on, by order infinity within a
// budget for each kernel.
//
//     F' = max { g :  g <= cost_a + V0_a + sum_i w_i g_ia(m_ia),   D_i = sum_a m_ia,
//                D_i <= theta/2 for every i,   or   sum_i w_i (2 D_i/theta)^p <= 1 },
//
// which is a game of `masses.hpp`: the segments of a row are its entries, with slopes -u.
//
// Memory: by_row holds m, by_kernel the price of a distance in each kernel, by_action[0] that of the budget.
#pragma once

#include "../nature.hpp"
#include "masses.hpp"

namespace drmdp {

template <class Real>
class L1Rows {
public:
    static constexpr double COST = 2.0;
    static double order(const Extra& extra) { return extra.order; }

    L1Rows(const Layout<Real>& layout, const Point&, const Extra&, Stakes& state, Index, Index)
        : layout_(layout), state_(state) {}

    void look(Index) {}

    // The entries of an action below the top, lowest stakes first; what differs by rounding is equal.
    void segments(Index s, Index a, std::vector<Segment>& out) {
        const View<const double> u = state_.of(a);
        rank(u, layout_.length(s * layout_.A + a), order_);
        for (Index j : order_) {
            if (!(u[j] < 0.0)) break;
            const bool same = !out.empty() && out.back().slope + u[j] <= FLAT;
            out.push_back({j, 1.0, same ? out.back().slope : -u[j]});
        }
    }

    template <class Game>
    double recalled(const Game& game, const Memory& memory, Index k, Index i) const {
        return memory.by_row[game.state()][game.action(k) * game.N + i] / game.unit();
    }
    static double price(const Memory& memory, Index s) { return memory.by_action[s][0]; }

    static void forget(const Memory& memory, Index s) {
        for (const Table<double>& table : {memory.by_row, memory.by_kernel, memory.by_action})
            std::fill(table[s].begin(), table[s].end(), 0.0);
    }
    template <class Game>
    void keep(const Game& game, const Memory& memory, View<const double>, const std::vector<double>& amounts,
              const std::vector<double>& prices, double price) const {
        const Index s = game.state();
        memory.by_action[s][0] = price;
        for (Index i = 0; i < game.N; ++i) {
            memory.by_kernel[s][i] = prices[i] / COST;
            for (Index k = 0; k < game.size(); ++k)
                memory.by_row[s][game.action(k) * game.N + i] = game.unit() * amounts[i * game.A + k];
        }
    }

private:
    const Layout<Real>& layout_;
    Stakes& state_;
    std::vector<Index> order_;
};

template <class Real>
using L1Each = GameSolver<Masses<L1Rows<Real>, Real>, Real>;

// Nature's rows: masses taken from the lowest stakes on and brought to the top, in one entry behind the others.
template <class Real>
class L1Nature {
public:
    explicit L1Nature(const Response<Real>& asked) : asked_(asked) {}

    void open(const Written& to) {
        const Index K = asked_.layout.length(to.pair);
        rank(to.u, K, order_);
        asked_.rows.states[to.at + K] = top_state(asked_, to);
    }
    void add(const Written& to, Index i, const Row<Real>& row, double x, double share) {
        double left = share * asked_.memory.by_row[to.s][to.a * asked_.layout.N + i];
        for (Index j : order_) {
            const double take = left > 0.0 ? std::min(left, row[j]) : 0.0;
            left -= take;
            to.mass[j] += x * (row[j] - take), to.mass[row.size] += x * take;
        }
    }

private:
    const Response<Real>& asked_;
    std::vector<Index> order_;
};

}  // namespace drmdp
