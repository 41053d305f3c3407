"""A model in a directory of mapped arrays, opened without being read.

====================== ====================== ======================================================
file                   array                  meaning
====================== ====================== ======================================================
model.json             a JSON object          format, shape [N, S, A], discount, weights; sparse,
                                              maximise, actions, kernel_names, notes, start where
                                              they differ from false and nothing
indptr, indices, data  (S·A+1,) int64, (E,)   the arrays of `drmdp.core.storage`, E next states in
                       int32, (N·E,) float    all
costs or               (S, A) or (S, A, S)    costs, or negated rewards if `maximise`; 0 where an
next_costs             float64; (E,) float64  action is not available; `next_costs` in the order of
                                              `indices`, unknown elsewhere
available, terminal    (S, A) and (S,) bool   optional
initial                (S,) float64           optional
ends                   (S,) float64           optional: final costs of terminal states; 0 elsewhere
discounts              (S, A) float64         optional: one for each pair, none above `discount`; 0
                                              where it is not available
sojourn                (S, A) float64         optional: how long steps last; 0 where a pair is not
                                              available
counts_indptr,         as above, C next       optional: how often each of C transitions was seen,
counts_indices,        states; (C,) or (N·C,) all kernels together or by kernel
counts_data            float64
states, states_ends    (B,) uint8 and         optional: names in one text; see `drmdp.core.names`
                       (S+1,) int64
====================== ====================== ======================================================

Dtypes are exactly these, `data` being float64 or float32. Rows of float64 sum to 1 up to rounding:
`Writer` scales them, and a reader refuses others, for scaling one row would copy them all. Opening
reads model.json and the headers of the arrays. A `StoredModel.span` of states copies what points
into arrays and checks it; probabilities and costs stay in their files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from drmdp._typing import Array, IntArray
from drmdp.core import validation as checks
from drmdp.core.distributions import Labels
from drmdp.core.names import StoredNames, back
from drmdp.core.storage import ENTRIES, Kernels, rounding, wrong_column
from drmdp.core.validation import Names
from drmdp.errors import InputError, shown
from drmdp.formats._fields import COUNTS, check_together, shape_of
from drmdp.io.archives import Field, check_header, decoding, load_json, read_header
from drmdp.io.files import open_regular, require
from drmdp.io.mapped_arrays import map_array
from drmdp.model import Model, changed, of_span, state_ranges
from drmdp.model.counts import counts_of, of_arrays
from drmdp.model.state_ranges import Head, Span
from drmdp.ui import text as words

FORMAT = "drmdp directory 2"
INDEX = "model.json"
COMMON = ("discount", "weights", "maximise", "actions", "kernel_names", "notes", "start")
"""Entries of an index beside its format and shape, also of models of events."""
OF_STATES = {
    "available": ("?", "SA"),
    "terminal": ("?", "S"),
    "initial": ("f8", "S"),
    "ends": ("f8", "S"),
    "states": ("u1", "B"),
    "states_ends": ("i8", "J"),
}
"""Fields that models of events have too."""
FIELDS = {
    "indptr": ("i8", "I"),
    "indices": ("i4", "E"),
    "data": ("f8 f4", "D"),
    "costs": ("f8", "SA SAS"),
    "next_costs": ("f8", "E"),
    **OF_STATES,
    "discounts": ("f8", "SA"),
    "sojourn": ("f8", "SA"),
    "counts_indptr": ("i8", "Y"),
    "counts_indices": ("i4", "C"),
    "counts_data": ("f8", "X"),
}
"""Dtypes and shapes of the arrays: S states, A actions, I = S·A + 1, J = S + 1, E next states, D =
N·E; others have any length.
"""
Fields = Mapping[str, tuple[str, str]]
BY_STATE = ("available", "terminal", "initial", *state_ranges.OPTIONAL)
"""Optional arrays with a row for each state."""
SHOWN = ("indptr", "indices", "data", "available", "terminal", "initial")
"""Arrays whose bytes are those of a model."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Hold a directory open, so that all files are of one model even if another takes its place,
    where the system can; its handle, and what model.json says.
    """
    if not path.is_dir():
        raise InputError("is not a directory" if path.exists() else "no such directory")
    folder = os.open(path, os.O_RDONLY) if os.open in os.supports_dir_fd else None
    try:
        yield folder, _index(path, folder)
    finally:
        if folder is not None:
            os.close(folder)


def open_file(path: Path, folder: int | None, name: str) -> IO[bytes]:
    """Open a file of an open directory."""
    with checks.placed(name):
        return open_regular(path / name if folder is None else name, folder)


def arrays_in(path: Path, folder: int | None) -> list[str]:
    """Names of the .npy files, without the suffix."""
    names = sorted(os.listdir(path if folder is None else folder))
    return [name.removesuffix(".npy") for name in names if name.endswith(".npy")]


def _index(path: Path, folder: int | None) -> dict[str, Any]:
    try:
        with checks.placed(f"{INDEX}: cannot be read"), open_file(path, folder, INDEX) as stream:
            index = load_json(stream)
    except FileNotFoundError:
        raise InputError(f"{INDEX}: missing") from None
    if not isinstance(index, dict):
        raise InputError(f"{INDEX}: expected an object, got {type(index).__name__}")
    return index


@dataclass(frozen=True, eq=False, repr=False)
class StoredModel:
    """A model in a directory, opened and not read; all arrays are mapped."""

    head: Head
    states: Names
    costs: Array  # (S, A), (S, A, S) or (E,)
    arrays: Mapping[str, Any]  # the others of `FIELDS`

    @property
    def labels(self) -> Labels:
        """Names of kernels, states and actions, for messages."""
        return Labels(self.head.kernel_names, self.states, self.head.actions)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the model, computed from its files block by block."""
        digests = state_ranges.digests(self, 0, self.head.n_states)
        return state_ranges.fingerprint(self.head, digests)

    def __repr__(self) -> str:
        held = (self.arrays[name].nbytes for name in SHOWN if name in self.arrays)
        nbytes = self.costs.nbytes + sum(held)
        return self.head.described(self.arrays["indices"].size, f"{words.memory(nbytes)} in files")

    def span(self, lo: int, hi: int) -> Span:
        """The states lo … hi − 1; where their rows lie is checked, what is in them is not."""
        head, arrays = self.head, self.arrays
        S, A, N = head.n_states, head.n_actions, head.n_kernels
        indptr = self._pointers(lo, hi)
        first, last = int(indptr[0]), int(indptr[-1])
        indptr -= first
        indices = np.array(arrays["indices"][first:last])
        k = wrong_column(indptr, indices, S)
        if k >= 0:
            pair = int(np.searchsorted(indptr, k, side="right")) - 1
            where = f"{replace(self.labels, first=lo).pair(pair)}, entry {first + k}"
            expected = f"expected ascending states below {S}"
            raise InputError(f"indices: {where} is {int(indices[k])}, {expected}")
        data = arrays["data"][N * first : N * last]
        blocks = Kernels(S, A, N, indptr, indices, data, head.is_sparse)
        parts = {name: arrays[name][lo:hi] for name in BY_STATE if name in arrays}
        terminal = np.array(parts.pop("terminal", np.zeros(hi - lo, dtype=bool)))
        available = np.repeat(~terminal[:, None], A, axis=1) & parts.pop("available", True)
        initial = np.array(parts.pop("initial", np.broadcast_to(1 / S, hi - lo)))
        costs = self.costs[first:last] if head.costs == 1 else self.costs[lo:hi]
        return Span(lo, self.states[lo:hi], blocks, costs, available, terminal, initial, **parts)

    def _pointers(self, lo: int, hi: int) -> IntArray:
        A, S, E = self.head.n_actions, self.head.n_states, self.arrays["indices"].size
        indptr = np.array(self.arrays["indptr"][lo * A : hi * A + 1])
        falls = indptr[1:] < indptr[:-1]
        low, high = indptr[0] != 0 if lo == 0 else indptr[0] < 0, indptr[-1] > E
        if low or high or falls.any() or (hi == S and indptr[-1] != E):
            pair = replace(self.labels, first=lo).pair(int(np.argmax(falls)))
            where = f" at {pair}" if falls.any() else ""
            raise InputError(f"indptr: expected ascending numbers from 0 to {E}{where}")
        return indptr

    def read(self, lo: int, hi: int) -> Span:
        """The states lo … hi − 1, checked by all rules of a model but one: that `initial`, over all
        states, sums to 1.
        """
        span = self.span(lo, hi)
        if isinstance(span.names, StoredNames):
            span.names.check("states")
        labels = self.labels
        for at, end in pieces(span):
            span.part(at, end).check(labels, self.head.discount)
        return span

    def model(self) -> Model:
        """The whole model; its probabilities and costs stay in their files."""
        head = self.head
        held = ("indptr", "indices", "available", "terminal", "initial")
        nbytes = sum(self.arrays[name].nbytes for name in held if name in self.arrays)
        require(2 * nbytes, "states, actions and next states")
        span = self.read(0, head.n_states)
        total = float(span.initial.sum())
        if abs(total - 1) > rounding(head.n_states):
            raise InputError(f"initial must sum to 1, got {total!r}")
        return of_span(head, replace(span, counts=self._counts()))

    def _counts(self) -> Kernels | None:
        """Counts of all states, checked; the numbers stay in their file."""
        if COUNTS[0] not in self.arrays:
            return None
        indptr, indices, data = (self.arrays[name] for name in COUNTS)
        require(2 * (indptr.nbytes + indices.nbytes), "transitions that were seen")
        head = self.head
        counts = of_arrays(head.n_states, head.n_actions, np.array(indptr), np.array(indices), data)
        return counts_of(counts, head.n_states, head.n_states, self.labels, head.is_sparse)

    def scaled(self) -> Model:
        """The whole model in memory, every row scaled to sum to 1."""
        head = self.head
        arrays = (self.arrays["indices"], self.arrays["data"], self.costs)
        require(3 * sum(array.nbytes for array in arrays), "rows that are to be scaled")
        span = self.span(0, head.n_states)
        of_head = ("discount", "weights", "actions", "kernel_names", "notes")
        arguments: Any = {name: getattr(head, name) for name in of_head}
        arguments |= {name: getattr(span, name) for name in ("initial", "available", "terminal")}
        arguments["rewards" if head.maximise else "costs"] = span.prices(head.maximise)
        counts = self._counts()
        model = Model(span.blocks, **arguments, states=span.names, counts=counts, normalize=True)
        optional = {name: getattr(span, name) for name in state_ranges.OPTIONAL}
        return changed(model, start=head.start, origin=head.origin, **optional)


def pieces(span: Any) -> Iterator[tuple[int, int]]:
    """Ranges of states with at most some millions of probabilities, but at least one state, to go
    through one after the other.
    """
    A = span.available.shape[1]
    starts = np.asarray(span.blocks.indptr)[::A]
    room = max(1, ENTRIES // span.blocks.n_kernels)
    if span.costs.ndim == 3:
        room = max(1, ENTRIES // (A * span.blocks.n_states))
        starts = np.arange(len(starts))
    lo, last = 0, len(starts) - 1
    while lo < last:
        hi = int(np.searchsorted(starts, starts[lo] + room, side="right")) - 1
        hi = min(max(hi, lo + 1), lo + ENTRIES // A + 1, last)
        yield lo, hi
        lo = hi


# ---------------------------------------------------------------------- opening


def stored(path: Path, folder: int | None, index: dict[str, Any]) -> StoredModel:
    """Open the model in a directory whose index has our `FORMAT`."""
    check_index(index, ("sparse", "origin"))
    arrays = mapped(path, folder, FIELDS)
    costs = [name for name in ("costs", "next_costs") if name in arrays]
    if len(costs) != 1:
        given = " and ".join(costs) or "none"
        raise InputError(f"costs, next_costs: expected exactly one, got {given}")
    check_there(arrays, ("indptr", "indices", "data"))
    check_together(arrays, ("states", "states_ends"))
    check_together(arrays, COUNTS)
    N, S, A = shape_of(index["shape"], "three", "N, S, A")
    weights, E = index["weights"], arrays["indices"].size
    if not isinstance(weights, list) or len(weights) != N:
        raise InputError(f"weights: expected a list of {N} numbers, got {shown(weights)}")
    sizes = {"S": S, "A": A, "I": S * A + 1, "J": S + 1, "E": E, "D": N * E}
    check_shapes(arrays, FIELDS, sizes, f" for N, S, A = {N}, {S}, {A} and {E} next states")
    paid = arrays.pop(costs[0])
    head = Head(
        **named(index, N, S, A),
        is_sparse=index.get("sparse", False),
        dtype=arrays["data"].dtype,
        costs=paid.ndim,
        origin=checks.origin_of(index.get("origin")),
    )
    terminal = np.asarray(arrays.get("terminal", np.zeros(S, dtype=bool)))
    ends = checks.ends_of(arrays.pop("ends", None), terminal)
    if ends is not None:
        arrays["ends"] = ends
    return StoredModel(head, names_in(arrays, S), paid, arrays)


def mapped(path: Path, folder: int | None, fields: Fields) -> dict[str, Any]:
    """The arrays of a directory by name, mapped; refused if they are none of `fields`, which have
    their dtypes and shapes.
    """
    arrays = {}
    for name in arrays_in(path, folder):
        if name not in fields:
            raise InputError(f"{name}: unknown array; known: {', '.join(fields)}")
        dtypes, ndims = fields[name][0].split(), tuple(map(len, fields[name][1].split()))
        with decoding(name), open_file(path, folder, f"{name}.npy") as stream:
            header = read_header(stream)
            if header.dtype not in map(np.dtype, dtypes):
                expected = " or ".join(dtypes)
                raise InputError(f"{name}: expected {expected}, got dtype {header.dtype}")
            size = os.fstat(stream.fileno()).st_size - header.offset
            check_header(name, header, Field(header.dtype.kind, ndims), size)
            if header.order != "C":
                raise InputError(f"{name}: expected rows one after the other, got columns")
            if header.size:
                arrays[name] = map_array(stream, header, os.fspath(path / f"{name}.npy"))
            else:  # where there is nothing, nothing can be mapped
                arrays[name] = np.zeros(header.shape, header.dtype)
    return arrays


def check_index(index: dict[str, Any], more: tuple[str, ...]) -> None:
    """Refuse entries that are unknown, and that some are missing."""
    known = ("format", "shape", *COMMON, *more)
    for name in index:
        if name not in known:
            raise InputError(f"{INDEX}: unknown entry {shown(name)}; known: {', '.join(known)}")
    with checks.placed(INDEX):
        check_there(index, ("shape", "discount", "weights"))
    for name in ("sparse", "maximise"):
        if not isinstance(index.get(name, False), bool):
            raise InputError(f"{name}: expected true or false, got {shown(index[name])}")


def check_there(arrays: Mapping[str, Any], needed: tuple[str, ...]) -> None:
    """Refuse a directory without some arrays."""
    for name in needed:
        if name not in arrays:
            raise InputError(f"{name}: missing")


def named(index: dict[str, Any], N: int, S: int, A: int) -> dict[str, Any]:
    """The sizes of a model, and what `COMMON` entries of its index say, checked."""
    lists = {name: index.get(name) for name in ("kernel_names", "actions")}
    for name, values in lists.items():
        if values is not None and not isinstance(values, list):
            raise InputError(f"{name}: expected a list of names, got {type(values).__name__}")
    names = {name: list(back(values)) for name, values in lists.items() if values is not None}
    return common(index | names, N, S, A)


def common(given: Mapping[str, Any], N: int, S: int, A: int) -> dict[str, Any]:
    """The sizes of a model, and what is given of its `COMMON` entries, checked."""
    kernel_names = checks.names_of("kernel_names", given.get("kernel_names"), N)
    return {
        **{"n_kernels": N, "n_states": S, "n_actions": A, "kernel_names": kernel_names},
        "discount": checks.discount_of(given["discount"]),
        "weights": checks.distribution("weights", given["weights"], kernel_names, "kernel"),
        "maximise": given.get("maximise", False),
        "actions": checks.names_of("actions", given.get("actions"), A),
        "notes": checks.notes_of(given.get("notes", [])),
        "start": checks.start_of(given.get("start")),
    }


def names_in(arrays: Mapping[str, Any], S: int) -> Names:
    """Names of the states from their files, or numbers."""
    return StoredNames(arrays["states"], arrays["states_ends"]) if "states" in arrays else range(S)


def check_shapes(
    arrays: dict[str, Any], fields: Fields, sizes: Mapping[str, int], where: str = ""
) -> None:
    """Refuse arrays of other shapes than `fields` say, in whole numbers of any size; letters
    without a size are not compared.
    """
    for name, (_, letters) in fields.items():
        shapes = [tuple(map(sizes.get, text)) for text in letters.split()]
        if name in arrays and None not in shapes[0] and arrays[name].shape not in shapes:
            expected = " or ".join(map(str, shapes))
            raise InputError(f"{name}: expected shape {expected}{where}, got {arrays[name].shape}")
