"""Large models are written state after state, in bounded memory; see `drmdp.formats._stored` for the files.

All files grow in a hidden directory beside the target. model.json is written last, and only then is the directory moved to its place, in one step. A process
that is killed leaves that hidden directory, which has no model.json and may be deleted. Blocks are checked as they come, by the rules of `drmdp.Model`.

Memory does not grow with the number of states: a block, and what it takes to check it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike
from drmdp.core import distributions, spans, storage
from drmdp.core import validation as checks
from drmdp.core.counts import counts_of
from drmdp.core.spans import Head, Span
from drmdp.core.storage import Kernels
from drmdp.core.validation import Names
from drmdp.errors import InputError
from drmdp.formats._growing import Files, index_of
from drmdp.formats._stored import FORMAT


class Writer:
    """Write a .drmdp directory, states in blocks, without ever holding the model.

    Use it in a ``with`` statement: at its end the model is put in its place, completely; after an exception nothing is left.

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
        N, S, A = (
            checks.whole(name, n, 1, 2**31 - 1)
            for name, n in (("n_kernels", n_kernels), ("n_states", n_states), ("n_actions", n_actions))
        )
        kernel_names = checks.names_of("kernel_names", kernel_names, N)
        self._head = Head(
            n_kernels=N,
            n_states=S,
            n_actions=A,
            discount=checks.discount_of(discount),
            weights=checks.distribution("weights", weights, kernel_names, "kernel"),
            maximise=False,
            is_sparse=True,
            dtype=checks.storage_dtype(dtype),
            costs=2,
            actions=checks.names_of("actions", actions, A),
            kernel_names=kernel_names,
            notes=checks.notes_of(notes),
        )
        self._scaled = distributions.Scaled(normalize)
        self._files = Files(path)
        self._kinds: tuple[Any, ...] | None = None
        self._rewards = False

    @property
    def n_written(self) -> int:
        """States appended so far."""
        return self._files.n

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
            Exactly one of the two, and the same one with the same number of dimensions in every block.
        available : (n, A) bool array, optional
            Which actions each state has; all by default.
        terminal : (n,) bool array, optional
            Where the process ends; nowhere by default.
        initial : (n,) array, optional
            With every block or with none; over all states it sums to 1.
        states : sequence of n names, optional
            With every block or with none.
        counts : (N, n, A, S) or (n, A, S) array, or sparse (n·A, S) matrices, optional
            How often each transition was seen; with every block or with none, and by kernel in all or in none.
        """
        if (costs is None) == (rewards is None):
            raise InputError(f"give exactly one of costs and rewards, got {'neither' if costs is None else 'both'}")
        head, first = self._head, self._files.n
        source, n, tol = self._source(kernels)
        if n > head.n_states - first:
            raise InputError(f"{first + n:,} states, but n_states is {head.n_states:,}")
        names = range(first, first + n) if states is None else tuple(checks.names_of("states", states, n))
        known: Any = range(head.n_states) if states is None else _Known(first, names)
        labels = distributions.Labels(head.kernel_names, known, head.actions, first)
        end = np.zeros(n, dtype=bool) if terminal is None else checks.flag_array("terminal", terminal, (n,))
        open_pairs = np.ones((n, head.n_actions), dtype=bool)
        if available is not None:
            open_pairs = checks.flag_array("available", available, open_pairs.shape)
        open_pairs &= ~end[:, None]
        spans.check_open(open_pairs, end, labels)
        slack = storage.NEGATIVE_NORMALIZED if self._scaled.normalize else storage.NEGATIVE
        blocks = storage.compressed(source, open_pairs, slack)
        blocks = distributions.check(blocks, open_pairs, labels, tol, self._scaled).astype(head.dtype)
        name, given = ("costs", costs) if rewards is None else ("rewards", rewards)
        value = checks.costs_of(name, given, blocks, open_pairs, head.discount, labels)
        value = value if rewards is None else 0.0 - value
        mass = np.zeros(n) if initial is None else _masses(initial, n, labels)
        seen = counts_of(counts, n, head.n_states, labels, blocks.is_sparse)
        span = Span(first, names, blocks, value, open_pairs, end, mass, seen)
        self._put(span, initial is not None, rewards is not None)

    def _source(self, kernels: ArrayLike) -> tuple[Any, int, float]:
        """Kernels of a block in one of three forms, how many states they are of, and how far a row may be off."""
        N, S, A = self._head.n_kernels, self._head.n_states, self._head.n_actions
        if isinstance(kernels, Kernels):
            found: Any = kernels
            shape: Any = (kernels.n_kernels, kernels.indptr.size - 1, kernels.n_states)
            tol = storage.ROW_SUM_TOL
            k = storage.wrong_column(kernels.indptr, kernels.indices, S)
            if k >= 0:
                raise InputError(
                    f"kernels: entry {k} of indices is {int(kernels.indices[k])}, expected ascending states below {S}"
                )
        elif sparse.issparse(kernels) or (isinstance(kernels, list | tuple) and any(map(sparse.issparse, kernels))):
            found = [kernels] if sparse.issparse(kernels) else list(kernels)
            for i, matrix in enumerate(found):
                if not sparse.issparse(matrix) or matrix.ndim != 2 or matrix.shape != found[0].shape:
                    raise InputError(f"kernels: kernel {i}: expected a sparse matrix (n·A, S) like kernel 0")
                checks.check_sparse(f"kernels: kernel {i}", matrix)
            shape = (len(found), *found[0].shape)
            tol = max(storage.row_sum_tol(matrix.dtype) for matrix in found)
        else:
            found, tol = checks.numbers_with_slack("kernels", kernels)
            found = found[None] if found.ndim == 3 else found
            shape = (
                (found.shape[0], found.shape[1] * found.shape[2], found.shape[3]) if found.ndim == 4 else found.shape
            )
        n, rest = divmod(shape[1], A) if len(shape) == 3 else (0, 0)
        if n == 0 or rest or (shape[0], shape[2]) != (N, S) or (isinstance(found, np.ndarray) and found.shape[2] != A):
            raise InputError(
                f"kernels: expected those of n states for N, S, A = {N}, {S}, {A}, got shape {np.shape(found)}"
            )
        return found, n, tol

    def _put(self, span: Span, initial: bool, rewards: bool) -> None:
        """Write states that were checked; what they have in common must be the same for all."""
        named = not isinstance(span.names, range)
        seen = None if span.counts is None else span.counts.n_kernels
        kinds = (rewards, span.costs.ndim, initial, named, span.blocks.is_sparse, seen)
        if self._kinds is None:
            self._kinds = kinds
        words = (
            "rewards instead of costs",
            "the dimensions of the costs",
            "initial",
            "names of states",
            "sparse kernels",
            "counts",
        )
        for word, one, other in zip(words, self._kinds, kinds, strict=True):
            if one != other:
                raise InputError(f"{word}: not as in the blocks before state {self._files.n:,}")
        self._files.add(span, initial, named)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._files.abort()

    def close(self) -> None:
        """Put the model in its place; all states must have been written."""
        head = self._head
        if self._files.n != head.n_states or self._kinds is None:
            self._files.abort()
            raise InputError(f"{self._files.n:,} states were written, but n_states is {head.n_states:,}")
        rewards, _, _, _, is_sparse, _ = self._kinds
        head = replace(head, notes=(*head.notes, *self._scaled.note))
        shape = [head.n_kernels, head.n_states, head.n_actions]
        self._files.finish(index_of(FORMAT, head, shape, sparse=is_sparse, maximise=rewards))


class _Known:
    """Names of some states; others go by their number."""

    def __init__(self, first: int, names: Names) -> None:
        self._first, self._names = first, names

    def __getitem__(self, s: int) -> Any:
        return self._names[s - self._first] if 0 <= s - self._first < len(self._names) else s


def _masses(given: ArrayLike, n: int, labels: distributions.Labels) -> Array:
    mass = checks.numbers("initial", given)
    if mass.shape != (n,):
        raise InputError(f"initial: expected shape {(n,)}, got {mass.shape}")
    bad = ~((mass >= 0) & (mass < np.inf))
    if bad.any():
        s = int(np.argmax(bad))
        raise InputError(
            f"initial: state {labels.states[labels.first + s]!r} has {float(mass[s])!r}, expected a probability"
        )
    return mass


def write_spans(path: Path, head: Head, parts: Iterable[Span], initial: bool) -> None:
    """Write a model that was checked before, of spans of all its states in order."""
    given: Any = {name: getattr(head, name) for name in ("n_states", "n_actions", "n_kernels", "discount", "weights")}
    own: Any = {"dtype": head.dtype, "actions": head.actions, "kernel_names": head.kernel_names, "notes": head.notes}
    with Writer(path, **given, **own) as writer:
        writer._head = replace(writer._head, start=head.start, origin=head.origin)
        for span in parts:
            writer._put(span, initial, head.maximise)


def write_drawn(source: Any, path: str | os.PathLike[str], dtype: Any = np.float64) -> None:
    """Write a problem that is drawn block by block, one of `drmdp.instances.SOURCES`."""
    sizes: Any = {name: getattr(source, name) for name in ("n_states", "n_actions", "n_kernels", "discount")}
    own: Any = {name: getattr(source, name) for name in ("actions", "kernel_names", "notes")}
    name = "rewards" if source.maximise else "costs"
    with Writer(path, **sizes, **own, dtype=dtype) as writer:
        for part in source.blocks():
            flags = {"available": part.available, "terminal": part.terminal, "initial": part.initial}
            writer.append(part.kernels, **{name: part.costs}, states=part.names, **flags)
