"""Explicit models of PRISM and Storm: ``model.tra``, and beside it ``.srew`` or ``.trew`` (rewards)
and ``.lab`` (labels).

====== ====================================== ======================================================
file   first line                             other lines
====== ====================================== ======================================================
.tra   states, choices, transitions           state, choice, next state, probability, and perhaps an
                                              action
.srew  states, lines                          state, reward: of a step that begins there
.trew  states, choices, lines                 state, choice, next state, reward: in addition
.lab   0="init" 1="deadlock" …                state: numbers of its labels; "init" makes the start
                                              distribution
====== ====================================== ======================================================

A probability may be an interval, ``[lower,upper]``: such files hold a model and a set
(`drmdp.formats.read_intervals`).

Numbers start at 0; lines that start with # are skipped. Actions are named by the file if each
choice has an action of its own, and numbered by choice otherwise. A state without choices is
terminal. The files hold no discount: give one.

Not held: more than one kernel, start distributions that are not uniform on some states, rewards of
transitions of probability 0 (all refused in writing), names of states and kernels and notes (a
warning says so), and blanks in names of actions, which become "_". Costs are written as negative
rewards, and come back as rewards.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.errors import InputError, repeated, shown, unexpected
from drmdp.formats._cells import ModelParts, TransitionList, check_holdable, check_ids, list_held
from drmdp.formats._intervals import BoundedList, check_bounds, list_bounds
from drmdp.formats._options import ReadOptions
from drmdp.formats._text import index, lines_of, number, words
from drmdp.io.files import check_file, naming, write_together
from drmdp.model import Model
from drmdp.sets.intervals import Intervals

HOLDS = frozenset({"actions"})
"""Which names and notes it holds."""
COMPANIONS = (".lab", ".trew", ".srew")
LABEL = re.compile(r'([0-9]{1,9})="([^"]*)"')
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,37}")
Key = tuple[int, int, int]


def read(path: Path, options: ReadOptions) -> Model:
    """Read a model and the files beside it."""
    return bounded(path, options).model()


def bounded(path: Path, options: ReadOptions) -> BoundedList:
    """Read transitions whose probabilities may be intervals."""
    options.refuse("base", "initial", "parameters")
    discount = options.needed_discount
    S, keys, lower, upper, labels, numbers = _transitions(path)
    actions, a = actions_of(keys, labels)
    s, t = np.array([key[0] for key in keys]), np.array([key[2] for key in keys])
    reward = _rewards(path, S, keys) if options.rewards else np.zeros(s.size)
    cells = TransitionList(s, a, t, lower, reward, lambda k: f"line {numbers[k]}")
    A = len(actions) if actions else int(a.max()) + 1
    parts = ModelParts(discount, _initial(path, S), actions=actions, normalize=options.normalize)
    return BoundedList(cells, upper, (S, A), parts)


def _transitions(path: Path) -> tuple[int, list[Key], Array, Array, list[str | None], Any]:
    """How many states there are, and of each line its key, both bounds, action and number."""
    rows = words(path)
    names = ("states", "choices", "transitions")
    line, header = next(rows, (1, []))
    if len(header) != 3:
        expected = "the numbers of states, choices and transitions"
        raise unexpected(f"line {line}", expected, header)
    promised = [index(line, name, text) for name, text in zip(names, header, strict=True)]
    keys: list[Key] = []
    lower, upper, labels, numbers = array("d"), array("d"), [], array("q")
    for line, fields in rows:
        if len(fields) > 4 and fields[3].startswith("[") and not fields[3].endswith("]"):
            fields[3:5] = ["".join(fields[3:5])]  # a blank after the comma
        if len(fields) not in (4, 5):
            expected = "expected state, choice, next state, probability"
            raise InputError(f"line {line}: {expected}, got {len(fields)} words")
        keys.append(_key(line, fields))
        for bound, column in zip(_bounds(line, fields[3]), (lower, upper), strict=True):
            column.append(bound)
        labels.append(fields[4] if len(fields) == 5 else None)
        numbers.append(line)
    if not keys:
        raise InputError("no transitions")
    S = check_ids("state", np.array([x for s, _, t in keys for x in (s, t)]), 0)
    counted = (S, len({key[:2] for key in keys}), len(keys))
    for name, here, actual in zip(names, promised, counted, strict=True):
        if here != actual:
            raise InputError(f"line 1: promises {here} {name}, but there are {actual}")
    return S, keys, np.array(lower), np.array(upper), labels, numbers


def _bounds(line: int, text: str) -> tuple[float, float]:
    """A probability, or the two ends of an interval."""
    if not text.startswith("["):
        p = number(line, "probability", text)
        return p, p
    ends = text.removeprefix("[").removesuffix("]").split(",")
    if not text.endswith("]") or len(ends) != 2:
        raise unexpected(f"line {line}: probability", "a number or [lower,upper]", text)
    lower, upper = (number(line, "probability", end) for end in ends)
    check_bounds(f"line {line}", lower, upper, shown(text))
    return lower, upper


def _key(line: int, fields: list[str]) -> Key:
    names = zip(("state", "choice", "next state"), fields, strict=False)
    s, choice, t = (index(line, name, text) for name, text in names)
    return s, choice, t


def actions_of(keys: list[Key], labels: list[str | None]) -> tuple[list[Any] | None, Any]:
    """Names of the actions if each choice has one of its own, and the action of each transition."""
    by_choice: dict[tuple[int, int], set[str | None]] = {}
    for (s, choice, _), label in zip(keys, labels, strict=True):
        by_choice.setdefault((s, choice), set()).add(label)
    single = all(len(texts) == 1 and None not in texts for texts in by_choice.values())
    distinct = {(s, *texts) for (s, _), texts in by_choice.items()}
    if not single or len(distinct) < len(by_choice):
        choices = np.array([choice for _, choice, _ in keys])
        check_ids("choice", choices, 0)
        return None, choices
    names: list[Any] = list(dict.fromkeys(labels))
    if all(WHOLE.fullmatch(name) for name in names):
        names = sorted(names, key=int)
    number_of = {name: a for a, name in enumerate(names)}
    integers = [int(name) if WHOLE.fullmatch(name) else name for name in names]
    plain = all(isinstance(name, int) for name in integers)
    return (integers if plain else names), np.array([number_of[label] for label in labels])


def _rewards(path: Path, S: int, keys: list[Key]) -> Array:
    """Reward of each transition, from one file or both."""
    files = [path.with_suffix(suffix) for suffix in (".srew", ".trew")]
    if not any(file.is_file() for file in files):
        raise InputError(f"no rewards: neither {files[0].name} nor {files[1].name} is there")
    reward = np.zeros(len(keys))
    if files[0].is_file():
        of_state = np.zeros(S)
        with naming(files[0].name):
            for line, fields in _lines(files[0], 2, 2):
                of_state[index(line, "state", fields[0], S)] = number(line, "reward", fields[1])
        reward += of_state[[key[0] for key in keys]]
    if files[1].is_file():
        place = {key: k for k, key in enumerate(keys)}
        with naming(files[1].name):
            for line, fields in _lines(files[1], 3, 4):
                key = _key(line, fields)
                if key not in place:
                    name = " ".join(map(str, key))
                    raise InputError(f"line {line}: there is no transition {name}")
                reward[place[key]] += number(line, "reward", fields[3])
    return reward


def _lines(file: Path, head: int, size: int) -> Any:
    """Lines of a reward file after the first."""
    rows = words(file)
    line, header = next(rows, (1, []))
    if len(header) != head:
        raise InputError(f"line {line}: expected {head} numbers, got {shown(header)}")
    for line, fields in rows:
        if len(fields) != size:
            raise InputError(f"line {line}: expected {size} numbers, got {len(fields)}")
        yield line, fields


def labels(path: Path, S: int) -> dict[str, BoolArray]:
    """States of each label, (S,), of the file beside; none where there is no such file."""
    file = path.with_suffix(".lab")
    if not file.is_file():
        return {}
    with naming(file.name):
        rows = words(file)
        numbers = dict(LABEL.findall(" ".join(next(rows, (1, []))[1])))
        flags = {name: np.zeros(S, dtype=bool) for name in numbers.values()}
        for line, fields in rows:
            s = index(line, "state", fields[0].removesuffix(":"), S)
            for number in fields[1:]:
                if number not in numbers:
                    raise InputError(f"line {line}: no label has the number {number!r}")
                flags[numbers[number]][s] = True
    return flags


def _initial(path: Path, S: int) -> Array | None:
    if not (known := labels(path, S)):
        return None
    with naming(path.with_suffix(".lab").name):
        if "init" not in known:
            raise InputError('line 1: no label "init"')
        if not known["init"].any():
            raise InputError("no state is initial")
    return np.asarray(known["init"] / known["init"].sum())


# ---------------------------------------------------------------------- writing


def write(model: Model, path: Path) -> None:
    """Write a model, its rewards and its initial states."""
    check_holdable(model, "PRISM")
    check_single(model, "PRISM")
    _write(model, path, [(s, a, t, repr(p), r) for s, a, t, p, r in list_held(model, "PRISM")])


def write_intervals(model: Model, intervals: Intervals, path: Path) -> None:
    """Write a model and bounds on its probabilities; its kernel is not written."""
    check_single(model, "PRISM", kernels=False)
    bounded = list_bounds(model, intervals)
    cells = [(s, a, t, f"[{low!r},{high!r}]", r) for s, a, t, low, high, r in bounded]
    check_holdable(model, "PRISM", [t for _, _, t, _, _ in cells])
    _write(model, path, cells)


def check_single(model: Model, what: str, kernels: bool = True) -> None:
    """Refuse a model with several kernels, or a start that is not uniform on some states."""
    if kernels and model.n_kernels > 1:
        raise InputError(f"{what} holds one kernel, not {model.n_kernels}")
    first = model.initial > 0
    if not np.allclose(model.initial[first], 1 / first.sum(), rtol=1e-9, atol=0):
        raise InputError(f"{what} holds initial states, all equally likely, and these are not")


def _write(model: Model, path: Path, cells: list[tuple[int, int, int, str, float]]) -> None:
    """Write transitions, (s, a, t, probability, reward), and what belongs to them."""
    names = ["_".join(str(name).split()) for name in model.actions]
    wrong = "" if "" in names else repeated(names)
    if wrong is not None:
        name = model.actions[len(names) - 1 - names[::-1].index(str(wrong))]
        raise InputError(f"PRISM cannot hold the action name {shown(name)} beside the others")
    choice = np.cumsum(model.available, axis=1) - 1
    head = f"{model.n_states} {int(model.available.sum())} {len(cells)}"
    initial = (f"{s}: 0" for s in np.flatnonzero(model.initial > 0).tolist())
    labels, transitions, rewards = ['0="init" 1="deadlock"', *initial], [head], [head]
    for s, a, t, p, reward in cells:
        transitions.append(f"{s} {choice[s, a]} {t} {p} {names[a]}")
        rewards.append(f"{s} {choice[s, a]} {t} {reward!r}")
    files = {".lab": labels, ".trew": rewards, path.suffix: transitions}
    write_together(
        {path.with_suffix(suffix): lines_of(lines) for suffix, lines in files.items()},
        stale=[path.with_suffix(".srew")],  # of another model: its rewards would be added
    )


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written."""
    if path.suffix.lower() in COMPANIONS:
        cure = f"name the file of transitions, as {path.stem}.tra"
        raise InputError(f"{path}: {path.suffix} is the suffix of a companion; {cure}")
    for target in files_of(path):
        check_file(target)


def files_of(path: Path) -> list[Path]:
    """Files that `read` reads and `write` replaces or removes."""
    return [path, *(path.with_suffix(suffix) for suffix in COMPANIONS)]
