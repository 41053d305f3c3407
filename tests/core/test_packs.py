"""Packs hand a kernel what they hold, and `direct` calls it."""

from typing import Any, NamedTuple

import numpy as np

from drmdp.core.compiled import KERNEL, Entry, call, njit
from drmdp.core.packs import Pack, direct, opened


class Inner(NamedTuple):
    """Of every kind that a table holds."""

    table: Any
    whole: Any
    number: float
    count: int
    flag: bool


class Outer(NamedTuple):
    """Tuples in a tuple."""

    inner: Inner
    empty: Any
    pair: tuple[Any, Any]
    entry: Any


@njit(**KERNEL)
def _double(a):
    """Double a."""
    for k in range(a.size):
        a[k] *= 2.0


@njit(**KERNEL)
def _use(pack, x):
    """Read all, and write."""
    outer = opened(pack)
    inner = outer.inner
    outer.pair[0][1] = x + inner.number + inner.count
    call(outer.entry, (outer.pair[1],))
    total = 0.0
    for i in range(inner.table.shape[0]):
        for j in range(inner.table.shape[1]):
            total += inner.table[i, j] * inner.whole[j]
    return total, inner.flag, outer.empty.size, len(outer)


def test_a_kernel_reads_and_writes_what_a_pack_holds():
    table = np.arange(6, dtype=np.float32).reshape(2, 3)[::-1]  # strides that are not those of rows
    table.setflags(write=False)
    first, second = np.zeros(3), np.ones(2)
    for flag in (True, False):
        inner = Inner(table, np.array([1, 10, 100], dtype=np.int32), -0.25, -3, flag)
        pack = Pack(Outer(inner, np.zeros((0, 4)), (first, second), Entry(_double, second)))
        for run in (_use, direct(_use, pack, 1.0)):
            assert run(pack, 7.0) == (float(table.sum(axis=0) @ inner.whole), flag, 0, 4)
    assert first.tolist() == [0.0, 3.75, 0.0]
    assert second.tolist() == [16.0, 16.0]


def test_packs_of_a_kind_share_a_type_and_show_what_changes():
    some, others = np.zeros(2), np.ones(5)
    inner = Inner(np.zeros((1, 1), dtype=np.float32), np.zeros(1, dtype=np.int32), 0.0, 0, True)
    packs = [Pack(Outer(inner, np.zeros((0, 4)), (np.zeros(3), own), Entry(_double, own))) for own in (some, others)]
    assert packs[0].kind == packs[1].kind
    some[:] = 3.0
    _use(packs[0], 0.0)
    assert some.tolist() == [6.0, 6.0]
