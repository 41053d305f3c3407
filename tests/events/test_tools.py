"""Simulation, radius tools, horizons and tables on models of events, also where events lead to one
state at several costs.
"""

import subprocess
import sys

import numpy as np
import pytest
from tests.events.test_events import conflicting, deal, remembering

import drmdp
from drmdp import InputError, Model, Wasserstein

BALLS = [Wasserstein(0.1), Wasserstein(0.1, moves="events")]


@pytest.mark.parametrize("ambiguity", BALLS, ids=str)
def test_events_that_cost_are_simulated(ambiguity):
    """Means of many trajectories are the value of the policy under the law that is drawn from."""
    model = conflicting()
    policy = drmdp.solve(model, ambiguity).policy
    for kernel, alone in ((None, model), (1, model.with_laws(model.laws[:, [1]]))):
        paths = drmdp.simulate(model, policy, kernel=kernel, n=4000, steps=60, start=2, seed=1)
        expected = drmdp.evaluate(alone, Wasserstein(0.0), policy, rtol=1e-9).value[2]
        assert paths.totals.mean() == pytest.approx(
            expected, abs=5 * paths.totals.std() / np.sqrt(4000)
        )
    again = drmdp.simulate(model, policy, n=4000, steps=60, start=2, seed=1)
    np.testing.assert_array_equal(
        again.states, drmdp.simulate(model, policy, n=4000, steps=60, start=2, seed=1).states
    )
    assert drmdp.simulate(
        deal(1, True, "scalar", store=False), np.eye(3)[np.zeros(24, int)], n=3, steps=2
    ).costs.shape == (3, 2)


def test_paths_and_choices_of_a_radius():
    """The path and its nominal values are those of the model whose states remember what was
    paid.
    """
    model = conflicting()
    path, twin = (
        drmdp.radius.path(model, BALLS[0], [0, 0.1, 0.3]),
        drmdp.radius.path(remembering(model), BALLS[0], [0, 0.1, 0.3]),
    )
    for one, other in zip(path.points, twin.points, strict=True):
        np.testing.assert_allclose(one.upper, other.upper[: model.n_states], rtol=1e-5)
    nominal = drmdp.evaluate(model, Wasserstein(0.0), path.points[1].policy, rtol=1e-9)
    np.testing.assert_allclose(path.points[1].nominal, nominal.value, rtol=1e-6)
    for ambiguity in BALLS:
        choice = drmdp.radius.cross_validate(model, ambiguity, [0, 0.1])
        out = drmdp.solve(model.with_laws(model.laws[:, 1:]), ambiguity.with_radius(0.1))
        alone = drmdp.evaluate(
            model.with_laws(model.laws[:, :1]), Wasserstein(0.0), out
        ).value.mean()
        assert choice.samples[1, 0] == pytest.approx(alone, rel=1e-4)
        assert (
            drmdp.radius.sufficient(model, ambiguity, 1000).shape == (5, 2)[: 1 + ambiguity.by_pair]
        )
        assert drmdp.radius.critical(drmdp.radius.path(model, ambiguity, [0, 0.1])) is not None


@pytest.mark.parametrize("ambiguity", BALLS, ids=str)
def test_laws_by_stage(ambiguity):
    """A horizon of models that share their rule: each stage has the laws of its season; one sweep a
    stage, by hand.
    """
    model = conflicting()
    seasons = [model.with_laws(model.laws[:, [k]]) for k in range(3)]
    plan = drmdp.finite_horizon(seasons, ambiguity, 3)
    value = np.zeros(5)
    for season in seasons[::-1]:
        value = drmdp.bellman(season, ambiguity, value).value
    np.testing.assert_allclose(plan.value[0], value, rtol=1e-9)
    assert plan.status == "solved"
    free = Model.from_events(
        3, 1, 2, lambda s, a, e: (s + 0 * (a + e), 0.0 * (s + a + e)), [[0.5, 0.5]], discount=0.9
    )
    assert not drmdp.finite_horizon(free, Wasserstein(0.1), 4).upper.any()


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("ambiguity", BALLS, ids=str)
def test_reports_and_pictures_of_kernels_need_no_costs(ambiguity, tmp_path):
    """What shows nature's kernel beside the data does so where events lead to one state at several
    costs.
    """
    pytest.importorskip("matplotlib").use("Agg")
    found = drmdp.solve(conflicting(), ambiguity)
    found.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    drmdp.plot.kernel(found)
    drmdp.plot.transitions(found)
    moved = drmdp.policies.bent(conflicting(), found.kernel)
    plain = np.zeros((5, 2, 5))
    model = conflicting()
    for e in range(5):
        for a in range(2):
            np.add.at(
                plain, (np.arange(5), a, model.rule.next[:, a, e]), model.laws[0].mean(axis=0)[e]
            )
    for one in moved:
        assert one.nominal == pytest.approx(plain[one.state, one.action, one.next_state])


def test_tables_and_what_is_said(tmp_path):
    model = conflicting()
    found = drmdp.solve(model, BALLS[1])
    frame = found.to_frame()
    nominal = drmdp.evaluate(model, Wasserstein(0.0), found, rtol=1e-9).value
    played = frame.filter(frame["state"] == 3)["nominal_value"][0]
    assert played == pytest.approx(nominal[3], rel=1e-6)
    with pytest.raises(InputError, match=r"one cost for a transition, and this asks for kernels"):
        drmdp.simulate(model, found, kernel=found.kernel)
    found.proof(tmp_path / "a.proof")
    drmdp.write(model, tmp_path / "m.drmdp")
    command = [sys.executable, "-m", "drmdp_check", tmp_path / "a.proof", tmp_path / "m.drmdp"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
