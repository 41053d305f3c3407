"""Pictures of `drmdp.sensitivity`: what they show is what was found."""

from itertools import pairwise

import matplotlib
import numpy as np
import pytest

import drmdp

matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


def judged(n_kernels=6, n_states=4, **more):
    rng = np.random.default_rng(0)
    model = drmdp.Model(
        rng.dirichlet(np.full(n_states, 0.4), (n_kernels, n_states, 3)),
        costs=1e4 * rng.random((n_states, 3)),
        discount=0.9,
        states=[f"state {s}" for s in range(n_states)],
        kernel_names=[f"source {k}" for k in range(n_kernels)],
        **more,
    )
    policies = {"first": [0] * n_states, "second": [1] * n_states, "$third$": [2] * n_states}
    return drmdp.sensitivity(model, policies, labels=[k % 2 for k in range(n_kernels)])


@pytest.fixture(scope="module")
def result():
    return judged()


def texts(labels):
    return [label.get_text() for label in labels]


@pytest.mark.parametrize("what", ["values", "regret"])
def test_values_and_regret_are_in_the_order_of_the_optima(result, what):
    ax = drmdp.plot.over_kernels(result, what)
    order = np.argsort(result.best)
    assert texts(ax.get_xticklabels()) == [f"source {k}" for k in order]
    lines = ax.get_lines()
    for line, name, row in zip(lines, result.names, getattr(result, what), strict=False):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_ydata(), row[order])
    if what == "values":
        np.testing.assert_array_equal(lines[-1].get_ydata(), np.sort(result.best))
    else:
        assert ax.get_ylabel() == "cost, more than the optimum"
    plt.close(ax.figure)


def test_kernels_of_weight_0_and_very_many_names_are_not_drawn():
    ax = drmdp.plot.over_kernels(judged(weights=[0.5, 0.5, 0, 0, 0, 0]))
    assert len(ax.get_lines()[0].get_ydata()) == 2
    plt.close(ax.figure)
    ax = drmdp.plot.over_kernels(judged(n_kernels=50))
    assert not any(name.startswith("source") for name in texts(ax.get_xticklabels()))
    plt.close(ax.figure)


def test_acceptability_of_all_and_by_label(result):
    ax = drmdp.plot.acceptability(result)
    assert texts(ax.get_yticklabels()) == ["all kernels", "0", "1"]
    for p, bars in enumerate(ax.containers):
        widths = [bar.get_width() for bar in bars]
        assert widths[0] == pytest.approx(100 * result.acceptability[p])
        assert widths[1] == pytest.approx(100 * result.first[p, ::2].mean())
    ends = np.array([[bar.get_x() + bar.get_width() for bar in bars] for bars in ax.containers])
    assert ends.max(axis=0) == pytest.approx([100] * 3)
    plt.close(ax.figure)


@pytest.mark.parametrize("by", ["state", "kernel", "label"])
def test_bars_of_a_tornado_are_those_of_the_result(result, by):
    ax, bars = drmdp.plot.tornado(result, by, "second", n=3), result.tornado(by, 1)
    names = [str(name) for name in bars.names[:3]]
    assert texts(ax.get_yticklabels()) == names
    edges = np.array(
        [[[bar.get_x(), bar.get_x() + bar.get_width()] for bar in side] for side in ax.containers]
    )
    low, high = edges.min(axis=(0, 2)), edges.max(axis=(0, 2))
    np.testing.assert_allclose(low, np.minimum(bars.low, bars.base)[:3])
    np.testing.assert_allclose(high, np.maximum(bars.high, bars.base)[:3])
    left, right = ax.get_xlim()
    assert left < low.min()
    assert right > high.max()
    assert (
        ax.get_ylabel()
        == {"state": "rows of the state, 3 of 4", "kernel": "kernel, 3 of 6", "label": "label"}[by]
    )
    plt.close(ax.figure)


def test_what_never_ends_is_told():
    kernels = np.zeros((2, 2, 2, 2))
    kernels[0, 0], kernels[1, 0] = [[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0.5, 0.5]]
    kernels[:, 1, :, 1] = 1
    model = drmdp.Model(kernels, costs=np.ones((2, 2)), discount=1.0, terminal=[1])
    result = drmdp.sensitivity(model, [0, 0])
    ax = drmdp.plot.tornado(result, "kernel")
    assert texts(ax.get_yticklabels()) == ["1: never ends", "0"]
    ax.figure.canvas.draw()
    plt.close(ax.figure)


def test_shares_of_actions_by_state(result):
    ax = drmdp.plot.shares(result)
    np.testing.assert_array_equal(ax.images[0].get_array(), result.share)
    assert texts(ax.get_yticklabels()) == list(result.states)
    plt.close(ax.figure)
    many = judged(n_states=70)
    ax = drmdp.plot.shares(many)
    apart = np.flatnonzero(many.share.max(axis=1) < 1 - 1e-9)
    assert len(texts(ax.get_yticklabels())) == min(apart.size, 60)
    plt.close(ax.figure)
    alike = drmdp.sensitivity(drmdp.instances.garnet(70, 3))
    assert len(drmdp.plot.shares(alike).images[0].get_array()) == 60
    plan = drmdp.sensitivity(drmdp.instances.machine(5), stages=3)
    ax = drmdp.plot.shares(plan, stage=2)
    np.testing.assert_array_equal(ax.images[0].get_array(), plan.share[2])
    plt.close("all")


@pytest.mark.parametrize("size", [(3, 2.2), (5.4, 3.2)])
def test_a_small_picture_has_room_for_its_legend_and_its_numbers(result, size):
    for draw in (drmdp.plot.over_kernels, drmdp.plot.acceptability, drmdp.plot.tornado):
        figure, ax = plt.subplots(figsize=size, layout="constrained")
        assert draw(result, ax=ax) is ax
        figure.canvas.draw()
        box = ax.get_legend().get_window_extent()
        assert box.x0 >= 0, draw
        assert box.x1 <= figure.bbox.x1, draw
        shown = [own.get_window_extent() for own in ax.get_xticklabels() if own.get_text()]
        inside = sorted(
            (own.x0, own.x1) for own in shown if own.x1 > ax.bbox.x0 and own.x0 < ax.bbox.x1
        )
        assert all(one[1] < other[0] for one, other in pairwise(inside)), draw
        plt.close(figure)


def test_the_optimum_is_seen_in_a_dark_style(result):
    for style, colour in (("default", "#000000"), ("dark_background", "white")):
        with plt.style.context(style):
            ax = drmdp.plot.over_kernels(result)
        assert ax.get_lines()[-1].get_color() == colour
        plt.close(ax.figure)


def test_what_is_refused(result):
    for call, message in (
        (
            lambda: drmdp.plot.over_kernels(result, "gain"),
            "what: expected 'values' or 'regret', got 'gain'",
        ),
        (
            lambda: drmdp.plot.acceptability(7),
            "result: expected what drmdp.sensitivity found, got 7",
        ),
        (
            lambda: drmdp.plot.tornado(result, n=0),
            "n: expected a whole number of at least 1, got 0",
        ),
        (lambda: drmdp.plot.shares(result, stage=1), "stage"),
    ):
        with pytest.raises(drmdp.InputError, match=message):
            call()
