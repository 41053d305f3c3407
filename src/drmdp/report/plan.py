"""The page about a plan over finitely many stages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from drmdp import plot
from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.core.cached import cached_property
from drmdp.core.files import write_whole
from drmdp.core.progress import stage
from drmdp.core.text import amount, column, count, discount
from drmdp.core.validation import number
from drmdp.errors import InputError, described
from drmdp.plot.maps import places_of
from drmdp.plot.plans import groups
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.single import Singles, plan_singles
from drmdp.report import page
from drmdp.report.decision import SURE, decide
from drmdp.report.facts import MAPPED, in_unit
from drmdp.report.lead import against, assumed, trust, within
from drmdp.report.matter import matter
from drmdp.report.rivals import LARGE, SWEEPS, mean_of, plan_rivals
from drmdp.report.worth import Worth, paragraphs
from drmdp.solution import HorizonSolution, choice, reached
from drmdp.solution.rows import fewest_rows
from drmdp.solvers.horizon import with_models

STEPS = 4
"""So many changes of the plan are told in sentences, and fewer if these take more than `LINES` lines."""
LINES = 6
LEAST = 0.05
"""Probabilities below this are not told in sentences."""
ALL = 40
"""So many states are listed."""
NO_DRAWS = "Where nothing may be drawn at random, rectangular='sa' (--rectangular sa) gives every action a budget of its own: the best plan then draws nothing."


@dataclass(frozen=True)
class Told(Worth):
    """What a page about a plan says of it, in the words of `worth` and `lead`."""

    plan: HorizonSolution

    @classmethod
    def of(cls, plan: HorizonSolution, unit: str) -> Told:
        """What there is to say of a plan."""
        stages = None if plan.natures is None else plan.natures.stages
        ball = stages.balls[0] if stages is not None and len(plan.settings["balls"]) == 1 else None
        return cls(
            unit, plan.noun, "plan", plan.policy, stages and stages.first, ball, mean_of(plan, plan.policy),
            float(plan.initial @ plan.value[0]), plan.scale, bool(plan.settings["nature"] == "cooperative"), "a stage",
            f"over {count(plan.n_stages, 'stage')}", plan.discount, list(zip(stages.given, plan.policy, strict=True)) if stages else [], plan,
        )  # fmt: skip

    @cached_property
    def singles(self) -> Singles | None:
        """The plan under each kernel alone."""
        return plan_singles(self.plan)

    def rate(self, total: float) -> float | None:
        """The same at every stage, discounted alike; nothing where the process may end before, or with other values after the last stage."""
        plan = self.plan
        if self.model is None or plan.n_stages == 1 or plan.final.any() or self.model.terminal.any():
            return None
        return total / float((plan.discount ** np.arange(plan.n_stages)).sum())


@stage("writing the report")
def write_plan(
    plan: HorizonSolution,
    path: str | os.PathLike[str],
    models: Any = None,
    ball: Any = None,
    title: str | None = None,
    command: str | None = None,
    baseline: Any = None,
    unit: str = "",
    sweep: Mapping[float, HorizonSolution] | None = None,
) -> None:
    """Write the page about a plan; see `drmdp.HorizonSolution.report`."""
    page.check_target(path)
    plan = plan if models is None and ball is None else with_models(plan, models, ball)
    others = _checked(plan, sweep)
    visits = _visits(plan)
    told, more = decisions(plan, visits)
    subject = Told.of(plan, unit)
    panels = _panels(subject, others)
    rivals = plan_rivals(plan, baseline)
    section, drawings = matter(subject, plan, rivals)
    text = page.fill(
        "plan.html",
        page.drawn(_pictures(plan)),
        page.drawn(drawings),
        matter=section,
        title=title or ("A robust plan" if plan.optimal else "A plan, and its worst case"),
        noun=plan.noun,
        side=subject.side,
        decisions=told,
        more=more,
        worths=paragraphs(subject),
        against=[against(subject, rival) for rival in rivals],
        better=_better(subject),
        good=reached(plan),
        assumed=_assumed(subject),
        notes=plan.notes,
        table=_table(subject, visits),
        panels=panels,
        trust=trust(panels),
        radii=_radii(subject, panels),
        problem=_problem(plan),
        command=command,
        reproduce=_reproduce(plan),
    )
    write_whole(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def _checked(plan: HorizonSolution, sweep: Any) -> dict[float, HorizonSolution]:
    """Plans by radius, ascending; refuse those of other models."""
    if sweep is None:
        return {}
    if not isinstance(sweep, Mapping):
        raise InputError(f"sweep: expected a mapping of radii to plans, got {described(sweep)}")
    found = {number("sweep: radius", radius): other for radius, other in sweep.items()}
    for radius, other in found.items():
        if not isinstance(other, HorizonSolution):
            raise InputError(f"sweep: radius {radius:g}: expected a drmdp.HorizonSolution, got {described(other)}")
        if (other.fingerprints, other.policy.shape) != (plan.fingerprints, plan.policy.shape):
            raise InputError(f"sweep: radius {radius:g}: the plan is of other models or stages")
    return dict(sorted(found.items()))


def decisions(plan: HorizonSolution, visits: Array | None = None) -> tuple[list[tuple[str, list[str], str]], str]:
    """The plan in sentences, (stages, what to do in lines, where it is otherwise), and what they leave out.

    A sentence is about stages in a row at which the same actions are played in every state; how often is told only if that stays the same.
    """
    played = plan.policy >= np.minimum(LEAST, plan.policy.max(axis=2, keepdims=True))
    changes = (played[1:] != played[:-1]).any(axis=(1, 2))
    first = np.flatnonzero(np.append(True, changes))
    last = np.append(first[1:], plan.n_stages) - 1
    told: list[tuple[str, list[str], str]] = []
    keys: dict[str, None] = {}
    for lo, hi in list(zip(first.tolist(), last.tolist(), strict=True))[:STEPS]:
        own = plan.policy[lo : hi + 1]
        same = bool(np.ptp(own, axis=0).max() < 0.01)
        often = None if visits is None else visits[lo : hi + 1].sum(axis=0)
        found = decide(plan.states, plan.actions, own[0], often, exact=same, least=LEAST)
        if told and sum(len(lines) for _, lines, _ in told) + len(found.lines) > LINES:
            break
        when = _when(plan, lo, hi)
        told.append((when if first.size > 1 else "", found.lines, found.off))
        keys |= {found.key: None}
    left = first.size - len(told)
    more = [*keys, f"The plan changes {count(left, 'more time')} after that: see the map." if left > 0 else ""]
    if ((plan.policy > 1 - SURE) & (plan.policy < LEAST)).any():
        more.append(f"Actions that are drawn in less than {LEAST:.0%} of all cases are not told here.")
    if (plan.policy.max(axis=2) < SURE)[plan.policy.any(axis=2)].any() and plan.optimal:
        more.append(NO_DRAWS)
    return told, " ".join(filter(None, more))


def _when(plan: HorizonSolution, lo: int, hi: int) -> str:
    """Stages in a row at the beginning of a sentence."""
    if plan.stage_names is None:
        return f"Stage {lo}" if lo == hi else f"Stages {lo} to {hi}"
    text = plan.stage_name(lo) if lo == hi else f"{plan.stage_name(lo)} to {plan.stage_name(hi)}"
    return text[:1].upper() + text[1:]


def _better(subject: Told) -> str:
    plan = subject.plan
    near = within(plan, subject.unit)
    figure = "value under that mean" if subject.certain else f"{subject.side} case over the set"
    if plan.optimal:
        first = f"No: no other plan has a better {figure} {near}, in any state at any stage. This is proved."
    else:
        first = f"That was not asked: the plan was given. Its own {figure} is not better {near}, in any state at any stage: proved."
    return first if reached(plan) else f"{first} {plan.status}: {plan.status.sentence}."


def _assumed(subject: Told) -> str:
    plan = subject.plan
    if subject.ball is not None:
        found = assumed(subject, subject.ball, " at every stage")
        kinds = len(set(plan.fingerprints))
        others = "Every stage has" if kinds == plan.n_stages else f"{kinds} models share the stages: each has"
        return found if kinds == 1 else f"{found} {others} kernels of its own."
    models = "one model for all stages" if len(plan.fingerprints) == 1 else "a model for each stage"
    return f"The {subject.side} case is over what the set allows at every stage, around {models}: {plan.ball_in_words}."


def _panels(subject: Told, sweep: dict[float, HorizonSolution]) -> list[dict[str, Any]]:
    """What is best at each radius; which one is shown first is that of the page, or the one whose worst case is nearest to it."""
    plan, panels = subject.plan, []
    near = [abs(float(plan.initial @ other.value[0]) - subject.worst) for other in sweep.values()]
    before: list[tuple[str, list[str], str]] | None = None
    for k, (radius, other) in enumerate(sweep.items()):
        told, more = decisions(other, _visits(other))
        mean = mean_of(other, other.policy)
        panels.append(
            {
                "radius": f"{radius:.3g}",
                "current": k == int(np.argmin(near)),
                "here": np.array_equal(other.value, plan.value),
                "mark": before is not None and before != told,
                "decisions": told,
                "more": more,
                "worst": amount(float(plan.initial @ other.value[0]), subject.unit),
                "mean": "" if mean is None else amount(mean, subject.unit),
                "bounds": (float(plan.initial @ other.value[0]), mean),
                "otherwise": _otherwise(plan, other),
            }
        )
        before = told
    return panels


def _otherwise(plan: HorizonSolution, other: HorizonSolution) -> str:
    differ = (plan.policy.argmax(axis=2) != other.policy.argmax(axis=2)).sum(axis=1)
    if not differ.any():
        return "The likeliest action is that of this report in every state at every stage."
    stages = np.flatnonzero(differ)
    where = (
        f"at {plan.stage_name(stages[0])}"
        if stages.size == 1
        else f"at {stages.size:,} stages, the first one {plan.stage_name(stages[0])}"
    )
    return f"The likeliest action differs from this report {where}, in {count(int(differ.max()), 'state')} at most."


def _radii(subject: Told, panels: list[dict[str, Any]]) -> dict[str, Any]:
    """The panels in numbers."""
    columns = ["radius", in_unit(f"{subject.side}-case {subject.noun}", subject.unit)]
    cells = [[own["radius"] for own in panels], column(own["bounds"][0] for own in panels)]
    if all(own["bounds"][1] is not None for own in panels):
        columns.append("under the mean kernels")
        cells.append(column(own["bounds"][1] for own in panels))
    return {"columns": columns, "rows": [list(row) for row in zip(*cells, strict=True)], "note": ""}


def _pictures(plan: HorizonSolution) -> dict[str, Any]:
    """A map of stages and states; of very many states that are places, a map of them at each of some stages."""
    first, rows = groups(plan.policy)
    if len(first) == len(rows) or len(plan.states) > MAPPED or places_of(plan.states) is None:
        return {"plan": (lambda ax: plot.plan(plan, ax=ax), "Map: likeliest action by stage and state")}
    return {
        plan.stage_name(t): (
            partial(_map, plan, t),
            f"Map: the likeliest action where each state lies, at {plan.stage_name(t)}",
        )
        for t in sorted({0, plan.n_stages // 2, plan.n_stages - 2, plan.n_stages - 1} & set(range(plan.n_stages)))
    }


def _map(plan: HorizonSolution, stage: int, ax: Any) -> None:
    plot.map(plan, stage=stage, ax=ax)


def _visits(plan: HorizonSolution) -> Array | None:
    """How likely each state is at each stage under the mean kernels, (T, S); None if they are not known, or very large."""
    if plan.natures is None or plan.n_stages * plan.natures.stages.first.blocks.data.size > SWEEPS * LARGE:
        return None
    now, found = plan.initial, np.empty(plan.value[:-1].shape)
    for t, model in enumerate(plan.natures.stages.models):
        found[t] = now = np.where(model.terminal, 0.0, now)
        now = fixed.chain(plan.policy[t], fixed.matrix_of(model, None)).T @ now
    return found


def _table(subject: Told, visits: Array | None) -> dict[str, Any]:
    plan = subject.plan
    stages = sorted({0, plan.n_stages // 4, plan.n_stages // 2, 3 * plan.n_stages // 4, plan.n_stages - 1})
    S = len(plan.states)
    shown = (
        np.arange(min(S, ALL)) if S <= ALL or visits is None else np.argsort(-visits.sum(axis=0), kind="stable")[:ALL]
    )
    fewest = fewest_rows(plan)
    rows = [
        [
            str(plan.states[s]),
            *(choice(plan.policy[t, s], plan.actions) for t in stages),
            *([fewest[s]] if fewest else []),
            worth,
        ]
        for s, worth in zip(shown.tolist(), column(plan.value[0, shown]), strict=True)
    ]
    which = "that come first" if visits is None else "visited most"
    note = f"The {ALL} states {which}, of {S:,}." if S > ALL else ""
    if fewest:
        note = f"{note} Fewest rows: how many observed transitions the action that rests on the fewest of them has, at any stage.".strip()
    told = ["fewest rows"] if fewest else []
    columns = ["state", *(plan.stage_name(t) for t in stages), *told, in_unit(plan.value_noun, subject.unit)]
    return {"columns": columns, "rows": rows, "note": note, "names": 1 + len(stages)}


def _problem(plan: HorizonSolution) -> dict[str, str]:
    (T, S, A), kinds = plan.policy.shape, len(set(plan.fingerprints))
    facts = {
        "stages": f"{T:,}" if plan.stage_names is None else f"{T:,}, {plan.stage_name(0)} to {plan.stage_name(T - 1)}",
        "states × actions": f"{S:,} × {A:,}",
        "models": "one for all stages" if kinds == 1 else "one for each stage" if kinds == T else f"{kinds:,}",
        "discount": f"{discount(plan.discount)} a stage",
        "what is feared": plan.ball_in_words,
        f"final {plan.noun}s": f"from {plan.final.min():,.6g} to {plan.final.max():,.6g}",
    }
    if plan.half_cycle:
        facts["half-cycle correction"] = "half of each stage is spent in the state after it"
    return facts


def _reproduce(plan: HorizonSolution) -> dict[str, str]:
    prints = plan.fingerprints
    return {
        "status": f"{plan.status}: {plan.status.sentence}",
        "call": f"drmdp.{'finite_horizon' if plan.optimal else 'evaluate'}, backend {plan.settings['backend']}",
        "gap": plan.gap_in_words,
        "models": f"SHA-256 {prints[0]}" + ("" if len(prints) == 1 else f" and {len(prints) - 1} more"),
        "version": f"drmdp {__version__}",
    }
