"""Texts and numbers of the page, in the user's words and sign."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array, IntArray
from drmdp._version import __version__
from drmdp.core.cached import cached_property
from drmdp.core.vectors import dot
from drmdp.model.events import EventModel
from drmdp.plot._axes import kind
from drmdp.plot.maps import places_of
from drmdp.plot.nature import bent
from drmdp.policies.single_kernels import Singles, singles
from drmdp.radius import RadiusPath
from drmdp.report.worth import Worth
from drmdp.solution import Solution, choice
from drmdp.solution.results import SELDOM
from drmdp.solution.rows import rows_played
from drmdp.ui.text import column, count, discount, every, first_names, memory

ALL = 40
"""So many states are all listed; of more, this many."""
BENT = 12
MAPPED = 250_000
"""Names of more states are not searched for coordinates."""


@dataclass(frozen=True)
class Subject(Worth):
    """A solution, its model and set, which may be unknown, and what it is compared with."""

    solution: Solution
    start: Array  # start distribution, uniform if unknown
    means: Any  # value of the policy under the mean kernel, (S,); None if the model is unknown
    sweep: RadiusPath | None = None
    command: str | None = None
    rivals: list[Any] = field(default_factory=list)  # policies that it is compared with

    @classmethod
    def of(
        cls, solution: Solution, model: Any, ambiguity: Any, unit: str = "", **more: Any
    ) -> Subject:
        """The subject of a solution in a unit."""
        S, policy, reach = len(solution.states), solution.policy, solution.criterion == "reach"
        start = np.full(S, 1 / S) if model is None else model.initial
        means = None if model is None else policies.under(model, policy, [None])[0]
        often = every(solution.notes if model is None else model.notes)
        rate = "per unit of time" if "sojourn" in solution.settings else often
        phrases = {"reach": "", "total": "until the end", "average": f"{rate} in the long run"}
        once = model is not None and model.discount == 0
        if model is not None and ambiguity is not None:
            ambiguity = ambiguity.about(model, policy >= SELDOM)
        return cls(
            unit="" if reach else unit,
            noun="probability" if reach else kind(model),
            what="policy",
            policy=policy,
            model=model,
            ambiguity=ambiguity,
            mean=None if means is None else float(start @ means),
            worst=float(start @ solution.value),
            scale=solution.scale,
            helps=bool(solution.settings.get("nature") == "cooperative"),
            every=often,
            over=phrases.get(solution.criterion, "in one step" if once else "in all"),
            discount=0.0 if model is None else model.discount,
            stages=[(model, policy)],
            solution=solution,
            start=start,
            means=means,
            **more,
        )

    @cached_property
    def singles(self) -> Singles | None:
        """The policy under each kernel alone, if that does not take too long."""
        return None if self.model is None else singles(self.model, self.policy, self.worst)

    @property
    def lasts(self) -> float | None:
        """The certified bound on the expected steps, or time, from the start."""
        time = self.solution.time
        return None if time is None else dot(self.start, time)

    def rate(self, total: float) -> float | None:
        """(1 − λ) times a total: the same at every step for ever."""
        if self.model is None or self.model.discounts is not None or self.model.terminal.any():
            return None
        return (1 - self.discount) * total if 0 < self.discount < 1 else None

    @property
    def radius(self) -> float | None:
        """The radius, if it is one number."""
        known = self.ambiguity is not None and self.comparable
        return float(self.ambiguity.radius) if known else None

    @cached_property
    def visited(self) -> Any:
        """Numbers of the states visited most."""
        assert self.model is not None
        return policies.most_visited(self.model, self.solution.policy, ALL)

    @cached_property
    def spread(self) -> float | None:
        """Distance of the kernels from their mean in these states, as the set measures it, if it
        does.
        """
        if self.model is None or self.ambiguity is None or not self.ambiguity.sized:
            return None
        if not self.visited.size:
            return None
        distance = float(np.mean(self.ambiguity.spread(self.model, self.visited)))
        return distance if np.isfinite(distance) else None

    @cached_property
    def mapped(self) -> bool:
        """Whether states are named by coordinates."""
        states = self.solution.states
        return len(states) <= MAPPED and places_of(states) is not None


def work(subject: Subject) -> dict[str, str]:
    """Status, gap and work of the run."""
    solution = subject.solution
    work = f"{count(solution.n_iters, 'iteration')}, {solution.kernel_passes:.4g} kernel passes"
    return {
        "status": f"{solution.status}: {solution.status_in_words}",
        "certified gap": solution.gap_in_words,
        "work": f"{work}, {solution.seconds:.2g} s",
    }


def problem(subject: Subject) -> dict[str, str]:
    """The data, as a table."""
    model, solution = subject.model, subject.solution
    if model is None:
        return {
            "states": f"{len(solution.states):,}",
            "actions": f"{len(solution.actions):,}",
            "model": f"not at hand, fingerprint {solution.fingerprint[:16]}…",
        }
    low, high = model.price_range
    by = "state, action and next state" if model.next_costs else "state and action"
    closed = int((~model.available[~model.terminal]).sum())
    weights = model.weights[model.weights > 0]
    equal = f"weights {weights.min():.3g} to {weights.max():.3g}"
    equal = "equally weighted" if np.ptp(weights) < 1e-12 else equal
    has_names = not isinstance(model.kernel_names, range)
    named = f": {first_names(model.kernel_names, 12)}" if has_names else ""
    rate = f"{discount(model.discount)} a step"
    if isinstance(model, EventModel):  # which may have no room for its kernels
        listed = model.facts.entries / model.facts.pairs
    else:
        listed = model.blocks.lengths[model.available.ravel()].mean()
    return {
        "states": f"{model.n_states:,}, {count(int(model.terminal.sum()), 'terminal state')}",
        "actions": f"{model.n_actions:,}, {count(closed, 'unavailable pair')}",
        f"{subject.kernels}s": f"{model.n_kernels:,}, {equal}" + named,
        f"{subject.noun}s": f"by {by}, from {low:,.6g} to {high:,.6g}",
        "discount": rate if model.discounts is None else f"at most {rate}, one for each pair",
        "next states of a pair": f"{listed:.3g} on average, over all kernels",
        "memory": f"{memory(model.nbytes)}, {'sparse' if model.is_sparse else 'dense'}",
    }


def region(subject: Subject) -> dict[str, str]:
    """The set, and the scale of its radius."""
    model, ambiguity = subject.model, subject.ambiguity
    if ambiguity is None:
        return {"set": str(subject.solution.settings["ambiguity"])}
    text = ambiguity.span_text or f"{ambiguity.told.min():g}"
    facts: dict[str, str] = {subject.size: text} if ambiguity.sized else {}
    facts |= {"promise": ambiguity.promise} if ambiguity.promise else {}
    facts |= {**ambiguity.facts(), "mass may move": ambiguity.reach}
    fits = model is not None and (not isinstance(model, EventModel) or model.fits)
    if model is not None and ambiguity.sized and fits:
        states = subject.visited
        far = ambiguity.saturation(model, states) if states.size else np.zeros(1)
        all_states = states.size == int((~model.terminal).sum())
        which = "" if all_states else f", in the {states.size} states visited most"
        span = f"between {far.min():.3g} and {far.max():.3g}, state by state"
        span = f"{far.min():.3g}" if far.max() < far.min() + 1e-9 else span
        if np.isfinite(far).all():
            larger = "smaller level" if subject.size == "level" else "larger radius"
            words = f"a {larger} changes nothing, nature may do anything already"
            facts["unconstrained from"] = f"{span}{which}: {words}"
        if subject.spread is not None and subject.n_kernels > 1:
            words = f"the distance of the {subject.kernels}s from their mean, by the same rule"
            facts[f"{subject.kernels}s among themselves"] = f"{subject.spread:.3g}: {words}{which}"
    return facts


def certificate(subject: Subject) -> list[str]:
    """The proof in words."""
    solution, model = subject.solution, subject.model
    gap, noun, side, better = f"{solution.gap:.2g}", subject.noun, subject.side, "better"
    if model is not None:
        better = "higher" if model.maximise else "lower"
    if model is None:
        reach = "value and the best that any policy can reach lie between the bounds above"
        sides = f"Its {side}-case {reach}"
    elif subject.helps:
        sides = f"If nature helps, this policy can reach a {noun} between the bounds"
        sides += ", and no policy one that is beyond them"
    else:
        words = ("least the lower", "more than the upper")
        least, than = words if model.maximise else ("most the upper", "less than the lower")
        sides = f"Over the whole set this policy {subject.does} at {least} bound"
        sides += f", and no policy can be sure of {than} bound"
    differ = f"The two differ by at most {gap} in any state"
    best = f"no policy has a {side}-case {noun} that is {better} by more"
    return [
        f"{sides}. {differ}: {best}.",
        "One side follows from weak duality for the policy, the other from an explicit kernel "
        "inside the set, the one shown above. Both were computed from the data again after the "
        "run, with a margin for rounding, and hold whatever the method did on the way.",
        f"Weighted by the start distribution the gap is {solution.duality_gap:.2g}. The tolerance "
        f"asked for was {solution.asked}.",
    ]


Columns = list[tuple[str, list[str]]]
"""Names of columns and their cells."""


def table(columns: Columns, note: str = "") -> dict[str, Any]:
    """Columns of cells as rows."""
    rows = [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]
    return {"columns": [name for name, _ in columns], "rows": rows, "note": note}


def states_table(subject: Subject) -> dict[str, Any]:
    """Action, bounds and values of the states, or of those visited most."""
    solution, model, noun = subject.solution, subject.model, subject.noun
    total = len(solution.states)
    case = f"{noun} under the mean kernel" if subject.certain else f"{subject.side}-case {noun}"
    share = None if model is None else policies.visits(model, solution.policy)
    order = first_visited(total, share)
    states, policy = order.tolist(), solution.policy
    columns = [("state", [str(solution.states[s]) for s in states])]
    columns.append(("action", [choice(policy[s], solution.actions) for s in states]))
    counts = None if model is None else model.pair_counts
    if counts is not None:
        columns.append(("rests on rows", [rows_played(policy[s], counts[s]) for s in states]))
    columns.append((in_unit(case, subject.unit), column(solution.value[order])))
    if model is not None and not subject.certain:
        columns.append(("under the mean kernel", column(subject.means[order])))
    if share is not None:
        shares = [f"{part:.2%}" for part in share[order]]
        columns.append(("share of time under the mean kernel", shares))
    return table(columns, left_out(total, share))


def first_visited(total: int, share: Array | None) -> IntArray:
    """Numbers of the states that are listed: those visited most, if not all are."""
    if share is None or total <= ALL:
        return np.arange(min(total, ALL))
    return np.argsort(-share, kind="stable")[:ALL]


def left_out(total: int, share: Array | None) -> str:
    """A note on which states are listed."""
    which = "that come first" if share is None else "visited most"
    return f"The {ALL} states {which}, of {total:,}." if total > ALL else ""


def mixed(subject: Subject) -> str:
    """A sentence on the states in which the policy draws."""
    policy = subject.solution.policy
    running = policy.sum(axis=1) > 0
    random = int((policy[running].max(axis=1) < 0.995).sum())
    if not random:
        return "The policy is deterministic."
    share = f"{count(random, 'state')} of {int(running.sum()):,}"
    why = "nature moves before the draw, so mixing denies her a sure target"
    cure = "drmdp.policies.deterministic(model, ambiguity, solution)"
    best = "gives the best policy that draws nothing, and what it loses"
    where = f"In {share} the policy draws its action at random"
    return f"{where}: {why}. {cure}, or drmdp inspect without POLICY, {best}."


def bent_table(subject: Subject) -> dict[str, Any]:
    """The transitions nature changed most."""
    assert subject.model is not None
    rows = []
    for moved in bent(subject.solution, subject.model, BENT):
        place = map(str, (moved.state, moved.action, moved.next_state))
        rows.append([*place, f"{moved.nominal:.4f}", f"{moved.worst:.4f}", f"{moved.change:+.4f}"])
    columns = ["state", "action", "next state", "mean kernel", f"{subject.side} case", "change"]
    return {"columns": columns, "rows": rows, "note": ""}


def radius_table(subject: Subject) -> dict[str, Any]:
    """The radius curve in numbers."""
    sweep = subject.sweep
    assert sweep is not None
    points, first = sweep.points, sweep.points[0].actions
    radii = [f"{p.radius:.4g}" for p in points]
    largest = "share of the largest" if subject.size == "radius" else "share of the way from 1"
    columns = [(subject.size, radii), (largest, [f"{p.fraction:.1%}" for p in points])]
    case = in_unit(f"{subject.side}-case {subject.noun}", subject.unit)
    columns += [(case, column(sweep.worst)), ("under the mean kernel", column(sweep.nominal))]
    others = [f"{int((p.actions != first).sum()):,}" for p in points]
    return table([*columns, (f"states that act otherwise than at {radii[0]}", others)])


def in_unit(words: str, unit: str) -> str:
    """The name of a column, with its unit."""
    return f"{words}, {unit}" if unit else words


def reproduce(subject: Subject) -> dict[str, str]:
    """Command, settings, fingerprint and versions to repeat the run."""
    solution = subject.solution
    settings = {name: value for name, value in solution.settings.items() if value is not None}
    ambiguity, method = settings.pop("ambiguity"), settings.pop("method")
    ambiguity = str(ambiguity).replace("order=inf", "order=math.inf")
    near = ", ".join(f"{name}={value!r}" for name, value in solution.asked.given.items())
    call = f"drmdp.solve(model, drmdp.{ambiguity}, method={method!r}, {near})"
    none = "none in the method: the same model and settings give the same result"
    versions = [f"drmdp {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in ("numpy", "scipy")]
    return {
        "command": subject.command or call,
        "settings": ", ".join(f"{name}={value!r}" for name, value in settings.items()),
        "model": f"SHA-256 {solution.fingerprint}",
        "randomness": f"{none}. Seeds that made the data belong to the data",
        "versions": ", ".join(versions) + f", {platform.system()} {platform.machine()}",
    }
