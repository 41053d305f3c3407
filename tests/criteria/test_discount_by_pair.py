"""A discount for each pair (semi-Markov models), and continuous time by rates: against plain
iteration, linear systems, conic programs and fractions.
"""

import contextlib
import io

import numpy as np
import pytest

import drmdp
from drmdp_check.__main__ import main

SETS = {
    "l1": lambda r: drmdp.Wasserstein(r, metric="l1"),
    "l2": drmdp.Wasserstein,
    "l2 sa": lambda r: drmdp.Wasserstein(r, rectangular="sa"),
    "l2 observed": lambda r: drmdp.Wasserstein(r, support="observed"),
    "linf": lambda r: drmdp.Wasserstein(r, metric="linf"),
    "l2 each": lambda r: drmdp.Wasserstein(r, order=np.inf),
    "kl": lambda r: drmdp.Divergence(r, kind="kl"),
    "burg": lambda r: drmdp.Divergence(r, kind="burg"),
    "chi2": lambda r: drmdp.Divergence(r, kind="chi2"),
    "tv": lambda r: drmdp.Divergence(r, kind="tv"),
    "reweighting": drmdp.Reweighting,
}


def problem(seed, **more):
    rng = np.random.default_rng(seed)
    S, A, N = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    kernels = rng.dirichlet(np.full(S, 0.5), (N, S, A))
    discount = rng.choice([0.0, 0.5, 0.9, 0.97], (S, A)) * rng.uniform(0.9, 1.0, (S, A))
    discount[0, 0] = 0.95
    level = rng.choice([0.0, 1e6])
    return drmdp.Model(kernels, costs=level + rng.uniform(-3, 5, (S, A)), discount=discount, **more)


def verified(proof, path, *options):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main([str(proof), str(path), *options])


def check(name, seed, folder=None, conic=False, nature="adversarial"):
    model = problem(seed)
    found = drmdp.solve(model, SETS[name](0.2), nature=nature)
    assert found.status == "solved"
    other = drmdp.solve(model, SETS[name](0.2), nature=nature, method="value-iteration", rtol=1e-5)
    assert (found.lower <= other.upper).all()
    assert (other.lower <= found.upper).all()
    again = drmdp.evaluate(model, SETS[name](0.2), found, nature=nature)
    assert (again.lower <= found.upper).all()
    assert (again.upper >= found.lower).all()
    if conic:
        slow = drmdp.solve(model, SETS[name](0.2), backend="conic")
        assert (found.lower <= slow.upper).all()
        assert (slow.lower <= found.upper).all()
    if folder is not None:
        drmdp.write(model, folder / "m.npz")
        found.proof(folder / "p")
        assert verified(folder / "p", folder / "m.npz") == 0


@pytest.mark.parametrize("name", SETS)
def test_all_sets(name, tmp_path):
    check(name, 1, tmp_path)
    check(name, 2, tmp_path, nature="cooperative")


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SETS)
def test_many_problems(name, tmp_path):
    for seed in range(100):
        check(
            name,
            seed,
            tmp_path if seed < 20 else None,
            seed < 10,
            ("adversarial", "cooperative")[seed % 4 == 3],
        )


def test_radius_0_is_a_linear_system():
    """Enumerated policies, each by a linear system."""
    for seed in range(20):
        model = problem(seed)
        S, A = model.available.shape
        best = np.full(S, np.inf)
        for k in range(A**S):
            x = k // A ** np.arange(S) % A
            rows = np.arange(S), x
            chain = (
                np.tensordot(model.weights, model.kernels, 1)[rows] * model.discounts[rows][:, None]
            )
            best = np.minimum(best, np.linalg.solve(np.eye(S) - chain, model.costs[rows]))
        found = drmdp.solve(model, drmdp.Wasserstein(0.0))
        slack = 1e-12 * np.abs(best).max()
        assert (found.lower <= best + slack).all()
        assert (best <= found.upper + slack).all()


def test_a_proof_is_of_its_discounts(tmp_path):
    model = problem(3)
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.2)).proof(tmp_path / "p")
    assert verified(tmp_path / "p", tmp_path / "m.npz") == 0
    assert verified(tmp_path / "p", tmp_path / "m.npz", "--interval") == 0
    other = np.array(model.discounts)
    other[-1, -1] += 1e-9
    drmdp.write(drmdp.Model(model.kernels, costs=model.costs, discount=other), tmp_path / "o.npz")
    assert verified(tmp_path / "p", tmp_path / "o.npz") != 0


def test_files_and_equal_discounts(tmp_path):
    model = problem(4)
    for path in (tmp_path / "m.npz", tmp_path / "m.drmdp"):
        drmdp.write(model, path)
        assert drmdp.read(path) == model
        assert (drmdp.read(path).discounts == model.discounts).all()
    same = drmdp.Model(
        model.kernels, costs=model.costs, discount=np.full(model.available.shape, 0.9)
    )
    assert same.discounts is None
    assert same == drmdp.Model(model.kernels, costs=model.costs, discount=0.9)
    with pytest.raises(drmdp.InputError, match="discount for each pair"):
        drmdp.write(model, tmp_path / "m.csv")
    with pytest.raises(drmdp.InputError, match="one for each pair"):
        drmdp.solve(tmp_path / "m.drmdp", drmdp.Wasserstein(0.1))


def test_refusals():
    model = problem(5)
    bad = np.array(model.discounts)
    bad[1, 0] = 1.5
    with pytest.raises(
        drmdp.InputError, match=r"discount must be in \[0, 1\]: state 1, action 0 has 1.5"
    ):
        drmdp.Model(model.kernels, costs=model.costs, discount=bad)
    bad[1, 0] = 1.0
    whole = drmdp.Model(model.kernels, costs=model.costs, discount=bad)
    with pytest.raises(drmdp.InputError, match="1 for some pairs"):
        drmdp.solve(whole, drmdp.Wasserstein(0.1))
    with pytest.raises(drmdp.InputError, match="first-order"):
        drmdp.solve(model, drmdp.Wasserstein(0.1), method="first-order")
    with pytest.raises(drmdp.InputError, match="say which one"):
        drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=3)


def test_q_values_and_values():
    model = problem(6)
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), rtol=1e-10)
    q = model.costs + model.discounts * (
        np.tensordot(model.weights, model.kernels, 1) @ found.value
    )
    assert np.allclose(q.min(axis=1), found.value, rtol=1e-8)
    assert np.allclose(found.q_values, q, rtol=1e-8)
    for value, kernel in zip(
        drmdp.policies.values(model, drmdp.Wasserstein(0.0), found).by_kernel,
        model.kernels,
        strict=True,
    ):
        move = np.einsum("sa,sa,sat->st", found.policy, model.discounts, kernel)
        alone = np.linalg.solve(
            np.eye(model.n_states) - move, (found.policy * model.costs).sum(axis=1)
        )
        assert np.allclose(value, alone, rtol=1e-9)


# ---------------------------------------------------------------------- rates


def queue(n=12, arrive=0.8, speeds=(1.0, 1.6)):
    rates = np.zeros((n, len(speeds), n))
    for s in range(n):
        for a, speed in enumerate(speeds):
            if s + 1 < n:
                rates[s, a, s + 1] = arrive
            if s > 0:
                rates[s, a, s - 1] = speed
            rates[s, a, s] = -rates[s, a].sum()
    return rates, np.arange(n)[:, None] + np.array([0.0, 1.5])


def test_values_of_rates_solve_their_equation():
    rates, costs = queue()
    jump = np.random.default_rng(0).uniform(0, 2, (12, 2, 12))
    for interest, own in ((0.05, None), (0.05, jump), (3.0, jump)):
        model = drmdp.Model.from_rates(rates, costs=costs, interest=interest, jump_costs=own)
        v = drmdp.solve(model, drmdp.Wasserstein(0.0), tol=1e-12).value
        moved = 0.0 if own is None else (np.where(rates > 0, rates, 0.0) * own).sum(axis=2)
        left = (costs + moved + rates @ v).min(axis=1) - interest * v
        assert np.abs(left).max() <= 1e-10 * max(1.0, np.abs(v).max())


def test_average_of_rates_is_per_unit_of_time():
    """M/M/1/K with one speed: the mean number in the system in closed form."""
    rates, costs = queue(speeds=(1.0,))
    model = drmdp.Model.from_rates(rates, costs=costs[:, :1], interest=0)
    share = 0.8 ** np.arange(12)
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), criterion="average")
    assert found.value[0] == pytest.approx(float(share @ np.arange(12) / share.sum()), rel=1e-6)


def test_total_of_rates_until_the_end():
    """A machine of two parts, each of which lasts 10 days: both are gone after 15."""
    rates = np.array([[[-0.2, 0.2, 0]], [[0, -0.1, 0.1]], [[0, 0, 0]]])
    model = drmdp.Model.from_rates(rates, costs=[1, 1, 0], interest=0, terminal=[2])
    assert drmdp.solve(model, drmdp.Wasserstein(0.0)).value[:2] == pytest.approx([15, 10], rel=1e-6)


def test_rates_that_are_none():
    rates, costs = queue()
    for change, words in (
        (-2.0, "not negative"),
        (2.0, r"must sum to 0: kernel 0, state 3, action 1 sums to 0.99"),
    ):
        bad = rates.copy()
        bad[3, 1, 2 if change < 0 else 7] = change if change < 0 else 1.0
        with pytest.raises(drmdp.InputError, match=words):
            drmdp.Model.from_rates(bad, costs=costs, interest=0.1)
    with pytest.raises(drmdp.InputError, match="interest"):
        drmdp.Model.from_rates(rates, costs=costs, interest=-1)
    with pytest.raises(drmdp.InputError, match="largest rate"):
        drmdp.Model.from_rates(0 * rates, costs=costs, interest=0.1)
