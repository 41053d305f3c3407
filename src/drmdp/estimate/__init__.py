"""Transitions in a table → a model with N kernels, and a summary of what was seen and what was assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from drmdp.checks import Names, number
from drmdp.errors import InputError, shown
from drmdp.estimate.costs import price
from drmdp.estimate.count import steps_of
from drmdp.estimate.rules import PARTIAL, UNVISITED, check_rule, fill, names_by_text
from drmdp.estimate.sample import RESAMPLED, SAMPLED, Samples, by_column, posterior, resampled, single
from drmdp.estimate.summary import Summary, summarise
from drmdp.estimate.table import Columns, open_table
from drmdp.instances._build import generator
from drmdp.model import Model

__all__ = ["Columns", "Estimate", "Settings", "Summary", "estimate", "fit"]


@dataclass(frozen=True)
class Settings:
    """How kernels are made of counts; see `estimate`."""

    discount: float
    by: str | None = None
    n_kernels: int | None = None
    seed: int = 0
    prior: float = 1.0
    prior_on: str = "seen"
    unvisited: str = "refuse"
    partial: str = "refuse"
    costs: Any = None
    rewards: Any = None
    terminal: Any = None
    states: Names | None = None
    actions: Names | None = None
    typed: bool = False  # whether `terminal` holds texts from a command line


@dataclass(frozen=True)
class Estimate:
    """A model, the labels of its kernels, and the summary."""

    model: Model
    labels: tuple[Any, ...]
    summary: Summary


def estimate(
    table: Any,
    *,
    discount: float,
    n_kernels: int | None = None,
    by: str | None = None,
    seed: int = 0,
    state: str = "state",
    action: str = "action",
    next_state: str | None = None,
    episode: str | None = None,
    time: str | None = None,
    cost: str | None = None,
    reward: str | None = None,
    weight: str | None = None,
    costs: Any = None,
    rewards: Any = None,
    unvisited: str = "refuse",
    partial: str = "refuse",
    prior: float = 1.0,
    prior_on: str = "seen",
    terminal: Any = None,
    states: Names | None = None,
    actions: Names | None = None,
) -> Model:
    """Estimate a model with N kernels from observed transitions.

    Parameters
    ----------
    table : Polars or pandas frame, mapping of columns, or path of a .csv or .parquet file
        Files are read in pieces: memory grows with the number of distinct transitions, not with the rows (unless rows of
        episodes are out of order and must be sorted).
    discount : float in [0, 1)
    n_kernels : int, optional
        N; with a column in `by` it is what the column has, and is checked if given.
    by : column name, "bootstrap", "folds", "parts" or "posterior", optional
        What makes the kernels, see `drmdp.estimate.sample`; one kernel of everything by default.
    seed : int
        Of everything random.
    state, action, next_state, episode, time, cost, reward, weight : column names
        See `drmdp.estimate.table`. Without `next_state` (and no column of that name) consecutive rows of an episode make
        the transitions.
    costs, rewards : array, mapping from (state, action), path or SQL expression
        Instead of the column `cost` or `reward`, see `drmdp.estimate.costs`. Exactly one of the four is needed.
    unvisited, partial : rules
        For pairs without data, in all kernels or in some, see `drmdp.estimate.rules`.
    prior : float
        Pseudo-count of each next state for "posterior".
    prior_on : "seen" or "all"
        Whether the prior is on the next states seen after the pair, or on all.
    terminal : collection of names
        States where the process ends. Rows that stay there are ignored, rows that leave are refused.
    states, actions : sequences of names
        All there are, in order; what was seen, sorted, by default.

    Raises
    ------
    InputError
        If the table does not make a model; the message names the row or the pair.

    Examples
    --------
    >>> import drmdp
    >>> log = {"state": ["ok", "ok", "worn", "worn"], "action": [0, 0, 0, 1], "next_state": ["ok", "worn", "worn", "ok"],
    ...        "cost": [0.0, 0.0, 2.0, 5.0]}
    >>> drmdp.estimate(log, cost="cost", discount=0.9, unvisited="unavailable")
    Model: 2 states × 2 actions × 1 kernel, discount 0.9
      costs (S, A) in [0, 5]
      dense, 50% of the probabilities stored, 182 bytes
      1 unavailable pair, 0 terminal states
      note: 1 pair was never seen: unavailable
    """
    columns = Columns(state, action, next_state, episode, time, cost, reward, weight)
    settings = Settings(
        discount, by, n_kernels, seed, prior, prior_on, unvisited, partial, costs, rewards, terminal, states, actions
    )  # fmt: skip
    return fit(table, columns, settings).model


def fit(table: Any, columns: Columns, settings: Settings) -> Estimate:
    """`estimate` with its summary and the labels of the kernels."""
    kind = _check(columns, settings)
    rng = generator(settings.seed, "estimate")
    grouped = settings.by not in (None, *SAMPLED)
    opened = open_table(table, columns, settings.by if grouped else None)
    steps = steps_of(opened)
    samples = _samples(steps, settings, rng)
    if grouped and settings.n_kernels not in (None, len(samples.labels)):
        raise InputError(f"n_kernels={settings.n_kernels}, but {settings.by!r} has {len(samples.labels)} values")
    terminal = settings.terminal
    if settings.typed and terminal:
        terminal = names_by_text(samples.pooled.states, terminal, "terminal state")
    prior = settings.prior if settings.by == "posterior" else None
    filled = fill(samples, settings.unvisited, settings.partial, terminal, prior, rng)
    given = settings.costs if kind == "cost" else settings.rewards
    priced = price(samples.pooled, filled, columns, given, kind)
    summary = summarise(opened, steps, samples, filled, settings, kind)
    model = Model(
        filled.kernels,
        **{f"{kind}s": priced},
        discount=settings.discount,
        states=samples.pooled.states,
        actions=samples.pooled.actions,
        available=filled.available,
        terminal=filled.terminal,
        kernel_names=None if settings.by is None else _kernel_names(samples.labels),
        notes=summary.assumed,
    )
    return Estimate(model, samples.labels, summary)


def _kernel_names(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels as a model takes them: text for dates, numbers with a fraction and the like."""
    plain = all(isinstance(label, str | int) and not isinstance(label, bool) for label in labels)
    return labels if plain else tuple(str(label) for label in labels)


def _samples(steps: Any, settings: Settings, rng: Any) -> Samples:
    names = settings.states, settings.actions
    if settings.by is None:
        return single(steps, *names)
    if settings.by == "posterior":
        return posterior(steps, *names, settings.n_kernels or 0, settings.prior, settings.prior_on == "all", rng)
    if settings.by in RESAMPLED:
        return resampled(steps, *names, settings.by, settings.n_kernels or 0, rng)
    return by_column(steps, *names)


def _check(columns: Columns, settings: Settings) -> str:
    """Refuse settings that contradict each other, before anything is read; "cost" or "reward"."""
    sources = {
        "cost": columns.cost, "reward": columns.reward, "costs": settings.costs, "rewards": settings.rewards
    }  # fmt: skip
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        raise InputError(f"give exactly one of {', '.join(sources)}, got {' and '.join(given) or 'none'}")
    check_rule("unvisited", settings.unvisited, UNVISITED)
    check_rule("partial", settings.partial, PARTIAL)
    check_rule("prior_on", settings.prior_on, ("seen", "all"))
    n, by = settings.n_kernels, settings.by
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
        raise InputError(f"n_kernels: expected a positive whole number, got {shown(n)}")
    if by is None and n not in (None, 1):
        raise InputError(f"n_kernels={n} needs `by`: a column, {', '.join(SAMPLED)}")
    if by in SAMPLED and n is None:
        raise InputError(f"by={by!r} needs n_kernels")
    if by in ("folds", "parts") and n == 1:
        raise InputError(f"by={by!r} needs at least 2 kernels")
    prior = number("prior", settings.prior)
    if not (math.isfinite(prior) and prior > 0):
        raise InputError(f"prior: expected a positive number, got {shown(settings.prior)}")
    return given[0].removesuffix("s")
