"""How claims are judged: verdicts, and what several judgements need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from drmdp.study.rows import Row
from drmdp.study.select import Slope, panel, ratios, slope, timed, where
from drmdp.study.specification import DOMAINS

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
BOUND = "holds as a bound"
LETTER = {"n_kernels": "N", "n_states": "S"}
RULES = {"duality-gap": "one certificate", "printed": "printed rules"}
CONIC = ("conic-vi", "conic-gs", "conic-anderson", "conic-avi")
FIGURES = {"kernels": "n_kernels", "states": "n_states"}
"""The studies of Figures 1 and 2, and what grows in them."""
ROOM = 0.05
"""What an exponent may exceed a claimed one by."""
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
    return ", ".join(f"{family} {value:.2g}" for family, value in found.items())


def extreme(rows: list[Row], study: str, least: bool = False) -> list[Row]:
    """Rows of the largest, or least, instances of a study, at the paper's radius."""
    x = FIGURES[study]
    own = where(rows, study=study, radius="paper")
    sizes = [row[x] for row in own]
    return where(own, **{x: min(sizes) if least else max(sizes)}) if sizes else []
