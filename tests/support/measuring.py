"""Which rows to draw next: rules that share 60 rows a round among pairs, and what is certified
then.

Truths are kernels nobody knows. Rows are drawn from them; the set is Burg's around the shares that
were seen, with radius 3/n for every pair. `python tests/support/measuring.py 40` prints the
certified worst case above the true optimum, mean ± standard error over 40 problems, and paired
differences.
"""

import sys

import numpy as np

import drmdp
from drmdp.policies.radius_prices import responses

FIRST, BATCH, TOP, ROUNDS = 20, 60, 3, 20
RULES = ("uniform", "visits", "gain")
FAMILIES = ("garnet", "two dear states", "machine", "ring", "grid")


def truth(family, seed):
    """A kernel, costs and a discount."""
    rng = np.random.default_rng(seed)
    if family in ("garnet", "two dear states"):
        model = drmdp.instances.garnet(12, 3, 4, seed=seed, discount=0.9)
    elif family == "machine":
        model = drmdp.instances.perturb(
            drmdp.instances.machine(10, discount=0.9), n_kernels=1, seed=seed
        )
    elif family == "ring":
        model = drmdp.instances.ring(12, n_kernels=1, seed=seed, discount=0.9)
    else:
        model = drmdp.instances.grid(16, n_kernels=1, seed=seed, discount=0.9)
    kernel = np.array(model.kernels[0])
    costs = np.array(model.costs)
    if family == "two dear states":  # seldom reached, forty times as dear as others
        costs = rng.uniform(0, 0.5, costs.shape[:2])
        costs[-2:] += 20
        kernel[..., -2:] *= 0.15
        kernel /= kernel.sum(axis=-1, keepdims=True)
    return kernel, costs, model.available


def certified(family, rule, seed):
    """Certified worst case from state 0 less the true optimum, after each round, (ROUNDS + 1,)."""
    first, rng = (
        np.random.default_rng([seed, k]) for k in (len(RULES), RULES.index(rule))
    )  # all begin with the same rows
    kernel, costs, available = truth(family, seed)
    S, A, _ = kernel.shape
    start = np.eye(S)[0]
    given = {"costs": costs, "discount": 0.9, "initial": start, "available": available}
    best = float(drmdp.solve(drmdp.Model(kernel[None], **given), drmdp.Wasserstein(0.0)).value[0])
    counts = np.array(
        [
            [first.multinomial(FIRST, kernel[s, a]) * available[s, a] for a in range(A)]
            for s in range(S)
        ]
    )
    found = []
    for _ in range(ROUNDS + 1):
        n = np.maximum(counts.sum(axis=-1), 1)
        shares = (counts + 0.1 * (kernel > 0)) / (n + 0.1 * (kernel > 0).sum(axis=-1))[
            ..., None
        ]  # all that is possible
        shares /= np.where(available, shares.sum(axis=-1), 1.0)[..., None]
        model = drmdp.Model(shares[None], counts=counts, **given)
        feared = drmdp.Divergence(3.0 / n, "burg", rectangular="sa")
        solution = drmdp.solve(model, feared, rtol=1e-8)
        found.append(float(solution.value[0]) - best)
        counts = counts + drawn(rng, rule, kernel, available, model, feared, solution)
    return np.array(found)


def drawn(rng, rule, kernel, available, model, feared, solution):
    """Rows of a round."""
    share = available / available.sum()
    more = np.zeros(available.shape, dtype=int)
    if rule == "gain":
        places = drmdp.radius.measure_next(model, feared, solution).order[:TOP]
        np.add.at(more, tuple(places.T), BATCH // max(1, len(places)))
    else:
        if rule == "visits":
            visits = next(responses(solution))[0][:, None] * solution.policy
            share = visits / visits.sum()
        more = rng.multinomial(BATCH, share.ravel()).reshape(more.shape)
    new = np.zeros(kernel.shape, dtype=int)
    for s, a in np.argwhere(more > 0):
        new[s, a] = rng.multinomial(more[s, a], kernel[s, a])
    return new


def simulated(family, seeds):
    """What is certified by each rule, (problems, ROUNDS + 1)."""
    return {rule: np.array([certified(family, rule, seed) for seed in seeds]) for rule in RULES}


def told(values, rounds):
    """Means and standard errors after some rounds, as text."""
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5
    return "  ".join(f"{values[:, k].mean():+.3f} ± {error[k]:.3f}" for k in rounds)


if __name__ == "__main__":
    for family in FAMILIES:
        runs = simulated(family, range(1000, 1000 + int(sys.argv[1])))
        lines = [f"{family}: after 0, 5, 10, 20 rounds of {BATCH} rows"]
        lines += [f"  {rule:8} {told(values, (0, 5, 10, 20))}" for rule, values in runs.items()]
        for rule in RULES[:2]:
            apart = runs["gain"] - runs[rule]
            lines.append(
                f"  gain − {rule}: {told(apart, (5, 10, 20))}, better in {np.mean(apart[:, 20] < 0):.0%}"
            )
        sys.stdout.write("\n".join(lines) + "\n")
