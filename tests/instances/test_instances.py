"""Families of test problems against their tables, their distributions and each other."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp import InputError, Model, instances
from drmdp.instances._build import cuts, n_successors, subsets

SMALL = {
    "garnet": (12, 3),
    "machine": (7,),
    "forest": (6,),
    "ring": (9, 4),
    "cycle": (9, 4),
    "grid": (25, 4),
    "reservoir": (9, 4),
}
SAMPLED = ("ring", "cycle", "grid", "reservoir")
RANDOM = ("garnet", *SAMPLED)
DISCOUNTS = {"ring": 0.95, "cycle": 0.95, "grid": 0.95, "reservoir": 0.97}


def dense(model):
    """Give the N kernels as one (N, S, A, S) array, however they are stored."""
    shape = (model.n_kernels, model.n_states, model.n_actions, model.n_states)
    return (
        np.array([k.toarray() for k in model.kernels]).reshape(shape)
        if model.is_sparse
        else model.kernels
    )


# ---------------------------------------------------------------------- every family


@pytest.mark.parametrize("name", instances.FAMILIES)
def test_every_family_is_a_model_with_the_asked_sizes_and_its_default_discount(name):
    model = instances.FAMILIES[name](*SMALL[name])
    assert model.n_states == SMALL[name][0]
    assert model.n_kernels == (SMALL[name][1] if name in SAMPLED else 1)
    assert model.discount == DISCOUNTS.get(name, 0.8)
    assert model.maximise == (name == "forest")
    np.testing.assert_array_equal(model.initial, np.full(model.n_states, 1 / model.n_states))
    np.testing.assert_allclose(dense(model).sum(axis=3)[:, model.available], 1, rtol=0, atol=1e-15)
    assert not model.notes
    assert not model.is_sparse


@pytest.mark.parametrize("name", instances.FAMILIES)
def test_sparse_and_dense_are_the_same_numbers(name):
    family = instances.FAMILIES[name]
    plain, compact = family(*SMALL[name]), family(*SMALL[name], sparse=True)
    assert compact.is_sparse
    assert isinstance(compact.kernels, list)
    np.testing.assert_array_equal(dense(compact), plain.kernels)
    np.testing.assert_array_equal(compact.costs, plain.costs)


@pytest.mark.parametrize("name", instances.FAMILIES)
def test_storage_is_what_the_model_makes_of_plain_arrays(name):
    model = instances.FAMILIES[name](*SMALL[name])
    names = {
        "states": model.states,
        "actions": model.actions,
        "discount": model.discount,
        "available": model.available,
    }
    names |= {"kernel_names": model.kernel_names}
    given = {"rewards": -model.costs} if model.maximise else {"costs": model.costs}
    assert Model(model.kernels, **given, **names) == model


@pytest.mark.parametrize("name", RANDOM)
def test_seed_decides(name):
    family = instances.FAMILIES[name]
    first, again, other = (family(*SMALL[name], seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert not np.array_equal(first.kernels, other.kernels)
    assert np.array_equal(first.costs, other.costs) == (name == "reservoir")


@pytest.mark.parametrize("name", RANDOM)
def test_a_generator_is_used_and_moved_on(name):
    family, rng = instances.FAMILIES[name], np.random.default_rng(3)
    first, second = family(*SMALL[name], seed=rng), family(*SMALL[name], seed=rng)
    assert first == family(*SMALL[name], seed=np.random.default_rng(3))
    assert not np.array_equal(first.kernels, second.kernels)


@pytest.mark.parametrize("name", instances.FAMILIES)
def test_discount_is_passed_on(name):
    assert instances.FAMILIES[name](*SMALL[name], discount=0.5).discount == 0.5
    with pytest.raises(InputError, match="discount"):
        instances.FAMILIES[name](*SMALL[name], discount=1.5)


def test_contents():
    assert set(SMALL) == set(instances.FAMILIES)
    assert set(instances.__all__) == {*SMALL, "FAMILIES", "perturb"}
    assert all(getattr(instances, name) is family for name, family in instances.FAMILIES.items())


# ---------------------------------------------------------------------- tables


def test_machine_with_ten_states():
    operative = [str(s) for s in range(1, 9)]
    no_repair = {str(s): {str(s): 0.2, str(s + 1): 0.8} for s in range(1, 8)}
    no_repair |= {"8": {"8": 1.0}, "R1": {"1": 0.8, "R1": 0.2}, "R2": {"R2": 1.0}}
    repair = {str(s): {str(s + 1): 0.3, "R1": 0.6, "R2": 0.1} for s in range(1, 8)}
    repair |= {
        "8": {"8": 0.3, "R1": 0.6, "R2": 0.1},
        "R1": {"R1": 1.0},
        "R2": {"R1": 0.6, "R2": 0.4},
    }
    model = instances.machine(10)
    assert model.states == (*operative, "R1", "R2")
    assert model.actions == ("no repair", "repair")
    for a, table in enumerate((no_repair, repair)):
        for s, state in enumerate(model.states):
            row = model.kernels[0, s, a]
            assert {model.states[t]: row[t] for t in np.flatnonzero(row)} == table[state]
    np.testing.assert_array_equal(
        model.costs, np.repeat([[0, 0, 0, 0, 0, 0, 0, 20, 2, 10]], 2, axis=0).T
    )


def test_smallest_machine():
    model = instances.machine(4)
    wear = [[0.2, 0.8, 0, 0], [0, 1, 0, 0], [0.8, 0, 0.2, 0], [0, 0, 0, 1]]
    repair = [[0, 0.3, 0.6, 0.1], [0, 0.3, 0.6, 0.1], [0, 0, 1, 0], [0, 0, 0.6, 0.4]]
    np.testing.assert_array_equal(model.kernels[0], np.stack([wear, repair], axis=1))
    np.testing.assert_array_equal(model.costs[:, 0], [0, 20, 2, 10])


def test_forest_with_four_ages():
    model = instances.forest(4)
    wait = [[0.1, 0.9, 0, 0], [0.1, 0, 0.9, 0], [0.1, 0, 0, 0.9], [0.1, 0, 0, 0.9]]
    cut = [[1, 0, 0, 0]] * 4
    np.testing.assert_array_equal(model.kernels[0], np.stack([wait, cut], axis=1))
    np.testing.assert_array_equal(model.costs, [[0, 0], [0, -1], [0, -1], [-4, -2]])
    assert model.states == ("age 1", "age 2", "age 3", "age 4")
    assert model.actions == ("wait", "cut")


def test_smallest_forest():
    model = instances.forest(2)
    np.testing.assert_array_equal(model.kernels[0, :, 0], [[0.1, 0.9], [0.1, 0.9]])
    np.testing.assert_array_equal(model.costs, [[0, 0], [-4, -2]])


# ---------------------------------------------------------------------- random rows


@pytest.mark.parametrize(("n", "k"), [(5, 1), (5, 2), (5, 3), (5, 4), (4, 2), (6, 3)])
def test_every_subset_is_equally_likely(n, k):
    rows = 20_000
    drawn = subsets(np.random.default_rng(0), rows, n, k)
    known = dict.fromkeys(itertools.combinations(range(n), k), 0)
    for row in drawn.tolist():
        known[tuple(row)] += 1  # an unsorted row or one with a repetition is not a key
    p = 1 / len(known)
    assert max(abs(count - rows * p) for count in known.values()) < 4 * math.sqrt(
        rows * p * (1 - p)
    )


def test_a_subset_may_be_everything():
    np.testing.assert_array_equal(subsets(np.random.default_rng(0), 3, 4, 4), [[0, 1, 2, 3]] * 3)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_cuts_are_uniform_on_the_simplex(k):
    rows = 20_000
    drawn = cuts(np.random.default_rng(0), rows, k)
    assert drawn.shape == (rows, k)
    assert (drawn > 0).all()
    np.testing.assert_allclose(drawn.sum(axis=1), 1, rtol=0, atol=1e-15)
    variance = (k - 1) / (k * k * (k + 1))
    np.testing.assert_allclose(
        drawn.mean(axis=0), 1 / k, rtol=0, atol=5 * math.sqrt(variance / rows) + 1e-15
    )
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.1)


@pytest.mark.parametrize(
    ("branching", "n_states", "count"),
    [
        (0.2, 30, 6),
        (0.2, 31, 7),
        (0.05, 10, 1),
        (0.05, 20, 1),
        (0.05, 21, 2),
        (1.0, 9, 9),
        (0.07, 100, 7),
        (1, 9, 1),
        (8, 9, 8),
        (np.int64(3), 9, 3),
        (np.float64(0.5), 9, 5),
    ],
)
def test_number_of_successors(branching, n_states, count):
    assert n_successors(branching, n_states) == count
    model = instances.garnet(n_states, 2, branching)
    assert ((model.kernels > 0).sum(axis=3) == count).all()


def test_garnet_costs_are_uniform_up_to_ten():
    costs = instances.garnet(100, 100, 1).costs
    assert costs.shape == (100, 100)
    counts = np.histogram(costs, bins=10, range=(0, 10))[0]
    assert counts.sum() == costs.size
    assert abs(counts - 1000).max() < 4 * math.sqrt(900)


@pytest.mark.parametrize("sparse_", [False, True])
def test_garnet_with_rewards_is_the_problem_with_costs_at_another_level(sparse_):
    costs, paid = (
        instances.garnet(15, 4, seed=3, rewards=own, sparse=sparse_) for own in (False, True)
    )
    assert paid.maximise
    assert not costs.maximise
    np.testing.assert_array_equal(dense(paid), dense(costs))
    np.testing.assert_allclose(paid.costs, costs.costs - 10, rtol=0, atol=1e-14)
    assert -10 <= paid.costs.min() <= paid.costs.max() <= 0


def test_large_sparse_garnet_stays_small():
    tracemalloc.start()
    try:
        model = instances.perturb(instances.garnet(20_000, 2, 8, sparse=True), 3, same_support=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [kernel.nnz for kernel in model.kernels] == [320_000] * 3
    assert peak < 100e6  # one bit of S·A·S would be 100 MB


# ---------------------------------------------------------------------- perturb


def awkward(**changes):
    """Four states, one of them terminal, with names, a start, an unavailable pair and costs on the
    next state.
    """
    kernel = np.zeros((4, 2, 4))
    kernel[:3, :, :2] = 0.5
    settings = {
        "rewards": np.arange(32.0).reshape(4, 2, 4),
        "discount": 0.7,
        "initial": [0.1, 0.2, 0.3, 0.4],
        "states": ["a", "b", "c", "end"],
        "actions": ["x", "y"],
        "available": {"b": ["y"]},
        "terminal": ["end"],
    }
    return Model(kernel, **(settings | changes))


@pytest.mark.parametrize(
    ("name", "sizes"), [("machine", (10,)), ("forest", (41,)), ("garnet", (30, 4))]
)
def test_perturb_mixes_in_five_per_cent_of_a_garnet(name, sizes):
    nominal = instances.FAMILIES[name](*sizes)
    model = instances.perturb(nominal, 6, seed=2)
    noise = (model.kernels - 0.95 * nominal.kernels) / 0.05
    count = (np.abs(noise) > 1e-12).sum(axis=3)
    assert model.kernels.shape[0] == 6
    assert (count == max(1, math.ceil(nominal.n_states / 20))).all()
    assert noise.min() > -1e-12
    np.testing.assert_allclose(noise.sum(axis=3), 1, rtol=0, atol=1e-13)


def test_perturbed_kernels_are_independent():
    nominal = instances.garnet(40, 5, 2, seed=1)
    model = instances.perturb(nominal, 5, seed=1)
    supports = [nominal.kernels[0] > 0, *((model.kernels - 0.95 * nominal.kernels) / 0.05 > 1e-12)]
    assert all(support.sum(axis=2).max() == 2 for support in supports)
    for one, two in itertools.combinations(supports, 2):
        assert (one == two).all(axis=2).mean() < 0.02  # equal pairs of 40 states: 1 in 780


def test_resampled_kernels_are_independent_and_log_normal():
    nominal = instances.garnet(400, 5, 4, seed=1)
    model = instances.perturb(nominal, 3, seed=1, same_support=True, spread=0.5)
    mask = nominal.kernels[0] > 0
    logs = np.log(model.kernels[:, mask] / nominal.kernels[0][mask]).reshape(3, -1, 4)
    differences = (logs[..., ::2] - logs[..., 1::2]).reshape(
        3, -1
    )  # the normaliser of the row cancels
    np.testing.assert_allclose(differences.mean(axis=1), 0, atol=0.05)
    np.testing.assert_allclose(np.cov(differences), 0.5 * np.eye(3), atol=0.05)


def test_same_support_is_the_same_support():
    nominal = instances.garnet(15, 3, 4)
    model = instances.perturb(nominal, 3, same_support=True)
    np.testing.assert_array_equal(
        model.kernels > 0, np.broadcast_to(nominal.kernels > 0, model.kernels.shape)
    )
    by_default = instances.perturb(nominal, 3, same_support=True, spread=0.3)
    assert model == by_default
    assert model != instances.perturb(nominal, 3, same_support=True, spread=0.4)


@pytest.mark.parametrize("same_support", [False, True])
def test_perturb_keeps_everything_else(same_support):
    nominal = awkward()
    model = instances.perturb(nominal, 3, same_support=same_support)
    assert model.n_kernels == 3
    assert model.maximise
    assert (model.discount, model.states, model.actions) == (
        nominal.discount,
        nominal.states,
        nominal.actions,
    )
    for name in ("costs", "initial", "available", "terminal"):
        np.testing.assert_array_equal(getattr(model, name), getattr(nominal, name))
    np.testing.assert_array_equal(model.weights, np.full(3, 1 / 3))
    np.testing.assert_allclose(
        model.kernels.sum(axis=3)[:, nominal.available], 1, rtol=0, atol=1e-15
    )
    assert not model.kernels[:, ~nominal.available].any()
    assert not np.array_equal(model.kernels[0], nominal.kernels[0])


@pytest.mark.parametrize("same_support", [False, True])
def test_perturb_is_the_same_dense_and_sparse(same_support):
    plain, compact = (
        instances.perturb(instances.garnet(45, 3, sparse=flag), 4, same_support=same_support)
        for flag in (False, True)
    )
    assert compact.is_sparse
    assert not plain.is_sparse
    np.testing.assert_array_equal(dense(compact), plain.kernels)


def test_perturb_keeps_sparse_costs_on_the_next_state():
    kernel = sparse.csr_array([[0.5, 0.5, 0], [0, 0, 1], [0.2, 0, 0.8]])
    costs = sparse.csr_array(
        ([3.0, 1.0, 2.0, 0.0, 5.0], kernel.indices, kernel.indptr), shape=(3, 3)
    )
    nominal = Model([kernel], costs=costs, discount=0.9)
    model = instances.perturb(nominal, 2, same_support=True)
    np.testing.assert_array_equal(model.costs.toarray(), costs.toarray())
    with pytest.raises(InputError, match="costs of some are unknown; use same_support=True"):
        instances.perturb(nominal, 2)


def test_perturb_refuses_transitions_of_unknown_cost():
    rewards = np.where(np.arange(4) < 2, 1.0, np.nan) * np.ones((4, 2, 1))
    nominal = awkward(rewards=rewards)
    assert instances.perturb(nominal, 2, same_support=True).costs_missing
    with pytest.raises(InputError, match="use same_support=True"):
        instances.perturb(nominal, 2)


def test_perturb_of_a_sparse_model_allocates_no_dense_kernel():
    nominal = instances.garnet(3000, 2, 1, sparse=True)
    tracemalloc.start()
    try:
        instances.perturb(nominal, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3000 * 2 * 3000 * 8


@pytest.mark.parametrize("same_support", [False, True])
def test_more_kernels_extend_fewer(same_support):
    nominal = instances.garnet(15, 3)
    few, many = (instances.perturb(nominal, n, seed=4, same_support=same_support) for n in (2, 5))
    np.testing.assert_array_equal(many.kernels[:2], few.kernels)


def test_perturb_follows_its_seed():
    nominal = instances.machine(10)
    first, again, other = (instances.perturb(nominal, 3, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    rng = np.random.default_rng(0)
    assert instances.perturb(nominal, 3, rng) != instances.perturb(nominal, 3, rng)


# ---------------------------------------------------------------------- ring, cycle, grid


@pytest.mark.parametrize(
    ("family", "actions", "table"),
    [
        (
            instances.ring,
            ("left", "stay", "right"),
            [
                {-1: 0.5, 0: 0.3, 1: 0.15, 2: 0.05},
                {-1: 0.1, 0: 0.6, 1: 0.2, 2: 0.1},
                {-1: 0.05, 0: 0.15, 1: 0.5, 2: 0.3},
            ],
        ),
        (instances.cycle, ("step", "hurry", "leap"), [{1: 1.0}, {1: 0.7, 2: 0.3}, {3: 1.0}]),
    ],
)
def test_chain_rows_are_dirichlet_around_their_table(family, actions, table):
    S, N = 7, 1000
    model = family(S, N, seed=1)
    assert model.actions == actions
    expected = np.zeros((S, 3, S))
    for s, a in itertools.product(range(S), range(3)):
        for step, p in table[a].items():
            expected[s, a, (s + step) % S] = p
    np.testing.assert_array_equal(
        model.kernels > 0, np.broadcast_to(expected > 0, model.kernels.shape)
    )
    variance = expected * (1 - expected) / 31
    assert (abs(model.kernels.mean(axis=0) - expected) <= 4.5 * np.sqrt(variance / N)).all()
    np.testing.assert_allclose(model.kernels.var(axis=0), variance, rtol=0.3, atol=1e-30)


@pytest.mark.parametrize("family", [instances.ring, instances.cycle])
def test_chain_costs(family):
    S = 40
    costs = family(S, 1, seed=3).costs
    np.testing.assert_allclose(
        costs - costs[:, :1], np.tile([0, 0.05, 0.1], (S, 1)), rtol=0, atol=1e-14
    )
    noise = costs[:, 0] - 10 * np.exp(-((np.arange(S) - 20) ** 2) / 50)
    assert noise.min() >= 0
    assert noise.max() <= 1
    assert 0.35 < noise.mean() < 0.65
    assert noise.std() > 0.2
    np.testing.assert_array_equal(costs, instances.ring(S, 5, seed=3).costs)


def test_chain_kernels_differ():
    for family in (instances.ring, instances.cycle):
        kernels = family(6).kernels
        assert len(kernels) == 10
        assert len(np.unique(kernels.reshape(10, -1), axis=0)) == 10


@pytest.mark.parametrize("side", [3, 4, 5, 9])
def test_grid_moves(side):
    steps = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
    steps |= {"up-right": (-1, 1), "down-right": (1, 1), "down-left": (1, -1), "up-left": (-1, -1)}
    model = instances.grid(side**2, 3, n_actions=8)
    assert model.actions == tuple(steps)
    support = model.kernels > 0
    assert (support == support[0]).all()
    assert (support.sum(axis=3) == 8).all()
    reached = set()
    for s, a, t in np.argwhere(support[0]).tolist():
        down, right = np.subtract(divmod(t, side), divmod(s, side)) - steps[model.actions[a]]
        gaps = [min(gap % side, -gap % side) for gap in (int(down), int(right))]
        assert sum(gaps) <= 2
        reached.add((int(down % side), int(right % side)))
    assert len(reached) == {3: 9, 4: 11}.get(side, 13)  # the whole neighbourhood is in use


def test_grid_samples_scatter_around_a_common_row():
    kernels = instances.grid(25, 200).kernels
    logs = np.log(kernels[:, kernels[0] > 0]).reshape(200, -1, 8)
    differences = logs[..., 0] - logs[..., 1]
    np.testing.assert_allclose(differences.var(axis=0).mean(), 2 * 0.3**2, rtol=0.1)


def test_grid_costs():
    model = instances.grid(49, 1)
    row, column = np.divmod(np.arange(49), 7)
    noise = model.costs - 10 * np.exp(-((row - 3.5) ** 2 + (column - 3.5) ** 2) / 50)[:, None]
    assert noise.min() >= 0
    assert noise.max() <= 1
    assert noise.std() > 0.2
    assert (noise == noise[:, :1]).all()


# ---------------------------------------------------------------------- reservoir


def test_a_reservoir_year_moves_what_is_left_by_the_same_inflows_in_every_pair():
    model = instances.reservoir(9, 3, months=12, seed=4)
    assert model.actions == tuple(f"release {a}" for a in range(5))
    np.testing.assert_array_equal(model.available, np.arange(5) <= np.arange(9)[:, None])
    np.testing.assert_array_equal(model.costs[8], [64, 27, 8, 1, 0])
    months = model.kernels * 12
    np.testing.assert_allclose(
        months, months.round(), rtol=0, atol=1e-12
    )  # shares of twelve months
    for s, a in np.argwhere(model.available):
        left = s - a
        assert not model.kernels[:, s, a, :left].any()
        empty = model.kernels[
            :, 0, 0
        ]  # from 0 without a release the next storage is the inflow, cut at the top
        np.testing.assert_array_equal(model.kernels[:, s, a, left:-1], empty[:, : 8 - left])


def test_the_law_of_a_reservoir_year_is_poisson_and_years_differ():
    law = instances.reservoir(40, 400, months=None, seed=2).kernels[:, 0, 0]
    inflow = np.arange(40)
    mean = law @ inflow
    assert not law[:, 15:].any()
    slow = mean < 5  # little is cut at 14
    np.testing.assert_allclose((law @ inflow**2 - mean**2)[slow], mean[slow], rtol=0.02)
    np.testing.assert_allclose([mean.mean(), mean.std() / mean.mean()], [4.5, 0.4], rtol=0.1)


def test_robustness_pays_on_years_of_a_reservoir_that_were_not_observed():
    """The claim of the README: over several records, with the radius chosen by holding out one year
    at a time.
    """
    unseen = instances.reservoir(n_kernels=100, seed=1000, months=None)
    point = drmdp.Wasserstein(0, support="observed")
    radii = [0, 0.02, 0.05, 0.1]
    ratios = []
    for seed in range(1, 7):
        record = instances.reservoir(seed=seed)
        chosen = drmdp.radius.cross_validate(record, point, radii, tol=1e-2).best
        mean = drmdp.radius.choose(drmdp.radius.path(record, point, radii, tol=1e-2), unseen).mean
        ratios.append(mean[chosen] / mean[0])
    assert np.mean(ratios) < 0.95
    assert sum(ratio < 1 for ratio in ratios) >= 5


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: instances.garnet(0, 2), "n_states: expected a whole number of at least 1, got 0"),
        (lambda: instances.garnet(5, 0), "n_actions: expected a whole number of at least 1, got 0"),
        (lambda: instances.reservoir(1), "n_states: expected a whole number of at least 2, got 1"),
        (
            lambda: instances.reservoir(months=0),
            "months: expected a whole number of at least 1, got 0",
        ),
        (lambda: instances.garnet(5.0, 2), "n_states: .*got 5.0"),
        (lambda: instances.garnet(True, 2), "n_states: .*got True"),
        (lambda: instances.garnet(5, 2, 0.0), "branching: expected a share in .0, 1. .* got 0.0"),
        (lambda: instances.garnet(5, 2, 1.5), "branching: expected a share .* got 1.5"),
        (lambda: instances.garnet(5, 2, math.nan), "branching: expected a share .* got nan"),
        (lambda: instances.garnet(5, 2, "0.2"), "branching: expected a share .* got '0.2'"),
        (
            lambda: instances.garnet(5, 2, 6),
            "branching: expected a whole number from 1 to 5, got 6",
        ),
        (
            lambda: instances.garnet(5, 2, 0),
            "branching: expected a whole number from 1 to 5, got 0",
        ),
        (lambda: instances.garnet(5, 2, True), "branching: .*got True"),
        (
            lambda: instances.garnet(5, 2, seed=-1),
            "seed: expected a whole number of at least 0, got -1",
        ),
        (lambda: instances.garnet(5, 2, seed=None), "seed: .*got None"),
        (lambda: instances.machine(3), "n_states: expected a whole number of at least 4, got 3"),
        (lambda: instances.forest(1), "n_states: expected a whole number of at least 2, got 1"),
        (lambda: instances.ring(3), "n_states: expected a whole number of at least 4, got 3"),
        (lambda: instances.cycle(3), "n_states: expected a whole number of at least 4, got 3"),
        (lambda: instances.ring(9, 0), "n_kernels: expected a whole number of at least 1, got 0"),
        (lambda: instances.grid(4), "n_states: expected a whole number of at least 9, got 4"),
        (lambda: instances.grid(90), "n_states: expected a square such as 81 or 100, got 90"),
        (
            lambda: instances.grid(81, n_actions=9),
            "n_actions: expected a whole number from 1 to 8, got 9",
        ),
        (lambda: instances.grid(81, 0), "n_kernels: .*got 0"),
        (lambda: instances.perturb(instances.machine(5), 0), "n_kernels: .*got 0"),
        (
            lambda: instances.perturb(instances.ring(5, 2), 3),
            "perturb: expected a model with one kernel, got 2",
        ),
        (
            lambda: instances.perturb(instances.machine(5), 3, spread=0.1),
            "spread: .*only with same_support=True",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("spread", [0.0, -1.0, 11.0, math.nan, "wide", [0.1, 0.2]])
def test_bad_spread_is_named(spread):
    with pytest.raises(InputError, match="spread: expected"):
        instances.perturb(instances.machine(5), 3, same_support=True, spread=spread)
