"""The same bits for every split of the states, whatever runs at the same time; `test_builds.py`
compares compilers and processors.
"""

import pytest

from drmdp import _native
from recorded import GROWING, HOW, calls_of, repeat


@pytest.fixture(scope="module")
def calls():
    return calls_of(6)


def test_every_routine_is_called(calls):
    """Otherwise nothing would be said of some."""
    routines = {
        name for name in _native.routines() if not name.startswith("outside")
    }  # see test_outside.py
    for function in ("sweep", "respond", "prove"):
        assert {given[0] for name, given in calls if name == function} == routines
    others = {"routines", "power", "lane_sum", "count_above", "pull"}  # see test_numbers.py
    others |= GROWING | {"check_functions"}
    assert {name for name in vars(_native) if not name.startswith("_")} - others == {
        name for name, _ in calls
    }


@pytest.mark.parametrize("how", HOW[1:])
def test_bits_do_not_depend_on_how_states_are_split(calls, how):
    assert repeat(_native, calls, how) == repeat(_native, calls)
