"""Logs as people have them: the right model, or an error or warning that names line, column and
value.

Each case of the deck changes a clean log. The model must then equal that of the clean log, or
`estimate` must complain. In every case `check_log` must agree with `estimate`.
"""

import contextlib
import datetime
import re
import warnings

import numpy as np
import pytest

from drmdp import InputError, Notice, check_log, estimate

HEADER = ("Machine", "Month", "Condition", "Action", "Cost")
COLUMNS = {
    "episode": "Machine",
    "time": "Month",
    "state": "Condition",
    "action": "Action",
    "cost": "Cost",
    "unvisited": "unavailable",
}
MONTHS = 24


def presses(n=6, months=MONTHS, seed=0):
    """Rows of a log without a fault: presses that wear, month by month."""
    rng = np.random.default_rng(seed)
    names, rows = ("good", "fair", "poor"), []
    for machine in range(n):
        state = 0
        for month in range(months):
            action = (
                "replace"
                if state == 2
                else "repair"
                if state == 1 and rng.random() < 0.4
                else "run"
            )
            when = f"{2020 + month // 12}-{month % 12 + 1:02d}-01"
            rows.append(
                [f"Press-{machine + 1}", when, names[state], action, str(100 * state + len(action))]
            )
            state = 0 if action == "replace" else max(state - 1, 0) if action == "repair" else state
            state = min(2, state + int(rng.random() < 0.4))
    return rows


def text(rows, separator=",", header=HEADER, end="\n"):
    """A file with some rows; cells that hold the separator are quoted."""
    lines = [
        separator.join(f'"{cell}"' if separator in cell or "\n" in cell else cell for cell in row)
        for row in rows
    ]
    return end.join([separator.join(header), *lines, ""])


def frame(rows):
    """Rows as a mapping of columns."""
    return {name: [row[k] for row in rows] for k, name in enumerate(HEADER)}


class Case:
    """One fault: what becomes of the rows, how the file is written and read, and what must come
    out.
    """

    def __init__(
        self, change=None, error=None, notice=None, notes=(), name="log.csv", write=None, **options
    ):
        self.change, self.error, self.notice, self.notes = change, error, notice, notes
        self.name, self.write, self.options = (
            name,
            write or (lambda rows: text(rows).encode()),
            options,
        )


def put(line, column, value):
    """Write another value into a cell; the header is line 1."""

    def change(rows):
        rows[line - 2][HEADER.index(column)] = value

    return change


def both(*changes):
    def change(rows):
        for one in changes:
            one(rows)

    return change


def each(column, of):
    """Write every cell of a column in another way."""

    def change(rows):
        for row in rows:
            row[HEADER.index(column)] = of(row[HEADER.index(column)])

    return change


def delete(*lines):
    def change(rows):
        rows[:] = [row for k, row in enumerate(rows) if k + 2 not in lines]

    return change


def again(line, at, column=None, value=None):
    """Insert a copy of a line, changed or not."""

    def change(rows):
        copy = list(rows[line - 2])
        if column is not None:
            copy[HEADER.index(column)] = value
        rows.insert(at - 2, copy)

    return change


def shuffle(rows):
    np.random.default_rng(1).shuffle(rows)


def once(rows):
    """Machines are named in their first rows only, as where cells are merged."""
    for row, above in reversed(list(zip(rows[1:], rows, strict=False))):
        row[0] = "" if row[0] == above[0] else row[0]


def date(form):
    """From 2020-01-01 to another way of writing it."""
    return each("Month", lambda cell: datetime.date.fromisoformat(cell).strftime(form))


def encoded(encoding, separator=",", header=HEADER, end="\n"):
    return lambda rows: text(rows, separator, header, end).encode(encoding)


def titled(old, new):
    """A file with another header."""
    return lambda rows: text(rows).replace(old, new, 1).encode()


def wide(rows):
    return text(rows).replace("\nPress-2,2020-01-01,", "\nPress-2,x,2020-01-01,").encode()


EUROPE = both(
    date("%d.%m.%Y"),
    each("Cost", lambda cell: f"{cell},0"),
    each("Machine", lambda cell: cell.replace("Press", "Pr\u00e4gepresse")),
)
"""As a spreadsheet program saves it in Germany."""
THIRD = delete(*(k + 2 for k in range(6 * MONTHS) if k % 3 == 2))
POOR = 2 + next(k for k, row in enumerate(presses()) if row[2] == "poor")
FAIR = 2 + next(k for k, row in enumerate(presses()) if row[2] == "fair")

DECK = {
    # ------------------------------------------------------------------ files
    "semicolons": Case(
        write=encoded("utf-8", ";"),
        error=r"no column 'Condition' for `state`.*separated by ';': `separator=';'`",
    ),
    "semicolons, said": Case(write=encoded("utf-8", ";"), separator=";"),
    "tabs in a .csv": Case(write=encoded("utf-8", "\t"), error="`separator='tab'`"),
    "tabs in a .csv, said": Case(write=encoded("utf-8", "\t"), separator="tab"),
    "a .tsv": Case(write=encoded("utf-8", "\t"), name="log.tsv"),
    "a .txt": Case(
        write=encoded("utf-8", "|"),
        name="log.txt",
        error="say what separates the cells of a .txt file",
    ),
    "a .txt, said": Case(write=encoded("utf-8", "|"), name="log.txt", separator="|"),
    "two characters for a separator": Case(
        separator=";;", error="`separator`: expected one character, or tab, got ';;'"
    ),
    "byte order mark": Case(write=encoded("utf-8-sig")),
    "UTF-16 with a mark": Case(write=encoded("utf-16")),
    "UTF-16 without a mark": Case(write=encoded("utf-16-le"), error="zero bytes; if it is UTF-16"),
    "UTF-16 without a mark, said": Case(write=encoded("utf-16-le"), encoding="utf-16-le"),
    "UTF-16 with a mark, said": Case(
        write=lambda rows: b"\xff\xfe" + text(rows).encode("utf-16-le"), encoding="utf-16-le"
    ),
    "latin-1": Case(
        put(9, "Machine", "Präs"),
        write=encoded("latin-1"),
        error="line 9: byte 0xe4 is no UTF-8: `encoding='cp1252'` reads 'Präs' there",
    ),
    "wrong encoding": Case(
        put(9, "Machine", "Präs"),
        write=encoded("latin-1"),
        encoding="ascii",
        error="line 9: not ascii",
    ),
    "unknown encoding": Case(encoding="klingon", error="`encoding='klingon'` is unknown"),
    "Windows line ends": Case(write=encoded("utf-8", end="\r\n")),
    "old Mac line ends": Case(
        write=encoded("utf-8", end="\r"), error="lines end with a carriage return alone"
    ),
    "no rows": Case(lambda rows: rows.clear(), error=r"log\.csv: no rows"),
    "nothing at all": Case(write=lambda rows: b"", error=r"log\.csv: empty"),
    "blank lines": Case(
        write=lambda rows: (
            text(rows).replace("\nPress-3,2020-01", "\n\nPress-3,2020-01").encode() + b"\n\n"
        )
    ),
    "rows of commas": Case(write=lambda rows: text(rows).encode() + b",,,,\n,,,,\n"),
    "blank lines before the header": Case(
        put(5, "Cost", "x"),
        write=lambda rows: b"\n\n" + text(rows).encode(),
        error="line 7, column 'Cost': 'x'",
    ),
    "line breaks in cells": Case(
        both(put(3, "Cost", "\n1"), put(9, "Cost", "x")),
        error="line 10, column 'Cost': 'x' is no number",
    ),
    "more cells than columns": Case(
        put(26, "Cost", "5"), write=wide, error="line 26 has 6 cells, but the header has 5"
    ),
    "a quote that does not end": Case(put(20, "Action", '"run'), error="line 20 cannot be read"),
    "two columns of one name": Case(
        write=titled("Cost", "Cost,Cost"), error="2 columns are called 'Cost'"
    ),
    "another case": Case(
        write=titled("Condition", "condition"),
        error=r"no column 'Condition' for `state` \(did you mean 'condition'\?\)",
    ),
    "blanks in the header": Case(
        write=titled("Cost", " Cost"),
        error=r"no column 'Cost' for `cost` \(did you mean ' Cost'\?\)",
    ),
    "two columns missing": Case(
        time="When",
        cost="Price",
        error="no column 'When' for `time`, 'Price' for `cost`; there are: Machine, Month",
    ),
    # ------------------------------------------------------------------ numbers
    "dollars": Case(put(17, "Cost", "$0"), error=r"line 17, column 'Cost': '\$0' is no number"),
    "thousands": Case(
        put(17, "Cost", "1,000"),
        error=(
            r"line 17, column 'Cost': '1,000' is no number; with `thousands=','` '1,000' is 1000; with `thousands='.'` '1,000' is 1$"
        ),
    ),
    "three digits after each point": Case(
        each("Cost", lambda cell: f"{cell}.000"),
        error="line 2, column 'Cost': '3.000' may be 3 or 3000: every '.' has three digits .*: `decimal='.'` for the first, `thousands='.'` for the second",
    ),
    "three digits after each point, said": Case(
        each("Cost", lambda cell: f"{cell}.000"), decimal="."
    ),
    "three digits after each comma": Case(
        each("Cost", lambda cell: f"{cell},000"),
        decimal=",",
        error="'3,000' may be 3 or 3000: .* say which: `thousands='.'` for the first, `decimal='.'` and `thousands=','` for the second",
    ),
    "three digits after each comma, said": Case(
        each("Cost", lambda cell: f"{cell},000"), decimal=",", thousands="."
    ),
    "three digits after each point but one": Case(
        both(each("Cost", lambda cell: f"{cell}.000"), put(MONTHS + 1, "Cost", "0.125"))
    ),
    "thousands of Switzerland": Case(
        each("Cost", lambda cell: f"0'{int(cell):03},00 CHF"),
        decimal=",",
        error='with `thousands="\'"` "0\'003,00" is 3$',
    ),
    "thousands of Switzerland, said": Case(
        each("Cost", lambda cell: f"0'{int(cell):03},00 CHF"),
        decimal=",",
        thousands="'",
        notes=("column 'Cost': the unit 'CHF' is removed",),
    ),
    "a mark that is none of thousands": Case(
        put(17, "Cost", "10'3"),
        thousands="'",
        error="line 17, column 'Cost': \"10'3\" is no number",
    ),
    "dollars everywhere": Case(
        each("Cost", lambda cell: f"${cell}"), notes=("column 'Cost': the unit '$' is removed",)
    ),
    "two units": Case(
        both(each("Cost", lambda cell: f"{cell} €"), put(17, "Cost", "3 CHF")),
        error="line 17, column 'Cost': '3 CHF' is no number with the unit '€'; the other 143 cells have '€'",
    ),
    "costs in brackets": Case(
        each("Cost", lambda cell: f"({cell})"), error=r"line 2, column 'Cost': '\(3\)' is no number"
    ),
    "one mark for both": Case(
        thousands=",", decimal=",", error="`thousands` and `decimal` are both ','"
    ),
    "another mark for thousands": Case(thousands="*", error="`thousands`: expected one of"),
    # ------------------------------------------------------------------ rows
    "a title": Case(
        write=lambda rows: b"Presses;;;\n\n" + text(rows).encode(),
        error="no column 'Condition'.*; row 3 has them: `header_row=3`",
    ),
    "a title, said": Case(
        put(5, "Cost", "x"),
        write=lambda rows: b"Presses,,,,\n\n" + text(rows).encode(),
        header_row=3,
        error="line 7, column 'Cost': 'x'",
    ),
    "a title of a spreadsheet": Case(
        write=lambda rows: ('\ufeff"Presses, hall 3",,,,\r\n' + text(rows, end="\r\n")).encode(),
        header_row=2,
    ),
    "a title in UTF-16": Case(
        write=lambda rows: ("Presses,,,,\n" + text(rows)).encode("utf-16"), header_row=2
    ),
    "three digits after each point, and a unit": Case(
        each("Cost", lambda cell: f"CHF {cell}.000"),
        error="'CHF 3.000' may be 3 or 3000: .*thousands",
    ),
    "names in two rows": Case(
        write=lambda rows: (
            b"Presses,,,,\n" + text(rows).replace("Cost\n", "\n,,,,Cost\n", 1).encode()
        ),
        header_row=3,
    ),
    "no names there": Case(
        write=lambda rows: b"\n\n" + text(rows).encode(),
        header_row=2,
        error="`header_row=2`: there is no name in that row, nor above",
    ),
    "no such row": Case(
        header_row=0, error="`header_row`: expected the number of a row, from 1 to 1000, got 0"
    ),
    "machines once": Case(
        once,
        error="line 3, column 'Machine': the episode is missing, one of 138 such cells; `fill_down='Machine'` if it stands above",
    ),
    "machines once, said": Case(
        once, fill_down="Machine", notes=("an empty cell of 'Machine' means what stands above it",)
    ),
    "a total": Case(
        lambda rows: rows.append(["", "", "", "Total", "9"]),
        error=f"line {6 * MONTHS + 2}, .* is missing; `skip_rows_without='Condition'` leaves out such",
    ),
    "a total, said": Case(
        lambda rows: rows.insert(30, ["Sum", "", "", "Total", "9"]),
        skip_rows_without="Condition",
        notes=("rows without 'Condition' are skipped: 1, the first in line 32",),
    ),
    "sums between machines that are named once": Case(
        both(once, lambda rows: rows.insert(30, ["Sum", "", "", "Total", "9"])),
        skip_rows_without="Condition",
        fill_down=["Machine"],
    ),
    "two columns that are empty in sums": Case(
        lambda rows: rows.extend([["", "", "Sum", "", "999"], ["", "", "", "", "12"]]),
        skip_rows_without=["Machine", "Condition"],
        notes=("rows without 'Machine' or 'Condition' are skipped: 2, the first in line 146",),
    ),
    "one of two columns to skip by": Case(
        skip_rows_without=["Machine", "Hall"], error="`skip_rows_without`: 'Hall' is no column"
    ),
    "filled and skipped": Case(
        fill_down="Machine",
        skip_rows_without="Machine",
        error="`skip_rows_without`: 'Machine' is filled down",
    ),
    "another column to fill": Case(
        fill_down="Hall", error="`fill_down`: 'Hall' is none of the columns used: 'Condition'"
    ),
    "a sheet of a text": Case(sheet="Log", error="`sheet='Log'`: only a workbook"),
    "not available": Case(
        both(put(17, "Cost", "n/a"), put(40, "Cost", "NA")),
        error="line 17, column 'Cost': 'n/a' is no number, one of 2 such cells",
    ),
    "no cost": Case(put(17, "Cost", ""), error="line 17, column 'Cost': the cost is missing"),
    "not a number": Case(
        put(17, "Cost", "nan"), error="line 17, column 'Cost': the cost is missing"
    ),
    "an infinite cost": Case(
        put(17, "Cost", "inf"), error="line 17, column 'Cost': the cost must be finite, got 'inf'"
    ),
    "no cost where none is needed": Case(put(MONTHS + 1, "Cost", "")),
    "a bad cost where none is needed": Case(
        put(MONTHS + 1, "Cost", "?"), error=f"line {MONTHS + 1}, column 'Cost': '.' is no number"
    ),
    "a dash where no cost is needed": Case(
        put(MONTHS + 1, "Cost", "–"), notes=("column 'Cost': a dash is an empty cell, in 1 row",)
    ),
    "a dash for a cost": Case(
        put(17, "Cost", "-"),
        error="line 17, column 'Cost': the cost is missing; write 0 if a dash means that",
    ),
    "blanks around costs": Case(each("Cost", lambda cell: f" {cell} ")),
    "decimal commas": Case(
        each("Cost", lambda cell: f"{cell},0"),
        error="line 2, column 'Cost': '3,0' is no number, one of 144 such cells; with `decimal=','` '3,0' is 3$",
    ),
    "decimal commas, said": Case(each("Cost", lambda cell: f"{cell},0"), decimal=","),
    "a point among decimal commas": Case(
        put(17, "Cost", "1.000"), decimal=",", error="line 17, column 'Cost': '1.000' is no number"
    ),
    "another decimal": Case(decimal=";", error="`decimal`: expected '.' or ','"),
    "a negative weight": Case(
        put(17, "Cost", "-1"),
        weight="Cost",
        cost=None,
        costs="1",
        error="line 17, column 'Cost': the weight must be .* not negative, got '-1'",
    ),
    # ------------------------------------------------------------------ labels
    "capitals": Case(
        put(FAIR, "Condition", "Fair"),
        notice=rf"line {FAIR}, column 'Condition': 'Fair' .* looks like 'fair' .*: the same but for capitals; `rename={{'Fair': 'fair'}}`",
    ),
    "a typing error": Case(
        put(FAIR, "Condition", "fiar"),
        notice=rf"line {FAIR}, column 'Condition': 'fiar' \(.*\) looks like 'fair' .* one letter apart",
    ),
    "a letter too much": Case(
        put(POOR, "Action", "replacee"),
        notice=rf"line {POOR}, column 'Action': 'replacee' \(once\) looks like 'replace'",
    ),
    "a letter missing": Case(
        put(POOR, "Action", "replce"), notice="'replce' .once. looks like 'replace'"
    ),
    "a typing error, mended": Case(
        put(FAIR, "Condition", "fiar"),
        rename={"fiar": "fair"},
        notes=("labels renamed: fiar is fair",),
    ),
    "a name never seen, mended": Case(
        rename={"fiar": "fair"}, error="`rename`: the label 'fiar' was never seen"
    ),
    "a typing error among names that are given": Case(
        put(FAIR, "Condition", "fiar"),
        states=["good", "fair", "poor"],
        error=rf"line {FAIR}, column 'Condition': the state 'fiar' is none of those given: 'good', ",
    ),
    "blanks around a state": Case(
        put(2, "Condition", " good"),
        notice="line 2, column 'Condition': ' good' has blanks around it, which are removed",
    ),
    "blanks around an action": Case(
        put(2, "Action", "run "), notice="line 2, column 'Action': 'run ' has blanks"
    ),
    "blanks that do not break": Case(
        put(2, "Condition", "good\u00a0"),
        notice="line 2, column 'Condition': 'good.xa0' has blanks",
    ),
    "blanks around a machine": Case(
        put(2, "Machine", "Press-1 "), notice="line 2, column 'Machine': 'Press-1 ' has blanks"
    ),
    "blanks inside": Case(
        put(POOR, "Action", "re place"),
        notice="'re place' .once. looks like 'replace' .*: the same but for blanks or marks",
    ),
    "a letter without width": Case(
        put(POOR, "Action", "repl\u200bace"), notice="looks like 'replace'"
    ),
    "two encodings of one letter": Case(
        both(
            each("Action", lambda cell: cell.replace("run", "vélo")), put(2, "Action", "ve\u0301lo")
        ),
        notice="line 2, column 'Action': .* looks like 'vélo'",
    ),
    "one number written twice": Case(
        both(
            each("Condition", lambda cell: cell.replace("fair", "7")), put(FAIR, "Condition", "7.0")
        ),
        notice=rf"line {FAIR}, column 'Condition': '7.0' \(.*\) looks like '7' .* the same number",
    ),
    "a machine in capitals": Case(
        put(2, "Machine", "PRESS-1"),
        gaps="cut",
        notice="line 2, column 'Machine': 'PRESS-1' .once. looks like 'Press-1'",
    ),
    "no state": Case(
        put(17, "Condition", ""), error="line 17, column 'Condition': the state is missing"
    ),
    "no state at the end": Case(
        put(MONTHS + 1, "Condition", ""),
        error=f"line {MONTHS + 1}, column 'Condition': the state is missing",
    ),
    "blanks for a state": Case(
        put(17, "Condition", "  "), error="line 17, column 'Condition': the state is missing"
    ),
    "no action": Case(
        put(17, "Action", ""), error="line 17, column 'Action': the action is missing"
    ),
    "no action where none is needed": Case(put(MONTHS + 1, "Action", "")),
    "no machine": Case(
        put(17, "Machine", ""), error="line 17, column 'Machine': the episode is missing"
    ),
    # ------------------------------------------------------------------ times
    "days and points": Case(date("%d.%m.%Y")),
    "months": Case(date("%Y-%m")),
    "months in words": Case(date("%b %Y")),
    "a clock": Case(date("%Y-%m-%dT08:30")),
    "a zone": Case(date("%Y-%m-%d 08:30:15+01:00")),
    "slashes with two readings": Case(
        date("%d/%m/%Y"),
        error="line 2, column 'Month': '01/01/2020' may begin with the day or the month; say which: `time_format='%d/%m/%Y'` or `time_format='%m/%d/%Y'`",
    ),
    "slashes, said": Case(date("%m/%d/%Y"), time_format="%m/%d/%Y"),
    "slashes with one reading": Case(
        date("%m/28/%Y"), notes=("dates are read as times like 01/31/2020",)
    ),
    "numbers that are dates": Case(
        date("%Y%m"),
        error="lines 13 and 14: .* from 202012 to 202101 is 89, one of 6 such gaps; if these numbers are dates: `time_format='%Y%m'`",
    ),
    "numbers that are dates, said": Case(date("%Y%m"), time_format="%Y%m"),
    "years of two digits": Case(
        date("%d.%m.%y"),
        error="'01.01.20' is no number and no date that is known; years of two digits",
    ),
    "years of two digits, said": Case(date("%d.%m.%y"), time_format="%d.%m.%y"),
    "two forms of dates": Case(
        put(9, "Month", "01.08.2020"),
        notes=("times are written in 2 ways: times like 2020-01-31 or 31.01.2020",),
    ),
    "a month among dates": Case(
        put(9, "Month", "2020-08"),
        error="line 9, column 'Month': '2020-08' is none of the times like 2020-01-31",
    ),
    "month thirteen": Case(
        put(9, "Month", "2020-13-01"),
        error="line 9, column 'Month': '2020-13-01' is none of the times like 2020-01-31",
    ),
    "no time": Case(put(9, "Month", ""), error="line 9, column 'Month': the time is missing"),
    "blanks around times": Case(each("Month", lambda cell: f" {cell}")),
    "words for times": Case(
        each("Month", lambda cell: "soon"),
        error="line 2, column 'Month': 'soon' is no number and no date that is known; say how",
    ),
    "rows out of order": Case(shuffle),
    "a month is missing": Case(
        delete(9),
        error="lines 8 and 9: episode 'Press-1': from 2020-07-01 to 2020-09-01 is 2 months; the step is 1 month",
    ),
    "every third month is missing": Case(
        THIRD,
        error="lines 3 and 4: .* from 2020-02-01 to 2020-04-01 is 2 months, one of 42 such gaps; the step is 1 month, as most often here; `gaps='cut'`",
    ),
    "steps of days": Case(
        step="day",
        error="lines 2 and 3: .* from 2020-01-01 to 2020-02-01 is 31 days, one of 138 such gaps; the step is 1 day",
    ),
    "steps of quarters": Case(
        step="quarter", error="lines 2 and 3: .* 2020-01-01 and 2020-02-01 lie in the same quarter"
    ),
    "a step that is none": Case(
        step="moon", error="`step`: expected a number, or year, .*; got 'moon'"
    ),
    "a number of dates": Case(step=2, error="`step=2`: the times are dates"),
    "twice in a month": Case(
        again(9, 10, "Month", "2020-08-20"),
        error="lines 9 and 10: episode 'Press-1': 2020-08-01 and 2020-08-20 lie in the same month",
    ),
    "a row twice": Case(
        again(9, 10),
        error="lines 9 and 10: episode 'Press-1' has two rows at 2020-08-01 that are the same; `duplicates='drop'`",
    ),
    "a row twice, far apart": Case(
        again(9, 100),
        error="lines 9 and 100: episode 'Press-1' has two rows at 2020-08-01 that are the same",
    ),
    "a row three times": Case(
        both(again(9, 10), again(9, 146)), error="one of 2 such pairs of rows"
    ),
    "a row twice, dropped": Case(
        both(again(9, 10), again(30, 100)), duplicates="drop", notes=("2 exact duplicates dropped",)
    ),
    "a row twice but for blanks": Case(
        again(9, 10, "Machine", "Press-1 "), error="lines 9 and 10: .* that are the same"
    ),
    "two rows at one time": Case(
        again(9, 10, "Cost", "17"),
        duplicates="drop",
        error="lines 9 and 10: episode 'Press-1' has two rows at 2020-08-01 that differ: their order",
    ),
    # ------------------------------------------------------------------ combinations
    "a second download": Case(name="log[1].csv"),
    "a spreadsheet of Europe": Case(
        EUROPE,
        write=encoded("latin-1", ";"),
        error=r"byte 0xe4 is no UTF-8|separated by ';': `separator=';'`",
    ),
    "a spreadsheet of Europe, but for its numbers": Case(
        EUROPE,
        write=encoded("latin-1", ";"),
        separator=";",
        encoding="latin-1",
        error="line 2, column 'Cost': '3,0' is no number, one of 144 such cells; with `decimal=','` '3,0' is 3",
    ),
    "a spreadsheet of Europe, said": Case(
        EUROPE, write=encoded("latin-1", ";"), separator=";", encoding="latin-1", decimal=","
    ),
    "out of order, and a month is missing": Case(
        both(delete(9), shuffle),
        error="episode 'Press-1': from 2020-07-01 to 2020-09-01 is 2 months; the step is 1 month",
    ),
    "out of order, and a row twice": Case(
        both(again(9, 10), shuffle),
        error="episode 'Press-1' has two rows at 2020-08-01 that are the same",
    ),
    "out of order, and a row twice, dropped": Case(
        both(again(9, 10), shuffle), duplicates="drop", notes=("1 exact duplicate dropped",)
    ),
    "a row twice but for the form of its date": Case(
        again(9, 10, "Month", "01.08.2020"), duplicates="drop", notes=("1 exact duplicate dropped",)
    ),
    "two typing errors, one mended": Case(
        both(put(FAIR, "Condition", "fiar"), put(POOR, "Action", "replce")),
        rename={"fiar": "fair"},
        notes=("labels renamed: fiar is fair",),
        notice=rf"line {POOR}, column 'Action': 'replce' \(once\) looks like 'replace'",
    ),
    "blanks and capitals": Case(
        put(FAIR, "Condition", " Fair "),
        notice=rf"line {FAIR}, column 'Condition': 'Fair' .* looks like 'fair'",
    ),
    "a bad cell in a row twice": Case(
        both(put(9, "Cost", "$7"), again(9, 10)),
        error=r"line 9, column 'Cost': '\$7' is no number, one of 2 such cells",
    ),
    "everything": Case(
        both(
            put(FAIR, "Condition", "fiar"),
            put(40, "Cost", "$5"),
            put(60, "Condition", ""),
            again(80, 81),
            delete(100),
        ),
        error="'.5' is no number; all cells need the same unit, or none; there are cells without a unit and with '.'; 3 more problems, which",
    ),
}


@contextlib.contextmanager
def noticed():
    """Warnings of ours, as texts."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    assert all(issubclass(warning.category, Notice) for warning in caught)
    texts += [str(warning.message) for warning in caught]


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    path = tmp_path_factory.mktemp("clean") / "log.csv"
    path.write_text(text(presses()))
    return estimate(path, discount=0.9, **COLUMNS)


def test_the_deck_is_large():
    assert len(DECK) >= 60


@pytest.mark.parametrize("case", DECK.values(), ids=DECK)
def test_a_dirty_log_gives_the_right_model_or_a_complaint(case, clean, tmp_path):
    rows = presses()
    if case.change is not None:
        case.change(rows)
    path = tmp_path / case.name
    path.write_bytes(case.write(rows))
    options = COLUMNS | case.options
    checked = {name: value for name, value in options.items() if name != "costs"}
    if case.error is not None:
        with pytest.raises(InputError, match=case.error) as caught:
            estimate(path, discount=0.9, **options)
        assert "\n" not in str(caught.value)
        with contextlib.suppress(InputError):  # raised if nothing can be read
            assert check_log(path, **checked).refused
        return
    with noticed() as texts:
        model = estimate(path, discount=0.9, **options)
    found = check_log(path, **checked)
    assert not found.refused
    assert len(texts) == sum(finding.kind != "thin" for finding in found.findings)
    if case.notice is None:
        assert not texts
    else:
        assert len([line for line in texts if re.search(case.notice, line)]) == 1
        assert all(
            any(note in line for line in texts)
            for note in model.notes
            if "looks like" in note or "blanks" in note
        )
    if case.notice is None or "blanks around" in case.notice or "has blanks" in case.notice:
        assert model == clean
        np.testing.assert_array_equal(model.costs, clean.costs)
    else:
        assert len([note for note in model.notes if "looks like" in note]) == 1
    for note in case.notes:
        assert any(own.startswith(note) for own in model.notes), model.notes


def test_numbers_of_two_forms_are_counted_and_words_among_them_are_listed(tmp_path):
    cells = ["21,86", "89.25"] * 30 + ["n/a", "7"]
    rows = [f"ok;run;ok;{cell}" for cell in cells]
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join(["state;action;next_state;cost", *rows]) + "\n")
    found = check_log(path, cost="cost", separator=";").findings[0]
    cure = "30 cells with a comma, 30 with a point: no option reads both; write them one way"
    assert found.cure == cure
    assert [place.value for place in found.places] == ["21,86"] * 9 + ["n/a"]


@pytest.mark.parametrize("cell", ["76,89", "100,28 EUR", "76,89 $", "76,89 kg/h"])
@pytest.mark.parametrize("decimal", [",", None])
def test_the_cell_with_another_unit_is_named_and_not_the_others(cell, decimal, tmp_path):
    """Also while the option that reads the others is not given."""
    rows = presses()
    each("Cost", lambda cost: f"{cost},50 €")(rows)
    put(77, "Cost", cell)(rows)
    path = tmp_path / "log.csv"
    path.write_text(text(rows, ";"))
    findings = check_log(path, separator=";", decimal=decimal, **COLUMNS).findings
    (odd,) = (finding for finding in findings if finding.kind == "unit")
    assert odd.refused
    assert [place.lines for place in odd.places] == [(77,)]
    assert odd.note == f"line 77, column 'Cost': {cell!r} is no number with the unit '€'"
    assert odd.cure == "the other 143 cells have '€': write these likewise"
    others = [finding for finding in findings if finding.kind == "number"]
    assert [finding.count for finding in others] == [143] * (decimal is None)
    assert all("`decimal=','` '3,50' is 3.5" in finding.cure for finding in others)


def test_words_among_cells_with_a_unit_are_named(tmp_path):
    rows = presses()
    each("Cost", lambda cost: f"{cost} €")(rows)
    put(9, "Cost", "approx. 80 €")(rows)
    path = tmp_path / "log.csv"
    path.write_text(text(rows))
    (odd,) = check_log(path, **COLUMNS).findings
    assert str(odd) == "line 9, column 'Cost': 'approx. 80 €' is no number"


def test_rows_whose_costs_cannot_be_read_are_compared_as_they_are_written(tmp_path):
    rows = presses()
    each("Cost", lambda cost: f"{cost},50 €")(rows)
    both(again(81, 82, "Cost", "999,00 €"), again(9, 10))(rows)
    path = tmp_path / "log.csv"
    path.write_text(text(rows, ";"))
    findings = check_log(path, separator=";", **COLUMNS).findings
    lines = {each.kind: [place.lines for place in each.places] for each in findings}
    assert lines["duplicate"] == [(9, 10)]
    assert lines["same time"] == [(82, 83)]


def test_what_is_missing_has_a_cure(tmp_path):
    """Rows are left out only where that does not join their neighbours."""
    rows = presses()
    put(60, "Cost", "")(rows)
    path = tmp_path / "log.csv"
    path.write_text(text(rows))
    cures = [
        [finding.cure for finding in check_log(path, **options).findings if finding.refused]
        for options in (COLUMNS, {**COLUMNS, "time": None})
    ]
    skip = "fill it in; or leave such rows out with `skip_rows_without='Cost'`, as gaps"
    assert cures == [[skip], ["fill it in"]]


def test_an_empty_cell_of_by_is_told_in_words_of_the_option(tmp_path):
    rows = presses()
    put(60, "Condition", "good ")(rows)
    header = (*HEADER, "Remark")
    lines = [[*row, "" if k == 8 else "hall"] for k, row in enumerate(rows)]
    path = tmp_path / "log.csv"
    path.write_text(text(lines, header=header))
    (odd, *_) = [each for each in check_log(path, by="Remark", **COLUMNS).findings if each.refused]
    assert odd.note == "line 10, column 'Remark': the cell is empty, and `by` needs it"


def test_blanks_in_a_column_of_two_roles_are_told_once(tmp_path):
    rows = presses()
    put(60, "Machine", "Press-3 ")(rows)
    path = tmp_path / "log.csv"
    path.write_text(text(rows))
    found = check_log(path, by="Machine", partial="pooled", **COLUMNS).findings
    assert [each.kind for each in found if each.kind != "thin"] == ["blanks"]


def test_one_pair_is_told_in_the_singular(tmp_path):
    table = {"state": ["a"], "action": ["go"], "next_state": ["a"], "cost": [1]}
    (thin,) = check_log(table, cost="cost").findings
    assert "(1 observation): look at it; " in thin.cure
    two = {name: cells * 2 for name, cells in table.items()} | {"state": ["a", "b"]}
    options = {"cost": "cost", "discount": 0.9, "by": "posterior", "n_kernels": 2}
    notes = estimate(two, **options).notes
    assert (
        "prior: 1 pseudo-count for each next state seen from the state, under any action" in notes
    )
    three = {name: cells * 3 for name, cells in table.items()}
    three |= {"state": ["a", "b", "b"], "action": ["go", "go", "wait"]}
    assumed = check_log(three, cost="cost").summary.assumed
    assert "1 pair was never seen: an estimate is refused" in assumed
