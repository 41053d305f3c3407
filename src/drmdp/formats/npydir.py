"""A directory of .npy files and a model.json, for large models: kernels are mapped into memory, not loaded.

The kernels are stored compressed, also those of dense models. `model.json` holds the small fields, every other one is
an .npy file of its name; see `drmdp.formats._fields`. While the model is in use the files must not be changed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from drmdp.errors import InputError, shown
from drmdp.files import beside, check_parent, flush, keep_access, landing, replace_directory
from drmdp.formats._fields import ARRAYS, NAMES, SMALL, check_header, check_names, to_fields, to_model
from drmdp.formats._files import decoding, read_header
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
    target = landing(path)
    fields = to_fields(model, compress=True)
    small = {name: fields.pop(name) for name in SMALL if name in fields}
    fresh = beside(target)
    old: Path | None = fresh
    try:
        fresh.mkdir(0o700 if target.exists() else 0o777)
        for name, array in fields.items():
            with (fresh / f"{name}.npy").open("xb") as stream:
                out: Any = SimpleNamespace(write=stream.write)  # of a file NumPy would not say why it takes no more
                np.lib.format.write_array(out, array, allow_pickle=False)
                flush(stream)
        with (fresh / INDEX).open("xb") as stream:
            stream.write(json.dumps(small, indent=1).encode())
            flush(stream)
        if target.exists():
            _keep_access(fresh, target)
        old = replace_directory(fresh, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


def _keep_access(fresh: Path, target: Path) -> None:
    """Give a directory and its files the permissions of an older model's."""
    if (target / INDEX).exists():
        for file in fresh.iterdir():
            keep_access(file, (target / INDEX).stat())
    keep_access(fresh, target.stat())


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written, or a directory with anything in it that is not a model."""
    target = landing(path)
    if target.is_dir():
        held = {file.name for file in target.iterdir()}
        foreign = held - {INDEX, *(f"{name}.npy" for name in ARRAYS)}
        if held and (foreign or INDEX not in held):
            what = f"holds {min(foreign)!r}" if foreign else f"has no {INDEX}"
            raise InputError(f"{path}: is a directory but not a model ({what}), and is not overwritten")
    elif target.exists():
        raise InputError(f"{path}: is a file, not a directory")
    check_parent(path)


def files_of(path: Path) -> list[Path]:
    """What `read` reads and `write` replaces: the directory, and all that is in it."""
    return [path, *(path.iterdir() if path.is_dir() else ())]


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
