"""Interval MDPs of PRISM and Storm: explicit files and .umb archives, as they occur, round trips,
and an error with a place for every mistake.
"""

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import drmdp
from drmdp import InputError, Intervals, Model, formats
from drmdp.cli import main
from texts import back, ragged, variety

umbi = pytest.importorskip("umbi")

TRA = """3 3 5
0 0 0 [0.2,0.6] stay
0 0 1 [0.4,0.8] stay
0 1 2 1 go
1 0 1 [0.1,0.3] go
1 0 2 [0.5,0.9] go
"""
TREW = "3 3 2\n0 0 1 10\n1 0 2 20\n"


def files(tmp_path, tra=TRA, trew=TREW):
    (tmp_path / "m.tra").write_text(tra)
    (tmp_path / "m.trew").write_text(trew)
    return tmp_path / "m.tra"


def dense(bounds, model):
    return bounds.toarray().reshape(model.n_states, model.n_actions, -1)


def test_bounds_and_a_kernel_between_them(tmp_path):
    model, intervals = formats.read_intervals(files(tmp_path), discount=0.9)
    assert list(model.actions) == ["stay", "go"]
    np.testing.assert_array_equal(dense(intervals.lower, model)[0], [[0.2, 0.4, 0], [0, 0, 1]])
    np.testing.assert_array_equal(dense(intervals.upper, model)[1, 1], [0, 0.3, 0.9])
    np.testing.assert_allclose(
        model.mean_kernel[0, 0], [0.4, 0.6, 0]
    )  # the midpoint is a distribution
    np.testing.assert_allclose(model.mean_kernel[1, 1], [0, 0.1 + 0.2 * 2 / 3, 0.5 + 0.4 * 2 / 3])
    found = drmdp.solve(model, intervals, tol=1e-9)
    # State 1 earns 20 whenever it ends in state 2: least of that, and most of staying, is .3 and
    # .7.
    assert found.value[1] == pytest.approx(0.7 * 20 / (1 - 0.9 * 0.3))


def test_a_blank_in_an_interval(tmp_path):
    path = files(tmp_path, TRA.replace("[0.2,0.6]", "[0.2, 0.6]"))
    assert (
        formats.read_intervals(path, discount=0.9)[1]
        == formats.read_intervals(files(tmp_path), discount=0.9)[1]
    )


def test_what_no_distribution_uses_is_left_out(tmp_path):
    text = "3 1 3\n0 0 0 [0.25,0.5]\n0 0 1 [0.75,0.75]\n0 0 2 [0,0.5]\n"
    model, intervals = formats.read_intervals(
        files(tmp_path, text, "3 1 1\n0 0 2 5\n"), discount=0.5
    )
    assert intervals.upper.nnz == 2
    np.testing.assert_array_equal(model.mean_kernel[0, 0], [0.25, 0.75, 0])
    np.testing.assert_array_equal(model.terminal, [False, True, True])


def test_few_digits_are_divided_out(tmp_path):
    text = "3 1 3\n0 0 0 0.333333\n0 0 1 0.333333\n0 0 2 [0.333333,0.333333]\n"
    model, intervals = formats.read_intervals(
        files(tmp_path, text, "3 1 1\n0 0 2 3\n"), discount=0.5
    )
    assert drmdp.solve(model, intervals).value[0] == pytest.approx(1 / (1 - 0.5 / 3))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[0.2,0.6]",
            "[0.6,0.2]",
            r"line 2: probability: expected 0 ≤ lower ≤ upper ≤ 1, got '\[0.6,0.2\]'",
        ),
        (
            "[0.2,0.6]",
            "[-0.1,0.6]",
            r"line 2: probability: expected 0 ≤ lower ≤ upper ≤ 1, got '\[-0.1,0.6\]'",
        ),
        ("[0.2,0.6]", "[0.2,1.6]", r"line 2: probability: expected 0 ≤ lower ≤ upper ≤ 1"),
        (
            "[0.2,0.6]",
            "[0.2]",
            r"line 2: probability: expected a number or \[lower,upper\], got '\[0.2\]'",
        ),
        (
            "[0.2,0.6]",
            "[0.2,0.6",
            r"line 2: probability: expected a number or \[lower,upper\], got",
        ),
        ("[0.2,0.6]", "[x,0.6]", "line 2: probability: expected a number, got 'x'"),
        (
            "[0.1,0.3]",
            "[0.6,0.6]",
            r"line 5: the lower bounds of the row that begins here sum to 1.1 > 1",
        ),
        (
            "[0.5,0.9]",
            "[0.5,0.6]",
            r"line 5: the upper bounds of the row that begins here sum to 0\.\d+ < 1",
        ),
        ("0 0 1 [", "0 0 0 [", "line 3: the transition of line 2 again"),
    ],
)
def test_mistakes_have_a_line(old, new, message, tmp_path):
    path = files(tmp_path, TRA.replace(old, new), "3 3 1\n0 1 2 10\n")
    with pytest.raises(InputError, match=message) as caught:
        formats.read_intervals(path, discount=0.9)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_model_is_not_read_of_intervals_and_no_intervals_of_other_formats(tmp_path):
    with pytest.raises(
        InputError, match=r"line 2: \[0.2,0.6\] is an interval: `read_intervals` reads"
    ):
        drmdp.read(files(tmp_path), discount=0.9)
    model, intervals = formats.read_intervals(files(tmp_path), discount=0.9)
    formats.write_intervals(model, intervals, tmp_path / "m.umb")
    with pytest.raises(
        InputError, match=r"state 0, choice 0, branch 0: \[0.2,0.6\] is an interval"
    ):
        drmdp.read(tmp_path / "m.umb", discount=0.9)
    with pytest.raises(
        InputError, match=r"m.npz: the format holds no intervals; those that do: .tra, .umb"
    ):
        formats.write_intervals(model, intervals, tmp_path / "m.npz")
    with pytest.raises(InputError, match="no discount"):
        formats.read_intervals(tmp_path / "m.umb")
    with pytest.raises(InputError, match=r"intervals: expected a drmdp\.Intervals"):
        formats.write_intervals(model, drmdp.Wasserstein(0.1), tmp_path / "m.umb")


@pytest.mark.parametrize("suffix", ["tra", "umb"])
@pytest.mark.parametrize("name", ["ragged, 3 kernels", "next state", "costs, 4 kernels", "sparse"])
@pytest.mark.filterwarnings("ignore::drmdp.Notice")  # of names that are left out
def test_intervals_come_back(name, suffix, tmp_path):
    model = variety()[name]
    intervals, path = Intervals.of(model, 0.05), tmp_path / f"m.{suffix}"
    formats.write_intervals(model, intervals, path)
    found, bounds = formats.read_intervals(path, discount=model.discount)
    assert (found.n_states, found.n_actions) == (model.n_states, model.n_actions)
    np.testing.assert_array_equal(found.available, model.available)
    np.testing.assert_array_equal(bounds.upper.toarray(), widened(intervals.upper, 0.05, model))
    np.testing.assert_array_equal(
        bounds.lower.toarray(), widened(intervals.lower, -0.05, model, intervals.upper)
    )
    inside = sparse.csr_array(found.mean_kernel.reshape(-1, found.n_states)).toarray()
    assert (bounds.lower.toarray() <= inside + 1e-15).all()
    assert (inside <= bounds.upper.toarray() + 1e-15).all()
    again = tmp_path / f"again.{suffix}"
    formats.write_intervals(found, bounds, again)
    assert formats.read_intervals(again, discount=model.discount)[1] == bounds
    ours, theirs = drmdp.solve(model, intervals, tol=1e-9), drmdp.solve(found, bounds, tol=1e-9)
    sign = 1 if model.maximise else -1
    np.testing.assert_allclose(theirs.value, sign * ours.value, rtol=1e-8, atol=2e-9)


def widened(bounds, margin, model, listed=None):
    """Bounds moved by a margin where a next state is listed, of the rows that are there."""
    full = (bounds if listed is None else listed).toarray()
    moved = np.clip(bounds.toarray() + margin, 0, 1) * (full > 0)
    return moved * model.available.reshape(-1, 1)


# ---------------------------------------------------------------------- .umb

SINGLE = {
    name: model
    for name, model in variety().items()
    if model.n_kernels == 1 and name != "known everywhere"
}


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.filterwarnings("ignore::drmdp.Notice")  # of names that are left out
def test_models_come_back_from_umb(name, tmp_path):
    model = SINGLE[name]
    drmdp.write(model, tmp_path / "m.umb")
    found = drmdp.read(tmp_path / "m.umb", discount=model.discount)
    back(found, model)
    assert [str(name) for name in found.actions] == [str(name) for name in model.actions]


def test_names_of_actions_and_initial_states_come_back_from_umb(tmp_path):
    y = np.full((2, 3, 2), 0.5)
    model = Model(
        y,
        rewards=np.arange(6.0).reshape(2, 3),
        discount=0.9,
        actions=["go up", "10", "down"],
        initial=[0, 1],
    )
    drmdp.write(model, tmp_path / "m.umb")
    assert drmdp.read(tmp_path / "m.umb", discount=0.9) == model


def walk(**changes):
    """A system that another program might write: fractions, rewards of states and of choices,
    choices without actions.
    """
    ats = umbi.ats.ExplicitAts(num_players=1, state_to_player=[0, 0])
    for _ in range(2):
        ats.add_state()
    for s in range(2):
        for p in (Fraction(1, 4), Fraction(1, 2)):
            choice = ats.add_state_choice(s)
            choice.add_branch(0, p)
            choice.add_branch(1, 1 - p)
    ats.set_initial_states([1])
    reward = ats.add_reward_annotation("steps")
    reward.set_state_values([1, 2])
    reward.set_choice_values([0, 10, 0, 20])
    for name, value in changes.items():
        setattr(ats, name, value)
    return ats


def test_a_file_of_another_program(tmp_path):
    umbi.ats.write(walk(), tmp_path / "m.umb")
    model = drmdp.read(tmp_path / "m.umb", discount=0.9)
    assert list(model.actions) == [0, 1]
    np.testing.assert_array_equal(model.kernels[0], [[[0.25, 0.75], [0.5, 0.5]]] * 2)
    np.testing.assert_array_equal(model.rewards, [[1, 11], [2, 22]])
    np.testing.assert_array_equal(model.initial, [0, 1])


def test_what_is_no_mdp_is_refused(tmp_path, capfd):
    def message(ats):
        umbi.ats.write(ats, tmp_path / "m.umb")
        with pytest.raises(InputError) as caught:
            drmdp.read(tmp_path / "m.umb", discount=0.9)
        return str(caught.value).removeprefix(f"{tmp_path / 'm.umb'}: ")

    assert (
        message(walk(num_players=2, state_to_player=[0, 1], player_to_name=["a", "b"]))
        == "a game of 2 players is no MDP"
    )
    rate = {"time": umbi.ats.TimeType.STOCHASTIC, "state_to_exit_rate": [1.0, 1.0]}
    assert message(walk(**rate)) == "time is stochastic, and a model here has discrete time"
    seen = umbi.ats.ObservationAnnotation(2)
    seen.set_state_values([0, 1])
    assert (
        message(walk(observation_annotation=seen))
        == "2 observations: a model here is fully observed"
    )
    assert message(walk(annotations={})) == "expected one reward, got none"
    two = walk()
    two.add_reward_annotation("other").set_state_values([1, 2])
    assert message(two) == "expected one reward, got 'steps', 'other'"
    capfd.readouterr()
    for name, content in {"text.umb": b"no archive", "empty.umb": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name}: not a readable .umb file"):
            drmdp.read(tmp_path / name, discount=0.9)
    with pytest.raises(InputError, match="no discount"):
        drmdp.read(tmp_path / "m.umb")


def test_what_umb_does_not_hold_is_refused(tmp_path):
    with pytest.raises(InputError, match="UMB holds one kernel, not 3"):
        drmdp.write(ragged(3), tmp_path / "m.umb")
    with pytest.raises(InputError, match="UMB holds initial states, all equally likely"):
        drmdp.write(variety()["known everywhere"], tmp_path / "m.umb")
    assert not (tmp_path / "m.umb").exists()


# ---------------------------------------------------------------------- the command line


@pytest.mark.parametrize("suffix", ["tra", "umb"])
def test_the_command_line_takes_the_intervals_of_a_file(suffix, tmp_path):
    model, intervals = formats.read_intervals(files(tmp_path), discount=0.9)
    path = str(tmp_path / f"m.{suffix}")
    formats.write_intervals(model, intervals, path)
    known = ["--set", "intervals", "--discount", "0.9", "--json"]
    found = CliRunner().invoke(main, ["solve", path, *known, "--out", str(tmp_path / "s.npz")])
    assert found.exit_code == 0, found.output
    value = drmdp.solve(model, intervals).value
    np.testing.assert_allclose(json.loads(found.stdout)["value"], value, rtol=1e-6)
    judged = CliRunner().invoke(main, ["evaluate", path, str(tmp_path / "s.npz"), *known])
    assert judged.exit_code == 0, judged.output
    np.testing.assert_allclose(json.loads(judged.stdout)["value"], value, rtol=1e-6)
    refused = CliRunner().invoke(main, ["solve", path, "--radius", "0.1", "--discount", "0.9"])
    assert refused.exit_code == 2
    assert "is an interval: --set intervals reads those" in " ".join(refused.output.split())
