"""A fixed transition kernel: the forms in which users give one, and the value of a policy under it.

A policy x under a kernel y costs v = (I − λ P)⁻¹ c with P = Σ_a x_a y_a and c = Σ_a x_a c̄_a, c̄(s,a) = Σ_t y(t|s,a) c(s,a,t). This is
a linear system, solved directly for up to `DENSE` states and beyond by Krylov steps until the bounds of the residual agree to
1e-9 of the largest value there can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike
from drmdp.bellman.nominal import Fixed, NominalOperator
from drmdp.core.compact import DENSE, MeanKernel
from drmdp.core.levels import ended
from drmdp.core.validation import kernel_number, numbers
from drmdp.criteria import criterion_of, linear, near
from drmdp.errors import InputError, shown
from drmdp.model import Model, changed
from drmdp.model.events import EventModel
from drmdp.solution import Status
from drmdp.solvers.loop import Outcome, run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem

ROW_SUM_TOL = 1e-6
"""Rows whose sums differ from 1 by no more are divided by them."""
ENTRIES = 20_000_000
"""A kernel with no more entries may be an array, and so many numbers of chains are solved at a time."""
ACCURACY = 1e-9
PATIENT = 1e-8


class Told(sparse.csr_array):  # type: ignore[misc]
    """A kernel of a model of events, and the costs (S, A) that its law expects: events may lead to one state at several costs."""

    prices: Array


def told(model: EventModel, kernel: int | None) -> Told:
    """The mean kernel, or an observed one."""
    alone = model if kernel is None else model.with_laws(model.laws[:, [kernel]])
    matrix, prices = alone.mean_matrix()
    found = Told(matrix)
    found.prices = np.where(model.available, prices, 0.0)
    return found


def matrix_of(model: Model, kernel: Any, name: str = "kernel") -> Any:
    """Check a kernel and return it as a matrix (S·A, S), sparse if it was; the mean kernel of very many states always is.

    `kernel` is None for the mean kernel, the number or name of an observed one, an (S, A, S) array, a sparse (S·A, S) matrix, or the
    kernel of a solution.
    """
    S, A = model.n_states, model.n_actions
    numbered = isinstance(kernel, str) or (isinstance(kernel, int | np.integer) and not isinstance(kernel, bool))
    if isinstance(model, EventModel) and model.priced and (kernel is None or numbered):
        return told(model, None if kernel is None else kernel_number(model, kernel, name))
    if kernel is None:
        found = model.mean_kernel if S * A * S <= ENTRIES else model.mean_matrix()[0]
    elif numbered:
        found = model.blocks.matrix(model.blocks.entries(kernel_number(model, kernel, name)))
    elif isinstance(kernel, MeanKernel):
        found = _listed(kernel)
    elif sparse.issparse(kernel):
        found = sparse.csr_array(kernel, dtype=np.float64)
    else:
        found = numbers(name, kernel)
    if found.shape not in ((S, A, S), (S * A, S)):
        raise InputError(f"{name}: expected shape {(S, A, S)} or {(S * A, S)}, got {found.shape}")
    return _checked(model, found if sparse.issparse(found) else found.reshape(S * A, S), name)


def matrices_of(model: Model, kernels: ArrayLike, name: str = "kernels") -> list[Any]:
    """Several kernels: a model of the same size, an (M, S, A, S) array, or a sequence of what `matrix_of` takes."""
    if isinstance(kernels, Model):
        for kind in ("states", "actions"):
            if tuple(getattr(kernels, kind)) != tuple(getattr(model, kind)):
                raise InputError(f"{name}: a model with other {kind}")
        used = np.flatnonzero(kernels.weights > 0).tolist()
        found = [matrix_of(kernels, i, name) for i in used]
        return [
            one if isinstance(one, Told) else _checked(model, one, f"{name}: {i}")
            for i, one in zip(used, found, strict=True)
        ]
    if (
        sparse.issparse(kernels)
        or isinstance(kernels, MeanKernel)
        or (isinstance(kernels, np.ndarray) and kernels.ndim == 3)
    ):
        kernels = [kernels]
    if not isinstance(kernels, Sequence | np.ndarray) or not len(kernels):
        raise InputError(f"{name}: expected one or more kernels, got {shown(kernels)}")
    return [matrix_of(model, kernel, f"{name}: {i}") for i, kernel in enumerate(kernels)]


def _listed(kernel: MeanKernel) -> Any:
    """Positive entries of a kernel on demand, as a sparse matrix; refuse what would not fit."""
    S, A, _ = kernel.shape
    if S * A * S > 50 * ENTRIES:
        raise InputError(f"kernel: {S}·{A}·{S} probabilities are too many to list")
    step = max(1, ENTRIES // (S * A))
    parts = [sparse.csr_array(kernel.compact.dense(s * A, min(s + step, S) * A)) for s in range(0, S, step)]
    return sparse.csr_array(sparse.vstack(parts))


def _checked(model: Model, matrix: Any, name: str) -> Any:
    """Rows of available pairs as distributions, other rows 0."""
    A, is_sparse = model.n_actions, sparse.issparse(matrix)
    used = model.available.ravel()
    data = matrix.data if is_sparse else matrix[used]
    if not np.isfinite(data).all() or (data < 0).any():
        off = ~(np.isfinite(data) & (data >= 0))
        raise InputError(f"{name}: probabilities must be finite and not negative, got {float(data[off][0])!r}")
    clean: Any = matrix if is_sparse else np.where(used[:, None], matrix, 0.0)
    total = np.asarray(clean.sum(axis=1)).ravel()
    wrong = used & (np.abs(total - 1) > ROW_SUM_TOL)
    if wrong.any():
        s, a = divmod(int(np.argmax(wrong)), A)
        where = f"state {model.states[s]!r}, action {model.actions[a]!r}"
        raise InputError(f"{name}: {where} sums to {float(total[s * A + a])!r}, not 1")
    scale = np.where(used, 1 / np.where(used, total, 1.0), 0.0)
    _check_costs(model, clean, name)
    return sparse.csr_array(clean.multiply(scale[:, None])) if is_sparse else clean * scale[:, None]


def _check_costs(model: Model, matrix: Any, name: str) -> None:
    """Refuse mass on transitions whose cost nobody knows."""
    if not model.costs_missing:
        return
    rows, columns = matrix.nonzero()
    known = model.blocks.matrix(np.where(np.isnan(model.listed_costs()), 0.0, 1.0))
    if isinstance(model.costs, np.ndarray):
        unknown = np.isnan(model.costs.reshape(-1, model.n_states)[rows, columns])
    else:
        unknown = np.asarray(known[rows, columns]).ravel() == 0
    unknown &= model.available.ravel()[rows]
    if unknown.any():
        k = int(np.argmax(unknown))
        s, a = divmod(int(rows[k]), model.n_actions)
        where = f"state {model.states[s]!r}, action {model.actions[a]!r}, next state {model.states[columns[k]]!r}"
        raise InputError(
            f"{name}: {where} has probability {float(matrix[rows[k], columns[k]]):.3g}, its cost is unknown"
        )


def expected_costs(model: Model, matrix: Any) -> Array:
    """c̄, (S, A), inside's sign."""
    zero = np.zeros(model.n_states)
    S, A = model.n_states, model.n_actions
    if not model.next_costs:
        return np.where(model.available, model.costs, 0.0)
    if isinstance(matrix, Told):
        return matrix.prices
    if sparse.issparse(matrix):
        prices = model.costs
        prices = prices if sparse.issparse(prices) else prices.reshape(S * A, S)
        return np.asarray(matrix.multiply(prices).sum(axis=1)).reshape(S, A)
    table = matrix.reshape(S, A, S)
    return np.asarray((table * np.where(table > 0, model.stakes(zero, 0, S), 0.0)).sum(axis=2))


def values(model: Model, policy: Array, matrices: Sequence[Any], deadline: float = math.inf) -> Array:
    """Value of a policy (S, A) under each of M kernels, (M, S), in the user's sign; NaN where it takes steps and time is up.

    Of a model that neither discounts nor ends it is the average cost a step, or per unit of time: 1 − λ times
    the discounted one, which is within 1 − λ = `PATIENT` times the span of the bias.
    """
    S, endless = model.n_states, model.discount == 1 and model.discounts is None and not model.terminal.any()
    if endless and model.sojourn is not None:  # per unit of time
        timed = changed(model, sojourn=None, _costs=model.sojourn, maximise=False)
        return values(changed(model, sojourn=None), policy, matrices, deadline) / values(
            timed, policy, matrices, deadline
        )
    share = 1.0 if model.discounts is None else model.discounts / model.discount
    out = np.empty((len(matrices), S))
    for k, matrix in enumerate(matrices):
        if S > DENSE and sparse.issparse(matrix):
            found = by_steps(model, policy, matrix, deadline, "average" if endless else None)
            out[k] = np.nan if found.status is Status.time_limit else found.middle
        else:
            costs = ended(model, (policy * expected_costs(model, matrix)).sum(axis=1))
            costs, discount = (PATIENT * costs, 1 - PATIENT) if endless else (costs, model.discount)
            out[k] = linear.solve(_chain(policy * share, matrix), discount, costs)
    return -out if model.maximise else out


def plan_values(models: Sequence[Model], policy: Array, kernel: Any, final: Array) -> Array:
    """Value of a plan (T, S, A) from each stage on if all stages follow one kernel, (T + 1, S), inside's sign; `kernel` as for `matrix_of`."""
    out, known = np.empty((len(models) + 1, models[0].n_states)), dict[int, Any]()
    out[-1] = final
    for t in reversed(range(len(models))):
        model = models[t]
        if id(model) not in known:
            matrix = matrix_of(model, kernel)
            known[id(model)] = matrix, expected_costs(model, matrix)
        matrix, prices = known[id(model)]
        later = (matrix @ out[t + 1]).reshape(prices.shape)
        out[t] = ended(model, (policy[t] * (prices + model.discount * later)).sum(axis=1))
    return out


def chain(policy: Array, matrix: Any) -> Any:
    """Transitions (S, S) of a policy under a kernel (S·A, S), sparse if it is."""
    return Fixed(matrix, policy.shape).played(policy)


def _chain(policy: Array, matrix: Any) -> Array:
    found = chain(policy, matrix)
    return np.asarray(found.toarray() if sparse.issparse(found) else found)


def by_steps(
    model: Model, policy: Array | None, matrix: Any, deadline: float = math.inf, criterion: str | None = None
) -> Outcome:
    """A policy under one sparse kernel, or the best one."""
    costs = matrix.prices if isinstance(matrix, Told) else None
    problem = Problem(NominalOperator(model, matrix, costs=costs), policy, criterion=criterion_of(model, criterion))
    tolerance = near(problem.criterion, ACCURACY)
    limits: Any = {"max_iters": 50, "deadline": deadline, "inner": True, "title": "following one kernel"}
    return run(PolicyIteration(), problem, start=None, tolerance=tolerance, **limits)
