"""How claims are judged: verdicts, and what several judgements need."""

from __future__ import annotations

import numpy as np

from drmdp.study.rows import Row
from drmdp.study.select import Slope, panel, ratios, slope, timed, where

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
FAMILIES = ("garnet", "machine", "forest")
LETTER = {"n_kernels": "N", "n_states": "S"}
ROOM = 0.05
"""What an exponent may exceed a claimed one by."""
Finding = tuple[str, str]
"""What was measured, and the verdict."""


def verdict(good: int, of: int) -> str:
    """Words for a number of cases."""
    return HOLDS if good == of else FAILS if good == 0 else f"{PARTLY} ({good} of {of})"


def exponents(rows: list[Row], study: str, x: str, method: str) -> dict[str, Slope]:
    """Growth exponents by domain, at the paper's radius and under the one certificate."""
    found = {}
    for family in FAMILIES:
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
    for family in FAMILIES:
        own = ratios(timed(where(panel(rows, rule), family=family)), method, base)
        if own:
            found[family] = float(np.median(own))
    return found


def numbers(found: dict[str, float]) -> str:
    """Numbers by domain in words."""
    return ", ".join(f"{family} {value:.2g}" for family, value in found.items())


def largest(rows: list[Row], study: str, x: str) -> list[Row]:
    """Rows of the largest instances of a study, at the paper's radius."""
    own = where(rows, study=study, radius="paper")
    return where(own, **{x: max((row[x] for row in own), default=0)})
