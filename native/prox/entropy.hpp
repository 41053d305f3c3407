// Steps of nature with the relative entropy for the distance, on the linf ball of order infinity: row by
// row, with u = y exp(w_i step_a (c + discount v)),
//
//     argmin { sum y log(y/u) : y a distribution, |y - c| <= theta } = min(max(k u, c - theta), c + theta)
//
// with k so that the row adds up to 1. The sum is piecewise linear in k: Newton's method with a bracket,
// from the k of the last step. A probability of 0 would stay 0, so none falls below LEAST.
#pragma once

#include "../elementary.hpp"
#include "state.hpp"

namespace drmdp::prox {

constexpr double LEAST = 1e-200;

template <class Real>
class EntropyBoxes {
public:
    EntropyBoxes(const Job<Real>& job, Index start, Index stop)
        : job_(job), padded_(to_lanes(job.layout.longest(start, stop))), u_(padded_), c_(padded_),
          stake_(padded_), grow_(padded_) {}

    void project(Index s) {
        const Layout<Real>& layout = job_.layout;
        theta_ = layout.radius[s];
        for (Index a = 0; a < layout.A; ++a) {
            const double step = job_.push.step[s][a];
            const Index pair = s * layout.A + a, K = layout.length(pair);
            if (K == 0 || (theta_ > 0.0 && job_.inside && step == 0.0)) continue;
            fill_stakes(layout, job_.push.value, pair, stake_.data());
            level_stakes(stake_.data(), K, step);  // k takes it up, and nothing overflows
            double weight = -1.0;
            for (Index i = 0; i < layout.N; ++i) {
                if (layout.weights[i] != weight) {
                    weight = layout.weights[i];
                    for (Index j = 0; j < to_lanes(K); j += WIDTH)
                        store(grow_.data() + j, exp(weight * step * load(stake_.data() + j)));
                }
                take(pair, i);
            }
        }
    }

private:
    void take(Index pair, Index i) {
        const Row<Real> row = centre(job_.layout, pair, i);
        const Index K = size_ = row.size;
        double* y = job_.y.at(job_.layout.N * job_.layout.first(pair) + i * K, K);
        std::fill(u_.begin(), u_.end(), 0.0), std::fill(c_.begin(), c_.end(), 0.0);
        for (Index j = 0; j < K; ++j) u_[j] = std::max(y[j] * grow_[j], LEAST), c_[j] = row[j];
        double& guess = job_.trace.threshold[pair][i];
        if (theta_ > 0.0) guess = factor(guess > 0.0 && guess < FARTHEST ? guess : 1.0);
        for (Index j = 0; j < K; ++j)
            y[j] = std::min(std::max(guess * u_[j], c_[j] - theta_), c_[j] + theta_);
    }

    double factor(double k) {
        struct Sums {
            Part total{}, free{};
        };
        double low = 0.0, high = INFINITE;
        for (int pass = 0; pass < 1000; ++pass) {
            const auto sums = over_lanes<Sums>(
                to_lanes(size_), [&](Sums& s, Index j) __attribute__((always_inline)) {
                    const Part u = load(u_.data() + j), c = load(c_.data() + j), y = k * u;
                    const Part least = c - theta_, most = c + theta_;
                    const Mask over = y > most, under = y < least;
                    s.total += over ? most : (under ? least : y);
                    s.free += where(~(over | under), u);
                });
            const double lack = 1.0 - sums.sum(&Sums::total), free = sums.sum(&Sums::free);
            if (std::fabs(lack) <= ROUNDING * double(size_)) break;
            if (high < INFINITE && high - low <= ROUNDING * high) break;
            (lack > 0.0 ? low : high) = k;
            double next = free > 0.0 ? k + lack / free : INFINITE;
            if (!(next > low && next < high && next < INFINITE))
                next = low > 0.0 && high < INFINITE ? std::sqrt(low) * std::sqrt(high)
                                                    : k * (lack > 0.0 ? 16.0 : 0.0625);
            k = next;
        }
        return k;
    }

    const Job<Real>& job_;
    Index padded_, size_ = 0;
    double theta_ = 0.0;
    std::vector<double> u_, c_, stake_, grow_;
};

}  // namespace drmdp::prox
