"""The command line: what it prints and writes, its exit codes, and one line for every mistake."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances
from drmdp.cli import main
from drmdp.cli.show import plain
from drmdp.sets import registry


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a directory with models, a solution of one, and a policy."""
    folder = tmp_path_factory.mktemp("cli")
    machine = instances.perturb(instances.machine(5), 3)
    drmdp.write(machine, folder / "machine.npz")
    drmdp.write(machine, folder / "machine.drmdp")
    drmdp.write(instances.forest(4), folder / "forest.npz")
    drmdp.write(instances.garnet(15, 2), folder / "garnet.npz")
    drmdp.solve(machine, drmdp.Wasserstein(0.3)).save(folder / "machine-solution.npz")
    policy = {
        "1": "no repair",
        "2": "no repair",
        "3": {"repair": 0.75, "no repair": 0.25},
        "R1": "repair",
        "R2": "repair",
    }
    (folder / "machine.json").write_text(json.dumps(policy))
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    """Run a command in the directory; it must end by itself."""
    monkeypatch.chdir(folder)

    def run(*args):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return run


def document(result):
    """Parse the only thing on standard output; NaN and Infinity are not JSON."""

    def refuse(name):
        raise AssertionError(f"{name} in JSON")

    return json.loads(result.stdout, parse_constant=refuse)


# ---------------------------------------------------------------------- the group


def test_help_and_version(run):
    for args in ((), ("--help",), ("-h",)):
        result = run(*args)
        assert result.exit_code == 0
        for verb in ("instance", "solve", "evaluate"):
            assert f"\n  {verb} " in result.stdout
    assert run("--version").stdout == f"drmdp {drmdp.__version__}\n"
    for verb in ("instance", "solve", "evaluate"):
        result = run(verb, "--help")
        assert result.exit_code == 0
        assert result.stdout.startswith(f"Usage: drmdp {verb} [OPTIONS]")


# ---------------------------------------------------------------------- instance


@pytest.mark.parametrize("suffix", ["npz", "drmdp"])
@pytest.mark.parametrize(
    ("args", "make"),
    [
        ("garnet --states 6", lambda: instances.garnet(6, 6)),
        (
            "garnet --states 6 --actions 2 --branching 3 --seed 4 --sparse",
            lambda: instances.garnet(6, 2, branching=3, seed=4, sparse=True),
        ),
        ("garnet --states 6 --rewards", lambda: instances.garnet(6, 6, rewards=True)),
        (
            "garnet --states 6 --branching 1.0 --discount 0.5",
            lambda: instances.garnet(6, 6, branching=1.0, discount=0.5),
        ),
        (
            "garnet --states 6 --branching 1 --kernels 2 --seed 3",
            lambda: instances.perturb(instances.garnet(6, 6, branching=1, seed=3), 2, seed=3),
        ),
        ("machine --states 6 --discount 0", lambda: instances.machine(6, discount=0)),
        (
            "machine --states 6 --kernels 4 --seed 2",
            lambda: instances.perturb(instances.machine(6), 4, seed=2),
        ),
        ("forest --states 6 --kernels 2", lambda: instances.perturb(instances.forest(6), 2)),
        ("ring --states 6 --kernels 3 --seed 5", lambda: instances.ring(6, 3, seed=5)),
        ("cycle --states 6", lambda: instances.cycle(6)),
        ("grid --states 9 --actions 2 --kernels 2", lambda: instances.grid(9, 2, n_actions=2)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_instances_are_those_of_the_library(args, make, suffix, run, tmp_path):
    path = tmp_path / f"model.{suffix}"
    result = run("instance", *args.split(), "--out", path)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith(f"written to {path}\n")
    assert drmdp.read(path) == make()
    assert drmdp.read(path).is_sparse == ("--sparse" in args)


def test_a_discount_that_may_be_a_rate_is_asked_back(run, tmp_path):
    made = "instance", "machine", "--states", 5, "--out", tmp_path / "m.npz", "--discount"
    assert "3 % interest a step is 0.970874" in run(*made, 0.03).stderr
    assert "interest" not in run(*made, 0.9).stderr


def test_every_family_can_be_asked_for(run, tmp_path):
    for family in instances.FAMILIES:
        result = run(
            "instance",
            family,
            "--states",
            9,
            "--kernels",
            2,
            "--out",
            tmp_path / f"{family}.npz",
            "--json",
        )
        model = drmdp.read(tmp_path / f"{family}.npz")
        assert model.n_kernels == 2
        assert document(result)["fingerprint"] == model.fingerprint


# ---------------------------------------------------------------------- solve


def test_solve_prints_a_summary(run, folder, tmp_path):
    result = run("solve", "machine.npz", "--radius", 0.3, "--out", tmp_path / "s.npz")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[0] == "Problem  5 states × 2 actions × 3 kernels, costs, discount 0.8"
    assert lines[1] == "Set      radius 0.3, metric l2, order 2, support observed"
    assert lines[2] == "Status   solved: the certified gap is within the tolerance"
    assert max(map(len, result.stdout.splitlines())) <= 80
    found, expected = (
        drmdp.Solution.load(tmp_path / "s.npz"),
        drmdp.Solution.load(folder / "machine-solution.npz"),
    )
    np.testing.assert_array_equal(found.policy, expected.policy)
    np.testing.assert_array_equal(found.value, expected.value)
    for state, value in zip(found.states, found.value, strict=True):
        row = next(line for line in lines if line.startswith(f"{state}  "))
        assert f"{value:.6g}" in row
    assert "more" not in result.stdout


def test_the_directory_gives_the_same_answer(run):
    one, two = (
        document(run("solve", f"machine.{s}", "--radius", 0.3, "--json")) for s in ("npz", "drmdp")
    )
    assert one["value"] == two["value"]
    assert one["fingerprint"] == two["fingerprint"]


def test_long_tables_are_cut(run):
    result = run("solve", "garnet.npz", "--radius", 0.1)
    assert result.exit_code == 0
    assert result.stdout.endswith("… 3 more\n")
    assert len([line for line in result.stdout.splitlines() if line.strip()[:1].isdigit()]) == 12


def test_rewards_have_their_own_words_and_bound(run):
    result = run("solve", "forest.npz", "--radius", 0.2, "--max-iters", 0)
    solution = drmdp.solve(instances.forest(4), drmdp.Wasserstein(0.2), max_iters=0)
    row = next(line for line in result.stdout.splitlines() if "age 4" in line)
    assert row.split()[-2:] == [f"{solution.lower[3]:.6g}", f"{solution.upper[3]:.6g}"]
    assert solution.gap > 0.01
    assert "worst-case reward optimum at most" in " ".join(result.stdout.split())


def test_odd_names_are_printed_as_they_are(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    kernels = np.full((3, 2, 3), 1 / 3)
    names = {
        "states": ["[red]x[/]", ":smile:", "\ud800" + "long" * 20],
        "actions": ["[bold]" + "x" * 100, "b"],
    }
    drmdp.write(
        drmdp.Model(kernels, costs=[[0.0, 1]] * 3, discount=0.5, terminal=[":smile:"], **names),
        tmp_path / "m.npz",
    )
    result = run("solve", tmp_path / "m.npz", "--radius", 0.1)
    assert result.exit_code == 0
    for text in ("[red]x[/]", ":smile:", "[bold]", "(end)"):
        assert text in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (
        document(run("solve", tmp_path / "m.npz", "--radius", 0.1, "--json"))["states"]
        == names["states"]
    )


def test_solve_json_is_the_solution(run, folder):
    result = run(
        "solve",
        "forest.npz",
        "--radius",
        0.2,
        "--metric",
        "l1",
        "--order",
        "inf",
        "--support",
        "observed",
        "--tol",
        "1e-7",
        "--method",
        "value-iteration",
        "--backend",
        "conic",
        "--json",
    )
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = document(result)
    ambiguity = drmdp.Wasserstein(0.2, "l1", np.inf, "observed")
    solution = drmdp.solve(
        instances.forest(4), ambiguity, method=drmdp.ValueIteration(backend="conic"), tol=1e-7
    )
    assert list(found) == [
        "status",
        "gap",
        "duality_gap",
        "scale",
        "seconds",
        "setup_seconds",
        "n_iters",
        "kernel_passes",
        "value",
        "lower",
        "upper",
        "policy",
        "criterion",
        "time",
        "bias",
        "settings",
        "states",
        "actions",
        "kernel_names",
        "notes",
        "fingerprint",
    ]
    for name in (
        "status",
        "gap",
        "duality_gap",
        "scale",
        "n_iters",
        "kernel_passes",
        "settings",
        "fingerprint",
    ):
        assert found[name] == getattr(solution, name)
    for name in ("value", "lower", "upper", "policy"):
        np.testing.assert_array_equal(found[name], getattr(solution, name))
    assert found["states"] == ["age 1", "age 2", "age 3", "age 4"]


def test_json_has_no_nan():
    given = {
        "a": float("nan"),
        "b": (np.inf, 1.0),
        "c": np.array([[1.0, -np.inf]]),
        "d": np.float64("nan"),
        "e": None,
    }
    assert plain(given) == {"a": None, "b": [None, 1.0], "c": [[1.0, None]], "d": None, "e": None}


@pytest.mark.parametrize(
    ("limit", "status"),
    [(("--max-iters", 0), "iteration_limit"), (("--max-seconds", 0), "time_limit")],
    ids=["iterations", "seconds"],
)
def test_a_limit_is_exit_code_3_and_the_result_is_written(limit, status, run, tmp_path):
    result = run(
        "solve", "machine.npz", "--radius", 0.3, *limit, "--json", "--out", tmp_path / "s.npz"
    )
    assert result.exit_code == 3
    assert document(result)["status"] == status
    assert drmdp.Solution.load(tmp_path / "s.npz").status == status
    plain = run("solve", "machine.npz", "--radius", 0.3, *limit)
    assert plain.exit_code == 3
    assert f"Status   {status}: " in plain.stdout


@pytest.mark.parametrize(
    "command", [("solve",), ("evaluate", "machine.json")], ids=["solve", "evaluate"]
)
def test_as_near_as_double_precision_allows_is_success_within_a_billionth(
    command, run, monkeypatch
):
    args = (command[0], "machine.npz", *command[1:], "--radius", 0.3, "--tol", 0)
    result = run(*args, "--json")
    assert (result.exit_code, document(result)["status"]) == (0, "precision_limit")
    assert 0 < document(result)["gap"] <= 1e-9 * document(result)["scale"]
    monkeypatch.setattr("drmdp.solution.results.PRECISE", 1e-20)
    assert run(*args).exit_code == 3


def test_the_tolerance_is_relative_unless_an_absolute_one_is_given(run):
    args = ("solve", "machine.npz", "--radius", 0.3, "--method", "value-iteration", "--json")
    loose, near, absolute = (
        document(run(*args, *given))
        for given in (("--rtol", 1e-2), ("--rtol", 1e-8), ("--tol", 1e-3, "--rtol", 0))
    )
    assert loose["n_iters"] < absolute["n_iters"] < near["n_iters"]
    assert (loose["settings"]["tol"], loose["settings"]["rtol"]) == (None, 1e-2)
    assert (absolute["settings"]["tol"], absolute["settings"]["rtol"]) == (1e-3, 0)
    assert all(found["status"] == "solved" for found in (loose, near, absolute))
    assert "(rtol 0.01)" in run(*args[:-1], "--rtol", 1e-2).stdout
    assert "(tol 0.001)" in run(*args[:-1], "--tol", 1e-3).stdout


def test_start_is_used(run):
    cold = document(
        run("solve", "machine.npz", "--radius", 0.3, "--method", "value-iteration", "--json")
    )
    warm = document(
        run(
            "solve",
            "machine.npz",
            "--radius",
            0.3,
            "--method",
            "value-iteration",
            "--json",
            "--start",
            "machine-solution.npz",
        )
    )
    assert warm["n_iters"] < cold["n_iters"] / 2


# ---------------------------------------------------------------------- evaluate


def test_evaluate_a_solution_and_a_json_file(run, folder):
    model, ambiguity = drmdp.read(folder / "machine.npz"), drmdp.Wasserstein(0.3, "l1", 1)
    policies = {
        "machine-solution.npz": drmdp.Solution.load(folder / "machine-solution.npz").policy,
        "machine.json": [[1, 0], [1, 0], [0.25, 0.75], [0, 1], [0, 1]],
    }
    for path, policy in policies.items():
        result = run(
            "evaluate",
            "machine.npz",
            path,
            "--radius",
            0.3,
            "--metric",
            "l1",
            "--order",
            1,
            "--json",
        )
        assert result.exit_code == 0
        found, expected = document(result), drmdp.evaluate(model, ambiguity, policy)
        for name in ("value", "lower", "upper"):
            np.testing.assert_array_equal(found[name], getattr(expected, name))
        np.testing.assert_allclose(found["policy"], policy, rtol=1e-15)
        assert found["settings"]["ambiguity"] == repr(ambiguity)
        plain = run(
            "evaluate", "machine.npz", path, "--radius", 0.3, "--metric", "l1", "--order", 1
        )
        assert plain.exit_code == 0
        assert f"{expected.value[2]:.6g}" in plain.stdout
        assert path in plain.stdout


def test_json_policies_find_integer_names(run, tmp_path):
    (tmp_path / "p.json").write_text(
        json.dumps({str(s): 1 if s % 2 else {"0": 0.5, "1": 0.5} for s in range(15)})
    )
    found = document(run("evaluate", "garnet.npz", tmp_path / "p.json", "--radius", 0, "--json"))
    assert found["policy"] == [[0, 1] if s % 2 else [0.5, 0.5] for s in range(15)]


def test_an_evaluation_that_has_no_time_is_exit_code_3(run):
    result = run(
        "evaluate", "machine.npz", "machine.json", "--radius", 0.3, "--max-seconds", 0, "--json"
    )
    assert result.exit_code == 3
    assert document(result)["status"] == "time_limit"


# ---------------------------------------------------------------------- mistakes


def mistaken(result, message):
    """Assert that a command ended with one line on standard error that holds the message."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("drmdp: error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


SOLVE = "solve machine.npz --radius 0.3"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("sovle", "No such command 'sovle'"),
        (
            "report machine.npz",
            "no command 'report': it is an option, `drmdp solve MODEL --radius … --report page.html`",
        ),
        ("--frobnicate", "No such option"),
        ("solve", "Missing argument 'MODEL'"),
        ("solve machine.npz", "Missing option '--radius'"),
        ("solve machine.npz --radius big", "'big' is not a valid float"),
        ("solve machine.npz --radius -1", "radius must be finite and not negative, got -1.0"),
        ("solve machine.npz --radius nan", "radius must be finite"),
        ("solve nowhere.npz --radius 1", "nowhere.npz: No such file or directory"),
        ("solve nowhere.drmdp --radius 1", "nowhere.drmdp: no such directory"),
        ("solve . --radius 1", ".: model.json: missing"),
        (
            "solve machine.json --radius 1",
            "machine.json: unknown suffix '.json'; known: .npz, .drmdp, .csv, .tra",
        ),
        (
            "solve machine-solution.npz --radius 1",
            "machine-solution.npz: not a readable .npz file: it is a saved solution",
        ),
        (
            f"{SOLVE} --metric l3",
            "Invalid value for '--metric': 'l3' is not one of 'l1', 'l2', 'linf', 'transport'",
        ),
        (f"{SOLVE} --metric l1 --order 0.5", "order is a number from 1 on or inf, got 0.5"),
        (f"{SOLVE} --order two", "order is a number from 1 on or inf, got 'two'"),
        (
            f"{SOLVE} --support some",
            "Invalid value for '--support': 'some' is not one of 'observed', 'state', 'all'",
        ),
        (
            f"{SOLVE} --method newton",
            "Invalid value for '--method': 'newton' is not one of 'auto', 'policy-iteration'",
        ),
        (
            f"{SOLVE} --backend gurobi",
            "Invalid value for '--backend': 'gurobi' is not one of 'exact', 'conic'",
        ),
        (f"{SOLVE} --tol -1", "tol"),
        (f"{SOLVE} --max-iters -1", "--max-iters: expected a whole number of at least 0, got -1"),
        (f"{SOLVE} --max-seconds nan", "--max-seconds must not be negative"),
        (f"{SOLVE} --start nowhere.npz", "nowhere.npz: No such file or directory"),
        (f"{SOLVE} --start machine.npz", "machine.npz: not a saved solution"),
        (
            "solve garnet.npz --radius 1 --start machine-solution.npz",
            "expected shape (15,), got (5,)",
        ),
        (
            f"{SOLVE} --out nowhere/s.npz",
            "nowhere/s.npz: cannot be written: nowhere: No such file or directory",
        ),
        (f"{SOLVE} --out machine.npz/s.npz", "machine.npz/s.npz: cannot be written"),
        (
            f"{SOLVE} --out machine.txt",
            "results are written as .npz, tables as .csv, .xlsx or .parquet, documents as .json",
        ),
        (
            f"{SOLVE} --out ./machine.npz",
            "--out: would overwrite machine.npz (MODEL, which is read); choose another name",
        ),
        (f"{SOLVE} --frobnicate", "No such option"),
        ("evaluate machine.npz --radius 1", "Missing argument 'MODEL...'"),
        ("evaluate machine.npz nowhere.json --radius 1", "nowhere.json: No such file or directory"),
        ("evaluate machine.npz nowhere.npz --radius 1", "nowhere.npz: No such file or directory"),
        (
            "evaluate machine.npz machine.drmdp --radius 1",
            "expected a saved solution (.npz, or a folder), a table (.csv, .tsv, .txt, .parquet, .xlsx) or",
        ),
        ("evaluate machine.npz forest.npz --radius 1", "forest.npz: not a saved solution"),
        (
            "evaluate forest.npz machine-solution.npz --radius 1",
            "machine-solution.npz: it is for other states",
        ),
        ("evaluate forest.npz machine.json --radius 1", "machine.json: policy: unknown state '1'"),
        ("instance", "Missing argument 'FAMILY'"),
        ("instance machine --states 5", "Missing option '--out'"),
        (
            "instance queue --states 5 --out x.npz",
            "Invalid value for 'FAMILY': 'queue' is not one of 'garnet', 'machine', 'forest'",
        ),
        (
            "instance machine --states 1 --out x.npz",
            "--states: expected a whole number of at least 4, got 1",
        ),
        ("instance machine --states 5 --actions 2 --out x.npz", "machine has no --actions"),
        ("instance machine --states 5 --branching 2 --out x.npz", "machine has no --branching"),
        ("instance machine --states 5 --rewards --out x.npz", "machine has no --rewards"),
        (
            "instance machine --states 5 --seed 2 --out x.npz",
            "machine has no --seed unless --kernels are sampled",
        ),
        (
            "instance garnet --states 5 --branching a --out x.npz",
            "'a' is neither a share such as 0.2 nor a number",
        ),
        (
            "instance garnet --states 5 --branching 6 --out x.npz",
            "branching: expected a whole number from 1 to 5",
        ),
        (
            "instance garnet --states 5 --seed -1 --out x.npz",
            "seed: expected a whole number of at least 0, got -1",
        ),
        (
            "instance garnet --states 5 --kernels 0 --out x.npz",
            "--kernels: expected a whole number of at least 1",
        ),
        (
            "instance machine --states 5 --out x.mat",
            "x.mat: unknown suffix '.mat'; known: .npz, .drmdp, .csv, .tra",
        ),
        ("instance machine --states 5 --out nowhere/x.npz", "nowhere/x.npz: cannot be written"),
        ("instance machine --states 5 --out .", ".: is a directory but not a model"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(args, message, run, folder):
    before = sorted(folder.iterdir())
    mistaken(run(*args.split()), message)
    mistaken(run(*args.split(), "--json") if args.count(" ") > 1 else run(*args.split()), message)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value"),
        (b"\xff", "codec can't decode"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1, 2]", "expected an object that maps states to actions, got list"),
        (b"{}", "policy: state '1'"),
        (b'{"1": "repair", "1": "repair"}', "'1' is given twice"),
    ],
)
def test_bad_policy_files_are_one_line_and_exit_code_2(content, message, run, tmp_path):
    (tmp_path / "p.json").write_bytes(content)
    result = run("evaluate", "machine.npz", tmp_path / "p.json", "--radius", 0.3)
    mistaken(result, message)
    assert f"{tmp_path / 'p.json'}: " in result.stderr


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("sell", "unknown action 'sell'"),
        (5, "unknown action 5"),
        (["repair"], "state '1': expected an action, or probabilities of actions, got ['repair']"),
        (None, "state '1': expected an action"),
        (True, "state '1': expected an action"),
        ({"repair": "much"}, "state '1': expected an action"),
        ({"repair": True}, "state '1': expected an action"),
        ({"repair": {"a": 1}}, "state '1': expected an action"),
        ({"repair": 10**400}, "state '1': expected an action"),
        (
            {"repair": float("nan")},
            "policy: probabilities must be finite: state '1', action 'repair' has nan",
        ),
        (
            {"repair": -0.5},
            "policy: probabilities must not be negative: state '1', action 'repair' has -0.5",
        ),
        ({"repair": 0.5}, "policy: state '1' sums to 0.5, not 1"),
        ({}, "policy: state '1' sums to 0.0, not 1"),
    ],
    ids=str,
)
def test_bad_choices_are_one_line_and_exit_code_2(choice, message, run, folder, tmp_path):
    policy = json.loads((folder / "machine.json").read_bytes()) | {"1": choice}
    (tmp_path / "p.json").write_text(json.dumps(policy))
    mistaken(run("evaluate", "machine.npz", tmp_path / "p.json", "--radius", 0.3), message)


def test_a_target_is_refused_before_any_work(run, monkeypatch):
    def work(*_, **__):
        raise AssertionError("worked before looking at --out")

    monkeypatch.setattr("drmdp.formats.read", work)
    monkeypatch.setattr("drmdp.api.solve", work)
    mistaken(
        run("solve", "machine.npz", "--radius", 0.3, "--out", "nowhere/s.npz"), "cannot be written"
    )
    monkeypatch.setitem(instances.FAMILIES, "machine", work)
    mistaken(
        run("instance", "machine", "--states", 5, "--out", "nowhere/m.npz"), "cannot be written"
    )


def test_a_disk_that_fills_up_does_not_cost_the_result(run, monkeypatch, tmp_path):
    def fail(*_):
        raise OSError(28, "No space left on device", "s.npz")

    monkeypatch.setattr(drmdp.Solution, "save", fail)
    result = run("solve", "machine.npz", "--radius", 0.3, "--out", tmp_path / "s.npz", "--json")
    assert result.exit_code == 2
    assert result.stderr == "drmdp: error: s.npz: No space left on device\n"
    assert document(result)["status"] == "solved"


def test_a_missing_extra_is_one_line(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    monkeypatch.delitem(sys.modules, "drmdp.operators.conic.cone", raising=False)
    registry.load.cache_clear()
    mistaken(
        run("solve", "machine.npz", "--radius", 0.3, "--backend", "conic"),
        "clarabel is not installed; in a clone of drmdp: pip install '.[conic]'",
    )


def test_interruptions_and_lack_of_memory_outside_the_loop_have_no_traceback(run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    def hungry(*_, **__):
        raise MemoryError

    monkeypatch.setattr("drmdp.formats.read", interrupt)
    result = run("solve", "machine.npz", "--radius", 0.3)
    assert result.exit_code == 130
    assert result.stderr.split("\n")[-2] == "drmdp: error: interrupted"
    monkeypatch.setattr("drmdp.formats.read", hungry)
    mistaken(run("solve", "machine.npz", "--radius", 0.3), "not enough memory")


# ---------------------------------------------------------------------- real processes


def process(folder, *args, stderr=subprocess.PIPE, **environment):
    """Start `python -m drmdp`, with Ctrl-C as in a terminal even if whoever runs the tests ignores
    it.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "drmdp", *map(str, args)],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        encoding="utf-8",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ("solve machine.npz --radius 0.3 --json --no-progress", 0),
        ("solve nowhere.npz --radius 0.3", 2),
        pytest.param("solve machine.npz --radius", 2, marks=pytest.mark.fuzz),
        ("solve machine.npz --radius 0.3 --max-iters 0 --json --no-progress", 3),
    ],
)
def test_exit_codes_of_a_real_process(args, code, folder):
    running = process(folder, *args.split())
    out, err = running.communicate(timeout=600)
    assert running.returncode == code
    assert "Traceback" not in err
    if code == 2:
        assert out == ""
        assert err.startswith("drmdp: error: ")
        assert err.count("\n") == 1
    else:
        assert err == ""
        json.loads(out)


def test_a_terminal_without_the_symbols_is_no_failure(folder):
    running = process(folder, *SOLVE.split(), "--no-progress", PYTHONIOENCODING="ascii")
    out, err = running.communicate(timeout=600)
    assert (running.returncode, err) == (0, "")
    assert "5 states ? 2 actions" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_a_real_process_and_keep_its_result(number, tmp_path):
    model = instances.ring(20, 3, discount=0.9999)
    drmdp.write(model, tmp_path / "ring.npz")
    slow = ("--method", "value-iteration", "--tol", "1e-9", "--backend", "conic")
    terminal, side = pty.openpty()
    running = process(
        tmp_path,
        "solve",
        "ring.npz",
        "--radius",
        0.1,
        *slow,
        "--json",
        "--out",
        "s.npz",
        stderr=side,
        TERM="xterm",
    )
    os.close(side)
    shown = b""
    while not re.search(
        rb"iteration [1-9]", shown
    ):  # the progress bar, as standard error is a terminal
        assert select.select([terminal], [], [], 600)[0]
        shown += os.read(terminal, 10_000)
    assert b"Ctrl-C" in shown
    running.send_signal(number)
    out, _ = running.communicate(timeout=600)
    os.close(terminal)
    assert running.returncode == 130
    found, saved = json.loads(out), drmdp.Solution.load(tmp_path / "s.npz")
    assert found["status"] == saved.status == "interrupted"
    assert saved.fingerprint == model.fingerprint
    assert saved.n_iters > 0
    assert np.isfinite(saved.gap)
    assert sorted(os.listdir(tmp_path)) == ["ring.npz", "s.npz"]
