"""Every registered set on small problems with every degeneracy we know, and what each of them must
keep to.

`SETS` says how a set is made of a size: `size` runs from 0, where nature cannot move (or, for cvar,
takes all kernels), to 1, from where on she may do what she likes; beyond that nothing changes.
Problems are those of `cases`.

What is kept to, for an update and for a policy, cold and warm from an unrelated v: the bounds that
are proved of the exact operator are near, and those of the conic twin, which is written from the
definition, overlap with them. The twin of a nature that helps is the adversary of the negated
costs: against a policy, and in an update against every action alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest

import cases
import drmdp
from drmdp.operators.cooperative import CooperativeOperator
from drmdp.operators.exact import ExactOperator
from drmdp.operators.operator import ENGINES
from drmdp.sets import PAIRS
from drmdp.sets.registry import DIVERGENCES, MIXTURES, load
from drmdp.solvers.problem import Problem

ORDERS = (("l1", 2), ("l2", 1), ("linf", 2), ("l1", 1.5), ("l2", 3), ("linf", 4))
"""Some that share the solver of all orders."""
SIZES = {
    "nothing": 0.0,
    "1e-9": 1e-9,
    "1e-6": 1e-6,
    "1e-3": 1e-3,
    "almost": 1 - 1e-9,
    "saturating": 1.0,
    "beyond": 2.0,
}
KINDS = (*SIZES, *("moderate",) * 5, "varied", "varied")
LARGE = 8.0  # what counts as saturated where nothing is


class Kind(NamedTuple):
    """A set: its key in the registry, and how it is made."""

    key: object
    make: Callable[..., drmdp.sets.AmbiguitySet]  # (model, size (), (S,) or (S, A), support)
    sized: bool = True
    pairs: bool = False  # a size for each pair will do


def _scaled(new, rectangular):
    """A set whose radius is a part of its saturation in each state."""

    def make(model, size, support):
        far = new(0.0, support).saturation(model)
        far = np.where(np.isfinite(far), far, LARGE)
        size = np.asarray(size)
        radius = size * (far if size.ndim == 1 else far[:, None] if size.ndim == 2 else far.max())
        return new(radius if radius.ndim else float(radius), support)

    return make


def wasserstein(metric: str, order: float, rectangular: str) -> Kind:
    """Balls of a metric and an order."""

    def ambiguity(r, support):
        return drmdp.Wasserstein(r, metric, order, support, rectangular)

    key = metric, order if (metric, order) in PAIRS else "p"
    return Kind(key, _scaled(ambiguity, rectangular), pairs=rectangular == "sa")


def _all() -> dict[str, Kind]:
    found = {}
    for rectangular in ("s", "sa"):
        end, pairs = ("-sa", True) if rectangular == "sa" else ("", False)
        for metric, order in PAIRS + ORDERS:
            found[f"{metric}-{order:g}{end}"] = wasserstein(metric, order, rectangular)
        for order in (1, np.inf):

            def moved(model, size, support, order=order, rectangular=rectangular):
                ground = np.random.default_rng(model.n_states).random(
                    (model.n_states, model.n_states)
                )
                np.fill_diagonal(ground, 0)

                def ambiguity(r, support):
                    return drmdp.Wasserstein(
                        r, "transport", order, support, rectangular, ground=ground
                    )

                return _scaled(ambiguity, rectangular)(model, size, support)

            found[f"transport-{order:g}{end}"] = Kind(("transport", order), moved, pairs=pairs)
        for kind in DIVERGENCES:
            for around in ("mean", "kernels"):

                def ambiguity(r, support, kind=kind, around=around, rectangular=rectangular):
                    return drmdp.Divergence(r, kind, around, support, rectangular)

                found[f"{kind}-{around}{end}"] = Kind(
                    (kind, around), _scaled(ambiguity, rectangular), pairs=pairs
                )
        for kind in (kind for kind in MIXTURES if kind in DIVERGENCES):

            def ambiguity(r, support, kind=kind, rectangular=rectangular):
                return drmdp.Reweighting(r, kind, rectangular)

            found[f"reweighting-{kind}{end}"] = Kind(
                ("reweighting", kind), _scaled(ambiguity, rectangular), pairs=pairs
            )

        def share(model, size, support, rectangular=rectangular):
            least = model.weights[model.weights > 0].min()
            level = np.clip(1 - np.asarray(size) * (1 - least), 0, 1)
            return drmdp.Reweighting(
                kind="cvar", level=level if level.ndim else float(level), rectangular=rectangular
            )

        def mixture(model, size, support, rectangular=rectangular):
            return drmdp.Reweighting(kind="any", rectangular=rectangular)

        found[f"reweighting-cvar{end}"] = Kind(("reweighting", "cvar"), share, pairs=pairs)
        found[f"reweighting-any{end}"] = Kind(("reweighting", "any"), mixture, sized=False)

    def envelope(model, size, support):
        return drmdp.Intervals.of(model, size if np.ndim(size) else float(size))

    return found | {"intervals": Kind("intervals", envelope)}


SETS = _all()
"""Every set and grouping by a name."""
ONE_PER_SOLVER = (
    "kl-mean",
    "l1-1-sa",
    "l1-2",
    "reweighting-kl",
    "reweighting-cvar-sa",
    "intervals",
    "transport-1",
    "transport-inf",
)
"""What the default suite has often, beside the six balls."""
OFTEN = {f"{metric}-{order:g}" for metric, order in PAIRS} | set(ONE_PER_SOLVER)


def often(names, here=OFTEN) -> list:
    """Names of sets for `parametrize`; the others are in the long runs."""
    return [name if name in here else pytest.param(name, marks=pytest.mark.fuzz) for name in names]


def deck(name: str, n: int, seed: int = 0) -> Iterator[cases.Case]:
    """n problems for a set, the same ones for the same seed."""
    kind, sizes = SETS[name], cases.dealt(np.random.default_rng([seed, 99]), KINDS)
    for number, (rng, draw, model, value, support) in enumerate(cases.problems(n, seed)):
        own = next(sizes)
        size = sized(rng, own, model, kind.pairs)
        ambiguity = kind.make(model, size, support)
        yield cases.Case(
            f"{name}-{seed}-size-{own}-{cases.named(number, draw, model, ambiguity)}",
            model,
            ambiguity,
            value,
        )


def sized(rng, own, model, pairs):
    if own == "moderate":
        return float(10.0 ** rng.uniform(-2.5, -0.1))
    if own == "varied":
        shape = (
            (model.n_states, model.n_actions) if pairs and rng.random() < 0.5 else model.n_states
        )
        return rng.choice([*SIZES.values(), 0.02, 0.1, 0.3, 0.6], size=shape)
    return SIZES[own]


class Judged(NamedTuple):
    """How one case went, in ranges of the stakes: the largest gap of an exact sweep, and that of
    the twin, each (2,): update and policy.
    """

    own: np.ndarray
    twin: np.ndarray


def judge(case: cases.Case, twin: bool = True, helping: bool = False) -> Judged:
    """Sweep cold, warm from an unrelated value, and again; compare with the twin. A false bound
    raises.
    """
    model, ambiguity, value = case.model, case.ambiguity.fitted(case.model), case.value
    other_one = _helping_twin if helping else _twin
    rng = np.random.default_rng(model.n_states)
    elsewhere = np.where(
        model.terminal,
        0.0,
        rng.normal(size=value.size) * (np.ptp(value) + rng.choice([0, 1e-3, 1e3])),
    )
    x = any_policy(rng, model)
    scale, rounding = _scale(model, value)
    own, other = np.zeros(2), np.zeros(2)
    for k, policy in enumerate((None, x)):
        operator = (CooperativeOperator if helping else ExactOperator)(model, ambiguity, 1)
        found = [Problem(operator).proved(v, policy) for v in (value, elsewhere, value, value)]
        sharp = [found[0], found[2], found[3]]
        low, high = ([getattr(one, side) for one in sharp] for side in ("lower_step", "upper_step"))
        if twin:
            below, above = other_one(model, ambiguity, value, policy)
            low, high = [*low, below], [*high, above]
        low, high = np.array(low), np.array(high)
        assert (low.max(axis=0) <= high.min(axis=0)).all(), (
            f"{case.name}: bounds contradict each other"
        )
        gaps = np.maximum(high - low - rounding, 0.0).max(axis=1) / scale
        own[k] = gaps[:3].max()
        other[k] = gaps[3] if twin else 0.0
        for one in found:
            distributions(model, one)
    return Judged(own, other)


def _twin(model, ambiguity, value, policy):
    """Bounds on the step of the conic operator, (S,) each."""
    found = Problem(load(ENGINES["conic"])(model, ambiguity, 1)).proved(value, policy)
    return found.lower_step, found.upper_step


def _helping_twin(model, ambiguity, value, policy):
    """The same of a nature that helps."""
    given = {
        "discount": model.discount,
        "weights": model.weights,
        "available": model.available,
        "terminal": model.terminal,
    }
    turned = drmdp.Model(model.kernels, costs=model.rewards, **given)
    tried = [policy] if policy is not None else [_alone(model, a) for a in range(model.n_actions)]
    low, high = np.full(value.size, np.inf), np.full(value.size, np.inf)
    for x in tried:
        below, above = _twin(turned, ambiguity, -value, x)
        low, high = np.minimum(low, -above), np.minimum(high, -below)
    return low, high


def _alone(model, a):
    """A policy that plays action a where it is available, else the first one that is."""
    own = np.where(model.available[:, a], a, model.available.argmax(axis=1))
    return np.where(model.terminal[:, None], 0.0, np.eye(model.n_actions)[own])


def any_policy(rng, model):
    """A policy (S, A), in which some actions hardly count."""
    x = rng.dirichlet(np.full(model.n_actions, 0.5), size=model.n_states) + 1e-12
    x = np.where(model.available, x, 0.0)
    return x / np.where(model.terminal, 1.0, x.sum(axis=1))[:, None]


def _scale(model, value):
    """Range of the stakes, and what rounding takes of costs and values."""
    z = [model.stakes(value, s, s + 1)[0][model.available[s]] for s in range(model.n_states)]
    z = [one[np.isfinite(one)] for one in z]
    widest = max((float(np.ptp(one)) for one in z if one.size), default=0.0)
    size = np.abs(value).max() + max(
        (float(np.abs(one).max()) for one in z if one.size), default=0.0
    )
    return max(widest, 1e-3 * size, 1e-250), 1e-12 * size


def distributions(model, update):
    """Nature's kernel has rows, and the policy is one."""
    kernel = np.asarray(update.kernel)
    assert np.isfinite(kernel).all()
    assert (kernel >= 0).all()
    np.testing.assert_allclose(
        kernel.sum(axis=2)[model.available & ~model.terminal[:, None]], 1, atol=1e-9
    )
    np.testing.assert_allclose(update.policy.sum(axis=1)[~model.terminal], 1, atol=1e-9)
