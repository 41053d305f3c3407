"""The witnesses of sets in proof files: their names, multipliers that bound nature from above, and
her answers.

`above` takes the rows of the actions that are played, weights of the kernels and a radius; see
`responses`. The registry says which set has which.

**Transport plans** are read from the memory of a sweep, which holds t₁, t₂ and f for every row
(`native/rows/transport.hpp`): the mass of j goes to its best targets at t₁ and t₂ in the shares 1 −
f and f. Targets are looked up as in the sweep, as a tie broken otherwise would be another plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from drmdp._typing import Array
from drmdp.errors import InputError
from drmdp.layout.event_layout import EventLayout, pieces
from drmdp.layout.layout import by_pair, entries_of, in_force, lay_out
from drmdp.layout.memory import SweepMemory, memory_by_pair
from drmdp.layout.transport_layout import Lists
from drmdp.proof import norms, responses
from drmdp.proof.responses import Row
from drmdp.proof.states import States, below_top, exact_only, written

FLAT = 1e-13
"""Stakes this near to the top count as rounding in sweeps."""
Side = dict[str, Any]
"""One side of a line of the file; lists by action are of the played ones."""


class SetWitness:
    """The base of all witnesses: rows of the data, and nature's rows.

    A witness describes its set, but for its radius and its support (`about`), and has multipliers
    that bound nature from above (`above`).
    """

    mean = False
    """Whether only the means of the kernels count."""
    mixture = False
    """Whether nature mixes the kernels."""

    def row(self, states: States, s: int, a: int, p: float) -> Row:
        """The data of a pair that is played with probability p."""
        return states.row(s, a, p)

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Nature's answer."""
        return {"y": [states.rows(s, a) for a in acts]}

    def more(self, states: States, s: int, acts: list[int]) -> dict[str, Any]:
        """Further entries of the line of a state."""
        return {}


def _listed(row: Row, e: Array, rest: list[float]) -> list[Any]:
    """The e of an action as they are written, a row for each kernel: of listed next states, then
    [state, e] where e is not `rest`.
    """
    inner = np.zeros((e.shape[0], row.columns.size))
    inside = np.isin(row.states, row.columns)
    inner[:, np.searchsorted(row.columns, row.states[inside])] = e[:, inside]
    lists, others = inner.tolist(), row.states[~inside].tolist()
    for row_list, values, c in zip(lists, e[:, ~inside].tolist(), rest, strict=True):
        row_list += [[t, x] for t, x in zip(others, values, strict=True) if x != c]
    return lists  # type: ignore[no-any-return]


@dataclass(frozen=True)
class NormWitness(SetWitness):
    """Sets of a norm; `mean`: the means of tuples are the set around the mean."""

    mean: bool = False

    def about(self, ambiguity: Any) -> dict[str, Any]:
        """Metric and order."""
        order = "inf" if ambiguity.by_kernel else ambiguity.order
        line = {"family": "norm", "metric": ambiguity.metric, "order": order}
        return line | ({"around": "mean"} if self.mean else {})

    def above(self, ambiguity: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """Multipliers e; nothing moves without a radius, and no kernel is farther away than twice
        the number of actions.
        """
        if not radius > 0:
            return {}
        none = [0.0] * weights.size
        if radius > 2 * len(rows):  # then nothing has a price
            return {"e": [_listed(row, np.zeros((weights.size, row.g.size)), none) for row in rows]}
        if ambiguity.metric == "l1":
            return l1_side(rows, weights, radius, ambiguity.order)
        find = norms.l2 if ambiguity.metric == "l2" else norms.linf
        multipliers = find(rows, weights, radius, ambiguity.order)
        return {"e": [_listed(row, e, none) for row, e in zip(rows, multipliers, strict=True)]}


def l1_side(rows: list[Row], weights: Array, radius: float, order: float) -> Side:
    """Multipliers e of an ℓ1 set, and those of next states that no kernel lists."""
    multipliers, rest = norms.l1(rows, weights, radius, order)
    lists = [_listed(row, e, rest) for row, e in zip(rows, multipliers, strict=True)]
    return {"e": lists, "rest": rest}


@dataclass(frozen=True)
class DivergenceWitness(SetWitness):
    """Sets of a divergence around the mean or the kernels."""

    mean: bool = False

    def about(self, ambiguity: Any) -> dict[str, Any]:
        """Kind and centre."""
        return {"family": "divergence", "kind": ambiguity.kind, "around": ambiguity.around}

    def above(self, ambiguity: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """A multiplier and thresholds; nothing moves without a radius."""
        if not radius > 0:
            return {}
        if ambiguity.kind == "tv":
            return l1_side(rows, weights, 2 * radius, 1)
        return responses.divergence(ambiguity.kind, rows, weights, radius)


@dataclass(frozen=True)
class TransportWitness(SetWitness):
    """Sets of transport: around the mean, or around each kernel."""

    mean: bool = False

    def about(self, ambiguity: Any) -> dict[str, Any]:
        """Order and costs of moving: coordinates, or lists [state, cost] for each state."""
        ground = ambiguity.ground
        description = {"family": "transport", "order": 1 if self.mean else "inf"}
        if ground.kind in ("line", "grid"):
            return description | {"grid": ground.data.reshape(ground.n_states, -1).tolist()}
        every, lists = np.arange(ground.n_states), []
        for j in every:
            costs = ground.between(np.array([j]), every)[0]
            near = np.flatnonzero(np.isfinite(costs) & (every != j))
            lists.append([[t, costs[t]] for t in near.tolist()])
        return description | {"lists": lists}

    def above(self, ambiguity: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """A price of moving for each kernel."""
        near = [np.asarray(ambiguity.ground.between(row.states, row.states)) for row in rows]
        return {"kappa": [responses.transport(rows, near, i, radius) for i in range(weights.size)]}

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Plans for the mass of the listed next states."""
        lists = []
        for a in acts:
            listed = set(states.pair(s, a).columns.tolist())
            plan = plans(states.sweep.nature, s, a, states.ambiguity.by_pair)
            lists.append([[move for move in moves if move[0] in listed] for moves in plan])
        return {"y": lists}


class ReweightingWitness(SetWitness):
    """Mixtures of the kernels: rows over the kernels, whose stakes are their losses."""

    mixture = True

    def about(self, ambiguity: Any) -> dict[str, Any]:
        """The kind."""
        return {"family": "reweighting", "kind": ambiguity.kind}

    def above(self, ambiguity: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """Multipliers that bound a mixture; the radius of cvar is its level."""
        losses, n = sum(np.einsum("ik,k->i", row.y, row.g) for row in rows), np.arange(weights.size)
        if ambiguity.kind in ("cvar", "any"):
            capped = ambiguity.kind == "cvar" and 0 < radius < np.inf
            most = weights / radius if capped else np.ones(weights.size)
            return {"eta": [responses.pivot(losses, np.zeros(weights.size), most)]}
        mixed = Row(losses - np.max(losses), weights[None], n, n)
        return DIVERGENCE.above(ambiguity, [mixed], np.ones(1), radius)

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Her mixture, over the kernels of positive weight."""
        weights, ambiguity = (
            getattr(states.sweep.nature, "weights", None),
            cast(Any, states.ambiguity),
        )
        if weights is None:
            raise InputError(exact_only("mixtures"))
        q = (weights[s, acts[0]] if weights.ndim == 3 else weights[s])[states.used].tolist()
        return {"y": [q if ambiguity.kind in ("cvar", "any") else [q]]}


class IntervalsWitness(SetWitness):
    """An interval for each probability; they are in the lines of the states."""

    mean = True

    def about(self, ambiguity: Any) -> dict[str, Any]:
        """The family."""
        return {"family": "intervals"}

    def _box(self, states: States, s: int, a: int) -> tuple[Array, Array, Array]:
        """Next states, their intervals (2, K) and stakes."""
        layout: Any = lay_out(states.model, states.ambiguity)
        entries = entries_of(layout, s * states.model.n_actions + a)
        columns = np.asarray(layout.indices[entries])
        ends = np.stack(in_force(layout, entries, layout.radius[s]))
        costs = layout.next_costs[entries] if layout.next_costs.size else layout.costs[s, a]
        return columns, ends, states.sign * costs + states.pair(s, a).rate * states.u[columns]

    def more(self, states: States, s: int, acts: list[int]) -> dict[str, Any]:
        """The intervals of a state."""
        line: dict[str, Any] = {"r": 0, "lo": [], "hi": []}
        for a in acts:
            columns, ends, _ = self._box(states, s, a)
            listed = states.pair(s, a).columns
            for name, values in zip(("lo", "hi"), ends, strict=True):
                line[name].append(written(columns, values, listed))
        return line

    def row(self, states: States, s: int, a: int, p: float) -> Row:
        """Stakes, and the ends of the intervals for rows."""
        columns, ends, stakes = self._box(states, s, a)
        return Row(below_top(1.0, stakes), ends, columns, columns)

    def above(self, ambiguity: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """Thresholds."""
        return {"eta": [responses.pivot(row.g, row.y[0], row.y[1]) for row in rows]}

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Her rows; no kernel has one of its own."""
        return {"y": [states.rows(s, a)[0] for a in acts]}


NORM, NORM_MEAN = NormWitness(), NormWitness(mean=True)
DIVERGENCE, DIVERGENCE_MEAN = DivergenceWitness(), DivergenceWitness(mean=True)
TRANSPORT, TRANSPORT_MEAN = TransportWitness(), TransportWitness(mean=True)
MIXTURES, INTERVALS = ReweightingWitness(), IntervalsWitness()


# ---------------------------------------------------------------------- plans of transport


def plans(nature: Any, s: int, a: int, pairwise: bool) -> list[list[Any]]:
    """Moves [from, to, share of the mass] of a pair: a list for the mean, or one for each kernel;
    `pairwise`: actions have separate budgets.
    """
    layout, memory, A = nature.layout, nature.memory, nature.model.n_actions
    if isinstance(layout, EventLayout):
        _, _, layout, origin = next(pieces(layout, s, s + 1))
        memory, s = SweepMemory(*(part[origin] for part in memory)), 0
    if pairwise and layout.available.shape[1] > 1:
        layout, memory = by_pair(layout), memory_by_pair(memory)
    at, action = (s, a) if layout.available.shape[1] > 1 else (s * A + a, 0)
    entries = entries_of(layout, s * A + a)
    u = nature.point.order.common if layout.common else _stakes(layout, nature.point, at, action)
    listed, source = np.asarray(layout.indices[entries]), layout.ground.source[entries]
    by_row = []
    for t1, t2, f in memory.by_row[at, action].reshape(-1, 3).tolist():
        moves: list[Any] = []
        for j, origin in zip(listed.tolist(), source.tolist(), strict=True):
            for t, part in ((t1, 1 - f), (t2, f)):
                target = _best(layout.ground.lists, origin, t, u) if t > 0 else -1
                to = j if target < 0 else target if layout.common else int(listed[target])
                if to != j and part > 0:
                    moves.append([j, to, part])
        by_row.append(moves)
    return by_row


def _stakes(layout: Any, point: Any, s: int, a: int) -> Array:
    """Stakes of the listed states of a pair in the unit of sweeps, the largest range of any action
    (`native/stakes.hpp`).
    """
    A, each = layout.available.shape[1], []
    for pair in range(s * A, s * A + A):
        entries = entries_of(layout, pair)
        rate = layout.discount if isinstance(layout.discount, float) else layout.discount[pair]
        z = rate * point.value[layout.indices[entries]]
        each.append(z + layout.next_costs[entries] if layout.next_costs.size else z)
    unit = max(float(np.ptp(z)) if z.size else 0.0 for z in each)
    u = (each[a] - each[a].max()) * (1.0 / unit if unit > 1e-280 else 0.0)
    return np.where(u <= -FLAT, u, 0.0)


def _best(lists: Lists, j: int, t: float, u: Array) -> int:
    """The target of source j that is best at t: of the highest score, then of the highest stake,
    then the nearest.
    """
    entries = slice(int(lists.ptr[j]), int(lists.ptr[j + 1]))
    targets = lists.target[entries]
    stakes = u[targets]
    if t < np.inf:
        score = t * stakes - lists.cost[entries]
        stakes = np.where(score == score.max(), stakes, -np.inf)
    return int(targets[np.argmax(stakes)])
