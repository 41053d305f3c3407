"""Kernels that a wheel brings along are used where they fit, and nowhere else."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

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
NURSERY = f"""
import json, os, sys
import numba, numpy as np
from numba.core import config
from drmdp.core import kept, shipped
numba.njit(lambda x: x.sum() + len([x]))(np.ones(2))
for line in sys.stdin:
    folder, cache, change, out, err = json.loads(line)
    if not os.fork():
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), number)
        config.CACHE_DIR, sys.argv[1:] = cache, [folder, change]
        exec({CHILD!r})
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
"""Has imported and compiled, which takes long the first time, and does what it is told in a copy of itself."""
LEVEL = shipped.fitting()[:1]
pytestmark = pytest.mark.skipif(not LEVEL, reason="the processor has no level")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run the child with a folder of a wheel, a cache, and a change: how many kernels were found, the level, and what was said."""
    said = [str(tmp_path_factory.mktemp("said") / name) for name in ("out", "err")]
    command = [sys.executable, "-c", NURSERY]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean) as nursery:

        def tell(folder, cache, change=""):
            for path in said:
                Path(path).unlink(missing_ok=True)
            print(json.dumps([str(folder), str(cache), change, *said]), file=nursery.stdin, flush=True)
            code = nursery.stdout.readline()
            out, err = (Path(path).read_text() for path in said)
            assert code == "0\n", err
            found, level = out.split()
            return int(found), level, err

        yield tell
        nursery.stdin.close()


@pytest.fixture(scope="module")
def brought(tmp_path_factory):
    """A folder as a wheel has it."""
    folder = tmp_path_factory.mktemp("wheel")
    built = folder / "built"
    (folder / "kernels").mkdir()
    level = {"NUMBA_CACHE_DIR": str(built), "NUMBA_CPU_NAME": LEVEL[0], "NUMBA_CPU_FEATURES": ""}
    command = [sys.executable, "-c", CHILD, str(folder / "none"), ""]
    done = subprocess.run(command, env=os.environ | level, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 None\n", "")
    (built / "drmdp").rename(folder / "kernels" / LEVEL[0])
    (folder / "kernels" / shipped.MADE_FOR).write_text(f"{kept.versions_shared()}\n{kept.settings()}\n")
    return folder / "kernels"


def copy(brought, folder):
    """Another such folder, and a file in it."""
    shutil.copytree(brought, folder)
    (file,) = (folder / LEVEL[0]).iterdir()
    return file


def test_what_a_wheel_brings_is_not_compiled(run, brought, tmp_path):
    assert run(brought, tmp_path) == (1, LEVEL[0], "")
    assert list(tmp_path.glob("drmdp/*")) == []


def test_nor_where_the_package_belongs_to_somebody_else_and_is_old(run, brought, tmp_path):
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
def test_where_they_do_not_fit_it_is_compiled_and_said_once(run, brought, tmp_path, change, reason):
    found, _, said = run(brought, tmp_path, change)
    assert found == 0
    assert re.fullmatch(f"Notice: kernels that came with the package are compiled again here: {reason}", said)
    assert list(tmp_path.glob("drmdp/*")) != []


def test_nothing_is_said_where_nothing_is_compiled(run, brought, tmp_path):
    change = "import numba; numba.__version__ = '0.1'"
    assert [run(brought, tmp_path, change)[0] for _ in range(2)] == [0, 1]
    assert run(brought, tmp_path, change)[2] == ""


def test_repairs_of_python_and_numpy_change_nothing(run, brought, tmp_path):
    change = "kept.np = type('Other', (), {'__version__': np.__version__.rpartition('.')[0] + '.99'})"
    assert run(brought, tmp_path, change) == (1, LEVEL[0], "")


@pytest.mark.parametrize("length", [0, -1])
def test_what_is_spoiled_is_compiled_and_said(run, brought, tmp_path, length):
    file = copy(brought, tmp_path / "spoiled")
    file.write_bytes(file.read_bytes()[:length])
    assert run(tmp_path / "spoiled", tmp_path) == (
        0, LEVEL[0], f"Notice: kernels that came with the package are compiled again here: {file} is spoiled",
    )  # fmt: skip


def test_a_kernel_that_was_not_brought_is_compiled_like_any_other(run, brought, tmp_path):
    copy(brought, tmp_path / "few").unlink()
    assert run(tmp_path / "few", tmp_path) == (0, LEVEL[0], "")


@pytest.mark.parametrize("text", [None, "CPython\n[]\n"])
def test_what_does_not_say_what_it_is_for_is_not_trusted_to_be_wrong(run, brought, tmp_path, text):
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
