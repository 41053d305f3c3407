"""Construction of a model of events; its functions are evaluated and checked once."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.core import validation as checks
from drmdp.core.distributions import labels_of
from drmdp.core.validation import Names
from drmdp.errors import InputError, first_place, shown, unexpected
from drmdp.io.files import memory_limit
from drmdp.model import state_ranges
from drmdp.model.events import EventModel, tabulated
from drmdp.model.events.laws import checked_laws
from drmdp.model.events.rules import EventFunction
from drmdp.model.grid import Grid
from drmdp.model.rates import by_pair
from drmdp.ui.progress import stage


def build(arguments: dict[str, Any]) -> EventModel:
    """The model of the arguments of `drmdp.Model.from_events`."""
    states, names = arguments["states"], arguments["names"]
    if isinstance(states, Grid):
        S, names = len(states), states if names is None else names
    else:
        S = checks.integer("states", states, 1, 2**31 - 1)
    A, actions = _counted("actions", arguments["actions"])
    E, _ = _counted("events", arguments["events"])
    laws = checked_laws(arguments["laws"], E)
    N = laws.shape[1]
    labels = labels_of((S, A, N), names, actions, arguments["kernel_names"], "names")
    flags = arguments["available"]
    flags = np.array(_pairs("available", flags, S, A), dtype=bool) if callable(flags) else flags
    end, ends, available = state_ranges.open_pairs_of(arguments["terminal"], flags, labels)
    function = arguments["transition"]
    if not callable(function):
        raise unexpected("transition", "a function of state, action and event", function)
    rewards = arguments["rewards"]
    model: EventModel = object.__new__(EventModel)
    model._set(
        **{"n_states": S, "n_actions": A, "n_kernels": N, "first": 0, "n_next": S},
        discount=checks.common_discount(arguments["discount"], "a model of events"),
        weights=checks.distribution("weights", arguments["weights"], labels.kernels, "kernel"),
        initial=checks.distribution("initial", arguments["initial"], labels.states, "state"),
        **{"states": labels.states, "actions": labels.actions, "kernel_names": labels.kernels},
        **{"available": available, "terminal": end},
        ends=ends if ends is None or rewards is None else 0.0 - ends,
        **{"is_sparse": True, "maximise": rewards is not None, "notes": (), "laws": laws},
        **dict.fromkeys(("discounts", "sojourn", "start", "origin", "_counts")),
        rule=EventFunction(function, S, A, E, -1.0 if rewards is True else 1.0),
        classes=_classes(arguments["law"], len(laws), S, A),
        **{"priced": False, "_prices": np.zeros((S, A))},
    )
    return _with_costs(model, arguments)


def _with_costs(model: EventModel, arguments: dict[str, Any]) -> EventModel:
    """Take the costs of events or of pairs, evaluate everything once, and store a table if it
    fits.
    """
    S, A, E = model.n_states, model.n_actions, model.n_events
    priced = _returns_costs(model)
    name = "costs" if arguments["rewards"] is None else "rewards"
    costs = arguments[name]
    if arguments["costs"] is not None and arguments["rewards"] is not None:
        raise InputError("give one of costs and rewards, got both")
    by_action = costs is not None and costs is not True
    if by_action and priced:
        raise InputError(f"{name}: transition tells costs of its own, and {name} were given too")
    if not by_action and not priced:
        raise InputError("costs: transition tells none, and none were given")
    prices: Any = np.zeros((S, A))
    if by_action:
        prices = np.where(model.available, by_pair(name, costs, (S, A)), 0.0)
        checks.check_costs(name, prices, None, model.discount, model.labels)
        prices = 0.0 - prices if model.maximise else prices
    model._set(priced=priced, _prices=prices)
    store = arguments["store"]
    if store is None:
        store = S * A * E * (12 if model.priced else 4) <= memory_limit() // 4
    with stage("asking for next states"):
        table = tabulated(model, keep=bool(store))
    return model._with(rule=table) if store else model


def _returns_costs(model: EventModel) -> bool:
    rule: Any = model.rule
    if rule.compiled:
        return bool(rule.with_costs)
    pair = first_place(model.available) or (0, 0)
    return isinstance(rule.function(*(np.full((1, 1, 1), k) for k in (*pair, 0))), tuple)


def _counted(name: str, given: Any) -> tuple[int, Names]:
    """A number of things, or their names."""
    if checks.is_integer(given):
        n = checks.integer(name, given, 1)
        return n, range(n)
    names = tuple(given) if isinstance(given, list | tuple | range) else None
    if not names:
        raise InputError(f"{name}: expected a number or a list of names, got {shown(given)}")
    return len(names), checks.names_of(name, names, len(names))


def _classes(given: Any, C: int, S: int, A: int) -> Any:
    if given is None:
        if C > 1:
            cure = "say which one each pair has, (S, A) numbers or a function"
            raise InputError(f"law: there are {C} classes of laws: {cure}")
        return np.zeros((0, 0), np.uint16)
    classes = _pairs("law", given, S, A) if callable(given) else np.asarray(given)
    if classes.shape != (S, A) or classes.dtype.kind not in "iu":
        kind = f"{classes.dtype} {classes.shape}"
        raise InputError(f"law: expected whole numbers of shape {(S, A)}, got {kind}")
    if at := first_place((classes < 0) | (classes >= C)):
        raise InputError(f"law{at} is {int(classes[at])}, expected 0 … {C - 1}")
    return np.ascontiguousarray(classes, dtype=np.uint16)


def _pairs(name: str, function: Any, S: int, A: int) -> Any:
    """A function of all pairs, as an array (S, A)."""
    if hasattr(function, "py_func"):
        return np.array([[function(s, a) for a in range(A)] for s in range(S)])
    try:
        return np.broadcast_to(np.asarray(function(*np.ogrid[:S, :A])), (S, A))
    except ValueError as error:
        raise InputError(f"{name}: asked with arrays ({S}, 1) and (1, {A}): {error}") from None
