"""Labels, sources, kernels and checks of logs, beyond the deck of `test_dirty_logs`."""

import datetime
import os
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_dirty_logs import COLUMNS, HEADER, MONTHS, frame, once, presses, text

from drmdp import InputError, MissingExtra, Notice, check_log, estimate
from drmdp.estimation.log.labels import look_alikes
from drmdp.estimation.log.table import Columns
from drmdp.estimation.pipeline import fit
from drmdp.estimation.settings import Settings
from workbook import write_sheets, write_workbook

# ---------------------------------------------------------------------- labels


def test_look_alikes():
    assert look_alikes({"fair": 100, "fiar": 1, "fai": 2, "faair": 3, "fain": 11, "poor": 50}) == [
        ("faair", "fair", "one letter apart"),
        ("fai", "fair", "one letter apart"),
        ("fiar", "fair", "one letter apart"),
    ]
    assert (
        look_alikes({"Press-01": 60, "Press-02": 1, "Press-10": 1, "s12": 9, "s1": 1, "1": 5, 1: 2})
        == []
    )
    assert look_alikes({"up": 100, "us": 1, "left": 50, "right": 50, "lift": 40}) == []
    assert [
        found[:2] for found in look_alikes({"no repair": 5, "No_Repair": 9, "norepair": 1})
    ] == [
        ("no repair", "No_Repair"),
        ("norepair", "No_Repair"),
    ]
    assert look_alikes({"O1": 1, "01": 50, "A01": 50, "AO1": 1}) == [
        ("AO1", "A01", "one letter apart")
    ]
    assert look_alikes({"{x}": 3, "{X}": 1}) == [("{X}", "{x}", "the same but for capitals")]


def test_the_first_place_of_a_look_alike_is_named():
    state = ["fair", "fair", "fair", "fiar", "fair", "fiar"]
    table = {
        "state": state,
        "action": [0] * 6,
        "next_state": ["fair", "fair", "fiar", "fair", "fair", "fair"],
    }
    finding, _ = check_log(table, cost=None).findings
    assert (finding.places[0].lines, finding.places[0].column) == ((3,), "next_state")
    table["next_state"][2], table["next_state"][4] = "fair", "fiar"
    finding, _ = check_log(table, cost=None).findings
    assert (finding.places[0].lines, finding.places[0].column) == ((4,), "state")


def test_a_row_without_a_time_makes_no_gap():
    table = frame(presses())
    table["Month"][8] = None
    assert [finding.kind for finding in check_log(table, **COLUMNS).findings] == ["missing"]
    table["Machine"][30] = None
    assert [finding.kind for finding in check_log(table, **COLUMNS).findings] == [
        "missing",
        "missing",
    ]


def test_names_that_are_given_are_no_look_alikes():
    table = {"state": ["ok", "OK"], "action": [0, 0], "next_state": ["OK", "ok"]}
    with pytest.warns(Notice, match="looks like"):
        estimate(table, costs="1", discount=0.9)
    model = estimate(table, costs="1", discount=0.9, states=["ok", "OK"])
    assert not any("looks like" in note for note in model.notes)


def test_a_label_is_not_renamed_in_two_roles():
    table = {"state": [1, 2], "action": [2, 2], "next_state": [2, 1]}
    with pytest.raises(InputError, match="`rename`: 2 is a state and an action"):
        estimate(table, costs="1", discount=0.9, rename={2: 3})
    assert list(estimate(table, costs="1", discount=0.9, rename={1: 7}, terminal=[]).states) == [
        2,
        7,
    ]
    real = {"state": [1.0, 2.0], "action": ["a", "a"], "next_state": [2.0, 1.0]}
    assert list(estimate(real, costs="1", discount=0.9, rename={1: 7}).states) == [2, 7]


def test_integers_and_texts_in_one_column_are_one_label():
    table = {"state": [1, "1", 2], "action": ["a", "a", "a"], "next_state": [2, 2, "1"]}
    for source in (table, pd.DataFrame(table)):
        model = estimate(source, costs="1", discount=0.9)
        assert list(model.states) == [1, 2]
        assert model.kernels[0, 0, 0, 1] == 1


# ---------------------------------------------------------------------- sources


def test_paths_are_taken_literally(tmp_path):
    rows = presses()
    for name, own in (("log1.csv", rows[:40]), ("log[1].csv", rows)):
        (tmp_path / name).write_text(text(own))
        pl.DataFrame(frame(own)).write_parquet((tmp_path / name).with_suffix(".parquet"))
    model = estimate(frame(rows), discount=0.9, **COLUMNS)
    for suffix in (".csv", ".parquet"):
        assert estimate(tmp_path / f"log[1]{suffix}", discount=0.9, **COLUMNS) == model
        (tmp_path / f"log1{suffix}").unlink()
        assert estimate(tmp_path / f"log[1]{suffix}", discount=0.9, **COLUMNS) == model
        with pytest.raises(InputError, match="no such file"):
            estimate(tmp_path / f"log*{suffix}", discount=0.9, **COLUMNS)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".xlsx"])
def test_a_pipe_is_no_log(suffix, tmp_path):
    """It would keep a reader waiting for ever."""
    os.mkfifo(tmp_path / f"log{suffix}")
    with pytest.raises(InputError, match=f"log{suffix}: is a pipe or a device, not a file"):
        estimate(tmp_path / f"log{suffix}", discount=0.9, **COLUMNS)
    with pytest.raises(InputError, match=f"log{suffix}: is a pipe or a device, not a file"):
        estimate(
            frame(presses()),
            discount=0.9,
            **COLUMNS | {"cost": None, "costs": tmp_path / f"log{suffix}"},
        )


def test_types_do_not_depend_on_the_first_rows(tmp_path):
    path = tmp_path / "log.csv"
    body = (
        "".join(f"e,{k},{k % 2},a,7\n" for k in range(15_000))
        + "e,15000,0,a,12.5\ne,15001,1,a,1e3\n"
    )
    path.write_text("episode,time,state,action,cost\n" + body)
    model = estimate(path, episode="episode", time="time", cost="cost", discount=0.9)
    assert model.costs[0, 0] == pytest.approx((7500 * 7 + 12.5) / 7501, rel=1e-12)
    path.write_text(path.read_text().replace("e,15000,", "e,15000.0,"))
    assert estimate(path, episode="episode", time="time", cost="cost", discount=0.9) == model


@pytest.mark.parametrize("kind", ["text", "dates", "stamps", "periods", "zoned", "objects"])
def test_frames_of_pandas_have_times_of_all_kinds(kind):
    rows = presses()
    table = pd.DataFrame(frame(rows))
    model = estimate(frame(rows), discount=0.9, **COLUMNS)
    stamps = pd.to_datetime(table["Month"])
    table["Month"] = {
        "text": table["Month"],
        "dates": stamps.dt.date,
        "stamps": stamps,
        "periods": stamps.dt.to_period("M"),
        "zoned": stamps.dt.tz_localize("Europe/Berlin"),
        "objects": stamps.astype(object),
    }[kind]
    table["Cost"] = table["Cost"].astype("float64")
    assert estimate(table, discount=0.9, **COLUMNS) == model
    assert "time step: 1 month, guessed" in estimate(table, discount=0.9, **COLUMNS).notes


def test_missing_cells_of_pandas_are_missing():
    table = pd.DataFrame(
        {"state": pd.array([1, None], dtype="Int64"), "action": [0, 0], "next_state": [1.0, 1.0]}
    )
    with pytest.raises(InputError, match="row 2, column 'state': the state is missing"):
        estimate(table, costs="1", discount=0.9)
    table = pd.DataFrame(
        {"state": [1, 1], "action": [0, 0], "next_state": [1.0, np.nan], "cost": [1.0, np.nan]}
    )
    with pytest.raises(
        InputError,
        match=r"row 2, column 'next_state': the next_state is missing; .*; 1 more problem",
    ):
        estimate(table, cost="cost", discount=0.9)


def test_workbooks_are_read_as_they_are_seen(tmp_path):
    rows = presses()
    day = lambda cell: (datetime.date.fromisoformat(cell) - datetime.date(1899, 12, 30)).days  # noqa: E731
    cells = [[a, day(b), c, d, float(e)] for a, b, c, d, e in rows]
    path = tmp_path / "log.xlsx"
    write_workbook(path, [HEADER, *cells], dates=(1,))
    model = estimate(path, discount=0.9, **COLUMNS)
    assert model == estimate(frame(rows), discount=0.9, **COLUMNS)
    cells[15][4] = "n/a"
    cells.insert(3, [None] * 5)
    write_workbook(path, [HEADER, *cells], dates=(1,))
    with pytest.raises(
        InputError, match=r"log\.xlsx, sheet 'Log': row 18, column 'Cost': 'n/a' is no number"
    ):
        estimate(path, discount=0.9, **COLUMNS)
    path.write_bytes(b"no workbook")
    with pytest.raises(InputError, match=r"log\.xlsx: "):
        estimate(path, discount=0.9, **COLUMNS)


SHEETS = {
    "Old": [HEADER, *presses(2)],
    "Notes": [["who", "what"], ["me", "nothing"]],
    "Log": [HEADER, *presses()],
}


def test_hidden_sheets_are_not_read_and_others_are_told(tmp_path):
    path = tmp_path / "log.xlsx"
    write_sheets(path, SHEETS, hidden=("Old",))
    whole = estimate(frame(presses()), discount=0.9, **COLUMNS)
    model = estimate(path, discount=0.9, **COLUMNS)
    assert model == whole
    assert model.notes[0] == "sheet 'Log' was read; also: 'Notes'; hidden: 'Old'"
    assert check_log(path, sheet="Old", **COLUMNS).summary.rows == 2 * MONTHS
    with pytest.raises(
        InputError,
        match=r"log\.xlsx: no sheet 'log' \(did you mean 'Log'\?\); there are: 'Old', 'Notes', 'Log'",
    ):
        check_log(path, sheet="log", **COLUMNS)


def test_two_sheets_that_fit_are_refused(tmp_path):
    path = tmp_path / "log.xlsx"
    write_sheets(path, SHEETS)
    with pytest.raises(
        InputError, match="2 sheets have these columns: 'Old', 'Log'; say which: `sheet='Old'`"
    ):
        estimate(path, discount=0.9, **COLUMNS)
    with pytest.raises(
        InputError,
        match=r"sheet 'Old': no column 'Price' for `cost`; .*; sheet 'Old' was read; also: 'Notes', 'Log'$",
    ):
        estimate(path, discount=0.9, **{**COLUMNS, "cost": "Price"})
    assert estimate(path, discount=0.9, sheet="Log", **COLUMNS) == estimate(
        frame(presses()), discount=0.9, **COLUMNS
    )


def test_a_sheet_for_people_is_read(tmp_path):
    """A title, names in two rows, machines in merged cells and a total."""
    path = tmp_path / "log.xlsx"
    rows = presses()
    once(rows)
    titles = [["Presses, hall 3"], [*HEADER[:2], "State", None, None], [None, None, *HEADER[2:]]]
    write_workbook(path, [*titles, *rows, [None, None, None, "Total", 9.0]])
    with pytest.raises(InputError, match="row 3 has them: `header_row=3`"):
        estimate(path, discount=0.9, **COLUMNS)
    found = check_log(path, header_row=3, **COLUMNS)
    assert {
        (finding.kind, finding.count, finding.places[0].lines[0]) for finding in found.findings
    } == {("missing", 6 * MONTHS - 5, 5), ("missing", 1, 6 * MONTHS + 4)}
    options = {"header_row": 3, "fill_down": "Machine", "skip_rows_without": "Condition"}
    model = estimate(path, discount=0.9, **options, **COLUMNS)
    assert model == estimate(frame(presses()), discount=0.9, **COLUMNS)
    assert (
        f"rows without 'Condition' are skipped: 1, the first in row {6 * MONTHS + 4}" in model.notes
    )


def test_events_are_read_like_visits(tmp_path):
    """Of a workbook, with a title, weeks in merged cells and sums."""
    rows = [
        ["Sales"],
        ["week", "sold"],
        ["one", "0"],
        [None, "1"],
        ["Sum", None],
        ["two", "1"],
        [None, "1"],
    ]
    write_sheets(tmp_path / "log.xlsx", {"A": [["x"]], "B": rows})
    options = {
        "event": "sold",
        "events": 2,
        "states": 2,
        "actions": 1,
        "transition": lambda s, a, e: e,
        "costs": [[0.0], [1.0]],
        "by": "week",
        "discount": 0.9,
        "sheet": "B",
        "header_row": 2,
        "fill_down": "week",
        "skip_rows_without": "sold",
    }
    model = estimate(tmp_path / "log.xlsx", **options)
    assert model.kernel_names == ("one", "two")
    np.testing.assert_array_equal(model.laws, [[[0.5, 0.5], [0.0, 1.0]]])
    (tmp_path / "log.csv").write_text("sold;n\n0;1.000,5\n1;3.001,5\n")
    options = {
        name: options[name]
        for name in ("event", "events", "states", "actions", "transition", "costs", "discount")
    }
    model = estimate(
        tmp_path / "log.csv", separator=";", decimal=",", thousands=".", weight="n", **options
    )
    np.testing.assert_allclose(model.laws, [[[1000.5 / 4002, 3001.5 / 4002]]], rtol=1e-15)


def test_without_fastexcel_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    (tmp_path / "log.xlsx").write_bytes(b"")
    with pytest.raises(
        MissingExtra,
        match=r"fastexcel is not installed; in a clone of drmdp: pip install '.\[excel\]'",
    ):
        estimate(tmp_path / "log.xlsx", discount=0.9, **COLUMNS)


def test_columns_may_have_any_name():
    table = {"_row": ["a", "b"], "state": [0, 0], "_odd": [1, 2], "time": ["b", "a"]}
    model = estimate(
        table, state="_row", action="state", next_state="time", cost="_odd", discount=0.9
    )
    np.testing.assert_array_equal(model.costs, [[1], [2]])


def test_files_of_costs_are_read_like_the_log(tmp_path):
    (tmp_path / "c.csv").write_text("state;action;cost\n0;a;1,5\n1;a;2\n")
    (tmp_path / "log.csv").write_text("state;action;next_state\n0;a;1\n1;a;0\n")
    options = {"costs": tmp_path / "c.csv", "discount": 0.9, "separator": ";", "decimal": ","}
    np.testing.assert_array_equal(estimate(tmp_path / "log.csv", **options).costs, [[1.5], [2]])


def test_files_of_costs_are_read_by_themselves(tmp_path):
    """Whatever the log looks like: separators, decimals and encodings are their own."""
    (tmp_path / "log.csv").write_text("state,action,next_state\nä,a,b\nb,a,ä\n")
    options = {"costs": tmp_path / "c.csv", "discount": 0.9}
    for content in (
        "state;action;cost\nb;a;1.200,50\nä;a;2\n",
        "\ufeffstate\taction\tcost\r\nb\ta\t1200.5\r\nä\ta\t2 \r\n",
    ):
        (tmp_path / "c.csv").write_text(content, encoding="utf-8", newline="")
        np.testing.assert_array_equal(
            estimate(tmp_path / "log.csv", **options).costs, [[1200.5], [2]]
        )
    (tmp_path / "log.csv").write_text("state,action,next_state\nä,a,b\nb,a,ä\n", encoding="latin-1")
    for encoding in ("utf-8", "latin-1"):
        (tmp_path / "c.csv").write_text("state;action;cost\nb;a;7\nä;a;2\n", encoding=encoding)
        np.testing.assert_array_equal(
            estimate(tmp_path / "log.csv", encoding="latin-1", **options).costs, [[7], [2]]
        )
    (tmp_path / "c.csv").write_text("state;action;cost\nb;a;1.200\nä;a;2\n")
    with pytest.raises(
        InputError, match=r"c\.csv: line 2, column 'cost': '1\.200' may be 1\.2 or 1200"
    ):
        estimate(tmp_path / "log.csv", encoding="latin-1", **options)


def test_one_late_cell_tells_points_from_thousands():
    """Beyond the sample: 1200 has no point, so 5.204 is no 5204."""
    table = {
        "state": [0] * 3000,
        "action": [0] * 3000,
        "next_state": [0] * 3000,
        "cost": ["5.204"] * 3000,
    }
    assert check_log(table, cost="cost").refused
    table["cost"][-1] = "1200"
    assert not check_log(table, cost="cost").refused
    table["cost"][-1] = "5.2"
    assert not check_log(table, cost="cost").refused


@pytest.mark.parametrize("unit", ["", "{} CHF", "CHF {}", "{}€", "${}", "{} %", "{} kr./h"])
@pytest.mark.parametrize(
    ("decimal", "thousands"),
    [(".", None), (".", ","), (".", "'"), (",", None), (",", "."), (",", " ")],
)
def test_numbers_are_read_however_they_are_written(decimal, thousands, unit):
    rng = np.random.default_rng(3)
    values = np.round(rng.choice([-1, 1], 40) * 10 ** rng.uniform(-1, 7, 40), 2)
    digits = str.maketrans({".": decimal, ",": thousands or ""})
    plain = [f"{abs(x):,.2f}".translate(digits) for x in values]
    signs = ["-" if x < 0 else "" for x in values]
    if unit.startswith("$"):  # as Americans write it
        cells = [f"{sign}${cell}" for sign, cell in zip(signs, plain, strict=True)]
    else:
        cells = [
            (unit or "{}").format(sign + cell) for sign, cell in zip(signs, plain, strict=True)
        ]
    table = {"state": [*range(40)], "action": [0] * 40, "next_state": [*range(40)], "cost": cells}
    options = {"decimal": decimal, "thousands": thousands}
    model = estimate(table, cost="cost", discount=0.9, **options)
    np.testing.assert_array_equal(model.costs[:, 0], values)
    assert any("unit" in note for note in model.notes) == bool(unit)
    if options != {"decimal": ".", "thousands": None}:
        said = {name: value for name, value in options.items() if value is not None}
        said.pop("decimal") if said["decimal"] == "." or thousands == "." else None
        cure = " and ".join(f"`{name}={value!r}`" for name, value in said.items())
        assert check_log(table, cost="cost").findings[0].cure.startswith(f"with {cure} ")


# ---------------------------------------------------------------------- kernels


def test_kernels_weigh_the_same_or_as_their_data():
    table = {
        "state": [0] * 5,
        "action": [0] * 5,
        "next_state": [0, 0, 0, 1, 1],
        "site": ["a", "a", "a", "a", "b"],
    }
    options = {"costs": "1", "discount": 0.9, "by": "site", "terminal": [1]}
    equal = estimate(table, **options)
    np.testing.assert_array_equal(equal.weights, [0.5, 0.5])
    assert equal.notes[0] == "kernels weigh the same; they have 1 to 4 transitions"
    rows = estimate(table, weights="rows", **options)
    np.testing.assert_array_equal(rows.weights, [0.8, 0.2])
    assert rows.notes[0] == "kernels weigh as much as they have data; they have 1 to 4 transitions"
    np.testing.assert_allclose(
        rows.mean_kernel[0, 0], [0.6, 0.4], rtol=1e-15
    )  # as all data together
    assert list(rows.kernel_names) == ["a", "b"]
    with pytest.raises(InputError, match="`weights='rows'` needs `by` to name a column"):
        estimate(table, **{**options, "by": "bootstrap", "n_kernels": 2}, weights="rows")


@pytest.mark.parametrize("by", ["bootstrap", "folds", "parts"])
def test_two_orders_of_rows_give_one_model(by):
    rows = presses(12)
    models = []
    for seed in range(4):
        np.random.default_rng(seed).shuffle(rows)
        options = {
            **COLUMNS,
            "partial": "pooled",
            "discount": 0.9,
            "by": by,
            "n_kernels": 3,
            "seed": 5,
        }
        models.append(estimate(frame(rows), **options))
    assert models[0] == models[1] == models[2] == models[3]


def test_blanks_around_episodes_do_not_make_two_of_them():
    table = {"state": [0] * 4, "action": [0] * 4, "next_state": [0] * 4, "e": ["a", "b", "a ", "b"]}
    with pytest.warns(Notice, match="row 3, column 'e': 'a ' has blanks around it"):
        model = estimate(table, episode="e", by="parts", n_kernels=2, costs="1", discount=0.9)
    assert model.n_kernels == 2
    with pytest.raises(InputError, match="3 parts need as many episodes, got 2"):
        estimate(table, episode="e", by="parts", n_kernels=3, costs="1", discount=0.9)


def test_weights_of_rows_say_nothing_about_their_number():
    table = {
        "state": [0, 0],
        "action": [0, 0],
        "next_state": [0, 0],
        "w": [2.0, 0.5],
        "e": ["x", "y"],
    }
    found = fit(table, Columns(weight="w", episode="e"), Settings(0.9, "folds", 2, costs="1"))
    assert found.summary.kernel_transitions is None


def test_transitions_without_weight_do_not_leave_a_terminal_state():
    table = {"state": [0, 1, 1], "action": [0, 0, 0], "next_state": [1, 1, 0], "w": [1.0, 1.0, 0.0]}
    model = estimate(table, weight="w", costs="1", discount=0.9, terminal=[1])
    np.testing.assert_array_equal(model.terminal, [False, True])


def test_pooled_rows_hold_no_transition_without_weight():
    table = {
        "state": [0, 0, 1, 1],
        "action": [0, 0, 0, 0],
        "next_state": [0, 1, 1, 1],
        "g": ["a", "a", "a", "b"],
        "w": [1.0, 0.0, 1.0, 1.0],
    }
    model = estimate(table, weight="w", costs="1", discount=0.9, by="g", partial="pooled")
    np.testing.assert_array_equal(model.kernels[:, 0, 0], [[1, 0], [1, 0]])
    assert model.blocks.indices.size == 2  # no stored zero


# ---------------------------------------------------------------------- check


def test_check_lists_everything_with_lines(tmp_path):
    rows = presses()
    fair = next(k for k, row in enumerate(rows) if row[2] == "fair")
    rows[fair][2] = "Fair"
    rows[10][4], rows[20][4], rows[30][2], rows[40][3] = "$1", "n/a", "", " run"
    rows.insert(60, list(rows[59]))
    rows.insert(80, [*rows[79][:2], "poor", "replace", "999"])
    del rows[100]
    path = tmp_path / "log.csv"
    path.write_text(text(rows))
    found = check_log(path, **COLUMNS)
    assert found.refused
    assert not found
    kinds = {finding.kind: finding for finding in found.findings}
    assert set(kinds) == {
        "number",
        "missing",
        "blanks",
        "duplicate",
        "same time",
        "gap",
        "look-alike",
        "outlier",
        "thin",
    }
    assert "state 'Fair', action 'repair': seen once, and led to 'fair'" in str(kinds.pop("thin"))
    lines = {kind: [place.lines for place in finding.places] for kind, finding in kinds.items()}
    assert lines == {
        "number": [(12,), (22,)],
        "missing": [(32,)],
        "blanks": [(42,)],
        "duplicate": [(61, 62)],
        "same time": [(81, 82)],
        "gap": [(101, 102)],
        "look-alike": [(fair + 2,)],
        "outlier": [(82,)],
    }
    assert [place.value for place in kinds["number"].places] == ["$1", "n/a"]
    assert found.summary.transitions > 100
    assert "line 12, column 'Cost': '$1' is no number" in str(found)
    assert found.as_dict()["findings"][0]["places"][0]["lines"] == (12,)


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("-99999", "-99999 looks like a placeholder"),
        ("9999", "9999 looks like a placeholder"),
        ("-1", "-1 is the only negative cost of 138"),
        ("30000", "30000 alone takes the mean cost of state 'good', action 'run' from 3 to "),
    ],
)
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_costs_that_stand_out_are_listed_and_noted(cell, what, order, tmp_path):
    rows = presses()
    good = next(k for k, row in enumerate(rows) if row[2:4] == ["good", "run"])
    rows[good][4] = cell
    if order == "shuffled":
        np.random.default_rng(0).shuffle(rows)
    line = 2 + next(k for k, row in enumerate(rows) if row[4] == cell)
    (tmp_path / "log.csv").write_text(text(rows))
    found = check_log(tmp_path / "log.csv", by="Machine", partial="pooled", **COLUMNS)
    assert [(one.kind, one.refused, one.count) for one in found.findings] == [("outlier", False, 1)]
    assert str(found.findings[0].places[0]).startswith(f"line {line}, column 'Cost': {what}")
    assert found.findings[0].places[0].value == float(cell)
    with pytest.warns(Notice, match=f"line {line}, column 'Cost': {what}"):
        model = estimate(tmp_path / "log.csv", discount=0.9, **COLUMNS)
    assert any(what in note for note in model.notes)


def outliers_of(table, **options):
    return [
        finding for finding in check_log(table, **options).findings if finding.kind == "outlier"
    ]


def test_what_one_row_does_to_a_mean_is_right():
    costs = [10.0, 12.0, 11.0, 9.0, 8.0, 700.0]
    table = {"state": [0] * 6, "action": [0] * 6, "next_state": [0] * 6, "cost": costs}
    found = outliers_of(table, cost="cost")
    mean = "alone takes the mean cost of state 0, action 0 from 10 to 125 (6 rows)"
    assert str(found[0].places[0]) == f"row 6, column 'cost': 700 {mean}"
    assert not outliers_of(
        {**table, "cost": [*costs[:5], 20.0]}, cost="cost"
    )  # moves it by a sixth
    steady = [
        100.0,
        101.0,
        99.0,
        100.0,
        100.0,
        160.0,
    ]  # far from the others, and moves their mean by a tenth
    assert not outliers_of({**table, "cost": steady}, cost="cost")
    few = {name: values[2:] for name, values in table.items()}
    assert not outliers_of(few, cost="cost")  # four rows say little
    assert not outliers_of(
        {**table, "w": [1] * 5 + [0]}, cost="cost", weight="w"
    )  # with weights the means are others


@pytest.mark.parametrize("draw", ["normal", "exponential", "uniform", "zeros"])
def test_random_costs_rarely_stand_out(draw):
    """At most one false alarm in 50 logs of 30 pairs."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(50):
        n = 30 * 20
        kinds = {
            "normal": rng.normal(0, 20, n),
            "exponential": rng.exponential(10, n),
            "uniform": rng.uniform(0, 1000, n),
            "zeros": np.where(rng.random(n) < 0.5, 0.0, 100.0),
        }
        state = np.arange(n) % 30
        alarms += len(
            outliers_of(
                {"state": state, "action": 0 * state, "next_state": state, "c": kinds[draw]},
                cost="c",
            )
        )
    assert alarms <= 1


def test_unreadable_costs_hide_nothing_else(tmp_path):
    rows = presses()
    fair = next(k for k, row in enumerate(rows) if row[2] == "fair")
    rows[fair][2] = "Fair"
    for row in rows:
        row[4] = f"{row[4]},00"
    (tmp_path / "log.csv").write_text(text(rows))
    found = check_log(tmp_path / "log.csv", **COLUMNS)
    assert [(one.kind, one.count) for one in found.findings] == [
        ("number", 6 * MONTHS),
        ("look-alike", 1),
        ("thin", 1),
    ]
    assert found.summary.transitions == 6 * (MONTHS - 1)


def test_the_order_of_states_is_told():
    found = check_log(frame(presses()), **COLUMNS)
    assert found.summary.order == "alphabet"
    assert (
        check_log(frame(presses()), states=["good", "fair", "poor"], **COLUMNS).summary.order
        == "given"
    )
    assert (
        check_log({"state": [0, 1], "action": [0, 0], "next_state": [1, 0]}).summary.order
        == "numbers"
    )


def test_check_of_a_clean_log_says_what_would_be_assumed():
    found = check_log(frame(presses()), **COLUMNS)
    assert found
    assert not found.refused
    assert str(found) == "table: nothing is odd"
    assert found.summary.step == "1 month (guessed)"
    assert found.summary.assumed[0] == "time step: 1 month, guessed"
    assert [name for name, _ in found.summary.states] == ["fair", "good", "poor"]


def test_check_names_pairs_without_data_and_labels_that_are_not_given():
    options = {name: value for name, value in COLUMNS.items() if name != "unvisited"}
    found = check_log(frame(presses()), states=["good", "fair"], **options)
    assert [finding.kind for finding in found.findings] == ["unknown label", "unvisited"]
    assert found.findings[1].count == 5
    found = check_log({"state": ["x"], "action": ["y"], "episode": [1]}, episode="episode")
    assert (found.findings[0].kind, found.summary, found.refused) == ("transitions", None, True)


def test_a_log_without_a_usable_row_is_checked_all_the_same():
    table = frame(presses())
    table["Month"] = ["x"] * 10 + ["2020-13"] * 134
    found = check_log(table, time_format="%Y-%m", **COLUMNS)
    assert [(finding.kind, finding.count) for finding in found.findings] == [("time", 144)]
    assert found.refused  # that there are no transitions follows from it
    with pytest.raises(
        InputError, match="row 1, column 'Month': 'x' is none of the times like %Y-%m, one of 144"
    ):
        estimate(table, time_format="%Y-%m", discount=0.9, **COLUMNS)


def test_lines_with_too_many_cells_do_not_hide_the_rest(tmp_path):
    rows = presses()
    rows[10][4] = "$1"
    rows[20][4] = "5,extra"
    path = tmp_path / "log.csv"
    path.write_text(text(rows).replace('"', ""))
    found = check_log(path, **COLUMNS)
    assert [(finding.kind, finding.places[0].lines) for finding in found.findings] == [
        ("cells", (22,)),
        ("number", (12,)),
    ]
    assert str(found.findings[0]).startswith(
        "line 22: 6 cells, but the header has 5; the last are cut off here"
    )


def test_lists_are_bounded():
    table = frame(presses())
    table["Cost"] = ["x"] * len(table["Cost"])
    found = check_log(table, **COLUMNS)
    assert found.findings[0].count == 144
    assert len(found.findings[0].places) == 10
    assert "  … 134 more" in str(found)


def test_notices_are_one_a_finding():
    table = frame(presses())
    table["Condition"][0] = " good"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimate(table, discount=0.9, **COLUMNS)
    assert [str(warning.message) for warning in caught] == [
        "table: row 1, column 'Condition': ' good' has blanks around it, which are removed"
    ]
    assert caught[0].filename == __file__
    assert (
        model.notes[-1]
        == "row 1, column 'Condition': ' good' has blanks around it, which are removed"
    )
