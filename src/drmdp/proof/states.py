"""The lines of states: what of the model a witness needs, state by state, and how rows are written."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.cached import cached_property
from drmdp.core.sums import raised
from drmdp.errors import InputError
from drmdp.model import Model, changed
from drmdp.model.lifted import Lifted, width
from drmdp.proof.responses import Row
from drmdp.sets import AmbiguitySet

FAR, LARGEST = 300, float(np.finfo(np.float64).max)
"""Powers of 2 that stakes may have without care."""


class Sweep(NamedTuple):
    """A sweep and what is claimed of it, in costs: bounds on the optimum, or on the policy if that was given."""

    value: Array  # (S,) where it was made
    policy: Array  # (S, A)
    nature: Any  # her side of it
    lower: Array  # (S,)
    upper: Array
    sides: tuple[int, ...] = (0, 1)  # what it is for: 0 from below, 1 from above
    level: BoolArray | None = None  # (S,) where a step may be 0, for players go round in circles at no cost
    steps: Array | None = None  # (S,) what bounds the steps of the policy, where costs do not show that it arrives


class Pair(NamedTuple):
    """A pair as it is stored."""

    columns: Any  # (K,) next states; events, where nature moves those
    rows: Array  # (N, K)
    costs: Array  # one, S, or one for each column
    there: Any  # (K,) where columns lead: to themselves, but for events
    rate: float  # its discount


def pair_of(model: Model, s: int, a: int) -> Pair:
    """A pair of a model as nature sees it."""
    if isinstance(model, Lifted):
        events, c = np.arange(model.n_events), int(model.classes[s, a]) if model.classes.size else 0
        asked = model.asked(s, s + 1)
        costs = asked.costs[0, a] if model.priced else model._prices[s, a][None]
        return Pair(events, model.laws[c], costs, asked.next[0, a], model.discount)
    blocks, k, N = model.blocks, s * model.n_actions + a, model.n_kernels
    lo, hi = int(blocks.indptr[k]), int(blocks.indptr[k + 1])
    rows = np.asarray(blocks.data[N * lo : N * hi], dtype=np.float64).reshape(N, -1)
    columns = np.asarray(blocks.indices[lo:hi])
    rate = model.discount if model.discounts is None else float(model.discounts[s, a])
    return Pair(columns, rows, costs_of(model, s, a, lo, hi), columns, rate)


@dataclass(frozen=True)
class States:
    """Writes the lines of the states of a sweep."""

    model: Model
    ball: AmbiguitySet
    witness: Any
    sweep: Sweep
    chosen: bool  # whether the policy was chosen, not given

    @property
    def helps(self) -> bool:
        """Whether nature is on the agent's side."""
        return self.ball.nature == "cooperative"

    @property
    def alone(self) -> bool:
        """Whether actions are bounded one by one: each has a budget of its own, or a nature that helps bets all on the one that is played."""
        return self.ball.by_pair or (self.helps and self.chosen)

    @cached_property
    def u(self) -> Array:
        """What she sees of v, at most 0: a level would cost digits, and only differences of stakes count."""
        v = self.sign * self.sweep.value
        return np.asarray(v - v.max())

    @property
    def sign(self) -> float:
        """−1 where a nature that helps maximises negated stakes."""
        return -1.0 if self.helps else 1.0

    @cached_property
    def used(self) -> IntArray:
        """Numbers of the kernels of positive weight."""
        return np.flatnonzero(self.model.weights > 0)

    @cached_property
    def weights(self) -> Array:
        """Their weights."""
        own = self.model.weights[self.used]
        return np.asarray(own / own.sum())

    @cached_property
    def radii(self) -> Array:
        """Radius of each state, or pair."""
        return np.asarray(self.ball.radii(self.model)) if self.ball.sized else np.zeros(self.model.n_states)

    @cached_property
    def kernels(self) -> list[Any]:
        """Nature's kernels: the mean, where that is all that is asked, or one for each kernel of the data."""
        nature = self.sweep.nature
        if self.witness.mean:
            return [nature.kernel()]
        if getattr(nature, "kernels", None) is None:
            raise InputError("proof: nature's kernels are known to the exact operators only: take backend='exact'")
        return [nature.kernels[int(i)] for i in self.used]

    @property
    def counted(self) -> States:
        """The same where every step costs 1, at what bounds the steps."""
        assert self.sweep.steps is not None
        model = changed(self.model, _costs=np.ones(self.model.available.shape), ends=None)
        return replace(self, model=model, sweep=self.sweep._replace(value=self.sweep.steps, level=None, steps=None))

    def _level(self, s: int) -> bool:
        return self.sweep.level is not None and bool(self.sweep.level[s])

    def line(self, s: int) -> dict[str, Any]:
        """The line of a state."""
        acts, x = np.flatnonzero(self.model.available[s]).tolist(), self.sweep.policy[s]
        r = self.radii[s]
        line: dict[str, Any] = {
            "s": self.model.first + s,
            "x": x.tolist(),
            "r": np.asarray(r).tolist(),
            **self.witness.more(self, s, acts),
        }
        bounded, shown = (k in self.sweep.sides for k in (1 - self.helps, int(self.helps)))
        if not self.alone:
            shares = (x / x.sum())[acts].tolist()
            line |= {"up": self._above(s, acts, shares, float(r))} if bounded else {}
            return line | ({"low": self.witness.below(self, s, acts)} if shown else {})
        sizes = np.broadcast_to(r, x.shape)[acts].tolist()
        line["r"] = sizes
        if bounded:
            asked = [(self.helps and self.chosen) or x[a] > 0 for a in acts]
            own = zip(acts, sizes, asked, strict=True)
            line["up"] = [self._above(s, [a], [1.0], size) if ask else {} for a, size, ask in own]
        return line | ({"low": [self.witness.below(self, s, [a]) for a in acts]} if shown else {})

    def _above(self, s: int, acts: list[int], x: list[float], radius: float) -> dict[str, Any]:
        """What bounds nature from above at a policy; lists by action have nothing for those that are not played."""
        rows = [self.witness.row(self, s, a, p) for a, p in zip(acts, x, strict=True) if p > 0]
        weights = np.ones(1) if self.witness.mean else self.weights
        if self._level(s) and max(self._top(s, a) for a, p in zip(acts, x, strict=True) if p > 0) <= self.u[s]:
            radius = math.inf  # whatever she does, it does not rise: nothing has a price
        power = _far_from_1(rows)
        rows = [replace(row, g=np.ldexp(row.g, -power)) for row in rows] if power else rows
        found: dict[str, Any] = self.witness.above(self.ball, rows, weights, radius)
        found = _grown(found, power) if power else found
        if len(rows) == len(acts) or self.witness.mixture:
            return found
        for name in {"e", "eta"} & found.keys():
            own = iter(found[name])
            found[name] = [next(own) if p > 0 else None for p in x]
        return found

    def pair(self, s: int, a: int) -> Pair:
        """A pair, kernels of weight 0 left out, rows divided by their sums."""
        found = pair_of(self.model, s, a)
        rows = found.rows[self.used]
        return found._replace(rows=rows / rows.sum(axis=1, keepdims=True))

    def stakes(self, pair: Pair, states: Array) -> Array:
        """Stakes of some next states, or events, but for a level; of the listed ones first."""
        costs, S = pair.costs, self.u.size
        if costs.size == 1:
            own: Any = costs
        elif costs.size == S and pair.there is pair.columns:
            own = costs[states]
        else:
            own = costs[np.searchsorted(pair.columns, states)]
        there = states if pair.there is pair.columns else pair.there[states]
        return np.asarray(self.sign * own + pair.rate * self.u[there])

    def row(self, s: int, a: int, p: float) -> Row:
        """Stakes below the top, and rows, over all that nature may use, the listed next states first."""
        pair = self.pair(s, a)
        y, w = pair.rows, self.weights
        y = raised(w @ y, w, y)[None] if self.witness.mean else y
        places = self._places(s, pair)
        listed, others = np.isin(pair.columns, places), np.setdiff1d(places, pair.columns)
        states, y = np.concatenate([pair.columns[listed], others]), np.pad(y[:, listed], ((0, 0), (0, others.size)))
        return Row(below_top(p, self.stakes(pair, states)), y, states, pair.columns)

    def _top(self, s: int, a: int) -> float:
        """The highest stake of a pair that nature may use, but for a level; where she mixes kernels, the largest loss of one."""
        pair = self.pair(s, a)
        if self.witness.mixture:
            return float((pair.rows @ (self.stakes(pair, pair.columns) - self.u[s])).max() + self.u[s])
        return float(self.stakes(pair, self._places(s, pair)).max())

    def _places(self, s: int, pair: Pair) -> Any:
        """Next states, or events, that nature may use for a pair of state s, ascending."""
        if self.ball.support == "observed":
            return pair.columns[(pair.rows > 0).any(axis=0)]
        if self.ball.support != "state":
            return np.arange(width(self.model))
        if s not in self._reached:
            self._reached.clear()
            pairs = [self.pair(s, a) for a in np.flatnonzero(self.model.available[s]).tolist()]
            self._reached[s] = np.unique(np.concatenate([own.columns[(own.rows > 0).any(axis=0)] for own in pairs]))
        return self._reached[s]

    @cached_property
    def _reached(self) -> dict[int, Any]:
        """What the pairs of the last state that was asked for have together."""
        return {}

    def rows(self, s: int, a: int) -> list[Any]:
        """Nature's rows of a pair as they are written."""
        pair = self.pair(s, a)
        if isinstance(self.model, Lifted):
            return [self._events(pair, self._places(s, pair), *entries(kernel, s, a)) for kernel in self.kernels]
        found = all_written([entries(kernel, s, a) for kernel in self.kernels], pair.columns)
        return [row if any(row) else None for row in found]  # None: as the data have it

    def _events(self, pair: Pair, own: IntArray, states: IntArray, masses: Array) -> list[float]:
        """A row over events, from the entries of a compact one: those that nature may use, in their order, and what she brings to the best one."""
        row = np.bincount(own, masses[: own.size], pair.columns.size)
        for k in own.size + np.flatnonzero(masses[own.size :] > 0):
            best = own[pair.there[own] == states[k]]
            row[best[np.argmax(self.stakes(pair, best))]] += masses[k]
        return np.maximum(row, 0.0).tolist()  # type: ignore[no-any-return]


def entries(kernel: Any, s: int, a: int) -> tuple[IntArray, Array]:
    """Next states of a pair that have mass, some of them more than once, and the masses; rows of large sparse kernels are not spelled out."""
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
    found: list[Any] = all_written([(states, masses)], columns)[0]
    return found


def all_written(rows: list[tuple[Any, Array]], columns: Any) -> list[Any]:
    """The same for several rows, next states and masses each."""
    K, n = columns.size, len(rows)
    states, masses = (np.concatenate(part) for part in zip(*rows, strict=True))
    row = np.repeat(np.arange(n), [own.size for own, _ in rows])
    place = np.searchsorted(columns, states)
    place[place == K] = 0
    inside = columns[place] == states
    at = row * K + place
    if inside.all():
        return np.maximum(np.bincount(at, masses, n * K), 0.0).reshape(n, K).tolist()
    found = np.maximum(np.bincount(at[inside], masses[inside], n * K), 0.0).reshape(n, K).tolist()
    for k in range(n):
        own = ~inside & (row == k)
        others, place = np.unique(states[own], return_inverse=True)
        more = np.maximum(np.bincount(place, masses[own]), 0.0)
        found[k] += [[t, mass] for t, mass in zip(others.tolist(), more.tolist(), strict=True) if mass > 0]
    return found


def _far_from_1(rows: list[Row]) -> int:
    """The power of 2 by which stakes are divided so that nothing overflows on the way to multipliers, which grow with them; 0 where nothing does."""
    power = math.frexp(max((float(np.abs(row.g).max(initial=0.0)) for row in rows), default=0.0))[1]
    return power if abs(power) > FAR else 0


def _grown(side: Any, power: int) -> Any:
    """One side of a line whose stakes were divided; states and counts are whole numbers, and stay."""
    if isinstance(side, dict):
        return {name: _grown(own, power) for name, own in side.items()}
    if isinstance(side, list):
        return [_grown(own, power) for own in side]
    if isinstance(side, float):
        with np.errstate(over="ignore", under="ignore"):
            return float(np.clip(np.ldexp(side, power), -LARGEST, LARGEST))
    return side


def costs_of(model: Model, s: int, a: int, lo: int, hi: int) -> Array:
    """Costs of a pair: one, S, or one for each listed next state."""
    costs = model.costs
    if hasattr(costs, "indptr"):
        return np.asarray(costs.data[lo:hi], dtype=np.float64)
    own = np.asarray(costs[s, a], dtype=np.float64)
    return own if own.ndim else own[None]
