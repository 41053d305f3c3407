// One row of a projection: the threshold alpha at which what it gains is what it loses.
//
// The row is c, what the point asks for is the displacement d = z - c, and the projection is c + e with
//
//     l1, price m:    e = d - alpha - m where positive, max(d - alpha + m, -c) where negative, else 0
//     l2, share s:    e = max(s d - alpha, -c)
//     linf, radius r: e = min(max(d - alpha, -min(r, c)), r)
//
// and alpha so that sum e = 0. The sum falls with alpha and is linear while no entry passes a bend. So
// Newton's method is exact as soon as its step is shorter than the way of every entry to its next bend,
// which a pass over the row finds too: from a good guess one pass is all. A bracket guards it.
//
// What alpha lacks (`shift`) is kept apart: for large points it is less than the rounding of alpha.
#pragma once

#include <algorithm>
#include <cmath>

#include "../lanes.hpp"

namespace drmdp::prox {

constexpr double ROUNDING = 4e-16;
constexpr double FARTHEST = 1e150;
constexpr double BEHIND = -1e300;  // d behind a row: never moves, as c = 0 there
constexpr int PASSES = 200;

// Padded to eights.
struct Displaced {
    double* d = nullptr;
    double* c = nullptr;
    Index size = 0, padded = 0;
    double top = 0.0, bottom = 0.0, mean = 0.0;  // of d
    double peak = 0.0;                           // largest c + d
    double alpha = NOT_A_NUMBER;                 // none yet
    double shift = 0.0, rate = 0.0;              // what alpha lacks; how it changes with the parameter
    double gain = 1.0, loss = 1.0;               // factors of e: gains and losses are equal
    bool still = false;                          // not displaced: the point is inside
};

// What a row has at its parameter; see each norm.
struct RowAnswer {
    double value = 0.0, slope = 0.0, noise = 0.0;
    double room = 0.0;  // how far the parameter may change before an entry passes a bend
};

// value |e|_1, slope -d|e|_1/dm = 4 n+ n-/(n+ + n-), where n+ entries gain and n- lose less than all.
struct L1 {
    struct Sums {
        Part up{}, down{}, gaining{}, losing{}, near = all(INFINITE);
    };
    struct Read {
        double excess, moving, mass, near, odd, product;
    };
    static constexpr bool SQUARES = false;

    static double parameter(double price) { return price; }
    static double first(const Displaced& row, double) { return row.mean; }
    static double least(const Displaced& row, double m) {
        return std::max(row.bottom + m, row.top - m - 1.0);
    }
    static double most(const Displaced& row, double m) { return row.top - m; }
    static double break_after(const Displaced&, double, double, double) { return NOT_A_NUMBER; }
    static double size_of(double alpha, double m) { return std::fabs(alpha) + m; }
    static double speed(const Displaced& row) { return 1.0 + std::fabs(row.rate); }

    static Read read(const Displaced& row, double m, double alpha) {
        const auto sums = over_lanes<Sums>(
            row.padded, [&](Sums& s, Index j) __attribute__((always_inline)) {
                const Part c = load(row.c + j), e = load(row.d + j) - alpha;
                const Part gain = e - m, loss = -m - e, left = loss - c;
                s.up += greater(gain, Part{});
                s.gaining += where(gain > 0.0, all(1.0));
                s.down += lesser(greater(loss, Part{}), c);
                s.losing += where((loss > 0.0) & (left < 0.0), all(1.0));
                s.near = lesser(lesser(magnitude(gain), s.near),
                                lesser(magnitude(loss), magnitude(left)));
            });
        const double up = sums.sum(&Sums::up), down = sums.sum(&Sums::down);
        const double g = sums.sum(&Sums::gaining), l = sums.sum(&Sums::losing);
        return {up - down, g + l, up + down, sums.least(&Sums::near), g - l, g * l};
    }
    static RowAnswer answer(Displaced& row, double, const Read& at) {
        row.rate = at.moving > 0.0 ? -at.odd / at.moving : 0.0;
        const double slope = at.moving > 0.0 ? 4.0 * at.product / at.moving : 0.0;
        return {at.mass - row.shift * at.odd, slope};
    }
    // At m + lack and alpha + shift.
    DRMDP_INLINE static Part entry(const Displaced& row, Index j, double m, double lack) {
        const Part c = load(row.c + j), e = load(row.d + j) - row.alpha;
        const Part gain = (e - m) + (-row.shift - lack), loss = (-e - m) + (row.shift - lack);
        return greater(gain, Part{}) - lesser(greater(loss, Part{}), c);
    }
};

// value s^2 v and slope m^2/k + q, which add up to |e|^2: v is the sum of squares of d - mean d over the
// k active entries, m and q are the sums of c and c^2 over the others. v, m and q stay while these do.
struct L2 {
    struct Sums {
        Part active{}, e1{}, e2{}, lost{}, squares{}, near = all(INFINITE);
    };
    struct Read {
        double excess, moving, mass, near, e1, e2, squares;
    };
    static constexpr bool SQUARES = true;

    static double parameter(double price) { return 1.0 / (1.0 + price); }
    static double first(const Displaced& row, double s) { return least(row, s); }
    static double least(const Displaced& row, double s) {
        return std::max(s * row.mean, s * row.peak - 1.0);
    }
    static double most(const Displaced& row, double s) { return s * row.top; }
    static double break_after(const Displaced&, double, double, double) { return NOT_A_NUMBER; }
    static double size_of(double alpha, double) { return std::fabs(alpha); }
    static double speed(const Displaced& row) {
        return std::max(row.top - row.rate, row.rate - row.bottom);
    }

    static Read read(const Displaced& row, double s, double alpha) {
        const auto sums = over_lanes<Sums>(
            row.padded, [&](Sums& sum, Index j) __attribute__((always_inline)) {
                const Part c = load(row.c + j), e = s * load(row.d + j) - alpha, h = e + c;
                const Mask on = h > 0.0;
                const Part x = where(on, e), off = where(~on, c);
                sum.active += where(on, all(1.0));
                sum.e1 += x;
                sum.e2 += x * x;
                sum.lost += off;
                sum.squares += off * off;
                sum.near = lesser(magnitude(h), sum.near);
            });
        const double e1 = sums.sum(&Sums::e1), lost = sums.sum(&Sums::lost);
        return {e1 - lost, sums.sum(&Sums::active), lost, sums.least(&Sums::near), e1,
                sums.sum(&Sums::e2), sums.sum(&Sums::squares)};
    }
    static RowAnswer answer(Displaced& row, double s, const Read& at) {
        if (!(at.moving > 0.0)) {
            row.rate = row.alpha / s;
            return {0.0, at.squares, 0.0};
        }
        const double mean = at.e1 / at.moving;
        row.rate = (row.alpha + mean) / s;
        return {std::max(at.e2 - at.e1 * mean, 0.0), at.mass * at.mass / at.moving + at.squares, 0.0};
    }
    DRMDP_INLINE static Part entry(const Displaced& row, Index j, double s, double) {
        const Part e = (s * load(row.d + j) - row.alpha) - row.shift;
        return greater(e, -load(row.c + j));
    }
};

// value what presses on the bounds r and -r, slope how that falls with r: with u entries at r, l at -r
// while c > r, and n inside, u + l + (u - l)^2/n.
struct Linf {
    struct Sums {
        Part total{}, inside{}, upper{}, lower{}, pull{}, near = all(INFINITE);
    };
    struct Read {
        double excess, moving, mass, near, upper, lower, pull;
    };
    static constexpr bool SQUARES = false;

    static double first(const Displaced& row, double) { return row.mean; }
    static double least(const Displaced& row, double) { return row.bottom; }
    static double most(const Displaced& row, double) { return row.top; }
    static double size_of(double alpha, double) { return std::fabs(alpha); }
    static double speed(const Displaced& row) { return 1.0 + std::fabs(row.rate); }

    // All entries are at bounds: where the first of them leaves one, and as far as one alone would go.
    static double break_after(const Displaced& row, double r, double alpha, double excess) {
        double best = excess > 0.0 ? INFINITE : -INFINITE;
        for (Index j = 0; j < row.size; ++j) {
            const double up = row.d[j] - r, down = row.d[j] + std::min(row.c[j], r);
            if (excess > 0.0 && up > alpha) best = std::min(best, up);
            if (excess <= 0.0 && down < alpha) best = std::max(best, down);
        }
        return best + excess;
    }
    static Read read(const Displaced& row, double r, double alpha) {
        const auto sums = over_lanes<Sums>(
            row.padded, [&](Sums& s, Index j) __attribute__((always_inline)) {
                const Part c = load(row.c + j), e = load(row.d + j) - alpha;
                const Part bound = lesser(c, all(r)), over = e - r, under = -bound - e;
                const Mask top = over > 0.0, below = under > 0.0, lower = below & (c > r);
                s.upper += where(top, all(1.0));
                s.lower += where(lower, all(1.0));
                s.inside += where(~(top | below), all(1.0));
                s.pull += where(top, over) + where(lower, under);
                s.total += top ? all(r) : (below ? -bound : e);
                s.near = lesser(lesser(magnitude(over), magnitude(under)), s.near);
            });
        return {sums.sum(&Sums::total), sums.sum(&Sums::inside),
                double(row.size) * std::min(1.0, r), sums.least(&Sums::near),
                sums.sum(&Sums::upper), sums.sum(&Sums::lower), sums.sum(&Sums::pull)};
    }
    static RowAnswer answer(Displaced& row, double, const Read& at) {
        const double odd = at.upper - at.lower, bound = at.upper + at.lower, n = at.moving;
        row.rate = n > 0.0 ? odd / n : 0.0;
        if (n > 0.0) return {at.pull - row.shift * odd, bound + odd * odd / n, 0.0};
        return {at.pull, odd == 0.0 ? bound : INFINITE, 0.0};
    }
    DRMDP_INLINE static Part entry(const Displaced& row, Index j, double r, double) {
        const Part e = (load(row.d + j) - row.alpha) - row.shift;
        return greater(lesser(e, all(r)), -lesser(load(row.c + j), all(r)));
    }
};

// Find alpha from a guess.
template <class Norm>
RowAnswer settle(Displaced& row, double at, double guess) {
    double low = Norm::least(row, at), high = Norm::most(row, at);
    row.shift = 0.0;
    if (!(low < high)) {  // nothing moves
        row.alpha = 0.5 * (low + high), row.rate = 0.0;
        return {0.0, 0.0, 0.0, 0.5 * (low - high)};
    }
    double alpha = guess == guess ? guess : Norm::first(row, at);
    alpha = std::min(std::max(alpha, low), high);
    for (int pass = 0;; ++pass) {
        const auto read = Norm::read(row, at, alpha);
        const double step = read.moving > 0.0 ? read.excess / read.moving : 0.0;
        const double noise =
            ROUNDING * (read.mass + read.moving * Norm::size_of(alpha, at));
        const bool exact = read.moving > 0.0 && std::fabs(step) < read.near;
        double next = alpha;
        if (!exact && std::fabs(read.excess) > noise && pass < PASSES) {
            (read.excess > 0.0 ? low : high) = alpha;
            next = read.moving > 0.0 ? alpha + step
                                     : Norm::break_after(row, at, alpha, read.excess);
            if (!(next > low && next < high) || pass % 8 == 7) next = low + 0.5 * (high - low);
            if (!(next > low && next < high)) next = alpha;
        }
        if (next == alpha) {
            row.alpha = alpha, row.shift = step;
            RowAnswer found = Norm::answer(row, at, read);
            found.noise = noise;
            if (exact) found.room = (read.near - std::fabs(step)) / Norm::speed(row);
            return found;
        }
        alpha = next;
    }
}

}  // namespace drmdp::prox
