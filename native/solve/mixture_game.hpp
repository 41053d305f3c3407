// A policy against a mixture of the N kernels: the saddle point of
//
//     min_x max_q sum_a x_a sum_i q_i G_ai,     G_ai = cost_a + y_ia.u,     q a mixture in a ball around w.
//
// f(x) = max_q is an upper bound U for any x, min_a sum_i q_i G_ai a lower one L for any q in the ball;
// the best of both are kept, with the x and the q that they belong to. Rows of G are N numbers and zeros
// up to a multiple of eight.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../data.hpp"

namespace drmdp {

inline double dot(View<const double> a, View<const double> b) {
    return part_sum(a.size(), [&](Index i) DRMDP_LAMBDA { return load(a, i) * load(b, i); });
}

struct MixtureGame {
    MixtureGame(Index A, View<const double> weights)
        : N(weights.size()), stride(to_lanes(N)), w(stride), x(A), best_x(A), gain(A), q(stride),
          best_q(stride), loss(stride), rows(A * stride) {
        std::copy(weights.begin(), weights.end(), w.begin());
    }

    Index N, stride, n = 0;          // kernels, padded; rows of G
    double budget = 0.0;             // radius or level
    double upper = 0.0, lower = 0.0, tau = 0.0;  // the best so far, and the multiplier behind U
    std::vector<double> w;           // (N)
    std::vector<double> x, best_x, gain;  // (n)
    std::vector<double> q, best_q, loss;  // (N) of the last answer
    std::vector<double> rows;

    View<double> row(Index k) { return {rows.data() + k * stride, stride}; }
    static View<double> view(std::vector<double>& of) { return {of.data(), Index(of.size())}; }

    void begin(double guess) { upper = INFINITE, lower = -INFINITE, tau = guess; }

    // Losses of the kernels under x.
    void mix(const std::vector<double>& policy) {
        std::fill(loss.begin(), loss.end(), 0.0);
        for (Index k = 0; k < n; ++k) {
            if (!(policy[k] > 0.0)) continue;
            const View<double> own = row(k);
            for (Index i = 0; i < stride; ++i) loss[i] += policy[k] * own[i];
        }
    }
    // Gains of the actions against q; the least.
    double price(std::vector<double>& mixture) {
        double least = INFINITE;
        for (Index k = 0; k < n; ++k) {
            gain[k] = dot(row(k), view(mixture));
            least = std::min(least, gain[k]);
        }
        return least;
    }
    // Look at a mixture that is allowed.
    void note_mixture(std::vector<double>& mixture) {
        const double least = price(mixture);
        if (least > lower) lower = least, best_q = mixture;
    }
    // Look at nature's answer q to a policy.
    void note(double bound, double multiplier, const std::vector<double>& policy) {
        note_mixture(q);
        if (bound < upper) {
            upper = bound, tau = multiplier;
            std::copy(policy.begin(), policy.begin() + n, best_x.begin());
        }
    }
    bool closed(double tol) const { return upper - lower <= tol; }
};

}  // namespace drmdp
