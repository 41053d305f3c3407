"""Logarithms that loops over vectors can take, against the decimal module."""

import decimal

import numpy as np
import pytest
from numba import njit

from drmdp.core import logarithms

EPS = 2.0**-53
WORDS = decimal.Context(prec=40)


@njit
def _log(d):
    return logarithms.log(d)


@njit
def _log1p(x):
    return logarithms.log1p(x)


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
