"""From the counts of N kernels to their rows, with an explicit rule wherever a row has no data.

A pair (state, action) that the table never has is *unvisited*; one that it has, but not in kernel
i, is *partial*.

============= ======================================================================================
rule          the row of such a pair
============= ======================================================================================
refuse        an error that names it
unavailable   none: the action is not available in the state, in any kernel
prior         uniform over all states; a Dirichlet draw if kernels are posterior draws
self-loop     the state is not left
like:STATE    that of the action in STATE (unvisited pairs only, see `drmdp.estimation.log.shared_rows`)
pooled        what all the data together say (partial pairs only)
============= ======================================================================================

With n_i(s, a) rows of a pair in kernel i, n in all and m = max_j n_j, `weights="counts"` gives
kernel i the row

    λ_i ŷ_i + (1 − λ_i) ŷ,   λ_i = n_i/m,

ŷ being the row of all data together: the less a kernel has seen of a pair, the nearer it is to what
all have seen. As Σ_i n_i ŷ_i = n ŷ, the sum Σ_i λ_i (ŷ_i − ŷ) is 0, so that the mean of the N rows
is ŷ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.storage import Kernels, from_parts
from drmdp.core.validation import Names
from drmdp.errors import InputError, meant, shown
from drmdp.estimation.count import CountCells, Row, Samples, spread_over
from drmdp.estimation.log.findings import LIMIT, Finding, Place
from drmdp.io.files import memory_limit
from drmdp.ui.text import count

if TYPE_CHECKING:
    from drmdp.estimation.settings import Settings

UNVISITED = ("refuse", "unavailable", "prior", "self-loop", "like:STATE")
PARTIAL = ("refuse", "unavailable", "prior", "self-loop", "pooled")
DENSE_ENTRIES = 50_000_000
"""Models with more probabilities than this, zeros included, are sparse."""


def check_rule(name: str, rule: Any, known: tuple[str, ...]) -> None:
    """Refuse an unknown rule."""
    if rule not in known:
        raise InputError(f"`{name}` is one of {', '.join(known)}; got {shown(rule)}")


@dataclass(frozen=True)
class Coverage:
    """Which pairs have data."""

    observed: BoolArray  # (N, S·A)
    never: BoolArray  # (S·A,)
    part: BoolArray  # (N, S·A): observed, but not in this kernel
    terminal: BoolArray  # (S,)
    rare: BoolArray  # (S·A,): seen less often than asked for
    available: BoolArray  # (S·A,): what the rules leave open


def coverage_of(samples: Samples, end: BoolArray, settings: Settings) -> Coverage:
    """Find the pairs without data, or with too little, and those that the rules leave open; those
    of terminal states need no data.
    """
    N, (S, A) = len(samples.labels), samples.pooled.shape
    if memory_limit() // 16 < N * S * A:
        raise InputError(f"{N} kernels × {S} states × {A} actions do not fit in memory")
    open_pair = np.repeat(~end, A)
    check_ends(samples, end)
    observed = _pair_totals(samples, S * A) > 0
    observed &= open_pair
    pooled = samples.pooled.by_pair(samples.pooled.count)
    rare = (pooled < settings.min_count) & open_pair
    needed = open_pair & ~rare
    never, part = (pooled == 0) & needed, (pooled > 0) & needed & ~observed
    available = needed.copy()
    if settings.unvisited == "unavailable":
        available &= ~never
    if settings.partial_rule == "unavailable":
        available &= ~part.any(axis=0)
    return Coverage(observed, never, part, end, rare, available)


def fill(samples: Samples, coverage: Coverage, settings: Settings, rng: Any) -> Kernels:
    """Turn counts into rows of kernels."""
    cells, unvisited, partial = samples.pooled, settings.unvisited, settings.partial_rule
    N, (S, A), available = len(samples.labels), cells.shape, coverage.available
    prior = settings.pseudo if settings.by == "posterior" else None
    parts, to_all = [], settings.weights == "counts"
    most = _pair_totals(samples, S * A).max(axis=0) if to_all else np.zeros(0)
    for i, part in enumerate(samples.parts):
        rows = [_shrunk(cells, part, most, available) if to_all else _shares(*part, available, S)]
        rows.append(_rows(coverage.never & available, unvisited, cells, prior, rng))
        rows.append(_rows(coverage.part[i] & available, partial, cells, prior, rng))
        parts.append(_merged([row for row in rows if row[0].size] or rows[:1]))
    return from_parts(parts, S, S, A, N * S * A * S > DENSE_ENTRIES)


def rule_findings(samples: Samples, coverage: Coverage, settings: Settings) -> list[Finding]:
    """Pairs without data and without a rule, and states that the rules leave without an action."""
    states, where, odd = samples.pooled.states, samples.pooled.quoted, []
    unvisited = settings.unvisited
    like = unvisited.removeprefix("like:") if unvisited.startswith("like:") else None
    if (unvisited == "refuse" or like) and coverage.never.any():
        nor = "" if like is None else f", nor in state {like!r}"
        pairs = np.flatnonzero(coverage.never)[:LIMIT]
        places = tuple(Place(f"{where(pair)} was never seen{nor}") for pair in pairs)
        cure = f"choose a rule for them with `unvisited`: {', '.join(UNVISITED[1:])}"
        odd.append(Finding("unvisited", True, int(coverage.never.sum()), "pairs", places, cure))
    nobody = np.atleast_1d(coverage.part.all(axis=0))
    if settings.partial_rule == "refuse" and coverage.part.any():
        places = ()
        for i, pair in np.argwhere(coverage.part)[:LIMIT]:
            what = f"in kernel {samples.labels[i]!r} but in others"
            what = "here, but at other stages" if nobody[pair] else what
            places += (Place(f"{where(pair)} was never seen {what}"),)
        cure = f"choose a rule for them with `partial`: {', '.join(PARTIAL[1:])}"
        n = int(coverage.part.sum())
        odd.append(Finding("partial", True, n, "rows of kernels", places, cure))
    stuck = ~coverage.available.reshape(len(states), -1).any(axis=1) & ~coverage.terminal
    if stuck.any():
        rare: BoolArray = np.asarray(coverage.rare.reshape(len(states), -1).any(axis=1))
        chosen = np.flatnonzero(stuck)[:LIMIT].tolist()
        enough = {s: " that was seen often enough" if rare[s] else "" for s in chosen}
        texts = (f"state {states[s]!r} has no available action{enough[s]}" for s in chosen)
        places = tuple(map(Place, texts))
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
    allowed = available[pair]
    return (keys, count) if allowed.all() else (keys[allowed], count[allowed])


def _pair_totals(samples: Samples, n_pairs: int) -> Array:
    """Rows of each pair in each kernel, (N, S·A)."""
    S = len(samples.pooled.states)
    return np.stack([_totals(keys // S, count, n_pairs) for keys, count in samples.parts])


def _shrunk(cells: CountCells, part: Row, most: Array, available: BoolArray) -> Row:
    """Rows c_i/m + (1 − n_i/m) c/n of a kernel, on all that was seen in any kernel."""
    observed = available[cells.pair] & (cells.count > 0)
    keys, pair, count = cells.keys[observed], cells.pair[observed], cells.count[observed]
    mine, number = part
    here = np.isin(mine, keys, assume_unique=True)
    counts = spread_over(keys, mine[here], number[here])
    total, seen = _totals(pair, count, most.size), _totals(pair, counts, most.size)
    p = (counts + (most - seen)[pair] * (count / total[pair])) / most[pair]
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
    s = pooled.pair // len(pooled.actions)
    leaves = end[s] & (pooled.column != s) & (pooled.count > 0)
    for k in np.flatnonzero(leaves)[:1]:
        state, to = pooled.states[s[k]], pooled.states[pooled.column[k]]
        n = count(int(pooled.rows[k]), "transition")
        cure = "leave these out, or take the state from `terminal`"
        raise InputError(f"terminal: state {state!r} is left for {to!r} in {n}; {cure}")


def _rows(where: BoolArray, rule: str, cells: CountCells, prior: float | None, rng: Any) -> Row:
    """Rows of the pairs marked in `where`, (S·A,), by a rule."""
    pair = np.flatnonzero(where)
    S, A = len(cells.states), len(cells.actions)
    if rule == "self-loop":
        return pair * S + pair // A, np.ones(pair.size)
    if rule == "pooled":
        chosen = where[cells.pair] & (cells.count > 0)
        total = _totals(cells.pair, cells.count, where.size)
        return cells.keys[chosen], cells.count[chosen] / total[cells.pair[chosen]]
    if rule != "prior" or not pair.size:
        return pair[:0], np.zeros(0)
    if pair.size * S > memory_limit() // 64:
        raise InputError(f"rule 'prior': {pair.size} rows over {S} states do not fit in memory")
    p = np.full((pair.size, S), 1 / S)
    if prior is not None:
        p = rng.dirichlet(np.full(S, prior), size=pair.size)
    positive = p.ravel() > 0
    return (pair[:, None] * S + np.arange(S)).ravel()[positive], p.ravel()[positive]


def names_by_text(names: Names, texts: Any, kind: str, typed: bool = True) -> Any:
    """Names from what was typed: "3" is the integer 3 if there is no "3"; others as they are."""
    if not (typed and texts):
        return texts
    known = {str(name): name for name in names}
    known |= {name: name for name in names if isinstance(name, str)}
    for text in (text for text in texts if text not in known):
        raise InputError(f"unknown {kind} {text!r}{meant(text, known)}")
    return [known[text] for text in texts]
