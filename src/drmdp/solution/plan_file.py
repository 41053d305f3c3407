"""Plans in .npz files: what is stored, and what is checked before it is believed.

====================== =================== ==========================================================================
array                  shape               meaning
====================== =================== ==========================================================================
value, lower, upper    (T + 1, S)          lower ≤ value ≤ upper
policy                 (T, S, A)           rows sum to 1, or are 0 (terminal states)
initial                (S,)                start distribution
costs                  (T, S, A[, S])      of the stages, if they were given apart from the models
states, states_ends    (B,), (S + 1,)      names of states, as in `drmdp.core.names`; absent if they are 0, 1, 2, …
kernel_ptr             (T·S·A + 1,)        where the entries of each row of nature's kernels begin; absent if they were too many (`ENTRIES`)
kernel_state           (entries,)          next states
kernel_mass            (entries,)          probabilities
plan                   bytes               a JSON object with everything else
====================== =================== ==========================================================================

Headers are checked before anything is read, arrays that are none of these are refused, and nothing is ever unpickled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core import archives
from drmdp.core.archives import Field, Header
from drmdp.core.compact import KernelTuple, MeanKernel, Rows, of_matrix
from drmdp.core.files import AnyPath, write_whole
from drmdp.core.names import RULE, back, is_name, listed, to_arrays
from drmdp.core.tolerance import Tolerance
from drmdp.errors import InputError, shown
from drmdp.solution.file import NAMES, ROW_SUM_TOL, check_type, check_values, kind_of, plain, states_of
from drmdp.solution.plan import ARRAYS, HorizonSolution
from drmdp.solution.results import Status

FORMAT = "drmdp plan 1"
ENTRIES = 20_000_000
"""Probabilities of nature's kernels up to which they are saved."""
KERNELS = ("kernel_ptr", "kernel_state", "kernel_mass")
KNOWN = {
    **dict.fromkeys(("value", "lower", "upper"), Field("f", (2,))),
    "policy": Field("f", (3,)),
    "initial": Field("f", (1,)),
    "costs": Field("f", (3, 4)),
    **dict(zip(NAMES, (Field("u", (1,)), Field("i", (1,))), strict=True)),
    **dict(zip(KERNELS, (Field("i", (1,)), Field("i", (1,)), Field("f", (1,))), strict=True)),
    "plan": Field("u", (1,)),
}
PLAIN = tuple(f.name for f in fields(HorizonSolution) if f.name not in (*ARRAYS, "status", "kernels", "states"))
"""Fields that JSON holds as they are."""
TYPES: dict[str, Any] = {
    "kernel_passes": float | int, "scale": float | int, "discount": float | int, "seconds": float | int,
    "actions": list, "notes": list, "fingerprints": list, "settings": dict,
}  # fmt: skip


def write(plan: HorizonSolution, path: AnyPath) -> None:
    """Write a plan, completely or not at all."""
    arrays = {name: np.asarray(getattr(plan, name)) for name in ARRAYS if getattr(plan, name) is not None}
    if not isinstance(plan.states, range):
        arrays |= dict(zip(NAMES, to_arrays("states", plan.states), strict=True))
    kernels, is_sparse = _kernels(plan)
    arrays |= kernels
    meta = {
        "format": FORMAT,
        "status": str(plan.status),
        "sparse": is_sparse,
        **{name: getattr(plan, name) for name in PLAIN},
        "actions": listed("actions", plan.actions),
    }
    arrays["plan"] = np.frombuffer(json.dumps(meta, default=plain).encode(), dtype=np.uint8)
    write_whole(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]


def _kernels(plan: HorizonSolution) -> tuple[dict[str, Any], bool]:
    """Entries of nature's kernels, if there are not too many, and whether they are those of sparse models."""
    T, S, A = plan.policy.shape
    if plan.kernels is None or plan.kernel_passes < T:
        return {}, False
    parts, total, is_sparse = [], 0, False
    for t in range(T):
        kernel = plan.kernels[t]
        is_sparse = isinstance(kernel, MeanKernel)
        rows = _entries(kernel.compact) if is_sparse else sparse.csr_array(np.asarray(kernel).reshape(S * A, S))
        total += rows.nnz
        if total > ENTRIES:
            return {}, False
        parts.append(rows)
    ends = np.cumsum(np.concatenate([np.diff(rows.indptr) for rows in parts]), dtype=np.int64)
    joined = (
        np.append(0, ends),
        *(np.concatenate([getattr(rows, name) for rows in parts]) for name in ("indices", "data")),
    )
    return dict(zip(KERNELS, (joined[0], joined[1].astype(np.int64), joined[2]), strict=True)), is_sparse


def _entries(rows: Rows) -> Any:
    """Positive entries of compact rows."""
    n = rows.entry_ptr.size - 1
    step = max(1, ENTRIES // rows.n_columns)
    return sparse.csr_array(
        sparse.vstack([sparse.csr_array(rows.dense(lo, min(lo + step, n))) for lo in range(0, n, step)])
    )


# ---------------------------------------------------------------------- reading


def read(path: AnyPath) -> HorizonSolution:
    """Read what `write` wrote; an `InputError` says what anything else is."""
    try:
        with archives.opened(path) as archive:
            members = archives.members(archive)
            _check_names(set(members))
            headers = archives.headers(archive, members, KNOWN)
            _check_headers(headers)
            arrays = {name: archives.load(archive, name, info) for name, info in members.items()}
        return _plan(arrays, archives.parse_json(arrays.pop("plan").tobytes()))
    except InputError as error:
        what = archives.describe(path)
        raise InputError(f"not a saved plan: {error if what == archives.PLAN else f'it is {what}'}") from None


def _check_names(have: set[str]) -> None:
    for name in sorted(have - set(KNOWN)):
        raise InputError(f"unknown array {shown(name)}")
    groups = [set(group) for group in (NAMES, KERNELS, ("costs",)) if have & set(group)]
    expected = {"value", "policy", "lower", "upper", "initial", "plan"}.union(*groups)
    if have != expected:
        raise InputError(f"expected the arrays {', '.join(sorted(expected))}, got {', '.join(sorted(have))}")


def _check_headers(headers: dict[str, Header]) -> None:
    T, S, A = headers["policy"].shape
    shapes: dict[str, tuple[int, ...]] = {"policy": (T, S, A), "initial": (S,), "states_ends": (S + 1,)}
    shapes |= dict.fromkeys(("value", "lower", "upper"), (T + 1, S))
    if "costs" in headers:
        shapes["costs"] = (T, S, A, S)[: len(headers["costs"].shape)]
    if "kernel_ptr" in headers:
        shapes |= {"kernel_ptr": (T * S * A + 1,), "kernel_state": headers["kernel_mass"].shape}
    for name, header in headers.items():
        size = 1 if name in ("plan", "states") else 8
        if header.shape != shapes.get(name, header.shape) or header.dtype.itemsize != size:
            expected = f"{kind_of(name)} {shapes.get(name, header.shape)}" if size == 8 else "bytes"
            raise InputError(f"{name} is {header.dtype} {header.shape}, expected {expected}")
    archives.check_memory([*headers.values(), headers["plan"]._replace(shape=(headers["plan"].size * 2,))])


def _plan(arrays: dict[str, Any], meta: Any) -> HorizonSolution:
    if not isinstance(meta, dict) or meta.pop("format", None) != FORMAT:
        raise InputError(f"expected format {FORMAT!r}")
    expected = {*PLAIN, "status", "sparse"}
    meta.pop("compile_seconds", None)  # of version 0.2
    if set(meta) != expected:
        raise InputError(f"expected the entries {', '.join(sorted(expected))}, got {shown(sorted(meta))}")
    if meta["status"] not in list(Status):
        raise InputError(f"unknown status {shown(meta['status'])}")
    status, is_sparse = Status(meta.pop("status")), bool(meta.pop("sparse"))
    _check_meta(meta)
    T, S, A = arrays["policy"].shape
    meta |= {name: back(meta[name]) for name in ("actions", "notes", "fingerprints")}
    if len(meta["actions"]) != A:
        raise InputError(f"{len(meta['actions'])} actions, but policy is {T} × {S} × {A}")
    meta["states"] = states_of(arrays, S)
    check_values(arrays)
    if "kernel_ptr" in arrays:
        meta["kernels"] = KernelTuple(T, Stored(S, A, is_sparse, *(_checked(arrays, name, S) for name in KERNELS)))
    return HorizonSolution(status=status, **{name: arrays[name] for name in ARRAYS if name in arrays}, **meta)


def _check_meta(meta: dict[str, Any]) -> None:
    """Refuse what no run can have left."""
    for name, kind in TYPES.items():
        check_type(name, meta[name], kind)
    for name in ("maximise", "optimal"):
        if not isinstance(meta[name], bool):
            raise InputError(f"{name} is of type {type(meta[name]).__name__}")
    for name in meta["actions"]:
        if not is_name(back(name)):
            raise InputError(f"actions: {RULE}, got {shown(name)}")
    for name in ("notes", "fingerprints"):
        for text in meta[name]:
            check_type(f"{name}: {shown(text)}", text, str)
    settings = meta["settings"]
    check_type("settings: balls", settings.get("balls"), list)
    for name in ("nature", "backend"):
        check_type(f"settings: {name}", settings.get(name), str)
    if not settings["balls"]:
        raise InputError("settings: balls is empty")
    Tolerance.of(settings.get("tol"), settings.get("rtol"))


def _checked(arrays: dict[str, Any], name: str, S: int) -> Any:
    """One of the arrays of the kernels, if it fits the others."""
    array = arrays[name]
    if name == "kernel_ptr" and (
        array[0] != 0 or array[-1] != arrays["kernel_mass"].size or (np.diff(array) < 0).any()
    ):
        raise InputError("kernel_ptr does not ascend from 0 to the number of entries")
    if name == "kernel_state" and array.size and not 0 <= array.min() <= array.max() < S:
        raise InputError(f"kernel_state: next states are 0 … {S - 1}")
    if name == "kernel_mass" and not ((array >= 0) & (array <= 1 + ROW_SUM_TOL)).all():
        raise InputError("kernel_mass holds what is no probability")
    return array


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
        rows = sparse.csr_array((mass, state, ptr - ptr[0]), shape=(S * A, S))
        return of_matrix(rows, A) if self.is_sparse else rows.toarray().reshape(S, A, S)
