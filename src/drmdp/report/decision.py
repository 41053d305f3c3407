"""The decision in sentences: which actions where, grouped so that very many states still read as a few lines.

States that act alike are a group; the largest group is "otherwise". The others are told by what is shortest and true:

1. their names, if there are few;
2. runs of the user's order, "from a to b";
3. thresholds on coordinates, if names are numbers or tuples of numbers: a tree of at most `LEAVES` leaves, each split where most states are told apart. A
   state counts by itself and by how often it is visited, half and half. The tree ends where less than `FEW` is told wrongly. The action with
   most places is "otherwise", if it has more than one.

A tree may leave exceptions: it is then said in how many states it is otherwise, and in what share of the time. Where that is more than `MOST`, names tell no
pattern, and what is done most is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.names import coordinates
from drmdp.core.text import count

Box = dict[int, tuple[float, float]]
"""From where to where, by coordinate."""
SURE = 0.995
"""An action with at least this probability is the action."""
NAMES = 8
"""So many names are listed in a sentence."""
RUNS = 8
"""So many runs."""
LEAVES = 8
FEW = 0.01
LONG = 180
"""A sentence of more letters is told as a list."""
TIED = "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}"
MOST = 0.2
"""Sentences with exceptions in a larger share of the states, or of the time, say nothing."""


@dataclass(frozen=True)
class Decision:
    """Clauses, each what to do and where, the last one without a place if it is everywhere else; and how true they are."""

    clauses: tuple[tuple[str, str], ...]  # (what, where)
    exceptions: int  # states in which the clauses do not hold
    time: float  # share of the time that is spent in these
    key: str = ""  # what the letters in the clauses stand for

    @property
    def parts(self) -> list[str]:
        """The clauses one by one: "replace when poor or failed", "otherwise run"."""
        parts = [f"{what} {where}".rstrip() for what, where in self.clauses[:-1]]
        what, where = self.clauses[-1]
        return [*parts, f"{what} {where}" if where else f"otherwise {what}" if parts else f"{what} in every state"]

    @property
    def sentence(self) -> str:
        """All of it: "Replace when poor or failed; otherwise run."."""
        return _begun("; ".join(self.parts) + ".")

    @property
    def lines(self) -> list[str]:
        """The sentence, or a line for each clause if it is long."""
        told = [self.sentence] if len(self.sentence) <= LONG else [_begun(part) for part in self.parts]
        return [re.sub(" ([≤≥=]) ", TIED, line) for line in told]

    @property
    def off(self) -> str:
        """In how many states it is otherwise, if in any."""
        share = f"{self.time:.1%}" if self.time >= 0.001 else "less than 0.1%"
        said = f"In {count(self.exceptions, 'state')} it is otherwise, where {share} of the time is spent."
        return said if self.exceptions else ""

    @property
    def caveat(self) -> str:
        """The same, and what the letters stand for."""
        return " ".join(filter(None, (self.off, self.key)))


def decide(
    states: Sequence[Any], actions: Sequence[Any], policy: Array, weight: Array | None = None, exact: bool = True,
    least: float = 1 - SURE, rows: Mapping[int, str] | None = None,
) -> Decision:  # fmt: skip
    """Put a policy (S, A) into words; `weight` (S,) says how often states are visited, not `exact` that probabilities are not to be told.

    Probabilities below `least` are not told. `rows` says of some states on how little rests what is played there.
    """
    running = np.flatnonzero(policy.any(axis=1))
    if not running.size:
        return Decision((("nothing is to be decided", "in any state"),), 0, 0.0)
    x = policy[running]
    keys, group = np.unique(x >= np.minimum(least, x.max(axis=1, keepdims=True)), axis=0, return_inverse=True)
    group = group.ravel()
    sizes = np.bincount(group)
    shares = np.ones(running.size) if weight is None else weight[running]
    shares = shares / (shares.sum() or 1.0)
    order = np.lexsort(
        (np.bincount(group, shares), sizes)
    )  # the larger ones last, of two of a size the one that is played more
    words = [_what(actions, keys[g], x[group == g], exact) for g in range(len(keys))]
    if len(keys) == 1:
        return Decision(((words[0], ""),), 0, 0.0)
    if sizes[order[:-1]].max() <= NAMES and len(keys) <= NAMES:
        clauses = [(words[g], named(states, running[group == g], rows)) for g in order[:-1]]
        return Decision((*clauses, (words[order[-1]], "")), 0, 0.0)
    runs = _runs(states, running, group)
    if runs is not None:
        return Decision(tuple((words[g], where) for g, where in runs), 0, 0.0)
    return _by_coordinates(states, running, group, shares, words)


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _what(actions: Sequence[Any], key: Any, rows: Array, exact: bool) -> str:
    """What is done in a group: an action, or several, drawn at random."""
    played = np.flatnonzero(key)
    if played.size == 1:
        return _action(actions[played[0]])
    mean = rows.mean(axis=0)
    first = played[np.argsort(-mean[played], kind="stable")]
    if exact and played.size <= NAMES and np.ptp(rows, axis=0).max() < 0.01:
        return "draw " + " or ".join(f"{_action(actions[a])} ({mean[a]:.0%})" for a in first)
    *some, last = [_action(actions[a]) for a in first[:3]] + (["others"] if first.size > 3 else [])
    return f"draw between {', '.join(some)} and {last}"


def _action(name: Any) -> str:
    """An action; a number alone says little."""
    return f"action {name}" if isinstance(name, int | float) or str(name).isdigit() else _short(name)


def named(states: Sequence[Any], members: IntArray, rows: Mapping[int, str] | None = None) -> str:
    """The names of a group, with what they rest on where that is known, if they are few; how many otherwise."""
    if members.size > NAMES:
        return f"in {members.size:,} states"
    rests = rows or {}
    names = _spans([_short(states[int(s)]) + (f" ({rests[int(s)]})" if int(s) in rests else "") for s in members])
    return "when " + (" or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0])


def _spans(names: list[str]) -> list[str]:
    """Names that count up, three or more in a row, by the first and the last: "storage 7 to 12"."""
    found: list[list[tuple[str, int]]] = []
    for name in names:
        end = re.search(r"(?<![\d.,-])(0|[1-9]\d{0,8})$", name)
        own = (name[: end.start()], int(end[0])) if end else (name, -1)
        follows = bool(found) and end and found[-1][-1][1] >= 0 and found[-1][-1] == (own[0], own[1] - 1)
        found[-1].append(own) if follows else found.append([own])
    told: list[str] = []
    for run in found:
        texts = [stem if number < 0 else f"{stem}{number}" for stem, number in run]
        told += [f"{texts[0]} to {run[-1][1]}"] if len(run) > 2 else texts
    return told


def _short(name: Any) -> str:
    text = str(name)
    return text if len(text) <= 40 else f"{text[:28]}…{text[-8:]}"


def _runs(states: Sequence[Any], running: IntArray, group: IntArray) -> list[tuple[int, str]] | None:
    """Runs of the user's order, if they are few: (group, where)."""
    first = np.flatnonzero(np.append(True, np.diff(group) != 0))
    if first.size > RUNS:
        return None
    last = np.append(first[1:], group.size) - 1
    found: dict[int, list[str]] = {}
    for lo, hi in zip(first.tolist(), last.tolist(), strict=True):
        ends = [_short(states[int(running[k])]) for k in (lo, hi)]
        found.setdefault(int(group[lo]), []).append(ends[0] if lo == hi else f"from {ends[0]} to {ends[1]}")
    return [(g, "in the states " + " and ".join(parts)) for g, parts in found.items()]


# ---------------------------------------------------------------------- coordinates


def _by_coordinates(
    states: Sequence[Any], running: IntArray, group: IntArray, shares: Array, words: list[str]
) -> Decision:
    """Thresholds on coordinates, or of the user's order."""
    found = coordinates(states, running)
    table, names = found if found is not None else (np.arange(running.size, dtype=float)[:, None], [""])
    weight = (shares + 1 / len(shares)) / 2
    most = [(int(np.argmax(np.bincount(group[m], weight[m]))), m, box) for m, box in _tree(table, group, weight)]
    leaves = _joined(most, table)
    clauses: dict[str, list[str]] = {}
    wrong = np.zeros(running.size, dtype=bool)
    for g, members, box in leaves:
        wrong[members] |= group[members] != g
        clauses.setdefault(words[g], []).append(_box(box, names, states, running))
    if max(wrong.mean(), shares[wrong].sum()) > MOST:
        return _counted(group, words)
    last = max(clauses, key=lambda what: len(clauses[what]))
    rest = ((last, ""),) if len(clauses) == 1 or len(clauses[last]) > 1 else ()
    told = tuple(
        (what, "where " + ", or where ".join(places)) for what, places in clauses.items() if not rest or what != last
    )
    told += rest
    asked = {j for _, _, box in leaves for j in box if names[j].startswith("x")}
    key = "x1, x2, … are the parts of the name of a state, in their order." if asked else ""
    return Decision(told, int(wrong.sum()), float(shares[wrong].sum()), key)


def _counted(group: IntArray, words: list[str]) -> Decision:
    """What is done most, where the names of states tell no pattern."""
    sizes = np.bincount(group)
    first = np.argsort(-sizes, kind="stable")[:3]
    told = [(words[g], f"in {sizes[g]:,} states") for g in first]
    if sizes.size > first.size:
        left = int(sizes.sum() - sizes[first].sum())
        told.append((f"{sizes.size - first.size:,} other choices", f"in {left:,} states"))
    return Decision(tuple(told), 0, 0.0)


def _tree(table: Array, group: IntArray, weight: Array) -> list[tuple[IntArray, Box]]:
    """Leaves of a tree of thresholds: members, and the interval of each coordinate that was asked for."""
    leaves: list[tuple[IntArray, Box]] = [(np.arange(len(table)), {})]
    while len(leaves) < LEAVES:
        if sum(weight[m].sum() - np.bincount(group[m], weight[m]).max() for m, _ in leaves) < FEW:
            break
        best = max(((*_split(table[m], group[m], weight[m]), k) for k, (m, _) in enumerate(leaves)), key=lambda s: s[0])
        gain, j, cut, k = best
        if gain <= 1e-9:
            break
        members, box = leaves.pop(k)
        low, high = box.get(j, (-np.inf, np.inf))
        below = table[members, j] <= cut
        leaves[k:k] = [
            (members[below], {**box, j: (low, cut)}),
            (members[~below], {**box, j: (float(table[members[~below], j].min()), high)}),
        ]
    return leaves


def _joined(leaves: list[tuple[int, IntArray, Box]], table: Array) -> list[tuple[int, IntArray, Box]]:
    """Leaves (group, members, intervals), those of one group put together that fill a box."""
    for k, (g, members, box) in enumerate(leaves):
        for i in range(k):
            if leaves[i][0] != g or leaves[i][2].keys() != box.keys():
                continue
            ends = {j: (*box[j], *leaves[i][2][j]) for j in box}
            union = {j: (min(each), max(each)) for j, each in ends.items()}
            inside = np.all([(low <= table[:, j]) & (table[:, j] <= high) for j, (low, high) in union.items()], axis=0)
            if inside.sum() == members.size + leaves[i][1].size:
                bounded = {j: each for j, each in union.items() if np.isfinite(each).any()}
                left = [leaf for n, leaf in enumerate(leaves) if n not in (i, k)]
                left.insert(i, (g, np.flatnonzero(inside), bounded))
                return _joined(left, table)
    return leaves


def _split(table: Array, group: IntArray, weight: Array) -> tuple[float, int, float]:
    """The threshold that puts most weight right, weighed by Gini's impurity: (gain, coordinate, largest below)."""
    best = (0.0, 0, 0.0)
    n = int(group.max()) + 1
    mass = np.zeros((group.size, n))
    mass[np.arange(group.size), group] = weight
    whole = _impurity(mass.sum(axis=0))
    for j in range(table.shape[1]):
        order = np.argsort(table[:, j], kind="stable")
        sums, x = np.cumsum(mass[order], axis=0), table[order, j]
        ends = np.flatnonzero(x[1:] > x[:-1])
        if ends.size:
            gains = whole - _impurity(sums[ends]) - _impurity(sums[-1] - sums[ends])
            k = int(np.argmax(gains))
            best = max(best, (float(gains[k]), j, float(x[ends[k]])))
    return best


def _impurity(mass: Array) -> Any:
    total = mass.sum(axis=-1)
    return total - (mass**2).sum(axis=-1) / np.where(total > 0, total, 1.0)


def _box(box: Box, names: list[str], states: Sequence[Any], running: IntArray) -> str:
    parts = []
    for j, (low, high) in sorted(box.items()):
        if names[j]:
            ends = (f"{low:g}", f"{high:g}")
            name = names[j]
        else:
            ends = tuple(_short(states[int(running[int(k)])]) if np.isfinite(k) else "" for k in (low, high))  # type: ignore[assignment]
            name = "the state"
        parts.append(_interval(name, ends, np.isfinite(low), np.isfinite(high), bool(names[j])))
    return " and ".join(parts)


def _interval(name: str, ends: tuple[str, str], bounded: Any, capped: Any, numbers: bool) -> str:
    if not numbers:
        words = ("is from ", " on", "is up to ")
        return f"{name} is from {ends[0]} to {ends[1]}" if bounded and capped else (
            f"{name} {words[0]}{ends[0]}{words[1]}" if bounded else f"{name} {words[2]}{ends[1]}"
        )  # fmt: skip
    if bounded and capped:
        return f"{name} = {ends[0]}" if ends[0] == ends[1] else f"{ends[0]} ≤ {name} ≤ {ends[1]}"
    return f"{name} ≥ {ends[0]}" if bounded else f"{name} ≤ {ends[1]}"
