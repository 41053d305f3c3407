"""Kernels that a wheel brings along are used where they fit, and nowhere else."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from drmdp.core import kept, shipped

CHILD = """
import sys, warnings
from pathlib import Path
import numpy as np
from drmdp.core import kept, shipped
shipped.FOLDER = Path(sys.argv[1])
exec(sys.argv[2])
from drmdp.core.vectors import _sums, block_sums
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert block_sums(np.arange(5.0), np.ones(5), 2) == [1.0, 5.0, 4.0]
sys.stderr.writelines(f"{one.category.__name__}: {one.message}" for one in said)
print(sum(_sums.stats.cache_hits.values()), shipped.level())
"""
LEVEL = shipped.fitting()[:1]
pytestmark = pytest.mark.skipif(not LEVEL, reason="the processor has no level")


def run(folder, cache, change="", **variables):
    """How many kernels were found, the level, and what was said."""
    command = [sys.executable, "-c", CHILD, str(folder), change]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, level = done.stdout.split()
    return int(found), level, done.stderr


@pytest.fixture(scope="module")
def brought(tmp_path_factory):
    """A folder as a wheel has it."""
    folder = tmp_path_factory.mktemp("wheel")
    built = folder / "built"
    (folder / "kernels").mkdir()
    assert run(folder / "none", built, NUMBA_CPU_NAME=LEVEL[0], NUMBA_CPU_FEATURES="") == (0, "None", "")
    (built / "drmdp").rename(folder / "kernels" / LEVEL[0])
    (folder / "kernels" / shipped.MADE_FOR).write_text(f"{kept.versions_shared()}\n{kept.settings()}\n")
    return folder / "kernels"


def copy(brought, folder):
    """Another such folder, and a file in it."""
    shutil.copytree(brought, folder)
    (file,) = (folder / LEVEL[0]).iterdir()
    return file


def test_what_a_wheel_brings_is_not_compiled(brought, tmp_path):
    assert run(brought, tmp_path) == (1, LEVEL[0], "")
    assert list(tmp_path.glob("drmdp/*")) == []


def test_nor_where_the_package_belongs_to_somebody_else_and_is_old(brought, tmp_path):
    for file in (brought / LEVEL[0]).iterdir():
        os.utime(file, (0, 0))
    assert run(brought, tmp_path, "import os; os.utime = lambda *a: (_ for _ in ()).throw(PermissionError())")[0] == 1


OLD = "type('Old', (), {'python_version': lambda: '3.99.1', 'python_implementation': lambda: 'CPython'})"


@pytest.mark.parametrize(("change", "reason"), [
    ("import numba; numba.__version__ = '0.1'", r"they are for Numba [\d.]+, and this is Numba 0\.1"),
    ("kept.np = type('Other', (), {'__version__': '9.9.1'})", r"they are for NumPy \d\.\d+, and this is NumPy 9\.9"),
    (f"kept.platform = {OLD}", r"they are for CPython 3\.\d+, and this is CPython 3\.99"),
    ("shipped.config.LOOP_VECTORIZE = 0", "settings of Numba differ from theirs"),
    ("shipped.config.CPU_NAME = 'nehalem'", "NUMBA_CPU_NAME asks for nehalem"),
    ("shipped.fitting = list", "they are for x86-64-v., which this processor is not"),
])  # fmt: skip
def test_where_they_do_not_fit_it_is_compiled_and_said_once(brought, tmp_path, change, reason):
    found, _, said = run(brought, tmp_path, change)
    assert found == 0
    assert re.fullmatch(f"Notice: kernels that came with the package are compiled again here: {reason}", said)
    assert list(tmp_path.glob("drmdp/*")) != []


def test_nothing_is_said_where_nothing_is_compiled(brought, tmp_path):
    change = "import numba; numba.__version__ = '0.1'"
    assert [run(brought, tmp_path, change)[0] for _ in range(2)] == [0, 1]
    assert run(brought, tmp_path, change)[2] == ""


def test_repairs_of_python_and_numpy_change_nothing(brought, tmp_path):
    change = "kept.np = type('Other', (), {'__version__': np.__version__.rpartition('.')[0] + '.99'})"
    assert run(brought, tmp_path, change) == (1, LEVEL[0], "")


@pytest.mark.parametrize("length", [0, -1])
def test_what_is_spoiled_is_compiled_and_said(brought, tmp_path, length):
    file = copy(brought, tmp_path / "spoiled")
    file.write_bytes(file.read_bytes()[:length])
    assert run(tmp_path / "spoiled", tmp_path) == (
        0, LEVEL[0], f"Notice: kernels that came with the package are compiled again here: {file} is spoiled",
    )  # fmt: skip


def test_a_kernel_that_was_not_brought_is_compiled_like_any_other(brought, tmp_path):
    copy(brought, tmp_path / "few").unlink()
    assert run(tmp_path / "few", tmp_path) == (0, LEVEL[0], "")


@pytest.mark.parametrize("text", [None, "CPython\n[]\n"])
def test_what_does_not_say_what_it_is_for_is_not_trusted_to_be_wrong(brought, tmp_path, text):
    """Names of files say it too, so that what fits is used; what was taken away is compiled, whatever the list says."""
    file = copy(brought, tmp_path / "odd")
    list_ = tmp_path / "odd" / shipped.MADE_FOR
    list_.unlink() if text is None else list_.write_text(text)
    assert run(tmp_path / "odd", tmp_path)[0] == 1
    file.unlink()
    found, _, said = run(tmp_path / "odd", tmp_path)
    assert found == 0
    assert "are compiled again here: " in said


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
