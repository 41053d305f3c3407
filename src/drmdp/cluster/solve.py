"""A run on an engine, from the first call to the result, and its resumption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

from drmdp._version import __version__
from drmdp.cluster import KINDS, Local, Mpi, Ray, results
from drmdp.cluster import checkpoint as saved
from drmdp.cluster.checkpoint import describe_method, describe_set, method_of, set_of
from drmdp.cluster.engine import Engine
from drmdp.cluster.operator import Distributed, DistributedProblem, Outline
from drmdp.cluster.source import DirectorySource, FunctionSource, source_of
from drmdp.core.names import listed
from drmdp.core.tolerance import Tolerance, scale_of
from drmdp.core.vectors import dot
from drmdp.errors import InputError, described
from drmdp.io.archives import read_document
from drmdp.io.files import AnyPath, check_parent, write_whole
from drmdp.operators.fingerprint import differences
from drmdp.sets import AmbiguitySet
from drmdp.solution import Record, Solution
from drmdp.solvers import loop
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Method
from drmdp.solvers.registry import settings_of
from drmdp.solvers.value_iteration import Accelerated, ValueIteration
from drmdp.ui import clock
from drmdp.ui.interrupts import not_lost
from drmdp.ui.progress import line, stage

FORMAT = "drmdp run 1"
INDEX = "run.json"
KEPT = ("model", "max_iters", "max_seconds", "out")
"""Fields of a task that `run.json` holds as they are."""
Cluster = Local | Ray | Mpi


@dataclass(frozen=True)
class Task:
    """A problem, a method and its limits."""

    model: Any  # a path, or a model of events whose function is asked
    ambiguity: AmbiguitySet
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
    method, known = task.method, PolicyIteration | ValueIteration | Accelerated
    if not isinstance(method, known) or method.backend != "exact":
        cure = "take policy-iteration, value-iteration or accelerated, with exact updates"
        raise InputError(f"method: on a cluster {cure}")
    if task.out is not None:
        results.check_target(task.out)
    return _everywhere(task, lambda: _run(task, checkpoint, callback, None))


def resume(
    path: AnyPath, cluster: Cluster | None = None, callback: loop.Callback | None = None
) -> Solution:
    """Go on with a run from its last checkpoint; on another engine, or another number of workers,
    if one is given.
    """
    folder, record = Path(path), run_in(path)
    kind = record["cluster"].pop("kind")
    task = Task(
        ambiguity=set_of(record["set"], folder),
        method=method_of(record["method"]),
        tolerance=Tolerance(**record["tolerance"]),
        cluster=cluster or KINDS[kind](**record["cluster"]),
        **{name: record[name] for name in KEPT},
    )
    return _everywhere(task, lambda: _run(task, folder, callback, record))


def run_in(path: AnyPath) -> dict[str, Any]:
    """Read `run.json` of the folder of a run."""
    try:
        return read_document(Path(path) / INDEX, FORMAT)
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: not the folder of a run: {error}") from None


def _everywhere(task: Task, run: Callable[[], Solution]) -> Solution:
    """Run here; of the ranks of an MPI job on the first, and the others work for it."""
    if not isinstance(task.cluster, Mpi):
        return run()
    from drmdp.cluster.mpi import drive

    return drive(run) if task.out is None else results.load(task.out, drive(lambda: run().held.run))


def _new_folder(path: Any) -> Path | None:
    if path is None:
        return None
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        cure = "; `drmdp resume` goes on with it" if (folder / INDEX).exists() else ""
        raise InputError(f"checkpoint: {folder} is not empty{cure}")
    check_parent(folder)
    folder.mkdir(exist_ok=True)
    return folder


def _check_model(source: DirectorySource) -> None:
    """Refuse models that workers cannot solve range by range."""
    fact, cure = "a model that is not read whole is solved", "solve drmdp.read(path), in memory"
    if source.head.discount == 1:
        reason = "what a total needs is solved for all states at once"
        raise InputError(f"discount: 1, and {fact} for discounted costs only: {reason}; {cure}")
    if source.has("ends"):
        raise InputError(f"terminal: states have final values, and {fact} without: {cure}")
    if source.has("discounts"):
        each = "there is one for each pair"
        raise InputError(f"discount: {each}, and {fact} with one for all: {cure}")


def _run(task: Task, folder: Any, callback: Any, before: dict[str, Any] | None) -> Solution:
    begin, deadline = clock.now(), clock.deadline(task.max_seconds)
    source = source_of(task.model)
    if folder is not None and isinstance(source, FunctionSource):
        fact = "code is not saved, so that nobody could go on with a function"
        cure = "write model.tabulate() to a .drmdp directory and solve its path"
        raise InputError(f"checkpoint: {fact}: {cure}")
    _check_model(source)
    folder = _new_folder(folder) if before is None else folder
    scratch = os.fspath(folder or (Path(task.out).parent if task.out else "")) or None
    with ExitStack() as ends:
        with not_lost(), stage("opening the model"):
            engine = task.cluster.start(source, task.ambiguity, scratch)
            ends.callback(engine.close)
        with not_lost(), stage("checking the model"):
            model: Any = Outline(engine)
            bits = _bits(engine)
            marks = source.fingerprint(list(chain.from_iterable(engine.ask("digests"))))
        if before is not None:
            _compare(before, marks, bits)
        elif folder is not None:
            _describe(task, folder, marks, bits)
        keeper = None if folder is None else saved.CheckpointWriter(folder, engine)
        snapshot = keeper.load() if keeper is not None and before is not None else None
        problem = DistributedProblem(Distributed(engine, model))  # type: ignore[arg-type]
        setup = clock.now() - begin
        with stage("working") as shown:
            shown.detail = lambda: str(engine.traffic)
            outcome = loop.run(
                task.method,
                problem,
                start=None,
                tolerance=task.tolerance,
                max_iters=task.max_iters,
                deadline=deadline,
                callback=_told(callback, engine),
                keeper=None if keeper is None else keeper.save,
                snapshot=snapshot,
            )
        code = isinstance(source, FunctionSource)
        facts = {
            "duality_gap": dot(model.initial, outcome.upper - outcome.lower),
            "scale": scale_of(model, outcome.upper),
            "settings": _settings(task, engine),
            "states": source.n_states,
            "actions": listed("actions", source.head.actions),
            "fingerprint": marks,
            "seconds": outcome.seconds,
            "setup_seconds": setup,
            "notes": list(source.head.notes),
            "maximise": source.head.maximise,
            "model": source.path if code else os.path.abspath(source.path),
        }
        return results.made(engine, task.cluster, outcome, facts, task.out)


def _told(callback: loop.Callback | None, engine: Engine) -> loop.Callback:
    """The callback, after a line for whoever reads a log."""

    def tell(record: Record) -> Any:
        where = f"iteration {record.iteration:,}, gap {record.gap:.2e}"
        line(f"{where}, {engine.traffic}, {record.seconds:.0f} s")
        return None if callback is None else callback(record)

    return tell


def _settings(task: Task, engine: Engine) -> dict[str, Any]:
    traffic = engine.traffic
    settings: dict[str, Any] = {"method": describe_method(task.method)["method"]}
    settings |= settings_of(task.method) | asdict(task.tolerance)
    settings |= {"max_iters": task.max_iters, "max_seconds": task.max_seconds}
    settings |= {"ambiguity": repr(task.ambiguity), "cluster": repr(task.cluster)}
    return settings | {"exchanges": traffic.exchanges, "bytes": traffic.bytes}


def _bits(engine: Engine) -> dict[str, str]:
    """The versions that decide the bits; refused if workers differ."""
    answers = engine.ask("fingerprint")
    for k, other in enumerate(answers):
        if odd := differences(answers[0], other):
            raise InputError(f"workers 0 and {k} would not give the same bits: {'; '.join(odd)}")
    return cast(dict[str, str], answers[0])


def _describe(task: Task, folder: Path, marks: str, bits: dict[str, str]) -> None:
    kind = next(name for name, known in KINDS.items() if isinstance(task.cluster, known))
    document = {
        "format": FORMAT,
        "version": __version__,
        "model": os.path.abspath(task.model),
        "fingerprint": marks,
        "kernels": bits,
        "set": describe_set(task.ambiguity, folder),
        "method": describe_method(task.method),
        "tolerance": asdict(task.tolerance),
        "max_iters": task.max_iters,
        "max_seconds": task.max_seconds,
        "cluster": {"kind": kind, **asdict(task.cluster)},
        "out": None if task.out is None else os.path.abspath(task.out),
    }
    content = json.dumps(document, indent=1).encode()
    write_whole(folder / INDEX, lambda stream: stream.write(content))


def _compare(before: dict[str, Any], marks: str, bits: dict[str, str]) -> None:
    """Refuse to go on where that would not give the bits of an undisturbed run."""
    if before["fingerprint"] != marks:
        why = f"fingerprint {marks}, it was {before['fingerprint']}"
        fault = f"is not the model that the run began with: {why}"
        raise InputError(f"{before['model']}: {fault}")
    if odd := differences(before["kernels"], bits):
        raise InputError(f"the run began with kernels that give other bits: {'; '.join(odd)}")
