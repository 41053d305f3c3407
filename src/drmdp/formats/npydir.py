"""A directory of .npy files and a model.json, for large models: kernels are mapped into memory, not loaded.

The kernels are stored compressed, also those of dense models. `model.json` holds the small fields, every other one is
an .npy file of its name; see `drmdp.formats._fields`. While the model is in use the files must not be changed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import IO, Any

import numpy as np

from drmdp.errors import InputError, shown
from drmdp.formats._fields import ARRAYS, NAMES, SMALL, check_header, check_names, to_fields, to_model
from drmdp.formats._files import check_parent, decoding, read_header
from drmdp.formats._options import Options
from drmdp.model import Model

INDEX = "model.json"
HOLDS = frozenset(NAMES)
"""Which names and notes it holds."""


def read(path: Path, options: Options) -> Model:
    """Read a model; probabilities stay on disk until they are used."""
    options.refuse("discount", "base", "initial", "parameters")
    if not path.is_dir():
        raise InputError("is not a directory" if path.exists() else "no such directory")
    with decoding(INDEX):
        small = _index(path / INDEX)
    files = {file.stem: file for file in sorted(path.iterdir()) if file.suffix == ".npy"}
    for name in files:
        if name in SMALL:
            raise InputError(f"{name}: belongs in {INDEX}, not in a file of its own")
    check_names([*small, *files])
    mapped = {name: _mapped(name, file) for name, file in files.items()}
    return to_model({**small, **mapped}, options.normalize)


def write(model: Model, path: Path) -> None:
    """Write a model into a new directory beside the target and move it there at the end."""
    target = Path(os.path.realpath(path))
    fields = to_fields(model, compress=True)
    small = {name: fields.pop(name) for name in SMALL if name in fields}
    fresh = _beside(target)
    fresh.mkdir()
    try:
        for name, array in fields.items():
            with (fresh / f"{name}.npy").open("xb") as stream:
                np.save(stream, array, allow_pickle=False)
                _flush(stream)
        with (fresh / INDEX).open("xb") as stream:
            stream.write(json.dumps(small, indent=1).encode())
            _flush(stream)
        _move(fresh, target)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written, or a directory with anything in it that is not a model."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        held = {file.name for file in target.iterdir()}
        foreign = held - {INDEX, *(f"{name}.npy" for name in ARRAYS)}
        if held and (foreign or INDEX not in held):
            what = f"holds {min(foreign)!r}" if foreign else f"has no {INDEX}"
            raise InputError(f"{path}: is a directory but not a model ({what}), and is not overwritten")
    elif target.exists():
        raise InputError(f"{path}: is a file, not a directory")
    check_parent(target)


def _index(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"{INDEX}: missing")
    small = json.loads(path.read_bytes())
    if not isinstance(small, dict):
        raise InputError(f"{INDEX}: expected an object, got {type(small).__name__}")
    for name in small:
        if name not in SMALL:
            raise InputError(f"{INDEX}: unknown entry {shown(name)}; known: {', '.join(SMALL)}")
    return small


def _mapped(name: str, path: Path) -> Any:
    with decoding(name), path.open("rb") as stream:
        header = read_header(stream)
        check_header(name, header.dtype, header.shape, path.stat().st_size - header.offset)
        return np.memmap(path, header.dtype, "r", header.offset, header.shape, header.order)


def _beside(target: Path) -> Path:
    return target.parent / f".{target.name}.{secrets.token_hex(6)}"


def _flush(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _move(fresh: Path, target: Path) -> None:
    """Put one directory in the place of another; if that fails, the old one is put back."""
    if not target.exists():
        fresh.rename(target)
        return
    old = _beside(target)
    target.rename(old)
    try:
        fresh.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old)
