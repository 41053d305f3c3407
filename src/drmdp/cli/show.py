"""What the commands print: tables, summaries, JSON and notices."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import screen as cli_screen
from drmdp.cli.screen import say
from drmdp.core.text import count, discount, measured
from drmdp.errors import Notice

if TYPE_CHECKING:
    from rich.console import Console

    from drmdp.core.spans import Head
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import Solution


WIDTH = 80
PLAIN = {"box": None, "pad_edge": False, "collapse_padding": True, "show_header": False, "show_edge": False}
"""A table without lines or header."""
NUMBERS = (
    "status", "gap", "duality_gap", "scale", "seconds", "setup_seconds", "n_iters", "kernel_passes",
)  # fmt: skip
ARRAYS = ("value", "lower", "upper", "policy")
"""What JSON documents hold of a solution."""
ROWS = 12
"""States shown in a table."""


def print_json(document: dict[str, Any]) -> None:
    """One document on standard output."""
    with cli_screen.piped():
        click.echo(json.dumps(plain(document), allow_nan=False))


def plain(value: Any) -> Any:
    """Make lists of arrays and tuples, and null of what is not a finite number."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def named(model: Model, ball: AmbiguitySet) -> dict[str, Any]:
    """Names and fingerprint of a model, and what there is to say of it and of the ball, for a JSON document."""
    names = {name: list(getattr(model, name)) for name in ("states", "actions", "kernel_names")}
    rows = {} if model.pair_counts is None else {"rows": model.pair_counts}
    return {**names, **rows, "notes": said(model, ball), "fingerprint": model.fingerprint}


def said(model: Model, ball: AmbiguitySet) -> list[str]:
    """Notes of a model, and what there is to say of the ball around it."""
    return [*model.notes, *ball.remarks(model)]


def sizes(model: Any) -> dict[str, Any]:
    """Sizes, names and notes of a model, in memory or in its files, for a JSON document; names of kernels only, states may be many."""
    head = model.head
    found = {name: getattr(head, name) for name in ("n_states", "n_actions", "n_kernels", "discount")}
    found |= {"sparse": head.is_sparse, "kernel_names": list(head.kernel_names), "notes": list(head.notes)}
    return {**found, "fingerprint": model.fingerprint}


@contextmanager
def notices() -> Iterator[None]:
    """Print what the package warns of as lines on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Notice)
        usual = warnings.showwarning

        def show(message: Any, category: Any, *place: Any) -> None:
            if issubclass(category, Notice):
                say(f"drmdp: note: {' '.join(str(message).split())}", err=True)
            else:
                usual(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def console() -> Console:
    """Standard output, no wider than it need be."""
    out: Console = cli_screen.console()
    out.width = min(out.width, WIDTH)
    return out


def grid(lines: dict[str, str]) -> Any:
    """Names and texts."""
    table = cli_screen.table(padding=(0, 2), **PLAIN)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in lines.items():
        table.add_row(name, text)
    return table


def columns(left: list[str], right: list[str]) -> Any:
    """A table with columns of names, then of numbers."""
    from rich import box

    table = cli_screen.table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in left:
        table.add_column(name, overflow="fold", max_width=24 if len(left) > 2 else 36)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def problem(model: Model | Head) -> str:
    """Sizes in words."""
    sizes = " × ".join(count(getattr(model, f"n_{noun}s"), noun) for noun in ("state", "action", "kernel"))
    return f"{sizes}, {'rewards' if model.maximise else 'costs'}, discount {discount(model.discount)}"


def worst(model: Model | Head, nature: Any = None, criterion: str = "discounted") -> str:
    """What a value is, in words."""
    what = measured(criterion, "reward" if model.maximise else "cost", getattr(model, "sojourn", None) is not None)
    return f"{'best' if nature == 'cooperative' else 'worst'}-case {what}"


def print_summary(
    model: Model,
    ball: AmbiguitySet,
    lines: dict[str, str],
    policy: Any,
    value: Any,
    figures: dict[str, Any],
    notes: Sequence[str],
    criterion: str = "discounted",
) -> None:
    """Print what was asked, how it ended, what there is to say, and the first states."""
    out = console()
    helps = ", cooperative nature" if ball.nature == "cooperative" else ""
    region = f"{ball.size_words}, {ball.words}".removeprefix(", ") + helps
    what = worst(model, ball.nature, criterion)
    what = f"{what.split(' ', 1)[1]} under the mean kernel" if ball.certain else what
    mean = f"{float(model.initial @ value):.6g} {what}, mean over the start distribution"
    mean += f" ({model.start})" if model.start else ""
    out.print(
        grid(
            {
                "Problem": problem(model),
                "Ball": region,
                **lines,
                "Value": mean,
                **({"Notes": "\n".join(notes)} if notes else {}),
            }
        )
    )
    first_states(model.states, model.actions, policy, figures, model.pair_counts)


def outcome(solution: Solution) -> dict[str, str]:
    """How a run ended and what it took, in words."""
    work = f"{count(solution.n_iters, 'iteration')}, {solution.kernel_passes:.4g} kernel passes"
    return {
        "Status": f"{solution.status}: {solution.status.sentence}",
        "Gap": f"{solution.gap_in_words}, duality gap {solution.duality_gap:.2e}",
        "Work": f"{solution.seconds:.3g} s, {work}, {solution.settings['method']}",
    }


def limits(model: Model | Head, solution: Solution) -> dict[str, Any]:
    """The value of the policy and the side on which the optimum is bounded beyond it, by what they are called."""
    bound = ("at most", solution.upper) if model.maximise else ("at least", solution.lower)
    certain = solution.problem is not None and solution.problem[1].certain
    what = worst(model, solution.settings.get("nature"), solution.criterion).split()[int(certain) : 2]
    return {" ".join(what): solution.value, f"optimum {bound[0]}": bound[1]}


def first_states(states: Any, actions: Any, policy: Any, figures: dict[str, Any], seen: Any = None) -> None:
    """Print the policy and some figures of the first states, and on how many transitions actions rest if that is known, (S, A)."""
    from drmdp.solution import choice
    from drmdp.solution.rows import rows_played

    out = console()
    table = columns(["state", "action"], [*([] if seen is None else ["rows"]), *figures])
    for s in range(min(len(states), ROWS)):
        rests = [] if seen is None else [rows_played(policy[s], seen[s])]
        table.add_row(str(states[s]), choice(policy[s], actions), *rests, *(f"{x[s]:.6g}" for x in figures.values()))
    out.print(table)
    if len(states) > ROWS:
        out.print(f"… {len(states) - ROWS:,} more")
