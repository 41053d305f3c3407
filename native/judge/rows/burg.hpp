// Burg's entropy:   h <= e - 1 - sum y log(e - t u) for every e > 0, or e = 0 where nothing is seen at the
// top,     C = sum y (d - log(1 + d)) + (what is new),  d = z/y - 1.
//
// **Rounding.** Up to t = 1/2 the bound is f - sum y log(1 + x), f = e - 1, x = f - t u, which is off by
// 2 e (|f| + t |u|), and the log grows by 1/(1 + x) per unit; beyond it is taken as it stands, where the
// argument is off by 2 e, relatively, as its terms have one sign. In C, d is off by (n + 4) e (1 + d),
// which moves d - log(1 + d) by |d|/(1 + d) per unit; where z is below y/2 that holds of z/y, of which the
// log is taken, and not of 1 + d as computed. Terms, added up, are off by n e of themselves besides. What is new is off
// by n e of itself: it adds up to -sum y d <= sum y |d|, of which n e is left for it.
#pragma once

#include "../../elementary.hpp"
#include "row_proof.hpp"

namespace drmdp::judge {

class Burg : public Mixed<Burg> {
public:
    using Mixed<Burg>::Mixed;
    static double budget(double radius) { return radius; }

    template <class Real>
    Priced dual(const SeenRow<Real>& row, double t, double) const {
        const double n = row.roundings(), base = t <= 0.5 ? 1.0 : 0.0;
        const auto stake = [&](Index j) { return row.u[j]; };
        const double f = threshold(row, t, base, stake);
        const auto logarithm = [&](double x) { return base == 1.0 ? log1p(x) : log(x); };
        const double total = block_sum(row.K, [&](Index j) {
            return row.raw(j) > 0.0 ? row.raw(j) * logarithm(f - t * row.u[j]) : 0.0;
        });
        const double size = block_sum(row.K, [&](Index j) {
            if (!(row.raw(j) > 0.0)) return 0.0;
            const double x = f - t * row.u[j];
            const double moved =
                base == 1.0 ? 4.0 * (std::fabs(f) - t * row.u[j]) / (1.0 + x) : 4.0;
            return row.raw(j) * (n * std::fabs(logarithm(x)) + moved);
        });
        const double margin = 4.0 * (std::fabs(f) + 1.0 - base) + row.scale * size;
        return {f - (1.0 - base) - row.scale * total + EPSILON * margin};
    }

    template <class Real>
    double point(const SeenRow<Real>& row, double t, View<double> z) const {
        t = std::min(t, ENOUGH);
        const double base = t <= 0.5 ? 1.0 : 0.0;
        const auto stake = [&](Index j) { return row.u[j] < -FLAT ? row.u[j] : 0.0; };
        const double f = threshold(row, t, base, stake);
        double mass = 0.0;
        for (Index j = 0; j < row.K; ++j) {
            z[j] = row.raw(j) > 0.0 ? row[j] / (base + (f - t * stake(j))) : 0.0;
            mass += z[j];
        }
        return f <= -base ? std::max(1.0 - mass, 0.0) : 0.0;
    }

    template <class Real>
    double cost(const SeenRow<Real>& row, View<const double> z, double top, double mass) const {
        const double n = row.roundings();
        const double total = block_sum(row.K, [&](Index j) {
            if (!(row.raw(j) > 0.0)) return z[j] / mass;
            const double p = row[j], ratio = z[j] / mass / p, d = (z[j] / mass - p) / p;
            if (!(ratio > 0.0)) return INFINITE;
            const double logarithm = ratio > 0.5 ? log1p(d) : log(ratio), each = d - logarithm;
            const double moved = (2.0 * n + 8.0) * std::fabs(d) + 4.0 * std::fabs(logarithm);
            return p * (each + EPSILON * (moved + n * each));
        });
        return top / mass + total;
    }

private:
    static constexpr double ENOUGH = 1e14;  // a larger price buys nothing
    static constexpr int STEPS = 200;

    struct Excess {
        double off, fall;  // what z adds up to, less 1, and how fast that falls in e
    };
    template <class Real, class Stake>
    static Excess excess(const SeenRow<Real>& row, double t, double f, double base, Stake stake) {
        double total = 0.0, fall = 0.0;
        for (Index j = 0; j < row.K; ++j) {
            if (!(row.raw(j) > 0.0)) continue;
            const double x = f - t * stake(j), d = base + x;
            total += row[j] * ((base == 0.0 ? 1.0 : -x) / d);
            fall += row[j] / d / d;
        }
        return {total - (1.0 - base), fall};
    }

    // An e at which z adds up to about 1, less base, from the left by Newton's method for 1/sum z, which
    // is concave.
    template <class Real, class Stake>
    static double threshold(const SeenRow<Real>& row, double t, double base, Stake stake) {
        double low = 0.0, top = 0.0;
        for (Index j = 0; j < row.K; ++j) {
            low += row[j] * stake(j);
            top += stake(j) == 0.0 ? row[j] : 0.0;
        }
        double f = std::max(std::max(1.0 - base + t * low, top - base), -base);
        if (top <= 0.0) {
            if (f <= -base && !(excess(row, t, -base, base, stake).off > 0.0)) return -base;
            f = std::max(f, 1e-300 - base);
        }
        for (int step = 0; step < STEPS; ++step) {
            const Excess at = excess(row, t, f, base, stake);
            const double higher = f + (1.0 + at.off) * at.off / at.fall;
            if (!(higher > f)) break;
            f = higher;
        }
        return f;
    }
};

}  // namespace drmdp::judge
