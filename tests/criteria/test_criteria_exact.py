"""Certificates of totals and averages in exact fractions, and bounds against long plain iteration."""

from fractions import Fraction

import numpy as np
import pytest

import drmdp
from drmdp.bellman.build import build
from drmdp.model import changed
from drmdp.solution import Status

MOST, PROBLEMS = 4000, 6


def deck(seed):
    """A random model with intervals: ties, traps, slow exits, free loops, costs of one sign or of both."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    mid = rng.dirichlet(np.full(S, 0.4), size=(S, A))
    mid[mid < 0.02] = 0
    if seed % 3 == 0:  # leaves slowly
        mid[0] = np.eye(S)[0] * (1 - 10.0 ** -rng.integers(1, 9))
        mid[0, :, S - 1] += 1 - mid[0].sum(axis=1)
    if seed % 4 == 1:  # to a neighbour, surely
        mid[: S - 1, 0] = np.eye(S)[(np.arange(S - 1) + 1) % (S - 1)]
    mid[..., S - 1] += 1e-3 * (mid[..., S - 1] == 0) * (rng.random((S, A)) < 0.8)
    mid /= mid.sum(axis=2, keepdims=True)
    width = rng.choice([0.0, 0.01, 0.1, 0.4])
    low, high = np.where(mid > 0, np.maximum(mid - width, 0), 0), np.where(mid > 0, np.minimum(mid + width, 1), 0)
    kinds = ([1.0, 2.0], [0.0, 1.0], [-1.0, 1.0, 2.0], [1e-3, 1.0, 100.0])
    costs = rng.choice(kinds[seed % 4], size=(S, A))
    if seed % 4 == 1:
        costs[:, 0] = 0
    return mid, low, high, costs


def best(row, sign, low, high, free):
    """max (min) of row·y between bounds, exactly: what is free goes to the best first."""
    y, rest = list(low), 1 - sum(low)
    for t in sorted(range(len(row)), key=lambda t: -sign * row[t]):
        if not free[t]:
            continue
        more = min(rest, high[t] - y[t])
        y[t], rest = y[t] + more, rest - more
    assert abs(rest) <= Fraction(1, 10**12)  # bounds without room count as divided by their sum
    return sum(p * z for p, z in zip(y, row, strict=True)) / sum(y)


def exact_steps(model, low, high, value, policy=None):
    """F(v) − v, or F^x(v) − v, of an adversarial nature with a box for each pair, in fractions; None in terminal states."""
    v, out = [Fraction(float(x)) for x in value], []
    for s in range(model.n_states):
        if model.terminal[s]:
            out.append(None)
            continue
        each = []
        for a in range(model.n_actions):
            bounds = [[Fraction(float(x)) for x in table[s, a]] for table in (low, high)]
            each.append(Fraction(float(model.costs[s, a])) + best(v, +1, *bounds, [x > 0 for x in bounds[1]]))
        shares = [] if policy is None else [Fraction(float(p)) for p in policy[s]]
        played = min(each) if policy is None else sum(p * x for p, x in zip(shares, each, strict=True))
        out.append(played - v[s])
    return out


@pytest.mark.parametrize("seed", range(60))
def test_certificates_of_totals_hold_in_fractions(seed):
    mid, low, high, costs = deck(seed)
    S = len(mid)
    model = drmdp.Model(mid[None], costs=costs, discount=1.0, terminal={S - 1: float(seed % 3)})
    try:
        found = drmdp.solve(model, drmdp.Intervals(low, high), max_iters=60, threads=1)
    except drmdp.InputError:
        return
    live, slack = ~model.terminal, Fraction(1, 10**15)
    below, above = found.sweeps
    assert (found.lower <= found.upper).all()
    if np.isfinite(found.upper[live]).all():
        steps = exact_steps(model, low, high, above.value, above.update.policy)
        for s in np.flatnonzero(live):
            assert steps[s] < 0
            assert Fraction(float(above.value[s])) + steps[s] <= Fraction(float(found.upper[s])) * (1 + slack) + slack
    if below is not None:
        steps = exact_steps(model, low, high, below.value)
        for s in np.flatnonzero(live):
            assert steps[s] >= 0
            assert Fraction(float(found.lower[s])) <= Fraction(float(below.value[s])) + steps[s] + slack
    if found.status is Status.solved:
        assert found.gap <= 1e-6 * found.scale


@pytest.mark.parametrize("seed", range(20))
def test_certificates_of_averages_hold_in_fractions(seed):
    mid, low, high, costs = deck(seed)
    model = drmdp.Model(mid[None], costs=costs, discount=0.9)
    found = drmdp.solve(model, drmdp.Intervals(low, high), criterion="average", max_iters=60, threads=1)
    below, above = found.sweeps
    most = max(exact_steps(model, low, high, above.value, above.update.policy))
    least = min(exact_steps(model, low, high, below.value))
    assert max(least, Fraction(min(0.0, costs.min()))) >= Fraction(float(found.lower[0]))  # nothing is beyond all costs
    assert min(most, Fraction(max(0.0, costs.max()))) <= Fraction(float(found.upper[0]))


SETS = {
    "l1": drmdp.Wasserstein(0.1, "l1"), "l2": drmdp.Wasserstein(0.1), "linf": drmdp.Wasserstein(0.05, "linf"), "kl": drmdp.Divergence(0.02, "kl"),
    "chi2": drmdp.Divergence(0.02, "chi2"), "burg": drmdp.Divergence(0.02, "burg"), "tv": drmdp.Divergence(0.05, "tv"),
    "reweighting": drmdp.Reweighting(0.1, "kl"), "l2 sa": drmdp.Wasserstein(0.1, rectangular="sa"),
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_totals_and_averages_against_long_plain_iteration(name):
    """From 0 costs that are not negative rise to the total; an average is what n steps cost more than n − 1, in a process that pauses."""
    ball = SETS[name]
    for seed in range(PROBLEMS):
        rng = np.random.default_rng(seed)
        S, A, N = int(rng.integers(3, 8)), int(rng.integers(1, 4)), 3
        K = rng.dirichlet(np.full(S, 0.7), size=(N, S, A))
        costs = rng.uniform(0.1, 2, size=(S, A))
        model = drmdp.Model(K, costs=costs, discount=1.0, terminal=[S - 1])
        nature = "cooperative" if seed % 2 else "adversarial"
        found = drmdp.solve(model, ball, nature=nature, threads=1)
        assert found.status is Status.solved
        operator = build(model, ball.facing(nature), "exact", 1)
        value = np.zeros(S)
        for _ in range(MOST):
            new = operator.update(value, 0, S).value
            if np.abs(new - value).max() <= 1e-13 * found.scale:
                break
            value = new
        assert (found.lower <= value + 1e-9 * found.scale).all()
        assert (value <= found.upper + 1e-9 * found.scale).all()
        endless = changed(drmdp.Model(K, costs=costs, discount=0.9), discount=1.0)
        gain = drmdp.solve(endless, ball, criterion="average", nature=nature, threads=1)
        assert gain.status is Status.solved
        operator, h = build(endless, ball.facing(nature), "exact", 1), np.zeros(S)
        for _ in range(MOST):
            step = operator.update(h, 0, S).value - h
            if np.ptp(step) <= 1e-11:
                break
            h = h + step / 2
            h -= h[0]
        assert gain.lower[0] <= step.max() + 1e-9
        assert gain.upper[0] >= step.min() - 1e-9


def test_loops_that_cost_nothing():
    """Every state can go to a neighbour for nothing; the value is that of arriving, and the certificate is exact."""
    solved = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        S = int(rng.integers(5, 12))
        mid = rng.dirichlet(np.full(S, 0.5), size=(S, 3))
        mid[..., S - 1] += 0.02
        mid /= mid.sum(axis=2, keepdims=True)
        mid[: S - 1, 2] = np.eye(S)[(np.arange(S - 1) + 1) % (S - 1)]
        low, high = np.where(mid < 1, 0.7 * mid, mid), np.where(mid < 1, np.minimum(1.3 * mid, 1), mid)
        costs = rng.integers(1, 10, size=(S, 3)) * 1.0
        costs[: S - 1, 2] = 0
        model = drmdp.Model(mid[None], costs=costs, discount=1.0, terminal=[S - 1])
        found = drmdp.solve(model, drmdp.Intervals(low, high), threads=1)
        solved += found.status is Status.solved
        assert any("costs nothing; the value is that of arriving" in note for note in found.notes)
        below, above = found.sweeps
        assert all(x is None or x >= 0 for x in exact_steps(model, low, high, below.value))
        assert all(x is None or x < 0 for x in exact_steps(model, low, high, above.value, above.update.policy))
    assert solved == 12
