"""Options about a log, of `drmdp estimate` and `drmdp check`, and the summary they print."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import option_groups as groups
from drmdp.cli.option_groups import choice, integer, number, one_of, option, options, repeated
from drmdp.cli.show import fields, print_lines, print_table
from drmdp.ui.text import count

if TYPE_CHECKING:
    from drmdp.estimation.log.table import Columns
    from drmdp.estimation.settings import Settings
    from drmdp.estimation.summary import Summary
ROWS = 12
"""Kernels and labels shown."""
LOG_OPTIONS = {
    **options(
        groups.LOG,
        state=option("Column of the state.", default="state"),
        action=option("Column of the action.", default="action"),
        next_state="Column of the next state; by default next_state, if there is one.",
        episode="Column of the episode; its consecutive rows make transitions if need be.",
        weight="Column with the weights of the rows.",
        stage="Column that rises, as an age does: a model for each of its bands, in a folder.",
        bands="How wide bands of --stage are: 10, 1 by default; or their borders: 40,50,75.",
        cost="Column to average into costs.",
        reward="Column to average into rewards.",
    ),
    **options(
        groups.TIME,
        time="Column that orders the rows of an episode: numbers or dates; or several: year,month.",
        time_format=repeated(
            "How times are written: '%d.%m.%Y %H:%M', excel …; common forms are recognised. "
            "May be repeated."
        ),
        zone="Whose clock counts for stamps with a zone: Europe/Zurich …; that shown by default.",
        step="Time from row to row: month, '2 weeks', 0.5 …; or continuous/year, for rates. "
        "Guessed.",
        jumps=repeated("The only jumps of rates; may be repeated.", "--jump", metavar="FROM=TO"),
        exact=repeated("A terminal state whose rows are at the time of entry (rates)."),
        within="Count elapsed time: rows are whole steps apart, give or take this: '10 days'.",
    ),
    **options(
        groups.PROBLEM,
        initial=option(
            "Where the process starts: first (as episodes began), rows, uniform, or a state.",
            "--start",
            "--initial",
        ),
    ),
    **options(
        groups.LABELS,
        states="All states in order, such as good,fair,poor; what was seen, sorted, by default.",
        actions="The same for actions.",
        rename=repeated("A label written differently; may be repeated.", metavar="OLD=NEW"),
        terminal=repeated(
            "A state where the process ends, at no cost or that given; may be repeated.",
            metavar="STATE[=COST]",
        ),
    ),
    **options(
        groups.RULES,
        gaps=one_of(
            "Where rows are further apart: refuse, cut (the episode ends), bridge (time only "
            "orders) or fill (one-step rows of highest likelihood).",
            ("refuse", "cut", "bridge", "fill"),
        ),
        duplicates=one_of(
            "Rows that are there twice: refuse or drop; first, last or worst of those in one "
            "step, also if they differ.",
            ("refuse", "drop", "first", "last", "worst"),
        ),
        after_terminal=one_of(
            "A row of an episode that follows one in a terminal state: refuse, or a new episode.",
            ("refuse", "new"),
        ),
        min_count=number("Pairs seen fewer times are unavailable.", default=0),
        unvisited=option(
            "Pairs never seen: refuse, unavailable, prior, self-loop or like:STATE.",
            default="refuse",
        ),
        same_row=repeated("An action with one row, whatever the state; may be repeated."),
        partial=one_of(
            "Pairs seen, but not in every kernel: refuse, unavailable, prior, self-loop or pooled.",
            ("refuse", "unavailable", "prior", "self-loop", "pooled"),
        ),
    ),
    **options(
        groups.KERNELS,
        by="What makes a kernel: a column, time:year, time:quarter, time:month, bootstrap, folds, "
        "parts or posterior. One by default.",
        n_kernels=integer("How many, for all but a column.", "--kernels"),
        weights=one_of(
            "Kernels of a column weigh: equal, as their rows, or equal and drawn to all data by "
            "their counts.",
            ("equal", "rows", "counts"),
        ),
        prior=option("Pseudo-count of a next state (posterior), or pooled.", default="1.0"),
        prior_on=one_of(
            "Next states with a prior: those of the state, seen after the pair, or all.",
            ("state", "seen", "all"),
        ),
        costs="Instead: a .csv file (state, action, cost), or SQL such as '0.1 * state + 9 * "
        "action'.",
        rewards="The same for rewards.",
        seed=option("Of everything random.", default=0),
    ),
    **options(
        groups.CELLS,
        separator="What separates cells: ';', tab …; a comma by default, in .tsv files a tab.",
        encoding="Of text files: latin-1, cp1252, utf-16 …; UTF-8 by default.",
        decimal=option("The point of numbers; '.' by default.", type=choice(".", ",")),
        thousands=option(
            "What stands between thousands: \"'\", '.', ',' or ' '.",
            type=choice("'", ".", ",", " "),
            metavar="MARK",
        ),
        sheet="Of a workbook; by default the visible one that has the columns.",
        header_row=integer("Row, or line, with the names of the columns; the first by default."),
        fill_down=repeated(
            "Column whose empty cells mean what stands above them; may be repeated."
        ),
        skip_rows_without=repeated(
            "Column that is empty in rows to skip, as in those of sums; may be repeated."
        ),
    ),
}
"""Options of `drmdp estimate` and `drmdp check`."""


def log_settings(given: Any) -> tuple[Columns, Settings]:
    """Columns and settings of the options."""
    from drmdp.estimation import settings
    from drmdp.estimation.log.labels import split

    asked = fields(given, *LOG_OPTIONS, "discount", "interest")
    asked |= {name: split(asked[name]) for name in ("states", "actions")}
    asked["rename"] = dict(_pair("--rename OLD=NEW", text) for text in asked["rename"])
    asked["terminal"] = _ends(asked["terminal"])
    jumps: dict[str, list[str]] = {}
    for source, target in (_pair("--jump FROM=TO", text) for text in asked["jumps"]):
        jumps.setdefault(source, []).append(target)
    asked |= {"jumps": jumps or None, "same_row": asked["same_row"] or None}
    # "pooled" is no number, and what else is none is refused later
    with contextlib.suppress(ValueError):
        asked["prior"] = float(asked["prior"])
    if asked["bands"] is not None:
        try:
            borders = [float(border) for border in asked["bands"].split(",")]
        except ValueError:
            expected = "expected a width, or borders such as 40,50,75"
            raise click.BadParameter(f"--bands {asked['bands']!r}: {expected}") from None
        asked["bands"] = borders if len(borders) > 1 else borders[0]
    return settings.log_settings({**asked, "typed": True})


def _ends(texts: Sequence[str]) -> Sequence[str] | dict[str, float]:
    """Terminal states, with their final costs if one of them has one."""
    values: dict[str, float] = {}
    for text in texts:
        name, mark, cost = text.rpartition("=")
        try:
            name, value = (name.strip(), float(cost)) if mark else (text, 0.0)
        except ValueError:
            form = "expected STATE, or STATE=COST with a number such as 18000 or 0.5"
            raise click.BadParameter(f"--terminal {text!r}: {form}") from None
        if name in values:
            raise click.BadParameter(f"--terminal {text!r}: the state is given twice")
        values[name] = value
    return values if any("=" in text for text in texts) else texts


def _pair(option: str, text: str) -> tuple[str, str]:
    old, mark, new = text.partition("=")
    if not (mark and old and new):
        name, form = option.split()
        raise click.BadParameter(f"{name} {text!r}: expected {form}")
    return old.strip(), new.strip()


def print_log(summary: Summary, **other: str) -> None:
    """Print the summary, with `other` lines, and how much data each of several kernels has."""
    print_lines(summary_lines(summary) | other)
    rows, total = [], len(summary.kernels)
    if total < 2:
        return
    for i, label in enumerate(summary.kernels[:ROWS]):
        seen = "" if summary.kernel_transitions is None else f"{summary.kernel_transitions[i]:,}"
        made = f"{summary.kernel_pairs[i]:,}", f"{summary.kernel_assumed[i]:,}"
        rows.append((label, seen, *made))
    print_table(["kernel"], ["transitions", "rows from data", "rows assumed"], rows, total)


def summary_lines(summary: Summary) -> dict[str, str]:
    """The summary in lines, by subject."""
    rows = f"{summary.rows:,} rows"
    rows += f", {summary.episodes:,} episodes" if summary.episodes is not None else ""
    ends = f"; {summary.ends:,} rows end an episode" if summary.ends else ""
    kind, _, rest = (summary.costs or "").partition(": ")
    once = f"{summary.pairs_seen_once:,} of them once"
    share = f"{summary.pairs_seen:,} of {summary.pairs:,} pairs of state and action, {once}"
    sizes = f"{len(summary.states):,} states × {len(summary.actions):,} actions"
    sizes += f" × {count(len(summary.kernels), 'kernel')}"
    made = f"; kernels by {summary.by}" if summary.by != "none" else ", of all rows"
    named = (role if role == name else f"{role} {name}" for role, name in summary.columns.items())
    lines = {
        "Table": f"{summary.table}: {rows}, {summary.transitions:,} transitions{ends}",
        "Columns": ", ".join(named),
        "Step": "; ".join(filter(None, (summary.step, summary.time))),
        "States": _counts(summary.states) + _alphabet(summary),
        "Actions": _counts(summary.actions),
        "Model": f"{sizes}{made}",
        "Weights": f"{summary.weights}" if len(summary.kernels) > 1 else "",
        "Seen": f"{share}; {summary.median:,.0f} times in the median",
        "Thin": "\n".join(summary.thin),
        kind.capitalize(): rest,
        "Start": summary.start or "",
        "Assumed": "\n".join(summary.assumed) or "nothing",
    }
    return {name: text for name, text in lines.items() if text}


def _alphabet(summary: Summary) -> str:
    """A hint on how to put states in another order than that of the alphabet."""
    names = [str(name) for name, _ in summary.states]
    if summary.order != "alphabet" or len(names) < 3:
        return ""
    first = shlex.quote(",".join(names[:ROWS]) + (",…" if len(names) > ROWS else ""))
    return f"\norder: alphabet; --states {first} in another order changes it"


def _counts(labels: list[tuple[Any, int]]) -> str:
    """Names with how often each was seen, in order."""
    more = f", … {len(labels) - ROWS:,} more" if len(labels) > ROWS else ""
    return ", ".join(f"{name} {n:,}" for name, n in labels[:ROWS]) + more
