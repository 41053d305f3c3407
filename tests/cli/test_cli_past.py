"""The command line past one machine: what is solved, resumed, foreseen and refused, and who reads
the folders it writes.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
import ranges
from drmdp import formats
from drmdp.cli import main
from drmdp.cluster.plan import LIBRARIES, exchanges, plan
from drmdp.cluster.source import DirectorySource

BALL = ("--radius", "0.1")
LOCAL = ("--cluster", "local", "--parts", "3", "--threads", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("past")
    formats.write(ranges.model("named", "rewards", "terminal"), folder / "small.drmdp")
    formats.write(ranges.model("rewards", discount=0.99), folder / "slow.drmdp")
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def run(*args):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return run


@pytest.fixture
def whole(folder):
    return drmdp.solve(formats.read(folder / "small.drmdp"), drmdp.Wasserstein(0.1), threads=1)


def test_a_solution_in_a_folder_has_the_bits_of_one_process(run, whole, tmp_path):
    out = tmp_path / "found.solution"
    result = run("solve", "small.drmdp", *BALL, *LOCAL, "--out", out)
    assert result.exit_code == 0, result.output
    assert ranges.digest(drmdp.Solution.load(out)) == ranges.digest(whole)
    for text in ("solved", "exchange", "Local(parts=3, threads=1)", "place 0", "worst-case reward"):
        assert text in result.stdout


def test_numbers_are_printed_as_json_and_arrays_only_where_no_folder_holds_them(
    run, whole, tmp_path
):
    found = json.loads(run("solve", "small.drmdp", *BALL, *LOCAL, "--json").stdout)
    assert found["status"] == "solved"
    assert found["lower"] == whole.lower.tolist()
    out = tmp_path / "found"
    there = json.loads(run("solve", "small.drmdp", *BALL, *LOCAL, "--json", "--out", out).stdout)
    assert "lower" not in there
    assert there["out"] == str(out)
    assert there["settings"]["exchanges"] == found["settings"]["exchanges"] > 0


def test_a_folder_is_a_policy_wherever_a_saved_solution_is(run, whole, tmp_path):
    out = tmp_path / "found.solution"
    run("solve", "small.drmdp", *BALL, *LOCAL, "--out", out)
    whole.save(tmp_path / "whole.npz")
    for verb in ("evaluate", "simulate", "inspect"):
        ambiguity = () if verb == "simulate" else BALL
        one, other = (
            json.loads(run(verb, "small.drmdp", policy, *ambiguity, "--json").stdout)
            for policy in (out, tmp_path / "whole.npz")
        )
        for timed in ("seconds", "settings"):
            one.pop(timed, None), other.pop(timed, None)
        assert one == other, verb
    result = run("evaluate", "slow.drmdp", out, *BALL)
    assert result.exit_code == 2
    assert "it is for other states than the model's" in result.stderr


def test_a_run_that_was_stopped_is_resumed(run, folder, tmp_path):
    ambiguity, checkpoint, out = drmdp.Wasserstein(0.1), tmp_path / "run1", tmp_path / "found"
    whole = drmdp.solve(formats.read(folder / "slow.drmdp"), ambiguity, threads=1)

    def stop(record):
        if record.iteration == 1:
            raise RuntimeError("as if it had been killed")

    with pytest.raises(RuntimeError, match="as if"):
        drmdp.solve(
            folder / "slow.drmdp",
            ambiguity,
            cluster=drmdp.cluster.Local(3),
            checkpoint=checkpoint,
            out=out,
            callback=stop,
        )
    result = run("resume", checkpoint)
    assert result.exit_code == 0, result.output
    assert ranges.digest(drmdp.Solution.load(out)) == ranges.digest(whole)
    assert "Local(parts=3" in result.stdout
    again = run("resume", checkpoint, "--cluster", "local", "--parts", 8)
    assert again.exit_code == 0
    assert "Local(parts=8" in again.stdout
    assert ranges.digest(drmdp.Solution.load(out)) == ranges.digest(whole)


def test_a_log_has_a_line_with_gap_exchanges_and_bytes_for_every_check(run):
    lines = run("solve", "slow.drmdp", *BALL, *LOCAL).stderr.splitlines()
    told = [line for line in lines if "iteration" in line]
    assert told[0].startswith("drmdp: iteration 0, gap ")
    assert "exchange" in told[-1]
    assert "B" in told[-1]
    assert not run("solve", "slow.drmdp", *BALL, *LOCAL, "--no-progress").stderr


REFUSED = {
    "no such cluster": (
        ("--cluster", "spark"),
        "Invalid value for '--cluster': 'spark' is not one of 'local', 'ray', 'mpi'",
    ),
    "workers that take turns": (
        ("--cluster", "local", "--workers", "2"),
        "--workers: --cluster local has none",
    ),
    "ranges of ray": (("--cluster", "ray", "--parts", "2"), "--parts: --cluster ray has none"),
    "workers of nobody": (("--workers", "2"), "--workers: goes with --cluster"),
    "no parts": (("--cluster", "local", "--parts", "0"), "--parts"),
    "no address": (
        ("--cluster", "ray", "--address", "nowhere"),
        "--address: expected auto or host:port of a Ray cluster",
    ),
    "a client": (
        ("--cluster", "ray", "--address", "ray://a:10001"),
        "--address: expected auto or host:port",
    ),
    "nobody there": (
        ("--cluster", "ray", "--address", "127.0.0.1:1"),
        "--address: nobody answers at 127.0.0.1:1: Conn",
    ),
    "a nature that helps": (
        (*LOCAL, "--nature", "cooperative"),
        "a nature that helps leaves it by pair",
    ),
    "a checkpoint alone": (("--checkpoint", "run1"), "--checkpoint: goes with --cluster"),
    "a report": ((*LOCAL, "--report", "x.html"), "--report: is not for --cluster"),
    "a start": ((*LOCAL, "--start", "x.npz"), "--start: is not for --cluster"),
    "another method": (
        (*LOCAL, "--method", "anderson"),
        "--method: on a cluster take policy-iteration",
    ),
    "over the model": ((*LOCAL, "--out", "small.drmdp"), "--out: would overwrite small.drmdp"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused(run, case):
    options, message = REFUSED[case]
    result = run("solve", "small.drmdp", *BALL, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["solve", "resume"])
def test_what_is_no_directory_is_refused(run, tmp_path, verb):
    (tmp_path / "letter").write_text("dear")
    options = (*BALL, *LOCAL) if verb == "solve" else ()
    result = run(verb, tmp_path / "letter", *options)
    assert result.exit_code == 2
    assert "letter" in result.stderr


@pytest.mark.parametrize("options", [(), LOCAL, ("--cluster", "ray", "--workers", "4")])
def test_a_dry_run_says_what_a_run_takes_and_writes_nothing(run, folder, options):
    before = sorted(folder.rglob("*"))
    text = run("solve", "small.drmdp", *BALL, "--dry-run", *options).stdout
    for word in ("Memory", "Disk", "Exchanges", "Time", "Assumed"):
        assert word in text
    found = json.loads(run("solve", "small.drmdp", *BALL, "--dry-run", "--json", *options).stdout)
    assert found["bytes"] == found["exchange"] * found["exchanges"]
    assert found["exchange"] == 8 * 37 * (found["ranges"] - 1)
    assert sorted(folder.rglob("*")) == before


def test_a_dry_run_of_a_file_is_refused(run, folder):
    formats.write(ranges.model(), folder / "small.npz")
    result = run("solve", "small.npz", *BALL, "--dry-run")
    assert result.exit_code == 2
    assert "is not a directory" in result.stderr


@pytest.mark.parametrize("support", ["observed", "all"])
@pytest.mark.parametrize("parts", [1, 3])
def test_exchanges_and_bytes_are_those_of_the_formula(folder, support, parts):
    """One vector of all states for each sweep, proof and product, and for each chain that depends
    on v.
    """
    from drmdp.cluster.local import LocalEngine

    engines, start = [], LocalEngine.__init__

    def watched(self, *args):
        start(self, *args)
        engines.append(self)

    path = folder / f"large-{support}-{parts}.drmdp"
    formats.write(ranges.model(S=ranges.LARGE, A=2, N=2), path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "__init__", watched)
        ambiguity = drmdp.Wasserstein(0.1, support=support)
        found = drmdp.solve(
            path, ambiguity, cluster=drmdp.cluster.Local(parts, threads=1), rtol=1e-3
        )
    (engine,) = engines
    calls, traffic = engine.traffic.calls, engine.traffic
    assert calls["sweep"] == found.kernel_passes
    assert calls["product"] > 0
    assert calls["chain"] == found.n_iters  # policy iteration without a Hoffman–Karp step
    assert traffic.exchanges == exchanges(calls) == found.settings["exchanges"]
    assert traffic.bytes == 8 * ranges.LARGE * (len(engine.ranges) - 1) * traffic.exchanges
    assert (
        plan(DirectorySource(str(path)), ambiguity, parts, True).exchange * traffic.exchanges
        == traffic.bytes
    )


def test_the_memory_that_is_foreseen_grows_with_a_range_and_with_the_states(folder, tmp_path):
    ambiguity = drmdp.Wasserstein(0.1)
    formats.write(ranges.model(S=4 * ranges.LARGE, A=2, N=2), tmp_path / "larger.drmdp")
    formats.write(ranges.model(S=ranges.LARGE, A=2, N=2), tmp_path / "large.drmdp")
    larger, large = (
        DirectorySource(str(tmp_path / f"{name}.drmdp")) for name in ("larger", "large")
    )
    one, four, grown = (
        plan(large, ambiguity, 1, False),
        plan(large, ambiguity, 4, False),
        plan(larger, ambiguity, 4, False),
    )
    assert one.worker > four.worker
    assert one.mapped == pytest.approx(4 * four.mapped, rel=0.1)
    own, more = four.worker - LIBRARIES, grown.worker - LIBRARIES
    np.testing.assert_allclose([more / own, grown.mapped / four.mapped], 4, rtol=0.1)
