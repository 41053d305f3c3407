"""What identifies the numbers of a model in a proof file: a SHA-256 of its head and of one SHA-256 for each state, as `drmdp_check` computes it from a file.

So whoever has a range of states hashes it, and nobody has to read the model whole. Where nature moves laws, pairs have a row for each law over the events.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from drmdp.model import Model
from drmdp.proof.states import pair_of


def digest(model: Model) -> str:
    """That of a model."""
    return joined(model.head, of_states(model), model.discounts is not None)


def joined(head: Any, states: Iterable[bytes], each: bool = False) -> str:
    """That of a model whose states have these; `each`: pairs have discounts of their own, which the states hold."""
    rate = -1.0 if each else head.discount
    sizes = struct.pack("<qqqd", head.n_kernels, head.n_states, head.n_actions, rate)
    found = hashlib.sha256(sizes + np.asarray(head.weights, dtype="<f8").tobytes())
    for own in states:
        found.update(own)
    return found.hexdigest()


def of_states(model: Model) -> Iterator[bytes]:
    """A digest for each state, of its available pairs; the numbers of states are those of the whole model."""
    for s in range(model.n_states):
        end = 0.0 if model.ends is None else float(model.ends[s])
        found = hashlib.sha256(struct.pack("<qd", model.first + s, end) if end else b"")
        for a in np.flatnonzero(model.available[s]).tolist():
            pair = pair_of(model, s, a)
            found.update(struct.pack("<qqq", model.first + s, a, pair.columns.size))
            rate = [] if model.discounts is None else [pair.rate]
            for numbers, kind in ((pair.there, "<i4"), (pair.rows, "<f8"), (pair.costs + 0.0, "<f8"), (rate, "<f8")):
                found.update(np.asarray(numbers, dtype=kind).tobytes())
            if model.sojourn is not None:
                found.update(b"sojourn" + struct.pack("<d", model.sojourn[s, a]))
        yield found.digest()
