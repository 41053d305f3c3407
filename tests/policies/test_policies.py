"""Values, rounding and alternatives of a policy, what nature bent, and trajectories."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from test_radius import EXACT, small

import drmdp
from cases import cases
from drmdp import InputError, Wasserstein, instances, policies
from drmdp.policies import fixed_kernel
from drmdp.sets import PAIRS

KINDS = {"dense": {}, "sparse": {"sparse": True}, "rewards": {"rewards": True}}


def value_of(model, policy, kernel):
    """Plain linear system, user's sign; `kernel` is (S, A, S)."""
    costs = np.asarray(drmdp_costs(model, kernel))
    x = np.nan_to_num(policy)
    chain = np.einsum("sa,sat->st", x, np.nan_to_num(kernel))
    value = np.linalg.solve(
        np.eye(model.n_states) - model.discount * chain, (x * costs).sum(axis=1)
    )
    return -value if model.maximise else value


def drmdp_costs(model, kernel):
    costs = model.costs
    if sparse.issparse(costs):
        costs = costs.toarray().reshape(model.n_states, model.n_actions, model.n_states)
    if costs.ndim == 3:
        costs = np.where(kernel > 0, kernel * costs, 0).sum(axis=2)
    return np.where(model.available, costs, 0)


def observed(model):
    """(N, S, A, S)."""
    kernels = model.kernels
    if model.is_sparse:
        kernels = np.stack(
            [k.toarray().reshape(model.n_states, model.n_actions, model.n_states) for k in kernels]
        )
    return np.where(model.available[:, :, None], np.nan_to_num(kernels), 0)


# ---------------------------------------------------------------------- values


def test_the_mean_kernel_of_very_many_states_is_no_array(monkeypatch):
    """A model that was made of arrays keeps what is there; its mean kernel as an array would be
    thousands of times larger.
    """
    model = instances.grid(25, n_kernels=3)
    x = np.full((25, 4), 0.25)
    expected = policies.under(model, x, [None])
    monkeypatch.setattr(fixed_kernel, "ENTRIES", 25 * 4 * 25 - 1)
    assert sparse.issparse(fixed_kernel.matrix_of(model, None))
    np.testing.assert_allclose(policies.under(model, x, [None]), expected, rtol=1e-12)


def test_three_values_of_any_policy():
    for case in cases(("l2", 2), 25, seed=8):
        model = case.model
        x = np.where(model.available, np.random.default_rng(1).random(model.available.shape), 0)
        x /= np.maximum(x.sum(axis=1, keepdims=True), 1e-300)
        scale = np.abs(drmdp.evaluate(model, case.ambiguity, x).value).max()
        found = policies.values(model, case.ambiguity, x, tol=1e-6 * max(scale, 1e-300))
        kernels = observed(model)
        for i in range(model.n_kernels):
            assert np.allclose(
                found.by_kernel[i], value_of(model, x, kernels[i]), rtol=0, atol=1e-9 * scale
            ), case.name
        mean = np.tensordot(model.weights, kernels, axes=1)
        assert np.allclose(found.mean, value_of(model, x, mean), rtol=0, atol=1e-9 * scale), (
            case.name
        )
        sign = -1 if model.maximise else 1
        assert (sign * found.mean <= sign * found.worst.value + 1e-9 * scale).all(), case.name
        at_nature = policies.under(model, x, [found.worst.kernel])[0]
        assert (np.abs(at_nature - found.worst.value) <= 2e-6 * scale).all(), case.name


def test_unknown_costs_do_not_matter_where_no_mass_goes():
    rows = np.zeros((2, 1, 2))
    rows[:, 0, 0] = 1
    costs = np.array([[[1.0, np.nan]], [[3.0, 2.0]]])
    model = drmdp.Model(rows, costs=costs, discount=0.5)
    assert np.allclose(policies.under(model, [0, 0], [None, 0]), [2, 4])


def test_kernels_of_any_form():
    model, x = small(), np.array([0, 1, 2, 0, 0])
    array = model.kernels[2]
    matrix = sparse.csr_array(array.reshape(15, 5))
    for given in ([2], array, [array], array[None], matrix, [matrix]):
        assert np.allclose(policies.under(model, x, given), policies.under(model, x, [2]))
    assert np.allclose(policies.under(model, x, model), policies.under(model, x, [0, 1, 2, 3]))
    large = instances.garnet(2100, 2, branching=3, sparse=True)
    y = np.full((2100, 2), 0.5)
    chain = (sparse.kron(sparse.eye_array(2100), np.full((1, 2), 0.5)) @ large.mean_kernel).tocsc()
    exact = sparse.linalg.spsolve(
        sparse.eye_array(2100).tocsc() - 0.8 * chain, (y * large.costs).sum(axis=1)
    )
    found = policies.under(large, y, [None])[0]
    assert np.allclose(-found if large.maximise else found, exact, rtol=0, atol=1e-7)


# ---------------------------------------------------------------------- deterministic policies


@pytest.mark.parametrize("pair", EXACT)
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_deterministic_policy_of_all(pair, kind):
    model = small(**KINDS[kind], seed=5)
    ambiguity = Wasserstein(
        0.4 * Wasserstein(0, *pair, support="all").saturation(model).max(), *pair, support="all"
    )
    solution = drmdp.solve(model, ambiguity)
    found = policies.deterministic(model, ambiguity, solution)
    sign = -1 if model.maximise else 1
    assert set(np.unique(found.policy)) <= {0, 1}
    worst = drmdp.evaluate(model, ambiguity, found.policy)
    assert np.abs(worst.value - found.value).max() <= 2e-6
    optimum = solution.upper if model.maximise else solution.lower
    assert np.allclose(found.loss, sign * (found.value - optimum), rtol=0, atol=1e-9)
    if pair == ("l2", 2) or kind == "dense":  # 3·2·3·3 policies
        choices = [np.flatnonzero(row) for row in model.available[:4]]
        every = [
            sign * drmdp.evaluate(model, ambiguity, [*chosen, 0], tol=1e-5).value
            for chosen in itertools.product(*choices)
        ]
        assert np.allclose(sign * found.value, np.min(every, axis=0), atol=3e-5)


# ---------------------------------------------------------------------- near-optimal actions


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_those_of_one_action(pair, kind):
    model = small(**KINDS[kind], seed=2)
    ambiguity = Wasserstein(
        0.3 * Wasserstein(0, *pair, support="all").saturation(model).max(), *pair, support="all"
    )
    solution = drmdp.solve(model, ambiguity, tol=1e-7)
    found = policies.near_optimal(model, ambiguity, solution, loss=0.2)
    sign = -1 if model.maximise else 1
    for a in range(3):
        alone = model.available.copy()
        own = alone[:, a].copy()
        alone[own] = False
        alone[own, a] = True
        kernels = model.kernels
        costs = {"rewards": -model.costs} if model.maximise else {"costs": model.costs}
        one = drmdp.Model(
            kernels,
            **costs,
            discount=0.9,
            available=alone | model.terminal[:, None],
            terminal=model.terminal,
        )
        # nature's budget at a state is shared by its actions; unplayed ones take none, so a model
        # with one action has the same value
        step = drmdp.bellman(one, ambiguity, solution.value, backend="conic")
        assert np.allclose(found.value[own, a], step.value[own], rtol=0, atol=1e-6)
    loss = sign * (found.value - (solution.upper if model.maximise else solution.lower)[:, None])
    assert np.allclose(
        found.loss[model.available], np.maximum(loss[model.available], 0), rtol=0, atol=1e-12
    )
    assert np.isinf(found.loss[~model.available]).all()
    limit = np.sort(found.loss.ravel())[6]
    assert policies.near_optimal(model, ambiguity, solution, loss=limit).near.sum() == 7


# ---------------------------------------------------------------------- nature


@pytest.mark.parametrize("kind", KINDS)
def test_what_nature_bent_most(kind):
    model = small(**KINDS[kind])
    solution = drmdp.solve(model, Wasserstein(0.3, support="all"))
    kernel = np.asarray(solution.kernel)
    mean = np.tensordot(model.weights, observed(model), axes=1)
    off = np.abs(np.where(model.available[:, :, None], kernel - mean, 0))
    for policy in (None, solution.policy):
        kept = off if policy is None else np.where(solution.policy[:, :, None] > 0, off, 0)
        found = policies.bent(model, solution.kernel, n=6, policy=policy)
        assert np.allclose([abs(one.change) for one in found], np.sort(kept.ravel())[::-1][:6])
        for one in found:
            assert np.isclose(one.worst, kernel[one.state, one.action, one.next_state])
            assert np.isclose(one.nominal, mean[one.state, one.action, one.next_state])
    assert policies.bent(model, None) == ()


# ---------------------------------------------------------------------- trajectories


@pytest.mark.parametrize("kind", KINDS)
def test_trajectories_follow_policy_and_kernel(kind):
    model = small(**KINDS[kind], seed=1)
    solution = drmdp.solve(model, Wasserstein(0.3, support="all"))
    kernel = np.asarray(solution.kernel)
    found = drmdp.simulate(model, solution.policy, solution.kernel, n=40_000, steps=4, seed=3)
    s, a, t = found.states[:, :-1], found.actions, found.states[:, 1:]
    ends = model.terminal[s]
    assert (a[ends] == -1).all()
    assert (t[ends] == s[ends]).all()
    assert (found.costs[ends] == 0).all()
    own = ~ends
    signed = -model.costs if model.maximise else model.costs
    assert np.array_equal(found.costs[own], signed[s[own], a[own]])
    counts = np.zeros(kernel.shape)
    np.add.at(counts, (s[own], a[own], t[own]), 1)
    visits, pairs = counts.sum(axis=(1, 2)), counts.sum(axis=2)
    some = visits > 0
    assert np.abs(pairs[some] / visits[some, None] - solution.policy[some]).max() < 0.02
    often = pairs > 2000
    assert np.abs(counts[often] / pairs[often][:, None] - kernel[often]).max() < 0.04
    assert (counts[kernel == 0] == 0).all()


def test_totals_estimate_the_value():
    model = small()
    x = model.policy([0, 1, 2, 0, 0])
    for kernel in (None, 1):
        found = drmdp.simulate(model, x, kernel, n=20_000, steps=150, start=2)
        exact = policies.under(model, x, [kernel])[0][2]
        assert abs(found.totals.mean() - exact) < 5 * found.totals.std() / np.sqrt(20_000)
    assert (found.states[:, 0] == 2).all()


def test_seeds_starts_stages_and_next_state_costs():
    model = small()
    x = model.policy([0, 1, 2, 0, 0])
    one, two, other = (drmdp.simulate(model, x, n=50, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.states, two.states)
    assert not np.array_equal(one.states, other.states)
    start = drmdp.simulate(model, x, n=2000, steps=1, start={0: 0.25, 3: 0.75}).states[:, 0]
    assert set(start) == {0, 3}
    assert abs((start == 3).mean() - 0.75) < 0.05
    stages = np.stack([model.policy([0, 0, 0, 0, 0]), model.policy([1, 1, 1, 1, 0])])
    actions = drmdp.simulate(model, stages, n=100, steps=2).actions
    assert set(actions[:, 0]) <= {0, -1}
    assert set(actions[:, 1]) <= {1, -1}
    by_next = np.random.default_rng(0).random((5, 3, 5))
    for given in (by_next, sparse.csr_array(by_next.reshape(15, 5))):
        rows = [
            sparse.csr_array(k.reshape(15, 5))
            for k in np.random.default_rng(1).dirichlet(np.ones(5), size=(2, 5, 3))
        ]
        moved = drmdp.Model(rows, costs=given, discount=0.9)
        found = drmdp.simulate(moved, np.full((5, 3), 1 / 3), n=30, steps=10)
        assert np.allclose(
            found.costs, by_next[found.states[:, :-1], found.actions, found.states[:, 1:]]
        )


# ---------------------------------------------------------------------- mistakes


def unknown_cost(model, ambiguity):
    rows = np.zeros((2, 1, 2))
    rows[:, 0, 0] = 1
    costs = np.array([[[1.0, np.nan]], [[1.0, 2.0]]])
    policies.under(drmdp.Model(rows, costs=costs, discount=0.5), [0, 0], np.full((1, 2, 1, 2), 0.5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m, b: policies.under(m, [0] * 5, [7]),
            "kernels: 0: expected a number from 0 to 3, got 7",
        ),
        (
            lambda m, b: policies.under(m, [0] * 5, [np.ones((2, 2))]),
            r"kernels: 0: expected shape \(5, 3, 5\)",
        ),
        (
            lambda m, b: policies.under(m, [0] * 5, -m.kernels),
            "probabilities must be finite and not negative, got -",
        ),
        (unknown_cost, "state 0, action 0, next state 1 has probability 0.5, its cost is unknown"),
        (
            lambda m, b: policies.near_optimal(m, b, drmdp.solve(m, b), -1),
            "loss must not be negative, got -1.0",
        ),
        (
            lambda m, b: policies.deterministic(small(seed=9), b, drmdp.solve(m, b)),
            "the solution is of another model",
        ),
        (
            lambda m, b: policies.bent(m, None, n=0),
            "n: expected a whole number of at least 1, got 0",
        ),
        (
            lambda m, b: drmdp.simulate(m, [0] * 5, n=0),
            "n: expected a whole number of at least 1, got 0",
        ),
        (lambda m, b: drmdp.simulate(m, [0] * 5, start=9), "start: unknown state 9"),
        (
            lambda m, b: drmdp.simulate(m, np.zeros((2, 5, 3)), steps=3),
            "steps: the plan has 2 stages, got 3 steps",
        ),
        (
            lambda m, b: drmdp.simulate(m, [0] * 5, "mean"),
            "kernel: unknown kernel 'mean'; known: 0, 1, 2, 3",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(small(), replace(Wasserstein(0, support="all"), radius=0.1))


def test_each_step_may_have_a_sparse_kernel():
    model = instances.perturb(instances.garnet(6, 2, seed=3), 3, seed=3)
    S, A, n = model.n_states, model.n_actions, 4
    policy = np.eye(A)[np.zeros((n, S), int)]
    kernels = [model.kernels[k % model.n_kernels] for k in range(n)]
    listed = [sparse.csr_array(own.reshape(S * A, S)) for own in kernels]
    models = [model] * n
    for given in (listed, [sparse.coo_matrix(own) for own in listed]):
        found = drmdp.simulate(models, policy, kernel=given, n=50, seed=1)
        wanted = drmdp.simulate(models, policy, kernel=kernels, n=50, seed=1)
        assert np.array_equal(found.states, wanted.states)
    with pytest.raises(drmdp.InputError, match="one for each of 4 stages, got 0"):
        drmdp.simulate(models, policy, kernel=[])
