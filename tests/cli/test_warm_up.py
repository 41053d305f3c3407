"""`drmdp warm-up` compiles what sets need, once, and leaves no process behind."""

import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from numba.core import config

from drmdp import instances
from drmdp.cli import main
from drmdp.sets.registry import ENTRIES

command = sys.modules["drmdp.cli.warm_up"]  # the package has the verb under this name


def run(*sets):
    return CliRunner().invoke(main, ["warm-up", *sets])


def test_every_name_stands_for_a_set_of_its_own():
    model = instances.perturb(instances.garnet(4, 2), 2)
    keys = [make(model).key for make in command.examples().values()]
    assert set(keys) <= set(ENTRIES)
    assert len(set(keys)) == len(keys)


def test_what_is_kept_is_not_compiled_again():
    run("linf-inf")
    found = run("linf-inf", "linf-inf")
    assert found.exit_code == 0
    assert found.stdout.startswith("0 kernels compiled")


def test_what_another_process_keeps_meanwhile_is_not_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    for written in (0, 3):
        other = tmp_path / "drmdp" / f"other-{written}.kernel"
        monkeypatch.setattr(command, "CHILD", f"open({str(other)!r}, 'w').close(); print({written})")
        assert run("l2-2").stdout.startswith(f"{written} kernels compiled")
        assert other.exists()


USUAL = """
import importlib
import drmdp
from drmdp.core.kept import Kept
importlib.import_module("drmdp.cli.warm_up").prepare("l2-2", "float64")
Kept.own.clear()  # names of kernels that no wheel brought
ball = drmdp.Wasserstein(0.1)
others = drmdp.Wasserstein(0.1, support="all"), drmdp.Wasserstein(0.1, rectangular="sa")
large = drmdp.instances.garnet(3000, 3, 4, sparse=True)
drmdp.solve(drmdp.instances.perturb(large, 3, same_support=True), ball, rtol=1e-2)
for sparse, S in ((False, 4), (True, 4), (False, 40)):
    model = drmdp.instances.perturb(drmdp.instances.garnet(S, 3, 4, sparse=sparse), 3)
    for own in (ball, *others):
        found = drmdp.solve(model, own, rtol=1e-3)
        drmdp.evaluate(model, own, found, rtol=1e-3)
        drmdp.certify(model, own, found, found.kernel)
model = drmdp.instances.perturb(drmdp.instances.machine(5), 3)
drmdp.solve(model, ball, nature="cooperative")
drmdp.solve(model, ball, "value-iteration")
drmdp.radius.cross_validate(model, ball, [0.0, 0.1])
drmdp.finite_horizon(model, ball, stages=2)
drmdp.policies.deterministic(model, ball, drmdp.solve(model, ball))
drmdp.policies.values(model, ball, drmdp.solve(model, ball).policy)
print(sorted(Kept.own))
"""


def test_usual_calls_need_nothing_more():
    done = subprocess.run([sys.executable, "-c", USUAL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_every_set_has_its_variants():
    model = instances.perturb(instances.garnet(4, 2), 2)
    counts = {name: len(list(command._variants(make(model)))) for name, make in command.examples().items()}
    assert counts.pop("intervals") == 1
    assert {name: n for name, n in counts.items() if n != (2 if name.startswith("reweighting") else 3)} == {}


def test_bad_names_and_places_are_refused_before_anything_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "CHILD", "raise SystemExit('compiled')")
    assert "unknown set 'l2'; known: l1-1, l2-2" in run("l2-2", "l2").stderr
    (tmp_path / "file").touch()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))
    assert "kernels can be kept nowhere" in run("l2-2").stderr


def test_a_process_that_fails_is_told_and_the_others_end(monkeypatch):
    monkeypatch.setattr(
        command, "CHILD", "import sys, time; sys.argv[1] == 'l1-1' and sys.exit('so it is'); time.sleep(600)"
    )
    begin = time.perf_counter()
    with pytest.raises(RuntimeError, match="l1-1: so it is"):
        list(command._in_processes(["l1-1", "l2-2", "kl"], "float64"))
    assert time.perf_counter() - begin < 500
