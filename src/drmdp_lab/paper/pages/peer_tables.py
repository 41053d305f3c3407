"""Other people's solvers beside ours, in Markdown, each table a function of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from drmdp_lab.paper.blocks import WORLDS
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.pages.figure_parts import FAMILIES
from drmdp_lab.paper.pages.markdown import cell, markdown, size, spread
from drmdp_lab.paper.pages.select import ratios, short, timed, where
from drmdp_lab.paper.records import Row

STUDIES = ("nominal", "update", "baseline", "intervals")
TITLES = FAMILIES | dict(zip(WORLDS, ("Grid", "Two queues", "Maze"), strict=True))
TOTALS = {1.0: "total cost", 0.95: "discounted cost"}


def question(row: Row) -> str:
    """What is asked in a row, in words."""
    if row["study"] == "nominal":
        return "ordinary MDP"
    if row["study"] == "intervals":
        asked = (
            "reach" if row["task"] == "reach" else TOTALS.get(row["discount"], "discounted cost")
        )
        return f"intervals, {asked}"
    return (
        f"({row['metric']}, {str(row['order']).removesuffix('.0')}) ball, radius {row['radius']:g}"
    )


def _groups(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows of each question and size."""
    own = where(rows, study=STUDIES)
    seen: dict[tuple[int, str, int, int], list[Row]] = {}
    for row in own:
        key = STUDIES.index(row["study"]), question(row), row["n_states"], row["n_kernels"]
        seen.setdefault(key, []).append(row)
    for key in sorted(seen):
        yield key[1], seen[key]


def strongest(rows: list[Row]) -> str:
    """The peer that takes least time, for each question and size, and how it compares."""
    body = []
    for asked, own in _groups(rows):
        by = {name: ratios(timed(own), name) for name in sorted({row["method"] for row in own})}
        theirs = {
            name: found for name, found in by.items() if found and name not in ("exact", "conic-vi")
        }
        if theirs:
            best = min(theirs, key=lambda name: float(np.median(theirs[name])))
            middle = float(np.median(theirs[best]))
            marks = "*" * any(row["status"] == "extrapolated" for row in where(own, method=best))
            ahead = METHODS[best].label if middle < 1 else "drmdp"
            cells = [f"{spread(theirs[best], 2)}{marks}", len(theirs[best]), ahead]
            body.append(
                [asked, own[0]["n_states"], own[0]["n_kernels"], METHODS[best].label, *cells]
            )
    head = (
        "asked",
        "S",
        "N",
        "strongest peer",
        "its time / ours: median (extremes)",
        "runs",
        "ahead",
    )
    return markdown(head, body)


def peers(rows: list[Row]) -> str:
    """All of them, medians over seeds."""
    body = []
    for asked, own in _groups(rows):
        for family in (name for name in TITLES if where(own, family=name)):
            at = where(own, family=family)
            for name in (name for name in METHODS if where(at, method=name)):
                chosen = where(at, method=name)
                found = ratios(timed(at), name)
                quotient = short(float(np.median(found)), 2) if found else "–"
                cells = (_worst(chosen, "gap"), _worst(chosen, "update_error"))
                times = cell(chosen), quotient if name != "exact" else "1"
                body.append(
                    [TITLES[family], size(chosen), asked, METHODS[name].label, *times, *cells]
                )
    head = (
        "instance",
        "S/A/N",
        "asked",
        "method",
        "CPU time",
        "/ ours",
        "gap",
        "error of an update",
    )
    return markdown(head, body)


def _worst(rows: list[Row], name: str) -> str:
    found = [row[name] for row in rows if row.get(name) is not None]
    return f"{max(found):.1g}" if found else "–"


TABLES: dict[str, Callable[[list[Row]], str]] = {"strongest-peers": strongest, "peers": peers}
