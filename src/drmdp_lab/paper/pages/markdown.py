"""How numbers of rows are written in tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from drmdp_lab.paper.pages.select import short
from drmdp_lab.paper.quiet import BUSY
from drmdp_lab.paper.records import Row, scattered


def markdown(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; "" without a body."""
    lines = [" | ".join(cell.replace("|", "∣") for cell in map(str, row)) for row in body]
    if not lines:
        return ""
    return (
        "\n".join(
            f"| {line} |" for line in (" | ".join(head), " | ".join("---" for _ in head), *lines)
        )
        + "\n"
    )


def seconds(value: float) -> str:
    """Seconds in a unit that suits them."""
    for unit, size in (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if value < 1000 * size or unit == "s":
            return f"{value / size:.3g} {unit}"
    raise AssertionError


def spread(values: list[float], digits: int = 3) -> str:
    """Median and extremes."""
    low, middle, high = min(values), float(np.median(values)), max(values)
    return f"{short(middle, digits)} ({short(low, digits)} – {short(high, digits)})"


def cell(rows: list[Row]) -> str:
    """Median time, with what happened; with its spread where repeats scattered in both measurements,
    and a mark where other processes took more than their share.
    """
    own = [row for row in rows if row.get("cpu_seconds") is not None]
    if not own:
        return "missing" if any(row["status"] == "missing" for row in rows) else "–"
    text = seconds(float(np.median([row["cpu_seconds"] for row in own])))
    loose = [time for row in own if scattered(row) for time in row["cpu_times"]]
    if loose:
        text += f" ({seconds(min(loose))} – {seconds(max(loose))})"
    if any(is_busy(row) for row in own):
        text += "‡"
    statuses = {row["status"] for row in own}
    if "extrapolated" in statuses:
        return text + "*"
    return (
        f"> {text}"
        if "time_limit" in statuses
        else f"{text} (diverged)"
        if "diverged" in statuses
        else text
    )


def is_busy(row: Row) -> bool:
    """Whether other processes kept the machine busy beside a row."""
    return (row.get("load") or 0.0) > BUSY


def size(rows: list[Row]) -> str:
    """Sizes of an instance."""
    return f"{rows[0]['n_states']}/{rows[0]['n_actions']}/{rows[0]['n_kernels']}"
