"""`drmdp horizon`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli import report as page
from drmdp.cli.options import (
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
from drmdp.cli.plans import document, inputs, print_plan, read_stages
from drmdp.cli.policy_file import read_policy
from drmdp.cli.show import print_json
from drmdp.core.archives import Field, read_array, read_json
from drmdp.errors import InputError, shown

if TYPE_CHECKING:
    from drmdp.model import Model


@click.command()
@click.argument("model_paths", metavar="MODEL...", nargs=-1, required=True)
@RADIUS
@click.option("--stages", type=int, help="How many decisions; with several models, one for each.")
@click.option("--stage-discount", type=float, help="In [0, 1]; the model's by default.")
@click.option("--final", help=".json file that maps states to values after the last stage; 0 if not mentioned.")
@click.option(
    "--costs", help=".npy file with the costs, or rewards, of each stage, (stages, S, A) or (stages, S, A, S)."
)
@click.option("--half-cycle", is_flag=True, help="Half of each stage is spent in the state after it.")
@click.option("--out", help=f"{HELP}.")
@table_options
@page.options
@MAX_SECONDS
@THREADS
@common
def horizon(
    model_paths: tuple[str, ...], stages: int | None, stage_discount: float | None, final: str | None, costs: str | None,
    half_cycle: bool, out: str | None, keep_formulas: bool, separator: str | None, decimal: str | None,
    report: str | None, report_radii: int | None, title: str | None, unit: str | None,
    baseline: str | None, discount: float | None, tol: float | None, rtol: float, as_json: bool, max_seconds: float | None,
    threads: int | None, **region: Any,
) -> int:  # fmt: skip
    """Solve over finitely many stages.

    Stage 0 is the first decision. Several models, or a folder of them that `drmdp estimate --stage` wrote, are those of the stages, the first one first.
    One sweep a stage, as accurate as can be: --tol and --rtol
    only decide the status. `drmdp evaluate` and `drmdp simulate` read what --out writes.
    """
    from drmdp.core import clock
    from drmdp.solution import reached
    from drmdp.solvers import horizon as plans

    style = check_out(out, separator, decimal)
    page.check(report, report_radii, title=title, unit=unit, baseline=baseline)
    check_outputs(
        {"--out": paths(out), "--report": paths(report)},
        {**inputs(model_paths), "--final": paths(final), "--costs": paths(costs), "--baseline": paths(baseline)},
    )
    models, sets = read_stages(Asked(**region), model_paths, discount)
    if stages is None and len(models) == 1 and not models[0].stages:
        raise click.MissingParameter(param_hint="'--stages'", param_type="option")
    check_labels(models[0], out, keep_formulas)
    practice = None if baseline is None else read_policy(baseline, models[0])
    values = None if final is None else _final(final, models[0])
    prices = None if costs is None else _costs(costs)
    limits: Any = {"tol": tol, "rtol": rtol, "max_seconds": max_seconds, "threads": threads}
    several, deadline = len(models) > 1, clock.deadline(max_seconds)
    found = plans.finite_horizon(
        models if several else models[0],
        sets if several else sets[0],
        stages,
        values,
        prices,
        stage_discount,
        **limits,
        half_cycle=half_cycle,
    )
    about = document(models, found)
    try:
        if out is not None:
            write_out(out, found, about, style)
        if report is not None:
            words = {"title": title, "unit": unit or "", "baseline": practice}
            page.write_plan(found, report, report_radii, deadline, **words)
    finally:  # a full disk must not cost the result as well
        if as_json:
            print_json(about)
        else:
            print_plan(models[0], found, {"Saved": out, "Report": report})
    return exit_code(found.status, reached(found))


def _final(path: str, model: Model) -> Any:
    try:
        document = read_json(path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: expected an object that maps states to values, got {type(document).__name__}")
    place = {str(name): s for s, name in enumerate(model.states)}
    values = np.zeros(model.n_states)
    for name, value in document.items():
        if name not in place or type(value) not in (int, float) or abs(value) > sys.float_info.max:
            raise InputError(f"{path}: expected states of the model with numbers, got {shown(name)}: {shown(value)}")
        values[place[name]] = value
    return values


def _costs(path: str) -> Any:
    try:
        return read_array(path, Field("biuf", (3, 4)))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
