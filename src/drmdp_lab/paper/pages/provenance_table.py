"""Where the rows come from, and how quiet the machine was: one table."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import numpy as np

from drmdp_lab.paper.clocks import scatter
from drmdp_lab.paper.pages.markdown import is_busy, markdown
from drmdp_lab.paper.pages.select import reached, short, where
from drmdp_lab.paper.quiet import BUSY
from drmdp_lab.paper.records import SCATTERED, Row, scattered


def table(rows: list[Row]) -> str:
    """One line for each thing to know about the pass."""
    lines: list[tuple[str, Any]] = [
        (name, value)
        for name in ("machine", "versions", "commit")
        for value in sorted({str(row[name]) for row in rows if row.get(name)})
    ]
    measured = [row for row in rows if not row.get("shared")]
    lines += [*_sessions(rows), *_load(measured)]
    cells = len({row["key"].rpartition("|")[0] for row in rows})
    shared = len(rows) - len(measured)
    also = f", {shared:,} of them of runs that another study has too" if shared else ""
    lines.append(("rows", f"{len(rows):,}{also}, in {cells:,} cells (one for all seeds)"))
    statuses = sorted({row["status"] for row in rows})
    counts = (f"{status} {len(where(rows, status=status)):,}" for status in statuses)
    lines += [("status", ", ".join(counts)), *_repeats(measured)]
    total = sum(
        row["seconds"] * (row.get("repeats") or 1)
        for row in measured
        if row.get("seconds") and row["status"] != "extrapolated"
    )
    lines.append(("time in timed calls", f"{total / 60:.1f} minutes"))
    return markdown(("", "this pass"), lines)


def _sessions(rows: list[Row]) -> list[tuple[str, str]]:
    """A line for each time the pass was started."""
    visits = [visit for row in rows if not row.get("shared") for visit in row.get("visits", ())]
    ends: dict[str, list[float]] = {}
    for visit in visits:
        began = datetime.fromisoformat(visit["started"]).timestamp()
        ends.setdefault(visit["session"], []).extend((began, began + visit["took"]))
    hours = {name: (max(found) - min(found)) / 3600 for name, found in ends.items()}
    lines = [
        (f"session of {name.replace('T', ', ')} UTC", f"{hours[name]:.2f} hours")
        for name in sorted(hours)
    ]
    days = sorted({str(row["date"]) for row in rows if row.get("date")})
    return [*lines, *((("date", ", ".join(days)),) if days else ())]


def _load(rows: list[Row]) -> list[tuple[str, str]]:
    """CPU that other processes took beside the runs, and the core of this one."""
    loads = [row["load"] for row in rows if row.get("load") is not None]
    cores = sorted({row["core"] for row in rows if row.get("core") is not None})
    lines = [("pinned to core", ", ".join(map(str, cores)))] if cores else []
    if not loads:
        return lines
    busy = sum(map(is_busy, rows))
    text = f"{_ends(loads)} cores; {busy:,} rows above {BUSY:g}"
    return [*lines, ("load of other processes", text)]


def _repeats(rows: list[Row]) -> list[tuple[str, str]]:
    """How often calls were repeated, and how far the repeats of a run lie apart."""
    own = [row for row in rows if row.get("cpu_times")]
    spreads = [row["scatter"] for row in own if row["scatter"] is not None]
    lines = []
    if spreads:
        repeats = [row["repeats"] for row in own if row["repeats"] > 1]
        single = len(own) - len(repeats)
        text = f"{np.median(repeats):g} in the median ({min(repeats)} – {max(repeats)}) of {len(repeats):,} runs; {single:,} longer ones were made once"
        again = sum(bool(row.get("again")) for row in own)
        loose = sum(map(scattered, own))
        lines += [
            ("repeats", text),
            ("scatter of repeats (interquartile range / median)", _ends(spreads)),
            (
                f"measured again for a scatter above {SCATTERED:g}",
                f"{again:,} rows; {loose:,} stayed so and are shown with their spread",
            ),
        ]
    between = list(_between_seeds(rows))
    if between:
        lines.append(("scatter of the time of a step between seeds of a cell", _ends(between)))
    return lines


def _between_seeds(rows: list[Row]) -> Iterable[float]:
    """Of Algorithm 1, whose steps on instances of one size should take the same time."""
    cells: dict[str, list[float]] = {}
    for row in reached(where(rows, task="solve", method="algorithm-1")):
        if row.get("n_iters") and row.get("cpu_seconds"):
            name = row["key"].rpartition("|")[0]
            cells.setdefault(name, []).append(row["cpu_seconds"] / row["n_iters"])
    for found in cells.values():
        apart = scatter(found)
        if apart is not None:
            yield apart


def _ends(values: list[float]) -> str:
    return f"median {short(float(np.median(values)), 2)}, worst {short(max(values), 2)}"
