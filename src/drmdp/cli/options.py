"""What the commands share: options, exit codes, and which files they may write."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.screen import say
from drmdp.core import progress
from drmdp.core.text import START
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.sets import AmbiguitySet
    from drmdp.solution import Status

Files = Mapping[str, Sequence[Path]]
FAULT, BAD_INPUT, LIMIT, WARNED, INTERRUPTED = 1, 2, 3, 4, 130
RADIUS = click.option(
    "--radius",
    "--margin",
    "radius",
    type=float,
    help="Radius of the set, at every state; for intervals the margin around the envelope of the kernels, or none for the bounds in a .tra or .umb file.",
)
THREADS = click.option(
    "--threads", type=int, help="Threads; DRMDP_THREADS in the environment, or one per core, by default."
)
KEEP_FORMULAS = click.option(
    "--keep-formulas", is_flag=True, help="Write names such as =1+1 to .csv too, which spreadsheets run as formulas."
)
MAX_SECONDS = click.option("--max-seconds", type=float, help="Stop after so many seconds, to within a sweep.")
CRITERION = click.option(
    "--criterion",
    type=click.Choice(["discounted", "total", "average"]),
    help="What is optimised: total, until a terminal state, where the discount is 1, else discounted, unless this says average.",
)
PROGRESS = click.option(
    "--progress/--no-progress",
    default=None,
    expose_value=False,
    callback=lambda context, option, wanted: progress.choose(wanted),
    help="Say on standard error what takes more than a second, or do not.",
)


def asked_back(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Say what a low discount means; a rate of interest may be meant."""
    from drmdp.core.validation import low_discount

    if value is not None and (question := low_discount(value)) is not None:
        say(f"drmdp: note: {question}", err=True)
    return value


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
    "nature": click.option(
        "--nature", default="adversarial", show_default=True, help="Whether nature is adversarial or cooperative."
    ),
    "upper": click.option("--upper", help="For --set intervals: the same for the largest probabilities."),
    "lower": click.option(
        "--lower", help="For --set intervals: .npy file of the smallest probabilities, (S, A, S); else an envelope."
    ),
    "level": click.option(
        "--level",
        type=float,
        help="For --set reweight-cvar: share of the worst kernels; for --set counts: how sure to be, 0.95 by default.",
    ),
    "support": click.option(
        "--support",
        help="Where mass may move: observed next states, the default; state, those seen under any action; or all. Not for every set.",
    ),
    "order": click.option(
        "--order", help="Order of the ball, from 1 on, or inf; by default the metric's: l1 1, l2 2, linf inf."
    ),
    "rectangular": click.option(
        "--rectangular", help="Whether the actions of a state share a budget, s, or each has its own, sa; s by default."
    ),
    "around": click.option(
        "--around", help="What kl, burg, chi2 and tv are measured from: the mean kernel, mean, or each kernel, kernels."
    ),
    "ground": click.option(
        "--ground",
        help="For --metric transport: costs between states, a .npy file (S, S) or a sparse .npz matrix; line:FILE or grid:FILE of positions.",
    ),
    "metric": click.option("--metric", help="Metric of a Wasserstein ball: l1, l2, linf or transport; l2 by default."),
    "set": click.option(
        "--set",
        "kind",
        default="wasserstein",
        show_default=True,
        help="What is feared: wasserstein; kl, burg, chi2, tv; reweight-kl, …-burg, …-chi2, …-tv, …-cvar, …-any; intervals; counts, what a log suggests.",
    ),
    "initial": click.option(
        "--initial", help="Where to start, for averages: a state, or uniform; as the model says by default."
    ),
    "discount": click.option(
        "--discount", type=float, callback=asked_back, help="For files that hold none (.csv, .tra, .umb)."
    ),
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


COUNTS = "counts"
"""The set that `drmdp.Divergence.from_counts` makes of a model that has counts."""
SIZES = {"reweight-cvar": "level", "reweight-any": ""}
"""The option that says how large a set is, where that is not the radius."""


class Asked:
    """The set of the options, checked as far as it can be before a model is read."""

    def __init__(self, kind: str, nature: str, sized: bool = True, initial: str | None = None, **given: Any) -> None:
        """`given` holds what options may say of a set, None where they do not; not `sized`: the size comes later.

        `initial` is where models that are read start, if not as they say.
        """
        from drmdp.sets.registry import MAKERS, load
        from drmdp.sets.wasserstein import parse_order

        self.name, self.nature, self.initial = kind.lower(), nature.lower(), initial
        if self.name not in (*MAKERS, COUNTS):
            raise InputError(f"--set: expected one of {', '.join((*MAKERS, COUNTS))}, got {kind!r}")
        self._new, size = load(MAKERS.get(self.name, MAKERS["burg"])), SIZES.get(self.name, "radius")
        known = {*self._new.__dataclass_fields__, size} - ({"kind", "margin", "radius", "level"} - {size})
        if self.name == COUNTS:
            known = {"level"}
            if not sized:
                raise InputError(f"--set: {COUNTS} says how large the set is; take burg to go through radii")
        self._given = {key: value for key, value in given.items() if value is not None}
        for key, value in self._given.items():
            if key not in known:
                raise InputError(f"--{key}: the set {self.name} has none")
            if isinstance(value, str) and key not in ("lower", "upper", "ground"):
                self._given[key] = value.lower()
        if "order" in self._given:
            self._given["order"] = parse_order(self._given["order"])
        self._stored = (
            self.name == "intervals" and sized and not self._given
        )  # its bounds may be in the file of the model
        if "ground" in self._given:
            self._given["ground"] = _ground(self._given["ground"])
        if self.name in ("intervals", COUNTS):
            self._check_bounds()
            self._made = None
            return
        if size and not sized:
            self._given[size] = 0.0
        if size and size not in self._given:
            raise click.MissingParameter(param_hint=f"'--{size}'", param_type="option")
        self._made = self._made_of_options()

    def _check_bounds(self) -> None:
        for one, other in (("lower", "upper"), ("upper", "lower")):
            if one in self._given and other not in self._given:
                raise InputError(f"--{one}: there is no --{other}")
        if {"lower", "radius"} <= self._given.keys():
            raise InputError("--radius: bounds from files have no margin")

    def _made_of_options(self) -> AmbiguitySet:
        kind = {"kind": self.name.removeprefix("reweight-")} if "kind" in self._new.__dataclass_fields__ else {}
        found: AmbiguitySet = self._new(**self._given, **kind)
        return found.facing(self.nature)

    def alone(self) -> AmbiguitySet:
        """The set without a model, for one that nobody reads whole."""
        if self._made is None and "lower" not in self._given:
            cure = "take --set intervals with --lower and --upper"
            raise InputError(f"--set: {self.name} needs a model that is read whole; {cure}")
        return self.around(None)

    def read(self, path: str, discount: float | None) -> tuple[Model, AmbiguitySet]:
        """Read a model, and give the set around it; intervals without a size are those of the file, if its format has some."""
        from drmdp import formats

        if self._stored and formats.holds_intervals(path):
            model, found = formats.read_intervals(path, discount=discount)
            return starting(model, self.initial), found.facing(self.nature)
        model = starting(formats.read(path, discount=discount), self.initial)
        return model, self.around(model)

    def around(self, model: Model | None) -> AmbiguitySet:
        """The set around a model."""
        if self._made is not None:
            return self._made
        if self.name == COUNTS:
            suggested: AmbiguitySet = self._new.from_counts(model, **self._given)
            return suggested.facing(self.nature)
        from drmdp.core.archives import Field, read_array

        bounds = []
        for name in ("lower", "upper"):
            if name in self._given:
                try:
                    bounds.append(read_array(self._given[name], Field("biuf", (3,))))
                except InputError as error:
                    raise InputError(f"{self._given[name]}: {error}") from None
        found: AmbiguitySet = self._new(*bounds) if bounds else self._new.of(model, self._given.get("radius", 0.0))
        return found.facing(self.nature)


def starting(model: Model, initial: str | None) -> Model:
    """The same model with another start; the note about the start is replaced too."""
    from drmdp.estimate.start import stated
    from drmdp.model import changed

    if initial is None:
        return model
    mass, said = stated(initial, model.states, model.terminal, typed=True)
    notes = (*(note for note in model.notes if not note.startswith(START)), f"{START}{said}")
    return changed(model, initial=mass, start=said, notes=notes)


def _ground(text: str) -> Any:
    """Costs between states, or places of states, from a file."""
    from scipy import sparse

    from drmdp.core.archives import Field, read_array

    word, _, path = text.partition(":")
    placed = word in ("line", "grid")
    path = path if placed else text
    try:
        if Path(path).suffix == ".npz":
            return sparse.load_npz(path)
        found = read_array(path, Field("biuf", (1,) if word == "line" else (2,)))
    except FileNotFoundError:
        raise InputError(f"--ground: there is no file {path}") from None
    except (InputError, ValueError, OSError, KeyError) as error:
        raise InputError(f"--ground: {path}: {error}") from None
    return (word, found) if placed else found


UNKEPT = ("as_json", "out", "start", "proof", "threads", "cluster", "workers", "parts", "address", "checkpoint")
"""Options that `drmdp redo` does not repeat."""


def remember(result: Any) -> None:
    """Let a result know the command that made it; of absolute paths their names alone."""
    context, options = click.get_current_context(), {}
    for param in context.command.params:
        name, value = str(param.name), context.params.get(str(param.name))
        if value not in (None, (), False, param.default) and isinstance(param, click.Option) and name not in UNKEPT:
            options[name] = Path(value).name if isinstance(value, str) and os.path.isabs(value) else value
    result.settings["command"] = {"verb": context.info_name, "options": options}


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
