"""What was asked of an estimate, so that it can be asked again of another log.

The record holds arguments that differ from their defaults, as JSON, with the names that `drmdp.estimate` gives them. Of a path that is absolute it holds the
file's name alone. What is no text, number or list of them (arrays and mappings of costs, of starts, of terminal states) is `GIVEN`: it is in the model.
"""

from __future__ import annotations

import os
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drmdp._version import __version__

if TYPE_CHECKING:
    from drmdp.estimate.settings import Settings
    from drmdp.estimate.summary import Summary
    from drmdp.estimate.table import Columns
    from drmdp.model import Model

GIVEN = {"given": "in the model"}


def recorded(columns: Columns, settings: Settings, summary: Summary) -> dict[str, Any]:
    """How a model was made, and of how much."""
    asked: dict[str, Any] = {}
    for part in (columns, settings.ordering, settings.reading, settings):
        for own in fields(part):
            value = getattr(part, own.name)
            default = own.default if own.default is not MISSING else None
            if own.name not in ("ordering", "reading") and not (value is default or (value == default) is True):
                asked[own.name] = _plain(value)
    seen = {name: getattr(summary, name) for name in ("rows", "episodes", "transitions")}
    return {"estimate": asked, "table": Path(summary.table).name, "version": __version__, **seen}


def _plain(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        return Path(text).name if os.path.isabs(text) else text
    if isinstance(value, dict) and all(isinstance(key, str | int) for key in value) and "" not in value:
        names = {str(key): _plain(name) for key, name in value.items()}
        return GIVEN if any(isinstance(name, float | dict) for name in names.values()) else names
    if isinstance(value, list | tuple | set | frozenset | range):
        items = [_plain(item) for item in value]
        return GIVEN if any(isinstance(item, list | dict) for item in items) else items
    return value if isinstance(value, int | float) else GIVEN


def asked_again(model: Model, beside: Path) -> dict[str, Any]:
    """The arguments of the estimate that made a model; files that it names are here, or beside the model."""
    asked = dict((model.origin or {})["estimate"])
    for name in ("costs", "rewards"):
        given = asked.get(name)
        if isinstance(given, str) and not Path(given).exists() and (beside / given).is_file():
            asked[name] = str(beside / given)
    sign = "rewards" if model.maximise else "costs"
    held = {sign: getattr(model, sign), "initial": model.initial, "rename": None}
    held["terminal"] = [name for name, end in zip(model.states, model.terminal, strict=True) if end]
    for name, value in asked.items():
        if value == GIVEN:
            asked[name] = held[name]
            asked |= {kind: list(getattr(model, kind)) for kind in ("states", "actions")}
    return asked
