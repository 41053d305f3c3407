"""(ℓ2, ∞): the exact update by a joint Newton iteration in policy, multipliers and thresholds, a pass over the candidate rows each.

Normalised as in `drmdp.bellman.layout`. With φ_i(x) = max { Σ_a x_a u_a·y_ia : Σ_a ‖y_ia − ŷ_ia‖² ≤ θ² } the update minimises the convex
f(x) = Σ_a x_a cost_a + Σ_i w_i φ_i(x). Nature answers x with y_ia = y(t_ia), t_ia = κ_i x_a (`rows_l2`), where κ_i solves Σ_a E_ia = θ². For *every*
κ > 0 and all thresholds, Φ and E taken at t_ia,

    U = Σ_a x_a cost_a + Σ_i w_i [½ θ² + Σ_a Φ_ia] / κ_i      bounds the worst case of x from above,
    L = min_a cost_a + Σ_i w_i [ρ_i V_ia + (1 − ρ_i) V⁰_ia]   bounds F̄ from below, ρ_i = min(1, θ/√Σ_a E_ia): scaled kernels are feasible

(V⁰_ia ≥ −1 is all L needs of a row that is scaled). So κ need not be solved for. While active sets stay, V_ia = V_ia(0) + t D_ia and
Σ_a E_ia = e_i + κ_i² Σ_a x_a² D_ia, hence κ_i(x)² = (θ² − e_i) / Σ_a x_a² D_ia, and f becomes, with r_i² = θ² − e_i,

    m(x) = Σ_a x_a (cost_a + Σ_i w_i V_ia(0)) + Σ_i w_i r_i √(Σ_a x_a² D_ia),
    ∇m = cost_a + Σ_i w_i (V_ia(0) + κ_i x_a D_ia),   ∇²m = Σ_i w_i κ_i [diag(D_i) − (D_i∘x)(D_i∘x)ᵀ / Σ_a x_a² D_ia].

An iteration takes one pass at (x, κ, τ), one Newton step on m (`qp`), and moves κ and τ along. As a function of κ², Σ_a E_ia is concave and
piecewise linear, so the step in κ alone is monotone from the left and finite.

**Saturation.** Kernels i whose rows are all at the top for every played action have budget left for the others, κ_i = ∞ with κ_i·0 = t_ia. The policy is
therefore kept ≥ `LEAST` on the candidate actions cost_a + V⁰_a < U (no other action is ever bent): then f is differentiable, all leftovers are shared
by the same multipliers, in whatever proportions of tiny x_a that takes, and nothing changes but U, by LEAST·A at most. Probabilities
below `DROP` are left out of the policy that is returned, and of U. U never exceeds 0, the value of an unconstrained nature; when
that cap binds the policy is the single action that attains it.

If the joint iteration has not settled after `JOINT` passes, a nested one takes over: κ and τ exact at each x, and a line search on f.

Memory: by_action holds x with its tiny entries, by_kernel κ, by_row τ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman import l2_2
from drmdp.bellman.layout import Order, largest_state, prologue, row_scales
from drmdp.bellman.qp import simplex_qp
from drmdp.bellman.rows_l2 import row_sums, safe_threshold

LEAST = 1e-13
DROP = 1e-11
JOINT = 15
NESTED = 60
SEARCH = 20
INNER = 20
NEAR = 1e300
PROBE = 1e-13
RATIO = 1e300
MASS = 1e-12  # a row is settled when its mass is this close to 1
FAR = 1e28  # of κ


class State(NamedTuple):
    """One normalised state."""

    y: Array  # N rows per action
    ptr: Array  # (A + 1,) where each action's entries begin
    u: Array  # entries
    w: Array  # (N,)
    cost: Array  # (A,), inf where unavailable
    nominal: Array  # (A,)
    theta: float
    order: Order
    unlisted: bool
    scale: Array  # (A, N)


class Work(NamedTuple):
    """Scratch memory."""

    rows: Array  # (A, 7, N): c, s_y, s_u, V, E, D, Φ of each row
    kernels: Array  # (6, N): ΣE, Σx²D, excess, r, Σz²D and root of each kernel
    target: Array  # (A,)
    share: Array  # (A,)
    kappa: Array  # (N,)
    tau: Array  # (A, N)
    own: Array  # (A,) int64, the candidates
    side: Array  # (A, N) square root of the rank-one terms
    H: Array  # (A, A)
    vectors: Array  # (7, A), by candidates
    factor: Array  # (A, A)
    index: Array  # (2, A) int64


@njit(cache=True, nogil=True)
def workspace(A, N):  # type: ignore[no-untyped-def]
    """Scratch memory for A actions and N kernels."""
    return Work(
        np.empty((A, 7, N)), np.empty((6, N)), np.empty(A), np.empty(A), np.empty(N), np.empty((A, N)),
        np.empty(A, dtype=np.int64), np.empty((A, N)), np.empty((A, A)), np.empty((7, A)), np.empty((A, A)), np.empty((2, A), dtype=np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def action_pass(state, a, share, kappa, tau, close, rows):  # type: ignore[no-untyped-def]
    """One pass over the rows of an action at t = κ·share; moves τ by a Newton step, returns how far the masses were from 1.

    A row is repeated while its mass is further than `close` from 1. Below t = `PROBE` rounding would hide which entries are active: there
    the row is taken at PROBE and V, E are those of its first piece; Φ ≤ t V + t² n/8, n the number of its next states, takes the place of Φ.
    """
    lo, hi = state.ptr[a], state.ptr[a + 1]
    K, N = hi - lo, kappa.size
    ua = state.u[lo:hi]
    scale = state.scale[a]
    slack = 0.0
    k = 0
    for i in range(N):
        row = state.y[N * lo + i * K : N * lo + (i + 1) * K]
        t = max(kappa[i] * share, PROBE)
        th = tau[i]
        c, sy, su, suu, syu, si, k = row_sums(row, ua, scale[i], t, th, state.order, state.unlisted, k)
        mass = sy + t * su - c * th
        repeats = 0
        while not abs(mass - 1.0) <= close and repeats < 60:
            if c < 0.5 or not math.isfinite(th):
                th = safe_threshold(row, ua, scale[i], t, state.order, state.unlisted)
            else:
                th = (sy + t * su - 1.0) / c
            c, sy, su, suu, syu, si, k = row_sums(row, ua, scale[i], t, th, state.order, state.unlisted, k)
            mass = sy + t * su - c * th
            repeats += 1
        rows[6, i] = th + t * syu - th * sy + 0.5 * (t * t * suu - 2.0 * t * th * su + c * th * th) - 0.5 * si
        slack = max(slack, abs(mass - 1.0))
        th = (sy + t * su - 1.0) / c
        tau[i] = th
        D = max(suu - su * su / c, 0.0)
        rows[0, i] = c
        rows[1, i] = sy
        rows[2, i] = su
        rows[3, i] = syu + t * suu - th * su
        rows[4, i] = max(t * t * suu - 2.0 * t * th * su + c * th * th + si, 0.0)
        rows[5, i] = D
        if kappa[i] * share < PROBE:
            t = kappa[i] * share
            rows[6, i] = t * rows[3, i] + 0.125 * t * t * max(K, state.order.u.size)
            rows[3, i] -= (PROBE - t) * D
            rows[4, i] = t * t * D
    return slack


@njit(cache=True, nogil=True, error_model="numpy")
def one_pass(state, share, kappa, tau, close, work):  # type: ignore[no-untyped-def]
    """Pass over the rows of all candidates; returns U of the policy without its tiny entries, what it attains, and L.

    Also fills ΣE and Σx²D of each kernel.
    """
    A, N = share.size, kappa.size
    theta2 = state.theta * state.theta
    w = state.w
    spent, curvature, excess = work.kernels[0], work.kernels[1], work.kernels[2]
    slack = 0.0
    played = 0.0
    upper = 0.0
    for i in range(N):
        spent[i] = 0.0
        curvature[i] = 0.0
        upper += w[i] * 0.5 * theta2 / kappa[i]
    for a in range(A):
        x = share[a]
        if x > 0.0:
            rows = work.rows[a]
            slack = max(slack, action_pass(state, a, x, kappa, tau[a], close, rows))
            dual = 0.0
            for i in range(N):
                spent[i] += rows[4, i]
                curvature[i] += x * x * rows[5, i]
                dual += w[i] * rows[6, i] / kappa[i]
            if x >= DROP:
                played += x
                upper += x * state.cost[a] + dual
    for i in range(N):
        excess[i] = 1.0 - state.theta / math.sqrt(spent[i]) if spent[i] > theta2 else 0.0
    lower = np.inf
    attained = 0.0
    for a in range(A):
        value = state.nominal[a]
        if share[a] > 0.0:
            rows = work.rows[a]
            K = state.ptr[a + 1] - state.ptr[a]
            value = -4.0 * slack if slack > MASS else 0.0
            for i in range(N):
                value += w[i] * rows[3, i]
                if excess[i] > 0.0:
                    gain = min(1.0 + rows[3, i], 0.5 * math.sqrt((rows[0, i] + K) * rows[4, i]))
                    value -= w[i] * excess[i] * gain
            attained += share[a] * (state.cost[a] + value)
        lower = min(lower, state.cost[a] + value)
    return upper / played, attained, lower if math.isfinite(attained) else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def screen(state, share, kappa, tau, upper, least, work):  # type: ignore[no-untyped-def]
    """Let in the actions that must be bent, let go those that need not; list the candidates and return their number."""
    count = 0
    for a in range(share.size):
        bent = state.cost[a] + state.nominal[a] < upper
        if not bent and share[a] <= 1.01 * least:
            share[a] = 0.0
            continue
        if not share[a] > 0.0:
            share[a] = least
            tau[a] = np.nan
            action_pass(state, a, least, kappa, tau[a], 0.1, work.rows[a])
            for i in range(kappa.size):
                work.kernels[0, i] += work.rows[a, 4, i]
                work.kernels[1, i] += least * least * work.rows[a, 5, i]
        work.own[count] = a
        count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def linearise(state, share, kappa, count, work):  # type: ignore[no-untyped-def]
    """Fill the model m: r_i in work.kernels[3], 0 where far too much is spent, and the linear part in work.vectors[0].

    Returns whether all κ are near those of the model.
    """
    N = kappa.size
    theta2 = state.theta * state.theta
    spent, curvature, radius = work.kernels[0], work.kernels[1], work.kernels[3]
    near = True
    for i in range(N):
        bent = kappa[i] * kappa[i] * curvature[i]
        rest = theta2 - spent[i] + bent
        radius[i] = math.sqrt(rest) if rest > 0.0 else 0.0
        near = near and rest > 0.0 and rest < NEAR * bent + FAR * (1.0 if curvature[i] <= 1e-300 else 0.0)
    for r in range(count):
        a = work.own[r]
        rows = work.rows[a]
        total = state.cost[a]
        for i in range(N):
            shift = kappa[i] * share[a] * rows[5, i] if radius[i] > 0.0 else 0.0
            total += state.w[i] * (rows[3, i] - shift)
        work.vectors[0, r] = total
    return near


@njit(cache=True, nogil=True, error_model="numpy")
def model(state, x, count, work):  # type: ignore[no-untyped-def]
    """Value of m at the candidates' policy x; fills Σx²D in work.kernels[4]."""
    N = state.w.size
    curvature = work.kernels[4]
    curvature[:] = 0.0
    value = 0.0
    for r in range(count):
        value += x[r] * work.vectors[0, r]
        D = work.rows[work.own[r], 5]
        for i in range(N):
            curvature[i] += x[r] * x[r] * D[i]
    for i in range(N):
        value += state.w[i] * work.kernels[3, i] * math.sqrt(curvature[i])
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def model_gradient(state, x, count, least, g, work):  # type: ignore[no-untyped-def]
    """Fill g = ∇m(x) after `model`; returns (x − least)·(g − min g)."""
    N = state.w.size
    root = work.kernels[5]  # √(w_i κ_i / Σx²D)
    for i in range(N):
        S = work.kernels[4, i]
        root[i] = math.sqrt(state.w[i] * work.kernels[3, i] / (S * math.sqrt(S))) if S > 1e-300 else 0.0
    lowest = np.inf
    for r in range(count):
        D = work.rows[work.own[r], 5]
        total = work.vectors[0, r]
        for i in range(N):
            work.side[r, i] = x[r] * D[i] * root[i]
            total += work.side[r, i] * root[i] * work.kernels[4, i]
        g[r] = total
        lowest = min(lowest, total)
    residual = 0.0
    for r in range(count):
        residual += (x[r] - least) * (g[r] - lowest)
    return residual


@njit(cache=True, nogil=True, error_model="numpy")
def model_hessian(x, count, N, work):  # type: ignore[no-untyped-def]
    """Fill work.H = ∇²m(x) after `model_gradient`; the diagonal without cancellation."""
    H, side = work.H, work.side
    for r in range(count):
        D = work.rows[work.own[r], 5]
        diagonal = 0.0
        for i in range(N):
            root = work.kernels[5, i]
            diagonal += D[i] * root * root * max(work.kernels[4, i] - x[r] * x[r] * D[i], 0.0)
        H[r, r] = diagonal
        for c in range(r):
            product = 0.0
            for i in range(N):
                product += side[r, i] * side[c, i]
            H[r, c] = -product
            H[c, r] = -product


@njit(cache=True, nogil=True, error_model="numpy")
def minimise_model(state, share, count, least, goal, work):  # type: ignore[no-untyped-def]
    """Minimise m from the policy, over policies ≥ least, until (x − least)·(g − min g) ≤ goal; the minimiser is in work.target."""
    N = state.w.size
    point, g, inside, z = work.vectors[1], work.vectors[2], work.vectors[3], work.vectors[4]
    rest = 1.0 - count * least
    for r in range(count):
        point[r] = share[work.own[r]]
    value = model(state, point, count, work)
    for step in range(INNER):
        residual = model_gradient(state, point, count, least, g, work)
        if step > 0 and residual <= goal:
            break
        model_hessian(point, count, N, work)
        for r in range(count):
            inside[r] = max((point[r] - least) / rest, 0.0)
        if not simplex_qp(work.H, g, inside, count, 0, z, work.vectors[5], work.vectors[6], work.factor, work.index):
            break
        slope = 0.0
        for r in range(count):
            z[r] = least + rest * z[r] - point[r]
            slope += g[r] * z[r]
        part = 1.0
        trial = inside
        for halving in range(30):
            for r in range(count):
                trial[r] = max(point[r] + part * z[r], least)
            new = model(state, trial, count, work)
            if new <= value + 1e-4 * part * slope + 1e-15:
                break
            part *= 0.5
        for r in range(count):
            point[r] = trial[r]
        value = new
    work.target[:] = 0.0
    for r in range(count):
        work.target[work.own[r]] = point[r]


@njit(cache=True, nogil=True, error_model="numpy")
def move(state, share, kappa, tau, target, work):  # type: ignore[no-untyped-def]
    """Go to the policy `target`; κ and τ follow while active sets stay."""
    A, N = share.size, kappa.size
    radius, curvature = work.kernels[3], work.kernels[4]
    size = 0.0
    curvature[:] = 0.0
    for a in range(A):
        share[a] = target[a]
        if share[a] > 0.0:
            size += share[a] * share[a]
            for i in range(N):
                curvature[i] += share[a] * share[a] * work.rows[a, 5, i]
    for i in range(N):
        if not radius[i] > 0.0:  # far too much was spent: start from the left
            kappa[i] = 0.5 * min(kappa[i], state.theta / math.sqrt(size))
        elif curvature[i] > 1e-300:
            kappa[i] = min(radius[i] / math.sqrt(curvature[i]), FAR)
        else:  # all of it is at the top
            kappa[i] = FAR
    for a in range(A):
        if share[a] > 0.0:
            for i in range(N):
                tau[a, i] = (work.rows[a, 1, i] + kappa[i] * share[a] * work.rows[a, 2, i] - 1.0) / work.rows[a, 0, i]


@njit(cache=True, nogil=True, error_model="numpy")
def cold_start(state, mean, tol, share, kappa, tau, x):  # type: ignore[no-untyped-def]
    """Policy and multipliers of (ℓ2, 2) with the mean kernel alone."""
    A = share.size
    one = np.ones((A, 1))
    t = np.zeros(A)
    upper, _, passes = l2_2.solve_state(
        mean, state.ptr, 1, state.u, one[0], state.cost, state.nominal, state.theta, tol, state.order, state.unlisted,
        one, t, np.empty((A, 1)), x, np.empty((A, 1, 3)), np.empty((A, 5)), np.empty(A),
    )  # fmt: skip
    total = 0.0
    for a in range(A):
        total += t[a]
    for a in range(A):
        share[a] = t[a] / total
    kappa[:] = total
    if not upper < 0.0:  # only leftovers bend the other actions
        most = 1e-300
        small = 1e300
        for a in range(A):
            if x[a] <= 0.0 and t[a] > 0.0:
                most = max(most, t[a])
                small = min(small, t[a])
        small = max(min(small, most), 1e-4 * most)
        for a in range(A):
            share[a] = 1.0 if x[a] > 0.0 else LEAST * max(t[a] / small, 1.0) if t[a] > 0.0 else 0.0
        kappa[:] = small / LEAST
    tau[:] = np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def usable(state, share, kappa):  # type: ignore[no-untyped-def]
    """Whether a policy and multipliers can be started from; normalises the policy on what may be a candidate."""
    total = 0.0
    for a in range(share.size):
        if not (share[a] > 0.0 and share[a] < 1e100 and state.cost[a] + state.nominal[a] < 0.0):
            share[a] = 0.0
        total += share[a]
    good = total > 1e-100
    for i in range(kappa.size):
        good = good and kappa[i] > 1e-100 and kappa[i] <= FAR
    if good:
        for a in range(share.size):
            if share[a] > 0.0:
                share[a] = max(share[a] / total, LEAST)
    return good


@njit(cache=True, nogil=True, error_model="numpy")
def joint(state, tol, share, kappa, tau, work):  # type: ignore[no-untyped-def]
    """Newton steps in policy, multipliers and thresholds at once; returns raw U, L and passes."""
    upper = np.inf
    lower = -np.inf
    for iteration in range(JOINT):
        upper, attained, lower = one_pass(state, share, kappa, tau, 0.1, work)
        if min(upper, 0.0) - lower <= tol or iteration == JOINT - 1:
            break
        count = screen(state, share, kappa, tau, min(upper, 0.0), LEAST, work)
        settled = linearise(state, share, kappa, count, work)
        outer = attained - lower
        if settled and upper - attained <= RATIO * outer:
            minimise_model(state, share, count, LEAST, max(0.1 * outer * min(outer, 1.0), 0.01 * tol), work)
        else:  # κ first
            work.target[:] = share
        move(state, share, kappa, tau, work.target, work)
    return upper, lower, iteration + 1


@njit(cache=True, nogil=True, error_model="numpy")
def follow(state, mean, tol, share, kappa, tau, x, work):  # type: ignore[no-untyped-def]
    """Follow the solution as the radius grows: raw U, L and passes.

    Near saturation f is all but kinked, and only between the kinks a Newton step sees them; a solution at a smaller radius lies there.
    """
    good = 0.5  # share of the radius that is solved, if any
    last = 0.0
    reach = 0.9
    passes = 0
    cold_start(smaller(state, good), mean, tol, share, kappa, tau, x)
    upper, lower = np.inf, -np.inf
    for attempt in range(60):
        upper, lower, more = joint(smaller(state, good), tol, share, kappa, tau, work)
        passes += more
        if min(upper, 0.0) - lower <= tol:
            if good >= 1.0:
                break
            last = good
            work.share[:] = share
            work.kappa[:] = kappa
            work.tau[:] = tau
            reach = min(2.0 * reach, 0.9)
        elif last > 0.0:
            share[:] = work.share
            kappa[:] = work.kappa
            tau[:] = work.tau
            reach *= 0.3
        else:
            good *= 0.5
            cold_start(smaller(state, good), mean, tol, share, kappa, tau, x)
            continue
        good = last + reach * (1.0 - last)
        if 1.0 - good < 1e-12:
            good = 1.0
    return upper, lower, passes


@njit(cache=True, nogil=True, error_model="numpy")
def smaller(state, part):  # type: ignore[no-untyped-def]
    return State(
        state.y, state.ptr, state.u, state.w, state.cost, state.nominal, part * state.theta, state.order, state.unlisted,
        state.scale,
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def solve_state(state, mean, tol, share, kappa, tau, x, work):  # type: ignore[no-untyped-def]
    """Solve one normalised state from the policy, multipliers and thresholds left behind (zeros: cold); fill all and x; return U, L, passes.

    `mean` is the mean kernel in the layout of state.u.
    """
    A = share.size
    first = 0  # attains the cap
    lowest = 0
    for a in range(A):
        if state.cost[a] < state.cost[first]:
            first = a
        if state.cost[a] + state.nominal[a] < state.cost[lowest] + state.nominal[lowest]:
            lowest = a
    start = state.cost[lowest] + state.nominal[lowest]
    if state.theta <= 0.0 or start >= -tol:
        share[:] = 0.0
        x[:] = 0.0
        x[lowest if state.theta <= 0.0 else first] = 1.0
        return start if state.theta <= 0.0 else 0.0, start, 0
    if not usable(state, share, kappa):
        cold_start(state, mean, tol, share, kappa, tau, x)
    upper, lower, passes = joint(state, tol, share, kappa, tau, work)
    if not min(upper, 0.0) - lower <= tol:
        upper, lower, more = follow(state, mean, tol, share, kappa, tau, x, work)
        passes += more
    x[:] = 0.0
    if not upper < 0.0:
        upper = 0.0
        x[first] = 1.0
    else:
        total = 0.0
        for a in range(A):
            if share[a] >= DROP:
                total += share[a]
        for a in range(A):
            x[a] = share[a] / total if share[a] >= DROP else 0.0
    return upper, lower, passes


@njit(cache=True, nogil=True, error_model="numpy")
def update(start, stop, layout, order, value, top, span, tol, memory, out):  # type: ignore[no-untyped-def]
    """Update the states start … stop − 1 that are not terminal."""
    A, N = layout.available.shape[1], layout.weights.size
    u, cost, nominal = np.empty(largest_state(layout, start, stop)), np.empty(A), np.empty(A)
    scale, work = np.ones((A, N)), workspace(A, N)
    for s in range(start, stop):
        base, unit = prologue(layout, value, top, span, s, u, cost, nominal)
        if not base < np.inf:  # terminal
            continue
        row_scales(layout, s, scale)
        first, last = layout.indptr[s * A], layout.indptr[(s + 1) * A]
        state = State(
            layout.data[N * first : N * last], layout.indptr[s * A : (s + 1) * A + 1] - first, u, layout.weights,
            cost, nominal, layout.radius[s], order, layout.unlisted, scale,
        )  # fmt: skip
        upper, lower, out.passes[s] = solve_state(
            state, layout.mean[first:last], tol, memory.by_action[s], memory.by_kernel[s], memory.by_row[s],
            out.policy[s], work,
        )  # fmt: skip
        out.upper[s], out.lower[s] = base + unit * upper, base + unit * lower
