"""PRISM's explicit files: as they occur, exact round trips, and an error with a line for every
mistake.
"""

import numpy as np
import pytest

import drmdp
from drmdp import InputError, Model
from texts import back, listed, ragged, variety

TRA = """3 3 5
0 0 0 0.5 stay
0 0 1 0.5 stay
0 1 2 1 go
1 0 1 0.25 go
1 0 2 0.75 go
"""
SREW = '# Reward structure: "cost"\n3 2\n0 4\n1 2.5\n'
TREW = "3 3 2\n0 0 1 10\n1 0 2 20\n"
LAB = '0="init" 1="deadlock" 2="goal"\n0: 0\n2: 1 2\n'


def files(tmp_path, **texts):
    for suffix, text in texts.items():
        (tmp_path / f"m.{suffix}").write_text(text)
    return tmp_path / "m.tra"


def test_all_files_together(tmp_path):
    model = drmdp.read(files(tmp_path, tra=TRA, srew=SREW, trew=TREW, lab=LAB), discount=0.9)
    assert list(model.actions) == ["stay", "go"]
    np.testing.assert_array_equal(model.available, [[True, True], [False, True], [False, False]])
    np.testing.assert_array_equal(model.terminal, [False, False, True])
    np.testing.assert_array_equal(model.initial, [1, 0, 0])
    np.testing.assert_array_equal(model.mean_kernel[0], [[0.5, 0.5, 0], [0, 0, 1]])
    np.testing.assert_array_equal(model.mean_kernel[1, 1], [0, 0.25, 0.75])
    np.testing.assert_array_equal(
        -model.costs.toarray()[:4], [[4, 14, 0], [0, 0, 4], [0, 0, 0], [0, 2.5, 22.5]]
    )


def test_state_rewards_alone_are_by_pair(tmp_path):
    model = drmdp.read(files(tmp_path, tra=TRA, srew=SREW), discount=0.9)
    np.testing.assert_array_equal(-model.costs, [[4, 4], [0, 2.5], [0, 0]])
    np.testing.assert_array_equal(model.initial, np.full(3, 1 / 3))


def test_choices_without_actions_of_their_own_are_numbered(tmp_path):
    for text in (TRA.replace(" stay", "").replace(" go", ""), TRA.replace("stay", "go")):
        model = drmdp.read(files(tmp_path, tra=text, srew=SREW), discount=0.9)
        assert list(model.actions) == [0, 1]
        np.testing.assert_array_equal(
            model.available, [[True, True], [True, False], [False, False]]
        )


SINGLE = {
    name: model
    for name, model in variety().items()
    if model.n_kernels == 1 and name != "known everywhere"
}


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.filterwarnings("ignore::drmdp.Notice")  # of names that are left out
def test_round_trip(name, tmp_path):
    model = SINGLE[name]
    drmdp.write(model, tmp_path / "m.tra")
    found = drmdp.read(tmp_path / "m.tra", discount=model.discount)
    back(found, model)
    assert [str(name) for name in found.actions] == [
        str(name).replace(" ", "_") for name in model.actions
    ]


def test_names_of_actions_and_initial_states_come_back(tmp_path):
    y = np.full((2, 3, 2), 0.5)
    model = Model(
        y,
        rewards=np.arange(6.0).reshape(2, 3),
        discount=0.9,
        actions=["up", "10", "down"],
        initial=[0, 1],
    )
    drmdp.write(model, tmp_path / "m.tra")
    assert drmdp.read(tmp_path / "m.tra", discount=0.9) == model


def test_old_rewards_do_not_survive(tmp_path):
    path = files(tmp_path, tra=TRA, srew=SREW)
    drmdp.write(ragged(), path)
    back(drmdp.read(path, discount=0.9), ragged())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tra": ""}, "line 1: expected the numbers of states, choices and transitions, got []"),
        ({"tra": "3 5\n"}, "line 1: expected the numbers of states, choices and transitions"),
        ({"tra": "3 3 0\n"}, "no transitions"),
        ({"tra": TRA.replace("3 3 5", "4 3 5")}, "line 1: promises 4 states, but there are 3"),
        ({"tra": TRA.replace("3 3 5", "3 2 5")}, "line 1: promises 2 choices, but there are 3"),
        ({"tra": TRA.replace("3 3 5", "3 3 6")}, "line 1: promises 6 transitions, but there are 5"),
        ({"tra": TRA.replace("3 3 5", "3 3 x")}, "line 1: transitions: expected a number, got 'x'"),
        (
            {"tra": TRA.replace("0 1 2 1 go", "0 1 2")},
            "line 4: expected state, choice, next state, probability, got 3",
        ),
        (
            {"tra": TRA.replace("0 1 2 1 go", "0 1 2 p go")},
            "line 4: probability: expected a number, got 'p'",
        ),
        (
            {"tra": TRA.replace("0 1 2 1 go", "0 1 2 .5 go")},
            "line 4: the row of kernel 0 that begins here sums to 0.5",
        ),
        (
            {"tra": TRA.replace("0 1 2 1 go", "0 1 99999999 1 go")},
            "state 3 is never mentioned, but state 99999999 is",
        ),
        (
            {"tra": TRA.replace("0 1 2 1 go", "0 0 1 1 stay")},
            "line 1: promises 3 choices, but there are 2",
        ),
        (
            {"tra": TRA.replace("3 3 5", "3 2 5").replace("0 1 2 1 go", "0 0 1 1 stay")},
            "line 4: the transition of line 3 again",
        ),
        ({"srew": None}, "no rewards: neither m.srew nor m.trew is there"),
        ({"srew": "3\n"}, "m.srew: line 1: expected 2 numbers"),
        (
            {"srew": "3 1\n3 1\n"},
            "m.srew: line 2: state: expected a whole number from 0 to 2, got '3'",
        ),
        ({"srew": "3 1\n0 1 2\n"}, "m.srew: line 2: expected 2 numbers, got 3"),
        ({"srew": "3 1\n0 nan\n"}, "m.srew: line 2: reward must be finite, got 'nan'"),
        ({"trew": "3 3 1\n0 0 2 1\n"}, "m.trew: line 2: there is no transition 0 0 2"),
        ({"lab": '0="start"\n'}, 'm.lab: line 1: no label "init"'),
        ({"lab": '0="init"\n'}, "m.lab: no state is initial"),
        (
            {"lab": '0="init"\n7: 0\n'},
            "m.lab: line 2: state: expected a whole number from 0 to 2, got '7'",
        ),
    ],
)
def test_mistakes_are_named_with_file_and_line(change, message, tmp_path):
    texts = {"tra": TRA, "srew": SREW} | change
    path = files(tmp_path, **{suffix: text for suffix, text in texts.items() if text is not None})
    with pytest.raises(InputError) as caught:
        drmdp.read(path, discount=0.9)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_the_discount_must_be_given(tmp_path):
    path = files(tmp_path, tra=TRA, srew=SREW)
    with pytest.raises(InputError, match="no discount: the file holds none, so give one"):
        drmdp.read(path)
    with pytest.raises(InputError, match="`base` is not for this format"):
        drmdp.read(path, discount=0.9, base=1)


def test_what_the_format_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "m.tra"
    for model, message in (
        (ragged(2), "PRISM holds one kernel, not 2"),
        (variety()["known everywhere"], "initial states, all equally likely"),
        (
            Model(np.eye(2)[:, None], rewards=np.ones((2, 1, 2)), discount=0.5),
            "rewards of transitions of probability 0",
        ),
        (
            Model(np.ones((1, 2, 1)), rewards=[0.0], discount=0.5, actions=["a b", "a_b"]),
            "cannot hold the action name 'a_b'",
        ),
        (
            Model(np.ones((1, 1, 1)), rewards=[0.0], discount=0.5, actions=[" "]),
            "cannot hold the action name ' '",
        ),
    ):
        with pytest.raises(InputError, match=message):
            drmdp.write(model, path)
    assert not path.exists()


def test_solutions_agree(tmp_path):
    model = listed()
    drmdp.write(model, tmp_path / "m.tra")
    ambiguity = drmdp.Wasserstein(0.2, support="observed")
    found = drmdp.solve(drmdp.read(tmp_path / "m.tra", discount=0.5), ambiguity)
    np.testing.assert_array_equal(found.value, drmdp.solve(model, ambiguity).value)
