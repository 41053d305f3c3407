"""`Model`: what it keeps of what it is given, and what it says when it cannot."""

import datetime
import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp.core import storage

N, S, A = 2, 3, 2
STATES, ACTIONS = ("low", "mid", "high"), ("wait", "go")
FORMS = (
    "csr_array",
    "csc_array",
    "coo_array",
    "csr_matrix",
    "lil_array",
    "dok_array",
    "bsr_array",
    "dia_array",
)


def rows(n_kernels=N, seed=0):
    """Kernels (N, S, A, S): none goes from 0 to 2 by action 0, only kernel 1 from 1 to 0 by action
    1.
    """
    y = np.random.default_rng(seed).dirichlet(np.ones(S), (n_kernels, S, A))
    y[:, 0, 0, 2] = 0
    y[0, 1, 1, 0] = 0
    y[:, 2, 1] = [0, 0, 1]
    return y / y.sum(axis=-1, keepdims=True)


def costs(*shape):
    return np.random.default_rng(1).normal(size=shape or (S, A))


def flat(kernels, form="csr_array"):
    """Sparse (S·A, S) matrices of dense kernels."""
    return [getattr(sparse, form)(kernel.reshape(-1, kernel.shape[-1])) for kernel in kernels]


def build(kernels=None, **given):
    if "costs" not in given and "rewards" not in given:
        given["costs"] = costs()
    return drmdp.Model(rows() if kernels is None else kernels, **{"discount": 0.9, **given})


def named(kernels=None, **given):
    return build(kernels, **{"states": STATES, "actions": ACTIONS, **given})


def same_bits(x, y):
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


# ---------------------------------------------------------------------- attributes and forms


def test_attributes_of_the_contract():
    given = rows()
    model = build(given)
    assert (model.n_states, model.n_actions, model.n_kernels) == (S, A, N)
    assert model.discount == 0.9
    assert type(model.discount) is float
    assert same_bits(model.costs, costs())
    assert model.weights.tolist() == [0.5, 0.5]
    assert model.initial.tolist() == [1 / 3] * 3
    assert list(model.states) == [0, 1, 2]
    assert list(model.actions) == [0, 1]
    assert model.available.dtype == bool
    assert model.available.shape == (S, A)
    assert model.available.all()
    assert not model.terminal.any()
    assert same_bits(model.kernels, given)
    assert np.allclose(model.mean_kernel, given.mean(axis=0), rtol=1e-15, atol=0)
    assert not model.maximise
    assert not model.is_sparse
    assert not model.next_costs
    assert model.notes == ()


@pytest.mark.parametrize(
    "as_given", [np.array, np.ndarray.tolist, np.asfortranarray], ids=["array", "lists", "fortran"]
)
@pytest.mark.parametrize("n_kernels", [1, 2, 3])
def test_dense_kernels_come_back_bitwise(n_kernels, as_given):
    given = rows(n_kernels)
    assert same_bits(build(as_given(given)).kernels, given)


def test_one_kernel_without_its_axis():
    assert build(rows(1)[0]) == build(rows(1))


@pytest.mark.parametrize("container", [list, tuple])
@pytest.mark.parametrize("form", FORMS)
def test_sparse_kernels_come_back_bitwise(form, container):
    given = rows()
    model = build(container(flat(given, form)))
    assert model.is_sparse
    assert len(model.kernels) == N
    for i, matrix in enumerate(model.kernels):
        assert sparse.issparse(matrix)
        assert same_bits(matrix.toarray(), given[i].reshape(S * A, S))
        assert matrix.nnz == np.count_nonzero(
            given[i]
        )  # zeros of one kernel where another is positive are not listed
    assert same_bits(model.mean_kernel.toarray(), build(given).mean_kernel.reshape(S * A, S))
    assert model == build(given)  # the same problem, whatever the storage


def test_one_sparse_kernel_without_its_list():
    assert build(flat(rows(1))[0]) == build(rows(1))


def test_sparse_duplicates_are_added_and_explicit_zeros_forgotten():
    given = rows(1)
    pair, t = np.nonzero(given[0].reshape(S * A, S))
    p = given[0].reshape(S * A, S)[pair, t]
    twice = sparse.coo_array(
        (np.r_[p / 2, p / 2, 0.0], (np.r_[pair, pair, 0], np.r_[t, t, 2])), shape=(S * A, S)
    )
    model = build([twice])
    assert model == build(given)
    assert twice.nnz == 2 * p.size + 1  # the user's matrix is left alone
    assert model.blocks.indices.size == p.size


def test_integers_and_bools_are_numbers():
    certain = np.eye(S, dtype=int)[:, None, :].repeat(A, axis=1)
    assert build(certain) == build(certain.astype(bool)) == build(certain.astype(float))


def test_mean_kernel_is_weighted():
    given, w = rows(3), np.array([0.5, 0.25, 0.25])
    model, thin = build(given, weights=w), build(flat(given), weights=w)
    assert same_bits(model.mean_kernel, 0.5 * given[0] + 0.25 * given[1] + 0.25 * given[2])
    assert same_bits(thin.mean_kernel.toarray(), model.mean_kernel.reshape(S * A, S))


@pytest.mark.parametrize("kernels", [rows(3), flat(rows(3))], ids=["dense", "sparse"])
def test_a_range_of_states_is_one_contiguous_piece(kernels):
    blocks = build(kernels).blocks
    by_state = rows(3).transpose(1, 2, 0, 3)  # (S, A, N, S)
    for start, stop in itertools.combinations(range(S + 1), 2):
        piece = blocks.data[3 * blocks.indptr[start * A] : 3 * blocks.indptr[stop * A]]
        assert piece.flags.c_contiguous
        assert np.shares_memory(piece, blocks.data)
        assert same_bits(blocks.dense(start, stop), by_state[start:stop])
        listed = (by_state[start:stop] > 0).any(axis=2)
        assert np.array_equal(blocks.mask(start, stop), listed)
        expected = [
            by_state[s, a, i, listed[s - start, a]]
            for s in range(start, stop)
            for a in range(A)
            for i in range(3)
        ]
        assert same_bits(piece, np.concatenate(expected))


# ---------------------------------------------------------------------- costs and rewards


def test_costs_per_state():
    assert same_bits(
        build(costs=[1.0, 2.0, 3.0]).costs, np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    )


def test_costs_per_next_state():
    given = costs(S, A, S)
    model = build(costs=given)
    assert model.next_costs
    assert not model.costs_missing
    assert same_bits(model.costs, given)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernels", [rows(), flat(rows())], ids=["dense", "sparse"])
def test_sparse_costs_are_kept_where_some_kernel_goes(kernels, form):
    given = costs(S, A, S)
    seen = (rows() > 0).any(axis=0)
    model = build(kernels, costs=getattr(sparse, form)(given.reshape(S * A, S)))
    assert model.next_costs
    assert model.costs_missing
    assert same_bits(model.costs.toarray(), np.where(seen, given, 0).reshape(S * A, S))
    assert model.costs.nnz == seen.sum()
    full = np.full((S, A, S), 1 / 3)
    assert not build(full, costs=sparse.csr_array(given.reshape(S * A, S))).costs_missing


def test_an_entry_missing_in_sparse_costs_is_zero_where_seen():
    given = costs(S, A, S)
    given[0, 1, 1] = 0
    model = build(costs=sparse.csr_array(given.reshape(S * A, S)))
    assert model.stakes(np.zeros(S), 0, S)[0, 1, 1] == 0


@pytest.mark.parametrize("shape", [(S,), (S, A), (S, A, S)], ids=str)
def test_rewards_are_negated_costs(shape):
    given = costs(*shape)
    given.flat[0] = 0.0
    model = build(rewards=given)
    assert model.maximise
    assert same_bits(model.costs, 0.0 - build(costs=given).costs)  # 0.0, never −0.0
    assert model != build(costs=-given)
    assert (
        build(rewards=sparse.csr_array(costs(S, A, S).reshape(S * A, S))).costs[0, 0]
        == -costs(S, A, S)[0, 0, 0]
    )


def test_unknown_costs_are_legal_where_no_kernel_goes():
    given = costs(S, A, S)
    given[0, 0, 2] = np.nan
    model = build(costs=given)
    assert model.costs_missing
    assert math.isnan(model.costs[0, 0, 2])
    assert model.cost_range == (np.nanmin(given), np.nanmax(given))


def test_a_masked_cost_is_unknown():
    given = np.ma.array(costs(S, A, S), mask=False)
    given[0, 0, 2] = np.ma.masked
    assert build(costs=given).costs_missing


# ---------------------------------------------------------------------- weights, start, names,
# actions, ends


def test_weights():
    assert build(weights=[0.25, 0.75]).weights.tolist() == [0.25, 0.75]
    assert build(weights=[0, 1]).weights.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "initial",
    [
        [0.5, 0, 0.5],
        np.array([0.5, 0, 0.5]),
        {"low": 0.5, "high": 0.5},
        {"high": 0.5, "mid": 0, "low": 0.5},
    ],
)
def test_initial(initial):
    assert named(initial=initial).initial.tolist() == [0.5, 0.0, 0.5]


def test_names():
    model = named()
    assert tuple(model.states) == STATES
    assert tuple(model.actions) == ACTIONS
    mixed = build(states=["a", 7, -(2**127)], actions=np.array(["x", "y"]))
    assert list(mixed.states) == ["a", 7, -(2**127)]
    assert [type(name) for name in mixed.actions] == [str, str]
    assert list(build(states=np.array([10, 20, 30])).states) == [10, 20, 30]
    assert type(build(states=np.array([10, 20, 30])).states[0]) is int
    assert list(build(states=(str(k) for k in range(S))).states) == ["0", "1", "2"]
    assert list(build(states={"a": 1, "b": 2, "c": 3}.keys()).states) == ["a", "b", "c"]


FLAGS = [[True, True], [False, True], [True, True]]


@pytest.mark.parametrize(
    "available",
    [
        FLAGS,
        np.array(FLAGS),
        {"mid": ["go"]},
        {"mid": {"go"}, "low": ("go", "wait")},
        {"mid": (a for a in ["go"])},
    ],
    ids=["lists", "array", "mapping", "sets", "generator"],
)
def test_available(available):
    assert named(available=available).available.tolist() == FLAGS


@pytest.mark.parametrize(
    "terminal",
    [
        [False, False, True],
        [np.False_, np.False_, np.True_],
        (np.array([0, 0, 1]) > 0),
        ["high"],
        {"high"},
        (s for s in ["high"]),
    ],
    ids=["list", "numpy bools", "array", "names", "set", "generator"],
)
def test_terminal(terminal):
    model = named(terminal=terminal)
    assert model.terminal.tolist() == [False, False, True]
    assert model.available.tolist() == [[True, True], [True, True], [False, False]]
    assert not model.kernels[:, 2].any()
    assert not build(terminal=[]).terminal.any()


@pytest.mark.parametrize("make", [np.array, flat], ids=["dense", "sparse"])
def test_rows_and_costs_of_closed_pairs_are_never_read(make):
    clean, dirty, c = rows(), rows(), costs()
    clean[:, 0, 1], clean[:, 2] = 0, 0
    dirty[:, 0, 1], dirty[:, 2] = np.nan, -7
    c[0, 1], c[2] = np.inf, np.nan
    model = named(make(dirty), costs=c, available={"low": ["wait"]}, terminal=["high"])
    got = (
        model.kernels
        if make is np.array
        else np.stack([m.toarray() for m in model.kernels]).reshape(N, S, A, S)
    )
    assert same_bits(got, clean)
    assert model.costs[0, 1] == model.costs[2, 0] == 0
    big = np.repeat(c[:, :, None], S, axis=2)
    assert (
        model.cost_range
        == named(make(dirty), costs=big, available={"low": ["wait"]}, terminal=["high"]).cost_range
    )


@pytest.mark.parametrize("shape", [(S,), (S, A), (S, A, S), "sparse"], ids=str)
@pytest.mark.parametrize("make", [np.array, flat], ids=["dense", "sparse"])
def test_all_states_may_be_terminal(make, shape):
    c = sparse.csr_array(costs(S * A, S)) if shape == "sparse" else costs(*shape)
    model = build(make(rows()), costs=c, terminal=[True] * S)
    assert model.cost_range == (0, 0)
    assert not model.costs_missing
    assert "3 terminal states" in repr(model)
    assert len(model.fingerprint) == 64
    assert not model.policy(np.full((S, A), np.nan)).any()


# ---------------------------------------------------------------------- immutability


ARRAYS = ("costs", "weights", "initial", "available", "terminal", "mean")


def test_attributes_cannot_be_set_or_deleted():
    model = build()
    for name in (*ARRAYS, "discount", "n_states", "states", "kernels", "anything"):
        with pytest.raises(AttributeError, match=f"immutable.*{name}"):
            setattr(model, name, 0)
    with pytest.raises(AttributeError, match="immutable"):
        del model.discount


def hashed(model):
    """The fingerprint of what a model holds now, not the one it remembers."""
    return drmdp.Model.fingerprint.func(model)


@pytest.mark.parametrize("kernels", [rows(), flat(rows())], ids=["dense", "sparse"])
def test_arrays_are_read_only(kernels):
    model = build(kernels, costs=costs(S, A, S))
    held = [getattr(model, name) for name in ARRAYS] + [
        model.blocks.data,
        model.blocks.indices,
        model.blocks.indptr,
    ]
    for array in held:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array
    with pytest.raises(AttributeError):
        model.blocks.data = 1
    before = hashed(model)
    for piece in model.kernels:  # built on demand: the user's own
        (piece.data if sparse.issparse(piece) else piece)[...] = 0
    assert hashed(model) == before


@pytest.mark.parametrize("form", ["dense", *FORMS])
def test_later_changes_of_the_given_arrays_have_no_effect(form):
    given = {
        "costs": costs(S, A, S),
        "weights": np.array([0.5, 0.5]),
        "initial": np.array([0.5, 0.5, 0]),
        "available": np.array(FLAGS),
        "terminal": np.array([False, False, True]),
        "states": list(STATES),
    }
    kernels = rows() if form == "dense" else flat(rows(), form)
    thin = sparse.csr_array(costs(S * A, S))
    model, other = build(kernels, **given), build(kernels, costs=thin)
    before = hashed(model), hashed(other)
    given.pop("states")[0] = "changed"
    for array in given.values():
        array[...] = 1 - array
    thin.data[...] = 0
    for piece in kernels:
        if (
            hasattr(piece, "data")
            and isinstance(piece.data, np.ndarray)
            and piece.data.dtype == float
        ):
            piece.data[...] = 0.25
        elif not isinstance(piece, np.ndarray):
            piece[0, 0] = 0.25
    if form == "dense":
        kernels[...] = 0.25
    assert (hashed(model), hashed(other)) == before


def test_the_given_arrays_stay_writable_and_unchanged():
    kernels, c = rows(), costs()
    build(kernels, costs=c)
    assert kernels.flags.writeable
    assert c.flags.writeable
    assert same_bits(kernels, rows())


# ---------------------------------------------------------------------- renormalisation


@pytest.mark.parametrize("make", [np.array, flat], ids=["dense", "sparse"])
def test_only_rounded_rows_are_renormalised_and_a_note_says_so(make):
    given = rows()
    given[1, 0, 0] *= 1 + 5e-10
    given[0, 1, 0] *= 1 - 9e-10
    model = build(make(given))
    assert model.notes == ("2 rows renormalised; the largest deviation from 1 was 9.0e-10",)
    assert "note: 2 rows renormalised" in repr(model)
    got = model.blocks.dense(0, S).transpose(2, 0, 1, 3)
    touched = np.zeros((N, S, A), dtype=bool)
    touched[1, 0, 0] = touched[0, 1, 0] = True
    assert same_bits(got[~touched], given[~touched])
    assert (got[touched] != given[touched]).any(axis=-1).all()
    assert np.abs(got.sum(axis=-1) - 1).max() < 1e-15


@pytest.mark.parametrize("make", [np.array, flat], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [2, 30, 300])
def test_building_is_idempotent(size, make):
    rng = np.random.default_rng(size)
    y = rng.dirichlet(np.ones(size), (2, size, 1)) * (
        1 + rng.uniform(-1, 1, (2, size, 1, 1)) * 9e-10
    )
    w = np.array([0.3, 0.7 + 5e-10])
    model = drmdp.Model(make(y), costs=costs(size), discount=0.5, weights=w, initial=y[0, 0, 0])
    assert model.notes
    parts = {"weights": model.weights, "initial": model.initial, "available": model.available}
    again = drmdp.Model(model.kernels, costs=model.costs, discount=0.5, **parts)
    assert again == model
    assert again.notes == ()
    assert abs(model.weights.sum() - 1) < 1e-15
    assert same_bits(again.weights, model.weights)
    assert same_bits(again.initial, model.initial)


@pytest.mark.parametrize("factor", [1 + 2e-9, 1 - 2e-9, 1 + 1e-6, 0.5, 0])
@pytest.mark.parametrize("make", [np.array, flat], ids=["dense", "sparse"])
def test_rows_farther_off_are_refused(make, factor):
    given = rows()
    given[1, 1, 0] *= factor
    with pytest.raises(
        drmdp.InputError, match=r"kernel 1, state 'mid', action 'wait' sums to .*, not 1"
    ) as error:
        named(make(given))
    assert repr(float(factor))[:7] in str(error.value)


@pytest.mark.parametrize("make", [np.array, flat], ids=["dense", "sparse"])
def test_float32_rows_are_renormalised_in_float64(make):
    size = 50
    y = np.random.default_rng(0).dirichlet(np.ones(size), (2, size, 1)).astype(np.float32)
    assert np.abs(y.sum(axis=-1, dtype=float) - 1).max() > 1e-9
    model = drmdp.Model(
        make(y), costs=costs(size), discount=0.5, weights=np.array([0.3, 0.7], dtype=np.float32)
    )
    assert "renormalised" in model.notes[0]
    got = model.blocks.dense(0, size).transpose(2, 0, 1, 3)
    assert np.abs(got.sum(axis=-1) - 1).max() < 1e-14
    assert np.abs(got - y).max() < 1e-7
    assert abs(model.weights.sum() - 1) < 1e-15
    with pytest.raises(drmdp.InputError, match="sums to"):
        drmdp.Model(make(y.astype(float)), costs=costs(size, 1), discount=0.5)
    y[1, 7] *= 1.00001
    with pytest.raises(drmdp.InputError, match=r"kernel 1, state 7, action 0 sums to 1\.0000"):
        drmdp.Model(make(y), costs=costs(size, 1), discount=0.5)


# ---------------------------------------------------------------------- policies


@pytest.mark.parametrize(
    "policy",
    [
        [[0, 1], [0.5, 0.5], [1, 0]],
        np.array([[0, 1], [0.5, 0.5], [1, 0]], dtype=np.float32),
        {"low": "go", "mid": {"wait": 0.5, "go": 0.5}, "high": {"wait": 1}},
        {
            "high": "wait",
            "mid": {"go": 0.5, "wait": np.float32(0.5)},
            "low": {"go": True, "wait": 0},
        },
    ],
    ids=["lists", "array", "mapping", "other order"],
)
def test_policy(policy):
    assert named().policy(policy).tolist() == [[0, 1], [0.5, 0.5], [1, 0]]


def test_policy_by_action_numbers():
    assert named().policy([1, 0, 1]).tolist() == [[0, 1], [1, 0], [0, 1]]
    assert named(terminal=["mid"]).policy([1, -5, 1]).tolist() == [[0, 1], [0, 0], [0, 1]]


def test_policy_of_terminal_states_is_zero_whatever_is_given():
    model = named(terminal=["high"])
    assert model.policy([[0, 1], [1, 0], [np.nan, 5]]).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert model.policy({"low": "go", "mid": "wait"}).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert model.policy({"low": "go", "mid": "wait", "high": "go"}).tolist() == [
        [0, 1],
        [1, 0],
        [0, 0],
    ]


def test_policy_is_a_normalised_copy():
    given = np.array([[0.3, 0.7 + 4e-10], [0.5, 0.5], [1, 0]])
    x = named().policy(given)
    assert np.abs(x.sum(axis=1) - 1).max() < 1e-15
    x[0] = 0
    assert given[0, 0] == 0.3
    soft = np.array([[1 / 3, 2 / 3], [0.1, 0.9], [0.7, 0.3]], dtype=np.float32)
    assert np.abs(named().policy(soft).sum(axis=1) - 1).max() < 1e-15


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([[0, 1], [0.5, 0.5]], r"policy: expected shape \(3, 2\) or \(3,\), got \(2, 2\)"),
        (0, r"policy: expected shape .* got \(\)"),
        ([[0, 1], [0.5, 0.6], [1, 0]], "policy: state 'mid' sums to 1.1, not 1"),
        ([[0, 1], [0, 0], [1, 0]], "policy: state 'mid' sums to 0.0, not 1"),
        ([[0, 1], [1e308, 1e308], [1, 0]], "policy: state 'mid' sums to inf, not 1"),
        ([[0, 1], [np.nan, 1], [1, 0]], "must be finite: state 'mid', action 'wait' has nan"),
        ([[0, 1], [np.inf, 1], [1, 0]], "must be finite: state 'mid', action 'wait' has inf"),
        ([[0, 1], [1.5, -0.5], [1, 0]], "must not be negative: state 'mid', action 'go' has -0.5"),
        ([[0, 1], [0.5, 0.5], [1, 0.0], [1, 0]], r"policy: expected shape .* got \(4, 2\)"),
        (
            [[0, 1], [0, 1], [0, 1]],
            "unavailable action is played: state 'high', action 'go' has 1.0",
        ),
        ([0, 1, 1], "unavailable action is played: state 'high', action 'go'"),
        ([0, 2, 0], "expected action numbers 0 … 1: state 'mid' has 2.0"),
        ([0, -1, 0], "expected action numbers 0 … 1: state 'mid' has -1.0"),
        ([0, 0.5, 0], "expected action numbers 0 … 1: state 'mid' has 0.5"),
        ([0, np.nan, 0], "expected action numbers 0 … 1: state 'mid' has nan"),
        ([0, np.inf, 0], "expected action numbers 0 … 1: state 'mid' has inf"),
        (
            ["go", "go", "go"],
            "policy: names of actions go with those of states, ",
        ),
        (None, "policy: expected an array of numbers, got NoneType"),
        ({"low": "go", "mid": "go"}, "policy: state 'high' is missing"),
        ({}, "policy: state 'low' is missing"),
        ({"lo": "go"}, "policy: unknown state 'lo'; known: 'low', 'mid', 'high'"),
        ({0: "go"}, "policy: unknown state 0; known"),
        ({"low": "stay"}, "policy: state 'low': unknown action 'stay'; known: 'wait', 'go'"),
        ({"low": ["go"]}, r"policy: state 'low': unknown action \['go'\]"),
        ({"low": {"stay": 1}}, "policy: state 'low': unknown action 'stay'"),
        (
            {"low": {"go": "a lot"}},
            "policy: state 'low', action 'go': expected a number, got 'a lot'",
        ),
        (
            {"low": {"go": [1.0]}},
            r"policy: state 'low', action 'go': expected a number, got \[1.0\]",
        ),
        ({"low": {"go": None}}, "policy: state 'low', action 'go': expected a number, got None"),
        ({"low": {"go": 1j}}, "policy: state 'low', action 'go': expected a number, got 1j"),
        (
            {"low": {"go": 0.4}, "mid": "go", "high": "wait"},
            "policy: state 'low' sums to 0.4, not 1",
        ),
    ],
)
def test_bad_policies(policy, message):
    with pytest.raises(drmdp.InputError, match=message):
        named(available={"high": ["wait"]}).policy(policy)


# ---------------------------------------------------------------------- what the operators read


@pytest.mark.parametrize("kernels", [rows(3), flat(rows(3))], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", ["state", "pair", "next", "sparse"])
def test_stakes(kernels, kind):
    shape = {"state": (S,), "pair": (S, A)}.get(kind, (S, A, S))
    c, v = costs(*shape), np.array([1.0, -2.0, 0.5])
    full = np.broadcast_to(c.reshape(shape + (1,) * (3 - c.ndim)), (S, A, S))
    seen = (rows(3) > 0).any(axis=0)
    model = build(kernels, costs=sparse.csr_array(c.reshape(S * A, S)) if kind == "sparse" else c)
    expected = np.where(seen, full, np.nan if kind == "sparse" else full) + 0.9 * v
    for start, stop in itertools.combinations(range(S + 1), 2):
        assert np.array_equal(model.stakes(v, start, stop), expected[start:stop], equal_nan=True)


@pytest.mark.parametrize("make", [np.array, flat], ids=["dense", "sparse"])
@pytest.mark.parametrize("weights", [None, [0.5, 0.5, 0], [0, 1, 0]], ids=str)
def test_observed_and_allowed(make, weights):
    y = rows(3)
    y[1, 1, 0] = [0, 0, 1]
    model = build(make(y), weights=weights, available={1: [0]}, terminal=[2])
    used = np.array(weights or [1, 1, 1]) > 0
    expected = (y[used] > 0).any(axis=0) & model.available[:, :, None]
    observed, everywhere = (
        drmdp.Wasserstein(1, support=support) for support in ("observed", "all")
    )
    for start, stop in itertools.combinations(range(S + 1), 2):
        assert np.array_equal(model.observed(start, stop), expected[start:stop])
        assert np.array_equal(observed.allowed(model, start, stop), expected[start:stop])
        allowed = everywhere.allowed(model, start, stop)
        assert np.array_equal(
            allowed, np.broadcast_to(model.available[start:stop, :, None], allowed.shape)
        )


# ---------------------------------------------------------------------- looks and identity


def test_repr_tells_sizes_density_and_memory_in_a_few_lines():
    model = build()
    assert repr(model).splitlines() == [
        "Model: 3 states × 2 actions × 2 kernels, discount 0.9",
        f"  costs (S, A) in [{costs().min():g}, {costs().max():g}]",
        f"  dense, 83% of the probabilities stored, {model.nbytes} bytes",
    ]
    thin = build(flat(rows()), rewards=costs(S, A, S), available={0: [1]}, terminal=[2])
    lines = repr(thin).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("  rewards (S, A, S) in [-")
    assert lines[2].startswith("  sparse, ")
    assert lines[3] == "  1 unavailable pair, 1 terminal state"
    size = 2000
    ring = sparse.csr_array(np.eye(size)[(np.arange(size) + 1) % size])
    assert "sparse, 0.0005 of the probabilities stored, " in repr(
        drmdp.Model(ring, costs=np.ones(size), discount=0.5)
    )
    assert " kB" in repr(drmdp.Model(ring, costs=np.ones(size), discount=0.5))


def test_nbytes_counts_every_array():
    blocks = build().blocks
    held = [getattr(build(), name) for name in ARRAYS] + [
        blocks.data,
        blocks.indices,
        blocks.indptr,
    ]
    assert build().nbytes == sum(array.nbytes for array in held)


CHANGES = {
    "kernels": {"kernels": rows(seed=5)},
    "costs": {"costs": costs() + 1e-300 + np.array([[1e-15], [0], [0]])},
    "rewards": {"rewards": -costs()},
    "discount": {"discount": np.nextafter(0.9, 1)},
    "weights": {"weights": [0.25, 0.75]},
    "initial": {"initial": [1, 0, 0]},
    "states": {"states": STATES},
    "actions": {"actions": ACTIONS},
    "string names": {"states": ["0", "1", "2"]},
    "available": {"available": FLAGS},
    "terminal": {"terminal": [2]},
    "order": {"kernels": rows()[::-1]},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_changes_the_fingerprint(change):
    given = {"costs": costs()} | CHANGES[change]
    if "rewards" in given:
        given.pop("costs")
    model = build(**given)
    assert model != build()
    assert model.fingerprint != build().fingerprint


def test_equal_models_share_the_fingerprint():
    explicit = {
        "weights": [0.5, 0.5],
        "initial": [1 / 3] * 3,
        "states": [0, 1, 2],
        "actions": [0, 1],
        "available": np.ones((S, A), dtype=bool),
        "terminal": [],
    }
    assert build(**explicit) == build()
    assert hash(build(**explicit)) == hash(build())
    assert build() != "a model"
    zero, minus = rows(), rows()
    minus[minus == 0] = -0.0
    given = {"weights": [0.0, 1], "initial": [0.0, 0, 1], "costs": [0.0, 1, 2], "discount": 0.0}
    signed = {
        "weights": [-0.0, 1],
        "initial": [-0.0, 0, 1],
        "costs": [-0.0, 1, 2],
        "discount": -0.0,
    }
    assert build(zero, **given) == build(minus, **signed)


# ---------------------------------------------------------------------- bad input


def put(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


def broken_csr(**parts):
    """Spoil the arrays of a matrix after scipy has looked at them."""
    matrix = flat(rows(1))[0]
    for name, (index, value) in parts.items():
        getattr(matrix, name)[index] = value
    return matrix


class Hostile:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")

    def __repr__(self):
        raise RuntimeError("no words today")


deep = []
deep.append(deep)

BAD = {
    # kernels: shape
    "kernels 1-d": (
        {"kernels": [1.0]},
        r"kernels: expected shape \(N, S, A, S\) or \(S, A, S\).*got \(1,\)",
    ),
    "kernels 2-d": ({"kernels": np.eye(3)}, r"kernels: expected shape .* got \(3, 3\)"),
    "kernels 5-d": ({"kernels": rows()[None]}, r"kernels: expected shape .* got \(1, 2, 3, 2, 3\)"),
    "kernels not square": (
        {"kernels": rows()[..., :2]},
        r"kernels: expected shape .* got \(2, 3, 2, 2\)",
    ),
    "no kernels": ({"kernels": rows()[:0]}, r"with no size 0, got \(0, 3, 2, 3\)"),
    "no states": ({"kernels": np.zeros((2, 0, 2, 0))}, r"with no size 0, got \(2, 0, 2, 0\)"),
    "no actions": ({"kernels": rows()[:, :, :0]}, r"with no size 0, got \(2, 3, 0, 3\)"),
    "empty list": ({"kernels": []}, r"kernels: expected shape .* got \(0,\)"),
    "kernels None": (
        {"kernels": None},
        "kernels: expected an array of numbers, got NoneType of dtype object",
    ),
    "kernels text": (
        {"kernels": "garnet"},
        "kernels: expected an array of numbers, got str of dtype <U6",
    ),
    "kernels ragged": (
        {"kernels": [[[1.0], [1.0, 0.0]]]},
        r"kernels: expected an array of numbers: kernels\[0\]\[0\] has length 1, but kernels\[0\]\[1\] has length 2",
    ),
    "kernels complex": (
        {"kernels": rows() + 0j},
        "kernels: expected an array of numbers, got ndarray of dtype complex128",
    ),
    "kernels object": (
        {"kernels": rows().astype(object)},
        "kernels: expected an array of numbers.*dtype object",
    ),
    "kernels dates": (
        {"kernels": np.zeros((3, 2, 3), "M8[D]")},
        "kernels: expected an array of numbers.*datetime64",
    ),
    "kernels generator": (
        {"kernels": (y for y in rows())},
        "kernels: expected an array of numbers, got generator",
    ),
    "kernels mapping": (
        {"kernels": {0: rows()}},
        "kernels: expected an array of numbers, got dict",
    ),
    "kernels recursive": ({"kernels": deep}, "kernels: expected an array of numbers"),
    "kernels hostile": (
        {"kernels": Hostile()},
        "kernels: expected an array of numbers: no array today",
    ),
    "sparse among dense": (
        {"kernels": [flat(rows())[0], rows()[0]]},
        "kernels: some are sparse, but kernel 1 is of type ndarray: give all as sparse matrices or none",
    ),
    # kernels: sparse
    "sparse shape": (
        {"kernels": [sparse.eye_array(5, 3).tocsr()]},
        r"kernel 0: expected .* \(S·A, S\), got \(5, 3\)",
    ),
    "sparse wide": (
        {"kernels": sparse.csr_array((3, 6))},
        r"kernel 0: expected .* \(S·A, S\), got \(3, 6\)",
    ),
    "sparse empty": ({"kernels": sparse.csr_array((0, 3))}, r"kernel 0: expected .* got \(0, 3\)"),
    "sparse no state": (
        {"kernels": sparse.csr_array((6, 0))},
        r"kernel 0: expected .* got \(6, 0\)",
    ),
    "sparse 1-d": (
        {"kernels": [sparse.coo_array(np.ones(3))]},
        r"kernel 0: expected .* got \(3,\)",
    ),
    "sparse shapes differ": (
        {"kernels": [flat(rows())[0], sparse.csr_array((9, 3))]},
        r"kernel 1 has shape \(9, 3\), but kernel 0 has \(6, 3\)",
    ),
    "sparse complex": (
        {"kernels": [m.astype(complex) for m in flat(rows())]},
        "kernel 0: expected real .* complex128",
    ),
    "sparse column": (
        {"kernels": broken_csr(indices=(1, 9))},
        "kernel 0: not a valid sparse matrix",
    ),
    "sparse pointer": (
        {"kernels": broken_csr(indptr=(1, 9))},
        "kernel 0: not a valid sparse matrix",
    ),
    # kernels: values
    "nan": (
        {"kernels": put(rows(), (1, 2, 0, 1), np.nan)},
        "must be finite: kernel 1, state 'high', action 'wait', next state 'mid' has nan",
    ),
    "inf": (
        {"kernels": put(rows(), (0, 1, 1, 0), np.inf)},
        "must be finite: kernel 0, state 'mid', action 'go', next state 'low' has inf",
    ),
    "negative": (
        {"kernels": put(rows(), (0, 0, 0), [1.25, -0.25, 0])},
        "must not be negative: kernel 0, state 'low', action 'wait', next state 'mid' has -0.25",
    ),
    "sparse nan": (
        {"kernels": flat(put(rows(), (1, 2, 0, 1), np.nan))},
        "must be finite: kernel 1, state 'high', action 'wait', next state 'mid' has nan",
    ),
    "sparse negative": (
        {"kernels": flat(put(rows(), (0, 0, 0), [1.25, -0.25, 0]))},
        "must not be negative: kernel 0, state 'low', action 'wait', next state 'mid' has -0.25",
    ),
    "masked": (
        {"kernels": np.ma.array(rows(), mask=put(np.zeros((N, S, A, S)), (0, 1, 0, 2), 1))},
        "must be finite: kernel 0, state 'mid', action 'wait', next state 'high' has nan",
    ),
    "row sum": (
        {"kernels": put(rows(), (1, 0, 1), 0.25)},
        "kernel 1, state 'low', action 'go' sums to 0.75, not 1",
    ),
    "huge row": (
        {"kernels": put(rows(), (1, 0, 1), 1e308)},
        "kernel 1, state 'low', action 'go' sums to inf, not 1",
    ),
    "long double": (
        {"kernels": put(rows().astype(np.longdouble), (1, 0, 1, 0), np.longdouble("1e400"))},
        "must be finite: kernel 1, state 'low', action 'go', next state 'low' has inf",
    ),
    "small integers": (
        {"kernels": sparse.coo_array((np.full(3, 127, np.int8), ([0] * 3, [0] * 3)), shape=(6, 3))},
        "kernel 0, state 'low', action 'wait' sums to 381.0, not 1",
    ),
    # weights and start
    "weights shape": ({"weights": [1.0]}, r"weights: expected shape \(2,\), got \(1,\)"),
    "weights scalar": ({"weights": 1.0}, r"weights: expected shape \(2,\), got \(\)"),
    "weights negative": (
        {"weights": [1.5, -0.5]},
        "weights must not be negative: kernel 1 has -0.5",
    ),
    "weights nan": ({"weights": [np.nan, 1]}, "weights must be finite: kernel 0 has nan"),
    "weights sum": ({"weights": [0.5, 0.4]}, "weights must sum to 1, got 0.9"),
    "weights huge": ({"weights": [1e308, 1e308]}, "weights must sum to 1, got inf"),
    "weights text": (
        {"weights": ["a", "b"]},
        "weights: expected an array of numbers, got list of dtype <U1",
    ),
    "weights ragged": ({"weights": [[1], [1, 2]]}, "weights: expected an array of numbers"),
    "weights huge int": ({"weights": [10**400, 1]}, "weights: expected an array of numbers"),
    "initial shape": ({"initial": [0.5, 0.5]}, r"initial: expected shape \(3,\), got \(2,\)"),
    "initial negative": (
        {"initial": [1, 1, -1]},
        "initial must not be negative: state 'high' has -1.0",
    ),
    "initial inf": ({"initial": [0, np.inf, 0]}, "initial must be finite: state 'mid' has inf"),
    "initial sum": ({"initial": {"low": 0.5}}, "initial must sum to 1, got 0.5"),
    "initial unknown": (
        {"initial": {"lo": 1}},
        "initial: unknown state 'lo'; known: 'low', 'mid', 'high'",
    ),
    "initial number": ({"initial": {0: 1}}, "initial: unknown state 0; known: 'low'"),
    "initial value": (
        {"initial": {"low": "all"}},
        "initial: state 'low': expected a number, got 'all'",
    ),
    "initial array value": (
        {"initial": {"low": [1.0]}},
        r"initial: state 'low': expected a number, got \[1.0\]",
    ),
    # discount
    "discount above 1": (
        {"discount": 1 + 1e-15},
        r"discount: expected a number in \[0, 1\], got 1.0",
    ),
    "terminal value nan": (
        {"terminal": {"low": float("nan")}},
        r"terminal: state .low.: expected a finite value, got nan",
    ),
    "terminal value text": (
        {"terminal": {"low": "x"}},
        r"terminal: state .low.: expected a final cost or reward, got .x.",
    ),
    "discount negative": ({"discount": -0.1}, r"discount: expected a number in \[0, 1\], got -0.1"),
    "discount nan": (
        {"discount": float("nan")},
        r"discount: expected a number in \[0, 1\], got nan",
    ),
    "discount inf": ({"discount": np.inf}, r"discount: expected a number in \[0, 1\], got inf"),
    "discount text": ({"discount": "a"}, r"discount: expected a number in \[0, 1\], got 'a'"),
    "discount None": ({"discount": None}, r"discount: expected a number in \[0, 1\], got None"),
    "discount array": (
        {"discount": np.array([0.5])},
        r"discount: expected a number in \[0, 1\], or one for each pair, shape \(3, 2\); got \(1,\)",
    ),
    "discount huge": (
        {"discount": 10**5000},
        r"discount: expected a number in \[0, 1\], got <int>",
    ),
    "discount complex": ({"discount": 0.5j}, r"discount: expected a number in \[0, 1\], got 0.5j"),
    "discount date": (
        {"discount": datetime.date(2020, 1, 1)},
        r"discount: expected a number in \[0, 1\], got datetime",
    ),
    "discount hostile": (
        {"discount": Hostile()},
        r"discount: expected a number in \[0, 1\], got <Hostile>",
    ),
    # names
    "names too few": ({"states": ["a", "b"]}, "states: expected 3 names, got 2"),
    "names too many": ({"actions": ["a", "b", "c"]}, "actions: expected 2 names, got more"),
    "names endless": ({"states": itertools.count()}, "states: expected 3 names, got more"),
    "names twice": ({"states": ["a", "b", "a"]}, "states: the name 'a' is given twice"),
    "names one string": ({"states": "abc"}, "states: expected a sequence of 3 names, got 'abc'"),
    "names a number": ({"states": 3}, "states: expected a sequence of 3 names, got 3"),
    "names a set": ({"states": {"a", "b", "c"}}, "states: expected a sequence of 3 names, got {"),
    "names a mapping": (
        {"states": {"a": 0, "b": 1, "c": 2}},
        "states: expected a sequence of 3 names, got {",
    ),
    "names 0-d": ({"states": np.array("a")}, "states: expected a sequence of 3 names, got array"),
    "names 2-d": ({"states": np.eye(3)}, "states: names are hashable, .* got array"),
    "names unhashable": (
        {"states": ["a", "b", ["c"]]},
        r"states: names are hashable, .* got \['c'\]",
    ),
    "names None": ({"actions": ["a", None]}, "actions: names are hashable, .* got None"),
    "names NaN": ({"actions": [0.0, float("nan")]}, "actions: names are hashable, .* got nan"),
    "names bools": ({"actions": [False, True]}, "actions: names are hashable, .* got False"),
    "names huge": ({"actions": [0, 10**5000]}, "actions: names are hashable, .* got <int>"),
    # available actions, terminal states
    "available shape": (
        {"available": [[True, True]]},
        r"available: expected a bool array of shape \(3, 2\), got bool \(1, 2\)",
    ),
    "available ints": (
        {"available": np.ones((3, 2), int)},
        r"available: expected a bool array of shape \(3, 2\), got int64",
    ),
    "available ragged": (
        {"available": [[True], [True, False]]},
        "available: expected an array of numbers|available: .*bool",
    ),
    "available text": ({"available": "all"}, "available: expected a bool array"),
    "available masked": (
        {"available": np.ma.array(np.ones((3, 2), bool), mask=put(np.zeros((3, 2)), (1, 0), 1))},
        r"available: entry \[1, 0\] is masked",
    ),
    "available unknown state": (
        {"available": {"lo": ["go"]}},
        "available: unknown state 'lo'; known: 'low', 'mid', 'high'",
    ),
    "available unknown action": (
        {"available": {"low": ["stay"]}},
        "available: state 'low': unknown action 'stay'; known: 'wait', 'go'",
    ),
    "available string": (
        {"available": {"low": "go"}},
        "available: state 'low': expected a collection of actions, got 'go'",
    ),
    "available number": (
        {"available": {"low": 1}},
        "available: state 'low': expected a collection of actions, got 1",
    ),
    "available type": (
        {"available": {"low": list}},
        "available: state 'low': expected a collection of actions, got <class",
    ),
    "available twice": (
        {"available": {"low": ["go", "go"]}},
        "available: state 'low': action 'go' is given twice",
    ),
    "available flags by state": (
        {"available": {0: [True, False]}, "states": None, "actions": None},
        "available: state 0: unknown action True",
    ),
    "available unhashable": (
        {"available": {"low": [["go"]]}},
        r"available: state 'low': unknown action \['go'\]",
    ),
    "no action": ({"available": {"mid": []}}, "state 'mid' has no available action"),
    "no action in array": (
        {"available": put(np.ones((3, 2), bool), 1, False)},
        "state 'mid' has no available action",
    ),
    "terminal shape": (
        {"terminal": [True, False]},
        r"terminal: expected a bool array of shape \(3,\), got bool \(2,\)",
    ),
    "terminal long": (
        {"terminal": [True] * 4},
        r"terminal: expected a bool array of shape \(3,\), got bool \(4,\)",
    ),
    "terminal ints": (
        {"terminal": np.array([0, 0, 1])},
        r"terminal: expected a bool array of shape \(3,\), got int64",
    ),
    "terminal mixed": ({"terminal": [True, "mid", False]}, "terminal: expected a bool array"),
    "terminal ints as flags": (
        {"terminal": [0, 0, 1], "states": None},
        "terminal: state 0 is given twice",
    ),
    "terminal unknown": (
        {"terminal": ["end"]},
        "terminal: unknown state 'end'; known: 'low', 'mid', 'high'",
    ),
    "terminal string": (
        {"terminal": "end"},
        "terminal: unknown state 'end'; known: 'low', 'mid', 'high'",
    ),
    "terminal number": ({"terminal": 2}, "terminal: unknown state 2; known: 'low', 'mid', 'high'"),
    "terminal mapping": (
        {"terminal": {"high": True}},
        "terminal: state 'high': expected a final cost or reward, got True",
    ),
    "terminal unhashable": ({"terminal": [["high"]]}, r"terminal: unknown state \['high'\]"),
    # costs
    "no costs": ({"costs": None}, "give exactly one of costs and rewards, got neither"),
    "costs and rewards": ({"rewards": costs()}, "give exactly one of costs and rewards, got both"),
    "costs shape": (
        {"costs": np.zeros((2, 3))},
        r"costs: expected shape \(3, 2\), \(3,\) or \(3, 2, 3\), got \(2, 3\)",
    ),
    "costs scalar": ({"costs": 1.0}, r"costs: expected shape .* got \(\)"),
    "costs empty": ({"costs": []}, r"costs: expected shape .* got \(0,\)"),
    "costs ragged": ({"costs": [[1, 2], [3]]}, "costs: expected an array of numbers"),
    "costs text": ({"costs": "a"}, "costs: expected an array of numbers, got str"),
    "costs complex": (
        {"costs": costs() + 0j},
        "costs: expected an array of numbers, got ndarray of dtype complex128",
    ),
    "costs mapping": (
        {"costs": {"low": 1}},
        "costs: expected an array of numbers, got dict of dtype object",
    ),
    "costs nan": (
        {"costs": put(costs(), (1, 0), np.nan)},
        "costs must be finite: state 'mid', action 'wait' has nan",
    ),
    "costs by state nan": (
        {"costs": [0, np.nan, 0]},
        "costs must be finite: state 'mid', action 'wait' has nan",
    ),
    "rewards inf": (
        {"rewards": put(costs(), (1, 1), -np.inf), "costs": None},
        "rewards must be finite: state 'mid', action 'go' has -inf",
    ),
    "costs unknown where seen": (
        {"costs": put(costs(S, A, S), (1, 1, 0), np.nan)},
        "costs must be finite: state 'mid', action 'go', next state 'low' has nan",
    ),
    "costs inf": (
        {"costs": put(costs(S, A, S), (2, 0, 1), np.inf)},
        "costs must be finite: state 'high', action 'wait', next state 'mid' has inf",
    ),
    "costs huge": (
        {"costs": put(costs(), (1, 0), 1e301)},
        "costs must be at most 1e.299 in size, .*: state 'mid', action 'wait' has 1e.301",
    ),
    "sparse costs nan": (
        {"costs": sparse.csr_array(put(costs(6, 3), (3, 0), np.nan))},
        "costs must be finite: state 'mid', action 'go', next state 'low' has nan",
    ),
    "sparse costs shape": (
        {"costs": sparse.csr_array((3, 2))},
        r"costs: expected a sparse matrix of shape \(6, 3\), got \(3, 2\)",
    ),
    "sparse costs complex": (
        {"costs": sparse.csr_array(costs(6, 3) + 1j)},
        "costs: expected real numbers, got dtype complex128",
    ),
    "sparse costs broken": (
        {"costs": broken_csr(indices=(1, 9))},
        "costs: not a valid sparse matrix",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    change, message = BAD[case]
    given = {
        "kernels": rows(),
        "costs": costs(),
        "states": STATES,
        "actions": ACTIONS,
        "discount": 0.9,
    } | change
    with pytest.raises(drmdp.InputError, match=message) as error:
        drmdp.Model(**given)
    assert len(str(error.value)) < 400
    assert "\n" not in str(error.value)


def test_first_offence_is_the_one_named():
    given = rows()
    given[1, 0, 1, 2] = given[0, 1, 0, 0] = np.nan
    with pytest.raises(drmdp.InputError, match="kernel 1, state 0, action 1, next state 2"):
        build(given)


# ---------------------------------------------------------------------- stored arrays


def stored(**change):
    blocks = build().blocks
    parts = {
        "indptr": blocks.indptr,
        "indices": blocks.indices,
        "data": blocks.data,
    }
    return storage.from_arrays((N, S, A), **(parts | change), is_sparse=False)


def test_stored_arrays_come_back():
    assert drmdp.Model(stored(), costs=costs(), discount=0.9) == build()
    assert (
        drmdp.Model(
            stored(indices=build().blocks.indices.astype(np.int64)), costs=costs(), discount=0.9
        )
        == build()
    )


def test_stored_rows_of_an_unavailable_pair_are_refused():
    closed = put(np.ones((S, A), bool), (1, 0), False)
    with pytest.raises(
        drmdp.InputError, match="state 1, action 0 is not available but has stored rows"
    ):
        drmdp.Model(stored(), costs=costs(), discount=0.9, available=closed)


BLOCKS = build().blocks


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"indptr": BLOCKS.indptr.astype(float)},
            "indptr: expected a one-dimensional 'i' array, got float64",
        ),
        ({"indptr": BLOCKS.indptr[:-1]}, "indptr: expected 7 ascending numbers from 0"),
        ({"indptr": BLOCKS.indptr[::-1]}, "indptr: expected 7 ascending numbers from 0"),
        (
            {"indptr": BLOCKS.indptr * [1, -1, 1, 1, 1, 1, 1]},
            "indptr: expected 7 ascending numbers from 0",
        ),
        (
            {"indices": BLOCKS.indices[:-1]},
            "indices, data: expected 15 indices and 30 probabilities, got 14 and 30",
        ),
        (
            {"data": BLOCKS.data[:-1]},
            "indices, data: expected 15 indices and 30 probabilities, got 15 and 29",
        ),
        ({"data": BLOCKS.data.reshape(2, -1)}, "data: expected a one-dimensional 'f' array"),
        (
            {"indices": put(BLOCKS.indices, 1, 3)},
            "indices: entry 1 is 3, expected ascending states below 3",
        ),
        ({"indices": put(BLOCKS.indices, 0, -1)}, "indices: entry 0 is -1"),
        ({"indices": put(BLOCKS.indices, 1, 0)}, "indices: entry 1 is 0"),
    ],
)
def test_stored_arrays_that_do_not_fit(change, message):
    with pytest.raises(drmdp.InputError, match=message):
        stored(**change)
