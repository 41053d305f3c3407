"""What is printed wrongly in the paper, what we use, and what that changes in practice: measured where the study does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from drmdp.study.judge_theory import slopes
from drmdp.study.rows import Row
from drmdp.study.select import ratios, timed, where

HEAD = ("where", "printed", "what we use", "what it changes in practice")
NEVER = "the printed form does not compute the map: the tests compare ours with conic solvers"


@dataclass(frozen=True)
class Erratum:
    """A correction; `effect` is a sentence, or a function of the rows that writes one."""

    where: str
    printed: str
    used: str
    effect: str | Callable[[list[Row]], str | None]


def judge(rows: list[Row]) -> list[tuple[str, str, str, str]]:
    """All corrections with what they change."""
    found = []
    for own in ERRATA:
        effect = own.effect if isinstance(own.effect, str) else own.effect(rows) or "not measured in this run"
        found.append((own.where, own.printed, own.used, effect))
    return found


def _stopping(rows: list[Row]) -> str | None:
    texts = []
    own = where(rows, study="rules")
    for discount in sorted({row["discount"] for row in own}):
        at = where(own, discount=discount)
        by = {rule: where(at, rule=rule) for rule in ("paper", "puterman", "certified")}
        if all(by.values()):
            sweeps = {rule: float(np.median([row["kernel_passes"] for row in found])) for rule, found in by.items()}
            worst = max(row["loss"] / row["tol"] for row in by["paper"])
            factor = (2 * discount / (1 - discount)) ** 2
            texts.append(
                f"λ={discount:g}: threshold {factor:.3g} times too large, median sweeps {sweeps['paper']:g} printed, {sweeps['puterman']:g} corrected, "
                f"{sweeps['certified']:g} certified; the policy loses up to {worst:.2g} ε"
            )
    return "; ".join(texts) or None


def _weighted(rows: list[Row]) -> str | None:
    own = timed(where(rows, study=("kernels", "states"), rule="duality-gap", method=("algorithm-1", "fast")))
    found = [row["gap"] / row["duality_gap"] for row in own if row.get("duality_gap")]
    return (
        f"at the stop, the worst state's gap was {np.median(found):.2g} times (DG) in the median, up to {max(found):.2g}"
        if found
        else None
    )


def _centred(rows: list[Row]) -> str | None:
    found = ratios(timed(where(rows, study=("kernels", "states"), rule="duality-gap")), "algorithm-1", "fast")
    text = (
        f"the preset, centred and balanced for the ball, is {np.median(found):.2g} times faster in the median"
        if found
        else ""
    )
    return text or None


def _saturated(rows: list[Row]) -> str | None:
    own = where(rows, study=("kernels", "states"), family="garnet", method="exact-vi", rule="duality-gap")
    paper = [row["kernel_passes"] for row in where(own, radius="paper")]
    small = [row["kernel_passes"] for row in where(own, radius=0.1)]
    if not paper or not small:
        return None
    return f"at the paper's radius nature is all but free: VI is certified after {np.median(paper):g} sweeps (median), at .1 after {np.median(small):g}"


def _powers(rows: list[Row]) -> str | None:
    by = {p: slopes(rows, f"algorithm-1 p={p} q=2") for p in (0, 1, 2)}
    if not all(by.values()):
        return None
    return "measured slopes, median: " + ", ".join(f"p={p} {np.median(own):.2f}" for p, own in by.items())


ERRATA = (
    Erratum("stop of VI, sections 2.1 and 5", "‖v − F(v)‖ < 2λε/(1−λ)", "≤ ε(1−λ)/(2λ), or the certified gap", _stopping),
    Erratum("after equation (7)", "a one-step gap ≤ ε/2 at v* makes x ε-optimal", "≤ (1−λ)ε is needed", "2.5 times too large at λ=.8; we certify values"),
    Erratum("section 5", "stop when (DG) ≤ ε/2", "(DG) ≤ ε suffices; it is a mean over the start, the rule of VI a maximum", _weighted),
    Erratum("definition of the ball", "W_p ≤ θ^p", "W_p ≤ θ, as in the set B_p", "for p=2 and θ=.5 the printed ball has half the radius"),
    Erratum("proximal map of y", "argmax with ĥ = −(λ/N)(2x⁺−x)v", "the minus belongs to the min form", "as printed, nature descends: no convergence"),
    Erratum("proximal set-up", "ψ = ‖·‖₂", "ψ = ½‖·‖₂², centred at the last iterate", "with the Euclidean set-up only a factor; it matters for the entropy"),
    Erratum("Algorithm 1, offset", "τ_ℓ = Σ_{k ≤ (ℓ−1)²} k", "Σ_{k ≤ ℓ−1} k² earlier steps", "weights: at ℓ=10 the printed offset is 3321, not 285"),
    Erratum("Algorithm 1, inner loop", "t = τ_ℓ … τ_ℓ + T_ℓ", "T_ℓ steps, to τ_ℓ + T_ℓ − 1", "one step more an epoch"),
    Erratum("Algorithm 1, averages", "from ℓ+1, normalised from τ_ℓ", "both over τ_ℓ+1 … τ_ℓ+T_ℓ", "as printed the weights do not sum to 1"),
    Erratum("step sizes", "∝ 1/‖v‖₂ with v₀ = 0", "a plain step at v = 0; v may be centred", _centred),
    Erratum("theorem 2", "Θ_Y = O(NA)", "min(NA, 2Nθ²) for (l2, 2): rebalance the steps for small balls", "part of the preset, see the line above"),
    Erratum("appendix, duals of d1 and d∞", "−γθ", "−γNθ", NEVER),
    Erratum("appendix, d1, four cases", "(y'+γ−h−α)⁺", "(y' − σ(h+α−γ))⁺", NEVER),
    Erratum("appendix, equation for α", "(y−y')/(2σ)", "its square", NEVER),
    Erratum("appendix, breakpoints", "sum += σn(α₂−α₁)", "σn(α₁−α₂): α decreases", NEVER),
    Erratum("appendix, final α", "α₂ − (sum−1)/(σn)", "α₂ + (sum−1)/(σn)", NEVER),
    Erratum("appendix, end of the sweep", "missing", "past the last breakpoint all entries move; a plateau where every y = ŷ", NEVER),
    Erratum("appendix, d∞", "bisect for a feasible α", "minimise α + φ(α): each kernel has a radius of its own", NEVER),
    Erratum("appendix, d∞ objective", "1/N on both terms", "no 1/N, or γ scaled", NEVER),
    Erratum("appendix, d2", "γd² in the text, γ/2 in the appendix", "one of them; search on Σ‖y−ŷ‖² = Nθ²", "a factor 2 in the multiplier, none in the result"),
    Erratum("corollary for type ∞", "p = 2, 1, 1", "p = ∞", "none"),
    Erratum("Gauss–Seidel", "max_a min_y", "min over the simplex, max over y", "another problem: rewards, and deterministic policies"),
    Erratum("complexity bounds", "hide 1/(1−λ) and ‖c‖", "said where they are quoted", "see the study of discounts"),
    Erratum("remark on weights", "the rate does not depend on p", "the bound does not, the rate does", _powers),
    Erratum("section 5", "A=3 for forest", "2 actions, as in the appendix and the cited package", "our forests have two actions"),
    Erratum("appendix, machine", "repair leads to S−1 and S−2", "to the two repair states S−1 and S", "with S−2, the worst state, repairing would be absurd"),
    Erratum("garnet's radius √(n_b A)", "chosen for denser transitions", "smaller radii as well", _saturated),
)  # fmt: skip
