"""`drmdp sensitivity`: how much it matters which kernel is true."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from drmdp.cli.options import CRITERION, OPTIONS, THREADS, check_outputs, options, paths, starting
from drmdp.cli.outputs import TABLES, check_labels, check_out, table_options, write_out
from drmdp.cli.plans import inputs
from drmdp.cli.policy_file import read_policy
from drmdp.cli.show import console, grid, print_json, problem
from drmdp.core.files import check_suffix

FIELDS = (
    "names", "values", "best", "regret", "mean", "mean_regret", "acceptability", "share", "reached",
    "evpi", "evpi_given", "weights", "criterion",
)  # fmt: skip


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.argument("policy_paths", metavar="[POLICY...]", nargs=-1)
@CRITERION
@click.option("--out", help="Write a table (.csv, .xlsx, .parquet) or the document (.json) here.")
@click.option(
    "--table",
    type=click.Choice(["kernels", "policies", "actions"]),
    default="kernels",
    show_default=True,
    help="Each policy under each kernel, each over all, or how often actions are optimal.",
)
@table_options
@click.option("--seed", type=int, default=0, help="Of the optima that count beyond 100 kernels.")
@THREADS
@options("initial", "discount", "json")
@OPTIONS["progress"]
def sensitivity(
    model_path: str, policy_paths: tuple[str, ...], criterion: str | None,
    out: str | None, table: str, keep_formulas: bool, separator: str | None, decimal: str | None,
    seed: int, threads: int | None, initial: str | None, discount: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Judge policies under each kernel of a model alone.

    Beside each stands what is best if that kernel is true: what a policy loses, how often it is the
    best of those given, which actions are optimal how often, and what knowing the kernel would be
    worth at most.

    MODEL and POLICY are read as by `drmdp evaluate`, plans included; policies are called by their
    files. Without POLICY, what is best for the mean kernel is judged.
    """
    from drmdp import formats
    from drmdp.policies.sensitivity import sensitivity as judged

    if out is not None:
        check_suffix(out, (*TABLES, ".json"), "tables are .csv, .xlsx or .parquet, documents .json")
    style = check_out(out, separator, decimal)
    read = {f"POLICY {path}": paths(path) for path in policy_paths}
    check_outputs({"--out": paths(out)}, {**inputs([model_path]), **read})
    model = starting(formats.read(model_path, discount=discount), initial)
    check_labels(model, out, keep_formulas, ("states", "actions", "kernel_names"))
    stems = {path: Path(path).stem for path in policy_paths}
    short = len(set(stems.values())) == len(policy_paths)
    given = {stems[path] if short else path: read_policy(path, model) for path in policy_paths}
    found = judged(model, given or None, criterion=criterion, seed=seed, threads=threads)
    about: dict[str, Any] = {name: getattr(found, name) for name in FIELDS}
    about |= dict(zip(("q05", "median", "q95"), found.quantiles().T, strict=True))
    about |= {"worst_kernel": [model.kernel_names[i] for i in found.worst]}
    about |= {name: list(getattr(model, name)) for name in ("states", "actions", "kernel_names")}
    about |= {"notes": [*model.notes, *found.notes], "fingerprint": model.fingerprint}
    if out is not None:
        write_out(out, SimpleNamespace(to_frame=lambda: found.to_frame(table)), about, style)
    start = f"mean over the start distribution{f' ({model.start})' if model.start else ''}"
    lines = {"Problem": problem(model), "Values": f"{found.noun}, {start}", **found.facts()}
    lines |= {"Notes": "\n".join(about["notes"])} if about["notes"] else {}
    lines |= {} if out is None else {"Written": out}
    print_json(about) if as_json else console().print(grid(lines))
