"""The outcome in a few sentences, written from the rows: who is ahead, how times grow, what the
stopping rules change.
"""

from __future__ import annotations

import numpy as np

from drmdp_lab.paper.blocks import DOMAINS, GARNETS
from drmdp_lab.paper.methods import METHODS
from drmdp_lab.paper.pages import errata
from drmdp_lab.paper.pages.select import panel, ratios, short, slope, timed, where
from drmdp_lab.paper.pages.verdicts import ROOM, RULES, within
from drmdp_lab.paper.records import Row

SLOW = (
    "algorithm-1",
    "fast",
    "conic-vi",
    "conic-gs",
    "conic-anderson",
    "conic-avi",
    "baseline-2023",
    "cvxpy-clarabel",
    "cvxpy-scs",
)
LINEAR = 1 + ROOM
"""What counts as at most linear growth."""
ANSWERS = {f"at most {LINEAR:g}": True, f"above {LINEAR:g}": False, "on both sides": None}


def bullets(rows: list[Row]) -> str:
    """A Markdown list."""
    made = [make(rows) for make in (_ahead, _own, _linear, _level, _crossing, _nominal)]
    return "".join(f"- {text}\n" for text in made if text)


def _robust(rows: list[Row]) -> list[Row]:
    studies = ("kernels", "states", "radii", "pairs", "discounts", "baseline", "update")
    return timed(where(rows, study=studies, rule="duality-gap"))


def _ahead(rows: list[Row]) -> str:
    """The exact engine against everything that does not use its updates."""
    own = _robust(rows)
    parts, behind, total = [], 0, 0
    for name in SLOW:
        found = ratios(own, name)
        if found:
            behind, total = behind + sum(value <= 1 for value in found), total + len(found)
            parts.append(
                f"{METHODS[name].label} {short(float(np.median(found)))} ({short(min(found), 2)} – {short(max(found), 2)})"
            )
    if not total:
        return ""
    first = f"The exact engine is ahead in {total - behind} of {total} comparisons with methods that do not use its updates, under one certificate"
    return (
        f"{first}. They take, in multiples of its time (median, extremes): "
        + ", ".join(parts)
        + "."
    )


def _own(rows: list[Row]) -> str:
    """The default method against the others with exact updates."""
    parts = []
    own = _robust(rows)
    for name in ("exact-vi", "exact-anderson", "exact-avi", "exact-gs"):
        found = ratios(own, name)
        if found:
            times = f" (by up to {short(1 / min(found), 2)} times)" if min(found) < 1 else ""
            parts.append(
                f"{METHODS[name].label} is ahead on {sum(value < 1 for value in found)} of {len(found)}{times}"
            )
    if not parts:
        return ""
    reason = "the default first solves the MDP of the mean kernel, which does not pay where a handful of sweeps is enough"
    return f"Among methods with exact updates the default is not always first: {', '.join(parts)}; {reason}."


def _linear(rows: list[Row]) -> str:
    """The exact engine's growth in N, wherever it was measured, and for large N."""
    answers, parts = [], []
    for family in DOMAINS:
        for study in ("kernels", "growth"):
            for radius in sorted(
                {row["radius"] for row in where(rows, study=study, family=family)}
            ):
                own = where(rows, study=study, family=family, radius=radius, method="exact")
                found = slope(where(own, rule="duality-gap"), "n_kernels")
                if found is not None:
                    answers.append(within(found, LINEAR))
                    if study == "growth":
                        parts.append(f"{family} at radius {radius:.3g} N^({found})")
    if not parts:
        return ""
    counts = {word: answers.count(kind) for word, kind in ANSWERS.items()}
    said = ", ".join(f"{word} in {n}" for word, n in counts.items() if n)
    return (
        f"The exact engine's exponents in N are, with the whole 95 % interval, {said} of "
        f"{len(answers)} settings; for large N: {', '.join(parts)}."
    )


def _crossing(rows: list[Row]) -> str:
    """Algorithm 1 against VI with conic updates: on garnet as the paper has it, on the other one,
    and on the rest.
    """
    parts = []
    for families, label in (
        (GARNETS[:1], "garnet with rewards"),
        (GARNETS[1:], "garnet with costs"),
        (DOMAINS[2:], "machine and forest"),
    ):
        cells = []
        for rule, said in RULES.items():
            chosen = where(panel(where(rows, study=("kernels", "states")), rule), family=families)
            found = ratios(timed(chosen), "conic-vi", "algorithm-1")
            if found:
                ahead = sum(value > 1 for value in found)
                cells.append(
                    f"{ahead} of {len(found)} under {said} (median ratio {short(float(np.median(found)), 2)})"
                )
        if cells:
            parts.append(f"{label} {' and '.join(cells)}")
    return (
        f"Algorithm 1 is ahead of VI with conic updates on so many instances: {'; '.join(parts)}."
        if parts
        else ""
    )


def _level(rows: list[Row]) -> str:
    """What the level of the costs does to the two first-order methods."""
    effect = errata.level(rows)
    if effect is None:
        return ""
    return f"Garnet with rewards and garnet with costs are one problem at two levels: {effect}."


def _nominal(rows: list[Row]) -> str:
    """Peers made for ordinary MDPs, the strongest at each size."""
    parts = []
    own = timed(where(rows, study="nominal"))
    for n in sorted({row["n_states"] for row in own}):
        names = {row["method"] for row in own} - {"exact"}
        found = {name: ratios(where(own, n_states=n), name) for name in names}
        shares = {name: float(np.median(times)) for name, times in found.items() if times}
        if shares:
            best = min(shares, key=lambda name: shares[name])
            parts.append(f"{METHODS[best].label} at S = {n} {shares[best]:.2g}")
    if not parts:
        return ""
    return f"At radius 0, an ordinary MDP, the strongest peer made for it takes this share of our time: {', '.join(parts)}."
