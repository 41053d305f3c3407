"""The stages of a horizon: models, sets, costs and final values, checked once.

Stage t has the model M_t and the set B_t. All models have the same states, actions, terminal states
and discount, and all have costs or all rewards; kernels, their number, weights, costs and available
actions may differ.

A model of several stages (`Model.stages`) that is given once stands for all of them.

**Half-cycle correction.** Transitions happen within a stage, not at its end: on average half of it
is spent in the state s where it began and half in the next one, t, the action a being played all
the while. So a stage costs (c(s, a) + c(t, a))/2, where c is 0 in terminal states. These are costs
of an ordinary problem, in which nature moves half of the cost with the mass: bounds, proofs and
evaluations hold as they are. If costs depend on the state alone and nothing is discounted, the sum
over T stages telescopes: the costs of the first stage are halved, half the costs of the last state
are added, all others stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import validation as checks
from drmdp.core.levels import ended
from drmdp.core.names import same
from drmdp.core.signs import outward, value_of
from drmdp.core.validation import integer, numbers
from drmdp.errors import InputError, first_place, unexpected
from drmdp.io.files import require
from drmdp.model import Model, changed, check_model
from drmdp.model.events import EventModel
from drmdp.model.policies import from_table, is_table
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.sets.base import check_set

MOST = 1_000_000
"""More stages are a slip: at a thousand sweeps a second they take a quarter of an hour."""


@dataclass(frozen=True)
class Stages:
    """T stages, the first one first."""

    given: tuple[Model, ...]  # by the user; identical where two stages have the same kernels
    models: tuple[Model, ...]  # with the costs and the discount of the stage
    sets: tuple[AmbiguitySet, ...]
    final: Array  # (S,) as costs
    costs: Array | None = None  # (T, S, A) or (T, S, A, S), if they were given apart
    half_cycle: bool = False
    names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.models)

    @property
    def first(self) -> Model:
        """The model of the first stage."""
        return self.models[0]

    def alike(self, t: int, u: int) -> bool:
        """Whether two stages differ in their costs at most."""
        return self.given[t] is self.given[u] and self.sets[t] is self.sets[u]

    @property
    def distinct(self) -> list[tuple[Model, AmbiguitySet]]:
        """Every pair of model and set once."""
        pairs = zip(self.models, self.sets, strict=True)
        return list({(id(pair[0]), id(pair[1])): pair for pair in pairs}.values())


def stages_of(
    model: Any,
    ambiguity: Any,
    n: int | None,
    final: ArrayLike,
    nature: str,
    names: Sequence[str] | None = None,
    **changes: Any,
) -> Stages:
    """The stages of checked arguments; `n` None: as many as there are models, or sets; `changes`
    are those of `models_of`.
    """
    given_sets, models = _sequence(ambiguity, AmbiguitySet), _sequence(model, Model)
    if given_sets and models and len(given_sets) == len(model) < len(models):  # one for each model
        pairs = zip(model, given_sets, strict=True)
        given_sets = [each for source, each in pairs for _ in source.stages or [0]]
    n = len(models or given_sets or _names(model)) if n is None else n
    T = integer("stages", n, 1, MOST)
    sets = _each("sets", given_sets, ambiguity, T)
    check_problem(_each("models", models, model, T)[0], sets[0])
    sources, staged, costs = models_of(model, T, **changes)
    for t, each in enumerate(sets):
        try:
            check_set(each)
        except InputError as error:
            raise InputError(f"stage {t}: {error}") from None
    faced = mapped(sets, lambda each: each.facing(nature))
    named = stage_names(sources) if names is None else list(map(str, names))
    if named is not None and len(named) != T:
        expected = f"expected one for each of {T:,} stages, got {len(named):,}"
        raise InputError(f"stage_names: {expected}")
    ends = final_of(staged[-1], final), costs, changes["half_cycle"], named
    return Stages(sources, staged, faced, *ends)


def mapped(items: Sequence[Any], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Changed items; identical ones are changed once and stay so."""
    distinct = {id(item): item for item in items}
    new = {key: change(item) for key, item in distinct.items()}
    return tuple(new[id(item)] for item in items)


def models_of(
    model: Any,
    T: int,
    costs: ArrayLike = None,
    discount: float | None = None,
    half_cycle: bool = False,
    maximise: bool | None = None,
) -> tuple[tuple[Model, ...], tuple[Model, ...], Array | None]:
    """The models of T stages, those of the user, and with the costs and the discount of the stages;
    and these costs, if they were given.

    With `maximise`, costs are those of another outcome, which is earned or paid, and terminal
    states have none of it.
    """
    sources = _each("models", _sequence(model, Model), model, T)
    _check(sources)
    first = sources[0]
    S, A = first.n_states, first.n_actions
    require(8.0 * T * S * (A + 3), f"{T:,} stages × {S:,} states × {A:,} actions")
    # a model of several stages stands for a single one at each
    bare = mapped(sources, lambda each: changed(each, origin=None) if each.stages else each)
    staged = _discounted(bare, discount)
    by_stage = None if costs is None else costs_of_stages(costs, T, first)
    if by_stage is not None:
        pairs = enumerate(zip(staged, by_stage, strict=True))
        staged = tuple(outcome(*pair, maximise, f" of stage {t}") for t, pair in pairs)
    return sources, mapped(staged, halved) if half_cycle else staged, by_stage


def _each(name: str, several: list[Any] | None, single: Any, T: int) -> tuple[Any, ...]:
    if several is not None and len(several) != T:
        expected = f"expected one, or one for each of {T:,} stages"
        raise InputError(f"{name}: {expected}, got {len(several):,}")
    return tuple(several or [single] * T)


def _sequence(items: Any, kind: type) -> list[Any] | None:
    """A list of models or sets, a model of several stages repeated; None for anything else."""
    if not isinstance(items, Sequence) or not items or not isinstance(items[0], kind):
        return None
    repeats = ((run, len(_names(run[0])) if len(run) == 1 else 1) for run in _runs(items))
    return [item for run, n in repeats for item in run * max(1, n)]


def _runs(items: Sequence[Any]) -> list[list[Any]]:
    """Runs of identical items."""
    return [list(run) for _, run in groupby(items, key=id)]


def _names(model: Any) -> tuple[str, ...]:
    return model.stages if isinstance(model, Model) else ()


def stage_names(models: Sequence[Model]) -> list[str] | None:
    """Names of stages, if their models have all of them."""
    runs = _runs(models)
    if any(len(_names(run[0])) != len(run) for run in runs):
        return None
    return [name for run in runs for name in _names(run[0])]


def is_sequence(model: Any) -> bool:
    """Whether several models were given."""
    return _sequence(model, Model) is not None


def _check(models: tuple[Any, ...]) -> None:
    """Refuse models of different processes."""
    check_model(models[0])
    first, checked = models[0], {id(models[0])}
    for t, model in enumerate(models):
        if id(model) in checked:
            continue
        checked.add(id(model))
        check_model(model, f"stage {t}")
        for kind in ("states", "actions"):
            if not same(getattr(model, kind), getattr(first, kind)):
                raise InputError(f"stage {t}: it has other {kind} than stage 0")
        if model.maximise != first.maximise:
            words = ["rewards" if each.maximise else "costs" for each in (first, model)]
            raise InputError(f"stage {t}: stage 0 has {words[0]}, and this one {words[1]}")
        if at := first_place(model.terminal != first.terminal):
            both = f"state {first.states[at[0]]!r} is terminal in stage 0 or here, but not in both"
            raise InputError(f"stage {t}: {both}")
        if not np.array_equal(*(ended(each, np.zeros(each.n_states)) for each in (first, model))):
            raise InputError(f"stage {t}: terminal states have other values than in stage 0")


def _discounted(models: tuple[Model, ...], discount: float | None) -> tuple[Model, ...]:
    """The models with the discount that was given, 1 included, or their common one."""
    if discount is not None:
        value = checks.discount_of(discount)
        return mapped(models, lambda model: changed(model, discount=value, discounts=None))
    first, which = models[0].discount, "say which one, discount=…"
    if any(model.discounts is not None for model in models):
        raise InputError(f"discount: pairs have their own, and stages take one for all: {which}")
    for t, model in enumerate(models):
        if model.discount != first:
            differ = f"stage 0 has {first:g} and stage {t} has {model.discount:g}"
            raise InputError(f"discount: {differ}: {which}")
    return models


def final_of(model: Model, final: ArrayLike) -> Array:
    """Values after the last stage, as costs."""
    ends: Array = outward(model, ended(model, np.zeros(model.n_states))) + 0.0
    values = ends if final is None else numbers("final", final)
    v = value_of(model, values, "final")
    if at := first_place(model.terminal & (values != 0) & (values != ends)):
        terminal = f"state {model.states[at[0]]!r} is terminal, its value is {ends[at]:g}"
        raise InputError(f"final: {terminal}, got {float(values[at])!r}")
    return v


def costs_of_stages(costs: ArrayLike, T: int, model: Model) -> Array:
    """Costs of T stages, (T, S, A) or (T, S, A, S); those of a state and an action, (S, A), are the
    same at all.
    """
    array, S, A = numbers("costs", costs), model.n_states, model.n_actions
    if array.shape == (S, A):
        return np.ascontiguousarray(np.broadcast_to(array, (T, S, A)))
    if array.shape not in ((T, S, A), (T, S, A, S)):
        expected = f"shape {(T, S, A)} or {(T, S, A, S)}, or {(S, A)} at all stages"
        raise unexpected("costs", expected, array.shape)
    return array


def outcome(model: Model, costs: ArrayLike, maximise: bool | None, where: str = "") -> Model:
    """The model with other costs, or rewards; with `maximise`, of another outcome, of which
    terminal states have none.
    """
    earned = model.maximise if maximise is None else maximise
    name = f"{'rewards' if earned else 'costs'}{where}"
    if isinstance(model, EventModel):
        raise InputError(f"{name}: costs of a model of events are those it was made with")
    value = _checked(name, costs, model)
    ends = model.ends if maximise is None else None
    return changed(
        model, _costs=0.0 - value if earned else value, maximise=earned, ends=ends, origin=None
    )


def second_outcome(model: Model, costs: ArrayLike, rewards: ArrayLike) -> Model:
    """The model with another outcome, costs in the sense of the model, or rewards."""
    asked, earned = (costs, model.maximise) if rewards is None else (rewards, True)
    return outcome(model, asked, earned)


def _checked(name: str, costs: Any, model: Model) -> Any:
    return checks.costs_of(name, costs, model.blocks, model.available, model.discount, model.labels)


def halved(model: Model) -> Model:
    """The model with costs (c(s, a) + c(t, a))/2."""
    if isinstance(model, EventModel) or model.next_costs:
        must = "costs must be those of a state and an action"
        raise InputError(f"half_cycle: {must}, and here they depend on what happens next")
    A, blocks = model.n_actions, model.blocks
    c = np.where(model.terminal[:, None], 0.0, np.where(model.available, model.costs, np.nan))
    pair = np.repeat(np.arange(c.size), blocks.lengths)
    listed = (c.ravel()[pair] + c[blocks.indices, pair % A]) / 2
    if at := first_place(np.isnan(listed)):
        (s, a), t = divmod(int(pair[at]), A), int(blocks.indices[at])
        leads = f"action {model.actions[a]!r} leads to {model.states[t]!r}"
        names = f"state {model.states[s]!r}, {leads}, where that action has no cost"
        raise InputError(f"half_cycle: {names}: give costs (T, S, A, S)")
    prices: Any = blocks.matrix(listed) if model.is_sparse else (c[:, :, None] + c.T[None]) / 2
    return changed(model, _costs=_checked("costs", prices, model), origin=None)


# ---------------------------------------------------------------------- plans that are given


def is_plan(policy: Any) -> bool:
    """Whether a policy has stages: a result with such a policy, an array (T, S, A), a list of
    policies, or a table with a column of stages.
    """
    plan = getattr(policy, "policy", policy)
    if is_table(plan):
        return "stage" in plan.columns
    if isinstance(plan, np.ndarray):
        return plan.ndim == 3
    if not isinstance(plan, list | tuple) or not plan:
        return False
    return hasattr(plan[0], "keys") or np.ndim(plan[0]) == 2


def has_stages(model: Any, policy: Any) -> bool:
    """Whether a policy, or several models, define a problem over finitely many stages."""
    return is_sequence(model) or is_plan(policy)


def policies_of(stages_models: Sequence[Model], policy: Any) -> Array:
    """A policy for every stage, (T, S, A), checked; one without stages is that of all."""
    T, first = len(stages_models), stages_models[0]
    plan = checks.policy_of(policy, first)
    plan = from_table(first, plan) if is_table(plan) else plan
    if not is_plan(plan):
        return np.stack(mapped(stages_models, lambda model: model.policy(plan)))
    if len(plan) != T:
        raise InputError(f"policy: expected one for each of {T:,} stages, got {len(plan):,}")
    policies = []
    for t, (model, x) in enumerate(zip(stages_models, plan, strict=True)):
        try:
            policies.append(model.policy(x))
        except InputError as error:
            raise InputError(f"stage {t}: {error}") from None
    return np.stack(policies)


def length_of(model: Any, policy: Any) -> int | None:
    """How many stages models or a plan have; None if neither says."""
    if (models := _sequence(model, Model)) is not None:
        return len(models)
    if not is_plan(policy):
        return None
    if is_table(policy):
        return int(max(policy["stage"])) + 1
    return len(getattr(policy, "policy", policy))
