"""`drmdp solve`: find the policy with the best worst case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import past
from drmdp.cli import report as page
from drmdp.cli.options import (
    BACKEND,
    CRITERION,
    MAX_SECONDS,
    RADIUS,
    THREADS,
    Asked,
    check_outputs,
    common,
    exit_code,
    paths,
)
from drmdp.cli.outputs import HELP, check_labels, check_out, table_options, write_out
from drmdp.cli.policy_file import read_policy
from drmdp.cli.show import ARRAYS, NUMBERS, limits, named, outcome, print_json, print_summary
from drmdp.core.progress import stage
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import Solution


@click.command()
@click.argument("model_path", metavar="MODEL")
@common
@RADIUS
@CRITERION
@BACKEND
@click.option("--method", default="auto", show_default=True, help="auto or a name in drmdp.METHODS.")
@click.option("--max-iters", type=int, help="Stop after so many iterations.")
@MAX_SECONDS
@THREADS
@click.option("--start", help="Saved solution to begin from.")
@click.option("--out", help=f"{HELP}; with --cluster a folder of arrays.")
@table_options
@page.options
@click.option("--proof", help="Write here what `drmdp verify` needs to check the bounds.")
@past.engine_options
@click.option("--checkpoint", help="Folder for what `drmdp resume` needs; goes with --cluster.")
@click.option("--dry-run", is_flag=True, help="Print what solving a .drmdp directory range by range takes, and stop.")
def solve(
    model_path: str,
    discount: float | None,
    criterion: str | None,
    backend: str | None,
    tol: float | None,
    rtol: float,
    as_json: bool,
    method: str,
    max_iters: int | None,
    max_seconds: float | None,
    threads: int | None,
    start: str | None,
    out: str | None,
    keep_formulas: bool,
    separator: str | None,
    decimal: str | None,
    report: str | None,
    report_radii: int | None,
    title: str | None,
    unit: str | None,
    baseline: str | None,
    proof: str | None,
    cluster: str | None,
    workers: int | None,
    parts: int | None,
    address: str | None,
    checkpoint: str | None,
    dry_run: bool,
    **region: Any,
) -> int:
    """Find the policy with the best worst case.

    MODEL is an .npz file, a .drmdp directory, a craam .csv file, a PRISM .tra file or a .umb file. With --cluster a .drmdp directory is not read
    whole: `mpiexec -n 8 drmdp solve … --cluster mpi` and the like give the same answer as one process.
    """
    asked = Asked(**region)
    chosen_cluster = past.cluster_of(cluster, workers=workers, parts=parts, address=address, threads=threads)
    if dry_run:
        return past.foresee(model_path, asked.alone(), chosen_cluster, as_json)
    if chosen_cluster is not None:
        past.refuse(
            start=start, initial=asked.initial, report=report, report_radii=report_radii, title=title, unit=unit, baseline=baseline,
            discount=discount, criterion=criterion,
        )  # fmt: skip
        return past.solve(
            model_path, asked.alone(), chosen_cluster, out, proof, as_json, method=method, tol=tol, rtol=rtol, max_iters=max_iters,
            max_seconds=max_seconds, backend=backend, checkpoint=checkpoint,
        )  # fmt: skip
    if checkpoint is not None:
        raise InputError("--checkpoint: goes with --cluster")
    from drmdp import api, formats
    from drmdp.core import clock
    from drmdp.solution import Solution, reached
    from drmdp.solvers.registry import resolve

    style = check_out(out, separator, decimal)
    page.check(report, report_radii, title=title, unit=unit, baseline=baseline)
    outputs = {"--out": paths(out), "--report": paths(report), "--proof": paths(proof)}
    check_outputs(
        outputs, {"MODEL": formats.files_of(model_path), "--start": paths(start), "--baseline": paths(baseline)}
    )

    chosen = resolve(method)[1]
    model, ball = asked.read(model_path, discount)
    check_labels(model, out, keep_formulas)
    first = None if start is None else Solution.load(start)
    practice = None if baseline is None else model.policy(read_policy(baseline, model))
    deadline = clock.deadline(max_seconds)
    with stage("solving", hint="Ctrl-C stops early and keeps the best result so far."):
        solution = api.solve(
            model, ball, chosen, tol, rtol, max_iters=max_iters, max_seconds=max_seconds, start=first, threads=threads,
            backend=backend, criterion=criterion,
        )  # fmt: skip
    document = {
        name: getattr(solution, name) for name in (*NUMBERS, *ARRAYS, "criterion", "time", "bias", "settings")
    } | named(model, ball)
    document["notes"] = solution.notes
    try:
        if out is not None:
            write_out(out, solution, document, style)
        if proof is not None:
            solution.proof(proof)
        if report is not None:
            page.write(
                model, ball, solution, report, report_radii, deadline, title=title, unit=unit or "", baseline=practice
            )
    finally:  # a full disk must not cost the result as well
        if as_json:
            print_json(document)
        else:
            _print(model, ball, solution, {"Saved": out, "Proof": proof, "Report": report})
    return exit_code(solution.status, reached(solution))


def _print(model: Model, ball: AmbiguitySet, solution: Solution, written: dict[str, str | None]) -> None:
    lines = outcome(solution) | {name: path for name, path in written.items() if path is not None}
    lines["Work"] += f", backend {solution.settings['backend']}"
    print_summary(
        model, ball, lines, solution.policy, solution.value, limits(model, solution), solution.notes, solution.criterion
    )
