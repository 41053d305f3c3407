"""A model that is larger than what any process may have is solved, and memory stays below the
formula of the docs.

    a process with a range of n of S states:   BASE_S · S + A (16 K + 16 N + 64) · n   bytes beside files and what it shares,

with A actions, K next states a pair and N kernels. `Local` works on one range at a time; those that
stay open, here all, take A (4 K + 14) + 48 bytes a state. The driver of Ray has no range.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import drmdp
import measured
import ranges

pytestmark = pytest.mark.faults

S, A, K, N = 150_000, 4, 8, 40
LIMIT = 600 * 2**20
BASE_S = 160
DRIVER = 64 * 2**20
"""What a driver that holds no vector may take, whatever the number of states."""


def formula(n):
    return BASE_S * S + A * (16 * K + 16 * N + 64) * n


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A model of some 800 MB, written block by block."""
    path = tmp_path_factory.mktemp("wide") / "wide.drmdp"
    size = ["--states", S, "--actions", A, "--kernels", N, "--branching", K, "--discount", 0.95]
    words = ["instance", "garnet", *size, "--sparse", "--same-support", "--float32", "--out", path]
    subprocess.run(
        [sys.executable, "-m", "drmdp", *map(str, words)], check=True, capture_output=True
    )
    assert sum(file.stat().st_size for file in path.iterdir()) > LIMIT
    return path


def run(kind, path, out, cgroup=""):
    paths = [str(Path(measured.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    words = [sys.executable, measured.__file__, kind, path, out, *filter(None, [cgroup])]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def grown(told):
    return told[1] - told[0]


@pytest.fixture
def tell(capsys):
    """Says a line that is seen."""

    def said(line):
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")

    return said


def test_a_model_larger_than_the_limit_is_solved_range_after_range(wide, tmp_path, tell):
    with measured.bound(LIMIT) as cgroup:
        told = run("local", wide, tmp_path / "found", cgroup)
    per = grown(told["driver"]) / S
    tell(
        f"Local(8): {per:.0f} bytes a state beside files, {'under a cgroup limit' if cgroup else 'no limit could be set'}"
    )
    assert told["status"] == "solved"
    assert told["driver"][1] < LIMIT
    assert grown(told["driver"]) <= formula(S // 8) + (A * (4 * K + 14) + 48) * S
    assert told["digest"] == ranges.digest(drmdp.Solution.load(tmp_path / "found"))


def test_so_it_is_by_two_workers_of_ray(wide, tmp_path, tell):
    told = run("ray", wide, tmp_path / "found")
    driver, workers = grown(told["driver"]), [grown(worker) for worker in told["workers"]]
    tell(
        f"Ray(2): {max(workers) / (S / 2):.0f} bytes a state of its own for a worker, {driver / S:.0f} for the driver"
    )
    assert told["status"] == "solved"
    assert len(workers) == 2
    assert max(worker[1] for worker in told["workers"]) < LIMIT
    assert max(workers) <= formula(S // 2)
    assert driver <= DRIVER
