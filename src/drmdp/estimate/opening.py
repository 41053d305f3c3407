"""A file or a frame as a source of rows.

Cells of text files and workbooks come as text: what a column means is decided by its role, over all rows, and not by
its first rows. Paths are taken literally: ``log[1].csv`` is that file.

====================== ===============================================================================================
suffix                 what is read
====================== ===============================================================================================
.csv, .tsv, .txt       separated text; see `drmdp.estimate.textfile`
.parquet               columns with types
.xlsx                  a sheet, in memory; see `drmdp.estimate.sheets`. Needs the extra ``excel``.
====================== ===============================================================================================

A Parquet file that is none, or was cut off, is refused. One from a stranger is only as safe as Polars. Damage in its footer is an error
(4 000 flipped bits tried). Damage inside its pages goes unnoticed where it makes other numbers, for pages need not have checksums: of 956 flipped
bits, 811 were read, 144 refused, and one ended the process.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from drmdp.core.archives import check_parquet
from drmdp.errors import InputError, shown
from drmdp.estimate.sheets import open_workbook
from drmdp.estimate.source import Reading, Source, guarded, polars
from drmdp.estimate.textfile import SEPARATORS, open_text

SUFFIXES = (*SEPARATORS, ".parquet", ".xlsx")
DEEPEST = 1000
"""Row that may name the columns; the rows above it are read into memory."""


def open_source(given: Any, reading: Reading, wanted: Collection[str] = ()) -> Source:
    """Open a frame, a mapping of columns or a file; nothing is read but the header. `wanted` columns choose the sheet."""
    pl = polars()
    row = reading.header_row
    if row is not None and (not isinstance(row, int) or isinstance(row, bool) or not 1 <= row <= DEEPEST):
        raise InputError(f"`header_row`: expected the number of a row, from 1 to {DEEPEST}, got {shown(row)}")
    suffix = Path(given).suffix.lower() if isinstance(given, str | os.PathLike) else ""
    if reading.sheet is not None and suffix != ".xlsx":
        raise InputError(f"`sheet={reading.sheet!r}`: only a workbook (.xlsx) has sheets")
    if row is not None and suffix not in (*SEPARATORS, ".xlsx"):
        raise InputError(f"`header_row={row}`: only text files and workbooks have one")
    frame = None
    if isinstance(given, pl.LazyFrame | pl.DataFrame):
        frame = given.lazy()
    elif _is_pandas(given) and hasattr(given, "columns"):
        frame = _from_columns({str(name): given[name] for name in given.columns})
    elif isinstance(given, Mapping):
        frame = _from_columns(given)
    if frame is not None:
        return Source(frame, "table", tuple(guarded(lambda: frame.collect_schema().names(), "table")))
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"table: expected a Polars or pandas frame, a mapping or a path, got {type(given).__name__}")
    path = Path(given)
    if suffix not in SUFFIXES:
        known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        raise InputError(f"{path}: unknown suffix {suffix!r}; a table is a {known} file")
    if not path.is_file():
        what = (
            "is a directory"
            if path.is_dir()
            else "is a pipe or a device, not a file"
            if path.exists()
            else "no such file"
        )
        raise InputError(f"{path}: {what}")
    if suffix == ".parquet":
        try:
            check_parquet(path)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        frame = guarded(lambda: pl.scan_parquet(path, glob=False), os.fspath(path))
        return Source(frame, os.fspath(path), tuple(guarded(lambda: frame.collect_schema().names(), os.fspath(path))))
    return open_workbook(path, reading, wanted) if suffix == ".xlsx" else open_text(path, reading)


def _is_pandas(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas"


def _from_columns(columns: Mapping[Any, Any]) -> Any:
    """Make a frame column by column: a conversion of pandas as a whole would need pyarrow."""
    pl = polars()

    def series(values: Any) -> Any:
        if not _is_pandas(values):
            return values
        if hasattr(values.dtype, "freq") and hasattr(values, "dt"):  # periods: where they begin
            values = values.dt.to_timestamp()
        plain = values.to_numpy()
        if plain.dtype != object:
            return plain
        return [None if missing else value for value, missing in zip(plain, list(values.isna()), strict=True)]

    return guarded(lambda: pl.DataFrame({n: series(v) for n, v in columns.items()}, strict=False), "table").lazy()
