"""What `drmdp estimate` and `drmdp check` share: options about a log, and what is printed of it."""

from __future__ import annotations

import contextlib
import shlex
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.show import columns as columns_of

if TYPE_CHECKING:
    from rich.console import Console

    from drmdp.estimate.settings import Settings
    from drmdp.estimate.summary import Summary
    from drmdp.estimate.table import Columns
ROWS = 12
"""Kernels and labels shown."""
LOG = (
    click.option(
        "--by",
        help="What makes a kernel: a column, time:year, time:quarter, time:month, bootstrap, folds, parts or posterior. One by default.",
    ),
    click.option("--state", default="state", show_default=True, help="Column of the state."),
    click.option("--action", default="action", show_default=True, help="Column of the action."),
    click.option("--next-state", help="Column of the next state; by default next_state, if there is one."),
    click.option("--episode", help="Column of the episode; its consecutive rows make transitions if need be."),
    click.option("--time", help="Column that orders the rows of an episode: numbers or dates; or several: year,month."),
    click.option("--weight", help="Column with the weights of the rows."),
    click.option("--stage", help="Column that rises, as an age does: a model for each of its bands, in a folder."),
    click.option("--bands", help="How wide bands of --stage are: 10, 1 by default; or their borders: 40,50,75."),
    click.option("--cost", help="Column to average into costs."),
    click.option("--reward", help="Column to average into rewards."),
    click.option(
        "--time-format",
        multiple=True,
        help="How times are written: '%d.%m.%Y %H:%M', excel …; common forms are recognised. May be repeated.",
    ),
    click.option("--zone", help="Whose clock counts for stamps with a zone: Europe/Zurich …; that shown by default."),
    click.option(
        "--step", help="Time from row to row: month, '2 weeks', 0.5 …; or continuous/year, for rates. Guessed."
    ),
    click.option("--jump", "jumps", multiple=True, metavar="FROM=TO", help="The only jumps of rates; may be repeated."),
    click.option("--exact", multiple=True, help="A terminal state whose rows are at the time of entry (rates)."),
    click.option("--within", help="Count elapsed time: rows are whole steps apart, give or take this: '10 days'."),
    click.option(
        "--gaps",
        default="refuse",
        show_default=True,
        help="Where rows are further apart: refuse, cut (the episode ends), bridge (time only orders) or fill (one-step rows of highest likelihood).",
    ),
    click.option(
        "--duplicates",
        default="refuse",
        show_default=True,
        help="Rows that are there twice: refuse or drop; first, last or worst of those in one step, also if they differ.",
    ),
    click.option("--states", help="All states in order, such as good,fair,poor; what was seen, sorted, by default."),
    click.option("--actions", help="The same for actions."),
    click.option("--rename", multiple=True, metavar="OLD=NEW", help="A label written differently; may be repeated."),
    click.option("--terminal", multiple=True, help="A state where the process ends; may be repeated."),
    click.option(
        "--min-count", type=float, default=0, show_default=True, help="Pairs seen fewer times are unavailable."
    ),
    click.option(
        "--start",
        "--initial",
        "initial",
        help="Where the process starts: first (as episodes began), rows, uniform, or a state.",
    ),
    click.option("--separator", help="What separates cells: ';', tab …; a comma by default, in .tsv files a tab."),
    click.option("--encoding", help="Of text files: latin-1, cp1252, utf-16 …; UTF-8 by default."),
    click.option("--decimal", help="The point of numbers: '.', the default, or ','."),
    click.option("--thousands", help="What stands between thousands: \"'\", '.', ',' or ' '."),
    click.option("--sheet", help="Of a workbook; by default the visible one that has the columns."),
    click.option("--header-row", type=int, help="Row, or line, with the names of the columns; the first by default."),
    click.option(
        "--fill-down", multiple=True, help="Column whose empty cells mean what stands above them; may be repeated."
    ),
    click.option("--skip-rows-without", help="Column that is empty in rows to skip, as in those of sums."),
    click.option(
        "--unvisited",
        default="refuse",
        show_default=True,
        help="Pairs never seen: refuse, unavailable, prior, self-loop or like:STATE.",
    ),
    click.option("--same-row", multiple=True, help="An action with one row, whatever the state; may be repeated."),
    click.option(
        "--partial",
        default="refuse",
        show_default=True,
        help="Pairs seen, but not in every kernel: refuse, unavailable, prior, self-loop or pooled.",
    ),
)
"""Options about a log."""
KERNELS = (
    click.option("--kernels", "n_kernels", type=int, help="How many, for all but a column."),
    click.option(
        "--weights",
        default="equal",
        show_default=True,
        help="Kernels of a column weigh: equal, as their rows, or equal and drawn to all data by their counts.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of everything random."),
    click.option(
        "--costs", help="Instead: a .csv file (state, action, cost), or SQL such as '0.1 * state + 9 * action'."
    ),
    click.option("--rewards", help="The same for rewards."),
    click.option(
        "--prior", default="1.0", show_default=True, help="Pseudo-count of a next state (posterior), or pooled."
    ),
    click.option(
        "--prior-on",
        default="state",
        show_default=True,
        help="Next states with a prior: those of the state, seen after the pair, or all.",
    ),
)
"""Options about the kernels and costs that are made of it."""


def log_options(command: Any) -> Any:
    """Add the options that `drmdp estimate` and `drmdp check` share."""
    for option in reversed((*LOG, *KERNELS)):
        command = option(command)
    return command


def log_settings(given: dict[str, Any]) -> tuple[Columns, Settings]:
    """Columns and settings of the options."""
    from drmdp.estimate import settings
    from drmdp.estimate.labels import split

    names = {name: split(given[name]) for name in ("states", "actions")}
    rename = dict(_pair("--rename OLD=NEW", text) for text in given["rename"])
    jumps: dict[str, list[str]] = {}
    for source, target in (_pair("--jump FROM=TO", text) for text in given["jumps"]):
        jumps.setdefault(source, []).append(target)
    with contextlib.suppress(ValueError):  # "pooled" is no number, and what else is none is refused later
        given["prior"] = float(given["prior"])
    given |= {"jumps": jumps or None, "same_row": given["same_row"] or None}
    if given["bands"] is not None:
        try:
            borders = [float(border) for border in given["bands"].split(",")]
        except ValueError:
            raise click.BadParameter(
                f"--bands {given['bands']!r}: expected a width, or borders such as 40,50,75"
            ) from None
        given = {**given, "bands": borders if len(borders) > 1 else borders[0]}
    return settings.log_settings({**given, **names, "rename": rename, "typed": True})


def _pair(option: str, text: str) -> tuple[str, str]:
    old, mark, new = text.partition("=")
    if not (mark and old and new):
        name, form = option.split()
        raise click.BadParameter(f"{name} {text!r}: expected {form}")
    return old.strip(), new.strip()


def print_kernels(screen: Console, summary: Summary) -> None:
    """Print how much data each kernel has."""
    kernels = columns_of(["kernel"], ["transitions", "rows from data", "rows assumed"])
    for i, label in enumerate(summary.kernels[:ROWS]):
        rows = "" if summary.kernel_transitions is None else f"{summary.kernel_transitions[i]:,}"
        kernels.add_row(str(label), rows, f"{summary.kernel_pairs[i]:,}", f"{summary.kernel_assumed[i]:,}")
    screen.print(kernels)
    if len(summary.kernels) > ROWS:
        screen.print(f"… {len(summary.kernels) - ROWS:,} more")


def summary_lines(summary: Summary) -> dict[str, str]:
    """What was seen and what is assumed, by subject."""
    rows = f"{summary.rows:,} rows" + (f", {summary.episodes:,} episodes" if summary.episodes is not None else "")
    ends = f"; {summary.ends:,} rows end an episode" if summary.ends else ""
    kind, _, rest = (summary.costs or "").partition(": ")
    once = f"{summary.pairs_seen_once:,} of them once"
    share = f"{summary.pairs_seen:,} of {summary.pairs:,} pairs of state and action, {once}"
    sizes = f"{len(summary.states):,} states × {len(summary.actions):,} actions × {len(summary.kernels):,} kernels"
    lines = {
        "Table": f"{summary.table}: {rows}, {summary.transitions:,} transitions{ends}",
        "Columns": ", ".join(role if role == name else f"{role} {name}" for role, name in summary.columns.items()),
        "Step": "; ".join(filter(None, (summary.step, summary.time))),
        "States": _counts(summary.states) + _alphabet(summary),
        "Actions": _counts(summary.actions),
        "Model": f"{sizes}; kernels by {summary.by}",
        "Weights": f"{summary.weights}" if len(summary.kernels) > 1 else "",
        "Seen": f"{share}; {summary.median:,.0f} times in the median",
        "Thin": "\n".join(summary.thin),
        kind.capitalize(): rest,
        "Start": summary.start or "",
        "Assumed": "\n".join(summary.assumed) or "nothing",
    }
    return {name: text for name, text in lines.items() if text}


def _alphabet(summary: Summary) -> str:
    """How to put states in another order than that of the alphabet."""
    names = [str(name) for name, _ in summary.states]
    if summary.order != "alphabet" or len(names) < 3:
        return ""
    return f"\norder: alphabet; --states {shlex.quote(','.join(names[:ROWS]) + (',…' if len(names) > ROWS else ''))} in another order changes it"


def _counts(labels: list[tuple[Any, int]]) -> str:
    """Names with how often each was seen, in order."""
    more = f", … {len(labels) - ROWS:,} more" if len(labels) > ROWS else ""
    return ", ".join(f"{name} {n:,}" for name, n in labels[:ROWS]) + more
