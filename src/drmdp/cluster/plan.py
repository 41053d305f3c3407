"""Memory, traffic and time of a run past one machine, estimated before it begins.

For S states in W ranges, n of them and e listed next states in the largest, with A actions, N
kernels, d bytes a probability and m bytes a state of what a sweep keeps (`drmdp.layout.memory`):

====================== =============================================================================
model, mapped          N d e + 4 e + 8 A n + costs: pages of files, which the system drops when
                       memory is short
worker                 8 e (mean kernel) + 3 (m + 8 A) n (the best sweep, the last and the next) +
                       12 e (chain, at most) + 8 · 24 n (vectors) + 8 · 4 S (a vector of all
                       states, and what a sweep makes of it; `ORDER` S more with support "all") +
                       `LIBRARIES`
driver                 numbers and references; with `Local` it is the worker, and keeps vectors of
                       all S states out of files, and of the ranges that are open
                       4 e + (14 A + 48) n, as many as `OPEN` bytes hold
an exchange            8 S (W − 1) bytes, received by all workers together
exchanges of a run     one for each sweep, proof and product, and for each chain that depends on v
                       (`EXCHANGED`)
====================== =============================================================================

**Time**, in CPU seconds of one thread, is linear: nanoseconds for each stored probability (N e),
listed next state (e) or state (n), measured on one machine. How many calls a run makes depends on
the problem; `USUAL` is a model whose chain mixes fast (a garnet with discount .95, to a relative
1e-3). Slow mixing multiplies the products, up to tens of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp.cluster.source import DirectorySource, Ranges
from drmdp.layout.memory import shapes_of
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of

EXCHANGED = ("sweep", "prove", "chain", "product", "sweep_mean", "prove_mean")
"""Calls that send a vector of all states."""
USUAL: dict[str, tuple[int, float, float, float]] = {
    "survey": (1, 11.0, 0.0, 0.0),
    "digests": (1, 5.0, 0.0, 0.0),
    "sweep_mean": (4, 0.0, 25.0, 0.0),
    "chain_mean": (3, 0.0, 18.0, 0.0),
    "sweep": (3, 12.0, 0.0, 0.0),
    "chain": (2, 6.5, 0.0, 0.0),
    "product": (63, 0.0, 4.5, 60.0),
    "prove": (1, 11.0, 0.0, 0.0),
}
"""How often a usual run makes a call, and nanoseconds of it for each stored probability, listed
next state and state; a product's last number is the method's work on vectors.
"""
VECTORS, WHOLE, COPIES, ENTRY = 24, 4, 3, 12
LIBRARIES = 150_000_000
"""Bytes of the interpreter, its libraries and loaded kernels, in no file."""
OPEN = 2**28
"""Bytes that ranges which stay open may take together, with `Local`."""
ORDER = 44
"""Bytes a state for the order of v, with support "all"."""


def exchanges(calls: Mapping[str, int]) -> int:
    """Number of vectors that so many calls send to all workers."""
    return sum(calls.get(name, 0) for name in EXCHANGED)


@dataclass(frozen=True)
class WorkEstimate:
    """Bytes of a run, and CPU seconds of one thread."""

    ranges: int
    states: int  # of the largest range
    mapped: int  # bytes of the model that a worker maps
    worker: int  # bytes of a worker that are in no file
    scratch: int  # bytes in files without a name, with `Local`
    checkpoint: int  # bytes of a checkpoint; two are kept, and for a moment three
    out: int  # bytes of the result
    exchange: int  # bytes that all workers receive in an exchange
    exchanges: int  # of a usual run
    seconds: float  # CPU seconds of a worker in such a run, on one thread

    @property
    def bytes(self) -> int:
        """Bytes that all workers receive in a usual run."""
        return self.exchange * self.exchanges


def stay_open(source: DirectorySource, ambiguity: AmbiguitySet, ranges: Ranges) -> list[float]:
    """Bytes of the first ranges, those that stay open where all are in one process; none where the
    data of a set are more than the model's.
    """
    if entry_of(ambiguity).layout:
        return []
    sizes = [source.opened(hi - lo, int(np.diff(source.entries([lo, hi]))[0])) for lo, hi in ranges]
    return sizes[: int(np.count_nonzero(np.cumsum(sizes) <= OPEN))]


def plan(
    source: DirectorySource, ambiguity: AmbiguitySet, parts: int, one_process: bool
) -> WorkEstimate:
    """Estimate a run with so many ranges; with `one_process` they take turns."""
    head = source.head
    S, A, N = head.n_states, head.n_actions, head.n_kernels
    ranges = source.ranges(parts)
    ends = source.entries([0, *(hi for _, hi in ranges)])
    n, e = max(hi - lo for lo, hi in ranges), int(np.diff(ends).max())
    keeps = entry_of(ambiguity).keeps
    sweep_bytes = 8 * (sum(int(np.prod(shape)) for shape in shapes_of(1, A, N, keeps)) + A)
    exchanged = 8 * WHOLE * S + (ORDER * S if ambiguity.support == "all" else 0)
    mapped = source.mapped(n, e)
    stays = COPIES * sweep_bytes * S + (8 + ENTRY) * int(ends[-1])
    still = int(sum(stay_open(source, ambiguity, ranges))) if one_process else 0
    if one_process:
        private = still + sweep_bytes * n + 8 * VECTORS * S
    else:
        private = COPIES * sweep_bytes * n + (8 + ENTRY) * e + 8 * VECTORS * n
    best = sweep_bytes * S + 8 * S * 8
    nanoseconds = sum(np.dot(each, (N * e, e, n)) * times for times, *each in USUAL.values())
    return WorkEstimate(
        len(ranges),
        n,
        mapped,
        LIBRARIES + private + exchanged,
        stays if one_process else 0,
        2 * best,
        best + 8 * S * (2 + A),
        8 * S * (len(ranges) - 1),
        exchanges({name: times for name, (times, *_) in USUAL.items()}),
        float(nanoseconds) * 1e-9 * (len(ranges) if one_process else 1),
    )


def fields(estimate: WorkEstimate) -> dict[str, Any]:
    """For a JSON document."""
    return {**vars(estimate), "bytes": estimate.bytes}
