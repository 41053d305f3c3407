"""The CSV files of craam and rcraam: one line per transition, with a header in any order.

================ ================================================================================================
column           meaning
================ ================================================================================================
idstatefrom      state s, numbered from 0 (or from 1 with ``base=1``, as all numbers)
idaction         action a; not every state needs every action
idstateto        next state t
probability      of t
reward           of the transition; constant for each pair, or of the next state, which needs support "observed"
idoutcome        kernel; optional
================ ================================================================================================

Beside ``model.csv``, or named explicitly: ``model.parameters.csv`` with the columns parameter, value and a line for
`discount`; ``model.initial.csv`` with the columns idstate, probability. A state that is never left is terminal.

Not held: weights of kernels and what no state reaches (both refused in writing), names and notes (a warning says so). Costs are written as
negative rewards, and come back as rewards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from drmdp.core.files import check_file, write_together
from drmdp.errors import InputError, shown
from drmdp.formats._cells import Cells, Parts, check_holdable, check_ids, list_cells, model_of
from drmdp.formats._options import Options
from drmdp.formats._text import csv_rows, lines_of, number, table, within
from drmdp.model import Model

HOLDS: frozenset[str] = frozenset()
"""Which names and notes it holds: none."""
COMPANIONS = ("parameters", "initial")
COLUMNS = ("idstatefrom", "idaction", "idstateto", "probability", "reward")


def read(path: Path, options: Options) -> Model:
    """Read a model and the files beside it."""
    columns, lines = table(path, COLUMNS, ("idoutcome",))
    if not lines:
        raise InputError("no transitions")
    base = options.base
    s, a, t = (columns[name] - base for name in COLUMNS[:3])
    kernel = columns["idoutcome"] - base if "idoutcome" in columns else np.zeros(s.size, dtype=np.int64)
    S = check_ids("state", np.concatenate([s, t]), base)
    shape = check_ids("outcome", kernel, base), S, check_ids("action", a, base)
    cells = Cells(kernel, s, a, t, columns["probability"], columns["reward"], lambda k: f"line {lines[k]}")
    discount = options.discount
    if discount is None:
        discount = _discount(path, options)
    states, actions = (range(base, base + size) for size in shape[1:])
    parts = Parts(discount, _initial(path, options, S), states, actions, normalize=options.normalize)
    return model_of(cells, shape, parts)


def write(model: Model, path: Path) -> None:
    """Write a model and the files beside it."""
    check_holdable(model, "craam CSV")
    many = model.n_kernels > 1
    header = ",".join(COLUMNS) + (",idoutcome" if many else "")
    lines = [header]
    for i, s, a, t, p, reward in list_cells(model):
        lines.append(f"{s},{a},{t},{p!r},{reward!r}" + (f",{i}" if many else ""))
    start = ["idstate,probability", *(f"{s},{float(p)!r}" for s, p in enumerate(model.initial))]
    parameters = ["parameter,value", f"discount,{model.discount!r}"]
    write_together(
        {
            _beside(path, "parameters"): lines_of(parameters),
            _beside(path, "initial"): lines_of(start),
            path: lines_of(lines),
        }
    )


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written."""
    for kind in COMPANIONS:
        if path.name.lower().endswith(f".{kind}.csv"):
            raise InputError(f"{path}: is the name of a companion of {path.name[: -len(kind) - 5]}.csv, not of a model")
    for target in files_of(path):
        check_file(target)


def files_of(path: Path) -> list[Path]:
    """What `read` reads and `write` replaces."""
    return [path, *(_beside(path, kind) for kind in COMPANIONS)]


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f"{path.stem}.{kind}.csv")


def _discount(path: Path, options: Options) -> float:
    file = Path(options.parameters) if options.parameters else _beside(path, "parameters")
    if not file.is_file():
        if options.parameters:
            raise InputError(f"{file}: no such file")
        raise InputError(f"no discount: give one, or a file of parameters such as {file.name}")
    with within(file):
        rows = csv_rows(file)
        line, header = next(rows, (1, []))
        if [name.lower() for name in header] != ["parameter", "value"]:
            raise InputError(f"line {line}: expected the columns parameter, value, got {shown(header)}")
        for line, fields in rows:
            if len(fields) != 2:
                raise InputError(f"line {line}: expected 2 fields, got {len(fields)}")
            if fields[0].lower() == "discount":
                return number(line, "discount", fields[1])
        raise InputError("no line for discount")


def _initial(path: Path, options: Options, S: int) -> Any:
    file = Path(options.initial) if options.initial else _beside(path, "initial")
    if not file.is_file():
        if options.initial:
            raise InputError(f"{file}: no such file")
        return None
    initial = np.zeros(S)
    with within(file):
        columns, lines = table(file, ("idstate", "probability"))
        for line, s, p in zip(lines, columns["idstate"] - options.base, columns["probability"], strict=True):
            if not 0 <= s < S:
                raise InputError(f"line {line}: unknown state {int(s) + options.base}")
            initial[s] += p
    return initial
