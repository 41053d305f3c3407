"""Paragraphs of the first screen on the value of a policy or a plan, each true of the set that was
considered.

Three figures are told apart. What it costs if every step is drawn from the mean of the kernels; the
*planning figure*, its certified worst case over the set; and what it costs under each kernel alone,
which the planning figure may or may not cover. At radius 0 there is no planning figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.model.events import EventModel
from drmdp.policies.single_kernels import Singles, noun_of
from drmdp.report.decision_sentences import named
from drmdp.solution.rows import FEW, few_rows, in_words
from drmdp.ui.text import amount, count, discount

NONE = 1e-7
"""A total below this share of the largest amount is what bounds and rounding make of nothing."""
LISTED = 6
"""So many pairs, or actions, are named."""


class Paragraph(NamedTuple):
    """A heading and its text; `mark` is "warn" where the reader must not miss it."""

    head: str
    text: str
    mark: str = ""


@dataclass(frozen=True)
class Worth:
    """A policy or a plan and its figures, means over the start distribution."""

    unit: str
    noun: str  # cost, reward, value or probability
    what: str  # policy or plan
    policy: Array
    model: Any  # None if it is not known; that of the first stage of a plan
    ambiguity: Any  # None if it is not known, or stages have several
    mean: float | None  # value under the mean kernel, if that is known
    worst: float  # the certified one
    scale: float  # the largest amount
    helps: bool  # whether nature does: then what is bounded is the best case
    every: str  # how often there is a step
    over: str  # "in all", "until the end" or another phrase for totals
    discount: float
    stages: list[tuple[Any, Array]]  # models and policies of each, one if all are alike

    @property
    def singles(self) -> Singles | None:
        """Values under single kernels, if these are known and do not take too long."""
        raise NotImplementedError

    def rate(self, total: float) -> float | None:
        """The same amount at every step that is worth as much as a total, if there is one."""
        raise NotImplementedError

    @property
    def lasts(self) -> float | None:
        """A bound on the expected steps until the end, if it has one."""
        return None

    @property
    def spread(self) -> float | None:
        """Distance of the kernels from their mean, as the set measures it, if it does."""
        return None

    @property
    def size(self) -> str:
        """What the size of the set is called."""
        return "radius" if self.ambiguity is None else str(self.ambiguity.size_name)

    @property
    def comparable(self) -> bool:
        """Whether the set has one size, so that others can be compared with it."""
        return self.ambiguity is None or bool(
            self.ambiguity.sized and not np.ndim(self.ambiguity.radius)
        )

    @property
    def side(self) -> str:
        """The case that is bounded."""
        return "best" if self.helps else "worst"

    @property
    def likely(self) -> bool:
        """Whether values are probabilities."""
        return self.noun == "probability"

    @property
    def more(self) -> bool:
        """Whether more is better."""
        likelier = self.likely and self.model is not None and bool(self.model.maximise)
        return self.noun == "reward" or likelier

    @property
    def does(self) -> str:
        """The verb of a policy and its value."""
        return {"reward": "earns", "probability": "has"}.get(self.noun, "costs")

    @property
    def certain(self) -> bool:
        """Whether no doubt about the data was considered."""
        return self.ambiguity is not None and bool(self.ambiguity.certain)

    @property
    def n_kernels(self) -> int:
        """Number of kernels of positive weight."""
        return 0 if self.model is None else int(np.count_nonzero(self.model.weights))

    @property
    def kernels(self) -> str:
        """The noun of kernels: law, draw or kernel."""
        if isinstance(self.model, EventModel):
            return "law"
        return "kernel" if self.model is None else noun_of(self.model.kernel_names)

    @property
    def weighted(self) -> str:
        """The adjective "weighted ", if kernels differ in their weights."""
        used = self.model.weights[self.model.weights > 0]
        return "" if np.ptp(used) < 1e-12 else "weighted "

    @property
    def centre(self) -> str:
        """The mean kernel in words."""
        if self.n_kernels == 1:
            law = isinstance(self.model, EventModel)
            return "the law of the model" if law else "the probabilities of the model"
        return f"the {self.weighted}mean of the {self.n_kernels:,} {self.kernels}s"

    def amounts(self, total: float) -> tuple[str, str]:
        """A total, or a rate and the total."""
        total = total if abs(total) > NONE * self.scale else 0.0
        rate, text = self.rate(total), f"{amount(total, self.unit)} {self.over}".strip()
        return (text, "") if rate is None else (f"{amount(rate, self.unit)} {self.every}", text)


def paragraphs(subject: Worth) -> list[Paragraph]:
    """Its value, what that covers, its values under single kernels, and the data behind it."""
    parts = (part(subject) for part in (_costs, _planned, _lasts, _alone, _rests))
    return [part for part in parts if part is not None]


def _costs(subject: Worth) -> Paragraph | None:
    if subject.mean is None:
        return None
    how = ""
    if 0 < subject.discount < 1:
        how = f", discounted by {discount(subject.discount)} {subject.every}"
    first, total = subject.amounts(subject.mean)
    value = f"{first} ({total}{how})" if total else f"{first}{how}{',' if how else ''}"
    head = "How likely it is." if subject.likely else f"What it {subject.does}."
    if subject.n_kernels == 1:
        law = isinstance(subject.model, EventModel)
        return Paragraph(head, f"{value} if {subject.centre} {'is' if law else 'are'} right.")
    return Paragraph(head, f"{value} if every {_step(subject)} is drawn from {subject.centre}.")


def _step(subject: Worth) -> str:
    return "step" if subject.every.startswith("every") else subject.every.split(" ", 1)[1]


def _planned(subject: Worth) -> Paragraph:
    if subject.certain:
        makes = f"it {'earns' if subject.noun == 'reward' else 'costs'} under"
        what = f"this is what {'becomes of it under' if subject.likely else makes} {subject.centre}"
        text = f"({subject.ambiguity.size_words}): {what}, not a bound."
        return Paragraph("No doubt about the data was considered", text, "warn")
    first, total = subject.amounts(subject.worst)
    words = ("earn less", "earn more") if subject.more else ("cheaper", "dearer")
    words = ("less likely", "likelier") if subject.likely else words
    worse = f"it {words[subject.more == subject.helps]}"
    covered, meaning = "probabilities that the set allows make", ""
    if subject.ambiguity is not None:
        covered, meaning = subject.ambiguity.covered(subject.n_kernels), subject.ambiguity.meaning
    text = f"No {covered} {worse}, even if they are chosen anew at every visit"
    text += ": computed with a proof."
    text += f" That means: {meaning}." if meaning else ""
    if subject.ambiguity is not None and subject.ambiguity.promise:
        sure = re.sub(r"^radii from the counts: | \(promise '\w+'\)", "", subject.ambiguity.promise)
        text += f" How sure: {sure}; and rows count as independent draws from one truth."
    text += " That is what may be hoped for, not planned with." if subject.helps else ""
    head = f"{'At best' if subject.helps else 'Plan with'} {first}"
    return Paragraph(head, f"({total}). {text}") if total else Paragraph(f"{head}.", text)


def _lasts(subject: Worth) -> Paragraph | None:
    """When it ends at the latest, on average, if that is bounded."""
    steps = subject.lasts
    if steps is None or not np.isfinite(steps):
        return None
    timed = getattr(subject.model, "sojourn", None) is not None
    unit = "units of time" if timed else f"{_step(subject)}s"
    text = f"At most about {amount(steps)} {unit} until the end, on average, whichever "
    text += "probabilities of the set are the true ones."
    return Paragraph("How long it lasts.", text)


def _alone(subject: Worth) -> Paragraph | None:
    """Values under single kernels, or that these take too long."""
    if subject.model is None or subject.n_kernels < 2:
        return None
    noun, alone = subject.kernels, subject.singles
    if alone is None:
        text = f"The {subject.n_kernels:,} were not judged one by one"
        text += "; under some of them it may do worse than all figures here."
        return Paragraph(f"Single {noun}s.", text, "warn")
    ends = (alone.worst, alone.best) if alone.maximise else (alone.best, alone.worst)
    texts = (f"{amount(float(alone.values[k]), subject.unit)} ({alone.names[k]})" for k in ends)
    used = subject.model.weights[subject.model.weights > 0]
    mean = amount(float(used @ alone.values / used.sum()), subject.unit)
    does = "be" if subject.likely else "earn" if alone.maximise else "cost"
    values = f"{' to '.join(texts)}, {mean} in the {subject.weighted}mean of them"
    values = values if np.ptp(alone.values) else f"{mean} under each of them"
    would = f"If every {_step(subject)} followed one {noun} alone, as it stands"
    would += f", it would {does} {values}"
    if subject.helps or (subject.certain and not alone.beyond):
        return Paragraph(f"A single {noun}.", f"{would}.")
    if not alone.beyond:
        head = f"That also covers each of the {subject.n_kernels:,} {noun}s alone."
        return Paragraph(head, f"{would}.")
    share = f"{alone.beyond:,} of {count(subject.n_kernels, noun)}"
    share += f" {'lies' if alone.beyond == 1 else 'lie'} {'below' if alone.maximise else 'above'}"
    if subject.certain:
        text = f"{would}; {share} the figure above."
        return Paragraph(f"A single {noun} may be far from it.", text, "warn")
    text = f"{would}: {share} the planning figure. Why: in place of {subject.centre} nature plays "
    text += f"what the set allows, and such a {noun}, as it stands, is outside it.{_apart(subject)}"
    if noun != "law":
        text += f" A {subject.what} and a figure that cover each of them alone: "
        text += "Reweighting(kind='any'), or --set reweight-any."
    bound = "floor" if alone.maximise else "ceiling"
    return Paragraph(f"It is no {bound} for a single {noun}.", text, "warn")


def _apart(subject: Worth) -> str:
    """Distance of the kernels from their mean, against the radius."""
    ambiguity, spread = subject.ambiguity, subject.spread
    if spread is None or ambiguity is None or np.ndim(ambiguity.radius) or not ambiguity.radius:
        return ""
    times = spread / float(ambiguity.radius)
    ratio = f"{times:.2g}" if times < 10 else f"{times:,.0f}"
    measure = f"{spread:.3g} from their mean by the measure of the set"
    return f" The {subject.kernels}s lie {measure}, {ratio} times the radius."


def _rests(subject: Worth) -> Paragraph | None:
    """Numbers of observed transitions, in all and of the pairs that are played, pairs that were
    never tried, and where the process starts.
    """
    if subject.model is None:
        return None
    models = {id(model): model for model, _ in subject.stages}.values()
    parts, thin = [], False
    if all(model.pair_counts is not None for model in models):
        total = sum(float(model.pair_counts.sum()) for model in models)
        pairs = (few_rows(model, policy, np.inf, LISTED) for model, policy in subject.stages)
        least = sorted(dict.fromkeys(chain.from_iterable(pairs)), key=lambda pair: pair.rows)
        thin = bool(least) and least[0].rows < FEW
        shown = [pair for pair in least if pair.rows < FEW][:LISTED] or least[:3]
        rests = (f"{pair.action} when {pair.state} ({in_words(pair.rows)})" for pair in shown)
        listed = ", ".join(rests)
        parts.append(f"{total:,.12g} transitions. The least of what is played rests on: {listed}.")
        if len(models) == 1:
            parts += _untried(subject.model)
    if subject.model.start is not None:
        start = subject.model.start
        parts.append(f"All figures are for one process, on average over how it starts ({start}).")
    mark = "warn" if thin else ""
    return Paragraph("What it rests on.", " ".join(parts), mark) if parts else None


def _untried(model: Any) -> list[str]:
    """Pairs without observed transitions, by action: those that are left out, and those for which
    rows were assumed.
    """
    never = (model.pair_counts == 0) & ~model.terminal[:, None]
    lines = []
    for pairs, words in (
        (never & ~model.available, "Never tried, and therefore not considered"),
        (never & model.available, "Never tried, and assumed"),
    ):
        actions = np.flatnonzero(pairs.any(axis=0)).tolist()
        where = ((a, named(model.states, np.flatnonzero(pairs[:, a]))) for a in actions[:LISTED])
        places = [f"{model.actions[a]} {states}" for a, states in where]
        more = f"; {count(len(actions) - LISTED, 'more action')}" if len(actions) > LISTED else ""
        lines += [f"{words}: {'; '.join(places)}{more}."] if places else []
    return lines
