"""Half of each stage in the state after it: by hand, by brute force, in evaluations, simulations
and proofs.
"""

from fractions import Fraction

import numpy as np
import pytest

import drmdp
import drmdp_check
from drmdp.errors import InputError

SETS = (
    drmdp.Wasserstein(0.2),
    drmdp.Wasserstein(0.3, metric="l1", rectangular="sa"),
    drmdp.Divergence(0.1, kind="kl"),
)


def problem(seed, S=4, A=2, N=2, sparse=False, rewards=False):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.ones(S), (N, S, A)) * (rng.random((S, A, S)) < 0.7)
    kernels[..., 0] += 1e-3
    kernels /= kernels.sum(axis=-1, keepdims=True)
    prices = rng.normal(size=(S, A)).round(2)
    given = [csr_array(each.reshape(S * A, S)) for each in kernels] if sparse else kernels
    terminal = [S - 1] if seed % 2 else None
    own = {"rewards" if rewards else "costs": prices}
    return drmdp.Model(given, **own, discount=0.9, terminal=terminal), kernels, prices


def by_hand(prices, terminal):
    """(c(s, a) + c(t, a))/2, entry by entry."""
    S, A = prices.shape
    c = [[0.0 if terminal[s] else float(prices[s, a]) for a in range(A)] for s in range(S)]
    return np.array(
        [[[(c[s][a] + c[t][a]) / 2 for t in range(S)] for a in range(A)] for s in range(S)]
    )


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_problem_with_these_costs(seed):
    model, _, prices = problem(seed, sparse=seed % 4 == 2, rewards=seed % 3 == 0)
    ambiguity, T = SETS[seed % 3], 5
    halves = np.broadcast_to(by_hand(prices, model.terminal), (T, 4, 2, 4))
    found = drmdp.finite_horizon(model, ambiguity, stages=T, half_cycle=True)
    expected = drmdp.finite_horizon(model, ambiguity, stages=T, costs=halves)
    assert np.allclose(found.value, expected.value, rtol=1e-12, atol=1e-12)
    assert found.half_cycle
    again = drmdp.evaluate(model, ambiguity, found)  # it knows
    assert np.allclose(again.value, found.value, rtol=1e-9, atol=1e-9)
    assert again.half_cycle
    other = drmdp.evaluate(model, ambiguity, found.policy, half_cycle=True)
    assert np.array_equal(other.value, again.value)


@pytest.mark.parametrize("seed", range(6))
def test_without_doubt_it_is_a_recursion_in_fractions(seed):
    model, kernels, prices = problem(seed, N=1)
    T, S, A = 4, 4, 2
    exact = np.vectorize(Fraction)
    P, c = exact(kernels[0]), exact(prices)
    end = model.terminal
    v = [Fraction(0)] * S
    for _ in range(T):
        w = []
        for s in range(S):
            if end[s]:
                w.append(Fraction(0))
                continue
            q = [
                sum(
                    P[s, a, t] * ((c[s, a] + (0 if end[t] else c[t, a])) / 2 + Fraction(0.9) * v[t])
                    for t in range(S)
                )
                for a in range(A)
            ]
            w.append(min(q))
        v = w
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.0), stages=T, half_cycle=True)
    assert np.allclose(plan.value[0], [float(x) for x in v], rtol=1e-12, atol=1e-12)
    assert (plan.lower[0] <= [float(x) + 1e-14 for x in v]).all()


def test_costs_of_states_telescope():
    """Nothing discounted, costs of the state alone: half of the first, half of the last state's,
    all between.
    """
    rng = np.random.default_rng(5)
    P, c, T = rng.dirichlet(np.ones(3), 3), np.array([4.0, 1.0, 16.0]), 6
    model = drmdp.Model(P[:, None, :], costs=c[:, None], discount=1.0)
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.0), stages=T, half_cycle=True)
    powers = [np.linalg.matrix_power(P, t) @ c for t in range(T + 1)]
    assert np.allclose(plan.value[0], powers[0] / 2 + sum(powers[1:T]) + powers[T] / 2, rtol=1e-13)


def test_simulations_saved_plans_and_proofs_agree(tmp_path):
    model, _, prices = problem(1)
    ambiguity = drmdp.Wasserstein(0.2)
    plan = drmdp.finite_horizon(model, ambiguity, stages=5, half_cycle=True)
    plan.save(tmp_path / "plan.npz")
    loaded = drmdp.HorizonSolution.load(tmp_path / "plan.npz")
    assert np.array_equal(
        drmdp.evaluate(model, ambiguity, loaded).value, drmdp.evaluate(model, ambiguity, plan).value
    )
    paths = drmdp.simulate(model, plan, kernel=plan.kernels, n=40_000, seed=0)
    error = paths.totals.std() / 200
    assert abs(paths.totals.mean() - plan.initial @ plan.value[0]) < 5 * error
    plan.proof(tmp_path / "plan.proof")
    drmdp.write(model, tmp_path / "model.npz")
    np.save(tmp_path / "costs.npy", np.stack([by_hand(prices, model.terminal)] * 5))
    files = [tmp_path / "model.npz", tmp_path / "costs.npy"]
    assert not list(drmdp_check.check(tmp_path / "plan.proof", files).failures())
    np.save(tmp_path / "costs.npy", np.stack([prices] * 5))  # whole cycles are not what is proved
    assert list(drmdp_check.check(tmp_path / "plan.proof", files).failures())
    rounded = drmdp.policies.deterministic(model, ambiguity, loaded)
    assert np.allclose(
        rounded.value, drmdp.evaluate(model, ambiguity, rounded.policy, half_cycle=True).value
    )


def test_costs_that_are_not_known_are_refused():
    kernel = np.array([[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]])
    model = drmdp.Model(
        kernel,
        costs=[[1.0, 2.0], [3.0, 4.0]],
        discount=0.9,
        available=[[True, True], [False, True]],
    )
    with pytest.raises(
        InputError, match="half_cycle: state 0, action 0 leads to 1, where that action has no cost"
    ):
        drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=2, half_cycle=True)
    by_next = drmdp.Model(kernel, costs=np.ones((2, 2, 2)), discount=0.9)
    with pytest.raises(InputError, match="depend on what happens next"):
        drmdp.finite_horizon(by_next, drmdp.Wasserstein(0.1), stages=2, half_cycle=True)
    with pytest.raises(InputError, match="half_cycle: goes with a plan"):
        drmdp.evaluate(model, drmdp.Wasserstein(0.1), [1, 1], half_cycle=True)
    kernel[1, 0] = 0, 1
    apart = drmdp.Model(
        kernel[None],
        costs=[[1.0, 2.0], [3.0, 4.0]],
        discount=0.9,
        available=[[False, True], [True, True]],
    )
    with pytest.raises(
        InputError, match="support='all'"
    ):  # nature could go where an action has no cost
        drmdp.finite_horizon(
            apart, drmdp.Wasserstein(0.1, support="all"), stages=2, half_cycle=True
        )
