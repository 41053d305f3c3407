// Pearson's chi-square: C = 1/2 sum (z - y)^2/y, z = y (1 + t u - eta)+ with eta so that z adds up to 1.
//
// With P and c the mass and the mean stake of the active entries {1 + t u > eta}, and
// Q = sum y (u - c)^2 over them,
//
//     z = y (1/P + t (u - c)),    V = c + t Q,    E = 1/2 [t^2 Q + (1 - P)/P],    D = Q,
//
// in which nothing cancels; 1 - P is summed over the others. From all entries being active eta only
// grows, and the active ones become fewer until they stay. Beyond t = NEAR, Q takes a pass of its
// own; before, it is sum y u^2 - P c^2. No row leaves its support.
#pragma once

#include "pair.hpp"

namespace drmdp {

struct Chi2 {
    static constexpr bool POLYGON = false;
    static constexpr double PADDING = -1.0;
    static constexpr Index KNOWN = 0;
    static constexpr Room ROOM{0, 0};
    static constexpr double NEAR = 16.0;

    static double budget(double radius) { return 0.5 * radius; }

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        Answer answer{t, 0.0, 0.0, 0.0};
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const Settled row = settle(pair.row(i), pair.u, t);
            const double w = pair.weights[i];
            answer.value += w * (row.centre + t * row.spread);
            answer.cost += w * 0.5 * (t * t * row.spread + row.idle / row.mass);
            answer.slope += w * row.spread;
        }
        return answer;
    }

    // Rows conditioned on their own top.
    template <class Real>
    Answer saturated(const Pair<Real>& pair) const {
        Answer answer{INFINITE, 0.0, 0.0, 0.0};
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const Row<Real> row = pair.row(i);
            const double top = own_top(row, pair.u);
            const Active sums = active(row, pair.u, std::nextafter(top, -INFINITE));
            answer.value += pair.weights[i] * top;
            answer.cost += pair.weights[i] * 0.5 * sums.idle / sums.mass;
        }
        return answer;
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order&,
                View<double> z) const {
        const double top = own_top(row, u);
        Settled settled{1.0, top, 0.0, 0.0};
        if (t < INFINITE) settled = settle(row, u, t);
        double mass = 0.0;
        for (Index j = 0; j < row.size; ++j) {
            double ratio = u[j] == top ? 1.0 : 0.0;
            if (t < INFINITE)
                ratio = std::max(1.0 / settled.mass + t * (u[j] - settled.centre), 0.0);
            z[j] = row[j] > 0.0 ? row[j] * ratio : 0.0;
            mass += z[j];
        }
        for (Index j = 0; j < row.size; ++j) z[j] /= mass;
        return {};
    }

private:
    struct Active {
        double mass, first, second, idle;  // sum y, y u, y u^2 over the active; y over the others
    };
    struct Settled {
        double mass, centre, spread, idle;  // P, c, Q, 1 - P
    };

    template <class Real>
    static Active active(const Row<Real>& row, View<const double> u, double cut) {
        struct Sums {
            Part mass{}, first{}, second{}, idle{};
        };
        const auto sums = row.template over<Sums>(
            [&](Sums& s, Part y, Index j) __attribute__((always_inline)) {
                const Part stake = load(u.at(j, WIDTH)), own = where(stake > cut, y);
                const Part first = own * stake;
                s.idle += y - own;
                s.mass += own;
                s.first += first;
                s.second += first * stake;
            });
        return {sums.sum(&Sums::mass), sums.sum(&Sums::first), sums.sum(&Sums::second),
                sums.sum(&Sums::idle)};
    }

    template <class Real>
    static double spread(const Row<Real>& row, View<const double> u, double cut, double centre) {
        const auto sums = row.template over<PartSum>(
            [&](PartSum& s, Part y, Index j) __attribute__((always_inline)) {
                const Part stake = load(u.at(j, WIDTH)), off = stake - centre;
                s.sum += where(stake > cut, y) * off * off;
            });
        return sums.sum(&PartSum::sum);
    }

    template <class Real>
    static Settled settle(const Row<Real>& row, View<const double> u, double t) {
        double cut = -INFINITE;
        while (true) {
            const Active sums = active(row, u, cut);
            const double centre = sums.first / sums.mass;
            const double higher = centre - 1.0 / (t * row.scale * sums.mass);
            if (!(higher > std::max(cut, -1.0))) {
                const double wide = t <= NEAR ? sums.second - sums.first * centre
                                              : spread(row, u, cut, centre);
                return {row.scale * sums.mass, centre, row.scale * std::max(wide, 0.0),
                        row.scale * sums.idle};
            }
            cut = higher;
        }
    }
};

}  // namespace drmdp
