"""`drmdp inspect`: understand a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli import show
from drmdp.cli.option_groups import number, option
from drmdp.cli.options import BALL, MODEL, command, exit_code
from drmdp.cli.policy_file import read_policy
from drmdp.cli.sets import set_of
from drmdp.errors import InputError
from drmdp.ui.progress import stage

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.policies import ActionLosses, Bent, Rounded, Values
    from drmdp.sets import AmbiguitySet


@command(
    [MODEL, click.Argument(["policy_path"], metavar="[POLICY]", required=False), *BALL],
    loss=number("List actions that cost at most so much more than the best; without POLICY."),
    n_bent=option("Transitions shown that nature bent most.", "--bent", default=8),
)
def inspect(asked: Any) -> int:
    """Understand a policy: its values, its alternatives, and what nature did.

    POLICY is read as by `drmdp evaluate`; without it, the best one is found.

    For each state the value in the worst case over the ball, under the mean kernel, and under the
    worst of the single kernels. For the best policy also the best policy without randomisation and
    what it loses, actions that lose at most --loss if played once, and what nature changed.
    """
    from drmdp import api, policies

    path, loss = asked.policy_path, asked.loss or 0.0
    if asked.loss is not None and path is not None:
        why = "actions are compared with those of the best policy; leave POLICY away"
        raise InputError(f"--loss: {why}")
    model, ambiguity = set_of(asked).read(asked.model_path, asked.discount)
    near_to: Any = show.fields(asked, "tol", "rtol")
    other = solution = None
    if path is not None:
        policy = read_policy(path, model)
        if not isinstance(policy, np.ndarray) or policy.ndim > 2:
            raise InputError(f"{path}: inspect takes no plans over stages; drmdp evaluate does")
    else:
        solution = api.solve(model, ambiguity, **near_to)
        with stage("looking at single actions"):
            near = policies.near_optimal(model, ambiguity, solution, loss)
        with stage("rounding the policy"):
            other = policies.deterministic(model, ambiguity, solution, **near_to), near
        policy = solution.policy
    values = policies.values(model, ambiguity, policy, **near_to)
    judged: Any = solution or values.worst
    with stage("comparing kernels"):
        most = policies.bent(model, judged.kernel, asked.n_bent, policy)
    if asked.as_json:
        about = {"status": str(judged.status), "policy": policy}
        show.print_json(about | _inspected(model, ambiguity, values, other, most))
    else:
        _print_inspected(model, ambiguity, policy, values, other and other[0])
        if other is not None:
            _print_actions(model, *other, loss)
        _print_bent(most)
    return exit_code(judged)


def _inspected(
    model: Model, ambiguity: AmbiguitySet, values: Values, other: Any, most: Any
) -> dict[str, Any]:
    """The document; `other` are the rounded policy and the losses of actions, if there are some."""
    document = {
        "worst": show.fields(values.worst, "value", "lower", "upper", "gap"),
        "mean": values.mean,
        "by_kernel": values.by_kernel,
    }
    if other is not None:
        names = ("policy", "value", "loss", "changed", "rounds")
        document["deterministic"] = show.fields(other[0], *names)
        document["actions_once"] = show.fields(other[1], "value", "loss", "near")
    document["bent"] = [{**vars(change), "change": change.change} for change in most]
    document["worst_kernel"] = model.kernel_names[_worst_kernel(model, values)]
    return {**document, **show.named(model, ambiguity)}


def _worst_kernel(model: Model, values: Values) -> int:
    """Number of the kernel that is worst for the policy, over the start distribution."""
    means = values.by_kernel @ model.initial
    return int(means.argmin() if model.maximise else means.argmax())


def _print_inspected(
    model: Model, ambiguity: AmbiguitySet, policy: Any, values: Values, rounded: Rounded | None
) -> None:
    p0 = model.initial
    single = values.by_kernel.min(axis=0) if model.maximise else values.by_kernel.max(axis=0)
    means = values.by_kernel @ p0
    worst_one = model.kernel_names[_worst_kernel(model, values)]
    lines = {
        "Problem": show.problem(model),
        **_data(model),
        "Set": show.region(model, ambiguity, policy),
        "Worst case": f"{p0 @ values.worst.value:.6g} over the start distribution, gap "
        f"{values.worst.gap:.1e}",
        "Mean kernel": f"{p0 @ values.mean:.6g}",
    }
    if means.size > 1:
        worst_name = worst_one if isinstance(worst_one, str) else f"kernel {worst_one}"
        lines["One kernel"] = f"{means.min():.6g} … {means.max():.6g}, worst is {worst_name}"
    if rounded is not None:
        lines["One action"] = (
            f"best deterministic policy: {p0 @ rounded.value:.6g}, loses at most "
            f"{rounded.loss.max():.3g}"
        )
    show.print_lines(lines, ambiguity.notes(model))
    text = "\nValues in the worst case, under the mean kernel, and under the worst kernel:"
    show.console().print(text)
    figures = {"worst case": values.worst.value, "mean kernel": values.mean, "worst kernel": single}
    show.first_states(model.states, model.actions, policy, figures, model.pair_counts)


def _data(model: Model) -> dict[str, str]:
    """The counts of the model, in words."""
    counts = model.pair_counts
    if counts is None or not model.available.any():
        return {}
    available_counts = counts[model.available]
    low, high = (f"{n:,.6g}" for n in (available_counts.min(), available_counts.max()))
    each = f"an available pair has {low if low == high else f'{low} to {high}'}"
    return {"Data": f"{counts.sum():,.12g} transitions; {each}"}


def _print_actions(model: Model, rounded: Rounded, near: ActionLosses, limit: float) -> None:
    """Print the loss of playing a single action in each state."""
    heading = "One action in each state: what that loses at most, for ever, and if done once:"
    show.console().print(heading)
    rows = []
    for s in range(min(model.n_states, show.ROWS)):
        if model.terminal[s]:
            continue
        a = int(rounded.policy[s].argmax())
        order = [b for b in np.argsort(near.loss[s], kind="stable") if near.near[s, b]]
        names = ", ".join(str(model.actions[b]) for b in order) or "none"
        losses = (f"{rounded.loss[s]:.3g}", f"{near.loss[s, a]:.3g}")
        rows.append((model.states[s], model.actions[a], *losses, *([names] if limit > 0 else [])))
    last = f"within {limit:g}, once" if limit > 0 else ""
    show.print_table(["state", "one action"], ["loses for ever", "loses once"], rows, 0, last, 36)


def _print_bent(most: tuple[Bent, ...]) -> None:
    if most:
        show.console().print("What nature changed most: probabilities of next states")
        rows = (
            (each.state, each.action, each.next_state, f"{each.nominal:.4f}", f"{each.worst:.4f}")
            for each in most
        )
        show.print_table(["state", "action", "next state"], ["mean kernel", "worst case"], rows)
