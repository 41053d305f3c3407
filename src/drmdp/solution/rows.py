"""What there is to say of a policy that was found: on how many observed transitions it rests, where the model has counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.counts import FEW
from drmdp.core.text import START, some
from drmdp.core.vectors import dot
from drmdp.solution.results import SELDOM, likeliest

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution.plan import HorizonSolution

LISTED = 5
"""Pairs that a note lists."""


class Rests(NamedTuple):
    """A pair that is played, and how many transitions of it were seen."""

    state: Any
    action: Any
    rows: float

    def __str__(self) -> str:
        return f"{self.action} when {self.state} rests on {in_words(self.rows)}"


def in_words(rows: float) -> str:
    """Say how many: "1 row", "12 rows", "no row at all"."""
    return "no row at all" if rows == 0 else f"{rows:,.6g} row{'' if rows == 1 else 's'}"


def few_rows(model: Model, policy: Array, few: float = FEW, most: int | None = None) -> list[Rests]:
    """Pairs that a policy (S, A) plays, not just now and then, and that were seen fewer times, the rarest first; none if counts are unknown.

    With `most`, the first so many.
    """
    seen = model.pair_counts
    if seen is None:
        return []
    s, a = np.nonzero((np.asarray(policy) >= SELDOM) & (seen < few))
    order = np.argsort(seen[s, a], kind="stable")[:most]
    pairs = zip(s[order].tolist(), a[order].tolist(), strict=True)
    return [Rests(model.states[k], model.actions[b], float(seen[k, b])) for k, b in pairs]


def few_rows_note(stages: Sequence[tuple[Model, Array]]) -> list[str]:
    """What there is to say of that, in one note; of a plan, the model and the policy of each stage."""
    found = dict.fromkeys(pair for model, policy in stages for pair in few_rows(model, policy))
    pairs = sorted(found, key=lambda pair: pair.rows)
    return [some(pairs, LISTED)] if pairs else []


def notes_of(model: Model, ball: AmbiguitySet, policy: Array, value: Array | None) -> tuple[str, ...]:
    """What there is to say of a model, of a set, and of the policy that was found with its value, if single kernels can be compared with that."""
    from drmdp.policies import single

    known = value is not None and model.n_kernels > 1
    alone = single.remarks(model, ball, policy, dot(model.initial, value)) if known else ()
    return (*model.notes, *ball.remarks(model), *few_rows_note([(model, policy)]), *alone)


def plan_notes(plan: HorizonSolution) -> tuple[str, ...]:
    """The same of a plan that was found."""
    from drmdp.policies import single

    stages = plan.natures.stages
    others = {f"{START}{model.start}" for model in stages.given} - {f"{START}{stages.first.start}"}
    told = dict.fromkeys(note for model, ball in stages.distinct for note in (*model.notes, *ball.remarks(model)))
    few = few_rows_note(list(zip(stages.given, plan.policy, strict=True)))
    return (
        *(note for note in told if note not in others),
        *few,
        *(single.plan_remarks(plan) if stages.first.n_kernels > 1 else ()),
    )


def fewest_rows(plan: HorizonSolution) -> list[str] | None:
    """The fewest transitions that were seen of what a plan plays in each state, at any stage; None if counts are unknown."""
    seen = [] if plan.natures is None else [model.pair_counts for model in plan.natures.stages.given]
    if not seen or any(own is None for own in seen):
        return None
    least = np.where(plan.policy >= SELDOM, np.stack(seen), np.inf).min(axis=(0, 2))
    return [f"{rows:,.6g}" if rows < np.inf else "" for rows in least.tolist()]


def rows_played(row: Array, seen: Array) -> str:
    """How many transitions were seen of the actions that `drmdp.solution.choice` names, in its order."""
    return ", ".join(f"{seen[a]:,.6g}" for a in likeliest(row)[:3])
