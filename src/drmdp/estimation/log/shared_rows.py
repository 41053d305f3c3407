"""Rows that pairs share, or are drawn to.

* *One row for an action* (`same_row`): its transitions are counted together, whatever the state,
  and every state that is not terminal has the row. As P = 1rᵀ gives P^k = P, rows several steps
  apart count as those of one step.
* *Like another state* (`unvisited="like:STATE"`): a pair that was never seen has the row of the
  same action in that state, in every kernel.
* *Pooled prior*: the R rows of a state, one for each action seen there, with counts c_i over the K
  next states seen from it, are draws from Dirichlet(w·m). A row of n counts holds about w ln(1 +
  n/w) independent draws of m (a Chinese restaurant), and so m ~ Dirichlet(1/K + Σ_i e_i), e_i = c_i
  · min(1, w ln(1 + n_i/w)/n_i). With m from the same rows the likelihood of w overfits: w has the
  leave-one-out weights ∏_i DM(c_i; w m̄_{−i}), m̄_{−i} the mean of m without row i, on a grid. A
  draw takes w, then m, then the row from Dirichlet(c_i + w m); an estimate is the mean of the row
  at the likeliest w and the mean of m. Fewer than `GROUP` rows do not tell w: they have
  Dirichlet(c_i + 1/K).

A pair without a row of its own has the mean cost of the rows that it is given.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.storage import row_entries
from drmdp.core.validation import find, lookup
from drmdp.estimation.count import CountCells, Samples, spread_over, wider
from drmdp.estimation.rules import names_by_text
from drmdp.ui.text import count, first_names

GROUP = 4
"""Rows of a state that tell how alike they are."""
GRID = 2.0 ** np.arange(-3, 13)
"""Weights w of the pooled row."""
LIKE = "like:"


@dataclass(frozen=True)
class Alike:
    """Which pairs have the row of which."""

    source: IntArray  # (S·A,) the pair whose row each has, its own for most
    together: BoolArray  # (S·A,) pairs of actions that have one row
    notes: tuple[str, ...]


def alike(
    cells: CountCells, same_row: Any, unvisited: str, typed: bool, terminal: BoolArray
) -> Alike:
    """Find the pairs that share a row, by the settings `same_row` and `unvisited`."""
    S, A = cells.shape
    rows = cells.by_pair(cells.rows).reshape(S, A).astype(np.int64)
    source, notes = np.arange(S * A).reshape(S, A), list[str]()
    alone = isinstance(same_row, str) or not isinstance(same_row, Collection)
    names = [] if same_row is None else [same_row] if alone else list(same_row)
    names = names_by_text(cells.actions, names, "action in `same_row`", typed)
    chosen = [find(lookup(cells.actions), name, "`same_row`", "action") for name in names]
    for a in chosen:
        counts = np.where(terminal, 0, rows[:, a])
        source[~terminal, a] = np.argmax(counts) * A + a
        seen = count(int(counts.sum()), "row")
        notes.append(f"{cells.actions[a]} has one row, whatever the state: that of its {seen}")
    together = np.zeros((S, A), dtype=bool)
    together[:, chosen] = ~terminal[:, None]
    if unvisited.startswith(LIKE):
        kind = f"state in `unvisited={unvisited!r}`"
        (like,) = names_by_text(cells.states, [unvisited.removeprefix(LIKE)], kind)
        s, total = lookup(cells.states)[like], cells.by_pair(cells.count).reshape(S, A)
        new = (total == 0) & ~terminal[:, None] & ~together & (total[s] > 0)
        source = np.where(new, s * A + np.arange(A), source)
        pairs = [cells.spoken(pair) for pair in np.flatnonzero(new).tolist()]
        was = "pair was" if len(pairs) == 1 else "pairs were"
        what = f"never seen, and taken to lead where its action leads from {cells.states[s]}"
        notes += [f"{len(pairs):,} {was} {what}: {first_names(pairs, 10)}"] if pairs else []
    return Alike(source.ravel(), together.ravel(), tuple(notes))


def gathered(samples: Samples, rows: Alike) -> Samples:
    """Counts of actions that have one row, all of them in the pair that is the source."""
    if not rows.together.any():
        return samples
    cells = samples.pooled
    S, A = cells.shape

    def moved(keys: IntArray) -> IntArray:
        gap, pair, column = cells.parts(keys)
        gap = np.where(rows.together[pair] & (gap > 0), 1, gap)
        return np.asarray((gap * (S * A) + rows.source[pair]) * S + column)

    parts = []
    for old, number in samples.parts:
        keys, at = np.unique(moved(old), return_inverse=True)
        parts.append((keys, np.bincount(at, number).astype(np.float64)))
    pooled = cells.summed(*np.unique(moved(cells.keys), return_inverse=True))
    return replace(samples, pooled=pooled, parts=parts)


def copied(samples: Samples, first: CountCells, rows: Alike) -> Samples:
    """Each pair with the row of its source; `first` are the cells as they were counted."""
    if not rows.notes:
        return samples
    cells = samples.pooled
    S, n = len(cells.states), rows.source.size

    def spread(keys: IntArray, values: Array) -> tuple[IntArray, Array]:
        at, lengths = row_entries(np.searchsorted(keys, np.arange(n + 1) * S), rows.source)
        return np.repeat(np.arange(n), lengths) * S + keys[at] % S, values[at]

    keys, total = spread(cells.keys, cells.count)
    observed = np.zeros(keys.size, dtype=np.int64)
    np.add.at(observed, np.searchsorted(keys, first.pair * S + first.column), first.rows)
    cost = None
    if first.cost is not None:
        means = []
        for of in (first.pair, rows.source[first.pair]):
            number, paid = (np.bincount(of, amount, n) for amount in (first.count, first.cost))
            means.append(np.divide(paid, number, where=number > 0, out=np.full(n, np.nan)))
        mean, usual = means[0], means[1][rows.source]
        cost = np.where(np.isnan(mean), usual, mean)[keys // S] * total
    sums: Any = {"count": total, "rows": observed, "cost": cost}
    pooled = replace(cells, pair=keys // S, column=keys % S, **sums, extra={})
    parts, notes = [spread(*part) for part in samples.parts], (*samples.notes, *rows.notes)
    return replace(samples, pooled=pooled, parts=parts, notes=notes)


# ---------------------------------------------------------------------- pooled prior


def weights(counts: Array) -> tuple[Array, Array]:
    """Leave-one-out weights of the grid, (G,), and the parameters of m for each w, (G, K)."""
    K, n = counts.shape[1], np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
    loglik, parameters = np.zeros(GRID.size), np.zeros((GRID.size, K))
    for k, w in enumerate(GRID):
        effective = counts * np.minimum(1, w * np.log1p(n / w) / n)
        parameters[k] = effective.sum(axis=0) + 1 / K
        others = parameters[k] - effective
        alpha = w * others / others.sum(axis=1, keepdims=True)
        loglik[k] = (gammaln(counts + alpha) - gammaln(alpha)).sum()
        loglik[k] -= gammaln(w + counts.sum(axis=1)).sum() - len(counts) * gammaln(w)
    share = np.exp(loglik - loglik.max())
    return share / share.sum(), parameters


def shrunk(samples: Samples, n: int, rng: Any) -> Samples:
    """Rows with the pooled prior: n draws, or without any the mean of each kernel's rows."""
    cells = samples.pooled
    S, A = len(cells.states), len(cells.actions)
    keys = wider(cells, "state", max(n, 1))
    number = spread_over(keys, cells.keys, cells.count)
    draws = np.zeros((max(n, 1), keys.size))
    used, state = list[float](), keys // (S * A)
    for s in np.unique(state):
        here = np.flatnonzero(state == s)
        K = np.unique(keys[here] % S).size
        counts = number[here].reshape(-1, K)
        if len(counts) < GROUP or K < 2:
            prior = np.full((max(n, 1), 1, K), 1 / K)
        else:
            share, parameters = weights(counts)
            at = rng.choice(GRID.size, n, p=share) if n else np.array([share.argmax()])
            used.append(float(GRID[share.argmax()]))
            mean = rng.standard_gamma(parameters[at]) if n else parameters[at]
            prior = (GRID[at] / mean.sum(axis=1))[:, None, None] * mean[:, None, :]
        rows = counts + prior
        scale = (counts.sum(axis=1) / rows.sum(axis=2))[..., None]
        rows = rng.standard_gamma(rows) if n else rows * scale
        draws[:, here] = np.maximum(rows, np.finfo(float).tiny).reshape(len(rows), -1)
    few = np.unique(state).size - len(used)
    states = count(len(used), "state")
    note = f"prior: rows of {states} are drawn to the pooled row of the state's actions"
    note += f", which weighs as much as {min(used):g} to {max(used):g} rows" if used else ""
    others = f"; {few:,} with fewer than {GROUP} rows, or one next state, have a prior of one row"
    labels = tuple(f"draw {k}" for k in range(n)) or samples.labels
    made = Samples(labels, cells, [(keys, draw) for draw in draws], None if n else samples.rows)
    return replace(made, grouped=samples.grouped, notes=(note + (others if few else ""),))
