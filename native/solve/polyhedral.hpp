// Games whose answers are points of the kernels, each with gains of its own:
//
//     F = max { g :  g <= head_a + sum_i w_i gain_ia(z_i) for every action a,    sum_i w_i cost_i(z_i) <= 1 },
//
// z_i in a convex set of kernel i, gains concave, costs convex; the budget is there or not. Columns of one
// linear program (`master.hpp`) are points z_i; nature mixes those of each kernel. Its prices are a policy x
// and a price m of the budget, and nature's best points at these are new columns. For any x and m >= 0
//
//     F <= U = sum_a x_a head_a + m + sum_i w_i max_z [sum_a x_a gain_ia(z) - m cost_i(z)],
//
// and any mixture that keeps the budget bounds F from below by the least of its actions. The actions that
// take part are the members; the others join where they are below U.
//
// A nature has
//
//     A, N, budget                the sizes, and whether there is a budget
//     width                       numbers that a point has beside gains and cost: amounts
//     size(), head(k)             members
//     answer(x, m, points)        the best points; returns U, and may move m
//     locate(amounts, points)     the points at amounts
//     exchanges(points, root, put)   columns next to these, by put(i, gain, amount, cost); see `Master::start`
//     settle(amounts, value)      brings a mixture of points into the budget; its least value, if that is
//                                 above `value`, that of the mixture of their gains
//     join(amounts, upper, tol)   lets the actions take part that are below U; returns the least value of those
//                                 that do not
//
// and for `GameSolver`, which plays the game of a state,
//
//     look(s)                     what must be known of a state before all
//     is_free(theta)              whether nature is unconstrained
//     open(s, theta, bottom, tol) opens the game; returns the unit of its numbers
//     fix()                       the policy will be kept: heads are 0
//     begin(cap, x, amounts, price)     enlists members, with a policy and amounts to begin with
//     is_exact()                  whether these are the solution
//     recall(memory, amounts, price)    what the last sweep left
//     finish(game)                may lower U at the end
//     attained(x, points)         what an answer is worth that keeps the budget
//     forget(memory), keep(memory, policy, amounts, prices, price)   what is left behind
#pragma once

#include "../stakes.hpp"
#include "master.hpp"

namespace drmdp {

// A point of every kernel; rows of A gains and of so many amounts.
struct Points {
    Points(Index N, Index A, Index width)
        : A(A), width(width), gains(N * A), amounts(N * width), costs(N), prices(N) {}
    Index A, width;
    std::vector<double> gains, amounts, costs, prices;  // prices: of a unit of an amount in each kernel
    View<double> gain(Index i) { return {gains.data() + i * A, A}; }
    View<double> amount(Index i) { return {amounts.data() + i * width, width}; }
};

template <class Nature>
class PolyhedralGame {
public:
    PolyhedralGame(Nature& nature, View<const double> weights)
        : upper(INFINITE), lower(-INFINITE), x(nature.A), prices(nature.N), mixture(nature.N * nature.width), passes(0),
          nature_(nature), w_(weights), points_(nature.N, nature.A, nature.width),
          master_(nature.A + 1, nature.N, nature.width), trial_(nature.A), mixed_(mixture.size()),
          value_(nature.A) {}

    double upper, lower, price = 0.0;  // bounds, and the price of the budget behind U
    std::vector<double> x, prices;     // (members) the policy behind U, and (N) the prices of amounts
    std::vector<double> mixture;       // (N, width) the amounts behind L
    int passes;

    // Close the game up to tol from `mixture` and the price, F being at most cap.
    void solve(double tol, double cap) {
        upper = INFINITE, passes = 0;
        while (true) {
            lower = -INFINITE;
            if (nature_.size() == 1 || (nature_.is_exact() && passes == 0)) look(cap);
            if (gap(cap) > tol) {
                begin(tol);
                play(tol, cap);
            }
            const Index before = nature_.size();
            const double others = nature_.join(mixture, std::min(upper, cap), tol);
            lower = std::min(lower, others);
            std::fill(x.begin() + before, x.begin() + nature_.size(), 0.0);
            if (nature_.size() == before || gap(cap) <= tol || passes >= ROUNDS) break;
        }
        price = behind_;
    }
    double gap(double cap) const { return std::min(upper, cap) - lower; }

private:
    static constexpr int ROUNDS = 400, STALLED = 120;
    static constexpr double TIE = 1e-3, LEAST = 0.1, HALF = 0.5;

    // One action, the answer to which is the mixture; or what is known to be the saddle point.
    void look(double cap) {
        const bool alone = nature_.size() == 1;
        trial_ = x;
        if (alone) trial_[0] = 1.0;
        ++passes;
        note(nature_.answer(trial_, price, points_));
        if (!alone) nature_.locate(mixture, points_);
        mixed_ = points_.amounts;
        double least = INFINITE;
        for (Index k = 0; k < nature_.size(); ++k) {
            double value = nature_.head(k);
            for (Index i = 0; i < nature_.N; ++i) value += w_[i] * points_.gain(i)[k];
            least = std::min(least, value);
        }
        note_mixture(least, cap);
    }

    void note(double bound) {
        if (!(bound < upper)) return;
        upper = bound, behind_ = price, prices = points_.prices;
        std::copy_n(trial_.begin(), nature_.size(), x.begin());
    }
    void note_mixture(double value, double cap) {
        value = std::min(nature_.settle(mixed_, value), cap);
        if (value > lower) lower = value, mixture = mixed_;
    }

    Index put(Index i, View<const double> gain, View<const double> amount, double cost) {
        const Index n = nature_.size(), R = nature_.budget ? 1 : 0;
        const View<double> column = master_.add(i);
        if (R) column[0] = w_[i] * cost;
        for (Index k = 0; k < n; ++k) column[R + k] = -w_[i] * gain[k];
        std::copy(amount.begin(), amount.end(), master_.owned(master_.size() - 1).begin());
        return master_.size() - 1;
    }
    Index put(Index i) { return put(i, points_.gain(i), points_.amount(i), points_.costs[i]); }

    // Columns at the mixture and next to it.
    void begin(double tol) {
        const Index n = nature_.size();
        master_.begin(nature_.budget ? 1 : 0, n);
        nature_.locate(mixture, points_);
        Index root = 0;
        for (Index k = 0; k < n; ++k) {
            const double head = nature_.head(k);
            master_.set_head(k, head);
            value_[k] = head + TIE * tol * double(k + 1) / double(n);
        }
        double used = 0.0;
        for (Index i = 0; i < nature_.N; ++i) {
            put(i);
            used += w_[i] * points_.costs[i];
            for (Index k = 0; k < n; ++k) value_[k] += w_[i] * points_.gain(i)[k];
        }
        // Were the budget exceeded by rounding, shares of columns that hardly differ would be far below 0.
        if (nature_.budget) master_.set_budget(0, std::max(used, 1.0) + TIE * tol);
        if (nature_.budget && upper == INFINITE) {  // what the last policy is answered with
            double played = 0.0;
            for (Index k = 0; k < n; ++k) played += x[k];
            for (Index k = 0; k < n; ++k) trial_[k] = x[k] / played;
            ++passes;
            note(nature_.answer(trial_, price, points_));
            for (Index i = 0; i < nature_.N; ++i) put(i);
            nature_.locate(mixture, points_);
        }
        for (Index k = 1; k < n; ++k) root = value_[k] < value_[root] ? k : root;
        const auto add = [&](Index i, View<const double> gain, View<const double> amount, double cost) {
            return put(i, gain, amount, cost);
        };
        sound_ = master_.start(TIE * tol, nature_.exchanges(points_, root, add));
    }

    void play(double tol, double cap) {
        const Index N = nature_.N, n = nature_.size(), R = nature_.budget ? 1 : 0;
        double last = INFINITE;
        for (int round = 0, stalled = 0; round < ROUNDS && stalled < STALLED; ++round) {
            if (!sound_ || !master_.solve(LEAST * tol / double(N)) || !read(n, R)) return;
            collect(n, cap);
            ++passes;
            note(nature_.answer(trial_, price, points_));
            if (gap(cap) <= tol) return;
            if (gap(cap) <= HALF * last) stalled = 0, last = gap(cap);
            else ++stalled;
            bool some = false;
            for (Index i = 0; i < N; ++i) {
                const Index c = put(i);
                if (master_.worth_above(c) > LEAST * tol / double(N)) some = true;
                else master_.drop_last();
            }
            if (!some) return;
        }
    }

    // The prices of the program; false if they are none.
    bool read(Index n, Index R) {
        double total = 0.0;
        for (Index k = 0; k < n; ++k) total += trial_[k] = std::max(master_.price(R + k), 0.0);
        if (!(total > 0.5)) return false;
        for (Index k = 0; k < n; ++k) trial_[k] /= total;
        if (R) price = std::max(master_.price(0), 0.0);
        return true;
    }

    // The mixture of the program, shares brought to sums of 1.
    void collect(Index n, double cap) {
        total_.assign(nature_.N, 0.0);
        for (Index c = 0; c < master_.size(); ++c) total_[master_.group(c)] += master_.share(c);
        std::fill(mixed_.begin(), mixed_.end(), 0.0);
        for (Index k = 0; k < n; ++k) value_[k] = nature_.head(k);
        for (Index c = 0; c < master_.size(); ++c) {
            const Index i = master_.group(c);
            const double share = master_.share(c) / total_[i];
            if (!(share > 0.0)) continue;
            for (Index k = 0; k < n; ++k) value_[k] += share * master_.gain(c, k);
            const View<double> amount = master_.owned(c);
            for (Index j = 0; j < amount.size(); ++j) mixed_[i * amount.size() + j] += share * amount[j];
        }
        note_mixture(*std::min_element(value_.begin(), value_.begin() + n), cap);
    }

    Nature& nature_;
    View<const double> w_;
    Points points_;
    Master master_;
    bool sound_ = true;
    double behind_ = 0.0;  // the price at the best U
    std::vector<double> trial_, mixed_, value_, total_;
};

// The game of a state, values counted from the best nominal one in units of nature's size, so that small budgets
// keep their digits. Members are the actions of the last policy, or those of a policy to begin with.
template <class Nature, class Real>
class GameSolver {
public:
    GameSolver(const Layout<Real>& layout, const Point& point, const Extra& extra, Index start, Index stop)
        : layout_(layout), point_(point), state_(layout, start, stop),
          nature_(layout, point, extra, state_, start, stop), game_(nature_, layout.weights),
          points_(layout.N, layout.A, nature_.width) {}

    void update(Index s, double tol, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        nature_.look(s);
        const View<double> policy = found.policy[s];
        const auto [cheapest, lowest] = state_.best();
        const double theta = layout_.radius[s], bottom = state_.value(lowest);
        if (!(theta > 0.0) || bottom >= -tol || nature_.is_free(theta)) {
            nature_.forget(memory, s);
            std::fill(policy.begin(), policy.end(), 0.0);
            policy[theta > 0.0 ? cheapest : lowest] = 1.0;
            state_.close(s, theta > 0.0 ? 0.0 : bottom, nature_.is_free(theta) ? 0.0 : bottom, 0.0, found);
            return;
        }
        const double size = nature_.open(s, theta, bottom, tol), cap = -bottom / size;
        const bool known = is_known(policy) && !nature_.is_exact();
        if (known) {
            for (Index a = 0; a < layout_.A; ++a)
                if (policy[a] > PLAYED && state_.value(a) < 0.0) enlist(a, policy[a]);
            nature_.recall(memory, game_.mixture, game_.price);
            game_.solve(tol / size, cap);
        }
        if (!known || game_.gap(cap) > tol / size) {  // a basis from afar may be too poor to end with
            if (known) nature_.open(s, theta, bottom, tol);
            nature_.begin(cap, game_.x, game_.mixture, game_.price);
            game_.solve(tol / size, cap);
        }
        const bool capped = !(game_.upper < cap);
        if (!capped) nature_.finish(game_);
        else game_.price = 0.0, std::fill(game_.prices.begin(), game_.prices.end(), 0.0);
        std::fill(policy.begin(), policy.end(), 0.0);
        for (Index k = 0; k < nature_.size() && !capped; ++k) policy[nature_.action(k)] = game_.x[k];
        if (capped) policy[cheapest] = 1.0;
        nature_.forget(memory, s);
        nature_.keep(memory, policy, game_.mixture, game_.prices, game_.price);
        const double upper = bottom + size * std::min(game_.upper, cap);
        state_.close(s, upper, std::min(bottom + size * std::max(game_.lower, 0.0), upper), game_.passes, found);
    }

    void evaluate(Index s, double tol, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        nature_.look(s);
        const View<const double> policy = found.policy[s];
        const double theta = layout_.radius[s], size = nature_.open(s, theta, 0.0, tol);
        double still = 0.0, top = 0.0, price = 0.0;
        nature_.fix();
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(policy[a] > 0.0)) continue;
            still += policy[a] * state_.value(a), top += policy[a] * state_.cost[a];
            if (theta > 0.0) enlist(a, policy[a]);
        }
        double upper = still, lower = still;
        if (nature_.size() > 0) {
            nature_.recall(memory, game_.mixture, price);
            upper += size * nature_.answer(game_.x, price, points_);
            lower += size * nature_.attained(game_.x, points_);
        }
        nature_.forget(memory, s);
        if (nature_.size() > 0) nature_.keep(memory, policy, points_.amounts, points_.prices, price);
        state_.close(s, std::min(upper, top), std::min(lower, top), 1.0, found);
    }

private:
    static constexpr double PLAYED = 1e-12;

    void enlist(Index a, double x) {
        game_.x[nature_.size()] = x;
        nature_.enlist(a);
    }
    bool is_known(View<const double> policy) const {
        double total = 0.0;
        for (Index a = 0; a < layout_.A; ++a)
            if (policy[a] > PLAYED && policy[a] <= 1.0 && state_.value(a) < 0.0) total += policy[a];
        return total > 0.5;
    }

    const Layout<Real>& layout_;
    const Point& point_;
    Stakes state_;
    Nature nature_;
    PolyhedralGame<Nature> game_;
    Points points_;
};

}  // namespace drmdp
