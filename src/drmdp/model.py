"""What is known: costs, N weighted kernels, discount, start distribution, names.

A distributionally robust MDP has states s, actions a, next states t, a discount λ in [0, 1), costs c(s, a) or
c(s, a, t), and N observed kernels ŷ_i with weights w_i. Inside the package **the agent minimises cost and nature
maximises it**; rewards are negated here and negated back where results leave.

An unavailable pair (s, a) is never played and its rows are never read. A terminal state has value 0 and no action:
the process ends there, so nature has nothing to move in it. Nature may still change how likely it is to be reached.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Hashable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import kernels as storage
from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.errors import InputError, shown
from drmdp.kernels import Kernels

Names = Sequence[Hashable]


class Model:
    """A Markov decision process with N observed kernels; validated once, immutable.

    Parameters
    ----------
    kernels : (N, S, A, S) or (S, A, S) array, or a sequence of N scipy.sparse matrices (S·A, S)
        Row s·A + a of a sparse matrix is the distribution of the next state. Rows whose sum differs from 1 by at most
        1e-9 (1e-6 if given in float32) are renormalised, and `notes` says so; the bits of all others are kept.
    costs, rewards : (S,), (S, A) or (S, A, S) array, or a sparse (S·A, S) matrix
        Exactly one of the two. With (S, A, S) the cost depends on the next state and nature moves it with the mass;
        NaN means "unknown" and is legal only for transitions that no kernel has; such a model needs
        ``support="observed"``. So does one with a sparse matrix, which is read only where some kernel has the
        transition (and is 0 there if it holds nothing).
    discount : float in [0, 1)
    weights : (N,) array, optional
        Weights of the kernels, summing to 1; equal by default.
    initial : (S,) array or mapping from state to probability, optional
        Start distribution; uniform by default. Used only for averages over states.
    states, actions : sequences of names, optional
        Distinct strings or integers (of up to 128 bits); 0, 1, 2, … by default.
    available : (S, A) bool array or mapping from state to the actions it has, optional
        All by default; in a mapping, states not mentioned have all actions.
    terminal : (S,) bool array or collection of state names, optional

    Examples
    --------
    >>> import numpy as np, drmdp
    >>> stay, go = np.eye(2), np.full((2, 2), 0.5)
    >>> drmdp.Model(np.stack([stay, go], axis=1), costs=[[0.0, 1.0], [2.0, 3.0]], discount=0.9)
    Model: 2 states × 2 actions × 1 kernel, discount 0.9
      costs (S, A) in [0, 3]
      dense, 75% of the probabilities stored, 222 bytes
    """

    n_states: int
    n_actions: int
    n_kernels: int
    discount: float
    weights: Array
    initial: Array
    states: Names
    actions: Names
    available: BoolArray
    terminal: BoolArray
    blocks: Kernels
    mean: Array
    _costs: Array
    is_sparse: bool
    maximise: bool
    notes: tuple[str, ...]

    def __init__(
        self,
        kernels: ArrayLike,
        *,
        costs: ArrayLike = None,
        rewards: ArrayLike = None,
        discount: float,
        weights: ArrayLike = None,
        initial: ArrayLike = None,
        states: Names | None = None,
        actions: Names | None = None,
        available: ArrayLike = None,
        terminal: ArrayLike = None,
    ) -> None:
        if (costs is None) == (rewards is None):
            raise InputError(f"give exactly one of costs and rewards, got {'neither' if costs is None else 'both'}")
        given = costs if rewards is None else rewards
        source, N, S, A, row_sum_tol = _kernel_shape(kernels)
        state_names, action_names = _names("states", states, S), _names("actions", actions, A)
        end = _terminal(terminal, state_names)
        open_pairs = _available(available, state_names, action_names) & ~end[:, None]
        stuck = ~open_pairs.any(axis=1) & ~end
        if stuck.any():
            raise InputError(f"state {state_names[int(np.argmax(stuck))]!r} has no available action")
        if isinstance(source, Kernels):
            blocks = source
        elif isinstance(source, np.ndarray):
            blocks = storage.compress_dense(source, open_pairs)
        else:
            blocks = storage.compress_sparse(source, open_pairs)
        blocks, notes = storage.check(blocks, open_pairs, state_names, action_names, row_sum_tol)
        self._set(
            n_states=S,
            n_actions=A,
            n_kernels=N,
            discount=_discount(discount),
            weights=_distribution("weights", weights, range(N), "kernel"),
            initial=_distribution("initial", initial, state_names, "state"),
            states=state_names,
            actions=action_names,
            available=open_pairs,
            terminal=end,
            blocks=blocks,
            is_sparse=blocks.is_sparse,
            maximise=rewards is not None,
            notes=notes,
        )
        name = "costs" if rewards is None else "rewards"
        value = _costs(name, given, self)
        self._set(_costs=0.0 - value if self.maximise else value)  # never −0.0, which would be another fingerprint
        self._set(mean=_frozen(blocks.mean(self.weights)))

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Model is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Model is immutable: cannot delete {name!r}")

    # ------------------------------------------------------------------ what the user gave

    @property
    def costs(self) -> Any:
        """Costs (negated rewards): (S, A), or (S, A, S) or sparse (S·A, S) when they depend on the next state."""
        return self.blocks.matrix(self._costs) if self._costs.ndim == 1 else self._costs

    @property
    def kernels(self) -> Any:
        """The N kernels, (N, S, A, S) or a list of N sparse (S·A, S) matrices; unavailable rows are zero."""
        if not self.is_sparse:
            return np.ascontiguousarray(self.blocks.dense(0, self.n_states).transpose(2, 0, 1, 3))
        blocks = self.blocks
        return [_no_zeros(blocks.matrix(blocks.data[blocks.positions(i)])) for i in range(self.n_kernels)]

    @property
    def mean_kernel(self) -> Any:
        """Σ_i w_i ŷ_i, (S, A, S) or sparse (S·A, S)."""
        matrix = self.blocks.matrix(self.mean)
        shape = (self.n_states, self.n_actions, self.n_states)
        return _no_zeros(matrix) if self.is_sparse else matrix.toarray().reshape(shape)

    # ------------------------------------------------------------------ what the operators need

    @property
    def next_costs(self) -> bool:
        """Whether costs depend on the next state."""
        return self._costs.ndim != 2

    @property
    def cost_range(self) -> tuple[float, float]:
        """Smallest and largest known cost of the available pairs; zeros if there are none."""
        known = self._costs if self._costs.ndim == 1 else self._costs[self.available]
        return (float(np.nanmin(known)), float(np.nanmax(known))) if known.size else (0.0, 0.0)

    @property
    def costs_missing(self) -> bool:
        """Whether some transition that no kernel has lacks a cost."""
        if self._costs.ndim == 2:
            return False
        if self._costs.ndim == 1:
            return bool((self.blocks.lengths < self.n_states)[self.available.ravel()].any())
        return bool(np.isnan(self._costs).any())

    def stakes(self, value: Array, start: int, stop: int) -> Array:
        """Stakes z = c(s, a, t) + λ v(t) for the states start … stop − 1, (n, A, S); NaN where the cost is unknown."""
        future = self.discount * value
        if self._costs.ndim == 2:
            return np.asarray(self._costs[start:stop, :, None] + future)
        if self._costs.ndim == 3:
            return np.asarray(self._costs[start:stop] + future)
        z = np.full((stop - start, self.n_actions, self.n_states), np.nan)
        lo, hi = self.blocks.indptr[start * self.n_actions], self.blocks.indptr[stop * self.n_actions]
        mask = self.blocks.mask(start, stop)
        z[mask] = self._costs[lo:hi]
        return z + future

    def listed_costs(self) -> Array:
        """Next-state costs in the order of the stored columns, (nnz,)."""
        if self._costs.ndim == 1:
            return self._costs
        pair = np.repeat(np.arange(self.n_states * self.n_actions), self.blocks.lengths)
        flat = self._costs.reshape(-1, self.n_states)
        return np.asarray(flat[pair, self.blocks.indices])

    def observed(self, start: int, stop: int) -> BoolArray:
        """Which next states some kernel with positive weight reaches, (n, A, S)."""
        if (self.weights > 0).all():
            return self.blocks.mask(start, stop)
        return np.asarray((self.blocks.dense(start, stop)[:, :, self.weights > 0] > 0).any(axis=2))

    def policy(self, policy: ArrayLike) -> Array:
        """Check a policy and return it as (S, A), rows summing to 1, zero in terminal states.

        `policy` is an (S, A) array of probabilities, an (S,) array of action numbers, or a mapping from every state
        that is not terminal to an action or to a mapping from actions to probabilities.
        """
        S, A = self.n_states, self.n_actions
        tol = storage.ROW_SUM_TOL
        if isinstance(policy, Mapping):
            x = self._policy_from_mapping(policy)
        else:
            x, tol = _numbers("policy", policy)
            if x.shape == (S,):
                x = self._policy_from_actions(x)
            elif x.shape != (S, A):
                raise InputError(f"policy: expected shape {(S, A)} or {(S,)}, got {x.shape}")
        x = np.where(self.terminal[:, None], 0.0, x)
        for bad, rule in (
            (~np.isfinite(x), "probabilities must be finite"),
            (x < 0, "probabilities must not be negative"),
            ((x > 0) & ~self.available, "an unavailable action is played"),
        ):
            if bad.any():
                s, a = np.argwhere(bad)[0]
                where = f"state {self.states[s]!r}, action {self.actions[a]!r}"
                raise InputError(f"policy: {rule}: {where} has {float(x[s, a])!r}")
        with np.errstate(over="ignore"):
            total = x.sum(axis=1)
        off = np.where(self.terminal, 0, np.abs(total - 1))
        if off.max() > tol:
            s = int(np.argmax(off > tol))
            raise InputError(f"policy: state {self.states[s]!r} sums to {float(total[s])!r}, not 1")
        return x / np.where(self.terminal, 1, total)[:, None]

    def _policy_from_actions(self, chosen: Array) -> Array:
        x = np.zeros((self.n_states, self.n_actions))
        for s in np.flatnonzero(~self.terminal).tolist():
            a = float(chosen[s])
            if not (0 <= a < self.n_actions and a == int(a)):
                rule = f"expected action numbers 0 … {self.n_actions - 1}"
                raise InputError(f"policy: {rule}: state {self.states[s]!r} has {a!r}")
            x[s, int(a)] = 1
        return x

    def _policy_from_mapping(self, policy: Mapping[Any, Any]) -> Array:
        x = np.zeros((self.n_states, self.n_actions))
        rows, columns = _lookup(self.states), _lookup(self.actions)
        missing = ~self.terminal
        for state, choice in policy.items():
            s = _find(rows, state, "policy", "state")
            missing[s] = False
            where = f"policy: state {self.states[s]!r}"
            for action, probability in choice.items() if isinstance(choice, Mapping) else ((choice, 1.0),):
                a = _find(columns, action, where, "action")
                x[s, a] = number(f"{where}, action {self.actions[a]!r}", probability)
        if missing.any():
            raise InputError(f"policy: state {self.states[int(np.argmax(missing))]!r} is missing")
        return x

    # ------------------------------------------------------------------ looks

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        held = (self._costs, self.mean, self.weights, self.initial, self.available, self.terminal)
        return self.blocks.nbytes + sum(array.nbytes for array in held)

    @property
    def fingerprint(self) -> str:
        """Hash of everything that defines the problem: equal models, and only they, share it."""
        digest = hashlib.sha256()
        blocks = self.blocks
        for array in (
            blocks.indptr, blocks.indices, blocks.data, self._costs, self.weights, self.initial,
            self.available, self.terminal, np.array([self.discount, self.maximise], dtype=float),
        ):  # fmt: skip
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
        digest.update(repr((list(self.states), list(self.actions))).encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        S, A, N = self.n_states, self.n_actions, self.n_kernels
        lo, hi = self.cost_range
        if self.maximise:
            lo, hi = -hi, -lo
        name = "rewards" if self.maximise else "costs"
        shape = "(S, A, S)" if self.next_costs else "(S, A)"
        share = self.blocks.indices.size / (S * A * S)
        kind = "sparse" if self.is_sparse else "dense"
        lines = [
            f"Model: {_count(S, 'state')} × {_count(A, 'action')} × {_count(N, 'kernel')}, discount {self.discount:g}",
            f"  {name} {shape} in [{lo:g}, {hi:g}]",
            f"  {kind}, {share:.2g} of the probabilities stored, {_bytes(self.nbytes)}"
            if share < 0.01
            else f"  {kind}, {share:.0%} of the probabilities stored, {_bytes(self.nbytes)}",
        ]
        closed = int((~self.available[~self.terminal]).sum())
        if closed or self.terminal.any():
            ends = int(self.terminal.sum())
            lines.append(f"  {_count(closed, 'unavailable pair')}, {_count(ends, 'terminal state')}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


# ---------------------------------------------------------------------- validation, one function a subject


def numbers(name: str, given: ArrayLike) -> Array:
    """Convert to a float64 array of our own, or say what was given instead; masked entries become NaN."""
    return _numbers(name, given)[0]


def _numbers(name: str, given: ArrayLike) -> tuple[Array, float]:
    """Give the `numbers`, and how far from 1 a distribution with their original precision may sum."""
    array = _array(name, given)
    if array.dtype.kind not in _REAL:
        raise InputError(f"{name}: expected an array of numbers, got {type(given).__name__} of dtype {array.dtype}")
    with np.errstate(over="ignore"):  # long doubles: infinity says enough
        own = np.array(array, dtype=np.float64, order="C")
    if isinstance(given, np.ma.MaskedArray):
        own[np.ma.getmaskarray(given)] = np.nan
    own += 0.0  # −0.0 becomes 0.0: equal models have equal bits
    return own, storage.row_sum_tol(array.dtype)


def number(name: str, given: Any, expected: str = "a number") -> float:
    """Convert to a float, or say what was given instead."""
    try:
        value = numbers(name, given)
    except InputError:
        value = np.empty(1)
    if value.ndim:
        raise InputError(f"{name}: expected {expected}, got {shown(given)}")
    return float(value)


_REAL = "biuf"
"""Kinds of dtype that are taken for numbers."""


def _array(name: str, given: ArrayLike) -> Any:
    if isinstance(given, np.ndarray):
        return np.asarray(given)
    try:
        with warnings.catch_warnings():  # on the way; what came of it is checked
            warnings.simplefilter("ignore")
            return np.asarray(given)
    except MemoryError:
        raise
    except Exception as error:  # `given` may be any object, with an __array__ of its own
        raise InputError(f"{name}: expected an array of numbers: {' '.join(str(error).split())}") from None


def _kernel_shape(kernels: ArrayLike) -> tuple[Any, int, int, int, float]:
    """Sort out the forms of kernels: a 4-d array, a list of sparse matrices or blocks; N, S, A; row sum tolerance."""
    if isinstance(kernels, Kernels):
        return kernels, kernels.n_kernels, kernels.n_states, kernels.n_actions, storage.ROW_SUM_TOL
    if sparse.issparse(kernels):
        kernels = [kernels]
    if isinstance(kernels, Sequence) and len(kernels) and all(sparse.issparse(k) for k in kernels):
        return _sparse_shape(list(kernels))
    array, tol = _numbers("kernels", kernels)
    shape = array.shape
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[1] != array.shape[3] or 0 in shape:
        raise InputError(f"kernels: expected shape (N, S, A, S) or (S, A, S) with no size 0, got {shape}")
    N, S, A, _ = array.shape
    return array, N, S, A, tol


def _sparse_shape(matrices: list[Any]) -> tuple[Any, int, int, int, float]:
    shape = matrices[0].shape
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2 or 0 in matrix.shape or matrix.shape[0] % matrix.shape[1]:
            raise InputError(f"kernels: kernel {i}: expected a sparse matrix of shape (S·A, S), got {matrix.shape}")
        if matrix.shape != shape:
            raise InputError(f"kernels: kernel {i} has shape {matrix.shape}, but kernel 0 has {shape}")
        _check_sparse(f"kernels: kernel {i}", matrix)
    tol = max(storage.row_sum_tol(matrix.dtype) for matrix in matrices)
    return matrices, len(matrices), shape[1], shape[0] // shape[1], tol


def _check_sparse(name: str, matrix: Any) -> None:
    if matrix.dtype.kind not in _REAL:
        raise InputError(f"{name}: expected real numbers, got dtype {matrix.dtype}")
    try:  # scipy checks indices only on request, and follows wrong ones out of the array
        matrix.check_format(full_check=True) if hasattr(matrix, "check_format") else matrix.tocoo(copy=True)
    except ValueError as error:
        raise InputError(f"{name}: not a valid sparse matrix: {error}") from None


def _names(name: str, given: Names | None, size: int) -> Names:
    if given is None:
        return range(size)
    labels = _items(given, size + 1)
    if labels is None or isinstance(given, set | frozenset):  # a set has no order
        raise InputError(f"{name}: expected a sequence of {size} names, got {shown(given)}")
    names = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    if len(names) != size:
        raise InputError(f"{name}: expected {size} names, got {'more' if len(names) > size else len(names)}")
    for label in names:
        small = isinstance(label, int) and not isinstance(label, bool) and label.bit_length() <= 128
        if not (isinstance(label, str) or small):
            raise InputError(f"{name}: names are strings or integers of up to 128 bits, got {shown(label)}")
    if len(set(names)) < size:
        twice = next(label for k, label in enumerate(names) if label in names[:k])
        raise InputError(f"{name}: the name {twice!r} is given twice")
    return names if names != tuple(range(size)) else range(size)


def _lookup(names: Names) -> dict[Hashable, int]:
    return {name: index for index, name in enumerate(names)}


def _items(given: Any, most: int) -> list[Any] | None:
    """Up to `most` items of a collection; None if it is not one, a string or a mapping."""
    if isinstance(given, str | bytes | Mapping):
        return None
    try:
        return list(islice(given, most))
    except TypeError:
        return None


def _is_flag(given: Any) -> bool:
    return isinstance(given, bool | np.bool_)


def _find(table: dict[Hashable, int], name: Any, where: str, kind: str) -> int:
    try:
        if not _is_flag(name):  # True is not state 1
            return table[name]
    except (KeyError, TypeError):
        pass
    some = ", ".join(repr(known) for known in list(table)[:5]) + (", …" if len(table) > 5 else "")
    raise InputError(f"{where}: unknown {kind} {shown(name)}; known: {some}")


def _discount(discount: Any) -> float:
    value = number("discount", discount, "a number in [0, 1)")
    if not 0 <= value < 1:
        raise InputError(f"discount: expected a number in [0, 1), got {shown(discount)}")
    return value


def _distribution(name: str, given: ArrayLike, names: Names, kind: str) -> Array:
    size, tol = len(names), storage.ROW_SUM_TOL
    if given is None:
        return np.full(size, 1 / size)
    if isinstance(given, Mapping):
        table = _lookup(names)
        p = np.zeros(size)
        for label, probability in given.items():
            k = _find(table, label, name, kind)
            p[k] = number(f"{name}: {kind} {names[k]!r}", probability)
    else:
        p, tol = _numbers(name, given)
    if p.shape != (size,):
        raise InputError(f"{name}: expected shape {(size,)}, got {p.shape}")
    for bad, rule in ((~np.isfinite(p), "must be finite"), (p < 0, "must not be negative")):
        if bad.any():
            k = int(np.argmax(bad))
            raise InputError(f"{name} {rule}: {kind} {names[k]!r} has {float(p[k])!r}")
    with np.errstate(over="ignore"):
        total = p.sum()
    if abs(total - 1) > tol:
        raise InputError(f"{name} must sum to 1, got {float(total)!r}")
    return p / total if abs(total - 1) > storage.rounding(size) else p


def _flags(name: str, given: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    array = _array(name, given)
    if array.shape != shape or array.dtype != np.bool_:
        raise InputError(f"{name}: expected a bool array of shape {shape}, got {array.dtype} {array.shape}")
    if isinstance(given, np.ma.MaskedArray) and np.ma.getmaskarray(given).any():
        raise InputError(f"{name}: entry {np.argwhere(np.ma.getmaskarray(given))[0].tolist()} is masked")
    return np.array(array)


def _terminal(given: ArrayLike, states: Names) -> BoolArray:
    flags = np.zeros(len(states), dtype=bool)
    if given is None:
        return flags
    labels = None if isinstance(given, np.ndarray) else _items(given, len(states) + 1)
    if isinstance(given, np.ndarray) or (labels and any(map(_is_flag, labels))):
        return _flags("terminal", given if labels is None else labels, (len(states),))
    if labels is None:
        raise InputError(f"terminal: expected a bool array or a collection of state names, got {shown(given)}")
    table = _lookup(states)
    for state in labels:
        s = _find(table, state, "terminal", "state")
        if flags[s]:  # 0 and 1 meant as flags, most likely
            raise InputError(f"terminal: state {states[s]!r} is given twice")
        flags[s] = True
    return flags


def _available(given: ArrayLike, states: Names, actions: Names) -> BoolArray:
    shape = (len(states), len(actions))
    if given is None:
        return np.ones(shape, dtype=bool)
    if not isinstance(given, Mapping):
        return _flags("available", given, shape)
    flags = np.ones(shape, dtype=bool)
    rows, columns = _lookup(states), _lookup(actions)
    for state, own in given.items():
        s = _find(rows, state, "available", "state")
        where = f"available: state {states[s]!r}"
        labels = _items(own, len(actions) + 1)
        if labels is None:
            raise InputError(f"{where}: expected a collection of actions, got {shown(own)}")
        flags[s] = False
        for action in labels:
            a = _find(columns, action, where, "action")
            if flags[s, a]:
                raise InputError(f"{where}: action {actions[a]!r} is given twice")
            flags[s, a] = True
    return flags


_LARGEST = 1e300
"""No cost/(1 − discount) may exceed this: room for a value and its rounding before infinity."""


def _costs(name: str, given: ArrayLike, model: Model) -> Array:
    """Bring costs to (S, A), to (S, A, S), or to (nnz,) in the order of the stored columns."""
    S, A = model.n_states, model.n_actions
    blocks = model.blocks
    limit = _LARGEST * (1 - model.discount)
    if sparse.issparse(given):
        if given.shape != (S * A, S):
            raise InputError(f"{name}: expected a sparse matrix of shape {(S * A, S)}, got {given.shape}")
        _check_sparse(name, given)
        pair = np.repeat(np.arange(S * A), blocks.lengths)
        with np.errstate(over="ignore"):
            matrix = sparse.csr_array(given.astype(np.float64))
            value = np.asarray(matrix[pair, blocks.indices]).ravel() + 0.0 if pair.size else np.zeros(0)
        bad = ~(np.abs(value) <= limit)
        if bad.any():
            k = int(np.argmax(bad))
            raise InputError(_cost_message(name, model, (*divmod(int(pair[k]), A), int(blocks.indices[k])), value[k]))
        return value
    value = numbers(name, given)
    if value.shape == (S,):
        value = np.repeat(value[:, None], A, axis=1)
    if value.shape not in ((S, A), (S, A, S)):
        raise InputError(f"{name}: expected shape {(S, A)}, {(S,)} or {(S, A, S)}, got {value.shape}")
    if value.ndim == 2:
        value = np.where(model.available, value, 0.0)
        bad = ~(np.abs(value) <= limit)
    else:
        value = np.where(model.available[:, :, None], value, 0.0)
        bad = (np.abs(value) > limit) | (np.isnan(value) & blocks.mask(0, S))
    if bad.any():
        where = np.argwhere(bad)[0].tolist()
        raise InputError(_cost_message(name, model, where, value[tuple(where)]))
    return value


def _cost_message(name: str, model: Model, where: Sequence[int], value: float) -> str:
    place = f"state {model.states[where[0]]!r}, action {model.actions[where[1]]!r}"
    place += f", next state {model.states[where[2]]!r}" if len(where) > 2 else ""
    small = f"at most {_LARGEST * (1 - model.discount):.2g} in size, or values overflow"
    rule = small if np.isfinite(value) else "finite"
    return f"{name} must be {rule}: {place} has {float(value)!r}"


def _no_zeros(matrix: Any) -> Any:
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    return matrix


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def _bytes(n: int) -> str:
    size, unit = float(n), "bytes"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.3g} {unit}"
