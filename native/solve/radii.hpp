// How a budget is shared among the kernels while active entries stay: the only place that knows its order.
//
//     maximise  sum_i w_i sqrt(Q_i (r_i^2 - e_i))   over   sum_i w_i r_i^p <= theta^p,
//
// where kernel i costs r_i^2 = e_i + kappa_i^2 Q_i at the multiplier kappa_i, so that r_i/kappa_i is the
// price of its radius. For p = infinity every r_i is theta.
//
// **Finite orders.** The price is mu c_i, c_i = r_i^(p-1), which reads, with an unknown n for all kernels,
//
//     log kappa_i + (p - 2) log r_i = -n,      log r_i^2 = log(e_i + kappa_i^2 Q_i),
//
// of slope 1 + (p - 2) s_i in log kappa_i, s_i = kappa_i^2 Q_i/r_i^2: between 1 and p - 1, and monotone. All
// log kappa_i and n take Newton steps at once, n such that the linearised logarithm of the budget is kept.
// Where that does not settle, n is bracketed and the kappa_i are solved for each n. There is a solution if
// sum_i w_i e_i^(p/2) < theta^p.
//
// **Touching balls.** For p near 1 the slope is near 0 where e_i = 0, and at p = 1 the r_i are free there. So
// the budget is replaced by one of order q > p that touches it from inside at radii b,
//
//     sum_i w_i (b_i/theta)^p (r_i/b_i)^q <= 1,        sum_i w_i b_i^p = theta^p,
//
// (t^(p/q) is concave): its answers are allowed, and b = r only at the optimum. Then p - 2 becomes q - 2 above,
// and (p - q) log b_i is added.
#pragma once

#include <cmath>
#include <vector>

#include "../elementary.hpp"

namespace drmdp {

// (sum_i w_i x_i^p)^(1/p), x >= 0 padded to eights; w is positive but for the padding.
inline double norm_of(double p, View<const double> x, View<const double> w) {
    double most = 0.0;
    for (Index i = 0; i < x.size(); ++i)
        if (w[i] > 0.0 && x[i] > most) most = x[i];
    if (!(most > 0.0 && p < INFINITE)) return most;
    if (p == 1.0) most = 1.0;
    const double total = part_sum(x.size(), [&](Index i) DRMDP_LAMBDA {
        const Part own = load(x, i) / most;
        return load(w, i) * (p == 1.0 ? own : pow(own, p));
    });
    return p == 1.0 ? total : most * pow(total, 1.0 / p);
}

class Radii {
public:
    static constexpr double FAR = 1e28, LEAST = 1e-60;  // no multiplier is beyond them
    std::vector<double> kappa, r;
    std::vector<double> eta;    // -d/dr_i of what the price of r_i exceeds mu c_i by
    std::vector<double> price;  // c_i, up to a factor

    explicit Radii(View<const double> weights)
        : kappa(weights.size()), r(weights.size()), eta(weights.size()), price(weights.size()),
          w_(weights), log_kappa_(weights.size()), log_q_(weights.size()), log_b_(weights.size()),
          share_(weights.size()), rise_(weights.size()), ratio_(weights.size()), off_(weights.size()) {}

    // A budget of order p, or one of order q > p that touches it at `at`. Begins with the multipliers in
    // kappa; false if the e_i alone exceed it.
    bool begin(double theta, double p, double q, View<const double> at, View<const double> e) {
        theta_ = theta, p_ = p, q_ = q, e_ = e;
        if (!(q < INFINITE)) {
            for (double own : e)
                if (!(own < theta * theta)) return false;
            return true;
        }
        const double whole = log(theta);
        const double least = part_sum(e.size(), [&](Index i) DRMDP_LAMBDA {
            const Part b = at.empty() ? all(whole) : log(load(at, i));
            const Part share = load(w_, i) * exp(p * (b - whole)), own = load(e, i);
            const Part power = exp(q * (0.5 * log(greater(own, all(1e-300))) - b));
            store(&log_b_[i], b), store(&share_[i], share);
            store(&log_kappa_[i], log(within(load(&kappa[i]), LEAST, FAR)));
            return own > 0.0 ? share * power : Part{};
        });
        return least < 1.0;
    }

    // The best radii and their multipliers at Q.
    void solve(View<const double> Q) {
        if (!(q_ < INFINITE)) return solve_separately(Q);
        bool some = false;
        for (Index i = 0; i < Q.size(); ++i) some = some || Q[i] > NOTHING;
        if (!some) {  // no price: all is at the top
            for (Index i = 0; i < Q.size(); ++i)
                kappa[i] = FAR, r[i] = std::sqrt(e_[i]), eta[i] = INFINITE, price[i] = 0.0;
            return;
        }
        for (Index i = 0; i < Q.size(); i += WIDTH) {
            const Part q = load(Q, i);
            store(&log_q_[i], q > NOTHING ? log(greater(q, all(NOTHING))) : all(ABSENT));
        }
        if (!settle_at_once(Q)) settle_one_by_one(Q);
        close(Q);
    }

private:
    static constexpr double NOTHING = 1e-300, ABSENT = -1e4;
    static constexpr int AT_ONCE = 15, LEVELS = 100, EACH = 40;

    void solve_separately(View<const double> Q) {
        for (Index i = 0; i < Q.size(); ++i) {
            const double rest = theta_ * theta_ - e_[i];
            r[i] = theta_, price[i] = 0.0, eta[i] = INFINITE;
            kappa[i] = !(rest > 0.0) ? 0.0 : Q[i] > NOTHING ? std::sqrt(rest / Q[i]) : FAR;
            kappa[i] = std::min(kappa[i], FAR);
        }
    }

    bool moves(View<const double> Q, Index i) const {
        return w_[i] > 0.0 && (Q[i] > NOTHING || e_[i] > 0.0);
    }

    // log (r_i/b_i), s_i, and what stationarity is off by without n.
    void look() {
        for (Index i = 0; i < e_.size(); i += WIDTH) {
            const Part k = load(&log_kappa_[i]), b = load(&log_b_[i]), e = load(e_, i);
            const Part line = 2.0 * k + load(&log_q_[i]), own = exp(within(line, -600.0, 600.0));
            const Mask straight = (e <= 0.0) | (line >= 600.0);
            const Part rise = 0.5 * (straight ? line : log(e + own)) - b;
            store(&rise_[i], rise);
            store(&ratio_[i], straight ? all(1.0) : own / (e + own));
            store(&off_[i], k + (q_ - 2.0) * rise + (p_ - 2.0) * b);
        }
    }

    struct Budget {
        double excess;       // (log of what is spent)/q
        double slope, bent;  // sums of omega_i s_i/rate_i, alone and times `off`, for what is spent 1
    };
    Budget budget(View<const double> Q) const {
        double most = -INFINITE;
        for (Index i = 0; i < Q.size(); ++i)
            if (moves(Q, i) && rise_[i] > most) most = rise_[i];
        const auto [spent, slope, bent] = part_sums<3>(Q.size(), [&](Index i) DRMDP_LAMBDA {
            const Mask moves = (load(w_, i) > 0.0) & ((load(Q, i) > NOTHING) | (load(e_, i) > 0.0));
            const Part power = exp(q_ * (load(&rise_[i]) - most)), s = load(&ratio_[i]);
            const Part own = where(moves, load(&share_[i]) * power), rate = own * s / (1.0 + (q_ - 2.0) * s);
            return Terms<3>{own, rate, rate * load(&off_[i])};
        });
        return {most + log(spent) / q_, slope / spent, bent / spent};
    }

    // One Newton step of every log kappa_i at n; returns the largest of them, in r_i.
    double step(View<const double> Q, double n, double most) {
        double worst = 0.0;
        for (Index i = 0; i < Q.size(); ++i) {
            if (!moves(Q, i)) continue;
            double by = -(off_[i] + n) / (1.0 + (q_ - 2.0) * ratio_[i]);
            by = std::min(std::max(by, -most), most);
            log_kappa_[i] += by;
            worst = std::max(worst, std::fabs(by) * ratio_[i]);
        }
        return worst;
    }

    double fine() const { return 1e-7 * std::min(1.0, 10.0 * (q_ - 1.0)); }

    bool settle_at_once(View<const double> Q) {
        double n = 0.0;
        for (int k = 0; k < AT_ONCE; ++k) {
            look();
            const Budget now = budget(Q);
            if (now.slope > 0.0) n = (now.excess - now.bent) / now.slope;
            if (step(Q, n, q_ > 2.0 ? 3.0 : INFINITE) < fine()) return true;
        }
        level_ = n;
        return false;
    }

    void settle_one_by_one(View<const double> Q) {
        double n = level_, low = -INFINITE, high = INFINITE;
        for (int k = 0; k < LEVELS; ++k) {
            for (int j = 0; j < EACH; ++j) {
                look();
                if (step(Q, n, INFINITE) < fine()) break;
            }
            look();
            const Budget now = budget(Q);
            (now.excess > 0.0 ? low : high) = n;
            double next = now.slope > 0.0 ? n + now.excess / now.slope
                                          : n + (now.excess > 0.0 ? 1.0 : -1.0);
            if (!(next > low && next < high))
                next = low > -INFINITE && high < INFINITE ? 0.5 * (low + high)
                       : low > -INFINITE                  ? low + 1.0
                                                          : high - 1.0;
            if (std::fabs(next - n) <= 1e-15 * (1.0 + std::fabs(n)) || std::fabs(now.excess) < 1e-13)
                return;
            n = next;
        }
    }

    void close(View<const double> Q) {
        const double whole = log(theta_);
        for (Index i = 0; i < Q.size(); i += WIDTH) {
            const Part q = load(Q, i), e = load(e_, i), b = load(&log_b_[i]);
            const Part k = within(exp(load(&log_kappa_[i])), LEAST, FAR), own = k * k * q, all_of = e + own;
            const Part rise = 0.5 * log(greater(all_of, all(1e-300)));
            const Mask bent = (own > 1e-250) & (q > NOTHING);
            store(&kappa[i], k), store(&r[i], all_of);
            store(&eta[i], bent ? (all_of + (q_ - 2.0) * own) / (k * own) : all(INFINITE));
            const Part c = exp(within((q_ - 1.0) * (rise - b) + (p_ - 1.0) * (b - whole), -600.0, 600.0));
            store(&price[i], bent ? c : Part{});
        }
        for (Index i = 0; i < Q.size(); ++i) {
            r[i] = std::sqrt(r[i]);
            if (!moves(Q, i)) kappa[i] = 1.0, r[i] = 0.0;
        }
    }

    View<const double> w_, e_;
    double theta_ = 0.0, p_ = 1.0, q_ = 1.0, level_ = 0.0;
    std::vector<double> log_kappa_, log_q_, log_b_, share_, rise_, ratio_, off_;
};

}  // namespace drmdp
