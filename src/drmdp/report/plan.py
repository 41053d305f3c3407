"""The page about a plan over finitely many stages."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from drmdp import plot
from drmdp._version import __version__
from drmdp.core.files import write_whole
from drmdp.core.progress import stage
from drmdp.core.text import count, discount
from drmdp.report import page
from drmdp.report.decision import SURE, decide
from drmdp.solution import HorizonSolution, choice, reached

STEPS = 6
"""So many changes of the plan are told in sentences."""
ALL = 40
"""So many states are listed."""


@stage("writing the report")
def write_plan(
    plan: HorizonSolution, path: str | os.PathLike[str], title: str | None = None, command: str | None = None
) -> None:
    """Write the page about a plan; see `drmdp.HorizonSolution.report`."""
    page.check_target(path)
    told, more = decisions(plan)
    text = page.fill(
        "plan.html",
        page.drawn({"plan": (lambda ax: plot.plan(plan, ax=ax), "Map: likeliest action by stage and state")}),
        title=title or ("A robust plan, and how sure it is" if plan.optimal else "A plan, and its worst case"),
        decisions=told,
        more=more,
        costs=_costs(plan),
        status=str(plan.status),
        sentence=plan.status.sentence,
        good=reached(plan),
        table=_table(plan),
        problem=_problem(plan),
        command=command,
        reproduce=_reproduce(plan),
    )
    write_whole(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def decisions(plan: HorizonSolution) -> tuple[list[tuple[str, str]], str]:
    """The plan in sentences, (stages, what to do), and what they leave out."""
    played = plan.policy >= 1 - SURE
    changes = (played[1:] != played[:-1]).any(axis=(1, 2))
    first = np.flatnonzero(np.append(True, changes))
    last = np.append(first[1:], plan.n_stages) - 1
    told = []
    for lo, hi in list(zip(first.tolist(), last.tolist(), strict=True))[:STEPS]:
        same = bool(np.ptp(plan.policy[lo : hi + 1], axis=0).max() < 0.01)
        found = decide(plan.states, plan.actions, plan.policy[lo], exact=same)
        when = f"Stage {lo}" if lo == hi else f"Stages {lo} to {hi}"
        told.append((when if first.size > 1 else "", f"{found.sentence} {found.caveat}".strip()))
    left = first.size - len(told)
    return told, f"The plan changes {count(left, 'more time')} after that: see the map." if left > 0 else ""


def _costs(plan: HorizonSolution) -> list[str]:
    mean = float(plan.initial @ plan.value[0])
    does, most = ("earns", "at least") if plan.maximise else ("costs", "at most")
    side = "best" if plan.settings["nature"] == "cooperative" else "worst"
    first = f"Over {count(plan.n_stages, 'stage')} this plan {does} {most} {mean:,.6g}, mean over the start, in the {side} case that the set allows."
    if plan.optimal:
        sure = f"No plan has a worst case that is better by more than {plan.gap:.2g}, in any state at any stage: this is proved, not estimated."
    else:
        sure = f"The bounds on it differ by at most {plan.gap:.2g} in any state at any stage: they are proved, not estimated."
    return [first, sure]


def _table(plan: HorizonSolution) -> dict[str, Any]:
    stages = sorted({0, plan.n_stages // 4, plan.n_stages // 2, 3 * plan.n_stages // 4, plan.n_stages - 1})
    S = len(plan.states)
    rows = [
        [str(plan.states[s]), *(choice(plan.policy[t, s], plan.actions) for t in stages), f"{plan.value[0, s]:,.6g}"]
        for s in range(min(S, ALL))
    ]
    note = f"The first {ALL} states of {S:,}." if S > ALL else ""
    columns = ["state", *(f"stage {t}" for t in stages), f"worst-case {plan.noun} from stage 0"]
    return {"columns": columns, "rows": rows, "note": note}


def _problem(plan: HorizonSolution) -> dict[str, str]:
    T, S, A = plan.policy.shape
    facts = {
        "stages": f"{T:,}",
        "states × actions": f"{S:,} × {A:,}",
        "models": "one for all stages" if len(plan.fingerprints) == 1 else "one for each stage",
        "discount": f"{discount(plan.discount)} a stage",
        "what is feared": plan.ball_in_words,
        f"final {plan.noun}s": f"from {plan.final.min():,.6g} to {plan.final.max():,.6g}",
    }
    return facts | ({"notes": "\n".join(plan.notes)} if plan.notes else {})


def _reproduce(plan: HorizonSolution) -> dict[str, str]:
    prints = plan.fingerprints
    return {
        "call": f"drmdp.{'finite_horizon' if plan.optimal else 'evaluate'}, backend {plan.settings['backend']}",
        "gap": plan.gap_in_words,
        "models": f"SHA-256 {prints[0]}" + ("" if len(prints) == 1 else f" and {len(prints) - 1} more"),
        "version": f"drmdp {__version__}",
    }
