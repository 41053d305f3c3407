"""Maps: every state is where it lies, in the colour of what is done there; sets are compared by
shares of their sizes.
"""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

import drmdp
from drmdp import InputError, formats
from drmdp.plot.style import CELLS

matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


def walk(places, actions=("left", "right", "up", "down"), terminal=(), cost=1.0):
    """A walk on places to the last one; a step slips, and stays where it is, in one kernel."""
    at = {place: s for s, place in enumerate(places)}
    ways = [(0, -1), (0, 1), (-1, 0), (1, 0)]
    S = len(places)
    kernels = np.zeros((2, S, 4, S))
    for s, (i, j) in enumerate(places):
        for a, (down, right) in enumerate(ways):
            t = at.get((i + down, j + right), s)
            kernels[0, s, a, t] = 1
            kernels[1, s, a, s] += 0.5
            kernels[1, s, a, t] += 0.5
    costs = np.full((S, 4), cost)
    return drmdp.Model(
        kernels, costs=costs, discount=0.9, states=places, actions=actions, terminal=list(terminal)
    )


def test_a_grid_world_is_drawn_as_a_grid():
    places = [(i, j) for i in range(3) for j in range(4) if (i, j) != (1, 1)][
        ::-1
    ]  # a hole, in an odd order
    model = walk(places, terminal=[(2, 3)])
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
    ax = drmdp.plot.map(solution)
    image = np.asarray(ax.images[0].get_array())
    assert image.shape == (3, 4, 4)
    assert ax.images[0].get_extent() == [-0.5, 3.5, 2.5, -0.5]
    used = np.flatnonzero(solution.policy.any(axis=0))
    for s, (i, j) in enumerate(places):
        x = solution.policy[s]
        if not x.any():
            assert image[i, j, 3] == 0  # nothing is done there
            continue
        colour = CELLS[used.tolist().index(int(x.argmax()))]
        np.testing.assert_allclose(image[i, j], (*to_rgb(colour), 0.25 + 0.75 * x.max()))
    assert image[1, 1, 3] == 0
    assert [own.get_text() for own in ax.get_legend().get_texts()] == [
        *(model.actions[a] for a in used),
        "no action",
    ]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("x1", "x2")
    arrows = sum(len(own.U) for own in ax.collections)
    assert arrows == (solution.policy > 0.02).sum()
    value = drmdp.plot.map(solution, by="values").images[0].get_array()
    for s, place in enumerate(places):
        assert value[place] == solution.value[s]
    assert np.isnan(np.asarray(value)[1, 1])


def test_a_lake_of_gymnasium_has_the_shape_of_its_environment():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", map_name="8x8")
    solution = drmdp.solve(formats.from_gymnasium(env, 0.9), drmdp.Wasserstein(0.1))
    ax = drmdp.plot.map(solution, env.unwrapped.desc.shape)
    opaque = np.asarray(ax.images[0].get_array())[:, :, 3]
    np.testing.assert_array_equal(opaque == 0, np.isin(env.unwrapped.desc, [b"H", b"G"]))
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("row", "column")
    assert len(ax.collections) == 4  # arrows
    cliff = gymnasium.make("CliffWalking-v1")
    solution = drmdp.solve(formats.from_gymnasium(cliff, 0.9), drmdp.Wasserstein(0.1))
    assert drmdp.plot.map(solution, cliff.unwrapped.shape).images[0].get_array().shape == (4, 12, 4)


def test_other_coordinates_are_points():
    rng = np.random.default_rng(0)
    model = drmdp.instances.garnet(300, 3, branching=4, seed=0, sparse=True)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
    xy = rng.normal(size=(300, 2))
    ax = drmdp.plot.map(solution, xy)
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), xy)
    np.testing.assert_allclose(
        ax.collections[0].get_facecolors()[7, :3], to_rgb(CELLS[solution.policy[7].argmax()])
    )
    points = drmdp.plot.map(solution, xy, by="values").collections[0]
    np.testing.assert_array_equal(points.get_array(), solution.value)


@pytest.mark.parametrize(
    ("coordinates", "message"),
    [
        (None, "coordinates: states are not named by two numbers each"),
        ((2, 4), "coordinates: a grid of 2 × 4 has 8 places, the model 6 states"),
        (np.zeros((5, 2)), "coordinates: expected 6 pairs of finite numbers"),
        (np.full((6, 2), np.nan), "coordinates: "),
        (np.ones((6, 3)), "coordinates: expected 6 pairs"),
        ([(0, k % 5) for k in range(6)], "coordinates: states '1' and 'R2' are both at 0, 0"),
        ("ab", "coordinates: "),
    ],
)
def test_what_is_no_place_is_refused(coordinates, message):
    solution = drmdp.solve(drmdp.instances.machine(6), drmdp.Wasserstein(0.1))
    with pytest.raises(InputError, match=message):
        drmdp.plot.map(solution, coordinates)
    with pytest.raises(InputError, match='by: expected "policy" or "values", got 3'):
        drmdp.plot.map(solution, (2, 3), by=3)


def test_names_with_more_than_two_numbers_are_no_places():
    model = drmdp.Model(
        np.full((2, 1, 2), 0.5), costs=[1.0, 2.0], discount=0.5, states=[("a", 1, 2), ("b", 1, 2)]
    )
    with pytest.raises(InputError, match="states are not named by two numbers"):
        drmdp.plot.map(drmdp.solve(model, drmdp.Wasserstein(0)))


@pytest.mark.usefixtures("sketched")
def test_a_report_of_places_has_a_map(tmp_path):
    pytest.importorskip("jinja2")
    model = walk([(i, j) for i in range(4) for j in range(3)], terminal=[(3, 2)])
    drmdp.solve(model, drmdp.Wasserstein(0.1)).report(tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text("utf-8")
    assert 'aria-label="Map: the likeliest action where each state lies"' in text
    assert "The likeliest action where each state lies, by the two numbers of its name" in text


# ---------------------------------------------------------------------- sets


def test_sets_are_compared_by_shares_of_their_sizes():
    model = drmdp.instances.perturb(drmdp.instances.machine(6), 4)
    balls = [
        (drmdp.Wasserstein(0), 4),
        (drmdp.Divergence(0, "burg"), [0, 0.5, 2.0]),
        (drmdp.Reweighting(kind="cvar", level=1.0), [0.25, 0.5, 1.0]),
    ]
    paths = [drmdp.radius.path(model, ambiguity, radii) for ambiguity, radii in balls]
    ax = drmdp.plot.sets(paths)
    lines = ax.get_lines()
    assert [own.get_label() for own in lines] == ["(l2, 2)", "burg, up to 2", "reweighting cvar"]
    for own, path in zip(lines, paths, strict=True):
        np.testing.assert_array_equal(own.get_ydata(), path.worst)
    np.testing.assert_allclose(lines[0].get_xdata(), paths[0].fractions)
    np.testing.assert_allclose(lines[1].get_xdata(), [0, 0.25, 1])
    np.testing.assert_allclose(
        lines[2].get_xdata(), [1, 2 / 3, 0]
    )  # the smaller the level, the larger the set
    starts = [own.get_ydata()[np.argmin(own.get_xdata())] for own in lines]
    np.testing.assert_allclose(starts, starts[0], rtol=1e-5)  # all begin at the mean kernel
    assert [own.get_label() for own in drmdp.plot.sets(paths[:1], names=["$far$"]).get_lines()] == [
        "$far$"
    ]
    other = drmdp.radius.path(drmdp.instances.machine(6), drmdp.Wasserstein(0), [0, 0.1])
    for given, names, message in (
        ([paths[0], other], None, "paths: 1 is of another model than 0"),
        ([], None, "paths: expected one or more"),
        (paths, ["a"], "paths: expected one or more, and a name for each, got 3 and"),
        ([3], None, r"paths: 0: expected a drmdp\.radius\.path, got 3"),
    ):
        with pytest.raises(InputError, match=message):
            drmdp.plot.sets(given, names)
