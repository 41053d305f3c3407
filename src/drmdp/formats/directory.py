"""A directory of .npy files and a model.json, for large models: kernels are mapped into memory, not loaded.

The kernels are stored compressed, also those of dense models. `model.json` holds the small fields, every other one is
an .npy file of its name; see `drmdp.formats._fields`. Only `data`, the probabilities, stays in its file: while the model is in use it must not be
written to or cut off in place. Replacing the model with `drmdp.write` or `drmdp convert` is safe. See `drmdp.core.mapped` for what happens otherwise.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np

from drmdp.core.archives import Header, check_memory, checked_header, decoding, load_json, native
from drmdp.core.files import beside, check_parent, flush, keep_access, landing, open_regular, replace_directory
from drmdp.core.mapped import map_array
from drmdp.errors import InputError, shown
from drmdp.formats._fields import ARRAYS, NAMES, SMALL, check_names, to_fields, to_model
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
    with _opened(path) as folder:
        small = _index(path, folder)
        names = [
            name.removesuffix(".npy")
            for name in sorted(os.listdir(path if folder is None else folder))
            if name.endswith(".npy")
        ]
        for name in names:
            if name in SMALL:
                raise InputError(f"{name}: belongs in {INDEX}, not in a file of its own")
        check_names([*small, *names])
        headers = {name: _header(path, folder, name) for name in names}
        check_memory(header for name, header in headers.items() if not _stays(name, header))
        fields = {name: _array(path, folder, name, header) for name, header in headers.items()}
    return to_model({**small, **fields}, options.normalize)


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """Hold a directory open, so that all files are of one model even if another takes its place; not everywhere."""
    if os.open not in os.supports_dir_fd:
        yield None
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        yield folder
    finally:
        os.close(folder)


def _open(path: Path, folder: int | None, name: str) -> IO[bytes]:
    try:
        return open_regular(path / name if folder is None else name, folder)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _index(path: Path, folder: int | None) -> dict[str, Any]:
    try:
        with _open(path, folder, INDEX) as stream:
            small = load_json(stream)
    except FileNotFoundError:
        raise InputError(f"{INDEX}: missing") from None
    except InputError as error:
        raise InputError(f"{INDEX}: cannot be read: {error}") from None
    if not isinstance(small, dict):
        raise InputError(f"{INDEX}: expected an object, got {type(small).__name__}")
    for name in small:
        if name not in SMALL:
            raise InputError(f"{INDEX}: unknown entry {shown(name)}; known: {', '.join(SMALL)}")
    return small


def _header(path: Path, folder: int | None, name: str) -> Header:
    with decoding(name), _open(path, folder, f"{name}.npy") as stream:
        return checked_header(name, stream, ARRAYS[name])


def _stays(name: str, header: Header) -> bool:
    """Whether an array is used where it is: probabilities as this machine computes with them."""
    return name == "data" and header.dtype in (np.float64, np.float32)


def _array(path: Path, folder: int | None, name: str, header: Header) -> Any:
    """An array: mapped if it stays, else a copy, for what points into arrays must not change behind our back."""
    with decoding(name), _open(path, folder, f"{name}.npy") as stream:
        if checked_header(name, stream, ARRAYS[name]) != header:
            raise InputError(f"{name}: changed while it was read")
        if _stays(name, header):
            return map_array(stream, header, os.fspath(path / f"{name}.npy"))
        stream.seek(0)
        return native(np.lib.format.read_array(stream, allow_pickle=False))


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
