"""Fill the cache of compiled kernels, with those of the pairs given: `python tests/compile_ahead.py l1-1 l2-2`."""

import sys

import numpy as np

import drmdp

HALVES = (("l2-2", "l2-inf", "l1-1", "linf-inf"), ("l1-inf", "linf-1"))
"""About as much work each."""


def compile_pair(name):
    metric, order = name.split("-")
    ball = drmdp.Wasserstein(0.3, metric, float(order))
    dense = drmdp.instances.perturb(drmdp.instances.garnet(6, 3), 3)
    large = drmdp.instances.perturb(drmdp.instances.garnet(30, 3, branching=3, sparse=True), 3)
    for model in (dense, large, large.astype(np.float32)):
        solution = drmdp.solve(model, ball, tol=1e-3)
        drmdp.evaluate(model, ball, solution.policy)
    drmdp.solve(dense, ball, method="first-order", tol=1e-3, max_iters=2)
    drmdp.project(dense.kernels[:, 0] + 0.1, dense.kernels[:, 0], ball)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        compile_pair(given)
