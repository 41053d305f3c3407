"""The robust Bellman operator from the definition of the ball, by cvxpy, state by state: slow,
proved and independent.

With z_a(t) = c(s, a, t) + λ v(t), the ball B_s of `drmdp.Wasserstein` and min and max swapped by
duality,

    F(v)_s = min_{x ∈ Δ} max_{y ∈ B_s} Σ_a x_a Σ_i w_i y_ia·z_a = max_{y ∈ B_s} min_a Σ_i w_i
    y_ia·z_a.

No answer of a solver is believed. The kernels it returns are made exactly feasible, which bounds F
from below, and its multipliers, whatever they are, bound F from above by weak duality; both bounds
are evaluated here in NumPy. If they are more than `TOL` apart, relative to what the step can gain,
the reference raises `Unproved`.

Only the public data of the model (kernels, costs, weights, discount, available, terminal) and the
fields of the ball are used, nothing that computes.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy import sparse

TOL = 1e-8
"""Largest admitted gap between the two bounds, relative to the most that nature could gain.

Rounding and a thousandth of it relative to the spread of z come on top.
"""

EPS = np.finfo(float).eps
LINEAR = (
    {
        "solver": cp.HIGHS,
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    },
    {"solver": cp.HIGHS, "presolve": "off", "simplex_scale_strategy": 0},
)
CONIC = tuple(
    {"solver": cp.CLARABEL, "tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol, **more}
    for tol, more in (
        (1e-13, {"equilibrate_enable": False}),  # the data are scaled already
        (1e-12, {"equilibrate_enable": False}),
        (1e-13, {"max_step_fraction": 0.9}),
        (1e-12, {"equilibrate_enable": False, "max_step_fraction": 0.8}),
        (1e-10, {}),
    )
)
"""Settings tried in this order until the bounds meet; the best bounds of all of them count."""

NORM = {"l1": 1, "l2": 2, "linf": np.inf}
DUAL = {"l1": np.inf, "l2": 2, "linf": 1}


class Unproved(AssertionError):  # noqa: N818
    """The bounds of a program are too far apart for it to serve as a reference."""


class Answer(NamedTuple):
    """Solution of the program of one state."""

    value: float
    policy: np.ndarray  # (A,)
    kernels: (
        np.ndarray
    )  # (N, A, S), in the ball and attaining the value; kernels of weight 0 as observed
    gap: float  # proved upper minus proved lower bound


# ---------------------------------------------------------------------- the operators


def robust_update(model, ambiguity, value):
    """F(v)_s = min over policies, max over the ball, (S,); 0 in terminal states."""
    return np.array(
        [solve_state(model, ambiguity, value, s).value for s in range(len(model.terminal))]
    )


def robust_evaluate(model, ambiguity, policy, value):
    """Worst case of one step with the (S, A) policy: max over the ball, (S,); 0 in terminal
    states.
    """
    return np.array(
        [
            solve_state(model, ambiguity, value, s, policy[s]).value
            for s in range(len(model.terminal))
        ]
    )


def solve_state(model, ambiguity, value, s, x=None):
    """Solve the program of state s: for the best policy, or for the policy x, (A,), if one is
    given.
    """
    kernels = dense_kernels(model)[:, s].copy()
    policy = np.zeros(kernels.shape[1])
    if model.terminal[s]:
        return Answer(0.0, policy, kernels, 0.0)
    program = _Program(model, ambiguity, value, s, x)
    optimum, policy[program.actions], move, gap = program.solve()
    for k, a in enumerate(program.actions):
        columns = np.ix_(program.used, [a], np.flatnonzero(program.allowed[a]))
        kernels[columns] += program.unit * move[:, None, program.member[:, k] > 0]
    return Answer(
        float(program.level + program.scale * optimum), policy, kernels, program.scale * gap
    )


class _Program:
    """The program of one state, reduced to what can matter and brought to the scale 1.

    Variables are moves m = (y − ŷ) / unit, (N, K), a column for each pair (a, t) with t allowed;
    values are (value − level) / scale, where the level is the nominal value and the scale bounds
    what nature can add to it. Left out are kernels of weight 0, unavailable actions, and actions
    that never bind: those that cost without any move more than nature can reach in some other
    action or, with a policy x given, those not played.
    """

    def __init__(self, model, ambiguity, value, s, x=None):
        z, y = stakes(model, value)[s], dense_kernels(model)[:, s]
        radius = float(np.broadcast_to(ambiguity.radius, model.terminal.shape)[s])
        self.allowed = allowed = support(model, ambiguity)[s]
        self.used = np.flatnonzero(model.weights > 0)
        actions = np.flatnonzero(model.available[s] if x is None else np.asarray(x) > 0)
        top = np.array([z[a, allowed[a]].max() for a in actions])
        spread = top - [z[a, allowed[a]].min() for a in actions]
        loss = [
            model.weights[self.used] @ y[self.used, a] @ np.where(allowed[a], top[k] - z[a], 0)
            for k, a in enumerate(actions)
        ]
        nominal = top - loss
        # for every metric ‖m‖₁ ≤ K‖m‖, for every order the mean distance is at most the radius
        ceiling = np.minimum(top, nominal + radius * allowed[actions].sum(axis=1) * spread / 2)
        if x is None:
            self.share, self.level, best = None, nominal.min(), ceiling.min()
            keep = nominal <= best
        else:
            self.share, keep = np.asarray(x, dtype=float)[actions], np.full(actions.size, True)
            self.level, best = self.share @ nominal, self.share @ ceiling
        idle = nominal[~keep].min(initial=np.inf)  # what the actions left out cost at least
        self.safest = ceiling[keep].argmin()
        actions, top, spread, nominal = actions[keep], top[keep], spread[keep], nominal[keep]

        self.actions, self.metric, self.order, self.w = (
            actions,
            ambiguity.metric,
            ambiguity.order,
            model.weights[self.used],
        )
        size = (
            np.abs(dense_costs(model)[s][actions][allowed[actions]]).max()
            + model.discount * np.abs(value).max()
        )
        self.spread, self.rounding = (
            float(spread.max()),
            EPS * float(size),
        )  # of z, and of the sums that give it
        self.reach = float(best - self.level)
        self.unit = min(1.0, radius) or 1.0
        self.scale = max(self.reach, 1e-6 * self.unit * self.spread) or 1.0
        self.radius = radius / self.unit
        self.idle = float((idle - self.level) / self.scale)
        self.head = ((nominal - self.level) / self.scale).astype(float) * (x is None)  # (A,)
        owner, t = np.nonzero(allowed[actions])
        self.member = np.eye(actions.size)[owner]  # (K, A)
        self.y = y[self.used][:, actions[owner], t] / self.unit  # (N, K)
        centred = (
            z[actions[owner], t] - (top - spread / 2)[owner]
        )  # only differences matter: moves sum to 0
        self.z = (self.unit * centred / self.scale).astype(float)  # (K,)

    def solve(self):
        """Optimum, policy on `actions`, moves (N, K) and proved gap."""
        policy = np.eye(self.actions.size)[self.safest] if self.share is None else self.share
        move, lower, upper = (
            np.zeros(self.y.shape),
            0.0,
            self.reach / self.scale,
        )  # no move, any move
        if self.reach <= 16 * self.rounding:  # also when the radius is 0 or z is constant
            return upper / 2, policy, move, upper
        m = cp.Variable(self.y.shape)
        rows, positive = m @ self.member == 0, m >= -self.y
        gains = self.head + cp.multiply(self.z, self.w @ m) @ self.member
        if self.share is None:
            objective = cp.Variable()
            binding = [gains >= objective]
        else:
            objective, binding = self.share @ gains, []
        problem = cp.Problem(
            cp.Minimize(-objective), [rows, positive, self._ambiguity(m), *binding]
        )
        for settings in CONIC if self.metric == "l2" or self.order not in (1, math.inf) else LINEAR:
            with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
                warnings.simplefilter(
                    "ignore", UserWarning
                )  # "inaccurate": we judge that ourselves
                problem.solve(**settings)
            if problem.status not in cp.settings.SOLUTION_PRESENT:
                continue
            x = self.share if self.share is not None else _distribution(binding[0].dual_value)
            feasible = self._feasible(m.value)
            attained = self._attained(feasible)
            bound = self._bound(x, rows.dual_value, positive.dual_value)
            if attained > lower:
                lower, move = attained, feasible
            if bound < upper:
                upper, policy = bound, x
            if upper - lower <= TOL / 10:
                break
        if not upper - lower <= TOL + (TOL / 1000 * self.spread + self.rounding) / self.scale:
            raise Unproved(
                f"bounds {upper - lower:.1e} apart in units of {self.scale:.1e} ({problem.status})"
            )
        return (lower + upper) / 2, policy, move, upper - lower

    def _ambiguity(self, m):
        """Constraint that the moves lie in the ball."""
        if self.metric == "l2" and self.order == 2:
            return (
                cp.norm(cp.vec(cp.multiply(np.sqrt(self.w)[:, None], m), order="C"), 2)
                <= self.radius
            )
        far = {"l1": cp.norm1, "l2": cp.norm2, "linf": cp.norm_inf}[self.metric](m, axis=1)
        if self.order not in (1, math.inf):
            return cp.pnorm(cp.multiply(self.w ** (1 / self.order), far), self.order) <= self.radius
        return far <= self.radius if self.order == math.inf else self.w @ far <= self.radius

    def _feasible(self, m):
        """Bring moves into the ball: take no more than there is, gain what is lost, shrink to the
        radius.
        """
        up, down = np.maximum(m, 0), np.clip(-m, 0, self.y)
        gained, lost = up @ self.member, down @ self.member
        least = np.minimum(gained, lost)
        up *= (least / np.where(gained > 0, gained, 1)) @ self.member.T
        down *= (least / np.where(lost > 0, lost, 1)) @ self.member.T
        far = np.linalg.norm(up - down, NORM[self.metric], axis=1)
        if self.order != math.inf:
            far = _mean(far, self.w, self.order)[None]
        return (up - down) * np.minimum(1, self.radius / np.maximum(far, self.radius))[:, None]

    def _attained(self, m):
        """Value of the moves."""
        gains = self.head + (self.z * (self.w @ m)) @ self.member
        return min(gains.min(), self.idle) if self.share is None else self.share @ gains

    def _bound(self, x, rows, positive):
        """Upper bound on the value of the policy x over the ball, valid for *any* multipliers of
        the constraints.

        ``rows`` (N, A) belongs to Σ_t m = 0 and ``positive`` (N, K) to m ≥ −ŷ / unit. What they
        leave of the gradient is paid for at the price of the ball, its dual norm.
        """
        positive = np.maximum(positive, 0)
        rest = self.w[:, None] * (self.z * (self.member @ x)) - rows @ self.member.T + positive
        size = np.linalg.norm(rest, DUAL[self.metric], axis=1)
        price = size / self.w
        most = price.max() or 1.0
        power = {1: math.inf, math.inf: 1.0}.get(self.order) or self.order / (self.order - 1)
        norm = (
            price.max()
            if power == math.inf
            else most * (self.w @ (price / most) ** power) ** (1 / power)
        )
        return x @ self.head + (positive * self.y).sum() + self.radius * norm


def _distribution(x):
    """Make a policy of multipliers; any policy gives a valid bound."""
    x = np.maximum(x, 0)
    return x / x.sum() if x.any() else np.full(x.size, 1 / x.size)


# ---------------------------------------------------------------------- checking kernels and
# answers


def distance(model, ambiguity, kernels):
    """Distance of an (N, S, A, S) tuple from the data, (S,): (Σ_i w_i d(y_i, ŷ_i)^p)^(1/p), or the
    largest d.
    """
    move = np.where(model.available[:, :, None], dense_kernels(model) - kernels, 0)
    flat = move.reshape(*move.shape[:2], -1)
    return _mean(
        np.linalg.norm(flat, NORM[ambiguity.metric], axis=2), model.weights, ambiguity.order
    )


def violation(model, ambiguity, kernels):
    """How far an (N, S, A, S) tuple is from being in the ball, (S,): the largest of all its
    violations.
    """
    open_pairs, used = model.available[:, :, None], model.weights > 0
    y = kernels[used]
    wrong = np.maximum(-y, np.where(support(model, ambiguity), 0, np.abs(y))).max(axis=0)
    sums = np.abs(y.sum(axis=3, keepdims=True) - 1).max(axis=0)
    rows = np.where(open_pairs, np.maximum(wrong, sums), 0).max(axis=(1, 2))
    return np.maximum(
        rows, distance(model, ambiguity, kernels) - np.broadcast_to(ambiguity.radius, rows.shape)
    )


def payoff(model, value, policy, kernels):
    """Σ_a x_a Σ_i w_i Σ_t y_ia(t) (c(s, a, t) + λ v(t)), (S,), at an (S, A) policy and an (N, S, A,
    S) tuple.
    """
    mean = np.tensordot(model.weights, kernels, axes=1) * (policy * model.available)[:, :, None]
    return np.where(mean != 0, mean * stakes(model, value), 0).sum(axis=(1, 2)).astype(float)


def tolerance(model, ambiguity, value, relative=1e-7, policy=None):
    """By how much a result may miss the reference, (S,): `relative` to the spread of z, plus what
    rounding explains.

    The spread is that of the actions that can matter; a level common to all z, or an action that is
    far too expensive, does not loosen it. Rounding is that of costs and values, even if they
    cancel.
    """
    out = np.zeros(model.terminal.shape)
    for s in np.flatnonzero(~model.terminal):
        program = _Program(model, ambiguity, value, s, None if policy is None else policy[s])
        out[s] = relative * program.spread + 64 * program.rounding
    return out


def _mean(far, w, order):
    """Mean of order p of the distances along axis 0."""
    if order == math.inf:
        return far[w > 0].max(axis=0)
    return np.tensordot(w, far**order, axes=1) ** (1 / order)


# ---------------------------------------------------------------------- the data of a model, dense


def dense_kernels(model):
    """(N, S, A, S) array of the kernels."""
    S, A = model.available.shape
    given = model.kernels
    return (
        given
        if isinstance(given, np.ndarray)
        else np.stack([k.toarray().reshape(S, A, S) for k in given])
    )


def dense_costs(model):
    """(S, A, S) array of the costs; NaN where unknown."""
    S, A = model.available.shape
    given = model.costs
    if sparse.issparse(given):
        known = given.tocoo()
        costs = np.full((S * A, S), np.nan)
        costs[known.coords] = known.data
        return costs.reshape(S, A, S)
    return given if given.ndim == 3 else np.repeat(given[:, :, None], S, axis=2)


def stakes(model, value):
    """Cost z = c(s, a, t) + λ v(t) of each transition, (S, A, S), in extended precision; NaN where
    unknown.
    """
    long = np.longdouble
    return dense_costs(model).astype(long) + long(model.discount) * np.asarray(value, dtype=long)


def support(model, ambiguity):
    """Which next states may receive mass, (S, A, S)."""
    if ambiguity.support == "all":
        S = len(model.terminal)
        return np.repeat(model.available[:, :, None], S, axis=2)
    seen = (dense_kernels(model)[model.weights > 0] > 0).any(axis=0) & model.available[:, :, None]
    return (
        seen.any(axis=1, keepdims=True) & model.available[:, :, None]
        if ambiguity.support == "state"
        else seen
    )
