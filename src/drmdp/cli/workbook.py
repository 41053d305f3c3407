"""A table as a workbook (.xlsx) of one sheet: texts and numbers, and nothing that a spreadsheet
would run.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape

from drmdp.errors import InputError

MOST = 1_048_576
"""Rows of a sheet, in every spreadsheet program."""
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""What XML cannot hold, and what would be read as such a letter."""
OPEN = "http://schemas.openxmlformats.org"
MAIN = f'xmlns="{OPEN}/spreadsheetml/2006/main"'
RELATIONS = f"{OPEN}/officeDocument/2006/relationships"
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
SPREADSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def workbook(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """The file; cells are texts, numbers or None."""
    if len(rows) >= MOST:
        sizes = f"a sheet has at most {MOST:,} rows, the table {len(rows) + 1:,}"
        raise InputError(f"{sizes}; write .csv or .parquet instead")
    lines = "".join(_row(k, row) for k, row in enumerate([header, *rows], 1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{OPEN}/package/2006/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{SPREADSHEET}.sheet.main+xml"/>'
        '<Override PartName="/xl/worksheets/sheet1.xml" '
        f'ContentType="{SPREADSHEET}.worksheet+xml"/></Types>',
        "_rels/.rels": _relation("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets>'
        '<sheet name="Result" sheetId="1" r:id="r"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relation("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f"<worksheet {MAIN}><sheetData>{lines}</sheetData></worksheet>",
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name)  # without the time of day
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, f"{DECLARATION}{content}")
    return stream.getvalue()


def _relation(kind: str, target: str) -> str:
    relation = f'<Relationship Id="r" Type="{RELATIONS}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{OPEN}/package/2006/relationships">{relation}</Relationships>'


def _row(number: int, cells: Iterable[Any]) -> str:
    inside = (_cell(f"{_letters(k)}{number}", cell) for k, cell in enumerate(cells))
    return f'<row r="{number}">{"".join(inside)}</row>'


def _letters(k: int) -> str:
    """The name of column k, from A on; AA follows Z."""
    return (_letters(k // 26 - 1) if k >= 26 else "") + chr(65 + k % 26)


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    text = CONTROL.sub(lambda match: f"_x{ord(match[0]):04X}_", str(value))
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
