"""How claims are judged: verdicts, and what several judgements need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from drmdp_lab.paper.records import Row
from drmdp_lab.paper.select import Slope, panel, ratios, short, slope, timed, where
from drmdp_lab.paper.specification import DOMAINS

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
BOUND = "holds as a bound"
LETTER = {"n_kernels": "N", "n_states": "S"}
RULES = {"duality-gap": "one certificate", "printed": "printed rules"}
CONIC = ("conic-vi", "conic-gs", "conic-anderson", "conic-avi")
FIGURES = {"kernels": "n_kernels", "states": "n_states"}
"""The studies of Figures 1 and 2, and what grows in them."""
ROOM = 0.05
"""What an exponent may exceed a claimed one by."""
EVEN, CLEAR = 1.1, 2.0
"""Ratios of times up to the first are even, from the second on they are significant."""
Finding = tuple[str, str]
"""What was measured, and the verdict."""
T = TypeVar("T")


def verdict(good: int, of: int) -> str:
    """Words for a number of cases."""
    return HOLDS if good == of else FAILS if good == 0 else f"{PARTLY} ({good} of {of})"


def counted(found: dict[str, T]) -> dict[str, T]:
    """What a verdict counts, by domain: garnet as the paper has it, with rewards, and with costs only where that is all there is."""
    return {family: own for family, own in found.items() if family != "garnet-costs" or "garnet-rewards" not in found}


def judge(found: dict[str, T], good: Callable[[T], bool]) -> tuple[int, int]:
    """How many of the domains that count are good, and how many there are."""
    own = counted(found)
    return sum(map(good, own.values())), len(own)


def exponents(rows: list[Row], study: str, x: str, method: str) -> dict[str, Slope]:
    """Growth exponents by domain, at the paper's radius and under the one certificate."""
    found = {}
    for family in DOMAINS:
        own = slope(where(rows, study=study, family=family, radius="paper", method=method, rule="duality-gap"), x)
        if own is not None:
            found[family] = own
    return found


def shown(found: dict[str, Slope]) -> str:
    """Exponents in words."""
    return ", ".join(f"{family} {own}" for family, own in found.items())


def ratio(rows: list[Row], method: str, base: str, rule: str = "duality-gap") -> dict[str, float]:
    """Median ratio of CPU times by domain."""
    found = {}
    for family in DOMAINS:
        own = ratios(timed(where(panel(rows, rule), family=family)), method, base)
        if own:
            found[family] = float(np.median(own))
    return found


def numbers(found: dict[str, float]) -> str:
    """Numbers by domain in words."""
    return ", ".join(f"{family} {short(value, 2)}" for family, value in found.items())


def extreme(rows: list[Row], study: str, least: bool = False) -> list[Row]:
    """Rows of the largest, or least, instances of a study that each domain has, at the paper's radius."""
    x, found = FIGURES[study], []
    for family in DOMAINS:
        own = where(rows, study=study, radius="paper", family=family)
        sizes = {row[x] for row in own}
        found += where(own, **{x: min(sizes) if least else max(sizes)}) if sizes else []
    return found


def spans(rows: list[Row], study: str) -> str:
    """Which sizes each domain has, in words; one domain for all if they agree."""
    x = FIGURES[study]
    ends: dict[tuple[int, int], list[str]] = {}
    for family in DOMAINS:
        sizes = {row[x] for row in where(rows, study=study, radius="paper", family=family)}
        if sizes:
            ends.setdefault((min(sizes), max(sizes)), []).append(family)
    parts = [
        f"{low} to {high}" + (f" on {', '.join(own)}" if len(ends) > 1 else "") for (low, high), own in ends.items()
    ]
    return f"{LETTER[x]} = " + "; ".join(parts)
