"""States of a model by ranges: what they are, what identifies them, what is refused of them."""

from itertools import pairwise

import numpy as np
import pytest

import drmdp
from drmdp import instances
from drmdp.model import state_ranges


def named(n=23, **more):
    """Make a model with names, terminal states and actions that are not available."""
    y = instances.perturb(instances.garnet(n, 3, seed=2), 4).kernels
    available = np.arange(n * 3).reshape(n, 3) % 5 != 0
    given = {
        "states": [f"s{s}" for s in range(n)],
        "terminal": [f"s{n - 1}"],
        "available": available,
    }
    return drmdp.Model(
        y, **{"costs": np.arange(3.0 * n).reshape(n, 3), "discount": 0.9} | given | more
    )


def fresh(model):
    """The fingerprint computed again."""
    return drmdp.Model.fingerprint.func(model)


@pytest.mark.parametrize("costs", [(23, 3), (23, 3, 23), "listed"], ids=str)
@pytest.mark.parametrize("cuts", [[], [7], [1, 2, 3], [5, 10, 20], range(1, 23)], ids=str)
def test_the_fingerprint_does_not_depend_on_who_computes_which_block(costs, cuts, monkeypatch):
    monkeypatch.setattr(state_ranges, "BLOCK", 5)
    model = named()
    if costs == "listed":
        model = named(costs=model.blocks.matrix(np.arange(model.mean.size) * 0.5))
    elif len(costs) == 3:
        model = named(costs=np.arange(23 * 3 * 23.0).reshape(costs))
    ends = [0, *cuts, 23]
    joined = [found for lo, hi in pairwise(ends) for found in state_ranges.digests(model, lo, hi)]
    assert len(joined) == 5
    assert state_ranges.fingerprint(model.head, joined) == fresh(model)
    assert state_ranges.fingerprint(model.head, joined[::-1]) != fresh(model)


def test_a_change_in_any_block_changes_the_fingerprint(monkeypatch):
    monkeypatch.setattr(state_ranges, "BLOCK", 5)
    model = named()
    seen = {fresh(model)}
    for s in range(22):
        costs = np.array(model.costs)
        costs[s, np.argmax(model.available[s])] += 1e-9
        seen.add(fresh(named(costs=costs)))
        names = [f"s{s}" for s in range(23)]
        names[s] = "other"
        seen.add(fresh(named(states=names)))
    assert len(seen) == 45


def test_parts_of_a_span_are_the_states_of_the_model():
    model = named()
    part = model.span(3, 20).part(4, 9)
    assert (part.first, list(part.names)) == (7, ["s7", "s8", "s9", "s10", "s11"])
    np.testing.assert_array_equal(part.blocks.dense(0, 5), model.blocks.dense(7, 12))
    np.testing.assert_array_equal(part.costs, model.costs[7:12])
    part.check(model.labels, model.discount)
