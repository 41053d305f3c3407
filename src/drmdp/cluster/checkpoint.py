"""Checkpoints: what a run needs to go on with the same bits, whoever dies.

A checkpoint is a folder: `state.json`, what the driver knows, and an .npy file for each vector and range, written by the worker that has it. It is made under
another name and renamed when it is complete, so that there is no half one. The last two are kept; each holds the best sweep so far. `run.json`
beside them says what is solved, how, and what decides the bits: fingerprints of the model and of the kernels.

What the driver knows is a tree of plain objects: numbers, texts, tuples and the classes of `KNOWN`. Vectors in it are named. Every file's
SHA-256 is in `state.json`; a checkpoint that does not fit is passed over for the one before, with a notice.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.bellman.operator import Update
from drmdp.cluster.engine import Engine
from drmdp.cluster.operator import Left, Nature
from drmdp.cluster.vector import Vector
from drmdp.core.archives import parse_json
from drmdp.core.files import flush, replace_directory
from drmdp.errors import InputError, Notice, brief
from drmdp.solution import Record
from drmdp.solvers.loop import Snapshot, Watch
from drmdp.solvers.policy_iteration import Newton
from drmdp.solvers.problem import State

FORMAT = "drmdp checkpoint 1"
KNOWN = {known.__name__: known for known in (Update, Left, Nature, Record, Newton, State, Snapshot, Watch)}
KEPT = 2
FRESH = ".new"
STATE = "state.json"


class Keeper:
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
                warnings.warn(Notice(f"{target}: cannot be written: {reason}; earlier checkpoints stay"), stacklevel=2)
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
        sums = self._engine.run("save", os.path.abspath(folder), names, tuple(vectors))[1]
        pieces = [{"range": own, "sums": told} for own, told in zip(self._engine.ranges, sums, strict=True)]
        with (folder / STATE).open("xb") as stream:
            stream.write(json.dumps({"format": FORMAT, "pieces": pieces, "state": tree}).encode())
            flush(stream)

    def load(self) -> Snapshot | None:
        """The newest state that is whole; None if there is none."""
        shutil.rmtree(self._folder / FRESH, ignore_errors=True)  # of a run that was killed
        for folder in reversed(complete(self._folder)):
            try:
                return self._read(folder)
            except InputError as error:
                warnings.warn(Notice(f"{folder}: is passed over: {error}"), stacklevel=2)
        return None

    def _read(self, folder: Path) -> Snapshot:
        try:
            found = parse_json((folder / STATE).read_bytes())
        except OSError as error:
            raise InputError(f"{STATE}: {error.strerror}") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError(f"{STATE}: expected format {FORMAT!r}")
        count = len(found["pieces"][0]["sums"])
        names = [f"v{k}" for k in range(count)]
        args = os.path.abspath(folder), names, [(*piece["range"], piece["sums"]) for piece in found["pieces"]]
        vectors = self._engine.run("load", *args, kept=count)[0]
        snapshot = _decoded(found["state"], vectors, self._engine)
        assert isinstance(snapshot, Snapshot)
        return snapshot


def complete(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted(found for found in folder.glob("sweep-*") if (found / STATE).exists())


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
        return {
            "is": type(value).__name__,
            "of": {f.name: _encoded(getattr(value, f.name), vectors) for f in fields(value)},
        }
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
