"""What large models of events take: memory of a process, and counts of sweeps and products, without
clocks.
"""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.support.measured import bound

import drmdp
from drmdp import Wasserstein
from drmdp.core.compact import CompactRows
from drmdp.operators.exact import ExactOperator
from drmdp.operators.nominal import MeanLawChain
from drmdp.solvers.problem import Problem
from drmdp_lab.bench import events as bench


def counted(monkeypatch, kind):
    calls, own = [], kind.__matmul__

    def product(self, z):
        calls.append(1)
        return own(self, z)

    monkeypatch.setattr(kind, "__matmul__", product)
    return calls


@pytest.mark.parametrize("units", [16, pytest.param(46, marks=pytest.mark.fuzz)])
def test_counts_of_sweeps_and_products(units, monkeypatch):
    """Three sweeps; products with the mean law and with nature's rows stay as few as they were, for
    4 096 and for 97 336 states.
    """
    nominal, played = counted(monkeypatch, MeanLawChain), counted(monkeypatch, CompactRows)
    model = bench.model_of(units, 4, 8, 10, store=False)
    most = max(map(abs, model.cost_range)) / (1 - model.discount)
    found = drmdp.solve(model, Wasserstein(0.1), tol=1e-3 * most)
    assert found.status == "solved"
    assert found.kernel_passes <= 4
    assert 0 < len(nominal) <= 40
    assert 0 < len(played) <= 60


@pytest.mark.parametrize(("order", "shares"), [(2, 1), (math.inf, 5)])
def test_what_is_kept_of_nature_has_no_number_for_each_law_unless_budgets_differ(order, shares):
    model = bench.model_of(14, 2, 4, 5, store=False)
    operator = ExactOperator(model, Wasserstein(0.1, "l2", order), 1)
    found = Problem(operator).proved(np.linspace(0.0, 1.0, model.n_states))
    assert found.nature.share.shape == (model.n_states, shares)
    wide, rows = found.nature.pairs(), found.nature.chain(found.policy)
    assert (rows.entry_mass.dtype, wide.entry_mass.dtype) == (np.float32, np.float64)
    value = np.random.default_rng(0).random(model.n_states)
    played = (found.policy.ravel() * (wide @ value)).reshape(found.policy.shape).sum(axis=1)
    np.testing.assert_allclose(rows @ value, played, rtol=1e-6)


@pytest.mark.fuzz
@pytest.mark.parametrize("laws", [10, 100])
def test_a_million_states_take_little_memory(laws):
    """At most 500 bytes a state and 300 MB, whatever N is; 35 CPU seconds for N = 10, some 130 for
    N = 100.
    """
    limit = 500 * 100**3 + 300_000_000
    command = [sys.executable, "-m", "drmdp_lab.bench.events", "100", "4", "8", str(laws)]
    with bound(limit) as group:
        inside = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group] if group else []
        run = subprocess.run([*inside, *command], stdout=subprocess.PIPE, check=True)
    row = json.loads(run.stdout)
    assert row["status"] == "solved"
    assert row["gap"] <= 1e-3
    assert row["peak_gb"] <= limit / 1e9


STREAMED = """
import json, resource, sys
if sys.argv[2]:
    open(sys.argv[2] + "/cgroup.procs", "w").write("0")
import drmdp
found = drmdp.solve(drmdp.read(sys.argv[1]), drmdp.Wasserstein(0.1, rectangular="sa"), rtol=1e-3)
grown = [line.split() for line in open("/proc/self/status") if line.startswith("RssAnon")]
print(json.dumps({"status": found.status, "anonymous": 1024 * int(grown[0][1]), "inputs": resource.getrusage(resource.RUSAGE_SELF).ru_inblock}))
"""


@pytest.mark.fuzz
def test_a_table_that_is_larger_than_memory_is_read_where_it_is(tmp_path):
    """900 MB of next states and costs in a group that may have 600 MB, files included; 60 CPU
    seconds. One action is played in a state.
    """
    path, limit = tmp_path / "m.drmdp", 600_000_000
    drmdp.write(bench.model_of(72, 10, 20, 2, store=True), path)
    size = 0
    for file in path.iterdir():  # what is in memory already would be charged to this process
        size += file.stat().st_size
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert size > 1.4 * limit
    with bound(limit) as group:
        run = subprocess.run(
            [sys.executable, "-c", STREAMED, path, group], stdout=subprocess.PIPE, check=True
        )
    row = json.loads(run.stdout)
    assert row["status"] == "solved"
    assert row["anonymous"] < limit
    if group:
        assert 512 * row["inputs"] > size  # pages went and came again
