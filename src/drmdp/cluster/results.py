"""Results past one machine: a folder of mapped arrays, written by the workers.

====================== =================== =========================================================
file                   shape               meaning
====================== =================== =========================================================
solution.json          a JSON object       what is not an array: status, history, settings, names of
                                           the actions, fingerprints, sums
lower, upper           (S,)                bounds, in the user's sign
policy                 (S, A)
point                  (S,)                v, from which the bounds follow
by_action, by_kernel,  (S, …)              what explains the sweep at v (`drmdp.layout.memory`)
by_row, share
states, states_ends    (B,), (S + 1,)      names of the states (`drmdp.core.names`); absent if they
                                           are 0, 1, 2, …
====================== =================== =========================================================

Nature's kernel is not stored: a row is made from these numbers and the model when it is asked for.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.cluster.engine import Engine
from drmdp.cluster.operator import RemoteNature
from drmdp.cluster.proofs import FIRST, WITNESS, RunRecord, StoredRun, mark_of
from drmdp.core.names import StoredNames, back, to_arrays
from drmdp.core.validation import is_integer
from drmdp.errors import InputError, shown
from drmdp.io.archives import read_document, write_document
from drmdp.io.files import about, beside, check_parent, flush, landing, replace_directory
from drmdp.layout.memory import SweepMemory
from drmdp.operators.exact import ExactOperator
from drmdp.solution import Record, Solution, Status
from drmdp.solvers.loop import Outcome

FORMAT = "drmdp solution folder 1"
INDEX = "solution.json"
NAMES = ("states", "states_ends")


class Kernel:
    """Nature's mean kernel (S, A, S): a row is made when it is asked for."""

    def __init__(self, run: StoredRun, sweeps: int, witness: list[Any]) -> None:
        head = run.source.head
        self.shape = (head.n_states, head.n_actions, head.n_states)
        self._run, self._sweeps, self._witness = run, sweeps, witness

    def rows(self, s: int) -> Array:
        """Probabilities of the next states from state s, (A, S)."""
        S = self.shape[0]
        if not is_integer(s) or not 0 <= s < S:
            raise InputError(f"rows: expected a state from 0 to {S - 1}, got {shown(s)}")
        return np.asarray(self._part(int(s), int(s) + 1)[0])

    def _part(self, lo: int, hi: int) -> Array:
        model = self._run.source.part(lo, hi, checked=True)
        model._set(facts=self._run.facts)
        point, *memory, share = self._witness
        parts = SweepMemory(*(np.array(part[lo:hi]) for part in memory))
        operator = ExactOperator(model, self._run.ambiguity.part(lo, hi).fitted(model), 1)
        nature = operator.nature(np.array(point), parts, self._sweeps)
        rows = nature.pulled(np.array(share[lo:hi])).pairs()
        return rows.dense().reshape(hi - lo, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Everything as an array (S, A, S)."""
        return self._part(0, self.shape[0]).astype(dtype or np.float64, copy=False)

    def __repr__(self) -> str:
        return f"Kernel{self.shape}: .rows(s) is (A, S), numpy.asarray(…) is all of it"


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a place that cannot be written, or a folder with anything in it that is not a
    solution.
    """
    target = landing(path)
    if target.exists() and not (target / INDEX).is_file():
        raise InputError(f"{os.fspath(path)}: exists and is not a solution, and is not overwritten")
    check_parent(path)


def made(
    engine: Engine, cluster: Any, outcome: Outcome, facts: dict[str, Any], out: Any
) -> Solution:
    """The solution of a run: its arrays in the folder `out`, or here without one."""
    source, folder = engine.source, None if out is None else landing(out)
    place = None if folder is None else os.fspath(folder)
    run = StoredRun(source.again, engine.ambiguity, engine.facts, cluster, place)
    lower, upper = outcome.lower, outcome.upper
    if source.head.maximise:
        lower, upper = 0.0 - upper, 0.0 - lower
    vectors = {"lower": lower, "upper": upper, "policy": outcome.policy}
    nature = outcome.best.nature
    sweeps = 0
    if isinstance(nature, RemoteNature):
        sweeps = nature.warm_start.sweeps
        witness = (nature.value, *nature.warm_start.arrays[:-1], nature.share)
        vectors |= dict(zip(WITNESS, witness, strict=True))
    history = [asdict(record) for record in outcome.history]
    meta = facts | {"status": str(outcome.status), "history": history, "sweeps": sweeps}
    named: dict[str, Array] = {}
    if not isinstance(source.states, range):
        named = dict(zip(NAMES, to_arrays("states", source.states), strict=True))
    if folder is None:
        arrays = {name: engine.gather(vector) for name, vector in vectors.items()} | named
    else:
        _write(engine, vectors, named, meta, folder)
        arrays = _arrays(folder, [*vectors, *named])
    return _solution(run, meta, arrays)


def _write(
    engine: Engine, vectors: dict[str, Any], named: dict[str, Array], meta: Any, target: Path
) -> None:
    fresh = beside(target)
    fresh.mkdir()
    old = None
    try:
        with about(target):
            kinds = engine.ask("dtypes", tuple(vectors.values()))[0]
            for name, (rows, kind) in zip(vectors, kinds, strict=True):
                shape = (engine.n_states, *rows)
                nbytes = int(np.prod(shape)) * np.dtype(kind).itemsize
                with (fresh / f"{name}.npy").open("xb") as stream:
                    header = {"descr": kind, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(stream, header)
                    os.posix_fallocate(stream.fileno(), stream.tell(), max(1, nbytes))
                    stream.truncate(stream.tell() + nbytes)
            engine.ask("write", os.path.abspath(fresh), list(vectors), tuple(vectors.values()))
            for name, array in named.items():
                with (fresh / f"{name}.npy").open("xb") as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
                    flush(stream)
            write_document(fresh / INDEX, {"format": FORMAT, "arrays": [*vectors, *named], **meta})
            old = replace_directory(fresh, target)
    finally:
        shutil.rmtree(fresh if old is None else old, ignore_errors=True)


def _arrays(folder: Path, names: list[str]) -> dict[str, Any]:
    return {
        name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names
    }


def load(path: str | os.PathLike[str], run: StoredRun | None = None) -> Solution:
    """Read a folder that `made` wrote; arrays stay in their files. With what is left it is the
    solution itself.
    """
    folder = Path(path)
    meta = read_document(folder / INDEX, FORMAT)
    del meta["format"]
    try:
        return _solution(run, meta, _arrays(folder, meta.pop("arrays")))
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{INDEX}: does not fit: {error}") from None


def _solution(run: StoredRun | None, meta: dict[str, Any], arrays: dict[str, Any]) -> Solution:
    others = ("sweeps", "maximise", "model")
    kept = {name: value for name, value in meta.items() if name not in others}
    sweeps, kernel = meta["sweeps"], None
    if run is not None and "point" in arrays:
        kernel = Kernel(run, sweeps, [arrays[name] for name in WITNESS])
    states: Any = range(meta["states"])
    if NAMES[0] in arrays:
        states = StoredNames(*(arrays[name] for name in NAMES))
    kept |= {
        "states": states,
        "actions": back(meta["actions"]),
        "notes": tuple(meta["notes"]),
        "status": Status(meta["status"]),
        "history": tuple(Record(**record) for record in meta["history"]),
        "value": arrays["lower" if meta["maximise"] else "upper"],
    }
    solution = Solution(kernel=kernel, **{name: arrays[name] for name in FIRST}, **kept)
    if run is not None:
        witness = {name: array for name, array in arrays.items() if name in FIRST + WITNESS}
        mark = None if run.folder is None else mark_of(run.folder)
        vars(solution).update(held=RunRecord(run, sweeps, mark, witness))
    return solution
