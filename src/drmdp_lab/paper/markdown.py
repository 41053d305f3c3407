"""How numbers of rows are written in tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from drmdp_lab.paper.records import Row
from drmdp_lab.paper.select import short


def markdown(head: Sequence[str], body: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; "" without a body."""
    lines = [" | ".join(cell.replace("|", "∣") for cell in map(str, row)) for row in body]
    if not lines:
        return ""
    return "\n".join(f"| {line} |" for line in (" | ".join(head), " | ".join("---" for _ in head), *lines)) + "\n"


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
    """Median time, with what happened."""
    own = [row for row in rows if row.get("cpu_seconds") is not None]
    if not own:
        return "missing" if any(row["status"] == "missing" for row in rows) else "–"
    text = seconds(float(np.median([row["cpu_seconds"] for row in own])))
    statuses = {row["status"] for row in own}
    if "extrapolated" in statuses:
        return text + "*"
    return f"> {text}" if "time_limit" in statuses else f"{text} (diverged)" if "diverged" in statuses else text


def size(rows: list[Row]) -> str:
    """Sizes of an instance."""
    return f"{rows[0]['n_states']}/{rows[0]['n_actions']}/{rows[0]['n_kernels']}"
