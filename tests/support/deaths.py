"""Processes that die, and what is left of them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pool
from pool import PooledEngine

MARK = "DRMDP_TEST_RUN"


def marked(mark):
    """Numbers of all processes that began with this mark in their environment, or come from one
    that did.
    """
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            if alive and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def all_gone(mark, seconds=90.0):
    """Whether no such process is left after a while; those that are."""
    end = time.monotonic() + seconds
    while (left := marked(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def listening(mark):
    """Addresses, as the kernel writes them, on which processes with a mark wait for others."""
    sockets = set()
    for number in marked(mark):
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{number}/fd"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(f"/proc/{number}/fd/{name}"))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                found.append(words[1].split(":")[0])
    return found


class Child:
    """A driver in a process of its own: it says a line at every sweep."""

    def __init__(self, script, *args, mark, ranks=0):
        before = ["mpiexec", "-n", str(ranks)] if ranks else []
        environment = os.environ | {MARK: mark, "PYTHONPATH": os.pathsep.join(sys.path)}
        words = [*before, sys.executable, "-c", script, *map(str, args)]
        self.process = subprocess.Popen(
            words,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.sweeps, self.pids = -1, {}

    def wait_for(self, sweep):
        """Read what it says until it has done so many sweeps; whether it is still at work."""
        while self.sweeps < sweep:
            line = self.process.stdout.readline()
            if not line:
                return False
            kind, number, *rest = line.split()
            if kind == "sweep":
                self.sweeps = int(number)
            elif kind == "pid":
                self.pids[int(number)] = int(rest[0])
        return True

    def kill(self, rank=0):
        """SIGKILL of the driver, or of another rank; then it has ended."""
        os.kill(self.pids[rank], signal.SIGKILL)
        self.process.communicate(timeout=120)
        return self.process.returncode


@dataclass
class Plan:
    """When to kill workers of Ray: at calls of some name, by their number, how many at once, and
    whether again while they come back.
    """

    name: str
    at: int
    victims: int = 1
    again: bool = False
    done: int = 0
    seen: int = 0


class KillingEngine(PooledEngine):
    """Workers that are killed in the middle of calls, as `plans` say."""

    plans: tuple | list = ()
    dice = random.Random(0)

    def _call(self, k, name, *rest):
        found = super()._call(k, name, *rest)
        if k == len(self.ranges) - 1:
            for plan in self.plans:
                if plan.name == name and not plan.done:
                    plan.seen += 1
                    if plan.seen > plan.at:
                        self._strike(plan)
        return found

    def _strike(self, plan):
        time.sleep(self.dice.choice([0.0, 0.0, 0.002, 0.01, 0.05]))
        for k in self.dice.sample(range(len(self.ranges)), plan.victims):
            plan.done += kill(k)
            if plan.again:
                time.sleep(self.dice.choice([0.0, 0.2, 1.0]))
                plan.done += kill(k)


def pid(k):
    """Number of the process of a seat; a new one if it was killed."""
    import ray

    while True:
        with contextlib.suppress(ray.exceptions.RayActorError):
            return ray.get(
                pool._actors[k].alive.options(concurrency_group="signs").remote(), timeout=600
            )[0]
        time.sleep(0.1)


def kill(k):
    """SIGKILL of a seat; how many died of it."""
    os.kill(pid(k), signal.SIGKILL)
    return 1


@dataclass(frozen=True)
class Mortal(pool.Pooled):
    """Ray with workers that die."""

    plans: list = field(default_factory=list, compare=False)
    seed: int = 0

    def start(self, source, ambiguity, scratch):
        """The engine."""
        engine = KillingEngine(source, ambiguity, self)
        engine.plans, engine.dice = self.plans, random.Random(self.seed)
        return engine
