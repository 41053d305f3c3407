"""`drmdp.sensitivity` against enumeration of all policies and dense linear systems."""

import dataclasses
import itertools
import sys

import numpy as np
import pytest

import drmdp
from drmdp.policies.single_kernels import plan_singles

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
    """A small model, and what brute force needs of it: rows (N, S, A, S), costs (N, S, A) as costs,
    and so on.
    """
    S, A, N = int(rng.integers(2, 5)), int(rng.integers(2, 4)), int(rng.integers(2, 6))
    S, A, N = (
        1 if kind == f"one {name}" else n
        for name, n in (("state", S), ("action", A), ("kernel", N))
    )
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
    if kind == "ties":  # the last action is the first one again, but for rounding
        rows[:, :, -1], costs[:, -1] = (
            rows[:, :, 0],
            costs[:, 0] + 1e-13 * rng.random(costs[:, 0].shape),
        )
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
    final = (
        {int(s): sign * ends[s] for s in np.flatnonzero(terminal)}
        if criterion != "stages"
        else terminal
    )
    model = drmdp.Model(
        rows,
        **told,
        discount=discount,
        weights=weights,
        initial=initial,
        available=available,
        terminal=final if terminal.any() else None,
    )
    prices = (
        np.einsum("nsat,sat->nsa", rows, costs)
        if costs.ndim == 3
        else np.broadcast_to(costs, (N, S, A))
    )
    open_ = available & ~terminal[:, None]
    rows = np.where(open_[:, :, None], rows, 0.0)
    return model, rows, np.where(open_, prices, 0.0), (ends if criterion != "stages" else 0 * ends)


def all_policies(model):
    """Every deterministic policy, (K, S, A)."""
    choices = [np.flatnonzero(own) if own.any() else [-1] for own in model.available]
    return np.stack(
        [
            np.arange(model.n_actions) == np.array(own)[:, None]
            for own in itertools.product(*choices)
        ]
    ).astype(float)


def solved(model, rows, costs, ends, x, rate):
    """Values (S,) of a policy under one kernel, as costs."""
    chain = np.einsum("sa,sat->st", x, (rate if np.ndim(rate) == 0 else rate[:, :, None]) * rows)
    return np.linalg.solve(
        np.eye(len(chain)) - chain, np.where(model.terminal, ends, (x * costs).sum(axis=1))
    )


def followed(model, rows, costs, ends, x, criterion):
    """Mean over the start of a policy or plan under one kernel: stationary distributions for
    averages, and plans from the first stage on.
    """
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
    """Best policy under one kernel by enumeration, and which actions are optimal: (S, A), of plans
    (T, S, A); and whether these are single.
    """
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
        (rate if np.ndim(rate) == 0 else rate[:, :, None])
        * rows
        @ (best if criterion != "average" else best - best[0])
    )
    q = np.where(model.available, costs + ahead, np.inf)
    flags = (
        q <= q.min(axis=1, keepdims=True) + (1e-4 if criterion == "average" else 1e-8)
    ) & model.available
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
            [
                [
                    followed(model, y, c, ends, x, criterion)
                    for y, c in zip(rows, costs, strict=True)
                ]
                for x in policies
            ]
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
        np.testing.assert_allclose(
            result.acceptability, [w[first == k].sum() for k in range(3)], atol=1e-12
        )
    share = sum(
        w[i] * flags[i] / np.maximum(flags[i].sum(axis=-1, keepdims=True), 1) for i in range(N)
    )
    np.testing.assert_allclose(result.share, share, atol=1e-12)
    np.testing.assert_allclose(
        result.share.sum(axis=-1), np.broadcast_to(~model.terminal, shape[:-1]), atol=1e-12
    )
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
    evppi = among.min() - sum(
        (v[:, own] @ w[own]).min() for own in (np.array(labels) == g for g in set(labels))
    )
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


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(225, 2700, 25))
def test_against_enumeration_many_times(seed):
    for k in range(25):
        check(seed + k)


def noisy(seed=0, n_states=6, n_actions=3, n_kernels=4, **more):
    """A model whose kernels differ much."""
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.full(n_states, 0.3), (n_kernels, n_states, n_actions))
    given = {"costs": rng.random((n_states, n_actions)), "discount": 0.9} | more
    return drmdp.Model(kernels, **given)


def test_knowing_the_kernel_may_be_worth_more_to_whoever_chooses_among_bad_policies():
    """Two kernels, each good for one of two bad policies, and a third policy that is best for
    both.
    """
    there = np.zeros((2, 3, 3, 3))
    there[:, 1:, :, 1:] = 0.5
    there[0, 0, 0, 1] = there[0, 0, 1, 2] = there[1, 0, 0, 2] = there[1, 0, 1, 1] = 1.0
    there[:, 0, 2, 2] = 1.0
    model = drmdp.Model(there, costs=[[0] * 3, [10] * 3, [0] * 3], discount=0.5, initial=[1, 0, 0])
    result = drmdp.sensitivity(model, {"first": [0, 0, 0], "second": [1, 0, 0]})
    assert result.evpi == 0
    assert result.evpi_given == pytest.approx(2.5)
    assert result.mean_regret == pytest.approx([2.5, 2.5])


def test_optima_of_kernels_of_weight_0_are_no_candidates():
    """The action that is never far from the best is optimal under the last kernel only."""
    kernels = np.zeros((3, 4, 3, 4))
    kernels[:, 1:, :, 1:] = np.eye(3)[:, None]
    for i, there in enumerate([(1, 2, 3), (2, 1, 3), (2, 2, 3)]):  # cheap, dear, and between
        kernels[i, 0, np.arange(3), there] = 1
    costs = np.repeat([[0.0], [0], [10], [1]], 3, axis=1)
    for weights, evpi in (([0.5, 0.5, 0], 45.0), ([0.49, 0.49, 0.02], 8.82)):
        model = drmdp.Model(
            kernels, costs=costs, discount=0.9, initial=[1, 0, 0, 0], weights=weights
        )
        assert drmdp.sensitivity(model, [0] * 4).evpi == pytest.approx(evpi)


def test_candidates_beyond_a_hundred_are_drawn_by_the_seed():
    model = noisy(n_kernels=150)
    first, again = (drmdp.sensitivity(model, [0] * 6, seed=1) for _ in range(2))
    assert first.evpi == again.evpi
    assert first.notes == ("evpi: beside the policies given, 100 of 150 optima count",)
    exact = min(
        (
            np.array([drmdp.policies.under(model, x, [i])[0] @ model.initial for i in range(150)])
            @ model.weights
        )
        for x in np.unique(
            np.stack([drmdp.sensitivity(one).policies[0] for one in singles(model)]), axis=0
        )
    )
    assert first.evpi >= exact - model.weights @ first.best - 1e-12


def singles(model):
    """Models of one kernel each."""
    return [drmdp.Model(y, costs=model.costs, discount=0.9) for y in model.kernels]


def test_threads_do_not_change_a_bit():
    model = noisy(n_states=20, n_kernels=60)
    one, four = (
        drmdp.sensitivity(model, {"a": [0] * 20, "b": [1] * 20}, threads=n) for n in (1, 4)
    )
    for name in ("values", "best", "share", "reached", "evpi"):
        np.testing.assert_array_equal(getattr(one, name), getattr(four, name))


@pytest.mark.parametrize("criterion", [None, "total", "average"])
@pytest.mark.parametrize("rewards", [False, True])
def test_very_many_states_give_the_same(monkeypatch, criterion, rewards):
    costs = np.random.default_rng(1).random((8, 3)) + 0.1
    end = {"discount": 1.0, "terminal": [0]} if criterion == "total" else {}
    model = noisy(
        n_states=8, **({"rewards": -costs, "costs": None} if rewards else {"costs": costs}), **end
    )
    policies = {"a": [0] * 8, "b": [1] * 8}
    small = drmdp.sensitivity(model, policies, criterion=criterion)
    module = sys.modules["drmdp.policies.kernel_sensitivity"]
    monkeypatch.setattr(module, "DENSE", 4)
    large = drmdp.sensitivity(model, policies, criterion=criterion)
    assert "only the policies given count" in large.notes[0]
    for name in ("values", "best"):
        np.testing.assert_allclose(getattr(large, name), getattr(small, name), rtol=1e-7)
    np.testing.assert_array_equal(large.share, small.share)
    np.testing.assert_array_equal(large.reached, small.reached)
    with pytest.raises(drmdp.InputError, match="rows are replaced in models of up to"):
        large.tornado()


def replaced(model, s, i):
    """The mean kernel with the rows of state s from kernel i."""
    kernel = model.mean_kernel.copy()
    kernel[s] = model.kernels[i][s]
    return kernel


@pytest.mark.parametrize(
    "kind", ["discounted", "pairs", "total", "average", "next costs", "rewards"]
)
def test_single_rows_replaced(kind):
    rng = np.random.default_rng(5)
    more = {"costs": rng.normal(size=(6, 3, 6) if kind == "next costs" else (6, 3))}
    more |= {"rewards": more["costs"], "costs": None} if kind == "rewards" else {}
    more |= {"discount": 1.0, "terminal": [2]} if kind == "total" else {}
    more |= {"discount": rng.uniform(0.2, 0.99, (6, 3))} if kind == "pairs" else {}
    more |= {"discount": 1.0} if kind == "average" else {}
    model = noisy(1, weights=[0.4, 0.3, 0.3, 0.0], initial=rng.dirichlet(np.ones(6)), **more)
    x = model.policy(rng.dirichlet(np.ones(3), 6))
    result = drmdp.sensitivity(model, x, criterion="average" if kind == "average" else None)
    bars = result.tornado()
    near = {"rel": 1e-6 if kind == "average" else 1e-9}
    assert bars.base == pytest.approx(
        drmdp.policies.under(model, x, [None])[0] @ model.initial, **near
    )
    for name, low, high in zip(bars.names, bars.low, bars.high, strict=True):
        moved = np.sort(
            drmdp.policies.under(model, x, [replaced(model, name, i) for i in range(3)])
            @ model.initial
        )
        assert (low, high) == pytest.approx((moved[0], moved[-1]), **near)
    wide = np.maximum(bars.high, bars.base) - np.minimum(bars.low, bars.base)
    assert (np.diff(wide) <= 1e-12).all()


def test_single_rows_of_plans_replaced():
    rng = np.random.default_rng(6)
    models = [noisy(k, terminal=[3]) for k in range(3)]
    plan = rng.dirichlet(np.ones(3), (3, 6))
    final = np.where(models[0].terminal, 0.0, rng.random(6))
    result = drmdp.sensitivity(models, plan, final=final)
    bars = result.tornado()
    for name, low, high in zip(bars.names, bars.low, bars.high, strict=True):
        moved = []
        for i in range(4):
            others = [
                drmdp.Model(replaced(own, name, i), costs=own.costs, discount=0.9, terminal=[3])
                for own in models
            ]
            moved.append(
                drmdp.evaluate(others, drmdp.Wasserstein(0), plan, final=final).value[0]
                @ models[0].initial
            )
        assert (low, high) == pytest.approx((min(moved), max(moved)), rel=1e-9)


def test_plans_agree_with_the_library():
    models = [
        noisy(k, rewards=np.random.default_rng(k).random((6, 3)), costs=None) for k in range(4)
    ]
    plan = drmdp.finite_horizon(models, drmdp.Wasserstein(0.2), final=np.arange(6.0), discount=1.0)
    result = drmdp.sensitivity(models, {"robust": plan, "first": [0] * 6})
    nominal = drmdp.sensitivity(models, final=np.arange(6.0), discount=1.0)
    for i in range(4):
        ones = [drmdp.Model(own.kernels[i], rewards=own.rewards, discount=1.0) for own in models]
        best = drmdp.finite_horizon(ones, drmdp.Wasserstein(0), final=np.arange(6.0))
        assert result.best[i] == pytest.approx(best.value[0].mean())
        assert nominal.best[i] == pytest.approx(best.value[0].mean())
        value = (
            drmdp.evaluate(ones, drmdp.Wasserstein(0), plan.policy, final=np.arange(6.0))
            .value[0]
            .mean()
        )
        assert result.values[0, i] == pytest.approx(value)
    assert result.share.shape == (4, 6, 3)
    assert result.reached.shape == (4, 6)
    assert "reward over 4 stages" in repr(result)
    one = drmdp.sensitivity(models[0], stages=3)
    assert one.policies.shape == (1, 3, 6, 3)
    assert list(one.to_frame("actions").columns) == ["stage", "state", "action", "share", "reached"]


def test_a_policy_that_never_arrives_costs_infinitely_much():
    kernels = np.zeros((2, 3, 2, 3))
    kernels[:, 0, 0, 0] = kernels[:, 1:, :, 2] = 1
    kernels[0, 0, 1], kernels[1, 0, 1] = [0.5, 0, 0.5], [0.9, 0.05, 0.05]
    given = {"discount": 1.0, "terminal": [2]}
    model = drmdp.Model(kernels, costs=[[0.0, 1], [1, 1], [0, 0]], **given)  # waiting costs nothing
    result = drmdp.sensitivity(model, {"wait": [0, 0, 0], "go": [1, 0, 0]})
    np.testing.assert_array_equal(result.values[0], [np.inf, np.inf])
    np.testing.assert_array_equal(result.regret, [[np.inf, np.inf], [0, 0]])
    np.testing.assert_allclose(result.best, [1, 23 / 6])
    assert (result.acceptability.tolist(), result.evpi, result.evpi_given) == ([0, 1], 0, 0)
    assert "inf" in repr(result)
    kernels[:, 1, 0] = [0.5, 0, 0.5]  # half of the time to where the first policy waits for ever
    halfway = drmdp.Model(kernels, costs=[[0.0, 1], [1, 1], [0, 0]], initial=[0, 1, 0], **given)
    result = drmdp.sensitivity(halfway, {"wait": [0, 0, 0], "straight": [0, 1, 0]})
    np.testing.assert_array_equal(result.values, [[np.inf, np.inf], [1, 1]])
    with pytest.raises(
        drmdp.InputError, match="under the mean kernel, to be changed, it never ends"
    ):
        result.tornado("kernel", "wait")
    kernels[:, 1] = [0, 0, 1]
    with pytest.raises(drmdp.InputError, match="its total has no bound"):
        drmdp.sensitivity(drmdp.Model(kernels, costs=[[-1.0, 1], [1, 1], [0, 0]], **given))
    kernels[1, 0, 1] = [1, 0, 0]
    with pytest.raises(drmdp.InputError, match="kernel 'b': nothing leads from state 0 to an end"):
        drmdp.sensitivity(
            drmdp.Model(kernels, costs=np.ones((3, 2)), kernel_names=["a", "b"], **given)
        )


def test_states_that_are_never_reached_are_told():
    kernels = np.zeros((2, 3, 1, 3))
    kernels[0, :, 0, 0] = kernels[1, 0, 0, 1] = kernels[1, 1:, 0, 0] = 1
    model = drmdp.Model(
        kernels, costs=np.ones((3, 1)), discount=0.5, initial=[1, 0, 0], weights=[0.3, 0.7]
    )
    np.testing.assert_allclose(drmdp.sensitivity(model).reached, [1, 0.7, 0])


def test_quantiles_and_the_worst_kernel_count_weights_only():
    kernels = np.ones((4, 1, 1, 1))
    model = drmdp.Model(kernels, costs=[[1.0]], discount=0.0, weights=[0.5, 0.25, 0.25, 0.0])
    found = drmdp.sensitivity(model)
    result = dataclasses.replace(found, values=np.array([[3.0, 1, 2, 9]]))
    assert result.quantiles([0, 0.25, 0.26, 0.5, 0.51, 1]).tolist() == [[1, 1, 2, 2, 3, 3]]
    assert result.worst.tolist() == [0]
    assert result.mean == pytest.approx([2.25])
    with pytest.raises(drmdp.InputError, match=r"between 0 and 1, got 1\.5"):
        result.quantiles(1.5)


def test_tables_and_words():
    names = ["draw 0", "draw 1", "draw 2", "draw 3"]
    model = noisy(kernel_names=names, weights=[0.5, 0.5, 0.0, 0.0])
    result = drmdp.sensitivity(
        model, {"a": [0] * 6, 2: dict.fromkeys(range(6), 1)}, labels=["x", "y", "x", "y"]
    )
    table = result.to_frame()
    assert table.columns == ["policy", "kernel", "label", "weight", "value", "best", "regret"]
    assert table["policy"].to_list() == ["a"] * 4 + ["2"] * 4
    np.testing.assert_array_equal(table["value"].to_numpy(), result.values.ravel())
    np.testing.assert_allclose(
        table["regret"].to_numpy(), (result.values - result.best).ravel(), atol=1e-12
    )
    table = result.to_frame("policies")
    assert table["kernel"].to_list() == [names[k] for k in result.worst]
    np.testing.assert_array_equal(table["mean"].to_numpy(), result.mean)
    assert result.to_frame("actions")["share"].sum() == pytest.approx(6)
    text = repr(result)
    assert "2 policies under 4 draws, cost" in text
    assert "knowing the draw before deciding is worth at most" in text
    assert "a label has 1 kernel; of fewer than 20 draws it is too high" in text
    assert "1 policy under" in repr(drmdp.sensitivity(model))


def test_events():
    laws = [[0.5, 0.5], [0.9, 0.1]]
    model = drmdp.Model.from_events(
        3, 2, 2, lambda s, a, e: (np.minimum(s + e, 2) * a, s + a + e + 0.0), laws, discount=0.8
    )
    result = drmdp.sensitivity(model)
    for i, law in enumerate(laws):
        rows, costs = np.zeros((3, 2, 3)), np.zeros((3, 2))
        for s, a, e in itertools.product(range(3), range(2), range(2)):
            rows[s, a, min(s + e, 2) if a else 0] += law[e]
            costs[s, a] += law[e] * (s + a + e)
        one = drmdp.Model(rows, costs=costs, discount=0.8)
        assert result.best[i] == pytest.approx(drmdp.solve(one, drmdp.Wasserstein(0)).value.mean())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": [1, 2]}, "labels: expected one for each of 4 kernels, got 2"),
        ({"policies": {}}, "policies: expected at least one"),
        ({"policies": {"today": [0] * 5}}, r"policies: 'today': policy: expected shape \(6, 3\)"),
        (
            {"policies": np.ones((2, 6, 3)) / 3, "criterion": "average"},
            "criterion: finitely many stages have none",
        ),
        ({"final": np.zeros(6)}, "final: goes with stages=…"),
        ({"criterion": "total"}, "criterion: 'total' needs the discount 1"),
        ({"stages": 0}, "stages"),
        ({"seed": -1}, None),
    ],
)
def test_what_is_refused(given, message):
    if message is None:
        drmdp.sensitivity(noisy(), **given)  # nothing is drawn
        return
    with pytest.raises(drmdp.InputError, match=message):
        drmdp.sensitivity(noisy(), **given)


def test_what_is_refused_of_results():
    result = drmdp.sensitivity(noisy())
    for call, message in (
        (lambda: result.evppi, "labels: the kernels have none"),
        (lambda: result.tornado("label"), "labels: the kernels have none"),
        (lambda: result.tornado("row"), "by: expected 'state', 'kernel' or 'label', got 'row'"),
        (lambda: result.tornado(policy="best"), "policy: unknown policy 'best'"),
        (lambda: result.tornado(policy=1), "policy"),
        (
            lambda: result.to_frame("all"),
            "table: expected one of kernels, policies, actions, got 'all'",
        ),
    ):
        with pytest.raises(drmdp.InputError, match=message):
            call()
    plans = [
        drmdp.finite_horizon(noisy(), drmdp.Wasserstein(0), 2, discount=rate) for rate in (0.5, 1.0)
    ]
    with pytest.raises(
        drmdp.InputError, match="the plans have different discount; say which, discount=…"
    ):
        drmdp.sensitivity(noisy(), dict(enumerate(plans)))
    assert drmdp.sensitivity(noisy(), dict(enumerate(plans)), discount=0.9).values.shape == (2, 4)
    other = noisy(1, weights=[1.0, 0, 0, 0])
    with pytest.raises(drmdp.InputError, match="stage 1: its weights differ from those of stage 0"):
        drmdp.sensitivity([noisy(), other])


def test_remarks_on_a_plan_count_what_terminal_states_cost():
    """Under each kernel alone, by the library's own backward induction."""
    rng = np.random.default_rng(0)
    given = {"costs": rng.random((3, 2)), "discount": 0.9, "terminal": {2: 50.0}}
    kernels = rng.dirichlet(np.ones(3), (3, 3, 2))
    model = drmdp.Model(kernels, **given)
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), 4)
    alone = [
        drmdp.evaluate(drmdp.Model(y, **given), drmdp.Wasserstein(0), plan.policy) for y in kernels
    ]
    each = [own.value[0] @ model.initial for own in alone]
    np.testing.assert_allclose(plan_singles(plan).values, each, rtol=1e-9)
    np.testing.assert_allclose(drmdp.sensitivity(model, plan).values[0], each, rtol=1e-9)
