"""The public suite of s-rectangular robust MDPs of 2026: certified gap and CPU seconds, beside the
seconds that were published.

Ho, Petrik, Wiesemann (arXiv:2602.05591) solve fifteen MDPs with one kernel, discount .99, at three
levels of ambiguity k = .05, .1, .2 by value iteration to a change of 1e-4. The agent maximises,
mass may move to any state, and the actions of a state share a budget:

    l1  Σ_a ‖p_a − p̂_a‖₁ ≤ k        kl    Σ_a Σ p log(p/p̂) ≤ k²/2
    l2  Σ_a ‖p_a − p̂_a‖₂² ≤ k²      burg  Σ_a Σ p̂ log(p̂/p) ≤ k²/2

The instances are read from a folder: an .npz for each with `kernel` and `rewards` (S, A, S),
`initial` (S,) and `discount`, and published_seconds.json with
{"instance|level|set": {"fast": seconds, …}}, if it is there. Without a folder those are made whose rules are public. Our tolerance is a certified gap of
1e-4 in the unit of the rewards; theirs is a change between two iterates, which at .99 leaves 1e-2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drmdp import instances
from drmdp._typing import Array
from drmdp.api import solve
from drmdp.errors import InputError, imported
from drmdp.io import archives
from drmdp.io.archives import Field
from drmdp.model import Model
from drmdp.sets import AmbiguitySet, Divergence, Wasserstein

LEVELS = {"mild": 0.05, "moderate": 0.1, "severe": 0.2}
SETS: dict[str, Callable[[float], AmbiguitySet]] = {
    "l1": lambda k: Wasserstein(k, "l1", 1, support="all"),
    "l2": lambda k: Wasserstein(k, "l2", 2, support="all"),
    "kl": lambda k: Divergence(k * k / 2, "kl", support="all"),
    "burg": lambda k: Divergence(k * k / 2, "burg", support="all"),
}
TOL = 1e-4
FIELDS = {
    "kernel": Field("f", (3,)),
    "rewards": Field("fi", (3,)),
    "initial": Field("f", (1,)),
    "discount": Field("f", (0,)),
}
PUBLISHED = "published_seconds.json"


@dataclass(frozen=True)
class SuiteRow:
    """One problem, or all of them: `solved` of `asked`, the largest gap, sums of seconds."""

    instance: str
    level: str
    set: str
    states: int
    actions: int
    gap: float
    sweeps: float
    seconds: float  # CPU, one thread, after a first run
    published: float | None  # seconds of the authors' own code, on their machine
    solved: int
    asked: int


def suite(folder: Path | None = None) -> Iterator[SuiteRow]:
    """Every instance, level and set, and at last a row for all."""
    models = own_models() if folder is None else stored_models(folder)
    seconds = published(folder) if folder is not None else {}
    rows = []
    for name, model in models:
        for level, k in LEVELS.items():
            for kind, make in SETS.items():
                rows.append(
                    row(model, make(k), (name, level, kind), seconds.get(f"{name}|{level}|{kind}"))
                )
                yield rows[-1]
    theirs = [r.published for r in rows if r.published is not None]
    yield SuiteRow(
        "all",
        "",
        "",
        max(r.states for r in rows),
        max(r.actions for r in rows),
        max(r.gap for r in rows),
        sum(r.sweeps for r in rows),
        sum(r.seconds for r in rows),
        sum(theirs) if theirs else None,
        sum(r.solved for r in rows),
        len(rows),
    )


def row(
    model: Model, ambiguity: AmbiguitySet, names: tuple[str, str, str], theirs: float | None
) -> SuiteRow:
    """Solve one problem twice; the first run loads what is needed, and what a model keeps is
    forgotten in between.
    """
    for _ in range(2):
        model.cache.clear()
        begin = time.process_time()
        found = solve(model, ambiguity, tol=TOL, threads=1)
        seconds = time.process_time() - begin
    solved = int(found.gap <= TOL)
    return SuiteRow(
        *names,
        model.n_states,
        model.n_actions,
        found.gap,
        found.kernel_passes,
        seconds,
        theirs,
        solved,
        1,
    )


# ---------------------------------------------------------------------- instances from a folder


def stored_models(folder: Path) -> Iterator[tuple[str, Model]]:
    """The instances of a folder, in the order of their names."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise InputError(
            f"{folder}: no instances: expected .npz files with the arrays {', '.join(FIELDS)}"
        )
    for file in files:
        try:
            yield file.stem, _read(file)
        except InputError as error:
            raise InputError(f"{file}: {error}") from None


def _read(file: Path) -> Model:
    with archives.opened(file) as archive:
        members = archives.members(archive)
        if set(members) != set(FIELDS):
            raise InputError(
                f"expected the arrays {', '.join(FIELDS)}, got {', '.join(sorted(members)) or 'none'}"
            )
        archives.check_memory(archives.headers(archive, members, FIELDS).values())
        found = {name: archives.load(archive, name, info) for name, info in members.items()}
    discount = float(found["discount"])
    return Model(
        found["kernel"], rewards=found["rewards"], initial=found["initial"], discount=discount
    )


def published(folder: Path) -> dict[str, float]:
    """Seconds of the authors' own code, by "instance|level|set", where there are any."""
    file = folder / PUBLISHED
    if not file.is_file():
        return {}
    document = archives.read_json(file)
    if not isinstance(document, dict) or not all(
        isinstance(times, dict) for times in document.values()
    ):
        raise InputError(
            f"{file}: expected an object of objects with seconds by the name of a program"
        )
    times = {name: programs.get("fast") for name, programs in document.items()}
    for name, value in times.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"{file}: {name}: expected seconds, got {value!r}")
    return {name: float(value) for name, value in times.items() if value is not None}


# ---------------------------------------------------------------------- instances whose rules are
# public


def own_models(discount: float = 0.99) -> Iterator[tuple[str, Model]]:
    """Those whose rules are public; transitions that are never seen earn nothing, and a table goes
    on where an episode would end.
    """
    gymnasium = imported("gymnasium")
    forest = instances.forest(50, discount)
    made: dict[str, Callable[[], tuple[Array, Array]]] = {
        "chain10": lambda: chain(10),
        "cliffwalking": lambda: of_table(gymnasium.make("CliffWalking-v1").unwrapped.P),
        "forest50": lambda: (
            forest.kernels[0],
            -forest.costs[:, :, None] * (forest.kernels[0] > 0),
        ),
        "frozenlake4x4": lambda: of_table(gymnasium.make("FrozenLake-v1").unwrapped.P),
        "frozenlake8x8": lambda: of_table(
            gymnasium.make("FrozenLake-v1", map_name="8x8").unwrapped.P
        ),
        "riverswim20": lambda: riverswim(20),
        "riverswim6": lambda: riverswim(6),
        "taxi": lambda: of_table(gymnasium.make("Taxi-v4").unwrapped.P),
    }
    for name, make in made.items():
        kernel, rewards = make()
        yield name, Model(kernel, rewards=rewards, discount=discount)


def of_table(table: Mapping[int, Mapping[int, Any]]) -> tuple[Array, Array]:
    """Kernel and rewards, (S, A, S), of a table of gymnasium, P[s][a] = [(p, t, reward,
    terminated), …].
    """
    S, A = len(table), len(table[0])
    kernel, rewards = np.zeros((S, A, S)), np.zeros((S, A, S))
    for s, row_of in table.items():
        for a, moves in row_of.items():
            for p, t, reward, _ in moves:
                kernel[s, a, t] += p
                rewards[s, a, t] = reward
    return kernel, rewards


def chain(n: int, slip: float = 0.1) -> tuple[Array, Array]:
    """Walk left or right, or slip the other way; .2 for going left at the left end, 1 for going
    right at the right end.
    """
    kernel, at = np.zeros((n, 2, n)), np.arange(n)
    for a, (toward, away) in enumerate(((at - 1, at + 1), (at + 1, at - 1))):
        for t, p in ((toward, 1 - slip), (away, slip)):
            kernel[at, a, np.clip(t, 0, n - 1)] += p
    return kernel, _earned(kernel, {(0, 0): 0.2, (n - 1, 1): 1.0})


def riverswim(n: int) -> tuple[Array, Array]:
    """Swim with the current, which always succeeds, or against it, .05 forth and .35 back; .005 at
    the spring, 1 for holding the far end.

    After Strehl & Littman (2008), "An analysis of model-based interval estimation for Markov
    decision processes", whose swimmer is carried back as seldom as this one advances.
    """
    kernel, at = np.zeros((n, 2, n)), np.arange(n)
    kernel[at, 0, np.maximum(at - 1, 0)] = 1
    kernel[at, 1, at] = 0.6
    kernel[at[1:-1], 1, at[:-2]], kernel[at[1:-1], 1, at[2:]] = 0.35, 0.05
    kernel[0, 1, 1] = kernel[n - 1, 1, n - 2] = 0.4
    return kernel, _earned(kernel, {(0, 0): 0.005, (n - 1, 1): 1.0})


def _earned(kernel: Array, of_pairs: Mapping[tuple[int, int], float]) -> Array:
    """Rewards (S, A, S) of pairs, for the transitions that are seen."""
    rewards = np.zeros_like(kernel)
    for (s, a), reward in of_pairs.items():
        rewards[s, a, kernel[s, a] > 0] = reward
    return rewards
