"""One style for every picture: the colour-blind-safe palette of Okabe and Ito, thin grids, no frame on the right and above.

Matplotlib is imported when the first picture is asked for; it is an extra (``pip install '.[plot]'`` in a clone).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drmdp.errors import imported

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
PALETTE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK, YELLOW)
CELLS = ("#2A80B9", "#E5A11C", "#1F9E78", "#D9622B", "#C97BA9", "#6CBDEA", "#E6DA4E", "#8C6D4F")
"""Much the same colours for cells and points, on light ground and on dark: those of lines change with the ground of a page."""
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


@contextmanager
def styled(more: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Pyplot inside the style of the package, with `more` settings; the caller's own are left alone."""
    plt = pyplot()
    from cycler import cycler

    with plt.rc_context({**SETTINGS, "axes.prop_cycle": cycler(color=PALETTE), **(more or {})}):
        yield plt
        interactive = plt.isinteractive()  # a notebook's backend is loaded by the first figure, and switches it on
    plt.ion() if interactive else plt.ioff()
