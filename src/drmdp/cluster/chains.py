"""Chains as arrays that stay with workers: rows, or next states under the mean law."""

from __future__ import annotations

from typing import Any

from drmdp.bellman.mean_law import Chain
from drmdp.core.compact import STORED, Rows


def kept(chain: Rows | Chain) -> tuple[Any, ...]:
    """The arrays of a chain."""
    if isinstance(chain, Chain):
        return chain.there, chain.classes, chain.mean, chain.ends
    return tuple(getattr(chain, name) for name in STORED)


def chain_from(held: tuple[Any, ...], n_states: int, threads: int) -> Any:
    """The chain of such arrays."""
    if len(held) == 4:
        there, classes, mean, ends = held
        return Chain(there, classes, mean, ends, threads)
    return Rows(n_states, **dict(zip(STORED, held, strict=True)), threads=threads)
