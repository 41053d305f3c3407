"""What takes long says what it is doing, on standard error and nowhere else."""

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
import types

import pytest

import drmdp
from drmdp.cli import main
from drmdp.ui import clock, progress

RUN = "import sys; from drmdp.ui import progress; progress.DELAY = 0; progress.PERIOD = 0.01; "
"""First words of a program that mentions everything at once."""
LOOK = (
    RUN
    + """import contextlib
progress.PERIOD = 1e6
enter, counted = progress._Display.enter, progress.counted

def look(self, *stage):
    with self._lock:
        enter(self, *stage)
        self._update()

@contextlib.contextmanager
def each(*given):
    def then():
        step()
        with progress._display._lock:
            progress._display._update()
    with counted(*given) as step:
        yield then

progress._Display.enter, progress.counted = look, each
"""
)
"""The same, but looked at as stages begin and after each step: no clock decides what is seen."""


class Screen(io.StringIO):
    """Standard error, a terminal or not."""

    def __init__(self, terminal=False):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def screen(monkeypatch):
    """Standard error on which every stage is mentioned as soon as somebody looks."""

    def make(terminal=False):
        found = Screen(terminal)
        monkeypatch.setattr(sys, "stderr", found)
        monkeypatch.setattr(progress, "DELAY", 0.0)
        monkeypatch.setattr(progress, "PERIOD", 0.001)
        return found

    return make


def wait(screen, text):
    """Wait until a text is on the screen."""
    end = time.monotonic() + 600
    while text not in screen.getvalue():
        assert time.monotonic() < end, screen.getvalue()
        time.sleep(0.001)


def test_a_stage_is_one_line_where_there_is_no_terminal(screen):
    err = screen()
    with progress.showing(True), progress.stage("outer") as outer:
        wait(err, "drmdp: outer …\n")
        with progress.stage("inner"):
            wait(err, "drmdp: inner …\n")
        outer.text = "later"
        with progress.stage("last"):
            wait(err, "drmdp: last …\n")
    assert err.getvalue() == "drmdp: outer …\ndrmdp: inner …\ndrmdp: last …\n"


def test_what_is_short_is_not_mentioned(screen, monkeypatch):
    err = screen()
    monkeypatch.setattr(progress, "DELAY", 1e9)
    with progress.showing(True), progress.stage("short"), progress.counted("steps", 3):
        time.sleep(0.05)  # the thread looks some fifty times
    assert err.getvalue() == ""


def test_many_short_stages_in_a_long_one_are_the_long_one(screen, monkeypatch):
    err = screen()
    seconds = [0.0]
    monkeypatch.setattr(progress, "DELAY", 1.0)
    monkeypatch.setattr(clock, "now", lambda: seconds[0])
    with progress.showing(True), progress.counted("radii", 1000) as step:
        while "radii" not in err.getvalue():
            with progress.stage("iterating"):
                time.sleep(0.001)  # the thread looks
                seconds[0] += 0.1
            step()
    assert err.getvalue() == "drmdp: radii …\n"


def test_a_terminal_has_one_line_that_disappears(screen):
    err = screen(terminal=True)
    with progress.counted("radii", 4) as step:
        step()
        with progress.stage("iterating", hint="not the outermost") as own:
            own.detail = lambda: "iteration 7"
            wait(err, "[###.........] radii: 1 of 4 · iterating: iteration 7")
    lines = err.getvalue().split("\r")
    assert "\n" not in err.getvalue()
    assert lines[-1] == ""
    assert lines[-2].strip() == ""
    assert len(lines[-2]) >= max(map(len, lines[:-2]))  # nothing of it is left


def test_a_hint_comes_once_and_only_on_a_terminal(screen):
    err = screen(terminal=True)
    with progress.stage("solving", hint="Ctrl-C stops early."):
        wait(err, "solving")
    assert err.getvalue().count("Ctrl-C stops early.\n") == 1
    err = screen()
    with progress.showing(True), progress.stage("solving", hint="Ctrl-C stops early."):
        wait(err, "solving")
    assert "Ctrl-C" not in err.getvalue()


def test_names_of_files_cannot_command_a_terminal(screen):
    for terminal in (False, True):
        err = screen(terminal)
        with progress.showing(True), progress.stage("reading \x1b[2J\nfile"):
            wait(err, "reading")
        assert "\x1b" not in err.getvalue()
        assert "reading ␛[2J file" in err.getvalue()


def test_a_terminal_without_the_symbols_is_no_failure(monkeypatch, screen):
    err = screen()
    monkeypatch.setattr(Screen, "encoding", "ascii")
    with progress.showing(True), progress.stage("reading ä"):
        wait(err, "drmdp: reading ? ?\n")


def test_nobody_listens(monkeypatch, screen):
    """A closed or missing stream costs nothing."""
    for stream in (None, Screen(True)):
        screen()
        if stream is not None:
            stream.close()
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.showing(True), progress.stage("x"):
            pass
    err = screen(True)
    with progress.stage("x"):
        wait(err, "x")
        err.close()


@pytest.mark.parametrize(
    ("terminal", "notebook", "command", "wanted", "kind"),
    [
        (False, False, False, None, None),
        (False, False, False, True, "lines"),
        (False, False, True, None, "lines"),
        (False, False, True, False, None),
        (True, False, False, None, "live"),
        (True, False, True, None, "live"),
        (True, False, False, False, None),
        (False, True, False, None, "live"),
        (False, True, False, False, None),
    ],
)
def test_where_and_how_it_is_shown(screen, monkeypatch, terminal, notebook, command, wanted, kind):
    screen(terminal)
    shell = types.SimpleNamespace(kernel=1) if notebook else types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    if command:
        with progress.on_command_line(), progress.showing(wanted):
            assert progress._kind() == kind
        with progress.on_command_line():
            progress.choose(wanted)
            assert progress._kind() == kind
    else:
        with progress.showing(wanted):
            assert progress._kind() == kind
    assert progress._kind() == ("live" if terminal or notebook else None)


def test_nothing_runs_where_nothing_is_shown(screen):
    screen()
    before = threading.active_count()
    with progress.stage("silent"):
        assert threading.active_count() == before
        assert not progress._display._stages


def test_stages_of_several_threads_do_not_mix_up(screen):
    err = screen()
    names = [f"thread {k}" for k in range(8)]
    gate = threading.Barrier(len(names))

    def work(name):
        with progress.showing(True), progress.stage(name):
            gate.wait(600)
            wait(err, "thread")
            gate.wait(600)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert not progress._display._stages
    assert all(
        line in {f"drmdp: {name} …" for name in names} for line in err.getvalue().splitlines()
    )


# ---------------------------------------------------------------------- in earnest


def on_terminal(folder, *args):
    """Run a command with a terminal for standard error; its exit code, standard output, and what
    the terminal saw.
    """
    terminal, side = pty.openpty()
    script = LOOK + "from drmdp.cli import main; main()"
    with open(folder / "out", "w+b") as out:
        running = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, args)], cwd=folder, stdout=out, stderr=side
        )
    os.close(side)
    shown = b""
    while True:
        assert select.select([terminal], [], [], 600)[0]
        try:
            part = os.read(terminal, 10_000)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    return running.wait(600), (folder / "out").read_text(), shown.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("progress")
    model = drmdp.instances.ring(60, 4, discount=0.999)
    drmdp.write(model, where / "ring.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.1, support="all")).save(where / "solution.npz")
    return where


COMMANDS = {
    "solve": (
        "solve ring.npz --radius 0.1 --method value-iteration --rtol 1e-4",
        "iterating: iteration [1-9]",
    ),
    "evaluate": (
        "evaluate ring.npz solution.npz --radius 0.1",
        "evaluating the policy: iteration [1-9]",
    ),
    "sweep": (
        "sweep ring.npz --radii 9 --folds 2 --critical",
        "radii: 9 of 9[\\s\\S]*folds: 2 of 2[\\s\\S]*critical radii: [1-9]",
    ),
    "horizon": ("horizon ring.npz --radius 0.1 --stages 400", "stages: 399 of 400"),
    "inspect": (
        "inspect ring.npz --radius 0.1",
        "looking at single actions[\\s\\S]*rounding the policy[\\s\\S]*comparing kernels",
    ),
    "simulate": ("simulate ring.npz solution.npz -n 20000 --steps 100", "simulating"),
}


OFTEN = ("solve", "sweep")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in OFTEN else pytest.mark.fuzz) for name in COMMANDS],
)
def test_a_terminal_sees_commands_move_and_standard_output_stays_clean(folder, name):
    command, pattern = COMMANDS[name]
    code, out, shown = on_terminal(folder, *command.split(), "--json")
    assert code == 0
    json.loads(out)
    assert re.search(pattern, shown), shown[-2000:]
    assert shown.split("\r")[-1].strip() == ""
    assert "Traceback" not in shown


def test_no_progress_is_silent(folder):
    code, out, shown = on_terminal(folder, *COMMANDS["solve"][0].split(), "--json", "--no-progress")
    assert (code, shown) == (0, "")
    json.loads(out)


def test_without_a_terminal_a_command_says_what_takes_long(folder):
    script = RUN + "from drmdp.cli import main; main()"
    command = COMMANDS["solve"][0].split()
    found = subprocess.run(
        [sys.executable, "-c", script, *command, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0
    json.loads(found.stdout)
    lines = found.stderr.splitlines()
    assert all(re.fullmatch("drmdp: .*…", line) for line in lines), lines
    assert len(lines) == len(set(lines))
    assert "drmdp: iterating …" in lines


def test_python_is_silent_without_a_terminal(folder):
    script = RUN + (
        "import drmdp; model = drmdp.read('ring.npz'); "
        "asked = model, drmdp.Wasserstein(0.1, support='all'), 'value-iteration'; "
        "drmdp.solve(*asked, rtol=1e-4); print('asked', file=sys.stderr); drmdp.solve(*asked, rtol=1e-4, progress=True)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    silent, told = found.stderr.split("asked\n")
    assert (found.stdout, silent) == ("", "")
    assert re.fullmatch("(drmdp: .*…\n)+", told)


def test_the_line_moves_in_evaluations_that_have_no_record(monkeypatch):
    """What is shown counts sweeps, whether they are checked or not."""
    shown = []

    class Slow(drmdp.GaussSeidel):
        def step(self, problem, state):
            found = super().step(problem, state)
            (own,) = [stage for stage in progress._display._stages if stage.text == "iterating"]
            shown.append(own.detail())
            return found

    monkeypatch.setattr(sys, "stderr", Screen(True))
    monkeypatch.setattr(progress, "DELAY", 1e9)
    drmdp.solve(
        drmdp.instances.machine(5),
        drmdp.Wasserstein(0.3, support="all"),
        Slow(check_every=10),
        max_iters=8,
    )
    counts = [int(re.search(r"([0-9]+) sweeps", text)[1]) for text in shown]
    assert counts == list(range(2, 10))


def test_every_command_takes_the_option():
    for name, command in main.commands.items():
        names = [option.name for option in command.params]
        assert "progress" in names, name
