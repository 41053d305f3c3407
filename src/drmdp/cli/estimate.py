"""`drmdp estimate`: a model from observed transitions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.log import log_options, log_settings, print_kernels, summary_lines
from drmdp.cli.options import PROGRESS, check_outputs
from drmdp.cli.screen import say
from drmdp.cli.show import console, grid, print_json, sizes
from drmdp.cli.words import spoken
from drmdp.core.files import check_parent
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.estimate.pipeline import Estimate
    from drmdp.model import Model


@click.command()
@click.argument("table")
@click.option(
    "-o",
    "--out",
    required=True,
    help="Model to write: .npz, or .drmdp for a directory of mapped arrays; with --stage a folder.",
)
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
    from drmdp.estimate.bands import fit_stages
    from drmdp.estimate.pipeline import fit

    staged = given["stage"] is not None
    check_folder(out) if staged else formats.check_target(out)
    prices = [path for path in (given["costs"], given["rewards"]) if path is not None and Path(path).is_file()]
    inputs = {"TABLE": [Path(table)], "--costs or --rewards": [Path(path) for path in prices]}
    check_outputs({"--out": [Path(out)] if staged else formats.files_of(out)}, inputs)
    roles, settings = log_settings(given)
    begin = time.perf_counter()
    found = fit_stages(table, roles, settings) if staged else [fit(table, roles, settings)]
    for text in found[0].summary.warnings:
        say(f"drmdp: warning: {table}: {spoken(text, context.command)}", err=True)
    files = write_models([each.model for each in found], out)
    seconds = time.perf_counter() - begin
    if as_json:
        documents = [
            {"path": str(path), **sizes(each.model), "seconds": seconds, "summary": each.summary.as_dict()}
            for path, each in zip(files, found, strict=True)
        ]
        print_json({"path": out, "models": documents} if staged else documents[0])
    else:
        _print_estimate(found, out, seconds)


def write_models(models: Sequence[Model], out: str) -> list[Path]:
    """Write a model, or those of stages into a folder, in which names of files sort as stages do; where they are."""
    from drmdp import formats

    if not models[0].stages:
        formats.write(models[0], out)
        return [Path(out)]
    Path(out).mkdir(exist_ok=True)
    found = []
    for k, model in enumerate(models):
        name = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in model.stages[0])
        found.append(Path(out) / f"{k:03d}-{name}.npz")
        formats.write(model, found[-1])
    return found


def check_folder(out: str) -> None:
    """Refuse to write models of stages where there is something: a model left over would be a stage."""
    path = Path(out)
    if path.suffix in (".npz", ".drmdp"):
        raise InputError(
            f"--out {out}: models of stages are written to a folder of their own, give a name without {path.suffix}"
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"--out {out}: is there and not empty: choose another folder, or remove it")
    check_parent(path)


def _print_estimate(estimates: Sequence[Estimate], out: str, seconds: float) -> None:
    """Print what was seen and assumed, of stages that of the first and how much of each, and the first kernels."""
    summary, screen = estimates[0].summary, console()
    lines = summary_lines(summary)
    if estimates[0].model.stages:
        spans = [
            f"{each.model.stages[0]} … {each.model.stages[-1]}: {each.summary.transitions:,}" for each in estimates
        ]
        lines["Table"] = f"{summary.table}: transitions by stage\n" + "\n".join(spans)
    screen.print(grid({**lines, "Written": f"{out} in {seconds:.2g} s"}))
    if len(summary.kernels) > 1:
        print_kernels(screen, summary)
