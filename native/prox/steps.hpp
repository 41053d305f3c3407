// Steps of the first-order method beside the projections of nature: the policy's steps, what the players
// give each other, and how far nature is from the data.
#pragma once

#include <string>

#include "entropy.hpp"

namespace drmdp::prox {

constexpr int FORECAST = 10;  // sweeps

// argmin |x - z| over distributions x = (z - tau)+. The sum is convex in tau, so that Newton's method
// climbs from the left and ends as soon as no entry is lost.
inline void project_row(View<double> z) {
    const double top = *std::max_element(z.begin(), z.end());
    for (double& x : z) x -= top;  // the level changes nothing, and large ones lose digits
    double tau = -1.0;
    for (Index last = z.size() + 1;;) {
        Index count = 0;
        double total = 0.0;
        for (double x : z)
            if (x > tau) ++count, total += x;
        if (count >= last) break;  // ties may come back by rounding
        tau = (total - 1.0) / double(count), last = count;
    }
    for (double& x : z) x = x > tau ? x - tau : 0.0;
}

// x exp(-size gradient), divided by its sum; a gradient of infinity, and x = 0, give 0.
inline void entropy_step(View<double> x, View<const double> gradient, double size) {
    double least = INFINITE, total = 0.0;
    for (Index a = 0; a < x.size(); ++a)
        if (x[a] > 0.0) least = std::min(least, gradient[a]);
    for (Index a = 0; a < x.size(); ++a) {
        x[a] = x[a] > 0.0 ? x[a] * exp(-size * (gradient[a] - least)) : 0.0;
        total += x[a];
    }
    for (double& mass : x) mass /= total;
}

// The policy's step in a state: sizes of infinity go to the least cost (the entropy stays).
inline void act(View<const std::uint8_t> available, View<const double> stakes, double tau, bool entropy,
                View<double> x, View<double> q) {
    Index cheapest = -1;
    for (Index a = 0; a < x.size(); ++a) {
        q[a] = available[a] ? stakes[a] : INFINITE;
        if (available[a] && (cheapest < 0 || q[a] < q[cheapest])) cheapest = a;
    }
    if (cheapest < 0 || (entropy && tau == INFINITE)) return;
    if (tau == INFINITE) {
        for (Index a = 0; a < x.size(); ++a) x[a] = a == cheapest;
    } else if (entropy) {
        entropy_step(x, q, tau);
        for (Index a = 0; a < x.size(); ++a) x[a] = available[a] ? std::max(x[a], LEAST) : 0.0;
    } else {
        for (Index a = 0; a < x.size(); ++a) x[a] -= tau * q[a];
        project_row(x);
    }
}

// y = c, mixed with the uniform row: a share `mix`, or the radius if that is less.
template <class Real>
void begin(const Layout<Real>& layout, Index s, double mix, View<double> y) {
    const double share = std::min(mix, layout.radius[s]);
    for (Index pair = s * layout.A; pair < (s + 1) * layout.A; ++pair) {
        const Index K = layout.length(pair);
        for (Index i = 0; i < layout.N; ++i) {
            const Row<Real> row = centre(layout, pair, i);
            const View<double> to = y.part(layout.N * layout.first(pair) + i * K, K);
            for (Index j = 0; j < K; ++j) to[j] = row[j] + share * (1.0 / double(K) - row[j]);
        }
    }
}

// Stakes z_a = c + discount v of a state: the largest norm, l2 or (`largest`) linf, without their middle
// if `centred`; and the largest stake of each action.
template <class Real>
double measure(const Layout<Real>& layout, View<const double> value, Index s, bool centred, bool largest,
               View<double> top, std::vector<double>& z) {
    double norm = 0.0;
    for (Index a = 0; a < layout.A; ++a) {
        const Index pair = s * layout.A + a, K = layout.length(pair);
        if (!layout.available[pair] || K == 0) continue;
        fill_stakes(layout, value, pair, z.data());
        double high = z[0], low = z[0], total = 0.0, size = 0.0;
        for (Index j = 0; j < K; ++j)
            high = std::max(high, z[j]), low = std::min(low, z[j]), total += z[j];
        top[a] = high;
        const double middle = largest ? 0.5 * (high + low) : total / double(K);
        const double level = centred ? middle : 0.0;
        for (Index j = 0; j < K; ++j) size += (z[j] - level) * (z[j] - level);
        norm = std::max(norm, largest ? std::max(high - level, level - low) : std::sqrt(size));
    }
    return norm;
}

// Means sum_i w_i y_i, and how far y is from the data.
template <class Real>
class Look {
public:
    Look(const Layout<Real>& layout, View<const double> y, const std::string& norm, double order,
         Index start, Index stop)
        : layout_(layout), y_(y), sums_(norm == "l1"), squares_(norm == "l2"), order_(order),
          middle_(to_lanes(layout.longest(start, stop))), far_(layout.N) {}

    // `apart` is sum_i w_i d_i^p for order p = 1, 2, else every d_i.
    void read(Index s, View<double> mean, View<double> apart) {
        std::fill(far_.begin(), far_.end(), 0.0);
        for (Index pair = s * layout_.A; pair < (s + 1) * layout_.A; ++pair) {
            std::fill(middle_.begin(), middle_.end(), 0.0);
            for (Index i = 0; i < layout_.N; ++i) add(pair, i);
            for (Index j = 0; j < layout_.length(pair); ++j) mean[layout_.first(pair) + j] = middle_[j];
        }
        double total = 0.0;
        for (Index i = 0; i < layout_.N; ++i) {
            const double size = squares_ ? std::sqrt(far_[i]) : far_[i];
            if (order_ == INFINITE) apart[i] = size;
            else total += layout_.weights[i] * (order_ == 2.0 ? size * size : size);
        }
        if (order_ != INFINITE) apart[0] = total;
    }

private:
    void add(Index pair, Index i) {
        struct Sums {
            Part total{}, square{}, most{};
        };
        const Row<Real> row = centre(layout_, pair, i);
        const Index at = layout_.N * layout_.first(pair) + i * row.size;
        const double w = layout_.weights[i];
        const auto sums = row.template over<Sums>(
            [&](Sums& s, Part p, Index j) __attribute__((always_inline)) {
                const Part y = load_row(y_, at, j, row.size), e = y - p * row.scale;
                const Part size = magnitude(e);
                store(middle_.data() + j, load(middle_.data() + j) + w * y);
                s.total += size;
                s.square += e * e;
                s.most = greater(size, s.most);
            });
        if (sums_ || squares_) far_[i] += sums.sum(sums_ ? &Sums::total : &Sums::square);
        else far_[i] = std::max(far_[i], sums.greatest(&Sums::most));
    }

    const Layout<Real>& layout_;
    View<const double> y_;
    bool sums_, squares_;
    double order_;
    std::vector<double> middle_, far_;
};

// Costs of the actions of a state against the mean rows.
template <class Real>
void weigh(const Layout<Real>& layout, View<const double> value, View<const double> mean, Index s,
           View<double> stakes) {
    for (Index a = 0; a < layout.A; ++a) {
        const Index pair = s * layout.A + a, at = layout.first(pair);
        double total = 0.0;
        for (Index e = at; e < at + layout.length(pair); ++e) {
            const double cost = layout.next_costs.empty() ? 0.0 : layout.next_costs[e];
            total += mean[e] * (layout.discount(pair) * value[layout.indices[e]] + cost);
        }
        stakes[a] = layout.costs[pair] + total;
    }
}

// (I - discount P)^-1 gain for the chain of policy and mean rows, by a few sweeps in place.
template <class Real>
void foresee(const Layout<Real>& layout, Table<const double> policy, View<const double> mean,
             View<const double> gain, View<double> total) {
    for (int sweep = 0; sweep < FORECAST; ++sweep)
        for (Index s = 0; s < layout.S; ++s) {
            double sum = gain[s];
            for (Index a = 0; a < layout.A; ++a) {
                if (!(policy[s][a] > 0.0)) continue;
                const Index pair = s * layout.A + a, at = layout.first(pair);
                double later = 0.0;
                for (Index e = at; e < at + layout.length(pair); ++e)
                    later += mean[e] * total[layout.indices[e]];
                sum += layout.discount(pair) * policy[s][a] * later;
            }
            total[s] = sum;
        }
}

// Rows of y pulled towards the data to a share, each with sum 1, kernel by kernel.
template <class Real>
void pull(const Layout<Real>& layout, View<const double> y, View<const double> share,
          Table<double> rows) {
    for (Index pair = 0; pair < layout.S * layout.A; ++pair)
        for (Index i = 0; i < layout.N; ++i) {
            const Row<Real> row = centre(layout, pair, i);
            const Index K = row.size, at = layout.first(pair);
            const View<const double> from = y.part(layout.N * at + i * K, K);
            double mass = 0.0, stored = 0.0, total = 0.0;
            for (Index j = 0; j < K; ++j) mass += from[j], stored += row[j];
            const View<double> to = rows[i].part(at, K);
            for (Index j = 0; j < K; ++j) {
                const double c = row[j] / stored;
                to[j] = c + share[pair / layout.A] * (std::max(from[j] / mass, 0.0) - c);
                total += to[j];
            }
            for (double& x : to) x /= total;
        }
}

}  // namespace drmdp::prox
