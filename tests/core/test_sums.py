"""Sums without rounding."""

import math

import numpy as np

from drmdp.core.sums import mean_of


def test_means_are_those_of_fsum_bit_for_bit():
    rng = np.random.default_rng(0)
    for n in range(3000):
        size = int(rng.integers(1, 60))
        if n % 2:
            weights, numbers = rng.dirichlet(np.ones(size)), rng.normal(size=size) * 10.0 ** rng.integers(-20, 20, size)
        else:  # ties, and sums that are 0
            weights = rng.integers(0, 4, size) / 8
            numbers = rng.integers(-3, 4, size) * 2.0 ** rng.integers(-60, 60, size)
        exact, found = math.fsum((weights * numbers).tolist()), mean_of(weights, numbers, np.empty(size))
        assert np.float64(exact).tobytes() == np.float64(found).tobytes()
