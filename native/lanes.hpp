// Sums in eight fixed lanes: the same additions in the same order on every processor.
//
// A sum adds number j to lane j mod 8, and the lanes as ((0+4)+(2+6)) + ((1+5)+(3+7)). Behind the
// last number come zeros up to a multiple of eight. Nothing is contracted (-ffp-contract=off), and
// only operations that IEEE 754 rounds correctly are used: +, -, *, / and square roots.
//
// A `Part` is a register: two of the eight lanes, or four where vectors of 256 bits are there. A
// loop takes part after part of all eights, so that many sums at once stay in registers. Conditions
// on parts are whole numbers, 0 or -1 in each lane.
#pragma once

#include <array>
#include <cstring>

#include "views.hpp"

#if defined(__clang__)
#define DRMDP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DRMDP_UNROLL _Pragma("GCC unroll 8")
#endif

// Behind the arguments of a lambda: it becomes a part of the loop that it is given to.
#define DRMDP_LAMBDA __attribute__((always_inline))

namespace drmdp {

constexpr Index LANES = 8;
#if defined(__AVX__)
constexpr Index WIDTH = 4;
#else
constexpr Index WIDTH = 2;
#endif
constexpr Index PARTS = LANES / WIDTH;

using Part = double __attribute__((vector_size(8 * WIDTH)));
using Mask = std::int64_t __attribute__((vector_size(8 * WIDTH)));
using HalfPart = float __attribute__((vector_size(4 * WIDTH)));

constexpr Index to_lanes(Index n) { return (n + LANES - 1) / LANES * LANES; }

DRMDP_INLINE Part all(double x) { return x - Part{}; }
// From and to memory, wherever numbers begin: a copy is one instruction, and asks for no alignment.
DRMDP_INLINE Part load(const double* x) {
    Part part;
    std::memcpy(&part, x, sizeof part);
    return part;
}
DRMDP_INLINE Part load(const float* x) {
    HalfPart half;
    std::memcpy(&half, x, sizeof half);
    return __builtin_convertvector(half, Part);
}
DRMDP_INLINE void store(double* x, Part part) { std::memcpy(x, &part, sizeof part); }
DRMDP_INLINE Part load(View<const double> x, Index j) { return load(x.at(j, WIDTH)); }
DRMDP_INLINE void store(View<double> x, Index j, Part part) { store(x.at(j, WIDTH), part); }

DRMDP_INLINE Part where(Mask mask, Part x) { return Part(mask & Mask(x)); }  // 0 elsewhere
DRMDP_INLINE Part lesser(Part a, Part b) { return a < b ? a : b; }
DRMDP_INLINE Part greater(Part a, Part b) { return a > b ? a : b; }
DRMDP_INLINE Part magnitude(Part x) { return Part(Mask(x) & INT64_MAX); }

// Lanes before the n-th.
DRMDP_INLINE Mask first_lanes(Index n) {
    Mask lane;
    for (Index l = 0; l < WIDTH; ++l) lane[l] = l;
    return lane < n;
}

// The first n < WIDTH numbers and zeros behind them; `readable` numbers are inside the array.
template <class Real>
DRMDP_INLINE Part load_first(const Real* x, Index n, Index readable) {
    if (readable >= WIDTH) return where(first_lanes(n), load(x));
    Part part{};
    for (Index l = 0; l < n; ++l) part[l] = x[l];
    return part;
}

// What a loop gathers: a struct of parts for each of the parts of eight lanes.
template <class Sums>
struct Gathered {
    Sums parts[PARTS];

    template <class Of, class Combine>
    DRMDP_INLINE double fold(Of of, Combine combine) const {
        double lane[WIDTH];
        if constexpr (PARTS == 4) {
            const Part even = combine(of(parts[0]), of(parts[2]));
            const Part odd = combine(of(parts[1]), of(parts[3]));
            const Part both = combine(even, odd);
            lane[0] = both[0], lane[1] = both[1];
        } else {
            const Part both = combine(of(parts[0]), of(parts[1]));
            lane[0] = combine(both[0], both[WIDTH - 2]);
            lane[1] = combine(both[1], both[WIDTH - 1]);
        }
        return combine(lane[0], lane[1]);
    }
    template <class Of>
    DRMDP_INLINE double sum_of(Of of) const {
        return fold(of, [](auto a, auto b) DRMDP_LAMBDA { return a + b; });
    }
    DRMDP_INLINE double sum(Part Sums::* field) const {
        return sum_of([=](const Sums& sums) DRMDP_LAMBDA { return sums.*field; });
    }
    DRMDP_INLINE double least(Part Sums::* field) const {
        return fold([=](const Sums& sums) DRMDP_LAMBDA { return sums.*field; },
                    [](auto a, auto b) DRMDP_LAMBDA { return a < b ? a : b; });
    }
    DRMDP_INLINE double greatest(Part Sums::* field) const {
        return fold([=](const Sums& sums) DRMDP_LAMBDA { return sums.*field; },
                    [](auto a, auto b) DRMDP_LAMBDA { return a > b ? a : b; });
    }
};

// body(sums, j) for every part j ... j + WIDTH - 1 of n numbers, n a multiple of eight.
template <class Sums, class Body>
DRMDP_INLINE Gathered<Sums> over_lanes(Index n, Body body) {
    Gathered<Sums> gathered;
    DRMDP_UNROLL
    for (Index p = 0; p < PARTS; ++p) {
        Sums sums{};
        for (Index j = p * WIDTH; j < n; j += LANES) body(sums, j);
        gathered.parts[p] = sums;
    }
    return gathered;
}

// Numbers that are summed at once: what one part adds to each of n sums.
template <int n>
struct Terms {
    Part of[n]{};

    DRMDP_INLINE void add(const Terms& own) {
        DRMDP_UNROLL
        for (int k = 0; k < n; ++k) of[k] += own.of[k];
    }
};
template <int n>
DRMDP_INLINE std::array<double, n> totals(const Gathered<Terms<n>>& gathered) {
    std::array<double, n> total;
    DRMDP_UNROLL
    for (int k = 0; k < n; ++k)
        total[k] = gathered.sum_of([=](const Terms<n>& sums) DRMDP_LAMBDA { return sums.of[k]; });
    return total;
}

// n sums of terms(j), or one of term(j), over the parts j ... of `size` numbers, a multiple of eight.
template <int n, class Body>
DRMDP_INLINE std::array<double, n> part_sums(Index size, Body terms) {
    return totals<n>(over_lanes<Terms<n>>(
        size, [&](Terms<n>& sums, Index j) DRMDP_LAMBDA { sums.add(terms(j)); }));
}
template <class Body>
DRMDP_INLINE double part_sum(Index size, Body term) {
    return part_sums<1>(size, [&](Index j) DRMDP_LAMBDA { return Terms<1>{term(j)}; })[0];
}

}  // namespace drmdp
