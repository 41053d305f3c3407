"""Rows of one step from rows several steps apart: likelihood, EM, draws, and what is refused."""

import itertools

import numpy as np
import polars as pl
import pytest

from drmdp import InputError, check_log, estimate
from drmdp.estimation.intervals import draw_steps, fit_pooled, maximise, starts, value_and_gradient

ILL = np.array(
    [
        [[0.90, 0.08, 0.01, 0.01], [0.06, 0.80, 0.11, 0.03], [0.0, 0.05, 0.74, 0.21], [0, 0, 0, 1]],
        [[0.95, 0.03, 0.0, 0.02], [0.30, 0.58, 0.06, 0.06], [0.10, 0.25, 0.50, 0.15], [0, 0, 0, 1]],
    ]
)
"""Drug and surgery; mild, moderate, severe, dead."""
STATES = ["mild", "moderate", "severe", "dead"]
OPTIONS = {
    "episode": "e",
    "time": "t",
    "costs": "1",
    "discount": 0.9,
    "terminal": "dead",
    "states": STATES,
    "step": 1,
}


def panel(episodes, missing, seed, months=24):
    """A row per month that was seen; the action of a row holds until the next."""
    rng = np.random.default_rng(seed)
    s, a, alive = np.zeros(episodes, int), np.zeros(episodes, int), np.ones(episodes, bool)
    rows = []
    for month in range(months):
        seen = alive & ((month == 0) | (rng.random(episodes) >= missing))
        a = np.where(seen, rng.random(episodes) < 0.4, a).astype(int)
        rows += [(e, month, STATES[s[e]], ("drug", "surgery")[a[e]]) for e in np.flatnonzero(seen)]
        alive &= ~(seen & (s == 3))
        s = (rng.random(episodes)[:, None] > ILL[a, s].cumsum(axis=-1)).sum(axis=1)
    return pl.DataFrame(rows, schema=["e", "t", "state", "action"], orient="row").sort("e", "t")


def random_problem(seed, S=3, K=4, B=2):
    rng = np.random.default_rng(seed)
    return 0.5 * rng.dirichlet(np.ones(S), (B, S)) + 0.5 / S, rng.integers(
        0, 9, (B, K, S, S)
    ).astype(float)


def test_the_likelihood_is_that_of_powers_and_its_gradient_that_of_differences():
    p, counts = random_problem(0)
    value, gradient = value_and_gradient(p, counts)
    for b in range(2):
        powers = [np.linalg.matrix_power(p[b], k) for k in range(1, 5)]
        assert value[b] == pytest.approx(
            sum((c * np.log(q)).sum() for c, q in zip(counts[b], powers, strict=True))
        )
    for i, j in itertools.product(range(3), repeat=2):
        h = np.zeros_like(p)
        h[:, i, j] = 1e-6
        slope = (value_and_gradient(p + h, counts)[0] - value_and_gradient(p - h, counts)[0]) / 2e-6
        np.testing.assert_allclose(gradient[:, i, j], slope, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_rises_in_every_round_and_ends_where_no_row_can_raise_it(seed):
    p, counts = random_problem(seed)
    trace = []
    fit = maximise(counts, p, trace)
    assert (np.diff(np.stack(trace), axis=0) >= -1e-9).all()
    assert (fit.rise <= 1e-9 * np.abs(fit.loglik)).all()
    gradient = value_and_gradient(fit.p, counts)[1]
    more = gradient.max(axis=2) - (fit.p * gradient).sum(
        axis=2
    )  # Karush, Kuhn and Tucker: 0 in each row
    assert (more < 0.05 * counts.sum(axis=(1, 2, 3))[:, None]).all()


def test_rows_one_step_apart_alone_are_counted():
    log = panel(40, 0, 1)
    counted = estimate(log, gaps="cut", **OPTIONS)
    filled = estimate(log, gaps="fill", **OPTIONS)
    np.testing.assert_allclose(filled.kernels, counted.kernels, atol=1e-6)
    np.testing.assert_allclose(filled.counts, counted.counts, atol=1e-3)


def test_months_that_are_missing_bias_bridges_but_not_what_is_filled():
    log = panel(4000, 0.6, 2)
    options = {name: value for name, value in OPTIONS.items() if name != "step"}
    bridged = estimate(log, gaps="bridge", **options).kernels[0, 2, 0, 3]
    model = estimate(log, gaps="fill", **OPTIONS)
    assert bridged > 0.3
    assert model.kernels[0, 2, 0, 3] == pytest.approx(0.21, abs=0.03)
    seen = log.filter(pl.col("state") != "dead").group_by("state", "action").len()
    assert np.asarray(model.counts).sum() <= seen["len"].sum()  # rows, never the steps between them
    assert any("lie 2 to" in note and "highest likelihood" in note for note in model.notes)
    assert any("the action of the first is assumed to hold" in note for note in model.notes)


@pytest.mark.parametrize("by", ["bootstrap", "posterior"])
def test_draws_lie_about_the_estimate_and_spread_as_much_as_data_allow(by):
    log = panel(400, 0.5, 3)
    one = estimate(log, gaps="fill", **OPTIONS)
    draws = estimate(log, gaps="fill", by=by, n_kernels=60, partial="pooled", **OPTIONS).kernels
    assert np.abs(draws.mean(axis=0) - one.kernels[0])[:3].max() < 0.04
    n = np.asarray(one.counts).reshape(4, 2, 4).sum(axis=2)[2, 0]
    p = one.kernels[0, 2, 0, 3]
    assert (
        0.5 < draws[:, 2, 0, 3].std() / np.sqrt(p * (1 - p) / n) < 1.5
    )  # rows that pass through tell more


@pytest.mark.parametrize("by", [None, "bootstrap", "posterior"])
def test_deaths_whose_month_is_known_bias_no_row(by):
    """Months are missing, but for the last and that of a death: that it was in this month and in
    none before is what counts.
    """
    rng = np.random.default_rng(4)
    rows = []
    for e in range(1500):
        s, a = 0, 0
        for month in range(24):
            if month in (0, 23) or s == 3 or rng.random() < 0.3:
                a = int(rng.random() < 0.4)
                rows.append((e, month, STATES[s], ("drug", "surgery")[a]))
            if s == 3:
                break
            s = int((rng.random() > ILL[a, s].cumsum()).sum())
    log = pl.DataFrame(rows, schema=["e", "t", "state", "action"], orient="row")
    options = {**OPTIONS, "gaps": "fill", "by": by, "n_kernels": by and 8}
    model = estimate(log, exact="dead", **options)
    np.testing.assert_allclose(
        model.kernels[:, :3].mean(axis=0).transpose(1, 0, 2), ILL[:, :3], atol=0.05
    )
    assert "rows in dead are in the step of entry, not of a visit" in model.notes
    if by is None:
        assert model.kernels[0, 2, 0, 3] == pytest.approx(0.21, abs=0.03)


def test_the_step_of_entry_is_that_of_a_geometric_time():
    # one state that may end: with k steps until the end, p is the number of ends over that of steps
    rng = np.random.default_rng(0)
    k = rng.geometric(0.1, 300)
    ended = k <= 20
    log = {
        "e": np.repeat(np.arange(300), 2).tolist(),
        "t": np.stack([0 * k, np.minimum(k, 20)], axis=1).ravel().tolist(),
        "state": np.stack([np.full(300, "up"), np.where(ended, "down", "up")], axis=1)
        .ravel()
        .tolist(),
        "action": ["go"] * 600,
    }
    options = {
        "episode": "e",
        "time": "t",
        "costs": "1",
        "discount": 0.9,
        "terminal": "down",
        "step": 1,
    }
    options |= {"gaps": "fill", "states": ["up", "down"]}
    expected = ended.sum() / np.minimum(k, 20).sum()
    assert estimate(log, exact="down", **options).kernels[0, 0, 0, 1] == pytest.approx(
        expected, rel=1e-4
    )
    assert estimate(log, **options).kernels[0, 0, 0, 1] > 1.1 * expected  # at some time until then


def test_drawn_steps_are_those_expected_given_the_ends():
    p, counts = random_problem(5, B=1)
    rng = np.random.default_rng(0)
    drawn = np.mean([draw_steps(p, counts.astype(int), rng) for _ in range(400)], axis=0)
    expected = p * value_and_gradient(p, counts)[1]
    np.testing.assert_allclose(drawn, expected, atol=5 * np.sqrt(expected.max() / 400))
    assert drawn.sum() == pytest.approx(sum(k * counts[0, k - 1].sum() for k in range(1, 5)))


def test_kernels_of_a_column_are_each_filled():
    log = pl.concat(
        [
            panel(600, 0.4, seed).with_columns(site=pl.lit(site), e=pl.col("e") + 10_000 * seed)
            for seed, site in enumerate("ab", 7)
        ]
    )
    model = estimate(log, gaps="fill", by="site", partial="pooled", **OPTIONS)
    for site, kernel in zip("ab", model.kernels, strict=True):
        alone = estimate(log.filter(site=site), gaps="fill", **OPTIONS).kernels[0]
        np.testing.assert_allclose(kernel, alone, atol=2e-3)


# ---------------------------------------------------------------------- what cannot be told


def test_rows_two_steps_apart_alone_do_not_tell_a_matrix_from_its_mirror_image():
    mirror = np.array([[0.1, 0.9], [0.9, 0.1]])
    counts = np.zeros((1, 2, 2, 2))
    counts[0, 1] = 1000 * mirror @ mirror
    fit, doubtful = fit_pooled(counts, np.ones((1, 2, 2), bool))
    assert doubtful.all()
    counts[0, 0] = 10 * mirror  # twenty rows one step apart tell it, and the best start is taken
    fit, doubtful = fit_pooled(counts, np.ones((1, 2, 2), bool))
    assert not doubtful.any()
    np.testing.assert_allclose(fit.p[0], mirror, atol=1e-3)
    wrong = maximise(counts, starts(counts, np.ones((1, 2, 2), bool))[1])
    assert wrong.loglik[0] < fit.loglik[0] - 10  # from there it ends elsewhere


def test_an_estimate_that_is_not_identified_is_refused():
    rng = np.random.default_rng(0)
    rows = []
    for e in range(60):
        state = 0
        for k in range(10):
            rows.append((e, 2 * k, "ab"[state], "go"))
            state = state if rng.random() < 0.82 else 1 - state
    log = pl.DataFrame(rows, schema=["e", "t", "state", "action"], orient="row")
    options = {
        "episode": "e",
        "time": "t",
        "costs": "1",
        "discount": 0.9,
        "gaps": "fill",
        "step": 1,
    }
    with pytest.raises(
        InputError,
        match=r"do not identify go when a, go when b: .*give a larger `step`, or `gaps='cut'`",
    ):
        estimate(log, **options)


# ---------------------------------------------------------------------- times and rows


DATES = {
    "episode": "p",
    "time": "day",
    "costs": "1",
    "discount": 0.9,
    "gaps": "fill",
    "unvisited": "self-loop",
}


def visits(*days):
    return {
        "p": ["x"] * len(days),
        "day": list(days),
        "state": list("abab"[: len(days)]),
        "action": ["go"] * len(days),
    }


def test_elapsed_time_counts_as_the_nearest_number_of_steps():
    log = visits("2024-01-01", "2024-02-06", "2024-03-29", "2024-04-24")  # 36, 52 and 26 days
    model = estimate(log, step="30 days", within="10 days", **DATES)
    assert any("1 of 3 pairs of rows lie 2 to 2 steps apart" in note for note in model.notes)
    with pytest.raises(
        InputError,
        match=r"rows 2 and 3: .* is 52 days, which is no whole number of steps.*a larger `within`",
    ):
        estimate(log, step="30 days", within="7 days", **DATES)


def test_long_gaps_end_an_episode_and_are_told():
    log = visits("2020-01-01", "2020-02-01", "2023-02-01", "2023-03-01")
    model = estimate(log, step="month", **DATES)
    assert "1 gap of more than 24 steps: the episode ends there and begins again" in model.notes
    assert np.asarray(model.counts).sum() == 2


def test_an_action_that_changes_where_no_state_was_seen_is_refused():
    log = visits("2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01")
    log["state"] = ["a", "", "b", "a"]
    assert estimate(log, step="month", **DATES).kernels.shape[1] == 2  # the action held
    log["action"] = ["go", "stop", "go", "go"]
    with pytest.raises(
        InputError,
        match=r"row 2, column 'action': the action changes from 'go' to 'stop' where no state was seen; .*skip_rows_without",
    ):
        estimate(log, step="month", **DATES)
    found = check_log(
        log, **{k: v for k, v in DATES.items() if k not in ("costs", "discount")}, step="month"
    )
    assert found.refused
    assert "the action changes" in str(found)


def test_what_a_filled_estimate_does_not_take_is_said():
    log = panel(30, 0.3, 0)
    with pytest.raises(InputError, match="takes no `weights='counts'`"):
        estimate(log, gaps="fill", by="e", weights="counts", **OPTIONS)
    weighted = log.with_columns(w=pl.lit(0.5))
    with pytest.raises(InputError, match="no weighted rows"):
        estimate(weighted, gaps="fill", weight="w", by="posterior", n_kernels=2, **OPTIONS)
    risen = pl.DataFrame(
        {"e": [99, 99], "t": [0, 2], "state": ["dead", "mild"], "action": ["drug"] * 2}
    )
    wrong = pl.concat([log, risen])
    with pytest.raises(InputError, match="'dead' is terminal, but"):
        estimate(wrong, gaps="fill", **OPTIONS)
