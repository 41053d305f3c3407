"""Small problems of every criterion and every set, and proofs of them."""

import numpy as np

import drmdp
from proofs import ambiguity_of

REACH = ("reach", "reach helped", "avoid", "avoid helped", "within")
TOTAL = ("total", "total helped", "total signed", "total given")
AVERAGE = ("average", "average helped", "average given")
ASKED = (*REACH, *TOTAL, *AVERAGE)
"""What is asked: probabilities, largest and least; totals, some with costs of both signs; averages.
Of the last two also those of a policy that is given.
"""


def posed(seed, asked):
    """A model of up to 6 states, 3 actions and 3 kernels, whose last two states are ends unless an
    average is asked for.
    """
    rng = np.random.default_rng([seed, ASKED.index(asked)])
    S, A, N = int(rng.integers(3, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    kernels = rng.dirichlet(np.full(S, 0.5), size=(N, S, A))
    kernels[kernels < 0.1] = 0
    if asked in TOTAL:
        kernels[..., -1] += 0.2
    elif asked in AVERAGE:
        kernels += 0.05
    elif seed % 2:  # moves that are sure, so that players can go round in circles
        kernels[:, :, 0] = np.eye(S)[rng.integers(S - 2, size=S)]
    kernels /= kernels.sum(axis=-1, keepdims=True)
    costs = rng.random((S, A, S) if seed % 3 == 0 else (S, A)) + 0.1
    costs = (
        costs - 0.4 if asked == "total signed" or (asked == "total given" and seed % 2) else costs
    )
    weights = rng.dirichlet(np.ones(N))
    if N > 1 and seed % 4 == 0:
        weights[0] = 0
    ends = (
        {}
        if asked in AVERAGE
        else {S - 1: 0.0, S - 2: float(rng.normal()) if asked in TOTAL else 0.0}
    )
    rate = {"discount": 1.0 if asked in TOTAL else 0.9, "weights": weights / weights.sum()}
    return drmdp.Model(
        kernels,
        terminal=ends,
        **rate,
        **{"rewards" if asked not in REACH and seed % 5 == 0 else "costs": costs},
    )


def solved(name, seed, asked):
    """A problem and what was found of it."""
    model, rng = posed(seed, asked), np.random.default_rng(seed)
    S, A = model.available.shape
    ambiguity, nature = (
        ambiguity_of(name, model, seed),
        "cooperative" if asked.endswith("helped") else "adversarial",
    )
    if asked in TOTAL and ambiguity.sized and getattr(ambiguity, "kind", "") != "cvar":
        ambiguity = ambiguity.with_radius(min(float(np.max(ambiguity.radius)), 0.05))
    if asked in REACH:
        more = {"within": 1 + seed % 4} if asked == "within" else {}
        return model, drmdp.reach(
            model,
            ambiguity,
            [S - 1],
            [S - 2] if seed % 3 else None,
            asked.startswith("avoid"),
            nature=nature,
            **more,
        )
    criterion = "average" if asked in AVERAGE else None
    if not asked.endswith("given"):
        return model, drmdp.solve(model, ambiguity, nature=nature, criterion=criterion)
    policy = rng.random((S, A)) * ~model.terminal[:, None]
    policy /= np.where(model.terminal, 1.0, policy.sum(axis=1))[:, None]
    return model, drmdp.evaluate(model, ambiguity, policy, nature=nature, criterion=criterion)


def written(name, seed, asked, folder):
    """The same, and the paths of the proof and of the model."""
    model, result = solved(name, seed, asked)
    proof, path = folder / f"{seed}.proof", folder / f"{seed}.npz"
    drmdp.write(model, path)
    result.proof(proof)
    return result, proof, path
