// l-infinity of a finite order p: a radius r_i for each kernel, within one budget. With the gains g of
// `rows/linf.hpp`, t_i = r_i/theta and everything divided by theta,
//
//     F' = max { g :  g <= cost_a + V0_a + sum_i w_i g_ia(t_i) for every a,    sum_i w_i t_i^p <= 1 },
//
// a game of `polyhedral.hpp` with one amount t_i of a kernel. An action costs nature nothing once the radii are
// paid for, so few actions matter, usually one: the policy to begin with plays the best action for the mean kernel
// alone, and others join that cost less than U at the radii. From theta = 1 on nature is unconstrained.
//
// **The answer to a policy.** f_i = sum_a x_a g_ia is concave and piecewise linear. At some points t its value and
// slope are known; their tangents bound f_i from above, their chords from below. At a price mu of t^(p-1), the
// best t of the tangents is where two of them cross, or where mu t^(p-1) is the slope of one; for a policy alone
// mu is searched for such that the budget is spent (`seek`). Where tangents and chords differ there, the point
// is looked at; both only improve. Rows are bent for nothing else.
//
// **The search for mu.** The dual sum_i w_i [f_i(t_i) - mu t_i^p/p] + mu/p is convex. The next mu is the one
// at which the budget is spent if all t_i inside segments stay there, else where the tangents of the dual on both sides
// of the best one cross: for p = 1 that ends after finitely many. Answers of both sides are mixed so that they
// spend the budget. What a saturated answer leaves of it is added to all radii.
//
// Memory: by_kernel holds r, by_action[0] mu.
#pragma once

#include "../elementary.hpp"
#include "../rows/linf.hpp"
#include "polyhedral.hpp"

namespace drmdp {

template <class Real>
class LinfGame {
public:
    const Index A, N, width = 1;
    const bool budget = true;

    LinfGame(const Layout<Real>& layout, const Point& point, const Extra& extra, Stakes& state, Index start,
             Index stop)
        : A(layout.A), N(layout.N), layout_(layout), p_(std::min(extra.order, MOST)), state_(state),
          other_(layout, point, extra, start, stop), pairs_(A, other_), head_(A), member_(A), action_(A),
          scale_(A * N, 1.0), x_(A), far_(N), t_(N), seen_(N), low_(N), high_(N), now_(N) {}

    // What the game and its solver ask for, see `polyhedral.hpp`.
    void look(Index) {}
    static bool is_free(double theta) { return theta >= 1.0; }

    double open(Index s, double theta, double bottom, double tol) {
        s_ = s, n_ = looked_ = 0, theta_ = std::min(theta, 1.0), tol_ = tol / theta_, fixed_ = false;
        std::fill(member_.begin(), member_.end(), char(0));
        for (Index a = 0; a < A; ++a) head_[a] = (state_.value(a) - bottom) / theta_;
        for (Index i = 0; i < N; ++i)
            far_[i] = std::min(1.0 / theta_,  // beyond the budget, so that mu alone keeps it
                               (1.0 + 1.0 / p_) * power(1.0 / layout_.weights[i], 1.0 / p_));
        return theta_;
    }
    void fix() {
        fixed_ = true;
        std::fill(head_.begin(), head_.end(), 0.0);
    }

    static bool is_exact() { return false; }

    // The best action for the mean kernel alone.
    void begin(double, std::vector<double>& x, std::vector<double>& amounts, double& price) {
        Index best = 0;
        double least = INFINITE;
        for (Index a = 0; a < A; ++a) {
            if (!(theta_ * head_[a] < least)) continue;
            const Index pair = s_ * A + a;
            other_.open(pair, state_.of(a), theta_);
            const double gain = other_.template bend<false>(layout_.mean_row(pair), theta_).gain;
            if (theta_ * head_[a] + gain < least) least = theta_ * head_[a] + gain, best = a;
        }
        enlist(best);
        x[0] = 1.0, price = 0.0;
        std::fill(t_.begin(), t_.end(), 1.0);
        amounts = t_;
        look_around();
    }

    void recall(const Memory& memory, std::vector<double>& amounts, double& price) {
        price = memory.by_action[s_][0] / p_;
        for (Index i = 0; i < N; ++i) {
            const double radius = memory.by_kernel[s_][i];
            t_[i] = radius >= 0.0 ? std::min(radius / theta_, far_[i]) : 1.0;
        }
        amounts = t_;
        if (n_ == 1 || fixed_) look_around();
    }
    void forget(const Memory& memory, Index s) const {
        for (double& radius : memory.by_kernel[s]) radius = std::min(layout_.radius[s], 1.0);
        memory.by_action[s][0] = 0.0;
    }
    void keep(const Memory& memory, View<const double>, const std::vector<double>& amounts,
              const std::vector<double>&, double price) const {
        for (Index i = 0; i < N; ++i) memory.by_kernel[s_][i] = theta_ * amounts[i];
        memory.by_action[s_][0] = p_ * price;
    }

    // The best price for a policy that mixes, which the program need not know.
    template <class Game>
    void finish(Game& game) {
        if (n_ == 1) return;
        Points points(N, A, 1);
        t_ = game.mixture, fixed_ = true;
        game.upper = std::min(game.upper, answer(game.x, game.price, points));
    }
    double attained(const std::vector<double>& x, Points& points) const {
        double value = 0.0;
        for (Index i = 0; i < N; ++i)
            for (Index k = 0; k < n_; ++k) value += layout_.weights[i] * x[k] * points.gain(i)[k];
        return value;
    }
    void enlist(Index a) {
        action_[n_] = a, member_[a] = 1;
        pairs_[n_].open(s_ * A + a, state_.of(a), 0.0);
        for (Index i = 0; i < N; ++i) scale_[n_ * N + i] = row_of(layout_, s_ * A + a, i).scale;
        ++n_;
    }
    Index action(Index k) const { return action_[k]; }
    Index size() const { return n_; }
    double head(Index k) const { return head_[action_[k]]; }

    double answer(const std::vector<double>& x, double& price, Points& points) {
        double total = 0.0, bound = INFINITE, mu = p_ * price;
        for (Index k = 0; k < n_; ++k) total += x[k] * head(k);
        weigh(x);
        for (int round = 0; round < ROUNDS; ++round) {
            bound = std::min(bound, n_ == 1 || fixed_ ? seek(mu) : reply(mu));
            if (!refine()) break;
        }
        price = mu / p_;
        write(points);
        return total + bound;
    }

    void locate(const std::vector<double>& amounts, Points& points) {
        t_ = amounts;
        if (looked_ != n_) look_around();
        worth_of_budget();
        write(points);
    }

    template <class Put>
    std::vector<Master::Exchange> exchanges(Points& points, Index, Put put) {
        const std::vector<double> nothing(A);
        for (Index i = 0; i < N; ++i)
            if (points.amount(i)[0] > 0.0) put(i, {nothing.data(), A}, {nothing.data(), 1}, 0.0);
        return {};
    }

    double settle(std::vector<double>& amounts, double value) const {
        const double far = norm(amounts);
        for (double& t : amounts) t = far > 1.0 ? t / far : t + (1.0 - far);
        return far > 1.0 ? value / far : value;
    }

    double join(std::vector<double>& amounts, double upper, double tol) {
        double least = INFINITE, narrow = INFINITE;
        for (double t : amounts) narrow = t > 0.0 ? std::min(narrow, theta_ * t) : narrow;
        below_.clear();
        for (Index a = 0; a < A; ++a) {
            if (member_[a] || !(head_[a] < upper)) continue;
            other_.open(s_ * A + a, state_.of(a), std::min(narrow, 1.0));
            const auto own = [&](Index i) { return row_of(layout_, s_ * A + a, i); };
            const auto bent = [&](Index i) { return theta_ * amounts[i]; };
            const double value =
                other_.add_gains(own, bent, theta_ * head_[a], theta_ * upper) / theta_;
            least = std::min(least, value);
            if (value < upper - tol) below_.push_back({value, a});
        }
        const Index many = std::min(Index(below_.size()), JOIN);
        std::partial_sort(below_.begin(), below_.begin() + many, below_.end());
        for (Index k = 0; k < many; ++k) enlist(below_[k].second);
        return least;
    }

private:
    static constexpr double MOST = 1e13;  // radii of larger orders are equal up to rounding
    static constexpr double NEAR = 1e-12, TIGHT = 0.1;
    static constexpr int ROUNDS = 100, TRIALS = 200;
    static constexpr Index JOIN = 3;

    // A point of a kernel: f and its slope there; where the gains and slopes of the members are.
    struct Seen {
        double t, value, slope;
        Index at;
    };
    // An answer at a price: sum_i w_i f_i as tangents have it, what it spends, and what of that is inside segments.
    struct Side {
        explicit Side(Index N) : t(N) {}
        double mu = 0.0, value = 0.0, spent = 0.0, inside = 0.0;
        std::vector<double> t;
    };

    static double power(double t, double e) { return e == 0.0 ? 1.0 : e == 1.0 ? t : pow(t, e); }
    double norm(const std::vector<double>& t) const {
        const double most = *std::max_element(t.begin(), t.end());  // powers of less than 1 may vanish
        if (!(most > 0.0)) return 0.0;
        double spent = 0.0;
        for (Index i = 0; i < N; ++i) spent += layout_.weights[i] * power(t[i] / most, p_);
        return most * power(spent, 1.0 / p_);
    }

    // Look at both sides of t_, and forget what was seen before.
    void look_around() {
        known_.clear(), looked_ = n_;
        for (Index i = 0; i < N; ++i) {
            seen_[i].clear();
            const double near = NEAR * std::max(t_[i], 1.0);
            if (t_[i] > near) look(i, t_[i] - near);
            look(i, t_[i] + near);
        }
    }

    void look(Index i, double t) {
        Seen now{t, 0.0, 0.0, Index(known_.size())};
        known_.resize(known_.size() + 2 * n_);
        for (Index k = 0; k < n_; ++k) {
            Row<Real> row = layout_.row(s_ * A + action_[k], i);
            row.scale = scale_[k * N + i];
            const auto bent = pairs_[k].template bend<true>(row, theta_ * t);
            known_[now.at + k] = bent.gain / theta_, known_[now.at + n_ + k] = bent.slope;
        }
        weigh(now);
        const auto place = std::lower_bound(seen_[i].begin(), seen_[i].end(), t,
                                            [](const Seen& own, double t) { return own.t < t; });
        seen_[i].insert(place, now);
    }

    void weigh(Seen& seen) const {
        seen.value = seen.slope = 0.0;
        for (Index k = 0; k < n_; ++k) {
            if (!(x_[k] > 0.0)) continue;
            seen.value += x_[k] * known_[seen.at + k], seen.slope += x_[k] * known_[seen.at + n_ + k];
        }
    }
    void weigh(const std::vector<double>& x) {
        std::copy_n(x.begin(), n_, x_.begin());
        for (auto& own : seen_)
            for (Seen& seen : own) weigh(seen);
    }

    // Where the tangents of neighbours cross.
    static double cross(const Seen& a, const Seen& b) {
        if (!(a.slope > b.slope)) return b.t;
        const double t = a.t + (b.value - a.value - b.slope * (b.t - a.t)) / (a.slope - b.slope);
        return std::min(std::max(t, a.t), b.t);
    }
    static double tangent(const Seen& own, double t) { return own.value + own.slope * (t - own.t); }

    // The best point of kernel i for its tangents.
    void reply(Index i, double mu, Side& side) const {
        const std::vector<Seen>& own = seen_[i];
        const Index last = Index(own.size()) - 1;
        double low = 0.0, t = far_[i];
        bool inside = false;
        Index j = 0;
        for (; j <= last; ++j) {
            const double high = j < last ? std::max(cross(own[j], own[j + 1]), low) : far_[i];
            if (own[j].slope <= mu * power(high, p_ - 1.0)) {
                t = p_ > 1.0 ? pow(std::max(own[j].slope, 0.0) / mu, 1.0 / (p_ - 1.0)) : low;
                inside = t > low && t < high;
                t = std::min(std::max(t, low), high);
                break;
            }
            low = high;
        }
        const double w = layout_.weights[i], spent = w * power(t, p_);
        side.t[i] = t, side.spent += spent, side.inside += inside ? spent : 0.0;
        side.value += w * tangent(own[std::min(j, last)], t);
    }
    // The best points of all, in now_; returns the bound.
    double respond(double mu) {
        now_.mu = mu, now_.value = now_.spent = now_.inside = 0.0;
        for (Index i = 0; i < N; ++i) reply(i, mu, now_);
        return now_.value + mu * (1.0 - now_.spent) / p_;
    }
    double reply(double mu) {
        const double bound = respond(std::max(mu, FLAT));
        t_ = now_.t;
        return bound;
    }

    // The best price, and points in t_ that spend the budget; returns the bound.
    double seek(double& mu) {
        double bound = INFINITE, best = mu, part = 0.0;
        const double here = worth_of_budget();
        low_.mu = 0.0, high_.mu = INFINITE, high_.value = high_.spent = 0.0;
        std::fill(high_.t.begin(), high_.t.end(), 0.0);
        if (p_ == 1.0 || !(mu > 0.0 && mu < INFINITE)) {
            mu = 0.0;
            for (const auto& own : seen_) mu = std::max(mu, own.back().slope);
        }
        mu = std::max(mu, FLAT);
        for (int trial = 0; trial < TRIALS; ++trial) {
            const double now = respond(mu);
            if (now < bound) bound = now, best = mu;
            if (bound - here <= 2.0 * TIGHT * tol_ + 16.0 * EPSILON * bound) return mu = best, bound;
            const double fixed = now_.spent - now_.inside, inside = now_.inside;
            std::swap(now_, now_.spent > 1.0 ? low_ : high_);
            if (!(low_.mu > 0.0) && mu <= FLAT) break;
            if (low_.mu > 0.0) {
                const double more = power(low_.spent, 1.0 / p_), less = power(high_.spent, 1.0 / p_);
                part = (1.0 - less) / (more - less);
                if (bound - (part * low_.value + (1.0 - part) * high_.value) <= 0.1 * TIGHT * tol_) break;
            }
            const double next = after(trial, mu, fixed, inside);
            if (next == mu) break;
            mu = next;
        }
        for (Index i = 0; i < N; ++i)
            t_[i] = part > 0.0 ? part * low_.t[i] + (1.0 - part) * high_.t[i] : high_.t[i];
        mu = best;
        return bound;
    }

    // Bring t_ into the budget; what it is worth by its chords.
    double worth_of_budget() {
        const double far = norm(t_);
        double value = 0.0;
        for (Index i = 0; i < N; ++i) {
            t_[i] = far > 1.0 ? t_[i] / far : t_[i];
            value += layout_.weights[i] * chord(around(i, t_[i]), t_[i]);
        }
        return value;
    }

    double after(int trial, double mu, double fixed, double inside) const {
        const double low = low_.mu, high = high_.mu;
        if (p_ == 1.0 && trial == 0) return std::max(mu * (low > 0.0 ? 1.0 + NEAR : 1.0 - NEAR), FLAT);
        if (!(low > 0.0)) return std::max(mu / 8.0, FLAT);
        double next = high < INFINITE ? std::sqrt(low * high) : 8.0 * low;
        if (trial % 4 == 3) return next;
        const double stays = mu * pow(inside / (1.0 - fixed), (p_ - 1.0) / p_);
        const double crossed = p_ * (low_.value - high_.value) / (low_.spent - high_.spent);
        if (inside > 0.0 && fixed < 1.0 && stays > low && stays < high) next = stays;
        else if (crossed > low && crossed < high) next = crossed;
        else if (p_ == 1.0) next = mu;
        return next;
    }

    // The neighbours of t: between origin (none) or a point, and a point or nothing.
    struct Around {
        const Seen *left, *right;
        double part;  // of the right one in the chord
    };
    Around around(Index i, double t) const {
        const std::vector<Seen>& own = seen_[i];
        const auto right = std::lower_bound(own.begin(), own.end(), t,
                                            [](const Seen& seen, double t) { return seen.t < t; });
        const Seen* left = right == own.begin() ? nullptr : &*(right - 1);
        if (right == own.end()) return {left, nullptr, 0.0};
        const double first = left ? left->t : 0.0;
        return {left, &*right, right->t > first ? std::max(t - first, 0.0) / (right->t - first) : 1.0};
    }

    // What some numbers of the points, with their slopes, are at t: by the chord, or by the tangents of two
    // points that are both sides of one kink.
    template <class Of>
    static double between(const Around& at, double t, Of of) {
        const auto line = [&](const Seen* seen) {
            const auto [value, slope] = of(*seen);
            return value + slope * (t - seen->t);
        };
        if (at.left && at.right && at.right->t - at.left->t <= 3.0 * NEAR * std::max(t, 1.0))
            return std::min(line(at.left), line(at.right));
        return (1.0 - at.part) * (at.left ? of(*at.left).first : 0.0) +
               at.part * (at.right ? of(*at.right).first : 0.0);
    }
    static double chord(const Around& at, double t) {
        return between(at, t, [](const Seen& seen) { return std::pair(seen.value, seen.slope); });
    }

    // Look at points where tangents and chords differ; whether there were some.
    bool refine() {
        bool some = false;
        for (Index i = 0; i < N; ++i) {
            const double t = t_[i], near = 0.1 * NEAR * std::max(t, 1.0);
            const Around at = around(i, t);
            const double above = std::min(at.left ? tangent(*at.left, t) : INFINITE,
                                          at.right ? tangent(*at.right, t) : INFINITE);
            if (above - chord(at, t) <= TIGHT * tol_ + 8.0 * EPSILON * above) continue;
            if ((at.left && t - at.left->t < near) || (at.right && at.right->t - t < near)) continue;
            look(i, std::max(t, NEAR));
            some = true;
        }
        return some;
    }

    // Points at t_, with the gains of chords.
    void write(Points& points) const {
        for (Index i = 0; i < N; ++i) {
            const Around at = around(i, t_[i]);
            points.amount(i)[0] = t_[i], points.costs[i] = power(t_[i], p_);
            for (Index k = 0; k < n_; ++k)
                points.gain(i)[k] = between(at, t_[i], [&](const Seen& seen) {
                    return std::pair(known_[seen.at + k], known_[seen.at + n_ + k]);
                });
        }
    }

    const Layout<Real>& layout_;
    double p_, theta_ = 1.0, tol_ = 0.0;
    bool fixed_ = false;  // the policy
    Index s_ = 0, n_ = 0, looked_ = 0;  // the state, its members, and those that were looked at
    Stakes& state_;
    LinfPair<Real> other_;
    std::vector<LinfPair<Real>> pairs_;
    std::vector<double> head_;
    std::vector<char> member_;
    std::vector<Index> action_;
    std::vector<double> scale_, x_, far_, t_;
    std::vector<std::vector<Seen>> seen_;  // (N) in ascending order of t
    std::vector<double> known_;            // gains and slopes of the members at each point
    std::vector<std::pair<double, Index>> below_;
    Side low_, high_, now_;
};

template <class Real>
using LinfOrders = GameSolver<LinfGame<Real>, Real>;

}  // namespace drmdp
