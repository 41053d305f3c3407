"""Perishable stock as De Moor, Gijsbrechts and Boute (European Journal of Operational Research,
2022) describe it, checked by policy iteration in plain NumPy.

Demand is gamma distributed with mean 4 and coefficient of variation 0.5, rounded to whole units and
cut at 100. A unit costs 3 to order, 5 if it is short, 7 if it expires and 1 to hold overnight; up
to 10 are ordered, discount 0.99.
"""

import hashlib

import numba
import numpy as np
import pytest
from scipy.stats import gamma

import drmdp

Q = 10
BASE = Q + 1


def demand(most=100):
    edges = np.hstack([0, np.arange(0.5, most + 1.5)])
    p = np.diff(gamma.cdf(edges, 4.0, scale=1.0))
    p[-1] += 1 - p.sum()
    return p


def stock(life, lead, fifo, events=101):
    """State: on order (lead − 1 digits), then stock from the newest to the oldest."""
    digits = life + lead - 1

    @numba.njit
    def transition(s, a, there, cost):
        x, left_over = np.empty(digits, np.int64), np.empty(life, np.int64)
        for k in range(digits - 1, -1, -1):
            x[k] = s % BASE
            s //= BASE
        for e in range(there.size):
            wanted = e
            for k in range(life):
                age = life - 1 - k if fifo else k
                held = x[lead - 1 + age]
                left_over[age] = max(held - wanted, 0)
                wanted = max(wanted - held, 0)
            t = 0
            for k in range(lead - 1):
                t = t * BASE + (a if k == 0 else x[k - 1])
            t = t * BASE + (a if lead == 1 else x[lead - 2])
            cost[e] = 3.0 * a + 5.0 * wanted + 7.0 * left_over[life - 1]
            for k in range(life - 1):
                t = t * BASE + left_over[k]
                cost[e] += left_over[k]
            there[e] = t

    return drmdp.Model.from_events(
        drmdp.Grid(*[BASE] * digits),
        BASE,
        events,
        transition,
        demand(events - 1)[None],
        discount=0.99,
    )


def by_hand(model):
    """Value and best stakes by policy iteration on dense arrays."""
    n, p = model.n_states, model.laws[0, 0]
    kernel, cost = np.zeros((n, BASE, n)), (model.rule.costs * p).sum(axis=2)
    for e, mass in enumerate(p):
        np.add.at(
            kernel,
            (np.arange(n)[:, None], np.arange(BASE)[None, :], model.rule.next[:, :, e]),
            mass,
        )
    policy = np.zeros(n, int)
    while True:
        own = np.arange(n), policy
        value = np.linalg.solve(np.eye(n) - 0.99 * kernel[own], cost[own])
        stakes = cost + 0.99 * kernel @ value
        better = stakes.argmin(axis=1)
        if (stakes[own] - stakes.min(axis=1)).max() < 1e-9:
            return value, stakes
        policy = better


PUBLISHED = {
    "LIFO": "245307423a08a315edb7eec6d8ec928adf6631f469e72dd753477f83ccb2bad6",
    "FIFO": "4d9f9ee4be14f66045db53af3d4c88a140c1ff5d47663c5ed476344ae289ab89",
    "three days": "09c3b14f4e61e77b147d455332b748f44dd1f80234db7c32efaedfd8e9db497d",
}
"""SHA-256 of the published actions, one byte each in the order of the states: Figure 3 of the paper
(9 × 9 states), and useful life 3, lead time 2, LIFO (all 14 641 states), as the tests of mdpax have
them."""


def digest(actions):
    return hashlib.sha256(np.asarray(actions, np.uint8).tobytes()).hexdigest()


@pytest.mark.fuzz
@pytest.mark.parametrize("moves", ["states", "events"])
def test_three_days_of_life(moves):
    """All actions are the published ones; 10 CPU seconds."""
    solution = drmdp.solve(stock(3, 2, fifo=False), drmdp.Wasserstein(0.0, moves=moves), rtol=1e-9)
    assert digest(solution.policy.argmax(axis=1)) == PUBLISHED["three days"]
    assert solution.value[0] == pytest.approx(1576.9120, abs=1e-4)


@pytest.mark.parametrize(("fifo", "first"), [(False, 1603.5974), (True, 1510.4701)])
def test_two_days_of_life(fifo, first):
    model = stock(2, 1, fifo)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.0), rtol=1e-9)
    actions = solution.policy.argmax(axis=1).reshape(BASE, BASE)[:9, :9]
    assert digest(actions) == PUBLISHED["FIFO" if fifo else "LIFO"]
    value, stakes = by_hand(model)
    assert value[0] == pytest.approx(first, abs=1e-4)
    np.testing.assert_allclose(solution.value, value, rtol=1e-8)
    played = np.take_along_axis(stakes, solution.policy.argmax(axis=1)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(played, stakes.min(axis=1), rtol=0, atol=1e-6)
    best = np.sort(stakes, axis=1)
    clear = best[:, 1] - best[:, 0] > 1e-6  # no tie
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(
        solution.policy.argmax(axis=1)[clear], stakes.argmin(axis=1)[clear]
    )
    np.testing.assert_array_equal(solution.policy.max(axis=1), 1)


def test_a_wrong_law_costs_more():
    model = stock(2, 1, fifo=True)
    nominal, robust = (drmdp.solve(model, drmdp.Wasserstein(radius)) for radius in (0.0, 0.05))
    assert (robust.value > nominal.value).all()
    again = drmdp.evaluate(model, drmdp.Wasserstein(0.05), nominal)
    assert (again.value >= robust.lower).all()
