"""Paths over radii, critical radii, choice of a radius and the sufficient one."""

import math
from dataclasses import replace

import numpy as np
import pytest

import drmdp
from cases import cases
from drmdp import Divergence, InputError, Wasserstein, instances, radius
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS
from drmdp.ui import clock

EXACT = [pair for pair in PAIRS if pair != ("linf", 1)]


def small(sparse=False, rewards=False, seed=0):
    """Five states, three actions, one closed pair, a terminal state."""
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.full(5, 0.5), size=(4, 5, 3))
    available = np.ones((5, 3), dtype=bool)
    available[1, 2] = False
    terminal = [False, False, False, False, True]
    costs = rng.random((5, 3)) + np.arange(5)[:, None]
    named = {"rewards" if rewards else "costs": -costs if rewards else costs}
    if sparse:
        from scipy.sparse import csr_array

        kernels = [csr_array(kernel.reshape(15, 5)) for kernel in kernels]
    return drmdp.Model(kernels, **named, discount=0.9, available=available, terminal=terminal)


@pytest.mark.parametrize("pair", EXACT)
def test_a_path_is_what_single_solves_find(pair):
    for case in cases(pair, 12, seed=5):
        model, ambiguity = case.model, case.ambiguity
        scale = max(1e-300, np.abs(drmdp.solve(model, ambiguity).upper).max())
        radii = np.linspace(0, ambiguity.saturation(model).max(), 4)
        tol = 1e-6 * scale
        found = radius.path(model, ambiguity, radii, tol=tol)
        assert np.array_equal(found.radii, np.unique(radii)), case.name
        for point in found.points:
            alone = drmdp.solve(model, replace(ambiguity, radius=point.radius), tol=tol)
            assert point.status == alone.status == "solved", case.name
            assert point.gap <= tol
            assert (point.lower <= alone.upper).all(), case.name
            assert (alone.lower <= point.upper).all(), case.name
            assert np.array_equal(point.value, point.lower if model.maximise else point.upper)
            worst = drmdp.evaluate(
                model, replace(ambiguity, radius=point.radius), point.policy, tol=tol
            )
            late = worst.lower - point.value if not model.maximise else point.value - worst.upper
            assert late.max() <= 1e-9 * scale, case.name


def test_a_path_without_an_exact_operator():
    found = radius.path(small(), Wasserstein(0, "linf", 1, support="all"), [0, 0.2])
    alone = drmdp.solve(small(), Wasserstein(0.2, "linf", 1, support="all"))
    assert np.abs(found.points[1].value - alone.value).max() <= 2e-6


def test_what_a_path_says_of_itself():
    model = instances.perturb(instances.machine(8), 5)
    ambiguity, seen = Wasserstein(3.0, support="all"), []
    found = radius.path(model, ambiguity, 6, callback=seen.append)
    assert set(map(id, found.points)) == set(map(id, seen))
    assert (found.radii[0], found.radii[-1], len(found.radii)) == (0, found.saturation, 6)
    assert found.saturation == ambiguity.saturation(model).max()
    assert np.allclose(found.fractions, found.radii / found.saturation)
    assert (np.diff(found.worst) >= -1e-6).all()
    assert (
        found.nominal >= found.nominal[0] - 1e-6
    ).all()  # the first policy is the best under the mean kernel
    assert (found.nominal <= found.worst + 1e-6).all()
    assert np.allclose(found.nominal[0], found.worst[0], atol=1e-5)
    assert found.kernel_passes.sum() > 6
    assert (
        len(radius.path(model, ambiguity, 6, callback=lambda point: point.radius > 0).points) == 2
    )


def test_a_path_of_a_given_policy():
    model, policy = small(), [0, 0, 1, 2, 0]
    found = radius.path(model, Wasserstein(0, "l1", 1, support="all"), [0, 0.5, 1], policy=policy)
    for point in found.points:
        worst = drmdp.evaluate(model, Wasserstein(point.radius, "l1", 1, support="all"), policy)
        assert np.abs(worst.value - point.value).max() <= 2e-6
        assert np.array_equal(point.policy, model.policy(policy))


def test_fewer_sweeps_than_from_scratch():
    model = instances.perturb(instances.garnet(20, 4, seed=1), 5)
    for pair in EXACT:
        ambiguity = Wasserstein(0, *pair, support="all")
        found = radius.path(
            model, ambiguity, np.linspace(0, ambiguity.saturation(model).max(), 50), tol=1e-5
        )
        assert found.status == "solved"
        assert found.kernel_passes.mean() <= 2.5, pair
        spaced = radius.path(model, ambiguity, 20, tol=1e-5)
        alone = [
            drmdp.solve(model, ambiguity.with_radius(r), tol=1e-5).kernel_passes
            for r in spaced.radii
        ]
        assert spaced.kernel_passes.mean() < np.mean(alone), pair


# ---------------------------------------------------------------------- critical radii


@pytest.mark.parametrize("pair", [("l1", 1), ("l2", 2), ("linf", math.inf)])
@pytest.mark.parametrize("kind", ["dense", "sparse", "rewards"])
def test_critical_radii_from_both_sides(pair, kind):
    model = small(sparse=kind == "sparse", rewards=kind == "rewards", seed=3)
    found = radius.path(model, Wasserstein(0, *pair, support="all"), 12, tol=1e-8)
    changes = radius.critical(found, precision=1e-4)
    assert changes
    for change in changes:
        assert 0 < change.high - change.low <= 1e-4
        assert change.fraction == change.high / found.saturation
        s = list(model.states).index(change.state)
        for r, action in ((change.low, change.before), (change.high, change.after)):
            policy = drmdp.solve(model, Wasserstein(r, *pair, support="all"), tol=1e-8).policy[s]
            assert policy[list(model.actions).index(action)] >= policy.max() - 1e-3


def test_a_critical_radius_by_hand():
    # 'risky' leads to the bad state (which costs 10 once) with probability .1 and, at radius r, of
    # .1 + r/2; 'safe' costs 1. They are
    # equal where .5 · 10 · (.1 + r/2) = 1.
    rows = np.zeros((3, 2, 3))
    rows[0] = [[0, 0.9, 0.1], [0, 1, 0]]
    rows[2] = [0, 1, 0]
    model = drmdp.Model(
        rows,
        rewards=[[0, -1], [0, 0], [-10, -10]],
        discount=0.5,
        states=["start", "end", "bad"],
        terminal=["end"],
        actions=["risky", "safe"],
        available={"bad": ["risky"]},
    )
    found = radius.path(model, Wasserstein(0, "l1", 1, "observed"), [0, 0.05, 1.0], tol=1e-9)
    (change,) = radius.critical(found, precision=1e-6)
    assert change.low <= 0.2 + 1e-8
    assert change.high >= 0.2 - 1e-8
    assert (change.state, change.before, change.after) == ("start", "risky", "safe")
    assert change.shares == (0, 1)


def test_tied_actions_do_not_alternate():
    steady = 0
    for case in [
        case for pair in EXACT for case in cases(pair, 130, seed=31) if "tied" in case.name
    ]:
        model, limit = case.model, case.ambiguity.saturation(case.model).max()
        size = max(
            np.abs(drmdp.solve(model, case.ambiguity).upper).max(),
            1e-3 * max(map(abs, model.cost_range)),
        )
        if limit > 0 and size > 0:
            found = radius.path(model, case.ambiguity, 4, tol=1e-6 * size)
            first = radius.path(
                model, case.ambiguity, 4, tol=1e-9 * size, policy=found.points[0].policy
            )
            changes = radius.critical(found, precision=0.1 * limit)
            loss = [
                np.abs(one.value - two.value).max()
                for one, two in zip(found.points, first.points, strict=True)
            ]
            if (
                max(loss) <= 1e-7 * (1 - model.discount) * size
            ):  # the first policy is optimal all along
                steady += 1
                assert changes == (), case.name
    assert steady > 5


def test_no_change_no_work():
    model = small()
    solved = []
    found = radius.path(model, Wasserstein(0, support="all"), [0, 1e-6])
    assert radius.critical(found, callback=solved.append) == ()
    assert not solved


# ---------------------------------------------------------------------- choice


@pytest.mark.parametrize("kind", ["dense", "sparse", "rewards"])
def test_choice_by_held_out_kernels(kind):
    model = small(sparse=kind == "sparse", rewards=kind == "rewards")
    found = radius.path(model, Wasserstein(0, support="all"), 5)
    held = np.random.default_rng(9).dirichlet(np.ones(5), size=(7, 5, 3))
    choice = radius.choose(found, held)
    sign = -1 if model.maximise else 1
    for k, point in enumerate(found.points):
        for m in range(7):
            chain = np.einsum("sa,sat->st", point.policy, held[m])
            cost = (point.policy * np.where(model.available, model.costs, 0)).sum(axis=1)
            value = np.linalg.solve(np.eye(5) - 0.9 * chain, cost)
            assert np.isclose(choice.samples[k, m], sign * model.initial @ value)
    assert choice.best == np.argmin(sign * choice.samples.mean(axis=1))
    assert np.array_equal(sign * choice.worst, (sign * choice.samples).max(axis=1))
    assert np.allclose(sign * choice.quantile(0.9), np.quantile(sign * choice.samples, 0.9, axis=1))
    for by in ("worst", 0.75):
        own = radius.choose(found, held, by=by)
        assert own.radius == found.radii[np.argmin(sign * own.scores)]


def test_cross_validation_holds_out():
    model, ambiguity = small(), Wasserstein(0, support="all")
    choice = radius.cross_validate(model, ambiguity, [0, 0.3, 0.6])
    for i in range(4):
        others = [j for j in range(4) if j != i]
        train = drmdp.Model(
            np.nan_to_num(model.kernels[others]),
            costs=model.costs,
            discount=0.9,
            available=model.available,
            terminal=model.terminal,
        )
        for k, r in enumerate((0, 0.3, 0.6)):
            policy = drmdp.solve(train, Wasserstein(r, support="all")).policy
            value = drmdp.policies.under(model, policy, [i])[0]
            assert np.isclose(choice.samples[k, i], model.initial @ value, atol=1e-4)
    assert radius.cross_validate(model, ambiguity, [0, 0.3], folds=2, by="worst").samples.shape == (
        2,
        4,
    )


@pytest.mark.parametrize("rewards", [False, True])
def test_rows_without_data_of_their_own_are_told_before_kernels_are_held_out(rewards):
    model, ambiguity = small(rewards=rewards), Wasserstein(0)
    own = {"rewards": model.rewards} if rewards else {"costs": model.costs}
    fixed = {**own, "discount": 0.9, "available": model.available, "terminal": model.terminal}
    counts = np.ones((4, 5, 3, 5))
    counts[1, 1, 2] = counts[2, 4] = 0  # unavailable and terminal: nobody misses them
    kernels = np.nan_to_num(model.kernels)
    radius.cross_validate(drmdp.Model(kernels, **fixed, counts=counts), ambiguity, [0.1])
    radius.cross_validate(
        drmdp.Model(kernels, **fixed, counts=counts.sum(axis=0)), ambiguity, [0.1]
    )
    counts[2, 0, 1] = counts[3, 2] = 0
    kind = "rewards" if rewards else "costs"
    with pytest.warns(
        drmdp.Notice,
        match=f"4 of 44 rows of the kernels held out have no data of their own.*: held-out {kind} look better",
    ):
        radius.cross_validate(drmdp.Model(kernels, **fixed, counts=counts), ambiguity, [0.1])


def test_folds_of_trajectories():
    rng = np.random.default_rng(0)
    truth = instances.machine(4)
    paths = drmdp.simulate(truth, np.full((4, 2), 0.5), n=60, steps=30)
    table = {
        "episode": np.repeat(np.arange(60), 30),
        "state": paths.states[:, :-1].ravel(),
        "action": paths.actions.ravel(),
        "next_state": paths.states[:, 1:].ravel(),
        "cost": paths.costs.ravel() + 0 * rng.random(1800),
    }
    model = drmdp.estimate(
        table,
        cost="cost",
        episode="episode",
        discount=0.8,
        by="parts",
        n_kernels=5,
        partial="pooled",
        unvisited="unavailable",
    )
    choice = radius.cross_validate(model, Wasserstein(0, support="observed"), 4)
    assert choice.samples.shape == (4, 5)
    assert choice.radius in choice.radii


# ---------------------------------------------------------------------- the sufficient radius


@pytest.mark.parametrize("pair", PAIRS)
def test_the_truth_is_inside_as_often_as_promised(pair):
    rng = np.random.default_rng(1)
    S, A, N, n = 3, 2, 2, 50
    truth = rng.dirichlet(np.ones(S), size=(S, A))
    missed, ratios = 0, []
    for _ in range(200):
        kernels = np.stack(
            [[[rng.multinomial(n, row) / n for row in rows] for rows in truth] for _ in range(N)]
        )
        model = drmdp.Model(kernels, costs=np.zeros((S, A)), discount=0.5)
        ambiguity = Wasserstein(0, *pair, support="all")
        r = radius.sufficient(model, ambiguity, n, confidence=0.8)
        metric, order = pair
        norm = {"l1": 1, "l2": 2, "linf": np.inf}[metric]
        d = np.stack(
            [[np.linalg.norm((k[s] - truth[s]).ravel(), norm) for s in range(S)] for k in kernels]
        )
        far = d.max(axis=0) if order == math.inf else (d**order).mean(axis=0) ** (1 / order)
        missed += (far > r).any()
        ratios.append((far / r).max())
    assert missed <= 0.2 * 200
    assert max(ratios) > 0.3  # and it is not absurdly large


def test_the_sufficient_radius_of_counts():
    model, ambiguity = small(), Wasserstein(0, support="all")
    few, many = (radius.sufficient(model, ambiguity, n) for n in (100, 10_000))
    assert np.allclose(few[:4], 10 * many[:4])
    assert few[4] == 0
    counts = np.full((4, 5, 3), 100.0)
    counts[:, 1, 2] = np.nan  # closed
    assert np.array_equal(radius.sufficient(model, ambiguity, counts), few)
    counts[0, 0, 0] = 0
    assert radius.sufficient(model, ambiguity, counts)[0] > few[0]


@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("key", [*PAIRS, "burg", "tv"])
def test_less_than_a_draw_is_none_and_no_number_of_draws_is_too_large(key, rectangular):
    model = small()
    if isinstance(key, str):
        ambiguity = Divergence(0, key, rectangular=rectangular, support="all")
    else:
        ambiguity = Wasserstein(0, *key, support="all", rectangular=rectangular)
    none = radius.sufficient(model, ambiguity, 0)
    for few in (5e-324, 1e-300, 0.5, np.nextafter(1, 0)):
        assert np.array_equal(radius.sufficient(model, ambiguity, few), none)
    draws = [1, 10, 1e6, 1e12, 1e15, 2.0**53, 1e100, 1e308, np.finfo(float).max]
    radii = np.stack([none, *(radius.sufficient(model, ambiguity, n) for n in draws)])
    assert np.isfinite(radii).all()
    assert (np.diff(radii, axis=0) <= 0).all()
    scale = 1 if isinstance(key, str) and key == "burg" else 0.5  # like 1/n, and like its root
    far, near = radii[-4], radii[4]  # of 2^53 and of 1e12 draws: digits are not lost
    assert np.allclose(far * 2.0 ** (53 * scale), near * 1e12**scale, rtol=0.5)


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m, b: radius.path(m, b, 1),
            "radii: expected from 2 to 10,000 radii, or a list, got 1$",
        ),
        (
            lambda m, b: radius.path(m, b, 10**8),
            "radii: expected from 2 to 10,000 radii, or a list, got 100000000",
        ),
        (
            lambda m, b: radius.path(m, b, np.nan),
            "radii: expected from 2 to 10,000 radii, or a list, got nan",
        ),
        (lambda m, b: radius.path(m, b, 3, top=0), r"top must be positive and finite, got 0\.0"),
        (
            lambda m, b: radius.path(m, b, [0, -1]),
            "radii must be finite and not negative, got -1.0",
        ),
        (
            lambda m, b: radius.path(m, b, [[0]]),
            r"radii: expected a list of numbers, got shape \(1, 1\)",
        ),
        (lambda m, b: radius.path(m, b, [0], tol=-1), "tol must be finite"),
        (
            lambda m, b: radius.critical(radius.path(m, b, [0, 1]), precision=0),
            "precision must be positive, got 0.0",
        ),
        (
            lambda m, b: radius.choose(radius.path(m, b, [0]), []),
            "held_out: expected one or more kernels",
        ),
        (
            lambda m, b: radius.choose(radius.path(m, b, [0]), m, by="median"),
            'by: expected "mean", "worst" or a level',
        ),
        (
            lambda m, b: radius.choose(radius.path(m, b, [0]), np.zeros((1, 5, 3, 5))),
            "state 0, action 0 sums to 0.0, not 1",
        ),
        (
            lambda m, b: radius.choose(radius.path(m, b, [0]), instances.machine(5)),
            "held_out: a model with other states",
        ),
        (
            lambda m, b: radius.cross_validate(m, b, folds=9),
            "folds: expected a whole number from 2 to 4, got 9",
        ),
        (lambda m, b: radius.cross_validate(instances.machine(5), b), "nothing can be held out"),
        (
            lambda m, b: radius.sufficient(m, b, -1),
            "counts must be finite and not negative: kernel 0, state 0, action 0",
        ),
        (
            lambda m, b: radius.sufficient(m, b, 5, confidence=1),
            "confidence: expected a number between 0 and 1, got 1.0",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(small(), Wasserstein(0, support="all"))


# ---------------------------------------------------------------------- cut short


class Sweeps:
    """Counts the sweeps of the exact operator: each takes a second, and one of them may be
    interrupted.
    """

    def __init__(self, monkeypatch, interrupt=math.inf):
        self.count, self.interrupt = 0, interrupt
        for name in ("update", "evaluate"):
            monkeypatch.setattr(ExactOperator, name, self._counting(getattr(ExactOperator, name)))
        monkeypatch.setattr(clock, "now", lambda: float(self.count))

    def _counting(self, usual):
        def sweep(operator, *given):
            self.count += 1
            if self.count == self.interrupt:
                raise KeyboardInterrupt
            return usual(operator, *given)

        return sweep


ASKED = [0.0, 0.1, 0.2, 0.4, 0.8]


def test_an_interrupted_path_returns_what_is_done(monkeypatch):
    model, ambiguity = small(), Wasserstein(0, support="all")
    whole = radius.path(model, ambiguity, ASKED)
    first = int(whole.points[0].kernel_passes + whole.points[1].kernel_passes)
    sweeps, seen = Sweeps(monkeypatch, interrupt=first + 1), []
    found = radius.path(model, ambiguity, ASKED, callback=seen.append)
    assert found.status == "interrupted"
    assert found.radii.tolist() == ASKED[:3]
    assert [str(point.status) for point in found.points] == ["solved", "solved", "interrupted"]
    assert len(seen) == 2
    assert sweeps.count == first + 2  # the one that makes the last policy worth having
    assert (found.points[2].lower <= whole.points[2].upper).all()
    assert (found.points[2].upper >= whole.points[2].lower).all()
    assert not found.reached


@pytest.mark.parametrize("asked", [ASKED, 12], ids=["list", "number"])
def test_the_limit_of_a_path_is_for_all_radii_together(monkeypatch, asked):
    model, ambiguity = small(), Wasserstein(0, support="all")
    whole = radius.path(model, ambiguity, asked)
    assert whole.kernel_passes.sum() > 8
    sweeps = Sweeps(monkeypatch)
    for seconds in (0, 3, 7):
        sweeps.count = 0
        found = radius.path(model, ambiguity, asked, max_seconds=seconds)
        assert found.status == "time_limit"
        assert 0 < len(found.points) < len(whole.points)
        assert sum(point.status == "time_limit" for point in found.points) == 1
        assert sweeps.count <= seconds + 2
        for point in found.points:
            same = [own for own in whole.points if own.radius == point.radius]
            assert all(
                (point.lower <= own.upper).all() and (point.upper >= own.lower).all()
                for own in same
            )
    sweeps.count = 0
    assert radius.path(model, ambiguity, asked, max_seconds=1e6).status == "solved"


def changing():
    """Return a path with actions that change on it, and its critical radii."""
    model = instances.perturb(instances.machine(8, discount=0.9), 4)
    found = radius.path(model, Wasserstein(0, "l1", 1, support="all"), [0.0, 0.5, 1.0, 2.0])
    return found, radius.critical(found)


def test_a_search_for_critical_radii_passes_an_interruption_on(monkeypatch):
    found, changes = changing()
    assert changes
    Sweeps(monkeypatch, interrupt=8)
    with pytest.raises(KeyboardInterrupt):
        radius.critical(found)


def test_a_search_for_critical_radii_returns_wider_intervals_when_time_is_up(monkeypatch):
    found, changes = changing()
    sweeps, widths = Sweeps(monkeypatch), []
    for seconds in (0, 10, 20):
        sweeps.count = 0
        wide = radius.critical(found, max_seconds=seconds)
        assert sweeps.count <= seconds + 2
        for fine in changes:
            assert any(
                change.state == fine.state and change.low <= fine.low and fine.high <= change.high
                for change in wide
            )
        widths.append(max(change.high - change.low for change in wide))
    assert widths[0] >= widths[1] >= widths[2] > 1e-3
    sweeps.count = 0
    assert radius.critical(found, max_seconds=1e6) == changes


def test_cross_validation_chooses_by_the_folds_that_are_done(monkeypatch):
    model, ambiguity = small(), Wasserstein(0, support="all")
    whole = radius.cross_validate(model, ambiguity, ASKED)
    assert (str(whole.status), whole.samples.shape) == ("solved", (5, 4))
    sweeps = Sweeps(monkeypatch)
    radius.cross_validate(model, ambiguity, ASKED)
    seconds = sweeps.count // 2
    for asked in (ASKED, 5):
        sweeps.count = 0
        found = radius.cross_validate(model, ambiguity, asked, max_seconds=seconds)
        assert found.status == "time_limit"
        assert 0 < found.samples.shape[1] < 4
        assert sweeps.count <= seconds + 2
    sweeps.count = 0
    found = radius.cross_validate(model, ambiguity, ASKED, max_seconds=seconds)
    for column in found.samples.T:
        assert np.isclose(whole.samples.T, column, rtol=1e-9, atol=0).all(axis=1).any()
    for asked in (ASKED, 5):
        with pytest.raises(
            InputError, match="max_seconds: 0 s are too short to finish a single fold"
        ):
            radius.cross_validate(model, ambiguity, asked, max_seconds=0)
    sweeps.count, sweeps.interrupt = 0, 5
    with pytest.raises(KeyboardInterrupt):
        radius.cross_validate(model, ambiguity, ASKED)


def test_the_value_under_the_mean_kernel_is_left_out_where_time_is_up(monkeypatch):
    """In a large model it takes a linear system of its own."""
    monkeypatch.setattr("drmdp.policies.fixed_kernel.DENSE", 3)
    model, ambiguity = small(sparse=True), Wasserstein(0, support="observed")
    Sweeps(monkeypatch)
    found = radius.path(model, ambiguity, ASKED, max_seconds=2)
    assert found.status == "time_limit"
    assert np.isnan(found.points[-1].nominal).all()
    assert np.isfinite(found.points[0].nominal).all()


@pytest.mark.parametrize("given", [{"max_seconds": -1}, {"max_seconds": math.nan}])
def test_limits_are_checked(given):
    model, ambiguity = small(), Wasserstein(0, support="all")
    found = radius.path(model, ambiguity, [0, 0.1])
    for call in (
        lambda: radius.path(model, ambiguity, [0, 0.1], **given),
        lambda: radius.critical(found, **given),
        lambda: radius.cross_validate(model, ambiguity, [0, 0.1], **given),
        lambda: drmdp.evaluate(model, ambiguity, np.zeros(5, dtype=int), **given),
        lambda: drmdp.finite_horizon(model, ambiguity, 3, **given),
    ):
        with pytest.raises(InputError, match="max_seconds must not be negative"):
            call()


def test_all_rows_hold_at_once():
    """The states share the probability of a miss: S tuples, each with δ/S; the same n in all rows
    makes the weights add up to 1.
    """
    rng = np.random.default_rng(0)
    S, A, N, n, level = 3, 2, 4, 1000, 0.9
    model = drmdp.Model(rng.dirichlet(np.ones(S), (N, S, A)), costs=np.zeros((S, A)), discount=0.5)
    found = radius.sufficient(model, Wasserstein(0, "l2", 2, support="all"), n, level)
    row = math.sqrt(1 - 1 / S) + math.sqrt(math.log(S / (1 - level)))
    assert found == pytest.approx(np.full(S, row * math.sqrt(A / n)))
