"""Workers write the proof of what they solved, each of its range, with the bytes of a proof of the
model in memory.
"""

import os
import pickle

import pytest
from click.testing import CliRunner
from test_engines import mpi

import drmdp
import drmdp_check
import engines
import ranges
from drmdp.cli import main
from drmdp.cluster import Local, Ray, proofs

SETS = (
    "l2-2 observed",
    "linf-1 all",
    "l1-1 all",
    "kl around mean sa",
    "cvar of weights s",
    "transport 1 all",
    "intervals",
)
MODELS = {
    "everything": ("terminal", "unavailable", "rewards", "zero weights", "initial"),
    "dense float32": ("dense", "float32", "terminal", "next"),
}
OFTEN = [("dense float32", "l2-2 observed"), *(("everything", ambiguity) for ambiguity in SETS)]
"""The others are proved in float32 in the long runs."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folder of a model, a set around it, and the bytes of the proof that one process writes."""
    folder, known = tmp_path_factory.mktemp("proofs"), {}

    def write(model_name, ambiguity_name):
        path = folder / f"{model_name}.drmdp"
        if not path.exists():
            drmdp.write(ranges.model(*MODELS[model_name], S=24), path)
        key = model_name, ambiguity_name
        if key not in known:
            model = drmdp.read(path)
            ambiguity = engines.ambiguity_of(ambiguity_name, model, each=False)
            drmdp.solve(model, ambiguity, threads=1, rtol=engines.RTOL).proof(folder / "whole")
            known[key] = path, ambiguity, (folder / "whole").read_bytes()
        return known[key]

    return write


@pytest.mark.parametrize(
    ("model", "ambiguity"),
    [
        pytest.param(
            model, ambiguity, marks=[] if (model, ambiguity) in OFTEN else pytest.mark.fuzz
        )
        for model in MODELS
        for ambiguity in SETS
    ],
)
def test_parts_write_the_bytes_of_the_whole(written, model, ambiguity, tmp_path):
    path, region, want = written(model, ambiguity)
    for parts, out in ((1, None), (3, None), (8, tmp_path / "found")):
        found = drmdp.solve(
            path, region, cluster=Local(parts, threads=1), rtol=engines.RTOL, out=out
        )
        assert found.proof(tmp_path / "proof") == len(want)
        assert (tmp_path / "proof").read_bytes() == want, parts
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["found", "proof"]
    assert not list(drmdp_check.check(tmp_path / "proof", path).failures())


@pytest.fixture
def solved(tmp_path):
    """A model in a folder, and its solution in another."""
    model = ranges.model("terminal", "rewards", S=40, A=2, N=2, discount=0.99)
    drmdp.write(model, tmp_path / "model.drmdp")
    drmdp.solve(model, drmdp.Wasserstein(0.1), threads=1).proof(tmp_path / "want")

    def solve(**settings):
        ambiguity = drmdp.Wasserstein(0.1)
        return drmdp.solve(
            tmp_path / "model.drmdp", ambiguity, cluster=Local(3, threads=1), **settings
        )

    return model, solve


def test_a_run_that_was_resumed_is_proved_alike(solved, tmp_path):
    def stop(record):
        if record.iteration == 2:
            raise RuntimeError("as if it had been killed")

    with pytest.raises(RuntimeError, match="as if"):
        solved[1](checkpoint=tmp_path / "run", callback=stop)
    drmdp.resume(tmp_path / "run", cluster=Local(2, threads=1)).proof(tmp_path / "proof")
    assert (tmp_path / "proof").read_bytes() == (tmp_path / "want").read_bytes()


def test_so_is_a_copy_wherever_this_process_is(solved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = drmdp.solve(
        "model.drmdp", drmdp.Wasserstein(0.1), cluster=Local(3, threads=1), out="found"
    )
    copy = pickle.loads(pickle.dumps(found))
    monkeypatch.chdir("model.drmdp")
    found.proof(tmp_path / "first")
    copy.proof(tmp_path / "proof")
    assert (tmp_path / "proof").read_bytes() == (tmp_path / "first").read_bytes()
    assert (tmp_path / "proof").read_bytes() == (tmp_path / "want").read_bytes()


def test_what_was_loaded_has_no_witnesses(solved, tmp_path):
    solved[1](out=tmp_path / "found")
    with pytest.raises(
        drmdp.InputError, match=r"proof: a result that was loaded has no witnesses.*start=solution"
    ):
        drmdp.Solution.load(tmp_path / "found").proof(tmp_path / "proof")


def test_a_run_without_a_sweep_has_none_either(solved, tmp_path):
    found = solved[1]()
    for name in proofs.WITNESS:
        del found.held.arrays[name]
    with pytest.raises(drmdp.InputError, match="proof: there is no sweep of the robust operator"):
        found.proof(tmp_path / "proof")


def test_another_model_or_another_result_in_its_place_is_refused(solved, tmp_path):
    _, solve = solved
    found = solve(out=tmp_path / "found")
    solve(out=tmp_path / "found", rtol=0.5)
    with pytest.raises(drmdp.InputError, match="found no longer holds this solution"):
        found.proof(tmp_path / "proof")
    found = solve(out=tmp_path / "found")
    drmdp.write(
        ranges.model("terminal", "rewards", S=40, A=2, N=2, discount=0.98), tmp_path / "model.drmdp"
    )
    with pytest.raises(drmdp.InputError, match="is not the model that was solved: fingerprint"):
        found.proof(tmp_path / "proof")
    assert not (tmp_path / "proof").exists()


def test_a_worker_that_fails_leaves_nothing_behind(solved, tmp_path, monkeypatch):
    found = solved[1]()
    (tmp_path / "proof").write_text("old")
    before = sorted(entry.name for entry in tmp_path.iterdir())

    def full(folder, name, model, pieces):
        if name == "lines" and model.first > 0:
            raise OSError(28, "No space left on device")
        put(folder, name, model, pieces)

    put = proofs._put
    monkeypatch.setattr(proofs, "_put", full)
    with pytest.raises(OSError, match="No space left"):
        found.proof(tmp_path / "proof")
    assert (tmp_path / "proof").read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == before


def test_the_command_line_writes_and_verifies(solved, tmp_path):
    run, path, proof = CliRunner(), str(tmp_path / "model.drmdp"), str(tmp_path / "proof")
    words = [
        "--radius",
        "0.1",
        "--cluster",
        "local",
        "--parts",
        "3",
        "--checkpoint",
        str(tmp_path / "run"),
    ]
    done = run.invoke(main, ["solve", path, *words, "--proof", proof])
    assert done.exit_code == 0, done.output
    assert "Proof" in done.output
    assert (tmp_path / "proof").read_bytes() == (tmp_path / "want").read_bytes()
    done = run.invoke(main, ["verify", proof, path])
    assert done.exit_code == 0, done.output
    os.remove(proof)
    done = run.invoke(main, ["resume", str(tmp_path / "run"), "--proof", proof])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "proof").read_bytes() == (tmp_path / "want").read_bytes()
    assert run.invoke(main, ["solve", path, *words[:4], "--proof", path]).exit_code == 2


@pytest.mark.cluster
@pytest.mark.parametrize("ambiguity", ["l2-2 observed", "linf-1 all"])
def test_so_do_workers_of_ray(written, ambiguity, tmp_path, session):
    path, region, want = written("everything", ambiguity)
    for out in (None, tmp_path / "found"):
        drmdp.solve(path, region, cluster=Ray(2), rtol=engines.RTOL, out=out).proof(
            tmp_path / "proof"
        )
        assert (tmp_path / "proof").read_bytes() == want, out


JOB = """
import sys
import drmdp, engines
from drmdp.cluster import Mpi
path, name, out, *targets = sys.argv[1:]
ambiguity = engines.ambiguity_of(name, drmdp.read(path), each=False)
for kept, target in zip((None, out), targets):
    size = drmdp.solve(path, ambiguity, cluster=Mpi(), rtol=engines.RTOL, out=kept).proof(target)
    assert size > 0
"""


@pytest.mark.cluster
@pytest.mark.parametrize("ambiguity", ["l2-2 observed", "linf-1 all"])
def test_so_do_ranks_of_mpi(written, ambiguity, tmp_path):
    path, _, want = written("everything", ambiguity)
    (tmp_path / "job.py").write_text(JOB)
    targets = [tmp_path / "one", tmp_path / "two"]
    mpi(["-n", "2"], tmp_path / "job.py", path, ambiguity, tmp_path / "found", *targets)
    assert [target.read_bytes() == want for target in targets] == [True, True]
