"""The verbs of the command line about experiments: `drmdp bench` prints the tables behind the figures we quote, `drmdp reproduce` runs those of the paper.

What they run is imported when they are called.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import screen as cli_screen
from drmdp.cli.options import LIMIT, MAX_SECONDS, PROGRESS, check_outputs, paths
from drmdp.cli.screen import say
from drmdp.cli.show import print_json
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp_lab.paper.records import Row


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLES]... [DIR]")
@click.option(
    "--states",
    "n_states",
    type=int,
    default=100_000,
    show_default=True,
    help="Size of the tables scale, cluster and events-large.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a row, with machine and date.")
@PROGRESS
def bench(tables: tuple[str, ...], n_states: int, as_json: bool) -> None:
    """Measure this machine.

    TABLES are sweeps, sets, solves, conic, nominal, growth, states and threads, all of them by default, and auto, reports, starts, scale, cluster, events,
    events-large and robust-mdps. Times are CPU times of one thread and compare only within one run; scale and events-large use all threads and give wall
    seconds too. robust-mdps may be followed by a directory with the instances of arXiv:2602.05591 and the seconds published there; without one, instances whose
    rules are public are made.
    """
    from drmdp_lab import bench as measure

    names, folder = _split(tables, measure.TABLES)
    if n_states < 100:
        raise InputError(f"--states: expected at least 100, got {n_states}")
    where = measure.machine()
    if not as_json:
        click.echo(", ".join(f"{key} {value}" for key, value in where.items()))
    for name in names or [name for name in measure.TABLES if name not in measure.ON_DEMAND]:
        if not as_json:
            click.echo(f"\n{name}: {measure.TABLES[name]}")
        sized = dict.fromkeys(("scale", "cluster", "events-large"), (n_states,))
        of: tuple[Any, ...] = {"robust-mdps": (folder,), **sized}.get(name, ())
        _print_rows(name, measure.table(name, *of), where if as_json else None)


def _split(given: tuple[str, ...], known: Collection[str]) -> tuple[list[str], Path | None]:
    """Names of tables, and the directory that follows robust-mdps, if one does."""
    names, folder = [], None
    for k, text in enumerate(given):
        if text in known:
            names.append(text)
        elif k and given[k - 1] == "robust-mdps":
            folder = Path(text)
            if not folder.is_dir():
                raise InputError(f"robust-mdps: {text} is no directory")
        else:
            raise InputError(f"unknown table {text!r}; known: {', '.join(known)}")
    return names, folder


def _print_rows(name: str, rows: Any, where: dict[str, str] | None) -> None:
    """A line a row, as it comes."""
    head = False
    for row in rows:
        cells = asdict(row)
        if where is not None:
            click.echo(json.dumps({"table": name, **where, **cells}))
        else:
            shown = [(key, *_cell(value)) for key, value in cells.items()]
            if not head:
                click.echo("  ".join(f"{key[:width]:{side}{width}}" for key, _, width, side in shown).rstrip())
                head = True
            click.echo("  ".join(f"{text:{side}{width}}" for _, text, width, side in shown).rstrip())
        sys.stdout.flush()


def _cell(value: Any) -> tuple[str, int, str]:
    """Text, width and side."""
    if isinstance(value, dict):
        return " ".join(f"{key}: {number:.3g}" for key, number in value.items()), 30, "<"
    if value is None or isinstance(value, float):
        return "–" if value is None else f"{value:.3g}", 9, ">"
    return str(value), 15 if isinstance(value, str) else 8, "<" if isinstance(value, str) else ">"


@click.command()
@click.option(
    "--scale",
    type=click.Choice(["quick", "standard", "paper"]),
    default="quick",
    show_default=True,
    help="How much to run.",
)
@click.option("--spec", help="JSON file with blocks of runs, instead of a scale.")
@click.option("--only", multiple=True, metavar="STUDY", help="One study of the scale; may be repeated.")
@click.option(
    "--out",
    default="reproduction",
    show_default=True,
    help="Folder for rows, figures and tables; what is there is kept.",
)
@click.option("--figures-only", metavar="DIR", help="Draw and tabulate the rows of a folder, run nothing.")
@click.option("--no-figures", is_flag=True, help="Run, and draw nothing.")
@MAX_SECONDS
@PROGRESS
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def reproduce(
    scale: str, spec: str | None, only: tuple[str, ...], out: str, figures_only: str | None, no_figures: bool,
    max_seconds: float | None, as_json: bool,
) -> int:  # fmt: skip
    """Run the experiments of the paper, with figures and tables.

    quick takes a few minutes, standard an hour or two, paper many hours. Every run appends one row to DIR/rows.jsonl; rows
    that are there are not run again, so a run that was interrupted, killed or stopped by --max-seconds (exit code 3) goes on
    where it stopped. The time limit of a single run is not part of what identifies a row: use a new folder to repeat runs with another one.
    """
    from drmdp_lab.paper import records as stored
    from drmdp_lab.paper import specification

    if figures_only is not None:
        folder, done = Path(figures_only), (0, 0)
    else:
        blocks = specification.SCALES[scale] if spec is None else specification.load(spec)
        runs = specification.expand(blocks, only)
        if not no_figures:
            _needs_matplotlib()
        folder = Path(out)
        check_outputs({"--out": _outputs_of(folder)}, {"--spec": paths(spec)})
        done = _run(runs, out, max_seconds)
    rows = stored.read(folder / stored.NAME)
    if not rows and not done[1]:
        raise InputError(f"{folder / stored.NAME}: no rows")
    drawn, written = ([], []) if no_figures or not rows else _outputs(rows, folder)
    _report(rows, folder, *done, drawn, written, as_json)
    return LIMIT if done[1] else 0


def _outputs_of(folder: Path) -> list[Path]:
    """What a run appends to or writes again."""
    from drmdp_lab.paper.records import NAME

    return [folder / NAME, *(folder / "figures").glob("*"), *(folder / "tables").glob("*")]


def _needs_matplotlib() -> None:
    """Say at once, not after the runs, that figures cannot be drawn."""
    from drmdp.plot.style import pyplot

    pyplot()


def _run(runs: list[Any], out: str, max_seconds: float | None) -> tuple[int, int]:
    """Rows that were added, and runs that still have none."""
    from drmdp_lab.paper.runner import run_all

    try:
        return run_all(runs, out, max_seconds)
    except KeyboardInterrupt:
        say("interrupted: the same command goes on where this one stopped", err=True)
        raise click.Abort from None


def _outputs(rows: list[Row], folder: Path) -> tuple[list[str], list[str]]:
    import matplotlib

    matplotlib.use("Agg")
    from drmdp_lab.paper import figures, tables

    return figures.draw(rows, folder / "figures"), tables.write(rows, folder / "tables")


def _report(
    rows: list[Row], folder: Path, added: int, left: int, drawn: list[str], written: list[str], as_json: bool
) -> None:
    from drmdp_lab.paper.figure_parts import FAMILIES
    from drmdp_lab.paper.tables import READINGS, ratio_table, reading_table

    body, readings = ratio_table(rows), reading_table(rows)
    if as_json:
        ratios = [dict(zip(("rule", "method", *FAMILIES), row, strict=True)) for row in body]
        found = {
            "rows": len(rows),
            "added": added,
            "left": left,
            "folder": str(folder),
            "figures": drawn,
            "tables": written,
            "ratios": ratios,
            "readings": [dict(zip(READINGS, row, strict=True)) for row in readings],
        }
        print_json(found)
        return
    say(
        f"{len(rows):,} rows in {folder / 'rows.jsonl'}, {added:,} of them new; {len(drawn)} figures, {len(written)} tables"
        + (f"; {left:,} runs are left for the same command again" if left else "")
    )
    if body:
        title = "CPU time over that of the exact engine: median (least – most)"
        _print(title, ("rule", "method", *FAMILIES.values()), body)
    if readings:
        _print("Garnet with rewards and with costs: median (least – most) over seeds", READINGS, readings)


def _print(title: str, head: tuple[str, ...], body: list[list[str]]) -> None:
    from rich import box

    from drmdp_lab.paper.tables import MARKS

    table = cli_screen.table(box=box.SIMPLE_HEAD, pad_edge=False, title=title)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in body:
        table.add_row(*row)
    screen = cli_screen.console()
    screen.print(table)
    screen.print(MARKS)
