"""Models of events in a .drmdp directory: laws, and the table of where events lead, mapped into memory and not loaded.

model.json says ``"format": "drmdp events 1"``, the shape N, S, A, E, and what an ordinary directory says (`drmdp.formats._stored`), with ``grid`` for
states that are digits. The arrays, each an .npy file:

====================== ==================== ======================================================================
laws                   (C, N, E)            laws of the events, by class
next                   (S, A, E) int32      where each event leads
event_costs            (S, A, E)            what that costs; or costs (S, A)
classes                (S, A) uint16        class of each pair, if there are several
available, terminal,   (S, A) (S,) (S,)     optional
initial
states, states_ends                         names, as in an ordinary directory
====================== ==================== ======================================================================

A function is code, and code is not saved: `tabulate` makes a table of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from drmdp.core import spans
from drmdp.core import validation as checks
from drmdp.core.distributions import Labels
from drmdp.core.event_laws import checked_laws
from drmdp.core.files import naming
from drmdp.core.grid import Grid
from drmdp.core.names import StoredNames
from drmdp.core.rules import Function, Table
from drmdp.errors import InputError, shown
from drmdp.formats import _stored
from drmdp.formats._fields import check_together
from drmdp.formats._growing import Files, index_of
from drmdp.model.events import EventModel, tabulated

FORMAT = "drmdp events 1"
ENTRIES = ("format", "shape", "discount", "weights", "maximise", "actions", "kernel_names", "notes", "start", "grid")
FIELDS = {
    "laws": ("f8", "CNE"), "next": ("i4", "SAE"), "event_costs": ("f8", "SAE"), "costs": ("f8", "SA"), "classes": ("u2", "SA"), "available": ("?", "SA"),
    "terminal": ("?", "S"), "initial": ("f8", "S"), "ends": ("f8", "S"), "states": ("u1", "B"), "states_ends": ("i8", "J"),
}  # fmt: skip
"""Dtypes and shapes of the arrays, as in `drmdp.formats._stored`; C classes of laws."""


def write(model: EventModel, path: Path) -> None:
    """Write a model whose next states are in a table."""
    rule = model.rule
    if isinstance(rule, Function):
        raise InputError(
            "next states are asked of a function, and code is not saved: write model.tabulate(), the table of what it says"
        )
    shape = [model.n_kernels, model.n_states, model.n_actions, model.n_events]
    index = index_of(FORMAT, model, shape, maximise=model.maximise)
    files = Files(path)
    try:
        files.put("laws", model.laws)
        files.put("next", rule.next)
        files.put(*(("event_costs", rule.costs) if model.priced else ("costs", model._prices)))
        if model.classes.size:
            files.put("classes", model.classes)
        if (model.initial != 1 / model.n_states).any():
            files.put("initial", model.initial)
        for name, plain in (("available", model.available | model.terminal[:, None]), ("terminal", ~model.terminal)):
            if not plain.all():
                files.put(name, getattr(model, name))
        if model.ends is not None:
            files.put("ends", model.ends)
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
    with naming(path), _stored.opened(Path(path)) as folder:
        return mapped(Path(path), folder, _stored.read_index(Path(path), folder))


def check(model: EventModel) -> None:
    """Refuse what no model has, of all states or of a range."""
    if isinstance(model.rule, Table):
        _check_next(model)
    if model.priced:
        tabulated(model, keep=False)
    else:
        labels = Labels(model.kernel_names, model.states, model.actions)
        checks.check_costs("costs", model._prices, None, model.discount, labels)


def mapped(path: Path, folder: int | None, index: dict[str, Any]) -> EventModel:
    """The model of an index and mapped arrays, whose table was not looked at."""
    _stored.check_index(index, ENTRIES)
    N, S, A, E = _stored.shape_of(index["shape"], "four", "N, S, A, E")
    found = _stored.mapped(path, folder, FIELDS)
    _check_shapes(N, S, A, E, found)
    kernel_names, actions = (
        _stored.names("kernel_names", index.get("kernel_names"), N),
        _stored.names("actions", index.get("actions"), A),
    )
    end = np.array(found["terminal"]) if "terminal" in found else np.zeros(S, dtype=bool)
    available = (np.array(found["available"]) if "available" in found else np.ones((S, A), dtype=bool)) & ~end[:, None]
    states = _states(index, found, S)
    spans.check_open(available, end, Labels(kernel_names, states, actions))
    priced = "event_costs" in found
    laws = checked_laws(np.asarray(found["laws"]), E)
    model: EventModel = object.__new__(EventModel)
    model._set(
        n_states=S, n_actions=A, n_kernels=N, first=0, n_next=S, discount=checks.discount_of(index["discount"]), discounts=None, sojourn=None,
        weights=checks.distribution("weights", index["weights"], kernel_names, "kernel"),
        initial=checks.distribution("initial", found.get("initial"), states, "state"), states=states, actions=actions, available=available,
        terminal=end, ends=checks.ends_of(found.get("ends"), end), kernel_names=kernel_names, is_sparse=True, maximise=index.get("maximise", False),
        notes=checks.notes_of(index.get("notes", [])), start=checks.start_of(index.get("start")), origin=None, _counts=None,
        laws=laws, rule=Table(found["next"], found.get("event_costs")),
        classes=_classes(found, len(laws)), priced=priced, _prices=np.zeros((S, A)) if priced else np.array(found["costs"]),
    )  # fmt: skip
    return model


def _states(index: dict[str, Any], found: dict[str, Any], S: int) -> Any:
    if "grid" in index:
        sizes = index["grid"]
        grid = Grid(*sizes) if isinstance(sizes, list) else ()
        if len(grid) != S:
            raise InputError(f"grid: expected sizes of {S} states, got {shown(sizes)}")
        return grid
    return StoredNames(found["states"], found["states_ends"]) if "states" in found else range(S)


def _classes(found: dict[str, Any], C: int) -> Any:
    classes = np.array(found["classes"]) if "classes" in found else np.zeros((0, 0), np.uint16)
    if (C > 1) != bool(classes.size) or (classes >= C).any():
        raise InputError(f"classes: there are {C} classes of laws, got {int(classes.max(initial=0))}")
    return classes


def _check_next(model: EventModel) -> None:
    """Name the first next state that is none."""
    for lo in range(0, model.n_states, spans.BLOCK):
        asked = model.asked(lo, min(lo + spans.BLOCK, model.n_states))
        bad = ((asked.next < 0) | (asked.next >= model.n_next)) & asked.available[:, :, None]
        if bad.any():
            s, a, e = (int(k) for k in np.argwhere(bad)[0])
            raise InputError(
                f"next: state {model.first + lo + s}, action {a}, event {e} leads to {int(asked.next[s, a, e])}, expected 0 … {model.n_next - 1:,}"
            )


def _check_shapes(N: int, S: int, A: int, E: int, found: dict[str, Any]) -> None:
    for name in ("laws", "next"):
        if name not in found:
            raise InputError(f"{name}: missing")
    if ("costs" in found) == ("event_costs" in found):
        raise InputError("costs, event_costs: expected exactly one")
    check_together(found, ("states", "states_ends"))
    sizes = {"C": len(found["laws"]), "N": N, "S": S, "A": A, "E": E, "J": S + 1}
    _stored.check_shapes(found, FIELDS, sizes)
