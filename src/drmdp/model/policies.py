"""Validation of policies in all admissible forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import storage
from drmdp.core import validation as checks
from drmdp.errors import InputError, first_place, shown


def checked(model: Any, policy: ArrayLike) -> Array:
    """Return a policy as (S, A); see `Model.policy` for the forms."""
    S, A = model.n_states, model.n_actions
    tol = storage.ROW_SUM_TOL
    policy = checks.policy_of(policy, model)
    if is_table(policy):
        policy = from_table(model, policy)
    if isinstance(policy, Mapping):
        x = _from_mapping(model, policy)
    elif isinstance(policy, list | tuple) and policy and all(isinstance(a, str) for a in policy):
        rule = "names of actions go with those of states, {state: action}"
        raise InputError(f"policy: {rule}, got {shown(policy)}")
    else:
        x, tol = checks.numbers_with_slack("policy", policy)
        if x.shape == (S,):
            x = _from_actions(model, x)
        elif x.shape != (S, A):
            cure = ""
            if x.shape[1:] == (S, A):
                cure = f": it has a policy for each of {len(x):,} stages: give one of them"
            raise InputError(f"policy: expected shape {(S, A)} or {(S,)}, got {x.shape}{cure}")
    x = np.where(model.terminal[:, None], 0.0, x)
    pair = model.labels.pair
    checks.check_probabilities("policy: probabilities", x, lambda s, a: pair(s * A + a))
    if at := first_place((x > 0) & ~model.available):
        where = pair(at[0] * A + at[1])
        raise InputError(f"policy: an unavailable action is played: {where} has {float(x[at])!r}")
    with np.errstate(over="ignore"):
        total = x.sum(axis=1)
    if at := first_place((np.abs(total - 1) > tol) & ~model.terminal):
        state = f"state {model.states[at[0]]!r}"
        raise InputError(f"policy: {state} sums to {float(total[at])!r}, not 1")
    return x / np.where(model.terminal, 1, total)[:, None]


def _from_actions(model: Any, chosen: Array) -> Array:
    x = np.zeros((model.n_states, model.n_actions))
    played = ~model.terminal
    bad = played & ~((chosen >= 0) & (chosen < model.n_actions) & (chosen == np.floor(chosen)))
    if at := first_place(bad):
        rule = f"expected action numbers 0 … {model.n_actions - 1}"
        raise InputError(f"policy: {rule}: state {model.states[at[0]]!r} has {float(chosen[at])!r}")
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
        choices = choice.items() if isinstance(choice, Mapping) else ((choice, 1.0),)
        for action, probability in choices:
            a = checks.find(columns, action, where, "action")
            x[s, a] = checks.number(f"{where}, action {model.actions[a]!r}", probability)
    if at := first_place(missing):
        raise InputError(f"policy: state {model.states[at[0]]!r} is missing")
    return x


# ---------------------------------------------------------------------- tables


def is_table(given: Any) -> bool:
    """Whether something is a table of a policy, of polars or pandas."""
    return hasattr(given, "columns") and {"state", "action"} <= set(given.columns)


def _known(names: Mapping[Any, Any], label: Any) -> Any:
    """The name of a label, unchanged or as a text; "1.0" is 1, as other programs write it."""
    text = str(label)
    keys = (label, text, text.removesuffix(".0"))
    return next((names[key] for key in keys if key in names), label)


def from_table(model: Any, table: Any) -> Any:
    """The policy of a table with the columns state, action and, unless it is 1, probability; with a
    stage, a list of policies.

    Names may be the texts of names of the model. Rows without an action, as those of terminal
    states, are skipped.
    """
    kinds = (model.states, model.actions)
    states, actions = ({**{str(x): x for x in names}, **{x: x for x in names}} for names in kinds)
    n = len(table)
    stages = [int(t) for t in table["stage"]] if "stage" in table.columns else [0] * n
    column = table["probability"] if "probability" in table.columns else [None] * n
    chances = [1.0 if p is None else float(p) for p in column]
    if n and min(stages) < 0:
        raise InputError(f"policy: the table has a stage {min(stages)}")
    by_stage: list[dict[Any, dict[Any, float]]] = [{} for _ in range(max(stages, default=0) + 1)]
    for t, state, action, p in zip(stages, table["state"], table["action"], chances, strict=True):
        if action is None or action != action:
            continue
        choice = by_stage[t].setdefault(_known(states, state), {})
        name = _known(actions, action)
        if name in choice:
            pair = f"state {shown(state)}, action {shown(action)}"
            raise InputError(f"policy: the table has {pair} twice")
        choice[name] = p
    return by_stage if "stage" in table.columns else by_stage[0]
