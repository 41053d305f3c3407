"""From the counts of N kernels to their rows, with an explicit rule wherever a row has no data.

A pair (state, action) that the table never has is *unvisited*; one that it has, but not in kernel i, is *partial*.

============= =====================================================================================================
rule          the row of such a pair
============= =====================================================================================================
refuse        an error that names it
unavailable   none: the action is not available in the state, in any kernel
prior         uniform over all states; a Dirichlet draw if kernels are posterior draws
self-loop     the state is not left
like:STATE    that of the action in STATE (unvisited pairs only, see `drmdp.estimate.alike`)
pooled        what all the data together say (partial pairs only)
============= =====================================================================================================

With n_i(s, a) rows of a pair in kernel i, n in all and m = max_j n_j, `weights="counts"` gives kernel i the row

    λ_i ŷ_i + (1 − λ_i) ŷ,   λ_i = n_i/m,

ŷ being the row of all data together: the less a kernel has seen of a pair, the nearer it is to what all have seen. As Σ_i n_i ŷ_i = n ŷ, the sum
Σ_i λ_i (ŷ_i − ŷ) is 0, so that the mean of the N rows is ŷ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.files import memory_limit
from drmdp.core.storage import Kernels, from_parts
from drmdp.core.validation import Names, state_flags
from drmdp.errors import InputError, shown
from drmdp.estimate.count import Cells, Samples
from drmdp.estimate.findings import LIMIT, Finding, Place, refuse

UNVISITED = ("refuse", "unavailable", "prior", "self-loop", "like:STATE")
PARTIAL = ("refuse", "unavailable", "prior", "self-loop", "pooled")
Row = tuple[IntArray, Array]  # keys and probabilities
DENSE_ENTRIES = 50_000_000
"""Models with more probabilities than this, zeros included, are sparse."""


@dataclass(frozen=True)
class Filled:
    """Kernels, and what was assumed to make them."""

    kernels: Kernels
    available: BoolArray  # (S, A)
    terminal: BoolArray  # (S,)
    seen: BoolArray  # (N, S·A): rows from data
    unvisited: BoolArray  # (S·A,)
    partial: BoolArray  # (N, S·A)


def check_rule(name: str, rule: Any, known: tuple[str, ...]) -> None:
    """Refuse an unknown rule."""
    if rule not in known:
        raise InputError(f"`{name}` is one of {', '.join(known)}; got {shown(rule)}")


@dataclass(frozen=True)
class Visited:
    """Which pairs have data."""

    seen: BoolArray  # (N, S·A)
    never: BoolArray  # (S·A,)
    part: BoolArray  # (N, S·A): seen, but not in this kernel
    terminal: BoolArray  # (S,)
    rare: BoolArray  # (S·A,): seen less often than asked for


def visited(samples: Samples, terminal: Any, min_count: float) -> Visited:
    """Find the pairs without data, or with too little; those of terminal states need none."""
    states, actions = samples.pooled.states, samples.pooled.actions
    N, S, A = len(samples.labels), len(states), len(actions)
    if memory_limit() // 16 < N * S * A:
        raise InputError(f"{N} kernels × {S} states × {A} actions do not fit in memory")
    end = state_flags("terminal", terminal, states)
    open_pair = np.repeat(~end, A)
    check_ends(samples, end)
    seen = np.stack(
        [_totals(keys // S, count, S * A) > 0 for keys, count in zip(samples.keys, samples.counts, strict=True)]
    )
    seen &= open_pair
    pooled = _totals(samples.pooled.pair, samples.pooled.count, S * A)
    rare = (pooled < min_count) & open_pair
    return Visited(seen, (pooled == 0) & open_pair & ~rare, (pooled > 0) & open_pair & ~seen & ~rare, end, rare)


def fill(
    name: str,
    samples: Samples,
    found: Visited,
    unvisited: str,
    partial: str,
    prior: float | None,
    rng: Any,
    shrunk: bool,
) -> Filled:
    """Turn counts into rows; `prior` is the parameter of posterior draws, None if there are none; `shrunk` rows have the mean of all data together."""
    refuse(name, rule_findings(samples, found, unvisited, partial))
    N, S, A = len(samples.labels), len(samples.pooled.states), len(samples.pooled.actions)
    never, part = found.never, found.part
    available = available_pairs(found, unvisited, partial)
    parts = []
    most = _most(samples, S * A) if shrunk else None
    for i in range(N):
        if most is not None:
            own = _shrunk(samples, i, most, available)
        else:
            own = _shares(samples.keys[i], samples.counts[i], available, S)
        rows = [own]
        rows.append(_rows(never & available, unvisited, samples.pooled, prior, rng))
        rows.append(_rows(part[i] & available, partial, samples.pooled, prior, rng))
        parts.append(_merged([row for row in rows if row[0].size] or rows[:1]))
    kernels = from_parts(parts, S, S, A, N * S * A * S > DENSE_ENTRIES)
    return Filled(kernels, available.reshape(S, A), found.terminal, found.seen, never, part)


def available_pairs(found: Visited, unvisited: str, partial: str) -> BoolArray:
    """Pairs that the rules leave open, (S·A,)."""
    A = found.never.size // found.terminal.size
    available = np.repeat(~found.terminal, A) & ~found.rare
    if unvisited == "unavailable":
        available &= ~found.never
    if partial == "unavailable":
        available &= ~found.part.any(axis=0)
    return available


def rule_findings(samples: Samples, found: Visited, unvisited: str, partial: str) -> list[Finding]:
    """Pairs without data and without a rule, and states that the rules leave without an action."""
    states, actions = samples.pooled.states, samples.pooled.actions
    A = len(actions)

    def where(pair: int) -> str:
        return f"state {states[pair // A]!r}, action {actions[pair % A]!r}"

    odd = []
    like = unvisited.removeprefix("like:") if unvisited.startswith("like:") else None
    if (unvisited == "refuse" or like) and found.never.any():
        nor = "" if like is None else f", nor in state {like!r}"
        places = tuple(Place(f"{where(int(pair))} was never seen{nor}") for pair in np.flatnonzero(found.never)[:LIMIT])
        cure = f"choose a rule for them with `unvisited`: {', '.join(UNVISITED[1:])}"
        odd.append(Finding("unvisited", True, int(found.never.sum()), "pairs", places, cure))
    nobody = np.atleast_1d(found.part.all(axis=0))
    if partial == "refuse" and found.part.any():
        places = tuple(
            Place(
                f"{where(int(pair))} was never seen {'here, but at other stages' if nobody[pair] else f'in kernel {samples.labels[i]!r} but in others'}"
            )
            for i, pair in np.argwhere(found.part)[:LIMIT]
        )
        cure = f"choose a rule for them with `partial`: {', '.join(PARTIAL[1:])}"
        odd.append(Finding("partial", True, int(found.part.sum()), "rows of kernels", places, cure))
    stuck = ~available_pairs(found, unvisited, partial).reshape(-1, A).any(axis=1) & ~found.terminal
    if stuck.any():
        rare: BoolArray = np.asarray(found.rare.reshape(-1, A).any(axis=1))
        what = {s: " that was seen often enough" if rare[s] else "" for s in np.flatnonzero(stuck)[:LIMIT].tolist()}
        places = tuple(Place(f"state {states[s]!r} has no available action{text}") for s, text in what.items())
        cure = "name them with `terminal`, or choose another rule than 'unavailable'"
        if (rare & stuck).any():
            cure = f"give a smaller `min_count`, `rename` what is a slip, or {cure}"
        odd.append(Finding("stuck", True, int(stuck.sum()), "states", places, cure))
    return odd


def _totals(pair: Any, count: Array, size: int) -> Array:
    return np.asarray(np.bincount(pair, weights=count, minlength=size), dtype=np.float64)


def _shares(keys: IntArray, count: Array, available: BoolArray, S: int) -> Row:
    """Rows from data; overwrites the counts."""
    pair = keys // S
    count /= _totals(pair, count, available.size)[pair]
    own = available[pair]
    return (keys, count) if own.all() else (keys[own], count[own])


def _most(samples: Samples, n_pairs: int) -> Array:
    """Rows of each pair in the kernel that has most, (S·A,)."""
    S = len(samples.pooled.states)
    own = [_totals(keys // S, count, n_pairs) for keys, count in zip(samples.keys, samples.counts, strict=True)]
    return np.asarray(np.max(own, axis=0), dtype=np.float64)


def _shrunk(samples: Samples, i: int, most: Array, available: BoolArray) -> Row:
    """Rows c_i/m + (1 − n_i/m) c/n of kernel i, on all that was seen in any kernel."""
    cells = samples.pooled
    seen = available[cells.pair] & (cells.count > 0)
    keys, pair, count = cells.keys[seen], cells.pair[seen], cells.count[seen]
    own = np.zeros(keys.size)
    here = np.isin(samples.keys[i], keys, assume_unique=True)
    own[np.searchsorted(keys, samples.keys[i][here])] = samples.counts[i][here]
    total, mine = _totals(pair, count, most.size), _totals(pair, own, most.size)
    p = (own + (most - mine)[pair] * (count / total[pair])) / most[pair]
    return keys[p > 0], p[p > 0]


def _merged(rows: list[Row]) -> Row:
    if len(rows) == 1:
        return rows[0]
    keys, p = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.argsort(keys)
    return keys[order], p[order]


def check_ends(samples: Samples, end: BoolArray) -> None:
    """A terminal state may be logged as staying, not as leaving."""
    pooled = samples.pooled
    A = len(pooled.actions)
    s = pooled.pair // A
    left = end[s] & (pooled.column != s) & (pooled.count > 0)
    if left.any():
        k = int(np.argmax(left))
        raise InputError(
            f"terminal: state {pooled.states[s[k]]!r} is left for {pooled.states[pooled.column[k]]!r} "
            f"in {int(pooled.rows[k])} transitions"
        )


def _rows(where: BoolArray, rule: str, cells: Cells, prior: float | None, rng: Any) -> Row:
    """Rows of the pairs marked in `where`, (S·A,), by a rule."""
    pair = np.flatnonzero(where)
    S, A = len(cells.states), len(cells.actions)
    if rule == "self-loop":
        return pair * S + pair // A, np.ones(pair.size)
    if rule == "pooled":
        own = where[cells.pair] & (cells.count > 0)
        total = _totals(cells.pair, cells.count, where.size)
        return cells.keys[own], cells.count[own] / total[cells.pair[own]]
    if rule != "prior" or not pair.size:
        return pair[:0], np.zeros(0)
    if pair.size * S > memory_limit() // 64:
        raise InputError(f"rule 'prior': {pair.size} rows over {S} states do not fit in memory")
    p = np.full((pair.size, S), 1 / S)
    if prior is not None:
        p = rng.dirichlet(np.full(S, prior), size=pair.size)
    kept = p.ravel() > 0
    return (pair[:, None] * S + np.arange(S)).ravel()[kept], p.ravel()[kept]


def names_by_text(names: Names, texts: Any, kind: str) -> list[Any]:
    """Names from what was typed: "3" is the integer 3 if there is no "3"."""
    known = {**{str(name): name for name in names}, **{name: name for name in names if isinstance(name, str)}}
    for text in texts:
        if text not in known:
            raise InputError(f"unknown {kind} {text!r}")
    return [known[text] for text in texts]
