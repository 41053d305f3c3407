"""Rows of tables in a file, with where, when and beside what they were measured; and a run held
against the last one.

A table is written when all of it is measured, so that a run that was stopped goes on with the next
one; a file holds one commit on one machine.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from drmdp.errors import InputError
from drmdp.io.archives import parse_json
from drmdp_lab.bench import TABLES, Table, table
from drmdp_lab.paper import quiet
from drmdp_lab.paper.provenance import here
from drmdp_lab.paper.records import Row

SAME = ("commit", "machine")
"""What all rows of a file have in common."""
BEHIND = 1.5
"""A row falls behind when it costs so many times what it did, in the units of both runs."""
ROUNDS = 3
"""A table with such a row is measured again, and its least costs count."""


def read(path: str | Path) -> list[Row]:
    """Rows of a file."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    found = []
    for number, line in enumerate(lines, 1):
        row = parse_json(line)
        if not isinstance(row, dict) or row.get("table") not in TABLES:
            raise InputError(f"{path}, line {number}: not a row of a table")
        found.append(row)
    return found


def unit_seconds() -> float:
    """The unit of times, see `sweeps.unit_seconds`."""
    from drmdp_lab.bench import sweeps

    return sweeps.unit_seconds()


def measured(name: str, of: tuple[Any, ...], show: Callable[[Any], None]) -> list[Row]:
    """All rows of a table with what was beside it; each is shown as it comes."""
    before, begin, unit = quiet.sample(), time.perf_counter(), unit_seconds()
    found = []
    for row in table(name, *of):
        show(row)
        found.append(asdict(row))
    load = quiet.load(before, quiet.sample())
    took = {
        "unit_ms": round(1e3 * min(unit, unit_seconds()), 4),
        "load": None if load is None else round(load, 3),
        "took_seconds": round(time.perf_counter() - begin, 1),
    }
    given = {"given": of[0]} if of and isinstance(of[0], int) else {}
    return [{"table": name, **given, **row, **took, **here()} for row in found]


def append(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows of a table at once."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def held(path: Path) -> set[tuple[str, Any]]:
    """Tables that a file holds, with the size that they were given; a file of another commit or
    machine is refused.
    """
    rows = read(path) if path.exists() else []
    now = here()
    for name in SAME:
        if others := {row.get(name) for row in rows} - {now[name]}:
            raise InputError(
                f"{path}: rows of the {name} {', '.join(map(str, sorted(others, key=str)))}, "
                f"not of {now[name]}: save to a new file"
            )
    return {(row["table"], row.get("given")) for row in rows}


# ---------------------------------------------------------------------- against an earlier run


class CostChange(NamedTuple):
    """A cost that was measured twice."""

    table: str
    row: str
    field: str
    factor: float  # now over then


def costs(row: Mapping[str, Any], of: Table) -> Iterator[tuple[str, float]]:
    """What a row says by field: times in units of its run, ratios as they are."""
    for name in (*of.times, *of.ratios):
        value = row[name]
        scale = 1.0 if name in of.ratios else _per_unit(name, row["unit_ms"])
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for part, number in parts:
            if number is not None and number > 0:
                yield f"{name} {part}".rstrip(), number * scale


def _per_unit(name: str, unit_ms: float) -> float:
    return (1.0 if name.endswith("ms") else 1e3) / unit_ms


def key_of(row: Mapping[str, Any], of: Table) -> str:
    """The fields that name a row, as text."""
    return ", ".join(
        f"{row[name]:g}" if isinstance(row[name], float) else str(row[name]) for name in of.key
    )


def changes(name: str, now: Iterable[Row], then: Iterable[Row]) -> list[CostChange]:
    """Every cost that both runs have."""
    of = TABLES[name]
    before = {
        (key_of(row, of), field): cost
        for row in then
        if row["table"] == name
        for field, cost in costs(row, of)
    }
    found = []
    for row in now:
        for field, cost in costs(row, of):
            old = before.get((key_of(row, of), field))
            if old is not None:
                found.append(CostChange(name, key_of(row, of), field, cost / old))
    return found


def behind(name: str, measure: Callable[[], list[Row]], then: list[Row]) -> list[CostChange]:
    """Costs that are `BEHIND` in every one of up to `ROUNDS` rounds, worst first."""
    least: dict[tuple[str, str], CostChange] = {}
    for _ in range(ROUNDS):
        for change in changes(name, measure(), then):
            place = change.row, change.field
            known = least.get(place)
            if known is None or change.factor < known.factor:
                least[place] = change
        late = [change for change in least.values() if change.factor > BEHIND]
        if not late:
            break
    return sorted(late, key=lambda change: -change.factor)
