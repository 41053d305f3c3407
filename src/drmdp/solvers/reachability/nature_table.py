"""Nature's answer to a point as a table that is surely in her set, with killed transitions exactly
0.

It is found for a radius smaller by `SLACK`, so that nothing has to be pulled towards the data,
which would bring back what she took away; what is left of a transition below `FAINT` is rounding
and taken for 0. Intervals have no radius to make smaller: there the rows stay within their bounds,
and next states are left out where the upper bounds of the others sum to 1 at least, exactly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.certificate import explicit, membership
from drmdp.certificate.native import fill_rows
from drmdp.core.compact import DENSE, CompactRows
from drmdp.core.levels import EPS
from drmdp.core.storage import entry_keys
from drmdp.criteria import newton_systems
from drmdp.layout.layout import in_force, lay_out
from drmdp.operators.build import build
from drmdp.sets.reweighting import Reweighting
from drmdp.sets.wasserstein import Wasserstein
from drmdp.solvers.problem import Problem
from drmdp.solvers.reachability.far_side import listed_layout

SLACK, FAINT, FAINTEST = 1e-10, 1e-13, 1e-30


class TableWitness(NamedTuple):
    """What a proof file says of it."""

    mean: Any  # sparse (S·A, S)
    kernels: dict[int, Any] | None = None  # likewise; rows without mass are those of the data
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
    """Nature's answer to `value` (S,) where actions are `played` (S, A); None if it cannot be
    had.
    """
    model, ambiguity = problem.model, problem.operator.ambiguity
    assert ambiguity is not None
    if ambiguity.key == "intervals":
        return _between(problem, value)
    nature = _answer(problem, value)
    if isinstance(ambiguity, Reweighting):
        q = nature.weights
        if q.ndim == 3 and ambiguity.rectangular == "s":
            q = q[np.arange(len(q)), played.argmax(axis=1)]
        q = np.where(q > FAINT, q, 0.0)
        q = q / np.maximum(q.sum(axis=-1, keepdims=True), FAINT)
        matrix = _matrix(membership.inside(model, ambiguity, q))
        return Answer(matrix, TableWitness(matrix, weights=q))
    grounded = isinstance(ambiguity, Wasserstein) and ambiguity.ground is not None
    layout = listed_layout(model, ambiguity)
    if model.n_states > DENSE and (grounded or layout.unlisted):
        return None
    if grounded:  # what is not played stays as it is
        kernel = np.where(played[:, :, None], np.asarray(nature.kernel()), 0.0)
        return Answer(_matrix(membership.inside(model, ambiguity, kernel)), nature)
    each = [nature]
    if nature.family.single_kernels:
        alone = np.eye(nature.layout.weights.size)
        each = [replace(nature, layout=nature.layout._replace(weights=own)) for own in alone]
    tuples = np.stack([_listed(layout, one.pairs()) for one in each])
    idle = np.repeat(~played.ravel(), np.diff(layout.indptr))
    if idle.any():
        tuples[:, idle] = 0.0  # rows without mass stand for the data
    matrix = explicit.matrix_of(layout, explicit.brought_inside(ambiguity, layout, tuples))
    numbers = np.flatnonzero(model.weights).tolist()
    kernels = {i: explicit.matrix_of(layout, own) for i, own in zip(numbers, tuples, strict=False)}
    return Answer(matrix, TableWitness(matrix, kernels))


def _answer(problem: Problem, value: Array) -> Any:
    """Nature at a point, for a radius a little smaller."""
    ambiguity: Any = problem.operator.ambiguity
    smaller = ambiguity
    if ambiguity.sized and np.any(ambiguity.radius):
        radius = np.asarray(ambiguity.radius)
        falling = getattr(ambiguity, "kind", "") == "cvar"  # whose sets grow as radii fall
        radius = np.minimum(radius * (1 + SLACK), 1.0) if falling else radius * (1 - SLACK)
        smaller = ambiguity.with_radius(radius).facing(ambiguity.nature)
    operator = build(problem.model, smaller, "exact", problem.operator.threads)
    nature = Problem(operator, problem.policy, problem.checkpoint).sweep(value).nature
    problem.kernel_passes += 1
    return nature


def _listed(layout: Any, rows: CompactRows) -> Array:
    """Rows in the order of a layout, (nnz,), faint ones left out."""
    places = entry_keys(layout.indptr, layout.indices, rows.n_columns)
    if rows.prefix_ptr[-1]:
        found = rows.dense().ravel()[places]
    else:
        matrix = newton_systems.matrix_of(rows)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        found = np.zeros(layout.indices.size)
        at = np.searchsorted(places, entry_keys(matrix.indptr, matrix.indices, rows.n_columns))
        found[at] = matrix.data
    return np.where(found > FAINT, found, 0.0)


def _between(problem: Problem, value: Array) -> Answer:
    """The same between bounds."""
    ambiguity: Any = problem.operator.ambiguity
    layout = lay_out(problem.model, ambiguity)
    nature: Any = problem.sweep(value).nature
    lengths, size = np.diff(layout.indptr), layout.available.size
    pairs, margin = np.repeat(np.arange(size), lengths), (2 * lengths + 8) * EPS
    r = np.repeat(layout.radius, layout.available.shape[1])[pairs]
    lower, upper = in_force(layout, slice(None), r)
    given = _listed(layout, nature.pairs())
    least = np.where(r > 0, np.nextafter(upper, 0.0), upper)  # of a sum, from below
    kept = (given > 0) | (layout.mean > r)
    room = np.bincount(pairs, np.where(kept, least, 0.0), minlength=size)
    fine = room >= 1 + margin
    for k in np.flatnonzero(~fine & (room >= 1 - margin)).tolist():
        own = slice(layout.indptr[k], layout.indptr[k + 1])
        fine[k] = math.fsum([*least[own][kept[own]].tolist(), -1.0]) >= 0
    kept |= ~fine[pairs]
    sharp, highest = np.zeros(layout.radius.size), np.where(kept, upper, 0.0)
    rows = fill_rows(given, pairs, layout._replace(mean=lower, data=highest, radius=sharp))
    rest = np.minimum(upper, FAINTEST)  # has to go there, if it is less than rounding
    rows = np.where(~fine[pairs] & (rows == 0), rest, rows)
    matrix = explicit.matrix_of(layout, rows)
    return Answer(matrix, TableWitness(matrix))


def _matrix(kernel: Any) -> Any:
    """A kernel (S, A, S), or (S·A, S), as a sparse matrix (S·A, S) without zeros."""
    if not sparse.issparse(kernel):
        kernel = np.reshape(kernel, (-1, np.shape(kernel)[-1]))
    matrix = sparse.csr_array(kernel)
    matrix.eliminate_zeros()
    return matrix
