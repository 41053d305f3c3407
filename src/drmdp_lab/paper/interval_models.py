"""Sparse models whose probabilities lie between bounds, solved by drmdp and by Storm.

Storm reads a file, which is not timed, and stops where a sweep of its robust value iteration
changes values by at most 1e-6 of their size, which bounds nothing; drmdp stops at a certified gap
of 1e-6 of the size of the values. The gap of Storm's row is what our bounds leave open: how far its
values may be from the true ones. Storm has no discounted costs of interval models, so it is asked
for the total until the process stops, which it does at every step with probability 1 − λ.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from drmdp._typing import Array
from drmdp.api import solve as solve_model
from drmdp.model import Model
from drmdp.sets import Intervals
from drmdp.solution import Solution
from drmdp.solvers.reachability.reach import reach
from drmdp_lab.large import QUESTIONS, World, world, write
from drmdp_lab.paper.blocks import Run
from drmdp_lab.paper.clocks import timed
from drmdp_lab.paper.peers import Missing
from drmdp_lab.paper.records import Row

MOST_SWEEPS = 10_000_000


def solve(run: Run) -> Row:
    """A row of drmdp or of Storm."""
    asked, model, ambiguity = _problem(run.family, run.n_states, run.task, run.discount)
    ours = _ours(run, asked, model, ambiguity)
    if run.method != "storm":
        found, cost = timed(ours)
        gap, sweeps, status = found.gap, found.n_iters, str(found.status)
    else:
        values, cost = timed(_storm(run, asked))
        bounds = ours()
        gap = float(np.maximum(bounds.upper - values, values - bounds.lower).max())
        found, sweeps, status = bounds, None, "stopped"
    relative = {"gap": gap / found.scale, "duality_gap": None}
    return {"status": status, **relative, "n_iters": sweeps, **cost.cells()}


@lru_cache(maxsize=1)
def _problem(
    family: str, n_states: int, task: str, discount: float
) -> tuple[World, Model, Intervals]:
    """Bounds, and the model of a kernel between them."""
    asked = world(family, n_states)
    short, wide = (
        np.asarray(matrix.sum(axis=1)) for matrix in (asked.lower, asked.upper - asked.lower)
    )
    share = np.repeat((1 - short) / np.maximum(wide, 1e-300), np.diff(asked.lower.indptr))
    kernel = asked.lower.copy()
    kernel.data = kernel.data + (asked.upper.data - asked.lower.data) * share
    ends = {"terminal": asked.end} if task == "total" and discount == 1 else {}
    model = Model([kernel], costs=asked.costs, discount=discount, normalize=True, **ends)
    return asked, model, Intervals(asked.lower, asked.upper)


def _ours(run: Run, asked: World, model: Model, ambiguity: Intervals) -> Callable[[], Solution]:
    limits: dict[str, Any] = {"max_seconds": run.limit, "threads": 1}

    def call() -> Solution:
        model.cache.clear()
        solution: Any
        if run.task == "reach":
            ends = asked.target, asked.avoid
            solution = reach(model, ambiguity, *ends, minimise=False, **limits)
        else:
            criterion: Any = {"criterion": "total"} if run.discount == 1 else {}
            solution = solve_model(model, ambiguity, **criterion, **limits)
        return cast(Solution, solution)

    return call


# ---------------------------------------------------------------------- Storm


def _storm(run: Run, asked: World) -> Callable[[], Array]:
    """A call that asks Storm for the values (S,) of the same question."""
    try:
        stormpy: Any = importlib.import_module("stormpy")
    except ImportError as error:
        raise Missing("stormpy is not installed") from error
    written = _stopping(asked, run.discount) if run.discount < 1 else asked
    ends = written.end if run.task == "total" else written.target | written.avoid
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.drn"
        write(path, written, ends)
        model = stormpy.build_model_from_drn[stormpy.Interval](str(path))
    (question,) = stormpy.parse_properties(QUESTIONS["max" if run.task == "reach" else "total"])
    settings = stormpy.Environment()
    rule = settings.solver().min_max()
    rule.method = stormpy.environments.MinMaxMethod.VALUE_ITERATION
    rule.maximal_number_of_iterations = MOST_SWEEPS
    rule.precision, rule.relative_termination_criterion = stormpy.Rational("1/1000000"), True
    robust, n_states = stormpy.UncertaintyResolutionMode.ROBUST, asked.costs.shape[0]

    def call() -> Array:
        said = stormpy.model_checking(
            model, question, environment=settings, uncertainty_resolution_mode=robust
        )
        return np.array([float(said.get_value(s)) for s in range(n_states)])

    return call


def _stopping(asked: World, discount: float) -> World:
    """The same with one more state, where the process stops with probability 1 − λ a step."""
    from scipy import sparse

    S, A = asked.costs.shape
    stop = sparse.csr_array(np.full((S * A, 1), 1 - discount))
    last = sparse.csr_array((np.ones(A), (np.arange(A), np.full(A, S))), shape=(A, S + 1))
    lower, upper = (
        sparse.vstack([sparse.hstack([discount * bound, stop]), last]).tocsr()
        for bound in (asked.lower, asked.upper)
    )
    end = np.arange(S + 1) == S
    none = np.zeros(S + 1, dtype=bool)
    return World(lower, upper, np.vstack([asked.costs, np.zeros((1, A))]), none, none, end)
