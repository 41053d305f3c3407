"""The ℓ2 row: the projection path y(t) = Proj_Δ(ŷ + t u) = (ŷ + t u − τ)⁺.

One pass at (t, τ), with sums over the active entries {ŷ + t u > τ} (c their number; s_y, s_u, s_uu, s_yu; s_i = Σ ŷ² over the others):

    mass     M = s_y + t s_u − c τ                                     (1 when τ is right)
    Newton   τ⁺ = (s_y + t s_u − 1)/c,   and while the active set stays, τ(t) = (s_y + t s_u − 1)/c for every t
    value    V = y·u = s_yu + t s_uu − τ⁺ s_u,    distance  E = ‖y − ŷ‖² = t² s_uu − 2 t τ⁺ s_u + c τ⁺² + s_i
    slopes   D = dV/dt = s_uu − s_u²/c,           dE/dt = 2 t D
    dual     Φ(τ) = τ + t s_yu − τ s_y + ½ (t² s_uu − 2 t τ s_u + c τ²) − ½ s_i  ≥  max_{y∈Δ} t u·y − ½ ‖y − ŷ‖²   for every τ.

Unlisted states have ŷ = 0 and are active iff u > τ/t: a prefix of the sorted u, counted by a search and summed by prefix sums; listed
entries of that prefix are in those sums already.
"""

from __future__ import annotations

from numba import njit

from drmdp.bellman.layout import FAST


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def listed_sums(y, u, scale, t, tau):  # type: ignore[no-untyped-def]
    """c, s_y, s_u, s_uu, s_yu, s_i over the listed entries, all of them counted."""
    c = 0.0
    sy = 0.0
    su = 0.0
    suu = 0.0
    syu = 0.0
    si = 0.0
    for j in range(y.size):
        p = y[j] * scale
        m = 1.0 if p + t * u[j] > tau else 0.0
        mu = m * u[j]
        c += m
        sy += m * p
        su += mu
        suu += mu * u[j]
        syu += mu * p
        si += (1.0 - m) * p * p
    return c, sy, su, suu, syu, si


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def listed_sums_beside(y, u, scale, t, tau):  # type: ignore[no-untyped-def]
    """The same, but c, s_u, s_uu leave out the entries with t u > τ, which the prefix sums hold."""
    c = 0.0
    sy = 0.0
    su = 0.0
    suu = 0.0
    syu = 0.0
    si = 0.0
    for j in range(y.size):
        p = y[j] * scale
        tu = t * u[j]
        m = 1.0 if p + tu > tau else 0.0
        own = m if tu <= tau else 0.0
        mu = own * u[j]
        c += own
        sy += m * p
        su += mu
        suu += mu * u[j]
        syu += m * p * u[j]
        si += (1.0 - m) * p * p
    return c, sy, su, suu, syu, si


@njit(cache=True, nogil=True)
def prefix_length(u, t, tau, guess):  # type: ignore[no-untyped-def]
    """#{t u > τ} for u in descending order, galloping from a guess."""
    n = u.size
    lo = min(max(guess, 0), n)
    hi = lo
    step = 1
    if lo < n and t * u[lo] > tau:
        while hi < n and t * u[hi] > tau:
            lo = hi + 1
            hi += step
            step *= 2
        hi = min(hi, n)
    else:
        while lo > 0 and not t * u[lo - 1] > tau:
            hi = lo - 1
            lo -= step
            step *= 2
        lo = max(lo, 0)
    while lo < hi:
        mid = (lo + hi) // 2
        if t * u[mid] > tau:
            lo = mid + 1
        else:
            hi = mid
    return lo


@njit(cache=True, nogil=True, error_model="numpy")
def row_sums(y, u, scale, t, tau, order, unlisted, guess):  # type: ignore[no-untyped-def]
    """Sums of one row at (t, τ), and the length of the prefix."""
    if not unlisted:
        c, sy, su, suu, syu, si = listed_sums(y, u, scale, t, tau)
        return c, sy, su, suu, syu, si, 0
    k = prefix_length(order.u, t, tau, guess)
    c, sy, su, suu, syu, si = listed_sums_beside(y, u, scale, t, tau)
    return c + k, sy, su + order.sum1[k], suu + order.sum2[k], syu, si, k


@njit(cache=True, nogil=True)
def safe_threshold(y, u, scale, t, order, unlisted):  # type: ignore[no-untyped-def]
    """A τ from which Newton's method is monotone: max(ŷ + t u) − 1."""
    most = t * order.u[0] if unlisted else -1e300
    for j in range(y.size):
        most = max(most, y[j] * scale + t * u[j])
    return most - 1.0
