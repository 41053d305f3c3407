"""What everything that is registered must do: sets, engines, methods, formats, families of
instances.
"""

import html

import numpy as np
import pytest

import drmdp
from decks import SETS, often
from drmdp import formats, instances
from drmdp.layout.memory import SweepMemory
from drmdp.operators.exact import ExactOperator
from drmdp.operators.operator import ENGINES
from drmdp.sets.registry import ENTRIES, MAKERS, entry_of, load, part_of
from drmdp.solvers.problem import Problem

EVERY = pytest.mark.parametrize("name", SETS)
SOLVED = pytest.mark.parametrize("name", often(SETS))
SUPPORTS = pytest.mark.parametrize("support", ["observed", "state", "all"])
METHODS = pytest.mark.parametrize("method", drmdp.METHODS)


def model(**settings):
    """Five states, one of them terminal, an unavailable action, a kernel of weight 0, zeros."""
    rng = np.random.default_rng(1)
    kernels = rng.dirichlet(np.full(5, 0.5), size=(4, 5, 3))
    kernels[kernels < 0.05] = 0
    kernels /= kernels.sum(axis=-1, keepdims=True)
    available = np.ones((5, 3), dtype=bool)
    available[1, 2] = False
    settings = {
        "costs": rng.random((5, 3)),
        "discount": 0.8,
        "weights": [0.5, 0.25, 0.25, 0],
    } | settings
    return drmdp.Model(kernels, available=available, terminal=[3], **settings)


def ambiguity_of(name, own, size=0.2, support="observed"):
    return SETS[name].make(own, size, support)


@EVERY
def test_an_entry_joins_a_file_of_each_layer(name):
    ambiguity = ambiguity_of(name, model())
    entry = entry_of(ambiguity)
    assert ambiguity.key == SETS[name].key
    assert entry == (
        ENTRIES[ambiguity.key].by_pair if ambiguity.by_pair else ENTRIES[ambiguity.key]
    )
    response, proof = part_of(entry.response, ambiguity), part_of(entry.certificate, ambiguity)
    assert all(hasattr(response, part) for part in ("sweep", "respond", "prepared"))
    assert hasattr(proof, "states")
    assert entry.response.split(".")[1] == "operators"
    assert entry.certificate.split(".")[1] == "certificate"
    program = load(entry.program)
    assert hasattr(program, "sweep") or hasattr(program, "update")
    if entry.projection:
        assert load(entry.projection).norm


def test_every_class_has_a_name():
    classes = {type(ambiguity_of(name, model())) for name in SETS}
    assert classes == {load(where) for where in MAKERS.values()}


@EVERY
@SUPPORTS
def test_a_set_says_what_it_is(name, support):
    own = model()
    ambiguity = ambiguity_of(name, own, support=support)
    assert ambiguity.short
    assert ambiguity.words
    assert all(isinstance(text, str) for text in ambiguity.facts().values())
    assert ambiguity.facing("cooperative").nature == "cooperative"
    if not ambiguity.sized:
        assert ambiguity.size_words == ""
        with pytest.raises(drmdp.InputError, match="has no radius"):
            ambiguity.with_radius(0.1)
        return
    assert ambiguity == ambiguity.with_radius(ambiguity.radius)
    assert ambiguity != ambiguity.with_radius(0.9)
    assert ambiguity.size_words
    far = ambiguity.saturation(own)
    assert (far[[0, 1, 2, 4]] > 0).all()
    assert far[3] == 0


@EVERY
@SUPPORTS
def test_a_distance_is_zero_at_the_data_and_convex(name, support):
    rng, ambiguity = np.random.default_rng(2), ambiguity_of(name, model(), support=support)
    nominal, far = rng.dirichlet(np.ones(4), (2, 3)), rng.dirichlet(np.ones(4), (2, 3))
    weights = np.array([0.5, 0.3, 0.2])
    nominal, weights = ambiguity.centred(nominal, weights)
    far = far[:, : nominal.shape[1]]
    try:
        assert (ambiguity.apart(nominal, nominal, weights) == 0).all()
    except NotImplementedError:  # what is compared are mixtures, or bounds
        return
    half = ambiguity.apart((nominal + far) / 2, nominal, weights)
    assert (half <= ambiguity.apart(far, nominal, weights) / 2 + 1e-15).all()


VALUE = np.array([0.0, 1.0, 2.0, 0.0, 3.0])


@SOLVED
@SUPPORTS
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(name, support, engine):
    own = model()
    ambiguity = ambiguity_of(name, own, support=support)
    found = drmdp.bellman(own, ambiguity, VALUE, backend=engine)
    other = drmdp.bellman(own, ambiguity, VALUE)
    assert (found.lower <= other.upper).all()
    assert (found.upper >= other.lower).all()
    assert (found.upper - found.lower).max() < 1e-6
    x = own.available / np.maximum(own.available.sum(axis=1, keepdims=True), 1)
    worst, again = (drmdp.evaluate(own, ambiguity, x, backend=each) for each in (engine, "exact"))
    np.testing.assert_allclose(worst.value, again.value, rtol=1e-5)


@pytest.mark.usefixtures("sketched")
@SOLVED
def test_a_set_goes_everywhere(name, tmp_path):
    own = model()
    ambiguity = ambiguity_of(name, own)
    found = drmdp.solve(own, ambiguity, tol=1e-8)
    assert found.status == "solved"
    np.testing.assert_allclose(
        drmdp.evaluate(own, ambiguity, found.policy, tol=1e-8).value, found.value, atol=1e-6
    )
    assert drmdp.certify(own, ambiguity, found).gap < 1e-5
    plan = drmdp.finite_horizon(own, ambiguity, 120)
    np.testing.assert_allclose(plan.value[0], found.value, atol=1e-6)
    for result in (found, plan):
        result.save(tmp_path / "result.npz")
        again = type(result).load(tmp_path / "result.npz")
        for name in ("value", "lower", "upper", "policy"):
            np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    np.testing.assert_array_equal(
        drmdp.evaluate(own, ambiguity, again).value, drmdp.evaluate(own, ambiguity, plan).value
    )
    kind = drmdp.solve(own, ambiguity, nature="cooperative")
    nominal = drmdp.solve(own, drmdp.Wasserstein(0))
    assert ambiguity.key == "intervals" or (kind.lower <= nominal.upper).all()
    assert ambiguity.key == "intervals" or (nominal.lower <= found.upper).all()
    sweep = None
    if ambiguity.sized:
        sizes = [0.25, 0.5, 1.0] if ambiguity.size_words.startswith("level") else [0.0, 0.1, 0.5]
        sweep = drmdp.radius.path(own, ambiguity, sizes)
        assert (np.diff(sweep.worst) * (1 if sizes[0] == 0 else -1) >= -1e-6).all()
        assert isinstance(drmdp.radius.critical(sweep, precision=0.1), tuple)
        assert drmdp.radius.choose(sweep, own).radius in sizes
        drmdp.plot.radius(sweep)
    found.report(tmp_path / "page.html", sweep=sweep)
    assert next(iter(ambiguity.facts().values())) in html.unescape(
        (tmp_path / "page.html").read_text()
    )


@METHODS
@SUPPORTS
def test_methods_agree(method, support):
    own, ambiguity = model(), drmdp.Wasserstein(0.2, support=support)
    found, want = (
        drmdp.solve(own, ambiguity, method, rtol=1e-3),
        drmdp.solve(own, ambiguity, rtol=1e-9),
    )
    assert found.status == "solved"
    assert (found.lower <= want.upper).all()
    assert (found.upper >= want.lower).all()
    assert (
        drmdp.solve(own, ambiguity, drmdp.METHODS[method](), rtol=1e-3).settings["method"] == method
    )


@pytest.mark.parametrize("suffix", formats.SUFFIXES)
def test_formats_bring_a_model_back(suffix, tmp_path):
    rows = np.random.default_rng(3).multinomial(8, np.full(5, 0.2), size=(5, 3)) / 8
    own = drmdp.Model(rows, costs=np.arange(15.0).reshape(5, 3), discount=0.8)
    path = tmp_path / f"model{suffix}"
    drmdp.write(own, path)
    again = drmdp.read(path, discount=None if suffix in (".npz", ".drmdp") else 0.8)
    np.testing.assert_allclose(
        np.asarray(again.mean_kernel.toarray() if again.is_sparse else again.mean_kernel).reshape(
            5, 3, 5
        ),
        np.asarray(own.mean_kernel),
        rtol=0,
        atol=1e-15,
    )
    assert formats.files_of(path)


@pytest.mark.parametrize("family", instances.FAMILIES)
def test_instances_are_the_same_for_the_same_seed(family):
    small = {"garnet": (4, 2), "grid": (9,), "reservoir": (6,)}.get(family, (5,))
    one, other = (instances.FAMILIES[family](*small) for _ in range(2))
    assert one == other
    assert drmdp.solve(one, drmdp.Wasserstein(0.1)).status == "solved"


@SOLVED
@SUPPORTS
def test_nothing_that_is_left_in_memory_makes_a_bound_false(name, support):
    """NaN in the memory of the last sweep, and a policy with a row of zeros."""
    own, value = model(), VALUE
    ambiguity = ambiguity_of(name, own, support=support).fitted(own)
    x = own.available / np.maximum(own.available.sum(axis=1, keepdims=True), 1)
    operator = ExactOperator(own, ambiguity, threads=1)
    want = Problem(ExactOperator(own, ambiguity, threads=1)).proved(value, x)
    broken = SweepMemory(*(np.full_like(part, np.nan) for part in operator.warm_start.memory))
    operator.warm_start = operator.warm_start._replace(memory=broken)
    found = Problem(operator).prove(value, operator.evaluate(value, x, 0, 5), True)
    assert (found.lower_step <= want.upper_step).all()
    assert (found.upper_step >= want.lower_step).all()
    empty = x.copy()
    empty[0] = 0
    bare = operator.evaluate(value, empty, 0, 5)
    assert np.isfinite(bare.value[1:]).all()


def _alike(own):
    """Sets that have their kind in common, but more than their sizes apart."""
    ground = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    mean = np.asarray(own.mean_kernel)
    bounds = [
        drmdp.Intervals(np.maximum(mean - d, 0), np.minimum(mean + d, 1)) for d in (0.1, 0.02)
    ]
    moved = [drmdp.Wasserstein(0.2, "transport", ground=D) for D in (ground, ground**2)]
    orders = [drmdp.Wasserstein(0.2, "l1", p) for p in (1.5, 2)]
    sizes = [drmdp.Wasserstein(r) for r in (0.3, np.array([0.1, 0.5, 0.0, 0.2, 0.3]), 0.0)]
    sides = [
        ambiguity.facing(nature)
        for ambiguity in (bounds[0], sizes[0])
        for nature in ("adversarial", "cooperative")
    ]
    return [
        *bounds,
        *moved,
        *orders,
        *sizes,
        *sides,
        *(drmdp.Wasserstein(0.3, support=s) for s in ("all", "observed", "state")),
    ]


def test_what_is_kept_with_a_model_is_for_its_own_set():
    """Bounds were false: proofs of small models took the intervals of the set before."""
    own = model()
    alone = [drmdp.solve(model(), ambiguity, threads=1) for ambiguity in _alike(model())]
    for _ in range(4):
        for ambiguity, want in zip(_alike(own), alone, strict=True):
            found = drmdp.solve(own, ambiguity, threads=1)
            for name in ("lower", "upper", "policy"):
                np.testing.assert_array_equal(
                    getattr(found, name), getattr(want, name), err_msg=f"{ambiguity}: {name}"
                )
            np.testing.assert_allclose(found.kernel, want.kernel, atol=1e-12)
