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
from drmdp.core.storage import ROW_SUM_TOL, ROW_SUM_TOL_FLOAT32, Kernels
from drmdp.core.validation import number, numbers
from drmdp.errors import InputError, Notice, shown
from drmdp.model import Model
from drmdp.sets.base import AmbiguitySet, check_problem
from drmdp.sets.concentration import LIMITS, METHODS, Draws, l2_tuple
from drmdp.sets.norms import NORMS, stack

BEST = 'drmdp.Divergence(0, "burg", rectangular="sa", support="state")'
REFUSED = {
    "kl": "no radius around the shares of counts holds a next state that was not seen: take burg, or "
    "make the kernel (c + ½)/(n + K/2) of its counts c, of K possible next states",
    "chi2": "next states that were seen once or never break every radius from counts: take burg",
    "reweighting": "the truth is no mixture of kernels: take burg",
    "intervals": "drmdp.Intervals.from_counts makes them",
}
"""Sets for which nothing can be promised, and what to take."""


def from_counts(
    model: Model, ambiguity: AmbiguitySet, level: float = 0.95, method: str | None = None, joint: bool = False
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
    check_problem(model, ambiguity)
    delta, name = 1 - checked_level("level", level), _metric(ambiguity)
    formula, method = _formula(ambiguity, name, method)
    if model._counts is None:
        raise InputError("model.counts is None: drmdp.estimate keeps counts, and drmdp.Model(…, counts=…) takes them")
    kernels, weights = _tables(model, ambiguity, name)
    if kernels.n_kernels > 1 and method in ("value", "asymptotic"):
        raise InputError(
            f"method={method!r} is about one kernel of all data, and the model has {kernels.n_kernels}: estimate without `by`"
        )
    n = kernels.sums().reshape(*model.available.shape, kernels.n_kernels)
    places = _places(model, ambiguity, name)
    if method in ("row", "log"):
        _check_whole(model, kernels)
    if not ambiguity.by_pair:
        _check_tried(model, n, places)
    return _radii(model, ambiguity, name, formula, delta, joint, n, places, weights, kernels)


def sufficient(model: Model, ball: AmbiguitySet, counts: ArrayLike, confidence: float = 0.95) -> Array:
    """Radii of balls that hold the truth, all at once, from numbers of draws: (S,), for "sa" (S, A).

    For models of which it is known how many draws each row is made of, and no more; `from_counts`
    sees what was drawn. That holds if each row is the share of next states in so many independent
    draws from one true kernel: no drift, no bootstrap, no rows that a rule filled. It needs no
    other assumption, so it is generous: the radius that does best is usually smaller.

    Parameters
    ----------
    model : Model
        Its rows are estimates.
    ball : set
        Its kind, order, support and rectangularity; its radius does not matter.
    counts : number, (S, A) or (N, S, A)
        How many draws each row is made of.
    confidence : float in (0, 1)
        Probability with which the truth shall be inside.
    """
    check_problem(model, ball)
    name = _metric(ball)
    if name == "kl":
        raise InputError(f"{ball.short}: {REFUSED['kl']}, and call drmdp.radius.from_counts")
    formula, _ = _formula(ball, name, "row")
    delta, n = 1 - checked_level("confidence", confidence), _numbers_of_draws(model, counts)
    used = model.weights > 0
    places = np.where(model.available, ball.places(model), 0)
    return _radii(model, ball, name, formula, delta, True, n[..., used], places, model.weights[used])


def checked_level(name: str, given: Any) -> float:
    """A probability strictly between 0 and 1."""
    level = number(name, given)
    if not 0 < level < 1:
        raise InputError(f"{name}: expected a number between 0 and 1, got {level!r}")
    return level


def around_mean(ambiguity: AmbiguitySet) -> bool:
    """Whether it is around the mean kernel, whatever kernels have that mean."""
    return ambiguity.key in (("l1", 1), ("transport", 1)) or getattr(ambiguity, "around", "") == "mean"


def _metric(ambiguity: AmbiguitySet) -> str:
    """How it measures rows."""
    key = ambiguity.key
    return str(key[0] if isinstance(key, tuple) else key)


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
        raise InputError(f"method={chosen!r}: {ambiguity.short} has {', '.join(map(repr, known))}; or take {BEST}")
    return METHODS[chosen][name], chosen


def _tables(model: Model, ambiguity: AmbiguitySet, name: str) -> tuple[Kernels, Array]:
    """Counts behind what the set is around, and weights; refuses rows that are no shares of them."""
    counts, used = model._counts, np.flatnonzero(model.weights > 0)
    assert counts is not None
    pseudo = 0.5 if name == "kl" else 0.0
    mean, wrong = around_mean(ambiguity), None
    if mean or used.size == 1 == counts.n_kernels:
        pooled = replace(counts, n_kernels=1, data=counts.mean(np.ones(counts.n_kernels)))
        wrong = _off(model, model.mean, pooled, pseudo)
        if wrong is None:
            return pooled, np.ones(1)
    if counts.n_kernels == model.n_kernels and (not mean or model.n_kernels > 1):
        tables = [replace(counts, n_kernels=1, data=counts.entries(i)) for i in used.tolist()]
        off = (
            _off(model, model.blocks.entries(i), table, pseudo) for i, table in zip(used.tolist(), tables, strict=True)
        )
        wrong = next((place for place in off if place is not None), None)
        if wrong is None:
            data = np.concatenate([counts.data[counts.positions(i)] for i in used.tolist()])
            rows = np.concatenate([np.repeat(np.arange(counts.lengths.size), counts.lengths)] * used.size)
            order = np.argsort(rows, kind="stable")
            return replace(counts, n_kernels=used.size, data=data[order]), model.weights[used]
    if name == "kl":
        raise InputError(f"{ambiguity.short}: {REFUSED['kl']}")
    cure = "estimate one kernel of all data, without `by`; for posterior draws take drmdp.radius.credible"
    if wrong is None:
        raise InputError(
            f"{ambiguity.short} is around {model.n_kernels} kernels, and counts are of all together: {cure}"
        )
    s, a = divmod(wrong, model.n_actions)
    where = f"state {model.states[s]!r}, action {model.actions[a]!r}"
    raise InputError(f"{where}: the row that the set is around is not the share of its counts: {cure}")


def _off(model: Model, centre: Array, counts: Kernels, pseudo: float) -> int | None:
    """The first available pair whose row is not (c + pseudo)/(n + pseudo · K), if any."""
    seen = counts.matrix(counts.data) + pseudo * model.blocks.matrix((centre > 0).astype(float))
    total = np.asarray(seen.sum(axis=1)).ravel()
    share = sparse.diags_array(1 / np.where(total > 0, total, 1.0)) @ seen
    apart = abs(share - model.blocks.matrix(centre)).max(axis=1).toarray().ravel()
    tol = ROW_SUM_TOL if model.blocks.data.dtype == np.float64 else ROW_SUM_TOL_FLOAT32
    bad = (apart > tol) & model.available.ravel() & (counts.sums() > 0)
    return int(np.argmax(bad)) if bad.any() else None


def _places(model: Model, ambiguity: AmbiguitySet, name: str) -> Array:
    """How many next states the truth may have, (S, A); those of the state for what was seen only."""
    seen = np.where(model.available, ambiguity.places(model), 0)
    if name == "kl" or ambiguity.support != "observed":
        return seen
    wide = np.where(model.available, replace(ambiguity, support="state").places(model), 0)  # type: ignore[type-var]
    if (wide > seen).any():
        s, a = np.argwhere(wide > seen)[0].tolist()
        pair = f"action {model.actions[a]!r} in state {model.states[s]!r}"
        what = f"{pair} was seen to lead to {seen[s, a]} next states, all actions there to {wide[s, a]}"
        warnings.warn(f"support='observed': {what}; only with support='state' the set has them", Notice, stacklevel=3)
    return wide


def _check_whole(model: Model, counts: Kernels) -> None:
    """Refuse counts of available pairs that are not whole numbers."""
    row = np.repeat(np.arange(counts.lengths.size), counts.n_kernels * counts.lengths)
    bad = model.available.ravel()[row] & (np.abs(counts.data - np.rint(counts.data)) > ROW_SUM_TOL)
    if bad.any():
        s, a = divmod(int(row[np.argmax(bad)]), model.n_actions)
        where = f"state {model.states[s]!r}, action {model.actions[a]!r}"
        cure = "they were weighted, or filled in, and nothing can be proved of them: take method='value'"
        raise InputError(
            f"counts: {where} has {float(counts.data[np.argmax(bad)])!r}, not a whole number of draws: {cure}"
        )


def _check_tried(model: Model, n: Array, places: Array) -> None:
    """Refuse a budget for all actions of a state one of which was never tried."""
    never = (n == 0).any(axis=2) & (places > 1)
    if never.any():
        s, a = np.argwhere(never)[0].tolist()
        what = f"action {model.actions[a]!r} was never tried in state {model.states[s]!r}"
        raise InputError(f"{what}, and with rectangular='s' all actions share what it needs: take rectangular='sa'")


def _radii(
    model: Model, ambiguity: AmbiguitySet, name: str, formula: Any, delta: float, joint: bool,
    n: Array, places: Array, weights: Array, counts: Kernels | None = None,
) -> Array:  # fmt: skip
    """Radii from numbers of draws (S, A, N) and of possible next states (S, A)."""
    live = places > 1
    rows = np.full(live.shape, live.sum()) if joint else live.sum(axis=1, keepdims=True)
    if ambiguity.by_pair and not joint:
        rows = np.ones(live.shape)
    share = np.broadcast_to((delta / np.maximum(rows * weights.size, 1))[..., None], n.shape)
    cell = np.flatnonzero((live[..., None] & (n > 0)).ravel())
    draws = Draws(n.ravel()[cell], np.repeat(places.ravel(), weights.size)[cell].astype(float))
    listed = None if counts is None else _listed(draws, counts, cell)
    limit = LIMITS.get(name, 0.0) * live
    if name == "transport":
        limit, ends = _spans(model, ambiguity, live)
        pair = cell // weights.size
        draws = draws._replace(diameter=limit.ravel()[pair], ends=None if ends is None else ends.reshape(-1, 2)[pair])
    if listed is not None:
        row, count, column = listed
        line = name == "transport" and draws.ends is not None
        at = ambiguity.ground.data[column] if line else None  # type: ignore[attr-defined]
        draws = draws._replace(row=row, counts=count, places=at)
    each = np.repeat(limit[..., None], weights.size, axis=2)
    split = ambiguity.key == ("l2", 2) and (weights.size > 1 or not ambiguity.by_pair)
    halved = share.ravel()[cell] / (2 if split and counts is not None else 1)
    if cell.size:
        each.ravel()[cell] = np.minimum(formula(draws, halved), each.ravel()[cell])
    order = getattr(ambiguity, "order", 1)
    if not ambiguity.by_pair:
        each = NORMS.get(name, NORMS["l1"]).of(each, axis=1)
    radii = stack(order, each, weights)
    if not split:
        return radii
    axis: Any = 2 if ambiguity.by_pair else (1, 2)  # what the statement about tuples is about
    groups = live if ambiguity.by_pair else live.any(axis=1)
    chance = delta / (groups.sum() if joint else 1) / (1 if counts is None else 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        tuples = l2_tuple(np.where(live[..., None], weights / n, 0.0), np.maximum(places, 1)[..., None], chance, axis)
    return np.where(groups, np.fmin(radii, tuples), 0.0)


def _listed(draws: Draws, counts: Kernels, cell: Any) -> tuple[Any, Array, Any]:
    """Row, count and next state of all counts that are not 0, of some rows pair · N + kernel."""
    of = np.repeat(np.arange(counts.lengths.size * counts.n_kernels), np.repeat(counts.lengths, counts.n_kernels))
    column = np.empty(of.size, np.int64)
    for i in range(counts.n_kernels):
        column[counts.positions(i)] = counts.indices
    place = np.full(counts.lengths.size * counts.n_kernels, -1)
    place[cell] = np.arange(cell.size)
    keep = (place[of] >= 0) & (counts.data > 0)
    return place[of][keep], np.asarray(counts.data[keep], float), column[keep]


def _spans(model: Model, ambiguity: Any, live: BoolArray) -> tuple[Array, Array | None]:
    """Largest cost of moving mass in each pair, (S, A), and ends on a line, (S, A, 2)."""
    ground, span = ambiguity.ground, np.zeros(live.shape)
    ends = np.zeros((*live.shape, 2)) if ground.kind == "line" else None
    wide = replace(ambiguity, support="state" if ambiguity.support == "observed" else ambiguity.support)
    for s in np.flatnonzero(live.any(axis=1)).tolist():
        allowed = wide.allowed(model, s, s + 1)[0]
        for a in np.flatnonzero(live[s]).tolist():
            there = np.flatnonzero(allowed[a])
            if ends is not None:
                x = ground.data[there]
                ends[s, a] = x.min(), x.max()
                span[s, a] = np.ptp(x)
            else:
                span[s, a] = ground.between(there, there).max()
            if not np.isfinite(span[s, a]):
                where = f"state {model.states[s]!r}, action {model.actions[a]!r}"
                raise InputError(
                    f"{where}: ground: mass cannot move between some next states, so no radius holds the truth"
                )
    return span, ends


def _numbers_of_draws(model: Model, counts: ArrayLike) -> Array:
    """How many draws each row is made of, (S, A, N)."""
    n = numbers("counts", counts)
    S, A, N = model.n_states, model.n_actions, model.n_kernels
    if n.shape not in ((), (S, A), (N, S, A)):
        raise InputError(f"counts: expected a number, shape {(S, A)} or {(N, S, A)}, got {n.shape}")
    full = np.where(model.available, np.broadcast_to(n, (N, S, A)), 0.0)
    bad = ~np.isfinite(full) | (full < 0)
    if bad.any():
        i, s, a = np.argwhere(bad)[0].tolist()
        where = f"kernel {model.kernel_names[i]!r}, state {model.states[s]!r}, action {model.actions[a]!r}"
        raise InputError(f"counts must be finite and not negative: {where} has {float(full[i, s, a])!r}")
    return np.asarray(full.transpose(1, 2, 0))
