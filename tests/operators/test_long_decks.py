"""Every set on a long deck: no bound is false, and nothing stays open (`intervals`)."""

import os

import numpy as np
import pytest

from decks import SETS as DEALT
from drmdp.sets.registry import ENTRIES
from intervals import SETS, run, tally

FEW, MANY = 12, 1500
OTHER = os.environ.get("DRMDP_INTERVALS")
"""What another version of drmdp found by `python tests/support/intervals.py FILE --problems
1500`.
"""


def test_every_entry_is_in_the_deck():
    assert {kind.key for kind in SETS.values()} == set(ENTRIES)
    assert set(DEALT) <= set(SETS)


def closed(rows, other=None):
    done = tally(rows, other)
    assert (done.crossed, done.open, done.disjoint) == (0, 0, 0), done
    return done


@pytest.mark.parametrize("name", ["l2-1.01", "l1-1.5-sa", "reweighting-burg", "tv-kernels"])
def test_a_few_problems_of_a_set_close(name):
    closed(run(name, FEW, 41))


def test_other_bounds_are_compared_case_by_case():
    rows = run("kl-mean", FEW, 41)
    assert closed(rows, rows[::2]).compared == len(rows[::2])
    moved = rows.copy()
    moved[3, 4:6] += 1e-3 * rows[3, 6]
    assert tally(rows, moved).disjoint == 1
    moved[3, 4:6] = moved[3, 5:3:-1]
    assert tally(moved).crossed == 1


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SETS)
def test_a_long_deck_closes_and_no_bound_is_false(name):
    """Five thousand states, each updated and evaluated against both natures."""
    other = dict(np.load(OTHER)) if OTHER else {}
    done = closed(run(name, MANY, 40), other.get(name))
    assert done.cases >= 4 * 5000
