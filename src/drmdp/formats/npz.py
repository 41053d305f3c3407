"""One .npz file, NumPy's zip archive of arrays; see `drmdp.formats._fields` for their names.

Dense models are stored plain, so that a file of three arrays from elsewhere (`kernels`, `costs`,
`discount`) is a model too, and ours can be read with `numpy.load` alone; sparse ones are stored
compressed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.errors import InputError
from drmdp.formats._fields import KNOWN, NAMES, SMALL, check_names, check_sizes, to_fields, to_model
from drmdp.formats._options import ReadOptions
from drmdp.io import archives
from drmdp.io.files import check_file, write_whole
from drmdp.model import Model
from drmdp.model.state_ranges import OPTIONAL

HOLDS = frozenset((*NAMES, *OPTIONAL))
"""Which names and notes it holds, and values of terminal states."""


def read(path: Path, options: ReadOptions) -> Model:
    """Read a model; headers and sizes are checked before any array is."""
    options.refuse("discount", "base", "initial", "parameters", "rewards")
    try:
        with archives.opened(path) as archive:
            members = archives.members(archive)
            check_names(members)
            headers = archives.headers(archive, members, KNOWN)
            check_sizes(headers)
            archives.check_memory(headers.values(), "; kernels in a .drmdp directory need not")
            fields = {name: archives.load(archive, name, members[name]) for name in members}
            fields |= {name: fields[name].tolist() for name in SMALL if name in fields}
    except InputError:
        what = archives.describe(path)
        if what in ("a model", "a damaged zip archive", "a zip archive of other things"):
            raise
        raise InputError(f"not a readable .npz file: it is {what}") from None
    return to_model(fields, options.normalize)


def write(model: Model, path: Path) -> None:
    """Write a model, completely or not at all."""
    fields = to_fields(model)
    arrays = fields | {name: _array(name, fields[name]) for name in SMALL if name in fields}
    write_whole(path, lambda stream: np.savez(stream, **arrays))


check_target = check_file


def _array(name: str, value: Any) -> Any:
    """Small values as arrays; names that no array holds exactly (mixed, large) as JSON text."""
    if name not in NAMES:
        return np.array(value)
    if all(type(label) is int and abs(label) < 2**63 for label in value):
        return np.array(value, dtype=np.int64)
    if all(type(label) is str and not label.endswith("\0") for label in value):
        return np.array(value)
    return np.array(json.dumps(value))
