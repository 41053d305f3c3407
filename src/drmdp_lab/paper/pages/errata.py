"""Where we depart from the paper's text, and what that changes in practice: measured where the
study does.

Numbered as in the arXiv source (2009.06790), where theorem, proposition, remark and corollary share
a counter. Four kinds are kept apart: what is mathematically wrong, slips of the pen, remarks on
statements that are true, and what is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drmdp_lab.paper.blocks import GARNETS
from drmdp_lab.paper.pages.judge_theory import slopes
from drmdp_lab.paper.pages.select import ratios, short, timed, where
from drmdp_lab.paper.pages.verdicts import CONIC
from drmdp_lab.paper.records import Row

Effect = Callable[[list[Row]], str | None]


@dataclass(frozen=True)
class Item:
    """One point; `effect` is a sentence, or a function of the rows that writes one."""

    where: str
    printed: str
    used: str
    effect: str | Effect


def judge(rows: list[Row], kind: str) -> list[tuple[str, str, str, str]]:
    """The points of one kind with what they change."""
    found = []
    for own in KINDS[kind]:
        effect = (
            own.effect
            if isinstance(own.effect, str)
            else own.effect(rows) or "not measured in this run"
        )
        found.append((own.where, own.printed, own.used, effect))
    return found


# ---------------------------------------------------------------------- effects that are measured


def _stopping(rows: list[Row]) -> str:
    texts = [
        "an example at λ=.8, ε=.1 with three states and θ=0 stops after one sweep and loses 27 ε"
    ]
    own = where(rows, study="rules")
    for discount in sorted({row["discount"] for row in own}):
        at = where(own, discount=discount)
        by = {rule: where(at, rule=rule) for rule in ("paper", "puterman", "certified")}
        if all(by.values()):
            sweeps = {
                rule: float(np.median([row["kernel_passes"] for row in found]))
                for rule, found in by.items()
            }
            worst = max(row["loss"] / row["tol"] for row in by["paper"])
            factor = (2 * discount / (1 - discount)) ** 2
            texts.append(
                f"λ={discount:g}: threshold {short(factor)} times too large, median sweeps {sweeps['paper']:g} printed, {sweeps['puterman']:g} corrected, "
                f"{sweeps['certified']:g} certified; the policy loses up to {short(worst, 2)} ε"
            )
    return "; ".join(texts)


def _weighted(rows: list[Row]) -> str | None:
    own = timed(
        where(rows, study=("kernels", "states"), rule="duality-gap", method=("algorithm-1", "fast"))
    )
    found = [row["gap"] / row["duality_gap"] for row in own if row.get("duality_gap")]
    text = "at the stop, the worst state's gap was {:.2g} times (DG) in the median, up to {:.2g}"
    return text.format(np.median(found), max(found)) if found else None


def _preset(rows: list[Row]) -> str | None:
    found = ratios(
        timed(where(rows, study=("kernels", "states"), rule="duality-gap")), "algorithm-1", "fast"
    )
    return (
        f"the whole preset is {np.median(found):.2g} times faster than Algorithm 1 in the median"
        if found
        else None
    )


def level(rows: list[Row]) -> str | None:
    """Steps of the first-order methods on the two garnets."""
    texts = []
    for method, label in (("algorithm-1", "Algorithm 1"), ("fast", "the preset, centred,")):
        own = timed(where(rows, study="readings", rule="duality-gap", method=method))
        steps = [[row["n_iters"] for row in where(own, family=family)] for family in GARNETS]
        if all(steps):
            paid, costs = (f"{min(found):g} to {max(found):g}" for found in steps)
            texts.append(f"{label} takes {paid} steps with rewards and {costs} with costs")
    return "; ".join(texts) or None


def _saturated(rows: list[Row]) -> str | None:
    own = where(
        rows, study=("kernels", "states"), family=GARNETS, method="exact-vi", rule="duality-gap"
    )
    paper = [row["kernel_passes"] for row in where(own, radius="paper")]
    small = [row["kernel_passes"] for row in where(own, radius=0.1)]
    if not paper or not small:
        return None
    return f"at the paper's radius nature is all but free: VI is certified after {np.median(paper):g} sweeps (median), at .1 after {np.median(small):g}"


def _powers(rows: list[Row]) -> str | None:
    by = {p: slopes(rows, f"algorithm-1 p={p} q=2") for p in (0, 1, 2)}
    if not all(by.values()):
        return None
    return "measured slopes, median: " + ", ".join(
        f"p={p} {np.median(own):.2f}" for p, own in by.items()
    )


def _variants(rows: list[Row]) -> str | None:
    """Sweeps of the variants of VI under the printed rules."""
    own = where(rows, study=("kernels", "states"), rule="printed", radius="paper")
    found = {name: [row["kernel_passes"] for row in where(own, method=name)] for name in CONIC}
    if not all(found.values()):
        return None
    texts = (
        f"{name.removeprefix('conic-')} {np.median(passes):g}" for name, passes in found.items()
    )
    return "median sweeps under the printed rules: " + ", ".join(texts)


# ---------------------------------------------------------------------- the points

ERRORS = (
    Item(
        "sections 2.1 and 5, stop of VI",
        "‖v − F(v)‖ < 2λε/(1−λ)",
        "≤ ε(1−λ)/(2λ): the fraction is inverted; or the certified gap",
        _stopping,
    ),
    Item(
        "after equation (11)",
        "a one-step gap ≤ ε/2 at v* makes x ε-optimal",
        "for λ > ½, ≤ (1−λ)ε",
        "2.5 times too large at λ=.8: in an example with one state a gap of ε/2 loses 2.5 ε; we certify values",
    ),
    Item(
        "equation (1)",
        "C(x, μ) draws y once",
        "y is drawn at every visit, as the Bellman equation (2) has it",
        "the two differ: in an example 3 against 1.67; what is solved, there and here, is (2)",
    ),
)

SLIPS = (
    Item(
        "equation (4), the ball",
        "W_p ≤ θ^p",
        "W_p ≤ θ, as in the set B_p, which is right",
        "read literally, p=2 and θ=.5 would halve the radius",
    ),
    Item(
        "section 3, proximal set-up",
        "ψ = ‖·‖₂",
        "ψ = ½‖·‖₂²",
        "none: ½‖x−x'‖² follows; the order of arguments in D matters for the entropy",
    ),
    Item(
        "equation (10), proximal map of y",
        "argmax with ĥ = −(λ/N)(2x⁺−x)v",
        "the minus belongs to the min form, (12)",
        "as printed nature helps: the optimistic problem is solved, or a stationary point of it",
    ),
    Item(
        "Algorithm 1, offset",
        "τ_ℓ = Σ_{k ≤ (ℓ−1)²} k",
        "Σ_{k ≤ ℓ−1} k² earlier steps",
        "weights: at ℓ=10 the printed offset is 3321, not 285",
    ),
    Item(
        "Algorithm 1, inner loop",
        "t = τ_ℓ … τ_ℓ + T_ℓ",
        "T_ℓ steps, to τ_ℓ + T_ℓ − 1",
        "one step more an epoch",
    ),
    Item(
        "Algorithm 1, averages",
        "from ℓ+1, normalised from τ_ℓ",
        "both over τ_ℓ+1 … τ_ℓ+T_ℓ, as appendix B says",
        "as printed the first average is empty and the weights do not sum to 1",
    ),
    Item(
        "Algorithm 1, step sizes",
        "∝ 1/‖v‖₂, and v₀ = 0 in section 5",
        "at v = 0 the policy goes to the least cost and nature stays",
        "a rule for the first epoch, where the steps are undefined",
    ),
    Item("theorem 1", "the Bellman equation (1)", "(2)", "none"),
    Item("section 4, item 3", "bisection on μ", "on γ", "none"),
    Item("section 5", "S = A, and A = 30", "A = 30", "none at S = 30; other sizes in Figure 2"),
    Item(
        "section 5",
        "A = 3 for forest",
        "2 actions, as in appendix H and the cited package",
        "our forests have two actions",
    ),
    Item(
        "appendix C, dual of d1, twice",
        "−γθ",
        "−γNθ",
        "maximised as printed, Σ_i d ≤ θ: a radius N times too small",
    ),
    Item(
        "appendix C, d1, four cases",
        "(y'+γ−h−α)⁺",
        "(y' − σ(h+α−γ))⁺, printed correctly in (19)",
        "none: the two agree for σ = 1",
    ),
    Item("equation (20)", "(y−y')/(2σ)", "its square", "none: a slip in one display"),
    Item(
        "appendix C, breakpoints",
        "sum += σn(α₂−α₁)",
        "σn(α₁−α₂): α decreases",
        "as printed the sum falls below 0 and the sweep does not stop",
    ),
    Item(
        "appendix C, breakpoints",
        "stop if sum > 1",
        "≥ 1: where every y = ŷ the sum stays 1",
        "as printed the sweep may run out of breakpoints",
    ),
    Item(
        "appendix C, final α",
        "α₂ − (sum−1)/(σn)",
        "α₂ + (sum−1)/(σn)",
        "as printed the row sums to more than 1",
    ),
    Item("appendix C, final α", "mean value theorem", "intermediate value theorem", "none"),
    Item(
        "appendix C, d1",
        "one map takes O(NA²S³ log(1/ε)/ε)",
        "O(NAS log S log(1/ε)), as in proposition 3",
        "none",
    ),
    Item("appendix C, d∞", "γ ∈ ℝ", "γ ≥ 0", "none"),
    Item(
        "appendix C, d∞",
        "bisect for a feasible α",
        "minimise α + φ(α); section 4 says 'optimal α'",
        "a feasible α alone leaves the map open",
    ),
    Item(
        "appendix D, Markovian policies",
        "upper semicontinuous; r_sa",
        "lower semicontinuous; c_sa",
        "none",
    ),
    Item(
        "equation (24)",
        "Σ_i; d for every metric",
        "no sum; for d2 the square, so that the maps of appendix C apply",
        "none",
    ),
    Item("corollary 7", "p = 2, 1, 1", "p = ∞", "none"),
    Item(
        "appendix F, Bellman update",
        "O(S^3.5 A^3.5 log(1/ε))",
        "a factor N^3.5, as in appendix A",
        "none",
    ),
    Item(
        "appendix F, Gauss–Seidel",
        "max_a min_y",
        "min over the simplex, max over y",
        "as printed it is the update for rewards and one action at a time",
    ),
    Item(
        "appendix H, rewards of forest",
        "cut & sell pays 0 at s = 1, and 1 in s ∈ {1, …, S−1}",
        "1 in {2, …, S−1}: the two overlap at s = 1, where it pays 0",
        "none: the text says 'any other state', and so does the cited package",
    ),
    Item(
        "appendix G, machine",
        "repair leads to S−1 and S−2",
        "S−1 and S are the repair states",
        "we use the table of public encodings of the problem: the figures are images, which our text-only copy lacks",
    ),
)

REMARKS = (
    Item(
        "section 3, step sizes",
        "∝ 1/‖v‖₂",
        "true of any v; rows sum to 1, so v may be centred first, which makes steps longer and blind to the level of the costs",
        level,
    ),
    Item(
        "section 3",
        "VI with an inner first-order method would only converge in the value vector",
        "with epochs of ℓ² steps the gap (11) of the last epoch's own average is O(ℓ^−2) = O(T^−2/3) as well: ‖v⁺ − v*‖ ≤ λ‖v − v*‖ + O(ℓ^−2)",
        '`FirstOrder(output="epoch")`; see the theory of Algorithm 1 on the page *The paper, reproduced*',
    ),
    Item(
        "theorem 4",
        "Θ_Y = O(NA)",
        "true; min(NA, 2Nθ²) for (l2, 2) allows other steps for small balls",
        "part of the preset",
    ),
    Item(
        "theorem 4 and section 2.1",
        "bounds in N, A, S and ε",
        "true; the constants hide 1/(1−λ) and ‖c‖",
        "see the study of discounts",
    ),
    Item(
        "remark 5",
        "the rate does not depend on the weight power p, though p=1 performs better than p=0",
        "true of the proved rate; likely once the iterates have converged the average only forgets its start",
        _powers,
    ),
    Item(
        "section 5",
        "stop when (DG) ≤ ε/2",
        "true; (DG) ≤ ε would do. It is a mean over the start, the rule of VI a maximum",
        _weighted,
    ),
    Item(
        "appendix C, d2",
        "γd² in (13), γ/2 in the appendix",
        "either; the search is on Σ‖y−ŷ‖² = Nθ²",
        "a factor 2 in the multiplier, none in the result",
    ),
    Item("appendix F, garnet", "radius √(n_b A)", "smaller radii are shown as well", _saturated),
    Item(
        "remark 6",
        "unclear whether the fast (l1, 1) update for N = 1 extends to N ≥ 2",
        "it does: the set of mean kernels is the ball around the mean of the data",
        "N drops out; proved on the page *Mathematics*",
    ),
)

OURS = (
    Item(
        "support",
        "nature moves mass to any state: Δ(S)",
        'by default only to next states that some kernel has, `support="observed"`; the paper\'s is `support="all"`',
        'a smaller set, and a smaller worst case; the experiments are run with `support="all"`',
    ),
    Item(
        "garnet",
        "rewards in [0, 10]",
        "rewards, and costs in [0, 10] as well: one problem at two levels",
        "see *Garnet, both ways* on the page *The paper, reproduced*",
    ),
    Item(
        "weights",
        "equal",
        "any weights w: the ball is Σ_i w_i d^p ≤ θ^p, and L = λ‖v‖₂‖w‖₂",
        "none for equal weights",
    ),
    Item(
        "the preset", "–", "centred steps, balanced for the ball, last step, another start", _preset
    ),
    Item(
        "certificate",
        "two stopping rules",
        "one for all methods: (DG), re-derived from policy and kernel",
        "every comparison is shown under it and under the printed rules",
    ),
    Item(
        "Anderson",
        "as in the cited work, m = 5",
        "m = 5, safeguarded, and its weights ignore constants in the residual",
        _variants,
    ),
    Item(
        "Gauss–Seidel",
        "‖v − F(v)‖",
        "‖v⁺ − v‖ of a pass under the printed rules; a separate sweep every five passes under one certificate",
        "the sweep counts as work",
    ),
    Item(
        "conic solver",
        "Gurobi, from the last solution",
        "Clarabel (l2) and HiGHS (l1, l∞), built once and updated in place",
        "a ratio to conic methods is a ratio to these solvers",
    ),
)

HEADS = {
    "errors": ("where", "printed", "what we use", "what it changes in practice"),
    "slips": ("where", "printed", "what we use", "what it changes in practice"),
    "remarks": ("where", "the paper", "remark", "what it means in practice"),
    "ours": ("what", "the paper", "here", "what it changes in practice"),
}
KINDS = {"errors": ERRORS, "slips": SLIPS, "remarks": REMARKS, "ours": OURS}
