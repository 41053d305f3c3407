"""Unified Markov binaries, ``.umb``, which PRISM and Storm read and write: one tar archive a model, through the package `umbi` (extra `umb`).

What is read: states, choices with their actions, branches with probabilities or intervals of them, initial states, and one reward, whose values on states,
choices and branches are added up. A state without choices is terminal. The file holds no discount: give one. Actions are named by the file if no state
has two choices of the same action, and numbered by choice otherwise.

Refused: continuous time, games, observations, several rewards, and in writing more than one kernel and start distributions that are not uniform on some
states. Not held: names of states and kernels, and notes (a warning says so). Costs are written as negative rewards, and come back as rewards.
"""

from __future__ import annotations

import logging
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.archives import decoding
from drmdp.core.files import check_file, memory_limit, open_regular, write_whole
from drmdp.errors import InputError, imported, shown
from drmdp.formats._bounded import check_bounds, list_bounds, model_between
from drmdp.formats._cells import Cells, Parts, list_cells, model_of
from drmdp.formats._options import Options
from drmdp.formats.prism import WHOLE, check_single
from drmdp.model import Model
from drmdp.sets.intervals import Intervals

HOLDS = frozenset({"actions"})
"""Which names and notes it holds."""
BYTES = 60
"""Bytes in memory of a byte of an archive: umbi makes an object of each number."""
Choices = dict[tuple[int, int], list[tuple[int, Any, float]]]
"""Next state, probability and reward of each transition, by state and action."""


def read(path: Path, options: Options) -> Model:
    """Read a model."""
    cells, upper, shape, parts = _parts(path, options)
    wide = cells.p < upper
    if wide.any():
        k = int(np.argmax(wide))
        interval = f"[{cells.p[k]:g},{upper[k]:g}]"
        raise InputError(f"{cells.place(k)}: {interval} is an interval: `read_intervals` reads those")
    return model_of(cells, (1, *shape), parts)


def read_intervals(path: Path, options: Options) -> tuple[Model, Intervals]:
    """Read a model between bounds, and the bounds."""
    cells, upper, shape, parts = _parts(path, options)
    return model_between(cells, upper, shape, parts)


def _parts(path: Path, options: Options) -> tuple[Cells, Array, tuple[int, int], Parts]:
    """Transitions with their lower bounds, the upper bounds, the numbers of states and actions, and what else a model has."""
    options.refuse("base", "initial", "parameters")
    if options.discount is None:
        raise InputError("no discount: the file holds none, so give one")
    umbi = imported("umbi", "umb")
    _check_size(path)
    with decoding("not a readable .umb file"), _quiet():
        file = umbi.umb.read(path)
        return _taken_over(file, file.index.transition_system, options)


def _taken_over(file: Any, system: Any, options: Options) -> tuple[Cells, Array, tuple[int, int], Parts]:
    """The same of what umbi read."""
    _check_kind(system)
    S = system.num_states
    initial = np.asarray(file.state_is_initial, dtype=np.float64)
    if initial.shape != (S,) or not initial.any():
        raise InputError(f"expected initial states among {S}, got {int(initial.sum())} among {initial.size}")
    first = _starts("choices of states", file.state_to_choices, S, system.num_choices)
    begin = _starts("branches of choices", file.choice_to_branches, system.num_choices, system.num_branches)
    state = np.repeat(np.arange(S), np.diff(first))  # of each choice
    choice = np.repeat(np.arange(state.size), np.diff(begin))  # of each branch
    target = _ids("next states", file.branch_to_target, choice.size, S)

    def place(k: int) -> str:
        return f"state {state[choice[k]]}, choice {choice[k] - first[state[choice[k]]]}, branch {k - begin[choice[k]]}"

    actions, a = _actions(file, system, state, first)
    lower, upper = _bounds(file.branch_to_probability, choice.size, place)
    reward = _rewards(file, (state[choice], choice), (S, state.size))
    A = len(actions) if actions else int(a.max()) + 1
    cells = Cells(np.zeros_like(choice), state[choice], a[choice], target, lower, reward, place)
    parts = Parts(options.discount or 0.0, initial / initial.sum(), actions=actions, normalize=options.normalize)
    return cells, upper, (S, A), parts


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
    with open_regular(path) as stream, decoding("not a readable .umb file"), tarfile.open(fileobj=stream) as archive:
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


def _starts(what: str, given: Any, n: int, total: int) -> IntArray:
    """Where the parts of n entities begin, (n + 1,); by default each has one."""
    starts = np.arange(n + 1) if given is None else np.asarray(given, dtype=np.int64)
    if starts.shape != (n + 1,) or starts[0] != 0 or starts[-1] != total or (np.diff(starts) < 0).any():
        raise InputError(f"{what}: expected {n + 1} numbers that ascend from 0 to {total}")
    return starts


def _ids(what: str, given: Any, n: int, below: int) -> IntArray:
    ids = np.asarray([] if given is None else given, dtype=np.int64)
    if ids.shape != (n,) or (n and not 0 <= ids.min() <= ids.max() < below):
        raise InputError(f"{what}: expected {n} numbers from 0 to {below - 1}")
    return ids


def _actions(file: Any, system: Any, state: IntArray, first: IntArray) -> tuple[list[Any] | None, IntArray]:
    """Names of the actions, and the action of each choice."""
    own = np.arange(state.size) - first[state]
    A, names = system.num_choice_actions, file.choice_action_to_string
    if not A:
        return None, own
    a = _ids("actions of choices", file.choice_to_choice_action, state.size, A)
    if np.unique(state * A + a).size < state.size:
        return None, own
    if names is None:
        return list(range(A)), a
    if len(names) != A:
        raise InputError(f"names of actions: expected {A}, got {len(names)}")
    return ([int(name) for name in names] if all(map(WHOLE.fullmatch, names)) else list(names)), a


def _bounds(given: Any, n: int, place: Any) -> tuple[Array, Array]:
    """Lower and upper bounds of the probabilities of the branches; 1 where none are given."""
    if given is None:
        return np.ones(n), np.ones(n)
    if len(given) != n:
        raise InputError(f"probabilities: expected {n}, got {len(given)}")
    lower, upper = np.empty(n), np.empty(n)
    for k, p in enumerate(given):
        lower[k], upper[k] = (float(p.left), float(p.right)) if hasattr(p, "left") else (float(p), float(p))
        check_bounds(place(k), lower[k], upper[k], shown(p))
    return lower, upper


def _rewards(file: Any, of: tuple[IntArray, IntArray], sizes: tuple[int, int]) -> Array:
    """Reward of each branch; `of` are its state and its choice."""
    rewards = (file.annotations or {}).get("rewards", {})
    if len(rewards) != 1:
        raise InputError(f"expected one reward, got {', '.join(map(shown, rewards)) or 'none'}")
    n, (values,) = of[0].size, rewards.values()
    total = np.zeros(n)
    places = {"states": (of[0], sizes[0]), "choices": (of[1], sizes[1]), "branches": (np.arange(n), n)}
    for kind, given in values.items():
        at, size = places.get(kind, (None, 0))
        if at is None or len(given) != size or any(hasattr(value, "left") for value in given):
            raise InputError(f"reward: expected a number for each of {size} {kind}, got {len(given)} values")
        total += np.asarray([float(value) for value in given])[at]
    if not np.isfinite(total).all():
        raise InputError(f"reward: expected finite numbers, got {total[~np.isfinite(total)][0]!r}")
    return total


def labels(path: Path, S: int) -> dict[str, BoolArray]:
    """States of each label, (S,)."""
    umbi = imported("umbi", "umb")
    _check_size(path)
    with decoding("not a readable .umb file"), _quiet():
        file = umbi.umb.read(path)
        given = {
            name: np.asarray(values["states"], dtype=bool)
            for name, values in (file.annotations or {}).get("aps", {}).items()
        }
    for name, flags in given.items():
        if flags.shape != (S,):
            raise InputError(f"label {name!r}: expected a flag for each of {S} states, got {flags.size}")
    return given


# ---------------------------------------------------------------------- writing


def write(model: Model, path: Path) -> None:
    """Write a model, its rewards and its initial states."""
    check_single(model, "UMB")
    choices: Choices = {}
    for _, s, a, t, p, reward in list_cells(model):
        if p == 0:
            raise InputError("UMB cannot hold rewards of transitions of probability 0")
        choices.setdefault((s, a), []).append((t, p, reward))
    _write(model, choices, path)


def write_intervals(model: Model, intervals: Intervals, path: Path) -> None:
    """Write a model and bounds on its probabilities; its kernel is not written."""
    interval = imported("umbi.datatypes", "umb").Interval
    check_single(model, "UMB", kernels=False)
    choices: Choices = {}
    for s, a, t, lower, upper, reward in list_bounds(model, intervals):
        choices.setdefault((s, a), []).append((t, interval(lower, upper), reward))
    _write(model, choices, path)


def _write(model: Model, choices: Choices, path: Path) -> None:
    umbi = imported("umbi", "umb")
    ats = umbi.ats.ExplicitAts(num_players=1, num_choice_actions=model.n_actions)
    ats.state_to_player = [0] * model.n_states
    ats.choice_action_to_name = [str(name) for name in model.actions]
    for _ in range(model.n_states):
        ats.add_state()
    ats.set_initial_states(np.flatnonzero(model.initial > 0).tolist())
    rewards: list[float] = []
    for (s, a), branches in sorted(choices.items()):
        choice = ats.add_state_choice(s)
        choice.action = a
        for t, p, reward in branches:
            choice.add_branch(t, p)
            rewards.append(reward)
    ats.add_reward_annotation("reward").set_branch_values(rewards)

    def store(stream: IO[bytes]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "model.umb"
            umbi.ats.write(ats, target)
            stream.write(target.read_bytes())

    write_whole(path, store)


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written."""
    check_file(path)


def files_of(path: Path) -> list[Path]:
    """What `read` reads and `write` replaces."""
    return [path]
