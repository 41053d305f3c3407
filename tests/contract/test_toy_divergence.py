"""A divergence that the package does not know goes where every set must go, by three functions and
one entry.
"""

import subprocess
import sys
from ctypes import POINTER, c_double
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
import test_registered as contract

import decks
import drmdp
import drmdp_check
from drmdp.certificate import RobustProver
from drmdp.operators.exact import ExactOperator
from drmdp.sets import divergence, registry
from drmdp_check import __main__ as checker

pytest.importorskip("numba")

from toy_divergence import ENTRY, MEAN, functions, region
from toy_divergence.kind import HELLINGER

NAME, FAR = "hellinger", 2.0
VARIANTS = {
    f"{NAME}-{around}{suffix}": {"around": around, "rectangular": rectangular}
    for around in ("mean", "kernels")
    for rectangular, suffix in (("s", ""), ("sa", "-sa"))
}


def make(model, size, support, **settings):
    radius = FAR * model.n_actions * np.asarray(size)
    return drmdp.Divergence(
        radius if radius.ndim else float(radius), NAME, support=support, **settings
    )


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(divergence.KINDS, NAME, HELLINGER)
    monkeypatch.setitem(registry.MAKERS, NAME, registry.MAKERS["kl"])
    for name, settings in VARIANTS.items():
        key = NAME, settings["around"]
        monkeypatch.setitem(registry.ENTRIES, key, MEAN if key[1] == "mean" else ENTRY)
        monkeypatch.setitem(
            decks.SETS, name, decks.Kind(key, lambda *given, own=settings: make(*given, **own))
        )


@contract.SUPPORTS
@pytest.mark.parametrize("name", VARIANTS)
def test_it_keeps_the_contract(name, support, tmp_path):
    contract.test_a_set_says_what_it_is(name, support)
    contract.test_a_distance_is_zero_at_the_data_and_convex(name, support)
    contract.test_engines_agree(name, support, "exact")
    contract.test_nothing_that_is_left_in_memory_makes_a_bound_false(name, support)
    if (
        support == "observed" and "mean" in name
    ):  # around kernels, nobody searches a tuple with a given mean
        contract.test_a_set_goes_everywhere(name, tmp_path)


@contract.SUPPORTS
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_its_proof_is_checked_by_others(rectangular, support, tmp_path, monkeypatch):
    own = contract.model()
    ambiguity = make(own, 0.05, support, rectangular=rectangular)
    drmdp.write(own, tmp_path / "m.npz")
    drmdp.solve(own, ambiguity, tol=1e-8).proof(tmp_path / "p.json")
    with pytest.raises(drmdp_check.Refused, match="cannot check the set 'hellinger'"):
        drmdp_check.check(tmp_path / "p.json", tmp_path / "m.npz")
    monkeypatch.setitem(checker.FAMILIES, NAME, region.Region)
    found = drmdp_check.check(tmp_path / "p.json", tmp_path / "m.npz")
    assert drmdp_check.show(found) == 0
    lower, upper, _, _ = found.bounds[0]
    assert max(map(float, np.subtract(upper, lower))) < 1e-7
    around = make(own, 0.05, support, around="kernels")
    with pytest.raises(
        drmdp.InputError, match="proof: cannot be written for hellinger around kernels yet"
    ):
        drmdp.solve(own, around).proof(tmp_path / "p.json")


STRANGER = """
import sys
from drmdp_check import __main__ as checker
from region import Region
checker.FAMILIES["hellinger"] = Region
code = checker.main()
assert "drmdp" not in sys.modules
sys.exit(code)
"""


def test_a_stranger_checks_it_with_one_file_of_ours(tmp_path):
    own = contract.model()
    drmdp.write(own, tmp_path / "m.npz")
    drmdp.solve(own, make(own, 0.05, "observed")).proof(tmp_path / "p.json")
    files, here = [tmp_path / "p.json", tmp_path / "m.npz"], Path(region.__file__).parent
    command = [sys.executable, "-c", STRANGER, *files]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "hellinger" in done.stdout


@pytest.mark.parametrize("name", VARIANTS)
def test_it_is_proved_on_every_degeneracy(name):
    gaps = [decks.judge(case, twin=False).own.max() for case in decks.deck(name, 200, 1)]
    assert max(gaps) <= 1e-11


def ask(function, *arguments):
    """What a function says of arrays and numbers."""
    return function.ctypes(
        *(
            a.ctypes.data_as(POINTER(c_double)) if isinstance(a, np.ndarray) else a
            for a in arguments
        )
    )


def hellinger(z, y):
    return sum((mp.sqrt(a) - mp.sqrt(b)) ** 2 for a, b in zip(z, y, strict=True))


def test_its_proofs_hold_in_many_digits():
    """No row gains more than the bound says, and none costs more than is measured."""
    rng = np.random.default_rng(2)
    with mp.workdps(40):
        for _ in range(60):
            K = int(rng.integers(1, 6))
            y = rng.dirichlet(np.ones(K)) * (rng.random(K) < 0.7)
            y[0] += 0.0 if y.sum() > 0 else 1.0
            y /= y.sum()
            u, t, z, more = (
                -rng.random(K),
                float(10.0 ** rng.uniform(-6, 6)),
                np.empty(K),
                np.zeros(1),
            )
            own = [mp.mpf(float(a)) / mp.fsum(map(float, y)) for a in y]
            top = ask(functions.row, t, y, u, K, z, more)
            row = [mp.mpf(float(a)) for a in (*z, top)]
            row = [a / mp.fsum(row) for a in row]
            real = hellinger(row, [*own, mp.mpf(0)])
            gain = t * mp.fsum(a * float(b) for a, b in zip(row, u, strict=False)) - real
            bound = ask(functions.bound, t, y, u, K, 8.0)
            assert gain <= bound
            assert bound - gain < 1e-9 * max(t, 1e-3)
            assert real <= ask(functions.cost, y, z, K, top, 8.0)
            ask(functions.row, t * (1 + 1e-6), y, u, K, other := np.empty(K), np.zeros(1))
            assert (other - z) @ u == pytest.approx(more[0] * t * 1e-6, rel=1e-2, abs=1e-13)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_claim_that_spends_too_much_is_pulled_back(name):
    """Multipliers half as large again: rows that cost more than the radius."""
    own = contract.model()
    ambiguity = contract.ambiguity_of(name, own, 0.02).fitted(own)
    update = ExactOperator(own, ambiguity, 1).update(contract.VALUE, 0, 5)
    prover = RobustProver(own, ambiguity, 1)
    honest = prover.prove(contract.VALUE, update.policy, update.claim, False)
    rows = update.claim.by_row.copy()
    rows.reshape(-1, 3)[:, :2] *= 1.5
    found = prover.prove(contract.VALUE, update.policy, update.claim._replace(by_row=rows), False)
    assert found.share.min() < 1.0
    assert (found.lower_step <= honest.upper_step).all()
