"""The page about a plan over finitely many stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from drmdp import plot
from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.core.cached import cached_property
from drmdp.core.validation import number
from drmdp.errors import InputError, described
from drmdp.io.files import AnyPath, write_whole
from drmdp.plot.maps import places_of
from drmdp.plot.plans import groups
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.single_kernels import Singles, plan_singles
from drmdp.report import page
from drmdp.report.decision_sentences import SURE, decide
from drmdp.report.facts import MAPPED, first_visited, in_unit, left_out, table
from drmdp.report.lead import PanelRow, against, assumed, panels_of, trust, within
from drmdp.report.matter import matter
from drmdp.report.rivals import LARGE, SWEEPS, mean_of, plan_rivals
from drmdp.report.worth import Worth, paragraphs
from drmdp.solution import HorizonSolution, choice, reached
from drmdp.solution.results import SELDOM
from drmdp.solution.rows import fewest_rows
from drmdp.solvers.horizon import with_models
from drmdp.ui.progress import stage
from drmdp.ui.text import column, count, discount

STEPS = 4
"""So many changes of the plan are told in sentences, and fewer if these take more than `LINES`
lines.
"""
LINES = 6
LEAST = 0.05
"""Probabilities below this are not told in sentences."""
NO_DRAWS = (
    "Where nothing may be drawn at random, rectangular='sa' (--rectangular sa) gives every action "
    "a budget of its own: the best plan then draws nothing."
)


@dataclass(frozen=True)
class PlanFacts(Worth):
    """A plan and its figures, for `worth` and `lead`."""

    plan: HorizonSolution

    @classmethod
    def of(cls, plan: HorizonSolution, unit: str) -> PlanFacts:
        """The facts of a plan in a unit."""
        stages = None if plan.natures is None else plan.natures.stages
        ambiguity = None
        if stages is not None and len(plan.settings["sets"]) == 1:
            played = (plan.policy >= SELDOM).any(axis=0)
            ambiguity = stages.sets[0].about(stages.first, played)
        return cls(
            unit=unit,
            noun=plan.noun,
            what="plan",
            policy=plan.policy,
            model=stages and stages.first,
            ambiguity=ambiguity,
            mean=mean_of(plan, plan.policy),
            worst=float(plan.initial @ plan.value[0]),
            scale=plan.scale,
            helps=bool(plan.settings["nature"] == "cooperative"),
            every="a stage",
            over=f"over {count(plan.n_stages, 'stage')}",
            discount=plan.discount,
            stages=list(zip(stages.given, plan.policy, strict=True)) if stages else [],
            plan=plan,
        )

    @cached_property
    def singles(self) -> Singles | None:
        """The plan under each kernel alone."""
        return plan_singles(self.plan)

    def rate(self, total: float) -> float | None:
        """The same at every stage, discounted alike; nothing where the process may end before, or
        with other values after the last stage.
        """
        plan, model = self.plan, self.model
        if model is None or plan.n_stages == 1 or plan.final.any() or model.terminal.any():
            return None
        return total / float((plan.discount ** np.arange(plan.n_stages)).sum())


@stage("writing the report")
def write_plan(plan: HorizonSolution, path: AnyPath, **asked: Any) -> None:
    """Write the page about a plan; `asked` are the other arguments of
    `drmdp.HorizonSolution.report`.
    """
    page.check_target(path)
    given = asked["models"], asked["ambiguity"]
    plan = plan if given == (None, None) else with_models(plan, *given)
    others = _checked(plan, asked["sweep"])
    visits = _visits(plan)
    sentences, more = decisions(plan, visits)
    subject = PlanFacts.of(plan, asked["unit"])
    panels = _panels(subject, others, sentences)
    rivals = plan_rivals(plan, asked["baseline"])
    section, drawings = matter(subject, plan, rivals)
    text = page.fill(
        "plan.html",
        page.drawn(_pictures(plan)),
        page.drawn(drawings),
        matter=section,
        title=asked["title"] or ("A robust plan" if plan.optimal else "A plan, and its worst case"),
        subject=subject,
        decisions=sentences,
        more=more,
        worths=paragraphs(subject),
        against=[against(subject, rival) for rival in rivals],
        better=_better(subject),
        good=reached(plan),
        assumed=_assumed(subject),
        table=_table(subject, visits),
        panels=panels,
        trust=trust(panels),
        radii=_radii(subject, panels),
        problem=_problem(plan),
        command=asked["command"],
        reproduce=_reproduce(plan),
    )
    write_whole(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def _checked(plan: HorizonSolution, sweep: Any) -> dict[float, HorizonSolution]:
    """Plans by radius, ascending; refuse those of other models."""
    if sweep is None:
        return {}
    if not isinstance(sweep, Mapping):
        raise InputError(f"sweep: expected a mapping of radii to plans, got {described(sweep)}")
    plans = {number("sweep: radius", radius): other for radius, other in sweep.items()}
    for radius, other in plans.items():
        if not isinstance(other, HorizonSolution):
            what = f"expected a drmdp.HorizonSolution, got {described(other)}"
            raise InputError(f"sweep: radius {radius:g}: {what}")
        if (other.fingerprints, other.policy.shape) != (plan.fingerprints, plan.policy.shape):
            raise InputError(f"sweep: radius {radius:g}: the plan is of other models or stages")
    return dict(sorted(plans.items()))


def decisions(
    plan: HorizonSolution, visits: Array | None = None
) -> tuple[list[tuple[str, list[str], str]], str]:
    """The plan in sentences, (stages, lines, exceptions), and a text on what they leave out.

    A sentence is about stages in a row at which the same actions are played in every state; how
    often is told only if that stays the same.
    """
    played = plan.policy >= np.minimum(LEAST, plan.policy.max(axis=2, keepdims=True))
    first = np.flatnonzero(np.append(True, (played[1:] != played[:-1]).any(axis=(1, 2))))
    last = np.append(first[1:], plan.n_stages) - 1
    sentences: list[tuple[str, list[str], str]] = []
    keys: dict[str, None] = {}
    for lo, hi in list(zip(first.tolist(), last.tolist(), strict=True))[:STEPS]:
        policy = plan.policy[lo : hi + 1]
        same = bool(np.ptp(policy, axis=0).max() < 0.01)
        often = None if visits is None else visits[lo : hi + 1].sum(axis=0)
        decision = decide(plan.states, plan.actions, policy[0], often, exact=same, least=LEAST)
        n_lines = sum(len(lines) for _, lines, _ in sentences) + len(decision.lines)
        if sentences and n_lines > LINES:
            break
        when = _when(plan, lo, hi)
        sentences.append((when if first.size > 1 else "", decision.lines, decision.off))
        keys |= {decision.key: None}
    more, others = [*keys], first.size - len(sentences)
    if others > 0:
        more.append(f"The plan changes {count(others, 'more time')} after that: see the map.")
    if ((plan.policy > 1 - SURE) & (plan.policy < LEAST)).any():
        rare = f"Actions that are drawn in less than {LEAST:.0%} of all cases"
        more.append(f"{rare} are not told here.")
    if (plan.policy.max(axis=2) < SURE)[plan.policy.any(axis=2)].any() and plan.optimal:
        more.append(NO_DRAWS)
    return sentences, " ".join(filter(None, more))


def _when(plan: HorizonSolution, lo: int, hi: int) -> str:
    """Stages in a row at the beginning of a sentence."""
    if plan.stage_names is None:
        return f"Stage {lo}" if lo == hi else f"Stages {lo} to {hi}"
    text = plan.stage_name(lo) if lo == hi else f"{plan.stage_name(lo)} to {plan.stage_name(hi)}"
    return text[:1].upper() + text[1:]


def _better(subject: PlanFacts) -> str:
    plan = subject.plan
    near = within(plan, subject.unit)
    figure = "value under that mean" if subject.certain else f"{subject.side} case over the set"
    where = "in any state at any stage"
    first = f"No: no other plan has a better {figure} {near}, {where}. This is proved."
    if not plan.optimal:
        first = "That was not asked: the plan was given."
        first += f" Its own {figure} is not better {near}, {where}: proved."
    return first if reached(plan) else f"{first} {plan.status}: {plan.status.sentence}."


def _assumed(subject: PlanFacts) -> str:
    plan = subject.plan
    if subject.ambiguity is not None:
        text = assumed(subject, subject.ambiguity, " at every stage")
        kinds = len(set(plan.fingerprints))
        others = "Every stage has"
        if kinds < plan.n_stages:
            others = f"{kinds} models share the stages: each has"
        return text if kinds == 1 else f"{text} {others} kernels of its own."
    models = "one model for all stages" if len(plan.fingerprints) == 1 else "a model for each stage"
    over = f"over what the set allows at every stage, around {models}"
    return f"The {subject.side} case is {over}: {plan.ambiguity_in_words}."


def _panels(
    subject: PlanFacts,
    sweep: dict[float, HorizonSolution],
    own: list[tuple[str, list[str], str]],
) -> list[dict[str, Any]]:
    """The best plan at each radius; the first that is shown is that of the page, or the one whose
    worst case is nearest to it.
    """
    plan, rows = subject.plan, list[PanelRow]()
    for radius, other in sweep.items():
        here, worst = np.array_equal(other.value, plan.value), float(plan.initial @ other.value[0])
        lines, more = decisions(other, _visits(other))
        told = lines, lines, more, _otherwise(plan, other)
        rows.append((radius, here, worst, mean_of(other, other.policy), *told))
    near = [abs(worst - subject.worst) for _, _, worst, *_ in rows]
    return panels_of(rows, int(np.argmin(near)) if near else 0, own, subject.unit)


def _otherwise(plan: HorizonSolution, other: HorizonSolution) -> str:
    differ = (plan.policy.argmax(axis=2) != other.policy.argmax(axis=2)).sum(axis=1)
    if not differ.any():
        return "The likeliest action is that of this report in every state at every stage."
    stages = np.flatnonzero(differ)
    where = plan.stage_name(stages[0])
    if stages.size > 1:
        where = f"{stages.size:,} stages, the first one {where}"
    states = count(int(differ.max()), "state")
    return f"The likeliest action differs from this report at {where}, in {states} at most."


def _radii(subject: PlanFacts, panels: list[dict[str, Any]]) -> dict[str, Any]:
    """The panels in numbers."""
    case = in_unit(f"{subject.side}-case {subject.noun}", subject.unit)
    columns = [("radius", [panel["radius"] for panel in panels])]
    columns.append((case, column(panel["bounds"][0] for panel in panels)))
    means = [panel["bounds"][1] for panel in panels]
    return table(
        columns if None in means else [*columns, ("under the mean kernels", column(means))]
    )


def _pictures(plan: HorizonSolution) -> dict[str, Any]:
    """A map of stages and states; of very many states that are places, a map of them at up to four
    stages.
    """
    first, rows = groups(plan.policy)
    if len(first) == len(rows) or len(plan.states) > MAPPED or places_of(plan.states) is None:
        return {"plan": (partial(plot.plan, plan), "Map: likeliest action by stage and state")}
    T, pictures = plan.n_stages, dict[str, Any]()
    for t in sorted({0, T // 2, T - 2, T - 1} & set(range(T))):
        words = f"Map: the likeliest action where each state lies, at {plan.stage_name(t)}"
        pictures[plan.stage_name(t)] = partial(plot.map, plan, stage=t), words
    return pictures


def _visits(plan: HorizonSolution) -> Array | None:
    """Probabilities of the states at each stage under the mean kernels, (T, S); None if they are
    not known, or very large.
    """
    if plan.natures is None:
        return None
    if plan.n_stages * plan.natures.stages.first.n_probabilities > SWEEPS * LARGE:
        return None
    now, visits = plan.initial, np.empty(plan.value[:-1].shape)
    for t, model in enumerate(plan.natures.stages.models):
        visits[t] = now = np.where(model.terminal, 0.0, now)
        now = fixed.chain(plan.policy[t], fixed.matrix_of(model, None)).T @ now
    return visits


def _table(subject: PlanFacts, visits: Array | None) -> dict[str, Any]:
    plan, share = subject.plan, None if visits is None else visits.sum(axis=0)
    stages, shown = plan._shown, first_visited(len(plan.states), share)
    states, fewest = shown.tolist(), fewest_rows(plan)
    notes = [left_out(len(plan.states), share)]
    columns = [("state", [str(plan.states[s]) for s in states])]
    for t in stages:
        played = [choice(plan.policy[t, s], plan.actions) for s in states]
        columns.append((plan.stage_name(t), played))
    if fewest:
        rests = "how many observed transitions the action that rests on the fewest of them has"
        notes.append(f"Fewest rows: {rests}, at any stage.")
        columns.append(("fewest rows", [fewest[s] for s in states]))
    columns.append((in_unit(plan.value_noun, subject.unit), column(plan.value[0, shown])))
    return table(columns, " ".join(filter(None, notes))) | {"names": 1 + len(stages)}


def _problem(plan: HorizonSolution) -> dict[str, str]:
    (T, S, A), kinds = plan.policy.shape, len(set(plan.fingerprints))
    ends = f", {plan.stage_name(0)} to {plan.stage_name(T - 1)}" if plan.stage_names else ""
    models = {T: "one for each stage", 1: "one for all stages"}.get(kinds, f"{kinds:,}")
    facts = {
        "stages": f"{T:,}{ends}",
        "states × actions": f"{S:,} × {A:,}",
        "models": models,
        "discount": f"{discount(plan.discount)} a stage",
        "what is feared": plan.ambiguity_in_words,
        f"final {plan.noun}s": f"from {plan.final.min():,.6g} to {plan.final.max():,.6g}",
    }
    if plan.half_cycle:
        facts["half-cycle correction"] = "half of each stage is spent in the state after it"
    return facts


def _reproduce(plan: HorizonSolution) -> dict[str, str]:
    first, *others = plan.fingerprints
    call = "finite_horizon" if plan.optimal else "evaluate"
    return {
        "status": f"{plan.status}: {plan.status.sentence}",
        "call": f"drmdp.{call}, backend {plan.settings['backend']}",
        "gap": plan.gap_in_words,
        "models": f"SHA-256 {first}" + (f" and {len(others)} more" if others else ""),
        "version": f"drmdp {__version__}",
    }
