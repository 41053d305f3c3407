"""A log larger than memory: what is kept of it are the transitions that are distinct."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import drmdp
import measured

pytestmark = pytest.mark.faults

ROWS, COPIES = 8_000_000, 8
"""Copies are a power of 2, so that shares of counts have the same bits."""
LIMIT = 600 * 2**20
CHILD = """
import sys
from pathlib import Path
if sys.argv[1]:
    (Path(sys.argv[1]) / "cgroup.procs").write_text("0")
from measured import Watch
import os, drmdp
watch = Watch([os.getpid()])
drmdp.write(drmdp.estimate(sys.argv[2], cost="cost", discount=0.9), sys.argv[3])
print(watch.most[os.getpid()])
"""


def test_a_log_larger_than_the_limit_gives_the_model_that_one_in_memory_gives(tmp_path, capsys):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    s, a = rng.integers(0, 50, ROWS), rng.integers(0, 2, ROWS)
    table = pl.DataFrame(
        {
            "state": s,
            "action": a,
            "next_state": (s + 1 + a * rng.integers(0, 3, ROWS)) % 50,
            "cost": s / 2,
        }
    )
    one, log = tmp_path / "one.csv", tmp_path / "log.csv"
    table.write_csv(one, include_header=False)
    with log.open("wb") as stream:
        stream.write(b"state,action,next_state,cost\n")
        for _ in range(COPIES):
            with one.open("rb") as copy:
                shutil.copyfileobj(copy, stream)
    assert log.stat().st_size > LIMIT
    with measured.bound(LIMIT) as cgroup:
        words = [sys.executable, "-c", CHILD, cgroup, str(log), str(tmp_path / "model.drmdp")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    peak = int(done.stdout.split()[-1])
    with capsys.disabled():
        kind = "under a cgroup limit" if cgroup else "no limit could be set"
        sys.stdout.write(
            f"\n{log.stat().st_size / 1e6:.0f} MB of log: {peak / 1e6:.0f} MB in no file, {kind}\n"
        )
    assert peak < LIMIT
    found, want = (
        drmdp.read(tmp_path / "model.drmdp"),
        drmdp.estimate(table, cost="cost", discount=0.9),
    )
    assert np.array_equal(found.kernels, want.kernels)
    assert np.array_equal(found.costs, want.costs)
    assert tuple(found.states) == tuple(want.states)
