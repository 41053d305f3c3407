"""Options: lists of choices are those of the library, help has groups, shells complete, and nobody
needs to read to the end.
"""

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import cluster, formats, instances
from drmdp.cli import main, methods, options
from drmdp.cli.option_groups import FIRST, GROUPS
from drmdp.criteria import CRITERIA
from drmdp.estimation import rules, settings
from drmdp.estimation.log import numbers, order
from drmdp.operators.operator import ENGINES
from drmdp.sets.registry import MAKERS
from drmdp.solvers.first_order import VARIANTS
from drmdp.solvers.stopping import RULES

MODEL = instances.perturb(instances.machine(5), 3)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(MODEL, "machine.npz")
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def choices(command, name):
    (param,) = (param for param in main.commands[command].params if param.name == name)
    return list(param.type.choices)


@pytest.mark.parametrize(
    ("command", "name", "known"),
    [
        ("solve", "kind", [*MAKERS, "counts"]),
        ("solve", "method", ["auto", *drmdp.METHODS]),
        ("solve", "variant", list(VARIANTS)),
        ("solve", "stop", list(RULES)),
        ("solve", "backend", list(ENGINES)),
        ("solve", "criterion", list(CRITERIA)),
        ("solve", "cluster", list(cluster.KINDS)),
        ("instance", "family", list(instances.FAMILIES)),
        ("convert", "from_format", list(formats.FORMATS)),
        ("convert", "to_format", list(formats.FORMATS)),
        ("estimate", "gaps", list(order.GAPS)),
        ("estimate", "duplicates", list(order.DUPLICATES)),
        ("estimate", "partial", list(rules.PARTIAL)),
        ("estimate", "weights", list(settings.WEIGHTS)),
        ("estimate", "prior_on", list(settings.PRIOR_ON)),
        ("estimate", "thousands", list(numbers.GROUPS)),
    ],
)
def test_choices_are_those_of_the_library(command, name, known):
    assert sorted(choices(command, name)) == sorted(known)


REGISTRIES = {
    "method": ("solve", drmdp.METHODS),
    "kind": ("solve", MAKERS),
    "backend": ("solve", ENGINES),
    "to_format": ("convert", formats.FORMATS),
    "family": ("instance", instances.FAMILIES),
}


@pytest.mark.parametrize("name", REGISTRIES)
def test_a_line_in_a_registry_is_a_choice(name, monkeypatch):
    """Options and completion know the name."""
    verb, registry = REGISTRIES[name]
    monkeypatch.setitem(registry, "new-one", next(iter(registry.values())))
    command = main.commands[verb]
    (param,) = (param for param in command.params if param.name == name)
    context = click.Context(command)
    assert param.type.convert("New-One", param, context) == "new-one"
    assert [one.value for one in param.type.shell_complete(context, param, "new")] == ["new-one"]


def test_a_new_method_is_solved_with_and_in_the_help(run, monkeypatch):
    monkeypatch.setitem(drmdp.METHODS, "mine", drmdp.ValueIteration)
    result = run("solve", "machine.npz", "--radius", 0.1, "--method", "mine")
    assert result.exit_code == 0, result.output
    assert "mine; auto is policy iteration" in " ".join(run("solve", "--help").stdout.split())


@pytest.mark.parametrize("metric", ["l1", "l2", "linf", "transport"])
def test_every_choice_of_a_set_is_one(metric, run):
    assert choices("solve", "metric") == ["l1", "l2", "linf", "transport"]
    ground = [] if metric != "transport" else [[abs(s - t) for t in range(5)] for s in range(5)]
    more = {"ground": ground} if ground else {}
    for support in choices("solve", "support"):
        for rectangular in choices("solve", "rectangular"):
            drmdp.Wasserstein(0.1, metric, support=support, rectangular=rectangular, **more)
    for around in choices("solve", "around"):
        drmdp.Divergence(0.1, "kl", around=around)
    for nature in choices("solve", "nature"):
        drmdp.solve(MODEL, drmdp.Wasserstein(0.1), nature=nature)


@pytest.mark.parametrize(
    ("option", "first"),
    [
        ("--set", "wasserstein"),
        ("--metric", "l1"),
        ("--support", "observed"),
        ("--rectangular", "s"),
        ("--around", "mean"),
        ("--nature", "adversarial"),
        ("--method", "auto"),
        ("--variant", "paper"),
        ("--stop", "certified"),
        ("--backend", "exact"),
        ("--criterion", "discounted"),
        ("--cluster", "local"),
    ],
)
def test_what_is_no_choice_is_told_what_is(option, first, run):
    result = run("solve", "machine.npz", "--radius", 0.1, option, "else")
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': 'else' is not one of '{first}'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_choices_have_letters_of_either_case(run):
    result = run(
        "solve", "machine.npz", "--radius", 0.1, "--metric", "L1", "--method", "Value-Iteration"
    )
    assert (result.exit_code, "metric l1" in result.stdout) == (0, True)


# ---------------------------------------------------------------------- help


def sections(text):
    """Options of each group of a help text."""
    found, group = {}, None
    for line in text.splitlines():
        if line[:1].strip() and line.endswith(":"):
            group = found.setdefault(line[:-1], [])
        elif group is not None and line.startswith("  -"):
            group.append(
                next(word for word in line.replace(",", "").split() if word.startswith("--"))
            )
    return found


@pytest.mark.parametrize("verb", sorted(main.commands))
def test_help_has_every_option_once(verb, run):
    command = main.commands[verb]
    result = run(verb, "--help")
    shown = [option for group in sections(result.stdout).values() for option in group]
    hidden = (
        param for param in command.params if isinstance(param, click.Option) and not param.hidden
    )
    assert len(shown) == len(set(shown)) == len(list(hidden)) + 1  # --help
    assert set(sections(result.stdout)) <= {FIRST, *GROUPS}


def test_help_of_solve_is_in_groups(run):
    found = sections(run("solve", "--help").stdout)
    assert list(found) == [
        "Problem",
        "Ambiguity set",
        "Method",
        "First-order method",
        "Accuracy and limits",
        "Output",
        "Report",
        "Larger than memory",
    ]
    assert found["First-order method"] == ["--variant", "--epochs", "--weights"]
    assert found["Ambiguity set"][:3] == ["--set", "--radius", "--metric"]
    assert found["Output"][-1] == "--help"
    assert "--weights" in sections(run("estimate", "--help").stdout)["Kernels and costs"]
    assert "--start" in sections(run("simulate", "--help").stdout)[FIRST]  # a state there


def test_the_first_help_names_every_set_and_criterion(run):
    text = " ".join(run("--help").stdout.split())
    for name in MAKERS:
        assert name.removeprefix("reweight") in text.lower(), name
    for name in (*options.CRITERIA, "horizon", "reach", "transport", "counts"):
        assert name in text, name


# ---------------------------------------------------------------------- shells


def completed(words, tmp_path):
    """What the script for bash is told about the last word."""
    about = {
        "_DRMDP_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    code = "from drmdp.__main__ import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **about},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_bash_completes_commands_choices_and_files(tmp_path):
    env = {**os.environ, "_DRMDP_COMPLETE": "bash_source"}
    command = [sys.executable, "-c", "from drmdp.__main__ import run; run()"]
    script = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert "complete -o nosort -F _drmdp_completion drmdp" in script
    assert completed("drmdp so", tmp_path) == ["plain,solve"]
    assert completed("drmdp solve --metric li", tmp_path) == ["plain,linf"]
    assert (
        completed("drmdp solve --set reweight-c", tmp_path)
        == ["plain,reweight-cvar", "plain,reweight-chi2"][::-1]
    )
    assert completed("drmdp instance gar", tmp_path) == ["plain,garnet"]
    assert completed("drmdp solve mach", tmp_path) == ["file,mach"]
    assert completed("drmdp solve m.npz --out pl", tmp_path) == ["file,pl"]


@pytest.mark.parametrize(
    "words", ["--help", "--version", "solve --help", "solve machine.npz --radius 0.1"]
)
def test_nobody_has_to_read_to_the_end(words, run, tmp_path):
    """As with `| head`: no failure, and nothing on standard error."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "drmdp", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


# ---------------------------------------------------------------------- the paper's algorithm


def test_the_paper_s_algorithm_has_its_settings(run):
    args = (
        "solve",
        "machine.npz",
        "--radius",
        0.3,
        "--support",
        "all",
        "--method",
        "first-order",
        "--tol",
        1,
    )
    ambiguity = drmdp.Wasserstein(0.3, support="all")
    told = "--epochs", 1, "--weights", 2, "--stop", "duality-gap", "--out", "s.npz"
    result = run(*args, *told)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "solved: (DG), the gap weighted by the start distribution, is within the tol" in words
    found = drmdp.Solution.load("s.npz")
    method = drmdp.FirstOrder(epoch_power=1, weight_power=2, stop="duality-gap")
    same = drmdp.solve(MODEL, ambiguity, method, tol=1)
    assert (found.n_iters, found.duality_gap) == (same.n_iters, same.duality_gap)
    for variant in VARIANTS:
        made = methods.method_of("first-order", variant)
        assert made == drmdp.FirstOrder(**VARIANTS[variant])
    assert methods.method_of("first-order", "fast") == drmdp.FirstOrder.fast()
    assert methods.method_of("first-order") == drmdp.FirstOrder()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--variant fast", "--variant: goes with --method first-order"),
        ("--method anderson --epochs 2", "--epochs: goes with --method first-order"),
        ("--weights 1", "--weights: goes with --method first-order"),
        (
            "--method first-order --proof no.proof",
            "--proof: --method first-order leaves no sweep to prove; save its solution with --out "
            "FILE, then solve again with --start FILE and --proof",
        ),
        (
            "--method first-order --epochs -1",
            "--epochs: expected a finite number of at least 0, got -1.0",
        ),
        (
            "--method first-order --weights nan",
            "--weights: expected a finite number of at least 0, got nan",
        ),
        ("--method first-order --stop paper", "--stop: 'paper' needs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(words, message, run):
    result = run("solve", "machine.npz", "--radius", 0.1, *words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"drmdp: error: {message}")


def test_every_method_has_the_rules(run):
    result = run(
        "solve",
        "machine.npz",
        "--radius",
        0.1,
        "--method",
        "value-iteration",
        "--stop",
        "puterman",
        "--json",
    )
    assert result.exit_code in (0, 3)
    assert '"stop": "puterman"' in result.stdout
