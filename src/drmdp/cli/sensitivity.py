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
from drmdp.cli.show import ROWS, columns, console, grid, print_json, problem
from drmdp.core.archives import read_json
from drmdp.core.files import check_suffix
from drmdp.errors import InputError

FIELDS = (
    "names", "values", "best", "regret", "mean", "mean_regret", "acceptability", "share", "reached",
    "evpi", "evpi_given", "weights", "labels", "criterion",
)  # fmt: skip


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.argument("policy_paths", metavar="[POLICY...]", nargs=-1)
@click.option("--labels", help=".json file that maps every kernel to a label, such as its source.")
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
    model_path: str, policy_paths: tuple[str, ...], labels: str | None, criterion: str | None,
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
    read = {f"POLICY {path}": paths(path) for path in policy_paths} | {"--labels": paths(labels)}
    check_outputs({"--out": paths(out)}, {**inputs([model_path]), **read})
    model = starting(formats.read(model_path, discount=discount), initial)
    groups = None if labels is None else _labels(labels, model.kernel_names)
    check_labels(model, out, keep_formulas, ("states", "actions", "kernel_names"))
    check_labels(SimpleNamespace(labels=groups or ()), out, keep_formulas, ("labels",))
    stems = {path: Path(path).stem for path in policy_paths}
    short = len(set(stems.values())) == len(policy_paths)
    given = {stems[path] if short else path: read_policy(path, model) for path in policy_paths}
    found = judged(model, given or None, groups, criterion=criterion, seed=seed, threads=threads)
    about: dict[str, Any] = {name: getattr(found, name) for name in FIELDS}
    about |= dict(zip(("q05", "median", "q95"), found.quantiles().T, strict=True))
    about |= {} if groups is None else {"evppi": found.evppi}
    about |= {"worst_kernel": [model.kernel_names[i] for i in found.worst]}
    about |= {name: list(getattr(model, name)) for name in ("states", "actions", "kernel_names")}
    about |= {"notes": [*model.notes, *found.notes], "fingerprint": model.fingerprint}
    if out is not None:
        write_out(out, SimpleNamespace(to_frame=lambda: found.to_frame(table)), about, style)
    if as_json:
        print_json(about)
        return
    start = f"mean over the start distribution{f' ({model.start})' if model.start else ''}"
    lines = {"Problem": problem(model), "Values": f"{found.noun}, {start}", **found.facts()}
    lines |= {"Notes": "\n".join(about["notes"])} if about["notes"] else {}
    console().print(grid(lines | ({} if out is None else {"Written": out})))
    _print_shares(model, found.share if found.share.ndim == 2 else found.share[0])


def _labels(path: str, kernels: Any) -> list[Any]:
    """Labels of the kernels: keys of JSON are texts."""
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError(f"{path}: expected an object that maps kernels to labels")
    for name in kernels:
        if not isinstance(document.get(str(name)), str | int | float):
            raise InputError(f"{path}: expected a text or number for kernel {str(name)!r}")
    return [document[str(name)] for name in kernels]


def _print_shares(model: Any, share: Any) -> None:
    """Where the optima of the kernels play different actions."""
    apart = [s for s in range(len(share)) if 0 < share[s].max() < 1 - 1e-9]
    told = f"in {len(apart):,} of {len(share):,} states"
    console().print(f"\nKernels disagree on the best action {told}.")
    table = columns(["state"], [])
    table.add_column("optimal", overflow="fold")
    for s in apart[:ROWS]:
        order = [a for a in (-share[s]).argsort(kind="stable") if share[s, a] > 0]
        shown = ", ".join(f"{model.actions[a]} {share[s, a]:.1%}" for a in order)
        table.add_row(str(model.states[s]), shown)
    if apart:
        console().print(table)
