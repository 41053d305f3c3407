"""Workbooks: which sheet is read, as text. Typed columns would silently empty the cells of another type.

It is the sheet that was asked for, or the visible one that has the columns; if several have them, none is guessed.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from drmdp.errors import InputError, MissingExtra
from drmdp.estimate.source import TOP, Reading, Source, guarded, header_of, new_names, polars, titles


def open_workbook(path: Path, reading: Reading, wanted: Collection[str]) -> Source:
    """Read a sheet as text: typed columns would silently empty the cells of another type."""
    pl = polars()
    name = os.fspath(path)
    try:
        import fastexcel
    except ImportError as error:
        raise MissingExtra("fastexcel", "excel") from error

    def work() -> tuple[str, Any, tuple[str, ...]]:
        try:
            book = fastexcel.read_excel(path)
            whole: dict[str, Any] = {"header_row": None, "skip_rows": 0, "dtypes": "string"}
            sheet, told = _sheet(
                name, reading, wanted, book.sheet_names, lambda one, n: book.load_sheet(one, n_rows=n, **whole)
            )
            return sheet, pl.DataFrame(book.load_sheet(sheet, **whole)), told
        except fastexcel.FastExcelError as error:
            raise InputError(f"{name}: {str(error).splitlines()[0]}") from None

    sheet, frame, told = guarded(work, name)
    top = _rows(frame.head(max(TOP, reading.header_row or 0)))
    name = f"{name}, sheet {sheet!r}"
    header, taken = titles(name, top, reading.header_row)
    frame = frame.slice(taken).rename(new_names(frame.columns, header))
    return Source(frame.lazy(), name, header, first=taken + 1, top=top, told=told)


def _sheet(
    name: str, reading: Reading, wanted: Collection[str], sheets: list[str], load: Any
) -> tuple[str, tuple[str, ...]]:
    """The sheet to read, and what to tell of the others: the one that was asked for, or the visible one that has the columns."""
    listed = ", ".join(map(repr, sheets))
    if reading.sheet is not None:
        if reading.sheet not in sheets:
            near = next(iter(get_close_matches(reading.sheet, sheets, 1)), None)
            meant = "" if near is None else f" (did you mean {near!r}?)"
            raise InputError(f"{name}: no sheet {reading.sheet!r}{meant}; there are: {listed}")
        return reading.sheet, ()
    if len(sheets) == 1:
        return sheets[0], ()
    tops = {sheet: load(sheet, max(TOP, reading.header_row or 0)) for sheet in sheets}
    visible = [sheet for sheet in sheets if tops[sheet].visible == "visible"] or sheets
    fits = [
        sheet
        for sheet in visible
        if set(wanted) <= set(header_of(_rows(polars().DataFrame(tops[sheet])), reading.header_row)[0])
    ]
    if len(fits) > 1 and wanted:
        both = ", ".join(map(repr, fits))
        raise InputError(f"{name}: {len(fits)} sheets have these columns: {both}; say which: `sheet={fits[0]!r}`")
    chosen = (fits or visible)[0]
    others = {
        "also": [one for one in visible if one != chosen],
        "hidden": [one for one in sheets if one not in visible],
    }
    rest = "; ".join(f"{kind}: {', '.join(map(repr, some))}" for kind, some in others.items() if some)
    return chosen, (f"sheet {chosen!r} was read; {rest}",)


def _rows(frame: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(cell or "" for cell in row) for row in frame.rows())
