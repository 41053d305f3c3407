"""What the stages of a horizon are made of: models, sets, costs and final values, checked once.

Stage t has the model M_t and the set B_t. All models have the same states, actions, terminal states and discount, and all have costs or all
rewards; kernels, their number, weights, costs and available actions may differ.

A model of several stages (`Model.stages`) that is given once stands for all of them.

**Half-cycle correction.** Transitions happen within a stage, not at its end: on average half of it is spent in the state s where it began and half in the next
one, t, the action a being played all the while. So a stage costs (c(s, a) + c(t, a))/2, where c is 0 in terminal states. These are costs of an ordinary
problem, in which nature moves half of the cost with the mass: bounds, proofs and evaluations hold as they are. If costs depend on the state alone and nothing
is discounted, the sum over T stages telescopes: the costs of the first stage are halved, half the costs of the last state are added, all others stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import validation as checks
from drmdp.core.files import require
from drmdp.core.levels import ended
from drmdp.core.names import same
from drmdp.core.policies import from_table, is_table
from drmdp.core.signs import outward, value_of
from drmdp.core.validation import numbers, whole
from drmdp.errors import InputError
from drmdp.model import Model, changed, check_model
from drmdp.model.events import EventModel
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.sets.base import check_set

MOST = 1_000_000
"""More stages are a slip: at a thousand sweeps a second they take a quarter of an hour."""


@dataclass(frozen=True)
class Stages:
    """T stages, the first one first."""

    given: tuple[Model, ...]  # as the user gave them: what tells whether two stages have the same kernels
    models: tuple[Model, ...]  # with the costs and the discount of the stage
    balls: tuple[AmbiguitySet, ...]
    final: Array  # (S,) as costs

    def __len__(self) -> int:
        return len(self.models)

    @property
    def first(self) -> Model:
        """The model of the first stage."""
        return self.models[0]

    def alike(self, t: int, u: int) -> bool:
        """Whether two stages differ in their costs at most."""
        return self.given[t] is self.given[u] and self.balls[t] is self.balls[u]

    @property
    def distinct(self) -> list[tuple[Model, AmbiguitySet]]:
        """Every pair of model and set once."""
        found = {(id(model), id(ball)): (model, ball) for model, ball in zip(self.models, self.balls, strict=True)}
        return list(found.values())


def stages_of(
    model: Any, ball: Any, n: int | None, final: ArrayLike, costs: ArrayLike, discount: float | None, nature: str,
    half_cycle: bool = False, maximise: bool | None = None,
) -> Stages:  # fmt: skip
    """Check what the user gave and put it together; `n` None: as many stages as models, or sets."""
    balls, models = _sequence(ball, AmbiguitySet), _sequence(model, Model)
    if balls is not None and models is not None and len(balls) == len(model) < len(models):  # one for each model
        balls = [each for own, each in zip(model, balls, strict=True) for _ in own.stages or [0]]
    T = whole("stages", len(models or balls or list(_names(model))) if n is None else n, 1, MOST)
    sets = _each("sets", balls, ball, T)
    check_problem(_each("models", models, model, T)[0], sets[0])
    given, own = models_of(model, T, costs, discount, half_cycle, maximise)
    for t, one in enumerate(sets):
        try:
            check_set(one)
        except InputError as error:
            raise InputError(f"stage {t}: {error}") from None
    facing = {id(one): one.facing(nature) for one in sets}
    return Stages(given, own, tuple(facing[id(one)] for one in sets), final_of(own[-1], final))


def models_of(
    model: Any, T: int, costs: ArrayLike = None, discount: float | None = None, half_cycle: bool = False,
    maximise: bool | None = None,
) -> tuple[tuple[Model, ...], tuple[Model, ...]]:  # fmt: skip
    """The models of T stages, as they were given, and with the costs and the discount of the stages.

    With `maximise`, costs are those of another outcome, which is earned or paid, and terminal states are worth nothing of it.
    """
    given = _each("models", _sequence(model, Model), model, T)
    _check(given)
    first = given[0]
    require(
        8.0 * T * first.n_states * (first.n_actions + 3),
        f"{T:,} stages × {first.n_states:,} states × {first.n_actions:,} actions",
    )
    bare = {id(one): changed(one, origin=None) if one.stages else one for one in given}  # each is of its stage alone
    own = _discounted(tuple(bare[id(one)] for one in given), discount)
    if costs is not None:
        all_costs = enumerate(zip(own, costs_of_stages(costs, T, first), strict=True))
        own = tuple(outcome(one, prices, maximise, f" of stage {t}") for t, (one, prices) in all_costs)
    if half_cycle:
        halves = {id(one): halved(one) for one in own}
        own = tuple(halves[id(one)] for one in own)
    return given, own


def _each(name: str, several: list[Any] | None, one: Any, T: int) -> tuple[Any, ...]:
    if several is not None and len(several) != T:
        raise InputError(f"{name}: expected one, or one for each of {T:,} stages, got {len(several):,}")
    return tuple(several or [one] * T)


def _sequence(given: Any, kind: type) -> list[Any] | None:
    """Several models or sets; None if it is one, or something else."""
    if isinstance(given, Sequence) and not isinstance(given, str) and given and isinstance(given[0], kind):
        runs = [list(run) for _, run in groupby(given, key=id)]
        return [each for run in runs for each in (run * max(1, len(_names(run[0]))) if len(run) == 1 else run)]
    return None


def _names(model: Any) -> tuple[str, ...]:
    return model.stages if isinstance(model, Model) else ()


def stage_names(given: Sequence[Model]) -> list[str] | None:
    """Names of stages, if their models know all of them."""
    runs = [list(run) for _, run in groupby(given, key=id)]
    return (
        [name for run in runs for name in _names(run[0])]
        if all(len(_names(run[0])) == len(run) for run in runs)
        else None
    )


def is_sequence(model: Any) -> bool:
    """Whether several models were given."""
    return _sequence(model, Model) is not None


def _check(models: tuple[Any, ...]) -> None:
    """Refuse models of different processes."""
    check_model(models[0])
    first, seen = models[0], {id(models[0])}
    for t, model in enumerate(models):
        if id(model) in seen:
            continue
        seen.add(id(model))
        check_model(model, f"stage {t}")
        for kind in ("states", "actions"):
            if not same(getattr(model, kind), getattr(first, kind)):
                raise InputError(f"stage {t}: it has other {kind} than stage 0")
        if model.maximise != first.maximise:
            words = ["rewards" if one.maximise else "costs" for one in (first, model)]
            raise InputError(f"stage {t}: stage 0 has {words[0]}, and this one {words[1]}")
        if not np.array_equal(model.terminal, first.terminal):
            s = int(np.argmax(model.terminal != first.terminal))
            raise InputError(f"stage {t}: state {first.states[s]!r} is terminal in stage 0 or here, but not in both")
        if not np.array_equal(*(ended(one, np.zeros(one.n_states)) for one in (first, model))):
            raise InputError(f"stage {t}: terminal states have other values than in stage 0")


def _discounted(models: tuple[Model, ...], discount: float | None) -> tuple[Model, ...]:
    """The models with the discount that was given, 1 included, or their common one."""
    if discount is None:
        first = models[0].discount
        if any(model.discounts is not None for model in models):
            raise InputError("discount: pairs have their own, and stages take one for all: say which one, discount=…")
        for t, model in enumerate(models):
            if model.discount != first:
                raise InputError(
                    f"discount: stage 0 has {first:g} and stage {t} has {model.discount:g}: say which one, discount=…"
                )
        return models
    value = checks.discount_of(discount)
    other = {id(model): changed(model, discount=value, discounts=None) for model in models}
    return tuple(other[id(model)] for model in models)


def final_of(model: Model, final: ArrayLike) -> Array:
    """Values after the last stage, as costs."""
    ends: Array = outward(model, ended(model, np.zeros(model.n_states))) + 0.0
    given = ends if final is None else numbers("final", final)
    v = value_of(model, given, "final")
    wrong = model.terminal & (given != 0) & (given != ends)
    if wrong.any():
        s = int(np.argmax(wrong))
        raise InputError(
            f"final: state {model.states[s]!r} is terminal, its value is {ends[s]:g}, got {float(given[s])!r}"
        )
    return v


def costs_of_stages(costs: ArrayLike, T: int, model: Model) -> Array:
    """Costs of T stages, (T, S, A) or (T, S, A, S); those of a state and an action, (S, A), are the same at all."""
    given, S, A = numbers("costs", costs), model.n_states, model.n_actions
    if given.shape == (S, A):
        return np.ascontiguousarray(np.broadcast_to(given, (T, S, A)))
    if given.shape not in ((T, S, A), (T, S, A, S)):
        raise InputError(
            f"costs: expected shape {(T, S, A)} or {(T, S, A, S)}, or {(S, A)} at all stages, got {given.shape}"
        )
    return given


def outcome(model: Model, costs: ArrayLike, maximise: bool | None, where: str = "") -> Model:
    """The model with other costs, or rewards; with `maximise`, of another outcome: terminal states are worth nothing of it."""
    earned = model.maximise if maximise is None else maximise
    name = f"{'rewards' if earned else 'costs'}{where}"
    if isinstance(model, EventModel):
        raise InputError(f"{name}: costs of a model of events are those it was made with")
    value = checks.costs_of(name, costs, model.blocks, model.available, model.discount, model.labels)
    ends = model.ends if maximise is None else None
    return changed(model, _costs=0.0 - value if earned else value, maximise=earned, ends=ends, origin=None)


def halved(model: Model) -> Model:
    """The model with costs (c(s, a) + c(t, a))/2."""
    if isinstance(model, EventModel) or model.next_costs:
        raise InputError(
            "half_cycle: costs must be those of a state and an action, and here they depend on what happens next"
        )
    A, blocks = model.n_actions, model.blocks
    c = np.where(model.terminal[:, None], 0.0, np.where(model.available, model.costs, np.nan))
    pair = np.repeat(np.arange(c.size), blocks.lengths)
    listed = (c.ravel()[pair] + c[blocks.indices, pair % A]) / 2
    if np.isnan(listed).any():
        k = int(np.argmax(np.isnan(listed)))
        (s, a), t = divmod(int(pair[k]), A), int(blocks.indices[k])
        names = f"state {model.states[s]!r}, action {model.actions[a]!r} leads to {model.states[t]!r}"
        raise InputError(f"half_cycle: {names}, where that action has no cost: give costs (T, S, A, S)")
    prices: Any = blocks.matrix(listed) if model.is_sparse else (c[:, :, None] + c.T[None]) / 2
    value = checks.costs_of("costs", prices, blocks, model.available, model.discount, model.labels)
    return changed(model, _costs=value, origin=None)


# ---------------------------------------------------------------------- plans that are given


def is_plan(policy: Any) -> bool:
    """Whether a policy has stages: a result with such a policy, an array (T, S, A), a list of policies, or a table with a column of stages."""
    own = getattr(policy, "policy", policy)
    if is_table(own):
        return "stage" in own.columns
    if isinstance(own, np.ndarray):
        return own.ndim == 3
    return isinstance(own, list | tuple) and len(own) > 0 and (hasattr(own[0], "keys") or np.ndim(own[0]) == 2)


def policies_of(stages_models: Sequence[Model], policy: Any) -> Array:
    """A policy for every stage, (T, S, A), checked; one without stages is that of all."""
    T, first = len(stages_models), stages_models[0]
    own = checks.policy_of(policy, first)
    own = from_table(first, own) if is_table(own) else own
    if not is_plan(own):
        distinct = {id(model): model.policy(own) for model in stages_models}
        return np.stack([distinct[id(model)] for model in stages_models])
    if len(own) != T:
        raise InputError(f"policy: expected one for each of {T:,} stages, got {len(own):,}")
    found = []
    for t, (model, x) in enumerate(zip(stages_models, own, strict=True)):
        try:
            found.append(model.policy(x))
        except InputError as error:
            raise InputError(f"stage {t}: {error}") from None
    return np.stack(found)


def length_of(model: Any, policy: Any) -> int | None:
    """How many stages models or a plan have; None if neither says."""
    models = _sequence(model, Model)
    if models is not None:
        return len(models)
    if not is_plan(policy):
        return None
    return int(max(policy["stage"])) + 1 if is_table(policy) else len(getattr(policy, "policy", policy))
