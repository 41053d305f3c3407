// Burg's entropy: C = sum y log(y/z), z = y/(e - t u) with e >= 0 so that z adds up to 1.
//
//     V = sum z u,   E = sum y log(e - t u),   J_k = sum y u^k/(e - t u)^2,   D = J_2 - J_1^2/J_0.
//
// 1/sum y/(e - t u) is concave and grows in e, so that Newton's method for 1 is monotone from the
// left; it begins at the larger one of y(top), as y(top)/e <= 1, and 1 + t sum y u (Jensen). Where
// nothing is seen at the top and z adds up to less than 1 even at e = 0, the rest goes to the top:
// V = -1/t, D = 1/t^2. Up to t = 1/2 the unknown is e - 1 >= -1/2: then E is off by epsilon t and not
// by epsilon. Beyond, it is e, which may be as small as y(top). C has no end: at LARGEST a row counts
// as saturated.
#pragma once

#include "../elementary.hpp"
#include "pair.hpp"

namespace drmdp {

struct Burg : RowModel {
    static constexpr double PADDING = -1.0;
    static constexpr int STEPS = 200;

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        return pair.sum(t, [&](const Row<Real>& row) {
            const Settled at = settle(row, pair.u, t);
            const double paid = row_sum(row, [&](Part y, Index j) DRMDP_LAMBDA {
                const Part seen = y > 0.0 ? at.e - t * load(pair.u, j) : all(1.0 - at.base);
                return y * (at.base == 1.0 ? log1p(seen) : log(seen));
            });
            return Answer{t, std::max(row.scale * paid, 0.0), at.value, at.slope};
        });
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order&,
                View<double> z) const {
        t = std::min(t, LARGEST);
        const Settled at = settle(row, u, t);
        double mass = 0.0;
        for (Index j = 0; j < row.size; ++j) {
            z[j] = row[j] > 0.0 ? row[j] / (at.base + (at.e - t * u[j])) : 0.0;
            mass += z[j];
        }
        return at.pops ? Beyond{std::max(1.0 - mass, 0.0)} : normalised(z);
    }

private:
    struct Settled {
        double e, base;       // e less base, which is 0 or 1
        bool pops;            // whether what is left goes to a top that was never seen
        double value, slope;
    };
    // Sums at d = base + (e - t u): y (1/d - base), y/d^2, y u/d, y u/d^2, y u^2/d^2, as stored.
    template <class Real>
    static std::array<double, 5> sums_at(const Row<Real>& row, View<const double> u, double t, double e,
                                         double base) {
        return row_sums<5>(row, [&](Part y, Index j) DRMDP_LAMBDA {
            const Part stake = load(u, j), x = e - t * stake;
            const Part r = 1.0 / (y > 0.0 ? base + x : all(1.0)), z = y * r, q = z * r;
            const Part first = q * stake;
            return Terms<5>{base == 0.0 ? z : -z * x, q, z * stake, first, first * stake};
        });
    }

    template <class Real>
    static Settled settle(const Row<Real>& row, View<const double> u, double t) {
        const auto [mean, at_top] = row_sums<2>(row, [&](Part y, Index j) DRMDP_LAMBDA {
            const Part stake = load(u, j);
            return Terms<2>{y * stake, where(stake == 0.0, y)};
        });
        const double top = row.scale * at_top, base = t <= 0.5 ? 1.0 : 0.0;
        double e = std::max(1.0 - base + t * row.scale * mean, top - base);
        if (top <= 0.0 && e <= 0.0 && base == 0.0 && row.scale * sums_at(row, u, t, 0.0, 0.0)[0] <= 1.0)
            return {0.0, 0.0, true, -1.0 / t, 1.0 / (t * t)};
        for (int step = 0;; ++step) {
            const auto [off, j0, value, j1, j2] = sums_at(row, u, t, e, base);
            const double miss = row.scale * off - (1.0 - base);  // what z adds up to, less 1
            const double higher = e + (1.0 + miss) * miss / (row.scale * j0);
            if (!(higher > e) || !(miss > 4e-16 * std::min(t, 1.0)) || step == STEPS)
                return {e, base, false, row.scale * value,
                        row.scale * std::max(j2 - j1 * j1 / j0, 0.0)};
            e = higher;
        }
    }
};

}  // namespace drmdp
