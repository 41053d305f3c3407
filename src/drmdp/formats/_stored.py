"""A model in a directory of mapped arrays, opened without being read.

====================== ====================== ====================================================================
file                   array                  meaning
====================== ====================== ====================================================================
model.json             a JSON object          format, shape [N, S, A], discount, weights; sparse, maximise, actions,
                                              kernel_names, notes, start where they differ from false and nothing
indptr, indices, data  (S·A+1,) int64, (E,)   the arrays of `drmdp.core.storage`, E next states in all
                       int32, (N·E,) float
costs or               (S, A) or (S, A, S)    costs, or negated rewards if `maximise`; 0 where an action is not
next_costs             float64; (E,) float64  available; `next_costs` in the order of `indices`, unknown elsewhere
available, terminal    (S, A) and (S,) bool   optional
initial                (S,) float64           optional
ends                   (S,) float64           optional: final costs of terminal states; 0 elsewhere
discounts              (S, A) float64         optional: one for each pair, none above `discount`; 0 where it is not available
sojourn                (S, A) float64         optional: how long steps last; 0 where a pair is not available
counts_indptr,         as above, C next       optional: how often each of C transitions was seen, all kernels together or by
counts_indices,        states; (C,) or (N·C,) kernel
counts_data            float64
states, states_ends    (B,) uint8 and         optional: names in one text; see `drmdp.core.names`
                       (S+1,) int64
====================== ====================== ====================================================================

Dtypes are exactly these, `data` being float64 or float32. Rows of float64 sum to 1 up to rounding: `Writer` scales them, and a reader refuses others,
for scaling one row would copy them all. Opening reads model.json and the headers of the arrays. A `Stored.span` of states copies what points into arrays and
checks it; probabilities and costs stay in their files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core import spans
from drmdp.core import text as words
from drmdp.core import validation as checks
from drmdp.core.archives import Field, check_header, decoding, load_json, read_header
from drmdp.core.counts import counts_of, of_arrays
from drmdp.core.distributions import Labels
from drmdp.core.files import open_regular, require
from drmdp.core.mapped import map_array
from drmdp.core.names import StoredNames, back
from drmdp.core.spans import Head, Span
from drmdp.core.storage import ENTRIES, Kernels, rounding, wrong_column
from drmdp.core.validation import Names
from drmdp.errors import InputError, shown
from drmdp.formats._fields import COUNTS, check_together
from drmdp.model import Model, changed, of_span

FORMAT = "drmdp directory 2"
INDEX = "model.json"
ENTRIES_OF_INDEX = (
    "format", "shape", "discount", "weights", "sparse", "maximise", "actions", "kernel_names", "notes", "start",
    "origin",
)  # fmt: skip
FIELDS = {
    "indptr": ("i8", "I"), "indices": ("i4", "E"), "data": ("f8 f4", "D"), "costs": ("f8", "SA SAS"), "next_costs": ("f8", "E"), "available": ("?", "SA"),
    "terminal": ("?", "S"), "initial": ("f8", "S"), "ends": ("f8", "S"), "discounts": ("f8", "SA"),
    "sojourn": ("f8", "SA"), "states": ("u1", "B"), "states_ends": ("i8", "J"),
    "counts_indptr": ("i8", "Y"), "counts_indices": ("i4", "C"), "counts_data": ("f8", "X"),
}  # fmt: skip
"""Dtypes and shapes of the arrays: S states, A actions, I = S·A + 1, J = S + 1, E next states, D = N·E; others have any length."""
Fields = Mapping[str, tuple[str, str]]
NEEDED = ("indptr", "indices", "data")


@contextmanager
def opened(path: Path) -> Iterator[int | None]:
    """Hold a directory open, so that all files are of one model even if another takes its place; not everywhere."""
    if not path.is_dir():
        raise InputError("is not a directory" if path.exists() else "no such directory")
    if os.open not in os.supports_dir_fd:
        yield None
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        yield folder
    finally:
        os.close(folder)


def open_file(path: Path, folder: int | None, name: str) -> IO[bytes]:
    """Open a file of an open directory."""
    try:
        return open_regular(path / name if folder is None else name, folder)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def arrays_in(path: Path, folder: int | None) -> list[str]:
    """Names of the .npy files, without the suffix."""
    names = sorted(os.listdir(path if folder is None else folder))
    return [name.removesuffix(".npy") for name in names if name.endswith(".npy")]


def read_index(path: Path, folder: int | None) -> dict[str, Any]:
    """Read model.json."""
    try:
        with open_file(path, folder, INDEX) as stream:
            index = load_json(stream)
    except FileNotFoundError:
        raise InputError(f"{INDEX}: missing") from None
    except InputError as error:
        raise InputError(f"{INDEX}: cannot be read: {error}") from None
    if not isinstance(index, dict):
        raise InputError(f"{INDEX}: expected an object, got {type(index).__name__}")
    return index


@dataclass(frozen=True, eq=False, repr=False)
class Stored:
    """A model in a directory, opened and not read; all arrays are mapped."""

    path: Path
    head: Head
    states: Names
    indptr: IntArray  # (S·A + 1,)
    indices: Any  # (E,)
    data: Any  # (N·E,)
    costs: Array  # (S, A), (S, A, S) or (E,)
    available: BoolArray | None
    terminal: BoolArray | None
    initial: Array | None
    ends: Array | None
    discounts: Array | None
    sojourn: Array | None
    counted: tuple[Any, ...] | None  # the arrays of `COUNTS`

    @property
    def labels(self) -> Labels:
        """Names of kernels, states and actions, for messages."""
        return Labels(self.head.kernel_names, self.states, self.head.actions)

    @property
    def fingerprint(self) -> str:
        """That of the model, computed from its files block by block."""
        return spans.fingerprint(self.head, spans.digests(self, 0, self.head.n_states))

    def __repr__(self) -> str:
        arrays = (self.indptr, self.indices, self.data, self.costs, self.available, self.terminal, self.initial)
        nbytes = sum(array.nbytes for array in arrays if array is not None)
        return self.head.described(self.indices.size, f"{words.memory(nbytes)} in files")

    def span(self, lo: int, hi: int) -> Span:
        """The states lo … hi − 1; where their rows lie is checked, what is in them is not."""
        head, A = self.head, self.head.n_actions
        indptr = self._pointers(lo, hi)
        first, last = int(indptr[0]), int(indptr[-1])
        indptr -= first
        indices = np.array(self.indices[first:last])
        k = wrong_column(indptr, indices, head.n_states)
        if k >= 0:
            labels = Labels(head.kernel_names, self.states, head.actions, lo)
            where = labels.pair(int(np.searchsorted(indptr, k, side="right")) - 1)
            raise InputError(
                f"indices: {where}, entry {first + k} is {int(indices[k])}, expected ascending states below {head.n_states}"
            )
        data = self.data[head.n_kernels * first : head.n_kernels * last]
        blocks = Kernels(head.n_states, A, head.n_kernels, indptr, indices, data, head.is_sparse)
        terminal = np.zeros(hi - lo, dtype=bool) if self.terminal is None else np.array(self.terminal[lo:hi])
        available = np.repeat(~terminal[:, None], A, axis=1)
        if self.available is not None:
            available &= self.available[lo:hi]
        uniform = np.broadcast_to(1 / head.n_states, hi - lo)
        initial = np.array(uniform if self.initial is None else self.initial[lo:hi])
        costs = self.costs[first:last] if head.costs == 1 else self.costs[lo:hi]
        more = (None if (own := getattr(self, name)) is None else own[lo:hi] for name in spans.OPTIONAL)
        return Span(lo, self.states[lo:hi], blocks, costs, available, terminal, initial, None, *more)

    def _pointers(self, lo: int, hi: int) -> IntArray:
        A = self.head.n_actions
        indptr = np.array(self.indptr[lo * A : hi * A + 1])
        falls = indptr[1:] < indptr[:-1]
        ends_wrong = (lo == 0 and indptr[0] != 0) or (hi == self.head.n_states and indptr[-1] != self.indices.size)
        if indptr[0] < 0 or indptr[-1] > self.indices.size or falls.any() or ends_wrong:
            labels = Labels(self.head.kernel_names, self.states, self.head.actions, lo)
            where = f" at {labels.pair(int(np.argmax(falls)))}" if falls.any() else ""
            raise InputError(f"indptr: expected ascending numbers from 0 to {self.indices.size}{where}")
        return indptr

    def read(self, lo: int, hi: int) -> Span:
        """The states lo … hi − 1, checked by all rules of a model but one: that `initial`, over all states, sums to 1."""
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
        held = (self.indptr, self.indices, self.available, self.terminal, self.initial)
        require(2 * sum(array.nbytes for array in held if array is not None), "states, actions and next states")
        span = self.read(0, head.n_states)
        total = float(span.initial.sum())
        if abs(total - 1) > rounding(head.n_states):
            raise InputError(f"initial must sum to 1, got {total!r}")
        return of_span(head, replace(span, counts=self._counts()))

    def _counts(self) -> Kernels | None:
        """Of all states, checked; how often each transition was seen stays in its file."""
        if self.counted is None:
            return None
        indptr, indices, data = self.counted
        require(2 * (indptr.nbytes + indices.nbytes), "transitions that were seen")
        head = self.head
        found = of_arrays(head.n_states, head.n_actions, np.array(indptr), np.array(indices), data)
        return counts_of(found, head.n_states, head.n_states, self.labels, head.is_sparse)

    def scaled(self) -> Model:
        """The whole model in memory, every row scaled to sum to 1."""
        head = self.head
        arrays = (self.indices, self.data, self.costs)
        require(3 * sum(array.nbytes for array in arrays), "rows that are to be scaled")
        span = self.span(0, head.n_states)
        costs = span.blocks.matrix(np.array(span.costs)) if head.costs == 1 else span.costs
        price = 0.0 - costs if head.maximise and head.costs > 1 else -costs if head.maximise else costs
        own: Any = {name: getattr(head, name) for name in ("discount", "weights", "actions", "kernel_names", "notes")}
        own |= {name: getattr(span, name) for name in ("initial", "available", "terminal")}
        own |= {"rewards" if head.maximise else "costs": price, "states": span.names, "counts": self._counts()}
        model = Model(span.blocks, **own, normalize=True)
        kept = {name: getattr(span, name) for name in spans.OPTIONAL}
        return changed(model, start=head.start, origin=head.origin, **kept)


def pieces(span: Any) -> Iterator[tuple[int, int]]:
    """Ranges of states with at most some millions of probabilities, but at least one state, to go through one after the other."""
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


def stored(path: Path, folder: int | None, index: dict[str, Any]) -> Stored:
    """Open the model in a directory whose index has our `FORMAT`."""
    check_index(index, ENTRIES_OF_INDEX)
    found = mapped(path, folder, FIELDS)
    costs = [name for name in ("costs", "next_costs") if name in found]
    if len(costs) != 1:
        raise InputError(f"costs, next_costs: expected exactly one, got {' and '.join(costs) or 'none'}")
    for name in NEEDED:
        if name not in found:
            raise InputError(f"{name}: missing")
    check_together(found, ("states", "states_ends"))
    check_together(found, COUNTS)
    N, S, A = shape_of(index["shape"], "three", "N, S, A")
    weights, E = index["weights"], found["indices"].size
    if not isinstance(weights, list) or len(weights) != N:
        raise InputError(f"weights: expected a list of {N} numbers, got {shown(weights)}")
    sizes = {"S": S, "A": A, "I": S * A + 1, "J": S + 1, "E": E, "D": N * E}
    check_shapes(found, FIELDS, sizes, f" for N, S, A = {N}, {S}, {A} and {E} next states")
    head = _head(index, (N, S, A), found["data"].dtype, found[costs[0]].ndim)
    ends = found.pop("states_ends", None)
    states = range(head.n_states) if ends is None else StoredNames(found.pop("states"), ends)
    own = {name: found.get(name) for name in (*NEEDED, "available", "terminal", "initial", "discounts", "sojourn")}
    own["ends"] = checks.ends_of(found.get("ends"), np.asarray(found.get("terminal", np.zeros(S, dtype=bool))))
    counted = tuple(found[name] for name in COUNTS) if COUNTS[0] in found else None
    return Stored(path=path, head=head, states=states, costs=found[costs[0]], counted=counted, **own)  # type: ignore[arg-type]


def mapped(path: Path, folder: int | None, fields: Fields) -> dict[str, Any]:
    """The arrays of a directory by name, mapped; refused if they are none of `fields`, which have their dtypes and shapes."""
    found = {}
    for name in arrays_in(path, folder):
        if name not in fields:
            raise InputError(f"{name}: unknown array; known: {', '.join(fields)}")
        dtypes, shapes = fields[name]
        with decoding(name), open_file(path, folder, f"{name}.npy") as stream:
            header = read_header(stream)
            if header.dtype not in [np.dtype(text) for text in dtypes.split()]:
                raise InputError(f"{name}: expected {' or '.join(dtypes.split())}, got dtype {header.dtype}")
            size = os.fstat(stream.fileno()).st_size - header.offset
            check_header(name, header, Field(header.dtype.kind, tuple(map(len, shapes.split()))), size)
            if header.order != "C":
                raise InputError(f"{name}: expected rows one after the other, got columns")
            where = os.fspath(path / f"{name}.npy")  # where there is nothing, nothing can be mapped
            found[name] = map_array(stream, header, where) if header.size else np.zeros(header.shape, header.dtype)
    return found


def check_index(index: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse entries that are unknown, and that some are missing."""
    for name in index:
        if name not in known:
            raise InputError(f"{INDEX}: unknown entry {shown(name)}; known: {', '.join(known)}")
    for name in ("shape", "discount", "weights"):
        if name not in index:
            raise InputError(f"{INDEX}: {name}: missing")
    for name in ("sparse", "maximise"):
        if not isinstance(index.get(name, False), bool):
            raise InputError(f"{name}: expected true or false, got {shown(index[name])}")


def _head(index: dict[str, Any], shape: tuple[int, int, int], dtype: Any, costs: int) -> Head:
    N, _, A = shape
    kernel_names = names("kernel_names", index.get("kernel_names"), N)
    return Head(
        *shape,
        discount=checks.discount_of(index["discount"]),
        weights=checks.distribution("weights", index["weights"], kernel_names, "kernel"),
        maximise=index.get("maximise", False),
        is_sparse=index.get("sparse", False),
        dtype=dtype,
        costs=costs,
        actions=names("actions", index.get("actions"), A),
        kernel_names=kernel_names,
        notes=checks.notes_of(index.get("notes", [])),
        start=checks.start_of(index.get("start")),
        origin=checks.origin_of(index.get("origin")),
    )


def shape_of(given: Any, count: str, letters: str) -> tuple[int, ...]:
    """Check N, S, A, or however many there are."""
    n = len(letters.split())
    if not isinstance(given, list) or len(given) != n or any(type(size) is not int or size < 1 for size in given):
        raise InputError(f"shape: expected {count} positive whole numbers {letters}, got {shown(given)}")
    return tuple(given)


def names(name: str, given: Any, size: int) -> Names:
    """Names from an index, or numbers."""
    if given is not None and not isinstance(given, list):
        raise InputError(f"{name}: expected a list of names, got {type(given).__name__}")
    return checks.names_of(name, given if given is None else list(back(given)), size)


def check_shapes(found: dict[str, Any], fields: Fields, sizes: Mapping[str, int], where: str = "") -> None:
    """Refuse arrays of other shapes than `fields` say, in whole numbers of any size; letters without a size are not compared."""
    for name, (_, letters) in fields.items():
        shapes = [tuple(map(sizes.get, own)) for own in letters.split()]
        if name in found and None not in shapes[0] and found[name].shape not in shapes:
            raise InputError(f"{name}: expected shape {' or '.join(map(str, shapes))}{where}, got {found[name].shape}")
