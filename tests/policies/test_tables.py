"""Results as tables: what they hold, and that they come back as the same policy."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import drmdp
from drmdp import InputError
from drmdp.cli import main

pl = pytest.importorskip("polars")
BALL = drmdp.Wasserstein(0.3)


def model_of(names="text", kind="costs", next_costs=False, seed=0):
    """Five states, the last one terminal, an unavailable pair; policies that draw."""
    rng = np.random.default_rng(seed)
    states = {
        "text": ["good", "fair", "1", 'a,b "c"', "end"],
        "numbers": [3, 1, 4, 15, 9],
        "default": None,
        "tuples": [(0, 1), (0, 2), (1, 0), ("x", 3), (2, 2)],
        "mixed": ["a", 7, (1, 2), "7.5", "end"],
    }[names]
    available = np.ones((5, 3), dtype=bool)
    available[1, 2] = False
    last = 4 if states is None else states[4]
    prices = rng.normal(size=(5, 3, 5) if next_costs else (5, 3))
    return drmdp.Model(
        rng.dirichlet(np.ones(5), (4, 5, 3)),
        **{kind: prices},
        discount=0.9,
        states=states,
        actions=["run", "fix", "stop"],
        available=available,
        terminal=[last],
    )


KINDS = ["text", "numbers", "default", "tuples", "mixed"]


@pytest.mark.parametrize("names", KINDS)
@pytest.mark.parametrize("via", ["frame", "csv", "parquet", "pandas", "dict"])
def test_a_table_is_the_policy_it_was_made_of(tmp_path, names, via):
    model = model_of(names)
    solution = drmdp.solve(model, BALL)
    assert ((solution.policy > 0) & (solution.policy < 1)).any()  # it draws somewhere
    table = solution.to_frame()
    if via == "csv":
        table.write_csv(tmp_path / "t.csv")
        table = pl.read_csv(tmp_path / "t.csv")
    elif via == "parquet":
        table.write_parquet(tmp_path / "t.parquet")
        table = pl.read_parquet(tmp_path / "t.parquet")
    elif via == "pandas":
        table = pytest.importorskip("pandas").DataFrame(table.to_dict(as_series=False))
    elif via == "dict":
        table = solution.to_dict()
    np.testing.assert_array_equal(model.policy(table), model.policy(solution.policy))
    np.testing.assert_array_equal(
        drmdp.evaluate(model, BALL, table).upper, drmdp.evaluate(model, BALL, solution).upper
    )


@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_columns_are_what_they_say(kind):
    model = model_of(kind=kind)
    solution = drmdp.solve(model, BALL)
    table = solution.to_frame()
    assert table.columns == [
        "state",
        "action",
        "probability",
        "value",
        "lower",
        "upper",
        "nominal_value",
    ]
    mean = drmdp.policies.under(model, solution, [None])[0]
    for state, action, p, value, low, high, nominal in table.iter_rows():
        s = model.states.index(state)
        assert (value, low, high) == (solution.value[s], solution.lower[s], solution.upper[s])
        assert nominal == pytest.approx(mean[s], rel=1e-12)
        assert (action is None) == (p is None) == (state == "end")
    sums = table.group_by("state").agg(pl.col("probability").sum())
    assert {state: pytest.approx(1.0) for state in model.states[:4]} | {"end": 0} == dict(
        sums.iter_rows()
    )


def test_a_loaded_solution_knows_the_nominal_value_if_it_is_given_its_model(tmp_path):
    model = model_of()
    solution = drmdp.solve(model, BALL)
    solution.save(tmp_path / "s.npz")
    again = drmdp.Solution.load(tmp_path / "s.npz")
    assert again.to_frame()["nominal_value"].null_count() == len(again.to_frame())
    assert again.to_frame(model).equals(solution.to_frame())
    with pytest.raises(InputError, match="the solution is of another model"):
        again.to_frame(model_of(seed=1))
    with pytest.raises(InputError, match="q_values: a loaded solution does not hold its model"):
        _ = again.q_values


@pytest.mark.parametrize("kind", ["costs", "rewards"])
@pytest.mark.parametrize("next_costs", [False, True])
def test_q_values_are_those_of_the_kernel(kind, next_costs):
    """By hand; the value is the policy's mean of them, and no available action is better."""
    model = model_of(kind=kind, next_costs=next_costs)
    solution = drmdp.solve(model, BALL, tol=1e-9)
    sign = -1 if kind == "rewards" else 1
    prices = sign * (model.costs if next_costs else model.costs[:, :, None])
    by_hand = np.einsum("sat,sat->sa", solution.kernel, prices + 0.9 * solution.value)
    q = solution.q_values
    np.testing.assert_allclose(q[model.available], by_hand[model.available], rtol=1e-12)
    assert np.isnan(q[~model.available]).all()
    played = np.nansum(np.where(solution.policy > 0, solution.policy * q, 0), axis=1)
    np.testing.assert_allclose(played[:4], solution.value[:4], atol=1e-7)
    best = np.nanmax(q[:4], axis=1) if kind == "rewards" else np.nanmin(q[:4], axis=1)
    np.testing.assert_allclose(best, solution.value[:4], atol=1e-7)


def test_q_values_of_sparse_models():
    model = drmdp.instances.grid(9, n_actions=3, discount=0.9)
    solution = drmdp.solve(model, BALL)
    dense = np.asarray(solution.kernel)
    np.testing.assert_allclose(
        solution.q_values, model.costs + 0.9 * dense @ solution.value, rtol=1e-12
    )


def test_names_that_a_table_cannot_tell_apart_are_refused():
    model = drmdp.Model(np.full((1, 2, 1, 2), 0.5), costs=[1, 2], discount=0.5, states=["1", 1])
    with pytest.raises(InputError, match="states: two names are both '1' in a table"):
        drmdp.solve(model, BALL).to_frame()


def test_odd_tables_are_named():
    model = model_of()
    rows = {"state": ["good", "good"], "action": ["run", "run"]}
    with pytest.raises(InputError, match="the table has state 'good', action 'run' twice"):
        model.policy(pl.DataFrame(rows))
    with pytest.raises(InputError, match="policy: unknown state 'nowhere'"):
        model.policy(pl.DataFrame({"state": ["nowhere"], "action": ["run"]}))
    with pytest.raises(InputError, match="policy: state 'fair' is missing"):
        model.policy(pl.DataFrame({"state": ["good"], "action": ["run"]}))


# ---------------------------------------------------------------------- the command line


EUROPE = ["--separator", ";", "--decimal", ","]


@pytest.mark.parametrize(
    ("suffix", "options"),
    [
        (".csv", []),
        (".csv", EUROPE),
        (".csv", ["--separator", "tab"]),
        (".xlsx", []),
        (".parquet", []),
        (".json", []),
        (".npz", []),
    ],
)
@pytest.mark.parametrize("names", ["text", "numbers", "tuples"])
def test_out_is_read_back(tmp_path, monkeypatch, suffix, options, names):
    monkeypatch.chdir(tmp_path)
    model = model_of(names)
    drmdp.write(model, "m.npz")

    def run(*args):
        found = CliRunner().invoke(main, [*map(str, args), "--radius", "0.3", "--json"])
        assert found.exit_code == 0, found.stderr
        return json.loads(found.stdout)

    solved = run("solve", "m.npz", "--out", f"x{suffix}", *options)
    again = run("evaluate", "m.npz", f"x{suffix}")
    np.testing.assert_allclose(again["policy"], solved["policy"], atol=1e-15)
    np.testing.assert_allclose(again["value"], solved["value"], rtol=1e-5)
    plan = run("horizon", "m.npz", "--stages", 3, "--out", f"plan{suffix}", *options)
    worst = run("evaluate", "m.npz", f"plan{suffix}")
    np.testing.assert_allclose(worst["value"], plan["value"], rtol=1e-9, atol=1e-9)


def test_out_refuses_what_it_cannot_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drmdp.write(model_of(), "m.npz")
    runner = CliRunner()
    found = runner.invoke(main, ["solve", "m.npz", "--radius", "0.3", "--out", "x.ods"])
    assert (found.exit_code, "tables as .csv, .xlsx or .parquet" in found.stderr) == (2, True)
    for options, message in (
        ([*EUROPE, "--out", "x.xlsx"], "--separator: goes with --out and a .csv file"),
        (["--decimal", ","], "--decimal: goes with --out and a .csv file"),
        (
            ["--decimal", ",", "--separator", ",", "--out", "x.csv"],
            "--decimal: ',' is the separator",
        ),
        (
            ["--separator", ";;", "--out", "x.csv"],
            "--separator: expected one character, or tab, got ';;'",
        ),
    ):
        found = runner.invoke(main, ["solve", "m.npz", "--radius", "0.3", *options])
        assert (found.exit_code, message in found.stderr) == (2, True), found.stderr
    odd = drmdp.Model(np.full((1, 2, 1, 2), 0.5), costs=[1, 2], discount=0.5, states=["=1+1", "b"])
    drmdp.write(odd, "odd.npz")
    found = runner.invoke(main, ["solve", "odd.npz", "--radius", "0.3", "--out", "x.csv"])
    assert (found.exit_code, "a spreadsheet may run the name '=1+1'" in found.stderr) == (2, True)
    found = runner.invoke(
        main, ["solve", "odd.npz", "--radius", "0.3", "--out", "x.csv", "--keep-formulas"]
    )
    assert found.exit_code == 0
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    found = runner.invoke(main, ["evaluate", "m.npz", "bad.csv", "--radius", "0.3"])
    assert (
        found.exit_code,
        "bad.csv: expected the columns state and action, and probability where" in found.stderr,
    ) == (2, True)


def test_a_table_for_spreadsheets_of_europe(tmp_path, monkeypatch):
    """A byte order mark, semicolons and decimal commas: what such a program opens with a double
    click.
    """
    monkeypatch.chdir(tmp_path)
    drmdp.write(model_of(), "m.npz")
    for suffix, options in ((".csv", EUROPE), (".xlsx", [])):
        assert (
            CliRunner()
            .invoke(main, ["solve", "m.npz", "--radius", "0.3", "--out", f"x{suffix}", *options])
            .exit_code
            == 0
        )
    frame = drmdp.solve(drmdp.read("m.npz"), BALL).to_frame()
    raw = (tmp_path / "x.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    assert pl.read_csv(raw, separator=";", decimal_comma=True).equals(
        frame.cast(dict.fromkeys(["state", "action"], pl.String)), null_equal=True
    )
    book = pl.read_excel(tmp_path / "x.xlsx")
    assert [book[name].dtype for name in ("state", "probability")] == [pl.String, pl.Float64]
    for name in frame.columns:
        assert book[name].to_list() == frame[name].to_list()


def test_workbooks_hold_any_text_and_number(tmp_path):
    from drmdp.cli.workbook import MOST, workbook

    texts = ["=1+1", " a ", "<&>\"'", "ä–\U0001f600", "x\ty\nz", "_x0041_", "007", "1e5", ""]
    values = [0.1, 1e-300, 1.7976931348623157e308, -0.0, 2**53, 3, -5, 0.30000000000000004, None]
    (tmp_path / "x.xlsx").write_bytes(
        workbook(
            ["text", *map(str, range(30))],
            [[text, value, *[1] * 29] for text, value in zip(texts, values, strict=True)],
        )
    )
    book = pl.read_excel(tmp_path / "x.xlsx", infer_schema_length=None, drop_empty_rows=False)
    assert [text or "" for text in book["text"]] == texts
    assert book["0"].to_list() == values
    assert book.columns[-1] == "29"
    with pytest.raises(InputError, match="a sheet has at most 1,048,576 rows, the table 1,048,577"):
        workbook(["a"], [()] * MOST)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "p.csv",
            '\ufeffstate;action\r\ngood;run\r\nfair;fix\r\n1;stop\r\n"a,b ""c""";run\r\n;\r\n',
        ),
        (
            "p.csv",
            'state\taction\tprobability\ngood\trun\t0,25\ngood\tfix\t 0,75\nfair\tfix\t1\n1\tstop\t\n"a,b ""c"""\trun\t1,000\n',
        ),
        ("p.tsv", 'state\taction\ngood\trun\nfair\tfix\n1\tstop\n"a,b ""c"""\trun\n'),
        (
            "p.csv",
            'state;action;who\ngood;run;Ångström\nfair;fix;\n1;stop;\n"a,b ""c""";run;\n'.encode(
                "utf-16"
            ),
        ),
    ],
    ids=["excel", "tabs", "tsv", "utf-16"],
)
def test_a_rule_is_read_as_a_spreadsheet_saves_it(name, content, tmp_path):
    from drmdp.cli.policy_file import read_policy

    model = model_of()
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read_policy(str(tmp_path / name), model)
    mixed = b"0,25" in (tmp_path / name).read_bytes()
    rule = {
        "good": {"run": 0.25, "fix": 0.75} if mixed else "run",
        "fair": "fix",
        "1": "stop",
        'a,b "c"': "run",
    }
    np.testing.assert_array_equal(found, model.policy(rule))


def test_a_rule_of_a_workbook_and_one_with_a_word_for_a_number(tmp_path):
    from drmdp.cli.policy_file import read_policy
    from drmdp.cli.workbook import workbook

    model = model_of("numbers")
    (tmp_path / "p.xlsx").write_bytes(
        workbook(["state", "action"], [[name, "run"] for name in (3, 1, 4, 15)])
    )
    rule = dict.fromkeys((3, 1, 4, 15), "run")
    np.testing.assert_array_equal(read_policy(str(tmp_path / "p.xlsx"), model), model.policy(rule))
    (tmp_path / "p.csv").write_text("state,action\n3.0,run\n1.0,run\n4.0,run\n15.0,run\n")
    np.testing.assert_array_equal(read_policy(str(tmp_path / "p.csv"), model), model.policy(rule))
    (tmp_path / "p.csv").write_text("state,action,probability\n3,run,1\n1,run,often\n")
    with pytest.raises(
        InputError, match=r"p\.csv: line 3, column 'probability': 'often' is no number"
    ):
        read_policy(str(tmp_path / "p.csv"), model)
