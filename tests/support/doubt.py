"""Problems whose prices of doubt are compared with values that are solved again: every sized set,
both rectangularities, all criteria.
"""

import numpy as np

import drmdp

S, A, N = 7, 3, 3
LINE = ("line", [0.0, 1.0, 2.5, 3.0, 4.5, 6.0, 7.0])
SETS = {
    f"{metric} {order:g}": (
        lambda r, sa, metric=metric, order=order: drmdp.Wasserstein(
            r, metric, order, rectangular=sa
        ),
        top,
    )
    for metric, top in (("l1", 0.4), ("l2", 0.2), ("linf", 0.1))
    for order in (1, 2, 3.5, np.inf)
}
SETS |= {
    f"transport {order:g}": (
        lambda r, sa, order=order: drmdp.Wasserstein(
            r, "transport", order, rectangular=sa, ground=LINE
        ),
        0.5,
    )
    for order in (1, np.inf)
}
SETS |= {
    f"{kind} {around} {support}": (
        lambda r, sa, kind=kind, around=around, support=support: drmdp.Divergence(
            r, kind, around, support, sa
        ),
        0.2,
    )
    for kind in ("kl", "burg", "chi2", "tv")
    for around in ("mean", "kernels")
    for support in (("observed", "state") if around == "mean" else ("observed",))
}
SETS |= {
    f"reweighting {kind}": (lambda r, sa, kind=kind: drmdp.Reweighting(r, kind, sa), 0.15)
    for kind in ("kl", "burg", "chi2", "tv")
}
SETS["reweighting cvar"] = (
    lambda r, sa: drmdp.Reweighting(kind="cvar", level=np.minimum(r, 1.0), rectangular=sa),
    0.8,
)
CRITERIA = ("discounted", "discounts", "total", "reach", "average", "horizon")


def model_of(rng, criterion, rewards=False, **others):
    """A random model: state 0 has no third action; the last one is where totals end."""
    ends = criterion in ("total", "reach")
    support = rng.random((S, A, S)) < 0.7
    support[..., :2] = True
    support[..., -1] |= ends
    mean = rng.dirichlet(np.full(S, 0.8), (S, A)) * support + 0.02 * support
    if ends:
        mean[..., -1] = mean.sum(axis=-1)
    kernels = rng.uniform(0.6, 1.4, (N, S, A, S)) * mean
    kernels /= kernels.sum(axis=-1, keepdims=True)
    available = np.ones((S, A), dtype=bool)
    available[0, 2] = False
    costs = rng.uniform(0, 10, (S, A, S) if rng.random() < 0.3 else (S, A)) * (
        -1 if rewards and ends else 1
    )
    discount = {
        "discounts": rng.uniform(0.7, 0.95, (S, A)),
        "total": 1.0,
        "average": 1.0,
        "horizon": 0.97,
    }.get(criterion, 0.9)
    given = {"terminal": np.arange(S) == S - 1} if ends else {}
    given |= {
        "rewards" if rewards else "costs": costs,
        "discount": discount,
        "available": available,
    }
    given |= {"weights": rng.dirichlet(np.full(N, 5.0)), "initial": rng.dirichlet(np.ones(S))}
    return drmdp.Model(kernels, **given | others)


def solved(model, ambiguity, criterion, nature="adversarial"):
    """A solution as exact as can be, or a plan of three stages."""
    if criterion == "horizon":
        return drmdp.finite_horizon(model, ambiguity, stages=3, nature=nature)
    if criterion == "reach":
        avoid = [] if model.maximise else [0]
        return drmdp.reach(
            model,
            ambiguity,
            target=[S - 1],
            avoid=[1],
            minimise=bool(avoid),
            tol=1e-11,
            nature=nature,
        )
    name = "average" if criterion == "average" else None
    return drmdp.solve(model, ambiguity, tol=1e-11, nature=nature, criterion=name)


def worth(model, ambiguity, criterion, nature="adversarial"):
    """initial · value, the middle of its bounds."""
    solution = solved(model, ambiguity, criterion, nature)
    middle = (solution.lower + solution.upper) / 2
    return float(model.initial @ (middle[0] if criterion == "horizon" else middle))


def differences(model, ambiguity, criterion, place, step, nature="adversarial"):
    """Difference quotients of the re-solved value to the left and to the right of the radius of one
    state or pair.
    """
    radii = np.array(ambiguity.radii(model))
    level = (
        -1 if getattr(ambiguity, "level", None) is not None else 1
    )  # the smaller, the more doubt

    def at(move):
        moved = radii.copy()
        moved[place] += level * move
        return worth(model, ambiguity.with_radius(moved), criterion, nature)

    here = at(0.0)
    return level * (here - at(-step)) / step, level * (at(step) - here) / step
