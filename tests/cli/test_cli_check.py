"""`drmdp check`, the options of logs, and messages that speak of options."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from test_dirty_logs import FAIR, presses, put, text

import drmdp
from drmdp.cli import main
from drmdp.cli.messages import spoken

LOG = [
    "--state",
    "Condition",
    "--action",
    "Action",
    "--episode",
    "Machine",
    "--time",
    "Month",
    "--cost",
    "Cost",
]
RULES = ["--unvisited", "unavailable", "--partial", "pooled"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a directory with clean.csv, dirty.csv and gaps.csv."""
    monkeypatch.chdir(tmp_path)
    rows = presses()
    (tmp_path / "clean.csv").write_text(text(rows))
    (tmp_path / "gaps.csv").write_text(text([row for k, row in enumerate(rows) if k % 3 != 2]))
    put(FAIR, "Condition", "fiar")(rows)
    (tmp_path / "typo.csv").write_text(text(rows))
    put(40, "Cost", "$5")(rows)
    put(60, "Condition", "")(rows)
    (tmp_path / "dirty.csv").write_text(text(rows))

    def run(*args):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return run


def test_a_clean_log_ends_with_0(run):
    result = run("check", "clean.csv", *LOG, *RULES, "--by", "Machine")
    assert (result.exit_code, result.stderr) == (0, "")
    words = " ".join(result.stdout.split())
    for part in (
        "clean.csv: 144 rows, 6 episodes, 138 transitions; 6 rows end an episode",
        "Step 1 month (guessed); times like 2020-01-31",
        "order: alphabet; --states fair,good,poor in another order changes it",
        "Actions repair ",
        "× 3 actions × 6 kernels; kernels by Machine",
        "Weights equal",
        "Assumed time step: 1 month, guessed",
    ):
        assert part in words, words
    assert result.stdout.endswith("clean.csv: nothing is odd\n")


def test_cures_can_be_pasted(run):
    """Each is an option with its value, quoted for a shell; with it the log is read."""
    rows = presses()
    for row in rows:
        row[4] = f"0'{int(row[4]):03} CHF"
    Path("swiss.csv").write_text(text(rows))
    result = run("check", "swiss.csv", *LOG, *RULES)
    assert (result.exit_code, '  cure: with --thousands "\'" "0\'003" is 3\n' in result.stdout) == (
        2,
        True,
    )
    result = run("check", "swiss.csv", *LOG, *RULES, "--thousands", "'")
    assert (result.exit_code, "column 'Cost': the unit 'CHF' is removed" in result.stdout) == (
        0,
        True,
    )
    for row in rows:
        row[4] = row[4][2:5].lstrip("0") + ".000"
    Path("points.csv").write_text(text(rows))
    result = run("check", "points.csv", *LOG, *RULES)
    assert (
        result.exit_code,
        "say which: --decimal . for the first, --thousands . for the second" in result.stdout,
    ) == (2, True)
    costs = []
    for options in (["--decimal", "."], ["--thousands", "."]):
        assert (
            run(
                "estimate", "points.csv", *LOG, *RULES, *options, "--discount", 0.9, "-o", "m.npz"
            ).exit_code
            == 0
        )
        costs.append(drmdp.read("m.npz").costs)
    assert costs[1].tolist() == (1000 * costs[0]).tolist()


def test_an_odd_log_ends_with_2_and_every_line(run):
    result = run("check", "dirty.csv", *LOG, *RULES)
    assert (result.exit_code, result.stderr) == (2, "")
    for part in (
        "number, 1 place, refused\n  line 40, column 'Cost': '$5' is no number\n",
        "missing, 1 place, refused\n  line 60, column 'Condition': the state is missing\n",
        f"look-alike, 1 place\n  line {FAIR}, column 'Condition': 'fiar' (",
        "  cure: --rename fiar=fair if they are the same; --states if all are meant\n",
        "dirty.csv: 4 things odd; an estimate is refused\n",
    ):
        assert part in result.stdout, result.stdout
    result = run("check", "typo.csv", *LOG, *RULES)
    assert result.exit_code == 4
    assert result.stdout.endswith("typo.csv: 2 things odd; an estimate is made, with warnings\n")
    assert run("check", "typo.csv", *LOG, *RULES, "--rename", "fiar=fair").exit_code == 0
    meant = run("check", "typo.csv", *LOG, *RULES, "--states", "good, fair, poor, fiar")
    assert "thin, 1 place\n  state 'fiar', action '" in meant.stdout
    assert meant.stdout.endswith("typo.csv: 1 thing odd; an estimate is made, with warnings\n")


def test_json_has_lines_columns_and_values(run):
    result = run("check", "dirty.csv", *LOG, *RULES, "--json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert found["refused"]
    number, missing, alike, _ = found["findings"]
    assert number["places"] == [
        {
            "what": "'$5' is no number",
            "lines": [40],
            "column": "Cost",
            "value": "$5",
            "word": "line",
        }
    ]
    assert (missing["kind"], missing["refused"], alike["kind"], alike["refused"]) == (
        "missing",
        True,
        "look-alike",
        False,
    )
    assert found["summary"]["step"] == "1 month (guessed)"
    assert dict(found["summary"]["states"])["fiar"] == 1


def test_gaps_are_refused_cut_or_bridged(run):
    estimate = ["estimate", "gaps.csv", *LOG, *RULES, "--discount", "0.9", "-o", "m.npz"]
    result = run(*estimate)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    for part in (
        "gaps.csv: lines 3 and 4: episode 'Press-1': from 2020-02-01 to 2020-04-01 is 2 months, one of 42 such gaps",
        "--gaps cut ends the episode there, --gaps bridge makes a transition all the same",
    ):
        assert part in result.stderr
    result = run(*estimate, "--gaps", "cut")
    assert "42 gaps in time: the episode ends there and begins again" in " ".join(
        result.stdout.split()
    )
    assert "42 gaps in time: the episode ends there and begins again" in drmdp.read("m.npz").notes
    result = run(*estimate, "--gaps", "bridge")
    assert "further apart than 1 month" in " ".join(result.stdout.split())


def test_look_alikes_are_warned_of_and_noted(run):
    estimate = ["estimate", "typo.csv", *LOG, *RULES, "--discount", "0.9", "-o", "m.npz"]
    result = run(*estimate)
    assert result.exit_code == 0
    assert result.stderr.startswith(
        f"drmdp: warning: typo.csv: line {FAIR}, column 'Condition': 'fiar' ("
    )
    assert result.stderr.endswith(
        "; --rename fiar=fair if they are the same; --states if all are meant\n"
    )
    assert "States fair " in " ".join(result.stdout.split())
    assert ", fiar 1, " in result.stdout
    assert any("looks like 'fair'" in note for note in drmdp.read("m.npz").notes)
    result = run(
        *estimate,
        "--rename",
        "fiar=fair",
        "--states",
        "good,fair,poor",
        "--actions",
        "run,repair,replace",
    )
    assert (result.exit_code, result.stderr) == (0, "")
    model = drmdp.read("m.npz")
    assert (list(model.states), list(model.actions)) == (
        ["good", "fair", "poor"],
        ["run", "repair", "replace"],
    )
    assert "labels renamed: fiar is fair" in model.notes


def test_kernels_have_the_names_of_their_column(run):
    run(
        "estimate",
        "clean.csv",
        *LOG,
        *RULES,
        "--by",
        "Machine",
        "--weights",
        "rows",
        "--discount",
        "0.9",
        "-o",
        "m.npz",
    )
    model = drmdp.read("m.npz")
    assert list(model.kernel_names) == [f"Press-{k}" for k in range(1, 7)]
    assert "time step: 1 month, guessed" in model.notes


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.csv"], "none.csv: no such file"),
        (
            ["clean.csv"],
            "no column 'state' for --state, 'action' for --action (did you mean 'Action'?); there are",
        ),
        (["clean.csv", *LOG, "--by", "Foo"], "no column 'Foo' for --by; there are"),
        (["clean.csv", *LOG, "--step", "moon"], "--step: expected a number, or year, quarter"),
        (["clean.csv", *LOG, "--step", "2"], "--step 2: the times are dates"),
        (["clean.csv", *LOG[:-4], "--gaps", "cut"], "--gaps cut needs --time"),
        (
            ["clean.csv", *LOG, "--gaps", "jump"],
            "Invalid value for '--gaps': 'jump' is not one of 'refuse', 'cut', 'bridge', 'fill'",
        ),
        (
            ["clean.csv", *LOG, "--interest", "3"],
            "--interest: expected a rate and its time, such as '3%/year'; got '3'",
        ),
        (
            ["clean.csv", *LOG, "--zone", "UTC"],
            "--zone UTC: the times in column 'Month' have no zone",
        ),
        (["clean.csv", *LOG, "--rename", "x"], "--rename 'x': expected OLD=NEW"),
        (["clean.csv", *LOG, "--separator", ";"], "look separated by ',': --separator ,"),
        (["clean.csv", *LOG, "--encoding", "klingon"], "--encoding klingon is unknown"),
        (["clean.csv", *LOG, "--sheet", "Log"], "--sheet Log: only a workbook (.xlsx) has sheets"),
        (["clean.csv", *LOG, "--header-row", "3"], "no column 'Condition' for --state"),
        (
            ["clean.csv", *LOG, "--fill-down", "Hall"],
            "--fill-down: 'Hall' is none of the columns used",
        ),
        (
            ["clean.csv", *LOG, "--skip-rows-without", "Hall"],
            "--skip-rows-without: 'Hall' is no column",
        ),
    ],
)
def test_mistakes_are_one_line_that_speaks_of_options(args, message, run):
    result = run("check", *args)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr


def test_labels_may_be_numbers(run, tmp_path):
    (tmp_path / "n.csv").write_text("state,action,next_state\n1,a,2\n2,a,1\n")
    common = ["--costs", "1", "--discount", "0.9", "-o", "m.npz", "--unvisited", "unavailable"]
    assert run("estimate", "n.csv", *common, "--states", "2,1,3", "--terminal", "3").exit_code == 0
    assert list(drmdp.read("m.npz").states) == [2, 1, 3]
    result = run("estimate", "n.csv", *common, "--states", "2,3")
    assert (
        "n.csv: line 2, column 'state': the state 1 is none of those given: 2, 3" in result.stderr
    )
    result = run("estimate", "n.csv", *common, "--states", "2,x")
    assert "line 2, column 'state': the state '1' is none of those given: '2', 'x'" in result.stderr


def test_words_of_python_become_options():
    command = click.Command(
        "c",
        params=[
            click.Option(["--by"]),
            click.Option(["--kernels", "n_kernels"]),
            click.Option(["--rename"]),
        ],
    )
    for text_, said in (
        ("`by='bootstrap'` needs `n_kernels`", "--by bootstrap needs --kernels"),
        ("take by='a b', not by=3", "take --by 'a b', not --by 3"),
        ("`rename={'a b': 'c', 'd': 'e'}` if so", "--rename 'a b=c' --rename d=e if so"),
        ("`other='x'` and `state`", "`other='x'` and `state`"),
        ("`check_log` lists them", "drmdp check lists them"),
    ):
        assert spoken(text_, command) == said
    assert spoken("`by='x'`", None) == "`by='x'`"


def test_a_call_of_estimate_is_a_call_of_check(run):
    """Every option is taken; nothing is written."""
    options = [*LOG, *RULES, "--discount", 0.9, "-o", "model.npz", "--seed", 1]
    for more in (
        ["--by", "Machine", "--weights", "rows"],
        ["--by", "posterior", "--kernels", 3, "--prior", 0.5],
    ):
        assert run("estimate", "clean.csv", *options, *more).exit_code == 0
        Path("model.npz").unlink()
        assert run("check", "clean.csv", *options, *more).exit_code == 0
        assert not Path("model.npz").exists()
    for bad, message in (
        ("--discount", "--discount: expected a number in [0, 1], got 2"),
        ("--kernels", "needs --by"),
    ):
        result = run("check", "clean.csv", *options, bad, 2)
        assert result.exit_code == 2
        assert message in result.stderr


def test_a_formula_of_costs_is_checked(run):
    options = [*LOG[:-2], *RULES]
    assert (
        run(
            "check",
            "clean.csv",
            *options,
            "--costs",
            "CASE WHEN Action = 'repair' THEN 9 ELSE 1 END",
        ).exit_code
        == 0
    )
    result = run("check", "typo.csv", *options, "--costs", "3 * price")
    assert result.exit_code == 2
    assert "costs, 1 place, refused\n  costs '3 * price': " in result.stdout
    assert result.stdout.endswith("an estimate is refused\n")


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["table", "json"])
def test_the_exit_code_stays_if_nobody_reads_the_output(more, run, tmp_path):
    """0 nothing is odd, 4 warnings, 2 refused: also with `| head`."""
    for name, code in (("clean.csv", 0), ("typo.csv", 4), ("dirty.csv", 2)):
        read, write = os.pipe()
        os.close(read)
        command = [
            sys.executable,
            "-m",
            "drmdp",
            "check",
            name,
            *LOG,
            *RULES,
            "--no-progress",
            *more,
        ]
        done = subprocess.run(
            command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, check=False
        )
        os.close(write)
        assert (done.returncode, done.stderr) == (code, b"")


def test_times_have_options_of_their_own(run):
    rows = presses()
    Path("two.csv").write_text(
        text(
            [
                [
                    row[0],
                    f"15/{row[1][5:7]}/{row[1][:4]}"
                    if row[1] < "2021"
                    else f"{row[1][5:7]}/15/{row[1][:4]}",
                    *row[2:],
                ]
                for row in rows
            ]
        )
    )
    result = run("check", "two.csv", *LOG, *RULES)
    cure = (
        "--time-format %d/%m/%Y --time-format %m/%d/%Y reads both, where no cell has two readings"
    )
    assert (result.exit_code, cure in result.stdout) == (2, True)
    formats = ["--time-format", "%d/%m/%Y", "--time-format", "%m/%d/%Y"]
    assert run("check", "two.csv", *LOG, *RULES, *formats, "--interest", "3%/year").exit_code == 0
    more = [
        *formats,
        "--by",
        "time:year",
        "--step",
        "30 days",
        "--within",
        "5 days",
        "--interest",
        "3%/year",
    ]
    assert run("estimate", "two.csv", *LOG, *RULES, *more, "-o", "m.npz").exit_code == 0
    model = drmdp.read("m.npz")
    assert list(map(str, model.kernel_names)) == ["2020", "2021"]
    assert model.discount == pytest.approx(1.03 ** (-30 / 365.2425))
    result = run("estimate", "clean.csv", *LOG, *RULES, "--discount", 0.03, "-o", "m.npz")
    assert result.stderr.endswith("3 % interest a step is 0.970874; or --interest 3%/year\n")
    result = run("check", "clean.csv", *LOG, *RULES, "--discount", 0.03)
    assert (result.exit_code, "a discount of 0.03 forgets 97%" in result.stdout) == (4, True)
    result = run("estimate", "clean.csv", *LOG, *RULES, "-o", "m.npz")
    assert (
        result.exit_code,
        "give --discount, or --interest such as '3%/year'" in result.stderr,
    ) == (2, True)


def test_rows_are_skipped_without_any_of_several_columns(run):
    rows = presses()
    put(33, "Condition", "")(rows)
    put(55, "Cost", "")(rows)
    Path("empty.csv").write_text(text(rows))
    asked = ["estimate", "empty.csv", *LOG, *RULES, "--gaps", "cut", "--discount", "0.9"]
    both = ["--skip-rows-without", "Condition", "--skip-rows-without", "Cost"]
    result = run(*asked, *both, "-o", "model.npz")
    assert result.exit_code == 0, result.output
    note = "rows without 'Condition' or 'Cost' are skipped: 2, the first in line 33"
    model = drmdp.read("model.npz")
    assert note in model.notes
    assert model.origin["estimate"]["skip_rows_without"] == ["Condition", "Cost"]


def test_the_cost_of_the_end_is_told_and_taken(run):
    rows = presses()
    rows[30][2:] = "scrapped", "", "18000"
    del rows[31:48]
    Path("ends.csv").write_text(text(rows))
    asked = ["ends.csv", *LOG, *RULES]
    told = run("check", *asked, "--terminal", "scrapped").stdout
    assert "line 32, column 'Cost': 18000 is not used: 'scrapped' is terminal" in told
    assert "cure: --terminal scrapped=18000 says what the end costs" in told
    assert "is not used" not in run("check", *asked, "--terminal", "scrapped=18000").stdout
    result = run("estimate", *asked, "--terminal=scrapped=18000", "--discount=.9", "-o", "m.npz")
    assert result.exit_code == 0, result.output
    model = drmdp.read("m.npz")
    assert model.ends[model.states.index("scrapped")] == 18000
    assert model.origin["estimate"]["terminal"] == {"scrapped": 18000.0}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["scrapped=18.000,00"], "expected STATE, or STATE=COST with a number such as 18000"),
        (["poor", "poor=3"], "--terminal 'poor=3': the state is given twice"),
        (["Poor=3"], "unknown terminal state 'Poor' (did you mean 'poor'?)"),
        (["por"], "unknown terminal state 'por' (did you mean 'poor'?)"),
        (["poor=nan"], "terminal: state 'poor': expected a finite value, got nan"),
    ],
)
def test_a_final_cost_that_is_none_is_refused(run, given, message):
    asked = [f"--terminal={text}" for text in given]
    result = run(
        "estimate",
        "clean.csv",
        *LOG,
        *RULES,
        *asked,
        "--after-terminal=new",
        "--discount=.9",
        "-o",
        "m.npz",
    )
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_a_state_to_start_in_that_is_unknown_is_guessed(run):
    asked = ["clean.csv", *LOG, *RULES, "--initial", "Good"]
    result = run("estimate", *asked, "--discount=.9", "-o", "m.npz")
    assert "unknown state to start in 'Good' (did you mean 'good'?)" in result.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0,99", "'0,99': write a decimal point, 0.99"),
        ("-1,5", "'-1,5': write a decimal point, -1.5"),
        ("1,000,5", "'1,000,5' is not a valid float"),
        ("a,5", "'a,5' is not a valid float"),
    ],
)
def test_a_decimal_comma_of_an_option_is_told(run, given, message):
    result = run("estimate", "clean.csv", *LOG, "-o", "m.npz", f"--discount={given}")
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_rows_of_pairs_are_told_in_a_sentence(run):
    run("estimate", "clean.csv", *LOG, *RULES, "--discount", "0.9", "-o", "m.npz")
    words = " ".join(run("inspect", "m.npz", "--radius", 0.1).stdout.split())
    assert "138 transitions; an available pair has " in words
