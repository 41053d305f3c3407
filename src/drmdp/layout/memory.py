"""What a sweep leaves behind, and what it finds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.sets.registry import Kept


class Memory(NamedTuple):
    """What a routine leaves behind for the next sweep, for nature's answer and for the certificate; see each family."""

    by_action: Array  # (S, A)
    by_kernel: Array  # (S, N) or (S, 0); (S, A·N) with a budget for each action
    by_row: Array  # (S, A, N), (S, A, width) or (S, A, width·N)


def shapes_of(S: int, A: int, N: int, keeps: Kept) -> tuple[tuple[int, ...], ...]:
    """Shapes of the three parts."""
    kernels = (N if keeps.by_kernel else 0) * (A if keeps.by_pair else 1)
    rows = (keeps.width or 1) * (N if keeps.by_kernel or not keeps.width else 1)
    return (S, A), (S, kernels), (S, A, rows) if keeps.by_row else (S, 0, 0)


def empty_memory(S: int, A: int, N: int, keeps: Kept) -> Memory:
    """Memory before the first sweep."""
    by_action, by_kernel, by_row = shapes_of(S, A, N, keeps)
    return Memory(np.zeros(by_action), np.ones(by_kernel), np.zeros(by_row))


class Out(NamedTuple):
    """What a sweep finds; v is without its level."""

    upper: Array  # (S,) U ≥ F^x(v)
    lower: Array  # (S,) L ≤ F(v)
    policy: Array  # (S, A); read as a warm start by some routines
    passes: Array  # (S,) passes over the candidate rows


def of_states(arrays: Any, own: slice) -> Any:
    """Some states of a memory, of what a sweep finds, or of what is proved."""
    return arrays if own.start is None else type(arrays)(*(array[own] for array in arrays))
