"""Policies from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from drmdp.cli.screen import say
from drmdp.core.names import back, same
from drmdp.core.validation import going_on, numbers
from drmdp.errors import InputError, shown
from drmdp.estimation.log.files import SUFFIXES, open_source, sniffed
from drmdp.estimation.log.source import Reading, pl
from drmdp.io.archives import PLAN, describe, read_json
from drmdp.io.files import check_path
from drmdp.model import Model
from drmdp.model.policies import is_table
from drmdp.ui.text import first_names


def read_policy(path: str, model: Model) -> Any:
    """Read an (S, A) policy, or a plan, from a saved result, a table or a JSON file."""
    from drmdp.solution import HorizonSolution, Solution

    suffix = Path(path).suffix.lower()
    folder = (Path(path) / "solution.json").exists()
    if suffix not in (".npz", ".json", *SUFFIXES) and not folder:
        tables = f"a table ({', '.join(SUFFIXES)}) or a .json file"
        raise InputError(f"{path}: expected a saved solution (.npz, or a folder), {tables}")
    try:
        if suffix in SUFFIXES and not folder:
            table = _table(path)
            return table if "stage" in table.columns else model.policy(table)
        if suffix == ".json" and not folder:
            document = read_json(path)
            known = _of_document(document, model, path)
            return model.policy(_policy_mapping(document, model)) if known is None else known
        is_plan = not folder and describe(path) == PLAN
        result: Any = HorizonSolution.load(path) if is_plan else Solution.load(path)
        for kind in ("states", "actions"):
            if not same(getattr(result, kind), getattr(model, kind)):
                raise InputError(f"it is for other {kind} than the model's")
        goal = result.settings.get("criterion") if is_plan else result.criterion
        if goal == "reach":
            _say_where_it_ends(path, result.policy, model)
        return result if is_plan else model.policy(result)
    except InputError as error:
        reason = str(error)
        raise InputError(reason if reason.startswith(path) else f"{path}: {reason}") from None


def _table(path: str) -> Any:
    """A table of a policy, written in whatever way: separator, encoding and decimal mark are
    seen.
    """
    check_path(path)
    source = open_source(path, sniffed(path, Reading()), ("state", "action"))
    table = source.collect(source.frame)[0]
    if not is_table(table):
        expected = "expected the columns state and action, and probability where it is not 1"
        raise InputError(f"{expected}, got {', '.join(map(shown, source.header))}")
    text = pl.col(pl.String).str.strip_chars()
    table = table.with_columns(pl.when(text != "").then(text))
    for name in ("probability", "stage"):
        if name in table.columns and table[name].dtype == pl.String:
            number = table[name].str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
            for row in (number.is_null() & table[name].is_not_null()).arg_true().to_list()[:1]:
                where = f"{source.word} {source.lines([row])[0]}, column {name!r}"
                raise InputError(f"{where}: {shown(table[name][row])} is no number")
            table = table.with_columns(number.alias(name))
    return table


def _say_where_it_ends(path: str, policy: Any, model: Model) -> None:
    """Name the states in which a policy of reaching has no action, and the process goes on."""
    played = policy.any(axis=-1)
    silent = ~(played.any(axis=0) if policy.ndim == 3 else played) & model.available.any(axis=1)
    if silent.any():
        names = first_names([repr(model.states[s]) for s in np.flatnonzero(silent)[:6].tolist()])
        what = f"reaching ended in {names}: all actions there are alike"
        say(f"drmdp: note: {path}: {what}", err=True)


def _of_document(document: Any, model: Model, path: str) -> Any:
    """The policy of a document that --json printed; None if it is none."""
    if not isinstance(document, dict) or not isinstance(document.get("policy"), list):
        return None
    for kind in ("states", "actions"):
        names = document.get(kind)
        if not isinstance(names, list) or not same(back(names), getattr(model, kind)):
            raise InputError(f"it is for other {kind} than the model's")
    policy, settings = numbers("policy", document["policy"]), document.get("settings")
    known = settings if isinstance(settings, dict) else {}
    fits = policy.shape[-2:] == model.available.shape and policy.ndim < 4
    if fits and "reach" in (document.get("criterion"), known.get("criterion")):
        _say_where_it_ends(path, policy, model)
        policy = going_on(policy, model)
    return policy if policy.ndim == 3 else model.policy(policy)


def _policy_mapping(document: Any, model: Model) -> dict[Any, dict[Any, float]]:
    """Give names their types back: JSON keys are strings, names may be integers."""
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise InputError(f"expected an object that maps states to actions, got {kind}")
    states, actions = (
        {str(name): name for name in names} | {name: name for name in names}
        for names in (model.states, model.actions)
    )
    policy = {}
    for state, choice in document.items():
        row = {choice: 1.0} if type(choice) in (str, int) else choice
        if not isinstance(row, dict) or any(
            type(p) not in (int, float) or abs(p) > 1 for p in row.values()
        ):
            expected = "expected an action, or probabilities of actions"
            raise InputError(f"state {shown(state)}: {expected}, got {shown(choice)}")
        known = {actions.get(action, action): float(p) for action, p in row.items()}
        policy[states.get(state, state)] = known
    return policy
