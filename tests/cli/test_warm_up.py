"""`drmdp warm-up` compiles what sets need, once, and leaves no process behind."""

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


def test_bad_names_and_places_are_refused_before_anything_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "CHILD", "raise SystemExit('compiled')")
    assert "unknown set 'l2'; known: l1-1, l2-2" in run("l2-2", "l2").stderr
    (tmp_path / "file").touch()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))
    assert "kernels can be kept nowhere" in run("l2-2").stderr


def test_a_process_that_fails_is_told_and_the_others_end(monkeypatch):
    monkeypatch.setattr(
        command, "CHILD", "import sys, time; sys.argv[1] == 'l1-1' and sys.exit('so it is'); time.sleep(60)"
    )
    begin = time.perf_counter()
    with pytest.raises(RuntimeError, match="l1-1: so it is"):
        list(command._in_processes(["l1-1", "l2-2", "kl"], "float64"))
    assert time.perf_counter() - begin < 50
