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

struct Burg {
    static constexpr bool POLYGON = false;
    static constexpr double PADDING = -1.0;
    static constexpr Index KNOWN = 0;
    static constexpr Room ROOM{0, 0};
    static constexpr int STEPS = 200;

    static double budget(double radius) { return radius; }

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        Answer answer{t, 0.0, 0.0, 0.0};
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const Row<Real> row = pair.row(i);
            const Settled settled = settle(row, pair.u, t);
            const double w = pair.weights[i], paid = row.scale * entropy(row, pair.u, t, settled);
            answer.value += w * settled.value;
            answer.slope += w * settled.slope;
            answer.cost += w * std::max(paid, 0.0);
        }
        return answer;
    }

    template <class Real>
    Answer saturated(const Pair<Real>& pair) const {
        Answer answer = response(pair, LARGEST);
        answer.t = INFINITE, answer.slope = 0.0;
        return answer;
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order&,
                View<double> z) const {
        t = std::min(t, LARGEST);
        const Settled settled = settle(row, u, t);
        double mass = 0.0;
        for (Index j = 0; j < row.size; ++j) {
            z[j] = row[j] > 0.0 ? row[j] / (settled.base + (settled.e - t * u[j])) : 0.0;
            mass += z[j];
        }
        if (settled.pops) return {std::max(1.0 - mass, 0.0)};
        for (Index j = 0; j < row.size; ++j) z[j] /= mass;
        return {};
    }

private:
    struct Settled {
        double e, base;       // e less base, which is 0 or 1
        bool pops;            // whether what is left goes to a top that was never seen
        double value, slope;
    };
    struct Sums {
        double off, j0, value, j1, j2;
    };

    // Sums at d = base + (e - t u): y (1/d - base), y/d^2, y u/d, y u/d^2, y u^2/d^2, as stored.
    template <class Real>
    static Sums sums_at(const Row<Real>& row, View<const double> u, double t, double e, double base) {
        struct Parts {
            Part off{}, j0{}, value{}, j1{}, j2{};
        };
        const auto sums = row.template over<Parts>(
            [&](Parts& s, Part y, Index j) __attribute__((always_inline)) {
                const Part stake = load(u.at(j, WIDTH)), x = e - t * stake;
                const Part r = 1.0 / (y > 0.0 ? base + x : all(1.0)), z = y * r, q = z * r;
                const Part first = q * stake;
                s.off += base == 0.0 ? z : -z * x;
                s.value += z * stake;
                s.j0 += q;
                s.j1 += first;
                s.j2 += first * stake;
            });
        return {sums.sum(&Parts::off), sums.sum(&Parts::j0), sums.sum(&Parts::value),
                sums.sum(&Parts::j1), sums.sum(&Parts::j2)};
    }

    template <class Real>
    static Settled settle(const Row<Real>& row, View<const double> u, double t) {
        struct Parts {
            Part first{}, top{};
        };
        const auto begin = row.template over<Parts>(
            [&](Parts& s, Part y, Index j) __attribute__((always_inline)) {
                const Part stake = load(u.at(j, WIDTH));
                s.first += y * stake;
                s.top += where(stake == 0.0, y);
            });
        const double top = row.scale * begin.sum(&Parts::top), base = t <= 0.5 ? 1.0 : 0.0;
        double e = 1.0 - base + t * row.scale * begin.sum(&Parts::first);
        e = std::max(e, top - base);
        Sums s{};
        if (top <= 0.0 && e <= 0.0 && base == 0.0) {
            s = sums_at(row, u, t, 0.0, 0.0);
            if (row.scale * s.off <= 1.0) return {0.0, 0.0, true, -1.0 / t, 1.0 / (t * t)};
        }
        for (int step = 0; step < STEPS; ++step) {
            s = sums_at(row, u, t, e, base);
            const double miss = row.scale * s.off - (1.0 - base);  // what z adds up to, less 1
            const double higher = e + (1.0 + miss) * miss / (row.scale * s.j0);
            if (!(higher > e) || !(miss > 4e-16 * std::min(t, 1.0))) break;
            e = higher;
        }
        return {e, base, false, row.scale * s.value,
                row.scale * std::max(s.j2 - s.j1 * s.j1 / s.j0, 0.0)};
    }

    // sum y log(e - t u), as stored.
    template <class Real>
    static double entropy(const Row<Real>& row, View<const double> u, double t, const Settled& at) {
        const auto total = row.template over<PartSum>(
            [&](PartSum& s, Part y, Index j) __attribute__((always_inline)) {
                const Part x = at.e - t * load(u.at(j, WIDTH));
                const Part seen = y > 0.0 ? x : all(1.0 - at.base);
                s.sum += y * (at.base == 1.0 ? log1p(seen) : log(seen));
            });
        return total.sum(&PartSum::sum);
    }
};

}  // namespace drmdp
