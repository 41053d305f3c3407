"""`drmdp reach`: the probability of arriving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli.options import MAX_SECONDS, RADIUS, THREADS, Asked, check_outputs, common, exit_code, paths
from drmdp.cli.outputs import HELP, check_labels, check_out, table_options, write_out
from drmdp.cli.plans import document as plan_document
from drmdp.cli.plans import print_plan
from drmdp.cli.show import ARRAYS, NUMBERS, limits, named, outcome, print_json, print_summary
from drmdp.core.progress import stage
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp._typing import BoolArray
    from drmdp.model import Model


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.option(
    "--target", multiple=True, required=True, help="State to be reached, or a label of the file; may be repeated."
)
@click.option("--avoid", multiple=True, help="State, or label, that must not be reached before; may be repeated.")
@click.option("--minimise", is_flag=True, help="Keep away from the target: the least probability of reaching it.")
@click.option("--within", type=int, help="In at most so many steps; what is written is then a plan.")
@common
@RADIUS
@MAX_SECONDS
@THREADS
@click.option("--out", help=f"{HELP}.")
@table_options
@click.option("--proof", help="Write here what `drmdp verify` needs to check the bounds.")
def reach(
    model_path: str, target: tuple[str, ...], avoid: tuple[str, ...], minimise: bool, within: int | None, discount: float | None,
    tol: float | None, rtol: float, as_json: bool, max_seconds: float | None, threads: int | None, out: str | None,
    keep_formulas: bool, separator: str | None, decimal: str | None, proof: str | None, **region: Any,
) -> int:  # fmt: skip
    """Find the policy with the best worst-case probability of reaching a target.

    MODEL is read as by `drmdp solve`; its costs and its discount are not used. A .tra or .umb file may have labels of states, such as "goal", which
    --target and --avoid take as well as numbers of states.
    """
    from drmdp import formats
    from drmdp.solution import HorizonSolution, reached
    from drmdp.solvers.reach import reach as solve

    style = check_out(out, separator, decimal)
    check_outputs({"--out": paths(out), "--proof": paths(proof)}, {"MODEL": formats.files_of(model_path)})
    if proof is not None and within is not None:
        raise InputError("--proof: a plan has none; leave out --within")
    if discount is None and formats.holds_intervals(model_path):  # which hold no discount, and none is used
        discount = 1.0
    model, ball = Asked(**region).read(model_path, discount)
    check_labels(model, out, keep_formulas)
    known = formats.labels(model_path, model.n_states)
    goal, bad = (_states(name, given, model, known) for name, given in (("--target", target), ("--avoid", avoid)))
    limit: Any = {"tol": tol, "rtol": rtol, "max_seconds": max_seconds, "threads": threads}
    with stage("solving", hint="Ctrl-C stops early and keeps the best result so far."):
        found = solve(model, ball, goal, bad, minimise, within, ball.nature, **limit)
    if isinstance(found, HorizonSolution):
        document = plan_document([model], found)
    else:
        fields = (*NUMBERS, *ARRAYS, "criterion", "settings")
        document = {name: getattr(found, name) for name in fields} | named(model, ball)
    written = {name: path for name, path in (("Saved", out), ("Proof", proof)) if path is not None}
    try:
        if out is not None:
            write_out(out, found, document, style)
        if proof is not None and not isinstance(found, HorizonSolution):
            found.proof(proof)
    finally:  # a full disk must not cost the result as well
        if as_json:
            print_json(document)
        elif isinstance(found, HorizonSolution):
            print_plan(model, found, {**written})
        else:
            figures = limits(found.problem[0], found)
            lines = outcome(found) | written
            print_summary(model, ball, lines, found.policy, found.value, figures, found.notes, "reach")
    return exit_code(found.status, reached(found))


def _states(option: str, given: tuple[str, ...], model: Model, known: dict[str, BoolArray]) -> BoolArray:
    """States by what was typed: names, integers, or labels of the file."""
    from drmdp.core.validation import lookup

    flags, places = np.zeros(model.n_states, dtype=bool), None
    for text in given:
        if text in known:
            flags |= known[text]
            continue
        if places is None:
            places = {str(name): s for name, s in lookup(model.states).items()}
        if text not in places:
            labels = f"; labels: {', '.join(map(repr, known))}" if known else ""
            raise InputError(f"{option}: unknown state {text!r}{labels}")
        flags[places[text]] = True
    return flags
