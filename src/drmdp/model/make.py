"""How a model of events is made of what users give: everything is asked and checked once."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import BoolArray
from drmdp.core import spans
from drmdp.core import validation as checks
from drmdp.core.distributions import Labels
from drmdp.core.event_laws import checked_laws
from drmdp.core.files import memory_limit
from drmdp.core.grid import Grid
from drmdp.core.progress import stage
from drmdp.core.rules import Function
from drmdp.core.validation import Names
from drmdp.errors import InputError, shown
from drmdp.model.events import EventModel, tabulated


def build(given: dict[str, Any]) -> EventModel:
    """The model that `drmdp.Model.from_events` was asked for."""
    states, named = given["states"], given["names"]
    if isinstance(states, Grid):
        S, state_names = len(states), states if named is None else checks.names_of("names", named, len(states))
    else:
        S = checks.whole("states", states, 1, 2**31 - 1)
        state_names = checks.names_of("names", named, S)
    A, action_names = _counted("actions", given["actions"])
    E, _ = _counted("events", given["events"])
    laws = checked_laws(given["laws"], E)
    kernel_names = checks.names_of("kernel_names", given["kernel_names"], laws.shape[1])
    end, ends = checks.terminal_of(given["terminal"], state_names)
    available = _flags(given["available"], state_names, action_names) & ~end[:, None]
    labels = Labels(kernel_names, state_names, action_names)
    spans.check_open(available, end, labels)
    rule = given["transition"]
    if not callable(rule):
        raise InputError(f"transition: expected a function of state, action and event, got {shown(rule)}")
    model: EventModel = object.__new__(EventModel)
    model._set(
        n_states=S, n_actions=A, n_kernels=laws.shape[1], first=0, n_next=S,
        discount=checks.one_discount(given["discount"], "a model of events"), discounts=None, sojourn=None,
        weights=checks.distribution("weights", given["weights"], kernel_names, "kernel"),
        initial=checks.distribution("initial", given["initial"], state_names, "state"),
        states=state_names, actions=action_names, available=available, terminal=end,
        ends=ends if ends is None or given["rewards"] is None else 0.0 - ends, kernel_names=kernel_names,
        is_sparse=True, maximise=given["rewards"] is not None, notes=(), start=None, origin=None, _counts=None, laws=laws,
        rule=Function(rule, S, A, E, -1.0 if given["rewards"] is True else 1.0),
        classes=_classes(given["law"], len(laws), S, A), priced=False, _prices=np.zeros((S, A)),
    )  # fmt: skip
    return _settled(model, given)


def _settled(model: EventModel, given: dict[str, Any]) -> EventModel:
    """Decide whose costs count, ask everything once, and keep a table if it fits."""
    S, A, E = model.n_states, model.n_actions, model.n_events
    told = _tells_costs(model)
    costs = given["costs"] if given["rewards"] is None else given["rewards"]
    name = "costs" if given["rewards"] is None else "rewards"
    if given["costs"] is not None and given["rewards"] is not None:
        raise InputError("give one of costs and rewards, got both")
    own = costs is not None and costs is not True
    if own == told:
        raise InputError(
            f"{name}: transition tells costs of its own, and {name} were given too"
            if own
            else "costs: transition tells none, and none were given"
        )
    prices: Any = np.zeros((S, A))
    if own:
        prices = checks.numbers(name, costs)
        prices = np.repeat(prices[:, None], A, axis=1) if prices.shape == (S,) else prices
        if prices.shape != (S, A):
            raise InputError(f"{name}: expected shape {(S, A)} or {(S,)}, got {prices.shape}")
        prices = np.where(model.available, prices, 0.0)
        checks.check_costs(name, prices, None, model.discount, model.labels)
        prices = 0.0 - prices if model.maximise else prices
    model._set(priced=not own, _prices=prices)
    size = S * A * E * (12 if model.priced else 4)
    store = given["store"]
    if store is None:
        store = size <= memory_limit() // 4
    with stage("asking for next states"):
        table = tabulated(model, keep=bool(store))
    return model._with(rule=table) if store else model


def _tells_costs(model: EventModel) -> bool:
    rule = model.rule
    assert isinstance(rule, Function)
    s, a = np.unravel_index(int(np.argmax(model.available)), model.available.shape)
    if rule.compiled:
        return rule.with_costs
    found = rule.function(np.full((1, 1, 1), s), np.full((1, 1, 1), a), np.zeros((1, 1, 1), dtype=np.int64))
    return isinstance(found, tuple)


def _counted(name: str, given: Any) -> tuple[int, Names]:
    """A number of things, or their names."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        n = checks.whole(name, given, 1)
        return n, range(n)
    names = tuple(given) if isinstance(given, list | tuple | range) else None
    if not names:
        raise InputError(f"{name}: expected a number or a list of names, got {shown(given)}")
    return len(names), checks.names_of(name, names, len(names))


def _flags(given: Any, states: Names, actions: Names) -> BoolArray:
    """Available pairs, from flags, a mapping, or a function (state, action) of NumPy arrays."""
    if not callable(given):
        return checks.available_flags(given, states, actions)
    return np.array(_pairs("available", given, len(states), len(actions)), dtype=bool)


def _classes(given: Any, C: int, S: int, A: int) -> Any:
    if given is None:
        if C > 1:
            raise InputError(
                f"law: there are {C} classes of laws: say which one each pair has, (S, A) numbers or a function"
            )
        return np.zeros((0, 0), np.uint16)
    found = _pairs("law", given, S, A) if callable(given) else np.asarray(given)
    if found.shape != (S, A) or found.dtype.kind not in "iu":
        raise InputError(f"law: expected whole numbers of shape {(S, A)}, got {found.dtype} {found.shape}")
    bad = (found < 0) | (found >= C)
    if bad.any():
        s, a = (int(k) for k in np.argwhere(bad)[0])
        raise InputError(f"law({s}, {a}) is {int(found[s, a])}, expected 0 … {C - 1}")
    return np.ascontiguousarray(found, dtype=np.uint16)


def _pairs(name: str, function: Any, S: int, A: int) -> Any:
    """What a function says of all pairs."""
    if hasattr(function, "py_func"):
        return np.array([[function(s, a) for a in range(A)] for s in range(S)])
    try:
        return np.broadcast_to(np.asarray(function(np.arange(S)[:, None], np.arange(A)[None, :])), (S, A))
    except ValueError as error:
        raise InputError(f"{name}: asked with arrays ({S}, 1) and (1, {A}): {error}") from None
