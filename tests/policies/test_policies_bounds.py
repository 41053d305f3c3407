"""What `policies` says of actions is proved, and ties are left as they are."""

from dataclasses import replace

import numpy as np
import pytest

import drmdp
from drmdp import Wasserstein, policies
from lumped import false_bounds
from lumped_cases import SIX, cases


@pytest.mark.parametrize("count", [6, pytest.param(100, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("pair", SIX, ids=str)
def test_the_value_of_an_action_is_a_bound(pair, count):
    """Each action played once, and the robust value afterwards: never better than it is."""
    for case in cases(pair, count, 17, (5, 12, 60)):
        problem, sign = case.problem, -1.0 if case.problem.rewards else 1.0
        size = np.abs(problem.costs).max() / (1 - problem.discount)
        solution = drmdp.solve(problem.model, problem.ambiguity, tol=1e-6 * size)
        found = policies.near_optimal(problem.model, problem.ambiguity, solution, loss=0)
        value = np.where(problem.ends, 0.0, sign * solution.value[problem.first])
        for a in range(problem.n_actions):
            policy = np.where(problem.open[:, [a]], np.eye(problem.n_actions)[a], 0.0)
            kinds = np.flatnonzero(problem.open[:, a])
            steps = [problem.step(g, problem.exact(value), policy) for g in kinds]
            upper = sign * found.value[problem.first[kinds], a]
            low, high = [step.low for step in steps], [step.high for step in steps]
            assert false_bounds(np.full(kinds.size, -np.inf), upper, low, high) == [], case.name


def test_an_action_is_exchanged_only_for_one_that_is_better_by_more_than_the_tolerance():
    kernels = np.full((3, 2, 3), 1 / 3)
    for gain, changed in ((1e-9, False), (1e-3, True)):
        costs = np.array([[1.0, 1.0 - gain], [0.5, 0.5 - gain], [0.2, 0.2 - gain]])
        model, ambiguity = (
            drmdp.Model(kernels, costs=costs, discount=0.5),
            Wasserstein(0.1, "l1", 1, "all"),
        )
        solution = replace(drmdp.solve(model, ambiguity, tol=1e-8), policy=np.eye(2)[[0, 0, 0]])
        found = policies.deterministic(model, ambiguity, solution, tol=1e-6)
        assert found.rounds == 1 + changed
        assert found.changed.tolist() == [changed] * 3
        assert found.policy[:, 1].tolist() == [changed] * 3
