"""What a decision maker reads first: what to do, what it costs, how sure that is, what was assumed, and what changes if the data are trusted less."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array
from drmdp.core.text import amount, count, discount, some
from drmdp.model import Model
from drmdp.report.decision import SURE, Decision, decide
from drmdp.report.facts import Subject
from drmdp.sets import AmbiguitySet
from drmdp.solution import reached

SAME = 5e-4
"""Differences of less than this share of the larger amount are none."""
LISTED = 8
"""States that act otherwise are named up to so many."""


def lead(subject: Subject) -> dict[str, Any]:
    """The first screen of the page."""
    solution, model = subject.solution, subject.model
    share = None if model is None else policies.visits(model, solution.policy)
    decision = decide(solution.states, solution.actions, solution.policy, share)
    return {
        "decisions": [("", decision.lines, decision.caveat)],
        "costs": _costs(subject),
        "against": [against(subject, rival) for rival in subject.rivals],
        "sure": _sure(subject),
        "good": reached(solution),
        "assumed": _assumed(subject),
        "notes": list(dict.fromkeys((*(() if model is None else model.notes), *solution.notes))),
    }


def verb(subject: Any) -> tuple[str, str]:
    """What a value does, and what a worst case is a bound on."""
    does = "earns" if subject.noun == "reward" else "costs"
    return does, "at least" if (does == "earns") != subject.helps else "at most"


def _costs(subject: Subject) -> str:
    """What the policy is worth, in one sentence."""
    does, most = verb(subject)
    side = subject.side
    worst = amount(subject.worst, subject.unit)
    if subject.model is None:
        return f"It {does} {most} {worst} in the {side} case considered."
    mean = amount(subject.mean, subject.unit)
    how = (
        f"in total over the future, discounted by {discount(subject.model.discount)} a step, mean over the start"
        if subject.model.discount > 0
        else "in one step, mean over the start"
    )
    return f"It {does} {mean} if the data are right and {most} {worst} in the {side} case considered ({how})."


def against(subject: Any, rival: Any) -> str:
    """How a rival does, and what the policy, or plan, saves against it."""
    does, most = verb(subject)
    unit, sign = subject.unit, -1 if subject.noun == "reward" else 1
    side = subject.side
    saved = [sign * (rival.worst - subject.worst), sign * (rival.mean - subject.mean)]
    if _alike(subject.policy, rival.policy):
        return f"{rival.name} is the same {subject.what}."
    if all(_none(gain, size) for gain, size in zip(saved, (rival.worst, rival.mean), strict=True)):
        return f"{rival.name} does as well, in the {side} case and if the data are right."
    words = [
        _difference(gain, size, unit, subject.noun) for gain, size in zip(saved, (rival.worst, rival.mean), strict=True)
    ]
    first = f"{rival.name} {does} {amount(rival.mean, unit)} if the data are right and {most} {amount(rival.worst, unit)} in the {side} case"
    return (
        f"{first}: against it this {subject.what} {words[0]} in the {side} case and {words[1]} if the data are right."
    )


def _alike(one: Array, other: Array) -> bool:
    return bool(np.abs(one - other).max() < 1 - SURE)


def _none(gain: float, size: float) -> bool:
    return abs(gain) <= SAME * abs(size)


def _difference(gain: float, size: float, unit: str, noun: str) -> str:
    """What a gain is called."""
    if _none(gain, size):
        return "makes no difference"
    share = f" ({abs(gain) / abs(size):.1%})" if size else ""
    text = f"{amount(abs(gain), unit)}{share}"
    if noun == "reward":
        return f"earns {text} {'more' if gain > 0 else 'less'}"
    return f"saves {text}" if gain > 0 else f"costs {text} more"


def within(found: Any, unit: str) -> str:
    """By how much nothing is better than a result with `gap` and `scale`."""
    share = found.gap / found.scale if found.scale > 0 else 0.0
    return "by even a millionth of the largest amount" if share <= 1e-6 else f"by more than {amount(found.gap, unit)}"


def _sure(subject: Subject) -> str:
    """How near to the best the policy is."""
    solution = subject.solution
    side = subject.side
    near = within(solution, subject.unit)
    first = f"Proved, not estimated: no policy has a {side} case that is better {near}, in any state. The appendix says how."
    return first if reached(solution) else f"{first} The run ended early: {solution.status.sentence}."


def _assumed(subject: Subject) -> str:
    """What the worst case is over."""
    if subject.ball is None:
        return f"The worst case is over {subject.solution.settings['ball']}."
    text = assumed(subject.model, subject.ball)
    several = subject.model is not None and subject.model.n_kernels > 1 and subject.spread is not None
    return f"{text} By the same measure the kernels are {subject.spread:.3g} away from their mean." if several else text


def assumed(model: Model | None, ball: AmbiguitySet, when: str = "") -> str:
    """The same of a model, if it is known, and a set; `when` is said of a plan."""
    around = ""
    if model is not None:
        names = "" if isinstance(model.kernel_names, range) else f" ({some(model.kernel_names, 8)})"
        around = f" around {count(model.n_kernels, 'observed kernel')}{names}"
    size = f"{ball.size_words}, " if ball.sized else ""
    side = "best" if ball.nature == "cooperative" else "worst"
    return f"The {side} case is over the kernels that the set allows{when}{around}: {size}{ball.words}."


# ---------------------------------------------------------------------- along the radius


def switch(subject: Subject) -> list[dict[str, Any]]:
    """What is best at each radius of the path: texts of the panels, and which of them is this one."""
    sweep, model = subject.sweep, subject.model
    if sweep is None or model is None:
        return []
    share = policies.visits(model, subject.solution.policy)
    own = subject.radius
    current = int(np.argmin(np.abs(sweep.radii - own))) if own is not None else 0
    panels: list[dict[str, Any]] = []
    before: Decision | None = None
    for k, (point, worst, mean) in enumerate(zip(sweep.points, sweep.worst, sweep.nominal, strict=True)):
        found = decide(model.states, model.actions, point.policy, share)
        otherwise = np.flatnonzero(
            (point.policy >= 0.5).argmax(axis=1) != (subject.solution.policy >= 0.5).argmax(axis=1)
        )
        panels.append(
            {
                "radius": f"{point.radius:.3g}",
                "current": k == current,
                "here": own is not None and abs(point.radius - own) <= 1e-12 * max(own, 1.0),
                "mark": before is not None and before.sentence != found.sentence,
                "decisions": [("", found.lines, found.caveat)],
                "more": "",
                "worst": amount(float(worst), subject.unit),
                "mean": amount(float(mean), subject.unit),
                "otherwise": _otherwise(subject, otherwise),
            }
        )
        before = found
    return panels


def trust(panels: list[dict[str, Any]]) -> str:
    """Where the decision changes if the data are trusted less, or more: the texts of `switch` in one sentence."""
    if not panels:
        return ""
    here = next(k for k, panel in enumerate(panels) if panel["current"])
    marks = [k for k, panel in enumerate(panels) if panel["mark"]]
    radii = [panel["radius"] for panel in panels]
    if not marks:
        return f"The decision reads the same at every radius that was compared, from {radii[0]} to {radii[-1]}."
    up, down = next((k for k in marks if k > here), None), next((k for k in reversed(marks) if k <= here), None)
    more = "reads the same" if up is None else f"changes between radius {radii[up - 1]} and {radii[up]}"
    far = f" up to radius {radii[-1]}" if up is None else ""
    less = "" if down is None else f"; if they are trusted more, it changes between {radii[down]} and {radii[down - 1]}"
    return f"The decision {more}{far}{less}."


def _otherwise(subject: Subject, states: Any) -> str:
    if not states.size:
        return "The likeliest action is that of this report in every state."
    names = f": {some([subject.solution.states[int(s)] for s in states[: LISTED + 1]], LISTED)}"
    end = "" if names.endswith("…") else "."
    return f"The likeliest action differs from this report in {count(states.size, 'state')}{names}{end}"
