"""Small problems of every set, with every degeneracy, for proofs and what forges them."""

import math

import numpy as np

import drmdp

NORMS = [
    (metric, order)
    for metric in ("l1", "l2", "linf")
    for order in (1, 2, math.inf)
    if (metric, order) in drmdp.sets.PAIRS
]
KINDS = ("kl", "burg", "chi2", "tv")
SETS = [
    *NORMS, *(("divergence", kind, around) for kind in KINDS for around in ("mean", "kernels")),
    *(("reweighting", kind) for kind in (*KINDS, "cvar", "any")), ("intervals",),
]  # fmt: skip
"""Names of the sets that a proof can be about."""
SIZES = (0, 1e-3, 0.05, 0.3, 1.0, 3.0)


def dealt(seed):
    """A model of up to 5 states, 5 actions and 5 kernels."""
    rng = np.random.default_rng(seed)
    S, A, N = (int(rng.integers(1, 6)) for _ in range(3))
    kernels = rng.dirichlet(np.full(S, 0.5), size=(N, S, A))
    kernels[kernels < 0.05] = 0
    if seed % 7 == 0:
        kernels = np.eye(S)[kernels.argmax(axis=-1)]
    kernels /= kernels.sum(axis=-1, keepdims=True)
    costs = rng.random((S, A, S) if seed % 3 == 0 else (S, A)) * 10.0 ** rng.integers(-9, 10)
    costs = np.zeros_like(costs) if seed % 11 == 0 else costs
    weights = rng.dirichlet(np.ones(N))
    if N > 1 and seed % 2:
        weights[0] = 0
    available = rng.random((S, A)) < 0.8
    available[np.arange(S), rng.integers(A, size=S)] = True
    return drmdp.Model(
        kernels, discount=float(rng.choice([0, 0.5, 0.9, 0.9999])), weights=weights / weights.sum(), available=available,
        terminal=(rng.random(S) < 0.15) & (S > 1) & (seed % 4 == 0), **{"rewards" if seed % 5 == 0 else "costs": costs},
    )  # fmt: skip


def ball_of(name, model, seed):
    """A set of a name around a model, its size and its other settings drawn."""
    rng = np.random.default_rng(seed)
    r, rectangular, support = (
        float(rng.choice(SIZES)),
        str(rng.choice(["s", "sa"])),
        str(rng.choice(["observed", "all"])),
    )
    if name[0] == "intervals":
        return drmdp.Intervals.of(model, min(r, 1.0))
    if name[0] == "divergence":
        return drmdp.Divergence(r, *name[1:], support, rectangular)
    if name[0] != "reweighting":
        return drmdp.Wasserstein(r, *name, support=support, rectangular=rectangular)
    if name[1] in ("cvar", "any"):
        size = {"level": 1 - r / 3} if name[1] == "cvar" else {}
        return drmdp.Reweighting(kind=name[1], rectangular=rectangular, **size)
    return drmdp.Reweighting(r, name[1], rectangular)


def written(name, seed, folder):
    """Solve a problem and write its model and its proof; returns the solution and both paths."""
    model = dealt(seed)
    solution = drmdp.solve(model, ball_of(name, model, seed))
    paths = folder / f"{seed}.proof", folder / f"{seed}.npz"
    solution.proof(paths[0])
    drmdp.write(model, paths[1])
    return solution, *paths
