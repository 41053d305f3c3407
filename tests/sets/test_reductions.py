"""What sets reduce to, and answers that others compute: by formulas written anew, by SciPy, by
sorting and filling.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import drmdp

KINDS = ["kl", *(pytest.param(kind, marks=pytest.mark.fuzz) for kind in ("burg", "chi2", "tv"))]
TIGHT = {"tol": 1e-9}


def problem(N=1, A=3, seed=3, **settings):
    """Six states, zeros, nearly tied actions."""
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.full(6, 0.5), size=(N, 6, A))
    kernels[kernels < 0.03] = 0
    kernels /= kernels.sum(axis=-1, keepdims=True)
    return drmdp.Model(kernels, **({"costs": 0.2 * rng.random((6, A)), "discount": 0.9} | settings))


def same(model, one, other, atol=1e-8):
    first, second = (drmdp.solve(model, ambiguity, **TIGHT) for ambiguity in (one, other))
    np.testing.assert_allclose(first.value, second.value, atol=atol)
    x = np.full(model.available.shape, 1 / model.n_actions)
    first, second = (drmdp.evaluate(model, ambiguity, x, **TIGHT) for ambiguity in (one, other))
    np.testing.assert_allclose(first.value, second.value, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_around_one_kernel_is_around_the_mean(kind, rectangular):
    one, other = (
        drmdp.Divergence(0.1, kind, around, rectangular=rectangular)
        for around in ("mean", "kernels")
    )
    same(problem(), one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("around", ["mean", "kernels"])
def test_with_one_action_nothing_is_shared(kind, around):
    one, other = (
        drmdp.Divergence(0.1, kind, around, rectangular=rectangular) for rectangular in ("s", "sa")
    )
    same(problem(N=3, A=1), one, other)


@pytest.mark.parametrize(
    ("metric", "order"), [("l1", 1), pytest.param("l2", 2, marks=pytest.mark.fuzz)]
)
def test_with_one_action_balls_share_nothing_either(metric, order):
    same(
        problem(N=3, A=1),
        *(drmdp.Wasserstein(0.2, metric, order, rectangular=each) for each in ("s", "sa")),
    )


@pytest.mark.parametrize("support", ["observed", "all", "state"])
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_total_variation_is_half_of_l1(support, rectangular):
    for around in ("mean", "kernels"):
        tv = drmdp.Divergence(0.15, "tv", around, support, rectangular)
        same(problem(), tv, drmdp.Wasserstein(0.3, "l1", 1, support, rectangular))


@pytest.mark.parametrize("kind", KINDS)
def test_the_set_around_the_mean_holds_that_around_the_kernels(kind):
    model = problem(N=4)
    values = [
        drmdp.solve(model, drmdp.Divergence(0.1, kind, around), **TIGHT).value
        for around in ("kernels", "mean")
    ]
    assert (values[0] <= values[1] + 1e-8).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_values_grow_with_the_radius(kind, rectangular):
    model, radii = problem(N=2), (0, 1e-6, 0.01, 0.1, 1.0, 9.0)
    values = [
        drmdp.solve(model, drmdp.Divergence(r, kind, rectangular=rectangular), **TIGHT).value
        for r in radii
    ]
    assert (np.diff(values, axis=0) >= -2e-9).all()
    np.testing.assert_allclose(
        values[0], drmdp.solve(model, drmdp.Wasserstein(0), **TIGHT).value, atol=1e-8
    )


def iterate(model, worst):
    """Value iteration with the worst case of each row, `worst(y, z)`."""
    v, mean = np.zeros(model.n_states), np.asarray(model.mean_kernel)
    for _ in range(400):
        z = np.asarray(model.costs)[:, :, None] + model.discount * v
        v = np.array(
            [
                [worst(mean[s, a], z[s, a]) for a in range(model.n_actions)]
                for s in range(model.n_states)
            ]
        ).min(axis=1)
    return v


def filled(theta, y, z):
    """Sort and fill: θ/2 goes to the largest value and is taken from the smallest ones."""
    order = np.argsort(z)
    p = y[order].copy()
    epsilon = min(theta / 2, 1 - p[-1])
    p[-1] += epsilon
    for k in range(p.size):
        taken = min(p[k], epsilon)
        p[k] -= taken
        epsilon -= taken
        if epsilon <= 0:
            break
    return p @ z[order]


def test_a_budget_for_each_pair_in_l1_is_sort_and_fill():
    model = problem(N=3)
    found = drmdp.solve(model, drmdp.Wasserstein(0.4, "l1", 1, "all", "sa"), **TIGHT)
    np.testing.assert_allclose(
        found.value, iterate(model, lambda y, z: filled(0.4, y, z)), atol=1e-8
    )
    assert set(np.unique(found.policy)) == {0, 1}


def entropic(rho, y, z):
    """min over β of β ρ + β log Σ y e^{z/β}, by SciPy."""
    seen = y > 0
    y, z, top = y[seen], z[seen], z[seen].max()
    if rho >= -np.log(y[z == top].sum()):
        return top

    def dual(s):
        b = np.exp(s)
        return b * rho + b * np.log(y @ np.exp((z - top) / b))

    return (
        top + minimize_scalar(dual, bounds=(-14, 6), method="bounded", options={"xatol": 1e-10}).fun
    )


def test_kl_for_each_pair_is_a_scalar_dual():
    model = problem()
    found = drmdp.solve(model, drmdp.Divergence(0.2, rectangular="sa"), **TIGHT)
    np.testing.assert_allclose(
        found.value, iterate(model, lambda y, z: entropic(0.2, y, z)), atol=1e-7
    )


def test_saturation_is_not_negative_where_weights_round_above_1():
    rng = np.random.default_rng(0)
    for n in range(2, 60):
        model = drmdp.Model(
            np.ones((n, 1, 1, 1)), costs=[[1.0]], discount=0.5, weights=rng.dirichlet(np.ones(n))
        )
        assert drmdp.Divergence(0.1, "tv").saturation(model)[0] >= 0
