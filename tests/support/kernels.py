"""What the tests of the compiled kernels share."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse

import drmdp
import reference
from cases import cases

EPS = np.finfo(float).eps
LAYOUTS = ("dense", "next", "observed", "unlisted")


def units(model, ball, value):
    """Range of the stakes of each state, and the rounding of a stake, (S,) each."""
    z = np.where(reference.support(model, ball), reference.stakes(model, value), np.nan)
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


def run(family, fixed, layout, point, memory, out, tol, states=None):
    """Call a family's kernel for some states, or all of the layout."""
    start, stop = states or (0, layout.available.shape[0])
    kernel = family.evaluate if fixed else family.update
    kernel(start, stop, layout, point, memory, out, tol, family.workspace(layout, point, start, stop))


def random_policy(rng, model):
    x = np.where(model.available, rng.dirichlet(np.full(model.n_actions, 0.5), model.n_states) + 1e-9, 0.0)
    x[:, 1:] *= rng.random((model.n_states, model.n_actions - 1)) < 0.7
    x += model.available * (x.sum(axis=1, keepdims=True) == 0)
    return x / np.maximum(x.sum(axis=1, keepdims=True), 1e-300)


@cache
def larger(kind, S=40, A=6, N=4, density=0.4, is_sparse=False):
    """A model with rows beyond the insertion sort and actions that nearly tie, the support to use, and a value with a plateau; `kind` is the layout."""
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


def small(pairs, n, seed):
    """Parametrise over n cases of each pair."""
    made = [(pair, case) for pair in pairs for case in cases(pair, n, seed)]
    ids = [f"{pair[0]}-{pair[1]:g}-{case.name}" for pair, case in made]
    return pytest.mark.parametrize("case", [case for _, case in made], ids=ids)


def in_both_precisions(layout, S):
    """The rows rounded to float32, stored so and as the renormalised float64 rows they stand for."""
    rows = layout.data.astype(np.float32).reshape(-1, S)
    exact = rows / rows.sum(axis=1, keepdims=True, dtype=np.float64)
    mean = np.einsum("i,kij->kj", layout.weights, exact.reshape(-1, layout.weights.size, S)).ravel()
    for array in (rows, exact, mean):
        array.setflags(write=False)
    return [layout._replace(data=data.ravel(), mean=mean) for data in (rows, exact)]
