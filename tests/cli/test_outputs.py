"""No command writes over what it reads, nor over what lies beside it, whatever the names and
links.
"""

import json
import os
import shutil

import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances
from drmdp.cli import main

LOG = "state,action,next_state,cost\n" + "".join(
    f"{k % 3},a,{(k + 1) % 3},{k}\n" for k in range(12)
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Make a directory with one of every kind of input."""
    folder = tmp_path_factory.mktemp("inputs")
    model = instances.forest(4)
    plain = drmdp.Model(model.kernels, rewards=-model.costs, discount=0.8)
    for name in ("m.npz", "m.drmdp", "m.csv", "m.tra"):
        drmdp.write(plain, folder / name)
    (folder / "m.srew").write_text("4 1\n0 7\n")
    drmdp.solve(plain, drmdp.Wasserstein(0.1)).save(folder / "s.npz")
    for name in ("log.csv", "x.initial.csv"):
        (folder / name).write_text(LOG)
    (folder / "p.json").write_text(json.dumps(dict.fromkeys("0123", 0)))
    (folder / "costs.csv").write_text(
        "state,action,cost\n" + "".join(f"{k},a,1\n" for k in range(3))
    )
    (folder / "start.csv").write_text("idstate,probability\n0,1\n")
    (folder / "spec.json").write_text(json.dumps({"blocks": []}))
    return folder


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    """A copy of the inputs, to work in."""
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


ESTIMATE = "--cost cost --discount .9"
ATTACKS = [
    (f"estimate log.csv {ESTIMATE} -o OUT", "log.csv", "TABLE"),
    (f"estimate x.initial.csv {ESTIMATE} -o x.csv", "x.initial.csv", "TABLE"),
    ("estimate log.csv --discount .9 --costs costs.csv -o OUT", "costs.csv", "--costs"),
    ("simulate m.csv p.json -n 3 --steps 2 --out OUT", "m.csv", "MODEL"),
    ("simulate m.csv p.json -n 3 --steps 2 --out OUT", "m.initial.csv", "MODEL"),
    ("simulate m.csv p.json -n 3 --steps 2 --out OUT", "m.parameters.csv", "MODEL"),
    ("solve m.npz --radius .1 --out OUT", "m.npz", "MODEL"),
    ("reach m.npz --target 1 --radius .1 --out OUT", "m.npz", "MODEL"),
    ("solve m.csv --radius .1 --start s.npz --out OUT", "s.npz", "--start"),
    ("horizon m.npz --radius .1 --stages 2 --out OUT", "m.npz", "MODEL"),
    ("horizon m.csv --radius .1 --stages 2 --out OUT", "m.initial.csv", "MODEL"),
    ("horizon m.npz --radius .1 --stages 2 --final p.json --out OUT", "p.json", "--final"),
    ("sensitivity m.csv p.json --out OUT", "m.csv", "MODEL"),
    ("sensitivity m.csv p.json --out OUT", "m.initial.csv", "MODEL"),
    ("sensitivity m.npz p.json --out OUT", "p.json", "POLICY p.json"),
    ("sweep m.csv --radii 2 --out OUT", "m.initial.csv", "MODEL"),
    ("sweep m.npz --radii 2 --held-out m.csv --out OUT", "m.csv", "--held-out"),
    ("sweep m.npz --radii 2 --held-out m.csv --out OUT", "m.parameters.csv", "--held-out"),
    ("convert m.npz OUT", "m.npz", "SOURCE"),
    ("convert m.csv OUT", "m.csv", "SOURCE"),
    ("convert m.drmdp OUT", "m.drmdp", "SOURCE"),
    ("convert m.tra OUT --discount .8", "m.tra", "SOURCE"),
    ("convert m.csv OUT --to npz", "m.initial.csv", "SOURCE"),
    ("convert m.csv OUT --to npz", "m.parameters.csv", "SOURCE"),
    ("convert m.tra OUT --to npz --discount .8", "m.srew", "SOURCE"),
    ("convert m.tra OUT --to npz --discount .8", "m.lab", "SOURCE"),
    ("convert m.tra m.csv --initial start.csv --discount .8 --to prism", "m.tra", "SOURCE"),
    ("convert m.csv OUT --initial start.csv", "start.csv", "--initial"),
    ("convert m.csv OUT --parameters m.parameters.csv --to npz", "m.parameters.csv", "SOURCE"),
    ("convert m.drmdp OUT --to npz", "m.drmdp/model.json", "SOURCE"),
    ("convert m.drmdp OUT --to craam", "m.drmdp/data.npy", "SOURCE"),
]


LINKED = [
    (*attack, link)
    for attack in ATTACKS
    for link in ("itself", "symbolic", "hard")
    if link == "itself" or ("OUT" in attack[0] and (link, attack[1]) != ("hard", "m.drmdp"))
]


@pytest.mark.parametrize(
    ("command", "target", "role", "link"), LINKED, ids=lambda part: part.split()[0]
)
def test_an_output_over_an_input_is_refused_and_the_input_stays(
    command, target, role, link, folder
):
    out = target
    if link != "itself":
        out = f"link{os.path.splitext(target)[1]}"
        (os.symlink if link == "symbolic" else os.link)(target, out)
    before = contents(folder)
    result = CliRunner().invoke(main, command.replace("OUT", out).split())
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert "would overwrite" in result.stderr
    assert role in result.stderr
    assert "choose another name" in result.stderr
    assert contents(folder) == before


@pytest.mark.parametrize(
    "command",
    [
        "convert m.npz ok.srew --to prism",
        "convert m.npz ok.lab --to prism",
        "convert m.npz ok.trew --to prism",
        "convert m.npz ok.initial.csv",
        "solve m.npz --radius .1 --out s.txt",
        "solve m.npz --radius .1 --out s",
        "solve m.npz --radius .1 --report page.pdf",
        "simulate m.npz p.json --out t.txt",
        "reproduce --spec out/rows.jsonl --out out",
        "reproduce --spec out/tables/spec.json --out out",
    ],
)
def test_names_of_something_else_are_refused(command, folder):
    for name in ("out/rows.jsonl", "out/tables/spec.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text((folder / "spec.json").read_text())
    before = contents(folder)
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.count("\n") == 1
    assert contents(folder) == before


def test_outputs_beside_inputs_are_written(folder):
    """The check refuses what it must, and nothing else."""
    for command in (
        f"estimate log.csv {ESTIMATE} -o model.npz",
        "convert m.csv n.csv",
        "convert m.drmdp n.drmdp",
        "convert m.npz n.tra",
        "simulate m.csv p.json -n 3 --steps 2 --out t.csv",
        "solve m.npz --radius .1 --start s.npz --out s2.npz",
    ):
        result = CliRunner().invoke(main, command.split())
        assert result.exit_code == 0, result.output


def test_every_option_that_names_an_output_is_known_here():
    """A new one belongs in the table of attacks."""
    found = {(name, p.name) for name, command in main.commands.items() for p in command.params}
    words = ("out", "target", "report", "save", "write", "to", "path")
    assert {(name, p) for name, p in found if p in words} == {
        ("bench", "save"),  # appends, and only to rows: tests/lab/test_bench.py
        ("convert", "target"),
        ("estimate", "out"),
        ("evaluate", "target"),  # states
        ("horizon", "out"),
        ("horizon", "report"),
        ("instance", "out"),
        ("plot", "out"),
        ("reach", "out"),
        ("reach", "target"),
        ("redo", "out"),
        ("reproduce", "out"),
        ("sensitivity", "out"),
        ("simulate", "out"),
        ("solve", "out"),
        ("solve", "report"),
        ("sweep", "out"),
    }
