"""The same large model on every engine: digests, exchanges, bytes, memory and seconds.

A = 4, N = 10, 8 next states a pair, float32, discount .95, (l2, 2), radius .1, to a relative gap of
1e-3. Every run is a process of its own, started from the command line as users type it. Engines
take turns: once to look at memory, which slows a run down, then `ROUNDS` times for the clock. The
least wall time of each is shown: ratios to one process with two threads say what an engine costs.
The start of its workers, and opening and checking the model, are told apart. One machine shows
neither a network nor more cores than it has.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 3
ENGINES: dict[str, tuple[str, ...]] = {
    "threads": ("--threads", "2"),
    "local": ("--cluster", "local", "--parts", "8", "--threads", "2"),
    "mpi": ("--cluster", "mpi", "--threads", "1"),
    "ray": ("--cluster", "ray", "--workers", "2", "--threads", "1"),
}
"""Options of each; MPI has two ranks, and one process with two threads, the first, is what others
are compared to.
"""
NEEDS = {"mpi": "mpi4py", "ray": "ray"}
PARTS = ("lower", "upper", "policy")
OWN = ("Anonymous:", "Pss_Shmem:")
PERIOD = 0.2
"""Seconds between two looks at memory."""


@dataclass(frozen=True)
class ClusterRow:
    """One engine."""

    engine: str
    n_states: int
    digest: str  # of lower, upper and policy
    exchanges: int
    megabytes: float  # that all workers received in them
    foreseen: float  # the same by `8 S (W − 1)` for each
    seconds: float  # wall, of the solve, least
    ratio: float  # to the first engine
    setup: float  # wall seconds before the solve, in the same run
    # bytes a state of the largest process that are in no file, its share of shared memory included,
    # beyond its libraries
    worker: float
    planned: float  # what `--dry-run` says of these


def cluster(n_states: int) -> Iterator[ClusterRow]:
    """The table; engines that are not installed are left out."""
    names = [name for name in ENGINES if name not in NEEDS or importlib.util.find_spec(NEEDS[name])]
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder) / "garnet.drmdp", Path(folder) / "solution"
        sizes = ("--states", str(n_states), "--actions", "4", "--kernels", "10", "--branching", "8")
        _drmdp(
            "instance",
            "garnet",
            *sizes,
            "--discount",
            "0.95",
            "--sparse",
            "--same-support",
            "--float32",
            "--out",
            model,
        )
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for k in range(ROUNDS + 1):
            for name in names:
                runs[name].append(_run(name, model, out, look=k == 0))
        first = min(run["seconds"] for run in runs[names[0]][1:])
        for name in names:
            yield _row(name, n_states, runs[name], first)


def _row(name: str, n_states: int, runs: list[dict[str, Any]], first: float) -> ClusterRow:
    looked, best = runs[0], min(runs[1:], key=lambda run: run["seconds"])
    settings, plan = best["settings"], looked["plan"]
    exchanges = settings.get("exchanges", 0)
    digests = {run["digest"] for run in runs}
    return ClusterRow(
        name,
        n_states,
        ", ".join(sorted(digests)),
        exchanges,
        settings.get("bytes", 0) / 1e6,
        exchanges * plan.get("exchange", 0) / 1e6,
        best["seconds"],
        best["seconds"] / first,
        best["setup_seconds"],
        looked["own"] / n_states,
        plan.get("worker", 0) / n_states,
    )


def _run(name: str, model: Path, out: Path, look: bool) -> dict[str, Any]:
    """Solve once; what was found, and with `look` what was planned and the memory of the largest
    process beyond that of a plan.
    """
    plain = name == "threads"
    out = out.with_suffix(".npz") if plain else out
    shutil.rmtree(out, ignore_errors=True)
    asked = (
        "solve",
        model,
        "--radius",
        "0.1",
        "--rtol",
        "1e-3",
        *ENGINES[name],
        "--json",
        "--no-progress",
    )
    ranks = (_mpiexec(), "-n", "2") if name == "mpi" else ()
    plan, before, peak = {}, [0], [0]
    if look and not plain:
        plan = json.loads(_drmdp(*asked, "--dry-run", ranks=ranks, watch=before).splitlines()[0])
    found = json.loads(_drmdp(*asked, "--out", out, ranks=ranks, watch=peak if look else None))
    digest = hashlib.sha256()
    parts = (
        np.load(out)
        if plain
        else {part: np.load(out / f"{part}.npy", mmap_mode="r") for part in PARTS}
    )
    for part in PARTS:
        digest.update(np.ascontiguousarray(parts[part]).data)
    return {**found, "plan": plan, "digest": digest.hexdigest()[:12], "own": peak[0] - before[0]}


def _mpiexec() -> str:
    """The launcher beside this Python, or on the path."""
    own = Path(sys.executable).with_name("mpiexec")
    return str(own) if own.exists() else "mpiexec"


def _drmdp(*arguments: Any, ranks: tuple[str, ...] = (), watch: list[int] | None = None) -> str:
    """Run a command; `watch` gets the bytes that its largest process has beyond what it had when it
    began to look.
    """
    command = [*ranks, sys.executable, "-m", "drmdp", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    watcher = threading.Thread(target=_look, args=(process, watch), daemon=True)
    if watch is not None:
        watcher.start()
    text = process.communicate()[0].decode()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return text


def _look(process: subprocess.Popen[bytes], peak: list[int]) -> None:
    """Keep the largest memory in no file of any process below one, on systems that tell it; what is
    shared counts in parts.
    """
    while process.poll() is None:
        for number in _below(process.pid):
            try:
                text = Path(f"/proc/{number}/smaps_rollup").read_text()
            except OSError:
                continue
            lines = [line.split() for line in text.splitlines()]
            peak[0] = max(peak[0], sum(1024 * int(line[1]) for line in lines if line[0] in OWN))
        time.sleep(PERIOD)


def _below(root: int) -> list[int]:
    """Processes started by one, and by those, itself included."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if Path("/proc").is_dir() else ():
        if entry.isdigit():
            try:
                parent = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            parents.setdefault(parent, []).append(int(entry))
    found = [root]
    for number in found:
        found += parents.get(number, [])
    return found
