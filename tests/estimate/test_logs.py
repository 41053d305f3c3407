"""Labels, sources, kernels and checks of logs, beyond the deck of `test_dirty_logs`."""

import datetime
import os
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_dirty_logs import COLUMNS, HEADER, frame, presses, text

from drmdp import InputError, MissingExtra, Notice, check_log, estimate
from drmdp.estimate.labels import look_alikes
from drmdp.estimate.pipeline import fit
from drmdp.estimate.settings import Settings
from drmdp.estimate.table import Columns
from workbook import write_workbook

# ---------------------------------------------------------------------- labels


def test_look_alikes():
    assert look_alikes({"fair": 100, "fiar": 1, "fai": 2, "faair": 3, "fain": 11, "poor": 50}) == [
        ("faair", "fair", "one letter apart"),
        ("fai", "fair", "one letter apart"),
        ("fiar", "fair", "one letter apart"),
    ]
    assert look_alikes({"Press-01": 60, "Press-02": 1, "Press-10": 1, "s12": 9, "s1": 1, "1": 5, 1: 2}) == []
    assert look_alikes({"up": 100, "us": 1, "left": 50, "right": 50, "lift": 40}) == []
    assert [found[:2] for found in look_alikes({"no repair": 5, "No_Repair": 9, "norepair": 1})] == [
        ("no repair", "No_Repair"),
        ("norepair", "No_Repair"),
    ]
    assert look_alikes({"O1": 1, "01": 50, "A01": 50, "AO1": 1}) == [("AO1", "A01", "one letter apart")]
    assert look_alikes({"{x}": 3, "{X}": 1}) == [("{X}", "{x}", "the same but for capitals")]


def test_the_first_place_of_a_look_alike_is_named():
    state = ["fair", "fair", "fair", "fiar", "fair", "fiar"]
    table = {"state": state, "action": [0] * 6, "next_state": ["fair", "fair", "fiar", "fair", "fair", "fair"]}
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
    assert [finding.kind for finding in check_log(table, **COLUMNS).findings] == ["missing", "missing"]


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
    assert list(estimate(table, costs="1", discount=0.9, rename={1: 7}, terminal=[]).states) == [2, 7]
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
        estimate(frame(presses()), discount=0.9, **COLUMNS | {"cost": None, "costs": tmp_path / f"log{suffix}"})


def test_types_do_not_depend_on_the_first_rows(tmp_path):
    path = tmp_path / "log.csv"
    body = "".join(f"e,{k},{k % 2},a,7\n" for k in range(15_000)) + "e,15000,0,a,12.5\ne,15001,1,a,1e3\n"
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
    table = pd.DataFrame({"state": pd.array([1, None], dtype="Int64"), "action": [0, 0], "next_state": [1.0, 1.0]})
    with pytest.raises(InputError, match="row 2, column 'state': the state is missing"):
        estimate(table, costs="1", discount=0.9)
    table = pd.DataFrame({"state": [1, 1], "action": [0, 0], "next_state": [1.0, np.nan], "cost": [1.0, np.nan]})
    with pytest.raises(InputError, match="row 2, column 'next_state': the next_state is missing; 1 more problem"):
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
    with pytest.raises(InputError, match=r"log\.xlsx, sheet 'Log': row 18, column 'Cost': 'n/a' is no number"):
        estimate(path, discount=0.9, **COLUMNS)
    path.write_bytes(b"no workbook")
    with pytest.raises(InputError, match=r"log\.xlsx: "):
        estimate(path, discount=0.9, **COLUMNS)


def test_without_fastexcel_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    (tmp_path / "log.xlsx").write_bytes(b"")
    with pytest.raises(
        MissingExtra, match=r"fastexcel is not installed; in a clone of drmdp: pip install '.\[excel\]'"
    ):
        estimate(tmp_path / "log.xlsx", discount=0.9, **COLUMNS)


def test_columns_may_have_any_name():
    table = {"_row": ["a", "b"], "state": [0, 0], "_odd": [1, 2], "time": ["b", "a"]}
    model = estimate(table, state="_row", action="state", next_state="time", cost="_odd", discount=0.9)
    np.testing.assert_array_equal(model.costs, [[1], [2]])


def test_files_of_costs_are_read_like_the_log(tmp_path):
    (tmp_path / "c.csv").write_text("state;action;cost\n0;a;1,5\n1;a;2\n")
    (tmp_path / "log.csv").write_text("state;action;next_state\n0;a;1\n1;a;0\n")
    options = {"costs": tmp_path / "c.csv", "discount": 0.9, "separator": ";", "decimal": ","}
    np.testing.assert_array_equal(estimate(tmp_path / "log.csv", **options).costs, [[1.5], [2]])


# ---------------------------------------------------------------------- kernels


def test_kernels_weigh_the_same_or_as_their_data():
    table = {"state": [0] * 5, "action": [0] * 5, "next_state": [0, 0, 0, 1, 1], "site": ["a", "a", "a", "a", "b"]}
    options = {"costs": "1", "discount": 0.9, "by": "site", "terminal": [1]}
    equal = estimate(table, **options)
    np.testing.assert_array_equal(equal.weights, [0.5, 0.5])
    assert equal.notes[0] == "kernels weigh the same; they have 1 to 4 transitions"
    rows = estimate(table, weights="rows", **options)
    np.testing.assert_array_equal(rows.weights, [0.8, 0.2])
    assert rows.notes[0] == "kernels weigh as much as they have data; they have 1 to 4 transitions"
    np.testing.assert_allclose(rows.mean_kernel[0, 0], [0.6, 0.4], rtol=1e-15)  # as all data together
    assert list(rows.kernel_names) == ["a", "b"]
    with pytest.raises(InputError, match="`weights='rows'` needs `by` to name a column"):
        estimate(table, **{**options, "by": "bootstrap", "n_kernels": 2}, weights="rows")


@pytest.mark.parametrize("by", ["bootstrap", "folds", "parts"])
def test_two_orders_of_rows_give_one_model(by):
    rows = presses(12)
    models = []
    for seed in range(4):
        np.random.default_rng(seed).shuffle(rows)
        options = {**COLUMNS, "partial": "pooled", "discount": 0.9, "by": by, "n_kernels": 3, "seed": 5}
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
    table = {"state": [0, 0], "action": [0, 0], "next_state": [0, 0], "w": [2.0, 0.5], "e": ["x", "y"]}
    found = fit(table, Columns(weight="w", episode="e"), Settings(0.9, "folds", 2, costs="1"))
    assert found.summary.kernel_transitions is None


def test_transitions_without_weight_do_not_leave_a_terminal_state():
    table = {"state": [0, 1, 1], "action": [0, 0, 0], "next_state": [1, 1, 0], "w": [1.0, 1.0, 0.0]}
    model = estimate(table, weight="w", costs="1", discount=0.9, terminal=[1])
    np.testing.assert_array_equal(model.terminal, [False, True])


def test_pooled_rows_hold_no_transition_without_weight():
    table = {
        "state": [0, 0, 1, 1], "action": [0, 0, 0, 0], "next_state": [0, 1, 1, 1],
        "g": ["a", "a", "a", "b"], "w": [1.0, 0.0, 1.0, 1.0],
    }  # fmt: skip
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
    assert set(kinds) == {"number", "missing", "blanks", "duplicate", "same time", "gap", "look-alike", "thin"}
    assert "state 'Fair', action 'repair': seen once, and led to 'fair'" in str(kinds.pop("thin"))
    lines = {kind: [place.lines for place in finding.places] for kind, finding in kinds.items()}
    assert lines == {
        "number": [(12,), (22,)], "missing": [(32,)], "blanks": [(42,)], "duplicate": [(61, 62)],
        "same time": [(81, 82)], "gap": [(101, 102)], "look-alike": [(fair + 2,)],
    }  # fmt: skip
    assert [place.value for place in kinds["number"].places] == ["$1", "n/a"]
    assert found.summary.transitions > 100
    assert "line 12, column 'Cost': '$1' is no number" in str(found)
    assert found.as_dict()["findings"][0]["places"][0]["lines"] == (12,)


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
    assert [(finding.kind, finding.count) for finding in found.findings] == [("time", 144), ("transitions", 1)]
    with pytest.raises(InputError, match="row 1, column 'Month': 'x' is none of the times like %Y-%m, one of 144"):
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
    assert str(found.findings[0]).startswith("line 22: 6 cells, but the header has 5; the last are cut off here")


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
    assert model.notes[-1] == "row 1, column 'Condition': ' good' has blanks around it, which are removed"
