"""Intervals against linear programs of the definition, and what they reduce to."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import drmdp

KINDS = ("plain", "ties", "points", "zeros", "outside", "wide", "free", "scale")


def dealt(seed):
    """A small problem: model, intervals, value; every degeneracy of `KINDS` in turn."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    S, A, N = int(rng.integers(1, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    kernels = rng.dirichlet(np.full(S, rng.choice([0.2, 1.0])), size=(N, S, A))
    kernels = np.where(kernels < 0.05, 0, kernels)
    kernels /= kernels.sum(axis=-1, keepdims=True)
    middle = kernels[0] if kind != "outside" else rng.dirichlet(np.ones(S), size=(S, A))
    width = {"points": 0.0, "wide": 1.0, "free": 2.0}.get(kind, 0.2) * rng.random(middle.shape)
    if kind == "zeros":
        width = np.where(rng.random(width.shape) < 0.5, 0, width)
    lower, upper = np.clip(middle - width, 0, 1), np.clip(middle + width * rng.random(), 0, 1)
    value = rng.normal(size=S)
    if kind == "ties":
        value = np.round(value)
    scale = 10.0 ** rng.integers(-9, 10) if kind == "scale" else 1.0
    costs = rng.random((S, A, S) if seed % 3 == 0 else (S, A))
    available = rng.random((S, A)) < 0.8
    available[np.arange(S), rng.integers(A, size=S)] = True
    terminal = rng.random(S) < 0.1
    model = drmdp.Model(
        kernels,
        costs=scale * costs,
        discount=float(rng.choice([0, 0.5, 0.99])),
        available=available,
        terminal=terminal,
    )
    return model, drmdp.Intervals(lower, upper), np.where(terminal, 0, scale * value)


def worst_rows(model, lower, upper, value):
    """max_y Σ y (c + λ v) between the bounds, (S, A), by HiGHS; inf where unavailable."""
    z = model.stakes(value, 0, model.n_states)
    out = np.full(z.shape[:2], np.inf)
    for s, a in np.argwhere(model.available):
        size = np.abs(z[s, a]).max() or 1.0
        bounds = np.stack([lower[s, a], upper[s, a]], axis=1)
        found = linprog(-z[s, a] / size, A_eq=np.ones((1, z.shape[2])), b_eq=[1.0], bounds=bounds)
        out[s, a] = -size * found.fun if found.status == 0 else z[s, a] @ lower[s, a]
    return out


def check(seed):
    model, ambiguity, value = dealt(seed)
    rows = worst_rows(model, ambiguity.lower, ambiguity.upper, value)
    want = np.where(model.terminal, 0, rows.min(axis=1, where=model.available, initial=np.inf))
    step = drmdp.bellman(model, ambiguity, value)
    scale = np.abs(want).max() + np.abs(value).max() + np.abs(model.costs).max()
    assert (step.lower <= want + 1e-9 * scale).all()
    assert (step.upper >= want - 1e-9 * scale).all()
    assert (step.upper - step.lower <= 1e-12 * scale).all()
    kernel = np.asarray(step.kernel)[model.available]
    assert (kernel >= ambiguity.lower[model.available] - 1e-14).all()
    assert (kernel <= ambiguity.upper[model.available] + 1e-14).all()
    np.testing.assert_allclose(kernel.sum(axis=-1), 1, atol=1e-13)


@pytest.mark.parametrize("seed", range(24))
def test_a_step_is_the_linear_program_of_each_row(seed):
    check(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_steps_are_the_linear_programs_of_their_rows(seed):
    check(seed)


def problem(**settings):
    rng = np.random.default_rng(2)
    kernels = rng.dirichlet(np.full(6, 0.4), size=(4, 6, 3))
    kernels = np.where(kernels < 0.05, 0, kernels)
    kernels /= kernels.sum(axis=-1, keepdims=True)
    settings = {
        "costs": rng.random((6, 3)),
        "discount": 0.9,
        "weights": [0.4, 0.3, 0.3, 0],
    } | settings
    return drmdp.Model(kernels, **settings)


def by_hand(model, lower, upper, policy=None):
    """Value iteration on a fill from the top, row by row."""
    v = np.zeros(model.n_states)
    for _ in range(400):
        z = model.stakes(v, 0, model.n_states)
        order = np.argsort(-z, axis=2)
        lo, hi = (np.take_along_axis(part, order, axis=2) for part in (lower, upper))
        left = 1 - lo.sum(axis=2, keepdims=True)
        before = np.cumsum(hi - lo, axis=2) - (hi - lo)
        y = lo + np.clip(left - before, 0, hi - lo)
        q = (y * np.take_along_axis(z, order, axis=2)).sum(axis=2)
        v = q.min(axis=1) if policy is None else (policy * q).sum(axis=1)
    return v


@pytest.mark.parametrize("given", ["dense", "sparse"])
def test_it_is_solved_evaluated_and_certified(given):
    model = problem()
    rng = np.random.default_rng(3)
    middle = rng.dirichlet(np.ones(6), size=(6, 3))
    lower, upper = np.clip(middle - 0.1, 0, 1), np.clip(middle + 0.1, 0, 1)
    upper[:, :, 2] = lower[:, :, 2] = 0  # and the rest still has room
    upper[:, :, 3] = 1
    parts = (lower, upper)
    ambiguity = drmdp.Intervals(
        *(sparse.csr_array(part.reshape(18, 6)) if given == "sparse" else part for part in parts)
    )
    want = by_hand(model, lower, upper)
    for method in ("auto", "value-iteration", "anderson", "gauss-seidel"):
        found = drmdp.solve(model, ambiguity, method, tol=1e-8)
        assert found.status == "solved"
        assert (found.lower <= want + 1e-12).all()
        assert (found.upper >= want - 1e-12).all()
    assert set(np.unique(found.policy)) == {0, 1}
    assert found.kernels is None
    x = np.full((6, 3), 1 / 3)
    np.testing.assert_allclose(
        drmdp.evaluate(model, ambiguity, x, tol=1e-9).value,
        by_hand(model, lower, upper, x),
        atol=1e-8,
    )
    proof = drmdp.certify(model, ambiguity, found)
    assert proof.gap < 1e-7
    anything = drmdp.certify(model, ambiguity, found.policy, rng.random((6, 3, 6)))
    assert (anything.lower <= want + 1e-9).all()
    again = drmdp.finite_horizon(model, ambiguity, 300)
    np.testing.assert_allclose(again.value[0], want, atol=1e-6)


def test_width_zero_is_the_nominal_problem():
    model = problem()
    rows = np.asarray(model.mean_kernel)
    found = drmdp.solve(model, drmdp.Intervals(rows, rows), tol=1e-9)
    want = drmdp.solve(model, drmdp.Wasserstein(0), tol=1e-9)
    np.testing.assert_allclose(found.value, want.value, atol=1e-8)
    np.testing.assert_allclose(found.kernel, rows, atol=1e-14)


def test_the_envelope_is_that_of_the_kernels_that_count():
    model = problem()
    ambiguity = drmdp.Intervals.of(model, margin=0.1)
    seen = np.asarray(model.kernels)[:3]
    observed = (seen > 0).any(axis=0)
    lower = np.where(observed, np.maximum(seen.min(axis=0) - 0.1, 0), 0)
    upper = np.where(observed, np.minimum(seen.max(axis=0) + 0.1, 1), 0)
    want = by_hand(model, lower, upper)
    np.testing.assert_allclose(drmdp.solve(model, ambiguity, tol=1e-9).value, want, atol=1e-8)
    np.testing.assert_allclose(
        drmdp.solve(model, ambiguity.with_radius(0.0)).value,
        drmdp.solve(
            model, drmdp.Intervals(np.where(observed, seen.min(axis=0), 0), seen.max(axis=0))
        ).value,
        rtol=1e-6,
    )
    assert ambiguity == ambiguity.with_radius(0.1)
    assert ambiguity != ambiguity.with_radius(0.2)
    assert ambiguity != drmdp.Intervals(lower, upper)
    path = drmdp.radius.path(model, ambiguity, [0, 0.05, 0.1, 0.5, 1.0])
    assert (np.diff(path.worst) >= -1e-9).all()
    np.testing.assert_allclose(path.points[2].value, want, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_saturation_is_where_nature_may_do_anything(seed):
    rng = np.random.default_rng(seed)
    S, A, N = 4, 2, int(rng.integers(1, 4))
    rows = rng.dirichlet(np.full(S, 0.5), size=(N, S, A)) * (rng.random((1, S, A, S)) < 0.7)
    rows[..., 0] += 1e-3
    model = drmdp.Model(
        rows / rows.sum(axis=-1, keepdims=True), costs=np.zeros((S, A)), discount=0.5
    )
    ambiguity = drmdp.Intervals.of(model)
    far = ambiguity.saturation(model)
    lower, upper = (np.asarray(f(np.asarray(model.kernels), axis=0)) for f in (np.min, np.max))
    want = np.zeros(S)
    for s, a, t in itertools.product(range(S), range(A), range(S)):
        if upper[s, a, t] > 0:
            others = max([lower[s, a, k] for k in range(S) if k != t], default=0)
            want[s] = max(want[s], 1 - upper[s, a, t], others)
    np.testing.assert_allclose(far, want, atol=1e-15)


def test_next_state_costs_that_are_missing_are_asked_for():
    rows = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]]))
    costs = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
    model = drmdp.Model([rows], costs=costs, discount=0.5)
    drmdp.solve(model, drmdp.Intervals(rows, rows))
    with pytest.raises(
        drmdp.InputError, match="from state 0 with action 0 to 1, and that transition has no cost"
    ):
        drmdp.solve(model, drmdp.Intervals(np.zeros((2, 1, 2)), np.ones((2, 1, 2))))


def test_bad_bounds_are_named():
    model = drmdp.Model(
        np.full((2, 1, 2), 0.5), costs=[[0.0], [1.0]], discount=0.5, states=["a", "b"]
    )
    half = np.full((2, 1, 2), 0.5)

    def changed(s, t, value):
        out = half.copy()
        out[s, 0, t] = value
        return out

    for lower, upper, message in (
        (
            changed(1, 0, 0.6),
            changed(1, 0, 0.6),
            r"lower bounds sum to 1.1 > 1 at state 'b', action 0",
        ),
        (
            changed(1, 0, 0.3),
            changed(1, 0, 0.3),
            r"upper bounds sum to 0.8 < 1 at state 'b', action 0",
        ),
        (
            changed(0, 1, 0.6),
            half,
            r"expected 0 ≤ lower ≤ upper ≤ 1, got .*0.6.* and .*0.5.* at state 'a', action 0, next state 'b'",
        ),
        (changed(0, 1, -0.1), half, r"expected 0 ≤ lower"),
        (half, changed(0, 1, math.nan), r"expected 0 ≤ lower"),
        (half, changed(0, 1, 1.1), r"expected 0 ≤ lower"),
    ):
        with pytest.raises(drmdp.InputError, match=message):
            drmdp.solve(model, drmdp.Intervals(lower, upper))
    with pytest.raises(drmdp.InputError, match=r"expected shape \(S, A, S\)"):
        drmdp.Intervals(half[0], half[0])
    with pytest.raises(drmdp.InputError, match="got shapes"):
        drmdp.Intervals(half, half[:, :, :1].repeat(1, axis=2)[:1, :, :])
    with pytest.raises(
        drmdp.InputError, match="expected bounds for 2 states and 1 actions, got 3 and 1"
    ):
        drmdp.solve(model, drmdp.Intervals(np.full((3, 1, 3), 0.0), np.ones((3, 1, 3))))
    with pytest.raises(drmdp.InputError, match="intervals has no radius"):
        drmdp.Intervals(half, half).with_radius(0.1)
    with pytest.raises(drmdp.InputError, match="intervals has no radius"):
        drmdp.radius.path(model, drmdp.Intervals(half, half), [0.1])
    unavailable = drmdp.Model(
        np.full((2, 2, 2), 0.5),
        costs=np.ones((2, 2)),
        discount=0.5,
        available=[[True, False], [True, False]],
    )
    bad = np.full((2, 2, 2), math.nan)
    bad[:, 0] = 0.5
    assert drmdp.solve(unavailable, drmdp.Intervals(bad, bad)).status == "solved"


@pytest.mark.usefixtures("sketched")
def test_the_report_speaks_of_it(tmp_path):
    model = problem()
    for name, ambiguity in (
        ("a", drmdp.Intervals.of(model)),
        ("b", drmdp.Intervals(np.zeros((6, 3, 6)), np.ones((6, 3, 6)))),
    ):
        page = tmp_path / f"{name}.html"
        drmdp.solve(model, ambiguity).report(page)
        assert "an interval for each probability" in page.read_text()


STORM = {
    (1, "adversarial"): [
        1.548546254165379,
        1.878765671616526,
        1.5845545436502206,
        1.4445586295058357,
        1.9490408391756462,
    ],
    (1, "cooperative"): [
        1.3324871029876386,
        1.7801363434409854,
        1.4263530704861616,
        1.2387188215688598,
        1.796732325342998,
    ],
    (2, "adversarial"): [
        0.4345871633957962,
        0.8105112390801187,
        1.0629081976208723,
        0.5471908303083931,
        0.6350282210988152,
    ],
    (2, "cooperative"): [
        0.3300996962420008,
        0.6431162675649381,
        0.9332191507393768,
        0.4215212018657506,
        0.4786674002626394,
    ],
    (3, "adversarial"): [
        0.782879489420573,
        1.1135637045379656,
        1.0722240618682521,
        0.9965259924970714,
        0.771009164631839,
    ],
    (3, "cooperative"): [
        0.6567695051112303,
        0.9756263885532891,
        0.8902269102034617,
        0.8679571508763186,
        0.620739721896564,
    ],
}
"""Values of Storm's robust value iteration (stormpy 2.0.0, `Pmin=? [F "goal"]`, ROBUST and
COOPERATIVE, precision 1e-6), divided by 1 − λ.

A discounted cost is the probability to reach a goal: from (s, a) to t with λ times its interval, to
the goal with (1 − λ) c(s, a), else to a sink.
"""


def storm_instance(seed):
    """Bounds and costs, all of them multiples of 1/1024 but for rounding of the middle."""
    rng = np.random.default_rng(seed)
    middle = np.round(rng.dirichlet(np.full(5, 0.6), size=(5, 2)) * 64) / 64
    middle[..., 0] += 1 - middle.sum(axis=-1)
    middle[middle < 0] = 0
    middle /= middle.sum(axis=-1, keepdims=True)
    width = rng.integers(0, 3, size=middle.shape) / 16
    lower = np.clip(middle - width, 0, 1) * (middle > 0)
    upper = np.clip(middle + width, 0, 1) * (middle > 0)
    lower = np.where(upper > 0, np.maximum(lower, 1 / 1024), 0)  # Storm asks for positive ones
    upper = np.maximum(upper, lower)
    return middle, lower, upper, rng.integers(0, 9, size=(5, 2)) / 8


@pytest.mark.parametrize(("seed", "nature"), STORM)
def test_storm_finds_the_same(seed, nature):
    middle, lower, upper, costs = storm_instance(seed)
    model = drmdp.Model(middle, costs=costs, discount=0.75)
    found = drmdp.solve(model, drmdp.Intervals(lower, upper), tol=1e-9, nature=nature)
    np.testing.assert_allclose(found.value, STORM[seed, nature], rtol=0, atol=4e-6)


def drn_of(lower, upper, costs, discount):
    """The same instance as Storm reads it; the goal and the sink come last."""
    S, A = costs.shape
    rest = (1 - discount) * (1 - costs)
    lines = [
        "@type: MDP",
        "@value_type: double-interval",
        "@parameters",
        "",
        "@reward_models",
        "",
        "@nr_states",
        str(S + 2),
        "@nr_choices",
        str(S * A + 2),
    ]
    lines.append("@model")
    for s in range(S):
        lines.append(f"state {s}" + (" init" if s == 0 else ""))
        for a in range(A):
            lines.append(f"\taction {a}")
            ways = [
                (t, discount * lower[s, a, t], discount * upper[s, a, t])
                for t in range(S)
                if upper[s, a, t] > 0
            ]
            ways += [
                (t, x, x)
                for t, x in ((S, (1 - discount) * costs[s, a]), (S + 1, rest[s, a]))
                if x > 0
            ]
            lines += [f"\t\t{t} : [{low:.17g}, {high:.17g}]" for t, low, high in ways]
    for t, label in ((S, " goal"), (S + 1, "")):
        lines += [f"state {t}{label}", "\taction 0", f"\t\t{t} : [1, 1]"]
    return "\n".join(lines) + "\n"


@pytest.mark.fuzz
@pytest.mark.parametrize("nature", ["adversarial", "cooperative"])
@pytest.mark.parametrize("seed", range(1, 21))
def test_storm_finds_the_same_today(seed, nature, tmp_path):
    """Where its wheel is installed; `STORM` is what it found once."""
    storm = pytest.importorskip("stormpy")
    middle, lower, upper, costs = storm_instance(seed)
    discount = 0.75
    path = tmp_path / "model.drn"
    path.write_text(drn_of(lower, upper, costs, discount))
    (asked,) = storm.parse_properties('Pmin=? [F "goal"]')
    mode = (
        storm.UncertaintyResolutionMode.ROBUST
        if nature == "adversarial"
        else storm.UncertaintyResolutionMode.COOPERATIVE
    )
    environment = storm.Environment()
    environment.solver().min_max().precision = storm.Rational(1e-13)
    result = storm.model_checking(
        storm.build_model_from_drn[storm.Interval](str(path)),
        asked,
        uncertainty_resolution_mode=mode,
        environment=environment,
    )
    theirs = np.array(result.get_value_vector()[:5]) / (1 - discount)
    model = drmdp.Model(middle, costs=costs, discount=discount)
    found = drmdp.solve(model, drmdp.Intervals(lower, upper), tol=1e-9, nature=nature)
    np.testing.assert_allclose(found.value, theirs, rtol=0, atol=1e-9)
