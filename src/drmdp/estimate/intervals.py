"""Rows of one step from rows of a log that lie several steps apart.

The action a of a row holds until the next row of its episode, k steps later. With C_k(i, j) such pairs of rows, from state i to state j, the likelihood is

    ℓ(P) = Σ_k Σ_ij C_k(i, j) log (P^k)_ij,

one matrix P for each action: the counts are sufficient, and what follows does not depend on the number of rows. With R_k = C_k / P^k elementwise (0 where
C_k is 0) the gradient is G = Σ_k Σ_{m<k} (P^m)ᵀ R_k (P^{k−1−m})ᵀ, in 2·k products by

    Ā_k = R_k + Ā_{k+1} Pᵀ,   G = Σ_k (P^{k−1})ᵀ Ā_k.

N = P ∘ G is the expected number of one-step transitions given what was seen. *EM* puts the rows of N, made to sum to 1, in place of P; ℓ never falls. It
ends when a round raises ℓ by no more than `TOL` of it. Zeros stay zeros: a row may lead to its own state, and to what was seen from the state under any
action, however many steps later. Terminal states are not left.

ℓ may have several maxima: P and its mirror image have the same square, so that rows two steps apart alone cannot tell them. EM begins in three places:
with the rows one step apart, where a row has `FEW` of them; with all rows as if one step apart; and with states left nearly always. The best is
kept; where another has nearly the same likelihood and rows that differ, they are *not identified*.

Posterior draws are by data augmentation: given P, the steps between two rows are drawn, one after the other (i → m with probability
P_im (P^{k−1})_mj / (P^k)_ij); given all steps, rows are drawn from Dirichlet distributions. Each draw is the end of a chain of its own.

Where the step in which a terminal state was entered is known (`exact`), as of deaths, that state leads to one more, which is not left: (P^k)_ij is then the
probability to enter j in step k.

Assumed are rows that do not depend on the time, no decision where nothing was seen, and that whether a step was seen does not depend on the state that was
not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.counts import FEW
from drmdp.core.text import count, some
from drmdp.errors import InputError
from drmdp.estimate.count import Cells, Samples

LARGEST = 500
"""States of which powers are taken."""
TOL, ROUNDS = 1e-9, 2000
"""Share of the likelihood by which the last round of EM raises it, and rounds at most."""
TINY = 1e-8
"""Probabilities that EM brings below this are zero."""
ALIKE, APART = 2.0, 0.05
"""Rows are not identified if log-likelihoods differ by less than the one and probabilities by more than the other."""
SWEEPS = 100
"""Steps of a chain of which the end is a posterior draw."""
ENTRIES = 10_000_000
"""Numbers in the powers that are held at a time."""


@dataclass(frozen=True)
class Fit:
    """Where EM ended, for B matrices."""

    p: Array  # (B, S, S)
    loglik: Array  # (B,)
    rise: Array  # (B,) of the last round
    rounds: int


@dataclass(frozen=True)
class Filling:
    """How one-step rows were found, for the notes."""

    apart: tuple[int, int]  # pairs of rows that lie several steps apart, and all of them
    longest: int
    rounds: int
    rise: float
    exact: tuple[str, ...]  # states whose step of entry is known
    vanished: int  # next states that were seen only after several steps, and are none of one
    boundless: tuple[str, ...]  # pairs with few rows that are not identified

    @property
    def notes(self) -> list[str]:
        """What was assumed, in sentences."""
        far, n = self.apart
        found = [
            f"{far:,} of {count(n, 'pair')} of rows lie 2 to {self.longest} steps apart: rows of one step are those of highest likelihood "
            f"({count(self.rounds, 'round')} of EM; the last raised the log-likelihood by {self.rise:.1g})",
            "between two rows of an episode the action of the first is assumed to hold, rows not to depend on the time, "
            "and what was not seen to be missing at random",
        ]
        if self.exact:
            found.append(f"rows in {some(self.exact)} are in the step of entry, not of a visit")
        if self.vanished:
            what, are = ("next state was", "is") if self.vanished == 1 else ("next states were", "are")
            found.append(f"{self.vanished:,} {what} seen after several steps only, and {are} not reached in one")
        if self.boundless:
            found.append(f"not identified by the few rows there are: {some(list(self.boundless), 10)}")
        return found


def value_and_gradient(p: Array, counts: Array) -> tuple[Array, Array]:
    """ℓ, (B,), and its gradient, (B, S, S), for matrices (B, S, S) and counts (B, K, S, S)."""
    B, K, S, _ = counts.shape
    powers = [np.broadcast_to(np.eye(S), p.shape)]
    for _ in range(K):
        powers.append(powers[-1] @ p)
    loglik, back, gradient = np.zeros(B), np.zeros(p.shape), np.zeros(p.shape)
    for k in range(K, 0, -1):
        own = counts[:, k - 1]
        on = own > 0
        loglik += (own * np.log(powers[k], where=on, out=np.zeros(p.shape))).sum(axis=(1, 2))
        back = np.divide(own, powers[k], where=on, out=np.zeros(p.shape)) + back @ p.swapaxes(1, 2)
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
    """Three places to begin: rows one step apart, all rows as if they were, states left nearly always."""

    def shares(own: Array) -> Array:
        return np.asarray(own / own.sum(axis=-1, keepdims=True))

    every = counts.sum(axis=1)
    one = np.where(counts[:, 0].sum(axis=2, keepdims=True) >= FEW, counts[:, 0], every)
    stay = np.eye(allowed.shape[-1], dtype=bool) & (allowed.sum(axis=-1, keepdims=True) > 1)
    begun = [shares(own + 0.5 * allowed) for own in (one, every)]
    return [*begun, shares(np.where(stay, 0.1 * begun[1], begun[1]))]


def fit_pooled(counts: Array, allowed: BoolArray) -> tuple[Fit, BoolArray]:
    """The best of three runs of EM, and which rows others tell otherwise with nearly the same likelihood, (B, S)."""
    found = [maximise(counts, start) for start in starts(counts, allowed)]
    loglik = np.stack([own.loglik for own in found])
    best, B = loglik.argmax(axis=0), np.arange(loglik.shape[1])
    p, rise = (np.stack([getattr(own, name) for own in found])[best, B] for name in ("p", "rise"))
    doubtful = np.zeros(p.shape[:2], dtype=bool)
    for own in found:
        near = loglik.max(axis=0) - own.loglik < ALIKE
        doubtful |= near[:, None] & (np.abs(own.p - p).max(axis=2) > APART)
    return Fit(p, loglik.max(axis=0), rise, max(own.rounds for own in found)), doubtful


def draw_steps(p: Array, counts: IntArray, rng: Any) -> IntArray:
    """One-step transitions, (B, S, S), drawn given the matrices and what was seen, (B, K, S, S)."""
    powers = [p]
    for _ in range(counts.shape[1] - 1):
        powers.append(powers[-1] @ p)
    drawn, carried = np.zeros(p.shape, dtype=np.int64), np.zeros(p.shape, dtype=np.int64)
    for k in range(counts.shape[1] - 1, 0, -1):
        left = counts[:, k] + carried
        b, i, j = np.nonzero(left)
        share = p[b, i] * powers[k - 1][b, :, j]
        split = rng.multinomial(left[b, i, j], share / share.sum(axis=1, keepdims=True))
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
    raw: Samples, terminal: BoolArray, exact: BoolArray, rng: Any, n_draws: int = 0, prior: float = 1.0
) -> tuple[Samples, Filling]:
    """Counts of one step, as many for each pair as it has rows; `raw` counts by distance. With `n_draws`, that many draws from the posterior."""
    cells = raw.pooled
    S, A = len(cells.states), len(cells.actions)
    if S > LARGEST:
        raise InputError(
            f"`gaps='fill'` takes powers of matrices of up to {LARGEST} states, got {S}; `gaps='cut'` takes more"
        )
    assert cells.gap is not None
    longest = int(cells.gap.max())
    allowed = np.eye(S, dtype=bool)
    allowed[cells.pair // A, cells.column] = True
    allowed[terminal] = np.eye(S, dtype=bool)[terminal]
    left = np.append(exact, False) if exact.any() else exact  # for a state that comes after
    allowed = np.pad(allowed, (0, left.size - S))
    allowed[left] = False
    allowed[[*np.flatnonzero(left), -1], -1] |= exact.any()
    every = np.broadcast_to(allowed, (A, left.size, left.size))
    tensor = _tensor(cells.keys, cells.count, S, A, longest, terminal, left.size)
    fit, doubtful = fit_pooled(tensor, every)
    doubtful = doubtful[:, :S]
    p = _cleared(fit.p, exact)
    rows = tensor.sum(axis=(1, 3))[:, :S]
    boundless = _boundless(cells, doubtful, rows)
    far = cells.gap > 1
    seen = np.zeros((A, S, S), dtype=bool)
    seen[cells.pair % A, cells.pair // A, cells.column] = True
    apart = int(cells.rows[far].sum()), int(cells.rows.sum())
    told = Filling(
        apart,
        longest,
        fit.rounds,
        float(fit.rise.max()),
        tuple(str(cells.states[s]) for s in np.flatnonzero(exact).tolist()),
        int((seen & (p == 0) & ~terminal[:, None]).sum()),
        boundless,
    )
    pooled = one_step(cells, p, terminal)
    if n_draws:
        keys, counts = _drawn(tensor, every, fit.p, exact, n_draws, prior, rng)
        labels = tuple(f"draw {i}" for i in range(n_draws))
        return Samples(labels, pooled, keys, counts, None), told
    if len(raw.labels) == 1:
        there = pooled.count > 0
        return Samples(raw.labels, pooled, [pooled.keys[there]], [pooled.count[there]], raw.rows, raw.grouped), told
    keys, counts = _by_kernel(raw, fit.p, allowed, longest, terminal, exact)
    return Samples(raw.labels, pooled, keys, counts, raw.rows, raw.grouped), told


def _tensor(keys: IntArray, values: Array, S: int, A: int, longest: int, terminal: BoolArray, size: int) -> Array:
    """Counts (A, K, size, size) of keys that know the distance; rows in terminal states say nothing."""
    rest, column = np.divmod(keys, S)
    gap, pair = np.divmod(rest, S * A)
    found = np.zeros((A, longest, size, size))
    np.add.at(found, (pair % A, gap - 1, pair // A, column), np.where(terminal[pair // A], 0.0, values))
    return found


def _cleared(p: Array, exact: BoolArray, least: float = TINY) -> Array:
    """Matrices of the states of the model, without probabilities that EM was on its way to make zero."""
    S = exact.size
    kept = np.where(p < least, 0.0, p)[..., :S, :S]
    kept[..., exact, :] = np.eye(S)[exact]
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def _boundless(cells: Cells, doubtful: BoolArray, rows: Array) -> tuple[str, ...]:
    """Pairs with few rows that are not identified; an error if one has many."""
    pairs = [
        (float(rows[a, s]), f"{cells.actions[a]} when {cells.states[s]}") for a, s in np.argwhere(doubtful & (rows > 0))
    ]
    many = [name for n, name in pairs if n >= FEW]
    if many:
        raise InputError(
            f"`gaps='fill'`: rows several steps apart do not identify {some(many, 10)}: other rows of one step are as likely; "
            f"too few of its rows are one step apart: give a larger `step`, or `gaps='cut'`"
        )
    return tuple(name for _, name in pairs)


def one_step(cells: Cells, p: Array, terminal: BoolArray) -> Cells:
    """Cells of one step: n(s, a)·P of them, with as many rows and costs as were seen."""
    S, A = len(cells.states), len(cells.actions)
    seen = cells.pair * S + cells.column
    total = np.bincount(cells.pair, cells.count, S * A)
    share = p.transpose(1, 0, 2).reshape(S * A, S)
    expected = np.where((total > 0)[:, None] & ~np.repeat(terminal, A)[:, None], total[:, None] * share, 0.0).ravel()
    ended = terminal[cells.pair // A]
    np.add.at(expected, seen[ended], cells.count[ended])
    keys = np.union1d(np.flatnonzero(expected), seen)
    place = np.searchsorted(keys, seen)

    def summed(values: Any) -> Array:
        return np.bincount(place, values, keys.size).astype(np.float64)

    pair, column = np.divmod(keys, S)
    cost = None if cells.cost is None else summed(cells.cost)
    return Cells(
        cells.states, cells.actions, pair, column, expected[keys], summed(cells.rows).astype(np.int64), cost, {}, cells.prices
    )  # fmt: skip


def _pieces(n: int, size: int) -> list[slice]:
    """Kernels to go through together, so that their powers fit."""
    width = max(1, ENTRIES // size)
    return [slice(at, min(at + width, n)) for at in range(0, n, width)]


def _drawn(
    tensor: Array, allowed: BoolArray, p: Array, exact: BoolArray, n: int, prior: float, rng: Any
) -> tuple[list[IntArray], list[Array]]:
    """Keys and rows of posterior draws."""
    counts = tensor.astype(np.int64)
    if (counts != tensor).any():
        raise InputError("`gaps='fill'` with `by='posterior'` takes no weighted rows: `by='bootstrap'` does")
    A, _, S, _ = tensor.shape
    seen, keys, found = tensor.sum(axis=(1, 3)) > 0, list[IntArray](), list[Array]()
    begun = np.where(allowed, np.maximum(p, TINY), 0.0)
    begun /= begun.sum(axis=-1, keepdims=True)
    for piece in _pieces(n, tensor.size):
        width = piece.stop - piece.start
        tiled = (np.concatenate([own] * width) for own in (begun, counts, allowed))
        start, many, mask = tiled
        rows = draw_rows(start, many, mask, prior, rng).reshape(width, A, S, S)
        for own in _cleared(rows, exact, 0.0):
            key, row = entries(own, seen[:, : exact.size])
            keys.append(key)
            found.append(row)
    return keys, found


def entries(p: Array, total: Any) -> tuple[IntArray, Array]:
    """Keys, ascending, and numbers total·P of the pairs that have rows; `total` (A, S)."""
    flat = (p * np.asarray(total)[..., None]).transpose(1, 0, 2).ravel()
    keys = np.flatnonzero(flat)
    return keys, flat[keys]


def _by_kernel(
    raw: Samples, p: Array, allowed: BoolArray, longest: int, terminal: BoolArray, exact: BoolArray
) -> tuple[list[IntArray], list[Array]]:
    """The same for kernels that have counts of their own; EM begins near what all data together say."""
    (A, size, _), S = p.shape, exact.size
    begun = 0.95 * p + 0.05 * allowed / allowed.sum(axis=1, keepdims=True)
    keys, found = list[IntArray](), list[Array]()
    for piece in _pieces(len(raw.labels), A * longest * size * size):
        own = zip(raw.keys[piece], raw.counts[piece], strict=True)
        counts = np.stack([_tensor(key, number, S, A, longest, terminal, size) for key, number in own])
        flat = counts.reshape(-1, longest, size, size)
        fit = maximise(flat, np.concatenate([begun] * len(counts)))
        for rows, total in zip(_cleared(fit.p, exact).reshape(-1, A, S, S), counts.sum(axis=(2, 4)), strict=True):
            key, row = entries(rows, total[:, :S])
            keys.append(key)
            found.append(row)
    return keys, found
