"""A fixed transition kernel: the forms in which users give one, and the value of a policy under it.

A policy x under a kernel y costs v = (I − λ P)⁻¹ c with P = Σ_a x_a y_a, c = Σ_a x_a c̄_a and
c̄(s,a) = Σ_t y(t|s,a) c(s,a,t). This is a linear system, solved directly for up to `DENSE` states
and beyond by Krylov steps until the bounds of the residual agree to 1e-9 of the largest value there
can be. Plans over stages need no system: v_t = Σ_a x_ta (c̄_ta + λ y_a·v_{t+1}).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import certificate
from drmdp._typing import Array, ArrayLike
from drmdp.core.compact import DENSE, MeanKernel
from drmdp.core.levels import ended
from drmdp.core.validation import kernel_number, numbers
from drmdp.criteria import criterion_of, near, newton_systems
from drmdp.errors import InputError, first_place, shown
from drmdp.model import Model, changed
from drmdp.model.events import EventModel
from drmdp.model.support import costs_of
from drmdp.operators.nominal import NominalOperator
from drmdp.operators.operator import FixedNature
from drmdp.solution import Status
from drmdp.solution.file import positive_entries
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem

ROW_SUM_TOL = 1e-6
"""Rows whose sums differ from 1 by no more are divided by them."""
ENTRIES = 20_000_000
"""A kernel with no more entries may be an array, and so many numbers of chains are solved at a
time.
"""
SMALL = 1_000_000
"""Matrices of no more numbers are multiplied faster if all are listed."""
ACCURACY = 1e-9
PATIENT = 1e-8


class EventKernel(sparse.csr_array):  # type: ignore[misc]
    """A kernel of a model of events, and the costs (S, A) that its law expects: events may lead to
    one state at several costs.
    """

    prices: Array


def event_kernel(model: EventModel, kernel: int | None) -> EventKernel:
    """The mean kernel, or an observed one."""
    alone = model if kernel is None else model.with_laws(model.laws[:, [kernel]])
    rows, prices = alone.mean_matrix()
    matrix = EventKernel(rows)
    matrix.prices = np.where(model.available, prices, 0.0)
    return matrix


def is_number(kernel: Any) -> bool:
    """Whether a kernel is the number or the name of an observed one."""
    return isinstance(kernel, str | int | np.integer) and not isinstance(kernel, bool)


def by_events(model: Model, kernel: Any) -> bool:
    """Whether a kernel has costs of its own: that of a law of events with costs."""
    return isinstance(model, EventModel) and model.priced and (kernel is None or is_number(kernel))


def matrix_of(model: Model, kernel: Any, name: str = "kernel") -> Any:
    """Check a kernel and return it as a matrix (S·A, S), sparse if it was; the mean kernel of very
    many states always is.

    `kernel` is None for the mean kernel, the number or name of an observed one, an (S, A, S) array,
    a sparse (S·A, S) matrix, or the kernel of a solution.
    """
    S, A = model.n_states, model.n_actions
    i = kernel_number(model, kernel, name) if is_number(kernel) else None
    if by_events(model, kernel):
        return event_kernel(model, i)  # type: ignore[arg-type]
    if kernel is None:
        matrix = model.mean_kernel if S * A * S <= ENTRIES else model.mean_matrix()[0]
    elif i is not None:
        matrix = model.blocks.matrix(model.blocks.entries(i))
    elif isinstance(kernel, MeanKernel):
        matrix = _listed(kernel)
    elif sparse.issparse(kernel):
        matrix = sparse.csr_array(kernel, dtype=np.float64)
    else:
        matrix = numbers(name, kernel)
    if matrix.shape not in ((S, A, S), (S * A, S)):
        raise InputError(f"{name}: expected shape {(S, A, S)} or {(S * A, S)}, got {matrix.shape}")
    return _checked(model, matrix if sparse.issparse(matrix) else matrix.reshape(S * A, S), name)


def matrices_of(model: Model, kernels: ArrayLike, name: str = "kernels") -> list[Any]:
    """Several kernels: a model of the same size, an (M, S, A, S) array, or a sequence of what
    `matrix_of` takes.
    """
    if isinstance(kernels, Model):
        for kind in ("states", "actions"):
            if tuple(getattr(kernels, kind)) != tuple(getattr(model, kind)):
                raise InputError(f"{name}: a model with other {kind}")
        matrices = {i: matrix_of(kernels, i, name) for i in np.flatnonzero(kernels.weights > 0)}
        return [
            matrix if isinstance(matrix, EventKernel) else _checked(model, matrix, f"{name}: {i}")
            for i, matrix in matrices.items()
        ]
    single = isinstance(kernels, MeanKernel) or sparse.issparse(kernels)
    if single or (isinstance(kernels, np.ndarray) and kernels.ndim == 3):
        kernels = [kernels]
    if not isinstance(kernels, Sequence | np.ndarray) or not len(kernels):
        raise InputError(f"{name}: expected one or more kernels, got {shown(kernels)}")
    return [matrix_of(model, kernel, f"{name}: {i}") for i, kernel in enumerate(kernels)]


def _listed(kernel: MeanKernel) -> Any:
    """Positive entries of a kernel on demand, as a sparse matrix; refuse what would not fit."""
    S, A, _ = kernel.shape
    if S * A * S > 50 * ENTRIES:
        raise InputError(f"kernel: {S}·{A}·{S} probabilities are too many to list")
    return positive_entries(kernel.compact)


def _checked(model: Model, matrix: Any, name: str) -> Any:
    """Rows of available pairs as distributions, other rows 0."""
    is_sparse, used = sparse.issparse(matrix), model.available.ravel()
    data = matrix.data if is_sparse else matrix[used]
    if at := first_place(~(np.isfinite(data) & (data >= 0))):
        rule = "probabilities must be finite and not negative"
        raise InputError(f"{name}: {rule}, got {float(data[at])!r}")
    clean: Any = matrix if is_sparse else np.where(used[:, None], matrix, 0.0)
    total = np.asarray(clean.sum(axis=1)).ravel()
    if at := first_place(used & (np.abs(total - 1) > ROW_SUM_TOL)):
        raise InputError(f"{name}: {model.labels.pair(*at)} sums to {float(total[at])!r}, not 1")
    scale = np.where(used, 1 / np.where(used, total, 1.0), 0.0)
    _check_costs(model, clean, name)
    return sparse.csr_array(clean.multiply(scale[:, None])) if is_sparse else clean * scale[:, None]


def _check_costs(model: Model, matrix: Any, name: str) -> None:
    """Refuse mass on transitions whose cost nobody knows."""
    if not model.costs_missing:
        return
    listed = sparse.csr_array(matrix)
    unknown = np.isnan(costs_of(model, listed.indptr, listed.indices)) & (listed.data > 0)
    pairs = np.repeat(np.arange(model.available.size), np.diff(listed.indptr))
    if at := first_place(unknown & model.available.ravel()[pairs]):
        target = f"next state {model.states[listed.indices[at]]!r}"
        what = f"{target} has probability {float(listed.data[at]):.3g}, its cost is unknown"
        raise InputError(f"{name}: {model.labels.pair(int(pairs[at]))}, {what}")


def expected_costs(model: Model, matrix: Any) -> Array:
    """c̄, (S, A), inside's sign."""
    known = isinstance(matrix, EventKernel)
    return matrix.prices if known else certificate.expected_costs(model, matrix)


def values(
    model: Model, policy: Array, matrices: Sequence[Any], deadline: float = math.inf
) -> Array:
    """Value of a policy (S, A) under each of M kernels, (M, S), in the user's sign; NaN where it
    takes steps and time is up.

    Of a model that neither discounts nor ends it is the average cost a step, or per unit of time: 1
    − λ times the discounted one, which is within 1 − λ = `PATIENT` times the span of the bias.
    """
    S, endless = model.n_states, model.discount == 1 and model.discounts is None
    endless = endless and not model.terminal.any()
    if endless and model.sojourn is not None:  # per unit of time
        timed = changed(model, sojourn=None, _costs=model.sojourn, maximise=False)
        steps = (changed(model, sojourn=None), timed)
        costs, times = (values(each, policy, matrices, deadline) for each in steps)
        return costs / times
    share = 1.0 if model.discounts is None else model.discounts / model.discount
    out = np.empty((len(matrices), S))
    for k, matrix in enumerate(matrices):
        if S > DENSE and sparse.issparse(matrix):
            outcome = by_steps(model, policy, matrix, "average" if endless else None, deadline)
            out[k] = np.nan if outcome.status is Status.time_limit else outcome.middle
        else:
            costs = ended(model, (policy * expected_costs(model, matrix)).sum(axis=1))
            costs, discount = (PATIENT * costs, 1 - PATIENT) if endless else (costs, model.discount)
            out[k] = newton_systems.solve(dense(chain(policy * share, matrix)), discount, costs)
    return -out if model.maximise else out


Stage = tuple[Any, Array]
"""Matrix (S·A, S) of a kernel and expected costs (S, A)."""


def stages_under(models: Sequence[Model], kernel: Any) -> list[Stage]:
    """The stages of these models under one kernel, as for `matrix_of`."""
    stages, small = dict[int, Stage](), models[0].available.size * models[0].n_states <= SMALL
    for model in models:
        if id(model) not in stages:
            matrix = matrix_of(model, kernel)
            stages[id(model)] = dense(matrix) if small else matrix, expected_costs(model, matrix)
    return [stages[id(model)] for model in models]


def action_values(model: Model, stage: Stage, value: Array) -> Array:
    """Costs of actions at a stage, (n, S, A), with values (n, S) from the next one on."""
    matrix, costs = stage
    later = np.asarray(matrix @ value.T).T.reshape(len(value), *costs.shape)
    return np.asarray(costs + model.discount * later)


def plan_values(model: Model, stages: Sequence[Stage], policies: Array, final: Array) -> Array:
    """Values of plans (P, T, S, A) from each stage on under one kernel, (P, T + 1, S), inside's
    sign; `model` is that of the first stage.
    """
    out = np.empty((len(policies), len(stages) + 1, model.n_states))
    out[:, -1] = final
    for t in reversed(range(len(stages))):
        q = action_values(model, stages[t], out[:, t + 1])
        out[:, t] = ended(model, (policies[:, t] * q).sum(axis=2))
    return out


def chain(policy: Array, matrix: Any) -> Any:
    """Transitions (S, S) of a policy under a kernel (S·A, S), sparse if it is."""
    return FixedNature(matrix, policy.shape).played(policy)


def dense(matrix: Any) -> Array:
    """A matrix as an array."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def by_steps(
    model: Model, policy: Any, matrix: Any, criterion: str | None, deadline: float = math.inf
) -> Outcome:
    """A policy under one sparse kernel, or the best one."""
    costs = matrix.prices if isinstance(matrix, EventKernel) else None
    operator = NominalOperator(model, matrix, costs=costs)
    problem = Problem(operator, policy, criterion=criterion_of(model, criterion))
    settings: Any = {"tolerance": near(problem.criterion, ACCURACY), "deadline": deadline}
    settings |= {"max_iters": 50, "inner": True, "title": "following one kernel"}
    return run(PolicyIteration(), problem, start=None, **settings)
