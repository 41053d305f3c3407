"""Models of files and of other programs.

`read` and `write` go by suffix: ``.npz`` and ``.drmdp`` are ours, ``.csv`` is craam's, ``.tra`` PRISM's. `from_quantecon`,
`from_mdptoolbox` and `from_gymnasium` take over objects in memory, the same with ``to_`` gives them back.

A new file format is one module with `read`, `write`, `check_target` and `files_of`, and two lines here.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from drmdp.core.files import check_path
from drmdp.core.progress import stage
from drmdp.errors import InputError, Notice
from drmdp.formats import craam, directory, npz, prism
from drmdp.formats._options import Options
from drmdp.formats._writer import Writer
from drmdp.formats.gymnasium import from_gymnasium, to_gymnasium
from drmdp.formats.mdptoolbox import from_mdptoolbox, to_mdptoolbox
from drmdp.formats.quantecon import from_quantecon, to_quantecon
from drmdp.model import Model, check_model

__all__ = [
    "FORMATS", "Writer", "check_target", "files_of", "from_gymnasium", "from_mdptoolbox", "from_quantecon", "read", "to_gymnasium",
    "to_mdptoolbox", "to_quantecon", "write",
]  # fmt: skip


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
}
NAMES = {
    "states": "names of states",
    "actions": "names of actions",
    "kernel_names": "names of kernels",
    "notes": "notes",
}
SUFFIXES = {".npz": "npz", ".drmdp": "drmdp", ".csv": "craam", ".tra": "prism"}


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    discount: float | None = None,
    base: int = 0,
    initial: str | os.PathLike[str] | None = None,
    parameters: str | os.PathLike[str] | None = None,
    normalize: bool = False,
) -> Model:
    """Read a model: ``.npz``, a ``.drmdp`` directory of memory-mapped arrays, craam ``.csv`` or PRISM ``.tra``.

    An .npz file needs `kernels` (N, S, A, S), `costs` or `rewards`, and `discount`; see `drmdp.formats._fields` for
    what else it may hold, `drmdp.formats.craam` and `drmdp.formats.prism` for the others. Nothing is ever unpickled,
    and sizes are checked before anything is allocated.

    Parameters
    ----------
    path : path
        A directory, or a path that ends in "/", is a "drmdp" directory; otherwise the suffix decides.
    format : "npz", "drmdp", "craam" or "prism", optional
        Instead of going by the path.
    discount : float in [0, 1), optional
        For formats that hold none ("prism"), or instead of that in a file of parameters ("craam").
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
    chosen = _choose(path, format)
    options = Options(discount, base, initial, parameters, normalize)
    try:
        with (
            stage(f"reading {os.fspath(path)}"),
            np.errstate(over="ignore", invalid="ignore"),
        ):  # the model refuses what overflows
            return chosen.read(Path(path), options)
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from None
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(f"{os.fspath(path)}: does not fit in memory") from None


def write(model: Model, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a model so that `read` gives back an equal one; what was there is replaced at the very end, or not at all.

    What the formats of other programs do not hold is refused or said in their modules: `drmdp.formats.craam`,
    `drmdp.formats.prism`. Names and notes that are left out make a `drmdp.Notice`, a warning.

    Parameters
    ----------
    model : Model
    path : path
        ``.npz`` for one file; ``.drmdp``, or a path that ends in "/" or is a directory, for a directory of arrays to be
        memory-mapped. An existing directory is replaced only if it is empty or holds a model and nothing else.
    format : "npz", "drmdp", "craam" or "prism", optional
        Instead of going by the path.

    Raises
    ------
    InputError
        If the path cannot be written, or the format does not hold such a model.
    """
    check_model(model)
    chosen = _choose(path, format)
    chosen.check_target(Path(path))
    try:
        with stage(f"writing {os.fspath(path)}"):
            chosen.write(model, Path(path))
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from None
    lost = [words for name, words in NAMES.items() if name not in chosen.HOLDS and _given(getattr(model, name))]
    if lost:
        warnings.warn(
            f"{os.fspath(path)}: left out, for the format holds none: {', '.join(lost)}", Notice, stacklevel=2
        )


def _given(names: Any) -> bool:
    return bool(names) and not isinstance(names, range)


def check_target(path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise `InputError` if `write` would refuse the path; to be asked before long work."""
    _choose(path, format).check_target(Path(path))


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether `write` makes a .drmdp directory at the path."""
    return _choose(path, None) is FORMATS["drmdp"]


def files_of(path: str | os.PathLike[str], format: str | None = None) -> list[Path]:
    """Files that `read` reads, and `write` replaces or removes: the model and what lies beside it or in it."""
    return _choose(path, format).files_of(Path(path))


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
