"""`drmdp solve --cluster` and `drmdp resume`: models that nobody reads whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.options import BAD_INPUT, OPTIONS, THREADS, check_outputs, exit_code, paths
from drmdp.cli.show import ARRAYS, NUMBERS, console, first_states, grid, limits, outcome, print_json, problem, worst
from drmdp.core import progress
from drmdp.core.progress import stage
from drmdp.core.text import count, memory
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.cluster.solve import Cluster
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import Solution

ENGINE = (
    click.option("--cluster", help="What solves a .drmdp directory that is not read whole: local, ray or mpi."),
    click.option("--workers", type=int, help="Workers of --cluster ray."),
    click.option("--parts", type=int, help="Ranges that take turns with --cluster local."),
    click.option(
        "--address", help="Of a running Ray cluster, such as auto; one on this machine is started by default."
    ),
)


def engine_options(command: Any) -> Any:
    """Options that say who computes."""
    for option in reversed(ENGINE):
        command = option(command)
    return command


def cluster_of(kind: str | None, **given: Any) -> Cluster | None:
    """The cluster of the options; those that it does not have are refused if they were given."""
    from drmdp.cluster import KINDS

    asked = {name: value for name, value in given.items() if value is not None}
    if kind is None:
        for name in asked:
            if name != "threads":
                raise InputError(f"--{name}: goes with --cluster")
        return None
    if kind.lower() not in KINDS:
        raise InputError(f"--cluster: expected one of {', '.join(KINDS)}, got {kind!r}")
    made = KINDS[kind.lower()]
    for name in asked:
        if name not in made.__dataclass_fields__:
            raise InputError(f"--{name}: --cluster {kind.lower()} has none")
    found: Cluster = made(**asked)
    return found


def refuse(**given: Any) -> None:
    """Refuse options that need the whole model."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')}: is not for --cluster")


def solve(
    path: str,
    ball: AmbiguitySet,
    cluster: Cluster | None,
    out: str | None,
    proof: str | None,
    as_json: bool,
    **settings: Any,
) -> int:
    """Solve range by range, and print what was found."""
    from drmdp import api, formats

    outputs = {"--out": paths(out), "--checkpoint": paths(settings["checkpoint"]), "--proof": paths(proof)}
    check_outputs(outputs, {"MODEL": formats.files_of(path)})
    with _one_voice(cluster) as speaks:
        with stage("solving", hint="Ctrl-C stops early and keeps the best result so far."):
            solution = api.solve(path, ball, cluster=cluster, out=out, **settings)
        return _end(solution, path, out, proof, as_json, speaks)


@click.command()
@click.argument("folder")
@engine_options
@THREADS
@click.option("--proof", help="Write here what `drmdp verify` needs to check the bounds.")
@OPTIONS["json"]
@OPTIONS["progress"]
def resume(folder: str, cluster: str | None, proof: str | None, as_json: bool, **given: Any) -> int:
    """Go on with a run from its last checkpoint.

    FOLDER is what --checkpoint of `drmdp solve` named. The result has the bits that the run would have had undisturbed. It goes where --out of that
    run said. With --cluster it goes on with other workers than it began with.
    """
    from drmdp import api
    from drmdp.cluster import KINDS
    from drmdp.cluster.solve import run_in

    if cluster is None and given["threads"] is not None:
        raise InputError("--threads: goes with --cluster")
    chosen = cluster_of(cluster, **given)
    run = run_in(folder)
    check_outputs({"--proof": paths(proof)}, {"FOLDER": paths(folder)})
    with _one_voice(chosen or KINDS[run["cluster"]["kind"]]()) as speaks:
        with stage("solving", hint="Ctrl-C stops early and keeps the best result so far."):
            solution = api.resume(folder, chosen)
        return _end(solution, run["model"], run["out"], proof, as_json, speaks)


def foresee(path: str, ball: AmbiguitySet, cluster: Cluster | None, as_json: bool) -> int:
    """Print what a run would take."""
    from drmdp.cluster import Local
    from drmdp.cluster.events import source_of
    from drmdp.cluster.plan import fields, plan
    from drmdp.core import threads as cores

    chosen = cluster or Local()
    source = source_of(path)
    alone = isinstance(chosen, Local)
    found = plan(source, ball, chosen.ranges(), alone)
    with _one_voice(chosen) as speaks:
        if not speaks:
            return 0
    if as_json:
        print_json({**fields(found), "cluster": repr(chosen), "ball": repr(ball)})
        return 0
    threads = cores.count(chosen.threads)
    own = f"{memory(found.worker)} of its own, and {memory(found.mapped)} of the model mapped"
    who = "this process" if alone else f"each of {count(found.ranges, 'worker')}"
    moved = f"about {found.exchanges} of {memory(found.exchange)}, {memory(found.bytes)} in all"
    disk = {"checkpoints": 3 * found.checkpoint, "result": found.out} | ({"scratch": found.scratch} if alone else {})
    lines = {
        "Problem": problem(source.head),
        "Ranges": f"{found.ranges}, at most {count(found.states, 'state')} each",
        "Memory": f"{who}: {own}",
        "Disk": ", ".join(f"{name} {memory(size)}" for name, size in disk.items()),
        "Exchanges": "none between machines" if alone else moved,
        "Time": f"about {found.seconds / threads:,.3g} s of {count(threads, 'thread')}{'' if alone else ' of every worker'}",
        "Assumed": "a chain that mixes fast, a relative gap of 1e-3, cores that are free; see “Past one machine” in the docs",
    }
    console().print(grid(lines))
    return 0


def _end(solution: Solution, path: str, out: str | None, proof: str | None, as_json: bool, speaks: bool) -> int:
    """Write a proof if one is asked for, and show what was found."""
    try:
        if proof is not None:
            with stage("writing the proof"):
                solution.proof(proof)
    finally:  # a full disk must not cost the result as well
        if speaks:
            _show(solution, path, out, proof, as_json)
    return _code(solution)


def _show(solution: Solution, path: str, out: str | None, proof: str | None, as_json: bool) -> None:
    from drmdp.cluster.events import source_of

    if as_json:
        names = (*NUMBERS, *(() if out else ARRAYS), "settings")
        fields = {name: getattr(solution, name) for name in (*names, "fingerprint", "notes")}
        print_json({**fields, "out": out})
        return
    head, settings = source_of(path).head, solution.settings
    last = solution.history[-1]
    value = last.lower if head.maximise else last.upper
    lines = {
        "Problem": problem(head),
        "Ball": settings["ball"],
        **outcome(solution),
        "Moved": f"{count(settings['exchanges'], 'exchange')}, {memory(settings['bytes'])}, {settings['cluster']}",
        "Value": f"{value:.6g} {worst(head)}, mean over the start distribution",
        **({"Saved": out} if out else {}),
        **({"Proof": proof} if proof else {}),
        **({"Notes": "\n".join(solution.notes)} if solution.notes else {}),
    }
    console().print(grid(lines))
    first_states(solution.states, solution.actions, solution.policy, limits(head, solution))


def _code(solution: Solution) -> int:
    from drmdp.solution import reached

    return exit_code(solution.status, reached(solution))


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
