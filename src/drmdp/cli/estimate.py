"""`drmdp estimate`: a model from observed transitions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.options import PROGRESS, check_outputs
from drmdp.cli.screen import say
from drmdp.cli.show import console, grid, print_json, sizes
from drmdp.cli.words import spoken

if TYPE_CHECKING:
    from drmdp.estimate.pipeline import Estimate
from drmdp.cli.log import log_options, log_settings, print_kernels, summary_lines


@click.command()
@click.argument("table")
@click.option("-o", "--out", required=True, help="Model to write: .npz, or .drmdp for a directory of mapped arrays.")
@click.option("--discount", type=float, help="In [0, 1]; or give --interest.")
@click.option("--interest", help="Instead, if times are dates: 3%/year.")
@log_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@PROGRESS
@click.pass_context
def estimate(context: click.Context, /, table: str, out: str, as_json: bool, **given: Any) -> None:
    """Estimate a model from observed transitions.

    TABLE is a .csv, .tsv, .txt, .parquet or .xlsx file with a row per transition, or per visit: then the next row of the
    same episode is the next state. Pairs of state and action without data need a rule, --unvisited and --partial; the
    summary says where it was used. `drmdp check` lists what is odd in TABLE.
    """  # fmt: skip
    from drmdp import formats
    from drmdp.estimate.pipeline import fit

    formats.check_target(out)
    prices = [path for path in (given["costs"], given["rewards"]) if path is not None and Path(path).is_file()]
    inputs = {"TABLE": [Path(table)], "--costs or --rewards": [Path(path) for path in prices]}
    check_outputs({"--out": formats.files_of(out)}, inputs)
    columns, settings = log_settings(given)
    begin = time.perf_counter()
    found = fit(table, columns, settings)
    for text in found.summary.warnings:
        say(f"drmdp: warning: {table}: {spoken(text, context.command)}", err=True)
    formats.write(found.model, out)
    seconds = time.perf_counter() - begin
    if as_json:
        document = {"path": out, **sizes(found.model)}
        print_json({**document, "seconds": seconds, "summary": found.summary.as_dict()})
    else:
        _print_estimate(found, out, seconds)


def _print_estimate(found: Estimate, out: str, seconds: float) -> None:
    """Print what was seen and assumed, and the first kernels."""
    summary = found.summary
    screen = console()
    lines = {**summary_lines(summary), "Written": f"{out} in {seconds:.2g} s"}
    screen.print(grid(lines))
    if len(summary.kernels) > 1:
        print_kernels(screen, summary)
