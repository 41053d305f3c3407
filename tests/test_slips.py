"""Slips of the hand get our errors, in Python and on the command line, and results are taken where
their policy is meant.
"""

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import InputError, Wasserstein, plot, policies, radius
from drmdp.cli import main
from drmdp.cli.messages import spoken
from drmdp.cli.verbs.convert import convert
from drmdp.cli.verbs.sweep import sweep

MODEL = drmdp.instances.perturb(drmdp.instances.machine(4), 2)
BALL = Wasserstein(0.1)
SOLUTION = drmdp.solve(MODEL, BALL)

TAKE_BOTH = {
    "solve": lambda m, b: drmdp.solve(m, b),
    "bellman": lambda m, b: drmdp.bellman(m, b, np.zeros(4)),
    "evaluate": lambda m, b: drmdp.evaluate(m, b, [0] * 4),
    "certify": lambda m, b: drmdp.certify(m, b, SOLUTION),
    "finite_horizon": lambda m, b: drmdp.finite_horizon(m, b, 2),
    "path": lambda m, b: radius.path(m, b, 2),
    "cross_validate": lambda m, b: radius.cross_validate(m, b, 2),
    "sufficient": lambda m, b: radius.sufficient(m, b, 10),
    "values": lambda m, b: policies.values(m, b, [0] * 4),
    "near_optimal": lambda m, b: policies.near_optimal(m, b, SOLUTION, 1),
    "deterministic": lambda m, b: policies.deterministic(m, b, SOLUTION),
}
both = pytest.mark.parametrize("call", TAKE_BOTH.values(), ids=TAKE_BOTH)


@both
def test_a_number_is_no_ambiguity(call):
    with pytest.raises(InputError) as error:
        call(MODEL, 0.1)
    assert (
        str(error.value)
        == "ambiguity: expected a set such as drmdp.Wasserstein, got 0.1: write drmdp.Wasserstein(0.1)"
    )


@both
@pytest.mark.parametrize("ambiguity", [None, True, "l2", np.ones(3), MODEL, Wasserstein], ids=str)
def test_nothing_else_is_a_ambiguity(call, ambiguity):
    with pytest.raises(
        InputError, match=r"ambiguity: expected a set such as drmdp\.Wasserstein, got "
    ):
        call(MODEL, ambiguity)


@both
def test_the_model_comes_first(call):
    with pytest.raises(
        InputError, match="the model comes first, and these are the other way round"
    ):
        call(BALL, MODEL)


@both
def test_kernels_are_no_model(call):
    with pytest.raises(InputError) as error:
        call(MODEL.kernels, BALL)
    assert str(error.value) == (
        "model: expected a drmdp.Model, got ndarray of shape (2, 4, 2, 4): make one with drmdp.Model(kernels, costs=…, discount=…)"
    )


TAKE_A_MODEL = {
    "under": lambda m: policies.under(m, [0] * 4, [0]),
    "visits": lambda m: policies.visits(m, [0] * 4),
    "bent": lambda m: policies.bent(m, None),
    "simulate": lambda m: drmdp.simulate(m, [0] * 4),
    "write": lambda m: drmdp.write(m, "m.npz"),
    "saturation": lambda m: BALL.saturation(m),
    "radii": lambda m: BALL.radii(m),
}


@pytest.mark.parametrize("call", TAKE_A_MODEL.values(), ids=TAKE_A_MODEL)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("m.npz", r"got 'm\.npz': read it with drmdp\.read\('m\.npz'\)"),
        ([[1.0]], "got a list: make one with drmdp"),
        (BALL, "got a Wasserstein$"),
        (SOLUTION, "got a Solution$"),
        (3, "got 3$"),
        (None, "got None$"),
    ],
    ids=["path", "list", "ambiguity", "solution", "number", "none"],
)
def test_other_things_are_no_model(call, given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"model: expected a drmdp\.Model, " + message):
        call(given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "draw", [plot.policy, plot.values, plot.kernel, plot.transitions, plot.convergence]
)
def test_a_picture_of_a_solution_needs_one(draw):
    for given, what in ((MODEL, "a Model"), (SOLUTION.policy, r"ndarray of shape \(4, 2\)")):
        with pytest.raises(InputError, match=rf"solution: expected a drmdp\.Solution, got {what}"):
            draw(given)


def test_pictures_and_choices_of_paths_need_one():
    for call in (plot.radius, radius.critical, lambda given: radius.choose(given, MODEL)):
        with pytest.raises(InputError, match=r"expected a drmdp\.radius\.path, got a Model"):
            call(MODEL)
    with pytest.raises(
        InputError,
        match=r"result: expected what drmdp\.radius\.choose or cross_validate returned, got a RadiusPath",
    ):
        plot.choice(radius.path(MODEL, BALL, [0, 1]))


def test_a_solution_is_needed_where_its_bounds_are():
    for call in (policies.deterministic, lambda m, b, x: policies.near_optimal(m, b, x, 1)):
        with pytest.raises(
            InputError, match=r"solution: expected a drmdp\.Solution, got ndarray of shape \(4, 2\)"
        ):
            call(MODEL, BALL, SOLUTION.policy)


@pytest.mark.parametrize("limit", [2.5, np.float64(0.5), "3"])
def test_iterations_are_whole(limit):
    with pytest.raises(InputError, match="max_iters: expected a"):
        drmdp.solve(MODEL, BALL, max_iters=limit)


# ---------------------------------------------------------------------- results as policies


def test_a_result_stands_for_its_policy():
    x = SOLUTION.policy
    np.testing.assert_array_equal(MODEL.policy(SOLUTION), x)
    for given in (
        SOLUTION,
        radius.path(MODEL, BALL, [0.1]).points[0],
        policies.deterministic(MODEL, BALL, SOLUTION),
    ):
        np.testing.assert_array_equal(
            drmdp.evaluate(MODEL, BALL, given).value,
            drmdp.evaluate(MODEL, BALL, given.policy).value,
        )
    np.testing.assert_array_equal(
        policies.under(MODEL, SOLUTION, [0]), policies.under(MODEL, x, [0])
    )
    np.testing.assert_array_equal(policies.visits(MODEL, SOLUTION), policies.visits(MODEL, x))
    np.testing.assert_array_equal(
        policies.values(MODEL, BALL, SOLUTION).mean, policies.values(MODEL, BALL, x).mean
    )
    np.testing.assert_array_equal(
        drmdp.simulate(MODEL, SOLUTION).states, drmdp.simulate(MODEL, x).states
    )
    assert policies.bent(MODEL, SOLUTION.kernel, policy=SOLUTION) == policies.bent(
        MODEL, SOLUTION.kernel, policy=x
    )
    assert (
        drmdp.certify(MODEL, BALL, SOLUTION).gap
        == drmdp.certify(MODEL, BALL, x, SOLUTION.kernel).gap
    )


def test_a_plan_is_simulated_stage_by_stage():
    plan = drmdp.finite_horizon(MODEL, BALL, 5)
    paths = drmdp.simulate(MODEL, plan, steps=5)
    np.testing.assert_array_equal(paths.states, drmdp.simulate(MODEL, plan.policy, steps=5).states)
    np.testing.assert_array_equal(paths.states, drmdp.simulate(MODEL, plan).states)
    with pytest.raises(InputError, match="it has a policy for each of 5 stages: give one of them"):
        drmdp.certify(MODEL, BALL, plan, SOLUTION.kernel)


def test_the_backend_is_an_option_of_solve_too():
    found = drmdp.solve(MODEL, BALL, backend="conic")
    assert found.settings["backend"] == "conic"
    np.testing.assert_allclose(found.value, SOLUTION.value, rtol=1e-5)
    with pytest.raises(InputError, match="unknown backend 'fast'; known: "):
        drmdp.solve(MODEL, BALL, backend="fast")


def test_a_discount_is_refused_before_a_log_is_read():
    pytest.importorskip("polars")
    with pytest.raises(InputError, match=r"discount: expected a number in \[0, 1\], got 2"):
        drmdp.estimate("nowhere.csv", discount=2, cost="cost")


def test_a_result_of_another_model_is_refused():
    other = drmdp.solve(drmdp.instances.machine(5), BALL)
    with pytest.raises(
        InputError, match="policy: the Solution is for other states than the model's"
    ):
        drmdp.evaluate(MODEL, BALL, other)


def test_without_a_kernel_there_is_no_certificate():
    with pytest.raises(
        InputError, match="kernel: give the kernel that shows how good the policy is"
    ):
        drmdp.certify(MODEL, BALL, SOLUTION.policy)


# ---------------------------------------------------------------------- too much


def test_too_many_stages_are_refused_at_once():
    with pytest.raises(
        InputError, match="stages: expected a whole number from 1 to 1,000,000, got 100000000"
    ):
        drmdp.finite_horizon(MODEL, BALL, 10**8)


def test_what_does_not_fit_says_how_much_was_wanted(monkeypatch):
    monkeypatch.setattr("drmdp.io.files.memory_limit", lambda: 10**6)
    with pytest.raises(
        InputError,
        match=r"100,000 stages × 4 states × 2 actions need 16 MB of memory: this machine has 2 MB",
    ):
        drmdp.finite_horizon(MODEL, BALL, 10**5)
    with pytest.raises(
        InputError,
        match=r"1,000 states × 1,000 actions × 1 kernel × 200 next states need 6\.4 GB of memory",
    ):
        drmdp.instances.garnet(1000, 1000)


def test_the_number_of_folds_is_said_if_there_is_one_only():
    with pytest.raises(InputError, match="folds: expected a whole number that is 2, got 3"):
        radius.cross_validate(MODEL, BALL, [0], folds=3)


# ---------------------------------------------------------------------- the command line


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(MODEL, "m.npz")
    kernels = np.array([[[0.999, 0.0]], [[0.5, 0.5]]])
    np.savez("rounded.npz", kernels=kernels, costs=[0.0, 1.0], discount=0.9)
    y = np.array([[[1.0, 0]], [[0.5, 0.5]]])
    drmdp.write(drmdp.Model(y, costs=[[[1, np.nan]], [[1, 1]]], discount=0.5), "unknown.npz")
    with open("one.csv", "w") as stream:
        stream.write("idstatefrom,idaction,idstateto,probability,reward\n1,1,1,1,0\n")

    def call(words):
        result = CliRunner().invoke(main, words.split())
        assert result.exit_code == 2, result.output
        return result.stderr

    return call


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sweep m.npz --folds 3", "--folds: expected a whole number that is 2, got 3"),
        ("sweep m.npz --folds 2 --by median", '--by: expected "mean", "worst" or a level'),
        ("sweep m.npz --radii 1", "--radii: expected from 2 to 10,000 radii, or a list, got 1"),
        ("sweep m.npz --radii 0,-1", "--radii must be finite and not negative, got -1.0"),
        ("sweep m.npz --held-out rounded.npz", "rounded.npz: kernels: "),
        (
            "solve rounded.npz --radius 0",
            "sums to 0.999, not 1; drmdp convert --normalize scales rows to 1",
        ),
        ("convert rounded.npz x.npz", "sums to 0.999, not 1; --normalize scales rows to 1"),
        (
            "solve unknown.npz --radius 1 --support all",
            "with --support all nature may use them: give every cost as an",
        ),
        ("solve unknown.npz --radius 1 --support all", "or take --support observed"),
        ("solve m.npz --radius -1", "--radius must be finite and not negative"),
        ("solve m.npz --radius 1 --tol -1", "--tol must be finite and not negative"),
        (
            "solve m.npz --radius 1 --max-iters -1",
            "--max-iters: expected a whole number of at least 0, got -1",
        ),
        (
            "solve m.npz --radius 1 --threads 0",
            "--threads (DRMDP_THREADS in the environment) is a whole number",
        ),
        (
            "solve m.npz --radius 1 --metric l9",
            "'--metric': 'l9' is not one of 'l1', 'l2', 'linf', 'transport'",
        ),
        (
            "solve m.npz --radius 1 --support none",
            "'--support': 'none' is not one of 'observed', 'state', 'all'",
        ),
        ("convert one.csv x.npz --discount .9", "is the file 1-based (--base 1)?"),
        ("solve one.csv --radius 1 --discount .9", "is the file 1-based (drmdp convert --base 1)?"),
        ("convert one.csv x.npz --base 2", "'--base': 2 is not in the range 0<=x<=1"),
        (
            "horizon m.npz --radius 1 --stages 100000000",
            "--stages: expected a whole number from 1 to 1,000,000",
        ),
        (
            "instance garnet --states 100000 --out x.npz",
            "100,000 states × 100,000 actions × 1 kernel × 20,000 next states need 6.4e+03 TB",
        ),
    ],
)
def test_messages_speak_of_options(run, words, message):
    assert message in run(words)


def test_words_in_quotation_marks_are_names_not_options():
    assert (
        spoken("no column 'held_out' for 'by=3'", sweep, convert)
        == "no column 'held_out' for 'by=3'"
    )
    assert (
        spoken("held_out: a model with other states", sweep, convert)
        == "--held-out: a model with other states"
    )
    assert spoken("by='worst' needs held_out", sweep, convert) == "--by worst needs --held-out"
    assert spoken("m.npz: radii of by_column", sweep, convert) == "m.npz: radii of by_column"
    assert spoken("anything: radii=3", None, convert) == "anything: radii=3"


def test_memory_that_is_refused_says_how_much(run, monkeypatch):
    def fail(*given, **settings):
        raise MemoryError("Unable to allocate 74.5 GiB for an array")

    monkeypatch.setattr(drmdp.formats, "read", fail)
    assert (
        run("solve m.npz --radius 1")
        == "drmdp: error: not enough memory: Unable to allocate 74.5 GiB for an array\n"
    )


@pytest.mark.parametrize("verb", ["solve", "evaluate", "inspect", "simulate", "horizon", "sweep"])
def test_the_help_explains_the_tolerance_before_it_says_the_same(verb):
    words = CliRunner().invoke(main, [verb, "--help"]).stdout
    assert words.index("--rtol FLOAT") < words.index("--tol FLOAT")


def test_what_names_no_file_is_refused():
    calls = (
        drmdp.read,
        lambda path: drmdp.write(MODEL, path),
        drmdp.Solution.load,
        SOLUTION.save,
        SOLUTION.report,
    )
    for call in calls:
        for path in (None, 5, b"x.npz"):
            with pytest.raises(InputError, match="path: expected the name of a file, got "):
                call(path)


def test_a_callback_is_a_function():
    found = radius.path(MODEL, BALL, 2)
    for call in (
        lambda: drmdp.solve(MODEL, BALL, callback=5),
        lambda: drmdp.finite_horizon(MODEL, BALL, 2, callback=5),
        lambda: radius.path(MODEL, BALL, 2, callback=5),
        lambda: radius.critical(found, callback=5),
        lambda: radius.cross_validate(MODEL, BALL, [0], callback=5),
    ):
        with pytest.raises(InputError, match="callback: expected a function, got 5"):
            call()


def test_a_metric_is_no_radius_and_a_kernel_no_plan():
    with pytest.raises(
        InputError, match=r"radius: expected a number or shape .*, and before the metric, got 'l2'"
    ):
        Wasserstein("l2", 0.1)
    with pytest.raises(InputError, match=r"got \(4, 2, 4\)$"):
        drmdp.certify(MODEL, BALL, SOLUTION.kernel, SOLUTION.policy)


def test_a_log_is_no_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("machine,month,state,action\nA,1,good,run\n")
    drmdp.write(MODEL, "model.npz")
    for args, message in (
        (
            ["log.csv"],
            "log.csv: line 1: no column of a model: there are 'machine', 'month', 'state', 'action', and a model has",
        ),
        (["log.csv"], "; drmdp estimate makes a model of a log"),
        (
            ["model.npz", "--discount", "0.5"],
            "model.npz: --discount is not for this format, which holds a discount",
        ),
    ):
        result = CliRunner().invoke(main, ["solve", *args, "--radius", "0.1"])
        assert result.exit_code == 2
        assert message in result.stderr
