"""Tables of transitions → kernels: counts against a plain loop, every way to make kernels, every
rule, every mistake.
"""

import datetime
import sys
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest

import drmdp
from drmdp import InputError, MissingExtra, estimate
from drmdp.estimation import rules
from drmdp.estimation.log.table import Columns
from drmdp.estimation.pipeline import fit
from drmdp.estimation.settings import Settings

LOOSE = {"unvisited": "self-loop", "partial": "self-loop", "discount": 0.9}


def log(n=400, seed=0, length=8):
    """Episodes of a small chain, one row per transition."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 4, n)
    following = np.where(
        np.arange(n) % length == length - 1, rng.integers(0, 4, n), np.append(state[1:], 0)
    )
    return {
        "episode": [f"e{k // length}" for k in range(n)],
        "time": [k % length for k in range(n)],
        "state": state.tolist(),
        "action": rng.choice(["a", "b"], n).tolist(),
        "next_state": following.tolist(),
        "cost": rng.integers(0, 100, n).tolist(),
        "year": (2000 + np.arange(n) // (n // 3 + 1)).tolist(),
        "weight": rng.integers(1, 4, n).tolist(),
    }


def shares(rows, weights=None, states=range(4), actions="ab"):
    """Share of each next state by a plain loop, (S, A, S); zero where nothing was seen."""
    counts = Counter()
    for k, row in enumerate(rows):
        counts[row] += 1 if weights is None else weights[k]
    found = np.array(
        [[[counts[s, a, t] for t in states] for a in actions] for s in states], dtype=float
    )
    total = found.sum(axis=2, keepdims=True)
    return np.divide(found, total, out=np.zeros_like(found), where=total > 0)


def triples(table, keep=lambda k: True):
    rows = zip(table["state"], table["action"], table["next_state"], strict=True)
    return [row for k, row in enumerate(rows) if keep(k)]


def visits(table):
    """The same without the next state: rows of an episode follow each other; the rows that remain
    transitions.
    """
    table = dict(table)
    table.pop("next_state")
    n = len(table["state"])
    inner = [k for k in range(n - 1) if table["episode"][k] == table["episode"][k + 1]]
    return table, [(table["state"][k], table["action"][k], table["state"][k + 1]) for k in inner]


# ---------------------------------------------------------------------- counting


def test_one_kernel_is_the_share_of_each_next_state():
    table = log()
    model = estimate(table, cost="cost", discount=0.9)
    np.testing.assert_array_equal(model.kernels[0], shares(triples(table)))
    costs = np.zeros((4, 2))
    for s in range(4):
        for a, action in enumerate("ab"):
            own = [
                c
                for c, (x, y, _) in zip(table["cost"], triples(table), strict=True)
                if (x, y) == (s, action)
            ]
            costs[s, a] = np.mean(own)
    np.testing.assert_allclose(model.costs, costs, rtol=1e-11)
    assert list(model.states) == [0, 1, 2, 3]
    assert list(model.actions) == ["a", "b"]


@pytest.mark.parametrize("source", ["polars", "lazy", "pandas", "csv", "parquet", "path"])
def test_every_source_gives_the_same_model(source, tmp_path):
    table = log()
    model = estimate(table, cost="cost", by="year", **LOOSE)
    frame = pl.DataFrame(table)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    given = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": pd.DataFrame(table),
        "csv": str(tmp_path / "t.csv"),
        "parquet": str(tmp_path / "t.parquet"),
        "path": tmp_path / "t.csv",
    }[source]
    assert estimate(given, cost="cost", by="year", **LOOSE) == model


def test_weights_count_rows_and_costs():
    table = log()
    model = estimate(table, cost="cost", weight="weight", discount=0.9)
    np.testing.assert_allclose(
        model.kernels[0], shares(triples(table), table["weight"]), rtol=1e-15
    )
    own = [k for k, row in enumerate(triples(table)) if row[:2] == (2, "a")]
    mean = np.average([table["cost"][k] for k in own], weights=[table["weight"][k] for k in own])
    np.testing.assert_allclose(model.costs[2, 0], mean, rtol=1e-11)


@pytest.mark.parametrize("order", ["in order", "reversed", "interleaved", "shuffled"])
def test_consecutive_rows_of_an_episode_make_transitions(order):
    table, expected = visits(log())
    n = len(table["state"])
    rows = {
        "in order": np.arange(n),
        "reversed": np.arange(n)[::-1],
        "interleaved": np.argsort(table["time"], kind="stable"),
        "shuffled": np.random.default_rng(0).permutation(n),
    }[order]
    table = {name: [values[k] for k in rows] for name, values in table.items()}
    columns = {"episode": "episode", "time": "time", "costs": "state"}
    np.testing.assert_array_equal(
        estimate(table, discount=0.9, **columns).kernels[0], shares(expected)
    )
    if order in ("in order", "interleaved"):  # rows of an episode are in order without a time
        columns.pop("time")
        np.testing.assert_array_equal(
            estimate(table, discount=0.9, **columns).kernels[0], shares(expected)
        )


def test_the_last_row_of_an_episode_needs_no_action():
    table = {"episode": [1, 1, 2, 2], "state": [0, 1, 1, 0], "action": ["a", None, "a", None]}
    model = estimate(table, episode="episode", costs="state", discount=0.9)
    np.testing.assert_array_equal(model.kernels[0, :, 0], [[0, 1], [1, 0]])
    with pytest.raises(InputError, match="table: row 3, column 'action': the action is missing"):
        estimate(
            {**table, "action": ["a", None, None, "a"]},
            episode="episode",
            costs="state",
            discount=0.9,
        )


# ---------------------------------------------------------------------- kernels


def test_one_kernel_per_value_of_a_column():
    table = log()
    found = fit(table, Columns(cost="cost"), Settings(by="year", **LOOSE))
    assert found.summary.kernels == [2000, 2001, 2002]
    for i, year in enumerate(found.summary.kernels):
        own = shares(triples(table, lambda k, year=year: table["year"][k] == year))
        own[own.sum(axis=2) == 0] = np.eye(4)[np.argwhere(own.sum(axis=2) == 0)[:, 0]]
        np.testing.assert_array_equal(found.model.kernels[i], own)
    assert estimate(table, cost="cost", by="year", n_kernels=3, **LOOSE) == found.model
    with pytest.raises(InputError, match="`n_kernels=4`, but 'year' has 3 values"):
        estimate(table, cost="cost", by="year", n_kernels=4, **LOOSE)


def twins(n=60):
    """Episodes that go from 0 and from 1 to the same state, 2 or 3: in a bootstrap of episodes both
    rows are equal.
    """
    rng = np.random.default_rng(5)
    goal = np.repeat(rng.integers(2, 4, n), 2)
    return {
        "episode": np.repeat(np.arange(n), 2),
        "state": np.tile([0, 1], n),
        "action": np.zeros(2 * n, int),
        "next_state": goal,
    }


def test_the_bootstrap_draws_whole_episodes():
    table = twins()
    common = {
        "costs": "state",
        "discount": 0.5,
        "terminal": [2, 3],
        "episode": "episode",
        "n_kernels": 40,
    }
    found = fit(
        table,
        Columns(episode="episode"),
        Settings(0.5, "bootstrap", 40, 1, costs="state", terminal=[2, 3]),
    )
    kernels = found.model.kernels
    np.testing.assert_array_equal(kernels[:, 0], kernels[:, 1])
    share = (table["next_state"] == 2).mean()
    assert abs(kernels[:, 0, 0, 2].mean() - share) < 0.03
    assert abs(kernels[:, 0, 0, 2].std() - np.sqrt(share * (1 - share) / 60)) < 0.02
    assert found.summary.kernel_transitions == [120] * 40
    assert estimate(table, by="bootstrap", seed=1, **common) == found.model
    assert estimate(table, by="bootstrap", seed=2, **common) != found.model


def test_the_bootstrap_of_transitions():
    found = fit(log(), Columns(cost="cost"), Settings(by="bootstrap", n_kernels=5, **LOOSE))
    assert found.summary.kernel_transitions == [400] * 5
    y = found.model.kernels
    assert (np.abs(y - y.mean(axis=0)).max(axis=0) > 0).mean() > 0.9


def test_leaving_out_one_episode_each():
    table = log(80)
    found = fit(
        table,
        Columns(cost="cost", episode="episode"),
        Settings(by="folds", n_kernels=10, seed=3, **LOOSE),
    )
    left = [shares(triples(table, lambda k, i=i: k // 8 != i)) for i in range(10)]
    left = {
        np.where(y.sum(axis=2, keepdims=True) > 0, y, np.eye(4)[:, None]).tobytes() for y in left
    }
    assert {kernel.tobytes() for kernel in found.model.kernels} == left
    assert found.summary.kernel_transitions == [72] * 10


@pytest.mark.parametrize("episode", [None, "episode"])
def test_parts_are_what_folds_leave_out(episode):
    columns = Columns(cost="cost", episode=episode)
    folds, parts = (
        fit(log(100), columns, Settings(by=by, n_kernels=3, seed=3, **LOOSE)).summary
        for by in ("folds", "parts")
    )
    total = folds.transitions
    assert [total - rows for rows in folds.kernel_transitions] == parts.kernel_transitions
    assert sum(parts.kernel_transitions) == total


def test_folds_of_transitions_share_everything_out():
    found = fit(log(100), Columns(cost="cost"), Settings(by="folds", n_kernels=3, **LOOSE))
    assert found.summary.kernel_transitions == [66, 67, 67]
    with pytest.raises(InputError, match="101 folds need as many transitions, got 100"):
        estimate(log(100), cost="cost", by="folds", n_kernels=101, **LOOSE)
    with pytest.raises(InputError, match="101 folds need as many episodes, got 13"):
        estimate(log(100), cost="cost", by="folds", n_kernels=101, episode="episode", **LOOSE)


def test_posterior_draws_have_the_moments_of_their_distribution():
    table = {"state": [0] * 6, "action": [0] * 6, "next_state": [0, 0, 0, 1, 1, 2]}
    common = {
        "costs": "state",
        "discount": 0.9,
        "unvisited": "self-loop",
        "by": "posterior",
        "n_kernels": 4000,
    }
    for prior, on, alpha in ((1.0, "seen", [4, 3, 2, 0]), (0.5, "all", [3.5, 2.5, 1.5, 0.5])):
        y = estimate(table, prior=prior, prior_on=on, states=range(4), **common).kernels[:, 0, 0]
        alpha = np.array(alpha)
        mean = alpha / alpha.sum()
        np.testing.assert_allclose(y.mean(axis=0), mean, atol=0.01)
        np.testing.assert_allclose(y.var(axis=0), mean * (1 - mean) / (alpha.sum() + 1), atol=0.003)


def test_posterior_draws_with_tiny_priors_are_rows():
    table = {"state": [0, 0], "action": [0, 0], "next_state": [0, 1]}
    common = {
        "costs": "state",
        "discount": 0.9,
        "unvisited": "prior",
        "by": "posterior",
        "n_kernels": 50,
    }
    model = estimate(table, prior=1e-300, prior_on="all", **common)
    np.testing.assert_allclose(model.kernels.sum(axis=3), 1)


# ---------------------------------------------------------------------- rules


HALF = {
    "state": [0, 1, 1, 0],
    "action": ["a", "a", "b", "a"],
    "next_state": [1, 0, 1, 1],
    "group": ["x", "x", "y", "y"],
}


def half(**rules):
    return estimate(HALF, by="group", costs="state", discount=0.9, **rules)


def test_pairs_without_data_are_refused_unless_there_is_a_rule():
    with pytest.raises(
        InputError,
        match=r"table: state 0, action 'b' was never seen; choose a rule for them with `unvisited`: un",
    ):
        half()
    with pytest.raises(
        InputError,
        match=r"state 1, action 'b' was never seen in kernel 'x' but in others, one of 2 such",
    ):
        half(unvisited="prior")


def test_what_each_rule_does():
    np.testing.assert_array_equal(
        half(unvisited="prior", partial="pooled").kernels[:, 0, 1], [[0.5, 0.5]] * 2
    )
    np.testing.assert_array_equal(
        half(unvisited="self-loop", partial="pooled").kernels[:, 0, 1], [[1, 0]] * 2
    )
    np.testing.assert_array_equal(
        half(unvisited="unavailable", partial="pooled").available, [[True, False], [True, True]]
    )
    np.testing.assert_array_equal(
        half(unvisited="prior", partial="pooled").kernels[0, 1, 1], [0, 1]
    )
    np.testing.assert_array_equal(
        half(unvisited="prior", partial="self-loop").kernels[1, 1, 0], [0, 1]
    )
    np.testing.assert_array_equal(
        half(unvisited="prior", partial="prior").kernels[0, 1, 1], [0.5, 0.5]
    )
    with pytest.raises(
        InputError, match="state 1 has no available action; name them with `terminal`"
    ):
        half(unvisited="unavailable", partial="unavailable")
    both = {**HALF, "action": ["a", "a", "a", "a"]}
    model = estimate(both, by="group", costs="state", discount=0.9, partial="unavailable")
    assert model.available.all()


def test_pooled_rows_are_those_of_all_data():
    table = log(60, seed=3)
    model = estimate(
        table, cost="cost", by="year", unvisited="prior", partial="pooled", discount=0.9
    )
    pooled = shares(triples(table))
    for i, year in enumerate((2000, 2001, 2002)):
        own = shares(triples(table, lambda k, year=year: table["year"][k] == year))
        expected = np.where(own.sum(axis=2, keepdims=True) > 0, own, pooled)
        np.testing.assert_allclose(model.kernels[i], expected, rtol=1e-15)


def test_the_notes_and_the_summary_say_what_was_assumed():
    found = fit(
        HALF, Columns(), Settings(0.9, "group", costs="state", unvisited="prior", partial="pooled")
    )
    assert found.model.notes == (
        "1 pair was never seen: prior",
        "2 rows of kernels lack data that others have: pooled; kernels weigh the same, so that their "
        "mean need not be the kernel of all rows together (weights counts makes it so)",
        "start: as the 4 transitions began",
        "3 pairs always led to the same state, and nature cannot change that within observed next states: "
        "a when 1 (once), b when 1 (once), a when 0 (2 times)",
    )
    summary = found.summary
    assert summary.assumed == list(found.model.notes[:3])
    assert summary.thin == list(found.model.notes[3:])
    assert (summary.rows, summary.transitions, summary.episodes) == (4, 4, None)
    assert summary.states == [(0, 2), (1, 2)]
    assert summary.actions == [("a", 3), ("b", 1)]
    assert (summary.pairs, summary.pairs_seen, summary.pairs_seen_once, summary.median) == (
        4,
        3,
        2,
        1.0,
    )
    assert summary.kernels == ["x", "y"]
    assert summary.kernel_transitions == [2, 2]
    assert summary.kernel_pairs == [2, 2]
    assert summary.kernel_assumed == [2, 2]
    assert summary.columns == {"state": "state", "action": "action", "next_state": "next_state"}


def test_terminal_states_end_the_process():
    table = {"state": [0, 0, 9], "action": [1, 1, 1], "next_state": [0, 9, 9]}
    model = estimate(table, costs="state", discount=0.9, terminal=[9])
    np.testing.assert_array_equal(model.terminal, [False, True])
    assert not model.available[1].any()
    with pytest.raises(
        InputError, match="row 2, column 'state': state 0 is terminal, but 9 follows"
    ):
        estimate(table, costs="state", discount=0.9, terminal=[0])
    with pytest.raises(InputError, match="terminal: unknown state 7"):
        estimate(table, costs="state", discount=0.9, terminal=[7])


def test_names_can_be_given_with_those_never_seen():
    table = {"state": [1], "action": ["b"], "next_state": [1]}
    common = {"costs": "state", "discount": 0.9, "unvisited": "unavailable"}
    model = estimate(table, states=[2, 1], actions=["b", "a"], terminal=[2], **common)
    assert list(model.states) == [2, 1]
    np.testing.assert_array_equal(model.kernels[0, 1, 0], [0, 1])
    with pytest.raises(
        InputError, match="row 1, column 'state': the state 1 is none of those given: 2"
    ):
        estimate(table, states=[2], **common)


def test_numbers_in_labels_are_sorted_by_size():
    labels = ["week 10", "week 2", "(3, 12)", "(3, 4)", "week"]
    log = {"state": labels, "next_state": labels, "action": ["go"] * len(labels), "plant": labels}
    model = drmdp.estimate(
        log, by="plant", partial="pooled", costs=np.zeros((len(labels), 1)), discount=0.5
    )
    assert (
        list(model.states)
        == list(model.kernel_names)
        == ["(3, 4)", "(3, 12)", "week", "week 2", "week 10"]
    )


def test_large_models_are_sparse(monkeypatch):
    dense = estimate(log(), cost="cost", by="year", **LOOSE)
    monkeypatch.setattr(rules, "DENSE_ENTRIES", 10)
    found = estimate(log(), cost="cost", by="year", **LOOSE)
    assert found.is_sparse
    assert not dense.is_sparse
    assert found == dense


def test_a_chain_of_many_states_needs_little_memory():
    n = 50_000
    table = {
        "state": np.arange(n),
        "action": np.zeros(n, int),
        "next_state": (np.arange(n) + 1) % n,
    }
    model = estimate(table, costs="1.0", discount=0.9)
    assert model.is_sparse
    assert model.blocks.indices.size == n


# ---------------------------------------------------------------------- costs


def test_costs_from_everywhere(tmp_path):
    table = {"s": [0, 1, 1], "a": ["x", "x", "y"], "t": [1, 0, 0]}
    columns = {
        "state": "s",
        "action": "a",
        "next_state": "t",
        "discount": 0.9,
        "unvisited": "unavailable",
    }
    expected = np.array([[1, 0], [2, 3.5]])
    (tmp_path / "c.csv").write_text("a,s,cost\nx,0,1\ny,1,3.5\nx,1,2\n")
    pl.DataFrame({"a": ["x", "y", "x"], "s": [0, 1, 1], "cost": [1.0, 3.5, 2.0]}).write_parquet(
        tmp_path / "c.parquet"
    )
    for given in (
        expected,
        {(0, "x"): 1, (1, "x"): 2, (1, "y"): 3.5},
        str(tmp_path / "c.csv"),
        tmp_path / "c.csv",
        tmp_path / "c.parquet",
        "1 + s + CASE WHEN a = 'y' THEN 1.5 ELSE 0 END",
    ):
        np.testing.assert_array_equal(estimate(table, costs=given, **columns).costs, expected)
    (tmp_path / "r.csv").write_text("a,s,reward\nx,0,1\ny,1,3.5\nx,1,2\n")
    model = estimate(table, rewards=tmp_path / "r.csv", **columns)
    assert model.maximise
    np.testing.assert_array_equal(model.costs, -expected)
    np.testing.assert_array_equal(
        estimate({**table, "gain": [1, 2, 3.5]}, reward="gain", **columns).costs, -expected
    )


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({(0, "x"): 1}, r"state 1, action 'x': costs has no entry for it"),
        ({0: 1}, r"costs: expected keys \(state, action\), got 0"),
        ({(7, "x"): 1}, "costs: unknown state 7"),
        ("c.csv", "c.csv: no such file"),
        ("s +", r"costs 's \+': "),
        ("nothing + 1", "costs 'nothing "),
        ("1 / (s - 1)", "state 1, action 'x': costs: .* is no finite number there"),
        ("a", "costs 'a': "),
    ],
)
def test_costs_with_mistakes(costs, message):
    table = {"s": [0, 1, 1], "a": ["x", "x", "y"], "t": [1, 0, 0]}
    with pytest.raises(InputError, match=message):
        estimate(
            table,
            state="s",
            action="a",
            next_state="t",
            costs=costs,
            discount=0.9,
            unvisited="unavailable",
        )


def test_files_of_costs_with_mistakes(tmp_path):
    path = tmp_path / "c.csv"
    table = {"state": [0, 1], "action": [0, 0], "next_state": [1, 0]}
    for text, message in (
        ("state,action,cost\n0,0,1\n", "has no row for it"),
        ("state,action,cost\n0,0,1\n0,0,2\n1,0,1\n", "state 0, action 0 is given twice"),
        ("state,action,cost\n0,0,1\n1,0,x\n", "line 3, column 'cost': 'x' is no number"),
        ("state,action,cost\n0,0,1\n1,0,\n", "line 3, column 'cost': the cost is missing"),
        (
            "state,action,price\n0,0,1\n",
            "no column 'cost' for `cost`; there are: state, action, price",
        ),
        (
            "state,action,cost\n0,5,1\n",
            "line 2, column 'action': the action 5 is none of those given: 0",
        ),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            estimate(table, costs=path, discount=0.9)


def test_pairs_opened_by_a_rule_need_a_cost():
    table = {"state": [0, 1, 1], "action": [0, 0, 1], "next_state": [1, 0, 0], "cost": [1, 2, 3]}
    with pytest.raises(
        InputError, match="state 0, action 1: no cost was seen there; give them with `costs`"
    ):
        estimate(table, cost="cost", discount=0.9, unvisited="self-loop")


# ---------------------------------------------------------------------- labels


def labels_of(values, **options):
    n = len(values)
    table = pl.DataFrame({"state": values, "action": [0] * n, "next_state": values}, **options)
    return list(estimate(table, costs="1.0", discount=0.9).states)


def test_labels_are_kept():
    assert labels_of(["b", "a", "Ünï"]) == ["a", "b", "Ünï"]
    assert labels_of([10, 9, -1]) == [-1, 9, 10]
    assert labels_of(["10", "9"]) == [9, 10]
    with pytest.warns(drmdp.Notice, match="'9' .* looks like '09' .*: the same number"):
        assert labels_of(["10", "9", "09"]) == ["09", "9", "10"]
    assert labels_of([2.0, 1.0]) == [1, 2]
    assert labels_of([True, False]) == [0, 1]
    assert labels_of([datetime.date(2020, 1, 2)]) == ["2020-01-02"]
    assert labels_of(["b", "a"], schema_overrides={"state": pl.Categorical}) == ["a", "b"]
    assert labels_of([1, 2], schema_overrides={"state": pl.UInt8}) == [1, 2]


def test_labels_of_csv_files_are_text_unless_all_are_integers(tmp_path):
    path = tmp_path / "t.csv"
    for texts, names in (
        (["007", "8"], ["007", "8"]),
        (["10", "9"], [9, 10]),
        (["1"] * 20_000 + ["A7"], ["1", "A7"]),
    ):
        path.write_text(
            "state,action,next_state\n" + "".join(f"{text},0,{text}\n" for text in texts)
        )
        assert list(estimate(path, costs="1.0", discount=0.9).states) == names


def test_next_states_of_another_type_make_all_of_them_text():
    table = {"state": [1, 1], "action": [0, 0], "next_state": ["1", "end"]}
    assert list(estimate(table, costs="1.0", discount=0.9, terminal=["end"]).states) == ["1", "end"]
    frame = pd.DataFrame(
        {"state": [1, 2], "action": [0, 0], "next_state": pd.array([2, 1], dtype="Int64")}
    )
    assert list(estimate(frame, costs="1.0", discount=0.9).states) == [1, 2]


# ---------------------------------------------------------------------- mistakes


def bad(**changes):
    table = {
        "episode": [1, 1, 1],
        "time": [0, 1, 2],
        "state": [0, 1, 0],
        "action": [0, 0, 0],
        "next_state": [1, 0, 1],
        "cost": [1.0, 2.0, 3.0],
        "weight": [1.0, 1.0, 1.0],
    }
    return {name: values for name, values in (table | changes).items() if values is not None}


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (
            bad(),
            {"state": "where"},
            "table: no column 'where' for `state`; there are: episode, time, state",
        ),
        (bad(), {"by": "hospital"}, "table: no column 'hospital' for `by`"),
        (bad(state=[0, None, 0]), {}, "table: row 2, column 'state': the state is missing"),
        (
            bad(next_state=[0, 1, None]),
            {},
            "table: row 3, column 'next_state': the next_state is missing",
        ),
        (bad(cost=[1.0, None, 3.0]), {}, "table: row 2, column 'cost': the cost is missing"),
        (
            bad(cost=[1.0, 2.0, np.inf]),
            {},
            "table: row 3, column 'cost': the cost must be finite, got inf",
        ),
        (
            bad(cost=["a", "b", "c"]),
            {},
            "table: row 1, column 'cost': 'a' is no number, one of 3 such cells",
        ),
        (
            bad(weight=[1.0, -1.0, 1.0]),
            {"weight": "weight"},
            "row 2, column 'weight': the weight must be finite and not negative, got -1.0",
        ),
        (bad(weight=[0.0, 0.0, 0.0]), {"weight": "weight"}, "state 0, action 0 was never seen"),
        (bad(state=[0.5, 1, 0]), {}, "table: `state`: labels are strings or integers, got 0.5"),
        (bad(state=[[0], [1], [0]]), {}, "labels are strings or integers, got List"),
        (bad(next_state=None), {}, "no column `next_state`, so name the column `episode`"),
        (
            bad(next_state=None, episode=[1, None, 1]),
            {"episode": "episode"},
            "row 2, column 'episode': the episode is missing",
        ),
        (
            bad(next_state=None, time=[1, None, 1]),
            {"episode": "episode", "time": "time"},
            "row 2, column 'time': the time is missing",
        ),
        (
            bad(next_state=None, time=[1, 1, 2]),
            {"episode": "episode", "time": "time"},
            "rows 1 and 2: episode 1 has two rows at 1 that differ",
        ),
        (
            bad(next_state=None, time=[2, 1, 1]),
            {"episode": "episode", "time": "time"},
            "rows 2 and 3: episode 1 has two rows at 1 that differ",
        ),
        (
            bad(next_state=None, time=["a", "b", "c"]),
            {"episode": "episode", "time": "time"},
            "row 1, column 'time': 'a' is no number and no date",
        ),
        (bad(next_state=None, episode=[1, 2, 3]), {"episode": "episode"}, "table: no transitions"),
        ({name: [] for name in bad()}, {}, "table: no rows"),
        ({"state": [1], "action": [1, 2]}, {}, "table: "),
        (
            bad(),
            {"cost": None},
            "give exactly one of `cost`, `reward`, `costs`, `rewards`, got none",
        ),
        (bad(), {"costs": "1"}, "give exactly one of `cost`, .*, got `cost` and `costs`"),
        (
            bad(),
            {"n_kernels": 2},
            "`n_kernels=2` needs `by`: a column, bootstrap, folds, parts, posterior",
        ),
        (bad(), {"by": "bootstrap"}, "`by='bootstrap'` needs `n_kernels`"),
        (
            bad(),
            {"by": "bootstrap", "n_kernels": 0},
            "`n_kernels`: expected a positive whole number, got 0",
        ),
        (bad(), {"by": "folds", "n_kernels": 1}, "`by='folds'` needs at least 2 kernels"),
        (
            bad(),
            {"by": "bootstrap", "n_kernels": 2, "weight": "weight"},
            "with weighted rows needs `episode`",
        ),
        (bad(), {"prior": 0}, "`prior`: expected a positive number, got 0"),
        (bad(), {"prior_on": "some"}, "`prior_on` is one of state, seen, all; got 'some'"),
        (
            bad(),
            {"unvisited": "zero"},
            "`unvisited` is one of refuse, unavailable, prior, self-loop, like:STATE; got 'zero'",
        ),
        (
            bad(),
            {"partial": None},
            "`partial` is one of refuse, unavailable, prior, self-loop, pooled; got None",
        ),
        (bad(), {"discount": 1.5}, r"discount: expected a number in \[0, 1\], got 1.5"),
        (bad(), {"seed": -1}, "seed: .*got -1"),
        (3, {}, "table: expected a Polars or pandas frame, a mapping or a path, got int"),
        (
            "log.ods",
            {},
            "log.ods: unknown suffix '.ods'; a table is a .csv, .tsv, .txt, .parquet or .xlsx file",
        ),
        ("nowhere.csv", {}, "nowhere.csv: no such file"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_mistakes_are_named(table, columns, message):
    with pytest.raises(InputError, match=message):
        estimate(table, **({"cost": "cost", "discount": 0.9} | columns))


def test_lines_of_a_file_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("state,action,next_state,cost\n0,0,0,1\n0,0,,1\n")
    with pytest.raises(
        InputError, match=r"t\.csv: line 3, column 'next_state': the next_state is missing"
    ):
        estimate(path, cost="cost", discount=0.9)
    path.write_text("")
    with pytest.raises(InputError, match=r"t\.csv: empty"):
        estimate(path, cost="cost", discount=0.9)
    path.write_text("state,action,next_state,cost\n" + "0,0,0,1\n" * 20_000 + "0,0,0,x\n")
    with pytest.raises(InputError, match=r"t\.csv: line 20002, column 'cost': 'x' is no number"):
        estimate(path, cost="cost", discount=0.9)
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"t\.parquet: "):
        estimate(tmp_path / "t.parquet", cost="cost", discount=0.9)


def test_without_polars_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        MissingExtra, match=r"polars is not installed; in a clone of drmdp: pip install '.\[data\]'"
    ):
        estimate({"state": [0]}, cost="cost", discount=0.9)


def test_estimated_models_are_solved_with_a_certificate():
    model = estimate(log(), cost="cost", by="year", **LOOSE)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.1, support="all"), tol=1e-6)
    assert solution.status == "solved"
    assert solution.gap <= 1e-6


# ---------------------------------------------------------------------- expressions that are none


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UNNEST([1,2,3])", "depends on more than the state and the action"),
        ("UNNEST([1,2])", "gives 2 numbers for 3 pairs"),
        ("ROW_NUMBER() OVER ()", "costs"),
        (
            "+".join(["state"] * 17_000),
            "an expression of 101999 characters, at most 1000; give a .csv file instead",
        ),
        (
            "cast(" * 70 + "state" + " as int)" * 70,
            "brackets in more than 30 levels; give a .csv file instead",
        ),
        (
            "*".join(["state"] * 160),
            "its whole numbers grow too large; write one of them with a decimal point",
        ),
        ("'a'", "costs"),
        ("", "costs"),
        ("\x1b[2J", "costs"),
    ],
    ids=lambda text: text[:20],
)
def test_expressions_that_give_no_cost_for_each_pair_are_refused(text, message):
    table = {"state": [0, 1, 2], "action": ["a"] * 3, "next_state": [1, 2, 0]}
    with pytest.raises(InputError, match=message) as caught:
        drmdp.estimate(table, costs=text, discount=0.5)
    assert len(str(caught.value)) < 500


def test_expressions_may_be_one_number():
    table = {"state": [0, 1, 2], "action": ["a"] * 3, "next_state": [1, 2, 0]}
    assert drmdp.estimate(table, costs="7", discount=0.5).costs.tolist() == [[7.0]] * 3
    assert drmdp.estimate(table, costs="SUM(state)", discount=0.5).costs.tolist() == [[3.0]] * 3
    assert drmdp.estimate(
        table, costs="1.0 * " + "*".join(["state"] * 60), discount=0.5
    ).costs.tolist() == [
        [0],
        [1],
        [2.0**60],
    ]
