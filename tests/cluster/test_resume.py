"""A run goes on from what is whole of its checkpoints, and refuses what would give other bits."""

import errno
import json
import os
import re
import shutil

import numpy as np
import pytest

import drmdp
import ranges
from drmdp import formats
from drmdp.cluster import Local, worker
from drmdp.errors import Notice

BALL = drmdp.Wasserstein(0.1)
ENGINE = Local(3, threads=1)


class KilledError(Exception):
    """As if it had been."""


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """A model, where it lies, and the digest of its solution."""
    model = ranges.model("terminal", "rewards", S=120, A=2, N=2, discount=0.99)
    path = tmp_path_factory.mktemp("model") / "model.drmdp"
    formats.write(model, path)
    return path, ranges.digest(drmdp.solve(model, BALL, threads=1))


@pytest.fixture
def cut_short(problem, tmp_path):
    """The folder of a run that ended in its second iteration."""

    def stop(record):
        if record.iteration == 2:
            raise KilledError

    with pytest.raises(KilledError):
        drmdp.solve(problem[0], BALL, cluster=ENGINE, checkpoint=tmp_path / "run", callback=stop)
    assert sorted(entry.name for entry in (tmp_path / "run").iterdir()) == [
        "run.json",
        "sweep-000001",
        "sweep-000002",
    ]
    return tmp_path / "run"


def truncated(path):
    os.truncate(path, path.stat().st_size - 8)


def changed(path):
    with path.open("r+b") as stream:
        stream.seek(-3, os.SEEK_END)
        byte = stream.read(1)
        stream.seek(-3, os.SEEK_END)
        stream.write(bytes([byte[0] ^ 1]))


DAMAGE = {
    "truncated": (truncated, "v0-0.npy", "v0-0.npy: "),
    "changed": (changed, "v1-0.npy", "v1-0.npy: was changed after it was written"),
    "gone": (lambda path: path.unlink(), "v2-0.npy", "v2-0.npy: "),
    "no state": (truncated, "state.json", ""),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_checkpoint_that_is_damaged_is_passed_over(cut_short, problem, case):
    damage, name, message = DAMAGE[case]
    damage(cut_short / "sweep-000002" / name)
    seen = []
    with pytest.warns(Notice, match=re.escape(f"sweep-000002: is passed over: {message}")):
        found = drmdp.resume(cut_short, callback=lambda record: seen.append(record.iteration))
    assert ranges.digest(found) == problem[1]
    assert seen[0] == 1


def test_a_run_whose_checkpoints_are_all_damaged_begins_anew(cut_short, problem):
    for folder in cut_short.glob("sweep-*"):
        truncated(folder / "v0-0.npy")
    with pytest.warns(Notice, match="passed over"):
        found = drmdp.resume(cut_short)
    assert ranges.digest(found) == problem[1]


def test_an_old_checkpoint_loses_its_name_before_its_files(problem, tmp_path, monkeypatch):
    removed, plain = [], shutil.rmtree
    monkeypatch.setattr(
        shutil, "rmtree", lambda path, **k: (removed.append(path.name), plain(path, **k))
    )
    drmdp.solve(
        problem[0], BALL, "value-iteration", rtol=1e-2, cluster=ENGINE, checkpoint=tmp_path / "run"
    )
    assert set(removed) == {".new"}
    assert len(list((tmp_path / "run").glob("sweep-*"))) == 2


def test_what_a_killed_run_was_writing_is_removed(cut_short, problem):
    (cut_short / ".new").mkdir()
    (cut_short / ".new" / "v0-0.npy").write_bytes(b"half")
    assert ranges.digest(drmdp.resume(cut_short)) == problem[1]
    assert not (cut_short / ".new").exists()


@pytest.mark.parametrize("name", ["drmdp", "linear algebra", "routines"])
def test_what_gives_other_bits_is_refused_with_what_differs(cut_short, name):
    told = json.loads((cut_short / "run.json").read_text())
    own, told["kernels"][name] = told["kernels"][name], "another"
    (cut_short / "run.json").write_text(json.dumps(told))
    message = f"the run began with kernels that give other bits: {name}: another and {own}"
    with pytest.raises(drmdp.InputError, match=re.escape(message)):
        drmdp.resume(cut_short)


def test_another_model_is_refused(problem, tmp_path):
    path = tmp_path / "model.drmdp"
    drmdp.write(drmdp.read(problem[0]), path)
    with pytest.raises(KilledError):
        drmdp.solve(path, BALL, cluster=ENGINE, checkpoint=tmp_path / "run", callback=_stop)
    np.save(path / "costs.npy", 1.5 * np.load(path / "costs.npy"))
    with pytest.raises(
        drmdp.InputError, match="is not the model that the run began with: fingerprint"
    ):
        drmdp.resume(tmp_path / "run")


def _stop(record):
    raise KilledError


@pytest.mark.parametrize("name", ["data", "indices", "indptr", "costs"])
def test_a_truncated_file_of_the_model_is_refused_by_name(problem, tmp_path, name):
    path = tmp_path / "model.drmdp"
    drmdp.write(drmdp.read(problem[0]), path)
    truncated(path / f"{name}.npy")
    with pytest.raises(drmdp.InputError, match=f"{name}"):
        drmdp.solve(path, BALL, cluster=ENGINE)


def test_a_row_that_is_no_distribution_any_more_is_refused_by_its_state(problem, tmp_path):
    path = tmp_path / "model.drmdp"
    drmdp.write(drmdp.read(problem[0]), path)
    data = np.load(path / "data.npy")
    data[-1] += 0.5
    np.save(path / "data.npy", data)
    with pytest.raises(drmdp.InputError, match="state 119"):
        drmdp.solve(path, BALL, cluster=ENGINE)


def test_a_full_disk_stops_checkpoints_and_not_the_run(problem, tmp_path, monkeypatch):
    written = []

    def full(stream):
        written.append(stream)
        if len(written) > 60:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        stream.flush()

    monkeypatch.setattr(worker, "flush", full)
    with pytest.warns(
        Notice,
        match=r"sweep-00000\d: cannot be written: No space left on device; earlier checkpoints stay",
    ):
        found = drmdp.solve(problem[0], BALL, cluster=ENGINE, checkpoint=tmp_path / "run")
    assert ranges.digest(found) == problem[1]
    left = sorted(entry.name for entry in (tmp_path / "run").iterdir())
    assert left == ["run.json", "sweep-000000"]
    monkeypatch.undo()
    assert ranges.digest(drmdp.resume(tmp_path / "run")) == problem[1]
