"""How much the data matter: which kernel is true, where doubt costs most, what to measure next.

What does not apply is left out: which kernel is true of a single one, or where that takes too long;
prices of a set without a size; more rows where none are counted; all of it where model or set are
not known, and what is refused.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import Any

import numpy as np

from drmdp import plot
from drmdp.core.compact import DENSE
from drmdp.core.text import amount, column
from drmdp.errors import InputError
from drmdp.policies.sensitivity import sensitivity
from drmdp.radius import measure_next
from drmdp.report.facts import in_unit
from drmdp.report.lead import alike
from drmdp.report.rivals import LARGE, PRACTICE, SWEEPS
from drmdp.report.worth import Worth
from drmdp.solution import HorizonSolution
from drmdp.solution.rows import in_words

WORK = 2e10
"""Operations, a second or two: more are not spent on which kernel is true."""
TOP, NAMED = 5, 3
"""Prices in the table, and states or pairs to measure that are named."""


def matter(own: Worth, solution: Any, rivals: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the section says, by part, and its pictures; both are empty where nothing applies."""
    told, pictures, model, ball = dict[str, Any](), dict[str, Any](), own.model, own.ball
    if model is None:
        return told, pictures
    S, A = model.available.shape
    steps = len(own.policy) if own.policy.ndim == 3 else 0
    work = own.n_kernels * S * S * (200.0 * steps * A if steps else max(100, 4 + 2 * A) * S)
    with suppress(InputError):
        if not own.likely and work <= WORK and own.singles is not None:
            _kernels(own, solution, rivals, told, pictures)
    size = max(steps / SWEEPS, 1) * model.blocks.data.size
    if ball is None or ball.certain or S > DENSE or size > LARGE:
        return told, pictures
    if not isinstance(solution, HorizonSolution) and solution.problem is None:  # it was loaded
        solution = copy(solution)
        object.__setattr__(solution, "problem", (model, ball))
    with suppress(InputError):
        _prices(own, solution, told)
    with suppress(InputError):
        _measure(own, solution, told, pictures)
    return told, pictures


def _kernels(own: Worth, solution: Any, rivals: list[Any], told: Any, pictures: Any) -> None:
    """The policy, and those it is compared with, if one of the kernels is true."""
    plan, noun, does = isinstance(solution, HorizonSolution), own.kernels, own.does
    given, nominal = {f"this {own.what}": solution}, f"the nominal {own.what}"
    for rival in rivals:
        if not alike(own.policy, rival.policy):
            given[PRACTICE.lower() if rival.name == PRACTICE else nominal] = rival.policy
    model = solution.natures.stages.models if plan else own.model
    criterion = None if plan else solution.criterion
    result = sensitivity(model, given, criterion=criterion, progress=False)
    if not np.isfinite(result.values[:, result.weights > 0]).all():
        return

    def listed(figures: Any, link: str) -> str:
        pairs = zip(given, figures, strict=True)
        return "; ".join(f"{name} {link} {text}" for name, text in pairs)

    used = result.weights[result.weights > 0]
    over = "" if np.ptp(used) < 1e-12 else ", by their weights"
    means = [f"{amount(mean, own.unit)} {own.over}".strip() for mean in result.mean]
    told["kernels"] = [
        f"Suppose that one of the {used.size:,} {noun}s is true, and nobody knows which. "
        f"On average over them{over}: {listed(means, does)}."
    ]
    if nominal in given:
        what = f" {nominal.capitalize()} is the one that is best if nothing is doubted."
        told["kernels"][0] += what
    if len(given) > 1:
        shares = [f"{100 * share:.3g} % of the {noun}s{over}" for share in result.acceptability]
        ties = f" Equally good ones share a {noun}." if (result.first % 1 > 0).any() else ""
        told["kernels"] += [f"Best of these: {listed(shares, 'under')}.{ties}"]
    regret, less = result.regret, "less" if result.maximise else "more"
    most = np.where(result.weights > 0, regret, -1.0).argmax(axis=1)
    apart = [
        f"{amount(mean, own.unit)} {less} on average, {amount(row[i], own.unit)} {less} at most "
        f"({result.kernel_names[i]})"
        for mean, row, i in zip(result.mean_regret, regret, most, strict=True)
    ]
    alone = result.facts()["Actions"].replace("every kernel", f"every {noun}")
    told["kernels"] += [
        f"Compared with what is best under the true {noun}: {listed(apart, does)}.",
        f"To know the true {noun} before deciding is on average worth at most "
        f"{amount(result.evpi, own.unit)} {own.over}: no study that would tell it is worth more. "
        f"Of the actions, {alone}.",
    ]
    words = f"What each {own.what} {does} under each {noun}"
    pictures["kernels"] = (lambda ax: plot.over_kernels(result, ax=ax), words)


def _prices(own: Worth, solution: Any, told: Any) -> None:
    """The highest prices of doubt as a table."""
    plan, level = isinstance(solution, HorizonSolution), getattr(own.ball, "level", None)
    price = solution.prices.sum(axis=0) if plan else solution.prices
    price, what, more = (price, "radius", "grew") if level is None else (-price, "level", "fell")
    order = np.argsort(-np.abs(price), axis=None, kind="stable")[:TOP]
    place = np.unravel_index(order[price.ravel()[order] != 0], price.shape)
    lists = zip((own.model.states, own.model.actions), place, strict=False)
    cells = [[str(known[k]) for k in at.tolist()] for known, at in lists]
    numbers = (column(own.ball.radii(own.model)[place]), column(price[place]))
    cells += [[text.replace("inf", "∞") for text in texts] for texts in numbers]
    where = ("state alone", "state and action alone")[price.ndim - 1] + ", at every stage," * plan
    words = f"If the {what} of one {where} {more} a little, the {own.side}-case {own.noun} from "
    words += f"the start would change by so much per unit of {what}, its price of doubt."
    columns = [*("state", "action")[: price.ndim], what, in_unit("price of doubt", own.unit)]
    if place[0].size:
        rows = [list(row) for row in zip(*cells, strict=True)]
        told["prices"] = {"columns": columns, "rows": rows, "names": price.ndim, "words": words}


def _measure(own: Worth, solution: Any, told: Any, pictures: Any) -> None:
    """Where more rows would improve the worst case most."""
    model, found = own.model, measure_next(own.model, own.ball, solution)
    parts = []
    for s, *pair in found.order[:NAMED].tolist():
        state = model.states[s]
        name = f"{model.actions[pair[0]]} when {state}" if pair else f"state {state}"
        gain, rows = found.gains[s, *pair], found.counts[s, *pair]
        parts.append(f"{name}, by about {amount(gain, own.unit)} ({in_words(rows)} so far)")
    if parts:
        shrinks = "1/n" if own.ball.degree == 2 else "1/√n"
        told["measure"] = (
            f"The {own.side}-case {own.noun} from the start would improve most with {found.rows:,} "
            f"more rows of one of these: {'; '.join(parts)}. That is an estimate: the radius is "
            f"taken to shrink like {shrinks} with the number n of rows, and new rows to look like "
            "those there are."
        )
        if np.isnan(found.gains).any():
            told["measure"] += " Of what was never tried nothing can be told."
        words = "What more rows would improve, by state and action"
        pictures["measure"] = (lambda ax: plot.measure_next(found, ax=ax), words)
