"""Models of events give the bits of the stored models that they stand for, whatever says where
events lead and however states are cut.
"""

import math
import pickle

import numba
import numpy as np
import pytest

import decks
import drmdp
from drmdp import Divergence, InputError, Intervals, Model, Reweighting, Wasserstein, _native
from drmdp.certificate import RobustProver
from drmdp.core import threads as workers
from drmdp.layout import event_layout as layouts
from drmdp.model import events
from drmdp.model.events.rules import EventFunction, EventTable
from drmdp.operators.exact import ExactOperator
from drmdp.policies import fixed_kernel, single_kernels

S, A, E, N, C = 24, 3, 6, 4, 2
SETS = {
    "l2": lambda **k: Wasserstein(0.2, **k),
    "l1": lambda **k: Wasserstein(0.2, "l1", **k),
    "linf": lambda **k: Wasserstein(0.2, "linf", **k),
    "l1 inf": lambda **k: Wasserstein(0.2, "l1", math.inf, **k),
    "l2 inf": lambda **k: Wasserstein(0.2, "l2", math.inf, **k),
    "linf 1": lambda **k: Wasserstein(0.1, "linf", 1, **k),
    "l2 sa": lambda **k: Wasserstein(0.2, rectangular="sa", **k),
    "kl": lambda **k: Divergence(0.1, "kl", **k),
    "tv kernels sa": lambda **k: Divergence(0.1, "tv", around="kernels", rectangular="sa", **k),
    "reweighting": lambda support="observed": Reweighting(0.1, "chi2"),
    "cvar": lambda support="observed": Reweighting(kind="cvar", level=0.5),
}

HERE = ("transport-1", "transport-inf", "l1-2")
"""Sets of `decks` that the default suite tries beside those."""


def deal(seed, priced=False, form="numpy", store=None, sizes=(S, A, E, N, C), **given):
    """A random model with classes of laws, laws and weights of 0, closed pairs, ends, and events
    that share next states.
    """
    n, A, E, N, C = sizes
    rng = np.random.default_rng(seed)
    table = rng.integers(0, n, (n, A, E))
    table[rng.random(table.shape) < 0.4] = rng.integers(n)
    table[::2] = np.sort(table[::2], axis=2)  # runs
    laws = rng.dirichlet(np.ones(E), (C, N))
    if E > 3 and N > 1:
        laws[0, :, 1] = 0
        laws[:, 0, 3] = 0
    laws /= laws.sum(axis=2, keepdims=True)
    weights = rng.dirichlet(np.ones(N))
    weights[rng.integers(N)] *= N == 1
    terminal = rng.random(n) < 0.1
    terminal[0] = False
    available = rng.random((n, A)) < 0.8
    available[:, 0] = True
    prices = np.take_along_axis(3 * rng.random((n, A, n)), table, axis=2)
    options = {
        "discount": 0.9,
        "costs": None if priced else rng.random((n, A)),
        "law": rng.integers(0, C, (n, A)),
        "weights": weights / weights.sum(),
        "available": available,
        "terminal": terminal,
        "store": store,
    } | given
    return Model.from_events(
        n, A, E, rule(form, table, prices if priced else None), laws, **options
    )


def rule(form, table, prices):
    if form == "numpy":
        return (
            (lambda s, a, e: table[s, a, e])
            if prices is None
            else lambda s, a, e: (table[s, a, e], prices[s, a, e])
        )
    if form == "row":
        known = np.zeros(table.shape) if prices is None else prices

        @numba.njit
        def row(s, a, there, cost):
            for e in range(there.size):
                there[e] = table[s, a, e]
                cost[e] = known[s, a, e]

        return row
    if prices is None:
        return numba.njit(lambda s, a, e: table[s, a, e])
    return numba.njit(lambda s, a, e: (table[s, a, e], prices[s, a, e]))


def swept(model, ambiguity, value, threads=1):
    """Two sweeps, the policy held in a third, proofs, and nature's chain."""
    operator = ExactOperator(model, ambiguity.fitted(model), threads)
    first = operator.update(value, 0, model.n_states)
    second = operator.update(first.value, 0, model.n_states)
    proof = RobustProver(model, operator.ambiguity, threads).prove(
        first.value, second.policy, second.claim, False
    )
    held = operator.evaluate(second.value, second.policy, 0, model.n_states)
    chain = second.proved(second.policy, proof).chain
    return (
        first.value,
        second.value,
        second.policy,
        proof.lower_step,
        proof.upper_step,
        held.value,
        chain,
    )


def same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def start(model, seed=5):
    return np.where(model.terminal, 0, 4 * np.random.default_rng(seed).random(model.n_states))


@pytest.mark.parametrize("support", ["observed", "all", "state"])
@pytest.mark.parametrize("name", SETS)
def test_sweeps_have_the_bits_of_the_stored_model(name, support):
    ambiguity = SETS[name](support=support)
    for seed, priced in ((1, False), (2, True), (3, False)):
        if priced and support == ambiguity.support != "observed":
            continue
        model = deal(seed, priced)
        same(swept(model, ambiguity, start(model)), swept(model.stored(), ambiguity, start(model)))


@pytest.mark.parametrize("name", decks.often(decks.SETS, HERE))
@pytest.mark.parametrize("support", ["observed", "all", "state"])
def test_so_have_those_of_every_set_whatever_the_threads_and_batches(name, support, monkeypatch):
    """All that are registered; those of intervals, and of transport where events cost, are made of
    arrays.
    """
    kind = decks.SETS[name]
    for seed, priced in (
        (1, False),
        (3, False),
        (5, False),
        *([(2, True)] if support == "observed" else []),
    ):
        model = deal(seed, priced)
        ambiguity = kind.make(model.stored(), 0.3, support).fitted(model)
        arrays = name == "intervals" or (priced and name.startswith("transport"))
        assert isinstance(layouts.layout_of(model, ambiguity), layouts.EventLayout) is not arrays
        expected = swept(model.stored(), ambiguity, start(model))
        with monkeypatch.context() as patch:
            patch.setattr(workers, "SMALL", 0)
            for threads, batch in ((1, 2**22), (3, 1), (2, 2000)):
                patch.setattr(events, "BATCH", batch)
                same(swept(model, ambiguity, start(model), threads), expected)
            same(swept(model.stored(), ambiguity, start(model), 3), expected)


@pytest.mark.parametrize("priced", [False, True])
def test_whoever_tells_where_events_lead(priced):
    ambiguity = Wasserstein(0.2)
    table = deal(4, priced)
    assert isinstance(table.rule, EventTable)
    expected = swept(table, ambiguity, start(table))
    for form in ("numpy", "scalar", *(["row"] if priced else [])):
        for store in (True, False):
            model = deal(4, priced, form, store)
            assert isinstance(model.rule, EventTable if store else EventFunction)
            same(swept(model, ambiguity, start(model)), expected)
            assert model == table
            assert model.tabulate() == table
            assert isinstance(model.tabulate().rule, EventTable)


@pytest.mark.parametrize("name", ["l2", "l1", "kl", "l2 sa"])
@pytest.mark.parametrize("store", [True, False])
def test_threads_and_batches_do_not_matter(name, store, monkeypatch):
    model = deal(6, True, "scalar", store)
    ambiguity = SETS[name]()
    expected = swept(model, ambiguity, start(model))
    monkeypatch.setattr(workers, "SMALL", 0)
    for threads in (1, 2, 3):
        for batch in (1, 2000, 2**20):
            monkeypatch.setattr(events, "BATCH", batch)
            same(swept(model, ambiguity, start(model), threads), expected)


@pytest.mark.parametrize("name", ["l2", "l1 inf", "reweighting"])
def test_solutions_are_those_of_the_stored_model(name):
    for priced in (False, True):
        model = deal(7, priced)
        one, two = drmdp.solve(model, SETS[name]()), drmdp.solve(model.stored(), SETS[name]())
        assert one.status == two.status == "solved"
        np.testing.assert_allclose(one.value, two.value, rtol=0, atol=one.gap + two.gap)
        np.testing.assert_allclose(
            np.asarray(one.kernel).sum(axis=2)[model.available], 1, atol=1e-12
        )
        again = drmdp.evaluate(model, SETS[name](), one)
        np.testing.assert_allclose(again.value, one.value, rtol=1e-5)


# ---------------------------------------------------------------------- costs of events


def remembering(model):
    """A stored model whose states remember what the last event cost: (state, cost of arriving)."""
    table, prices = model.rule.next, model.rule.costs
    n, A, E = table.shape
    places, index = [], {}
    for s in range(n):
        index[s, 0.0] = len(places)
        places.append((s, 0.0))
    for t, x in {(int(t), float(x)) for t, x in zip(table.ravel(), prices.ravel(), strict=True)}:
        index.setdefault((t, x), len(places))
        if (t, x) not in places:
            places.append((t, x))
    y = np.zeros((model.n_kernels, len(places), A, len(places)))
    costs = np.zeros((len(places), A, len(places)))
    for k, (s, _) in enumerate(places):
        for a in range(A):
            for e in range(E):
                there = index[int(table[s, a, e]), float(prices[s, a, e])]
                y[:, k, a, there] += model.laws[0, :, e]
                costs[k, a, there] = prices[s, a, e]
    return Model(y, costs=costs, discount=model.discount, weights=model.weights)


def conflicting(seed=0, n=5):
    rng = np.random.default_rng(seed)
    table, prices = rng.integers(0, 2, (n, 2, 5)), rng.integers(0, 3, (n, 2, 5)).astype(float)
    return Model.from_events(
        n,
        2,
        5,
        lambda s, a, e: (table[s, a, e], prices[s, a, e]),
        rng.dirichlet(np.ones(5), 3),
        discount=0.8,
    )


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.6])
def test_events_that_end_in_the_same_state_at_different_costs_stay_apart(radius):
    model = conflicting()
    for metric in ("l2", "l1", "linf"):
        ambiguity = Wasserstein(radius, metric)
        found = drmdp.solve(model, ambiguity, rtol=1e-9)
        twin = drmdp.solve(remembering(model), ambiguity, rtol=1e-9)
        np.testing.assert_allclose(found.value, twin.value[: model.n_states], rtol=1e-7)
    with pytest.raises(
        InputError,
        match=r"state \d, action \d: events lead to next state \d at .* and at .* one cost",
    ):
        model.stored()


# ---------------------------------------------------------------------- traps


@pytest.mark.parametrize("name", SETS)
def test_as_many_events_as_states(name):
    """Pairs whose events are as many as the states, in no order, are not taken for pairs that list
    every state.
    """
    n = 6
    for seed in range(3):
        model = deal(seed, sizes=(n, 2, n, 3, 1), law=None, available=None, terminal=None)
        table = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (n, 2, 1)), axis=2)
        full = Model.from_events(
            n,
            2,
            n,
            lambda s, a, e, table=table: table[s, a, e],
            model.laws,
            discount=0.9,
            costs=model._prices,
        )
        for one in (model, full):
            same(
                swept(one, SETS[name](), start(one)), swept(one.stored(), SETS[name](), start(one))
            )


@pytest.mark.parametrize(
    "sizes", [(7, 2, 1, 3, 1), (7, 2, 4, 1, 1), (1, 1, 3, 2, 1), (30, 2, 3, 2, 300)]
)
def test_small_and_large_sizes(sizes):
    """One event, one kernel, one state, more classes than a byte holds."""
    model = deal(8, sizes=sizes, terminal=None)
    for name in ("l2", "l1", "linf"):
        same(
            swept(model, SETS[name](), start(model)),
            swept(model.stored(), SETS[name](), start(model)),
        )


def test_rows_that_were_seen_are_the_rows():
    """Many events, more runs than are kept, up and down, several classes: each pair against sums
    over its events.
    """
    rng = np.random.default_rng(11)
    n, A, E, N, C = 400, 3, 70, 3, 2
    table = np.sort(rng.integers(0, n, (n, A, E)) // rng.integers(1, n, (n, A, 1)), axis=2)
    table[1::2] = table[1::2, :, ::-1]
    table[::7] = rng.permuted(table[::7], axis=2)
    laws, law = rng.dirichlet(np.ones(E), (C, N)), rng.integers(0, C, (n, A))
    model = Model.from_events(
        n, A, E, lambda s, a, e: table[s, a, e], laws, discount=0.5, costs=np.ones(n), law=law
    )
    plain = np.zeros((N, n, A, n))
    for e in range(E):
        for a in range(A):
            plain[:, np.arange(n), a, table[:, a, e]] += laws[law[:, a], :, e].T
    blocks = model.stored().blocks
    np.testing.assert_allclose(np.moveaxis(blocks.dense(0, n), 2, 0), plain, rtol=0, atol=1e-15)
    np.testing.assert_array_equal((np.moveaxis(blocks.dense(0, n), 2, 0) > 0), plain > 0)
    for _, last, block, k in model.batches(model.used, 0, n):
        mean = np.zeros(k)
        _native.add_rows(block.data[: N * k], block.indptr[: last * A + 1], model.weights, mean)
        np.testing.assert_array_equal(mean, block.mean[:k])
        assert block.writer.is_full


def test_events_without_probability_are_not_there():
    """Nature has an event that is worst for the agent, and no kernel of positive weight."""
    laws = np.array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25]])
    model = Model.from_events(
        3,
        1,
        3,
        lambda s, a, e: (e + 0 * s * a, 1.0 * e + 0 * s * a),
        laws,
        discount=0.5,
        weights=[1, 0],
    )
    assert drmdp.solve(model, Wasserstein(5.0)).value.max() == pytest.approx(
        2.0, rel=1e-5
    )  # event 1 for ever
    assert drmdp.solve(model.with_laws(laws), Wasserstein(5.0)).value.max() == pytest.approx(
        4.0, rel=1e-5
    )
    np.testing.assert_array_equal(model.choices, 2)
    assert model.cost_range == (0.0, 1.0)


def test_all_events_into_one_state():
    model = Model.from_events(
        3,
        2,
        4,
        lambda s, a, e: 1 + 0 * (s + a + e),
        np.full((2, 4), 0.25),
        discount=0.5,
        costs=[1.0, 2.0, 3.0],
    )
    assert "no room" in " ".join(drmdp.solve(model, Wasserstein(1.0)).notes)
    same(
        swept(model, Wasserstein(1.0), start(model)),
        swept(model.stored(), Wasserstein(1.0), start(model)),
    )


# ---------------------------------------------------------------------- models


def test_other_laws_and_copies():
    model = deal(9, True, "scalar", store=False)
    one = model.with_laws(model.laws[:, 1:3], weights=[0.25, 0.75], kernel_names=["a", "b"])
    assert (one.n_kernels, tuple(one.kernel_names)) == (2, ("a", "b"))
    np.testing.assert_array_equal(
        one.stored().kernels[1].toarray(), model.stored().kernels[2].toarray()
    )
    table = deal(9, True)
    assert pickle.loads(pickle.dumps(table)) == table
    assert table != one
    with pytest.raises(InputError, match=r"laws: expected shape \(N, 6\)"):
        model.with_laws(np.ones((2, 5)) / 5)


def test_rewards_of_events_and_of_pairs():
    table = np.random.default_rng(3).integers(0, 4, (4, 2, 3))
    gain = np.arange(24.0).reshape(4, 2, 3)
    laws = np.full((1, 3), 1 / 3)
    told = Model.from_events(
        4, 2, 3, lambda s, a, e: (table[s, a, e], gain[s, a, e]), laws, discount=0.5, rewards=True
    )
    assert told.maximise
    assert "rewards of events in [0, 23]" in repr(told)
    turned = Model.from_events(
        4, 2, 3, lambda s, a, e: (table[s, a, e], -gain[s, a, e]), laws, discount=0.5
    )
    ambiguity = Wasserstein(0.1)
    np.testing.assert_allclose(
        drmdp.solve(told, ambiguity).value, -drmdp.solve(turned, ambiguity).value, rtol=1e-6
    )
    plain = Model.from_events(
        4, 2, 3, lambda s, a, e: table[s, a, e], laws, discount=0.5, rewards=gain[:, :, 0]
    )
    np.testing.assert_array_equal(plain.stored().rewards, gain[:, :, 0])


def test_grids_name_states():
    grid = drmdp.Grid(3, 4, 5)
    assert (len(grid), grid[0], grid[-1], grid.index(2, 0, 1)) == (60, (0, 0, 0), (2, 3, 4), 41)
    assert [grid.index(*name) for name in grid] == list(range(60))
    np.testing.assert_array_equal(grid.index(*grid.digits(np.arange(60))), np.arange(60))
    assert list(grid[5:7]) == [(0, 1, 0), (0, 1, 1)]
    assert grid == tuple(grid)
    assert repr(grid) == "Grid(3, 4, 5)"
    model = Model.from_events(
        grid,
        ["a", "b"],
        2,
        lambda s, a, e: (s + a + e) % 60,
        [[0.5, 0.5]],
        discount=0.5,
        costs=np.ones((60, 2)),
        terminal=[(0, 0, 0)],
    )
    assert model.states is grid
    assert model.terminal.tolist() == [True] + 59 * [False]
    assert model.policy(dict.fromkeys(grid, "b"))[1].tolist() == [0, 1]
    stored = model.stored()
    named = {"states": tuple(grid), "actions": ["a", "b"], "terminal": model.terminal}
    assert stored == Model(stored.blocks, costs=stored.costs, discount=0.5, **named)
    for bad in ((), (0,), (2.5,), (2**16, 2**16)):
        with pytest.raises(InputError, match="Grid"):
            drmdp.Grid(*bad)
    with pytest.raises(InputError, match="digit 1 is 4, expected 0 … 3"):
        grid.index(0, 4, 0)
    with pytest.raises(InputError, match=r"unknown state \(0, 4, 0\)"):
        Model.from_events(
            grid,
            1,
            1,
            lambda s, a, e: s + a + e,
            [[1.0]],
            discount=0.5,
            costs=np.ones(60),
            terminal=[(0, 4, 0)],
        )


def test_what_is_not_of_this_engine_asks_for_arrays(monkeypatch):
    model = deal(10)
    assert drmdp.solve(model, Wasserstein(0.1), method="first-order", rtol=1e-2).policy.shape == (
        S,
        A,
    )
    assert drmdp.solve(model, Intervals.of(model.stored(), 0.1)).status == "solved"
    assert drmdp.solve(model, Wasserstein(0.1), nature="cooperative").status == "solved"
    assert drmdp.simulate(model, np.eye(A)[np.zeros(S, int)], n=3, steps=2).states.shape == (3, 3)
    monkeypatch.setattr(events, "MOST", 100)
    with pytest.raises(
        InputError, match=r"take .* as arrays, and this asks for them: call model.stored\(\)"
    ):
        _ = deal(10).kernels


def test_a_page_needs_no_arrays(monkeypatch, tmp_path):
    pytest.importorskip("jinja2")
    monkeypatch.setattr(events, "MOST", 100)
    monkeypatch.setattr(fixed_kernel, "ENTRIES", 100)
    monkeypatch.setattr(single_kernels, "WORK", 0)
    model = deal(10)
    drmdp.solve(model, Wasserstein(0.1)).report(tmp_path / "page.html")
    assert "next states of a pair" in (tmp_path / "page.html").read_text()


# ---------------------------------------------------------------------- what is refused

LAWS = [[0.5, 0.5]]


def made(transition, laws=LAWS, costs=((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)), **given):
    return Model.from_events(3, 2, 2, transition, laws, **{"discount": 0.9, "costs": costs} | given)


def stay(s, a, e):
    return s + 0 * (a + e)


@numba.njit
def out_of_range(s, a, e):
    return 3 if s == 2 and a == 1 and e == 1 else 0


@numba.njit
def below(s, a, there, cost):
    there[:] = -1 if s == 1 else 0
    cost[:] = 0.0


@numba.njit
def failing(s, a, e):
    if s == 2:
        raise ValueError("no such thing")
    return 0


@pytest.mark.parametrize("store", [None, True, False])
def test_next_states_outside_are_named(store):
    with pytest.raises(InputError, match=r"transition\(2, 1, 1\) leads to state 3, expected 0 … 2"):
        made(out_of_range, store=store)
    with pytest.raises(
        InputError, match=r"transition\(1, 0, 0\) leads to state -1, expected 0 … 2"
    ):
        made(below, costs=None, store=store)
    with pytest.raises(InputError, match=r"transition\(2, 0, 1\) leads to state 3"):
        made(lambda s, a, e: s + e + 0 * a, store=store)
    with pytest.raises(ValueError, match="no such thing"):
        made(failing, store=store)
    made(out_of_range, available=np.array([[True, True], [True, True], [True, False]]), store=store)


SLIPS = {
    "floats": (
        {"transition": lambda s, a, e: s / 2 + a + e},
        "next states are float64, expected whole numbers",
    ),
    "shape": (
        {"transition": lambda s, a, e: np.zeros((5, 5), int)},
        r"expected \(3, 2, 2\), got \(5, 5\)",
    ),
    "no function": ({"transition": 3}, "transition: expected a function"),
    "costs twice": (
        {"transition": lambda s, a, e: (stay(s, a, e), 1.0)},
        "transition tells costs of its own",
    ),
    "no costs": ({"transition": stay, "costs": None}, "transition tells none, and none were given"),
    "NaN": (
        {
            "transition": lambda s, a, e: (stay(s, a, e), np.where(s == 1, np.nan, 1.0)),
            "costs": None,
        },
        r"transition\(1, 0, 0\) costs nan",
    ),
    "law shape": (
        {"transition": stay, "laws": [[0.5, 0.25, 0.25]]},
        r"laws: expected shape \(N, 2\) .* got \(1, 3\)",
    ),
    "law sum": ({"transition": stay, "laws": [[0.5, 0.5], [0.5, 0.4]]}, "law 1 sums to 0.9"),
    "law negative": ({"transition": stay, "laws": [[1.5, -0.5]]}, r"law 0, event 1 has -0\.5"),
    "law NaN": (
        {"transition": stay, "laws": [[np.nan, 1.0]]},
        "laws must be finite: law 0, event 0 has nan",
    ),
    "classes": ({"transition": stay, "laws": [LAWS, LAWS]}, "law: there are 2 classes"),
    "class": (
        {"transition": stay, "laws": [LAWS, LAWS], "law": lambda s, a: s + 0 * a},
        r"law\(2, 0\) is 2, expected 0 … 1",
    ),
    "cost shape": (
        {"transition": stay, "costs": np.ones((2, 2))},
        r"costs: expected shape \(3, 2\)",
    ),
    "cost inf": (
        {"transition": stay, "costs": np.full((3, 2), np.inf)},
        "costs must be finite: state 0, action 0 has inf",
    ),
    "stuck": (
        {"transition": stay, "available": np.zeros((3, 2), bool)},
        "state 0 has no available action",
    ),
    "discount": ({"transition": stay, "discount": 1.5}, "discount"),
    "weights": ({"transition": stay, "weights": [0.5, 0.5]}, "weights: expected shape"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_slips_are_told_before_any_sweep(name):
    given, message = SLIPS[name]
    with pytest.raises(InputError, match=message):
        made(**given)
