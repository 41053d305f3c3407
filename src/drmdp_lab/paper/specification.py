"""What is run, as data: blocks of instances × methods × rules × seeds, expanded into runs.

A scale is a tuple of blocks. Adding an experiment adds a block, not code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from drmdp.core.archives import read_json
from drmdp.errors import InputError, shown
from drmdp.sets import PAIRS
from drmdp_lab.paper.methods import CHANGED, CONIC, METHODS

EPSILON = 0.1
"""The paper's ε."""
TASKS = ("solve", "stop", "gap", "curve", "step", "map")
GARNETS = ("garnet-rewards", "garnet-costs")
"""Garnet with rewards in [0, 10], as in the paper, and with costs in [0, 10]: one problem at two levels."""
DOMAINS = (*GARNETS, "machine", "forest")
ACTIONS = {"machine": 2, "forest": 2}  # garnet's are chosen
CERTIFIED, PRINTED = "duality-gap", "printed"
RULES = (CERTIFIED, PRINTED, "certified", "puterman", "paper")
"""`printed` is what the paper prints for each method: (DG) ≤ ε/2 for Algorithm 1, the inverted residual rule at ε for the others, whose residual is
‖F(v) − v‖, and ‖v⁺ − v‖ for a pass of Gauss–Seidel."""


@dataclass(frozen=True)
class Run:
    """One measurement; every field but the limit is part of its key."""

    study: str
    task: str
    family: str
    n_states: int
    n_actions: int
    n_kernels: int
    discount: float
    metric: str
    order: float
    radius: float
    method: str
    rule: str
    tol: float
    seed: int
    limit: float  # seconds; beyond it a run is cut off, or extrapolated where that is known before

    @property
    def key(self) -> str:
        """What decides whether a run is done."""
        values = [getattr(self, name) for name in _KEY]
        return "|".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)

    @property
    def instance(self) -> str:
        """What runs on the same model and ball have in common."""
        return "|".join(str(getattr(self, name)) for name in _INSTANCE)

    @property
    def numbers(self) -> int:
        """Probabilities that the kernels hold."""
        return self.n_kernels * self.n_actions * self.n_states**2


_KEY = tuple(field.name for field in fields(Run) if field.name != "limit")
_INSTANCE = ("family", "n_states", "n_actions", "n_kernels", "discount", "metric", "order", "radius", "seed")


@dataclass(frozen=True)
class Block:
    """A product of settings; `sizes` are (S, A, N), where A counts for garnet only; a radius may be "paper"."""

    study: str
    sizes: tuple[tuple[int, int, int], ...]
    methods: tuple[str, ...]
    families: tuple[str, ...] = DOMAINS
    radii: tuple[float | str, ...] = ("paper",)
    seeds: int = 1
    rules: tuple[str, ...] = (CERTIFIED,)
    discounts: tuple[float, ...] = (0.8,)
    pairs: tuple[tuple[str, float], ...] = (("l2", 2),)
    tol: float = EPSILON / 2
    task: str = "solve"
    limit: float = 5.0

    def __post_init__(self) -> None:
        for name, given, known in (
            ("task", (self.task,), TASKS), ("methods", self.methods, tuple(METHODS)), ("families", self.families, DOMAINS),
            ("rules", self.rules, RULES), ("pairs", self.pairs, PAIRS),
        ):  # fmt: skip
            for value in given:
                if value not in known:
                    raise InputError(f"{self.study}: unknown value {shown(value)} in {name}")
        for radius in self.radii:
            if radius != "paper" and not (isinstance(radius, int | float) and 0 <= radius < math.inf):
                raise InputError(f'{self.study}: radii are "paper" or numbers from 0 on, got {shown(radius)}')
        for size in self.sizes:
            if len(size) != 3 or not all(isinstance(n, int) and n >= 1 for n in size):
                raise InputError(f"{self.study}: sizes are (states, actions, kernels), got {shown(size)}")

    def runs(self) -> Iterator[Run]:
        """All of them."""
        for (S, A, N), family, radius, discount, (metric, order), method, rule, seed in product(
            self.sizes,
            self.families,
            self.radii,
            self.discounts,
            self.pairs,
            self.methods,
            self.rules,
            range(self.seeds),
        ):
            own = ACTIONS.get(family, A)
            size = paper_radius(family, own) if radius == "paper" else float(radius)
            yield Run(
                self.study, self.task, family, S, own, N, discount, metric, float(order), size, method, rule,
                self.tol, seed, self.limit,
            )  # fmt: skip


def paper_radius(family: str, n_actions: int) -> float:
    """√(n_b A) for garnet, .5 otherwise."""
    return round(math.sqrt(0.2 * n_actions), 6) if family in GARNETS else 0.5


OURS = ("exact", "exact-vi", "fast", "algorithm-1")
EXACT = ("exact", "exact-vi", "exact-gs", "exact-anderson", "exact-avi", "fast")
CURVES = tuple(f"algorithm-1 {name}" for name in CHANGED)
STARTS = ("algorithm-1", "algorithm-1 random v", "fast")
BOTH = (CERTIFIED, PRINTED)
CHECKS = ("paper", "puterman", "certified")
SQUARE = (("l1", 1), ("l2", 2), ("linf", math.inf))
"""The pairs of the 2023 baseline."""


def _figures(
    kernels: tuple[int, ...], states: tuple[int, ...], S: int, A: int, N: int, **settings: Any
) -> Iterator[Block]:
    """Figures 1 and 2 with the given methods."""
    yield Block("kernels", tuple((S, A, n) for n in kernels), **settings)
    yield Block("states", tuple((s, A, N) for s in states), **settings)


def _gap(kernels: tuple[int, ...], states: tuple[int, ...], n: int, **settings: Any) -> Iterator[Block]:
    """Figures 3 and 4: the time to compute (DG) to .25 for a given pair."""
    shared: dict[str, Any] = {"families": GARNETS[:1], "task": "gap", "tol": 0.25, **settings}
    for name, sizes in (("gap-kernels", [(n, n, own) for own in kernels]), ("gap-states", [(s, n, n) for s in states])):
        yield Block(name, tuple(sizes), **shared)


def _theory(S: int, N: int, sizes: tuple[int, ...], **settings: Any) -> Iterator[Block]:
    """Rates of convergence, the cost of a step and of a proximal map."""
    yield Block("rates", ((S, S, N),), CURVES, radii=(0.1, "paper"), task="curve", tol=1e-7, **settings)
    for letter in "NSA":
        own = tuple(tuple(n if letter == other else sizes[1] for other in "SAN") for n in sizes)
        yield Block(f"step-{letter}", own, ("algorithm-1",), GARNETS[:1], (0.3,), task="step")  # type: ignore[arg-type]
    for accuracy in (1e-2, 1e-4, 1e-6, 1e-8):
        yield Block("maps", ((S, S, N),), MAPS, GARNETS[:1], (0.002,), pairs=(("linf", 1),), tol=accuracy, task="map")


def _readings(*sizes: tuple[int, int, int], limits: tuple[float, float]) -> Iterator[Block]:
    """Garnet's two readings, five seeds; limits of the methods that are ours and of conic ones."""
    settings: dict[str, Any] = {"families": GARNETS, "seeds": 5}
    yield Block("readings", sizes, ("exact", "fast", "algorithm-1"), limit=limits[0], **settings)
    yield Block("readings", sizes, ("exact-vi", "conic-vi"), rules=BOTH, limit=limits[1], **settings)


SIZES = (5, 10, 20, 40, 70)
RADII = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0)
D1_D2 = (("l1", 1), ("l2", 2))
NOMINAL = ("exact", "quantecon", "mdpsolver")
MAPS = ("map-bisection", "map-newton")
UPDATES = ("exact", "conic-vi", "cvxpy-clarabel", "cvxpy-scs")
CONIC_SECONDS = 15.0
"""Conic runs of the standard scale that take longer are extrapolated: with these, the whole scale takes an hour or so of a core."""

SCALES: dict[str, tuple[Block, ...]] = {
    "quick": (
        *_figures((3, 6, 12), (4, 8, 12), 8, 8, 6, methods=OURS),
        *_figures((3, 6, 12), (4, 8, 12), 8, 8, 6, methods=(*CONIC, "exact-vi"), rules=BOTH, limit=0.5),
        *_figures((3, 6, 12), (4, 8, 12), 8, 8, 6, methods=(*OURS, "conic-vi"), radii=(0.1, 0.5), limit=0.5),
        Block("growth", tuple((20, 20, n) for n in (20, 40, 80)), ("exact",), seeds=2),
        *_gap((2, 4, 8), (4, 6, 8), 5, methods=("gap-exact", "gap-conic"), limit=0.5, pairs=D1_D2),
        *_theory(8, 3, (6, 12, 24), limit=0.3),
        *_readings((8, 8, 6), limits=(5.0, 0.5)),
        Block("starts", ((8, 8, 5),), STARTS, seeds=2, limit=0.5),
        Block("rules", ((10, 10, 5),), ("exact-vi",), task="stop", rules=CHECKS, discounts=(0.8, 0.95), tol=EPSILON, radii=(0.1,)),
        Block("radii", ((8, 8, 5),), (*OURS, "conic-vi"), radii=(0.01, 0.1, 1.0), limit=0.5),
        Block("discounts", ((10, 10, 5),), EXACT, discounts=(0.8, 0.95, 0.999), radii=(0.1,), limit=0.5),
        Block("pairs", ((8, 8, 4),), ("exact", "conic-vi"), radii=(0.1,), pairs=SQUARE, limit=0.3),
        Block("baseline", ((8, 8, 4),), ("exact", "baseline-2023"), radii=(0.1,), pairs=SQUARE, limit=0.3),
        Block("update", ((8, 8, 4),), UPDATES, radii=(0.1,), limit=0.3),
        Block("nominal", ((30, 10, 1), (100, 10, 1)), NOMINAL, GARNETS[:1], radii=(0.0,)),
    ),
    "standard": (
        *_figures(SIZES, SIZES, 30, 30, 30, methods=OURS, seeds=5, limit=30.0),
        *_figures(SIZES, SIZES, 30, 30, 30, methods=(*CONIC, "exact-vi"), rules=BOTH, seeds=2, limit=CONIC_SECONDS),
        *_figures(SIZES, SIZES, 30, 30, 30, methods=OURS, radii=(0.1, 0.5), seeds=2, limit=30.0),
        *_figures(SIZES, SIZES, 30, 30, 30, methods=("conic-vi",), radii=(0.1, 0.5), limit=CONIC_SECONDS),
        Block("growth", tuple((30, 30, n) for n in (50, 100, 200, 400)), ("exact",), radii=("paper", 0.1), seeds=5),
        *_gap(SIZES, SIZES, 10, methods=("gap-exact", "gap-conic"), seeds=2, limit=4.0, pairs=D1_D2),
        *_theory(15, 5, (10, 20, 40, 80), limit=4.0),
        *_readings((10, 30, 30), (30, 30, 10), (30, 30, 30), limits=(30.0, CONIC_SECONDS)),
        Block("starts", ((30, 30, 5), (30, 30, 20), (30, 30, 70)), STARTS, seeds=2, limit=60.0),
        Block("rules", ((30, 30, 10),), ("exact-vi",), task="stop", rules=CHECKS, discounts=(0.8, 0.95, 0.99), tol=EPSILON, radii=(0.1, "paper"), seeds=3),
        Block("radii", ((30, 30, 10),), OURS, radii=RADII, seeds=2, limit=30.0),
        Block("radii", ((30, 30, 10),), ("conic-vi",), radii=RADII, limit=CONIC_SECONDS),
        Block("discounts", ((30, 30, 10),), EXACT, discounts=(0.8, 0.9, 0.95, 0.99, 0.999), radii=(0.1,), seeds=2, limit=3.0),
        Block("pairs", ((20, 20, 10),), OURS, radii=(0.1,), pairs=PAIRS, seeds=2, limit=10.0),
        Block("pairs", ((20, 20, 10),), ("conic-vi",), radii=(0.1,), pairs=PAIRS, limit=CONIC_SECONDS),
        Block("baseline", ((20, 20, 10), (30, 30, 30)), ("exact", "baseline-2023"), radii=(0.1,), pairs=SQUARE, limit=3.0),
        Block("update", ((10, 10, 5), (20, 20, 10), (30, 30, 10)), UPDATES, radii=(0.1,), limit=3.0),
        Block("nominal", ((30, 10, 1), (100, 10, 1), (300, 10, 1)), NOMINAL, GARNETS[:1], radii=(0.0,), seeds=3, limit=20.0),
    ),
}  # fmt: skip
"""`quick` is a smoke test with every picture and table, `standard` what the documentation shows, `paper` everything in full."""


def _paper() -> tuple[Block, ...]:
    """The standard scale with five seeds and an hour a run for every method."""
    return tuple(
        Block(**{**{field.name: getattr(block, field.name) for field in fields(Block)}, "seeds": 5, "limit": 3600.0})
        for block in SCALES["standard"]
    )


SCALES["paper"] = _paper()


def expand(blocks: tuple[Block, ...], only: tuple[str, ...] = ()) -> list[Run]:
    """All runs, each once, cheap instances first, the methods of an instance together."""
    known = {block.study for block in blocks}
    for name in only:
        if name not in known:
            raise InputError(f"unknown study {shown(name)}; known: {', '.join(sorted(known))}")
    found: dict[str, Run] = {}
    for block in blocks:
        if not only or block.study in only:
            for run in block.runs():
                found.setdefault(run.key, run)
    return sorted(found.values(), key=lambda run: (run.numbers, run.n_states, run.instance, run.study))


def load(path: str | Path) -> tuple[Block, ...]:
    """Blocks from a JSON file: a list of objects with the fields of `Block`."""
    try:
        document = read_json(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(document, list) or not all(isinstance(block, dict) for block in document):
        raise InputError(f"{path}: expected a list of objects, one a block")
    return tuple(_block(path, number, block) for number, block in enumerate(document))


def _block(path: str | Path, number: int, given: dict[str, Any]) -> Block:
    """One block, its lists as tuples and "inf" as a number."""
    names = {field.name for field in fields(Block)}
    if unknown := sorted(set(given) - names):
        raise InputError(
            f"{path}: block {number}: unknown field {shown(unknown[0])}; known: {', '.join(sorted(names))}"
        )
    try:
        return Block(**{name: _frozen(value) for name, value in given.items()})
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: block {number}: {error}") from None


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_frozen(own) for own in value)
    return math.inf if value == "inf" else value
