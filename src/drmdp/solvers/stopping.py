"""Stopping rules: pure functions of a record.

`certified` is the two-sided bound of `drmdp.certificate.dense`: no state is farther than tol from
optimal. `puterman` is the classical ‖F(v) − v‖ ≤ tol (1−λ)/(2λ), which promises the same and needs
many more sweeps. `paper` is the rule as printed, ‖F(v) − v‖ < 2 λ tol/(1−λ), with its fraction
upside down; it promises nothing and is here to reproduce the paper. `duality-gap` is the paper's
(DG), the certified gap weighted by the start distribution instead of its maximum.
"""

from __future__ import annotations

from collections.abc import Callable

from drmdp.solution import Record

Rule = Callable[[Record, float, float], bool]


def certified(record: Record, tol: float, discount: float) -> bool:
    """Gap within tol."""
    return record.gap <= tol


def puterman(record: Record, tol: float, discount: float) -> bool:
    """Residual within tol (1−λ)/(2λ)."""
    return 2 * discount * record.residual <= tol * (1 - discount)


def paper(record: Record, tol: float, discount: float) -> bool:
    """Residual below 2 λ tol/(1−λ): wrong, for reproduction only."""
    return (1 - discount) * record.residual < 2 * discount * tol


def duality_gap(record: Record, tol: float, discount: float) -> bool:
    """Gap within tol, weighted by the start distribution."""
    return record.upper - record.lower <= tol


RULES: dict[str, Rule] = {
    "certified": certified,
    "puterman": puterman,
    "paper": paper,
    "duality-gap": duality_gap,
}
CERTIFYING = ("certified", "duality-gap")
"""Rules on the bounds themselves: a run goes on until the re-derived bounds satisfy them."""
