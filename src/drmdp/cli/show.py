"""Printed results: tables, summaries, JSON and notices."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import screen as cli_screen
from drmdp.cli.screen import say
from drmdp.errors import Notice
from drmdp.ui.text import count, digits, discount, measured

if TYPE_CHECKING:
    from rich.console import Console

    from drmdp.model import Model
    from drmdp.model.state_ranges import Head
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import HorizonSolution, Solution


WIDTH = 80
WORK = ("seconds", "setup_seconds", "n_iters", "kernel_passes")
NUMBERS = ("status", "gap", "duality_gap", "scale", *WORK)
ARRAYS = ("value", "lower", "upper", "policy")
"""What JSON documents hold of a solution."""
ROWS = 12
"""States shown in a table."""
SOON = 1_000_000
"""Of models with no more probabilities the value under the mean kernel is told."""
SOLVING = ("solving", "Ctrl-C stops early and keeps the best result so far.")


def fields(source: Any, *names: str) -> dict[str, Any]:
    """Attributes by their names."""
    return {name: getattr(source, name) for name in names}


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


def named(model: Model, ambiguity: AmbiguitySet) -> dict[str, Any]:
    """Names and fingerprint of a model, and what there is to say of it and of the ball, for a JSON
    document.
    """
    names = {name: list(getattr(model, name)) for name in ("states", "actions", "kernel_names")}
    rows = {} if model.pair_counts is None else {"rows": model.pair_counts}
    return {**names, **rows, "notes": ambiguity.notes(model), "fingerprint": model.fingerprint}


def sizes(model: Any) -> dict[str, Any]:
    """Sizes, names and notes of a model, in memory or in its files, for a JSON document; names of
    kernels only, states may be many.
    """
    head = model.head
    lists = {"kernel_names": list(head.kernel_names), "notes": list(head.notes)}
    numbers = fields(head, "n_states", "n_actions", "n_kernels", "discount")
    return {**numbers, "sparse": head.is_sparse, **lists, "fingerprint": model.fingerprint}


def print_written(model: Any, path: str, as_json: bool) -> None:
    """Print what a model is, and where it was written."""
    if as_json:
        print_json({"path": path, **sizes(model)})
    else:
        say(f"{model!r}\nwritten to {path}")


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


def print_lines(lines: dict[str, str], notes: Sequence[str] = ()) -> None:
    """Print names and texts, notes below."""
    plain = dict.fromkeys(("pad_edge", "show_header", "show_edge"), False)
    table = cli_screen.table(box=None, padding=(0, 2), collapse_padding=True, **plain)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in (lines | ({"Notes": "\n".join(notes)} if notes else {})).items():
        table.add_row(name, text)
    console().print(table)


def print_notes(notes: Sequence[str]) -> None:
    """Print notes, if there are any."""
    if notes:
        print_lines({}, notes)


def print_table(
    left: list[str],
    right: list[str],
    rows: Iterable[Sequence[Any]],
    total: int = 0,
    last: str = "",
    widest: int | None = None,
) -> None:
    """Print columns of names, of numbers and a `last` one of text, at most so wide; how many more
    of `total` rows there are.
    """
    from rich import box

    out, n = console(), 0
    table = cli_screen.table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in left:
        table.add_column(name, overflow="fold", max_width=24 if len(left) > 2 else 36)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    if last:
        table.add_column(last, overflow="fold", max_width=widest)
    for n, row in enumerate(rows, 1):
        table.add_row(*map(str, row))
    out.print(table)
    if total > n:
        out.print(f"… {total - n:,} more")


def problem(model: Model | Head) -> str:
    """Sizes in words."""
    nouns = ("state", "action", "kernel")
    sizes = " × ".join(count(getattr(model, f"n_{noun}s"), noun) for noun in nouns)
    kind = "rewards" if model.maximise else "costs"
    return f"{sizes}, {kind}, discount {discount(model.discount)}"


def worst(model: Model | Head, nature: Any = None, criterion: str = "discounted") -> str:
    """The name of a value, in words."""
    noun, timed = "reward" if model.maximise else "cost", getattr(model, "sojourn", None)
    what = measured(criterion, noun, timed is not None)
    return f"{'best' if nature == 'cooperative' else 'worst'}-case {what}"


def print_summary(
    model: Model,
    ambiguity: AmbiguitySet,
    lines: dict[str, str],
    result: Any,
    figures: dict[str, Any],
    notes: Sequence[str],
    policy: Any = None,
) -> None:
    """Print what was asked, how it ended, the first states, and what there is to say; `policy` is
    what was judged where the result holds none.
    """
    policy = result.policy if policy is None else policy
    what = worst(model, ambiguity.nature, result.criterion)
    what = f"{what.split(' ', 1)[1]} under the mean kernel" if ambiguity.certain else what
    figure = digits(float(model.initial @ result.value), result.criterion)
    mean = f"{figure} {what}, mean over the start distribution"
    mean += f" ({model.start})" if model.start else ""
    about = {
        "Problem": problem(model),
        "Set": region(model, ambiguity, policy),
        **lines,
        "Value": mean,
    }
    print_lines(about)
    if result.criterion == "reach":
        figures = {name: values.round(12) + 0.0 for name, values in figures.items()}
    first_states(model.states, model.actions, policy, figures, model.pair_counts)
    print_notes(notes)


def region(model: Model, ambiguity: AmbiguitySet, policy: Any) -> str:
    """A set in words, and the radii of what a policy (S, A) plays."""
    from drmdp.solution.results import SELDOM

    told = ambiguity.about(model, policy >= SELDOM)
    helps = ", cooperative nature" if ambiguity.nature == "cooperative" else ""
    return f"{told.size_words}, {ambiguity.words}".removeprefix(", ") + helps


def unconstrained(model: Model, ambiguity: AmbiguitySet) -> list[str]:
    """A note where a smaller radius does the same, if that is soon known."""
    one = (
        ambiguity.sized and ambiguity.size_name == "radius" and isinstance(ambiguity.radius, float)
    )
    if not one or model.n_probabilities > SOON:
        return []
    limit = float(ambiguity.saturation(model).max())
    said = f"nature is unconstrained from radius {limit:.4g} on: a larger one changes nothing"
    return [said] if ambiguity.radius > limit * (1 + 1e-9) else []


def besides(solution: Solution) -> dict[str, str]:
    """What the policy does under the mean kernel, where that is soon known, and how long until it
    ends.
    """
    from drmdp import policies
    from drmdp.core.vectors import dot
    from drmdp.criteria import posed

    model, ambiguity = posed(solution.problem[0], solution.criterion), solution.problem[1]
    lines, mean = {}, "mean over the start distribution"
    if not ambiguity.certain and model.n_probabilities <= SOON:
        value = dot(model.initial, policies.under(model, solution.policy, [None])[0])
        what = worst(model, None, solution.criterion).split(" ", 1)[1]
        lines["Mean"] = f"{digits(value)} {what} under the mean kernel, {mean}"
    if solution.time is not None and math.isfinite(steps := dot(model.initial, solution.time)):
        unit = "steps" if model.sojourn is None else "units of time"
        said = "until the end, on average, whichever probabilities of the set are the true ones"
        lines["Time"] = f"at most about {steps:.4g} {unit} {said}"
    return lines


def answered(result: Solution | HorizonSolution) -> dict[str, str]:
    """What a probability is of, in words; nothing of costs."""
    return {"Answer": result.settings["answer"]} if "answer" in result.settings else {}


def outcome(solution: Solution) -> dict[str, str]:
    """Status, gap and work of a run, in words."""
    work = f"{count(solution.n_iters, 'iteration')}, {solution.kernel_passes:.4g} kernel passes"
    return {
        "Status": f"{solution.status}: {solution.status_in_words}",
        "Gap": solution.gaps_in_words,
        "Work": f"{solution.seconds:.3g} s, {work}, {solution.settings['method']}",
    }


def limits(model: Model | Head, solution: Solution) -> dict[str, Any]:
    """The value of the policy and the side on which the optimum is bounded beyond it, by what they
    are called.
    """
    bound = ("at most", solution.upper) if model.maximise else ("at least", solution.lower)
    certain = solution.problem is not None and solution.problem[1].certain
    what = worst(model, solution.settings.get("nature"), solution.criterion).split()
    return {" ".join(what[int(certain) : 2]): solution.value, f"optimum {bound[0]}": bound[1]}


def first_states(
    states: Any, actions: Any, policy: Any, figures: dict[str, Any], observed: Any = None
) -> None:
    """Print the policy and some figures of the first states, and on how many transitions actions
    rest if that is known, (S, A).
    """
    from drmdp.solution import choice
    from drmdp.solution.rows import rows_played

    rows = []
    for s in range(min(len(states), ROWS)):
        rests = [] if observed is None else [rows_played(policy[s], observed[s])]
        values = (f"{x[s]:.6g}" for x in figures.values())
        rows.append((states[s], choice(policy[s], actions), *rests, *values))
    numbers = [*([] if observed is None else ["rows"]), *figures]
    print_table(["state", "action"], numbers, rows, len(states))
