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
RULES: dict[str, Rule] = {
    "certified": lambda record, tol, discount: record.gap <= tol,
    "puterman": lambda record, tol, discount: (
        2 * discount * record.residual <= tol * (1 - discount)
    ),
    "paper": lambda record, tol, discount: (
        (1 - discount) * record.residual < 2 * discount * tol  # wrong, for reproduction only
    ),
    "duality-gap": lambda record, tol, discount: record.upper - record.lower <= tol,
}
"""Whether a record is good enough for a tolerance, at a discount."""
CERTIFYING = ("certified", "duality-gap")
"""Rules on the bounds themselves: a run goes on until the re-derived bounds satisfy them."""
