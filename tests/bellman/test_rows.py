"""(ℓ∞, ∞), which walks over sorted rows: sorting, slopes of a row, and bounds against definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reference
from cases import cases
from drmdp.layout.sorting import sort_ahead
from kernels import assert_close, over, sweeps, units

PAIRS = over(("linf", math.inf))


# ---------------------------------------------------------------------- parts


@pytest.mark.parametrize("kind", ["random", "ties", "ascending", "descending", "constant"])
def test_entries_are_sorted_as_far_as_asked(kind):
    rng = np.random.default_rng(5)
    for n in (1, 2, 19, 20, 21, 60, 500):
        key = rng.integers(n // 5 + 1, size=n) * 1.0 if kind == "ties" else rng.normal(size=n)
        key = {"ascending": np.sort(key), "descending": -np.sort(key), "constant": key * 0}.get(kind, key)
        given, entry, stack, done = key.copy(), np.arange(n), np.zeros(n + 2, dtype=np.int64), 0
        stack[:2] = 1, n
        want = np.sort(given)
        while done < n:
            more = sort_ahead(key, entry, stack, done)
            assert more > done
            done = more
            np.testing.assert_array_equal(key[:done], want[:done])
        np.testing.assert_array_equal(given[entry], want)
        assert np.unique(entry).size == n


def bend(y, z, r):
    """Rows (…, S) that gain most in z, each probability changing by at most r."""
    down = np.argsort(-z, axis=-1, kind="stable")
    p = np.minimum(np.take_along_axis(y, np.broadcast_to(down, y.shape), axis=-1), r)
    room, supply = p + r, p.sum(axis=-1, keepdims=True)
    taken = np.clip(supply - (np.cumsum(room, axis=-1) - room), 0.0, room)
    change = np.empty_like(y)
    np.put_along_axis(change, np.broadcast_to(down, y.shape), taken - p, axis=-1)
    return y + change


# ---------------------------------------------------------------------- many


def check_alone(case, rng, tol):
    """Check a case against the definition of (ℓ∞, ∞)."""
    model, ball, value = case.model, case.ball, case.value
    own, scale = ~model.terminal, units(model, ball, value)
    z, allowed = np.asarray(reference.stakes(model, value), dtype=float), reference.support(model, ball)
    y = reference.dense_kernels(model)[model.weights > 0]
    w = model.weights[model.weights > 0]
    radius = np.broadcast_to(ball.radius, own.shape)
    for out, fixed, memory in sweeps(case, rng, tol):
        assert_close(out.upper, fixed.lower, tol, scale, own)
        lower = np.full(own.shape, np.inf)
        for s, a in np.argwhere(model.available & own[:, None]):
            t = allowed[s, a]
            rows, stake = y[:, s, a, t], z[s, a, t]
            lower[s] = min(lower[s], w @ bend(rows, stake, radius[s]) @ stake)
        assert (memory.by_kernel[own] == radius[own, None]).all()
        assert_close(np.maximum(out.upper, lower), lower, tol, scale, own)


@PAIRS
def test_bounds_follow_from_what_is_remembered(pair):
    rng = np.random.default_rng(1)
    for case in cases(pair, 60, seed=11):
        check_alone(case, rng, 1e-10)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10))
@PAIRS
def test_bounds_follow_from_what_is_remembered_in_many_cases(pair, seed):
    rng = np.random.default_rng(seed)
    for case in cases(pair, 2500, seed=100 + seed):
        check_alone(case, rng, 1e-9)
