"""What was seen, how often, and what was assumed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from drmdp.estimate import Settings
    from drmdp.estimate.count import Steps
    from drmdp.estimate.rules import Filled
    from drmdp.estimate.sample import Samples
    from drmdp.estimate.table import Table


@dataclass(frozen=True)
class Summary:
    """Numbers about a table and the kernels made of it."""

    table: str
    columns: dict[str, str]
    transitions: int
    ends: int  # rows that only end an episode
    states: int
    actions: int
    pairs: int  # that are not terminal
    pairs_seen: int
    pairs_seen_once: int
    least: int  # transitions of the seen pair that has fewest
    median: float  # transitions of a seen pair
    by: str
    kernels: list[Any]
    kernel_transitions: list[int] | None  # of each kernel; None for posterior draws
    kernel_pairs: list[int]  # rows of each kernel that come from data
    kernel_assumed: list[int]  # and rows that do not
    costs: str
    assumed: list[str]

    def as_dict(self) -> dict[str, Any]:
        """All fields, as JSON takes them."""
        return asdict(self)


def summarise(table: Table, steps: Steps, samples: Samples, filled: Filled, settings: Settings, kind: str) -> Summary:
    """Count what there is to count."""
    cells = samples.pooled
    S, A = len(cells.states), len(cells.actions)
    often = np.bincount(cells.pair, weights=cells.rows, minlength=S * A).astype(np.int64)
    open_pairs = np.repeat(~filled.terminal, A)
    seen = often[open_pairs & (often > 0)]
    used = filled.available.ravel()
    assumed = (filled.partial | filled.unvisited) & used
    columns = {role: name for role, name in vars(table.columns).items() if name is not None}
    return Summary(
        table=table.name,
        columns=columns,
        transitions=int(cells.rows.sum()),
        ends=steps.n_ends,
        states=S,
        actions=A,
        pairs=int(open_pairs.sum()),
        pairs_seen=int(seen.size),
        pairs_seen_once=int((seen == 1).sum()),
        least=int(seen.min(initial=np.iinfo(np.int64).max)) if seen.size else 0,
        median=float(np.median(seen)) if seen.size else 0.0,
        by=settings.by or "none",
        kernels=list(samples.labels),
        kernel_transitions=None if samples.rows is None else samples.rows.tolist(),
        kernel_pairs=(filled.seen & used).sum(axis=1).tolist(),
        kernel_assumed=assumed.sum(axis=1).tolist(),
        costs=_costs(table, settings, kind),
        assumed=_assumed(filled, settings),
    )


def _costs(table: Table, settings: Settings, kind: str) -> str:
    column = getattr(table.columns, kind)
    if column is not None:
        return f"{kind}s: mean of {column!r} by state and action"
    given = settings.costs if kind == "cost" else settings.rewards
    return f"{kind}s: {given}" if isinstance(given, str) else f"{kind}s: given"


def _assumed(filled: Filled, settings: Settings) -> list[str]:
    found = []
    if settings.by == "posterior":
        where = "seen after the pair" if settings.prior_on == "seen" else "there is"
        found.append(f"prior: {settings.prior:g} pseudo-counts for each next state {where}")
    never, part = int(filled.unvisited.sum()), int(filled.partial.sum())
    if never:
        found.append(f"{never:,} pair{' was' if never == 1 else 's were'} never seen: {settings.unvisited}")
    if part:
        rows = "row of a kernel lacks" if part == 1 else "rows of kernels lack"
        found.append(f"{part:,} {rows} data that others have: {settings.partial}")
    if filled.terminal.any():
        found.append(f"{int(filled.terminal.sum())} terminal states, where the process ends")
    return found
