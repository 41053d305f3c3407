"""Objects of QuantEcon, pymdptoolbox and gymnasium: taken over, given back, and solved alike at
radius 0.
"""

import warnings

import gymnasium
import numpy as np
import pytest
from quantecon.markov import DiscreteDP
from scipy import sparse

import drmdp
from drmdp import InputError, Model, instances
from drmdp.formats import (
    from_gymnasium,
    from_mdptoolbox,
    from_quantecon,
    to_gymnasium,
    to_mdptoolbox,
    to_quantecon,
)
from texts import known_everywhere, listed, ragged, same_kernels

NOMINAL = drmdp.Wasserstein(0.0, support="observed")


def by_pair():
    """Every action everywhere, rewards by pair."""
    y = np.random.default_rng(0).dirichlet([0.5] * 4, (4, 3))
    return Model(y, rewards=np.random.default_rng(1).normal(size=(4, 3)), discount=0.8)


def value(model):
    """Optimal nominal value."""
    return drmdp.solve(model, NOMINAL, tol=1e-9).value


# ---------------------------------------------------------------------- QuantEcon


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(
    "model",
    [by_pair(), ragged(), instances.garnet(8, 2, sparse=True)],
    ids=["all", "ragged", "sparse"],
)
def test_quantecon_round_trip(model, pairs):
    ddp = to_quantecon(model, pairs=pairs)
    found = from_quantecon(ddp)
    rewards = np.where(model.available, -model.costs, 0)
    np.testing.assert_array_equal(-found.costs, rewards)
    assert found.discount == model.discount
    if model.terminal.any():  # they stay where they are for nothing
        np.testing.assert_allclose(value(found)[model.terminal], 0, rtol=0, atol=1e-9)
        np.testing.assert_allclose(value(found), value(model), rtol=0, atol=1e-8)
    else:
        same_kernels(found, model)
    assert found.is_sparse == pairs


def test_the_form_of_quantecon_follows_the_model():
    assert to_quantecon(by_pair()).s_indices is None
    assert to_quantecon(instances.garnet(8, 2, sparse=True)).s_indices is not None


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(
    "model", [ragged(), listed(), known_everywhere()], ids=["ragged", "next state", "known"]
)
def test_quantecon_finds_the_nominal_values(model, pairs):
    found = to_quantecon(model, pairs=pairs).solve(method="policy_iteration").v
    np.testing.assert_allclose(found, value(model), rtol=0, atol=1e-7)


def test_one_of_several_kernels_is_chosen():
    model = ragged(3)
    with pytest.raises(InputError, match="the model has 3 kernels: choose one, or kernel='mean'"):
        to_quantecon(model)
    for bad in (3, -1, True):
        with pytest.raises(InputError, match=r"kernel: expected a number from 0 to 2, got"):
            to_quantecon(model, kernel=bad)
    with pytest.raises(InputError, match="kernel: unknown kernel 'median'"):
        to_quantecon(model, kernel="median")
    np.testing.assert_array_equal(to_quantecon(model, kernel=1).Q[1, 1], model.kernels[1, 1, 1])
    np.testing.assert_array_equal(
        to_quantecon(model, kernel="mean").Q[1, 1], model.mean_kernel[1, 1]
    )
    np.testing.assert_allclose(
        to_quantecon(model, kernel="mean").solve("policy_iteration").v,
        value(model),
        rtol=0,
        atol=1e-7,
    )


def test_pairs_of_quantecon_may_be_infeasible_or_dense():
    R, Q = np.array([1.0, -np.inf, 2.0]), np.array([[0.5, 0.5], [1, 0], [0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = from_quantecon(DiscreteDP(R, Q, 0.9, [0, 0, 1], [0, 1, 1]))
    np.testing.assert_array_equal(model.available, [[True, False], [False, True]])
    np.testing.assert_array_equal(model.mean_kernel.toarray()[[0, 3]], [[0.5, 0.5], [0, 1]])


def test_what_is_not_a_discrete_dp_is_refused():
    with pytest.raises(InputError, match="expected a quantecon DiscreteDP, got int"):
        from_quantecon(3)


# ---------------------------------------------------------------------- pymdptoolbox


def test_mdptoolbox_arrays():
    P = np.array([[[0.5, 0.5], [0.8, 0.2]], [[0, 1], [0.1, 0.9]]])
    R = np.array([[5, 10], [-1, 2]])
    model = from_mdptoolbox(P, R, 0.9)
    np.testing.assert_array_equal(
        model.mean_kernel, [[[0.5, 0.5], [0, 1]], [[0.8, 0.2], [0.1, 0.9]]]
    )
    np.testing.assert_allclose(
        value(model), [42.44185, 36.04651], atol=1e-4
    )  # its documentation, PolicyIteration
    np.testing.assert_array_equal(from_mdptoolbox(P, [5, 2], 0.9).costs, [[-5, -5], [-2, -2]])


@pytest.mark.parametrize("form", ["array", "list", "object", "sparse", "sparse object"])
def test_mdptoolbox_forms_are_the_same(form):
    model = by_pair()
    P, R = to_mdptoolbox(model)
    rewards = np.arange(48.0).reshape(3, 4, 4)
    if form.startswith("sparse"):
        P, rewards = (
            [sparse.csr_matrix(matrix) for matrix in P],
            [sparse.coo_matrix(matrix) for matrix in rewards],
        )
    if form == "list":
        P, rewards = list(P), list(rewards)
    if form.endswith("object"):
        held = np.empty(3, dtype=object), np.empty(3, dtype=object)
        for a in range(3):
            held[0][a], held[1][a] = P[a], rewards[a]
        P, rewards = held
    found = from_mdptoolbox(P, R, 0.8)
    same_kernels(found, model)
    np.testing.assert_array_equal(found.costs, model.costs)
    dependent = from_mdptoolbox(P, rewards, 0.8)
    costs = (
        dependent.costs.toarray() if form.startswith("sparse") else dependent.costs.reshape(12, 4)
    )
    np.testing.assert_array_equal(
        -costs.reshape(4, 3, 4), np.arange(48.0).reshape(3, 4, 4).transpose(1, 0, 2)
    )


def test_mdptoolbox_round_trip_of_sparse_models():
    model = instances.garnet(9, 3, sparse=True)
    P, R = to_mdptoolbox(model)
    assert all(sparse.issparse(matrix) for matrix in P)
    same_kernels(from_mdptoolbox(P, R, model.discount), model)


def test_mdptoolbox_terminal_states_stay_and_unavailable_actions_are_refused():
    y = np.full((2, 1, 2), 0.5)
    P, R = to_mdptoolbox(Model(y, costs=[1.0, 5.0], discount=0.5, terminal=[1]))
    np.testing.assert_array_equal(P, [[[0.5, 0.5], [0, 1]]])
    np.testing.assert_array_equal(R, [[-1], [0]])
    with pytest.raises(InputError, match="state 0, action 1 is not available"):
        to_mdptoolbox(ragged())


@pytest.mark.parametrize(
    ("P", "R", "message"),
    [
        (np.ones((2, 2)), [0, 0], r"transitions: expected shape \(A, S, S\), got \(2, 2\)"),
        (np.ones((1, 2, 3)), [0, 0], r"transitions: expected shape \(A, S, S\), got \(1, 2, 3\)"),
        (
            [sparse.eye_array(2), sparse.eye_array(3)],
            [0, 0],
            r"transitions: action 1 has shape \(3, 3\)",
        ),
        (
            np.eye(2)[None],
            [0, 0, 0],
            r"rewards: expected shape \(2,\), \(2, 1\) or \(1, 2, 2\), got \(3,\)",
        ),
        (np.eye(2)[None] / 2, [0, 0], "kernel 0, state 0, action 0 sums to 0.5, not 1"),
        ("P", [0, 0], "transitions: expected an array of numbers"),
    ],
)
def test_mdptoolbox_mistakes(P, R, message):
    with pytest.raises(InputError, match=message):
        from_mdptoolbox(P, R, 0.9)


# ---------------------------------------------------------------------- gymnasium


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("FrozenLake-v1", (16, 4, 5)), ("CliffWalking-v1", (48, 4, 1)), ("Taxi-v4", (500, 6, 4))],
)
def test_toy_text(name, sizes):
    env = gymnasium.make(name)
    model = from_gymnasium(env, 0.95)
    assert (model.n_states, model.n_actions, int(model.terminal.sum())) == sizes
    np.testing.assert_allclose(model.initial, env.unwrapped.initial_state_distrib)
    found = value(model)
    reached = reachable(env.unwrapped)
    np.testing.assert_allclose(
        found[reached], plain_values(env.unwrapped.P, 0.95)[reached], rtol=0, atol=1e-6
    )
    again = from_gymnasium(to_gymnasium(model), 0.95)
    same_kernels(again, model)
    np.testing.assert_array_equal(
        *(m.costs.toarray() if m.next_costs else m.costs for m in (again, model))
    )


def plain_values(P, discount):
    """Value iteration on the table itself, which knows nothing of terminal states but the flags."""
    v = np.zeros(len(P))
    for _ in range(450):  # .95 to that power is 1e-10
        v = np.array(
            [
                max(
                    sum(p * (r + discount * v[t] * (not end)) for p, t, r, end in P[s][a])
                    for a in P[s]
                )
                for s in P
            ]
        )
    return v


def reachable(env):
    """States that an episode can be in before it ends."""
    fresh = np.flatnonzero(env.initial_state_distrib).tolist()
    found = set(fresh)
    while fresh:
        s = fresh.pop()
        new = {t for row in env.P[s].values() for p, t, _, end in row if p > 0 and not end} - found
        found |= new
        fresh.extend(new)
    return sorted(found)


TABLE = {
    0: {
        0: [(0.5, 0, 1.0, False), (0.25, 1, 2.0, True), (0.25, 1, 4.0, True)],
        1: [(1.0, 0, 0.0, False)],
    },
    1: {0: [(1.0, 0, 100.0, False)], 1: [(1.0, 0, 100.0, False)]},
}


def test_a_table_alone():
    model = from_gymnasium(TABLE, 0.5)
    np.testing.assert_array_equal(model.terminal, [False, True])
    np.testing.assert_array_equal(model.mean_kernel[0], [[0.5, 0.5], [1, 0]])
    np.testing.assert_array_equal(
        -model.costs.toarray()[:2], [[1, 3], [0, 0]]
    )  # 2 and 4 are equally likely


def entry(**changes):
    p, t, r, end = (
        changes.get(name, default)
        for name, default in (("p", 1.0), ("t", 0), ("r", 0.0), ("end", False))
    )
    return {0: {0: [(p, t, r, end)]}}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (gymnasium.make("Blackjack-v1"), "BlackjackEnv has no table P of transitions"),
        ({}, "P: no states"),
        ({0: {}}, "P: no actions"),
        ({1: {0: []}}, "P: states are 0 … 0, each with a mapping, got 1"),
        ({0: [1]}, "P: states are 0 … 0, each with a mapping"),
        ({0: {3: []}}, "P: state 0, action 3: actions are 0 … 0"),
        ({0: {0: 3}}, "P: state 0, action 0: expected a list of transitions, got 3"),
        (
            {0: {0: [(1.0, 0)]}},
            r"P: state 0, action 0: expected \(p, t, reward, terminated\), got \(1.0, 0\)",
        ),
        (entry(t=7), "P: state 0, action 0: unknown next state 7"),
        (entry(t=True), "P: state 0, action 0: unknown next state True"),
        (
            entry(p=0.5),
            "state 0, action 0: the row of kernel 0 that begins here sums to 0.5, not 1",
        ),
        (entry(p="one"), "P: state 0, action 0: expected a number, got 'one'"),
        (entry(p=-1.0), "state 0, action 0: probabilities must not be negative, got -1.0"),
        (
            entry(p=np.nan),
            "P: state 0, action 0: probabilities and rewards must be finite, got nan",
        ),
        (
            entry(r=np.inf),
            "P: state 0, action 0: probabilities and rewards must be finite, got inf",
        ),
        (
            {
                0: {0: [(0.5, 1, 0.0, True), (0.5, 0, 0.0, False)], 1: [(1.0, 1, 0.0, False)]},
                1: {0: [(1.0, 1, 0.0, False)]},
            },
            "P: state 0, action 0 ends in state 1, but state 0, action 1 goes on from there",
        ),
    ],
)
def test_tables_with_mistakes(table, message):
    with pytest.raises(InputError, match=message):
        from_gymnasium(table, 0.9)


def test_actions_of_gymnasium_have_their_names():
    import gymnasium

    assert from_gymnasium(gymnasium.make("FrozenLake-v1"), 0.9).actions == (
        "LEFT",
        "DOWN",
        "RIGHT",
        "UP",
    )
    assert from_gymnasium(gymnasium.make("CliffWalking-v1"), 0.9).actions == (
        "UP",
        "RIGHT",
        "DOWN",
        "LEFT",
    )
    assert from_gymnasium(gymnasium.make("Taxi-v4"), 0.9).actions == range(6)
