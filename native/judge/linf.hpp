// The proof of l-infinity balls: a radius r_i for each kernel, within one budget of order p.
//
// L: the value of rows bent by the radii handed over, which are pulled into the ball. U: with a threshold tau for
// each row, whatever it is,
//
//     h(r) = y.u + r sum_{u>tau} (u - tau) + sum_{u<tau} (tau - u) min(r, y)
//
// bounds the row's value at r, with equality at the pivot's u. For order infinity r is the radius. Else, for prices
// lambda_i >= 0 of the radii, Hoelder's inequality gives
//
//     U = sum_i w_i B_i + theta |lambda|,     B_i = max_r sum_a x_a h_ia(r) - lambda_i r,     r <= min(1, theta/w_i),
//
// |lambda| = (sum_i w_i lambda_i^q)^(1/q), 1/p + 1/q = 1. The policy and a price mu are claimed; lambda_i = mu (r/theta)^(p-1)
// where that meets the slope of the value of the rows, V_i = sum_a x_a V_ia, or the slope where r is inside a
// segment. It is searched for next to r_i or, if not there, between r_i and an end of what it may be, where tangents from
// both sides cross. If a pivot changes there, the thresholds of both sides are optimal and so is what lies
// between; they are mixed in one proportion for all actions, such that sum_a x_a h_a' = lambda_i.
//
// **Rounding.** A walk takes min(r, y) from every entry and hands it out from the top, r to each and to
// the last what is left. What arrives is what was taken up to (n + steps) e/2, relatively; so after
// division by that no entry has changed by more than r (1 + (n + steps) e), which the radius makes room
// for, and the gain is off by 2 (n + steps) e times the mass. Comparisons u > tau are exact, and the
// terms of h have one sign but y.u. With g(r) = sum_a x_a (h_ia(r) - h_ia(0)), B_i is made of max_r g(r) - lambda r.
//
// - g consists of a rise, which is a sum over the actions, of drops and of ends, all off by n e, relatively. So g is at
//   most 1 + n e times what the numbers say, and (1 + n e) g - lambda r <= (1 + n e) [g - (1 - n e) lambda r]: lambda is
//   lowered by n e, relatively, and n e times the maximum is added. The latter alone would not do, as g and lambda r
//   may be large where their difference is not.
// - Slopes of m pieces are sums that carry along what they lose, off by e of themselves, which the margin of the maximum
//   pays for, and by up to (m + 1)^2 e^2 (sum drops + rise + lambda), which it does not where short pieces of large drops
//   have ended and what is left is as small as that. For m < 10^8 this is less than 8 e (sum drops + rise + lambda),
//   which is added times the largest r.
#pragma once

#include <numeric>

#include "bounds.hpp"
#include "norms.hpp"

namespace drmdp::judge {

// Rows of a state bent by radii.
template <class Real>
class LinfRows {
public:
    LinfRows(const Layout<Real>& layout, const Sight& sight, Index start, Index stop)
        : state(layout, sight, start, stop), layout_(layout), sight_(sight),
          scale_(layout.A * layout.N), own_(scale_.size()), pivot_(scale_.size()), used_(layout.N),
          order_(layout.A) {}

    State<Real> state;

    // Open state s and prove its worths under rows bent by what is surely allowed of the radii, within a
    // budget of some order. False if the state is terminal.
    bool open(Index s, View<const double> radius, double order, View<double> share) {
        s_ = s;
        if (!state.open(s)) return false;
        const Index A = layout_.A, N = layout_.N;
        const Index entries = layout_.first((s + 1) * A) - layout_.first(s * A);
        roundings = 2.0 * depth(entries) + double(A) + 16.0;
        allow(layout_.radius[s], radius, double(entries), order, share);
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            put_in_order(a);
            state.worth[a] = -double(N + 8) * EPSILON;
            for (Index i = 0; i < N; ++i) {
                const SeenRow<Real> seen = state.row(a, i);
                const double more = (depth(seen.K) + 16.0) * EPSILON;
                scale_[a * N + i] = seen.scale, own_[a * N + i] = seen.worth();
                const Bent bent = walk(a, i, share[i] > 0.0 ? share[i] * radius[i] : 0.0);
                pivot_[a * N + i] = bent.pivot;
                state.worth[a] += layout_.weights[i] *
                                  ((1.0 + more) * own_[a * N + i] + bent.gain - bent.margin);
            }
        }
        return true;
    }

    double roundings = 0.0;  // behind the margins of U

    struct Bent {
        double gain, margin, pivot;  // the pivot's u
    };

    double pivot(Index a, Index i) const { return pivot_[a * layout_.N + i]; }
    double own(Index a, Index i) const { return own_[a * layout_.N + i]; }
    SeenRow<Real> row(Index a, Index i) {
        const Row<Real> own = layout_.row(s_ * layout_.A + a, i);
        return {own.y, own.size, scale_[a * layout_.N + i], state.stakes(a), 0.0};
    }

    // The best row within r of the data.
    Bent walk(Index a, Index i, double r) {
        const SeenRow<Real> seen = row(a, i);
        const std::vector<Place>& down = order_[a];
        const Index K = seen.K, states = layout_.unlisted ? sight_.down.size() : K;
        const auto taken = [&](Index j) { return std::min(r, seen[j]); };
        const double mass = block_sum(K, taken);
        const double lost = block_sum(K, [&](Index j) { return taken(j) * seen.u[j]; });
        double supply = mass, total = 0.0, pivot = 0.0;
        Index n = 0, k = 0, steps = 0;
        while (k < states && supply > 0.0) {
            ++steps;
            if (n < K && down[n].place == k) {
                const Index j = down[n].entry;
                pivot = seen.u[j];
                const double got = std::min(taken(j) + r, supply);
                total += got * pivot, supply -= got;
                ++n, ++k;
                continue;
            }
            const Index run = (n < K ? down[n].place : states) - k;
            const Index full = supply / r < double(run) ? Index(supply / r) : run;
            total += r * (sum_of(k + full) - sum_of(k));
            k += full, supply -= double(full) * r;
            if (full > 0) pivot = sight_.down[k - 1];
            if (full < run && supply > 0.0) {
                pivot = sight_.down[k];
                total += supply * pivot, supply = 0.0;
            }
        }
        return {total - lost, 2.0 * (depth(K) + double(steps) + 16.0) * EPSILON * mass, pivot};
    }

    // sum (u - tau)+ over what nature may use, of row i of action a.
    double above(const SeenRow<Real>& seen, double tau) const {
        if (!layout_.unlisted)
            return block_sum(seen.K, [&](Index j) { return std::max(seen.u[j] - tau, 0.0); });
        const Index k = sight_.prefix(1.0, tau, 0.0);
        return k > 0 ? sight_.rise[k] + double(k) * (sight_.down[k - 1] - tau) : 0.0;
    }

private:
    struct Place {
        Index place, entry;  // of a listed state among all by descending u
    };

    // The share of each radius that is surely in the ball, at most 1; 0 where it is no radius.
    void allow(double theta, View<const double> radius, double entries, double order,
               View<double> share) {
        const Index N = layout_.N;
        double least = 1.0;
        for (Index i = 0; i < N; ++i) {
            used_[i] = radius[i] > 0.0 ? radius[i] : 0.0;
            if (used_[i] > 0.0) least = std::min(least, used_[i]);
        }
        const double all = order < INFINITE ? norm_above(order, layout_.weights, used_) : 0.0;
        if (all > theta) least *= theta / all;
        const double steps = std::min(entries, 4.0 / std::min(least, theta) + 8.0);
        const double slack = depth(Index(entries)) + steps + double(N) + 32.0;
        const double most = theta * (1.0 - slack * EPSILON);
        for (Index i = 0; i < N; ++i) {
            const double far = order < INFINITE ? all : used_[i];
            share[i] = used_[i] > 0.0 && far < INFINITE ? (far > most ? most / far : 1.0) : 0.0;
        }
    }

    void put_in_order(Index a) {
        const Index pair = s_ * layout_.A + a, first = layout_.first(pair);
        const View<double> u = state.stakes(a);
        std::vector<Place>& down = order_[a];
        down.resize(u.size());
        for (Index j = 0; j < u.size(); ++j)
            down[j] = {layout_.unlisted ? Index(sight_.place[layout_.indices[first + j]]) : 0, j};
        std::stable_sort(down.begin(), down.end(), [&](const Place& p, const Place& q) {
            return layout_.unlisted ? p.place < q.place : u[p.entry] > u[q.entry];
        });
        if (!layout_.unlisted)
            for (Index n = 0; n < u.size(); ++n) down[n].place = n;
    }

    // sum u over the first k states in descending order.
    double sum_of(Index k) const {
        return k > 0 ? sight_.rise[k] + double(k) * sight_.down[k - 1] : 0.0;
    }

    const Layout<Real>& layout_;
    const Sight& sight_;
    std::vector<double> scale_, own_, pivot_;  // (A, N)
    std::vector<double> used_;                 // (N)
    std::vector<std::vector<Place>> order_;
    Index s_ = 0;
};

// The proof of a state.
template <class Real>
class Linf {
public:
    Linf(const Layout<Real>& layout, const Sight& sight, const Claim& claim, const Extra& extra,
         Index start, Index stop)
        : layout_(layout), claim_(claim), order_(extra.order), rows_(layout, sight, start, stop),
          tau_(layout.A), price_(layout.N), low_(layout.A), high_(layout.A), now_(layout.A) {}

    void prove(Index s, const Proved& proved) {
        s_ = s, x_ = claim_.policy[s], theta_ = layout_.radius[s];
        if (!rows_.open(s, claim_.by_kernel[s], order_, proved.share[s])) return;
        const bool joint = order_ < INFINITE && theta_ > 0.0;
        const double more = double(layout_.N + 8) * EPSILON, mu = claim_.by_action[s][0];
        mu_ = joint && mu > 0.0 && mu < 1e100 ? mu : 0.0;
        double above = 0.0, size = 0.0;
        for (Index i = 0; i < layout_.N; ++i) {
            price_[i] = 0.0;
            for (Index a = 0; a < layout_.A; ++a) tau_[a] = rows_.pivot(a, i);
            const double far = joint ? std::min(theta_ / layout_.weights[i], 1.0) : theta_;
            if (joint) seek(i, claim_.by_kernel[s][i], far);
            const double bound = climb(i, far);
            above += layout_.weights[i] * (joint ? bound : std::min(bound, 0.0));
            size += layout_.weights[i] * std::fabs(bound);
        }
        const double paid = joint ? theta_ * norm_above(conjugate(order_), layout_.weights, price_) : 0.0;
        above += paid + more * (size + paid);
        rows_.state.close(above < 0.0 ? above : 0.0, claim_, proved);
    }

private:
    static constexpr double NEAR = 1e-12;     // relative distance of the points on both sides of a radius
    static constexpr double LEAST = 1e-100;   // stands for the limit r -> 0
    static constexpr int TRIALS = 100;

    // V_i at r, its slope to the right as the pivots have it, and their u.
    struct Tangent {
        explicit Tangent(Index A) : tau(A) {}
        double at = 0.0, value = 0.0, slope = 0.0;
        std::vector<double> tau;
    };
    void look(Index i, double r, Tangent& to) {
        to.at = r, to.value = to.slope = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(x_[a] > 0.0)) continue;
            const auto bent = rows_.walk(a, i, r);
            to.tau[a] = bent.pivot;
            to.value += x_[a] * (rows_.own(a, i) + bent.gain);
            to.slope += x_[a] * slope(a, i, r, bent.pivot).right;
        }
    }

    // Slopes of h at r, entries within NEAR of r counting as equal to it.
    struct Slopes {
        double right, left;
    };
    Slopes slope(Index a, Index i, double r, double tau) {
        const SeenRow<Real> row = rows_.row(a, i);
        double right = rows_.above(row, tau), more = 0.0;
        for (Index j = 0; j < row.K; ++j) {
            const double drop = tau - row.u[j], p = row[j];
            if (!(drop > 0.0)) continue;
            if (p > r * (1.0 + NEAR)) right += drop;
            else if (p >= r * (1.0 - NEAR)) more += drop;
        }
        return {right, right + more};
    }

    double price(double r) const { return order_ > 1.0 ? mu_ * pow(r / theta_, order_ - 1.0) : mu_; }

    // The price of kernel i, and thresholds at which the maximum of h - price r is that of V.
    void seek(Index i, double r, double far) {
        r = r >= 0.0 && r <= far ? r : far;
        const double near = 2.0 * NEAR * std::max(r, std::min(theta_, 1.0));
        look(i, std::max(r - near, LEAST), low_);
        look(i, std::min(r + near, far), high_);
        if (low_.slope < price(low_.at)) std::swap(low_, high_), look(i, LEAST, low_);
        else if (high_.slope > price(high_.at)) std::swap(low_, high_), look(i, far, high_);
        if (low_.slope <= price(low_.at) || high_.slope >= price(high_.at)) {
            const Tangent& end = low_.slope <= price(low_.at) ? low_ : high_;
            tau_ = end.tau, price_[i] = std::min(price(end.at), 1e100);
            return;
        }
        double at = high_.at;
        for (int trial = 0; trial < TRIALS; ++trial) {
            const double next = (high_.value - high_.slope * high_.at - low_.value + low_.slope * low_.at) /
                                (low_.slope - high_.slope);
            at = next <= low_.at ? low_.at : next < high_.at ? next : high_.at;
            if (at == low_.at || at == high_.at) break;  // or both are of one segment
            look(i, at, now_);
            if (now_.value >= low_.value + low_.slope * (at - low_.at) - 4.0 * drmdp::EPSILON) break;
            std::swap(now_, now_.slope > price(at) ? low_ : high_);
        }
        price_[i] = std::min(std::max(price(at), high_.slope), low_.slope);
        mix(i, at);
    }

    // Mix the thresholds of both sides in one proportion, such that the slope at `at` is the price.
    void mix(Index i, double at) {
        double first = 0.0, last = 1.0, below = high_.slope - price_[i], above = low_.slope - price_[i];
        double part = above > below ? below / (below - above) : 0.0;
        for (int trial = 0; trial < TRIALS; ++trial) {
            double right = -price_[i], left = -price_[i];
            for (Index a = 0; a < layout_.A; ++a) {
                tau_[a] = high_.tau[a] + part * (low_.tau[a] - high_.tau[a]);
                if (!(x_[a] > 0.0)) continue;
                const Slopes own = slope(a, i, at, tau_[a]);
                right += x_[a] * own.right, left += x_[a] * own.left;
            }
            if (right <= 4.0 * drmdp::EPSILON && left >= -4.0 * drmdp::EPSILON) break;
            if (right > 0.0) last = part, above = right;
            else first = part, below = left;
            part = 0.5 * (first + last);
            if (trial % 2 == 0 && below < 0.0 && above > 0.0)
                part = first + (last - first) * below / (below - above);
        }
    }

    // Upper bound on sum_a x_a h_ia(r) - price r over r <= far; at far alone where nothing is paid for radii.
    double climb(Index i, double far) {
        double worth = 0.0, rise = 0.0;
        pieces_.clear();
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(x_[a] > 0.0)) continue;
            const SeenRow<Real> row = rows_.row(a, i);
            worth += x_[a] * rows_.own(a, i), rise += x_[a] * rows_.above(row, tau_[a]);
            for (Index j = 0; j < row.K; ++j)
                if (tau_[a] - row.u[j] > 0.0 && row[j] > 0.0)
                    pieces_.push_back({row[j], x_[a] * (tau_[a] - row.u[j])});
        }
        std::sort(pieces_.begin(), pieces_.end());
        Kept slope;
        slope.add(rise), slope.add(-price_[i] * (1.0 - rows_.roundings * EPSILON));
        double size = rise + price_[i], at = 0.0, gain = 0.0;
        for (const auto& [end, drop] : pieces_) slope.add(drop), size += drop;
        std::size_t m = 0;
        for (; slope.sum() > 0.0 && at < far; ++m) {
            const double end = m < pieces_.size() ? std::min(std::max(pieces_[m].first, at), far) : far;
            gain += slope.sum() * (end - at), at = end;
            if (m < pieces_.size()) slope.add(-pieces_[m].second);
        }
        return worth + gain + EPSILON * ((rows_.roundings + double(m)) * (gain - worth) + 8.0 * size * far);
    }

    const Layout<Real>& layout_;
    const Claim& claim_;
    double order_, theta_ = 0.0, mu_ = 0.0;
    Index s_ = 0;
    View<const double> x_;
    LinfRows<Real> rows_;
    std::vector<double> tau_, price_;
    Tangent low_, high_, now_;
    std::vector<std::pair<double, double>> pieces_;  // (end, drop)
};

}  // namespace drmdp::judge
