"""Kernels that surely are nature's: bring claimed kernels into the set of mean kernels.

Nature plays ȳ = Σ_i w_i y_i with a tuple y in the set. A tuple can be checked; a mean kernel
cannot, before a tuple of that mean is known. `inside` searches for it, state by state, and where
there is none goes back towards the data mean m, to the last ȳ_λ = m + λ(ȳ − m), λ ≤ 1, that it
attains. The quality of the search decides only how large λ gets: each tuple is brought to the mean
ȳ_λ exactly, its distance is measured, and `dense.feasible` decides.

**Fractions.** From every y_i take the fraction f_t = (Σ_i w_i y_i(t) − ȳ(t))⁺ / Σ_i w_i y_i(t) of
its mass at t, and spread what kernel i loses in proportion to (ȳ − Σ_i w_i y_i)⁺. The mean becomes
ȳ, whatever y was. From ŷ this moves Σ_i w_i ‖y_i − ŷ_i‖₁ = ‖ȳ − m‖₁ in each row, and no tuple moves
less: for (ℓ1, 1) nothing else is needed. A tuple whose mean is nearly ȳ hardly moves.

**Shifts.** y_i = ŷ_i + ȳ − m, where not negative, is best for every pair: by Jensen's inequality no
tuple of that mean is nearer than d(ȳ, m).

**ℓ1 and ℓ∞** are linear programs (`membership_linear`), **ℓ2** is a least-squares problem
(`membership_squares`).

**Tilts.** These are tuples of least cost, for divergences around the kernels. For one action, rows
ŷ_i, weights w and a mean ȳ:

    min Σ_i w_i Σ_j ŷ_ij f(y_ij/ŷ_ij)    subject to    Σ_j y_ij = 1,  Σ_i w_i y_ij = ȳ_j,  y ≥ 0.

With one price θ_j for each next state the kernels separate, and the best rows are those of the
data, tilted alike:

    y_ij = ŷ_ij h(θ_j − τ_i),   h = (f′)⁻¹,   τ_i such that the row sums to 1;

    kl: h(t) = eᵗ,   chi2: (1 + t/2)⁺,   burg: −1/t.

The dual θ·ȳ − Σ_i w_i max_y (y·θ − cost) is concave, its slope is ȳ − Σ_i w_i y_i, and with d_ij =
ŷ_ij h′ its curvature is −Σ_i w_i (diag d_i − d_i d_iᵀ/Σ_j d_ij): damped Newton steps. Where ȳ is 0,
so is y, which burg does not allow, and `SEED` lets burg go where ŷ is 0. The result is that of a
search: the caller measures the tuple.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray
from drmdp.certificate import dense
from drmdp.errors import InputError, first_place, unexpected
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load, part_of

ENOUGH = 1e-10
"""Remaining part of the way to ȳ at which a search ends."""
MAX_ENTRIES = 200_000
"""Probabilities of a state beyond which the search is limited to fractions and shifts."""
PRECISE = 1e-13
"""Error of the mean left to fractions."""
STEPS, TRIES, ROOTS = 100, 20, 100
NEAR = 1e-14
"""Error of a mean, added up, that counts as 0."""
SEED = 1e-9
"""Initial mass for burg, to which new next states cost nothing, where a row has no mass."""


def inside(model: Model, ambiguity: AmbiguitySet, kernel: Any) -> Any:
    """Mean kernel (S, A, S) that nature can play: `kernel` itself if it is one, up to rounding.

    `kernel` is a mean kernel (S, A, S) or an N-tuple (N, S, A, S); or sparse, and then so is the
    result: a matrix (S·A, S) or a tuple of N of them. Its rows are first clipped to the allowed
    next states and divided by their sums, empty ones replaced by the data. Unavailable rows are not
    read and come back 0. The proof of a set may have an `inside` that is asked instead.
    """
    routine = getattr(part_of(entry_of(ambiguity).certificate, ambiguity), "inside", None)
    if routine is not None:
        return routine(model, ambiguity, kernel)
    of_tuple = isinstance(kernel, tuple) or np.ndim(kernel) == 4
    is_sparse = isinstance(kernel, tuple) or sparse.issparse(kernel)
    if not is_sparse:
        _check(model, kernel)
    S, used = model.n_states, model.weights > 0
    out = []
    for start, stop in dense.ranges(model, 0, S):
        data = dense.block(model, ambiguity, np.zeros(S), start, stop)
        claimed = _block(kernel, used, start, stop, model.n_actions)
        if of_tuple:
            rows = ambiguity.centred(claimed, model.weights[used])[0]
            y = dense.distributions(rows, data.allowed[:, :, None], data.nominal)
        else:
            mean = mean_of(data.nominal, data.weights)
            y = _tuple(ambiguity, data, dense.distributions(claimed, data.allowed, mean))
        mean_rows = mean_of(dense.feasible(ambiguity, data, y), data.weights)
        out.append(sparse.csr_array(mean_rows.reshape(-1, S)) if is_sparse else mean_rows)
    return sparse.vstack(out, format="csr") if is_sparse else np.concatenate(out)


def _block(kernel: Any, used: BoolArray, start: int, stop: int, A: int) -> Array:
    """Rows of the states start … stop − 1, dense: (n, A, S), or (n, A, N, S) of a tuple without its
    kernels of weight 0.
    """
    if isinstance(kernel, tuple):
        parts = [_block(kernel[i], used, start, stop, A) for i in np.flatnonzero(used)]
        return np.stack(parts, axis=2)
    if sparse.issparse(kernel):
        return np.asarray(kernel[start * A : stop * A].toarray().reshape(stop - start, A, -1))
    if kernel.ndim == 4:
        return np.asarray(kernel[used, start:stop].transpose(1, 2, 0, 3))
    return np.asarray(kernel[start:stop])


def _check(model: Model, kernel: Array) -> None:
    N, S, A = model.n_kernels, model.n_states, model.n_actions
    if kernel.shape not in ((N, S, A, S), (S, A, S)):
        expected = f"shape {(S, A, S)} for a mean kernel or {(N, S, A, S)} for an N-tuple"
        raise unexpected("kernel", expected, kernel.shape)
    if where := first_place(~np.isfinite(kernel) & model.available[:, :, None]):
        s, a, t = where[-3:]
        place = f"kernel {model.kernel_names[where[0]]!r}, " if kernel.ndim == 4 else ""
        place += model.labels.pair(s * A + a)
        number = f"next state {model.states[t]!r} has {float(kernel[where])!r}"
        raise InputError(f"kernel: probabilities must be finite: {place}, {number}")


def mean_of(y: Array, weights: Array) -> Array:
    """Mean (…, S) of tuples (…, N, S)."""
    return np.asarray(np.einsum("i,...ij->...j", weights, y))


# ---------------------------------------------------------------------- all pairs


class StateData:
    """The data of a state, available actions only, and the goal of its mean."""

    def __init__(
        self, ambiguity: Any, nominal: Array, weights: Array, goal: Array, radius: float
    ) -> None:
        self.ambiguity, self.weights, self.radius = ambiguity, weights, radius
        self.nominal, self.goal = nominal, goal  # ŷ, (A, N, K), and ȳ, (A, K)
        self.mean = mean_of(nominal, weights)  # m, (A, K)
        self.way = goal - self.mean
        self.used = (self.mean > 0) | (goal > 0)  # next states that ȳ_λ may have, (A, K)

    def towards(self, goal: Array) -> StateData:
        """The same state with another goal."""
        return StateData(self.ambiguity, self.nominal, self.weights, goal, self.radius)

    def target(self, share: float) -> Array:
        """ȳ_λ, (A, K); exactly ȳ for λ = 1."""
        return (1 - share) * self.mean + share * self.goal

    def apart(self, y: Array) -> float:
        """Distance of a tuple from ŷ."""
        return float(self.ambiguity.apart(y, self.nominal, self.weights).max())

    def parts(self) -> list[StateData]:
        """One for each action where the search separates over them, else the state itself."""
        if self.ambiguity.pair not in (("linf", math.inf), ("l2", 2)):
            return [self]
        rows = zip(self.nominal[:, None], self.goal[:, None], strict=True)
        return [StateData(self.ambiguity, y, self.weights, x, self.radius) for y, x in rows]


def _tuple(ambiguity: AmbiguitySet, data: dense.RawStates, goal: Array) -> Array:
    """Tuple (n, A, N, S) in the set, up to rounding, whose mean goes from m towards the goal (n, A,
    S).
    """
    if ambiguity.by_pair:
        n, A, N, S = data.nominal.shape
        return _tuple(ambiguity.each, data.by_pair(), goal.reshape(n * A, 1, S)).reshape(n, A, N, S)
    nominal, weights = data.nominal, data.weights
    routine = getattr(part_of(entry_of(ambiguity).certificate, ambiguity), "attain", None)
    if routine is not None:
        return np.asarray(routine(ambiguity, data, goal))
    y = attain(nominal, weights, goal)
    apart = ambiguity.apart(y, nominal, weights).max(axis=-1)
    share = dense.share_within(data.radius, apart)
    y = nominal + share[:, None, None, None] * (y - nominal)
    nearest = entry_of(ambiguity).nearest
    if not nearest:
        return y
    for k in np.flatnonzero((share < 1 - ENOUGH) & (data.radius > 0)):
        actions = data.available[k]
        used = ((mean_of(nominal[k], weights) + goal[k])[actions] > 0).any(axis=0)
        corner, means = np.ix_(actions, np.arange(weights.size), used), goal[k][actions][:, used]
        state = StateData(ambiguity, nominal[k][corner], weights, means, float(data.radius[k]))
        for search in (_shift, load(nearest)):
            way, rows = search(state)
            pull = state.radius / max(state.apart(rows), state.radius)
            if way * pull > share[k]:
                share[k] = way * pull
                y[k][corner] = state.nominal + pull * (rows - state.nominal)
            if share[k] >= 1 - ENOUGH or state.nominal.size > MAX_ENTRIES:
                break
    return y


def attain(y: Array, weights: Array, target: Array) -> Array:
    """Bring tuples (…, N, S) to the mean `target` (…, S) by fractions."""
    mean = mean_of(y, weights)
    fraction = (np.maximum(mean - target, 0.0) / np.where(mean > 0, mean, 1.0))[..., None, :]
    gain = np.maximum(target - mean, 0.0)[..., None, :]
    total = gain.sum(axis=-1, keepdims=True)
    lost = (y * fraction).sum(axis=-1, keepdims=True)
    spread = lost * (gain / np.where(total > 0, total, 1.0))
    return np.where(total > 0, y * (1 - fraction) + spread, y)


def _shift(state: StateData) -> tuple[float, Array]:
    y = project(state.nominal + state.way[:, None], state.used)
    return 1.0, attain(y, state.weights, state.goal)


def project(points: Array, used: BoolArray) -> Array:
    """Nearest distributions, on the used columns (A, K), to points (A, N, K)."""
    points = np.where(used[:, None], points, -np.inf)
    # 1 below the largest is 0 already
    points = np.maximum(points - points.max(axis=2, keepdims=True), -2.0)
    ordered = np.sort(points, axis=2)[..., ::-1]
    level = (np.cumsum(ordered, axis=2) - 1) / np.arange(1, points.shape[2] + 1)
    last = (ordered > level).sum(axis=2, keepdims=True) - 1
    return np.maximum(points - np.take_along_axis(level, last, axis=2), 0.0)


# ---------------------------------------------------------------------- divergences


def tilted(state: StateData) -> tuple[float, Array]:
    """The rows of each action, tilted to the mean of the goal; 0 and the data where no tilt has
    it.
    """
    rows = []
    for y, goal in zip(state.nominal, state.goal, strict=True):
        tilted_rows = _action_rows(state.ambiguity.kind, y, state.weights, goal)
        if tilted_rows is None:
            return 0.0, state.nominal
        rows.append(tilted_rows)
    y = np.stack(rows)
    off = np.abs(np.einsum("i,aij->aj", state.weights, y) - state.goal).sum(axis=1).max()
    return max(0.0, 1.0 - float(off)), y


def _action_rows(kind: str, nominal: Array, weights: Array, goal: Array) -> Array | None:
    """The rows (N, K) of an action; None where no tilt has this mean."""
    used = goal > 0
    rows = np.where(used, nominal, 0.0)
    lost = kind == "burg" and bool((nominal > rows).any())
    if kind == "burg":
        rows = np.where(used, np.maximum(rows, SEED), 0.0)
    mean = weights @ rows
    if lost or (mean[used] <= 0).any() or not (rows.sum(axis=1) > 0).all():
        return None
    out, target = np.zeros_like(nominal), goal[used] / goal[used].sum()
    out[:, used] = _newton(kind, rows[:, used], weights, target, mean[used])
    return out


def _newton(kind: str, y: Array, w: Array, goal: Array, mean: Array) -> Array:
    ratio = goal / mean
    theta = {"kl": np.log(ratio), "chi2": 2 * (ratio - 1), "burg": -1 / ratio}[kind]
    z, d, worth = _tilt(kind, y, theta)
    slope, height = goal - w @ z, goal @ theta - w @ worth
    for _ in range(STEPS):
        error = np.abs(slope).sum()
        if error <= NEAR:
            break
        curve = np.diag(w @ d) - (d * (w / d.sum(axis=1))[:, None]).T @ d
        size = np.trace(curve) / theta.size
        for k in range(TRIES):
            damped = curve + size * (1 / theta.size + 1e-13 * 10.0**k * np.eye(theta.size))
            try:
                step = np.linalg.solve(damped, slope)
            except np.linalg.LinAlgError:  # squares of small probabilities vanish: damp more
                continue
            point = theta + step
            tried = _tilt(kind, y, point)
            new, high = goal - w @ tried[0], goal @ point - w @ tried[2]
            if np.abs(new).sum() <= 0.9 * error or high > height + 1e-4 * (slope @ step):
                break
        else:
            break
        theta, (z, d, _), slope, height = point, tried, new, high
    return z


def _tilt(kind: str, y: Array, theta: Array) -> tuple[Array, Array, Array]:
    """Rows tilted by θ, their derivatives (N, K), and the worth of each: y·θ − cost."""
    with np.errstate(all="ignore"):
        if kind == "kl":
            top = theta.max()
            z = y * np.exp(theta - top)
            mass = z.sum(axis=1, keepdims=True)
            z /= mass
            return z, z, np.log(mass[:, 0]) + top
        tau = _level(kind, y, theta)
        t = theta - tau
        if kind == "chi2":
            h = np.maximum(1 + t / 2, 0.0)
            z, d, cost = y * h, y * (h > 0) / 2, y * (h - 1) ** 2
        else:
            h = -1 / t
            z, d, cost = y * h, y * h * h, -y * np.log(h)
        z_theta, d, cost = (np.where(y > 0, part, 0.0) for part in (z * theta, d, cost))
        worth = z_theta.sum(axis=1) - cost.sum(axis=1)
        return z / z.sum(axis=1, keepdims=True), d, worth


def _level(kind: str, y: Array, theta: Array) -> Array:
    """τ (N, 1), by Newton's method from the left, where sums are 1 at least; they fall and are
    convex in τ.
    """
    tau: Any = (y @ theta)[:, None] / y.sum(axis=1, keepdims=True)
    if kind == "burg":
        tau = np.where(y > 0, theta + y, -np.inf).max(axis=1, keepdims=True)
    for _ in range(ROOTS):
        t = theta - tau
        h = np.maximum(1 + t / 2, 0.0) if kind == "chi2" else -1 / t
        bend = (h > 0) / 2 if kind == "chi2" else h * h
        over = np.where(y > 0, y * h, 0.0).sum(axis=1, keepdims=True) - 1
        step = over / np.where(y > 0, y * bend, 0.0).sum(axis=1, keepdims=True)
        tau = tau + step
        if not (np.abs(step) > 1e-16 * (1 + np.abs(tau))).any():
            break
    return np.asarray(tau)
