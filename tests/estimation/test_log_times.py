"""Times of logs: steps, gaps, duplicates, forms of dates."""

import datetime

import numpy as np
import polars as pl
import pytest
from test_dirty_logs import COLUMNS, frame, presses

from drmdp import InputError, Notice, check_log, estimate
from drmdp.estimation.log.dates import FORMS, Form, forms_of
from drmdp.estimation.log.order import Ordering
from drmdp.estimation.log.table import Columns
from drmdp.estimation.log.times import Step, parse_step
from drmdp.estimation.pipeline import fit
from drmdp.estimation.settings import Settings


def chain(times, episode="e"):
    """A log of two states with given times."""
    n = len(times)
    return {
        "episode": [episode] * n,
        "time": times,
        "state": [k % 2 for k in range(n)],
        "action": ["go"] * n,
    }


def steps(times, **options):
    settings = Settings(0.9, costs="1", unvisited="self-loop", ordering=Ordering(**options))
    summary = fit(chain(times), Columns(episode="episode", time="time"), settings).summary
    return summary.transitions, summary.step


# ---------------------------------------------------------------------- gaps


def worn(n, seed):
    """Three states under one action, with a known kernel; a row per month for each of n
    machines.
    """
    kernel = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.5, 0.0, 0.5]])
    rng = np.random.default_rng(seed)
    rows = []
    for machine in range(n):
        state = 0
        for month in range(120):
            rows.append(
                (
                    f"m{machine}",
                    f"{2010 + month // 12}-{month % 12 + 1:02d}",
                    "abc"[state],
                    "run",
                    month,
                )
            )
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
        InputError,
        match="from 2010-02-01 to 2010-04-01 is 2 months, one of 1,950 such gaps; the step is 1 month",
    ):
        estimate(missing, **options)
    found = fit(
        missing,
        Columns(episode="machine", time="month"),
        Settings(0.9, costs="1", ordering=Ordering(gaps="cut")),
    )
    assert (found.summary.transitions, found.summary.ends) == (50 * 40, 50 + 1950)
    assert found.model.notes[:2] == (
        "time step: 1 month, guessed",
        "1,950 gaps in time: the episode ends there and begins again",
    )
    cut = found.model.kernels[0, :, 0]
    error = 4 * np.sqrt(
        kernel * (1 - kernel) / (50 * 40 * 0.2)
    )  # each state has a fifth of the rows at least
    assert (np.abs(cut - whole) <= error).all()
    assert (np.abs(cut - kernel) <= error).all()
    bridged = estimate(missing, gaps="bridge", **options)
    assert np.abs(bridged.kernels[0, :, 0] - kernel).max() > 0.1  # what silence would have cost
    assert bridged.notes[0].endswith("1,950 pairs of rows are further apart than 1 month")
    np.testing.assert_array_equal(cut > 0, kernel > 0)
    assert bridged.kernels[0, 2, 0, 1] > 0  # a transition that does not exist


def test_a_cut_makes_the_model_of_the_pieces():
    rows = presses()
    pieces = [
        [f"{row[0]}/{'b' if row[1] > '2020-08' else 'a'}", *row[1:]]
        for row in rows
        if row[1][:7] != "2020-08"
    ]
    holes = [row for row in rows if row[1][:7] != "2020-08"]
    options = COLUMNS | {
        "discount": 0.9,
        "initial": "uniform",
    }  # what begins again after a gap did not begin there
    expected = estimate(frame(pieces), **options)
    assert estimate(frame(holes), gaps="cut", **options) == expected
    np.random.default_rng(0).shuffle(holes)
    assert estimate(frame(holes), gaps="cut", **options) == expected
    assert (
        estimate(frame(holes), gaps="cut", **options | {"initial": None}).start
        == "as the 6 episodes began"
    )


def test_before_a_gap_no_action_is_needed():
    table = {
        "episode": [1, 1, 1, 1],
        "time": [0, 1, 5, 6],
        "state": [0, 1, 0, 1],
        "action": ["a", None, "a", None],
    }
    with pytest.raises(InputError, match="rows 2 and 3"):
        estimate(table, episode="episode", time="time", costs="1", discount=0.9, terminal=[1])
    model = estimate(
        table, episode="episode", time="time", costs="1", discount=0.9, terminal=[1], gaps="cut"
    )
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
        (
            [datetime.timedelta(days=1), datetime.timedelta(days=2), datetime.timedelta(days=3)],
            "86400",
        ),
        ([datetime.time(8), datetime.time(9), datetime.time(10)], "3600"),
    ],
    ids=str,
)
def test_steps_are_guessed_and_said(times, step):
    assert steps(times) == (len(times) - 1, f"{step} (guessed)")
    assert steps(times[::-1]) == (len(times) - 1, f"{step} (guessed)")


def test_days_of_the_month_and_hours_of_the_day_do_not_matter():
    assert steps(["2020-01-03", "2020-02-28", "2020-03-01"]) == (2, "1 month (guessed)")
    assert (
        steps(
            ["2020-01-01 23:59", "2020-01-02 00:01", "2020-01-03 12:00", "2020-01-04 08:00"],
            step="day",
        )[0]
        == 3
    )


def test_the_guess_is_the_most_frequent_distance_and_the_smallest_of_several():
    with pytest.raises(InputError, match="from 1 to 3 is 2; the step is 1, as most often here"):
        steps([0, 1, 3])
    noisy = [k + 1e-9 * (k * k % 17) for k in range(16)]
    with pytest.raises(InputError, match="one of 2 such gaps; the step is 1, as most often here"):
        steps([*noisy, noisy[-1] + 3, noisy[-1] + 6])
    days = [day for day in ("2020-01-01", "2020-02-01", "2020-03-01") for _ in range(2)]
    rows = {**chain(days), "state": [0, 0, 1, 1, 0, 0]}
    settings = Settings(0.9, costs="1", ordering=Ordering(duplicates="drop"))
    assert (
        fit(rows, Columns(episode="episode", time="time"), settings).summary.step
        == "1 month (guessed)"
    )


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
    np.testing.assert_array_equal(
        model.kernels[0, :, 0], counts / counts.sum(axis=1, keepdims=True)
    )
    assert model.notes == (
        "rows of an episode follow each other as in the table, one step apart",
        "start: as the 7 episodes began",
    )
    np.testing.assert_array_equal(model.initial, np.bincount(state[:7], minlength=5) / 7)


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        (
            [0, 1, 2, 2.5, 3, 4],
            {},
            "rows 3 and 4: episode 'e': from 2.0 to 2.5 is 0.5, which is no whole number of steps, one of 2 such",
        ),
        (
            [0, 1, 2, 2.5, 3, 4],
            {"gaps": "cut"},
            "rows 3 and 4: .*the step is 1, as most often here; give a smaller `step`",
        ),
        (
            [0, 1, 2, 4.5, 5.5],
            {},
            "rows 3 and 4: episode 'e': from 2.0 to 4.5 is 2.5, which is no whole number of steps",
        ),
        (
            [0, 2, 4, 5],
            {"step": 2},
            "rows 3 and 4: episode 'e': from 4 to 5 is 1, which is no whole number of steps; the step is 2; give",
        ),
        ([20200131, 20200201, 20200202], {}, "if these numbers are dates: `time_format='%Y%m%d'`"),
    ],
    ids=str,
)
def test_times_off_the_grid_are_named(times, options, message):
    with pytest.raises(InputError, match=message):
        steps(times, **options)


def test_a_log_is_not_cut_at_a_guess_that_few_rows_follow():
    times = np.cumsum([0, 1, 1, 3, 4, 5, 6, 7, 8, 9]).tolist()
    with pytest.raises(
        InputError,
        match="only 2 of 9 neighbours are 1 apart, the most frequent distance; say with `step`",
    ):
        steps(times, gaps="cut")
    assert steps(times, gaps="cut", step=1) == (2, "1")


def test_bridges_take_time_for_an_order_alone():
    assert steps([0, 1, 2, 2.5, 7], gaps="bridge")[0] == 4


def test_settings_of_times_that_contradict_each_other_are_refused():
    table = {"state": [0], "action": [0], "next_state": [0], "time": [0], "episode": [0]}
    for options, message in (
        ({"gaps": "cut"}, "`gaps='cut'` needs `time`"),
        ({"duplicates": "drop"}, "`duplicates='drop'` needs `time`"),
        ({"step": "month"}, "`step='month'` needs `time`"),
        ({"time_format": "%Y"}, "`time_format='%Y'` needs `time`"),
        (
            {"time": "time", "step": 1, "gaps": "bridge"},
            "`gaps='bridge'` pairs rows whatever the time between: it takes no `step`",
        ),
        ({"time": "time", "gaps": "cut"}, "`step` and `gaps` are for rows without `next_state`"),
        ({"gaps": "jump"}, "`gaps` is one of refuse, cut, bridge, fill; got 'jump'"),
        (
            {"duplicates": "keep"},
            "`duplicates` is one of refuse, drop, first, last, worst; got 'keep'",
        ),
        ({"within": "2 days"}, "`within='2 days'` needs `time`"),
        ({"time": "time", "within": 2}, "`within=2` needs `step`"),
        ({"zone": "UTC"}, "`zone='UTC'` needs `time`"),
        ({"time": "time", "duplicates": "worst"}, "`duplicates='worst'` needs `states` in order"),
        ({"by": "time:year"}, "`by='time:year'` needs `time`"),
        (
            {"time": "time", "by": "time:day"},
            "`by='time:day'`: expected one of time:year, time:quarter, time:month",
        ),
        ({"interest": "3%/year"}, "give `discount` or `interest`, not both"),
        ({"weights": "more"}, "`weights` is one of equal, rows, counts; got 'more'"),
    ):
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
    with pytest.raises(
        InputError, match="rows 2 and 3: episode 'a' has two rows at 1 that are the same"
    ):
        estimate(table, **options)
    assert "1 exact duplicate dropped" in estimate(table, duplicates="drop", **options).notes
    estimate(
        {name: values for name, values in table.items() if name != "time"}, costs="1", discount=0.9
    )


# ---------------------------------------------------------------------- times


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.format], ids=lambda form: form.example
)
def test_each_form_of_dates_reads_its_own_example(form):
    found = pl.select(form.read(pl.lit(form.example))).item()
    assert (found.year, found.month in (1, 2)) == (2020, True)
    if ":45" in form.example:
        assert (found.hour, found.minute) == (13, 45)
    assert form in forms_of({form.example: 1})
    assert all(
        pl.select(form.read(pl.lit(text))).item() is None
        for text in ("", "x", "2020", f"{form.example}x")
    )


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
        Settings(
            0.9,
            costs="1",
            unvisited="self-loop",
            ordering=Ordering(time_format=form, gaps="bridge"),
        ),
    )
    assert found.summary.transitions == 1
    time = pl.select(Form("", "", form).read(pl.lit(cell))).item()
    assert (time.year, time.month, time.day, time.hour) == read


def test_years_have_four_digits():
    with pytest.raises(
        InputError, match="row 3, column 'time': '20-03-01' is none of the times like 2020-01-31"
    ):
        steps(["2020-01-01", "2020-02-01", "20-03-01"])


def test_times_of_every_type_are_taken():
    for dtype in (pl.Int8, pl.UInt8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)):
        table = pl.DataFrame(chain([120, 100, 110, 90])).with_columns(pl.col("time").cast(dtype))
        settings = Settings(0.9, costs="1")
        assert (
            fit(table, Columns(episode="episode", time="time"), settings).summary.step
            == "10 (guessed)"
        )
    wide = pl.DataFrame(chain([-100, 0, 100])).with_columns(pl.col("time").cast(pl.Int8))
    assert (
        fit(wide, Columns(episode="episode", time="time"), settings).summary.step == "100 (guessed)"
    )
    with pytest.raises(InputError, match="row 3, column 'time': the time is missing"):
        steps([0.0, 1.0, float("inf")])
    with pytest.raises(
        InputError,
        match="row 1, column 'time': '2020-01' is none of the times like %m/%Y, one of 2",
    ):
        steps(["2020-01", "2020-02"], time_format="%m/%Y")


def test_formats_are_for_text():
    with pytest.raises(
        InputError, match="`time_format='%Y'`: column 'time' is no text, but Float64"
    ):
        steps([1.0, 2.0], time_format="%Y")
    assert steps([202001, 202002], time_format="%Y%m") == (1, "1 month (guessed)")


def test_steps_have_a_number_and_a_unit():
    assert parse_step("Months", True) == parse_step("1 month", True) == Step(1, "month")
    assert (str(Step(2, "week")), str(Step(0.5))) == ("2 weeks", "0.5")
    for given in ("", "0", "-1", "1.5 months", "..", "month 2", None, True):
        with pytest.raises(InputError, match="`step`: expected a number"):
            parse_step(given, True)
    with pytest.raises(InputError, match="`step='month'`: the times are numbers"):
        steps([0, 1], step="month")


def test_long_gaps_are_named_also_where_they_end_an_episode():
    rows = [("m", f"{2020 + k // 12}-{k % 12 + 1:02d}-01", "ok", "run", "ok") for k in range(30)]
    rows[7] = ("m", "2032-08-01", "ok", "run", "ok")
    del rows[20]
    log = dict(zip(("e", "t", "state", "action", "x"), zip(*rows, strict=True), strict=True))
    options = {"episode": "e", "time": "t", "costs": "1"}
    found = check_log(log, gaps="cut", **options)
    (odd,) = (finding for finding in found.findings if finding.kind != "thin")
    assert (odd.kind, odd.refused, odd.count) == ("long gap", False, 1)
    assert str(odd) == (
        "rows 29 and 8: episode 'm': from 2022-06-01 to 2032-08-01 is 122 months; if a time is "
        "wrong, mend it; otherwise the episode ends there and begins again"
    )
    with pytest.warns(Notice, match="rows 29 and 8"):
        estimate(log, gaps="cut", discount=0.9, **options)
    kinds = [each.kind for each in check_log(log, gaps="bridge", **options).findings]
    assert "long gap" not in kinds
