"""A first look at every row: times are read, cells that mean nothing are found, and the rows are put in order.

Most tables are *tidy*: every cell that is needed means something, and no text has blanks around it. This is taken for
granted first. Where the order of the rows or the distinct labels show that it is wrong (`UntidyError`), the table is read
again with more care. That takes about twice as long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drmdp.errors import InputError
from drmdp.estimate.findings import Finding
from drmdp.estimate.order import Facts, Ordering, Steps, Survey, ordered, whole_rows
from drmdp.estimate.source import guarded, polars
from drmdp.estimate.table import Table, cell_text
from drmdp.estimate.times import SAMPLE, Form, forms_of, hint


def survey(table: Table, ordering: Ordering) -> Survey:
    """Look at every row once, or a few times, and make transitions."""
    visits = table.columns.next_state is None
    if visits and table.columns.episode is None:
        raise InputError(
            f"{table.name}: no column `next_state`, so name the column `episode`: its rows make the transitions"
        )
    if not visits and (ordering.step is not None or ordering.gaps != "refuse"):
        raise InputError(f"{table.name}: `step` and `gaps` are for rows without `next_state`, where time joins them")
    table, findings, facts = read_times(table, ordering.time_format)
    if not table.tidy:
        counts = _odd_cells(table)
        if not counts["n"]:
            raise InputError(f"{table.name}: no rows")
        odd, table = _cell_findings(table, counts, facts.form)
        findings += odd
        facts = replace(facts, rows=counts["n"])
    if visits or (table.columns.time is not None and table.columns.episode is not None):
        return ordered(table, ordering, findings, facts, visits)
    return Survey(Steps(table, whole_rows(table)), findings, facts)


# ---------------------------------------------------------------------- times


def read_times(table: Table, time_format: str | None) -> tuple[Table, list[Finding], Facts]:
    """Make numbers or dates of the column `time`; where that fails as a whole, the table has none any more."""
    pl = polars()
    if table.columns.time is None:
        return table, [], Facts()
    dtype = guarded(table.raw.collect_schema, table.name)["time"]
    if dtype in (pl.String, pl.Categorical) or (time_format is not None and dtype.is_integer()):
        return _read_text(table, cell_text("time", dtype, table.tidy), time_format)
    if time_format is not None:
        raise InputError(f"`time_format={time_format!r}`: column {table.wanted['time']!r} is no text, but {dtype}")
    time = pl.col("time")
    if dtype.is_float() or dtype.is_decimal():
        time = time.cast(pl.Float64)
        time = pl.when(time.is_finite()).then(time)
    elif dtype.is_integer():
        time = time.cast(pl.Int64)
    elif dtype in (pl.Time, pl.Duration):
        time = time.cast(pl.Duration("us")).dt.total_microseconds() / 1e6
    elif dtype == pl.Date:
        time = time.cast(pl.Datetime("us"))
    elif dtype not in (pl.Datetime, pl.Null):
        where = f"{table.name}: column {table.wanted['time']!r} (time)"
        raise InputError(f"{where} must hold numbers or dates, got {dtype}")
    return replace(table, frame=table.frame.with_columns(time=time)), [], Facts()


def _read_text(table: Table, text: Any, time_format: str | None) -> tuple[Table, list[Finding], Facts]:
    pl = polars()
    filled = table.raw.select("_row", time=cell_text("time", None, False)).filter(pl.col("time").is_not_null())
    sample = table.collect(table.raw.select("_row", time=cell_text("time", None, False)).head(SAMPLE))[0].drop_nulls()
    sample = sample if sample.height else table.collect(filled.head(SAMPLE))[0]
    cells = sample["time"].to_list()
    if not cells:
        return replace(table, frame=table.frame.with_columns(time=pl.lit(None, dtype=pl.Int64))), [], Facts()
    forms = [Form(time_format, "", time_format)] if time_format is not None else forms_of(cells)
    first = [(int(sample["_row"][0]), cells[0])]
    if not forms:
        what = "{value} is no number and no date that is known"
        return _timeless(table), [table.finding("time", 1, first, "time", what, cure=hint(cells[0]))], Facts()
    chosen = forms[0]
    if len(forms) > 1 and (chosen.format or not (table.tidy and chosen.fits(cells))):
        asked = [form.read(pl.col("time")).is_null().sum().alias(str(k)) for k, form in enumerate(forms)]
        wrong = table.collect(filled.select(asked))[0].row(0)
        if chosen.format and wrong[0] == wrong[1]:
            what = "{value} may begin with the day or the month"
            cure = " or ".join(f"`time_format={form.format!r}`" for form in forms)
            return _timeless(table), [table.finding("time", 1, first, "time", what, cure=f"say which: {cure}")], Facts()
        chosen = forms[min(range(len(forms)), key=lambda k: (wrong[k], k))]
    time = chosen.read(text)
    frame = table.frame.with_columns(time=time, _bad_time=time.is_null() & text.is_not_null())
    form = f"{'times' if chosen.format else 'numbers'} like {chosen.example}"
    return replace(table, frame=frame), [], Facts(form=form, swapped=bool(chosen.format) and len(forms) > 1)


def _timeless(table: Table) -> Table:
    wanted = {role: column for role, column in table.wanted.items() if role != "time"}
    return replace(table, wanted=wanted, columns=replace(table.columns, time=None))


# ---------------------------------------------------------------------- cells


def _needed(table: Table) -> dict[str, Any]:
    """Where a cell is missing that every row needs, by role."""
    pl = polars()
    names = table.frame.collect_schema().names()
    missing = {role: pl.col(role).is_null() for role in ("state", "episode", "time") if role in table.wanted}
    return {role: rule & ~pl.col(f"_bad_{role}") if f"_bad_{role}" in names else rule for role, rule in missing.items()}


def _odd_cells(table: Table) -> dict[str, int]:
    """Count rows, and cells that are bad, missing or have blanks around them."""
    pl = polars()
    flags = [name for name in table.frame.collect_schema().names() if name.startswith(("_bad_", "_blank_"))]
    asked = {name: pl.col(name).sum() for name in flags}
    asked |= {f"_null_{role}": rule.sum() for role, rule in _needed(table).items()}
    return dict(table.collect(table.frame.select(pl.len().alias("n"), **asked))[0].row(0, named=True))


def _cell_findings(table: Table, counts: dict[str, int], form: str | None) -> tuple[list[Finding], Table]:
    """Cells that mean nothing, are missing or have blanks around them; the column `_odd` marks the rows of those refused."""
    pl = polars()
    rules = {name: pl.col(name) for name in counts if name.startswith(("_bad_", "_blank_"))}
    rules |= {f"_null_{role}": rule for role, rule in _needed(table).items()}
    found, bad = [], []
    for name, rule in rules.items():
        if counts[name]:
            kind, role = name[1:].split("_", 1)
            finding = _cell_finding(table, kind, role, counts[name], table.cells(rule, role), form)
            found.append(finding)
            bad += [rule] if finding.refused else []
    if bad:
        table = replace(table, frame=table.frame.with_columns(_odd=pl.any_horizontal(bad).fill_null(False)))
    return sorted(found, key=lambda finding: not finding.refused), table


def _cell_finding(
    table: Table, kind: str, role: str, count: int, cells: list[tuple[int, Any]], form: str | None
) -> Finding:
    if kind == "null":
        return table.finding("missing", count, cells, role, f"the {role} is missing")
    if kind == "blank":
        what = "{value} has blanks around it, which are removed"
        return table.finding("blanks", count, cells, role, what, refused=False)
    if role == "time":
        return table.finding("time", count, cells, role, f"{{value}} is none of the {form}")
    comma = "`decimal=','` reads decimal commas; thousands must not be marked"
    cure = comma if any("," in str(value) for _, value in cells) else ""
    return table.finding("number", count, cells, role, "{value} is no number", cure=cure)
