"""Proofs of models that are not read whole: every worker writes what there is to say of its range,
and the pieces become one file.

Witnesses are what the best sweep left: workers read their ranges of it in the folder of the result,
or of what the driver writes down without one. Workers of the same cluster are started again, and
look at the model again. The bytes are those of a proof of the model in memory.

Pieces are in a hidden folder beside the file: vectors as text, lines of states, and digests of
states. The driver copies them, and holds none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.cluster import Mpi
from drmdp.cluster.engine import Engine
from drmdp.cluster.source import DirectorySource
from drmdp.errors import InputError
from drmdp.io.files import beside, check_file, landing, write_whole
from drmdp.layout.memory import SweepMemory
from drmdp.model import Model
from drmdp.model.events.lifted_model import seen_by
from drmdp.operators.exact import ExactOperator
from drmdp.proof import NO_SWEEP, about_set, header, lines, sides_of, states, witness_of
from drmdp.proof.states import States, Sweep
from drmdp.sets import AmbiguitySet

FIRST = ("lower", "upper", "policy")
WITNESS = ("point", *SweepMemory._fields, "share")
SOME = 2**20
"""Bytes that are copied at a time."""


class StoredRun(NamedTuple):
    """The source, set and engine of a run, beside its arrays."""

    source: DirectorySource
    ambiguity: AmbiguitySet
    facts: Any
    cluster: Any
    folder: str | None  # of the result


@dataclass(frozen=True)
class RunRecord:
    """The best sweep of a run, and the engine that can read it."""

    run: StoredRun
    sweeps: int  # so far, when the best one was made
    mark: tuple[int, ...] | None  # that tells the result from another one in the same folder
    arrays: dict[str, Any]  # of FIRST and, if there was a sweep, of WITNESS

    def write_proof(self, path: str | os.PathLike[str], fingerprint: str) -> int:
        """Have workers write the proof; returns its bytes."""
        write = partial(self._write, path, fingerprint)
        if not isinstance(self.run.cluster, Mpi):
            return write()
        from drmdp.cluster.mpi import drive

        return int(drive(write))

    def _write(self, path: str | os.PathLike[str], fingerprint: str) -> int:
        source, folder = replace(self.run.source), self.run.folder  # not opened yet
        if "point" not in self.arrays:
            raise InputError(NO_SWEEP)
        witness_of(self.run.ambiguity)
        check_file(path)
        if folder is not None and mark_of(folder) != self.mark:
            raise InputError(f"proof: {folder} no longer holds this solution")
        engine, target = self.run.cluster.start(source, self.run.ambiguity, None), landing(path)
        try:
            engine.survey()
            marks = source.fingerprint([mark for part in engine.ask("digests") for mark in part])
            if marks != fingerprint:
                why = f"fingerprint {marks}, it was {fingerprint}"
                raise InputError(f"{source.path}: is not the model that was solved: {why}")
            with _pieces(target) as pieces:
                self._have_written(engine, pieces, fingerprint)
                starts = [lo for lo, _ in engine.ranges]
                write_whole(target, lambda stream: stream.writelines(_joined(pieces, starts)))
        finally:
            engine.close()
        return target.stat().st_size

    def _have_written(self, engine: Engine, pieces: Path, fingerprint: str) -> None:
        engine.ask("write_identity", os.fspath(pieces))
        digests = (_blocks(pieces / f"digests-{lo}") for lo, _ in engine.ranges)
        model = states.joined(engine.source.head, (digest for part in digests for digest in part))
        more = {"model": model, "fingerprint": fingerprint, "kind": "optimum"}
        for name in () if self.run.folder else FIRST + WITNESS:
            np.save(pieces / f"{name}.npy", self.arrays[name], allow_pickle=False)
        text = os.fspath(pieces)
        engine.ask("write_proof", text, more, self.sweeps, self.run.folder or text)


@contextmanager
def _pieces(target: Path) -> Iterator[Path]:
    """A folder for pieces, as long as they are needed."""
    folder = beside(target)
    folder.mkdir()
    try:
        yield folder.absolute()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def mark_of(folder: str) -> tuple[int, ...] | None:
    """Identity of the result in a folder, which changes with the result; None if there is none."""
    try:
        status = os.stat(os.path.join(folder, "solution.json"))
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(SOME):
            yield block


def _joined(folder: Path, starts: list[int]) -> Iterator[bytes]:
    """The whole file."""

    def all_of(name: str, between: bytes = b"") -> Iterator[bytes]:
        for lo in starts:
            yield between if lo else b""
            yield from _blocks(folder / f"{name}-{lo}")

    yield from _blocks(folder / "header-0")
    yield from states.vector_lines({name: all_of(name, b",") for name in ("v", "lower", "upper")})
    yield from all_of("lines")
    yield states.END


# ---------------------------------------------------------------------- on a worker


def opened(folder: str, lo: int, hi: int) -> tuple[Array, ...]:
    """The point of all states and the range of the other arrays, from the folder of a result."""

    def mapped(name: str) -> Array:
        path = os.path.join(folder, f"{name}.npy")
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))

    others = (np.array(mapped(name)[lo:hi]) for name in (*FIRST, *WITNESS[1:]))
    return np.array(mapped(WITNESS[0])), *others


def identify(folder: str, model: Model) -> None:
    """Write the digests of the states of a range, as nature sees them."""
    _put(folder, "digests", model, states.digests(model))


def explain(
    folder: str, more: dict[str, Any], operator: ExactOperator, sweeps: int, arrays: tuple[Any, ...]
) -> None:
    """Write what a proof says of a range; of the first one the header too."""
    model, ambiguity = operator.model, operator.ambiguity
    point, lower, upper, policy, *memory, share = arrays
    nature = operator.nature(point, SweepMemory(*memory), sweeps).pulled(share)
    sweep = Sweep(point, policy, nature, *sides_of(model, lower, upper))
    witness = witness_of(ambiguity)
    if model.first == 0:
        head = header({"model": more["model"]} | about_set(ambiguity) | more)
        _put(folder, "header", model, [states.encoded(head)])
    for name, vector in (("v", point[model.place]), ("lower", sweep.lower), ("upper", sweep.upper)):
        _put(folder, name, model, states.numbers_of(vector))
    by_state = States(seen_by(ambiguity.moves, model), ambiguity, witness, sweep, True)
    _put(folder, "lines", model, lines(by_state))


def _put(folder: str, name: str, model: Model, pieces: Iterable[bytes]) -> None:
    with (Path(folder) / f"{name}-{model.first}").open("wb") as stream:
        stream.writelines(pieces)
