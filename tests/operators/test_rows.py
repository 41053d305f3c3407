"""(ℓ∞, ∞): bounds against the definition, from any memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reference
from cases import cases
from kernels import assert_close, over, sweeps, units

PAIRS = over(("linf", math.inf))


def bend(y, z, r):
    """Rows (…, S) that gain most in z, each probability changing by at most r."""
    down = np.argsort(-z, axis=-1, kind="stable")
    p = np.minimum(np.take_along_axis(y, np.broadcast_to(down, y.shape), axis=-1), r)
    room, supply = p + r, p.sum(axis=-1, keepdims=True)
    taken = np.clip(supply - (np.cumsum(room, axis=-1) - room), 0.0, room)
    change = np.empty_like(y)
    np.put_along_axis(change, np.broadcast_to(down, y.shape), taken - p, axis=-1)
    return y + change


def check_alone(case, rng, tol):
    """Check a case against its policy's own bounds, and the definition."""
    model, ambiguity, value = case.model, case.ambiguity, case.value
    own, scale = ~model.terminal, units(model, ambiguity, value)
    z, allowed = (
        np.asarray(reference.stakes(model, value), dtype=float),
        reference.support(model, ambiguity),
    )
    y = reference.dense_kernels(model)[model.weights > 0]
    w = model.weights[model.weights > 0]
    radius = np.broadcast_to(ambiguity.radius, own.shape)
    lower = np.full(own.shape, np.inf)
    for s, a in np.argwhere(model.available & own[:, None]):
        rows, stake = y[:, s, a, allowed[s, a]], z[s, a, allowed[s, a]]
        lower[s] = min(lower[s], w @ bend(rows, stake, radius[s]) @ stake)
    for out, fixed, memory in sweeps(case, rng, tol):
        assert_close(out.upper, fixed.lower, tol, scale, own)
        assert (memory.by_kernel[own] == radius[own, None]).all()
        assert_close(out.upper, lower, tol, scale, own)


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
