"""Nature moves laws of events: what `moves="events"` is, against models whose states tell events
apart.
"""

import math

import numpy as np
import pytest
from tests.events.test_events import deal, same, start, swept

import drmdp
from drmdp import Divergence, InputError, Model, Wasserstein

BALLS = {
    "l2": lambda r, **k: Wasserstein(r, **k),
    "l1": lambda r, **k: Wasserstein(r, "l1", **k),
    "linf": lambda r, **k: Wasserstein(r, "linf", **k),
    "l1 inf": lambda r, **k: Wasserstein(r, "l1", math.inf, **k),
    "l2 inf": lambda r, **k: Wasserstein(r, "l2", math.inf, **k),
    "linf 1": lambda r, **k: Wasserstein(r, "linf", 1, **k),
    "kl": lambda r, **k: Divergence(r, "kl", **k),
    "chi2": lambda r, **k: Divergence(r, "chi2", around="kernels", **k),
    "burg": lambda r, **k: Divergence(r, "burg", **k),
    "tv": lambda r, **k: Divergence(r, "tv", **k),
}


def told_apart(model):
    """The stored model whose states are (state, last event): every event of a pair leads to a state
    of its own.
    """
    n, A, E = model.n_states, model.n_actions, model.n_events
    asked = model.asked(0, n)
    y, costs = np.zeros((model.n_kernels, n * E, A, n * E)), np.zeros((n * E, A, n * E))
    for s in range(n):
        for a in range(A):
            k = model.classes[s, a] if model.classes.size else 0
            for e in range(E):
                t = int(asked.next[s, a, e]) * E + e
                y[:, s * E : (s + 1) * E, a, t] = model.laws[k, :, e][:, None]
                price = asked.costs[s, a, e] if model.priced else model._prices[s, a]
                costs[s * E : (s + 1) * E, a, t] = price
    flags = {
        "available": np.repeat(model.available, E, axis=0),
        "terminal": np.repeat(model.terminal, E),
    }
    return Model(y, costs=costs, discount=model.discount, weights=model.weights, **flags)


@pytest.mark.parametrize("name", BALLS)
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_events_are_next_states_that_remember_them(name, rectangular):
    for seed, priced in ((1, False), (2, True)):
        model = deal(seed, priced, sizes=(5, 2, 4, 3, 2))
        ambiguity = BALLS[name](0.15, rectangular=rectangular, moves="events")
        found = drmdp.solve(model, ambiguity, rtol=1e-8)
        twin = drmdp.solve(told_apart(model), BALLS[name](0.15, rectangular=rectangular), rtol=1e-8)
        assert found.status == "solved"
        np.testing.assert_allclose(
            found.value, twin.value[:: model.n_events], rtol=0, atol=found.gap + twin.gap + 1e-9
        )
        again = drmdp.evaluate(model, ambiguity, found)
        np.testing.assert_allclose(again.value, found.value, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", BALLS)
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_conic_programs_find_the_same(name, rectangular):
    """Of one update, at any value, and of a policy that is given."""
    for seed, priced in ((1, False), (2, True), (3, False)):
        model = deal(seed, priced, sizes=(4, 2, 4, 3, 2))
        ambiguity = BALLS[name](
            0.15, rectangular=rectangular, moves="events", support="observed" if priced else "all"
        )
        v = start(model)
        exact, conic = (
            drmdp.bellman(model, ambiguity, v, backend=backend) for backend in ("exact", "conic")
        )
        scale = max(np.abs(v).max(), *map(abs, model.cost_range))
        assert np.abs(exact.value - conic.value).max() <= 1e-7 * scale
        assert (conic.upper - conic.lower).max() <= 1e-5 * scale
        rows = np.asarray(conic.kernel).sum(axis=2)
        np.testing.assert_allclose(rows, np.where(model.available, 1.0, 0.0), atol=1e-9)
        own = [
            drmdp.evaluate(model, ambiguity, conic.policy, rtol=1e-6, backend=backend).value
            for backend in ("exact", "conic")
        ]
        np.testing.assert_allclose(*own, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("name", BALLS)
def test_as_many_events_as_states_with_repeated_next_states(name):
    """A pair whose entries are as many as the states is not taken for one that lists every state in
    order.
    """
    for seed in range(3):
        model = deal(seed, sizes=(5, 2, 5, 2, 1), law=None, available=None, terminal=None)
        ambiguity = BALLS[name](0.3, rectangular="s", moves="events")
        found, twin = (
            drmdp.solve(model, ambiguity),
            drmdp.solve(told_apart(model), BALLS[name](0.3, rectangular="s")),
        )
        np.testing.assert_allclose(
            found.value, twin.value[::5], rtol=0, atol=found.gap + twin.gap + 1e-9
        )


def at(model, value, radius, metric, moves="states"):
    return swept(model, Wasserstein(radius, metric, rectangular="s", moves=moves), value)[0]


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.2, 1.0])
def test_events_against_states(radius):
    """l1: the same; l2 and linf: between the ball of states and that of √n and n times the radius,
    n events in a slot at most.
    """
    for seed in range(3):
        model = deal(seed, sizes=(12, 3, 6, 3, 1), law=None)
        value = start(model)
        slots = np.sort(model.rule.next, axis=2)
        n = max(np.bincount(row).max() for row in slots.reshape(-1, 6))

        for metric, more in (("l1", 1), ("l2", math.sqrt(n)), ("linf", n)):
            states, events = (
                at(model, value, radius, metric),
                at(model, value, radius, metric, moves="events"),
            )
            wide = at(model, value, more * radius, metric)
            slack = 1e-10 * np.ptp(value)
            assert (states <= events + slack).all()
            assert (events <= wide + slack).all()
            if radius == 0 or metric == "l1":
                np.testing.assert_allclose(events, states, rtol=0, atol=1e-14 * np.ptp(value))
        table = np.random.default_rng(seed).permuted(np.tile(np.arange(12), (12, 3, 1)), axis=2)[
            :, :, :6
        ]
        apart = Model.from_events(
            12,
            3,
            6,
            lambda s, a, e, table=table: table[s, a, e],
            model.laws,
            discount=0.9,
            costs=np.ones((12, 3)),
        )
        for metric in ("l2", "linf"):
            one, two = (
                swept(apart, Wasserstein(radius, metric, rectangular="s", moves=moves), value)[1]
                for moves in ("states", "events")
            )
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-10 * np.ptp(value))


@pytest.mark.parametrize("priced", [False, True])
def test_table_and_function_have_the_same_bits(priced, monkeypatch):
    from drmdp.model import events

    ambiguity = Wasserstein(0.2, moves="events")
    expected = swept(deal(4, priced), ambiguity, start(deal(4, priced)))
    for form, store, batch in (
        ("numpy", True, 2000),
        ("scalar", False, 2**20),
        ("scalar", False, 1),
    ):
        monkeypatch.setattr(events, "BATCH", batch)
        model = deal(4, priced, form, store)
        for threads in (1, 2):
            one = swept(model, ambiguity, start(model), threads)
            same(one[:-1], expected[:-1])


def test_what_it_says_and_refuses():
    ambiguity = Wasserstein(0.1, moves="events")
    assert (ambiguity.rectangular, ambiguity.short) == ("sa", "(l2, 2) sa events")
    assert (
        repr(ambiguity)
        == "Wasserstein(radius=0.1, metric='l2', order=2, support='observed', rectangular='sa', moves='events')"
    )
    assert Wasserstein(0.1, moves="events", rectangular="s") != Wasserstein(0.1)
    assert ambiguity.with_radius(0.2).moves == "events"
    assert Divergence(0.1, moves="events").rectangular == "sa"
    assert Wasserstein(0.1).rectangular == Divergence(0.1).rectangular == "s"
    model = deal(1)
    with pytest.raises(InputError, match=r"no laws of events; drmdp\.Model\.from_events"):
        drmdp.solve(model.stored(), ambiguity)
    with pytest.raises(InputError, match="moves is 'states' or 'events', got 'laws'"):
        Wasserstein(0.1, moves="laws")
    with pytest.raises(InputError, match="transport is between states"):
        Wasserstein(0.1, "transport", ground=np.zeros((3, 3)), moves="events")
    found = drmdp.solve(model, ambiguity)
    assert ((found.policy == 0) | (found.policy == 1)).all()
    for refused in (
        lambda: drmdp.certify(model, ambiguity, found),
        lambda: drmdp.solve(model, ambiguity, method="first-order"),
        lambda: drmdp.solve(model, ambiguity, nature="cooperative"),
    ):
        with pytest.raises(InputError):
            refused()


def test_saturation_is_where_more_radius_changes_nothing():
    model = deal(3, sizes=(8, 2, 5, 3, 2))
    for ambiguity in (
        Wasserstein(1.0, moves="events"),
        Wasserstein(1.0, moves="events", rectangular="s"),
        Divergence(1.0, "tv", moves="events"),
    ):
        most = float(ambiguity.saturation(model).max())
        one, two = (drmdp.solve(model, ambiguity.with_radius(f * most)).value for f in (1.0, 1.5))
        np.testing.assert_allclose(one, two, rtol=1e-5)
    assert "no other event" in " ".join(
        drmdp.solve(deal(1, sizes=(5, 2, 1, 2, 1)), Wasserstein(1.0, moves="events")).notes
    )


def test_dead_events_with_costs_are_not_in_the_range():
    laws = [[0.5, 0.5, 0.0]]
    model = Model.from_events(
        3, 1, 3, lambda s, a, e: (e + 0 * s * a, 1.0 * e + 0 * s * a), laws, discount=0.5
    )
    assert drmdp.solve(model, Wasserstein(5.0, moves="events")).value.max() == pytest.approx(
        2.0, rel=1e-5
    )
    with pytest.raises(InputError, match="event 2 has probability 0 in every law, and costs"):
        drmdp.solve(model, Wasserstein(5.0, support="all", moves="events"))
    free = Model.from_events(
        3, 1, 3, lambda s, a, e: e + 0 * s * a, laws, discount=0.5, costs=[0.0, 1.0, 2.0]
    )
    assert drmdp.solve(
        free, Wasserstein(5.0, support="all", moves="events")
    ).value.max() == pytest.approx(4.0, rel=1e-5)
