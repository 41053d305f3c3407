"""The first screen: the decision, its value, the data behind it, whether another policy is better,
and at which radii.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array
from drmdp.report.decision_sentences import SURE, decide, spans
from drmdp.report.facts import Subject
from drmdp.report.worth import paragraphs
from drmdp.sets import AmbiguitySet
from drmdp.solution import reached
from drmdp.solution.results import SELDOM
from drmdp.solution.rows import FEW, in_words
from drmdp.ui.text import amount, count, first_names

SAME = 5e-4
"""Differences of less than this share of the larger amount are none."""
LISTED = 8
"""States that act otherwise are named up to so many."""


def lead(subject: Subject) -> dict[str, Any]:
    """The first screen of the page."""
    solution, model = subject.solution, subject.model
    share = None if model is None else policies.visits(model, solution.policy)
    decision = decide(solution.states, solution.actions, solution.policy, share, rows=_few(subject))
    notes = solution.notes
    if model is not None and subject.ambiguity is not None:  # single kernels have a paragraph
        notes = subject.ambiguity.notes(model)
    return {
        "decisions": [("", decision.lines, decision.caveat)],
        "worth": paragraphs(subject),
        "against": [against(subject, rival) for rival in subject.rivals],
        "better": _better(subject),
        "good": reached(solution),
        "assumed": _assumed(subject),
        "notes": list(dict.fromkeys(notes)),
    }


def _few(subject: Subject) -> dict[int, str]:
    """Fewest rows of the actions of a state, where these are few."""
    model = subject.model
    if model is None or model.pair_counts is None:
        return {}
    played = subject.policy >= SELDOM
    least = np.where(played, model.pair_counts, np.inf).min(axis=1)
    return {int(s): in_words(float(least[s])) for s in np.flatnonzero(least < FEW)}


def against(subject: Any, rival: Any) -> str:
    """A rival, and what the policy, or plan, saves against it."""
    unit, sign = subject.unit, -1 if subject.more else 1
    if alike(subject.policy, rival.policy):
        return f"{rival.name} is the same {subject.what}."
    pairs = [(rival.mean, subject.mean)]
    pairs += [] if subject.certain else [(rival.worst, subject.worst)]
    gains = [(sign * (other - value), other) for other, value in pairs]
    if all(_none(gain, other) for gain, other in gains):
        return f"{rival.name} does as well."
    words = [_difference(gain, other, unit, subject.noun) for gain, other in gains]
    first = f"{rival.name} {subject.does} {amount(rival.mean, unit)} under the same mean"
    this = f"against it this {subject.what} {words[0]}"
    if subject.certain:
        return f"{first}: {this}."
    figure = "best case" if subject.helps else "planning figure"
    first += f" and has the {figure} {amount(rival.worst, unit)}"
    return f"{first}: {this} under that mean and {words[1]} in the {figure}."


def alike(policy: Array, other: Array) -> bool:
    """Whether policies differ by nothing that matters."""
    return bool(np.abs(policy - other).max() < 1 - SURE)


def _none(gain: float, size: float) -> bool:
    return abs(gain) <= SAME * abs(size)


def _difference(gain: float, size: float, unit: str, noun: str) -> str:
    """A gain in words."""
    if _none(gain, size):
        return "makes no difference"
    share = f" ({abs(gain) / abs(size):.1%})" if size else ""
    text = f"{amount(abs(gain), unit)}{share}"
    if noun == "probability":
        return f"is {'better' if gain > 0 else 'worse'} by {text}"
    if noun == "reward":
        return f"earns {text} {'more' if gain > 0 else 'less'}"
    return f"saves {text}" if gain > 0 else f"costs {text} more"


def within(result: Any, unit: str) -> str:
    """The gap of a result with `gap` and `scale`, in words."""
    share = result.gap / result.scale if result.scale > 0 else 0.0
    if share <= 1e-6:
        return "by even a millionth of the largest amount"
    return f"by more than {amount(result.gap, unit)}"


def _better(subject: Subject) -> str:
    """A sentence on how near to the best the policy is."""
    solution = subject.solution
    near = within(solution, subject.unit)
    figure = "value under that mean" if subject.certain else f"{subject.side} case over the set"
    proof = "This is proved; the appendix says how."
    first = f"No: no other policy has a better {figure} {near}, in any state. {proof}"
    early = f" The run ended early: {solution.status.sentence}."
    return first if reached(solution) else first + early


def _assumed(subject: Subject) -> str:
    """A sentence on the set of the worst case."""
    if subject.ambiguity is None:
        return f"The {subject.side} case is over {subject.solution.settings['ambiguity']}."
    if not subject.certain:
        return assumed(subject, subject.ambiguity)
    if subject.model is None:
        return "No doubt about the data."
    return f"Nothing was considered but {subject.centre}."


def assumed(subject: Any, ambiguity: AmbiguitySet, when: str = "") -> str:
    """The same of a set around the kernels, if these are known; `when` is said of a plan."""
    around, model = "", subject.model
    if model is not None:
        several = f"{model.n_kernels:,} {subject.kernels}s"
        around = f" around {several if subject.n_kernels > 1 else subject.centre}"
        if not isinstance(model.kernel_names, range):
            around += f" ({first_names(spans(list(map(str, model.kernel_names))), 8)})"
    size = f": {ambiguity.size_words}" if ambiguity.sized else ""
    over = f"over what the set allows{when}{around}{size}"
    return f"The {subject.side} case is {over}. The appendix describes the set."


# ---------------------------------------------------------------------- along the radius


PanelRow = tuple[float, bool, float, float | None, Any, list[Any], str, str]
"""A radius, whether the page is about it, its worst case and mean; what its decision is compared
by, the sentences of it, what they leave out, and where another policy acts otherwise.
"""


def switch(subject: Subject) -> list[dict[str, Any]]:
    """The best policy at each radius of the path: texts of the panels, and which of them is this
    one.
    """
    sweep, model = subject.sweep, subject.model
    if sweep is None or model is None:
        return []
    policy, radius = subject.solution.policy, subject.radius
    share = policies.visits(model, policy)
    own = decide(model.states, model.actions, policy, share)
    current = int(np.argmin(np.abs(sweep.radii - radius))) if radius is not None else 0
    rows: list[PanelRow] = []
    for point, worst, mean in zip(sweep.points, sweep.worst, sweep.nominal, strict=True):
        near = radius is not None and abs(point.radius - radius) <= 1e-12 * max(radius, 1.0)
        played = policy if near else point.policy
        decision = own if near else decide(model.states, model.actions, played, share)
        if near and subject.mean is not None:
            worst, mean = subject.worst, subject.mean
        likeliest = ((x >= 0.5).argmax(axis=1) for x in (played, policy))
        otherwise = _otherwise(subject, np.flatnonzero(np.not_equal(*likeliest)))
        told = decision.sentence, [("", decision.lines, decision.caveat)], "", otherwise
        rows.append((point.radius, near, float(worst), float(mean), *told))
    return panels_of(rows, current, own.sentence, subject.unit)


def panels_of(rows: list[PanelRow], current: int, own: Any, unit: str) -> list[dict[str, Any]]:
    """Texts of the panels of a path: of which `current` is shown first, and `own` is the decision
    of the page.
    """
    panels: list[dict[str, Any]] = []
    for k, (radius, here, worst, mean, told, decisions, more, otherwise) in enumerate(rows):
        panels.append(
            {
                "radius": f"{radius:.3g}",
                "current": k == current,
                "here": here,
                "mark": k > 0 and told != rows[k - 1][4],
                "same": told == own,
                "decisions": decisions,
                "more": more,
                "worst": amount(worst, unit),
                "mean": "" if mean is None else amount(mean, unit),
                "bounds": (worst, mean),
                "otherwise": otherwise,
            }
        )
    return panels


def trust(panels: list[dict[str, Any]], size: str = "radius") -> str:
    """A sentence on the radii, or levels, at which the decision is that of the page, of the panels
    of `switch`.
    """
    if not panels:
        return ""
    here = next(k for k, panel in enumerate(panels) if panel["current"])
    changed = [k for k, panel in enumerate(panels) if not panel["same"]]
    sizes = [panel["radius"] for panel in panels]
    doubt = " Larger levels mean less doubt." if size == "level" else ""
    if not changed:
        same = f"The decision is the same at every {size} that was compared"
        return f"{same}, from {sizes[0]} to {sizes[-1]}.{doubt}"
    if here in changed:
        return f"At {size} {sizes[here]} the decision is another one.{doubt}"
    up = next((k for k in changed if k > here), None)
    down = next((k for k in reversed(changed) if k < here), None)
    low = sizes[0 if down is None else down + 1]
    high = sizes[(len(sizes) if up is None else up) - 1]
    same = f"at {size} {low}" if low == high else f"from {size} {low} to {high}"
    last = ", the largest that was compared" if up is None else ""
    others = " and at ".join(sizes[k] for k in (down, up) if k is not None)
    return f"The decision is this one {same}{last}; at {others} it is another one.{doubt}"


def _otherwise(subject: Subject, states: Any) -> str:
    if not states.size:
        return "The likeliest action is that of this report in every state."
    names = first_names([subject.solution.states[int(s)] for s in states[: LISTED + 1]], LISTED)
    where = f"in {count(states.size, 'state')}: {names}{'' if names.endswith('…') else '.'}"
    return f"The likeliest action differs from this report {where}"
