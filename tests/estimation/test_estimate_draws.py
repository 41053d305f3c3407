"""Draws of kernels from a table: the same ones for the same data, and what each of them was made
of.
"""

import numpy as np
import pytest
from test_estimate import log

from drmdp import estimate
from drmdp.estimation.log.table import Columns
from drmdp.estimation.pipeline import fit
from drmdp.estimation.settings import Settings

LOOSE = {"unvisited": "self-loop", "partial": "self-loop", "discount": 0.9}


@pytest.mark.parametrize("by", ["bootstrap", "folds", "parts"])
def test_the_order_of_the_rows_does_not_change_what_is_drawn(by):
    """Episodes are drawn by name, not in the order in which they were met."""
    table = log(400)
    common = {"cost": "cost", "episode": "episode", "by": by, "n_kernels": 5, "seed": 1, **LOOSE}
    first = estimate(table, **common)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(400)
        shuffled = {name: [column[k] for k in order] for name, column in table.items()}
        assert estimate(shuffled, **common) == first


def test_weights_say_nothing_about_how_many_transitions_a_kernel_has():
    table, columns = log(100), {"cost": "cost", "episode": "episode"}
    settings = Settings(by="parts", n_kernels=3, seed=3, **LOOSE)
    plain = fit(table, Columns(**columns), settings).summary.kernel_transitions
    assert sum(plain) == 100
    table["weight"] = [3] * 100
    assert (
        fit(table, Columns(weight="weight", **columns), settings).summary.kernel_transitions is None
    )


def test_a_transition_of_weight_zero_out_of_a_terminal_state_is_none():
    table = {
        "state": [0, 1, 0],
        "action": ["a", "a", "a"],
        "next_state": [1, 0, 1],
        "weight": [1.0, 0.0, 2.0],
    }
    common = {"weight": "weight", "costs": "state", "discount": 0.9, "terminal": [1]}
    model = estimate(table, **common)
    np.testing.assert_array_equal(model.terminal, [False, True])
    np.testing.assert_array_equal(model.kernels[0, 0, 0], [0, 1])
    with pytest.raises(ValueError, match="state 1 is terminal, but 0 follows"):
        estimate(table | {"weight": [1.0, 0.5, 2.0]}, **common)


def test_rows_without_data_are_drawn_like_the_others():
    """With posterior draws, `unvisited="prior"` draws a row for every kernel: no two are alike, and
    their mean is uniform.
    """
    table = {"state": [0, 0, 1, 2], "action": ["a", "b", "a", "a"], "next_state": [1, 2, 2, 0]}
    found = estimate(
        table,
        costs="state",
        discount=0.9,
        unvisited="prior",
        by="posterior",
        n_kernels=400,
        prior=1.0,
        seed=2,
    )
    drawn = found.kernels[:, 1, 1]  # never seen
    assert np.unique(drawn[:, 0]).size == 400
    np.testing.assert_allclose(drawn.mean(axis=0), 1 / 3, rtol=0, atol=0.05)
    np.testing.assert_allclose(
        drawn.var(axis=0), 2 / 9 / 4, rtol=0, atol=0.02
    )  # of a uniform distribution on the simplex
