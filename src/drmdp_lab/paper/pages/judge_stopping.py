"""Judgements on stopping rules and on the duality gap."""

from __future__ import annotations

import numpy as np

from drmdp_lab.paper.pages.select import ratios, reached, short, slope, timed, where
from drmdp_lab.paper.pages.verdicts import FAILS, HOLDS, LETTER, Finding, verdict
from drmdp_lab.paper.records import Row

PAPER = 0.8
"""The paper's λ."""


def stop_rule(rows: list[Row]) -> Finding | None:
    """The true loss under the printed stopping rule."""
    own = where(rows, study="rules", rule="paper")
    if not own:
        return None
    good = sum(row["loss"] <= row["tol"] for row in own)
    worst = max(row["loss"] / row["tol"] for row in own)
    far = max(row["residual_bound"] / row["tol"] for row in own)
    fixed = reached(where(rows, study="rules", rule="puterman"))
    also = sum(row["loss"] <= row["tol"] for row in fixed)
    text = (
        f"the policy is ε-optimal in {good} of {len(own)} runs, at worst it loses {worst:.3g} ε, while the bound on ‖v − v*‖ is up to {short(far)} ε; "
        f"corrected rule: {also} of {len(fixed)}"
    )
    if good == len(own):
        return text, "no guarantee, and none was needed here"
    at = where(own, discount=PAPER)
    kept = sum(row["loss"] <= row["tol"] for row in at)
    here = f"; at the paper's λ=.8 {kept} of {len(at)} runs were ε-optimal" if at else ""
    return (
        text,
        f"{FAILS}: the fraction is inverted{here}; we do not know what the authors' code used",
    )


def gap_rule(rows: list[Row]) -> Finding | None:
    """What (DG) promises."""
    own = where(
        rows,
        study=("kernels", "states"),
        method=("algorithm-1", "fast"),
        rule="duality-gap",
        status=("solved", "stopped"),
    )
    if not own:
        return None
    over = [row["gap"] / row["tol"] for row in own]
    good = [row["duality_gap"] <= row["tol"] for row in own]
    text = f"(DG) confirmed from scratch in {sum(good)} of {len(own)} runs; the worst state's gap was up to {max(over):.2g} times the tolerance"
    return text, verdict(good) + ", for the start distribution"


def gap_time(rows: list[Row]) -> Finding | None:
    """The time to compute (DG)."""
    texts, faster = [], []
    for study, x in (("gap-kernels", "n_kernels"), ("gap-states", "n_states")):
        own = where(rows, study=study, metric="l2")
        conic, ours = (slope(where(own, method=m), x) for m in ("gap-conic", "gap-exact"))
        top = where(own, **{x: max((row[x] for row in own), default=0)})
        found = ratios(timed(top), "gap-conic", "gap-exact")
        if conic and ours and found:
            faster.append(float(np.median(found)))
            texts.append(
                f"in {LETTER[x]}: conic exponent {conic}, exact {ours}; at the largest size the exact engine is {np.median(found):.3g} times faster"
            )
    if not texts:
        return None
    return "; ".join(texts), HOLDS + " for conic updates, not for exact ones" if min(
        faster
    ) > 10 else HOLDS


def d1_d2(rows: list[Row]) -> Finding | None:
    """(DG) with the two metrics."""
    texts, answers = [], []
    for method in ("gap-conic", "gap-exact"):
        own = timed(where(rows, study=("gap-kernels", "gap-states"), method=method))
        at = {
            (row["study"], row["n_states"], row["n_kernels"], row["seed"]): row["cpu_seconds"]
            for row in where(own, metric="l2")
        }
        found = [
            row["cpu_seconds"] / at[place]
            for row in where(own, metric="l1")
            if (place := (row["study"], row["n_states"], row["n_kernels"], row["seed"])) in at
        ]
        if found:
            middle = float(np.median(found))
            answers.append(middle > 1)
            texts.append(f"{'conic' if method == 'gap-conic' else 'exact'} d1/d2 {middle:.2g}")
    if not answers:
        return None
    word = (
        verdict(answers)
        if any(answers)
        else "not here: HiGHS against Clarabel; theirs was Gurobi for both"
    )
    return "median ratio of times, " + ", ".join(texts), word
