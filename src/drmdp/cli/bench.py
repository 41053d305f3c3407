"""`drmdp bench`: print the tables behind the figures we quote."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import click

from drmdp.cli.options import PROGRESS


@click.command()
@click.argument("tables", nargs=-1)
@click.option("--states", "n_states", type=int, default=100_000, show_default=True, help="Size of the table scale.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a row, with machine and date.")
@PROGRESS
def bench(tables: tuple[str, ...], n_states: int, as_json: bool) -> None:
    """Measure this machine.

    TABLES are sweeps, solves, conic, growth, states, threads and scale; all but scale by default. Times are CPU times of
    one thread and compare only within one run; scale uses all threads and gives wall seconds too.
    """
    from drmdp.errors import InputError
    from drmdp_lab import bench as measure

    for name in tables:
        if name not in measure.TABLES:
            raise InputError(f"unknown table {name!r}; known: {', '.join(measure.TABLES)}")
    if n_states < 100:
        raise InputError(f"--states: expected at least 100, got {n_states}")
    where = measure.machine()
    if not as_json:
        click.echo(", ".join(f"{key} {value}" for key, value in where.items()))
    for name in tables or tuple(name for name in measure.TABLES if name != "scale"):
        if not as_json:
            click.echo(f"\n{name}: {measure.TABLES[name]}")
        _print(name, measure.table(name, n_states), where if as_json else None)


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
    if isinstance(value, float):
        return f"{value:.3g}", 8, ">"
    return str(value), 15 if isinstance(value, str) else 8, "<" if isinstance(value, str) else ">"
