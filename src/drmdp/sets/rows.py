"""Rows of a state, and where a set allows them mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.model import Model
from drmdp.model.events import EventModel


def rows_of(ambiguity: Any, model: Model, s: int) -> tuple[Array, BoolArray]:
    """Available rows of state s on the next states some row lists and one that none does, (A', N,
    K), and which are allowed.
    """
    actions, N = np.flatnonzero(model.available[s]), model.n_kernels
    blocks, first = model.blocks, s * model.n_actions
    if isinstance(model, EventModel):
        if ambiguity.moves == "events":
            classes, laws, live = classed(ambiguity, model)
            return laws[classes[s, actions]], live[classes[s, actions]][:, None, :]
        if ambiguity.support == "observed":
            return model.slots(s)
        blocks, first = model.piece(s, s + 1).blocks, 0
    pairs = (first + actions).tolist()
    listed = [blocks.indices[blocks.indptr[k] : blocks.indptr[k + 1]] for k in pairs]
    columns = np.unique(np.concatenate(listed))
    other = ambiguity.support == "all" and columns.size < model.n_states
    y = np.zeros((actions.size, N, columns.size + other))
    for row, k, states in zip(y, pairs, listed, strict=True):
        block = blocks.data[N * blocks.indptr[k] : N * blocks.indptr[k + 1]]
        row[:, np.searchsorted(columns, states)] = block.reshape(N, -1)
    if blocks.data.dtype != np.float64:
        y /= y.sum(axis=2, keepdims=True)
    if ambiguity.support == "all":
        return y, np.ones((actions.size, 1, y.shape[2]), dtype=bool)
    allowed = np.asarray((y[:, model.weights > 0] > 0).any(axis=1, keepdims=True))
    if ambiguity.support == "state":
        allowed = np.broadcast_to(allowed.any(axis=0), allowed.shape)
    return y, allowed


def classed(ambiguity: Any, model: EventModel) -> tuple[Any, Array, BoolArray]:
    """Classes of all pairs, (S, A), their laws, (C, N, E), and which events may have mass, (C,
    E).
    """
    if ambiguity.support == "state":
        model, live = model.by_state
    else:
        live = (model.laws[:, model.weights > 0] > 0).any(axis=1) | (ambiguity.support == "all")
    classes = model.classes if model.classes.size else np.zeros(model.available.shape, np.int64)
    return classes, model.laws, live
