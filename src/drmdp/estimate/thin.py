"""Pairs on which little rests: seen a few times, or always followed by the same state.

A row with one next state is a point mass. Where mass moves among observed next states only, nature cannot change it, whatever the radius: the fewer the data,
the safer an action looks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.counts import FEW
from drmdp.core.text import count, some
from drmdp.estimate.count import Cells
from drmdp.estimate.findings import LIMIT, Finding, Place


def pair_rows(cells: Cells) -> Array:
    """How much was seen of each pair, (S·A,)."""
    return np.bincount(cells.pair, cells.count, len(cells.states) * len(cells.actions)).astype(np.float64)


def thin_finding(cells: Cells, open_pairs: BoolArray) -> list[Finding]:
    """What `check_log` says of thin pairs among those that are open, (S·A,)."""
    seen = pair_rows(cells)
    there = cells.count > 0
    single = np.bincount(cells.pair[there], minlength=seen.size) == 1
    few, fixed = (np.flatnonzero(open_pairs & own) for own in ((seen > 0) & (seen < FEW), single))
    pairs = np.union1d(few, fixed)
    if not pairs.size:
        return []
    pairs = pairs[np.argsort(seen[pairs], kind="stable")]
    led = dict(zip(cells.pair[there].tolist(), cells.column[there].tolist(), strict=True))
    places = tuple(_place(cells, k, seen[k], led[k] if single[k] else None) for k in pairs[:LIMIT].tolist())
    cure = f"look at them; `min_count={FEW}` makes pairs seen fewer times unavailable"
    if fixed.size:
        own = _joined([f"{n:g}" for n in np.sort(seen[fixed]).tolist()])
        rows = "this row" if fixed.size == 1 else f"these {fixed.size} rows"
        noun = "observation" if own == "1" else "observations"
        cure = f"nature cannot change {rows} within observed next states ({own} {noun}): {cure}"
    return [Finding("thin", False, int(pairs.size), "pairs", places, cure)]


def _joined(texts: list[str]) -> str:
    """List "1, 2 and 12"; what there is beyond `LIMIT` is left out."""
    return some(texts, LIMIT) if len(texts) > LIMIT else " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _place(cells: Cells, pair: int, n: float, to: int | None) -> Place:
    A, led = len(cells.actions), ""
    if to is not None:
        led = f", and {'' if n == 1 else 'always '}led to {cells.states[to]!r}"
    return Place(f"state {cells.states[pair // A]!r}, action {cells.actions[pair % A]!r}: seen {times(n)}{led}")


def thin_notes(cells: Cells, fixed: BoolArray, available: BoolArray) -> list[str]:
    """The same as notes of a model; `fixed` rows have one next state in all kernels, (S·A,)."""
    seen, found = pair_rows(cells), []
    cannot = "always led to the same state, and nature cannot change that within observed next states"
    for own, what in ((fixed, cannot), (~fixed & (seen < FEW), f"seen fewer than {FEW} times")):
        pairs = np.flatnonzero(available & own & (seen > 0))
        if pairs.size:
            was = "" if what == cannot else "was " if pairs.size == 1 else "were "
            found.append(f"{count(pairs.size, 'pair')} {was}{what}: {named(cells, pairs)}")
    return found


def named(cells: Cells, pairs: Any) -> str:
    """Pairs with how often they were seen, the rarest first."""
    seen, A = pair_rows(cells), len(cells.actions)
    order = pairs[np.argsort(seen[pairs], kind="stable")].tolist()
    return some([f"{cells.actions[k % A]} when {cells.states[k // A]} ({times(seen[k])})" for k in order], LIMIT)


def times(n: float) -> str:
    """How often, in words."""
    return "once" if n == 1 else f"{n:g} times"
