"""Models of events in a .drmdp directory: laws, and the table of where events lead, mapped into
memory and not loaded.

model.json says ``"format": "drmdp events 1"``, the shape N, S, A, E, and what an ordinary directory
says (`drmdp.formats.directory.stored`), with ``grid`` for states that are digits. The arrays, each
an .npy file:

====================== ==================== ========================================================
laws                   (C, N, E)            laws of the events, by class
next                   (S, A, E) int32      where each event leads
event_costs            (S, A, E)            what that costs; or costs (S, A)
classes                (S, A) uint16        class of each pair, if there are several
available, terminal,   (S, A) (S,) (S,)     optional
initial
states, states_ends                         names, as in an ordinary directory
====================== ==================== ========================================================

A function is code, and code is not saved: `tabulate` makes a table of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.core import validation as checks
from drmdp.core.distributions import Labels
from drmdp.errors import InputError, shown
from drmdp.formats._fields import check_together, shape_of
from drmdp.formats.directory import stored
from drmdp.formats.directory.files import Files, index_of
from drmdp.io.files import naming
from drmdp.model import state_ranges
from drmdp.model.events import EventModel, tabulated
from drmdp.model.events.laws import checked_laws
from drmdp.model.events.rules import EventFunction, EventTable
from drmdp.model.grid import Grid

FORMAT = "drmdp events 1"
FIELDS = {
    "laws": ("f8", "CNE"),
    "next": ("i4", "SAE"),
    "event_costs": ("f8", "SAE"),
    "costs": ("f8", "SA"),
    "classes": ("u2", "SA"),
    **stored.OF_STATES,
}
"""Dtypes and shapes of the arrays, as in `drmdp.formats.directory.stored`; C classes of laws."""


def write(model: EventModel, path: Path) -> None:
    """Write a model whose next states are in a table."""
    rule = model.rule
    if isinstance(rule, EventFunction):
        cure = "write model.tabulate(), the table of what it says"
        raise InputError(f"next states are asked of a function, and code is not saved: {cure}")
    shape = [model.n_kernels, model.n_states, model.n_actions, model.n_events]
    index = index_of(FORMAT, model, shape, maximise=model.maximise)
    files = Files(path)
    try:
        files.put("laws", model.laws)
        files.put("next", rule.next)
        files.put(*(("event_costs", rule.costs) if model.priced else ("costs", model._prices)))
        for name, needed in (
            ("classes", model.classes.size),
            ("initial", (model.initial != 1 / model.n_states).any()),
            ("available", not (model.available | model.terminal[:, None]).all()),
            ("terminal", model.terminal.any()),
            ("ends", model.ends is not None),
        ):
            if needed:
                files.put(name, getattr(model, name))
        if isinstance(model.states, Grid):
            index["grid"] = list(model.states.sizes)
        elif not isinstance(model.states, range):
            files.put_names(model.states)
        files.finish(index)
    except BaseException:
        files.abort()
        raise


def read(path: Path, folder: int | None, index: dict[str, Any]) -> EventModel:
    """Open a model; its table stays on disk, and is read once to see that it is one."""
    model = mapped(path, folder, index)
    check(model)
    return model


def opened(path: str | os.PathLike[str]) -> EventModel:
    """Open a directory without reading its table."""
    with naming(path), stored.opened(Path(path)) as (folder, index):
        return mapped(Path(path), folder, index)


def check(model: EventModel) -> None:
    """Refuse what no model has, of all states or of a range."""
    if isinstance(model.rule, EventTable):
        _check_next(model)
    if model.priced:
        tabulated(model, keep=False)
    else:
        labels = Labels(model.kernel_names, model.states, model.actions)
        checks.check_costs("costs", model._prices, None, model.discount, labels)


def mapped(path: Path, folder: int | None, index: dict[str, Any]) -> EventModel:
    """The model of an index and mapped arrays, whose table was not looked at."""
    stored.check_index(index, ("grid",))
    N, S, A, E = shape_of(index["shape"], "four", "N, S, A, E")
    arrays = stored.mapped(path, folder, FIELDS)
    _check_shapes(N, S, A, E, arrays)
    named = stored.named(index, N, S, A)
    end = np.array(arrays.get("terminal", np.zeros(S, dtype=bool)))
    available = arrays.get("available", np.ones((S, A), dtype=bool)) & ~end[:, None]
    states = _states(index, arrays, S)
    state_ranges.check_open(available, end, Labels(named["kernel_names"], states, named["actions"]))
    priced = "event_costs" in arrays
    laws = checked_laws(np.asarray(arrays["laws"]), E)
    model: EventModel = object.__new__(EventModel)
    model._set(
        **named,
        **dict.fromkeys(("discounts", "sojourn", "origin", "_counts")),
        first=0,
        n_next=S,
        initial=checks.distribution("initial", arrays.get("initial"), states, "state"),
        states=states,
        available=available,
        terminal=end,
        ends=checks.ends_of(arrays.get("ends"), end),
        is_sparse=True,
        laws=laws,
        rule=EventTable(arrays["next"], arrays.get("event_costs")),
        classes=_classes(arrays, len(laws)),
        priced=priced,
        _prices=np.zeros((S, A)) if priced else np.array(arrays["costs"]),
    )
    return model


def _states(index: dict[str, Any], arrays: dict[str, Any], S: int) -> Any:
    if "grid" in index:
        sizes = index["grid"]
        grid = Grid(*sizes) if isinstance(sizes, list) else ()
        if len(grid) != S:
            raise InputError(f"grid: expected sizes of {S} states, got {shown(sizes)}")
        return grid
    return stored.names_in(arrays, S)


def _classes(arrays: dict[str, Any], C: int) -> Any:
    classes = np.array(arrays.get("classes", np.zeros((0, 0), np.uint16)))
    if (C > 1) != bool(classes.size) or (classes >= C).any():
        most = int(classes.max(initial=0))
        raise InputError(f"classes: there are {C} classes of laws, got {most}")
    return classes


def _check_next(model: EventModel) -> None:
    """Name the first next state that is none."""
    for lo in range(0, model.n_states, state_ranges.BLOCK):
        asked = model.asked(lo, min(lo + state_ranges.BLOCK, model.n_states))
        bad = ((asked.next < 0) | (asked.next >= model.n_next)) & asked.available[:, :, None]
        for s, a, e in np.argwhere(bad)[:1].tolist():
            where = f"state {model.first + lo + s}, action {a}, event {e}"
            to, expected = int(asked.next[s, a, e]), f"0 … {model.n_next - 1:,}"
            raise InputError(f"next: {where} leads to {to}, expected {expected}")


def _check_shapes(N: int, S: int, A: int, E: int, arrays: dict[str, Any]) -> None:
    stored.check_there(arrays, ("laws", "next"))
    if ("costs" in arrays) == ("event_costs" in arrays):
        raise InputError("costs, event_costs: expected exactly one")
    check_together(arrays, ("states", "states_ends"))
    sizes = {"C": len(arrays["laws"]), "N": N, "S": S, "A": A, "E": E, "J": S + 1}
    stored.check_shapes(arrays, FIELDS, sizes)
