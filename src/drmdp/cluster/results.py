"""Results past one machine: a folder of mapped arrays, written by the workers.

====================== =================== =======================================================================
file                   shape               meaning
====================== =================== =======================================================================
solution.json          a JSON object       what is not an array: status, history, settings, names of the actions, fingerprints, sums
lower, upper           (S,)                bounds, in the user's sign
policy                 (S, A)
point                  (S,)                v, from which the bounds follow
by_action, by_kernel,  (S, …)              what explains the sweep at v (`drmdp.layout.memory`)
by_row, share
states, states_ends    (B,), (S + 1,)      names of the states (`drmdp.core.names`); absent if they are 0, 1, 2, …
====================== =================== =======================================================================

Nature's kernel is not stored: a row is made from these numbers and the model when it is asked for.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.exact import ExactOperator
from drmdp.cluster.engine import Engine
from drmdp.cluster.operator import Nature
from drmdp.cluster.proofs import FIRST, WITNESS, Held, Left, mark_of
from drmdp.cluster.source import Source
from drmdp.core.archives import load_json
from drmdp.core.files import beside, check_parent, flush, landing, replace_directory
from drmdp.core.names import StoredNames, back, to_arrays
from drmdp.errors import InputError, shown
from drmdp.layout.memory import Memory
from drmdp.sets import AmbiguitySet
from drmdp.solution import Record, Solution, Status
from drmdp.solvers.loop import Outcome

FORMAT = "drmdp solution folder 1"
INDEX = "solution.json"
NAMES = ("states", "states_ends")


class Kernel:
    """Nature's mean kernel (S, A, S): a row is made when it is asked for."""

    def __init__(self, source: Source, ball: AmbiguitySet, facts: Any, sweeps: int, witness: tuple[Any, ...]) -> None:
        head = source.head
        self.shape = (head.n_states, head.n_actions, head.n_states)
        self._source, self._ball, self._facts, self._sweeps, self._witness = source, ball, facts, sweeps, witness

    def rows(self, s: int) -> Array:
        """Probabilities of the next states from state s, (A, S)."""
        S = self.shape[0]
        if isinstance(s, bool) or not isinstance(s, int | np.integer) or not 0 <= s < S:
            raise InputError(f"rows: expected a state from 0 to {S - 1}, got {shown(s)}")
        return np.asarray(self._part(int(s), int(s) + 1)[0])

    def _part(self, lo: int, hi: int) -> Array:
        model = self._source.part(lo, hi, checked=True)
        model._set(facts=self._facts)
        point, *memory, share = self._witness
        operator = ExactOperator(model, self._ball.part(lo, hi).fitted(model), 1)
        nature = operator.nature(np.array(point), Memory(*(np.array(part[lo:hi]) for part in memory)), self._sweeps)
        rows = nature.pulled(np.array(share[lo:hi])).pairs()
        return rows.dense().reshape(hi - lo, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Everything as an array (S, A, S)."""
        return self._part(0, self.shape[0]).astype(dtype or np.float64, copy=False)

    def __repr__(self) -> str:
        return f"Kernel{self.shape}: .rows(s) is (A, S), numpy.asarray(…) is all of it"


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a place that cannot be written, or a folder with anything in it that is not a solution."""
    target = landing(path)
    if target.exists() and not (target / INDEX).is_file():
        raise InputError(f"{os.fspath(path)}: exists and is not a solution, and is not overwritten")
    check_parent(path)


def made(engine: Engine, cluster: Any, found: Outcome, facts: dict[str, Any], out: Any) -> Solution:
    """The solution of a run: its arrays in the folder `out`, or here without one."""
    left = Left(
        engine.source.again, engine.ball, engine.facts, cluster, None if out is None else os.fspath(landing(out))
    )
    flipped = engine.source.head.maximise
    lower, upper = (0.0 - found.upper, 0.0 - found.lower) if flipped else (found.lower, found.upper)
    vectors = {"lower": lower, "upper": upper, "policy": found.policy}
    nature = found.best.nature
    sweeps = 0
    if isinstance(nature, Nature):
        sweeps = nature.left.sweeps
        witness = (nature.value, *nature.left.arrays[:-1], nature.share)
        vectors |= dict(zip(WITNESS, witness, strict=True))
    meta = facts | {
        "status": str(found.status),
        "history": [asdict(record) for record in found.history],
        "sweeps": sweeps,
    }
    names = engine.source.states
    named = {} if isinstance(names, range) else dict(zip(NAMES, to_arrays("states", names), strict=True))
    if out is None:
        arrays = {name: engine.gather(vector) for name, vector in vectors.items()}
        return _solution(engine.source, left, meta, arrays | named)
    _write(engine, vectors, named, meta, landing(out))
    return _solution(engine.source, left, meta, _arrays(landing(out), [*vectors, *named]))


def _write(
    engine: Engine, vectors: dict[str, Any], named: dict[str, Array], meta: dict[str, Any], target: Path
) -> None:
    fresh = beside(target)
    fresh.mkdir()
    old = None
    try:
        kinds = engine.run("kinds", tuple(vectors.values()))[1][0]
        for name, (rows, kind) in zip(vectors, kinds, strict=True):
            shape = (engine.n_states, *rows)
            with (fresh / f"{name}.npy").open("xb") as stream:
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, header)
                os.posix_fallocate(
                    stream.fileno(), stream.tell(), max(1, int(np.prod(shape)) * np.dtype(kind).itemsize)
                )
                stream.truncate(stream.tell() + int(np.prod(shape)) * np.dtype(kind).itemsize)
        engine.run("write", os.path.abspath(fresh), list(vectors), tuple(vectors.values()))
        for name, array in named.items():
            with (fresh / f"{name}.npy").open("xb") as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
                flush(stream)
        with (fresh / INDEX).open("xb") as stream:
            told = {"format": FORMAT, "arrays": [*vectors, *named], **meta}
            stream.write(json.dumps(told, indent=1).encode())
            flush(stream)
        old = replace_directory(fresh, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), os.fspath(target)) from None
    finally:
        shutil.rmtree(fresh if old is None else old, ignore_errors=True)


def _arrays(folder: Path, names: list[str]) -> dict[str, Any]:
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names}


def load(path: str | os.PathLike[str], left: Left | None = None) -> Solution:
    """Read a folder that `made` wrote; arrays stay in their files. With what is left it is the solution itself."""
    folder = Path(path)
    try:
        with (folder / INDEX).open("rb") as stream:
            meta = load_json(stream)
    except OSError as error:
        raise InputError(f"{INDEX}: {error.strerror}") from None
    if not isinstance(meta, dict) or meta.pop("format", None) != FORMAT:
        raise InputError(f"{INDEX}: expected format {FORMAT!r}")
    try:
        arrays = _arrays(folder, meta.pop("arrays"))
        return _solution(left and left.source, left, meta, arrays)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{INDEX}: does not fit: {error}") from None


def _solution(source: Any, left: Left | None, meta: dict[str, Any], arrays: dict[str, Any]) -> Solution:
    meta = dict(meta)
    kernel = None
    sweeps, flipped = meta.pop("sweeps"), meta.pop("maximise")
    if left is not None and "point" in arrays:
        kernel = Kernel(source, left.ball, left.facts, sweeps, tuple(arrays[name] for name in WITNESS))
    meta.pop("model")
    bounds = {name: arrays[name] for name in FIRST}
    states = StoredNames(*(arrays[name] for name in NAMES)) if NAMES[0] in arrays else range(meta["states"])
    found = Solution(
        value=arrays["lower" if flipped else "upper"], kernel=kernel, status=Status(meta.pop("status")),
        history=tuple(Record(**record) for record in meta.pop("history")), **bounds,
        **meta | {"states": states, "actions": back(meta["actions"]), "notes": tuple(meta["notes"])},
    )  # fmt: skip
    if left is not None:
        own = {name: array for name, array in arrays.items() if name in FIRST + WITNESS}
        mark = None if left.folder is None else mark_of(left.folder)
        vars(found).update(held=Held(left, sweeps, mark, own))
    return found
