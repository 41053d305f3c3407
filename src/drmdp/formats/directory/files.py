"""Files of a model that is being written: they grow in a hidden directory, and take their place
together.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.core import names as texts
from drmdp.core import storage
from drmdp.core.storage import Kernels
from drmdp.errors import InputError, shown
from drmdp.formats._fields import texts_of
from drmdp.formats.directory.stored import INDEX
from drmdp.io.archives import write_document
from drmdp.io.files import about, beside, flush, keep_access, landing, replace_directory
from drmdp.model.state_ranges import OPTIONAL, Span

SOME = 2**22
"""Numbers that are written at a time."""
HEADER = 128
"""Bytes of the header of an .npy file, whatever its shape will be."""


class _Column:
    """An .npy file that grows."""

    def __init__(self, path: Path, dtype: Any, row: tuple[int, ...]) -> None:
        self.dtype, self.row, self.size = np.dtype(dtype), row, 0
        # a buffer would be written in `close`, and fail there
        self._stream: Any = path.open("xb", buffering=0)
        self._write(bytes(HEADER))

    def add(self, array: Any) -> None:
        """Append the numbers of an array."""
        numbers = np.ascontiguousarray(array, dtype=self.dtype)
        self._write(numbers.reshape(-1).view(np.uint8).data)
        self.size += numbers.size

    def _write(self, content: Any) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[self._stream.write(rest) :]

    def finish(self) -> None:
        """Say in the header how many rows there are."""
        shape = (self.size // math.prod(self.row), *self.row)
        text = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
        self._stream.seek(0)
        start = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
        self._write(start + text.ljust(HEADER - 11).encode() + b"\n")
        flush(self._stream)
        self._stream.close()

    def close(self) -> None:
        """Leave the file as it is."""
        self._stream.close()


class Files:
    """The files of a model that is being written, in a hidden directory beside their place."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self.n = os.fspath(path), 0
        self._target = landing(path)
        self._fresh = beside(self._target)
        self._columns: dict[str, _Column] = {}
        self._entries = 0
        self._mass: list[float] = []
        self._trivial = dict.fromkeys(("available", "terminal", "states", "states_ends"), True)
        self._gone = False
        self._fresh.mkdir(0o700 if self._target.exists() else 0o777)

    def add(self, span: Span, initial: bool, named: bool) -> None:
        """Append states."""
        if self._gone:
            raise InputError(f"{self._path}: the writer was closed")
        try:
            with about(self._path):
                self._add(span, initial, named)
        except BaseException:
            self.abort()
            raise

    def _add(self, span: Span, initial: bool, named: bool) -> None:
        blocks = span.blocks
        encoded = texts.encoded("states", span.names) if named else None
        self._add_ends("indptr", self._entries + blocks.indptr)
        self._column("indices", np.int32).add(blocks.indices)
        self._column("data", blocks.data.dtype).add(blocks.data)
        arrays = {name: getattr(span, name) for name in ("available", "terminal", *OPTIONAL)}
        arrays["next_costs" if span.costs.ndim == 1 else "costs"] = span.costs
        arrays["initial"] = span.initial if initial else None
        for name, array in arrays.items():
            if array is not None:
                self._column(name, array.dtype, *array.shape[1:]).add(array)
        if initial:
            self._mass.append(float(span.initial.sum()))
        if span.counts is not None:
            self._add_counts(span.counts)
        if encoded is not None:
            self._add_names(*encoded)
        self._entries += int(blocks.indptr[-1])
        self._trivial["available"] &= bool((span.available | span.terminal[:, None]).all())
        self._trivial["terminal"] &= not span.terminal.any()
        self._trivial["states"] &= texts.same(span.names, range(self.n, self.n + len(span)))
        self._trivial["states_ends"] = self._trivial["states"]
        self.n += len(span)

    def _add_counts(self, counts: Kernels) -> None:
        column = self._column("counts_indices", np.int32)
        self._add_ends("counts_indptr", column.size + counts.indptr)
        column.add(counts.indices)
        self._column("counts_data", np.float64).add(counts.data)

    def _add_ends(self, name: str, ends: Any) -> None:
        """Append where parts end; of the first ones also where they begin."""
        column = self._column(name, np.int64)
        column.add(ends[1:] if column.size else ends)

    def _column(self, name: str, dtype: Any, *row: int) -> _Column:
        if name not in self._columns:
            self._columns[name] = _Column(self._fresh / f"{name}.npy", dtype, row)
        return self._columns[name]

    def _add_names(self, text: bytes, lengths: Any) -> None:
        column = self._column("states", np.uint8)
        self._add_ends("states_ends", column.size + np.concatenate([[0], np.cumsum(lengths)]))
        column.add(np.frombuffer(text, dtype=np.uint8))
        hashes = [texts.key(line) for line in text.splitlines()]
        self._column("hashes", np.uint64).add(np.array(hashes, dtype=np.uint64))

    def put(self, name: str, array: Any) -> None:
        """Write a whole array, some rows at a time."""
        with about(self._path):
            column = self._column(name, array.dtype, *array.shape[1:])
            step = max(1, SOME * len(array) // max(1, array.size))
            for lo in range(0, len(array), step):
                column.add(array[lo : lo + step])
        self._trivial[name] = False

    def put_names(self, names: Any) -> None:
        """Write the names of all states."""
        self._add_names(*texts.encoded("states", names))
        self._trivial |= {"states": False, "states_ends": False}

    def finish(self, index: dict[str, Any]) -> None:
        """Complete all files, model.json last, and put the directory in its place."""
        old: Path | None = self._fresh
        try:
            with about(self._path):
                for column in self._columns.values():
                    column.finish()
                self._check_names()
                self._check_mass()
                for name in compress(self._trivial, self._trivial.values()):
                    (self._fresh / f"{name}.npy").unlink(missing_ok=True)
                write_document(self._fresh / INDEX, index)
                if self._target.exists():
                    _keep_access(self._fresh, self._target)
                old = replace_directory(self._fresh, self._target)
        finally:
            self._close()
            if old is not None:
                shutil.rmtree(old, ignore_errors=True)

    def _check_names(self) -> None:
        """Refuse a name that is given twice: equal hashes are looked for, sorted in their file, and
        their names compared.
        """
        if "hashes" not in self._columns:
            return
        path = self._fresh / "hashes.npy"
        hashes = np.lib.format.open_memmap(path, mode="r+")
        hashes.sort()
        twice = set(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]).tolist())
        del hashes
        path.unlink()
        if not twice:
            return
        names = set()
        with (self._fresh / "states.npy").open("rb") as stream:
            stream.seek(HEADER)
            for line in stream:
                text = line.rstrip(b"\n")
                if texts.key(text) in twice:
                    if text in names:
                        name = shown(texts.back(json.loads(text)))
                        raise InputError(f"states: the name {name} is given twice")
                    names.add(text)

    def _check_mass(self) -> None:
        """Refuse a start distribution that does not sum to 1; scale one that rounding put out."""
        if not self._mass:
            return
        total = math.fsum(self._mass)
        if abs(total - 1) > storage.ROW_SUM_TOL:
            raise InputError(f"initial must sum to 1, got {total!r}")
        if abs(total - 1) > storage.rounding(self.n):
            mass = np.lib.format.open_memmap(self._fresh / "initial.npy", mode="r+")
            mass /= total
            mass.flush()

    def _close(self) -> None:
        self._gone = True
        for column in self._columns.values():
            column.close()

    def abort(self) -> None:
        """Leave nothing behind."""
        self._close()
        shutil.rmtree(self._fresh, ignore_errors=True)


def index_of(format: str, head: Any, shape: list[int], **more: Any) -> dict[str, Any]:
    """The document model.json of a model, or of its head."""
    index = {"format": format, "shape": shape, "discount": head.discount}
    index |= {"weights": head.weights.tolist(), **more}
    index |= texts_of(head, ("actions", "kernel_names", "notes"))
    others = {name: getattr(head, name) for name in ("start", "origin")}
    return index | {name: value for name, value in others.items() if value is not None}


def _keep_access(fresh: Path, target: Path) -> None:
    """Give a directory and its files the permissions of an older model's."""
    if (target / INDEX).exists():
        for file in fresh.iterdir():
            keep_access(file, (target / INDEX).stat())
    keep_access(fresh, target.stat())
