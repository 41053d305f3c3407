"""Whoever dies, whenever: the answer has the same bits, at most one sweep is made again, and
nothing is left running.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import uuid

import pytest

import deaths
import drmdp
import ranges
from deaths import Child, Mortal, Plan
from drmdp import formats
from drmdp.cluster import Local
from drmdp.cluster import ray as engine_of_ray
from drmdp.cluster.checkpoint import complete
from drmdp.errors import Notice

BALL = drmdp.Wasserstein(0.1)
RTOL = {"policy-iteration": 1e-6, "value-iteration": 1e-2}
CALLS = (
    "survey",
    "sweep_mean",
    "chain_mean",
    "sweep",
    "chain",
    "product",
    "elementwise",
    "dots",
    "extremes",
    "prove",
    "save",
)
"""What a worker may be doing when it dies."""

short, long = pytest.mark.cluster, pytest.mark.faults
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Ray's own processes


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """A model, where it lies, and by method the digest of its solution."""
    model = ranges.model("terminal", "rewards", S=ranges.LARGE, A=2, N=2, discount=0.95)
    path = tmp_path_factory.mktemp("model") / "model.drmdp"
    formats.write(model, path)
    found = {
        m: ranges.digest(drmdp.solve(model, BALL, method=m, rtol=rtol, threads=1))
        for m, rtol in RTOL.items()
    }
    return path, found


@pytest.fixture
def tell(capsys):
    """Says a line that is seen."""

    def said(line):
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")

    return said


# ---------------------------------------------------------------------- workers of Ray


def mortal_run(problem, folder, plans, seed):
    """Solve while workers die as planned; how many did."""
    path, want = problem
    cluster = Mortal(3, plans=plans, seed=seed)
    found = drmdp.solve(
        path, BALL, "policy-iteration", rtol=1e-6, cluster=cluster, checkpoint=folder
    )
    assert ranges.digest(found) == want["policy-iteration"], plans
    assert all(plan.done for plan in plans), plans
    assert not list(folder.glob(".*"))
    assert complete(folder) == sorted(folder.glob("sweep-*"))
    return sum(plan.done for plan in plans)


@short
def test_workers_that_die_change_no_bit(problem, session, tmp_path):
    plans = [Plan("sweep", 1), Plan("product", 4, victims=2), Plan("save", 1)]
    assert mortal_run(problem, tmp_path / "run", plans, 0) == 4


@long
def test_fifty_deaths_at_random_moments_change_no_bit(problem, session, tmp_path, tell):
    counted = [Plan(name, 10**9) for name in CALLS]
    drmdp.solve(
        problem[0],
        BALL,
        "policy-iteration",
        rtol=1e-6,
        cluster=Mortal(3, plans=counted),
        checkpoint=tmp_path,
    )
    often = {plan.name: plan.seen for plan in counted}
    assert min(often.values()) > 0, often
    killed, dice = 0, random.Random(1)
    for k in range(5):
        plans = [
            Plan(name, dice.randrange(min(often[name], 9)))
            for name in (2 * CALLS)[2 * k : 2 * k + 6]
        ]
        for plan in dice.sample(plans, 4):
            plan.victims = 2
        dice.choice(plans).again = True
        killed += mortal_run(problem, tmp_path / str(k), plans, k)
    tell(f"{killed} workers killed, digests equal")
    assert killed >= 50


@short
def test_a_worker_that_hangs_is_named_and_nothing_is_lost(problem, session, tmp_path, monkeypatch):
    path, want = problem
    stopped = []

    def stop(record):
        monkeypatch.setattr(engine_of_ray, "PATIENCE", 8.0)
        stopped.append(deaths.pid(1))
        os.kill(stopped[0], signal.SIGSTOP)

    try:
        with pytest.raises(
            drmdp.InputError, match=r"the worker of the states \d+ … \d+ has not answered for \d+ s"
        ):
            drmdp.solve(
                path,
                BALL,
                "policy-iteration",
                cluster=Mortal(3),
                checkpoint=tmp_path / "run",
                callback=stop,
            )
    finally:
        for number in stopped:
            os.kill(number, signal.SIGCONT)
    assert (
        ranges.digest(drmdp.resume(tmp_path / "run", cluster=Local(3))) == want["policy-iteration"]
    )


# ---------------------------------------------------------------------- drivers

DRIVER = """
import os, sys, drmdp
from drmdp.cluster import Local, Mpi, Ray
kind, path, folder, method, rtol = sys.argv[1:]
cluster, rank = {"local": Local(3, threads=1), "mpi": Mpi(), "ray": Ray(2)}[kind], 0
if kind == "mpi":
    from mpi4py import MPI
    rank = MPI.COMM_WORLD.rank

def tell(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

tell("pid", rank, os.getpid())
told = lambda record: tell("sweep", record.iteration)
if os.path.exists(os.path.join(folder, "run.json")):
    drmdp.resume(folder, callback=told)
else:
    drmdp.solve(path, drmdp.Wasserstein(0.1), method, rtol=float(rtol), cluster=cluster, checkpoint=folder, callback=told)
"""


def killed_again_and_again(problem, folder, kind, method, times, seed):
    """Kill a driver and each that goes on with its run; how many were killed. The last run ends
    here.
    """
    path, want = problem
    dice, last, killed = random.Random(seed), -1, 0
    for k in range(times):
        mark = uuid.uuid4().hex
        child = Child(
            DRIVER, kind, path, folder, method, RTOL[method], mark=mark, ranks=2 * (kind == "mpi")
        )
        try:
            going = child.wait_for(max(last, 0))
            assert last <= child.sweeps, (
                "more than one sweep was lost" if going else child.process.stderr.read()
            )
            going = going and child.wait_for(child.sweeps + dice.randrange(0, 4))
            last = max(last, child.sweeps)
            if not going:
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(dice.choice([0.0, 0.001, 0.01, 0.05]))
            if child.process.poll() is not None:
                break
            assert child.kill(rank=k % 2 if kind == "mpi" else 0) != 0
            killed += 1
        finally:
            left = deaths.all_gone(mark)
            for number in left:
                os.kill(number, signal.SIGKILL)
        assert left == [], f"still running: {left}"
        assert complete(folder) == sorted(folder.glob("sweep-*"))
    seen = []
    found = drmdp.resume(
        folder, cluster=Local(2), callback=lambda record: seen.append(record.iteration)
    )
    assert seen[0] >= last
    assert ranges.digest(found) == want[method]
    return killed


@short
@pytest.mark.parametrize("kind", ["local", "mpi", "ray"])
def test_a_driver_that_dies_is_resumed_with_the_same_bits(problem, tmp_path, kind):
    assert killed_again_and_again(problem, tmp_path / "run", kind, "value-iteration", 1, 0) == 1


@long
def test_twenty_deaths_of_drivers_change_no_bit(problem, tmp_path, tell):
    runs = [
        ("local", "policy-iteration", 2),
        ("local", "value-iteration", 6),
        ("local", "value-iteration", 5),
    ]
    runs += [
        ("mpi", "policy-iteration", 2),
        ("mpi", "value-iteration", 5),
        ("ray", "value-iteration", 4),
    ]
    killed = 0
    for k, (kind, method, times) in enumerate(runs):
        killed += killed_again_and_again(problem, tmp_path / str(k), kind, method, times, k)
    tell(f"{killed} drivers killed, digests equal")
    assert killed >= 20


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@short
def test_ray_on_one_machine_listens_to_that_machine_only_and_ends_with_its_driver(
    problem, tmp_path
):
    mark = uuid.uuid4().hex
    child = Child(DRIVER, "ray", problem[0], tmp_path / "run", "value-iteration", 1e-2, mark=mark)
    assert child.wait_for(0)
    found = deaths.listening(mark)
    assert len(found) > 3
    assert set(found) <= LOOPBACK
    child.process.communicate(timeout=600)
    assert child.process.returncode == 0
    assert deaths.all_gone(mark) == []


# ---------------------------------------------------------------------- disks


@pytest.fixture
def small_disk(tmp_path):
    """A file system that holds little; needs the rights to mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    how = ["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(how, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@long
@pytest.mark.parametrize("kind", ["local", "ray"])
def test_a_disk_that_is_full_stops_checkpoints_and_not_the_run(problem, session, small_disk, kind):
    path, want = problem
    cluster = Local(3, threads=1) if kind == "local" else Mortal(3)
    with pytest.warns(
        Notice, match="cannot be written: No space left on device; earlier checkpoints stay"
    ):
        found = drmdp.solve(
            path,
            BALL,
            "policy-iteration",
            rtol=1e-6,
            cluster=cluster,
            checkpoint=small_disk / "run",
        )
    assert ranges.digest(found) == want["policy-iteration"]
    assert complete(small_disk / "run") == sorted((small_disk / "run").glob("sweep-*")) != []
    with pytest.warns(Notice, match="No space left on device"):
        again = drmdp.resume(small_disk / "run", cluster=Local(2))
    assert ranges.digest(again) == want["policy-iteration"]
