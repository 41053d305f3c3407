"""The CSV files of craam and rcraam: one line per transition, with a header in any order.

================ ===================================================================================
column           meaning
================ ===================================================================================
idstatefrom      state s, numbered from 0 (or from 1 with ``base=1``, as all numbers)
idaction         action a; not every state needs every action
idstateto        next state t
probability      of t
reward           of the transition; constant for each pair, or of the next state, which needs
                 support "observed"
idoutcome        kernel; optional
================ ===================================================================================

Beside ``model.csv``, or named explicitly: ``model.parameters.csv`` with the columns parameter,
value and a line for `discount`; ``model.initial.csv`` with the columns idstate, probability. A
state that is never left is terminal.

Not held: weights of kernels and what no state reaches (both refused in writing), names and notes (a
warning says so). Costs are written as negative rewards, and come back as rewards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from drmdp.errors import InputError, first_place, unexpected
from drmdp.formats import _cells
from drmdp.formats._cells import ModelParts, TransitionList
from drmdp.formats._options import ReadOptions
from drmdp.formats._text import check_number, csv_rows, lines_of, number, table
from drmdp.io.files import check_file, naming, write_together
from drmdp.model import Model

HOLDS: frozenset[str] = frozenset()
"""Which names and notes it holds: none."""
COMPANIONS = ("parameters", "initial")
COLUMNS = ("idstatefrom", "idaction", "idstateto", "probability", "reward")


def read(path: Path, options: ReadOptions) -> Model:
    """Read a model and the files beside it."""
    options.refuse("rewards")
    columns, lines = table(path, COLUMNS, ("idoutcome",))
    if not lines:
        raise InputError("no transitions")
    base = options.base
    s, a, t = (columns[name] - base for name in COLUMNS[:3])
    kernel = columns.get("idoutcome", np.full(s.size, base)) - base
    S = _cells.check_ids("state", np.concatenate([s, t]), base)
    N, A = _cells.check_ids("outcome", kernel, base), _cells.check_ids("action", a, base)
    p, reward = columns["probability"], columns["reward"]
    cells = TransitionList(s, a, t, p, reward, lambda k: f"line {lines[k]}", kernel)
    discount = _discount(path, options) if options.discount is None else options.discount
    initial = _initial(path, options, S)
    states, actions = range(base, base + S), range(base, base + A)
    parts = ModelParts(discount, initial, states, actions, normalize=options.normalize)
    return _cells.model_of(cells, (N, S, A), parts)


def write(model: Model, path: Path) -> None:
    """Write a model and the files beside it."""
    _cells.check_holdable(model, "craam CSV")
    many = model.n_kernels > 1
    lines = [",".join(COLUMNS) + (",idoutcome" if many else "")]
    for i, s, a, t, p, reward in _cells.list_cells(model):
        lines.append(f"{s},{a},{t},{p!r},{reward!r}" + (f",{i}" if many else ""))
    start = ["idstate,probability", *(f"{s},{float(p)!r}" for s, p in enumerate(model.initial))]
    parameters = ["parameter,value", f"discount,{model.discount!r}"]
    files = {_beside(path, "parameters"): parameters, _beside(path, "initial"): start, path: lines}
    write_together({file: lines_of(content) for file, content in files.items()})


def check_target(path: Path) -> None:
    """Refuse a path that cannot be written."""
    for kind in COMPANIONS:
        if path.name.lower().endswith(f".{kind}.csv"):
            model = f"{path.name[: -len(kind) - 5]}.csv"
            raise InputError(f"{path}: is the name of a companion of {model}, not of a model")
    for target in files_of(path):
        check_file(target)


def files_of(path: Path) -> list[Path]:
    """Files that `read` reads and `write` replaces."""
    return [path, *(_beside(path, kind) for kind in COMPANIONS)]


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f"{path.stem}.{kind}.csv")


def _companion(path: Path, kind: str, options: ReadOptions) -> Path | None:
    """The file that is named, or the one beside the model if there is one."""
    given = getattr(options, kind)
    file = Path(given) if given else _beside(path, kind)
    if given and not file.is_file():
        raise InputError(f"{file}: no such file")
    return file if file.is_file() else None


def _discount(path: Path, options: ReadOptions) -> float:
    if (file := _companion(path, "parameters", options)) is None:
        example = _beside(path, "parameters").name
        raise InputError(f"no discount: give one, or a file of parameters such as {example}")
    with naming(file.name):
        rows = csv_rows(file)
        line, header = next(rows, (1, []))
        if [name.lower() for name in header] != ["parameter", "value"]:
            raise unexpected(f"line {line}", "the columns parameter, value", header)
        for line, fields in rows:
            check_number(line, fields, 2)
            if fields[0].lower() == "discount":
                return number(line, "discount", fields[1])
        raise InputError("no line for discount")


def _initial(path: Path, options: ReadOptions, S: int) -> Any:
    if (file := _companion(path, "initial", options)) is None:
        return None
    with naming(file.name):
        columns, lines = table(file, ("idstate", "probability"))
        states = columns["idstate"] - options.base
        if at := first_place((states < 0) | (states >= S)):
            unknown = int(states[at]) + options.base
            raise InputError(f"line {lines[at[0]]}: unknown state {unknown}")
    return np.bincount(states, columns["probability"], S)
