"""`drmdp evaluate`: bound the worst case of a policy."""

from __future__ import annotations

from typing import Any

import click

from drmdp.cli.options import (
    BACKEND,
    CRITERION,
    MAX_SECONDS,
    RADIUS,
    THREADS,
    Asked,
    common,
    exit_code,
)
from drmdp.cli.plans import document, print_plan, read_stages
from drmdp.cli.policy_file import read_policy
from drmdp.cli.show import (
    named,
    print_json,
    print_summary,
    said,
    worst,
)


@click.command()
@click.argument("model_paths", metavar="MODEL...", nargs=-1, required=True)
@click.argument("policy_path", metavar="POLICY")
@common
@RADIUS
@CRITERION
@BACKEND
@MAX_SECONDS
@THREADS
def evaluate(
    model_paths: tuple[str, ...],
    policy_path: str,
    discount: float | None,
    criterion: str | None,
    backend: str | None,
    tol: float | None,
    rtol: float,
    as_json: bool,
    max_seconds: float | None,
    threads: int | None,
    **region: Any,
) -> int:
    """Bound the worst-case value of a policy.

    MODEL is read as by `drmdp solve`. POLICY is a saved solution (.npz, or a folder), or a .json file that maps every
    state to an action, or to probabilities of actions: {"1": "repair", "2": {"repair": 0.6, "no repair": 0.4}}. Or it is a table
    (.csv, .tsv, .xlsx, .parquet) with the columns state and action, and probability where it is not 1, as --out or a spreadsheet writes it.
    A plan that `drmdp horizon --out` saved is evaluated over its stages, with several models as there; a table of a plan
    holds its policies only: discount and costs are then those of the models, and final values 0.
    """
    from drmdp import api
    from drmdp.bellman.build import DEFAULT_BACKEND
    from drmdp.core import clock
    from drmdp.core.tolerance import Tolerance
    from drmdp.criteria import posed
    from drmdp.policies import single
    from drmdp.solution import HorizonSolution, reached

    models, sets = read_stages(Asked(**region), model_paths, discount)
    model, ball = models[0], sets[0]
    policy = read_policy(policy_path, model)
    backend = backend or DEFAULT_BACKEND
    begin = clock.now()
    several = len(models) > 1
    found = api.evaluate(
        models if several else model,
        sets if several else ball,
        policy,
        tol,
        rtol,
        backend,
        max_seconds,
        threads,
        criterion=criterion,
    )
    if isinstance(found, HorizonSolution):
        print_json(document(models, found)) if as_json else print_plan(model, found, {"Policy": policy_path})
        return exit_code(found.status, reached(found))
    seconds = clock.now() - begin
    seen = posed(model, found.criterion)
    alone = single.remarks(seen, ball, model.policy(policy), float(model.initial @ found.value))
    notes = [*said(model, ball), *alone]
    if as_json:
        fields = ("status", "gap", "scale", "criterion", "value", "lower", "upper")
        about: dict[str, Any] = {name: getattr(found, name) for name in fields}
        settings = {"ball": repr(ball), "tol": tol, "rtol": rtol, "backend": backend, "policy": policy_path}
        print_json(
            {**about, "seconds": seconds, "policy": policy, "settings": settings, **named(model, ball), "notes": notes}
        )
    else:
        lines = {
            "Policy": policy_path,
            "Status": f"{found.status}: {found.status.sentence}",
            "Gap": Tolerance(tol, rtol).compare(found.gap, found.scale),
            "Work": f"{seconds:.3g} s, backend {backend}",
        }
        figures = {f"{worst(model, ball.nature)}, at least": found.lower, "at most": found.upper}
        print_summary(model, ball, lines, policy, found.value, figures, notes, found.criterion)
    return exit_code(found.status, reached(found))
