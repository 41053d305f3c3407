// Relative entropy:   h = log sum y e^{t u},     C = sum y phi(r),  r = z/y,  phi(r) = r log r - r + 1.
//
// **Rounding.** Up to t = 1, h = log(1 + s), s = sum y (e^{t u} - 1), whose terms are off by n e,
// relatively; 1 + s >= 1/e, so h is off by 3 n e sum|terms|. Beyond, with T the largest stake seen,
// h = t T + log sum y e^{t (u - T)}: the exponents are off by 2 e t, so the log by (n + 2 t) e + 2 e |log|,
// and t T by e t. In C, d = r - 1 is off by (n + 4) e r, and phi grows by |log r| per unit of r;
// computing it takes 4 e (r |log r| + |d|), and adding up n e of the terms.
//
// **Underflow.** A term y e^{t (u - T)} is off by 2^-1073, which the sum is raised by. C falls in y < z and
// is taken at the least that y can be; where that is nothing known above 0, or z/y overflows, y is a
// product of two doubles at least, and -log y at most FAR.
#pragma once

#include "../../elementary.hpp"
#include "row_proof.hpp"

namespace drmdp::judge {

class Kl : public Mixed<Kl> {
public:
    using Mixed<Kl>::Mixed;
    static double budget(double radius) { return radius; }

    template <class Real>
    Priced dual(const SeenRow<Real>& row, double t, double) const {
        const double n = row.roundings(), top = t <= 1.0 ? 0.0 : own_top(row);
        const double total = row.scale * block_sum(row.K, [&](Index j) {
            if (!(row.raw(j) > 0.0)) return 0.0;
            return row.raw(j) * (t <= 1.0 ? expm1(t * row.u[j]) : exp(t * (row.u[j] - top)));
        });
        if (t <= 1.0) return {log1p(total) - 3.0 * n * EPSILON * total};
        const double logarithm = log(total + 0x1p-1072 * double(row.K + 1));
        return {t * top + logarithm + EPSILON * (n + 4.0 * t + 2.0 * std::fabs(logarithm))};
    }

    template <class Real>
    double point(const SeenRow<Real>& row, double t, View<double> z) const {
        const double top = own_top(row);
        double seen = 0.0;
        for (Index j = 0; j < row.K; ++j) seen += row.u[j] >= top - FLAT ? row.raw(j) : 0.0;
        const double raised = seen < 1e-100 ? 600.0 : 0.0;  // what is divided by its sum must have one
        for (Index j = 0; j < row.K; ++j) {
            const double fall = row.u[j] < top - FLAT ? t * (row.u[j] - top) : 0.0;
            z[j] = row.raw(j) > 0.0 ? row[j] * exp(fall + raised) : 0.0;
        }
        return 0.0;
    }

    template <class Real>
    double cost(const SeenRow<Real>& row, View<const double> z, double top, double mass) const {
        const double n = row.roundings();
        if (top > 0.0) return INFINITE;
        const double total = block_sum(row.K, [&](Index j) {
            if (!(row.raw(j) > 0.0)) return z[j] > 0.0 ? INFINITE : 0.0;
            const double p = row.least(j), d = p > 0.0 ? (z[j] / mass - p) / p : INFINITE;
            if (d == INFINITE) return FAR * (z[j] / mass);
            const double logarithm = d > -1.0 ? log1p(d) : 0.0, each = (1.0 + d) * logarithm - d;
            const double moved = (n + 8.0) * (1.0 + d) * std::fabs(logarithm) + 4.0 * std::fabs(d);
            return p * (each + EPSILON * (moved + n * each));
        });
        return total + row.lost();
    }

private:
    static constexpr double FAR = 1500.0;
};

}  // namespace drmdp::judge
