"""A run on an engine, from the first call to the result, and its resumption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drmdp._version import __version__
from drmdp.bellman.fingerprint import differences
from drmdp.cluster import KINDS, Local, Mpi, Ray, results
from drmdp.cluster.checkpoint import Keeper, complete
from drmdp.cluster.described import describe_method, describe_set, method_of, set_of
from drmdp.cluster.engine import Engine
from drmdp.cluster.events import EventSource, FunctionSource, source_of
from drmdp.cluster.operator import Distributed, DistributedProblem, Outline
from drmdp.core import clock
from drmdp.core.archives import parse_json
from drmdp.core.files import check_parent, write_whole
from drmdp.core.interrupts import not_lost
from drmdp.core.names import listed
from drmdp.core.progress import line, stage
from drmdp.core.tolerance import Tolerance, scale_of
from drmdp.core.vectors import dot
from drmdp.errors import InputError, described, shown
from drmdp.sets import AmbiguitySet
from drmdp.solution import Record, Solution
from drmdp.solvers import loop
from drmdp.solvers.accelerated import Accelerated
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Method
from drmdp.solvers.registry import settings_of
from drmdp.solvers.value_iteration import ValueIteration

FORMAT = "drmdp run 1"
INDEX = "run.json"
Cluster = Local | Ray | Mpi


@dataclass(frozen=True)
class Task:
    """What is solved, and how."""

    model: Any  # a path, or a model of events whose function is asked
    ball: AmbiguitySet
    method: Method
    tolerance: Tolerance
    max_iters: int | None
    max_seconds: float | None
    cluster: Cluster
    out: str | None


def solve(task: Task, checkpoint: Any, callback: loop.Callback | None) -> Solution:
    """Solve on an engine; `checkpoint` is a folder that is made, or empty."""
    if not isinstance(task.cluster, Cluster):
        raise InputError(f"cluster: expected one of drmdp.cluster, got {described(task.cluster)}")
    if not isinstance(task.method, PolicyIteration | ValueIteration | Accelerated) or task.method.backend != "exact":
        raise InputError(
            "method: on a cluster take policy-iteration, value-iteration or accelerated, with exact updates"
        )
    if task.out is not None:
        results.check_target(task.out)
    return _everywhere(task, lambda: _run(task, checkpoint, callback, None))


def resume(
    path: str | os.PathLike[str], cluster: Cluster | None = None, callback: loop.Callback | None = None
) -> Solution:
    """Go on with a run from its last checkpoint; on another engine, or another number of workers, if one is given."""
    folder, found = Path(path), run_in(path)
    kind = found["cluster"].pop("kind")
    task = Task(
        found["model"], set_of(found["set"], folder), method_of(found["method"]), Tolerance(**found["tolerance"]),
        found["max_iters"], found["max_seconds"], cluster or KINDS[kind](**found["cluster"]), found["out"],
    )  # fmt: skip
    return _everywhere(task, lambda: _run(task, folder, callback, found))


def run_in(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the folder of a run says of it."""
    folder = Path(path)
    try:
        found = parse_json((folder / INDEX).read_bytes())
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: not the folder of a run: {INDEX}: {error.strerror}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{folder / INDEX}: expected format {FORMAT!r}, got {shown(found)}")
    return found


def _everywhere(task: Task, run: Callable[[], Solution]) -> Solution:
    """Run here; of the ranks of an MPI job on the first, and the others work for it."""
    if not isinstance(task.cluster, Mpi):
        return run()
    from drmdp.cluster.ranks import drive

    if task.out is None:
        return drive(run)
    left = drive(lambda: run().held.left)
    return results.load(task.out, left)


def _new_folder(given: Any) -> Path | None:
    if given is None:
        return None
    folder = Path(given)
    if folder.exists() and any(folder.iterdir()):
        cure = "; `drmdp resume` goes on with it" if (folder / INDEX).exists() else ""
        raise InputError(f"checkpoint: {folder} is not empty{cure}")
    check_parent(folder)
    folder.mkdir(exist_ok=True)
    return folder


def _run(task: Task, folder: Any, callback: Any, before: dict[str, Any] | None) -> Solution:
    begin, deadline = clock.now(), clock.deadline(task.max_seconds)
    source = source_of(task.model)
    if folder is not None and isinstance(source, FunctionSource):
        raise InputError(
            "checkpoint: code is not saved, so that nobody could go on with a function: write model.tabulate() to a .drmdp directory and solve its path"
        )
    held: Any = source.model if isinstance(source, EventSource) else source.stored
    if source.head.discount == 1:
        raise InputError(
            "discount: 1, and a model that is not read whole is solved for discounted costs only: what a total needs is solved for all states at once; "
            "solve drmdp.read(path), in memory"
        )
    if held.ends is not None:
        raise InputError(
            "terminal: states have final values, and a model that is not read whole is solved without: solve drmdp.read(path), in memory"
        )
    if held.discounts is not None:
        raise InputError(
            "discount: there is one for each pair, and a model that is not read whole is solved with one for all: solve drmdp.read(path), in memory"
        )
    folder = _new_folder(folder) if before is None else folder
    scratch = os.fspath(folder or (Path(task.out).parent if task.out else "")) or None
    with ExitStack() as ends:
        with not_lost(), stage("opening the model"):
            engine = task.cluster.start(source, task.ball, scratch)
            ends.callback(engine.close)
        with not_lost(), stage("checking the model"):
            model: Any = Outline(engine)
            bits = _bits(engine)
            marks = source.fingerprint([mark for own in engine.run("digests")[1] for mark in own])
        if before is not None:
            _compare(before, marks, bits)
        elif folder is not None:
            _describe(task, folder, marks, bits)
        keeper = None if folder is None else Keeper(folder, engine)
        snapshot = keeper.load() if keeper is not None and before is not None else None
        problem = DistributedProblem(Distributed(engine, model))  # type: ignore[arg-type]
        setup = clock.now() - begin
        limits: Any = {"max_iters": task.max_iters, "deadline": deadline, "callback": _told(callback, engine)}
        with stage("working") as shown:
            shown.detail = lambda: str(engine.traffic)
            found = loop.run(
                task.method, problem, start=None, tolerance=task.tolerance, keeper=keeper, snapshot=snapshot, **limits
            )
        facts = {
            "duality_gap": dot(model.initial, found.upper - found.lower), "scale": scale_of(model, found.upper),
            "settings": _settings(task, engine), "states": source.n_states, "actions": listed("actions", source.head.actions),
            "fingerprint": marks, "seconds": found.seconds, "setup_seconds": setup, "notes": list(source.head.notes),
            "maximise": source.head.maximise, "model": source.path if isinstance(source, FunctionSource) else os.path.abspath(source.path),
        }  # fmt: skip
        return results.made(engine, task.cluster, found, facts, task.out)


def _told(callback: loop.Callback | None, engine: Engine) -> loop.Callback:
    """The callback, after a line for whoever reads a log."""

    def tell(record: Record) -> Any:
        line(f"iteration {record.iteration:,}, gap {record.gap:.2e}, {engine.traffic}, {record.seconds:.0f} s")
        return None if callback is None else callback(record)

    return tell


def _settings(task: Task, engine: Engine) -> dict[str, Any]:
    traffic = engine.traffic
    return {
        "method": describe_method(task.method)["method"], **settings_of(task.method), **asdict(task.tolerance),
        "max_iters": task.max_iters, "max_seconds": task.max_seconds, "ball": repr(task.ball), "cluster": repr(task.cluster),
        "exchanges": traffic.exchanges, "bytes": traffic.bytes,
    }  # fmt: skip


def _bits(engine: Engine) -> dict[str, str]:
    """What decides the bits, if it is the same for all workers."""
    found = engine.run("kernels")[1]
    for k, other in enumerate(found):
        if odd := differences(found[0], other):
            raise InputError(f"workers 0 and {k} would not give the same bits: {'; '.join(odd)}")
    bits: dict[str, str] = found[0]
    return bits


def _describe(task: Task, folder: Path, marks: str, bits: dict[str, str]) -> None:
    kind = next(name for name, known in KINDS.items() if isinstance(task.cluster, known))
    told = {
        "format": FORMAT, "version": __version__, "model": os.path.abspath(task.model), "fingerprint": marks, "kernels": bits,
        "set": describe_set(task.ball, folder), "method": describe_method(task.method), "tolerance": asdict(task.tolerance),
        "max_iters": task.max_iters, "max_seconds": task.max_seconds, "cluster": {"kind": kind, **asdict(task.cluster)},
        "out": None if task.out is None else os.path.abspath(task.out),
    }  # fmt: skip
    write_whole(folder / INDEX, lambda stream: stream.write(json.dumps(told, indent=1).encode()))


def _compare(before: dict[str, Any], marks: str, bits: dict[str, str]) -> None:
    """Refuse to go on where that would not give the bits of an undisturbed run."""
    if before["fingerprint"] != marks:
        raise InputError(
            f"{before['model']}: is not the model that the run began with: fingerprint {marks}, it was {before['fingerprint']}"
        )
    if odd := differences(before["kernels"], bits):
        raise InputError(f"the run began with kernels that give other bits: {'; '.join(odd)}")


__all__ = ["Task", "complete", "resume", "run_in", "solve"]
