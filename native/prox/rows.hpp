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

// Sums over a row at alpha: e, entries that move with alpha, |e|, and what each norm needs besides.
struct Sums {
    Part excess{}, moving{}, mass{}, odd{}, value{}, bound{}, near = all(INFINITE);
};
struct Read {
    double excess, moving, mass, odd, value, bound, near;
};

// value |e|_1, slope -d|e|_1/dm = n - odd^2/n, where n entries move and odd more of them gain than lose.
struct L1 {
    static constexpr bool SQUARES = false, RADIUS = false;

    static double parameter(double price) { return price; }
    static double least(const Displaced& row, double m) {
        return std::max(row.bottom + m, row.top - m - 1.0);
    }
    static double most(const Displaced& row, double m) { return row.top - m; }
    static double size_of(double alpha, double m) { return std::fabs(alpha) + m; }
    static double speed(const Displaced& row) { return 1.0 + std::fabs(row.rate); }

    DRMDP_INLINE static void add(Sums& s, Part c, Part d, double m, double alpha) {
        const Part e = d - alpha, gain = e - m, loss = -m - e, left = loss - c;
        const Part up = greater(gain, Part{}), down = lesser(greater(loss, Part{}), c);
        const Part gains = where(gain > 0.0, all(1.0)), loses = where((loss > 0.0) & (left < 0.0), all(1.0));
        s.excess += up - down, s.mass += up + down;
        s.moving += gains + loses, s.odd += gains - loses;
        s.near = lesser(lesser(magnitude(gain), s.near), lesser(magnitude(loss), magnitude(left)));
    }
    static RowAnswer answer(Displaced& row, double, const Read& at) {
        row.rate = at.moving > 0.0 ? -at.odd / at.moving : 0.0;
        return {at.mass - row.shift * at.odd, at.moving + row.rate * at.odd};
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
    static constexpr bool SQUARES = true, RADIUS = false;

    static double parameter(double price) { return 1.0 / (1.0 + price); }
    static double least(const Displaced& row, double s) {
        return std::max(s * row.mean, s * row.peak - 1.0);
    }
    static double most(const Displaced& row, double s) { return s * row.top; }
    static double size_of(double alpha, double) { return std::fabs(alpha); }
    static double speed(const Displaced& row) {
        return std::max(row.top - row.rate, row.rate - row.bottom);
    }

    DRMDP_INLINE static void add(Sums& sums, Part c, Part d, double s, double alpha) {
        const Part e = s * d - alpha, h = e + c;
        const Mask on = h > 0.0;
        const Part x = where(on, e), off = where(~on, c);
        sums.excess += x - off, sums.moving += where(on, all(1.0)), sums.mass += off;
        sums.odd += x, sums.value += x * x, sums.bound += off * off;
        sums.near = lesser(magnitude(h), sums.near);
    }
    static RowAnswer answer(Displaced& row, double s, const Read& at) {
        const double mean = at.moving > 0.0 ? at.odd / at.moving : 0.0;
        const double lost = at.moving > 0.0 ? at.mass * at.mass / at.moving : 0.0;
        row.rate = (row.alpha + mean) / s;
        return {std::max(at.value - at.odd * mean, 0.0), lost + at.bound};
    }
    DRMDP_INLINE static Part entry(const Displaced& row, Index j, double s, double) {
        const Part e = (s * load(row.d + j) - row.alpha) - row.shift;
        return greater(e, -load(row.c + j));
    }
};

// value what presses on the bounds r and -r, slope how that falls with r: with u entries at r, l at -r
// while c > r, and n inside, u + l + (u - l)^2/n. A bend is also where r passes the c of an entry at -r.
struct Linf {
    static constexpr bool SQUARES = false, RADIUS = true;

    static double parameter(double price) { return price; }
    static double least(const Displaced& row, double) { return row.bottom; }
    static double most(const Displaced& row, double) { return row.top; }
    static double size_of(double alpha, double) { return std::fabs(alpha); }
    static double speed(const Displaced& row) { return 1.0 + std::fabs(row.rate); }

    DRMDP_INLINE static void add(Sums& s, Part c, Part d, double r, double alpha) {
        const Part e = d - alpha, bound = lesser(c, all(r)), over = e - r, under = -bound - e;
        const Mask top = over > 0.0, below = under > 0.0, lower = below & (c > r);
        const Part upper = where(top, all(1.0)), pressed = where(lower, all(1.0));
        const Part moved = top ? all(r) : (below ? -bound : e);
        s.excess += moved, s.mass += magnitude(moved), s.moving += where(~(top | below), all(1.0));
        s.odd += upper - pressed, s.bound += upper + pressed;
        s.value += where(top, over) + where(lower, under);
        s.near = lesser(lesser(magnitude(over), magnitude(under)), s.near);
        s.near = lesser(below ? magnitude(c - r) : s.near, s.near);
    }
    static RowAnswer answer(Displaced& row, double, const Read& at) {
        row.rate = at.moving > 0.0 ? at.odd / at.moving : 0.0;
        if (at.moving > 0.0) return {at.value - row.shift * at.odd, at.bound + at.odd * row.rate};
        return {at.value, at.odd == 0.0 ? at.bound : INFINITE};
    }
    DRMDP_INLINE static Part entry(const Displaced& row, Index j, double r, double) {
        const Part e = (load(row.d + j) - row.alpha) - row.shift;
        return greater(lesser(e, all(r)), -lesser(load(row.c + j), all(r)));
    }
};

template <class Norm>
Read read(const Displaced& row, double at, double alpha) {
    const auto sums = over_lanes<Sums>(
        row.padded, [&](Sums& s, Index j) __attribute__((always_inline)) {
            Norm::add(s, load(row.c + j), load(row.d + j), at, alpha);
        });
    return {sums.sum(&Sums::excess), sums.sum(&Sums::moving), sums.sum(&Sums::mass), sums.sum(&Sums::odd),
            sums.sum(&Sums::value), sums.sum(&Sums::bound), sums.least(&Sums::near)};
}

// Find alpha from a guess.
template <class Norm>
RowAnswer settle(Displaced& row, double at, double guess) {
    double low = Norm::least(row, at), high = Norm::most(row, at);
    row.shift = 0.0;
    if (!(low < high)) {  // nothing moves
        row.alpha = 0.5 * (low + high), row.rate = Norm::SQUARES ? row.top : 0.0;
        return {0.0, 0.0, 0.0, row.top > row.bottom ? 0.5 * (low - high) : INFINITE};
    }
    double alpha = guess == guess ? guess : Norm::SQUARES ? low : row.mean;
    alpha = std::min(std::max(alpha, low), high);
    for (int pass = 0;; ++pass) {
        const Read found = read<Norm>(row, at, alpha);
        const double step = found.moving > 0.0 ? found.excess / found.moving : 0.0;
        const double noise = ROUNDING * (found.mass + found.moving * Norm::size_of(alpha, at));
        const bool exact = found.moving > 0.0 && std::fabs(step) < found.near;
        double next = alpha;
        if (!exact && std::fabs(found.excess) > noise && pass < PASSES) {
            (found.excess > 0.0 ? low : high) = alpha;
            next = alpha + step;
            if (!(next > low && next < high) || pass % 8 == 7) next = low + 0.5 * (high - low);
            if (!(next > low && next < high)) next = alpha;
        }
        if (next == alpha) {
            row.alpha = alpha, row.shift = step;
            RowAnswer answer = Norm::answer(row, at, found);
            answer.noise = noise;
            if (exact) answer.room = (found.near - std::fabs(step)) / Norm::speed(row);
            return answer;
        }
        alpha = next;
    }
}

}  // namespace drmdp::prox
