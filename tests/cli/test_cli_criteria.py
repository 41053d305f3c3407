"""`drmdp reach` and `--criterion`: the answers of the library, in the words of what was asked, and
one line for every mistake.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import formats, instances
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
    by_label = json.loads(
        run("reach", "swap.tra", "--target", "goal", "--avoid", "crash", "--radius", 0.1, "--json")
    )
    by_number = json.loads(
        run("reach", "swap.tra", "--target", 2, "--avoid", 3, "--radius", 0.1, "--json")
    )
    model = drmdp.read("swap.tra", discount=1.0)
    found = drmdp.reach(model, drmdp.Wasserstein(0.1), 2, 3)
    for document in (by_label, by_number):
        assert document["criterion"] == "reach"
        for name in ("lower", "upper", "value"):
            np.testing.assert_array_equal(document[name], getattr(found, name))
    assert found.lower[0] <= 0.6 - 0.1 / np.sqrt(2) <= found.upper[0]


def labelled(path, labels, width=0.0, rewards=("steps",)):
    """A .umb file: left goes on or stays, right ends at the goal or in a crash; `width` makes
    probabilities intervals.
    """
    umbi = pytest.importorskip("umbi")
    ats = umbi.ats.ExplicitAts(num_players=1)
    ats.state_to_player = [0] * 4
    for _ in range(4):
        ats.add_state()
    ats.set_initial_states([0])
    for s, row in enumerate(({0: 0.5, 1: 0.5}, {2: 0.625, 3: 0.375}, {2: 1.0}, {3: 1.0})):
        choice = ats.add_state_choice(s)
        for t, p in row.items():
            sure = p == 1 or not width
            choice.add_branch(t, p if sure else umbi.datatypes.Interval(p - width, p + width))
    for name, states in labels.items():
        ats.add_ap_annotation(name).set_state_values([s in states for s in range(4)])
    for name in rewards:
        ats.add_reward_annotation(name).set_state_values([1.0, 1.0, 0.0, 0.0])
    umbi.ats.write(ats, path)


def test_labels_of_umb_files_are_targets(run, tmp_path):
    named = {"goal": {2}, "over": {2, 3}, "nowhere": set()}
    labelled(tmp_path / "plain.umb", named)
    labelled(tmp_path / "wide.umb", named, 0.125)
    for name in ("plain.umb", "wide.umb"):
        known = formats.labels(name, 4)
        assert {own: set(np.flatnonzero(flags).tolist()) for own, flags in known.items()} == named
    model = drmdp.read("plain.umb", discount=1.0)
    found = drmdp.reach(model, drmdp.Wasserstein(0.1), formats.labels("plain.umb", 4)["goal"])
    assert found.lower[0] <= 0.625 - 0.1 / np.sqrt(2) <= found.upper[0]
    asked = ("--discount", 1, "--radius", 0.1, "--json")
    told = json.loads(run("reach", "plain.umb", "--target", "goal", *asked))
    np.testing.assert_array_equal(told["value"], found.value)
    both = json.loads(run("reach", "plain.umb", "--target", "goal", "--target", 3, *asked))
    np.testing.assert_array_equal(
        both["value"], json.loads(run("reach", "plain.umb", "--target", "over", *asked))["value"]
    )
    wide = json.loads(run("reach", "wide.umb", "--target", "goal", "--set", "intervals", "--json"))
    assert wide["lower"][0] <= 0.5 <= wide["upper"][0]
    assert wide["status"] == "solved"
    said = run("reach", "plain.umb", "--target", "gaol", *asked[:4], code=2)
    assert "--target: unknown state 'gaol'; labels: 'goal', 'over', 'nowhere'" in said
    assert "no state is given" in run(
        "reach", "plain.umb", "--target", "nowhere", *asked[:4], code=2
    )


@pytest.mark.parametrize("rewards", [(), ("steps", "others")])
@pytest.mark.parametrize("name", ["plain.umb", "wide.umb"])
def test_reach_reads_no_rewards_of_umb_files(run, tmp_path, name, rewards):
    width = 0.125 if name == "wide.umb" else 0.0
    more = ("--set", "intervals") if width else ("--radius", 0.1)
    labelled(tmp_path / name, {"goal": {2}}, width)
    asked = ("reach", name, "--target", "goal", "--json", *more)
    plain = json.loads(run(*asked))
    labelled(tmp_path / name, {"goal": {2}}, width, rewards)
    bare = json.loads(run(*asked))
    for bound in ("lower", "upper", "value"):
        assert bare[bound] == plain[bound]
    assert "expected one reward" in run("solve", name, "--discount", 0.9, *more, code=2)


def test_reach_reads_no_rewards_of_tra_files(run, tmp_path):
    asked = ("reach", "swap.tra", "--target", 2, "--radius", 0.1, "--json")
    plain = json.loads(run(*asked))
    for suffix in (".srew", ".trew"):
        (tmp_path / "swap").with_suffix(suffix).unlink(missing_ok=True)
    bare = json.loads(run(*asked))
    for bound in ("lower", "upper", "value"):
        assert bare[bound] == plain[bound]
    assert "no rewards" in run("solve", "swap.tra", "--discount", 0.9, "--radius", 0.1, code=2)
    assert not drmdp.read("swap.tra", discount=1.0, rewards=False).costs.any()
    with pytest.raises(drmdp.InputError, match="`rewards` is not for this format"):
        drmdp.read("machine.npz", rewards=False)


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
    given = {
        "costs": model.costs,
        "available": model.available,
        "states": model.states,
        "actions": model.actions,
    }
    drmdp.write(drmdp.Model(model.kernels, discount=0.9, sojourn=lasts, **given), "paced.npz")
    told = " ".join(
        run("solve", "paced.npz", "--radius", 0.1, "--criterion", "average", "--proof", "p").split()
    )
    assert "worst-case cost per unit of time in the long run" in told
    assert "average for each unit of time in the long run" in run("verify", "p", "paced.npz")
    rows = json.loads(
        run("sweep", "paced.npz", "--radii", "0,0.1", "--criterion", "average", "--json")
    )["points"]
    found = drmdp.solve(drmdp.read("paced.npz"), drmdp.Wasserstein(0.1), criterion="average")
    assert rows[-1]["worst"] == pytest.approx(found.value[0], rel=1e-6)


def test_a_plan_of_bounded_reach_knows_what_it_is_when_it_is_loaded(run):
    run(
        "reach", "swap.tra", "--target", "goal", "--radius", 0.1, "--within", 3, "--out", "plan.npz"
    )
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
        (
            ("reach", "swap.tra", "--target", "gaol"),
            "--target: unknown state 'gaol'; labels: 'init', 'deadlock', 'goal', 'crash'",
        ),
        (("reach", "swap.tra", "--target", "goal", "--avoid", "goal"), "2 cannot be both"),
        (("reach", "swap.tra", "--target", "deadlock"), "no state is given"),
        (("reach", "swap.tra", "--target", 2, "--within", 0), "--within"),
        (
            ("reach", "swap.tra", "--target", 2, "--within", 3, "--proof", "p"),
            "--proof: a plan has none; leave out --within",
        ),
        (
            ("solve", "machine.npz", "--criterion", "total"),
            "--criterion: 'total' needs the discount 1",
        ),
        (("solve", "swap.tra", "--discount", 1), "--discount: 1 needs terminal states"),
    ],
)
def test_mistakes_are_one_line(run, args, words):
    said = run(*args, "--radius", 0.1, code=2)
    assert words in said
    assert said.count("\n") == 1


def test_a_label_nobody_has_is_told_with_its_line(run):
    with open("swap.lab", "a") as file:
        file.write("1: 7\n")
    assert "line 5: no label has the number '7'" in run(
        "reach", "swap.tra", "--target", 2, "--radius", 0.1, code=2
    )


def test_files_that_hold_a_discount_are_reached_in_too(run):
    goal = drmdp.read("machine.npz").states[-1]
    document = json.loads(
        run("reach", "machine.npz", "--target", goal, "--radius", 0.1, "--rtol", 1e9, "--json")
    )
    found = drmdp.reach(drmdp.read("machine.npz"), drmdp.Wasserstein(0.1), goal)
    assert (np.asarray(document["lower"]) <= found.upper).all()
    assert (found.lower <= np.asarray(document["upper"])).all()


@pytest.fixture
def failing(run):
    """A machine that fails, in which a repair keeps away from it."""
    rows = [[[0.9, 0.1, 0], [1, 0, 0]], [[0, 0.8, 0.2], [0.9, 0.1, 0]], [[0, 0, 1], [0.9, 0.1, 0]]]
    more = [[[0.8, 0.2, 0], [1, 0, 0]], [[0, 0.7, 0.3], [0.8, 0.2, 0]], [[0, 0, 1], [0.8, 0.2, 0]]]
    names = {"states": ["new", "worn", "failed"], "actions": ["run", "repair"]}
    costs = {"costs": [[0, 1], [0, 1], [5, 6]], "discount": 0.9, "initial": [1, 0, 0]}
    drmdp.write(drmdp.Model([rows, more], **costs, **names), "m.npz")
    return lambda *args, code=0: " ".join(
        run(args[0], "--radius", 0.05, *args[1:], code=code).split()
    )


@pytest.mark.parametrize("within", [(), ("--within", 12)])
@pytest.mark.parametrize("verb", [["evaluate", "m.npz"], ["simulate", "m.npz"]])
def test_what_reach_wrote_is_a_policy(failing, verb, within):
    for name in ("r.npz", "r.json"):
        failing("reach", "m.npz", "--target", "failed", "--minimise", *within, "--out", name)
        failing(*verb, name)
        if not within:
            failing("inspect", "m.npz", name)


def test_where_reaching_ended_all_actions_are_alike(failing, capfd):
    ball, model = drmdp.Wasserstein(0.05), drmdp.read("m.npz")
    found = drmdp.reach(model, ball, "failed", minimise=True)
    np.testing.assert_array_equal(model.policy(found)[2], [0.5, 0.5])
    plan = drmdp.reach(model, ball, "failed", minimise=True, within=3)
    filled = np.where(plan.policy.any(axis=2, keepdims=True), plan.policy, 0.5)
    # its ends are probabilities and count for nothing where costs are asked for
    costs = drmdp.evaluate(model, ball, plan)
    np.testing.assert_array_equal(costs.value, drmdp.evaluate(model, ball, filled).value)
    seen = [drmdp.simulate(model, each, n=50).totals for each in (plan, filled)]
    np.testing.assert_array_equal(*seen)
    judged = [drmdp.sensitivity(model, each).values for each in (plan, filled)]
    np.testing.assert_array_equal(*judged)
    found.save("r.npz")
    result = CliRunner().invoke(main, ["evaluate", "m.npz", "r.npz", "--radius", "0.05"])
    assert "note: r.npz: reaching ended in 'failed': all actions there are alike" in result.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "the policy reaches failed with probability at least 0.999999, whatever nature does"),
        (
            "--within 12",
            "the policy reaches failed within 12 steps with probability at least {}, whatever "
            "nature does",
        ),
        (
            "--within 12 --minimise --avoid worn",
            "the policy reaches failed, which is to be avoided, before worn within 12 steps "
            "with probability at most {}, whatever nature does",
        ),
        (
            "--within 1 --target worn --nature cooperative",
            "the policy reaches worn or failed within 1 step with probability at least {}, if "
            "nature helps",
        ),
        (
            "--within 2 --radius 0",
            "the policy reaches failed within 2 steps with probability at least {}, under the "
            "mean kernel",
        ),
    ],
)
def test_reach_says_what_it_answers(failing, given, words):
    asked = ("reach", "m.npz", "--target", "failed", *given.split())
    told, document = failing(*asked), json.loads(failing(*asked, "--json"))
    bound = np.ravel(document["value"])[0]  # it starts new
    shown = float(told.split("with probability at ")[1].split()[1].rstrip(","))
    assert f"Answer from the start, {words.format(f'{shown:.6g}')}" in told
    assert document["settings"]["answer"] in told
    below = bound - shown if "at least" in words else shown - bound
    assert -1e-12 <= below < 1.1e-6


def test_an_answer_is_kept(failing):
    for within in ((), ("--within", 3)):
        told = failing("reach", "m.npz", "--target", "failed", *within, "--out", "r.npz")
        kind = drmdp.HorizonSolution if within else drmdp.Solution
        answer = kind.load("r.npz").settings["answer"]
        assert answer in told
        assert f"answer     {answer}" in repr(kind.load("r.npz"))


def test_probabilities_of_rounding_are_nothing(failing):
    told = failing("reach", "m.npz", "--target", "failed", "--minimise", "--within", 12)
    assert "Value 0 worst-case probability" in told
    assert "with probability at most 1e-12, whatever nature does" in told
    assert "e-14" not in told


@pytest.mark.parametrize("given", ["", "--within 4", "--minimise", "--avoid worn --within 4"])
@pytest.mark.parametrize("name", ["r.npz", "today.json"])
def test_the_probability_of_a_policy(failing, tmp_path, given, name):
    (tmp_path / "today.json").write_text('{"new": "run", "worn": "run"}')
    asked = ("--target", "failed", *given.split())
    answer = failing("reach", "m.npz", *asked, "--out", "r.npz").split("Answer ")[1]
    # a plan has its deadline
    judged = ("evaluate", "m.npz", name, "--criterion", "reach", *asked)
    told, document = failing(*judged), json.loads(failing(*judged, "--json"))
    kind = drmdp.HorizonSolution if "within" in given else drmdp.Solution
    policy = kind.load("r.npz") if name == "r.npz" else [0, 0, 0]
    question = {"target": "failed", "avoid": ["worn"] if "avoid" in given else None}
    question |= {"minimise": "minimise" in given, "within": 4 if "within" in given else None}
    found = drmdp.evaluate(
        drmdp.read("m.npz"), drmdp.Wasserstein(0.05), policy, criterion="reach", **question
    )
    for bound in ("value", "lower", "upper"):
        np.testing.assert_array_equal(document[bound], getattr(found, bound))
    words = answer.split("with probability")[0]
    assert f"Answer {words}" in told
    if name == "r.npz":
        best = kind.load("r.npz")
        assert (np.abs(found.value - best.value) < 1e-6).all()


def test_a_policy_is_asked_for_a_probability_with_labels(run, tmp_path):
    (tmp_path / "p.json").write_text('{"0": "go", "1": "back"}')
    (tmp_path / "swap.srew").unlink()
    asked = ("--target", "goal", "--avoid", "crash", "--radius", 0.1)
    told = run("evaluate", "swap.tra", "p.json", "--criterion", "reach", *asked)
    assert "reaches state 2 before state 3 with probability at least 0.229289" in " ".join(
        told.split()
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--target", "failed"), "--target: goes with --criterion reach"),
        (("--within", 3), "--within: goes with --criterion reach"),
        (("--minimise",), "--minimise: goes with --criterion reach"),
        (("--criterion", "reach"), "--target: no state is given"),
        (
            ("--criterion", "reach", "--target", "failed", "--within", 3),
            "--within: the plan has 2 stages, got 3",
        ),
    ],
)
def test_questions_that_do_not_fit(failing, args, words):
    failing("reach", "m.npz", "--target", "failed", "--within", 2, "--out", "p.npz")
    assert words in failing("evaluate", "m.npz", "p.npz", *args, code=2)


def test_unknown_states_list_the_known(failing, run):
    told = failing("reach", "m.npz", "--target", "Failed", code=2)
    assert "unknown state 'Failed'; known: 'new', 'worn', 'failed' (did you mean 'failed'?)" in told
    told = run("reach", "swap.tra", "--target", "Goal", "--radius", 0.1, code=2)
    assert "unknown state 'Goal'; labels: 'init', 'deadlock', 'goal', 'crash' (did you" in told
    for name in ("FAILED", "failled"):
        with pytest.raises(drmdp.InputError, match=r"'failed' \(did you mean 'failed'\?\)"):
            drmdp.reach(drmdp.read("m.npz"), drmdp.Wasserstein(0.1), name)


def test_what_is_held_out_is_judged_by_the_criterion_that_was_asked_for(run):
    """A sum of discounted costs beside an average chose the radius."""
    asked = ["sweep", "machine.npz", "--radii", "0,0.1", "--criterion", "average", "--json"]
    held = json.loads(run(*asked, "--folds", 2))["choice"]
    judged = json.loads(run(*asked, "--held-out", "machine.npz"))["choice"]
    assert np.allclose(held["mean"], judged["mean"], rtol=0.2)  # the same unit: a step
    model, ball = drmdp.read("machine.npz"), drmdp.Wasserstein(0)
    own = drmdp.radius.cross_validate(model, ball, [0, 0.1], 2, criterion="average")
    assert np.allclose(own.samples, held["samples"])
    for i in range(model.n_kernels):
        alone = drmdp.Model(model.kernels[i : i + 1], costs=model.costs, discount=model.discount)
        best = drmdp.solve(alone, ball, criterion="average")
        assert own.samples[:, i].min() >= best.lower[0] - 1e-6
        assert own.samples[:, i].max() <= model.costs.max()


def test_the_page_about_an_average_has_its_curve(run):
    asked = ["solve", "machine.npz", "--criterion", "average", "--radius", 0.1]
    run(*asked, "--report", "page.html", "--report-radii", 3)
    with open("page.html", encoding="utf-8") as page:
        assert "The price of robustness." in page.read()


def test_a_discount_is_changed_by_what_the_messages_say(run):
    """It was named, and then refused."""
    model = drmdp.read("walk.npz")
    kernels, costs = model.kernels, model.costs
    drmdp.write(drmdp.Model(kernels, costs=costs, discount=0.9, terminal=[2]), "ends.npz")
    asked = ["solve", "ends.npz", "--radius", 0.1]
    cure = "drmdp convert --discount"
    assert cure in run(*asked, "--criterion", "total", code=2)
    assert f"{cure} 1" in run(*asked, "--discount", 1, code=2)
    assert "--discount 1" in run(*asked, "--criterion", "average", code=2)
    for target in ("one.npz", "one.drmdp"):
        assert "discount 1 in place of 0.9" in run("convert", "ends.npz", target, "--discount", 1)
        found = json.loads(run("solve", target, "--radius", 0.1, "--json"))
        same = drmdp.solve(model, drmdp.Wasserstein(0.1))
        assert np.allclose(found["value"], same.value, rtol=1e-5)
    assert "a number in [0, 1]" in run("convert", "ends.npz", "two.npz", "--discount", 2, code=2)


def test_both_figures_and_the_time_until_the_end_are_told(run):
    """The worst case alone was told, and of a total not how long it lasts."""
    model = drmdp.read("walk.npz")
    found = drmdp.solve(model, drmdp.Wasserstein(0.1))
    mean = float(model.initial @ drmdp.policies.under(model, found.policy, [None])[0])
    steps = float(model.initial @ found.time)
    asked = ["solve", "walk.npz", "--radius", 0.1, "--report", "walk.html"]
    text = " ".join(run(*asked).split())
    assert f"{mean:.6g} cost until the end under the mean kernel" in text
    assert f"at most about {steps:.4g} steps until the end, on average" in text
    with open("walk.html", encoding="utf-8") as page:
        assert f"At most about {steps:.4g} steps until the end, on average" in page.read()
    text = " ".join(run("solve", "walk.npz", "--radius", 0).split())
    assert "Mean" not in text
    model, ball = drmdp.read("machine.npz"), drmdp.Wasserstein(0.1)
    found = drmdp.solve(model, ball, criterion="average")
    mean = drmdp.evaluate(model, drmdp.Wasserstein(0), found.policy, criterion="average").value[0]
    asked = ["solve", "machine.npz", "--radius", 0.1, "--criterion", "average"]
    text = " ".join(run(*asked).split())
    told = float(text.split("Mean ")[1].split()[0])
    assert told == pytest.approx(mean, rel=1e-4)
    assert "steps until the end" not in text
