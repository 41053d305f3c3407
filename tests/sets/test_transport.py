"""Transport against linear programs of its definition, and what it reduces to."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp.layout.memory import SweepMemory
from drmdp.operators.exact import ExactOperator
from drmdp.solvers.problem import Problem
from transport import dealt, dense, ground_of, wanted

ORDERS = pytest.mark.parametrize("order", [1, math.inf])
SIDES = pytest.mark.parametrize("rectangular", ["s", "sa"])


def sizes(model, value):
    """Range of the stakes, and what rounding is relative to."""
    z = np.where(model.available[..., None], model.stakes(value, 0, model.n_states), 0.0)
    z = z[np.isfinite(z)]
    return np.ptp(z), np.abs(z).max() + np.abs(value).max()


def check(case, seed, linear=True):
    model, ambiguity, value, D = case
    rng, fitted = np.random.default_rng(seed), ambiguity.fitted(model)
    operator = ExactOperator(model, fitted, threads=1)
    span, scale = sizes(model, value)
    tight = 1e-9 * span + 1e-12 * scale + 1e-250
    cold = Problem(ExactOperator(model, fitted, threads=1)).proved(value)
    other = np.where(model.terminal, 0.0, rng.permutation(value) * rng.choice([1.0, 1e-3]))
    steps = [cold, *(Problem(operator).proved(v) for v in (other, value, value))]
    policy = rng.dirichlet(np.full(model.n_actions, 0.3), model.n_states) * model.available
    policy = np.where(policy.sum(axis=1, keepdims=True) > 0, policy, model.available)
    policy = policy / np.maximum(policy.sum(axis=1, keepdims=True), 1e-300)
    given = Problem(operator).proved(value, policy)
    for step in (steps[0], *steps[2:], given):
        assert (step.upper_step - step.lower_step <= tight).all(), (
            step.upper_step - step.lower_step
        ).max() / (span or 1)
    slack = 1e-8 * span + 1e-13 * scale
    if linear:
        for found, want in (
            (steps[0], wanted(model, fitted, value, D)),
            (given, wanted(model, fitted, value, D, policy)),
        ):
            want = np.where(model.terminal, 0.0, want)
            assert (value + found.lower_step <= want + slack).all(), (
                value + found.lower_step - want
            ).max() / (span or 1)
            assert (value + found.upper_step >= want - slack).all(), (
                want - value - found.upper_step
            ).max() / (span or 1)
    for step in steps[2:]:
        assert (step.lower_step <= cold.upper_step).all()
        assert (step.upper_step >= cold.lower_step).all()


@ORDERS
@SIDES
def test_a_step_is_the_program_of_its_definition(order, rectangular):
    for seed, case in enumerate(dealt(order, 12, rectangular=rectangular)):
        check(case, seed)


@pytest.mark.fuzz
@ORDERS
@SIDES
def test_many_steps_are_the_programs_of_their_definition(order, rectangular):
    for seed, case in enumerate(dealt(order, 330, 7, rectangular)):
        check(case, seed)


@pytest.mark.fuzz
@ORDERS
@SIDES
def test_many_steps_certify_themselves(order, rectangular):
    for seed, case in enumerate(dealt(order, 5200, 11, rectangular)):
        check(case, seed, linear=False)


def problem(N=3, **settings):
    rng = np.random.default_rng(2)
    kernels = rng.dirichlet(np.full(6, 0.4), size=(N, 6, 3))
    return drmdp.Model(kernels, **({"costs": rng.random((6, 3)), "discount": 0.9} | settings))


def ambiguity_of(radius=0.1, order=1, rectangular="s", ground=None, support="all"):
    ground = ground_of(np.random.default_rng(5), "dense", 6) if ground is None else ground
    return drmdp.Wasserstein(radius, "transport", order, support, rectangular, ground=ground)


@ORDERS
@SIDES
def test_it_is_solved_evaluated_and_certified(order, rectangular):
    model, ambiguity = (
        problem(weights=[0.5, 0.3, 0.2]),
        ambiguity_of(order=order, rectangular=rectangular),
    )
    found = drmdp.solve(model, ambiguity, tol=1e-8)
    assert found.status == "solved"
    assert found.n_iters <= 10
    assert drmdp.certify(model, ambiguity, found).gap < 1e-6
    assert drmdp.certify(model, ambiguity, found.policy, found.kernel).gap < 1e-6
    mean = np.einsum(
        "i,isat->sat", model.weights, np.stack([np.asarray(kernel) for kernel in found.kernels])
    )
    np.testing.assert_allclose(mean, found.kernel, atol=1e-12)
    wild = drmdp.certify(model, ambiguity, found.policy, np.random.default_rng(1).random((6, 3, 6)))
    assert (wild.lower <= found.upper).all()
    np.testing.assert_allclose(
        drmdp.evaluate(model, ambiguity, found.policy, tol=1e-8).value, found.value, atol=1e-6
    )
    np.testing.assert_allclose(
        drmdp.finite_horizon(model, ambiguity, 200).value[0], found.value, atol=1e-5
    )
    conic = drmdp.bellman(model, ambiguity, found.value, backend="conic")
    np.testing.assert_allclose(
        conic.value, drmdp.bellman(model, ambiguity, found.value).value, atol=1e-7
    )
    helped = drmdp.solve(model, ambiguity, nature="cooperative").value
    nominal = drmdp.solve(model, ambiguity.with_radius(0)).value
    assert (helped <= nominal + 1e-6).all()
    assert (nominal <= found.value + 1e-6).all()


@SIDES
def test_moves_that_all_cost_one_are_half_the_l1_distance(rectangular):
    model, ground = problem(), 1 - np.eye(6)
    for order in (1, math.inf):
        for radius in (0.05, 0.4, 2.0):
            found = drmdp.solve(
                model, ambiguity_of(radius, order, rectangular, ground), tol=1e-9
            ).value
            want = drmdp.solve(
                model, drmdp.Wasserstein(2 * radius, "l1", order, "all", rectangular), tol=1e-9
            ).value
            np.testing.assert_allclose(found, want, atol=1e-8)


@ORDERS
def test_the_same_ground_in_four_forms(order):
    x, model = np.array([0.0, 3.0, 1.0, 1.5, 7.0, 4.0]), problem()
    D = dense(("line", x), 6)
    grounds = (D, sparse.csr_array(D), ("line", x), ("grid", np.stack([x, np.zeros(6)], axis=1)))
    values = [
        drmdp.solve(model, ambiguity_of(0.7, order, ground=ground), tol=1e-9).value
        for ground in grounds
    ]
    for value in values[1:]:
        np.testing.assert_array_equal(value, values[0])


@ORDERS
def test_values_grow_with_the_radius_up_to_saturation(order):
    model, ambiguity = problem(), ambiguity_of(order=order)
    far = float(ambiguity.saturation(model).max())
    values = [
        drmdp.solve(model, ambiguity.with_radius(r), tol=1e-9).value
        for r in (0, 0.1 * far, 0.5 * far, far, 2 * far)
    ]
    assert (np.diff(values, axis=0) >= -2e-9).all()
    np.testing.assert_allclose(values[3], values[4], atol=1e-8)
    path = drmdp.radius.path(model, ambiguity, [0.0, 0.1 * far])
    np.testing.assert_allclose(path.points[1].value, values[1], atol=1e-5)


@ORDERS
def test_one_action_leaves_nothing_to_share(order):
    model = problem(available=np.eye(3, dtype=bool)[[0, 1, 2, 0, 1, 2]])
    found, each = (
        drmdp.solve(model, ambiguity_of(order=order, rectangular=side), tol=1e-9).value
        for side in ("s", "sa")
    )
    np.testing.assert_allclose(found, each, atol=1e-8)


def test_with_one_kernel_both_orders_are_the_same():
    model = problem(N=1)
    one, most = (
        drmdp.solve(model, ambiguity_of(order=order), tol=1e-9).value for order in (1, math.inf)
    )
    np.testing.assert_allclose(one, most, atol=1e-8)


def test_what_costs_nothing_moves_at_radius_0():
    model, ground = problem(), np.where(np.arange(6)[:, None] // 3 == np.arange(6) // 3, 0.0, 1.0)
    for order in (1, math.inf):
        ambiguity = ambiguity_of(0.0, order, ground=ground)
        step, want = (
            drmdp.bellman(model, ambiguity, np.arange(6.0)),
            wanted(model, ambiguity, np.arange(6.0), ground),
        )
        np.testing.assert_allclose(step.value, want, atol=1e-9)
        assert (step.upper - step.lower < 1e-9).all()
        conic = drmdp.bellman(model, ambiguity, np.arange(6.0), backend="conic")
        np.testing.assert_allclose(conic.value, want, atol=1e-7)


@ORDERS
@SIDES
def test_nothing_that_is_handed_over_makes_a_bound_false(order, rectangular):
    model, ambiguity, value = (
        problem(),
        ambiguity_of(order=order, rectangular=rectangular),
        np.arange(6.0),
    )
    want = Problem(ExactOperator(model, ambiguity, threads=1)).proved(value)
    rng, operator = np.random.default_rng(3), ExactOperator(model, ambiguity, threads=1)
    good = operator.update(value, 0, 6)
    for _ in range(30):
        bad = [part.copy() for part in good.claim]
        for part in bad:
            wrong = rng.random(part.shape) < 0.3
            part[wrong] = rng.choice(
                [np.nan, np.inf, -np.inf, -1, 0, 1e-300, 1e300, 7, 0.5], size=int(wrong.sum())
            )
        operator.warm_start = operator.warm_start._replace(memory=SweepMemory(*bad))
        for update in (
            type(good)(**{**vars(good), "claim": SweepMemory(*bad)}),
            operator.update(value, 0, 6),
        ):
            found = Problem(operator).prove(value, update, False)
            assert (found.lower_step <= want.upper_step).all()
            assert (found.upper_step >= want.lower_step).all()


@ORDERS
def test_thirty_actions_that_tie_are_closed(order):
    """Nearly all are played; the bounds meet slowly on the way."""
    rng = np.random.default_rng(3)
    kernels = drmdp.instances.perturb(drmdp.instances.garnet(30, 30), 30).kernels
    value, terminal = 10 * rng.random(30) * (np.arange(30) < 4), np.arange(30) >= 4
    mean = np.mean(np.stack([np.asarray(kernel) for kernel in kernels]), axis=0)
    costs = 10 - 0.95 * mean @ value + 1e-6 * rng.random((30, 30))
    model = drmdp.Model(kernels, costs=costs, discount=0.95, terminal=terminal)
    ambiguity = drmdp.Wasserstein(
        0.05, "transport", order, ground=("line", np.random.default_rng(0).random(30))
    )
    step = drmdp.bellman(model, ambiguity, value)
    assert ((step.policy[:4] > 1e-9).sum(axis=1) >= 10).all()
    assert (step.upper - step.lower < 1e-9).all()


def test_grounds_are_described_compared_and_refused():
    ambiguity = ambiguity_of(ground=("line", np.arange(6.0)))
    assert ambiguity == ambiguity_of(ground=("line", np.arange(6.0)))
    assert ambiguity != ambiguity_of(ground=("line", 2 * np.arange(6.0)))
    assert hash(ambiguity) == hash(ambiguity.with_radius(0.1))
    assert "ground=<line of 6>" in repr(ambiguity)
    for ground, message in (
        (None, "ground: metric 'transport' needs the costs of moving mass"),
        ([[0, 1], [1, 2]], "staying costs nothing, got 2.0 from state 1 to itself"),
        ([[0, -1], [1, 0]], "costs are not negative, got -1.0 from state 0 to state 1"),
        ([[0, math.nan], [1, 0]], "costs are not negative, got nan from state 0 to state 1"),
        (
            sparse.csr_array([[0, -1.0], [0, 0]]),
            "costs are not negative, got -1.0 from state 0 to state 1",
        ),
        (("line", [0, math.nan]), "positions are finite, got nan at state 1"),
        (
            ("grid", [[0, 0], [1, math.inf]]),
            "coordinates are finite, got inf at state 1, coordinate 1",
        ),
        (("tree", [0]), "expected an"),
        (np.ones(3), "got shape"),
        ([[0, 1e-120], [1, 0]], "too far apart"),
    ):
        with pytest.raises(drmdp.InputError, match=message):
            drmdp.Wasserstein(1, "transport", ground=ground)
    with pytest.raises(drmdp.InputError, match="only metric 'transport' has one"):
        drmdp.Wasserstein(1, "l2", ground=np.zeros((2, 2)))
    with pytest.raises(drmdp.InputError, match="its order is 1 or inf"):
        drmdp.Wasserstein(1, "transport", 2, ground=np.zeros((2, 2)))
    with pytest.raises(drmdp.InputError, match="expected costs between 6 states, got 2"):
        drmdp.solve(problem(), drmdp.Wasserstein(1, "transport", ground=1 - np.eye(2)))


def test_the_command_line_reads_grounds(tmp_path):
    from click.testing import CliRunner

    from drmdp.cli import main

    model, x = problem(), np.arange(6.0)
    drmdp.write(model, tmp_path / "m.npz")
    np.save(tmp_path / "d.npy", dense(("line", x), 6))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "g.npy", x[:, None])
    sparse.save_npz(tmp_path / "d.npz", sparse.csr_array(dense(("line", x), 6)))
    shown = set()
    for ground in ("d.npy", "d.npz", "line:x.npy", "grid:g.npy"):
        word, _, name = ground.rpartition(":")
        path = f"{word}:{tmp_path / name}" if word else str(tmp_path / name)
        options = ["--metric", "transport", "--ground", path, "--radius", "0.3", "--json"]
        ran = CliRunner().invoke(main, ["solve", str(tmp_path / "m.npz"), *options])
        assert ran.exit_code == 0, ran.output
        shown.add(str(json.loads(ran.output)["value"]))
    assert len(shown) == 1
    ran = CliRunner().invoke(
        main,
        [
            "solve",
            str(tmp_path / "m.npz"),
            "--metric",
            "transport",
            "--ground",
            "no.npy",
            "--radius",
            "1",
        ],
    )
    assert ran.exit_code == 2
    assert "there is no file no.npy" in ran.output


@ORDERS
def test_parts_of_a_model_on_disk_give_the_same_bits(tmp_path, order):
    model = problem()
    drmdp.write(model, tmp_path / "m.drmdp")
    for rectangular in ("s", "sa"):
        for ground in (
            None,
            ("line", np.arange(6.0)),
            sparse.csr_array(ground_of(np.random.default_rng(5), "sparse", 6)),
        ):
            ambiguity = ambiguity_of(
                order=order, rectangular=rectangular, ground=ground, support="observed"
            )
            whole, parts = (
                drmdp.solve(tmp_path / "m.drmdp", ambiguity, cluster=drmdp.cluster.Local(parts=n))
                for n in (1, 3)
            )
            np.testing.assert_array_equal(whole.value, parts.value)
            np.testing.assert_array_equal(whole.policy, parts.policy)


@pytest.mark.parametrize("order", [1, np.inf])
@pytest.mark.parametrize("dimensions", [1_000, 30_000])
@pytest.mark.parametrize("listed", [True, False])
def test_a_grid_may_have_any_number_of_dimensions(dimensions, order, listed):
    """Mass r/D reaches the state that costs 1, D the sum of many equal numbers; lists are of all
    states, or of entries.
    """
    coordinates = np.zeros((3, dimensions))
    coordinates[1], coordinates[2] = 0.1, 7.0
    D = dimensions * Fraction(0.1)
    kernels = np.zeros((1, 3, 1, 3))
    kernels[0, :, 0, 0] = 1
    if listed:
        kernels = np.concatenate([kernels, np.roll(kernels, 1, axis=3)])
    weights = [1.0, 1e-30][: len(kernels)]
    ambiguity = drmdp.Wasserstein(
        0.3 * float(D),
        "transport",
        order,
        "observed" if listed else "all",
        ground=("grid", coordinates),
    )
    model = drmdp.Model(kernels, costs=[0.0, 1.0, 0.0], discount=0.5, weights=weights)
    found, true = drmdp.solve(model, ambiguity, rtol=1e-14), Fraction(0.3 * float(D)) / D
    assert Fraction(float(found.lower[0])) <= true * (1 + Fraction(1, 10**29))
    assert true <= Fraction(float(found.upper[0]))
    assert found.gap < 1e-12
    states = np.arange(3)
    exact = [[math.fsum(np.abs(x - y)) for y in coordinates] for x in coordinates]
    assert np.allclose(ambiguity.ground.between(states, states), exact, rtol=1e-15, atol=0)


def test_coordinates_whose_distance_is_no_number_are_refused():
    with pytest.raises(
        drmdp.InputError, match=r"coordinates from -1e\+308 to 1e\+308 are too far apart"
    ):
        drmdp.Wasserstein(1.0, "transport", ground=("grid", [[1e308], [-1e308]]))


@pytest.mark.parametrize("order", [1, math.inf])
def test_kernels_of_a_model_of_events_are_as_far_apart_as_stored_ones(order):
    """Costs are of states, whatever places next states have in a row."""
    there = np.clip(np.arange(20)[:, None, None] + 3 - np.arange(5), 0, 19)
    laws = np.random.default_rng(3).dirichlet(np.ones(5), 3)
    given = {"costs": np.zeros((20, 1)), "discount": 0.9}
    model = drmdp.Model.from_events(20, 1, 5, lambda s, a, e: there[s, a, e], laws, **given)
    stored = drmdp.Model(list(model.kernels), **given)
    ambiguity = drmdp.Wasserstein(0.1, "transport", order, ground=("line", np.arange(20.0) ** 2))
    for far in (ambiguity.spread, ambiguity.saturation):
        np.testing.assert_allclose(far(model, range(20)), far(stored, range(20)), rtol=1e-12)
