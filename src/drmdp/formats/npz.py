"""One .npz file, NumPy's zip archive of arrays; see `drmdp.formats._fields` for their names.

Dense models are stored plain, so that a file of three arrays from elsewhere (`kernels`, `costs`, `discount`) is a
model too, and ours can be read with `numpy.load` alone; sparse ones are stored compressed.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.errors import InputError
from drmdp.files import check_file, memory_limit, write_whole
from drmdp.formats._fields import NAMES, SMALL, check_header, check_names, to_fields, to_model
from drmdp.formats._files import decoding, read_header
from drmdp.formats._options import Options
from drmdp.model import Model

HOLDS = frozenset(NAMES)
"""Which names and notes it holds."""


def read(path: Path, options: Options) -> Model:
    """Read a model; headers and sizes are checked before any array is."""
    options.refuse("discount", "base", "initial", "parameters")
    with decoding("not a readable .npz file"), zipfile.ZipFile(path) as archive:
        members = _members(archive)
        check_names(members)
        total = sum(info.file_size for info in members.values())
        if total > memory_limit():
            raise InputError(f"{total} bytes do not fit in memory; kernels in a .drmdp directory need not")
        for name, info in members.items():
            with decoding(name), archive.open(info) as stream:
                header = read_header(stream)
                check_header(name, header.dtype, header.shape, info.file_size - header.offset)
        fields = {name: _field(archive, name, info) for name, info in members.items()}
    return to_model(fields, options.normalize)


def write(model: Model, path: Path) -> None:
    """Write a model, completely or not at all."""
    fields = to_fields(model, compress=False)
    arrays = {name: _array(name, value) if name in SMALL else value for name, value in fields.items()}
    write_whole(path, lambda stream: np.savez(stream, **arrays))


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written."""
    check_file(path)


def files_of(path: Path) -> list[Path]:
    """What `read` reads and `write` replaces."""
    return [path]


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            raise InputError(f"{name}: not an .npy array")
        if name in members:
            raise InputError(f"{name}: given twice")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{name}: compression {info.compress_type} is not known to NumPy")
        members[name] = info
    return members


def _field(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> Any:
    with decoding(name), archive.open(info) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        return array.tolist() if name in SMALL else array


def _array(name: str, value: Any) -> Any:
    """Small values as arrays; names that no array holds exactly (mixed, large) as JSON text."""
    if name not in NAMES:
        return np.array(value)
    if all(type(label) is int and abs(label) < 2**63 for label in value):
        return np.array(value, dtype=np.int64)
    if all(type(label) is str and not label.endswith("\0") for label in value):
        return np.array(value)
    return np.array(json.dumps(value))
