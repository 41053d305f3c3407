// l-infinity: a radius r_i for each kernel, which is what it costs.
//
// L: the value of rows bent by the radii handed over, which are pulled into the ball. U: with a threshold tau for
// each row, whatever it is,
//
//     h(r) = y.u + r sum_{u>tau} (u - tau) + sum_{u<tau} (tau - u) min(r, y)
//
// bounds the row's value at r, with equality at the pivot's u. For order infinity r is the radius. Else, for prices
// lambda_i >= 0 of the radii (`../ball.hpp`),
//
//     B_i = max_r sum_a x_a h_ia(r) - lambda_i r,     r <= min(1, theta/w_i).
//
// The policy and a price mu are claimed; lambda_i = mu (r/theta)^(p-1) where that meets the slope of the value of the
// rows, V_i = sum_a x_a V_ia, or the slope where r is inside a segment. It is searched for next to r_i or, if not there,
// between r_i and an end of what it may be, where tangents from both sides cross, at r*. Thresholds of both sides bound V_i:
// those of the left are used up to r*, those of the right from there on.
//
// **Rounding.** A walk takes min(r, y) from every entry and hands it out from the top, r to each and to
// the last what is left. What arrives is what was taken up to (n + steps) e/2, relatively; so after
// division by that no entry has changed by more than r (1 + (n + steps) e), and the gain is off by 2 (n + steps) e
// times the mass; a move shorter by what is too far has as much less again. Comparisons u > tau are exact, and the
// terms of h have one sign but y.u. With g(r) = sum_a x_a (h_ia(r) - h_ia(0)), B_i is made of max_r g(r) - lambda r.
//
// - g consists of a rise, which is a sum over the actions, of drops and of ends, all off by n e/2,
//   relatively. It may be large where g - lambda r is not, but what nature gains, v, is at most
//   |y.u|, as nothing is above the top: from g >= v follows (1 - n e/2) g >= v - n e/2 |y.u|.
//   As much again is what y.u is off by.
// - Slopes of m pieces are sums that carry along what they lose, off by e of themselves, which the margin of the maximum
//   pays for, and by up to (m + 1)^2 e^2 (sum drops + rise + lambda), which it does not where short pieces of large drops
//   have ended and what is left is as small as that. For m < 10^8 this is less than 8 e (sum drops + rise + lambda),
//   which is added times the largest r.
#pragma once

#include "../ball.hpp"

namespace drmdp::judge {

template <class Real>
class Linf : public Additive {
public:
    static constexpr bool JOINT = true;
    explicit Linf(const Question<Real>& q)
        : q_(q), layout_(q.layout), sight_(q.sight), seen_(layout_.A * layout_.N), down_(layout_.A), low_(layout_.A),
          high_(layout_.A), now_(layout_.A) {}
    static double budget(double radius) { return radius; }

    void open(Index s) { s_ = s, theta_ = layout_.radius[s]; }
    bool bends(Index) const { return true; }
    double price(Index) const { return 0.0; }

    Measured measure(const SeenRow<Real>& row, Index a, Index i) {
        if (i == 0) put_in_order(a, row.u);
        const double r = std::max(q_.claim.by_kernel[s_][i], 0.0), more = (depth(row.K) + 16.0) * EPSILON;
        const Bent bent = walk(row, a, r);
        seen_[a * layout_.N + i] = {row, bent.pivot};
        return {(1.0 + more) * row.worth() + bent.gain - 3.0 * bent.off * EPSILON * bent.mass, r};
    }

    // B_i and lambda_i, after all rows were measured.
    Bound bound(Index i, View<const double> x) {
        x_ = x, i_ = i;
        const Index entries = layout_.first((s_ + 1) * layout_.A) - layout_.first(s_ * layout_.A);
        roundings_ = 2.0 * depth(entries) + double(layout_.A) + 16.0;
        const double order = q_.extra.order, mu = q_.claim.by_action[s_][0], claimed = q_.claim.by_kernel[s_][i];
        if (!(order < INFINITE)) {
            for (Index a = 0; a < layout_.A; ++a) low_.tau[a] = seen_[a * layout_.N + i].pivot;
            const double gain = climb(low_.tau, 0.0, 0.0, theta_);
            return {gain, std::fabs(gain), 0.0};
        }
        const double far = std::min(theta_ / layout_.weights[i], 1.0);
        mu_ = mu > 0.0 && mu < 1e100 ? mu : 0.0;
        const double at = seek(claimed >= 0.0 && claimed <= far ? claimed : far, far);
        const double price = std::min(std::max(price_of(at), high_.slope), low_.slope), lambda = std::min(price, 1e100);
        const double gain = std::max(climb(low_.tau, lambda, 0.0, at), climb(high_.tau, lambda, at, far));
        return {gain, std::fabs(gain), lambda};
    }

private:
    static constexpr double NEAR = 1e-12;     // relative distance of the points on both sides of a radius
    static constexpr double LEAST = 1e-100;   // stands for the limit r -> 0
    static constexpr double SAME = 1e-15;     // values that are one
    static constexpr int TRIALS = 100;

    struct Place {
        Index place, entry;  // of a listed state among all by descending u
    };
    struct Bent {
        double gain, mass, off, pivot;  // off: roundings; the pivot's u
    };

    // The best row within r of the data.
    Bent walk(const SeenRow<Real>& row, Index a, double r) const {
        const std::vector<Place>& down = down_[a];
        const Index K = row.K, states = layout_.unlisted ? sight_.down.size() : K;
        const auto taken = [&](Index j) { return std::min(r, row[j]); };
        const double mass = block_sum(K, taken);
        const double lost = block_sum(K, [&](Index j) { return taken(j) * row.u[j]; });
        double supply = mass, total = 0.0, pivot = 0.0;
        Index n = 0, k = 0, steps = 0;
        for (; k < states && supply > 0.0; ++steps) {
            if (n < K && down[n].place == k) {
                const Index j = down[n].entry;
                const double got = std::min(taken(j) + r, supply);
                pivot = row.u[j], total += got * pivot, supply -= got;
                ++n, ++k;
                continue;
            }
            const Index run = (n < K ? down[n].place : states) - k;
            const Index full = supply / r < double(run) ? Index(supply / r) : run;
            total += r * (sum_of(k + full) - sum_of(k));
            k += full, supply -= double(full) * r;
            if (full > 0) pivot = sight_.down[k - 1];
            if (full < run && supply > 0.0) pivot = sight_.down[k], total += supply * pivot, supply = 0.0;
        }
        return {total - lost, mass, depth(K) + double(steps) + 16.0, pivot};
    }

    void put_in_order(Index a, View<const double> u) {
        const Index first = layout_.first(s_ * layout_.A + a);
        std::vector<Place>& down = down_[a];
        down.resize(u.size());
        for (Index j = 0; j < u.size(); ++j)
            down[j] = {layout_.unlisted ? sight_.place_of(layout_.indices[first + j]) : 0, j};
        std::stable_sort(down.begin(), down.end(), [&](const Place& p, const Place& q) {
            return layout_.unlisted ? p.place < q.place : u[p.entry] > u[q.entry];
        });
        for (Index n = 0; !layout_.unlisted && n < u.size(); ++n) down[n].place = n;
    }

    // sum u over the first k states in descending order.
    double sum_of(Index k) const {
        return k > 0 ? sight_.rise[k] + double(k) * sight_.down[k - 1] : 0.0;
    }

    // sum (u - tau)+ over what nature may use.
    double above(const SeenRow<Real>& row, double tau) const {
        if (!layout_.unlisted)
            return block_sum(row.K, [&](Index j) { return std::max(row.u[j] - tau, 0.0); });
        const Index k = sight_.prefix(1.0, tau, 0.0);
        return k > 0 ? sight_.rise[k] + double(k) * (sight_.down[k - 1] - tau) : 0.0;
    }

    // V_i at r, its slope to the right as the pivots have it, and their u.
    struct Tangent {
        explicit Tangent(Index A) : tau(A) {}
        double at = 0.0, value = 0.0, slope = 0.0;
        std::vector<double> tau;
    };
    void look(double r, Tangent& to) {
        to.at = r, to.value = to.slope = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(x_[a] > 0.0)) continue;
            const SeenRow<Real>& row = seen_[a * layout_.N + i_].row;
            const Bent bent = walk(row, a, r);
            double slope = above(row, bent.pivot);
            for (Index j = 0; j < row.K; ++j)
                if (row[j] > r * (1.0 + NEAR)) slope += std::max(bent.pivot - row.u[j], 0.0);
            to.tau[a] = bent.pivot, to.value += x_[a] * (row.worth() + bent.gain), to.slope += x_[a] * slope;
        }
    }

    double price_of(double r) const {
        return q_.extra.order > 1.0 ? mu_ * pow(r / theta_, q_.extra.order - 1.0) : mu_;
    }

    // Where the slope of V passes the price, next to r or between it and an end; the tangents of both sides.
    double seek(double r, double far) {
        const double near = 2.0 * NEAR * std::max(r, std::min(theta_, 1.0));
        look(std::max(r - near, LEAST), low_);
        look(std::min(r + near, far), high_);
        if (low_.slope < price_of(low_.at)) std::swap(low_, high_), look(LEAST, low_);
        else if (high_.slope > price_of(high_.at)) std::swap(low_, high_), look(far, high_);
        if (low_.slope <= price_of(low_.at) || high_.slope >= price_of(high_.at)) {  // an end, at any price
            (low_.slope <= price_of(low_.at) ? high_ : low_) = low_.slope <= price_of(low_.at) ? low_ : high_;
            low_.slope = INFINITE, high_.slope = 0.0;
            return low_.at;
        }
        double at = high_.at;
        for (int trial = 0; trial < TRIALS; ++trial) {
            const double next = (high_.value - high_.slope * high_.at - low_.value + low_.slope * low_.at) /
                                (low_.slope - high_.slope);
            at = next <= low_.at ? low_.at : next < high_.at ? next : high_.at;
            if (at == low_.at || at == high_.at) break;  // or both are of one segment
            look(at, now_);
            if (now_.value >= low_.value + low_.slope * (at - low_.at) - SAME) break;
            std::swap(now_, now_.slope > price_of(at) ? low_ : high_);
        }
        return at;
    }

    // Upper bound on sum_a x_a h_ia(r) - price r over from <= r <= far.
    double climb(const std::vector<double>& tau, double price, double from, double far) {
        double worth = 0.0, rise = 0.0;
        pieces_.clear();
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(x_[a] > 0.0)) continue;
            const SeenRow<Real>& row = seen_[a * layout_.N + i_].row;
            worth += x_[a] * row.worth(), rise += x_[a] * above(row, tau[a]);
            for (Index j = 0; j < row.K; ++j)
                if (tau[a] - row.u[j] > 0.0 && row[j] > 0.0) pieces_.push_back({row[j], x_[a] * (tau[a] - row.u[j])});
        }
        std::sort(pieces_.begin(), pieces_.end());
        Kept slope;
        slope.add(rise), slope.add(-price);
        double size = rise + price, at = 0.0, gain = 0.0, moved = 0.0;
        for (const auto& [end, drop] : pieces_) slope.add(drop), size += drop;
        std::size_t m = 0;
        for (; at < from || (slope.sum() > 0.0 && at < far); ++m) {
            const double limit = at < from ? from : far;
            const bool last = m == pieces_.size() || pieces_[m].first > limit;
            const double end = last ? limit : std::max(pieces_[m].first, at), by = slope.sum() * (end - at);
            gain += by, moved += std::fabs(by), at = end;
            if (last) --m;
            else slope.add(-pieces_[m].second);
        }
        const double off = (roundings_ + double(m + 4)) * (moved - worth) + 8.0 * size * far;
        return worth + gain + EPSILON * off;
    }

    const Question<Real>& q_;
    const Layout<Real>& layout_;
    const Sight& sight_;
    View<const double> x_;
    Index s_ = 0, i_ = 0;
    double theta_ = 0.0, mu_ = 0.0, roundings_ = 0.0;
    struct Seen {
        SeenRow<Real> row;
        double pivot = 0.0;  // at the radius that is claimed
    };
    std::vector<Seen> seen_;  // (A, N)
    std::vector<std::vector<Place>> down_;
    Tangent low_, high_, now_;
    std::vector<std::pair<double, double>> pieces_;  // (end, drop)
};

}  // namespace drmdp::judge
