"""Sets of every kind by their names, and what of them is still compiled when it is first used, done ahead."""

import math
from dataclasses import fields, replace

from drmdp import api, instances
from drmdp.core.progress import showing
from drmdp.sets import PAIRS, Divergence, Intervals, Reweighting, Wasserstein
from drmdp.sets.registry import DIVERGENCES

RADIUS = 0.1


def examples():
    """A set of every kind for a model, by its name."""

    def of(kind, *fields):
        return lambda model: kind(RADIUS, *fields)

    def moved(order):
        return lambda model: Wasserstein(RADIUS, "transport", order, ground=("line", range(model.n_states)))

    found = {
        f"{metric}-{order:g}": of(Wasserstein, metric, order)
        for metric, order in (*PAIRS, ("l1", 2), ("l2", 1), ("linf", 2))
    }
    found |= {f"transport-{order:g}": moved(order) for order in (1, math.inf)}
    for around, end in (("mean", ""), ("kernels", "-kernels")):
        found |= {f"{kind}{end}": of(Divergence, kind, around) for kind in DIVERGENCES}
    found |= {f"reweighting-{kind}": of(Reweighting, kind) for kind in DIVERGENCES}
    return found | {
        "reweighting-cvar": lambda model: Reweighting(kind="cvar", level=0.5),
        "reweighting-any": lambda model: Reweighting(kind="any"),
        "intervals": lambda model: Intervals.of(model, RADIUS),
    }


def prepare(name):
    """Use a set once in every usual way, on tiny models, and on some that are large enough for other ways."""
    with showing(False):
        for sparse in (False, True):
            model = instances.perturb(instances.garnet(4, 2, sparse=sparse), 2)
            for ball in _variants(examples()[name](model)):
                found = api.solve(model, ball, tol=0.05, threads=1)
                api.evaluate(model, ball, found.policy, tol=0.05, threads=1)
                api.certify(model, ball, found.policy, found.kernel)
        for S in (100, 2500):
            model = instances.perturb(instances.garnet(S, 2, 4, sparse=S > 100), 2, same_support=True)
            api.solve(model, examples()[name](model), rtol=0.1, max_iters=2, threads=1)


def _variants(ball):
    """A set, and the same with other words that change what is compiled."""
    yield ball
    own = {field.name for field in fields(ball)}
    kept = {} if ball.sized or "radius" not in own else {"radius": None}
    for name, value in (("support", "all"), ("rectangular", "sa")):
        if name in own:
            yield replace(ball, **{name: value}, **kept)
