"""Machine replacement with doubtful transition probabilities: what a robust policy buys, and what it costs.

Run with ``make demo`` or ``python examples/demo.py``. Writes report.html into the folder where it is run.
"""

from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import drmdp

N_STATES, N_KERNELS, RADIUS = 10, 20, 0.5
WIDTH = 80


def choice(row, actions):
    """Name the likelier action of a state, with its probability if the choice is random."""
    best = int(row.argmax())
    return actions[best] if row[best] > 0.995 else f"{actions[best]} {row[best]:.0%}"


def costs_by_kernel(model, policy):
    """Mean cost of a policy over the states under each of the sampled kernels, (N,)."""
    chains = np.einsum("sa,isat->ist", policy, model.kernels)
    values = np.linalg.solve(
        np.eye(model.n_states) - model.discount * chains, (policy * model.costs).sum(axis=1)[:, None]
    )
    return values[:, :, 0] @ model.initial


def main():
    """Solve the problem twice, nominally and robustly, and compare the two policies both ways."""
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH)
    model = drmdp.instances.perturb(drmdp.instances.machine(N_STATES), N_KERNELS, seed=0)
    ball, point = drmdp.Wasserstein(RADIUS, support="all"), drmdp.Wasserstein(0)

    nominal = drmdp.solve(model, point)
    robust = drmdp.solve(model, ball)
    nominal_worst = drmdp.evaluate(model, ball, nominal.policy)
    robust_mean = drmdp.evaluate(model, point, robust.policy)

    console.print(
        f"\n[bold]Machine replacement[/]: {N_STATES - 2} conditions, from as new (1) to worst ({N_STATES - 2}), and a "
        f"short (R1) and a long repair (R2). How the machine wears is known from {N_KERNELS} sampled kernels only. "
        f"The nominal policy takes their mean for the truth; the robust one expects nature to move them by up to "
        f"{RADIUS:g} in each state (l2, order 2), where {ball.saturation(model).min():.1f} would let it do anything. "
        f"Numbers are costs, discounted by {model.discount:g}: less is better.\n"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("state")
    for name in ("nominal\naction", "robust\naction"):
        table.add_column(name)
    for name in ("nominal\ncost", "worst case of\nnominal policy", "worst case of\nrobust policy"):
        table.add_column(name, justify="right")
    for s, state in enumerate(model.states):
        actions = (choice(solution.policy[s], model.actions) for solution in (nominal, robust))
        costs = (nominal.value[s], nominal_worst.value[s], robust.value[s])
        table.add_row(state, *actions, *(f"{cost:.2f}" for cost in costs))
    console.print(table)

    mean, mean_robust, worst, worst_robust = (
        float(model.initial @ result.value) for result in (nominal, robust_mean, nominal_worst, robust)
    )
    spread = [costs_by_kernel(model, solution.policy) for solution in (nominal, robust)]
    ranges = [f"{costs.min():.2f} … {costs.max():.2f}" for costs in spread]
    console.print(
        "A percentage is a random choice: nature moves before the draw, so mixing denies it a sure target. On average "
        "over the states:\n"
        f"[bold]bought[/]  In the worst case the robust policy costs {worst_robust:.2f}, the nominal one {worst:.2f}: "
        f"{1 - worst_robust / worst:.0%} less.\n"
        f"[bold]paid[/]    Under the mean of the kernels it costs {mean_robust:.2f} instead of {mean:.2f}: "
        f"{mean_robust / mean - 1:.0%} more.\n"
        f"[bold]scale[/]   Under the {N_KERNELS} kernels one by one the nominal policy costs {ranges[0]}, the robust "
        f"one {ranges[1]}. Nothing sampled comes near the worst case: whether to pay depends on how far the truth may "
        "be from the samples, and that is what the radius says.\n"
    )
    console.print(
        f"[bold]Proof[/]: {robust.status}, certified gap {robust.gap:.1e}: no policy has a worst case "
        f"better by more in any state. Found in {robust.seconds:.2f} s, {robust.n_iters} iterations of "
        f"{robust.settings['method']}."
    )
    page = Path("report.html")
    robust.report(page, drmdp.radius.path(model, ball, radii=15), title="Machine replacement", command="make demo")
    console.print(
        f"[bold]Report[/]: open {page} in a browser: policy, values, what nature does, the radius, the proof.\n"
    )


if __name__ == "__main__":
    main()
