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

struct Kl {
    static constexpr bool POLYGON = false;
    static constexpr double PADDING = 0.0;
    static constexpr Index KNOWN = 0;
    static constexpr Room ROOM{3, 4};
    static constexpr double FAR = 300.0;

    static double budget(double radius) { return radius; }

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        const View<double> z0 = pair.by_row(3, 0), z1 = pair.by_row(3, 1), z2 = pair.by_row(3, 2);
        const View<double> top = pair.by_row(3, 3);
        if (t <= FAR) prepare(pair, t, 0.0);
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const Row<Real> row = pair.row(i);
            top[i] = 0.0;
            if (t > FAR) prepare(pair, t, top[i] = own_top(row, pair.u));
            const Moments m = moments(pair, row);
            z0[i] = row.scale * m.mass, z1[i] = row.scale * m.first, z2[i] = row.scale * m.second;
        }
        for (Index i = pair.n_rows(); i < z0.size(); ++i)
            z0[i] = t <= 1.0 ? 0.0 : 1.0, z1[i] = z2[i] = top[i] = 0.0;
        struct Sums {
            Part value{}, cost{}, slope{};
        };
        const auto sums = over_lanes<Sums>(
            z0.size(), [&](Sums& s, Index i) __attribute__((always_inline)) {
                const Part w = load(pair.weights.at(i, WIDTH)), own = load(z0.at(i, WIDTH));
                const Part mass = t <= 1.0 ? 1.0 + own : own;
                const Part logarithm = t <= 1.0 ? log1p(own) : log(own);
                const Part v = load(z1.at(i, WIDTH)) / mass;
                s.value += w * (load(top.at(i, WIDTH)) + v);
                s.cost += w * greater(t * v - logarithm, Part{});
                s.slope += w * greater(load(z2.at(i, WIDTH)) / mass - v * v, Part{});
            });
        return {t, sums.sum(&Sums::cost), sums.sum(&Sums::value), sums.sum(&Sums::slope)};
    }

    // Rows conditioned on their own top.
    template <class Real>
    Answer saturated(const Pair<Real>& pair) const {
        double value = 0.0, cost = 0.0;
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const Row<Real> row = pair.row(i);
            const double top = own_top(row, pair.u);
            const auto mass = row.template over<PartSum>(
                [&](PartSum& s, Part y, Index j) __attribute__((always_inline)) {
                    s.sum += where(load(pair.u.at(j, WIDTH)) == top, y);
                });
            value += pair.weights[i] * top;
            cost -= pair.weights[i] * log(std::min(row.scale * mass.sum(&PartSum::sum), 1.0));
        }
        return {INFINITE, cost, value, 0.0};
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order&,
                View<double> z) const {
        const double top = own_top(row, u);
        double mass = 0.0;
        for (Index j = 0; j < row.size; ++j) {
            const double fall = std::min(u[j] - top, 0.0);
            z[j] = row[j] * (fall < 0.0 ? exp(t * fall) : 1.0);
            mass += z[j];
        }
        for (Index j = 0; j < row.size; ++j) z[j] /= mass;
        return {};
    }

private:
    // e^{t x} (less 1 up to t = 1), e^{t x} x and e^{t x} x^2 of x = u - top, at most 0.
    template <class Real>
    static void prepare(const Pair<Real>& pair, double t, double top) {
        const View<double> e0 = pair.by_entry(0), e1 = pair.by_entry(1), e2 = pair.by_entry(2);
        for (Index j = 0; j < pair.u.size(); j += WIDTH) {
            const Part x = lesser(load(pair.u.at(j, WIDTH)) - top, Part{});
            const Part below = t <= 1.0 ? expm1(t * x) : exp(t * x);
            const Part e = t <= 1.0 ? 1.0 + below : below;
            store(e0.at(j, WIDTH), below);
            store(e1.at(j, WIDTH), e * x);
            store(e2.at(j, WIDTH), e * x * x);
        }
    }

    struct Moments {
        double mass, first, second;
    };

    template <class Real>
    static Moments moments(const Pair<Real>& pair, const Row<Real>& row) {
        struct Sums {
            Part mass{}, first{}, second{};
        };
        const View<double> e0 = pair.by_entry(0), e1 = pair.by_entry(1), e2 = pair.by_entry(2);
        const auto sums = row.template over<Sums>(
            [&](Sums& s, Part y, Index j) __attribute__((always_inline)) {
                s.mass += y * load(e0.at(j, WIDTH));
                s.first += y * load(e1.at(j, WIDTH));
                s.second += y * load(e2.at(j, WIDTH));
            });
        return {sums.sum(&Sums::mass), sums.sum(&Sums::first), sums.sum(&Sums::second)};
    }
};

}  // namespace drmdp
