"""What the paper claims, what the rows say, and the verdict: a function of the rows wherever it can
be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drmdp_lab.paper.pages import judge_stopping, judge_theory, judge_times
from drmdp_lab.paper.pages.verdicts import UNKNOWN, Finding
from drmdp_lab.paper.records import Row

HEAD = ("where", "the paper's claim", "what we measured", "verdict")


@dataclass(frozen=True)
class Claim:
    """One claim and the function that judges it; it returns what was measured and the verdict, or
    None without rows.
    """

    where: str
    text: str
    judge: Callable[[list[Row]], Finding | None]


def judge(rows: list[Row]) -> list[tuple[str, str, str, str]]:
    """All claims."""
    return [(claim.where, claim.text, *(claim.judge(rows) or ("–", UNKNOWN))) for claim in CLAIMS]


def _theory(text: str) -> Callable[[list[Row]], Finding | None]:
    return lambda rows: (text, "proved; the tests check it")


CLAIMS = (
    Claim(
        "abstract, theorem 4",
        "O(N A^2.5 S^3.5 log S log(1/ε) ε^−1.5) operations; a step in all states is O(N A S² log S)",
        judge_theory.step_exponents,
    ),
    Claim("abstract", "existing methods: O(N^3.5 …)", judge_times.conic_growth),
    Claim("abstract", "existing methods: O(… S^4.5 …)", judge_times.conic_states),
    Claim(
        "abstract",
        "significantly more scalable than the state of the art across several domains",
        judge_times.scalable,
    ),
    Claim(
        "introduction",
        "to the best of the authors' knowledge, the best convergence rates in N, S and A for Wasserstein DR-MDPs",
        judge_times.best_rates,
    ),
    Claim("introduction", "better than VI by a factor O(N^2.5 A S)", judge_times.advantage),
    Claim(
        "introduction",
        "at least twice as fast as VI even for S=10, N=A=30 and N=10, S=A=30",
        judge_times.small,
    ),
    Claim(
        "introduction, section 5",
        "as instances get larger, much faster than all the variants of VI",
        judge_times.gap_grows,
    ),
    Claim(
        "section 2.1",
        "F is a contraction of factor λ, VI converges linearly",
        _theory("contraction and agreement with conic solvers, all six balls"),
    ),
    Claim(
        "sections 2.1, 5",
        "‖v − F(v)‖ < 2λε/(1−λ) gives an ε-optimal policy",
        judge_stopping.stop_rule,
    ),
    Claim(
        "section 3",
        "VI with an inner first-order method would only converge in the value vector",
        judge_theory.inner_method,
    ),
    Claim("theorem 1", "the one-step gap (11) falls as O(T^−2/3)", judge_theory.rate),
    Claim("remark 2", "Mirror Prox would yield a similar rate", judge_theory.mirror_prox),
    Claim("remark 2", "Mirror Descent would yield a slower rate", judge_theory.mirror_descent),
    Claim(
        "proposition 3",
        "for d1 and d2 the proximal map takes O(N A S log S log(1/ε)), nearly linear",
        judge_theory.step_exponents,
    ),
    Claim("proposition 3", "for d∞ it takes O(N A S log S log³(1/ε))", judge_theory.evaluations),
    Claim(
        "remark 5",
        "epochs of ℓ^q steps with a larger q approach ε^−1 (implied: O(T^−q/(q+1)))",
        judge_theory.epochs,
    ),
    Claim(
        "remark 5",
        "the convergence rate does not depend on the weight power p",
        judge_theory.weights,
    ),
    Claim("remark 5", "numerically p=1 performs better than p=0", judge_theory.weight_one),
    Claim("section 5", "(DG) ≤ ε/2 ensures an ε-optimal policy", judge_stopping.gap_rule),
    Claim("section 5", "faster than VI, Gauss–Seidel, Anderson and AVI", judge_times.variants),
    Claim("section 5", "similar times for very small instances (S=5, A=2, N=30)", judge_times.tiny),
    Claim("section 5", "garnet S=A=30: 1.6 s at N=5, 120.2 s at N=70", judge_times.times),
    Claim("section 5", "the time of Algorithm 1 grows linearly with N", judge_times.linear),
    Claim(
        "section 5",
        "the other methods' times grow almost linearly with N too",
        judge_times.others_linear,
    ),
    Claim(
        "section 5",
        "all methods are slower on garnet than on machine and forest",
        judge_times.garnet_slow,
    ),
    Claim("appendix E", "computing (DG) quickly becomes slow", judge_stopping.gap_time),
    Claim("appendix E", "(DG) takes longer with d1 than with d2", judge_stopping.d1_d2),
    Claim(
        "appendix F",
        "θ=.5 is representative of .1, .5, 1 and 2 (machine, forest)",
        judge_times.representative,
    ),
)
"""Numbered as in the arXiv source, where theorem, proposition, remark and corollary share a
counter.
"""
