"""A first look at every row: times are read, cells that mean nothing are found, and the rows are put in order.

Most tables are *tidy*: every cell that is needed means something, and no text has blanks around it. This is taken for
granted first. Where the order of the rows or the distinct labels show that it is wrong (`UntidyError`), the table is read
again with more care. That takes about twice as long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimate import numbers
from drmdp.estimate.dates import hint, read_times
from drmdp.estimate.findings import Finding
from drmdp.estimate.order import Ordering, Steps, Survey, ordered, whole_rows
from drmdp.estimate.source import polars
from drmdp.estimate.table import NUMBERS, Table, first_cells


def survey(table: Table, ordering: Ordering, states: Names | None = None) -> Survey:
    """Look at every row once, or a few times, and make transitions."""
    visits = table.columns.next_state is None
    if visits and table.columns.episode is None:
        raise InputError(
            f"{table.name}: no column `next_state`, so name the column `episode`: its rows make the transitions"
        )
    if not visits and (ordering.step is not None or ordering.gaps != "refuse"):
        raise InputError(f"{table.name}: `step` and `gaps` are for rows without `next_state`, where time joins them")
    table, findings, facts = read_times(table, ordering)
    findings += table.findings
    needed = ("episode", "time") if visits and ordering.spans else ("state", "episode", "time")
    if not table.tidy:
        counts = _odd_cells(table, needed)
        if not counts["n"]:
            raise InputError(f"{table.name}: no rows")
        odd, table = _cell_findings(table, counts, facts.form, needed)
        findings += odd
        facts = replace(facts, rows=counts["n"])
    if visits or (table.columns.time is not None and table.columns.episode is not None):
        return ordered(table, ordering, findings, facts, visits, states)
    return Survey(Steps(table, whole_rows(table)), findings, facts)


# ---------------------------------------------------------------------- cells


def _needed(table: Table, roles: tuple[str, ...]) -> dict[str, Any]:
    """Where a cell is missing that every row needs, by role."""
    pl = polars()
    names = table.frame.collect_schema().names()
    missing = {role: pl.col(role).is_null() for role in roles if role in table.wanted}
    return {role: rule & ~pl.col(f"_bad_{role}") if f"_bad_{role}" in names else rule for role, rule in missing.items()}


def _odd_cells(table: Table, needed: tuple[str, ...]) -> dict[str, int]:
    """Count rows, and cells that are bad, missing or have blanks around them."""
    pl = polars()
    flags = [name for name in table.frame.collect_schema().names() if name.startswith(("_bad_", "_blank_"))]
    asked = {name: pl.col(name).sum() for name in flags}
    asked |= {f"_null_{role}": rule.sum() for role, rule in _needed(table, needed).items()}
    return dict(table.collect(table.frame.select(pl.len().alias("n"), **asked))[0].row(0, named=True))


def _cell_findings(
    table: Table, counts: dict[str, int], form: str | None, needed: tuple[str, ...]
) -> tuple[list[Finding], Table]:
    """Cells that mean nothing, are missing or have blanks around them; the column `_odd` marks the rows of those refused."""
    pl = polars()
    rules = {name: pl.col(name) for name in counts if name.startswith(("_bad_", "_blank_"))}
    rules |= {f"_null_{role}": rule for role, rule in _needed(table, needed).items()}
    found, bad = [], []
    for name, rule in rules.items():
        if counts[name]:
            kind, role = name[1:].split("_", 1)
            finding = _cell_finding(table, kind, role, counts[name], table.cells(rule, role), form)
            found.append(finding)
            bad += [rule] if finding.refused and role not in NUMBERS else []
    if bad:
        table = replace(table, frame=table.frame.with_columns(_odd=pl.any_horizontal(bad).fill_null(False)))
    return sorted(found, key=lambda finding: not finding.refused), table


def _cell_finding(
    table: Table, kind: str, role: str, count: int, cells: list[tuple[int, Any]], form: str | None
) -> Finding:
    if kind == "null":
        name = table.wanted[role]
        skip, above = (
            f"`skip_rows_without={name!r}` skips such rows, as sums are",
            f"`fill_down={name!r}` if it stands above",
        )
        cure = f"{above}; {skip}" if role == "episode" else skip
        return table.finding("missing", count, cells, role, f"the {role} is missing", cure=cure)
    if kind == "blank":
        what = "{value} has blanks around it, which are removed"
        return table.finding("blanks", count, cells, role, what, refused=False)
    if role == "time":
        several = ", or two of them read it differently" if " or " in (form or "") else ""
        return table.finding(
            "time", count, cells, role, f"{{value}} is none of the {form}{several}", cure=hint(cells[0][1])
        )
    cure = numbers.cure([*first_cells(table, role), *(str(value) for _, value in cells)], table.reading)
    return table.finding("number", count, cells, role, "{value} is no number", cure=cure)
