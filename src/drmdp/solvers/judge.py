"""A policy and a kernel judged by their own values.

From above the worst-case value of the policy, policy iteration of nature; from below the value of the best policy against the kernel, an
ordinary MDP. Both are runs of the loop, so both are proved. While a method is on its way its kernel is taken as it is; before anything is returned,
`proved` brings the kernel into the set (`drmdp.certificate.membership`) and judges that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.nominal import Fixed, NominalOperator
from drmdp.certificate import Pair, membership
from drmdp.certificate.dense import Bounds
from drmdp.core.tolerance import Tolerance
from drmdp.solution import Status
from drmdp.solvers import loop
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem, Verdict


@dataclass(frozen=True)
class Kernels(Fixed):
    """Nature with a fixed mean kernel that remembers whose mean it is."""

    kernels: Any = None  # (N, S, A, S), or N sparse matrices (S·A, S)


class ByValues:
    """Judges the pairs of one problem, each from the values of the last."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._last: Verdict | None = None

    def look(self, pair: Pair, value: Array) -> Verdict:
        """Judge a pair, its kernel taken as it is; `value` is where to begin at first."""
        problem, last = self._problem, self._last
        tolerance = Tolerance(max(loop.OPERATOR * problem.goal, pair.precision))
        inner = Problem(problem.operator, pair.policy, problem.checkpoint)
        above = self._run(inner, value if last is None else last.worst, tolerance)
        problem.kernel_passes += inner.kernel_passes
        against = Problem(NominalOperator(problem.model, pair.kernel), None, problem.checkpoint)
        below = self._run(against, value if last is None else last.best, tolerance)
        exhausted = sum(_exhausted(found) for found in (above, below))
        self._last = Verdict(Bounds(below.lower, above.upper), above.middle, below.middle, exhausted)
        return self._last

    def proved(self, pair: Pair, seen: Verdict) -> tuple[Verdict, Any]:
        """The verdict on a pair whose kernel nature surely has, and her side of it."""
        problem, ball = self._problem, self._problem.operator.ball
        assert ball is not None
        claimed = pair.kernel if pair.kernels is None else pair.kernels
        kernel = membership.inside(problem.model, ball, claimed)
        operator = NominalOperator(problem.model, kernel)
        tolerance = Tolerance(max(loop.OPERATOR * problem.goal, pair.precision))
        below = self._run(Problem(operator, None, problem.checkpoint), seen.best, tolerance)
        nature = operator.nature
        if pair.kernels is not None:
            nature = Kernels(nature.matrix, nature.shape, kernels=pair.kernels)
        bounds = Bounds(below.lower, seen.bounds.upper)
        return Verdict(bounds, seen.worst, below.middle, seen.exhausted), nature

    def _run(self, problem: Problem, start: Array, tolerance: Tolerance) -> loop.Outcome:
        title = "judging the answer"
        return loop.run(PolicyIteration(), problem, start=start, tolerance=tolerance, inner=True, title=title)


def _exhausted(found: loop.Outcome) -> float:
    """The gap of a value that cannot be computed any better, else 0."""
    return float(np.max(found.upper - found.lower)) if found.status is Status.precision_limit else 0.0
