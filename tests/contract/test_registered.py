"""What everything that is registered must do: sets, engines, methods, formats, families of instances."""

import numpy as np
import pytest

import drmdp
from drmdp import formats, instances
from drmdp.bellman.exact import ExactOperator
from drmdp.bellman.operator import ENGINES
from drmdp.layout.memory import Memory
from drmdp.sets import PAIRS
from drmdp.sets.registry import ENTRIES, MAKERS, load
from drmdp.solvers.problem import Problem

SETS = pytest.mark.parametrize("key", PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")
SUPPORTS = pytest.mark.parametrize("support", ["observed", "all"])
METHODS = pytest.mark.parametrize("method", drmdp.METHODS)


def model(**settings):
    """Five states, one of them terminal, an unavailable action, a kernel of weight 0, zeros."""
    rng = np.random.default_rng(1)
    kernels = rng.dirichlet(np.full(5, 0.5), size=(4, 5, 3))
    kernels[kernels < 0.05] = 0
    kernels /= kernels.sum(axis=-1, keepdims=True)
    available = np.ones((5, 3), dtype=bool)
    available[1, 2] = False
    settings = {"costs": rng.random((5, 3)), "discount": 0.8, "weights": [0.5, 0.25, 0.25, 0]} | settings
    return drmdp.Model(kernels, available=available, terminal=[3], **settings)


def test_every_pair_has_an_entry():
    assert set(PAIRS) <= set(ENTRIES)


@SETS
def test_an_entry_joins_a_file_of_each_layer(key):
    entry = ENTRIES[key]
    response, proof = load(entry.response), load(entry.certificate)
    assert all(hasattr(response, name) for name in ("update", "evaluate", "workspace", "NATURE"))
    assert all(hasattr(proof, name) for name in ("states", "dual_rows"))
    assert entry.response.split(".")[1] == "bellman"
    assert entry.certificate.split(".")[1] == "certificate"
    assert load(entry.program).update
    assert load(entry.projection).kernel


@SETS
@SUPPORTS
def test_a_set_says_what_it_is(key, support):
    ball = load(MAKERS["wasserstein"])(0.3, *key, support)
    assert ball.key == key
    assert ball == ball.with_radius(0.3)
    assert ball != ball.with_radius(0.4)
    assert key[0] in ball.short
    assert support in ball.words
    assert all(isinstance(text, str) for text in ball.facts().values())
    far = ball.saturation(model())
    assert (far[[0, 1, 2, 4]] > 0).all()
    assert far[3] == 0


@SETS
@SUPPORTS
def test_a_distance_is_zero_at_the_data_convex_and_as_large_as_the_radius_at_saturation(key, support):
    rng, ball = np.random.default_rng(2), drmdp.Wasserstein(0.3, *key, support)
    nominal, far = rng.dirichlet(np.ones(4), (2, 3)), rng.dirichlet(np.ones(4), (2, 3))
    weights = np.array([0.5, 0.3, 0.2])
    assert (ball.apart(nominal, nominal, weights) == 0).all()
    half = ball.apart((nominal + far) / 2, nominal, weights)
    assert (half <= ball.apart(far, nominal, weights) / 2 + 1e-15).all()


@SETS
@SUPPORTS
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(key, support, engine):
    own, ball = model(), drmdp.Wasserstein(0.2, *key, support)
    value = np.array([0.0, 1.0, 2.0, 0.0, 3.0])
    found = drmdp.bellman(own, ball, value, backend=engine)
    other = drmdp.bellman(own, ball, value)
    assert (found.lower <= other.upper).all()
    assert (found.upper >= other.lower).all()
    assert (found.upper - found.lower).max() < 1e-6
    x = own.available / np.maximum(own.available.sum(axis=1, keepdims=True), 1)
    worst, again = (drmdp.evaluate(own, ball, x, backend=name) for name in (engine, "exact"))
    np.testing.assert_allclose(worst.value, again.value, rtol=1e-5)


@METHODS
@SUPPORTS
def test_methods_agree(method, support):
    own, ball = model(), drmdp.Wasserstein(0.2, support=support)
    found, want = drmdp.solve(own, ball, method, rtol=1e-3), drmdp.solve(own, ball, rtol=1e-9)
    assert found.status == "solved"
    assert (found.lower <= want.upper).all()
    assert (found.upper >= want.lower).all()
    assert drmdp.solve(own, ball, drmdp.METHODS[method](), rtol=1e-3).settings["method"] == method


@pytest.mark.parametrize("suffix", formats.SUFFIXES)
def test_formats_bring_a_model_back(suffix, tmp_path):
    rows = np.random.default_rng(3).multinomial(8, np.full(5, 0.2), size=(5, 3)) / 8
    own = drmdp.Model(rows, costs=np.arange(15.0).reshape(5, 3), discount=0.8)
    path = tmp_path / f"model{suffix}"
    drmdp.write(own, path)
    again = drmdp.read(path, discount=None if suffix in (".npz", ".drmdp") else 0.8)
    np.testing.assert_allclose(
        np.asarray(again.mean_kernel.toarray() if again.is_sparse else again.mean_kernel).reshape(5, 3, 5),
        np.asarray(own.mean_kernel), rtol=0, atol=1e-15,
    )  # fmt: skip
    assert formats.files_of(path)


@pytest.mark.parametrize("family", instances.FAMILIES)
def test_instances_are_the_same_for_the_same_seed(family):
    small = {"garnet": (4, 2), "grid": (9,), "reservoir": (6,)}.get(family, (5,))
    one, other = (instances.FAMILIES[family](*small) for _ in range(2))
    assert one == other
    assert drmdp.solve(one, drmdp.Wasserstein(0.1)).status == "solved"


@SETS
@SUPPORTS
def test_nothing_that_is_left_in_memory_makes_a_bound_false(key, support):
    """NaN in the memory of the last sweep, and a policy with a row of zeros."""
    own, ball = model(), drmdp.Wasserstein(0.2, *key, support)
    value = np.array([0.0, 1.0, 2.0, 0.0, 3.0])
    x = own.available / np.maximum(own.available.sum(axis=1, keepdims=True), 1)
    operator = ExactOperator(own, ball, threads=1)
    want = Problem(ExactOperator(own, ball, threads=1)).proved(value, x)
    broken = Memory(*(np.full_like(part, np.nan) for part in operator.left.memory))
    operator.left = operator.left._replace(memory=broken)
    found = Problem(operator).prove(value, operator.evaluate(value, x, 0, 5), True)
    assert (found.lower_step <= want.upper_step).all()
    assert (found.upper_step >= want.lower_step).all()
    empty = x.copy()
    empty[0] = 0
    bare = operator.evaluate(value, empty, 0, 5)
    assert np.isfinite(bare.value[1:]).all()
