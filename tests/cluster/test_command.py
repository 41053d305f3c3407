"""Ray from the command line, as a newcomer types it: a run, Ctrl-C, and what goes on with it."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest

import deaths
import drmdp
import ranges

pytestmark = pytest.mark.cluster

RAY = ("--cluster", "ray", "--workers", "2")
BALL = ("--radius", "0.1", "--rtol", "1e-6")


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a command in an empty directory, with a model beside it, in a process group of its
    own; when it ends, nothing of it may be left.
    """
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    mark = uuid.uuid4().hex
    monkeypatch.setenv(deaths.MARK, mark)
    drmdp.write(
        ranges.model("terminal", "rewards", S=ranges.LARGE, A=2, N=2, discount=0.95),
        "../model.drmdp",
    )

    def begin(*words):
        command = [sys.executable, "-m", "drmdp", *words]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # who runs in the background is deaf, and so would be its children
    yield begin
    signal.signal(signal.SIGINT, before)
    monkeypatch.delenv(deaths.MARK)
    assert deaths.all_gone(mark) == []


def test_a_run_that_is_stopped_is_resumed_with_the_same_bits(start):
    plan = start("solve", "../model.drmdp", *BALL, *RAY, "--dry-run", "--json")
    assert json.loads(plan.communicate()[0])["ranges"] == 2
    first = start("solve", "../model.drmdp", *BALL, *RAY, "--checkpoint", "run", "--out", "found")
    for line in first.stderr:
        if "iteration 0" in line:
            os.killpg(first.pid, signal.SIGINT)
            break
    told, complaints = first.communicate(timeout=300)
    if first.returncode != 0:  # it may have been done
        assert first.returncode == 130, complaints
        assert "interrupted; the bounds hold" in told
    assert "Traceback" not in complaints
    then = start("resume", "run", *RAY)
    told, complaints = then.communicate(timeout=300)
    assert then.returncode == 0, complaints
    assert "Ray(workers=2" in told
    want = drmdp.solve(drmdp.read("../model.drmdp"), drmdp.Wasserstein(0.1), rtol=1e-6)
    assert ranges.digest(drmdp.Solution.load("found")) == ranges.digest(want)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.1, 1.6, 2.3, 3.5])
def test_ctrl_c_while_ray_is_loaded_ends_everything(start, moment):
    run = start("solve", "../model.drmdp", *BALL, *RAY)
    assert "opening the model" in run.stderr.readline() + run.stderr.readline()
    time.sleep(moment)
    os.killpg(run.pid, signal.SIGINT)
    told, complaints = run.communicate(timeout=300)
    if run.returncode != 0:  # it may have been done
        assert run.returncode == 130, (told, complaints)
        if "interrupted" not in told:  # not yet at work
            assert complaints.splitlines()[-1] == "drmdp: error: interrupted"
    assert "Traceback" not in complaints
