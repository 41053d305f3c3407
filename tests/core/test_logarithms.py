"""Logarithms that loops over vectors can take, against the decimal module."""

import decimal

import numpy as np
import pytest

from drmdp.core import logarithms
from drmdp.core.compiled import FAST, KERNEL, njit

EPS = 2.0**-53
WORDS = decimal.Context(prec=40)


@njit(fastmath=FAST, **KERNEL)
def _add(take, numbers):
    """A sum as sets take it: in whole vectors, in any order."""
    total = 0.0
    for k in range(numbers.size):
        total += take(numbers[k])
    return total


def _log(d):
    return _add(logarithms.log, np.full(1, d))


def _log1p(x):
    return _add(logarithms.log1p, np.full(1, x))


def _error(found, number):
    """What a logarithm is off, in units of EPS of the true one."""
    true = WORDS.ln(number)
    return float(abs((decimal.Decimal(found) - true) / true)) / EPS if true else abs(found)


@pytest.mark.parametrize("kind", ["any", "near 1", "up to 4", "powers of 2"])
def test_logarithms_keep_their_digits(kind):
    rng = np.random.default_rng(1)
    near = 1 + rng.choice([-1, 1], 200) * 10 ** rng.uniform(-16, -0.3, 200)
    numbers = {
        "any": 10 ** rng.uniform(-300, 300, 200),
        "near 1": near,
        "up to 4": rng.uniform(0, 4, 200),
        "powers of 2": 2.0 ** rng.integers(-1000, 1000, 200) * rng.choice([0.5**0.5, 1, 1 + 2 * EPS, 1 - EPS], 200),
    }[kind]
    assert max(_error(_log(d), decimal.Decimal(d)) for d in numbers.tolist()) <= 2


@pytest.mark.parametrize("kind", ["small", "up to 3", "near -1"])
def test_logarithms_near_one_keep_the_digits_of_what_is_added(kind):
    rng = np.random.default_rng(2)
    numbers = {
        "small": rng.choice([-1, 1], 200) * 10 ** rng.uniform(-300, -0.1, 200),
        "up to 3": rng.uniform(-1, 3, 200),
        "near -1": -1 + 10 ** rng.uniform(-15, 0, 200),
    }[kind]
    exact = decimal.Context(prec=1200)
    assert (
        max(
            _error(_log1p(x), exact.add(1, decimal.Decimal(x))) if abs(x) > 1e-30 else abs(_log1p(x) - x) / abs(x) / EPS
            for x in numbers.tolist()
        )
        <= 3
    )


def test_sums_of_logarithms_keep_their_digits():
    """Many at once, as the loop above takes them; their order may be any, the steps of each may not."""
    numbers = np.random.default_rng(3).uniform(-1e-9, 1e-9, 1001)
    assert _add(logarithms.log1p, numbers) == pytest.approx(np.log1p(numbers).sum(), rel=1e-12)
    numbers = np.random.default_rng(4).uniform(0.1, 4, 1001)
    assert _add(logarithms.log, numbers) == pytest.approx(np.log(numbers).sum(), rel=1e-12)
