"""The rows of one pair (state, action), with their entries in the order in which nature serves them."""

from __future__ import annotations

from typing import Any, NamedTuple

from drmdp._typing import Array


class Pair(NamedTuple):
    """N rows of K entries."""

    y: Array  # row i begins at y[at + i·K]
    at: int
    K: int
    u: Array  # the stakes of the pair begin at u[first]
    first: int
    scale: Array  # (N,), see `row_scales`
    entry: Any  # entries in order, 0 … K − 1, or −1 for an unlisted state
    level: Array  # their stakes, or slopes
    length: int  # how many of both
