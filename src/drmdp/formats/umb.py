"""Unified Markov binaries, ``.umb``, which PRISM and Storm read and write: one tar archive a model,
through the package `umbi` (extra `umb`).

What is read: states, choices with their actions, branches with probabilities or intervals of them,
initial states, and one reward, whose values on states, choices and branches are added up. A state
without choices is terminal. The file holds no discount: give one. Actions are named by the file if
no state has two choices of the same action, and numbered by choice otherwise.

Refused: continuous time, games, observations, several rewards, and in writing more than one kernel
and start distributions that are not uniform on some states. Not held: names of states and kernels,
and notes (a warning says so). Costs are written as negative rewards, and come back as rewards.
"""

from __future__ import annotations

import logging
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.errors import InputError, imported, shown, unexpected
from drmdp.formats._cells import ModelParts, TransitionList, list_held
from drmdp.formats._intervals import BoundedList, check_bounds, list_bounds
from drmdp.formats._options import ReadOptions
from drmdp.formats.prism import WHOLE, check_single
from drmdp.io.archives import decoding
from drmdp.io.files import check_file, memory_limit, open_regular, write_whole
from drmdp.model import Model
from drmdp.sets.intervals import Intervals

HOLDS = frozenset({"actions"})
"""Which names and notes it holds."""
BYTES = 60
"""Bytes in memory of a byte of an archive: umbi makes an object of each number."""


def read(path: Path, options: ReadOptions) -> Model:
    """Read a model."""
    return bounded(path, options).model()


def bounded(path: Path, options: ReadOptions) -> BoundedList:
    """Read transitions whose probabilities may be intervals."""
    options.refuse("base", "initial", "parameters")
    discount = options.needed_discount
    with _opened(path) as file:
        return _taken_over(file, options, discount)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file as umbi reads it; whatever it stumbles over inside is wrong with the file."""
    umbi = imported("umbi", "umb")
    _check_size(path)
    with decoding("not a readable .umb file"), _quiet():
        yield umbi.umb.read(path)


def _taken_over(file: Any, options: ReadOptions, discount: float) -> BoundedList:
    system = file.index.transition_system
    _check_kind(system)
    S = system.num_states
    initial = np.asarray(file.state_is_initial, dtype=np.float64)
    if initial.shape != (S,) or not initial.any():
        got = f"{int(initial.sum())} among {initial.size}"
        raise InputError(f"expected initial states among {S}, got {got}")
    choices, branches = system.num_choices, system.num_branches
    first = _starts("choices of states", file.state_to_choices, S, choices)
    begin = _starts("branches of choices", file.choice_to_branches, choices, branches)
    state = np.repeat(np.arange(S), np.diff(first))  # of each choice
    choice = np.repeat(np.arange(state.size), np.diff(begin))  # of each branch
    target = _ids("next states", file.branch_to_target, choice.size, S)

    def place(k: int) -> str:
        c = choice[k]
        return f"state {state[c]}, choice {c - first[state[c]]}, branch {k - begin[c]}"

    actions, a = _actions(file, system, state, first)
    lower, upper = _bounds(file.branch_to_probability, choice.size, place)
    reward = np.zeros(choice.size)
    if options.rewards:
        reward = _rewards(file, (state[choice], choice), (S, state.size))
    A = len(actions) if actions else int(a.max()) + 1
    cells = TransitionList(state[choice], a[choice], target, lower, reward, place)
    initial /= initial.sum()
    parts = ModelParts(discount, initial, actions=actions, normalize=options.normalize)
    return BoundedList(cells, upper, (S, A), parts)


@contextmanager
def _quiet() -> Iterator[None]:
    """Let umbi raise what it finds wrong, and not log it as well."""
    log = logging.getLogger("umbi")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _check_size(path: Path) -> None:
    """Refuse an archive whose contents do not fit in memory, and what is no archive."""
    with (
        open_regular(path) as stream,
        decoding("not a readable .umb file"),
        tarfile.open(fileobj=stream) as archive,
    ):
        total = sum(member.size for member in archive)
    if total > memory_limit() // BYTES:
        raise InputError(f"{total} bytes of an archive do not fit in memory")


def _check_kind(system: Any) -> None:
    """Refuse what is no discounted MDP."""
    if system.time != "discrete":
        raise InputError(f"time is {system.time}, and a model here has discrete time")
    if system.num_players > 1:
        raise InputError(f"a game of {system.num_players} players is no MDP")
    if system.num_observations:
        raise InputError(f"{system.num_observations} observations: a model here is fully observed")
    if not system.num_branches:
        raise InputError("no transitions")


def _starts(what: str, values: Any, n: int, total: int) -> IntArray:
    """Starts of the parts of n entities, (n + 1,); by default each has one."""
    starts = np.arange(n + 1) if values is None else np.asarray(values, dtype=np.int64)
    fits = starts.shape == (n + 1,) and (starts[0], starts[-1]) == (0, total)
    if not fits or (np.diff(starts) < 0).any():
        raise InputError(f"{what}: expected {n + 1} numbers that ascend from 0 to {total}")
    return starts


def _ids(what: str, values: Any, n: int, below: int) -> IntArray:
    ids = np.asarray([] if values is None else values, dtype=np.int64)
    if ids.shape != (n,) or (n and not 0 <= ids.min() <= ids.max() < below):
        raise InputError(f"{what}: expected {n} numbers from 0 to {below - 1}")
    return ids


def _actions(
    file: Any, system: Any, state: IntArray, first: IntArray
) -> tuple[list[Any] | None, IntArray]:
    """Names of the actions, and the action of each choice."""
    ordinal = np.arange(state.size) - first[state]
    A, names = system.num_choice_actions, file.choice_action_to_string
    if not A:
        return None, ordinal
    a = _ids("actions of choices", file.choice_to_choice_action, state.size, A)
    if np.unique(state * A + a).size < state.size:
        return None, ordinal
    if names is None:
        return list(range(A)), a
    if len(names) != A:
        raise InputError(f"names of actions: expected {A}, got {len(names)}")
    return ([int(name) for name in names] if all(map(WHOLE.fullmatch, names)) else list(names)), a


def _bounds(probabilities: Any, n: int, place: Any) -> tuple[Array, Array]:
    """Lower and upper bounds of the probabilities of the branches; 1 where none are given."""
    if probabilities is None:
        return np.ones(n), np.ones(n)
    if len(probabilities) != n:
        raise InputError(f"probabilities: expected {n}, got {len(probabilities)}")
    lower, upper = np.empty(n), np.empty(n)
    for k, p in enumerate(probabilities):
        lower[k], upper[k] = float(getattr(p, "left", p)), float(getattr(p, "right", p))
        check_bounds(place(k), lower[k], upper[k], shown(p))
    return lower, upper


def _rewards(file: Any, of: tuple[IntArray, IntArray], sizes: tuple[int, int]) -> Array:
    """Reward of each branch; `of` are its state and its choice."""
    rewards = (file.annotations or {}).get("rewards", {})
    if len(rewards) != 1:
        raise InputError(f"expected one reward, got {', '.join(map(shown, rewards)) or 'none'}")
    n, (values,) = of[0].size, rewards.values()
    total = np.zeros(n)
    places = dict(zip(("states", "choices"), zip(of, sizes, strict=True), strict=True))
    places["branches"] = np.arange(n), n
    for kind, numbers in values.items():
        at, size = places.get(kind, (None, 0))
        if at is None or len(numbers) != size or any(hasattr(value, "left") for value in numbers):
            got = f"{len(numbers)} values"
            raise InputError(f"reward: expected a number for each of {size} {kind}, got {got}")
        total += np.asarray([float(value) for value in numbers])[at]
    for value in total[~np.isfinite(total)][:1]:
        raise InputError(f"reward: expected finite numbers, got {value!r}")
    return total


def labels(path: Path, S: int) -> dict[str, BoolArray]:
    """States of each label, (S,)."""
    with _opened(path) as file:
        annotated = (file.annotations or {}).get("aps", {})
        by_label = {name: np.asarray(part["states"], bool) for name, part in annotated.items()}
    for name, flags in by_label.items():
        if flags.shape != (S,):
            raise unexpected(f"label {name!r}", f"a flag for each of {S} states", flags.size)
    return by_label


# ---------------------------------------------------------------------- writing


def write(model: Model, path: Path) -> None:
    """Write a model, its rewards and its initial states."""
    check_single(model, "UMB")
    _write(model, list_held(model, "UMB"), path)


def write_intervals(model: Model, intervals: Intervals, path: Path) -> None:
    """Write a model and bounds on its probabilities; its kernel is not written."""
    interval = imported("umbi.datatypes", "umb").Interval
    check_single(model, "UMB", kernels=False)
    bounded = list_bounds(model, intervals)
    cells = [(s, a, t, interval(low, high), reward) for s, a, t, low, high, reward in bounded]
    _write(model, cells, path)


def _write(model: Model, cells: list[tuple[int, int, int, Any, float]], path: Path) -> None:
    """Write transitions: state, action, next state, probability and reward."""
    umbi = imported("umbi", "umb")
    ats = umbi.ats.ExplicitAts(num_players=1, num_choice_actions=model.n_actions)
    ats.state_to_player = [0] * model.n_states
    ats.choice_action_to_name = [str(name) for name in model.actions]
    for _ in range(model.n_states):
        ats.add_state()
    ats.set_initial_states(np.flatnonzero(model.initial > 0).tolist())
    rewards: list[float] = []
    for (s, a), branches in groupby(cells, itemgetter(0, 1)):  # they are in order
        choice = ats.add_state_choice(s)
        choice.action = a
        for _, _, t, p, reward in branches:
            choice.add_branch(t, p)
            rewards.append(reward)
    ats.add_reward_annotation("reward").set_branch_values(rewards)

    def store(stream: IO[bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "model.umb"
            umbi.ats.write(ats, target)
            stream.write(target.read_bytes())

    write_whole(path, store)


check_target = check_file
