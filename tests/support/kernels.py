"""What the tests of compiled routines share."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

import drmdp
import reference
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import SweepMemory, SweepOutput, shapes_of
from drmdp.layout.point import point_at
from drmdp.operators.native import family_of
from drmdp.sets import PAIRS
from drmdp.sets.registry import ENTRIES

EPS = np.finfo(float).eps
LAYOUTS = ("dense", "next", "observed", "unlisted")
POISON = (np.nan, np.inf, -1.0, 0.0, 1e-300, 1e13, 1e300)


class Start(NamedTuple):
    """How a kernel is called the first time."""

    asked: float  # tolerance, relative to the range of the stakes
    fill: float  # of the memory; NaN where it is not read
    policy: float  # of the policy; NaN where the last one is not read, also later


DIRECT = Start(1e-12, np.nan, np.nan)  # a walk over sorted rows
NEWTON = Start(1e-11, 0.0, np.nan)  # starts from multipliers and thresholds
COLUMNS = Start(1e-11, 0.0, 0.0)  # starts from masses or radii and the policy
STARTS = {
    ("l1", 1): DIRECT,
    ("linf", math.inf): DIRECT,
    ("l2", 2): NEWTON,
    ("l2", math.inf): NEWTON,
    ("l1", math.inf): COLUMNS,
    ("linf", 1): COLUMNS,
}


def over(*pairs):
    """Parametrise over pairs."""
    return pytest.mark.parametrize(
        "pair", pairs, ids=[f"{metric}_{order:g}" for metric, order in pairs]
    )


EVERY_PAIR = over(*PAIRS)


def units(model, ambiguity, value):
    """Range of the stakes of each state, and the rounding of a stake, (S,) each."""
    z = np.where(reference.support(model, ambiguity), reference.stakes(model, value), np.nan)
    unit, noise = np.zeros(model.n_states), np.zeros(model.n_states)
    for s in np.flatnonzero(~model.terminal):
        own = z[s][model.available[s]]
        unit[s] = (np.nanmax(own, axis=1) - np.nanmin(own, axis=1)).max()
        parts = np.nanmax(np.abs(own - model.discount * value)), np.abs(value).max()
        noise[s] = 64 * EPS * max(parts)
    return unit, noise


def assert_close(a, b, tol, scale, own, more=0.0):
    unit, noise = scale
    assert (np.abs(a - b) <= tol * unit + noise + more)[own].all()


def gained(y, z, m):
    """Gain of moving the mass m from the lowest z to the highest."""
    up = np.argsort(z)
    before = np.cumsum(y[up]) - y[up]
    return np.clip(m - before, 0.0, y[up]) @ (z.max() - z[up])


def run(family, fixed, layout, point, memory, out, tol, states=None):
    """Call a family for some states, or all of the layout."""
    start, stop = states or (0, layout.available.shape[0])
    family.sweep(fixed, start, stop, family.prepared(layout), (point, memory, out, tol))


def unswept(layout, pair, fill=None):
    """Memory and policy before the first sweep."""
    own, (S, A) = STARTS[pair], layout.available.shape
    shapes = shapes_of(S, A, layout.weights.size, ENTRIES[pair].keeps)
    memory = SweepMemory(*(np.full(shape, own.fill if fill is None else fill) for shape in shapes))
    return memory, np.full((S, A), own.policy)


def sweep(layout, pair, value, policy=None, warm=None, states=None):
    """Update or, with a policy, evaluate the states; upper and lower are of F(v) with the level of
    v. `warm` is left as it is.
    """
    memory, last = warm or unswept(layout, pair)
    memory = SweepMemory(*(array.copy() for array in memory))
    x = np.where(np.isnan(STARTS[pair].policy), np.nan, last) if policy is None else policy.copy()
    S = x.shape[0]
    out = SweepOutput(np.full(S, np.nan), np.full(S, np.nan), x, np.zeros(S))
    level = (value.max() + value.min()) / 2
    family = family_of(drmdp.Wasserstein(0.0, *pair))
    run(
        family,
        policy is not None,
        layout,
        point_at(layout, value - level),
        memory,
        out,
        STARTS[pair].asked,
        states,
    )
    shift = layout.discount * level
    return out._replace(upper=out.upper + shift, lower=out.lower + shift), (memory, out.policy)


def poisoned(rng, warm):
    """Spoil some of what is remembered, by one number or by several."""
    memory, x = warm
    return SweepMemory(*(_poison(rng, array) for array in memory)), _poison(rng, x)


def _poison(rng, array):
    bad = rng.choice(POISON, size=array.shape if rng.random() < 0.5 else 1)
    return np.where(rng.random(array.shape) < 0.4, bad, array)


def starts(case, layout, rng, tol):
    """Memories to start from: none, of the same value, of an unrelated one, and one of these full
    of NaN and nonsense.
    """
    model, ambiguity, value = case.model, case.ambiguity, case.value
    _, same = sweep(layout, ambiguity.pair, value)
    elsewhere = rng.normal(size=value.size) * (np.ptp(value) + 1) * rng.choice([1e-3, 1.0, 1e3])
    elsewhere = np.where(model.terminal, 0.0, elsewhere)
    out, other = sweep(layout, ambiguity.pair, elsewhere, warm=same)
    assert_close(out.upper, out.lower, tol, units(model, ambiguity, elsewhere), ~model.terminal)
    return [None, same, other, poisoned(rng, same if rng.random() < 0.5 else other)]


def assert_policy(model, x):
    """A distribution on the available actions of every state that is not terminal."""
    own = ~model.terminal
    assert (x[own] >= 0).all()
    assert (x[own] * ~model.available[own] == 0).all()
    np.testing.assert_allclose(x[own].sum(axis=1), 1, rtol=1e-13)


def sweeps(case, rng, tol):
    """Sweep from every start: bounds are close, those of its policy too. Yields what was found, for
    the policy, and what is remembered.
    """
    model, ambiguity, value = case.model, case.ambiguity, case.value
    own, scale, layout = ~model.terminal, units(model, ambiguity, value), lay_out(model, ambiguity)
    for warm in starts(case, layout, rng, tol):
        out, after = sweep(layout, ambiguity.pair, value, warm=warm)
        assert_close(out.upper, out.lower, tol, scale, own)
        assert_policy(model, out.policy)
        for x in (random_policy(rng, model), np.where(own[:, None], out.policy, 0.0)):
            fixed, _ = sweep(layout, ambiguity.pair, value, x, after)
            assert_close(fixed.upper, fixed.lower, tol, scale, own)
            assert (fixed.upper >= out.lower - tol * scale[0] - scale[1])[own].all()
        yield out, fixed, after[0]


def random_policy(rng, model):
    x = np.where(
        model.available, rng.dirichlet(np.full(model.n_actions, 0.5), model.n_states) + 1e-9, 0.0
    )
    x[:, 1:] *= rng.random((model.n_states, model.n_actions - 1)) < 0.7
    x += model.available * (x.sum(axis=1, keepdims=True) == 0)
    return x / np.maximum(x.sum(axis=1, keepdims=True), 1e-300)


@cache
def larger(kind, S=40, A=6, N=4, density=0.4, is_sparse=False):
    """A model with rows beyond the insertion sort and actions that nearly tie, the support to use,
    and a value with a plateau; `kind` is the layout.
    """
    rng = np.random.default_rng(7)
    y = rng.dirichlet(np.full(S, 0.3), (N, S, A))
    if kind in ("observed", "unlisted"):
        y *= rng.random((S, A, S)) < density
        y /= y.sum(axis=3, keepdims=True)
    costs = rng.random((S, A, S) if kind == "next" else (S, A)) / 10
    value = rng.normal(size=S)
    value[: S // 3] = value[0] * (1 + rng.integers(-2, 3, S // 3) * EPS)
    support = "observed" if kind == "observed" else "all"
    given = [sparse.csr_array(kernel.reshape(S * A, S)) for kernel in y] if is_sparse else y
    return drmdp.Model(given, costs=costs, discount=0.9), support, value


def in_both_precisions(layout, S):
    """The rows rounded to float32, stored so and as the renormalised float64 rows they stand
    for.
    """
    rows = layout.data.astype(np.float32).reshape(-1, S)
    exact = rows / rows.sum(axis=1, keepdims=True, dtype=np.float64)
    mean = np.einsum("i,kij->kj", layout.weights, exact.reshape(-1, layout.weights.size, S)).ravel()
    for array in (rows, exact, mean):
        array.setflags(write=False)
    return [layout._replace(data=data.ravel(), mean=mean) for data in (rows, exact)]
