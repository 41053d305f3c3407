"""Judgements on running times."""

from __future__ import annotations

import math

import numpy as np

from drmdp_lab.paper.records import Row
from drmdp_lab.paper.select import CUT_OFF, panel, points, ratios, short, timed, where
from drmdp_lab.paper.specification import DOMAINS, GARNETS
from drmdp_lab.paper.verdicts import (
    BOUND,
    CLEAR,
    CONIC,
    EVEN,
    FIGURES,
    HOLDS,
    LETTER,
    ROOM,
    RULES,
    Finding,
    counted,
    exponents,
    extreme,
    judge,
    numbers,
    ratio,
    shown,
    spans,
    verdict,
)


def conic_growth(rows: list[Row]) -> Finding | None:
    """Conic VI against N."""
    return _conic(rows, "kernels", 3.5)


def conic_states(rows: list[Row]) -> Finding | None:
    """Conic VI against S."""
    return _conic(rows, "states", 4.5)


def _conic(rows: list[Row], study: str, power: float) -> Finding | None:
    found = exponents(rows, study, FIGURES[study], "conic-vi")
    if not found:
        return None
    letter, above = LETTER[FIGURES[study]], [family for family, own in found.items() if own.value > power]
    text = f"VI with conic updates grows in {letter} as {shown(found)}; the bound is {letter}^{power}"
    return text, f"exceeded on {', '.join(above)}" if above else BOUND


def advantage(rows: list[Row]) -> Finding | None:
    """Exponents of conic VI and Algorithm 1 in N."""
    conic, ours = (exponents(rows, "kernels", "n_kernels", name) for name in ("conic-vi", "algorithm-1"))
    found = {family: conic[family].value - ours[family].value for family in conic if family in ours}
    if not found:
        return None
    text = f"exponent in N of conic VI minus that of Algorithm 1: {numbers(found)}"
    good, cases = judge(found, lambda value: value >= 2.5 - ROOM)
    seen = "seen in times too" if good == cases else "not seen in times, as section 5 says itself"
    return text, f"holds between the bounds (3.5 − 1, 3.5 − 2.5, 4.5 − 3.5); {seen}"


def scalable(rows: list[Row]) -> Finding | None:
    """The largest instances."""
    texts, good, cases = [], 0, 0
    for study in FIGURES:
        parts = []
        for rule, label in RULES.items():
            found = ratio(extreme(rows, study), "conic-vi", "algorithm-1", rule)
            more, of = judge(found, lambda value: value >= CLEAR)
            good, cases = good + more, cases + of
            if found:
                parts.append(f"{label} {numbers(found)}")
        if parts:
            texts.append(f"{spans(rows, study)}: " + "; ".join(parts))
    if not cases:
        return None
    ours = ratio(extreme(rows, "kernels"), "algorithm-1", "exact")
    also = f"; Algorithm 1 in turn takes {numbers(ours)} times the exact engine's time" if ours else ""
    text = "time of conic VI / time of Algorithm 1 at the largest sizes, " + "; ".join(texts) + also
    return text, f"{verdict(good, cases)}, a factor of {CLEAR:g} taken as significant"


def small(rows: list[Row]) -> Finding | None:
    """S = 10 and N = 10, on both garnets, five seeds each."""
    texts, words = [], {}
    for family in GARNETS:
        cells, good = [], []
        for x in ("n_states", "n_kernels"):
            size = {"n_states": 30, "n_actions": 30, "n_kernels": 30, x: 10}
            for rule, label in RULES.items():
                own = where(rows, study="readings", family=family, radius="paper", **size)
                found = ratios(timed(panel(own, rule)), "conic-vi", "algorithm-1")
                if found:
                    middle = float(np.median(found))
                    good.append(middle >= CLEAR)
                    cells.append(f"{LETTER[x]}=10, {label}: {short(middle, 2)}")
        if cells:
            texts.append(f"{family} " + ", ".join(cells))
            words[family] = verdict(sum(good), len(good))
    return ("conic VI / Algorithm 1: " + "; ".join(texts), _first(words)) if texts else None


def _first(words: dict[str, str]) -> str:
    """The verdict on the paper's garnet, and that on the other one in brackets."""
    first, *others = words.items()
    also = "".join(f"; {family}: {word}" for family, word in others if word != first[1])
    return first[1] if not also and first[0] == GARNETS[0] else f"{first[1]} on {first[0]}{also}"


def tiny(rows: list[Row]) -> Finding | None:
    """S = 5."""
    own = where(rows, study="states", n_states=5, radius="paper", family=("machine", "forest"))
    found = ratio(own, "conic-vi", "algorithm-1", "printed")
    if not found:
        return None
    good, cases = judge(found, lambda value: 1 / 3 <= value <= 3)
    text = f"conic VI / Algorithm 1 at S=5 under the printed rules: {numbers(found)}"
    return text, verdict(good, cases) if good else "not here: our steps are compiled"


def times(rows: list[Row]) -> Finding | None:
    """The two times the paper quotes; a run that met the time limit took longer."""
    texts: list[str] = []
    factors: list[float] = []
    open_ended: list[float] = []
    for family in GARNETS:
        for study, method, label in (
            ("kernels", "algorithm-1", "from v = 0"),
            ("starts", "algorithm-1 random v", "from a random v"),
        ):
            own = where(rows, study=study, family=family, radius="paper", method=method, rule="duality-gap")
            few, many = (points(where(own, n_kernels=n), "n_kernels") for n in (5, 70))
            if not few or not many or few[0].kind == CUT_OFF:
                continue
            over = "at least " if many[0].kind == CUT_OFF else ""
            factor = many[0].middle / few[0].middle
            (open_ended if over else factors).append(factor)
            texts.append(
                f"{family} {label} {few[0].middle:.2g} s at N=5 and {over}{many[0].middle:.2g} s at N=70, a factor of {over}{factor:.3g}"
            )
    if not texts:
        return None
    cut = "open where runs met the time limit" if open_ended else ""
    word = (
        f"{'less' if max(factors) < 75 else 'as much'} growth, on another machine with compiled code" if factors else ""
    )
    return "; ".join(texts) + " (the printed factor is 75)", "; otherwise ".join(filter(None, (cut, word)))


def linear(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against N."""
    found = exponents(rows, "kernels", "n_kernels", "algorithm-1")
    if not found:
        return None
    own = math.log(120.2 / 1.6) / math.log(70 / 5)
    text = f"exponents {shown(found)}; the paper's own two figures give {own:.2f}"
    return text, verdict(*judge(found, lambda own: own.value <= 1 + ROOM)) + " (at most linear)"


def others_linear(rows: list[Row]) -> Finding | None:
    """The conic methods against N."""
    texts, good, cases = [], 0, 0
    for method in CONIC:
        found = exponents(rows, "kernels", "n_kernels", method)
        if found:
            texts.append(f"{method.removeprefix('conic-')} {shown(found)}")
            more, of = judge(found, lambda own: own.value <= 1.25)
            good, cases = good + more, cases + of
    return ("exponents " + "; ".join(texts), verdict(good, cases)) if cases else None


def garnet_slow(rows: list[Row]) -> Finding | None:
    """Domains against each other, at the largest N that all of them have."""
    own = where(rows, study="kernels", radius="paper", rule="duality-gap")
    sizes = [{row["n_kernels"] for row in where(own, family=family)} for family in DOMAINS]
    shared = set.intersection(*filter(None, sizes)) if any(sizes) else set()
    if not shared:
        return None
    own = where(own, n_kernels=max(shared))
    texts, good, cases = [], 0, 0
    for method in ("algorithm-1", "conic-vi", "exact"):
        times = {f: [row["cpu_seconds"] for row in timed(where(own, family=f, method=method))] for f in DOMAINS}
        middle = {f: float(np.median(t)) for f, t in times.items() if t}
        main = counted(middle)
        if len(main) == 3:
            slowest = max(main, key=lambda family: main[family])
            good, cases = good + (slowest in GARNETS), cases + 1
            texts.append(f"{method}: " + ", ".join(f"{f} {t:.2g} s" for f, t in middle.items()))
    return (f"N = {max(shared)}, " + "; ".join(texts), verdict(good, cases)) if cases else None


def variants(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against the four variants."""
    texts, good, cases = [], 0, 0
    for rule, label in RULES.items():
        parts = []
        for method in CONIC:
            found = ratio(where(rows, study=tuple(FIGURES), radius="paper"), method, "algorithm-1", rule)
            more, of = judge(found, lambda value: value > EVEN)
            good, cases = good + more, cases + of
            if found:
                parts.append(f"{method.removeprefix('conic-')} {numbers(found)}")
        if parts:
            texts.append(f"{label}: " + "; ".join(parts))
    return ("median time / time of Algorithm 1, " + "; ".join(texts), verdict(good, cases)) if cases else None


def gap_grows(rows: list[Row]) -> Finding | None:
    """Conic VI over Algorithm 1 on the least and on the largest instances."""
    texts, good, cases = [], 0, 0
    for study in FIGURES:
        parts = []
        for rule, label in RULES.items():
            ends = [ratio(extreme(rows, study, least), "conic-vi", "algorithm-1", rule) for least in (True, False)]
            found = {family: (ends[0][family], ends[1][family]) for family in ends[0] if family in ends[1]}
            more, of = judge(found, lambda pair: pair[1] > EVEN * pair[0])
            good, cases = good + more, cases + of
            if found:
                shown = ", ".join(
                    f"{family} {short(few, 2)} → {short(many, 2)}" for family, (few, many) in found.items()
                )
                parts.append(f"{label} {shown}")
        if parts:
            texts.append(f"{spans(rows, study)}: " + "; ".join(parts))
    if not cases:
        return None
    text = "conic VI / Algorithm 1 from the least to the largest size, " + "; ".join(texts)
    return text, f"{verdict(good, cases)}, judged by whether the ratio grows"


def best_rates(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against the exact engine."""
    own = where(rows, study=tuple(FIGURES), radius="paper")
    found = ratio(own, "algorithm-1", "exact")
    if not found:
        return None
    grows = shown(exponents(rows, "growth", "n_kernels", "exact")) or "not measured"
    text = f"Algorithm 1 takes {numbers(found)} times the exact engine's time, median; that engine's exponent in N: {grows}"
    good, cases = judge(found, lambda value: value > 1)
    today = "exact updates take less time" if good == cases else "times do not decide"
    return text, f"a claim about bounds known in 2021, not about times; today {today}"


def representative(rows: list[Row]) -> Finding | None:
    """Whether the radius changes who is ahead."""
    own = timed(where(rows, study="radii", family=("machine", "forest"), radius=(0.1, 0.5, 1.0, 2.0)))
    texts, good, cases = [], 0, 0
    for family in ("machine", "forest"):
        found = {}
        for radius in sorted({row["radius"] for row in own}):
            value = ratios(where(own, family=family, radius=radius), "conic-vi", "algorithm-1")
            if value:
                found[radius] = float(np.median(value))
        if found:
            good, cases = good + (all(v > 1 for v in found.values()) or all(v < 1 for v in found.values())), cases + 1
            texts.append(f"{family} " + ", ".join(f"θ={r:g}: {short(v, 2)}" for r, v in found.items()))
    if not cases:
        return None
    word = HOLDS + ": who is ahead does not change" if good == cases else verdict(good, cases)
    return "conic VI / Algorithm 1, " + "; ".join(texts), word
