"""Rows by what they are about: filters, medians over seeds, growth exponents. Functions of rows,
nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp_lab.paper.blocks import paper_radius
from drmdp_lab.paper.records import REACHED, Row


def where(rows: Iterable[Row], **settings: Any) -> list[Row]:
    """Rows with the given settings; a tuple means any of its members, and radius "paper" the
    paper's own.
    """
    found = []
    for row in rows:
        for name, wanted in settings.items():
            value = row.get(name)
            if name == "radius" and wanted == "paper":
                wanted = paper_radius(row["family"], row["n_actions"])
            if value not in wanted if isinstance(wanted, tuple) else value != wanted:
                break
        else:
            found.append(row)
    return found


def reached(rows: Iterable[Row]) -> list[Row]:
    """Rows of runs that ended by their own rule."""
    return where(rows, status=REACHED)


def timed(rows: Iterable[Row]) -> list[Row]:
    """Rows whose seconds mean the time to the end: measured or extrapolated, not cut off."""
    return where(rows, status=(*REACHED, "extrapolated"))


CUT_OFF = "cut off"


@dataclass(frozen=True)
class Point:
    """The runs of one setting: median, extremes, and how they came about."""

    x: float
    middle: float
    low: float
    high: float
    n: int
    kind: str  # measured, extrapolated, cut off


def points(
    rows: Iterable[Row], x: str | Callable[[Row], float], y: str = "cpu_seconds"
) -> list[Point]:
    """Medians over seeds at each x, in order."""
    at: dict[float, list[Row]] = {}
    for row in rows:
        if row.get(y) is not None:
            at.setdefault(float(row[x] if isinstance(x, str) else x(row)), []).append(row)
    return [_point(place, at[place], y) for place in sorted(at)]


def _point(place: float, rows: list[Row], y: str) -> Point:
    values = np.array([row[y] for row in rows], dtype=float)
    statuses = {row["status"] for row in rows}
    cut = statuses - {*REACHED, "extrapolated"}
    kind = CUT_OFF if cut else "extrapolated" if "extrapolated" in statuses else "measured"
    return Point(
        place, float(np.median(values)), float(values.min()), float(values.max()), len(rows), kind
    )


@dataclass(frozen=True)
class Slope:
    """Slope in a log-log plot with the half width of its 95 % confidence interval (Student's t over
    the single runs).
    """

    value: float
    half: float
    n: int
    extrapolated: bool = False

    def minus(self, other: Slope) -> Slope:
        """Difference of two that were fitted to different runs."""
        half = math.hypot(self.half, other.half)
        marked = self.extrapolated or other.extrapolated
        return Slope(self.value - other.value, half, self.n + other.n, marked)

    def __str__(self) -> str:
        half = f" ± {self.half:.2f}" if math.isfinite(self.half) else ""
        return f"{self.value:.2f}{half}{'*' if self.extrapolated else ''}"


def slope(rows: Iterable[Row], x: str, y: str = "cpu_seconds") -> Slope | None:
    """Growth exponent of y in x; None with fewer than two values of x. Runs that were cut off are
    left out.
    """
    own = [row for row in timed(rows) if row.get(y)]
    if len({row[x] for row in own}) < 2:
        return None
    found = fit([row[x] for row in own], [row[y] for row in own])
    return Slope(
        found.value, found.half, found.n, any(row["status"] == "extrapolated" for row in own)
    )


def fit(xs: Any, ys: Any) -> Slope:
    """Least squares in a log-log plot."""
    from scipy import stats

    a, b = np.log(np.asarray(xs, dtype=float)), np.log(np.asarray(ys, dtype=float))
    found = stats.linregress(a, b)
    freedom = a.size - 2
    half = float(stats.t.ppf(0.975, freedom) * found.stderr) if freedom > 0 else math.inf
    return Slope(float(found.slope), half, a.size)


def ratios(
    rows: Iterable[Row], method: str, base: str = "exact", y: str = "cpu_seconds"
) -> list[float]:
    """Quotients: y of a method over that of another on the same instance; a run that was cut off
    gives a lower bound and is kept.
    """
    own = list(rows)
    at = {_place(row): row[y] for row in where(own, method=base) if row.get(y)}
    return [
        row[y] / at[_place(row)]
        for row in where(own, method=method)
        if row.get(y) and _place(row) in at
    ]


def _place(row: Row) -> tuple[Any, ...]:
    names = (
        "family",
        "n_states",
        "n_actions",
        "n_kernels",
        "discount",
        "metric",
        "order",
        "radius",
        "seed",
    )
    return tuple(row[name] for name in names)


def short(value: float, digits: int = 3) -> str:
    """A number in few characters; large ones without an exponent."""
    return f"{float(f'{value:.{digits}g}'):,.0f}" if 100 <= value < 1e7 else f"{value:.{digits}g}"


def panel(rows: Iterable[Row], rule: str) -> list[Row]:
    """Rows of one stopping rule; under the printed rules, the first-order methods and the exact
    engine stop as they always do.
    """
    own = list(rows)
    if rule == "printed":
        return where(own, rule="printed") + where(
            own, rule="duality-gap", method=("algorithm-1", "fast", "exact")
        )
    return where(own, rule=rule)
