"""What all routines are made of: elementary functions against mpmath, sums in lanes, counts in an
order.
"""

import mpmath
import numpy as np
import pytest

from drmdp import _native
from drmdp.layout.point import ValueOrder

mpmath.mp.prec = 300
TINY, LEAST, MOST = np.finfo(float).tiny, 5e-324, np.finfo(float).max


def found(name, numbers):
    numbers = np.asarray(numbers, dtype=float)
    result = np.full(numbers.size, -7.0)
    _native.elementary(name, numbers, result)
    return result


def spread(rng, low, high, n=4000):
    """Numbers of all sizes between two of one sign."""
    sign = -1 if high <= 0 and low < 0 else 1
    low, high = sorted((abs(low), abs(high)))
    return sign * np.exp2(rng.uniform(np.log2(max(low, LEAST)), np.log2(high), n))


RNG = np.random.default_rng(0)
SMALL = [spread(RNG, LEAST, 1.0), -spread(RNG, LEAST, 1.0), RNG.uniform(-1, 1, 4000)]
NEAR_1 = 1 + np.concatenate([spread(RNG, 1e-17, 0.5), -spread(RNG, 1e-17, 0.5)])
RANGES = {
    "exp": [
        *SMALL,
        RNG.uniform(-745.2, 709.7, 20000),
        np.arange(-1075, 1024) * np.log(2),
        RNG.uniform(-745.2, -700, 4000),
    ],
    "expm1": [
        *SMALL,
        RNG.uniform(-40, 709.7, 20000),
        RNG.uniform(-745, -36, 1000),
        np.arange(-60, 1024) * np.log(2),
    ],
    "log": [
        spread(RNG, LEAST, MOST, 20000),
        NEAR_1,
        spread(RNG, LEAST, TINY),
        np.exp2(np.arange(-1074.0, 1024)),
        RNG.uniform(0.5, 2, 4000),
    ],
    "log1p": [
        *SMALL,
        spread(RNG, LEAST, MOST, 8000),
        -1 + spread(RNG, 1e-16, 1.0),
        RNG.uniform(-0.6, 1.5, 8000),
    ],
}
ULPS = {"exp": 1, "expm1": 2, "log": 2, "log1p": 2}


def ulps(name, x, y):
    """How far y is off, in units of the last place of the right number."""
    right = getattr(mpmath, name)(mpmath.mpf(float(x)))
    unit = np.spacing(abs(float(right)))
    return float(abs(mpmath.mpf(float(y)) - right) / mpmath.mpf(float(unit)))


@pytest.mark.parametrize("name", RANGES)
def test_elementary_functions_are_right_up_to_their_last_place(name):
    for numbers in RANGES[name]:
        numbers = numbers[numbers > -1] if name == "log1p" else numbers
        worst = max(
            zip(numbers, found(name, numbers), strict=True), key=lambda pair: ulps(name, *pair)
        )
        assert ulps(name, *worst) < ULPS[name], (name, worst, ulps(name, *worst))


@pytest.mark.parametrize("name", RANGES)
def test_numbers_and_parts_have_the_same_functions(name):
    """The last few of an array are taken one by one."""
    numbers = np.concatenate(
        [*RANGES[name], [0.0, -0.0, np.inf, -np.inf, np.nan, LEAST, -LEAST, MOST, -MOST, -1.0]]
    )
    alone = np.concatenate([found(name, [x]) for x in numbers])
    assert found(name, numbers).tobytes() == alone.tobytes()


EDGES = {
    "exp": {
        -0.0: 1,
        np.inf: np.inf,
        -np.inf: 0,
        709.79: np.inf,
        -745.14: 0,
        -746: 0,
        1e300: np.inf,
        -1e300: 0,
    },
    "expm1": {
        0: 0,
        np.inf: np.inf,
        -np.inf: -1,
        710: np.inf,
        -50: -1,
        -1e300: -1,
        1e-300: 1e-300,
        LEAST: LEAST,
        -LEAST: -LEAST,
    },
    "log": {-0.0: -np.inf, 1: 0, np.inf: np.inf, -1: np.nan, -LEAST: np.nan, -np.inf: np.nan},
    "log1p": {
        0: 0,
        -1: -np.inf,
        np.inf: np.inf,
        -1.5: np.nan,
        -np.inf: np.nan,
        1e-300: 1e-300,
        LEAST: LEAST,
    },
}


@pytest.mark.parametrize("exponent", [1e-5, 0.03, 0.5, 1.0, 1.5, 3.0, 32.0, 1e3])
def test_powers_are_right_up_to_their_last_places(exponent):
    """They lose digits where they are far from 1, as far as they say."""
    numbers = np.concatenate(
        [spread(RNG, LEAST, MOST), NEAR_1[NEAR_1 > 0], RNG.uniform(0, 2, 4000)]
    )
    numbers = numbers[np.abs(exponent * np.log(numbers)) < 700]
    result, alone = np.empty(numbers.size), np.empty(1)
    _native.power(numbers, exponent, result)
    for x, y in zip(numbers[::7], result[::7], strict=True):
        right = mpmath.mpf(float(x)) ** mpmath.mpf(exponent)
        off = abs(mpmath.mpf(float(y)) / right - 1) * 2**52
        assert off < 2 + 3 * abs(exponent * mpmath.log(mpmath.mpf(float(x))))
        _native.power(np.array([x]), exponent, alone)
        assert alone[0] == y
    _native.power(np.zeros(1), exponent, alone)
    assert alone[0] == 0


@pytest.mark.parametrize("name", EDGES)
def test_elementary_functions_at_the_edges(name):
    assert found(name, [0.0, -0.0]).tolist() == [{"exp": 1, "log": -np.inf}.get(name, 0.0)] * 2
    numbers, right = np.array(list(EDGES[name])), np.array(list(EDGES[name].values()), dtype=float)
    np.testing.assert_array_equal(found(name, numbers), right)
    assert np.isnan(found(name, [np.nan] * 5)).all()


@pytest.mark.parametrize("n", [*range(20), 100, 1001])
def test_a_sum_adds_in_eight_lanes_whose_order_is_fixed(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        numbers = rng.normal(size=n) * 10.0 ** rng.uniform(-9, 9, n)
        lane = [0.0] * 8
        for j, x in enumerate(numbers.tolist()):
            lane[j % 8] += x
        right = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + (
            (lane[1] + lane[5]) + (lane[3] + lane[7])
        )
        assert _native.lane_sum(numbers) == right
        shifted = np.concatenate([[1e99], numbers])[1:]  # wherever it begins
        assert _native.lane_sum(shifted) == right


def ordered(u, states):
    """An `ValueOrder` of u, descending, of so many states."""
    n = u.size
    below = np.searchsorted(-u, np.arange(n) / n, side="left").astype(np.int32)
    zeros, whole = np.zeros(n + 1), np.arange(n, dtype=np.int32)
    beyond = np.zeros(1, dtype=np.int64)
    return ValueOrder(
        u, whole, u, zeros, zeros, np.arange(states, dtype=np.int32), below, 0.0, -np.inf, beyond
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000])
def test_counts_above_a_threshold(n):
    rng = np.random.default_rng(n)
    for k in range(60):
        u = np.sort(-(rng.random(n) ** rng.choice([0.05, 1, 20])))[::-1].copy()
        u[: rng.integers(1, n + 1)] += 0 if k % 2 else -u[0]
        u = np.maximum(np.sort(np.minimum(u, 0))[::-1], -1).copy()
        u[0] = 0.0
        if k % 3 == 0:
            u = np.round(u, 1) + 0.0
        states = n + (k % 4 == 0)
        order, t = ordered(u, states), 10.0 ** rng.uniform(-8, 12)
        for tau in (*(t * rng.choice(u, 5)), *(-t * rng.random(5)), 0.0, t, -t, -2 * t):
            order.beyond[0] = 0
            right = int((t * u > tau).sum())
            assert _native.count_above(order, t, tau) == right
            assert bool(order.beyond[0]) == (right == n < states), (
                "somebody counted past the end of the top"
            )
