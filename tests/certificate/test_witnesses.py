"""The compiled certificate believes nobody: whatever an operator hands over, no bound is false.

Policies and the numbers in `Memory` (multipliers, thresholds, masses, radii, mixtures) are replaced
by others, and the bounds compared with exact values (`lumped`) for the six balls, for every
registered set with those of an honest witness, state by state. An honest witness gives tight
bounds, so the comparison is not idle.
"""

from fractions import Fraction

import numpy as np
import pytest

import drmdp
from decks import ONE_PER_SOLVER, SETS, deck
from drmdp.certificate import RobustProver, compressed
from drmdp.operators.exact import ExactOperator
from lumped_cases import SIX, cases

SIZES = (4, 7, 12, 40)
DIRT = (0.0, -1.0, 1.0, 1e-300, 1e-12, 1e12, 1e300, np.nan, np.inf, -np.inf)


def scaled(rng, array):
    return array * 10.0 ** rng.uniform(-1, 1, array.shape)


def enlarged(rng, array):
    return array * rng.choice([1.5, 10.0, 1e6])


def shaken(rng, array):
    return array * (1 + 10.0 ** rng.uniform(-14, -2) * rng.standard_normal(array.shape))


def shifted(rng, array):
    """Thresholds that are a little off leave masses that are not 1."""
    return array + rng.choice([1e-9, 1e-3, 0.05, 0.3]) * rng.standard_normal(array.shape)


def swapped(rng, array):
    return rng.permutation(array.ravel()).reshape(array.shape)


def random(rng, array):
    return rng.standard_normal(array.shape)


def soiled(rng, array):
    return np.where(
        rng.random(array.shape) < rng.choice([0.1, 0.5, 1.0]), rng.choice(DIRT, array.shape), array
    )


def nothing(rng, array):
    return np.zeros_like(array)


LIES = (scaled, enlarged, shaken, shifted, swapped, random, soiled, nothing)


def lie(rng, array):
    """Some part of a witness, false; its type is kept."""
    with np.errstate(all="ignore"):
        return LIES[rng.integers(len(LIES))](rng, np.asarray(array)).astype(array.dtype)


def other_policy(rng, problem):
    """Policy by kind, (G, A), pure or mixed, in eighths."""
    policy = np.zeros(problem.open.shape)
    for g in np.flatnonzero(~problem.ends):
        own = np.flatnonzero(problem.open[g])
        policy[g, own] = rng.multinomial(8, rng.dirichlet(np.full(own.size, 0.5))) / 8
    return policy


def steps(case):
    """Exact F(v) − v of each state."""
    problem = case.problem
    low, high = problem.bellman(case.value)
    return tuple(
        [side[g] - Fraction(float(case.value[g])) for g in problem.kind] for side in (low, high)
    )


def exceeded(update, exact) -> list[str]:
    """Where L − v is above the truth or U − v below it; NaN is neither a bound."""
    wrong = []
    for s, (below, above, least, most) in enumerate(
        zip(update.lower_step.tolist(), update.upper_step.tolist(), *exact, strict=True)
    ):
        if not (below == -np.inf or (np.isfinite(below) and Fraction(below) <= most)):
            wrong.append(f"state {s}: lower {below!r} against {float(most)!r}")
        if not (above == np.inf or (np.isfinite(above) and Fraction(above) >= least)):
            wrong.append(f"state {s}: upper {above!r} against {float(least)!r}")
    return wrong


def check(pair, n, seed, lies):
    """Lie so often about each of n problems; returns how many lies were told, and the false
    bounds.
    """
    rng, told, wrong = np.random.default_rng(seed), 0, []
    for case in cases(pair, n, seed, SIZES):
        problem = case.problem
        value, exact = problem.expand(case.value), steps(case)
        operator = ExactOperator(problem.model, problem.ambiguity, threads=1)
        honest = operator.update(value, 0, value.size)
        prover = RobustProver(problem.model, problem.ambiguity, 1)
        wrong += exceeded(prover.prove(value, honest.policy, honest.claim, False), exact)
        for k in range(lies):
            memory = honest.claim
            which = rng.choice(memory._fields, size=rng.integers(1, 4), replace=False)
            memory = memory._replace(**{name: lie(rng, getattr(memory, name)) for name in which})
            policy, own = honest.policy, exact
            if k % 4 == 1:
                policy = lie(rng, policy)
            elif k % 4 == 2:
                by_kind = other_policy(rng, problem)
                policy = by_kind[problem.kind]
            fixed = k % 4 == 2
            if fixed:
                low, high = problem.bellman(case.value, by_kind)
                own = tuple(
                    [side[g] - Fraction(float(case.value[g])) for g in problem.kind]
                    for side in (low, high)
                )
            with np.errstate(all="ignore"):
                found = prover.prove(value, policy, memory, fixed)
            wrong += [f"{case.name}, lie {k}: {one}" for one in exceeded(found, own)]
            told += 1
    return told, wrong


@pytest.mark.parametrize("pair", SIX, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")
def test_lies_do_not_make_false_bounds(pair):
    assert check(pair, 4, 1, lies=16) == (64, [])


NO_POLICIES = (
    [0.0, 0.0, 0.0],
    [np.nan] * 3,
    [-1.0, 0.0, 0.0],
    [np.inf, 0.0, 1.0],
    [0.25, 0.0, 0.0],
    [2.0, 0.0, 0.0],
    [0.0, 0.0, 1.0],
)
"""The third action is not available."""


def test_what_is_no_policy_counts_as_none():
    available = np.array([[True, True, False]])
    for given in NO_POLICIES:
        assert not compressed._playable(np.array([given]), available).any()
    for given, played in (
        ([0.75, 0.25, 0.0], [0.75, 0.25, 0.0]),
        ([np.nan, 1.0, 0.5], [0, 1, 0]),
        ([-1, 0.9, 0], [0, 0.9, 0]),
    ):
        np.testing.assert_array_equal(compressed._playable(np.array([given]), available), [played])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("pair", SIX, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")
def test_what_is_no_policy_proves_nothing(pair, dtype):
    available = np.array([[True, True, False]] * 2)
    model = drmdp.Model(
        np.full((1, 2, 3, 2), 0.5, dtype), costs=np.eye(2, 3), discount=0.5, available=available
    )
    ambiguity, value = drmdp.Wasserstein(0.1, *pair, "all"), np.array([0.0, 1.0])
    honest, prover = (
        ExactOperator(model, ambiguity, threads=1).update(value, 0, 2),
        RobustProver(model, ambiguity, 1),
    )
    for fixed in (False, True):
        for given in NO_POLICIES:
            found = prover.prove(value, np.array([given, honest.policy[1]]), honest.claim, fixed)
            assert found.upper_step[0] == np.inf
            assert np.isfinite(found.upper_step[1])
            assert np.isfinite(found.lower_step).tolist() == [not fixed, True]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("pair", SIX, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")
def test_lies_do_not_make_false_bounds_often(pair, seed):
    assert check(pair, 60, seed, lies=40) == (2400, [])


def lie_about(name, n, seed, lies):
    """Lie so often about each of n problems of a set; returns how many lies were told."""
    rng, told = np.random.default_rng(seed), 0
    for case in deck(name, n, seed):
        model, value = case.model, case.value
        ambiguity = case.ambiguity.fitted(model)
        honest, prover = (
            ExactOperator(model, ambiguity, threads=1),
            RobustProver(model, ambiguity, 1),
        )
        update = honest.update(value, 0, value.size)
        want = prover.prove(value, update.policy, update.claim, False)
        for k in range(lies):
            which = rng.choice(update.claim._fields, size=rng.integers(1, 4), replace=False)
            memory = update.claim._replace(
                **{part: lie(rng, getattr(update.claim, part)) for part in which}
            )
            policy = lie(rng, update.policy) if k % 3 == 1 else update.policy
            with np.errstate(all="ignore"):
                found = prover.prove(value, policy, memory, False)
            assert (found.lower_step <= want.upper_step).all(), f"{case.name}, lie {k}"
            assert (found.upper_step >= want.lower_step).all(), f"{case.name}, lie {k}"
            told += 1
    return told


@pytest.mark.parametrize("name", ONE_PER_SOLVER)
def test_lies_about_a_set_do_not_make_false_bounds(name):
    assert lie_about(name, 12, 1, lies=10) == 120


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SETS)
def test_lies_about_a_set_do_not_make_false_bounds_often(name):
    assert lie_about(name, 150, 2, lies=20) == 3000
