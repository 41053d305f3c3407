"""Rates of continuous time from rows of a log at any times.

The action of a row holds until the next row of its episode, a time t later. With a generator Q for
each action (rates q_ij ≥ 0 of the jumps i → j that are allowed, rows that sum to 0), rows in i and
j have the likelihood (e^{Qt})_ij; where j is terminal and its time is that of the entry (*exact*),
it is Σ_k (e^{Qt})_ik q_kj. Rows that agree in action, states and t are counted together.

The log-likelihood ℓ is maximised over θ = log q by L-BFGS-B from the crude rates (jumps between
rows, over time). Let w_r be n_r over the likelihood of row r, b_r the column that e^{Qt} is
multiplied with (e_j, or q_·j) and Q = U diag(λ) V, V = U⁻¹. Then with x_r = w_r U_{i·}, y_r = V
b_r,

    ∂ℓ/∂Q = Vᵀ M Uᵀ,   M_kl = Σ_r x_rk y_rl φ_kl(t_r),
    φ_kl(t) = (e^{λ_k t} − e^{λ_l t})/(λ_k − λ_l),

and φ = t e^{λt} where eigenvalues agree: products of matrices with as many rows as the panel has.
Where U is nearly singular, with R_t = Σ_r w_r e_i b_rᵀ over the rows a time t apart,

    ∂ℓ/∂Q = Σ_t ∫_0^t e^{Qᵀs} R_t e^{Qᵀ(t−s)} ds,

the upper right blocks of exp([[Qᵀ, R_t], [0, Qᵀ]] t).

The observed information H is a difference of gradients. Draws ("posterior") are N(θ̂, H⁻¹). A rate
is *not estimable* where θ runs to its lower bound, or where it is not told within a factor of
e^`VAGUE` either way and ℓ without the jump is lower by `ALIKE` at most: it is 0 in an estimate, and
Gamma(prior)/T in a draw, T the time observed from its state. It is *swift* where θ runs to its
upper bound, as after an action that works at once: it stays there. Others told no better are
refused.

The result are rows of uniformised steps, I + Q/Λ (`drmdp.model.rates`). A row counts for as
many steps as tell as much: with v the variance of log q, as after 1/v jumps, and p = q/Λ, 1/v = np.

Assumed are rates that do not depend on the time, no decision between two rows, and that the times
of rows do not depend on states that were not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, optimize

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.validation import find, lookup
from drmdp.errors import InputError, unexpected
from drmdp.estimation.count import Clock, CountCells, Samples, spread_over
from drmdp.estimation.intervals import entries, one_step
from drmdp.estimation.log.order import LogSurvey, Transitions
from drmdp.estimation.log.source import pl
from drmdp.estimation.rules import names_by_text
from drmdp.estimation.settings import Settings
from drmdp.solution.rows import FEW
from drmdp.ui.text import count, first_names

LARGEST = 100
"""States of which generators are fitted."""
DEFECTIVE = 1e6
"""Condition of the eigenvectors beyond which they are not used."""
INEXACT = 1e-9
"""What rows of e^{Qt} in the eigenbasis may miss 1 by."""
FLOOR = 1e-100
"""Likelihood of a row that jumps do not explain."""
CLOSE = 1e-4
"""Eigenvalues are taken for equal if their difference, times the longest time, is below this."""
SLOWEST, FASTEST = 1e-4, 20.0
"""Bounds of rates: so many jumps in all the time observed, so many in a short time between rows."""
VAGUE = 2.0
"""Standard deviation of the logarithm of a rate that is told by the data."""
ALIKE, OFF = 2.0, -800.0
"""A rate may as well be 0 if that lowers ℓ by no more than the one; log q is then the other, whose
exponential is 0.
"""
SWIFT = 3.0
"""Jumps in a short time between rows beyond which rows do not tell how fast they are."""
STEP = 1e-4
"""Of the differences of gradients."""


@dataclass(frozen=True)
class Panel:
    """Rows of one action, (R,) each: from state i to state j in time t, n of them."""

    i: IntArray
    j: IntArray
    t: Array
    n: Array
    exact: BoolArray  # whether j was entered at the end of t

    def of(self, n: Array) -> Panel:
        """The same rows, each so many times; those of none are left out."""
        on = n > 0
        return Panel(self.i[on], self.j[on], self.t[on], n[on], self.exact[on])


def generator_of(theta: Array, jumps: IntArray, S: int) -> Array:
    """Q from θ = log q of the jumps, (2, J): from and to."""
    generator = np.zeros((S, S))
    generator[jumps[0], jumps[1]] = np.exp(theta)
    generator[np.arange(S), np.arange(S)] = -generator.sum(axis=1)
    return generator


def value_and_gradient(theta: Array, jumps: IntArray, panel: Panel, S: int) -> tuple[float, Array]:
    """ℓ and its gradient by θ."""
    generator = generator_of(theta, jumps, S)
    into = generator - np.diag(np.diag(generator))
    column = np.where(panel.exact[:, None], into[:, panel.j].T, np.eye(S)[panel.j])
    rows, pull = _spectral(generator, panel, column) or _by_exponentials(generator, panel, column)
    likelihood = np.maximum((rows * column).sum(axis=1), FLOOR)
    weight = panel.n / likelihood
    slope = pull(weight)
    entered = np.zeros((S, S))  # where the rate itself is in the likelihood
    np.add.at(entered.T, panel.j[panel.exact], (weight[:, None] * rows)[panel.exact])
    a, b = jumps
    gradient = generator[a, b] * (slope[a, b] - slope[a, a] + entered[a, b])
    return float(panel.n @ np.log(likelihood)), gradient


def _spectral(generator: Array, panel: Panel, column: Array) -> Any:
    """Rows of e^{Qt}, (R, S), and the map from weights to ∂ℓ/∂Q, in the eigenbasis; None where that
    is too nearly singular.
    """
    values, vectors = np.linalg.eig(generator)
    if not np.linalg.cond(vectors) < DEFECTIVE:
        return None
    inverse = np.linalg.inv(vectors)
    left, right = vectors[panel.i], column @ inverse.T
    grown = np.exp(np.outer(panel.t, values))
    apart = values[:, None] - values
    close = np.abs(apart) * panel.t.max() < CLOSE

    def pull(weight: Array) -> Array:
        x = left * weight[:, None]
        mixed = (x * grown).T @ right - x.T @ (grown * right)
        mixed = mixed / np.where(close, 1, apart)
        for k, m in np.argwhere(close):
            middle = np.exp((values[k] + values[m]) / 2 * panel.t)
            mixed[k, m] = (x[:, k] * right[:, m] * panel.t * middle).sum()
        return np.asarray((inverse.T @ mixed @ vectors.T).real)

    rows = ((left * grown) @ inverse).real
    return None if np.abs(rows.sum(axis=1) - 1).max() > INEXACT else (rows, pull)


def _by_exponentials(generator: Array, panel: Panel, column: Array) -> Any:
    """Rows and map by exponentials of matrices, one for each distinct time."""
    S = len(generator)
    times, place = np.unique(panel.t, return_inverse=True)
    rows = linalg.expm(generator * times[:, None, None])[place, panel.i]

    def pull(weight: Array) -> Array:
        block = np.zeros((times.size, 2 * S, 2 * S))
        block[:, :S, :S] = block[:, S:, S:] = generator.T
        scale = weight.max()  # the result is linear in the weights
        np.add.at(block[:, :S, S:], (place, panel.i), weight[:, None] / scale * column)
        block *= times[:, None, None]
        return np.asarray(scale * linalg.expm(block)[:, :S, S:].sum(axis=0))

    return rows, pull


def crude(panel: Panel, S: int) -> tuple[Array, Array]:
    """Jumps between rows, (S, S), and the time observed from each state, (S,)."""
    jumped = np.zeros((S, S))
    np.add.at(jumped, (panel.i, panel.j), panel.n)
    return jumped, np.bincount(panel.i, panel.n * panel.t, S).astype(np.float64)


@dataclass(frozen=True)
class RateFit:
    """Rates of one action where the likelihood is highest, for J jumps."""

    theta: Array  # (J,)
    bounds: Array  # (J, 2)
    loglik: float
    slope: float  # largest derivative of ℓ that is left
    iterations: int


def maximise(panel: Panel, jumps: IntArray, S: int, start: Array, bounds: Array) -> RateFit:
    """L-BFGS-B from a start."""

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = value_and_gradient(theta, jumps, panel, S)
        return -value, -gradient

    start = np.clip(start, *bounds.T)
    if (bounds[:, 0] == bounds[:, 1]).all():
        return RateFit(start, bounds, -loss(start)[0], 0.0, 0)
    options = {"maxiter": 500, "ftol": 1e-13, "gtol": 1e-6}
    how: Any = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": options}
    optimum = optimize.minimize(loss, start, **how)
    free = (optimum.x > bounds[:, 0]) & (optimum.x < bounds[:, 1])
    slope = float(np.abs(optimum.jac[free]).max(initial=0.0))
    return RateFit(optimum.x, bounds, -float(optimum.fun), slope, int(optimum.nit))


def information(theta: Array, jumps: IntArray, panel: Panel, S: int, on: IntArray) -> Array:
    """Minus the second derivative of ℓ by the θ in `on`."""
    ends = []
    for h in STEP * np.eye(theta.size)[on]:
        low, high = (value_and_gradient(x, jumps, panel, S)[1][on] for x in (theta - h, theta + h))
        ends.append((low - high) / (2 * STEP))
    hessian = np.array(ends).reshape(on.size, on.size)
    return np.asarray((hessian + hessian.T) / 2)


@dataclass(frozen=True)
class Spread:
    """Precision of J rates."""

    shut: BoolArray  # not estimable: they may as well be 0
    vague: BoolArray  # neither that, nor told
    root: Array  # root·rootᵀ is the covariance of the other θ

    @property
    def identified(self) -> BoolArray:
        """The other rates."""
        return ~(self.shut | self.vague)


def spread(fit: RateFit, jumps: IntArray, panel: Panel, S: int) -> tuple[RateFit, Spread]:
    """The fit without the rates that may as well be 0, and the inverse of its information."""
    shut, vague = fit.theta <= fit.bounds[:, 0] + STEP, np.zeros(fit.theta.size, dtype=bool)
    bounds = np.where(shut[:, None], OFF, fit.bounds)
    fit = replace(fit, theta=np.where(shut, OFF, fit.theta), bounds=bounds)
    while True:
        on = np.flatnonzero(~(shut | vague))
        values, vectors = np.linalg.eigh(information(fit.theta, jumps, panel, S, on))
        root = vectors / np.sqrt(np.maximum(values, 1e-8))
        poor = on[(root**2).sum(axis=1) > VAGUE**2]
        if not poor.size:
            return fit, Spread(shut, vague, root)
        least = poor[fit.theta[poor].argmin()]
        without = np.where((np.arange(shut.size) == least)[:, None], OFF, fit.bounds)
        trial = maximise(panel, jumps, S, fit.theta, without)
        shut[least] = trial.loglik > fit.loglik - ALIKE
        vague[least] = ~shut[least]
        fit = trial if shut[least] else fit


def draw(fit: RateFit, known: Spread, slow: Array, most: float, rng: Any) -> Array:
    """θ of n draws, (n, J), at most `most`; `slow` (n, J) are those of rates that are not
    estimable.
    """
    theta, n = slow.copy(), len(slow)
    theta[:, known.vague] = fit.theta[known.vague]
    normal = rng.standard_normal((n, len(known.root)))
    theta[:, known.identified] = fit.theta[known.identified] + normal @ known.root.T
    return np.asarray(np.minimum(theta, most))


# ---------------------------------------------------------------------- samples


def _notes(
    fits: list[RateFit], untold: tuple[list[str], ...], n: int, entered: Any, prior: float | None
) -> tuple[str, ...]:
    """Method and assumptions, in sentences; `untold` are rates that are not estimable, and rates
    that are faster than rows tell.
    """
    rounds, slope = max(fit.iterations for fit in fits), max(fit.slope for fit in fits)
    notes = [
        f"rates of highest likelihood from {count(n, 'pair')} of rows at any times "
        f"({count(rounds, 'iteration')}; the derivatives by log rates that are left are at "
        f"most {slope:.1g})",
        "between two rows of an episode the action of the first is assumed to hold, rates not "
        "to depend on the time, and times of rows not on states that were not seen",
        "counts are those of as many steps of the model as tell as much as the rows, at most "
        "as many",
    ]
    if entered:
        notes.append(f"rows in {first_names(entered)} are at the time of entry, not of a visit")
    drawn = "0" if prior is None else f"drawn as Gamma({prior:g}) over the time observed"
    fast = f"taken for {FASTEST:g} jumps in a short time between rows"
    whys = f"not estimable, and {drawn}", f"so fast that rows do not tell, {fast}"
    for rates, why in zip(untold, whys, strict=True):
        if rates:
            notes.append(f"{count(len(rates), 'rate')} {why}: {first_names(rates, 10)}")
    return tuple(notes)


def structure(jumps: Any, cells: CountCells, terminal: BoolArray, typed: bool) -> BoolArray:
    """Jumps that are allowed, (S, S): those given, or those between any two rows that follow."""
    S, A = cells.shape
    allowed = np.zeros((S, S), dtype=bool)
    if jumps is None:
        allowed[cells.pair // A, cells.column] = cells.rows > 0
        allowed[np.arange(S), np.arange(S)] = False
        allowed[terminal] = False
        return allowed
    if not isinstance(jumps, Mapping):
        raise unexpected("`jumps`", "a mapping from a state to those it may jump to", jumps)
    known = lookup(cells.states)
    for source, targets in jumps.items():
        names = [source, *([targets] if isinstance(targets, str | int) else targets)]
        names = names_by_text(cells.states, names, "state in `jumps`", typed)
        i, *to = (find(known, name, "jumps", "state") for name in names)
        if terminal[i] or i in to:
            why = "is terminal" if terminal[i] else "cannot jump to itself"
            raise InputError(f"`jumps`: state {cells.states[i]!r} {why}")
        allowed[i, to] = True
    return allowed


def _refuse(steps: Transitions, names: dict[str, Any], what: str, cure: str) -> None:
    """Refuse a log for its first row with labels, by role."""
    schema = steps.frame.collect_schema()
    whole = {role: pl.Int64 if schema[role].is_float() else schema[role] for role in names}
    same = [pl.col(k).cast(whole[k]).cast(pl.String) == str(name) for k, name in names.items()]
    rows = steps.frame.filter(pl.all_horizontal(same)).select(pl.col("_row").min())
    row = int(steps.table.query(rows).item())
    (place,) = steps.table.places([([row], what, "state", None)])
    raise InputError(f"{steps.table.name}: {place}; {cure}")


def _check_jumps(
    steps: Transitions, cells: CountCells, allowed: BoolArray, terminal: BoolArray
) -> None:
    """Refuse rows that the structure does not lead to."""
    S, A = cells.shape
    ways = np.linalg.matrix_power((allowed | np.eye(S, dtype=bool)).astype(float), S) > 0
    for k in np.flatnonzero(~ways[cells.pair // A, cells.column] & ~terminal[cells.pair // A])[:1]:
        s, t = cells.states[cells.pair[k] // A], cells.states[cells.column[k]]
        what = f"{s!r} is followed by {t!r}, where no jumps lead"
        cure = "name jumps that lead there with `jumps`, or correct the row"
        _refuse(steps, {"state": s, "next_state": t}, what, cure)


def fit_action(panel: Panel, jumps: IntArray, usual: Array, short: float) -> tuple[RateFit, Spread]:
    """Rates of one action, and how well they are told; states without a row begin with `usual`
    rates.
    """
    S = len(usual)
    jumped, time = crude(panel, S)
    start = np.where(time[:, None] > 0, (jumped + 0.5) / (time + short)[:, None], usual)
    bounds = np.log([[SLOWEST / span, FASTEST / short] for span in _observed(time, jumps)])
    fit = maximise(panel, jumps, S, np.log(start[tuple(jumps)]), bounds)
    return spread(fit, jumps, panel, S)


def _observed(time: Array, jumps: IntArray) -> Array:
    """Time observed from where each jump begins, of all states where there is none, (J,)."""
    return np.asarray(np.where(time > 0, time, time.sum())[jumps[0]])


def fit_rates(
    raw: Samples,
    survey: LogSurvey,
    terminal: BoolArray,
    exact: BoolArray,
    settings: Settings,
    rng: Any,
) -> Samples:
    """Rows of uniformised steps, as many for each pair as it has rows; `raw` counts by time."""
    cells, spans = raw.pooled, survey.facts.spans
    S, A = cells.shape
    if S > LARGEST:
        raise InputError(f"rates are fitted for up to {LARGEST} states, got {S}")
    assert cells.gap is not None
    allowed = structure(settings.jumps, cells, terminal, settings.typed)
    _check_jumps(survey.steps, cells, allowed, terminal)
    jumps, states = np.argwhere(allowed).T, cells.pair // A
    draws = settings.n_kernels or 0 if settings.by == "posterior" else 0
    labels = tuple(f"draw {k}" for k in range(draws)) or raw.labels
    pooled, variance = np.zeros((A, S, S)), np.full((A, S, S), np.nan)
    rates, rows = np.zeros((len(labels), A, S, S)), np.zeros((len(labels), A, S))
    time, fits, untold = np.zeros((A, S)), list[RateFit](), (list[str](), list[str]())
    short = float(np.quantile(np.repeat(spans[cells.gap], cells.rows), 0.1))
    every = Panel(states, cells.column, spans[cells.gap], cells.count, exact[cells.column])
    total = crude(every, S)
    usual = (total[0] + 0.5) / (total[1] + short)[:, None]
    for a in range(A if jumps.size else 0):
        here = (cells.pair % A == a) & ~terminal[states]
        panel = every.of(np.where(here, cells.count, 0.0))
        if not panel.n.size:
            continue
        fit, known = fit_action(panel, jumps, usual, short)
        jumped, time[a] = crude(panel, S)
        often = np.bincount(panel.i, panel.n, S)
        needed = (often >= max(settings.min_count, 1))[jumps[0]]
        swift = (fit.theta >= fit.bounds[:, 1]) & ~known.shut
        swift |= known.vague & (np.exp(fit.theta) * short > SWIFT)
        vague = np.where(swift, (often < FEW)[jumps[0]], known.vague)
        for i, j in jumps.T[needed & vague][:1]:
            _refuse_vague(survey.steps, cells, (i, a, j), int(often[i]))
        fits.append(fit)
        for names, which in zip(untold, (known.shut, swift), strict=True):
            for i, j in jumps.T[needed & which]:
                seen = f"({jumped[i, j]:g} of {count(int(often[i]), 'row')})"
                names.append(f"{cells.states[j]} after {cells.spoken(i * A + a)} {seen}")
        pooled[a] = rates[:, a] = generator_of(np.where(known.shut, -np.inf, fit.theta), jumps, S)
        variance[a][tuple(jumps[:, known.identified])] = (known.root**2).sum(axis=1)
        if draws:
            slow = np.maximum(rng.standard_gamma(settings.pseudo, (draws, jumps.shape[1])), 1e-300)
            slow = np.log(slow / _observed(time[a], jumps))
            drawn = draw(fit, known, slow, float(np.log(FASTEST / short)), rng)
            rates[:, a], rows[:, a] = [generator_of(theta, jumps, S) for theta in drawn], often
        for k, part in enumerate([] if draws else raw.parts):
            near = every.of(np.where(here, spread_over(cells.keys, *part), 0.0))
            rows[k, a] = np.bincount(near.i, near.n, S)
            if len(labels) > 1 and near.n.size:
                rates[k, a] = _of_kernel(near, jumps, fit, S)
    fastest = -2 * float(min(rates.min(), pooled.min()))  # no state is left for certain
    if not fastest > 0:
        raise InputError(f"{survey.steps.table.name}: no state is ever left: there is no rate")
    parts = [entries(np.eye(S) + rate / fastest, n) for rate, n in zip(rates, rows, strict=True)]
    seen_rows = cells.by_pair(cells.count).reshape(S, A)
    clock = Clock(fastest, pooled.swapaxes(0, 1), variance.swapaxes(0, 1), time.T, seen_rows)
    entered = [cells.states[k] for k in np.flatnonzero(exact).tolist()]
    prior = settings.pseudo if draws else None
    notes = _notes(fits, untold, int(cells.rows.sum()), entered, prior)
    steps = _uniform(cells, pooled, time, fastest, terminal)
    return Samples(labels, steps, parts, None if draws else raw.rows, raw.grouped, notes, clock)


def _of_kernel(panel: Panel, jumps: IntArray, fit: RateFit, S: int) -> Array:
    """The generator of a kernel with data of its own, from that of all data together."""
    near = maximise(panel, jumps, S, fit.theta, fit.bounds).theta
    slow = near <= fit.bounds[:, 0] + STEP
    return generator_of(np.where(slow, -np.inf, near), jumps, S)


def _refuse_vague(
    steps: Transitions, cells: CountCells, jump: tuple[int, int, int], rows: int
) -> None:
    """Refuse a rate that the rows of a pair do not tell."""
    i, a, j = jump
    names = {"state": cells.states[i], "action": cells.actions[a]}
    what = (
        f"{count(rows, 'row')} of {cells.actions[a]!r} when {cells.states[i]!r} do not tell the "
        f"rate of jumps to {cells.states[j]!r}: they are too few, or too far apart"
    )
    cure = f"`min_count={rows + 1}` makes pairs with so few rows unavailable"
    _refuse(steps, names, what, f"{cure}; or leave jumps out of `jumps`")


def _uniform(
    cells: CountCells, rates: Array, time: Array, fastest: float, terminal: BoolArray
) -> CountCells:
    """Cells of uniformised steps; costs are those per unit of time, once for each row."""
    A, S, _ = rates.shape
    uniform = one_step(cells, np.eye(S) + rates / fastest, terminal)
    if uniform.cost is None:
        return uniform
    rows = uniform.by_pair(uniform.count)
    per = np.divide(rows, time.T.ravel(), where=time.T.ravel() > 0, out=np.zeros(S * A))
    return replace(uniform, cost=uniform.cost * per[uniform.pair])
