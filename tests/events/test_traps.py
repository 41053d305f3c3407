"""What is easily got wrong with models of events: each trap has a test that is red without its
guard.
"""

import math
from functools import partialmethod

import numba
import numpy as np
import pytest
from scipy.optimize import linprog
from tests.events.test_events import deal, start

import drmdp
from drmdp import InputError, Model, Wasserstein
from drmdp.core import threads as workers
from drmdp.layout import event_layout as layouts
from drmdp.model.events.laws import block_of
from drmdp.model.events.rules import EventFunction
from drmdp.model.state_ranges import together
from drmdp.operators.exact import ExactOperator
from drmdp.operators.native import NativeFamily

BALLS = [("l1", 1), ("l2", 2), ("linf", math.inf), ("l1", math.inf), ("l2", math.inf), ("linf", 1)]


@pytest.mark.parametrize("moves", ["states", "events"])
@pytest.mark.parametrize("ambiguity", BALLS, ids=str)
def test_natures_chain_explains_the_sweep(ambiguity, moves):
    """F(v) = Σ_a x_a c_a + λ P v with nature's P."""
    model = deal(2, law=None, sizes=(24, 3, 6, 4, 1))
    value = start(model)
    operator = ExactOperator(model, Wasserstein(0.2, *ambiguity, rectangular="s", moves=moves), 1)
    update = operator.update(value, 0, model.n_states)
    explained = (update.policy * model._prices).sum(axis=1) + model.discount * (
        update.nature.chain(update.policy) @ value
    )
    np.testing.assert_allclose(
        np.where(model.terminal, 0, explained), update.value, rtol=0, atol=2e-6
    )


def worst(p, stakes, radius):
    """max q·z over distributions q with |q − p|₁ ≤ r, as a linear program in q and d ≥ |q − p|."""
    E = p.size
    eye = np.eye(E)
    found = linprog(
        -np.concatenate([stakes, np.zeros(E)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros(E), np.ones(E)]]),
        b_ub=np.concatenate([p, -p, [radius]]),
        A_eq=[np.concatenate([np.ones(E), np.zeros(E)])],
        b_eq=[1.0],
    )
    return -found.fun


def test_every_event_may_be_used_where_next_states_repeat():
    """Support "all" with moved laws: nothing is unlisted, however few states the events of a pair
    lead to; against linear programs.
    """
    rng = np.random.default_rng(0)
    table, law = rng.integers(0, 3, (5, 1, 6)), np.array([0.3, 0.0, 0.2, 0.5, 0.0, 0.0])
    model = Model.from_events(
        5, 1, 6, lambda s, a, e: table[s, a, e], [law], discount=0.9, costs=np.zeros(5)
    )
    value = 4 * rng.random(5)
    for support in ("all", "observed", "state"):
        ambiguity = Wasserstein(0.4, "l1", 1, support=support, moves="events")
        assert not layouts.layout_of(model, ambiguity).unlisted
        live = np.full(6, True) if support == "all" else law > 0
        expected = [worst(law[live], 0.9 * value[table[s, 0, live]], 0.4) for s in range(5)]
        np.testing.assert_allclose(
            drmdp.bellman(model, ambiguity, value).value, expected, atol=1e-9
        )


def test_slots_are_told_apart_by_the_bits_of_their_costs():
    """Costs of the same formula are one slot, those that differ in the last bit are two; both are
    models, and near each other.
    """
    found = []
    for more in (0.0, 2.0**-52):
        prices = np.array([1.0, 1.0 + more, 3.0])
        model = Model.from_events(
            2,
            1,
            3,
            lambda s, a, e, prices=prices: (e // 2 + 0 * s * a, prices[e + 0 * s * a]),
            np.full((1, 3), 1 / 3),
            discount=0.5,
        )
        found.append(
            (model.choices.tolist(), drmdp.solve(model, Wasserstein(0.0), rtol=1e-12).value)
        )
    assert [choices for choices, _ in found] == [[[2], [2]], [[3], [3]]]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


def test_ranges_are_cut_by_work_that_needs_no_rows():
    model = deal(1)
    layout = layouts.layout_of(model, Wasserstein(0.2, moves="events"))
    each = layout.weights.size * model.n_actions * model.n_events
    np.testing.assert_array_equal(layouts.work(layout), each * np.arange(model.n_states + 1))
    assert "lengths" not in vars(deal(1))
    many = layout._replace(available=np.broadcast_to(True, (2**20, 10)), weights=np.ones(100))
    work = layouts.work(many)
    assert work.dtype == np.int64
    assert work[-1] == 2**20 * 10 * 100 * model.n_events > 2**31  # more than 32 bits hold
    ends = [hi for _, hi in workers.cut(work, 0, 2**20, 8)]
    np.testing.assert_allclose(np.diff([0, *ends]), 2**17, atol=2)


def test_states_are_counted_in_32_bits_and_entries_in_64():
    with pytest.raises(InputError, match=r"states: expected .*2147483647|states: .*2,147,483,647"):
        Model.from_events(2**31, 1, 1, lambda s, a, e: s, [[1.0]], discount=0.5, costs=[0.0])
    model = deal(1)
    assert model.rule.next.dtype == np.int32
    block = block_of(2, 3, 4, 5)
    assert (block.indices.dtype, block.indptr.dtype) == (np.int32, np.int64)
    assert layouts.lengths(layouts.layout_of(model, Wasserstein(0.2))).dtype == np.int64


@numba.njit
def raises(s, a, e):
    if s == 20 and a == 1 and e == 2:
        raise ValueError("no such thing")
    return 0, 1.0


@numba.njit
def raises_by_row(s, a, there, cost):
    there[:] = 0
    cost[:] = 1.0
    if s == 20 and a == 1:
        raise ValueError("no such thing")


@pytest.mark.parametrize("rule", [raises, raises_by_row])
def test_what_a_function_raises_reaches_the_caller_with_its_place(rule, monkeypatch):
    """When everything is asked for the first time, and also in a sweep on several threads."""
    with pytest.raises(ValueError, match="no such thing") as caught:
        Model.from_events(24, 3, 6, rule, np.full((1, 6), 1 / 6), discount=0.9, store=False)
    assert "drmdp asked for transition(20, 1" in caught.value.__notes__[0]
    monkeypatch.setattr(workers, "SMALL", 0)
    model = deal(1, True, "scalar", store=False, available=None, terminal=None)
    later = model._with(rule=EventFunction(rule, 24, 3, 6))
    later._set(facts=model.facts)
    with pytest.raises(ValueError, match="no such thing"):
        ExactOperator(later, Wasserstein(0.2), 3).update(start(model), 0, 24)


@numba.njit
def delicate(s, a, e):
    return (s + e) % 24, (1e16 + 3.0 * e) - 1e16 + a


def test_rows_are_made_without_liberties():
    """Costs that depend on the order of additions are those of NumPy; nothing that makes rows may
    change it.
    """
    plain = lambda s, a, e: ((s + e + 0 * a) % 24, (1e16 + 3.0 * e) - 1e16 + a + 0.0 * s)  # noqa: E731
    given = {"laws": np.full((1, 6), 1 / 6), "discount": 0.9}
    one, two = (
        Model.from_events(24, 3, 6, rule, store=store, **given)
        for rule, store in ((delicate, False), (plain, True))
    )
    np.testing.assert_array_equal(one.asked(0, 24).costs, two.asked(0, 24).costs)
    assert one == two
    assert not one.rule._loop.targetoptions.get("fastmath")


@pytest.mark.parametrize("support", ["state", "all"])
def test_events_of_another_class_may_cost_more(support):
    """Bounds were false: what no event of a pair's own class costs was taken for what nothing
    costs.
    """
    costs = np.array([[[0.0, 100.0], [50.0, 1.0]]])
    laws = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    model = Model.from_events(
        1, 2, 2, lambda s, a, e: (0 * s, costs[s, a, e]), laws, law=lambda s, a: a, discount=0.5
    )
    found = drmdp.solve(model, Wasserstein(2.0, "l1", 1, support=support, moves="events"))
    assert found.lower[0] <= 100 <= found.upper[0]
    np.testing.assert_allclose(found.value, 100)


def test_the_range_of_costs_is_that_of_what_can_happen():
    """Of open pairs and events that some law has, whoever adds it up; nobody can give another
    one.
    """
    model = deal(3, True, sizes=(40, 3, 6, 4, 2))
    live = (model.laws[:, model.weights > 0] > 0).any(axis=(0, 1))
    seen = [
        float(model.rule.costs[s, a, e])
        for s, a in np.argwhere(model.available)
        for e in np.flatnonzero(live)
    ]
    assert model.cost_range == (min(seen), max(seen))
    assert together([model.piece(0, 13).facts, model.piece(13, 40).facts]) == model.facts
    prices = np.array([[[0.0, 1e6]], [[-1e6, 1.0]]])
    for laws, expected in (
        ([[1.0, 0.0]], (-1e6, 0.0)),
        ([[0.0, 1.0]], (1.0, 1e6)),
        ([[0.5, 0.5]], (-1e6, 1e6)),
    ):
        own = Model.from_events(
            2, 1, 2, lambda s, a, e: (s + 0 * (a + e), prices[s, a, e]), laws, discount=0.5
        )
        assert own.cost_range == expected
        found = drmdp.solve(own, Wasserstein(0.3))
        assert (found.lower <= found.upper).all()
        assert found.status == "solved"


def noted(family, usual, asked, *given):
    """A sweep, and what it is asked for."""
    asked.append(given[-1][-1])
    usual(family, *given)


@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_costs_of_events_count_for_the_range_of_stakes(rectangular, monkeypatch):
    """At a value that hardly varies the costs are what nature moves: a sweep is asked for an error
    relative to their range.
    """
    model = deal(2, True, available=None, terminal=None)
    value = 1e-6 * start(model)
    for moves in ("states", "events"):
        operator = ExactOperator(model, Wasserstein(0.2, rectangular=rectangular, moves=moves), 1)
        operator.accuracy, asked = 1e-9, []
        with monkeypatch.context() as patch:
            patch.setattr(NativeFamily, "sweep", partialmethod(noted, NativeFamily.sweep, asked))
            operator.update(value, 0, model.n_states)
        assert asked[0] * np.ptp(model.cost_range) == pytest.approx(1e-9, rel=1e-3)
