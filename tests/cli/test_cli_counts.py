"""What commands say of how much data a decision rests on, and where averages start."""

import csv
import json
import re

import numpy as np
import polars
import pytest
from click.testing import CliRunner

import drmdp
from drmdp.cli import main

LOG = ["--episode", "id", "--time", "t", "--cost", "cost", "--unvisited", "unavailable"]
ROWS = [("good", "run", 1), ("fair", "run", 3), ("worn", "fix", 9)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command line in a folder with a log: five machines that wear, and one that was scrapped
    once while good.
    """
    monkeypatch.chdir(tmp_path)
    lines = ["id,t,state,action,cost"]
    for machine in range(5):
        for t in range(15 + machine):
            state, action, cost = ROWS[(t + t // 7 + machine) % 3]
            lines.append(f"{machine},{t},{state},{action},{cost}")
    lines += ["9,0,good,scrap,0", "9,1,good,run,1"]
    (tmp_path / "log.csv").write_text("\n".join([*lines, ""]))

    def call(*arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    made = call("estimate", "log.csv", *LOG, "--discount", 0.9, "--out", "m.npz")
    assert made.exit_code == 0, made.output
    call.made = made.stdout
    return call


def test_estimate_and_check_list_thin_pairs(run):
    assert "Thin" in run.made
    assert "scrap when good (once)" in " ".join(run.made.split())
    assert "Start" in run.made
    assert "as the 6 episodes began" in run.made
    found = run("check", "log.csv", *LOG)
    assert "state 'good', action 'scrap': seen once, and led to 'good'" in found.stdout
    assert "--min-count 5 makes pairs seen fewer times unavailable" in found.stdout
    assert "nothing is odd" not in found.stdout
    few = run(
        "estimate",
        "log.csv",
        *LOG,
        "--discount",
        0.9,
        "--out",
        "few.npz",
        "--min-count",
        5,
        "--start",
        "rows",
    )
    assert "seen fewer than 5 times, and so unavailable: scrap when good (once)" in " ".join(
        few.stdout.split()
    )
    model = drmdp.read("few.npz")
    assert not model.available[:, model.actions.index("scrap")].any()
    assert model.start.endswith("transitions began")
    document = json.loads(
        run("estimate", "log.csv", *LOG, "--discount", 0.9, "--out", "few.npz", "--json").stdout
    )
    assert document["summary"]["start"] == "as the 6 episodes began"
    assert "scrap when good (once)" in document["summary"]["thin"][0]


def test_tables_say_on_how_many_rows_an_action_rests(run):
    result = run("solve", "m.npz", "--radius", 0.1, "--out", "s.csv")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    header = next(line for line in lines if line[:2] == ["state", "action"])
    assert header[2] == "rows"
    assert ["good", "scrap", "1"] in [line[:3] for line in lines]
    assert "scrap when good rests on 1 row" in result.stdout
    with open("s.csv") as file:
        table = {row["state"]: row for row in csv.DictReader(file)}
    assert (table["good"]["action"], table["good"]["rows"]) == ("scrap", "1")
    assert run("evaluate", "m.npz", "s.csv", "--radius", 0.1).exit_code == 0
    document = json.loads(run("solve", "m.npz", "--radius", 0.1, "--json").stdout)
    model = drmdp.read("m.npz")
    assert document["rows"] == model.pair_counts.tolist()
    assert "scrap when good rests on 1 row" in document["notes"]
    shown = run("inspect", "m.npz", "--radius", 0.1).stdout
    assert "Data" in shown
    assert f"{int(model.pair_counts.sum())} transitions" in shown
    assert ["good", "scrap", "1"] in [line.split()[:3] for line in shown.splitlines()]


def test_tables_of_plans_say_on_how_many_rows_they_rest(run):
    """The fewest of all stages, on screen and on the page, as the counts have it."""
    result = run(
        "horizon", "m.npz", "--stages", 3, "--radius", 0.1, "--out", "p.npz", "--report", "p.html"
    )
    assert result.exit_code == 0, result.output
    plan, seen = drmdp.HorizonSolution.load("p.npz"), drmdp.read("m.npz").pair_counts
    fewest = {
        state: min(int(seen[s, a]) for x in plan.policy for a in np.flatnonzero(x[s] > 0.01))
        for s, state in enumerate(plan.states)
    }
    assert fewest["good"] == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    header = next(line for line in lines if line[:1] == ["state"])
    assert header[1:5] == ["worst-case", "cost", "fewest", "rows"]
    for state, rows in fewest.items():
        assert str(rows) == next(line for line in lines if line[:1] == [state])[2]
    with open("p.html", encoding="utf-8") as file:
        page = file.read()
    assert '<th scope="col" class="n">fewest rows</th>' in page
    for state, rows in fewest.items():
        assert re.search(
            rf"<bdi>{state}</bdi>.*<td class=\"n\"><bdi>{rows}</bdi></td><td class=\"n\">", page
        )


def test_without_counts_there_is_no_column_of_rows(run):
    assert run("instance", "machine", "--states", 8, "--out", "plain.npz").exit_code == 0
    assert "rows" not in run("horizon", "plain.npz", "--stages", 3, "--radius", 0.1).stdout
    result = run("solve", "plain.npz", "--radius", 0.1, "--out", "s.parquet")
    assert " rows " not in next(
        line for line in result.stdout.splitlines() if line.split()[:1] == ["state"]
    )
    assert "rows" not in polars.read_parquet("s.parquet").columns
    assert "rows" not in json.loads(run("solve", "plain.npz", "--radius", 0.1, "--json").stdout)


def test_averages_start_where_they_are_told_to(run):
    def mean(*options):
        result = run("evaluate", "m.npz", "s.npz", "--radius", 0.1, *options)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("solve", "m.npz", "--radius", 0.1, "--out", "s.npz")
    solution, model = drmdp.Solution.load("s.npz"), drmdp.read("m.npz")
    value = dict(zip(model.states, solution.value, strict=True))
    assert f"{value['worn']:.6g} worst-case cost" in mean("--initial", "worn")
    assert "start: in state 'worn'" in mean("--initial", "worn")
    assert "episodes began" not in mean("--initial", "worn")
    assert f"{np.mean(solution.value):.6g} worst-case cost" in mean("--initial", "uniform")
    assert f"{model.initial @ solution.value:.6g} worst-case cost" in mean()
    for command in (["solve", "m.npz"], ["horizon", "m.npz", "--stages", 3], ["inspect", "m.npz"]):
        assert (
            "start: in state 'worn'" in run(*command, "--radius", 0.1, "--initial", "worn").stdout
        )
    wrong = run("solve", "m.npz", "--radius", 0.1, "--initial", "wrn")
    assert (wrong.exit_code, "unknown state to start in 'wrn'" in wrong.stderr) == (2, True)
