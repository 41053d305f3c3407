"""A first look at every row: times are read, cells that mean nothing are found, and the rows are
put in order.

Most tables are *tidy*: every cell that is needed means something, and no text has blanks around it.
This is taken for granted first. Where the order of the rows or the distinct labels show that it is
wrong (`UntidyError`), the table is read again with more care. That takes about twice as long.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.estimation.log import numbers
from drmdp.estimation.log.dates import hint, read_times
from drmdp.estimation.log.findings import LIMIT, Finding
from drmdp.estimation.log.order import LogSurvey, Ordering, Transitions, ordered, whole_rows
from drmdp.estimation.log.source import pl
from drmdp.estimation.log.table import NUMBERS, PRICES, LogTable, cell_text, first_cells, unflagged


def _words(table: LogTable, role: str, last: list[Any]) -> list[Any]:
    """The first cell without a digit, if there is one, in place of the last of a full list."""
    text = cell_text(role, None, False)
    none = text.cast(pl.Float64, strict=False).is_null() & ~text.str.contains("[0-9]")
    words = table.cells(none & ~text.is_in(numbers.DASHES), role, table.raw) if last else []
    return words[:1] or last


def _two_marks(table: LogTable, role: str) -> str:
    """How many cells have a comma and how many a point, if both are."""
    comma, point = (
        cell_text(role, None, False).str.contains(mark, literal=True) for mark in (",", ".")
    )
    n = table.totals(table.raw, {"comma": (comma & ~point).sum(), "point": (point & ~comma).sum()})
    if not all(n.values()):
        return ""
    both = f"{n['comma']:,} cells with a comma, {n['point']:,} with a point"
    return f"{both}: no option reads both; write them one way"


def survey_log(
    table: LogTable, ordering: Ordering, states: Names | None = None, ends: Collection[str] = ()
) -> LogSurvey:
    """Look at every row once, or a few times, and make transitions; `ends` are terminal states, as
    text.
    """
    if ends:
        table = table.with_columns(_ends=pl.col("state").cast(pl.String).is_in(list(ends)))
    visits = table.columns.next_state is None
    if visits and table.columns.episode is None:
        cure = "so name the column `episode`: its rows make the transitions"
        raise InputError(f"{table.name}: no column `next_state`, {cure}")
    if not visits and (ordering.step is not None or ordering.gaps != "refuse"):
        what = "`step` and `gaps` are for rows without `next_state`, where time joins them"
        raise InputError(f"{table.name}: {what}")
    table, findings, facts = read_times(table, ordering)
    findings += table.findings
    needed = ("episode", "time") if visits and ordering.spans else ("state", "episode", "time")
    if not table.tidy:
        n, odd, table = _odd_cells(table, needed, facts.form)
        if not n:
            raise InputError(f"{table.name}: no rows")
        findings += odd
        facts = replace(facts, rows=n)
    if visits or (table.columns.time is not None and table.columns.episode is not None):
        return ordered(table, ordering, findings, facts, states)
    return LogSurvey(Transitions(table, whole_rows(table)), findings, facts)


# ---------------------------------------------------------------------- terminal states


def without_ends(survey: LogSurvey, valued: Collection[str]) -> LogSurvey:
    """Without transitions that leave terminal states, which are refused, and those that stay there
    and lack something; costs in rows of terminal states are told, but of those that are `valued`.
    """
    steps, table, findings = survey.steps, survey.steps.table, list(survey.findings)
    state, end = pl.col("state").cast(pl.String), pl.col("_ends").fill_null(False)
    left = end & (state != pl.col("next_state").cast(pl.String))
    left &= pl.lit(True) if "weight" not in table.wanted else pl.col("weight").fill_null(1) > 0
    n, first = table.first_of(steps.frame.filter(left))
    if n:
        cure = "mend the row, leave it out, or take the state from `terminal`"
        if table.columns.next_state is None:
            other = f"give the rows that follow another name in column {table.wanted['episode']!r}"
            cure = f"`after_terminal='new'` begins a new episode there; or {other}"
        what = "state {state!r} is terminal, but {next_state!r} follows"
        places = [([row["_row"]], what.format(**row), "state", row["state"]) for row in first]
        place = table.places(places)
        findings.append(Finding("terminal", True, n, "transitions", place, cure))
    needed = [role for role in ("action", *PRICES) if role in table.wanted]
    lacks = pl.any_horizontal(pl.col(needed).is_null())
    steps = replace(steps, frame=steps.frame.filter(~(left | (end & lacks)).fill_null(False)))
    for kind in (role for role in PRICES if role in table.wanted):
        paid = end & (pl.col(kind) != 0) & ~state.is_in(list(valued))
        findings += _unused(table, kind, table.frame.filter(paid))
    return replace(survey, steps=steps, findings=findings)


def _unused(table: LogTable, kind: str, rows: Any) -> list[Finding]:
    """Costs, or rewards, in some rows of terminal states."""
    means = table.query(rows.group_by("state").agg(pl.col(kind).mean()).sort("state")).rows()
    if not means:
        return []
    n, first = table.first_of(rows)
    does = "costs" if kind == "cost" else "earns"
    what = f"{{{kind}:.12g}} is not used: {{state!r}} is terminal, and the end {does} 0 there"
    places = [([row["_row"]], what.format(**row), kind, row[kind]) for row in first]
    values = ", ".join(f"{state!r}: {mean:.12g}" for state, mean in means)
    cure = f"`terminal={{{values}}}` says what the end {does}"
    return [Finding(f"terminal {kind}", False, n, "rows", table.places(places), cure)]


# ---------------------------------------------------------------------- cells


def _odd_cells(
    table: LogTable, roles: tuple[str, ...], form: str | None
) -> tuple[int, list[Finding], LogTable]:
    """The number of rows; cells that mean nothing, are missing though their role needs them or have
    blanks around them; the column `_odd` marks the rows of those refused.
    """
    missing = {role: pl.col(role).is_null() for role in roles if role in table.wanted}
    flags = [name for name in table.names if name.startswith(("_bad_", "_blank_", "_unit_"))]
    twice = table.wanted.get("unit") in vars(table.columns).values()
    rules = {name: pl.col(name) for name in flags if not (twice and name == "_blank_unit")}
    for role in (role for role in NUMBERS if f"_unit_{role}" in rules):
        rules[f"_bad_{role}"] &= ~rules[f"_unit_{role}"]
    rules |= {f"_null_{role}": rule for role, rule in unflagged(missing, table.names).items()}
    asked = {name: rule.sum() for name, rule in rules.items()}
    counts = table.totals(table.frame, {"n": pl.len(), **asked})
    findings, bad = [], []
    for name, rule in rules.items():
        if counts[name]:
            kind, role = name[1:].split("_", 1)
            finding = _cell_finding(table, kind, role, counts[name], rule, form)
            findings.append(finding)
            bad += [rule] if finding.refused and role not in NUMBERS else []
    if bad:
        table = table.with_columns(_odd=pl.any_horizontal(bad).fill_null(False))
    return counts["n"], sorted(findings, key=lambda finding: not finding.refused), table


def _cell_finding(
    table: LogTable, kind: str, role: str, count: int, rule: Any, form: str | None
) -> Finding:
    cells, cure = table.cells(rule, role), ""
    what, refused = "{value} is no number", kind != "blank"
    if kind == "null":
        name = table.wanted[role]
        skip = f"`skip_rows_without={name!r}` leaves out such rows, as those of sums"
        above = f"`fill_down={name!r}` if it stands above"
        cure = f"{above}; {skip}" if role == "episode" else skip
        kind, what = "missing", f"the {role} is missing"
    elif kind == "blank":
        kind, what = "blanks", "{value} has blanks around it, which are removed"
    elif role == "time":
        several = ", or two of them read it differently" if " or " in (form or "") else ""
        kind, what, cure = "time", f"{{value}} is none of the {form}{several}", hint(cells[0][1])
    elif kind == "unit":
        how = numbers.with_usual_unit(numbers.Writing(), first_cells(table, role))
        alike = how.core(cell_text(role, None, False)).is_not_null().sum()
        n = table.totals(table.raw, {"n": alike})["n"]
        what += f" with the unit {how.unit!r}"
        cure = f"the other {n:,} cells have {how.unit!r}: write these likewise"
    else:
        texts = [*first_cells(table, role), *(str(value) for _, value in cells)]
        cells = [*cells[: LIMIT - 1], *_words(table, role, cells[LIMIT - 1 :])]
        said = numbers.writing(table.reading)
        unread = not said.fits(numbers.bare(texts))
        cure = numbers.cure(texts, table.reading) or (_two_marks(table, role) if unread else "")
        kind = "number"
    return table.finding(kind, count, cells, role, what, cure=cure, refused=refused)
