"""The section on the data: which kernel is true, where doubt costs most, what to measure next.

What does not apply is left out: which kernel is true of a single one, or where that takes too long;
prices of a set without a size; more rows where none are counted; all of it where model or set are
not known, and what is refused.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from drmdp import plot
from drmdp.core.compact import DENSE
from drmdp.errors import InputError
from drmdp.policies.kernel_sensitivity import sensitivity
from drmdp.radius import measure_next
from drmdp.report.facts import in_unit, table
from drmdp.report.lead import alike
from drmdp.report.rivals import LARGE, PRACTICE, SWEEPS, again
from drmdp.report.worth import NONE, Worth
from drmdp.solution import HorizonSolution
from drmdp.solution.rows import in_words
from drmdp.ui.text import amount, column

WORK = 2e10
"""Operations, a second or two: more are not spent on which kernel is true."""
TOP, NAMED = 5, 3
"""Prices in the table, and states or pairs to measure that are named."""
TRIED = 12
"""So many are solved again with the radii of more rows."""


def matter(
    subject: Worth, solution: Any, rivals: list[Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The texts of the section, by part, and its pictures; both are empty where nothing applies."""
    texts, pictures = dict[str, Any](), dict[str, Any]()
    model, ambiguity = subject.model, subject.ambiguity
    if model is None:
        return texts, pictures
    S, A = model.available.shape
    steps = len(subject.policy) if subject.policy.ndim == 3 else 0
    work = subject.n_kernels * S * S * (200.0 * steps * A if steps else max(100, 4 + 2 * A) * S)
    with suppress(InputError):
        if not subject.likely and work <= WORK and subject.singles is not None:
            _kernels(subject, solution, rivals, texts, pictures)
    size = max(steps / SWEEPS, 1) * model.n_probabilities
    if ambiguity is None or ambiguity.certain or S > DENSE or size > LARGE:
        return texts, pictures
    if not isinstance(solution, HorizonSolution) and solution.problem is None:  # it was loaded
        solution = copy(solution)
        object.__setattr__(solution, "problem", (model, ambiguity))
    with suppress(InputError):
        _prices(subject, solution, texts)
    with suppress(InputError):
        _measure(subject, solution, texts, pictures, size)
    return texts, pictures


def _kernels(subject: Worth, solution: Any, rivals: list[Any], texts: Any, pictures: Any) -> None:
    """The policy, and those it is compared with, if one of the kernels is true."""
    plan, noun, does = isinstance(solution, HorizonSolution), subject.kernels, subject.does
    policies, nominal = {f"this {subject.what}": solution}, f"the nominal {subject.what}"
    for rival in rivals:
        if not alike(subject.policy, rival.policy):
            policies[PRACTICE.lower() if rival.name == PRACTICE else nominal] = rival.policy
    model = solution.natures.stages.models if plan else subject.model
    criterion = None if plan else solution.criterion
    result = sensitivity(model, policies, criterion=criterion, progress=False)
    if not np.isfinite(result.values[:, result.weights > 0]).all():
        return

    def listed(figures: Any, link: str) -> str:
        pairs = zip(policies, figures, strict=True)
        return "; ".join(f"{name} {link} {text}" for name, text in pairs)

    used = result.weights[result.weights > 0]
    over = "" if np.ptp(used) < 1e-12 else ", by their weights"
    means = [f"{amount(mean, subject.unit)} {subject.over}".strip() for mean in result.mean]
    texts["kernels"] = [
        f"Suppose that one of the {used.size:,} {noun}s is true, and nobody knows which. "
        f"On average over them{over}: {listed(means, does)}."
    ]
    if nominal in policies:
        what = f" {nominal.capitalize()} is the one that is best if nothing is doubted."
        texts["kernels"][0] += what
    if len(policies) > 1:
        shares = [f"{100 * share:.3g} % of the {noun}s{over}" for share in result.acceptability]
        ties = f" Equally good ones share a {noun}." if (result.first % 1 > 0).any() else ""
        texts["kernels"] += [f"Best of these: {listed(shares, 'under')}.{ties}"]
    regret, less = result.regret, "less" if result.maximise else "more"
    most = np.where(result.weights > 0, regret, -1.0).argmax(axis=1)
    apart, unit = [], subject.unit
    for mean, row, i in zip(result.mean_regret, regret, most, strict=True):
        worst = f"{amount(row[i], unit)} {less} at most ({result.kernel_names[i]})"
        apart.append(f"{amount(mean, unit)} {less} on average, {worst}")
    alone = result.facts()["Actions"].replace("every kernel", f"every {noun}")
    texts["kernels"] += [
        f"Compared with what is best under the true {noun}: {listed(apart, does)}.",
        f"To know the true {noun} before deciding is on average worth at most "
        f"{amount(result.evpi, unit)} {subject.over}: no study that would tell it is worth more. "
        f"Of the actions, {alone}.",
    ]
    words = f"What each {subject.what} {does} under each {noun}"
    pictures["kernels"] = (lambda ax: plot.over_kernels(result, ax=ax), words)


def _prices(subject: Worth, solution: Any, texts: Any) -> None:
    """Where a hundredth more doubt costs most, as a table."""
    plan, what = isinstance(solution, HorizonSolution), subject.size
    price = solution.prices.sum(axis=0) if plan else solution.prices
    price, more = (-price, "fell") if what == "level" else (price, "grew")
    radii = np.where(price == 0, 0.0, subject.ambiguity.radii(subject.model))
    with np.errstate(invalid="ignore"):
        cost = np.where(radii == 0, 0.0, price * radii) / 100
    order = np.argsort(-np.abs(cost), axis=None, kind="stable")[:TOP]
    place = np.unravel_index(order[cost.ravel()[order] != 0], cost.shape)
    lists = zip((subject.model.states, subject.model.actions), place, strict=False)
    cells = [[str(known[k]) for k in at.tolist()] for known, at in lists]
    cells += [column(radii[place]), column(cost[place])]
    where = ("state alone", "state and action alone")[price.ndim - 1] + ", at every stage," * plan
    case = f"{subject.side}-case {subject.noun}"
    words = f"If the {what} of one {where} {more} by a hundredth of itself, the {case} from the "
    words += "start would change by about so much."
    header = f"change by 1 % {'less' if what == 'level' else 'more'} {what}"
    columns = [*("state", "action")[: price.ndim], what, in_unit(header, subject.unit)]
    if place[0].size:
        listed = table(list(zip(columns, cells, strict=True)))
        texts["prices"] = listed | {"names": price.ndim, "words": words}


def _measure(subject: Worth, solution: Any, texts: Any, pictures: Any, size: float) -> None:
    """Where more rows would improve the worst case most: of the places that an estimate puts first,
    solved again with the radii of more rows, if models of a `size` take no time.
    """
    model, ambiguity = subject.model, subject.ambiguity
    measurements = measure_next(model, ambiguity, solution)
    first, rows = measurements.order, measurements.rows
    shrinks = "1/n" if ambiguity.degree == 2 else "1/√n"
    solved = not subject.likely and len(first[:TRIED]) * size <= LARGE
    if solved:
        gains = np.where(np.isnan(measurements.gains), np.nan, 0.0)
        for place in map(tuple, first[:TRIED].tolist()):
            n, radii = measurements.counts[place], measurements.radii.copy()
            radii[place] *= (n / (n + rows)) ** (ambiguity.degree / 2)
            new = again(solution, model, ambiguity.with_radius(radii))
            gain = new - subject.worst if subject.more else subject.worst - new
            gains[place] = gain if gain > NONE * subject.scale else 0.0
        measurements = replace(measurements, gains=gains)
    parts = []
    for s, *pair in measurements.order[:NAMED].tolist():
        state = model.states[s]
        name = f"{model.actions[pair[0]]} when {state}" if pair else f"state {state}"
        by = f"by {amount(measurements.gains[s, *pair], subject.unit)}, " if solved else ""
        parts.append(f"{name} ({by}{in_words(measurements.counts[s, *pair])} so far)")
    if not parts:
        return
    case = f"{subject.side}-case {subject.noun}"
    text = f"The {case} from the start would improve most with {rows:,} more rows of one of these: "
    text += f"{'; '.join(parts)}. "
    taken = f"the radius is taken to shrink like {shrinks} with the number n of rows, and new "
    taken += "rows to look like those there are."
    if solved:
        tried = (
            f"Of the {TRIED} that an estimate puts first, each" if len(first) > TRIED else "Each"
        )
        text += f"{tried} was solved again with the smaller radius: {taken}"
        words = "What more rows would improve, by state and action"
        pictures["measure"] = (lambda ax: plot.measure_next(measurements, ax=ax), words)
    else:
        text += f"That order is an estimate: {taken}"
    if np.isnan(measurements.gains).any():
        text += " Of what was never tried nothing can be told."
    texts["measure"] = text
