"""`drmdp plot`: a picture of a result."""

from __future__ import annotations

from typing import Any

import click

from drmdp.cli.option_groups import OUTPUT, SET, integer, one_of, option
from drmdp.cli.options import check_outputs, command, paths
from drmdp.errors import InputError, imported
from drmdp.io.archives import PLAN, describe
from drmdp.io.files import check_file, check_path, check_suffix, write_whole

KINDS = ("policy", "map", "values", "kernel", "transitions", "convergence")
ALONE = ("policy", "map", "convergence")
"""Pictures that need no model."""
SUFFIXES = (".png", ".svg", ".pdf")


@command(
    [click.Argument(["result"], metavar="RESULT"), "discount", "progress"],
    out=option("Write the picture here (.png, .svg, .pdf).", heading=OUTPUT, required=True),
    kind=one_of("What to draw; of a plan, policy, values and map.", KINDS, heading=SET),
    model_path=option(
        "The model, which values, kernel and transitions need.", "--model", metavar="MODEL"
    ),
    shape="Of a map: rows and columns of a grid whose states are numbered row by row, as in 8x8; "
    "by default the numbers that states are named by.",
    stage=integer("Of a map of a plan; the first one by default."),
)
def plot(asked: Any) -> None:
    """Draw a picture of a saved solution or plan.

    RESULT is what `drmdp solve --out` or `drmdp horizon --out` wrote as .npz, or a folder.
    """
    from drmdp import formats
    from drmdp.solution import HorizonSolution, Solution

    kind, stage, path, out = asked.kind, asked.stage, asked.result, asked.out
    grid = None if asked.shape is None else _grid(asked.shape, kind)
    check_suffix(out, SUFFIXES, "a picture is a .png, .svg or .pdf file")
    check_file(out)
    check_path(path)
    known = asked.model_path is not None
    models = {"--model": formats.files_of(asked.model_path)} if known else {}
    check_outputs({"--out": paths(out)}, {"RESULT": paths(path), **models})
    imported("matplotlib", "plot").use("agg")
    from drmdp import plot as pictures

    is_plan = _is_plan(path)
    if is_plan and kind not in ("policy", "values", "map"):
        has = "a plan has pictures of its policy and values, and maps of its stages"
        raise InputError(f"--kind: {has}, got {kind!r}")
    if stage is not None and not (is_plan and kind == "map"):
        where = "it goes with --kind map" if is_plan else "it is of a plan"
        raise InputError(f"--stage: {where}")
    if not (is_plan or known or kind in ALONE):
        raise InputError(f"--model: a picture of the {kind} needs it")
    result: Any = (HorizonSolution if is_plan else Solution).load(path)
    model = formats.read(asked.model_path, discount=asked.discount) if known else None
    draw = getattr(pictures, kind)
    if kind == "map":
        axes = draw(result, grid, stage=stage or 0)
    else:
        axes = draw(result) if is_plan or kind in ALONE else draw(result, model)
    style = {"format": out.rpartition(".")[2].lower(), "dpi": 160}
    write_whole(out, lambda stream: axes.figure.savefig(stream, **style))


def _grid(text: str, kind: str) -> list[int]:
    """Rows and columns."""
    parts = text.lower().replace("×", "x").split("x")
    if kind != "map":
        raise InputError("--shape: it goes with --kind map")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"--shape: expected rows and columns, as in 8x8, got {text!r}")
    return [int(part) for part in parts]


def _is_plan(path: str) -> bool:
    try:
        return describe(path) == PLAN
    except (OSError, InputError):
        return False
