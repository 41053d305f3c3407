"""Policies from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from drmdp.core.archives import PLAN, describe, read_json
from drmdp.core.names import same
from drmdp.errors import InputError, shown

if TYPE_CHECKING:
    from drmdp.model import Model


def read_policy(path: str, model: Model) -> Any:
    """Read an (S, A) policy from a saved solution or a JSON file, or a saved plan as it is."""
    from drmdp.solution import HorizonSolution, Solution

    suffix = Path(path).suffix.lower()
    folder = (Path(path) / "solution.json").exists()
    if suffix not in (".npz", ".json") and not folder:
        raise InputError(f"{path}: expected a saved solution (.npz, or a folder) or a .json file")
    try:
        if suffix == ".json" and not folder:
            return model.policy(_policy_mapping(read_json(path), model))
        is_plan = not folder and describe(path) == PLAN
        found = HorizonSolution.load(path) if is_plan else Solution.load(path)
        for kind in ("states", "actions"):
            if not same(getattr(found, kind), getattr(model, kind)):
                raise InputError(f"it is for other {kind} than the model's")
        return found if is_plan else model.policy(found.policy)
    except InputError as error:
        reason = str(error)
        raise InputError(reason if reason.startswith(path) else f"{path}: {reason}") from None


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
