"""Forked and spawned processes, threads and event loops: the same answer as in the process that started them."""

import os
import subprocess
import sys
import textwrap

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
LIMIT = 240
"""Seconds after which a process counts as hanging; it needs about ten, or minutes where kernels are compiled first."""


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


def test_spawned_processes_give_the_same_answer_and_send_solutions_back(script):
    script("""
        import joblib, multiprocessing
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map(work, [0]) == [first]
            spawned = pool.apply(drmdp.solve, (small, ball))
        here = drmdp.solve(small, ball)
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(drmdp.solve)(small, ball) for _ in range(2))
        for solution in (spawned, *found):
            assert repr(solution).splitlines()[:3] == repr(here).splitlines()[:3]
            assert np.array_equal(solution.kernels[1], here.kernels[1])
            assert solution.problem[0] == small
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


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5", "nan", "1025", "1" * 20, "9" * 5000, "1_0", " 2 x"])
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
    with pytest.raises(drmdp.InputError, match="7 threads cannot be started: can't start new thread; take fewer"):
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
