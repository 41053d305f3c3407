"""The lines of states: the data of the model for a witness, state by state, and nature's rows as
they are written.

A model is known by a SHA-256 of its header and of a SHA-256 for each state, as `drmdp_check`
computes it from a file. So workers hash ranges of states, and no process reads all of the model.
Where nature moves laws, pairs have a row for each law over the events.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.cached import cached_property
from drmdp.core.sums import raised
from drmdp.errors import InputError
from drmdp.model import Model, changed
from drmdp.model.events.lifted_model import LiftedModel, width
from drmdp.proof.responses import Row
from drmdp.sets import AmbiguitySet

FAR, LARGEST = 300, float(np.finfo(np.float64).max)
"""Powers of 2 beyond which stakes are scaled, and the largest double."""
BATCH = 4096
"""Numbers of a vector that are written at a time: no line is in memory at once."""


class Sweep(NamedTuple):
    """A sweep and its claim, in costs: bounds on the optimum, or on a fixed policy."""

    value: Array  # (S,)
    policy: Array  # (S, A)
    nature: Any
    lower: Array  # (S,)
    upper: Array
    sides: tuple[int, ...] = (0, 1)  # that it proves: 0 from below, 1 from above
    level: BoolArray | None = None  # (S,) where a step may be 0: players may stay in a free cycle
    # (S,) bounds on the expected steps of the policy, where costs do not show that it arrives
    steps: Array | None = None


class StoredPair(NamedTuple):
    """A pair as it is stored."""

    columns: Any  # (K,) next states; events, where nature moves those
    rows: Array  # (N, K)
    costs: Array  # (1,), (S,) or (K,)
    next_states: Any  # (K,) the columns themselves, but for events
    rate: float  # its discount


def pair_of(model: Model, s: int, a: int) -> StoredPair:
    """A pair of a model, over next states or the events that nature moves."""
    if isinstance(model, LiftedModel):
        events, c = np.arange(model.n_events), int(model.classes[s, a]) if model.classes.size else 0
        asked = model.asked(s, s + 1)
        costs = asked.costs[0, a] if model.priced else model._prices[s, a][None]
        return StoredPair(events, model.laws[c], costs, asked.next[0, a], model.discount)
    blocks, k, N = model.blocks, s * model.n_actions + a, model.n_kernels
    lo, hi = int(blocks.indptr[k]), int(blocks.indptr[k + 1])
    rows = np.asarray(blocks.data[N * lo : N * hi], dtype=np.float64).reshape(N, -1)
    columns = np.asarray(blocks.indices[lo:hi])
    rate = model.discount if model.discounts is None else float(model.discounts[s, a])
    return StoredPair(columns, rows, costs_of(model, s, a, lo, hi), columns, rate)


def digest(model: Model) -> str:
    """Digest of a model."""
    return joined(model.head, digests(model), model.discounts is not None)


def joined(head: Any, states: Iterable[bytes], each: bool = False) -> str:
    """Digest of a model from those of its states; `each`: discounts are those of pairs, in the
    states.
    """
    rate = -1.0 if each else head.discount
    sizes = struct.pack("<qqqd", head.n_kernels, head.n_states, head.n_actions, rate)
    hashed = hashlib.sha256(sizes + np.asarray(head.weights, dtype="<f8").tobytes())
    for state in states:
        hashed.update(state)
    return hashed.hexdigest()


def digests(model: Model) -> Iterator[bytes]:
    """A digest for each state, of its available pairs; the numbers of states are those of the whole
    model.
    """
    for s in range(model.n_states):
        end = 0.0 if model.ends is None else float(model.ends[s])
        hashed = hashlib.sha256(struct.pack("<qd", model.first + s, end) if end else b"")
        for a in np.flatnonzero(model.available[s]).tolist():
            pair = pair_of(model, s, a)
            hashed.update(struct.pack("<qqq", model.first + s, a, pair.columns.size))
            hashed.update(np.asarray(pair.next_states, dtype="<i4").tobytes())
            rate = [] if model.discounts is None else [pair.rate]
            for numbers in (pair.rows, pair.costs + 0.0, rate):
                hashed.update(np.asarray(numbers, dtype="<f8").tobytes())
            if model.sojourn is not None:
                hashed.update(b"sojourn" + struct.pack("<d", model.sojourn[s, a]))
        yield hashed.digest()


class States:
    """Writes the lines of the states of a sweep."""

    def __init__(
        self, model: Model, ambiguity: AmbiguitySet, witness: Any, sweep: Sweep, chosen: bool
    ) -> None:
        self.model, self.ambiguity, self.witness = model, ambiguity, witness
        self.sweep, self.chosen = sweep, chosen  # whether the policy was optimised, not fixed
        # whether nature is on the agent's side; then she maximises negated stakes
        self.helps = ambiguity.nature == "cooperative"
        self.sign = -1.0 if self.helps else 1.0
        # whether actions are bounded one by one: each has a separate budget, or a nature that helps
        # spends all of it on the action that is played
        self.alone = ambiguity.by_pair or (self.helps and chosen)
        v = self.sign * sweep.value
        # less its maximum: a level would cost digits, and only differences of stakes count
        self.u: Array = v - v.max()
        self.used: IntArray = np.flatnonzero(model.weights > 0)
        # of each state, or pair
        self.radii = ambiguity.radii(model) if ambiguity.sized else np.zeros(model.n_states)
        self._reached: dict[int, Any] = {}  # observed next states of the last state asked for

    @property
    def weights(self) -> Array:
        """Weights of the kernels that are used."""
        weights = self.model.weights[self.used]
        return np.asarray(weights / weights.sum())

    @cached_property
    def kernels(self) -> list[Any]:
        """Nature's kernels: the mean, where the witness needs no more, or one for each kernel of
        the data.
        """
        nature = self.sweep.nature
        if self.witness.mean:
            return [nature.kernel()]
        if getattr(nature, "kernels", None) is None:
            raise InputError(exact_only("kernels"))
        return [nature.kernels[int(i)] for i in self.used]

    @property
    def counted(self) -> States:
        """The same with a cost of 1 for every step, at the bounds on the steps."""
        assert self.sweep.steps is not None
        model = changed(self.model, _costs=np.ones(self.model.available.shape), ends=None)
        sweep = self.sweep._replace(value=self.sweep.steps, level=None, steps=None)
        return States(model, self.ambiguity, self.witness, sweep, self.chosen)

    def line(self, s: int) -> dict[str, Any]:
        """The line of a state."""
        acts, x = np.flatnonzero(self.model.available[s]).tolist(), self.sweep.policy[s]
        r = self.radii[s]
        line: dict[str, Any] = {"s": self.model.first + s, "x": x.tolist()}
        line |= {"r": np.asarray(r).tolist(), **self.witness.more(self, s, acts)}
        bounded, shown = (k in self.sweep.sides for k in (1 - self.helps, int(self.helps)))
        if not self.alone:
            shares = (x / x.sum())[acts].tolist()
            line |= {"up": self._above(s, acts, shares, float(r))} if bounded else {}
            return line | ({"low": self.witness.below(self, s, acts)} if shown else {})
        sizes = np.broadcast_to(r, x.shape)[acts].tolist()
        line["r"] = sizes
        if bounded:
            every = self.helps and self.chosen
            asked = [every or x[a] > 0 for a in acts]
            each = zip(acts, sizes, asked, strict=True)
            line["up"] = [self._above(s, [a], [1.0], r) if ask else {} for a, r, ask in each]
        return line | ({"low": [self.witness.below(self, s, [a]) for a in acts]} if shown else {})

    def _above(self, s: int, acts: list[int], x: list[float], radius: float) -> dict[str, Any]:
        """Multipliers that bound nature from above at a policy; lists by action have None for
        actions that are not played.
        """
        played = [(a, p) for a, p in zip(acts, x, strict=True) if p > 0]
        rows = [self.witness.row(self, s, a, p) for a, p in played]
        weights = np.ones(1) if self.witness.mean else self.weights
        level = self.sweep.level is not None and self.sweep.level[s]
        if level and max(self._top(s, a) for a, _ in played) <= self.u[s]:
            radius = math.inf  # no move raises the value: nothing has a price
        power = _far_from_1(rows)
        rows = [replace(row, g=np.ldexp(row.g, -power)) for row in rows] if power else rows
        side: dict[str, Any] = self.witness.above(self.ambiguity, rows, weights, radius)
        side = _rescaled(side, power) if power else side
        if len(rows) == len(acts) or self.witness.mixture:
            return side
        for name in {"e", "eta"} & side.keys():
            values = iter(side[name])
            side[name] = [next(values) if p > 0 else None for p in x]
        return side

    def pair(self, s: int, a: int) -> StoredPair:
        """A pair, kernels of weight 0 left out, rows divided by their sums."""
        pair = pair_of(self.model, s, a)
        rows = pair.rows[self.used]
        return pair._replace(rows=rows / rows.sum(axis=1, keepdims=True))

    def stakes(self, pair: StoredPair, states: Array) -> Array:
        """Stakes of some next states, or events, but for a level; of the listed ones first."""
        costs, by_state = pair.costs, pair.next_states is pair.columns
        if costs.size > 1:
            full = costs.size == self.u.size and by_state
            costs = costs[states if full else np.searchsorted(pair.columns, states)]
        next_states = states if by_state else pair.next_states[states]
        return np.asarray(self.sign * costs + pair.rate * self.u[next_states])

    def row(self, s: int, a: int, p: float) -> Row:
        """Stakes below the top, and rows, over all that nature may use, the listed next states
        first.
        """
        pair = self.pair(s, a)
        y, w = pair.rows, self.weights
        y = raised(w @ y, w, y)[None] if self.witness.mean else y
        places = self._places(s, pair)
        listed, others = np.isin(pair.columns, places), np.setdiff1d(places, pair.columns)
        states = np.concatenate([pair.columns[listed], others])
        y = np.pad(y[:, listed], ((0, 0), (0, others.size)))
        return Row(below_top(p, self.stakes(pair, states)), y, states, pair.columns)

    def _top(self, s: int, a: int) -> float:
        """The highest stake of a pair that nature may use, but for a level; where she mixes
        kernels, the largest loss of one.
        """
        pair = self.pair(s, a)
        if self.witness.mixture:
            above = self.stakes(pair, pair.columns) - self.u[s]
            return float((pair.rows @ above).max() + self.u[s])
        return float(self.stakes(pair, self._places(s, pair)).max())

    def _places(self, s: int, pair: StoredPair) -> Any:
        """Next states, or events, that nature may use for a pair of state s, ascending."""
        if self.ambiguity.support == "observed":
            return pair.columns[(pair.rows > 0).any(axis=0)]
        if self.ambiguity.support != "state":
            return np.arange(width(self.model))
        if s not in self._reached:
            self._reached.clear()
            pairs = [self.pair(s, a) for a in np.flatnonzero(self.model.available[s]).tolist()]
            observed = [pair.columns[(pair.rows > 0).any(axis=0)] for pair in pairs]
            self._reached[s] = np.unique(np.concatenate(observed))
        return self._reached[s]

    def rows(self, s: int, a: int) -> list[Any]:
        """Nature's rows of a pair as they are written."""
        pair = self.pair(s, a)
        if isinstance(self.model, LiftedModel):
            places = self._places(s, pair)
            return [self._events(pair, places, *entries(kernel, s, a)) for kernel in self.kernels]
        rows = all_written([entries(kernel, s, a) for kernel in self.kernels], pair.columns)
        return [row if any(row) else None for row in rows]  # None: as the data have it

    def _events(
        self, pair: StoredPair, allowed: IntArray, states: IntArray, masses: Array
    ) -> list[float]:
        """A row over events, from the entries of a compact row: the masses of the allowed events in
        their order, then masses that go to the best one.
        """
        row = np.bincount(allowed, masses[: allowed.size], pair.columns.size)
        for k in allowed.size + np.flatnonzero(masses[allowed.size :] > 0):
            best = allowed[pair.next_states[allowed] == states[k]]
            row[best[np.argmax(self.stakes(pair, best))]] += masses[k]
        return np.maximum(row, 0.0).tolist()  # type: ignore[no-any-return]


def exact_only(part: str) -> str:
    """Message where nature's kernels, or mixtures, are unknown."""
    return f"proof: nature's {part} are known to the exact operators only: take backend='exact'"


def entries(kernel: Any, s: int, a: int) -> tuple[IntArray, Array]:
    """Next states of a pair that have mass, with repetitions, and the masses; rows of large sparse
    kernels stay compact.
    """
    if sparse.issparse(kernel):
        pair = s * (kernel.shape[0] // kernel.shape[1]) + a
        lo, hi = kernel.indptr[pair], kernel.indptr[pair + 1]
        return kernel.indices[lo:hi], kernel.data[lo:hi]
    if not isinstance(kernel, np.ndarray):
        compact, pair = kernel.compact, s * kernel.shape[1] + a
        if compact.prefix_ptr[pair] == compact.prefix_ptr[pair + 1]:
            lo, hi = compact.entry_ptr[pair], compact.entry_ptr[pair + 1]
            return compact.entry_state[lo:hi], compact.entry_mass[lo:hi]
    row = kernel[s, a] if isinstance(kernel, np.ndarray) else kernel.rows(s)[a]
    states = np.flatnonzero(row > 0)
    return states, row[states]


def below_top(p: float, stakes: Array) -> Array:
    """Stakes at a share of the policy, less the highest."""
    return np.asarray(p * (stakes - stakes.max()))


def written(states: Any, masses: Array, columns: Any) -> list[Any]:
    """Masses of the listed next states, then [state, mass] for others."""
    return all_written([(states, masses)], columns)[0]  # type: ignore[no-any-return]


def all_written(rows: list[tuple[Any, Array]], columns: Any) -> list[Any]:
    """The same for many rows, next states and masses each."""
    K, n = columns.size, len(rows)
    states, masses = (np.concatenate(part) for part in zip(*rows, strict=True))
    row = np.repeat(np.arange(n), [mass.size for _, mass in rows])
    place = np.searchsorted(columns, states)
    place[place == K] = 0
    inside = columns[place] == states
    at = row * K + place
    out = np.maximum(np.bincount(at[inside], masses[inside], n * K), 0.0).reshape(n, K).tolist()
    for k in np.unique(row[~inside]).tolist():
        entry = ~inside & (row == k)
        others, place = np.unique(states[entry], return_inverse=True)
        more = zip(others.tolist(), np.bincount(place, masses[entry]).tolist(), strict=True)
        out[k] += [[t, mass] for t, mass in more if mass > 0]
    return out


def _far_from_1(rows: list[Row]) -> int:
    """The power of 2 by which stakes are divided against overflow of multipliers, which grow with
    them; 0 where nothing overflows.
    """
    power = math.frexp(max((float(np.abs(row.g).max(initial=0.0)) for row in rows), default=0.0))[1]
    return power if abs(power) > FAR else 0


def _rescaled(side: Any, power: int) -> Any:
    """One side of a line for undivided stakes; states and counts are integers, and stay."""
    if isinstance(side, dict):
        return {name: _rescaled(part, power) for name, part in side.items()}
    if isinstance(side, list):
        return [_rescaled(part, power) for part in side]
    if isinstance(side, float):
        with np.errstate(over="ignore", under="ignore"):
            return float(np.clip(np.ldexp(side, power), -LARGEST, LARGEST))
    return side


def costs_of(model: Model, s: int, a: int, lo: int, hi: int) -> Array:
    """Costs of a pair: (1,), (S,), or for the listed next states."""
    costs = model.costs
    if hasattr(costs, "indptr"):
        return np.asarray(costs.data[lo:hi], dtype=np.float64)
    return np.atleast_1d(np.asarray(costs[s, a], dtype=np.float64))


# ---------------------------------------------------------------------- bytes


def encoded(line: dict[str, Any]) -> bytes:
    """Encode a line."""
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


END = encoded({"end": True})


def numbers_of(vector: Array) -> Iterator[bytes]:
    """The numbers of a vector, without brackets."""
    for lo in range(0, len(vector), BATCH):
        text = json.dumps(vector[lo : lo + BATCH].tolist(), separators=(",", ":"))
        yield (b"," if lo else b"") + text[1:-1].encode()


def vector_lines(
    texts: Mapping[str, Iterable[bytes]], more: dict[str, Any] | None = None
) -> Iterator[bytes]:
    """The line of a sweep: the numbers of its vectors, and further entries."""
    begin = b"{"
    for name, text in texts.items():
        yield begin + f'"{name}":['.encode()
        yield from text
        begin = b"],"
    yield (b"]," + encoded(more)[1:]) if more else b"]}\n"
