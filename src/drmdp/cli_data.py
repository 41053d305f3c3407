"""Verbs of the command line that bring data in: `drmdp estimate` and `drmdp convert`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli_common import check_outputs, print_json, sizes

if TYPE_CHECKING:
    from drmdp.estimate import Estimate, Summary
ROWS = 12
"""Kernels shown in a table."""
WIDTH = 80


@click.command()
@click.argument("table")
@click.option("-o", "--out", required=True, help="Model to write: .npz, or .drmdp for a directory of mapped arrays.")
@click.option("--discount", type=float, required=True, help="In [0, 1).")
@click.option("--by", help="What makes a kernel: a column, or bootstrap, folds, parts or posterior. One by default.")
@click.option("--kernels", "n_kernels", type=int, help="How many, for all but a column.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--state", default="state", show_default=True, help="Column of the state.")
@click.option("--action", default="action", show_default=True, help="Column of the action.")
@click.option("--next-state", help="Column of the next state; by default next_state, if there is one.")
@click.option("--episode", help="Column of the episode; its consecutive rows make transitions if need be.")
@click.option("--time", help="Column that orders the rows of an episode.")
@click.option("--weight", help="Column with the weights of the rows.")
@click.option("--cost", help="Column to average into costs.")
@click.option("--reward", help="Column to average into rewards.")
@click.option("--costs", help="Instead: a .csv file (state, action, cost), or SQL such as '0.1 * state + 9 * action'.")
@click.option("--rewards", help="The same for rewards.")
@click.option(
    "--unvisited",
    default="refuse",
    show_default=True,
    help="Pairs never seen: refuse, unavailable, prior or self-loop.",
)
@click.option(
    "--partial",
    default="refuse",
    show_default=True,
    help="Pairs seen, but not in every kernel: refuse, unavailable, prior, self-loop or pooled.",
)
@click.option("--prior", type=float, default=1.0, show_default=True, help="Pseudo-count of a next state (posterior).")
@click.option("--prior-on", default="seen", show_default=True, help="Next states with a prior: seen or all.")
@click.option("--terminal", multiple=True, help="A state where the process ends; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--progress/--no-progress", default=None, help="Say what is being done; by default on a terminal.")
def estimate(table: str, out: str, as_json: bool, progress: bool | None, **given: Any) -> None:
    """Estimate a model from observed transitions.

    TABLE is a .csv or .parquet file with a row per transition, or per visit: then the next row of the same episode is the
    next state. Pairs of state and action without data need a rule, --unvisited and --partial; the summary says where it
    was used.
    """  # fmt: skip
    from drmdp import formats
    from drmdp.estimate import Columns, Settings, fit

    formats.check_target(out)
    prices = [path for path in (given["costs"], given["rewards"]) if path is not None and Path(path).is_file()]
    inputs = {"TABLE": [Path(table)], "--costs or --rewards": [Path(path) for path in prices]}
    check_outputs({"--out": formats.files_of(out)}, inputs)
    columns = Columns(**{name: given.pop(name) for name in Columns.__dataclass_fields__})
    settings = Settings(**given, typed=True)
    begin = time.perf_counter()
    with _busy(f"Counting {table}", progress):
        found = fit(table, columns, settings)
    with _busy(f"Writing {out}", progress):
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
        click.echo(f"{model!r}\nwritten to {target}")


@contextmanager
def _busy(what: str, progress: bool | None) -> Iterator[None]:
    """Show that something goes on, on standard error."""
    if not (sys.stderr.isatty() if progress is None else progress):
        yield
        return
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    begin = time.perf_counter()
    with console.status(f"{what} …"):
        yield
    console.print(f"{what}: {time.perf_counter() - begin:.1f} s")


def _print_estimate(found: Estimate, out: str, seconds: float) -> None:
    """Print what was seen and assumed, and the first kernels."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    summary = found.summary
    console = Console(markup=False, highlight=False, emoji=False)
    console.width = min(console.width, WIDTH)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in _lines(summary, out, seconds, found.model.is_sparse):
        grid.add_row(name, text)
    console.print(grid)
    if len(summary.kernels) == 1:
        return
    kernels = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    kernels.add_column("kernel", no_wrap=True, overflow="ellipsis", max_width=24)
    for name in ("transitions", "rows from data", "rows assumed"):
        kernels.add_column(name, justify="right", no_wrap=True)
    for i, label in enumerate(summary.kernels[:ROWS]):
        rows = "" if summary.kernel_transitions is None else f"{summary.kernel_transitions[i]:,}"
        kernels.add_row(str(label), rows, f"{summary.kernel_pairs[i]:,}", f"{summary.kernel_assumed[i]:,}")
    console.print(kernels)
    if len(summary.kernels) > ROWS:
        console.print(f"… {len(summary.kernels) - ROWS:,} more")


def _lines(summary: Summary, out: str, seconds: float, sparse: bool) -> Iterator[tuple[str, str]]:
    ends = f"; {summary.ends:,} rows end an episode" if summary.ends else ""
    yield "Table", f"{summary.table}: {summary.transitions:,} transitions{ends}"
    yield "Columns", ", ".join(role if role == name else f"{role} {name}" for role, name in summary.columns.items())
    size = f"{summary.states:,} states × {summary.actions:,} actions × {len(summary.kernels):,} kernels"
    yield "Model", f"{size}, {'sparse' if sparse else 'dense'}; kernels by {summary.by}"
    once = f"{summary.pairs_seen_once:,} of them once"
    share = f"{summary.pairs_seen:,} of {summary.pairs:,} pairs of state and action, {once}"
    yield "Seen", f"{share}; {summary.median:,.0f} times in the median"
    kind, _, rest = summary.costs.partition(": ")
    yield kind.capitalize(), rest
    for k, text in enumerate(summary.assumed or ["nothing"]):
        yield "" if k else "Assumed", text
    yield "Written", f"{out} in {seconds:.2g} s"
