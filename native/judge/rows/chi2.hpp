// Pearson's chi-square:   h <= eta + sum y g(t u - eta) for every eta,  g(d) = d + d^2/2 above -1 and
// -1/2 below,     C = 1/2 sum y d^2,  d = z/y - 1.
//
// **Rounding.** d = t u - eta is off by e (t |u| + |eta|), and g grows by at most 1 + |d| per unit; terms
// are off by n e, relatively, besides. In C, d is off by (n + 4) e (1 + |d|), and y d^2, added up, by 2 n e,
// relatively: d is raised by both.
//
// **Underflow.** C falls in y < z and is taken at the least that y can be; where that is nothing known above
// 0, a z of NOTHING is taken for 0, which is worth as much, and a larger one costs what nobody knows.
#pragma once

#include "row_proof.hpp"

namespace drmdp::judge {

class Chi2 : public Mixed<Chi2> {
public:
    using Mixed<Chi2>::Mixed;
    static double budget(double radius) { return 0.5 * radius; }

    template <class Real>
    Priced dual(const SeenRow<Real>& row, double t, double) const {
        const double n = row.roundings(), eta = threshold(row, t);
        const double total = block_sum(row.K, [&](Index j) {
            return row.raw(j) * gain(t * row.u[j] - eta);
        });
        const double size = block_sum(row.K, [&](Index j) {
            const double stake = t * row.u[j], d = stake - eta;
            const double moved = d > -1.5 ? 1.0 + std::fabs(d) : 0.0;
            return row.raw(j) * (n * std::fabs(gain(d)) +
                                 moved * 2.0 * (std::fabs(stake) + std::fabs(eta)));
        });
        return {eta + row.scale * total + EPSILON * (4.0 * std::fabs(eta) + row.scale * size)};
    }

    template <class Real>
    double point(const SeenRow<Real>& row, double t, View<double> z) const {
        const double top = own_top(row);
        double mass = 0.0, mean = 0.0;
        if (t < INFINITE) {
            const double eta = threshold(row, t);
            for (Index j = 0; j < row.K; ++j)
                if (row.raw(j) > 0.0 && 1.0 + t * row.u[j] > eta)
                    mass += row[j], mean += row[j] * (row.u[j] - top);
        }
        for (Index j = 0; j < row.K; ++j) {
            const double below = row.u[j] < top - FLAT ? row.u[j] - top : 0.0;
            double ratio = below == 0.0 ? 1.0 : 0.0;
            if (mass > 0.0) ratio = std::max(1.0 / mass + t * (below - mean / mass), 0.0);
            z[j] = row.raw(j) > 0.0 ? row[j] * ratio : 0.0;
        }
        return 0.0;
    }

    template <class Real>
    double cost(const SeenRow<Real>& row, View<const double> z, double top, double mass) const {
        const double n = row.roundings();
        if (top > 0.0) return INFINITE;
        const double total = block_sum(row.K, [&](Index j) {
            if (!(row.raw(j) > 0.0)) return z[j] > 0.0 ? INFINITE : 0.0;
            const double p = row.least(j), far = std::fabs(z[j] / mass - p) / p;
            if (!(p > 0.0)) return z[j] > NOTHING * mass ? INFINITE : 0.0;
            const double d = far + 2.0 * (n + 4.0) * EPSILON * (1.0 + far);
            return p * d * d;
        });
        return 0.5 * total + row.lost();
    }

private:
    static constexpr double NOTHING = 1e-280;

    static double gain(double d) { return d > -1.0 ? d + 0.5 * d * d : -0.5; }

    // An eta at which about as much is lost as is gained; it only grows, and so it is found.
    template <class Real>
    static double threshold(const SeenRow<Real>& row, double t) {
        double eta = -INFINITE;
        Index seen = -1;
        while (true) {
            Index count = 0;
            double mass = 0.0, first = 0.0;
            for (Index j = 0; j < row.K; ++j)
                if (row.raw(j) > 0.0 && 1.0 + t * row.u[j] > eta)
                    ++count, mass += row[j], first += row[j] * row.u[j];
            if ((seen >= 0 && seen <= count) || count == 0) return eta;  // more than before: rounding
            eta = t * (first / mass) + (seen >= 0 ? 1.0 - 1.0 / mass : 0.0);
            seen = count;
        }
    }
};

}  // namespace drmdp::judge
