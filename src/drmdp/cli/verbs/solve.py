"""`drmdp solve`: find the policy with the best worst case."""

from __future__ import annotations

from functools import partial
from typing import Any

from drmdp.cli import cluster as distributed
from drmdp.cli import options as shared
from drmdp.cli import report as page
from drmdp.cli import show
from drmdp.cli.methods import METHOD_OPTIONS, method_of
from drmdp.cli.options import BALL, LIMITS, MODEL, SAVED, TABLE, check_outputs, command, files_of
from drmdp.cli.outputs import check_labels, check_out, finish
from drmdp.cli.policy_file import read_policy
from drmdp.cli.sets import set_of
from drmdp.errors import InputError
from drmdp.ui.progress import stage

HOW: list[Any] = ["criterion", *METHOD_OPTIONS.values(), "max_iters", *LIMITS]
MORE = (*page.REPORT_OPTIONS.values(), *distributed.CLUSTER_OPTIONS.values())
NO_SWEEP = (
    "--proof: --method first-order leaves no sweep to prove; save its solution with --out FILE, then "
    "solve again with --start FILE and --proof, without --method first-order: one iteration"
)


@command(
    [MODEL, *BALL, *HOW, *TABLE, *MORE],
    out=f"{SAVED}; with --cluster a folder of arrays.",
    proof="Write here what `drmdp verify` needs to check the bounds; not with first-order.",
)
def solve(asked: Any) -> int:
    """Find the policy with the best worst case.

    MODEL is an .npz file, a .drmdp directory, a craam .csv file, a PRISM .tra file or a .umb file.
    With --cluster a .drmdp directory is not read whole: `mpiexec -n 8 drmdp solve … --cluster mpi`
    and the like give the same answer as one process.
    """
    region = set_of(asked)
    method = method_of(**show.fields(asked, "method", "variant", "epochs", "weights", "stop"))
    cluster = distributed.cluster_of(asked)
    if asked.dry_run:
        return distributed.foresee(asked, region.alone(), cluster)
    if cluster is not None:
        shared.refuse(asked, distributed.WHOLE, "is not for --cluster")
        return distributed.solve(asked, region.alone(), cluster, method)
    shared.refuse(asked, ("checkpoint",), "goes with --cluster")
    if asked.proof is not None and asked.method == "first-order":
        raise InputError(NO_SWEEP)
    from drmdp import api, formats
    from drmdp.solution import Solution
    from drmdp.ui import clock

    style = check_out(asked)
    page.check(asked)
    read = {"MODEL": formats.files_of(asked.model_path), **files_of(asked, "start", "baseline")}
    check_outputs(files_of(asked, "out", "report", "proof"), read)

    model, ambiguity = region.read(asked.model_path, asked.discount)
    check_labels(model, asked)
    page.check_sizes(asked, [ambiguity])
    first = None if asked.start is None else Solution.load(asked.start)
    practice = None
    if asked.baseline is not None:
        practice = model.policy(read_policy(asked.baseline, model))
    asked.deadline = clock.deadline(asked.max_seconds)
    with stage(*show.SOLVING):
        limit = show.fields(asked, "tol", "rtol", "max_iters", "max_seconds", "threads")
        how = {"start": first, **show.fields(asked, "backend", "criterion")}
        solution = api.solve(model, ambiguity, method, **limit, **how)
    names = (*show.NUMBERS, *show.ARRAYS, "criterion", "time", "bias", "settings")
    document = show.fields(solution, *names) | show.named(model, ambiguity)
    document["notes"] = solution.notes

    def print_result(written: dict[str, str]) -> None:
        lines = show.outcome(solution) | written
        lines["Work"] += f", backend {solution.settings['backend']}"
        lines |= show.besides(solution)
        figures = show.limits(model, solution)
        notes = [*solution.notes, *show.unconstrained(model, ambiguity)]
        show.print_summary(model, ambiguity, lines, solution, figures, notes)

    write_page = partial(page.write, asked, solution, model, ambiguity, practice)
    return finish(asked, solution, document, style, print_result, write_page)
