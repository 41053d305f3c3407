"""Radii with which sets hold the truth, from counts, or from how many draws each row is made of.

**Assumptions.** One true kernel y*; each visit of (s, a) is a fresh draw of y*(·|s,a), whoever
chose the action; the true next states are among those the set allows (`support`). No drift, no
differences between sources, no rows filled by a rule. "row" takes the numbers of draws as fixed
before, which is an approximation for logs; "log" does not.

**Statement.** δ is shared equally by what has to hold at once: the pair, with rectangular="s" the
pairs of the state, with `joint` all available pairs with two possible next states, times the N
kernels, if each has counts of its own. Then row (s, a) of y* is within r of that of kernel i by
`drmdp.sets.concentration`. Rows of the actions of a state add up to d_i by the norm (Σ r, √Σr², max
r), kernels to θ = (Σ_i w_i d_i^p)^{1/p} or max_i d_i: the tuple (y*, …, y*) is in the set, and so
is y* in the set around the mean, by convexity.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core.distributions import Labels
from drmdp.core.storage import ROW_SUM_TOL, ROW_SUM_TOL_FLOAT32, Kernels
from drmdp.core.validation import number, numbers
from drmdp.errors import InputError, Notice, first_place, shown, unexpected
from drmdp.model import Model
from drmdp.sets.base import AmbiguitySet, check_problem
from drmdp.sets.concentration import LIMITS, METHODS, Draws, l2_tuple
from drmdp.sets.norms import NORMS, stack

BEST = 'drmdp.Divergence(0, "burg", rectangular="sa", support="state")'
REFUSED = {
    "kl": "no radius around the shares of counts holds a next state that was not seen: take burg, "
    "or make the kernel (c + ½)/(n + K/2) of its counts c, of K possible next states",
    "chi2": "next states that were seen once or never break every radius from counts: take burg",
    "reweighting": "the truth is no mixture of kernels: take burg",
    "intervals": "drmdp.Intervals.from_counts makes them",
}
"""Sets for which nothing can be promised, and what to take."""


def from_counts(
    model: Model,
    ambiguity: AmbiguitySet,
    level: float = 0.95,
    method: str | None = None,
    joint: bool = False,
) -> Array:
    """Radii with which a set holds the truth with probability `level`: (S, A), for "s" (S,).

    The promise is about each pair on its own, with rectangular="s" about each state, or about all
    of them together (`joint`). It assumes that each row is made of independent draws from one
    truth, and that the truth has no next states but those that the set allows: with support
    "observed" they are counted as with "state", and a `drmdp.Notice` says where the set is smaller.
    Pairs without data get a radius with which nature can do anything.

    Parameters
    ----------
    model : Model
        One kernel, the shares of its counts; or several that each have counts of their own, or have
        the shares of all counts for a mean.
    ambiguity : set
        Its kind, order, support and rectangularity; its radius does not matter.
    level : float in (0, 1)
        Probability with which the truth shall be inside.
    method : "row", "log", "value" or "asymptotic", optional
        "row": the true row is inside, numbers of draws being fixed before. "log": whatever made the
        log end, or choose actions; for burg. "value": the worst case is no better than the truth at
        values that are fixed before, though the true row is usually outside; for burg, measured and
        not proved. "asymptotic": "row" for many draws; for burg. "log" for burg by default, else
        "row".
    joint : bool
        Whether all available pairs hold at once.

    Examples
    --------
    >>> import drmdp
    >>> counts = [[[6, 3, 1]], [[0, 40, 40]], [[90, 5, 5]]]
    >>> rows = [[[c / sum(row) for c in row] for row in rows] for rows in counts]
    >>> model = drmdp.Model(rows, costs=[[0], [1], [3]], discount=0.9, counts=counts)
    >>> feared = drmdp.Divergence(0, "burg", rectangular="sa", support="all")
    >>> drmdp.radius.from_counts(model, feared, method="value").round(3).tolist()
    [[0.3], [0.037], [0.03]]
    >>> solution = drmdp.solve(model, feared.with_radius(drmdp.radius.from_counts(model, feared)))
    """
    name, delta = _metric(model, ambiguity), 1 - checked_level("level", level)
    formula, method = _formula(ambiguity, name, method)
    check_counted(model)
    kernels, weights = _tables(model, ambiguity, name)
    if method in ("row", "log"):
        check_whole(model.labels, kernels, model.available)
    elif kernels.n_kernels > 1:
        what = f"is about one kernel of all data, and the model has {kernels.n_kernels}"
        raise InputError(f"method={method!r} {what}: estimate one kernel of all data")
    n = kernels.sums().reshape(*model.available.shape, kernels.n_kernels)
    places = _places(model, ambiguity, name)
    if not ambiguity.by_pair:
        _check_tried(model, n, places)
    return _radii(model, ambiguity, name, formula, delta, joint, n, places, weights, kernels)


def sufficient(
    model: Model, ambiguity: AmbiguitySet, counts: ArrayLike, confidence: float = 0.95
) -> Array:
    """Radii with which sets hold the truth, all at once, from numbers of draws: (S,), for "sa"
    (S, A).

    For models of which it is known how many draws each row is made of, and no more; `from_counts`
    sees what was drawn. That holds if each row is the share of next states in so many independent
    draws from one true kernel: no drift, no bootstrap, no rows that a rule filled. It needs no
    other assumption, so it is generous: the radius that does best is usually smaller.

    Parameters
    ----------
    model : Model
        Its rows are estimates.
    ambiguity : set
        Its kind, order, support and rectangularity; its radius does not matter.
    counts : number, (S, A) or (N, S, A)
        How many draws each row is made of; below 1 there are none.
    confidence : float in (0, 1)
        Probability with which the truth shall be inside.
    """
    name = _metric(model, ambiguity)
    if name == "kl":
        raise InputError(f"{ambiguity.short}: {REFUSED['kl']}, and call drmdp.radius.from_counts")
    formula, _ = _formula(ambiguity, name, "row")
    delta, n = 1 - checked_level("confidence", confidence), _numbers_of_draws(model, counts)
    used = model.weights > 0
    places, n = np.where(model.available, ambiguity.places(model), 0), n[..., used]
    return _radii(model, ambiguity, name, formula, delta, True, n, places, model.weights[used])


def check_counted(model: Model) -> None:
    """Refuse a model without counts."""
    if model._counts is None:
        cure = "drmdp.estimate keeps counts, and drmdp.Model(…, counts=…) takes them"
        raise InputError(f"model.counts is None: {cure}")


def checked_level(name: str, probability: Any) -> float:
    """A probability strictly between 0 and 1."""
    level = number(name, probability)
    if not 0 < level < 1:
        raise unexpected(name, "a number between 0 and 1", level)
    return level


def around_mean(ambiguity: AmbiguitySet) -> bool:
    """Whether it is around the mean kernel, whatever kernels have that mean."""
    around = getattr(ambiguity, "around", "")
    return ambiguity.key in (("l1", 1), ("transport", 1)) or around == "mean"


def _metric(model: Model, ambiguity: AmbiguitySet) -> str:
    """How a set measures rows, after checking that it fits the model."""
    check_problem(model, ambiguity)
    ambiguity.fitted(model)
    return str(ambiguity.key[0] if isinstance(ambiguity.key, tuple) else ambiguity.key)


def _formula(ambiguity: AmbiguitySet, name: str, method: str | None) -> tuple[Any, str]:
    """Formula of a set and the promise it makes."""
    if method is not None and (not isinstance(method, str) or method not in METHODS):
        raise InputError(f"method is {', '.join(map(repr, METHODS))}, or None, got {shown(method)}")
    known = [promise for promise, formulas in METHODS.items() if name in formulas]
    if not known:
        why = REFUSED.get(name, f"take {BEST}")
        raise InputError(f"{ambiguity.short}: no radius is known to suffice: {why}")
    chosen = ("log" if "log" in known else "row") if method is None else method
    if chosen not in known:
        what = f"{ambiguity.short} has {', '.join(map(repr, known))}"
        raise InputError(f"method={chosen!r}: {what}; or take {BEST}")
    return METHODS[chosen][name], chosen


def _tables(model: Model, ambiguity: AmbiguitySet, name: str) -> tuple[Kernels, Array]:
    """Counts behind what the set is around, and weights; refuses rows that are no shares of
    them.
    """
    counts, used = model._counts, np.flatnonzero(model.weights > 0).tolist()
    assert counts is not None
    wrong: int | None = None
    if around_mean(ambiguity) or len(used) == 1 == counts.n_kernels:
        pooled = replace(counts, n_kernels=1, data=counts.mean(np.ones(counts.n_kernels)))
        wrong = _off(model, [model.mean], pooled, name)
        if wrong is None:
            return pooled, np.ones(1)
    if counts.n_kernels == model.n_kernels > 1:
        data = counts.data[np.sort(np.concatenate([counts.positions(i) for i in used]))]
        tables = replace(counts, n_kernels=len(used), data=data)
        wrong = _off(model, [model.blocks.entries(i) for i in used], tables, name)
        if wrong is None:
            return tables, model.weights[used]
    if name == "kl":
        raise InputError(f"{ambiguity.short}: {REFUSED['kl']}")
    what = f"{ambiguity.short} is around {model.n_kernels} kernels, and counts are of all together"
    if wrong is not None:
        rule = "the row that the set is around is not the share of its counts"
        what = f"{model.labels.pair(wrong)}: {rule}"
    cure = "estimate one kernel of all data, not one for each group or draw"
    raise InputError(f"{what}: {cure}; of posterior draws, drmdp.radius.credible has radii")


def _off(model: Model, centres: list[Array], counts: Kernels, name: str) -> int | None:
    """The first available pair with a row that is not c/n, or for kl (c + ½)/(n + K/2), if any."""
    blocks, bad = model.blocks, np.zeros(model.available.size, dtype=bool)
    tol = ROW_SUM_TOL if blocks.data.dtype == np.float64 else ROW_SUM_TOL_FLOAT32
    for i, centre in enumerate(centres):
        table = counts.matrix(counts.entries(i))
        drawn = np.asarray(table.sum(axis=1)).ravel() > 0
        if name == "kl":
            table = table + blocks.matrix(np.where(centre > 0, 0.5, 0.0))
        total = np.asarray(table.sum(axis=1)).ravel()
        share = sparse.diags_array(1 / np.where(total > 0, total, 1.0)) @ table
        bad |= (abs(share - blocks.matrix(centre)).max(axis=1).toarray().ravel() > tol) & drawn
    return next(iter(first_place(bad & model.available.ravel())), None)


def _places(model: Model, ambiguity: AmbiguitySet, name: str) -> Array:
    """How many next states the truth may have, (S, A); with "observed" those of the state."""
    narrow = np.where(model.available, ambiguity.places(model), 0)
    if name == "kl" or ambiguity.support != "observed":
        return narrow
    wide = np.where(model.available, _widened(ambiguity).places(model), 0)
    if at := first_place((wide > narrow).ravel()):
        what = f"{model.labels.pair(*at)} was seen to lead to {narrow.ravel()[at]} next states"
        what += f", all actions there to {wide.ravel()[at]}"
        cure = "only with support='state' the set has them"
        warnings.warn(f"support='observed': {what}; {cure}", Notice, stacklevel=3)
    return wide


def _widened(ambiguity: Any) -> Any:
    """The set on the next states of the state, if it is on those of the pair."""
    return replace(ambiguity, support="state") if ambiguity.support == "observed" else ambiguity


def check_whole(labels: Labels, counts: Kernels, available: BoolArray) -> None:
    """Refuse counts of available pairs that are not whole numbers."""
    row = np.repeat(np.arange(counts.lengths.size), counts.n_kernels * counts.lengths)
    bad = available.ravel()[row] & (np.abs(counts.data - np.rint(counts.data)) > ROW_SUM_TOL)
    if at := first_place(bad):
        what = f"{labels.pair(int(row[at]))} has {float(counts.data[at])!r}"
        cure = "take method='value' of drmdp.radius.from_counts"
        why = "weighted or filled in, they prove nothing"
        raise InputError(f"counts: {what}, not a whole number of draws: {why}: {cure}")


def _check_tried(model: Model, n: Array, places: Array) -> None:
    """Refuse a budget for all actions of a state one of which was never tried."""
    if at := first_place(((n == 0).any(axis=2) & (places > 1)).ravel()):
        what = f"{model.labels.pair(*at)} was never tried"
        cure = "with rectangular='s' all actions share what it needs: take rectangular='sa'"
        raise InputError(f"{what}, and {cure}")


def _radii(
    model: Model,
    ambiguity: Any,
    name: str,
    formula: Any,
    delta: float,
    joint: bool,
    n: Array,
    places: Array,
    weights: Array,
    counts: Kernels | None = None,
) -> Array:
    """Radii from numbers of draws (S, A, N) and of possible next states (S, A).

    Less than one draw says nothing.
    """
    n = np.where(n >= 1, n, 0.0)
    live, N, by_pair = places > 1, weights.size, ambiguity.by_pair
    groups = live if by_pair else live.any(axis=1)  # what the statement is about
    rows = live.sum() if joint else 1 if by_pair else live.sum(axis=1)[:, None, None]
    cell = np.flatnonzero((live[..., None] & (n > 0)).ravel())
    draws = Draws(n.ravel()[cell], np.repeat(places.ravel(), N)[cell].astype(float))
    limit = LIMITS.get(name, 0.0) * live
    if name == "transport":
        limit, ends = _spans(model, ambiguity, live)
        draws = draws._replace(diameter=limit.ravel()[cell // N])
        if ambiguity.ground.kind == "line":
            draws = draws._replace(ends=ends.reshape(-1, 2)[cell // N])
    if counts is not None:
        row, count, column = _listed(counts, cell)
        coordinates = None if draws.ends is None else ambiguity.ground.data[column]
        draws = draws._replace(row=row, counts=count, places=coordinates)
    tuples = ambiguity.key == ("l2", 2) and (N > 1 or not by_pair)
    parts = 2 if tuples and counts is not None else 1
    chance = np.broadcast_to(delta / parts / np.maximum(rows * N, 1), n.shape).ravel()[cell]
    each = np.repeat(limit[..., None], N, axis=2)
    if cell.size:
        each.ravel()[cell] = np.minimum(formula(draws, chance), each.ravel()[cell])
    if not by_pair:
        each = NORMS.get(name, NORMS["l1"]).of(each, axis=1)
    radii = stack(getattr(ambiguity, "order", 1), each, weights)
    if not tuples:
        return radii
    with np.errstate(divide="ignore", invalid="ignore"):
        shares, K = np.where(live[..., None], weights / n, 0.0), np.maximum(places, 1)[..., None]
        total = delta / parts / (groups.sum() if joint else 1)
        far = l2_tuple(shares, K, total, 2 if by_pair else (1, 2))
    return np.where(groups, np.fmin(radii, far), 0.0)


def _listed(counts: Kernels, cell: Any) -> tuple[Any, Array, Any]:
    """Row, count and next state of all counts that are not 0, of some rows pair · N + kernel."""
    lengths, N = counts.lengths, counts.n_kernels
    place, column = np.full(lengths.size * N, -1), np.empty(counts.data.size, np.int64)
    place[cell] = np.arange(cell.size)
    for i in range(N):
        column[counts.positions(i)] = counts.indices
    row = np.repeat(place, np.repeat(lengths, N))
    keep = (row >= 0) & (counts.data > 0)
    return row[keep], np.asarray(counts.data[keep], float), column[keep]


def _spans(model: Model, ambiguity: Any, live: BoolArray) -> tuple[Array, Array]:
    """Largest cost of moving mass in each pair, (S, A), and ends on a line, (S, A, 2)."""
    ground, span, ends = ambiguity.ground, np.zeros(live.shape), np.zeros((*live.shape, 2))
    for s, a in np.argwhere(live).tolist():
        targets = np.flatnonzero(_widened(ambiguity).allowed(model, s, s + 1)[0, a])
        span[s, a] = ground.between(targets, targets).max()
        if not np.isfinite(span[s, a]):
            what = "ground: mass cannot move between some next states, so no radius holds the truth"
            raise InputError(f"{model.labels.pair(s * model.n_actions + a)}: {what}")
        if ground.kind == "line":
            ends[s, a] = ground.data[targets].min(), ground.data[targets].max()
    return span, ends


def _numbers_of_draws(model: Model, counts: ArrayLike) -> Array:
    """How many draws each row is made of, (S, A, N); past 2^53 fewer, which suffice all the
    more.
    """
    n = numbers("counts", counts)
    S, A, N = model.n_states, model.n_actions, model.n_kernels
    if n.shape not in ((), (S, A), (N, S, A)):
        raise InputError(f"counts: expected a number, shape {(S, A)} or {(N, S, A)}, got {n.shape}")
    full = np.where(model.available, np.broadcast_to(n, (N, S, A)), 0.0)
    if at := first_place(~np.isfinite(full) | (full < 0)):
        i, s, a = at
        what = f"{model.labels.row(s * A + a, i)} has {float(full[at])!r}"
        raise InputError(f"counts must be finite and not negative: {what}")
    return np.asarray(np.minimum(full, 2.0**53).transpose(1, 2, 0))
