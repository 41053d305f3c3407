// exp, expm1, log, log1p, pow of numbers and of parts: the same bits everywhere, unlike a platform's own.
//
// **exp.** x = k log 2 + r with |r| <= log(2)/2, e^r - 1 = r + r^2 q(r) by its Taylor series up to
// r^13, of which less than 4e-18 is missing. 2^k is applied in two factors, so that results below
// the normal numbers are rounded once; below -746 e^x is 0, above 710 infinite.
// **log.** d = 2^k m with m in [sqrt(1/2), sqrt 2), f = m - 1, s = f/(2 + f),
// log m = f - s (f - 2 (s^2/3 + s^4/5 + ... + s^20/21)), of which less than 3e-18 is missing.
//
// Off by less than 1 unit in the last place for exp, 2 for the others (tests/native), and
// x^y = e^(y log x) by less than 2 + 3 |y log x| units of 2^-52. Coefficients are Taylor's: nothing is fitted.
#pragma once

#include <cstring>

#include "lanes.hpp"

namespace drmdp {

constexpr double LOG2_HIGH = 0x1.62e42ff000000p-1;   // 33 bits: products with |k| < 2^20 are exact
constexpr double LOG2_LOW = -0x1.718432a1b0e26p-35;
constexpr double LOG2_INVERSE = 0x1.71547652b82fep+0;
constexpr double ROUNDER = 0x1.8p52;  // x + ROUNDER holds the nearest whole number in its last bits
constexpr std::uint64_t ONE_BITS = 0x3FF0000000000000;
constexpr std::uint64_t ROOT_BITS = 0x3FE6A09E667F3BCD;  // sqrt(1/2)

template <class T>
struct WholeOf;
template <>
struct WholeOf<double> {
    using type = std::int64_t;
    using bits = std::uint64_t;
};
template <>
struct WholeOf<Part> {
    using type = Mask;
    using bits = std::uint64_t __attribute__((vector_size(8 * WIDTH)));
};
template <class T>
using Whole = typename WholeOf<T>::type;
template <class T>
using Bits = typename WholeOf<T>::bits;  // what overflows, or is shifted out, is lost

template <class To, class From>
DRMDP_INLINE To bits_as(From x) {
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}
template <class T>
DRMDP_INLINE T constant(double x) {
    return x - T{};
}

template <class T>
struct Exponential {
    T r, tail;       // e^r - 1 = r + tail
    T half, rest;    // 2^k = half * rest
};

template <class T>
DRMDP_INLINE Exponential<T> reduced(T x) {
    const T shifted = x * LOG2_INVERSE + ROUNDER, k = shifted - ROUNDER;
    const T r = (x - k * LOG2_HIGH) - k * LOG2_LOW, w = r * r;
    T even = w * (1.0 / 479001600) + 1.0 / 3628800, odd = w * (1.0 / 6227020800) + 1.0 / 39916800;
    even = even * w + 1.0 / 40320, odd = odd * w + 1.0 / 362880;
    even = even * w + 1.0 / 720, odd = odd * w + 1.0 / 5040;
    even = even * w + 1.0 / 24, odd = odd * w + 1.0 / 120;
    even = even * w + 0.5, odd = odd * w + 1.0 / 6;
    const Whole<T> power = bits_as<Whole<T>>(shifted) - bits_as<std::int64_t>(ROUNDER);
    const Whole<T> first = power >> 1;
    return {r, w * (even + r * odd), bits_as<T>((Bits<T>(first) << 52) + ONE_BITS),
            bits_as<T>((Bits<T>(power - first) << 52) + ONE_BITS)};
}

template <class T>
DRMDP_INLINE T within(T x, double low, double high) {
    x = x < low ? constant<T>(low) : x;
    return x > high ? constant<T>(high) : x;
}

// e^x.
template <class T>
DRMDP_INLINE T exp(T x) {
    const Exponential<T> e = reduced(within(x, -746.0, 710.0));
    return (1.0 + (e.r + e.tail)) * e.half * e.rest;
}

// e^x - 1.
template <class T>
DRMDP_INLINE T expm1(T x) {
    const Exponential<T> e = reduced(within(x, -746.0, 710.0));
    const T half = e.half - 1.0 / e.rest, power = e.half * e.rest;  // (2^k - 1)/rest, exactly
    const T far = (half + e.half * (e.r + e.tail)) * e.rest;
    return power == 1.0 ? e.r + e.tail : far;
}

// log d; -inf at 0, not a number below.
template <class T>
DRMDP_INLINE T log(T d) {
    const auto tiny = d < 0x1p-1022;
    const T x = tiny ? d * 0x1p54 : d;
    const Bits<T> bits = bits_as<Bits<T>>(x);
    const Whole<T> e = Whole<T>(bits + (ONE_BITS - ROOT_BITS)) >> 52;
    const T m = bits_as<T>(bits + (ONE_BITS - (Bits<T>(e) << 52)));
    const T number = bits_as<T>(e | bits_as<std::int64_t>(0x1p52));
    const T k = number - (tiny ? constant<T>(0x1p52 + 1023 + 54) : constant<T>(0x1p52 + 1023));
    const T f = m - 1.0, s = f / (f + 2.0), w = s * s;
    T q = w * (1.0 / 21) + 1.0 / 19;
    q = q * w + 1.0 / 17;
    q = q * w + 1.0 / 15;
    q = q * w + 1.0 / 13;
    q = q * w + 1.0 / 11;
    q = q * w + 1.0 / 9;
    q = q * w + 1.0 / 7;
    q = q * w + 1.0 / 5;
    q = q * w + 1.0 / 3;
    const T found = k * LOG2_HIGH + (f - s * (f - 2.0 * w * q) + k * LOG2_LOW);
    const T edge = d == 0.0 ? constant<T>(-INFINITE) : constant<T>(NOT_A_NUMBER);
    return d > 0.0 ? (d < INFINITE ? found : d) : edge;
}

// log (1 + x); what 1 + x loses by rounding is exact and added again.
template <class T>
DRMDP_INLINE T log1p(T x) {
    const T d = 1.0 + x, lost = x - (d - 1.0);
    const T found = log(d) + lost / d;
    return d > 0.0 ? (d < INFINITE ? found : d) : log(d);
}

// x^y of x >= 0 and y > 0.
template <class T>
DRMDP_INLINE T pow(T x, double y) {
    return exp(y * log(x));
}

}  // namespace drmdp
