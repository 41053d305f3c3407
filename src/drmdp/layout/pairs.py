"""Every pair (s, a) as a state with one action: what a set with a budget for each action is solved and proved on.

The arrays are those of the model; pair s·A + a becomes state s·A + a.
"""

from __future__ import annotations

import numpy as np

from drmdp.layout.layout import Layout
from drmdp.layout.memory import Memory


def by_pair(layout: Layout) -> Layout:
    """The layout of the pairs."""
    radius = np.ascontiguousarray(np.broadcast_to(layout.radius, layout.available.shape)).reshape(-1)
    return layout._replace(available=layout.available.reshape(-1, 1), costs=layout.costs.reshape(-1, 1), radius=radius)


def memory_by_pair(memory: Memory, n_kernels: int) -> Memory:
    """Views of the memory of all pairs, by state of `by_pair`."""
    by_action, by_kernel, by_row = memory
    pairs = by_action.size
    kernels = by_kernel.reshape(pairs, -1) if by_kernel.size else np.zeros((pairs, 0))
    rows = by_row.reshape(pairs, 1, -1) if by_row.size else np.zeros((pairs, 0, 0), dtype=by_row.dtype)
    return Memory(by_action.reshape(pairs, 1), kernels, rows)
