"""The study: rows that survive a kill, runs that are judged, and figures and tables that depend on
rows alone.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import instances
from drmdp.cli import main
from drmdp_lab.paper import (
    baseline,
    blocks,
    measure,
    nested,
    peers,
    runner,
)
from drmdp_lab.paper import records as rows
from drmdp_lab.paper.blocks import Block, Run
from drmdp_lab.paper.methods import METHODS, rule
from drmdp_lab.paper.specification import SCALES

TINY = {
    "study": "kernels",
    "sizes": [[4, 3, 2], [4, 3, 3], [5, 3, 3]],
    "methods": ["exact", "exact-vi", "fast", "algorithm-1"],
    "rules": ["duality-gap"],
    "radii": [0.1, 0.3],
    "seeds": 2,
    "limit": 60.0,
}
RUN = Run(
    "kernels",
    "solve",
    "garnet-costs",
    5,
    3,
    3,
    0.8,
    "l2",
    2.0,
    0.2,
    "exact",
    "duality-gap",
    0.05,
    0,
    600.0,
)


def row(key, **more):
    texts = dict.fromkeys(rows.TEXTS, "x") | {"key": key, "status": "solved"}
    return texts | dict.fromkeys(rows.COUNTS, 3) | dict.fromkeys(rows.NUMBERS, 0.5) | more


# ---------------------------------------------------------------------- rows on disk


def test_a_line_cut_anywhere_loses_that_line_only(tmp_path):
    path = tmp_path / "rows.jsonl"
    with rows.RowWriter(path) as writer:
        for key in ("first", "zweite Zeile: ü", "third"):
            writer.append(row(key))
    whole = path.read_bytes()
    kept = whole[: whole[:-1].rfind(b"\n") + 1]
    for end in range(len(kept), len(whole)):
        path.write_bytes(whole[:end])
        assert [own["key"] for own in rows.read(path)] == ["first", "zweite Zeile: ü"]
        with rows.RowWriter(path) as writer:
            assert set(writer.lines) == {("first", 0), ("zweite Zeile: ü", 0)}
            assert path.read_bytes() == kept
            writer.append(row("third"))
        assert path.read_bytes() == whole


def test_a_key_is_written_once(tmp_path):
    with rows.RowWriter(tmp_path / "rows.jsonl") as writer:
        writer.append(row("a"))
        with pytest.raises(ValueError, match="already"):
            writer.append(row("a"))


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    good = json.dumps(row("a")).encode()
    for bad in (
        b"not json",
        b"[" * 100_000,
        b"[1]",
        b'{"key": "b"}',
        json.dumps(row("b", n_states="x")).encode(),
        b"9" * 5000,
    ):
        path.write_bytes(good + b"\n" + bad + b"\n" + good + b"\n")
        with pytest.raises(drmdp.InputError, match="line 2: not a row: "):
            rows.read(path)
        with pytest.raises(drmdp.InputError, match="line 2: not a row: "), rows.RowWriter(path):
            pass
        assert path.read_bytes().count(b"\n") == 3  # left as it was


def test_two_writers_do_not_share_a_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    with (
        rows.RowWriter(path),
        pytest.raises(drmdp.InputError, match="another process"),
        rows.RowWriter(path),
    ):
        pass


def _command(folder, *more):
    out = ("--spec", str(folder / "spec.json"), "--out", str(folder / "out"), "--no-figures")
    return [sys.executable, "-m", "drmdp", "reproduce", *out, *more]


KILLED = """
import os, signal, sys
from drmdp.cli import main
from drmdp_lab.paper import records
write = os.fsync
def fifth(number, rows=[]):
    write(number)
    rows.append(number)
    if len(rows) == 5:
        os.write(number, b'{"key": "half a')
        os.kill(os.getpid(), signal.SIGKILL)
records.os.fsync = fifth
main(sys.argv[1:])
"""


def test_killed_half_way_no_row_is_lost_or_doubled(tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps([TINY]))
    expected = {run.key for run in blocks.expand(blocks.load(tmp_path / "spec.json"))}
    path = tmp_path / "out" / "rows.jsonl"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *_command(tmp_path)[3:]], stdout=subprocess.DEVNULL
    )
    assert killed.returncode == -signal.SIGKILL
    before = path.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    done = {own["key"] for own in rows.read(path)}
    assert len(done) == 5 < len(expected)
    again = CliRunner().invoke(main, _command(tmp_path, "--json")[3:])
    assert json.loads(again.stdout)["added"] == len(expected) - len(done)
    assert path.read_bytes().startswith(before)
    keys = [own["key"] for own in rows.read(path)]
    assert len(keys) == len(set(keys))
    assert set(keys) == expected
    assert runner.run_all(blocks.expand(blocks.load(tmp_path / "spec.json")), tmp_path / "out") == (
        0,
        0,
    )


# ---------------------------------------------------------------------- the specification


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_every_study_and_distinct_keys(scale):
    given = SCALES[scale]
    runs = blocks.expand(given)
    assert len({run.key for run in runs}) == len(runs)
    assert {run.study for run in runs} == {block.study for block in SCALES["quick"]}
    assert {run.key for run in runs} == {run.key for block in given for run in block.runs()}
    order = [(run.seed, run.numbers) for run in runs]  # seed by seed, cheap ones first
    assert order == sorted(order)


def test_paper_is_what_the_paper_ran():
    runs = blocks.expand(SCALES["paper"])
    own = [
        run
        for run in runs
        if run.study == "kernels" and run.family == "garnet-rewards" and run.rule == "duality-gap"
    ]
    assert {(run.n_states, run.n_actions, run.discount, run.tol) for run in own} == {
        (30, 30, 0.8, 0.05)
    }
    assert {run.seed for run in own} == set(range(5))
    assert {run.n_kernels for run in own} >= {5, 70}
    assert {round(run.radius, 3) for run in own} == {round(np.sqrt(6), 3), 0.1, 0.5}
    assert {
        "conic-vi",
        "conic-gs",
        "conic-anderson",
        "conic-avi",
        "algorithm-1",
        "fast",
        "exact",
    } <= {run.method for run in own}


def test_printed_rules():
    assert rule("algorithm-1", "printed") == ("duality-gap", 1.0)
    assert rule("conic-vi", "printed") == ("paper", 2.0)  # at ε, twice the tolerance on (DG)
    assert rule("conic-vi", "duality-gap") == ("duality-gap", 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["gurobi"]}, "gurobi"),
        ({"families": ["taxi"]}, "taxi"),
        ({"radii": [-1]}, "radii"),
        ({"sizes": [[1, 2]]}, "sizes"),
        ({"rules": ["luck"]}, "luck"),
        ({"colour": 1}, "colour"),
        ({"pairs": [["l2", 3]]}, "pairs"),
    ],
)
def test_a_bad_specification_names_the_mistake(tmp_path, change, message):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps([{**TINY, **change}]))
    with pytest.raises(drmdp.InputError, match=message):
        blocks.load(path)


def test_infinite_order_in_a_file(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps([{**TINY, "pairs": [["linf", "inf"]]}]))
    assert {run.order for run in blocks.expand(blocks.load(path))} == {np.inf}


# ---------------------------------------------------------------------- one run


def test_a_row_says_all_there_is_to_know():
    found = measure.measure(RUN)
    json.dumps(found, allow_nan=False)
    wanted = "key seed status gap duality_gap n_iters kernel_passes seconds cpu_seconds memory_mb threads machine versions commit"
    assert set(wanted.split()) <= set(found)
    assert found["status"] == "solved"
    assert found["duality_gap"] <= RUN.tol
    assert found["cpu_seconds"] > 0
    folders = (os.path.expanduser("~"), os.getcwd(), os.uname().nodename)
    assert not any(text in json.dumps(found) for text in folders if len(text) > 3)


def test_the_certificate_is_not_timed(monkeypatch):
    order = []

    def timed(call):
        order.append("begin")
        found = call()
        order.append("end")
        return found, measure.Cost(1.0, (1.0,), None)

    def certify(*args):
        order.append("judged")
        return drmdp.certify(*args)

    monkeypatch.setattr(measure, "timed", timed)
    monkeypatch.setattr(measure, "certify", certify)
    measure.measure(RUN)
    assert order == ["begin", "end", "judged"]


@pytest.mark.parametrize(
    "method", ["exact", "exact-vi", "fast", "algorithm-1", "algorithm-1 random v", "conic-vi"]
)
def test_every_method_is_judged_by_the_same_certificate(method):
    found = measure.measure(replace(RUN, method=method))
    assert found["own_duality_gap"] <= RUN.tol  # its own stopping rule
    assert 0 <= found["duality_gap"] <= RUN.tol * (1 + 1e-6)  # from scratch


def test_where_judging_takes_minutes_the_bounds_of_the_solution_are_kept():
    found = measure.measure(replace(RUN, order=np.inf))
    assert found["judge"] == "solve"
    assert found["duality_gap"] == found["own_duality_gap"] <= RUN.tol
    assert measure.measure(RUN)["judge"] == "certify"


def test_gauss_seidel_under_the_printed_rules_stops_by_what_a_pass_changed():
    own = replace(RUN, family="garnet-rewards", method="exact-gs", rule="printed", tol=0.05)
    found = measure.measure(own)
    model, ambiguity = measure.problem(own)
    value, change, passes = np.zeros(5), np.inf, 0
    while change >= 2 * 0.8 * 0.1 / 0.2:
        before = value.copy()
        for s in range(5):
            value[s] = -drmdp.bellman(model, ambiguity, -value).value[s]
        change, passes = np.abs(value - before).max(), passes + 1
    assert found["n_iters"] == found["kernel_passes"] == passes > 1
    assert found["status"] == "stopped"
    assert (
        0 <= found["gap"] < found["own_gap"]
    )  # nothing was proved on the way, and judging is not timed
    assert measure.measure(replace(own, rule="duality-gap"))["kernel_passes"] > 1


def test_updates_are_probed_near_the_optimum(monkeypatch):
    """Not at the value of a run that proved nothing, which is a constant, and with it an update is
    trivial.
    """
    real, seen = peers.updater, []

    def spy(*args):
        update = real(*args)
        return lambda value, s: seen.append(value) or update(value, s)

    monkeypatch.setattr(peers, "updater", spy)
    measure._probed.clear()
    measure.measure(replace(RUN, method="conic-gs", rule="printed", limit=0.0))
    best = drmdp.solve(*measure.problem(RUN), tol=1e-6).value
    np.testing.assert_allclose(seen[-1], best, atol=1e-5)


def test_extrapolated_gauss_seidel_counts_its_first_pass():
    own = replace(RUN, method="conic-gs", rule="printed")
    measured, foreseen = measure.measure(own), measure.measure(replace(own, limit=0.0))
    assert foreseen["status"] == "extrapolated"
    assert foreseen["kernel_passes"] == measured["kernel_passes"]
    each = foreseen["update_cpu_seconds"] * 5
    assert foreseen["cpu_seconds"] == pytest.approx(each * (foreseen["kernel_passes"] - 1 / 5))


def test_the_balls_are_the_paper_s():
    assert measure.problem(RUN)[1].support == "all"


@pytest.mark.parametrize("radius", [0.003, 0.01, 1.0])  # the last does not bind
def test_nested_bisections_compute_the_map(radius):
    model = instances.perturb(instances.garnet(6, 3, rewards=True), 3)
    ambiguity = drmdp.Wasserstein(radius, "linf", 1, support="all")
    step, v = nested.first_push(model)
    centre = model.kernels[:, 0]
    point = centre + step[0][:, None] * model.discount * v / 3
    found = nested.Nested(point, centre, radius, 1e-7)
    np.testing.assert_allclose(found.project(), drmdp.project(point, centre, ambiguity), atol=1e-6)


def test_evaluations_of_the_map_grow_like_a_cube_of_the_logarithm():
    own = replace(
        RUN,
        study="maps",
        task="map",
        family="garnet-rewards",
        metric="linf",
        order=1.0,
        radius=0.002,
    )
    counts = {}
    for method in ("map-bisection", "map-newton"):
        found = [
            measure.measure(replace(own, method=method, tol=tol))["n_iters"]
            for tol in (1e-3, 1e-6, 1e-12)
        ]
        counts[method] = found
    one, two, four = (n ** (1 / 3) for n in counts["map-bisection"])
    assert two - one == pytest.approx(
        (four - two) / 2, rel=0.1
    )  # log(1/ε) from 3 to 6, and from 6 to 12
    assert max(counts["map-newton"]) < 8


def test_a_run_out_of_time_is_kept_as_such():
    found = measure.measure(
        replace(RUN, method="algorithm-1", rule="certified", tol=1e-9, limit=0.2)
    )
    assert found["status"] == "time_limit"
    assert found["gap"] > 1e-9
    assert found["seconds"] >= 0.2


def test_conic_runs_are_extrapolated_when_they_do_not_fit():
    measured = measure.measure(replace(RUN, method="conic-vi"))
    foreseen = measure.measure(replace(RUN, method="conic-vi", limit=0.0))
    assert measured["status"] in ("solved", "stopped")
    assert foreseen["status"] == "extrapolated"
    assert foreseen["gap"] is None
    assert foreseen["kernel_passes"] == measured["kernel_passes"]
    assert measured["update_error"] < 1e-7
    for own in (foreseen["cpu_seconds"], measured["foreseen_cpu_seconds"]):
        assert own > 0
    each = foreseen["update_cpu_seconds"] * 5
    assert foreseen["cpu_seconds"] == pytest.approx(each * (foreseen["kernel_passes"] - 1))


@pytest.mark.parametrize(
    ("family", "n_actions"), [("forest", 2), ("garnet-costs", 10)]
)  # rewards and costs
def test_the_loss_of_a_stopping_rule(family, n_actions):
    sizes = {
        "n_states": 10,
        "n_actions": n_actions,
        "n_kernels": 5,
        "discount": 0.95,
        "radius": 0.1,
    }
    own = replace(RUN, task="stop", family=family, method="exact-vi", tol=0.1, **sizes)
    printed, corrected = (
        measure.measure(replace(own, rule=name)) for name in ("paper", "puterman")
    )
    assert printed["loss"] > own.tol  # the inverted rule stops far too early here
    assert corrected["loss"] <= own.tol
    assert printed["loss"] <= printed["gap"] + 1e-6


def test_the_time_of_the_duality_gap():
    for method in ("gap-exact", "gap-conic"):
        found = measure.measure(replace(RUN, task="gap", method=method, tol=0.25))
        assert found["status"] == "solved"
        assert found["gap"] <= 0.5
        assert found["duality_gap"] > 0


def test_a_convergence_curve_falls():
    found = measure.measure(replace(RUN, task="curve", method="algorithm-1 p=2 q=2", tol=1e-4))
    steps, gaps = np.array(found["curve"]).T
    assert (np.diff(steps) > 0).all()
    assert gaps[-1] < 0.01 * gaps[0]


def test_linear_algebra_has_one_thread(tmp_path, monkeypatch):
    from threadpoolctl import threadpool_info

    seen = []

    def spy(run):
        seen.append(
            {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        )
        return row(run.key)

    monkeypatch.setattr(runner, "measure", spy)
    assert runner.run_all([RUN], tmp_path) == (1, 0)
    assert seen == [{1}, {1}]  # warmed, measured


def test_runs_are_warmed_once(monkeypatch):
    seen = []
    monkeypatch.setattr(runner, "measure", lambda run: seen.append(run))
    warmed = set()
    runner.warm(RUN, warmed)
    runner.warm(replace(RUN, seed=3, n_states=50), warmed)
    assert [run.n_states for run in seen] == [4]
    runner.warm(replace(RUN, method="fast"), warmed)
    assert len(seen) == 2


# ---------------------------------------------------------------------- peers and the baseline


@pytest.mark.parametrize(("metric", "order"), baseline.PAIRS)
@pytest.mark.parametrize("radius", [0.0, 0.05, 0.4, 3.0])
@pytest.mark.parametrize("family", ["forest", "garnet", "machine"])
def test_the_baseline_gives_the_right_answers(family, radius, metric, order):
    nominal = {
        "forest": instances.forest(6),
        "garnet": instances.garnet(8, 3),
        "machine": instances.machine(6),
    }[family]
    model, ambiguity = (
        instances.perturb(nominal, 4),
        drmdp.Wasserstein(radius, metric, order, support="all"),
    )
    value = np.random.default_rng(1).normal(0, 3, model.n_states)
    sign = -1 if model.maximise else 1
    expected = sign * drmdp.bellman(model, ambiguity, sign * value).value
    found = [baseline.bellman(model, ambiguity, value, s, 1e-7) for s in range(model.n_states)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-7)


def test_the_baseline_refuses_other_balls():
    with pytest.raises(drmdp.InputError, match="baseline"):
        baseline.bellman(
            instances.forest(4),
            drmdp.Wasserstein(0.1, "l1", np.inf, support="all"),
            np.arange(4.0),
            0,
        )


@pytest.mark.parametrize("solver", ["cvxpy-clarabel", "cvxpy-scs"])
def test_updates_written_by_hand_agree(solver):
    model, ambiguity = (
        instances.perturb(instances.forest(5), 3),
        drmdp.Wasserstein(0.3, support="all"),
    )
    value = np.linspace(-3, 1, 5)
    expected = -drmdp.bellman(model, ambiguity, -value).value[2]
    update = peers.updater(solver, model, ambiguity)
    update(0.5 * value, 2)
    assert update(value, 2) == pytest.approx(expected, abs=1e-3 if solver == "cvxpy-scs" else 1e-6)


@pytest.mark.parametrize(("task", "discount"), [("reach", 1.0), ("total", 1.0), ("total", 0.9)])
@pytest.mark.parametrize("family", blocks.WORLDS)
def test_storm_answers_the_same_questions(family, task, discount):
    pytest.importorskip("stormpy")
    asked = {
        "study": "intervals",
        "task": task,
        "family": family,
        "n_states": 25,
        "rule": "certified",
    }
    for method in ("exact", "storm"):
        found = measure.measure(replace(RUN, method=method, discount=discount, **asked))
        assert found["status"] == ("solved" if method == "exact" else "stopped")
        assert 0 <= found["gap"] < 1e-3


@pytest.mark.parametrize("name", list(peers.NOMINAL))
@pytest.mark.parametrize("family", ["garnet-rewards", "garnet-costs", "forest"])
def test_solvers_of_ordinary_problems_agree_at_radius_zero(name, family):
    pytest.importorskip({"pymdptoolbox": "mdptoolbox"}.get(name, name))
    found = measure.measure(
        replace(
            RUN,
            study="nominal",
            family=family,
            n_states=12,
            n_kernels=1,
            radius=0.0,
            method=name,
            tol=1e-6,
        )
    )
    assert found["status"] == "solved"
    assert found["gap"] <= 1e-5


def test_a_peer_that_is_not_installed_is_a_row(monkeypatch):
    monkeypatch.setitem(sys.modules, "mdpsolver", None)
    found = measure.measure(
        replace(RUN, study="nominal", n_kernels=1, radius=0.0, method="mdpsolver")
    )
    assert found["status"] == "missing"
    assert "mdpsolver" in found["reason"]


def test_every_method_has_a_label_of_its_own():
    labels = [entry.label for name, entry in METHODS.items() if not name.startswith("gap-")]
    assert len(labels) == len(set(labels))
    assert Block("x", ((1, 1, 1),), tuple(METHODS)).methods == tuple(METHODS)
