"""Models of plain Python functions: every state that can be reached is visited once, breadth first,
and numbered in the order met.

`transition(s, a)` gives the law of the next state, in each of N kernels, in one of the forms

    {next: p}  or  [(next, p), …]                       one kernel
    {next: [p_1, …, p_N]}  or  [(next, [p_1, …]), …]    N kernels
    [{next: p}, …]  or  [[(next, p), …], …]             N kernels, one law each

A next state that is given twice has the sum of its probabilities, and one that no kernel reaches is
left out. Probabilities and costs are checked some thousands at a time, so that a slip is reported
soon and costs little to find.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.names import RULE, is_name
from drmdp.core.storage import NEGATIVE, ROW_SUM_TOL, from_parts, unsigned
from drmdp.core.validation import items_of, number
from drmdp.errors import InputError, first_place, shown, unexpected
from drmdp.ui.progress import stage

CHECKED = 10_000
"""Numbers that are checked at a time."""
DENSE = 1_000_000
"""Kernels of up to so many numbers are given back as arrays."""
FORMS = "expected {next: p}, [(next, p), …], {next: [p_1, …, p_N]} or a list of N of the first two"


def explore(
    initial: Any, actions: Any, transition: Any, price: Any, name: str, terminal: Any, limit: int
) -> dict[str, Any]:
    """Visit all states that can be reached; arguments of a model. `price` is the function called
    `name`, of costs or rewards.
    """
    search = _Search(transition, price, name, _required(price) >= 3, limit)
    start = _start(initial)
    for s in start:
        search.number(s, "initial")
    ends = _membership(terminal)
    with stage("visiting states") as visits:
        visits.detail = lambda: f"{search.done:,} of {len(search.states):,} so far"
        while search.done < len(search.states):
            s = search.states[search.done]
            flag = _ask("terminal", ends, s)
            search.terminal.append(flag)
            if not flag:
                search.visit(s, _ask("actions", actions, s) if callable(actions) else actions)
            search.done += 1
    first = np.zeros(len(search.states))
    first[[search.numbers[s] for s in start]] = list(start.values())
    return search.arguments(first, terminal)


@dataclass
class _Search:
    """The states met so far, with the laws and costs of those visited."""

    transition: Callable[..., Any]
    price: Callable[..., Any]
    name: str
    by_next: bool  # costs depend on the next state
    limit: int
    numbers: dict[Any, int] = field(default_factory=dict)
    states: list[Any] = field(default_factory=list)
    actions: dict[Any, int] = field(default_factory=dict)
    done: int = 0
    terminal: list[bool] = field(default_factory=list)
    n_kernels: int = 0
    pairs: list[tuple[int, int]] = field(default_factory=list)  # state and action
    ends: array[int] = field(default_factory=lambda: array("q", [0]))  # of the entries of each pair
    columns: array[int] = field(default_factory=lambda: array("q"))
    masses: list[Any] = field(default_factory=list)  # of the entries, not checked yet
    prices: list[Any] = field(default_factory=list)
    checked: int = 0  # pairs
    data: list[Array] = field(default_factory=list)  # checked, (n, N) each
    costs: list[Array] = field(default_factory=list)

    def number(self, s: Any, where: Any) -> int:
        """The number of a state; a new one is the next to be met."""
        if not is_name(s):
            place = where if isinstance(where, str) else f"{_call(*where)}, next state"
            raise InputError(f"{place}: {RULE}, got {shown(s)}")
        if s not in self.numbers:
            if len(self.states) >= self.limit:
                place = "" if isinstance(where, str) else f" at {_call(*where)}"
                most = f"more than {self.limit:,} states can be reached"
                raise InputError(f"limit: {most}: {shown(s)} was met{place}")
            self.numbers[s] = len(self.states)
            self.states.append(s)
        return self.numbers[s]

    def visit(self, s: Any, actions: Iterable[Any]) -> None:
        """Ask for all actions of a state."""
        names = set()
        for a in _items(actions, f"actions({shown(s)})" if callable(actions) else "actions"):
            if not is_name(a):
                raise InputError(f"actions of state {shown(s)}: {RULE}, got {shown(a)}")
            if a in names:
                raise InputError(f"actions of state {shown(s)}: {shown(a)} is given twice")
            names.add(a)
            self.pairs.append((self.done, self.actions.setdefault(a, len(self.actions))))
            self.add(s, a, self.law(s, a))
            if len(self.masses) >= CHECKED:
                self.check()
        if not names:
            cure = "give it one, or say in terminal= that the process ends there"
            raise InputError(f"state {shown(s)} has no action: {cure}")

    def law(self, s: Any, a: Any) -> Mapping[Any, Any]:
        """The law of the next state, {next: p} or {next: N numbers}."""
        answer = _ask("transition", self.transition, s, a)
        law = answer if type(answer) is dict else _law_of(answer, s, a)
        if not law:
            raise InputError(f"{_call(s, a)} is empty: no next state")
        p = next(iter(law.values()))
        n = len(p) if _is_many(p) else 1
        if n != self.n_kernels:
            if self.n_kernels or n == 0:
                before = f"{_call(*self.pair(0))} gives {_kernels(self.n_kernels)}"
                raise InputError(f"{_call(s, a)} gives {_kernels(n)}, but {before}")
            self.n_kernels = n
        return law

    def add(self, s: Any, a: Any, law: Mapping[Any, Any]) -> None:
        """Append a law, and what it costs."""
        many, first = self.n_kernels > 1, len(self.columns)
        known, columns, masses = self.numbers, self.columns, self.masses
        for t, p in law.items():
            if many:
                if not _is_many(p) or len(p) != self.n_kernels:
                    numbers = f"{shown(p)}: expected {self.n_kernels} numbers"
                    raise InputError(f"{_call(s, a)}: next state {shown(t)} has {numbers}")
                if not any(p):
                    continue
            elif type(p) is float and p == 0.0:
                continue
            columns.append(known[t] if t in known else self.number(t, (s, a)))
            masses.append(p)
            if self.by_next:
                self.prices.append(_ask(self.name, self.price, s, a, t))
        if len(self.columns) == first:
            raise InputError(f"{_call(s, a)} sums to 0, not 1")
        self.ends.append(len(self.columns))
        if not self.by_next:
            self.prices.append(_ask(self.name, self.price, s, a))

    def pair(self, k: int) -> tuple[Any, Any]:
        """State and action of pair k, by name."""
        s, a = self.pairs[k]
        return self.states[s], list(self.actions)[a]

    def check(self) -> None:
        """Turn the laws and costs since the last check into numbers, or name the first that is
        none.
        """
        if self.checked == len(self.pairs):
            return
        ends = np.frombuffer(self.ends, dtype=np.int64)[self.checked :].copy()
        first = ends[0]
        masses = self.numeric(self.masses, ends - first, "transition").reshape(len(self.masses), -1)
        masses = unsigned(masses, NEGATIVE)
        bad = ~(masses >= 0) | (masses == np.inf)
        sums = np.add.reduceat(np.where(bad, 0.0, masses), ends[:-1] - first, axis=0)
        off = np.abs(sums - 1) > ROW_SUM_TOL
        if bad.any() or off.any():
            self.refuse(masses, bad, sums, off, ends - first)
        step = ends - first if self.by_next else np.arange(ends.size)
        prices = self.numeric(self.prices, step, self.name)
        if at := first_place(~np.isfinite(prices)):
            self.fail(at[0], step, self.name, f"is {float(prices[at])!r}, not a finite number")
        self.data.append(masses)
        self.costs.append(prices + 0.0)
        self.checked = len(self.pairs)
        self.masses, self.prices = [], []

    def numeric(self, given: list[Any], ends: Any, function: str) -> Array:
        """The answers of a function as numbers."""
        try:
            array: Any = np.array(given)
            if array.dtype.kind in "biuf":
                return np.asarray(array, dtype=np.float64)
        except ValueError:  # not all of the same length
            pass
        many = function == "transition" and self.n_kernels > 1
        try:
            for k, value in enumerate(given):
                given[k] = [_real(x) for x in value] if many else _real(value)
        except (TypeError, ValueError, OverflowError):
            self.fail(k, ends, function, f"is {shown(value)}, not a number")
        return np.array(given)

    def refuse(self, masses: Array, bad: BoolArray, sums: Array, off: BoolArray, ends: Any) -> None:
        """Name the first pair whose law is no distribution."""
        pair = int(np.argmax((np.add.reduceat(bad.any(axis=1), ends[:-1]) > 0) | off.any(axis=1)))
        entries = slice(ends[pair], ends[pair + 1])
        if at := first_place(bad[entries]):
            fault = f"is {float(masses[entries][at])!r}, not a probability"
            self.fail(int(ends[pair]) + at[0], ends, "transition", fault, at[1])
        i = int(np.argmax(off[pair]))
        kernel = f", kernel {i}," if self.n_kernels > 1 else ""
        place = _call(*self.pair(self.checked + pair))
        raise InputError(f"{place}{kernel} sums to {float(sums[pair, i])!r}, not 1")

    def fail(self, k: int, ends: Any, function: str, fault: str, kernel: int | None = None) -> None:
        """Name the pair, and next state, of number k of those not checked yet."""
        pair = int(np.searchsorted(ends, k, side="right")) - 1
        names, column = self.pair(self.checked + pair), int(self.ends[self.checked]) + k
        if function != "transition":
            target = [self.states[self.columns[column]]] if self.by_next else []
            raise InputError(f"{_call(*names, *target, function=function)} {fault}")
        row = f"kernel {kernel}, " if kernel is not None and self.n_kernels > 1 else ""
        state = shown(self.states[self.columns[column]])
        raise InputError(f"{_call(*names)}: {row}next state {state} {fault}")

    def arguments(self, initial: Array, terminal: Any) -> dict[str, Any]:
        """Everything as arguments of a model; terminal states with their values if there are
        any.
        """
        self.check()
        S, A, N = len(self.states), len(self.actions), self.n_kernels
        if not self.pairs:
            what = "the process ends in every state; there is nothing to decide"
            raise InputError(f"terminal: {what}")
        s, a = np.array(self.pairs, dtype=np.int64).T
        lengths: Any = np.diff(np.frombuffer(self.ends, dtype=np.int64))
        keys = np.repeat(s * A + a, lengths) * S + np.frombuffer(self.columns, dtype=np.int64)
        order = np.argsort(keys, kind="stable")
        keys, masses = keys[order], np.concatenate(self.data)[order]
        parts, prices = [(keys, mass) for mass in masses.T], np.concatenate(self.costs)
        blocks = from_parts(parts, S, S, A, is_sparse=S * A * S * N > DENSE)
        available = np.zeros((S, A), dtype=bool)
        available[s, a] = True
        costs: Any = blocks.matrix(prices[order]) if self.by_next else np.zeros((S, A))
        if not self.by_next:
            costs[s, a] = prices
        ends: Any = np.array(self.terminal)
        if isinstance(terminal, Mapping):
            ends = {s: terminal[s] for s in compress(self.states, self.terminal)}
        return {
            **{"kernels": blocks, "rewards" if self.name == "rewards" else "costs": costs},
            **{"initial": initial, "available": available, "terminal": ends},
            **{"states": self.states, "actions": list(self.actions)},
        }


def _ask(name: str, function: Callable[..., Any], *names: Any) -> Any:
    """Call a function of the user; an error gets a note with the arguments."""
    try:
        return function(*names)
    except Exception as error:
        error.add_note(f"drmdp asked for {_call(*names, function=name)}")
        raise


def _call(*names: Any, function: str = "transition") -> str:
    """A call, for messages."""
    return f"{function}({', '.join(map(shown, names))})"


def _real(value: Any) -> float:
    """A number of any kind, such as a fraction; a text is none."""
    if isinstance(value, str | bytes) or _is_many(value):
        raise TypeError
    return float(value)


def _kernels(n: int) -> str:
    return f"{n} probabilities of a next state" if n != 1 else "one probability of a next state"


def _items(given: Any, what: str) -> list[Any]:
    items = items_of(given)
    if items is None:
        raise unexpected(what, "a collection", given)
    return items


def _start(initial: Any) -> dict[Any, float]:
    """States to begin from, and their probabilities."""
    if isinstance(initial, Mapping):
        start = {s: number(f"initial: state {shown(s)}", p) for s, p in initial.items()}
    else:
        states = _items(initial, "initial")
        for s in states:
            if not is_name(s):
                raise InputError(f"initial: {RULE}, got {shown(s)}")
        start = dict.fromkeys(states, 1 / max(1, len(states)))
        if len(start) < len(states):
            cure = f"; one state that is a tuple is [{shown(initial)}]"
            cure = cure if isinstance(initial, tuple) else ""
            raise InputError(f"initial: a state is given twice{cure}")
    if not start:
        raise InputError("initial: expected a collection of states, got none")
    return start


def _membership(terminal: Any) -> Callable[[Any], bool]:
    """Whether the process ends in a state, as a function."""
    if callable(terminal):
        return lambda s: bool(terminal(s))
    if isinstance(terminal, Mapping):
        return terminal.__contains__
    return set(() if terminal is None else _items(terminal, "terminal")).__contains__


def _required(function: Any) -> int:
    """Number of required arguments of a function."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


# ---------------------------------------------------------------------- laws


def _law_of(answer: Any, *pair: Any) -> dict[Any, Any]:
    """A law as {next: p}, or {next: N numbers}; `pair` are the arguments of the function."""
    if isinstance(answer, Mapping):
        return dict(answer)
    parts = items_of(answer)
    if parts is None or not all(isinstance(part, Mapping | list | tuple) for part in parts):
        raise InputError(f"{_call(*pair)} is {shown(answer)}: {FORMS}")
    if all(map(_is_entry, parts)):
        return _added(parts, *pair)
    joined: dict[Any, list[Any]] = {}
    for i, part in enumerate(parts):
        for t, p in (part if isinstance(part, Mapping) else _added(part, *pair)).items():
            if _is_many(p):
                entry = f"next state {shown(t)} has {shown(p)}"
                raise InputError(f"{_call(*pair)}, kernel {i}: {entry}: {FORMS}")
            joined.setdefault(t, [0.0] * len(parts))[i] = p
    return joined


def _added(entries: Iterable[Any], *pair: Any) -> dict[Any, Any]:
    """The law of entries (next, p)."""
    law: dict[Any, Any] = {}
    for entry in entries:
        if not _is_entry(entry):
            raise InputError(f"{_call(*pair)} holds {shown(entry)}: {FORMS}")
        t, p = entry
        if not is_name(t):
            raise InputError(f"{_call(*pair)}, next state: {RULE}, got {shown(t)}")
        if t not in law:
            law[t] = p
        elif _is_many(p) and _is_many(law[t]) and len(p) == len(law[t]):
            law[t] = [x + y for x, y in zip(law[t], p, strict=True)]
        else:
            law[t] = law[t] + p
    return law


def _is_entry(given: Any) -> bool:
    """Whether something is (next, p), p a number or several: no law of two entries."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    p = given[1]
    return not (isinstance(p, tuple | list) and any(isinstance(part, tuple | list) for part in p))


def _is_many(p: Any) -> bool:
    """Whether something is a probability for each kernel."""
    return isinstance(p, list | tuple) or (isinstance(p, np.ndarray) and p.ndim == 1)
