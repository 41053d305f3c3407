"""A set that the package does not know goes everywhere, by its own three files and one entry."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from toy_set import ENTRY, MAKER
from toy_set.contamination import Contamination

import drmdp
import drmdp_check
from drmdp.cli import main
from drmdp.sets import registry


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(registry.ENTRIES, "contamination", ENTRY)
    monkeypatch.setitem(registry.MAKERS, "contamination", MAKER)


def problem(support="observed", **settings):
    rng = np.random.default_rng(5)
    kernels = rng.dirichlet(np.full(7, 0.5), size=(3, 7, 2))
    kernels[kernels < 0.05] = 0
    kernels /= kernels.sum(axis=-1, keepdims=True)
    settings = {"costs": rng.random((7, 2)), "discount": 0.9, "weights": [0.5, 0.5, 0.0]} | settings
    return drmdp.Model(kernels, **settings), Contamination(0.2, support)


def by_hand(model, ambiguity, policy=None):
    """Value iteration on the definition."""
    v, seen = np.zeros(7), model.observed(0, 7)
    seen = {"observed": seen, "state": seen.any(axis=1, keepdims=True), "all": np.array(True)}[
        ambiguity.support
    ]
    mean = np.asarray(model.mean_kernel)
    for _ in range(600):
        z = model.stakes(v, 0, 7)
        q = 0.8 * (mean * np.where(mean > 0, z, 0)).sum(axis=2) + 0.2 * np.where(
            seen, z, -np.inf
        ).max(axis=2)
        v = q.min(axis=1) if policy is None else (policy * q).sum(axis=1)
    return v


@pytest.mark.parametrize("support", ["observed", "state", "all"])
@pytest.mark.parametrize("shape", [(7, 2), (7, 2, 7)], ids=["costs", "next-costs"])
def test_it_is_solved_and_proved(support, shape):
    model, ambiguity = problem(support, costs=np.random.default_rng(6).random(shape))
    for method in ("auto", "value-iteration", "anderson", "gauss-seidel", "accelerated"):
        found = drmdp.solve(model, ambiguity, method, tol=1e-9)
        want = by_hand(model, ambiguity)
        assert found.status == "solved"
        assert (found.lower <= want + 1e-12).all()
        assert (found.upper >= want - 1e-12).all()
    x = np.full((7, 2), 0.5)
    worst = drmdp.evaluate(model, ambiguity, x, tol=1e-9)
    np.testing.assert_allclose(worst.value, by_hand(model, ambiguity, x), rtol=0, atol=1e-8)
    proof = drmdp.certify(model, ambiguity, found)
    assert proof.gap < 1e-6
    assert (proof.lower <= want + 1e-9).all()
    assert (proof.upper >= want - 1e-9).all()
    step = drmdp.bellman(model, ambiguity, want)
    assert (step.lower <= want + 1e-12).all()
    assert (step.upper >= want - 1e-12).all()


def test_rewards_paths_and_plans():
    model, ambiguity = problem()
    rewarded = drmdp.Model(
        model.kernels, rewards=-np.asarray(model.costs), discount=0.9, weights=model.weights
    )
    np.testing.assert_allclose(
        drmdp.solve(rewarded, ambiguity).value, -drmdp.solve(model, ambiguity).value, rtol=1e-6
    )
    path = drmdp.radius.path(model, ambiguity, [0, 0.1, 0.2, 1.0])
    assert (np.diff(path.worst) > 0).all()
    assert path.points[2].value == pytest.approx(by_hand(model, ambiguity), abs=1e-5)
    plan = drmdp.finite_horizon(model, ambiguity, 200)
    np.testing.assert_allclose(plan.value[0], by_hand(model, ambiguity), rtol=0, atol=1e-6)
    with pytest.raises(drmdp.InputError, match="contamination: no radius is known to suffice"):
        drmdp.radius.sufficient(model, ambiguity, 10)


@pytest.mark.parametrize("support", ["observed", "state", "all"])
def test_its_proof_is_checked_by_others(support, tmp_path):
    model, ambiguity = problem(support)
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, ambiguity, tol=1e-9).proof(tmp_path / "p.json")
    found = drmdp_check.check(tmp_path / "p.json", tmp_path / "m.npz")
    assert drmdp_check.show(found) == 0
    lower, upper, _, _ = found.bounds[0]
    assert max(map(float, np.subtract(upper, lower))) < 1e-8


def test_what_it_has_not_is_said():
    model, ambiguity = problem()
    with pytest.raises(drmdp.InputError, match="contamination has no projection"):
        drmdp.solve(model, ambiguity, "first-order")
    with pytest.raises(drmdp.InputError, match="contamination has no conic program"):
        drmdp.solve(model, ambiguity, drmdp.ValueIteration(backend="conic"))


@pytest.mark.usefixtures("sketched")
def test_the_report_and_the_command_line_speak_of_it(tmp_path):
    model, ambiguity = problem()
    page = tmp_path / "page.html"
    drmdp.solve(model, ambiguity).report(page, sweep=drmdp.radius.path(model, ambiguity, 3))
    assert "contamination: a share of every row is replaced" in page.read_text()
    drmdp.write(model, tmp_path / "m.npz")
    command = ["solve", str(tmp_path / "m.npz"), "--set", "contamination", "--radius", "0.2"]
    shown = CliRunner().invoke(main, command)
    assert "contamination, support observed" in shown.output
    found = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    np.testing.assert_allclose(found["value"], by_hand(model, ambiguity), rtol=0, atol=1e-5)
    for verb in (["inspect"], ["horizon", "--stages", "3"], ["sweep", "--radii", "3"]):
        radius = [] if verb[0] == "sweep" else ["--radius", "0.2"]
        done = CliRunner().invoke(
            main, [verb[0], str(tmp_path / "m.npz"), *verb[1:], "--set", "contamination", *radius]
        )
        assert done.exit_code == 0, done.output
    wrong = CliRunner().invoke(main, [*command[:2], "--set", "nothing", "--radius", "0.2"])
    assert wrong.exit_code == 2
    assert "'--set': 'nothing' is not one of" in wrong.stderr
    assert all(f"'{name}'" in wrong.stderr for name in (*registry.MAKERS, "counts"))
