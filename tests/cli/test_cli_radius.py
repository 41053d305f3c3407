"""`drmdp sweep`, `inspect`, `simulate` and `horizon`: what they print and write, and one line for
every mistake.
"""

import json
import math
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances, policies, radius
from drmdp.cli import main
from drmdp.cli.verbs.sweep import _chosen
from drmdp.operators.exact import ExactOperator


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    machine = instances.perturb(instances.machine(6), 4)
    drmdp.write(machine, folder / "machine.npz")
    drmdp.write(instances.perturb(instances.machine(6), 5, seed=8), folder / "held.npz")
    rewards = drmdp.Model(
        machine.kernels,
        rewards=-machine.costs,
        discount=0.8,
        states=machine.states,
        actions=machine.actions,
    )
    drmdp.write(rewards, folder / "rewards.npz")
    drmdp.write(instances.perturb(instances.garnet(90, 4, seed=1), 2), folder / "wide.npz")
    drmdp.solve(machine, drmdp.Wasserstein(0.3)).save(folder / "solution.npz")
    (folder / "final.json").write_text(json.dumps({"1": 2.5, "R1": 3}))
    (folder / "bad.json").write_text(json.dumps({"9": 2.5}))
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def run(*args, code=0):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        assert result.exit_code == code, result.stderr
        assert all(len(line) <= 80 for line in result.stdout.splitlines()) or "--json" in args, (
            result.stdout
        )
        return result

    return run


def document(result):
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


BALL = drmdp.Wasserstein(0, "l1", 1)


@pytest.mark.parametrize("name", ["machine", "rewards"])
def test_sweep_is_the_path_of_the_library(run, folder, name):
    model = drmdp.read(folder / f"{name}.npz")
    path = radius.path(model, BALL, 5)
    options = ("--metric", "L1", "--radii", 5)
    found = document(
        run(
            "sweep",
            f"{name}.npz",
            *options,
            "--critical",
            "--precision",
            0.01,
            "--samples",
            50,
            "--json",
        )
    )
    assert found["status"] == "solved"
    assert np.allclose([point["radius"] for point in found["points"]], path.radii)
    assert np.allclose([point["fraction"] for point in found["points"]], path.fractions)
    assert np.allclose([point["worst"] for point in found["points"]], path.worst, atol=1e-5)
    assert np.allclose([point["nominal"] for point in found["points"]], path.nominal, atol=1e-3)
    assert np.allclose(found["sufficient"], radius.sufficient(model, BALL, 50))
    changes = radius.critical(path, precision=0.01)
    assert [change["state"] for change in found["critical"]] == [change.state for change in changes]
    text = run("sweep", f"{name}.npz", *options, "--critical", "--samples", 50).stdout
    assert f"worst {'reward' if name == 'rewards' else 'cost'}" in text
    assert f"{path.worst[2]:.6g}" in text
    assert "Sufficient  radius" in text
    assert "…" not in text


def test_sweep_chooses(run, folder):
    model = drmdp.read(folder / "machine.npz")
    path = radius.path(model, drmdp.Wasserstein(0), [0, 0.2, 0.4])
    options = ("sweep", "machine.npz", "--radii", "0,0.2,0.4")
    given = document(run(*options, "--held-out", "held.npz", "--by", 0.9, "--json"))["choice"]
    choice = radius.choose(path, drmdp.read(folder / "held.npz"), 0.9)
    assert given["radius"] == choice.radius
    assert np.allclose(given["samples"], choice.samples, atol=1e-3)
    folds = document(run(*options, "--folds", 2, "--by", "worst", "--seed", 3, "--json"))["choice"]
    own = radius.cross_validate(model, drmdp.Wasserstein(0), [0, 0.2, 0.4], 2, "worst", seed=3)
    assert np.allclose(folds["samples"], own.samples, atol=1e-3)
    text = run(*options, "--folds", 2).stdout
    assert "held out" in text
    assert "*" in text
    assert _chosen(
        radius.cross_validate(model, drmdp.Wasserstein(0), [0, 0.2, 0.4], 2), BALL
    ) in " ".join(text.split())


def test_a_chosen_radius_says_how_far_others_do_the_same():
    samples = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 3.0], [1.0, 2.0]])
    radii, ambiguity = np.array([0.0, 0.1, 0.2, 0.3]), drmdp.Wasserstein(1.0)
    least = "radius 0 by mean over 2 held-out kernels; the policies of radii up to 0.1 do the same under each of them; "
    least += "at radius 0 no doubt about the data is considered, and the value is no bound"
    assert _chosen(radius.Choice(radii, radii, samples, False, "mean"), ambiguity) == least
    assert (
        _chosen(radius.Choice(radii, radii, samples, True, "mean"), ambiguity)
        == "radius 0.2 by mean over 2 held-out kernels"
    )


def test_sweep_of_many_states(run):
    text = run(
        "sweep", "wide.npz", "--radii", "0.0,0.5,1.0", "--critical", "--precision", 0.2
    ).stdout
    assert "unconstrained from" in text


@pytest.mark.parametrize("name", ["machine", "rewards"])
def test_inspect(run, folder, name):
    model, ambiguity = drmdp.read(folder / f"{name}.npz"), drmdp.Wasserstein(0.3)
    solution = drmdp.solve(model, ambiguity)
    found = document(run("inspect", f"{name}.npz", "--radius", 0.3, "--loss", 1.5, "--json"))
    values = policies.values(model, ambiguity, solution.policy)
    assert np.allclose(found["mean"], values.mean)
    assert np.allclose(found["by_kernel"], values.by_kernel)
    assert np.allclose(found["worst"]["value"], solution.value, atol=1e-5)
    near = policies.near_optimal(model, ambiguity, solution, 1.5)
    assert found["actions_once"]["near"] == near.near.tolist()
    rounded = policies.deterministic(model, ambiguity, solution)
    assert np.allclose(found["deterministic"]["loss"], rounded.loss, atol=1e-5)
    assert len(found["bent"]) == 8
    text = run("inspect", f"{name}.npz", "--radius", 0.3, "--loss", 1.5, "--bent", 3).stdout
    assert f"loses at most {rounded.loss.max():.3g}" in text
    assert "One action in each state: what that loses at most, for ever, and if done once" in text
    assert "within 1.5, once" in text
    assert "within" not in run("inspect", f"{name}.npz", "--radius", 0.3).stdout
    text = run("inspect", f"{name}.npz", "solution.npz", "--radius", 0.3).stdout
    assert "One action" not in text
    run("inspect", "wide.npz", "--radius", 0.3)


def test_simulate(run, folder, tmp_path):
    model = drmdp.read(folder / "machine.npz")
    policy = drmdp.Solution.load(folder / "solution.npz").policy
    args = ("simulate", "machine.npz", "solution.npz", "-n", 200, "--steps", 30, "--seed", 4)
    found = document(run(*args, "--start", "R1", "--json"))
    exact = drmdp.simulate(model, policy, n=200, steps=30, start="R1", seed=4).totals
    assert np.allclose(found["totals"], exact)
    assert np.isclose(found["mean"], exact.mean())
    worst = document(run(*args, "--kernel", "worst", "--radius", 0.3, "--json"))
    assert worst["mean"] > document(run(*args, "--kernel", 2, "--json"))["mean"]
    out = tmp_path / "log.csv"
    assert f"{out}" in "".join(run(*args, "--out", out).stdout.split("\n")).replace(" ", "")
    again = drmdp.estimate(str(out), cost="cost", discount=0.8, unvisited="unavailable")
    assert again.n_states == 6


def test_horizon(run, folder):
    model = drmdp.read(folder / "rewards.npz")
    args = (
        "horizon",
        "rewards.npz",
        "--radius",
        0.2,
        "--stages",
        7,
        "--stage-discount",
        1,
        "--final",
        "final.json",
    )
    found = document(run(*args, "--json"))
    final = [{"1": 2.5, "R1": 3}.get(state, 0) for state in model.states]
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.2), 7, final, discount=1)
    assert np.allclose(found["value"], plan.value)
    assert np.allclose(found["policy"], plan.policy)
    text = run(*args).stdout
    assert "likeliest action by stage" in text
    assert document(run(*args, "--tol", 0, "--json"))["status"] == "precision_limit"


def test_horizon_with_the_costs_of_each_stage(run, folder):
    model = drmdp.read(folder / "machine.npz")
    costs = np.random.default_rng(0).uniform(size=(3, model.n_states, model.n_actions))
    np.save(folder / "costs.npy", costs)
    found = run(
        "horizon", "machine.npz", "--radius", 0.2, "--stages", 3, "--costs", "costs.npy", "--json"
    )
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.2), 3, costs=costs)
    np.testing.assert_allclose(json.loads(found.stdout)["value"], plan.value)


def test_an_interrupted_path_is_printed_and_its_exit_code_kept(run, monkeypatch):
    """Nothing else is begun after it."""
    usual, calls = ExactOperator.update, []

    def update(self, *given):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return usual(self, *given)

    monkeypatch.setattr(ExactOperator, "update", update)
    more = ("--critical", "--held-out", "held.npz")
    found = document(
        run("sweep", "machine.npz", "--radii", "0,0.1,0.2,0.3", *more, "--json", code=130)
    )
    assert found["status"] == "interrupted"
    assert 0 < len(found["points"]) < 4
    assert "critical" not in found
    assert "choice" not in found


@pytest.mark.parametrize(
    "more", [(), ("--critical",), ("--folds", 2), ("--held-out", "held.npz")], ids=str
)
def test_a_sweep_that_has_no_time_says_so(run, more):
    found = document(
        run("sweep", "machine.npz", "--radii", 4, "--max-seconds", 0, *more, "--json", code=3)
    )
    assert found["status"] == "time_limit"
    assert len(found["points"]) == 1


def test_folds_that_have_no_time_do_not_cost_the_path(run, monkeypatch):
    def late(*args, **given):
        monkeypatch.setattr("drmdp.ui.clock.now", lambda: math.inf)
        raise drmdp.InputError("max_seconds: too short")

    monkeypatch.setattr(radius, "cross_validate", late)
    args = ("sweep", "machine.npz", "--radii", "0,0.1", "--folds", 2)
    found = document(run(*args, "--max-seconds", 60, "--json", code=3))
    assert (found["status"], len(found["points"])) == ("solved", 2)
    assert "choice" not in found


def test_a_horizon_that_has_no_time_says_so(run):
    args = ("horizon", "machine.npz", "--radius", 0.2, "--stages", 7, "--max-seconds", 0)
    found = document(run(*args, "--json", code=3))
    assert found["status"] == "time_limit"
    assert len(found["policy"]) == 7
    assert "time_limit: " in run(*args, code=3).stdout


@pytest.mark.parametrize(
    "options",
    [
        "--folds 2 --by 2",
        "--folds 2 --by median",
        "--folds 9",
        "--held-out wide.npz",
        "--critical --precision 0",
    ],
)
def test_what_comes_after_the_path_is_checked_before_it(run, monkeypatch, options):
    def path(*args, **given):
        raise AssertionError

    monkeypatch.setattr(radius, "path", path)
    assert options.split()[-2] in run("sweep", "machine.npz", *options.split(), code=2).stderr


def test_an_interrupted_search_keeps_the_path(run, monkeypatch):
    def stop(*args, **given):
        raise KeyboardInterrupt

    monkeypatch.setattr(radius, "critical", stop)
    found = document(run("sweep", "machine.npz", "--radii", 3, "--critical", "--json", code=130))
    assert len(found["points"]) == 3
    assert "critical" not in found


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("sweep machine.npz --radii many", "neither a number of radii nor radii with commas"),
        ("sweep machine.npz --radii 1", "radii: expected from 2 to 10,000 radii, or a list, got 1"),
        ("sweep machine.npz --radii 0,-1", "radii must be finite and not negative, got -1.0"),
        ("sweep machine.npz --held-out wide.npz", "--held-out: a model with other states"),
        ("sweep machine.npz --held-out held.npz --folds 2", "give --held-out or --folds, not both"),
        ("sweep machine.npz --folds 9", "folds: expected a whole number from 2 to 4, got 9"),
        ("sweep machine.npz --folds 2 --by median", "by: expected"),
        ("sweep none.npz", "none.npz"),
        ("inspect machine.npz --radius -1", "radius must be finite and not negative, got -1.0"),
        ("inspect machine.npz --radius .1 --loss -1", "loss must not be negative, got -1.0"),
        (
            "inspect machine.npz machine.npz --radius .1 --loss 2",
            "--loss: actions are compared with those of the best policy; leave POLICY away",
        ),
        ("simulate machine.npz solution.npz --kernel worst", "Missing option '--radius'"),
        (
            "simulate machine.npz solution.npz --kernel best",
            "--kernel: expected mean, worst or the name of a kernel (0, 1, 2, 3), got 'best'",
        ),
        (
            "simulate machine.npz solution.npz --kernel 9",
            "--kernel: expected mean, worst or the name of a kernel (0, 1, 2, 3), got '9'",
        ),
        ("simulate machine.npz solution.npz --start 77", "start: unknown state '77'"),
        (
            "simulate machine.npz solution.npz --out log.txt",
            "log.txt: trajectories are written to a .csv file",
        ),
        (
            "horizon machine.npz --radius .1 --stages 0",
            "--stages: expected a whole number from 1 to 1,000,000, got 0",
        ),
        (
            "horizon machine.npz --radius .1 --stages 2 --final bad.json",
            "bad.json: expected states of the model",
        ),
        ("horizon machine.npz --radius .1 --stages 2 --final none.json", "none.json"),
        (
            "horizon machine.npz --radius .1 --stages 2 --costs bad.json",
            "bad.json: expected an array in an .npy file, but it is JSON",
        ),
    ],
)
def test_mistakes_are_one_line(run, args, message):
    result = run(*args.split(), code=2)
    assert message in result.stderr
    assert result.stderr.startswith("drmdp: error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert not sys.exc_info()[0]


def test_a_plan_of_the_shell_is_evaluated_and_simulated(run, folder):
    """`horizon --out`, then `evaluate` and `simulate` of the file, with one model and with a model
    for each stage.
    """
    model, ambiguity = drmdp.read(folder / "machine.npz"), drmdp.Wasserstein(0.2)
    np.save(
        folder / "stage_costs.npy",
        np.random.default_rng(0).uniform(size=(4, model.n_states, model.n_actions)),
    )
    args = (
        "--stages",
        4,
        "--stage-discount",
        1,
        "--costs",
        "stage_costs.npy",
        "--out",
        "plan.npz",
        "--report",
        "plan.html",
    )
    found = document(run("horizon", "machine.npz", "--radius", 0.2, *args, "--json"))
    plan = drmdp.HorizonSolution.load(folder / "plan.npz")
    np.testing.assert_array_equal(found["policy"], plan.policy)
    assert "<svg" in (folder / "plan.html").read_text()
    again = document(run("evaluate", "machine.npz", "plan.npz", "--radius", 0.2, "--json"))
    np.testing.assert_allclose(again["value"], plan.value)
    assert (
        "likeliest action by stage"
        in run("evaluate", "machine.npz", "plan.npz", "--radius", 0.2).stdout
    )
    made = document(
        run("simulate", "machine.npz", "plan.npz", "--kernel", "worst", "--radius", 0.2, "--json")
    )
    exact = drmdp.simulate(model, plan, drmdp.evaluate(model, ambiguity, plan).kernels).totals
    np.testing.assert_allclose(made["totals"], exact)
    assert made["steps"] == 4
    assert "Beyond" not in run("simulate", "machine.npz", "plan.npz").stdout
    assert "Beyond" in run("simulate", "machine.npz", "solution.npz").stdout
    other = drmdp.instances.perturb(drmdp.instances.machine(6), 3, seed=9)
    drmdp.write(
        drmdp.Model(
            other.kernels,
            costs=other.costs,
            discount=0.8,
            states=model.states,
            actions=model.actions,
        ),
        folder / "later.npz",
    )
    several = ("machine.npz", "later.npz", "later.npz")
    document(run("horizon", *several, "--radius", 0.2, "--out", "three.npz", "--json"))
    three = drmdp.HorizonSolution.load(folder / "three.npz")
    assert three.n_stages == 3
    assert len(set(three.fingerprints)) == 2
    worst = document(run("evaluate", *several, "three.npz", "--radius", 0.2, "--json"))
    np.testing.assert_allclose(worst["value"], three.value)
    document(run("simulate", *several, "three.npz", "--json"))
    assert "--stages" in run("horizon", "machine.npz", "--radius", 0.2, code=2).stderr
    assert (
        "would overwrite machine.npz"
        in run(
            "horizon", "machine.npz", "--radius", 0.2, "--stages", 2, "--out", "machine.npz", code=2
        ).stderr
    )


def test_pictures_of_saved_results(run, folder):
    """Of a solution with and without its model, of a plan; what cannot be drawn is said."""
    run("horizon", "machine.npz", "--radius", 0.2, "--stages", 3, "--out", "drawn.npz")
    for kind in ("policy", "convergence"):
        run("plot", "solution.npz", "--kind", kind, "--out", f"{kind}.svg")
        assert "<svg" in (folder / f"{kind}.svg").read_text()
    for kind in ("values", "kernel", "transitions"):
        run(
            "plot", "solution.npz", "--kind", kind, "--model", "machine.npz", "--out", f"{kind}.png"
        )
        assert (folder / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    run("plot", "drawn.npz", "--out", "plan.pdf")
    assert (folder / "plan.pdf").read_bytes().startswith(b"%PDF")
    assert (
        "--model: a picture of the values needs it"
        in run("plot", "solution.npz", "--kind", "values", "--out", "v.png", code=2).stderr
    )
    assert (
        "Invalid value for '--kind': 'cake' is not one of 'policy', 'map'"
        in run("plot", "solution.npz", "--kind", "cake", "--out", "v.png", code=2).stderr
    )
    run("plot", "solution.npz", "--kind", "map", "--shape", "2x3", "--out", "map.png")
    for options, message in (
        (("map", "--shape", "3x5"), "a grid of 3 × 5 has 15 places, the model 6 states"),
        (("map", "--shape", "five"), "--shape: expected rows and columns, as in 8x8, got 'five'"),
        (("policy", "--shape", "2x3"), "--shape: it goes with --kind map"),
        (("map",), "states are not named by two numbers each"),
    ):
        assert (
            message
            in run("plot", "solution.npz", "--out", "v.png", "--kind", *options, code=2).stderr
        )
    assert "a picture is a .png" in run("plot", "solution.npz", "--out", "v.txt", code=2).stderr
    run("plot", "drawn.npz", "--kind", "map", "--shape", "2x3", "--stage", 2, "--out", "map2.png")
    for given, options, message in (
        ("drawn.npz", ("--kind", "kernel"), "--kind: a plan has pictures of"),
        (
            "drawn.npz",
            ("--kind", "map", "--shape", "2x3", "--stage", 3),
            "stage: expected a whole number from 0 to 2",
        ),
        ("drawn.npz", ("--stage", 1), "--stage: it goes with --kind map"),
        ("solution.npz", ("--stage", 1), "--stage: it is of a plan"),
    ):
        assert message in run("plot", given, *options, "--out", "v.png", code=2).stderr
    assert "missing.npz" in run("plot", "missing.npz", "--out", "v.png", code=2).stderr


def test_a_sweep_over_levels_calls_them_so_and_has_shares_of_the_way_from_1(run):
    text = run("sweep", "machine.npz", "--set", "reweight-cvar", "--radii", "0.25,0.5,1").stdout
    head, *rows = (line.split() for line in text.splitlines() if "%" in line or "share" in line)
    assert head[:2] == ["level", "share"]
    assert [row[:2] for row in rows] == [["0.25", "100.0%"], ["0.5", "66.7%"], ["1", "0.0%"]]
    assert "radius" not in text


def test_the_help_of_sweep_says_what_its_table_has(run):
    text = " ".join(run("sweep", "--help").stdout.split())
    assert '"held out" is the mean value' in text
    assert '"its worst" the value' in text
    assert "* marks the radius that is chosen" in text


def test_of_one_kernel_inspect_tells_no_range(run, folder):
    drmdp.write(instances.machine(6), folder / "one.npz")
    assert "One kernel" not in run("inspect", "one.npz", "--radius", 0.1).stdout
    assert "One kernel" in run("inspect", "machine.npz", "--radius", 0.1).stdout


def test_one_kernel_cannot_be_held_out(run, folder):
    drmdp.write(instances.machine(6), folder / "one.npz")
    said = run("sweep", "one.npz", "--folds", 2, code=2).stderr
    assert "--folds: the model has one kernel with positive weight, nothing can be held out" in said
    assert "drmdp estimate --by parts, or --by COLUMN" in said
    assert "--set counts" in said


def test_inspect_takes_no_plans_and_names_the_set_in_words(run, folder, tmp_path):
    model = drmdp.read(folder / "machine.npz")
    drmdp.finite_horizon(model, drmdp.Wasserstein(0.3), 3).save(tmp_path / "plan.npz")
    plan = tmp_path / "plan.npz"
    error = run("inspect", "machine.npz", plan, "--radius", 0.3, code=2).stderr
    assert "inspect takes no plans over stages" in error
    text = run("inspect", "machine.npz", "--radius", 0.3).stdout
    assert "radius 0.3, metric l2" in " ".join(text.split())
    assert "Wasserstein(" not in text


def test_a_radius_beyond_which_nothing_changes_is_noted(run, folder):
    model = drmdp.read(folder / "machine.npz")
    limit = float(drmdp.Wasserstein(0).saturation(model).max())
    said = f"nature is unconstrained from radius {limit:.4g} on"
    assert said in " ".join(run("solve", "machine.npz", "--radius", 2 * limit).stdout.split())
    text = run("solve", "machine.npz", "--radius", limit / 2).stdout
    assert "unconstrained" not in text
