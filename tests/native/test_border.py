"""Arrays that do not fit are refused by name, and nothing is read or written outside of them."""

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest

import drmdp
from drmdp import _native, instances
from recorded import calls_of, first_order, plain, record


@pytest.fixture(scope="module")
def calls():
    """The largest calls of one set with states that are not listed, by function."""
    found = {}
    for name, given in calls_of(12, seed=5):
        if (
            name in LAYOUT
            and given[0] == "l2"
            and len(given) > 4
            and size(given) > size(found.get(name, ()))
            and unlisted(name, given)
        ):
            found[name] = given
    assert set(found) == {"sweep", "respond", "prove"}
    return found


def size(given):
    if isinstance(given, tuple):
        return sum(map(size, given))
    return given.size if isinstance(given, np.ndarray) else 0


LAYOUT = {"sweep": 5, "respond": 4, "prove": 3}
START = {"sweep": 3, "respond": 2, "prove": 1}


def unlisted(name, given):
    return given[LAYOUT[name]][10]


def changed(given, place, change):
    """A copy in which one field, however deep, is another."""
    first, *rest = place
    parts = list(given)
    parts[first] = changed(parts[first], rest, change) if rest else change(parts[first])
    return tuple(parts)


def places(given, at=()):
    """Where arrays are."""
    for k, one in enumerate(given):
        if isinstance(one, tuple):
            yield from places(one, (*at, k))
        elif isinstance(one, np.ndarray):
            yield (*at, k)


def field(given, place):
    return field(given[place[0]], place[1:]) if place else given


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


CHANGES = {
    "type": lambda array: array.astype(np.complex128),
    "precision": lambda array: np.ones(array.shape, np.float16),
    "order of bytes": lambda array: array.astype(
        array.dtype.newbyteorder() if array.itemsize > 1 else ">i2"
    ),
    "stride": lambda array: (
        np.repeat(array, 2, axis=-1)[..., ::2] if array.size > 1 else array.astype("c16")
    ),
    "list": lambda array: array.tolist(),
    "nothing": lambda array: None,
    "longer": lambda array: (
        np.concatenate([array.ravel(), array.ravel()[:1]])
        if array.size
        else np.zeros(1, array.dtype)
    ),
    "shorter": lambda array: array.ravel()[:-1].copy(),
    "none": lambda array: array.ravel()[:0].copy(),
}
UNREAD = ("prove", (4, 4))
"""The states in their order: a proof has the place of each."""


@pytest.mark.parametrize("function", ["sweep", "respond", "prove"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_does_not_fit_is_refused(calls, function, change):
    for place in places(calls[function]):
        array = field(calls[function], place)
        if (array.size == 0 and change in ("shorter", "none")) or (function, place) == UNREAD:
            continue
        given = changed(plain(calls[function]), place, CHANGES[change])
        may_pass = change in ("longer", "shorter", "none") and not fixed_size(function, place)
        with (
            contextlib.suppress(ValueError)
            if may_pass
            else pytest.raises(ValueError, match=r"^\w+: \w")
        ):
            getattr(_native, function)(*given)


FREE = "project", (5, 1)
"""The value of a push: there may be more next states than any pair lists."""


@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_does_not_fit_a_step_is_refused(change):
    small = instances.perturb(instances.garnet(9, 3), 3)
    seen = {name: given for name, given in record(lambda: first_order(small)) if name not in LAYOUT}
    assert len(seen) > 15
    for function, arguments in seen.items():
        for place in places(arguments):
            if field(arguments, place).size == 0 and change in ("shorter", "none"):
                continue
            given = changed(arguments, place, CHANGES[change])
            may_pass = change in ("longer", "shorter", "none") and (
                len(place) == 1 or (function, place) == FREE
            )
            with (
                contextlib.suppress(ValueError)
                if may_pass
                else pytest.raises(ValueError, match=r"^\w+: \w")
            ):
                getattr(_native, function)(*given)


def fixed_size(function, place):
    """Whether the length of an array is known from the others; else it says how many there are of
    something.
    """
    free = {
        "sweep": {(6, 0)},
        "respond": {(5, 0), (7, 1)},
        "prove": {(4, 0), (6, 2)},
    }[function]
    return place not in free


WRITTEN = {
    "sweep": [(7, 0), (7, 2), (8, 0), (8, 1), (8, 2), (8, 3)],
    "respond": [(7, 2, 1), (7, 2, 2)],
    "prove": [(6, 0), (6, 1), (6, 2)],
}


@pytest.mark.parametrize("function", WRITTEN)
def test_what_is_written_to_can_be_written_to(calls, function):
    for place in WRITTEN[function]:
        with pytest.raises(ValueError, match="writable"):
            getattr(_native, function)(*changed(plain(calls[function]), place, read_only))


@pytest.mark.parametrize("function", LAYOUT)
@pytest.mark.parametrize("bad", [-1, 2**31 - 1, "n"])
def test_a_state_that_is_none_is_refused(calls, function, bad):
    given = plain(calls[function])
    layout, n = given[LAYOUT[function]], field(given, (LAYOUT[function] + 1, 0)).size
    for k in (0, layout[1].size - 1):
        layout = plain(given[LAYOUT[function]])
        layout[1][k] = n if bad == "n" else bad
        with pytest.raises(ValueError, match=f"indices: expected numbers from 0 to {n - 1}"):
            getattr(_native, function)(
                *changed(plain(given), (LAYOUT[function],), lambda _, own=layout: own)
            )


@pytest.mark.parametrize("function", LAYOUT)
@pytest.mark.parametrize("bad", [-1, 10**12])
def test_entries_of_pairs_follow_each_other(calls, function, bad):
    def change(indptr):
        indptr[1] = bad
        return indptr

    given = changed(plain(calls[function]), (LAYOUT[function], 0), change)
    with pytest.raises(ValueError, match=r"indptr: expected places from 0 to \d+ that rise, got"):
        getattr(_native, function)(*given)


@pytest.mark.parametrize("function", LAYOUT)
@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 10**6), (1, 0)])
def test_states_are_those_of_the_layout(calls, function, start, stop):
    given = list(plain(calls[function]))
    given[START[function] : START[function] + 2] = start, stop
    with pytest.raises(ValueError, match="states: out of range"):
        getattr(_native, function)(*given)


@pytest.mark.parametrize("function", LAYOUT)
def test_tuples_and_names_are_what_they_should_be(calls, function):
    call, given = getattr(_native, function), plain(calls[function])
    for other in ((), (1, 2), "layout", [*given[LAYOUT[function]]]):
        with pytest.raises(ValueError, match="expected a tuple"):
            call(*changed(given, (LAYOUT[function],), lambda _, other=other: other))
    with pytest.raises(ValueError, match="routine: nothing is called none"):
        call("none", *given[1:])
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(*given[:-2])


def orders(order):
    """A sweep of (l2, order)."""
    model = instances.perturb(instances.garnet(9, 3), 3)
    ball = drmdp.Wasserstein(0.1, "l2", order)
    calls = record(lambda: drmdp.solve(model, ball, max_iters=2))
    return next(
        plain(given) for name, given in calls if name == "sweep" and given[0] == "l2_orders"
    )


@pytest.mark.parametrize("order", [1, 1.5, 3, np.inf])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_no_numbers_take_few_passes(order, bad):
    given = changed(orders(order), (5, 2), lambda data: np.full_like(data, bad))
    passes = field(given, (8, 3))
    _native.sweep(*given)
    assert (passes > 0).any()
    assert passes.max() < 1000


@pytest.mark.parametrize("bad", [-np.inf, -1.0, 0.0, np.nextafter(1, 0)])
def test_an_order_below_1_is_refused(bad):
    with pytest.raises(ValueError, match="order: expected 1 or more"):
        _native.sweep(*changed(orders(3), (10, 0), lambda order: bad))


def test_a_set_in_double_precision_alone_says_so(calls):
    given = changed(
        plain(calls["sweep"]), (LAYOUT["sweep"], 2), lambda data: data.astype(np.float32)
    )
    with pytest.raises(ValueError, match="data: intervals takes float64"):
        _native.sweep("intervals", *given[1:])


def test_the_stub_says_what_there_is():
    text = (Path(_native.__file__).parent / "_native.pyi").read_text()
    told = {}
    for name, arguments in re.findall(r"^def (\w+)\((.*?)\) ->", text, re.DOTALL | re.MULTILINE):
        told[name] = re.findall(r"(\w+): ", arguments)
    there = {
        name: value
        for name, value in vars(_native).items()
        if not name.startswith("_") and name != "EventRows"
    }
    assert told.keys() == there.keys()
    for name, function in there.items():
        assert re.findall(r"(\w+): ", function.__doc__.partition("->")[0]) == told[name]


PROOFS = Path(__file__).parents[2] / "native" / "judge" / "proofs.cpp"


def test_every_routine_has_a_proof():
    """By the names in the sources: `prove` looks for one by the name of the routine."""
    known = re.findall(r'"(\w+)"', PROOFS.read_text("utf-8"))
    assert sorted(known) == sorted(_native.routines())
