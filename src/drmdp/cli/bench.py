"""`drmdp bench`: print the tables behind the figures we quote."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from drmdp.cli.options import PROGRESS


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

    TABLES are sweeps, sets, solves, conic, nominal, growth, states and threads, all of them by default, and auto, reports, scale, cluster, events, events-large
    and robust-mdps. Times are CPU times of one thread and compare only within one run; scale and events-large use all threads and give wall seconds too.
    robust-mdps may be followed by a directory with the instances of arXiv:2602.05591 and the seconds published there; without one, instances whose
    rules are public are made.
    """
    from drmdp.errors import InputError
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
        _print(name, measure.table(name, *of), where if as_json else None)


def _split(given: tuple[str, ...], known: Collection[str]) -> tuple[list[str], Path | None]:
    """Names of tables, and the directory that follows robust-mdps, if one does."""
    from drmdp.errors import InputError

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


def _print(name: str, rows: Any, where: dict[str, str] | None) -> None:
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
