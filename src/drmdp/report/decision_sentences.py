"""The decision in sentences: which actions where, grouped so that very many states still read as a
few lines.

States that act alike are a group; the largest group is "otherwise". The others are told by what is
shortest and true:

1. their names, if there are few;
2. runs of the user's order, "from a to b";
3. thresholds on coordinates, if names are numbers or tuples of numbers: a tree of at most `LEAVES`
   leaves, each split where most states are told apart. A state counts by itself and by how often it
   is visited, half and half. The tree ends where less than `FEW` is told wrongly. The action with
   most places is "otherwise", if it has more than one.

A tree may leave exceptions: it is then said in how many states it is otherwise, and in what share
of the time. Where that is more than `MOST`, names tell no pattern, and what is done most is
counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core.names import coordinates
from drmdp.ui.text import count

Box = dict[int, tuple[float, float]]
"""Intervals by coordinate."""
Leaf = tuple[int, IntArray, Box]
"""Group, members and intervals."""
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
NUMBERED = re.compile(r"(?:([^\W\d][^\d,()=]*) )?(0|[1-9]\d{0,8})")
"""Names such as "storage 7", or numbers alone: a stem, if there is one, and the number."""
MOST = 0.2
"""Sentences with exceptions in a larger share of the states, or of the time, say nothing."""


@dataclass(frozen=True)
class Decision:
    """Clauses of an action and a place, the last one without a place if it is everywhere else;
    and how true they are.
    """

    clauses: tuple[tuple[str, str], ...]  # (what, where)
    exceptions: int = 0  # states in which the clauses do not hold
    time: float = 0.0  # share of the time that is spent in these
    key: str = ""  # meaning of the letters in the clauses

    @property
    def parts(self) -> list[str]:
        """The clauses one by one: "replace when poor or failed", "otherwise run"."""
        parts = [f"{what} {where}".rstrip() for what, where in self.clauses[:-1]]
        what, where = self.clauses[-1]
        rest = f"otherwise {what}" if parts else f"{what} in every state"
        return [*parts, f"{what} {where}" if where else rest]

    @property
    def sentence(self) -> str:
        """All of it: "Replace when poor or failed; otherwise run."."""
        return _begun("; ".join(self.parts) + ".")

    @property
    def lines(self) -> list[str]:
        """The sentence, or a line for each clause if it is long."""
        lines = [self.sentence]
        if len(self.sentence) > LONG:
            lines = [_begun(part) for part in self.parts]
        return [re.sub(" ([≤≥=]) ", TIED, line) for line in lines]

    @property
    def off(self) -> str:
        """A sentence on the states in which it is otherwise, if any."""
        if not self.exceptions:
            return ""
        share = f"{self.time:.1%}" if self.time >= 0.001 else "less than 0.1%"
        where = f"In {count(self.exceptions, 'state')} it is otherwise"
        return f"{where}, where {share} of the time is spent."

    @property
    def caveat(self) -> str:
        """The same, and the meaning of letters."""
        return " ".join(filter(None, (self.off, self.key)))


def decide(
    states: Sequence[Any],
    actions: Sequence[Any],
    policy: Array,
    weight: Array | None = None,
    exact: bool = True,
    least: float = 1 - SURE,
    rows: Mapping[int, str] | None = None,
) -> Decision:
    """Put a policy (S, A) into words; `weight` (S,) says how often states are visited, not `exact`
    that probabilities are not to be told.

    Probabilities below `least` are not told. `rows` says of some states on how little rests what is
    played there.
    """
    running = np.flatnonzero(policy.any(axis=1))
    if not running.size:
        return Decision((("nothing is to be decided", "in any state"),))
    x = policy[running]
    played = x >= np.minimum(least, x.max(axis=1, keepdims=True))
    keys, group = np.unique(played, axis=0, return_inverse=True)
    group = group.ravel()
    sizes = np.bincount(group)
    shares = np.ones(running.size) if weight is None else weight[running]
    shares = shares / (shares.sum() or 1.0)
    # the larger ones last, of two of a size the one that is played more
    order = np.lexsort((np.bincount(group, shares), sizes))
    words = [_what(actions, keys[g], x[group == g], exact) for g in range(len(keys))]
    if sizes[order[:-1]].max(initial=0) <= NAMES and len(keys) <= NAMES:
        clauses = [(words[g], named(states, running[group == g], rows)) for g in order[:-1]]
        return Decision((*clauses, (words[order[-1]], "")))
    runs = _runs(states, running, group)
    if runs is not None:
        return Decision(tuple((words[g], where) for g, where in runs))
    return _by_coordinates(states, running, group, shares, words)


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _what(actions: Sequence[Any], key: Any, rows: Array, exact: bool) -> str:
    """The action of a group, or several, drawn at random."""
    played = np.flatnonzero(key)
    if played.size == 1:
        return _action(actions[played[0]])
    mean = rows.mean(axis=0)
    first = played[np.argsort(-mean[played], kind="stable")]
    if exact and played.size <= NAMES and np.ptp(rows, axis=0).max() < 0.01:
        return "draw " + " or ".join(f"{_action(actions[a])} ({mean[a]:.0%})" for a in first)
    *others, last = [_action(actions[a]) for a in first[:3]] + ["others"] * (first.size > 3)
    return f"draw between {', '.join(others)} and {last}"


def _action(name: Any) -> str:
    """An action; a number alone says little."""
    number = isinstance(name, int | float) or str(name).isdigit()
    return f"action {name}" if number else _short(name)


def named(states: Sequence[Any], members: IntArray, rows: Mapping[int, str] | None = None) -> str:
    """The names of a group, with the rows they rest on where these are known, if they are few;
    their number otherwise.
    """
    if members.size > NAMES:
        return f"in {members.size:,} states"
    names = [_short(states[int(s)]) for s in members]
    numbers = [match for name in names if (match := NUMBERED.fullmatch(name))]
    subject, stems = "", {match[1] for match in numbers}
    if len(numbers) == len(names) and len(stems) == 1:
        subject = f"{stems.pop() or 'the state'} is "
        names = [match[2] for match in numbers]
    rests = [f" ({rows[int(s)]})" if rows and int(s) in rows else "" for s in members]
    *others, last = spans([name + rest for name, rest in zip(names, rests, strict=True)])
    return f"when {subject}" + (f"{', '.join(others)} or {last}" if others else last)


def spans(names: list[str]) -> list[str]:
    """Names that count up, three or more in a row, by the first and the last: "storage 7 to 12"."""
    runs: list[list[tuple[str, int]]] = []
    for name in names:
        end = re.search(r"(?<![\d.,-])(0|[1-9]\d{0,8})$", name)
        stem, number = (name[: end.start()], int(end[0])) if end else (name, -1)
        if runs and number > 0 and runs[-1][-1] == (stem, number - 1):
            runs[-1].append((stem, number))
        else:
            runs.append([(stem, number)])
    words: list[str] = []
    for run in runs:
        texts = [stem if number < 0 else f"{stem}{number}" for stem, number in run]
        last = run[-1][1] if texts[0][:1].isdigit() or " " in texts[0] else texts[-1]
        words += [f"{texts[0]} to {last}"] if len(run) > 2 else texts
    return words


def _short(name: Any) -> str:
    text = str(name)
    return text if len(text) <= 40 else f"{text[:28]}…{text[-8:]}"


def _runs(
    states: Sequence[Any], running: IntArray, group: IntArray
) -> list[tuple[int, str]] | None:
    """Runs of the user's order, if they are few: (group, where)."""
    first = np.flatnonzero(np.append(True, np.diff(group) != 0))
    if first.size > RUNS:
        return None
    last = np.append(first[1:], group.size) - 1
    places: dict[int, list[str]] = {}
    for lo, hi in zip(first.tolist(), last.tolist(), strict=True):
        ends = [_short(states[int(running[k])]) for k in (lo, hi)]
        words = ends[0] if lo == hi else f"from {ends[0]} to {ends[1]}"
        places.setdefault(int(group[lo]), []).append(words)
    return [(g, "in the states " + " and ".join(parts)) for g, parts in places.items()]


# ---------------------------------------------------------------------- coordinates


def _by_coordinates(
    states: Sequence[Any], running: IntArray, group: IntArray, shares: Array, words: list[str]
) -> Decision:
    """Thresholds on coordinates, or of the user's order."""
    order = np.arange(running.size, dtype=float)[:, None], [""]
    table, names = coordinates(states, running) or order
    weight = (shares + 1 / len(shares)) / 2
    tree = ((np.bincount(group[m], weight[m]), m, box) for m, box in _tree(table, group, weight))
    leaves = _joined([(int(np.argmax(weights)), m, box) for weights, m, box in tree], table)
    clauses: dict[str, list[str]] = {}
    wrong = np.zeros(running.size, dtype=bool)
    for g, members, box in leaves:
        wrong[members] |= group[members] != g
        clauses.setdefault(words[g], []).append(_box(box, names, states, running))
    if max(wrong.mean(), shares[wrong].sum()) > MOST:
        return _counted(group, words)
    last = max(clauses, key=lambda what: len(clauses[what]))
    rest = ((last, ""),) if len(clauses) == 1 or len(clauses[last]) > 1 else ()
    if rest:
        del clauses[last]
    parts = ((what, "where " + ", or where ".join(places)) for what, places in clauses.items())
    lettered = any(names[j].startswith("x") for _, _, box in leaves for j in box)
    key = "x1, x2, … are the parts of the name of a state, in their order." if lettered else ""
    return Decision((*parts, *rest), int(wrong.sum()), float(shares[wrong].sum()), key)


def _counted(group: IntArray, words: list[str]) -> Decision:
    """The most frequent choices, where the names of states tell no pattern."""
    sizes = np.bincount(group)
    first = np.argsort(-sizes, kind="stable")[:3]
    clauses = [(words[g], f"in {sizes[g]:,} states") for g in first]
    if sizes.size > first.size:
        others = int(sizes.sum() - sizes[first].sum())
        clauses.append((f"{sizes.size - first.size:,} other choices", f"in {others:,} states"))
    return Decision(tuple(clauses))


def _tree(table: Array, group: IntArray, weight: Array) -> list[tuple[IntArray, Box]]:
    """Leaves of a tree of thresholds: members, and the intervals of coordinates that are split."""
    leaves: list[tuple[IntArray, Box]] = [(np.arange(len(table)), {})]
    while len(leaves) < LEAVES:
        if sum(weight[m].sum() - np.bincount(group[m], weight[m]).max() for m, _ in leaves) < FEW:
            break
        splits = (_split(table[m], group[m], weight[m]) for m, _ in leaves)
        k, (gain, j, cut) = max(enumerate(splits), key=lambda split: split[1][0])
        if gain <= 1e-9:
            break
        members, box = leaves.pop(k)
        low, high = box.get(j, (-np.inf, np.inf))
        below = table[members, j] <= cut
        least = float(table[members[~below], j].min())
        parts = (members[below], (low, cut)), (members[~below], (least, high))
        leaves[k:k] = [(part, {**box, j: interval}) for part, interval in parts]
    return leaves


def _joined(leaves: list[Leaf], table: Array) -> list[Leaf]:
    """Leaves (group, members, intervals), those of one group put together that fill a box."""
    for k, (g, members, box) in enumerate(leaves):
        for i in range(k):
            if leaves[i][0] != g or leaves[i][2].keys() != box.keys():
                continue
            ends = {j: (*box[j], *leaves[i][2][j]) for j in box}
            union = {j: (min(each), max(each)) for j, each in ends.items()}
            inside = np.ones(len(table), dtype=bool)
            for j, (low, high) in union.items():
                inside &= (low <= table[:, j]) & (table[:, j] <= high)
            if inside.sum() == members.size + leaves[i][1].size:
                bounded = {j: each for j, each in union.items() if np.isfinite(each).any()}
                others = [leaf for n, leaf in enumerate(leaves) if n not in (i, k)]
                others.insert(i, (g, np.flatnonzero(inside), bounded))
                return _joined(others, table)
    return leaves


def _split(table: Array, group: IntArray, weight: Array) -> tuple[float, int, float]:
    """The threshold of the largest gain in Gini's impurity: (gain, coordinate, largest below)."""
    best = (0.0, 0, 0.0)
    n = int(group.max()) + 1
    mass = np.zeros((group.size, n))
    mass[np.arange(group.size), group] = weight
    before = _impurity(mass.sum(axis=0))
    for j in range(table.shape[1]):
        order = np.argsort(table[:, j], kind="stable")
        sums, x = np.cumsum(mass[order], axis=0), table[order, j]
        ends = np.flatnonzero(x[1:] > x[:-1])
        if ends.size:
            gains = before - _impurity(sums[ends]) - _impurity(sums[-1] - sums[ends])
            k = int(np.argmax(gains))
            best = max(best, (float(gains[k]), j, float(x[ends[k]])))
    return best


def _impurity(mass: Array) -> Any:
    total = mass.sum(axis=-1)
    return total - (mass**2).sum(axis=-1) / np.where(total > 0, total, 1.0)


def _box(box: Box, names: list[str], states: Sequence[Any], running: IntArray) -> str:
    """Intervals in words; of coordinates without a name, places in the user's order."""

    def state(k: float) -> str:
        return _short(states[int(running[int(k)])]) if np.isfinite(k) else ""

    parts = []
    for j, (low, high) in sorted(box.items()):
        bounded, capped, name = np.isfinite(low), np.isfinite(high), names[j]
        first, last = (f"{low:g}", f"{high:g}") if name else (state(low), state(high))
        if not name:
            only = f"is from {first} on" if bounded else f"is up to {last}"
            both = f"is from {first} to {last}"
            parts.append(f"the state {both if bounded and capped else only}")
        elif bounded and capped:
            parts.append(f"{name} = {first}" if first == last else f"{first} ≤ {name} ≤ {last}")
        else:
            parts.append(f"{name} ≥ {first}" if bounded else f"{name} ≤ {last}")
    return " and ".join(parts)
