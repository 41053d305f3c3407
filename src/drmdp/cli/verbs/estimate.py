"""`drmdp estimate`: a model from observed transitions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.log import LOG_OPTIONS, log_settings, print_log
from drmdp.cli.messages import spoken
from drmdp.cli.option_groups import OUTPUT, PROBLEM, number, option
from drmdp.cli.options import check_outputs, command, paths
from drmdp.cli.screen import say
from drmdp.cli.show import print_json, sizes
from drmdp.errors import InputError
from drmdp.io.files import check_parent

if TYPE_CHECKING:
    from drmdp.estimation.pipeline import Estimate
    from drmdp.model import Model


@command(
    [click.Argument(["table"]), *LOG_OPTIONS.values(), "progress"],
    out=option(
        "Model to write: .npz, or .drmdp for a directory of mapped arrays; with --stage a folder.",
        "-o",
        "--out",
        heading=OUTPUT,
        required=True,
    ),
    discount=number("In [0, 1]; or give --interest.", heading=PROBLEM),
    interest=option("Instead, if times are dates: 3%/year.", heading=PROBLEM),
    as_json="Print one JSON document.",
)
def estimate(asked: Any) -> None:
    """Estimate a model from observed transitions.

    TABLE is a .csv, .tsv, .txt, .parquet or .xlsx file with a row per transition, or per visit:
    then the next row of the same episode is the next state. Pairs of state and action without data
    need a rule, --unvisited and --partial; the summary says where it was used. `drmdp check` lists
    what is odd in TABLE.
    """
    from drmdp import formats
    from drmdp.estimation.bands import fit_stages
    from drmdp.estimation.pipeline import fit

    table, out, staged = asked.table, asked.out, asked.stage is not None
    check_folder(out) if staged else formats.check_target(out)
    prices = [path for path in paths(asked.costs, asked.rewards) if path.is_file()]
    inputs = {"TABLE": [Path(table)], "--costs or --rewards": prices}
    check_outputs({"--out": [Path(out)] if staged else formats.files_of(out)}, inputs)
    settings = log_settings(asked)
    begin = time.perf_counter()
    estimates = fit_stages(table, *settings) if staged else [fit(table, *settings)]
    for text in estimates[0].summary.warnings:
        words = spoken(text, click.get_current_context().command)
        say(f"drmdp: warning: {table}: {words}", err=True)
    files = write_models([each.model for each in estimates], out)
    seconds = time.perf_counter() - begin
    if not asked.as_json:
        _print_estimate(estimates, out, seconds)
        return
    documents = []
    for path, each in zip(files, estimates, strict=True):
        about = {"seconds": seconds, "summary": asdict(each.summary)}
        documents.append({"path": str(path), **sizes(each.model), **about})
    print_json({"path": out, "models": documents} if staged else documents[0])


def write_models(models: Sequence[Model], out: str) -> list[Path]:
    """Write a model, or those of stages into a folder, in which names of files sort as stages do;
    where they are.
    """
    from drmdp import formats

    if not models[0].stages:
        formats.write(models[0], out)
        return [Path(out)]
    Path(out).mkdir(exist_ok=True)
    files = []
    for k, model in enumerate(models):
        name = "".join(c if c.isalnum() or c in ".-" else "-" for c in model.stages[0])
        files.append(Path(out) / f"{k:03d}-{name}.npz")
        formats.write(model, files[-1])
    return files


def check_folder(out: str) -> None:
    """Refuse to write models of stages where there is something: a model left over would be a
    stage.
    """
    path = Path(out)
    if path.suffix in (".npz", ".drmdp"):
        own = "models of stages are written to a folder of their own"
        raise InputError(f"--out {out}: {own}, give a name without {path.suffix}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        cure = "choose another folder, or remove it"
        raise InputError(f"--out {out}: is there and not empty: {cure}")
    check_parent(path)


def _print_estimate(estimates: Sequence[Estimate], out: str, seconds: float) -> None:
    """Print what was seen and assumed, of stages that of the first and how much of each, and the
    first kernels.
    """
    summary = estimates[0].summary
    lines = {}
    if estimates[0].model.stages:
        bands = ((each.model.stages, each.summary.transitions) for each in estimates)
        spans = [f"{names[0]} … {names[-1]}: {n:,}" for names, n in bands]
        lines["Table"] = f"{summary.table}: transitions by stage\n" + "\n".join(spans)
    print_log(summary, **lines, Written=f"{out} in {seconds:.2g} s")
