// The proof of l2 with a radius for each kernel, within one budget of order p.
//
// **From above.** For prices lambda_i >= 0 of the distances d_i, Hoelder's inequality gives
// sum_i w_i lambda_i d_i <= theta |lambda|, |lambda| = (sum_i w_i lambda_i^q)^(1/q), 1/p + 1/q = 1. So for
// every z in the ball
//
//     sum_a x_a sum_i w_i z_ia.u_a <= U = sum_i w_i B_i + theta |lambda|,
//     B_i >= max_z sum_a x_a z_a.u_a - lambda_i d_i(z)    over all rows z.
//
// d >= e.(z - y)/|e| for every e. With t = kappa_i x_a and thresholds tau_a, e = max((t u - tau)/kappa_i, -y/kappa_i)
// and lambda_i = |e_i|, any kappa_i > 0 and tau give, over active (y + d > 0) and idle entries, d = t u - tau,
//
//     B_i = sum_a [max (x_a u - e) + e.y] <= sum_a [tau sum_idle y + t sum_active y u - sum_idle y^2]/kappa_i,
//     lambda_i = sqrt(sum_a [sum_active d^2 + sum_idle y^2])/kappa_i:
//
// x_a u - e is tau/kappa_i where active, and where idle it is less. For p = infinity each kernel is bounded on
// its own, by 0 at most. The policy and kappa are claimed, the thresholds are found here.
//
// **From below.** The rows z(kappa_i x_a) are built anew and their distances measured; they are pulled towards the
// data by theta/D, D = (sum_i w_i d_i^p)^(1/p), if D > theta: D is a norm of z - y. For p = infinity each kernel is
// pulled by theta/d_i.
//
// **Rounding.** Norms are those of `norms.hpp`. B_i kappa_i is off by the margin of Phi in `rows/l2.hpp`, of
// which it has the terms. As computed, d defines e, and then x_a u - e <= tau/kappa_i is off by
// 2 e (t + |tau|)/kappa_i. An entry that counts as idle though y + d > 0 has y <= 2 |d|, and raises the maximum by
// (n + 24) e |d|/kappa_i, |d| <= t + |tau|. Distances and prices are off by 2 n e, relatively.
#pragma once

#include "norms.hpp"
#include "rows/l2.hpp"

namespace drmdp::judge {

template <class Real>
class EachKernel {
public:
    EachKernel(const Layout<Real>& layout, const Sight& sight, const Claim& claim, const Extra& extra,
               Index start, Index stop)
        : layout_(layout), claim_(claim), order_(extra.order), state_(layout, sight, start, stop),
          proof_(sight, layout.unlisted, layout.longest(start, stop)), gain_(layout.N), square_(layout.N),
          far_(layout.N), still_(layout.A * layout.N), moved_(layout.A * layout.N) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        proof_.open_state();
        const Index A = layout_.A, N = layout_.N;
        const double theta = layout_.radius[s];
        const View<const double> x = claim_.policy[s], bend = claim_.by_action[s];
        for (auto* each : {&gain_, &square_, &far_}) std::fill(each->begin(), each->end(), 0.0);
        Index longest = 0;
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            longest = std::max(longest, layout_.length(s * A + a));
            if (is_bent(x[a], bend[a])) visit(s, a, theta > 0.0 ? bend[a] : 0.0, x[a]);
        }
        for (double& own : far_) own = std::sqrt(own);
        share(theta, proved.share[s]);
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            state_.worth[a] = is_bent(x[a], bend[a]) ? worth(a, proved.share[s]) : state_.mean_worth(a, N);
        }
        const double above = theta > 0.0 ? bound(s, theta, depth(longest) + double(A) + 32.0) : still(x);
        state_.close(std::min(above, 0.0), claim_, proved);
    }

private:
    static bool is_bent(double x, double bend) { return x > 0.0 || bend > 0.0; }

    // An action's part of B kappa, of (lambda kappa)^2 and of d^2, and what its rows are worth.
    void visit(Index s, Index a, double bend, double x) {
        for (Index i = 0; i < layout_.N; ++i) {
            const SeenRow<Real> row = state_.row(a, i);
            const double kappa = claim_.by_kernel[s][i];
            if (x > 0.0 && layout_.radius[s] > 0.0) {
                const auto priced = proof_.priced(row, kappa * x, double(layout_.A));
                gain_[i] += priced.gain, square_[i] += priced.square;
            }
            const Measured still = proof_.at(row, 0.0), moved = proof_.at(row, kappa * bend);
            still_[a * layout_.N + i] = still.worth, moved_[a * layout_.N + i] = moved.worth;
            far_[i] += 2.0 * moved.cost;
        }
    }

    // Share of the move of each kernel that is surely in the ball.
    void share(double theta, View<double> shares) const {
        const double most = theta < L2::FAINT ? 0.0 : theta * (1.0 - double(layout_.A + 32) * EPSILON);
        const double all = order_ < INFINITE ? norm_above(order_, layout_.weights, far_) : 0.0;
        for (Index i = 0; i < shares.size(); ++i) {
            const double far = order_ < INFINITE ? all : far_[i];
            shares[i] = far <= most ? 1.0 : far < INFINITE ? most / far : 0.0;
        }
    }

    double worth(Index a, View<const double> shares) const {
        double total = -double(layout_.N + 8) * EPSILON;
        for (Index i = 0; i < layout_.N; ++i) {
            const double still = still_[a * layout_.N + i], moved = moved_[a * layout_.N + i];
            total += layout_.weights[i] * (still + shares[i] * (moved - still));
        }
        return total;
    }

    // Upper bound on sum_a x_a sum_i w_i z_ia.u.
    double bound(Index s, double theta, double terms) {
        const View<const double> kappa = claim_.by_kernel[s];
        double total = 0.0, size = 0.0;
        for (Index i = 0; i < layout_.N; ++i) {
            if (!(kappa[i] > 0.0 && gain_[i] < INFINITE)) return 0.0;
            double gain = gain_[i] / kappa[i];
            square_[i] = std::sqrt(square_[i]) / kappa[i] * (1.0 + terms * EPSILON);
            if (!(order_ < INFINITE)) {
                const double paid = theta * square_[i];
                size += layout_.weights[i] * (std::fabs(gain) + paid);
                gain = std::min(gain + paid, 0.0);
            }
            total += layout_.weights[i] * gain;
            size += layout_.weights[i] * std::fabs(gain);
        }
        if (order_ < INFINITE) {
            const double paid = theta * norm_above(conjugate(order_), layout_.weights, square_);
            total += paid, size += paid;
        }
        return total + double(layout_.N + 16) * EPSILON * size;
    }

    // The same where nature has no room.
    double still(View<const double> x) {
        double total = 0.0;
        for (Index a = 0; a < layout_.A; ++a) {
            if (!(x[a] > 0.0)) continue;
            const SeenRow<double> row = state_.mean_row(a);
            total += x[a] * (1.0 - 4.0 * double(row.K + layout_.N + 8) * EPSILON) * row.worth();
        }
        return total;
    }

    const Layout<Real>& layout_;
    const Claim& claim_;
    double order_;
    State<Real> state_;
    L2 proof_;
    std::vector<double> gain_, square_, far_;  // (N) B kappa, (lambda kappa)^2, d
    std::vector<double> still_, moved_;        // (A, N) worths
};

}  // namespace drmdp::judge
