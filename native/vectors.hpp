// Vectors with a number for each state, in one pass each. Minima and maxima of numbers of which one is
// not a number are not numbers: such a vector proves nothing about any state.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "lanes.hpp"

namespace drmdp {

// Eight lanes of a sum whose numbers come one by one: number j goes to lane j mod 8.
struct Lanes {
    double lane[LANES] = {};

    DRMDP_INLINE double sum() const {
        return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    }
};

// sum_j of(j) over n numbers.
template <class Term>
DRMDP_INLINE double sum_over(Index n, Term term) {
    Lanes sums;
    Index j = 0;
    for (; j + LANES <= n; j += LANES)
        for (Index l = 0; l < LANES; ++l) sums.lane[l] += term(j + l);
    for (Index l = 0; j + l < n; ++l) sums.lane[l] += term(j + l);
    return sums.sum();
}

struct Ends {
    double low = INFINITE, high = -INFINITE;

    DRMDP_INLINE void add(double x) {
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    static Ends none() { return {NOT_A_NUMBER, NOT_A_NUMBER}; }
};

// x - x is 0 for finite numbers alone.
inline bool are_finite(View<const double> numbers) {
    return sum_over(numbers.size(), [&](Index k) { return numbers[k] - numbers[k]; }) == 0.0;
}

// Whether all numbers are from 0 to n - 1. Not inlined: who asks is ready to give up, and such code is not made fast.
template <class T>
__attribute__((noinline)) bool is_below(View<const T> numbers, Index n) {
    std::make_unsigned_t<T> most = 0;  // what is negative is large
    for (const T k : numbers) most = std::max(most, std::make_unsigned_t<T>(k));
    return n > 0 && std::uint64_t(most) < std::uint64_t(n);
}

inline Ends ends_of(View<const double> numbers) {
    Ends range;
    bool odd = false;
    for (const double x : numbers) {
        range.add(x);
        odd |= std::isnan(x);
    }
    return odd ? Ends::none() : range;
}

// u = v - level, the middle of its range, which is returned.
inline double around(View<const double> value, View<double> u) {
    const Ends range = ends_of(value);
    const double level = (range.high + range.low) / 2;
    for (Index k = 0; k < u.size(); ++k) u[k] = value[k] - level;
    return level;
}

// Bounds b on F(u) as steps on F(v) - v, v = u + level: b - u - (1 - discount) level, each with a margin;
// and F(v) midway.
inline void both_steps(View<const double> u, double level, double discount, View<const std::uint8_t> terminal,
                       View<const double> lower, View<const double> upper, View<double> low,
                       View<double> high, View<double> middle) {
    const double far = (1 - discount) * level, size = (1 - discount) * std::fabs(level);
    const auto step = [&](Index k, double bound, double margin) {
        return terminal[k] ? -(u[k] + level)
                           : bound - u[k] - far + margin * (std::fabs(bound) + std::fabs(u[k]) + size);
    };
    for (Index k = 0; k < u.size(); ++k) {
        low[k] = step(k, lower[k], -4 * EPSILON), high[k] = step(k, upper[k], 4 * EPSILON);
        middle[k] = terminal[k] ? 0.0 : (lower[k] + upper[k]) / 2 + discount * level;
    }
}

// A sweep at v with steps L - v and U - v; its residual is their middle.
struct Survey {
    double span, size, off, most;  // range and size of the residuals, largest U - L and |v|
};

inline Survey survey(View<const double> value, View<const double> lower, View<const double> upper) {
    Ends middle;
    double off = 0.0, most = 0.0;
    for (Index s = 0; s < value.size(); ++s) {
        const double x = (lower[s] + upper[s]) / 2, size = std::fabs(value[s]);
        if (std::isnan(x + value[s])) return {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER};
        middle.add(x);
        off = upper[s] - lower[s] > off ? upper[s] - lower[s] : off;
        most = size > most ? size : most;
    }
    const double low = std::fabs(middle.low), high = std::fabs(middle.high);
    return {middle.high - middle.low, high > low ? high : low, off, most};
}

// Bounds L <= U.
struct Extent {
    double gap, most, nearest;  // largest U - L and |U|, and distance of 0 from [L, U]
};

inline Extent extent(View<const double> lower, View<const double> upper) {
    Extent found{-INFINITE, 0.0, 0.0};
    for (Index s = 0; s < lower.size(); ++s) {
        if (std::isnan(lower[s]) || std::isnan(upper[s]))
            return {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER};
        const double gap = upper[s] - lower[s], size = std::fabs(upper[s]);
        const double away = lower[s] > -upper[s] ? lower[s] : -upper[s];
        found.gap = gap > found.gap ? gap : found.gap;
        found.most = size > found.most ? size : found.most;
        found.nearest = away > found.nearest ? away : found.nearest;
    }
    return found;
}

// sum a b over blocks of so many numbers, the last one shorter.
inline void block_sums(View<const double> a, View<const double> b, Index length, View<double> out) {
    for (Index k = 0; k < out.size(); ++k) {
        const Index first = k * length, rest = a.size() - first;
        out[k] = sum_over(length < rest ? length : rest, [&](Index j) __attribute__((always_inline)) {
            return a[first + j] * b[first + j];
        });
    }
}

// Whether rows are distributions of available actions, up to `slack`, where a state does not end.
inline bool are_distributions(Table<const double> policy, View<const std::uint8_t> available,
                              View<const std::uint8_t> terminal, double slack) {
    const Index A = policy.columns();
    for (Index s = 0; s < terminal.size(); ++s) {
        double total = 0.0;
        for (Index a = 0; a < A; ++a) {
            const double x = policy[s][a];
            if (x != 0.0 && !(available[s * A + a] && x > 0.0 && x < 2.0)) return false;
            total += x;
        }
        if (!terminal[s] && !(std::fabs(total - 1.0) <= slack)) return false;
    }
    return true;
}

}  // namespace drmdp
