"""Policies from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from drmdp.core.archives import PLAN, describe, read_json
from drmdp.core.files import check_path
from drmdp.core.names import back, same
from drmdp.core.policies import is_table
from drmdp.core.validation import numbers
from drmdp.errors import InputError, shown

if TYPE_CHECKING:
    from drmdp.model import Model


def read_policy(path: str, model: Model) -> Any:
    """Read an (S, A) policy, or a plan, from a saved result, a table or a JSON file."""
    from drmdp.estimate.opening import SUFFIXES
    from drmdp.solution import HorizonSolution, Solution

    suffix = Path(path).suffix.lower()
    folder = (Path(path) / "solution.json").exists()
    if suffix not in (".npz", ".json", *SUFFIXES) and not folder:
        raise InputError(
            f"{path}: expected a saved solution (.npz, or a folder), a table ({', '.join(SUFFIXES)}) or a .json file"
        )
    try:
        if suffix in SUFFIXES and not folder:
            table = _table(path)
            return table if "stage" in table.columns else model.policy(table)
        if suffix == ".json" and not folder:
            document = read_json(path)
            known = _of_document(document, model)
            return model.policy(_policy_mapping(document, model)) if known is None else known
        is_plan = not folder and describe(path) == PLAN
        found = HorizonSolution.load(path) if is_plan else Solution.load(path)
        for kind in ("states", "actions"):
            if not same(getattr(found, kind), getattr(model, kind)):
                raise InputError(f"it is for other {kind} than the model's")
        return found if is_plan else model.policy(found.policy)
    except InputError as error:
        reason = str(error)
        raise InputError(reason if reason.startswith(path) else f"{path}: {reason}") from None


def _table(path: str) -> Any:
    """A table of a policy, written in whatever way: separator, encoding and decimal mark are seen."""
    from drmdp.estimate.opening import open_source, sniffed
    from drmdp.estimate.source import Reading, polars

    check_path(path)
    pl = polars()
    source = open_source(path, sniffed(path, Reading()), ("state", "action"))
    found = source.collect(source.frame)[0]
    if not is_table(found):
        there = ", ".join(map(shown, source.header))
        raise InputError(f"expected the columns state and action, and probability where it is not 1, got {there}")
    text = pl.col(pl.String).str.strip_chars()
    found = found.with_columns(pl.when(text != "").then(text))
    for name in ("probability", "stage"):
        if name in found.columns and found[name].dtype == pl.String:
            number = found[name].str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
            bad = (number.is_null() & found[name].is_not_null()).arg_true().to_list()[:1]
            for row in bad:
                where = f"{source.word} {source.lines([row])[0]}, column {name!r}"
                raise InputError(f"{where}: {shown(found[name][row])} is no number")
            found = found.with_columns(number.alias(name))
    return found


def _of_document(document: Any, model: Model) -> Any:
    """The policy of a document that --json printed; None if it is none."""
    if not isinstance(document, dict) or not isinstance(document.get("policy"), list):
        return None
    for kind in ("states", "actions"):
        names = document.get(kind)
        if not isinstance(names, list) or not same(back(names), getattr(model, kind)):
            raise InputError(f"it is for other {kind} than the model's")
    policy = numbers("policy", document["policy"])
    return policy if policy.ndim == 3 else model.policy(policy)


def _policy_mapping(document: Any, model: Model) -> dict[Any, dict[Any, float]]:
    """Give names their types back: JSON keys are strings, names may be integers."""
    if not isinstance(document, dict):
        raise InputError(f"expected an object that maps states to actions, got {type(document).__name__}")
    states, actions = (
        {**{str(name): name for name in names}, **{name: name for name in names}}
        for names in (model.states, model.actions)
    )
    policy = {}
    for state, choice in document.items():
        row = choice if isinstance(choice, dict) else {choice: 1.0} if type(choice) in (str, int) else None
        if row is None or any(type(p) not in (int, float) or abs(p) > 1 for p in row.values()):
            raise InputError(
                f"state {shown(state)}: expected an action, or probabilities of actions, got {shown(choice)}"
            )
        policy[states.get(state, state)] = {actions.get(action, action): float(p) for action, p in row.items()}
    return policy
