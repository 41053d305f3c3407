"""`drmdp inspect`: understand a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli.options import RADIUS, Asked, common, exit_code
from drmdp.cli.policy_file import read_policy
from drmdp.cli.show import columns, console, first_states, grid, named, print_json, problem, said
from drmdp.core.progress import stage
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.policies import ActionLosses, Bent, Rounded, Values
    from drmdp.sets import AmbiguitySet

ROWS = 12
"""States shown in a table."""


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.argument("policy_path", metavar="[POLICY]", required=False)
@RADIUS
@click.option("--loss", type=float, help="List actions that cost at most so much more than the best; without POLICY.")
@click.option(
    "--bent", "n_bent", type=int, default=8, show_default=True, help="Transitions shown that nature bent most."
)
@common
def inspect(
    model_path: str, policy_path: str | None, loss: float | None, n_bent: int, discount: float | None,
    tol: float | None, rtol: float, as_json: bool, **region: Any,
) -> int:  # fmt: skip
    """Understand a policy: its values, its alternatives, and what nature did.

    POLICY is read as by `drmdp evaluate`; without it, the best one is found.

    For each state the value in the worst case over the ball, under the mean kernel, and under the worst of the single kernels. For the best
    policy also the best policy without randomisation and what it loses, actions that lose at most --loss if played once, and what nature
    changed.
    """
    from drmdp import api, policies
    from drmdp.solution import reached

    if loss is not None and policy_path is not None:
        raise InputError("--loss: actions are compared with those of the best policy; leave POLICY away")
    loss = loss or 0.0
    asked = Asked(**region)
    model, ball = asked.read(model_path, discount)
    rounded = near = None
    if policy_path is not None:
        policy = read_policy(policy_path, model)
    else:
        solution = api.solve(model, ball, tol=tol, rtol=rtol)
        with stage("looking at single actions"):
            near = policies.near_optimal(model, ball, solution, loss)
        with stage("rounding the policy"):
            rounded = policies.deterministic(model, ball, solution, tol, rtol)
        policy = solution.policy
    found = policies.values(model, ball, policy, tol, rtol)
    with stage("comparing kernels"):
        kernel = found.worst.kernel if policy_path is not None else solution.kernel
        most = policies.bent(model, kernel, n_bent, policy)
    judged: Any = found.worst if policy_path is not None else solution
    status = judged.status
    if as_json:
        print_json(_inspected(model, ball, policy, found, rounded, near, most, str(status)))
    else:
        _print_inspected(model, ball, policy, found, rounded)
        if near is not None and rounded is not None:
            _print_actions(model, rounded, near, loss)
        _print_bent(most)
    return exit_code(status, reached(judged))


def _inspected(
    model: Model,
    ball: AmbiguitySet,
    policy: Any,
    found: Values,
    rounded: Rounded | None,
    near: ActionLosses | None,
    most: Any,
    status: str,
) -> dict[str, Any]:
    worst = {name: getattr(found.worst, name) for name in ("value", "lower", "upper", "gap")}
    document = {"status": status, "policy": policy, "worst": worst, "mean": found.mean, "by_kernel": found.by_kernel}
    if rounded is not None and near is not None:
        names = ("policy", "value", "loss", "changed", "rounds")
        document["deterministic"] = {name: getattr(rounded, name) for name in names}
        document["actions_once"] = {name: getattr(near, name) for name in ("value", "loss", "near")}
    document["bent"] = [{**vars(one), "change": one.change} for one in most]
    return {**document, "worst_kernel": model.kernel_names[_worst_kernel(model, found)], **named(model, ball)}


def _worst_kernel(model: Model, found: Values) -> int:
    """Number of the kernel that is worst for the policy, over the start distribution."""
    means = found.by_kernel @ model.initial
    return int(means.argmin() if model.maximise else means.argmax())


def _print_inspected(model: Model, ball: AmbiguitySet, policy: Any, found: Values, rounded: Rounded | None) -> None:
    out, p0 = console(), model.initial
    single = found.by_kernel.min(axis=0) if model.maximise else found.by_kernel.max(axis=0)
    means = found.by_kernel @ p0
    worst_one = model.kernel_names[_worst_kernel(model, found)]
    lines = {
        "Problem": problem(model),
        **_data(model),
        "Ball": repr(ball),
        "Worst case": f"{p0 @ found.worst.value:.6g} over the start distribution, gap {found.worst.gap:.1e}",
        "Mean kernel": f"{p0 @ found.mean:.6g}",
        "One kernel": f"{means.min():.6g} … {means.max():.6g}, worst is {worst_one if isinstance(worst_one, str) else f'kernel {worst_one}'}",
    }
    if rounded is not None:
        lines["One action"] = (
            f"best deterministic policy: {p0 @ rounded.value:.6g}, loses at most {rounded.loss.max():.3g}"
        )
    if notes := said(model, ball):
        lines["Notes"] = "\n".join(notes)
    out.print(grid(lines))
    out.print("\nValues in the worst case, under the mean kernel, and under the worst kernel:")
    figures = {"worst case": found.worst.value, "mean kernel": found.mean, "worst kernel": single}
    first_states(model.states, model.actions, policy, figures, model.pair_counts)


def _data(model: Model) -> dict[str, str]:
    """What the model rests on."""
    seen = model.pair_counts
    if seen is None or not model.available.any():
        return {}
    own = seen[model.available]
    return {
        "Data": f"{seen.sum():,.12g} transitions; those of an available pair are {own.min():,.6g} to {own.max():,.6g}"
    }


def _print_actions(model: Model, rounded: Rounded, near: ActionLosses, limit: float) -> None:
    """What it would cost to play one action in each state."""
    out = console()
    out.print("One action in each state: what that loses at most, for ever, and if done once:")
    some = [f"within {limit:g}, once"] if limit > 0 else []
    table = columns(["state", "one action"], ["loses for ever", "loses once"])
    for name in some:
        table.add_column(name, overflow="fold", max_width=36)
    for s in range(min(model.n_states, ROWS)):
        if model.terminal[s]:
            continue
        a = int(rounded.policy[s].argmax())
        order = [b for b in np.argsort(near.loss[s], kind="stable") if near.near[s, b]]
        names = ", ".join(str(model.actions[b]) for b in order) or "none"
        losses = [f"{rounded.loss[s]:.3g}", f"{near.loss[s, a]:.3g}"]
        table.add_row(str(model.states[s]), str(model.actions[a]), *losses, *([names] if some else []))
    out.print(table)


def _print_bent(most: tuple[Bent, ...]) -> None:
    if not most:
        return
    out = console()
    out.print("What nature changed most: probabilities of next states")
    table = columns(["state", "action", "next state"], ["mean kernel", "worst case"])
    for one in most:
        names = [str(name) for name in (one.state, one.action, one.next_state)]
        table.add_row(*names, f"{one.nominal:.4f}", f"{one.worst:.4f}")
    out.print(table)


# ---------------------------------------------------------------------- simulate
