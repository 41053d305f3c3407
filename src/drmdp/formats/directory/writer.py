"""Large models are written state after state, in bounded memory; see
`drmdp.formats.directory.stored` for the files.

All files grow in a hidden directory beside the target. model.json is written last, and only then is
the directory moved to its place, in one step. A process that is killed leaves that hidden
directory, which has no model.json and may be deleted. Blocks are checked as they come, by the rules
of `drmdp.Model`.

Memory does not grow with the number of states: a block, and what it takes to check it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core import distributions, storage
from drmdp.core import validation as checks
from drmdp.core.storage import Kernels
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.formats.directory.files import Files, index_of
from drmdp.formats.directory.stored import FORMAT, common
from drmdp.model import state_ranges
from drmdp.model.counts import counts_of
from drmdp.model.state_ranges import Head, Span


class Writer:
    """Write a .drmdp directory, states in blocks, without ever holding the model.

    Use it in a ``with`` statement: at its end the model is put in its place, completely; after an
    exception nothing is left.

    Parameters
    ----------
    path : path
        A .drmdp directory; one that is there is replaced at the very end.
    n_states, n_actions, n_kernels : int
        How many there will be in all.
    discount, weights, actions, kernel_names, notes, normalize
        As in `drmdp.Model`.
    dtype : float64 or float32
        How kernels are stored.

    Examples
    --------
    >>> import drmdp, numpy as np, os, tempfile
    >>> from scipy.sparse import csr_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "walk.drmdp")
    ...     with drmdp.formats.Writer(path, n_states=1000, n_actions=1, discount=0.9) as writer:
    ...         for lo in range(0, 1000, 250):
    ...             s = np.arange(250)
    ...             step = csr_array((np.ones(250), (s, (lo + s + 1) % 1000)), shape=(250, 1000))
    ...             writer.append([step], costs=np.ones((250, 1)))
    ...     drmdp.read(path).n_states
    1000
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        n_states: int,
        n_actions: int,
        n_kernels: int = 1,
        discount: float,
        weights: ArrayLike = None,
        actions: Names | None = None,
        kernel_names: Names | None = None,
        dtype: Any = np.float64,
        notes: Sequence[str] = (),
        normalize: bool = False,
    ) -> None:
        from drmdp.formats.directory import check_target

        check_target(Path(path))
        sizes = {"n_kernels": n_kernels, "n_states": n_states, "n_actions": n_actions}
        N, S, A = (checks.integer(name, n, 1, 2**31 - 1) for name, n in sizes.items())
        given = {"discount": discount, "weights": weights, "notes": notes}
        given |= {"actions": actions, "kernel_names": kernel_names}
        kinds: Any = {"is_sparse": True, "dtype": checks.storage_dtype(dtype), "costs": 2}
        self._head = Head(**common(given, N, S, A), **kinds)
        self._scaled = distributions.RowScaling(normalize)
        self._files = Files(path)
        self._kinds: dict[str, Any] = {}
        self._index: dict[str, bool] = {}

    def append(
        self,
        kernels: ArrayLike,
        *,
        costs: ArrayLike = None,
        rewards: ArrayLike = None,
        available: ArrayLike = None,
        terminal: ArrayLike = None,
        initial: ArrayLike = None,
        states: Names | None = None,
        counts: ArrayLike = None,
    ) -> None:
        """Check and write the next n states.

        Parameters
        ----------
        kernels : (N, n, A, S) or (n, A, S) array, or N sparse matrices (n·A, S)
            Transitions of these states, to all S.
        costs, rewards : (n,), (n, A) or (n, A, S) array, or a sparse (n·A, S) matrix
            Exactly one of the two, and the same one with the same number of dimensions in every
            block.
        available : (n, A) bool array, optional
            Which actions each state has; all by default.
        terminal : (n,) bool array, optional
            Where the process ends; nowhere by default.
        initial : (n,) array, optional
            With every block or with none; over all states it sums to 1.
        states : sequence of n names, optional
            With every block or with none.
        counts : (N, n, A, S) or (n, A, S) array, or sparse (n·A, S) matrices, optional
            How often each transition was seen; with every block or with none, and by kernel in all
            or in none.
        """
        name, prices = checks.only_one(costs=costs, rewards=rewards)
        head, first = self._head, self._files.n
        source, n, tol = self._source(kernels)
        if n > head.n_states - first:
            raise InputError(f"{first + n:,} states, but n_states is {head.n_states:,}")
        names: Names = range(first, first + n)
        if states is not None:
            names = tuple(checks.names_of("states", states, n))
        known: Any = range(head.n_states) if states is None else _Known(first, names)
        labels = distributions.Labels(head.kernel_names, known, head.actions, first)
        end = _flags("terminal", terminal, (n,), False)
        open_pairs = _flags("available", available, (n, head.n_actions), True) & ~end[:, None]
        state_ranges.check_open(open_pairs, end, labels)
        blocks = storage.compressed(source, open_pairs, storage.slack_of(self._scaled.normalize))
        blocks = distributions.check(blocks, open_pairs, labels, tol, self._scaled)
        blocks = blocks.astype(head.dtype)
        value = checks.costs_of(name, prices, blocks, open_pairs, head.discount, labels)
        value = value if rewards is None else 0.0 - value
        mass = np.zeros(n) if initial is None else _masses(initial, n, labels)
        observed = counts_of(counts, n, head.n_states, labels, blocks.is_sparse)
        span = Span(first, names, blocks, value, open_pairs, end, mass, observed)
        self._put(span, initial is not None, rewards is not None)

    def _source(self, kernels: ArrayLike) -> tuple[Any, int, float]:
        """Kernels of a block in one of three forms, how many states they are of, and how far a row
        may be off.
        """
        N, S, A = self._head.n_kernels, self._head.n_states, self._head.n_actions
        kernels = [kernels] if sparse.issparse(kernels) else kernels
        if isinstance(kernels, Kernels):
            source: Any = kernels
            shape: Any = (kernels.n_kernels, kernels.indptr.size - 1, kernels.n_states)
            tol = storage.ROW_SUM_TOL
            k = storage.wrong_column(kernels.indptr, kernels.indices, S)
            if k >= 0:
                entry = f"entry {k} of indices is {int(kernels.indices[k])}"
                raise InputError(f"kernels: {entry}, expected ascending states below {S}")
        elif isinstance(kernels, list | tuple) and any(map(sparse.issparse, kernels)):
            source = list(kernels)
            for i, matrix in enumerate(source):
                place, shape = f"kernels: kernel {i}", getattr(source[0], "shape", ())
                if not sparse.issparse(matrix) or matrix.ndim != 2 or matrix.shape != shape:
                    raise InputError(f"{place}: expected a sparse matrix (n·A, S) like kernel 0")
                checks.check_sparse(place, matrix)
            shape = (len(source), *shape)
            tol = max(storage.row_sum_tol(matrix.dtype) for matrix in source)
        else:
            source, tol = checks.numbers_with_slack("kernels", kernels)
            source = source[None] if source.ndim == 3 else source
            shape = source.shape
            if source.ndim == 4:
                shape = (shape[0], shape[1] * shape[2], shape[3]) if shape[2] == A else ()
        n, rest = divmod(shape[1], A) if len(shape) == 3 else (0, 0)
        if n == 0 or rest or (shape[0], shape[2]) != (N, S):
            expected = f"expected those of n states for N, S, A = {N}, {S}, {A}"
            raise InputError(f"kernels: {expected}, got shape {np.shape(source)}")
        return source, n, tol

    def _put(self, span: Span, initial: bool, rewards: bool) -> None:
        """Write states that were checked; what they have in common must be the same for all."""
        named = not isinstance(span.names, range)
        kinds = {
            "rewards instead of costs": rewards,
            "the dimensions of the costs": span.costs.ndim,
            "initial": initial,
            "names of states": named,
            "sparse kernels": span.blocks.is_sparse,
            "counts": None if span.counts is None else span.counts.n_kernels,
        }
        self._kinds = self._kinds or kinds
        for words, kind in kinds.items():
            if kind != self._kinds[words]:
                raise InputError(f"{words}: not as in the blocks before state {self._files.n:,}")
        self._index = {"sparse": span.blocks.is_sparse, "maximise": rewards}
        self._files.add(span, initial, named)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._files.abort()

    def close(self) -> None:
        """Put the model in its place; all states must have been written."""
        head = self._head
        if self._files.n != head.n_states:
            self._files.abort()
            written = f"{self._files.n:,} states were written"
            raise InputError(f"{written}, but n_states is {head.n_states:,}")
        head = replace(head, notes=(*head.notes, *self._scaled.note))
        shape = [head.n_kernels, head.n_states, head.n_actions]
        self._files.finish(index_of(FORMAT, head, shape, **self._index))


class _Known:
    """Names of some states; others go by their number."""

    def __init__(self, first: int, names: Names) -> None:
        self._first, self._names = first, names

    def __getitem__(self, s: int) -> Any:
        return self._names[s - self._first] if 0 <= s - self._first < len(self._names) else s


def _flags(name: str, given: ArrayLike, shape: tuple[int, ...], default: bool) -> BoolArray:
    return np.full(shape, default) if given is None else checks.flag_array(name, given, shape)


def _masses(initial: ArrayLike, n: int, labels: distributions.Labels) -> Array:
    mass = checks.numbers("initial", initial)
    checks.check_shape("initial", mass, (n,))
    for s in np.flatnonzero(~((mass >= 0) & (mass < np.inf)))[:1].tolist():
        place = f"state {labels.states[labels.first + s]!r}"
        raise InputError(f"initial: {place} has {float(mass[s])!r}, expected a probability")
    return mass


SHARED = ("n_states", "n_actions", "n_kernels", "discount", "actions", "kernel_names", "notes")
"""What a `Writer` is told of a model, a head or a source of instances."""


def write_spans(path: Path, head: Head, parts: Iterable[Span], initial: bool) -> None:
    """Write a model that was checked before, of spans of all its states in order."""
    settings: Any = {name: getattr(head, name) for name in (*SHARED, "weights", "dtype")}
    with Writer(path, **settings) as writer:
        writer._head = replace(writer._head, start=head.start, origin=head.origin)
        for span in parts:
            writer._put(span, initial, head.maximise)


def write_drawn(source: Any, path: str | os.PathLike[str], dtype: Any = np.float64) -> None:
    """Write a problem that is drawn block by block, one of `drmdp.instances.SOURCES`."""
    settings: Any = {name: getattr(source, name) for name in SHARED}
    with Writer(path, **settings, dtype=dtype) as writer:
        for part in source.blocks():
            arrays = {name: getattr(part, name) for name in ("available", "terminal", "initial")}
            arrays["rewards" if source.maximise else "costs"] = part.costs
            writer.append(part.kernels, states=part.names, **arrays)
