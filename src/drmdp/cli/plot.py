"""`drmdp plot`: a picture of a result."""

from __future__ import annotations

from typing import Any

import click

from drmdp.cli.options import OPTIONS, check_outputs, paths
from drmdp.core.archives import PLAN, describe
from drmdp.core.files import check_file, check_path, check_suffix, write_whole
from drmdp.errors import InputError, imported

KINDS = ("policy", "map", "values", "kernel", "transitions", "convergence")
ALONE = ("policy", "map", "convergence")
"""Pictures that need no model."""
SUFFIXES = (".png", ".svg", ".pdf")


@click.command()
@click.argument("result", metavar="RESULT")
@click.option("--out", required=True, help="Write the picture here (.png, .svg, .pdf).")
@click.option(
    "--kind",
    default="policy",
    show_default=True,
    help=f"What to draw: {', '.join(KINDS)}; of a plan, policy, values and map.",
)
@click.option("--model", "model_path", metavar="MODEL", help="The model, which values, kernel and transitions need.")
@click.option(
    "--shape",
    help="Of a map: rows and columns of a grid whose states are numbered row by row, as in 8x8; by default the numbers that states are named by.",
)
@click.option("--stage", type=int, help="Of a map of a plan; the first one by default.")
@OPTIONS["discount"]
@OPTIONS["progress"]
def plot(
    result: str, out: str, kind: str, model_path: str | None, shape: str | None, stage: int | None, discount: float | None
) -> None:  # fmt: skip
    """Draw a picture of a saved solution or plan.

    RESULT is what `drmdp solve --out` or `drmdp horizon --out` wrote as .npz, or a folder.
    """
    from drmdp import formats
    from drmdp.solution import HorizonSolution, Solution

    kind = kind.lower()
    if kind not in KINDS:
        raise InputError(f"--kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    grid = None if shape is None else _grid(shape, kind)
    check_suffix(out, SUFFIXES, "a picture is a .png, .svg or .pdf file")
    check_file(out)
    check_path(result)
    models = {} if model_path is None else {"--model": formats.files_of(model_path)}
    check_outputs({"--out": paths(out)}, {"RESULT": paths(result), **models})
    matplotlib = imported("matplotlib", "plot")
    matplotlib.use("agg")
    from drmdp import plot as pictures

    if _is_plan(result):
        if kind not in ("policy", "values", "map"):
            raise InputError(
                f"--kind: a plan has pictures of its policy and values, and maps of its stages, got {kind!r}"
            )
        if stage is not None and kind != "map":
            raise InputError("--stage: it goes with --kind map")
        plan = HorizonSolution.load(result)
        draws: dict[str, Any] = {"policy": pictures.plan, "values": pictures.values}
        axes = draws[kind](plan) if kind in draws else pictures.map(plan, grid, stage=stage or 0)
    else:
        if stage is not None:
            raise InputError("--stage: it is of a plan")
        if model_path is None and kind not in ALONE:
            raise InputError(f"--model: a picture of the {kind} needs it")
        solution = Solution.load(result)
        model = None if model_path is None else formats.read(model_path, discount=discount)
        draw = getattr(pictures, kind)
        axes = draw(solution, grid) if kind == "map" else draw(solution) if kind in ALONE else draw(solution, model)
    write_whole(out, lambda stream: axes.figure.savefig(stream, format=out.rpartition(".")[2].lower(), dpi=160))


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
