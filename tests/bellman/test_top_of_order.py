"""Only the top of v is sorted for nature's answer: the same bits as with all of it, and all of it where the top is not enough."""

from types import SimpleNamespace

import numpy as np
import pytest

import drmdp
import ranges
from drmdp.bellman import exact, nature_rows
from drmdp.bellman.exact import ExactOperator
from drmdp.core import levels
from drmdp.layout.point import order_of, point_at

S, PARTS = 300, ("entry_state", "entry_mass", "prefix_length", "prefix_slope", "prefix_level")


def operator(radius=0.1, features=(), order=2, rectangular="s", dtype="float32"):
    model = ranges.model(*features, *(["float32"] if dtype == "float32" else []), S=S, A=2, N=3)
    ball = drmdp.Wasserstein(radius, "l2", order, support="all", rectangular=rectangular)
    return ExactOperator(model, ball.fitted(model), 1)


def values(kind):
    rng = np.random.default_rng(3)
    return {
        "random": rng.random(S),
        "one number": np.full(S, 7.0),
        "plateaus": np.repeat(rng.random(S // 20), 20),
        "nearly equal": 5.0 + 1e-14 * rng.random(S),
        "huge": 1e9 * rng.random(S),
        "tiny": 1e-9 * rng.random(S),
        "one above all": np.eye(1, S)[0],
    }[kind]


@pytest.mark.parametrize("kind", ["random", "one number", "plateaus", "nearly equal", "one above all"])
@pytest.mark.parametrize("lowest", [0.0, -1e-9, -0.2, -0.7, -1.0, -np.inf])
def test_the_top_is_the_beginning_of_the_whole_order(kind, lowest):
    layout, value = operator()._layout, values(kind)
    whole, top = order_of(layout, value), order_of(layout, value, lowest)
    n = top.states.size
    assert n >= 1
    assert n == S or (whole.u[n - 1] >= lowest > whole.u[n])
    for name in ("states", "u"):
        np.testing.assert_array_equal(getattr(top, name), getattr(whole, name)[:n])
    for name in ("sum1", "sum2"):
        assert getattr(top, name).tobytes() == getattr(whole, name)[: n + 1].tobytes()
    np.testing.assert_array_equal(top.common, whole.common)


def answers(own, value):
    """Nature's rows after two sweeps: with all of v in order, and as she is asked for them past one machine; and how much was sorted for these."""
    update = own.update(value, 0, S)
    update = own.update(update.value, 0, S)
    value = update.value if update.value.any() else value
    update = own.update(value, 0, S)
    point = point_at(own._layout, value - levels.level(value))
    whole = exact.Remembered(own.model, own._family.NATURE, own._layout, point, update.claim, None, 1)
    nature = own.nature(value, update.claim, own.left.sweeps)
    return whole.rows(update.policy), nature.rows(update.policy), nature.point.order.states.size


@pytest.mark.parametrize("kind", ["random", "one number", "plateaus", "nearly equal", "huge", "tiny", "one above all"])
@pytest.mark.parametrize(("order", "rectangular"), [(2, "s"), (np.inf, "s"), (2, "sa"), (np.inf, "sa")])
def test_rows_have_the_bits_of_the_whole_order(kind, order, rectangular):
    whole, found, _ = answers(operator(order=order, rectangular=rectangular), values(kind))
    for name in PARTS:
        assert getattr(found, name).tobytes() == getattr(whole, name).tobytes(), name
    assert found.states.size == whole.states.size == whole.prefix_length.max(initial=0)
    z = np.random.default_rng(0).random(S)
    assert (found @ z).tobytes() == (whole @ z).tobytes()
    np.testing.assert_array_equal(found.dense(), whole.dense())


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.1, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_states_are_sorted_at_any_radius(radius, dtype):
    whole, found, sorted_ = answers(operator(radius, ("terminal", "unavailable"), dtype=dtype), values("random"))
    assert (found @ np.ones(S)).tobytes() == (whole @ np.ones(S)).tobytes()
    assert sorted_ < S / 2 or radius in (0.0, 1e-6)


@pytest.mark.parametrize("lowest", [0.0, -1e-12])
def test_where_the_top_is_too_short_all_states_are_sorted(monkeypatch, lowest):
    """As if the thresholds had said less than nature needs."""
    sorted_again, point = [], nature_rows.point_at
    monkeypatch.setattr(nature_rows, "point_at", lambda *args: sorted_again.append(1) or point(*args))
    own = operator(0.5)
    own._family = SimpleNamespace(**vars(own._family))
    own._family.NATURE = own._family.NATURE._replace(lowest=lambda memory: lowest)
    whole, found, sorted_ = answers(own, values("random"))
    assert sorted_ == 1 < whole.prefix_length.max()
    assert sorted_again
    for name in PARTS:
        assert getattr(found, name).tobytes() == getattr(whole, name).tobytes(), name
