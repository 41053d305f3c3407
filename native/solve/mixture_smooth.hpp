// Mixtures within a divergence of w: kl, burg, chi2.
//
// Nature's answer is that of one row (`rows/`) with y = w and stakes (loss - top)/span. A multiplier t with
// C(q(t)) = B is found by Newton's method on sqrt C = sqrt B; at any t
//
//     U = V + (B - C)/t >= f,   and q(t), pulled towards w by B/C where C > B, is in the ball.
//
// f(x) = max_q is convex and, away from saturation, smooth. Where the answer to the last policy does not close the
// state, Newton's method on the policies does. Its gradient is G_a.q. With kappa = 1/t, losses are kappa C'(q) + a
// constant where q > 0, so that the answer to other losses moves by
//
//     dq = (1/kappa) P dloss,    P = 1/C'' without what is in the span of 1 and of the losses,
//
// and the Hessian is G P G'/kappa: rows of G, less their regression on 1 and the losses with weights 1/C''. Where
// that does not settle, as there is no interior, the saddle point of all mixtures (`mixture_corners.hpp`) is the one
// of the ball, or kappa is next to 0. Then t is fixed: U at t is smooth in x (the regression is on 1 alone) and
// minimised for one t after the other, from one that spends little on, each GROWTH times the last, less where that
// spends the budget and the solution is not near yet.
#pragma once

#include "../elementary.hpp"
#include "../rows/burg.hpp"
#include "../rows/chi2.hpp"
#include "../rows/kl.hpp"
#include "mixture_corners.hpp"
#include "simplex_qp.hpp"

namespace drmdp {

// C of one entry, and its second derivative in q.
struct Bend {
    double cost, curvature;
};

// A divergence: its row model, whether no finite budget saturates it, and C.
struct KlMixtures {
    using Model = Kl;
    static constexpr bool ENDLESS = false;
    static Bend bend(double w, double q) {
        const double d = (q - w) / w;
        return {q > 0.0 ? w * ((1.0 + d) * log1p(d) - d) : w, 1.0 / q};
    }
};
struct BurgMixtures {
    using Model = Burg;
    static constexpr bool ENDLESS = true;
    static Bend bend(double w, double q) {
        const double d = (q - w) / w;
        return {w * (d - (d < -0.5 ? log(q / w) : log1p(d))), w / q / q};
    }
};
struct Chi2Mixtures {
    using Model = Chi2;
    static constexpr bool ENDLESS = false;
    static Bend bend(double w, double q) {
        const double d = (q - w) / w;
        return {0.5 * w * d * d, 1.0 / w};
    }
};

template <class Divergence>
class SmoothMixtures {
public:
    using Model = typename Divergence::Model;
    static double budget(double radius) { return Model::budget(radius); }

    SmoothMixtures(Index A, Index N)
        : N_(N), indptr_{0, N}, layout_(row_layout()), pairs_(layout_, order_, 0, 1), u_(to_lanes(N)),
          corners_(A, N), qp_(A), x_(A), trial_(A), target_(A), hessian_(A * A), d_(u_), rest_(A * d_.size()) {}

    // Nature's answer to a policy: game.q and U >= f(x); `guess` is a multiplier, to be kept if `fixed_`.
    double answer(MixtureGame& game, const std::vector<double>& policy, double tol, double guess) {
        game.mix(policy);
        const View<const double> loss(game.loss.data(), N_);
        const double top = *std::max_element(loss.begin(), loss.end());
        const double span = top - *std::min_element(loss.begin(), loss.end());
        tau_ = INFINITE, top_ = top, cost_ = 0.0;
        if (!(span > 1e-290 && game.budget > 0.0)) {
            game.q = game.w;
            if (fixed_) return tau_ = guess, top + game.budget / guess;
            return span > 0.0 ? dot(MixtureGame::view(game.w), MixtureGame::view(game.loss)) : top;
        }
        for (Index i = 0; i < N_; ++i) u_[i] = (loss[i] - top) / span;
        for (Index i = N_; i < Index(u_.size()); ++i) u_[i] = Model::PADDING;
        layout_.data = {game.w.data(), N_};
        const Pair<double> pair = pairs_.of(0, MixtureGame::view(u_));
        if (!fixed_ && !Divergence::ENDLESS && model_.response(pair, LARGEST).cost <= game.budget) {
            write(pair, LARGEST, game);  // losses that rounding tells apart share what they had
            return top;
        }
        const double first = guess < INFINITE ? guess * span : 0.0;
        const Answer at = fixed_ ? model_.response(pair, std::min(first, LARGEST))
                                 : multiplier(pair, game, first, tol / span);
        write(pair, at.t, game);
        tau_ = at.t / span, cost_ = at.cost;
        return top + span * (at.value + (game.budget - at.cost) / at.t);
    }
    // Look at it, brought into the ball; game.q stays the answer where t is fixed.
    double ask(MixtureGame& game, const std::vector<double>& policy, double tol, double guess) {
        const double bound = answer(game, policy, 0.01 * tol, guess);
        if (fixed_) free_q_ = game.q;
        if (cost_ > game.budget) pull(game, game.budget / cost_);
        game.note(std::min(bound, top_), bound < top_ ? tau_ : INFINITE, policy);
        if (fixed_) game.q = free_q_, game.price(game.q);
        return fixed_ ? bound : std::min(bound, top_);
    }

    // Close the game; returns the answers.
    int close(MixtureGame& game, double tol, View<const double>) {
        if (!(game.budget > 0.0)) return 0;
        x_ = game.best_x;
        int answers = descend(game, tol, game.tau, STEPS);
        if (!game.closed(tol)) answers += play(game, tol);
        std::fill(x_.begin(), x_.end(), 1.0 / double(game.n));
        double t = std::min(1.0, std::sqrt(game.budget)) / GROWTH, growth = GROWTH;
        while (!game.closed(tol) && t < LARGEST && growth > 1.001) {
            before_ = x_, fixed_ = true;
            answers += descend(game, tol, growth * t, FEW);
            fixed_ = false;
            if (cost_ < game.budget) {
                t *= growth;
                continue;
            }
            answers += descend(game, tol, growth * t, STEPS);
            x_ = before_, growth = std::sqrt(growth);
        }
        return answers;
    }

private:
    static constexpr int TRIALS = 60, STEPS = 60, FEW = 12;

    // The saddle point of all mixtures.
    int play(MixtureGame& game, double tol) {
        MixtureGame all = game;
        all.begin(0.0);
        corners_.ask(all, all.x);
        const int answers = corners_.close(all, tol, MixtureGame::view(all.w));
        reach(game, all.best_q);
        ask(game, all.best_x, tol, 0.0);
        return answers + 1;
    }

    // Look at the mixture between w and another one that is as near to that as the budget allows.
    void reach(MixtureGame& game, const std::vector<double>& far) {
        double least = 1e-18, most = 1.0;  // of w in it
        const auto costs = [&](double part) {
            for (Index i = 0; i < N_; ++i) game.q[i] = (1.0 - part) * far[i] + part * game.w[i];
            return cost(game);
        };
        if (costs(0.0) <= game.budget) return game.note_mixture(game.q);
        for (int k = 0; k < TRIALS; ++k) {
            const double middle = std::sqrt(least * most);
            (costs(middle) <= game.budget ? most : least) = middle;
        }
        costs(most);
        game.note_mixture(game.q);
    }

    // Newton's method from x_; returns the answers.
    int descend(MixtureGame& game, double tol, double t, int steps) {
        const Index n = game.n;
        int answers = 1;
        double value = ask(game, x_, tol, t);
        for (int step = 0; step < steps && tau_ < INFINITE && !game.closed(tol); ++step) {
            bend(game);
            if (!qp_.solve(MixtureGame::view(hessian_), MixtureGame::view(game.gain), MixtureGame::view(x_), n,
                           MixtureGame::view(target_)))
                break;
            double slope = 0.0, next = INFINITE;
            for (Index a = 0; a < n; ++a) slope += game.gain[a] * (target_[a] - x_[a]);
            predict(game);
            if (fixed_ && -slope * t < ROUGH) break;
            for (double part = 1.0; part > 1e-9; part *= 0.5, ++answers) {
                for (Index a = 0; a < n; ++a) trial_[a] = x_[a] + part * (target_[a] - x_[a]);
                next = ask(game, trial_, tol, fixed_ ? t : tau_);
                if (next <= value + 1e-4 * part * slope || game.closed(tol)) break;
            }
            if (!(next < value)) break;
            std::swap(x_, trial_), value = next;
        }
        return answers;
    }

    // The Hessian at the last answer.
    void bend(MixtureGame& game) {
        double mass = 0.0, mean = 0.0, wide = 0.0;
        for (Index i = 0; i < N_; ++i) {
            d_[i] = game.q[i] > 0.0 ? 1.0 / Divergence::bend(game.w[i], game.q[i]).curvature : 0.0;
            mass += d_[i], mean += d_[i] * game.loss[i];
        }
        mean /= mass;
        for (Index i = 0; i < N_; ++i) wide += d_[i] * (game.loss[i] - mean) * (game.loss[i] - mean);
        for (Index a = 0; a < game.n; ++a) {
            const View<double> own = game.row(a), rest(rest_.data() + a * game.stride, game.stride);
            double level = 0.0, along = 0.0;
            for (Index i = 0; i < N_; ++i)
                level += d_[i] * own[i], along += d_[i] * (game.loss[i] - mean) * own[i];
            level /= mass, along = wide > 0.0 && !fixed_ ? along / wide : 0.0;
            for (Index i = 0; i < N_; ++i)
                rest[i] = std::sqrt(d_[i]) * (own[i] - level - along * (game.loss[i] - mean));
            for (Index c = 0; c <= a; ++c)
                hessian_[a * Index(x_.size()) + c] = hessian_[c * Index(x_.size()) + a] =
                    tau_ * dot(rest, {rest_.data() + c * game.stride, game.stride});
        }
    }

    // Look at what the answer to the end of the step will be, which makes played actions equal: an answer that is
    // computed of the policy does so up to t times rounding.
    void predict(MixtureGame& game) {
        double mass = 0.0;
        for (Index i = 0; i < N_; ++i) {
            double by = 0.0;
            for (Index a = 0; a < game.n; ++a) by += rest_[a * game.stride + i] * (target_[a] - x_[a]);
            mass += game.q[i] = std::max(game.q[i] + tau_ * std::sqrt(d_[i]) * by, 0.0);
        }
        for (Index i = 0; i < N_; ++i) game.q[i] /= mass;
        const double paid = cost(game);
        if (!(mass > 0.0 && mass < INFINITE && paid < INFINITE)) return;
        if (paid > game.budget) pull(game, game.budget / paid);
        game.note_mixture(game.q);
    }

    double cost(const MixtureGame& game) const {
        double total = 0.0;
        for (Index i = 0; i < N_; ++i) total += Divergence::bend(game.w[i], game.q[i]).cost;
        return total;
    }

    // The weights of the kernels as the row of one pair.
    Layout<double> row_layout() const {
        static constexpr double one = 1.0;
        Layout<double> layout;
        layout.S = layout.A = layout.N = 1;
        layout.indptr = {indptr_, 2}, layout.weights = {&one, 1};
        return layout;
    }
    void write(const Pair<double>& pair, double t, MixtureGame& game) {
        const Beyond rest = model_.fill(pair.row(0), pair.u, t, order_, {game.q.data(), N_});
        if (!(rest.top > 0.0)) return;
        for (Index i = 0; i < N_; ++i)
            if (u_[i] == 0.0) return game.q[i] += rest.top, void();
    }
    static void pull(MixtureGame& game, double share) {
        for (Index i = 0; i < game.N; ++i) game.q[i] = share * game.q[i] + (1.0 - share) * game.w[i];
    }

    // t with C(q(t)) = B, up to what that costs the bounds.
    Answer multiplier(const Pair<double>& pair, const MixtureGame& game, double t, double tol) {
        const double B = game.budget, mean = dot({game.w.data(), game.stride}, pair.u);
        if (!(t > 0.0 && t < LARGEST)) {
            double wide = 0.0;
            for (Index i = 0; i < N_; ++i) wide += game.w[i] * (u_[i] - mean) * (u_[i] - mean);
            t = std::min(std::max(std::sqrt(2.0 * B / std::max(wide, 1e-300)), 1e-300), LARGEST);
        }
        double low = 0.0, high = INFINITE;
        Answer at;
        for (int trial = 0; trial < TRIALS; ++trial) {
            at = model_.response(pair, t);
            at.t = t;
            const bool cheap = at.cost < B;
            const double lost = cheap ? (B - at.cost) / t : (at.cost - B) / at.cost * (at.value - mean);
            if (lost <= tol || (t >= LARGEST && cheap)) break;
            (cheap ? low : high) = t;
            const double root = std::sqrt(at.cost), rise = t * at.slope;
            double next = rise > 0.0 ? t + 2.0 * root * (std::sqrt(B) - root) / rise : INFINITE;
            if (!(next > low && next < high))
                next = high < INFINITE ? std::sqrt(std::max(low, 1e-3 * high) * high) : 8.0 * t;
            next = std::min(next, LARGEST);
            if (next == t) break;
            t = next;
        }
        return at;
    }

    const Model model_{};
    Index N_;
    std::int64_t indptr_[2];
    Layout<double> layout_;
    Order order_;
    Pairs<Model, double> pairs_;
    std::vector<double> u_;
    static constexpr double ROUGH = 1e-3;
    bool fixed_ = false;              // the multiplier
    double top_ = 0.0, cost_ = 0.0;   // the largest loss, and the cost of the last answer
    double tau_ = INFINITE;  // multiplier of the last answer; infinite where the budget does not bind
    CornerMixtures<Corners::Any> corners_;
    SimplexQp qp_;
    std::vector<double> x_, trial_, target_, hessian_, free_q_, before_;
    std::vector<double> d_, rest_;  // 1/C'', and (n, N) rows of G without what is in the span, times its root
};

}  // namespace drmdp
