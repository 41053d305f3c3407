"""`drmdp reach` and `--criterion`: the answers of the library, in the words of what was asked, and one line for every mistake."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances
from drmdp.cli import main

TRANSITIONS = """4 6 9
0 0 0 .5 stay
0 0 1 .5 stay
0 1 2 .3 go
0 1 3 .7 go
1 0 0 1 back
1 1 2 .6 go
1 1 3 .4 go
2 0 2 1 stay
3 0 3 1 stay
"""
LABELS = '0="init" 1="deadlock" 2="goal" 3="crash"\n0: 0\n2: 2\n3: 3\n'


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swap.tra").write_text(TRANSITIONS)
    (tmp_path / "swap.lab").write_text(LABELS)
    (tmp_path / "swap.srew").write_text("4 2\n0 1\n1 1\n")
    kernel = [[[0.5, 0.5, 0], [0, 0.2, 0.8]], [[0.1, 0.4, 0.5], [0.3, 0, 0.7]], [[0, 0, 1]] * 2]
    walk = {
        "costs": [[1, 2], [1, 2], [0, 0]],
        "discount": 1.0,
        "terminal": ["end"],
        "states": ["far", "near", "end"],
    }
    drmdp.write(drmdp.Model(kernel, **walk), "walk.npz")
    drmdp.write(instances.perturb(instances.machine(6), 4), "machine.npz")

    def run(*args, code=0):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        assert result.exit_code == code, result.stderr
        return result.stdout if code == 0 else result.stderr

    return run


def test_reach_takes_states_and_labels(run):
    by_label = json.loads(run("reach", "swap.tra", "--target", "goal", "--avoid", "crash", "--radius", 0.1, "--json"))
    by_number = json.loads(run("reach", "swap.tra", "--target", 2, "--avoid", 3, "--radius", 0.1, "--json"))
    model = drmdp.read("swap.tra", discount=1.0)
    found = drmdp.reach(model, drmdp.Wasserstein(0.1), 2, 3)
    for document in (by_label, by_number):
        assert document["criterion"] == "reach"
        for name in ("lower", "upper", "value"):
            np.testing.assert_array_equal(document[name], getattr(found, name))
    assert found.lower[0] <= 0.6 - 0.1 / np.sqrt(2) <= found.upper[0]


def test_values_are_called_what_they_are(run):
    assert "worst-case probability" in run("reach", "swap.tra", "--target", "goal", "--radius", 0.1)
    bounded = run("reach", "swap.tra", "--target", "goal", "--radius", 0.1, "--within", 3)
    assert "worst-case probability" in bounded
    assert "reward" not in bounded.split("Value")[1]
    assert "worst-case cost until the end" in run("solve", "walk.npz", "--radius", 0.1)
    told = " ".join(run("solve", "machine.npz", "--radius", 0.1, "--criterion", "average").split())
    assert "worst-case cost a step in the long run" in told


def test_steps_that_last_are_told_of(run):
    model = drmdp.read("machine.npz")
    lasts = np.linspace(1, 3, model.available.size).reshape(model.available.shape)
    given = {"costs": model.costs, "available": model.available, "states": model.states, "actions": model.actions}
    drmdp.write(drmdp.Model(model.kernels, discount=0.9, sojourn=lasts, **given), "paced.npz")
    told = " ".join(run("solve", "paced.npz", "--radius", 0.1, "--criterion", "average", "--proof", "p").split())
    assert "worst-case cost per unit of time in the long run" in told
    assert "average for each unit of time in the long run" in run("verify", "p", "paced.npz")
    rows = json.loads(run("sweep", "paced.npz", "--radii", "0,0.1", "--criterion", "average", "--json"))["points"]
    found = drmdp.solve(drmdp.read("paced.npz"), drmdp.Wasserstein(0.1), criterion="average")
    assert rows[-1]["worst"] == pytest.approx(found.value[0], rel=1e-6)


def test_a_plan_of_bounded_reach_knows_what_it_is_when_it_is_loaded(run):
    run("reach", "swap.tra", "--target", "goal", "--radius", 0.1, "--within", 3, "--out", "plan.npz")
    assert drmdp.HorizonSolution.load("plan.npz").value_noun == "worst-case probability"


@pytest.mark.parametrize("name", ["walk.npz", "machine.npz"])
def test_a_policy_is_evaluated_by_the_criterion(run, name):
    criterion = [] if name == "walk.npz" else ["--criterion", "average"]
    run("solve", name, "--radius", 0.1, *criterion, "--out", "found.npz")
    solved = drmdp.Solution.load("found.npz")
    document = json.loads(run("evaluate", name, "found.npz", "--radius", 0.1, *criterion, "--json"))
    assert document["criterion"] == solved.criterion == ("average" if criterion else "total")
    assert (np.asarray(document["lower"]) <= solved.upper).all()
    assert (solved.lower <= np.asarray(document["upper"])).all()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("reach", "swap.tra", "--target", "gaol"), "--target: unknown state 'gaol'; labels: 'init', 'deadlock', 'goal', 'crash'"),
        (("reach", "swap.tra", "--target", "goal", "--avoid", "goal"), "2 cannot be both"),
        (("reach", "swap.tra", "--target", "deadlock"), "no state is given"),
        (("reach", "swap.tra", "--target", 2, "--within", 0), "--within"),
        (("reach", "swap.tra", "--target", 2, "--within", 3, "--proof", "p"), "--proof: a plan has none; leave out --within"),
        (("solve", "machine.npz", "--criterion", "total"), "--criterion: 'total' needs the discount 1"),
        (("solve", "swap.tra", "--discount", 1), "--discount: 1 needs terminal states"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(run, args, words):
    said = run(*args, "--radius", 0.1, code=2)
    assert words in said
    assert said.count("\n") == 1


def test_a_label_nobody_has_is_told_with_its_line(run):
    with open("swap.lab", "a") as file:
        file.write("1: 7\n")
    assert "line 5: no label has the number '7'" in run("reach", "swap.tra", "--target", 2, "--radius", 0.1, code=2)


def test_files_that_hold_a_discount_are_reached_in_too(run):
    goal = drmdp.read("machine.npz").states[-1]
    document = json.loads(run("reach", "machine.npz", "--target", goal, "--radius", 0.1, "--rtol", 1e9, "--json"))
    found = drmdp.reach(drmdp.read("machine.npz"), drmdp.Wasserstein(0.1), goal)
    assert (np.asarray(document["lower"]) <= found.upper).all()
    assert (found.lower <= np.asarray(document["upper"])).all()
