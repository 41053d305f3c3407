"""Prices of doubt: against values that are solved again, and at the edges."""

import importlib

import numpy as np
import pytest

import doubt
import drmdp
from drmdp.policies import radius_prices as prices_module
from drmdp.solution.results import reached

NAMES = list(doubt.SETS)


def compared(rng, name, criterion, nature="adversarial", rectangular=None):
    """Relative error of a price of a random problem, or None where nothing smooth can be compared.

    Where the point is not smooth, one-sided differences must fit the one-sided prices.
    """
    make, top = doubt.SETS[name]
    rectangular = rectangular or ("sa" if rng.random() < 0.5 else "s")
    model = doubt.model_of(rng, criterion, rewards=rng.random() < 0.3)
    shape = (doubt.S, doubt.A) if rectangular == "sa" else (doubt.S,)
    ambiguity = make(rng.uniform(0.3, 1.0, shape) * top, rectangular)
    solution = doubt.solved(model, ambiguity, criterion, nature)
    if not reached(solution):
        return None
    more, less = solution.prices, solution.prices_less
    assert more.shape == (*(3,) * (criterion == "horizon"), *shape)
    if criterion == "horizon":
        more, less = more.sum(axis=0), less.sum(axis=0)
    if nature == "adversarial":
        assert (np.abs(more) <= np.abs(less)).all()
    places = np.argwhere(np.abs(more) > 1e-6 * np.abs(more).max())
    if not len(places):
        return None
    place = tuple(places[rng.integers(len(places))])
    step = 2e-4 * float(ambiguity.radii(model)[place])
    left, right = doubt.differences(model, ambiguity, criterion, place, step, nature)
    mean = (left + right) / 2
    if abs(left - right) > 2e-3 * abs(mean):
        assert abs(right) <= 1.01 * abs(less[place])
        assert abs(more[place]) <= 1.01 * abs(left)
        return None
    return abs((more[place] + less[place]) / 2 - mean) / abs(mean)


@pytest.mark.parametrize("criterion", doubt.CRITERIA)
def test_prices_are_derivatives_of_values(criterion):
    rng = np.random.default_rng([3, doubt.CRITERIA.index(criterion)])
    errors = [
        compared(rng, name, criterion) for name in NAMES[:: 3 if criterion != "discounted" else 1]
    ]
    known = [error for error in errors if error is not None]
    assert len(known) >= 0.9 * len(errors)
    assert max(known) < 1e-4


@pytest.mark.parametrize("name", ["l2 2", "kl mean observed", "reweighting tv", "transport 1"])
def test_a_nature_that_helps_has_prices_of_the_other_sign(name):
    rng = np.random.default_rng(5)
    assert compared(rng, name, "discounted", "cooperative") < 1e-4
    make, top = doubt.SETS[name]
    model = doubt.model_of(rng, "discounted")
    assert (drmdp.solve(model, make(top, "s"), nature="cooperative").prices <= 0).all()
    assert (drmdp.solve(model, make(top, "s")).prices >= 0).all()


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(6))
def test_prices_of_many_problems(seed):
    rng = np.random.default_rng([11, seed])
    errors = [
        compared(
            rng,
            name,
            doubt.CRITERIA[(seed + k) % 6],
            "cooperative" if rng.random() < 0.2 else "adversarial",
        )
        for k in range(4)
        for name in NAMES
    ]
    known = [error for error in errors if error is not None]
    assert len(known) >= 0.9 * len(errors)
    assert max(known) < 1e-3
    assert np.median(known) < 1e-6


def test_a_margin_of_intervals_has_prices():
    rng = np.random.default_rng(0)
    model = doubt.model_of(rng, "discounted")
    ambiguity = drmdp.Intervals.of(model, rng.uniform(0.01, 0.05, doubt.S))
    solution = doubt.solved(model, ambiguity, "discounted")
    for s in range(doubt.S):
        left, right = doubt.differences(model, ambiguity, "discounted", (s,), 1e-6)
        np.testing.assert_allclose(
            [solution.prices[s], solution.prices_less[s]], [right, left], rtol=1e-4
        )


def test_kinks_have_two_prices():
    """Total variation of 1/4 has moved all mass of the best next state: from here on it is that of
    the second.
    """
    kernel = np.array([[[0.25, 0.25, 0.5]], [[0, 0, 1]], [[0, 0, 1]]])
    ends = {"terminal": {1: 10.0, 2: 20.0}, "initial": [1, 0, 0]}
    model = drmdp.Model(kernel[None], costs=np.zeros((3, 1)), discount=0.5, **ends)
    solution = drmdp.solve(model, drmdp.Divergence(0.25, "tv"), tol=1e-12)
    assert np.asarray(solution.kernel)[0, 0, 0] == pytest.approx(0)  # so that it is visited once
    assert solution.value[0] == pytest.approx(0.5 * (0.25 * 10 + 0.75 * 20))
    np.testing.assert_allclose(solution.prices[0], 0.5 * (20 - 10), rtol=1e-6)
    np.testing.assert_allclose(solution.prices_less[0], 0.5 * (20 - solution.value[0]), rtol=1e-6)


@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("kind", ["tv", "l1", "linf", "intervals"])
def test_at_kinks_each_side_has_its_price(kind, rectangular):
    """Probabilities and radii are eighths, so that she has just emptied a next state, or filled
    one.
    """
    rng = np.random.default_rng([7, len(kind)])
    S, A, kinks = 5, 2, 0
    for _ in range(8):
        kernel = rng.multinomial(8, np.full(S, 1 / S), (1, S, A)) / 8
        model = drmdp.Model(kernel, costs=rng.integers(0, 100, (S, A)) / 3.0, discount=0.8)
        eighths = rng.integers(1, 4, (S, A) if rectangular == "sa" else (S,)) / 8
        if kind == "tv":
            ambiguity = drmdp.Divergence(eighths, "tv", rectangular=rectangular)
        elif kind == "intervals":
            ambiguity = drmdp.Intervals.of(model, rng.integers(1, 3, S) / 8)
        else:
            ambiguity = drmdp.Wasserstein(
                eighths * (2 if kind == "l1" else 1), kind, rectangular=rectangular
            )
        solution = drmdp.solve(model, ambiguity, tol=1e-11)
        more, less = solution.prices, solution.prices_less
        for place in map(tuple, np.argwhere(less > 1e-9)[:3]):
            left, right = doubt.differences(model, ambiguity, "discounted", place, 1e-6)
            kinks += less[place] > 1.001 * more[place]
            np.testing.assert_allclose(
                [more[place], less[place]], [right, left], atol=1e-3 * less[place]
            )
    assert kinks >= 4


def test_actions_that_tie():
    kernel = np.array([[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0], [1, 0]]])
    model = drmdp.Model(kernel[None], costs=[[0, 0], [10, 10]], discount=0.9, initial=[1, 0])
    ambiguity = drmdp.Wasserstein(np.array([[0.1, 0.1], [0, 0]]), rectangular="sa")
    solution = drmdp.solve(model, ambiguity, tol=1e-10)
    assert not solution.prices.any()
    left, _ = doubt.differences(model, ambiguity, "discounted", (0, 1), 1e-6)
    np.testing.assert_allclose(solution.prices_less, [[left, left], [0, 0]], rtol=1e-4)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "burg" not in name and "cvar" not in name]
)
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_beyond_saturation_doubt_costs_nothing(name, rectangular):
    model = doubt.model_of(np.random.default_rng(1), "discounted")
    ambiguity = doubt.SETS[name][0](0.0, rectangular)
    solution = drmdp.solve(model, ambiguity.with_radius(1.01 * ambiguity.saturation(model)))
    assert not solution.prices.any()
    assert not solution.prices_less.any()


@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("sign", [1, -1])
def test_radius_0(rectangular, sign):
    rng = np.random.default_rng(2)
    model = doubt.model_of(rng, "discounted", rewards=sign < 0)
    for name in ("kl mean observed", "burg mean state", "chi2 kernels observed", "reweighting kl"):
        solution = drmdp.solve(model, doubt.SETS[name][0](0.0, rectangular), tol=1e-9)
        played = solution.policy > 0.5 if rectangular == "sa" else np.ones(doubt.S, dtype=bool)
        np.testing.assert_array_equal(solution.prices, np.where(played, sign * np.inf, 0.0))
        np.testing.assert_array_equal(solution.prices, solution.prices_less)
    for name in ("l1 1", "l2 2", "linf 1", "tv mean observed", "transport 1", "reweighting tv"):
        ambiguity = doubt.SETS[name][0](0.0, rectangular)
        solution = drmdp.solve(model, ambiguity, tol=1e-11)
        place = np.unravel_index(np.argmax(np.abs(solution.prices)), solution.prices.shape)
        radii = np.zeros(solution.prices.shape)
        radii[place] = 1e-5
        moved = doubt.worth(model, ambiguity.with_radius(radii), "discounted")
        slope = (moved - doubt.worth(model, ambiguity, "discounted")) / 1e-5
        np.testing.assert_allclose(solution.prices[place], slope, rtol=1e-3)
        np.testing.assert_array_equal(solution.prices_less != 0, solution.prices != 0)
        assert np.isinf(solution.prices_less[place])


def test_levels_have_prices_by_the_level():
    model = doubt.model_of(np.random.default_rng(6), "discounted", weights=[0.5, 0.25, 0.25])

    def of(level):
        return drmdp.solve(model, drmdp.Reweighting(kind="cvar", level=level), tol=1e-10)

    certain = of(1.0)
    assert (certain.prices < 0).all()  # a little less than 1 is more doubt
    assert np.isneginf(certain.prices_less).all()
    np.testing.assert_allclose(
        certain.prices.sum(), model.initial @ (certain.value - of(0.9999).value) / 1e-4, rtol=1e-3
    )
    kink = of(0.75)  # two of the kernels, wherever the large one is the worst or the best
    np.testing.assert_allclose(
        kink.prices.sum(), model.initial @ (kink.value - of(0.7499).value) / 1e-4, rtol=1e-3
    )
    np.testing.assert_allclose(
        kink.prices_less.sum(), model.initial @ (of(0.7501).value - kink.value) / 1e-4, rtol=1e-3
    )
    assert (kink.prices_less < 1.001 * kink.prices).any()
    assert not of(0.2).prices.any()  # the worst kernel has it all


@pytest.mark.parametrize("minimise", [False, True])
def test_states_that_never_arrive_have_no_price(minimise):
    """From the start half goes to a trap of two states, which is left under no kernel."""
    kernel = np.zeros((5, 1, 5))
    kernel[0, 0, [1, 2, 4]] = 0.3, 0.5, 0.2
    kernel[1, 0, [0, 3, 4]] = 0.3, 0.3, 0.4
    kernel[2, 0, [2, 3]] = kernel[3, 0, [2, 3]] = 0.5
    kernel[1, 0, 2], kernel[1, 0, 3], kernel[4, 0, 4] = 0.3, 0.0, 1.0
    model = drmdp.Model(
        kernel[None], costs=np.zeros((5, 1)), discount=1.0, initial=[0.6, 0.2, 0.2, 0, 0]
    )
    radii = np.full(5, 0.05)

    def of(radii):
        return drmdp.reach(
            model, drmdp.Divergence(radii, "kl"), target=[4], minimise=minimise, tol=1e-10
        )

    solution = of(radii)
    assert not solution.prices[2:].any()
    for s in (0, 1):
        step = 1e-5 * (np.arange(5) == s)
        slope = model.initial @ (of(radii + step).value - of(radii - step).value) / 2e-5
        assert solution.prices[s] == pytest.approx(slope, rel=1e-4)
        assert slope != 0


@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_a_large_level_of_values_costs_no_digits(rectangular):
    found = []
    for level in (0.0, 1e6):
        model = doubt.model_of(np.random.default_rng(10), "discounted")
        given = {name: getattr(model, name) for name in ("weights", "initial", "available")}
        moved = drmdp.Model(model.kernels, costs=model.costs + level, discount=0.9, **given)
        found.append(
            drmdp.solve(moved, drmdp.Divergence(0.1, rectangular=rectangular), rtol=1e-15).prices
        )
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_the_unit_of_a_ground_does_not_matter():
    model = doubt.model_of(np.random.default_rng(9), "discounted")
    positions = np.array(doubt.LINE[1])
    found = [
        unit
        * drmdp.solve(
            model, drmdp.Wasserstein(unit * 0.2, "transport", ground=("line", unit * positions))
        ).prices
        for unit in (1.0, 1e-7, 1e6)
    ]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-4)
    free = [
        unit
        * drmdp.solve(
            model, drmdp.Wasserstein(0.0, "transport", ground=("line", unit * positions))
        ).prices
        for unit in (1.0, 1e-7)
    ]
    np.testing.assert_allclose(*free, rtol=1e-4)


def test_one_next_state_terminal_and_unavailable_have_no_price():
    kernel = np.zeros((1, 4, 2, 4))
    kernel[0, 0, :, 1:3] = 0.5  # two next states
    kernel[0, 1, :, 3] = 1.0  # one
    kernel[0, 2, :, [0, 3]] = 0.5
    available = np.ones((4, 2), dtype=bool)
    available[2, 1] = False
    costs = np.arange(8.0).reshape(4, 2)
    model = drmdp.Model(kernel, costs=costs, discount=0.9, terminal=[3], available=available)
    for ambiguity in (
        drmdp.Divergence(0.0, "kl", rectangular="sa"),
        drmdp.Wasserstein(0.1, rectangular="sa"),
    ):
        solution = drmdp.solve(model, ambiguity)
        assert not solution.prices[[1, 3]].any()
        assert not solution.prices[2, 1]
        assert (solution.prices[[0, 2], 0] > 0).all()


def test_a_price_is_that_of_two_sweeps_and_one_linear_system(monkeypatch):
    exact = importlib.import_module("drmdp.operators.exact")
    made = {"sweeps": 0, "systems": 0}

    def counted(kind, function):
        def call(*given):
            made[kind] += 1
            return function(*given)

        return call

    model = doubt.model_of(np.random.default_rng(4), "discounted")
    for rectangular in ("s", "sa"):
        solution = drmdp.solve(model, drmdp.Divergence(0.1, rectangular=rectangular))
        made.update(sweeps=0, systems=0)
        with monkeypatch.context() as patch:
            patch.setattr(
                exact.ExactOperator, "_sweep", counted("sweeps", exact.ExactOperator._sweep)
            )
            patch.setattr(
                prices_module.newton_systems,
                "solve",
                counted("systems", prices_module.newton_systems.solve),
            )
            prices = solution.prices
            assert made == {"sweeps": 2, "systems": 1}
            assert solution.prices is prices  # once
            assert made == {"sweeps": 2, "systems": 1}
        assert not prices.flags.writeable


def test_large_chains_give_the_same(monkeypatch):
    rows = importlib.import_module("drmdp.operators.nature_rows")
    found = []
    for dense in (rows.DENSE, 10):
        monkeypatch.setattr(rows, "DENSE", dense)
        model = drmdp.instances.perturb(
            drmdp.instances.garnet(40, 3, 5, seed=0, discount=0.95), n_kernels=3
        )
        found.append(
            [
                drmdp.solve(
                    model, drmdp.Wasserstein(0.1, support=support), criterion=criterion, tol=1e-9
                ).prices
                for support in ("observed", "all")
                for criterion in (None, "average")
            ]
        )
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize("moves", ["states", "events"])
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_events_that_cost(moves, rectangular):
    def rule(s, a, e):
        kept = np.clip(s + a - e, 0, 4)
        return kept, 2.0 * a + 5.0 * np.maximum(e - s - a, 0) + 1.0 * kept

    laws = np.random.default_rng(0).dirichlet(np.ones(4), 2)
    model = drmdp.Model.from_events(5, 3, 4, rule, laws, discount=0.9)
    ambiguity = drmdp.Divergence(0.05, rectangular=rectangular, moves=moves)
    solution = drmdp.solve(model, ambiguity, tol=1e-11)
    place = np.unravel_index(np.argmax(solution.prices), solution.prices.shape)
    left, right = doubt.differences(model, ambiguity, "discounted", place, 1e-5)
    np.testing.assert_allclose(solution.prices[place], (left + right) / 2, rtol=1e-3)


def test_a_plan_that_was_given_has_prices():
    rng = np.random.default_rng(8)
    model = doubt.model_of(rng, "horizon")
    policy = rng.dirichlet(np.ones(doubt.A - 1), (3, doubt.S))
    policy = np.concatenate([policy, np.zeros((3, doubt.S, 1))], axis=2)
    for rectangular in ("s", "sa"):
        shape = (doubt.S, doubt.A) if rectangular == "sa" else (doubt.S,)
        radii = rng.uniform(0.05, 0.1, shape)

        def worst(radii, rectangular=rectangular):
            return drmdp.evaluate(
                model, drmdp.Divergence(radii, "burg", rectangular=rectangular), policy
            )

        plan, place = worst(radii), (1, 0)[: len(shape)]
        step = np.zeros(shape)
        step[place] = 1e-5
        slope = model.initial @ (worst(radii + step).value[0] - worst(radii - step).value[0]) / 2e-5
        np.testing.assert_allclose(plan.prices.sum(axis=0)[place], slope, rtol=1e-4)


def test_what_has_no_price_says_why(tmp_path):
    model = doubt.model_of(np.random.default_rng(0), "discounted")
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
    solution.save(tmp_path / "solution.npz")
    with pytest.raises(
        drmdp.InputError, match=r"prices: a loaded solution .* solve with start=solution"
    ):
        drmdp.Solution.load(tmp_path / "solution.npz").prices  # noqa: B018
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=2)
    plan.save(tmp_path / "plan.npz")
    with pytest.raises(drmdp.InputError, match="prices: a loaded plan"):
        drmdp.HorizonSolution.load(tmp_path / "plan.npz").prices  # noqa: B018
    with pytest.raises(drmdp.InputError, match="has no radius"):
        drmdp.solve(model, drmdp.Reweighting(kind="any")).prices  # noqa: B018
    with pytest.raises(drmdp.InputError, match=r"gap, .*, is too wide"):
        drmdp.solve(model, drmdp.Wasserstein(0.1), method="value-iteration", max_iters=1).prices  # noqa: B018
    sets = [drmdp.Divergence(0.1), drmdp.Divergence(0.1, rectangular="sa")]
    with pytest.raises(drmdp.InputError, match="stage 0 and stage 1 differ"):
        drmdp.finite_horizon(model, sets, stages=2).prices  # noqa: B018


def test_prices_of_averages_per_unit_of_time():
    rng = np.random.default_rng(0)
    lasts = {"discount": 1.0, "sojourn": 0.5 + rng.random((5, 2))}
    model = drmdp.Model(
        rng.dirichlet(np.ones(5), size=(3, 5, 2)), costs=rng.random((5, 2)), **lasts
    )

    def solved(radii):
        return drmdp.solve(model, drmdp.Wasserstein(radii), criterion="average", rtol=1e-11)

    radii, step = np.full(5, 0.1), 1e-4 * np.eye(5)
    slopes = [(solved(radii + h).value[0] - solved(radii - h).value[0]) / 2e-4 for h in step]
    np.testing.assert_allclose(solved(radii).prices, slopes, rtol=1e-3)
