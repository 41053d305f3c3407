"""Vectors of workers: the numbers of NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from drmdp.cluster.engine import Engine, Holding, Vector, Whole
from drmdp.cluster.operator import WorkerChain
from drmdp.cluster.worker import Worker
from drmdp.core.compact import STORED, rows_of
from drmdp.core.vectors import are_finite, by_state, dots, ends, extent_of, survey

S = 203


class Here(Engine):
    """Workers of three ranges in this process, and the calls that were made."""

    def __init__(self):
        source = SimpleNamespace(n_states=S, ranges=lambda parts: [(0, 60), (60, 63), (63, S)])
        super().__init__(source, None, 3, 1)
        self.workers = [Worker.__new__(Worker) for _ in self.ranges]
        for worker in self.workers:
            worker._source, worker._threads = source, 1
        self.made = []

    def _run(self, name, args, n):
        def given(arg, k):
            if isinstance(arg, tuple):
                return tuple(given(part, k) for part in arg)
            if isinstance(arg, Whole):
                return np.concatenate(arg.vector.pieces)
            return arg.pieces[k] if isinstance(arg, Vector | Holding) else arg

        told = [tuple(given(arg, k) for arg in args) for k in range(3)]
        self.made.append(name)
        found = [
            getattr(worker, name)(*own) for worker, own in zip(self.workers, told, strict=True)
        ]
        answers = [answer for _, answer in found]
        if n is None:
            return [arrays for arrays, _ in found], answers
        return [Vector(self, [arrays[j] for arrays, _ in found]) for j in range(n)], answers

    def gather(self, vector):
        return np.concatenate(vector.pieces)

    def scatter(self, values):
        return Vector(self, [values[lo:hi] for lo, hi in self.ranges])

    close = None


@pytest.fixture
def engine():
    return Here()


def twice_over(a, x, b):
    return a - x * b


def test_a_formula_has_the_numbers_of_numpy(engine):
    a, b = np.random.default_rng(0).normal(size=(2, S))
    v, w = engine.scatter(a), engine.scatter(b)
    found = np.where(v > 0.5, np.abs(v - 3 * w), w / 7)
    assert found.max() == np.where(a > 0.5, np.abs(a - 3 * b), b / 7).max()
    assert np.array_equal(np.asarray(by_state(twice_over, v, 0.3, w)), twice_over(a, 0.3, b))


def test_ends_are_asked_for_once_and_tell_sizes_and_what_is_no_number(engine):
    for odd in (0.0, np.nan, np.inf, -np.inf):
        a = np.random.default_rng(1).normal(size=S)
        a[70] = odd
        v = engine.scatter(a)
        for _ in range(2):
            for found, want in ((v.max(), a.max()), (v.min(), a.min())):
                assert found == want or (np.isnan(found) and np.isnan(want))
        assert engine.made == ["extremes"]
        assert np.isfinite(v).all() == np.isfinite(a).all()
        assert np.abs(v).max() == np.abs(a).max() or np.isnan(odd)
        engine.made.clear()


def test_ends_of_several_are_asked_for_in_one_call(engine):
    a, b = np.random.default_rng(7).normal(size=(2, S))
    v, w = engine.scatter(a), engine.scatter(b)
    want = [(x.min(), x.max()) for x in (a, a - b, np.maximum(a, -b))]
    assert ends(v, v - w, np.maximum(v, -w)) == want == ends(a, a - b, np.maximum(a, -b))
    assert engine.made.count("extremes") == 1
    assert ends(v, w) == [want[0], (b.min(), b.max())]
    assert engine.made.count("extremes") == 2
    odd = np.where(a > 0, np.nan, a)
    assert np.isnan(ends(engine.scatter(odd), v)[0]).all()


def test_a_look_at_a_sweep_tells_what_arrays_tell(engine):
    rng = np.random.default_rng(8)
    value, low, high = rng.normal(size=S), rng.normal(size=S) - 1.0, rng.normal(size=S) + 2.0
    v, w, x = map(engine.scatter, (value, low, high))
    assert survey(v, w, x) == survey(value, low, high)
    assert extent_of(w, x) == extent_of(low, high)
    assert are_finite(w, x)


def test_a_product_is_an_exchange(engine):
    rng = np.random.default_rng(5)
    a, b, matrix = (
        rng.normal(size=S),
        rng.normal(size=S),
        sparse.random_array((S, S), density=0.1, rng=rng).tocsr(),
    )
    rows = [rows_of(matrix[lo:hi]) for lo, hi in engine.ranges]
    chain = WorkerChain(
        engine, Holding([tuple(getattr(own, name) for name in STORED) for own in rows])
    )
    v, w = engine.scatter(a), engine.scatter(b)
    found = by_state(twice_over, v, 0.9, chain @ v)
    want = a - 0.9 * (rows_of(matrix) @ a)
    assert dots((found, w), (w - found, found)) == dots((want, b), (b - want, want))
    assert np.array_equal(np.asarray(found), want)
    assert (engine.traffic.exchanges, engine.traffic.bytes) == (1, 2 * 8 * S)


def test_any_formula_has_the_bits_of_numpy(engine):
    rng = np.random.default_rng(4)
    plain = [rng.normal(size=S) for _ in range(3)]
    spread = [engine.scatter(values) for values in plain]
    for _ in range(300):
        i, j = rng.integers(len(plain), size=2)
        name = rng.choice(["add", "subtract", "multiply", "maximum", "minimum"])
        plain.append(getattr(np, name)(plain[i], plain[j]))
        spread.append(getattr(np, name)(spread[i], spread[j]))
        if rng.random() < 0.3:
            k = rng.integers(len(plain))
            assert spread[k].min() == plain[k].min()
        if rng.random() < 0.2:
            k, m = rng.integers(len(plain), size=2)
            assert dots((spread[k], spread[m])) == dots((plain[k], plain[m]))
        if len(plain) > 12:
            drop = rng.integers(len(plain))
            del plain[drop], spread[drop]
    for values, vector in zip(plain, spread, strict=True):
        assert np.array_equal(np.asarray(vector), values)
