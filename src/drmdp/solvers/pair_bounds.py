"""Bounds by the values of a policy and a kernel.

From above the worst-case value of the policy, policy iteration of nature; from below the value of
the best policy against the kernel, an ordinary MDP. Both are runs of the loop, so both are proved.
During a run the kernel is taken as it is; before a result is returned, `proved` brings the kernel
into the set (`drmdp.certificate.membership`) and evaluates that one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import PairClaim, membership
from drmdp.certificate.dense import Bounds
from drmdp.core.tolerance import Tolerance
from drmdp.operators.nominal import NominalOperator
from drmdp.solution import Status
from drmdp.solvers import loop
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem, Verdict


class PairEvaluator:
    """Evaluates the pairs of a problem, each from the values of the last."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._last: Verdict | None = None

    def evaluate(self, pair: PairClaim, value: Array) -> Verdict:
        """Evaluate a pair, its kernel taken as it is; `value` is the start of the first one."""
        problem, last = self._problem, self._last
        inner = Problem(problem.operator, pair.policy, problem.checkpoint)
        above = self._run(inner, value if last is None else last.worst, pair)
        problem.kernel_passes += inner.kernel_passes
        against = Problem(NominalOperator(problem.model, pair.kernel), None, problem.checkpoint)
        below = self._run(against, value if last is None else last.best, pair)
        exhausted = _exhausted(above) + _exhausted(below)
        bounds = Bounds(below.lower, above.upper)
        self._last = Verdict(bounds, above.middle, below.middle, exhausted)
        return self._last

    def proved(self, pair: PairClaim, verdict: Verdict) -> tuple[Verdict, Any]:
        """The verdict on a pair whose kernel is surely nature's, and that nature."""
        problem, ambiguity = self._problem, self._problem.operator.ambiguity
        assert ambiguity is not None
        claimed = pair.kernel if pair.kernels is None else pair.kernels
        kernel = membership.inside(problem.model, ambiguity, claimed)
        operator = NominalOperator(problem.model, kernel)
        below = self._run(Problem(operator, None, problem.checkpoint), verdict.best, pair)
        bounds = Bounds(below.lower, verdict.bounds.upper)
        nature = replace(operator.nature, kernels=pair.kernels)
        return replace(verdict, bounds=bounds, best=below.middle), nature

    def _run(self, problem: Problem, start: Array, pair: PairClaim) -> loop.Outcome:
        tolerance = Tolerance(max(loop.OPERATOR * self._problem.goal, pair.precision))
        inner: Any = {"inner": True, "title": "judging the answer"}
        return loop.run(PolicyIteration(), problem, start=start, tolerance=tolerance, **inner)


def _exhausted(outcome: loop.Outcome) -> float:
    """The gap of a value at the limit of precision, else 0."""
    limited = outcome.status is Status.precision_limit
    return float(np.max(outcome.upper - outcome.lower)) if limited else 0.0
