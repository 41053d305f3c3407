"""Forked and spawned processes, threads and event loops: the same answer as in the process that
started them.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import drmdp
from drmdp.core import threads

PRELUDE = """
import sys
import numpy as np
import drmdp
from drmdp.core import threads

model = drmdp.instances.perturb(drmdp.instances.garnet(120, 8, seed=1), n_kernels=5)
small = drmdp.instances.perturb(drmdp.instances.machine(5), n_kernels=3)
ball = drmdp.Wasserstein(0.1)

def work(k):
    return drmdp.solve(model, ball, tol=1e-6, threads=2).value.tobytes()
"""
LIMIT = 600
"""Seconds after which a process counts as hanging; it needs about ten."""


@pytest.fixture
def script(tmp_path):
    """Run lines of a script in a process of its own, after it has used the pool of threads."""

    def run(body):
        used = "assert model.blocks.data.size >= threads.SMALL\nfirst = work(0)\nassert threads._pool.cache_info().currsize\n"
        main = textwrap.indent(used + textwrap.dedent(body), "    ")
        path = tmp_path / "script.py"  # spawned processes import it
        path.write_text(f"{PRELUDE}\nif __name__ == '__main__':\n{main}\n    print('fine')\n")
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=LIMIT)
        assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr

    return run


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_children_have_threads_of_their_own(script):
    script("""
        import multiprocessing, os

        def fork(generations):
            child = os.fork()
            if child:
                return os.waitpid(child, 0)[1] == 0
            fine = work(1) == first and (generations == 1 or fork(generations - 1))
            os._exit(0 if fine else 1)

        assert fork(2)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(work, range(3)) == [first] * 3
        assert work(1) == first
    """)


HELD = """
    import signal, threading
    from drmdp.core.cached import cached_property

    class Slow:
        @cached_property
        def made(self):
            return self.make()

    holds, over = threading.Event(), threading.Event()

    def slow():
        one = Slow()
        one.make = lambda: (holds.set(), over.wait())
        one.made

    def forked(held, work):
        holds.clear(), over.clear()
        other = threading.Thread(target=held)
        other.start()
        holds.wait()
        late = threading.Timer(60, over.set)  # should the fork wait for it
        late.start()
        child = os.fork()
        if not child:
            signal.alarm(60)  # which ends it if it hangs
            work()
            os._exit(0)
        late.cancel()
        over.set()
        assert os.waitpid(child, 0)[1] == 0
        other.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_property_that_another_thread_makes_at_a_fork_does_not_keep_the_child(script):
    held = "other = Slow()\nother.make = lambda: 1\nforked(slow, lambda: other.made)"
    script("import os\n" + textwrap.dedent(HELD) + held)


def test_nobody_makes_properties_under_a_lock():
    sources = Path(drmdp.__file__).parent.rglob("*.py")
    kept = re.compile(r"functools.*cached_property")
    assert [path.name for path in sources if kept.search(path.read_text())] == [
        "cached.py"
    ]  # which says why


SAME = """
for solution in found:
    assert repr(solution).splitlines()[:3] == repr(here).splitlines()[:3]
    assert np.array_equal(solution.kernels[1], here.kernels[1])
    assert solution.problem[0] == small
"""


def test_spawned_processes_give_the_same_answer_and_send_solutions_back(script):
    script(f"""
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:
    assert pool.map(work, [0]) == [first]
    found = [pool.apply(drmdp.solve, (small, ball))]
here = drmdp.solve(small, ball)
{SAME}
""")


@pytest.mark.fuzz
def test_so_do_those_of_joblib(script):
    script(f"""
import joblib
found = joblib.Parallel(n_jobs=2)(joblib.delayed(drmdp.solve)(small, ball) for _ in range(2))
here = drmdp.solve(small, ball)
{SAME}
""")


def test_threads_and_event_loops_give_the_same_answer(script):
    script("""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(8))) == [first] * 8

        async def some():
            apart = [asyncio.to_thread(work, k) for k in range(3)]
            return [work(0), *await asyncio.gather(*apart)]

        assert asyncio.run(some()) == [first] * 4
    """)


# ---------------------------------------------------------------------- numbers of threads


@pytest.mark.parametrize(
    "given", ["0", "-1", "two", "1.5", "nan", "1025", "1" * 20, "9" * 5000, "1_0", " 2 x"]
)
def test_absurd_numbers_of_threads_are_refused_with_their_name(given, monkeypatch):
    monkeypatch.setenv(threads.VARIABLE, given)
    with pytest.raises(
        drmdp.InputError, match=r"threads \(DRMDP_THREADS .* whole number from 1 to 1024, got"
    ) as caught:
        threads.count(None)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("given", [0, -3, 2.5, True, 10**30, "2", None], ids=str)
def test_numbers_of_threads_are_whole_numbers(given):
    if given is None:
        assert 1 <= threads.count(None) <= threads.MOST
    else:
        with pytest.raises(drmdp.InputError, match="threads"):
            threads.count(given)


def test_threads_that_cannot_be_started_are_an_error_with_the_cure(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads.ThreadPoolExecutor, "submit", refuse)
    work = np.arange(0, 10 * threads.SMALL, threads.SMALL)
    with pytest.raises(
        drmdp.InputError, match="7 threads cannot be started: can't start new thread; take fewer"
    ):
        threads.run(lambda lo, hi: None, work, 0, 9, 7)


def test_an_error_in_one_range_is_raised_once_the_others_have_ended():
    running = []

    def kernel(lo, hi):
        running.append(lo)
        try:
            if lo == 0:
                raise ZeroDivisionError
        finally:
            running.remove(lo)

    work = np.arange(0, 10 * threads.SMALL, threads.SMALL)
    with pytest.raises(ZeroDivisionError):
        threads.run(kernel, work, 0, 9, 3)
    assert not running


# ---------------------------------------------------------------------- small files that ask for
# much

BOMBS = """
import io, resource, sys, zipfile
import numpy as np
import drmdp
from drmdp.io import archives

def member(array=None, dtype="<f8", shape=()):
    stream = io.BytesIO()
    if array is not None:
        np.save(stream, array)
        return stream.getvalue()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()

def archive(name, **members):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as target:
        for key, content in members.items():
            with target.open(key + ".npy", "w", force_zip64=True) as stream:
                head, zeros = content if isinstance(content, tuple) else (content, 0)
                stream.write(head)
                for _ in range(zeros >> 24):
                    stream.write(bytes(1 << 24))

n, plain = 1 << 10, member(np.full((1, 2, 1, 2), 0.5))
archive("names.npz", kernels=plain, costs=member(np.zeros(2)), discount=member(np.array(0.5)), states=member(dtype="<U0", shape=(200_000_000,)))
archive("bytes.npz", kernels=(member(dtype="|i1", shape=(1, n, 16, n)), 16 * n * n), costs=member(np.zeros(n)), discount=member(np.array(0.5)))
drmdp.solve(drmdp.instances.machine(5), drmdp.Wasserstein(0.1)).save("good.npz")
with zipfile.ZipFile("good.npz") as good:
    members = {name.removesuffix(".npy"): good.read(name) for name in good.namelist()}
archive("solution.npz", **members, stranger=(member(shape=(1 << 24,)), 1 << 27))
members["kernel"] = (member(shape=(n, 16, n)), 8 * 16 * n * n)
archive("kernel.npz", **members)

archives.memory_limit = lambda: 1 << 26
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for read, name in ((drmdp.read, "names"), (drmdp.read, "bytes"), (drmdp.Solution.load, "solution"), (drmdp.Solution.load, "kernel")):
    try:
        read(name + ".npz")
    except drmdp.InputError as error:
        print(str(error)[:300])
    else:
        raise AssertionError(name)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kilobytes are counted on Linux")
def test_small_files_that_promise_much_are_refused_in_little_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BOMBS], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    *said, little = done.stdout.splitlines()
    assert "strings of no letters" in said[0]
    assert "do not fit in memory" in said[1]
    assert "stranger" in said[2]
    assert "kernel is float64 (1024, 16, 1024)" in said[3]
    assert little == "True"


# ---------------------------------------------------------------------- nowhere to write


READ_ONLY = """
import sys
# of an editable install
sys.meta_path = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
import numpy as np
import drmdp, drmdp.prox.registry, drmdp.solvers.first_order.players
from drmdp import _native
assert drmdp.__file__.startswith(sys.argv[1])
rows = np.zeros((1, 2))
_native.elementary("exp", rows.ravel(), rows.ravel())
print(rows.sum())
"""


def test_a_package_that_cannot_be_written_to_works(tmp_path):
    """As a user without a home in a container finds it."""
    disk, temporary = tmp_path / "disk", tmp_path / "temporary"
    disk.mkdir()
    temporary.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mount is refused")
    try:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(drmdp.__file__).parent, disk / "drmdp", ignore=ignored)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        places = {"PYTHONPATH": disk, "HOME": disk, "XDG_CACHE_HOME": disk, "TMPDIR": temporary}
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, disk],
            env={**os.environ, **{k: str(v) for k, v in places.items()}},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    finally:
        subprocess.run(["umount", disk], check=True)
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr
    assert not os.listdir(temporary)
