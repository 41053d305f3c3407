"""Sweeps per radius along a path: `python -m drmdp_lab.bench.path [--radii 50]`.

A path of radii from 0 to saturation, every one certified to 1e-6 of the largest value on it, in reads of all N kernels (F sweeps) per radius; beside
it the same radii solved one by one.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import drmdp
from drmdp.instances import forest, garnet, machine, perturb
from drmdp.sets import PAIRS


def problems() -> dict[str, drmdp.Model]:
    return {
        "garnet 50×10": perturb(garnet(50, 10, seed=1, discount=0.95), 10, seed=1),
        "garnet sparse": perturb(garnet(300, 5, branching=6, seed=1, discount=0.95, sparse=True), 10, seed=1),
        "machine 50": perturb(machine(50, discount=0.95), 10, seed=1),
        "forest 50": perturb(forest(50, discount=0.95), 10, seed=1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--radii", type=int, default=50)
    parser.add_argument("--alone", action="store_true", help="also solve every radius from scratch")
    given = parser.parse_args()
    print(f"{'problem':14} {'ball':9} {'mean':>6} {'most':>5} {'alone':>6} {'s':>7}  certified")
    for name, model in problems().items():
        for metric, order in PAIRS:
            ball = drmdp.Wasserstein(0.0, metric, order, support="all")
            largest = drmdp.Wasserstein(float(ball.saturation(model).max()), metric, order, support="all")
            scale = float(np.abs(drmdp.solve(model, largest).upper).max())
            begin = time.perf_counter()
            path = drmdp.radius.path(model, ball, given.radii, tol=1e-6 * scale)
            seconds = time.perf_counter() - begin
            alone = np.nan
            if given.alone:
                balls = [drmdp.Wasserstein(r, metric, order, support="all") for r in path.radii]
                alone = float(np.mean([drmdp.solve(model, own, tol=1e-6 * scale).kernel_passes for own in balls]))
            passes = path.kernel_passes
            proved = sum(point.status == "solved" for point in path.points)
            print(
                f"{name:14} {metric + ',' + format(order, 'g'):9} {passes.mean():6.2f} {passes.max():5.0f} {alone:6.2f} "
                f"{seconds:7.2f}  {proved}/{len(passes)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
