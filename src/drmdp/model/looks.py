"""How a model looks at the prompt and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drmdp.core import html
from drmdp.core import text as words
from drmdp.errors import brief, clean

if TYPE_CHECKING:
    from drmdp.model import Model


def shown_model(model: Model) -> str:
    """A few lines."""
    lo, hi = model.cost_range
    if model.maximise:
        lo, hi = 0.0 - hi, 0.0 - lo
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
        lines.append(f"  kernels {words.some(model.kernel_names)}")
    if model._counts is not None and model.pair_counts is not None:
        lines.append(f"  counts of {float(model.pair_counts.sum()):,.12g} transitions")
    closed = int((~model.available[~model.terminal]).sum())
    if closed or model.terminal.any():
        ends = int(model.terminal.sum())
        lines.append(f"  {words.count(closed, 'unavailable pair')}, {words.count(ends, 'terminal state')}")
    return clean("\n".join(lines + [f"  note: {brief(note, 1000)}" for note in model.notes]))


def notebook(model: Model) -> str:
    """What a notebook shows."""
    first, *others = repr(model).removeprefix("Model: ").splitlines()
    head = {"size": first, "data": "; ".join(line.strip() for line in others if "note: " not in line)}
    head |= {"notes": "; ".join(model.notes)} if model.notes else {}
    sign = -1.0 if model.maximise else 1.0
    rows = []
    for s in range(min(model.n_states, html.ROWS)):
        own = np.flatnonzero(model.available[s])
        names = ", ".join(str(model.actions[a]) for a in own[:8]) + (", …" if own.size > 8 else "")
        rows.append([model.states[s], names or "(end)"])
        if not model.next_costs:
            level = sorted({float(0.0 + sign * model._costs[s, a]) for a in own})
            rows[-1].append(" … ".join(f"{cost:.6g}" for cost in (level[0], level[-1])[: len(level)]) if level else "")
    columns = ["state", "actions"] + ([] if model.next_costs else ["reward" if model.maximise else "cost"])
    return html.facts("Model", head) + html.table(columns, rows, model.n_states)
