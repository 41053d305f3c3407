"""What the tests of engines share."""

import contextlib
import os
from pathlib import Path

import pytest

import pool
from drmdp.cluster.session import prepare


@pytest.fixture(scope="session")
def session():
    """A running Ray; one that a busy machine kept from starting in time gets another chance."""
    prepare(True)
    here = os.environ.get("PYTHONPATH")  # workers import what tests share
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(pool.__file__).parent), *filter(None, [here])])
    ray = pytest.importorskip("ray")
    for last in (False, False, True):
        with contextlib.nullcontext() if last else contextlib.suppress(RuntimeError):
            ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
            break
        ray.shutdown()
    yield ray
    ray.shutdown()
