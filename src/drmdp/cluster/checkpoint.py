"""Checkpoints: the state of a run, to go on from with the same bits, whoever dies.

A checkpoint is a folder: `state.json`, the state of the driver, and an .npy file for each vector
and range, written by the worker that has it. It is made under another name and renamed when it is
complete, so that there is no half one. The last two are kept; each holds the best sweep so far.
`run.json` beside them says what is solved, how, and what decides the bits: fingerprints of the
model and of the kernels.

The state of the driver is a tree of plain objects: numbers, texts, tuples and the classes of
`KNOWN`. Vectors in it are named. Every file's SHA-256 is in `state.json`; a checkpoint that does
not fit is passed over for the one before, with a notice.

Sets and methods are described by their name in a registry, and their fields as JSON, arrays in
files. Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import sparse

from drmdp.cluster.engine import Engine, Vector
from drmdp.cluster.operator import RemoteNature, RemoteWarmStart
from drmdp.errors import InputError, Notice, brief, shown
from drmdp.io.archives import read_document, write_document
from drmdp.io.files import replace_directory
from drmdp.operators.operator import Update
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import MAKERS, load
from drmdp.sets.transport import Ground
from drmdp.solution import Record
from drmdp.solvers.loop import Snapshot, Watch
from drmdp.solvers.policy_iteration import NewtonState
from drmdp.solvers.problem import Method, MethodState
from drmdp.solvers.registry import METHODS, settings_of

FORMAT = "drmdp checkpoint 1"
CLASSES = (Update, RemoteWarmStart, RemoteNature, Record, NewtonState, MethodState, Snapshot, Watch)
KNOWN = {known.__name__: known for known in CLASSES}
KEPT = 2
FRESH = ".new"
STATE = "state.json"


class CheckpointWriter:
    """Saves the state of a run, and brings it back."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder, self._engine = folder, engine
        self._trouble = ""

    def save(self, snapshot: Snapshot) -> None:
        """Keep a state. Where that fails, the run goes on and the checkpoints before stay."""
        target = self._folder / f"sweep-{snapshot.iteration:06d}"
        fresh = self._folder / FRESH
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            self._write(fresh, snapshot)
            old = replace_directory(fresh, target)
            _sync(self._folder)
        except OSError as error:
            reason = f"{error.strerror or error}"
            if reason != self._trouble:
                fault = f"cannot be written: {reason}; earlier checkpoints stay"
                warnings.warn(Notice(f"{target}: {fault}"), stacklevel=2)
            self._trouble = reason
            return
        finally:
            shutil.rmtree(fresh, ignore_errors=True)  # what was there before, or is half done
        for past in filter(None, (old, *complete(self._folder)[:-KEPT])):
            with contextlib.suppress(OSError):
                past.replace(fresh)  # killed in between, it leaves no half one
                shutil.rmtree(fresh)

    def _write(self, folder: Path, snapshot: Snapshot) -> None:
        vectors: list[Any] = []
        tree = _encoded(snapshot, vectors)
        names = [f"v{k}" for k in range(len(vectors))]
        sums = self._engine.ask("save", os.path.abspath(folder), names, tuple(vectors))
        ranges = zip(self._engine.ranges, sums, strict=True)
        pieces = [{"range": states, "sums": digests} for states, digests in ranges]
        document = {"format": FORMAT, "pieces": pieces, "state": tree}
        write_document(folder / STATE, document, indent=None)

    def load(self) -> Snapshot | None:
        """The newest state that can be read; None if there is none."""
        shutil.rmtree(self._folder / FRESH, ignore_errors=True)  # of a run that was killed
        for folder in reversed(complete(self._folder)):
            try:
                return self._read(folder)
            except InputError as error:
                warnings.warn(Notice(f"{folder}: is passed over: {error}"), stacklevel=2)
        return None

    def _read(self, folder: Path) -> Snapshot:
        document = read_document(folder / STATE, FORMAT)
        pieces = [(*piece["range"], piece["sums"]) for piece in document["pieces"]]
        names = [f"v{k}" for k in range(len(pieces[0][2]))]
        vectors = self._engine.keep("load", os.path.abspath(folder), names, pieces, n=len(names))
        snapshot = _decoded(document["state"], vectors, self._engine)
        assert isinstance(snapshot, Snapshot)
        return snapshot


def complete(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted(path for path in folder.glob("sweep-*") if (path / STATE).exists())


def _sync(folder: Path) -> None:
    """Have the system remember a renaming."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


# ---------------------------------------------------------------------- trees


def _encoded(value: Any, vectors: list[Any]) -> Any:
    """A tree as JSON holds it; its vectors are numbered."""
    if isinstance(value, Vector | np.ndarray):
        at = next((k for k, known in enumerate(vectors) if known is value), len(vectors))
        if at == len(vectors):
            vectors.append(value)
        return {"vector": at}
    if isinstance(value, Engine):
        return {"engine": True}
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return [_encoded(part, vectors) for part in value]
    if is_dataclass(value) and type(value).__name__ in KNOWN:
        parts = {f.name: _encoded(getattr(value, f.name), vectors) for f in fields(value)}
        return {"is": type(value).__name__, "of": parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    raise InputError(f"a run with {brief(repr(type(value)), 100)} cannot be checkpointed")


def _decoded(tree: Any, vectors: list[Any], engine: Engine) -> Any:
    if isinstance(tree, list):
        return tuple(_decoded(part, vectors, engine) for part in tree)
    if not isinstance(tree, dict):
        return tree
    if "vector" in tree:
        return vectors[tree["vector"]]
    if "engine" in tree:
        return engine
    known: Callable[..., Any] = KNOWN[tree["is"]]
    return known(**{name: _decoded(part, vectors, engine) for name, part in tree["of"].items()})


# ---------------------------------------------------------------------- sets and methods


def describe_set(ambiguity: AmbiguitySet, folder: Path) -> dict[str, Any]:
    """A set as JSON; its arrays go to files `set-….npy` or, sparse ones, `set-….npz`."""
    name = next((key for key, at in MAKERS.items() if isinstance(ambiguity, load(at))), None)
    if name is None:
        fault = "is not in the registry of sets, so that workers cannot know it"
        raise InputError(f"ambiguity: {shown(ambiguity)} {fault}")
    fields_json: dict[str, Any] = {}
    for field in fields(ambiguity):  # type: ignore[arg-type]
        value = getattr(ambiguity, field.name)
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
        fields_json[field.name] = value.item() if isinstance(value, np.generic) else value
        if word in ("line", "grid"):
            fields_json[field.name]["word"] = word
    return {"set": name, "fields": fields_json}


def set_of(document: dict[str, Any], folder: Path) -> AmbiguitySet:
    """The set of a description."""
    arguments = {}
    for name, value in document["fields"].items():
        if isinstance(value, dict):
            path = folder / value["file"]
            if path.suffix == ".npz":
                array = sparse.load_npz(path)
            else:
                array = np.load(path, allow_pickle=False)
            value = (value["word"], array) if "word" in value else array
        arguments[name] = value
    return cast(AmbiguitySet, load(MAKERS[document["set"]])(**arguments))


def describe_method(method: Method) -> dict[str, Any]:
    """A method as JSON."""
    name = next((name for name, known in METHODS.items() if type(method) is known), None)
    if name is None:
        fault = "is not a method of drmdp.METHODS, and cannot be resumed"
        raise InputError(f"method: {shown(method)} {fault}")
    return {"method": name, "fields": settings_of(method)}


def method_of(document: dict[str, Any]) -> Method:
    """The method of a description."""
    return METHODS[document["method"]](**document["fields"])
