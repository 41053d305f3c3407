"""Blocks of instances × methods × rules × seeds, from code or a file, and the runs they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from drmdp.errors import InputError, shown
from drmdp.io.archives import read_json
from drmdp.sets import PAIRS
from drmdp_lab.paper.methods import METHODS

EPSILON = 0.1
"""The paper's ε."""
TASKS = ("solve", "stop", "gap", "curve", "step", "map", "reach", "total")
GARNETS = ("garnet-rewards", "garnet-costs")
"""Garnet with rewards in [0, 10], as in the paper, and with costs in [0, 10]: one problem at two
levels.
"""
DOMAINS = (*GARNETS, "machine", "forest")
WORLDS = ("grid", "light", "maze")
"""Sparse models of `drmdp_lab.large` whose probabilities lie between bounds."""
ACTIONS = {"machine": 2, "forest": 2, "grid": 4, "light": 3, "maze": 4}  # garnet's are chosen
INTERVALS = ("intervals", 1.0)
"""What stands in the place of a ball's metric and order where the set is one of intervals."""
CERTIFIED, PRINTED = "duality-gap", "printed"
RULES = (CERTIFIED, PRINTED, "certified", "puterman", "paper")
"""`printed` is what the paper prints for each method: (DG) ≤ ε/2 for Algorithm 1, the inverted
residual rule at ε for the others, whose residual is ‖F(v) − v‖, and ‖v⁺ − v‖ for a pass of
Gauss–Seidel."""


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
        return f"{self.study}|{self.settings}"

    @property
    def settings(self) -> str:
        """What is measured, whatever study it is in."""
        values = [getattr(self, name) for name in _SETTINGS]
        return "|".join(
            f"{value:g}" if isinstance(value, float) else str(value) for value in values
        )

    @property
    def instance(self) -> str:
        """What runs on the same model and ball have in common."""
        return "|".join(str(getattr(self, name)) for name in _INSTANCE)

    @property
    def numbers(self) -> int:
        """Probabilities that the kernels hold."""
        return self.n_kernels * self.n_actions * self.n_states**2


_SETTINGS = tuple(field.name for field in fields(Run) if field.name not in ("study", "limit"))
_INSTANCE = (
    "family",
    "n_states",
    "n_actions",
    "n_kernels",
    "discount",
    "metric",
    "order",
    "radius",
    "seed",
)


@dataclass(frozen=True)
class Block:
    """A product of settings; `sizes` are (S, A, N), where A counts for garnet only; a radius may be
    "paper".
    """

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
            ("task", (self.task,), TASKS),
            ("methods", self.methods, tuple(METHODS)),
            ("families", self.families, (*DOMAINS, *WORLDS)),
            ("rules", self.rules, RULES),
            ("pairs", self.pairs, (*PAIRS, INTERVALS)),
        ):
            for value in given:
                if value not in known:
                    raise InputError(f"{self.study}: unknown value {shown(value)} in {name}")
        for radius in self.radii:
            if radius != "paper" and not (
                isinstance(radius, int | float) and 0 <= radius < math.inf
            ):
                raise InputError(
                    f'{self.study}: radii are "paper" or numbers from 0 on, got {shown(radius)}'
                )
        for size in self.sizes:
            if len(size) != 3 or not all(isinstance(n, int) and n >= 1 for n in size):
                raise InputError(
                    f"{self.study}: sizes are (states, actions, kernels), got {shown(size)}"
                )

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
                self.study,
                self.task,
                family,
                S,
                own,
                N,
                discount,
                metric,
                float(order),
                size,
                method,
                rule,
                self.tol,
                seed,
                self.limit,
            )


def paper_radius(family: str, n_actions: int) -> float:
    """√(n_b A) for garnet, .5 otherwise."""
    return round(math.sqrt(0.2 * n_actions), 6) if family in GARNETS else 0.5


def expand(blocks: tuple[Block, ...], only: tuple[str, ...] = ()) -> list[Run]:
    """All runs, each once, in the order of a pass: all cells with the first seed, then with the
    next, so that the runs of a cell are spread over the pass; cheap instances first, and the methods
    of an instance together. Studies that share a run share the longest of their limits.
    """
    known = {block.study for block in blocks}
    for name in only:
        if name not in known:
            raise InputError(f"unknown study {shown(name)}; known: {', '.join(sorted(known))}")
    runs: dict[str, Run] = {}
    limits: dict[str, float] = {}
    for block in blocks:
        if not only or block.study in only:
            for run in block.runs():
                runs.setdefault(run.key, run)
                limits[run.settings] = max(run.limit, limits.get(run.settings, 0.0))
    return sorted(
        (replace(run, limit=limits[run.settings]) for run in runs.values()),
        key=lambda run: (run.seed, run.numbers, run.n_states, run.instance, run.study),
    )


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
