"""Small problems of every set, with every degeneracy, for proofs and what forges them."""

import math

import numpy as np

import drmdp
from drmdp.sets import PAIRS
from drmdp.sets.registry import DIVERGENCES, MIXTURES

ORDERS = [("l1", 2), ("l2", 1), ("linf", 2), ("l1", 1.5), ("l2", 3), ("linf", 4)]
SETS = [
    *PAIRS,
    *ORDERS,
    *(("divergence", kind, around) for kind in DIVERGENCES for around in ("mean", "kernels")),
    *(("reweighting", kind) for kind in MIXTURES),
    ("intervals",),
    ("transport", 1),
    ("transport", math.inf),
]
"""Names of the sets that a proof can be about."""
LAWS = [name for name in SETS if name[0] in ("l1", "l2", "linf", "divergence")]
"""Those that nature may have around laws of events, too."""
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
        kernels,
        discount=float(rng.choice([0, 0.5, 0.9, 0.9999])),
        weights=weights / weights.sum(),
        available=available,
        terminal=(rng.random(S) < 0.15) & (S > 1) & (seed % 4 == 0),
        **{"rewards" if seed % 5 == 0 else "costs": costs},
    )


def staged(seed, t):
    """Another model of the states and actions of the one that was dealt, for stage t."""
    first, rng = dealt(seed), np.random.default_rng([seed, t])
    (S, A), N = first.available.shape, int(rng.integers(1, 4))
    kernels = rng.dirichlet(np.full(S, 0.5), size=(N, S, A))
    kernels[kernels < 0.05] = 0
    kernels /= kernels.sum(axis=-1, keepdims=True)
    costs = rng.random((S, A, S) if rng.random() < 0.3 else (S, A)) * (
        np.abs(first.cost_range).max() or 1.0
    )
    kind = "rewards" if first.maximise else "costs"
    same = {"discount": first.discount, "terminal": first.terminal, "available": first.available}
    return drmdp.Model(kernels, **same, **{kind: costs})


def of_events(seed):
    """A model of events, of up to 5 states, 4 actions, 4 events and 4 laws in up to two classes."""
    rng = np.random.default_rng(seed)
    S, A, E, N = (int(rng.integers(1, most)) for most in (6, 5, 5, 5))
    C = 1 + seed % 2
    there, prices = (
        rng.integers(S, size=(S, A, E)),
        rng.random((S, A, E)) * 10.0 ** rng.integers(-9, 10),
    )
    laws = rng.dirichlet(np.full(E, 0.7), size=(C, N))
    laws[laws < 0.05] = 0
    laws /= laws.sum(axis=-1, keepdims=True)
    weights = rng.dirichlet(np.ones(N))
    if N > 1 and seed % 3 == 0:
        weights[0] = 0
    if E > 1 and seed % 5 == 0:  # an event that never happens
        laws[..., 0] = 0
        laws = np.where(laws.sum(axis=-1, keepdims=True) > 0, laws, np.eye(E)[-1])
        laws /= laws.sum(axis=-1, keepdims=True)
    available = rng.random((S, A)) < 0.8
    available[np.arange(S), rng.integers(A, size=S)] = True
    kind, ends = (
        "rewards" if seed % 4 == 0 else "costs",
        np.flatnonzero((rng.random(S) < 0.2) & (S > 1) & (seed % 3 == 1)),
    )
    free = seed % 2 == 0
    priced = {kind: prices[:, :, 0]} if free else {"rewards": True} if kind == "rewards" else {}
    return drmdp.Model.from_events(
        S,
        A,
        E,
        lambda s, a, e: there[s, a, e] if free else (there[s, a, e], prices[s, a, e]),
        laws if C > 1 else laws[0],
        discount=float(rng.choice([0, 0.5, 0.9, 0.9999])),
        weights=weights / weights.sum(),
        available=available,
        terminal=ends.tolist(),
        law=(lambda s, a: (s + a) % 2) if C > 1 else None,
        **priced,
    )


def around_laws(name, model, seed):
    """A set of laws of events; nothing is known of the costs of events that never happen."""
    ambiguity = ambiguity_of(name, model, seed)
    support = ambiguity.support if not model.priced or ambiguity.support == "state" else "observed"
    made = {"support": support, "rectangular": ambiguity.rectangular, "moves": "events"}
    if name[0] == "divergence":
        return drmdp.Divergence(ambiguity.radius, *name[1:], **made)
    return drmdp.Wasserstein(ambiguity.radius, *name, **made)


def ambiguity_of(name, model, seed):
    """A set of a name around a model, its size and its other settings drawn."""
    rng = np.random.default_rng(seed)
    r, rectangular, support = (
        float(rng.choice(SIZES)),
        str(rng.choice(["s", "sa"])),
        str(rng.choice(["observed", "state", "all"])),
    )
    if name[0] == "intervals":
        return drmdp.Intervals.of(model, min(r, 1.0))
    if name[0] == "divergence":
        return drmdp.Divergence(r, *name[1:], support, rectangular)
    if name[0] == "transport":
        return drmdp.Wasserstein(
            r, *name, support, rectangular, ground=_ground(rng, model.n_states)
        )
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


STAGES, EVENTS = "stages", "events"
"""And of more: stages with models, sets and costs of their own; laws of events, for the sets that
these may have.
"""


def tasks_of(name):
    """What proofs of a set can be of."""
    return (*TASKS, STAGES, *([EVENTS] if name in LAWS else []))


def task_of(name, seed):
    """One of them."""
    tasks = tasks_of(name)
    return tasks[seed % len(tasks)]


def found(name, seed, task="solve"):
    """A problem, and what was found: the model, or models, and the result."""
    if task == STAGES:
        return _staged(name, seed)
    rng, model = np.random.default_rng(seed), of_events(seed) if task == EVENTS else dealt(seed)
    ambiguity = (
        around_laws(name, model, seed) if task == EVENTS else ambiguity_of(name, model, seed)
    )
    nature = "cooperative" if task.endswith("helped") else "adversarial"
    if task == EVENTS:
        task = ("solve", "evaluate", "plan")[seed % 3]
    if task.startswith("solve"):
        return model, drmdp.solve(model, ambiguity, nature=nature)
    if task == "plan":
        final = np.where(model.terminal, 0.0, rng.normal(size=model.n_states) * (seed % 3))
        rate, nature = (
            [None, 1.0, 0.3][seed % 3],
            drmdp.sets.base.NATURES[seed % 2 if ambiguity.moves == "states" else 0],
        )
        plan = drmdp.finite_horizon(
            model, ambiguity, 1 + seed % 4, final, discount=rate, nature=nature
        )
        return model, plan if seed % 5 else drmdp.evaluate(model, ambiguity, plan)
    policy = np.where(
        model.available,
        rng.random(model.available.shape) * (rng.random(model.available.shape) < 0.7),
        0,
    )
    policy += np.where(policy.sum(axis=1, keepdims=True) > 0, 0, model.available)
    policy = policy / np.where(model.terminal, 1.0, policy.sum(axis=1))[:, None]
    return model, drmdp.evaluate(model, ambiguity, policy, nature=nature)


def _staged(name, seed):
    rng, T = np.random.default_rng(seed), 1 + seed % 3
    models = [staged(seed, t) for t in range(T)] if seed % 4 else [dealt(seed)] * T
    names = [name, *(SETS[int(rng.integers(len(SETS)))] for _ in range(T - 1))]
    balls = [
        ambiguity_of(own, model, seed + t)
        for t, (own, model) in enumerate(zip(names, models, strict=True))
    ]
    first, costs = models[0], None
    if seed % 2:
        shape = first.available.shape
        costs = rng.random((T, *shape, shape[0]) if seed % 3 == 0 else (T, *shape)) * (
            np.abs(first.cost_range).max() or 1
        )
    plan = drmdp.finite_horizon(
        models, balls, costs=costs, nature=drmdp.sets.base.NATURES[seed // 2 % 2]
    )
    return models, plan if seed % 5 else drmdp.evaluate(
        models, balls, plan, costs=costs, nature=plan.settings["nature"]
    )


def written(name, seed, folder, task="solve"):
    """Solve a problem and write its model and its proof; returns the result, and the paths of the
    proof and of what it is checked against.
    """
    model, result = found(name, seed, task)
    proof = folder / f"{seed}.proof"
    result.proof(proof)
    if task == STAGES:
        paths = [folder / f"{seed}-{t}.npz" for t in range(len(model))]
        for own, path in zip(model, paths, strict=True):
            drmdp.write(own, path)
        if result.costs is not None:
            paths.append(folder / f"{seed}.npy")
            np.save(paths[-1], result.costs)
        return result, proof, paths
    path = folder / (f"{seed}.drmdp" if task == EVENTS else f"{seed}.npz")
    drmdp.write(model, path)
    return result, proof, path
