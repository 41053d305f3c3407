"""The proof of re-weighting; see `drmdp.certificate.compressed`.

With ℓ_i = Σ_a x_a ŷ_ia·u, which is at most 0 (the costs of a policy are the same for all kernels), U is a bound on max q·ℓ:

* kl, burg, chi2: top + span (B + h(t))/t at t = τ span, h the dual of `drmdp.certificate.rows` for the row w and the stakes (ℓ − top)/span; any τ will do;
* tv: B c + Σ w max(ℓ, top − c) for any c ≥ 0;        cvar: η + Σ w (ℓ − η)⁺/level for any η;        any: top.

L is the value of the mixture handed over: its positive part, divided by its sum, measured by definition and pulled towards w by the share that the ball allows.

**Rounding.** Losses have one sign, so that they are off by (n + A) ε, relatively, n being the depth of the sums behind them; U is of losses raised by that,
for it grows with them. Stakes take
4 ε of the span and of the top, a bound made of N terms (N + 16) ε of their sizes, (B + h)/t another 8 ε of its own. Worths are lowered by (n + N + 16) ε,
relatively.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from drmdp._typing import Array
from drmdp.certificate.rows import burg, chi2, kl
from drmdp.certificate.sums import EPS, depth, finish, normalise, weigh_rows
from drmdp.core.compiled import INLINE, KERNEL, LEAN, njit
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets.reweighting import Reweighting

KL, BURG, CHI2, TV, CVAR, ANY = range(6)
KINDS = {"kl": KL, "burg": BURG, "chi2": CHI2, "tv": TV, "cvar": CVAR, "any": ANY}
OFF = 4  # how far a weight may be off, in ε, relatively


@njit(**LEAN)
def _cut(w, loss, mass):
    """A loss above which there is less than some mass, and from which on there is as much.

    reads   w (N,), loss (N,), mass
    returns it; any other would do
    """
    lo, hi, found = -np.inf, np.inf, loss[0]
    for k in range(w.size):
        pivot = loss[(k * 7919) % w.size]
        if not (pivot > lo and pivot < hi):
            continue
        above, here = 0.0, 0.0
        for i in range(w.size):
            above += w[i] if loss[i] > pivot else 0.0
            here += w[i] if loss[i] == pivot else 0.0
        found = pivot
        if above >= mass:
            lo = pivot
        elif above + here < mass:
            hi = pivot
        else:
            break
    return found


@njit(**LEAN)
def _dual(kind, t, w, u):
    """Bound on the conjugate of a row model.

    reads   kind, t, w (N,), u (N,)
    returns it
    """
    if kind == KL:
        return kl.dual(t, w, 1.0, u, OFF)
    if kind == BURG:
        return burg.dual(t, w, 1.0, u, OFF)
    return chi2.dual(t, w, 1.0, u, OFF)


@njit(**LEAN)
def _above(kind, size, w, loss, tau, u):
    """Bound on what nature gets of losses.

    reads   kind, size (radius or level), w (N,), loss (N,) ≤ 0, tau
    fills   u (N,)
    returns the bound, its margin included
    """
    top, low, mean = -np.inf, np.inf, 0.0
    for i in range(w.size):
        top, low = max(top, loss[i]), min(low, loss[i])
        mean += w[i] * loss[i]
    span, more = top - low, (w.size + 16) * EPS
    if kind == ANY:
        return top
    if kind == CVAR:
        eta, extra = _cut(w, loss, size), 0.0
        for i in range(w.size):
            extra += w[i] * max(loss[i] - eta, 0.0)
        bound = eta + extra / size * (1.0 + more) + more * (abs(eta) + abs(top)) if size > 0.0 else top
        return min(bound, top)
    if kind == TV:
        eta, total = _cut(w, loss, 1.0 - size), 0.0
        for i in range(w.size):
            total += w[i] * max(loss[i], eta)
        paid = size * (top - eta)
        return min(paid + total + more * (paid + abs(total)), top)
    if not size > 0.0:
        return min(mean + more * abs(mean), top)
    t = tau * span
    if not (t > 0.0 and t < 1e300):
        return top
    for i in range(w.size):
        u[i] = (loss[i] - top) / span
    half = 0.5 * size if kind == CHI2 else size
    dual = _dual(kind, t, w, u)
    gain = (half + dual) / t + 8.0 * EPS * (half + abs(dual)) / t
    bound = top + span * gain + 4.0 * EPS * (span * (1.0 + abs(gain)) + abs(top))
    return min(bound, top) if math.isfinite(bound) else top


@njit(**LEAN)
def _mass(q):
    """Sum of the positive part of a mixture; 0 if it is none."""
    total = 0.0
    for i in range(q.size):
        if not q[i] < np.inf:
            return 0.0
        total += max(q[i], 0.0)
    return total if total < np.inf else 0.0


@njit(**INLINE)
def _moved(z, mass, w):
    """Bound on the total variation Σ (z/mass − w)⁺; differences are off by n ε (z/mass + w), in all by 2 n ε.

    reads   z (N,), mass, w (N,)
    returns the bound
    """
    total = 2.0 * (2 * w.size + OFF + 16) * EPS
    for i in range(w.size):
        total += max(z[i] / mass - w[i], 0.0)
    return total


@njit(**LEAN)
def _share(kind, size, w, q, mass, z):
    """Share of the way from w to a mixture that is surely allowed.

    reads   kind, size (radius or level), w (N,), q (N,), mass
    fills   z (N,): its positive part
    returns the share
    """
    if not mass > 0.0:
        return 0.0
    for i in range(w.size):
        z[i] = max(q[i], 0.0)
    if kind == ANY:
        return 1.0
    if kind == CVAR:
        share = 1.0
        for i in range(w.size):
            over = z[i] / mass * (1.0 + (w.size + 8) * EPS) - w[i]
            spare = w[i] / size - w[i] * (1.0 + 8.0 * EPS) if size > 0.0 else np.inf
            if over > spare:
                share = min(share, max(spare, 0.0) / over * (1.0 - 8.0 * EPS))
        return share
    if kind == KL:
        cost = kl.cost(z, 0.0, mass, w, 1.0, OFF + w.size)
    elif kind == BURG:
        cost = burg.cost(z, 0.0, mass, w, 1.0, OFF + w.size)
    elif kind == CHI2:
        cost = chi2.cost(z, 0.0, mass, w, 1.0, OFF + w.size)
    else:
        cost = _moved(z, mass, w)
    allowed = 0.5 * size if kind == CHI2 else size
    return 1.0 if cost <= allowed else allowed / cost * (1.0 - 8.0 * EPS) if cost < np.inf else 0.0


@njit(**INLINE)
def _worth(w, q, mass, share, row, terms):
    """Lower bound on what an action is worth under a pulled mixture, without cost.

    reads   w (N,), q (N,), mass, share, row (N,): ŷ·u, terms (depth of the sums)
    returns the bound
    """
    total = 0.0
    for i in range(w.size):
        part = w[i] + share * (max(q[i], 0.0) / mass - w[i]) if share > 0.0 else w[i]
        total += max(part, 0.0) * row[i]
    return (1.0 + (terms + w.size + 16) * EPS) * total - 4.0 * EPS


@njit(**KERNEL)
def states(kind, start, stop, layout, view, claim, bounds, work):
    """Prove L, U and the share of nature's move for the states start … stop − 1 that are not terminal.

    reads   kind, layout, view, claim
    fills   bounds, work
    """
    (A, N), w, memory = work.own.shape, layout.weights, claim.memory
    loss, u, z = work.kernels[0], work.kernels[1], work.kernels[2]
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        x, size, K, q = claim.policy[s], layout.radius[s], 0, memory.by_kernel[s]
        for i in range(N):
            loss[i] = 0.0
        for a in range(A):
            if layout.available[s, a]:
                K = max(K, layout.indptr[s * A + a + 1] - layout.indptr[s * A + a])
                weigh_rows(layout, s, a, work)
        terms = depth(K) + 16
        for a in range(A):
            if x[a] > 0.0:
                for i in range(N):
                    loss[i] += x[a] * work.own[a, i] * (1.0 - (terms + A) * EPS)
        above = _above(kind, size, w, loss, memory.by_action[s, 0], u)
        mass = _mass(q)
        share = _share(kind, size, w, q, mass, z) if memory.by_action[s, 0] > 0.0 else 0.0  # else it was not asked
        for i in range(N):
            bounds.share[s, i] = share
        for a in range(A):
            if layout.available[s, a]:
                work.worth[a] = _worth(w, q, mass, share, work.own[a], terms)
        finish(s, base, unit, min(above, 0.0), layout, view, claim, bounds, work)


# ---------------------------------------------------------------------- mixtures of any origin


@njit(**KERNEL)
def pull(kind, sizes, w, q):
    """Bring mixtures into the ball, towards w.

    reads   kind, sizes (R,), w (N,)
    fills   q (R, N)
    """
    for r in range(q.shape[0]):
        z = q[r]
        mass = _mass(z)
        share = _share(kind, sizes[r], w, z, mass, z)
        for i in range(w.size):
            z[i] = w[i] + share * (z[i] / mass - w[i]) if share > 0.0 else w[i]


def inside(model: Model, ball: Reweighting, kernel: Any) -> Any:
    """Mean kernel (S, A, S), or sparse (S·A, S), of mixtures that are surely allowed.

    `kernel` holds mixtures, (S, N), with "sa" (S, A, N). Or it is a kernel (S, A, S), or sparse; then the mixtures nearest to it are taken. A mixture
    outside of the ball is moved towards the weights until it is inside.
    """
    (S, A), N, each = model.available.shape, model.n_kernels, ball.rectangular == "sa"
    shape = (S, A, N) if each else (S, N)
    used = model.weights > 0
    w = model.weights[used] / math.fsum(model.weights[used])
    if not sparse.issparse(kernel) and np.shape(kernel) == shape:
        q = np.array(kernel, dtype=np.float64)[..., used]
    elif not isinstance(kernel, tuple) and np.shape(kernel) in ((S, A, S), (S * A, S)):
        q = _nearest(model, kernel, each)
    else:
        raise InputError(
            f"kernel: expected mixtures of shape {shape}, or a kernel of shape {(S, A, S)}, got {np.shape(kernel)}"
        )
    rows = np.ascontiguousarray(q.reshape(-1, w.size))
    pull(KINDS[ball.kind], np.ascontiguousarray(ball.radii(model)).ravel(), w, rows)
    full = np.zeros((S, A, N))
    full[:, :, used] = rows.reshape(S, A if each else 1, w.size)
    return _mixed(model, full)


def _mixed(model: Model, q: Array) -> Any:
    """Σ_i q_i ŷ_i, q being (S, A, N)."""
    if model.is_sparse:
        pairs = q.reshape(-1, q.shape[2])
        return sum(sparse.diags_array(pairs[:, i]) @ kernel for i, kernel in enumerate(model.kernels))
    return np.einsum("sai,isat->sat", q, model.kernels)


def _nearest(model: Model, kernel: Any, each: bool) -> Array:
    """Mixtures whose kernels are nearest to a kernel, in the sense of least squares: (S, N'), or (S, A, N')."""
    (S, A), used = model.available.shape, model.weights > 0
    N = int(used.sum())
    q = np.tile(model.weights[used], (S, A, 1))
    for s in range(S):
        own = np.flatnonzero(model.available[s])
        rows = model.blocks.dense(s, s + 1)[0][own][:, used]  # (A', N, S)
        given = (
            kernel[s * A + own].toarray() if sparse.issparse(kernel) else np.asarray(kernel).reshape(S, A, S)[s, own]
        )
        given = np.where(np.isfinite(given), given, 0.0)
        parts = [([k], [a]) for k, a in enumerate(own.tolist())] if each else [(list(range(own.size)), own.tolist())]
        for places, actions in parts:
            if places:
                left = np.concatenate([*rows[places].transpose(0, 2, 1), np.full((1, N), 10.0)])
                q[s, actions] = nnls(left, np.concatenate([*given[places], [10.0]]))[0]
    return q if each else np.asarray(q[np.arange(S), model.available.argmax(axis=1)])


class Proof(NamedTuple):
    """A kind, as `drmdp.certificate.compressed` and `drmdp.certificate.membership` want it."""

    states: Any
    inside: Any


KL_PROOF, BURG_PROOF, CHI2_PROOF, TV_PROOF, CVAR_PROOF, ANY_PROOF = (
    Proof(partial(states, number), inside) for number in KINDS.values()
)
