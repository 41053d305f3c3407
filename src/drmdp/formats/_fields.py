"""What a model file holds, whatever its container: named fields, how a model is made of them, and how it becomes them.

============================= ===================== ==================================================================================
field                         shape                 meaning
============================= ===================== ==================================================================================
kernels                       (N, S, A, S)          the N kernels, or (S, A, S) for one; absent in the compressed layout
shape                         3 numbers             N, S, A (compressed)
indptr, indices, data         (S·A+1,) (E,) (N·E,)  the arrays of `drmdp.core.storage`, E next states in all (compressed)
sparse                        flag                  give the kernels back as sparse matrices; true if absent (compressed)
costs or rewards              (S,) (S, A) (S, A, S) what a step costs or earns
next_costs or next_rewards    (E,)                  instead: by next state, in the order of `indices`, unknown elsewhere (compressed)
discount                      number                what a cost of the next step is worth now
weights                       (N,)                  optional; required in the compressed layout
initial                       (S,)                  optional
states, actions, kernel_names S, A and N names      optional; an array of strings or integers, or one string: a JSON list
notes                         texts                 optional; likewise
available, terminal           (S, A) and (S,) bool  optional
ends                          (S,)                  optional: final costs, or rewards, of terminal states; 0 elsewhere
discounts                     (S, A)                optional: one for each pair, of which `discount` is the largest
sojourn                       (S, A)                optional: how long steps last
counts_indptr, counts_indices (S·A+1,) (C,)         optional: C transitions that were seen, in the order of `drmdp.core.storage`
counts_data                   (C,) or (N·C,)        and how often each was, all kernels together or by kernel
start                         string                optional; where `initial` comes from, in words
origin                        string                optional; how the model was made of a log, as JSON
format                        string                optional; "drmdp model 1"
============================= ===================== ==================================================================================

A field that is none of these is refused: a `weight` passed over in silence would change the answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from drmdp.core.archives import Field, Header, parse_json
from drmdp.core.counts import of_arrays
from drmdp.core.files import memory_limit
from drmdp.core.names import back, listed
from drmdp.core.storage import Kernels, compress_dense, from_arrays
from drmdp.core.validation import ends_of, origin_of, start_of
from drmdp.errors import InputError, brief, shown
from drmdp.model import Model, changed

FORMAT = "drmdp model 1"
PLAIN_ENTRIES = 50_000_000
"""Dense models with more probabilities than this are written compressed."""
COST_FIELDS = ("costs", "rewards", "next_costs", "next_rewards")


ARRAYS = {
    "kernels": Field("biuf", (3, 4)),
    "indptr": Field("i", (1,)),
    "indices": Field("i", (1,)),
    "data": Field("f", (1,)),
    "costs": Field("biuf", (1, 2, 3)),
    "rewards": Field("biuf", (1, 2, 3)),
    "next_costs": Field("biuf", (1,)),
    "next_rewards": Field("biuf", (1,)),
    "weights": Field("biuf", (1,)),
    "initial": Field("biuf", (1,)),
    "available": Field("b", (2,)),
    "terminal": Field("b", (1,)),
    "ends": Field("biuf", (1,)),
    "discounts": Field("biuf", (2,)),
    "sojourn": Field("biuf", (2,)),
    "counts_indptr": Field("i", (1,)),
    "counts_indices": Field("i", (1,)),
    "counts_data": Field("f", (1,)),
}
SMALL = {
    "format": Field("U", (0,)),
    "shape": Field("iu", (1,)),
    "sparse": Field("b", (0,)),
    "discount": Field("biuf", (0,)),
    "states": Field("iuU", (0, 1)),
    "actions": Field("iuU", (0, 1)),
    "kernel_names": Field("iuU", (0, 1)),
    "notes": Field("U", (0, 1)),
    "start": Field("U", (0,)),
    "origin": Field("U", (0,)),
}
"""Numbers, flags and names: arrays in an .npz file, JSON values in a directory."""
NAMES = ("states", "actions", "kernel_names", "notes")
"""Lists of names or texts."""
COUNTS = ("counts_indptr", "counts_indices", "counts_data")
COMPRESSED = ("shape", "indptr", "indices", "data", "weights")
KNOWN = ARRAYS | SMALL


# ---------------------------------------------------------------------- checks before anything is allocated


def check_names(names: Iterable[str]) -> None:
    """Refuse fields that are unknown, missing or contradictory."""
    have = set(names)
    for name in sorted(have - set(KNOWN)):
        raise InputError(f"{brief(name)}: unknown array; known: {', '.join(KNOWN)}")
    if "kernels" in have:
        for name in ("shape", "indptr", "indices", "data", "sparse", "next_costs", "next_rewards"):
            if name in have:
                raise InputError(f"{name}: belongs to the compressed layout, but `kernels` is given too")
    else:
        lacking = [name for name in COMPRESSED if name not in have]
        if len(set(lacking) - {"weights"}) == len(COMPRESSED) - 1:
            raise InputError("kernels: missing")
        for name in lacking:
            raise InputError(f"{name}: missing; the compressed layout needs {', '.join(COMPRESSED)}")
    costs = [name for name in COST_FIELDS if name in have]
    if len(costs) != 1:
        raise InputError(f"{', '.join(COST_FIELDS)}: expected exactly one, got {' and '.join(costs) or 'none'}")
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
        sizes = {
            "kernel_names": headers["weights"].size,
            **dict.fromkeys(("states", "actions"), headers["indptr"].size),
        }
    for name, most in sizes.items():
        if name in headers and headers[name].size > most:
            raise InputError(
                f"{name}: {headers[name].size} names, but there are at most {most} {name.replace('_names', 's')}"
            )
    if "shape" in headers and headers["shape"].shape != (3,):
        raise InputError(f"shape: expected three positive whole numbers N, S, A, got shape {headers['shape'].shape}")


# ---------------------------------------------------------------------- fields → model


def to_model(fields: Mapping[str, Any], normalize: bool = False) -> Model:
    """Build a model of fields whose names and headers have been checked; those of `SMALL` are JSON values."""
    check_names(fields)
    if fields.get("format", FORMAT) != FORMAT:
        raise InputError(f"format: expected {FORMAT!r}, got {shown(fields['format'])}")
    named: dict[str, Any] = {name: _name_list(name, fields[name]) for name in NAMES if name in fields}
    kernels = fields["kernels"] if "kernels" in fields else _blocks(fields)
    given = next(name for name in COST_FIELDS if name in fields)
    costs = fields[given]
    if given.startswith("next_"):
        if costs.shape != kernels.indices.shape:
            raise InputError(f"{given}: expected shape {kernels.indices.shape} like indices, got {costs.shape}")
        costs = kernels.matrix(np.asarray(costs, dtype=np.float64))
    model = Model(
        kernels,
        costs=costs if given.endswith("costs") else None,
        rewards=costs if given.endswith("rewards") else None,
        discount=fields.get("discounts", fields["discount"]),
        weights=fields.get("weights"),
        initial=fields.get("initial"),
        available=fields.get("available"),
        terminal=fields.get("terminal"),
        sojourn=fields.get("sojourn"),
        normalize=normalize,
        counts=_counts(fields, kernels) if COUNTS[0] in fields else None,
        **named,
    )
    if model.discount != fields["discount"]:
        raise InputError(f"discount: {fields['discount']!r} is not the largest of `discounts`, {model.discount!r}")
    ends = ends_of(fields.get("ends"), model.terminal)
    ends = 0.0 - ends if ends is not None and model.maximise else ends
    return changed(model, start=start_of(fields.get("start")), origin=origin_of(fields.get("origin")), ends=ends)


def _blocks(fields: Mapping[str, Any]) -> Kernels:
    """Check the compressed arrays against each other, in whole numbers of any size, and take them over."""
    shape = fields["shape"]
    if not isinstance(shape, list) or len(shape) != 3 or any(type(n) is not int or n < 1 for n in shape):
        raise InputError(f"shape: expected three positive whole numbers N, S, A, got {shown(shape)}")
    N, S, A = shape
    indptr, indices, data = fields["indptr"], fields["indices"], fields["data"]
    for name, size in (("indptr", S * A + 1), ("data", N * indices.size), ("weights", N)):
        if fields[name].size != size:
            raise InputError(f"{name}: expected {size} numbers for N, S, A = {N}, {S}, {A}, got {fields[name].size}")
    rows = N * S * A
    if rows > memory_limit() // 8:  # their sums alone
        raise InputError(f"shape: N·S·A = {rows} rows do not fit in memory")
    flag = fields.get("sparse", True)
    if not isinstance(flag, bool):
        raise InputError(f"sparse: expected true or false, got {shown(flag)}")
    return from_arrays((N, S, A), indptr, indices, data, flag)


def _counts(fields: Mapping[str, Any], kernels: Any) -> Kernels:
    compressed = isinstance(kernels, Kernels)
    S, A = (kernels.n_states, kernels.n_actions) if compressed else (1, *kernels.shape)[-3:-1]
    return of_arrays(S, A, *(fields[name] for name in COUNTS))


def _name_list(name: str, value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except InputError as error:
            raise InputError(f"{name}: expected a JSON list of names: {error}") from None
    if not isinstance(value, list):
        raise InputError(f"{name}: expected a list of names, got {type(value).__name__}")
    return list(back(value))


# ---------------------------------------------------------------------- model → fields


def to_fields(model: Model, compress: bool) -> dict[str, Any]:
    """Everything that a model holds, as arrays and, for `SMALL`, JSON values.

    Without `compress`, the kernels of dense models are one plain array, unless it would be huge or lose something:
    costs known only where a kernel has mass, stored zeros, or the bits of float32.
    """
    fields: dict[str, Any] = {"format": FORMAT, "discount": model.discount}
    costs, blocks = model.costs, model.blocks
    kernels = None if compress or sparse.issparse(costs) else _plain_kernels(model)
    if kernels is not None:
        fields["kernels"] = kernels
    else:
        fields["shape"] = [model.n_kernels, model.n_states, model.n_actions]
        fields["sparse"] = model.is_sparse
        fields |= {"indptr": blocks.indptr, "indices": blocks.indices, "data": blocks.data}
    values = costs.data if sparse.issparse(costs) else costs
    name = ("next_" if sparse.issparse(costs) else "") + ("rewards" if model.maximise else "costs")
    fields[name] = 0.0 - values if model.maximise else values  # as the model negates: the bits of zeros and NaN return
    fields |= {"weights": model.weights, "initial": model.initial}
    if not model.available.all():
        fields["available"] = model.available
    if model.terminal.any():
        fields["terminal"] = model.terminal
    if model.ends is not None:
        fields["ends"] = 0.0 - model.ends if model.maximise else model.ends
    fields |= {name: own for name in ("discounts", "sojourn") if (own := getattr(model, name)) is not None}
    if model._counts is not None:
        model.check_unchanged()
        fields |= dict(zip(COUNTS, (model._counts.indptr, model._counts.indices, model._counts.data), strict=True))
    if model.start is not None:
        fields["start"] = model.start
    if model.origin is not None:
        fields["origin"] = json.dumps(model.origin)
    for name in NAMES:
        names = getattr(model, name)
        if names and not isinstance(names, range):
            fields[name] = list(names) if name == "notes" else listed(name, names)
    return fields


def _plain_kernels(model: Model) -> Any:
    """(N, S, A, S), if the model can be made of it again exactly; else None."""
    if (
        model.is_sparse
        or model.blocks.data.dtype != np.float64
        or model.n_kernels * model.n_actions * model.n_states**2 > PLAIN_ENTRIES
    ):
        return None
    kernels, blocks = model.kernels, model.blocks
    again = compress_dense(kernels, model.available)
    same = np.array_equal(again.indptr, blocks.indptr) and np.array_equal(again.indices, blocks.indices)
    return kernels if same else None
