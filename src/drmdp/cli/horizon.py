"""`drmdp horizon`."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli.options import MAX_SECONDS, RADIUS, THREADS, Asked, common, exit_code
from drmdp.cli.show import columns, console, grid, named, print_json, problem, said
from drmdp.core.archives import Field, read_array, read_json
from drmdp.core.text import discount as shown_discount
from drmdp.errors import InputError, shown

if TYPE_CHECKING:
    from drmdp.core.tolerance import Tolerance
    from drmdp.model import Model
    from drmdp.policies.horizon import HorizonSolution
    from drmdp.sets import AmbiguitySet

ROWS = 12
"""States shown in a table."""


@click.command()
@click.argument("model_path", metavar="MODEL")
@RADIUS
@click.option("--stages", type=int, required=True, help="How many decisions.")
@click.option("--stage-discount", type=float, help="In [0, 1]; the model's by default.")
@click.option("--final", help=".json file that maps states to values after the last stage; 0 if not mentioned.")
@click.option(
    "--costs", help=".npy file with the costs, or rewards, of each stage, (stages, S, A) or (stages, S, A, S)."
)
@MAX_SECONDS
@THREADS
@common
def horizon(
    model_path: str, stages: int, stage_discount: float | None, final: str | None, costs: str | None,
    discount: float | None, tol: float | None, rtol: float, as_json: bool, max_seconds: float | None,
    threads: int | None, **region: Any,
) -> int:  # fmt: skip
    """Solve over finitely many stages.

    Stage 0 is the first decision. One sweep a stage, as accurate as can be: --tol and --rtol only decide the status.
    """
    from drmdp.core.tolerance import Tolerance
    from drmdp.policies import horizon as plans
    from drmdp.solution import reached

    asked = Asked(**region)
    model, ball = asked.read(model_path, discount)
    values = None if final is None else _final(final, model)
    prices = None if costs is None else _costs(costs)
    limits: Any = {"tol": tol, "rtol": rtol, "max_seconds": max_seconds, "threads": threads}
    found = plans.finite_horizon(model, ball, stages, values, prices, stage_discount, **limits)
    if as_json:
        fields = {
            name: getattr(found, name)
            for name in ("status", "gap", "scale", "value", "lower", "upper", "policy", "kernel_passes")
        }
        print_json(
            {
                **fields,
                **named(model, ball),
                "settings": {"ball": repr(ball), "stages": stages, "discount": stage_discount},
            }
        )
    else:
        own = model.discount if stage_discount is None else stage_discount
        shown = f"{stages:,} stages, discount {shown_discount(own)}"
        _print_plan(model, ball, found, shown, Tolerance(tol, rtol))
    return exit_code(found.status, reached(found))


def _final(path: str, model: Model) -> Any:
    try:
        document = read_json(path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: expected an object that maps states to values, got {type(document).__name__}")
    place = {str(name): s for s, name in enumerate(model.states)}
    values = np.zeros(model.n_states)
    for name, value in document.items():
        if name not in place or type(value) not in (int, float) or abs(value) > sys.float_info.max:
            raise InputError(f"{path}: expected states of the model with numbers, got {shown(name)}: {shown(value)}")
        values[place[name]] = value
    return values


def _costs(path: str) -> Any:
    try:
        return read_array(path, Field("biuf", (3, 4)))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _print_plan(model: Model, ball: AmbiguitySet, found: HorizonSolution, stages: str, asked: Tolerance) -> None:
    out = console()
    first = found.value[0]
    kind = "reward" if model.maximise else "cost"
    mean = f"{model.initial @ first:.6g} worst-case {kind}, mean over the start distribution"
    lines = {
        "Problem": problem(model),
        "Horizon": stages,
        "Ball": repr(ball),
        "Status": f"{found.status}: {found.status.sentence}",
        "Gap": asked.compare(found.gap, found.scale),
        "Value": mean,
    }
    if notes := said(model, ball):
        lines["Notes"] = "\n".join(notes)
    out.print(grid(lines))
    table = columns(["state"], [f"worst {kind}"])
    table.add_column("likeliest action by stage", overflow="fold")
    for s in range(min(model.n_states, ROWS)):
        table.add_row(str(model.states[s]), f"{first[s]:.6g}", _by_stage(model, found.policy[:, s]))
    out.print(table)
    if model.n_states > ROWS:
        out.print(f"… {model.n_states - ROWS:,} more")


def _by_stage(model: Model, policy: Any) -> str:
    """Runs of equal actions: "0–6 wait, 7–9 treat"."""
    if not policy.any():
        return "(end)"
    parts, t = [], 0
    for a, run in groupby(policy.argmax(axis=1).tolist()):
        n = len(list(run))
        parts.append(f"{t if n == 1 else f'{t}–{t + n - 1}'} {model.actions[a]}")
        t += n
    return ", ".join(parts[:6]) + (", …" if len(parts) > 6 else "")
