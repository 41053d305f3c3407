"""`Wasserstein`: what it accepts, what it refuses, and the radius from which nature is
unconstrained.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp.sets.wasserstein import PAIRS, parse_order

SIX = {("l1", 1), ("l2", 2), ("linf", 1), ("l1", math.inf), ("l2", math.inf), ("linf", math.inf)}
pairs = pytest.mark.parametrize(
    ("metric", "order"), PAIRS, ids=[f"{metric}-{order}" for metric, order in PAIRS]
)


def model(n_kernels=2, size=3, n_actions=2, seed=0, zeros=0.4, **given):
    rng = np.random.default_rng(seed)
    y = rng.dirichlet(np.ones(size), (n_kernels, size, n_actions)) * (
        rng.random((n_kernels, size, n_actions, size)) >= zeros
    )
    y[y.sum(axis=-1) == 0] = np.eye(size)[0]
    y /= y.sum(axis=-1, keepdims=True)
    return drmdp.Model(y, **{"costs": np.zeros((size, n_actions)), "discount": 0.5, **given})


# ---------------------------------------------------------------------- what a ball is


def test_the_six_pairs():
    assert set(PAIRS) == SIX


@pairs
def test_a_ambiguity(metric, order):
    ambiguity = drmdp.Wasserstein(0.5, metric=metric, order=order, support="all")
    assert (ambiguity.radius, ambiguity.metric, ambiguity.order, ambiguity.support) == (
        0.5,
        metric,
        order,
        "all",
    )
    assert ambiguity.pair == (metric, order)
    assert type(ambiguity.radius) is float


def test_defaults():
    assert drmdp.Wasserstein(1) == drmdp.Wasserstein(
        radius=1, metric="l2", order=2, support="observed"
    )


@pytest.mark.parametrize(("metric", "order"), [("l1", 1), ("l2", 2), ("linf", math.inf)])
def test_a_metric_alone_takes_its_own_order(metric, order):
    assert drmdp.Wasserstein(1, metric).order == order
    assert drmdp.Wasserstein(1, metric, None) == drmdp.Wasserstein(1, metric, order)


@pytest.mark.parametrize("metric", ["L2", "l3", None, 2, ["l1"]], ids=str)
def test_a_metric_alone_must_be_known(metric):
    with pytest.raises(
        drmdp.InputError, match=r"metric is 'l1', 'l2', 'linf' or 'transport', got "
    ):
        drmdp.Wasserstein(1, metric)


def test_the_same_ambiguity_with_another_radius():
    ambiguity = drmdp.Wasserstein([0.0, 1.0], "linf", 1, "all")
    assert ambiguity.with_radius(0.5) == drmdp.Wasserstein(0.5, "linf", 1, "all")
    with pytest.raises(drmdp.InputError, match="radius must be finite and not negative, got -1"):
        ambiguity.with_radius(-1)


@pytest.mark.parametrize(
    "order", [2, 2.0, np.int64(2), np.float32(2)], ids=lambda order: type(order).__name__
)
def test_an_order_is_a_number_of_any_type(order):
    ambiguity = drmdp.Wasserstein(1, "l2", order, support="all")
    assert ambiguity == drmdp.Wasserstein(1, "l2", 2, support="all")
    assert hash(ambiguity) == hash(drmdp.Wasserstein(1, "l2", 2, support="all"))
    assert repr(ambiguity) == "Wasserstein(radius=1, metric='l2', order=2, support='all')"


REFUSED = [
    ("l2", 0.9),
    ("l3", 1),
    ("L1", 1),
    ("l1", "inf"),
    (None, 1),
    (2, 2),
    ("l1", True),
    ("l1", math.nan),
    ("l1", -math.inf),
    ("l1", 0),
    ("l1", [1]),
    ("l1", np.array([1])),
    (["l1"], 1),
    (np.array(["l1", "l2"]), 1),
    ("l1", {}),
    (b"l1", 1),
    ("l1", 1j),
]


@pytest.mark.parametrize(("metric", "order"), REFUSED, ids=str)
def test_other_pairs_are_refused_with_what_is_known(metric, order):
    with pytest.raises(drmdp.InputError) as error:
        drmdp.Wasserstein(1, metric=metric, order=order, support="all")
    named = isinstance(metric, str) and metric in ("l1", "l2", "linf")
    known = (
        "order is a number from 1 on or inf"
        if named
        else "metric is 'l1', 'l2', 'linf' or 'transport'"
    )
    assert str(error.value) == f"{known}, got {order!r}" if named else f"{known}, got {metric!r}"


@pytest.mark.parametrize(
    "support", ["some", None, True, ["all"], np.array(["all", "all"]), b"all"], ids=str
)
def test_other_supports_are_refused(support):
    with pytest.raises(drmdp.InputError, match="support is 'observed', 'state' or 'all', got "):
        drmdp.Wasserstein(1, support=support)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (-0.5, "radius must be finite and not negative, got -0.5$"),
        (math.nan, "radius must be finite and not negative, got nan$"),
        (math.inf, "radius must be finite and not negative, got inf$"),
        ([1, 0, -2], "radius must be finite and not negative, got -2.0 at state 2"),
        ([1, math.nan, -2], "radius must be finite and not negative, got nan at state 1"),
        ([[1.0]], r"radius: expected a number or shape \(S,\), got shape \(1, 1\)"),
        ([], r"radius: expected a number or shape \(S,\), got shape \(0,\)"),
        ("large", "and before the metric, got 'large'"),
        (None, "radius: expected an array of numbers, got NoneType"),
        (1j, "radius: expected an array of numbers, got complex"),
        ([1, [2]], "radius: expected an array of numbers"),
        ({0: 1.0}, "radius: expected an array of numbers, got dict"),
        (10**400, "radius: expected an array of numbers, got int"),
    ],
)
def test_bad_radii(radius, message):
    with pytest.raises(drmdp.InputError, match=message):
        drmdp.Wasserstein(radius, support="all")


def test_radius_by_state():
    given = np.array([0.0, 1.0, 2.0])
    ambiguity = drmdp.Wasserstein(given, support="all")
    given[0] = 7
    assert ambiguity.radii(model()).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        ambiguity.radius[0] = 7
    with pytest.raises(AttributeError):
        ambiguity.radius = 7
    assert (
        repr(ambiguity)
        == "Wasserstein(radius=<3 values in [0, 2]>, metric='l2', order=2, support='all')"
    )


def test_a_scalar_radius_is_that_of_every_state():
    assert drmdp.Wasserstein(np.float32(0.5), support="all").radii(model()).tolist() == [
        0.5,
        0.5,
        0.5,
    ]


def test_radius_of_another_model():
    with pytest.raises(drmdp.InputError, match=r"radius has shape \(2,\), the model has 3 states"):
        drmdp.Wasserstein([1, 2], support="all").radii(model())


def test_equality_and_hash():
    ambiguity = drmdp.Wasserstein([0.0, 1.0], "l1", 1, support="all")
    assert ambiguity == drmdp.Wasserstein(np.array([-0.0, 1]), "l1", 1.0, support="all")
    assert hash(ambiguity) == hash(drmdp.Wasserstein([-0.0, 1], "l1", 1.0, support="all"))
    others = [
        drmdp.Wasserstein([0.0, 1.5], "l1", 1, support="all"),
        drmdp.Wasserstein([0.0, 1.0], "linf", 1, support="all"),
        drmdp.Wasserstein([0.0, 1.0], "l1", math.inf, support="all"),
        drmdp.Wasserstein([0.0, 1.0], "l1", 1, support="observed"),
        drmdp.Wasserstein([0.0, 1.0, 1.0], "l1", 1, support="all"),
        drmdp.Wasserstein(1.0, "l1", 1, support="all"),
    ]
    assert len({ambiguity, *others}) == 7
    assert all(ambiguity != other for other in others)
    assert drmdp.Wasserstein(1, support="all") != drmdp.Wasserstein([1.0], support="all")
    assert ambiguity != 1


def test_unknown_costs_refuse_support_all_and_say_why():
    y = np.array([[[1.0, 0]], [[0.5, 0.5]]])
    dense = drmdp.Model(y, costs=[[[1, np.nan]], [[1, 1]]], discount=0.5)
    thin = drmdp.Model(y, costs=sparse.csr_array(np.ones((2, 2))), discount=0.5)
    for given in (dense, thin):
        with pytest.raises(
            drmdp.InputError,
            match=r"no kernel has are unknown.*nature may use them.*support='observed'",
        ):
            drmdp.Wasserstein(1, support="all").fitted(given)
        with pytest.raises(drmdp.InputError, match="support='observed'"):
            drmdp.solve(given, drmdp.Wasserstein(1, support="all"))
        observed = drmdp.Wasserstein(1, support="observed")
        assert observed.fitted(given) is observed
    closed = drmdp.Model(y, costs=[[[1, np.nan]], [[1, 1]]], discount=0.5, terminal=[0])
    ambiguity = drmdp.Wasserstein(1, support="all")
    assert ambiguity.fitted(closed) is ambiguity  # nobody moves from a terminal state


def test_radius_0_needs_no_costs_of_transitions_that_no_kernel_has():
    y = np.array([[[1.0, 0]], [[0.5, 0.5]]])
    known = drmdp.Model(y, costs=[[[1, 9]], [[2, 1]]], discount=0.5)
    for missing in ([[[1, np.nan]], [[2, 1]]], sparse.csr_array([[1.0, 0], [2, 1]])):
        given = drmdp.Model(y, costs=missing, discount=0.5)
        for pair in PAIRS:
            for ambiguity in (
                drmdp.Wasserstein(0, *pair, "all"),
                drmdp.Wasserstein([0, 0], *pair, "all"),
            ):
                solution = drmdp.solve(given, ambiguity)
                np.testing.assert_allclose(
                    solution.value, drmdp.solve(known, ambiguity).value, rtol=0, atol=1e-9
                )
                assert solution.settings["ambiguity"] == repr(ambiguity)
        ambiguity = drmdp.Wasserstein(0, support="all")
        policy = [0, 0]
        np.testing.assert_allclose(
            drmdp.evaluate(given, ambiguity, policy).value, [2, 8 / 3], rtol=0, atol=1e-6
        )
        assert drmdp.certify(given, ambiguity, policy, y).gap < 1e-9
        assert drmdp.finite_horizon(given, ambiguity, 2).gap < 1e-9
        assert drmdp.radius.path(given, ambiguity, [0]).points[0].gap < 1e-6
        with pytest.raises(drmdp.InputError, match="support='observed'"):
            drmdp.radius.path(given, ambiguity, [0, 0.1])
        with pytest.raises(drmdp.InputError, match="support='observed'"):
            drmdp.solve(given, drmdp.Wasserstein([0, 0.1], support="all"))


@pytest.mark.parametrize(("text", "order"), [("1", 1), ("2", 2), ("inf", math.inf)])
def test_orders_as_text(text, order):
    assert parse_order(text) == order


def test_other_orders_as_text():
    with pytest.raises(drmdp.InputError, match="order is a number from 1 on or inf, got 'two'"):
        parse_order("two")


# ---------------------------------------------------------------------- saturation


def distance(ambiguity, given, s, choice):
    """Distance from the data at which nature sends every kernel's mass to the next state choice[a],
    by definition.
    """
    own = np.flatnonzero(given.available[s])
    kernels = given.kernels if not given.is_sparse else [k.toarray() for k in given.kernels]
    shape = (given.n_states, given.n_actions, given.n_states)
    norm = {"l1": 1, "l2": 2, "linf": np.inf}[ambiguity.metric]
    target = np.eye(given.n_states)[list(choice)]
    by_kernel = [np.linalg.norm((target - k.reshape(shape)[s, own]).ravel(), norm) for k in kernels]
    used = [(w, d) for w, d in zip(given.weights, by_kernel, strict=True) if w > 0]
    if ambiguity.order == math.inf:
        return max(d for _, d in used)
    return sum(w * d**ambiguity.order for w, d in used) ** (1 / ambiguity.order)


def farthest(ambiguity, given, s):
    """Largest distance of any choice of one allowed next state per action."""
    allowed = ambiguity.allowed(given, s, s + 1)[0][given.available[s]]
    return max(
        distance(ambiguity, given, s, choice)
        for choice in itertools.product(*map(np.flatnonzero, allowed))
    )


VARIANTS = {
    "plain": {},
    "full rows": {"zeros": 0.0},
    "one kernel": {"n_kernels": 1},
    "one action": {"n_actions": 1},
    "one state": {"size": 1},
    "deterministic": {"zeros": 1.0},
    "weights": {"n_kernels": 3, "weights": [0.2, 0.0, 0.8]},
    "closed": {"available": {0: [1]}, "terminal": [2]},
    "four actions": {"n_actions": 4, "n_kernels": 3},
}


@pairs
@pytest.mark.parametrize("support", ["all", "observed", "state"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_saturation_is_where_nature_becomes_free(metric, order, support, variant):
    for seed in range(5):
        given = model(seed=seed, **VARIANTS[variant])
        ambiguity = drmdp.Wasserstein(1, metric, order, support)
        got = ambiguity.saturation(given)
        assert got.shape == (given.n_states,)
        for s in range(given.n_states):
            far = 0.0 if given.terminal[s] else farthest(ambiguity, given, s)
            assert far <= got[s] * (1 + 1e-9) + 1e-15
            if (metric, order) != ("linf", 1):
                assert got[s] * (1 - 1e-3) < far or far == got[s] == 0


def test_saturation_of_the_mean_linf_ambiguity_is_exact_where_every_row_has_a_free_state():
    given = model(zeros=0.0)
    wide = np.zeros((2, 4, 2, 4))
    wide[:, :3, :, :3] = given.kernels
    wide[:, 3, :, 0] = 1
    padded = drmdp.Model(wide, costs=np.zeros(4), discount=0.5)
    ambiguity = drmdp.Wasserstein(1, "linf", 1, support="all")
    assert ambiguity.saturation(padded) == pytest.approx(
        [farthest(ambiguity, padded, s) for s in range(4)], rel=1e-12
    )


@pairs
def test_saturation_is_the_same_for_sparse_models(metric, order):
    given = model(3)
    thin = drmdp.Model(
        [sparse.csr_array(k.reshape(-1, 3)) for k in given.kernels],
        costs=np.zeros((3, 2)),
        discount=0.5,
    )
    for support in ("all", "observed", "state"):
        ambiguity = drmdp.Wasserstein(1, metric, order, support)
        assert ambiguity.saturation(thin).tolist() == ambiguity.saturation(given).tolist()


@pairs
@pytest.mark.parametrize(
    "only", [1.0, 1 - 2**-53, 1 - 2**-52, 1 + 2**-52], ids=["1", "1-u", "1-2u", "1+2u"]
)
def test_saturation_where_nothing_can_move(metric, order, only):
    """A row within rounding of 1 is kept as it is; its distance to 1 must not become the root of a
    negative number.
    """
    given = drmdp.Model(np.full((2, 1, 3, 1), only), costs=[0.0], discount=0.5)
    assert given.kernels[0, 0, 0, 0] == only
    assert 0 <= drmdp.Wasserstein(1, metric, order, "observed").saturation(given)[0] <= 1e-14
