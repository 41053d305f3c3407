"""The conic operators against formulations written separately, from the definition of the ball
(`reference`).
"""

import numpy as np
import pytest

import cases
import reference
from drmdp.certificate.dense import TINY
from drmdp.operators.conic.operator import ConicOperator
from drmdp.sets import PAIRS

MARGIN = 1000  # ulps: the certificate's rounding margin grows with the number of terms
IDS = [f"{metric}-{order:g}" for metric, order in PAIRS]


def allowed(case, relative=1e-7, policy=None, ulps=64):
    """Tolerance of the reference, and the rounding of costs and values that may cancel."""
    costs = np.max(np.abs(case.model.cost_range))
    rounding = ulps * np.finfo(float).eps * (costs + np.abs(case.value).max())
    return (
        reference.tolerance(case.model, case.ambiguity, case.value, relative, policy)
        + rounding
        + 4 * TINY
    )


def check(case, rng):
    model, ambiguity, value = case.model, case.ambiguity, case.value
    S = model.n_states
    operator = ConicOperator(model, ambiguity)
    update = operator.update(value, 0, S)
    want = reference.robust_update(model, ambiguity, value)
    slack = allowed(case)
    assert np.all(np.abs(update.value - want) <= slack), f"{case.name}: value"
    assert np.all(value + update.lower_step <= want + slack * 0.2), f"{case.name}: lower bound"
    assert np.all(value + update.upper_step >= want - slack * 0.2), f"{case.name}: upper bound"
    assert np.all(update.upper_step - update.lower_step <= allowed(case, ulps=MARGIN)), (
        f"{case.name}: bounds apart"
    )
    # policy and kernel attain the value
    worst = reference.robust_evaluate(model, ambiguity, update.policy, value)
    assert np.all(np.abs(worst - want) <= slack), f"{case.name}: policy"
    z = np.where(update.kernel > 0, reference.stakes(model, value), 0)
    best = np.where(model.available, (update.kernel * z).sum(axis=2), np.inf).min(axis=1)
    best[model.terminal] = 0
    assert np.all(np.abs(best - want) <= slack), f"{case.name}: kernel"
    # a fixed policy, on the same programs
    policy = rng.dirichlet(np.ones(model.n_actions), size=S) * model.available
    policy = np.where(rng.random(policy.shape) < 0.3, policy * 1e-30, policy)
    policy = np.divide(
        policy, policy.sum(axis=1, keepdims=True), out=np.zeros_like(policy), where=model.available
    )
    fixed = operator.evaluate(value, policy, 0, S)
    wanted = reference.robust_evaluate(model, ambiguity, policy, value)
    loose = allowed(case, policy=policy)
    assert np.all(np.abs(fixed.value - wanted) <= loose), f"{case.name}: evaluation"
    apart = fixed.upper_step - fixed.lower_step
    assert np.all(apart <= allowed(case, policy=policy, ulps=MARGIN)), (
        f"{case.name}: bounds of the evaluation apart"
    )


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_agrees_with_the_definition(pair):
    rng = np.random.default_rng(1)
    for case in cases.cases(pair, 8, seed=1):
        check(case, rng)


@pytest.mark.fuzz
@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_agrees_with_the_definition_often(pair):
    rng = np.random.default_rng(2)
    for case in cases.cases(pair, 200, seed=2):
        check(case, rng)


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
@pytest.mark.parametrize("n", [7, pytest.param(15, marks=pytest.mark.fuzz)])
def test_a_second_update_on_the_same_programs_is_as_good_as_a_first(pair, n):
    """Only the stakes change between sweeps; warm starts must not matter."""
    rng = np.random.default_rng(3)
    for case in cases.cases(pair, n, seed=3):
        S = case.model.n_states
        operator = ConicOperator(case.model, case.ambiguity)
        for _ in range(3):
            noise = rng.standard_normal(S) * max(np.ptp(case.value), 1e-9)
            operator.update(np.where(case.model.terminal, 0, case.value + noise), 0, S)
        again = operator.update(case.value, 0, S).value
        first = ConicOperator(case.model, case.ambiguity).update(case.value, 0, S).value
        assert np.all(np.abs(again - first) <= allowed(case)), case.name


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
@pytest.mark.parametrize("n", [5, pytest.param(10, marks=pytest.mark.fuzz)])
def test_any_range_of_states_gives_the_same_as_all_of_them(pair, n):
    for case in cases.cases(pair, n, seed=4):
        S = case.model.n_states
        whole = ConicOperator(case.model, case.ambiguity).update(case.value, 0, S)
        operator = ConicOperator(case.model, case.ambiguity)
        parts = [operator.update(case.value, s, s + 1) for s in range(S)]
        slack = allowed(case, relative=1e-13)
        assert np.all(np.abs(np.concatenate([p.value for p in parts]) - whole.value) <= slack), (
            case.name
        )
