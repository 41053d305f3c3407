"""Stages with models and sets of their own, the worst case of a plan, and plans in files."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp import InputError, Wasserstein
from drmdp.solution import file as saved

T, DEAD = 40, 4
STATES, ACTIONS = ("healthy", "early", "late", "found", "dead"), ("wait", "screen")


def screening(age, n_kernels=3, kind="costs", as_sparse=False, seed=0):
    """A patient of an age: tumours become likelier, screening finds them early; N cohorts disagree
    on how likely.
    """
    rng = np.random.default_rng([seed, age])
    y = np.zeros((n_kernels, 5, 2, 5))
    for i in range(n_kernels):
        grow, die = (
            (0.01 + 0.002 * age) * rng.uniform(0.5, 1.6),
            (0.005 + 0.001 * age) * rng.uniform(0.7, 1.3),
        )
        for a, find in enumerate((0.05, 0.8 * rng.uniform(0.8, 1.1))):
            y[i, 0, a] = [1 - grow - die, grow, 0, 0, die]
            y[i, 1, a] = [0, 0.6 * (1 - find), 0.4 * (1 - find), find * (1 - die), find * die]
            y[i, 2, a] = [0, 0, 0.5, 0.2, 0.3]
            y[i, 3, a] = [0.9, 0, 0, 0.1 - die, die]
        y[i, 4, :, 4] = 1
    y /= y.sum(axis=3, keepdims=True)
    costs = np.array([[0.0, 0.6], [1, 1.6], [20, 20.6], [5, 5.6], [0, 0]]) + [
        [50.0 * (s == 2)] for s in range(5)
    ]
    kernels = [sparse.csr_array(one.reshape(10, 5)) for one in y] if as_sparse else y
    given = {kind: costs if kind == "costs" else -costs}
    names = {
        "states": STATES,
        "actions": ACTIONS,
        "terminal": ["dead"],
        "initial": {"healthy": 1.0},
    }
    return drmdp.Model(kernels, **given, discount=0.97, **names)


def ages(**settings):
    return [screening(age, **settings) for age in range(T)]


def test_40_ages_are_40_conic_programs():
    """Backward induction by hand over the conic operator, with kernels of every age and two
    sets.
    """
    models = ages()
    sets = [
        Wasserstein(0.05 + 0.002 * t, "l2") if t % 2 else drmdp.Divergence(0.01, "kl")
        for t in range(T)
    ]
    plan = drmdp.finite_horizon(models, sets, T)
    v = np.zeros(5)
    assert (plan.value[T] == 0).all()
    for t in reversed(range(T)):
        v = drmdp.bellman(models[t], sets[t], v, backend="conic").value
        np.testing.assert_allclose(plan.value[t], v, rtol=2e-6, atol=1e-6)
    assert plan.status == "solved"
    assert (plan.states, plan.actions) == (STATES, ACTIONS)
    assert plan.policy[0, 1, 1] > 0.9  # what is found early is treated, but not on the last day
    assert plan.policy[-1, 1, 1] == 0
    alone = drmdp.finite_horizon(models[0], sets[0], T)
    assert not np.allclose(alone.value[0], plan.value[0])


@pytest.mark.parametrize("kind", ["costs", "rewards"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_the_worst_case_of_a_plan_holds_in_simulation(kind, as_sparse):
    """A given plan costs no more, under the mean kernels and under nature's, than its worst case;
    under nature's, as much.
    """
    models, ambiguity = ages(kind=kind, as_sparse=as_sparse), Wasserstein(0.1)
    final = np.array([0, 3.0, 9, 1, 0]) * (-1 if kind == "rewards" else 1)
    rng = np.random.default_rng(1)
    given = rng.dirichlet([1, 1], size=(T, 5))
    sign = -1 if kind == "rewards" else 1
    worst = drmdp.evaluate(models, ambiguity, given, final=final, discount=1.0)
    best = drmdp.finite_horizon(models, ambiguity, final=final, discount=1.0)
    assert not worst.optimal
    assert best.optimal
    assert (sign * (worst.value[0] - best.value[0]) >= -1e-9).all()
    found = []
    for kernel in (None, worst.kernels):
        totals = (
            sign * drmdp.simulate(models, worst, kernel, n=5_000, start="healthy", seed=3).totals
        )
        error = totals.std() / np.sqrt(totals.size)
        found.append((totals.mean(), error))
        assert totals.mean() <= sign * worst.value[0, 0] + 4 * error
    mean, error = found[1]
    assert mean >= sign * worst.value[0, 0] - 4 * error
    assert found[0][0] < mean - 4 * error


def test_the_best_plan_is_worth_what_its_evaluation_says():
    models, ambiguity = ages(), Wasserstein(0.1)
    plan = drmdp.finite_horizon(models, ambiguity)
    again = drmdp.evaluate(models, ambiguity, plan)
    np.testing.assert_allclose(again.value, plan.value, rtol=1e-9, atol=1e-9)
    assert (again.lower <= plan.upper).all()
    # by hand: the value of the plan under nature's own kernels
    v = np.zeros(5)
    for t in reversed(range(T)):
        stakes = (models[t].costs[:, :, None] + 0.97 * v) * again.kernel(t)
        v = np.where(models[t].terminal, 0, (plan.policy[t] * stakes.sum(axis=2)).sum(axis=1))
    np.testing.assert_allclose(v, again.value[0], rtol=1e-9)


def test_what_is_no_plan_is_played_at_every_stage():
    models, ambiguity = ages()[:5], Wasserstein(0.1)
    always = dict.fromkeys(STATES[:4], "screen")
    one = drmdp.evaluate(models, ambiguity, always)
    several = drmdp.evaluate(models, ambiguity, [always] * 5)
    np.testing.assert_array_equal(one.value, several.value)
    assert one.to_dict(2) == always
    stationary = drmdp.finite_horizon(models[0], ambiguity, 5)
    assert drmdp.evaluate(models[0], ambiguity, stationary.policy).value[0] == pytest.approx(
        stationary.value[0]
    )


def test_radius_0_is_the_mean_kernel_and_one_state_is_enough():
    models = ages()
    plan = drmdp.finite_horizon(models, Wasserstein(0.0))
    v = np.zeros(5)
    for t in reversed(range(T)):
        q = models[t].costs + 0.97 * models[t].mean_kernel @ v
        v = np.where(models[t].terminal, 0, q.min(axis=1))
    assert (plan.lower[0] <= v + 1e-13 * v).all()
    assert (plan.upper[0] >= v - 1e-13 * v).all()
    assert plan.gap < 1e-10 * v.max()
    single = [
        drmdp.Model(np.ones((1, 1, 1, 1)), costs=[[float(c)]], discount=0.5) for c in range(3)
    ]
    assert drmdp.finite_horizon(single, Wasserstein(0.1)).value[0] == pytest.approx(
        0 + 0.5 * 1 + 0.25 * 2
    )


def test_scales_do_not_matter():
    for scale in (1e-9, 1e9):
        models = [
            drmdp.Model(m.kernels, costs=scale * m.costs, discount=0.97, terminal=m.terminal)
            for m in ages()[:6]
        ]
        plan = drmdp.finite_horizon(models, Wasserstein(0.1))
        unit = drmdp.finite_horizon(ages()[:6], Wasserstein(0.1))
        np.testing.assert_allclose(plan.value, scale * unit.value, rtol=1e-9)
        assert plan.status == "solved"


def test_states_that_die_late_are_worth_nothing_late():
    """Nothing happens in a state from the stage on where it costs nothing and is not left, before
    that it does.
    """
    y = np.eye(2)[:, None, :]
    costly, free = (drmdp.Model(y[None], costs=[[1.0], [c]], discount=0.9) for c in (5.0, 0.0))
    plan = drmdp.finite_horizon([costly, free, free], Wasserstein(0.3))
    assert (plan.upper[1:, 1] == 0).all()
    assert (plan.lower[1:, 1] == 0).all()
    assert plan.value[0, 1] == pytest.approx(5)


# ---------------------------------------------------------------------- mistakes


def other(**fields):
    base = {
        "costs": np.ones((5, 2)),
        "discount": 0.97,
        "states": STATES,
        "actions": ACTIONS,
        "terminal": ["dead"],
    }
    return drmdp.Model(np.full((1, 5, 2, 5), 0.2), **{**base, **fields})


@pytest.mark.parametrize(
    ("models", "given", "message"),
    [
        (
            lambda: [*ages()[:2], other(states=list("abcde"), terminal=["e"])],
            {},
            "stage 2: it has other states than stage 0",
        ),
        (
            lambda: [*ages()[:2], other(actions=list("xy"))],
            {},
            "stage 2: it has other actions than stage 0",
        ),
        (
            lambda: [screening(0), other(terminal=None)],
            {},
            "stage 1: state 'dead' is terminal in stage 0 or here",
        ),
        (
            lambda: [screening(0), other(costs=None, rewards=np.ones((5, 2)))],
            {},
            "stage 1: stage 0 has costs, and this",
        ),
        (
            lambda: [screening(0), other(discount=0.5)],
            {},
            "discount: stage 0 has 0.97 and stage 1 has 0.5",
        ),
        (
            lambda: ages()[:3],
            {"stages": 4},
            "models: expected one, or one for each of 4 stages, got 3",
        ),
        (
            lambda: ages()[:3],
            {"ambiguity": [Wasserstein(0.1)] * 2},
            "sets: expected one, or one for each of 3 stages, got 2",
        ),
        (
            lambda: ages()[:2],
            {"ambiguity": [Wasserstein(0.1), 0.3]},
            "stage 1: ambiguity: expected a set",
        ),
        (lambda: [screening(0), 3], {}, "stage 1: expected a drmdp.Model, got"),
        (lambda: screening(0), {}, "stages: expected a whole number from 1"),
    ],
)
def test_mistakes_name_the_stage(models, given, message):
    with pytest.raises(InputError, match=message):
        drmdp.finite_horizon(models(), **{"ambiguity": Wasserstein(0.1), **given})


def test_mistakes_in_plans_name_the_stage():
    models, ambiguity = ages()[:3], Wasserstein(0.1)
    with pytest.raises(InputError, match="policy: expected one for each of 3 stages, got 2"):
        drmdp.evaluate(models, ambiguity, np.full((2, 5, 2), 0.5))
    wrong = np.full((3, 5, 2), 0.5)
    wrong[1, 2, 0] = 1
    with pytest.raises(InputError, match=r"stage 1: policy: state 'late' sums to 1\.5, not 1"):
        drmdp.evaluate(models, ambiguity, wrong)
    with pytest.raises(InputError, match="final: goes with a plan"):
        drmdp.evaluate(models[0], ambiguity, [0] * 5, final=[0] * 5)
    plan = drmdp.finite_horizon(models, ambiguity)
    with pytest.raises(InputError, match="stage: expected a whole number from 0 to 2, got 3"):
        plan.kernel(3)
    with pytest.raises(InputError, match="steps: the plan has 3 stages, got 4 steps"):
        drmdp.simulate(models, plan, steps=4)
    with pytest.raises(
        InputError, match="kernel: expected one, or one for each of 3 stages, got 2"
    ):
        drmdp.simulate(models, plan, [None, 0])


# ---------------------------------------------------------------------- files


def same(one, two):
    for name in ("value", "policy", "lower", "upper", "initial"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert not getattr(two, name).flags.writeable
    for name in set(saved.PLAN.types) - {"sparse"}:
        assert getattr(one, name) == getattr(two, name), name
    assert (repr(one), one.gap, one.status) == (repr(two), two.gap, two.status)
    assert tuple(one.states) == tuple(two.states)
    assert (one.costs is None) == (two.costs is None)
    for t in range(one.n_stages):
        assert type(one.kernel(t)) is type(two.kernel(t))
        np.testing.assert_array_equal(np.asarray(one.kernel(t)), np.asarray(two.kernel(t)))


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("support", ["observed", "all", "state"])
@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_save_and_load_lose_nothing(tmp_path, as_sparse, support, kind):
    models = ages(as_sparse=as_sparse, kind=kind)[:6]
    sets = [Wasserstein(0.05 * t, support=support) for t in range(6)]
    plan = drmdp.finite_horizon(models, sets, final=[0, 1, 2, 3, 0])
    plan.save(tmp_path / "plan.npz")
    same(plan, drmdp.HorizonSolution.load(tmp_path / "plan.npz"))
    same(plan, pickle.loads(pickle.dumps(plan)))


def test_a_loaded_plan_knows_costs_final_and_discount(tmp_path):
    model, ambiguity = screening(3), Wasserstein(0.1)
    costs = np.random.default_rng(0).random((4, 5, 2))
    plan = drmdp.finite_horizon(
        model, ambiguity, 4, final=[1, 2, 3, 4, 0], costs=costs, discount=1.0
    )
    plan.save(tmp_path / "plan.npz")
    again = drmdp.HorizonSolution.load(tmp_path / "plan.npz")
    same(plan, again)
    np.testing.assert_allclose(drmdp.evaluate(model, ambiguity, again).value, plan.value, rtol=1e-9)
    totals = [drmdp.simulate(model, one, one.kernels, seed=2).totals for one in (plan, again)]
    np.testing.assert_array_equal(*totals)
    exact = float(model.initial @ plan.value[0])
    assert abs(totals[0].mean() - exact) < 4 * totals[0].std() / np.sqrt(1000)


def test_kernels_that_are_too_many_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "ENTRIES", 20)
    plan = drmdp.finite_horizon(ages()[:3], Wasserstein(0.1))
    plan.save(tmp_path / "plan.npz")
    again = drmdp.HorizonSolution.load(tmp_path / "plan.npz")
    with pytest.raises(InputError, match="kernel: the file holds no kernels"):
        again.kernel(0)
    np.testing.assert_array_equal(again.policy, plan.policy)


def test_other_files_are_told_apart(tmp_path):
    model, ambiguity = screening(0), Wasserstein(0.1)
    drmdp.finite_horizon(model, ambiguity, 2).save(tmp_path / "plan.npz")
    drmdp.solve(model, ambiguity).save(tmp_path / "solution.npz")
    with pytest.raises(InputError, match=r"plan.npz: not a saved solution: it is a saved plan"):
        drmdp.Solution.load(tmp_path / "plan.npz")
    with pytest.raises(InputError, match=r"solution.npz: not a saved plan: it is a saved solution"):
        drmdp.HorizonSolution.load(tmp_path / "solution.npz")
    with pytest.raises(InputError, match=r"no.npz: No such file"):
        drmdp.HorizonSolution.load(tmp_path / "no.npz")


@pytest.mark.parametrize(
    "name", ["value", "policy", "kernel_mass", "kernel_ptr", "kernel_state", "initial", "plan"]
)
@pytest.mark.parametrize("how", ["missing", "nan", "shape", "type"])
def test_damaged_plans_are_refused(tmp_path, name, how):
    """Whatever is done to an array, the error is ours, or the file is as good as it was."""
    path = tmp_path / "plan.npz"
    drmdp.finite_horizon(ages()[:2], Wasserstein(0.1)).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    if how == "missing":
        del arrays[name]
    elif how == "nan":
        if arrays[name].dtype.kind != "f" or name == "initial":
            pytest.skip("no numbers that could be none")
        arrays[name] = np.full_like(arrays[name], np.nan)
    elif how == "shape":
        arrays[name] = arrays[name][:-1]
    else:
        arrays[name] = arrays[name].astype(str)
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"plan\.npz: not a saved plan"):
        drmdp.HorizonSolution.load(path)


def test_what_is_shown():
    plan = drmdp.finite_horizon(ages(), Wasserstein(0.1), discount=1)
    text = repr(plan)
    assert text.startswith("HorizonSolution: solved — ")
    assert "40 stages × 5 states × 2 actions, discount 1, optimised" in text
    assert "worst-case cost, mean over the start distribution" in text
    assert "stage 39" in plan._repr_html_()


def test_plans_as_tables():
    plan = drmdp.finite_horizon(ages(), Wasserstein(0.1))
    table = plan.to_frame()
    assert table.columns == ["stage", "state", "action", "probability", "value", "lower", "upper"]
    x = np.zeros_like(plan.policy)
    for stage, state, action, p, value, low, high in table.iter_rows():
        s = STATES.index(state)
        assert (value, low, high) == (
            plan.value[stage, s],
            plan.lower[stage, s],
            plan.upper[stage, s],
        )
        if action is None:
            assert (state, p) == ("dead", None)
        else:
            x[stage, s, ACTIONS.index(action)] = p
    np.testing.assert_array_equal(x, plan.policy)
