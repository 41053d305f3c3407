"""Files of a model that is being written: they grow in a hidden directory, and take their place together."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.core import names as texts
from drmdp.core import storage
from drmdp.core.files import beside, flush, keep_access, landing, replace_directory
from drmdp.core.spans import OPTIONAL, Span
from drmdp.core.storage import Kernels
from drmdp.errors import InputError, shown
from drmdp.formats._stored import INDEX

SOME = 2**22
"""Numbers that are written at a time."""
HEADER = 128
"""Bytes of the header of an .npy file, whatever its shape will be."""


class _Column:
    """An .npy file that grows."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.dtype, self.size = path, np.dtype(dtype), 0
        self._stream: Any = path.open("xb", buffering=0)  # a buffer would be written in `close`, and fail there
        self._write(bytes(HEADER))

    def add(self, array: Any) -> None:
        """Append the numbers of an array."""
        own = np.ascontiguousarray(array, dtype=self.dtype)
        self._write(own.reshape(-1).view(np.uint8).data)
        self.size += own.size

    def _write(self, content: Any) -> None:
        left = memoryview(content)
        while left:
            left = left[self._stream.write(left) :]

    def finish(self, *row: int) -> None:
        """Say in the header how many rows of this shape there are."""
        shape = (self.size // math.prod(row), *row)
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
        self._rows: dict[str, tuple[int, ...]] = {}
        self._entries = 0
        self._mass: list[float] = []
        self._open, self._going, self._numbered = True, True, True
        self._gone = False
        self._fresh.mkdir(0o700 if self._target.exists() else 0o777)

    def add(self, span: Span, initial: bool, named: bool) -> None:
        """Append states."""
        if self._gone:
            raise InputError(f"{self._path}: the writer was closed")
        try:
            self._add(span, initial, named)
        except OSError as error:
            self.abort()
            raise self._failed(error) from None
        except BaseException:
            self.abort()
            raise

    def _add(self, span: Span, initial: bool, named: bool) -> None:
        blocks, A = span.blocks, span.available.shape[1]
        encoded = texts.encoded("states", span.names) if named else None
        if not self._columns:
            self._column("indptr", np.int64).add([0])
        self._column("indptr", np.int64).add(self._entries + blocks.indptr[1:])
        self._column("indices", np.int32).add(blocks.indices)
        self._column("data", blocks.data.dtype).add(blocks.data)
        kind = "next_costs" if span.costs.ndim == 1 else "costs"
        self._column(kind, np.float64, *span.costs.shape[1:]).add(span.costs)
        self._column("available", np.bool_, A).add(span.available)
        self._column("terminal", np.bool_).add(span.terminal)
        for name in OPTIONAL:
            if (own := getattr(span, name)) is not None:
                self._column(name, np.float64, *own.shape[1:]).add(own)
        if initial:
            self._column("initial", np.float64).add(span.initial)
            self._mass.append(float(span.initial.sum()))
        if span.counts is not None:
            self._add_counts(span.counts)
        if encoded is not None:
            self._add_names(*encoded)
        self._entries += int(blocks.indptr[-1])
        self._open &= bool((span.available | span.terminal[:, None]).all())
        self._going &= not span.terminal.any()
        self._numbered &= texts.same(span.names, range(self.n, self.n + len(span)))
        self.n += len(span)

    def _add_counts(self, counts: Kernels) -> None:
        seen = self._column("counts_indices", np.int32)
        ends = seen.size + counts.indptr
        known = "counts_indptr" in self._columns
        self._column("counts_indptr", np.int64).add(ends[1:] if known else ends)
        seen.add(counts.indices)
        self._column("counts_data", np.float64).add(counts.data)

    def _column(self, name: str, dtype: Any, *row: int) -> _Column:
        if name not in self._columns:
            self._columns[name] = _Column(self._fresh / f"{name}.npy", dtype)
            self._rows[name] = row
        return self._columns[name]

    def _add_names(self, text: bytes, lengths: Any) -> None:
        own = self._column("states", np.uint8)
        ends = own.size + np.concatenate([[0], np.cumsum(lengths)])
        own.add(np.frombuffer(text, dtype=np.uint8))
        known = "states_ends" in self._columns
        self._column("states_ends", np.int64).add(ends[1:] if known else ends)
        hashes = [texts.key(line) for line in text.splitlines()]
        self._column("hashes", np.uint64).add(np.array(hashes, dtype=np.uint64))

    def put(self, name: str, array: Any) -> None:
        """Write a whole array, some rows at a time."""
        try:
            own = self._column(name, array.dtype, *array.shape[1:])
            step = max(1, SOME * len(array) // max(1, array.size))
            for lo in range(0, len(array), step):
                own.add(array[lo : lo + step])
        except OSError as error:
            raise self._failed(error) from None
        self._open &= name != "available"
        self._going &= name != "terminal"

    def put_names(self, names: Any) -> None:
        """Write the names of all states."""
        self._add_names(*texts.encoded("states", names))
        self._numbered = False

    def finish(self, index: dict[str, Any]) -> None:
        """Complete all files, model.json last, and put the directory in its place."""
        old: Path | None = self._fresh
        try:
            for name, column in self._columns.items():
                column.finish(*self._rows[name])
            self._check_names()
            self._check_mass()
            flags = {"available": self._open, "terminal": self._going}
            for name, trivial in (flags | dict.fromkeys(("states", "states_ends"), self._numbered)).items():
                if trivial:
                    (self._fresh / f"{name}.npy").unlink(missing_ok=True)
            with (self._fresh / INDEX).open("xb") as stream:
                stream.write(json.dumps(index, indent=1).encode())
                flush(stream)
            if self._target.exists():
                _keep_access(self._fresh, self._target)
            old = replace_directory(self._fresh, self._target)
        except OSError as error:
            raise self._failed(error) from None
        finally:
            self._close()
            if old is not None:
                shutil.rmtree(old, ignore_errors=True)

    def _failed(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror or str(error), self._path)

    def _check_names(self) -> None:
        """Refuse a name that is given twice: equal hashes are looked for, sorted in their file, and their names compared."""
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
        seen = set()
        with (self._fresh / "states.npy").open("rb") as stream:
            stream.seek(HEADER)
            for line in stream:
                text = line.rstrip(b"\n")
                if texts.key(text) in twice:
                    if text in seen:
                        raise InputError(f"states: the name {shown(texts.back(json.loads(text)))} is given twice")
                    seen.add(text)

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
    """What model.json says of a model, or of its head."""
    index = {"format": format, "shape": shape, "discount": head.discount, "weights": head.weights.tolist(), **more}
    for name in ("actions", "kernel_names"):
        if not isinstance(getattr(head, name), range):
            index[name] = texts.listed(name, getattr(head, name))
    if head.notes:
        index["notes"] = list(head.notes)
    for name in ("start", "origin"):
        if getattr(head, name, None) is not None:
            index[name] = getattr(head, name)
    return index


def _keep_access(fresh: Path, target: Path) -> None:
    """Give a directory and its files the permissions of an older model's."""
    if (target / INDEX).exists():
        for file in fresh.iterdir():
            keep_access(file, (target / INDEX).stat())
    keep_access(fresh, target.stat())
