"""A directory of .npy files and a model.json, for large models: kernels are mapped into memory, not
loaded.

What `write` and `drmdp.formats.Writer` make is described in `drmdp.formats.directory.stored`:
kernels are compressed, also those of dense models, and probabilities and costs stay in their files.
While the model is in use they must not be written to or cut off in place. Replacing the model with
`drmdp.write` or `drmdp convert` is safe. See `drmdp.io.mapped_arrays` for what happens otherwise.

Models of events are written as the table of where events lead (`drmdp.formats.directory.events`).

A directory made by hand, with a model.json of the small fields and an .npy file for every other
one, holds the fields of `drmdp.formats._fields`; it is loaded as an .npz file is. `drmdp convert`
makes one that is mapped of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.errors import InputError, shown
from drmdp.formats._fields import ARRAYS, NAMES, SMALL, check_names, to_model
from drmdp.formats._options import ReadOptions
from drmdp.formats.directory import events, stored
from drmdp.formats.directory.stored import FORMAT, INDEX, StoredModel
from drmdp.formats.directory.writer import write_drawn as write_drawn
from drmdp.formats.directory.writer import write_spans
from drmdp.io.archives import check_memory, checked_header, decoding, native
from drmdp.io.files import check_parent, landing, naming
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.model.state_ranges import OPTIONAL

HOLDS = frozenset((*NAMES, *OPTIONAL))
"""Which names and notes it holds, and values of terminal states."""


def open_stored(path: str | os.PathLike[str]) -> StoredModel:
    """Open a directory that `write` made, without reading it; its ranges of states are read with
    `StoredModel.read`.
    """
    with naming(path), stored.opened(Path(path)) as (folder, index):
        if index.get("format") == events.FORMAT:
            raise InputError("is a model of events: drmdp.read(path) maps its table")
        if index.get("format") != FORMAT:
            cure = "`drmdp convert` makes one that is mapped of it"
            raise InputError(f"was made by hand or by an older version; {cure}")
        return stored.stored(Path(path), folder, index)


def holds_events(path: str | os.PathLike[str]) -> bool:
    """Whether a directory is that of a model of events."""
    with naming(path), stored.opened(Path(path)) as (_, index):
        return bool(index.get("format") == events.FORMAT)


def read(path: Path, options: ReadOptions) -> Model:
    """Read a model; probabilities stay on disk until they are used, unless all rows are to be
    scaled.
    """
    options.refuse("discount", "base", "initial", "parameters", "rewards")
    with stored.opened(path) as (folder, index):
        if index.get("format") == FORMAT:
            model_files = stored.stored(path, folder, index)
            return model_files.scaled() if options.normalize else model_files.model()
        if index.get("format") == events.FORMAT:
            return events.read(path, folder, index)
        fields = _fields(path, folder, index)
    return to_model(fields, options.normalize)


def _fields(path: Path, folder: int | None, small: dict[str, Any]) -> dict[str, Any]:
    """All fields of a directory made by hand, in memory."""
    for name in small:
        if name not in SMALL:
            raise InputError(f"{INDEX}: unknown entry {shown(name)}; known: {', '.join(SMALL)}")
    names = stored.arrays_in(path, folder)
    for name in names:
        if name in SMALL:
            raise InputError(f"{name}: belongs in {INDEX}, not in a file of its own")
    check_names([*small, *names])
    headers = {}
    for name in names:
        with decoding(name), stored.open_file(path, folder, f"{name}.npy") as stream:
            headers[name] = checked_header(name, stream, ARRAYS[name])
    check_memory(headers.values())
    arrays = {}
    for name, header in headers.items():
        with decoding(name), stored.open_file(path, folder, f"{name}.npy") as stream:
            if checked_header(name, stream, ARRAYS[name]) != header:
                raise InputError(f"{name}: changed while it was read")
            stream.seek(0)
            arrays[name] = native(np.lib.format.read_array(stream, allow_pickle=False))
    return small | arrays


def write(model: Model, path: Path) -> None:
    """Write a model into a new directory beside the target and move it there at the end."""
    if isinstance(model, EventModel):
        events.write(model, path)
        return
    S = model.n_states
    span = model.span(0, S)
    parts = (span.part(lo, hi) for lo, hi in stored.pieces(span))
    write_spans(path, model.head, parts, initial=bool((model.initial != 1 / S).any()))


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written, or a directory with anything in it that is not a
    model.
    """
    target = landing(path)
    if target.is_dir():
        held = {file.name for file in target.iterdir()}
        arrays = (*ARRAYS, *stored.FIELDS, *events.FIELDS)
        foreign = held - {INDEX, *(f"{name}.npy" for name in arrays)}
        if held and (foreign or INDEX not in held):
            why = f"holds {min(foreign)!r}" if foreign else f"has no {INDEX}"
            what = f"is a directory but not a model ({why}), and is not overwritten"
            raise InputError(f"{path}: {what}")
    elif target.exists():
        raise InputError(f"{path}: is a file, not a directory")
    check_parent(path)


def files_of(path: Path) -> list[Path]:
    """The directory, and all that is in it."""
    return [path, *(path.iterdir() if path.is_dir() else ())]
