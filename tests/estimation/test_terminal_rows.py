"""Rows of terminal states in a log: what follows them, what they cost, and what they may lack."""

import numpy as np
import pytest

import drmdp
from drmdp import InputError, Notice, Wasserstein, check_log, estimate
from drmdp.estimation.settings import asked_again

COLUMNS = {
    "episode": "unit",
    "time": "month",
    "state": "state",
    "action": "action",
    "cost": "cost",
    "terminal": "scrapped",
    "unvisited": "unavailable",
}


def log(new="M1", action="", cost="", time=True):
    """A machine that runs for four months and is scrapped, and what replaces it, for three."""
    rows = [("M1", k, "good" if k % 2 else "worn", "run", str(5 + k)) for k in range(4)]
    rows += [("M1", 4, "scrapped", action, cost)]
    rows += [(new, k, "good" if k % 2 else "worn", "run", str(5 + k)) for k in (5, 6, 7)]
    names = [
        name for name in ("unit", "month", "state", "action", "cost") if time or name != "month"
    ]
    table = dict(
        zip(("unit", "month", "state", "action", "cost"), zip(*rows, strict=True), strict=True)
    )
    return {name: list(table[name]) for name in names}


def csv(table, path):
    rows = zip(*table.values(), strict=True)
    path.write_text("\n".join(",".join(map(str, row)) for row in (table, *rows)) + "\n")
    return path


@pytest.mark.parametrize(("action", "cost"), [("", ""), ("swap", ""), ("swap", "7")])
def test_a_row_after_a_terminal_state_is_named_with_a_cure(action, cost, tmp_path):
    path = csv(log(action=action, cost=cost), tmp_path / "log.csv")
    refused = [each for each in check_log(path, **COLUMNS).findings if each.refused]
    (finding,) = refused
    assert finding.note == (
        "line 6, column 'state': state 'scrapped' is terminal, but 'good' follows"
    )
    assert finding.cure == (
        "`after_terminal='new'` begins a new episode there; or give the rows that follow another "
        "name in column 'unit'"
    )
    with pytest.raises(InputError, match=r"line 6, .*after_terminal='new'"):
        estimate(path, discount=0.9, **COLUMNS)


@pytest.mark.parametrize("time", [True, False])
@pytest.mark.parametrize("shuffled", [True, False])
@pytest.mark.parametrize("number", [True, False])
def test_a_new_episode_is_what_another_name_would_be(time, shuffled, number):
    options = {**COLUMNS, "time": "month" if time else None, "discount": 0.9}
    same, other = log(time=time), log(new="M2", time=time)
    if number:
        same["unit"], other["unit"] = [1] * 8, [1] * 5 + [2] * 3
    if shuffled and time:
        order = np.random.default_rng(0).permutation(8)
        same, other = ({k: [x[i] for i in order] for k, x in t.items()} for t in (same, other))
    begun = estimate(same, after_terminal="new", **options)
    named = estimate(other, **options)
    assert begun == named
    assert begun.notes == named.notes
    np.testing.assert_array_equal(begun.initial, named.initial)
    found = check_log(same, after_terminal="new", **options)
    assert found.summary.episodes == 2
    assert not found.refused


def test_rows_that_stay_in_a_terminal_state_begin_no_episode():
    table = {
        "unit": ["M1"] * 7,
        "state": ["good", "good", "scrapped", "scrapped", "good", "good", "scrapped"],
        "action": ["run", "run", "", "", "run", "run", ""],
        "cost": [1, 2, None, None, 3, 4, None],
    }
    options = {**COLUMNS, "time": None}
    found = check_log(table, after_terminal="new", **options)
    assert found.summary.episodes == 2
    assert found.summary.transitions == 4
    assert not found.refused


def test_rows_that_stay_need_neither_action_nor_cost():
    table = log()
    table["state"][5:] = ["scrapped"] * 3
    table["action"][5:] = table["cost"][5:] = [""] * 3
    assert not check_log(table, **COLUMNS).refused
    assert estimate(table, discount=0.9, **COLUMNS).terminal.sum() == 1


def test_transitions_of_a_table_with_next_states_that_leave_are_named():
    table = {"state": ["a", "b"], "action": ["go"] * 2, "next_state": ["b", "a"], "cost": [1, 2]}
    with pytest.raises(InputError, match=r"row 2, column 'state': state 'b' is terminal, but 'a'"):
        estimate(table, discount=0.9, cost="cost", terminal="b")


def test_a_new_episode_needs_names_of_terminal_states():
    with pytest.raises(InputError, match=r"`after_terminal='new'` needs .*`terminal`"):
        check_log(log(), **{**COLUMNS, "terminal": None}, after_terminal="new")
    with pytest.raises(InputError, match="`after_terminal` is one of refuse, new"):
        check_log(log(), **COLUMNS, after_terminal="old")


# ---------------------------------------------------------------------- what the end costs


@pytest.mark.parametrize("kind", ["cost", "reward"])
def test_costs_in_rows_of_terminal_states_are_told_with_a_cure(kind):
    table = log(new="M2", cost="18000")
    table[kind] = table.pop("cost")
    options = {name: value for name, value in COLUMNS.items() if name != "cost"}
    finding = check_log(table, **options, **{kind: kind}).findings[0]
    does = "costs" if kind == "cost" else "earns"
    assert not finding.refused
    assert finding.note == (
        f"row 5, column '{kind}': 18000 is not used: 'scrapped' is terminal, and the end {does} 0 "
        "there"
    )
    assert finding.cure == f"`terminal={{'scrapped': 18000}}` says what the end {does}"
    with pytest.warns(Notice, match="18000 is not used"):
        estimate(table, discount=0.9, **options, **{kind: kind})


@pytest.mark.parametrize("kind", ["cost", "reward"])
def test_the_end_costs_what_is_said(kind):
    """One action in one state, so that the value follows by hand."""
    table = {
        "unit": ["M1"] * 4 + ["M2"] * 2,
        "state": ["good", "good", "good", "scrapped", "good", "scrapped"],
        "action": ["run"] * 6,
        kind: [10.0, 10.0, 10.0, 900.0, 10.0, 900.0],
    }
    options = {"episode": "unit", "discount": 0.9, kind: kind}
    ends = {"terminal": {"scrapped": 900}}
    model = estimate(table, **options, **ends)
    kinds = [finding.kind for finding in check_log(table, **options, **ends).findings]
    assert f"terminal {kind}" not in kinds
    assert "1 terminal state, where the process ends at a final value: scrapped 900" in model.notes
    found = drmdp.solve(model, Wasserstein(0.0))
    value = (10 + 0.9 * 0.5 * 900) / (1 - 0.9 * 0.5)
    assert found.value[model.states.index("good")] == pytest.approx(value, rel=1e-4)


def test_bands_and_repeated_estimates_keep_what_the_end_costs(tmp_path):
    table = log(new="M2", cost="18000")
    table["age"] = [1, 2, 3, 4, 5, 1, 2, 3]
    asked = {**COLUMNS, "time": None, "terminal": {"scrapped": 900}, "discount": 0.9}
    for model in estimate(table, **asked, partial="pooled", stage="age", bands=2):
        assert model.ends[model.states.index("scrapped")] == 900
    first = estimate(csv(table, tmp_path / "log.csv"), **asked)
    again = estimate(tmp_path / "log.csv", **asked_again(first, tmp_path))
    assert again == first
    assert again.ends.max() == 900


def test_a_machine_may_be_replaced_on_the_day_on_which_it_ends():
    table = log()
    table["month"][5:] = [4, 5, 6]
    rotated = {name: column[1:] + column[:1] for name, column in table.items()}
    for each in (table, rotated):
        refused = [odd.kind for odd in check_log(each, **COLUMNS).findings if odd.refused]
        assert refused == ["same time", "terminal"]
        found = check_log(each, after_terminal="new", **COLUMNS)
        assert (found.refused, found.summary.episodes) == (False, 2)
