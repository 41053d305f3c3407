"""Models of events that are functions: the same bits however they are asked, and the start knows
the mean law alone.
"""

import gc
import weakref

import numpy as np
import pytest
from tests.events.test_events import deal, same, start

import drmdp
from drmdp import Wasserstein
from drmdp.operators.nominal import MeanLawOperator, NominalOperator
from drmdp.solvers import loop


def test_solutions_of_functions(monkeypatch):
    """The same optimum, certified, with the same bits for any number of threads and any batch."""
    from drmdp.core import threads as workers
    from drmdp.model import events

    monkeypatch.setattr(workers, "SMALL", 0)
    model = deal(5, True, "scalar", store=False)
    expected = drmdp.solve(deal(5, True), Wasserstein(0.2), rtol=1e-8)
    found = drmdp.solve(model, Wasserstein(0.2), rtol=1e-8, threads=1)
    assert found.status == "solved"
    np.testing.assert_allclose(found.value, expected.value, rtol=0, atol=found.gap + expected.gap)
    np.testing.assert_allclose(np.asarray(found.kernel).sum(axis=2)[model.available], 1, atol=1e-12)
    for threads, batch in ((2, 2**22), (3, 1)):
        monkeypatch.setattr(events, "BATCH", batch)
        again = drmdp.solve(model, Wasserstein(0.2), rtol=1e-8, threads=threads)
        same((again.value, again.policy, again.lower), (found.value, found.policy, found.lower))


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
        seen, made = [], loop.MethodRun.__init__

        def noted(self, *given, **settings):
            seen.append(weakref.ref(self))
            made(self, *given, **settings)

        monkeypatch.setattr(loop.MethodRun, "__init__", noted)
        drmdp.solve(deal(7, sizes=(2100, 2, 3, 2, 1), law=None), Wasserstein(0.1))
        assert len(seen) == 2
        assert not any(run() for run in seen)
    finally:
        gc.enable()
