"""Pictures: what they show is what was found, on the caller's axes or new ones, under the user's
names.
"""

from itertools import pairwise

import matplotlib
import numpy as np
import pytest

import drmdp
from drmdp.plot.nature import moved
from drmdp.plot.style import fading, numbers

matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def found():
    model = drmdp.instances.perturb(drmdp.instances.machine(8), 5)
    return model, drmdp.solve(model, drmdp.Wasserstein(0.5, support="all"))


def texts(labels):
    return [label.get_text() for label in labels]


def line(ax, name):
    return next(own for own in ax.get_lines() if own.get_label() == name)


def test_a_policy_is_a_heat_map_under_the_users_names(found):
    model, solution = found
    ax = drmdp.plot.policy(solution)
    np.testing.assert_array_equal(ax.images[0].get_array(), solution.policy)
    assert texts(ax.get_xticklabels()) == list(model.actions)
    assert texts(ax.get_yticklabels()) == list(model.states)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("action", "state")


def large(n=1003, rewards=False):
    kernels = np.zeros((2, n, 2, n))
    start = np.arange(n)
    kernels[0, start, :, (start + 1) % n] = kernels[1, start, :, (start + 2) % n] = 1
    payoff = {"rewards" if rewards else "costs": np.stack([start % 7.0, start % 5.0], axis=1)}
    terminal = start < 30
    return drmdp.Model(kernels, **payoff, discount=0.9, terminal=terminal)


def test_no_row_stands_for_several_states():
    model = large(203)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.3, support="all"))
    ax = drmdp.plot.policy(solution)
    most = drmdp.policies.most_visited(model, solution.policy, 60)
    np.testing.assert_array_equal(np.asarray(ax.images[0].get_array()), solution.policy[most])
    assert ax.get_ylabel() == "state, the 60 visited most of 203"
    assert texts(ax.get_yticklabels()) == [str(s) for s in most]


def test_values_are_the_certified_ones_and_those_under_the_mean_kernel(found):
    model, solution = found
    ax = drmdp.plot.values(solution)
    np.testing.assert_array_equal(line(ax, "worst case").get_xdata(), solution.value)
    assert [own.get_label() for own in ax.get_lines()] == [
        "under the mean kernel",
        "worst case",
    ]  # the gap is not seen
    mean = drmdp.policies.under(model, solution.policy, [None])[0]
    np.testing.assert_array_equal(line(ax, "under the mean kernel").get_xdata(), mean)
    assert ax.get_xlabel() == "cost"


def test_values_of_rewards_have_the_other_side():
    model = drmdp.instances.perturb(drmdp.instances.forest(5), 3)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.2, support="all"), tol=10.0)
    ax = drmdp.plot.values(solution)
    np.testing.assert_array_equal(line(ax, "no policy does better").get_xdata(), solution.upper)
    assert ax.get_xlabel() == "reward"
    costs = drmdp.solve(
        drmdp.instances.machine(8),
        drmdp.Wasserstein(0.5, support="all"),
        "value-iteration",
        tol=10.0,
    )
    np.testing.assert_array_equal(
        line(drmdp.plot.values(costs), "no policy does better").get_xdata(), costs.lower
    )


def test_of_many_values_those_of_the_states_visited_most_are_shown():
    model = large(203)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.3, support="all"))
    ax = drmdp.plot.values(solution)
    most = drmdp.policies.most_visited(model, solution.policy, 60)
    np.testing.assert_array_equal(line(ax, "worst case").get_xdata(), solution.value[most])
    assert texts(ax.get_yticklabels()) == [str(s) for s in most]
    assert ax.get_ylabel() == "state, the 60 visited most of 203"


def test_changes_of_the_kernel_are_those_of_the_policy(found):
    model, solution = found
    expected = np.einsum("sa,sat->st", solution.policy, solution.kernel - model.mean_kernel)
    image = drmdp.plot.kernel(solution).images[0]
    np.testing.assert_allclose(image.get_array(), expected, rtol=0, atol=1e-12)
    low, high = image.get_clim()
    assert low == -high  # 0 is in the middle


@pytest.mark.parametrize("sparse", [False, True])
def test_of_many_states_whole_rows_of_changes_are_shown(sparse):
    """Every change of every state that is shown: so each row adds up to nothing."""
    model = drmdp.instances.perturb(
        drmdp.instances.garnet(80, 2, branching=4, seed=1, sparse=sparse), 3, same_support=True
    )
    solution = drmdp.solve(model, drmdp.Wasserstein(0.3))
    mean = (
        np.asarray(model.mean_kernel.todense()).reshape(80, -1, 80) if sparse else model.mean_kernel
    )
    change = np.einsum("sa,sat->st", solution.policy, np.asarray(solution.kernel) - mean)
    np.testing.assert_allclose(
        moved(solution, model, np.arange(80)).toarray(), change, rtol=0, atol=1e-11
    )
    ax = drmdp.plot.kernel(solution)
    rows, columns = (
        [int(name) for name in texts(names)]
        for names in (ax.get_yticklabels(), ax.get_xticklabels())
    )
    shown = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shown, change[np.ix_(rows, columns)], rtol=0, atol=1e-11)
    np.testing.assert_allclose(shown.sum(axis=1), 0, rtol=0, atol=1e-9)
    assert len(columns) <= 40
    assert np.argmax(drmdp.policies.visits(model, solution.policy)) in rows
    assert (ax.get_ylabel(), ax.get_xlabel()) == (
        f"from, {len(rows)} of 80 states",
        "next state, all that change",
    )


def test_of_one_state_with_very_many_next_states_the_largest_changes_are_shown():
    model = large(203)
    ax = drmdp.plot.kernel(drmdp.solve(model, drmdp.Wasserstein(0.3, support="all")))
    assert ax.images[0].get_array().shape[1] <= 40


def test_transitions_are_the_most_bent(found):
    model, solution = found
    ax = drmdp.plot.transitions(solution, n=3)
    most = drmdp.policies.bent(model, solution.kernel, 3, solution.policy)
    assert (most[0].action, texts(ax.get_yticklabels())[0]) == (
        "repair",
        f"{most[0].state}, repair → {most[0].next_state}",
    )
    np.testing.assert_array_equal(line(ax, "worst case").get_xdata(), [one.worst for one in most])
    np.testing.assert_array_equal(
        line(ax, "mean kernel").get_xdata(), [one.nominal for one in most]
    )


def test_curves(found):
    model, solution = found
    ax = drmdp.plot.convergence(solution)
    gaps = [record.gap for record in solution.history if np.isfinite(record.gap)]
    np.testing.assert_array_equal(line(ax, "certified gap").get_ydata(), gaps)
    assert ax.get_yscale() == "log"
    path = drmdp.radius.path(model, drmdp.Wasserstein(0, support="all"), [0, 0.2, 0.4])
    ax = drmdp.plot.radius(path, mark=0.2)
    np.testing.assert_array_equal(
        line(ax, "worst case").get_xydata(), np.stack([path.radii, path.worst], axis=1)
    )
    drawn = line(ax, "under the mean kernel")
    np.testing.assert_array_equal(
        drawn.get_xydata()[drawn.get_markevery()], np.stack([path.radii, path.nominal], axis=1)
    )
    choice = drmdp.radius.choose(path, model)
    ax = drmdp.plot.choice(choice)
    np.testing.assert_array_equal(line(ax, "mean").get_ydata(), choice.mean)
    assert line(ax, "chosen").get_xdata()[0] == choice.radius


def test_where_the_policy_jumps_the_curve_has_a_step():
    """One decision: 1 for sure, or 1.8 with probability one half and what nature adds to that: the
    better one from 1/18 of moved mass on is the sure one.
    """
    y = np.zeros((1, 3, 2, 3))
    y[0, 0] = [[0, 1, 0], [0, 0.5, 0.5]]
    y[0, 1:, :] = np.eye(3)[1:, None]
    costs = np.zeros((3, 2, 3))
    costs[0] = [[0, 1.0, 0], [0, 0, 1.8]]
    model = drmdp.Model(y, costs=costs, discount=0.9, initial=[1, 0, 0])
    path = drmdp.radius.path(model, drmdp.Divergence(0, "tv"), [0, 0.04, 0.2])
    np.testing.assert_allclose(path.nominal, [0.9, 0.9, 1.0])
    ax = drmdp.plot.radius(path)
    np.testing.assert_allclose(
        line(ax, "under the mean kernel").get_xydata(),
        [[0, 0.9], [0.04, 0.9], [0.12, 0.9], [0.12, 1], [0.2, 1]],
    )


def test_own_axes_are_used_and_the_callers_style_is_left_alone(found):
    figure, (left, right) = plt.subplots(ncols=2, figsize=(7, 3))
    before = dict(matplotlib.rcParams)
    assert drmdp.plot.policy(found[1], ax=left) is left
    assert drmdp.plot.convergence(found[1], ax=right) is right
    assert tuple(figure.get_size_inches()) == (7, 3)
    assert dict(matplotlib.rcParams) == before
    assert len(plt.get_fignums()) == 1


def test_a_backend_that_comes_up_with_the_first_picture_stays_interactive(found, monkeypatch):
    def subplots(*given, **settings):
        plt.ion()  # what the backend of notebooks does when it is loaded
        return made(*given, **settings)

    made, was = plt.subplots, plt.isinteractive()
    monkeypatch.setattr(plt, "subplots", subplots)
    try:
        plt.ioff()
        drmdp.plot.policy(found[1])
        assert plt.isinteractive()
    finally:
        plt.ion() if was else plt.ioff()


def test_a_loaded_solution_needs_its_model_for_nature_only(found, tmp_path):
    model, solution = found
    solution.save(tmp_path / "solution.npz")
    loaded = drmdp.Solution.load(tmp_path / "solution.npz")
    assert len(drmdp.plot.values(loaded).get_lines()) == 1
    with pytest.raises(drmdp.InputError, match="give model="):
        drmdp.plot.kernel(loaded)
    assert drmdp.plot.kernel(loaded, model).images
    with pytest.raises(drmdp.InputError, match="another model"):
        drmdp.plot.kernel(loaded, drmdp.instances.machine(8))


def test_names_are_drawn_as_they_are():
    names = ["$\\frac{1$", "a\nb", "x" * 99]
    model = drmdp.Model(
        np.full((3, 2, 3), 1 / 3),
        costs=np.zeros((3, 2)),
        discount=0.5,
        states=names,
        actions=["$", "$x$"],
    )
    ax = drmdp.plot.policy(drmdp.solve(model, drmdp.Wasserstein(0.1, support="all")))
    ax.figure.canvas.draw()  # mathematics would fail here
    assert texts(ax.get_yticklabels()) == ["$\\frac{1$", "a b", "x" * 10 + "…" + "x" * 9]


def test_time_spent_in_states():
    kernels = np.zeros((3, 1, 3))
    kernels[0, 0, 1] = kernels[1, 0, 2] = kernels[2, 0, 2] = 1
    model = drmdp.Model(
        kernels, costs=np.zeros((3, 1)), discount=0.5, initial=[1, 0, 0], terminal=[2]
    )
    np.testing.assert_allclose(drmdp.policies.visits(model, [0, 0, 0]), [2 / 3, 1 / 3, 0])
    running = drmdp.Model(kernels, costs=np.zeros((3, 1)), discount=0.5, initial=[1, 0, 0])
    np.testing.assert_allclose(
        drmdp.policies.visits(running, [0, 0, 0]), [1 / 2, 1 / 4, 1 / 4], rtol=0, atol=1e-6
    )
    np.testing.assert_array_equal(drmdp.policies.most_visited(model, [0, 0, 0], 1), [0])
    np.testing.assert_array_equal(drmdp.policies.most_visited(model, [0, 0, 0], 9), [0, 1])


def test_time_spent_in_states_of_a_large_sparse_model():
    """The shares solve d = (1 − λ) p + λ Pᵀ d, whether the policy mixes or not."""
    S = 2001  # one more than chains that are arrays have
    model = drmdp.instances.garnet(S, 2, branching=3, seed=1, discount=0.5, sparse=True)
    for policy in (np.tile([0.0, 1.0], (S, 1)), np.tile([0.3, 0.7], (S, 1))):
        kernel = np.asarray(model.kernels[0].toarray()).reshape(S, 2, S)
        chain = np.einsum("sa,sat->st", policy, kernel)
        found = drmdp.policies.visits(model, policy)
        assert (
            np.abs(0.5 * model.initial + 0.5 * chain.T @ found - found).sum() < 2e-6
        )  # where the sum ends


def test_notebooks_show_models_and_solutions(found):
    model, solution = found
    text = model._repr_html_() + solution._repr_html_()
    assert text.count("<bdi>R1</bdi>") == 2
    assert "8 states × 2 actions × 5 kernels" in text
    assert f"{solution.value[0]:.6g}" in text
    many = large()
    assert len(many._repr_html_()) < 10_000
    assert "… 991 more" in many._repr_html_()


@pytest.mark.parametrize("size", [(3, 2.2), (5.4, 3.2)])
def test_a_small_picture_has_room_for_its_legend_and_its_numbers(found, size):
    """No legend leaves the picture, and no two numbers on an axis touch."""
    model, _ = found
    costly = drmdp.Model(
        model.kernels,
        costs=1e4 * model.costs,
        discount=0.9,
        states=model.states,
        actions=model.actions,
    )
    best = drmdp.solve(costly, drmdp.Wasserstein(0.5))
    path = drmdp.radius.path(costly, drmdp.Wasserstein(0.5), radii=3)
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.5), 12)
    pictures = (
        lambda ax: drmdp.plot.values(best, ax=ax),
        lambda ax: drmdp.plot.radius(path, 0.1, ax=ax),
        lambda ax: drmdp.plot.convergence(best, ax=ax),
        lambda ax: drmdp.plot.plan(plan, ax=ax),
    )
    for picture in pictures:
        figure, ax = plt.subplots(figsize=size, layout="constrained")
        picture(ax)
        figure.canvas.draw()
        box = ax.get_legend().get_window_extent()
        assert box.x0 >= 0, picture
        assert box.x1 <= figure.bbox.x1, picture
        texts = [own.get_window_extent() for own in ax.get_xticklabels() if own.get_text()]
        inside = sorted(
            (own.x0, own.x1) for own in texts if own.x1 > ax.bbox.x0 and own.x0 < ax.bbox.x1
        )
        assert all(one[1] < other[0] for one, other in pairwise(inside)), picture
        plt.close(figure)


def test_lines_are_seen_in_a_dark_style(found):
    _, solution = found
    for style, colour in (("default", "#000000"), ("dark_background", "white")):
        with plt.style.context(style):
            ax = drmdp.plot.convergence(solution)
        assert ax.get_lines()[-1].get_color() == colour
        plt.close(ax.figure)


def test_thousands_are_separated():
    figure, ax = plt.subplots()
    ax.plot([0, 1], [-25_000, 1_250_000])
    numbers(ax.yaxis)
    figure.canvas.draw()
    assert {"0", "250,000", "1,000,000"} <= {own.get_text() for own in ax.get_yticklabels()}
    plt.close(figure)
    fading_ones = fading("#2A80B9", "#D9622B")(np.array([0.0, 0.5, 1.0]))
    assert fading_ones[[0, 2], 3].tolist() == [1, 1]
    assert fading_ones[1, 3] < 0.01
