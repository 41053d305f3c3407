"""What a policy or a plan is worth: the paragraphs of the first screen, each true of the set that was considered.

Three figures are told apart. What it costs if every step is drawn from the mean of the kernels; the *planning figure*, its certified worst case over the set;
and what it costs under each kernel alone, which the planning figure may or may not cover. At radius 0 there is no planning figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.counts import FEW
from drmdp.core.text import amount, count, discount
from drmdp.model.events import EventModel
from drmdp.policies.single import Singles, noun_of
from drmdp.report.decision import named
from drmdp.solution.rows import few_rows, in_words

NONE = 1e-7
"""A total below this share of the largest amount is what bounds and rounding make of nothing."""
LISTED = 6
"""So many pairs, or actions, are named."""


class Paragraph(NamedTuple):
    """What it is about, and what there is to say; `mark` is "warn" where the reader must not miss it."""

    head: str
    text: str
    mark: str = ""


@dataclass(frozen=True)
class Worth:
    """What is told of a policy or a plan; figures are means over the start distribution."""

    unit: str
    noun: str  # cost, reward, value or probability
    what: str  # policy or plan
    policy: Array
    model: Any  # None if it is not known; that of the first stage of a plan
    ball: Any  # None if it is not known, or stages have several
    mean: float | None  # value under the mean kernel, if that is known
    worst: float  # the certified one
    scale: float  # the largest amount
    helps: bool  # whether nature does: then what is bounded is the best case
    every: str  # how often there is a step
    over: str  # what totals are over
    discount: float
    stages: list[tuple[Any, Array]]  # models and policies of each, one if all are alike

    @property
    def singles(self) -> Singles | None:
        """What single kernels make of it, if that is known and does not take too long."""
        raise NotImplementedError

    def rate(self, total: float) -> float | None:
        """The same amount at every step that is worth as much as a total; None where there is no such thing."""
        raise NotImplementedError

    @property
    def spread(self) -> float | None:
        """How far the kernels are from their mean, as the set measures it; None if it cannot be told."""
        return None

    @property
    def side(self) -> str:
        """Which case is bounded."""
        return "best" if self.helps else "worst"

    @property
    def likely(self) -> bool:
        """Whether values are probabilities."""
        return self.noun == "probability"

    @property
    def more(self) -> bool:
        """Whether more is better."""
        return self.noun == "reward" or (self.likely and self.model is not None and bool(self.model.maximise))

    @property
    def does(self) -> str:
        """What a policy does with a value."""
        return {"reward": "earns", "probability": "has"}.get(self.noun, "costs")

    @property
    def certain(self) -> bool:
        """Whether no doubt about the data was considered."""
        return self.ball is not None and bool(self.ball.certain)

    @property
    def n_kernels(self) -> int:
        """Those that count."""
        return 0 if self.model is None else int(np.count_nonzero(self.model.weights))

    @property
    def kernels(self) -> str:
        """What the kernels are: laws of events, draws, or kernels of which nothing more is known."""
        if isinstance(self.model, EventModel):
            return "law"
        return "kernel" if self.model is None else noun_of(self.model.kernel_names)

    @property
    def centre(self) -> str:
        """What the mean is the mean of."""
        if self.n_kernels == 1:
            return f"the one {self.kernels} of the model"
        used = self.model.weights[self.model.weights > 0]
        weighted = "" if np.ptp(used) < 1e-12 else "weighted "
        return f"the {weighted}mean of the {self.n_kernels:,} {self.kernels}s"

    def amounts(self, total: float) -> tuple[str, str]:
        """An amount as it is told first, and the total if that was a rate."""
        total = total if abs(total) > NONE * self.scale else 0.0
        rate, whole = self.rate(total), f"{amount(total, self.unit)} {self.over}".strip()
        return (whole, "") if rate is None else (f"{amount(rate, self.unit)} {self.every}", whole)


def paragraphs(own: Worth) -> list[Paragraph]:
    """What it is worth, what that covers, what single kernels make of it, and what all of it rests on."""
    return [part for part in (_costs(own), _planned(own), _alone(own), _rests(own)) if part is not None]


def _costs(own: Worth) -> Paragraph | None:
    if own.mean is None:
        return None
    how = f", discounted by {discount(own.discount)} {own.every}" if 0 < own.discount < 1 else ""
    first, total = own.amounts(own.mean)
    told = f"{first} ({total}{how})" if total else f"{first}{how}{',' if how else ''}"
    head = "How likely it is." if own.likely else f"What it {own.does}."
    return Paragraph(head, f"{told} if every {_step(own)} is drawn from {own.centre}.")


def _step(own: Worth) -> str:
    return "step" if own.every.startswith("every") else own.every.split(" ", 1)[1]


def _planned(own: Worth) -> Paragraph:
    if own.certain:
        makes = "makes of it" if own.likely else f"makes it {'earn' if own.noun == 'reward' else 'cost'}"
        what = f"this is what {own.centre} {makes}, not a bound."
        return Paragraph("No doubt about the data was considered", f"({own.ball.size_words}): {what}", "warn")
    first, total = own.amounts(own.worst)
    words = (
        ("less likely", "likelier") if own.likely else ("earn less", "earn more") if own.more else ("cheaper", "dearer")
    )
    worse = f"it {words[own.more == own.helps]}"
    covered, meaning = "probabilities that the set allows make", ""
    if own.ball is not None:
        covered, meaning = own.ball.covered(own.n_kernels), own.ball.meaning
    proved = f"No {covered} {worse}, even if they are chosen anew at every visit: computed with a proof."
    means = f" That means: {meaning}." if meaning else ""
    head = f"{'At best' if own.helps else 'Plan with'} {first}"
    hope = " That is what may be hoped for, not planned with." if own.helps else ""
    return Paragraph(f"{head}{'' if total else '.'}", f"{f'({total}). ' if total else ''}{proved}{means}{hope}")


def _alone(own: Worth) -> Paragraph | None:
    """What single kernels make of it; that it was too much to find out, where it was."""
    if own.model is None or own.n_kernels < 2:
        return None
    noun, found = own.kernels, own.singles
    if found is None:
        some = f"The {own.n_kernels:,} were not judged one by one; under some of them it may do worse than all figures here."
        return Paragraph(f"Single {noun}s.", some, "warn")
    low, high = (found.worst, found.best) if found.maximise else (found.best, found.worst)
    ends = [f"{amount(float(found.values[k]), own.unit)} ({found.names[k]})" for k in (low, high)]
    used = own.model.weights[own.model.weights > 0]
    mean = amount(float(used @ found.values / used.sum()), own.unit)
    weighted = "" if np.ptp(used) < 1e-12 else "weighted "
    does = "be" if own.likely else "earn" if found.maximise else "cost"
    told = (
        f"{ends[0]} to {ends[1]}, {mean} in the {weighted}mean of them"
        if np.ptp(found.values)
        else f"{mean} under each of them"
    )
    would = f"If every {_step(own)} followed one {noun} alone, as it stands, it would {does} {told}"
    if own.helps:
        return Paragraph(f"A single {noun}.", f"{would}.")
    if not found.beyond:
        head = f"A single {noun}." if own.certain else f"That also covers each of the {own.n_kernels:,} {noun}s alone."
        return Paragraph(head, f"{would}.")
    share = f"{found.beyond:,} of {count(own.n_kernels, noun)} {'lies' if found.beyond == 1 else 'lie'}"
    share += " below" if found.maximise else " above"
    if own.certain:
        return Paragraph(f"A single {noun} may be far from it.", f"{would}; {share} the figure above.", "warn")
    cure = f" A {own.what} and a figure that cover each of them alone: Reweighting(kind='any'), or --set reweight-any."
    why = f"in place of {own.centre} nature plays what the set allows, and such a {noun}, as it stands, is outside it."
    text = f"{would}: {share} the planning figure. Why: {why}{_apart(own)}{cure if noun != 'law' else ''}"
    return Paragraph(f"It is no {'floor' if found.maximise else 'ceiling'} for a single {noun}.", text, "warn")


def _apart(own: Worth) -> str:
    """How far the kernels are from their mean, against the radius."""
    if own.spread is None or own.ball is None or np.ndim(own.ball.radius) or not own.ball.radius:
        return ""
    times = own.spread / float(own.ball.radius)
    ratio = f"{times:.2g}" if times < 10 else f"{times:,.0f}"
    return (
        f" The {own.kernels}s lie {own.spread:.3g} from their mean by the measure of the set, {ratio} times the radius."
    )


def _rests(own: Worth) -> Paragraph | None:
    """How many transitions were seen, of which pairs that are played the fewest, which were never tried, and where the process starts."""
    if own.model is None:
        return None
    models = {id(model): model for model, _ in own.stages}.values()
    parts, thin = [], False
    if all(model.pair_counts is not None for model in models):
        total = sum(float(model.pair_counts.sum()) for model in models)
        played = dict.fromkeys(pair for model, policy in own.stages for pair in few_rows(model, policy, np.inf, LISTED))
        least = sorted(played, key=lambda pair: pair.rows)
        thin = bool(least) and least[0].rows < FEW
        shown = [pair for pair in least if pair.rows < FEW][:LISTED] or least[:3]
        rests = ", ".join(f"{pair.action} when {pair.state} ({in_words(pair.rows)})" for pair in shown)
        parts.append(f"{total:,.12g} transitions. The least of what is played rests on: {rests}.")
        if len(models) == 1:
            parts += _untried(own.model)
    if own.model.start is not None:
        parts.append(f"All figures are means over the start: {own.model.start}.")
    return Paragraph("What it rests on.", " ".join(parts), "warn" if thin else "") if parts else None


def _untried(model: Any) -> list[str]:
    """Pairs that were never seen, by action: those that are left out, and those for which something was assumed."""
    never = (model.pair_counts == 0) & ~model.terminal[:, None]
    told = []
    for own, words in (
        (never & ~model.available, "Never tried, and therefore not considered"),
        (never & model.available, "Never tried, and assumed"),
    ):
        actions = np.flatnonzero(own.any(axis=0)).tolist()
        places = [f"{model.actions[a]} {named(model.states, np.flatnonzero(own[:, a]))}" for a in actions[:LISTED]]
        more = f"; {count(len(actions) - LISTED, 'more action')}" if len(actions) > LISTED else ""
        told += [f"{words}: {'; '.join(places)}{more}."] if places else []
    return told
