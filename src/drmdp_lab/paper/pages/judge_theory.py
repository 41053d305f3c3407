"""Judgements on the theory of Algorithm 1: rates of convergence and the cost of a step."""

from __future__ import annotations

import numpy as np

from drmdp_lab.paper.pages.select import fit, short, slope, where
from drmdp_lab.paper.pages.verdicts import (
    BOUND,
    FAILS,
    HOLDS,
    OPEN,
    PARTLY,
    ROOM,
    Finding,
    verdict,
    within,
)
from drmdp_lab.paper.records import Row

TAIL, LATE = 20.0, 4.0
"""Slopes are fitted over the last factor of TAIL in T; one that is steeper over the last factor of
LATE is still on its way.
"""
YOUNG = 20
"""So is one after fewer epochs: v, at best λ^ℓ from where it goes, may be what lacks."""
LOGARITHM = 0.15
"""What the factor log S adds to an exponent in S at these sizes."""


def tail_slope(row: Row, factor: float = TAIL) -> float | None:
    """Slope of (DG) in T over the last stretch of a run."""
    points = [(T, gap) for T, gap in row.get("curve", ()) if row["curve"][-1][0] / factor <= T]
    return fit(*zip(*points, strict=True)).value if len(points) > 2 else None


def slopes(rows: list[Row], name: str) -> list[float]:
    """Slopes of all curves of a method."""
    return [
        own
        for row in where(rows, study="rates", method=name)
        if (own := tail_slope(row)) is not None
    ]


def bounded(rows: list[Row], name: str, q: int) -> tuple[int, int, int]:
    """Runs whose slope is within −q/(q+1), runs whose slope is not yet, and all runs."""
    within = later = total = 0
    bound = -q / (q + 1)
    for row in where(rows, study="rates", method=name):
        own, late = tail_slope(row), tail_slope(row, LATE)
        if own is not None:
            epochs = ((q + 1) * row["curve"][-1][0]) ** (1 / (q + 1))
            total += 1
            within += own <= bound
            later += own > bound and (epochs < YOUNG or (late is not None and late < own - ROOM))
    return within, later, total


def as_bound(within: int, later: int, total: int) -> str:
    """Words for them."""
    if within + later < total:
        return f"{PARTLY} as a bound ({within} of {total})"
    more = (
        f"; {later} of {total} slopes are pre-asymptotic: few epochs, or still getting steeper"
        if later
        else ""
    )
    return BOUND + more


def step_exponents(rows: list[Row]) -> Finding | None:
    """A step of Algorithm 1 against the three sizes."""
    bounds = {"N": ("n_kernels", 1.0), "A": ("n_actions", 1.0), "S": ("n_states", 2.0 + LOGARITHM)}
    found = {
        letter: slope(where(rows, study=f"step-{letter}"), x) for letter, (x, _) in bounds.items()
    }
    known = {letter: own for letter, own in found.items() if own is not None}
    if not known:
        return None
    text = "a step in all states, with our maps, grows as " + ", ".join(
        f"{k}^({own})" for k, own in known.items()
    )
    answers = {k: within(own, bounds[k][1] + ROOM) for k, own in known.items()}
    over, unsettled = (
        ", ".join(letter for letter, answer in answers.items() if answer is kind)
        for kind in (False, None)
    )
    if over:
        return text, f"contradicted in {over}"
    if unsettled:
        return text, f"{OPEN} in {unsettled}: the intervals are too wide"
    return text, "not contradicted; these are our maps, not theirs"


def rate(rows: list[Row]) -> Finding | None:
    """(DG) against T."""
    own = slopes(rows, "algorithm-1 p=1 q=2")
    if not own:
        return None
    text = f"we measured (DG), at most (11)/(1−λ): slopes in T from {min(own):.2f} to {max(own):.2f}, bound −.67"
    return text, as_bound(*bounded(rows, "algorithm-1 p=1 q=2", 2))


def epochs(rows: list[Row]) -> Finding | None:
    """The epoch power q."""
    texts, middle, cases = [], {}, np.zeros(3, dtype=int)
    for q in (1, 2, 3):
        own = slopes(rows, f"algorithm-1 p=1 q={q}")
        if own:
            middle[q] = float(np.median(own))
            texts.append(f"q={q}: {middle[q]:.2f} (bound −{q / (q + 1):.2f})")
            cases += bounded(rows, f"algorithm-1 p=1 q={q}", q)
    if not texts:
        return None
    better = middle[max(middle)] < middle[min(middle)] - 0.1
    word = as_bound(*cases.tolist())
    return "median slope " + ", ".join(
        texts
    ), f"{word}; in these runs a larger q does {'' if better else 'not '}help"


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
    return text, "holds for the bound; " + (
        "observed about T^−(p+1)" if close else "observed slopes differ with p"
    )


def weight_one(rows: list[Row]) -> Finding | None:
    """p = 1 against p = 0, after as many steps as both took."""
    compared = _together(rows, "p=0 q=2")
    if not compared:
        return None
    answers = [own >= 1 for own in compared]
    text = f"(DG) after the same steps is smaller with p=1 in {sum(answers)} of {len(answers)} runs"
    return text, verdict(answers)


def mirror_prox(rows: list[Row]) -> Finding | None:
    """Two proximal maps a step."""
    ours, theirs = (slopes(rows, f"algorithm-1 {name}") for name in ("p=1 q=2", "mirror-prox"))
    if not ours or not theirs:
        return None
    a, b = float(np.median(ours)), float(np.median(theirs))
    return f"median slope {b:.2f}, {a:.2f} for Algorithm 1", HOLDS if abs(a - b) < 0.2 else FAILS


def mirror_descent(rows: list[Row]) -> Finding | None:
    """Gradient steps of length 1/√T_ℓ; (DG) after as many steps as both took."""
    compared = _together(rows, "mirror-descent")
    if not compared:
        return None
    slow = float(np.median(slopes(rows, "algorithm-1 mirror-descent") or [np.nan]))
    fast = float(np.median(slopes(rows, "algorithm-1 p=1 q=2") or [np.nan]))
    good = sum(own >= 1 for own in compared)
    text = f"after the same steps its (DG) is {np.median(compared):.2g} times larger in the median; median slope {slow:.2f}, {fast:.2f} for Algorithm 1"
    word = (
        HOLDS
        if good == len(compared)
        else f"holds for the bounds; seen in {good} of {len(compared)} runs"
    )
    return text, word


def inner_method(rows: list[Row]) -> Finding | None:
    """Value iteration with an inner first-order method: the pair of the last epoch."""
    compared, own = _together(rows, "epoch"), slopes(rows, "algorithm-1 epoch")
    if not compared or not own:
        return None
    text = (
        f"(DG) of the pair averaged in the last epoch alone falls too, median slope {np.median(own):.2f}; after the same steps it is "
        f"{np.median(compared):.2g} times that of Algorithm 1's average in the median"
    )
    falls = sum(value < 0 for value in own)
    if falls < len(own):
        return text, f"open: (DG) falls in {falls} of {len(own)} runs"
    return (
        text,
        "not only: the gap of its last pair is O(T^−2/3) too, since ‖v⁺ − v*‖ ≤ λ‖v − v*‖ + O(ℓ^−2)",
    )


def _together(rows: list[Row], name: str) -> list[float]:
    """(DG) of a variant over that of Algorithm 1, at the last T that both reached, run by run."""
    found = []
    for row in where(rows, study="rates", method=f"algorithm-1 {name}"):
        place = {
            key: row[key]
            for key in ("family", "n_states", "n_actions", "n_kernels", "radius", "seed")
        }
        for other in where(rows, study="rates", method="algorithm-1 p=1 q=2", **place):
            both = sorted({T for T, _ in row["curve"]} & {T for T, _ in other["curve"]})
            if both:
                found.append(
                    dict(map(tuple, row["curve"]))[both[-1]]
                    / dict(map(tuple, other["curve"]))[both[-1]]
                )
    return found


def evaluations(rows: list[Row]) -> Finding | None:
    """The (ℓ∞, 1) map: rows evaluated by three nested bisections, multipliers tried by Newton's
    method.
    """
    by = {name: where(rows, study="maps", method=f"map-{name}") for name in ("bisection", "newton")}
    counts = {name: {row["tol"]: row["n_iters"] for row in own} for name, own in by.items()}
    if not all(counts.values()) or len(counts["bisection"]) < 2:
        return None
    nested, newton = (
        ", ".join(f"{short(n)} at ε={tol:.0e}" for tol, n in sorted(own.items(), reverse=True))
        for own in counts.values()
    )
    power = fit(
        [-np.log(tol) for tol in counts["bisection"]], list(counts["bisection"].values())
    ).value
    text = f"evaluations of a row by nested bisections: {nested}, about log(1/ε)^{power:.1f}; multipliers γ by Newton's method: {newton}"
    most = max(counts["newton"].values())
    word = BOUND if power <= 3 + ROOM else "exceeded"
    return text, word + (
        f"; Newton's method tries at most {most:.2g} γ" if most else "; the ball does not bind"
    )
