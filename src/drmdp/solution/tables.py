"""Policies and values as tables: one row for each action that is played in a state, one without an action for a state that has none.

Names are whole numbers if all of them are, else texts, as `str` gives them; two that would be the same text are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.errors import InputError, MissingExtra, repeated, shown

SUFFIXES = (".csv", ".parquet")
"""Files that hold tables."""


def frame(
    states: Sequence[Any],
    actions: Sequence[Any],
    policy: Array,
    values: Mapping[str, Array | None],
    rows: Array | None = None,
    stages: Sequence[str] | None = None,
) -> Any:
    """A polars frame of a policy (S, A) or (T, S, A), of values by state, (S,) or (T, S), and of how many transitions were seen of each pair."""
    pl = _polars()
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
    for name, value in values.items():
        columns[name] = (
            pl.Series([None] * len(a), dtype=pl.Float64) if value is None else pl.Series(value[tuple(place)])
        )
    if rows is not None:
        seen = np.broadcast_to(rows, policy.shape)[listed]
        whole = seen.astype(np.int64) if (seen == np.floor(seen)).all() else seen
        columns["rows"] = pl.Series(whole).set(pl.Series(~played), None)
    return pl.DataFrame(stage | columns)


def columns(names: Mapping[str, Sequence[Any]], place: Any, values: Mapping[str, Array]) -> Any:
    """A polars frame of the names of numbered things, a row of `place` for each kind, and of values beside them."""
    pl = _polars()
    named = {
        what: named_column(pl, f"{what}s", known, k) for (what, known), k in zip(names.items(), place, strict=True)
    }
    return pl.DataFrame(named | {name: pl.Series(own) for name, own in values.items()})


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise MissingExtra("polars", "data") from error
    return polars


def named_column(pl: Any, what: str, names: Sequence[Any], chosen: Any) -> Any:
    """The names of some things, as whole numbers or texts."""
    if all(type(name) is int and abs(name) < 2**63 for name in names):
        return pl.Series(np.asarray(names, dtype=np.int64)[chosen])
    texts = [str(name) for name in names]
    if len(set(texts)) < len(texts):
        raise InputError(f"{what}: two names are both {shown(repeated(texts))} in a table")
    return pl.Series(texts, dtype=pl.String)[chosen]


def choices(states: Sequence[Any], actions: Sequence[Any], policy: Array) -> dict[Any, Any]:
    """A policy (S, A) as {state: action}, or {state: {action: probability}} where it draws; states without actions are left out."""
    found: dict[Any, Any] = {}
    for s, a in zip(*np.nonzero(policy > 0), strict=True):
        found.setdefault(states[int(s)], {})[actions[int(a)]] = float(policy[s, a])
    return {state: next(iter(row)) if len(row) == 1 else row for state, row in found.items()}
