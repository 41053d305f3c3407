"""Long-run cost a step: values that are known, the bracket that holds for any h, and gains that differ."""

import numpy as np
import pytest

import drmdp
from drmdp.bellman.build import build
from drmdp.model import changed
from drmdp.solution import Status
from drmdp.solvers.problem import Problem


def queue(n=30, kernels=5, spread=0.1):
    """Slots in which a customer arrives, or one of three services ends; waiting costs .2 each."""
    rng, K = np.random.default_rng(0), np.zeros((kernels, n, 3, n))
    for i in range(kernels):
        arrive = 0.45 * np.exp(spread * rng.standard_normal())
        for s in range(n):
            for a, serve in enumerate((0.3, 0.5, 0.7)):
                up, down = arrive * (1 - serve), serve * (1 - arrive)
                for t, p in ((min(s + 1, n - 1), up), (max(s - 1, 0), down), (s, 1 - up - down)):
                    K[i, s, a, t] += p
    return drmdp.Model(K, costs=0.2 * np.arange(n)[:, None] + np.array([0.0, 1.0, 3.0]), discount=0.5)


MACHINE = drmdp.instances.perturb(drmdp.instances.machine(20), n_kernels=5, same_support=True)


@pytest.mark.parametrize(
    ("model", "ball", "want"),
    [
        (MACHINE, drmdp.Wasserstein(0.05), 0.34210435),
        (queue(), drmdp.Wasserstein(0.05), 1.952506303),
        (queue(), drmdp.Divergence(0.02, "kl"), 2.49361738),
        (queue(100), drmdp.Wasserstein(0.05), 1.952506325),
    ],
)
def test_known_gains(model, ball, want):
    found = drmdp.solve(model, ball, criterion="average", tol=1e-6, threads=1)
    assert found.status is Status.solved
    assert found.kernel_passes <= 10
    assert found.lower[0] - 1e-7 <= want <= found.upper[0] + 1e-7
    assert np.ptp(found.value) == np.ptp(found.lower) == 0
    assert any("is not used" in note for note in found.notes)


def test_every_h_brackets_the_gain():
    model, ball = changed(queue(12), discount=1.0), drmdp.Divergence(0.02, "kl")
    found = drmdp.solve(model, ball, criterion="average", tol=1e-9)
    problem = Problem(build(model, ball, "exact", 1))
    rng = np.random.default_rng(1)
    for h in (found.bias, *rng.normal(size=(20, 12)) * 10 ** rng.uniform(-2, 3, size=(20, 1))):
        step = problem.proved(h)
        assert step.lower_step.min() <= found.upper[0]
        assert step.upper_step.max() >= found.lower[0]
    assert problem.proved(found.bias).upper_step.max() <= found.upper[0] + 1e-12


def test_a_discount_near_1_is_near():
    model, ball = queue(12), drmdp.Wasserstein(0.05)
    found = drmdp.solve(model, ball, criterion="average", tol=1e-8)
    near = drmdp.solve(changed(model, discount=1 - 1e-7), ball)
    assert abs((1e-7 * near.value - found.value).max()) <= 1e-7 * np.ptp(near.value) + 1e-6


def test_gains_that_differ_are_told():
    K = np.zeros((1, 3, 1, 3))
    K[0, 0, 0], K[0, 1, 0], K[0, 2, 0] = [0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]
    found = drmdp.solve(drmdp.Model(K, costs=[0.5, 0, 1], discount=0.9), drmdp.Wasserstein(0.1), criterion="average")
    assert found.status is Status.precision_limit
    np.testing.assert_allclose([found.lower[0], found.upper[0]], [0, 1], atol=1e-12)
    assert "may differ between states" in found.notes[-1]


def test_a_chain_that_goes_round():
    model = drmdp.Model([[[[0, 1]], [[1, 0]]]], rewards=[0.0, 1.0], discount=0.9)
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), criterion="average")
    assert found.lower[0] <= 0.5 <= found.upper[0]
    assert found.gap <= 1e-12
    worth = drmdp.evaluate(model, drmdp.Wasserstein(0.0), [0, 0], criterion="average")
    assert worth.lower[0] <= 0.5 <= worth.upper[0]


def test_a_gain_is_saved_and_loaded(tmp_path):
    found = drmdp.solve(queue(5), drmdp.Wasserstein(0.1), criterion="average")
    found.save(tmp_path / "s.npz")
    again = drmdp.Solution.load(tmp_path / "s.npz")
    assert (again.criterion, again.time) == ("average", None)
    np.testing.assert_array_equal(again.bias, found.bias)
