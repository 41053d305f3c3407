// l2: C = 1/2 |z - y|^2, z(t) = (y + t u - tau)+ with tau so that z adds up to 1.
//
// With sums over the active entries {y + t u > tau} (c their number) and idle = sum y^2 of the others,
//
//     tau = (s_y + t s_u - 1)/c        while the active entries stay, for every t,
//     V = s_yu + t s_uu - tau s_u,     E = 1/2 [t^2 s_uu - 2 t tau s_u + c tau^2 + idle],
//     D = s_uu - s_u^2/c.
//
// States that are not listed have y = 0 and are active where u > tau/t: a prefix of the order of u,
// counted by a search and summed by prefix sums; listed entries of that prefix are in those sums.
//
// **Rows that are not read again.** From (t0, tau0) to (t, tau) no y + t u - tau changes by more than
// max(|tau - tau0|, |t - t0 + tau - tau0|), as -1 <= u <= 0. A pass finds the smallest
// |y + t u - tau|; while that is more, the sums stay what they are. So Newton's method for tau ends
// exactly, and rows that were read in the last round are mostly not read in the next.
//
// Below t = PROBE rounding hides which entries are active: there V and E are those of the first piece.
#pragma once

#include "pair.hpp"

namespace drmdp {

struct L2 {
    static constexpr bool POLYGON = false;
    static constexpr double PADDING = -1e300;  // never active, and finite: 0 times it is 0
    static constexpr Index KNOWN = 9;
    static constexpr Room ROOM{0, 1};
    static constexpr double PROBE = 1e-13;
    static constexpr int STEPS = 60;

    static double budget(double radius) { return 0.5 * radius * radius; }

    template <class Real>
    Answer response(const Pair<Real>& pair, double multiplier) const {
        const double t = std::max(multiplier, PROBE);
        const Index rows = pair.weights.size();
        double tau = NOT_A_NUMBER;
        for (Index i = 0; i < pair.n_rows(); ++i) {
            if (!pair.fresh) {
                tau = threshold(pair, i, t);
                const double by = tau - known(pair, TAU)[i], dt = t - known(pair, T)[i];
                if (std::max(std::fabs(by), std::fabs(dt + by)) < known(pair, NEAR)[i]) continue;
            }
            const Sums sums = settle(pair.row(i), pair, t, tau);
            keep(pair, i, sums);
            tau = sums.threshold(t);
        }
        if (pair.fresh)
            for (Index i = pair.n_rows(); i < rows; ++i) keep(pair, i, Sums{});
        struct Total {
            Part value{}, cost{}, slope{};
        };
        const auto total = over_lanes<Total>(
            rows, [&](Total& sums, Index i) __attribute__((always_inline)) {
                const Part w = load(pair.weights.at(i, WIDTH)), c = part(pair, COUNT, i);
                const Part su = part(pair, SU, i), suu = part(pair, SUU, i);
                const Part th = (part(pair, SY, i) + t * su - 1.0) / c;
                const Part squares = t * t * suu - 2.0 * t * th * su + c * th * th + part(pair, IDLE, i);
                sums.value += w * (part(pair, SYU, i) + t * suu - th * su);
                sums.cost += w * greater(squares, Part{});
                sums.slope += w * greater(suu - su * su / c, Part{});
            });
        Answer answer{multiplier, 0.5 * total.sum(&Total::cost), total.sum(&Total::value),
                      total.sum(&Total::slope)};
        if (multiplier < PROBE) {
            answer.value -= (PROBE - multiplier) * answer.slope;
            answer.cost = 0.5 * multiplier * multiplier * answer.slope;
        }
        return answer;
    }

    // Projections on the face of the top.
    template <class Real>
    Answer saturated(const Pair<Real>& pair) const {
        struct Moved {
            Part mass{}, squares{};
        };
        double cost = 0.0, tops = 0.0;
        if (pair.layout->unlisted)
            for (Index k = 0; k < pair.order->u.size() && pair.order->u[k] == 0.0; ++k) tops += 1.0;
        else
            for (double u : pair.u) tops += u == 0.0;
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const Row<Real> row = pair.row(i);
            const auto moved = row.template over<Moved>(
                [&](Moved& m, Part y, Index j) __attribute__((always_inline)) {
                    const Part p = where(load(pair.u.at(j, WIDTH)) < 0.0, y * row.scale);
                    m.mass += p;
                    m.squares += p * p;
                });
            const double mass = moved.sum(&Moved::mass);
            const double squares = moved.sum(&Moved::squares) + mass * mass / std::max(tops, 1.0);
            cost += pair.weights[i] * 0.5 * squares;
        }
        return {INFINITE, cost, 0.0, 0.0};
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order& order,
                View<double> z) const;

private:
    enum Field { COUNT, SY, SU, SUU, SYU, IDLE, NEAR, T, TAU };

    struct Sums {
        double count = 1.0, sy = 0.0, su = 0.0, suu = 0.0, syu = 0.0, idle = 0.0;
        double near = INFINITE, t = 0.0, tau = 0.0;

        double threshold(double at) const { return (sy + at * su - 1.0) / count; }
        double mass() const { return sy + t * su - count * tau; }
    };

    template <class Real>
    static View<double> known(const Pair<Real>& pair, Field field) {
        return pair.known.part(field * pair.weights.size(), pair.weights.size());
    }
    template <class Real>
    DRMDP_INLINE static Part part(const Pair<Real>& pair, Field field, Index i) {
        return load(pair.known.at(field * pair.weights.size() + i, WIDTH));
    }
    template <class Real>
    static double threshold(const Pair<Real>& pair, Index i, double t) {
        return (known(pair, SY)[i] + t * known(pair, SU)[i] - 1.0) / known(pair, COUNT)[i];
    }
    template <class Real>
    static void keep(const Pair<Real>& pair, Index i, const Sums& s) {
        const double fields[KNOWN] = {s.count, s.sy,   s.su, s.suu, s.syu,
                                      s.idle,  s.near, s.t,  s.tau};
        for (Index f = 0; f < KNOWN; ++f) known(pair, Field(f))[i] = fields[f];
    }

    // Sums of a row at t and tau.
    template <bool UNLISTED, class Real>
    static Sums read(const Row<Real>& row, View<const double> u, const Order& order, double t,
                     double tau) {
        struct Parts {
            Part count{}, sy{}, su{}, suu{}, syu{}, idle{}, near = all(INFINITE);
        };
        const auto sums = row.template over<Parts>(
            [&](Parts& s, Part y, Index j) __attribute__((always_inline)) {
                const Part p = sizeof(Real) == 4 ? y * row.scale : y;
                const Part z = load(u.at(j, WIDTH)), tz = t * z, h = p + tz - tau;
                const Mask active = h > 0.0, listed = UNLISTED ? active & (tz <= tau) : active;
                const Part mass = where(active, p), stake = where(listed, z), rest = p - mass;
                s.count += where(listed, all(1.0));
                s.sy += mass;
                s.su += stake;
                s.suu += stake * stake;
                s.syu += mass * z;
                s.idle += rest * rest;
                s.near = lesser(magnitude(h), s.near);
            });
        Sums found{sums.sum(&Parts::count), sums.sum(&Parts::sy),   sums.sum(&Parts::su),
                   sums.sum(&Parts::suu),   sums.sum(&Parts::syu),  sums.sum(&Parts::idle),
                   sums.least(&Parts::near), t, tau};
        if constexpr (UNLISTED) {
            const Index k = order.count_above(t, tau), n = order.u.size();
            if (k > 0) found.near = std::min(found.near, t * order.u[k - 1] - tau);
            if (k < n) found.near = std::min(found.near, tau - t * order.u[k]);
            found.count += double(k), found.su += order.sum1[k], found.suu += order.sum2[k];
        }
        return found;
    }

    // The largest y + t u less 1: a threshold from which Newton's method is monotone.
    template <class Real>
    static double safe_threshold(const Row<Real>& row, View<const double> u, bool unlisted,
                                 double t) {
        double highest = unlisted ? 0.0 : -INFINITE;
        for (Index j = 0; j < row.size; ++j) highest = std::max(highest, row[j] + t * u[j]);
        return highest - 1.0;
    }

    template <class Real>
    static Sums settle(const Row<Real>& row, View<const double> u, const Order& order, bool unlisted,
                       double t, double tau) {
        if (!(std::fabs(tau) < INFINITE)) tau = safe_threshold(row, u, unlisted, t);
        for (int step = 0;; ++step) {
            Sums sums = unlisted ? read<true>(row, u, order, t, tau)
                                 : read<false>(row, u, order, t, tau);
            if (step >= STEPS) return sums;  // or what is read is no number
            if (!(sums.count > 0.5)) {
                tau = safe_threshold(row, u, unlisted, t);
                continue;
            }
            const double next = sums.threshold(t);
            if (std::fabs(next - tau) < sums.near || next == tau) return sums;
            tau = next;
        }
    }
    template <class Real>
    static Sums settle(const Row<Real>& row, const Pair<Real>& pair, double t, double tau) {
        return settle(row, pair.u, *pair.order, pair.layout->unlisted, t, tau);
    }
};

template <class Real>
Beyond L2::fill(const Row<Real>& row, View<const double> u, double t, const Order& order,
                View<double> z) const {
    const bool unlisted = !order.rank.empty();
    Beyond beyond;
    t = std::min(t, LARGEST);
    const Sums sums = settle(row, u, order, unlisted, t, NOT_A_NUMBER);
    const double tau = sums.threshold(t);
    if (unlisted) beyond = {0.0, order.count_above(t, tau), t, -tau};
    for (Index j = 0; j < row.size; ++j) {
        z[j] = std::max(row[j] + t * u[j] - tau, 0.0);
        if (unlisted && t * u[j] > tau) z[j] -= t * u[j] - tau;  // counted in the prefix
    }
    return beyond;
}

}  // namespace drmdp
