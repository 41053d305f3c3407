"""Toy-text environments of gymnasium, whose dynamics are a table: ``env.unwrapped.P[s][a] = [(p, t,
reward, terminated), …]``.

A state that some transition enters with `terminated` is terminal: whatever the table says of it is
not read. The start distribution is the environment's; so are the names of the actions, where its
module has a constant for each (LEFT, DOWN, …). Rewards that depend on the next state are known only
where a transition is, so such a model needs support "observed".
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import ArrayLike
from drmdp.core.validation import Names, is_integer, number
from drmdp.errors import InputError, brief, imported, shown, unexpected
from drmdp.formats._cells import ModelParts, TransitionList, list_cells, model_of
from drmdp.formats._kernels import Which, alone, kernel_of, stacked
from drmdp.model import Model

Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


def from_gymnasium(
    env: Any,
    discount: float,
    weights: ArrayLike = None,
    names: Names | None = None,
    make: Mapping[str, Any] | None = None,
) -> Model:
    """Take over an environment as a model with one kernel, or several as one with a kernel each.

    Parameters
    ----------
    env : environment, its table `P`, its name, or a list of these
        Environments that differ in how they slip are different kernels of one model.
    discount : float in [0, 1]
        An environment has none.
    weights, names : optional
        Of the kernels, for a list; see `drmdp.stack`.
    make : mapping, optional
        What `gymnasium.make` gets beside a name, as in ``{"is_slippery": False}``.

    Raises
    ------
    InputError
        If there is no table, if it is damaged, or if a state that can be reached is entered both
        with and without `terminated`.
    """
    if isinstance(env, list | tuple):
        return stacked(env, lambda item: from_gymnasium(item, discount, make=make), weights, names)
    alone(weights, names)
    if isinstance(env, str):
        return _from_name(env, discount, make or {})
    base = getattr(env, "unwrapped", env)
    table = base if isinstance(base, Mapping) else getattr(base, "P", None)
    if not isinstance(table, Mapping):
        raise InputError(f"{type(base).__name__} has no table P of transitions")
    S = len(table)
    A = max((len(row) for row in table.values() if isinstance(row, Mapping)), default=1)
    if not S or not A:
        raise InputError("P: no states" if not S else "P: no actions")
    merged: dict[tuple[int, int, int], list[float]] = {}
    ends: dict[int, tuple[int, int]] = {}
    goes: list[tuple[int, int, int]] = []
    for s, a, p, t, reward, end in _entries(table, S, A):
        cell = merged.setdefault((s, a, t), [0.0, 0.0, reward, reward])
        cell[0] += p
        cell[1] += p * reward
        cell[2], cell[3] = min(cell[2], reward), max(cell[3], reward)
        if end and p > 0:
            ends.setdefault(t, (s, a))
        elif p > 0:
            goes.append((s, a, t))
    initial = _initial(base, S)
    _check_ends(ends, goes, initial, S)
    keys = np.array(list(merged), dtype=np.int64).reshape(-1, 3)
    values = np.array(list(merged.values()), dtype=np.float64).reshape(-1, 4)
    mean = values[:, 1] / np.where(values[:, 0] > 0, values[:, 0], 1)
    reward = np.where(values[:, 2] == values[:, 3], values[:, 2], mean)
    terminal = np.zeros(S, dtype=bool)
    terminal[list(ends)] = True
    s, a, t = keys.T.copy()
    cells = TransitionList(s, a, t, values[:, 0], reward, lambda k: f"state {s[k]}, action {a[k]}")
    parts = ModelParts(discount, initial, actions=_action_names(base, A), terminal=terminal)
    return model_of(cells, (1, S, A), parts)


def _from_name(name: str, discount: float, options: Mapping[str, Any]) -> Model:
    """Make an environment, take it over and close it."""
    gymnasium = imported("gymnasium")
    try:
        env = gymnasium.make(name, **options)
    except Exception as error:  # an unknown name or option, a package that is missing
        reason = (str(error).splitlines() or [""])[0]
        reason = brief(reason, 160) or type(error).__name__
        raise InputError(f"gymnasium.make({name!r}): {reason}") from None
    try:
        return from_gymnasium(env, discount)
    finally:
        env.close()


def to_gymnasium(model: Model, *, kernel: Which = None) -> Table:
    """Give one kernel as a table `P`: entering a terminal state is `terminated`, unavailable
    actions are left out.

    Parameters
    ----------
    model : Model
        What to give.
    kernel : number or name of a kernel, or "mean", optional
        Which, if there are several.
    """
    matrix = kernel_of(model, kernel)
    known = {(s, a, t): reward for _, s, a, t, _, reward in list_cells(model)}
    table: Table = {s: {} for s in range(model.n_states)}
    for pair in range(matrix.shape[0]):
        s, a = divmod(pair, model.n_actions)
        if model.available[s, a] or model.terminal[s]:
            begin, stop = matrix.indptr[pair], matrix.indptr[pair + 1]
            table[s][a] = [
                (float(p), int(t), known.get((s, a, int(t)), 0.0), bool(model.terminal[t]))
                for t, p in zip(matrix.indices[begin:stop], matrix.data[begin:stop], strict=True)
            ]
    return table


def _entries(table: Mapping[Any, Any], S: int, A: int) -> Any:
    """(s, a, p, t, reward, terminated), checked."""
    for s, row in table.items():
        if not (_is_index(s, S) and isinstance(row, Mapping)):
            rule = f"states are 0 … {S - 1}, each with a mapping"
            raise InputError(f"P: {rule}, got {shown(s)}: {shown(row)}")
        for a, entries in row.items():
            where = f"P: state {s}, action {shown(a)}"
            if not _is_index(a, A):
                raise InputError(f"{where}: actions are 0 … {A - 1}")
            if not isinstance(entries, list | tuple):
                raise unexpected(where, "a list of transitions", entries)
            for entry in entries:
                try:
                    p, t, reward, end = entry
                except (TypeError, ValueError):
                    raise unexpected(where, "(p, t, reward, terminated)", entry) from None
                if not _is_index(t, S):
                    raise InputError(f"{where}: unknown next state {shown(t)}")
                p, reward = number(where, p), number(where, reward)
                for value in (p, reward):
                    if not math.isfinite(value):
                        rule = "probabilities and rewards must be finite"
                        raise InputError(f"{where}: {rule}, got {value!r}")
                yield int(s), int(a), p, int(t), reward, bool(end)


def _is_index(value: Any, below: int) -> bool:
    return is_integer(value) and bool(0 <= value < below)


def _action_names(env: Any, A: int) -> list[str] | None:
    """Names of the actions, if the module of the environment has a constant for each: LEFT, DOWN,
    RIGHT, UP.
    """
    constants = getattr(sys.modules.get(type(env).__module__), "__dict__", {})
    upper = ((name, number) for name, number in constants.items() if name.isupper())
    names = {number: name for name, number in upper if type(number) is int and 0 <= number < A}
    return [names[a] for a in range(A)] if len(names) == A > 1 else None


def _initial(env: Any, S: int) -> Any:
    initial = np.asarray(getattr(env, "initial_state_distrib", ()), dtype=np.float64)
    return initial / initial.sum() if initial.shape == (S,) and initial.sum() > 0 else None


def _check_ends(
    ends: dict[int, tuple[int, int]], goes: list[tuple[int, int, int]], initial: Any, S: int
) -> None:
    """A state is terminal or not, however it is entered; what cannot be reached from the start does
    not count.
    """
    from scipy.sparse.csgraph import breadth_first_order  # takes a tenth of a second

    starts = range(S) if initial is None else np.flatnonzero(initial).tolist()
    moves = [(s, t) for s, _, t in goes if s not in ends] + [(S, s) for s in starts]
    flags = np.ones(len(moves), dtype=bool)
    graph = sparse.csr_array((flags, np.transpose(moves)), shape=(S + 1, S + 1))
    reached = set(breadth_first_order(graph, S, return_predecessors=False).tolist())
    for s, a, t in goes:
        if t in ends and s in reached and s not in ends:
            where = f"state {ends[t][0]}, action {ends[t][1]}"
            other = f"state {s}, action {a} goes on from there"
            raise InputError(f"P: {where} ends in state {t}, but {other}")
