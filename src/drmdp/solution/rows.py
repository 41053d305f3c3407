"""Policies and values as rows of tables, and on how few observed rows they rest.

**Tables** have one row for each action that is played in a state, one without an action for a state
that has none. Names are whole numbers if all of them are, else texts, as `str` gives them; two that
would be the same text are refused.

**Notes** on a policy say on how few observed transitions it rests, where the model has counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.vectors import dot
from drmdp.errors import InputError, imported, repeated, shown
from drmdp.solution.results import SELDOM, likeliest
from drmdp.ui.text import START, first_names

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution.plan import HorizonSolution

FEW = 5
"""Pairs seen fewer times than this are thin."""
LISTED = 5
"""Pairs that a note lists."""


class Rests(NamedTuple):
    """A pair that is played, and its observed transitions."""

    state: Any
    action: Any
    rows: float

    def __str__(self) -> str:
        return f"{self.action} when {self.state} rests on {in_words(self.rows)}"


def in_words(rows: float) -> str:
    """Say how many: "1 row", "12 rows", "no row at all"."""
    return "no row at all" if rows == 0 else f"{rows:,.6g} row{'' if rows == 1 else 's'}"


def few_rows(model: Model, policy: Array, few: float = FEW, most: int | None = None) -> list[Rests]:
    """Pairs that a policy (S, A) plays, not just now and then, with fewer observed transitions, the
    rarest first; none if counts are unknown.

    With `most`, the first so many.
    """
    counts = model.pair_counts
    if counts is None:
        return []
    s, a = np.nonzero((np.asarray(policy) >= SELDOM) & (counts < few))
    order = np.argsort(counts[s, a], kind="stable")[:most]
    pairs = zip(s[order].tolist(), a[order].tolist(), strict=True)
    return [Rests(model.states[k], model.actions[b], float(counts[k, b])) for k, b in pairs]


def few_rows_note(stages: Iterable[tuple[Model, Array]]) -> list[str]:
    """A note on such pairs, if any; of a plan, the model and the policy of each stage."""
    rests = dict.fromkeys(pair for model, policy in stages for pair in few_rows(model, policy))
    pairs = sorted(rests, key=lambda pair: pair.rows)
    return [first_names(pairs, LISTED)] if pairs else []


def notes_of(
    model: Model, ambiguity: AmbiguitySet, policy: Array, value: Array | None
) -> tuple[str, ...]:
    """Notes on a model, a set and a policy, and on its value, if single kernels can be compared
    with that.
    """
    from drmdp.policies import single_kernels

    notes = (*ambiguity.notes(model), *few_rows_note([(model, policy)]))
    if value is None or model.n_kernels == 1:
        return notes
    figure = dot(model.initial, value)
    return (*notes, *single_kernels.remarks(model, ambiguity, policy, figure))


def plan_notes(plan: HorizonSolution) -> tuple[str, ...]:
    """Notes on a plan, its models and sets."""
    from drmdp.policies import single_kernels

    stages = plan.natures.stages
    others = {f"{START}{model.start}" for model in stages.given} - {f"{START}{stages.first.start}"}
    pairs = (ambiguity.notes(model) for model, ambiguity in stages.distinct)
    notes = [note for note in dict.fromkeys(chain.from_iterable(pairs)) if note not in others]
    few = few_rows_note(zip(stages.given, plan.policy, strict=True))
    return (*notes, *few, *single_kernels.plan_remarks(plan))


def fewest_rows(plan: HorizonSolution) -> list[str] | None:
    """The fewest observed transitions of an action that a plan plays in each state, at any stage;
    None if counts are unknown.
    """
    counts = plan._pair_counts
    if counts is None:
        return None
    least = np.where(plan.policy >= SELDOM, counts, np.inf).min(axis=(0, 2))
    return [f"{rows:,.6g}" if rows < np.inf else "" for rows in least.tolist()]


def rows_played(row: Array, counts: Array) -> str:
    """Observed transitions of the actions that `drmdp.solution.choice` names, in its order."""
    return ", ".join(f"{counts[a]:,.6g}" for a in likeliest(row)[:3])


# ---------------------------------------------------------------------- tables


def frame(
    states: Sequence[Any],
    actions: Sequence[Any],
    policy: Array,
    values: Mapping[str, Array | None],
    rows: Array | None = None,
    stages: Sequence[str] | None = None,
) -> Any:
    """A polars frame of a policy (S, A) or (T, S, A), of values by state, (S,) or (T, S), and of
    how many transitions were seen of each pair.
    """
    pl = imported("polars", "data")
    listed = policy > 0
    listed[..., 0] |= ~listed.any(axis=-1)
    *place, a = np.nonzero(listed)
    played = policy[listed] > 0
    stage = {"stage": pl.Series(place[0])} if policy.ndim == 3 else {}
    if stages is not None:
        stage["stage_name"] = pl.Series(list(stages), dtype=pl.String)[place[0]]
    columns = {
        "state": named_column(pl, "states", states, place[-1]),
        "action": named_column(pl, "actions", actions, a).set(pl.Series(~played), None),
        "probability": pl.Series(policy[listed]).set(pl.Series(~played), None),
    }
    unknown = pl.Series([None] * len(a), dtype=pl.Float64)
    for name, value in values.items():
        columns[name] = unknown if value is None else pl.Series(value[tuple(place)])
    if rows is not None:
        counts = np.broadcast_to(rows, policy.shape)[listed]
        counts = counts.astype(np.int64) if (counts == np.floor(counts)).all() else counts
        columns["rows"] = pl.Series(counts).set(pl.Series(~played), None)
    return pl.DataFrame(stage | columns)


def columns(names: Mapping[str, Sequence[Any]], place: Any, values: Mapping[str, Array]) -> Any:
    """A polars frame of the names of numbered things, a row of `place` for each kind, and of values
    beside them.
    """
    pl = imported("polars", "data")
    kinds = zip(names, names.values(), place, strict=True)
    named = {kind: named_column(pl, f"{kind}s", known, k) for kind, known, k in kinds}
    return pl.DataFrame(named | {name: pl.Series(column) for name, column in values.items()})


def named_column(pl: Any, what: str, names: Sequence[Any], chosen: Any) -> Any:
    """The names of numbered things, as whole numbers or texts."""
    if all(type(name) is int and abs(name) < 2**63 for name in names):
        return pl.Series(np.asarray(names, dtype=np.int64)[chosen])
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise InputError(f"{what}: two names are both {shown(repeated(texts))} in a table")
    return pl.Series(texts, dtype=pl.String)[chosen]


def choices(states: Sequence[Any], actions: Sequence[Any], policy: Array) -> dict[Any, Any]:
    """A policy (S, A) as {state: action}, or {state: {action: probability}} where it draws; states
    without actions are left out.
    """
    rows: dict[Any, Any] = {}
    for s, a in zip(*np.nonzero(policy > 0), strict=True):
        rows.setdefault(states[int(s)], {})[actions[int(a)]] = float(policy[s, a])
    return {state: next(iter(row)) if len(row) == 1 else row for state, row in rows.items()}
