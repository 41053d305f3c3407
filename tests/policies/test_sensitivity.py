"""`drmdp.sensitivity` against enumeration of all policies and dense linear systems."""

import itertools

import numpy as np
import pytest

import drmdp

CRITERIA = ("discounted", "pairs", "total", "average", "stages")
KINDS = (
    "plain",
    "one kernel",
    "one state",
    "one action",
    "ties",
    "zero weights",
    "terminal",
    "masks",
    "next costs",
)


def drawn(rng, kind, criterion):
    """A small model, and what brute force needs of it: rows (N, S, A, S), costs (N, S, A) as costs, and so on."""
    S, A, N = int(rng.integers(2, 5)), int(rng.integers(2, 4)), int(rng.integers(2, 6))
    S, A, N = (1 if kind == f"one {name}" else n for name, n in (("state", S), ("action", A), ("kernel", N)))
    maximise = bool(rng.integers(2))
    terminal = np.zeros(S, dtype=bool)
    if S > 1 and (criterion == "total" or (kind == "terminal" and criterion != "average")):
        terminal[rng.integers(S)] = True
    if criterion == "total" and S == 1:
        terminal[:] = True
    base = rng.dirichlet(np.full(S, 0.7), (S, A))
    rows = np.stack([rng.dirichlet(np.ones(S), (S, A)) * 0.4 + 0.6 * base for _ in range(N)])
    if kind == "plain":  # rows with zeros
        rows = np.where(rows < 0.1, 0.0, rows)
        rows /= rows.sum(axis=-1, keepdims=True)
    costs = rng.normal(size=(S, A, S) if kind == "next costs" else (S, A))
    if criterion == "total":
        costs = np.abs(costs) + 0.1
        rows = 0.9 * rows + 0.1 * terminal / max(terminal.sum(), 1)
    available = np.ones((S, A), dtype=bool)
    if kind == "masks" and A > 1:
        available[np.arange(S), rng.integers(A, size=S)] = rng.random(S) < 0.5
    if kind == "ties":  # the last action is the first one again
        rows[:, :, -1], costs[:, -1] = rows[:, :, 0], costs[:, 0]
    weights = rng.dirichlet(np.ones(N))
    if kind == "zero weights" and N > 1:
        weights[0] = 0.0
        weights /= weights.sum()
    initial = rng.dirichlet(np.ones(S))
    ends = np.where(terminal, rng.normal(size=S), 0.0)
    discount = {
        "discounted": rng.choice([0.0, 0.5, 0.9, 0.999]),
        "total": 1.0,
        "average": 1.0,
        "stages": rng.choice([0.8, 1.0]),
    }.get(criterion, 0.0)
    if criterion == "pairs":
        discount = rng.uniform(0.1, 0.95, (S, A))
    sign = -1.0 if maximise else 1.0
    told = {"rewards" if maximise else "costs": sign * costs}
    final = {int(s): sign * ends[s] for s in np.flatnonzero(terminal)} if criterion != "stages" else terminal
    model = drmdp.Model(
        rows,
        **told,
        discount=discount,
        weights=weights,
        initial=initial,
        available=available,
        terminal=final if terminal.any() else None,
    )
    prices = np.einsum("nsat,sat->nsa", rows, costs) if costs.ndim == 3 else np.broadcast_to(costs, (N, S, A))
    open_ = available & ~terminal[:, None]
    rows = np.where(open_[:, :, None], rows, 0.0)
    return model, rows, np.where(open_, prices, 0.0), (ends if criterion != "stages" else 0 * ends)


def all_policies(model):
    """Every deterministic policy, (K, S, A)."""
    choices = [np.flatnonzero(own) if own.any() else [-1] for own in model.available]
    return np.stack(
        [np.arange(model.n_actions) == np.array(own)[:, None] for own in itertools.product(*choices)]
    ).astype(float)


def solved(model, rows, costs, ends, x, rate):
    """Values (S,) of a policy under one kernel, as costs."""
    chain = np.einsum("sa,sat->st", x, (rate if np.ndim(rate) == 0 else rate[:, :, None]) * rows)
    return np.linalg.solve(np.eye(len(chain)) - chain, np.where(model.terminal, ends, (x * costs).sum(axis=1)))


def followed(model, rows, costs, ends, x, criterion):
    """Mean over the start of a policy or plan under one kernel: stationary distributions for averages, and plans from the first stage on."""
    if criterion == "average":
        n = model.n_states
        flow = np.vstack([np.eye(n) - np.einsum("sa,sat->ts", x, rows), np.ones(n)])
        return np.linalg.lstsq(flow, np.eye(n + 1)[n], rcond=None)[0] @ (x * costs).sum(axis=1)
    if criterion == "stages":
        now, total, rate = np.where(model.terminal, 0.0, model.initial), 0.0, 1.0
        for own in x:
            total += rate * now @ (own * costs).sum(axis=1)
            now, rate = (
                np.where(model.terminal, 0.0, np.einsum("s,sa,sat->t", now, own, rows)),
                rate * model.discount,
            )
        return total
    return model.initial @ solved(model, rows, costs, ends, x, model.factor)


def optima(model, rows, costs, ends, criterion):
    """Best policy under one kernel by enumeration, and which actions are optimal: (S, A), of plans (T, S, A); and whether these are single."""
    if criterion == "stages":
        value, plan, flags = np.zeros(model.n_states), [], []
        for _ in range(STAGES):
            q = np.where(model.available, costs + model.discount * rows @ value, np.inf)
            plan.insert(0, np.eye(model.n_actions)[q.argmin(axis=1)] * ~model.terminal[:, None])
            flags.insert(0, (q <= q.min(axis=1, keepdims=True) + 1e-8) & model.available)
            value = np.where(model.terminal, 0.0, q.min(axis=1))
        return np.stack(plan), np.stack(flags)
    rate = 1 - 1e-5 if criterion == "average" else model.factor
    table = np.stack([solved(model, rows, costs, ends, x, rate) for x in all_policies(model)])
    best = table.min(axis=0)
    ahead = (
        (rate if np.ndim(rate) == 0 else rate[:, :, None]) * rows @ (best if criterion != "average" else best - best[0])
    )
    q = np.where(model.available, costs + ahead, np.inf)
    flags = (q <= q.min(axis=1, keepdims=True) + (1e-4 if criterion == "average" else 1e-8)) & model.available
    return all_policies(model)[(table - best).max(axis=1).argmin()], flags


def check(seed):
    """Everything that is found, against all of the above."""
    rng, criterion, kind = (
        np.random.default_rng(seed),
        CRITERIA[seed % 5],
        KINDS[seed // 5 % len(KINDS)],
    )
    model, rows, costs, ends = drawn(rng, kind, criterion)
    S, A, N = model.n_states, model.n_actions, model.n_kernels
    shape = (STAGES, S, A) if criterion == "stages" else (S, A)
    given = rng.dirichlet(np.ones(A), (3, *shape[:-1])) * model.available
    given[2] = rng.random(shape) < 0.5
    given = given * model.available + 1e-12 * model.available
    given = given / np.where(model.terminal[:, None], 1.0, given.sum(axis=-1, keepdims=True))
    best_plans, flags = zip(
        *(optima(model, y, c, ends, criterion) for y, c in zip(rows, costs, strict=True)),
        strict=True,
    )
    if seed % 3 == 0:
        given[0] = best_plans[-1]
    names = {f"policy {k}": x for k, x in enumerate(given)}
    labels = rng.integers(2, size=N).tolist()
    more = {"criterion": "average"} if criterion == "average" else {}
    result = drmdp.sensitivity(model, names, labels, **more)
    sign, w = (-1.0 if model.maximise else 1.0), model.weights

    def table(policies):
        return np.array(
            [[followed(model, y, c, ends, x, criterion) for y, c in zip(rows, costs, strict=True)] for x in policies]
        )

    v, own = table(given), table(best_plans)
    best = own[np.arange(N), np.arange(N)]
    size = max(1.0, np.abs(v).max())
    near = {"rtol": 0, "atol": (1e-6 if criterion == "average" else 1e-9) * size}
    np.testing.assert_allclose(sign * result.values, v, **near)
    np.testing.assert_allclose(sign * result.best, best, **near)
    np.testing.assert_allclose(result.regret, np.maximum(v - best, 0), **near)
    assert (result.regret >= 0).all()
    assert result.acceptability.sum() == pytest.approx(1)
    apart = np.sort(v, axis=0)
    if (apart[1] - apart[0] > 1e-5 * size).all():
        first = v.argmin(axis=0)
        np.testing.assert_allclose(result.acceptability, [w[first == k].sum() for k in range(3)], atol=1e-12)
    share = sum(w[i] * flags[i] / np.maximum(flags[i].sum(axis=-1, keepdims=True), 1) for i in range(N))
    np.testing.assert_allclose(result.share, share, atol=1e-12)
    np.testing.assert_allclose(result.share.sum(axis=-1), np.broadcast_to(~model.terminal, shape[:-1]), atol=1e-12)
    heavy = w > 0
    least = min((v @ w).min(), (own[heavy] @ w).min())
    if all((flags[i].sum(axis=-1) <= 1).all() for i in np.flatnonzero(heavy)):
        assert result.evpi == pytest.approx(least - w @ best, abs=near["atol"])
    else:  # equals: another of them may be the candidate
        assert result.evpi <= (v @ w).min() - w @ best + near["atol"]
    if criterion not in ("stages", "average"):  # what it bounds
        exact = min(
            (table(all_policies(model)) @ w).min(), (v @ w).min()
        )  # one that draws may be better than all that do not
        assert result.evpi >= exact - w @ best - near["atol"]
    among = v @ w
    evpi_given = among.min() - w @ v.min(axis=0)
    evppi = among.min() - sum((v[:, own] @ w[own]).min() for own in (np.array(labels) == g for g in set(labels)))
    assert result.evpi_given == pytest.approx(evpi_given, abs=near["atol"])
    assert result.evppi == pytest.approx(evppi, abs=near["atol"])
    slack = 1e-12 * size
    assert 0 <= result.evppi <= result.evpi_given + slack
    assert result.evpi_given <= (result.regret @ w).min() + slack
    assert result.evpi <= (result.regret @ w).min() + slack
    if (v @ w).min() <= least:  # no optimum of a kernel is better on average than those given
        assert result.evpi_given <= result.evpi + slack
    return criterion, kind


STAGES = 3


@pytest.mark.parametrize("seed", range(225))
def test_against_enumeration(seed):
    check(seed)
