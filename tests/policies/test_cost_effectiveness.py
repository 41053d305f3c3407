"""Plans under each kernel, a second outcome of the same plan, plans without draws, and
cost-effectiveness.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import drmdp
from drmdp.errors import InputError

S, A, N, T = 3, 2, 4, 3


def stages(seed, rewards=False, n=T):
    rng = np.random.default_rng(seed)
    names = {"states": ["a", "b", "c"], "actions": ["x", "y"], "weights": rng.dirichlet(np.ones(N))}
    terminal = ["c"] if seed % 2 else None
    made = [
        drmdp.Model(
            rng.dirichlet(np.ones(S), (N, S, A)),
            **{"rewards" if rewards else "costs": rng.random((S, A))},
            discount=0.9,
            terminal=terminal,
            **names,
        )
        for _ in range(n)
    ]
    return made, rng


def recursion(models, policy, prices, kernels_of, worst=None, final=None):
    """Backward, with plain loops: values of the user's sign from each stage on; `worst` of all
    kernels of a state, or of one.
    """
    v = np.zeros(S) if final is None else np.array(final, dtype=float)
    out = [v]
    for t in reversed(range(len(models))):
        new = np.zeros(S)
        for s in range(S):
            if not models[t].terminal[s]:
                each = [
                    sum(
                        policy[t, s, a] * (prices[t][s, a] + 0.9 * (kernel[s, a] @ v))
                        for a in range(A)
                    )
                    for kernel in kernels_of(models[t])
                ]
                new[s] = each[0] if worst is None else worst(each)
        v = new
        out.append(v)
    return np.array(out[::-1])


@pytest.mark.parametrize("seed", range(12))
def test_a_second_outcome_is_its_own_recursion(seed):
    models, rng = stages(seed, rewards=seed % 3 == 0)
    policy = rng.dirichlet(np.ones(A), (T, S))
    policy[:, models[0].terminal] = 0
    effects = rng.random((T, S, A))
    anything = drmdp.Reweighting(
        kind="any"
    )  # nature takes any mixture of the kernels in a state: the worst one
    found = drmdp.evaluate(models, anything, policy, rewards=effects)
    expected = recursion(models, policy, effects, lambda model: model.kernels, worst=min)
    assert found.maximise
    assert np.allclose(found.value, expected, rtol=1e-9, atol=1e-12)
    assert (found.lower <= expected + 1e-12).all()
    other = drmdp.evaluate(models, anything, policy, costs=effects)
    worst = min if models[0].maximise else max
    assert np.allclose(
        other.value,
        recursion(models, policy, effects, lambda model: model.kernels, worst=worst),
        rtol=1e-9,
        atol=1e-12,
    )
    same = drmdp.evaluate(models, anything, policy, rewards=effects[0])
    assert np.allclose(
        same.value,
        drmdp.evaluate(models, anything, policy, rewards=np.stack([effects[0]] * T)).value,
    )


@pytest.mark.parametrize("seed", range(12))
def test_values_of_plans_under_each_kernel(seed):
    models, rng = stages(seed)
    final = np.where(models[0].terminal, 0.0, rng.random(S))
    plan = drmdp.finite_horizon(models, drmdp.Wasserstein(0.1), final=final)
    found = drmdp.policies.values(models, drmdp.Wasserstein(0.1), plan)
    prices = [model.costs for model in models]
    assert np.array_equal(
        found.worst.value, drmdp.evaluate(models, drmdp.Wasserstein(0.1), plan).value
    )
    assert found.by_kernel.shape == (N, T + 1, S)
    for i in range(N):
        expected = recursion(
            models, plan.policy, prices, lambda model, i=i: [model.kernels[i]], final=final
        )
        assert np.allclose(found.by_kernel[i], expected, rtol=1e-12)
    mean = recursion(models, plan.policy, prices, lambda model: [model.mean_kernel], final=final)
    assert np.allclose(found.mean, mean, rtol=1e-12)
    effects = rng.random((S, A))
    second = drmdp.policies.values(
        models, drmdp.Wasserstein(0.1), plan, rewards=effects
    )  # final values are costs
    expected = recursion(models, plan.policy, [effects] * T, lambda model: [model.kernels[0]])
    assert np.allclose(second.by_kernel[0], expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_plan_without_draws_is_the_best_of_all(seed):
    models, _ = stages(seed, rewards=seed % 3 == 0, n=2)
    ambiguity = drmdp.Wasserstein(0.5, metric="l1")
    plan = drmdp.finite_horizon(models, ambiguity)
    found = drmdp.policies.deterministic(models, ambiguity, plan)
    assert ((found.policy == 0) | (found.policy == 1)).all()
    n = int((~models[0].terminal).sum())
    best = None
    for actions in product(range(A), repeat=2 * n):
        chosen = np.zeros((2, S, A))
        for k, a in enumerate(actions):
            chosen[k // n, k % n, a] = 1
        value = drmdp.evaluate(models, ambiguity, chosen).value
        best = (
            value
            if best is None
            else (np.maximum if models[0].maximise else np.minimum)(best, value)
        )
    assert np.allclose(found.value, best, rtol=1e-6, atol=1e-8)
    sign = -1 if models[0].maximise else 1
    assert np.allclose(found.loss, np.maximum(sign * (found.value - plan.value), 0), atol=1e-8)


def test_a_stationary_policy_has_a_second_outcome_too():
    models, rng = stages(0)
    effects, ambiguity = rng.random((S, A)), drmdp.Wasserstein(0.2)
    policy = [0, 1, 0]
    model = models[0]
    hand = drmdp.Model(model.kernels, rewards=effects, discount=0.9, weights=model.weights)
    assert np.allclose(
        drmdp.evaluate(model, ambiguity, policy, rewards=effects).value,
        drmdp.evaluate(hand, ambiguity, policy).value,
    )
    assert np.allclose(
        drmdp.policies.values(model, ambiguity, policy, rewards=effects).by_kernel,
        drmdp.policies.under(hand, policy, hand),
    )
    with pytest.raises(InputError, match="one of costs and rewards"):
        drmdp.evaluate(model, ambiguity, policy, rewards=effects, costs=effects)
    with pytest.raises(InputError, match="rewards: expected shape"):
        drmdp.evaluate(model, ambiguity, policy, rewards=effects.T)


@pytest.mark.parametrize("rewards", [False, True])
def test_cost_effectiveness_by_loops(rewards):
    models, rng = stages(2, rewards)
    other = rng.random((T, S, A))
    rules = {
        "never": {"a": "x", "b": "x", "c": "x"},
        "always": {"a": "y", "b": "y", "c": "y"},
        "plan": drmdp.finite_horizon(models, drmdp.Wasserstein(0.1)),
    }
    found = drmdp.policies.cost_effectiveness(
        models, rules, **{"costs" if rewards else "effects": other}, reference="always"
    )
    main = [model.rewards if rewards else model.costs for model in models]
    costs, effects = (other, main) if rewards else (main, other)
    w, start = models[0].weights, models[0].initial
    for p, policy in enumerate(rules.values()):
        x = policy.policy if hasattr(policy, "policy") else np.stack([models[0].policy(policy)] * T)
        for i in range(N):
            for prices, held in ((costs, found.costs), (effects, found.effects)):
                value = recursion(models, x, prices, lambda model, i=i: [model.kernels[i]])
                assert held[p, i] == pytest.approx(start @ value[0], rel=1e-12)
    for k in (0.0, 0.5, 3.0):
        wins = np.zeros(3)
        for i in range(N):
            benefit = [k * found.effects[p, i] - found.costs[p, i] for p in range(3)]
            wins[int(np.argmax(benefit))] += w[i]
        assert np.allclose(found.acceptability(k)[:, 0], wins)
    icer = found.to_frame()["icer"].to_numpy()
    more = [(own[0] - own[1]) @ w for own in (found.costs, found.effects)]
    assert icer[0] == pytest.approx(more[0] / more[1])
    assert np.isnan(icer[1])
    assert found.to_frame()["policy"].to_list() == list(rules)
    twice = drmdp.policies.cost_effectiveness(
        models,
        {"one": rules["never"], "two": rules["never"]},
        **{"costs" if rewards else "effects": other},
    )
    assert np.allclose(twice.acceptability([0.0, 1.0]), 0.5)
    rounded = replace(twice, costs=np.array([[0.3] * N, [0.1 + 0.2] * N]), effects=np.zeros((2, N)))
    assert np.allclose(rounded.acceptability(0.0), 0.5)


def test_mistakes_are_named():
    models, rng = stages(0)
    effects = rng.random((S, A))
    with pytest.raises(InputError, match="as the model has costs, `effects` alone"):
        drmdp.policies.cost_effectiveness(models, {"a": [0, 0, 0]})
    with pytest.raises(InputError, match="expected a mapping"):
        drmdp.policies.cost_effectiveness(models, [0, 0, 0], effects=effects)
    with pytest.raises(InputError, match="reference"):
        drmdp.policies.cost_effectiveness(models, {"a": [0, 0, 0]}, effects=effects, reference="b")
    fewer = drmdp.Model(
        models[0].kernels[:2],
        costs=models[0].costs,
        discount=0.9,
        states=["a", "b", "c"],
        actions=["x", "y"],
    )
    with pytest.raises(InputError, match="stage 1: it has other kernels than stage 0"):
        drmdp.policies.cost_effectiveness([models[0], fewer], {"a": [0, 0, 0]}, effects=effects)
