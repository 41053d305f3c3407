"""Solutions and plans in .npz files: what is stored, and what is checked before it is believed.

====================  ==================  ========================================================
array                 shape               meaning
====================  ==================  ========================================================
value, lower, upper   (S,), (T + 1, S)    lower ≤ value ≤ upper; of a plan from each stage on
policy                (S, A), (T, S, A)   rows sum to 1, or are 0 (terminal states)
states, states_ends   (B,), (S + 1,)      names of states, as in `drmdp.core.names`, if not 0, 1, …
meta, or plan         bytes               a JSON object with everything else
kernel                (S, A, S)           nature's kernel of a solution; of a sparse model its
                                          parts, `kernel.` and a name in `rows.STORED`
time, bias            (S,)                of a total, and of an average
initial               (S,)                start distribution of a plan
costs                 (T, S, A[, S])      of its stages, if they were given apart from the models
kernel_ptr            (T·S·A + 1,)        where each row of nature's kernels of a plan begins;
                                          absent if entries were too many (`ENTRIES`)
kernel_state          (entries,)          next states
kernel_mass           (entries,)          probabilities
====================  ==================  ========================================================

Headers are checked before anything is read, arrays that are none of these are refused, and nothing
is ever unpickled.
"""

from __future__ import annotations

import json
import math
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core import compact as rows
from drmdp.core.compact import CompactRows, KernelTuple, MeanKernel, of_matrix
from drmdp.core.names import RULE, StoredNames, back, is_name, listed, to_arrays
from drmdp.core.tolerance import Tolerance
from drmdp.core.validation import Names
from drmdp.errors import InputError, first_place, shown
from drmdp.io import archives
from drmdp.io.archives import Field
from drmdp.io.files import AnyPath, write_whole
from drmdp.solution.plan import HorizonSolution
from drmdp.solution.results import Record, Solution, Status

PART = "kernel."
"""Prefix of the arrays of a compact kernel."""
PARTS = {PART + name: Field(kind, (1,)) for name, kind in rows.KINDS.items()}
NAMES = {"states": Field("u", (1,)), "states_ends": Field("i", (1,))}
KERNELS = dict.fromkeys(("kernel_ptr", "kernel_state"), Field("i", (1,)))
KERNELS["kernel_mass"] = Field("f", (1,))
BOUNDS = ("value", "lower", "upper")
ENTRIES = 20_000_000
"""Probabilities of the kernels of a plan up to which they are saved."""
ROW_SUM_TOL = 1e-6
NUMBER: Any = float | int


class FileKind(NamedTuple):
    """A kind of file."""

    what: str  # as `archives.describe` says
    format: str
    entry: str  # the array that is a JSON object
    needed: dict[str, Field]
    groups: tuple[dict[str, Field], ...]  # arrays that are there together, or not at all
    types: dict[str, Any]  # of what the JSON object holds
    settings: dict[str, type]  # of what the settings of every run have

    @property
    def known(self) -> dict[str, Field]:
        """All arrays that there can be."""
        return dict(ChainMap(self.needed, *self.groups))


SOLUTION = FileKind(
    "a saved solution",
    "drmdp solution 3",
    "meta",
    {
        **dict.fromkeys(BOUNDS, Field("f", (1,))),
        "policy": Field("f", (2,)),
        "kernel": Field("f", (3,)),
        "meta": Field("u", (1,)),
    },
    (NAMES, PARTS, {"time": Field("f", (1,))}, {"bias": Field("f", (1,))}),
    {
        **dict.fromkeys(("status", "fingerprint", "criterion"), str),
        **dict.fromkeys(("duality_gap", "scale", "seconds", "setup_seconds"), NUMBER),
        **dict.fromkeys(("history", "actions", "notes"), list),
        "settings": dict,
    },
    dict.fromkeys(("method", "backend", "ambiguity"), str),
)
PLAN = FileKind(
    archives.PLAN,
    "drmdp plan 1",
    "plan",
    {
        **dict.fromkeys(BOUNDS, Field("f", (2,))),
        "policy": Field("f", (3,)),
        "initial": Field("f", (1,)),
        "plan": Field("u", (1,)),
    },
    (NAMES, KERNELS, {"costs": Field("f", (3, 4))}),
    {
        "status": str,
        **dict.fromkeys(("sparse", "maximise", "optimal", "certain"), bool),
        **dict.fromkeys(("kernel_passes", "scale", "discount", "seconds"), NUMBER),
        **dict.fromkeys(("actions", "notes", "fingerprints"), list),
        "settings": dict,
    },
    {"nature": str, "backend": str, "sets": list},
)

# ---------------------------------------------------------------------- writing


def write(result: Any, path: AnyPath) -> None:
    """Write a solution or a plan, completely or not at all."""
    kind = PLAN if isinstance(result, HorizonSolution) else SOLUTION
    more: dict[str, Any] = {"status": str(result.status)}
    more["actions"] = listed("actions", result.actions)
    names = ("value", "policy", "lower", "upper", "initial", "costs", "time", "bias")
    arrays: Any = {name: getattr(result, name) for name in names if name in kind.known}
    arrays = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    if kind is PLAN:
        kernels, more["sparse"] = _kernels(result)
        arrays |= kernels
    else:
        more["history"] = [asdict(record) for record in result.history]
        if isinstance(result.kernel, np.ndarray):
            arrays["kernel"] = result.kernel
        else:
            arrays |= {PART + name: getattr(result.kernel.compact, name) for name in rows.STORED}
    _check_shapes(arrays)
    if not isinstance(result.states, range):
        arrays |= dict(zip(NAMES, to_arrays("states", result.states), strict=True))
    meta = {name: more[name] if name in more else getattr(result, name) for name in kind.types}
    meta = {"format": kind.format, **meta}
    arrays[kind.entry] = np.frombuffer(json.dumps(meta, default=_plain).encode(), dtype=np.uint8)
    write_whole(path, lambda stream: np.savez(stream, **arrays))


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__}")


def _kernels(plan: HorizonSolution) -> tuple[dict[str, Any], bool]:
    """Entries of nature's kernels, if there are not too many, and whether they are those of sparse
    models.
    """
    T, S, A = plan.policy.shape
    if plan.kernels is None or plan.kernel_passes < T:
        return {}, False
    parts, total, is_sparse = [], 0, False
    for t in range(T):
        kernel = plan.kernels[t]
        if is_sparse := isinstance(kernel, MeanKernel):
            part = positive_entries(kernel.compact)
        else:
            part = sparse.csr_array(np.asarray(kernel).reshape(S * A, S))
        total += part.nnz
        if total > ENTRIES:
            return {}, False
        parts.append(part)
    ends = np.cumsum(np.concatenate([np.diff(part.indptr) for part in parts]), dtype=np.int64)
    state = np.concatenate([part.indices for part in parts]).astype(np.int64)
    arrays = np.append(0, ends), state, np.concatenate([part.data for part in parts])
    return dict(zip(KERNELS, arrays, strict=True)), is_sparse


def positive_entries(compact: CompactRows) -> Any:
    """Positive entries of compact rows, as a sparse matrix."""
    n = compact.entry_ptr.size - 1
    step = max(1, ENTRIES // compact.n_columns)
    parts = [sparse.csr_array(compact.dense(lo, min(lo + step, n))) for lo in range(0, n, step)]
    return sparse.csr_array(sparse.vstack(parts))


# ---------------------------------------------------------------------- reading


def read(path: AnyPath, result: type) -> Any:
    """Read the `Solution` or `HorizonSolution` that `write` wrote; an `InputError` says what
    anything else is.
    """
    kind, build = (PLAN, _plan) if issubclass(result, HorizonSolution) else (SOLUTION, _solution)
    try:
        with archives.opened(path) as archive:
            members = archives.members(archive)
            _check_names(set(members), kind)
            headers = archives.headers(archive, members, kind.known)
            _check_shapes(headers)
            # twice: 40 bytes for one of JSON
            archives.check_memory([*headers.values(), headers[kind.entry]])
            arrays = {name: archives.load(archive, name, info) for name, info in members.items()}
        meta = _meta(archives.parse_json(arrays.pop(kind.entry).tobytes()), kind)
        shape = arrays["policy"].shape
        if (n := len(meta["actions"])) != shape[-1]:
            raise InputError(f"{n} actions, but policy is {' × '.join(map(str, shape))}")
        meta["states"] = _states(arrays, shape[-2])
        _check_values(arrays)
        return build(arrays, meta)
    except InputError as error:
        what = archives.describe(path)
        why = error if what == kind.what else f"it is {what}"
        raise InputError(f"not {kind.what}: {why}") from None


def _check_names(have: set[str], kind: FileKind) -> None:
    for name in sorted(have - set(kind.known)):
        raise InputError(f"unknown array {shown(name)}")
    expected = set(kind.needed).union(*(group for group in kind.groups if have & set(group)))
    if have & set(PARTS):
        expected.discard("kernel")
    if have != expected:
        names = ", ".join(sorted(expected))
        raise InputError(f"expected the arrays {names}, got {', '.join(sorted(have))}")


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of arrays, by that of the policy."""
    *stages, S, A = arrays["policy"].shape
    shapes = {"policy": (*stages, S, A), "kernel": (S, A, S), "states_ends": (S + 1,)}
    shapes |= dict.fromkeys(BOUNDS, (*(T + 1 for T in stages), S))
    shapes |= dict.fromkeys(("time", "bias", "initial"), (S,))
    if "costs" in arrays:
        shapes["costs"] = (*stages, S, A, S)[: len(arrays["costs"].shape)]
    if "kernel_ptr" in arrays:
        shapes |= dict.fromkeys(("kernel_state", "kernel_mass"), arrays["kernel_mass"].shape)
        shapes["kernel_ptr"] = (math.prod(stages) * S * A + 1,)
    return shapes


def _check_shapes(arrays: Mapping[str, Any]) -> None:
    """Refuse arrays of other shapes, and numbers of less than 8 bytes; names without a shape have
    any, texts any size.
    """
    shapes = _shapes(arrays)
    for name, array in arrays.items():
        dtype, size = array.dtype, 1 if name in (SOLUTION.entry, PLAN.entry, "states") else 8
        wrong = name in shapes and array.shape != shapes[name]
        if wrong or (name not in PARTS and dtype.itemsize != size) or dtype.hasobject:
            kind = "int64" if name in (*NAMES, *KERNELS) and name != "kernel_mass" else "float64"
            expected = f"{kind} {shapes[name]}" if size == 8 else "bytes"
            raise InputError(f"{name} is {dtype} {array.shape}, expected {expected}")


def _meta(entry: Any, kind: FileKind) -> dict[str, Any]:
    """The JSON object, after refusing what no run can have left."""
    if not isinstance(entry, dict) or entry.pop("format", None) != kind.format:
        raise InputError(f"expected format {kind.format!r}")
    known = {"criterion": "discounted"} if kind is SOLUTION else {}
    meta: dict[str, Any] = {"notes": [], **known, **entry}
    if "weights" in meta and meta["weights"] is None:
        del meta["weights"]  # as it was written before they were left out
    _check_entries("", meta, kind.types)
    if meta["status"] not in list(Status):
        raise InputError(f"unknown status {shown(meta['status'])}")
    meta["status"] = Status(meta["status"])
    for name in ("actions", "notes", "fingerprints"):
        meta |= {name: back(meta[name])} if name in meta else {}
        for text in meta.get(name, ()) if name != "actions" else ():
            _check_type(f"{name}: {shown(text)}", text, str)
    for name in meta["actions"]:
        if not is_name(name):
            raise InputError(f"actions: {RULE}, got {shown(name)}")
    settings = meta["settings"]
    for name, expected in kind.settings.items():
        _check_type(f"settings: {name}", settings.get(name), expected)
        if not settings[name] and expected is list:
            raise InputError(f"settings: {name} is empty")
    Tolerance.of(settings.get("tol"), settings.get("rtol"))
    return meta


def _check_entries(where: str, entry: dict[str, Any], types: dict[str, Any]) -> None:
    """Refuse an object with other entries, or with entries of other types."""
    if set(entry) != set(types):
        names = ", ".join(sorted(types))
        raise InputError(f"{where}expected the entries {names}, got {shown(sorted(entry))}")
    for name, expected in types.items():
        _check_type(f"{where}{name}", entry[name], expected)


def _check_type(name: str, value: Any, expected: Any) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise InputError(f"{name} is of type {type(value).__name__}")


def _states(arrays: dict[str, Any], S: int) -> Names:
    """Take the names of states out of the arrays."""
    if "states" not in arrays:
        return range(S)
    names = StoredNames(arrays.pop("states"), arrays.pop("states_ends"))
    names.check("states")
    return names


def _check_values(arrays: dict[str, Any]) -> None:
    """Refuse bounds that cross, and policies and kernels that are no probabilities."""
    lower, value, upper = (arrays[name] for name in ("lower", "value", "upper"))
    if at := first_place(~((lower <= value) & (value <= upper))):
        numbers = f"{lower[at]}, {value[at]}, {upper[at]}"
        raise InputError(f"lower ≤ value ≤ upper does not hold: {numbers} at {_place(at)}")
    for name in ("policy", "kernel"):
        p = arrays.get(name, np.zeros(0))
        if not ((p >= -ROW_SUM_TOL) & (p <= 1 + ROW_SUM_TOL)).all():
            raise InputError(f"{name} holds what is no probability")
    sums = arrays["policy"].sum(axis=-1)
    off = (np.abs(sums - 1) > ROW_SUM_TOL) & arrays["policy"].any(axis=-1)
    if at := first_place(off):
        raise InputError(f"policy: the row of {_place(at)} sums to {sums[at]}, not 1")


def _place(at: tuple[int, ...]) -> str:
    """A state, or a stage and a state, in words."""
    nouns = ("stage", "state")[-len(at) :]
    return ", ".join(f"{noun} {k}" for noun, k in zip(nouns, at, strict=True))


# ---------------------------------------------------------------------- solutions


def _solution(arrays: dict[str, Any], meta: dict[str, Any]) -> Solution:
    if "kernel" not in arrays:
        S, A = arrays["policy"].shape
        parts = {name.removeprefix(PART): arrays.pop(name) for name in PARTS}
        arrays["kernel"] = rows.restored(S, A, parts)
    return Solution(**arrays, **meta | {"history": _history(meta["history"])})


def _history(records: list[Any]) -> tuple[Record, ...]:
    types = dict.fromkeys((field.name for field in fields(Record)), NUMBER)
    if not records:
        raise InputError("history is empty")
    for record in records:
        _check_type("history", record, dict)
        _check_entries("history: ", record, types)
    return tuple(Record(**record) for record in records)


# ---------------------------------------------------------------------- plans


def _plan(arrays: dict[str, Any], meta: dict[str, Any]) -> HorizonSolution:
    T, S, A = arrays["policy"].shape
    is_sparse = meta.pop("sparse")
    if "kernel_ptr" in arrays:
        ptr, state, mass = (arrays.pop(name) for name in KERNELS)
        _check_kernels(ptr, state, mass, S)
        meta["kernels"] = KernelTuple(T, StageKernel((S, A), is_sparse, ptr, state, mass))
    return HorizonSolution(**arrays, **meta)


def _check_kernels(ptr: Any, state: Any, mass: Array, S: int) -> None:
    """Refuse arrays of kernels that do not fit each other."""
    if ptr[0] != 0 or ptr[-1] != mass.size or (np.diff(ptr) < 0).any():
        raise InputError("kernel_ptr does not ascend from 0 to the number of entries")
    if state.size and not 0 <= state.min() <= state.max() < S:
        raise InputError(f"kernel_state: next states are 0 … {S - 1}")
    if not ((mass >= 0) & (mass <= 1 + ROW_SUM_TOL)).all():
        raise InputError("kernel_mass holds what is no probability")


@dataclass(frozen=True)
class StageKernel:
    """Nature's kernel of a stage, out of the arrays of a file."""

    sizes: tuple[int, int]  # states and actions
    is_sparse: bool
    ptr: Any
    state: Any
    mass: Array

    def __call__(self, t: int) -> Any:
        """An array (S, A, S), or a `MeanKernel` if the model was sparse."""
        S, A = self.sizes
        ptr = self.ptr[t * S * A : (t + 1) * S * A + 1]
        state, mass = (array[ptr[0] : ptr[-1]] for array in (self.state, self.mass))
        part = sparse.csr_array((mass, state, ptr - ptr[0]), shape=(S * A, S))
        return of_matrix(part, A) if self.is_sparse else part.toarray().reshape(S, A, S)
