"""Pictures of prices and of what to measure next: the largest first, under the user's names."""

import matplotlib
import numpy as np
import pytest

import doubt
import drmdp

matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def bars(ax):
    return [bar.get_width() for bar in ax.patches]


def names(ax):
    return [tick.get_text() for tick in ax.get_yticklabels()]


@pytest.fixture(scope="module")
def model():
    counts = np.full((doubt.S, doubt.A, doubt.S), 7.0)
    given = {"counts": counts, "actions": ["wait", "act", "call"]}
    return doubt.model_of(np.random.default_rng(0), "discounted", **given)


def test_the_largest_prices_first(model):
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
    ax = drmdp.plot.prices(solution, n=4)
    order = np.argsort(-solution.prices)[:4]
    np.testing.assert_allclose(bars(ax), solution.prices[order])
    assert names(ax) == [str(s) for s in order]
    assert ax.get_xlabel() == "change of the worst-case cost per unit of radius"


def test_prices_of_pairs_with_marks_where_less_saves_more(model):
    fine = drmdp.solve(model, drmdp.Divergence(0.1, rectangular="sa"))
    ax = drmdp.plot.prices(fine)
    s, a = np.unravel_index(np.argmax(fine.prices), fine.prices.shape)
    assert names(ax)[0] == f"{s}, {model.actions[a]}"
    assert not ax.get_lines()
    kernel = np.array([[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0], [1, 0]]])
    tied = drmdp.Model(kernel[None], costs=[[0, 0], [10, 10]], discount=0.9)
    solution = drmdp.solve(tied, drmdp.Wasserstein(0.1, rectangular="sa"))
    ax = drmdp.plot.prices(solution)
    np.testing.assert_allclose(
        ax.get_lines()[0].get_xdata(), np.sort(solution.prices_less[0])[::-1]
    )


def test_infinite_prices_levels_and_plans(model):
    ax = drmdp.plot.prices(drmdp.solve(model, drmdp.Divergence(0.0)))
    assert [text.get_text() for text in ax.texts] == ["∞"] * doubt.S
    ax = drmdp.plot.prices(drmdp.solve(model, drmdp.Reweighting(kind="cvar", level=0.5)))
    assert ax.get_xlabel().endswith("per unit of level")
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), stages=3)
    ax = drmdp.plot.prices(plan)
    assert max(bars(ax)) == pytest.approx(plan.prices.sum(axis=0).max())


def test_what_to_measure_next(model):
    ambiguity = drmdp.Divergence(0.1, "burg", rectangular="sa")
    found = drmdp.radius.measure_next(model, ambiguity, drmdp.solve(model, ambiguity))
    ax = drmdp.plot.measure_next(found, n=3)
    np.testing.assert_allclose(bars(ax), found.gains[tuple(found.order[:3].T)])
    assert [text.get_text() for text in ax.texts] == ["49 rows"] * 3
    s, a = found.order[0]
    assert names(ax)[0] == f"{s}, {model.actions[a]}"
    with pytest.raises(drmdp.InputError, match="measure_next returned"):
        drmdp.plot.measure_next(model)
