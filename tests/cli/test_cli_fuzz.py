"""Whatever an option, a file or the environment says, the command line ends with a result or with
one line.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances
from drmdp.cli import main

COMMANDS = {
    "solve": "m.npz --radius .1 --max-iters 3",
    "reach": "m.npz --target 1 --radius .1",
    "evaluate": "m.npz s.npz --radius .1",
    "inspect": "m.npz --radius .1",
    "sensitivity": "m.npz s.npz",
    "redo": "m.npz --log log.csv",
    "sweep": "m.npz --radii 2",
    "horizon": "m.npz --radius .1 --stages 2",
    "plot": "s.npz --out p.svg",
    "simulate": "m.npz s.npz -n 2 --steps 2",
    "instance": "machine --states 5 --out x.npz",
    "convert": "m.npz y.npz",
    "estimate": "log.csv --cost cost --discount .9 -o e.npz",
    "check": "log.csv --cost cost",
    "reproduce": "--no-figures --spec nowhere.json",
    "bench": "nothing",
    "resume": "nowhere",
    "verify": "nowhere.proof m.npz",
}
FEW = ["", "x", "-1", "nan", "99999999999999999999", "\udcff"]
MANY = [
    *FEW,
    "0",
    "0.5",
    "inf",
    "-inf",
    "1e308",
    "1e-320",
    "1e400",
    "9" * 5000,
    "2147483648",
    "é\x1b[2J",
    "/dev/null",
    ".",
    "nowhere/x.npz",
    "m.npz",
    "[1]",
    "{}",
    "a" * 10_000,
    "0,1,nan",
    "1,2",
    "-0",
    "1_0",
    "true",
    "None",
    "hex",
    "idna",
    "=1",
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Make a directory with one input of each kind."""
    folder = tmp_path_factory.mktemp("fuzz")
    model = instances.perturb(instances.machine(5), 3)
    drmdp.write(model, folder / "m.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.3)).save(folder / "s.npz")
    rows = "".join(f"{k % 3},a,{(k + 1) % 3},{k}\n" for k in range(12))
    (folder / "log.csv").write_text("state,action,next_state,cost\n" + rows)
    (folder / "p.json").write_text(json.dumps({str(s): model.actions[0] for s in model.states}))
    return folder


@pytest.fixture
def folder(inputs, monkeypatch):
    monkeypatch.chdir(inputs)
    return inputs


def ended(args):
    """Run a command and assert that it ended by itself, in its own words."""
    result = CliRunner().invoke(main, args)
    assert isinstance(result.exception, SystemExit | None), (args, result.exc_info)
    assert result.exit_code in (0, 2, 3, 4), (args, result.stderr)
    if result.exit_code == 2 and args[0] != "check":
        assert result.stderr.startswith(("drmdp: error: ", "drmdp: ")), args
        assert len(result.stderr) < 3000, args
    return result.exit_code


def variants(name, values):
    """Replace each argument, and add each option, of a command with odd values."""
    base, params = COMMANDS[name].split(), main.commands[name].params
    arguments = [p for p in params if p.param_type_name == "argument"]
    for param in params:
        if name == "reproduce" and param.name in (
            "scale",
            "only",
            "spec",
        ):  # these would run for minutes
            continue
        for value in values:
            if param in arguments:
                at = arguments.index(param)
                yield [name, *base[:at], value, *base[at + 1 :]]
            elif not param.is_flag:
                yield [name, *base, param.opts[-1], value]


@pytest.mark.parametrize(
    "values", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)], ids=["few", "many"]
)
@pytest.mark.parametrize("name", COMMANDS)
def test_odd_values_of_options_are_one_line(name, values, folder):
    codes = {ended(args) for args in variants(name, values)}
    assert 2 in codes


def test_every_command_is_tried():
    assert set(COMMANDS) == set(main.commands)


# ---------------------------------------------------------------------- files

JSON = [
    b"",
    b"\xff",
    b"[" * 100_000,
    b"{" * 100_000,
    b"9" * 5000,
    b'{"1": ' + b"9" * 5000 + b"}",
    b'{"1": 1, "1": 2}',
    b'{"1": 1e999}',
    b'{"1": NaN}',
    b'{"1": -Infinity}',
    b'{"1": 1' + b"0" * 400 + b"}",
    b'{"\\ud800": 1}',
    b'{"1": "\\u001b[2J"}',
    b"null",
    b"1",
    b'"x"',
    b"[]",
    b"{}",
    b'{"1": {"1": {"1": 1}}}',
    b'{"1": []}',
    b'{"": 0}',
    b"\x00",
    b'\xef\xbb\xbf{"1": 0}',
    '{"1": 0}'.encode("utf-16"),
]


@pytest.mark.parametrize("content", JSON, ids=lambda content: repr(content[:12]))
def test_odd_json_is_one_line(content, folder):
    (folder / "odd.json").write_bytes(content)
    for command in (
        "evaluate m.npz odd.json --radius .1",
        "simulate m.npz odd.json",
        "horizon m.npz --radius .1 --stages 2 --final odd.json",
        "reproduce --no-figures --spec odd.json",
    ):
        ended(command.split())


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((2, 5, 2)),
        lambda: np.zeros((2, 5, 2)).astype(">f8"),
        lambda: np.zeros((2, 5, 2), dtype=np.int8),
        lambda: np.zeros(3),
        lambda: np.array("x"),
        lambda: np.zeros((2, 5, 2), dtype=complex),
        lambda: np.full((2, 5, 2), np.nan),
        lambda: np.full((2, 5, 2), None),
        lambda: np.zeros((0, 5, 2)),
    ],
)
def test_odd_arrays_of_costs_are_one_line(make, folder):
    np.save(folder / "odd.npy", make())
    ended(["horizon", "m.npz", "--radius", ".1", "--stages", "2", "--costs", "odd.npy"])


def test_costs_that_are_no_array_are_named(folder):
    os.mkfifo(folder / "pipe.npy")
    (folder / "text.npy").write_text("hello")
    (folder / "bomb.npy").write_bytes(
        b"\x93NUMPY\x01\x00\x76\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 100000, 100000), }".ljust(117)
        + b"\n"
    )
    for name, message in (
        ("pipe", "is a pipe, not a file"),
        ("text", "expected an array in an .npy file, but it is a text"),
        ("bomb", "but the file holds 0"),
        ("../m.npz", "No such file"),
    ):
        result = CliRunner().invoke(
            main, f"horizon m.npz --radius .1 --stages 2 --costs {name}.npy".split()
        )
        assert result.exit_code == 2
        assert message in result.stderr


# ---------------------------------------------------------------------- the environment


@pytest.mark.parametrize(
    "environment",
    [
        {"DRMDP_THREADS": "1000000000"},
        {
            "COLUMNS": "-5",
            "LINES": "x",
            "TERM": "nonsense",
            "PYTHONIOENCODING": "ascii",
            "LC_ALL": "C",
            "HOME": "/nowhere",
        },
    ],
    ids=lambda environment: " ".join(f"{k}={v[:12]}" for k, v in environment.items()),
)
def test_odd_environments_are_one_line_or_do_not_matter(environment, folder):
    done = subprocess.run(
        [sys.executable, "-m", "drmdp", "solve", "m.npz", "--radius", ".1"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **environment},
        check=False,
    )
    assert "Traceback" not in done.stderr
    if "DRMDP_THREADS" in environment:
        assert done.returncode == 2
        assert done.stderr.startswith(
            "drmdp: error: --threads (DRMDP_THREADS in the environment) is a whole number from 1 to 1024"
        )
    else:
        assert done.returncode == 0, done.stderr


def test_an_odd_backend_of_matplotlib_is_not_called_a_fault_of_the_program(folder):
    command = "solve m.npz --radius .1 --report r.html"
    done = subprocess.run(
        [sys.executable, "-m", "drmdp", *command.split()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": "nonsense"},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(
        "drmdp: error: matplotlib cannot be used: Key backend: 'nonsense' is not a valid value"
    )
    assert done.stderr.count("\n") == 1


def test_a_fault_of_the_program_is_one_line_and_exit_code_1(folder, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("unforeseen\x1b[2J")

    monkeypatch.setattr("drmdp.formats.read", fail)
    monkeypatch.delenv("DRMDP_TRACEBACK", raising=False)
    result = CliRunner().invoke(main, ["solve", "m.npz", "--radius", ".1"])
    assert result.exit_code == 1
    assert result.stderr == (
        "drmdp: error: ZeroDivisionError: unforeseen␛[2J; a fault of drmdp: with DRMDP_TRACEBACK=1 it shows where\n"
    )
    monkeypatch.setenv("DRMDP_TRACEBACK", "1")
    assert isinstance(
        CliRunner().invoke(main, ["solve", "m.npz", "--radius", ".1"]).exception, ZeroDivisionError
    )


# ---------------------------------------------------------------------- names that spreadsheets run


def test_names_that_spreadsheets_run_are_written_only_on_request(folder):
    names = ["=cmd|' /C calc'!A0", "-1", "+1.5e3", "@SUM(1)", "plain"]
    model = drmdp.Model(np.full((5, 1, 5), 0.2), costs=np.zeros(5), discount=0.5, states=names)
    drmdp.write(model, "formula.npz")
    (folder / "f.json").write_text(json.dumps(dict.fromkeys(names, 0)))
    command = "simulate formula.npz f.json -n 3 --steps 5 --out t.csv"
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2
    assert (
        "a spreadsheet may run the name \"=cmd|' /C calc'!A0\" as a formula; --keep-formulas writes it"
        in result.stderr
    )
    assert not (folder / "t.csv").exists()
    assert CliRunner().invoke(main, [*command.split(), "--keep-formulas"]).exit_code == 0
    assert drmdp.estimate("t.csv", cost="cost", discount=0.5, unvisited="unavailable").n_states <= 5
    harmless = drmdp.Model(
        np.full((2, 1, 2), 0.5),
        costs=np.zeros(2),
        discount=0.5,
        states=["-1", "+2.5"],
        actions=["a-b"],
    )
    drmdp.write(harmless, "formula.npz")
    (folder / "f.json").write_text(json.dumps({"-1": "a-b", "+2.5": "a-b"}))
    assert CliRunner().invoke(main, command.split()).exit_code == 0


def test_names_that_no_text_can_hold_are_refused(folder):
    model = drmdp.Model(
        np.full((2, 2, 2), 0.5),
        rewards=np.zeros(2),
        discount=0.5,
        states=["\ud800", "b"],
        actions=["\ud801", "c"],
    )
    drmdp.write(model, "odd.npz")
    (folder / "o.json").write_text(json.dumps({"\ud800": "c", "b": "c"}))
    for command in (
        "simulate odd.npz o.json -n 3 --steps 3 --out u.csv",
        "convert odd.npz odd.tra",
    ):
        result = CliRunner().invoke(main, command.split())
        assert result.exit_code == 2
        assert "no text can hold" in result.stderr
