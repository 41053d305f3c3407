// Transport of order infinity: every kernel spends at most theta, on all actions of a state. Order 1 is the same around
// the mean kernel alone.
//
// What row (i, a) gains of an amount that is spent on it is concave and piecewise linear: the steps of the hulls of
// its sources (`rows/transport.hpp`) in the order of their slopes 1/t, which all kernels share. So this is a game of
// `masses.hpp`.
//
// Memory: by_action holds the policy, by_kernel 1/price of each kernel's budget, so that t_ia is that times x_a (for
// the mean kernel by_action alone holds t_a), and by_row for every action and kernel the two answers that nature
// mixes and the share of the second: midway between the turns of steps, and steps whose turns differ by rounding
// only are one.
#pragma once

#include "../nature.hpp"
#include "../rows/transport.hpp"
#include "masses.hpp"

namespace drmdp {

template <class Real>
class TransportRows {
public:
    static constexpr double COST = 1.0;
    static double order(const Extra&) { return INFINITE; }

    TransportRows(const Layout<Real>& layout, const Point& point, const Extra& extra, Stakes& state, Index start,
                  Index stop)
        : layout_(layout), state_(state), hulls_(layout, point, extra, start, stop),
          nearest_(extra.free ? NEAR : 0.0) {}

    // Nominal values are those after the moves that cost nothing.
    void look(Index s) {
        hulls_.open(layout_.first(s * layout_.A));
        apart_ = 1.0 + APART + NOISE * std::fabs(state_.base) / state_.unit;
        for (Index a = 0; nearest_ > 0.0 && a < layout_.A; ++a) {
            if (!layout_.available[s * layout_.A + a]) continue;
            state_.nominal[a] = 0.0;
            each_source(s, a, [&](Index, double y, View<const Vertex> hull) { state_.nominal[a] += y * hull[0].high; });
        }
    }

    // The steps of the hulls of an action's sources.
    void segments(Index s, Index a, std::vector<Segment>& out) {
        steps_.clear(), turns_.clear();
        each_source(s, a, [&](Index j, double, View<const Vertex> hull) {
            for (Index q = 1; q < hull.size(); ++q) {
                turns_.push_back(hull[q].turn);
                steps_.push_back({j, hull[q].far - hull[q - 1].far, 1.0 / hull[q].turn});
            }
        });
        rank({turns_.data(), Index(turns_.size())}, Index(turns_.size()), order_);
        for (Index q : order_) out.push_back(steps_[q]);
    }

    template <class Game>
    double recalled(const Game& game, const Memory& memory, Index k, Index i) const {
        const Mixture& own = told(memory, game.state())[game.action(k) * game.N + i];
        double amount = 0.0;
        for (const Segment& step : game.segments(k)) {
            const double share = (1.0 <= own.t1 * step.slope ? 1.0 - own.share : 0.0) +
                                 (1.0 <= own.t2 * step.slope ? own.share : 0.0);
            if (!(share > 0.0)) break;
            amount += share * game.length(k, i, step);
        }
        return amount;
    }
    static double price(const Memory&, Index) { return 0.0; }

    void forget(const Memory& memory, Index s) const {
        for (Mixture& mixture : told(memory, s)) mixture = {nearest_, nearest_, 0.0};
        for (double& x : memory.by_action[s]) x = 0.0;
        for (double& kappa : memory.by_kernel[s]) kappa = LARGEST;
    }
    template <class Game>
    void keep(const Game& game, const Memory& memory, View<const double> policy, const std::vector<double>& amounts,
              const std::vector<double>& prices, double) const {
        const Index s = game.state();
        const View<double> kappa = memory.by_kernel[s];
        const auto inverse = [&](Index i) { return prices[i] > 0.0 ? std::min(1.0 / prices[i], LARGEST) : LARGEST; };
        for (Index a = 0; a < game.A; ++a) memory.by_action[s][a] = policy[a] * (kappa.empty() ? inverse(0) : 1.0);
        for (Index i = 0; i < game.N; ++i) {
            if (!kappa.empty()) kappa[i] = inverse(i);
            for (Index k = 0; k < game.size(); ++k)
                tell(game, k, i, amounts[i * game.A + k], told(memory, s)[game.action(k) * game.N + i]);
        }
    }

private:
    static constexpr double APART = 8e-10, NOISE = 512 * EPSILON;

    static View<Mixture> told(const Memory& memory, Index s) {
        const View<double> row = memory.by_row[s];
        return {reinterpret_cast<Mixture*>(row.data()), row.size() / 3};
    }

    template <class Body>
    void each_source(Index s, Index a, Body body) {
        const Row<double> row = layout_.mean_row(s * layout_.A + a);
        const Index first = layout_.first(s * layout_.A + a);
        for (Index j = 0; j < row.size; ++j)
            if (row[j] > 0.0) body(j, row[j], hulls_.of(first + j, state_.of(a).part(0, row.size)));
    }

    // Say by two answers and a share what is spent on a row.
    template <class Game>
    void tell(const Game& game, Index k, Index i, double amount, Mixture& mixture) const {
        const View<const Segment> steps = game.segments(k);
        double below = 0.0, above = 0.0, least = 0.0, most = 0.0, begin = 0.0, end = 0.0;
        if (!(amount > 0.0)) return;
        for (Index q = 0; q < steps.size();) {
            const Index first = q;
            double length = game.length(k, i, steps[q++]);
            while (q < steps.size() && steps[q - 1].slope <= apart_ * steps[q].slope)
                length += game.length(k, i, steps[q++]);
            if (!(length > 0.0)) continue;
            if (end >= amount) {
                above = 1.0 / steps[first].slope;
                break;
            }
            below = most, begin = end, end += length;
            least = 1.0 / steps[first].slope, most = 1.0 / steps[q - 1].slope;
        }
        if (!(end > 0.0)) return;
        if (!(below > 0.0)) below = 0.25 * least;
        if (!(above > 0.0)) above = 4.0 * most;
        mixture = {std::max(std::sqrt(below) * std::sqrt(least), nearest_), std::sqrt(most) * std::sqrt(above),
                   std::min((amount - begin) / (end - begin), 1.0)};
    }

    const Layout<Real>& layout_;
    Stakes& state_;
    Hulls hulls_;
    double nearest_, apart_ = 1.0;  // the multiplier of moves that cost nothing; what tells turns apart
    std::vector<Segment> steps_;
    std::vector<double> turns_;
    std::vector<Index> order_;
};

template <class Real>
using TransportEach = GameSolver<Masses<TransportRows<Real>, Real>, Real>;

// Nature's rows: the mass of source j goes to its targets at t1 and t2, in the shares 1 - f and f. A plan is
// the same for all kernels where the mean has one, so that single kernels are moved by it too. Targets that
// a pair does not list are entries of their own, two for each source.
template <class Real>
class PlanNature {
public:
    explicit PlanNature(const Response<Real>& asked) : asked_(asked) {}

    void open(const Written&) {}
    void add(const Written& to, Index i, const Row<Real>& row, double x, double share) {
        const Layout<Real>& layout = asked_.layout;
        const View<const double> all = asked_.memory.by_row[to.s], own = to.u.part(0, row.size);
        const View<const double> u = layout.common ? asked_.point.common : own;
        const Index width = all.size() / layout.A, K = row.size, first = layout.first(to.pair);
        const View<const double> mixture = all.part(to.a * width + (width > 3 ? 3 * i : 0), 3);
        for (Index n = 0; n < 2 * K; ++n) {
            const Index j = n / 2, side = n % 2;
            const double mass = x * row[j] * (side ? mixture[2] : 1.0 - mixture[2]);
            const double moved = mixture[side] > 0.0 ? mass * share : 0.0;
            to.mass[j] += mass - moved;
            if (!(moved > 0.0)) continue;
            const Index k = target(asked_.extra.list_of[first + j], mixture[side], u);
            const std::int32_t state = asked_.extra.list_target[k];
            Index place = j;  // where mass stays if its list names nothing
            if (asked_.extra.stake(k, u) > -INFINITE)
                place = to.mass.size() > K ? K + 2 * i * K + n : Index(state);
            if (place >= K) asked_.rows.states[to.at + place] = state;
            to.mass[place] += moved;
        }
    }

private:
    // The place of a list's best target at t; at infinity the nearest of the highest stake. As u <= 0, no target
    // farther than -best can win.
    Index target(Index list, double t, View<const double> u) const {
        const Extra& lists = asked_.extra;
        Index at = lists.list_at[list];
        double best = -INFINITE;
        for (Index k = at; k < lists.list_at[list + 1]; ++k) {
            const double x = lists.stake(k, u);
            if (t < INFINITE && -lists.list_cost[k] < best) break;
            const double score = t < INFINITE ? t * x - lists.list_cost[k] : x;
            if (score > best || (score == best && x > lists.stake(at, u))) best = score, at = k;
        }
        return at;
    }

    const Response<Real>& asked_;
};

}  // namespace drmdp
