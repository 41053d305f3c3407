"""Kernels on a layout of some states only, whose columns are those of all states."""

from __future__ import annotations

import math

import numpy as np
import pytest

import drmdp
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import SweepOutput, empty_memory
from drmdp.layout.point import point_at
from drmdp.operators.native import family_of
from drmdp.sets import PAIRS
from drmdp.sets.registry import entry_of
from kernels import LAYOUTS, larger, run

START, STOP = 31, 38


def cut(layout, start, stop):
    """The layout of the states start … stop − 1, numbered from 0; next states keep their
    numbers.
    """
    A, N = layout.available.shape[1], layout.weights.size
    lo, hi = layout.indptr[start * A], layout.indptr[stop * A]
    return layout._replace(
        indptr=layout.indptr[start * A : stop * A + 1] - lo,
        indices=layout.indices[lo:hi],
        data=layout.data[N * lo : N * hi],
        mean=layout.mean[lo:hi],
        available=layout.available[start:stop],
        costs=layout.costs[start:stop],
        next_costs=layout.next_costs[lo:hi],
        radius=layout.radius[start:stop],
    )


def swept(family, keeps, layout, point):
    """An update, a second one from what it leaves behind, an evaluation, and nature's rows."""
    S, A = layout.available.shape
    memory = empty_memory(S, A, layout.weights.size, keeps)
    out = SweepOutput(np.zeros(S), np.zeros(S), np.zeros((S, A)), np.zeros(S))
    kept = []
    for fixed in (False, False, True):
        run(family, fixed, layout, point, memory, out, 1e-11)
        kept += [array.copy() for array in (*out, *memory)]
    return kept


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("pair", PAIRS, ids=[f"{metric}-{order:g}" for metric, order in PAIRS])
def test_a_range_of_its_own_changes_nothing(pair, kind):
    """The last states of 40: an index by the number of a next state is beyond an array made for the
    range.
    """
    model, support, value = larger(kind)
    ambiguity = drmdp.Wasserstein(0.2, *pair, support=support)
    entry, layout = entry_of(ambiguity), lay_out(model, ambiguity)
    family = family_of(ambiguity)
    part = cut(layout, START, STOP)
    assert part.indices.max() >= STOP - START
    v = value - value.mean()
    for here in (v, np.roll(v, 3)):
        whole = swept(family, entry.keeps, layout, point_at(layout, here))
        alone = swept(family, entry.keeps, part, point_at(part, here))
        for a, b in zip(whole, alone, strict=True):
            np.testing.assert_array_equal(
                a[START:STOP] if math.prod(a.shape) else a[: STOP - START], b
            )
