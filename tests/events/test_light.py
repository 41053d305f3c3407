"""Large models of events: thresholds of one kernel are kept, played rows are written during the sweep, and the start knows the mean law alone."""

import gc
import weakref

import numpy as np
import pytest
from tests.events.test_events import deal, same, start, swept

import drmdp
from drmdp import Wasserstein
from drmdp.bellman.exact import ExactOperator
from drmdp.bellman.mean_law import MeanLawOperator
from drmdp.bellman.nominal import NominalOperator
from drmdp.certificate import RobustProver
from drmdp.core import levels
from drmdp.layout import events as layouts
from drmdp.layout import light
from drmdp.layout.point import point_at
from drmdp.solvers import loop


@pytest.mark.parametrize("moves", ["states", "events"])
@pytest.mark.parametrize("rectangular", ["s", "sa"])
def test_one_threshold_tells_where_the_others_are(rectangular, moves, monkeypatch):
    """Sweeps as accurate as can be agree to rounding, certificates too, and nature's rows; memory does not grow with N."""
    for seed, priced in ((1, False), (2, True)):
        model = deal(seed, priced)
        ball = Wasserstein(0.2, rectangular=rectangular, moves=moves)
        value = start(model)
        full = swept(model, ball, value)
        with monkeypatch.context() as patch:
            patch.setattr(layouts, "LIGHT", 0)
            few = swept(model, ball, value)
            operator = ExactOperator(model, ball.fitted(model), 1)
            update = operator.update(value, 0, model.n_states)
            assert update.claim.by_row.shape == (model.n_states, model.n_actions, 1)
            proof = RobustProver(model, ball, 1).prove(value, update.policy, update.claim, False)
            assert proof.share.shape == (model.n_states, model.n_actions if rectangular == "sa" else 1)
            written = update.nature.chain(update.policy)
            z = np.random.default_rng(0).random(model.n_states)
            np.testing.assert_allclose(written @ z, update.nature.rows(update.policy) @ z, rtol=0, atol=18 / 2**17)
            assert update.nature.chain(update.policy) is not written  # it was taken
        for k, (one, other) in enumerate(zip(full, few, strict=True)):
            if k != 2:  # policies may differ where actions are as good as each other
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * np.ptp(value))


def test_solutions_with_little_memory(monkeypatch):
    """The same optimum, certified, with the same bits for any number of threads and any batch."""
    from drmdp.core import threads as workers
    from drmdp.model import events

    monkeypatch.setattr(workers, "SMALL", 0)
    model = deal(5, True, "scalar", store=False)
    expected = drmdp.solve(model, Wasserstein(0.2), rtol=1e-8)
    monkeypatch.setattr(layouts, "LIGHT", 0)
    found = drmdp.solve(model, Wasserstein(0.2), rtol=1e-8, threads=1)
    assert found.status == "solved"
    np.testing.assert_allclose(found.value, expected.value, rtol=0, atol=found.gap + expected.gap)
    np.testing.assert_allclose(np.asarray(found.kernel).sum(axis=2)[model.available], 1, atol=1e-12)
    for threads, batch in ((2, 2**22), (3, 1)):
        monkeypatch.setattr(events, "BATCH", batch)
        again = drmdp.solve(model, Wasserstein(0.2), rtol=1e-8, threads=threads)
        same((again.value, again.policy, again.lower), (found.value, found.policy, found.lower))


def test_thresholds_are_found_again_from_anywhere():
    model = deal(3, True)
    layout = layouts.spread_out(model, Wasserstein(0.2))
    value = start(model)
    point = point_at(layout, value - levels.level(value))
    operator = ExactOperator(model, Wasserstein(0.2), 1)
    operator.update(value, 0, model.n_states)
    memory = operator.left.memory
    bent = memory.by_action > 0
    for first, last, part, own in layouts.pieces(layout, 0, model.n_states):
        for begin in (
            memory.by_row[:, :, :1],
            np.full((last, model.n_actions, 1), np.nan),
            np.full((last, model.n_actions, 1), -9.0),
        ):
            known = memory._replace(by_row=begin[first:last].astype(np.float32))
            whole = light.opened(part, point, known, settled=True)
            np.testing.assert_allclose(whole.by_row[bent[own]], memory.by_row[own][bent[own]], rtol=0, atol=1e-9)


@pytest.mark.parametrize("priced", [False, True])
def test_the_mean_law_is_the_mean_kernel(priced):
    model = deal(6, priced)
    value = start(model)
    own = MeanLawOperator(model, 2).update(value, 0, model.n_states)
    matrix, costs = model.mean_matrix()
    twin = NominalOperator(model, matrix, 1, costs).update(value, 0, model.n_states)
    np.testing.assert_allclose(own.value, twin.value, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(own.policy, twin.policy)
    z = np.random.default_rng(0).random(model.n_states)
    np.testing.assert_allclose(own.chain @ z, twin.chain @ z, rtol=0, atol=1e-14)
    assert (own.lower_step <= twin.upper_step).all()
    assert (twin.lower_step <= own.upper_step).all()


def test_a_run_is_gone_when_it_is_over(monkeypatch):
    """Nothing holds the run that found a start, or memory for two would be needed."""
    gc.disable()
    try:
        seen, made = [], loop._Run.__init__

        def noted(self, *given):
            seen.append(weakref.ref(self))
            made(self, *given)

        monkeypatch.setattr(loop._Run, "__init__", noted)
        drmdp.solve(deal(7, sizes=(2100, 2, 3, 2, 1), law=None), Wasserstein(0.1))
        assert len(seen) == 2
        assert not any(run() for run in seen)
    finally:
        gc.enable()
