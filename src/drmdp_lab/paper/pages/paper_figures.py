"""The figures that the paper quotes in words, beside ours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drmdp_lab.paper.blocks import GARNETS
from drmdp_lab.paper.pages.markdown import markdown, spread
from drmdp_lab.paper.pages.select import panel, ratios, slope, timed, where
from drmdp_lab.paper.pages.verdicts import FIGURES, LETTER, RULES
from drmdp_lab.paper.records import REACHED, Row

PRINTED = {5: 1.6, 70: 120.2}
"""Seconds of Algorithm 1 on garnet with rewards, S = A = 30, at two N."""
PRINTED_FACTOR = PRINTED[70] / PRINTED[5]
PRINTED_GROWTH = math.log(PRINTED_FACTOR) / math.log(70 / 5)
TWICE = 2.0
"""How much faster than value iteration the introduction says Algorithm 1 is at least."""


@dataclass(frozen=True)
class Quoted:
    """Times of a method at one size, and whether all runs came to their end."""

    seconds: list[float]
    ended: bool

    @property
    def text(self) -> str:
        """The median, or what runs that were cut off took at least."""
        if not self.ended:
            return f"more than {int(min(self.seconds))} s"
        middle = float(np.median(self.seconds))
        return f"{middle:.2g} s" if middle >= 0.1 else f"{1e3 * middle:.0f} ms"


def _runs(rows: list[Row], method: str, n_kernels: int | None = None) -> list[Row]:
    """Runs of figure 1 on the paper's garnet."""
    own = where(
        rows,
        study="kernels",
        family=GARNETS[0],
        radius="paper",
        method=method,
        rule="duality-gap",
        n_states=30,
        n_actions=30,
    )
    return own if n_kernels is None else where(own, n_kernels=n_kernels)


def quoted(rows: list[Row], method: str, n_kernels: int) -> Quoted | None:
    """What stands beside one of the paper's two times; None without rows."""
    own = [row for row in _runs(rows, method, n_kernels) if row.get("cpu_seconds")]
    if not own:
        return None
    return Quoted([row["cpu_seconds"] for row in own], all(row["status"] in REACHED for row in own))


def table(rows: list[Row]) -> str:
    """Each figure, ours, and from how many runs."""
    body = [line for make in (_times, _growth, _twice) for line in make(rows)]
    head = ("where", "figure", "the paper", "here: median (least – most)", "runs")
    return markdown(head, body)


def _times(rows: list[Row]) -> list[list[str | int]]:
    body: list[list[str | int]] = []
    found = {n: quoted(rows, "algorithm-1", n) for n in PRINTED}
    for method, label in (("algorithm-1", "Algorithm 1"), ("exact", "exact engine")):
        for n, printed in PRINTED.items():
            ours = quoted(rows, method, n)
            if ours is not None:
                theirs = f"{printed:g} s" if method == "algorithm-1" else "–"
                low, high = min(ours.seconds), max(ours.seconds)
                digits = (f"{low:.2g}", f"{high:.2g}") if high >= 0.1 else None
                ends = (
                    f"{digits[0]} – {digits[1]} s"
                    if digits
                    else f"{1e3 * low:.2g} – {1e3 * high:.2g} ms"
                )
                name = f"{label}, garnet with rewards, S = A = 30, N = {n}"
                body.append(["section 5", name, theirs, f"{ours.text} ({ends})", len(ours.seconds)])
    few, many = found[5], found[70]
    if few and many and few.ended:
        factor = float(np.median(many.seconds) / np.median(few.seconds))
        over = "" if many.ended else "more than "
        runs = len(few.seconds) + len(many.seconds)
        name = "Algorithm 1, N = 70 over N = 5"
        body.append(["section 5", name, f"{PRINTED_FACTOR:.0f}", f"{over}{factor:.2g}", runs])
    return body


def _growth(rows: list[Row]) -> list[list[str | int]]:
    own = _runs(rows, "algorithm-1")
    found = slope(own, "n_kernels")
    if found is None:
        return []
    printed = f"linear; its two times give {PRINTED_GROWTH:.2f}"
    return [["section 5", "Algorithm 1, exponent in N", printed, str(found), found.n]]


def _twice(rows: list[Row]) -> list[list[str | int]]:
    """Conic value iteration over Algorithm 1 at the introduction's two small sizes."""
    body: list[list[str | int]] = []
    for x in reversed(FIGURES.values()):
        size = {"n_states": 30, "n_actions": 30, "n_kernels": 30, x: 10}
        own = where(rows, study="readings", family=GARNETS[0], radius="paper", **size)
        for rule, label in RULES.items():
            found = ratios(timed(panel(own, rule)), "conic-vi", "algorithm-1")
            if found:
                rest = " and ".join(
                    f"{letter} = {size[name]}"
                    for name, letter in {**LETTER, "n_actions": "A"}.items()
                    if name != x
                )
                name = f"time of VI / time of Algorithm 1, {LETTER[x]} = 10, {rest}, {label}"
                body.append(["introduction", name, f"≥ {TWICE:g}", spread(found, 2), len(found)])
    return body
