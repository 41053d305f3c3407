"""Totals and averages of models of events: those of the same model as a table, where nature moves
next states; and those of laws.
"""

import numpy as np
import pytest

import drmdp


def walk(s, a, e):
    """Down by the action, up or down by the event."""
    return np.minimum(np.maximum(s + e - 1 - a, 0), 9)


def queue(**given):
    """Ten states, two actions, three events, two laws."""
    costs = np.arange(10)[:, None] * 0.1 + np.array([1, 1.5])
    return drmdp.Model.from_events(
        10, 2, 3, walk, [[0.3, 0.4, 0.3], [0.5, 0.3, 0.2]], costs=costs, **given
    )


@pytest.mark.parametrize("moves", ["states", "events"])
def test_totals_and_averages_of_events(moves):
    ambiguity = drmdp.Wasserstein(0.1, moves=moves)
    model, endless = queue(discount=1.0, terminal={0: 5.0}), queue(discount=0.9)
    total = drmdp.solve(model, ambiguity)
    gain = drmdp.solve(endless, ambiguity, criterion="average")
    assert total.status == gain.status == "solved"
    assert (total.time[1:] > 1).all()
    assert (drmdp.evaluate(model, ambiguity, total).lower <= total.upper).all()
    if moves == "states":
        tables = model.stored(), endless.stored()
        for found, other in (
            (total, drmdp.solve(tables[0], ambiguity)),
            (gain, drmdp.solve(tables[1], ambiguity, criterion="average")),
        ):
            assert (found.lower <= other.upper).all()
            assert (other.lower <= found.upper).all()
            assert np.abs(found.value - other.value).max() <= 2e-6 * other.scale


def test_events_that_are_moved_reach_nothing_yet():
    with pytest.raises(drmdp.InputError, match="take moves='states'"):
        drmdp.reach(queue(discount=0.9), drmdp.Wasserstein(0.1, moves="events"), [0])
