"""Dates of logs: several forms, day or month first, zones, elapsed time, periods, and what
contradicts itself.
"""

import datetime
import warnings
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from test_dirty_logs import COLUMNS, MONTHS, frame, noticed, presses, text
from test_log_times import chain, steps

from drmdp import InputError, Notice, check_log, estimate
from drmdp.estimation.log.order import Ordering
from drmdp.estimation.log.table import Columns
from drmdp.estimation.log.times import Step, discount_of_interest, parse_interest, parse_step
from drmdp.estimation.pipeline import fit
from drmdp.estimation.settings import Settings

RULES = {key: COLUMNS[key] for key in ("unvisited",)}


def rewritten(form):
    """The clean log with its dates written by a function of row number and date."""
    rows = presses()
    for k, row in enumerate(rows):
        row[1] = form(k, datetime.date.fromisoformat(row[1]))
    return rows


@pytest.fixture(scope="module")
def clean():
    return estimate(frame(presses()), discount=0.9, **COLUMNS)


def model_of(rows, **options):
    return estimate(frame(rows), discount=0.9, **COLUMNS, **options)


# ---------------------------------------------------------------------- forms


@pytest.mark.parametrize("pieces", [False, True])
def test_two_forms_that_have_one_reading_each_are_read(clean, pieces, tmp_path):
    """Also where the second form begins after the cells that are looked at first."""
    rows = rewritten(lambda k, day: f"{day:%d.%m.%Y}" if k % MONTHS < 12 else f"{day:%d-%b-%Y}")
    path = tmp_path / "log.csv"
    path.write_text(text(rows))
    found = estimate(path, discount=0.9, **COLUMNS) if pieces else model_of(rows)
    assert found == clean
    assert "times are written in 2 ways: times like 31.01.2020 or 31-Jan-2020" in found.notes


def test_formats_may_be_several_and_a_cell_that_two_of_them_read_differently_is_named(clean):
    formats = ("%d/%m/%Y", "%m/%d/%Y")
    late = rewritten(
        lambda k, day: f"15/{day:%m/%Y}" if day.year < 2021 else f"{day:%m}/15/{day:%Y}"
    )
    assert model_of(late, time_format=formats) == clean
    with pytest.raises(InputError, match="can only begin with the day") as caught:
        model_of(late)
    assert "row 1, column 'Month': '15/01/2020' can only begin with the day, as 72 cells do" in str(
        caught.value
    )
    places = check_log(frame(late), **COLUMNS).findings[0].places
    assert [place.lines for place in places] == [(1,), (13,)]
    assert str(places[1]).endswith("'01/15/2021' can only begin with the month, as 72 cells do")
    late[3][1] = "04/05/2020"
    with pytest.raises(
        InputError, match=r"row 4, column 'Month': '04/05/2020' .*two of them read it differently"
    ):
        model_of(late, time_format=formats)
    late[3][1] = "04/04/2020"  # both readings are one
    assert model_of(late, time_format=formats).n_states == 3


def test_a_year_of_twelve_days_of_may_is_asked_back():
    """Day first until 2020, then month first on the 5th: read day first, 2021 has 12 days of
    May.
    """
    rows = rewritten(
        lambda k, day: f"15/{day:%m/%Y}" if day.year < 2021 else f"{day:%m}/05/{day:%Y}"
    )
    found = check_log(frame(rows), **COLUMNS)
    (odd,) = found.findings
    assert (odd.refused, odd.count, odd.places[0].lines) == (True, 72, (13,))
    assert "lie in one month of each year; if with the month, they are one day of 12 months" in str(
        odd
    )
    with noticed() as texts:
        daily = model_of(rows, time_format="%d/%m/%Y", gaps="cut")
    assert any("one day of 12 months" in line for line in texts)
    assert any("one day of 12 months" in note for note in daily.notes)
    swapped = rewritten(
        lambda k, day: f"{day:%m}/15/{day:%Y}" if day.year < 2021 else f"05/{day:%m}/{day:%Y}"
    )
    assert "if with the day, they are one day of 12 months" in str(
        check_log(frame(swapped), **COLUMNS).findings[0]
    )


@pytest.mark.parametrize("begin", ["2019-12-14", "2020-04-15", "2020-12-31"])
def test_daily_logs_that_end_before_the_thirteenth_are_not_asked_back(begin):
    first = datetime.date.fromisoformat(begin)
    days = [first + datetime.timedelta(days=k) for k in range(28)]
    assert any(day.day > 12 for day in days)
    assert steps([f"{day:%d/%m/%Y}" for day in days]) == (27, "1 day (guessed)")


def test_numbers_of_excel_are_recognised_and_read(clean):
    origin = datetime.date(1899, 12, 30)
    rows = rewritten(lambda k, day: str((day - origin).days))
    with pytest.raises(InputError, match="look like days since 1899-12-30: `time_format='excel'`"):
        model_of(rows)
    assert model_of(rows, time_format="excel") == clean
    for dtype in (pl.Int64, pl.Float64):
        table = pl.DataFrame(frame(rows)).with_columns(pl.col("Month").cast(pl.Int64).cast(dtype))
        assert estimate(table, discount=0.9, time_format="excel", **COLUMNS) == clean
    assert steps(["43831.5", "43831.75", "43832"], time_format="excel", step="6 hours") == (
        2,
        "6 hours",
    )
    with pytest.raises(InputError, match="'60' is none of the times like 43861"):
        steps(["43831", "60"], time_format="excel")


def test_a_time_may_have_several_columns(clean, tmp_path):
    rows = presses()
    table = {
        **frame(rows),
        "y": [int(row[1][:4]) for row in rows],
        "m": [row[1][5:7] for row in rows],
    }
    options = {**COLUMNS, "time": "y, m"}
    assert estimate(table, discount=0.9, **options) == clean
    (tmp_path / "log.csv").write_text(
        "\n".join(
            [
                ",".join(table),
                *map(
                    ",".join,
                    zip(*([str(x) for x in column] for column in table.values()), strict=True),
                ),
            ]
        )
    )
    assert estimate(tmp_path / "log.csv", discount=0.9, **options) == clean
    table["y"] = [float(year) for year in table["y"]]
    assert estimate(table, discount=0.9, **options) == clean
    table["m"][5] = " "
    with pytest.raises(InputError, match="row 6, column 'y, m': the time is missing"):
        estimate(table, discount=0.9, **options)
    with pytest.raises(InputError, match="no column 'q' for `time`"):
        estimate(table, discount=0.9, **{**COLUMNS, "time": "y,q"})


# ---------------------------------------------------------------------- clocks


def test_stamps_with_a_zone_count_by_the_clock_that_they_show():
    with pytest.raises(
        InputError, match="from 2016-04-30 20:00:00 to 2016-06-15 12:00:00 is 2 months"
    ):
        steps(
            ["2016-03-30T20:00-07:00", "2016-04-30T20:00-07:00", "2016-06-15T12:00-07:00"],
            step="month",
        )
    assert steps(["2016-01-31T20:00-08:00", "2016-02-29T12:00-08:00"], step="month") == (
        1,
        "1 month",
    )
    with pytest.raises(InputError, match="lie in the same month"):
        steps(["2016-01-31T20:00-08:00", "2016-02-29T12:00-08:00"], step="month", zone="UTC")


def test_the_clock_of_a_place_is_that_of_its_zone():
    place = ZoneInfo("America/Los_Angeles")
    begin = datetime.datetime(2020, 1, 31, 20, tzinfo=place)
    local = [begin.replace(month=month, day=28) for month in range(1, 13)]
    world = [stamp.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for stamp in local]
    found = fit(
        chain(world),
        Columns(episode="episode", time="time"),
        Settings(
            0.9,
            costs="1",
            unvisited="self-loop",
            ordering=Ordering(zone="America/Los_Angeles", step="month"),
        ),
    )
    assert found.summary.transitions == 11
    assert (
        "days, months and years are those of the clock in America/Los_Angeles" in found.model.notes
    )
    typed = pl.DataFrame(chain(local)).with_columns(
        pl.col("time").dt.convert_time_zone("America/Los_Angeles")
    )
    shown = fit(
        typed,
        Columns(episode="episode", time="time"),
        Settings(0.9, costs="1", unvisited="self-loop"),
    )
    assert shown.summary.transitions == 11
    assert any(
        "that each stamp shows, UTC-08:00 to UTC-07:00" in note for note in shown.model.notes
    )
    with pytest.raises(
        InputError, match="`zone`: expected a name such as 'Europe/Zurich', got 'Mars'"
    ):
        steps(world, zone="Mars")


def test_hours_are_the_same_on_every_clock():
    """The hour that comes twice in autumn."""
    stamps = [
        "2020-10-25T01:00+02:00",
        "2020-10-25T02:00+02:00",
        "2020-10-25T02:00+01:00",
        "2020-10-25T03:00+01:00",
    ]
    assert steps(stamps, step="hour") == (3, "1 hour")
    assert steps(stamps[::-1], step="hour") == (3, "1 hour")


def test_clocks_that_differ_by_more_than_an_hour_are_told():
    stamps = [
        "2020-01-15T10:00+01:00",
        "2020-02-15T10:00+01:00",
        "2020-03-15T10:00Z",
        "2020-04-15T09:00-05:30",
    ]
    with pytest.warns(Notice, match=r"clocks of the stamps are UTC-05:30 to UTC\+01:00"):
        estimate(chain(stamps), episode="episode", time="time", costs="1", discount=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(
            chain(stamps),
            episode="episode",
            time="time",
            costs="1",
            discount=0.9,
            zone="Europe/Zurich",
        )
    with pytest.raises(InputError, match="formats with a zone and without do not go together"):
        steps(stamps, time_format=["%Y-%m-%dT%H:%M%z", "%Y-%m-%dT%H:%MZ"])


# ---------------------------------------------------------------------- steps


def test_calendar_steps_tell_the_distances_that_they_cover():
    def notes(times, **options):
        settings = Settings(0.9, costs="1", unvisited="self-loop", ordering=Ordering(**options))
        return fit(chain(times), Columns(episode="episode", time="time"), settings).model.notes

    uneven = notes(["2020-01-31", "2020-02-01", "2020-03-31", "2020-04-01"], step="month")
    assert uneven[:2] == ("time step: 1 month", "distances from 1 to 59 days count as 1 month")
    assert notes(["2020-01-31", "2020-02-29", "2020-03-31"])[:2] == (
        "time step: 1 month, guessed",
        "start: as the 1 episode began",
    )
    assert "distances from 1 to 728 days count as 1 year" in notes(
        ["2019-01-02", "2020-12-30", "2021-12-31", "2022-01-01"], step="year"
    )
    assert "distances from 0.0333 to 1.97 hours count as 1 hour" in notes(
        ["2020-01-01 08:59", "2020-01-01 09:01", "2020-01-01 10:59"], step="hour"
    )


@pytest.mark.parametrize("unit", ["day", "week", "year"])
def test_elapsed_time_is_rounded_to_the_nearest_multiple(unit):
    """Against fractions, whatever the order of the rows."""
    length = {"day": Fraction(1), "week": Fraction(7), "year": Fraction(3652425, 10000)}[unit]
    step, slack = {"day": (30, 10), "week": (4, 3), "year": (1, 60)}[unit]
    rng = np.random.default_rng(1)
    days = np.cumsum(rng.integers(1, 3 * int(step * length), 400))
    whole = [round(Fraction(int(gap)) / (step * length)) for gap in np.diff(days)]
    near = [
        abs(int(gap) - k * step * length) <= slack
        for gap, k in zip(np.diff(days), whole, strict=True)
    ]
    one = sum(k == 1 and fits for k, fits in zip(whole, near, strict=True))
    times = [datetime.date(1900, 1, 1) + datetime.timedelta(days=int(day)) for day in days]
    options = {"step": f"{step} {unit}s", "within": f"{slack} days"}
    assert 30 < one < 300
    assert steps(times, gaps="cut", **options)[0] == one
    assert steps(times[::-1], gaps="cut", **options)[0] == one
    with pytest.raises(
        InputError,
        match=f"one of {len(days) - 1 - one} such gaps; the step is {step} {unit}s? within {slack} days",
    ):
        steps(times, **options)


def test_a_tolerance_is_told_and_checked():
    days = ["2020-01-01", "2020-01-22", "2020-03-01", "2020-04-05"]
    settings = Settings(
        0.9, costs="1", unvisited="self-loop", ordering=Ordering("30 days", within="10 days")
    )
    notes = fit(chain(days), Columns(episode="episode", time="time"), settings).model.notes
    assert notes[:2] == (
        "time step: 30 days within 10 days",
        "distances from 21 to 39 days count as 30 days",
    )
    with pytest.raises(
        InputError, match=r"rows 1 and 2: .* is 45 days, which is no whole number of steps"
    ):
        steps(["2020-01-01", "2020-02-15"], step="30 days", within="10 days")
    with pytest.raises(
        InputError, match=r"rows 1 and 2: .* is 19 days, which is no whole number of steps"
    ):
        steps(["2020-01-01", "2020-01-20"], step="30 days", within="10 days")
    with pytest.raises(
        InputError, match="from 2020-01-01 to 2020-01-02 is 1 day, which counts as 0 steps"
    ):
        steps(["2020-01-01", "2020-01-02"], step="30 days", within="10 days")
    with pytest.raises(
        InputError, match="from 2020-02-01 to 2020-03-30 is 58 days, which counts as 2 steps"
    ):
        steps(["2020-02-01", "2020-03-30"], step="30 days", within="10 days")
    with pytest.raises(InputError, match="expected less than half of the step, which is 30 days"):
        steps(days, step="30 days", within="15 days")
    assert steps([0, 1.1, 1.9, 3.0], step=1, within=0.2) == (3, "1 within 0.2")
    assert parse_step("1.5 months", True, "5 days") == Step(1.5, "month", Step(5, "day"))


# ---------------------------------------------------------------------- interest


def test_interest_is_a_discount_for_the_length_of_a_step():
    rows = frame(presses())
    yearly = estimate(rows, interest="3%/year", **COLUMNS)
    assert yearly.discount == pytest.approx(1.03 ** (-1 / 12), abs=1e-15)
    assert "interest of 3%/year: a step of 1 month is discounted by 0.99754" in yearly.notes
    for text_, step, found in (
        ("3 % a year", Step(1, "year"), 1 / 1.03),
        ("0.03/year", Step(3, "month"), 1.03**-0.25),
        ("1% per month", Step(1, "quarter"), 1.01**-3),
        ("0.1%/day", Step(2, "week"), 1.001**-14),
        ("5%/year", Step(1, "day"), 1.05 ** (-1 / 365.2425)),
    ):
        assert discount_of_interest(text_, step) == pytest.approx(found, rel=1e-14)
    for bad in ("3%", "year", "3/decade", "-3%/year", ""):
        with pytest.raises(InputError, match="`interest`: expected a rate and its time"):
            parse_interest(bad)
    with pytest.raises(
        InputError,
        match=r"needs dates, but the times are numbers; give `discount` instead: 0.99754 if a step is a month",
    ):
        estimate(chain([0, 1, 2]), episode="episode", time="time", costs="1", interest="3%/year")
    with pytest.raises(InputError, match="no times of rows say how long a step is"):
        estimate({"state": [0], "action": [0], "next_state": [0]}, costs="1", interest="3%/year")
    with pytest.raises(InputError, match="give `discount`, or `interest` such as '3%/year'"):
        estimate(rows, **COLUMNS)


def test_a_discount_that_may_be_a_rate_is_asked_back():
    rows = frame(presses())
    with pytest.warns(
        Notice,
        match=r"a discount of 0.03 forgets 97% of a cost .* 3 % interest a step is 0.970874; or `interest='3%/year'`",
    ):
        model = estimate(rows, discount=0.03, **COLUMNS)
    assert any("a discount of 0.03 forgets" in note for note in model.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(rows, discount=0.5, **COLUMNS)
        estimate(rows, discount=0, **COLUMNS)


# ---------------------------------------------------------------------- periods, duplicates,
# contradictions


@pytest.mark.parametrize("pieces", [False, True])
def test_periods_make_the_kernels_of_a_column_of_periods(pieces, tmp_path):
    rows = presses()
    names = {
        "year": lambda day: day[:4],
        "quarter": lambda day: f"{day[:4]}Q{(int(day[5:7]) + 2) // 3}",
        "month": lambda day: day[:7],
    }
    for period, name in names.items():
        table = frame(rows) | {"period": [name(row[1]) for row in rows]}
        options = {**COLUMNS, "discount": 0.9, "partial": "pooled"}
        expected = estimate(table, by="period", **options)
        given = table
        if pieces:
            given = tmp_path / f"{period}.csv"
            given.write_text(text(rows))
        found = estimate(given, by=f"time:{period}", **options)
        assert found == expected
        assert list(map(str, found.kernel_names)) == list(map(str, expected.kernel_names))
        assert check_log(given, by=f"time:{period}", **COLUMNS, partial="pooled")
    with pytest.raises(
        InputError, match="`by='time:year'` needs dates: the times in 'time' are numbers"
    ):
        estimate(
            chain([0, 1, 2]),
            episode="episode",
            time="time",
            costs="1",
            discount=0.9,
            by="time:year",
        )
    with pytest.raises(
        InputError, match=r"no column 'year' for `by` \(did you mean 'time:year'\?\)"
    ):
        estimate(frame(rows), **COLUMNS, discount=0.9, by="year")


TWICE = {
    "episode": ["a"] * 5,
    "time": ["2020-01-05", "2020-02-03", "2020-02-20", "2020-03-01", "2020-03-01"],
    "state": ["good", "poor", "fair", "poor", "good"],
    "action": ["go"] * 5,
}


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    ("rule", "path"),
    [("first", "good poor poor"), ("last", "good fair good"), ("worst", "good poor poor")],
)
def test_one_of_several_rows_of_a_step_is_kept(rule, path, shuffled):
    order = [3, 0, 2, 1, 4] if shuffled else range(5)
    table = {name: [column[k] for k in order] for name, column in TWICE.items()}
    states = ["good", "fair", "poor"]
    options = {
        "episode": "episode",
        "time": "time",
        "costs": "1",
        "discount": 0.9,
        "states": states,
        "unvisited": "self-loop",
        "step": "month",
    }
    found = estimate(table, duplicates=rule, **options)
    names = path.split()
    expected = estimate(
        {"episode": ["a"] * 3, "state": names, "action": ["go"] * 3},
        **{**options, "time": None, "step": None},
    )
    assert found == expected
    assert f"of several rows of an episode in one step the {rule} is kept: 2 dropped" in found.notes


def test_of_transitions_at_one_time_one_is_kept():
    table = {**TWICE, "next_state": ["poor", "fair", "good", "good", "fair"]}
    options = {
        "episode": "episode",
        "time": "time",
        "costs": "1",
        "discount": 0.9,
        "unvisited": "self-loop",
    }
    kept = estimate(table, duplicates="last", **options)
    rows = [k for k in range(5) if k != 3]
    expected = estimate(
        {name: [column[k] for k in rows] for name, column in table.items()}, **options
    )
    assert kept == expected
    assert "of several rows of an episode in one step the last is kept: 1 dropped" in kept.notes


def test_the_last_of_equal_times_is_the_last_of_the_table():
    rng = np.random.default_rng(0)
    rows = pl.DataFrame(
        {
            "episode": rng.integers(0, 50, 20_000),
            "time": rng.integers(0, 20, 20_000),
            "state": rng.integers(0, 5, 20_000),
        }
    )
    table = rows.with_columns(action=pl.lit("go"))
    options = {"episode": "episode", "time": "time", "costs": "1", "discount": 0.9}
    for rule in ("first", "last"):
        kept = table.unique(["episode", "time"], keep=rule, maintain_order=True)
        assert estimate(table, duplicates=rule, **options) == estimate(kept, **options)


def test_a_state_that_is_none_of_those_given_is_not_dropped():
    options = {"episode": "episode", "time": "time", "costs": "1", "discount": 0.9, "step": "month"}
    with pytest.raises(
        InputError, match="row 2, column 'state': the state 'poor' is none of those given"
    ):
        estimate(TWICE, duplicates="worst", states=["good", "fair"], **options)


def test_periods_are_those_of_the_clock():
    stamps = [
        "2019-12-31T23:00-08:00",
        "2020-01-31T12:00-08:00",
        "2020-02-28T12:00-08:00",
        "2020-03-28T12:00-07:00",
    ]
    options = {
        "episode": "episode",
        "time": "time",
        "costs": "1",
        "discount": 0.9,
        "by": "time:year",
        "partial": "pooled",
    }
    assert list(map(str, estimate(chain(stamps), **options).kernel_names)) == ["2019", "2020"]
    assert [
        str(name)
        for name in estimate(chain(stamps), zone="UTC", **options, gaps="bridge").kernel_names
    ] == ["2020"]


def test_rows_of_one_step_that_differ_are_refused_with_a_cure():
    options = {"episode": "episode", "time": "time", "step": "month", "unvisited": "self-loop"}
    same, near, _ = check_log(TWICE, **options).findings
    assert (
        same.places[0].what
        == "episode 'a' has two rows at 2020-03-01 that differ: their order is unknown"
    )
    assert near.places[0].what.endswith("2020-02-03 and 2020-02-20 lie in the same month")
    for finding in (same, near):
        assert "`duplicates='last'` keeps the last of them" in finding.cure


def test_next_states_that_contradict_the_next_row_are_told():
    rows = presses()
    table = frame(rows)
    then = [
        "poor" if k % MONTHS == MONTHS - 1 else row[2] for k, row in enumerate([*rows[1:], rows[0]])
    ]  # of the last: not there
    table["next"] = then
    options = {**COLUMNS, "next_state": "next", "discount": 0.9}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(table, **options)
    wrong = [3, 40]
    table["next"] = [
        "good" if k in wrong and name != "good" else "poor" if k in wrong else name
        for k, name in enumerate(then)
    ]
    found = check_log(table, **{key: value for key, value in options.items() if key != "discount"})
    (odd,) = found.findings
    assert (odd.kind, odd.refused, odd.count) == ("next state", False, 2)
    assert [place.lines for place in odd.places] == [(4, 5), (41, 42)]
    assert f"but the next row of episode 'Press-1' is in {then[3]!r}" in odd.places[0].what
    with pytest.warns(Notice, match="one of 2 such pairs of rows"):
        estimate(table, **options)
    del table["Month"]
    assert check_log(
        table, next_state="next", **{key: value for key, value in COLUMNS.items() if key != "time"}
    )


# ---------------------------------------------------------------------- scales


def scaled(new, from_month=12):
    """The clean log of more machines, whose conditions are written in another way from a month
    on.
    """
    rows = presses(20)
    for k, row in enumerate(rows):
        if k % MONTHS >= from_month:
            row[2] = new[row[2]][k % len(new[row[2]])]
    return rows


def test_states_that_were_not_in_use_at_the_same_time_are_told():
    words = scaled({"good": "12", "fair": "34", "poor": "56"})
    (odd,) = check_log(frame(words), **COLUMNS).findings
    assert (odd.kind, odd.refused, odd.count, odd.places[0].lines) == ("scale", False, 6, (13,))
    assert odd.places[0].what == (
        "the states 1, 2, 3, 4, 5, 6 first appear from 2021-01-01 on, after 240 rows without them, "
        "the last rows with fair, good, poor being of 2020-12-01"
    )
    with pytest.warns(Notice, match="the states 1, 2, 3, 4, 5, 6 first appear"):
        model_of(words)
    numbers = [
        [*row[:2], {"good": "1", "fair": "2", "poor": "3"}.get(row[2], row[2]), *row[3:]]
        for row in words
    ]
    (odd,) = check_log(frame(numbers), **COLUMNS).findings
    assert (
        odd.places[0].what
        == "the states 4, 5, 6 first appear from 2021-01-01 on, after 240 rows without them"
    )
    assert check_log(frame(numbers), states=list(range(1, 7)), **COLUMNS)


def test_states_that_appear_early_alone_or_rarely_are_not_told():
    for change, month in (
        (({"good": "12", "fair": "34", "poor": "56"}), 3),
        ({"good": ["good"], "fair": ["fair"], "poor": ["bad"]}, 12),
    ):
        assert not [
            f
            for f in check_log(frame(scaled(change, month)), **COLUMNS).findings
            if f.kind == "scale"
        ]
    rare = presses(20)
    rare[300][2], rare[301][2] = "flooded", "burnt"
    assert not [f for f in check_log(frame(rare), **COLUMNS).findings if f.kind == "scale"]
