"""Small problems of every set, with every degeneracy, for proofs and what forges them."""

import math

import numpy as np

import drmdp

ORDERS = [("l1", 2), ("l2", 1), ("linf", 2), ("l1", 1.5), ("l2", 3), ("linf", 4)]
KINDS = ("kl", "burg", "chi2", "tv")
SETS = [
    *drmdp.sets.PAIRS, *ORDERS, *(("divergence", kind, around) for kind in KINDS for around in ("mean", "kernels")),
    *(("reweighting", kind) for kind in (*KINDS, "cvar", "any")), ("intervals",), ("transport", 1), ("transport", math.inf),
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
    if name[0] == "transport":
        return drmdp.Wasserstein(r, *name, support, rectangular, ground=_ground(rng, model.n_states))
    if name[0] != "reweighting":
        return drmdp.Wasserstein(r, *name, support=support, rectangular=rectangular)
    if name[1] in ("cvar", "any"):
        size = {"level": 1 - r / 3} if name[1] == "cvar" else {}
        return drmdp.Reweighting(kind=name[1], rectangular=rectangular, **size)
    return drmdp.Reweighting(r, name[1], rectangular)


def _ground(rng, S):
    """Costs of moving mass: any, some of them 0 or infinite, or distances on a line or a grid."""
    kind = rng.integers(4)
    if kind == 0:
        return "line", rng.normal(size=S)
    if kind == 1:
        return "grid", rng.integers(0, 3, size=(S, 2)).astype(float)
    costs = rng.random((S, S)) * (rng.random((S, S)) < 0.8)
    costs[rng.random((S, S)) < 0.2] = np.inf if kind == 2 else 1.0
    np.fill_diagonal(costs, 0.0)
    return costs


TASKS = ("solve", "evaluate", "solve helped", "evaluate helped", "plan")
"""What a proof can be of."""


def found(name, seed, task="solve"):
    """A problem, and what was found: the model and the result."""
    model, rng = dealt(seed), np.random.default_rng(seed)
    ball, nature = ball_of(name, model, seed), "cooperative" if task.endswith("helped") else "adversarial"
    if task.startswith("solve"):
        return model, drmdp.solve(model, ball, nature=nature)
    if task == "plan":
        final = np.where(model.terminal, 0.0, rng.normal(size=model.n_states) * (seed % 3))
        rate = [None, 1.0, 0.3][seed % 3]
        plan = drmdp.finite_horizon(
            model, ball, 1 + seed % 4, final, discount=rate, nature=drmdp.sets.base.NATURES[seed % 2]
        )
        return model, plan if seed % 5 else drmdp.evaluate(model, ball, plan)
    policy = np.where(model.available, rng.random(model.available.shape) * (rng.random(model.available.shape) < 0.7), 0)
    policy += np.where(policy.sum(axis=1, keepdims=True) > 0, 0, model.available)
    policy = policy / np.where(model.terminal, 1.0, policy.sum(axis=1))[:, None]
    return model, drmdp.evaluate(model, ball, policy, nature=nature)


def written(name, seed, folder, task="solve"):
    """Solve a problem and write its model and its proof; returns the result and both paths."""
    model, result = found(name, seed, task)
    paths = folder / f"{seed}.proof", folder / f"{seed}.npz"
    result.proof(paths[0])
    drmdp.write(model, paths[1])
    return result, *paths
