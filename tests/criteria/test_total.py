"""Total cost until a terminal state: values that are known, bounds that hold, and who cannot be
sure to end.
"""

import numpy as np
import pytest

import drmdp
from criteria_cases import grid, line
from drmdp.errors import InputError
from drmdp.solution import Status

INF = np.inf


def test_others_than_the_trapped_may_choose_another_way():
    """The short way leads through a state that nature can close; the long one does not."""
    K = np.zeros((1, 4, 2, 4))
    K[0, 0, 0], K[0, 0, 1] = [0, 1, 0, 0], [0, 0, 1, 0]
    K[0, 1, :], K[0, 2, :] = [0, 0.9, 0, 0.1], [0, 0, 0.5, 0.5]
    model = drmdp.Model(K, costs=[[1, 1], [1, 1], [40, 40], [0, 0]], discount=1.0, terminal=[3])
    found = drmdp.solve(model, drmdp.Wasserstein(0.5, "l1"))
    assert found.status is Status.unbounded
    assert found.value[1] == INF
    assert "from ending when it is in 1:" in found.notes[-1]


def test_costs_that_fall_for_ever():
    K = np.zeros((1, 2, 2, 2))
    K[0, 0, 0], K[0, 0, 1] = [0.5, 0.5], [0, 1]
    K[0, 0, 0] = [1, 0]
    model = drmdp.Model(
        K,
        costs=[[-1, 1], [0, 0]],
        discount=1.0,
        terminal=[1],
        available=[[True, True], [False, False]],
    )
    found = drmdp.solve(model, drmdp.Wasserstein(0.1))
    assert found.status is Status.unbounded
    assert found.lower[0] == -INF
    assert "costs may fall for ever" in found.notes[-1]


def test_a_policy_that_never_arrives_is_not_certified():
    """The dangerous proof is U = −1 in a state that goes round at no cost: F(U) = U."""
    K = np.zeros((1, 2, 2, 2))
    K[0, 0, 0], K[0, 0, 1] = [1, 0], [0, 1]
    model = drmdp.Model(
        K,
        costs=[[0, 1], [0, 0]],
        discount=1.0,
        terminal=[1],
        available=[[True, True], [False, False]],
    )
    waits = drmdp.evaluate(model, drmdp.Wasserstein(0.1), [[1.0, 0.0], [0.0, 0.0]])
    assert waits.upper[0] == INF
    found = drmdp.solve(model, drmdp.Wasserstein(0.1), max_iters=30)
    assert found.upper[0] == pytest.approx(1, abs=1e-6)
    assert found.lower[0] <= 1 <= found.upper[0]


def test_values_of_terminal_states():
    K = np.zeros((1, 3, 1, 3))
    K[0, 0, 0] = [0.5, 0.3, 0.2]
    want = 1 / 0.5 + 0.6 * 10 + 0.4 * -5
    given = {"discount": 1.0, "terminal": {1: 10.0, 2: -5.0}}
    found = drmdp.solve(drmdp.Model(K, costs=[1.0, 0.0, 0.0], **given), drmdp.Wasserstein(0.0))
    assert found.lower[0] <= want <= found.upper[0]
    assert found.value.tolist()[1:] == [10, -5]
    given["terminal"] = {1: -10.0, 2: 5.0}
    turned = drmdp.solve(drmdp.Model(K, rewards=[-1.0, 0.0, 0.0], **given), drmdp.Wasserstein(0.0))
    np.testing.assert_allclose(turned.value, -found.value, rtol=1e-6)
    given["discount"], discounted = 0.9, 1 + 0.9 * (3 - 1)
    less = drmdp.solve(drmdp.Model(K, rewards=[-1.0, 0.0, 0.0], **given), drmdp.Wasserstein(0.0))
    assert less.lower[0] <= -discounted / (1 - 0.45) <= less.upper[0]


def test_a_plan_rises_to_the_total():
    """With costs that are not negative, what n stages cost is never more than the total, and comes
    near it.
    """
    model, ambiguity = grid(4, mud=()), drmdp.Wasserstein(0.1)
    total = drmdp.solve(model, ambiguity, rtol=1e-9)
    before = -INF
    for n in (1, 5, 20, 80):
        plan = drmdp.finite_horizon(model, ambiguity, n)
        assert before <= plan.upper[0, 0] <= total.upper[0]
        before = plan.lower[0, 0]
    assert before >= total.lower[0] * (1 - 1e-3)


def test_final_values_of_a_plan_are_those_of_its_model():
    K = np.zeros((1, 3, 1, 3))
    K[0, 0, 0] = [0.5, 0.3, 0.2]
    model = drmdp.Model(K, costs=[1.0, 0.0, 0.0], discount=1.0, terminal={1: 10.0, 2: -5.0})
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.0), 2)
    assert plan.lower[0].tolist()[1:] == plan.upper[0].tolist()[1:] == [10, -5]
    one = 1 + 0.3 * 10 - 0.2 * 5
    np.testing.assert_allclose(plan.value[:, 0], [one + 0.5 * one, one, 0], atol=1e-12)


def test_what_a_total_cost_does_not_go_with():
    model, ambiguity = line(0.5), drmdp.Wasserstein(0.1)
    endless = drmdp.Model([[[[0.5, 0.5]], [[0, 1]]]], costs=[1.0, 0.0], discount=1.0)
    below = drmdp.Model([[[[0.5, 0.5]], [[0, 1]]]], costs=[1.0, 0.0], discount=0.9, terminal=[1])
    lost = drmdp.Model(
        [[[[1, 0]], [[0, 1]]]], costs=[1.0, 0.0], discount=1.0, terminal=["b"], states=["a", "b"]
    )
    for given, settings, message in (
        (
            endless,
            {},
            "discount: 1 needs terminal states; say where the process ends (`terminal`), or solve with criterion='average'",
        ),
        (
            model,
            {"criterion": "average"},
            "the average cost of a process that ends is 0; solve the total cost, with discount=1",
        ),
        (
            model,
            {"criterion": "discounted"},
            "'discounted' needs a discount below 1, and that of the model is 1",
        ),
        (
            below,
            {"criterion": "total"},
            "'total' needs the discount 1, and that of the model is 0.9",
        ),
        (
            model,
            {"criterion": "mean"},
            "criterion: expected one of 'discounted', 'total', 'average', got 'mean'",
        ),
        (
            model,
            {"method": "first-order"},
            "method: 'first-order' goes with a discount below 1; method='auto' solves",
        ),
        (
            model,
            {"method": drmdp.PolicyIteration(stop="puterman")},
            "stop: 'puterman' goes with a discount below 1",
        ),
        (
            lost,
            {},
            "discount: 1, but no transition that was seen leads from 'a' to a terminal state",
        ),
    ):
        with pytest.raises(InputError) as error:
            drmdp.solve(given, ambiguity, **settings)
        assert message in str(error.value)
    with pytest.raises(InputError, match="solved for discounted costs only"):
        drmdp.solve("model.drmdp", ambiguity, criterion="average")


def test_a_total_is_saved_and_loaded(tmp_path):
    found = drmdp.solve(line(0.5), drmdp.Wasserstein(0.1))
    found.save(tmp_path / "s.npz")
    again = drmdp.Solution.load(tmp_path / "s.npz")
    assert again.criterion == "total"
    assert again.bias is None
    np.testing.assert_array_equal(again.time, found.time)


def test_a_total_of_a_model_that_is_not_read_whole_is_refused_before_any_work(tmp_path):
    drmdp.write(line(0.5), tmp_path / "m.drmdp")
    with pytest.raises(
        InputError,
        match=r"discount: 1, and a model that is not read whole .* solve drmdp.read\(path\)",
    ):
        drmdp.solve(tmp_path / "m.drmdp", drmdp.Wasserstein(0.1), checkpoint=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_certify_bounds_totals_and_averages():
    model, ambiguity = line(0.5), drmdp.Wasserstein(0.1)
    found = drmdp.certify(model, ambiguity, drmdp.solve(model, ambiguity))
    assert found.gap <= 1e-6 * found.upper.max()
    machine = drmdp.instances.perturb(drmdp.instances.machine(6), 4)
    gain = drmdp.solve(machine, ambiguity, criterion="average")
    shown = drmdp.certify(machine, ambiguity, gain, criterion="average")
    assert shown.gap <= 1e-5 * gain.scale
    assert (shown.lower <= gain.upper).all()
    assert (gain.lower <= shown.upper).all()


@pytest.mark.filterwarnings("error")
def test_a_path_goes_on_beyond_the_radius_that_traps():
    path = drmdp.radius.path(line(0.7), drmdp.Wasserstein(0.1, "l1"), [0.0, 0.3, 0.7, 0.9])
    assert [str(point.status) for point in path.points] == [
        "solved",
        "solved",
        "unbounded",
        "unbounded",
    ]
    assert np.isfinite(path.worst).tolist() == [True, True, False, False]
    drmdp.radius.path(line(0.7), drmdp.Wasserstein(0.1, "l1"), 5)


def test_a_path_does_not_believe_a_policy_that_earns_for_ever():
    """Staying earns 1 a step; nature can make it stay."""
    model = drmdp.Model(
        [[[[0.5, 0.5]], [[0, 1]]]], costs=[-1.0, 0.0], discount=1.0, terminal={1: 9.0}
    )
    path = drmdp.radius.path(model, drmdp.Wasserstein(0.1, "l1"), [0.0, 0.5, 1.0])
    assert path.points[0].upper[0] == pytest.approx(7)
    assert path.points[2].upper[0] == INF


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"discount": 1.5}, r"discount.*\[0, 1\].*1.5"),
        ({"discount": np.nan}, r"discount.*\[0, 1\].*nan"),
        ({"terminal": {1: np.nan}}, "terminal"),
        ({"terminal": {1: INF}}, "terminal"),
        ({"terminal": {"nowhere": 1.0}}, "nowhere"),
    ],
)
def test_ends_and_discounts_that_are_none(given, words):
    with pytest.raises(InputError, match=words):
        drmdp.Model(
            [[[[0.5, 0.5]], [[0, 1]]]],
            costs=[1.0, 0.0],
            **{"discount": 1.0, "terminal": [1]} | given,
        )


def test_a_nature_that_helps_ends_what_was_never_seen_to_end():
    """From 1 nothing was seen to lead away; she may move .1 of it, and ends it in 10 steps."""
    K = [[[0.449, 0, 0.551]], [[0, 1.0, 0]], [[0, 0, 1.0]]]
    model = drmdp.Model(K, costs=[0.82, 1.41, 0], discount=1.0, terminal={2: 1.0})
    found = drmdp.solve(model, drmdp.Divergence(0.1, "tv", support="all"), nature="cooperative")
    assert found.status is Status.solved
    assert found.lower[1] <= 1 + 1.41 / 0.1 <= found.upper[1] + 1e-9
    stuck = drmdp.solve(model, drmdp.Wasserstein(0.0, support="all"), nature="cooperative")
    assert stuck.status is Status.unbounded


def test_points_that_proofs_need_wider_are_found():
    """Two states and 2e8 steps: proofs of steps are wider than the operator says, and both sides
    are bounded all the same.
    """
    K = np.array([[[0, 1.0, 0]], [[0.99999999, 0, 1e-8]], [[0, 0, 1.0]]])
    model = drmdp.Model(K, costs=[0.001, 10, 0], discount=1.0, terminal=[2])
    found = drmdp.solve(model, drmdp.Intervals(K, K), threads=1)
    value = 10.001 / (1 - 0.99999999)
    assert found.status is Status.precision_limit
    assert found.lower[0] <= value <= found.upper[0]
    assert found.gap <= 1e-4 * value


def test_costs_of_nothing_are_worth_nothing():
    """All costs are 0: so is the total, and the average, to the last digit."""
    free = drmdp.Model([[[0.5, 0.5]], [[0, 1]]], costs=[0.0, 0.0], discount=1.0, terminal=[1])
    assert drmdp.solve(free, drmdp.Wasserstein(0.1)).status is Status.solved
    endless = drmdp.Model([[[0.5, 0.5]], [[0.2, 0.8]]], costs=[0.0, 0.0], discount=0.9)
    found = drmdp.solve(endless, drmdp.Wasserstein(0.1), criterion="average")
    assert found.status is Status.solved
    assert (found.lower.tolist(), found.upper.tolist()) == ([0.0, 0.0], [0.0, 0.0])
    assert "value      0, a step in the long run" in repr(found)
