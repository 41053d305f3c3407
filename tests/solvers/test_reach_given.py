"""The probability that a given policy reaches a target: against plain iteration and one chain,
proofs of it, and what is refused.
"""

import numpy as np
import pytest
from test_reach import BALLS, NATURES, plain, random_rows, swap

import drmdp
import drmdp_check
from drmdp.core.levels import ended
from drmdp.criteria.reach import model_of
from drmdp.operators.build import build


def iterated(model, ambiguity, nature, policy):
    """Steps of the policy from 0, which come from below, (S,)."""
    operator = build(model, ambiguity.fitted(model).facing(nature), "exact", 1)
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


@pytest.mark.parametrize(
    "ambiguity", [*BALLS, "intervals"], ids=lambda ambiguity: getattr(ambiguity, "words", ambiguity)
)
def test_every_set_against_plain_iteration(ambiguity):
    for seed in range(2):
        rng = np.random.default_rng([seed, 23])
        model = plain(random_rows(rng, 6, 2, 3))
        own, x, ends = (
            drmdp.Intervals.of(model, margin=0.1) if ambiguity == "intervals" else ambiguity,
            mixed(rng, model),
            np.eye(6, dtype=bool),
        )
        for minimise in (False, True):
            for nature in NATURES:
                found = drmdp.evaluate(
                    model,
                    own,
                    x,
                    criterion="reach",
                    target=5,
                    avoid=4,
                    minimise=minimise,
                    nature=nature,
                )
                near = iterated(model_of(model, ends[5], ends[4], minimise), own, nature, x)
                assert found.criterion == "reach"
                assert (near <= found.upper + 1e-10).all()
                assert (found.lower <= near + 1e-6).all()
                assert found.gap <= 2e-6


def test_the_policy_of_a_solution_has_its_probability(tmp_path):
    ambiguity = drmdp.Wasserstein(0.1, "l1")
    best = drmdp.reach(swap(), ambiguity, "goal", "crash")
    asked = {"criterion": "reach", "target": "goal", "avoid": "crash"}
    found = drmdp.evaluate(swap(), ambiguity, best, **asked)
    assert found.status == "solved"
    np.testing.assert_allclose(found.value[:2], 0.55, atol=2e-6)
    waits = drmdp.evaluate(swap(), ambiguity, [0, 0, 0, 0], **asked)  # round in circles for ever
    assert waits.upper[:2].tolist() == waits.lower[:2].tolist() == [0.0, 0.0]
    drmdp.write(swap(), tmp_path / "m.npz")
    for k, one in enumerate((found, waits)):
        one.proof(tmp_path / f"{k}.proof")
        for more in ([], ["--interval"]):
            assert (
                drmdp_check.main([str(tmp_path / f"{k}.proof"), str(tmp_path / "m.npz"), *more])
                == 0
            )


def test_a_target_goes_with_reach():
    for given in ({"target": "goal"}, {"avoid": "goal"}, {"minimise": True}):
        with pytest.raises(drmdp.InputError, match="go with criterion='reach'"):
            drmdp.evaluate(swap(), drmdp.Wasserstein(0.1), [0, 0, 0, 0], **given)
    with pytest.raises(drmdp.InputError, match="target"):
        drmdp.evaluate(swap(), drmdp.Wasserstein(0.1), [0, 0, 0, 0], criterion="reach")


def test_a_policy_repeated_has_a_deadline():
    model, ambiguity = swap(), drmdp.Wasserstein(0.1, "l1")
    asked = {"criterion": "reach", "target": "goal", "avoid": "crash"}
    plan = drmdp.reach(model, ambiguity, "goal", "crash", within=3)
    found = drmdp.evaluate(model, ambiguity, plan, **asked)
    np.testing.assert_allclose(found.value, plan.value, atol=1e-9)
    assert found.settings["criterion"] == "reach"
    assert "within 3 steps" in found.settings["answer"]
    policy = [1, 0, 0, 0]
    soon = [drmdp.evaluate(model, ambiguity, policy, within=n, **asked) for n in (1, 2, 40)]
    ever = drmdp.evaluate(model, ambiguity, policy, **asked)
    firsts = [each.value[0] for each in soon]
    assert (firsts[0] <= firsts[1] + 1e-12).all()
    np.testing.assert_allclose(firsts[2], ever.value, atol=2e-6)
    repeated = drmdp.evaluate(model, ambiguity, [model.policy(policy)] * 2, **asked)
    np.testing.assert_array_equal(soon[1].value, repeated.value)
    with pytest.raises(drmdp.InputError, match="within: the plan has 3 stages, got 2"):
        drmdp.evaluate(model, ambiguity, plan, within=2, **asked)
    with pytest.raises(drmdp.InputError, match="go with criterion='reach'"):
        drmdp.evaluate(model, ambiguity, policy, within=2)
    with pytest.raises(drmdp.InputError, match="final: a probability has none"):
        drmdp.evaluate(model, ambiguity, policy, within=2, final=[0, 0, 0, 0], **asked)
