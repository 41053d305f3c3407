"""How claims are judged: verdicts, and what several judgements need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from drmdp_lab.paper.blocks import DOMAINS
from drmdp_lab.paper.pages.select import Slope, panel, ratios, short, slope, timed, where
from drmdp_lab.paper.records import REACHED, Row

HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
BOUND = "holds as a bound"
LETTER = {"n_kernels": "N", "n_states": "S"}
RULES = {"duality-gap": "one certificate", "printed": "printed rules"}
CONIC = ("conic-vi", "conic-gs", "conic-anderson", "conic-avi")
FIGURES = {"kernels": "n_kernels", "states": "n_states"}
"""The studies of Figures 1 and 2, and what grows in them."""
OPEN = "no verdict"
ROOM = 0.1
"""What an exponent may exceed a claimed one by."""
WIDEST = 0.3
"""An exponent whose 95 % interval is wider than ± this supports no verdict."""
EVEN, CLEAR = 1.1, 2.0
"""Ratios of times up to the first are even, from the second on they are significant."""
Finding = tuple[str, str]
"""What was measured, and the verdict."""
T = TypeVar("T")


Answer = bool | None
"""Of one case: yes, no, or that what was measured does not tell."""


def verdict(answers: Sequence[Answer]) -> str:
    """Words for some cases."""
    settled = [bool(answer) for answer in answers if answer is not None]
    if not settled:
        return f"{OPEN}: the intervals are too wide"
    good, of = sum(settled), len(answers)
    if len(settled) < of:
        counts = {HOLDS: good, FAILS: len(settled) - good, OPEN: of - len(settled)}
        return ", ".join(f"{word} in {n} of {of}" for word, n in counts.items() if n)
    return HOLDS if good == of else f"{PARTLY} ({good} of {of})" if good else FAILS


def within(found: Slope, bound: float) -> Answer:
    """Whether an exponent is at most a bound: with its whole interval, or with none of it."""
    if found.half > WIDEST or found.value - found.half <= bound < found.value + found.half:
        return None
    return found.value <= bound


def counted(found: dict[str, T]) -> dict[str, T]:
    """What a verdict counts, by domain: garnet as the paper has it, with rewards."""
    return {family: own for family, own in found.items() if family != "garnet-costs"}


def judge(found: dict[str, T], good: Callable[[T], Answer]) -> list[Answer]:
    """The answers of the domains that count."""
    return [good(own) for own in counted(found).values()]


def exponents(rows: list[Row], study: str, x: str, method: str) -> dict[str, Slope]:
    """Growth exponents by domain, at the paper's radius and under the one certificate."""
    found = {}
    for family in DOMAINS:
        own = slope(
            where(
                rows, study=study, family=family, radius="paper", method=method, rule="duality-gap"
            ),
            x,
        )
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


def cut_off(rows: list[Row], method: str = "algorithm-1") -> dict[str, list[Row]]:
    """Runs of a method that met a limit under the one certificate, by domain."""
    own = where(rows, method=method, rule="duality-gap", radius="paper")
    found = {
        family: [
            row
            for row in where(own, family=family)
            if row["status"] not in (*REACHED, "extrapolated")
        ]
        for family in DOMAINS
    }
    return {family: runs for family, runs in found.items() if runs}


def ceilings(rows: list[Row], method: str, rule: str = "duality-gap") -> dict[str, float]:
    """What the median ratio to Algorithm 1 is at most in domains where all its runs were cut off."""
    measured, found = ratio(rows, method, "algorithm-1", rule), {}
    for family, runs in cut_off(rows).items():
        own = timed(where(panel(rows, rule), family=family, method=method))
        if family not in measured and (over := ratios(own + runs, method, "algorithm-1")):
            found[family] = float(np.median(over))
    return found


def left_out(rows: list[Row], studies: tuple[str, ...]) -> str:
    """How many runs of Algorithm 1 were cut off and count nowhere, in words."""
    own = where(rows, study=studies)
    parts = []
    for family, runs in cut_off(own).items():
        of = where(own, family=family, method="algorithm-1", rule="duality-gap", radius="paper")
        least = min(row["cpu_seconds"] for row in runs)
        parts.append(f"{family} {len(runs)} of {len(of)}, each at least {least:.2g} s")
    return (
        f"; runs of Algorithm 1 that were cut off are left out: {', '.join(parts)}" if parts else ""
    )


def settled(word: str, domains: Iterable[str], unsettled: Iterable[str]) -> str:
    """A verdict on some domains, where Algorithm 1 was cut off on others."""
    left = [family for family in DOMAINS if family in unsettled]
    if not left:
        return word
    rest = [f for f in DOMAINS if f in counted(dict.fromkeys(domains)) and f not in left]
    also = f"open on {', '.join(left)} (Algorithm 1 was cut off)"
    return f"{word} on {' and '.join(rest)}; {also}" if rest else also


def numbers(found: dict[str, float]) -> str:
    """Numbers by domain in words."""
    return ", ".join(f"{family} {short(value, 2)}" for family, value in found.items())


def extreme(rows: list[Row], study: str, least: bool = False) -> list[Row]:
    """Rows of the largest, or least, instances of a study that each domain has, at the paper's
    radius.
    """
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
        f"{low} to {high}" + (f" on {', '.join(own)}" if len(ends) > 1 else "")
        for (low, high), own in ends.items()
    ]
    return f"{LETTER[x]} = " + "; ".join(parts)
