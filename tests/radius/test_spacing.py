"""Radii are put where decisions change, and a ball without room says so."""

from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import Wasserstein, radius
from drmdp.cli import main
from drmdp.radius.path import NARROW

STATES, ACTIONS = ("good", "fair", "poor", "failed"), ("run", "replace")


def presses(seed=0):
    """Eight presses in four conditions, each seen for five years: run them, or replace them."""
    rng = np.random.default_rng(seed)
    wear = np.array(
        [[0.76, 0.2, 0.03, 0.01], [0, 0.7, 0.25, 0.05], [0, 0, 0.65, 0.35], [0, 0, 0, 1]]
    )
    y = np.zeros((8, 4, 2, 4))
    for press in range(8):
        for s in range(4):
            y[press, s] = [
                rng.multinomial(15, wear[s]) / 15,
                rng.multinomial(6, [0.97, 0.03, 0, 0]) / 6,
            ]
    costs = [[0, 5000], [300, 5000], [1500, 5000], [9000, 7000]]
    return drmdp.Model(y, costs=costs, discount=0.95, states=STATES, actions=ACTIONS)


def rows_that_differ(points):
    """Rows of the table whose policy is not that of the row before, in whole percents."""
    return sum(np.abs(b.policy - a.policy).max() >= 0.01 for a, b in pairwise(points))


@pytest.mark.parametrize("seed", [0, 1])
def test_most_rows_of_a_sweep_show_another_policy(seed):
    model, ambiguity = presses(seed), Wasserstein(0)
    found = radius.path(model, ambiguity, 20, tol=1e-2)
    even = radius.path(model, ambiguity, np.linspace(0, found.saturation, 20), tol=1e-2)
    assert len(found.points) == 20
    assert (found.radii[0], found.radii[-1]) == (0, found.saturation)
    assert rows_that_differ(found.points) > 10
    assert rows_that_differ(found.points) > rows_that_differ(even.points)


def test_a_decision_at_a_small_radius_is_found():
    # "safe" costs .1 and "risky" nothing, but nature can move mass r/√2 to a state that costs 1 000
    # once: they are equal near r = 3e-4
    rows = np.zeros((2, 3, 2, 3))
    rows[:, 0] = [[0, 1 - 1e-7, 1e-7], [0, 1, 0]]
    rows[:, 1] = [0, 1, 0]
    rows[:, 2] = [0, 1, 0]
    model = drmdp.Model(rows, costs=[[0, 0.1], [0, 0], [1000, 1000]], discount=0.5)
    ambiguity = Wasserstein(0)
    found = radius.path(model, ambiguity, 20)
    (change,) = radius.critical(found, precision=1e-6)
    assert change.high < 1e-3 * found.saturation
    assert found.radii[1] <= 1e-3 * found.saturation


def test_a_jump_does_not_take_all_radii():
    model, ambiguity = presses(), Wasserstein(0, "linf")  # deterministic policies: one change
    found = radius.path(model, ambiguity, 20, tol=1e-2)
    assert rows_that_differ(found.points) == 1
    gaps = np.diff(found.worst) / np.ptp(found.worst)
    assert gaps.max() < 0.15
    k = int(np.argmax([np.abs(b.policy - a.policy).max() for a, b in pairwise(found.points)]))
    assert found.radii[k + 1] - found.radii[k] <= NARROW * found.radii[k + 1]


def test_the_radius_asked_about_and_the_spread_of_the_kernels_are_among_them():
    model = presses()
    found = radius.path(model, Wasserstein(0.123), 8, tol=1e-2)
    assert 0.123 in found.radii
    assert np.isclose(found.radii, Wasserstein(0).spread(model, range(4)).mean()).any()
    short = radius.path(model, Wasserstein(0.123), 8, tol=1e-2, top=0.2)
    assert (short.radii[0], short.radii[-1], short.saturation) == (0, 0.2, found.saturation)
    assert 0.123 in short.radii


def test_where_nothing_happens_there_are_as_many_radii_as_asked_for():
    y = np.full((2, 3, 1, 3), 1 / 3)
    model = drmdp.Model(y, costs=[1, 1, 1], discount=0.5)
    found = radius.path(model, Wasserstein(0), 9)
    assert len(np.unique(found.radii)) == 9
    assert np.diff(found.radii).max() <= 0.3 * found.saturation


def test_folds_judge_the_radii_of_the_whole_model():
    model, ambiguity = presses(), Wasserstein(0)
    chosen = radius.cross_validate(model, ambiguity, 6, folds=2, tol=1e-1)
    np.testing.assert_array_equal(chosen.radii, radius.path(model, ambiguity, 6, tol=1e-1).radii)


# ---------------------------------------------------------------------- no room


def certain(**given):
    """Two states, every move certain."""
    y = np.array([[[0, 1.0], [1, 0]], [[1, 0], [0, 1.0]]])
    return drmdp.Model(y, costs=[[1, 2], [3, 1]], discount=0.9, **given)


ROOM = "the set has no room: each action was seen to lead to one next state only"


def test_room_is_where_the_saturation_is_not_zero():
    half = drmdp.Model([[[0, 1.0]], [[0.5, 0.5]]], costs=[1, 2], discount=0.9)
    ends = drmdp.Model([[[0.5, 0.5]], [[0.5, 0.5]]], costs=[1, 2], discount=0.9, terminal=[1])
    alone = drmdp.Model([[[1.0]]], costs=[1], discount=0.9)
    for model in (certain(), half, ends, alone, presses()):
        for support in ("all", "observed"):
            ambiguity = Wasserstein(1, support=support)
            np.testing.assert_array_equal(ambiguity.room(model), ambiguity.saturation(model) > 0)


def test_weights_of_zero_make_no_room():
    y = np.array([[[[0, 1.0]], [[0, 1.0]]], [[[0.5, 0.5]], [[0, 1.0]]]])
    model = drmdp.Model(y, costs=[1, 2], discount=0.9, weights=[1, 0])
    assert not Wasserstein(1).room(model).any()
    assert drmdp.solve(model, Wasserstein(1)).notes[0].startswith(ROOM)


def test_a_ambiguity_without_room_says_so():
    solution = drmdp.solve(certain(), Wasserstein(5))
    (note,) = solution.notes
    assert note.startswith(ROOM)
    assert "any radius is the same as 0" in note
    assert note in repr(solution)
    assert note in solution._repr_html_().replace("&#x27;", "'")
    np.testing.assert_allclose(
        solution.value, drmdp.solve(certain(), Wasserstein(0)).value, atol=1e-9
    )


@pytest.mark.parametrize(
    "ambiguity", [Wasserstein(0), Wasserstein([0, 0]), Wasserstein(5, support="all")], ids=str
)
def test_no_word_where_there_is_nothing_to_say(ambiguity):
    assert drmdp.solve(certain(), ambiguity).notes == ()


def test_room_in_states_with_radius_0_does_not_count():
    half = drmdp.Model([[[0, 1.0]], [[0.5, 0.5]]], costs=[1, 2], discount=0.9)
    assert drmdp.solve(half, Wasserstein([1, 0])).notes[0].startswith(ROOM)
    assert drmdp.solve(half, Wasserstein([0, 1])).notes == ()


@pytest.mark.parametrize(
    "words",
    [
        "solve m.npz --radius 1",
        "evaluate m.npz p.json --radius 1",
        "inspect m.npz --radius 1",
        "sweep m.npz --radii 3",
        "horizon m.npz --radius 1 --stages 2",
    ],
)
def test_the_command_line_says_that_there_is_no_room(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(certain(notes=["first"]), "m.npz")
    (tmp_path / "p.json").write_text('{"0": 0, "1": 1}')
    for extra in ((), ("--json",)):
        result = CliRunner().invoke(main, [*words.split(), *extra])
        assert result.exit_code == 0, result.output
        text = " ".join(result.stdout.split())
        assert "first" in text
        assert ROOM in text


@pytest.mark.usefixtures("sketched")
def test_the_report_says_that_there_is_no_room(tmp_path):
    drmdp.solve(certain(), Wasserstein(5)).report(tmp_path / "r.html")
    assert ROOM in (tmp_path / "r.html").read_text()


# ---------------------------------------------------------------------- the command


def test_sweep_writes_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(presses(), "m.npz")
    words = "sweep m.npz --radii 5 --top 0.5 --threads 1 --tol 0.1 --folds 2 --seed 1 --out t.csv"
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code == 0, result.output
    assert "Written" in result.stdout
    head, *rows = [line.split(",") for line in (tmp_path / "t.csv").read_text().splitlines()]
    assert head == [
        "radius",
        "share",
        "nominal",
        "worst",
        "gap",
        "status",
        "changed",
        "held_out",
        "held_out_worst",
    ]
    found = radius.path(presses(), Wasserstein(0), 5, tol=0.1, top=0.5)
    chosen = radius.cross_validate(presses(), Wasserstein(0), found.radii, 2, tol=0.1, seed=1)
    for k, row in enumerate(rows):
        assert float(row[0]) == found.radii[k]
        assert float(row[3]) == pytest.approx(found.worst[k], abs=0.2)
        assert float(row[7]) == pytest.approx(chosen.mean[k], rel=1e-3)
        assert row[5] == "solved"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--by 2", "--by has a meaning only with --folds or --held-out"),
        ("--seed 2", "--seed has a meaning only with --folds"),
        ("--precision 2", "--precision has a meaning only with --critical"),
        ("--confidence .9", "--confidence has a meaning only with --samples"),
        ("--radii 0,1 --top 2", "--top has a meaning only with a number of --radii"),
        ("--out t.txt", "the table is written to a .csv file"),
        ("--out m.npz", "the table is written to a .csv file"),
        ("--radii 100000000", "from 2 to 10,000 radii, or a list, got 100000000"),
    ],
)
def test_options_that_would_be_ignored_are_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(certain(), "m.npz")
    result = CliRunner().invoke(main, ["sweep", "m.npz", *words.split()])
    assert result.exit_code == 2
    assert message in result.stderr
