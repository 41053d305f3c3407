"""Radii so small that no double tells them from 0: bounds are as near as at 0, and are proved."""

from dataclasses import replace

import numpy as np
import pytest

import drmdp
import drmdp_check
from decks import often

MODEL = drmdp.instances.perturb(drmdp.instances.machine(6), n_kernels=4)
LINE = ("line", np.arange(6.0))
SETS = {
    **{
        f"{kind}-{around}": (drmdp.Divergence, kind, around)
        for kind in ("kl", "burg", "chi2")
        for around in ("mean", "kernels")
    },
    **{f"reweighting-{kind}": (drmdp.Reweighting, kind) for kind in ("kl", "burg", "chi2", "tv")},
    "l1-inf": (drmdp.Wasserstein, "l1", np.inf),
    "l2-2": (drmdp.Wasserstein, "l2", 2),
    "linf-1": (drmdp.Wasserstein, "linf", 1),
    "l1-2": (drmdp.Wasserstein, "l1", 2),
    **{f"transport-{order:g}": (drmdp.Wasserstein, "transport", order) for order in (1, np.inf)},
}
NAMES = pytest.mark.parametrize("name", often(SETS))
NATURES = pytest.mark.parametrize("nature", ["adversarial", "cooperative"])
RADII = (1e-14, 1e-16, 1e-17, 1e-20, 1e-50, 1e-160, 1e-300, 5e-324)


def ambiguity_of(name, radius):
    kind, *others = SETS[name]
    return kind(radius, *others, **({"ground": LINE} if "transport" in others else {}))


@NAMES
@NATURES
def test_bounds_are_as_near_as_at_radius_0(name, nature):
    still = drmdp.solve(MODEL, ambiguity_of(name, 0.0), nature=nature, rtol=1e-11)
    for radius in RADII:
        found = drmdp.solve(MODEL, ambiguity_of(name, radius), nature=nature, rtol=1e-11)
        assert found.gap <= 1e-10 * found.scale, (radius, found.status)
        off = 20 * np.sqrt(radius) + 1e-10  # what nature can do, relatively
        assert np.abs(found.value - still.value).max() <= off * found.scale, radius


@NAMES
@NATURES
def test_what_is_claimed_is_proved(name, nature, tmp_path):
    drmdp.write(MODEL, tmp_path / "m.npz")
    for radius in RADII:
        drmdp.solve(MODEL, ambiguity_of(name, radius), nature=nature).proof(tmp_path / "p")
        assert not list(drmdp_check.check(tmp_path / "p", tmp_path / "m.npz").failures()), radius
        drmdp_check.check(
            tmp_path / "p", tmp_path / "m.npz", interval=True
        )  # no price is 0 in vain


@pytest.mark.parametrize("radius", [1e-16, 1e-17, 1e-160, 5e-324])
def test_steps_of_every_kind_are_finite(radius):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        kernels, costs = rng.dirichlet(np.ones(4), (2, 4, 3)), np.round(rng.normal(size=(4, 3, 4)))
        model, ambiguity = (
            drmdp.Model(kernels, costs=costs, discount=0.9),
            drmdp.Wasserstein(radius, "l1", np.inf),
        )
        step = drmdp.bellman(model, ambiguity, rng.normal(size=4))
        assert (step.upper - step.lower).max() <= 1e-12
        drmdp.finite_horizon(model, ambiguity, stages=2, discount=1.0)
        assert drmdp.solve(model, ambiguity).status == "solved"


def test_probabilities_whose_squares_vanish_have_bounds():
    """A mean kernel next to rows with probabilities of 1e-300: the system that is solved on the way
    may be singular.
    """
    for seed in (3, 11):
        rng = np.random.default_rng(seed)
        kernels = rng.dirichlet(np.full(3, 0.5), (2, 3, 2))
        kernels[rng.random(kernels.shape) < 0.3] = 1e-300
        kernels /= kernels.sum(axis=-1, keepdims=True)
        model = drmdp.Model(kernels, costs=rng.normal(size=(3, 2)), discount=0.9)
        for radius in (0.047, 5.0, 5e199):
            found = drmdp.certify(
                model,
                drmdp.Divergence(radius, "kl", "kernels"),
                np.full((3, 2), 0.5),
                rng.dirichlet(np.full(3, 0.3), (3, 2)),
            )
            assert np.isfinite(found.upper).all()


def test_a_value_that_is_off_is_told_within_its_bounds(monkeypatch):
    from drmdp.solvers.problem import Problem

    usual = Problem.proved
    monkeypatch.setattr(
        Problem, "proved", lambda self, v: replace(usual(self, v), value=np.full(6, 1e18))
    )
    step = drmdp.bellman(MODEL, drmdp.Wasserstein(0.1), np.zeros(6))
    assert (step.lower <= step.value).all()
    assert (step.value <= step.upper).all()


def test_a_sweep_that_is_not_finite_is_told_in_words(monkeypatch):
    monkeypatch.setattr("drmdp.solvers.problem.are_finite", lambda *arrays: False)
    with pytest.raises(drmdp.InputError, match="leave the range of double precision"):
        drmdp.bellman(MODEL, drmdp.Wasserstein(0.1), np.zeros(6))
    assert drmdp.solve(MODEL, drmdp.Wasserstein(0.1)).status == "diverged"
