"""Values around their level, and one-sided steps: one pass over the numbers says what several
did.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from drmdp.core import levels

ONE = SimpleNamespace(discounts=None)  # one discount for all pairs


def test_a_value_without_its_level_is_centred_at_0():
    value = np.array([1e9 + 3.0, 1e9 - 5.0, 1e9 + 1.0])
    u, level = levels.around(value, ONE)
    assert level == levels.level(value, ONE) == 1e9 - 1.0
    np.testing.assert_array_equal(u, value - level)


def test_where_discounts_differ_no_level_is_taken_out():
    value = np.array([1e9 + 3.0, 1e9 - 5.0])
    differ = SimpleNamespace(discounts=np.array([[0.9], [0.5]]))
    u, level = levels.around(value, differ)
    assert level == levels.level(value, differ) == 0.0
    np.testing.assert_array_equal(u, value)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_value_that_is_no_number_has_no_level(odd):
    u, level = levels.around(np.array([1.0, odd, 2.0]), ONE)
    assert not np.isfinite(level)
    assert not np.isfinite(u).all()


def test_both_steps_are_beyond_the_truth_and_around_their_middle():
    rng = np.random.default_rng(0)
    u, lower = rng.normal(size=(2, 9))
    upper, terminal = lower + rng.uniform(size=9), rng.uniform(size=9) < 0.3
    low, high, middle = levels.both_steps(
        u, 7.0, SimpleNamespace(discount=0.9, terminal=terminal, ends=None), lower, upper
    )
    for k in range(9):
        true = [
            -Fraction(u[k] + 7.0)
            if terminal[k]
            else Fraction(b) - Fraction(u[k]) - (1 - Fraction(0.9)) * 7
            for b in (lower[k], upper[k])
        ]
        assert low[k] <= true[0] <= low[k] + 1e-14
        assert high[k] >= true[1] >= high[k] - 1e-14
        assert terminal[k] or (low[k] < true[0] and true[1] < high[k])
        assert abs(middle[k] - (0.0 if terminal[k] else (lower[k] + upper[k]) / 2 + 6.3)) <= 1e-14
