"""Chains as arrays that stay with workers: rows, rows that a sweep played, or next states under the mean law."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.bellman.mean_law import Chain
from drmdp.bellman.played import Page, Pages
from drmdp.core.compact import STORED, Rows


def kept(chain: Rows | Pages | Chain) -> tuple[Any, ...]:
    """The arrays of a chain."""
    if isinstance(chain, Chain):
        return chain.there, chain.classes, chain.mean, chain.ends
    if isinstance(chain, Pages):
        return tuple(array for page in chain.pages for array in page)
    return tuple(getattr(chain, name) for name in STORED)


def chain_from(held: tuple[Any, ...], n_states: int, threads: int) -> Any:
    """The chain of such arrays."""
    if len(held) == 4:
        there, classes, mean, ends = held
        return Chain(there, classes, mean, ends, threads)
    if held[2].dtype == np.uint16:
        return Pages(tuple(Page(*held[k : k + 3]) for k in range(0, len(held), 3)), threads)
    return Rows(n_states, **dict(zip(STORED, held, strict=True)), threads=threads)
