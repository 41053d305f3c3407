"""`drmdp horizon`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click
import numpy as np

from drmdp.cli import report as page
from drmdp.cli.option_groups import flag, integer, number
from drmdp.cli.options import BALL, LIMITS, MODELS, TABLE, check_outputs, command, files_of
from drmdp.cli.outputs import check_labels, check_out, finish
from drmdp.cli.plans import document, inputs, print_plan, read_stages
from drmdp.cli.policy_file import read_policy
from drmdp.cli.sets import numbers_of, set_of
from drmdp.cli.show import fields
from drmdp.errors import InputError, shown
from drmdp.io.archives import read_json
from drmdp.io.files import naming
from drmdp.model import Model


@command(
    [MODELS, *BALL, *LIMITS, "out", *TABLE, *page.REPORT_OPTIONS.values()],
    stages=integer("How many decisions; with several models, one for each."),
    stage_discount=number("In [0, 1]; the model's by default."),
    final=".json file that maps states to values after the last stage; 0 if not mentioned.",
    costs=".npy file with the costs, or rewards, of each stage, (stages, S, A) or (stages, S, A, "
    "S).",
    half_cycle=flag("Half of each stage is spent in the state after it."),
)
def horizon(asked: Any) -> int:
    """Solve over finitely many stages.

    Stage 0 is the first decision. Several models, or a folder of them that `drmdp estimate --stage`
    wrote, are those of the stages, the first one first. One sweep a stage, as accurate as can be:
    --tol and --rtol only decide the status. `drmdp evaluate` and `drmdp simulate` read what --out
    writes.
    """
    from drmdp.solvers import horizon as plans
    from drmdp.ui import clock

    style = check_out(asked)
    page.check(asked)
    read = {**inputs(asked.model_paths), **files_of(asked, "final", "costs", "baseline")}
    check_outputs(files_of(asked, "out", "report"), read)
    models, sets = read_stages(set_of(asked), asked)
    if asked.stages is None and len(models) == 1 and not models[0].stages:
        raise click.MissingParameter(param_hint="'--stages'", param_type="option")
    check_labels(models[0], asked)
    page.check_sizes(asked, sets, plan=True)
    practice = None if asked.baseline is None else read_policy(asked.baseline, models[0])
    values = None if asked.final is None else _final(asked.final, models[0])
    prices = None if asked.costs is None else numbers_of(asked.costs, 3, 4)
    several, asked.deadline = len(models) > 1, clock.deadline(asked.max_seconds)
    plan = plans.finite_horizon(
        models if several else models[0],
        sets if several else sets[0],
        asked.stages,
        values,
        prices,
        asked.stage_discount,
        **fields(asked, "tol", "rtol", "max_seconds", "threads", "half_cycle"),
    )

    show = partial(print_plan, models[0], plan)
    write_page = partial(page.write_plan, asked, plan, practice)
    return finish(asked, plan, document(models, plan), style, show, write_page)


def _final(path: str, model: Model) -> Any:
    with naming(path):
        document = read_json(path)
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise InputError(f"{path}: expected an object that maps states to values, got {kind}")
    place = {str(name): s for s, name in enumerate(model.states)}
    values = np.zeros(model.n_states)
    for name, value in document.items():
        if name not in place or type(value) not in (int, float) or abs(value) > sys.float_info.max:
            pair = f"{shown(name)}: {shown(value)}"
            raise InputError(f"{path}: expected states of the model with numbers, got {pair}")
        values[place[name]] = value
    return values
