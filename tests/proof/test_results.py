"""What has a proof: plans, models of events, and what has none."""

import numpy as np
import pytest

import drmdp
import drmdp_check
from proofs import dealt, written


def accepted(proof, model):
    """The checker proves all that is claimed."""
    found = drmdp_check.check(proof, model)
    assert not list(found.failures())


def test_stages_are_proved_one_by_one(tmp_path):
    """States where nothing happens any more have the value 0, without a margin."""
    kernels = np.array([[[[0.5, 0.5, 0.0]], [[0.2, 0.2, 0.6]], [[0.0, 0.0, 1.0]]]])
    model = drmdp.Model(kernels, costs=[[1.0], [3.0], [0.0]], discount=0.9)
    drmdp.write(model, tmp_path / "m.npz")
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.3), 12, final=[5.0, 7.0, 0.0], discount=1.0)
    plan.proof(tmp_path / "p")
    accepted(tmp_path / "p", tmp_path / "m.npz")
    assert all(
        bounds[0][2] == bounds[1][2] == 0 for bounds in drmdp_check.check(tmp_path / "p", tmp_path / "m.npz").bounds
    )
    two = drmdp.finite_horizon(model, [drmdp.Wasserstein(0.3), drmdp.Wasserstein(0.2)], 2)
    with pytest.raises(drmdp.errors.InputError, match="sets of their own"):
        two.proof(tmp_path / "p")
    plan.save(tmp_path / "plan.npz")
    with pytest.raises(drmdp.errors.InputError, match="no witnesses"):
        drmdp.HorizonSolution.load(tmp_path / "plan.npz").proof(tmp_path / "p")


def test_what_a_cluster_solved_has_no_witnesses(tmp_path):
    model = dealt(2)
    drmdp.write(model, tmp_path / "m.drmdp")
    found = drmdp.solve(tmp_path / "m.drmdp", drmdp.Wasserstein(0.3))
    with pytest.raises(drmdp.errors.InputError, match=r"not read whole, has no witnesses.*start=solution"):
        found.proof(tmp_path / "p")
    drmdp.solve(model, drmdp.Wasserstein(0.3), start=found).proof(tmp_path / "p")
    accepted(tmp_path / "p", tmp_path / "m.drmdp")


def test_a_model_of_events_is_checked_by_its_kernels(tmp_path):
    rng = np.random.default_rng(0)
    table, laws = rng.integers(0, 4, size=(4, 2, 3)), rng.dirichlet(np.ones(3), size=5)
    made = {"discount": 0.5, "costs": rng.random((4, 2))}
    model = drmdp.Model.from_events(4, 2, 3, lambda s, a, e: table[s, a, e], laws, **made)
    drmdp.solve(model, drmdp.Wasserstein(0.2)).proof(tmp_path / "p")
    drmdp.write(model.stored(), tmp_path / "m.npz")
    accepted(tmp_path / "p", tmp_path / "m.npz")
    drmdp.write(model, tmp_path / "m.drmdp")
    with pytest.raises(drmdp_check.Refused, match="cannot check a model of events yet"):
        drmdp_check.check(tmp_path / "p", tmp_path / "m.drmdp")
    moved = drmdp.solve(model, drmdp.Wasserstein(0.2, moves="events"))
    with pytest.raises(drmdp.errors.InputError, match="cannot be written"):
        moved.proof(tmp_path / "p")


def test_conic_updates_have_no_kernels_to_prove_with(tmp_path):
    with pytest.raises(drmdp.errors.InputError, match="backend='exact'"):
        drmdp.solve(dealt(2), drmdp.Wasserstein(0.3), backend="conic").proof(tmp_path / "p")


def test_a_loaded_solution_has_no_witnesses(tmp_path):
    solution, proof, _ = written(("l2", 2), 2, tmp_path)
    solution.save(tmp_path / "s.npz")
    with pytest.raises(drmdp.errors.InputError, match="no witnesses"):
        drmdp.Solution.load(tmp_path / "s.npz").proof(proof)
