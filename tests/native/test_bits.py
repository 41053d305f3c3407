"""The same bits for every split of the states, whatever runs at the same time; `test_builds.py` compares compilers and processors."""

import pytest

from drmdp import _native
from recorded import GROWING, HOW, calls_of, repeat


@pytest.fixture(scope="module")
def calls():
    return calls_of(6)


def test_every_routine_is_called(calls):
    """Otherwise nothing would be said of some."""
    assert {given[0] for name, given in calls if name == "sweep"} == set(_native.routines())
    assert {given[0] for name, given in calls if name == "respond"} == set(_native.routines())
    assert {given[0] for name, given in calls if name == "prove"} == set(_native.routines())
    others = {"routines", "elementary", "power", "lane_sum", "count_above", "pull"}  # see test_numbers.py
    assert {name for name in vars(_native) if not name.startswith("_")} - others - GROWING == {
        name for name, _ in calls
    }


@pytest.mark.parametrize("how", HOW[1:])
def test_bits_do_not_depend_on_how_states_are_split(calls, how):
    assert repeat(_native, calls, how) == repeat(_native, calls)
