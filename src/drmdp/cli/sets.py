"""The ambiguity set of the options, and where models start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from drmdp.cli.options import REGION
from drmdp.errors import InputError
from drmdp.io.archives import Field, read_array
from drmdp.io.files import naming
from drmdp.model import Model, changed
from drmdp.sets import AmbiguitySet
from drmdp.ui.text import START

COUNTS = "counts"
"""The set that `drmdp.Divergence.from_counts` makes of a model that has counts."""
SIZES = {"reweight-cvar": "level", "reweight-any": ""}
"""The option that says how large a set is, where that is not the radius."""


def set_of(asked: Any, sized: bool = True) -> SetOptions:
    """The set that was asked for."""
    return SetOptions(sized=sized, **region_of(vars(asked)))


def region_of(asked: dict[str, Any]) -> dict[str, Any]:
    """The options that say what the set is, and where models start."""
    return {name: value for name, value in asked.items() if name in REGION}


class SetOptions:
    """The set of the options, checked as far as it can be before a model is read."""

    def __init__(
        self, kind: str, nature: str, sized: bool = True, initial: str | None = None, **said: Any
    ) -> None:
        """`given` holds what options may say of a set, None where they do not; not `sized`: the
        size comes later.

        `initial` is where models that are read start, if not as they say.
        """
        from drmdp.sets.registry import MAKERS, load
        from drmdp.sets.wasserstein import parse_order

        self.name, self.nature, self.initial = kind.lower(), nature.lower(), initial
        if self.name not in (*MAKERS, COUNTS):
            raise InputError(f"--set: expected one of {', '.join((*MAKERS, COUNTS))}, got {kind!r}")
        self._new = load(MAKERS.get(self.name, MAKERS["burg"]))
        size = SIZES.get(self.name, "radius")
        known = {*self._new.__dataclass_fields__} - {"kind", "margin", "radius", "level"} | {size}
        if self.name == COUNTS:
            known = {"level"}
            if not sized:
                cure = "take burg to go through radii"
                raise InputError(f"--set: {COUNTS} says how large the set is; {cure}")
        self._given = {key: value for key, value in said.items() if value is not None}
        for key, value in self._given.items():
            if key not in known:
                raise InputError(f"--{key}: the set {self.name} has none")
            if isinstance(value, str) and key not in ("lower", "upper", "ground"):
                self._given[key] = value.lower()
        if "order" in self._given:
            self._given["order"] = parse_order(self._given["order"])
        # its bounds may be in the file of the model
        self._stored = self.name == "intervals" and sized and not self._given
        if "ground" in self._given:
            self._given["ground"] = _ground(self._given["ground"])
        self._made: AmbiguitySet | None = None
        if self.name in ("intervals", COUNTS):
            for bound, other in (("lower", "upper"), ("upper", "lower")):
                if bound in self._given and other not in self._given:
                    raise InputError(f"--{bound}: there is no --{other}")
            if {"lower", "radius"} <= self._given.keys():
                raise InputError("--radius: bounds from files have no margin")
            return
        if size and not sized:
            self._given[size] = 0.0
        if size and size not in self._given:
            cure = "--set counts needs none, where the model has counts"
            cured = cure if size == "radius" else None
            raise click.MissingParameter(cured, param_hint=f"'--{size}'", param_type="option")
        if "kind" in self._new.__dataclass_fields__:
            self._given["kind"] = self.name.removeprefix("reweight-")
        self._made = self._facing(self._new(**self._given))

    def alone(self) -> AmbiguitySet:
        """The set without a model, for one that nobody reads whole."""
        if self._made is None and "lower" not in self._given:
            cure = "take --set intervals with --lower and --upper"
            raise InputError(f"--set: {self.name} needs a model that is read whole; {cure}")
        return self.around(None)

    def read(
        self, path: str, discount: float | None, rewards: bool = True
    ) -> tuple[Model, AmbiguitySet]:
        """Read a model, and give the set around it; intervals without a size are those of the file,
        if its format has some.
        """
        from drmdp import formats

        if self._stored and formats.holds_intervals(path):
            model, intervals = formats.read_intervals(path, discount=discount, rewards=rewards)
            return starting(model, self.initial), intervals.facing(self.nature)
        model = starting(formats.read(path, discount=discount, rewards=rewards), self.initial)
        return model, self.around(model)

    def around(self, model: Model | None) -> AmbiguitySet:
        """The set around a model."""
        if self._made is not None:
            return self._made
        if self.name == COUNTS:
            return self._facing(self._new.from_counts(model, **self._given))
        files = [self._given[name] for name in ("lower", "upper") if name in self._given]
        bounds = [numbers_of(path, 3) for path in files]
        margin = self._given.get("radius", 0.0)
        return self._facing(self._new(*bounds) if bounds else self._new.of(model, margin))

    def _facing(self, ambiguity: AmbiguitySet) -> AmbiguitySet:
        return ambiguity.facing(self.nature)


def numbers_of(path: str, *ndims: int) -> Any:
    """The numbers in an .npy file; errors name it."""
    with naming(path):
        return read_array(path, Field("biuf", ndims))


def starting(model: Model, initial: str | None) -> Model:
    """A model with another start; the note about the start is replaced too."""
    from drmdp.estimation.pipeline import explicit_start

    if initial is None:
        return model
    mass, said = explicit_start(initial, model.states, model.terminal, typed=True)
    notes = (*(note for note in model.notes if not note.startswith(START)), f"{START}{said}")
    return changed(model, initial=mass, start=said, notes=notes)


def _ground(text: str) -> Any:
    """Costs between states, or places of states, from a file."""
    from scipy import sparse

    word, _, path = text.partition(":")
    placed = word in ("line", "grid")
    path = path if placed else text
    try:
        if Path(path).suffix == ".npz":
            return sparse.load_npz(path)
        positions = read_array(path, Field("biuf", (1,) if word == "line" else (2,)))
    except FileNotFoundError:
        raise InputError(f"--ground: there is no file {path}") from None
    except (InputError, ValueError, OSError, KeyError) as error:
        raise InputError(f"--ground: {path}: {error}") from None
    return (word, positions) if placed else positions
