"""`drmdp inspect` and `drmdp simulate`."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli.options import (
    OPTIONS,
    RADIUS,
    ball_of,
    check_outputs,
    columns,
    common,
    console,
    exit_code,
    grid,
    named,
    paths,
    print_json,
    problem,
    read_policy,
    said,
)
from drmdp.core.files import check_file, check_suffix, write_whole
from drmdp.core.progress import stage
from drmdp.core.text import some
from drmdp.errors import InputError, shown

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.policies import ActionLosses, Bent, Rounded, Values
    from drmdp.policies.trajectories import Trajectories
    from drmdp.sets import Wasserstein

FORMULA = tuple("=+-@\t\r")
"""What a formula begins with."""
ROWS = 12
"""States shown in a table."""


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.argument("policy_path", metavar="[POLICY]", required=False)
@RADIUS
@click.option("--loss", type=float, default=0.0, show_default=True, help="List actions that cost at most so much more.")
@click.option(
    "--bent", "n_bent", type=int, default=8, show_default=True, help="Transitions shown that nature bent most."
)
@common
def inspect(
    model_path: str, radius: float, policy_path: str | None, loss: float, n_bent: int, discount: float | None,
    metric: str, order: str | None, support: str, tol: float | None, rtol: float, as_json: bool,
) -> int:  # fmt: skip
    """Understand a policy: its values, its alternatives, and what nature did.

    POLICY is read as by `drmdp evaluate`; without it, the best one is found.

    For each state the value in the worst case over the ball, under the mean kernel, and under the worst of the single kernels. For the best
    policy also the best policy without randomisation and what it loses, actions that lose at most --loss if played once, and what nature
    changed.
    """
    from drmdp import api, formats, policies
    from drmdp.solution import reached

    ball = ball_of(radius, metric, order, support)
    model = formats.read(model_path, discount=discount)
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
    ball: Wasserstein,
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


def _print_inspected(model: Model, ball: Wasserstein, policy: Any, found: Values, rounded: Rounded | None) -> None:
    from drmdp.solution import choice

    out, p0 = console(), model.initial
    single = found.by_kernel.min(axis=0) if model.maximise else found.by_kernel.max(axis=0)
    means = found.by_kernel @ p0
    worst_one = model.kernel_names[_worst_kernel(model, found)]
    lines = {
        "Problem": problem(model),
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
    table = columns(["state", "action"], ["worst case", "mean kernel", "worst kernel"])
    for s in range(min(model.n_states, ROWS)):
        cells = [f"{x[s]:.6g}" for x in (found.worst.value, found.mean, single)]
        table.add_row(str(model.states[s]), choice(policy[s], model.actions), *cells)
    out.print(table)
    if model.n_states > ROWS:
        out.print(f"… {model.n_states - ROWS:,} more")


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


@click.command()
@click.argument("model_path", metavar="MODEL")
@click.argument("policy_path", metavar="POLICY")
@click.option("--kernel", default="mean", show_default=True, help="mean, worst (of the ball), or a kernel's name.")
@click.option("--radius", type=float, help="Radius of the ball, for --kernel worst.")
@click.option("-n", "--trajectories", "n", type=int, default=1000, show_default=True, help="How many.")
@click.option("--steps", type=int, default=100, show_default=True, help="Their length.")
@click.option("--start", help="State to start from; by default the start distribution.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--out", help="Write the transitions to this .csv file, as `drmdp estimate` reads them.")
@click.option("--keep-formulas", is_flag=True, help="Write names such as =1+1 too, which spreadsheets run as formulas.")
@OPTIONS["metric"]
@OPTIONS["order"]
@OPTIONS["support"]
@OPTIONS["rtol"]
@OPTIONS["tol"]
@OPTIONS["discount"]
@OPTIONS["json"]
@OPTIONS["progress"]
def simulate(
    model_path: str, policy_path: str, kernel: str, radius: float | None, n: int, steps: int, start: str | None,
    seed: int, out: str | None, keep_formulas: bool, metric: str, order: str | None, support: str, tol: float | None,
    rtol: float, discount: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Simulate trajectories of a policy.

    POLICY is read as by `drmdp evaluate`.
    """
    from drmdp import api, formats
    from drmdp.policies import trajectories as simulation

    if out is not None:
        check_suffix(out, (".csv",), "trajectories are written to a .csv file")
        check_file(out)
    check_outputs({"--out": paths(out)}, {"MODEL": formats.files_of(model_path), "POLICY": paths(policy_path)})
    if kernel == "worst" and radius is None:
        raise InputError("--kernel worst needs --radius")
    model = formats.read(model_path, discount=discount)
    if out is not None and not keep_formulas:
        _check_labels(model)
    policy = read_policy(policy_path, model)
    first = None if start is None else {str(name): name for name in model.states}.get(start, start)
    nature: Any = None
    if kernel == "worst":
        assert radius is not None
        nature = api.evaluate(model, ball_of(radius, metric, order, support), policy, tol, rtol).kernel
    elif kernel != "mean":
        nature = _kernel(model, kernel)
    found = simulation.simulate(model, policy, nature, n, steps, first, seed)
    if out is not None:
        _write(model, found, out)
    totals = found.totals
    low, middle, high = np.quantile(totals, [0.05, 0.5, 0.95])
    ended = float(model.terminal[found.states[:, -1]].mean())
    document = {"mean": totals.mean(), "deviation": totals.std(), "q05": low, "median": middle, "q95": high}
    if as_json:
        own = {"n": n, "steps": steps, "kernel": kernel, "seed": seed, "ended": ended, "out": out}
        print_json({**{name: float(value) for name, value in document.items()}, **own, "totals": totals})
        return
    kind = "rewards" if model.maximise else "costs"
    error = totals.std() / np.sqrt(totals.size)
    lines = {
        "Problem": problem(model),
        "Simulated": f"{n:,} trajectories of {steps:,} steps under kernel {kernel}, seed {seed}",
        "Total": f"{totals.mean():.6g} ± {error:.2g} (standard error), discounted {kind}",
        "Spread": f"5% {low:.6g}, median {middle:.6g}, 95% {high:.6g}",
        "Ended": f"{ended:.1%} in a terminal state",
        "Beyond": f"steps after the last weigh {model.discount**steps:.2g} of the first",
    }
    console().print(grid(lines | ({} if out is None else {"Written": out})))


def _kernel(model: Model, text: str) -> int:
    """Number of the kernel with this name; kernels without names are called by their numbers."""
    names = [str(name) for name in model.kernel_names]
    if text not in names:
        raise InputError(f"--kernel: expected mean, worst or the name of a kernel ({some(names)}), got {text!r}")
    return names.index(text)


def _write(model: Model, found: Trajectories, path: str) -> None:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["episode", "step", "state", "action", "next_state", "reward" if model.maximise else "cost"])
    episodes, steps = np.nonzero(found.actions >= 0)
    for e, k in zip(episodes.tolist(), steps.tolist(), strict=True):
        s, a, t = found.states[e, k], found.actions[e, k], found.states[e, k + 1]
        rows.writerow([e, k, model.states[s], model.actions[a], model.states[t], repr(float(found.costs[e, k]))])
    try:
        content = text.getvalue().encode()
    except UnicodeEncodeError as error:
        raise InputError(f"--out {path}: no text can hold the name {shown(error.object[error.start])}") from None
    write_whole(path, lambda stream: stream.write(content))


def _check_labels(model: Model) -> None:
    """Refuse labels that a spreadsheet would run as formulas when it opens the file."""
    for kind in ("states", "actions"):
        for label in getattr(model, kind):
            if isinstance(label, str) and label[:1] in FORMULA and not _is_number(label):
                raise InputError(
                    f"{kind}: a spreadsheet may run the name {shown(label)} as a formula; --keep-formulas writes it all the same"
                )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
