"""Files that are no proofs and no models are refused: the checker shows no traceback and does not
hang.
"""

import json
import signal
import zipfile

import numpy as np
import pytest

import drmdp
import drmdp_check
from forgeries import replaced, spoiled
from proofs import EVENTS, SETS, STAGES, TASKS, dealt, task_of, written

FEW = [("l2", 2), ("transport", 1), ("divergence", "burg", "kernels"), ("intervals",)]


class HangError(BaseException):
    """Nothing came out for long."""


@pytest.fixture(autouse=True)
def _alarm():
    def ring(*_):
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def survives(proof, model, interval):
    """Check with an alarm clock; returns the exit code."""
    signal.alarm(120)
    files = model if isinstance(model, list) else [model]
    code = drmdp_check.main([str(proof), *map(str, files), *(["--interval"] if interval else [])])
    signal.alarm(0)
    assert code in ((0, 1, 2, 3) if interval else (0, 1, 2))
    return code


def spoil(name, seed, times, folder, task):
    """Spoil a proof, and its model, several times; returns the exit codes."""
    _, proof, model = written(name, seed, folder, task)
    rng, good = np.random.default_rng(seed), proof.read_bytes()
    lines = [json.loads(line) for line in good.splitlines()]
    paths = (
        model if isinstance(model, list) else sorted(model.iterdir()) if model.is_dir() else [model]
    )
    codes = []
    for k in range(times):
        proof.write_bytes(replaced(lines, rng) if k % 2 else spoiled(good, rng))
        codes.append(survives(proof, model, k % 5 == 0))
        proof.write_bytes(good)
        path = paths[int(rng.integers(len(paths)))]
        kept = path.read_bytes()
        path.write_bytes(
            spoiled(kept, rng) if k % 3 or path.suffix != ".npz" else repacked(kept, rng, folder)
        )
        codes.append(survives(proof, model, k % 5 == 0))
        path.write_bytes(kept)
    return codes


def repacked(kept, rng, folder):
    """A model whose arrays are spoiled and whose checksums are right."""
    source, target = folder / "kept.npz", folder / "again.npz"
    source.write_bytes(kept)
    with (
        zipfile.ZipFile(source) as archive,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as other,
    ):
        names = archive.namelist()
        chosen = names[int(rng.integers(len(names)))]
        for name in names:
            data = archive.read(name)
            other.writestr(name, spoiled(data, rng) if name == chosen else data)
    return target.read_bytes()


@pytest.mark.parametrize("name", FEW, ids=str)
def test_what_is_spoiled_is_refused_or_checked(name, tmp_path, capsys):
    codes = [code for seed in (2, 3) for code in spoil(name, seed, 25, tmp_path, TASKS[seed % 5])]
    assert codes.count(2) > len(codes) // 2


@pytest.mark.parametrize(
    ("name", "task"),
    [(("l2", 2), EVENTS), (("divergence", "kl", "mean"), EVENTS), (("l1", 1), STAGES)],
    ids=str,
)
def test_so_is_what_is_about_events_and_stages(name, task, tmp_path, capsys):
    codes = [code for seed in (2, 3) for code in spoil(name, seed, 25, tmp_path, task)]
    assert codes.count(2) > len(codes) // 3


@pytest.mark.fuzz
@pytest.mark.parametrize("name", SETS, ids=str)
def test_much_that_is_spoiled_is_refused_or_checked(name, tmp_path, capsys):
    for seed in range(1, 11):
        spoil(name, seed, 25, tmp_path, task_of(name, seed))


def test_directories_are_spoiled_too(tmp_path, capsys):
    model = dealt(2)
    drmdp.write(model, tmp_path / "m.drmdp")
    drmdp.solve(model, drmdp.Wasserstein(0.3)).proof(tmp_path / "p")
    assert survives(tmp_path / "p", tmp_path / "m.drmdp", False) == 0
    rng = np.random.default_rng(0)
    for file in sorted((tmp_path / "m.drmdp").iterdir()):
        good = file.read_bytes()
        for _ in range(5):
            file.write_bytes(spoiled(good, rng))
            survives(tmp_path / "p", tmp_path / "m.drmdp", False)
        file.unlink()
        survives(tmp_path / "p", tmp_path / "m.drmdp", False)
        file.write_bytes(good)
    assert survives(tmp_path / "p", tmp_path / "m.drmdp", False) == 0


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", b"[" * 100000 + b"\n"]
)
def test_files_that_are_no_proofs(text, tmp_path, capsys):
    proof, model = written(("l2", 2), 2, tmp_path)[1:]
    proof.write_bytes(text)
    assert survives(proof, model, False) == 2
    assert survives(tmp_path / "nowhere", model, False) == survives(proof, tmp_path, False) == 2
