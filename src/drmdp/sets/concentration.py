"""How far the shares p̂ = c/n of n independent draws are from their law p, up to a chance δ.

There are K possible next states. Promises: "row": p is within the radius of p̂, n fixed before.
"log": the same at all n at once, so whatever made the counts stop. "value": for a fixed v the worst
row of the set is no better than p, while p itself is usually outside; measured, not proved.
"asymptotic": "row" for n → ∞.

    intervals  L = Beta⁻¹(δ'/2; c, n−c+1), U = Beta⁻¹(1−δ'/2; c+1, n−c) (Clopper, Pearson), with
               δ' = δ/K, or δ for K = 2, where two shares are one statement; then, the same rows,
               L_k ← max(L_k, 1−Σ_{j≠k}U_j), U_k ← min(U_k, 1−Σ_{j≠k}L_j)
    ℓ1         √(2 (ln(2^K−2) + ln 1/δ)/n) (Weissman et al.);
               (√(K−1) + √(2 ln 1/δ))/√n (McDiarmid, E d ≤ √((K−1)/n));
               2Σ(U−p̂), 2Σ(p̂−L), Σ max(U−p̂, p̂−L). tv: half of all that
    ℓ2         (√(1−1/K) + √ln 1/δ)/√n (McDiarmid, E d² ≤ (1−1/K)/n); √Σ max(U−p̂, p̂−L)².
               Tuple of rows j, d² = Σ w_j d_j²: √Σ w_j(1−1/K_j)/n_j + √(ln(1/δ) Σ w_j/n_j), for
               a draw moves d by √(2w_j)/n_j at most
    ℓ∞         max(U−p̂, p̂−L); without counts √(ln(2/δ')/(2n)) (Hoeffding), which is never less
    burg       [ln C(n+K−1, K−1) + ln 1/δ]/n (types);
               x/n with e^{−x}(ex/(K−1))^{K−1} = δ (Agrawal, arXiv:1904.02291);
               [(K−1) ln 2 + Gamma⁻¹_{K−1}(1−δ)]/n: n KL(p̂‖p) is the sum of those of K−1 binomials,
               each, given those before, ≥ x with probability ≤ min(1, 2e^{−x})
      log      [ln 1/δ + Σ c ln(c/n) − ln M(c)]/n, M the mean of the Dirichlet mixtures of
               parameters ½ and 1/K: M/Πp^c is a martingale ≥ 0 of mean 1 (Ville)
      value    ln(1/δ)/n        asymptotic   χ²_{K−1}(1−δ)/(2n)
    kl         around q = (c+½)/(n+K/2) only, for around p̂ no radius holds unless all was seen:
               Σ max(f(L), f(U)), f(x) = x ln(x/q) − x + q; value and asymptotic as for burg
    transport  diameter × tv; on a line span √(ln(2/δ)/(2n)) (Dvoretzky, Kiefer, Wolfowitz,
               Massart), or Σ gap × deviation of the mass to its left, an interval with δ/(K−1) for
               each gap

Of several radii that know n and K alone the least is taken. Beside one that sees the counts each
has δ/2, for the smaller of the two is exceeded where either is. For K = 2 the counts alone decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # `scipy.special` takes a third of a second, and is loaded when it is asked

from drmdp._typing import Array


class Draws(NamedTuple):
    """R rows of draws; without counts only what holds for all counts is known."""

    n: Array  # (R,) draws, at least 1
    K: Array  # (R,) possible next states, at least 2
    row: Any = None  # (E,) ascending: whose counts are listed
    counts: Any = None  # (E,) those that are not 0
    diameter: Any = None  # (R,) largest cost of moving mass
    places: Any = None  # (E,) where the listed next states are on a line
    ends: Any = None  # (R, 2) ends of the line

    def total(self, each: Array) -> Array:
        """Sum over what is listed of each row."""
        return np.asarray(np.bincount(self.row, each, minlength=self.n.size), float)

    @property
    def unseen(self) -> Array:
        """How many next states have no counts, (R,)."""
        return self.K - np.bincount(self.row, minlength=self.n.size)


def clopper_pearson(c: Array, n: Array, delta: Array) -> tuple[Array, Array]:
    """Ends for a probability that c of n draws had; each is missed with probability ≤ δ/2."""
    beta, above = scipy.special.betaincinv, scipy.special.betainccinv
    low = np.where(c > 0, beta(np.maximum(c, 0.5), n - c + 1, delta / 2), 0.0)
    return low, np.where(c < n, above(c + 1, np.maximum(n - c, 0.5), delta / 2), 1.0)


def box(draws: Draws, delta: Array) -> tuple[Array, Array, Array]:
    """Tight ends of what is listed, (E,), and upper ends of what is not, (R,); lower ones are 0."""
    share = np.where(draws.K == 2, delta, delta / draws.K)
    n, each = draws.n[draws.row], share[draws.row]
    low, high = clopper_pearson(draws.counts, n, each)
    rest = clopper_pearson(np.zeros(draws.n.size), draws.n, share)[1]
    lows, highs = draws.total(low), draws.total(high) + draws.unseen * rest
    tight_low = np.maximum(low, 1 - (highs[draws.row] - high))
    tight_high = np.minimum(high, 1 - (lows[draws.row] - low))
    return tight_low, tight_high, np.minimum(rest, 1 - lows)


def _around(draws: Draws, delta: Array) -> tuple[Array, Array, Array]:
    """How far the box goes above and below p̂, (E,), and above 0 where nothing was seen, (R,)."""
    low, high, rest = box(draws, delta)
    share = draws.counts / draws.n[draws.row]
    return np.maximum(high - share, 0), np.maximum(share - low, 0), rest


Bound = Callable[[Draws, Array], Array]


def _smaller(draws: Draws, delta: Array, blind: Bound, seeing: Bound) -> Array:
    if draws.counts is None:
        return blind(draws, delta)
    two = draws.K == 2  # one statement, by the exact tails of a binomial
    share = np.where(two, delta, delta / 2)
    radius = seeing(draws, share)
    return np.where(two, radius, np.minimum(blind(draws, share), radius))


def _l1_blind(draws: Draws, delta: Array) -> Array:
    n, K, log = draws.n, draws.K, -np.log(delta)
    patterns = K * math.log(2) + np.log1p(-np.exp2(1.0 - K))
    mcdiarmid = (np.sqrt(K - 1) + np.sqrt(2 * log)) / np.sqrt(n)
    return np.asarray(np.minimum(np.sqrt(2 * (patterns + log) / n), mcdiarmid))


def _l1_box(draws: Draws, delta: Array) -> Array:
    above, below, rest = _around(draws, delta)
    gains, losses = draws.total(above) + draws.unseen * rest, draws.total(below)
    either = draws.total(np.maximum(above, below)) + draws.unseen * rest
    return np.asarray(np.minimum(2 * np.minimum(gains, losses), either))


def _l1(draws: Draws, delta: Array) -> Array:
    return np.minimum(_smaller(draws, delta, _l1_blind, _l1_box), 2.0)


def _tv(draws: Draws, delta: Array) -> Array:
    return _l1(draws, delta) / 2


def l2_tuple(share: Array, K: Array, delta: Any, axis: Any) -> Array:
    """ℓ2 distance of a tuple of rows over some axes, w/n given."""
    mean = np.sqrt((share * (1 - 1 / K)).sum(axis=axis))
    return np.asarray(mean + np.sqrt(-np.log(delta) * share.sum(axis=axis)))


def _l2_blind(draws: Draws, delta: Array) -> Array:
    return l2_tuple(1 / draws.n, draws.K, delta, ())


def _l2_box(draws: Draws, delta: Array) -> Array:
    above, below, rest = _around(draws, delta)
    return np.sqrt(draws.total(np.maximum(above, below) ** 2) + draws.unseen * rest**2)


def _l2(draws: Draws, delta: Array) -> Array:
    return np.minimum(_smaller(draws, delta, _l2_blind, _l2_box), math.sqrt(2))


def _linf(draws: Draws, delta: Array) -> Array:
    if draws.counts is None:
        share = np.where(draws.K == 2, delta, delta / draws.K)
        return np.minimum(np.sqrt(np.log(2 / share) / (2 * draws.n)), 1.0)
    above, below, rest = _around(draws, delta)
    most = np.where(draws.unseen > 0, rest, 0.0)
    np.maximum.at(most, draws.row, np.maximum(above, below))
    return most


def _burg(draws: Draws, delta: Array) -> Array:
    n, m, log = draws.n, draws.K - 1, -np.log(delta)
    # no difference of large numbers
    types = log - scipy.special.betaln(n + 1, m + 1) - np.log(n + m + 1)
    agrawal = -m * scipy.special.lambertw(-np.exp(-1 - log / m), -1).real
    chain = m * math.log(2) + scipy.special.gammainccinv(m, delta)
    return np.asarray(np.minimum(np.minimum(types, agrawal), chain) / n)


def _burg_log(draws: Draws, delta: Array) -> Array:
    n, K, c, gammaln = draws.n, draws.K, draws.counts, scipy.special.gammaln
    mixtures = []
    for alpha in (np.full(n.size, 0.5), 1 / K):
        each = alpha[draws.row]
        listed = draws.total(gammaln(c + each) - gammaln(each))
        mixtures.append(gammaln(K * alpha) - gammaln(n + K * alpha) + listed)
    entropy = draws.total(c * np.log(c / n[draws.row]))
    return np.asarray((math.log(2) - np.log(delta) + entropy - np.logaddexp(*mixtures)) / n)


def _value(draws: Draws, delta: Array) -> Array:
    return np.asarray(-np.log(delta) / draws.n)


def _likelihood_ratio(draws: Draws, delta: Array) -> Array:
    return np.asarray(scipy.special.chdtri(draws.K - 1, delta) / (2 * draws.n))


def _kl(draws: Draws, delta: Array) -> Array:
    def apart(x: Array, q: Array) -> Array:
        return np.asarray(scipy.special.xlogy(x, x / q) - x + q)

    low, high, rest = box(draws, delta)
    scale = draws.n + draws.K / 2
    q, empty = (draws.counts + 0.5) / scale[draws.row], 0.5 / scale
    each = draws.total(np.maximum(apart(low, q), apart(high, q)))
    return each + draws.unseen * np.maximum(empty, apart(rest, empty))


def _gaps(draws: Draws, delta: Array) -> Array:
    """Σ gap × deviation on a line: the mass to the left changes where something was seen."""
    order = np.lexsort((draws.places, draws.row))
    row, x, total = draws.row, draws.places[order], np.cumsum(draws.counts[order])
    first = np.searchsorted(row, np.arange(draws.n.size))
    below = total - (total[first] - draws.counts[order][first])[row]  # draws up to here
    last = np.append(row[1:] != row[:-1], True)
    gap = np.where(last, draws.ends[row, 1], np.append(x[1:], 0.0)) - x
    n, each = draws.n[row], delta / (draws.K - 1)
    low, high = clopper_pearson(below, n, each[row])
    start = clopper_pearson(np.zeros(draws.n.size), draws.n, each)[1]
    start = start * (x[first] - draws.ends[:, 0])
    return np.asarray(start + draws.total(gap * np.maximum(high - below / n, below / n - low)))


def _transport(draws: Draws, delta: Array) -> Array:
    if draws.ends is None:
        return np.asarray(draws.diameter * _tv(draws, delta))

    def blind(draws: Draws, delta: Array) -> Array:
        return np.asarray(draws.diameter * np.sqrt(np.log(2 / delta) / (2 * draws.n)))

    return np.asarray(np.minimum(_smaller(draws, delta, blind, _gaps), draws.diameter))


ROW = {"l1": _l1, "tv": _tv, "l2": _l2, "linf": _linf, "burg": _burg, "kl": _kl}
METHODS: dict[str, dict[str, Bound]] = {
    "row": {**ROW, "transport": _transport},
    "log": {"burg": _burg_log},
    "value": {"burg": _value, "kl": _value},
    "asymptotic": {"burg": _likelihood_ratio, "kl": _likelihood_ratio},
}
"""Radius of each row by promise and metric, of draws (R,) and δ (R,)."""
LIMITS = {"l1": 2.0, "tv": 1.0, "l2": math.sqrt(2), "linf": 1.0, "burg": 50.0, "kl": 50.0}
"""From where a row can be anything; a divergence of 50 leaves e⁻⁵⁰ of what was seen."""
