"""A table of transitions, whatever it comes in, as a lazy Polars frame with columns of fixed names.

=========== ======================================================================================================
role        meaning
=========== ======================================================================================================
state       where a step begins; a string or an integer, as all labels
action      what was done
next_state  where the step ends; without it, the state of the next row of the same episode
episode     what belongs together: one patient, one machine, one run
time        order within an episode; without it, rows are in order
cost        of the step (or `reward`)
weight      how much a row counts; 1 by default
=========== ======================================================================================================

CSV labels are read as text and become integers only if every one is written like an integer: "007" stays "007".

A Parquet file from a stranger is only as safe as Polars: damage inside its pages may end the process, not raise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drmdp.errors import InputError, MissingExtra

LABELS = ("state", "action", "next_state", "episode", "unit")
NUMBERS = ("cost", "reward", "weight")


@dataclass(frozen=True)
class Columns:
    """Names of the columns by role."""

    state: str = "state"
    action: str = "action"
    next_state: str | None = None  # "next_state" if the table has it
    episode: str | None = None
    time: str | None = None
    cost: str | None = None
    reward: str | None = None
    weight: str | None = None


@dataclass(frozen=True)
class Table:
    """A lazy frame with one column per role, `unit` (what makes a kernel) and `_row`, and where it came from."""

    frame: Any
    columns: Columns
    name: str  # for messages
    is_csv: bool = False

    def row_of(self, bad: Any) -> str:
        """Describe the first row where an expression holds."""
        row = int(collected(self.frame.filter(bad).select(polars().col("_row").min()), self.name).item()) + 1
        return f"{self.name}: {f'line {row + 1}' if self.is_csv else f'row {row}'}"


def polars() -> Any:
    """Import Polars, or say what to install."""
    try:
        import polars
    except ImportError as error:
        raise MissingExtra("polars", "data") from error
    return polars


def open_table(source: Any, columns: Columns, unit: str | None) -> Table:
    """Open a frame or a file and give its columns their fixed names; nothing is read but the header."""
    pl = polars()
    frame, name, is_csv = _frame(source)
    names = guarded(lambda: frame.collect_schema().names(), name)
    if columns.next_state is None and "next_state" in names:
        columns = Columns(**{**vars(columns), "next_state": "next_state"})
    wanted = {role: column for role, column in {**vars(columns), "unit": unit}.items() if column is not None}
    for role, column in wanted.items():
        if column not in names:
            raise InputError(f"{name}: no column {column!r} for {role}; there are: {shown_names(names)}")
    if is_csv:
        text = {column: pl.String for role, column in wanted.items() if role in LABELS}
        frame = pl.scan_csv(source, schema_overrides=text, infer_schema_length=10_000)
    frame = frame.with_row_index("_row").select(
        "_row", *(pl.col(column).alias(role) for role, column in wanted.items())
    )
    schema = guarded(frame.collect_schema, name)
    for role, dtype in schema.items():
        if role in NUMBERS and not (dtype.is_numeric() or dtype == pl.Null):
            raise InputError(f"{name}: column {wanted[role]!r} ({role}) must hold numbers, got {dtype}")
    return Table(frame.with_columns(_plain(pl, schema)), columns, name, is_csv)


def _plain(pl: Any, schema: Mapping[str, Any]) -> list[Any]:
    """Expressions that make labels integers or strings, and numbers floats."""
    found = []
    for role, dtype in schema.items():
        if role in NUMBERS:
            found.append(pl.col(role).cast(pl.Float64))
        elif role in LABELS and (dtype == pl.Boolean or dtype.is_integer()):
            found.append(pl.col(role).cast(pl.Int64))
        elif role in LABELS and not (dtype.is_float() or dtype == pl.String):
            if dtype.is_nested() or dtype in (pl.Object, pl.Binary):
                raise InputError(f"column for {role}: labels are strings or integers, got {dtype}")
            found.append(pl.col(role).cast(pl.String))
    return found


def _frame(source: Any) -> tuple[Any, str, bool]:
    """(lazy frame, name for messages, whether it is a CSV file)."""
    pl = polars()
    if isinstance(source, pl.LazyFrame):
        return source, "table", False
    if isinstance(source, pl.DataFrame):
        return source.lazy(), "table", False
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return _from_pandas(source).lazy(), "table", False
    if isinstance(source, Mapping):
        return guarded(lambda: pl.DataFrame(source, strict=False), "table").lazy(), "table", False
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"table: expected a Polars or pandas frame, a mapping or a path, got {type(source).__name__}")
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: unknown suffix {suffix!r}; a table is a .csv or .parquet file")
    if not path.is_file():
        raise InputError(f"{path}: {'is a directory' if path.is_dir() else 'no such file'}")
    scan = pl.scan_csv if suffix == ".csv" else pl.scan_parquet
    return guarded(lambda: scan(path), os.fspath(path)), os.fspath(path), suffix == ".csv"


def _from_pandas(source: Any) -> Any:
    """Copy column by column: a conversion as a whole would need pyarrow."""
    pl = polars()

    def series(column: Any) -> Any:
        values = source[column].to_numpy()
        if values.dtype == object:
            missing = source[column].isna().to_numpy()
            return [None if gone else value for value, gone in zip(values, missing, strict=True)]
        return values

    return guarded(lambda: pl.DataFrame({str(column): series(column) for column in source.columns}), "table")


def guarded(work: Any, name: str) -> Any:
    """Do some work with Polars; whatever it makes of the data is an `InputError` that begins with `name`."""
    pl = polars()
    try:
        return work()
    except InputError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: {(str(error).splitlines() or [type(error).__name__])[0]}") from None
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or str(error).splitlines()[0]}") from None


def collected(frame: Any, name: str) -> Any:
    """Carry out a query, in pieces."""
    return guarded(lambda: frame.collect(engine="streaming"), name)


def shown_names(names: Any) -> str:
    """A few names, for messages."""
    some = [str(name) for name in names]
    return ", ".join(some[:10]) + (", …" if len(some) > 10 else "")
