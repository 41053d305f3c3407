// Relative entropy: C = sum z log(z/y), z = y e^{t u}/Z with Z = sum y e^{t u}.
//
//     V = sum z u,    E = t V - log Z,    D = sum z u^2 - V^2.
//
// Up to t = 1, Z - 1 = sum y (e^{t u} - 1) is summed, so that E is off by some epsilon t and not by
// epsilon: what counts is E/t. The exponentials are those of the state; a row is three dot products
// with them. Beyond t = FAR stakes are taken below the largest that the row has seen, where otherwise
// everything might underflow. No row leaves its support.
#pragma once

#include "../elementary.hpp"
#include "pair.hpp"

namespace drmdp {

struct Kl : RowModel {
    static constexpr Room ROOM{3, 0};
    static constexpr double FAR = 300.0;

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        const View<double> e0 = pair.by_entry(0), e1 = pair.by_entry(1), e2 = pair.by_entry(2);
        if (t <= FAR) prepare(pair, t, 0.0);
        return pair.sum(t, [&](const Row<Real>& row) {
            const double top = t > FAR ? own_top(row, pair.u) : 0.0;
            if (t > FAR) prepare(pair, t, top);
            const auto [z0, z1, z2] = row_sums<3>(row, [&](Part y, Index j) DRMDP_LAMBDA {
                return Terms<3>{y * load(e0, j), y * load(e1, j), y * load(e2, j)};
            });
            const double own = row.scale * z0, mass = t <= 1.0 ? 1.0 + own : own;
            const double v = row.scale * z1 / mass, logarithm = t <= 1.0 ? log1p(own) : log(own);
            return Answer{t, std::max(t * v - logarithm, 0.0), top + v,
                          std::max(row.scale * z2 / mass - v * v, 0.0)};
        });
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order&,
                View<double> z) const {
        const double top = own_top(row, u);
        for (Index j = 0; j < row.size; ++j) {
            const double fall = std::min(u[j] - top, 0.0);
            z[j] = row[j] * (fall < 0.0 ? exp(t * fall) : 1.0);
        }
        return normalised(z);
    }

private:
    // e^{t x} (less 1 up to t = 1), e^{t x} x and e^{t x} x^2 of x = u - top, at most 0.
    template <class Real>
    static void prepare(const Pair<Real>& pair, double t, double top) {
        for (Index j = 0; j < pair.u.size(); j += WIDTH) {
            const Part x = lesser(load(pair.u, j) - top, Part{});
            const Part below = t <= 1.0 ? expm1(t * x) : exp(t * x);
            const Part e = t <= 1.0 ? 1.0 + below : below;
            store(pair.by_entry(0), j, below);
            store(pair.by_entry(1), j, e * x);
            store(pair.by_entry(2), j, e * x * x);
        }
    }

    // The largest stake that a row has seen.
    template <class Real>
    static double own_top(const Row<Real>& row, View<const double> u) {
        double top = -INFINITE;
        for (Index j = 0; j < row.size; ++j)
            if (row.y[j] > Real(0)) top = std::max(top, u[j]);
        return top;
    }
};

}  // namespace drmdp
