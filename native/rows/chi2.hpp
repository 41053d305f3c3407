// Pearson's chi-square: C = 1/2 sum (z - y)^2/y, z = y (1 + t u - eta)+ with eta so that z adds up to 1.
//
// With P and c the mass and the mean stake of the active entries {1 + t u > eta}, and
// Q = sum y (u - c)^2 over them,
//
//     z = y (1/P + t (u - c)),    V = c + t Q,    E = 1/2 [t^2 Q + (1 - P)/P],    D = Q,
//
// in which nothing cancels; 1 - P is summed over the others. From all entries being active eta only
// grows, and the active ones become fewer until they stay. Beyond t = NEAR, Q takes a pass of its
// own; before, it is sum y u^2 - P c^2. At LARGEST the active ones are equal. No row leaves its support.
#pragma once

#include "pair.hpp"

namespace drmdp {

struct Chi2 : RowModel {
    static constexpr double PADDING = -1.0;
    static constexpr double NEAR = 16.0;

    static double budget(double radius) { return 0.5 * radius; }

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        return pair.sum(t, [&](const Row<Real>& row) {
            const Settled at = settle(row, pair.u, t);
            return Answer{t, 0.5 * (t * t * at.spread + at.idle / at.mass), at.centre + t * at.spread,
                          at.spread};
        });
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order&,
                View<double> z) const {
        t = std::min(t, LARGEST);
        const Settled at = settle(row, u, t);
        for (Index j = 0; j < row.size; ++j)
            z[j] = row[j] > 0.0 ? row[j] * std::max(1.0 / at.mass + t * (u[j] - at.centre), 0.0) : 0.0;
        return normalised(z);
    }

private:
    struct Settled {
        double mass, centre, spread, idle;  // P, c, Q, 1 - P
    };

    template <class Real>
    static Settled settle(const Row<Real>& row, View<const double> u, double t) {
        double cut = -INFINITE;
        while (true) {
            const auto [mass, first, second, idle] = row_sums<4>(row, [&](Part y, Index j) DRMDP_LAMBDA {
                const Part stake = load(u, j), own = where(stake > cut, y), times = own * stake;
                return Terms<4>{own, times, times * stake, y - own};
            });
            const double centre = first / mass, higher = centre - 1.0 / (t * row.scale * mass);
            if (!(higher > std::max(cut, -1.0))) {
                double wide = t < LARGEST ? second - first * centre : 0.0;
                if (t > NEAR && t < LARGEST) wide = spread(row, u, cut, centre);
                return {row.scale * mass, centre, row.scale * std::max(wide, 0.0), row.scale * idle};
            }
            cut = higher;
        }
    }

    template <class Real>
    static double spread(const Row<Real>& row, View<const double> u, double cut, double centre) {
        return row_sum(row, [&](Part y, Index j) DRMDP_LAMBDA {
            const Part stake = load(u, j), off = stake - centre;
            return where(stake > cut, y) * off * off;
        });
    }
};

}  // namespace drmdp
