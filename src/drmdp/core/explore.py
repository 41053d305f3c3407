"""Models of plain Python functions: every state that can be reached is visited once, breadth first, and numbered in the order met.

`transition(s, a)` gives the law of the next state, in each of N kernels (`drmdp.core.laws`). A next state that no kernel reaches is not
there. Probabilities and costs are checked some thousands at a time, so that a slip is told soon and costs little to find.
"""

from __future__ import annotations

import inspect
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.laws import called, is_many, law_of, listed
from drmdp.core.names import RULE, is_name
from drmdp.core.progress import stage
from drmdp.core.storage import NEGATIVE, ROW_SUM_TOL, Kernels, unsigned
from drmdp.core.validation import number
from drmdp.errors import InputError, shown

SOME = 10_000
"""Numbers that are checked at a time."""
DENSE = 1_000_000
"""Kernels of up to so many numbers are given back as arrays."""


@dataclass(frozen=True)
class Found:
    """What functions say, in the arrays of a model."""

    states: list[Any]
    actions: list[Any]
    blocks: Kernels
    costs: Any  # (S, A), or sparse (S·A, S)
    available: BoolArray
    terminal: BoolArray
    initial: Array


def explore(
    initial: Any, actions: Any, transition: Callable[..., Any], price: Callable[..., Any], name: str, terminal: Any, limit: int
) -> Found:  # fmt: skip
    """Visit all states that can be reached; `price` is the function called `name`, of costs or rewards."""
    walk = _Walk(transition, price, name, _required(price) >= 3, limit)
    start = _start(initial)
    for s in start:
        walk.number(s, "initial")
    ends = _membership(terminal)
    with stage("visiting states") as own:
        own.detail = lambda: f"{walk.done:,} of {len(walk.states):,} so far"
        while walk.done < len(walk.states):
            s = walk.states[walk.done]
            flag = _told("terminal", ends, s)
            walk.terminal.append(flag)
            if not flag:
                walk.visit(s, _told("actions", actions, s) if callable(actions) else actions)
            walk.done += 1
    first = np.zeros(len(walk.states))
    first[[walk.numbers[s] for s in start]] = list(start.values())
    return walk.found(first)


@dataclass
class _Walk:
    """The states met so far, and what the functions said of those visited."""

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
        if is_name(s) and s in self.numbers:
            return self.numbers[s]
        if not is_name(s):
            place = where if isinstance(where, str) else f"{called('transition', *where)}, next state"
            raise InputError(f"{place}: {RULE}, got {shown(s)}")
        if len(self.states) >= self.limit:
            place = "" if isinstance(where, str) else f" at {called('transition', *where)}"
            raise InputError(f"limit: more than {self.limit:,} states can be reached: {shown(s)} was met{place}")
        self.states.append(s)
        self.numbers[s] = len(self.states) - 1
        return len(self.states) - 1

    def visit(self, s: Any, actions: Iterable[Any]) -> None:
        """Ask for all actions of a state."""
        seen = set()
        for a in _items(actions, f"actions({shown(s)})" if callable(actions) else "actions"):
            if not is_name(a):
                raise InputError(f"actions of state {shown(s)}: {RULE}, got {shown(a)}")
            if a in seen:
                raise InputError(f"actions of state {shown(s)}: {shown(a)} is given twice")
            seen.add(a)
            self.pairs.append((self.done, self.actions.setdefault(a, len(self.actions))))
            self.add(s, a, self.law(s, a))
            if len(self.masses) >= SOME:
                self.check()
        if not seen:
            raise InputError(
                f"state {shown(s)} has no action: give it one, or say in terminal= that the process ends there"
            )

    def law(self, s: Any, a: Any) -> Mapping[Any, Any]:
        """The law of the next state, {next: p} or {next: N numbers}."""
        given = _told("transition", self.transition, s, a)
        law = given if type(given) is dict else law_of(given, s, a)
        if not law:
            raise InputError(f"{called('transition', s, a)} is empty: no next state")
        n = _length(next(iter(law.values())))
        if n != self.n_kernels:
            if self.n_kernels or n == 0:
                raise InputError(
                    f"{called('transition', s, a)} gives {_kernels(n)}, but {self.before()} gives {_kernels(self.n_kernels)}"
                )
            self.n_kernels = n
        return law

    def add(self, s: Any, a: Any, law: Mapping[Any, Any]) -> None:
        """Write a law down, and what it costs."""
        many, first = self.n_kernels > 1, len(self.columns)
        known, columns, masses = self.numbers, self.columns, self.masses
        for t, p in law.items():
            if many:
                if not is_many(p) or len(p) != self.n_kernels:
                    expected = f"expected {self.n_kernels} numbers"
                    raise InputError(f"{called('transition', s, a)}: next state {shown(t)} has {shown(p)}: {expected}")
                if not any(p):
                    continue
            elif type(p) is float and p == 0.0:
                continue
            columns.append(known[t] if t in known else self.number(t, (s, a)))
            masses.append(p)
            if self.by_next:
                self.prices.append(_told(self.name, self.price, s, a, t))
        if len(self.columns) == first:
            raise InputError(f"{called('transition', s, a)} sums to 0, not 1")
        self.ends.append(len(self.columns))
        if not self.by_next:
            self.prices.append(_told(self.name, self.price, s, a))

    def before(self) -> str:
        """The first pair that was asked."""
        s, a = self.pairs[0]
        return called("transition", self.states[s], list(self.actions)[a])

    def check(self) -> None:
        """Turn what was written down into numbers, or name the first that is none."""
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
        bad = ~np.isfinite(prices)
        if bad.any():
            self.told(
                int(np.argmax(bad)), step, self.name, f"is {float(prices[np.argmax(bad)])!r}, not a finite number"
            )
        self.data.append(masses)
        self.costs.append(prices + 0.0)
        self.checked = len(self.pairs)
        self.masses, self.prices = [], []

    def numeric(self, given: list[Any], ends: Any, function: str) -> Array:
        """Numbers of what functions gave."""
        try:
            found: Any = np.array(given)
            if found.dtype.kind in "biuf":
                return np.asarray(found, dtype=np.float64)
        except ValueError:  # not all of the same length
            pass
        many = function == "transition" and self.n_kernels > 1
        try:
            for k, value in enumerate(given):
                given[k] = [_real(x) for x in value] if many else _real(value)
        except (TypeError, ValueError, OverflowError):
            self.told(k, ends, function, f"is {shown(value)}, not a number")
        return np.array(given)

    def refuse(self, masses: Array, bad: BoolArray, sums: Array, off: BoolArray, ends: Any) -> None:
        """Name the first pair whose law is none."""
        pair = int(np.argmax((np.add.reduceat(bad.any(axis=1), ends[:-1]) > 0) | off.any(axis=1)))
        own = slice(ends[pair], ends[pair + 1])
        if bad[own].any():
            k, i = map(int, np.argwhere(bad[own])[0])
            self.told(int(ends[pair]) + k, ends, "transition", f"is {float(masses[own][k, i])!r}, not a probability", i)
        i = int(np.argmax(off[pair]))
        kernel = f", kernel {i}," if self.n_kernels > 1 else ""
        s, a = self.pairs[self.checked + pair]
        where = called("transition", self.states[s], list(self.actions)[a])
        raise InputError(f"{where}{kernel} sums to {float(sums[pair, i])!r}, not 1")

    def told(self, k: int, ends: Any, function: str, what: str, kernel: int | None = None) -> None:
        """Name the pair, and next state, of number k of those not checked yet."""
        pair = int(np.searchsorted(ends, k, side="right")) - 1
        s, a = self.pairs[self.checked + pair]
        names = self.states[s], list(self.actions)[a]
        column = int(self.ends[self.checked]) + k
        if function != "transition":
            raise InputError(
                f"{called(function, *names, *([self.states[self.columns[column]]] if self.by_next else []))} {what}"
            )
        row = f"kernel {kernel}, " if kernel is not None and self.n_kernels > 1 else ""
        raise InputError(
            f"{called(function, *names)}: {row}next state {shown(self.states[self.columns[column]])} {what}"
        )

    def found(self, initial: Array) -> Found:
        """Everything in the arrays of a model."""
        self.check()
        S, A, N = len(self.states), len(self.actions), self.n_kernels
        if not self.pairs:
            raise InputError("terminal: the process ends in every state; there is nothing to decide")
        s, a = np.array(self.pairs, dtype=np.int64).T
        lengths: Any = np.diff(np.frombuffer(self.ends, dtype=np.int64))
        keys = np.repeat(s * A + a, lengths) * S + np.frombuffer(self.columns, dtype=np.int64)
        order = np.argsort(keys, kind="stable")
        pair, column = np.divmod(keys[order], S)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=S * A))]).astype(np.int64)
        data = np.zeros(N * order.size)
        blocks = Kernels(S, A, N, indptr, column.astype(np.int32), data.view(), S * A * S * N > DENSE)
        masses, prices = np.concatenate(self.data)[order], np.concatenate(self.costs)
        for i in range(N):
            data[blocks.positions(i)] = masses[:, i]
        available = np.zeros((S, A), dtype=bool)
        available[s, a] = True
        costs: Any = np.zeros((S, A))
        if self.by_next:
            costs = blocks.matrix(prices[order])
        else:
            costs[s, a] = prices
        return Found(self.states, list(self.actions), blocks, costs, available, np.array(self.terminal), initial)


def _told(name: str, function: Callable[..., Any], *names: Any) -> Any:
    """What a function says; if it fails, of what it was asked is noted."""
    try:
        return function(*names)
    except Exception as error:
        error.add_note(f"drmdp asked for {called(name, *names)}")
        raise


def _real(value: Any) -> float:
    """A number of any kind, such as a fraction; a text is none."""
    if isinstance(value, str | bytes) or is_many(value):
        raise TypeError
    return float(value)


def _length(p: Any) -> int:
    return len(p) if is_many(p) else 1


def _kernels(n: int) -> str:
    return f"{n} probabilities of a next state" if n != 1 else "one probability of a next state"


def _items(given: Any, what: str) -> list[Any]:
    found = None if isinstance(given, str | bytes | Mapping) else listed(given)
    if found is None:
        raise InputError(f"{what}: expected a collection, got {shown(given)}")
    return found


def _start(initial: Any) -> dict[Any, float]:
    """States to begin from, and their probabilities."""
    if isinstance(initial, Mapping):
        found = {s: number(f"initial: state {shown(s)}", p) for s, p in initial.items()}
    else:
        states = _items(initial, "initial")
        for s in states:
            if not is_name(s):
                raise InputError(f"initial: {RULE}, got {shown(s)}")
        found = dict.fromkeys(states, 1 / max(1, len(states)))
        if len(found) < len(states):
            alone = f"; one state that is a tuple is [{shown(initial)}]" if isinstance(initial, tuple) else ""
            raise InputError(f"initial: a state is given twice{alone}")
    if not found:
        raise InputError("initial: expected a collection of states, got none")
    return found


def _membership(terminal: Any) -> Callable[[Any], bool]:
    """Whether the process ends in a state, as a function."""
    if callable(terminal):
        return lambda s: bool(terminal(s))
    if isinstance(terminal, Mapping):
        return terminal.__contains__
    return set(() if terminal is None else _items(terminal, "terminal")).__contains__


def _required(function: Any) -> int:
    """How many arguments a function needs."""
    try:
        own = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in own)
