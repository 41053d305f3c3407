"""One pass over the runs: its order, repeated calls spread over it, and how quiet the machine was."""

import os

import pytest

import drmdp
from drmdp_lab.paper import blocks, clocks, provenance, quiet, runner
from drmdp_lab.paper import records as rows
from drmdp_lab.paper.blocks import Block


def row(key, **more):
    """A row without times."""
    texts = dict.fromkeys(rows.TEXTS, "x") | {"key": key, "status": "solved"}
    return texts | dict.fromkeys(rows.COUNTS, 3) | dict.fromkeys(rows.NUMBERS, 0.5) | more


def visit(times, number=0, study="kernels", **more):
    """A line of a file: one visit to a run."""
    beside = {"session": "one", "started": "2026-01-01T10:00:00", "took": 1.0, "load": 0.1}
    own = {"visit": number, **clocks.summary(times), **beside, **more}
    return row(f"{study}|solve|5|0", study=study, **own)


def test_repeats_of_two_visits_are_one_row():
    (found,) = rows.joined(
        [visit([1.0, 1.1, 1.2]), visit([1.05, 1.06, 1.3], rows.SECOND, load=0.4)]
    )
    assert found["repeats"] == 6
    assert found["cpu_seconds"] == pytest.approx(1.08)
    assert found["load"] == 0.4
    assert not found["again"]
    assert len(found["visits"]) == 2


@pytest.mark.parametrize(
    ("again", "repeats", "seconds"),
    [([1.0, 1.0, 1.1], 3, 1.0), ([1.0, 5.0, 3.0], 9, 2.0)],  # calm, and scattered once more
)
def test_a_row_that_scatters_is_measured_again_and_keeps_its_spread_if_it_stays_so(
    again, repeats, seconds
):
    lines = [visit([1.0, 2.0, 3.0]), visit([1.0, 2.0, 3.0], rows.SECOND)]
    assert rows.scattered(rows.joined(lines)[0])
    (found,) = rows.joined([*lines, visit(again, rows.AGAIN)])
    assert found["repeats"] == repeats
    assert found["cpu_seconds"] == pytest.approx(seconds)
    assert rows.scattered(found) == (repeats == 9)
    assert found["again"]


def test_a_visit_that_was_only_extrapolated_adds_no_times():
    """A conic run near its limit may be foreseen to fit it at one visit and not at the next."""
    lines = [visit([1.0, 1.0]), visit([1.0, 1.0], rows.SECOND, status="extrapolated")]
    del lines[1]["cpu_times"]
    (found,) = rows.joined(lines)
    assert found["repeats"] == 2
    assert found["status"] == "solved"


def test_scatter_is_the_interquartile_range_over_the_median():
    assert clocks.scatter([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert clocks.scatter([7.0]) is None
    assert clocks.scatter([0.0, 0.0]) == 0.0


def test_short_calls_are_repeated_and_the_first_does_not_count(monkeypatch):
    calls = []
    for each, kept in ((0.01, clocks.REPEATS), (2.0, 1)):
        calls.clear()
        monkeypatch.setattr(clocks, "clocked", lambda call, each=each: (call(), each, each))
        result, cost = clocks.timed(lambda: calls.append(len(calls)) or len(calls))
        assert result == 1
        assert len(cost.cpu_times) == kept
        assert len(calls) == (kept + 1 if each < 1 else 1)


def test_a_pass_visits_short_calls_twice_and_scattered_ones_once_more(tmp_path, monkeypatch):
    """Runs of a cell come seed by seed; a run of two studies is measured once; a pass that was cut
    goes on with what is missing.
    """
    seen = []

    def measured(run):
        if run.n_states == 4:  # warmed
            return {}
        seen.append((run.method, run.seed))
        times = {
            "exact": [0.01, 0.01, 0.01],
            "fast": [0.01, 0.02, 0.03],
            "algorithm-1": [0.5, 0.5, 0.5],
        }
        own = {"key": run.key, "study": run.study, **clocks.summary(times[run.method])}
        return row(run.key) | own | {"session": "one", "commit": ""}

    monkeypatch.setattr(runner, "measure", measured)
    methods = ("exact", "fast", "algorithm-1")
    size = ((5, 3, 3),)
    runs = blocks.expand(
        tuple(Block(study, size, methods, ("machine",), seeds=2) for study in ("kernels", "states"))
    )
    assert runner.run_all(runs[:3], tmp_path) == (3, 0)
    assert runner.run_all(runs, tmp_path) == (len(runs) - 3, 0)
    assert runner.run_all(runs, tmp_path) == (0, 0)
    first = [(name, seed) for seed in (0, 1) for name in methods]
    assert seen[:3] == first[:3]
    later = {key: seen.count(key) for key in first}
    assert later == {
        (name, seed): n for seed in (0, 1) for name, n in zip(methods, (2, 3, 1), strict=True)
    }
    found = rows.read(tmp_path / "rows.jsonl")
    assert len(found) == len(runs) == 12
    assert sum(bool(own.get("shared")) for own in found) == 6
    times = {(own["key"].partition("|")[2], tuple(own["cpu_times"])) for own in found}
    assert len(times) == 6  # a run shows the same times in both studies


def test_rows_of_another_commit_are_not_added_to(tmp_path, monkeypatch):
    own = {"machine": "x", "versions": "y", "commit": "z"}
    monkeypatch.setattr(provenance, "here", lambda: own)
    provenance.refuse_strangers([own, {"commit": ""}])
    with pytest.raises(drmdp.InputError, match="commit 'other', this is 'z': use a new folder"):
        provenance.refuse_strangers([own, {"commit": "other"}])


def test_the_load_of_others_is_what_is_left_of_the_machine_s():
    before, after = quiet.Sample(10.0, 100.0), quiet.Sample(12.0, 101.0)
    assert quiet.load(before, after) == pytest.approx(0.5)
    assert quiet.load(after, quiet.Sample(13.0, 100.9)) == 0.0  # counted in hundredths of a second
    assert quiet.load(None, after) is None


def test_a_load_is_taken_over_a_second_at_least(monkeypatch):
    clock = iter([quiet.Sample(t, 0.5 * t) for t in (0.0, 0.1, 0.3, 1.5, 9.5)])
    monkeypatch.setattr(quiet, "sample", lambda: next(clock))
    spans = []
    monkeypatch.setattr(quiet, "load", lambda a, b: spans.append((a.wall, b.wall)))
    beside = quiet.Neighbours()
    for _ in range(4):
        beside.beside()
    assert spans == [(0.0, 0.1), (0.0, 0.3), (0.3, 1.5), (1.5, 9.5)]


def test_a_busy_machine_is_named_before_a_pass(monkeypatch):
    for load, said in ((0.9, "other processes take 0.9 cores"), (0.1, None), (None, None)):
        monkeypatch.setattr(quiet, "LOOK", 0.0)
        monkeypatch.setattr(quiet, "load", lambda a, b, load=load: load)
        monkeypatch.setattr(quiet, "sample", lambda: quiet.Sample(0.0, 0.0))
        assert (said in quiet.warning()) if said else quiet.warning() is None


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no such call here")
def test_a_pass_is_held_to_one_core_and_lets_go():
    before = os.sched_getaffinity(0)
    with quiet.pinned() as core:
        assert os.sched_getaffinity(0) == {core} <= before
    assert os.sched_getaffinity(0) == before
