"""Mean kernels and tuples against the definition of the ball, by cvxpy where it takes a solver."""

from __future__ import annotations

import math
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp.certificate import membership, membership_linear, membership_squares
from drmdp.certificate.membership import inside
from drmdp.sets import PAIRS
from drmdp.sets.registry import entry_of, load

NORM = {"l1": 1, "l2": 2, "linf": np.inf}
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")


def problem(pair, seed, radius=None):
    """A random model and ball; each property comes back at its own period, so that they meet in
    ever new ways.
    """
    rng = np.random.default_rng([seed, 7])
    N, A, S = 1 + seed % 4, rng.integers(1, 4), rng.integers(2, 7)
    kernels = rng.dirichlet(np.ones(S), (N, S, A))
    if seed % 2:
        kernels = np.where(rng.random(kernels.shape) < 0.5, 0, kernels)
        kernels[kernels.sum(axis=-1) == 0, rng.integers(S)] = 1
        kernels /= kernels.sum(axis=-1, keepdims=True)
    weights = rng.dirichlet(np.ones(N)) + 0.05
    if seed % 3 == 2 and N > 1:
        weights[rng.integers(N)] = 0
    available = np.ones((S, A), dtype=bool)
    if seed % 5 == 1:
        available = rng.random((S, A)) < 0.5
        available[:, rng.integers(A)] = True
    terminal = np.zeros(S, dtype=bool)
    terminal[0] = seed % 3 == 1
    kernels[:, ~available | terminal[:, None]] = np.nan
    model = drmdp.Model(
        kernels,
        costs=rng.random((S, A)),
        discount=0.9,
        weights=weights / weights.sum(),
        available=available,
        terminal=terminal,
    )
    support = "observed" if seed % 7 > 3 else "all"
    if radius is None:
        radius = rng.uniform(0.05, 0.7, S) * drmdp.Wasserstein(0.0, *pair, support).saturation(
            model
        )
    return model, drmdp.Wasserstein(radius, *pair, support), rng


def allowed(model, ambiguity):
    seen = (model.kernels[model.weights > 0] > 0).any(axis=0)
    return model.available[:, :, None] & (seen | (ambiguity.support == "all"))


def distance(model, ambiguity, y):
    """Distance of an (N, S, A, S) tuple from the data, (S,)."""
    far = np.linalg.norm(
        (y - model.kernels).swapaxes(0, 1).reshape(model.n_states, len(y), -1),
        NORM[ambiguity.metric],
        axis=2,
    )
    if ambiguity.order == math.inf:
        return far[:, model.weights > 0].max(axis=1)
    return (far**ambiguity.order @ model.weights) ** (1 / ambiguity.order)


def assert_close(actual, desired, tolerance):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=tolerance)


def tuples(model, ambiguity, rng, sharp):
    """A random tuple in the ball, on the boundary of it in each state where it can be."""
    y = np.where(
        allowed(model, ambiguity),
        rng.dirichlet(np.full(model.n_states, sharp), model.kernels.shape[:-1]),
        0,
    )
    total = y.sum(axis=-1, keepdims=True)
    y = np.where(total > 0, y / np.where(total > 0, total, 1), model.kernels)
    far = distance(model, ambiguity, y)
    share = np.minimum(1, ambiguity.radius / np.maximum(far, 1e-12))[:, None, None]
    return model.kernels + share * (y - model.kernels)


def mean(model, y):
    return np.tensordot(model.weights, y, axes=1)


def anything(model, ambiguity, rng):
    """A random mean kernel with the right support, far from the data."""
    y = np.where(
        allowed(model, ambiguity),
        rng.dirichlet(np.full(model.n_states, 0.1), model.available.shape) + 1e-12,
        0,
    )
    return y / np.where(model.available, y.sum(axis=2), 1)[:, :, None]


def program(model, ambiguity, s, goal, share=None):
    """Least distance of a tuple of state s with the mean `goal` (A, S), or the largest share of the
    way to it.
    """
    used, a = model.weights > 0, np.flatnonzero(model.available[s])
    w, y = model.weights[used], model.kernels[used][:, s, a].reshape(used.sum(), -1)  # (N, A·S)
    may = allowed(model, ambiguity)[s, a].ravel()
    radius = float(np.broadcast_to(ambiguity.radius, model.n_states)[s])
    unit = min(radius, 1.0)
    move, length = cp.Variable(y.shape), cp.Variable()
    far = {"l1": cp.norm1, "l2": cp.norm2, "linf": cp.norm_inf}[ambiguity.metric](move, axis=1)
    if ambiguity.order == math.inf:
        far = cp.max(far)
    else:
        far = w @ far if ambiguity.order == 1 else cp.norm2(cp.multiply(np.sqrt(w), far))
    way = (goal[a].ravel() - w @ y) / unit
    rows = np.kron(np.eye(a.size), np.ones(model.n_states))
    limits = [
        move >= -y / unit,
        rows @ move.T == 0,
        cp.multiply(move, np.broadcast_to(~may, y.shape)) == 0,
    ]
    if share is None:
        task = cp.Problem(cp.Minimize(far), [*limits, w @ move == way])
    else:
        size = np.abs(way).max()
        task = cp.Problem(
            cp.Maximize(length),
            [*limits, w @ move == length * way / size, far <= radius / unit, length <= size],
        )
    settings = {"solver": cp.HIGHS}
    if ambiguity.metric == "l2":
        settings = {
            "solver": cp.CLARABEL,
            "tol_gap_abs": 1e-11,
            "tol_gap_rel": 1e-11,
            "tol_feas": 1e-11,
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        task.solve(**settings)
    return task.value * unit if share is None else length.value / size


def assert_attainable(model, ambiguity, kernel, n=2):
    """Check the rows, and by cvxpy that n states have a tuple with that mean in the ball."""
    assert np.all(kernel[~allowed(model, ambiguity)] == 0)
    assert np.all(kernel >= 0)
    assert_close(kernel.sum(axis=2)[model.available], 1, 1e-12)
    for s in np.flatnonzero(~model.terminal)[:n]:
        assert (
            program(model, ambiguity, s, kernel[s])
            <= np.broadcast_to(ambiguity.radius, model.n_states)[s] + 1e-9
        )


# ---------------------------------------------------------------------- what is inside comes back


@every_pair
@pytest.mark.parametrize("seed", range(12))
def test_the_mean_of_a_tuple_in_the_ambiguity_comes_back(pair, seed):
    model, ambiguity, rng = problem(pair, seed)
    for sharp in (1.0, 0.1):
        y = tuples(model, ambiguity, rng, sharp)
        assert_close(inside(model, ambiguity, mean(model, y)), mean(model, y), 1e-9)
        assert_close(inside(model, ambiguity, y), mean(model, y), 1e-12)


@every_pair
@pytest.mark.parametrize("seed", [10, 13, 15, 18, 22, 27])
def test_a_saddle_kernel_comes_back(pair, seed):
    model, ambiguity, rng = problem(pair, seed)
    kernel = drmdp.bellman(
        model, ambiguity, 3 * rng.normal(size=model.n_states), backend="conic"
    ).kernel
    assert_close(inside(model, ambiguity, kernel), kernel, 1e-8)


@every_pair
@pytest.mark.parametrize("seed", [35, 49, 306])
def test_a_saddle_kernel_of_a_large_radius_comes_back(pair, seed):
    model, ambiguity, rng = problem(pair, seed)
    model, ambiguity, rng = problem(
        pair, seed, radius=rng.uniform(0.5, 0.95) * ambiguity.saturation(model)
    )
    kernel = drmdp.bellman(
        model, ambiguity, 3 * rng.normal(size=model.n_states), backend="conic"
    ).kernel
    assert_close(inside(model, ambiguity, kernel), kernel, 1e-8)


@every_pair
@pytest.mark.parametrize("seed", [15, 22, 30, 42])
def test_a_mean_with_many_zeros_comes_back(pair, seed):
    model, _, rng = problem(pair, seed, radius=1.0)
    few = rng.random(model.mean_kernel.shape).argsort(axis=2) < 2
    y = rng.dirichlet(np.full(model.n_states, 0.2), model.kernels.shape[:-1]) + 1e-9
    y = np.where(few & model.available[:, :, None], y, 0)
    y = y / np.where(model.available, y.sum(axis=3), 1)[..., None]
    unit = drmdp.Wasserstein(1.0, *pair, support="all")
    ambiguity = drmdp.Wasserstein(distance(model, unit, y), *pair, support="all")
    assert_close(inside(model, ambiguity, mean(model, y)), mean(model, y), 1e-9)


@every_pair
@pytest.mark.parametrize(
    "seed", [15, 21, *(pytest.param(seed, marks=pytest.mark.fuzz) for seed in (27, 42))]
)
def test_small_radii_lose_no_digits(pair, seed):
    for radius in (1e-7, 1e-9):
        model, ambiguity, rng = problem(pair, seed, radius=radius)
        kernel = drmdp.bellman(
            model, ambiguity, rng.normal(size=model.n_states), backend="conic"
        ).kernel
        assert_close(inside(model, ambiguity, kernel), kernel, 1e-7 * radius + 2e-13)


@every_pair
def test_an_action_that_stays_does_not_hold_the_others_back(pair):
    model, ambiguity, rng = problem(pair, 15, radius=1e-6)
    y = tuples(model, ambiguity, rng, 0.1)
    y[:, :, 0] = model.kernels[:, :, 0]
    kernel = mean(model, y)
    kernel[:, 0] *= 1 + 4e-16  # rounding that leads nowhere
    assert_close(inside(model, ambiguity, kernel), mean(model, y), 1e-13)


# ---------------------------------------------------------------------- what is outside is brought
# in, not too far


@every_pair
@pytest.mark.parametrize(
    "seed", [21, 25, 26, *(pytest.param(seed, marks=pytest.mark.fuzz) for seed in (30, 38, 39))]
)
def test_a_kernel_outside_goes_to_the_last_point_of_its_segment(pair, seed):
    model, ambiguity, rng = problem(pair, seed)
    given = anything(model, ambiguity, rng)
    found = inside(model, ambiguity, given)
    assert_attainable(model, ambiguity, found)
    centre = mean(model, model.kernels)
    for s in np.flatnonzero(~model.terminal):
        way = given[s] - centre[s]
        share = (way * (found[s] - centre[s])).sum() / max((way * way).sum(), 1e-300)
        assert_close(found[s], centre[s] + share * way, 1e-12)
        assert share <= 1 + 1e-12
    for s in np.flatnonzero(~model.terminal)[:2]:
        way = given[s] - centre[s]
        if np.abs(way).max() > 1e-9:
            share = (way * (found[s] - centre[s])).sum() / (way * way).sum()
            assert share >= program(model, ambiguity, s, given[s], share=1) - 1e-6


@every_pair
def test_a_tuple_outside_is_pulled(pair):
    model, ambiguity, rng = problem(pair, 26)
    far = np.broadcast_to(anything(model, ambiguity, rng), model.kernels.shape)
    assert_attainable(model, ambiguity, inside(model, ambiguity, far), n=6)


@every_pair
@pytest.mark.parametrize("nonsense", [np.nan, 0.0, 1.0])
def test_a_search_gone_wrong_is_still_safe(pair, nonsense, monkeypatch, request):
    asked = []

    def wrong(state):
        asked.append(state)
        return 1.0, np.full(state.nominal.shape, nonsense)

    load.cache_clear()  # what it holds, and then what it held of this
    request.addfinalizer(load.cache_clear)
    monkeypatch.setattr(membership_linear, "linear", wrong)
    monkeypatch.setattr(membership_squares, "least_squares", wrong)
    model, ambiguity, rng = problem(pair, 22)
    assert_attainable(model, ambiguity, inside(model, ambiguity, anything(model, ambiguity, rng)))
    assert asked or entry_of(ambiguity).nearest == ""


@every_pair
def test_a_state_too_large_for_a_search_is_still_safe(pair, monkeypatch):
    monkeypatch.setattr(membership, "MAX_ENTRIES", 0)
    monkeypatch.delattr(membership_linear, "_program")
    monkeypatch.delattr(membership_squares, "_Dual")
    model, ambiguity, rng = problem(pair, 22)
    given, centre = anything(model, ambiguity, rng), mean(model, model.kernels)
    found = inside(model, ambiguity, given)
    assert_attainable(model, ambiguity, found)
    assert np.all(np.abs(found - centre).max(axis=(1, 2))[~model.terminal] > 0)


# ---------------------------------------------------------------------- special cases


@every_pair
def test_radius_0_gives_the_data_mean(pair):
    model, ambiguity, rng = problem(pair, 26, radius=0.0)
    assert_close(
        inside(model, ambiguity, anything(model, ambiguity, rng)), mean(model, model.kernels), 1e-15
    )
    far = np.broadcast_to(anything(model, ambiguity, rng), model.kernels.shape)
    assert_close(inside(model, ambiguity, far), mean(model, model.kernels), 1e-15)


def test_one_kernel_moves_by_the_radius():
    model = drmdp.Model(np.full((2, 1, 2), 0.5), costs=np.ones((2, 1)), discount=0.9)
    ambiguity = drmdp.Wasserstein(0.2, "l1", 1, support="all")
    assert_close(inside(model, ambiguity, np.array([[[1.0, 0.0]]] * 2)), [[[0.6, 0.4]]] * 2, 1e-13)


def test_only_one_of_two_kernels_can_lose_mass():
    model = drmdp.Model(
        np.array([[[[1.0, 0.0]]] * 2, [[[0.0, 1.0]]] * 2]), costs=np.ones((2, 1)), discount=0.9
    )
    ambiguity = drmdp.Wasserstein(0.4, "l1", math.inf, support="all")
    # mass leaves state 0 in the first kernel only, at most 0.2 of it, half of which the mean
    # notices
    assert_close(inside(model, ambiguity, np.array([[[0.0, 1.0]]] * 2)), [[[0.4, 0.6]]] * 2, 1e-12)


@every_pair
def test_rows_are_made_distributions(pair):
    model, ambiguity, rng = problem(pair, 38)
    y = anything(model, ambiguity, rng)
    want, centre = inside(model, ambiguity, y), mean(model, model.kernels)
    assert_close(inside(model, ambiguity, 1e307 * y), want, 1e-9)
    some = np.where(y < 1e-3, 0.0, y)
    assert_close(
        inside(model, ambiguity, np.where(some > 0, y, -y)), inside(model, ambiguity, some), 1e-9
    )
    assert_attainable(
        model,
        ambiguity,
        inside(model, ambiguity, np.broadcast_to(1e308 * (y > 0), model.kernels.shape)),
    )
    y[:, 0] = 0
    assert_close(inside(model, ambiguity, y)[:, 0], centre[:, 0], 1e-12)
    assert_close(inside(model, ambiguity, 0 * model.kernels), centre, 1e-12)


def test_unavailable_rows_and_terminal_states_are_not_read():
    model, ambiguity, rng = problem(("l2", 2), 1)
    assert model.terminal.any()
    assert (~model.available[~model.terminal]).any()
    y = tuples(model, ambiguity, rng, 1.0)
    dirty = np.where(model.available[:, :, None], y, np.nan)
    for given in (dirty, np.where(model.available[:, :, None], mean(model, y), np.inf)):
        found = inside(model, ambiguity, given)
        assert_close(found, mean(model, y), 1e-9)
        assert np.all(found[~model.available] == 0)


def test_kernels_of_weight_0_do_not_count():
    model, ambiguity, rng = problem(("l1", math.inf), 11)
    assert (model.weights == 0).any()
    y = tuples(model, ambiguity, rng, 1.0)
    y[model.weights == 0] = np.eye(model.n_states)[0]
    assert_close(inside(model, ambiguity, y), mean(model, y), 1e-12)


def test_sparse_models_and_blocks_of_states_give_the_same(monkeypatch):
    model, ambiguity, rng = problem(("l2", math.inf), 21)
    S, A = model.available.shape
    stored = [sparse.csr_array(k.reshape(S * A, S)) for k in model.kernels]
    other = drmdp.Model(
        stored,
        costs=model.costs,
        discount=0.9,
        weights=model.weights,
        available=model.available,
        terminal=model.terminal,
    )
    given = anything(model, ambiguity, rng)
    want = inside(model, ambiguity, given)
    monkeypatch.setattr(drmdp.certificate.dense, "BLOCK_ENTRIES", 1)
    np.testing.assert_array_equal(inside(other, ambiguity, given), want)


def test_certify_takes_a_mean_kernel():
    model = drmdp.instances.perturb(drmdp.instances.machine(6), n_kernels=3)
    ambiguity = drmdp.Wasserstein(0.5, "linf", 1, support="all")
    solution = drmdp.solve(model, ambiguity, tol=1e-6)
    assert drmdp.certify(model, ambiguity, solution.policy, solution.kernel).gap <= 1e-5


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize("shape", [(5, 5), (5, 5, 2), (5, 5, 2, 5), (1, 4, 5, 2, 5)])
def test_other_shapes_are_refused(shape):
    model, ambiguity, _ = problem(("l2", 2), 3, radius=0.1)
    assert (model.n_kernels, *model.available.shape) == (4, 5, 2)
    with pytest.raises(
        drmdp.InputError, match=r"kernel: expected shape \(5, 2, 5\) .* \(4, 5, 2, 5\) .*, got"
    ):
        inside(model, ambiguity, np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_named(value):
    model, ambiguity, _ = problem(("l2", 2), 15, radius=0.1)
    tuple_ = model.kernels.copy()
    tuple_[2, 1, 0, 2] = value
    with pytest.raises(
        drmdp.InputError, match=rf"kernel 2, state 1, action 0, next state 2 has {value!r}"
    ):
        inside(model, ambiguity, tuple_)
    with pytest.raises(
        drmdp.InputError, match=rf"finite: state 1, action 0, next state 2 has {value!r}"
    ):
        inside(model, ambiguity, tuple_[2])
