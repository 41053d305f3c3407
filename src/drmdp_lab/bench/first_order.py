"""The first-order method on trial: `python -m drmdp_lab.bench.first_order [--json rows.jsonl] [--quick] [table …]`.

rates       (DG) against T: fitted log-log slopes for p = 0, 1, 2 and q = 1, 2, 3, beside the theorem's −q/(q+1). With q = 3
            ten thousand steps are 13 epochs: where v is what lacks, the slope is that of λ^13, and steeper later
slopes      garnet 30/30/5, ℓ2 of order 2, five seeds: iterations to (DG) ≤ .05 and slope until there for each p and q
trials      multipliers tried by proximal maps where the ball binds: cold, later in the paper's variant and in the preset
cost        CPU time of an iteration against N, S, A: fitted exponents
seeds       garnet 30/30/5, ℓ2 of order 2: the paper's variant and the preset to (DG) ≤ .05, from their own and from a random v
kernels     the same for N = 5 … 70: iterations, epochs and time per iteration
total       CPU time to the target against 1/target, and against N and S = A, beside the paper's O(N A^2.5 S^3.5 log S log(1/ε) ε^−1.5)
comparison  30 states, N = 30, ℓ2 of order 2: the paper's variant, the preset, value iteration with Clarabel, and the exact
            engine, stopped by the same certificate at (DG) ≤ .05. A Clarabel sweep is timed on a few states and scaled to all
            of them; how many sweeps are needed is counted with the exact operator, which computes the same sweep.
pairs       the same for the other balls; ℓ1 and ℓ∞ sweeps are linear programs for HiGHS, timed from its last basis
entropy     ℓ∞ of order ∞: iterations and time to (DG) ≤ .05 for each proximal set-up, in the paper's variant and in the preset

One thread, CPU time, after a first run. The ball binds at the smaller radius of each domain and hardly at the larger. Garnet has costs in
[0, 10]; for rewards, as in the paper, see `drmdp reproduce --only readings`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import drmdp
from drmdp import instances
from drmdp.bellman.build import build
from drmdp.bellman.conic.operator import ConicOperator
from drmdp.sets import PAIRS
from drmdp.solvers.first_order import SETUPS
from drmdp.solvers.problem import Problem
from drmdp_lab import bench
from drmdp_lab.bench.growth import slope as fit

TARGET = 0.05
GARNET = math.sqrt(0.2 * 30)
Row = dict[str, Any]
Radii = dict[str, tuple[float, float]]
RADII: Radii = {"garnet": (0.3, GARNET), "machine": (0.1, 0.5), "forest": (0.1, 0.5)}


def model(name: str, n_states: int, n_actions: int, n_kernels: int, seed: int = 0) -> drmdp.Model:
    nominal = {
        "garnet": lambda: instances.garnet(n_states, n_actions, seed=seed),
        "machine": lambda: instances.machine(n_states),
        "forest": lambda: instances.forest(n_states),
    }[name]()
    return instances.perturb(nominal, n_kernels, seed=seed)


def paper_ball(radius: float, metric: Any = "l2", order: float = 2) -> drmdp.Wasserstein:
    """The paper's ball: mass may move to any state."""
    return drmdp.Wasserstein(radius, metric, order, support="all")


def solved(own: drmdp.Model, ball: drmdp.Wasserstein, method: Any, **settings: Any) -> tuple[drmdp.Solution, float]:
    """A solution and its CPU seconds."""
    begin = time.process_time()
    found = drmdp.solve(own, ball, method, threads=1, **settings)
    return found, time.process_time() - begin


def to_target(own: drmdp.Model, ball: drmdp.Wasserstein, method: Any, **settings: Any) -> tuple[drmdp.Solution, float]:
    return solved(own, ball, method, tol=TARGET, **settings)


def rule(kind: Callable[..., Any] = drmdp.FirstOrder, **settings: Any) -> Any:
    return kind(stop="duality-gap", **settings)


def rates(quick: bool) -> Iterator[Row]:
    size, limit = (8, 300) if quick else (15, 9_500)
    for name in RADII:
        own = model(name, size, size, 5)
        for radius in RADII[name]:
            for p, q in ((0, 2), (1, 2), (2, 2), (1, 1), (1, 3)):
                method = drmdp.FirstOrder(epoch_power=q, weight_power=p, check_every=4 if q == 1 else 1)
                found = solved(own, paper_ball(radius), method, tol=1e-7, max_iters=limit)[0]
                points = [(r.iteration, r.upper - r.lower) for r in found.history if r.upper - r.lower > 1e-6]
                points = [(T, gap) for T, gap in points if points[-1][0] / 20 <= T]
                yield {
                    "instance": f"{name} {size}", "radius": radius, "weight_power": p, "epoch_power": q,
                    "slope": fit(*zip(*points, strict=True)) if len(points) > 2 else math.nan, "theorem": -q / (q + 1),
                    "iterations": points[-1][0] if points else found.n_iters,
                    "duality_gap": points[-1][1] if points else found.duality_gap,
                }  # fmt: skip


def slopes(quick: bool) -> Iterator[Row]:
    S, seeds_, limit = (10, 2, 1_000) if quick else (30, 5, 8_000)
    for p, q in ((0, 2), (1, 2), (2, 2), (1, 1), (1, 3)):
        iterations, fitted = [], []
        for seed in range(seeds_):
            own, ball = model("garnet", S, S, 5, seed), paper_ball(math.sqrt(0.2 * S))
            method = rule(epoch_power=q, weight_power=p, check_every=4 if q == 1 else 1)
            found = to_target(own, ball, method, max_iters=limit)[0]
            points = [(r.iteration, r.upper - r.lower) for r in found.history if r.iteration >= 5]
            iterations.append(found.n_iters if found.duality_gap <= TARGET else math.inf)
            fitted.append(fit(*zip(*points, strict=True)) if len(points) > 2 else math.nan)
        yield {
            "instance": f"garnet {S}/{S}/5", "weight_power": p, "epoch_power": q, "iterations": iterations,
            "median": float(np.median(iterations)), "slopes": fitted, "theorem": -q / (q + 1),
        }  # fmt: skip


def tried(own: drmdp.Model, ball: drmdp.Wasserstein, method: Any, n_steps: int) -> tuple[float, float]:
    """Mean trials of the first step in which the ball binds, and of the later ones."""
    problem = Problem(build(own, ball, "exact", 1))
    state = method.init(problem, None)
    rows = []
    for _ in range(n_steps):
        state = method.step(problem, state)
        trials = state.players.trials
        rows += [trials[trials > 0]] if (trials > 0).any() else []
    if not rows:
        return math.nan, math.nan
    return float(rows[0].mean()), float(np.concatenate(rows[1:]).mean()) if rows[1:] else math.nan


def trials(quick: bool) -> Iterator[Row]:
    S, N, n_steps = (8, 4, 30) if quick else (30, 30, 204)
    for metric, order in PAIRS:
        for radius in (0.1, 0.3, 1.0):
            ball = paper_ball(radius / 3 if metric == "linf" else radius, metric, order)
            own = model("garnet", S, S, N, 1)
            first, later = tried(own, ball, drmdp.FirstOrder(check_every=10**9), n_steps)
            fast = drmdp.FirstOrder.fast(check_every=10**9)
            first_fast, later_fast = tried(own, ball, fast, n_steps // 6)
            yield {
                "instance": f"garnet {S}/{S}/{N}", "pair": f"{metric},{order:g}", "radius": float(ball.radius),
                "paper_first": first, "paper_later": later, "fast_first": first_fast, "fast_later": later_fast,
            }  # fmt: skip


def total(quick: bool) -> Iterator[Row]:
    """Fitted exponents of the paper's variant; ε is 2·target."""
    S, N = (8, 4) if quick else (20, 10)
    targets = (0.4, 0.1, 0.025) if quick else (0.4, 0.1, 0.025, 0.00625)
    sizes = (6, 9, 12) if quick else (10, 20, 40)

    def seconds(n_states: int, n_kernels: int, target: float) -> float:
        own = model("garnet", n_states, n_states, n_kernels, 1)
        return solved(own, paper_ball(math.sqrt(0.2 * n_states)), rule(), tol=target)[1]

    for against, values, theory, run in (
        ("1/target", [1 / target for target in targets], 1.5, lambda x: seconds(S, N, 1 / x)),
        ("N", [N, 2 * N, 4 * N], 1.0, lambda x: seconds(S, int(x), TARGET)),
        ("S = A", list(sizes), 6.0, lambda x: seconds(int(x), N, TARGET)),
    ):
        found = [run(x) for x in values]
        yield {
            "instance": f"garnet {S}/{S}/{N}", "against": against, "values": [float(x) for x in values],
            "ms": [1e3 * own for own in found], "exponent": fit(values, found), "theory": theory,
        }  # fmt: skip


def step_seconds(own: drmdp.Model, ball: drmdp.Wasserstein, n_steps: int) -> float:
    """CPU seconds of a step, certificates left out."""
    method = drmdp.FirstOrder(check_every=1000)
    problem = Problem(build(own, ball, "exact", 1))
    state = method.init(problem, None)
    for _ in range(14):
        state = method.step(problem, state)
    times = []
    for _ in range(n_steps):
        begin = time.process_time()
        state = method.step(problem, state)
        times.append(time.process_time() - begin)
    return float(np.median(times))


def cost(quick: bool) -> Iterator[Row]:
    sizes = (8, 16, 32) if quick else (10, 20, 40, 80)
    n_steps = 8 if quick else 25
    for radius in (0.3, GARNET):
        for letter in "NSA":
            seconds = []
            for n in sizes:
                N, S, A = (n if letter == other else sizes[1] for other in "NSA")
                seconds.append(step_seconds(model("garnet", S, A, N), paper_ball(radius), n_steps))
            yield {
                "instance": "garnet", "radius": radius, "against": letter, "exponent": fit(sizes, seconds),
                "sizes": list(sizes), "ms": [1e3 * own for own in seconds],
            }  # fmt: skip


def seeds(quick: bool) -> Iterator[Row]:
    S = 10 if quick else 30
    for seed in range(5):
        own, ball = model("garnet", S, S, 5, seed), paper_ball(math.sqrt(0.2 * S))
        start = np.random.default_rng(seed).uniform(0, 1, S)
        for name, first in (("own", None), ("random v", start)):
            row: Row = {"instance": f"garnet {S}/{S}/5", "seed": seed, "start": name}
            for label, method in (("paper", rule()), ("fast", rule(drmdp.FirstOrder.fast))):
                found, seconds = to_target(own, ball, method, start=first)
                row |= {f"{label}_iterations": found.n_iters, f"{label}_ms": 1e3 * seconds}
                if label == "paper":
                    points = [(r.iteration, r.upper - r.lower) for r in found.history if r.iteration >= 5]
                    row["slope"] = fit(*zip(*points, strict=True)) if len(points) > 2 else math.nan
            yield row


def kernels(quick: bool) -> Iterator[Row]:
    S = 10 if quick else 30
    for N in (5, 10) if quick else (5, 10, 20, 40, 70):
        own, ball = model("garnet", S, S, N), paper_ball(math.sqrt(0.2 * S))
        for name, first in (("own", None), ("random v", np.random.default_rng(0).uniform(0, 1, S))):
            found, seconds = to_target(own, ball, rule(), start=first)
            yield {
                "instance": f"garnet {S}/{S}/{N}", "start": name, "iterations": found.n_iters,
                "epochs": len(found.history) - 1, "ms": 1e3 * seconds,
                "ms_per_iteration": 1e3 * step_seconds(own, ball, 8),
            }  # fmt: skip


def conic_sweep(own: drmdp.Model, ball: drmdp.Wasserstein, value: Any, n_states: int) -> float:
    """CPU seconds of a Clarabel sweep, from the second solution of the first few states."""
    operator = ConicOperator(own, ball)
    operator.update(0.9 * value, 0, n_states)
    begin = time.process_time()
    operator.update(value, 0, n_states)
    return (time.process_time() - begin) * own.n_states / n_states


def race(own: drmdp.Model, ball: drmdp.Wasserstein, start: Any, n_conic: int) -> Row:
    """All four to the target."""
    row: Row = {}
    for kind, method in (
        ("paper", rule()), ("fast", rule(drmdp.FirstOrder.fast)), ("exact", rule(drmdp.PolicyIteration)),
        ("sweeps", rule(drmdp.ValueIteration)),
    ):  # fmt: skip
        found, seconds = to_target(own, ball, method, start=start)
        if kind != "paper":
            seconds = min(seconds, *(to_target(own, ball, method, start=start)[1] for _ in range(2)))
        row |= {f"{kind}_iterations": found.n_iters, f"{kind}_ms": 1e3 * seconds}
    value = -found.value if own.maximise else found.value
    sweeps = row["sweeps_iterations"] + 1  # the start is swept too
    row["conic_ms"] = 1e3 * conic_sweep(own, ball, value, n_conic) * sweeps
    return row | {
        "conic_sweeps": sweeps, "conic_over_paper": row["conic_ms"] / row["paper_ms"],
        "conic_over_fast": row["conic_ms"] / row["fast_ms"], "paper_over_fast": row["paper_ms"] / row["fast_ms"],
        "fast_over_exact": row["fast_ms"] / row["exact_ms"],
    }  # fmt: skip


def comparison(quick: bool) -> Iterator[Row]:
    S, N, n_conic = (10, 5, 2) if quick else (30, 30, 3)
    for name, radii in RADII.items():
        for seed in range(1 if quick or name != "garnet" else 5):
            own = model(name, S, S, N, seed)
            for radius in radii:
                ball = paper_ball(min(radius, math.sqrt(0.2 * S)))
                starts = {"own": None} if seed else {"own": None, "random v": np.random.default_rng(0).uniform(0, 1, S)}
                for label, start in starts.items():
                    row: Row = {"instance": f"{name} {S}/{own.n_actions}/{N}", "seed": seed}
                    yield row | {"radius": float(ball.radius), "start": label} | race(own, ball, start, n_conic)


def pairs(quick: bool) -> Iterator[Row]:
    S, N, n_conic = (8, 4, 2) if quick else (15, 10, 3)
    for name in RADII:
        own = model(name, S, S, N)
        for metric, order in PAIRS:
            if (metric, order) == ("l2", 2):
                continue
            ball = paper_ball(0.1 if metric == "linf" else 0.3, metric, order)
            row: Row = {"instance": f"{name} {S}/{own.n_actions}/{N}", "pair": f"{metric},{order:g}"}
            yield row | {"radius": float(ball.radius)} | race(own, ball, None, n_conic)


def entropy(quick: bool) -> Iterator[Row]:
    S, N, limit = (8, 4, 300) if quick else (30, 30, 4_000)
    for name in RADII:
        own = model(name, S, S, N)
        for radius in (0.03, 0.1):
            ball = paper_ball(radius, "linf", math.inf)
            for label, kind in (("paper", drmdp.FirstOrder), ("fast", drmdp.FirstOrder.fast)):
                row: Row = {"instance": f"{name} {S}/{own.n_actions}/{N}", "radius": radius, "variant": label}
                for setup in SETUPS:
                    found, seconds = to_target(own, ball, rule(kind, setup=setup), max_iters=limit)
                    iterations = found.n_iters if found.duality_gap <= TARGET else math.inf
                    row |= {f"{setup}_iterations": iterations, f"{setup}_ms": 1e3 * seconds}
                yield row


TABLES = {
    "rates": rates, "slopes": slopes, "trials": trials, "cost": cost, "seeds": seeds, "kernels": kernels, "total": total,
    "comparison": comparison, "pairs": pairs, "entropy": entropy,
}  # fmt: skip


def cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(f"{own:.3g}" for own in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="table", help=f"any of {', '.join(TABLES)}; all by default")
    parser.add_argument("--json", type=Path, help="append the rows to this file")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    arguments = parser.parse_args()
    if unknown := set(arguments.tables) - set(TABLES):
        parser.error(f"unknown table {', '.join(unknown)}; known: {', '.join(TABLES)}")
    print(", ".join(f"{key} {value}" for key, value in bench.machine().items()))
    for kind in (
        drmdp.FirstOrder,
        drmdp.FirstOrder.fast,
        drmdp.PolicyIteration,
        drmdp.ValueIteration,
    ):  # load what is needed
        for pair in PAIRS:
            drmdp.solve(model("garnet", 5, 3, 2), paper_ball(0.1, *pair), kind(), tol=TARGET, max_iters=30)
    both = drmdp.FirstOrder(setup="entropy-both")
    drmdp.solve(model("garnet", 5, 3, 2), paper_ball(0.1, "linf", math.inf), both, tol=TARGET, max_iters=3)
    rows = []
    for name in arguments.tables or TABLES:
        print(f"\n{name}")
        for number, row in enumerate(TABLES[name](arguments.quick)):
            rows.append({"table": name, **bench.machine(), **row})
            if number == 0:
                print("  ".join(row))
            print("  ".join(f"{cell(value):>{len(key)}}" for key, value in row.items()), flush=True)
    if arguments.json:
        with arguments.json.open("a") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
