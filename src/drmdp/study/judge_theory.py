"""Judgements on the theory of Algorithm 1: rates of convergence and the cost of a step."""

from __future__ import annotations

import numpy as np

from drmdp.study.rows import Row
from drmdp.study.select import fit, slope, where
from drmdp.study.verdicts import FAILS, HOLDS, ROOM, Finding, verdict


def tail_slope(row: Row) -> float | None:
    """Slope of (DG) in T over the last stretch of a run, a factor of 20 in T."""
    points = [(T, gap) for T, gap in row.get("curve", ()) if row["curve"][-1][0] / 20 <= T]
    return fit(*zip(*points, strict=True)).value if len(points) > 2 else None


def slopes(rows: list[Row], name: str) -> list[float]:
    """Slopes of all curves of a method."""
    return [own for row in where(rows, study="rates", method=name) if (own := tail_slope(row)) is not None]


def step_exponents(rows: list[Row]) -> Finding | None:
    """A step of Algorithm 1 against the three sizes."""
    bounds = {"N": ("n_kernels", 1.0), "A": ("n_actions", 1.0), "S": ("n_states", 2.0)}
    found = {letter: slope(where(rows, study=f"step-{letter}"), x) for letter, (x, _) in bounds.items()}
    known = {letter: own for letter, own in found.items() if own is not None}
    if not known:
        return None
    good = sum(own.value <= bounds[letter][1] + ROOM + 0.15 * (letter == "S") for letter, own in known.items())
    return "a step in all states grows as " + ", ".join(f"{letter}^({own})" for letter, own in known.items()), verdict(
        good, len(known)
    )


def rate(rows: list[Row]) -> Finding | None:
    """(DG) against T."""
    own = slopes(rows, "algorithm-1 p=1 q=2")
    if not own:
        return None
    good = sum(value <= -2 / 3 for value in own)
    return f"slopes of (DG) in T from {min(own):.2f} to {max(own):.2f}, bound −.67", verdict(good, len(own))


def epochs(rows: list[Row]) -> Finding | None:
    """The epoch power q."""
    texts, middle, good, cases = [], {}, 0, 0
    for q in (1, 2, 3):
        own = slopes(rows, f"algorithm-1 p=1 q={q}")
        if own:
            middle[q] = float(np.median(own))
            texts.append(f"q={q}: {middle[q]:.2f} (bound −{q / (q + 1):.2f})")
            good, cases = good + sum(s <= -q / (q + 1) for s in own), cases + len(own)
    if not cases:
        return None
    better = middle[max(middle)] < middle[min(middle)] - 0.1
    return "median slope " + ", ".join(texts), verdict(
        good, cases
    ) + f" as a bound; a larger q does {'' if better else 'not '}help"


def weights(rows: list[Row]) -> Finding | None:
    """The weight power p."""
    by = {p: slopes(rows, f"algorithm-1 p={p} q=2") for p in (0, 1, 2)}
    if not all(by.values()):
        return None
    middle = {p: float(np.median(own)) for p, own in by.items()}
    text = "median slope " + ", ".join(f"p={p}: {value:.2f}" for p, value in middle.items())
    if max(middle.values()) - min(middle.values()) < 0.2:
        return text, HOLDS
    close = all(abs(value + p + 1) < 0.5 for p, value in middle.items())
    return text, FAILS + (": the observed rate is about T^−(p+1)" if close else "")


def weight_one(rows: list[Row]) -> Finding | None:
    """P = 1 against p = 0."""
    ends: dict[tuple[str, float], dict[str, float]] = {}
    for p in (0, 1):
        for row in where(rows, study="rates", method=f"algorithm-1 p={p} q=2"):
            if row["curve"]:
                ends.setdefault((row["family"], row["radius"]), {})[str(p)] = row["curve"][-1][1]
    pairs = [own for own in ends.values() if len(own) == 2]
    if not pairs:
        return None
    good = sum(own["1"] <= own["0"] for own in pairs)
    return f"(DG) at the end is smaller with p=1 in {good} of {len(pairs)} runs", verdict(good, len(pairs))


def mirror_prox(rows: list[Row]) -> Finding | None:
    """Two proximal maps a step."""
    ours, theirs = (slopes(rows, f"algorithm-1 {name}") for name in ("p=1 q=2", "mirror-prox"))
    if not ours or not theirs:
        return None
    a, b = float(np.median(ours)), float(np.median(theirs))
    return f"median slope {b:.2f}, {a:.2f} for Algorithm 1", HOLDS if abs(a - b) < 0.2 else FAILS
