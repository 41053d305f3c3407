"""Optimal transport between next-state distributions: W_D(y, ŷ), the least Σ π(j, k) D(j, k) over
plans π with marginals ŷ and y.

A plan sends the mass ŷ(j) of every next state j to others, D[j, k] ≥ 0 a unit to k: 0 from j to
itself, infinite where mass cannot move.

D need not be symmetric, need not obey a triangle inequality, and may be 0 between different states:
mass then moves there at no cost, at radius 0 too.

    (S, S) array          every cost, inf where mass cannot move
    sparse matrix         those that are stored; elsewhere mass stays where it is
    ("line", positions)   |x_j − x_k| for positions (S,)
    ("grid", coordinates) Σ_d |x_jd − x_kd| for coordinates (S, k)

As numbers, these are off by 2⁻⁵², relatively, in any number of dimensions: sums keep what they lose
(`drmdp.core.sums`).
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # `scipy.optimize` is loaded when it is asked, which is rare
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.cached import cached_property
from drmdp.core.sums import added
from drmdp.core.validation import check_sparse, numbers
from drmdp.errors import InputError, first_place, shown
from drmdp.model import Model
from drmdp.sets.confinement import Leaving

if TYPE_CHECKING:
    from drmdp.sets.wasserstein import Wasserstein

SETTINGS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LEAST = 1e-100
"""A cost below this part of the largest one is a slip: nothing could be computed with both."""
EXPECTED = "an (S, S) array, a sparse (S, S) matrix, ('line', positions) or ('grid', coordinates)"


class Ground:
    """The costs of moving mass, in one of four forms."""

    def __init__(self, costs: Any) -> None:
        self.kind: str
        self.data: Any
        if costs is None:
            what = "metric 'transport' needs the costs of moving mass"
            raise InputError(f"ground: {what}: {EXPECTED}")
        if isinstance(costs, tuple | list) and len(costs) == 2 and isinstance(costs[0], str):
            self.kind, self.data = _placed(*costs)
        elif sparse.issparse(costs):
            self.kind, self.data = "sparse", _sparse(costs)
        else:
            self.kind, self.data = "dense", _dense(costs)
        if 0 < self._smallest < LEAST * self.largest:
            ends = f"{self._smallest!r} to {self.largest!r}"
            raise InputError(f"ground: costs from {ends} are too far apart")

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.data.shape[0])

    @cached_property
    def digest(self) -> str:
        """Hash of its kind and numbers."""
        digest, data = hashlib.sha256(self.kind.encode()), self.data
        parts = (data.indptr, data.indices, data.data) if self.kind == "sparse" else (data,)
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    @cached_property
    def largest(self) -> float:
        """The largest cost that is finite, or on a grid a bound on it."""
        if self.kind in ("line", "grid"):
            return float(np.ptp(self.data, axis=0).sum())
        finite = self._costs[np.isfinite(self._costs)]
        return float(finite.max(initial=0.0))

    @cached_property
    def scale(self) -> float:
        """A power of two that no cost exceeds: to divide by it is exact."""
        return 2.0 ** math.frexp(self.largest)[1] if self.largest > 0 else 1.0

    @cached_property
    def free(self) -> bool:
        """Whether mass can move to another state at no cost."""
        if self.kind == "sparse":
            row = np.repeat(np.arange(self.n_states), np.diff(self.data.indptr))
            return bool(((self.data.data == 0) & (row != self.data.indices)).any())
        if self.kind == "dense":
            return bool((self.data == 0).sum() > self.n_states)
        return bool(np.unique(self.data, axis=0).shape[0] < self.n_states)

    def between(self, sources: IntArray, targets: IntArray) -> Array:
        """Costs from some states to some others, (n, m), inf where mass cannot move."""
        if self.kind == "dense":
            return np.asarray(self.data[np.ix_(sources, targets)])
        if self.kind in ("line", "grid"):
            total = lost = np.zeros((len(sources), len(targets)))
            for x in np.atleast_2d(self.data.T):
                total, lost = added(total, lost, np.abs(x[sources][:, None] - x[targets][None, :]))
            return total
        place = np.full(self.n_states, -1)
        place[targets] = np.arange(len(targets))
        rows = self.data[np.asarray(sources)]
        row, column = np.repeat(np.arange(len(sources)), np.diff(rows.indptr)), place[rows.indices]
        out = np.full((len(sources), len(targets)), np.inf)
        out[row[column >= 0], column[column >= 0]] = rows.data[column >= 0]
        return np.where(np.asarray(sources)[:, None] == np.asarray(targets)[None, :], 0.0, out)

    @property
    def words(self) -> str:
        """Kind and size."""
        S = self.n_states
        return {
            "dense": f"dense {S} × {S}",
            "line": f"line of {S}",
            "sparse": f"sparse {S} × {S}, {getattr(self.data, 'nnz', 0)} costs",
            "grid": f"grid of {S} in {self.data.shape[-1]} dimensions",
        }[self.kind]

    @property
    def _costs(self) -> Array:
        return np.asarray(self.data.data if self.kind == "sparse" else self.data)

    @property
    def _smallest(self) -> float:
        """The smallest stored cost that is not 0; 0 on a line and a grid, where rounding tells."""
        if self.kind in ("line", "grid"):
            return 0.0
        return float(self._costs[self._costs > 0].min(initial=np.inf))

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Ground) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<{self.words}>"


def _dense(ground: Any) -> Array:
    if isinstance(ground, str | tuple):
        raise InputError(f"ground: expected {EXPECTED}, got {shown(ground)}")
    costs = numbers("ground", ground)
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or not costs.size:
        raise InputError(f"ground: expected {EXPECTED}, got shape {costs.shape}")
    _check(costs, lambda *ends: ends)
    _check_stay(np.diagonal(costs), np.arange(costs.shape[0]))
    costs.setflags(write=False)
    return costs


def _sparse(ground: Any) -> Any:
    check_sparse("ground", ground)
    if len(ground.shape) != 2 or ground.shape[0] != ground.shape[1] or not ground.shape[0]:
        raise InputError(f"ground: expected {EXPECTED}, got shape {ground.shape}")
    costs = sparse.csr_array(ground, dtype=np.float64, copy=True)
    costs.sum_duplicates()
    row = np.repeat(np.arange(costs.shape[0]), np.diff(costs.indptr))
    _check(costs.data, lambda k: (int(row[k]), int(costs.indices[k])))
    diagonal = row == costs.indices
    _check_stay(costs.data[diagonal], row[diagonal])
    return costs


def _check(costs: Array, place: Any) -> None:
    if at := first_place(~(costs >= 0)):
        (j, to), cost = place(*at), float(costs[at])
        what = f"got {cost!r} from state {j} to state {to}"
        raise InputError(f"ground: costs are not negative, {what}")


def _check_stay(costs: Array, states: IntArray) -> None:
    if at := first_place(costs):
        what = f"got {float(costs[at])!r} from state {states[at]} to itself"
        raise InputError(f"ground: staying costs nothing, {what}")


def _placed(kind: str, positions: Any) -> tuple[str, Array]:
    if kind not in ("line", "grid"):
        raise InputError(f"ground: expected {EXPECTED}, got ({kind!r}, …)")
    what, shape, ndim = ("positions", "(S,)", 1) if kind == "line" else ("coordinates", "(S, k)", 2)
    places = numbers(f"ground: {what}", positions)
    if places.ndim != ndim or not places.size:
        raise InputError(f"ground: {what}: expected shape {shape}, got {places.shape}")
    if at := first_place(~np.isfinite(places)):
        where = f"state {at[0]}" + (f", coordinate {at[1]}" if ndim == 2 else "")
        raise InputError(f"ground: {what} are finite, got {float(places[at])!r} at {where}")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.ptp(places, axis=0).sum()):
            ends = f"{float(places.min())!r} to {float(places.max())!r}"
            raise InputError(f"ground: {what} from {ends} are too far apart")
    places.setflags(write=False)
    return kind, places


# ---------------------------------------------------------------------- plans


def plan(ground: Ground, data: Array, goal: Array) -> tuple[float, Array]:
    """W_D of two distributions (S,), inf if there is no plan, and shares P(k | j) of a plan,
    (S, S); up to what HiGHS is off.
    """
    stay = np.eye(data.size)
    if np.array_equal(data, goal):
        return 0.0, stay
    sources, targets = np.flatnonzero(data > 0), np.flatnonzero(goal > 0)
    costs = ground.between(sources, targets)
    row, column = np.nonzero(np.isfinite(costs))
    n, m, E = sources.size, targets.size, row.size
    ends = np.concatenate([row, n + column])
    sums = sparse.csr_array((np.ones(2 * E), (ends, np.tile(np.arange(E), 2))), shape=(n + m, E))
    if not E:
        return np.inf, stay
    unit = np.append(data[sources], goal[targets] * (data.sum() / goal.sum()))
    prices = costs[row, column] / ground.scale
    program = scipy.optimize.linprog(prices, A_eq=sums, b_eq=unit, options=SETTINGS)
    if program.x is None:
        return np.inf, stay
    mass = np.zeros((data.size, data.size))
    mass[sources[row], targets[column]] = np.maximum(program.x, 0.0)
    total = mass.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, mass / np.where(total > 0, total, 1.0), stay)
    return max(float(program.fun), 0.0) * ground.scale, shares


def distance(ground: Ground, y: Array, nominal: Array) -> Array:
    """Σ_a W_D(y_a, ŷ_a) of kernels (…, A, N, S), (…, N)."""
    from_to = (rows.reshape(-1, y.shape[-1]) for rows in (np.broadcast_to(nominal, y.shape), y))
    distances = [plan(ground, data, goal)[0] for data, goal in zip(*from_to, strict=True)]
    return np.asarray(np.array(distances).reshape(y.shape[:-1]).sum(axis=-2))


def confined(ground: Ground, rows: Leaving) -> Array:
    """Cost of moving the mass of each row that is outside to the nearest place inside, (N, P)."""
    nearest = np.zeros(rows.states.size)
    ends = np.append(rows.starts[1:], rows.states.size)
    for k in np.flatnonzero(rows.total(rows.outside) > 0).tolist():
        entries = slice(rows.starts[k], ends[k])
        out, states = rows.outside[entries], rows.states[entries]
        inside = states[~out]
        if rows.others is not None:
            inside = np.flatnonzero(rows.others[1] == rows.others[0][k])
        if inside.size:
            nearest[entries][out] = ground.between(states[out], inside).min(axis=1)
    with np.errstate(invalid="ignore"):
        costs = np.where(rows.outside & (rows.rows > 0), rows.rows * nearest, 0.0)
    return np.asarray(rows.total(costs))


def rows(ambiguity: Wasserstein, model: Model, s: int) -> tuple[Array, BoolArray]:
    """Available rows of a state over all states, (A', N, S), and where they may have mass, (A', 1,
    S): costs are of states, not of columns.
    """
    there = model.available[s]
    allowed = ambiguity.allowed(model, s, s + 1)[0][there]
    return model.blocks.dense(s, s + 1)[0][there], allowed[:, None]


def farthest(ambiguity: Wasserstein, y: Array, allowed: BoolArray, w: Array) -> float:
    """Radius from which nature is unconstrained, of such rows.

    W_D is convex, so that every distribution is in the set as soon as all single next states are:
    max_k Σ_j ŷ(j) D(j, k). Where some mass cannot move everywhere, Σ_j ŷ(j) max_k D(j, k) over what
    it can reach is enough.
    """
    y, w, ground = y[:, w > 0], w[w > 0], ambiguity.ground
    if not ambiguity.by_kernel:
        y = np.einsum("i,aij->aj", w, y)[:, None]
    pairs = zip(y, allowed[:, 0], strict=True)
    far = np.array([[_farthest(ground, row, to) for row in kernels] for kernels, to in pairs])
    return float(far.sum(axis=0).max())


def _farthest(ground: Ground, y: Array, allowed: BoolArray) -> float:
    sources = np.flatnonzero(y > 0)
    costs = ground.between(sources, np.flatnonzero(allowed))
    if np.isfinite(costs).all():
        return float((y[sources] @ costs).max())
    return float(y[sources] @ np.where(np.isfinite(costs), costs, 0.0).max(axis=1))


def check_fits(ambiguity: Wasserstein, model: Model) -> None:
    """Refuse a ground that is not one of the model's states, or moves whose costs are unknown."""
    if (S := ambiguity.ground.n_states) != model.n_next:
        raise InputError(f"ground: expected costs between {model.n_next} states, got {S}")
    if ambiguity.free and ambiguity.support != "observed" and model.costs_missing:
        try:
            ambiguity.priced(model)
        except InputError as error:
            what = "mass moves at no cost between some states"
            raise InputError(f"ground: {what}: {error}") from None
