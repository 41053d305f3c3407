"""Stages on the command line, and the same again next month."""

import csv
import json
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp.cli import main
from drmdp.cli.verbs.redo import _compared, _old_set

pytest.importorskip("polars")
STATES, ACTIONS = ["good", "worn", "broken"], ["run", "service", "replace"]
OPTIONS = [
    "--episode",
    "machine",
    "--time",
    "month",
    "--state",
    "condition",
    "--cost",
    "cost",
    "--states",
    ",".join(STATES),
    "--actions",
    ",".join(ACTIONS),
    "--discount",
    "0.95",
]
PAID = {"run": 10, "service": 120, "replace": 600}


def run(*given, code=0):
    done = CliRunner().invoke(main, [str(each) for each in given])
    assert done.exit_code == code, done.output
    return done.output


def months(path, n, shift=0.0, machines=30):
    """A log of n months; from the thirteenth on worn machines break more often. The first months
    are the same whatever n is.
    """
    with open(path, "w", newline="") as stream:
        log = csv.writer(stream)
        log.writerow(["machine", "month", "condition", "action", "cost", "age"])
        for k in range(machines):
            rng, s = np.random.default_rng([7, k]), 0
            for t in range(n):
                a = int(rng.choice(3, p=[[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]][s]))
                log.writerow([k, t, STATES[s], ACTIONS[a], PAID[ACTIONS[a]] + [0, 60, 500][s], t])
                worse = shift if t >= 12 and s == 1 else 0.0
                p = (
                    [[0.8, 0.15, 0.05], [0.05, 0.7 - worse, 0.25 + worse], [0.05, 0.1, 0.85]][s]
                    if a == 0
                    else [0.8, 0.15, 0.05]
                )
                s = int(rng.choice(3, p=p))


def rows_of(path):
    """Transitions, by a loop."""
    found = {}
    with open(path) as stream:
        rows = list(csv.DictReader(stream))
    for now, then in pairwise(rows):
        if now["machine"] == then["machine"]:
            row = found.setdefault((now["condition"], now["action"]), np.zeros(3))
            row[STATES.index(then["condition"])] += 1
    return found


@pytest.fixture
def year(tmp_path, monkeypatch):
    """Logs of 12, 13 and 30 months, a model and its rule of the first, with a page."""
    monkeypatch.chdir(tmp_path)
    for n in (12, 13, 30):
        months(f"{n}.csv", n, 0.5, machines=12)
    run("estimate", "12.csv", *OPTIONS, "-o", "by.npz")
    return tmp_path


def test_next_month_again(year):
    run(
        "solve",
        "by.npz",
        "--radius",
        0.1,
        "--metric",
        "l1",
        "--out",
        "rule.npz",
        "--report",
        year / "page.html",
        "--unit",
        "CHF",
        "--report-radii",
        2,
    )
    told = json.loads(run("redo", "by.npz", "--log", "13.csv", "-o", "next", "--json"))
    before, after = rows_of("12.csv"), rows_of("13.csv")
    assert told["rows"] == [144, 156]
    assert told["transitions"] == [132, 144]
    grown = {(own["state"], own["action"]): own["rows"] for own in told["pairs"]}
    assert grown == {
        key: [before[key].sum(), row.sum()]
        for key, row in after.items()
        if row.sum() != before[key].sum()
    }
    new = drmdp.read("next/by.npz")
    run("estimate", "13.csv", *OPTIONS, "-o", "hand.npz")
    assert new == drmdp.read("hand.npz")
    rule = drmdp.Solution.load("next/rule.npz")
    hand = drmdp.solve(new, drmdp.Wasserstein(0.1, metric="l1"))
    assert np.array_equal(rule.value, hand.value)
    old = drmdp.read("by.npz")
    assert told["value"] == [
        old.initial @ drmdp.Solution.load("rule.npz").value,
        new.initial @ rule.value,
    ]
    later = json.loads(run("redo", "by.npz", "--log", "30.csv", "--json"))
    for tested, rows in ((told["within"], after), (later["within"], rows_of("30.csv"))):
        assert len(tested) == len(before)
        for pair in tested:
            key = pair["state"], pair["action"]
            far = np.abs(rows[key] / rows[key].sum() - before[key] / before[key].sum()).sum()
            unseen = ((before[key] == 0) & (rows[key] > 0)).any()
            assert pair["outside"] == bool(unseen or far > 0.1)
            assert pair["distance"] == (None if unseen else pytest.approx(far))
    assert any(pair["distance"] is None for pair in later["within"])
    assert "CHF" in (year / "next" / "page.html").read_text()
    for name in ("by.npz", "rule.npz", "next/by.npz", "next/rule.npz"):
        assert str(year) not in (year / name).read_bytes().decode("latin-1")
    # the month after, from what was written; worn machines break more often now
    text = run("redo", "next/by.npz", "--log", "30.csv")
    assert "360 rows (+204)" in text
    assert "Outside" in text
    assert not (year / "next" / "next").exists()


def test_the_same_log_changes_nothing(year):
    run(
        "estimate",
        "12.csv",
        *OPTIONS,
        "--by",
        "posterior",
        "--kernels",
        5,
        "--seed",
        3,
        "-o",
        "by.drmdp",
    )
    run(
        "solve",
        "by.drmdp",
        "--set",
        "kl",
        "--radius",
        0.05,
        "--rectangular",
        "sa",
        "--initial",
        "worn",
        "--out",
        "rule.npz",
    )
    told = json.loads(run("redo", "by.drmdp", "--log", "12.csv", "--json"))
    assert told["policy"] == told["pairs"] == told["written"] == []
    assert told["value"][0] == told["value"][1]
    text = run("redo", "by.drmdp", "--log", "12.csv")
    assert "unchanged" in text
    assert "+0 transitions" in text or "(+0)" in text


def test_new_states_are_told(year):
    run("estimate", "12.csv", *OPTIONS[:-6], "--discount", "0.95", "-o", "free.npz")
    text = (
        year / "12.csv"
    ).read_text() + "99,0,good,run,10,0\n99,1,lost,run,10,1\n99,2,good,run,10,2\n"
    (year / "lost.csv").write_text(text)
    (year / "free").mkdir()
    assert "unvisited" in run(
        "redo", "free.npz", "--log", "lost.csv", code=2
    )  # a pair that needs a rule
    run(
        "estimate",
        "12.csv",
        *OPTIONS[:-6],
        "--discount",
        "0.95",
        "--unvisited",
        "unavailable",
        "-o",
        "free.npz",
    )
    run("solve", "free.npz", "--radius", 0.1, "--out", "r.npz")
    text = run("redo", "free.npz", "--log", "lost.csv")
    assert "New states" in text
    assert "run when good (a new next state" in " ".join(text.split())


def test_stages_go_to_a_folder_that_horizon_reads_and_redo_repeats(year):
    staged = [*OPTIONS, "--stage", "age", "--bands", 6, "--partial", "pooled"]
    text = run("estimate", "12.csv", *staged, "-o", "season")
    assert "age 6 … age 11" in text
    assert sorted(file.name for file in (year / "season").iterdir()) == [
        "000-age-0.npz",
        "001-age-6.npz",
    ]
    text = run(
        "horizon",
        "season",
        "--radius",
        0.05,
        "--out",
        "plan.npz",
        "--half-cycle",
        "--report",
        "plan.html",
        "--report-radii",
        0,
    )
    assert "12 stages (age 0 to age 11), half of each in the state after it, 2 models" in " ".join(
        text.split()
    )
    assert "by age" in text
    models = [drmdp.read(file) for file in sorted((year / "season").iterdir())]
    plan = drmdp.finite_horizon(models, drmdp.Wasserstein(0.05), half_cycle=True)
    assert np.array_equal(drmdp.HorizonSolution.load("plan.npz").value, plan.value)
    assert "Age 0" in (year / "plan.html").read_text()
    run("evaluate", "season", "plan.npz", "--radius", 0.1)
    run("simulate", "season", "plan.npz", "--trajectories", 20)
    told = json.loads(run("redo", "season", "--log", "13.csv", "-o", "next", "--json"))
    assert "rows" not in told
    assert {own["stages"][0] for own in told["within"]} == {"age 0", "age 6"}
    again = json.loads(run("estimate", "13.csv", *staged, "-o", "hand", "--json"))
    assert [drmdp.read(own["path"]) for own in again["models"]] == [
        drmdp.read(file) for file in sorted((year / "next" / "season").iterdir())
    ]
    assert len(drmdp.HorizonSolution.load("next/plan.npz").stage_names) == 12
    assert "is there and not empty" in run(
        "redo", "season", "--log", "13.csv", "-o", "next", code=2
    )
    for out, why in (("x.npz", "a folder of their own"), ("season", "is there and not empty")):
        assert why in run("estimate", "12.csv", *staged, "-o", out, code=2)
    assert "expected a width" in run(
        "estimate", "12.csv", *staged, "--bands", "ten", "-o", "y", code=2
    )


def test_models_made_in_python_are_repeated_too(year):
    import polars as pl

    log = pl.read_csv("12.csv")
    prices = np.arange(9.0).reshape(3, 3)
    names = {
        "states": STATES,
        "actions": ACTIONS,
        "state": "condition",
        "episode": "machine",
        "time": "month",
    }
    model = drmdp.estimate(
        log, costs=prices, discount=0.9, initial={"good": 0.5, "worn": 0.5}, **names
    )
    drmdp.write(model, "python.npz")
    run("redo", "python.npz", "--log", "13.csv", "-o", "next")
    again = drmdp.read("next/python.npz")
    assert again == drmdp.estimate(
        "13.csv", costs=prices, discount=0.9, initial={"good": 0.5, "worn": 0.5}, **names
    )
    assert np.array_equal(again.costs, prices)


def test_mistakes_are_named(year):
    run("instance", "machine", "--states", 4, "--out", "other.npz")
    assert "was not made of a log" in run("redo", "other.npz", "--log", "13.csv", code=2)
    assert "not repeated" in run("redo", "by.npz", "--log", "13.csv")
    run("solve", "other.npz", "--radius", 0.1, "--out", "of_other.npz")
    assert "is of another model" in run(
        "redo", "by.npz", "--log", "13.csv", "--result", "of_other.npz", code=2
    )
    drmdp.solve(drmdp.read("by.npz"), drmdp.Wasserstein(0.1)).save("python.npz")
    assert "was not saved by `drmdp solve`" in run(
        "redo", "by.npz", "--log", "13.csv", "--result", "python.npz", code=2
    )
    assert "not repeated" in run("redo", "by.npz", "--log", "13.csv")
    for name in ("a.npz", "b.npz"):
        run("solve", "by.npz", "--radius", 0.1, "--out", name)
    assert "say which one: a.npz, b.npz" in run("redo", "by.npz", "--log", "13.csv", code=2)
    assert "Policy" in run("redo", "by.npz", "--log", "13.csv", "--result", "b.npz")
    assert (
        "no such file"
        in run("redo", "by.npz", "--log", "none.csv", "--result", "b.npz", code=2).lower()
    )
    run("solve", "by.npz", "--set", "reweight-any", "--out", "c.npz")
    assert "no distance between rows" in run(
        "redo", "by.npz", "--log", "13.csv", "--result", "c.npz"
    )
    (year / "damaged.npz").write_bytes(b"PK\3\4")
    assert "Policy" in run("redo", "by.npz", "--log", "13.csv", "--result", "b.npz")
    origin = dict(np.load("by.npz", allow_pickle=False)) | {"origin": np.array('{"estimate": 3}')}
    np.savez("forged.npz", **origin)
    assert "origin: expected how a log" in run("redo", "forged.npz", "--log", "13.csv", code=2)


def test_what_is_read_is_not_overwritten(year):
    run("solve", "by.npz", "--radius", 0.1, "--out", "rule.npz")
    (year / "old").mkdir()
    (year / "rule.npz").rename(year / "old" / "rule.npz")
    held = {file: file.read_bytes() for file in year.rglob("*") if file.is_file()}
    for given, role in (
        (["--log", "13.csv", "-o", "."], "MODEL"),
        (["--log", "13.csv", "-o", "old", "--result", "old/rule.npz"], "--result"),
        (["--log", "13.csv", "-o", "13.csv"], "--log"),
    ):
        text = run("redo", "by.npz", *given, code=2)
        assert "would overwrite" in text
        assert role in text
    assert held == {file: file.read_bytes() for file in year.rglob("*") if file.is_file()}


def test_a_typo_in_the_new_log_is_told_with_its_cure(year):
    (year / "typo.csv").write_text((year / "13.csv").read_text().replace("service", "servcie", 1))
    text = run("redo", "by.npz", "--log", "typo.csv", code=2)
    assert "(did you mean 'service'?)" in text
    assert "--rename servcie=service if so" in text
    assert "redo has no such options: edit the log, or run `drmdp estimate` again" in text
    (year / "lost.csv").write_text((year / "13.csv").read_text().replace("condition", "what", 1))
    text = run("redo", "by.npz", "--log", "lost.csv", code=2)
    assert "--state" in text
    assert "`state`" not in text


def test_what_prints_the_same_is_no_change_and_the_farthest_row_is_named():
    class Result:
        states, actions, value = ("bad",), ("service", "run"), np.ones(1)

        def __init__(self, share):
            self.policy = np.array([[share, 1 - share]])

    model = drmdp.Model(np.ones((1, 2, 1)), costs=[[1, 1]], discount=0.9, states=["bad"])
    ball, new = (
        drmdp.Wasserstein(0.1),
        drmdp.estimate(
            {"state": ["bad"], "action": ["run"], "next_state": ["bad"], "cost": [1.0]},
            cost="cost",
            discount=0.9,
        ),
    )
    about = _compared(Result(0.866), Result(0.874), [new], [(model, ball)], {})
    assert about["policy"] == []
    about = _compared(Result(0.866), Result(0.88), [new], [(model, ball)], {})
    assert [change["after"] for change in about["policy"]] == ["service 88%, run 12%"]
    pair = {"stages": [], "state": "bad", "action": "run", "rows": 3, "outside": False}
    near, far = {"distance": 0.001, "radius": 0.5}, {"distance": 0.006, "radius": 0.05}
    said = _old_set([{**pair, **near}, {**pair, **far, "action": "service"}])
    farthest = "the farthest, service when bad, is 0.006 away, and its radius is 0.05"
    assert said["Old set"] == f"2 of 2 pairs seen now are within the old radius; {farthest}"


def test_options_of_0_are_repeated(year):
    run("solve", "by.npz", "--radius", 0, "--tol", 0.1, "--out", "rule.npz")
    told = json.loads(run("redo", "by.npz", "--log", "13.csv", "-o", "next", "--json"))
    new = drmdp.solve(drmdp.read("next/by.npz"), drmdp.Wasserstein(0), tol=0.1)
    assert told["value"][1] == drmdp.read("next/by.npz").initial @ new.value


def ending(path, log):
    """The log until machines break for the first time."""
    with open(log, newline="") as stream:
        rows = list(csv.reader(stream))
    broken = set()
    with open(path, "w", newline="") as stream:
        for row in rows:
            if row[0] not in broken:
                csv.writer(stream).writerow(row)
            broken |= {row[0]} if row[2] == "broken" else set()


def test_results_of_other_models_are_passed_over(year):
    """One that was solved for an average, in the same folder as a model that ends."""
    ending("first.csv", "12.csv")
    ending("next.csv", "13.csv")
    run("estimate", "first.csv", *OPTIONS, "--terminal", "broken", "--out", "ends.npz")
    run("solve", "by.npz", "--radius", 0.1, "--criterion", "average", "--out", "average.npz")
    run("solve", "by.npz", "--radius", 0.1, "--initial", "broken", "--out", "started.npz")
    run("solve", "ends.npz", "--radius", 0.1, "--out", "rule.npz")
    assert "Policy" in run("redo", "ends.npz", "--log", "next.csv")
    for other in ("average.npz", "started.npz"):
        told = run("redo", "ends.npz", "--log", "next.csv", "--result", other, code=2)
        assert f"--result {other}: is of another model" in " ".join(told.split())


def test_a_discount_that_was_changed_is_kept(year):
    ending("first.csv", "12.csv")
    run("estimate", "first.csv", *OPTIONS, "--terminal", "broken", "--out", "ends.npz")
    run("convert", "ends.npz", "total.npz", "--discount", 1)
    run("solve", "total.npz", "--radius", 0.1, "--out", "rule.npz")
    run("redo", "total.npz", "--log", "first.csv", "--out", "next")
    assert drmdp.read("next/total.npz").discount == 1
