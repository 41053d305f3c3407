// l2 of every order: a radius for each kernel, within one budget of order p, 1 <= p <= infinity.
//
//     F' = min_x max { sum_a x_a [c_a + sum_i w_i z_ia.u_a] :  sum_i w_i r_i^p <= theta^p },
//     r_i^2 = sum_a |z_ia - y_ia|^2
//
// (p = infinity: every r_i <= theta). Nature answers a policy x with the rows z(t) of `rows/l2.hpp` at
// t = kappa_i x_a, a multiplier kappa_i for each kernel. While active entries stay, V = V(0) + t D and
// |z - y|^2 = e + t^2 D for every row. With
//
//     l_a = c_a + sum_i w_i V_ia(0),     Q_i = sum_a x_a^2 D_ia,     e_i = sum_a e_ia,     r_i^2 = e_i + kappa_i^2 Q_i,
//
// any x and any kappa > 0 bound F' by the inequalities of Cauchy and Schwarz over the rows of a kernel, and of
// Hoelder over the kernels, 1/p + 1/p* = 1:
//
//     U = sum_a x_a l_a - sum_i w_i e_i/kappa_i + theta |lambda|_{p*},     lambda_i = r_i/kappa_i,
//     L = min_a [c_a + h V_a + (1 - h) V_a of the data],                   h = min(1, theta/|r|_p).
//
// **The iteration.** One pass over the rows at (x, kappa) finds D, V(0) and e; then x minimises
//
//     m(x) = sum_a x_a l_a + max { sum_i w_i sqrt(Q_i (r_i^2 - e_i)) : sum_i w_i r_i^p <= theta^p },
//
// which is convex, as sqrt(Q_i) is a norm of x, and kappa follows from the radii that attain m(x) (`radii.hpp`).
// That is exact once the active entries are right. With eta_i as there and g_i = x o D_i,
//
//     grad m = l_a + x_a sum_i w_i kappa_i D_ia,
//     Hess m = sum_i w_i kappa_i [diag D_i - (b_i/Q_i) g_i g_i'] - z z'/sum_i w_i c_i^2/eta_i,
//     b_i = 1 - r_i^2/(kappa_i^3 Q_i eta_i),     z = sum_i w_i c_i r_i/(eta_i kappa_i Q_i) g_i.
//
// **Saturation.** Kernels whose rows are all at the top for the played actions have budget left for the others:
// kappa_i = infinity and kappa_i 0 = t_ia. The policy is therefore kept >= LEAST on the candidates, the actions with
// c_a + V_a of the data < U (no other is ever bent). Then m is differentiable, and the leftovers are shared by the
// same multipliers. Probabilities below DROP are left out of the policy that is returned and of its U. U never
// exceeds 0, the value of an unconstrained nature; where that cap binds, the cheapest action is played.
//
// **Safeguards.** A state that does not settle in JOINT passes is begun anew from the mean kernel; orders near 1 from
// the solutions of orders that come nearer; then it is followed as the radius grows from a part of theta to theta, where
// the next solution is near, and steps that do not lower U, convex in (x, 1/kappa), are halved. What is still
// not settled is returned with honest bounds.
//
// Memory: by_action holds x with its tiny entries, by_kernel kappa.
#pragma once

#include "../rows/l2.hpp"
#include "../stakes.hpp"
#include "radii.hpp"
#include "shared_budget.hpp"
#include "simplex_qp.hpp"

namespace drmdp {

template <class Real>
class EachKernel {
public:
    EachKernel(const Layout<Real>& layout, const Point& point, const Extra& extra, Index start,
               Index stop)
        : layout_(layout), averaged_(layout.averaged()), point_(point), order_(extra.order),
          state_(layout, start, stop, L2::PADDING), mean_(averaged_, point, extra, start, stop),
          pairs_(layout, point.order, start, stop), weights_(pairs_.weights()), rows_(weights_.size()),
          value_(layout.A * rows_), cost_(value_.size()), slope_(value_.size()), side_(value_.size()),
          radii_(weights_), qp_(layout.A), here_(layout.A, rows_), best_(here_), solved_(here_), before_(here_),
          candidates_(layout.A), linear_(layout.A),
          point_x_(layout.A), trial_(layout.A), gradient_(layout.A), target_(layout.A), hessian_(layout.A * layout.A),
          mixtures_(layout.A), multipliers_(layout.A), start_policy_(layout.A), times_(rows_), e_(rows_), q_(rows_),
          price_(rows_), far_(rows_), bent_(rows_), curved_(rows_), crossed_(rows_), touch_(rows_) {}

    void update(Index s, double tol, const Memory& memory, const Found& found) {
        if (!open(s)) return;
        if (order_ < TOUCHED) tol = std::max(tol, FINEST);
        const View<double> x = memory.by_action[s], kappa = memory.by_kernel[s], policy = found.policy[s];
        close(s, solve(tol, x, kappa, policy), 0.0, found);
    }

    void evaluate(Index s, double tol, const Memory& memory, const Found& found) {
        if (!open(s)) return;
        const View<double> x = memory.by_action[s], kappa = memory.by_kernel[s];
        const View<const double> policy = found.policy[s];
        double free = 0.0, nominal = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            here_.x[a] = x[a] = policy[a] > 0.0 ? policy[a] : 0.0;
            if (x[a] > 0.0) free += x[a] * state_.cost[a], nominal += x[a] * state_.nominal[a];
            state_.cost[a] = 0.0;  // set aside: wide costs would hide the gap
        }
        Bracket bracket{theta_ > 0.0 ? 0.0 : nominal, nominal, 0};
        if (theta_ > 0.0 && nominal < -tol) {
            for (Index i = 0; i < rows_; ++i) {
                const double known = i < layout_.N ? kappa[i] : 1.0;
                here_.kappa[i] = is_usable(known) ? known : theta_ / size_of(here_.x);
            }
            bracket = joint({tol, EVALUATE, false, true}, order_);
            if (bracket.gap() > tol && order_ < INFINITE) price({tol, 1, false, true}, bracket);
            std::copy_n(best_.kappa.begin(), layout_.N, kappa.begin());
        } else {
            std::fill(x.begin(), x.end(), 0.0), std::fill(kappa.begin(), kappa.end(), 1.0);
        }
        close(s, bracket, free, found);
    }

private:
    static constexpr double LEAST = 1e-13, DROP = 1e-11, EVEN = 1e-14, ROUGH = 1e-4;
    static constexpr int JOINT = 15, GUARDED = 30, EVALUATE = 200, HALVINGS = 60, STEPS = 80, NEWTON = 20;
    static constexpr int SENSELESS = 3;      // radii without bounds
    static constexpr double SHARP = 1.5;     // below this order more passes are needed
    static constexpr double TOUCHED = 1.005; // below this one balls touch, and
    static constexpr double FINEST = 1e-11;  // digits beyond would take all safeguards
    static constexpr double FIRST = 0.01, NEAR = 1e-9;

    struct Bracket {
        double upper, lower;
        Index passes;
        double gap() const { return std::min(upper, 0.0) - lower; }
    };
    struct Goal {
        double tol;
        int limit;
        bool guard, fixed;  // halve steps that do not lower U; keep the policy
    };
    struct Bounds {
        double upper, lower, attained, far;
    };
    struct Place {
        std::vector<double> x, kappa;
        Place(Index A, Index rows) : x(A), kappa(rows, 1.0) {}
    };

    static bool is_usable(double kappa) { return kappa > 1e-100 && kappa <= Radii::FAR; }
    static double size_of(const std::vector<double>& x) {
        double total = 0.0;
        for (double own : x) total += own * own;
        return std::sqrt(total);
    }
    View<double> view(std::vector<double>& x) const { return {x.data(), Index(x.size())}; }
    View<double> of(std::vector<double>& x, Index a) const { return {x.data() + a * rows_, rows_}; }

    bool open(Index s) {
        if (!state_.open(layout_, point_, s)) return false;
        s_ = s;
        theta_ = whole_ = std::min(layout_.radius[s], 2.0 * std::sqrt(double(layout_.A)));  // beyond all rows
        pairs_.open(s);
        return true;
    }

    void close(Index s, const Bracket& bracket, double free, const Found& found) {
        state_.close(s, free + std::min(bracket.upper, 0.0), free + bracket.lower, double(bracket.passes), found);
    }

    // ---- a pass over the rows -------------------------------------------------------------------

    // D, V(0) and e of an action's rows at kappa_i x_a.
    void visit(Index a) {
        const double x = here_.x[a];
        for (Index i = 0; i < rows_; ++i) times_[i] = x * here_.kappa[i];
        const View<double> value = of(value_, a), cost = of(cost_, a), slope = of(slope_, a);
        L2::visit(pairs_.of(a, state_.of(a)), view(times_), [&](Index i, const L2::Piece& piece) {
            value[i] = piece.value, cost[i] = piece.cost, slope[i] = piece.slope;
        });
    }

    void clear_sums() { std::fill(e_.begin(), e_.end(), 0.0), std::fill(q_.begin(), q_.end(), 0.0); }
    // Finds l_a, and adds to e and Q what an action does.
    void add(Index a) {
        const View<const double> value = of(value_, a), cost = of(cost_, a), slope = of(slope_, a);
        const double x = here_.x[a];
        for (Index i = 0; i < rows_; ++i) e_[i] += cost[i], q_[i] += x * x * slope[i];
        linear_[a] = state_.cost[a] + weighted(value, [](Index) DRMDP_LAMBDA { return all(1.0); });
    }
    // sum_i w_i x_i other(i).
    template <class Other>
    double weighted(View<const double> x, Other other) const {
        return part_sum(rows_, [&](Index i) DRMDP_LAMBDA { return load(weights_, i) * load(x, i) * other(i); });
    }
    // sum_i w_i kappa_i D_ia.
    double steepness(Index a, const std::vector<double>& kappa) {
        return weighted(of(slope_, a), [&](Index i) DRMDP_LAMBDA { return load(&kappa[i]); });
    }

    // U of the policy without its entries below `drop`, L, and what the rows attain.
    Bounds pass(double drop) {
        const std::vector<double>&x = here_.x, &kappa = here_.kappa;
        clear_sums();
        double played = 0.0, upper = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (x[a] > 0.0) visit(a);
            if (!(x[a] > 0.0 && x[a] >= drop)) continue;
            add(a);
            played += x[a], upper += x[a] * linear_[a];
        }
        for (Index i = 0; i < rows_; ++i) price_[i] = std::sqrt(q_[i] + e_[i] / kappa[i] / kappa[i]);
        upper -= weighted(view(e_), [&](Index i) DRMDP_LAMBDA { return 1.0 / load(&kappa[i]); });
        const double dual = order_at_ == 1.0 ? INFINITE : order_at_ < INFINITE ? order_at_ / (order_at_ - 1.0) : 1.0;
        upper = (upper + theta_ * norm_of(dual, view(price_), weights_)) / played;
        for (Index a = 0; a < layout_.A; ++a)
            if (x[a] > 0.0 && x[a] < drop) add(a);
        for (Index i = 0; i < rows_; ++i) far_[i] = std::sqrt(e_[i] + kappa[i] * kappa[i] * q_[i]);
        const double far = norm_of(order_at_, view(far_), weights_) / theta_;
        const double pull = far > 1.0 ? 1.0 / far : 1.0;
        double lower = INFINITE, attained = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            double worth = state_.value(a);
            if (x[a] > 0.0) {
                worth = pull * (linear_[a] + x[a] * steepness(a, kappa)) + (1.0 - pull) * worth;
                attained += x[a] * worth;
            }
            lower = std::min(lower, worth);
        }
        const bool sound = std::isfinite(attained) && std::isfinite(upper);
        return {sound ? upper : INFINITE, sound ? lower : -INFINITE, attained, far};
    }

    // ---- the surrogate ----------------------------------------------------------------------------

    // Let in the actions that must be bent, let go those that need not; e and l of the candidates.
    void screen(double upper, bool fixed) {
        count_ = 0;
        clear_sums();
        for (Index a = 0; a < layout_.A; ++a) {
            double& x = here_.x[a];
            if (fixed && !(x > 0.0)) continue;
            if (!fixed && x <= 1.01 * LEAST && !(state_.value(a) < upper)) {
                x = 0.0;
                continue;
            }
            if (!(x > 0.0)) x = LEAST, pairs_.forget(a), visit(a);
            add(a);
            candidates_[count_++] = a;
        }
    }

    double surrogate(const std::vector<double>& z) {
        double value = 0.0;
        std::fill(q_.begin(), q_.end(), 0.0);
        for (Index r = 0; r < count_; ++r) {
            const View<const double> slope = of(slope_, candidates_[r]);
            value += z[r] * linear_[candidates_[r]];
            for (Index i = 0; i < rows_; ++i) q_[i] += z[r] * z[r] * slope[i];
        }
        radii_.solve(view(q_));
        return value + weighted(view(q_), [&](Index i) DRMDP_LAMBDA { return load(&radii_.kappa[i]); });
    }

    // Fills the gradient; returns (z - LEAST).(g - min g), by how much z is not optimal.
    double differentiate(const std::vector<double>& z) {
        double least = INFINITE, residual = 0.0;
        for (Index r = 0; r < count_; ++r) {
            const Index a = candidates_[r];
            gradient_[r] = linear_[a] + z[r] * steepness(a, radii_.kappa);
            least = std::min(least, gradient_[r]);
        }
        for (Index r = 0; r < count_; ++r) residual += (z[r] - LEAST) * (gradient_[r] - least);
        return residual;
    }

    void bend(const std::vector<double>& z) {
        double shared = 0.0;
        for (Index i = 0; i < rows_; ++i) {
            const double q = q_[i], k = radii_.kappa[i], r = radii_.r[i], eta = radii_.eta[i], c = radii_.price[i];
            curved_[i] = bent_[i] = crossed_[i] = 0.0;
            if (!(q > 1e-300 && k > 0.0)) continue;
            curved_[i] = weights_[i] * k / q;
            bent_[i] = 1.0;
            if (!(eta < INFINITE)) continue;
            bent_[i] = 1.0 - r / k * (r / k) / (k * q * eta);
            crossed_[i] = weights_[i] * c * r / (eta * k * q);
            shared += weights_[i] * c * c / eta;
        }
        for (Index r = 0; r < count_; ++r) {
            const View<double> slope = of(slope_, candidates_[r]), side = of(side_, r);
            const double x = z[r];
            for (Index i = 0; i < rows_; ++i) side[i] = x * slope[i];
            const auto [own, cross] = part_sums<2>(rows_, [&](Index i) DRMDP_LAMBDA {
                const Part g = load(side, i), q = load(&q_[i]) - x * g;
                const Part bent = greater(q, Part{}) + (1.0 - load(&bent_[i])) * (x * g);
                return Terms<2>{load(&curved_[i]) * load(slope, i) * bent, load(&crossed_[i]) * g};
            });
            trial_[r] = cross;
            hessian_[r * layout_.A + r] = std::max(own - (shared > 0.0 ? cross * cross / shared : 0.0), 0.0);
            for (Index k = 0; k < r; ++k) {
                const View<const double> other = of(side_, k);
                double product = part_sum(rows_, [&](Index i) DRMDP_LAMBDA {
                    return load(&curved_[i]) * load(&bent_[i]) * load(side, i) * load(other, i);
                });
                if (shared > 0.0) product += cross * trial_[k] / shared;
                hessian_[r * layout_.A + k] = hessian_[k * layout_.A + r] = -product;
            }
        }
    }

    // Minimise the surrogate over the policies >= LEAST on the candidates, up to a residual of `goal`.
    void minimise(double goal) {
        const double rest = 1.0 - double(count_) * LEAST;
        for (Index r = 0; r < count_; ++r) point_x_[r] = here_.x[candidates_[r]];
        double value = surrogate(point_x_);
        for (int step = 0; step < NEWTON && count_ > 1; ++step) {
            if (differentiate(point_x_) <= goal && step > 0) break;
            bend(point_x_);
            for (Index r = 0; r < count_; ++r) trial_[r] = std::max((point_x_[r] - LEAST) / rest, 0.0);
            if (!qp_.solve(view(hessian_), view(gradient_), view(trial_), count_, view(target_))) break;
            double slope = 0.0, next = INFINITE;
            for (Index r = 0; r < count_; ++r) {
                target_[r] = LEAST + rest * target_[r] - point_x_[r];
                slope += gradient_[r] * target_[r];
            }
            for (double part = 1.0; part > 1e-9; part *= 0.5) {
                for (Index r = 0; r < count_; ++r)
                    trial_[r] = std::max(point_x_[r] + part * target_[r], LEAST);
                next = surrogate(trial_);
                if (next <= value + 1e-4 * part * slope + 1e-15) break;
            }
            std::copy_n(trial_.begin(), count_, point_x_.begin());
            value = next;
        }
        for (Index r = 0; r < count_; ++r) here_.x[candidates_[r]] = point_x_[r];
    }

    // Multipliers when the active entries cost more than the budget: begin again from the left.
    void retreat(double far) {
        const double least = theta_ / size_of(here_.x);
        if (order_at_ < INFINITE) {
            if (far > 1.0 + EVEN)
                for (double& k : here_.kappa) k = 0.5 * std::min(k / far, least);
            return;
        }
        radii_.solve(view(q_));
        for (Index i = 0; i < rows_; ++i) {
            double& k = here_.kappa[i];
            if (radii_.kappa[i] > 0.0) k = radii_.kappa[i];
            else if (far_[i] > (1.0 + EVEN) * theta_) k = 0.5 * std::min(k, least);
        }
    }

    // Where a ball of a larger order touches, and that order: the last radii, scaled onto the budget, none at 0.
    double touch(double gap) {
        if (!(order_at_ < TOUCHED)) return order_at_;
        const double round = std::min(0.1, std::max(gap, 1e-5) * sharp_);
        sharp_ = gap < 1e-4 && gap > 0.25 * last_gap_ ? std::max(0.1 * sharp_, 1e-5) : std::min(1.0, 10.0 * sharp_);
        last_gap_ = gap;
        if (!(1.0 + round > order_at_)) return order_at_;
        for (Index i = 0; i < rows_; ++i) touch_[i] = std::max(far_[i], 0.1 * round * theta_);
        const double scale = theta_ / norm_of(order_at_, view(touch_), weights_);
        for (double& b : touch_) b *= scale;
        return 1.0 + round;
    }

    // ---- one state --------------------------------------------------------------------------------

    // The joint iteration from `here_`; the bracket is that of `best_`, the point of the smallest gap.
    Bracket joint(const Goal& goal, double order) {
        order_at_ = order, sharp_ = 1.0, last_gap_ = INFINITE;
        pairs_.forget();
        Bracket found{INFINITE, -INFINITE, 0};
        double last = INFINITE;
        int halvings = 0;
        while (true) {
            const Bounds now = pass(goal.fixed ? 0.0 : DROP);
            const double lower = goal.fixed ? now.attained : now.lower;
            const double upper = goal.fixed ? now.upper * total(here_.x) : now.upper;
            const double gap = std::min(upper, 0.0) - lower;
            ++found.passes;
            if (gap < found.gap() || found.passes == 1) found.upper = upper, found.lower = lower, best_ = here_;
            if (gap <= goal.tol || found.passes >= goal.limit) return found;
            if (goal.guard && found.passes > 1 && !(upper <= last + 1e-14) && halvings < 12) {
                ++halvings;
                halve();
                continue;
            }
            if (goal.guard) halvings = 0, last = upper, before_ = here_;
            const double q = touch(std::min(std::max(gap, 0.0), 1.0));
            screen(std::min(upper, 0.0), goal.fixed);
            radii_.kappa = here_.kappa;
            const View<const double> at = q > order_at_ ? view(touch_) : View<double>();
            if (!radii_.begin(theta_, order_at_, q, at, view(e_))) {
                retreat(now.far);
                continue;
            }
            const double wide = std::min(now.attained - now.lower, 1.0);
            if (goal.fixed) radii_.solve(view(q_));
            else minimise(std::max(0.1 * wide * wide, 0.01 * goal.tol));
            here_.kappa = radii_.kappa;
        }
    }

    static double total(const std::vector<double>& x) {
        double sum = 0.0;
        for (double own : x) sum += own;
        return sum;
    }

    void halve() {
        for (Index a = 0; a < layout_.A; ++a) here_.x[a] = 0.5 * (here_.x[a] + before_.x[a]);
        for (Index i = 0; i < rows_; ++i)
            here_.kappa[i] = 2.0 / (1.0 / here_.kappa[i] + 1.0 / before_.kappa[i]);
    }

    // Begin with the policy and the multipliers of the mean kernel alone: one kernel has no order.
    void begin_cold(double tol) {
        std::fill(mixtures_.begin(), mixtures_.end(), Mixture{});
        std::fill(multipliers_.begin(), multipliers_.end(), 0.0);
        const double upper = mean_.begin(s_, L2::budget(theta_), std::max(tol, ROUGH),
                                         {view(multipliers_), {mixtures_.data(), layout_.A}, view(start_policy_)});
        double sum = 0.0, most = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            const Mixture& m = mixtures_[a];
            if (!(upper < 0.0)) multipliers_[a] = std::min(m.share < 0.5 ? m.t1 : m.t2, LARGEST);
            sum += multipliers_[a];
            if (!(start_policy_[a] > 0.0)) most = std::max(most, multipliers_[a]);
        }
        double small = most;
        for (Index a = 0; a < layout_.A; ++a)
            if (!(start_policy_[a] > 0.0) && multipliers_[a] > 0.0) small = std::min(small, multipliers_[a]);
        small = std::max(small, 1e-4 * most);
        for (Index a = 0; a < layout_.A; ++a) {
            const double t = multipliers_[a];
            if (upper < 0.0) here_.x[a] = t / sum;
            else here_.x[a] = start_policy_[a] > 0.0 ? 1.0 : t > 0.0 ? LEAST * std::max(t / small, 1.0) : 0.0;
        }
        const double kappa = upper < 0.0 ? sum : (small > 0.0 ? small : 1.0) / LEAST;
        std::fill(here_.kappa.begin(), here_.kappa.end(), kappa);
    }

    // Begin where the last sweep ended; false if that is nowhere.
    bool begin_warm(View<const double> x, View<const double> kappa) {
        double sum = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            const bool open = x[a] > 0.0 && x[a] < 1e100 && state_.value(a) < 0.0;
            here_.x[a] = open ? x[a] : 0.0;
            sum += here_.x[a];
        }
        if (!(sum > 1e-100)) return false;
        for (double k : kappa)
            if (!is_usable(k)) return false;
        for (double& own : here_.x) own = own > 0.0 ? std::max(own / sum, LEAST) : 0.0;
        std::fill(here_.kappa.begin(), here_.kappa.end(), 1.0);
        std::copy(kappa.begin(), kappa.end(), here_.kappa.begin());
        return true;
    }

    Bracket solve(double tol, View<double> x, View<double> kappa, View<double> policy) {
        const auto [cheapest, lowest] = state_.best();
        const double bottom = state_.value(lowest);
        const bool still = !(theta_ > 0.0);
        Bracket found{still ? bottom : 0.0, bottom, 0};
        std::fill(policy.begin(), policy.end(), 0.0);
        if (still || bottom >= -tol) {
            policy[still ? lowest : cheapest] = 1.0;
            std::fill(x.begin(), x.end(), 0.0), std::fill(kappa.begin(), kappa.end(), 1.0);
        } else {
            found = search(tol, begin_warm(x, kappa));
            double sum = 0.0;
            for (double own : best_.x) sum += own >= DROP ? own : 0.0;
            for (Index a = 0; a < layout_.A; ++a) {
                x[a] = best_.x[a] / sum;
                if (found.upper < 0.0) policy[a] = best_.x[a] >= DROP ? x[a] : 0.0;
            }
            if (!(found.upper < 0.0)) policy[cheapest] = 1.0;
            std::copy_n(best_.kappa.begin(), layout_.N, kappa.begin());
        }
        return found;
    }

    // All safeguards, in turn.
    Bracket search(double tol, bool warm) {
        const int limit = order_ < SHARP ? 4 * JOINT : JOINT;
        Bracket found{INFINITE, -INFINITE, 0};
        if (warm && attempt({tol, order_ < SHARP ? 2 * JOINT : JOINT, false, false}, found)) return found;
        begin_cold(tol);
        if (attempt({tol, limit, false, false}, found)) return found;
        if (order_ < TOUCHED) {
            found.passes += approach(limit);
            if (attempt({tol, limit, true, false}, found)) return found;
        }
        follow(tol, found);
        return found;
    }

    // Begin with the solution of an order that settles, brought ever nearer; returns the passes.
    Index approach(int limit) {
        const double own = order_;
        const Place known = best_;
        Index passes = 0;
        begin_cold(NEAR);
        for (double above = FIRST; above > NEAR; above *= 0.1) {
            order_ = std::max(own, 1.0 + above);
            Bracket found{INFINITE, -INFINITE, 0};
            if (!attempt({NEAR, limit, above < FIRST, false}, found) && !(above < FIRST)) follow(NEAR, found);
            here_ = best_, passes += found.passes;
        }
        order_ = own, best_ = known;
        return passes;
    }

    // The joint iteration at the whole radius; keeps the best of what is known.
    bool attempt(const Goal& goal, Bracket& found) {
        kept_ = best_;
        const Bracket now = joint(goal, order_);
        if (now.gap() < found.gap() || found.passes == 0) found.upper = now.upper, found.lower = now.lower;
        else best_ = kept_;
        found.passes += now.passes;
        return found.gap() <= goal.tol;
    }

    // A policy that is given, where the joint iteration does not settle: log kappa_i + (p - 2) log r_i = n for
    // all kernels. The left grows with kappa_i, hence kappa_i with n, and what is spent with both: all are
    // halved. Where kappa_i jumps, what is spent says how far it goes.
    void price(const Goal& goal, Bracket& found) {
        std::vector<double> less(rows_, log(Radii::LEAST)), more(rows_, log(Radii::FAR)), low, high;
        const auto spent = [&](const std::vector<double>& from, const std::vector<double>& to, double part) {
            for (Index i = 0; i < rows_; ++i) here_.kappa[i] = exp(from[i] + part * (to[i] - from[i]));
            return pass(0.0).far;
        };
        double left = -400.0, right = 400.0, share = 0.0;
        for (int k = 0; k < HALVINGS; ++k) {
            const double n = 0.5 * (left + right);
            low = less, high = more;
            for (int j = 0; j < HALVINGS; ++j) {
                spent(low, high, 0.5);
                for (Index i = 0; i < rows_; ++i) {
                    const double own = 0.5 * (low[i] + high[i]), r = std::max(far_[i], 1e-300);
                    (own + (order_ - 2.0) * log(r) < n ? low : high)[i] = own;
                }
            }
            if (spent(low, high, 0.5) <= 1.0) less = low, left = n;
            else more = high, right = n;
        }
        for (double part = 0.5; part > EVEN; part *= 0.5)
            if (spent(less, more, share + part) <= 1.0) share += part;
        spent(less, more, share);
        attempt(goal, found);
    }

    // Follow the solution as the radius grows; rows that are no numbers have bounds at no radius.
    void follow(double tol, Bracket& found) {
        double part = 0.5, last = 0.0, reach = 0.9;
        int nothing = 0;
        for (int step = 0; step < STEPS; ++step) {
            theta_ = part * whole_;
            if (last > 0.0) here_ = solved_;
            else begin_cold(tol);
            const Goal goal{tol, step == STEPS - 1 ? 1 : GUARDED, true, false};
            bool closed = false;
            if (part >= 1.0) {
                closed = attempt(goal, found);
                if (closed) break;
            } else {
                kept_ = best_;
                const Bracket now = joint(goal, order_);
                found.passes += now.passes, closed = now.gap() <= tol;
                if (now.gap() == INFINITE && last == 0.0 && ++nothing == SENSELESS) break;
                if (closed) solved_ = best_, last = part, reach = std::min(2.0 * reach, 0.9);
                best_ = kept_;
            }
            if (!closed && last > 0.0) reach *= 0.3;
            part = last > 0.0 ? last + reach * (1.0 - last) : 0.5 * part;
            if (part > 1.0 - 1e-12 || part < 1e-9 || step == STEPS - 2) part = 1.0;
        }
        theta_ = whole_;
    }

    const Layout<Real>& layout_;
    const Layout<double> averaged_;
    const Point& point_;
    double order_;
    Stakes state_;
    SharedBudget<L2, double> mean_;
    Pairs<L2, Real> pairs_;
    const View<const double> weights_;
    Index rows_;
    std::vector<double> value_, cost_, slope_;  // (A, rows) V(0), e, D
    std::vector<double> side_;                  // (A, rows)
    Radii radii_;
    SimplexQp qp_;
    Place here_, best_, solved_, before_;
    Place kept_ = here_;
    std::vector<Index> candidates_;
    Index count_ = 0;
    std::vector<double> linear_, point_x_, trial_, gradient_, target_, hessian_;
    std::vector<Mixture> mixtures_;
    std::vector<double> multipliers_, start_policy_;
    std::vector<double> times_, e_, q_, price_, far_, bent_, curved_, crossed_, touch_;
    double theta_ = 0.0, whole_ = 0.0, order_at_ = 1.0, sharp_ = 1.0, last_gap_ = INFINITE;
    Index s_ = 0;
};

}  // namespace drmdp
