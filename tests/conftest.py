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

HALVES = (
    (("l2-inf",), ("l1-2",)),
    (("l1-inf", "linf-1"), ("reweighting-kl", "reweighting-cvar", "transport-1", "transport-inf")),
)
"""What the suite compiles; about as much work each."""
SUPPORT = str(Path(__file__).parent / "support")
AHEAD = """
import sys
sys.path.insert(0, {!r})
from ahead import prepare
from drmdp_lab.paper.runner import compile_pairs

compile_pairs({})
for name in {}:
    prepare(name)
"""


def pytest_configure(config):
    os.environ.setdefault("DRMDP_TRACEBACK", "1")  # a fault of the command line is seen as one
    if not getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        return
    jobs = []
    for balls, others in HALVES:
        pairs = [(*name.split("-"), True) for name in balls]
        jobs.append(subprocess.Popen([sys.executable, "-c", AHEAD.format(SUPPORT, pairs, others)]))
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
