"""What the page says: plain texts and numbers, in the user's words and sign."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

from drmdp import policies
from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.core.cached import cached_property
from drmdp.core.text import column, count, discount, every, memory, some
from drmdp.model import Model
from drmdp.plot._axes import kind
from drmdp.plot.maps import places_of
from drmdp.plot.nature import bent
from drmdp.policies.single import Singles, singles
from drmdp.radius import Path
from drmdp.report.worth import Worth
from drmdp.sets import AmbiguitySet
from drmdp.solution import Solution, choice
from drmdp.solution.rows import rows_played

ALL = 40
"""So many states are all listed; of more, this many."""
BENT = 12
MAPPED = 250_000
"""Names of more states are not searched for coordinates."""


@dataclass(frozen=True)
class Subject(Worth):
    """What a page is about; model and ball may be unknown."""

    solution: Solution
    start: Array  # start distribution, uniform if unknown
    means: Any  # value of the policy under the mean kernel, (S,); None if the model is unknown
    sweep: Path | None = None
    command: str | None = None
    rivals: list[Any] = field(default_factory=list)  # policies that it is compared with

    @classmethod
    def of(
        cls, solution: Solution, model: Model | None, ball: AmbiguitySet | None, unit: str = "", **more: Any
    ) -> Subject:
        """What there is to say of a solution."""
        S, known = len(solution.states), model is not None
        start = model.initial if known else np.full(S, 1 / S)  # type: ignore[union-attr]
        means = None if model is None else policies.under(model, solution.policy, [None])[0]
        discount = 0.0 if model is None else model.discount
        noun = "probability" if solution.criterion == "reach" else kind(model)
        over = "in one step" if known and discount == 0 else "in all"
        often = every(solution.notes if model is None else model.notes)
        rate = "per unit of time" if "sojourn" in solution.settings else often
        over = {"reach": "", "total": "until the end", "average": f"{rate} in the long run"}.get(
            solution.criterion, over
        )
        return cls(
            "" if solution.criterion == "reach" else unit, noun, "policy", solution.policy, model, ball, None if means is None else float(start @ means),
            float(start @ solution.value), solution.scale, bool(solution.settings.get("nature") == "cooperative"),
            often, over, discount,
            [(model, solution.policy)], solution, start, means, **more,
        )  # fmt: skip

    @cached_property
    def singles(self) -> Singles | None:
        """The policy under each kernel alone, if that does not take too long."""
        return None if self.model is None else singles(self.model, self.policy, self.worst)

    def rate(self, total: float) -> float | None:
        """(1 − λ) times a total: the same at every step for ever."""
        endless = (
            self.model is not None
            and self.model.discounts is None
            and 0 < self.discount < 1
            and not self.model.terminal.any()
        )
        return (1 - self.discount) * total if endless else None

    @property
    def radius(self) -> float | None:
        """The radius, if it is one number."""
        ball = self.ball
        return None if ball is None or not ball.sized or np.ndim(ball.radius) else float(ball.radius)

    @cached_property
    def seen(self) -> Any:
        """Numbers of the states visited most."""
        assert self.model is not None
        return policies.most_visited(self.model, self.solution.policy, ALL)

    @cached_property
    def spread(self) -> float | None:
        """How far the kernels are from their mean in these states, as the set measures it; None if it cannot be told."""
        if self.model is None or self.ball is None or not self.ball.sized or not self.seen.size:
            return None
        found = float(np.mean(self.ball.spread(self.model, self.seen)))
        return found if np.isfinite(found) else None

    @cached_property
    def mapped(self) -> bool:
        """Whether states are named by where they lie."""
        states = self.solution.states
        return len(states) <= MAPPED and places_of(states) is not None


def work(subject: Subject) -> dict[str, str]:
    """How the run ended and what it took."""
    solution = subject.solution
    return {
        "status": f"{solution.status}: {solution.status.sentence}",
        "certified gap": solution.gap_in_words,
        "work": f"{count(solution.n_iters, 'iteration')}, {solution.kernel_passes:.4g} kernel passes, {solution.seconds:.2g} s",
    }


def problem(subject: Subject) -> dict[str, str]:
    """The data, as a table."""
    model, solution = subject.model, subject.solution
    if model is None:
        return {
            "states": f"{len(solution.states):,}", "actions": f"{len(solution.actions):,}",
            "model": f"not at hand, fingerprint {solution.fingerprint[:16]}…",
        }  # fmt: skip
    low, high = model.cost_range
    if model.maximise:
        low, high = 0.0 - high, 0.0 - low
    by = "state, action and next state" if model.next_costs else "state and action"
    closed = int((~model.available[~model.terminal]).sum())
    weights = model.weights[model.weights > 0]
    equal = "equally weighted" if np.ptp(weights) < 1e-12 else f"weights {weights.min():.3g} to {weights.max():.3g}"
    named = "" if isinstance(model.kernel_names, range) else f": {some(model.kernel_names, 12)}"
    return {
        "states": f"{model.n_states:,}, {count(int(model.terminal.sum()), 'terminal state')}",
        "actions": f"{model.n_actions:,}, {count(closed, 'unavailable pair')}",
        f"{subject.kernels}s": f"{model.n_kernels:,}, {equal}" + named,
        f"{subject.noun}s": f"by {by}, from {low:,.6g} to {high:,.6g}",
        "discount": f"{discount(model.discount)} a step"
        if model.discounts is None
        else f"at most {discount(model.discount)} a step, one for each pair",
        "next states of a pair": f"{model.blocks.lengths[model.available.ravel()].mean():.3g} on average, over all kernels",
        "memory": f"{memory(model.nbytes)}, {'sparse' if model.is_sparse else 'dense'}",
    }


def region(subject: Subject) -> dict[str, str]:
    """The ball, and what its radius is to be read against."""
    model, ball = subject.model, subject.ball
    if ball is None:
        return {"set": str(subject.solution.settings["ball"])}
    radius = np.atleast_1d(np.asarray(ball.radius, dtype=float))
    text = f"{radius.min():g}" if np.ptp(radius) == 0 else f"{radius.min():g} to {radius.max():g}, state by state"
    facts: dict[str, str] = ({"radius": text} if ball.sized else {}) | ball.facts() | {"mass may move": ball.reach}
    if model is not None and ball.sized:
        states = subject.seen
        far = ball.saturation(model, states) if states.size else np.zeros(1)
        some = "" if states.size == int((~model.terminal).sum()) else f", in the {states.size} states visited most"
        span = (
            f"{far.min():.3g}"
            if far.max() < far.min() + 1e-9
            else f"between {far.min():.3g} and {far.max():.3g}, state by state"
        )
        if np.isfinite(far).all():
            facts["unconstrained from"] = (
                f"{span}{some}: a larger radius changes nothing, nature may do anything already"
            )
        if subject.spread is not None:
            words = f"the distance of the {subject.kernels}s from their mean, by the same rule"
            facts[f"{subject.kernels}s among themselves"] = f"{subject.spread:.3g}: {words}{some}"
    return facts


def certificate(subject: Subject) -> list[str]:
    """The proof in words."""
    solution, model = subject.solution, subject.model
    gap, noun, side = f"{solution.gap:.2g}", subject.noun, subject.side
    if model is None:
        sides = f"Its {side}-case value and the best that any policy can reach lie between the bounds above"
        better = "better"
    elif subject.helps:
        sides = (
            f"If nature helps, this policy can reach a {noun} between the bounds, and no policy one that is beyond them"
        )
        better = "higher" if model.maximise else "lower"
    elif model.maximise:
        sides = f"Over the whole set this policy {subject.does} at least the lower bound, and no policy can be sure of more than the upper bound"
        better = "higher"
    else:
        sides = f"Over the whole set this policy {subject.does} at most the upper bound, and no policy can be sure of less than the lower bound"
        better = "lower"
    first = f"{sides}. The two differ by at most {gap} in any state: no policy has a {side}-case {noun} that is {better} by more."
    return [
        first,
        "One side follows from weak duality for the policy, the other from an explicit kernel inside the set, the one shown above. Both were computed "
        "from the data again after the run, with a margin for rounding, and hold whatever the method did on the way.",
        f"Weighted by the start distribution the gap is {solution.duality_gap:.2g}. The tolerance asked for was {solution.asked}.",
    ]


def states_table(subject: Subject) -> dict[str, Any]:
    """Action, bounds and values of the states, or of those visited most."""
    solution, model, noun = subject.solution, subject.model, subject.noun
    total = len(solution.states)
    told = f"{noun} under the mean kernel" if subject.certain else f"{subject.side}-case {noun}"
    columns = ["state", "action", in_unit(told, subject.unit)]
    order = np.arange(min(total, ALL))
    share = None if model is None else policies.visits(model, solution.policy)
    if share is not None and total > ALL:
        order = np.argsort(-share, kind="stable")[:ALL]
    cells = [
        [str(solution.states[s]) for s in order.tolist()],
        [choice(solution.policy[s], solution.actions) for s in order.tolist()],
        column(solution.value[order]),
    ]
    if model is not None and not subject.certain:
        columns.append("under the mean kernel")
        cells.append(column(subject.means[order]))
    if share is not None:
        columns.append("share of time")
        cells.append([f"{part:.2%}" for part in share[order]])
    seen = None if model is None else model.pair_counts
    if seen is not None:
        columns.insert(2, "rests on rows")
        cells.insert(2, [rows_played(solution.policy[s], seen[s]) for s in order.tolist()])
    rows = [list(row) for row in zip(*cells, strict=True)]
    which = "visited most" if model is not None else "that come first"
    note = f"The {len(rows)} states {which}, of {total:,}." if total > len(rows) else ""
    return {"columns": columns, "rows": rows, "note": note}


def mixed(subject: Subject) -> str:
    """How much of the policy is random."""
    policy = subject.solution.policy
    running = policy.sum(axis=1) > 0
    random = int((policy[running].max(axis=1) < 0.995).sum())
    if not random:
        return "The policy is deterministic."
    share = f"{count(random, 'state')} of {int(running.sum()):,}"
    why = "nature moves before the draw, so mixing denies her a sure target"
    cure = "drmdp.policies.deterministic(model, ball, solution), or drmdp inspect, gives the best policy that draws nothing, and what it loses"
    return f"In {share} the policy draws its action at random: {why}. {cure}."


def bent_table(subject: Subject) -> dict[str, Any]:
    """The transitions nature changed most."""
    assert subject.model is not None
    most = bent(subject.solution, subject.model, BENT)
    rows = [
        [
            str(one.state),
            str(one.action),
            str(one.next_state),
            f"{one.nominal:.4f}",
            f"{one.worst:.4f}",
            f"{one.change:+.4f}",
        ]
        for one in most
    ]
    return {
        "columns": ["state", "action", "next state", "mean kernel", f"{subject.side} case", "change"],
        "rows": rows,
        "note": "",
    }


def radius_table(subject: Subject) -> dict[str, Any]:
    """The radius curve in numbers."""
    sweep = subject.sweep
    assert sweep is not None
    points, first = sweep.points, sweep.points[0].actions
    cells = [
        [f"{p.radius:.4g}" for p in points],
        [f"{p.fraction:.1%}" for p in points],
        column(sweep.worst),
        column(sweep.nominal),
        [f"{int((p.actions != first).sum()):,}" for p in points],
    ]
    columns = ["radius", "share of the largest", in_unit(f"{subject.side}-case {subject.noun}", subject.unit), "under the mean kernel",
               f"states that act otherwise than at {cells[0][0]}"]  # fmt: skip
    return {"columns": columns, "rows": [list(row) for row in zip(*cells, strict=True)], "note": ""}


def in_unit(words: str, unit: str) -> str:
    """What a column holds, and its unit."""
    return f"{words}, {unit}" if unit else words


def reproduce(subject: Subject) -> dict[str, str]:
    """Everything needed to do it again."""
    solution = subject.solution
    settings = {name: value for name, value in solution.settings.items() if name not in ("ball", "method")}
    given = ", ".join(f"{name}={value!r}" for name, value in settings.items() if value is not None)
    ball = str(solution.settings["ball"]).replace("order=inf", "order=math.inf")
    near = ", ".join(f"{name}={value!r}" for name, value in solution.asked.given.items())
    call = f"drmdp.solve(model, drmdp.{ball}, method={solution.settings['method']!r}, {near})"
    versions = [f"drmdp {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in ("numpy", "scipy")]
    return {
        "command": subject.command or call,
        "settings": given,
        "model": f"SHA-256 {solution.fingerprint}",
        "randomness": "none in the method: the same model and settings give the same result. Seeds that made the data belong to the data",
        "versions": ", ".join(versions) + f", {platform.system()} {platform.machine()}",
    }
