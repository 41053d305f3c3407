"""A budget for each pair, laws moved: one-action models, exact fractions, and the ball whose budget
is one for all actions.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.events.test_events import deal, start

import drmdp
from drmdp import Model, Wasserstein

BALLS = [("l1", 1), ("l2", 2), ("linf", math.inf), ("l1", math.inf), ("l2", math.inf), ("linf", 1)]


def plain(seed, priced):
    return deal(seed, priced, sizes=(10, 3, 6, 3, 1), law=None, available=None, terminal=None)


def alone(model, a):
    """The model with action a only."""
    table, prices = (
        model.rule.next[:, [a]],
        None if model.rule.costs is None else model.rule.costs[:, [a]],
    )
    given = {"discount": model.discount, "weights": model.weights}
    if prices is None:
        return Model.from_events(
            10,
            1,
            6,
            lambda s, _, e: table[s, 0, e],
            model.laws,
            costs=model._prices[:, [a]],
            **given,
        )
    return Model.from_events(
        10, 1, 6, lambda s, _, e: (table[s, 0, e], prices[s, 0, e]), model.laws, **given
    )


@pytest.mark.parametrize("moves", ["states", "events"])
@pytest.mark.parametrize("ambiguity", BALLS, ids=str)
def test_a_budget_for_each_pair_is_that_of_one_action_models(ambiguity, moves):
    for seed, priced in ((1, False), (2, True)):
        model = plain(seed, priced)
        value = start(model)
        each, shared = (
            drmdp.bellman(model, Wasserstein(0.2, *ambiguity, rectangular=r, moves=moves), value)
            for r in ("sa", "s")
        )
        apart = [
            drmdp.bellman(alone(model, a), Wasserstein(0.2, *ambiguity, moves=moves), value).value
            for a in range(3)
        ]
        np.testing.assert_allclose(each.value, np.min(apart, axis=0), rtol=0, atol=1e-9)
        assert ((each.policy == 0) | (each.policy == 1)).all()
        assert (each.value >= shared.value - 1e-9).all()
        if ambiguity == ("linf", math.inf):
            np.testing.assert_allclose(each.value, shared.value, rtol=0, atol=1e-9)
        elif ambiguity[0] != "linf":
            assert (each.value > shared.value + 1e-4).any()


def test_three_states_in_fractions():
    """l1: half the radius of mass goes from the cheapest events to the dearest; all numbers are
    exact in binary.
    """
    table = np.array(
        [[[1, 2, 0, 1], [2, 2, 1, 0]], [[0, 0, 1, 2], [1, 0, 0, 2]], [[2, 1, 1, 1], [0, 2, 2, 1]]]
    )
    prices = np.arange(24).reshape(3, 2, 4) * 5 % 8 / 4
    law, radius, value = (
        [Fraction(k, 8) for k in (1, 3, 2, 2)],
        Fraction(1, 2),
        [Fraction(k, 4) for k in (3, 9, 5)],
    )
    expected = []
    for s in range(3):
        worst = []
        for a in range(2):
            stake = [Fraction(float(prices[s, a, e])) + value[table[s, a, e]] / 2 for e in range(4)]
            order, left, p = (
                sorted(range(4), key=lambda e, stake=stake: stake[e]),
                radius / 2,
                list(law),
            )
            for e in order[:-1]:
                moved = min(left, p[e])
                p[e], p[order[-1]], left = p[e] - moved, p[order[-1]] + moved, left - moved
            worst.append(sum(q * z for q, z in zip(p, stake, strict=True)))
        expected.append(min(worst))
    model = Model.from_events(
        3,
        2,
        4,
        lambda s, a, e: (table[s, a, e], prices[s, a, e]),
        [[float(q) for q in law]],
        discount=0.5,
    )
    found = drmdp.bellman(
        model, Wasserstein(0.5, "l1", 1, moves="events"), [float(v) for v in value]
    )
    for s in range(3):
        assert Fraction(float(found.lower[s])) <= expected[s] <= Fraction(float(found.upper[s]))
        assert found.value[s] == pytest.approx(float(expected[s]), abs=1e-12)
