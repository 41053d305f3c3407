"""Input and output of sweeps beside the data: warm starts, witnesses, results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.sets.registry import Keeps


class SweepMemory(NamedTuple):
    """Warm starts of the next sweep, also for nature's answer and the certificate; see each
    family.
    """

    by_action: Array  # (S, A)
    by_kernel: Array  # (S, N) or (S, 0); (S, A·N) with a budget for each action
    by_row: Array  # (S, A, N), (S, A, width) or (S, A, width·N)


def shapes_of(S: int, A: int, N: int, keeps: Keeps) -> tuple[tuple[int, ...], ...]:
    """Shapes of the three parts."""
    kernels = (N if keeps.by_kernel else 0) * (A if keeps.by_pair else 1)
    rows = (keeps.width or 1) * (N if keeps.by_kernel or not keeps.width else 1)
    return (S, A), (S, kernels), (S, A, rows) if keeps.by_row else (S, 0, 0)


def empty_memory(S: int, A: int, N: int, keeps: Keeps) -> SweepMemory:
    """Memory before the first sweep."""
    by_action, by_kernel, by_row = shapes_of(S, A, N, keeps)
    return SweepMemory(np.zeros(by_action), np.ones(by_kernel), np.zeros(by_row))


class SweepOutput(NamedTuple):
    """Results of a sweep; v is without its level."""

    upper: Array  # (S,) U ≥ F^x(v)
    lower: Array  # (S,) L ≤ F(v)
    policy: Array  # (S, A); read as a warm start by some routines
    passes: Array  # (S,) passes over the candidate rows


def empty_output(policy: Array) -> SweepOutput:
    """Results before a sweep, from a policy."""
    S = len(policy)
    return SweepOutput(np.zeros(S), np.zeros(S), np.array(policy, dtype=np.float64), np.zeros(S))


def of_states(arrays: Any, states: slice) -> Any:
    """A range of states of a named tuple of arrays by state."""
    return arrays if states.start is None else type(arrays)(*(array[states] for array in arrays))


def memory_by_pair(memory: SweepMemory) -> SweepMemory:
    """Views of the memory of all pairs, by state of `drmdp.layout.layout.by_pair`."""
    by_action, by_kernel, by_row = memory
    pairs = by_action.size
    kernels = by_kernel.reshape(pairs, -1) if by_kernel.size else np.zeros((pairs, 0))
    rows = by_row.reshape(pairs, 1, -1) if by_row.size else np.zeros((pairs, 0, 0))
    return SweepMemory(by_action.reshape(pairs, 1), kernels, rows)
