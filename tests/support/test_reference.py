"""The reference against values by hand, closed forms and searches in one dimension: none needs a
solver.
"""

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import cases
import drmdp
import reference
from drmdp.sets import PAIRS

PAIR = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")
OFTEN = pytest.mark.parametrize("n", [6, pytest.param(40, marks=pytest.mark.fuzz)])
RELATIVE = 1e-9  # to the spread of z, see reference.tolerance


def assert_close(got, want, case, relative=RELATIVE, policy=None):
    """Compare state by state, to what the reference promises."""
    admitted = reference.tolerance(case.model, case.ambiguity, case.value, relative, policy)
    missed = np.abs(got - want) > admitted
    assert not missed.any(), (
        f"{case.name}: states {np.flatnonzero(missed)}: {got[missed]} for {want[missed]}"
    )


def with_radius(case, radius):
    return case._replace(
        ambiguity=drmdp.Wasserstein(radius, *case.ambiguity.pair, case.ambiguity.support)
    )


def random_policy(model, rng, zeros=0.3):
    x = rng.dirichlet(np.ones(model.n_actions), model.n_states) + 1e-3
    x *= model.available & ((rng.random(x.shape) > zeros) | (model.available.cumsum(axis=1) == 1))
    return x / np.where(model.terminal, 1, x.sum(axis=1))[:, None]


# ---------------------------------------------------------------------- closed forms, for one state


def worst_step(case, s, x):
    """Worst case of the policy x, (A,), in state s: nominal value plus the most that nature can
    add.
    """
    model, ambiguity, w = case.model, case.ambiguity, case.model.weights
    radius = float(np.broadcast_to(ambiguity.radius, model.n_states)[s])
    allowed = reference.support(model, ambiguity)[s][x > 0]
    z = np.where(allowed, reference.stakes(model, case.value)[s][x > 0], -np.inf)
    top = z.max(axis=1)
    low = np.where(allowed, z - top[:, None], 0).astype(float)  # ≤ 0
    unit = -low.min() or 1.0
    slope = low / unit * x[x > 0, None]
    y = reference.dense_kernels(model)[w > 0, s][:, x > 0]  # (N, A, S)
    w = w[w > 0]
    gain = {
        ("l1", 1): lambda: knapsack(np.tensordot(w, y, 1), slope, radius / 2),
        ("l1", math.inf): lambda: w @ [knapsack(own, slope, radius / 2) for own in y],
        ("l2", 2): lambda: along_projections(y, w, slope, allowed, radius),
        ("l2", math.inf): lambda: (
            w @ [along_projections(own[None], [1], slope, allowed, radius) for own in y]
        ),
        ("linf", 1): lambda: split(y, w, slope, allowed, radius),
        ("linf", math.inf): lambda: w @ [fill(own, slope, allowed, radius) for own in y],
    }[ambiguity.pair]()
    nominal = x[x > 0] @ top + unit * float((np.tensordot(w, y, 1) * slope).sum())
    return float(nominal + unit * gain)


def knapsack(y, slope, mass):
    """ℓ1: move `mass` to the top, first from where that gains most."""
    order = np.argsort(slope, axis=None)
    before = np.cumsum(y.ravel()[order]) - y.ravel()[order]
    return -slope.ravel()[order] @ np.clip(mass - before, 0, y.ravel()[order])


def fill(y, slope, allowed, radius):
    """ℓ∞: from the least that each next state may keep, fill up the best ones; rows are
    independent.
    """
    gain = 0.0
    for own, z, may in zip(y, slope, allowed, strict=True):
        least = np.maximum(own - radius, 0) * may
        rest, best = 1 - least.sum(), least.copy()
        for t in np.argsort(-z):
            best[t] += min(rest, own[t] + radius - least[t]) * may[t]
            rest = 1 - best.sum()
        gain += z @ (best - own)
    return gain


def split(y, w, slope, allowed, radius):
    """ℓ∞ of order 1: the best split of the budget between at most two kernels."""
    if len(w) == 1:
        return fill(y[0], slope, allowed, radius)

    def at(first):
        budgets = first, (radius - w[0] * first) / w[1]
        return sum(w[i] * fill(y[i], slope, allowed, min(1, budgets[i])) for i in (0, 1))

    return -least(lambda first: -at(first), 0, min(1, radius / w[0]))


def along_projections(y, w, slope, allowed, radius):
    """ℓ2: the worst kernels lie on the paths t ↦ Proj(ŷ + t z) of all rows; search t where the
    radius is met.
    """

    def moves(log_t):
        return project(np.where(allowed, y + math.exp(log_t) * slope, -np.inf)) - y

    def far(log_t):
        return math.sqrt(w @ (moves(log_t) ** 2).sum(axis=(1, 2)))

    low, high = (-45.0, 45.0) if far(45.0) > radius else (45.0, 45.0)
    while high - low > 1e-14 * (1 + abs(low)):
        middle = (low + high) / 2
        low, high = (middle, high) if far(middle) <= radius else (low, middle)
    return float(np.einsum("i,iat,at->", w, moves(low), slope))


def project(points):
    """Euclidean projection of each row on the simplex, next states at −∞ left out."""
    down = -np.sort(-points, axis=-1)
    down = np.where(np.isfinite(down), down, -1e300)
    threshold = (np.cumsum(down, axis=-1) - 1) / np.arange(1, points.shape[-1] + 1)
    last = (down > threshold).sum(axis=-1, keepdims=True) - 1
    return np.maximum(points - np.take_along_axis(threshold, last, axis=-1), 0)


def least(f, low, high, steps=50):
    """Least value of a convex function on an interval, by golden section and at the ends."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right, best = f(left), f(right), min(f(low), f(high))
    for _ in range(steps):
        best = min(best, at_left, at_right)
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = f(right)
    return min(best, at_left, at_right)


# ---------------------------------------------------------------------- by hand


@pytest.mark.parametrize("storage", ["array", "scipy"])
def test_data_by_hand(storage):
    """Rewards by next state, a second kernel of weight 0, an unavailable pair and a terminal
    state.
    """
    nan = [np.nan] * 3
    kernels = np.array(
        [
            [[[0.5, 0.5, 0.0], nan], [[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]], [nan, nan]],
            [[[0.0, 0.0, 1.0], nan], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [nan, nan]],
        ]
    )
    rewards = np.array(
        [[[1.0, 2.0, 3.0], nan], [[np.nan, 4.0, 5.0], [6.0, np.nan, np.nan]], [nan, nan]]
    )
    if storage == "scipy":
        kernels = [sparse.csr_array(kernel.reshape(6, 3)) for kernel in kernels]
        rewards = sparse.csr_array(np.nan_to_num(rewards).reshape(6, 3))
    model = drmdp.Model(
        kernels,
        rewards=rewards,
        discount=0.5,
        weights=[1, 0],
        available={0: [0]},
        terminal=[False, False, True],
    )
    ambiguity, value = drmdp.Wasserstein(0.5, "l1", 1, "observed"), np.array([10.0, 20.0, 0.0])
    z = reference.stakes(model, value)
    assert z[0, 0].tolist() == [-1 + 5, -2 + 10, -3]
    assert z[1, 0, 1:].tolist() == [-4 + 10, -5]
    assert z[1, 1, 0] == -6 + 5
    assert np.isnan([z[1, 0, 0], *z[1, 1, 1:]]).all()
    allowed = [[[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    assert reference.support(model, ambiguity).tolist() == np.array(allowed, dtype=bool).tolist()
    # state 0: half 4, half 8, and ¼ moves from 4 to 8; state 1: action 1 cannot get worse than −1,
    # action 0 can
    np.testing.assert_allclose(
        reference.robust_update(model, ambiguity, value), [7, -1, 0], rtol=0, atol=1e-12
    )
    # action 0: ¼ of 6 and ¾ of −5, and ¼ moves from −5 to 6
    policy = np.array([[1, 0], [0.5, 0.5], [0, 0]])
    np.testing.assert_allclose(
        reference.robust_evaluate(model, ambiguity, policy, value),
        [7, -0.25, 0],
        rtol=0,
        atol=1e-12,
    )


@PAIR
def test_values_by_hand(pair):
    """Mass goes from value 0 to value 1, as far as the radius ½ lets it; cost 0, discount ½."""
    root = math.sqrt(2)
    near = np.array([[1.0, 0.0], [1.0, 0.0]])  # (S, S): in both states surely to state 0
    far = near[:, ::-1]
    for kernels, moved in (
        # one action, one kernel: ½ is shared by the loss and the gain
        (near[None, :, None], {"l1": 1 / 4, "l2": 1 / (2 * root), "linf": 1 / 2}[pair[0]]),
        # two actions that both must move
        (near[None, :, None].repeat(2, axis=2), {"l1": 1 / 8, "l2": 1 / 4, "linf": 1 / 2}[pair[0]]),
        # two kernels, of which the other is at value 1 already: its budget is free for orders 1 and
        # 2
        (
            np.stack([near, far])[:, :, None],
            {
                ("l1", 1): 3 / 4,
                ("l2", 2): 3 / 4,
                ("linf", 1): 1,
                ("l1", math.inf): 5 / 8,
                ("l2", math.inf): 1 / 2 + 1 / (4 * root),
                ("linf", math.inf): 3 / 4,
            }[pair],
        ),
    ):
        model = drmdp.Model(kernels, costs=np.zeros(2), discount=0.5)
        got = reference.robust_update(
            model, drmdp.Wasserstein(0.5, *pair, support="all"), np.array([0.0, 1.0])
        )
        np.testing.assert_allclose(got, moved / 2, rtol=1e-10)


@PAIR
def test_distance_by_hand(pair):
    """Moves of ½ in both actions of kernel 0, of 1 in one action of kernel 1; kernel 2 has no
    weight.
    """
    stay, go = [1.0, 0.0], [0.0, 1.0]
    data = np.array([[[stay, stay]] * 2] * 3)
    kernels = np.array([[[[0.5, 0.5]] * 2] * 2, [[stay, go]] * 2, [[go, go]] * 2])
    model = drmdp.Model(
        data, costs=np.zeros(2), discount=0.5, weights=[0.75, 0.25, 0], available={1: [1]}
    )
    ambiguity = drmdp.Wasserstein(0.5, *pair, support="all")
    want = {
        ("l1", 1): [0.75 * 2 + 0.25 * 2, 0.75 + 0.25 * 2],
        ("l2", 2): [math.sqrt(0.75 + 0.25 * 2), math.sqrt(0.75 / 2 + 0.25 * 2)],
        ("linf", 1): [0.75 / 2 + 0.25, 0.75 / 2 + 0.25],
        ("l1", math.inf): [2, 2],
        ("l2", math.inf): [math.sqrt(2), math.sqrt(2)],
        ("linf", math.inf): [1, 1],
    }[pair]
    np.testing.assert_allclose(reference.distance(model, ambiguity, kernels), want, rtol=1e-14)
    np.testing.assert_allclose(
        reference.violation(model, ambiguity, kernels), np.subtract(want, 0.5), rtol=1e-14
    )


def test_violation_by_hand():
    """In a ball of large radius: a negative entry, a sum that is not 1, mass where none was
    observed.
    """
    data = np.array([[1.0, 0.0], [1.0, 0.0]])[:, None]
    model = drmdp.Model(data, costs=np.zeros(2), discount=0.5)
    for row, support, want in (
        ([1.0, 0.0], "observed", 0),
        ([1.125, -0.125], "all", 0.125),
        ([0.75, 0.0], "all", 0.25),
        ([0.5, 0.5], "all", 0),
        ([0.5, 0.5], "observed", 0.5),
    ):
        ambiguity = drmdp.Wasserstein(9.0, "l1", 1, support)
        got = reference.violation(model, ambiguity, np.array([[[row], [[1.0, 0.0]]]]))
        assert got.tolist() == [want, 0]


# ---------------------------------------------------------------------- against closed forms


@PAIR
@OFTEN
def test_radius_0_is_the_nominal_update(pair, n):
    for case in cases.cases(pair, n, seed=1):
        case = with_radius(case, 0.0)
        model, want = case.model, np.zeros(case.model.n_states)
        mean = (
            model.mean_kernel.toarray().reshape(*model.available.shape, -1)
            if model.is_sparse
            else model.mean_kernel
        )
        for s in np.flatnonzero(~model.terminal):
            z = reference.stakes(model, case.value)[s]
            want[s] = min(
                mean[s, a, mean[s, a] > 0] @ z[a, mean[s, a] > 0]
                for a in np.flatnonzero(model.available[s])
            )
        assert_close(reference.robust_update(*case[1:]), want, case, relative=0)


@PAIR
@OFTEN
def test_large_radius_is_the_worst_of_all_next_states(pair, n):
    for case in cases.cases(pair, n, seed=2):
        case = with_radius(case, 2.0 * case.model.n_actions)
        model, want = case.model, np.zeros(case.model.n_states)
        z, allowed = reference.stakes(model, case.value), reference.support(model, case.ambiguity)
        for s in np.flatnonzero(~model.terminal):
            want[s] = min(z[s, a, allowed[s, a]].max() for a in np.flatnonzero(model.available[s]))
        assert_close(reference.robust_update(*case[1:]), want, case)


@PAIR
def test_constant_stakes_are_exact(pair):
    model = drmdp.Model(np.full((2, 3, 2, 3), 1 / 3), costs=[[0.25, 0.5]] * 3, discount=0.5)
    for radius in 0.0, 0.3, 9.0:
        got = reference.robust_update(
            model, drmdp.Wasserstein(radius, *pair, support="all"), np.full(3, 7.0)
        )
        assert got.tolist() == [3.75] * 3


def solvable(pair, n, seed):
    """Yield cases that `worst_step` has a closed form for: all but three kernels for ("linf",
    1).
    """
    for case in cases.cases(pair, n, seed):
        if pair != ("linf", 1) or (case.model.weights > 0).sum() <= 2:
            yield case


@PAIR
@OFTEN
def test_evaluate_is_the_closed_form(pair, n):
    rng = np.random.default_rng(3)
    for case in solvable(pair, n, seed=3):
        policy = random_policy(case.model, rng)
        want = [
            0 if case.model.terminal[s] else worst_step(case, s, x) for s, x in enumerate(policy)
        ]
        got = reference.robust_evaluate(case.model, case.ambiguity, policy, case.value)
        assert_close(got, np.array(want), case, policy=policy)


@PAIR
@OFTEN
def test_update_is_a_saddle_point(pair, n):
    """Its kernels are in the ball and guarantee the value, by definition; its policy does, by the
    closed form.
    """
    for case in solvable(pair, n, seed=4):
        model, ambiguity, value = case.model, case.ambiguity, case.value
        answers = [reference.solve_state(model, ambiguity, value, s) for s in range(model.n_states)]
        got = np.array([answer.value for answer in answers])
        kernels = np.stack([answer.kernels for answer in answers], axis=1)
        assert (reference.violation(model, ambiguity, kernels) < 1e-14).all(), case.name
        pure = np.array(
            [
                reference.payoff(
                    model, value, np.eye(model.n_actions)[[a] * model.n_states], kernels
                )
                for a in range(model.n_actions)
            ]
        ).T
        lower = np.where(model.terminal, 0, np.where(model.available, pure, np.inf).min(axis=1))
        upper = [
            0 if model.terminal[s] else worst_step(case, s, answers[s].policy)
            for s in range(model.n_states)
        ]
        assert_close(got, lower, case)
        assert_close(got, np.array(upper), case)


def least_of_two(case, s):
    return least(lambda x: worst_step(case, s, np.array([x, 1 - x])), 0, 1)


@PAIR
@pytest.mark.parametrize("n", [12, pytest.param(40, marks=pytest.mark.fuzz)])
def test_update_is_the_least_of_all_policies(pair, n):
    """For two actions, searched for by golden section; and below random policies for any number."""
    rng, found = np.random.default_rng(5), 0
    for case in solvable(pair, n, seed=5):
        model, ambiguity, value = case.model, case.ambiguity, case.value
        got = reference.robust_update(model, ambiguity, value)
        other = reference.robust_evaluate(model, ambiguity, random_policy(model, rng), value)
        assert (got <= other + reference.tolerance(model, ambiguity, value, RELATIVE)).all(), (
            case.name
        )
        if (
            model.n_actions == 2
            and model.available.all()
            and not model.terminal.any()
            and found < n // 8
        ):
            found += 1
            want = [least_of_two(case, s) for s in range(model.n_states)]
            assert_close(got, np.array(want), case)
    assert found >= n // 12


@pytest.mark.parametrize("metric", ["l1", "l2"])
def test_a_solver_that_stops_early_is_noticed(metric, monkeypatch):
    kernels = np.random.default_rng(6).dirichlet(np.ones(4), (3, 4, 3))
    model = drmdp.Model(kernels, costs=np.zeros(4), discount=0.9)
    ambiguity, value = drmdp.Wasserstein(0.3, metric, math.inf, support="all"), np.arange(4.0)
    reference.robust_update(model, ambiguity, value)
    monkeypatch.setattr(
        reference,
        "LINEAR",
        ({"solver": cp.HIGHS, "simplex_iteration_limit": 1, "presolve": "off"},),
    )
    monkeypatch.setattr(
        reference, "CONIC", ({"solver": cp.CLARABEL, "tol_gap_abs": 1e-6, "tol_gap_rel": 1e-6},)
    )
    with pytest.raises(reference.Unproved):
        reference.robust_update(model, ambiguity, value)


# ---------------------------------------------------------------------- the cases


def test_cases_are_the_same_for_the_same_seed():
    def look(seed):
        return [
            (c.name, c.model.fingerprint, repr(c.ambiguity), c.value.tolist())
            for c in cases.cases(("l2", 2), 9, seed)
        ]

    assert look(0) == look(0) != look(1)


def test_every_kind_occurs_often():
    names = [case.name + "-" for case in cases.cases(("l2", 2), 100)]
    assert len(set(names)) == 100
    words = """
        S1A A1N N1- dense-rows sparse-rows deterministic-rows mixed-rows random-weights zero-weights scipy
        by-pair by-state by-next by-unseen spread-costs tied-costs near-costs wide-costs balanced-costs rewards
        random-value ties-value plateau-value constant-value level-value two-value scale-1e-09 scale-1e+09
        discount-0- discount-0.5 discount-0.9- discount-0.99 closed terminal observed
        radius-0 radius-1e-6 radius-1e-4 radius-moderate radius-almost radius-saturating radius-beyond radius-varied
    """
    assert not [word for word in words.split() if sum(word in name for name in names) < 5]
