"""A weight times a probability may underflow: what a kernel has, its mean has, and bounds hold."""

import mpmath as mp
import numpy as np
import pytest

import drmdp
import drmdp_check
from drmdp.core.sums import LEAST

TINY = {
    "product": ((1e-200, 1.0), (1e-200, 0.0)),
    "weight": ((1e-310, 1.0), (0.5, 0.0)),
    "least": ((1.0,), (5e-324,)),
    "few digits": ((0.3, 0.7), (5e-324, 1.5e-323)),
    "many": ((1 / 3, 1 / 3, 1 / 3), (0.0, 2e-310, 1e-312)),
    "above": ((0.5, 0.5), (3e-295, 0.0)),
}
RADII = {
    "kl": (1e-3, 1.0, 690.0, 735.0, 744.4, 2000.0),
    "burg": (1e-3, 1.0, 800.0),
    "chi2": (0.1, 1e100, 1e300, 1e307),
}


def model_of(weights, probabilities, unused=False):
    """From state 0 to a cheap state, and hardly ever to a dear one; both are for ever."""
    N = len(weights) + unused
    kernels = np.zeros((N, 3, 1, 3))
    kernels[:, 1, 0, 1] = kernels[:, 2, 0, 2] = 1
    for row, p in zip(kernels, probabilities, strict=False):
        row[0, 0] = 0, 1 - p, p
    if unused:
        kernels[-1, 0, 0, 0] = 1
    own = [*weights, 0.0] if unused else weights
    return drmdp.Model(kernels, costs=[0.0, 0.0, 1.0], discount=0.5, weights=own)


def dearest(kind, q, radius):
    """Largest probability of the dear state, which is also the value of state 0."""

    def cost(m):
        if kind == "chi2":
            return (m - q) ** 2 / q + (m - q) ** 2 / (1 - q)
        y, z = ((q, m), (1 - q, 1 - m)), ((m, q), (1 - m, 1 - q))
        return sum(
            (a * mp.log(a / b) if b > 0 else mp.inf) if a > 0 else 0
            for a, b in (y if kind == "burg" else z)
        )

    low, high = q, mp.mpf(1)
    if cost(high) <= radius:
        return high
    for _ in range(200):
        m = (low + high) / 2
        low, high = (m, high) if cost(m) <= radius else (low, m)
    return low


@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("kind", RADII)
@pytest.mark.parametrize("name", TINY)
def test_bounds_hold_around_a_mean_that_underflows(name, kind, rectangular):
    weights, probabilities = TINY[name]
    model = model_of(weights, probabilities)
    assert np.array_equal(model.mean_kernel[0, 0] > 0, [False, True, True])
    with mp.workdps(60):
        q = sum(
            mp.mpf(w) * mp.mpf(p)
            for w, p in zip(model.weights.tolist(), probabilities, strict=True)
        )
        for radius in RADII[kind]:
            true = dearest(kind, q, mp.mpf(radius))
            ambiguity = drmdp.Divergence(radius, kind, rectangular=rectangular)
            if len(weights) == 1:
                found = drmdp.solve(
                    model,
                    drmdp.Divergence(radius, kind, "kernels", rectangular=rectangular),
                    rtol=1e-12,
                )
                assert mp.mpf(float(found.lower[0])) <= true <= mp.mpf(float(found.upper[0])), (
                    radius
                )
            for found in (
                drmdp.solve(model, ambiguity, rtol=1e-12),
                drmdp.evaluate(model, ambiguity, np.ones((3, 1))),
            ):
                assert mp.mpf(float(found.lower[0])) <= true <= mp.mpf(float(found.upper[0])), (
                    radius
                )
            if kind == "burg" or radius == 2000.0:
                assert found.gap < 1e-5


@pytest.mark.parametrize("backend", ["exact", "conic"])
@pytest.mark.parametrize("radius", [0.1, 700.0])
def test_both_engines_know_that_the_dear_state_was_seen(backend, radius):
    model = model_of(*TINY["product"])
    found = drmdp.bellman(model, drmdp.Divergence(radius), [0.0, 0.0, 2.0], backend=backend)
    with mp.workdps(60):
        true = dearest("kl", mp.mpf(1e-200) ** 2, mp.mpf(radius))
        assert mp.mpf(float(found.lower[0])) <= true <= mp.mpf(float(found.upper[0]))


SETS = {
    "linf": (drmdp.Wasserstein(0.1, "linf"), 0.1),
    "l2": (drmdp.Wasserstein(0.1), 0.1 / 2**0.5),
    "l1": (drmdp.Wasserstein(0.1, "l1"), 0.05),
    "tv": (drmdp.Divergence(0.1, "tv"), 0.1),
    "burg": (drmdp.Divergence(0.1, "burg"), -np.expm1(-0.1)),
}


@pytest.mark.parametrize("name", SETS)
def test_what_a_used_kernel_has_is_observed_beside_kernels_of_weight_0(name):
    ambiguity, true = SETS[name]
    model = model_of(*TINY["product"], unused=True)
    found = drmdp.solve(model, ambiguity, rtol=1e-9)
    assert found.lower[0] <= true * (1 + 1e-15)
    assert found.upper[0] >= true * (1 - 1e-15)
    assert found.gap < 1e-7


def test_rows_of_events_have_the_same_mean():
    def transition(s, a, e):
        return np.where(s == 0, 1 + e, s) + 0 * a

    laws = [[1 - 1e-200, 1e-200], [1.0, 0.0]]
    model = drmdp.Model.from_events(
        3, 1, 2, transition, laws, costs=[0.0, 0.0, 1.0], discount=0.5, weights=TINY["product"][0]
    )
    assert model.mean_matrix()[0].toarray()[0, 2] == model.stored().mean[1] == LEAST
    ambiguity = drmdp.Divergence(2000.0)
    found = drmdp.solve(model, ambiguity)
    assert found.upper[0] >= 1
    assert np.array_equal(found.upper, drmdp.solve(model.stored(), ambiguity).upper)


@pytest.mark.parametrize(("kind", "radius"), [("kl", 1.0), ("kl", 2000.0), ("burg", 0.1)])
def test_the_checker_agrees(tmp_path, kind, radius):
    model = model_of(*TINY["product"])
    drmdp.write(model, tmp_path / "model.npz")
    drmdp.solve(model, drmdp.Divergence(radius, kind)).proof(tmp_path / "run.proof")
    assert drmdp_check.main([str(tmp_path / "run.proof"), str(tmp_path / "model.npz")]) == 0
