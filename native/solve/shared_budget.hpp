// One budget for all actions of a state, costs of rows added up: the update for every row model.
//
//     F' = max { g : c_a + sum_i w_i z_ia.u_a >= g for every a,  sum_a sum_i w_i C(z_ia | y_ia) <= B }
//
// which curves E_a(V) answer, one an action (`curves.hpp`). Rounds of evaluations raise L and lower U
// until they are `tol` apart; nothing else decides. An action whose nominal value is at U or above is
// never touched. A sweep begins with the multipliers of the last one, the first sweep with those of
// the mean rows.
//
// With a policy x fixed the rows are stacked to one curve: at t action a is asked at t x_a, and
// V = sum x_a V_a, E = sum E_a, D = sum x_a^2 D_a.
//
// Memory: by_action holds the multipliers t_a behind U; by_row the two that nature mixes and the
// share of the second, for every action.
#pragma once

#include <vector>

#include "../rows/pair.hpp"
#include "../stakes.hpp"

namespace drmdp {

struct Mixture {
    double t1 = 0.0, t2 = 0.0, share = 0.0;  // of the answer at t2
};

template <class Model, class Real>
class SharedBudget {
public:
    // Work space for the states start ... stop - 1.
    SharedBudget(const Layout<Real>& layout, const Point& point, const Extra& extra, Index start, Index stop)
        : layout_(layout), averaged_(layout.averaged()), point_(point),
          model_(made<Model>(extra)),
          state_(layout, start, stop, Model::PADDING), pairs_(layout, point.order, start, stop),
          mean_(averaged_, point.order, start, stop), curves_(layout.A), trial_(layout.A) {}

    // Minimise over the policy and let nature maximise, in state s.
    void update(Index s, double tol, const Memory& memory, const Found& found) {
        if (!open(s)) return;
        const double budget = Model::budget(layout_.radius[s]);
        const Views views{memory.by_action[s], mixtures(memory, s), found.policy[s]};
        if (layout_.N > 1 && nothing_known(views.multipliers)) {
            of_mean_ = true;
            solve(budget, std::max(tol, ROUGH), views);
            of_mean_ = false;
        }
        close(s, solve(budget, tol, views), 0.0, found);
    }

    // Let nature maximise against the policy in found.policy.
    void evaluate(Index s, double tol, const Memory& memory, const Found& found) {
        if (!open(s)) return;
        const Views views{memory.by_action[s], mixtures(memory, s), found.policy[s]};
        double cost = 0.0;
        const Bracket bracket = evaluate(Model::budget(layout_.radius[s]), tol, views, cost);
        close(s, bracket, cost, found);
    }

    // What a state leaves behind.
    struct Views {
        View<double> multipliers;
        View<Mixture> mixtures;
        View<double> policy;
    };

    // Solve state s, known not to be terminal, with a budget of its own; returns U, normalised.
    double begin(Index s, double budget, double tol, const Views& views) {
        open(s);
        return solve(budget, tol, views).upper;
    }

private:
    static constexpr int ROUNDS = 100;
    static constexpr double ROUGH = 1e-4;  // accuracy of a start
    static constexpr double FIRST = 0.7;   // multiplier of a curve of which nothing is known; at 1
                                           // costs of 1 and the widest stakes tie
    static constexpr double FAINT = 1e-14, NOTHING = 1e-18;  // a gain that counts as 0, the least multiplier
    static constexpr double APART = 1e-10, NOISE = 0x1p-46, SATURATED = 1e12;

    struct Bracket {
        double upper, lower;
        int rounds;
    };

    static View<Mixture> mixtures(const Memory& memory, Index s) {
        const View<double> row = memory.by_row[s];
        return {reinterpret_cast<Mixture*>(row.data()), row.size() / 3};
    }

    bool open(Index s) {
        if (!state_.open(layout_, point_, s)) return false;
        pairs_.open(s), mean_.open(s);
        return true;
    }

    void close(Index s, const Bracket& bracket, double cost, const Found& found) {
        state_.close(s, cost + bracket.upper, cost + bracket.lower, bracket.rounds, found);
    }

    static bool nothing_known(View<double> multipliers) {
        for (double t : multipliers)
            if (t != 0.0) return false;
        return true;
    }

    // ---- questions to the row model -----------------------------------------------------------

    Answer ask(Index a, double t) {
        const auto respond = [&](auto& pairs) {
            return model_.response(pairs.of(a, state_.of(a)), std::min(t, LARGEST));
        };
        Answer found = of_mean_ ? respond(mean_) : respond(pairs_);
        if (!(t < LARGEST)) found.t = INFINITE, found.slope = 0.0;
        return found;
    }
    Answer ask(View<const double> policy, double t) {
        Answer stacked{t, 0.0, 0.0, 0.0};
        for (Index a = 0; a < policy.size(); ++a) {
            if (!(policy[a] > 0.0)) continue;
            const Answer own = ask(a, t * policy[a]);
            stacked.value += policy[a] * own.value;
            stacked.cost += own.cost;
            stacked.slope += policy[a] * policy[a] * own.slope;
        }
        return stacked;
    }

    // Evaluate the curves at `next`: one an action, or one of a policy.
    void visit(Curves curves, View<const double> policy) {
        for (Index k = 0; k < curves.size(); ++k) {
            if (!(curves[k].next > 0.0)) continue;
            const double t = curves[k].next < LARGEST ? curves[k].next : INFINITE;
            Answer point = policy.empty() ? ask(k, t) : ask(policy, t);
            point.t = t;
            curves[k].insert(point);
            if constexpr (Model::POLYGON)
                if (policy.empty() && t < INFINITE) add_neighbours(curves[k], k, point);
        }
    }
    void add_neighbours(Curve& curve, Index a, const Answer& point) {
        const auto [before, after] = model_.neighbours(pairs_.of(a, state_.of(a)), point);
        if (before.t > 0.0) curve.insert(before);
        if (after.t > 0.0 && after.t < LARGEST) curve.insert(after);
        curve.last = point;
    }

    // Evaluate the curves where nature was after the last sweep: the nearer one of the two points
    // that she mixed, and both on polygons.
    void recall(Curves curves, View<const double> policy, View<const Mixture> mixtures) {
        for (Index k = 0; k < curves.size(); ++k) {
            const double near = mixtures[k].share < 0.5 ? mixtures[k].t1 : mixtures[k].t2;
            curves[k].next = near > 0.0 && curves[k].low < INFINITE ? near : 0.0;
        }
        visit(curves, policy);
        if (Model::POLYGON && policy.empty()) return;  // both sides are known
        for (Index k = 0; k < curves.size(); ++k) {
            const double far = mixtures[k].share < 0.5 ? mixtures[k].t2 : mixtures[k].t1;
            const bool polygon = curves[k].next > 0.0 && curves[k].last.slope == 0.0;
            curves[k].next = polygon && far > 0.0 && far != curves[k].next ? far : 0.0;
        }
        visit(curves, policy);
    }

    // The first multiplier to ask a curve: so small, where budgets buy next to nothing, that B/t is what can
    // be told from 0.
    static double first_guess(double budget) {
        const double seen = Model::POLYGON ? budget / FAINT : 3.0 * std::sqrt(2.0 * budget);  // E is about t^2 D/2
        return std::min(FIRST, std::max(seen, NOTHING));
    }

    // Rounds of evaluations until U - L <= tol or nothing new is to be learnt. `best` are the
    // multipliers behind U, infinite where a curve is played alone.
    Bracket climb(Curves curves, View<const double> policy, double budget, double tol,
                  View<double> best, View<double> trial) {
        double upper = INFINITE, guess = first_guess(budget);
        const auto play = [&](Index k, double bound, double t) {
            if (!(bound < upper)) return;
            upper = bound;
            std::fill(best.begin(), best.end(), 0.0);
            best[k] = t;
        };
        for (Index k = 0; k < curves.size(); ++k) play(k, curves[k].cost, INFINITE);
        Level at;
        int round = 1;
        for (; round <= ROUNDS; ++round) {
            at = level_of(curves, budget, upper);
            for (Index k = 0; k < curves.size(); ++k) {
                const Answer &last = curves[k].last, &end = curves[k].end();
                if (end.t == INFINITE) play(k, curves[k].cost + end.value, INFINITE);
                if (!(last.t > 0.0 && last.t < INFINITE)) continue;
                play(k, curves[k].cost + last.value + (budget - last.cost) / last.t, last.t);
                guess = std::max(guess, last.t);
            }
            const double bound = bound_of(curves, budget, at.level, trial);
            if (bound < upper) {
                upper = bound;
                std::copy(trial.begin(), trial.end(), best.begin());
            }
            if (upper - at.level <= tol) break;
            if (choose_next(curves, budget, at, guess, round % 4 != 0) == 0) break;
            visit(curves, policy);
        }
        return {upper, std::min(at.level, upper), std::min(round, ROUNDS)};
    }

    // Which two points of a curve nature mixes at a level.
    static Mixture mixed(const Curve& curve, double level) {
        if (!curve.rises_to(level) || curve.count < 2) return {};
        const Answer &left = curve.points[curve.segment], &right = curve.points[curve.segment + 1];
        return {left.t, right.t, share_at(curve, left, right, level)};
    }
    static double share_at(const Curve& curve, const Answer& left, const Answer& right, double level) {
        if (!(right.value > left.value)) return 0.0;
        const double share = (level - curve.cost - left.value) / (right.value - left.value);
        return std::min(std::max(share, 0.0), 1.0);
    }

    // ---- one state ----------------------------------------------------------------------------

    Bracket solve(double budget, double tol, const Views& views) {
        const Curves curves(curves_.data(), layout_.A);
        const auto [cheapest, lowest] = state_.best();
        const double bottom = state_.value(lowest);
        if (budget <= 0.0 || bottom >= 0.0) {
            for (Index a = 0; a < layout_.A; ++a)
                views.multipliers[a] = views.policy[a] = 0.0, views.mixtures[a] = {};
            views.policy[budget <= 0.0 ? lowest : cheapest] = 1.0;
            return {budget <= 0.0 ? bottom : 0.0, bottom, 0};
        }
        for (Index a = 0; a < layout_.A; ++a) {
            curves[a].begin(state_.cost[a], state_.nominal[a]);
            if (!(curves[a].low < 0.0)) views.mixtures[a].t1 = views.mixtures[a].t2 = 0.0;
        }
        recall(curves, {}, views.mixtures);
        const View<double> trial(trial_.data(), layout_.A);
        const Bracket bracket = climb(curves, {}, budget, tol, views.multipliers, trial);
        double total = 0.0;
        bool spare = false;  // the budget is not used up
        for (Index a = 0; a < layout_.A; ++a) {
            spare = spare || views.multipliers[a] == INFINITE;
            views.multipliers[a] = std::min(views.multipliers[a], LARGEST);
            total += views.multipliers[a];
            views.mixtures[a] = mixed(curves[a], bracket.lower);
        }
        for (Index a = 0; a < layout_.A; ++a) views.policy[a] = views.multipliers[a] / total;
        if constexpr (Model::POLYGON) settle_all(curves, {}, bracket.lower, budget, spare, views.mixtures);
        return bracket;
    }

    // The worst case of a policy above its cost, which may be many units and is no part of the curve.
    Bracket evaluate(double budget, double tol, const Views& views, double& cost) {
        const View<const double> policy = views.policy;
        double nominal = 0.0;
        Index likeliest = 0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(policy[a] > 0.0)) continue;
            cost += policy[a] * state_.cost[a];
            nominal += policy[a] * state_.nominal[a];
            if (policy[a] > policy[likeliest] || !(policy[likeliest] > 0.0)) likeliest = a;
        }
        const Curves curve(&stacked_, 1);
        stacked_.begin(0.0, nominal);
        double multiplier = 0.0, trial = 0.0;
        Bracket bracket{nominal, nominal, 0};
        if (budget > 0.0 && nominal < 0.0) {
            const Mixture& known = views.mixtures[likeliest];
            const double x = policy[likeliest];
            const Mixture start{known.t1 / x, known.t2 / x, known.share};
            recall(curve, policy, {&start, 1});
            bracket = climb(curve, policy, budget, tol, {&multiplier, 1}, {&trial, 1});
        }
        Mixture mixture = mixed(stacked_, bracket.lower);
        if constexpr (Model::POLYGON)
            settle_all(curve, policy, bracket.lower, budget, multiplier == INFINITE, {&mixture, 1});
        for (Index a = 0; a < layout_.A; ++a) {
            const double x = std::max(policy[a], 0.0);
            views.multipliers[a] = x * std::min(multiplier, LARGEST);
            views.mixtures[a] = {x > 0.0 ? x * mixture.t1 : 0.0, x > 0.0 ? x * mixture.t2 : 0.0,
                                 mixture.share};
        }
        return bracket;
    }

    // ---- ties: what nature is told to mix on polygons -------------------------------------------
    //
    // A trial at the slope of a segment is a tie between its ends, which others may break in another
    // way. So she is told multipliers in the middle of those that are known to be answered by each
    // end, or a relative `apart` from the slope, more than rounding moves the stakes by. For the same
    // reason the end of a curve is told by a finite multiplier. Where shares cost more than the budget
    // by rounding they are made smaller, not the whole move: that would take back what costs nothing.

    struct Cost {
        double all, of_second;  // of a mixture, and what the second answer costs more than the first
    };

    static double affordable(const Cost& cost, double budget) {
        if (!(cost.all > budget && cost.of_second > 0.0)) return 1.0;
        return std::max(1.0 - (cost.all - budget) / cost.of_second, 0.0);
    }

    // An answer beside a slope, as far from it as the vertex on its side is surely the answer.
    Answer beside(Curves curves, Index k, View<const double> policy, const Answer& vertex,
                  double known, double slope, double apart) {
        const bool near = !(std::fabs(known - slope) > std::fabs(apart) * slope);
        const double between = std::sqrt(known) * std::sqrt(slope);
        if (!near && Model::VERTICES) return {between, vertex.cost, vertex.value, 0.0};
        curves[k].next = near ? (1.0 + 2.0 * apart) * slope : between;
        visit(curves, policy);
        const Answer& last = curves[k].last;
        return Model::VERTICES || std::fabs(last.value - vertex.value) <= FLAT ? last : vertex;
    }

    // Finite answer that is as good as the saturated end of a curve, up to a factor the least.
    Answer finite_end(Curves curves, Index k, View<const double> policy, const Answer& left,
                      const Answer& right, double slope) {
        double t = std::max(left.t, std::min(slope, SATURATED / GROWTH));
        while (true) {
            t *= GROWTH;
            if (t > GROWTH * SATURATED) return left;
            curves[k].next = t;
            visit(curves, policy);
            if (curves[k].last.value >= right.value - FLAT || t >= SATURATED) return curves[k].last;
        }
    }

    // A segment may skip vertices, which would answer in its stead, where budget is left or the accuracy asked for
    // is low: divide it.
    void divide(Curves curves, Index k, View<const double> policy, double level) {
        Curve& curve = curves[k];
        for (int round = 0; round < ROUNDS; ++round) {
            const Answer left = curve.points[curve.segment], right = curve.points[curve.segment + 1];
            if (!(right.value > left.value + FLAT)) return;
            curve.next = slope_between(left, right);
            visit(curves, policy);
            curve.spend(level);
            const double value = curve.last.value;
            if (curve.smooth() || value <= left.value + FLAT || value >= right.value - FLAT) return;
        }
    }

    Cost settle(Curves curves, Index k, View<const double> policy, double level, bool spare,
                Mixture& mixture) {
        Curve& curve = curves[k];
        if (!curve.rises_to(level) || curve.count < 2) return {0.0, 0.0};
        for (Curve& other : curves) other.next = 0.0;
        if (!curve.smooth() && (spare || curve.points[curve.segment + 1].t == INFINITE || curve.unasked() > 0.0))
            divide(curves, k, policy, level);
        if (curve.smooth()) {  // nothing ties
            mixture = mixed(curve, level);
            return {0.0, 0.0};
        }
        const double apart = APART + NOISE * std::fabs(state_.base) / state_.unit;
        Answer left = curve.points[curve.segment], right = curve.points[curve.segment + 1];
        const double slope = right.value > left.value ? slope_between(left, right) : right.t;
        const bool ends = right.t == INFINITE;
        if (ends) right = finite_end(curves, k, policy, left, right, slope);
        if (slope > 0.0) {
            double first = left.t, second = right.t;
            for (int n = 0; n < curve.count; ++n) {
                const Answer& p = curve.points[n];
                if (p.t < first && p.value >= left.value - FLAT) first = p.t;
                if (p.t > second && p.t < INFINITE && p.value <= right.value + FLAT) second = p.t;
            }
            if (!ends) right = beside(curves, k, policy, right, second, slope, apart);
            if (first > 0.0) left = beside(curves, k, policy, left, first, slope, -apart);
            else left.t = 0.0;
        }
        mixture = {left.t, right.t, share_at(curve, left, right, level)};
        const double more = mixture.share * (right.cost - left.cost);
        return {left.cost + more, more};
    }

    void settle_all(Curves curves, View<const double> policy, double level, double budget, bool spare,
                    View<Mixture> mixtures) {
        Cost cost{0.0, 0.0};
        for (Index k = 0; k < curves.size(); ++k) {
            if (!(mixtures[k].t2 > 0.0)) continue;
            const Cost own = settle(curves, k, policy, level, spare, mixtures[k]);
            cost.all += own.all, cost.of_second += own.of_second;
        }
        for (Mixture& mixture : mixtures) mixture.share *= affordable(cost, budget);
    }

    const Layout<Real>& layout_;
    const Layout<double> averaged_;
    const Point& point_;
    Model model_;
    Stakes state_;
    Pairs<Model, Real> pairs_;
    Pairs<Model, double> mean_;
    std::vector<Curve> curves_;
    Curve stacked_;
    std::vector<double> trial_;
    bool of_mean_ = false;  // the mean row stands for all
};

}  // namespace drmdp
