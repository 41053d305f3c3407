// Nature re-weights the N kernels. One pass over all of them gives G_ai = cost_a + y_ia.u; what is left is
// the saddle point of A x N numbers (`mixture_game.hpp`), with one mixture q for all actions of a state.
//
// Nature's move against one action may help another one, so that nothing is left out for its mean; an action
// whose least loss is above the largest loss of another one is. With a policy fixed, it is f(x).
//
// Memory: by_action[0] holds tau of the last answer, by_kernel holds q; where tau is 0 nature was not asked.
#pragma once

#include "../rows/pair.hpp"
#include "../stakes.hpp"
#include "mixture_game.hpp"

namespace drmdp {

template <class Answers, class Real>
class Mixtures {
public:
    Mixtures(const Layout<Real>& layout, const Point& point, const Extra&, Index start, Index stop)
        : layout_(layout), point_(point), state_(layout, start, stop), game_(layout.A, layout.weights),
          answers_(layout.A, layout.N), act_(layout.A), low_(layout.A) {}

    void update(Index s, double tol, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        double& tau = memory.by_action[s][0];
        gather(s, {});
        first_policy(found.policy[s]);
        game_.begin(tau);
        int rounds = 1;
        answers_.ask(game_, game_.x, tol, tau);
        if (!game_.closed(tol)) rounds += answers_.close(game_, tol, memory.by_kernel[s]);
        for (double& x : found.policy[s]) x = 0.0;
        for (Index k = 0; k < game_.n; ++k) found.policy[s][act_[k]] = game_.best_x[k];
        keep(s, game_.best_q, rounds, memory, found);
    }

    void evaluate(Index s, double tol, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        gather(s, found.policy[s]);
        double total = 0.0;
        for (Index k = 0; k < game_.n; ++k) total += game_.x[k] = found.policy[s][act_[k]];
        for (Index k = 0; k < game_.n; ++k) game_.x[k] /= total;
        game_.begin(memory.by_action[s][0]);
        answers_.ask(game_, game_.x, tol, game_.tau);
        game_.lower = dot(MixtureGame::view(game_.q), MixtureGame::view(game_.loss));
        keep(s, game_.q, 1, memory, found);
    }

private:
    static constexpr double KEPT = 1e-12;  // a smaller probability of the last policy does not count

    void keep(Index s, const std::vector<double>& q, int rounds, const Memory& memory,
              const Found& found) const {
        memory.by_action[s][0] = game_.tau;
        std::copy(q.begin(), q.begin() + game_.N, memory.by_kernel[s].begin());
        state_.close(s, game_.upper, game_.lower, rounds, found);
    }

    // The rows of G of the actions that may be played; of a policy, of those that are.
    void gather(Index s, View<const double> policy) {
        const Index A = layout_.A, N = layout_.N;
        game_.budget = Answers::budget(layout_.radius[s]);
        Index& n = game_.n = 0;
        double enough = INFINITE;
        for (Index a = 0; a < A; ++a) {
            const Index pair = s * A + a;
            if (!layout_.available[pair] || (!policy.empty() && !(policy[a] > 0.0))) continue;
            const View<double> G = game_.row(n), u = state_.of(a);
            double least = INFINITE, most = -INFINITE;
            for (Index i = 0; i < N; ++i) {
                const Row<Real> row = row_of(layout_, pair, i);
                G[i] = state_.cost[a] + row.scale * row_sum(row, [&](Part y, Index j) DRMDP_LAMBDA {
                           return y * load(u, j);
                       });
                least = std::min(least, G[i]), most = std::max(most, G[i]);
            }
            act_[n] = a, low_[n++] = least, enough = std::min(enough, most);
        }
        if (!policy.empty()) return;
        Index left = 0;
        for (Index k = 0; k < n; ++k) {
            if (!(low_[k] <= enough)) continue;
            if (left < k) std::copy(game_.row(k).begin(), game_.row(k).end(), game_.row(left).begin());
            act_[left++] = act_[k];
        }
        n = left;
    }

    // The last policy on what is left of it, else the action of least mean loss, which is best where nature
    // cannot move.
    void first_policy(View<const double> policy) {
        double total = 0.0;
        for (Index k = 0; k < game_.n; ++k) {
            const double x = policy[act_[k]];
            total += game_.x[k] = x > KEPT && x <= 1.0 ? x : 0.0;
        }
        if (total > 0.5 && game_.budget > 0.0) {
            for (Index k = 0; k < game_.n; ++k) game_.x[k] /= total;
            return;
        }
        game_.price(game_.w);
        const auto least = std::min_element(game_.gain.begin(), game_.gain.begin() + game_.n);
        std::fill(game_.x.begin(), game_.x.end(), 0.0);
        game_.x[least - game_.gain.begin()] = 1.0;
    }

    const Layout<Real>& layout_;
    const Point& point_;
    Stakes state_;
    MixtureGame game_;
    Answers answers_;
    std::vector<Index> act_;
    std::vector<double> low_;
};

}  // namespace drmdp
