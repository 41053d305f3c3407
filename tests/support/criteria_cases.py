"""Problems of criteria with known answers, a random deck with intervals, and its steps in exact
fractions.
"""

from fractions import Fraction

import numpy as np

import drmdp


def grid(n=10, kernels=5, slip=0.2, mud=(33, 34, 43, 44, 65, 66), noise=0.3, discount=1.0):
    """A walk on n × n cells to the last one; steps slip to either side, mud costs 5, kernels are
    noisy copies.
    """
    S, rng, ways = n * n, np.random.default_rng(0), ((-1, 0), (0, 1), (1, 0), (0, -1))
    table = np.zeros((S, 4, S))
    for s in range(S):
        for a in range(4):
            for turn, p in ((0, 1 - slip), (1, slip / 2), (-1, slip / 2)):
                down, right = ways[(a + turn) % 4]
                i, j = s // n + down, s % n + right
                inside = 0 <= i < n and 0 <= j < n
                table[s, a, i * n + j if inside else s] += p
    copies = table * np.exp(noise * rng.standard_normal((kernels, S, 4, S)))
    costs = np.ones((S, 4))
    costs[list(mud)] = 5
    kernels = copies / copies.sum(axis=3, keepdims=True)
    return drmdp.Model(kernels, costs=costs, discount=discount, terminal=[S - 1])


def line(stay):
    """One state that stays with a probability, and an end."""
    return drmdp.Model(
        [[[[stay, 1 - stay]], [[0, 1]]]], costs=[1.0, 0.0], discount=1.0, terminal=[1]
    )


def queue(n=30, kernels=5, spread=0.1):
    """Slots in which a customer arrives, or one of three services ends; waiting costs .2 each."""
    rng, K = np.random.default_rng(0), np.zeros((kernels, n, 3, n))
    for i in range(kernels):
        arrive = 0.45 * np.exp(spread * rng.standard_normal())
        for s in range(n):
            for a, serve in enumerate((0.3, 0.5, 0.7)):
                up, down = arrive * (1 - serve), serve * (1 - arrive)
                for t, p in ((min(s + 1, n - 1), up), (max(s - 1, 0), down), (s, 1 - up - down)):
                    K[i, s, a, t] += p
    return drmdp.Model(
        K, costs=0.2 * np.arange(n)[:, None] + np.array([0.0, 1.0, 3.0]), discount=0.5
    )


def deck(seed):
    """A random model with intervals: ties, traps, slow exits, free loops, costs of one sign or of
    both.
    """
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
    low, high = (
        np.where(mid > 0, np.maximum(mid - width, 0), 0),
        np.where(mid > 0, np.minimum(mid + width, 1), 0),
    )
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
    """F(v) − v, or F^x(v) − v, of an adversarial nature with a box for each pair, in fractions;
    None in terminal states.
    """
    v, out = [Fraction(float(x)) for x in value], []
    for s in range(model.n_states):
        if model.terminal[s]:
            out.append(None)
            continue
        each = []
        for a in range(model.n_actions):
            bounds = [[Fraction(float(x)) for x in table[s, a]] for table in (low, high)]
            each.append(
                Fraction(float(model.costs[s, a]))
                + best(v, +1, *bounds, [x > 0 for x in bounds[1]])
            )
        shares = [] if policy is None else [Fraction(float(p)) for p in policy[s]]
        played = (
            min(each) if policy is None else sum(p * x for p, x in zip(shares, each, strict=True))
        )
        out.append(played - v[s])
    return out
