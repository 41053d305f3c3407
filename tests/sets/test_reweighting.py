"""Re-weighting against conic programs of the definition, and what it reduces to."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp.layout.memory import SweepMemory
from drmdp.operators.exact import ExactOperator
from drmdp.solvers.problem import Problem

KINDS = ("kl", "burg", "chi2", "tv", "cvar", "any")
LINEAR = ("tv", "cvar", "any")
SMOOTH = ("kl", "burg", "chi2")
DECK = ("plain", "ties", "same", "few", "one", "weights", "scale", "balanced")
SIZES = (0, 1e-9, 1e-3, 0.05, 0.3, 1.0, 4.0)


def ambiguity_of(kind, size, rectangular="s"):
    if kind == "any":
        return drmdp.Reweighting(kind="any", rectangular=rectangular)
    if kind == "cvar":
        return drmdp.Reweighting(kind="cvar", level=max(1 - size, 0), rectangular=rectangular)
    return drmdp.Reweighting(size, kind, rectangular)


def dealt(seed, most=6):
    """A small problem, every degeneracy of `DECK` in turn: model, value, size."""
    rng, deal = np.random.default_rng(seed), DECK[seed % len(DECK)]
    S, A, N = (int(rng.integers(1, most)) for _ in range(3))
    A, N = (1, N) if deal == "one" else (A, 1) if deal == "few" else (A, N)
    kernels = rng.dirichlet(np.full(S, rng.choice([0.2, 1.0])), size=(N, S, A))
    if deal == "same":
        kernels[: N // 2 + 1] = kernels[0]
    if deal == "ties":
        kernels = np.eye(S)[kernels.argmax(axis=-1)]
    value, costs = rng.normal(size=S), rng.random((S, A, S) if seed % 5 == 0 else (S, A))
    terminal = (rng.random(S) < 0.1) & (S > 1)
    discount = float(rng.choice([0, 0.5, 0.99]))
    value = np.where(terminal, 0, np.round(value) if deal == "ties" else value)
    if deal == "balanced":  # all actions nearly tied
        costs = (
            10.0 ** -rng.integers(0, 9) * rng.random((S, A))
            - discount * np.einsum("isat,t->sa", kernels, value) / N
        )
    scale = 10.0 ** rng.integers(-9, 10) if deal == "scale" else 1.0
    weights = rng.dirichlet(np.full(N, 0.5)) if deal == "weights" else np.full(N, 1 / N)
    if deal == "weights" and N > 1:
        weights = np.maximum(weights, 1e-6)
        weights[0] = 0
    available = rng.random((S, A)) < 0.8
    available[np.arange(S), rng.integers(A, size=S)] = True
    model = drmdp.Model(
        kernels,
        costs=scale * costs,
        discount=discount,
        available=available,
        terminal=terminal,
        weights=weights / weights.sum(),
    )
    return model, scale * value, float(rng.choice(SIZES))


def worst(kind, size, G, w, x=None):
    """max_q min_a q·G_a, or max_q x·G q, over the definition of the ball, by cvxpy."""
    low, span = G.min(), np.ptp(G)
    if span == 0:
        return low
    g, q, gamma = (G - low) / span, cp.Variable(w.size), cp.Variable()
    inside = [cp.sum(q) == 1, q >= 0]
    if size == 0 and kind not in ("cvar", "any"):
        inside = [q == w]
    elif kind == "kl":
        inside += [cp.sum(cp.kl_div(q, w)) <= size]
    elif kind == "burg":
        inside += [cp.sum(cp.kl_div(w, q)) <= size]
    elif kind == "chi2":
        inside += [cp.norm2(cp.multiply(q - w, 1 / np.sqrt(w))) <= np.sqrt(size)]
    elif kind == "tv":
        inside += [cp.norm1(q - w) <= 2 * size]
    elif kind == "cvar" and size < 1:
        inside += [q <= w / (1 - size)]
    problem = cp.Problem(
        cp.Maximize(gamma), [*inside, g @ q >= gamma if x is None else x @ g @ q >= gamma]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in LINEAR:
            tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
            problem.solve(solver=cp.HIGHS, **tight)
        else:
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return low + span * float(gamma.value)


def against(kind, size, g, w):
    """max_q q·g within a small divergence of w by its dual in one number, as no conic program has
    these digits.
    """
    top, span = g.max(), np.ptp(g)
    if span == 0:
        return top
    price = span * np.exp(np.linspace(-3.0, 12.0, 200_001))  # around span/√size
    if kind == "kl":
        means = np.log(np.exp((g - top) / price[:, None]) @ w)
        return top + (price * (means + size)).min()
    means = np.log1p((top - g) / price[:, None]) @ w
    return top - (price * np.expm1(means - size)).max()


def losses(model, value):
    """Cost of each available action in each kernel that counts: (A', N) for each state."""
    z, kernels = (
        model.stakes(value, 0, model.n_states),
        np.asarray(model.kernels)[model.weights > 0],
    )
    G = np.einsum("isat,sat->sai", kernels, np.where(np.isfinite(z), z, 0))
    return [G[s][model.available[s]] for s in range(model.n_states)]


def wanted(kind, size, model, value, rectangular):
    w = model.weights[model.weights > 0]
    out = np.zeros(model.n_states)
    for s, G in enumerate(losses(model, value)):
        if not model.terminal[s]:
            rows = [G] if rectangular == "s" else [G[[a]] for a in range(len(G))]
            out[s] = min(worst(kind, size, rows_of, w) for rows_of in rows)
    return out


def check(kind, seed, rectangular, conic=True):
    model, value, size = dealt(seed)
    ambiguity = ambiguity_of(kind, size, rectangular)
    operator = ExactOperator(model, ambiguity, threads=1)
    steps = [
        Problem(operator).proved(v)
        for v in (np.random.default_rng(seed).permutation(value), value, value)
    ]
    cold = drmdp.bellman(model, ambiguity, value)
    ptp = max((np.ptp(G) for G in losses(model, value) if G.size), default=0)
    scale = np.abs(value).max() + np.abs(np.asarray(model.costs)).max()
    slack = (1e-7 if kind in SMOOTH else 1e-8) * ptp + 1e-13 * scale
    assert (cold.upper - cold.lower <= 1e-9 * ptp + 1e-12 * scale).all()
    assert (steps[2].upper_step - steps[2].lower_step <= 1e-9 * ptp + 1e-12 * scale).all()
    for step in steps[1:]:
        assert (value + step.lower_step <= cold.upper + 1e-15 * scale).all()
        assert (value + step.upper_step >= cold.lower - 1e-15 * scale).all()
    if conic:
        want = wanted(kind, size, model, value, rectangular)
        assert (cold.lower <= want + slack).all(), (cold.lower - want).max() / (ptp or 1)
        if size == 1e-9 and kind in ("kl", "burg"):
            w = model.weights[model.weights > 0]
            for s, G in enumerate(losses(model, value)):
                if not model.terminal[s]:
                    want[s] = against(kind, size, cold.policy[s][model.available[s]] @ G, w)
        assert (cold.upper >= want - slack).all(), (want - cold.upper).max() / (ptp or 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_the_program_of_its_definition(kind):
    for seed in range(8 if kind in ("kl", "cvar") else 3):
        check(kind, seed, "s")


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_for_each_action_is_its_own_program(kind):
    for seed in range(100, 102):
        check(kind, seed, "sa")


@pytest.mark.fuzz
@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("kind", KINDS)
def test_many_steps_are_the_programs_of_their_definition(kind, rectangular):
    for seed in range(1000, 1304):
        check(kind, seed, rectangular)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", KINDS)
def test_many_steps_certify_themselves(kind):
    for seed in range(5000, 10_000):
        check(kind, seed, "s", conic=False)


def problem(N=4, **settings):
    rng = np.random.default_rng(2)
    kernels = rng.dirichlet(np.full(6, 0.4), size=(N, 6, 3))
    settings = {"costs": rng.random((6, 3)), "discount": 0.9} | settings
    return drmdp.Model(kernels, **settings)


@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_solved_evaluated_and_certified(kind, rectangular):
    model, ambiguity = problem(weights=[0.4, 0.3, 0.3, 0]), ambiguity_of(kind, 0.3, rectangular)
    found = drmdp.solve(model, ambiguity, tol=1e-8)
    assert found.status == "solved"
    assert found.n_iters <= 10
    other = drmdp.solve(model, ambiguity, "value-iteration", tol=1e-5)
    assert (other.lower <= found.upper).all()
    assert (other.upper >= found.lower).all()
    shape = (6, 4) if rectangular == "s" else (6, 3, 4)
    assert found.weights.shape == shape
    assert (found.weights[..., 3] == 0).all()
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-12)
    q = found.weights[:, None] if rectangular == "s" else found.weights
    np.testing.assert_allclose(
        found.kernel,
        np.einsum("sai,isat->sat", np.broadcast_to(q, (6, 3, 4)), model.kernels),
        atol=1e-12,
    )
    assert drmdp.certify(model, ambiguity, found).gap < 1e-6
    assert drmdp.certify(model, ambiguity, found.policy, found.kernel).gap < 1e-5
    wild = drmdp.certify(model, ambiguity, found.policy, np.random.default_rng(1).random(shape))
    assert (wild.lower <= found.upper).all()
    evaluated = drmdp.evaluate(model, ambiguity, found.policy, tol=1e-8)
    np.testing.assert_allclose(evaluated.value, found.value, atol=1e-6)
    plan = drmdp.finite_horizon(model, ambiguity, 200)
    np.testing.assert_allclose(plan.value[0], found.value, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_one_action_leaves_nothing_to_share(kind):
    model = problem(
        costs=np.random.default_rng(1).random((6, 3)),
        available=np.eye(3, dtype=bool)[[0, 1, 2, 0, 1, 2]],
    )
    found, each = (
        drmdp.solve(model, ambiguity_of(kind, 0.2, rectangular), tol=1e-9)
        for rectangular in ("s", "sa")
    )
    np.testing.assert_allclose(found.value, each.value, atol=1e-8)


def test_no_size_is_the_mean_kernel_and_every_size_the_matrix_game():
    model, nominal = problem(), drmdp.solve(problem(), drmdp.Wasserstein(0), tol=1e-9).value
    game = drmdp.solve(model, drmdp.Reweighting(kind="any"), tol=1e-9).value
    for kind, none, far in (
        ("kl", 0, 9),
        ("burg", 0, 1e9),
        ("chi2", 0, 9),
        ("tv", 0, 1),
        ("cvar", 0, 1),
    ):
        np.testing.assert_allclose(
            drmdp.solve(model, ambiguity_of(kind, none), tol=1e-9).value, nominal, atol=1e-8
        )
        atol = 1e-4 if kind == "burg" else 1e-8  # which is never free
        np.testing.assert_allclose(
            drmdp.solve(model, ambiguity_of(kind, far), tol=1e-9).value, game, atol=atol
        )
        if kind not in ("burg", "cvar"):
            far = ambiguity_of(kind, 0).saturation(model).max()
            np.testing.assert_allclose(
                drmdp.solve(model, ambiguity_of(kind, far), tol=1e-9).value, game, atol=1e-8
            )
    assert (ambiguity_of("burg", 0).saturation(model) == np.inf).all()
    np.testing.assert_allclose(ambiguity_of("cvar", 0).saturation(model), 0.25)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "any"])
def test_values_grow_with_the_size(kind):
    model, sizes = problem(), [0, 0.01, 0.1, 0.3, 0.6]
    for rectangular in ("s", "sa"):
        values = [
            drmdp.solve(model, ambiguity_of(kind, size, rectangular), tol=1e-9).value
            for size in sizes
        ]
        assert (np.diff(values, axis=0) >= -2e-9).all()
    one, each = (
        drmdp.solve(model, ambiguity_of(kind, 0.3, rectangular)).value
        for rectangular in ("s", "sa")
    )
    assert (one <= each + 1e-5).all()


def test_paths_go_along_the_size():
    model = problem()
    path = drmdp.radius.path(model, drmdp.Reweighting(0.1), [0, 0.1, 0.5])
    np.testing.assert_allclose(
        path.points[1].value, drmdp.solve(model, drmdp.Reweighting(0.1)).value, atol=1e-5
    )
    assert len(drmdp.radius.path(model, drmdp.Reweighting(0.1), 5).points) == 5
    path = drmdp.radius.path(model, drmdp.Reweighting(kind="cvar", level=0.5), [0.1, 0.5, 1])
    assert (np.diff(path.worst) <= 1e-9).all()


def test_sparse_models_give_the_same():
    model = problem()
    rows = [sparse.csr_array(np.asarray(kernel).reshape(18, 6)) for kernel in model.kernels]
    other = drmdp.Model(rows, costs=model.costs, discount=0.9)
    for kind in ("kl", "tv"):
        ambiguity = ambiguity_of(kind, 0.2)
        want = drmdp.solve(model, ambiguity, tol=1e-8)
        found = drmdp.solve(other, ambiguity, tol=1e-8)
        np.testing.assert_allclose(found.value, want.value, atol=1e-7)
        assert drmdp.certify(other, ambiguity, found).gap < 1e-6


@pytest.mark.fuzz
def test_float32_gives_nearly_the_same():
    model = problem()
    for kind in KINDS:
        ambiguity = ambiguity_of(kind, 0.2)
        want = drmdp.solve(model, ambiguity, tol=1e-8)
        np.testing.assert_allclose(
            drmdp.solve(model.astype(np.float32), ambiguity).value, want.value, atol=1e-4
        )


@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_is_handed_over_makes_a_bound_false(kind, rectangular):
    model, ambiguity, value = problem(), ambiguity_of(kind, 0.2, rectangular), np.arange(6.0)
    want = Problem(ExactOperator(model, ambiguity, threads=1)).proved(value)
    rng = np.random.default_rng(3)
    operator = ExactOperator(model, ambiguity, threads=1)
    good = operator.update(value, 0, 6)
    for _ in range(20):
        bad = [part.copy() for part in good.claim]
        for part in bad:
            wrong = rng.random(part.shape) < 0.3
            part[wrong] = rng.choice(
                [np.nan, np.inf, -np.inf, -1, 0, 1e-300, 1e300, 7], size=int(wrong.sum())
            )
        operator._memory = SweepMemory(*bad)
        for update in (
            type(good)(**{**vars(good), "claim": SweepMemory(*bad)}),
            operator.update(value, 0, 6),
        ):
            found = Problem(operator).prove(value, update, False)
            assert (found.lower_step <= want.upper_step).all()
            assert (found.upper_step >= want.lower_step).all()
        operator._memory = SweepMemory(*bad)
        assert np.isfinite(np.asarray(operator.update(value, 0, 6).kernel)).all()


def test_bad_settings_are_refused():
    for settings, message in (
        (
            {"kind": "jeffreys"},
            "kind is 'kl', 'burg', 'chi2', 'tv', 'cvar' or 'any', got 'jeffreys'",
        ),
        ({"radius": 1, "rectangular": "x"}, "rectangular is 's' or 'sa', got 'x'"),
        ({}, "radius: kind='kl' needs one"),
        ({"kind": "cvar"}, "level: kind='cvar' needs one"),
        ({"kind": "cvar", "level": 1.5}, "level: expected a share from 0 to 1, got 1.5"),
        ({"kind": "cvar", "level": 0.5, "radius": 1}, "radius: kind='cvar' has none, got 1"),
        ({"kind": "any", "radius": 1}, "radius: kind='any' has none, got 1"),
        ({"radius": 0.1, "level": 0.5}, "level: kind='kl' has none, got 0.5"),
        ({"radius": -1}, "radius must be finite and not negative, got -1.0"),
    ):
        with pytest.raises(drmdp.InputError, match=message):
            drmdp.Reweighting(**settings)
    with pytest.raises(drmdp.InputError, match="reweighting any has no radius"):
        drmdp.Reweighting(kind="any").with_radius(0.1)
    with pytest.raises(drmdp.InputError, match="expected mixtures of shape"):
        drmdp.certify(problem(), drmdp.Reweighting(0.1), np.zeros(6, dtype=int), np.ones((2, 2)))
    assert (
        repr(drmdp.Reweighting(kind="cvar", level=0.1))
        == "Reweighting(level=0.1, kind='cvar', rectangular='s')"
    )
    assert (
        "only 1 kernel has a weight" in drmdp.solve(problem(N=1), drmdp.Reweighting(0.1)).notes[0]
    )


@pytest.mark.parametrize(
    "ambiguity", [drmdp.Reweighting(0.3, "tv"), drmdp.Reweighting(kind="cvar", level=0.3)], ids=str
)
@pytest.mark.parametrize("n_actions", [20, 30])
def test_many_actions_that_nearly_tie_are_mixed_to_the_end(ambiguity, n_actions):
    """One column for the answers of all kernels stalled at a gap of 1e-4 of the range; the costs
    make all actions tie at some v.
    """
    S, rng = 12, np.random.default_rng(1)
    drawn = drmdp.instances.perturb(drmdp.instances.garnet(S, n_actions), 30)
    kernels = np.asarray(drawn.kernels)
    value = 10 * rng.random(S)
    mean = np.tensordot(drawn.weights, kernels, axes=1)
    costs = value[:, None] - drawn.discount * (mean @ value) + 1e-6 * rng.random((S, n_actions))
    model = drmdp.Model(kernels, costs=costs, discount=drawn.discount, weights=drawn.weights)
    found = Problem(ExactOperator(model, ambiguity.fitted(model), 1)).proved(value)
    assert (np.asarray(found.policy) > 0).sum(axis=1).mean() > 8
    assert (found.upper_step - found.lower_step).max() <= 1e-9
    assert drmdp.solve(model, ambiguity, tol=1e-9).status == "solved"


@pytest.mark.parametrize(("seed", "n_kernels"), [(1, 10), (3, 20)])
def test_budgets_of_whole_weights_hold_up_no_program(seed, n_kernels):
    """Thirty actions tie at the weights, and the budget is that of some kernels: most steps of the
    simplex method gain nothing.
    """
    rng = np.random.default_rng([seed, 30, n_kernels])
    kernels, value = rng.dirichlet(np.ones(8), size=(n_kernels, 8, 30)), rng.normal(size=8)
    model = drmdp.Model(
        kernels, costs=-0.9 * (kernels.mean(axis=0) * value).sum(axis=-1), discount=0.9
    )
    for size in (0.1, 0.2, 0.4):
        found = Problem(ExactOperator(model, drmdp.Reweighting(size, "tv"), 1)).proved(value, None)
        assert (found.upper_step - found.lower_step < 1e-11).all()
