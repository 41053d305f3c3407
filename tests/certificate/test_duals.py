"""Conjugates of divergences, as proofs of dense data take them: bounds for every price, tight at the best one."""

import mpmath as mp
import numpy as np
import pytest

from drmdp.certificate import duals

KINDS = pytest.mark.parametrize("kind", ["kl", "chi2", "burg"])


def bound_of(kind, t, y, u):
    """That of one row, margin included."""
    own = (y / y.sum())[None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return float(getattr(duals, f"_{kind}")(np.array([[t]]), own, u[None], 5.0 * y.size + 36.0)[0])


def cost(kind, z, y):
    """C by its definition, in 40 digits."""
    pairs = [(a, b) for a, b in zip(z, y, strict=True) if (a > 0 if kind == "kl" else b > 0)]
    if kind == "kl":
        return sum(a * mp.log(a / b) for a, b in pairs)
    if kind == "chi2":
        return sum((a - b) ** 2 / b for a, b in pairs) / 2
    return sum(b * mp.log(b / a) for a, b in pairs)


def best(kind, t, y, u):
    """The row that maximises t z·u − C in 40 digits; the last entry is a top that is not listed."""
    t = mp.mpf(t)
    if kind == "kl":
        z = [a * mp.e ** (t * b) for a, b in zip(y, u, strict=True)]
    elif kind == "chi2":
        seen = sorted({b for a, b in zip(y, u, strict=True) if a > 0})
        for cut in seen:  # the active entries are those from a stake on
            inside = [(a, b) for a, b in zip(y, u, strict=True) if a > 0 and b >= cut]
            mass = sum(a for a, _ in inside)
            eta = 1 + (t * sum(a * b for a, b in inside) - 1) / mass
            if 1 + t * cut > eta:
                break
        z = [max(a * (1 + t * b - eta), 0) for a, b in zip(y, u, strict=True)]
    else:
        low, high = mp.mpf(0), 1 + t
        seen_at_top = any(a > 0 and b == 0 for a, b in zip(y, u, strict=True))

        def mass(e):
            return sum(a / (e - t * b) for a, b in zip(y, u, strict=True) if a > 0)

        if not seen_at_top and mass(low) <= 1:
            high = low
        while high - low > mp.mpf(10) ** -36 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if mass(middle) < 1 else (middle, high)
        z = [a / (high - t * b) if a > 0 else mp.mpf(0) for a, b in zip(y, u, strict=True)]
        z[-1] += 1 - sum(z)
        return z
    return [a / sum(z) for a in z]


def deal(n, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        K = int(rng.integers(1, 8))
        y = rng.dirichlet(np.full(K, rng.choice([0.1, 1.0, 5.0])))
        y[rng.random(K) < 0.3] = 0
        y[0] += y.sum() == 0
        u = -rng.random(K)
        u = np.round(u, 1) if rng.random() < 0.3 else u
        u[rng.integers(K)] *= rng.random() < 0.4
        yield rng, float(10 ** rng.uniform(-8, 5)), y, u


def exact(y, u):
    """The same in 40 digits, with a top that was never seen."""
    y, u = [mp.mpf(float(a)) for a in y] + [mp.mpf(0)], [mp.mpf(float(a)) for a in u] + [mp.mpf(0)]
    return [a / sum(y) for a in y], u


def conjugate(kind, t, y, u):
    """h(t) in 40 digits."""
    own, stakes = exact(y, u)
    want = best(kind, t, own, stakes)
    return t * sum(a * b for a, b in zip(want, stakes, strict=True)) - cost(kind, want, own)


@KINDS
def test_a_conjugate_is_bounded(kind):
    """Margins grow with t, not with 1."""
    with mp.workdps(40):
        for _, t, y, u in deal(60, 3):
            h, bound = conjugate(kind, t, y, u), bound_of(kind, t, y, u)
            assert h <= bound
            assert bound - h < 1e-13 * t


@KINDS
@pytest.mark.parametrize("t", [0.5, 0.5 + 2**-50, 1 - 2**-53, 1.0, 1 + 2**-52])
@pytest.mark.parametrize("top", [1e-18, 1e-16, 1e-12])
def test_a_top_that_was_hardly_seen(kind, t, top):
    """Where e − t u of the top is about as small as its mass, and that less than rounding."""
    y, u = np.array([1 - top, top]), np.array([-1.0, 0.0])
    with mp.workdps(40):
        assert 0 <= bound_of(kind, t, y, u) - conjugate(kind, t, y, u) < 1e-13


@KINDS
def test_the_margins_are_needed(kind, monkeypatch):
    """Without them some bound is false."""
    monkeypatch.setattr(duals, "EPS", 0.0)
    with mp.workdps(40):
        assert sum(bound_of(kind, t, y, u) < conjugate(kind, t, y, u) for _, t, y, u in deal(40, 4)) > 5
