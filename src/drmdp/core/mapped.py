"""Arrays that stay in their files and are read where they are used.

Whoever changes such a file changes the array. A file that is *replaced*, as `drmdp.write` does, is safe: the old one lives on until nobody uses it.
A file that is written to or cut off in place is noticed by `check_unchanged`, which is asked before a solver starts and when it has ended; its numbers
may be wrong in between, but never lead out of an array, for what points into arrays is copied. A process that reads beyond the new end of a file
that is being cut off is ended by the system (SIGBUS).
"""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from drmdp.core.archives import Header
from drmdp.errors import InputError


class Mapped(np.memmap):
    """An array in a file, and what the file looked like when it was opened."""

    source: str = ""
    stamp: tuple[int, ...] = ()


def map_array(stream: IO[bytes], header: Header, source: str) -> Any:
    """An array in an open file, read-only; `source` is the path that messages name."""
    found = os.fstat(stream.fileno())
    array = Mapped(stream, header.dtype, "r", header.offset, header.shape, header.order)
    array.source, array.stamp = source, _stamp(found)
    return np.asarray(array)


def in_file(array: Any) -> Any:
    """What of an array is in a file; None if nothing is."""
    while isinstance(array, np.ndarray) and not isinstance(array, Mapped):
        array = array.base
    return array if isinstance(array, Mapped) and array.stamp else None


def check_unchanged(array: Any) -> None:
    """Refuse an array whose file has been written to since it was opened, as far as the system tells."""
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


def check_files(kept: dict[Any, Any], *arrays: Any) -> None:
    """The same for all arrays of a model; `kept` knows which of them are in files."""
    if "files" not in kept:
        kept["files"] = [array for array in arrays if in_file(array) is not None]
    for array in kept["files"]:
        check_unchanged(array)


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
