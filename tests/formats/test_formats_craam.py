"""craam CSV: the files as they occur, exact round trips, and an error with a line for every
mistake.
"""

import numpy as np
import pytest
from scipy import sparse

import drmdp
from drmdp import InputError, Model
from texts import back, ragged, variety

MACHINE = """"idstatefrom","idaction","idstateto","probability","reward"
0,0,0,0.2,0
0,0,1,0.8,-1
0,1,1,1,-2
1,0,1,1,-3
1,0,2,0,-9
"""
SAMPLED = """reward,idoutcome,idstateto,probability,idaction,idstatefrom
5,0,0,1,0,0
5,1,0,0.5,0,0
5,1,1,0.5,0,0
1,0,1,1,0,1
1,1,1,1,0,1
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.csv"


def written(path, text, **options):
    path.write_text(text)
    return drmdp.read(path, **({"discount": 0.9} | options))


def test_a_plain_file(path):
    model = written(path, MACHINE)
    assert (model.n_states, model.n_actions, model.n_kernels) == (3, 2, 1)
    assert model.maximise
    np.testing.assert_array_equal(model.available, [[True, True], [True, False], [False, False]])
    np.testing.assert_array_equal(model.terminal, [False, False, True])
    np.testing.assert_array_equal(model.kernels[0, 0], [[0.2, 0.8, 0], [0, 1, 0]])
    # the reward depends on the next state, and is known beyond the transitions with mass
    np.testing.assert_array_equal(model.costs[0, 0], [0, 1, np.nan])
    np.testing.assert_array_equal(model.costs[1, 0], [np.nan, 3, 9])


def test_outcomes_are_kernels_in_any_order_of_columns(path):
    model = written(path, SAMPLED)
    assert model.n_kernels == 2
    np.testing.assert_array_equal(model.kernels[:, 0, 0], [[1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(
        model.costs, [[-5], [-1]]
    )  # by pair: no next state makes a difference


def test_rewards_on_the_next_state_that_are_known_just_where_needed_are_listed(path):
    model = written(path, MACHINE.replace("1,0,2,0,-9\n", ""))
    assert sparse.issparse(model.costs)
    with pytest.raises(InputError, match="support='observed'"):
        drmdp.solve(model, drmdp.Wasserstein(0.1, support="all"))
    assert drmdp.solve(model, drmdp.Wasserstein(0.1, support="observed")).status == "solved"


def test_rewards_that_differ_between_outcomes_are_averaged_and_noted(path):
    model = written(path, SAMPLED.replace("5,1,0,0.5", "8,1,0,0.5"))
    assert model.costs.toarray()[0, 0] == -(5 * 1 + 8 * 0.5) / 1.5
    assert any("rewards of 1 transition differ between kernels" in note for note in model.notes)


def test_one_based_files_on_request(path):
    model = written(path, _up(SAMPLED), base=1)
    assert list(model.states) == [1, 2]
    assert list(model.actions) == [1]
    np.testing.assert_array_equal(model.kernels, written(path, SAMPLED).kernels)
    with pytest.raises(
        InputError,
        match=r"state 0 is never mentioned, but state 2 is; is the file 1-based \(base=1\)\?",
    ):
        written(path, _up(SAMPLED))
    with pytest.raises(InputError, match="state 0 is below 1, the first number"):
        written(path, SAMPLED, base=1)


def test_the_files_beside_it(path, tmp_path):
    (tmp_path / "model.parameters.csv").write_text('"parameter","value"\nnoise,3\ndiscount,0.7\n')
    (tmp_path / "model.initial.csv").write_text("probability,idstate\n0.25,1\n0.75,0\n")
    model = written(path, SAMPLED, discount=None)
    assert model.discount == 0.7
    np.testing.assert_array_equal(model.initial, [0.75, 0.25])
    assert written(path, SAMPLED, discount=0.2).discount == 0.2  # said explicitly
    (tmp_path / "start.csv").write_text("idstate,probability\n2,1\n")
    (tmp_path / "more.csv").write_text("parameter,value\ndiscount,0.5\n")
    options = {"initial": tmp_path / "start.csv", "parameters": tmp_path / "more.csv", "base": 1}
    model = written(path, _up(SAMPLED), discount=None, **options)
    assert model.discount == 0.5
    np.testing.assert_array_equal(model.initial, [0, 1])


def _up(text):
    """Count from 1."""
    head, *lines = text.splitlines()
    split = [line.split(",") for line in lines]
    return "\n".join(
        [
            head,
            *(
                f"{r},{int(i) + 1},{int(t) + 1},{p},{int(a) + 1},{int(s) + 1}"
                for r, i, t, p, a, s in split
            ),
        ]
    )


def test_few_digits_are_made_up_for_and_noted(path):
    third = MACHINE.replace("0,0,0,0.2", "0,0,0,0.333333").replace("0,0,1,0.8", "0,0,1,0.666666")
    model = written(path, third)
    assert model.kernels[0, 0, 0].sum() == 1
    assert "1 row renormalised; the largest deviation from 1 was 1.0e-06" in model.notes
    with pytest.raises(
        InputError, match=r"line 2: the row of kernel 0 that begins here sums to 0\.9333"
    ):
        written(path, MACHINE.replace("0,0,0,0.2", "0,0,0,0.133333"))


@pytest.mark.parametrize("name", variety())
@pytest.mark.filterwarnings("ignore::drmdp.Notice")  # of names that are left out
def test_round_trip(name, path):
    model = variety()[name]
    drmdp.write(model, path)
    back(drmdp.read(path), model)


def test_a_written_file_is_what_craam_reads(path, tmp_path):
    drmdp.write(ragged(), path)
    assert path.read_text().splitlines()[:2] == [
        "idstatefrom,idaction,idstateto,probability,reward",
        "0,0,0,0.25,-1.0",
    ]
    assert (tmp_path / "model.parameters.csv").read_text() == "parameter,value\ndiscount,0.9\n"
    assert (tmp_path / "model.initial.csv").read_text().startswith("idstate,probability\n0,0.25\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: column 'idstatefrom' is missing"),
        ("idstatefrom,idaction\n", "line 1: column 'idstateto' is missing"),
        (MACHINE.replace("reward", "probability"), "line 1: column 'probability' is given twice"),
        (MACHINE.replace("reward", "gain"), "line 1: column 'gain' is unknown; known: idstatefrom"),
        (MACHINE.splitlines()[0], "no transitions"),
        (
            MACHINE.replace("0,1,1,1,-2", "0,1,1,one,-2"),
            "line 4: probability: expected a number, got 'one'",
        ),
        (MACHINE.replace("0,1,1,1,-2", "0,1,1,1"), "line 4: expected 5 fields, got 4"),
        (
            MACHINE.replace("0,1,1,1,-2", "0,1,1,nan,-2"),
            "line 4: probability must be finite, got 'nan'",
        ),
        (MACHINE.replace("0,1,1,1,-2", "0,1,1,1,inf"), "line 4: reward must be finite, got 'inf'"),
        (
            MACHINE.replace("0,1,1,1,-2", "0,1.5,1,1,-2"),
            "line 4: idaction: expected a whole number from 0 to",
        ),
        (
            MACHINE.replace("0,1,1,1,-2", "-1,1,1,1,-2"),
            "line 4: idstatefrom: expected a whole number from 0 to",
        ),
        (
            MACHINE.replace("0,1,1,1,-2", "0,1,1e300,1,-2"),
            "line 4: idstateto: expected a whole number",
        ),
        (
            MACHINE.replace("0,1,1,1,-2", "0,1,1000000000,1,-2"),
            "state 3 is never mentioned, but state 1000000000 is",
        ),
        (
            MACHINE.replace("0,1,1,1,-2", "0,7,1,1,-2"),
            "action 1 is never mentioned, but action 7 is",
        ),
        (MACHINE + "0,1,1,0.5,-2\n", "line 7: the transition of line 4 again"),
        (MACHINE.replace("0,1,1,1,-2", '0,1,1,"1,-2'), "line 6: unexpected end of data"),
        (
            MACHINE.replace("0,0,1,0.8", "0,0,1,-0.8"),
            "line 3: probabilities must not be negative, got -0.8",
        ),
        (
            SAMPLED.replace("5,1,0,0.5,0,0\n5,1,1,0.5,0,0\n", ""),
            "kernels: kernel 1, state 0, action 0 sums to 0.0, not 1",
        ),
    ],
    ids=lambda text: text[-40:].replace("\n", "|"),
)
def test_mistakes_are_named_with_file_and_line(text, message, path):
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        drmdp.read(path, discount=0.9)
    assert str(caught.value).startswith(f"{path}: {message[:4]}")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("parameters", "parameter,value\n", "model.parameters.csv: no line for discount"),
        (
            "parameters",
            "key,value\n",
            "model.parameters.csv: line 1: expected the columns parameter, value",
        ),
        (
            "parameters",
            "parameter,value\ndiscount,x\n",
            "model.parameters.csv: line 2: discount: expected a number, got 'x'",
        ),
        (
            "parameters",
            "parameter,value\ndiscount,2\n",
            "discount: expected a number in [0, 1], got 2.0",
        ),
        (
            "parameters",
            "parameter,value\ndiscount\n",
            "model.parameters.csv: line 2: expected 2 fields, got 1",
        ),
        ("initial", "idstate,probability\n9,1\n", "model.initial.csv: line 2: unknown state 9"),
        ("initial", "idstate,probability\n0,0.5\n", "initial must sum to 1, got 0.5"),
    ],
)
def test_mistakes_in_the_files_beside_it(name, text, message, path, tmp_path):
    path.write_text(SAMPLED)
    (tmp_path / "model.parameters.csv").write_text("parameter,value\ndiscount,0.9\n")
    (tmp_path / f"model.{name}.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        drmdp.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_what_is_missing_is_said(path, tmp_path):
    path.write_text(SAMPLED)
    with pytest.raises(
        InputError,
        match=r"no discount: give one, or a file of parameters such as model\.parameters\.csv",
    ):
        drmdp.read(path)
    for name in ("initial", "parameters"):
        with pytest.raises(InputError, match="nowhere: no such file"):
            drmdp.read(
                path, **{name: "nowhere"}, **({"discount": 0.9} if name == "initial" else {})
            )
    with pytest.raises(InputError, match="base is 0 or 1, got 2"):
        drmdp.read(path, base=2)
    with pytest.raises(InputError, match="No such file"):
        drmdp.read(tmp_path / "other.csv", discount=0.9)


def test_options_are_refused_where_they_mean_nothing(tmp_path):
    drmdp.write(ragged(), tmp_path / "m.npz")
    for option in ({"discount": 0.5}, {"base": 1}, {"initial": "x"}, {"parameters": "x"}):
        with pytest.raises(InputError, match=f"`{next(iter(option))}` is not for this format"):
            drmdp.read(tmp_path / "m.npz", **option)


def test_what_the_format_cannot_hold_is_refused(path):
    y = np.full((2, 2, 2, 2), 0.5)
    for change, message in (
        ({"weights": [0.25, 0.75]}, "holds no weights of kernels"),
        (
            {"available": np.array([[True, False]] * 2), "actions": ["a", "b"]},
            "cannot hold action 'b': no state has it",
        ),
    ):
        with pytest.raises(InputError, match=message):
            drmdp.write(Model(y, costs=[1.0, 2.0], discount=0.9, **change), path)
    lonely = Model(np.array([[[1.0, 0]], [[0, 1.0]]]), costs=[1.0, 2.0], discount=0.9, terminal=[1])
    with pytest.raises(InputError, match="cannot hold state 1: terminal and never reached"):
        drmdp.write(lonely, path)
    assert not path.exists()
