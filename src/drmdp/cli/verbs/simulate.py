"""`drmdp simulate`: trajectories under a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from drmdp.cli.option_groups import integer, option
from drmdp.cli.options import BALL, MODELS, POLICY, check_outputs, command, paths
from drmdp.cli.outputs import check_csv, check_labels, write_csv
from drmdp.cli.plans import inputs, read_stages, stage_files
from drmdp.cli.policy_file import read_policy
from drmdp.cli.sets import set_of
from drmdp.cli.show import fields, print_json, print_lines, problem
from drmdp.errors import InputError
from drmdp.ui.text import first_names

if TYPE_CHECKING:
    from drmdp.model import Model
    from drmdp.policies.trajectories import Trajectories


SET = [name for name in BALL if name not in ("initial", "ground")]


@command(
    [MODELS, POLICY, *SET, "keep_formulas"],
    kernel=option("mean, worst (of the ball), or a kernel's name.", default="mean"),
    n=option("How many.", "-n", "--trajectories", default=1000),
    steps=integer("Their length; 100, or the stages of a plan, by default."),
    start="State to start from; by default the start distribution.",
    seed=option("Of everything random.", default=0),
    out="Write the transitions to this .csv file, as `drmdp estimate` reads them.",
)
def simulate(asked: Any) -> None:
    """Simulate trajectories of a policy.

    MODEL and POLICY are read as by `drmdp evaluate`; several models are those of the stages.
    """
    from drmdp import api, formats
    from drmdp.policies import trajectories as simulation
    from drmdp.solution import HorizonSolution

    out, kernel, start = asked.out, asked.kernel, asked.start
    check_csv(out, "trajectories are")
    read = {**inputs(asked.model_paths), "POLICY": paths(asked.policy_path)}
    check_outputs({"--out": paths(out)}, read)
    sets: Any = None
    if kernel == "worst":
        models, sets = read_stages(set_of(asked), asked)
    else:
        files = stage_files(asked.model_paths)
        models = [formats.read(path, discount=asked.discount) for path in files]
    model = models[0]
    stages: Any = models if len(models) > 1 else model
    check_labels(model, asked)
    policy = read_policy(asked.policy_path, model)
    first = None if start is None else {str(name): name for name in model.states}.get(start, start)
    nature: Any = None
    if sets is not None:
        ball = sets if len(models) > 1 else sets[0]
        worst = api.evaluate(stages, ball, policy, asked.tol, asked.rtol)
        nature = worst.kernels if isinstance(worst, HorizonSolution) else worst.kernel
    elif kernel != "mean":
        nature = _kernel(model, kernel)
    runs = simulation.simulate(stages, policy, nature, asked.n, asked.steps, first, asked.seed)
    asked.steps = steps = runs.actions.shape[1]
    if out is not None:
        _write(model, runs, out)
    totals = runs.totals
    low, middle, high = np.quantile(totals, [0.05, 0.5, 0.95])
    ended = float(model.terminal[runs.states[:, -1]].mean())
    if asked.as_json:
        document = {"mean": totals.mean(), "deviation": totals.std()}
        document |= {"q05": low, "median": middle, "q95": high}
        settings = fields(asked, "n", "steps", "kernel", "seed")
        settings |= {"ended": ended, "out": out, "totals": totals}
        print_json({**{name: float(x) for name, x in document.items()}, **settings})
        return
    kind = "rewards" if model.maximise else "costs"
    error, number = totals.std() / np.sqrt(totals.size), f"{asked.n:,} trajectories"
    lines = {
        "Problem": problem(model),
        "Simulated": f"{number} of {steps:,} steps under kernel {kernel}, seed {asked.seed}",
        "Total": f"{totals.mean():.6g} ± {error:.2g} (standard error), discounted {kind}",
        "Spread": f"5% {low:.6g}, median {middle:.6g}, 95% {high:.6g}",
        "Ended": f"{ended:.1%} in a terminal state",
    }
    # nothing comes after a plan
    if len(models) == 1 and np.ndim(policy) == 2 and not hasattr(policy, "columns"):
        lines["Beyond"] = f"steps after the last weigh {runs.discount**steps:.2g} of the first"
    print_lines(lines | ({} if out is None else {"Written": out}))


def _kernel(model: Model, text: str) -> int:
    """Number of the kernel with this name; kernels without names are called by their numbers."""
    names = [str(name) for name in model.kernel_names]
    if text not in names:
        expected = f"expected mean, worst or the name of a kernel ({first_names(names)})"
        raise InputError(f"--kernel: {expected}, got {text!r}")
    return names.index(text)


def _write(model: Model, runs: Trajectories, path: str) -> None:
    value = "reward" if model.maximise else "cost"
    episodes, steps = np.nonzero(runs.actions >= 0)
    rows = []
    for e, k in zip(episodes.tolist(), steps.tolist(), strict=True):
        s, a, t = runs.states[e, k], runs.actions[e, k], runs.states[e, k + 1]
        names = (model.states[s], model.actions[a], model.states[t])
        rows.append((e, k, *names, repr(float(runs.costs[e, k]))))
    write_csv(path, ["episode", "step", "state", "action", "next_state", value], rows)
