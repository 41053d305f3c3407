"""Logs that are judged by the truth: what is measured is what the page shows."""

import numpy as np
import pytest

import drmdp
from drmdp_lab import logs


@pytest.mark.parametrize("name", logs.PROBLEMS)
def test_larger_sets_promise_less(name):
    found = dict(logs.outcomes(name, 3000, 1))
    assert list(found) == list(logs.SETS)
    above = {row: outcome[1] for row, outcome in found.items()}
    assert above["nominal"] < above["burg, value, 50 %"] < above["burg, log, 95 %"]
    assert above["Intervals, 95 %"] < above["Intervals, 95 % jointly"]
    assert all(loss > -1e-9 for _, _, loss in found.values())


def test_a_log_is_one_of_its_model():
    truth = drmdp.instances.machine(6)
    log = logs.log_of(truth, 4000, np.random.default_rng(1))
    seen = np.zeros((6, 2, 6))
    np.add.at(seen, (log["state"], log["action"], log["next_state"]), 1)
    assert not seen[truth.kernels[0] == 0].any()
    n = seen.sum(axis=2, keepdims=True)
    p = truth.kernels[0]
    assert (np.abs(seen - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1e-9).all()
    chain = np.einsum("sa,sat->st", np.full((6, 2), 0.5), p)
    v = np.zeros(6)
    for _ in range(300):
        v = 0.5 * np.asarray(truth.costs).sum(axis=1) + truth.discount * chain @ v
    assert logs.true_value(truth, np.asarray(truth.costs), np.full((6, 2), 0.5)) == pytest.approx(
        v.mean()
    )
