"""Rows of kernels as distributions: checked, and scaled where rounding put them out.

A row passes if its entries are finite and not negative and their sum is within a tolerance of 1. A
sum that differs from 1 by more than the rounding of a sum is divided out, and a note says how many
there were. The sum is the double that is nearest to the exact one, so that whoever reads the same
file has the same numbers (`drmdp_check` does). With `normalize` every positive sum passes, and the
note says which row was off most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.storage import ROW_SUM_TOL_FLOAT32, Kernels, rounding
from drmdp.core.validation import check_probabilities, names_of
from drmdp.errors import InputError, first_place
from drmdp.ui.text import count


@dataclass(frozen=True)
class Labels:
    """Names of kernels, states and actions; rows are counted from the first action of state `first`
    on.
    """

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


def labels_of(
    sizes: tuple[int, int, int], states: Any, actions: Any, kernels: Any, what: str = "states"
) -> Labels:
    """Checked names of S states, A actions and N kernels; `what` the argument of the states is
    called.
    """
    S, A, N = sizes
    state_names, action_names = names_of(what, states, S), names_of("actions", actions, A)
    return Labels(names_of("kernel_names", kernels, N), state_names, action_names)


@dataclass
class RowScaling:
    """Account of the rows divided by their sums, and of the largest deviation."""

    normalize: bool = False
    n: int = 0
    most: float = 0.0
    row: str = ""

    @property
    def note(self) -> tuple[str, ...]:
        """A note of them, if there are any."""
        if not self.n:
            return ()
        most = f"the largest deviation from 1 was {self.most:.1e}"
        text = f"{count(self.n, 'row')} renormalised; {most}"
        return (f"{text}, of {self.row}" if self.normalize else text,)

    def add(self, off: Array, rounded: Array, sums: Array, first: int, labels: Labels) -> None:
        """Count the scaled rows of a piece; `first` is the number pair·N + kernel of its first
        row.
        """
        self.n += int((off > rounded).sum())
        row = int(np.argmax(off))
        if off[row] > self.most:
            place = labels.row(*divmod(first + row, len(labels.kernels)))
            self.most, self.row = float(off[row]), f"{place}, which summed to {sums[row]:.6g}"


def check(
    kernels: Kernels, available: BoolArray, labels: Labels, tol: float | None, scaled: RowScaling
) -> Kernels:
    """Verify every row of every available pair; returns the kernels with scaled rows, and counts
    these in `scaled`.

    A row may be off by `tol`; with None only by the rounding of its sum, and nothing is scaled. The
    kernels may be those of some states only, as `labels` says.
    """
    N = kernels.n_kernels
    closed = (kernels.lengths > 0) & ~available.ravel()
    if at := first_place(closed):
        raise InputError(f"kernels: {labels.pair(*at)} is not available but has stored rows")
    single = kernels.data.dtype != np.float64  # such rows stand for themselves over their sum
    data, open_pairs = kernels.data, available.ravel()
    for lo, hi in kernels.pieces():
        part, first = kernels.part(lo, hi), N * int(kernels.indptr[lo])
        place = partial(_place, kernels, labels, first)
        check_probabilities("kernels: probabilities", part.data, place)
        sums = part.sums()
        checked, rounded = np.repeat(open_pairs[lo:hi], N), rounding(np.repeat(part.lengths, N))
        if not single:
            doubtful = checked & (np.abs(sums - 1) > rounded / 2) & (sums < np.inf)
            for row in np.flatnonzero(doubtful).tolist():
                sums[row] = part.exact_sum(row)
        off = np.where(checked, np.abs(sums - 1), 0)
        bad = off > (ROW_SUM_TOL_FLOAT32 if single else rounded if tol is None else tol)
        if scaled.normalize:
            bad = (off > 0) & ~((sums > 0) & (sums < np.inf))
        if at := first_place(bad):
            pair, i = divmod(at[0], N)
            fault = sum_fault(float(sums[at]), scaled.normalize)
            raise InputError(f"kernels: {labels.row(lo + pair, i)} {fault}")
        if not single and (off > rounded).any():
            data = data.copy() if data is kernels.data else data
            divisors = np.repeat(np.where(off > rounded, sums, 1.0), np.repeat(part.lengths, N))
            data[first : first + part.data.size] /= divisors
            scaled.add(off, rounded, sums, lo * N, labels)
    return kernels if data is kernels.data else replace(kernels, data=data)


def _place(kernels: Kernels, labels: Labels, first: int, k: int) -> str:
    """Name the entry that is k places behind the first one."""
    pair, i, t = kernels.entry(first + k)
    return f"{labels.row(pair, i)}, next state {labels.states[t]!r}"


def sum_fault(total: float, normalize: bool = False) -> str:
    """Fault of the sum of a row, and the cure if it is near 1."""
    if normalize:
        return f"sums to {total!r}, which cannot be scaled to 1"
    cure = "; normalize=True scales rows to 1" if 0.9 <= total <= 1.1 else ""
    return f"sums to {total!r}, not 1{cure}"
