"""Files of `--out`: a result (.npz), its table (.csv, .xlsx, .parquet), or the document of --json
(.json).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from drmdp.cli.options import exit_code, remember
from drmdp.cli.show import plain, print_json
from drmdp.cli.workbook import workbook
from drmdp.errors import InputError, imported, shown
from drmdp.estimation.log.files import checked_mark
from drmdp.io.files import check_file, check_suffix, write_whole

TABLES = (".csv", ".xlsx", ".parquet")
SUFFIXES = (".npz", *TABLES, ".json")
FORMULA = tuple("=+-@\t\r")
"""What a formula begins with."""


def check_out(asked: Any) -> dict[str, Any]:
    """Refuse a file that cannot be written, before any work is done; how a .csv table is
    written.
    """
    path, separator, decimal = asked.out, asked.separator, asked.decimal
    suffix = "" if path is None else Path(path).suffix.lower()
    if suffix != ".csv" and (separator is not None or decimal is not None):
        name = "decimal" if separator is None else "separator"
        raise InputError(f"--{name}: goes with --out and a .csv file")
    if path is None:
        return {}
    kinds = "results are written as .npz, tables as .csv, .xlsx or .parquet, documents as .json"
    check_suffix(path, SUFFIXES, kinds)
    check_file(path)
    if suffix in TABLES:
        imported("polars", "data")
    if separator is None and decimal is None:
        return {}
    mark = checked_mark(separator) if separator is not None else ";" if decimal == "," else ","
    if mark == decimal:
        raise InputError(f"--decimal: {decimal!r} is the separator")
    # by the mark in front spreadsheets know UTF-8
    return {"separator": mark, "decimal_comma": decimal == ",", "include_bom": True}


def write_out(path: str, result: Any, document: dict[str, Any], style: dict[str, Any]) -> None:
    """Write a solution or a plan by the suffix of the path, completely or not at all; `style` is
    what `check_out` gave.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        remember(result)
        result.save(path)
        return
    if suffix == ".json":
        content = json.dumps(plain(document), allow_nan=False).encode()
    else:
        table, stream = result.to_frame(), io.BytesIO()
        if suffix == ".csv":
            table.write_csv(stream, **style)
        elif suffix == ".parquet":
            table.write_parquet(stream)
        content = workbook(table.columns, table.rows()) if suffix == ".xlsx" else stream.getvalue()
    write_whole(path, lambda stream: stream.write(content))


def finish(
    asked: Any,
    result: Any,
    document: dict[str, Any],
    style: dict[str, Any],
    show: Callable[[dict[str, str]], None],
    report: Callable[[], None] | None = None,
) -> int:
    """Write what was asked for, print the document or `show` the result and what was written; the
    exit code.
    """
    named_files = {"Saved": "out", "Proof": "proof", "Report": "report"}
    files = {role: getattr(asked, name, None) for role, name in named_files.items()}
    written = {role: path for role, path in files.items() if path is not None}
    try:
        if "Saved" in written:
            write_out(asked.out, result, document, style)
        if "Proof" in written:
            result.proof(asked.proof)
        if "Report" in written and report is not None:
            report()
    finally:  # a full disk must not cost the result as well
        print_json(document) if asked.as_json else show(written)
    return exit_code(result)


def check_csv(path: str | None, what: str) -> None:
    """Refuse what is no .csv file that can be written."""
    if path is not None:
        check_suffix(path, (".csv",), f"{what} written to a .csv file")
        check_file(path)


def write_csv(path: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table of names and numbers."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    try:
        content = text.getvalue().encode()
    except UnicodeEncodeError as error:
        name = shown(error.object[error.start])
        raise InputError(f"--out {path}: no text can hold the name {name}") from None
    write_whole(path, lambda stream: stream.write(content))


def check_labels(model: Any, asked: Any, kinds: Sequence[str] = ("states", "actions")) -> None:
    """Refuse labels that a spreadsheet would run as formulas when it opens a table."""
    if asked.keep_formulas or asked.out is None or Path(asked.out).suffix.lower() != ".csv":
        return
    for kind in kinds:
        for label in getattr(model, kind):
            if isinstance(label, str) and label[:1] in FORMULA and not _is_number(label):
                what = f"a spreadsheet may run the name {shown(label)} as a formula"
                raise InputError(f"{kind}: {what}; --keep-formulas writes it all the same")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
