"""What all tests share."""

import contextlib
import math
import os
import sys
from pathlib import Path

import pytest

from drmdp.cluster.session import prepare
from drmdp.ui import progress


def pytest_configure(config):
    os.environ.setdefault("DRMDP_TRACEBACK", "1")  # a fault of the command line is seen as one


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
    """A running Ray for the tests of engines; one that a busy machine kept from starting in time
    gets another chance.
    """
    prepare(True)
    here = os.environ.get("PYTHONPATH")  # workers import what tests share
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent / "support"), *filter(None, [here])]
    )
    ray = pytest.importorskip("ray")
    for last in (False, False, True):
        with contextlib.nullcontext() if last else contextlib.suppress(RuntimeError):
            ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
            break
        ray.shutdown()
    yield ray
    ray.shutdown()
