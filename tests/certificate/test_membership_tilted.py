"""Tuples of a mean kernel for divergences: the mean is met, and none that we know of costs less."""

from types import SimpleNamespace

import numpy as np
import pytest

import decks
import drmdp
from drmdp.certificate.membership import StateData, tilted

KINDS = ("kl", "chi2", "burg")


def cost(kind, y, nominal, weights):
    """Σ_a Σ_i w_i D(y_ia ‖ ŷ_ia), by definition."""
    ratio = np.where(nominal > 0, y / np.where(nominal > 0, nominal, 1), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = {
            "kl": nominal * np.where(ratio > 0, ratio * np.log(ratio), 0),
            "chi2": nominal * (ratio - 1) ** 2,
            "burg": -nominal * np.log(ratio),
        }[kind]
    return np.einsum("i,aij->", weights, terms)


def planted(kind, rng):
    """A state whose goal is the mean of a tuple, and that tuple."""
    A, N, K = rng.integers(1, 4), rng.integers(1, 6), rng.integers(2, 9)
    nominal = rng.dirichlet(np.full(K, rng.choice([0.3, 1.0])), (A, N)) + 1e-6
    nominal *= rng.random(nominal.shape) < 0.8
    nominal[..., 0] += 0.01
    nominal /= nominal.sum(axis=-1, keepdims=True)
    y = nominal * rng.dirichlet(np.ones(K), (A, N)) ** rng.choice([0.1, 1.0])
    if kind == "burg":
        y += 0.02 * (nominal > 0)
    y /= y.sum(axis=-1, keepdims=True)
    weights = rng.dirichlet(np.ones(N)) + 0.01
    weights /= weights.sum()
    goal = np.einsum("i,aij->aj", weights, y)
    return StateData(SimpleNamespace(kind=kind), nominal, weights, goal, 1.0), y


@pytest.mark.parametrize("kind", KINDS)
def test_a_tuple_of_that_mean_costs_no_more_than_the_one_behind_it(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(60):
        state, y = planted(kind, rng)
        way, found = tilted(state)
        assert way >= 1 - 1e-9
        assert np.abs(np.einsum("i,aij->aj", state.weights, found) - state.goal).max() <= 1e-9
        assert found.sum(axis=-1) == pytest.approx(1, abs=1e-12)
        assert (found >= 0).all()
        if kind != "burg":
            assert not found[state.nominal == 0].any()
        known = cost(kind, y, state.nominal, state.weights)
        assert cost(kind, found, state.nominal, state.weights) <= known + 1e-7 * (1 + known)


def test_a_mean_that_no_tilt_has_is_left_alone():
    nominal = np.array([[[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]])
    state = StateData(
        SimpleNamespace(kind="kl"), nominal, np.array([0.5, 0.5]), np.array([[0.2, 0.3, 0.5]]), 1.0
    )
    way, found = tilted(state)
    assert way == 0
    assert found is nominal


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [f"{kind}-kernels{end}" for kind in KINDS for end in ("", "-sa")])
def test_what_nature_plays_is_certified_from_its_mean_alone(name):
    rng = np.random.default_rng(5)
    for k in range(40):
        S, A, N = (int(n) for n in rng.integers(2, 6, 3))
        kernels = rng.dirichlet(np.full(S, 0.5), (N, S, A)) * (rng.random((N, S, A, S)) < 0.8)
        kernels[..., 0] += 0.05
        kernels /= kernels.sum(axis=-1, keepdims=True)
        model = drmdp.Model(
            kernels, costs=rng.random((S, A)), discount=0.9, weights=rng.dirichlet(np.ones(N))
        )
        ambiguity = decks.SETS[name].make(model, rng.uniform(0.05, 0.9), "observed")
        found = drmdp.solve(model, ambiguity, rtol=1e-8)
        gap = drmdp.certify(model, ambiguity, found.policy, found.kernel).gap
        assert gap <= 10 * found.gap + 1e-7 * found.scale, k
