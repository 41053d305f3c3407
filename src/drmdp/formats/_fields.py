"""Named fields of a model file, whatever its container: fields to models, and models to fields.

============================= ===================== ================================================
field                         shape                 meaning
============================= ===================== ================================================
kernels                       (N, S, A, S)          the N kernels, or (S, A, S) for one; absent in
                                                    the compressed layout
shape                         3 numbers             N, S, A (compressed)
indptr, indices, data         (S·A+1,) (E,) (N·E,)  the arrays of `drmdp.core.storage`, E next
                                                    states in all (compressed)
sparse                        flag                  give the kernels back as sparse matrices; true
                                                    if absent (compressed)
costs or rewards              (S,) (S, A) (S, A, S) what a step costs or earns
next_costs or next_rewards    (E,)                  instead: by next state, in the order of
                                                    `indices`, unknown elsewhere (compressed)
discount                      number                what a cost of the next step is worth now
weights                       (N,)                  optional; required in the compressed layout
initial                       (S,)                  optional
states, actions, kernel_names S, A and N names      optional; an array of strings or integers, or
                                                    one string: a JSON list
notes                         texts                 optional; likewise
available, terminal           (S, A) and (S,) bool  optional
ends                          (S,)                  optional: final costs, or rewards, of terminal
                                                    states; 0 elsewhere
discounts                     (S, A)                optional: one for each pair, of which `discount`
                                                    is the largest
sojourn                       (S, A)                optional: how long steps last
counts_indptr, counts_indices (S·A+1,) (C,)         optional: C transitions that were seen, in the
                                                    order of `drmdp.core.storage`
counts_data                   (C,) or (N·C,)        and how often each was, all kernels together or
                                                    by kernel
start                         string                optional; where `initial` comes from, in words
origin                        string                optional; how the model was made of a log, as
                                                    JSON
format                        string                optional; "drmdp model 1"
============================= ===================== ================================================

A field that is none of these is refused: a `weight` passed over in silence would change the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from drmdp.core.names import back, listed
from drmdp.core.storage import Kernels, compress_dense, from_arrays
from drmdp.core.validation import ends_of, origin_of, placed, start_of
from drmdp.errors import InputError, brief, shown, unexpected
from drmdp.io.archives import Field, Header, parse_json
from drmdp.io.files import memory_limit
from drmdp.model import Model, changed
from drmdp.model.counts import of_arrays

FORMAT = "drmdp model 1"
PLAIN_ENTRIES = 50_000_000
"""Dense models with more probabilities than this are written compressed."""
COST_FIELDS = ("costs", "rewards", "next_costs", "next_rewards")
VECTOR = Field("biuf", (1,))
ARRAYS = {
    "kernels": Field("biuf", (3, 4)),
    **dict.fromkeys(("indptr", "indices"), Field("i", (1,))),
    "data": Field("f", (1,)),
    **dict.fromkeys(("costs", "rewards"), Field("biuf", (1, 2, 3))),
    **dict.fromkeys(("next_costs", "next_rewards", "weights", "initial", "ends"), VECTOR),
    "available": Field("b", (2,)),
    "terminal": Field("b", (1,)),
    **dict.fromkeys(("discounts", "sojourn"), Field("biuf", (2,))),
    **dict.fromkeys(("counts_indptr", "counts_indices"), Field("i", (1,))),
    "counts_data": Field("f", (1,)),
}
SMALL = {
    "format": Field("U", (0,)),
    "shape": Field("iu", (1,)),
    "sparse": Field("b", (0,)),
    "discount": Field("biuf", (0,)),
    **dict.fromkeys(("states", "actions", "kernel_names"), Field("iuU", (0, 1))),
    "notes": Field("U", (0, 1)),
    **dict.fromkeys(("start", "origin"), Field("U", (0,))),
}
"""Numbers, flags and names: arrays in an .npz file, JSON values in a directory."""
NAMES = ("states", "actions", "kernel_names", "notes")
"""Lists of names or texts."""
COUNTS = ("counts_indptr", "counts_indices", "counts_data")
COMPRESSED = ("shape", "indptr", "indices", "data", "weights")
KNOWN = ARRAYS | SMALL


# ---------------------------------------------------------------------- checks before anything is
# allocated


def check_names(names: Iterable[str]) -> None:
    """Refuse fields that are unknown, missing or contradictory."""
    have = set(names)
    for name in sorted(have - set(KNOWN)):
        raise InputError(f"{brief(name)}: unknown array; known: {', '.join(KNOWN)}")
    if "kernels" in have:
        for name in ("shape", "indptr", "indices", "data", "sparse", "next_costs", "next_rewards"):
            if name in have:
                fault = "belongs to the compressed layout, but `kernels` is given too"
                raise InputError(f"{name}: {fault}")
    else:
        lacking = [name for name in COMPRESSED if name not in have]
        if len(set(lacking) - {"weights"}) == len(COMPRESSED) - 1:
            raise InputError("kernels: missing")
        for name in lacking:
            rule = f"the compressed layout needs {', '.join(COMPRESSED)}"
            raise InputError(f"{name}: missing; {rule}")
    costs = [name for name in COST_FIELDS if name in have]
    if len(costs) != 1:
        given = " and ".join(costs) or "none"
        raise InputError(f"{', '.join(COST_FIELDS)}: expected exactly one, got {given}")
    if "discount" not in have:
        raise InputError("discount: missing")
    check_together(have, COUNTS)


def check_together(have: Iterable[str], names: tuple[str, ...]) -> None:
    """Refuse some of the arrays that only make sense together."""
    lacking = [name for name in names if name not in have]
    if 0 < len(lacking) < len(names):
        raise InputError(f"{lacking[0]}: missing")


def check_sizes(headers: Mapping[str, Header]) -> None:
    """Refuse more names than there can be things to name, as far as the headers say."""
    if "kernels" in headers:
        N, S, A = (1, *headers["kernels"].shape)[-4:-1]
        sizes = {"kernel_names": N, "states": S, "actions": A}
    else:
        sizes = dict.fromkeys(("states", "actions"), headers["indptr"].size)
        sizes["kernel_names"] = headers["weights"].size
    for name, most in sizes.items():
        if name in headers and headers[name].size > most:
            limit = f"there are at most {most} {name.replace('_names', 's')}"
            raise InputError(f"{name}: {headers[name].size} names, but {limit}")
    if "shape" in headers and headers["shape"].shape != (3,):
        expected = "expected three positive whole numbers N, S, A"
        raise InputError(f"shape: {expected}, got shape {headers['shape'].shape}")


# ---------------------------------------------------------------------- fields → model


def to_model(fields: Mapping[str, Any], normalize: bool = False) -> Model:
    """Build a model of fields whose names and headers have been checked; those of `SMALL` are JSON
    values.
    """
    check_names(fields)
    if fields.get("format", FORMAT) != FORMAT:
        raise InputError(f"format: expected {FORMAT!r}, got {shown(fields['format'])}")
    arguments: Any = {name: _name_list(name, fields[name]) for name in NAMES if name in fields}
    kernels = fields["kernels"] if "kernels" in fields else _blocks(fields)
    costs_name = next(name for name in COST_FIELDS if name in fields)
    costs = fields[costs_name]
    if costs_name.startswith("next_"):
        if costs.shape != kernels.indices.shape:
            raise unexpected(costs_name, f"shape {kernels.indices.shape} like indices", costs.shape)
        costs = kernels.matrix(np.asarray(costs, dtype=np.float64))
    for name in ("weights", "initial", "available", "terminal", "sojourn"):
        arguments[name] = fields.get(name)
    arguments[costs_name.removeprefix("next_")] = costs
    arguments["discount"] = fields.get("discounts", fields["discount"])
    counts = _counts(fields, kernels) if COUNTS[0] in fields else None
    model = Model(kernels, normalize=normalize, counts=counts, **arguments)
    if model.discount != fields["discount"]:
        fault = f"{fields['discount']!r} is not the largest of `discounts`"
        raise InputError(f"discount: {fault}, {model.discount!r}")
    ends = ends_of(fields.get("ends"), model.terminal)
    ends = 0.0 - ends if ends is not None and model.maximise else ends
    start, origin = start_of(fields.get("start")), origin_of(fields.get("origin"))
    return changed(model, start=start, origin=origin, ends=ends)


def _blocks(fields: Mapping[str, Any]) -> Kernels:
    """Check the compressed arrays against each other, in whole numbers of any size, and take them
    over.
    """
    N, S, A = shape_of(fields["shape"], "three", "N, S, A")
    indptr, indices, data = fields["indptr"], fields["indices"], fields["data"]
    for name, size in (("indptr", S * A + 1), ("data", N * indices.size), ("weights", N)):
        if fields[name].size != size:
            expected = f"{size} numbers for N, S, A = {N}, {S}, {A}"
            raise unexpected(name, expected, fields[name].size)
    rows = N * S * A
    if rows > memory_limit() // 8:  # their sums alone
        raise InputError(f"shape: N·S·A = {rows} rows do not fit in memory")
    flag = fields.get("sparse", True)
    if not isinstance(flag, bool):
        raise InputError(f"sparse: expected true or false, got {shown(flag)}")
    return from_arrays((N, S, A), indptr, indices, data, flag)


def shape_of(shape: Any, count: str, letters: str) -> tuple[int, ...]:
    """Check N, S, A, or however many there are."""
    right = isinstance(shape, list) and len(shape) == len(letters.split())
    if not right or any(type(size) is not int or size < 1 for size in shape):
        raise unexpected("shape", f"{count} positive whole numbers {letters}", shape)
    return tuple(shape)


def _counts(fields: Mapping[str, Any], kernels: Any) -> Kernels:
    compressed = isinstance(kernels, Kernels)
    S, A = (kernels.n_states, kernels.n_actions) if compressed else (1, *kernels.shape)[-3:-1]
    return of_arrays(S, A, *(fields[name] for name in COUNTS))


def _name_list(name: str, value: Any) -> list[Any]:
    if isinstance(value, str):
        with placed(f"{name}: expected a JSON list of names"):
            value = parse_json(value)
    if not isinstance(value, list):
        raise InputError(f"{name}: expected a list of names, got {type(value).__name__}")
    return list(back(value))


# ---------------------------------------------------------------------- model → fields


def to_fields(model: Model) -> dict[str, Any]:
    """Everything that a model holds, as arrays and, for `SMALL`, JSON values.

    The kernels of dense models are one plain array, unless it would be huge or lose something:
    costs known only where a kernel has mass, stored zeros, or the bits of float32.
    """
    fields: dict[str, Any] = {"format": FORMAT, "discount": model.discount}
    costs, blocks = model.costs, model.blocks
    kernels = None if sparse.issparse(costs) else _plain_kernels(model)
    if kernels is not None:
        fields["kernels"] = kernels
    else:
        fields["shape"] = [model.n_kernels, model.n_states, model.n_actions]
        fields["sparse"] = model.is_sparse
        fields |= {"indptr": blocks.indptr, "indices": blocks.indices, "data": blocks.data}
    values = costs.data if sparse.issparse(costs) else costs
    name = ("next_" if sparse.issparse(costs) else "") + ("rewards" if model.maximise else "costs")
    # as the model negates: the bits of zeros and NaN return
    fields[name] = 0.0 - values if model.maximise else values
    fields |= {"weights": model.weights, "initial": model.initial}
    optional: dict[str, Any] = {
        "available": None if model.available.all() else model.available,
        "terminal": model.terminal if model.terminal.any() else None,
        "ends": model.ends if model.ends is None or not model.maximise else 0.0 - model.ends,
        "discounts": model.discounts,
        "sojourn": model.sojourn,
        "start": model.start,
        "origin": None if model.origin is None else json.dumps(model.origin),
    }
    if model._counts is not None:
        model.check_unchanged()
        counts = model._counts
        optional |= zip(COUNTS, (counts.indptr, counts.indices, counts.data), strict=True)
    fields |= {name: value for name, value in optional.items() if value is not None}
    return fields | texts_of(model, NAMES)


def texts_of(model: Any, which: tuple[str, ...]) -> dict[str, list[Any]]:
    """Names and notes of a model, or of its head, that are not just numbers."""
    given = {name: getattr(model, name) for name in which}
    texts = {name: names for name, names in given.items() if names and not isinstance(names, range)}
    return {k: list(x) if k == "notes" else listed(k, x) for k, x in texts.items()}


def _plain_kernels(model: Model) -> Any:
    """(N, S, A, S), if the model can be made of it again exactly; else None."""
    entries, blocks = model.n_kernels * model.n_actions * model.n_states**2, model.blocks
    if model.is_sparse or blocks.data.dtype != np.float64 or entries > PLAIN_ENTRIES:
        return None
    kernels = model.kernels
    again = compress_dense(kernels, model.available)
    pairs = (again.indptr, blocks.indptr), (again.indices, blocks.indices)
    return kernels if all(np.array_equal(*pair) for pair in pairs) else None
