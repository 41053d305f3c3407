"""What a policy rests on: a slip, an action that was tried three times, patients of whom there are
few.
"""

import sys
from fractions import Fraction

import numpy as np
import polars
import pytest

import drmdp
from drmdp import InputError, check_log, estimate

CONDITIONS = ("good", "fair", "worn", "broken")
COLUMNS = {
    "episode": "machine",
    "time": "month",
    "state": "condition",
    "cost": "cost",
    "states": CONDITIONS,
}


def machines(n=12, months=60, seed=3):
    """A log of machines that wear: run, service or replace, month by month."""
    rng, rows = np.random.default_rng(seed), []
    for m in range(n):
        s = 0
        for month in range(months):
            u = rng.random()
            action = (
                "replace"
                if s == 3 and u < 0.8
                else "service"
                if (s == 2 and u < 0.5) or s == 3 or u < 0.02
                else "run"
            )
            price = (0.0, 50.0, 150.0, 3000.0)[s] + {"run": 0, "service": 350, "replace": 2200}[
                action
            ]
            rows.append([f"M{m}", month, CONDITIONS[s], action, price])
            if action == "replace":
                s = int(rng.random() < 0.03)
            elif action == "service":
                s = max(s - int(rng.random() < 0.7), 0)
            else:
                s = 3 if rng.random() < 0.01 * (s + 1) else min(s + int(rng.random() < 0.1), 3)
    return rows


def table(rows):
    return {
        name: [row[k] for row in rows]
        for k, name in enumerate(("machine", "month", "condition", "action", "cost"))
    }


def slipped():
    """The same log with two cells that somebody mistyped: an action, whose machine stayed good, and
    a condition.
    """
    rows = machines()
    at = next(
        k for k in range(100, len(rows)) if [row[2] for row in rows[k : k + 2]] == ["good", "good"]
    )
    rows[at][3] = "scrap"
    wet = next(
        k
        for k in range(400, len(rows))
        if [row[2] for row in rows[k - 1 : k + 2]] == ["good", "fair", "fair"]
    )
    rows[wet][2] = "flooded"
    return table(rows)


SLIPS = COLUMNS | {"states": (*CONDITIONS, "flooded"), "unvisited": "unavailable", "discount": 0.99}


BALL = drmdp.Wasserstein(0.1)


def test_a_slip_is_listed_as_thin_and_the_policy_says_that_it_rests_on_one_row():
    found = check_log(
        slipped(), **{name: value for name, value in SLIPS.items() if name != "discount"}
    )
    (thin,) = found.findings
    assert (thin.kind, thin.refused, thin.count, bool(found), found.refused) == (
        "thin",
        False,
        4,
        False,
        False,
    )
    assert [place.what for place in thin.places][:3] == [
        "state 'good', action 'scrap': seen once, and led to 'good'",
        "state 'flooded', action 'run': seen once, and led to 'fair'",
        "state 'good', action 'service': seen 9 times, and always led to 'good'",
    ]
    assert thin.cure.startswith(
        "nature cannot change these 4 rows within observed next states (1, 1, 9 and 14 observations)"
    )
    model = estimate(slipped(), **SLIPS)
    assert model.counts[0, model.actions.index("scrap")].tolist() == [1, 0, 0, 0, 0]
    assert any(
        "nature cannot change that within observed next states: scrap when good (once)" in note
        for note in model.notes
    )
    solution = drmdp.solve(model, BALL)
    assert solution.to_dict()["good"] == "scrap"  # what the set cannot doubt; hence the note
    assert "scrap when good rests on 1 row, run when flooded rests on 1 row" in solution.notes
    assert "note       scrap when good rests on 1 row" in repr(solution)
    frame = solution.to_frame()
    assert frame.columns[-1] == "rows"
    rows = dict(zip(frame["state"], frame["rows"], strict=True))
    assert rows == {
        state: model.pair_counts[s, solution.policy[s].argmax()]
        for s, state in enumerate(model.states)
    }
    assert (rows["good"], rows["flooded"]) == (1, 1)
    assert rows["worn"] > 20


def test_pairs_seen_too_seldom_are_unavailable():
    with pytest.raises(
        InputError,
        match="state 'flooded' has no available action that was seen often enough; give a smaller `min_count`",
    ):
        estimate(slipped(), min_count=5, **SLIPS)
    options = SLIPS | {"states": CONDITIONS, "rename": {"flooded": "fair"}, "unvisited": "refuse"}
    model = estimate(slipped(), min_count=5, **options)
    scrap = model.actions.index("scrap")
    assert not model.available[:, scrap].any()
    assert model.pair_counts[0, scrap] == 1  # what was seen was seen
    assert (
        "8 pairs were seen fewer than 5 times, and so unavailable: scrap when good (once); 7 never"
        in model.notes
    )
    assert drmdp.solve(model, BALL).to_dict()["good"] != "scrap"
    assert estimate(slipped(), min_count=9, **options).available[0].tolist() == [
        action in ("run", "service") for action in model.actions
    ]
    assert not estimate(slipped(), min_count=9.5, **options).available[
        0, model.actions.index("service")
    ]
    for wrong, message in (
        ({"min_count": -1}, "`min_count`: expected a number that is not negative, got -1"),
        (
            {"min_count": 2, "unvisited": "prior"},
            "`min_count=2` makes pairs that were never seen unavailable",
        ),
    ):
        with pytest.raises(InputError, match=message):
            estimate(slipped(), **options | wrong)


@pytest.mark.parametrize(
    "ambiguity", [BALL, drmdp.Divergence(0.05, "kl"), drmdp.Reweighting(kind="any")], ids=repr
)
def test_posterior_draws_doubt_what_was_seen_once(ambiguity):
    common = SLIPS | {"by": "posterior", "n_kernels": 50}
    assert drmdp.solve(estimate(slipped(), **common), ambiguity).to_dict()["good"] == "run"
    assert (
        drmdp.solve(estimate(slipped(), prior_on="seen", **common), ambiguity).to_dict()["good"]
        == "scrap"
    )


# ---------------------------------------------------------------------- an action that was tried
# three times


def greased():
    """Two thousand rows of running, 2 % of which break, and three of greasing, none of which does
    and which costs more.
    """
    rows = 1960 * [("ok", "run", "ok", 10)] + 40 * [("ok", "run", "broken", 10)]
    rows += 3 * [("ok", "grease", "ok", 60)] + 40 * [("broken", "repair", "ok", 2000)]
    return dict(
        zip(
            ("state", "action", "next_state", "cost"),
            map(list, zip(*rows, strict=True)),
            strict=True,
        )
    )


GREASED = {"cost": "cost", "unvisited": "unavailable", "discount": 0.99}


def test_three_rows_are_no_certainty():
    found = check_log(greased(), cost="cost", unvisited="unavailable")
    assert str(found).startswith(
        "table: 1 thing odd; an estimate is made, with warnings\nthin, 2 places\n  state 'ok', action 'grease': seen 3 times"
    )
    model = estimate(greased(), **GREASED)
    for radius in (0.01, 0.03, 0.05):
        solution = drmdp.solve(model, drmdp.Wasserstein(radius))
        assert (solution.to_dict()["ok"], solution.notes[-1]) == (
            "grease",
            "grease when ok rests on 3 rows",
        )
    few = estimate(greased(), min_count=5, **GREASED)
    assert drmdp.solve(few, drmdp.Wasserstein(0.05)).to_dict() == {"ok": "run", "broken": "repair"}
    draws = estimate(greased(), by="posterior", n_kernels=100, **GREASED)
    s, a = draws.states.index("ok"), draws.actions.index("grease")
    breaks = draws.kernels[:, s, a, draws.states.index("broken")]
    assert 0.1 < breaks.mean() < 0.3  # that of Beta(1, 4) is 0.2
    for ambiguity in (
        drmdp.Wasserstein(0.03),
        drmdp.Divergence(0.01, "kl"),
        drmdp.Divergence(0.05, "tv"),
        drmdp.Reweighting(kind="any"),
    ):
        assert drmdp.solve(draws, ambiguity).to_dict()["ok"] == "run"
    sure = estimate(greased(), by="posterior", n_kernels=100, prior_on="seen", **GREASED)
    assert (sure.kernels[:, s, a, s] == 1).all()


def test_draws_are_on_the_next_states_of_the_state():
    log = {
        "state": [0, 0, 0, 1, 2],
        "action": ["a", "a", "b", "a", "a"],
        "next_state": [0, 2, 1, 1, 0],
    }
    found = {
        on: (
            estimate(
                log,
                costs="1",
                by="posterior",
                n_kernels=400,
                prior_on=on,
                prior=0.5,
                unvisited="self-loop",
                discount=0.9,
            ).kernels
        )
        for on in ("seen", "state", "all")
    }
    alpha = {  # of the pairs (0, a), (0, b), (1, a)
        "seen": [[1.5, 0, 1.5], [0, 1.5, 0], [0, 1.5, 0]],
        "state": [[1.5, 0.5, 1.5], [0.5, 1.5, 0.5], [0, 1.5, 0]],
        "all": [[1.5, 0.5, 1.5], [0.5, 1.5, 0.5], [0.5, 1.5, 0.5]],
    }
    for on, kernels in found.items():
        for (s, a), own in zip([(0, 0), (0, 1), (1, 0)], np.array(alpha[on]), strict=True):
            y, total = kernels[:, s, a], own.sum()
            np.testing.assert_array_equal((y > 0).any(axis=0), own > 0)
            np.testing.assert_allclose(
                y.mean(axis=0), own / total, atol=5 * np.sqrt(0.25 / (total + 1) / 400)
            )


# ---------------------------------------------------------------------- patients


def patients(seed=5):
    """Rows of a study by age: of the very old with mild disease three had surgery, and lived."""
    rng, rows = np.random.default_rng(seed), []
    for age, n, dies in (("70s", 300, 0.03), ("80s", 120, 0.08)):
        for _ in range(n):
            state = "mild" if rng.random() < 0.6 else "severe"
            action = "watch" if rng.random() < 0.6 else "drug"
            risk = dies * (3 if state == "severe" else 1) * (0.6 if action == "drug" else 1)
            worse = "severe" if rng.random() < 0.2 else state
            rows.append(
                (
                    age,
                    state,
                    action,
                    "dead" if rng.random() < risk else worse,
                    0.8 - 0.3 * (state == "severe"),
                )
            )
    rows += 40 * [("70s", "mild", "surgery", "mild", 0.7)] + 5 * [
        ("70s", "mild", "surgery", "dead", 0.7)
    ]
    return rows + 3 * [("80s", "mild", "surgery", "mild", 0.78)]


def of_age(age, **options):
    names = ("state", "action", "next_state", "qaly")
    log = {
        name: [row[k + 1] for row in patients() if row[0] == age] for k, name in enumerate(names)
    }
    names = {"states": ["mild", "severe", "dead"], "actions": ["watch", "drug", "surgery"]}
    return estimate(
        log,
        reward="qaly",
        terminal="dead",
        unvisited="unavailable",
        discount=0.97,
        **names,
        **options,
    )


def test_three_patients_who_lived_do_not_make_a_plan_without_a_word():
    models = 4 * [of_age("70s")] + 4 * [of_age("80s")]
    plan = drmdp.finite_horizon(models, drmdp.Wasserstein(0.1))
    assert plan.to_dict(4)["mild"] == "surgery"
    assert plan.notes[-1] == "surgery when mild rests on 3 rows"
    old = plan.to_frame().filter((polars.col("stage") == 4) & (polars.col("state") == "mild"))
    assert old["rows"].to_list() == [3]
    for options in ({"min_count": 5}, {"by": "posterior", "n_kernels": 60}):
        models = 4 * [of_age("70s", **options)] + 4 * [of_age("80s", **options)]
        plan = drmdp.finite_horizon(models, drmdp.Wasserstein(0.1))
        assert "surgery" not in [plan.to_dict(t)["mild"] for t in range(4, 8)]
        assert not any("rests on" in note for note in plan.notes)


# ---------------------------------------------------------------------- where the process starts


def test_a_log_starts_as_its_episodes_began():
    rows = machines()
    np.random.default_rng(0).shuffle(rows)
    options = COLUMNS | {"unvisited": "unavailable", "discount": 0.9}
    model = estimate(table(rows), **options)
    assert (model.start, model.initial.tolist()) == ("as the 12 episodes began", [1, 0, 0, 0])
    assert "start: as the 12 episodes began" in model.notes
    shares = estimate(table(rows), initial="rows", **options)
    assert (shares.start, shares.initial[0]) == (
        "as the 708 transitions began",
        model.pair_counts[0].sum() / 708,
    )
    for initial, start, mass in (
        ("uniform", "in every state alike", [0.25] * 4),
        ("worn", "in state 'worn'", [0, 0, 1, 0]),
        ({"worn": 0.5, "good": 0.5}, None, [0.5, 0, 0.5, 0]),
        ([0, 0, 0, 1], None, [0, 0, 0, 1]),
    ):
        found = estimate(table(rows), initial=initial, **options)
        assert (found.start, found.initial.tolist()) == (start, mass)
        assert [note for note in found.notes if "start: " in note] == (
            [] if start is None else [f"start: {start}"]
        )
    with pytest.raises(
        InputError, match=r"`initial`: unknown rule \(first, rows, uniform\) or state 'wrn'"
    ):
        estimate(table(rows), initial="wrn", **options)
    with pytest.raises(InputError, match="initial must sum to 1"):
        estimate(table(rows), initial=[1, 1, 0, 0], **options)


def test_the_dead_do_not_start():
    log = {
        "id": [1, 1, 1, 2, 3, 3],
        "t": [0, 1, 2, 0, 0, 1],
        "state": ["ill", "ill", "dead", "dead", "well", "ill"],
    }
    log["action"] = 6 * ["treat"]
    options = {"episode": "id", "time": "t", "costs": "1", "discount": 0.9, "terminal": "dead"}
    model = estimate(log, **options)
    assert list(model.states) == ["dead", "ill", "well"]
    assert (model.start, model.initial.tolist()) == ("as the 2 episodes began", [0, 0.5, 0.5])
    assert estimate(log, initial="rows", **options).initial.tolist() == [0, 2 / 3, 1 / 3]
    assert estimate(log, initial="uniform", **options).initial.tolist() == [0, 0.5, 0.5]
    assert estimate(log, initial={"dead": 1}, **options).initial.tolist() == [1, 0, 0]


def test_transitions_without_an_order_start_as_they_are():
    model = estimate(greased(), **GREASED)
    assert model.start == "as the 2,043 transitions began"
    assert model.initial[model.states.index("ok")] == 2003 / 2043
    with pytest.raises(InputError, match="`initial='first'` needs `episode`, and `time`"):
        estimate(greased(), initial="first", **GREASED)
    weighed = {"state": [0, 1], "action": [0, 0], "next_state": [1, 0], "w": [3.0, 1.0]}
    found = estimate(weighed, weight="w", costs="1", discount=0.9)
    assert found.initial.tolist() == [0.75, 0.25]
    assert found.counts.tolist() == [[[0, 3]], [[1, 0]]]
    rule = {"state": ["first", "last"], "action": [0, 0], "next_state": ["last", "first"]}
    with pytest.raises(InputError, match="`initial='first'` is a rule and a state: give"):
        estimate(rule, initial="first", costs="1", discount=0.9)


# ---------------------------------------------------------------------- counts of kernels, and
# their weights


def plants(seed=0, n=300):
    """Plants that see pairs in shares of their own; one of them never sees some."""
    rng = np.random.default_rng(seed)
    log = {"plant": rng.choice(4, n, p=[0.6, 0.25, 0.1, 0.05]), "state": rng.integers(0, 3, n)}
    log["action"] = (rng.random(n) < 0.1 * (1 + log["plant"])).astype(int)
    log["next_state"] = (log["state"] + rng.integers(0, 2, n) * (1 + log["plant"] % 2)) % 3
    return {name: column.tolist() for name, column in log.items()}


def tally(log):
    found = np.zeros((4, 3, 2, 3), dtype=int)
    np.add.at(
        found, tuple(np.array(log[name]) for name in ("plant", "state", "action", "next_state")), 1
    )
    return found


PLANTS = {"by": "plant", "costs": "1", "discount": 0.9}


@pytest.mark.parametrize("seed", range(5))
def test_counts_make_the_mean_kernel_that_of_all_data(seed):
    log = plants(seed)
    counts = tally(log)
    model = estimate(log, weights="counts", **PLANTS)
    np.testing.assert_array_equal(model.counts, counts)
    np.testing.assert_array_equal(model.weights, np.full(4, 0.25))
    for s, a in np.argwhere(counts.sum(axis=(0, 3)) > 0):
        own = [[Fraction(int(n)) for n in row] for row in counts[:, s, a]]
        pooled = [sum(column) / sum(map(sum, own)) for column in zip(*own, strict=True)]
        most = max(map(sum, own))
        rows = [
            [n / most + (1 - sum(row) / most) * p for n, p in zip(row, pooled, strict=True)]
            for row in own
        ]
        assert all(sum(row) == 1 for row in rows)
        assert [sum(column) / 4 for column in zip(*rows, strict=True)] == pooled
        np.testing.assert_allclose(
            model.kernels[:, s, a], np.array(rows, dtype=float), rtol=1e-14, atol=0
        )
        np.testing.assert_allclose(
            model.mean_kernel[s, a], np.array(pooled, dtype=float), rtol=1e-14, atol=0
        )
    plain = estimate(log, partial="pooled", unvisited="unavailable", **PLANTS)
    assert np.abs(plain.mean_kernel - model.mean_kernel).max() > 0.01


def test_rows_of_a_pair_weigh_nothing_where_there_are_none():
    log = plants(n=80)
    note = "rows of kernels with less data are drawn to those of all data together, which are the mean kernel"
    model = estimate(log, weights="counts", unvisited="unavailable", **PLANTS)
    assert note in model.notes
    counts = tally(log)
    i, s, a = next(
        tuple(place)
        for place in np.argwhere(counts.sum(axis=3) == 0)
        if counts[:, place[1], place[2]].any()
    )
    np.testing.assert_allclose(model.kernels[i, s, a], model.mean_kernel[s, a], rtol=1e-14)
    for wrong, message in (
        (
            {"partial": "prior"},
            "`weights='counts'` makes the mean kernel that of all data together: it takes no `partial='prior'`",
        ),
        ({"by": "bootstrap", "n_kernels": 2}, "`weights='counts'` needs `by` to name a column"),
    ):
        with pytest.raises(InputError, match=message):
            estimate(log, weights="counts", unvisited="unavailable", **PLANTS | wrong)


def test_counts_are_those_of_the_data_whatever_makes_the_kernels():
    log = plants()
    counts = tally(log)
    np.testing.assert_array_equal(estimate(log, partial="pooled", **PLANTS).counts, counts)
    for by in ("bootstrap", "folds", "parts", "posterior"):
        model = estimate(log, partial="pooled", n_kernels=3, **PLANTS | {"by": by})
        np.testing.assert_array_equal(model.counts, counts.sum(axis=0))
    np.testing.assert_array_equal(estimate(log, costs="1", discount=0.9).counts, counts.sum(axis=0))


def test_large_models_have_sparse_counts(monkeypatch):
    monkeypatch.setattr(sys.modules["drmdp.estimation.rules"], "DENSE_ENTRIES", 1)
    log = plants()
    model = estimate(log, partial="pooled", **PLANTS)
    assert model.is_sparse
    np.testing.assert_array_equal(
        [table.toarray().reshape(3, 2, 3) for table in model.counts], tally(log)
    )
