"""A divergence that the package does not know goes where every set must go, by its own three files and one entry."""

import mpmath as mp
import numpy as np
import pytest
import test_registered as contract
from numba import njit
from toy_divergence import ENTRY, proof, rows
from toy_divergence.kind import HELLINGER

import decks
import drmdp
from drmdp.sets import divergence, registry

NAME, FAR = "hellinger", 2.0


def make(model, size, support):
    radius = FAR * model.n_actions * np.asarray(size)
    return drmdp.Divergence(radius if radius.ndim else float(radius), NAME, support=support)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(divergence.KINDS, NAME, HELLINGER)
    monkeypatch.setitem(registry.ENTRIES, (NAME, "mean"), ENTRY)
    monkeypatch.setitem(registry.MAKERS, NAME, registry.MAKERS["kl"])
    monkeypatch.setitem(decks.SETS, NAME, decks.Kind((NAME, "mean"), make))


@contract.SUPPORTS
def test_it_keeps_the_contract(support, tmp_path):
    contract.test_a_set_says_what_it_is(NAME, support)
    contract.test_a_distance_is_zero_at_the_data_and_convex(NAME, support)
    contract.test_engines_agree(NAME, support, "exact")
    contract.test_nothing_that_is_left_in_memory_makes_a_bound_false(NAME, support)
    contract.test_a_set_goes_everywhere(NAME, tmp_path)


def test_it_is_proved_on_every_degeneracy():
    gaps = [decks.judge(case, twin=False).own.max() for case in decks.deck(NAME, 150, 1)]
    assert max(gaps) <= 1e-9


@njit
def ask(function, *arguments):
    return function(*arguments)


def hellinger(z, y):
    return sum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in zip(z, y, strict=True))


def test_its_proofs_hold_in_many_digits():
    """No row gains more than the dual says, and none costs more than is measured."""
    rng = np.random.default_rng(2)
    with mp.workdps(40):
        for _ in range(60):
            K = int(rng.integers(1, 6))
            y = rng.dirichlet(np.ones(K)) * (rng.random(K) < 0.7)
            y[0] += 0.0 if y.sum() > 0 else 1.0
            u, t, z = -rng.random(K), float(10.0 ** rng.uniform(-6, 6)), np.empty(K)
            scale = 1 / y.sum()
            own = [mp.mpf(float(a)) / mp.fsum(map(float, y)) for a in y]
            top = ask(proof.point, t, y, scale, u, z)
            row = [mp.mpf(float(a)) for a in (*z, top)]
            row = [a / mp.fsum(row) for a in row]
            real = hellinger(row, [*own, mp.mpf(0)])
            gain = t * mp.fsum(a * float(b) for a, b in zip(row, u, strict=False)) - real
            bound = ask(proof.dual, t, y, scale, u, 0.0)
            assert gain <= bound
            assert bound - gain < 1e-9 * max(t, 1e-3)
            assert real <= ask(proof.cost, z, top, float(z.sum() + top), y, scale, 0.0)
            value, spent, _ = ask(rows.response, t, y, np.array([scale]), np.ones(1), u, z)
            assert abs(t * value - spent - gain) < 1e-9 * max(t, 1e-3)
