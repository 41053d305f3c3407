"""`drmdp estimate` and `drmdp convert`: what they print and write, and one line for every
mistake.
"""

import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import drmdp
from drmdp.cli import main
from texts import back, ragged

BUS = [
    "--action",
    "replace",
    "--episode",
    "bus",
    "--time",
    "month",
    "--by",
    "bus",
    "--discount",
    "0.9",
    "--unvisited",
    "unavailable",
    "--partial",
    "pooled",
    "--costs",
    "3 * state + 5 * replace",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a directory with the log of some buses: mileage goes up until the engine is replaced."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    rows = []
    for bus in range(5):
        state = 0
        for month in range(60):
            replace = int(state >= 3 + bus % 3)
            rows.append((f"B{bus}", month, state, replace))
            state = 0 if replace else min(state + int(rng.integers(0, 3)), 7)
    frame = pl.DataFrame(rows, schema=["bus", "month", "state", "replace"], orient="row")
    frame.write_csv(folder / "log.csv")
    frame.write_parquet(folder / "log.parquet")
    (folder / "model.csv").write_text(
        "idstatefrom,idaction,idstateto,probability,reward\n1,1,1,1,2\n"
    )
    (folder / "par.csv").write_text("parameter,value\ndiscount,0.5\n")
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    """Run a command in the directory; it must end by itself."""
    monkeypatch.chdir(folder)

    def run(*args):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return run


def mistaken(result, message):
    """One line on standard error, nothing else."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_from_a_log_to_a_certified_policy_in_two_commands(run, tmp_path):
    result = run("estimate", "log.csv", *BUS, "-o", tmp_path / "model.npz")
    assert result.exit_code == 0, result.stderr
    result = run("solve", tmp_path / "model.npz", "--radius", 0.1, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["status"] == "solved"
    assert found["gap"] <= 1e-6 * max(found["value"])
    model = drmdp.read(tmp_path / "model.npz")
    assert model.n_kernels == 5
    policy = model.policy(np.array(found["policy"]))
    assert (
        policy[model.available.all(axis=1), 1].max() > 0
    )  # where both were seen, the engine is replaced somewhere


def test_the_summary_fits_a_terminal(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = run("estimate", "log.csv", *BUS, "--out", tmp_path / "model.npz")
    assert max(map(len, result.stdout.splitlines())) <= 80
    for text in (
        "log.csv: 300 rows, 5 episodes, 295 transitions; 5 rows end an episode",
        "state, action replace, episode bus, time month",
        "× 2 actions × 5 kernels; kernels by bus",
        "3 * state + 5 * replace",
        "never seen: unavailable",
        "lack data that others have: pooled",
        "rows assumed",
        "B4",
    ):
        assert text in " ".join(result.stdout.split()), text
    assert result.stderr == ""


def test_many_kernels_are_not_all_listed(run, tmp_path):
    result = run(
        "estimate",
        "log.csv",
        *BUS[:6],
        *BUS[8:],
        "--by",
        "bootstrap",
        "--kernels",
        20,
        "-o",
        tmp_path / "m.npz",
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith("… 8 more\n")
    result = run("estimate", "log.csv", *BUS[:6], *BUS[8:], "-o", tmp_path / "m.npz")
    assert "× 1 kernel, of all rows" in " ".join(result.stdout.split())
    assert "rows assumed" not in result.stdout


def test_json_is_the_model_and_the_summary(run, tmp_path):
    path = tmp_path / "model.npz"
    result = run("estimate", "log.parquet", *BUS, "-o", path, "--json")
    found = json.loads(result.stdout)
    model = drmdp.read(path)
    assert found["fingerprint"] == model.fingerprint
    assert (found["n_states"], found["n_actions"], found["n_kernels"]) == (model.n_states, 2, 5)
    assert found["summary"]["kernels"] == [f"B{bus}" for bus in range(5)]
    assert found["summary"]["transitions"] == 295
    assert found["summary"]["ends"] == 5
    assert found["seconds"] > 0
    run("estimate", "log.csv", *BUS, "-o", tmp_path / "other.npz")
    assert drmdp.read(tmp_path / "other.npz") == model


def test_terminal_states_are_typed(run, tmp_path):
    args = [
        "--action",
        "replace",
        "--episode",
        "bus",
        "--costs",
        "1",
        "--discount",
        "0.9",
        "--unvisited",
        "self-loop",
    ]
    mistaken(
        run("estimate", "log.csv", *args, "-o", tmp_path / "m.npz", "--terminal", "9"),
        "unknown terminal state '9'",
    )
    mistaken(
        run("estimate", "log.csv", *args, "-o", tmp_path / "m.npz", "--terminal", "3"),
        "column 'state': state '3' is terminal, but '0' follows",
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["log.csv", *BUS], "Missing option '-o' / '--out'."),
        (["log.csv", *BUS, "-o", "m.mat"], "m.mat: unknown suffix '.mat'"),
        (["log.csv", *BUS, "-o", "nowhere/m.npz"], "cannot be written"),
        (["none.csv", *BUS, "-o", "m.npz"], "none.csv: no such file"),
        (["log.ods", *BUS, "-o", "m.npz"], "log.ods: unknown suffix '.ods'"),
        (
            ["log.csv", *BUS, "--state", "x", "-o", "m.npz"],
            "log.csv: no column 'x' for --state; there are: bus",
        ),
        (["log.csv", *BUS, "--unvisited", "refuse", "-o", "m.npz"], "was never seen, one of"),
        (["log.csv", *BUS, "--by", "bootstrap", "-o", "m.npz"], "--by bootstrap needs --kernels"),
        (
            ["log.csv", *BUS, "--reward", "month", "-o", "m.npz"],
            "give exactly one of --cost, --reward, --costs, --rewards, got --reward and --costs",
        ),
        (
            ["log.csv", *BUS, "--discount", "2", "-o", "m.npz"],
            "discount: expected a number in [0, 1], got 2.0",
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(args, message, run, folder):
    mistaken(run("estimate", *args), message)
    assert not (folder / "m.npz").exists()


def test_without_polars_it_is_one_line(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "polars", None)
    result = run("estimate", "log.csv", *BUS, "-o", tmp_path / "m.npz")
    mistaken(result, "polars is not installed; in a clone of drmdp: pip install '.[data]'")
    mistaken(run("check", "nofile.csv"), "nofile.csv: no such file")


def test_pooled_rows_of_kernels_that_weigh_the_same_have_a_note(run, tmp_path):
    rows = "".join(f"{b},ok,run,ok,1\n{b},ok,run,worn,1\n{b},worn,run,ok,1\n" for b in "aab")
    (tmp_path / "few.csv").write_text(f"bus,state,action,next_state,cost\n{rows}c,ok,run,ok,1\n")
    said = "their mean need not be the kernel of all rows together (weights counts makes it so)"
    for weights, told in (("equal", True), ("counts", False)):
        more = ["--cost", "cost", "--by", "bus", "--partial", "pooled", "--discount", 0.9]
        file = tmp_path / "few.csv"
        result = run("estimate", file, *more, "--weights", weights, "-o", tmp_path / "few.npz")
        assert result.exit_code == 0, result.stderr
        assert (said in " ".join(result.stdout.split())) == told
    result = run("solve", tmp_path / "few.npz", "--radius", 0.1)
    assert result.stdout.index("Notes") > result.stdout.index("optimum at least")


# ---------------------------------------------------------------------- convert, and other formats


def test_convert_there_and_back(run, tmp_path):
    drmdp.write(ragged(), tmp_path / "a.npz")
    for target in ("b.csv", "c.tra", "d.drmdp"):
        result = run("convert", tmp_path / "a.npz", tmp_path / target)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.endswith(f"written to {tmp_path / target}\n")
    for source, options in (("b.csv", ()), ("c.tra", ("--discount", 0.9)), ("d.drmdp", ())):
        result = run("convert", tmp_path / source, tmp_path / "e.npz", *options, "--json")
        back(drmdp.read(tmp_path / "e.npz"), ragged())
        assert (
            json.loads(result.stdout)["fingerprint"] == drmdp.read(tmp_path / "e.npz").fingerprint
        )


def test_convert_passes_on_what_a_file_lacks(run, tmp_path):
    result = run(
        "convert",
        "model.csv",
        tmp_path / "m",
        "--to",
        "npz",
        "--base",
        1,
        "--parameters",
        "par.csv",
    )
    assert result.exit_code == 0, result.stderr
    model = drmdp.read(tmp_path / "m", format="npz")
    assert (model.discount, list(model.states)) == (0.5, [1])
    mistaken(run("convert", "model.csv", tmp_path / "m.npz"), "state 0 is never mentioned")
    mistaken(
        run("convert", "model.csv", tmp_path / "m.npz", "--from", "mat"),
        "'mat' is not one of 'npz', 'drmdp'",
    )


def test_other_formats_are_solved_and_judged(run, tmp_path):
    drmdp.write(ragged(), tmp_path / "m.csv")
    drmdp.write(ragged(), tmp_path / "m.tra")
    values = []
    for path, options in (
        ("m.csv", ()),
        ("m.csv", ("--discount", 0.9)),
        ("m.tra", ("--discount", 0.9)),
    ):
        result = run(
            "solve",
            tmp_path / path,
            "--radius",
            0.1,
            "--json",
            "--out",
            tmp_path / "s.npz",
            *options,
        )
        assert result.exit_code == 0, result.stderr
        values.append(json.loads(result.stdout)["value"])
        result = run("evaluate", tmp_path / path, tmp_path / "s.npz", "--radius", 0.1, *options)
        assert result.exit_code == 0, result.stderr
    assert values[0] == values[1] == values[2]
    mistaken(run("solve", tmp_path / "m.tra", "--radius", 0.1), "m.tra: no discount")


def test_a_real_process_counts_and_writes(folder, tmp_path):
    command = [
        sys.executable,
        "-m",
        "drmdp",
        "estimate",
        "log.csv",
        *BUS,
        "-o",
        str(tmp_path / "m.npz"),
        "--no-progress",
    ]
    found = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert "Written" in found.stdout


@pytest.fixture
def visits(folder):
    """Visits to machines at odd days; `replace` was never tried when good."""
    rng = np.random.default_rng(1)
    lines = ["machine,day,state,action"]
    for machine in range(150):
        day, state, action = np.datetime64("2020-01-01") + int(rng.integers(300)), 0, 0
        for _ in range(12):
            action = int(state == 2 or (state == 1 and rng.random() < 0.3))
            lines.append(
                f"M{machine},{day},{('good', 'fair', 'poor')[state]},{('run', 'replace')[action]}"
            )
            days = int(rng.integers(20, 120))
            state = 0 if action else min(2, state + int(rng.random() > np.exp(-days / 200)))
            day += days
    (folder / "visits.csv").write_text("\n".join(lines))
    return [
        "visits.csv",
        "--episode",
        "machine",
        "--time",
        "day",
        "--states",
        "good,fair,poor",
        "--costs",
        "1",
    ]


def test_estimate_rates(visits, run, folder):
    asked = [
        *visits,
        "--step",
        "continuous/month",
        "--interest",
        "3%/year",
        "--unvisited",
        "unavailable",
    ]
    jumps = [
        "--jump",
        "good=fair",
        "--jump",
        "fair=poor",
        "--jump",
        "fair=good",
        "--jump",
        "poor=good",
    ]
    found = run("check", *asked, *jumps)
    assert found.exit_code == 0, found.output
    result = run("estimate", *asked, *jumps, "-o", "rates.npz", "--by", "posterior", "--kernels", 5)
    assert result.exit_code == 0, result.output
    assert "none, time is continuous, in months" in result.output
    model = drmdp.read(folder / "rates.npz")
    assert model.n_kernels == 5
    assert any("rates and costs are per month" in note for note in model.notes)
    assert any("1 month is discounted by 0.99754" in note for note in model.notes)
    assert any(
        "so fast that rows do not tell" in note and "good after replace when fair" in note
        for note in model.notes
    )
    mistaken(run("estimate", *asked, "--jump", "good=fair", "-o", "x.npz"), "is followed by")
    mistaken(
        run("estimate", *asked, "--jump", "good", "-o", "x.npz"), "--jump 'good': expected FROM=TO"
    )
    mistaken(
        run("estimate", *asked, "--exact", "poor", "-o", "x.npz"),
        "'poor' is not terminal: name it with --terminal",
    )


def test_estimate_rows_that_are_alike(visits, run, folder):
    asked = [
        *visits,
        "--step",
        "month",
        "--within",
        "15 days",
        "--gaps",
        "fill",
        "--discount",
        "0.9",
    ]
    mistaken(run("estimate", *asked, "-o", "x.npz"), "a larger --within, up to half a step")
    asked = [
        *visits,
        "--gaps",
        "bridge",
        "--discount",
        "0.9",
        "-o",
        "alike.npz",
        "--actions",
        "run,replace",
    ]
    assert (
        run("estimate", *asked, "--same-row", "replace", "--unvisited", "unavailable").exit_code
        == 0
    )
    one = drmdp.read(folder / "alike.npz")
    np.testing.assert_array_equal(one.kernels[0, :, 1], np.eye(3)[[0, 0, 0]])
    assert (
        run("estimate", *asked, "--unvisited", "like:fair", "--prior", "pooled").exit_code == 0
    )  # `run` when poor
    mistaken(run("estimate", *asked, "--unvisited", "like:bad"), "'bad'")
    mistaken(run("estimate", *asked, "--prior", "much"), "prior")
