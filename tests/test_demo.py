"""The record of the Nile, the dam that lives on it, and what the demo and its story say of them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import drmdp

sys.path.append(str(Path(__file__).parent.parent / "examples"))
import nile

POINT = drmdp.Wasserstein(0, moves="events")


def test_the_record_is_the_published_one():
    assert nile.FLOWS.size == 100
    assert nile.FLOWS[[0, -1]].tolist() == [1120, 740]
    assert nile.FLOWS.mean() == pytest.approx(919.35)
    assert nile.FIRST + nile.FLOWS.argmin() == 1913
    assert 1 - nile.FLOWS[28:].mean() / nile.FLOWS[:28].mean() > 0.2  # the fall of 1898


def test_years_are_replayed_one_after_the_other():
    policy = np.eye(nile.PROMISES.size)[np.random.default_rng(0).integers(0, 11, nile.FULL + 1)]
    costs = nile.replay(policy, 1921, 1970, demand=95)
    for start in (0, 7, nile.FULL):
        storage = start
        for k, flow in enumerate(nile.FLOWS[50:]):
            water = storage + round(flow / 50)
            given = min(10 + policy[storage].argmax(), water)
            assert costs[start, k] == max(19 - given, 0) ** 3
            storage = min(water - given, 20)


def test_a_kernel_is_a_decade():
    model = nile.reservoir(1871, 1920, demand=95)
    row = model.kernels[4].toarray()[10 * 11 + 5]  # storage 50, promise 75, 1911 to 1920
    counted = np.zeros(nile.FULL + 1)
    for flow in nile.FLOWS[40:50]:
        counted[min(10 + round(flow / 50) - 15, 20)] += 0.1
    np.testing.assert_allclose(row, counted, atol=1e-12)


@pytest.mark.parametrize(
    ("demand", "least", "most"), [(85, 5, 9), (90, 0.9, 1), (95, 0.75, 0.85), (100, 0.6, 0.7)]
)
def test_what_caution_pays_is_what_the_story_says(demand, least, most):
    known = nile.reservoir(1871, 1920, demand)
    ambiguity = POINT.with_radius(drmdp.radius.cross_validate(known, POINT).radius)
    robust = drmdp.policies.deterministic(known, ambiguity, drmdp.solve(known, ambiguity))
    nominal = drmdp.solve(known, POINT)
    paid = [nile.replay(rule.policy, 1921, 1970, demand).mean() for rule in (nominal, robust)]
    assert least < paid[1] / paid[0] < most
