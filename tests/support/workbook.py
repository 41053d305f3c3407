"""A smallest possible .xlsx file, written by hand."""

import zipfile
from xml.sax.saxutils import escape

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KINDS = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def _cell(reference, value, style):
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{reference}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{reference}" s="{style}"><v>{value}</v></c>'


def _sheet(rows, dates):
    return "".join(
        f'<row r="{r}">'
        + "".join(_cell(f"{chr(65 + c)}{r}", value, int(c in dates)) for c, value in enumerate(row))
        + "</row>"
        for r, row in enumerate(rows, 1)
    )


def write_workbook(path, rows, dates=()):
    """Write rows to the sheet "Log"; numbers in the columns `dates` are days since 1899-12-30."""
    write_sheets(path, {"Log": rows}, dates)


def write_sheets(path, sheets, dates=(), hidden=()):
    """Write sheets, {name: rows}, some of them hidden."""
    relation = f'<Relationship Id="{{}}" Type="{RELATIONS}/{{}}" Target="{{}}"/>'
    numbers = range(1, len(sheets) + 1)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{k}" r:id="r{k}"{" state=" + repr("hidden") if name in hidden else ""}/>'
        for k, name in zip(numbers, sheets, strict=True)
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KINDS}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + relation.format("r1", "officeDocument", "xl/workbook.xml")
        + "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + "".join(
            relation.format(f"r{k}", "worksheet", f"worksheets/sheet{k}.xml") for k in numbers
        )
        + relation.format("r0", "styles", "styles.xml")
        + "</Relationships>",
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
        **{
            f"xl/worksheets/sheet{k}.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{_sheet(rows, dates)}</sheetData></worksheet>'
            for k, rows in zip(numbers, sheets.values(), strict=True)
        },
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
