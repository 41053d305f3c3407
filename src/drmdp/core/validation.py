"""Validation of the arguments of models and solvers, one function a subject.

Each returns clean data or raises an `InputError` that names the place and the value.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core import storage
from drmdp.core.names import RULE, LazyNames, NumberIndex, is_name, same
from drmdp.errors import InputError, first_place, meant, repeated, shown, unexpected
from drmdp.io.archives import parse_json

Names = Sequence[Hashable]
LOW = 0.5
"""Discounts below are asked back: a rate of interest may be meant."""


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Name a place in errors inside."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def only_one(**given: Any) -> tuple[str, Any]:
    """The one of two arguments that was given, and its name."""
    there = [(name, value) for name, value in given.items() if value is not None]
    if len(there) != 1:
        count = "both" if there else "neither"
        raise InputError(f"give exactly one of {' and '.join(given)}, got {count}")
    return there[0]


def numbers(name: str, given: ArrayLike) -> Array:
    """Convert to a new float64 array; masked entries become NaN."""
    return numbers_with_slack(name, given)[0]


def numbers_with_slack(name: str, given: ArrayLike) -> tuple[Array, float]:
    """The `numbers`, and how far from 1 a distribution in their dtype may sum."""
    array = _array(name, given)
    if array.dtype.kind not in _REAL:
        kind = f"{type(given).__name__} of dtype {array.dtype}"
        raise InputError(f"{name}: expected an array of numbers, got {kind}")
    with np.errstate(over="ignore"):  # long doubles: infinity says enough
        copy = np.array(array, dtype=np.float64, order="C")
    if isinstance(given, np.ma.MaskedArray):
        copy[np.ma.getmaskarray(given)] = np.nan
    copy += 0.0  # −0.0 becomes 0.0: equal models have equal bits
    return copy, storage.row_sum_tol(array.dtype)


def number(name: str, given: Any, expected: str = "a number") -> float:
    """Convert to a float."""
    if type(given) is float:
        return given + 0.0
    try:
        value = numbers(name, given)
    except InputError:
        value = np.empty(1)
    if value.ndim:
        raise InputError(f"{name}: expected {expected}, got {shown(given)}")
    return float(value)


def number_from(low: float, name: str, given: Any, expected: str, high: float = math.inf) -> float:
    """A finite number of at least `low`, and at most `high`."""
    value = number(name, given, expected)
    if not low <= value <= high or value == math.inf:
        raise unexpected(name, expected, value)
    return value


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
    except Exception as error:  # `given` may be any object, with any __array__
        reason = _ragged(name, given) or " ".join(str(error).split())
        raise InputError(f"{name}: expected an array of numbers: {reason}") from None


def _nested(given: Any) -> bool:
    return isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0)


def _ragged(name: str, given: Any) -> str | None:
    """Place where the lengths of nested lists differ, in words; None if not in the first 10 000 of
    a level.
    """
    level = [(name, given)]
    for _ in range(5):
        sizes = [len(item) if _nested(item) else None for _, item in level]
        for (place, item), size in zip(level, sizes, strict=True):
            if size != sizes[0]:
                return f"{level[0][0]} {_length(level[0][1])}, but {place} {_length(item)}"
        lists = ((place, item) for place, item in level if _nested(item))
        inner = ((f"{place}[{k}]", part) for place, item in lists for k, part in enumerate(item))
        level = list(islice(inner, 10_000))
    return None


def _length(item: Any) -> str:
    if _nested(item):
        return f"has length {len(item)}"
    return "is one number" if np.isscalar(item) else f"is a {type(item).__name__}"


def check_sparse(name: str, matrix: Any) -> None:
    """Refuse a sparse matrix that is not real or whose indices are wrong."""
    if matrix.dtype.kind not in _REAL:
        raise InputError(f"{name}: expected real numbers, got dtype {matrix.dtype}")
    try:  # scipy checks indices only on request, and follows wrong ones out of the array
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        else:
            matrix.tocoo(copy=True)
    except ValueError as error:
        raise InputError(f"{name}: not a valid sparse matrix: {error}") from None


def names_of(name: str, given: Names | None, size: int) -> Names:
    """Distinct names of the right number: as a tuple, as a range where they are 0, 1, 2 and so on,
    or as they are in a file.
    """
    if given is None or (isinstance(given, range) and given == range(size)):
        return range(size)
    if isinstance(given, LazyNames) and len(given) == size:
        return given
    labels = items_of(given, size + 1)
    if labels is None or isinstance(given, set | frozenset):  # a set has no order
        raise unexpected(name, f"a sequence of {size} names", given)
    names = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    if len(names) != size:
        length = "more" if len(names) > size else len(names)
        raise InputError(f"{name}: expected {size} names, got {length}")
    for label in names:
        if not is_name(label):
            raise InputError(f"{name}: {RULE}, got {shown(label)}")
    if len(set(names)) < size:
        raise InputError(f"{name}: the name {shown(repeated(names))} is given twice")
    return names if names != tuple(range(size)) else range(size)


def notes_of(given: Any) -> tuple[str, ...]:
    """Texts of one line each."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if not several or not all(isinstance(note, str) for note in given):
        raise InputError(f"notes: expected a list of texts, got {shown(given)}")
    return tuple(" ".join(note.split()) for note in given)


def start_of(given: Any) -> str | None:
    """Words of one line on where a start distribution comes from, if there are any."""
    if given is not None and not isinstance(given, str):
        raise InputError(f"start: expected a text, got {shown(given)}")
    return None if given is None else " ".join(given.split())


def origin_of(given: Any) -> dict[str, Any] | None:
    """The record of an estimation from a log: an object of JSON, or its text."""
    origin = parse_json(given) if isinstance(given, str) else given
    if origin is None:
        return None
    names = origin.get("stages", []) if isinstance(origin, dict) else None
    right = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not right or not isinstance(origin.get("estimate"), dict):
        raise InputError(f"origin: expected how a log was made a model, got {shown(given)}")
    return dict(origin)


def policy_of(given: Any, model: Any) -> Any:
    """The policy of a result of the same states and actions, that of `drmdp.reach` going on where
    it ended; anything else unchanged.
    """
    policy = getattr(given, "policy", None)
    if not isinstance(policy, np.ndarray):
        return given
    for kind in ("states", "actions"):
        names = getattr(given, kind, None)
        if isinstance(names, Sequence) and not same(names, getattr(model, kind)):
            result = type(given).__name__
            raise InputError(f"policy: the {result} is for other {kind} than the model's")
    goal = getattr(given, "criterion", None) or getattr(given, "settings", {}).get("criterion")
    return going_on(policy, model) if goal == "reach" else policy


def going_on(policy: Array, model: Any) -> Array:
    """A policy, (S, A) or (T, S, A), that plays all available actions alike where it played none,
    as where reaching has ended.
    """
    if policy.shape[-2:] != model.available.shape:
        return policy
    alike = model.available / np.maximum(model.available.sum(axis=1, keepdims=True), 1)
    return np.where(policy.any(axis=-1, keepdims=True), policy, alike)


def kernel_number(model: Any, given: Any, name: str = "kernel") -> int:
    """The number of a kernel, from its number or its name."""
    if isinstance(given, str):
        return find(lookup(model.kernel_names), given, name, "kernel")
    if not is_integer(given) or not 0 <= given < model.n_kernels:
        names = "" if isinstance(model.kernel_names, range) else ", or a name"
        raise unexpected(name, f"a number from 0 to {model.n_kernels - 1}{names}", given)
    return int(given)


def lookup(names: Names) -> Mapping[Hashable, int]:
    """Index by name."""
    if isinstance(names, range):
        return NumberIndex(range(len(names)))
    if isinstance(names, LazyNames) and names.numbers is not None:
        return names.numbers
    table = {name: index for index, name in enumerate(names)}
    if len(table) < len(names):
        raise InputError(f"the name {shown(repeated(names))} is given twice")
    return table


def items_of(given: Any, most: int | None = None) -> list[Any] | None:
    """Items of a collection, at most so many; None if it is not one, a string or a mapping."""
    if isinstance(given, str | bytes | Mapping):
        return None
    try:
        return list(islice(given, most))
    except TypeError:
        return None


def _is_flag(given: Any) -> bool:
    return isinstance(given, bool | np.bool_)


def find(table: Mapping[Hashable, int], name: Any, where: str, kind: str) -> int:
    """Index of a name, or an error that lists some known ones."""
    try:
        if not _is_flag(name):  # True is not state 1
            return table[name]
    except (KeyError, TypeError):
        pass
    known = ", ".join(map(repr, islice(table, 5))) + (", …" if len(table) > 5 else "")
    raise InputError(f"{where}: unknown {kind} {shown(name)}; known: {known}{meant(name, table)}")


def discount_of(discount: Any) -> float:
    """A discount in [0, 1]."""
    return number_from(0.0, "discount", discount, "a number in [0, 1]", 1.0)


def common_discount(discount: Any, what: str) -> float:
    """A discount that all pairs share."""
    if isinstance(discount, list | tuple | np.ndarray):
        cure = "drmdp.Model(kernels, …) takes one for each"
        raise InputError(f"discount: {what} has one for all pairs; {cure}")
    return discount_of(discount)


def low_discount(discount: float) -> str | None:
    """A remark on a discount that may be meant for a rate of interest."""
    if not 0 < discount < LOW:
        return None
    share = f"forgets {1 - discount:.0%} of a cost that comes a step later"
    interest = f"{100 * discount:g} % interest a step is {1 / (1 + discount):.6g}"
    return f"a discount of {discount:g} {share}; {interest}"


def discounts_of(given: Any, available: BoolArray, labels: Any) -> tuple[float, Array | None]:
    """A discount, or the largest of one for each pair (S, A) and these, 0 where a pair is not
    available; None if all are the same.
    """
    if not isinstance(given, list | tuple | np.ndarray):
        return discount_of(given), None
    each = numbers("discount", given)
    if each.shape != available.shape:
        expected = f"expected a number in [0, 1], or one for each pair, shape {available.shape}"
        raise InputError(f"discount: {expected}; got {each.shape}")
    valid = (each >= 0) & (each <= 1)
    each = _by_pair(each, valid, available, labels, "discount must be in [0, 1]")
    known = each[available]
    largest = float(known.max(initial=0.0))
    return largest, None if (known == largest).all() else each


def sojourn_of(given: Any, available: BoolArray, labels: Any) -> Array | None:
    """Mean lengths of steps, (S, A), 0 where a pair is not available; None: all last 1."""
    if given is None:
        return None
    each = numbers("sojourn", given)
    if each.shape not in ((), available.shape[:1], available.shape):
        expected = f"expected a number, one for each state, or shape {available.shape}"
        raise InputError(f"sojourn: {expected}; got {each.shape}")
    each = np.broadcast_to(each[:, None] if each.ndim == 1 else each, available.shape)
    valid = (each > 0) & (each < np.inf)
    return _by_pair(each, valid, available, labels, "sojourn must be positive and finite")


def _by_pair(each: Array, valid: BoolArray, available: BoolArray, labels: Any, rule: str) -> Array:
    """Numbers (S, A) that are valid, and 0 where a pair is not available."""
    if at := first_place((available & ~valid).ravel()):
        raise InputError(f"{rule}: {labels.pair(*at)} has {float(each.ravel()[at])!r}")
    return np.where(available, each, 0.0)


def distribution(name: str, given: ArrayLike, names: Names, kind: str) -> Array:
    """A probability vector over `names`, from an array or a mapping; uniform if not given."""
    size, tol = len(names), storage.ROW_SUM_TOL
    if given is None:
        return np.full(size, 1 / size)
    if isinstance(given, Mapping):
        table = lookup(names)
        p = np.zeros(size)
        for label, probability in given.items():
            k = find(table, label, name, kind)
            p[k] = number(f"{name}: {kind} {names[k]!r}", probability)
    else:
        p, tol = numbers_with_slack(name, given)
    check_shape(name, p, (size,))
    check_probabilities(name, p, lambda k: f"{kind} {names[k]!r}")
    total = math.fsum(p.tolist()) if p.max(initial=0.0) < 1e200 else math.inf
    if abs(total - 1) > tol:
        raise InputError(f"{name} must sum to 1, got {float(total)!r}")
    return p / total if abs(total - 1) > storage.rounding(size) else p


def check_probabilities(what: str, p: Any, place: Callable[..., str]) -> None:
    """Refuse what is infinite or negative; `place` names a place of the array."""
    for bad, rule in ((~np.isfinite(p), "must be finite"), (p < 0, "must not be negative")):
        if at := first_place(bad):
            raise InputError(f"{what} {rule}: {place(*at)} has {float(p[at])!r}")


def flag_array(name: str, given: ArrayLike, shape: tuple[int, ...]) -> BoolArray:
    """A new bool array of this shape."""
    array = _array(name, given)
    if array.shape != shape or array.dtype != np.bool_:
        kind = f"{array.dtype} {array.shape}"
        raise InputError(f"{name}: expected a bool array of shape {shape}, got {kind}")
    if at := first_place(np.ma.getmaskarray(given)):
        raise InputError(f"{name}: entry {list(at)} is masked")
    return np.array(array)


def terminal_of(given: ArrayLike, states: Names) -> tuple[BoolArray, Array | None]:
    """Flags (S,) of the terminal states, from flags, names or a mapping, and their values, (S,);
    None if all are 0.
    """
    if not isinstance(given, Mapping):
        return state_flags("terminal", given, states), None
    table, values = lookup(states), np.zeros(len(states))
    flags = np.zeros(len(states), dtype=bool)
    for state, value in given.items():
        s = find(table, state, "terminal", "state")
        where, kind = f"terminal: state {states[s]!r}", "a final cost or reward"
        if _is_flag(value):
            raise InputError(f"{where}: expected {kind}, got {value}")
        flags[s], values[s] = True, number(where, value, kind)
        if not abs(values[s]) <= LARGEST:
            raise InputError(f"{where}: expected a finite value, got {float(values[s])!r}")
    return flags, values if values.any() else None


def ends_of(given: ArrayLike, terminal: BoolArray) -> Array | None:
    """Values of terminal states, (S,), as a file has them; None if all are 0."""
    if given is None:
        return None
    values = np.array(given, dtype=np.float64)
    check_shape("ends", values, terminal.shape)
    if at := first_place(~(np.abs(values) <= LARGEST) | (~terminal & (values != 0))):
        what = "a finite value" if terminal[at] else "0, for it is not terminal"
        raise unexpected(f"ends: state {at[0]}", what, float(values[at]))
    return values if values.any() else None


def check_shape(name: str, given: Any, shape: tuple[int, ...], kind: str = "") -> None:
    """Refuse an array of another shape."""
    if np.shape(given) != shape:
        raise InputError(f"{name}: expected {kind}shape {shape}, got {np.shape(given)}")


def state_flags(name: str, given: ArrayLike, states: Names) -> BoolArray:
    """Flags (S,) of states, from flags or names."""
    if given is None:
        return np.zeros(len(states), dtype=bool)
    if isinstance(given, np.ndarray):
        return flag_array(name, given, (len(states),))
    alone = isinstance(given, str | int | np.integer) and not _is_flag(given)
    labels = [given] if alone else items_of(given, len(states) + 1)
    if labels and any(map(_is_flag, labels)):
        return flag_array(name, labels, (len(states),))
    if labels is None:
        raise unexpected(name, "a bool array, a state or a collection of states", given)
    return _listed(name, labels, states, lookup(states), "state")


def _listed(where: str, labels: Iterable[Any], names: Names, table: Any, kind: str) -> BoolArray:
    """Flags of the names that are listed, none of them twice; `table` is their `lookup`."""
    flags = np.zeros(len(names), dtype=bool)
    for label in labels:
        k = find(table, label, where, kind)
        if flags[k]:  # 0 and 1 meant as flags, most likely
            raise InputError(f"{where}: {kind} {names[k]!r} is given twice")
        flags[k] = True
    return flags


def available_flags(given: ArrayLike, states: Names, actions: Names) -> BoolArray:
    """Flags (S, A) of the available pairs, from flags or a mapping."""
    shape = (len(states), len(actions))
    if given is None:
        return np.ones(shape, dtype=bool)
    if not isinstance(given, Mapping):
        return flag_array("available", given, shape)
    flags, rows, columns = np.ones(shape, dtype=bool), lookup(states), lookup(actions)
    for state, choice in given.items():
        s = find(rows, state, "available", "state")
        where = f"available: state {states[s]!r}"
        labels = items_of(choice, len(actions) + 1)
        if labels is None:
            raise unexpected(where, "a collection of actions", choice)
        flags[s] = _listed(where, labels, actions, columns, "action")
    return flags


LARGEST, LONGEST = 1e300, 1e16
"""No cost/(1 − discount) may exceed this, room for a value and its rounding before infinity; with
discount 1, no cost times so many steps.
"""


def largest_cost(discount: float) -> float:
    """Bound on the size of costs."""
    return LARGEST * max(1 - discount, 1 / LONGEST)


def costs_of(
    name: str, given: ArrayLike, blocks: Any, available: BoolArray, discount: float, labels: Any
) -> Array:
    """Bring costs of n states to (n, A), to (n, A, S), or to (nnz,) in the order of the stored
    columns of their `blocks`.
    """
    (n, A), S = available.shape, blocks.n_states
    if sparse.issparse(given):
        check_shape(name, given, (n * A, S), "a sparse matrix of ")
        check_sparse(name, given)
        pair = np.repeat(np.arange(n * A), blocks.lengths)
        with np.errstate(over="ignore"):
            matrix = sparse.csr_array(given.astype(np.float64))
        entries: Any = matrix[pair, blocks.indices] if pair.size else ()
        value = np.asarray(entries, dtype=np.float64).ravel() + 0.0
    else:
        value = numbers(name, given)
        if value.shape == (n,):
            value = np.repeat(value[:, None], A, axis=1)
        if value.shape not in ((n, A), (n, A, S)):
            raise unexpected(name, f"shape {(n, A)}, {(n,)} or {(n, A, S)}", value.shape)
        value = np.where(available if value.ndim == 2 else available[:, :, None], value, 0.0)
    check_costs(name, value, blocks, discount, labels)
    return value


def check_costs(name: str, value: Array, blocks: Any, discount: float, labels: Any) -> None:
    """Refuse costs in one of the shapes of `costs_of` that are unknown, infinite or so large that
    values overflow.
    """
    limit = largest_cost(discount)
    if value.ndim == 3:
        bad = (np.abs(value) > limit) | (np.isnan(value) & blocks.mask(0, len(value)))
    else:
        bad = ~(np.abs(value) <= limit)
    if not bad.any():
        return
    k = int(np.argmax(bad))
    pair, t = divmod(k, value.shape[2]) if value.ndim == 3 else (k, None)
    if value.ndim == 1:
        pair, t = int(np.searchsorted(blocks.indptr, k, side="right")) - 1, int(blocks.indices[k])
    place = labels.pair(pair) + ("" if t is None else f", next state {labels.states[t]!r}")
    small = f"at most {limit:.2g} in size, or values overflow"
    rule = small if np.isfinite(value.flat[k]) else "finite"
    raise InputError(f"{name} must be {rule}: {place} has {float(value.flat[k])!r}")


def storage_dtype(given: Any) -> Any:
    """float64 or float32."""
    try:
        dtype = np.dtype(given)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in (np.float64, np.float32):
        raise InputError(f"dtype: kernels are stored in float64 or float32, got {shown(given)}")
    return dtype


def is_integer(given: object) -> TypeGuard[int]:
    """Whether something is a whole number; a flag is none."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def integer(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """Convert a whole number from `least` to `most` to an int."""
    if not is_integer(value) or not least <= value <= most:
        limits = f"from {least:,} to {most:,}" if most > least else f"that is {least}"
        limits = f"of at least {least}" if most == math.inf else limits
        raise InputError(f"{name}: expected a whole number {limits}, got {shown(value)}")
    return int(value)


def limits(max_iters: Any, max_seconds: Any, callback: Any = None) -> None:
    """Refuse invalid limits on iterations and seconds, and callbacks that are no functions."""
    if callback is not None and not callable(callback):
        raise InputError(f"callback: expected a function, got {shown(callback)}")
    if max_iters is not None:
        integer("max_iters", max_iters, 0)
    if max_seconds is not None and not number("max_seconds", max_seconds) >= 0:
        raise InputError(f"max_seconds must not be negative, got {max_seconds!r}")
