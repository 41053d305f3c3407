"""`drmdp solve --cluster` and `drmdp resume`: models that nobody reads whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import click

from drmdp.cli import show
from drmdp.cli.option_groups import CLUSTER, choice, flag, integer, option, options
from drmdp.cli.options import BAD_INPUT, check_outputs, command, exit_code, files_of, paths, refuse
from drmdp.cli.report import REPORT_OPTIONS
from drmdp.errors import InputError
from drmdp.ui import progress
from drmdp.ui.progress import stage
from drmdp.ui.text import count, memory

if TYPE_CHECKING:
    from drmdp.cluster.solve import Cluster
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import Solution
    from drmdp.solvers.problem import Method

CLUSTER_OPTIONS = options(
    CLUSTER,
    cluster=option(
        "What solves a .drmdp directory that is not read whole.", type=choice("local", "ray", "mpi")
    ),
    workers=integer("Workers of --cluster ray."),
    parts=integer("Ranges that take turns with --cluster local."),
    address="Of a running Ray cluster, such as auto; one on this machine is started by default.",
    checkpoint="Folder for what `drmdp resume` needs; goes with --cluster.",
    dry_run=flag("Print what solving a .drmdp directory range by range takes, and stop."),
)
ENGINE = [CLUSTER_OPTIONS[name] for name in ("cluster", "workers", "parts", "address")]
WHOLE = ("start", "initial", *REPORT_OPTIONS, "discount", "criterion")
"""Options that need the whole model."""


def cluster_of(asked: Any) -> Cluster | None:
    """The cluster of the options; those that it does not have are refused if they were given."""
    from drmdp.cluster import KINDS

    settings = show.fields(asked, "workers", "parts", "address", "threads")
    given = {name: value for name, value in settings.items() if value is not None}
    if asked.cluster is None:
        refuse(asked, ("workers", "parts", "address"), "goes with --cluster")
        return None
    kind_of_cluster = KINDS[asked.cluster]
    unknown = [name for name in given if name not in kind_of_cluster.__dataclass_fields__]
    refuse(asked, unknown, f"--cluster {asked.cluster} has none")
    return cast("Cluster", kind_of_cluster(**given))


def solve(asked: Any, ambiguity: AmbiguitySet, cluster: Cluster, method: Method) -> int:
    """Solve range by range, and print what was found."""
    from drmdp import api, formats

    outputs = files_of(asked, "out", "checkpoint", "proof")
    check_outputs(outputs, {"MODEL": formats.files_of(asked.model_path)})
    names = ("tol", "rtol", "max_iters", "max_seconds", "backend", "checkpoint", "out")
    with _one_voice(cluster) as speaks:
        with stage(*show.SOLVING):
            how = {"cluster": cluster, **show.fields(asked, *names)}
            solution = api.solve(asked.model_path, ambiguity, method, **how)
        return _end(asked, solution, speaks)


@command([click.Argument(["folder"]), *ENGINE, "threads", "as_json", "proof", "progress"])
def resume(asked: Any) -> int:
    """Go on with a run from its last checkpoint.

    FOLDER is what --checkpoint of `drmdp solve` named. The result has the bits that the run would
    have had undisturbed. It goes where --out of that run said. With --cluster it goes on with other
    workers than it began with.
    """
    from drmdp import api
    from drmdp.cluster import KINDS
    from drmdp.cluster.solve import run_in

    if asked.cluster is None:
        refuse(asked, ("threads",), "goes with --cluster")
    chosen = cluster_of(asked)
    run = run_in(asked.folder)
    asked.model_path, asked.out = run["model"], run["out"]
    check_outputs(files_of(asked, "proof"), {"FOLDER": paths(asked.folder)})
    with _one_voice(chosen or KINDS[run["cluster"]["kind"]]()) as speaks:
        with stage(*show.SOLVING):
            solution = api.resume(asked.folder, chosen)
        return _end(asked, solution, speaks)


def foresee(asked: Any, ambiguity: AmbiguitySet, cluster: Cluster | None) -> int:
    """Print what a run would take."""
    from drmdp.cluster import Local, plan
    from drmdp.cluster.source import source_of
    from drmdp.core import threads as cores

    chosen = cluster or Local()
    source = source_of(asked.model_path)
    alone = isinstance(chosen, Local)
    estimate = plan.plan(source, ambiguity, chosen.ranges(), alone)
    with _one_voice(chosen) as speaks:
        if not speaks:
            return 0
    if asked.as_json:
        about = {"cluster": repr(chosen), "ambiguity": repr(ambiguity)}
        show.print_json(plan.fields(estimate) | about)
        return 0
    threads = cores.count(chosen.threads)
    private = f"{memory(estimate.worker)} of its own"
    who = "this process" if alone else f"each of {count(estimate.ranges, 'worker')}"
    moved = f"about {estimate.exchanges} of {memory(estimate.exchange)}, {memory(estimate.bytes)} in all"
    disk = {"checkpoints": 3 * estimate.checkpoint, "result": estimate.out}
    disk |= {"scratch": estimate.scratch} if alone else {}
    lines = {
        "Problem": show.problem(source.head),
        "Ranges": f"{estimate.ranges}, at most {count(estimate.states, 'state')} each",
        "Memory": f"{who}: {private}, and {memory(estimate.mapped)} of the model mapped",
        "Disk": ", ".join(f"{name} {memory(size)}" for name, size in disk.items()),
        "Exchanges": "none between machines" if alone else moved,
        "Time": f"about {estimate.seconds / threads:,.3g} s of "
        f"{count(threads, 'thread')}{'' if alone else ' of every worker'}",
        "Assumed": "a chain that mixes fast, a relative gap of 1e-3, cores that are free; "
        "see “Past one machine” in the docs",
    }
    show.print_lines(lines)
    return 0


def _end(asked: Any, solution: Solution, speaks: bool) -> int:
    """Write a proof if one is asked for, and show what was found."""
    try:
        if asked.proof is not None:
            with stage("writing the proof"):
                solution.proof(asked.proof)
    finally:  # a full disk must not cost the result as well
        if speaks:
            _show(asked, solution)
    return exit_code(solution)


def _show(asked: Any, solution: Solution) -> None:
    from drmdp.cluster.source import source_of

    if asked.as_json:
        arrays = () if asked.out else show.ARRAYS
        names = (*show.NUMBERS, *arrays, "settings", "fingerprint", "notes")
        show.print_json({**show.fields(solution, *names), "out": asked.out})
        return
    head, settings = source_of(asked.model_path).head, solution.settings
    last = solution.history[-1]
    value = last.lower if head.maximise else last.upper
    moved = f"{count(settings['exchanges'], 'exchange')}, {memory(settings['bytes'])}"
    lines = {
        "Problem": show.problem(head),
        "Set": settings["ambiguity"],
        **show.outcome(solution),
        "Moved": f"{moved}, {settings['cluster']}",
        "Value": f"{value:.6g} {show.worst(head)}, mean over the start distribution",
        **({"Saved": asked.out} if asked.out else {}),
        **({"Proof": asked.proof} if asked.proof else {}),
    }
    show.print_lines(lines, solution.notes)
    figures = show.limits(head, solution)
    show.first_states(solution.states, solution.actions, solution.policy, figures)


@contextmanager
def _one_voice(cluster: Cluster | None) -> Iterator[bool]:
    """Whether this process speaks; of an MPI job only rank 0 does."""
    from drmdp.cluster import Mpi

    if not isinstance(cluster, Mpi) or cluster.first:
        yield True
        return
    progress.choose(False)
    try:
        yield False
    except InputError:  # rank 0 says it
        raise SystemExit(BAD_INPUT) from None
