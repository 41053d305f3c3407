"""Support "state": nature may move mass of a pair to next states that some kernel of positive
weight has seen from its state, under any available action.

That the operators, proofs and engines of every set keep to it is tested where they are: their decks
deal "state" too.
"""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import drmdp
import drmdp_check
from drmdp.cli import main
from drmdp.cluster import Local
from drmdp.errors import InputError

LINE = ("line", [0.0, 1.0, 2.0, 4.0, 4.5])
SETS = {
    "l1": lambda r, support: drmdp.Wasserstein(r, "l1", 1, support),
    "l2": lambda r, support: drmdp.Wasserstein(r, "l2", 2, support),
    "linf": lambda r, support: drmdp.Wasserstein(r, "linf", math.inf, support),
    "l1 of order 2": lambda r, support: drmdp.Wasserstein(r, "l1", 2, support),
    "transport": lambda r, support: drmdp.Wasserstein(r, "transport", 1, support, ground=LINE),
    "tv sa": lambda r, support: drmdp.Divergence(r, "tv", "kernels", support, "sa"),
    "burg": lambda r, support: drmdp.Divergence(r, "burg", "mean", support),
}
EVERY = pytest.mark.parametrize("make", SETS.values(), ids=SETS)


def thin(seed=0, S=5, A=3, N=3, costs=2, **given):
    """A model each of whose pairs was seen to lead to few next states, with a kernel of weight 0
    and pairs that are not available.
    """
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.ones(S), (N, S, A)) * (rng.random((S, A, S)) < 0.4)
    kernels[..., 0] += kernels.sum(axis=-1) == 0
    kernels[0] = rng.dirichlet(np.ones(S), (S, A))
    available = np.ones((S, A), bool)
    available[:, -1] = np.arange(S) % 2 if A > 1 else True
    options = {
        "costs": rng.random((S, A, S)[:costs]),
        "discount": 0.8,
        "available": available,
        "weights": [0.0, *([1 / (N - 1)] * (N - 1))],
    }
    return drmdp.Model(kernels / kernels.sum(axis=-1, keepdims=True), **options | given)


def together(model):
    """T(s) by the definition, (S, S)."""
    found = np.zeros((model.n_states, model.n_states), bool)
    for i, s, a, t in np.argwhere(np.asarray(model.kernels) > 0):
        found[s, t] |= model.weights[i] > 0 and model.available[s, a]
    return found


def solved(model, ambiguity, **settings):
    return drmdp.solve(model, ambiguity, tol=1e-10, **settings)


# ---------------------------------------------------------------------- what it is


def test_it_is_what_was_seen_from_the_state_under_any_available_action():
    model, ambiguity = thin(terminal=[3]), drmdp.Wasserstein(0.2, support="state")
    reach = together(model)
    np.testing.assert_array_equal(
        ambiguity.allowed(model, 0, 5), reach[:, None] & model.available[:, :, None]
    )
    np.testing.assert_array_equal(
        ambiguity.places(model), reach.sum(axis=1)[:, None] * model.available
    )
    np.testing.assert_array_equal(ambiguity.room(model), reach.sum(axis=1) > 1)
    observed = drmdp.Wasserstein(0.2).allowed(model, 0, 5)
    assert (observed.sum(axis=2) < reach.sum(axis=1)[:, None])[model.available].any()
    assert not reach[~model.terminal].all()
    assert (
        ambiguity.reach == "only to next states that were seen in the same state, under any action"
    )


@EVERY
@pytest.mark.parametrize("costs", [2, 3])
def test_it_lies_between_observed_and_all(make, costs):
    apart = np.zeros(2)
    for seed in range(3):
        model = thin(seed, costs=costs)
        values = [
            solved(model, make(0.3, support)).value for support in ("observed", "state", "all")
        ]
        assert (np.diff(values, axis=0) >= -1e-9).all()
        apart += np.diff(values, axis=0).max(axis=1)
    assert (apart > 1e-4).all()


@EVERY
def test_mass_goes_there_and_nowhere_else(make):
    for seed in range(3):
        model = thin(seed, costs=3)
        found = solved(model, make(50.0, "state"))
        moved = (np.asarray(found.kernel) > 1e-12) & model.available[:, :, None]
        assert not (moved & ~together(model)[:, None]).any()
        assert (moved & ~drmdp.Wasserstein(1).allowed(model, 0, 5)).any()


@EVERY
def test_with_one_action_it_is_what_was_observed(make):
    model = thin(A=1)
    one, other = (solved(model, make(0.3, support)) for support in ("observed", "state"))
    for name in ("value", "lower", "upper", "policy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@EVERY
@pytest.mark.parametrize("costs", [2, 3])
def test_where_every_state_has_the_same_next_states_it_is_all_of_the_model_of_these(make, costs):
    """States that nobody reaches are left out of the twin; their values follow from the others."""
    rng, few = np.random.default_rng(4), [0, 2, 3]
    kernels = np.zeros((2, 5, 3, 5))
    kernels[..., few] = rng.dirichlet(np.ones(3), (2, 5, 3)) * (rng.random((5, 3, 3)) < 0.5)
    kernels[:, :, 0, :] = np.eye(5)[0]
    kernels[:, :, 1, :] = (np.eye(5)[2] + np.eye(5)[3]) / 2
    kernels[..., 0] += kernels.sum(axis=-1) == 0
    kernels /= kernels.sum(axis=-1, keepdims=True)
    paid = rng.random((5, 3, 5)[:costs])
    model = drmdp.Model(kernels, costs=paid, discount=0.8)
    small = drmdp.Model(
        kernels[:, few][..., few],
        costs=paid[few] if costs == 2 else paid[few][..., few],
        discount=0.8,
    )
    ambiguity = make(0.3, "all")
    if ambiguity.key[0] == "transport":
        ambiguity = drmdp.Wasserstein(
            0.3, "transport", 1, "all", ground=("line", [LINE[1][t] for t in few])
        )
    one, other = solved(model, make(0.3, "state")), solved(small, ambiguity)
    np.testing.assert_allclose(one.value[few], other.value, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["kl", "chi2"])
def test_rows_that_cannot_leave_their_support_do_not(kind):
    model = thin()
    one, other = (
        solved(model, drmdp.Divergence(0.3, kind, support=support))
        for support in ("observed", "state")
    )
    np.testing.assert_array_equal(one.value, other.value)
    assert not (np.asarray(other.kernel) > 0)[~drmdp.Wasserstein(1).allowed(model, 0, 5)].any()


@EVERY
def test_models_that_are_stored_sparse_or_in_single_precision_have_it_too(make):
    model = thin()
    matrices = [sparse.csr_array(kernel.reshape(-1, 5)) for kernel in np.asarray(model.kernels)]
    twin = drmdp.Model(
        matrices,
        costs=model.costs,
        discount=model.discount,
        available=model.available,
        weights=model.weights,
    )
    want = solved(model, make(0.3, "state"))
    for method in ("auto", "value-iteration"):
        np.testing.assert_allclose(
            solved(twin, make(0.3, "state"), method=method).value, want.value, atol=1e-9
        )
    single = solved(model.astype("float32"), make(0.3, "state"))
    np.testing.assert_allclose(single.value, want.value, atol=1e-5)


def test_what_cannot_move_is_told():
    kernels = np.zeros((2, 2, 2))
    kernels[:, :, 0] = 1
    model = drmdp.Model(kernels[None], costs=np.ones((2, 2)), discount=0.5)
    (note,) = drmdp.Wasserstein(0.1, support="state").remarks(model)
    assert "each state was, under all actions, seen to lead to one next state only" in note
    kernels[0, 1] = [0, 1]
    model = drmdp.Model(kernels[None], costs=np.ones((2, 2)), discount=0.5)
    assert drmdp.Wasserstein(0.1, support="state").remarks(model) == ()
    assert drmdp.Wasserstein(0.1).remarks(model)


# ---------------------------------------------------------------------- costs of transitions that a
# pair has not had


def test_only_costs_that_nature_can_meet_are_asked_for():
    rng, ambiguity = np.random.default_rng(5), drmdp.Wasserstein(0.3, support="state")
    kernels = np.zeros((1, 3, 2, 3))
    kernels[0, :, 0], kernels[0, :, 1] = np.eye(3)[0], [0.0, 0.5, 0.5]
    kernels[0, 0] = [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]
    costs, given = (
        rng.random((3, 2, 3)),
        {"discount": 0.8, "states": ["a", "b", "c"], "actions": ["x", "y"]},
    )
    enough = drmdp.Model(
        kernels, costs=np.where(np.indices(costs.shape)[[0, 2]].any(axis=0), costs, np.nan), **given
    )
    assert enough.costs_missing
    whole = drmdp.Model(kernels, costs=costs, **given)
    np.testing.assert_array_equal(solved(enough, ambiguity).value, solved(whole, ambiguity).value)
    costs[1, 0, 2] = np.nan
    lacking = drmdp.Model(kernels, costs=costs, **given)
    with pytest.raises(
        InputError, match="state 'b', action 'x': the cost of going to 'c' is unknown"
    ) as refused:
        drmdp.solve(lacking, ambiguity)
    assert (
        "with support='state' nature may use it, for another action has been seen to lead there"
        in str(refused.value)
    )
    assert "give every cost as an (S, A, S) array, or take support='observed'" in str(refused.value)
    assert solved(lacking, drmdp.Wasserstein(0.3)).status == "solved"
    np.testing.assert_allclose(
        solved(lacking, ambiguity.with_radius(0)).value, solved(lacking, drmdp.Wasserstein(0)).value
    )
    closed = drmdp.Model(kernels, costs=costs, available={"b": ["x"]}, **given)
    assert solved(closed, ambiguity).status == "solved"


def test_sparse_costs_are_those_of_seen_transitions():
    kernels = np.zeros((2, 2, 2))
    kernels[:, 0], kernels[:, 1] = [1, 0], [0.5, 0.5]
    matrix = [sparse.csr_array(kernels.reshape(4, 2))]
    paid = sparse.csr_array(np.arange(8.0).reshape(4, 2) * (kernels.reshape(4, 2) > 0))
    ambiguity = drmdp.Wasserstein(0.3, support="state")
    with pytest.raises(InputError, match="state 0, action 0: the cost of going to 1 is unknown"):
        drmdp.solve(drmdp.Model(matrix, costs=paid, discount=0.5), ambiguity)
    one = drmdp.Model(matrix, costs=paid, discount=0.5, available=[[False, True]] * 2)
    np.testing.assert_array_equal(
        solved(one, ambiguity).value, solved(one, drmdp.Wasserstein(0.3)).value
    )


def test_mass_that_moves_at_no_cost_meets_them_at_radius_0():
    kernels = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]])
    ground = np.zeros((2, 2))
    costs = np.array([[[0.0, 7.0], [1.0, 2.0]], [[np.nan, 0.0], [np.nan, 0.0]]])
    model = drmdp.Model(kernels[None], costs=costs, discount=0.5)
    ambiguity = drmdp.Wasserstein(0.0, "transport", 1, "state", ground=ground)
    np.testing.assert_allclose(solved(model, ambiguity).value, [2, 0], atol=1e-9)
    with pytest.raises(
        InputError, match="ground: mass moves at no cost between some states: state 0, action 0"
    ):
        drmdp.solve(
            drmdp.Model(kernels[None], costs=np.where(costs == 7, np.nan, costs), discount=0.5),
            ambiguity,
        )


# ---------------------------------------------------------------------- events


def drawn(priced, laws, store=True):
    """Events 0 … 3 of two classes, by action; states go up by them."""
    prices = np.random.default_rng(2).random((4, 2, 4))
    step = (
        (lambda s, a, e: ((s + e) % 4, prices[s, a, e])) if priced else lambda s, a, e: (s + e) % 4
    )
    costs = {} if priced else {"costs": prices[:, :, 0]}
    return drmdp.Model.from_events(
        4, 2, 4, step, laws, law=lambda s, a: a, discount=0.8, store=store, **costs
    )


LAWS = np.array([[[0.5, 0.5, 0, 0], [0.6, 0.4, 0, 0]], [[0.2, 0, 0.8, 0], [0.3, 0, 0.7, 0]]])


@EVERY
@pytest.mark.parametrize("store", [True, False])
def test_models_of_events_have_the_bits_of_the_stored_model(make, store):
    model = drawn(False, LAWS, store)
    if make is SETS["transport"]:
        ambiguity = drmdp.Wasserstein(0.3, "transport", 1, "state", ground=("line", list(range(4))))
    else:
        ambiguity = make(0.3, "state")
    one, other = solved(model, ambiguity), solved(model.stored(), ambiguity)
    for name in ("value", "lower", "upper", "policy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (
        one.value
        > solved(
            model,
            make(0.0, "observed") if make is not SETS["transport"] else ambiguity.with_radius(0),
        ).value
        + 1e-3
    ).all()
    if make is not SETS["transport"]:
        np.testing.assert_array_equal(
            ambiguity.saturation(model), ambiguity.saturation(model.stored())
        )


def test_what_events_cost_is_known_of_their_own_pairs_only():
    with pytest.raises(InputError, match="state 0, action 0: the cost of going to 2 is unknown"):
        drmdp.solve(drawn(True, LAWS), drmdp.Wasserstein(0.3, support="state"))
    model = drawn(True, LAWS[[0, 0]])  # all actions lead to the same states
    one, other = (
        solved(model, drmdp.Wasserstein(0.3, support=support)) for support in ("observed", "state")
    )
    np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("name", ["l1", "burg"])
def test_laws_are_moved_to_events_of_the_state(name, rectangular, priced):
    """Against laws of events 0 … 2 alone, all of which may then be used: event 3 never happens."""
    model, few = drawn(priced, LAWS), LAWS[..., :3]
    prices = np.random.default_rng(2).random((4, 2, 4))
    step = (
        (lambda s, a, e: ((s + e) % 4, prices[s, a, e])) if priced else lambda s, a, e: (s + e) % 4
    )
    twin = drmdp.Model.from_events(
        4,
        2,
        3,
        step,
        few,
        law=lambda s, a: a,
        discount=0.8,
        **({} if priced else {"costs": prices[:, :, 0]}),
    )
    kind = {"rectangular": rectangular, "moves": "events"}
    make = (
        (lambda support: drmdp.Wasserstein(0.3, "l1", 1, support, **kind))
        if name == "l1"
        else lambda support: drmdp.Divergence(0.3, "burg", "mean", support, **kind)
    )
    one, other = solved(model, make("state")), solved(twin, make("all"))
    np.testing.assert_allclose(one.value, other.value, rtol=0, atol=1e-9)
    assert (one.value > solved(model, make("observed")).value + 1e-3).all()
    np.testing.assert_array_equal(make("state").places(model), np.full((4, 2), 3))
    np.testing.assert_array_equal(make("state").saturation(model), make("all").saturation(twin))
    conic = drmdp.bellman(model, make("state"), one.value, backend="conic")
    np.testing.assert_allclose(
        drmdp.bellman(model, make("state"), one.value).value, conic.value, atol=1e-7
    )


def test_an_action_that_is_not_available_has_no_events():
    prices = np.random.default_rng(2).random((4, 2))
    given = {
        "law": lambda s, a: a,
        "discount": 0.8,
        "costs": prices,
        "available": [[True, s > 0] for s in range(4)],
    }
    model = drmdp.Model.from_events(4, 2, 4, lambda s, a, e: (s + e) % 4, LAWS, **given)
    ambiguity = drmdp.Wasserstein(0.3, support="state", moves="events")
    np.testing.assert_array_equal(ambiguity.places(model)[model.available], [2, 3, 3, 3, 3, 3, 3])


# ---------------------------------------------------------------------- proofs, engines, files, the
# command line


@EVERY
def test_proofs_are_accepted_and_forged_ones_are_not(make, tmp_path):
    model = thin(costs=3)
    drmdp.write(model, tmp_path / "m.npz")
    for support in ("state", "observed"):
        solved(model, make(0.3, support)).proof(tmp_path / support)
        assert not list(drmdp_check.check(tmp_path / support, tmp_path / "m.npz").failures())
    lines = (tmp_path / "state").read_text().splitlines()
    head = json.loads(lines[0])
    assert head["support"] == "state"
    (tmp_path / "forged").write_text(
        "\n".join([json.dumps(head | {"support": "observed"}), *lines[1:], ""])
    )
    assert refused(tmp_path / "forged", tmp_path / "m.npz")  # mass where nature may not bring it
    lines = (tmp_path / "observed").read_text().splitlines()
    head = json.loads(lines[0])
    (tmp_path / "forged").write_text(
        "\n".join([json.dumps(head | {"support": "state"}), *lines[1:], ""])
    )
    assert refused(tmp_path / "forged", tmp_path / "m.npz")  # she may do worse than what is proved


def refused(proof, model):
    try:
        return bool(list(drmdp_check.check(proof, model).failures()))
    except drmdp_check.Refused:
        return True


def test_files_and_processes_keep_it(tmp_path):
    model, ambiguity = thin(), drmdp.Wasserstein(0.2, support="state")
    drmdp.write(model, tmp_path / "m.npz")
    found = drmdp.solve(model, ambiguity, threads=1)
    found.save(tmp_path / "s.npz")
    assert drmdp.Solution.load(tmp_path / "s.npz").settings["ambiguity"] == repr(ambiguity)
    drmdp.write(model, tmp_path / "m.drmdp")
    parts = drmdp.solve(tmp_path / "m.drmdp", ambiguity, cluster=Local(2, threads=1), threads=1)
    np.testing.assert_array_equal(parts.value, found.value)
    done = CliRunner().invoke(
        main, ["solve", str(tmp_path / "m.npz"), "--radius", "0.2", "--support", "state", "--json"]
    )
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(
        json.loads(done.output[done.output.index("{") :])["value"], found.value
    )


# ---------------------------------------------------------------------- what it is for


def greased():
    """2,000 rows say that a machine that runs breaks in 2 % of the steps; 3 rows of greasing it, at
    50 more, have none that broke.
    """
    kernels = np.array([[[0.98, 0.02], [1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0]] * 3])
    return drmdp.Model(
        kernels,
        costs=[[10.0, 60.0, 0.0], [0.0, 0.0, 2000.0]],
        discount=0.99,
        states=["ok", "broken"],
        actions=["run", "grease", "repair"],
        available={"ok": ["run", "grease"], "broken": ["repair"]},
    )


@pytest.mark.parametrize("radius", [0.03, 0.05])
def test_three_rows_are_no_certainty(radius):
    """With a budget for each action, greasing may break as many more as running: fractions say that
    running is cheaper.
    """
    model = greased()
    for make in (
        lambda support: drmdp.Wasserstein(2 * radius, "l1", 1, support, "sa"),
        lambda support: drmdp.Divergence(radius, "tv", "mean", support, "sa"),
        lambda support: drmdp.Wasserstein(radius, "linf", math.inf, support),
    ):
        assert solved(model, make("observed")).to_dict()["ok"] == "grease"
        found = solved(model, make("state"))
        assert found.to_dict()["ok"] == "run"
        rate, more = Fraction(99, 100), Fraction(radius)
        p = Fraction(2, 100) + more  # v = 10 + λ (v + p (2000 + λ v − v))
        v = (10 + rate * p * 2000) / (1 - rate + rate * p * (1 - rate))
        np.testing.assert_allclose(found.value[0], float(v), rtol=1e-9)
        dearer = 60 + rate * (v + more * (2000 + rate * v - v))
        assert dearer > v


@pytest.mark.parametrize("name", ["l1", "l2", "tv", "burg"])
def test_where_actions_share_a_budget_both_are_played(name):
    """Nature spends what she has on the action that is played: against one budget for all, the
    machine is greased now and then, never always.
    """
    make = SETS.get(name) or (lambda r, support: drmdp.Divergence(r, "tv", "mean", support))
    model = greased()
    assert solved(model, make(0.05, "observed")).to_dict()["ok"] == "grease"
    drawn = solved(model, make(0.05, "state")).to_dict()["ok"]
    assert 0.3 < drawn["run"] < 0.7


def test_twelve_rows_without_a_failure_do_not_triple_the_cost():
    """A log of 20 machines: (good, service) has 12 rows, all good → good. What nobody has seen fail
    was the policy of a large radius.
    """
    model = serviced()
    assert solved(model, drmdp.Wasserstein(0.1)).to_dict()["good"] == "service"
    drawn = solved(model, drmdp.Wasserstein(0.1, support="state")).to_dict()["good"]
    assert drawn["run"] > drawn["service"] > 0.2
    alone = solved(model, drmdp.Wasserstein(0.1, support="state", rectangular="sa"))
    assert alone.to_dict()["good"] == "run"


def serviced():
    """Counts of one step of 20 machines in five conditions, and mean costs."""
    counts = {
        ("good", "run"): [730, 69, 0, 0, 14],
        ("good", "service"): [12, 0, 0, 0, 0],
        ("fair", "run"): [0, 110, 16, 0, 7],
        ("fair", "service"): [20, 6, 1, 0, 0],
        ("worn", "run"): [0, 0, 40, 7, 4],
        ("worn", "service"): [0, 25, 9, 2, 0],
        ("bad", "run"): [0, 0, 0, 5, 2],
        ("bad", "service"): [0, 0, 6, 3, 1],
        ("broken", "replace"): [36, 2, 0, 0, 0],
    }
    states, actions = ["good", "fair", "worn", "bad", "broken"], ["run", "service", "replace"]
    base, act = [8.0, 50.0, 150.0, 400.0, 3000.0], [0.0, 350.0, 2200.0]
    kernels, available = np.zeros((5, 3, 5)), np.zeros((5, 3), bool)
    for (s, a), row in counts.items():
        place = states.index(s), actions.index(a)
        kernels[place], available[place] = np.divide(row, sum(row)), True
    return drmdp.Model(
        kernels,
        costs=np.add.outer(base, act),
        discount=0.99,
        states=states,
        actions=actions,
        available=available,
    )
