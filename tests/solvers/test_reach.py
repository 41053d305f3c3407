"""Probabilities of reaching a target: bounds against Storm, exact fractions, plain iteration and
linear programs, and cases that break naive methods.
"""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import drmdp
from drmdp.core.levels import ended
from drmdp.criteria.reach import Reach, model_of
from drmdp.operators.build import build
from drmdp.solvers.problem import Problem
from drmdp_lab import large, storm

STORM = json.loads(Path(__file__).with_name("storm.json").read_text())
NATURES = ("adversarial", "cooperative")


def plain(kernels, **settings):
    """A model without costs."""
    shape = np.shape(kernels)[-3:-1]
    return drmdp.Model(kernels, costs=np.zeros(shape), discount=1.0, **settings)


def between(lower, upper):
    """A kernel between bounds, (S, A, S)."""
    room = upper - lower
    return (
        lower + room * ((1 - lower.sum(axis=2)) / np.maximum(room.sum(axis=2), 1e-300))[:, :, None]
    )


def swap():
    """Two states that lead to each other at no cost, with exits of .3 and .6."""
    rows = np.zeros((4, 2, 4))
    rows[0, 0, 1] = rows[1, 0, 0] = rows[2, :, 2] = rows[3, :, 3] = 1
    rows[0, 1, 2:], rows[1, 1, 2:] = (0.3, 0.7), (0.6, 0.4)
    return plain(rows, states=["left", "right", "goal", "crash"])


# ------------------------------------------------------------------ known answers


@pytest.mark.parametrize(
    ("ambiguity", "value"),
    [
        (drmdp.Wasserstein(0.1, "l1"), 0.55),
        (drmdp.Wasserstein(0.1), 0.6 - 0.1 / np.sqrt(2)),
        (drmdp.Divergence(0.05), 0.443054),
    ],
    ids=repr,
)
def test_a_free_swap_is_worth_its_best_exit(ambiguity, value):
    found = drmdp.reach(swap(), ambiguity, "goal", "crash")
    assert found.status == "solved"
    assert found.criterion == "reach"
    np.testing.assert_allclose(found.value[:2], value, atol=1e-6)
    assert found.upper[:2].max() < value + 1e-5  # the greatest fixed point is 1
    assert found.value.tolist()[2:] == [1.0, 0.0]
    assert drmdp.reach(swap(), ambiguity, "goal", "crash", minimise=True).upper[:2].tolist() == [
        0.0,
        0.0,
    ]


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_hide_or_run_has_value_1_that_nobody_attains(tol):
    throw, wait = np.zeros((2, 3, 2, 3))
    throw[0, 0, 2] = throw[0, 1, 1] = wait[0, 0, 1] = wait[0, 1, 0] = 1  # run, or hide
    throw[1:, :, 1:] = wait[1:, :, 1:] = np.eye(2)[:, None]
    found = drmdp.reach(
        plain(np.stack([throw, wait])), drmdp.Reweighting(kind="any"), 1, 2, tol=tol
    )
    assert found.status == "solved"
    assert 1 - tol <= found.lower[0] < 1
    assert found.upper[0] == 1


def test_waiting_at_no_cost_is_not_arriving_and_going_is():
    model = plain([[[[1.0, 0], [0, 1.0]], [[0, 1.0], [0, 1.0]]]])
    found = drmdp.reach(model, drmdp.Wasserstein(0.1), 1)
    assert found.lower[0] >= 1 - 1e-6
    assert found.upper[0] == 1
    assert drmdp.reach(model, drmdp.Wasserstein(0.1), 1, minimise=True).upper[0] == 0


@pytest.mark.parametrize(("radius", "value"), [(0.7, 0.0), (0.6 - 1e-6, 1.0)])
def test_nature_can_trap_or_just_cannot(radius, value):
    found = drmdp.reach(plain([[[0.7, 0.3]], [[0.0, 1.0]]]), drmdp.Wasserstein(radius, "l1"), 1)
    assert found.lower[0] <= value <= found.upper[0]
    assert (
        found.upper[0] == value
    )  # trapped for ever, exactly; or nothing is known to be less than 1
    assert found.gap <= 1e-6 or radius < 0.6


@pytest.mark.parametrize(("others", "upper"), [(0.7, 1.0), (np.nextafter(0.7, 1), 0.0)])
def test_bounds_that_miss_1_by_less_than_a_double_can_tell_let_something_out(others, upper):
    """.3 + .7 is less than 1 by 6e-17: nature cannot stay for ever, and the target is reached in
    the end; with the next number she can.
    """
    rows = np.tile([0.3, 0.6, 0.1], (3, 1, 1))
    rows[2, 0] = 0, 0, 1
    ambiguity = drmdp.Intervals(np.zeros((3, 1, 3)), np.tile([0.3, others, 1.0], (3, 1, 1)))
    found = drmdp.reach(plain(rows), ambiguity, 2)
    assert found.lower[:2].tolist() == [0.0, 0.0]
    assert found.upper[:2].tolist() == [upper, upper]


def test_states_that_lead_nowhere_have_probability_0():
    rows = np.zeros((4, 1, 4))
    rows[0, 0] = 0.5, 0, 0.25, 0.25
    rows[1, 0, 1] = rows[2, 0, 2] = rows[3, 0, 3] = 1
    found = drmdp.reach(plain(rows), drmdp.Wasserstein(0.1, "l1"), [2])
    assert (found.lower[[1, 3]] == 0).all()
    assert (found.upper[[1, 3]] == 0).all()
    np.testing.assert_allclose(
        found.value[0], 0.25 / 0.5 - 0.1, atol=1e-6
    )  # .05 of .5 may go elsewhere


@pytest.mark.parametrize("question", ["max", "min", "min helped", "max helped"])
def test_queues_whose_probabilities_are_too_small_to_be_seen_close(question, capsys):
    """Under a light load: who does not want the second queue to be full must not idle where that
    seems impossible.
    """
    large.solve(large.world("light", 900), [question])
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "solved"
    assert told["gap"] <= 1e-6


@pytest.mark.parametrize("radius", [0.0, 0.02])
@pytest.mark.parametrize("n", [16, 24, 40, 80])
def test_nobody_gains_by_going_to_and_fro_for_very_long(n, radius):
    """A corridor with risky doors at both ends, which its middle is left from once in 19^(n/2)
    steps if nobody wants to: values tie there, and margins for rounding add up.
    """
    rows = np.zeros((n + 2, 2, n + 2))
    for s, a, slips in np.ndindex(n, 2, 2):
        t = s + (1 if (a == 1) != bool(slips) else -1)
        ways = {t: 1.0} if 0 <= t < n else {1: 0.9, n + 1: 0.1} if t < 0 else {n: 0.5, n + 1: 0.5}
        for there, share in ways.items():
            rows[s, a, there] += share * (0.05 if slips else 0.95)
    rows[n, :, n] = rows[n + 1, :, n + 1] = 1
    found = drmdp.reach(plain(rows[None]), drmdp.Wasserstein(radius, "l1"), [n], [n + 1])
    assert found.status == "solved"
    right = rows[:n, 1]
    value = np.linalg.solve(np.eye(n) - right[:, :n], right[:, n])
    if radius == 0:
        assert (found.upper[:n] >= value - 1e-12).all()
        assert (found.lower[:n] >= value - 1e-6).all()


@pytest.mark.parametrize("support", ["observed", "state", "all"])
def test_without_a_radius_nothing_moves(support):
    """One state stays, one may go to the goal; mass may be anywhere if there were a radius."""
    stay, leave = np.eye(4)[:, None], np.eye(4)[[0, 2, 2, 3]][:, None]
    model = plain(np.concatenate([stay, leave], axis=1))
    ambiguity = drmdp.Wasserstein(0.0, "l1", support=support)
    for minimise, nature in ((True, "adversarial"), (False, "cooperative")):
        found = drmdp.reach(model, ambiguity, 2, 3, minimise=minimise, nature=nature)
        assert found.status == "solved"
        assert found.upper[0] == 0
        assert found.upper[1] == (not minimise)


# ------------------------------------------------------------------ outside oracles


@pytest.mark.parametrize("seed", range(storm.COUNT))
def test_storm_is_inside(seed):
    lower, upper, _ = storm.problem("reach", seed)
    S = len(lower)
    model = plain(between(lower, upper)[None])
    for way in storm.WAYS:
        for mode, nature in storm.MODES.items():
            found = drmdp.reach(
                model,
                drmdp.Intervals(lower, upper),
                S - 1,
                S - 2,
                minimise=way == "min",
                nature=nature,
            )
            theirs = np.array(STORM[f"reach{seed:02d} {way} {mode}"])
            assert found.status == "solved"
            assert (found.lower - 1e-9 <= theirs).all()
            assert (theirs <= found.upper + 1e-9).all()


@pytest.mark.parametrize("seed", range(storm.COUNT))
def test_storm_is_inside_the_bounds_on_costs_until_the_end(seed):
    lower, upper, costs = storm.problem("cost", seed)
    for way in storm.WAYS:
        given = {"costs" if way == "min" else "rewards": costs}
        model = drmdp.Model(
            between(lower, upper)[None], discount=1.0, terminal=[len(lower) - 1], **given
        )
        for mode, nature in storm.MODES.items():
            found = drmdp.solve(model, drmdp.Intervals(lower, upper), nature=nature)
            theirs = np.array(STORM[f"cost{seed:02d} {way} {mode}"])
            near = 1e-9 * theirs.max()
            assert found.status == "solved"
            assert (found.lower - near <= theirs).all()
            assert (theirs <= found.upper + near).all()


def random_rows(rng, S, A, N=1):
    """Rows with sure moves, ties and loops; the last two states are ends."""
    rows = np.zeros((N, S, A, S))
    for s in range(S):
        for a in range(A):
            if s >= S - 2 or rng.random() < 0.25:
                rows[:, s, a, s if s >= S - 2 or rng.random() < 0.4 else rng.integers(S)] = 1
                continue
            to = rng.choice(S, min(S, rng.integers(2, 5)), replace=False)
            rows[:, s, a, to] = rng.dirichlet(np.ones(to.size), N)
    return rows


def test_without_doubt_it_is_the_linear_program():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        S, A = int(rng.integers(4, 8)), 2
        rows = random_rows(rng, S, A)[0]
        found = drmdp.reach(plain(rows[None]), drmdp.Wasserstein(0.0), S - 1, S - 2)
        live = np.arange(S) < S - 2
        left = (rows - np.eye(S)[:, None])[live].reshape(-1, S)
        box = [(0, 1)] * (S - 2) + [(0, 0), (1, 1)]
        best = linprog(np.ones(S), A_ub=left, b_ub=np.zeros(len(left)), bounds=box).x
        assert (found.lower - 1e-8 <= best).all()
        assert (best <= found.upper + 1e-8).all()
        assert found.status == "solved"


def iterated(model, ambiguity, nature, most=20_000):
    """Bellman steps from 0, which come from below, (S,)."""
    operator = build(model, ambiguity.fitted(model).facing(nature), "exact", 1)
    value = ended(model, np.zeros(model.n_states))
    for _ in range(most):
        new = ended(model, operator.update(value, 0, value.size).value)
        if np.abs(new - value).max() < 1e-14:
            break
        value = new
    return np.abs(new)


BALLS = [
    drmdp.Wasserstein(0.3, "l1"),
    drmdp.Wasserstein(0.2),
    drmdp.Wasserstein(0.2, rectangular="sa", support="all"),
    drmdp.Wasserstein(0.1, "linf"),
    drmdp.Wasserstein(0.3, "l2", order=np.inf, support="state"),
    drmdp.Divergence(0.2),
    drmdp.Divergence(0.3, "chi2", "kernels"),
    drmdp.Divergence(0.1, "burg"),
    drmdp.Divergence(0.15, "tv", rectangular="sa"),
    drmdp.Reweighting(0.3),
    drmdp.Reweighting(kind="cvar", level=0.4),
    drmdp.Reweighting(kind="any", rectangular="sa"),
    drmdp.Wasserstein(0.3, "transport", ground=("line", np.arange(6.0))),
]


@pytest.mark.parametrize(
    "ambiguity", [*BALLS, "intervals"], ids=lambda ambiguity: getattr(ambiguity, "words", ambiguity)
)
def test_every_set_against_plain_iteration(ambiguity):
    for seed in range(3):
        rng = np.random.default_rng([seed, 5])
        model = plain(random_rows(rng, 6, 2, 3))
        own = drmdp.Intervals.of(model, margin=0.1) if ambiguity == "intervals" else ambiguity
        for minimise in (False, True):
            for nature in NATURES:
                found = drmdp.reach(model, own, 5, 4, minimise=minimise, nature=nature)
                ends = np.eye(6, dtype=bool)
                near = iterated(model_of(model, ends[5], ends[4], minimise), own, nature)
                assert found.status == "solved"
                assert (near <= found.upper + 1e-10).all()
                assert (found.lower <= near + 1e-6).all()


def random_ambiguity(rng, model):
    """A set of any kind, small or large."""
    radius, share = 10.0 ** rng.uniform(-2, 0), float(rng.random())
    how = {
        "rectangular": str(rng.choice(["s", "sa"])),
        "support": str(rng.choice(["observed", "all", "state"])),
    }
    line = ("line", np.arange(float(model.n_states)))
    kind, metric = (
        str(rng.choice(["kl", "burg", "chi2", "tv"])),
        str(rng.choice(["l1", "l2", "linf"])),
    )
    mixed = {"rectangular": how["rectangular"]}
    return [
        lambda: drmdp.Wasserstein(radius, metric, **how),
        lambda: drmdp.Wasserstein(radius, metric, order=np.inf, **how),
        lambda: drmdp.Divergence(radius, kind, around=str(rng.choice(["mean", "kernels"])), **how),
        lambda: drmdp.Reweighting(radius, kind, **mixed),
        lambda: drmdp.Reweighting(kind="cvar", level=share, **mixed),
        lambda: drmdp.Reweighting(kind="any", **mixed),
        lambda: drmdp.Intervals.of(model, margin=float(rng.choice([0, 0.05, 0.1, 0.25, 0.5]))),
        lambda: drmdp.Wasserstein(radius, "transport", ground=line, **how),
    ][rng.integers(8)]()


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.fuzz) for seed in range(6, 800))]
)
def test_random_problems_are_between_their_bounds(seed):
    rng = np.random.default_rng([seed, 17])
    S, A, N = int(rng.integers(4, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    if S == A:
        A -= 1
    model = plain(random_rows(rng, S, A, N))
    ambiguity, ends = random_ambiguity(rng, model), np.eye(S, dtype=bool)
    for minimise in (False, True):
        for nature in NATURES:
            found = drmdp.reach(model, ambiguity, S - 1, S - 2, minimise=minimise, nature=nature)
            near = iterated(model_of(model, ends[S - 1], ends[S - 2], minimise), ambiguity, nature)
            assert (near <= found.upper + 1e-10).all()  # it comes from below, however long it takes
            longer = found.history[-1].gap > 1e-6 or (found.lower > near + 1e-6).any()
            assert (
                not longer
                or (
                    found.lower
                    <= iterated(
                        model_of(model, ends[S - 1], ends[S - 2], minimise),
                        ambiguity,
                        nature,
                        10**6,
                    )
                    + 1e-6
                ).all()
            )


# ------------------------------------------------------------------ certificates in fractions


def extreme(lower, upper, p, most):
    """The greatest (least) Σ y p of a row between bounds, all fractions."""
    left, total = 1 - sum(lower), sum(a * b for a, b in zip(lower, p, strict=True))
    for t in sorted(range(len(p)), key=lambda t: p[t], reverse=most):
        more = min(upper[t] - lower[t], left)
        total, left = total + more * p[t], left - more
    return total


def fractions(array):
    return [[[Fraction(x) for x in row] for row in rows] for rows in array.tolist()]


def holds(found, lower, upper, minimise, nature, low, high):
    """Whether both certificates hold, exactly, in the words of the theorem."""
    model, S = found.problem[0], len(lower)
    most = (nature == "cooperative") != minimise  # nature wants the target reached
    for s in np.flatnonzero(~model.terminal).tolist():
        near, far = (
            [
                extreme(a, b, [Fraction(x) for x in p], most)
                for a, b in zip(lower[s], upper[s], strict=True)
            ]
            for p in (low.tolist(), high.tolist())
        )
        x = [Fraction(v) for v in found.policy[s].tolist()]
        x = [v / sum(x) for v in x]
        mean, least = sum(a * b for a, b in zip(x, near, strict=True)), min(near)
        above, largest = sum(a * b for a, b in zip(x, far, strict=True)), max(far)
        strictly = least if minimise else mean
        if low[s] > 0 and not strictly > Fraction(low[s]):
            return False
        if not (above if minimise else largest) <= Fraction(high[s]):
            return False
    return S > 0


@pytest.mark.parametrize("seed", range(14))
def test_certificates_hold_in_fractions_and_mutants_do_not(seed):
    rng = np.random.default_rng([seed, 11])
    S, A = int(rng.integers(4, 8)), 2
    rows = random_rows(rng, S, A)[0]
    width = 2.0**-3 * rng.integers(0, 4, rows.shape) * (rows > 0) * (rows < 1)
    lower, upper = (
        np.maximum(np.floor(rows * 2**20) / 2**20 - width, 0),
        np.minimum(np.ceil(rows * 2**20) / 2**20 + width, 1),
    )
    lower, upper = np.where(rows > 0, lower, 0), np.where(rows > 0, upper, 0)
    exact = fractions(lower), fractions(upper)
    for minimise in (False, True):
        for nature in NATURES:
            found = drmdp.reach(
                plain(rows[None]),
                drmdp.Intervals(lower, upper),
                S - 1,
                S - 2,
                minimise=minimise,
                nature=nature,
            )
            own = exact[0], exact[1], minimise, nature
            assert holds(found, *own, found.lower, found.upper)
            live = np.flatnonzero(~found.problem[0].terminal)
            for s in live.tolist():
                higher, less = found.lower.copy(), found.upper.copy()
                higher[s] = min(found.upper[s] + 1e-3, 1.0)
                assert higher[s] == 1.0 or not holds(found, *own, higher, found.upper)
                if (
                    less[s] > 0 and (found.upper[live] == 0).any()
                ):  # else everybody may be lowered together
                    less[s] = np.nextafter(found.lower[s] - 1e-3, 0)
                    assert less[s] <= 0 or not holds(found, *own, found.lower, less)


def test_a_loop_that_costs_nothing_proves_nothing():
    """U = −1 on a state that stays where it is: F(U) = U, and it would prove that the target is
    reached.
    """
    model = model_of(
        plain([[[1.0, 0.0]], [[0.0, 1.0]]]), np.array([False, True]), np.zeros(2, bool), False
    )
    for point, proved in ((-1.0, (True, False)), (-0.5, (True, False)), (0.0, (True, True))):
        value = np.array([point, -1.0])
        update = Problem(build(model, drmdp.Wasserstein(0.0), "exact", 1)).proved(value)
        update.lower_step[0] = update.upper_step[0] = 0.0  # as it is, exactly
        assert tuple(side is not None for side in Reach(model).bounds(value, update)) == proved


def test_bounds_need_the_values_of_the_ends_and_the_box():
    model = model_of(
        plain([[[0.5, 0.5]], [[0.0, 1.0]]]), np.array([False, True]), np.zeros(2, bool), False
    )
    operator = build(model, drmdp.Wasserstein(0.0), "exact", 1)
    for value in ([-1.5, -1.0], [0.5, -1.0], [-0.5, -2.0]):
        update = Problem(operator).proved(np.array(value))
        assert Reach(model).bounds(np.array(value), update) == (None, None)


# ------------------------------------------------------------------ properties


def test_bounded_in_time_it_rises_to_the_probability():
    model, ambiguity = swap(), drmdp.Wasserstein(0.1, "l1")
    last, limit = np.zeros(4), drmdp.reach(model, ambiguity, "goal", "crash")
    for n in (1, 2, 3, 10):
        plan = drmdp.reach(model, ambiguity, "goal", "crash", within=n)
        assert plan.policy.shape[0] == n
        assert (plan.lower[0] >= last - 1e-12).all()
        assert (plan.lower[0] <= limit.upper + 1e-12).all()
        last = plan.lower[0]
    np.testing.assert_allclose(last, limit.value, atol=1e-6)


def test_more_doubt_is_never_better_and_help_never_worse():
    rng = np.random.default_rng(3)
    model = plain(random_rows(rng, 7, 2, 2))
    last = None
    for radius in (0.0, 0.05, 0.2, 0.5, 1.0):
        ambiguity = drmdp.Wasserstein(radius)
        worst, best = (drmdp.reach(model, ambiguity, 6, 5, nature=nature) for nature in NATURES)
        missed = drmdp.reach(model, ambiguity, 5, 6, minimise=True)
        assert (worst.lower <= best.upper).all()
        assert (worst.lower + missed.lower <= 1 + 1e-12).all()
        assert last is None or (worst.lower <= last.upper + 1e-12).all()
        last = worst


def test_costs_discount_and_terminal_states_of_the_model_do_not_matter():
    kernel = np.array([[[0.5, 0.2, 0.3]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    plainly = drmdp.reach(plain(kernel), drmdp.Wasserstein(0.1), 1, 2)
    other = drmdp.Model(kernel, rewards=np.ones((3, 1)), discount=0.3, terminal=[2])
    np.testing.assert_array_equal(
        drmdp.reach(other, drmdp.Wasserstein(0.1), 1).value, plainly.value
    )


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "nowhere"}, "target: unknown state 'nowhere'; known: 'left'"),
        ({"target": []}, "target: no state is given: name at least one"),
        ({"target": "goal", "avoid": ["crash", "goal"]}, "target, avoid: 'goal' cannot be both"),
        ({"target": "goal", "avoid": [True, False]}, "avoid"),
        ({"target": "goal", "minimise": "yes"}, "minimise: expected True or False, got 'yes'"),
        ({"target": "goal", "within": 0}, "within: expected a whole number of at least 1, got 0"),
        ({"target": "goal", "nature": "kind"}, "nature is 'adversarial' or 'cooperative'"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_bad_questions_are_refused(given, message):
    with pytest.raises(drmdp.InputError, match=message.replace("[", r"\[")):
        drmdp.reach(swap(), drmdp.Wasserstein(0.1), **given)
