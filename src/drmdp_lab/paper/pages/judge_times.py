"""Judgements on running times."""

from __future__ import annotations

import numpy as np

from drmdp_lab.paper.blocks import DOMAINS, GARNETS
from drmdp_lab.paper.pages.paper_figures import PRINTED_FACTOR, PRINTED_GROWTH
from drmdp_lab.paper.pages.select import CUT_OFF, panel, points, ratios, short, timed, where
from drmdp_lab.paper.pages.verdicts import (
    BOUND,
    CLEAR,
    CONIC,
    EVEN,
    FIGURES,
    HOLDS,
    LETTER,
    OPEN,
    ROOM,
    RULES,
    Answer,
    Finding,
    ceilings,
    counted,
    cut_off,
    exponents,
    extreme,
    judge,
    left_out,
    numbers,
    ratio,
    settled,
    shown,
    spans,
    verdict,
    within,
)
from drmdp_lab.paper.records import Row

ALMOST = 1.25
"""An exponent up to which growth is almost linear."""


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
    letter, answers = LETTER[FIGURES[study]], judge(found, lambda own: within(own, power))
    text = (
        f"VI with conic updates grows in {letter} as {shown(found)}; the bound is {letter}^{power}"
    )
    return text, BOUND if answers and all(answers) else verdict(answers)


def advantage(rows: list[Row]) -> Finding | None:
    """Exponents of conic VI and Algorithm 1 in N."""
    conic, ours = (
        exponents(rows, "kernels", "n_kernels", name) for name in ("conic-vi", "algorithm-1")
    )
    found = {family: conic[family].minus(ours[family]) for family in conic if family in ours}
    if not found:
        return None
    text = f"exponent in N of conic VI minus that of Algorithm 1: {shown(found)}{left_out(rows, ('kernels',))}"
    less = judge(found, lambda apart: within(apart, 2.5 - ROOM))
    seen = (
        "not seen in times, as section 5 says itself"
        if less and all(less)
        else f"{OPEN} in times"
        if None in less
        else "seen in times too"
    )
    return text, f"holds between the bounds (3.5 − 1, 3.5 − 2.5, 4.5 − 3.5); {seen}"


def scalable(rows: list[Row]) -> Finding | None:
    """The largest instances; where Algorithm 1 was cut off a ratio is at most what is shown."""
    texts: list[str] = []
    answers: list[Answer] = []
    seen, unsettled = set(), set()
    for study in FIGURES:
        parts, largest = [], extreme(rows, study)
        for rule, label in RULES.items():
            found = ratio(largest, "conic-vi", "algorithm-1", rule)
            most = ceilings(largest, "conic-vi", rule)
            answers += judge(found, lambda value: value >= CLEAR)
            answers += [False for value in counted(most).values() if value < CLEAR]
            unsettled |= {family for family, value in counted(most).items() if value >= CLEAR}
            seen |= {*found, *most}
            if found or most:
                parts.append(f"{label} {_with_ceilings(found, most)}")
        if parts:
            texts.append(f"{spans(rows, study)}: " + "; ".join(parts) + _cut_words(largest))
    if not answers and not unsettled:
        return None
    ours = ratio(extreme(rows, "kernels"), "algorithm-1", "exact")
    also = (
        f"; Algorithm 1 in turn takes {numbers(ours)} times the exact engine's time" if ours else ""
    )
    text = "time of conic VI / time of Algorithm 1 at the largest sizes, " + "; ".join(texts) + also
    word = settled(verdict(answers), seen, unsettled)
    return text, f"{word}, a factor of {CLEAR:g} taken as significant"


def _with_ceilings(found: dict[str, float], most: dict[str, float]) -> str:
    """Ratios in words, and what they are at most where Algorithm 1 was cut off."""
    bounds = [f"{family} at most {short(value, 2)}" for family, value in most.items()]
    return ", ".join([*bounds, *filter(None, [numbers(found)])])


def _cut_words(rows: list[Row]) -> str:
    """Where Algorithm 1 was cut off, and how long it took at least."""
    return "".join(
        f" ({family}: Algorithm 1 cut off, at least {min(row['cpu_seconds'] for row in runs):.2g} s)"
        for family, runs in cut_off(rows).items()
    )


def small(rows: list[Row]) -> Finding | None:
    """S = 10 and N = 10, on both garnets, five seeds each."""
    texts, words = [], {}
    for family in GARNETS:
        cells: list[str] = []
        good: list[Answer] = []
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
            words[family] = verdict(good)
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
    answers = judge(found, lambda value: 1 / 3 <= value <= 3)
    text = f"conic VI / Algorithm 1 at S=5 under the printed rules: {numbers(found)}"
    return text, verdict(answers) if any(answers) else "not here: our steps are compiled"


def times(rows: list[Row]) -> Finding | None:
    """The two times the paper quotes; a run that met the time limit took longer."""
    texts: list[str] = []
    decisive: tuple[float, bool] | None = None
    for family in GARNETS:
        for study, method, label in (
            ("kernels", "algorithm-1", "from v = 0"),
            ("starts", "algorithm-1 random v", "from a random v"),
        ):
            own = where(
                rows, study=study, family=family, radius="paper", method=method, rule="duality-gap"
            )
            few, many = (points(where(own, n_kernels=n), "n_kernels") for n in (5, 70))
            if not few or not many or few[0].kind == CUT_OFF:
                continue
            cut = many[0].kind == CUT_OFF
            over, factor = "at least " * cut, many[0].middle / few[0].middle
            if (family, method) == (GARNETS[0], "algorithm-1"):
                decisive = factor, cut
            texts.append(
                f"{family} {label} {few[0].middle:.2g} s at N=5 and {over}{many[0].middle:.2g} s at N=70, a factor of {over}{factor:.3g}"
            )
    if decisive is None:
        return None
    factor, cut = decisive
    word = "less" if factor < PRINTED_FACTOR else "as much"
    return (
        "; ".join(texts) + f" (the printed factor is {PRINTED_FACTOR:.0f})",
        "open: runs met the time limit"
        if cut
        else f"{word} growth, on another machine with compiled code",
    )


def linear(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against N."""
    found = exponents(rows, "kernels", "n_kernels", "algorithm-1")
    if not found:
        return None
    text = f"exponents {shown(found)}; the paper's own two figures give {PRINTED_GROWTH:.2f}{left_out(rows, ('kernels',))}"
    return text, verdict(judge(found, lambda own: within(own, 1 + ROOM))) + " (at most linear)"


def others_linear(rows: list[Row]) -> Finding | None:
    """The conic methods against N."""
    texts: list[str] = []
    answers: list[Answer] = []
    for method in CONIC:
        found = exponents(rows, "kernels", "n_kernels", method)
        if found:
            texts.append(f"{method.removeprefix('conic-')} {shown(found)}")
            answers += judge(found, lambda own: within(own, ALMOST))
    return ("exponents " + "; ".join(texts), verdict(answers)) if answers else None


def garnet_slow(rows: list[Row]) -> Finding | None:
    """Domains against each other, at the largest N that all of them have."""
    own = where(rows, study="kernels", radius="paper", rule="duality-gap")
    sizes = [{row["n_kernels"] for row in where(own, family=family)} for family in DOMAINS]
    shared = set.intersection(*filter(None, sizes)) if any(sizes) else set()
    if not shared:
        return None
    own = where(own, n_kernels=max(shared))
    texts: list[str] = []
    answers: list[Answer] = []
    for method in ("algorithm-1", "conic-vi", "exact"):
        found = {f: points(where(own, family=f, method=method), "n_kernels") for f in DOMAINS}
        ends = {f: (at[0].middle, at[0].kind == CUT_OFF) for f, at in found.items() if at}
        main = counted(ends)
        if len(main) == 3:
            slowest = max(main, key=lambda family: main[family])
            cut = {family for family, (_, limited) in main.items() if limited}
            answers.append(slowest == GARNETS[0] if cut <= {slowest} else None)
            shown = (f"{f} {'at least ' * limited}{t:.2g} s" for f, (t, limited) in ends.items())
            texts.append(f"{method}: " + ", ".join(shown))
    return (f"N = {max(shared)}, " + "; ".join(texts), verdict(answers)) if answers else None


def variants(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against the four variants."""
    texts: list[str] = []
    answers: list[Answer] = []
    for rule, label in RULES.items():
        parts = []
        for method in CONIC:
            found = ratio(
                where(rows, study=tuple(FIGURES), radius="paper"), method, "algorithm-1", rule
            )
            answers += judge(found, lambda value: value > EVEN)
            if found:
                parts.append(f"{method.removeprefix('conic-')} {numbers(found)}")
        if parts:
            texts.append(f"{label}: " + "; ".join(parts))
    if not answers:
        return None
    studies = tuple(FIGURES)
    text = "median time / time of Algorithm 1, " + "; ".join(texts) + left_out(rows, studies)
    cut = ", ".join(counted(cut_off(where(rows, study=studies))))
    also = (
        f" where Algorithm 1 was not cut off; open on the largest instances of {cut}" if cut else ""
    )
    return text, verdict(answers) + also


def gap_grows(rows: list[Row]) -> Finding | None:
    """Conic VI over Algorithm 1 on the least and on the largest instances; where it was cut off
    the second ratio is at most what is shown.
    """
    texts: list[str] = []
    answers: list[Answer] = []
    seen, unsettled = set(), set()
    for study in FIGURES:
        parts, largest = [], extreme(rows, study)
        for rule, label in RULES.items():
            first = ratio(extreme(rows, study, True), "conic-vi", "algorithm-1", rule)
            last = ratio(largest, "conic-vi", "algorithm-1", rule)
            most = ceilings(largest, "conic-vi", rule)
            found = {family: (first[family], last[family]) for family in first if family in last}
            above = {family: (first[family], most[family]) for family in first if family in most}
            answers += judge(found, _grows)
            answers += [False for pair in counted(above).values() if not _grows(pair)]
            unsettled |= {family for family, pair in counted(above).items() if _grows(pair)}
            seen |= {*found, *above}
            shown = [
                f"{family} {short(pair[0], 2)} → {'at most ' * (family in above)}{short(pair[1], 2)}"
                for family, pair in {**above, **found}.items()
            ]
            if shown:
                parts.append(f"{label} {', '.join(shown)}")
        if parts:
            texts.append(f"{spans(rows, study)}: " + "; ".join(parts) + _cut_words(largest))
    if not answers and not unsettled:
        return None
    text = "conic VI / Algorithm 1 from the least to the largest size, " + "; ".join(texts)
    word = settled(verdict(answers), seen, unsettled)
    return text, f"{word}, judged by whether the ratio grows"


def _grows(pair: tuple[float, float]) -> bool:
    return pair[1] > EVEN * pair[0]


def best_rates(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against the exact engine."""
    own = where(rows, study=tuple(FIGURES), radius="paper")
    found = ratio(own, "algorithm-1", "exact")
    if not found:
        return None
    grows = shown(exponents(rows, "growth", "n_kernels", "exact")) or "not measured"
    text = f"Algorithm 1 takes {numbers(found)} times the exact engine's time, median; that engine's exponent in N: {grows}{left_out(rows, tuple(FIGURES))}"
    less = all(judge(found, lambda value: value > 1))
    today = "exact updates take less time" if less else "times do not decide"
    return text, f"a claim about bounds known in 2021, not about times; today {today}"


def representative(rows: list[Row]) -> Finding | None:
    """Whether the radius changes who is ahead."""
    own = timed(
        where(rows, study="radii", family=("machine", "forest"), radius=(0.1, 0.5, 1.0, 2.0))
    )
    texts: list[str] = []
    answers: list[Answer] = []
    for family in ("machine", "forest"):
        found = {}
        for radius in sorted({row["radius"] for row in own}):
            value = ratios(where(own, family=family, radius=radius), "conic-vi", "algorithm-1")
            if value:
                found[radius] = float(np.median(value))
        if found:
            answers.append(len({v > 1 for v in found.values()}) == 1)
            texts.append(
                f"{family} " + ", ".join(f"θ={r:g}: {short(v, 2)}" for r, v in found.items())
            )
    if not answers:
        return None
    word = HOLDS + ": who is ahead does not change" if all(answers) else verdict(answers)
    return "conic VI / Algorithm 1, " + "; ".join(texts), word
