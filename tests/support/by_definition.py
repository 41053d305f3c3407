"""The robust Bellman operator of any set, from the definition of the set, by cvxpy, state by state: slow and independent.

For each state the program max γ such that γ ≤ Σ_i w_i y_ia·z_a for every a, y in the set, or with a policy x the program max Σ_a x_a Σ_i w_i y_ia·z_a. The
answer is as good as the solver's; tests compare with a tolerance, or with the bounds of their own.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

import reference

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def divergence(kind, y, nominal):
    """D(y ‖ ŷ) of rows (n, K) as an expression, and what must be 0 for it to be finite."""
    seen = (nominal > 0).astype(float)
    away = cp.multiply(1 - seen, y)
    if kind == "kl":
        return cp.sum(cp.rel_entr(y, np.where(nominal > 0, nominal, 1.0))), [away == 0]
    if kind == "chi2":
        return cp.sum(cp.multiply(seen / np.where(nominal > 0, nominal, 1.0), cp.square(y - nominal))), [away == 0]
    if kind == "burg":
        return cp.sum([p * (np.log(p) - cp.log(y[k])) for k, p in np.ndenumerate(nominal) if p > 0]), []
    return cp.sum(cp.abs(y - nominal)) / 2, []


def constraints(ball, y, nominal, weights, radius):
    """Membership of N-tuples y[a] (N, K) in the set of one state, `radius` (A,) or a number."""
    if type(ball).__name__ == "Divergence":
        rows = [(y[a], nominal[a]) for a in range(len(y))]
        if ball.around == "mean":
            rows = [
                (cp.reshape(weights @ one, (1, one.shape[1]), order="C"), (weights @ own)[None]) for one, own in rows
            ]
        each, out = [], []
        for one, own in rows:
            w = weights if ball.around == "kernels" else [1.0]
            parts = [divergence(ball.kind, one[i : i + 1], own[i : i + 1]) for i in range(own.shape[0])]
            each.append(sum(w[i] * part for i, (part, _) in enumerate(parts)))
            out += [limit for _, limits in parts for limit in limits]
        if ball.rectangular == "sa":
            return out + [each[a] <= radius[a] for a in range(len(y))]
        return [*out, sum(each) <= radius]
    groups = [[a] for a in range(len(y))] if ball.rectangular == "sa" else [list(range(len(y)))]
    out = []
    for group in groups:
        r = radius[group[0]] if ball.rectangular == "sa" else radius
        apart = [distance(ball, [y[a][i] - nominal[a][i] for a in group]) for i in range(len(weights))]
        if ball.order == np.inf:
            out += [one <= r for one in apart]
        elif ball.order == 1:
            out.append(sum(w * one for w, one in zip(weights, apart, strict=True)) <= r)
        else:
            out.append(cp.norm(cp.hstack([np.sqrt(w) * one for w, one in zip(weights, apart, strict=True)])) <= r)
    return out


def distance(ball, rows):
    return cp.norm(cp.hstack(rows), {"l1": 1, "l2": 2, "linf": "inf"}[ball.metric])


def update(model, ball, value, policy=None):
    """F(v), (S,), or F^x(v) of a policy (S, A); NaN where the solver gave up."""
    kernels, z = reference.dense_kernels(model), reference.stakes(model, value)
    allowed = reference.support(model, ball)
    used = np.asarray(model.weights) > 0
    out = np.zeros(model.n_states)
    for s in range(model.n_states):
        own = np.flatnonzero(model.available[s])
        if model.terminal[s] or own.size == 0:
            continue
        radius = np.broadcast_to(ball.radius, model.n_states) if np.ndim(ball.radius) < 2 else ball.radius
        r = np.broadcast_to(radius[s], model.n_actions)[own] if ball.rectangular == "sa" else radius[s]
        nominal = [kernels[used][:, s, a] for a in own]
        stakes = [np.where(allowed[s, a], z[s, a], 0.0) for a in own]
        out[s] = _solve(
            ball,
            nominal,
            stakes,
            allowed[s, own],
            np.asarray(model.weights)[used],
            r,
            None if policy is None else policy[s, own],
        )
    return out


def _solve(ball, nominal, stakes, allowed, w, radius, x):
    level = min(float(np.where(a, k, np.inf).min()) for a, k in zip(allowed, stakes, strict=True))
    size = max(float(np.where(a, k, -np.inf).max()) for a, k in zip(allowed, stakes, strict=True)) - level or 1.0
    y = [cp.Variable(own.shape, nonneg=True) for own in nominal]
    limits = [cp.sum(one, axis=1) == 1 for one in y]
    limits += [one[:, ~keep] == 0 for one, keep in zip(y, allowed, strict=True) if not keep.all()]
    limits += constraints(ball, y, nominal, w, radius)
    worth = [
        (w @ one) @ np.where(keep, (k - level) / size, 0.0) for one, keep, k in zip(y, allowed, stakes, strict=True)
    ]
    if x is None:
        gamma = cp.Variable()
        problem = cp.Problem(cp.Maximize(gamma), limits + [gamma <= one for one in worth])
    else:
        problem = cp.Problem(cp.Maximize(sum(p * one for p, one in zip(x, worth, strict=True))), limits)
    try:
        problem.solve(solver=cp.CLARABEL, **TIGHT)
    except cp.SolverError:
        return np.nan
    if problem.status not in ("optimal", "optimal_inaccurate"):
        return np.nan
    return level + size * problem.value
