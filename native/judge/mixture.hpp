// The proof of re-weighting.
//
// With l_i = sum_a x_a y_ia.u, which is at most 0 (the costs of a policy are the same for all kernels), U is a
// bound on max q.l:
//
//   kl, burg, chi2   top + span (B + h(t))/t at t = tau span, h the dual of `judge/rows` for the row w and the
//                    stakes (l - top)/span; any tau will do;
//   tv               B c + sum w max(l, top - c) for any c >= 0;
//   cvar             e + sum w (l - e)+/level for any e;         any: top.
//
// L is the value of the mixture handed over: its positive part, divided by its sum, measured by definition and
// pulled towards w by the share that the ball allows.
//
// **Rounding.** Losses have one sign, so that they are off by (n + A) e, relatively, n being the depth of the
// sums behind them; U is of losses raised by that, for it grows with them. A bound made of N terms takes (N + 16) e
// of their sizes, and worths are lowered by (n + N + 16) e, relatively. What is left is a few roundings of
// numbers of size 1, which `noise` (`sums.hpp`) has room for: stakes (2), (B + h)/t where it is not cut off at 0 (2),
// times span and plus top (1 each) in U. A pulled mixture is a sum of two parts
// of one sign, and keeps its small entries, which Burg's entropy prices: 3 e, relatively, of those 16.
#pragma once

#include "rows/burg.hpp"
#include "rows/chi2.hpp"
#include "rows/kl.hpp"

namespace drmdp::judge {

constexpr double WEIGHTS_OFF = 4.0;  // how far a weight may be off, in e, relatively

// A loss above which there is less than some mass, and from which on there is as much; any other would do.
inline double cut_of(View<const double> w, View<const double> loss, double mass) {
    double low = -INFINITE, high = INFINITE, found = loss[0];
    for (Index k = 0; k < w.size(); ++k) {
        const double pivot = loss[(k * 7919) % w.size()];
        if (!(pivot > low && pivot < high)) continue;
        double above = 0.0, here = 0.0;
        for (Index i = 0; i < w.size(); ++i) {
            above += loss[i] > pivot ? w[i] : 0.0;
            here += loss[i] == pivot ? w[i] : 0.0;
        }
        found = pivot;
        if (above >= mass) low = pivot;
        else if (above + here < mass) high = pivot;
        else break;
    }
    return found;
}

struct Losses {
    View<const double> w, loss;
    View<double> u;  // work space
    double tau, top, low, mean;
};

// A kind is an object with
//
//     above(losses, size)     a bound on max q.l within a ball of some size, margin included
//     share(w, z, mass, size) the share of the way from w to z/mass that is surely allowed
template <class Divergence>
struct SmoothKind {
    double above(const Losses& at, double size) const {
        const double more = double(at.w.size() + 16) * EPSILON, span = at.top - at.low;
        if (!(size > 0.0)) return std::min(at.mean + more * std::fabs(at.mean), at.top);
        const double t = at.tau * span;
        if (!(t > 0.0 && t < 1e300)) return at.top;
        for (Index i = 0; i < at.w.size(); ++i) at.u[i] = (at.loss[i] - at.top) / span;
        const double B = Divergence::budget(size), dual = proof.dual(row(at.w, at.u, WEIGHTS_OFF), t, 0.0).gain;
        const double bound = at.top + span * ((B + dual) / t);
        return std::isfinite(bound) ? std::min(bound, at.top) : at.top;
    }
    double share(View<const double> w, View<const double> z, double mass, double size) const {
        const double off = WEIGHTS_OFF + double(w.size()), allowed = Divergence::budget(size);
        const double cost = proof.cost(row(w, {}, off), z, 0.0, mass);
        if (cost <= allowed) return 1.0;
        return cost < INFINITE ? allowed / cost : 0.0;
    }
    static SeenRow<double> row(View<const double> w, View<const double> u, double off) {
        return {w.data(), w.size(), 1.0, u, off, 0};
    }
    Divergence proof{Extra{}, Sight{}, false, 0};
};

struct TvKind {
    double above(const Losses& at, double size) const {
        const double more = double(at.w.size() + 16) * EPSILON, eta = cut_of(at.w, at.loss, 1.0 - size);
        double total = 0.0;
        for (Index i = 0; i < at.w.size(); ++i) total += at.w[i] * std::max(at.loss[i], eta);
        const double paid = size * (at.top - eta);
        return std::min(paid + total + more * (paid + std::fabs(total)), at.top);
    }
    // Differences are off by n e (z/mass + w), in all by 2 n e.
    double share(View<const double> w, View<const double> z, double mass, double size) const {
        double cost = 2.0 * (2.0 * double(w.size()) + WEIGHTS_OFF + 16.0) * EPSILON;
        for (Index i = 0; i < w.size(); ++i) cost += std::max(z[i] / mass - w[i], 0.0);
        return cost <= size ? 1.0 : size / cost;
    }
};

struct CvarKind {
    double above(const Losses& at, double size) const {
        if (!(size > 0.0)) return at.top;
        const double more = double(at.w.size() + 16) * EPSILON, eta = cut_of(at.w, at.loss, size);
        double extra = 0.0;
        for (Index i = 0; i < at.w.size(); ++i) extra += at.w[i] * std::max(at.loss[i] - eta, 0.0);
        const double bound = eta + extra / size * (1.0 + more) + more * (std::fabs(eta) + std::fabs(at.top));
        return std::min(bound, at.top);
    }
    double share(View<const double> w, View<const double> z, double mass, double size) const {
        double share = 1.0;
        for (Index i = 0; i < w.size(); ++i) {
            const double over = z[i] / mass * (1.0 + double(w.size() + 8) * EPSILON) - w[i];
            const double spare = size > 0.0 ? w[i] / size - w[i] : INFINITE;
            if (over > spare) share = std::min(share, std::max(spare, 0.0) / over);
        }
        return share;
    }
};

struct AnyKind {
    double above(const Losses& at, double) const { return at.top; }
    double share(View<const double>, View<const double>, double, double) const { return 1.0; }
};

// Sum of the positive part of a mixture, which z gets; 0 if it is none.
inline double positive_part(View<const double> q, View<double> z) {
    double total = 0.0;
    for (Index i = 0; i < q.size(); ++i) {
        if (!(q[i] < INFINITE)) return 0.0;
        total += z[i] = std::max(q[i], 0.0);
    }
    return total < INFINITE ? total : 0.0;
}

// Bring a mixture into the ball, towards w.
template <class Kind>
void pull(View<const double> w, double size, View<double> q) {
    std::vector<double> room(q.size());
    const View<double> z(room.data(), q.size());
    const double mass = positive_part(q, z), share = mass > 0.0 ? Kind().share(w, z, mass, size) : 0.0;
    for (Index i = 0; i < q.size(); ++i)
        q[i] = share > 0.0 ? share * (z[i] / mass) + (1.0 - share) * w[i] : w[i];
}

template <class Kind, class Real>
class Mixtures {
public:
    explicit Mixtures(const Question<Real>& q)
        : layout_(q.layout), claim_(q.claim), state_(q), own_(layout_.A * layout_.N), loss_(layout_.N),
          u_(layout_.N), z_(layout_.N) {}

    void prove(Index s, const Proved& proved) {
        if (!state_.open(s)) return;
        const Index A = layout_.A, N = layout_.N;
        const double size = layout_.radius[s], tau = claim_.by_action[s][0];
        Index longest = 0;
        for (Index a = 0; a < A; ++a) {
            if (!layout_.available[s * A + a]) continue;
            longest = std::max(longest, layout_.length(s * A + a));
            for (Index i = 0; i < N; ++i) own_[a * N + i] = state_.row(a, i).worth();
        }
        const double terms = depth(longest) + 16.0;
        const View<double> z(z_.data(), N);
        const double mass = positive_part(claim_.by_kernel[s], z);
        double share = 0.0;  // where tau is 0 nature was not asked
        if (mass > 0.0 && tau > 0.0) share = kind_.share(layout_.weights, z, mass, size);
        for (double& own : proved.share[s]) own = share;
        for (Index a = 0; a < A; ++a)
            if (layout_.available[s * A + a]) state_.worth[a] = worth(a, mass, share, terms);
        state_.close(std::min(above(s, tau, size, terms), 0.0), claim_, proved);
    }

private:
    double above(Index s, double tau, double size, double terms) {
        const Index A = layout_.A, N = layout_.N;
        std::fill(loss_.begin(), loss_.end(), 0.0);
        for (Index a = 0; a < A; ++a) {
            const double x = claim_.policy[s][a];
            if (!(x > 0.0)) continue;
            for (Index i = 0; i < N; ++i)
                loss_[i] += x * own_[a * N + i] * (1.0 - (terms + double(A)) * EPSILON);
        }
        Losses at{layout_.weights, {loss_.data(), N}, {u_.data(), N}, tau, -INFINITE, INFINITE, 0.0};
        for (Index i = 0; i < N; ++i) {
            at.top = std::max(at.top, loss_[i]), at.low = std::min(at.low, loss_[i]);
            at.mean += layout_.weights[i] * loss_[i];
        }
        return kind_.above(at, size);
    }

    // Lower bound on what an action is worth under the pulled mixture, without cost.
    double worth(Index a, double mass, double share, double terms) const {
        const Index N = layout_.N;
        double total = 0.0;
        for (Index i = 0; i < N; ++i) {
            const double w = layout_.weights[i];
            const double part = share > 0.0 ? share * (z_[i] / mass) + (1.0 - share) * w : w;
            total += std::max(part, 0.0) * own_[a * N + i];
        }
        return (1.0 + (terms + double(N) + 16.0) * EPSILON) * total;
    }

    const Layout<Real>& layout_;
    const Claim& claim_;
    State<Real> state_;
    const Kind kind_{};
    std::vector<double> own_, loss_, u_, z_;
};

}  // namespace drmdp::judge
