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


def write_workbook(path, rows, dates=()):
    """Write rows to the sheet "Log"; numbers in the columns `dates` are days since 1899-12-30."""
    body = "".join(
        f'<row r="{r}">'
        + "".join(_cell(f"{chr(65 + c)}{r}", value, int(c in dates)) for c, value in enumerate(row))
        + "</row>"
        for r, row in enumerate(rows, 1)
    )
    relation = f'<Relationship Id="{{}}" Type="{RELATIONS}/{{}}" Target="{{}}"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KINDS}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + relation.format("r1", "officeDocument", "xl/workbook.xml")
        + "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>'
        '<sheet name="Log" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + relation.format("r1", "worksheet", "worksheets/sheet1.xml")
        + relation.format("r2", "styles", "styles.xml")
        + "</Relationships>",
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
