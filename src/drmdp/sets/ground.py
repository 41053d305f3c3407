"""What it costs to move mass between states: D[j, k] ≥ 0 from j to k, 0 from j to itself, infinite where it cannot move.

D need not be symmetric, need not obey a triangle inequality, and may be 0 between different states: mass then moves there at no cost, at radius 0 too.

    (S, S) array          every cost, inf where mass cannot move
    sparse matrix         those that are stored; where nothing is stored mass cannot move, except from a state to itself
    ("line", positions)   |x_j − x_k| for positions (S,)
    ("grid", coordinates) Σ_d |x_jd − x_kd| for coordinates (S, k)

As numbers, these are off by 2⁻⁵², relatively, in any number of dimensions: sums keep what they lose (`drmdp.core.sums`).
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, IntArray
from drmdp.core.cached import cached_property
from drmdp.core.sums import added
from drmdp.core.validation import check_sparse, numbers
from drmdp.errors import InputError, shown

LEAST = 1e-100
"""A cost below this part of the largest one is a slip: nothing could be computed with both."""
EXPECTED = "an (S, S) array, a sparse (S, S) matrix, ('line', positions) or ('grid', coordinates)"


class Ground:
    """The costs of moving mass, in one of four forms."""

    def __init__(self, given: Any) -> None:
        self.kind: str
        self.data: Any
        if given is None:
            raise InputError(f"ground: metric 'transport' needs the costs of moving mass: {EXPECTED}")
        if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str):
            self.kind, self.data = _placed(*given)
        elif sparse.issparse(given):
            self.kind, self.data = "sparse", _sparse(given)
        else:
            self.kind, self.data = "dense", _dense(given)
        if 0 < self._smallest < LEAST * self.largest:
            raise InputError(f"ground: costs from {self._smallest!r} to {self.largest!r} are too far apart")

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.data.shape[0])

    @cached_property
    def digest(self) -> str:
        """What tells it from others."""
        found = hashlib.sha256(self.kind.encode())
        parts = (self.data.indptr, self.data.indices, self.data.data) if self.kind == "sparse" else (self.data,)
        for part in parts:
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()

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
            return bool(((self.data.data == 0) & (self._row != self.data.indices)).any())
        if self.kind == "dense":
            return bool((self.data == 0).sum() > self.n_states)
        return bool(np.unique(self.data, axis=0).shape[0] < self.n_states)

    def between(self, sources: IntArray, targets: IntArray) -> Array:
        """Costs from some states to some others, (n, m), inf where mass cannot move."""
        if self.kind == "dense":
            return np.asarray(self.data[np.ix_(sources, targets)])
        if self.kind == "line":
            return np.asarray(np.abs(self.data[sources][:, None] - self.data[targets][None, :]))
        if self.kind == "grid":
            total = lost = np.zeros((len(sources), len(targets)))
            for x in self.data.T:
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
        """What it is, in words."""
        S = self.n_states
        return {
            "dense": f"dense {S} × {S}", "line": f"line of {S}", "sparse": f"sparse {S} × {S}, {getattr(self.data, 'nnz', 0)} costs",
            "grid": f"grid of {S} in {self.data.shape[-1]} dimensions",
        }[self.kind]  # fmt: skip

    @property
    def _row(self) -> IntArray:
        return np.repeat(np.arange(self.n_states), np.diff(self.data.indptr))

    @property
    def _costs(self) -> Array:
        return np.asarray(self.data.data if self.kind == "sparse" else self.data)

    @property
    def _smallest(self) -> float:
        """The smallest cost that is not 0, of those that are stored; on a line and a grid rounding says what is 0."""
        if self.kind in ("line", "grid"):
            return 0.0
        return float(self._costs[self._costs > 0].min(initial=np.inf))

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Ground) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<{self.words}>"


def _dense(given: Any) -> Array:
    if isinstance(given, str | tuple):
        raise InputError(f"ground: expected {EXPECTED}, got {shown(given)}")
    costs = numbers("ground", given)
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or not costs.size:
        raise InputError(f"ground: expected {EXPECTED}, got shape {costs.shape}")
    _check(costs, lambda k: divmod(k, costs.shape[0]))
    off = np.flatnonzero(np.diagonal(costs))
    if off.size:
        j = int(off[0])
        raise InputError(f"ground: staying costs nothing, got {float(costs[j, j])!r} from state {j} to itself")
    costs.setflags(write=False)
    return costs


def _sparse(given: Any) -> Any:
    check_sparse("ground", given)
    if len(given.shape) != 2 or given.shape[0] != given.shape[1] or not given.shape[0]:
        raise InputError(f"ground: expected {EXPECTED}, got shape {given.shape}")
    costs = sparse.csr_array(given, dtype=np.float64, copy=True)
    costs.sum_duplicates()
    row = np.repeat(np.arange(costs.shape[0]), np.diff(costs.indptr))
    _check(costs.data, lambda k: (int(row[k]), int(costs.indices[k])))
    own = np.flatnonzero((row == costs.indices) & (costs.data != 0))
    if own.size:
        k = int(own[0])
        raise InputError(f"ground: staying costs nothing, got {float(costs.data[k])!r} from state {row[k]} to itself")
    return costs


def _check(costs: Array, place: Any) -> None:
    bad = ~(costs >= 0)
    if bad.any():
        k = int(np.argmax(bad))
        j, to = place(k)
        raise InputError(
            f"ground: costs are not negative, got {float(costs.ravel()[k])!r} from state {j} to state {to}"
        )


def _placed(kind: str, given: Any) -> tuple[str, Array]:
    if kind not in ("line", "grid"):
        raise InputError(f"ground: expected {EXPECTED}, got ({kind!r}, …)")
    what, shape, ndim = ("positions", "(S,)", 1) if kind == "line" else ("coordinates", "(S, k)", 2)
    places = numbers(f"ground: {what}", given)
    if places.ndim != ndim or not places.size:
        raise InputError(f"ground: {what}: expected shape {shape}, got {places.shape}")
    bad = ~np.isfinite(places)
    if bad.any():
        at = np.argwhere(bad)[0].tolist()
        axis = f", coordinate {at[1]}" if ndim == 2 else ""
        raise InputError(f"ground: {what} are finite, got {float(places[tuple(at)])!r} at state {at[0]}{axis}")
    with np.errstate(over="ignore"):
        if not np.isfinite(np.ptp(places, axis=0).sum()):
            ends = f"{float(places.min())!r} to {float(places.max())!r}"
            raise InputError(f"ground: {what} from {ends} are too far apart")
    places.setflags(write=False)
    return kind, places
