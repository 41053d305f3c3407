"""A simulated reservoir with eight years of inflows: what a robust policy does otherwise, and what it saves in other simulated years.

Run with ``make demo`` or ``python examples/demo.py``. Writes report.html into the folder where it is run.
"""

from itertools import groupby
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import drmdp

WIDTH = 80
YEARS, UNSEEN, RECORDS = 8, 200, 6


POINT = drmdp.Wasserstein(0)  # the mean of the years taken for the truth


def learn(model):
    """Choose a radius by holding out one year at a time, and return the ball and the robust solution."""
    ball = drmdp.Wasserstein(drmdp.radius.cross_validate(model, POINT).radius)
    return ball, drmdp.solve(model, ball)


def costs(policy, years):
    """Cost of a policy in each of these years, from any storage with equal chance, (years,)."""
    return drmdp.policies.values(years, POINT, policy).by_kernel @ years.initial


def table(*policies):
    """One row for each range of storages in which every policy releases the same."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("storage", "release, nominal", "release, robust"):
        shown.add_column(name, justify="right")
    releases = list(zip(*(policy.argmax(axis=1).tolist() for policy in policies), strict=True))
    for same, group in groupby(range(len(releases)), key=releases.__getitem__):
        storages = list(group)
        shown.add_row(f"{storages[0]} … {storages[-1]}" if len(storages) > 1 else f"{storages[0]}", *map(str, same))
    return shown


def saved(before, after):
    """Say how much less the second costs."""
    share = 1 - after / before
    return f"{share:.0%} less" if share >= 0 else f"{-share:.0%} more"


def main():
    """Learn from one record and show the decision; then see whether that was luck."""
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH)
    model = drmdp.instances.reservoir(n_kernels=YEARS, seed=1)
    nominal = drmdp.solve(model, POINT)
    ball, robust = learn(model)
    plan = drmdp.policies.deterministic(model, ball, robust)
    console.print(
        f"\n[bold]A reservoir[/] serves a demand of 4 units a month, stores up to {model.n_states - 1}, and pays the "
        f"cube of what is short. Its data are simulated: {YEARS} years of 12 months; each year is a kernel. The nominal "
        "policy takes their mean for the truth. The robust one fears that nature moves them by up to "
        f"{ball.radius:.3g}, a radius chosen by holding out one year at a time.\n"
    )
    console.print(table(nominal.policy, plan.policy))

    unseen = drmdp.instances.reservoir(n_kernels=UNSEEN, seed=1000, months=None)
    before, after = costs(nominal.policy, unseen), costs(plan.policy, unseen)
    bad, bad_after = np.quantile(before, 0.9), np.quantile(after, 0.9)
    console.print(
        f"[bold]In {UNSEEN} other simulated years[/] the robust policy costs {after.mean():.0f} instead of {before.mean():.0f} "
        f"on average, {saved(before.mean(), after.mean())}, and {bad_after:.0f} instead of {bad:.0f} in one bad year of "
        f"ten, {saved(bad, bad_after)}. Dry months come in a row; the mean does not show it."
    )
    ratios = []
    for seed in range(2, 2 + RECORDS):
        record = drmdp.instances.reservoir(n_kernels=YEARS, seed=seed)
        found = (drmdp.solve(record, POINT), learn(record)[1])
        ratios.append(np.divide(*(costs(solution.policy, unseen).mean() for solution in found[::-1])))
    less, more = sum(ratio < 0.999 for ratio in ratios), sum(ratio > 1.001 for ratio in ratios)
    console.print(
        f"[bold]Was that luck?[/] From {RECORDS} other records of {YEARS} years the robust policy costs less in {less}, "
        f"the same in {RECORDS - less - more}, more in {more}; on average {saved(1, np.mean(ratios))}.\n"
    )
    console.print(
        f"[bold]Proof[/]: {robust.status}, certified gap {robust.gap:.1e} in a worst-case cost of up to "
        f"{robust.value.max():.0f}. No policy has a worst case better by more in any state; the table, which draws "
        f"nothing at random, loses at most {plan.loss.max():.2g}."
    )
    for note in robust.notes:
        console.print(f"[bold]Note[/]: {note}.")
    page = Path("report.html")
    robust.report(page, drmdp.radius.path(model, ball, radii=15), title="Reservoir", command="make demo")
    console.print(
        f"[bold]Report[/]: open {page} in a browser: policy, values, what nature does, the radius, the proof.\n"
    )


if __name__ == "__main__":
    main()
