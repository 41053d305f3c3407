"""Logarithms in loops over whole vectors: log1p and log of the standard library are calls, one number each.

With d = 2^k m, √½ ≤ m < √2, and s = (m − 1)/(m + 1): log d = k log 2 + 2 (s + s³/3 + …), |s| ≤ .172, up to s²¹: what is left out is below 2 ε s/1000. The
exponent is read from the bits of d. The sum is off by less than 2 ε |log d|, near d = 1 too, where k = 0 and m − 1 is exact.

d = 1 + x rounds, by c = x − (d − 1), which is exact: log (1 + x) = log d + c/d, off by ε² more.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from drmdp.core.compiled import LEAN, njit

ROOT = 0x3FE6A09E667F3BCD
"""The bits of √½."""
ONE = 0x3FF0000000000000
MANTISSA = 52
WHOLE = 0x4330000000000000
"""The bits of 2^52: with those of a small whole number n added, they are those of 2^52 + n."""
HIGH = 0.6931471804855391
"""log 2 to 33 bits, so that its multiples are exact."""
LOW = 7.440617110012397e-11
"""What is left of log 2."""
CONTRACT = {"contract"}
"""A product and a sum may be rounded once; in another order they would be wrong, by 1 and more."""


@intrinsic
def _bits(typing_context: Any, number: Any) -> Any:
    """The bits of a float."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.bitcast(given[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _float(typing_context: Any, bits: Any) -> Any:
    """The float of some bits."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.bitcast(given[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


bits: Any = _bits
floating: Any = _float


@njit(fastmath=CONTRACT, **LEAN)
def log(d):
    """The logarithm of a positive, normal number.

    reads   d
    returns log d
    """
    own = bits(d)
    k = (own + (ONE - ROOT)) >> MANTISSA  # with 1023 added
    m = floating(own + (ONE - (k << MANTISSA)))
    f = m - 1.0
    s = f / (2.0 + f)
    w = s * s
    q = 1 / 19 + w * (1 / 21)
    q = 1 / 17 + w * q
    q = 1 / 15 + w * q
    q = 1 / 13 + w * q
    q = 1 / 11 + w * q
    q = 1 / 9 + w * q
    q = 1 / 7 + w * q
    q = 0.2 + w * q
    q = 1 / 3 + w * q
    # 2 s = f − s f: what rounding s costs does not count
    power = floating(k | WHOLE) - (4503599627370496.0 + 1023.0)
    return power * HIGH + (f - s * (f - 2.0 * w * q) + power * LOW)


@njit(fastmath=CONTRACT, **LEAN)
def log1p(x):
    """The logarithm of 1 + x, which is positive.

    reads   x
    returns log (1 + x)
    """
    d = 1.0 + x
    return log(d) + (x - (d - 1.0)) / d
