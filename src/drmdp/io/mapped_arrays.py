"""Memory-mapped arrays.

A change of such a file changes the array. A file that is *replaced*, as `drmdp.write` does, is
safe: the old one lives on until nobody uses it. A file that is written to or cut off in place is
noticed by `check_unchanged`, which is called before a solver starts and when it has ended; its
numbers may be wrong in between, but never lead out of an array, for indices into arrays are
copied. A process that reads beyond the new end of a file that is being cut off is ended by the
system (SIGBUS).
"""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from drmdp.errors import InputError
from drmdp.io.archives import Header


class Mapped(np.memmap):
    """An array in a file, and the state of the file when it was opened."""

    source: str = ""
    stamp: tuple[int, ...] = ()


def map_array(stream: IO[bytes], header: Header, source: str) -> Any:
    """An array in an open file, read-only; `source` is the path in messages."""
    array = Mapped(stream, header.dtype, "r", header.offset, header.shape, header.order)
    array.source, array.stamp = source, _stamp(os.fstat(stream.fileno()))
    return np.asarray(array)


def in_file(array: Any) -> Any:
    """The mapped array that an array is, or views; None if there is none."""
    while isinstance(array, np.ndarray) and not isinstance(array, Mapped):
        array = array.base
    return array if isinstance(array, Mapped) and array.stamp else None


def check_unchanged(array: Any) -> None:
    """Refuse an array whose file was written to since it was opened, as far as the system tells."""
    array = in_file(array)
    if array is None:
        return
    changed = array._mmap.size() != array.stamp[2]
    try:
        now = _stamp(os.stat(array.source))
    except OSError:  # gone, but not from this process
        now = ()
    if changed or (now[:2] == array.stamp[:2] and now != array.stamp):
        raise InputError(f"{array.source}: was changed after it was read; read the model again")


def check_files(cache: dict[Any, Any], *arrays: Any) -> None:
    """The same for all arrays of a model; its `cache` lists those in files."""
    if "files" not in cache:
        cache["files"] = [array for array in arrays if in_file(array) is not None]
    for array in cache["files"]:
        check_unchanged(array)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
