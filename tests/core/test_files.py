"""Files are written completely or not at all: full disks, kills, interruptions, links, permissions,
readers at the same time.
"""

import contextlib
import functools
import itertools
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import drmdp
from drmdp import InputError, instances
from drmdp.io import archives, files

SUFFIXES = ("npz", "drmdp", "csv", "tra")
KERNELS = instances.forest(4).kernels
OLD = drmdp.Model(KERNELS, rewards=[0.0, 0.0, 1.0, 4.0], discount=0.8)
NEW = drmdp.Model(
    KERNELS[:, ::-1, :, ::-1], rewards=[5.0, 6.0, 7.0, 9.0], discount=0.5, initial=[0.5, 0.5, 0, 0]
)


def contents(folder):
    """Every file below a folder with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def read(path):
    return drmdp.read(path, discount=0.8 if path.suffix == ".tra" else None)


@functools.cache
def reread(which, suffix):
    """OLD or NEW as a format gives it back."""
    with tempfile.TemporaryDirectory() as folder:
        drmdp.write(NEW if which == "new" else OLD, Path(folder) / f"m.{suffix}")
        return read(Path(folder) / f"m.{suffix}")


def which(path):
    """Which model is there: old, new, none, or something else."""
    if not path.exists():
        return "none"
    found = read(path)
    return next(
        (name for name in ("old", "new") if found == reread(name, path.suffix[1:])), "mixed"
    )


# ---------------------------------------------------------------------- one file


def test_permissions_of_an_existing_file_are_kept_and_new_ones_are_usual(tmp_path):
    path = tmp_path / "x"
    files.write_whole(path, lambda stream: stream.write(b"old"))
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    for mode in (0o600, 0o640, 0o664):
        path.chmod(mode)
        files.write_whole(path, lambda stream: stream.write(b"new"))
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_owner_and_group_are_kept(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    path = tmp_path / "x"
    path.touch()
    path.chmod(0o660)
    os.chown(path, 12345, 23456)
    files.write_whole(path, lambda stream: stream.write(b"new"))
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o660)


def test_a_group_that_cannot_be_kept_gets_no_access(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.touch()
    path.chmod(0o664)

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    old = path.stat()
    other = os.stat_result((*old[:5], old.st_gid + 1, *old[6:]))
    files.keep_access(path, other)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_mask_of_the_process_is_not_touched(suffix, tmp_path, monkeypatch):
    def never(_):
        raise AssertionError("changes the mask of every thread")

    monkeypatch.setattr(os, "umask", never)
    drmdp.write(OLD, tmp_path / f"m.{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_models_are_written_through_links_and_keep_their_permissions(suffix, tmp_path):
    (tmp_path / "far").mkdir()
    drmdp.write(OLD, tmp_path / "far" / f"m.{suffix}")
    for path in sorted((tmp_path / "far").rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    for file in (tmp_path / "far").iterdir():
        (tmp_path / file.name).symlink_to(file)
    link = tmp_path / f"m.{suffix}"
    drmdp.write(NEW, link)
    assert link.is_symlink()
    assert which(link) == which(tmp_path / "far" / f"m.{suffix}") == "new"
    for path in (tmp_path / "far").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_link_to_nothing_becomes_a_file_there_and_a_loop_is_refused(tmp_path):
    (tmp_path / "link.npz").symlink_to("later.npz")
    drmdp.write(OLD, tmp_path / "link.npz")
    assert drmdp.read(tmp_path / "later.npz") == OLD
    (tmp_path / "loop.npz").symlink_to("loop.npz")
    with pytest.raises(InputError, match=r"loop.npz: is a symbolic link that leads to itself"):
        drmdp.write(OLD, tmp_path / "loop.npz")
    (tmp_path / "away.npz").symlink_to("nowhere/m.npz")
    with pytest.raises(InputError, match=r"away.npz: cannot be written: .*nowhere: No such file"):
        drmdp.write(OLD, tmp_path / "away.npz")


def test_what_must_not_be_replaced_is_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "null.npz").symlink_to("/dev/null")
    (tmp_path / "folder.npz").mkdir()
    for name, what in (("pipe", "a pipe"), ("null", "a device"), ("folder", "a directory")):
        with pytest.raises(InputError, match=f"{name}.npz: is {what}, not a file"):
            drmdp.write(OLD, tmp_path / f"{name}.npz", format="npz")
    for name in ("nul\0", "x" * 300 + ".npz"):
        with pytest.raises(InputError, match=r"no file has such a name|cannot be written"):
            drmdp.write(OLD, tmp_path / name, format="npz")
    drmdp.write(OLD, tmp_path / "kept.npz")
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name != "kept.npz"
    )  # root may write anywhere
    with pytest.raises(InputError, match=r"kept.npz: is write-protected"):
        drmdp.write(NEW, tmp_path / "kept.npz")
    drmdp.write(OLD, tmp_path / ("é" * 125 + ".npz"))


@pytest.mark.parametrize("write", ["proof", "save"])
def test_results_take_no_place_of_a_pipe(tmp_path, write):
    os.mkfifo(tmp_path / "pipe.npz")
    found = drmdp.solve(OLD, drmdp.Wasserstein(0.1))
    with pytest.raises(InputError, match=r"pipe.npz: is a pipe, not a file"):
        getattr(found, write)(tmp_path / "pipe.npz")
    assert (tmp_path / "pipe.npz").is_fifo()


def test_names_of_companions_are_not_names_of_models(tmp_path):
    for name in ("m.lab", "m.trew", "m.SREW"):
        with pytest.raises(
            InputError,
            match=f"{name}: .* is the suffix of a companion; name the file of transitions",
        ):
            drmdp.write(OLD, tmp_path / name, format="prism")
    for name in ("m.initial.csv", "m.parameters.CSV"):
        with pytest.raises(
            InputError, match=r"is the name of a companion of m\.csv, not of a model"
        ):
            drmdp.write(OLD, tmp_path / name)
    assert not os.listdir(tmp_path)


def test_two_names_of_one_file_are_refused(tmp_path):
    drmdp.write(OLD, tmp_path / "m.csv")
    (tmp_path / "m.initial.csv").unlink()
    (tmp_path / "m.initial.csv").symlink_to("m.csv")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="two of these are the same file"):
        drmdp.write(NEW, tmp_path / "m.csv")
    assert contents(tmp_path) == before


# ---------------------------------------------------------------------- interruptions and errors


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "kind", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["error", "interrupt"]
)
def test_whatever_step_fails_the_old_files_stay_and_nothing_else(
    suffix, kind, tmp_path, monkeypatch
):
    path = tmp_path / f"m.{suffix}"
    put(OLD, path)
    before = contents(tmp_path)
    monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    for fatal in range(100):
        steps = iter(range(100))

        def failing(own, steps=steps, fatal=fatal):
            def step(*args):
                if next(steps) == fatal:
                    raise kind
                return own(*args)

            return step

        with monkeypatch.context() as patch:
            for name in ("rename", "replace", "fsync"):
                patch.setattr(os, name, failing(getattr(os, name)))
            try:
                drmdp.write(NEW, path)
            except type(kind):
                assert contents(tmp_path) == before
            else:
                break
    assert fatal >= {"npz": 2, "drmdp": 7, "csv": 9, "tra": 10}[suffix]
    assert which(path) == "new"
    assert len(os.listdir(tmp_path)) == {"npz": 1, "drmdp": 1, "csv": 3, "tra": 3}[suffix]


# ---------------------------------------------------------------------- full disks


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"mount is refused: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_the_old_model_whole(suffix, small_disk):
    path = small_disk / f"m.{suffix}"
    drmdp.write(OLD, path)
    before = contents(small_disk)
    big = instances.garnet(60, 4, branching=1.0, rewards=True)
    with pytest.raises(OSError, match=rf"No space left on device: '{path.parent}/m\."):
        drmdp.write(big, path)
    assert contents(small_disk) == before
    assert which(path) == "old"


ON_A_FULL_DISK = {
    "convert big.npz disk/m.csv": "m.csv",
    "convert big.npz disk/m.tra": "m.tra",
    "solve big.npz --radius .1 --max-iters 0 --out disk/s.npz": "s.npz",
    "solve old.npz --radius .1 --report disk/r.html --report-radii 0": "r.html",
    "simulate old.npz p.json -n 2000 --steps 50 --out disk/t.csv": "t.csv",
    "estimate disk/log.csv --cost cost --discount .9 -o disk/m.csv": "m.csv",
}
COMMANDS = """
import json, sys
from drmdp.cli import main
for command in json.loads(sys.argv[1]):
    try:
        main(command.split())
    except SystemExit as end:
        print(end.code, file=sys.stderr)
"""


def test_commands_on_a_full_disk_say_so_in_a_line_and_leave_what_was_there(small_disk):
    folder = small_disk.parent
    drmdp.write(instances.garnet(60, 4, branching=1.0, rewards=True), folder / "big.npz")
    drmdp.write(OLD, folder / "old.npz")
    (folder / "p.json").write_text(json.dumps(dict.fromkeys("0123", 0)))
    for suffix in ("csv", "tra"):
        drmdp.write(OLD, small_disk / f"m.{suffix}")
    for name in ("s.npz", "r.html", "t.csv"):
        (small_disk / name).write_text("old")
    rows = "".join(f"{k % 37},a,{(k * k) % 37},{k}\n" for k in range(1000))
    (small_disk / "log.csv").write_text("state,action,next_state,cost\n" + rows)
    with contextlib.suppress(OSError), (small_disk / "full").open("wb") as stream:
        for _ in range(64):
            stream.write(bytes(1024))
            stream.flush()
    before = contents(small_disk)
    running = start(
        COMMANDS,
        json.dumps(list(ON_A_FULL_DISK)),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = running.communicate(timeout=600)
    assert contents(small_disk) == before
    assert out.count("Status ") == 2  # what was computed is not lost
    lines = [line for line in err.splitlines() if not line.endswith("…")]
    assert len(lines) == 2 * len(ON_A_FULL_DISK), err
    for said, code, name in zip(lines[::2], lines[1::2], ON_A_FULL_DISK.values(), strict=True):
        assert code == "2"
        assert said.startswith("drmdp: error: ")
        assert name.partition(".")[0] in said
        assert "No space left on device" in said


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_limit_of_file_sizes_leaves_the_old_model_whole(suffix, tmp_path):
    path = tmp_path / f"m.{suffix}"
    drmdp.write(OLD, path)
    before = contents(tmp_path)
    big = instances.garnet(60, 4, branching=1.0, rewards=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        with pytest.raises(OSError, match="File too large"):
            drmdp.write(big, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert contents(tmp_path) == before


# ---------------------------------------------------------------------- kills and readers

KILLED = """
import os, pathlib, signal, sys
import drmdp
from test_files import NEW, OLD, SUFFIXES, put, which

def kill_at(step):
    for name in ("rename", "replace", "fsync"):
        def once(*args, own=getattr(os, name)):
            nonlocal step
            step -= 1
            if step < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return own(*args)
        setattr(os, name, once)

for suffix in SUFFIXES:
    seen, killed, step = [], True, 0
    while killed:
        folder = pathlib.Path(sys.argv[1], f"{suffix}{step}")
        folder.mkdir()
        path = folder / f"m.{suffix}"
        put(OLD, path)
        before = which(path)
        child = os.fork()
        if child == 0:
            kill_at(step)
            drmdp.write(NEW, path)
            os._exit(0)
        killed = os.waitpid(child, 0)[1] != 0
        seen.append("old" if which(path) == before else which(path))
        step += 1
    print(suffix, *seen)
"""


def put(model, path):
    """Write a model; a PRISM one gets a second file of rewards, as other programs write them."""
    drmdp.write(model, path)
    if path.suffix == ".tra":
        path.with_suffix(".srew").write_text("4 1\n0 7\n")


def start(text, *args, **settings):
    """Start a process that can import this file."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    command = [sys.executable, "-c", text, *map(str, args)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, text=True, **settings)


def test_a_kill_at_any_step_leaves_the_old_model_or_the_new_one_but_no_mixture(tmp_path):
    running = start(KILLED, tmp_path, stdout=subprocess.PIPE)
    out, _ = running.communicate(timeout=600)
    assert running.returncode == 0
    for suffix, *seen in map(str.split, out.splitlines()):
        order = [state for state, _ in itertools.groupby(seen)]
        assert order == (
            ["old", "new"] if suffix in ("npz", "drmdp") else ["old", "none", "new"]
        ), (suffix, seen)
        assert len(seen) >= 3
    assert len(out.splitlines()) == len(SUFFIXES)


WRITER = """
import sys, drmdp
from test_files import NEW, OLD
for k in range(16):
    drmdp.write((NEW, OLD)[k % 2], sys.argv[1])
"""


def test_a_directory_is_there_at_every_moment_while_it_is_replaced(tmp_path):
    path = tmp_path / "m.drmdp"
    drmdp.write(OLD, path)
    for name in "ab":
        (tmp_path / name).mkdir()
    if not files._exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot exchange directories")
    running, polls = start(WRITER, path), 0
    while running.poll() is None:
        assert path.exists()
        polls += 1
    assert running.returncode == 0
    assert polls > 100
    assert which(path) == "old"
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "m.drmdp"]


# ---------------------------------------------------------------------- files that change while
# they are mapped


@pytest.fixture
def mapped(tmp_path):
    """Write and read a model whose probabilities fill some pages of their file."""
    drmdp.write(instances.perturb(instances.garnet(30, 4, seed=1), 5), tmp_path / "m.drmdp")
    return tmp_path / "m.drmdp", drmdp.read(tmp_path / "m.drmdp")


def rewrite(path, array):
    """Change an .npy file in place, as another program would, and not within the tick of the clock
    of its first writing.
    """
    with path.open("r+b") as stream:
        np.lib.format.read_magic(stream)
        np.lib.format.read_array_header_1_0(stream)
        stream.write(array.tobytes())
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def test_a_mapped_file_that_was_changed_or_cut_off_is_refused(mapped):
    path, model = mapped
    ambiguity = drmdp.Wasserstein(0.1)
    drmdp.solve(model, ambiguity)
    rewrite(path / "data.npy", np.array(model.blocks.data) * 2)
    for call in (
        drmdp.solve,
        lambda m, b: drmdp.bellman(m, b, np.zeros(30)),
        lambda m, b: drmdp.finite_horizon(m, b, 2),
    ):
        with pytest.raises(
            InputError, match=r"data.npy: was changed after it was read; read the model again"
        ):
            call(model, ambiguity)
    drmdp.write(instances.garnet(30, 4).astype(np.float32), path)
    model = drmdp.read(path)
    os.truncate(path / "data.npy", 1000)
    with pytest.raises(InputError, match=r"data.npy: was changed after it was read"):
        drmdp.solve(model, ambiguity)


CUT_OFF = """
import os, sys, numpy as np, drmdp
from drmdp import policies, radius
model = drmdp.read(sys.argv[1])
ball = drmdp.Wasserstein(.1)
solution, friendly = (drmdp.solve(model, ball, nature=nature) for nature in ("adversarial", "cooperative"))
policy = solution.policy
value = policies.under(model, policy, [None])
os.truncate(sys.argv[1] + "/data.npy", 1000)
for call in (
    lambda: drmdp.evaluate(model, ball, policy), lambda: drmdp.certify(model, ball, solution), lambda: radius.path(model, ball),
    lambda: ball.saturation(model), lambda: model.kernels, lambda: model.astype("float32"),
    lambda: drmdp.write(model, sys.argv[2] + "/w.npz"), lambda: drmdp.write(model, sys.argv[2] + "/w.tra"), lambda: solution.report(sys.argv[2] + "/r.html"),
    lambda: policies.under(model, policy, [1]), lambda: drmdp.simulate(model, policy, kernel=1), lambda: solution.kernel, lambda: friendly.kernel,
):
    try:
        call()
    except drmdp.InputError as error:
        assert "data.npy: was changed after it was read" in str(error), error
    else:
        raise AssertionError(call.__code__.co_names)
assert (policies.under(model, policy, [None]) == value).all()
print(repr(model).splitlines()[0])
"""


def test_whoever_needs_probabilities_of_a_file_that_was_cut_off_is_told(mapped, tmp_path):
    """In a process of its own: a read beyond the end of the file would end it with SIGBUS."""
    out = tmp_path / "out"
    out.mkdir()
    running = start(CUT_OFF, mapped[0], out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, err = running.communicate(timeout=600)
    assert (running.returncode, said) == (
        0,
        "Model: 30 states × 4 actions × 5 kernels, discount 0.8\n",
    ), err[-2000:]
    assert not os.listdir(out)


def test_a_file_that_changes_during_a_run_is_noticed_at_its_end(mapped):
    path, model = mapped
    with pytest.raises(InputError, match=r"data.npy: was changed after it was read"):
        drmdp.solve(
            model,
            drmdp.Wasserstein(0.1),
            callback=lambda _: rewrite(path / "data.npy", np.zeros(1)),
        )


def test_a_mapped_model_survives_being_replaced_or_removed(mapped):
    path, model = mapped
    ambiguity = drmdp.Wasserstein(0.1)
    first = drmdp.solve(model, ambiguity)
    drmdp.write(OLD, path)
    np.testing.assert_array_equal(drmdp.solve(model, ambiguity).value, first.value)
    shutil.rmtree(path)
    np.testing.assert_array_equal(drmdp.solve(model, ambiguity).value, first.value)


def test_mapped_costs_that_were_changed_are_refused(mapped):
    path, model = mapped
    rewrite(path / "costs.npy", np.array(model.costs) * 2)
    with pytest.raises(
        InputError, match=r"costs.npy: was changed after it was read; read the model again"
    ):
        drmdp.solve(model, drmdp.Wasserstein(0.1))


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_other_files_of_a_directory_may_change(mapped, name):
    path, model = mapped
    first = drmdp.solve(model, drmdp.Wasserstein(0.1))
    held = np.load(path / f"{name}.npy")
    rewrite(path / f"{name}.npy", np.full_like(held, 2**30))
    os.truncate(path / f"{name}.npy", 130)
    np.testing.assert_array_equal(drmdp.solve(model, drmdp.Wasserstein(0.1)).value, first.value)


CHANGING = """
import sys, numpy as np, drmdp
from test_files import rewrite
path, metric, order = sys.argv[1] + "/data.npy", sys.argv[2], float(sys.argv[3])
import pathlib
whole = np.load(path)
for bad in (np.nan, np.inf, -1.0, 2.0, 0.0):
    model = drmdp.read(sys.argv[1])
    def spoil(_):
        rewrite(pathlib.Path(path), np.full(whole.size, bad))
    for support in ("all", "observed"):
        try:
            with np.errstate(all="ignore"):
                drmdp.solve(model, drmdp.Wasserstein(0.3, metric, order, support), tol=1e-9, callback=spoil, max_seconds=2, threads=1)
        except drmdp.InputError as error:
            assert "was changed" in str(error), error
        rewrite(pathlib.Path(path), whole)
        model = drmdp.read(sys.argv[1])
print("fine")
"""


@pytest.mark.parametrize(
    ("metric", "order"),
    [
        ("l2", 2),
        *(
            pytest.param(*p, marks=pytest.mark.fuzz)
            for p in [("l1", 1), ("linf", 1), ("l1", np.inf), ("l2", np.inf), ("linf", np.inf)]
        ),
    ],
)
def test_numbers_that_change_during_a_run_do_not_lead_out_of_an_array(metric, order, mapped):
    path, _ = mapped
    running = start(CHANGING, path, metric, order, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = running.communicate(timeout=600)
    assert (running.returncode, out) == (0, "fine\n"), err[-2000:]


# ---------------------------------------------------------------------- long lists


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_name_given_twice_is_found_in_one_pass():
    names = [Name(k) for k in range(3000)]
    names[-1] = Name("2998")
    with pytest.raises(InputError, match="states: the name '2998' is given twice"):
        drmdp.Model(
            np.full((3000, 1, 3000), 1 / 3000), costs=np.zeros(3000), discount=0.5, states=names
        )
    assert Name.compared < 10 * len(names)
    text = "{" + ", ".join(f'"{k}": 0' for k in [*range(100_000), 99_999]) + "}"
    with pytest.raises(InputError, match="'99999' is given twice"):
        archives.parse_json(text)


# ---------------------------------------------------------------------- signals while a command
# writes

SLOW_DISK = """
import os, sys, time
flush = os.fsync
def slow(handle):
    print("writing", flush=True)
    time.sleep(600)
    flush(handle)
os.fsync = slow
from drmdp.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("number", "suffix"),
    [
        (signal.SIGTERM, "csv"),
        (signal.SIGKILL, "drmdp"),
        *(
            pytest.param(n, s, marks=pytest.mark.fuzz)
            for n, s in [(signal.SIGINT, "drmdp"), (signal.SIGKILL, "csv")]
        ),
    ],
)
def test_a_signal_while_a_command_writes_leaves_what_was_there(number, suffix, tmp_path):
    drmdp.write(NEW, tmp_path / "new.npz")
    (tmp_path / "out").mkdir()
    drmdp.write(OLD, tmp_path / "out" / f"m.{suffix}")
    before = contents(tmp_path / "out")
    running = start(
        SLOW_DISK,
        "convert",
        tmp_path / "new.npz",
        tmp_path / "out" / f"m.{suffix}",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert running.stdout.readline() == "writing\n"
    running.send_signal(number)
    _, err = running.communicate(timeout=600)
    after = contents(tmp_path / "out")
    if number == signal.SIGKILL:
        assert all(
            name.startswith(".m.") for name in set(after) - set(before)
        )  # hidden, and said so
        assert {name: after[name] for name in before} == before
    else:
        assert running.returncode == 130
        assert err.splitlines()[-1] == "drmdp: error: interrupted"
        assert after == before
