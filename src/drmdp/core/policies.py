"""Policies as users give them, checked against a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import storage
from drmdp.core import validation as checks
from drmdp.errors import InputError, shown


def checked(model: Any, policy: ArrayLike) -> Array:
    """Return a policy as (S, A), or say what is wrong with it; see `Model.policy` for the forms."""
    S, A = model.n_states, model.n_actions
    tol = storage.ROW_SUM_TOL
    policy = checks.policy_of(policy, model)
    if is_table(policy):
        policy = from_table(model, policy)
    if isinstance(policy, Mapping):
        x = _from_mapping(model, policy)
    elif isinstance(policy, list | tuple) and policy and all(isinstance(name, str) for name in policy):
        raise InputError(f"policy: names of actions go with those of states, {{state: action}}, got {shown(policy)}")
    else:
        x, tol = checks.numbers_with_slack("policy", policy)
        if x.shape == (S,):
            x = _from_actions(model, x)
        elif x.shape != (S, A):
            staged = (
                f": it has a policy for each of {len(x):,} stages: give one of them" if x.shape[1:] == (S, A) else ""
            )
            raise InputError(f"policy: expected shape {(S, A)} or {(S,)}, got {x.shape}{staged}")
    x = np.where(model.terminal[:, None], 0.0, x)
    for bad, rule in (
        (~np.isfinite(x), "probabilities must be finite"),
        (x < 0, "probabilities must not be negative"),
        ((x > 0) & ~model.available, "an unavailable action is played"),
    ):
        if bad.any():
            s, a = np.argwhere(bad)[0]
            where = f"state {model.states[s]!r}, action {model.actions[a]!r}"
            raise InputError(f"policy: {rule}: {where} has {float(x[s, a])!r}")
    with np.errstate(over="ignore"):
        total = x.sum(axis=1)
    off = np.where(model.terminal, 0, np.abs(total - 1))
    if off.max() > tol:
        s = int(np.argmax(off > tol))
        raise InputError(f"policy: state {model.states[s]!r} sums to {float(total[s])!r}, not 1")
    return x / np.where(model.terminal, 1, total)[:, None]


def _from_actions(model: Any, chosen: Array) -> Array:
    x = np.zeros((model.n_states, model.n_actions))
    played = ~model.terminal
    bad = played & ~((chosen >= 0) & (chosen < model.n_actions) & (chosen == np.floor(chosen)))
    if bad.any():
        s = int(np.argmax(bad))
        rule = f"expected action numbers 0 … {model.n_actions - 1}"
        raise InputError(f"policy: {rule}: state {model.states[s]!r} has {float(chosen[s])!r}")
    x[played, chosen[played].astype(np.int64)] = 1
    return x


def _from_mapping(model: Any, policy: Mapping[Any, Any]) -> Array:
    x = np.zeros((model.n_states, model.n_actions))
    rows, columns = checks.lookup(model.states), checks.lookup(model.actions)
    missing = ~model.terminal
    for state, choice in policy.items():
        s = checks.find(rows, state, "policy", "state")
        missing[s] = False
        where = f"policy: state {model.states[s]!r}"
        for action, probability in choice.items() if isinstance(choice, Mapping) else ((choice, 1.0),):
            a = checks.find(columns, action, where, "action")
            x[s, a] = checks.number(f"{where}, action {model.actions[a]!r}", probability)
    if missing.any():
        raise InputError(f"policy: state {model.states[int(np.argmax(missing))]!r} is missing")
    return x


# ---------------------------------------------------------------------- tables


def is_table(given: Any) -> bool:
    """Whether something is a table of a policy, of polars or pandas."""
    return hasattr(given, "columns") and {"state", "action"} <= set(given.columns)


def _known(names: Mapping[Any, Any], label: Any) -> Any:
    """The name that a label means, if it is there as it is or as a text; "1.0" is 1, as other programs write it."""
    text = str(label)
    return next((names[key] for key in (label, text, text.removesuffix(".0")) if key in names), label)


def from_table(model: Any, table: Any) -> Any:
    """The policy of a table with the columns state, action and, unless it is 1, probability; with a stage, a list of policies.

    Names may be texts of what the model has. Rows without an action, as those of terminal states, say nothing.
    """
    states, actions = (
        {**{str(name): name for name in names}, **{name: name for name in names}}
        for names in (model.states, model.actions)
    )
    n = len(table)
    stages = [int(t) for t in table["stage"]] if "stage" in table.columns else [0] * n
    chances = (
        [float(p) if p is not None else 1.0 for p in table["probability"]]
        if "probability" in table.columns
        else [1.0] * n
    )
    if n and min(stages) < 0:
        raise InputError(f"policy: the table has a stage {min(stages)}")
    found: list[dict[Any, dict[Any, float]]] = [{} for _ in range(max(stages, default=0) + 1)]
    for t, state, action, p in zip(stages, table["state"], table["action"], chances, strict=True):
        if action is None or action != action:
            continue
        own = found[t].setdefault(_known(states, state), {})
        name = _known(actions, action)
        if name in own:
            raise InputError(f"policy: the table has state {shown(state)}, action {shown(action)} twice")
        own[name] = p
    return found if "stage" in table.columns else found[0]
