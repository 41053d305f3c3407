"""What `--out` writes: a result (.npz), its table (.csv, .parquet), or the document of --json (.json)."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drmdp.cli.show import plain
from drmdp.core.files import check_file, check_suffix, write_whole
from drmdp.errors import InputError, imported, shown

if TYPE_CHECKING:
    from drmdp.model import Model

SUFFIXES = (".npz", ".csv", ".parquet", ".json")
HELP = "Save the result here (.npz), its table (.csv, .parquet) or its document (.json)"
FORMULA = tuple("=+-@\t\r")
"""What a formula begins with."""


def check_out(path: str | None) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    if path is None:
        return
    check_suffix(path, SUFFIXES, "results are written as .npz, tables as .csv or .parquet, documents as .json")
    check_file(path)
    if Path(path).suffix.lower() in (".csv", ".parquet"):
        imported("polars", "data")


def write_out(path: str, found: Any, document: dict[str, Any]) -> None:
    """Write a solution or a plan by the suffix of the path, completely or not at all."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        found.save(path)
        return
    if suffix == ".json":
        content = json.dumps(plain(document), allow_nan=False).encode()
    else:
        table, stream = found.to_frame(), io.BytesIO()
        table.write_csv(stream) if suffix == ".csv" else table.write_parquet(stream)
        content = stream.getvalue()
    write_whole(path, lambda stream: stream.write(content))


def check_labels(model: Model, path: str | None, keep: bool = False) -> None:
    """Refuse labels that a spreadsheet would run as formulas when it opens a table."""
    if keep or path is None or Path(path).suffix.lower() != ".csv":
        return
    for kind in ("states", "actions"):
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
