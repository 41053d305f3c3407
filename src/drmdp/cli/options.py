"""What the commands share: options, exit codes, and which files they may write."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.core import progress
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import Status

Files = Mapping[str, Sequence[Path]]
FAULT, BAD_INPUT, LIMIT, INTERRUPTED = 1, 2, 3, 130
RADIUS = click.option("--radius", type=float, required=True, help="Radius of the ball, at every state.")
THREADS = click.option(
    "--threads", type=int, help="Threads; DRMDP_THREADS in the environment, or one per core, by default."
)
MAX_SECONDS = click.option("--max-seconds", type=float, help="Stop after so many seconds, to within a sweep.")
PROGRESS = click.option(
    "--progress/--no-progress",
    default=None,
    expose_value=False,
    callback=lambda context, option, wanted: progress.choose(wanted),
    help="Say on standard error what takes more than a second, or do not.",
)
BACKEND = click.option("--backend", help="How the robust Bellman operator is computed; chosen for you by default.")
OPTIONS = {
    "progress": PROGRESS,
    "json": click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."),
    "tol": click.option(
        "--tol", type=float, help="The same, absolute, in the unit of the costs; --rtol is then ignored."
    ),
    "rtol": click.option(
        "--rtol", type=float, default=1e-6, show_default=True, help="Largest certified gap, relative."
    ),
    "support": click.option(
        "--support", default="observed", show_default=True, help="Where mass may move: observed next states, or all."
    ),
    "order": click.option(
        "--order", help="Order of the ball: 1, 2 or inf; by default the metric's: l1 1, l2 2, linf inf."
    ),
    "rectangular": click.option(
        "--rectangular", help="Whether the actions of a state share a budget, s, or each has its own, sa; s by default."
    ),
    "around": click.option(
        "--around", help="What kl, burg, chi2 and tv are measured from: the mean kernel, mean, or each kernel, kernels."
    ),
    "metric": click.option("--metric", default="l2", show_default=True, help="Metric of the ball: l1, l2 or linf."),
    "set": click.option(
        "--set",
        "kind",
        default="wasserstein",
        show_default=True,
        help="What is feared: wasserstein, kl, burg, chi2 or tv.",
    ),
    "discount": click.option("--discount", type=float, help="For files that hold none (.csv, .tra)."),
}


def options(*names: str) -> Callable[[Any], Any]:
    """Some of them, in the order of the help."""

    def decorate(command: Any) -> Any:
        for name in names:
            command = OPTIONS[name](command)
        return command

    return decorate


def common(command: Any) -> Any:
    """Options that every command with a ball has, and progress."""
    return options(*OPTIONS)(command)


def ball_of(
    radius: float, metric: str, order: str | None, support: str, kind: str = "wasserstein", **others: str | None
) -> AmbiguitySet:
    """The set of the options, which may be typed in capitals; a set takes those options that it has, and others are refused if they were given."""
    from drmdp.sets.registry import MAKERS, load
    from drmdp.sets.wasserstein import parse_order

    name = kind.lower()
    if name not in MAKERS:
        raise InputError(f"--set: expected one of {', '.join(MAKERS)}, got {kind!r}")
    fields = load(MAKERS[name]).__dataclass_fields__
    given: dict[str, Any] = {key: text.lower() for key, text in others.items() if text is not None}
    if order is not None:
        given["order"] = parse_order(order)
    for key in given:
        if key not in fields:
            raise InputError(f"--{key}: the set {name} has none")
    asked = {"radius": radius, "metric": metric.lower(), "support": support.lower(), "kind": name, **given}
    found: AmbiguitySet = load(MAKERS[name])(**{key: value for key, value in asked.items() if key in fields})
    return found


def exit_code(status: Status, reached: bool) -> int:
    """0 if what was asked for, or what double precision allows, was reached, 130 interrupted, 3 anything else."""
    return INTERRUPTED if status == "interrupted" else 0 if reached else LIMIT


def check_outputs(outputs: Files, inputs: Files) -> None:
    """Refuse an output over an input, or over another output, before any work is done; every command asks this.

    Files are given by the option or argument that names them, those beside a model included (`formats.files_of`). Symbolic and hard links
    are seen through.
    """
    taken: list[tuple[str, Path]] = [
        (f"{name}, which is read", path) for name, paths in inputs.items() for path in paths
    ]
    for name, paths in outputs.items():
        for path in paths:
            for role, other in taken:
                if _same(path, other):
                    raise InputError(f"{name}: would overwrite {other} ({role}); choose another name")
        taken += [(f"{name}, which is written too", path) for path in paths]


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(other)


def paths(*given: str | None) -> list[Path]:
    """Paths of options that were given."""
    return [Path(path) for path in given if path is not None]
