"""What `--out` writes: a result (.npz), its table (.csv, .xlsx, .parquet), or the document of --json (.json)."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from drmdp.cli.options import KEEP_FORMULAS, remember
from drmdp.cli.show import plain
from drmdp.cli.workbook import workbook
from drmdp.core.files import check_file, check_suffix, write_whole
from drmdp.errors import InputError, imported, shown
from drmdp.estimate.opening import checked_mark

TABLES = (".csv", ".xlsx", ".parquet")
SUFFIXES = (".npz", *TABLES, ".json")
HELP = "Save the result here (.npz), its table (.csv, .xlsx, .parquet) or its document (.json)"
FORMULA = tuple("=+-@\t\r")
"""What a formula begins with."""


def table_options(command: Any) -> Any:
    """Add the options that say how tables are written."""
    for option in (
        click.option("--decimal", help="The point of numbers in a .csv table: '.', the default, or ','."),
        click.option(
            "--separator", help="What separates its cells: ';', tab …; a comma by default, ';' with --decimal ,."
        ),
        KEEP_FORMULAS,
    ):
        command = option(command)
    return command


def check_out(path: str | None, separator: str | None = None, decimal: str | None = None) -> dict[str, Any]:
    """Refuse a file that cannot be written, before any work is done; how a .csv table is written."""
    suffix = "" if path is None else Path(path).suffix.lower()
    if suffix != ".csv" and (separator is not None or decimal is not None):
        raise InputError(f"--{'decimal' if separator is None else 'separator'}: goes with --out and a .csv file")
    if path is None:
        return {}
    check_suffix(path, SUFFIXES, "results are written as .npz, tables as .csv, .xlsx or .parquet, documents as .json")
    check_file(path)
    if suffix in TABLES:
        imported("polars", "data")
    if separator is None and decimal is None:
        return {}
    mark = checked_mark(separator) if separator is not None else ";" if decimal == "," else ","
    if decimal not in (None, ".", ",") or mark == decimal:
        raise InputError(f"--decimal: expected '.' or ',', and no separator, got {decimal!r}")
    return {
        "separator": mark,
        "decimal_comma": decimal == ",",
        "include_bom": True,
    }  # by the mark spreadsheets know UTF-8


def write_out(path: str, found: Any, document: dict[str, Any], style: dict[str, Any]) -> None:
    """Write a solution or a plan by the suffix of the path, completely or not at all; `style` is what `check_out` gave."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        remember(found)
        found.save(path)
        return
    if suffix == ".json":
        content = json.dumps(plain(document), allow_nan=False).encode()
    else:
        table, stream = found.to_frame(), io.BytesIO()
        if suffix == ".csv":
            table.write_csv(stream, **style)
        elif suffix == ".parquet":
            table.write_parquet(stream)
        content = workbook(table.columns, table.rows()) if suffix == ".xlsx" else stream.getvalue()
    write_whole(path, lambda stream: stream.write(content))


def check_labels(
    model: Any, path: str | None, keep: bool = False, kinds: Sequence[str] = ("states", "actions")
) -> None:
    """Refuse labels that a spreadsheet would run as formulas when it opens a table."""
    if keep or path is None or Path(path).suffix.lower() != ".csv":
        return
    for kind in kinds:
        for label in getattr(model, kind):
            if isinstance(label, str) and label[:1] in FORMULA and not _is_number(label):
                raise InputError(
                    f"{kind}: a spreadsheet may run the name {shown(label)} as a formula; --keep-formulas writes it all the same"
                )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
