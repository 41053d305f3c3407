"""Times, steps, gaps, labels and sources of logs, beyond the deck of `test_dirty_logs`."""

import datetime
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from drmdp import InputError, MissingExtra, Notice, check_log, estimate
from drmdp.estimate.labels import look_alikes
from drmdp.estimate.order import Ordering
from drmdp.estimate.pipeline import fit
from drmdp.estimate.settings import Settings
from drmdp.estimate.table import Columns
from drmdp.estimate.times import FORMS, Form, Step, forms_of, parse_step
from test_dirty_logs import COLUMNS, HEADER, presses, text
from workbook import write_workbook


def frame(rows):
    return {name: [row[k] for row in rows] for k, name in enumerate(HEADER)}


def chain(times, episode="e"):
    """A log of two states with given times."""
    n = len(times)
    return {"episode": [episode] * n, "time": times, "state": [k % 2 for k in range(n)], "action": ["go"] * n}


# ---------------------------------------------------------------------- gaps


def worn(n, seed):
    """Three states under one action, with a known kernel; a row per month for each of n machines."""
    kernel = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.5, 0.0, 0.5]])
    rng = np.random.default_rng(seed)
    rows = []
    for machine in range(n):
        state = 0
        for month in range(120):
            rows.append((f"m{machine}", f"{2010 + month // 12}-{month % 12 + 1:02d}", "abc"[state], "run", month))
            state = rng.choice(3, p=kernel[state])
    return kernel, rows


def test_with_every_third_month_missing_the_kernel_is_the_same_if_episodes_are_cut():
    kernel, rows = worn(50, 3)
    names = ["machine", "month", "state", "action", "k"]
    options = {"episode": "machine", "time": "month", "costs": "1", "discount": 0.9}
    complete = pl.DataFrame(rows, schema=names, orient="row")
    missing = complete.filter(pl.col("k") % 3 != 2)
    whole = estimate(complete, **options).kernels[0, :, 0]
    with pytest.raises(
        InputError, match="from 2010-02-01 to 2010-04-01 is 2 months, one of 1,950 such gaps; the step is 1 month"
    ):
        estimate(missing, **options)
    found = fit(
        missing, Columns(episode="machine", time="month"), Settings(0.9, costs="1", ordering=Ordering(gaps="cut"))
    )
    assert found.summary.transitions == 50 * 40
    assert found.model.notes[:2] == (
        "time step: 1 month, guessed",
        "1,950 gaps in time: the episode ends there and begins again",
    )
    cut = found.model.kernels[0, :, 0]
    error = 4 * np.sqrt(kernel * (1 - kernel) / (50 * 40 * 0.2))  # each state has a fifth of the rows at least
    assert (np.abs(cut - whole) <= error).all()
    assert (np.abs(cut - kernel) <= error).all()
    bridged = estimate(missing, gaps="bridge", **options)
    assert np.abs(bridged.kernels[0, :, 0] - kernel).max() > 0.1  # what silence would have cost
    assert bridged.notes[0].endswith("1,950 pairs of rows are further apart than 1 month")
    np.testing.assert_array_equal(cut > 0, kernel > 0)
    assert bridged.kernels[0, 2, 0, 1] > 0  # a transition that does not exist


def test_a_cut_makes_the_model_of_the_pieces():
    rows = presses()
    pieces = [[f"{row[0]}/{'b' if row[1] > '2020-08' else 'a'}", *row[1:]] for row in rows if row[1][:7] != "2020-08"]
    holes = [row for row in rows if row[1][:7] != "2020-08"]
    expected = estimate(frame(pieces), discount=0.9, **COLUMNS)
    assert estimate(frame(holes), discount=0.9, gaps="cut", **COLUMNS) == expected
    np.random.default_rng(0).shuffle(holes)
    assert estimate(frame(holes), discount=0.9, gaps="cut", **COLUMNS) == expected


def test_before_a_gap_no_action_is_needed():
    table = {"episode": [1, 1, 1, 1], "time": [0, 1, 5, 6], "state": [0, 1, 0, 1], "action": ["a", None, "a", None]}
    with pytest.raises(InputError, match="rows 2 and 3"):
        estimate(table, episode="episode", time="time", costs="1", discount=0.9, terminal=[1])
    model = estimate(table, episode="episode", time="time", costs="1", discount=0.9, terminal=[1], gaps="cut")
    assert model.kernels[0, 0, 0, 1] == 1


@pytest.mark.parametrize(
    ("times", "step"),
    [
        ([0, 1, 2, 3], "1"),
        ([0.0, 0.1, 0.2, 0.30000000000000004, 0.4], "0.1"),
        ([1.6e9, 1.6e9 + 0.5, 1.6e9 + 1], "0.5"),
        ([10, 20, 30], "10"),
        (["2020-01-31", "2020-02-29", "2020-03-31"], "1 month"),
        (["2020-01-01", "2020-01-02", "2020-01-03"], "1 day"),
        (["2020-01-06", "2020-01-13", "2020-01-20"], "1 week"),
        (["2020-01-06", "2020-01-20", "2020-02-03"], "2 weeks"),
        (["2020Q1", "2020Q2", "2020Q3", "2020Q4"], "1 quarter"),
        (["2019-12-31", "2020-12-31", "2021-12-31"], "1 year"),
        (["2020-01-01 23:00", "2020-01-02 00:00", "2020-01-02 01:00"], "1 hour"),
        (["2020-01-01 00:00", "2020-01-01 00:15", "2020-01-01 00:30"], "15 minutes"),
        (["2020-01-01 00:00:01", "2020-01-01 00:00:02", "2020-01-01 00:00:03"], "1 second"),
        ([datetime.date(2020, 1, 1), datetime.date(2020, 2, 1)], "1 month"),
        ([datetime.timedelta(days=1), datetime.timedelta(days=2), datetime.timedelta(days=3)], "86400"),
        ([datetime.time(8), datetime.time(9), datetime.time(10)], "3600"),
    ],
    ids=str,
)
def test_steps_are_guessed_and_said(times, step):
    assert steps(times) == (len(times) - 1, f"{step} (guessed)")
    assert steps(times[::-1]) == (len(times) - 1, f"{step} (guessed)")


def steps(times, **options):
    settings = Settings(0.9, costs="1", unvisited="self-loop", ordering=Ordering(**options))
    summary = fit(chain(times), Columns(episode="episode", time="time"), settings).summary
    return summary.transitions, summary.step


def test_days_of_the_month_and_hours_of_the_day_do_not_matter():
    assert steps(["2020-01-03", "2020-02-28", "2020-03-01"]) == (2, "1 month (guessed)")
    assert steps(["2020-01-01 23:59", "2020-01-02 00:01", "2020-01-03 12:00", "2020-01-04 08:00"], step="day")[0] == 3


def test_the_guess_is_the_most_frequent_distance_and_the_smallest_of_several():
    with pytest.raises(InputError, match="from 1 to 3 is 2; the step is 1, as most often here"):
        steps([0, 1, 3])
    noisy = [k + 1e-9 * (k * k % 17) for k in range(16)]
    with pytest.raises(InputError, match="one of 2 such gaps; the step is 1, as most often here"):
        steps([*noisy, noisy[-1] + 3, noisy[-1] + 6])
    days = [day for day in ("2020-01-01", "2020-02-01", "2020-03-01") for _ in range(2)]
    rows = {**chain(days), "state": [0, 0, 1, 1, 0, 0]}
    settings = Settings(0.9, costs="1", ordering=Ordering(duplicates="drop"))
    assert fit(rows, Columns(episode="episode", time="time"), settings).summary.step == "1 month (guessed)"


def test_weeks_begin_on_monday():
    assert steps(["2020-01-05", "2020-01-06", "2020-01-19"], step="week")[0] == 2
    with pytest.raises(InputError, match="2020-01-06 and 2020-01-12 lie in the same week"):
        steps(["2020-01-06", "2020-01-12"], step="week")


def test_without_times_rows_of_an_episode_keep_their_order():
    n = 30_000
    state = np.random.default_rng(0).integers(0, 5, n)
    table = {"episode": np.arange(n) % 7, "state": state, "action": np.zeros(n, int)}
    model = estimate(table, episode="episode", costs="1", discount=0.9)
    counts = np.zeros((5, 5))
    np.add.at(counts, (state[:-7], state[7:]), 1)
    np.testing.assert_array_equal(model.kernels[0, :, 0], counts / counts.sum(axis=1, keepdims=True))
    assert model.notes == ("rows of an episode follow each other as in the table, one step apart",)


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        ([0, 1, 2, 2.5, 3, 4], {}, "rows 3 and 4: episode 'e': from 2.0 to 2.5 is 0.5, which is no whole number of steps, one of 2 such"),
        ([0, 1, 2, 2.5, 3, 4], {"gaps": "cut"}, "rows 3 and 4: .*the step is 1, as most often here; give a smaller `step`"),
        ([0, 1, 2, 4.5, 5.5], {}, "rows 3 and 4: episode 'e': from 2.0 to 4.5 is 2.5, which is no whole number of steps"),
        ([0, 2, 4, 5], {"step": 2}, "rows 3 and 4: episode 'e': from 4 to 5 is 1, which is no whole number of steps; the step is 2; give"),
        ([20200131, 20200201, 20200202], {}, "if these numbers are dates: `time_format='%Y%m%d'`"),
    ],
    ids=str,
)  # fmt: skip
def test_times_off_the_grid_are_named(times, options, message):
    with pytest.raises(InputError, match=message):
        steps(times, **options)


def test_bridges_take_time_for_an_order_alone():
    assert steps([0, 1, 2, 2.5, 7], gaps="bridge")[0] == 4


def test_settings_of_times_that_contradict_each_other_are_refused():
    table = {"state": [0], "action": [0], "next_state": [0], "time": [0], "episode": [0]}
    for options, message in (
        ({"gaps": "cut"}, "`gaps='cut'` needs `time`"),
        ({"duplicates": "drop"}, "`duplicates='drop'` needs `time`"),
        ({"step": "month"}, "`step='month'` needs `time`"),
        ({"time_format": "%Y"}, "`time_format='%Y'` needs `time`"),
        ({"time": "time", "step": 1, "gaps": "bridge"}, "`gaps='bridge'` pairs rows whatever the time between: it takes no `step`"),
        ({"time": "time", "gaps": "cut"}, "`step` and `gaps` are for rows without `next_state`"),
        ({"gaps": "jump"}, "`gaps` is one of refuse, cut, bridge; got 'jump'"),
        ({"duplicates": "keep"}, "`duplicates` is one of refuse, drop; got 'keep'"),
        ({"weights": "more"}, "`weights` is one of equal, rows; got 'more'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            estimate(table, costs="1", discount=0.9, **options)


def test_duplicates_among_transitions_with_times_are_found():
    table = {
        "episode": ["a", "a", "a"],
        "time": [0, 1, 1],
        "state": [0, 1, 1],
        "action": [0, 0, 0],
        "next_state": [1, 0, 0],
    }
    options = {"episode": "episode", "time": "time", "costs": "1", "discount": 0.9}
    with pytest.raises(InputError, match="rows 2 and 3: episode 'a' has two rows at 1 that are the same"):
        estimate(table, **options)
    assert "1 exact duplicate dropped" in estimate(table, duplicates="drop", **options).notes
    estimate({name: values for name, values in table.items() if name != "time"}, costs="1", discount=0.9)


# ---------------------------------------------------------------------- times


@pytest.mark.parametrize("form", [form for form in FORMS if form.format], ids=lambda form: form.example)
def test_each_form_of_dates_reads_its_own_example(form):
    found = pl.select(form.read(pl.lit(form.example))).item()
    assert (found.year, found.month in (1, 2)) == (2020, True)
    if ":45" in form.example:
        assert (found.hour, found.minute) == (13, 45)
    assert form in forms_of([form.example])
    assert all(pl.select(form.read(pl.lit(text))).item() is None for text in ("", "x", "2020", f"{form.example}x"))


@pytest.mark.parametrize(
    ("cell", "form", "read"),
    [
        ("202003", "%Y%m", (2020, 3, 1, 0)),
        ("31.01.20", "%d.%m.%y", (2020, 1, 31, 0)),
        ("Mar-20", "%b-%y", (2020, 3, 1, 0)),
        ("2020", "%Y", (2020, 1, 1, 0)),
        ("2020-01-31 17", "%Y-%m-%d %H", (2020, 1, 31, 17)),
        ("2020-01-31 17:00:00.250", "%Y-%m-%d %H:%M:%S.%f", (2020, 1, 31, 17)),
        ("1580490000", "%s", (2020, 1, 31, 17)),
    ],
)
def test_formats_are_completed(cell, form, read):
    found = fit(
        chain([cell, cell[:-1] + chr(ord(cell[-1]) + 1)]),
        Columns(episode="episode", time="time"),
        Settings(0.9, costs="1", unvisited="self-loop", ordering=Ordering(time_format=form, gaps="bridge")),
    )
    assert found.summary.transitions == 1
    time = pl.select(Form("", "", form).read(pl.lit(cell))).item()
    assert (time.year, time.month, time.day, time.hour) == read


def test_years_have_four_digits():
    with pytest.raises(InputError, match="row 3, column 'time': '20-03-01' is not written as the other times"):
        steps(["2020-01-01", "2020-02-01", "20-03-01"])


def test_formats_are_for_text():
    with pytest.raises(InputError, match="`time_format='%Y'`: column 'time' is no text, but Float64"):
        steps([1.0, 2.0], time_format="%Y")
    assert steps([202001, 202002], time_format="%Y%m") == (1, "1 month (guessed)")


def test_steps_have_a_number_and_a_unit():
    assert parse_step("Months", True) == parse_step("1 month", True) == Step(1, "month")
    assert (str(Step(2, "week")), str(Step(0.5))) == ("2 weeks", "0.5")
    for given in ("", "0", "-1", "1.5 months", "..", "month 2", None, True):
        with pytest.raises(InputError, match="step: expected a number"):
            parse_step(given, True)
    with pytest.raises(InputError, match="`step='month'`: the times are numbers"):
        steps([0, 1], step="month")


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


def test_names_that_are_given_are_no_look_alikes():
    table = {"state": ["ok", "OK"], "action": [0, 0], "next_state": ["OK", "ok"]}
    with pytest.warns(Notice, match="looks like"):
        estimate(table, costs="1", discount=0.9)
    model = estimate(table, costs="1", discount=0.9, states=["ok", "OK"])
    assert model.notes == ()


def test_a_label_is_not_renamed_in_two_roles():
    table = {"state": [1, 2], "action": [2, 2], "next_state": [2, 1]}
    with pytest.raises(InputError, match="rename: 2 is a state and an action"):
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
    assert set(kinds) == {"number", "missing", "blanks", "duplicate", "same time", "gap", "look-alike"}
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
