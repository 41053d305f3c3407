"""What to measure next: gains against values that are solved again, and against other rules."""

import numpy as np
import pytest

import doubt
import drmdp
import measuring


def counted(rng, criterion="discounted", **others):
    """A random model with counts from 5 to 500 a pair."""
    counts = np.zeros((doubt.S, doubt.A, doubt.S))
    counts[..., 0] = rng.integers(5, 500, (doubt.S, doubt.A))
    return doubt.model_of(rng, criterion, counts=counts, **others)


SETS = {
    "burg": lambda n, sa: drmdp.Divergence(3 / n, "burg", rectangular=sa),
    "kl": lambda n, sa: drmdp.Divergence(1 / n, "kl", rectangular=sa),
    "l1": lambda n, sa: drmdp.Wasserstein(0.5 / np.sqrt(n), "l1", rectangular=sa),
    "tv": lambda n, sa: drmdp.Divergence(0.5 / np.sqrt(n), "tv", rectangular=sa),
}


@pytest.mark.parametrize("criterion", ["discounted", "total", "average", "horizon"])
@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("name", SETS)
def test_a_single_row_gains_what_solving_again_says(name, rectangular, criterion):
    rng = np.random.default_rng([1, list(SETS).index(name)])
    model = counted(rng, criterion)
    rows = (
        model.pair_counts
        if rectangular == "sa"
        else np.where(model.available, model.pair_counts, 0).sum(axis=1)
    )
    rows = np.maximum(rows, 1)
    ambiguity = SETS[name](rows, rectangular)
    solution = doubt.solved(model, ambiguity, criterion)
    found = drmdp.radius.measure_next(model, ambiguity, solution, rows=1)
    assert found.gains.shape == rows.shape
    before = doubt.worth(model, ambiguity, criterion)
    for place in map(tuple, found.order[:3]):
        more = rows.copy()
        more[place] += 1
        gain = before - doubt.worth(model, SETS[name](more, rectangular), criterion)
        assert found.gains[place] == pytest.approx(gain, rel=0.05)
    first = found.gains[tuple(found.order.T)]
    assert (np.diff(first) <= 0).all()


def test_an_action_that_is_not_played_counts_as_far_as_it_would_be():
    kernels = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.5, 0.5], [0.2, 0.8]]])
    counts = np.array([[[9, 1], [80, 20]], [[50, 50], [10, 40]]])
    model = drmdp.Model(kernels[None], costs=[[0, 1], [8, 9]], discount=0.9, counts=counts)
    ambiguity = drmdp.Divergence(3 / model.pair_counts, "burg", rectangular="sa")
    solution = drmdp.solve(model, ambiguity)
    found = drmdp.radius.measure_next(model, ambiguity, solution, rows=100)
    assert solution.policy[0, 0] == 0  # thin, and not played
    assert found.order[0].tolist() == [0, 0]
    frame = found.to_frame()
    assert frame.columns == ["state", "action", "rows", "radius", "gain", "gain_per_cost"]
    assert frame["gain"][0] == found.gains[0, 0]
    assert repr(found).splitlines()[1] == f"  0, 0: {found.gains[0, 0]:.4g}, 10 rows so far"
    dear = drmdp.radius.measure_next(model, ambiguity, solution, cost=[[1000.0, 1], [1, 1]])
    assert dear.order[0].tolist() == [0, 1]
    np.testing.assert_array_equal(dear.gains, found.gains)


def test_pairs_without_rows_and_ends_have_no_gain():
    rng = np.random.default_rng(3)
    counts = np.full((doubt.S, doubt.A, doubt.S), 10.0)
    counts[2, 1] = 0
    model = doubt.model_of(rng, "total", counts=counts)
    ambiguity = drmdp.Divergence(0.05, "burg", rectangular="sa")
    found = drmdp.radius.measure_next(model, ambiguity, drmdp.solve(model, ambiguity))
    assert np.isnan(found.gains).nonzero() == (2, 1)
    assert found.gains[-1].tolist() == [0, 0, 0]  # terminal
    assert found.gains[0, 2] == 0  # not available
    assert [2, 1] not in found.order.tolist()
    reached = drmdp.reach(model, ambiguity, target=[doubt.S - 1], avoid=[2])
    assert not drmdp.radius.measure_next(model, ambiguity, reached).gains[2].any()  # it ends there


def test_a_loaded_solution_takes_model_and_set(tmp_path):
    model = counted(np.random.default_rng(0))
    ambiguity = drmdp.Wasserstein(0.1)
    solution = drmdp.solve(model, ambiguity)
    solution.save(tmp_path / "solution.npz")
    loaded = drmdp.Solution.load(tmp_path / "solution.npz")
    found, again = (drmdp.radius.measure_next(model, ambiguity, own) for own in (solution, loaded))
    np.testing.assert_allclose(found.gains, again.gains)


def test_what_cannot_be_told_is_refused():
    model, ambiguity = counted(np.random.default_rng(0)), drmdp.Wasserstein(0.1)
    solution = drmdp.solve(model, ambiguity)
    ask = drmdp.radius.measure_next
    with pytest.raises(drmdp.InputError, match="counts: the model does not say"):
        ask(doubt.model_of(np.random.default_rng(0), "discounted"), ambiguity, solution)
    with pytest.raises(drmdp.InputError, match="another model"):
        ask(counted(np.random.default_rng(1)), ambiguity, solution)
    with pytest.raises(drmdp.InputError, match="another model or set"):
        ask(model, drmdp.Wasserstein(0.2), solution)
    with pytest.raises(drmdp.InputError, match="rows: expected a whole number"):
        ask(model, ambiguity, solution, rows=0)
    with pytest.raises(drmdp.InputError, match="cost: expected positive numbers"):
        ask(model, ambiguity, solution, cost=-1.0)
    mixed = drmdp.Reweighting(0.1)
    with pytest.raises(drmdp.InputError, match="weights of kernels"):
        ask(model, mixed, drmdp.solve(model, mixed))
    with pytest.raises(drmdp.InputError, match="nature"):
        ask(model, ambiguity, drmdp.solve(model, ambiguity, nature="cooperative"))
    with pytest.raises(drmdp.InputError, match=r"expected a drmdp\.Solution"):
        ask(model, ambiguity, solution.policy)


@pytest.mark.fuzz
@pytest.mark.parametrize("family", measuring.FAMILIES)
def test_gains_beat_uniform_rows_and_do_not_lose_to_visits(family):
    runs = measuring.simulated(family, range(30))
    for rule, least in (("uniform", -3.0), ("visits", 3.0)):
        apart = (runs["gain"] - runs[rule])[:, -1]
        assert apart.mean() < least * apart.std(ddof=1) / len(apart) ** 0.5
