"""Models of files and of other programs.

`read` and `write` go by suffix: ``.npz`` and ``.drmdp`` are ours, ``.csv`` is craam's, ``.tra``
PRISM's, ``.umb`` that of PRISM and Storm. `read_intervals` and `write_intervals` take the last two
with an interval for each probability. `from_quantecon`, `from_mdptoolbox` and `from_gymnasium` take
over objects in memory, the same with ``to_`` gives them back.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from drmdp._typing import BoolArray
from drmdp.core.validation import placed
from drmdp.errors import InputError, Notice
from drmdp.formats import craam, directory, npz, prism, umb
from drmdp.formats._intervals import model_between
from drmdp.formats._options import ReadOptions
from drmdp.formats.directory.writer import Writer
from drmdp.formats.gymnasium import from_gymnasium, to_gymnasium
from drmdp.formats.mdptoolbox import from_mdptoolbox, to_mdptoolbox
from drmdp.formats.quantecon import from_quantecon, to_quantecon
from drmdp.io.files import AnyPath, check_path, naming
from drmdp.model import Model, check_model
from drmdp.model.stack import stack
from drmdp.sets.base import check_set
from drmdp.sets.intervals import Intervals
from drmdp.ui.progress import stage

__all__ = ["FORMATS", "Writer", "check_target", "files_of", "from_gymnasium", "from_mdptoolbox"]
__all__ += ["from_quantecon", "read", "read_intervals", "to_gymnasium", "to_mdptoolbox"]
__all__ += ["to_quantecon", "write", "write_intervals"]


def __dir__() -> list[str]:
    return __all__


FORMATS: dict[str, Any] = {
    "npz": npz,
    "drmdp": directory,
    "craam": craam,
    "prism": prism,
    "umb": umb,
}
"""A module each, with

* `HOLDS`, which of `NAMES` and `PARTS` a file holds;
* `read(path, options)`, which gives a model, and `write(model, path)`, which writes all of it or
  nothing; errors need not repeat the path;
* `check_target(path)`, which raises `InputError` if the path cannot be written;
* perhaps `files_of(path)`, the files that are read, and replaced or removed in writing, if the path
  is not the only one, `labels(path, n_states)`, and `bounded(path, options)`, which gives
  transitions with intervals, and `write_intervals`.
"""
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
    path: AnyPath | Sequence[AnyPath],
    format: str | None = None,
    *,
    discount: float | None = None,
    base: int = 0,
    initial: AnyPath | None = None,
    parameters: AnyPath | None = None,
    normalize: bool = False,
    rewards: bool = True,
) -> Model:
    """Read a model: ``.npz``, a ``.drmdp`` directory of memory-mapped arrays, craam ``.csv``, PRISM
    ``.tra`` or ``.umb``.

    An .npz file needs `kernels` (N, S, A, S), `costs` or `rewards`, and `discount`; *File formats*
    of the reference says what else it may hold, and what the others hold. Nothing is ever
    unpickled, and sizes are checked before anything is allocated.

    Parameters
    ----------
    path : path, or a list of paths
        Several files become one model with the kernels of all, named after the files; see
        `drmdp.stack`. A directory, or a path that ends in "/", is a "drmdp" directory; otherwise
        the suffix decides.
    format : "npz", "drmdp", "craam", "prism" or "umb", optional
        Instead of going by the path.
    discount : float in [0, 1], optional
        For formats that hold none ("prism", "umb"), or instead of that in a file of parameters
        ("craam").
    base : 0 or 1
        First number of states, actions and kernels ("craam").
    initial, parameters : paths, optional
        Files with the start distribution and the discount ("craam"); those beside the model by
        default.
    normalize : bool
        Scale every row to sum to 1, as in `drmdp.Model`.
    rewards : bool
        Whether rewards are read, for formats that may have none or several ("prism", "umb"). False:
        costs are 0, which is all that `drmdp.reach` needs.

    Raises
    ------
    InputError
        If there is no such file or it is not a model; the message begins with the path and names
        the array or line.

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
    options = ReadOptions(discount, base, initial, parameters, normalize, rewards)
    if isinstance(path, list | tuple):
        stems = [Path(item).stem for item in path]
        names = stems if len(set(stems)) == len(stems) else None
        return stack([_read(item, format, options) for item in path], names=names)
    return _read(path, format, options)  # type: ignore[arg-type]


def _read(path: AnyPath, format: str | None, options: ReadOptions) -> Model:
    chosen = _choose(path, format)
    with _reading(path):
        return cast(Model, chosen.read(Path(path), options))


def read_intervals(
    path: AnyPath, format: str | None = None, *, discount: float | None = None, rewards: bool = True
) -> tuple[Model, Intervals]:
    """Read a model with an interval for each probability: PRISM ``.tra`` or ``.umb``, which PRISM
    and Storm write of interval MDPs.

    Parameters
    ----------
    path : path
        A ``.tra`` or ``.umb`` file.
    format : "prism" or "umb", optional
        Instead of going by the suffix.
    discount : float in [0, 1]
        The files hold none.
    rewards : bool
        Whether rewards are read; False: costs are 0.

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
    chosen = _with_intervals(path, format)
    with _reading(path):
        return model_between(chosen.bounded(Path(path), ReadOptions(discount, rewards=rewards)))


@contextmanager
def _reading(path: AnyPath) -> Iterator[None]:
    """Show progress, and name the path in what goes wrong; the model refuses what overflows."""
    quiet = np.errstate(over="ignore", invalid="ignore")
    with naming(path), stage(f"reading {os.fspath(path)}"), quiet:
        yield


def write(model: Model, path: AnyPath, format: str | None = None) -> None:
    """Write a model so that `read` gives back an equal one; what was there is replaced at the very
    end, or not at all.

    What the formats of other programs do not hold is refused, or left out with a `drmdp.Notice`, a
    warning; see *File formats* of the reference.

    Parameters
    ----------
    model : Model
        What to write.
    path : path
        ``.npz`` for one file; ``.drmdp``, or a path that ends in "/" or is a directory, for a
        directory of arrays to be memory-mapped. An existing directory is replaced only if it is
        empty or holds a model and nothing else.
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
    model: Model, intervals: Intervals, path: AnyPath, format: str | None = None
) -> None:
    """Write a model with an interval for each probability so that `read_intervals` gives both back;
    the kernels of the model are not written.

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
    chosen = _with_intervals(path, format)
    _store(model, path, chosen, lambda: chosen.write_intervals(model, intervals, Path(path)))


def _store(model: Model, path: AnyPath, chosen: Any, write: Callable[[], None]) -> None:
    """Write, and warn of what is left out."""
    chosen.check_target(Path(path))
    text = os.fspath(path)
    for name, words in PARTS.items():
        if getattr(model, name) is not None and name not in chosen.HOLDS:
            fault = f"the format holds no {words}, which this model has"
            raise InputError(f"{text}: {fault}; .npz and .drmdp do")
    with placed(text), stage(f"writing {text}"):
        write()
    others = {name: getattr(model, name) for name in NAMES if name not in chosen.HOLDS}
    lost = [NAMES[name] for name, names in others.items() if names and not isinstance(names, range)]
    if lost:
        what = f"left out, for the format holds none: {', '.join(lost)}"
        warnings.warn(f"{text}: {what}", Notice, stacklevel=3)


def check_target(path: AnyPath, format: str | None = None) -> None:
    """Raise `InputError` if `write` would refuse the path; to be asked before long work.

    Parameters
    ----------
    path : path
        Where a model is to be written.
    format : str, optional
        Instead of going by the suffix.
    """
    _choose(path, format).check_target(Path(path))


def is_directory(path: AnyPath) -> bool:
    """Whether `write` makes a .drmdp directory at the path."""
    return _choose(path, None) is FORMATS["drmdp"]


def files_of(path: AnyPath, format: str | None = None) -> list[Path]:
    """Files that `read` reads, and `write` replaces or removes: the model and what lies beside it
    or in it.

    Parameters
    ----------
    path : path
        Of a model.
    format : str, optional
        Instead of going by the suffix.
    """
    listed = getattr(_choose(path, format), "files_of", None)
    return [Path(path)] if listed is None else list(listed(Path(path)))


def labels(path: AnyPath, n_states: int) -> dict[str, BoolArray]:
    """States of each label that the file of a model has, (S,): what `drmdp.reach` takes as `target`
    or `avoid`; formats without labels have none.
    """
    reader = getattr(_choose(path, None), "labels", None)
    with _reading(path):
        return {} if reader is None else dict(reader(Path(path), n_states))


def holds_discount(path: AnyPath, format: str | None = None) -> bool:
    """Whether the format always has a discount, so that `read` takes none."""
    return _choose(path, format) in (npz, directory)


def holds_intervals(path: AnyPath, format: str | None = None) -> bool:
    """Whether the format has an interval for each probability."""
    return hasattr(_choose(path, format), "bounded")


def _with_intervals(path: AnyPath, format: str | None) -> Any:
    """A format with intervals."""
    if not holds_intervals(path, format):
        known = (suffix for suffix, name in SUFFIXES.items() if hasattr(FORMATS[name], "bounded"))
        fault = "the format holds no intervals; those that do"
        raise InputError(f"{os.fspath(path)}: {fault}: {', '.join(known)}")
    return _choose(path, format)


def _choose(path: AnyPath, format: str | None) -> Any:
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
