"""The Nile at Aswan: promises learnt from 1871 to 1920, judged on 1921 to 1970.

Run with ``make demo`` or ``python examples/demo.py``. Writes report.html into the folder where it
is run.
"""

from itertools import groupby
from pathlib import Path

from nile import UNIT, flows, replay, reservoir
from rich import box
from rich.console import Console
from rich.table import Table

import drmdp

PAST, FUTURE = (1871, 1920), (1921, 1970)
DEMANDS = (85, 90, 95, 100)
DEMAND = 95  # the one that is shown in full
POINT = drmdp.Wasserstein(0, moves="events")  # the mean of the decades taken for the truth


def learn(model):
    """A radius by holding out one decade at a time; nominal and robust solutions, each with one
    action a state.
    """
    ambiguity = POINT.with_radius(drmdp.radius.cross_validate(model, POINT).radius)
    nominal, robust = drmdp.solve(model, POINT), drmdp.solve(model, ambiguity)
    return ambiguity, nominal, robust, drmdp.policies.deterministic(model, ambiguity, robust)


def promises(model, *policies):
    """One row for each range of storages in which every policy promises the same."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("storage, km³", "promise, nominal", "promise, robust"):
        shown.add_column(name, justify="right")
    names = [action.removeprefix("promise ") for action in model.actions]
    chosen = [
        tuple(names[policy[s].argmax()] for policy in policies) for s in range(model.n_states)
    ]
    for same, group in groupby(range(len(chosen)), key=chosen.__getitem__):
        storages = [UNIT * s for s in group]
        shown.add_row(
            f"{storages[0]} … {storages[-1]}" if len(storages) > 1 else f"{storages[0]}", *same
        )
    return shown


def main():
    """Learn from the first half of the record, show the promises, and replay the second half."""
    console = Console(highlight=False)
    console.width = min(console.width, 80)
    model = reservoir(*PAST, DEMAND)
    ambiguity, nominal, robust, rule = learn(model)
    before, after = (UNIT * flows(*years).mean() for years in (PAST, FUTURE))
    console.print(
        f"\n[bold]The Nile at Aswan.[/] A dam of 100 km³ has to supply {DEMAND} km³ a year. In 1920 fifty annual flows "
        f"are known, {before:.0f} km³ on average; each decade is a kernel. The nominal policy takes their mean for the "
        f"truth. The robust one fears that nature moves the laws of the decades by up to {ambiguity.radius:.2g}, a "
        "radius chosen by holding out one decade at a time. What each promises at the beginning of a year:\n"
    )
    console.print(promises(model, nominal.policy, rule.policy))

    console.print(
        f"[bold]Then the years 1921 to 1970 came[/], with {after:.0f} km³ on average. What each rule would have paid a "
        "year (the cube of the shortage in units of 5 km³; mean over all storages at the start), for four demands:\n"
    )
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("demand, km³", "radius", "nominal", "robust", "", "had 1921–70 been known"):
        shown.add_column(name, justify="right")
    cheaper, dearer = [], []
    for demand in DEMANDS:
        problem = reservoir(*PAST, demand)
        chosen, known, _, careful = learn(problem)
        hindsight = drmdp.solve(reservoir(*FUTURE, demand), POINT)
        paid = [
            replay(found, *FUTURE, demand).mean()
            for found in (known.policy, careful.policy, hindsight.policy)
        ]
        share = paid[1] / paid[0] - 1
        (cheaper if share < 0 else dearer).append(f"{demand}")
        cells = (
            f"{demand}",
            f"{chosen.radius:.2g}",
            f"{paid[0]:.2f}",
            f"{paid[1]:.2f}",
            f"{share:+.0%}",
            f"{paid[2]:.2f}",
        )
        shown.add_row(*cells)
    console.print(shown)
    console.print(
        f"[bold]Honestly[/]: the robust rule would have paid less for {_listed(cheaper)}, and more for {_listed(dearer)}: "
        "where the demand is what the old flows could just carry, caution pays when they fall; where there is water "
        "enough, it is a premium for a drought that did not come. One river and one century prove no more than that.\n"
    )
    console.print(
        f"[bold]Proof[/] (demand {DEMAND}): {robust.status}, certified gap {robust.gap:.1e} in a worst-case cost of up to "
        f"{robust.value.max():.0f}. No policy has a worst case better by more in any state; the table above, which draws "
        f"nothing at random, loses at most {rule.loss.max():.2g}."
    )
    for note in robust.notes:
        console.print(f"[bold]Note[/]: {note}.")
    page = Path("report.html")
    path = drmdp.radius.path(model, ambiguity, radii=15)
    robust.report(page, path, title="The Nile at Aswan", command="make demo")
    console.print(
        f"[bold]Report[/]: open {page} in a browser: policy, values, what nature does, the radius, the proof.\n"
    )


def _listed(demands):
    *head, last = demands or ["none of these"]
    return f"demands of {', '.join(head)} and {last} km³" if head else f"a demand of {last} km³"


if __name__ == "__main__":
    main()
