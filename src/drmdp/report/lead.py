"""What a decision maker reads first: what to do, what it is worth, what that rests on, whether another policy is better, and at which radii."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array
from drmdp.core.counts import FEW
from drmdp.core.text import amount, count, some
from drmdp.report.decision import SURE, Decision, decide
from drmdp.report.facts import Subject
from drmdp.report.worth import paragraphs
from drmdp.sets import AmbiguitySet
from drmdp.solution import reached
from drmdp.solution.results import SELDOM
from drmdp.solution.rows import in_words

SAME = 5e-4
"""Differences of less than this share of the larger amount are none."""
LISTED = 8
"""States that act otherwise are named up to so many."""


def lead(subject: Subject) -> dict[str, Any]:
    """The first screen of the page."""
    solution, model = subject.solution, subject.model
    share = None if model is None else policies.visits(model, solution.policy)
    decision = decide(solution.states, solution.actions, solution.policy, share, rows=_few(subject))
    known = None if model is None or subject.ball is None else (*model.notes, *subject.ball.remarks(model))
    return {
        "decisions": [("", decision.lines, decision.caveat)],
        "worth": paragraphs(subject),
        "against": [against(subject, rival) for rival in subject.rivals],
        "better": _better(subject),
        "good": reached(solution),
        "assumed": _assumed(subject),
        "notes": list(dict.fromkeys(solution.notes if known is None else known)),  # singles are told above
    }


def _few(subject: Subject) -> dict[int, str]:
    """On how many rows it rests what a state plays, where these are few."""
    model = subject.model
    if model is None or model.pair_counts is None:
        return {}
    played = subject.policy >= SELDOM
    least = np.where(played, model.pair_counts, np.inf).min(axis=1)
    return {int(s): in_words(float(least[s])) for s in np.flatnonzero(least < FEW)}


def against(subject: Any, rival: Any) -> str:
    """How a rival does, and what the policy, or plan, saves against it."""
    unit, sign = subject.unit, -1 if subject.more else 1
    if alike(subject.policy, rival.policy):
        return f"{rival.name} is the same {subject.what}."
    pairs = [(rival.mean, subject.mean), (rival.worst, subject.worst)][: 1 if subject.certain else 2]
    saved = [sign * (other - own) for other, own in pairs]
    if all(_none(gain, other) for gain, (other, _) in zip(saved, pairs, strict=True)):
        return f"{rival.name} does as well."
    words = [_difference(gain, other, unit, subject.noun) for gain, (other, _) in zip(saved, pairs, strict=True)]
    first = f"{rival.name} {subject.does} {amount(rival.mean, unit)} under the same mean"
    if subject.certain:
        return f"{first}: against it this {subject.what} {words[0]}."
    figure = "best case" if subject.helps else "planning figure"
    return (
        f"{first} and has the {figure} {amount(rival.worst, unit)}: against it this {subject.what} {words[0]} under that mean "
        f"and {words[1]} in the {figure}."
    )


def alike(one: Array, other: Array) -> bool:
    """Whether policies differ by nothing that matters."""
    return bool(np.abs(one - other).max() < 1 - SURE)


def _none(gain: float, size: float) -> bool:
    return abs(gain) <= SAME * abs(size)


def _difference(gain: float, size: float, unit: str, noun: str) -> str:
    """What a gain is called."""
    if _none(gain, size):
        return "makes no difference"
    share = f" ({abs(gain) / abs(size):.1%})" if size else ""
    text = f"{amount(abs(gain), unit)}{share}"
    if noun == "probability":
        return f"is {'better' if gain > 0 else 'worse'} by {text}"
    if noun == "reward":
        return f"earns {text} {'more' if gain > 0 else 'less'}"
    return f"saves {text}" if gain > 0 else f"costs {text} more"


def within(found: Any, unit: str) -> str:
    """By how much nothing is better than a result with `gap` and `scale`."""
    share = found.gap / found.scale if found.scale > 0 else 0.0
    return "by even a millionth of the largest amount" if share <= 1e-6 else f"by more than {amount(found.gap, unit)}"


def _better(subject: Subject) -> str:
    """How near to the best the policy is."""
    solution = subject.solution
    near = within(solution, subject.unit)
    figure = "value under that mean" if subject.certain else f"{subject.side} case over the set"
    first = f"No: no other policy has a better {figure} {near}, in any state. This is proved; the appendix says how."
    return first if reached(solution) else f"{first} The run ended early: {solution.status.sentence}."


def _assumed(subject: Subject) -> str:
    """What the worst case is over."""
    if subject.ball is None:
        return f"The {subject.side} case is over {subject.solution.settings['ball']}."
    if subject.certain:
        return (
            f"Nothing was considered but {subject.centre}." if subject.model is not None else "No doubt about the data."
        )
    return assumed(subject, subject.ball)


def assumed(subject: Any, ball: AmbiguitySet, when: str = "") -> str:
    """The same of a set around the kernels, if these are known; `when` is said of a plan."""
    around, model = "", subject.model
    if model is not None:
        names = "" if isinstance(model.kernel_names, range) else f" ({some(model.kernel_names, 8)})"
        around = f" around {count(model.n_kernels, subject.kernels)}{names}"
    size = f"{ball.size_words}, " if ball.sized else ""
    return f"The {subject.side} case is over what the set allows{when}{around}: {size}{ball.words}."


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
    """From which radius to which the decision stays the same: the texts of `switch` in one sentence."""
    if not panels:
        return ""
    here = next(k for k, panel in enumerate(panels) if panel["current"])
    marks = [k for k, panel in enumerate(panels) if panel["mark"]]
    radii = [panel["radius"] for panel in panels]
    if not marks:
        return f"The decision is the same at every radius that was compared, from {radii[0]} to {radii[-1]}."
    up, down = next((k for k in marks if k > here), None), next((k for k in reversed(marks) if k <= here), None)
    low, high = radii[0 if down is None else down], radii[(len(radii) if up is None else up) - 1]
    same = f"at radius {low}" if low == high else f"from radius {low} to {high}"
    others = [radii[k] for k in (None if down is None else down - 1, up) if k is not None]
    last = ", the largest that was compared" if up is None else ""
    return f"The decision is this one {same}{last}; at {' and at '.join(others)} it is another one."


def _otherwise(subject: Subject, states: Any) -> str:
    if not states.size:
        return "The likeliest action is that of this report in every state."
    names = f": {some([subject.solution.states[int(s)] for s in states[: LISTED + 1]], LISTED)}"
    end = "" if names.endswith("…") else "."
    return f"The likeliest action differs from this report in {count(states.size, 'state')}{names}{end}"
