"""Verbs of the command line that bring data in: `drmdp estimate` and `drmdp convert`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.options import PROGRESS, check_outputs, console, grid, print_json, sizes
from drmdp.cli.options import columns as columns_of
from drmdp.cli.screen import say
from drmdp.cli.words import spoken

if TYPE_CHECKING:
    from rich.console import Console

    from drmdp.estimate.pipeline import Estimate
    from drmdp.estimate.settings import Settings
    from drmdp.estimate.summary import Summary
    from drmdp.estimate.table import Columns
ROWS = 12
"""Kernels and labels shown."""
WIDTH = 80
LOG = (
    click.option(
        "--by", help="What makes a kernel: a column, or bootstrap, folds, parts or posterior. One by default."
    ),
    click.option("--state", default="state", show_default=True, help="Column of the state."),
    click.option("--action", default="action", show_default=True, help="Column of the action."),
    click.option("--next-state", help="Column of the next state; by default next_state, if there is one."),
    click.option("--episode", help="Column of the episode; its consecutive rows make transitions if need be."),
    click.option("--time", help="Column that orders the rows of an episode: numbers or dates."),
    click.option("--weight", help="Column with the weights of the rows."),
    click.option("--cost", help="Column to average into costs."),
    click.option("--reward", help="Column to average into rewards."),
    click.option("--time-format", help="How times are written, such as '%d.%m.%Y %H:%M'; common forms are recognised."),
    click.option("--step", help="Time from row to row: month, '2 weeks', 0.5 …; guessed by default."),
    click.option(
        "--gaps",
        default="refuse",
        show_default=True,
        help="Where rows are further apart: refuse, cut (the episode ends) or bridge (time only orders).",
    ),
    click.option(
        "--duplicates", default="refuse", show_default=True, help="Rows that are there twice: refuse or drop."
    ),
    click.option("--states", help="All states in order, such as good,fair,poor; what was seen, sorted, by default."),
    click.option("--actions", help="The same for actions."),
    click.option("--rename", multiple=True, metavar="OLD=NEW", help="A label written differently; may be repeated."),
    click.option("--terminal", multiple=True, help="A state where the process ends; may be repeated."),
    click.option("--separator", help="What separates cells: ';', tab …; a comma by default, in .tsv files a tab."),
    click.option("--encoding", help="Of text files: latin-1, cp1252, utf-16 …; UTF-8 by default."),
    click.option("--decimal", default=".", show_default=True, help="The point of numbers: '.' or ','."),
    click.option(
        "--unvisited",
        default="refuse",
        show_default=True,
        help="Pairs never seen: refuse, unavailable, prior or self-loop.",
    ),
    click.option(
        "--partial",
        default="refuse",
        show_default=True,
        help="Pairs seen, but not in every kernel: refuse, unavailable, prior, self-loop or pooled.",
    ),
)
"""Options about a log."""
KERNELS = (
    click.option("--kernels", "n_kernels", type=int, help="How many, for all but a column."),
    click.option(
        "--weights", default="equal", show_default=True, help="Kernels of a column weigh: equal, or as their rows."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of everything random."),
    click.option(
        "--costs", help="Instead: a .csv file (state, action, cost), or SQL such as '0.1 * state + 9 * action'."
    ),
    click.option("--rewards", help="The same for rewards."),
    click.option(
        "--prior", type=float, default=1.0, show_default=True, help="Pseudo-count of a next state (posterior)."
    ),
    click.option("--prior-on", default="seen", show_default=True, help="Next states with a prior: seen or all."),
)
"""Options about the kernels and costs that are made of it."""


def log_options(command: Any) -> Any:
    """Add the options that `drmdp estimate` and `drmdp check` share."""
    for option in reversed((*LOG, *KERNELS)):
        command = option(command)
    return command


def log_settings(given: dict[str, Any]) -> tuple[Columns, Settings]:
    """Columns and settings of the options; takes them out of `given`."""
    from drmdp.estimate.labels import split
    from drmdp.estimate.order import Ordering
    from drmdp.estimate.settings import Settings
    from drmdp.estimate.source import Reading
    from drmdp.estimate.table import Columns

    columns = Columns(**{name: given.pop(name) for name in Columns.__dataclass_fields__})
    parts: dict[str, Any] = {
        name: kind(**{field: given.pop(field) for field in kind.__dataclass_fields__ if field in given})
        for name, kind in (("ordering", Ordering), ("reading", Reading))
    }
    parts["rename"] = dict(_renamed(text) for text in given.pop("rename"))
    parts |= {name: split(given.pop(name)) for name in ("states", "actions")}
    return columns, Settings(**given, **parts, typed=True)


def _renamed(text: str) -> tuple[str, str]:
    old, mark, new = text.partition("=")
    if not (mark and old and new):
        raise click.BadParameter(f"--rename {text!r}: expected OLD=NEW")
    return old.strip(), new.strip()


@click.command()
@click.argument("table")
@click.option("-o", "--out", required=True, help="Model to write: .npz, or .drmdp for a directory of mapped arrays.")
@click.option("--discount", type=float, required=True, help="In [0, 1).")
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


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("--from", "from_format", help="Format of SOURCE: npz, drmdp, craam or prism; by default from its suffix.")
@click.option("--to", "to_format", help="Format of TARGET.")
@click.option("--discount", type=float, help="For files that hold none.")
@click.option("--base", type=int, default=0, show_default=True, help="First number of states in craam files: 0 or 1.")
@click.option("--initial", help="craam file with the start distribution; by default SOURCE.initial.csv, if any.")
@click.option("--parameters", help="craam file with the discount; by default SOURCE.parameters.csv, if any.")
@click.option("--normalize", is_flag=True, help="Scale rows to sum to 1: for tables with few digits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@PROGRESS
def convert(
    source: str, target: str, from_format: str | None, to_format: str | None, as_json: bool, **given: Any
) -> None:
    """Write a model in another format.

    Suffixes: .npz and .drmdp (ours), .csv (craam), .tra (PRISM).
    """
    from drmdp import formats

    formats.check_target(target, to_format)
    beside = {f"--{name}": [Path(given[name])] for name in ("initial", "parameters") if given[name] is not None}
    inputs = {"SOURCE": formats.files_of(source, from_format), **beside}
    check_outputs({"TARGET": formats.files_of(target, to_format)}, inputs)
    model = formats.read(source, from_format, **given)
    formats.write(model, target, to_format)
    if as_json:
        print_json({"path": target, **sizes(model)})
    else:
        say(f"{model!r}\nwritten to {target}")


def _print_estimate(found: Estimate, out: str, seconds: float) -> None:
    """Print what was seen and assumed, and the first kernels."""
    summary = found.summary
    screen = console()
    lines = {**summary_lines(summary), "Written": f"{out} in {seconds:.2g} s"}
    screen.print(grid(lines))
    if len(summary.kernels) > 1:
        print_kernels(screen, summary)


def print_kernels(screen: Console, summary: Summary) -> None:
    """Print how much data each kernel has."""
    kernels = columns_of(["kernel"], ["transitions", "rows from data", "rows assumed"])
    for i, label in enumerate(summary.kernels[:ROWS]):
        rows = "" if summary.kernel_transitions is None else f"{summary.kernel_transitions[i]:,}"
        kernels.add_row(str(label), rows, f"{summary.kernel_pairs[i]:,}", f"{summary.kernel_assumed[i]:,}")
    screen.print(kernels)
    if len(summary.kernels) > ROWS:
        screen.print(f"… {len(summary.kernels) - ROWS:,} more")


def summary_lines(summary: Summary) -> dict[str, str]:
    """What was seen and what is assumed, by subject."""
    rows = f"{summary.rows:,} rows" + (f", {summary.episodes:,} episodes" if summary.episodes is not None else "")
    ends = f"; {summary.ends:,} rows end an episode" if summary.ends else ""
    kind, _, rest = (summary.costs or "").partition(": ")
    once = f"{summary.pairs_seen_once:,} of them once"
    share = f"{summary.pairs_seen:,} of {summary.pairs:,} pairs of state and action, {once}"
    sizes = f"{len(summary.states):,} states × {len(summary.actions):,} actions × {len(summary.kernels):,} kernels"
    lines = {
        "Table": f"{summary.table}: {rows}, {summary.transitions:,} transitions{ends}",
        "Columns": ", ".join(role if role == name else f"{role} {name}" for role, name in summary.columns.items()),
        "Step": "; ".join(filter(None, (summary.step, summary.time))),
        "States": _counts(summary.states),
        "Actions": _counts(summary.actions),
        "Model": f"{sizes}; kernels by {summary.by}",
        "Weights": f"{summary.weights}" if len(summary.kernels) > 1 else "",
        "Seen": f"{share}; {summary.median:,.0f} times in the median",
        kind.capitalize(): rest,
        "Assumed": "\n".join(summary.assumed) or "nothing",
    }
    return {name: text for name, text in lines.items() if text}


def _counts(labels: list[tuple[Any, int]]) -> str:
    """Names with how often each was seen, in order."""
    more = f", … {len(labels) - ROWS:,} more" if len(labels) > ROWS else ""
    return ", ".join(f"{name} {n:,}" for name, n in labels[:ROWS]) + more
