"""Whatever is given to `Model`: a valid model or an `InputError`; never another exception, never a
warning.

A valid set of arguments is drawn, in every form the contract allows, and then spoiled in one to
three places.
"""

import contextlib
import datetime
import decimal
import fractions
import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import drmdp

relaxed = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def often(few, many, drawn):
    """Make a test of a check of what is drawn: few examples, and many in the long runs."""

    def decorate(check):
        @pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.fuzz)])
        def run(examples):
            settings(relaxed, max_examples=examples)(given(drawn)(check))()

        run.__name__ = check.__name__
        return run

    return decorate


# ---------------------------------------------------------------------- valid arguments


@st.composite
def arguments(draw):
    """Draw valid arguments of `Model`."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    N, S, A = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    y = rng.dirichlet(np.ones(S), (N, S, A))
    y *= rng.random(y.shape) < draw(st.sampled_from([0.3, 0.7, 1.0]))
    y[y.sum(axis=-1) == 0] = np.eye(S)[0]
    y /= y.sum(axis=-1, keepdims=True)
    parts = {"kernels": y, "discount": draw(st.sampled_from([0, 0.5, 0.9, 1 - 1e-9]))}
    shape = draw(st.sampled_from([(S,), (S, A), (S, A, S)]))
    c = rng.normal(size=shape) * draw(st.sampled_from([1e-9, 1.0, 1e9]))
    parts[draw(st.sampled_from(["costs", "rewards"]))] = c
    optional = {
        "weights": rng.dirichlet(np.ones(N)),
        "initial": rng.dirichlet(np.ones(S)),
        "states": [f"s{s}" for s in range(S)],
        "actions": [10 + a for a in range(A)],
        "available": rng.random((S, A)) < 0.8,
        "terminal": rng.random(S) < 0.2,
    }
    optional["available"][:, 0] = True
    parts |= {name: optional[name] for name in draw(st.sets(st.sampled_from(sorted(optional))))}
    if draw(st.booleans()):
        form = draw(
            st.sampled_from(
                ["csr_array", "csc_array", "coo_array", "csr_matrix", "lil_array", "bsr_array"]
            )
        )
        parts["kernels"] = [getattr(sparse, form)(k.reshape(S * A, S)) for k in y]
        if A == 1:  # N square matrices might as well be N actions
            parts["actions"] = optional["actions"]
    elif N == 1 and S != A and draw(st.booleans()):
        parts["kernels"] = y[0]
    if c.ndim == 3 and draw(st.booleans()):
        name = "costs" if "costs" in parts else "rewards"
        parts[name] = sparse.csr_array(c.reshape(S * A, S))
    return parts


# ---------------------------------------------------------------------- ways to spoil them


class Frame:
    """Like a data frame: an array only on request, and with the signature of old."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None):
        return np.asarray(self.values, dtype=dtype)


class Hostile:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")

    def __iter__(self):
        raise TypeError("no items")

    def __hash__(self):
        raise TypeError("no hash")


deep = [0.5]
for _ in range(200):
    deep = [deep]

STRANGE = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    10**400,
    -(10**5000),
    2**63,
    1j,
    "",
    "a",
    "0.5",
    b"a",
    bytearray(b"ab"),
    memoryview(b"ab"),
    [],
    (),
    {},
    set(),
    {0.5},
    [[]],
    [None],
    ["a"],
    [[["a"]]],
    [[1], [1, 2]],
    deep,
    [2**64, 0],
    object(),
    object,
    int,
    len,
    range(3),
    slice(2),
    Ellipsis,
    NotImplemented,
    datetime.date(2020, 1, 1),
    decimal.Decimal("0.5"),
    fractions.Fraction(1, 2),
    {0: 1},
    {"s0": 1},
    {"s0": [10]},
    {"s0": {"a": None}},
    {0: [0]},
    {0: [True]},
    np.float32(0.5),
    np.float16(0.5),
    np.longdouble("0.5"),
    np.bool_(True),
    np.int8(0),
    np.str_("s0"),
    np.datetime64("2020-01-01"),
    np.array(0.5),
    np.array([]),
    np.zeros((0, 2)),
    np.array(["s0", "s1"]),
    np.arange(4),
    np.array([None, 1.0]),
    np.ones(2, dtype="M8[D]"),
    np.ones(2, dtype="m8[s]"),
    np.zeros(2, dtype=[("a", "f8")]),
    np.full((2, 2, 2), 0.5),
    np.full((1, 2, 1, 2), 0.5),
    np.array([[0.5, 0.5]]).view(np.matrix),
    np.ma.masked,
    [np.ma.masked, 1.0],
    np.ma.array([0.5, 0.5], mask=[True, False]),
    Hostile(),
    [Hostile()],
    {"s0": Hostile()},
    {0: Hostile()},
    Frame([0.5, 0.5]),
    Frame(None),
    Frame("a"),
    sparse.csr_array((2, 2)),
    sparse.coo_array(np.ones(3)),
    [sparse.csr_array((2, 1)), None],
]
ONCE = {  # these can be read only once, so each example needs its own
    "generator": lambda: (x for x in [0.5, 0.5]),
    "iterator": lambda: iter(["s0", "s1"]),
    "map": lambda: map(bool, [0, 1]),
    "endless": itertools.count,
}
NUMBERS = [
    math.nan,
    math.inf,
    -math.inf,
    -1.0,
    -1e-300,
    -0.0,
    0.0,
    5e-324,
    1e-9,
    0.5,
    1.0,
    1 + 1e-9,
    2.0,
    1e200,
    1.7e308,
    -1e308,
]
DTYPES = ["f2", "f4", ">f8", "g", "i1", "u1", "i8", "?", "c16", "O", "U8", "S8", "M8[s]", "m8[s]"]


SHAPES = [
    np.ravel,
    np.transpose,
    np.squeeze,
    lambda x: x[None],
    lambda x: x[..., None],
    lambda x: x[:0],
    lambda x: x[:1],
    lambda x: x[..., :-1],
    lambda x: x.sum(axis=-1),
    lambda x: np.concatenate([x, x]),
    lambda x: np.concatenate([x, x], axis=-1),
    lambda x: np.broadcast_to(x, (2, *x.shape)),
]
CONTAINERS = [
    np.ndarray.tolist,
    Frame,
    np.asfortranarray,
    np.ma.array,
    lambda x: np.ma.array(x, mask=np.arange(x.size) == 1),
    lambda x: x[::-1],
    lambda x: x.astype(object),
    lambda x: tuple(x.tolist()),
    lambda x: iter(x.tolist()),
    lambda x: set(x.ravel().tolist()),
    lambda x: dict(enumerate(x.tolist())),
    repr,
    lambda x: [x, None],
    lambda x: {f"s{k}": y for k, y in enumerate(x.tolist())},
    lambda x: [x, x.tolist()],
    lambda x: x.astype("U8"),
]


def array_of(value):
    """Dense form of what is to be spoiled, at least one-dimensional; None if it has none."""
    if sparse.issparse(value):
        value = [value]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(value, list) and all(map(sparse.issparse, value)):
                for matrix in value:  # one that was spoiled already may lead scipy out of the array
                    getattr(matrix, "check_format", lambda: None)()
                value = [matrix.toarray() for matrix in value]
            array = np.atleast_1d(np.array(value))
    except Exception:
        return None
    return array if array.size and array.dtype.kind in "biuf" else None


def convert(array, dtype):
    """Convert at any price."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (np.nan_to_num(array).astype("i8") if dtype[0] in "Mm" else array).astype(dtype)


@st.composite
def spoil_array(draw, value):
    """Change an array: numbers, shape, dtype or container."""
    array = array_of(value)
    if array is None:
        return draw(st.sampled_from(STRANGE))
    match draw(
        st.sampled_from(["number", "number", "scale", "shape", "dtype", "container", "sparse"])
    ):
        case "number":
            array = array.astype(float)
            array[tuple(draw(st.integers(0, n - 1)) for n in array.shape)] = draw(
                st.sampled_from(NUMBERS)
            )
            return array
        case "scale":
            return array * draw(
                st.sampled_from([0.0, -1.0, 1 + 1e-12, 1 + 5e-10, 1 + 1e-6, math.nan])
            )
        case "shape":
            return draw(st.sampled_from(SHAPES))(array)
        case "dtype":
            return convert(array, draw(st.sampled_from(DTYPES)))
        case "sparse" if array.ndim >= 2:
            return draw(spoiled_sparse(array.reshape(-1, array.shape[-1])))
        case _:
            return draw(st.sampled_from(CONTAINERS))(array)


@st.composite
def spoiled_sparse(draw, array):
    """Make a sparse matrix with explicit zeros, duplicates, another dtype, or indices that scipy
    has not looked at.
    """
    array = array.astype(float)
    pair, t = np.nonzero(np.ones(array.shape))
    p = array[pair, t]
    kind = draw(
        st.sampled_from(["zeros", "halves", "twice", "dtype", "column", "pointer", "list", "nan"])
    )
    if kind == "halves":
        pair, t, p = np.r_[pair, pair], np.r_[t, t], np.r_[p, p] / 2
    if kind == "twice":
        pair, t, p = np.r_[pair, pair], np.r_[t, t], np.r_[p, p]
    if kind == "nan" and p.size:
        p[draw(st.integers(0, p.size - 1))] = draw(st.sampled_from(NUMBERS))
    matrix = sparse.coo_array((p, (pair, t)), shape=array.shape)
    if kind == "dtype":
        return convert(matrix, draw(st.sampled_from(["f4", "g", "i1", "u1", "i8", "?", "c16"])))
    if kind in ("column", "pointer") and matrix.nnz:
        matrix = matrix.tocsr()
        part = matrix.indices if kind == "column" else matrix.indptr
        part[draw(st.integers(0, part.size - 1))] = draw(st.sampled_from([-1, 1, 7, 2**30]))
        return matrix
    return [matrix, matrix.tocsr()] if kind == "list" else matrix


NAMES = [
    "kernels",
    "costs",
    "rewards",
    "discount",
    "weights",
    "initial",
    "states",
    "actions",
    "available",
    "terminal",
]


@st.composite
def spoiled_arguments(draw):
    parts = draw(arguments())
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(NAMES))
        match draw(
            st.sampled_from(
                ["array", "array", "array", "strange", "once", "swap", "drop", "element"]
            )
        ):
            case "array":
                parts[name] = draw(spoil_array(parts.get(name)))
            case "strange":
                parts[name] = draw(st.sampled_from(STRANGE))
            case "once":
                parts[name] = ONCE[draw(st.sampled_from(sorted(ONCE)))]()
            case "swap":
                other = draw(st.sampled_from(NAMES))
                parts[name], parts[other] = parts.get(other), parts.get(name)
            case "drop":
                parts.pop(name, None)
            case "element" if isinstance(parts.get(name), list) and parts[name]:
                changed = list(parts[name])
                changed[draw(st.integers(0, len(changed) - 1))] = draw(st.sampled_from(STRANGE))
                parts[name] = changed
    parts.setdefault("kernels", None)
    parts.setdefault("discount", None)
    return parts


# ---------------------------------------------------------------------- what must hold


@contextlib.contextmanager
def no_warning():
    """Fail on any warning, also where an exception in its place would be turned into an
    `InputError`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert not [str(warning.message) for warning in caught]


def dense(model):
    return np.stack([k.toarray() for k in model.kernels]).reshape(
        -1, model.n_states, model.n_actions, model.n_states
    )


def check(model):
    """Check what is true of every model, whatever it was made of."""
    N, S, A = model.n_kernels, model.n_states, model.n_actions
    assert min(N, S, A) >= 1
    assert 0 <= model.discount < 1
    y = dense(model) if model.is_sparse else model.kernels
    assert y.shape == (N, S, A, S)
    assert np.isfinite(y).all()
    assert (y >= 0).all()
    assert np.abs(y.sum(axis=-1) - model.available).max() <= 1e-12
    assert model.available.shape == (S, A)
    assert model.available.dtype == model.terminal.dtype == bool
    assert np.array_equal(model.available.any(axis=1), ~model.terminal)
    for p, size in ((model.weights, N), (model.initial, S)):
        assert p.shape == (size,)
        assert (p >= 0).all()
        assert abs(p.sum() - 1) <= 1e-12
    c = model.costs
    assert c.shape == (
        (S * A, S) if sparse.issparse(c) else (S, A, S) if model.next_costs else (S, A)
    )
    z = model.stakes(np.zeros(S), 0, S)
    seen = model.blocks.mask(0, S)
    assert np.isfinite(z[seen]).all()
    assert model.costs_missing == bool(np.isnan(z[model.available]).any())
    low, high = model.cost_range
    assert np.isfinite([low / (1 - model.discount), high / (1 - model.discount)]).all()
    assert np.array_equal(model.observed(0, S), (y[model.weights > 0] > 0).any(axis=0))
    for names, size in ((model.states, S), (model.actions, A)):
        assert len(set(names)) == len(names) == size
        assert all(
            name is not None and not isinstance(name, bool) and name == name for name in names
        )  # NaN ≠ NaN
    assert len(repr(model).splitlines()) <= 6
    playing = model.policy(
        np.where(model.available, 1 / np.maximum(model.available.sum(axis=1, keepdims=True), 1), 0)
    )
    assert np.abs(playing.sum(axis=1) - ~model.terminal).max() <= 1e-12
    again = rebuilt(model)
    assert again == model
    assert again.notes == ()


def rebuilt(model):
    sign = {"rewards": 0.0 - model.costs if not sparse.issparse(model.costs) else -model.costs}
    return drmdp.Model(
        model.kernels,
        **(sign if model.maximise else {"costs": model.costs}),
        discount=model.discount,
        weights=model.weights,
        initial=model.initial,
        states=model.states,
        actions=model.actions,
        available=model.available | model.terminal[:, None],
        terminal=model.terminal,
    )


@often(40, 1000, arguments())
def test_valid_arguments_make_the_model_they_describe(parts):
    model = drmdp.Model(**parts)
    check(model)
    y = array_of(parts["kernels"]).reshape(
        model.n_kernels, model.n_states, model.n_actions, model.n_states
    )
    got = dense(model) if model.is_sparse else model.kernels
    assert np.array_equal(got, np.where(model.available[None, :, :, None], y, 0))
    assert np.array_equal(
        model.weights, parts.get("weights", np.full(model.n_kernels, 1 / model.n_kernels))
    )
    assert np.array_equal(model.terminal, parts.get("terminal", np.zeros(model.n_states)))


@often(200, 5000, spoiled_arguments())
def test_spoiled_arguments_make_a_valid_model_or_an_input_error(parts):
    with no_warning():
        try:
            model = drmdp.Model(**parts)
        except drmdp.InputError as error:
            assert "\n" not in str(error)  # noqa: PT017  (either outcome is right)
            assert len(str(error)) < 600  # noqa: PT017
        else:
            check(model)


@often(60, 1500, st.data())
def test_spoiled_policies_are_policies_or_an_input_error(data):
    model = drmdp.Model(**data.draw(arguments()))
    policy = np.where(model.available, 1.0, 0) / np.maximum(
        model.available.sum(axis=1, keepdims=True), 1
    )
    form = data.draw(st.sampled_from(["array", "numbers", "mapping"]))
    if form == "numbers":
        policy = policy.argmax(axis=1)
    if form == "mapping":
        some = st.sampled_from(
            [*STRANGE, *model.actions, dict.fromkeys(model.actions, 1 / model.n_actions)]
        )
        policy = {
            name: data.draw(some)
            for name in [*model.states, *data.draw(st.lists(st.sampled_from(["x", None, 7, 1.5])))]
        }
    else:
        policy = data.draw(spoil_array(policy))
    with no_warning():
        try:
            x = model.policy(policy)
        except drmdp.InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert x.shape == (model.n_states, model.n_actions)
            assert (x >= 0).all()
            assert not x[~model.available].any()
            assert np.abs(x.sum(axis=1) - ~model.terminal).max() <= 1e-12


@often(150, 1500, st.data())
def test_spoiled_balls_are_balls_or_an_input_error(data):
    strange = st.sampled_from([value for value in STRANGE if not isinstance(value, Hostile)])
    radius = data.draw(
        st.one_of(strange, spoil_array(np.array([0.5, 1.0])), st.sampled_from(NUMBERS))
    )
    metric = data.draw(st.one_of(strange, st.sampled_from(["l1", "l2", "linf"])))
    order = data.draw(st.one_of(strange, st.sampled_from([1, 2, math.inf])))
    support = data.draw(st.one_of(strange, st.sampled_from(["all", "observed"])))
    with no_warning():
        try:
            ambiguity = drmdp.Wasserstein(radius, metric, order, support)
        except drmdp.InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert np.isfinite(ambiguity.radius).all()
            assert np.min(ambiguity.radius) >= 0
            assert ambiguity == drmdp.Wasserstein(
                ambiguity.radius, ambiguity.metric, ambiguity.order, ambiguity.support
            )
            assert "Wasserstein" in repr(ambiguity)
            hash(ambiguity)
