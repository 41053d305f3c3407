"""Bounds hold whatever the witness, and to the last digit: against `reference`, and exactly against
`rational`.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import cases
import drmdp
import rational
import reference
from drmdp.certificate import FixedKernel, RobustProver
from drmdp.certificate import dense as certificate
from drmdp.certificate.dense import KernelWitness
from drmdp.core import levels, vectors
from drmdp.criteria.discounted import bounds
from drmdp.layout.memory import SweepMemory
from drmdp.operators.conic.operator import ConicOperator
from drmdp.operators.nominal import NominalOperator
from drmdp.sets import PAIRS
from drmdp.solvers.problem import Problem

EVERY_PAIR = pytest.mark.parametrize(
    "pair", PAIRS, ids=[f"{metric}-{order:g}" for metric, order in PAIRS]
)
OFTEN = [pytest.param(6, 1, id="few"), pytest.param(100, 2, id="many", marks=pytest.mark.fuzz)]
CONIC = {
    name: method(backend="conic") for name, method in drmdp.METHODS.items() if name != "first-order"
}
"""First-order has a file of its own."""


# ---------------------------------------------------------------------- witnesses


def nominal(model):
    """ŷ of the kernels with positive weight, (S, A, N, S)."""
    return reference.dense_kernels(model)[model.weights > 0].transpose(1, 2, 0, 3)


def random_policy(rng, model):
    """Draw a policy with pure and with mixed rows."""
    x = np.where(model.available, rng.random(model.available.shape), 0)
    x *= (rng.random(x.shape) < 0.7) | (x == x.max(axis=1, keepdims=True))
    return np.divide(x, x.sum(axis=1, keepdims=True), out=np.zeros_like(x), where=model.available)


def soiled(rng, array, *dirt):
    """Replace no, some or all of the numbers by dirt."""
    return np.where(
        rng.random(array.shape) < rng.choice([0, 0.2, 1]), rng.choice(dirt, array.shape), array
    )


def wrong_witness(rng, model, ambiguity, value):
    """Draw a policy, and a witness that no solver stands behind."""
    S, y = model.n_states, nominal(model)
    policy, good = good_witness(model, ambiguity, value, random_policy(rng, model))
    if rng.random() < 0.5:  # nearly right is more dangerous than all wrong
        off = 10 ** rng.uniform(-12, -1)
        noise = [1 + off * rng.standard_normal(x.shape) for x in (good.kernels, *good.memory)]
        memory = SweepMemory(
            *(part * own for part, own in zip(noise[1:], good.memory, strict=True))
        )
        return policy, KernelWitness(y + noise[0] * (good.kernels - y), memory)
    size = np.abs(model.cost_range).max() + np.abs(value).max() + 1e-300
    dirt = 0.0, -1.0, size, -size, np.nan, np.inf, -np.inf, 1e-300, 1e150, -1e300
    memory = SweepMemory(
        *(soiled(rng, rng.standard_normal(part.shape), *dirt) for part in good.memory)
    )
    kernels = y + 10 ** rng.uniform(-6, 0) * (rng.dirichlet(np.ones(S), y.shape[:3]) - y)
    kernels = soiled(rng, kernels, 0.0, 0.0, -1.0, 0.3, 2.0, np.nan, np.inf, -np.inf, 5e-324, 1e308)
    return policy, KernelWitness(kernels, memory)


def good_witness(model, ambiguity, value, policy=None):
    """Return a policy and what the conic operator hands over for it."""
    operator, S = ConicOperator(model, ambiguity), model.n_states
    found = (
        operator.update(value, 0, S) if policy is None else operator.evaluate(value, policy, 0, S)
    )
    return found.policy, found.claim


def derive(model, ambiguity, value, claim, fixed=False):
    """Bounds on the step, and the mean kernel."""
    proof = RobustProver(model, ambiguity, 1).prove(value, *claim, fixed)
    return proof.lower_step, proof.upper_step, proof.kernel


def proved(model, ambiguity, value):
    """A conic sweep with its bounds proved."""
    return Problem(ConicOperator(model, ambiguity)).proved(value)


# ---------------------------------------------------------------------- one sweep, any witness


def enclosure(model, ambiguity, value, policy=None):
    """Return what the reference proves of F(v), or of F^x(v), from below and above, up to
    rounding.
    """
    rows = [None] * model.n_states if policy is None else policy
    answers = [reference.solve_state(model, ambiguity, value, s, x) for s, x in enumerate(rows)]
    middle = np.array([answer.value for answer in answers])
    off = np.array([answer.gap for answer in answers]) / 2 + reference.tolerance(
        model, ambiguity, value, 1e-14, policy
    )
    return middle - off, middle + off


@EVERY_PAIR
@pytest.mark.parametrize(("n", "seed"), OFTEN)
def test_bounds_hold_for_any_witness(pair, n, seed):
    rng = np.random.default_rng(seed)
    for name, model, ambiguity, value in cases.cases(pair, n, seed):
        _, most = enclosure(model, ambiguity, value)
        for _ in range(2):
            witness = wrong_witness(rng, model, ambiguity, value)
            low, high, mean = derive(model, ambiguity, value, witness)
            low_fixed, high_fixed, _ = derive(model, ambiguity, value, witness, fixed=True)
            least_fixed, most_fixed = enclosure(model, ambiguity, value, witness[0])
            assert np.all(np.isfinite([low, high, low_fixed, high_fixed])), name
            assert np.all(value + low <= most), name
            assert np.all(value + low_fixed <= most_fixed), name
            assert np.all(value + high >= least_fixed), name
            assert np.array_equal(high, high_fixed)
            assert np.all(mean >= 0), name
            assert np.all(mean[~reference.support(model, ambiguity)] == 0), name
            assert np.abs(mean.sum(axis=2) - model.available).max() < 1e-14, name


@EVERY_PAIR
@pytest.mark.parametrize("n", [20, pytest.param(60, marks=pytest.mark.fuzz)])
def test_kernels_are_brought_into_the_ambiguity(pair, n):
    rng = np.random.default_rng(3)
    for name, model, ambiguity, value in cases.cases(pair, n, seed=3):
        data = certificate.block(model, ambiguity, value, 0, model.n_states)
        kernels = wrong_witness(rng, model, ambiguity, value)[1].kernels
        y = certificate.feasible(ambiguity, data, kernels)
        assert reference.violation(model, ambiguity, as_tuple(model, y)).max() < 4e-15, name
        # what is inside stays as it is, up to the room that rounding takes
        assert np.abs(certificate.feasible(ambiguity, data, y) - y).max() < 1e-13, name


def as_tuple(model, y):
    """(N, S, A, S) from kernels (S, A, N, S) of positive weight."""
    kernels = reference.dense_kernels(model).copy()
    kernels[model.weights > 0] = y.transpose(2, 0, 1, 3)
    return kernels


def moderate(pair, seed=0):
    """Return a problem, and a value at which both players have something to decide in every
    state.
    """
    model = drmdp.instances.perturb(drmdp.instances.garnet(5, 3, 0.6, seed, discount=0.9), 3, seed)
    radius = 0.3 * drmdp.Wasserstein(1, *pair, support="all").saturation(model).mean()
    return (
        model,
        drmdp.Wasserstein(radius, *pair, support="all"),
        np.random.default_rng(seed).uniform(0, 10, 5),
    )


SLIPS = {
    "kernel": (lambda x, y, yhat: (x, yhat + (1 + 1e-6) * (y - yhat)), 1e-4),
    "sums": (lambda x, y, yhat: (x, 3 * y), 1e-9),
    "policy": (lambda x, y, yhat: ((1 - 1e-6) * x + 1e-6 / 3, y), 1e-4),
}
"""How a good claim goes wrong, and by how much that widens the bounds at most, for stakes between 0
and 20.
"""


@EVERY_PAIR
@pytest.mark.parametrize("slip", SLIPS)
def test_a_witness_slightly_wrong_costs_little(pair, slip):
    change, most = SLIPS[slip]
    for seed in range(3):
        model, ambiguity, value = moderate(pair, seed)
        good = good_witness(model, ambiguity, value)
        low, high, _ = derive(model, ambiguity, value, good)
        width = (high - low).max()
        assert width < 1e-8
        policy, kernels = change(good[0], good[1].kernels, nominal(model))
        slipped_low, slipped_high, _ = derive(
            model, ambiguity, value, (policy, good[1]._replace(kernels=kernels))
        )
        assert np.all(slipped_low <= low + width)
        assert np.all(slipped_high >= high - width)
        assert np.all(slipped_high - slipped_low <= width + most)


@EVERY_PAIR
def test_a_bad_policy_of_a_program_widens_and_does_not_falsify(pair, monkeypatch):
    """The bound from above is that of the policy, whoever made it; the one from below is that of
    the kernels alone.
    """
    rng = np.random.default_rng(7)
    model, ambiguity, value = moderate(pair, 1)
    good, solve = proved(model, ambiguity, value), ConicOperator._solve
    monkeypatch.setattr(
        ConicOperator,
        "_solve",
        lambda *given: (rng.permutation(solve(*given)[0]), solve(*given)[1]),
    )
    bad = proved(model, ambiguity, value)
    least = enclosure(model, ambiguity, value, bad.policy)[0]
    assert np.abs(bad.lower_step - good.lower_step).max() < 1e-9
    assert np.all(value + bad.upper_step >= least)
    assert np.all(bad.upper_step >= good.lower_step)
    assert np.max(bad.upper_step - good.upper_step) > 1e-3


@EVERY_PAIR
def test_kernels_of_a_program_outside_of_the_ambiguity_are_pulled_in(pair, monkeypatch):
    """Nature goes twice as far as she may."""
    model, ambiguity, value = moderate(pair, 1)
    good, solve, y = proved(model, ambiguity, value), ConicOperator._solve, nominal(model)

    def too_far(self, s, own, *given):
        share, kernels = solve(self, s, own, *given)
        return share, y[s, own] + 2 * (kernels - y[s, own])

    monkeypatch.setattr(ConicOperator, "_solve", too_far)
    bad = proved(model, ambiguity, value)
    data = certificate.block(model, ambiguity, value, 0, model.n_states)
    inside = certificate.feasible(ambiguity, data, bad.claim.kernels)
    assert (
        reference.violation(model, ambiguity, as_tuple(model, bad.claim.kernels)).max()
        > 0.1 * ambiguity.radius
    )
    assert reference.violation(model, ambiguity, as_tuple(model, inside)).max() < 4e-15
    assert np.all(value + bad.lower_step <= enclosure(model, ambiguity, value)[1])
    assert np.abs(bad.upper_step - good.upper_step).max() < 1e-9


@EVERY_PAIR
def test_the_kernel_of_a_best_response_widens_and_does_not_falsify(pair):
    widened = 0
    for seed in range(4):
        model, ambiguity, value = moderate(pair, seed)
        policy, good = good_witness(model, ambiguity, value)
        low, high, _ = derive(model, ambiguity, value, (policy, good))
        worst = np.eye(3)[
            np.argmax(policy, axis=1)
        ]  # a response to the policy itself may be the saddle kernel
        _, response = good_witness(model, ambiguity, value, worst)
        mixed = policy, good._replace(kernels=response.kernels)
        wide_low, wide_high, _ = derive(model, ambiguity, value, mixed)
        assert np.all(wide_low <= high)
        assert np.array_equal(wide_high, high)
        widened += np.sum(wide_low < low - 1e-3)
    assert widened >= 5


# ---------------------------------------------------------------------- the last digit


def releveled(model, scale, level, rng):
    """Keep the kernels and change the costs: scaled, lifted, and with digits to the end."""
    costs = model.costs
    if sparse.issparse(costs):
        costs = costs.copy()
        costs.data = scale * (costs.data + 1e-3 * rng.standard_normal(costs.data.size)) + level
    else:
        costs = scale * (costs + 1e-3 * rng.standard_normal(costs.shape)) + level
    settings = {
        name: getattr(model, name) for name in ("discount", "weights", "available", "terminal")
    }
    return drmdp.Model(model.kernels, costs=costs, **settings)


def encloses(value, low, exact, high):
    """Whether L − v ≤ F(v) − v ≤ U − v, as rationals."""
    return all(
        Fraction(a) <= f - Fraction(v) <= Fraction(b)
        for v, a, f, b in zip(value.tolist(), low.tolist(), exact, high.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("scale", "cost_level", "value_level"),
    [
        (1, 0, 0),
        (1e9, 0, 0),
        (1e-9, 0, 0),
        (1, 1e12, 0),
        (1, 0, 1e12),
        (1, 1e9, 1e12),
        (1e9, 1e12, -1e15),
    ],
    ids=["plain", "large", "small", "cost-level", "value-level", "both", "all"],
)
@pytest.mark.parametrize(
    ("n", "seed"), [(12, 11), pytest.param(400, 12, id="many", marks=pytest.mark.fuzz)]
)
def test_steps_enclose_the_exact_one(scale, cost_level, value_level, n, seed):
    rng = np.random.default_rng(seed)
    for name, base, ambiguity in rational.cases(n, seed):
        model, S = releveled(base, scale, cost_level, rng), base.n_states
        value = np.where(model.terminal, 0, value_level + scale * rng.standard_normal(S))
        exact = rational.bellman(model, ambiguity, [Fraction(v) for v in value])
        update = proved(model, ambiguity, value)
        assert encloses(value, update.lower_step, exact, update.upper_step), name
        for _ in range(4):
            low, high, _ = derive(
                model, ambiguity, value, wrong_witness(rng, model, ambiguity, value)
            )
            assert encloses(value, low, exact, high), name
        step = drmdp.bellman(model, ambiguity, value, "conic")
        assert encloses(0 * value, step.lower, exact, step.upper), name
        still = drmdp.Wasserstein(0, *ambiguity.pair, ambiguity.support)
        exact = rational.bellman(model, still, [Fraction(v) for v in value])
        mean = np.tensordot(model.weights, reference.dense_kernels(model), axes=1)
        update = NominalOperator(model, mean).update(value, 0, S)
        assert encloses(value, update.lower_step, exact, update.upper_step), name


def test_nominal_steps_enclose_the_exact_one_where_actions_tie():
    """Action 1 has large costs that cancel; action 0 costs the same, as far as floats can tell."""
    rng = np.random.default_rng(0)
    kernel = np.array([[[0.25, 0.75], [0.25, 0.75]], [[1, 0], [1, 0]]])
    for _ in range(50):
        value, large = rng.standard_normal(2), 10.0 ** rng.integers(3, 10)
        costs = np.zeros((2, 2, 2))
        costs[0, 1] = 3 * large * (1 + 1e-9 * rng.random()), -large
        model = drmdp.Model(kernel[None], costs=costs, discount=0.5)
        step = NominalOperator(model, kernel).evaluate(
            value, np.array([[0.0, 1.0], [0.0, 1.0]]), 0, 2
        )
        costs[0, 0] = step.value[0] - 0.5 * kernel[0, 0] @ value
        model = drmdp.Model(kernel[None], costs=costs, discount=0.5)
        exact = rational.bellman(
            model, drmdp.Wasserstein(0, "l1", 1, support="all"), [Fraction(v) for v in value]
        )
        update = NominalOperator(model, kernel).update(value, 0, 2)
        assert encloses(value, update.lower_step, exact, update.upper_step)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("shape", [(1, 40, 1), (3, 30, 2), (40, 2, 1), (2, 3, 20)], ids=str)
def test_rows_and_weights_count_as_divided_by_their_sums(shape, sign):
    """The model keeps rows that miss 1 by what rounding explains; all of them miss it to the same
    side here.
    """
    rng = np.random.default_rng(0)
    N, S, A = shape
    kernels = rng.dirichlet(np.ones(S), (N, S, A)) * (1 + sign * 2 * S * levels.EPS)
    weights = rng.dirichlet(np.ones(N)) * (1 + sign * 2 * N * levels.EPS)
    costs, value = rng.standard_normal((S, A)), 5 * rng.standard_normal(S)
    model = drmdp.Model(kernels, costs=costs, discount=0.9, weights=weights)
    assert np.array_equal(model.kernels, kernels)
    assert np.array_equal(model.weights, weights)
    w = [Fraction(x) / sum(map(Fraction, weights)) for x in weights]
    v = [Fraction(x) for x in value]

    def future(s, a):
        rows = [[Fraction(p) for p in kernels[i, s, a]] for i in range(N)]
        means = [sum(p * x for p, x in zip(row, v, strict=True)) / sum(row) for row in rows]
        return sum(own * mean for own, mean in zip(w, means, strict=True))

    nominally = [
        min(Fraction(costs[s, a]) + Fraction(0.9) * future(s, a) for a in range(A))
        for s in range(S)
    ]
    freely = [Fraction(costs[s].min()) + Fraction(0.9) * max(v) for s in range(S)]
    for pair in PAIRS:
        for radius, exact in ((0, nominally), (99, freely)):
            update = proved(model, drmdp.Wasserstein(radius, *pair, support="all"), value)
            assert encloses(value, update.lower_step, exact, update.upper_step)
            assert (update.upper_step - update.lower_step).max() < (1e-8 if radius else 1e-11)
    update = NominalOperator(model, model.mean_kernel).update(value, 0, S)
    assert encloses(value, update.lower_step, nominally, update.upper_step)


def test_a_common_level_of_the_values_costs_no_digits():
    model, ambiguity, value = moderate(("l2", 2))
    low, high, _ = derive(model, ambiguity, value, good_witness(model, ambiguity, value))
    lifted = value + 2.0**40
    low_lifted, high_lifted, _ = derive(
        model, ambiguity, lifted, good_witness(model, ambiguity, lifted)
    )
    drop = (1 - model.discount) * 2.0**40
    assert np.abs(low_lifted + drop - low).max() < 1e-3  # of 1e11: what the value itself can hold
    assert (high_lifted - low_lifted).max() <= (high - low).max() + 4e-15 * drop


def test_bounds_on_fixed_points_are_rounded_outwards():
    rng = np.random.default_rng(0)
    for _ in range(300):
        S, discount = rng.integers(1, 6), rng.choice([0, 0.3, 0.9, 0.999, 1 - 2.0**-40])
        value = (rng.standard_normal(S) + rng.choice([0, 1e9])) * 10.0 ** rng.integers(-9, 9)
        low = -np.abs(rng.standard_normal(S)) * 10.0 ** rng.integers(-12, 12) + rng.choice([0, 3.7])
        high = low + np.abs(rng.standard_normal(S)) * 10.0 ** rng.integers(-12, 6)
        terminal = np.arange(S) < rng.integers(0, 2)
        value[terminal] = low[terminal] = high[terminal] = 0
        found = bounds(value, low, high, discount, terminal)
        ratio = Fraction(discount) / (1 - Fraction(discount))
        for s in range(S):
            v = Fraction(value[s])
            below = 0 if terminal[s] else v + Fraction(low[s]) + ratio * Fraction(low.min())
            above = 0 if terminal[s] else v + Fraction(high[s]) + ratio * Fraction(high.max())
            assert not terminal[s] or found.lower[s] == found.upper[s] == 0
            assert Fraction(found.lower[s]) <= below
            assert Fraction(found.upper[s]) >= above
        assert found.gap == (found.upper - found.lower).max()


# ---------------------------------------------------------------------- whole problems


def in_costs(model, found):
    """(lower, upper) in the sign of the inside."""
    return (-found.upper, -found.lower) if model.maximise else (found.lower, found.upper)


def holds(model, found, exact):
    """Whether lower ≤ v* ≤ upper as rationals, v* in costs and given by its enclosure."""
    lower, upper = in_costs(model, found)
    return all(
        Fraction(a) <= most and Fraction(b) >= least
        for a, b, least, most in zip(lower.tolist(), upper.tolist(), *exact, strict=True)
    )


def pure(model, policy):
    """Leave only the actions of a deterministic policy: the optimum of this model is the policy's
    value.
    """
    given = -model.costs if model.maximise else model.costs
    settings = {name: getattr(model, name) for name in ("discount", "weights", "terminal")}
    name = "rewards" if model.maximise else "costs"
    return drmdp.Model(model.kernels, **{name: given}, available=policy > 0, **settings)


@pytest.mark.parametrize("method", CONIC)
def test_solutions_hold_the_exact_optimum(method):
    """Each of twenty cases by one method in turn; by all of them in `make fuzz`."""
    for name, model, ambiguity in list(rational.cases(20, seed=21))[
        list(CONIC).index(method) :: len(CONIC)
    ]:
        check_exactly(name, model, ambiguity, CONIC[method])


@pytest.mark.fuzz
@pytest.mark.parametrize("method", CONIC)
def test_solutions_hold_the_exact_optimum_often(method):
    for name, model, ambiguity in rational.cases(300, seed=22):
        check_exactly(name, model, ambiguity, CONIC[method])


def check_exactly(name, model, ambiguity, method):
    exact = rational.optimum(model, ambiguity)
    rng = np.random.default_rng(model.n_states)
    for limit in (1, 60):
        solution = drmdp.solve(model, ambiguity, method, tol=1e-9, max_iters=limit)
        assert holds(model, solution, exact), name
    usual = drmdp.solve(
        model, ambiguity, type(method)(), tol=1e-9, max_iters=60
    )  # whatever the backend is
    assert holds(model, usual, exact), name
    certified = drmdp.certify(model, ambiguity, solution.policy, solution.kernel, backend="conic")
    assert holds(model, certified, exact), name
    anything = drmdp.certify(
        model,
        ambiguity,
        random_policy(rng, model),
        rng.random(solution.kernel.shape),
        backend="conic",
    )
    assert holds(model, anything, exact), name
    policy = np.eye(model.n_actions)[random_policy(rng, model).argmax(axis=1)] * model.available
    worst = drmdp.evaluate(model, ambiguity, policy, backend="conic")
    if ambiguity.support != "state":  # which is that of all actions
        assert holds(model, worst, rational.optimum(pure(model, policy), ambiguity)), name


@EVERY_PAIR
@pytest.mark.parametrize(
    ("n", "seed"),
    [pytest.param(6, 31, id="few"), pytest.param(167, 32, id="many", marks=pytest.mark.fuzz)],
)
def test_bounds_are_proved_by_the_reference(pair, n, seed):
    """F(w) ≤ w proves v* ≤ w, and F(w) ≥ w proves v* ≥ w: the bounds must be such w, says the
    reference.
    """
    for name, model, ambiguity, value in cases.cases(pair, n, seed):
        tol = 1e-6 * max(np.abs(model.cost_range).max(), 1e-300) / (1 - model.discount)
        solution = drmdp.solve(model, ambiguity, CONIC["policy-iteration"], tol=tol)
        other = drmdp.solve(
            model, ambiguity, CONIC["value-iteration"], tol=tol, max_iters=0, start=-value
        )
        assert solution.status == "solved", name
        assert np.all(solution.lower <= other.upper), name
        assert np.all(other.lower <= solution.upper), name
        lower, upper = in_costs(model, solution)
        assert np.all(enclosure(model, ambiguity, upper)[0] <= upper), name
        assert np.all(enclosure(model, ambiguity, lower)[1] >= lower), name


# ---------------------------------------------------------------------- certify


@EVERY_PAIR
@pytest.mark.parametrize("n", [4, pytest.param(9, marks=pytest.mark.fuzz)])
def test_certify_confirms_a_solution(pair, n):
    for name, model, ambiguity, _ in cases.cases(pair, n, seed=41):
        size = max(np.abs(model.cost_range).max(), 1e-300) / (1 - model.discount)
        solution = drmdp.solve(model, ambiguity, CONIC["policy-iteration"], tol=1e-6 * size)
        found = drmdp.certify(model, ambiguity, solution.policy, solution.kernel, backend="conic")
        assert found.gap <= 10 * solution.gap + 1e-7 * size, name
        assert np.all(found.lower <= solution.upper), name
        assert np.all(found.upper >= solution.lower), name
        assert found.gap == (found.upper - found.lower).max()
        assert found.duality_gap == pytest.approx(
            model.initial @ (found.upper - found.lower), rel=1e-12
        )


@EVERY_PAIR
@pytest.mark.parametrize("n", [1, pytest.param(3, marks=pytest.mark.fuzz)])
def test_certify_believes_nobody(pair, n):
    rng = np.random.default_rng(5)
    for name, model, ambiguity, _ in cases.cases(pair, n, seed=42):
        size = max(np.abs(model.cost_range).max(), 1e-300) / (1 - model.discount)
        solution = drmdp.solve(model, ambiguity, CONIC["policy-iteration"], tol=1e-7 * size)
        for shape in [(), (model.n_kernels,)]:
            y = rng.dirichlet(np.ones(model.n_states), (*shape, model.n_states, model.n_actions))
            for kernel in (rng.random() * y, rng.standard_normal(y.shape), 0 * y, 1e308 * y):
                found = drmdp.certify(
                    model, ambiguity, random_policy(rng, model), kernel, backend="conic"
                )
                assert np.all(found.lower <= solution.upper), name
                assert np.all(found.upper >= solution.lower), name
                assert np.all(np.isfinite([found.lower, found.upper])), name


@pytest.mark.parametrize("pair", [("l1", 1), ("l2", 2), ("linf", np.inf)], ids=str)
def test_a_best_response_certifies_less_than_the_saddle_kernel(pair):
    model, ambiguity, _ = moderate(pair, seed=3)
    solution = drmdp.solve(model, ambiguity, CONIC["policy-iteration"], tol=1e-8)
    response = drmdp.evaluate(model, ambiguity, solution.policy, backend="conic")
    saddle = drmdp.certify(model, ambiguity, solution.policy, solution.kernel, backend="conic")
    found = drmdp.certify(model, ambiguity, solution.policy, response.kernel, backend="conic")
    assert np.all(found.lower <= solution.upper)
    assert np.abs(found.upper - saddle.upper).max() < 1e-7
    assert saddle.gap < 1e-6
    assert found.gap > 1e-2


def test_the_duality_gap_is_weighted_by_the_start():
    model, ambiguity, _ = moderate(("l1", 1))
    start = np.array([0.5, 0.25, 0.25, 0, 0])
    moved = drmdp.Model(model.kernels, costs=model.costs, discount=model.discount, initial=start)
    found = drmdp.certify(moved, ambiguity, np.zeros(5), moved.mean_kernel, backend="conic")
    assert found.duality_gap == pytest.approx(start @ (found.upper - found.lower))
    # by hand: (DG) = max_y p0·V^{x,y} − min_x p0·V^{x,y}, the second here nominal
    worst = drmdp.evaluate(moved, ambiguity, np.zeros(5), backend="conic").value
    best = drmdp.solve(
        moved, drmdp.Wasserstein(0, support="all"), CONIC["policy-iteration"], tol=1e-9
    ).value
    assert found.duality_gap == pytest.approx(start @ (worst - best), abs=1e-5)
    assert found.duality_gap > 1


@pytest.mark.parametrize(
    ("policy", "kernel", "message"),
    [
        (np.full((5, 3), 0.5), np.zeros((5, 3, 5)), "policy: state 0 sums to 1.5"),
        (np.full(5, 3), np.zeros((5, 3, 5)), "expected action numbers 0 … 2"),
        (np.zeros(5), np.zeros((5, 3, 4)), "kernel: expected shape"),
        (np.zeros(5), np.full((5, 3, 5), np.nan), "kernel: probabilities must be finite"),
        (np.zeros(5), "kernel", "kernel: expected an array of numbers"),
    ],
)
def test_certify_refuses_what_makes_no_sense(policy, kernel, message):
    model, ambiguity, _ = moderate(("l1", 1))
    with pytest.raises(drmdp.InputError, match=message):
        drmdp.certify(model, ambiguity, policy, kernel)


def test_the_certificate_imports_no_solver():
    source = certificate.__file__
    with open(source, encoding="utf-8") as file:
        imports = [line for line in file if line.startswith(("import", "from"))]
    assert not [line for line in imports if "operators" in line or "solvers" in line]


@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_step_that_is_no_number_proves_nothing_of_any_state(place):
    steps = np.array([-1.0, 1.0])[:, None] * np.ones(4)
    steps[place % 2, place] = np.nan
    found = bounds(np.arange(4.0), *steps, 0.9, np.zeros(4, dtype=bool))
    assert np.isnan(found.lower).all()
    assert np.isnan(found.upper).all()
    assert np.isnan(vectors.survey(np.arange(4.0), *steps)).all()
    assert np.isnan(vectors.extent_of(*steps)).all()


def test_bounds_stay_within_what_values_can_be():
    value, steps = np.array([0.0, 5.0, 9.0]), (np.full(3, -0.5), np.full(3, 0.5))
    ends = np.array([True, False, False])
    wide = bounds(value, *steps, 0.5, ends)
    found = bounds(value, *steps, 0.5, ends, 4.5, 9.25)
    assert wide.lower[1] < 4.5
    assert wide.upper[2] > 9.25
    np.testing.assert_array_equal(found.lower, [0.0, 4.5, wide.lower[2]])
    np.testing.assert_array_equal(found.upper, [0.0, wide.upper[1], 9.25])


def test_costs_of_moves_that_no_kernel_has_count_under_a_sparse_kernel():
    costs = np.arange(9.0).reshape(3, 1, 3)
    model = drmdp.Model(np.eye(3)[None, :, None], costs=costs, discount=0.9)
    kernel = np.full((3, 1, 3), 1 / 3)
    listed = FixedKernel(model, sparse.csr_array(kernel.reshape(3, 3)))
    assert np.allclose(listed.costs, [[1.0], [4.0], [7.0]], rtol=1e-15)
    assert np.allclose(FixedKernel(model, kernel).costs, listed.costs, rtol=1e-15)
