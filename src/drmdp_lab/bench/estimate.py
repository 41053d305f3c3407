"""Ten million rows → kernels, through the command line: seconds and peak memory of each way, and a check of the counts.

    python -m drmdp_lab.bench.estimate [ROWS]

The process is the one a user starts; its clock includes Python, imports and writing the model. Peak memory is its
VmHWM (Linux). Probabilities are compared with a NumPy count of the same rows.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import drmdp

S, A, REACH, LENGTH, YEARS = 200, 5, 10, 100, 10
PAIRS = ["--unvisited", "self-loop", "--partial", "self-loop"]
LAUNCH = """
import atexit, sys
from drmdp.cli import main
atexit.register(lambda: print([line for line in open("/proc/self/status") if "VmHWM" in line][0], file=sys.stderr))
main()
"""
STEPS = ["--next-state", "next_state"]


def rows(n, seed=0):
    """Random walks of `LENGTH` steps, (n,) each column."""
    rng = np.random.default_rng(seed)
    episode, time_ = np.divmod(np.arange(n), LENGTH)
    action = rng.integers(0, A, n)
    state = (np.cumsum(rng.integers(0, REACH, n)) + rng.integers(0, S)) % S
    following = np.append(state[1:], 0)
    cost = rng.integers(0, 1000, n) / 1000
    year = 2000 + episode % YEARS
    return {"episode": episode, "time": time_, "state": state, "action": action, "next_state": following,
            "cost": cost, "year": year}  # fmt: skip


def measured(args):
    """Seconds and peak memory (MB) of a command."""
    begin = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", LAUNCH, "estimate", *args], capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, int(run.stderr.split()[-2]) / 1024


def frequencies(data, chosen):
    """Share of each next state, (S, A, S), by NumPy."""
    s, a, t = (data[name][chosen] for name in ("state", "action", "next_state"))
    counts = np.bincount((s * A + a) * S + t, minlength=S * A * S).reshape(S, A, S).astype(float)
    return counts / counts.sum(axis=2, keepdims=True)


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    data = rows(n)
    table = pl.DataFrame(data)
    inner = data["time"] < LENGTH - 1
    cases = {
        "one kernel": ([*STEPS], lambda model: [(0, np.ones(n, bool))]),
        "by year": ([*STEPS, "--by", "year"], lambda model: [(i, data["year"] == 2000 + i) for i in range(YEARS)]),
        "posterior, 20": ([*STEPS, "--by", "posterior", "--kernels", "20"], None),
        "bootstrap, 20": ([*STEPS, "--by", "bootstrap", "--kernels", "20", "--episode", "episode"], None),
        "episodes by year": (["--by", "year", "--episode", "episode", "--time", "time"],
                             lambda model: [(i, inner & (data["year"] == 2000 + i)) for i in range(YEARS)]),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        print(f"{n:,} rows, {S} states, {A} actions, {os.cpu_count()} cores")
        print(f"{'':26}{'Parquet':>20}{'CSV':>20}")
        for order in ("in order", "shuffled"):
            if order == "shuffled":
                table = table.sample(fraction=1, shuffle=True, seed=0)
                cases = {"episodes by year": cases["episodes by year"]}
            for visits in (False, True):
                held = table.drop("next_state") if visits else table
                paths = [Path(folder) / f"log.{suffix}" for suffix in ("parquet", "csv")]
                held.write_parquet(paths[0])
                held.write_csv(paths[1])
                for name, (args, check) in cases.items():
                    if name.startswith("episodes") != visits:
                        continue
                    line = f"{name + ', ' + order:26}"
                    for path in paths:
                        out = str(Path(folder) / "model.npz")
                        common = ["--cost", "cost", "--discount", "0.9", *PAIRS, "-o", out]
                        seconds, memory = measured([str(path), *args, *common])
                        line += f"{seconds:9.2f} s {memory:6.0f} MB"
                        if check is not None:
                            model = drmdp.read(out)
                            for i, chosen in check(model):
                                np.testing.assert_allclose(
                                    model.kernels[i], frequencies(data, chosen), rtol=0, atol=1e-15
                                )
                    print(line, flush=True)


if __name__ == "__main__":
    main()
