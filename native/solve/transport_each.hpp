// Transport with a budget for each kernel: every kernel spends at most theta, on all actions of a state.
//
// What row (i, a) gains of an amount that is spent on it is concave and piecewise linear: the steps of the hulls of
// its sources (`rows/transport.hpp`) in the order of their slopes 1/t, which all kernels share. So this is a game of
// `masses.hpp`. Members are the actions of the last policy, or of the policy for the mean kernel alone.
//
// Memory: by_action holds the policy behind U, by_kernel 1/price of each kernel's budget, so that t_ia is that
// times x_a, and by_row for every action and kernel the two answers that nature mixes and the share of the
// second: midway between the turns of steps, and steps whose turns differ by rounding only are one.
#pragma once

#include "../rows/transport.hpp"
#include "masses.hpp"
#include "shared_budget.hpp"

namespace drmdp {

template <class Real>
class TransportEach {
public:
    TransportEach(const Layout<Real>& layout, const Point& point, const Extra& extra, Index start, Index stop)
        : layout_(layout), averaged_(layout.averaged()), point_(point), state_(layout, start, stop),
          hulls_(layout, point, extra, start, stop), nearest_(extra.free ? NEAR : 0.0),
          nature_(*this, layout, INFINITE), game_(nature_, layout.weights),
          mean_(averaged_, point, extra, start, stop), mixtures_(layout.A), multipliers_(layout.A),
          head_(layout.A), points_(layout.N, layout.A, layout.A) {}

    void update(Index s, double tol, const Memory& memory, const Found& found) {
        if (!open(s)) return;
        const View<double> policy = found.policy[s];
        const View<Mixture> mixtures = told(memory, s);
        const double theta = layout_.radius[s], size = std::min(theta, 1.0);
        const auto value = [&](Index a) { return state_.cost[a] + state_.nominal[a]; };
        Index cheapest = 0, lowest = 0;
        for (Index a = 1; a < layout_.A; ++a) {
            if (state_.cost[a] < state_.cost[cheapest]) cheapest = a;
            if (value(a) < value(lowest)) lowest = a;
        }
        const double bottom = value(lowest), cap = -bottom / size;
        if (!(theta > 0.0) || bottom >= -tol) {
            forget(memory, s);
            std::fill(policy.begin(), policy.end(), 0.0);
            policy[theta > 0.0 ? cheapest : lowest] = 1.0;
            close(s, theta > 0.0 ? 0.0 : bottom, bottom, 0, found);
            return;
        }
        for (Index a = 0; a < layout_.A; ++a) head_[a] = (value(a) - bottom) / size;
        nature_.open(s, theta, View<const double>(head_.data(), layout_.A));
        if (!is_known(policy)) begin(s, theta, tol, policy, mixtures);
        for (Index a = 0; a < layout_.A; ++a)
            if (policy[a] > PLAYED && head_[a] < cap) nature_.enlist(a);
        recall(mixtures);
        game_.solve(tol / size, cap);
        const bool capped = !(game_.upper < cap);
        forget(memory, s);
        std::fill(policy.begin(), policy.end(), 0.0);
        if (capped) policy[cheapest] = 1.0;
        for (Index k = 0; k < nature_.size(); ++k)
            if (!capped) policy[nature_.action(k)] = memory.by_action[s][nature_.action(k)] = game_.x[k];
        keep(memory, s, game_.mixture, game_.prices);
        close(s, bottom + size * std::min(game_.upper, cap), bottom + size * std::max(game_.lower, 0.0),
              game_.passes, found);
    }

    void evaluate(Index s, double, const Memory& memory, const Found& found) {
        if (!open(s)) return;
        const View<double> policy = found.policy[s];
        const double theta = layout_.radius[s];
        double still = 0.0, price = 0.0;
        forget(memory, s);
        std::fill(head_.begin(), head_.end(), 0.0);
        nature_.open(s, theta, View<const double>(head_.data(), layout_.A));
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(policy[a] > 0.0)) continue;
            memory.by_action[s][a] = policy[a];
            still += policy[a] * (state_.cost[a] + state_.nominal[a]);
            if (!(theta > 0.0)) continue;
            game_.x[nature_.size()] = policy[a];
            nature_.enlist(a);
        }
        if (nature_.size() > 0) {
            still += std::min(theta, 1.0) * nature_.answer(game_.x, price, points_);
            keep(memory, s, points_.amounts, points_.prices);
        }
        close(s, still, still, 1, found);
    }

    // The steps of the hulls of an action's sources.
    void segments(Index s, Index a, std::vector<Segment>& out) {
        const Row<double> row = layout_.mean_row(s * layout_.A + a);
        const Index first = layout_.first(s * layout_.A + a);
        steps_.clear(), turns_.clear();
        for (Index j = 0; j < row.size; ++j) {
            if (!(row[j] > 0.0)) continue;
            const View<const Vertex> hull = hulls_.of(first + j, state_.of(a).part(0, row.size));
            for (Index q = 1; q < hull.size(); ++q) {
                turns_.push_back(hull[q].turn);
                steps_.push_back({j, hull[q].far - hull[q - 1].far, 1.0 / hull[q].turn});
            }
        }
        rank({turns_.data(), Index(turns_.size())}, Index(turns_.size()), order_);
        for (Index q : order_) out.push_back(steps_[q]);
    }

private:
    static constexpr double PLAYED = 1e-12, ROUGH = 1e-4, APART = 8e-10, NOISE = 512 * EPSILON;

    static View<Mixture> told(const Memory& memory, Index s) {
        const View<double> row = memory.by_row[s];
        return {reinterpret_cast<Mixture*>(row.data()), row.size() / 3};
    }

    // Normalise a state; its nominal values are those after the moves that cost nothing.
    bool open(Index s) {
        if (!state_.open(layout_, point_, s)) return false;
        hulls_.open(layout_.first(s * layout_.A));
        apart_ = 1.0 + APART + NOISE * std::fabs(state_.base) / state_.unit;
        for (Index a = 0; nearest_ > 0.0 && a < layout_.A; ++a) {
            if (!layout_.available[s * layout_.A + a]) continue;
            const Row<double> row = layout_.mean_row(s * layout_.A + a);
            const View<const double> u = state_.of(a).part(0, row.size);
            const Index first = layout_.first(s * layout_.A + a);
            double value = 0.0;
            for (Index j = 0; j < row.size; ++j)
                if (row[j] > 0.0) value += row[j] * hulls_.of(first + j, u)[0].high;
            state_.nominal[a] = value;
        }
        return true;
    }

    bool is_known(View<const double> policy) const {
        double total = 0.0;
        for (Index a = 0; a < layout_.A; ++a)
            if (policy[a] > PLAYED && policy[a] <= 1.0 && state_.cost[a] + state_.nominal[a] < 0.0)
                total += policy[a];
        return total > 0.5;
    }

    // The policy for the mean kernel, and its answers in every kernel.
    void begin(Index s, double theta, double tol, View<double> policy, View<Mixture> mixtures) {
        const Index A = layout_.A, N = layout_.N;
        for (Index a = 0; a < A; ++a) multipliers_[a] = 0.0, mixtures_[a] = {};
        mean_.begin(s, theta, std::max(tol, ROUGH), {{multipliers_.data(), A}, {mixtures_.data(), A}, policy});
        for (Index k = 0; k < A * N; ++k) mixtures[k] = mixtures_[k / N];
    }

    // Amounts that nature spent in the last sweep, as segments are now.
    void recall(View<const Mixture> mixtures) {
        std::fill(game_.mixture.begin(), game_.mixture.end(), 0.0);
        for (Index k = 0; nature_.size() > 1 && k < nature_.size(); ++k)
            for (Index i = 0; i < layout_.N; ++i) {
                const Mixture& own = mixtures[nature_.action(k) * layout_.N + i];
                double amount = 0.0;
                for (const Segment& step : nature_.segments(k)) {
                    const double share = (1.0 <= own.t1 * step.slope ? 1.0 - own.share : 0.0) +
                                         (1.0 <= own.t2 * step.slope ? own.share : 0.0);
                    if (!(share > 0.0)) break;
                    amount += share * nature_.length(k, i, step);
                }
                game_.mixture[i * layout_.A + k] = amount >= 0.0 && amount <= nature_.most() ? amount : 0.0;
            }
    }

    void forget(const Memory& memory, Index s) const {
        for (Mixture& mixture : told(memory, s)) mixture = {nearest_, nearest_, 0.0};
        for (double& x : memory.by_action[s]) x = 0.0;
        for (double& kappa : memory.by_kernel[s]) kappa = LARGEST;
    }

    void keep(const Memory& memory, Index s, const std::vector<double>& amounts,
              const std::vector<double>& prices) const {
        const Index N = layout_.N;
        for (Index k = 0; k < nature_.size(); ++k)
            for (Index i = 0; i < N; ++i)
                tell(k, i, amounts[i * layout_.A + k], told(memory, s)[nature_.action(k) * N + i]);
        for (Index i = 0; i < N; ++i)
            if (prices[i] > 0.0) memory.by_kernel[s][i] = std::min(1.0 / prices[i], LARGEST);
    }

    // Say by two answers and a share what is spent on a row.
    void tell(Index k, Index i, double amount, Mixture& mixture) const {
        const View<const Segment> steps = nature_.segments(k);
        double below = 0.0, above = 0.0, least = 0.0, most = 0.0, begin = 0.0, end = 0.0;
        if (!(amount > 0.0)) return;
        for (Index q = 0; q < steps.size();) {
            const Index first = q;
            double length = nature_.length(k, i, steps[q++]);
            while (q < steps.size() && steps[q - 1].slope <= apart_ * steps[q].slope)
                length += nature_.length(k, i, steps[q++]);
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

    void close(Index s, double upper, double lower, int passes, const Found& found) const {
        found.upper[s] = state_.base + state_.unit * upper;
        found.lower[s] = state_.base + state_.unit * lower;
        found.passes[s] = passes;
    }

    const Layout<Real>& layout_;
    Layout<double> averaged_;
    const Point& point_;
    Stakes state_;
    Hulls hulls_;
    double nearest_, apart_ = 1.0;  // the multiplier of moves that cost nothing; what tells turns apart
    Masses<TransportEach, Real> nature_;
    PolyhedralGame<Masses<TransportEach, Real>> game_;
    SharedBudget<Transport, double> mean_;
    std::vector<Mixture> mixtures_;
    std::vector<double> multipliers_, head_;
    Points points_;
    std::vector<Segment> steps_;
    std::vector<double> turns_;
    std::vector<Index> order_;
};

}  // namespace drmdp
