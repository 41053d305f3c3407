"""What was asked of the criteria beyond discounted costs, test by test."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import drmdp
from criteria_cases import deck, exact_steps, grid, line, queue
from drmdp.core.levels import EPS, ended
from drmdp.criteria.reach import Reach, model_of
from drmdp.criteria.total import Total
from drmdp.model import changed
from drmdp.operators.build import build
from drmdp.solution import Status
from drmdp.solvers.problem import Problem
from drmdp_lab import storm

INF = np.inf
NATURES = ("adversarial", "cooperative")
GRID = grid()
STORM = json.loads((Path(__file__).parents[1] / "solvers" / "storm.json").read_text())


def plain(kernels, **settings):
    """A model without costs."""
    return drmdp.Model(kernels, costs=np.zeros(np.shape(kernels)[-3:-1]), discount=1.0, **settings)


def swap():
    """Two states that lead to each other at no cost, with exits of .3 and .6."""
    rows = np.zeros((4, 2, 4))
    rows[0, 0, 1] = rows[1, 0, 0] = rows[2, :, 2] = rows[3, :, 3] = 1
    rows[0, 1, 2:], rows[1, 1, 2:] = (0.3, 0.7), (0.6, 0.4)
    return plain(rows, states=["left", "right", "goal", "crash"])


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.95, 1 - 1e-9])
def test_acceptance_01_discounted_bounds_keep_their_bits(discount):
    """The formula of before criteria, operation by operation: U + λ/(1−λ) max(U − v), and its
    rounding.
    """
    model = drmdp.instances.perturb(drmdp.instances.machine(8, discount=discount), n_kernels=4)
    for ambiguity in (drmdp.Wasserstein(0.3), drmdp.Divergence(0.1), drmdp.Reweighting(0.2)):
        found = drmdp.solve(model, ambiguity, threads=1)
        value, _ = found.sweep
        step = found.sweeps[0].update
        low, high = step.lower_step, step.upper_step
        ratio = discount / (1 - discount)
        far = ratio * max(abs(float(low.min())), abs(float(high.max())))
        size = np.abs(value) + np.abs(low) + np.abs(high) + far
        most = 1 / (1 - discount) * (1 + 1e-12)
        floor, ceiling = (
            min(model.cost_range[0], 0.0) * most,
            max(model.cost_range[1], 0.0) * most,
        )
        below = value + low + ratio * float(low.min()) + -1.0 * 8 * EPS * size
        above = value + high + ratio * float(high.max()) + 1.0 * 8 * EPS * size
        np.testing.assert_array_equal(found.lower, np.maximum(below, floor))
        np.testing.assert_array_equal(found.upper, np.minimum(above, ceiling))


SETS = {
    "l1": (drmdp.Wasserstein(0.1, "l1"), 24.49400, 20.03394),
    "l2": (drmdp.Wasserstein(0.1), 26.02546, 19.06027),
    "l2 sa": (drmdp.Wasserstein(0.1, rectangular="sa"), 26.30601, 19.06027),
    "linf": (drmdp.Wasserstein(0.05, "linf"), 24.72218, 20.04482),
    "l2 inf": (drmdp.Wasserstein(0.1, "l2", INF), 26.02546, 19.14884),
    "kl": (drmdp.Divergence(0.05, "kl"), 28.09580, 18.89699),
    "chi2": (drmdp.Divergence(0.05, "chi2"), 25.68648, 19.37008),
    "burg": (drmdp.Divergence(0.02, "burg"), 25.75392, 20.02084),
    "tv": (drmdp.Divergence(0.05, "tv"), 24.49400, 20.03394),
    "reweighting kl": (drmdp.Reweighting(0.1, "kl"), 22.88984, 21.50431),
    "reweighting cvar": (drmdp.Reweighting(kind="cvar", level=0.3), 23.97763, 20.63396),
    "intervals": (drmdp.Intervals.of(GRID, 0.02), 25.94398, 19.57354),
    "transport": (
        drmdp.Wasserstein(0.05, "transport", ground=("line", list(range(100)))),
        23.01705,
        21.17351,
    ),
}


@pytest.mark.parametrize("nature", ["adversarial", "cooperative"])
@pytest.mark.parametrize("name", SETS)
def test_acceptance_02_the_26_values_of_the_grid(name, nature):
    ambiguity, *want = SETS[name]
    found = drmdp.solve(GRID, ambiguity, nature=nature, threads=1)
    assert found.status is Status.solved
    assert found.criterion == "total"
    assert found.gap <= 1e-6 * found.scale
    assert found.kernel_passes <= 10
    want = want[nature == "cooperative"]
    assert found.lower[0] - 1e-5 <= want <= found.upper[0] + 1e-5


def test_acceptance_02_total_variation_is_half_of_l1():
    one, other = (drmdp.solve(GRID, SETS[name][0], rtol=1e-9, threads=1) for name in ("l1", "tv"))
    assert (one.lower <= other.upper).all()
    assert (other.lower <= one.upper).all()


@pytest.mark.parametrize("T", [1e2, 1e4, 1e6, 1e8])
def test_acceptance_03_expected_times_of_any_length(T):
    lower, upper = np.zeros((2, 1, 2)), np.ones((2, 1, 2))
    lower[0, 0], upper[0, 0] = (0.7, 1 / T), (1 - 1 / T, 0.3)
    found = drmdp.solve(line(0.8), drmdp.Intervals(lower, upper))
    assert found.status is (Status.solved if T < 1e8 else Status.precision_limit)
    assert found.lower[0] <= T <= found.upper[0]
    assert found.time[0] >= T * (1 - 1e-12)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_acceptance_04_hide_or_run(tol):
    """Running with probability tol/2 certifies 1 − tol; nobody attains 1."""
    throw, wait = np.zeros((2, 3, 2, 3))
    throw[0, 0, 2] = throw[0, 1, 1] = wait[0, 0, 1] = wait[0, 1, 0] = 1  # run, or hide
    throw[1:, :, 1:] = wait[1:, :, 1:] = np.eye(2)[:, None]
    found = drmdp.reach(
        plain(np.stack([throw, wait])), drmdp.Reweighting(kind="any"), 1, 2, tol=tol
    )
    assert found.status is Status.solved
    assert 1 - tol <= found.lower[0] < 1
    assert found.upper[0] == 1


def test_acceptance_05_free_swap():
    found = drmdp.reach(swap(), drmdp.Wasserstein(0.1, "l1"), "goal", "crash")
    np.testing.assert_allclose(found.lower[:2], 0.55, atol=1e-6)
    assert (found.upper[:2] < 0.551).all()  # the greatest fixed point is 1


def test_acceptance_06_trap():
    model = line(0.7)
    near = drmdp.solve(model, drmdp.Wasserstein(0.6 - 1e-6, "l1"))
    assert near.status is Status.solved
    assert near.lower[0] <= 1 / (0.3 - (0.6 - 1e-6) / 2) * (1 + 1e-9)
    assert near.value[0] == pytest.approx(2e6, rel=1e-5)
    found = drmdp.solve(model, drmdp.Wasserstein(0.7, "l1"))
    assert found.status is Status.unbounded
    assert found.value.tolist() == [INF, 0.0]
    (note,) = found.notes
    assert "nature can keep the process from ending when it is in 0" in note
    assert note.endswith("up to radius 0.6 she cannot")


def test_acceptance_07_zero_cost_loop():
    """Waiting costs nothing, going costs 1: the value is that of arriving, and the loop is
    named.
    """
    K = np.zeros((1, 2, 2, 2))
    K[0, 0, 0], K[0, 0, 1], K[0, 1] = [1, 0], [0, 1], [0, 1]
    states = {"states": ["home", "goal"], "discount": 1.0, "terminal": ["goal"]}
    model = drmdp.Model(K, costs=[[0, 1], [0, 0]], **states)
    found = drmdp.solve(model, drmdp.Wasserstein(0.1))
    assert found.lower[0] <= 1 <= found.upper[0]
    assert found.gap <= 1e-6
    assert any(
        note == "waiting in 'home' costs nothing; the value is that of arriving"
        for note in found.notes
    )
    assert drmdp.reach(model, drmdp.Wasserstein(0.1), "goal").lower[0] >= 1 - 1e-6


@pytest.mark.parametrize(("first", "last"), [(0, 8), pytest.param(8, 40, marks=pytest.mark.fuzz)])
def test_acceptance_07_loops_that_cost_nothing(first, last):
    """Every state can go to a neighbour for nothing; the value is that of arriving, and the
    certificate is exact.
    """
    solved = 0
    for seed in range(first, last):
        rng = np.random.default_rng(seed)
        S = int(rng.integers(5, 12))
        mid = rng.dirichlet(np.full(S, 0.5), size=(S, 3))
        mid[..., S - 1] += 0.02
        mid /= mid.sum(axis=2, keepdims=True)
        mid[: S - 1, 2] = np.eye(S)[(np.arange(S - 1) + 1) % (S - 1)]
        low, high = (
            np.where(mid < 1, 0.7 * mid, mid),
            np.where(mid < 1, np.minimum(1.3 * mid, 1), mid),
        )
        costs = rng.integers(1, 10, size=(S, 3)) * 1.0
        costs[: S - 1, 2] = 0
        model = drmdp.Model(mid[None], costs=costs, discount=1.0, terminal=[S - 1])
        found = drmdp.solve(model, drmdp.Intervals(low, high), threads=1)
        solved += found.status is Status.solved
        assert any("costs nothing; the value is that of arriving" in note for note in found.notes)
        below, above = found.sweeps
        assert all(x is None or x >= 0 for x in exact_steps(model, low, high, below.value))
        assert all(
            x is None or x < 0
            for x in exact_steps(model, low, high, above.value, above.update.policy)
        )
    assert solved == last - first


@pytest.mark.parametrize("seed", range(0, storm.COUNT, 5))
@pytest.mark.parametrize("kind", ["reach", "cost"])
def test_acceptance_08_storm_is_inside(kind, seed):
    """Some of those that tests/solvers/test_reach.py compares."""
    lower, upper, costs = storm.problem(kind, seed)
    room, S = upper - lower, len(lower)
    mid = (
        lower + room * ((1 - lower.sum(axis=2)) / np.maximum(room.sum(axis=2), 1e-300))[:, :, None]
    )
    for way in storm.WAYS:
        for mode, nature in storm.MODES.items():
            theirs, ambiguity = (
                np.array(STORM[f"{kind}{seed:02d} {way} {mode}"]),
                drmdp.Intervals(lower, upper),
            )
            if kind == "reach":
                found = drmdp.reach(
                    plain(mid[None]), ambiguity, S - 1, minimise=way == "min", nature=nature
                )
            else:
                given = {"costs" if way == "min" else "rewards": costs}
                found = drmdp.solve(
                    drmdp.Model(mid[None], discount=1.0, terminal=[S - 1], **given),
                    ambiguity,
                    nature=nature,
                )
            near = 1e-9 * max(1.0, theirs.max())
            assert (found.lower - near <= theirs).all()
            assert (theirs <= found.upper + near).all()


@pytest.mark.parametrize(
    ("seeds", "most"),
    [(range(4), 5_000), pytest.param(range(4, 40), 250_000, marks=pytest.mark.fuzz)],
)
def test_acceptance_08_transitions_that_nature_may_kill(seeds, most):
    """Half of the lower bounds are 0, which Storm refuses; plain iteration comes from below."""
    for seed in seeds:
        lower, upper, _ = storm.problem("reach", seed)
        rng, S = np.random.default_rng(seed), len(lower)
        lower = np.where((rng.random(lower.shape) < 0.5) & (lower < 1), 0, lower)
        room = upper - lower
        mid = (
            lower
            + room * ((1 - lower.sum(axis=2)) / np.maximum(room.sum(axis=2), 1e-300))[:, :, None]
        )
        ends, model, ambiguity = (
            np.eye(S, dtype=bool),
            plain(mid[None]),
            drmdp.Intervals(lower, upper),
        )
        for minimise in (False, True):
            for nature in NATURES:
                found = drmdp.reach(
                    model, ambiguity, S - 1, S - 2, minimise=minimise, nature=nature
                )
                assert found.status is Status.solved
                seen = model_of(model, ends[S - 1], ends[S - 2], minimise)
                operator, value = (
                    build(seen, ambiguity.facing(nature), "exact", 1),
                    ended(seen, np.zeros(S)),
                )
                for _ in range(most):
                    before, value = value, ended(seen, operator.update(value, 0, S).value)
                    if np.abs(value - before).max() < 1e-15:
                        break
                assert (np.abs(value) <= found.upper + 1e-10).all()
                if np.abs(value - before).max() < 1e-15:
                    assert (found.lower <= np.abs(value) + 1e-6).all()


@pytest.mark.parametrize(
    ("first", "last"), [(0, 25), pytest.param(25, 250, marks=pytest.mark.fuzz)]
)
def test_acceptance_09_certificates_in_fractions_and_mutants(first, last):
    """Both sides of each total hold exactly. Mutants that are false in fractions are not taken: U
    lowered below its step, L raised above.
    """
    held = mutants = 0
    for seed in range(first, last):
        mid, low, high, costs = deck(seed)
        S = len(mid)
        model, ambiguity = (
            drmdp.Model(mid[None], costs=costs, discount=1.0, terminal=[S - 1]),
            drmdp.Intervals(low, high),
        )
        try:
            found = drmdp.solve(model, ambiguity, max_iters=60, threads=1)
        except drmdp.InputError:
            continue
        problem, live = (
            Problem(build(model, ambiguity, "exact", 1)),
            np.flatnonzero(~model.terminal),
        )
        for side, k in zip(found.sweeps, (0, 1), strict=True):
            if side is None or not np.isfinite((found.lower, found.upper)[k]).all():
                continue
            policy = None if k == 0 else side.update.policy
            steps = exact_steps(model, low, high, side.value, policy)
            assert all(steps[s] >= 0 if k == 0 else steps[s] < 0 for s in live)
            held += 1
            for s in live:
                value = side.value.copy()
                value[s] += float(steps[s]) * (1.5 if steps[s] else 1) + (1 - 2 * k) * 1e-3
                after = exact_steps(model, low, high, value, policy)
                fine = all(after[t] >= 0 if k == 0 else after[t] < 0 for t in live)
                proved = problem.proved(value, policy)
                assert fine or Total(model).bounds(value, proved)[k] is None
                mutants += not fine
    assert held >= last - first
    assert mutants >= last - first


def test_acceptance_09_a_self_loop_proves_nothing():
    """U = −1 on a state that stays where it is at no cost: F(U) = U, which is no proof of a total,
    nor of a probability.
    """
    model = model_of(
        plain([[[1.0, 0.0]], [[0.0, 1.0]]]), np.array([False, True]), np.zeros(2, bool), False
    )
    total = drmdp.Model(
        [[[1.0, 0.0]], [[0.0, 1.0]]], costs=[[0.0], [0.0]], discount=1.0, terminal={1: -1.0}
    )
    for own, criterion in ((model, Reach(model)), (total, Total(total))):
        value = np.array([-1.0, -1.0])
        update = Problem(build(own, drmdp.Wasserstein(0.0), "exact", 1)).proved(value)
        update.lower_step[0] = update.upper_step[0] = 0.0  # as it is, exactly
        assert criterion.bounds(value, update)[1] is None


def test_acceptance_09_a_plateau_one_float_lower_is_no_bound():
    found = drmdp.reach(swap(), drmdp.Wasserstein(0.1, "l1"), "goal", "crash")
    top = float(found.upper[0])
    assert found.upper[:2].tolist() == [top, top]  # rule E: one number, bit for bit
    model = found.problem[0]
    lower = np.array(
        [-np.nextafter(top, 0), -top, -1.0, 0.0]
    )  # as costs: left claims more than right has
    update = Problem(build(model, drmdp.Wasserstein(0.1, "l1"), "exact", 1)).proved(lower)
    assert Fraction(float(lower[0])) > Fraction(-top)
    assert Reach(model).bounds(lower, update)[0] is None


MACHINE = drmdp.instances.perturb(drmdp.instances.machine(20), n_kernels=5, same_support=True)


@pytest.mark.parametrize(
    ("model", "ambiguity", "want"),
    [
        (MACHINE, drmdp.Wasserstein(0.05), 0.34210435),
        (queue(), drmdp.Wasserstein(0.05), 1.952506303),
        (queue(), drmdp.Divergence(0.02, "kl"), 2.49361738),
        (queue(100), drmdp.Wasserstein(0.05), 1.952506325),
    ],
)
def test_acceptance_10_known_gains(model, ambiguity, want):
    found = drmdp.solve(model, ambiguity, criterion="average", tol=1e-6, threads=1)
    assert found.status is Status.solved
    assert found.kernel_passes <= 10
    assert found.lower[0] - 1e-7 <= want <= found.upper[0] + 1e-7
    assert np.ptp(found.value) == np.ptp(found.lower) == 0
    assert any("is not used" in note for note in found.notes)


def test_acceptance_10_every_h_brackets_the_gain():
    model, ambiguity = changed(queue(12), discount=1.0), drmdp.Divergence(0.02, "kl")
    found = drmdp.solve(model, ambiguity, criterion="average", tol=1e-9)
    problem = Problem(build(model, ambiguity, "exact", 1))
    rng = np.random.default_rng(1)
    for h in (found.bias, *rng.normal(size=(20, 12)) * 10 ** rng.uniform(-2, 3, size=(20, 1))):
        step = problem.proved(h)
        assert step.lower_step.min() <= found.upper[0]
        assert step.upper_step.max() >= found.lower[0]
    assert problem.proved(found.bias).upper_step.max() <= found.upper[0] + 1e-12


def test_acceptance_10_a_discount_near_1_is_near():
    model, ambiguity = queue(12), drmdp.Wasserstein(0.05)
    found = drmdp.solve(model, ambiguity, criterion="average", tol=1e-8)
    near = drmdp.solve(changed(model, discount=1 - 1e-7), ambiguity)
    assert abs((1e-7 * near.value - found.value).max()) <= 1e-7 * np.ptp(near.value) + 1e-6


def test_acceptance_10_gains_that_differ():
    K = np.zeros((1, 3, 1, 3))
    K[0, 0, 0], K[0, 1, 0], K[0, 2, 0] = [0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]
    found = drmdp.solve(
        drmdp.Model(K, costs=[0.5, 0, 1], discount=0.9), drmdp.Wasserstein(0.1), criterion="average"
    )
    assert found.status is Status.precision_limit
    np.testing.assert_allclose([found.lower[0], found.upper[0]], [0, 1], atol=1e-12)
    assert "may differ between states" in found.notes[-1]


def test_acceptance_11_bounded_in_time_it_rises_to_the_probability():
    model, ambiguity = swap(), drmdp.Wasserstein(0.1, "l1")
    last, limit = np.zeros(4), drmdp.reach(model, ambiguity, "goal", "crash")
    for n in (1, 2, 3, 10):
        plan = drmdp.reach(model, ambiguity, "goal", "crash", within=n)
        assert (last - 1e-12 <= plan.lower[0]).all()
        assert (plan.lower[0] <= limit.upper + 1e-12).all()
        last = plan.lower[0]
    np.testing.assert_allclose(last, limit.value, atol=1e-6)


def test_acceptance_11_a_plan_has_the_values_of_terminal_states():
    K = np.zeros((1, 3, 1, 3))
    K[0, 0, 0] = [0.5, 0.3, 0.2]
    model = drmdp.Model(K, costs=[1.0, 0.0, 0.0], discount=1.0, terminal={1: 10.0, 2: 5.0})
    total, before = drmdp.solve(model, drmdp.Wasserstein(0.1), rtol=1e-9), -INF
    for n in (1, 4, 16, 64):
        plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), n)
        assert before - 1e-12 <= plan.lower[0, 0] <= total.upper[0]
        before = plan.lower[0, 0]
    assert before >= total.lower[0] * (1 - 1e-9)


def test_acceptance_12_properties():
    """reach + avoid ≤ 1; a nature that helps is never worse; more doubt never better; without doubt
    the linear program's value.
    """
    for seed in range(4):
        rng = np.random.default_rng([seed, 12])
        S, A = 6, 2
        rows = rng.dirichlet(np.full(S, 0.4), (2, S, A))
        model, last = plain(rows), None
        for radius in (0.0, 0.1, 0.4, 1.0):
            ambiguity = drmdp.Wasserstein(radius)
            worst, best = (
                drmdp.reach(model, ambiguity, S - 1, S - 2, nature=nature) for nature in NATURES
            )
            other = drmdp.reach(model, ambiguity, S - 2, S - 1, minimise=True)
            assert (worst.lower <= best.upper).all()
            assert (worst.lower + other.lower <= 1 + 1e-12).all()
            assert last is None or (worst.lower <= last.upper + 1e-12).all()
            last = worst
            if radius == 0:
                left = (rows.mean(axis=0) - np.eye(S)[:, None])[: S - 2].reshape(-1, S)
                box = [(0, 1)] * (S - 2) + [(0, 0), (1, 1)]
                want = linprog(np.ones(S), A_ub=left, b_ub=np.zeros(len(left)), bounds=box).x
                np.testing.assert_allclose(worst.value, want, atol=1e-6)
