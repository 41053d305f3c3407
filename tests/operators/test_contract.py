"""What every exact kernel keeps: it agrees with conic programs from any start, on any layout, and
bounds itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

import drmdp
from cases import cases
from drmdp.layout.layout import lay_out
from drmdp.operators.conic.operator import ConicOperator
from drmdp.sets import PAIRS
from kernels import (
    EVERY_PAIR,
    LAYOUTS,
    STARTS,
    assert_close,
    assert_policy,
    in_both_precisions,
    larger,
    poisoned,
    random_policy,
    starts,
    sweep,
    sweeps,
    units,
    unswept,
)


class Kept(NamedTuple):
    """What a family keeps to."""

    gap: float  # of an update's bounds on a larger model, relative to the range of the stakes
    fixed_gap: float  # of an evaluation's
    twins: float  # between two forms of one model
    rounding: float  # between rows in float32 and the same ones in float64
    filled: str  # the part of the memory that is never negative after a sweep
    states: int  # compared with conic programs on a larger model


SORTED = Kept(1e-12, 1e-12, 1e-12, 1e-13, "by_action", 3)  # no iteration: rounding alone
SQUARES = Kept(
    2e-11, 2e-11, 1e-10, 1e-10, "by_action", 1
)  # twice what is asked of it; cone programs take long
TABLES = Kept(
    1e-10, 1e-12, 1e-10, 1e-10, "by_row", 2
)  # a policy fixed is a knapsack: rounding alone
KEPT = {
    ("l1", 1): SORTED,
    ("linf", math.inf): SORTED._replace(filled="by_kernel"),
    ("l2", 2): SQUARES,
    ("l2", math.inf): SQUARES,
    ("l1", math.inf): TABLES,
    ("linf", 1): TABLES._replace(filled="by_kernel"),
}
SEEDS = dict.fromkeys(PAIRS, 4) | {
    ("l1", 1): 3,
    ("linf", math.inf): 3,
    ("l2", 2): 5,
    ("l2", math.inf): 5,
}
RADII = {"l1": (0.01, 0.2, 0.7, 3.0), "l2": (0.01, 0.3, 1.0, 2.4), "linf": (0.01, 0.2, 0.7, 3.0)}
"""From nearly nominal to nearly or all saturated."""
FAR = {"l1": 12.0, "l2": 10.0, "linf": 10.0}
"""Beyond every kernel for six actions: 2 each in ℓ1, √2 each in ℓ2 and 1 each in ℓ∞."""


def width(ambiguity, update):
    """What a cone program did not settle; linear ones are exact, but for what underflows where all
    is 0.
    """
    return update.upper_step - update.lower_step if ambiguity.metric == "l2" else 1e-279


def check_against_conic(case, rng):
    model, ambiguity, value = case.model, case.ambiguity, case.value
    S, own = model.n_states, ~model.terminal
    layout, conic, scale = (
        lay_out(model, ambiguity),
        ConicOperator(model, ambiguity),
        units(model, ambiguity, value),
    )
    exact, x = conic.update(value, 0, S), random_policy(rng, model)
    fixed_exact, cold = conic.evaluate(value, x, 0, S), sweep(layout, ambiguity.pair, value)[0]
    for k, warm in enumerate(starts(case, layout, rng, 1e-10)):
        out, after = sweep(layout, ambiguity.pair, value, warm=warm)
        assert_close(out.upper, exact.value, 1e-8, scale, own, width(ambiguity, exact))
        assert_close(out.upper, out.lower, 1e-10, scale, own)
        assert_close(out.upper, cold.upper, 1e-10, scale, own)
        assert_policy(model, out.policy)
        if k % 2 == 0:
            attained = conic.evaluate(value, np.where(own[:, None], out.policy, 0.0), 0, S)
            assert_close(out.upper, attained.value, 1e-8, scale, own, width(ambiguity, attained))
        fixed, _ = sweep(
            layout, ambiguity.pair, value, x, poisoned(rng, after) if k == 3 else after
        )
        assert_close(
            fixed.upper, fixed_exact.value, 1e-8, scale, own, width(ambiguity, fixed_exact)
        )
        assert_close(fixed.upper, fixed.lower, 1e-10, scale, own)


SMALL = [(pair, case) for pair in PAIRS for case in cases(pair, 30, SEEDS[pair])]
IDS = [f"{pair[0]}-{pair[1]:g}-{case.name}" for pair, case in SMALL]


@pytest.mark.parametrize("case", [case for _, case in SMALL], ids=IDS)
def test_agree_with_conic_programs(case):
    check_against_conic(case, np.random.default_rng(0))


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10))
@EVERY_PAIR
def test_agree_with_conic_programs_in_many_cases(pair, seed):
    rng = np.random.default_rng(seed)
    for case in cases(pair, 50, seed=300 + seed):
        check_against_conic(case, rng)


@EVERY_PAIR
def test_bounds_hold_from_every_start(pair):
    """Many more cases are those of each family, where bounds are rebuilt from what is
    remembered.
    """
    rng = np.random.default_rng(4)
    for case in cases(pair, 20, seed=13):
        assert len(list(sweeps(case, rng, 1e-10))) == 4


def test_a_sweep_that_ends_open_from_a_memory_begins_anew():
    """Two levels that differ by 1e-8 of the range: from here a basis is too poor to end with."""
    pair = ("l1", math.inf)
    case = list(cases(pair, 50, seed=308))[20]
    memory, x = unswept(lay_out(case.model, case.ambiguity), pair, 0.0)
    memory.by_row[1] = [
        [0.17420703, 0.93101867, 0.15332337, 0.0],
        [0.94287197, 0.0, 1.0, 1.0],
        [0.03624437, 0.2223047, 0.0, 0.0],
    ]
    x[1] = 0.49193113, 0.01613773, 0.49193113
    out, _ = sweep(lay_out(case.model, case.ambiguity), pair, case.value, warm=(memory, x))
    assert (
        out.upper[1] - out.lower[1] <= 1e-11 * units(case.model, case.ambiguity, case.value)[0][1]
    )


# ---------------------------------------------------------------------- larger rows, every layout


@pytest.mark.parametrize("strength", range(4))
@pytest.mark.parametrize("kind", LAYOUTS)
@EVERY_PAIR
def test_every_layout_agrees_with_conic_programs(pair, kind, strength):
    model, support, value = larger(kind)
    kept, ambiguity = KEPT[pair], drmdp.Wasserstein(RADII[pair[0]][strength], *pair, support)
    layout, conic, scale = (
        lay_out(model, ambiguity),
        ConicOperator(model, ambiguity),
        units(model, ambiguity, value),
    )
    own = np.arange(model.n_states) < kept.states
    x = random_policy(np.random.default_rng(1), model)
    found, fixed = sweep(layout, pair, value)[0], sweep(layout, pair, value, x)[0]
    exact, fixed_exact = (
        conic.update(value, 0, kept.states),
        conic.evaluate(value, x, 0, kept.states),
    )
    for got, conic_one, gap in ((found, exact, kept.gap), (fixed, fixed_exact, kept.fixed_gap)):
        want, more = np.zeros((2, model.n_states))
        want[own], more[own] = conic_one.value, width(ambiguity, conic_one)
        assert_close(got.upper, want, 1e-8, scale, own, more)
        assert_close(got.upper, got.lower, gap, scale, ~model.terminal)


def assert_twins(pair, a, b):
    np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=KEPT[pair].twins)
    np.testing.assert_allclose(a.lower, b.lower, rtol=0, atol=KEPT[pair].twins)


@EVERY_PAIR
def test_dense_and_sparse_models_agree(pair):
    model, _, value = larger("unlisted")
    S, A = model.n_states, model.n_actions
    matrices = [sparse.csr_array(kernel.reshape(S * A, S)) for kernel in model.kernels]
    twin = drmdp.Model(matrices, costs=model.costs, discount=model.discount)
    for radius in (0.1, 0.6):
        for support in ("all", "observed", "state"):
            ambiguity = drmdp.Wasserstein(radius, *pair, support)
            assert_twins(
                pair, *(sweep(lay_out(m, ambiguity), pair, value)[0] for m in (model, twin))
            )


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.01, 0.1, 0.5, 1.0, 1.5, 2.4])
@EVERY_PAIR
def test_unlisted_states_count_as_if_they_were_listed(pair, radius):
    model, _, value = larger("unlisted")
    S, A = model.n_states, model.n_actions
    ambiguity = drmdp.Wasserstein(radius, *pair, support="all")
    costs = np.repeat(model.costs[:, :, None], S, axis=2)
    some, full = (
        lay_out(model, ambiguity),
        lay_out(drmdp.Model(model.kernels, costs=costs, discount=model.discount), ambiguity),
    )
    assert some.unlisted
    assert not full.unlisted
    assert full.indices.size == S * A * S
    for policy in (None, random_policy(np.random.default_rng(2), model)):
        assert_twins(pair, *(sweep(layout, pair, value, policy)[0] for layout in (some, full)))


@EVERY_PAIR
def test_a_range_leaves_other_states_alone(pair):
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(0.3, *pair, support))
    whole, _ = sweep(layout, pair, value)
    inside = np.isin(np.arange(model.n_states), range(5, 9))
    for fill in (None, -7.0):
        before, x = unswept(layout, pair, fill)
        part, (memory, _) = sweep(layout, pair, value, warm=(before, x), states=(5, 9))
        np.testing.assert_allclose(
            part.upper[inside], whole.upper[inside], rtol=0, atol=0 if fill is None else 1e-10
        )
        assert np.isnan(part.upper[~inside]).all()
        for after, array in zip((*memory, part.policy), (*before, x), strict=True):
            np.testing.assert_array_equal(after[~inside], array[~inside])
        assert (getattr(memory, KEPT[pair].filled)[inside] >= 0).all()


@pytest.mark.parametrize("radius", [0.1, 0.3])
@EVERY_PAIR
def test_float32_rows_are_renormalised(pair, radius):
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support))
    single, double = in_both_precisions(layout, model.n_states)
    for policy in (None, random_policy(np.random.default_rng(3), model)):
        a, b = (sweep(own, pair, value, policy)[0] for own in (single, double))
        np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=KEPT[pair].rounding)


# ---------------------------------------------------------------------- ends of the range, long
# runs


@EVERY_PAIR
def test_radius_0_is_nominal_and_a_huge_one_unconstrained(pair):
    model, support, value = larger("dense")
    stake = model.costs + model.discount * model.mean_kernel @ value
    nothing, _ = sweep(lay_out(model, drmdp.Wasserstein(0.0, *pair, support)), pair, value)
    np.testing.assert_allclose(nothing.upper, stake.min(axis=1), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(nothing.policy.argmax(axis=1), stake.argmin(axis=1))
    top = model.costs + model.discount * value.max()
    for radius in (FAR[pair[0]], 1e200):
        free, _ = sweep(lay_out(model, drmdp.Wasserstein(radius, *pair, support)), pair, value)
        np.testing.assert_allclose(free.upper, top.min(axis=1), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(free.policy.argmax(axis=1), top.argmin(axis=1))
        assert_close(free.upper, free.lower, STARTS[pair].asked, (np.ones(1), 1e-13), slice(None))


@EVERY_PAIR
def test_sweeps_converge_and_stay_certified(pair):
    model, support, _ = larger("unlisted")
    for radius in (0.05, 0.5, 2.0):
        layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support))
        value, warm = np.zeros(model.n_states), None
        for _ in range(30):
            out, warm = sweep(layout, pair, value, warm=warm)
            assert (out.upper - out.lower <= 1e-10 * max(np.ptp(value), 1.0)).all()
            change, value = np.ptp(out.upper - value), out.upper
        assert change < 1e-3
        cold, _ = sweep(layout, pair, value)
        np.testing.assert_allclose(
            sweep(layout, pair, value, warm=warm)[0].upper, cold.upper, rtol=0, atol=1e-9
        )
