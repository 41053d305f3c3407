"""Workers of a parallel run share what is compiled: two processes do that ahead, or each worker would do all of it."""

import contextlib
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from drmdp.cluster.session import prepare
from drmdp.core import progress

HALVES = (("l2-2", "l2-inf", "l1-1", "linf-inf"), ("l1-inf", "linf-1"))
"""About as much work each."""


def pytest_configure(config):
    os.environ.setdefault("DRMDP_TRACEBACK", "1")  # a fault of the command line is seen as one
    if not getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        return
    jobs = []
    for half in HALVES:
        pairs = [(*name.split("-"), True) for name in half]
        command = f"from drmdp_lab.paper.runner import compile_pairs; compile_pairs({pairs!r})"
        jobs.append(subprocess.Popen([sys.executable, "-c", command]))
    for job in jobs:
        assert job.wait() == 0


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """Nothing is mentioned because a machine is slow; no picture stays open."""
    monkeypatch.setattr(progress, "DELAY", math.inf)
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def sketched(monkeypatch):
    """Pages without the lines of their pictures, for tests of what else they say."""
    from pictures import sketch

    monkeypatch.setattr("drmdp.report.page.draw", sketch)


@pytest.fixture(scope="session")
def session():
    """A running Ray for the tests of engines; one that a busy machine kept from starting in time gets another chance."""
    prepare(True)
    here = os.environ.get("PYTHONPATH")  # workers import what tests share
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent / "support"), *filter(None, [here])])
    ray = pytest.importorskip("ray")
    for last in (False, False, True):
        with contextlib.nullcontext() if last else contextlib.suppress(RuntimeError):
            ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
            break
        ray.shutdown()
    yield ray
    ray.shutdown()
