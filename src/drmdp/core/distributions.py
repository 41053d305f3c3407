"""Rows of kernels are distributions: they are checked, and those that rounding put out are scaled.

A row passes if its entries are finite and not negative and their sum is within a tolerance of 1. A sum that differs from 1
by more than the rounding of the sum itself is divided out, and a note says how many there were. With `normalize` every
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
    """Names of what a model is made of."""

    kernels: Sequence[Any]
    states: Sequence[Any]
    actions: Sequence[Any]

    def row(self, pair: int, i: int) -> str:
        """Name row `pair` of kernel i."""
        s, a = divmod(pair, len(self.actions))
        return f"kernel {self.kernels[i]!r}, state {self.states[s]!r}, action {self.actions[a]!r}"


@dataclass
class _Scaled:
    """Rows divided by their sums so far, and the one that was off most."""

    data: Array
    n: int = 0
    most: float = 0.0
    sum: float = 1.0
    row: int = 0  # pair·N + kernel


def check(
    kernels: Kernels, available: BoolArray, labels: Labels, tol: float, normalize: bool
) -> tuple[Kernels, tuple[str, ...]]:
    """Verify every row of every available pair; returns the kernels with scaled rows, and what there is to say of them."""
    N = kernels.n_kernels
    closed = (kernels.lengths > 0) & ~available.ravel()
    if closed.any():
        s, a = divmod(int(np.argmax(closed)), kernels.n_actions)
        where = f"state {labels.states[s]!r}, action {labels.actions[a]!r}"
        raise InputError(f"kernels: {where} is not available but has stored rows")
    single = kernels.data.dtype != np.float64  # such rows stand for what they are after division by their sum
    tol = ROW_SUM_TOL_FLOAT32 if single else tol
    found = _Scaled(kernels.data)
    for lo, hi in kernels.pieces():
        part, first = kernels.part(lo, hi), N * int(kernels.indptr[lo])
        _check_entries(kernels, part, first, labels)
        sums = part.sums()
        off = np.where(np.repeat(available.ravel()[lo:hi], N), np.abs(sums - 1), 0)
        bad = (off > 0) & ~((sums > 0) & (sums < np.inf)) if normalize else off > tol
        if bad.any():
            row = int(np.argmax(bad))
            pair, i = divmod(row, N)
            raise InputError(f"kernels: {labels.row(lo + pair, i)} {fault(float(sums[row]), normalize)}")
        if not single:
            _scale(found, part, first, sums, off, lo * N)
    if found.n == 0:
        return kernels, ()
    return replace(kernels, data=found.data), (_note(found, labels, N, normalize),)


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


def _scale(found: _Scaled, part: Kernels, first: int, sums: Array, off: Array, first_row: int) -> None:
    """Divide the rows of one part by their sums where rounding of the sum does not explain them."""
    lengths = np.repeat(part.lengths, part.n_kernels)
    scaled = off > rounding(lengths)
    if not scaled.any():
        return
    if found.n == 0:
        found.data = found.data.copy()
    found.data[first : first + part.data.size] /= np.repeat(np.where(scaled, sums, 1.0), lengths)
    found.n += int(scaled.sum())
    row = int(np.argmax(off))
    if off[row] > found.most:
        found.most, found.sum, found.row = float(off[row]), float(sums[row]), first_row + row


def _note(found: _Scaled, labels: Labels, N: int, normalize: bool) -> str:
    text = f"{count(found.n, 'row')} renormalised; the largest deviation from 1 was {found.most:.1e}"
    return f"{text}, of {labels.row(*divmod(found.row, N))}, which summed to {found.sum:.6g}" if normalize else text
