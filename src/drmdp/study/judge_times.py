"""Judgements on running times."""

from __future__ import annotations

import math

import numpy as np

from drmdp.study.rows import Row
from drmdp.study.select import panel, ratios, timed, where
from drmdp.study.verdicts import (
    FAMILIES,
    LETTER,
    ROOM,
    Finding,
    exponents,
    largest,
    numbers,
    ratio,
    shown,
    verdict,
)  # fmt: skip


def conic_growth(rows: list[Row]) -> Finding | None:
    """Conic VI against N."""
    found = exponents(rows, "kernels", "n_kernels", "conic-vi")
    if not found:
        return None
    below = sum(own.value <= 3.5 for own in found.values())
    return f"VI with conic updates grows in N as {shown(found)}; the bound is N^3.5", verdict(
        below, len(found)
    ) + " as a bound"


def conic_states(rows: list[Row]) -> Finding | None:
    """Conic VI against S."""
    found = exponents(rows, "states", "n_states", "conic-vi")
    if not found:
        return None
    return f"VI with conic updates grows in S as {shown(found)}; the bound is S^4.5", verdict(
        sum(s.value <= 4.5 for s in found.values()), len(found)
    ) + " as a bound"


def advantage(rows: list[Row]) -> Finding | None:
    """Exponents of conic VI and Algorithm 1 in N."""
    conic, ours = (exponents(rows, "kernels", "n_kernels", name) for name in ("conic-vi", "algorithm-1"))
    found = {family: conic[family].value - ours[family].value for family in conic if family in ours}
    if not found:
        return None
    text = f"exponent in N of conic VI minus that of Algorithm 1: {numbers(found)}"
    good = sum(value >= 2.5 - ROOM for value in found.values())
    return text, verdict(good, len(found)) + ("" if good else ": conic solvers do not cost N^3.5 here")


def scalable(rows: list[Row]) -> Finding | None:
    """The largest instances."""
    texts, good, cases = [], 0, 0
    for study, x in (("kernels", "n_kernels"), ("states", "n_states")):
        found = ratio(largest(rows, study, x), "conic-vi", "algorithm-1")
        good, cases = good + sum(value > 1 for value in found.values()), cases + len(found)
        if found:
            texts.append(f"largest {LETTER[x]}: {numbers(found)}")
    if not cases:
        return None
    ours = ratio(largest(rows, "kernels", "n_kernels"), "algorithm-1", "exact")
    also = f"; Algorithm 1 in turn takes {numbers(ours)} times the exact engine's time" if ours else ""
    return "time of conic VI / time of Algorithm 1 under one certificate, " + "; ".join(texts) + also, verdict(
        good, cases
    )


def small(rows: list[Row]) -> Finding | None:
    """S = 10 and N = 10."""
    texts, good, cases = [], 0, 0
    for study, x in (("states", "n_states"), ("kernels", "n_kernels")):
        for rule in ("duality-gap", "printed"):
            own = where(rows, study=study, family="garnet", radius="paper", **{x: 10})
            found = ratios(timed(panel(own, rule)), "conic-vi", "algorithm-1")
            if found:
                middle = float(np.median(found))
                good, cases = good + (middle >= 2), cases + 1
                texts.append(
                    f"{LETTER[x]}=10, {'one certificate' if rule == 'duality-gap' else 'printed rules'}: {middle:.2g}"
                )
    return ("conic VI / Algorithm 1 on garnet, " + "; ".join(texts), verdict(good, cases)) if cases else None


def tiny(rows: list[Row]) -> Finding | None:
    """S = 5."""
    found = ratio(
        where(rows, study="states", n_states=5, radius="paper", family=("machine", "forest")),
        "conic-vi",
        "algorithm-1",
        "printed",
    )
    if not found:
        return None
    return f"conic VI / Algorithm 1 at S=5 under the printed rules: {numbers(found)}", verdict(
        sum(1 / 3 <= v <= 3 for v in found.values()), len(found)
    )


def times(rows: list[Row]) -> Finding | None:
    """The two times the paper quotes."""
    texts, factors = [], []
    for study, method, label in (
        ("kernels", "algorithm-1", "from v = 0"),
        ("starts", "algorithm-1 random v", "from a random v"),
    ):
        own = timed(where(rows, study=study, family="garnet", radius="paper", method=method, rule="duality-gap"))
        at = {n: [row["cpu_seconds"] for row in where(own, n_kernels=n)] for n in (5, 70)}
        if all(at.values()):
            few, many = (float(np.median(at[n])) for n in (5, 70))
            factors.append(many / few)
            texts.append(f"{label} {few:.2g} s at N=5 and {many:.2g} s at N=70, a factor {many / few:.3g}")
    if not texts:
        return None
    word = "less" if max(factors) < 75 else "as much"
    return "; ".join(texts) + " (the printed factor is 75)", f"{word} growth, on another machine with compiled code"


def linear(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against N."""
    found = exponents(rows, "kernels", "n_kernels", "algorithm-1")
    if not found:
        return None
    own = math.log(120.2 / 1.6) / math.log(70 / 5)
    text = f"exponents {shown(found)}; the paper's own two figures give {own:.2f}"
    return text, verdict(sum(s.value <= 1 + ROOM for s in found.values()), len(found)) + " (at most linear)"


def others_linear(rows: list[Row]) -> Finding | None:
    """The conic methods against N."""
    texts, good, cases = [], 0, 0
    for method in ("conic-vi", "conic-gs", "conic-anderson", "conic-avi"):
        found = exponents(rows, "kernels", "n_kernels", method)
        if found:
            texts.append(f"{method.removeprefix('conic-')} {shown(found)}")
            good, cases = good + sum(s.value <= 1.25 for s in found.values()), cases + len(found)
    return ("exponents " + "; ".join(texts), verdict(good, cases)) if cases else None


def garnet_slow(rows: list[Row]) -> Finding | None:
    """Domains against each other."""
    own = where(largest(rows, "kernels", "n_kernels"), rule="duality-gap")
    texts, good, cases = [], 0, 0
    for method in ("algorithm-1", "conic-vi", "exact"):
        times = {f: [row["cpu_seconds"] for row in timed(where(own, family=f, method=method))] for f in FAMILIES}
        if all(times.values()):
            middle = {f: float(np.median(t)) for f, t in times.items()}
            good, cases = good + (middle["garnet"] == max(middle.values())), cases + 1
            texts.append(f"{method}: " + ", ".join(f"{f} {t:.2g} s" for f, t in middle.items()))
    return ("; ".join(texts), verdict(good, cases)) if cases else None


def variants(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against the four variants."""
    texts, good, cases = [], 0, 0
    for method in ("conic-vi", "conic-gs", "conic-anderson", "conic-avi"):
        for rule in ("duality-gap", "printed"):
            found = ratio(where(rows, study=("kernels", "states"), radius="paper"), method, "algorithm-1", rule)
            good, cases = good + sum(v > 1 for v in found.values()), cases + len(found)
            if found and rule == "printed":
                texts.append(f"{method.removeprefix('conic-')} {numbers(found)}")
    return (
        ("median time / time of Algorithm 1 under the printed rules: " + "; ".join(texts), verdict(good, cases))
        if cases
        else None
    )


def best_rates(rows: list[Row]) -> Finding | None:
    """Algorithm 1 against the exact engine."""
    own = where(rows, study=("kernels", "states"), radius="paper")
    found = ratio(own, "algorithm-1", "exact")
    if not found:
        return None
    ahead = sum(value > 1 for value in found.values())
    grows = shown(exponents(rows, "growth", "n_kernels", "exact")) or "not measured"
    text = f"Algorithm 1 takes {numbers(found)} times the exact engine's time, median; that engine's exponent in N: {grows}"
    return text, "no longer" if ahead == len(found) else "not decided"


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
            texts.append(f"{family} " + ", ".join(f"θ={r:g}: {v:.2g}" for r, v in found.items()))
    return (
        ("conic VI / Algorithm 1, " + "; ".join(texts), verdict(good, cases) + " (who is ahead does not change)")
        if cases
        else None
    )
