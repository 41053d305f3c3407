"""Display of a model at the prompt and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drmdp.errors import brief, clean
from drmdp.ui import html
from drmdp.ui import text as words

if TYPE_CHECKING:
    from drmdp.model import Model


def summary(model: Model) -> str:
    """A few lines for the prompt."""
    lo, hi = model.price_range
    name = "rewards" if model.maximise else "costs"
    shape = "(S, A, S)" if model.next_costs else "(S, A)"
    prices = f"  {name} {shape} in [{lo:g}, {hi:g}]"
    lines = [model.head.described(model._blocks.indices.size, words.memory(model.nbytes), prices)]
    if model.discounts is not None:
        least = words.discount(float(model.discounts[model.available].min()))
        lines.append(f"  discounts (S, A) in [{least}, {words.discount(model.discount)}]")
    if model.sojourn is not None:
        lasts = model.sojourn[model.available]
        lines.append(f"  steps last from {lasts.min():g} to {lasts.max():g}")
    if not isinstance(model.kernel_names, range):
        lines.append(f"  kernels {words.first_names(model.kernel_names)}")
    if model._counts is not None and model.pair_counts is not None:
        lines.append(f"  counts of {float(model.pair_counts.sum()):,.12g} transitions")
    closed = int((~model.available[~model.terminal]).sum())
    if closed or model.terminal.any():
        ends = words.count(int(model.terminal.sum()), "terminal state")
        lines.append(f"  {words.count(closed, 'unavailable pair')}, {ends}")
    return clean("\n".join(lines + [f"  note: {brief(note, 1000)}" for note in model.notes]))


def notebook(model: Model) -> str:
    """A table for notebooks."""
    first, *others = repr(model).removeprefix("Model: ").splitlines()
    data = "; ".join(line.strip() for line in others if "note: " not in line)
    head = {"size": first, "data": data}
    head |= {"notes": "; ".join(model.notes)} if model.notes else {}
    sign = -1.0 if model.maximise else 1.0
    columns, rows = ["state", "actions"], []
    if not model.next_costs:
        columns.append("reward" if model.maximise else "cost")
    for s in range(min(model.n_states, html.ROWS)):
        actions = np.flatnonzero(model.available[s])
        names = words.first_names([model.actions[a] for a in actions.tolist()], 8)
        rows.append([model.states[s], names or "(end)"])
        if not model.next_costs:
            costs = sorted({float(0.0 + sign * model._costs[s, a]) for a in actions})
            extremes = dict.fromkeys((costs[0], costs[-1])) if costs else ()
            rows[-1].append(" … ".join(f"{cost:.6g}" for cost in extremes))
    return html.facts("Model", head) + html.table(columns, rows, model.n_states)
