"""Sets and methods in files: the class by its name in a registry, its fields as JSON, arrays beside it. Nothing is pickled."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from drmdp.errors import InputError, shown
from drmdp.sets import AmbiguitySet
from drmdp.sets.ground import Ground
from drmdp.sets.registry import MAKERS, load
from drmdp.solvers.problem import Method
from drmdp.solvers.registry import METHODS


def describe_set(ball: AmbiguitySet, folder: Path) -> dict[str, Any]:
    """A set as JSON; its arrays go to files `set-….npy` or, sparse ones, `set-….npz`."""
    name = next((name for name, where in MAKERS.items() if isinstance(ball, load(where))), None)
    if name is None:
        raise InputError(f"ball: {shown(ball)} is not in the registry of sets, so that workers cannot know it")
    told: dict[str, Any] = {}
    for field in fields(ball):  # type: ignore[arg-type]
        value = getattr(ball, field.name)
        if not field.init:
            continue
        word = getattr(value, "kind", "") if isinstance(value, Ground) else ""
        value = value.data if word else value
        if sparse.issparse(value):
            sparse.save_npz(folder / f"set-{field.name}.npz", sparse.csr_array(value))
            value = {"file": f"set-{field.name}.npz"}
        elif isinstance(value, np.ndarray):
            np.save(folder / f"set-{field.name}.npy", value, allow_pickle=False)
            value = {"file": f"set-{field.name}.npy"}
        told[field.name] = value.item() if isinstance(value, np.generic) else value
        if word in ("line", "grid"):
            told[field.name]["word"] = word
    return {"set": name, "fields": told}


def set_of(told: dict[str, Any], folder: Path) -> AmbiguitySet:
    """The set that was described."""
    given = {}
    for name, value in told["fields"].items():
        if isinstance(value, dict):
            path = folder / value["file"]
            found = sparse.load_npz(path) if path.suffix == ".npz" else np.load(path, allow_pickle=False)
            value = (value["word"], found) if "word" in value else found
        given[name] = value
    ball: AmbiguitySet = load(MAKERS[told["set"]])(**given)
    return ball


def describe_method(method: Method) -> dict[str, Any]:
    """A method as JSON."""
    name = next((name for name, known in METHODS.items() if type(method) is known), None)
    if name is None:
        raise InputError(f"method: {shown(method)} is not a method of drmdp.METHODS, and cannot be resumed")
    return {"method": name, "fields": {field.name: getattr(method, field.name) for field in fields(method)}}  # type: ignore[arg-type]


def method_of(told: dict[str, Any]) -> Method:
    """The method that was described."""
    return METHODS[told["method"]](**told["fields"])
