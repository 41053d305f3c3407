"""Shared options, exit codes, and checks of the files that a command writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from drmdp.cli import option_groups as groups
from drmdp.cli.option_groups import About, GroupedCommand, choice, flag, one_of, option, options
from drmdp.cli.screen import say
from drmdp.errors import InputError
from drmdp.ui import progress

Files = Mapping[str, Sequence[Path]]
FAULT, BAD_INPUT, LIMIT, WARNED, INTERRUPTED = 1, 2, 3, 4, 130
CRITERIA = ("discounted", "total", "average")


def asked_back(context: Any, option: Any, value: float | None) -> float | None:
    """Say what a low discount means; a rate of interest may be meant."""
    from drmdp.core.validation import low_discount

    if value is not None and (question := low_discount(value)) is not None:
        say(f"drmdp: note: {question}", err=True)
    return value


OPTIONS = options(
    groups.PROBLEM,
    discount=groups.number("For files that hold none (.csv, .tra, .umb).", callback=asked_back),
    initial="Where to start, for averages: a state, or uniform; as the model says by default.",
    criterion=option(
        "What is optimised: total, until a terminal state, where the discount is 1, else "
        "discounted, unless this says average.",
        type=choice(*CRITERIA),
    ),
)
"""What commands share."""
SET_OPTIONS = options(
    groups.SET,
    kind=option(
        "wasserstein, a ball around the N kernels; kl, burg, chi2 or tv, a divergence; "
        "reweight-kl, -burg, -chi2, -tv, -cvar or -any, other weights for the kernels; "
        "intervals; or counts, what a log suggests.",
        "--set",
        type=groups.Registered("drmdp.sets.registry:MAKERS", last="counts"),
        metavar="SET",
        default="wasserstein",
    ),
    radius=groups.number(
        "Radius of the set, at every state; for intervals the margin around the envelope of "
        "the kernels, or none for the bounds in a .tra or .umb file.",
        "--radius",
        "--margin",
    ),
    metric=option(
        "Metric of a Wasserstein ball; l2 by default.", type=choice("l1", "l2", "linf", "transport")
    ),
    order="Order of the ball, from 1 on, or inf; by default the metric's: l1 1, l2 2, linf inf.",
    ground="For --metric transport: costs between states, a .npy file (S, S) or a sparse .npz "
    "matrix; line:FILE or grid:FILE of positions.",
    around=option(
        "What kl, burg, chi2 and tv are measured from: the mean kernel, or each kernel.",
        type=choice("mean", "kernels"),
    ),
    rectangular=option(
        "Whether the actions of a state share a budget, s, or each has its own, sa; s by default.",
        type=choice("s", "sa"),
    ),
    support=option(
        "Where mass may move: observed next states, the default; those of the state under any "
        "action; or all. Not for every set.",
        type=choice("observed", "state", "all"),
    ),
    level=groups.number(
        "For --set reweight-cvar: share of the worst kernels; for --set counts: how sure to be, "
        "0.95 by default."
    ),
    lower="For --set intervals: .npy file of the smallest probabilities, (S, A, S); else an "
    "envelope.",
    upper="For --set intervals: the same for the largest probabilities.",
    nature=one_of(
        "Who plays nature: an adversary, for the worst case, or a friend, for the best.",
        ("adversarial", "cooperative"),
    ),
)
ACCURACY_OPTIONS = options(
    groups.ACCURACY,
    rtol=option("Largest certified gap, relative.", default=1e-6),
    tol=groups.number("The same, absolute, in the unit of the costs; --rtol is then ignored."),
    max_iters=groups.integer("Stop after so many iterations."),
    max_seconds=groups.number("Stop after so many seconds, to within a sweep."),
    threads=groups.integer(
        "Threads; DRMDP_THREADS in the environment, or one per core, by default."
    ),
)
SAVED = "Save the result here (.npz), its table (.csv, .xlsx, .parquet) or its document (.json)"
OUTPUT_OPTIONS = options(
    groups.OUTPUT,
    out=f"{SAVED}.",
    as_json=flag("Print one JSON document and nothing else.", "--json"),
    proof="Write here what `drmdp verify` needs to check the bounds.",
    keep_formulas=flag("Write names such as =1+1 to .csv too, which spreadsheets run as formulas."),
    separator="What separates its cells: ';', tab …; a comma by default, ';' with --decimal ,.",
    decimal=option("The point of numbers in a .csv table; '.' by default.", type=choice(".", ",")),
    progress=option(
        "Say on standard error what takes more than a second, or do not.",
        "--progress/--no-progress",
        default=None,
        expose_value=False,
        callback=lambda context, option, wanted: progress.choose(wanted),
    ),
)
OPTIONS |= SET_OPTIONS | ACCURACY_OPTIONS | OUTPUT_OPTIONS
REGION = ("initial", *SET_OPTIONS)
"""Options that say what the set is, and where models start."""
BALL = ("discount", *REGION, "rtol", "tol", "as_json", "progress")
"""Options of every command with a set."""
LIMITS = ("max_seconds", "threads")
TABLE = ("keep_formulas", "separator", "decimal")
"""How tables are written."""
MODEL = click.Argument(["model_path"], metavar="MODEL")
MODELS = click.Argument(["model_paths"], metavar="MODEL...", nargs=-1, required=True)
POLICY = click.Argument(["policy_path"], metavar="POLICY")


def command(
    params: Sequence[click.Parameter | str], **own: About
) -> Callable[[Callable[[Any], int | None]], GroupedCommand]:
    """A command of arguments, options by their names, and options of its `own`, or shared ones with
    another text.

    The function is called with one object that has a field for each of them.
    """
    shared = [OPTIONS[each] if isinstance(each, str) else each for each in params]
    for name, about in own.items():
        told = isinstance(about, str) and name in OPTIONS
        shared.append(OPTIONS[name].told(str(about)) if told else groups.made(name, about))

    def decorate(function: Callable[[Any], int | None]) -> GroupedCommand:
        def callback(**given: Any) -> int | None:
            return function(SimpleNamespace(**given))

        name, text = function.__name__, function.__doc__
        return GroupedCommand(name, callback=callback, params=shared, help=text)

    return decorate


WORKERS = ("threads", "cluster", "workers", "parts", "address", "checkpoint")
UNKEPT = ("as_json", "out", "start", "proof", *WORKERS)
"""Options that `drmdp redo` does not repeat."""


def is_given(value: Any) -> bool:
    """Whether an option has a value; 0 is one."""
    return value is not None and value is not False and value != ()


def remember(result: Any) -> None:
    """Let a result know the command that made it; of absolute paths their names alone."""
    context, options = click.get_current_context(), {}
    for param in context.command.params:
        name, value = str(param.name), context.params.get(str(param.name))
        is_kept = isinstance(param, click.Option) and name not in UNKEPT
        if is_kept and is_given(value) and value != param.default:
            if isinstance(value, str) and os.path.isabs(value):
                value = Path(value).name
            options[name] = value
    result.settings["command"] = {"verb": context.info_name, "options": options}


def refuse(asked: Any, names: Iterable[str], why: str) -> None:
    """Refuse options that were given where they do not apply."""
    for name in names:
        if is_given(getattr(asked, name)):
            raise InputError(f"--{name.replace('_', '-')}: {why}")


def exit_code(result: Any, is_reached: bool | None = None) -> int:
    """0 if what was asked for, or what double precision allows, was reached, 130 interrupted, 3
    anything else; a result says itself what was reached.
    """
    from drmdp.solution import reached

    is_reached = reached(result) if is_reached is None else is_reached
    return INTERRUPTED if result.status == "interrupted" else 0 if is_reached else LIMIT


def check_outputs(outputs: Files, inputs: Files) -> None:
    """Refuse an output over an input, or over another output, before any work is done; every
    command asks this.

    Files are given by the option or argument that names them, those beside a model included
    (`formats.files_of`). Symbolic and hard links are seen through.
    """
    taken: list[tuple[str, Path]] = [
        (f"{name}, which is read", path) for name, paths in inputs.items() for path in paths
    ]
    for name, paths in outputs.items():
        for path in paths:
            for role, other in taken:
                if _same(path, other):
                    what = f"would overwrite {other} ({role})"
                    raise InputError(f"{name}: {what}; choose another name")
        taken += [(f"{name}, which is written too", path) for path in paths]


def _same(first: Path, other: Path) -> bool:
    try:
        return os.path.samefile(first, other)
    except OSError:  # one of them is not there
        return os.path.realpath(first) == os.path.realpath(other)


def files_of(asked: Any, *names: str) -> dict[str, list[Path]]:
    """Files of options by their names."""
    return {f"--{name}": paths(getattr(asked, name)) for name in names}


def paths(*given: str | None) -> list[Path]:
    """Paths of options that were given."""
    return [Path(path) for path in given if path is not None]
