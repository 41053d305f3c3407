"""Rows of kernels are distributions: they are checked, and those that rounding put out are scaled.

A row passes if its entries are finite and not negative and their sum is within a tolerance of 1. A sum that differs from 1
by more than the rounding of a sum is divided out, and a note says how many there were. The sum is the double that is nearest to the exact one, so that
whoever reads the same file has the same numbers (`drmdp_check` does). With `normalize` every
positive sum passes, and the note says which row was off most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.storage import ROW_SUM_TOL_FLOAT32, Kernels, rounding
from drmdp.core.text import count
from drmdp.errors import InputError


@dataclass(frozen=True)
class Labels:
    """Names of what a model is made of; rows are counted from the first action of state `first` on."""

    kernels: Sequence[Any]
    states: Sequence[Any]
    actions: Sequence[Any]
    first: int = 0

    def pair(self, pair: int) -> str:
        """Name state and action of a pair."""
        s, a = divmod(pair, len(self.actions))
        return f"state {self.states[self.first + s]!r}, action {self.actions[a]!r}"

    def row(self, pair: int, i: int) -> str:
        """Name row `pair` of kernel i."""
        return f"kernel {self.kernels[i]!r}, {self.pair(pair)}"


@dataclass
class Scaled:
    """Rows divided by their sums so far, and the one that was off most."""

    normalize: bool = False
    n: int = 0
    most: float = 0.0
    row: str = ""

    @property
    def note(self) -> tuple[str, ...]:
        """What there is to say of them."""
        if not self.n:
            return ()
        text = f"{count(self.n, 'row')} renormalised; the largest deviation from 1 was {self.most:.1e}"
        return (f"{text}, of {self.row}" if self.normalize else text,)


def check(kernels: Kernels, available: BoolArray, labels: Labels, tol: float | None, scaled: Scaled) -> Kernels:
    """Verify every row of every available pair; returns the kernels with scaled rows, of which `scaled` keeps account.

    A row may be off by `tol`; with None only by the rounding of its sum, and nothing is scaled. The kernels may be those of
    some states only, as `labels` says.
    """
    N = kernels.n_kernels
    closed = (kernels.lengths > 0) & ~available.ravel()
    if closed.any():
        where = labels.pair(int(np.argmax(closed)))
        raise InputError(f"kernels: {where} is not available but has stored rows")
    single = kernels.data.dtype != np.float64  # such rows stand for what they are after division by their sum
    data = kernels.data
    for lo, hi in kernels.pieces():
        part, first = kernels.part(lo, hi), N * int(kernels.indptr[lo])
        _check_entries(kernels, part, first, labels)
        sums = part.sums()
        own, rounded = np.repeat(available.ravel()[lo:hi], N), rounding(np.repeat(part.lengths, N))
        for row in () if single else np.flatnonzero(own & (np.abs(sums - 1) > rounded / 2) & (sums < np.inf)).tolist():
            sums[row] = part.exact_sum(row)
        off = np.where(own, np.abs(sums - 1), 0)
        bad = off > (ROW_SUM_TOL_FLOAT32 if single else rounded if tol is None else tol)
        if scaled.normalize:
            bad = (off > 0) & ~((sums > 0) & (sums < np.inf))
        if bad.any():
            row = int(np.argmax(bad))
            pair, i = divmod(row, N)
            raise InputError(f"kernels: {labels.row(lo + pair, i)} {fault(float(sums[row]), scaled.normalize)}")
        if not single and (off > rounded).any():
            data = data.copy() if data is kernels.data else data
            data[first : first + part.data.size] /= np.repeat(
                np.where(off > rounded, sums, 1.0), np.repeat(part.lengths, N)
            )
            _count(scaled, off, rounded, sums, lo * N, labels)
    return kernels if data is kernels.data else replace(kernels, data=data)


def _check_entries(kernels: Kernels, part: Kernels, first: int, labels: Labels) -> None:
    for bad, rule in ((~np.isfinite(part.data), "must be finite"), (part.data < 0, "must not be negative")):
        if bad.any():
            flat, N = first + int(np.argmax(bad)), kernels.n_kernels
            pair = int(np.searchsorted(N * kernels.indptr, flat, side="right")) - 1
            i, j = divmod(flat - N * int(kernels.indptr[pair]), int(kernels.lengths[pair]))
            t = int(kernels.indices[int(kernels.indptr[pair]) + j])
            where = f"{labels.row(pair, i)}, next state {labels.states[t]!r} has {float(kernels.data[flat])!r}"
            raise InputError(f"kernels: probabilities {rule}: {where}")


def fault(total: float, normalize: bool = False) -> str:
    """What is wrong with the sum of a row, and the cure if it is near 1."""
    if normalize:
        return f"sums to {total!r}, which cannot be scaled to 1"
    cure = "; normalize=True scales rows to 1" if 0.9 <= total <= 1.1 else ""
    return f"sums to {total!r}, not 1{cure}"


def _count(scaled: Scaled, off: Array, rounded: Array, sums: Array, first: int, labels: Labels) -> None:
    """Keep account of the rows of one piece that were scaled; `first` is the number pair·N + kernel of its first row."""
    scaled.n += int((off > rounded).sum())
    row = int(np.argmax(off))
    if off[row] > scaled.most:
        scaled.most = float(off[row])
        where = labels.row(*divmod(first + row, len(labels.kernels)))
        scaled.row = f"{where}, which summed to {float(sums[row]):.6g}"
