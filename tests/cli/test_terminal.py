"""What strangers put into files never controls a terminal: names, notes, members of archives, cells
of tables.
"""

import ast
import json
import os
import pty
import re
import select
import subprocess
import sys
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest

import drmdp
from drmdp.errors import clean

HOSTILE = {
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J\x1b[H",
    "clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "up": "\x1b[5A\x1b[K",
    "one byte": "\x9b2J",
    "back": "ok\b\b\r",
    "bell": "\x07\x0b\x0c\x7f\x00x",
    "turned": "\u202egnp.exe",
}
OWN = re.compile(r"\x1b\[[0-9;]*m|\r")
"""What our own output does to a terminal: colours, weights, and a line of progress that is written
again.
"""


def harmful(text):
    """Control characters and marks of direction in what was shown, styles and line ends apart."""
    rest = OWN.sub("", text).replace("\n", "")
    wrong = (
        k
        for k, c in enumerate(rest)
        if unicodedata.category(c) == "Cc" or c == HOSTILE["turned"][0]
    )
    return sorted({rest[max(k - 20, 0) : k + 20] for k in wrong})


def test_every_control_character_has_a_picture():
    every = "".join(map(chr, range(0x110000)))
    left = {
        c
        for c in clean(every)
        if unicodedata.category(c) == "Cc"
        or unicodedata.bidirectional(c)
        in ["LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"]
    }
    assert left == {"\n"}
    assert clean("a\x1b[2Jb\x7f\x9b") == "a␛[2Jb␡\ufffd"
    assert clean("ünï — “x” 日本 😀\n") == "ünï — “x” 日本 😀\n"


def test_errors_and_notices_are_clean_in_python_too():
    for kind in (drmdp.InputError, drmdp.Notice):
        for text in HOSTILE.values():
            assert not harmful(str(kind(text)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make files whose every text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = list(HOSTILE.values())
    S = len(texts)
    kernels = np.random.default_rng(0).dirichlet(np.ones(S), (2, S, 2))
    model = drmdp.Model(
        kernels,
        costs=np.arange(2.0 * S).reshape(S, 2),
        discount=0.9,
        states=texts,
        actions=texts[:2],
        notes=texts,
        kernel_names=texts[2:4],
    )
    drmdp.write(model, folder / "m.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.1)).save(folder / "s.npz")
    with zipfile.ZipFile(folder / "members.npz", "w") as archive:
        for k, text in enumerate(texts):
            archive.writestr(f"{text}{k}.npy", b"x")
    np.savez(
        folder / "twice.npz",
        kernels=kernels,
        costs=np.zeros(S),
        discount=0.5,
        states=np.array(texts[:1] * S),
    )
    cells = "".join(f'"{a.replace(chr(13), "").replace(chr(0), "")}",b,c,1\n' for a in texts)
    (folder / "log.csv").write_text("state,action,next_state,cost\n" + cells)
    (folder / "policy.json").write_text(
        '{"' + texts[0].replace("\x1b", "\\u001b").replace("\x07", "\\u0007") + '": 5}'
    )
    (folder / (HOSTILE["title"] + ".npz")).write_bytes(b"")
    return folder


COMMANDS = [
    ["solve", "m.npz", "--radius", ".1"],
    ["evaluate", "m.npz", "s.npz", "--radius", ".1"],
    ["inspect", "m.npz", "--radius", ".1"],
    ["horizon", "m.npz", "--radius", ".1", "--stages", "2"],
    ["simulate", "m.npz", "s.npz", "-n", "2", "--steps", "2"],
    ["simulate", "m.npz", "s.npz", "--start", HOSTILE["clear"] + "?"],
    ["sweep", "m.npz", "--radii", "0,.5", "--critical"],
    ["convert", "m.npz", "n.npz"],
    ["convert", "m.npz", "n.csv"],
    ["solve", "members.npz", "--radius", ".1"],
    ["solve", "twice.npz", "--radius", ".1"],
    ["solve", HOSTILE["title"] + ".npz", "--radius", ".1"],
    ["solve", "m.npz", "--radius", ".1", "--method", HOSTILE["clear"]],
    ["solve", "m.npz", "--radius", HOSTILE["clear"]],
    [HOSTILE["clear"]],
    ["evaluate", "m.npz", "policy.json", "--radius", ".1"],
    ["estimate", "log.csv", "--cost", "cost", "--discount", ".9", "-o", "e.npz"],
    ["estimate", "log.csv", "--cost", HOSTILE["clear"], "--discount", ".9", "-o", "e.npz"],
    ["check", "log.csv", "--cost", "cost"],
    ["solve", "s.npz", "--radius", ".1"],
]
RUNNER = """
import sys, json
from drmdp.cli import main
for k, command in enumerate(json.loads(sys.argv[1])):
    print(f"<{k}>", flush=True)
    try:
        main(command)
    except SystemExit:
        pass
    sys.stdout.flush()
"""


def test_no_command_lets_a_file_control_the_terminal(folder):
    """One process on a terminal of its own runs them all; standard output and error are that
    terminal.
    """
    terminal, side = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", RUNNER, json.dumps(COMMANDS)],
        cwd=folder,
        stdin=side,
        stdout=side,
        stderr=side,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "DRMDP_THREADS": "1"},
    )
    os.close(side)
    seen = b""
    while select.select([terminal], [], [], 600)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other side was closed
            break
        if not part:
            break
        seen += part
    running.wait(600)
    os.close(terminal)
    text = seen.decode()
    assert "Traceback" not in text
    assert all(f"<{k}>" in text for k in range(len(COMMANDS)))
    assert "␛]0;owned␇" in text
    assert "ok␈␈␍" in text
    assert not harmful(text)


def test_nothing_is_printed_past_the_place_that_cleans_it():
    """`click.echo`, consoles and tables of Rich are called in two modules only: JSON, help, and
    figures of our own apart.
    """
    allowed = {
        ("screen.py", "echo"),
        ("show.py", "echo"),
        ("__init__.py", "echo"),
        ("bench.py", "echo"),
        ("progress.py", "Console"),
        ("events.py", "Table"),
        ("_events.py", "Table"),
        ("rules.py", "Table"),  # the last three are of events
    }
    found = set()
    for path in Path(drmdp.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in ("echo", "secho", "Console", "Table") and "estimate" not in path.parts:
                    found.add((path.name, name))
    assert found <= allowed
