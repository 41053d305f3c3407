"""What a proof file says of each set: its name, what bounds nature from above, and her answer.

`above` takes the rows of the actions that are played, weights of the kernels and a radius; see `responses`. The registry says which set has which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.layout.layout import lay_out
from drmdp.proof import norms, plans, responses
from drmdp.proof.responses import Row
from drmdp.proof.states import States, below_top, written

Side = dict[str, Any]
"""One side of a line of the file; lists by action are of the played ones."""


class Witness:
    """What all sets share: rows of the data, and nature's rows."""

    mean = False
    """Whether the means of the kernels are all that counts."""
    mixture = False
    """Whether nature mixes the kernels."""

    def told(self, ball: Any) -> dict[str, Any]:
        """The set, but for its radius and its support."""
        raise NotImplementedError

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """What bounds nature from above."""
        raise NotImplementedError

    def row(self, states: States, s: int, a: int, p: float) -> Row:
        """The data of a pair that is played with probability p."""
        return states.row(s, a, p)

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Nature's answer."""
        return {"y": [states.rows(s, a) for a in acts]}

    def more(self, states: States, s: int, acts: list[int]) -> dict[str, Any]:
        """What the line of a state has beside both sides."""
        return {}


def _listed(row: Row, e: Array, rest: list[float]) -> list[Any]:
    """The e of an action as they are written, one row for each kernel: of listed next states, then [state, e] where it is not the rest."""
    own, place = np.zeros((e.shape[0], row.columns.size)), np.searchsorted(row.columns, row.states)
    place[place == row.columns.size] = 0
    inside = row.columns[place] == row.states
    own[:, place[inside]] = e[:, inside]
    found, others = own.tolist(), row.states[~inside].tolist()
    for mine, values, c in zip(found, e[:, ~inside].tolist(), rest, strict=True):
        mine += [[t, x] for t, x in zip(others, values, strict=True) if x != c]
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Norm(Witness):
    """Balls of a norm; `mean`: the means of tuples are the ball around the mean."""

    find: Any
    mean: bool = False

    def told(self, ball: Any) -> dict[str, Any]:
        """Metric and order."""
        order = "inf" if ball.by_kernel else ball.order
        return {"family": "norm", "metric": ball.metric, "order": order, **({"around": "mean"} if self.mean else {})}

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """What is priced; nothing moves without a radius, and no kernel is farther away than twice the number of actions."""
        if not radius > 0:
            return {}
        none = [0.0] * weights.size
        if radius > 2 * len(rows):  # then nothing has a price
            return {"e": [_listed(row, np.zeros((weights.size, row.g.size)), none) for row in rows]}
        if self.find is norms.l1:
            return l1_side(rows, weights, radius, ball.order)
        found = self.find(rows, weights, radius, ball.order)
        return {"e": [_listed(row, e, none) for row, e in zip(rows, found, strict=True)]}


def l1_side(rows: list[Row], weights: Array, radius: float, order: float) -> Side:
    """What is priced, and what is where no kernel goes."""
    found, rest = norms.l1(rows, weights, radius, order)
    return {"e": [_listed(row, e, rest) for row, e in zip(rows, found, strict=True)], "rest": rest}


L1, L1_MEAN, L2, LINF = Norm(norms.l1), Norm(norms.l1, mean=True), Norm(norms.l2), Norm(norms.linf)


@dataclass(frozen=True)
class Divergence(Witness):
    """Balls by a divergence around the mean or the kernels."""

    kind: str
    mean: bool

    def told(self, ball: Any) -> dict[str, Any]:
        """Kind and centre."""
        return {"family": "divergence", "kind": self.kind, "around": "mean" if self.mean else "kernels"}

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """A multiplier and thresholds; nothing moves without a radius."""
        if not radius > 0:
            return {}
        if self.kind == "tv":
            return l1_side(rows, weights, 2 * radius, 1)
        return responses.divergence(self.kind, rows, weights, radius)


@dataclass(frozen=True)
class Transport(Witness):
    """Balls by transport: around the mean, or around each kernel."""

    mean: bool

    def told(self, ball: Any) -> dict[str, Any]:
        """Order and costs of moving: coordinates, or lists [state, cost] for each state."""
        ground, told = ball.ground, {"family": "transport", "order": 1 if self.mean else "inf"}
        if ground.kind in ("line", "grid"):
            return told | {"grid": ground.data.reshape(ground.n_states, -1).tolist()}
        every = np.arange(ground.n_states)
        lists = []
        for j in every:
            costs = ground.between(np.array([j]), every)[0]
            near = np.flatnonzero(np.isfinite(costs) & (every != j))
            lists.append([[int(t), float(costs[t])] for t in near])
        return told | {"lists": lists}

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """A price of moving for each kernel."""
        near = [np.asarray(ball.ground.between(row.states, row.states)) for row in rows]
        return {"kappa": [responses.transport(rows, near, i, radius) for i in range(weights.size)]}

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Plans for what mass there is."""
        found = []
        for a in acts:
            there, own = (
                set(states.pair(s, a).columns.tolist()),
                plans.plans(states.sweep.nature, s, a, states.ball.by_pair),
            )
            found.append([[move for move in moves if move[0] in there] for moves in own])
        return {"y": found}


@dataclass(frozen=True)
class Reweighting(Witness):
    """Mixtures of the kernels: rows over the kernels, whose stakes are their losses."""

    kind: str
    mixture = True

    def told(self, ball: Any) -> dict[str, Any]:
        """The kind."""
        return {"family": "reweighting", "kind": self.kind}

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """What bounds a mixture; the radius of cvar is its level."""
        losses, n = sum(np.einsum("ik,k->i", row.y, row.g) for row in rows), np.arange(weights.size)
        if self.kind in ("cvar", "any"):
            most = weights / radius if self.kind == "cvar" and 0 < radius < np.inf else np.ones(weights.size)
            return {"eta": [responses.pivot(losses, np.zeros(weights.size), most)]}
        mixed = Row(losses - np.max(losses), weights[None], n, n)
        return Divergence(self.kind, mean=True).above(ball, [mixed], np.ones(1), radius)

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Her mixture, over the kernels of positive weight."""
        nature = states.sweep.nature.weights[..., states.used]
        q = (nature[s, acts[0]] if nature.ndim == 3 else nature[s]).tolist()
        return {"y": [q if self.kind in ("cvar", "any") else [q]]}


def by_kind(kind: str) -> tuple[Divergence, Divergence, Reweighting]:
    """The three sets of a kind of divergence: around the mean, around the kernels, of mixtures."""
    return Divergence(kind, mean=True), Divergence(kind, mean=False), Reweighting(kind)


KL_MEAN, KL, MIX_KL = by_kind("kl")
BURG_MEAN, BURG, MIX_BURG = by_kind("burg")
CHI2_MEAN, CHI2, MIX_CHI2 = by_kind("chi2")
TV_MEAN, TV, MIX_TV = by_kind("tv")
MIX_CVAR, MIX_ANY = Reweighting("cvar"), Reweighting("any")
TRANSPORT_MEAN, TRANSPORT = Transport(mean=True), Transport(mean=False)


@dataclass(frozen=True)
class Intervals(Witness):
    """An interval for each probability; they are in the lines of the states."""

    mean = True

    def told(self, ball: Any) -> dict[str, Any]:
        """The family."""
        return {"family": "intervals"}

    def _box(self, states: States, s: int, a: int) -> tuple[Array, Array, Array]:
        """Next states, their intervals (2, K) and stakes."""
        layout: Any = lay_out(states.model, states.ball)
        pair = s * states.model.n_actions + a
        entries = slice(int(layout.indptr[pair]), int(layout.indptr[pair + 1]))
        columns, r = np.asarray(layout.indices[entries]), layout.radius[s]
        ends = np.stack([np.maximum(layout.mean[entries] - r, 0.0), np.minimum(layout.data[entries] + r, 1.0)])
        costs = layout.next_costs[entries] if layout.next_costs.size else layout.costs[s, a]
        return columns, ends, states.sign * costs + states.pair(s, a).rate * states.u[columns]

    def more(self, states: States, s: int, acts: list[int]) -> dict[str, Any]:
        """The intervals of a state."""
        found: dict[str, Any] = {"r": 0, "lo": [], "hi": []}
        for a in acts:
            columns, ends, _ = self._box(states, s, a)
            listed = states.pair(s, a).columns
            for name, values in zip(("lo", "hi"), ends, strict=True):
                found[name].append(written(columns, values, listed))
        return found

    def row(self, states: States, s: int, a: int, p: float) -> Row:
        """Stakes, and the ends of the intervals for rows."""
        columns, ends, stakes = self._box(states, s, a)
        return Row(below_top(1.0, stakes), ends, columns, columns)

    def above(self, ball: Any, rows: list[Row], weights: Array, radius: float) -> Side:
        """Thresholds."""
        return {"eta": [responses.pivot(row.g, row.y[0], row.y[1]) for row in rows]}

    def below(self, states: States, s: int, acts: list[int]) -> Side:
        """Her rows; no kernel has one of its own."""
        return {"y": [states.rows(s, a)[0] for a in acts]}


INTERVALS = Intervals()
