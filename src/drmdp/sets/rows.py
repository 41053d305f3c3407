"""What a set sees of one state: its rows, and where they may have mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.model import Model
from drmdp.model.events import EventModel


def rows_of(ball: Any, model: Model, s: int) -> tuple[Array, BoolArray]:
    """Available rows of state s on the next states some row lists and one that none does, (A', N, K), and which are allowed."""
    own = np.flatnonzero(model.available[s])
    if isinstance(model, EventModel) and ball.moves == "events":
        classes, laws, live = classed(ball, model)
        return laws[classes[s, own]], live[classes[s, own]][:, None, :]
    if isinstance(model, EventModel) and ball.support == "observed":
        return model.slots(s)
    whole, first = (model.piece(s, s + 1), 0) if isinstance(model, EventModel) else (model, s * model.n_actions)
    blocks, pairs, N = whole.blocks, (first + own).tolist(), model.n_kernels
    listed = [blocks.indices[blocks.indptr[k] : blocks.indptr[k + 1]] for k in pairs]
    columns = np.unique(np.concatenate(listed))
    other = ball.support == "all" and columns.size < model.n_states
    y = np.zeros((own.size, N, columns.size + other))
    for row, k, states in zip(y, pairs, listed, strict=True):
        block = blocks.data[N * blocks.indptr[k] : N * blocks.indptr[k + 1]]
        row[:, np.searchsorted(columns, states)] = block.reshape(N, -1)
    if blocks.data.dtype != np.float64:
        y /= y.sum(axis=2, keepdims=True)
    if ball.support == "all":
        return y, np.ones((own.size, 1, y.shape[2]), dtype=bool)
    seen = (y[:, model.weights > 0] > 0).any(axis=1, keepdims=True)
    return y, np.broadcast_to(seen.any(axis=0), seen.shape) if ball.support == "state" else np.asarray(seen)


def classed(ball: Any, model: EventModel) -> tuple[Any, Array, BoolArray]:
    """Classes of all pairs, (S, A), their laws, (C, N, E), and which events may have mass, (C, E)."""
    if ball.support == "state":
        model, live = model.by_state
    else:
        live = (model.laws[:, model.weights > 0] > 0).any(axis=1) | (ball.support == "all")
    return model.classes if model.classes.size else np.zeros(model.available.shape, np.int64), model.laws, live
