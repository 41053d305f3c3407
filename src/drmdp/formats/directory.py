"""A directory of .npy files and a model.json, for large models: kernels are mapped into memory, not loaded.

What `write` and `drmdp.formats.Writer` make is described in `drmdp.formats._stored`: kernels are compressed, also those of dense models, and probabilities and
costs stay in their files. While the model is in use they must not be written to or cut off in place. Replacing the model with `drmdp.write` or
`drmdp convert` is safe. See `drmdp.core.mapped` for what happens otherwise.

Models of events are written as the table of where events lead (`drmdp.formats._events`).

A directory made by hand, with a model.json of the small fields and an .npy file for every other one, holds the fields of `drmdp.formats._fields`; it is
loaded as an .npz file is. `drmdp convert` makes one that is mapped of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.core.archives import Header, check_memory, checked_header, decoding, native
from drmdp.core.files import check_parent, landing, naming
from drmdp.core.spans import OPTIONAL
from drmdp.errors import InputError, shown
from drmdp.formats import _events, _stored
from drmdp.formats._fields import ARRAYS, NAMES, SMALL, check_names, to_model
from drmdp.formats._options import Options
from drmdp.formats._stored import FORMAT, INDEX, Stored
from drmdp.formats._writer import write_drawn, write_spans
from drmdp.model import Model
from drmdp.model.events import EventModel

__all__ = ["HOLDS", "check_target", "files_of", "holds_events", "open_stored", "read", "write", "write_drawn"]
HOLDS = frozenset((*NAMES, *OPTIONAL))
"""Which names and notes it holds, and values of terminal states."""


def open_stored(path: str | os.PathLike[str]) -> Stored:
    """Open a directory that `write` made, without reading it; its ranges of states are read with `Stored.read`."""
    with naming(path), _stored.opened(Path(path)) as folder:
        index = _stored.read_index(Path(path), folder)
        if index.get("format") != FORMAT:
            if index.get("format") == _events.FORMAT:
                raise InputError("is a model of events: drmdp.read(path) maps its table")
            raise InputError("was made by hand or by an older version; `drmdp convert` makes one that is mapped of it")
        return _stored.stored(Path(path), folder, index)


def holds_events(path: str | os.PathLike[str]) -> bool:
    """Whether a directory is that of a model of events."""
    with naming(path), _stored.opened(Path(path)) as folder:
        return bool(_stored.read_index(Path(path), folder).get("format") == _events.FORMAT)


def read(path: Path, options: Options) -> Model:
    """Read a model; probabilities stay on disk until they are used, unless all rows are to be scaled."""
    options.refuse("discount", "base", "initial", "parameters")
    with _stored.opened(path) as folder:
        index = _stored.read_index(path, folder)
        if index.get("format") == FORMAT:
            found = _stored.stored(path, folder, index)
            return found.scaled() if options.normalize else found.model()
        if index.get("format") == _events.FORMAT:
            return _events.read(path, folder, index)
        fields = _fields(path, folder, index)
    return to_model(fields, options.normalize)


def _fields(path: Path, folder: int | None, small: dict[str, Any]) -> dict[str, Any]:
    """All fields of a directory made by hand, in memory."""
    for name in small:
        if name not in SMALL:
            raise InputError(f"{INDEX}: unknown entry {shown(name)}; known: {', '.join(SMALL)}")
    names = _stored.arrays_in(path, folder)
    for name in names:
        if name in SMALL:
            raise InputError(f"{name}: belongs in {INDEX}, not in a file of its own")
    check_names([*small, *names])
    headers = {name: _header(path, folder, name) for name in names}
    check_memory(headers.values())
    return {**small, **{name: _array(path, folder, name, header) for name, header in headers.items()}}


def _header(path: Path, folder: int | None, name: str) -> Header:
    with decoding(name), _stored.open_file(path, folder, f"{name}.npy") as stream:
        return checked_header(name, stream, ARRAYS[name])


def _array(path: Path, folder: int | None, name: str, header: Header) -> Any:
    with decoding(name), _stored.open_file(path, folder, f"{name}.npy") as stream:
        if checked_header(name, stream, ARRAYS[name]) != header:
            raise InputError(f"{name}: changed while it was read")
        stream.seek(0)
        return native(np.lib.format.read_array(stream, allow_pickle=False))


def write(model: Model, path: Path) -> None:
    """Write a model into a new directory beside the target and move it there at the end."""
    if isinstance(model, EventModel):
        _events.write(model, path)
        return
    S = model.n_states
    whole = model.span(0, S)
    parts = (whole.part(lo, hi) for lo, hi in _stored.pieces(whole))
    write_spans(path, model.head, parts, initial=bool((model.initial != 1 / S).any()))


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written, or a directory with anything in it that is not a model."""
    target = landing(path)
    if target.is_dir():
        held = {file.name for file in target.iterdir()}
        foreign = held - {INDEX, *(f"{name}.npy" for name in (*ARRAYS, *_stored.FIELDS, *_events.FIELDS))}
        if held and (foreign or INDEX not in held):
            what = f"holds {min(foreign)!r}" if foreign else f"has no {INDEX}"
            raise InputError(f"{path}: is a directory but not a model ({what}), and is not overwritten")
    elif target.exists():
        raise InputError(f"{path}: is a file, not a directory")
    check_parent(path)


def files_of(path: Path) -> list[Path]:
    """What `read` reads and `write` replaces: the directory, and all that is in it."""
    return [path, *(path.iterdir() if path.is_dir() else ())]
