"""Rows of one step from rows of a log that lie several steps apart.

The action a of a row holds until the next row of its episode, k steps later. With C_k(i, j) such
pairs of rows, from state i to state j, the likelihood is

    ℓ(P) = Σ_k Σ_ij C_k(i, j) log (P^k)_ij,

one matrix P for each action: the counts are sufficient, and what follows does not depend on the
number of rows. With R_k = C_k / P^k elementwise (0 where C_k is 0) the gradient is G = Σ_k Σ_{m<k}
(P^m)ᵀ R_k (P^{k−1−m})ᵀ, in 2·k products by

    Ā_k = R_k + Ā_{k+1} Pᵀ,   G = Σ_k (P^{k−1})ᵀ Ā_k.

N = P ∘ G is the expected number of one-step transitions given what was seen. *EM* puts the rows of
N, made to sum to 1, in place of P; ℓ never falls. It ends when a round raises ℓ by no more than
`TOL` of it. Zeros stay zeros: a row may lead to its own state, and to what was seen from the state
under any action, however many steps later. Terminal states are not left.

ℓ may have several maxima: P and its mirror image have the same square, so that rows two steps apart
alone cannot tell them. EM begins in three places: with the rows one step apart, where a row has
`FEW` of them; with all rows as if one step apart; and with states left nearly always. The best is
kept; where another has nearly the same likelihood and rows that differ, they are *not identified*.

Posterior draws are by data augmentation: given P, the steps between two rows are drawn, one after
the other (i → m with probability P_im (P^{k−1})_mj / (P^k)_ij); given all steps, rows are drawn
from Dirichlet distributions. Each draw is the end of a chain of its own.

Where the step in which a terminal state was entered is known (`exact`), as of deaths, that state
leads to one more, which is not left: (P^k)_ij is then the probability to enter j in step k.

Assumed are rows that do not depend on the time, no decision where nothing was seen, and that
whether a step was seen does not depend on the state that was not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.errors import InputError
from drmdp.estimation.count import CountCells, Row, Samples
from drmdp.solution.rows import FEW
from drmdp.ui.text import count, first_names

LARGEST = 500
"""States of which powers are taken."""
TOL, ROUNDS = 1e-9, 2000
"""Share of the likelihood by which the last round of EM raises it, and rounds at most."""
TINY = 1e-8
"""Probabilities that EM brings below this are zero."""
ALIKE, APART = 2.0, 0.05
"""Rows are not identified if log-likelihoods differ by less than the one and probabilities by more
than the other.
"""
SWEEPS = 100
"""Steps of a chain of which the end is a posterior draw."""
ENTRIES = 10_000_000
"""Numbers in the powers that are held at a time."""


@dataclass(frozen=True)
class Fit:
    """The result of EM for B matrices."""

    p: Array  # (B, S, S)
    loglik: Array  # (B,)
    rise: Array  # (B,) of the last round
    rounds: int


def value_and_gradient(p: Array, counts: Array) -> tuple[Array, Array]:
    """ℓ, (B,), and its gradient, (B, S, S), for matrices (B, S, S) and counts (B, K, S, S)."""
    B, K, S, _ = counts.shape
    powers = [np.broadcast_to(np.eye(S), p.shape)]
    for _ in range(K):
        powers.append(powers[-1] @ p)
    loglik, back, gradient = np.zeros(B), np.zeros(p.shape), np.zeros(p.shape)
    for k in range(K, 0, -1):
        observed = counts[:, k - 1]
        on = observed > 0
        loglik += (observed * np.log(powers[k], where=on, out=np.zeros(p.shape))).sum(axis=(1, 2))
        ratio = np.divide(observed, powers[k], where=on, out=np.zeros(p.shape))
        back = ratio + back @ p.swapaxes(1, 2)
        gradient += powers[k - 1].swapaxes(1, 2) @ back
    return loglik, gradient


def maximise(counts: Array, start: Array, trace: list[Array] | None = None) -> Fit:
    """EM from a start; `trace` takes the likelihoods of each round, (B,)."""
    p, open_ = start.copy(), np.arange(len(start))
    loglik, rise = np.full(len(start), -np.inf), np.full(len(start), np.inf)
    rounds = 0
    while open_.size and rounds < ROUNDS:
        value, gradient = value_and_gradient(p[open_], counts[open_])
        rise[open_], loglik[open_] = value - loglik[open_], value
        steps = p[open_] * gradient
        total = steps.sum(axis=2, keepdims=True)
        p[open_] = np.where(total > 0, steps / np.where(total > 0, total, 1), p[open_])
        open_ = open_[rise[open_] > TOL * np.maximum(1, np.abs(value))]
        rounds += 1
        if trace is not None:
            trace.append(loglik.copy())
    return Fit(p, loglik, rise, rounds)


def starts(counts: Array, allowed: BoolArray) -> list[Array]:
    """Three places to begin: rows one step apart, all rows as if they were, states left nearly
    always.
    """

    def shares(weights: Array) -> Array:
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    every = counts.sum(axis=1)
    first = np.where(counts[:, 0].sum(axis=2, keepdims=True) >= FEW, counts[:, 0], every)
    stay = np.eye(allowed.shape[-1], dtype=bool) & (allowed.sum(axis=-1, keepdims=True) > 1)
    begun = [shares(part + 0.5 * allowed) for part in (first, every)]
    return [*begun, shares(np.where(stay, 0.1 * begun[1], begun[1]))]


def fit_pooled(counts: Array, allowed: BoolArray) -> tuple[Fit, BoolArray]:
    """The best of three runs of EM, and which rows others tell otherwise with nearly the same
    likelihood, (B, S).
    """
    fits = [maximise(counts, start) for start in starts(counts, allowed)]
    loglik = np.stack([fit.loglik for fit in fits])
    best, B = loglik.argmax(axis=0), np.arange(loglik.shape[1])
    p, rise = (np.stack([getattr(fit, name) for fit in fits])[best, B] for name in ("p", "rise"))
    doubtful = np.zeros(p.shape[:2], dtype=bool)
    for fit in fits:
        near = loglik.max(axis=0) - fit.loglik < ALIKE
        doubtful |= near[:, None] & (np.abs(fit.p - p).max(axis=2) > APART)
    return Fit(p, loglik.max(axis=0), rise, max(fit.rounds for fit in fits)), doubtful


def draw_steps(p: Array, counts: IntArray, rng: Any) -> IntArray:
    """One-step transitions, (B, S, S), drawn given the matrices and what was seen, (B, K, S, S)."""
    powers = [p]
    for _ in range(counts.shape[1] - 1):
        powers.append(powers[-1] @ p)
    drawn, carried = np.zeros(p.shape, dtype=np.int64), np.zeros(p.shape, dtype=np.int64)
    for k in range(counts.shape[1] - 1, 0, -1):
        pending = counts[:, k] + carried
        b, i, j = np.nonzero(pending)
        share = p[b, i] * powers[k - 1][b, :, j]
        split = rng.multinomial(pending[b, i, j], share / share.sum(axis=1, keepdims=True))
        carried = np.zeros(p.shape, dtype=np.int64)
        at, m = np.nonzero(split)
        np.add.at(drawn, (b[at], i[at], m), split[at, m])
        np.add.at(carried, (b[at], m, j[at]), split[at, m])
    return drawn + counts[:, 0] + carried


def draw_rows(p: Array, counts: IntArray, allowed: BoolArray, prior: float, rng: Any) -> Array:
    """Posterior draws of the matrices, from chains that begin in `p`."""
    for _ in range(SWEEPS):
        weight = np.where(allowed, rng.standard_gamma(prior + draw_steps(p, counts, rng)), 0.0)
        weight = np.maximum(weight, np.where(allowed, np.finfo(float).tiny, 0.0))
        p = weight / weight.sum(axis=2, keepdims=True)
    return p


# ---------------------------------------------------------------------- samples


def fill_gaps(
    raw: Samples, terminal: BoolArray, exact: BoolArray, rng: Any, n_draws: int, prior: float
) -> Samples:
    """Counts of one step, as many for each pair as it has rows; `raw` counts by distance. With
    `n_draws`, that many draws from the posterior.
    """
    cells = raw.pooled
    S, A = cells.shape
    if S > LARGEST:
        what = f"takes powers of matrices of up to {LARGEST} states, got {S}"
        raise InputError(f"`gaps='fill'` {what}; `gaps='cut'` takes more")
    assert cells.gap is not None
    longest = int(cells.gap.max())
    allowed = np.eye(S, dtype=bool)
    allowed[cells.pair // A, cells.column] = True
    allowed[terminal] = np.eye(S, dtype=bool)[terminal]
    absorbed = np.append(exact, False) if exact.any() else exact  # for a state that comes after
    allowed = np.pad(allowed, (0, absorbed.size - S))
    allowed[absorbed] = False
    allowed[[*np.flatnonzero(absorbed), -1], -1] |= exact.any()
    every = np.broadcast_to(allowed, (A, absorbed.size, absorbed.size))
    tensor = _tensor(cells, (cells.keys, cells.count), longest, terminal, absorbed.size)
    fit, doubtful = fit_pooled(tensor, every)
    p = _cleared(fit.p, exact)
    pooled, rows = one_step(cells, p, terminal), tensor.sum(axis=(1, 3))[:, :S]
    labels, parts = raw.labels, [(pooled.keys[pooled.count > 0], pooled.count[pooled.count > 0])]
    notes = _notes(cells, fit, p, terminal, exact, _boundless(cells, doubtful[:, :S], rows))
    if n_draws:
        labels = tuple(f"draw {i}" for i in range(n_draws))
        parts = _drawn(tensor, every, fit.p, exact, n_draws, prior, rng)
        return Samples(labels, pooled, parts, None, notes=notes)
    if len(labels) > 1:
        parts = _by_kernel(raw, fit.p, allowed, longest, terminal, exact)
    return Samples(labels, pooled, parts, raw.rows, raw.grouped, notes)


def _notes(
    cells: CountCells, fit: Fit, p: Array, terminal: BoolArray, exact: BoolArray, vague: list[str]
) -> tuple[str, ...]:
    """Assumptions, in sentences; `vague` are pairs with few rows that are not identified."""
    S, A = cells.shape
    gap: Any = cells.gap
    far, n = int(cells.rows[gap > 1].sum()), count(int(cells.rows.sum()), "pair")
    observed = np.zeros((A, S, S), dtype=bool)
    observed[cells.pair % A, cells.pair // A, cells.column] = True
    vanished = int((observed & (p == 0) & ~terminal[:, None]).sum())
    notes = [
        f"{far:,} of {n} of rows lie 2 to {gap.max()} steps apart: rows of one step are those of "
        f"highest likelihood ({count(fit.rounds, 'round')} of EM; the last raised the "
        f"log-likelihood by {fit.rise.max():.1g})",
        "between two rows of an episode the action of the first is assumed to hold, rows not to "
        "depend on the time, and what was not seen to be missing at random",
    ]
    if exact.any():
        entered = [cells.states[s] for s in np.flatnonzero(exact).tolist()]
        notes.append(f"rows in {first_names(entered)} are in the step of entry, not of a visit")
    if vanished:
        were, are = ("state was", "is") if vanished == 1 else ("states were", "are")
        seen = f"seen after several steps only, and {are} not reached in one"
        notes.append(f"{vanished:,} next {were} {seen}")
    if vague:
        notes.append(f"not identified by the few rows there are: {first_names(vague, 10)}")
    return tuple(notes)


def _tensor(cells: CountCells, part: Row, longest: int, terminal: BoolArray, size: int) -> Array:
    """Counts (A, K, size, size) of keys that know the distance; rows in terminal states say
    nothing.
    """
    A = len(cells.actions)
    gap, pair, column = cells.parts(part[0])
    values = np.where(terminal[pair // A], 0.0, part[1])
    tensor = np.zeros((A, longest, size, size))
    np.add.at(tensor, (pair % A, gap - 1, pair // A, column), values)
    return tensor


def _cleared(p: Array, exact: BoolArray, least: float = TINY) -> Array:
    """Matrices of the states of the model, without probabilities that EM was on its way to make
    zero.
    """
    S = exact.size
    cleared = np.where(p < least, 0.0, p)[..., :S, :S]
    cleared[..., exact, :] = np.eye(S)[exact]
    return np.asarray(cleared / cleared.sum(axis=-1, keepdims=True))


def _boundless(cells: CountCells, doubtful: BoolArray, rows: Array) -> list[str]:
    """Pairs with few rows that are not identified; an error if one has many."""
    A = len(cells.actions)
    doubtful = doubtful & (rows > 0)
    many = [cells.spoken(s * A + a) for a, s in np.argwhere(doubtful & (rows >= FEW))]
    if many:
        raise InputError(
            f"`gaps='fill'`: rows several steps apart do not identify {first_names(many, 10)}: "
            "other rows of one step are as likely; too few of its rows are one step apart: give a "
            "larger `step`, or `gaps='cut'`"
        )
    return [cells.spoken(s * A + a) for a, s in np.argwhere(doubtful)]


def one_step(cells: CountCells, p: Array, terminal: BoolArray) -> CountCells:
    """Cells of one step: n(s, a)·P of them, with as many rows and costs as were seen."""
    S, A = cells.shape
    cells = replace(cells, gap=None)
    observed, total = cells.keys, cells.by_pair(cells.count)
    share = p.transpose(1, 0, 2).reshape(S * A, S)
    left = (total > 0) & ~np.repeat(terminal, A)
    expected = np.where(left[:, None], total[:, None] * share, 0.0).ravel()
    ended = terminal[cells.pair // A]
    np.add.at(expected, observed[ended], cells.count[ended])
    keys = np.union1d(np.flatnonzero(expected), observed)
    return replace(cells.summed(keys, np.searchsorted(keys, observed)), count=expected[keys])


def _pieces(n: int, size: int) -> list[slice]:
    """Kernels to go through together, so that their powers fit."""
    width = max(1, ENTRIES // size)
    return [slice(at, min(at + width, n)) for at in range(0, n, width)]


def _drawn(
    tensor: Array, allowed: BoolArray, p: Array, exact: BoolArray, n: int, prior: float, rng: Any
) -> list[Row]:
    """Rows of posterior draws."""
    counts = tensor.astype(np.int64)
    if (counts != tensor).any():
        both = "`gaps='fill'` with `by='posterior'`"
        raise InputError(f"{both} takes no weighted rows: `by='bootstrap'` does")
    A, _, S, _ = tensor.shape
    observed, parts = tensor.sum(axis=(1, 3)) > 0, list[Row]()
    begun = np.where(allowed, np.maximum(p, TINY), 0.0)
    begun /= begun.sum(axis=-1, keepdims=True)
    for piece in _pieces(n, tensor.size):
        width = piece.stop - piece.start
        start, many, mask = (np.concatenate([each] * width) for each in (begun, counts, allowed))
        rows = draw_rows(start, many, mask, prior, rng).reshape(width, A, S, S)
        parts += [entries(p, observed[:, : exact.size]) for p in _cleared(rows, exact, 0.0)]
    return parts


def entries(p: Array, total: Any) -> Row:
    """Keys, ascending, and numbers total·P of the pairs that have rows; `total` (A, S)."""
    flat = (p * np.asarray(total)[..., None]).transpose(1, 0, 2).ravel()
    keys = np.flatnonzero(flat)
    return keys, flat[keys]


def _by_kernel(
    raw: Samples, p: Array, allowed: BoolArray, longest: int, terminal: BoolArray, exact: BoolArray
) -> list[Row]:
    """Rows of kernels that have counts of their own; EM begins near what all data together
    say.
    """
    (A, size, _), S, parts = p.shape, exact.size, list[Row]()
    begun = 0.95 * p + 0.05 * allowed / allowed.sum(axis=1, keepdims=True)
    for piece in _pieces(len(raw.labels), A * longest * size * size):
        tensors = [_tensor(raw.pooled, part, longest, terminal, size) for part in raw.parts[piece]]
        counts = np.stack(tensors)
        flat = counts.reshape(-1, longest, size, size)
        fit = maximise(flat, np.concatenate([begun] * len(counts)))
        rows, totals = _cleared(fit.p, exact).reshape(-1, A, S, S), counts.sum(axis=(2, 4))
        parts += map(entries, rows, totals[:, :, :S])
    return parts
