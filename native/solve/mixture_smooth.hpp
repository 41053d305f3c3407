// Mixtures within a divergence of w: kl, burg, chi2.
//
// Nature's answer is that of one row (`rows/`) with y = w and stakes (loss - top)/span. A multiplier t with
// C(q(t)) = B is found by Newton's method on sqrt C = sqrt B; at any t
//
//     U = V + (B - C)/t >= f,   and q(t), pulled towards w by B/C where C > B, is in the ball.
//
// Where the answer to the last policy does not close the state, an interior-point method on nature's side does,
//
//     max g   such that   s_a = G_a.q - g >= 0 (dual x_a),  q >= 0 (dual v_i),  C(q) + r = B, r >= 0 (dual m),
//             sum q = 1 (dual h).
//
// The perturbed conditions x_a s_a = v_i q_i = m r = sigma, m C' - G'x - v + h = 0, sum x = 1 are solved by
// Newton steps that keep all of these positive; C(q) + r = B holds in the end only, or the curved boundary
// would allow short steps only. dq and dv are eliminated, d_i = m C''_i + v_i/q_i being diagonal; what is left
// are the actions, m, h and g. Its x and q are judged like any others. What it leaves open has no interior: there
// the saddle point of all mixtures (`mixture_corners.hpp`) is the one of the ball, or near it.
#pragma once

#include "../elementary.hpp"
#include "../rows/burg.hpp"
#include "../rows/chi2.hpp"
#include "../rows/kl.hpp"
#include "mixture_corners.hpp"
#include "elimination.hpp"
#include "mixture_game.hpp"

namespace drmdp {

// C of one entry, and its derivatives in q.
struct Bend {
    double cost, slope, curvature;
};

// A divergence: its row model, whether no finite budget saturates it, and C.
struct KlMixtures {
    using Model = Kl;
    static constexpr bool ENDLESS = false;
    static Bend bend(double w, double q) {
        const double d = (q - w) / w;
        return {q > 0.0 ? w * ((1.0 + d) * log1p(d) - d) : w, log(q / w), 1.0 / q};
    }
};
struct BurgMixtures {
    using Model = Burg;
    static constexpr bool ENDLESS = true;
    static Bend bend(double w, double q) {
        const double d = (q - w) / w;
        return {w * (d - log1p(d)), (q - w) / q, w / q / q};
    }
};
struct Chi2Mixtures {
    using Model = Chi2;
    static constexpr bool ENDLESS = false;
    static Bend bend(double w, double q) {
        const double d = (q - w) / w;
        return {0.5 * w * d * d, d, 1.0 / w};
    }
};

template <class Divergence>
class SmoothMixtures {
public:
    using Model = typename Divergence::Model;
    static constexpr bool SMOOTH = true;
    static double budget(double radius) { return Model::budget(radius); }

    SmoothMixtures(Index A, Index N)
        : N_(N), indptr_{0, N}, one_(LANES), u_(to_lanes(N)),
          room_(Model::ROOM.stakes * to_lanes(N) + Model::ROOM.rows * LANES), known_(Model::KNOWN * LANES),
          x_(A), corners_(A, N), v_(u_), inverse_(u_), right_(u_), fall_(u_), ones_(u_), scaled_(u_),
          dq_(u_), system_((A + 3) * (A + 4)) {
        std::fill_n(ones_.begin(), N, 1.0);
        one_[0] = 1.0;
        layout_.S = layout_.A = layout_.N = 1;
        layout_.indptr = {indptr_, 2}, layout_.weights = {one_.data(), 1};
    }

    // Nature's answer to a policy: game.q, in the ball, and U >= f(x); `guess` is a multiplier.
    double answer(MixtureGame& game, const std::vector<double>& policy, double tol, double guess) {
        game.mix(policy);
        const View<const double> loss(game.loss.data(), N_);
        const double top = *std::max_element(loss.begin(), loss.end());
        const double span = top - *std::min_element(loss.begin(), loss.end());
        tau_ = INFINITE;
        if (!(span > 1e-290 && game.budget > 0.0)) {
            game.q = game.w;
            return span > 0.0 ? dot(MixtureGame::view(game.w), MixtureGame::view(game.loss)) : top;
        }
        for (Index i = 0; i < N_; ++i) u_[i] = (loss[i] - top) / span;
        for (Index i = N_; i < Index(u_.size()); ++i) u_[i] = Model::PADDING;
        const Pair<double> pair = row_of(game);
        if (!Divergence::ENDLESS && model_.saturated(pair).cost <= game.budget) {
            write(pair, INFINITE, game);
            return top;
        }
        const double first = guess < INFINITE ? guess * span : 0.0;
        const Answer at = multiplier(pair, game, first, tol / span);
        write(pair, at.t, game);
        if (at.cost > game.budget) pull(game, game.budget / at.cost);
        tau_ = at.t / span;
        return std::min(top, top + span * (at.value + (game.budget - at.cost) / at.t));
    }
    // What the last answer had for a multiplier; infinite where the budget does not bind.
    double multiplier() const { return tau_; }

    // An answer that is looked at.
    double ask(MixtureGame& game, const std::vector<double>& policy, double tol, double guess) {
        answered_ = answer(game, policy, 0.01 * tol, guess);
        game.note(answered_, tau_, policy);
        return answered_;
    }

    // Close the game; returns the answers.
    int close(MixtureGame& game, double tol, View<const double>) {
        if (!(game.budget > 0.0)) return 0;
        const int answers = follow(game, tol);
        return game.closed(tol) ? answers : answers + play(game, tol);
    }

private:
    static constexpr int TRIALS = 60, STEPS = 150;
    static constexpr double INSIDE = 0.95;   // of the way to the boundary

    // The saddle point of all mixtures.
    int play(MixtureGame& game, double tol) {
        MixtureGame all = game;
        all.begin(0.0);
        all.note(corners_.answer(all, all.x, tol), INFINITE, all.x);
        const int answers = corners_.close(all, tol, {all.w.data(), N_});
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

    // The interior-point method.
    int follow(MixtureGame& game, double tol) {
        start(game);
        for (int k = 0; k < STEPS; ++k) {
            assemble(game);
            const Index n = game.n, m = n + 4;
            if (!eliminate({system_.data(), (n + 3) * m}, n + 3, m)) break;
            bool finite = true;
            for (Index r = 0; r < n + 3; ++r) finite = finite && std::isfinite(system_[r * m + n + 3]);
            if (!finite) break;
            const double part = advance(game);
            if (!(part > 1e-12 && m_ > 0.0)) break;
            const double left = complementarity(game);
            sigma_ = std::min(sigma_, left) *
                     (part > 0.9 ? 0.1 : part > 0.4 ? 0.4 : part > 0.1 ? 0.9 : 2.0);
            if (std::max(left, sigma_) * double(n + N_ + 1) < 0.02 * tol) break;
        }
        return judge(game, tol);
    }

    Pair<double> row_of(const MixtureGame& game) {
        layout_.data = layout_.mean = {game.w.data(), N_};
        Pair<double> pair;
        pair.layout = &layout_, pair.order = &order_, pair.weights = {one_.data(), LANES};
        pair.u = MixtureGame::view(u_), pair.room = MixtureGame::view(room_);
        pair.known = MixtureGame::view(known_);
        return pair;
    }
    void write(const Pair<double>& pair, double t, MixtureGame& game) {
        const Beyond rest = model_.fill(pair.row(0), pair.u, t, order_, {game.q.data(), N_});
        if (!(rest.top > 0.0)) return;
        for (Index i = 0; i < N_; ++i)
            if (u_[i] == 0.0) return game.q[i] += rest.top, void();
    }
    static void pull(MixtureGame& game, double share) {
        for (Index i = 0; i < game.N; ++i) game.q[i] = game.w[i] + share * (game.q[i] - game.w[i]);
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

    // ---- the interior-point method --------------------------------------------------------------

    void start(MixtureGame& game) {
        game.q = game.w;
        g0_ = game.price(game.q) - 0.1, sigma_ = 0.01, h_ = 0.0;
        r_ = game.budget, m_ = sigma_ / game.budget;
        for (Index i = 0; i < N_; ++i) v_[i] = sigma_ / game.q[i];
        std::fill_n(x_.begin(), game.n, 1.0 / double(game.n));
    }

    double cost(const MixtureGame& game) const {
        double total = 0.0;
        for (Index i = 0; i < N_; ++i) total += Divergence::bend(game.w[i], game.q[i]).cost;
        return total;
    }

    // Row r of the conditions on q: G_a, -C', 1.
    View<const double> left(MixtureGame& game, Index r) {
        return r < game.n ? game.row(r) : MixtureGame::view(r == game.n ? fall_ : ones_);
    }

    void assemble(MixtureGame& game) {
        const Index n = game.n, m = n + 4;
        const auto at = [&](Index r, Index c) -> double& { return system_[r * m + c]; };
        double total = 0.0, played = 0.0;
        for (Index i = 0; i < N_; ++i) {
            const Bend bend = Divergence::bend(game.w[i], game.q[i]);
            fall_[i] = -bend.slope;
            inverse_[i] = 1.0 / (m_ * bend.curvature + v_[i] / game.q[i]);
            right_[i] = sigma_ / game.q[i] - m_ * bend.slope - h_;
            for (Index a = 0; a < n; ++a) right_[i] += x_[a] * game.row(a)[i];
            total += game.q[i];
        }
        for (Index r = 0; r < n + 2; ++r) {
            const View<const double> own = left(game, r);
            for (Index i = 0; i < N_; ++i) scaled_[i] = own[i] * inverse_[i];
            const View<const double> scaled = MixtureGame::view(scaled_);
            for (Index c = 0; c <= r; ++c) at(c, r) = at(r, c) = dot(scaled, left(game, c));
            at(r, n + 2) = r < n ? -1.0 : 0.0, at(r, n + 3) = -dot(scaled, MixtureGame::view(right_));
        }
        for (Index r = 0; r < n + 2; ++r) at(r, n + 1) = -at(r, n + 1);
        game.price(game.q);
        for (Index a = 0; a < n; ++a) {
            at(a, a) += (game.gain[a] - g0_) / x_[a];
            at(a, n + 3) += sigma_ / x_[a] - (game.gain[a] - g0_);
            played += x_[a];
        }
        at(n, n) += r_ / m_, at(n, n + 3) += sigma_ / m_ - game.budget + cost(game);
        at(n + 1, n + 3) += 1.0 - total;
        for (Index c = 0; c < n + 3; ++c) at(n + 2, c) = c < n ? 1.0 : 0.0;
        at(n + 2, n + 3) = 1.0 - played;
    }

    // Take the step that the system found, as far as everything stays positive; which part of it.
    double advance(MixtureGame& game) {
        const Index n = game.n, m = n + 4;
        const auto d = [&](Index r) { return system_[r * m + n + 3]; };
        double part = 1.0;
        const auto stay = [&](double own, double by) {
            if (by < 0.0) part = std::min(part, -INSIDE * own / by);
        };
        const auto dv = [&](Index i) { return (sigma_ - v_[i] * dq_[i]) / game.q[i] - v_[i]; };
        double rise = 0.0;
        for (Index i = 0; i < N_; ++i) {
            double own = right_[i] + fall_[i] * d(n) - d(n + 1);
            for (Index a = 0; a < n; ++a) own += game.row(a)[i] * d(a);
            dq_[i] = own * inverse_[i], rise -= fall_[i] * dq_[i];
            stay(game.q[i], dq_[i]), stay(v_[i], dv(i));
        }
        for (Index a = 0; a < n; ++a) {
            stay(x_[a], d(a));
            stay(game.gain[a] - g0_, dot(game.row(a), MixtureGame::view(dq_)) - d(n + 2));
        }
        stay(m_, d(n));
        const double more = game.budget - cost(game) - r_ - rise;
        stay(r_, more);
        for (Index i = 0; i < N_; ++i) v_[i] += part * dv(i), game.q[i] += part * dq_[i];
        for (Index a = 0; a < n; ++a) x_[a] += part * d(a);
        m_ += part * d(n), h_ += part * d(n + 1), g0_ += part * d(n + 2), r_ += part * more;
        return part;
    }

    // The mean of the products that shall all be sigma.
    double complementarity(MixtureGame& game) {
        game.price(game.q);
        double total = m_ * r_ + dot(MixtureGame::view(v_), MixtureGame::view(game.q));
        for (Index a = 0; a < game.n; ++a) total += x_[a] * (game.gain[a] - g0_);
        return total / double(game.n + N_ + 1);
    }

    // What the x and the q that were found are worth.
    int judge(MixtureGame& game, double tol) {
        double mass = 0.0, total = 0.0;
        for (Index i = 0; i < N_; ++i) mass += game.q[i];
        for (Index i = 0; i < N_; ++i) game.q[i] /= mass;
        const double paid = cost(game);
        pull(game, paid > game.budget ? game.budget / paid : 1.0);
        game.note_mixture(game.q);
        for (Index a = 0; a < game.n; ++a) {
            if (!(x_[a] > 1e-12)) x_[a] = 0.0;
            total += x_[a];
        }
        if (!(total > 0.5)) return 0;
        for (Index a = 0; a < game.n; ++a) x_[a] /= total;
        ask(game, x_, tol, 0.0);
        return 1;
    }

    const Model model_{};
    Index N_;
    std::int64_t indptr_[2];
    Layout<double> layout_;
    Order order_;
    std::vector<double> one_, u_, room_, known_;
    double tau_ = INFINITE, answered_ = INFINITE;
    std::vector<double> x_;
    CornerMixtures<Corners::Any> corners_;
    double m_ = 0.0, h_ = 0.0, g0_ = 0.0, r_ = 0.0, sigma_ = 0.0;
    std::vector<double> v_, inverse_, right_, fall_, ones_, scaled_, dq_, system_;
};

}  // namespace drmdp
