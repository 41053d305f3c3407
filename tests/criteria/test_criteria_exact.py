"""Certificates of totals and averages in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

import drmdp
from criteria_cases import deck, exact_steps
from drmdp.solution import Status


@pytest.mark.parametrize("seed", range(60))
def test_certificates_of_totals_hold_in_fractions(seed):
    mid, low, high, costs = deck(seed)
    S = len(mid)
    model = drmdp.Model(mid[None], costs=costs, discount=1.0, terminal={S - 1: float(seed % 3)})
    try:
        found = drmdp.solve(model, drmdp.Intervals(low, high), max_iters=60, threads=1)
    except drmdp.InputError:
        return
    live, slack = ~model.terminal, Fraction(1, 10**15)
    below, above = found.sweeps
    assert (found.lower <= found.upper).all()
    if np.isfinite(found.upper[live]).all():
        steps = exact_steps(model, low, high, above.value, above.update.policy)
        for s in np.flatnonzero(live):
            assert steps[s] < 0
            assert (
                Fraction(float(above.value[s])) + steps[s]
                <= Fraction(float(found.upper[s])) * (1 + slack) + slack
            )
    if below is not None:
        steps = exact_steps(model, low, high, below.value)
        for s in np.flatnonzero(live):
            assert steps[s] >= 0
            assert (
                Fraction(float(found.lower[s]))
                <= Fraction(float(below.value[s])) + steps[s] + slack
            )
    if found.status is Status.solved:
        assert found.gap <= 1e-6 * found.scale


@pytest.mark.parametrize("seed", range(20))
def test_certificates_of_averages_hold_in_fractions(seed):
    mid, low, high, costs = deck(seed)
    model = drmdp.Model(mid[None], costs=costs, discount=0.9)
    found = drmdp.solve(
        model, drmdp.Intervals(low, high), criterion="average", max_iters=60, threads=1
    )
    below, above = found.sweeps
    most = max(exact_steps(model, low, high, above.value, above.update.policy))
    least = min(exact_steps(model, low, high, below.value))
    assert max(least, Fraction(min(0.0, costs.min()))) >= Fraction(
        float(found.lower[0])
    )  # nothing is beyond all costs
    assert min(most, Fraction(max(0.0, costs.max()))) <= Fraction(float(found.upper[0]))
