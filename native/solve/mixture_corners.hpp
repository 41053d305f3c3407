// Mixtures whose balls have corners: total variation, conditional value at risk, any.
//
// tv gives w_i + B to the largest loss and w_i to the next ones until 1 is spent, cvar gives w_i/level to the
// largest losses, any gives all to the largest. So q_i is mixed from few amounts, {0, w_i, w_i + B} or
// {0, most_i}, and the saddle point over some actions is a linear program with a group for each kernel
// (`master.hpp`) whose columns are all known: a row for sum q <= 1 (gains are not negative after a
// shift), for tv one more for the mass that is added. An action whose gain against the mixture is below
// the value joins, and the program begins anew from the mixture. Finite: actions only join.
#pragma once

#include "../sorting.hpp"
#include "master.hpp"
#include "mixture_game.hpp"

namespace drmdp {

enum class Corners { Tv, Cvar, Any };

template <Corners KIND>
class CornerMixtures {
public:
    static double budget(double radius) { return radius; }

    CornerMixtures(Index A, Index N)
        : master_(A + BUDGETS, N, 1), inside_(A), x_(A) {
        members_.reserve(A);
    }

    // Look at nature's answer to a policy: game.q, and f(x).
    void ask(MixtureGame& game, const std::vector<double>& policy, double = 0.0, double = 0.0) {
        game.mix(policy);
        rank(MixtureGame::view(game.loss), game.N, order_);
        std::fill(game.q.begin(), game.q.end(), 0.0);
        const Index top = order_.back();
        double left = 1.0;
        for (Index n = game.N - 1; n >= 0 && left > 0.0; --n) {
            const Index i = order_[n];
            game.q[i] = std::min(left, KIND == Corners::Tv && i != top ? game.w[i] : most(game, i));
            left -= game.q[i];
        }
        game.q[top] += std::max(left, 0.0);
        game.note(dot(MixtureGame::view(game.q), MixtureGame::view(game.loss)), INFINITE, policy);
    }

    // Close the game from game.x and the last mixture, if that is one; returns how many programs were solved.
    int close(MixtureGame& game, double tol, View<const double> last) {
        std::fill(inside_.begin(), inside_.end(), char(0));
        members_.clear();
        for (Index k = 0; k < game.n; ++k)
            if (game.x[k] > 0.0) join(k);
        game.q = game.best_q;
        if (members_.size() > 1 && is_allowed(game, last)) std::copy(last.begin(), last.end(), game.q.begin());
        game.note_mixture(game.q);
        int rounds = 0, stage = 0;
        while (!game.closed(tol) && rounds < ROUNDS) {
            if (rounds > 0 || members_.size() == 1) {
                if (!others_join(game) && rounds > 0) {
                    if (++stage == STAGES) break;
                    if (stage == 1) game.q = game.w;
                }
            }
            ++rounds;
            if (!solve(game, stage == 0 ? 1e-3 * tol : stage == 1 ? COARSE : 0.0)) break;
            mixture_ = game.q;
            ask(game, x_);
            game.q = mixture_;
            game.note_mixture(game.q);
        }
        return rounds;
    }

private:
    static constexpr Index BUDGETS = KIND == Corners::Tv ? 2 : 1;
    // Stages: heads are hardly raised; raised so much that ties hold up nothing, from the weights on; not at
    // all, and everything that gains enters.
    static constexpr int ROUNDS = 200, NEW = 4, STAGES = 3;
    static constexpr double COARSE = 1e-7;

    static double most(const MixtureGame& game, Index i) {
        if (KIND == Corners::Tv) return std::min(game.w[i] + game.budget, 1.0);
        if (KIND == Corners::Cvar && game.budget > 0.0) return std::min(game.w[i] / game.budget, 1.0);
        return 1.0;
    }

    void join(Index k) { members_.push_back(k), inside_[k] = 1; }

    // Actions below the value of the members join, the lowest ones; game.gain is that of the mixture.
    bool others_join(const MixtureGame& game) {
        double level = INFINITE;
        for (Index k : members_) level = std::min(level, game.gain[k]);
        bool some = false;
        for (int times = 0; times < NEW; ++times) {
            Index lowest = -1;
            for (Index k = 0; k < game.n; ++k)
                if (!inside_[k] && game.gain[k] < level && (lowest < 0 || game.gain[k] < game.gain[lowest]))
                    lowest = k;
            if (lowest < 0) break;
            join(lowest);
            some = true;
        }
        return some;
    }

    bool is_allowed(const MixtureGame& game, View<const double> q) const {
        double total = 0.0, added = 0.0;
        for (Index i = 0; i < game.N; ++i) {
            if (!(q[i] >= 0.0 && q[i] <= (1.0 + 1e-12) * most(game, i))) return false;
            total += q[i], added += std::max(q[i] - game.w[i], 0.0);
        }
        return std::fabs(total - 1.0) < 1e-9 && !(KIND == Corners::Tv && added > game.budget * (1.0 + 1e-12));
    }

    void put(MixtureGame& game, Index i, double amount, double shift) {
        const View<double> column = master_.add(i);
        const double moved = amount - game.w[i];
        master_.owned(master_.size() - 1)[0] = amount;
        column[0] = KIND == Corners::Tv ? moved : amount;
        if (KIND == Corners::Tv) column[1] = std::max(moved, 0.0);
        for (Index k = 0; k < Index(members_.size()); ++k)
            column[BUDGETS + k] = -amount * (game.row(members_[k])[i] - shift);
    }

    // The saddle point of the members from the mixture game.q: x_, and game.q.
    bool solve(MixtureGame& game, double tie) {
        const Index N = game.N, n = Index(members_.size());
        double shift = INFINITE, used = 0.0, added = 0.0;
        for (Index k : members_)
            for (Index i = 0; i < N; ++i) shift = std::min(shift, game.row(k)[i]);
        master_.begin(BUDGETS, n);
        for (Index k = 0; k < n; ++k) master_.set_head(k, shift);
        for (Index i = 0; i < N; ++i) {
            const double at = std::min(std::max(game.q[i], 0.0), 1.0);
            put(game, i, at, shift);
            used += KIND == Corners::Tv ? at - game.w[i] : at;
            added += std::max(at - game.w[i], 0.0);
            if (at != 0.0) put(game, i, 0.0, shift);
            if (KIND == Corners::Tv && at != game.w[i]) put(game, i, game.w[i], shift);
            if (at != most(game, i)) put(game, i, most(game, i), shift);
        }
        master_.set_budget(0, std::max(KIND == Corners::Tv ? 0.0 : 1.0, used));
        if (KIND == Corners::Tv) master_.set_budget(1, std::max(game.budget, added));
        if (!master_.start(tie) || !master_.solve(tie / double(N))) return false;
        std::fill(x_.begin(), x_.end(), 0.0);
        double played = 0.0;
        for (Index k = 0; k < n; ++k) played += std::max(master_.price(BUDGETS + k), 0.0);
        if (!(played > 0.5)) return false;
        for (Index k = 0; k < n; ++k) x_[members_[k]] = std::max(master_.price(BUDGETS + k), 0.0) / played;
        collect(game);
        return true;
    }

    // The mixture that the program found, its shares clipped and brought to sums of 1.
    void collect(MixtureGame& game) {
        total_.assign(game.N, 0.0);
        std::fill(game.q.begin(), game.q.end(), 0.0);
        for (Index c = 0; c < master_.size(); ++c) {
            const double share = master_.share(c);
            total_[master_.group(c)] += share, game.q[master_.group(c)] += share * master_.owned(c)[0];
        }
        double sum = 0.0;
        for (Index i = 0; i < game.N; ++i) sum += game.q[i] /= total_[i];
        for (Index i = 0; i < game.N && sum < 1.0; ++i) {
            const double room = KIND == Corners::Tv ? game.w[i] : most(game, i);
            const double more = std::min(1.0 - sum, std::max(room - game.q[i], 0.0));
            game.q[i] += more, sum += more;
        }
        for (Index i = 0; i < game.N; ++i) game.q[i] /= sum;
    }

    Master master_;
    std::vector<Index> members_, order_;
    std::vector<char> inside_;
    std::vector<double> x_, total_, mixture_;
};

}  // namespace drmdp
