"""Row models: the response is what the definition says, and the proof of a row holds for every price."""

import mpmath as mp
import numpy as np
import pytest
from numba import njit

from drmdp.bellman.rows import burg, chi2, kl
from drmdp.certificate.rows import burg as proof_burg
from drmdp.certificate.rows import chi2 as proof_chi2
from drmdp.certificate.rows import kl as proof_kl

MODELS = {"kl": (kl, proof_kl), "chi2": (chi2, proof_chi2), "burg": (burg, proof_burg)}
KINDS = pytest.mark.parametrize("kind", MODELS)


@njit
def _ask(function, *arguments):
    return function(*arguments)


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


@KINDS
def test_a_response_is_the_best_row(kind):
    response, fill = MODELS[kind][0].response, MODELS[kind][0].fill
    with mp.workdps(40):
        for _, t, y, u in deal(30, 1):
            scale, one, z = np.array([1 / y.sum()]), np.ones(1), np.empty(u.size)
            value, spent, slope = _ask(response, t, y, scale, one, u, z)
            own, stakes = exact(y, u)
            want = best(kind, t, own, stakes)
            assert abs(value - sum(a * b for a, b in zip(want, stakes, strict=True))) < 1e-14
            assert abs(spent - cost(kind, want, own)) < 1e-14 * max(t, 1e-2 * float(spent))
            more, _, _ = _ask(response, t * (1 + 1e-6), y, scale, one, u, z)
            assert slope >= 0
            assert abs((more - value) / (t * 1e-6) - slope) <= 1e-3 * slope + 1e-8 / t
            top = _ask(fill, t, y, scale[0], u, z)
            assert max(abs(a - b) for a, b in zip([*z, top], want, strict=True)) < 1e-13


@KINDS
@pytest.mark.parametrize("t", [0.5, 0.5 + 2**-50, 1 - 2**-53, 1.0, 1 + 2**-52])
@pytest.mark.parametrize("top", [1e-18, 1e-16, 1e-12])
def test_a_top_that_was_hardly_seen(kind, t, top):
    """Where e − t u of the top is about as small as its mass, and that less than rounding."""
    y, u = np.array([1 - top, top]), np.array([-1.0, 0.0])
    value, spent, _ = _ask(MODELS[kind][0].response, t, y, np.ones(1), np.ones(1), u, np.empty(2))
    bound = _ask(MODELS[kind][1].dual, t, y, 1.0, u, 0)
    with mp.workdps(40):
        own, stakes = [mp.mpf(a) for a in [*y.tolist(), 0.0]], [mp.mpf(a) for a in [*u.tolist(), 0.0]]
        want = best(kind, t, [a / sum(own) for a in own], stakes)
        assert abs(value - sum(a * b for a, b in zip(want, stakes, strict=True))) < 1e-9
        assert abs(spent - cost(kind, want, own)) < 1e-9
        assert 0 <= bound + t * mp.fdot(want, [1, 0, 0]) + cost(kind, want, own) < 1e-13


@KINDS
def test_rows_are_added_with_weights_and_end_saturated(kind):
    module = MODELS[kind][0]
    for rng, t, y, u in deal(30, 2):
        rows = np.stack([y, rng.permutation(y)])
        w, scale, z = np.array([0.3, 0.7]), 1 / rows.sum(axis=1), np.empty(u.size)
        each = [_ask(module.response, t, row, scale[k : k + 1], np.ones(1), u, z) for k, row in enumerate(rows)]
        np.testing.assert_allclose(
            _ask(module.response, t, rows.ravel(), scale, w, u, z), w @ np.array(each), rtol=0, atol=1e-12 * max(1, t)
        )
        far, spent = _ask(module.saturated, rows.ravel(), scale, w, u, z)
        value, below, _ = _ask(module.response, 1e12, rows.ravel(), scale, w, u, z)
        assert value <= far + 1e-12
        assert kind == "burg" or (far - value < 1e-6 and below <= spent + 1e-7 * (1 + spent))


@KINDS
def test_a_proof_of_a_row_holds(kind):
    """In 40 digits; near the best price it is tight, and margins grow with t, not with 1."""
    module = MODELS[kind][1]
    with mp.workdps(40):
        for rng, t, y, u in deal(40, 3):
            scale, z = 1 / y.sum(), np.empty(u.size)
            own, stakes = exact(y, u)
            want = best(kind, t, own, stakes)
            h = t * sum(a * b for a, b in zip(want, stakes, strict=True)) - cost(kind, want, own)
            bound = _ask(module.dual, t, y, scale, u, 0)
            assert h <= bound
            assert bound - h < 1e-13 * t
            top = _ask(module.point, t, y, scale, u, z)
            part = rng.random()
            z, top = part * z + (1 - part) * scale * y, part * top
            mass = float(z.sum() + top)
            tuple_ = [mp.mpf(float(a)) for a in [*z, top]]
            real = cost(kind, [a / sum(tuple_) for a in tuple_], own)
            measured = _ask(module.cost, z, top, mass, y, scale, 0)
            assert real <= measured
            assert measured - real < 1e-13 * max(float(mp.sqrt(real)), float(real)) + 1e-26


@KINDS
def test_a_row_that_has_lost_nearly_all_of_an_entry_costs_no_less(kind):
    """What is left of it may be 1e-14 of what it was: 1 + (z/ŷ − 1) has two digits then."""
    module, rng = MODELS[kind][1], np.random.default_rng(5)
    with mp.workdps(40):
        for _ in range(60):
            y = rng.dirichlet(np.ones(3))
            z = y * np.array([10.0 ** rng.uniform(-15, -3), 1.0, 1.0])
            mass = float(z.sum())
            own, exactly = exact(y, np.zeros(3))[0], [mp.mpf(float(a)) for a in [*z, 0.0]]
            real = cost(kind, [a / sum(exactly) for a in exactly], own)
            measured = _ask(module.cost, z, 0.0, mass, y, 1 / y.sum(), 0)
            assert real <= measured
            assert measured - real < 1e-12


@KINDS
def test_the_margins_are_needed(kind, monkeypatch):
    """Without them some bound is false."""
    module = MODELS[kind][1]
    monkeypatch.setattr(module, "EPS", 0.0)
    dual, measure = njit(module.dual.py_func), njit(module.cost.py_func)
    if kind in ("chi2", "burg"):
        monkeypatch.setattr(module, "_threshold", njit(module._threshold.py_func))
    false = 0
    with mp.workdps(40):
        for _, t, y, u in deal(25, 4):
            own, stakes = exact(y, u)
            want = best(kind, t, own, stakes)
            h = t * sum(a * b for a, b in zip(want, stakes, strict=True)) - cost(kind, want, own)
            false += dual(t, y, 1 / y.sum(), u, 0) < h
            z = np.array([float(a) for a in want])
            mass = float(z.sum())
            real = cost(kind, [mp.mpf(a) / sum(map(mp.mpf, z.tolist())) for a in z.tolist()], own)
            false += measure(z[:-1], z[-1], mass, y, 1 / y.sum(), 0) < real
    assert false > 5


@KINDS
def test_a_row_that_the_model_does_not_allow_costs_everything(kind):
    module, y = MODELS[kind][1], np.array([0.5, 0.5, 0.0])
    new = _ask(module.cost, np.array([0.4, 0.4, 0.2]), 0.0, 1.0, y, 1.0, 0)
    far = _ask(module.cost, np.array([0.5, 0.3, 0.0]), 0.2, 1.0, y, 1.0, 0)
    lost = _ask(module.cost, np.array([1.0, 0.0, 0.0]), 0.0, 1.0, y, 1.0, 0)
    assert np.isinf([new, far]).all() == (kind in ("kl", "chi2"))
    assert np.isinf(lost) == (kind == "burg")
