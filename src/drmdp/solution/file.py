"""Solutions and plans in .npz files: what is stored, and what is checked before it is believed.

====================== =================== ============================================================================
array                  shape               meaning
====================== =================== ============================================================================
value, lower, upper    (S,), (T + 1, S)    lower ≤ value ≤ upper; of a plan from each of its T stages on
policy                 (S, A), (T, S, A)   rows sum to 1, or are 0 (terminal states)
states, states_ends    (B,), (S + 1,)      names of states, as in `drmdp.core.names`; absent if they are 0, 1, 2, …
meta, or plan          bytes               a JSON object with everything else
kernel                 (S, A, S)           nature's kernel of a solution; of a sparse model its parts instead, `kernel.` and a name in `rows.STORED`
time, bias             (S,)                of a total, and of an average
initial                (S,)                start distribution of a plan
costs                  (T, S, A[, S])      of its stages, if they were given apart from the models
kernel_ptr             (T·S·A + 1,)        where the entries of each row of nature's kernels of a plan begin; absent if they were too many (`ENTRIES`)
kernel_state           (entries,)          next states
kernel_mass            (entries,)          probabilities
====================== =================== ============================================================================

Headers are checked before anything is read, arrays that are none of these are refused, and nothing is ever unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core import archives
from drmdp.core import compact as rows
from drmdp.core.archives import Field
from drmdp.core.compact import KernelTuple, MeanKernel, Rows, of_matrix
from drmdp.core.files import AnyPath, write_whole
from drmdp.core.names import RULE, StoredNames, back, is_name, listed, to_arrays
from drmdp.core.tolerance import Tolerance
from drmdp.core.validation import Names
from drmdp.errors import InputError, shown
from drmdp.solution import plan as plans
from drmdp.solution.plan import HorizonSolution
from drmdp.solution.results import ARRAYS, Record, Solution, Status

PART = "kernel."
"""Prefix of the arrays of a compact kernel."""
PARTS = {PART + name: Field(kind, (1,)) for name, kind in rows.KINDS.items()}
NAMES = {"states": Field("u", (1,)), "states_ends": Field("i", (1,))}
KERNELS = {"kernel_ptr": Field("i", (1,)), "kernel_state": Field("i", (1,)), "kernel_mass": Field("f", (1,))}
BOUNDS = ("value", "lower", "upper")
ENTRIES = 20_000_000
"""Probabilities of the kernels of a plan up to which they are saved."""
ROW_SUM_TOL = 1e-6
NUMBER: Any = float | int
Shapes = dict[str, tuple[int, ...]]


class Kind(NamedTuple):
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
        return {name: field for group in (self.needed, *self.groups) for name, field in group.items()}


SOLUTION = Kind(
    "a saved solution",
    "drmdp solution 3",
    "meta",
    {**dict.fromkeys(BOUNDS, Field("f", (1,))), "policy": Field("f", (2,)), "kernel": Field("f", (3,)), "meta": Field("u", (1,))},
    (NAMES, PARTS, {"time": Field("f", (1,))}, {"bias": Field("f", (1,))}),
    {
        "status": str, "history": list, "duality_gap": NUMBER, "scale": NUMBER, "seconds": NUMBER, "setup_seconds": NUMBER,
        "actions": list, "notes": list, "fingerprint": str, "settings": dict, "criterion": str,
    },
    dict.fromkeys(("method", "backend", "ball"), str),
)  # fmt: skip
PLAN = Kind(
    archives.PLAN,
    "drmdp plan 1",
    "plan",
    {**dict.fromkeys(BOUNDS, Field("f", (2,))), "policy": Field("f", (3,)), "initial": Field("f", (1,)), "plan": Field("u", (1,))},
    (NAMES, KERNELS, {"costs": Field("f", (3, 4))}),
    {
        "status": str, "sparse": bool, "kernel_passes": NUMBER, "scale": NUMBER, "discount": NUMBER, "seconds": NUMBER,
        "maximise": bool, "optimal": bool, "certain": bool, "actions": list, "notes": list, "fingerprints": list, "settings": dict,
    },
    {"nature": str, "backend": str, "balls": list},
)  # fmt: skip

# ---------------------------------------------------------------------- writing


def write(solution: Solution, path: AnyPath) -> None:
    """Write a solution, completely or not at all."""
    arrays = {name: np.asarray(getattr(solution, name)) for name in ARRAYS if name != "kernel"}
    arrays |= {name: found for name in ("time", "bias") if (found := getattr(solution, name)) is not None}
    if isinstance(solution.kernel, np.ndarray):
        arrays["kernel"] = solution.kernel
    else:
        arrays |= {PART + name: getattr(solution.kernel.compact, name) for name in rows.STORED}
    _check_shapes(arrays, _solution_shapes(arrays))
    _write(path, SOLUTION, solution, arrays, history=[asdict(record) for record in solution.history])


def write_plan(plan: HorizonSolution, path: AnyPath) -> None:
    """Write a plan, completely or not at all."""
    arrays = {name: np.asarray(getattr(plan, name)) for name in plans.ARRAYS if getattr(plan, name) is not None}
    kernels, is_sparse = _kernels(plan)
    _write(path, PLAN, plan, arrays | kernels, sparse=is_sparse)


def _write(path: AnyPath, kind: Kind, result: Any, arrays: dict[str, Any], **more: Any) -> None:
    if not isinstance(result.states, range):
        arrays |= dict(zip(NAMES, to_arrays("states", result.states), strict=True))
    more |= {"status": str(result.status), "actions": listed("actions", result.actions)}
    meta = {
        "format": kind.format,
        **{name: more[name] if name in more else getattr(result, name) for name in kind.types},
    }
    arrays[kind.entry] = np.frombuffer(json.dumps(meta, default=_plain).encode(), dtype=np.uint8)
    write_whole(path, lambda stream: np.savez(stream, **arrays))


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's, for JSON."""
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, np.floating):
        return float(value)
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__}")


def _kernels(plan: HorizonSolution) -> tuple[dict[str, Any], bool]:
    """Entries of nature's kernels, if there are not too many, and whether they are those of sparse models."""
    T, S, A = plan.policy.shape
    if plan.kernels is None or plan.kernel_passes < T:
        return {}, False
    parts, total, is_sparse = [], 0, False
    for t in range(T):
        kernel = plan.kernels[t]
        is_sparse = isinstance(kernel, MeanKernel)
        part = _entries(kernel.compact) if is_sparse else sparse.csr_array(np.asarray(kernel).reshape(S * A, S))
        total += part.nnz
        if total > ENTRIES:
            return {}, False
        parts.append(part)
    ends = np.cumsum(np.concatenate([np.diff(part.indptr) for part in parts]), dtype=np.int64)
    state, mass = (np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "data"))
    return dict(zip(KERNELS, (np.append(0, ends), state.astype(np.int64), mass), strict=True)), is_sparse


def _entries(compact: Rows) -> Any:
    """Positive entries of compact rows."""
    n = compact.entry_ptr.size - 1
    step = max(1, ENTRIES // compact.n_columns)
    parts = [sparse.csr_array(compact.dense(lo, min(lo + step, n))) for lo in range(0, n, step)]
    return sparse.csr_array(sparse.vstack(parts))


# ---------------------------------------------------------------------- reading


def read(path: AnyPath) -> Solution:
    """Read what `write` wrote; an `InputError` says what anything else is."""
    return _read(path, SOLUTION, _solution_shapes, _solution)  # type: ignore[no-any-return]


def read_plan(path: AnyPath) -> HorizonSolution:
    """Read what `write_plan` wrote; an `InputError` says what anything else is."""
    return _read(path, PLAN, _plan_shapes, _plan)  # type: ignore[no-any-return]


def _read(path: AnyPath, kind: Kind, shapes: Callable[[Any], Shapes], made: Callable[..., Any]) -> Any:
    try:
        with archives.opened(path) as archive:
            members = archives.members(archive)
            _check_names(set(members), kind)
            headers = archives.headers(archive, members, kind.known)
            _check_shapes(headers, shapes(headers))
            told = headers[kind.entry]
            archives.check_memory([*headers.values(), told])  # 40 bytes for one of JSON
            arrays = {name: archives.load(archive, name, info) for name, info in members.items()}
        meta = _meta(archives.parse_json(arrays.pop(kind.entry).tobytes()), kind)
        shape = arrays["policy"].shape
        if len(meta["actions"]) != shape[-1]:
            raise InputError(f"{len(meta['actions'])} actions, but policy is {' × '.join(map(str, shape))}")
        meta["states"] = _states(arrays, shape[-2])
        _check_values(arrays)
        return made(arrays, meta)
    except InputError as error:
        what = archives.describe(path)
        raise InputError(f"not {kind.what}: {error if what == kind.what else f'it is {what}'}") from None


def _check_names(have: set[str], kind: Kind) -> None:
    for name in sorted(have - set(kind.known)):
        raise InputError(f"unknown array {shown(name)}")
    expected = set(kind.needed).union(*(group for group in kind.groups if have & set(group)))
    if have & set(PARTS):
        expected.discard("kernel")
    if have != expected:
        raise InputError(f"expected the arrays {', '.join(sorted(expected))}, got {', '.join(sorted(have))}")


def _solution_shapes(found: Mapping[str, Any]) -> Shapes:
    S, A = found["policy"].shape
    return {
        **dict.fromkeys(BOUNDS, (S,)),
        "policy": (S, A),
        "kernel": (S, A, S),
        "states_ends": (S + 1,),
        "time": (S,),
        "bias": (S,),
    }


def _plan_shapes(found: Mapping[str, Any]) -> Shapes:
    T, S, A = found["policy"].shape
    shapes: Shapes = {
        **dict.fromkeys(BOUNDS, (T + 1, S)),
        "policy": (T, S, A),
        "initial": (S,),
        "states_ends": (S + 1,),
    }
    if "costs" in found:
        shapes["costs"] = (T, S, A, S)[: len(found["costs"].shape)]
    if "kernel_ptr" in found:
        entries = found["kernel_mass"].shape
        shapes |= {"kernel_ptr": (T * S * A + 1,), "kernel_state": entries, "kernel_mass": entries}
    return shapes


def _check_shapes(found: Mapping[str, Any], shapes: Shapes) -> None:
    """Refuse arrays of other shapes, and numbers of less than 8 bytes; what is not in `shapes` but text has any."""
    for name, own in found.items():
        size = 1 if name in (SOLUTION.entry, PLAN.entry, "states") else 8
        if (
            (name in shapes and own.shape != shapes[name])
            or (name not in PARTS and own.dtype.itemsize != size)
            or own.dtype.hasobject
        ):
            kind = "int64" if name in (*NAMES, *KERNELS) and name != "kernel_mass" else "float64"
            expected = f"{kind} {shapes[name]}" if size == 8 else "bytes"
            raise InputError(f"{name} is {own.dtype} {own.shape}, expected {expected}")


def _meta(given: Any, kind: Kind) -> dict[str, Any]:
    """The JSON object, after refusing what no run can have left."""
    if not isinstance(given, dict) or given.pop("format", None) != kind.format:
        raise InputError(f"expected format {kind.format!r}")
    known = {"criterion": "discounted"} if kind is SOLUTION else {}
    meta: dict[str, Any] = {"notes": [], **known, **given}
    if "weights" in meta and meta["weights"] is None:
        del meta["weights"]  # as it was written before they were left out
    if set(meta) != set(kind.types):
        raise InputError(f"expected the entries {', '.join(sorted(kind.types))}, got {shown(sorted(meta))}")
    for name, expected in kind.types.items():
        _check_type(name, meta[name], expected)
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
    wrong = ~((lower <= value) & (value <= upper))
    if wrong.any():
        at = _first(wrong)
        raise InputError(f"lower ≤ value ≤ upper does not hold: {lower[at]}, {value[at]}, {upper[at]} at {_place(at)}")
    for name in ("policy", "kernel"):
        p = arrays.get(name)
        if p is not None and not (np.isfinite(p).all() and (p >= -ROW_SUM_TOL).all() and (p <= 1 + ROW_SUM_TOL).all()):
            raise InputError(f"{name} holds what is no probability")
    sums = arrays["policy"].sum(axis=-1)
    off = (np.abs(sums - 1) > ROW_SUM_TOL) & arrays["policy"].any(axis=-1)
    if off.any():
        raise InputError(f"policy: the row of {_place(_first(off))} sums to {sums[_first(off)]}, not 1")


def _first(wrong: Any) -> Any:
    """Where the first of some marked entries is."""
    return tuple(np.argwhere(wrong)[0].tolist())


def _place(at: tuple[int, ...]) -> str:
    """A state, or a stage and a state, in words."""
    return ", ".join(f"{noun} {k}" for noun, k in zip(("stage", "state")[-len(at) :], at, strict=True))


# ---------------------------------------------------------------------- solutions


def _solution(arrays: dict[str, Any], meta: dict[str, Any]) -> Solution:
    if "kernel" not in arrays:
        S, A = arrays["policy"].shape
        parts = {name.removeprefix(PART): arrays.pop(name) for name in PARTS}
        arrays["kernel"] = rows.restored(S, A, parts)
    return Solution(**arrays, **meta | {"history": _history(meta["history"])})


def _history(given: list[Any]) -> tuple[Record, ...]:
    names = {f.name for f in fields(Record)}
    if not given:
        raise InputError("history is empty")
    for record in given:
        _check_type("history", record, dict)
        if set(record) != names:
            raise InputError(f"history: expected the entries {', '.join(sorted(names))}, got {shown(sorted(record))}")
        for name, value in record.items():
            _check_type(f"history: {name}", value, NUMBER)
    return tuple(Record(**record) for record in given)


# ---------------------------------------------------------------------- plans


def _plan(arrays: dict[str, Any], meta: dict[str, Any]) -> HorizonSolution:
    T, S, A = arrays["policy"].shape
    is_sparse = meta.pop("sparse")
    if "kernel_ptr" in arrays:
        ptr, state, mass = (arrays.pop(name) for name in KERNELS)
        _check_kernels(ptr, state, mass, S)
        meta["kernels"] = KernelTuple(T, Stored(S, A, is_sparse, ptr, state, mass))
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
class Stored:
    """Nature's kernel of a stage, out of the arrays of a file."""

    n_states: int
    n_actions: int
    is_sparse: bool
    ptr: Any
    state: Any
    mass: Array

    def __call__(self, t: int) -> Any:
        """An array (S, A, S), or a `MeanKernel` if the model was sparse."""
        S, A = self.n_states, self.n_actions
        ptr = self.ptr[t * S * A : (t + 1) * S * A + 1]
        state, mass = (array[ptr[0] : ptr[-1]] for array in (self.state, self.mass))
        part = sparse.csr_array((mass, state, ptr - ptr[0]), shape=(S * A, S))
        return of_matrix(part, A) if self.is_sparse else part.toarray().reshape(S, A, S)
