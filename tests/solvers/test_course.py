"""Several steps in one compiled call are the steps, bit for bit, and nobody who watches is passed over."""

import copy
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba.core.errors import TypingError

import drmdp
from cases import game
from drmdp.core.compiled import KERNEL, Entry, call, njit
from drmdp.sets import PAIRS
from drmdp.solvers import course

IDS = [f"{metric}-{order:g}" for metric, order in PAIRS]


def random_model(rng, dtype=None):
    S, A, N = int(rng.integers(1, 25)), int(rng.integers(1, 6)), int(rng.integers(1, 8))
    kernels = rng.dirichlet(np.full(S, rng.choice([0.05, 0.3, 1.0])), size=(N, S, A))
    kernels *= kernels > rng.choice([0.0, 0.02])
    kernels /= kernels.sum(axis=3, keepdims=True)
    costs = rng.uniform(-1, 1, (S, A)) if rng.random() < 0.7 else rng.integers(1, 4, (S, A)).astype(float)
    if rng.random() < 0.3:
        costs = rng.uniform(0, 1, (S, A, S))
    available = rng.random((S, A)) < 0.9
    available[:, 0] = True
    terminal = rng.random(S) < 0.1
    sign = {"rewards" if rng.random() < 0.3 else "costs": costs}
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999]))
    return drmdp.Model(kernels, **sign, discount=discount, available=available, terminal=terminal, dtype=dtype)


def equal(one, other):
    """Whether two solutions are the same but for their clocks."""
    for name in ("value", "policy", "lower", "upper", "kernel"):
        assert np.asarray(getattr(one, name)).tobytes() == np.asarray(getattr(other, name)).tobytes(), name
    for a, b in zip(one.history, other.history, strict=True):
        assert vars(a) | {"seconds": 0} == vars(b) | {"seconds": 0}
    assert one.status == other.status


def both(model, ball, **settings):
    """A run that goes ahead, as the second of a model does, and one that is watched."""
    drmdp.solve(model, ball, max_iters=0)
    return (drmdp.solve(model, ball, **settings, callback=callback) for callback in (None, lambda record: None))


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_a_course_has_the_bits_of_single_steps(pair, monkeypatch):
    counts = []
    walked = course.course
    monkeypatch.setattr("drmdp.solvers.policy_iteration.course", lambda *given: counted(counts, walked(*given)))
    rng = np.random.default_rng(PAIRS.index(pair))
    for n in range(12):
        model = random_model(rng, "float32" if n % 4 == 3 else None)
        radius, support = (
            float(10 ** rng.uniform(-3, 0.5)),
            "observed" if model.next_costs else ("all", "observed")[n % 2],
        )
        ball = drmdp.Wasserstein(radius, *pair, support)
        tol = {"tol": 10.0 ** -rng.integers(1, 12)} if n % 3 else {}
        equal(*both(model, ball, **tol))
    if pair in (("l1", 1), ("l2", 2), ("l2", np.inf), ("linf", np.inf)):  # Python drives the others
        assert sum(counts) >= 12


def counted(counts, journey):
    counts.append(len(journey.numbers))
    return journey


@pytest.mark.parametrize("pair", [("l1", 1), ("linf", np.inf)], ids=str)
def test_where_newton_is_refused_the_method_goes_on_alone(pair):
    one, other = both(*game(pair), tol=1e-6)
    equal(one, other)
    passes = [record.kernel_passes for record in one.history]
    assert any(later > sooner + 1 for sooner, later in itertools.pairwise(passes))  # a point was refused, x evaluated


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_limits_hold_inside_a_course(limit):
    model = drmdp.instances.perturb(drmdp.instances.garnet(12, 3), 5)
    one, other = both(model, drmdp.Wasserstein(0.5), tol=0.0, max_iters=limit)
    equal(one, other)
    assert one.status == "iteration_limit"
    assert one.n_iters == limit


def test_those_who_watch_see_every_iteration(monkeypatch):
    def fail(*given):
        raise AssertionError

    monkeypatch.setattr("drmdp.solvers.policy_iteration.course", fail)
    model, ball = drmdp.instances.perturb(drmdp.instances.garnet(12, 3), 5), drmdp.Wasserstein(0.5)
    seen = []
    drmdp.solve(model, ball)
    drmdp.solve(model, ball, callback=seen.append)
    drmdp.solve(model, ball, max_seconds=0.9)
    for own in ({}, {"max_seconds": 60.0}):
        with pytest.raises(AssertionError):
            drmdp.solve(model, ball, **own)
    assert len(seen) > 2


def test_copies_of_what_a_course_found_are_whole():
    model, ball = drmdp.instances.perturb(drmdp.instances.garnet(12, 3), 5), drmdp.Wasserstein(0.5)
    for _ in range(2):
        found = drmdp.solve(model, ball)
    again = pickle.loads(pickle.dumps(found))
    equal(found, again)
    assert np.array_equal(found.kernels[1], again.kernels[1])
    assert (found.settings, found.duality_gap) == (again.settings, again.duality_gap)
    assert np.array_equal(copy.deepcopy(found).kernel, found.kernel)


def test_threads_may_solve_a_model_at_the_same_time():
    model = drmdp.instances.perturb(drmdp.instances.garnet(12, 3), 5)
    balls = [drmdp.Wasserstein(radius) for radius in (0.0, 0.1, 0.5)]
    alone = [list(both(model, ball))[1] for ball in balls]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone * 40, pool.map(lambda ball: drmdp.solve(model, ball), balls * 40), strict=True):
            equal(one, other)


@njit(**KERNEL)
def _fill(a, x):
    """Fill a with x."""
    for k in range(a.size):
        a[k] = x


@njit(**KERNEL)
def _fill_by_entry(entry, a, x):
    """The same by an entry."""
    call(entry, (a, x))


def test_an_entry_is_called_with_what_it_is_for_or_nothing_is_compiled():
    entry, found = Entry(_fill, np.empty(3), 1.0), np.zeros(3)
    _fill_by_entry(entry, found, 2.0)
    assert found.tolist() == [2.0] * 3
    with pytest.raises(TypingError, match="is called with"):
        _fill_by_entry(entry, found.astype(np.float32), 2.0)
