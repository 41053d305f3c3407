"""Model files by suffix: a new format is one module with `read`, `write` and `check_target`, and one line here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import numpy as np

from drmdp.errors import InputError
from drmdp.formats import npydir, npz
from drmdp.model import Model

__all__ = ["FORMATS", "check_target", "read", "write"]


class Format(Protocol):
    """What a module of this package offers; errors need not repeat the path."""

    def read(self, path: Path) -> Model:
        """Read a model."""

    def write(self, model: Model, path: Path) -> None:
        """Write a model, completely or not at all."""

    def check_target(self, path: Path) -> None:
        """Raise `InputError` if the path cannot be written."""


FORMATS: dict[str, Format] = {
    "npz": npz,
    "drmdp": npydir,
}
"""By name, which is also the suffix."""


def read(path: str | os.PathLike[str], format: str | None = None) -> Model:
    """Read a model from an ``.npz`` file or a ``.drmdp`` directory of memory-mapped arrays.

    An .npz file needs `kernels` (N, S, A, S), `costs` or `rewards`, and `discount`; see `drmdp.formats._fields` for
    what else it may hold. Nothing is ever unpickled, and sizes are checked before anything is allocated.

    Parameters
    ----------
    path : path
        A directory, or a path that ends in "/", is a "drmdp" directory; otherwise the suffix decides.
    format : "npz" or "drmdp", optional
        Instead of going by the path.

    Raises
    ------
    InputError
        If there is no such file or it is not a model; the message begins with the path and names the array.

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
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by the model
            return chosen.read(Path(path))
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from None
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {error.strerror or error}") from None
    except MemoryError:
        raise InputError(f"{os.fspath(path)}: does not fit in memory") from None


def write(model: Model, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a model so that `read` gives back an equal one; what was there is replaced at the very end, or not at all.

    Parameters
    ----------
    model : Model
    path : path
        ``.npz`` for one file; ``.drmdp``, or a path that ends in "/" or is a directory, for a directory of arrays to be
        memory-mapped. An existing directory is replaced only if it is empty or holds a model and nothing else.
    format : "npz" or "drmdp", optional
        Instead of going by the path.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    chosen = _choose(path, format)
    chosen.check_target(Path(path))
    chosen.write(model, Path(path))


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if `write` would refuse the path; to be asked before long work."""
    _choose(path, None).check_target(Path(path))


def _choose(path: str | os.PathLike[str], format: str | None) -> Format:
    text = os.fspath(path)
    if format is None:
        folder = text.endswith(("/", os.sep)) or os.path.isdir(text)
        format = "drmdp" if folder else Path(text).suffix.lower().removeprefix(".")
        if format not in FORMATS:
            known = ", ".join(f".{name}" for name in FORMATS)
            raise InputError(f"{text}: unknown suffix {Path(text).suffix!r}; known: {known}")
    if format not in FORMATS:
        raise InputError(f"{text}: unknown format {format!r}; known: {', '.join(FORMATS)}")
    return FORMATS[format]
