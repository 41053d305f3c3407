"""How paths over radii end, and what may not slip into their answers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import Status, Wasserstein, instances, radius
from drmdp.cli import main
from drmdp.radius.path import Tracer


@pytest.fixture
def stopping(monkeypatch):
    """Let the second solution of every path end with a given status."""

    def stop(status):
        solve, calls = Tracer.solve, []

        def solved(self, r, near):
            calls.append(r)
            point = solve(self, r, near)
            return replace(point, status=status) if len(calls) == 2 else point

        monkeypatch.setattr(Tracer, "solve", solved)
        return calls

    return stop


def test_an_interrupted_path_ends_there(stopping):
    calls = stopping(Status.interrupted)
    found = radius.path(instances.machine(5), Wasserstein(0, "l1", 1, "all"), [0, 0.1, 0.2, 0.3])
    assert calls == [0, 0.1]
    assert found.radii.tolist() == [0, 0.1]
    assert found.status is Status.interrupted


@pytest.mark.parametrize(
    ("status", "code", "radii"),
    [(Status.interrupted, 130, 2), (Status.iteration_limit, 3, 4), (Status.solved, 0, 4)],
)
def test_the_exit_code_of_a_sweep_tells_how_its_path_ended(status, code, radii, stopping, tmp_path):
    drmdp.write(instances.machine(5), tmp_path / "machine.npz")
    stopping(status)
    found = CliRunner().invoke(
        main, ["sweep", str(tmp_path / "machine.npz"), "--radii", "0,.1,.2,.3", "--json"]
    )
    assert found.exit_code == code
    assert found.stdout.count('"radius"') == radii


def test_states_that_do_not_change_are_left_alone(monkeypatch):
    """Both actions of the last state are the same: a solution in the middle that takes the other
    one is no change.
    """
    kernels = np.zeros((4, 2, 4))
    kernels[0] = [[0, 0.9, 0.1, 0], [0, 1, 0, 0]]
    kernels[2], kernels[3] = [0, 1, 0, 0], [0, 0, 0, 1]
    costs = np.array([[0.0, 1.0], [0.0, 0.0], [10.0, 10.0], [1.0, 1.0]])
    model = drmdp.Model(kernels, costs=costs, discount=0.5, terminal=[1])
    solve = Tracer.solve

    def solved(self, r, near):
        point = solve(self, r, near)
        point.policy[3] = [1.0, 0.0] if r in (0.0, 1.0) else [0.0, 1.0]
        return point

    monkeypatch.setattr(Tracer, "solve", solved)
    found = radius.path(model, Wasserstein(0, "l1", 1, "observed"), [0, 1.0])
    changes = radius.critical(found, precision=1e-2)
    assert [change.state for change in changes] == [0]


@pytest.mark.parametrize("metric", ["l2", "linf"])
def test_the_sufficient_radius_by_hand(metric):
    """All rows at once: four rows of two kernels share what may go wrong."""
    model = instances.perturb(
        drmdp.Model(np.full((2, 1, 2), 0.5), costs=np.zeros((2, 1)), discount=0.5), 2
    )
    found = radius.sufficient(model, Wasserstein(0, metric, math.inf, "all"), 100, confidence=0.9)
    log = math.log(4 / 0.1)
    by_hand = {
        "l2": (math.sqrt(0.5) + math.sqrt(log)) / 10,
        "linf": math.sqrt((math.log(2) + log) / 200),  # two next states are one statement
    }[metric]
    np.testing.assert_allclose(found, by_hand, rtol=1e-14)
