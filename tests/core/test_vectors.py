"""Sums over all states."""

import numpy as np
import pytest

from drmdp.core.vectors import dot


@pytest.mark.parametrize("n", [2, 500])
def test_what_has_no_weight_may_be_infinite(n):
    """Bounds are at first where there is no discount."""
    weights, bounds = np.zeros(n), np.full(n, np.inf)
    weights[0], bounds[0] = 1.0, 3.0
    assert dot(weights, bounds) == 3.0
    assert dot(weights, -bounds) == -3.0
    weights[1] = 0.5
    assert dot(weights, bounds) == np.inf
