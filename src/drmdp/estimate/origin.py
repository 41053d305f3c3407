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
from drmdp.errors import InputError

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
            value, default = getattr(part, own.name), None if own.default is MISSING else own.default
            if own.name not in ("ordering", "reading") and not (value is default or (value == default) is True):
                asked[own.name] = _plain(value)
    seen = {name: getattr(summary, name) for name in ("rows", "transitions")}
    return {"estimate": asked, "table": Path(summary.table).name, "version": __version__, **seen}


def _plain(value: Any) -> Any:
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        return Path(text).name if os.path.isabs(text) else text
    if isinstance(value, dict) and all(isinstance(text, str | int) for pair in value.items() for text in pair):
        return {str(old): str(new) for old, new in value.items()}  # labels that are renamed
    if isinstance(value, list | tuple | set | range) and all(isinstance(each, str | int | float) for each in value):
        return list(value)
    return value if isinstance(value, int | float) else GIVEN


def asked_again(model: Model, beside: Path) -> dict[str, Any]:
    """The arguments of the estimate that made a model; files that it names are here, or beside the model."""
    asked = {name: beside_or_here(value, beside) for name, value in (model.origin or {})["estimate"].items()}
    sign, names = (
        "rewards" if model.maximise else "costs",
        {kind: list(getattr(model, kind)) for kind in ("states", "actions")},
    )
    ends = [name for name, end in zip(model.states, model.terminal, strict=True) if end]
    held = {sign: getattr(model, sign), "initial": model.initial, "terminal": ends, **names}
    for name, value in asked.items():
        if value == GIVEN and name not in held:
            raise InputError(f"origin: `{name}` was given as what no file holds")
        asked = {**asked, name: held[name], **names} if value == GIVEN else asked
    return asked


def beside_or_here(value: Any, beside: Path) -> Any:
    """An option; a file that is not here is beside the model."""
    there = isinstance(value, str) and not Path(value).exists() and (beside / value).is_file()
    return str(beside / value) if there else value
