"""Kernels that a wheel brings along are used where they fit, and nowhere else."""

import os
import subprocess
import sys

import pytest

from drmdp.core import shipped

CHILD = """
import sys
from pathlib import Path
import numpy as np
from drmdp.core import kept, shipped
shipped.FOLDER = Path(sys.argv[1])
exec(sys.argv[2])
from drmdp.core.vectors import _sums, block_sums
assert block_sums(np.arange(5.0), np.ones(5), 2) == [1.0, 5.0, 4.0]
print(sum(_sums.stats.cache_hits.values()), shipped.level())
"""
LEVEL = shipped.fitting()[:1]
pytestmark = pytest.mark.skipif(not LEVEL, reason="the processor has no level")


def run(folder, cache, change="", **variables):
    """How many kernels were found, and the level."""
    command = [sys.executable, "-c", CHILD, str(folder), change]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(scope="module")
def brought(tmp_path_factory):
    """A folder as a wheel has it."""
    folder = tmp_path_factory.mktemp("wheel")
    built = folder / "built"
    assert run(folder, built, NUMBA_CPU_NAME=LEVEL[0], NUMBA_CPU_FEATURES="") == ["0", "None"]
    (built / "drmdp").rename(folder / LEVEL[0])
    return folder


def test_what_a_wheel_brings_is_not_compiled(brought, tmp_path):
    assert run(brought, tmp_path) == ["1", LEVEL[0]]
    assert list(tmp_path.glob("drmdp/*")) == []


def test_nor_where_the_package_belongs_to_somebody_else_and_is_old(brought, tmp_path):
    for file in (brought / LEVEL[0]).iterdir():
        os.utime(file, (0, 0))
    assert run(brought, tmp_path, "import os; os.utime = lambda *a: (_ for _ in ()).throw(PermissionError())")[0] == "1"


@pytest.mark.parametrize("change", [
    "import numba; numba.__version__ = '0.1'",
    "kept.np = type('Other', (), {'__version__': '9.9.1'})",
    "kept.platform = type('Other', (), {'python_version': lambda: '3.99.1', 'python_implementation': lambda: 'CPython'})",
])  # fmt: skip
def test_with_another_version_it_is_compiled(brought, tmp_path, change):
    assert run(brought, tmp_path, change) == ["0", LEVEL[0]]
    assert list(tmp_path.glob("drmdp/*")) != []


def test_repairs_of_python_and_numpy_change_nothing(brought, tmp_path):
    change = "kept.np = type('Other', (), {'__version__': np.__version__.rpartition('.')[0] + '.99'})"
    assert run(brought, tmp_path, change) == ["1", LEVEL[0]]


def test_what_is_spoiled_is_compiled(brought, tmp_path):
    folder = tmp_path / "spoiled" / LEVEL[0]
    folder.mkdir(parents=True)
    for file in (brought / LEVEL[0]).iterdir():
        (folder / file.name).write_bytes(file.read_bytes()[:-1])
    assert run(folder.parent, tmp_path / "cache") == ["0", LEVEL[0]]


def test_a_processor_gets_the_highest_level_that_it_has(monkeypatch, tmp_path):
    features = {"cx16": True, "popcnt": True, "sse4.2": True, "ssse3": True}
    monkeypatch.setattr(shipped.binding, "get_host_cpu_features", lambda: features)
    assert shipped.fitting() == ["x86-64-v2"]
    features |= dict.fromkeys(shipped.LEVELS["x86-64-v3"], True)
    assert shipped.fitting() == ["x86-64-v3", "x86-64-v2"]
    features["fma"] = False
    assert shipped.fitting() == ["x86-64-v2"]
    features["popcnt"] = False
    assert shipped.fitting() == []
