// l2: C = 1/2 |z - y|^2, z(t) = (y + t u - tau)+ with tau so that z adds up to 1.
//
// With sums over the active entries {y + t u > tau} (c their number), and over the idle ones lost = sum y
// and idle = sum y^2, what the active ones gain is what the idle ones lose. While the active entries stay,
// for every t,
//
//     tau = (t s_u - lost)/c,    V = V(0) + t D,    |z - y|^2 = e + t^2 D,
//     D = s_uu - s_u^2/c,        V(0) = s_yu + lost s_u/c,        e = lost^2/c + idle.
//
// No digits are lost in any of them, however small t is.
//
// States that are not listed have y = 0 and are active where u > tau/t: a prefix of the order of u,
// counted by a search and summed by prefix sums; listed entries of that prefix are in those sums.
//
// **Rows that are not read again.** From (t0, tau0) to (t, tau) no y + t u - tau changes by more than
// max(|tau - tau0|, |t - t0 + tau - tau0|), as -1 <= u <= 0. A pass finds the smallest
// |y + t u - tau|; while that is more, the sums stay what they are. So Newton's method for tau ends
// exactly, and rows that were read in the last round are mostly not read in the next.
#pragma once

#include "pair.hpp"

namespace drmdp {

struct L2 : RowModel {
    static constexpr double PADDING = -1e300;  // never active, and finite: 0 times it is 0
    static constexpr Index KNOWN = 9;
    static constexpr Room ROOM{0, 2};
    static constexpr int STEPS = 60;

    static double budget(double radius) { return 0.5 * radius * radius; }

    // What stays of a row while its active entries do: V = value + t slope, |z - y|^2 = cost + t^2 slope.
    struct Piece {
        double value, cost, slope;
    };

    // All rows of a pair at multipliers of their own; changed(i, piece) hears of those that are read.
    template <class Real, class Changed>
    static void visit(const Pair<Real>& pair, View<const double> times, Changed changed) {
        const Index rows = pair.weights.size();
        const View<double> farther = pair.by_row(0, 1);
        if (pair.fresh)
            for (Index i = pair.n_rows(); i < rows; ++i) keep(pair, i, Sums{});
        else
            for (Index i = 0; i < rows; i += WIDTH) {
                const Part t = load(times.at(i, WIDTH));
                const Part by = (t * part(pair, SU, i) - part(pair, LOST, i)) / part(pair, COUNT, i) -
                                part(pair, TAU, i);
                const Part more = magnitude(t - part(pair, T, i) + by);
                store(farther.at(i, WIDTH), greater(magnitude(by), more) - part(pair, NEAR, i));
            }
        double slope = NOT_A_NUMBER;  // of the threshold in t, in the row before
        for (Index i = 0; i < pair.n_rows(); ++i) {
            const double t = times[i];
            if (!pair.fresh && farther[i] < 0.0) continue;
            const double guess = pair.fresh ? slope * t : threshold(pair, i, t);
            const Sums sums = settle(pair.row(i), pair, t, guess);
            keep(pair, i, sums);
            slope = sums.threshold(t) / t;
            changed(i, sums.piece());
        }
    }

    template <class Real>
    Answer response(const Pair<Real>& pair, double t) const {
        const Index rows = pair.weights.size();
        const View<double> times = pair.by_row(0, 0);
        for (double& own : times) own = t;
        visit(pair, times, [](Index, const Piece&) {});
        const auto [value, cost, slope] = part_sums<3>(rows, [&](Index i) DRMDP_LAMBDA {
            const Part w = load(pair.weights, i), c = part(pair, COUNT, i);
            const Part su = part(pair, SU, i), lost = part(pair, LOST, i);
            const Part d = greater(part(pair, SUU, i) - su * su / c, Part{});
            return Terms<3>{w * (part(pair, SYU, i) + lost * su / c + t * d),
                            w * (t * t * d + lost * lost / c + part(pair, IDLE, i)), w * d};
        });
        return {t, 0.5 * cost, value, slope};
    }

    template <class Real>
    Beyond fill(const Row<Real>& row, View<const double> u, double t, const Order& order,
                View<double> z);

private:
    double slope_ = NOT_A_NUMBER;  // of the threshold in t, in the row that was filled last

    enum Field { COUNT, LOST, SU, SUU, SYU, IDLE, NEAR, T, TAU };

    struct Sums {
        double count = 1.0, lost = 0.0, su = 0.0, suu = 0.0, syu = 0.0, idle = 0.0;
        double near = INFINITE, t = 0.0, tau = 0.0;

        double threshold(double at) const { return (at * su - lost) / count; }
        Piece piece() const {
            return {syu + lost * su / count, lost * lost / count + idle,
                    std::max(suu - su * su / count, 0.0)};
        }
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
        return (t * known(pair, SU)[i] - known(pair, LOST)[i]) / known(pair, COUNT)[i];
    }
    template <class Real>
    static void keep(const Pair<Real>& pair, Index i, const Sums& s) {
        const double fields[KNOWN] = {s.count, s.lost, s.su, s.suu, s.syu,
                                      s.idle,  s.near, s.t,  s.tau};
        for (Index f = 0; f < KNOWN; ++f) known(pair, Field(f))[i] = fields[f];
    }

    // Sums of a row at t and tau.
    template <bool UNLISTED, class Real>
    static Sums read(const Row<Real>& row, View<const double> u, const Order& order, double t,
                     double tau) {
        struct Parts {
            Part count{}, lost{}, su{}, suu{}, syu{}, idle{}, near = all(INFINITE);
        };
        const auto sums = row.template over<Parts>(
            [&](Parts& s, Part y, Index j) DRMDP_LAMBDA {
                const Part p = sizeof(Real) == 4 ? y * row.scale : y;
                const Part z = load(u, j), tz = t * z, h = p + tz - tau;
                const Mask active = h > 0.0, listed = UNLISTED ? active & (tz <= tau) : active;
                const Part mass = where(active, p), stake = where(listed, z), rest = p - mass;
                s.count += where(listed, all(1.0));
                s.lost += rest;
                s.su += stake;
                s.suu += stake * stake;
                s.syu += mass * z;
                s.idle += rest * rest;
                s.near = lesser(magnitude(h), s.near);
            });
        Sums found{sums.sum(&Parts::count), sums.sum(&Parts::lost),  sums.sum(&Parts::su),
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

    // The largest y + t u less 1, or the mean of t u over the listed states and the k highest, whichever is
    // highest: the threshold is no lower, but for states that are both.
    template <class Real>
    static double first_threshold(const Row<Real>& row, View<const double> u, const Order& order,
                                  bool unlisted, double t) {
        double highest = unlisted ? 0.0 : -INFINITE, total = 0.0;
        for (Index j = 0; j < row.size; ++j) {
            highest = std::max(highest, row[j] + t * u[j]);
            total += u[j];
        }
        double mean = total / double(row.size);
        if (unlisted)
            for (Index k = 1; k <= 4 * row.size && k < order.u.size(); k *= 2)
                mean = std::max(mean, (total + order.sum1[k]) / double(row.size + k));
        return std::max(highest - 1.0, t * mean);
    }

    template <class Real>
    static Sums settle(const Row<Real>& row, View<const double> u, const Order& order, bool unlisted,
                       double t, double tau) {
        if (!(std::fabs(tau) < INFINITE)) tau = first_threshold(row, u, order, unlisted, t);
        for (int step = 0;; ++step) {
            Sums sums = unlisted ? read<true>(row, u, order, t, tau)
                                 : read<false>(row, u, order, t, tau);
            if (step >= STEPS) return sums;  // or what is read is no number
            if (!(sums.count > 0.5)) {
                tau = first_threshold(row, u, order, unlisted, t);
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
                View<double> z) {
    const bool unlisted = !order.rank.empty();
    Beyond beyond;
    t = std::min(t, LARGEST);
    const Sums sums = settle(row, u, order, unlisted, t, slope_ * t);
    const double tau = sums.threshold(t);
    slope_ = tau / t;
    if (unlisted) beyond = {0.0, order.count_above(t, tau), t, -tau};
    for (Index j = 0; j < row.size; ++j) {
        z[j] = std::max(row[j] + t * u[j] - tau, 0.0);
        if (unlisted && t * u[j] > tau) z[j] -= t * u[j] - tau;  // counted in the prefix
    }
    return beyond;
}

}  // namespace drmdp
