"""Solutions in .npz files: what is stored, and what is checked before it is believed.

====================== ============== ============================================================================
array                  shape          meaning
====================== ============== ============================================================================
value, lower, upper    (S,)           lower ≤ value ≤ upper
policy                 (S, A)         rows sum to 1, or are 0 (terminal states)
states, states_ends    (B,), (S + 1,) names of states, as in `drmdp.core.names`; absent if they are 0, 1, 2, …
kernel                 (S, A, S)      nature's kernel; of a sparse model its parts instead, `kernel.` and a name in `rows.STORED`
meta                   bytes          a JSON object with everything else
====================== ============== ============================================================================

Headers are checked before anything is read, arrays that are none of these are refused, and nothing is ever unpickled.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from drmdp.core import archives
from drmdp.core import compact as rows
from drmdp.core.archives import Field, Header
from drmdp.core.files import AnyPath, write_whole
from drmdp.core.names import RULE, StoredNames, back, is_name, listed, to_arrays
from drmdp.core.tolerance import Tolerance
from drmdp.core.validation import Names
from drmdp.errors import InputError, shown
from drmdp.solution.results import ARRAYS, Record, Solution, Status

FORMAT = "drmdp solution 3"
PART = "kernel."
"""Prefix of the arrays of a compact kernel."""
NAMES = ("states", "states_ends")
"""Arrays of the names of states."""
PARTS = {PART + name: Field(kind, (1,)) for name, kind in rows.KINDS.items()}
KNOWN = {
    **dict.fromkeys(("value", "lower", "upper"), Field("f", (1,))),
    "policy": Field("f", (2,)),
    "kernel": Field("f", (3,)),
    "meta": Field("u", (1,)),
    **dict(zip(NAMES, (Field("u", (1,)), Field("i", (1,))), strict=True)),
    **PARTS,
}
LEFT_OUT = ("kernels", "weights")
PLAIN = tuple(f.name for f in fields(Solution) if f.name not in (*ARRAYS, *LEFT_OUT, "status", "history", "states"))
"""Fields that JSON holds as they are."""
SETTINGS = ("method", "backend", "ball")
"""Texts that the settings of every run have."""
ROW_SUM_TOL = 1e-6

# ---------------------------------------------------------------------- writing


def write(solution: Solution, path: AnyPath) -> None:
    """Write a solution, completely or not at all."""
    arrays = {name: np.asarray(getattr(solution, name)) for name in ARRAYS if name != "kernel"}
    if isinstance(solution.kernel, np.ndarray):
        arrays["kernel"] = solution.kernel
    else:
        arrays |= {PART + name: getattr(solution.kernel.compact, name) for name in rows.STORED}
    S, A = len(solution.states), len(solution.actions)
    for name, array in arrays.items():
        expected = shape_of(name, S, A)
        if expected is not None and (array.shape != expected or array.dtype != np.float64):
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected float64 {expected}")
    if not isinstance(solution.states, range):
        arrays |= dict(zip(NAMES, to_arrays("states", solution.states), strict=True))
    meta = {
        "format": FORMAT,
        "status": str(solution.status),
        "history": [asdict(record) for record in solution.history],
        **{name: getattr(solution, name) for name in PLAIN},
        "actions": listed("actions", solution.actions),
    }
    arrays["meta"] = np.frombuffer(json.dumps(meta, default=plain).encode(), dtype=np.uint8)
    write_whole(path, lambda stream: np.savez(stream, **arrays))  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """Numbers of NumPy as Python's, for JSON."""
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, np.floating):
        return float(value)
    raise TypeError(f"cannot save {value!r} of type {type(value).__name__}")


def shape_of(name: str, S: int, A: int) -> tuple[int, ...] | None:
    """Shape of an array, if the sizes of the model say it."""
    if name in PARTS or name in ("meta", "states"):
        return None
    return {"policy": (S, A), "kernel": (S, A, S), "states_ends": (S + 1,)}.get(name, (S,))


# ---------------------------------------------------------------------- reading


def read(path: AnyPath) -> Solution:
    """Read what `write` wrote; an `InputError` says what anything else is."""
    try:
        with archives.opened(path) as archive:
            members = archives.members(archive)
            _check_names(members)
            headers = archives.headers(archive, members, KNOWN)
            _check_headers(headers)
            arrays = {name: archives.load(archive, name, info) for name, info in members.items()}
        meta = archives.parse_json(arrays.pop("meta").tobytes())
        return _solution(arrays, meta)
    except InputError as error:
        what = archives.describe(path)
        raise InputError(f"not a saved solution: {error if what == 'a saved solution' else f'it is {what}'}") from None


def _check_names(names: Any) -> None:
    have = set(names)
    for name in sorted(have - set(KNOWN)):
        raise InputError(f"unknown array {shown(name)}")
    kernel = set(PARTS) if have & set(PARTS) else {"kernel"}
    expected = {"value", "policy", "lower", "upper", "meta"} | kernel | (set(NAMES) if have & set(NAMES) else set())
    if have != expected:
        raise InputError(f"expected the arrays {', '.join(sorted(expected))}, got {', '.join(sorted(have))}")


def _check_headers(headers: dict[str, Header]) -> None:
    S, A = headers["policy"].shape
    for name, header in headers.items():
        expected = shape_of(name, S, A)
        if expected is not None and (header.shape != expected or header.dtype.itemsize != 8):
            raise InputError(f"{name} is {header.dtype} {header.shape}, expected {kind_of(name)} {expected}")
    for name in ("meta", "states"):
        if name in headers and headers[name].dtype.itemsize != 1:
            raise InputError(f"{name} is {headers[name].dtype}, expected bytes")
    others = [header for name, header in headers.items() if name != "meta"]
    archives.check_memory(
        [*others, headers["meta"]._replace(shape=(headers["meta"].size * 2,))]
    )  # 40 bytes for one of JSON


def kind_of(name: str) -> str:
    """What an array holds."""
    return "int64" if name in NAMES else "float64"


def _solution(arrays: dict[str, Any], meta: Any) -> Solution:
    if not isinstance(meta, dict) or meta.pop("format", None) != FORMAT:
        raise InputError(f"expected format {FORMAT!r}")
    expected = {*PLAIN, "status", "history"}
    if "weights" in meta and meta["weights"] is None:
        del meta["weights"]  # as it was written before they were left out
    meta.pop("compile_seconds", None)  # of version 0.2
    if set(meta) | {"notes"} != expected:
        raise InputError(f"expected the entries {', '.join(sorted(expected))}, got {shown(sorted(meta))}")
    if meta["status"] not in list(Status):
        raise InputError(f"unknown status {shown(meta['status'])}")
    status, history = Status(meta.pop("status")), _history(meta.pop("history"))
    for name in ("actions", "notes"):
        check_type(name, meta.setdefault(name, []), list)
        meta[name] = back(meta[name])
    _check_meta(meta)
    S, A = arrays["policy"].shape
    if len(meta["actions"]) != A:
        raise InputError(f"{len(meta['actions'])} actions, but policy is {S} × {A}")
    meta["states"] = states_of(arrays, S)
    check_values(arrays)
    return Solution(status=status, history=history, **_with_kernel(arrays, S, A), **meta)


def states_of(arrays: dict[str, Any], S: int) -> Names:
    """Take the names of states out of the arrays."""
    if "states" not in arrays:
        return range(S)
    names = StoredNames(arrays.pop("states"), arrays.pop("states_ends"))
    names.check("states")
    return names


def _history(given: Any) -> tuple[Record, ...]:
    names = {f.name for f in fields(Record)}
    check_type("history", given, list)
    if not given:
        raise InputError("history is empty")
    for record in given:
        check_type("history", record, dict)
        if set(record) != names:
            raise InputError(f"history: expected the entries {', '.join(sorted(names))}, got {shown(sorted(record))}")
        for name, value in record.items():
            check_type(f"history: {name}", value, float | int)
    return tuple(Record(**record) for record in given)


def _check_meta(meta: dict[str, Any]) -> None:
    """Refuse what no run can have left."""
    for name in ("duality_gap", "scale", "seconds", "setup_seconds"):
        check_type(name, meta[name], float | int)
    for name in meta["actions"]:
        if not is_name(name):
            raise InputError(f"actions: {RULE}, got {shown(name)}")
    for note in meta["notes"]:
        check_type(f"note {shown(note)}", note, str)
    check_type("fingerprint", meta["fingerprint"], str)
    settings = meta["settings"]
    check_type("settings", settings, dict)
    for name in SETTINGS:
        check_type(f"settings: {name}", settings.get(name), str)
    Tolerance.of(settings.get("tol"), settings.get("rtol"))


def check_type(name: str, value: Any, expected: Any) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, expected) or isinstance(value, bool):
        raise InputError(f"{name} is of type {type(value).__name__}")


def check_values(arrays: dict[str, Any]) -> None:
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


def _with_kernel(arrays: dict[str, Any], S: int, A: int) -> dict[str, Any]:
    """Put a compact kernel together again."""
    if "kernel" in arrays:
        return arrays
    parts = {name.removeprefix(PART): arrays.pop(name) for name in PARTS}
    return {**arrays, "kernel": rows.restored(S, A, parts)}
