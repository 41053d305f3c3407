"""`drmdp simulate`: trajectories under a policy."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from drmdp.cli.options import KEEP_FORMULAS, OPTIONS, RADIUS, Asked, check_outputs, options, paths
from drmdp.cli.outputs import check_labels
from drmdp.cli.plans import inputs, read_stages, stage_files
from drmdp.cli.policy_file import read_policy
from drmdp.cli.show import console, grid, print_json, problem
from drmdp.core.files import check_file, check_suffix, write_whole
from drmdp.core.text import some
from drmdp.errors import InputError, shown

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.policies.trajectories import Trajectories


@click.command()
@click.argument("model_paths", metavar="MODEL...", nargs=-1, required=True)
@click.argument("policy_path", metavar="POLICY")
@click.option("--kernel", default="mean", show_default=True, help="mean, worst (of the ball), or a kernel's name.")
@RADIUS
@click.option("-n", "--trajectories", "n", type=int, default=1000, show_default=True, help="How many.")
@click.option("--steps", type=int, help="Their length; 100, or the stages of a plan, by default.")
@click.option("--start", help="State to start from; by default the start distribution.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--out", help="Write the transitions to this .csv file, as `drmdp estimate` reads them.")
@KEEP_FORMULAS
@options("nature", "upper", "lower", "level", "support", "rectangular", "around", "order", "metric", "set")
@OPTIONS["rtol"]
@OPTIONS["tol"]
@OPTIONS["discount"]
@OPTIONS["json"]
@OPTIONS["progress"]
def simulate(
    model_paths: tuple[str, ...], policy_path: str, kernel: str, n: int, steps: int | None, start: str | None,
    seed: int, out: str | None, keep_formulas: bool, tol: float | None, rtol: float, discount: float | None, as_json: bool,
    **region: Any,
) -> None:  # fmt: skip
    """Simulate trajectories of a policy.

    MODEL and POLICY are read as by `drmdp evaluate`; several models are those of the stages.
    """
    from drmdp import api, formats
    from drmdp.policies import trajectories as simulation
    from drmdp.solution import HorizonSolution

    if out is not None:
        check_suffix(out, (".csv",), "trajectories are written to a .csv file")
        check_file(out)
    check_outputs({"--out": paths(out)}, inputs(model_paths, policy=policy_path))
    sets: Any = None
    if kernel == "worst":
        models, sets = read_stages(Asked(**region), model_paths, discount)
    else:
        models = [formats.read(path, discount=discount) for path in stage_files(model_paths)]
    model = models[0]
    given: Any = models if len(models) > 1 else model
    check_labels(model, out, keep_formulas)
    policy = read_policy(policy_path, model)
    first = None if start is None else {str(name): name for name in model.states}.get(start, start)
    nature: Any = None
    if sets is not None:
        worst = api.evaluate(given, sets if len(models) > 1 else sets[0], policy, tol, rtol)
        nature = worst.kernels if isinstance(worst, HorizonSolution) else worst.kernel
    elif kernel != "mean":
        nature = _kernel(model, kernel)
    found = simulation.simulate(given, policy, nature, n, steps, first, seed)
    steps = found.actions.shape[1]
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
    }
    if len(models) == 1 and np.ndim(policy) == 2 and not hasattr(policy, "columns"):  # nothing comes after a plan
        lines["Beyond"] = f"steps after the last weigh {found.discount**steps:.2g} of the first"
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
