"""Nature's answer to a point as a table that is surely in her set, with killed transitions exactly 0.

It is found for a radius smaller by `SLACK`, so that nothing has to be pulled towards the data, which would bring back what she took away; what is left of a
transition below `FAINT` is rounding and taken for 0. Intervals have no radius to make smaller: there the rows stay within their bounds, and next states are
left out where the upper bounds of the others sum to 1 at least, exactly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.bellman.build import build
from drmdp.certificate import explicit, membership
from drmdp.certificate.intervals import fill_rows
from drmdp.core.compact import DENSE, Rows
from drmdp.core.levels import EPS
from drmdp.layout.layout import lay_out, lay_out_all
from drmdp.sets.reweighting import Reweighting
from drmdp.sets.wasserstein import Wasserstein
from drmdp.solvers.problem import Problem

SLACK, FAINT, FAINTEST = 1e-10, 1e-13, 1e-30


class Shown(NamedTuple):
    """What a proof file says of it."""

    mean: Any  # sparse (S·A, S)
    kernels: dict[int, Any] | None = None  # by number, likewise; rows without mass are those of the data
    weights: Array | None = None  # where she mixes them

    def kernel(self) -> Any:
        """The mean."""
        return self.mean


class Answer(NamedTuple):
    """A kernel of the set, and what shows that it is one."""

    matrix: Any  # sparse (S·A, S)
    shown: Any


class Proved(NamedTuple):
    """The claim of a bound that was proved when it was found."""

    nature: Any


def table(problem: Problem, value: Array, played: BoolArray) -> Answer | None:
    """Nature's answer to `value` (S,) where actions are `played` (S, A); None if it cannot be had."""
    model, ball = problem.model, problem.operator.ball
    assert ball is not None
    if ball.key == "intervals":
        return _between(problem, value)
    smaller = ball
    if ball.sized and np.any(ball.radius):
        ratio = 1 + SLACK if getattr(ball, "kind", "") == "cvar" else 1 - SLACK
        most = 1.0 if getattr(ball, "kind", "") == "cvar" else np.inf
        smaller = ball.with_radius(np.minimum(np.asarray(ball.radius) * ratio, most)).facing(ball.nature)
    inner = Problem(build(model, smaller, "exact", problem.operator.threads), problem.policy, problem.checkpoint)
    nature: Any = inner.sweep(value).nature
    problem.kernel_passes += 1
    if isinstance(ball, Reweighting):
        q = nature.weights
        q = q[np.arange(len(q)), played.argmax(axis=1)] if q.ndim == 3 and ball.rectangular == "s" else q
        q = np.where(q > FAINT, q, 0.0)
        q = q / np.maximum(q.sum(axis=-1, keepdims=True), FAINT)
        matrix = _compact(sparse.csr_array(_flat(membership.inside(model, ball, q))))
        return Answer(matrix, Shown(matrix, weights=q))
    if isinstance(ball, Wasserstein) and ball.ground is not None:
        if model.n_states > DENSE:
            return None
        kernel = np.where(played[:, :, None], np.asarray(nature.kernel()), 0.0)  # what is not played stays as it is
        return Answer(_compact(sparse.csr_array(_flat(membership.inside(model, ball, kernel)))), nature)
    layout = lay_out(model, ball)
    if layout.unlisted:
        if model.n_states > DENSE:
            return None
        layout = lay_out_all(model, ball)
    each = [nature]
    if nature.family.single_kernels:
        alone = np.eye(nature.layout.weights.size)
        each = [replace(nature, layout=nature.layout._replace(weights=own)) for own in alone]
    tuples = np.stack([_listed(layout, one.pairs()) for one in each])
    idle = np.repeat(~played.ravel(), np.diff(layout.indptr))
    if idle.any():
        tuples[:, idle] = 0.0  # rows without mass stand for the data
    matrix = explicit.matrix_of(layout, explicit.brought_inside(ball, layout, tuples))
    numbers = np.flatnonzero(model.weights).tolist()
    kernels = {i: explicit.matrix_of(layout, own) for i, own in zip(numbers, tuples, strict=False)}
    return Answer(matrix, Shown(matrix, kernels))


def _listed(layout: Any, rows: Rows) -> Array:
    """Rows in the order of a layout, (nnz,), faint ones left out."""
    S = rows.n_columns
    if rows.prefix_ptr[-1]:
        found = rows.dense().ravel()[_keys(layout.indptr, layout.indices, S)]
    else:
        matrix = sparse.csr_array((rows.entry_mass, rows.entry_state, rows.entry_ptr), shape=(layout.available.size, S))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        found = np.zeros(layout.indices.size)
        place = np.searchsorted(_keys(layout.indptr, layout.indices, S), _keys(matrix.indptr, matrix.indices, S))
        found[place] = matrix.data
    return np.where(found > FAINT, found, 0.0)


def _keys(indptr: Any, indices: Any, S: int) -> Any:
    return np.repeat(np.arange(indptr.size - 1, dtype=np.int64) * S, np.diff(indptr)) + indices


def _between(problem: Problem, value: Array) -> Answer:
    """The same between bounds."""
    model, ball = problem.model, problem.operator.ball
    assert ball is not None
    layout = lay_out(model, ball)
    nature: Any = problem.sweep(value).nature
    pairs, size = np.repeat(np.arange(layout.available.size), np.diff(layout.indptr)), layout.available.size
    r = np.repeat(layout.radius, layout.available.shape[1])[pairs]
    lower, upper = np.maximum(layout.mean - r, 0.0), np.minimum(layout.data + r, 1.0)
    given = _listed(layout, nature.pairs())
    least = np.where(r > 0, np.nextafter(upper, 0.0), upper)  # of a sum, from below
    kept = (given > 0) | (layout.mean > r)
    room = np.bincount(pairs, np.where(kept, least, 0.0), minlength=size)
    lengths = np.diff(layout.indptr)
    fine = room >= 1 + (2 * lengths + 8) * EPS
    for k in np.flatnonzero(~fine & (room >= 1 - (2 * lengths + 8) * EPS)).tolist():
        own = slice(layout.indptr[k], layout.indptr[k + 1])
        fine[k] = math.fsum([*least[own][kept[own]].tolist(), -1.0]) >= 0
    kept |= ~fine[pairs]
    bounds = layout._replace(mean=lower, data=np.where(kept, upper, 0.0), radius=np.zeros(layout.radius.size))
    rows = fill_rows(given, pairs, bounds)
    rows = np.where(
        ~fine[pairs] & (rows == 0), np.minimum(upper, FAINTEST), rows
    )  # something has to go there, if less than rounding
    matrix = explicit.matrix_of(layout, rows)
    return Answer(matrix, Shown(matrix))


def _flat(kernel: Any) -> Any:
    return kernel if sparse.issparse(kernel) else np.asarray(kernel).reshape(-1, np.shape(kernel)[-1])


def _compact(matrix: Any) -> Any:
    matrix.eliminate_zeros()
    return matrix
