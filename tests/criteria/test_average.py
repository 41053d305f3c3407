"""Long-run cost a step: values that are known, the bracket that holds for any h, and gains that differ."""

import numpy as np

import drmdp
from criteria_cases import queue


def test_a_chain_that_goes_round():
    model = drmdp.Model([[[[0, 1]], [[1, 0]]]], rewards=[0.0, 1.0], discount=0.9)
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), criterion="average")
    assert found.lower[0] <= 0.5 <= found.upper[0]
    assert found.gap <= 1e-12
    worth = drmdp.evaluate(model, drmdp.Wasserstein(0.0), [0, 0], criterion="average")
    assert worth.lower[0] <= 0.5 <= worth.upper[0]


def test_a_gain_is_saved_and_loaded(tmp_path):
    found = drmdp.solve(queue(5), drmdp.Wasserstein(0.1), criterion="average")
    found.save(tmp_path / "s.npz")
    again = drmdp.Solution.load(tmp_path / "s.npz")
    assert (again.criterion, again.time) == ("average", None)
    np.testing.assert_array_equal(again.bias, found.bias)
