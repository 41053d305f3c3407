"""What the commands share: options, exit codes, policies from files, tables and progress."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli import screen as cli_screen
from drmdp.cli.screen import say
from drmdp.core import progress
from drmdp.core.archives import read_json
from drmdp.core.text import count, discount
from drmdp.errors import InputError, Notice, shown

if TYPE_CHECKING:
    from rich.console import Console

    from drmdp.model import Model
    from drmdp.sets import Wasserstein
    from drmdp.solution import Status

Files = Mapping[str, Sequence[Path]]
FAULT, BAD_INPUT, LIMIT, INTERRUPTED = 1, 2, 3, 130
WIDTH = 80
PLAIN = {"box": None, "pad_edge": False, "collapse_padding": True, "show_header": False, "show_edge": False}
"""A table without lines or header."""
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
    "metric": click.option("--metric", default="l2", show_default=True, help="Metric of the ball: l1, l2 or linf."),
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


def ball_of(radius: float, metric: str, order: str | None, support: str) -> Wasserstein:
    """The ball of the options, which may be typed in capitals."""
    from drmdp.sets.wasserstein import Wasserstein, parse_order

    own = None if order is None else parse_order(order)
    return Wasserstein(radius, metric.lower(), own, support.lower())  # type: ignore[arg-type]


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


def read_policy(path: str, model: Model) -> Any:
    """Read an (S, A) policy from a saved solution or a JSON file."""
    from drmdp.solution import Solution

    suffix = Path(path).suffix.lower()
    if suffix not in (".npz", ".json"):
        raise InputError(f"{path}: expected a saved solution (.npz) or a .json file")
    try:
        if suffix == ".json":
            return model.policy(_policy_mapping(read_json(path), model))
        solution = Solution.load(path)
        for kind in ("states", "actions"):
            if tuple(getattr(solution, kind)) != tuple(getattr(model, kind)):
                raise InputError(f"it is for other {kind} than the model's")
        return model.policy(solution.policy)
    except InputError as error:
        reason = str(error)
        raise InputError(reason if reason.startswith(path) else f"{path}: {reason}") from None


def _policy_mapping(document: Any, model: Model) -> dict[Any, dict[Any, float]]:
    """Give names their types back: JSON keys are strings, names may be integers."""
    if not isinstance(document, dict):
        raise InputError(f"expected an object that maps states to actions, got {type(document).__name__}")
    states, actions = (
        {**{str(name): name for name in names}, **{name: name for name in names}}
        for names in (model.states, model.actions)
    )
    policy = {}
    for state, choice in document.items():
        row = choice if isinstance(choice, dict) else {choice: 1.0} if type(choice) in (str, int) else None
        if row is None or any(type(p) not in (int, float) or abs(p) > 1 for p in row.values()):
            raise InputError(
                f"state {shown(state)}: expected an action, or probabilities of actions, got {shown(choice)}"
            )
        policy[states.get(state, state)] = {actions.get(action, action): float(p) for action, p in row.items()}
    return policy


# ---------------------------------------------------------------------- printing


def print_json(document: dict[str, Any]) -> None:
    """One document on standard output."""
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


def named(model: Model, ball: Wasserstein) -> dict[str, Any]:
    """Names and fingerprint of a model, and what there is to say of it and of the ball, for a JSON document."""
    names = {name: list(getattr(model, name)) for name in ("states", "actions", "kernel_names")}
    return {**names, "notes": said(model, ball), "fingerprint": model.fingerprint}


def said(model: Model, ball: Wasserstein) -> list[str]:
    """Notes of a model, and what there is to say of the ball around it."""
    return [*model.notes, *ball.remarks(model)]


def sizes(model: Model) -> dict[str, Any]:
    """Sizes, names and notes of a model that was written, for a JSON document; names of kernels only, states may be many."""
    found = {name: getattr(model, name) for name in ("n_states", "n_actions", "n_kernels", "discount")}
    found |= {"sparse": model.is_sparse, "kernel_names": list(model.kernel_names), "notes": list(model.notes)}
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


def problem(model: Model) -> str:
    """Sizes in words."""
    sizes = " × ".join(count(getattr(model, f"n_{noun}s"), noun) for noun in ("state", "action", "kernel"))
    return f"{sizes}, {'rewards' if model.maximise else 'costs'}, discount {discount(model.discount)}"
