"""Pictures as pieces of a page: text stays text, colours follow the page's, nothing refers to anything outside."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from drmdp.plot._axes import FREE
from drmdp.plot.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, styled

NAMES = {BLUE: "blue", ORANGE: "orange", GREEN: "green", RED: "red", PURPLE: "purple", SKY: "sky", BLACK: "ink"}
"""Colours that the page sets for light and dark; grids are drawn in `GRID`."""
GRID = "#b0b0b0"


def draw(picture: Callable[[Any], Any], prefix: str, words: str) -> str:
    """An inline <svg> of what `picture` draws on axes; `prefix` keeps its ids apart, `words` say what it shows."""
    with styled({"grid.color": GRID}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has other fonts
        from matplotlib.figure import Figure

        figure = Figure(label=FREE)
        picture(figure.subplots())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return _inline(stream.getvalue(), prefix, words)


def _inline(text: str, prefix: str, words: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style type=\"text/css\">.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'(\sid="|xlink:href="#|url\(#)', rf"\g<1>{prefix}-", text)
    text = re.sub(r'style="[^"]*"', lambda style: _themed(style.group()), text)
    text = re.sub(r"[ \t]*\n\s*", "\n", text)  # a page of pictures is mostly indentation
    size = re.search(r'viewBox="0 0 ([\d.]+)', text)
    assert size is not None
    head = f'<svg role="img" aria-label="{words}" style="--wide:{float(size.group(1)):.0f}" '
    return re.sub(r'<svg (xmlns:xlink="[^"]*" )?width="[^"]*" height="[^"]*" ', head, text, count=1).replace(
        "xlink:href", "href"
    )


def _themed(style: str) -> str:
    for colour, name in NAMES.items():
        style = re.sub(rf"{colour}\b", f"var(--{name})", style, flags=re.IGNORECASE)
    return style.replace(GRID, "var(--grid)")
