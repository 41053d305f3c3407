// l1 of every order p > 1: masses m_ia are moved to the top from the lowest stakes on, by order infinity within a
// budget for each kernel.
//
//     F' = max { g :  g <= cost_a + V0_a + sum_i w_i g_ia(m_ia),   D_i = sum_a m_ia,
//                D_i <= theta/2 for every i,   or   sum_i w_i (2 D_i/theta)^p <= 1 },
//
// which is a game of `masses.hpp`: the segments of a row are its entries, with slopes -u. Members are the actions
// of the last policy, or those of the policy for the mean kernel alone, whose masses are the first mixture. A
// policy that is kept has one answer.
//
// Memory: by_row holds m, by_kernel the price of a distance in each kernel.
#pragma once

#include "../routines.hpp"
#include "../rows/l1.hpp"
#include "masses.hpp"
#include "shared_budget.hpp"

namespace drmdp {

template <class Real>
class L1Each {
public:
    L1Each(const Layout<Real>& layout, const Point& point, const Extra& extra, Index start, Index stop)
        : layout_(layout), averaged_(layout.averaged()), point_(point), state_(layout, start, stop),
          nature_(*this, layout, extra.order), game_(nature_, layout.weights),
          mean_(averaged_, point, extra, start, stop), mixtures_(layout.A), multipliers_(layout.A),
          head_(layout.A), points_(layout.N, layout.A, layout.A) {}

    void update(Index s, double tol, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        const View<double> policy = found.policy[s], masses = memory.by_row[s];
        const double theta = layout_.radius[s];
        const auto value = [&](Index a) { return state_.cost[a] + state_.nominal[a]; };
        Index cheapest = 0, lowest = 0;
        for (Index a = 1; a < layout_.A; ++a) {
            if (state_.cost[a] < state_.cost[cheapest]) cheapest = a;
            if (value(a) < value(lowest)) lowest = a;
        }
        const double bottom = value(lowest);
        if (!(theta > 0.0) || bottom >= -tol) {
            forget(memory, s);
            std::fill(policy.begin(), policy.end(), 0.0);
            policy[theta > 0.0 ? cheapest : lowest] = 1.0;
            close(s, theta > 0.0 ? 0.0 : bottom, bottom, 0, found);
            return;
        }
        const double size = std::min(0.5 * theta, 1.0), cap = -bottom / size;
        for (Index a = 0; a < layout_.A; ++a) head_[a] = (value(a) - bottom) / size;
        nature_.open(s, 0.5 * theta, View<const double>(head_.data(), layout_.A));
        if (!is_known(policy)) begin(s, theta, tol, policy, masses);
        std::fill(game_.mixture.begin(), game_.mixture.end(), 0.0);
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(policy[a] > PLAYED && head_[a] < cap)) continue;
            game_.x[nature_.size()] = policy[a];
            nature_.enlist(a);
            for (Index i = 0; i < layout_.N; ++i) {
                const double m = masses[a * layout_.N + i] / size;
                game_.mixture[i * layout_.A + nature_.size() - 1] = m >= 0.0 && m < INFINITE ? m : 0.0;
            }
        }
        if (nature_.size() == 0) game_.x[0] = 1.0, nature_.enlist(lowest);
        game_.price = memory.by_action[s][0];
        game_.solve(tol / size, cap);
        forget(memory, s);
        memory.by_action[s][0] = game_.price;
        std::fill(policy.begin(), policy.end(), 0.0);
        for (Index k = 0; k < nature_.size(); ++k) {
            if (game_.upper < cap) policy[nature_.action(k)] = game_.x[k];
            for (Index i = 0; i < layout_.N; ++i)
                masses[nature_.action(k) * layout_.N + i] = size * game_.mixture[i * layout_.A + k];
        }
        if (!(game_.upper < cap)) policy[cheapest] = 1.0;
        else for (Index i = 0; i < layout_.N; ++i) memory.by_kernel[s][i] = 0.5 * game_.prices[i];
        close(s, bottom + size * std::min(game_.upper, cap), bottom + size * std::max(game_.lower, 0.0),
              game_.passes, found);
    }

    void evaluate(Index s, double, const Memory& memory, const Found& found) {
        if (!state_.open(layout_, point_, s)) return;
        const View<double> policy = found.policy[s], masses = memory.by_row[s];
        const double theta = layout_.radius[s], size = std::min(0.5 * theta, 1.0);
        double still = 0.0, price = memory.by_action[s][0];
        forget(memory, s);
        std::fill(head_.begin(), head_.end(), 0.0);
        nature_.open(s, 0.5 * theta, View<const double>(head_.data(), layout_.A));
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(policy[a] > 0.0)) continue;
            still += policy[a] * (state_.cost[a] + state_.nominal[a]);
            game_.x[nature_.size()] = policy[a];
            nature_.enlist(a);
        }
        double upper = still, lower = still;
        if (theta > 0.0) {
            upper += size * nature_.answer(game_.x, price, points_);
            lower += size * nature_.attained(game_.x, points_.amounts);
            for (Index k = 0; k < nature_.size(); ++k)
                for (Index i = 0; i < layout_.N; ++i)
                    masses[nature_.action(k) * layout_.N + i] = size * points_.amount(i)[k];
            for (Index i = 0; i < layout_.N; ++i) memory.by_kernel[s][i] = 0.5 * points_.prices[i];
        }
        memory.by_action[s][0] = price;
        close(s, upper, lower, 1, found);
    }

    // The entries of an action below the top, lowest stakes first; what differs by rounding is equal.
    void segments(Index s, Index a, std::vector<Segment>& out) {
        const Index K = layout_.length(s * layout_.A + a);
        const View<const double> u = state_.of(a);
        rank(u, K, order_);
        for (Index j : order_) {
            if (!(u[j] < 0.0)) break;
            const bool same = !out.empty() && out.back().slope + u[j] <= FLAT;
            out.push_back({j, 1.0, same ? out.back().slope : -u[j]});
        }
    }

private:
    static constexpr double PLAYED = 1e-12, ROUGH = 1e-4;

    bool is_known(View<const double> policy) const {
        double total = 0.0;
        for (Index a = 0; a < layout_.A; ++a)
            if (policy[a] > PLAYED && policy[a] <= 1.0 && state_.cost[a] + state_.nominal[a] < 0.0)
                total += policy[a];
        return total > 0.5;
    }

    static void forget(const Memory& memory, Index s) {
        for (double& m : memory.by_row[s]) m = 0.0;
        for (double& price : memory.by_kernel[s]) price = 0.0;
        for (double& price : memory.by_action[s]) price = 0.0;
    }

    // The policy for the mean kernel, and its masses in every kernel.
    void begin(Index s, double theta, double tol, View<double> policy, View<double> masses) {
        const Index A = layout_.A, N = layout_.N;
        for (Index a = 0; a < A; ++a) multipliers_[a] = 0.0, mixtures_[a] = {};
        mean_.begin(s, theta, std::max(tol, ROUGH),
                    {{multipliers_.data(), A}, {mixtures_.data(), A}, policy});
        for (Index a = 0; a < A; ++a) {
            const double mass = policy[a] > 0.0 ? moved(s, a, mixtures_[a]) : 0.0;
            std::fill_n(masses.begin() + a * N, N, mass);
        }
    }

    double moved(Index s, Index a, const Mixture& mixture) {
        const Row<double> row = layout_.mean_row(s * layout_.A + a);
        const View<const double> u = state_.of(a);
        const auto below = [&](double t) {
            double mass = 0.0;
            for (Index j = 0; j < row.size; ++j) mass += t > 0.0 && u[j] < -2.0 / t ? row[j] : 0.0;
            return mass;
        };
        return (1.0 - mixture.share) * below(mixture.t1) + mixture.share * below(mixture.t2);
    }

    void close(Index s, double upper, double lower, int passes, const Found& found) const {
        found.upper[s] = state_.base + state_.unit * upper;
        found.lower[s] = state_.base + state_.unit * lower;
        found.passes[s] = passes;
    }

    const Layout<Real>& layout_;
    Layout<double> averaged_;
    const Point& point_;
    Stakes state_;
    Masses<L1Each, Real> nature_;
    PolyhedralGame<Masses<L1Each, Real>> game_;
    SharedBudget<L1, double> mean_;
    std::vector<Mixture> mixtures_;
    std::vector<double> multipliers_, head_;
    Points points_;
    std::vector<Index> order_;
};

// Nature's rows: masses taken from the lowest stakes on and brought to the top, in one entry behind the others.
template <class Real>
class MassWriter {
public:
    MassWriter(const Response<Real>& asked)
        : asked_(asked), state_(asked.layout, asked.start, asked.stop) {}

    void write(Index s) {
        if (!state_.open(asked_.layout, asked_.point, s)) return;
        for (Index a = 0; a < asked_.layout.A; ++a)
            if (asked_.rows.weights[s][a] > 0.0) write(s, a);
    }

private:
    void write(Index s, Index a) {
        const Layout<Real>& layout = asked_.layout;
        const Rows& rows = asked_.rows;
        const Index pair = s * layout.A + a, K = layout.length(pair), at = rows.entry_at[pair];
        const View<double> u = state_.of(a);
        rank(u, K, order_);
        mass_.assign(K + 1, 0.0);
        for (Index i = 0; i < layout.N; ++i) {
            Row<Real> row = layout.row(pair, i);
            if (sizeof(Real) == 4) row.scale = scale_of(row);
            const double x = rows.weights[s][a] * layout.weights[i];
            double left = rows.share_of(s, i) * asked_.memory.by_row[s][a * layout.N + i];
            for (Index j : order_) {
                const double take = left > 0.0 ? std::min(left, row[j]) : 0.0;
                left -= take;
                mass_[j] += x * (row[j] - take), mass_[K] += x * take;
            }
        }
        for (Index j = 0; j < K; ++j) rows.states[at + j] = layout.indices[layout.first(pair) + j];
        rows.states[at + K] = top_state(layout, asked_.point, pair, u);
        for (Index j = 0; j <= K; ++j) rows.mass.set(at + j, mass_[j]);
    }

    const Response<Real>& asked_;
    Stakes state_;
    std::vector<double> mass_;
    std::vector<Index> order_;
};

}  // namespace drmdp
