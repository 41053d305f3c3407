"""Small tables for notebooks; every text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

ROWS = 12
"""Rows shown."""
_CELL = "text-align:left;padding:.15em .7em"


def text(value: Any) -> str:
    """Escape a value and isolate its writing direction; what UTF-8 cannot encode is replaced."""
    return f"<bdi>{escape(str(value)).encode('utf-8', 'replace').decode()}</bdi>"


def facts(title: str, rows: Mapping[str, Any]) -> str:
    """A title and a table of names and values."""
    lines = (
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{text(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<div><strong>{escape(title)}</strong><table>{''.join(lines)}</table></div>"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], total: int) -> str:
    """The first rows of a table of `total`."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    cells = ("".join(f'<td style="{_CELL}">{text(cell)}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    more = f"<div>… {total - len(rows):,} more</div>" if total > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
