"""What is run, as data: a scale is a tuple of blocks. Adding an experiment adds a block, not code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from drmdp.sets import PAIRS
from drmdp_lab.paper.blocks import (
    CERTIFIED,
    DOMAINS,
    EPSILON,
    GARNETS,
    INTERVALS,
    PRINTED,
    WORLDS,
    Block,
)
from drmdp_lab.paper.methods import CHANGED, CONIC

OURS = ("exact", "exact-vi", "fast", "algorithm-1")
EXACT = ("exact", "exact-vi", "exact-gs", "exact-anderson", "exact-avi", "fast")
CURVES = tuple(f"algorithm-1 {name}" for name in CHANGED)
STARTS = ("algorithm-1", "algorithm-1 random v", "fast")
BOTH = (CERTIFIED, PRINTED)
CHECKS = ("paper", "puterman", "certified")
SQUARE = (("l1", 1), ("l2", 2), ("linf", math.inf))
"""The pairs of the 2023 baseline."""
PAPER_DOMAINS = tuple(family for family in DOMAINS if family != "garnet-costs")
SIZES = (5, 10, 20, 40, 70)
RADII = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0)
D1_D2 = (("l1", 1), ("l2", 2))
NOMINAL = ("exact", "quantecon", "mdpsolver", "pymdptoolbox")
MAPS = ("map-bisection", "map-newton")
UPDATES = ("exact", "conic-vi", "cvxpy-clarabel", "cvxpy-scs")
FIRST_ORDER_SECONDS = 600.0
"""Every first-order run of the standard scale ends by its own rule well within these."""
CONIC_SECONDS = 60.0
"""Conic runs of the standard scale that are foreseen to take longer are extrapolated."""


def _figures(
    kernels: tuple[int, ...], states: tuple[int, ...], S: int, A: int, N: int, **settings: Any
) -> Iterator[Block]:
    """Figures 1 and 2 with the given methods."""
    yield Block("kernels", tuple((S, A, n) for n in kernels), **settings)
    yield Block("states", tuple((s, A, N) for s in states), **settings)


def _gap(
    kernels: tuple[int, ...], states: tuple[int, ...], n: int, **settings: Any
) -> Iterator[Block]:
    """Figures 3 and 4: the time to compute (DG) to .25 for a given pair."""
    shared: dict[str, Any] = {"families": GARNETS[:1], "task": "gap", "tol": 0.25, **settings}
    methods = ("gap-exact", "gap-conic")
    for name, sizes in (
        ("gap-kernels", [(n, n, own) for own in kernels]),
        ("gap-states", [(s, n, n) for s in states]),
    ):
        yield Block(name, tuple(sizes), methods, pairs=D1_D2, **shared)


def _theory(
    S: int, N: int, sizes: tuple[int, ...], seeds: int = 1, **settings: Any
) -> Iterator[Block]:
    """Rates of convergence, the cost of a step and of a proximal map."""
    yield Block(
        "rates", ((S, S, N),), CURVES, radii=(0.1, "paper"), task="curve", tol=1e-7, **settings
    )
    step: dict[str, Any] = {"families": GARNETS[:1], "radii": (0.3,), "task": "step"}
    for place, letter in enumerate("SAN"):
        shapes = [[sizes[1]] * 3 for _ in sizes]
        for shape, n in zip(shapes, sizes, strict=True):
            shape[place] = n
        grown: Any = tuple(map(tuple, shapes))
        yield Block(f"step-{letter}", grown, ("algorithm-1",), seeds=seeds, **step)
    near: dict[str, Any] = {"families": GARNETS[:1], "radii": (0.002,), "pairs": (("linf", 1),)}
    for accuracy in (1e-2, 1e-4, 1e-6, 1e-8):
        yield Block("maps", ((S, S, N),), MAPS, tol=accuracy, task="map", **near)


def _readings(*sizes: tuple[int, int, int], limits: tuple[float, float]) -> Iterator[Block]:
    """Garnet's two readings; limits of the methods that are ours and of conic ones."""
    first: dict[str, Any] = {"limit": limits[0], "families": GARNETS, "seeds": 5}
    yield Block("readings", sizes, ("exact", "fast", "algorithm-1"), **first)
    yield Block("readings", sizes, ("exact-vi",), rules=BOTH, **first)
    for families, seeds in ((GARNETS[:1], 5), (GARNETS[1:], 1)):
        conic: dict[str, Any] = {"limit": limits[1], "families": families, "seeds": seeds}
        yield Block("readings", sizes, ("conic-vi",), rules=BOTH, **conic)


def _intervals(*sizes: int, **settings: Any) -> Iterator[Block]:
    """Sparse interval models, as Storm reads them: a probability, a total, a discounted cost."""
    shapes = tuple((n, 1, 1) for n in sizes)
    shared: dict[str, Any] = {"radii": (0.05,), "pairs": (INTERVALS,), "rules": ("certified",)}
    for task, discount in (("reach", 1.0), ("total", 1.0), ("total", 0.95)):
        given: dict[str, Any] = {"task": task, "discounts": (discount,), **shared, **settings}
        yield Block("intervals", shapes, ("exact", "storm"), WORLDS, tol=1e-6, **given)


def _quick() -> Iterator[Block]:
    small: dict[str, Any] = {"kernels": (3, 6, 12), "states": (4, 8, 12), "S": 8, "A": 8, "N": 6}
    near: dict[str, Any] = {"radii": (0.1,), "limit": 0.3}
    yield from _figures(**small, methods=OURS)
    yield from _figures(**small, methods=(*CONIC, "exact-vi"), rules=BOTH, limit=0.5)
    yield from _figures(**small, methods=(*OURS, "conic-vi"), radii=(0.1, 0.5), limit=0.5)
    yield Block("growth", tuple((20, 20, n) for n in (20, 40, 80)), ("exact",), seeds=2)
    yield from _gap((2, 4, 8), (4, 6, 8), 5, limit=0.5)
    yield from _theory(8, 3, (6, 12, 24), limit=0.3)
    yield from _readings((8, 8, 6), limits=(5.0, 0.5))
    yield Block("starts", ((8, 8, 5),), STARTS, seeds=2, limit=0.5)
    checks: dict[str, Any] = {"task": "stop", "rules": CHECKS, "tol": EPSILON, "radii": (0.1,)}
    yield Block("rules", ((10, 10, 5),), ("exact-vi",), discounts=(0.8, 0.95), **checks)
    yield Block("radii", ((8, 8, 5),), (*OURS, "conic-vi"), radii=(0.01, 0.1, 1.0), limit=0.5)
    yield Block("discounts", ((10, 10, 5),), EXACT, discounts=(0.8, 0.95, 0.999), **near)
    yield Block("pairs", ((8, 8, 4),), ("exact", "conic-vi"), pairs=SQUARE, **near)
    yield Block("baseline", ((8, 8, 4),), ("exact", "baseline-2023"), pairs=SQUARE, **near)
    yield Block("update", ((8, 8, 4),), UPDATES, **near)
    yield Block("nominal", ((30, 10, 1), (100, 10, 1)), NOMINAL, GARNETS[:1], radii=(0.0,))
    yield from _intervals(100, limit=5.0)


def _standard_figures() -> Iterator[Block]:
    sizes: dict[str, Any] = {"kernels": SIZES, "states": SIZES, "S": 30, "A": 30, "N": 30}
    ours: dict[str, Any] = {**sizes, "methods": OURS, "limit": FIRST_ORDER_SECONDS}
    conic: dict[str, Any] = {**sizes, "rules": BOTH, "limit": CONIC_SECONDS}
    certified: dict[str, Any] = {**conic, "rules": (CERTIFIED,)}
    vi, others = CONIC[:1], CONIC[1:]
    yield from _figures(**ours, families=PAPER_DOMAINS, seeds=5)
    yield from _figures(**ours, families=GARNETS[1:], seeds=2)
    yield from _figures(**conic, methods=("exact-vi",), seeds=2)
    yield from _figures(**conic, methods=vi, families=PAPER_DOMAINS)
    yield from _figures(**certified, methods=vi, families=PAPER_DOMAINS, seeds=2)
    yield from _figures(**certified, methods=vi, families=GARNETS[1:])
    yield from _figures(**conic, methods=others, families=PAPER_DOMAINS)
    yield from _figures(**certified, methods=others, families=PAPER_DOMAINS[1:], seeds=2)
    yield from _figures(**ours, radii=(0.1, 0.5), seeds=2)
    yield from _figures(**certified, methods=vi, families=PAPER_DOMAINS, radii=(0.1, 0.5))


def _standard() -> Iterator[Block]:
    first: dict[str, Any] = {"limit": FIRST_ORDER_SECONDS}
    conic: dict[str, Any] = {"limit": CONIC_SECONDS}
    near: dict[str, Any] = {"radii": (0.1,), **conic}
    vi = CONIC[:1]
    yield from _standard_figures()
    large = tuple((30, 30, n) for n in (50, 100, 200, 400))
    yield Block("growth", large, ("exact",), radii=("paper", 0.1), seeds=5)
    yield from _gap(SIZES, SIZES, 10, seeds=2, **conic)
    yield from _theory(15, 5, (10, 20, 40, 80), seeds=5, limit=30.0)
    sizes = ((10, 30, 30), (30, 30, 10), (30, 30, 30))
    yield from _readings(*sizes, limits=(FIRST_ORDER_SECONDS, CONIC_SECONDS))
    yield Block("starts", ((30, 30, 5), (30, 30, 20), (30, 30, 70)), STARTS, seeds=2, **first)
    checks: dict[str, Any] = {"task": "stop", "rules": CHECKS, "tol": EPSILON, "seeds": 3}
    both: dict[str, Any] = {"discounts": (0.8, 0.95, 0.99), "radii": (0.1, "paper")}
    yield Block("rules", ((30, 30, 10),), ("exact-vi",), **checks, **both)
    yield Block("radii", ((30, 30, 10),), OURS, radii=RADII, seeds=2, **first)
    yield Block("radii", ((30, 30, 10),), vi, PAPER_DOMAINS, radii=RADII, **conic)
    horizons = (0.8, 0.9, 0.95, 0.99, 0.999)
    yield Block("discounts", ((30, 30, 10),), EXACT, discounts=horizons, seeds=2, **near)
    yield Block("pairs", ((20, 20, 10),), OURS, radii=(0.1,), pairs=PAIRS, seeds=2, **first)
    yield Block("pairs", ((20, 20, 10),), vi, pairs=PAIRS, **near)
    theirs = ("exact", "baseline-2023")
    yield Block("baseline", ((20, 20, 10), (30, 30, 30)), theirs, pairs=SQUARE, **near)
    yield Block("update", ((10, 10, 5), (20, 20, 10), (30, 30, 10)), UPDATES, **near)
    ordinary = ((30, 10, 1), (100, 10, 1), (300, 10, 1))
    yield Block("nominal", ordinary, NOMINAL, GARNETS[:1], radii=(0.0,), seeds=5, limit=20.0)
    yield from _intervals(400, 2500, limit=120.0)


def _paper() -> Iterator[Block]:
    """The standard scale with five seeds, an hour a run and every method on both garnets."""
    for block in _standard():
        families = DOMAINS if block.families == PAPER_DOMAINS else block.families
        seeds = 1 if block.families == WORLDS else 5  # those are not drawn
        yield replace(block, families=families, seeds=seeds, limit=3600.0)


SCALES: dict[str, tuple[Block, ...]] = {
    "quick": tuple(_quick()),
    "standard": tuple(_standard()),
    "paper": tuple(_paper()),
}
"""`quick` is a smoke test with every picture and table, `standard` what the documentation shows.
`paper` is everything in full: also what `standard` leaves out to fit in some two hours, seeds of
conic methods and, on garnet with costs, all of them but value iteration.
"""
