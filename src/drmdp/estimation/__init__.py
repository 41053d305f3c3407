"""Transitions in a table → a model with N kernels, or a list of what is odd in the table.

What does the work is imported when it is called for.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from inspect import Signature, signature
from typing import Any

from drmdp.errors import InputError, Notice
from drmdp.estimation.log.findings import LogCheck

__all__ = ["LogCheck", "check_log", "estimate"]


def estimate(
    table: Any,
    *,
    discount: float | None = None,
    interest: str | None = None,
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
    stage: str | None = None,
    bands: Any = None,
    costs: Any = None,
    rewards: Any = None,
    unvisited: str = "refuse",
    same_row: Any = None,
    partial: str = "refuse",
    prior: float | str = 1.0,
    prior_on: str = "state",
    min_count: float = 0,
    initial: Any = None,
    terminal: Any = None,
    states: Any = None,
    actions: Any = None,
    rename: Mapping[Any, Any] | None = None,
    step: Any = None,
    jumps: Mapping[Any, Any] | None = None,
    exact: Any = None,
    gaps: str = "refuse",
    duplicates: str = "refuse",
    after_terminal: str = "refuse",
    time_format: str | Sequence[str] | None = None,
    within: Any = None,
    zone: str | None = None,
    weights: str = "equal",
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    fill_down: str | Collection[str] = (),
    skip_rows_without: str | Collection[str] = (),
    event: str | None = None,
    events: Any = None,
    transition: Any = None,
) -> Any:
    """Estimate a model with N kernels from observed transitions, or the models of the stages of a
    horizon.

    Parameters
    ----------
    table : Polars or pandas frame, mapping of columns, or path of a table in a file
        Text and Parquet files are read in pieces: memory grows with the number of distinct
        transitions, not with the rows (unless rows of episodes are out of order and must be
        sorted).
    discount : float in [0, 1]
        What a cost of the next step is worth now; of a unit of time later, where time is
        continuous.
    interest : such as "3%/year", optional
        Instead of `discount`, where times are dates: a step of a month is then discounted by
        1.03^(−1/12).
    n_kernels : int, optional
        N; with a column in `by` it is what the column has, and is checked if given.
    by : column name, "bootstrap", "folds", "parts" or "posterior", optional
        What makes the kernels: a value of the column each, episodes drawn with replacement, all but
        a part of the episodes, a part of them, or draws from the Dirichlet posterior; "time:year",
        "time:quarter", "time:month": the period in which a transition begins. One kernel of
        everything by default.
    seed : int
        Of everything random.
    state, action : column names
        Where it was and what was done, strings or integers.
    next_state : column name, optional
        Where that led. Without it (and no column of that name) consecutive rows of an episode make
        the transitions.
    episode, time : column names, optional
        Which rows belong together, such as those of one machine, and in which order. Two or three
        columns make a time together: ``"year,month"``.
    cost, reward : column name, optional
        What a row cost or earned; the mean of each state and action is taken.
    weight : column name, optional
        How much a row counts; 1 by default.
    stage, bands : column name, and number or list of numbers, optional
        A column that rises from row to row, such as an age, and the width of its bands, 1 by
        default, or their borders. The result is then a list of models, one for each band, of the
        transitions that begin in it: what `drmdp.finite_horizon` takes. A model is that of all
        stages of its band (`Model.stages`), as many as steps lead through it.
    costs, rewards : array, mapping from (state, action), path or SQL expression
        Instead of the column `cost` or `reward`. Exactly one of the four is needed. A file has the
        columns of state and action and one called cost or reward; an expression is in those two
        columns.
    unvisited, partial : rules
        For pairs of state and action without data, in all kernels or in some: "refuse",
        "unavailable", "prior" (uniform over all states), "self-loop", for `unvisited` also
        "like:STATE" (the row, and cost, of the action in that state), and for `partial` "pooled"
        (what all the data say). With `stage`, pairs that others have are partial too.
    same_row : action or collection of actions
        That lead to the same whatever the state, as a replacement: their rows count together.
    prior : float or "pooled"
        Pseudo-count of each next state for "posterior". "pooled" draws the rows of a state to each
        other, thin ones most, as much as the others say; also without "posterior".
    prior_on : "state", "seen" or "all"
        Whether the prior is on the next states seen from the state under any action, only on those
        seen after the pair, or on all. With "seen" three rows that went the same way are certainty.
    min_count : float
        Pairs seen fewer times are unavailable; the notes list them.
    initial : "first", "rows", "uniform", a state, or an array or mapping, optional
        Where the process starts: as episodes began, the default where their order is known, as
        transitions did, or in every state alike, terminal ones left out; in a state; or as a
        distribution says. `Model.start` and the notes tell which.
    terminal : name, collection of names, or mapping from state to final cost (reward)
        States where the process ends, at no cost or the one given. Rows that stay there are
        ignored, and so are their costs; rows that leave are refused.
    after_terminal : "refuse" or "new"
        What to do with a row of an episode that follows one in a terminal state, as where a machine
        was replaced under its old name: an error, or a new episode begins.
    states, actions : sequences of names
        All there are, in order; what was seen, sorted, by default.
    rename : mapping from label to label
        Of states, actions and values of the column `by` that were written in several ways.
    step : "month", "2 weeks", a number, …
        Time from a row to the next of its episode, by the calendar. Guessed by default, and `notes`
        say so. "continuous", or with dates "continuous/year": rates, per unit of time as costs are,
        from rows at any times; the action of a row is taken to hold until the next, draws of
        "posterior" are those of a normal approximation, and the model is that of
        `Model.from_rates`.
    jumps : mapping from state to states
        The only jumps that rates have; those between rows that follow each other by default.
    exact : terminal state or states
        Whose rows are at the time of entry, as of deaths, and not of a visit; with "continuous", or
        gaps that are filled.
    within : "10 days", a number, …, optional
        Count elapsed time instead: rows are so many steps apart, give or take this; all else is a
        gap.
    gaps : "refuse", "cut", "bridge" or "fill"
        Where rows are further apart: an error, the end of an episode, a transition all the same, or
        so many steps of which rows of one step are made, those of highest likelihood or draws from
        their posterior; the action of a row is taken to hold until the next.
    duplicates : "refuse", "drop", "first", "last" or "worst"
        What to do with rows that are there twice, with the same episode and time: an error, or keep
        one. The last three keep one of the rows of an episode that lie in the same step, also if
        they differ; the worst state is the last of `states`.
    time_format : str or several, optional
        How times are written, as in ``"%d.%m.%Y %H:%M"``; "excel" are days since 1899-12-30.
        Numbers and common forms of dates are recognised.
    zone : str, optional
        Place whose clock counts for stamps with a zone, as "Europe/Zurich"; by default that which
        each stamp shows.
    weights : "equal", "rows" or "counts"
        Whether the kernels of a column `by` weigh the same, or as much as they have data; with
        "counts" they weigh the same, and their rows are drawn to those of all data together, the
        more the less data they have, so that the mean kernel is that of all data together.
    separator, encoding, decimal, thousands : str, optional
        How text files are written: what separates cells (a character, or "tab"), how letters are
        coded ("latin-1"), the point or comma of numbers, and what stands between thousands: "'",
        ".", "," or " ".
    sheet, header_row : str and int, optional
        Sheet of a workbook, by default the visible one that has the columns; and the row, or line
        of a text file, that names the columns.
    fill_down, skip_rows_without : column names, optional
        Columns whose empty cells mean what stands above them, and columns of which one is empty in
        rows to skip, such as sums.
    event, events, transition
        For a log of events, such as sales: the column that says what happened, all events there
        are, and the function that says where they lead. What is estimated are laws of the events,
        the model is that of `Model.from_events(states, actions, events, transition, laws)`, and of
        the other arguments `n_kernels`, `by`, `seed`, `prior`, `weight`, `weights`, `costs`,
        `rewards` and `terminal` count.

    Raises
    ------
    InputError
        If the table does not make a model; the message names the row, column and value, or the
        pair.

    Warns
    -----
    Notice
        If labels look like one label written twice, or blanks around labels were removed. `notes`
        keep it.

    Examples
    --------
    >>> import drmdp
    >>> log = {"state": ["ok", "ok", "worn", "worn"], "action": [0, 0, 0, 1], "next_state": ["ok", "worn", "worn", "ok"],
    ...        "cost": [0.0, 0.0, 2.0, 5.0]}
    >>> drmdp.estimate(log, cost="cost", discount=0.9, unvisited="unavailable")
    Model: 2 states × 2 actions × 1 kernel, discount 0.9
      costs (S, A) in [0, 5]
      dense, 50% of the probabilities stored, 270 bytes
      counts of 4 transitions
      1 unavailable pair, 0 terminal states
      note: 1 pair was never seen: unavailable
      note: start: as the 4 transitions began
      note: 2 pairs always led to the same state, and nature cannot change that within observed next states: 0 when worn (once), 1 when worn (once)
      note: 1 pair was seen fewer than 5 times: 0 when ok (2 times)
    """
    arguments = dict(locals())
    about_events = {name: arguments.pop(name) for name in ("event", "events", "transition")}
    from drmdp.estimation.bands import fit_stages
    from drmdp.estimation.pipeline import fit
    from drmdp.estimation.settings import log_settings

    del arguments["table"]
    columns, settings = log_settings(arguments)
    if any(given is not None for given in about_events.values()):
        from drmdp.estimation.events import fit_events

        if stage is not None:
            raise InputError("`stage`: a log of events has none")
        return fit_events(table, **about_events, weight=columns.weight, settings=settings)
    asked = (table, columns, settings)
    estimates = [fit(*asked)] if stage is None else fit_stages(*asked)
    for text in estimates[0].summary.warnings:
        warnings.warn(f"{estimates[0].summary.table}: {text}", Notice, stacklevel=2)
    return estimates[0].model if stage is None else [each.model for each in estimates]


def check_log(table: Any, **options: Any) -> LogCheck:
    """Find everything that is odd in a log: what `estimate` would refuse or warn of, not only the
    first.

    Parameters
    ----------
    table, by : optional
        What to check, and what would make the kernels, as for `estimate`.
    state, action, next_state, episode, time, cost, reward, weight, stage : column names
        As for `estimate`. Costs are checked if a column holds them.
    unvisited, partial, same_row, min_count, terminal, states, actions, rename : optional
        What an estimate would assume, as for `estimate`.
    discount, interest, n_kernels, seed, bands, costs, rewards, prior, prior_on, initial, weights
        What else is asked of an estimate, as for `estimate`: all its options can be passed on.
    step, jumps, exact, gaps, duplicates, after_terminal, time_format, within, zone : optional
        How rows of an episode follow each other, as for `estimate`.
    separator, encoding, decimal, thousands : optional
        How files are written, as for `estimate`.
    sheet, header_row, fill_down, skip_rows_without : optional
        What is read of a file, as for `estimate`.

    Returns
    -------
    LogCheck
        `findings` with lines, columns and values, and a `summary` of what an estimate would assume.
        It prints as a list and is true if nothing is odd.

    Raises
    ------
    InputError
        If the table cannot be read at all, or a column is not there.

    Examples
    --------
    >>> import drmdp
    >>> log = {"state": ["ok", "ok", "OK"], "action": [0, 0, 0], "next_state": ["ok", "ok", "ok"], "cost": [1, "x", 2]}
    >>> print(drmdp.check_log(log, cost="cost"))  # doctest: +ELLIPSIS
    table: 3 things odd; an estimate is refused
    number, 1 place, refused
      row 2, column 'cost': 'x' is no number
    look-alike, 1 place
      row 3, column 'state': 'OK' (once) looks like 'ok' (3 times): the same but for capitals
      cure: `rename={'OK': 'ok'}` if they are the same; `states` if all are meant
    thin, 2 places
      state 'OK', action 0: seen once, and led to 'ok'
      state 'ok', action 0: seen 2 times, and always led to 'ok'
      cure: nature cannot change these 2 rows within observed next states (1 and 2 observations): look at them; ...
    """
    from drmdp.estimation.pipeline import check
    from drmdp.estimation.settings import log_settings

    asked = _CHECKED.bind(table, **options).arguments
    return check(asked.pop("table"), *log_settings(asked))


_OPTIONS = dict(signature(estimate).parameters)
for _name in ("event", "events", "transition"):  # a log of events is not checked
    del _OPTIONS[_name]
_CHECKED = Signature(list(_OPTIONS.values()), return_annotation="LogCheck")
check_log.__signature__ = _CHECKED  # type: ignore[attr-defined]
