"""Models of files and of other programs.

`read` and `write` go by suffix: ``.npz`` and ``.drmdp`` are ours, ``.csv`` is craam's, ``.tra`` PRISM's, ``.umb`` that of PRISM and Storm. `read_intervals` and
`write_intervals` take the last two with an interval for each probability. `from_quantecon`, `from_mdptoolbox` and `from_gymnasium` take over objects in
memory, the same with ``to_`` gives them back.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from drmdp._typing import BoolArray
from drmdp.core.files import check_path, naming
from drmdp.core.progress import stage
from drmdp.errors import InputError, Notice
from drmdp.formats import craam, directory, npz, prism, umb
from drmdp.formats._options import Options
from drmdp.formats._writer import Writer
from drmdp.formats.gymnasium import from_gymnasium, to_gymnasium
from drmdp.formats.mdptoolbox import from_mdptoolbox, to_mdptoolbox
from drmdp.formats.quantecon import from_quantecon, to_quantecon
from drmdp.model import Model, check_model
from drmdp.model.stack import stack
from drmdp.sets.base import check_set
from drmdp.sets.intervals import Intervals

__all__ = [
    "FORMATS", "Writer", "check_target", "files_of", "from_gymnasium", "from_mdptoolbox", "from_quantecon", "read", "read_intervals",
    "to_gymnasium", "to_mdptoolbox", "to_quantecon", "write", "write_intervals",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class Format(Protocol):
    """What a module of this package offers; errors need not repeat the path."""

    HOLDS: frozenset[str]
    """Which of `NAMES` a file holds."""

    def read(self, path: Path, options: Options) -> Model:
        """Read a model."""

    def write(self, model: Model, path: Path) -> None:
        """Write a model, completely or not at all."""

    def check_target(self, path: Path) -> None:
        """Raise `InputError` if the path cannot be written."""

    def files_of(self, path: Path) -> list[Path]:
        """What is read, and replaced or removed in writing."""


FORMATS: dict[str, Format] = {
    "npz": npz,
    "drmdp": directory,
    "craam": craam,
    "prism": prism,
    "umb": umb,
}
NAMES = {
    "states": "names of states",
    "actions": "names of actions",
    "kernel_names": "names of kernels",
    "notes": "notes",
}
PARTS = {
    "ends": "values of terminal states",
    "discounts": "discount for each pair",
    "sojourn": "lengths of steps",
}
SUFFIXES = {".npz": "npz", ".drmdp": "drmdp", ".csv": "craam", ".tra": "prism", ".umb": "umb"}


def read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    format: str | None = None,
    *,
    discount: float | None = None,
    base: int = 0,
    initial: str | os.PathLike[str] | None = None,
    parameters: str | os.PathLike[str] | None = None,
    normalize: bool = False,
) -> Model:
    """Read a model: ``.npz``, a ``.drmdp`` directory of memory-mapped arrays, craam ``.csv``, PRISM ``.tra`` or ``.umb``.

    An .npz file needs `kernels` (N, S, A, S), `costs` or `rewards`, and `discount`; *File formats* of the reference says what else it
    may hold, and what the others hold. Nothing is ever unpickled, and sizes are checked before anything is allocated.

    Parameters
    ----------
    path : path, or a list of paths
        Several files become one model with the kernels of all, named after the files; see `drmdp.stack`. A directory, or a
        path that ends in "/", is a "drmdp" directory; otherwise the suffix decides.
    format : "npz", "drmdp", "craam", "prism" or "umb", optional
        Instead of going by the path.
    discount : float in [0, 1], optional
        For formats that hold none ("prism", "umb"), or instead of that in a file of parameters ("craam").
    base : 0 or 1
        First number of states, actions and kernels ("craam").
    initial, parameters : paths, optional
        Files with the start distribution and the discount ("craam"); those beside the model by default.
    normalize : bool
        Scale every row to sum to 1, as in `drmdp.Model`.

    Raises
    ------
    InputError
        If there is no such file or it is not a model; the message begins with the path and names the array or line.

    Examples
    --------
    >>> import drmdp, os, tempfile
    >>> model = drmdp.instances.machine(8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "machine.npz")
    ...     drmdp.write(model, path)
    ...     drmdp.read(path) == model
    True
    """
    options = Options(discount, base, initial, parameters, normalize)
    if isinstance(path, list | tuple):
        return stack([_read(one, format, options) for one in path], names=_stems(path))
    return _read(path, format, options)  # type: ignore[arg-type]


def _read(path: str | os.PathLike[str], format: str | None, options: Options) -> Model:
    chosen = _choose(path, format)
    with _reading(path):
        return chosen.read(Path(path), options)


def _stems(given: Sequence[str | os.PathLike[str]]) -> list[str] | None:
    """Names of files, without folders and suffixes if they differ; nothing if they are the same."""
    stems = [Path(path).stem for path in given]
    return stems if len(set(stems)) == len(stems) else None


def read_intervals(
    path: str | os.PathLike[str], format: str | None = None, *, discount: float | None = None
) -> tuple[Model, Intervals]:
    """Read a model with an interval for each probability: PRISM ``.tra`` or ``.umb``, which PRISM and Storm write of interval MDPs.

    Parameters
    ----------
    path : path
        A ``.tra`` or ``.umb`` file.
    format : "prism" or "umb", optional
        Instead of going by the suffix.
    discount : float in [0, 1]
        The files hold none.

    Returns
    -------
    model : Model
        With one kernel between the bounds, the midpoint wherever that is a distribution.
    intervals : Intervals
        The set of the file.

    Raises
    ------
    InputError
        If the file is no such model; the message begins with the path and names line and value.

    Examples
    --------
    >>> import drmdp, os, tempfile
    >>> model = drmdp.instances.garnet(8, 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "garnet.tra")
    ...     drmdp.formats.write_intervals(model, drmdp.Intervals.of(model, 0.05), path)
    ...     found, intervals = drmdp.formats.read_intervals(path, discount=0.8)
    >>> bool(drmdp.solve(found, intervals).gap < 1e-4)
    True
    """
    chosen = _bounded(path, format)
    with _reading(path):
        found: tuple[Model, Intervals] = chosen.read_intervals(Path(path), Options(discount))
        return found


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Show progress, and name the path in what goes wrong; the model refuses what overflows."""
    with naming(path), stage(f"reading {os.fspath(path)}"), np.errstate(over="ignore", invalid="ignore"):
        yield


def write(model: Model, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a model so that `read` gives back an equal one; what was there is replaced at the very end, or not at all.

    What the formats of other programs do not hold is refused, or left out with a `drmdp.Notice`, a warning; see *File formats* of the reference.

    Parameters
    ----------
    model : Model
        What to write.
    path : path
        ``.npz`` for one file; ``.drmdp``, or a path that ends in "/" or is a directory, for a directory of arrays to be
        memory-mapped. An existing directory is replaced only if it is empty or holds a model and nothing else.
    format : "npz", "drmdp", "craam", "prism" or "umb", optional
        Instead of going by the path.

    Raises
    ------
    InputError
        If the path cannot be written, or the format does not hold such a model.
    """
    check_model(model)
    chosen = _choose(path, format)
    _store(model, path, chosen, lambda: chosen.write(model, Path(path)))


def write_intervals(
    model: Model, intervals: Intervals, path: str | os.PathLike[str], format: str | None = None
) -> None:
    """Write a model with an interval for each probability so that `read_intervals` gives both back; the kernels of the model are not written.

    Parameters
    ----------
    model : Model
        Its names, costs and ends are written.
    intervals : Intervals
        A margin is written as part of the bounds.
    path : path
        ``.tra`` or ``.umb``.
    format : "prism" or "umb", optional
        Instead of going by the suffix.

    Raises
    ------
    InputError
        If the path cannot be written, or the format does not hold such a model.
    """
    check_model(model)
    check_set(intervals)
    if not isinstance(intervals, Intervals):
        raise InputError(f"intervals: expected a drmdp.Intervals, got {intervals!r}")
    chosen = _bounded(path, format)
    _store(model, path, chosen, lambda: chosen.write_intervals(model, intervals, Path(path)))


def _store(model: Model, path: str | os.PathLike[str], chosen: Format, write: Callable[[], None]) -> None:
    """Write, and warn of what is left out."""
    chosen.check_target(Path(path))
    for name, words in PARTS.items():
        if getattr(model, name) is not None and name not in chosen.HOLDS:
            raise InputError(
                f"{os.fspath(path)}: the format holds no {words}, which this model has; .npz and .drmdp do"
            )
    try:
        with stage(f"writing {os.fspath(path)}"):
            write()
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from None
    lost = [words for name, words in NAMES.items() if name not in chosen.HOLDS and _given(getattr(model, name))]
    if lost:
        warnings.warn(
            f"{os.fspath(path)}: left out, for the format holds none: {', '.join(lost)}", Notice, stacklevel=3
        )


def _given(names: Any) -> bool:
    return bool(names) and not isinstance(names, range)


def check_target(path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise `InputError` if `write` would refuse the path; to be asked before long work.

    Parameters
    ----------
    path : path
        Where a model is to be written.
    format : str, optional
        Instead of going by the suffix.
    """
    _choose(path, format).check_target(Path(path))


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether `write` makes a .drmdp directory at the path."""
    return _choose(path, None) is FORMATS["drmdp"]


def files_of(path: str | os.PathLike[str], format: str | None = None) -> list[Path]:
    """Files that `read` reads, and `write` replaces or removes: the model and what lies beside it or in it.

    Parameters
    ----------
    path : path
        Of a model.
    format : str, optional
        Instead of going by the suffix.
    """
    return _choose(path, format).files_of(Path(path))


def labels(path: str | os.PathLike[str], n_states: int) -> dict[str, BoolArray]:
    """States of each label that the file of a model has, (S,): what `drmdp.reach` takes as `target` or `avoid`; formats without labels have none."""
    own = getattr(_choose(path, None), "labels", None)
    with _reading(path):
        return {} if own is None else dict(own(Path(path), n_states))


def holds_intervals(path: str | os.PathLike[str], format: str | None = None) -> bool:
    """Whether the format has an interval for each probability."""
    return hasattr(_choose(path, format), "read_intervals")


def _bounded(path: str | os.PathLike[str], format: str | None) -> Any:
    """A format with intervals."""
    if not holds_intervals(path, format):
        known = ", ".join(suffix for suffix, name in SUFFIXES.items() if hasattr(FORMATS[name], "read_intervals"))
        raise InputError(f"{os.fspath(path)}: the format holds no intervals; those that do: {known}")
    return _choose(path, format)


def _choose(path: str | os.PathLike[str], format: str | None) -> Format:
    check_path(path)
    text = os.fspath(path)
    if format is None:
        folder = text.endswith(("/", os.sep)) or os.path.isdir(text)
        suffix = ".drmdp" if folder else Path(text).suffix
        if suffix.lower() not in SUFFIXES:
            raise InputError(f"{text}: unknown suffix {suffix!r}; known: {', '.join(SUFFIXES)}")
        format = SUFFIXES[suffix.lower()]
    if format not in FORMATS:
        raise InputError(f"{text}: unknown format {format!r}; known: {', '.join(FORMATS)}")
    return FORMATS[format]
