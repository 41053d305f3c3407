"""Only the top of v is in order in sweeps, answers and proofs: the same bits as with all of it, and
all of it where the top is not enough.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import drmdp
import ranges
from decks import SETS, often
from drmdp.certificate import RobustProver
from drmdp.certificate.compressed import view
from drmdp.core import threads as workers
from drmdp.layout import partial_sort
from drmdp.layout.point import point_at
from drmdp.operators.exact import ExactOperator

S = 300
EVERYWHERE = {
    name: kind
    for name, kind in SETS.items()
    if "support" in kind.make(ranges.model(), 0.1, "all").__dataclass_fields__
}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """So many states are few enough for a top."""
    monkeypatch.setattr(partial_sort, "LEAST", 8)


def values(kind):
    rng = np.random.default_rng(3)
    return {
        "random": rng.random(S),
        "one number": np.full(S, 7.0),
        "plateaus": np.repeat(rng.random(S // 20), 20),
        "a plateau on top": np.minimum(rng.random(S), 0.5),
        "all but one on top": 1.0 - np.eye(1, S, 9)[0],
        "nearly equal": 5.0 + 1e-14 * rng.random(S),
        "huge": 1e9 * rng.random(S),
        "tiny": 1e-9 * rng.random(S),
        "one above all": np.eye(1, S)[0],
        "close to the top": -(np.linspace(0.0, 1.0, S) ** 8)[rng.permutation(S)],
    }[kind]


VALUES = (
    "random",
    "one number",
    "plateaus",
    "a plateau on top",
    "all but one on top",
    "nearly equal",
    "huge",
    "tiny",
    "one above all",
    "close to the top",
)


def ambiguity(support="all", radius=0.1):
    return drmdp.Wasserstein(radius, support=support)


@pytest.mark.parametrize("kind", VALUES)
def test_the_top_is_the_beginning_of_the_whole_order(kind):
    layout, value = (
        ExactOperator(ranges.model("float32", S=S), ambiguity(), 1)._layout,
        values(kind),
    )
    for look, parts, sums in (
        (lambda *a: point_at(*a).order, ("states", "u"), ("sum1", "sum2")),
        (view, ("states", "down"), ("rise", "rise2")),
    ):
        whole, part = look(layout, value, True), look(layout, value, False)
        n = part.states.size
        assert n == S or (
            n >= 4 * partial_sort.longest(layout) + 16
            and value[whole.states[n - 1]] > value[whole.states[n]]
        )
        for name in parts:
            assert getattr(part, name).tobytes() == getattr(whole, name)[:n].tobytes(), name
        for name in sums:
            assert getattr(part, name).tobytes() == getattr(whole, name)[: n + 1].tobytes(), name
        place = part.rank if "u" in parts else part.place
        np.testing.assert_array_equal(place[part.states], np.arange(n))
        assert np.count_nonzero(place == S) == S - n
    assert point_at(layout, value, False).order.second == point_at(layout, value).order.second
    if kind in ("random", "huge", "tiny", "close to the top"):
        assert n < S / 2


def test_what_cannot_be_compared_is_sorted_as_ever():
    value = values("random")
    value[3:] = np.nan
    assert (
        partial_sort.in_order(value, SimpleNamespace(longest=5)).tobytes()
        == partial_sort.in_order(value).tobytes()
    )


def told(model, kind, size, value, threads=1):
    """Everything that sweeps, answers and proofs tell at some values, from what the sweeps before
    left.
    """
    own = kind.make(model, size, "all").fitted(model)
    operator, found, update = ExactOperator(model, own, threads), [], None
    prover = RobustProver(model, own, threads)
    for sweep in range(3):
        fixed = sweep == 2
        if fixed:
            update = operator.evaluate(value, update.policy, 0, S)
        else:
            update = operator.update(value, 0, S)
        proof = prover.prove(value, update.policy, update.claim, fixed)
        rows = [
            nature.rows(update.policy)
            for nature in (update.nature, operator.nature(value, update.claim, sweep + 1))
        ]
        found += [update.value, update.lower_step, update.upper_step, update.policy, *update.claim]
        found += [proof.lower_step, proof.upper_step, proof.share]
        found += [row @ z for row in rows for z in (value, np.cos(np.arange(S)))] + [
            row.prefix_length for row in rows
        ]
        value = update.value if sweep else value
    return b"".join(np.ascontiguousarray(array).tobytes() for array in found if array is not None)


@pytest.fixture
def looked(monkeypatch):
    """How often v was sorted, the top and all of it; `all` makes every look the second kind."""
    own, found = partial_sort.in_order, {"top": 0, "all": 0, "always": False}

    def noted(value, layout=None):
        states = own(value, None if found["always"] else layout)
        found["all" if states.size == value.size else "top"] += 1
        return states

    monkeypatch.setattr("drmdp.layout.point.in_order", noted)
    monkeypatch.setattr("drmdp.certificate.compressed.in_order", noted)
    return found


def compare(looked, *asked, **settings):
    """The same bits either way; how often the top was sorted, and all of v after it."""
    found = told(*asked, **settings)
    counts = looked["top"], looked["all"]
    looked["always"] = True
    assert found == told(*asked, **settings)
    looked["always"] = False
    return counts


@pytest.mark.parametrize("precision", ["float64", pytest.param("float32", marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("size", [1e-6, 0.1, 1.0])
@pytest.mark.parametrize("name", often(EVERYWHERE))
def test_bits_are_those_of_the_whole_order(name, size, precision, looked):
    model = ranges.model("terminal", "unavailable", "zero weights", precision, S=S, A=2)
    for kind in ("random", "plateaus", "close to the top"):
        tops, _ = compare(looked, model, EVERYWHERE[name], size, values(kind))
        assert (
            tops
            or not ExactOperator(
                model, EVERYWHERE[name].make(model, size, "all").fitted(model), 1
            )._layout.unlisted
        )


L2 = [name for name in EVERYWHERE if "l2" in name]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", often(L2))
def test_so_they_are_at_any_value(name, kind, looked):
    compare(looked, ranges.model(S=S, A=2), EVERYWHERE[name], 0.02, values(kind))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", often(L2))
def test_where_the_top_is_too_short_the_work_is_done_again(name, threads, looked, monkeypatch):
    """Many states are as good as the best: nature takes more of them than are in order. On threads,
    some ranges find out before others.
    """
    monkeypatch.setattr(workers, "SMALL", 0)
    _, wholes = compare(
        looked,
        ranges.model(S=S, A=2),
        EVERYWHERE[name],
        0.02,
        values("close to the top"),
        threads=threads,
    )
    assert wholes


def test_little_is_done_twice(looked, monkeypatch):
    """The first states tell."""
    monkeypatch.setattr(partial_sort, "FIRST", 4)
    model, done = ranges.model("float32", S=S, A=2), []
    operator = ExactOperator(model, ambiguity(), 1)
    family = type(operator.family)
    over = family.sweep
    monkeypatch.setattr(family, "sweep", lambda *given: done.append(given[2:4]) or over(*given))
    operator.update(values("close to the top"), 0, S)
    assert (looked["top"], looked["all"]) == (1, 1)
    assert done == [(0, 4), (0, 4), (4, S)]


def test_mostly_the_top_is_enough(looked):
    """For a sweep that begins where another one ended, nature's answer, and a proof."""
    model, value = ranges.model("float32", S=S, A=2), values("random") ** 4
    operator = ExactOperator(model, ambiguity(), 1)
    operator.update(value, 0, S)
    looked.update(top=0, all=0)
    update = operator.update(value, 0, S)
    operator.nature(value, update.claim, 2).rows(update.policy)
    RobustProver(model, ambiguity().fitted(model), 1).prove(
        value, update.policy, update.claim, False
    )
    assert (looked["top"], looked["all"]) == (3, 0)
