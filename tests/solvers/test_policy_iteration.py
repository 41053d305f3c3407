"""The default method: few sweeps where mixing is fast or slow, no failure on random problems, any
scale and level.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

import drmdp
from decks import SETS
from drmdp.certificate import FixedKernel
from drmdp.criteria import newton_systems
from drmdp.operators.build import build
from drmdp.operators.nominal import FixedNature
from drmdp.sets import PAIRS
from drmdp.solvers.policy_iteration import first_value
from drmdp.solvers.problem import Problem

IDS = [f"{metric}-{order:g}" for metric, order in PAIRS]
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=IDS)
MOST = 10


def relative(model, ambiguity, share=1e-6, **settings):
    """Solve to a gap of a share of the largest value."""
    size = max(map(abs, model.cost_range)) / (1 - model.discount)
    first = drmdp.solve(model, ambiguity, tol=1e-3 * size, **settings)
    tol = share * np.abs(first.upper).max()
    return drmdp.solve(model, ambiguity, tol=tol, **settings), tol


DISCOUNTS = (0.8, 0.95, 0.99, 0.999)
INSTANCES = {
    "garnet": lambda discount: drmdp.instances.perturb(
        drmdp.instances.garnet(30, 10, discount=discount), 10
    ),
    "machine": lambda discount: drmdp.instances.perturb(
        drmdp.instances.machine(50, discount=discount), 10
    ),
    "forest": lambda discount: drmdp.instances.perturb(
        drmdp.instances.forest(50, discount=discount), 10
    ),
    "ring": lambda discount: drmdp.instances.ring(120, 5, discount=discount),
    "cycle": lambda discount: drmdp.instances.cycle(100, 5, discount=discount),
}
instances = pytest.mark.parametrize("instance", INSTANCES)


def check_few(model, ambiguity, most=MOST):
    found, tol = relative(model, ambiguity)
    assert found.status == "solved"
    assert found.gap <= tol
    assert found.kernel_passes <= most, f"{ambiguity}: {found.kernel_passes} sweeps"


@pytest.mark.parametrize("discount", DISCOUNTS)
@instances
def test_few_sweeps_to_a_millionth(instance, discount):
    model, radius = INSTANCES[instance](discount), 0.02 if instance in ("ring", "cycle") else 0.5
    for pair in PAIRS:
        check_few(model, drmdp.Wasserstein(radius, *pair, support="all"))


AROUND = ("chi2-kernels", "chi2-kernels-sa", "transport-1-sa", "transport-inf-sa")
"""Sets of this size that let nature go where she likes among next states: on a ring of 120 she
finds the way round some ten states a sweep, four at least.
"""


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SETS)
@instances
def test_few_sweeps_for_every_set(instance, name):
    for discount in DISCOUNTS:
        model = INSTANCES[instance](discount)
        for size in (0.01,) if instance in ("ring", "cycle") else (0.01, 0.2):
            most = 30 if instance == "ring" and name in AROUND else MOST
            check_few(model, SETS[name].make(model, size, "observed"), most)


def random_problem(rng, pair):
    S, A, N = int(rng.integers(1, 25)), int(rng.integers(1, 7)), int(rng.integers(1, 8))
    kernels = rng.dirichlet(np.full(S, rng.choice([0.05, 0.3, 1.0])), size=(N, S, A))
    costs = (
        rng.uniform(0, 1, (S, A))
        if rng.random() < 0.7
        else rng.integers(1, 4, (S, A)).astype(float)
    )
    discount = float(rng.choice([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]))
    model = drmdp.Model(kernels, costs=costs, discount=discount, weights=rng.dirichlet(np.ones(N)))
    radius = float(10 ** rng.uniform(-3, math.log10(5)))
    return model, drmdp.Wasserstein(radius, *pair, str(rng.choice(["all", "observed", "state"])))


def check_random(pair, seed, n):
    rng = np.random.default_rng([seed, PAIRS.index(pair)])
    for k in range(n):
        model, ambiguity = random_problem(rng, pair)
        if np.ptp(model.costs) == 0:
            continue
        found, tol = relative(model, ambiguity)
        assert found.status == "solved", f"{k}: {model!r} {ambiguity}: {found!r}"
        assert found.gap <= tol


@each_pair
def test_random_problems(pair):
    check_random(pair, 0, 40)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(1, 11))
@each_pair
def test_many_random_problems(pair, seed):
    check_random(pair, seed, 100)


@each_pair
def test_scale_and_level_do_not_matter(pair):
    base = drmdp.instances.perturb(drmdp.instances.garnet(15, 4, seed=3), 4)
    ambiguity = drmdp.Wasserstein(0.4, *pair, support="all")
    wanted = drmdp.solve(base, ambiguity, tol=1e-8).value
    for scale, level in ((1e-9, 0.0), (1e9, 0.0), (1.0, 1e6)):
        model = drmdp.Model(base.kernels, costs=scale * base.costs + level, discount=base.discount)
        tol = 1e-8 * scale + 1e-14 * level / (1 - base.discount) * 100
        found = drmdp.solve(model, ambiguity, tol=tol)
        assert found.status == "solved"
        np.testing.assert_allclose(
            found.value, scale * wanted + level / (1 - base.discount), rtol=0, atol=2 * tol
        )


@each_pair
def test_a_discount_next_to_one(pair):
    model = drmdp.instances.perturb(drmdp.instances.machine(20, discount=0.9999), 5)
    found, tol = relative(model, drmdp.Wasserstein(0.3, *pair, support="all"))
    assert found.gap <= tol if found.status == "solved" else found.status == "precision_limit"
    assert (found.lower <= found.upper).all()


@pytest.mark.parametrize("n", [1, 2, 30, 100])
def test_small_systems_are_solved_directly(n):
    rng = np.random.default_rng(n)
    chain, right = rng.dirichlet(np.full(n, 0.1), size=n), rng.normal(size=n)
    for discount in (0.0, 0.9, 0.9999):
        step = newton_systems.solve(chain, discount, right)
        np.testing.assert_allclose(
            step - discount * chain @ step, right, rtol=0, atol=1e-12 * np.abs(step).max()
        )


@pytest.mark.parametrize("kind", ["walk", "jumps", "full", "slow"])
def test_zeros_of_a_system_are_passed_over(kind, monkeypatch):
    """Systems with few entries, or whose chains mix fast, are not handed to LAPACK; others are, and
    either way the answer is the same.
    """
    n, rng = newton_systems.SMALL + 50, np.random.default_rng(0)
    chain = np.zeros((n, n))
    if kind in ("full", "slow"):
        chain = rng.dirichlet(np.ones(n), size=n)
        chain = 0.99 * np.eye(n) + 0.01 * chain if kind == "slow" else chain
    elif kind == "walk":
        for move in (1, -1):
            chain[np.arange(n), np.clip(np.arange(n) + move, 0, n - 1)] += 0.5
    else:
        chain[np.arange(n), rng.integers(n, size=n)] += 0.9
        chain[:, 7] += 0.1
    right, solve, asked = rng.normal(size=n), np.linalg.solve, []
    monkeypatch.setattr(np.linalg, "solve", lambda *system: (asked.append(1), solve(*system))[1])
    for discount in (0.0, 0.9, 0.9999):
        asked.clear()
        step = newton_systems.solve(chain, discount, right)
        np.testing.assert_allclose(
            step - discount * chain @ step, right, rtol=0, atol=1e-11 * np.abs(step).max()
        )
        assert bool(asked) == (kind == "slow" and discount > 0)


def test_large_systems_are_solved_by_products_alone():
    rng = np.random.default_rng(0)
    chain = rng.dirichlet(np.ones(50), size=50)
    right = rng.normal(size=50)

    class Product:
        def __matmul__(self, z):
            return chain @ z

    for discount in (0.5, 0.99, 0.9999):
        wanted = np.linalg.solve(np.eye(50) - discount * chain, right)
        error = newton_systems.solve(Product(), discount, right) - wanted
        residual = error - discount * chain @ error
        assert np.linalg.norm(residual) <= 1.01 * newton_systems.LOOSE * np.linalg.norm(right)


def stock(n_states, discount):
    """Orders of 0 to 12 pieces, a demand of 0 to 14 that is lost where it finds none, and three
    guesses at its law.
    """
    rng = np.random.default_rng(0)
    first = np.arange(n_states * 5)
    targets = np.clip((first // 5 + first % 5 * 3)[:, None] - 2 * np.arange(8), 0, n_states - 1)
    rows = np.repeat(first, 8)
    kernels = []
    for law in rng.dirichlet(np.full(8, 2.0), size=3):
        entries = np.tile(law, first.size), (rows, targets.ravel())
        kernels.append(sparse.csr_array(entries, shape=(first.size, n_states)))
    held = np.arange(n_states)[:, None]
    costs = np.maximum(0, 10 - held) + 0.02 * np.minimum(held, 200) + 2.0 * np.arange(5)
    return drmdp.Model(kernels, costs=costs, discount=discount)


@pytest.mark.parametrize("discount", [0.9, 0.95, 0.97])
def test_a_residual_that_lost_its_digits_is_no_solution(discount):
    """BiCGStab of these chains grows by many orders of magnitude; the residual it carries along
    says nothing then.
    """
    found = drmdp.solve(stock(2500, discount), drmdp.Wasserstein(0.1), rtol=1e-4)
    assert found.status == "solved"


class Counted:
    """A chain whose products are counted."""

    def __init__(self, chain):
        self.chain, self.products = chain, 0

    def __matmul__(self, z):
        self.products += 1
        return self.chain @ z


def test_systems_take_few_products(monkeypatch):
    """Counts of a sparse garnet; version 0.1 took 92 products for the mean kernel and 40 for the
    pairs.
    """
    model = drmdp.instances.garnet(2500, 4, 8, seed=0, discount=0.95, sparse=True)
    model = drmdp.instances.perturb(model, 5, seed=0, same_support=True)
    solve, taken = newton_systems.solve, []

    def counted(chain, *others):
        chain = Counted(chain)
        step = solve(chain, *others)
        taken.append(chain.products)
        return step

    monkeypatch.setattr(newton_systems, "solve", counted)
    found = drmdp.solve(model, drmdp.Wasserstein(0.1), rtol=1e-3, threads=1)
    assert found.status == "solved"
    assert sum(taken) <= 60
    assert max(taken) <= 1 + 2 * 2 * newton_systems.FEW


def test_the_start_of_a_large_model_is_neither_exact_nor_proved(monkeypatch):
    model = drmdp.instances.garnet(2500, 2, 4, seed=0, discount=0.95, sparse=True)
    proved = []
    monkeypatch.setattr(FixedKernel, "prove", lambda *_: proved.append(1))
    assert drmdp.solve(model, drmdp.Wasserstein(0.1), rtol=1e-3).status == "solved"
    assert not proved


def test_a_breakdown_is_taken_over():
    """A rotation by a quarter turn: the shadow residual is orthogonal to its image at once."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    step, rest, far = newton_systems.bicgstab(lambda z: turn @ z, np.array([1.0, 0.0]), 1.0)
    assert np.linalg.norm(rest) == far >= 1
    np.testing.assert_allclose(step, 0)


def test_what_a_breakdown_leaves_is_solved_by_another_method(monkeypatch):
    rng = np.random.default_rng(1)
    chain, right = sparse.csr_array(rng.dirichlet(np.full(60, 0.1), size=60)), rng.normal(size=60)
    half = np.linalg.solve(np.eye(60) - 0.9 * chain.toarray(), right) / 2
    for broken in (
        lambda apply, left, square: (np.zeros(left.size), left.copy(), square**0.5),  # at once
        lambda apply, left, square: (
            half,
            left - apply(half),
            np.linalg.norm(left - apply(half)),
        ),  # on the way
    ):
        monkeypatch.setattr(newton_systems, "bicgstab", broken)
        step = newton_systems.solve(chain, 0.9, right)
        residual = np.linalg.norm(step - 0.9 * chain @ step - right)
        assert residual <= 1.01 * newton_systems.LOOSE * np.linalg.norm(right)


def test_the_chain_of_a_sparse_kernel_follows_the_policy():
    """Whether the policy is deterministic, so that rows are picked, or not, so that they are
    mixed.
    """
    rng = np.random.default_rng(3)
    matrix = sparse.random_array((20, 5), density=0.6, rng=rng, format="csr")
    for policy in (np.eye(4)[rng.integers(0, 4, 5)], rng.dirichlet(np.ones(4), 5)):
        chain = FixedNature(matrix, (5, 4)).chain(policy)
        assert np.allclose(
            chain, np.einsum("sa,sat->st", policy, matrix.toarray().reshape(5, 4, 5))
        )


@pytest.mark.parametrize(("metric", "radius"), [("l1", 0.7), ("l2", 0.5), ("linf", 0.35)])
def test_a_strong_nature_is_met_where_the_cheapest_actions_lead(metric, radius):
    model = drmdp.instances.perturb(drmdp.instances.garnet(12, 3), 4)
    cheapest = np.asarray(model.costs).min(axis=1)
    for factor, same in ((0.9, False), (1.0, True), (2.0, True)):
        problem = Problem(build(model, drmdp.Wasserstein(factor * radius, metric), "exact", 1))
        assert np.array_equal(first_value(problem), cheapest) == same
    mixed = drmdp.Wasserstein(np.linspace(0.0, radius, 12), metric)
    assert not np.array_equal(first_value(Problem(build(model, mixed, "exact", 1))), cheapest)


def test_and_one_sweep_does_where_she_may_do_anything():
    model = drmdp.instances.perturb(drmdp.instances.machine(30, discount=0.99), 5)
    found = drmdp.solve(model, drmdp.Wasserstein(2.0, support="all"))
    assert found.status == "solved"
    assert found.kernel_passes == 1


def test_the_start_of_a_strong_nature_is_0_in_states_that_end():
    model = drmdp.Model(
        np.full((1, 2, 1, 2), 0.5), costs=[[3.0], [0.0]], discount=0.9, terminal=[1]
    )
    problem = Problem(build(model, drmdp.Wasserstein(1.0), "exact", 1))
    np.testing.assert_array_equal(first_value(problem), [3.0, 0.0])


def test_a_plain_step_is_taken_where_it_is_sure_to_do(monkeypatch):
    """After the first sweep of a chain with discount .1, a gap of up to ten times the goal is one
    plain step away.
    """
    model = drmdp.instances.perturb(drmdp.instances.garnet(12, 3, discount=0.1), 4)
    ambiguity = drmdp.Wasserstein(0.2)
    first = drmdp.solve(model, ambiguity, max_iters=0)
    asked, watched = [], {"callback": lambda record: None}  # or systems are solved in compiled code
    solve = newton_systems.solve
    monkeypatch.setattr(newton_systems, "solve", lambda *args: asked.append(1) or solve(*args))
    near = drmdp.solve(model, ambiguity, tol=first.gap / 5, **watched)
    assert (near.status, near.n_iters, len(asked)) == ("solved", 1, 0)
    assert drmdp.solve(model, ambiguity, tol=first.gap / 1000, **watched).status == "solved"
    assert len(asked) > 0
    assert vars(drmdp.solve(model, ambiguity, tol=first.gap / 5).history[-1]) | {
        "seconds": 0
    } == vars(near.history[-1]) | {"seconds": 0}


def test_threads_may_solve_a_model_at_the_same_time():
    """They share its layout and its work space."""
    model = drmdp.instances.perturb(drmdp.instances.garnet(12, 3), 5)
    balls = [drmdp.Wasserstein(radius) for radius in (0.0, 0.1, 0.5)]
    alone = [drmdp.solve(model, ambiguity) for ambiguity in balls]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(
            alone * 40,
            pool.map(lambda ambiguity: drmdp.solve(model, ambiguity), balls * 40),
            strict=True,
        ):
            for name in ("value", "policy", "lower", "upper", "kernel"):
                assert (
                    np.asarray(getattr(one, name)).tobytes()
                    == np.asarray(getattr(other, name)).tobytes()
                ), name
