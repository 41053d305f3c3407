"""One style for every picture: the colour-blind-safe palette of Okabe and Ito, thin grids, no frame
on the right and above.

Matplotlib is imported when the first picture is asked for; it is an extra (``pip install
'.[plot]'`` in a clone).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drmdp.errors import imported

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#000000"
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK, YELLOW)
CELLS = ("#2A80B9", "#E5A11C", "#1F9E78", "#D9622B", "#C97BA9", "#6CBDEA", "#E6DA4E", "#8C6D4F")
"""Much the same colours for cells and points, on light ground and on dark: those of lines change
with the ground of a page.
"""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # beside the colours, for print in grey

SETTINGS: dict[str, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "savefig.dpi": 160,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "drmdp",  # the same picture is the same file
}


def pyplot() -> Any:
    """Matplotlib's pyplot, or a sentence that says how to get it."""
    return imported("matplotlib.pyplot", "plot")


def fading(above: str, below: str | None = None) -> Any:
    """Colours that fade into the ground, whatever it is, towards 0: of numbers in [0, 1], or in
    [−1, 1] with a colour for those below.
    """
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    ends = [(*to_rgba(above)[:3], 0.0), (*to_rgba(above)[:3], 1.0)]
    if below is not None:
        ends = [(*to_rgba(below)[:3], 1.0), (*to_rgba(below)[:3], 0.0), *ends]
    places = [0.0, 1.0] if below is None else [0.0, 0.5, 0.5, 1.0]
    return LinearSegmentedColormap.from_list("fading", list(zip(places, ends, strict=True)))


def numbers(axis: Any) -> None:
    """Thousands separators on an axis, and so few numbers that they do not touch."""
    from matplotlib.ticker import ScalarFormatter

    class Separated(ScalarFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            text = super().__call__(x, pos)
            digits = text.lstrip("\N{MINUS SIGN}-")
            integer, dot, rest = digits.partition(".")
            sign = text[: len(text) - len(digits)]
            separated = integer.isdigit() and len(integer) > 3
            return f"{sign}{int(integer):,}{dot}{rest}" if separated else text

    formatter = Separated()
    formatter.set_powerlimits((-5, 8))
    axis.set_major_formatter(formatter)
    box = axis.axes.get_window_extent()
    wide = (box.width if axis.axis_name == "x" else 2 * box.height) / axis.axes.figure.dpi
    axis.get_major_locator().set_params(nbins=max(2, min(7, int(wide / 0.65))))


def ink() -> str:
    """The colour of letters: black, but in a dark style of the user."""
    colour = str(pyplot().rcParams["text.color"])
    return BLACK if colour == "black" else colour


@contextmanager
def styled(more: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Pyplot inside the style of the package, with `more` settings; the caller's own are left
    alone.
    """
    plt = pyplot()
    from cycler import cycler

    with plt.rc_context({**SETTINGS, "axes.prop_cycle": cycler(color=PALETTE), **(more or {})}):
        yield plt
        # a notebook's backend is loaded by the first figure, and switches it on
        interactive = plt.isinteractive()
    plt.ion() if interactive else plt.ioff()
