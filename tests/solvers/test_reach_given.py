"""The probability that a given policy reaches a target: against plain iteration and one chain, proofs of it, and what is refused."""

import numpy as np
import pytest
from test_reach import BALLS, NATURES, plain, random_rows, swap

import drmdp
import drmdp_check
from drmdp.bellman.build import build
from drmdp.core.levels import ended
from drmdp.criteria.reach import model_of


def iterated(model, ball, nature, policy):
    """Steps of the policy from 0, which come from below, (S,)."""
    operator = build(model, ball.fitted(model).facing(nature), "exact", 1)
    value = ended(model, np.zeros(model.n_states))
    for _ in range(20_000):
        new = ended(model, operator.evaluate(value, policy, 0, value.size).value)
        if np.abs(new - value).max() < 1e-14:
            break
        value = new
    return np.abs(new)


def mixed(rng, model):
    """A policy with sure and with random rows."""
    x = rng.dirichlet(np.full(model.n_actions, 0.5), model.n_states) * model.available
    return np.where(x > 0.2, x, 0) / np.where(x > 0.2, x, 0).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("ball", [*BALLS, "intervals"], ids=lambda ball: getattr(ball, "words", ball))
def test_every_set_against_plain_iteration(ball):
    for seed in range(2):
        rng = np.random.default_rng([seed, 23])
        model = plain(random_rows(rng, 6, 2, 3))
        own, x, ends = (
            drmdp.Intervals.of(model, margin=0.1) if ball == "intervals" else ball,
            mixed(rng, model),
            np.eye(6, dtype=bool),
        )
        for minimise in (False, True):
            for nature in NATURES:
                found = drmdp.evaluate(
                    model, own, x, criterion="reach", target=5, avoid=4, minimise=minimise, nature=nature
                )
                near = iterated(model_of(model, ends[5], ends[4], minimise), own, nature, x)
                assert found.criterion == "reach"
                assert (near <= found.upper + 1e-10).all()
                assert (found.lower <= near + 1e-6).all()
                assert found.gap <= 2e-6


def test_the_policy_of_a_solution_has_its_probability(tmp_path):
    ball = drmdp.Wasserstein(0.1, "l1")
    best = drmdp.reach(swap(), ball, "goal", "crash")
    asked = {"criterion": "reach", "target": "goal", "avoid": "crash"}
    found = drmdp.evaluate(swap(), ball, best, **asked)
    assert found.status == "solved"
    np.testing.assert_allclose(found.value[:2], 0.55, atol=2e-6)
    waits = drmdp.evaluate(swap(), ball, [0, 0, 0, 0], **asked)  # round in circles for ever
    assert waits.upper[:2].tolist() == waits.lower[:2].tolist() == [0.0, 0.0]
    drmdp.write(swap(), tmp_path / "m.npz")
    for k, one in enumerate((found, waits)):
        one.proof(tmp_path / f"{k}.proof")
        for more in ([], ["--interval"]):
            assert drmdp_check.main([str(tmp_path / f"{k}.proof"), str(tmp_path / "m.npz"), *more]) == 0


def test_a_target_goes_with_reach():
    for given in ({"target": "goal"}, {"avoid": "goal"}, {"minimise": True}):
        with pytest.raises(drmdp.InputError, match="go with criterion='reach'"):
            drmdp.evaluate(swap(), drmdp.Wasserstein(0.1), [0, 0, 0, 0], **given)
    with pytest.raises(drmdp.InputError, match="target"):
        drmdp.evaluate(swap(), drmdp.Wasserstein(0.1), [0, 0, 0, 0], criterion="reach")
