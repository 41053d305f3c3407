"""Laws of events from a log of events, and the model of the user's function with them."""

import numpy as np
import pytest

import drmdp
from drmdp import InputError

LOG = {"week": [1, 1, 1, 2, 2, 2, 2], "demand": [0, 2, 2, 1, 1, 0, 2]}


def stock(s, a, e):
    return np.clip(s + a - e, 0, 3), 2.0 * a + 5.0 * np.maximum(e - s - a, 0)


def made(log=LOG, **given):
    settings = {
        "event": "demand",
        "events": 3,
        "transition": stock,
        "states": 4,
        "actions": 2,
        "discount": 0.9,
    } | given
    return drmdp.estimate(log, **settings)


def test_shares_are_laws(tmp_path):
    np.testing.assert_allclose(made().laws, [[[2 / 7, 2 / 7, 3 / 7]]])
    by_week = made(by="week")
    np.testing.assert_allclose(by_week.laws, [[[1 / 3, 0, 2 / 3], [1 / 4, 1 / 2, 1 / 4]]])
    assert list(by_week.kernel_names) == [1, 2]
    np.testing.assert_allclose(made(by="week", weights="rows").weights, [3 / 7, 4 / 7])
    (tmp_path / "log.csv").write_text("week,demand,n\nfirst,low,3\nfirst,high,1\nsecond,low,2\n")
    read = made(
        tmp_path / "log.csv",
        events=["low", "high"],
        by="week",
        weight="n",
        transition=lambda s, a, e: stock(s, a, e),
    )
    np.testing.assert_allclose(read.laws, [[[0.75, 0.25], [1, 0]]])
    assert list(read.kernel_names) == ["first", "second"]
    assert drmdp.solve(by_week, drmdp.Wasserstein(0.1, moves="events")).status == "solved"


def test_draws_of_laws():
    parts = made(by="parts", n_kernels=3).laws[0]
    folds = made(by="folds", n_kernels=3).laws[0]
    sizes = np.array([3, 2, 2])  # of the parts
    np.testing.assert_allclose(sizes @ parts / 7, made().laws[0, 0])
    np.testing.assert_allclose(
        folds, (7 * made().laws[0] - sizes[:, None] * parts) / (7 - sizes[:, None])
    )
    for by in ("bootstrap", "posterior"):
        one = made(by=by, n_kernels=2000, seed=3).laws[0]
        np.testing.assert_array_equal(one, made(by=by, n_kernels=2000, seed=3).laws[0])
        mean = [2 / 7, 2 / 7, 3 / 7] if by == "bootstrap" else [0.3, 0.3, 0.4]
        np.testing.assert_allclose(one.mean(axis=0), mean, atol=0.02)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"events": 2}, r"table: row 2, column 'demand': 2 is no event; events are 0 … 1"),
        ({"event": "sales"}, r"no column 'sales'; there are 'week', 'demand'"),
        ({"transition": None}, r"transition: a model of events needs"),
        ({"by": "bootstrap"}, r"n_kernels: how many laws"),
        ({"by": "week", "n_kernels": 3}, r"n_kernels is 3, and the log has 2"),
        ({"by": "parts", "n_kernels": 9}, r"9 parts of 7 rows"),
        ({"log": {"demand": []}}, r"there are no events"),
        ({"log": {"demand": [0, None]}}, r"row 2, column 'demand': None is no event"),
    ],
)
def test_what_is_no_log_is_named(given, message):
    with pytest.raises(InputError, match=message):
        made(**given)
