"""Proof files: what a stranger needs to check the bounds of a result with `drmdp_check`, which shares no line with this package.

A file is a line of JSON for the problem, one for every sweep (v and the bounds that are claimed), and one for every state: the policy, nature's rows and the
multipliers that show that no kernel does more (`responses`). `docs/proofs.md` describes the format. All values are costs: rewards are negated.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.core.files import check_parent, write_whole
from drmdp.errors import InputError
from drmdp.layout.layout import lay_out
from drmdp.model import Model
from drmdp.proof.responses import Row
from drmdp.sets import AmbiguitySet, Intervals
from drmdp.sets.registry import entry_of, load

FORMAT = "drmdp proof 1"


def write(path: str | os.PathLike[str], solution: Any) -> int:
    """Write the proof of a solution; returns the bytes written."""
    if solution.problem is None or solution.swept is None:
        raise InputError(
            "proof: a solution that was loaded, or that is not of an exact sweep, has no witnesses; solve again"
        )
    model, ball = solution.problem
    if ball.nature != "adversarial":
        raise InputError("proof: cannot be written for a nature that helps yet")
    target = Path(path)
    check_parent(target)
    lines = _lines(model, ball.fitted(model), solution)

    def fill(stream: Any) -> None:
        for line in lines:
            stream.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    write_whole(target, fill)
    return target.stat().st_size


def _lines(model: Model, ball: AmbiguitySet, solution: Any) -> Iterator[dict[str, Any]]:
    sign = -1.0 if model.maximise else 1.0
    bounds = sorted((sign * solution.lower, sign * solution.upper), key=lambda side: float(side.sum()))
    yield {
        "format": FORMAT, "version": __version__, "kind": "optimum", "model": digest(model), "fingerprint": model.fingerprint,
        "set": _witness(ball).told(ball), "support": "all" if isinstance(ball, Intervals) else ball.support, "rectangular": "sa" if ball.by_pair else "s",
    }  # fmt: skip
    yield {"v": solution.swept.tolist(), "lower": bounds[0].tolist(), "upper": bounds[1].tolist()}
    writer = _Writer(model, ball, solution)
    for s in np.flatnonzero(~model.terminal).tolist():
        yield writer.state(s)
    yield {"end": True}


def _witness(ball: AmbiguitySet) -> Any:
    where = entry_of(ball).witness
    if not where:
        raise InputError(f"proof: cannot be written for {ball.short} yet")
    return load(where)


def _below_top(p: float, stakes: Array) -> Array:
    return np.asarray(p * (stakes - stakes.max()))


class _Writer:
    """Writes the lines of states."""

    def __init__(self, model: Model, ball: AmbiguitySet, solution: Any) -> None:
        self.model, self.ball, self.policy = model, ball, solution.policy
        self.u = (
            solution.swept - solution.swept.max()
        )  # a level would cost digits, and only differences of stakes count
        self.witness = _witness(ball)
        self.layout: Any = lay_out(model, ball) if isinstance(ball, Intervals) else None
        self.used = np.flatnonzero(model.weights > 0)
        self.weights = model.weights[self.used] / model.weights[self.used].sum()
        self.radii = np.asarray(ball.radii(model)) if ball.sized else np.zeros(model.n_states)
        if self.witness.mixture:
            self.nature = solution.weights[..., self.used]
        elif self.witness.mean:
            self.nature = [solution.kernel]
        else:
            self.nature = [solution.kernels[int(i)] for i in self.used]

    def state(self, s: int) -> dict[str, Any]:
        """The line of a state."""
        acts = np.flatnonzero(self.model.available[s]).tolist()
        x = self.policy[s] / self.policy[s].sum()
        own = [self._pair(s, a) for a in acts]
        line: dict[str, Any] = {"s": s, "x": self.policy[s].tolist(), "r": np.asarray(self.radii[s]).tolist()}
        if isinstance(self.ball, Intervals):
            line |= {"r": 0, **self._ends(s, acts, own)}
        if self.ball.by_pair:
            sizes = np.broadcast_to(self.radii[s], (self.model.n_actions,))
            line["r"] = [float(sizes[a]) for a in acts]
            line["up"] = [
                self._above(own[k : k + 1], [1.0], line["r"][k]) if x[a] > 0 else {} for k, a in enumerate(acts)
            ]
            line["low"] = [self._below(s, [a], own[k : k + 1]) for k, a in enumerate(acts)]
        else:
            line["up"] = self._above(own, [float(x[a]) for a in acts], float(self.radii[s]))
            line["low"] = self._below(s, acts, own)
        return line

    def _pair(self, s: int, a: int) -> tuple[Array, Array, Array]:
        """Listed next states of a pair, its rows (N, K) and its costs: one, S, or one for each."""
        model, blocks = self.model, self.model.blocks
        k, N = s * model.n_actions + a, model.n_kernels
        lo, hi = int(blocks.indptr[k]), int(blocks.indptr[k + 1])
        rows = np.asarray(blocks.data[N * lo : N * hi], dtype=np.float64).reshape(N, -1)[self.used]
        rows = rows / rows.sum(axis=1, keepdims=True)
        return np.asarray(blocks.indices[lo:hi]), rows, _costs(model, s, a, lo, hi)

    def _ends(self, s: int, acts: list[int], own: list[Any]) -> dict[str, Any]:
        """The intervals of a state; what `_row` needs of them is put with the pairs."""
        layout, A = self.layout, self.model.n_actions
        ends: dict[str, Any] = {"lo": [], "hi": []}
        for k, a in enumerate(acts):
            entries = slice(int(layout.indptr[s * A + a]), int(layout.indptr[s * A + a + 1]))
            columns, r = np.asarray(layout.indices[entries]), layout.radius[s]
            both = np.stack([np.maximum(layout.mean[entries] - r, 0.0), np.minimum(layout.data[entries] + r, 1.0)])
            costs = layout.next_costs[entries] if layout.next_costs.size else layout.costs[s, a]
            own[k] = (*own[k], (columns, both, costs))
            for name, values in zip(ends, both, strict=True):
                row = np.zeros(self.u.size)
                row[columns] = values
                ends[name].append(_listed(row, own[k][0]))
        return ends

    def _above(self, own: list[Any], x: list[float], radius: float) -> dict[str, Any]:
        """What bounds nature from above at a policy; lists by action have nothing for those that are not played."""
        played = [self._row(pair, p) for pair, p in zip(own, x, strict=True) if p > 0]
        one = self.witness.mean
        found: dict[str, Any] = self.witness.above(self.ball, played, np.ones(1) if one else self.weights, radius)
        if self.witness.mixture:
            return found
        places = np.cumsum(np.asarray(x) > 0) - 1
        return {
            name: [value[k] if p > 0 else None for k, p in zip(places, x, strict=True)]
            if isinstance(value, list)
            else value
            for name, value in found.items()
        }

    def _row(self, pair: Any, p: float) -> Row:
        """Stakes below the top, and rows, over all that nature may use."""
        columns, rows, costs = pair[:3]
        if isinstance(self.ball, Intervals):
            columns, rows, costs = pair[3]
            return Row(_below_top(p, costs + self.model.discount * self.u[columns]), rows)
        own = self.weights @ rows if self.witness.mean else rows
        listed = costs if costs.size != self.u.size or costs.size == 1 else costs[columns]
        stakes, y = listed + self.model.discount * self.u[columns], np.atleast_2d(own)
        seen = (rows > 0).any(axis=0)
        if self.ball.support == "observed":
            stakes, y = stakes[seen], y[:, seen]
        else:
            others = np.setdiff1d(np.arange(self.u.size), columns)
            more = (costs if costs.size == 1 else costs[others]) + self.model.discount * self.u[others]
            stakes, y = np.concatenate([stakes, more]), np.pad(y, ((0, 0), (0, others.size)))
        return Row(_below_top(p, stakes), y)

    def _below(self, s: int, acts: list[int], own: list[Any]) -> dict[str, Any]:
        """Nature's answer: rows, or a mixture of the kernels."""
        boxed = isinstance(self.ball, Intervals)
        if self.witness.mixture:
            q = (self.nature[s, acts[0]] if self.nature.ndim == 3 else self.nature[s]).tolist()
            return {"y": [q if self.witness.kind in ("cvar", "any") else [q]]}
        rows = [
            [_listed(_kernel_row(kernel, s, a), pair[0]) for kernel in self.nature]
            for a, pair in zip(acts, own, strict=True)
        ]
        return {"y": [row[0] for row in rows] if boxed else rows}


def _kernel_row(kernel: Any, s: int, a: int) -> Array:
    return np.asarray(kernel[s, a] if isinstance(kernel, np.ndarray) else kernel.rows(s)[a])


def _listed(row: Array, columns: Array) -> list[Any]:
    """Numbers of the listed next states, then [state, number] for others."""
    others = np.setdiff1d(np.flatnonzero(row), columns)
    return [*np.maximum(row[columns], 0.0).tolist(), *([int(t), float(row[t])] for t in others if row[t] > 0)]


def _filled(rows: list[Any], found: list[Any]) -> list[Any]:
    """What was found of the actions that are played, and nothing of the others."""
    own = iter(found)
    return [None if row is None else next(own) for row in rows]


def _costs(model: Model, s: int, a: int, lo: int, hi: int) -> Array:
    """Costs of a pair: one, S, or one for each listed next state."""
    costs = model.costs
    if hasattr(costs, "indptr"):
        return np.asarray(costs.data[lo:hi], dtype=np.float64)
    own = np.asarray(costs[s, a], dtype=np.float64)
    return own if own.ndim else own[None]


def digest(model: Model) -> str:
    """SHA-256 of the numbers of a model, pair by pair, as `drmdp_check` computes it from a file."""
    N, S, A, blocks = model.n_kernels, model.n_states, model.n_actions, model.blocks
    weights = np.asarray(model.weights, dtype="<f8")
    found = hashlib.sha256(struct.pack("<qqqd", N, S, A, model.discount) + weights.tobytes())
    for k in np.flatnonzero(model.available.ravel()).tolist():
        lo, hi = int(blocks.indptr[k]), int(blocks.indptr[k + 1])
        costs = _costs(model, k // A, k % A, lo, hi) + 0.0
        found.update(struct.pack("<qqq", k // A, k % A, hi - lo))
        found.update(np.asarray(blocks.indices[lo:hi], dtype="<i4").tobytes())
        found.update(np.asarray(blocks.data[N * lo : N * hi], dtype="<f8").tobytes())
        found.update(np.asarray(costs, dtype="<f8").tobytes())
    return found.hexdigest()
