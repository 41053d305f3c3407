"""`drmdp solve`: find the policy with the best worst case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import report as page
from drmdp.cli.options import (
    BACKEND,
    MAX_SECONDS,
    RADIUS,
    THREADS,
    ball_of,
    check_outputs,
    common,
    exit_code,
    paths,
)
from drmdp.cli.show import (
    named,
    print_json,
    print_summary,
    worst,
)
from drmdp.core.progress import stage
from drmdp.core.text import count

if TYPE_CHECKING:
    pass


@click.command()
@click.argument("model_path", metavar="MODEL")
@common
@RADIUS
@BACKEND
@click.option("--method", default="auto", show_default=True, help="auto or a name in drmdp.METHODS.")
@click.option("--max-iters", type=int, help="Stop after so many iterations.")
@MAX_SECONDS
@THREADS
@click.option("--start", help="Saved solution to begin from.")
@click.option("--out", help="Save the solution here (.npz).")
@click.option("--report", help="Write a page about the solution here (.html); needs the extra `report`.")
@click.option(
    "--report-radii",
    type=int,
    help="Radii of its curve, up to twice the ball's; 11, or 0 for large models, by default.",
)
def solve(
    model_path: str,
    discount: float | None,
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
    report: str | None,
    report_radii: int | None,
    **region: Any,
) -> int:
    """Find the policy with the best worst case.

    MODEL is an .npz file, a .drmdp directory, a craam .csv file or a PRISM .tra file.
    """
    ball = ball_of(**region)
    from drmdp import api, formats
    from drmdp.core import clock
    from drmdp.solution import Solution, check_target, reached
    from drmdp.solvers.registry import resolve

    if out is not None:
        check_target(out)
    page.check(report, report_radii)
    outputs = {"--out": paths(out), "--report": paths(report)}
    check_outputs(outputs, {"MODEL": formats.files_of(model_path), "--start": paths(start)})

    name, chosen = resolve(method)
    model = formats.read(model_path, discount=discount)
    first = None if start is None else Solution.load(start)
    deadline = clock.deadline(max_seconds)
    with stage("solving", hint="Ctrl-C stops early and keeps the best result so far."):
        solution = api.solve(
            model, ball, chosen, tol, rtol, max_iters=max_iters, max_seconds=max_seconds, start=first, threads=threads,
            backend=backend,
        )  # fmt: skip
    try:
        if out is not None:
            solution.save(out)
        if report is not None:
            page.write(model, ball, solution, report, report_radii, deadline)
    finally:  # a full disk must not cost the result as well
        if as_json:
            names = (
                "status",
                "gap",
                "duality_gap",
                "scale",
                "seconds",
                "setup_seconds",
                "compile_seconds",
                "n_iters",
                "kernel_passes",
                "value",
                "lower",
                "upper",
            )
            fields = {name: getattr(solution, name) for name in (*names, "policy", "settings")}
            print_json({**fields, **named(model, ball)})
        else:
            work = f"{count(solution.n_iters, 'iteration')}, {solution.kernel_passes:.4g} kernel passes"
            lines = {
                "Status": f"{solution.status}: {solution.status.sentence}",
                "Gap": f"{solution.gap_in_words}, duality gap {solution.duality_gap:.2e}",
                "Work": f"{solution.time_in_words}, {work}, {name}, backend {solution.settings['backend']}",
            }
            if out is not None:
                lines["Saved"] = out
            if report is not None:
                lines["Report"] = report
            limit = ("at most", solution.upper) if model.maximise else ("at least", solution.lower)
            figures = {worst(model): solution.value, f"optimum {limit[0]}": limit[1]}
            print_summary(model, ball, lines, solution.policy, solution.value, figures)
    return exit_code(solution.status, reached(solution))
