"""Fill the cache of compiled kernels, with those of the pairs given: `python tests/compile_ahead.py l1-1 l2-2`."""

import sys

import drmdp


def compile_pair(name):
    metric, order = name.split("-")
    ball = drmdp.Wasserstein(0.3, metric, float(order))
    model = drmdp.instances.perturb(drmdp.instances.garnet(6, 3), 3)
    solution = drmdp.solve(model, ball, tol=1e-3)
    drmdp.evaluate(model, ball, solution.policy)
    drmdp.solve(model, ball, method="first-order", tol=1e-3, max_iters=2)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        compile_pair(given)
