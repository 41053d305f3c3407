"""Rates from rows at any times: likelihood, gradient, recovery, coverage, and what is refused."""

import re

import numpy as np
import polars as pl
import pytest
from scipy import linalg

import drmdp
from drmdp import InputError, check_log, estimate
from drmdp.estimation import rates
from drmdp.estimation.rates import (
    Panel,
    RateFit,
    Spread,
    draw,
    generator_of,
    information,
    maximise,
    value_and_gradient,
)

ILL = np.array([[-0.30, 0.25, 0.05], [0.15, -0.45, 0.30], [0, 0, 0]])
"""Well, ill, dead."""
STATES = ["well", "ill", "dead"]
OPTIONS = {
    "episode": "e",
    "time": "t",
    "costs": "1",
    "discount": 0.97,
    "states": STATES,
    "terminal": "dead",
    "exact": "dead",
    "step": "continuous",
}


def path(generator, start, end, rng):
    """Times and states of a path until `end`, or until a state that is not left."""
    t, s, found = 0.0, start, [(0.0, start)]
    while -generator[s, s] > 0 and (t := t + rng.exponential(-1 / generator[s, s])) < end:
        s = int(rng.choice(len(generator), p=np.maximum(generator[s], 0) / -generator[s, s]))
        found.append((t, s))
    return found


def panel_log(generators, n, seed, states=STATES, years=8.0, between=(0.5, 1.8), dead=None):
    """Visits at odd times; an action is drawn at each. Entries to `dead` are known to the day."""
    rng = np.random.default_rng(seed)
    rows = []
    for e in range(n):
        t, s, a = 0.0, 0, int(rng.integers(len(generators)))
        while True:
            rows.append((e, t, states[s], "ab"[a]))
            visit = t + rng.uniform(*between)
            if visit > years or s == dead:
                break
            when, now = path(generators[a], s, visit - t, rng)[-1]
            t, s = (t + when if now == dead else visit), now
            a = int(rng.integers(len(generators)))
    return pl.DataFrame(rows, schema=["e", "t", "state", "action"], orient="row")


def small(*rows):
    return pl.DataFrame(rows, schema=["e", "t", "state", "action"], orient="row")


def rates_of(model):
    """Rates (N, S, A, S) of a model of continuous time."""
    fastest = next(
        float(m[1]) for note in model.notes if (m := re.match(r"continuous time: (\S+)", note))
    )
    open_ = model.kernels.sum(axis=-1, keepdims=True) > 0
    return np.where(open_, fastest * (model.kernels - np.eye(model.n_states)[:, None]), 0.0)


def random_panel(seed, S=4, rows=60):
    rng = np.random.default_rng(seed)
    jumps = np.argwhere(~np.eye(S, dtype=bool) & (np.arange(S)[:, None] < S - 1)).T
    i = rng.integers(0, S - 1, rows)
    j = rng.integers(0, S, rows)
    t = rng.choice([0.3, 0.8, 1.7, 2.5], rows)
    exact = (j == S - 1) & (rng.random(rows) < 0.7)
    return rng.normal(-1, 0.7, jumps.shape[1]), jumps, Panel(i, j, t, rng.random(rows) + 0.5, exact)


@pytest.mark.parametrize("seed", range(6))
def test_the_likelihood_is_that_of_exponentials_and_its_gradient_that_of_differences(seed):
    theta, jumps, panel = random_panel(seed)
    value, gradient = value_and_gradient(theta, jumps, panel, 4)
    q = generator_of(theta, jumps, 4)
    own = 0.0
    for i, j, t, n, exact in zip(panel.i, panel.j, panel.t, panel.n, panel.exact, strict=True):
        p = linalg.expm(q * t)[i]
        own += n * np.log(p[:3] @ q[:3, 3] if exact else p[j])
    assert value == pytest.approx(own, rel=1e-10)
    for k in range(theta.size):
        h = 1e-6 * np.eye(theta.size)[k]
        ends = [value_and_gradient(theta + x, jumps, panel, 4)[0] for x in (h, -h)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_eigenbasis_and_exponentials_agree(seed, monkeypatch):
    theta, jumps, panel = random_panel(seed)
    value, gradient = value_and_gradient(theta, jumps, panel, 4)
    monkeypatch.setattr(rates, "DEFECTIVE", 0.0)
    slow = value_and_gradient(theta, jumps, panel, 4)
    assert value == pytest.approx(slow[0], rel=1e-12)
    np.testing.assert_allclose(gradient, slow[1], rtol=1e-9, atol=1e-10)


def test_random_structures_of_all_scales():
    rng = np.random.default_rng(0)
    for _ in range(120):
        S = int(rng.integers(2, 7))
        allowed = (rng.random((S, S)) < rng.choice([0.3, 0.6, 1.0])) & ~np.eye(S, dtype=bool)
        allowed[np.arange(S - 1), np.arange(1, S)] = True
        jumps = np.argwhere(allowed).T
        theta = np.log(10.0) * rng.uniform(-6, 2, jumps.shape[1])
        if rng.random() < 0.5:
            theta = np.round(theta / 3) * 3  # rates that agree
        t = 10.0 ** rng.uniform(-2, 1, 8)
        q = generator_of(theta, jumps, S)
        i = rng.integers(0, S, 8)
        p = linalg.expm(q * t[:, None, None])[np.arange(8), i]
        j = p.argmax(axis=1)
        panel = Panel(i, j, t, np.ones(8), np.zeros(8, bool))
        value, gradient = value_and_gradient(theta, jumps, panel, S)
        assert value == pytest.approx(np.log(p[np.arange(8), j]).sum(), rel=1e-6, abs=1e-7)
        weights = 1 / p[np.arange(8), j]
        for k, (a, b) in enumerate(jumps.T):
            e = np.zeros((S, S))
            e[a, b], e[a, a] = 1, -1
            own = [linalg.expm_frechet(q * x, e * x, compute_expm=False) for x in t]
            slope = q[a, b] * sum(
                w * d[u, v] for w, d, u, v in zip(weights, own, i, j, strict=True)
            )
            assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("apart", [0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2])
def test_eigenvalues_that_nearly_agree(apart):
    jumps = np.array(
        [[0, 1, 2], [1, 2, 3]]
    )  # one after the other, with rates that are nearly the same
    theta = np.log([0.5, 0.5 + apart, 0.5 + 2 * apart])
    _, _, panel = random_panel(1)
    panel = panel.of(np.where(panel.i <= panel.j, panel.n, 0.0))
    value, gradient = value_and_gradient(theta, jumps, panel, 4)
    q = generator_of(theta, jumps, 4)
    exact = [linalg.expm(q * t) for t in panel.t]
    own = [
        p[i, 2] * q[2, 3] if x else p[i, j]
        for p, i, j, x in zip(exact, panel.i, panel.j, panel.exact, strict=True)
    ]
    assert value == pytest.approx(panel.n @ np.log(own), rel=1e-8)
    for k in range(3):
        h = 1e-5 * np.eye(3)[k]
        ends = [value_and_gradient(theta + x, jumps, panel, 4)[0] for x in (h, -h)]
        assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-4)


def test_exact_paths_have_the_rates_of_jumps_over_time():
    # a pure death process: the likelihood is q^d exp(−q T), so that q = d/T and the variance of log
    # q is 1/d
    rng = np.random.default_rng(0)
    t = np.minimum(rng.exponential(2.0, 400), 3.0)
    died = t < 3.0
    panel = Panel(np.zeros(400, int), died.astype(int), t, np.ones(400), died)
    jumps = np.array([[0], [1]])
    fit = maximise(panel, jumps, 2, np.array([0.0]), np.array([[-9.0, 5.0]]))
    assert np.exp(fit.theta[0]) == pytest.approx(died.sum() / t.sum(), rel=1e-6)
    assert information(fit.theta, jumps, panel, 2, np.array([0]))[0, 0] == pytest.approx(
        died.sum(), rel=1e-5
    )


def test_draws_have_the_covariance_of_the_inverse_information():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    known = Spread(np.array([False, True, False, False]), np.zeros(4, bool), root)
    fit = RateFit(np.array([1.0, -800, 2, 3]), np.zeros((4, 2)), 0.0, 0.0, 1)
    drawn = draw(fit, known, np.full((40_000, 4), -5.0), 1e9, rng)
    assert (drawn[:, 1] == -5).all()
    np.testing.assert_allclose(drawn[:, [0, 2, 3]].mean(axis=0), [1, 2, 3], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn[:, [0, 2, 3]].T), root @ root.T, atol=0.15)


def test_the_time_of_entry_gives_deaths_over_time_and_counts_of_as_many():
    rng = np.random.default_rng(1)
    t = rng.exponential(4.0, 200)
    rows = [
        (e, x, s, "a")
        for e, d in enumerate(t)
        for x, s in ((0.0, "well"), (min(d, 5.0), "dead" if d < 5 else "well"))
    ]
    options = {**OPTIONS, "states": ["well", "dead"]}
    model = estimate(small(*rows), **options)
    assert rates_of(model)[0, 0, 0, 1] == pytest.approx(
        (t < 5).sum() / np.minimum(t, 5).sum(), rel=1e-5
    )
    assert model.counts[0, 0, 1] == pytest.approx((t < 5).sum(), rel=1e-4)
    often = [
        (e, x, s, "a")
        for e in range(200)
        for x, s in [*((0.1 * k, "well") for k in range(6)), (0.55, "dead")]
    ]
    model = estimate(
        small(*often[:700], *[row for row in often[700:] if row[2] == "well"]), **options
    )
    assert model.counts[0, 0].sum() == pytest.approx(100, rel=1e-3)  # deaths, not the 1100 rows
    far = [
        (e, x, s, "a")
        for e in range(50)
        for x, s in ((0.0, "well"), (9.0, "dead" if e < 30 else "well"))
    ]
    seen_late = estimate(small(*far), **{**options, "exact": None})
    left = np.exp(-9 * rates_of(seen_late)[0, 0, 0, 1])  # 20 of 50, with the variance of a share
    variance = left * (1 - left) / 50 / (left * np.log(left)) ** 2
    assert seen_late.counts[0, 0].sum() == pytest.approx(1 / variance, rel=1e-3)
    fast = [
        (100 + e, x, s, "b") for e in range(50) for x, s in ((0.0, "well"), (0.1 + e / 50, "dead"))
    ]
    both = estimate(small(*far, *fast), **options)
    assert both.counts[0, 0].sum() == pytest.approx(50)  # steps of a fast clock, but rows are 50


def test_a_rate_that_may_as_well_be_0_is_left_out():
    chain = np.array(
        [[-0.25, 0.2, 0.05, 0], [0, -0.35, 0.25, 0.1], [0, 0, -0.5, 0.5], [0.0, 0, 0, 0]]
    )
    names = ["good", "fair", "poor", "failed"]
    told = 0
    for seed in range(4):
        log = panel_log([chain], 150, seed, names, years=12.0, between=(0.3, 2.5))
        model = estimate(log, **{**OPTIONS, "states": names, "terminal": "failed", "exact": None})
        found = rates_of(model)[0, :, 0]
        np.testing.assert_allclose(found[:3], chain[:3], atol=0.15)
        told += any(
            "not estimable, and 0: failed after a when good" in note for note in model.notes
        )
        assert (found[0, 3] == 0) == any("failed after a when good" in note for note in model.notes)
    assert told >= 2


def test_rates_of_two_actions_are_recovered_and_discounted_by_interest():
    slow = ILL * np.array([0.4, 0.4, 1])[:, None]
    log = panel_log([ILL, slow], 1500, 1, dead=2)
    model = estimate(log, **OPTIONS)
    found = rates_of(model)[0]
    np.testing.assert_allclose(found[:2, 0], ILL[:2], atol=0.06)
    np.testing.assert_allclose(found[:2, 1], slow[:2], atol=0.04)
    solved = drmdp.solve(model, drmdp.Wasserstein(0.0))
    ends = found[
        :2, 1, :2
    ]  # the slower action lives longer, and a unit of time costs 1: `a` is better
    assert solved.to_dict() == {"well": "a", "ill": "a"}
    expected = np.linalg.solve(-np.log(0.97) * np.eye(2) - found[:2, 0, :2], np.ones(2))
    np.testing.assert_allclose(solved.value[:2], expected, rtol=1e-6)
    assert (expected < np.linalg.solve(-np.log(0.97) * np.eye(2) - ends, np.ones(2))).all()
    assert any("rates of highest likelihood" in note for note in model.notes)
    assert any("rows in dead are at the time of entry" in note for note in model.notes)
    assert np.asarray(model.counts).sum() <= log.height


CAV = {
    (0, 1): 0.12787,
    (0, 3): 0.04250,
    (1, 0): 0.22512,
    (1, 2): 0.34261,
    (1, 3): 0.04021,
    (2, 1): 0.13062,
    (2, 3): 0.30648,
}
"""Rates published for heart transplants: none, mild, severe, dead."""


def cav():
    found = np.zeros((4, 4))
    for jump, rate in CAV.items():
        found[jump] = rate
    return found - np.diag(found.sum(axis=1))


def test_published_rates_are_recovered_from_panels_that_they_make():
    names = ["none", "mild", "severe", "dead"]
    log = panel_log([cav()], 2000, 3, names, years=12.0, between=(0.7, 2.5), dead=3)
    structure = {
        "none": ["mild", "dead"],
        "mild": ["none", "severe", "dead"],
        "severe": ["mild", "dead"],
    }
    options = {**OPTIONS, "states": names, "jumps": structure}
    found = rates_of(estimate(log, **options))[0, :, 0]
    draws = rates_of(estimate(log, by="posterior", n_kernels=60, **options))[:, :, 0]
    for (i, j), rate in CAV.items():
        spread = np.log(draws[:, i, j]).std()
        assert abs(np.log(found[i, j] / rate)) < 3.5 * spread
        assert spread < 0.25
    assert found[0, 2] == 0  # from none to severe rows lead, but jumps do not


def test_discrete_and_continuous_fits_agree_as_the_step_shrinks():
    off = []
    for step, size in ((1.0, 2500), (0.25, 2500)):
        rng = np.random.default_rng(5)
        p = linalg.expm(ILL * step)
        states, rows = np.zeros(size, int), []
        for k in range(5):
            rows += [(e, k * step, STATES[s], "a") for e, s in enumerate(states)]
            states = (rng.random(size)[:, None] > p[states].cumsum(axis=1)).sum(axis=1)
        log = pl.DataFrame(rows, schema=["e", "t", "state", "action"], orient="row")
        options = {**OPTIONS, "exact": None}
        continuous = rates_of(estimate(log, **options))[0, :, 0]
        options["step"] = step
        discrete = estimate(log, gaps="fill", **options).kernels[0, :, 0]
        np.testing.assert_allclose(linalg.expm(continuous * step)[:2], discrete[:2], atol=2e-3)
        off.append(np.abs((discrete - np.eye(3))[:2] / step - continuous[:2]).max())
    assert off[1] < 0.4 * off[0]


@pytest.mark.parametrize("by", ["posterior", "bootstrap"])
def test_draws_lie_about_the_estimate_and_are_as_wide_as_each_other(by):
    log = panel_log([ILL], 300, 7, dead=2)
    found = rates_of(estimate(log, **OPTIONS))[0, :2, 0]
    draws = rates_of(estimate(log, by=by, n_kernels=40, **OPTIONS))[:, :2, 0]
    np.testing.assert_allclose(draws.mean(axis=0), found, atol=0.03)
    assert 0.008 < draws[:, 0, 1].std() < 0.04


def test_kernels_of_a_column_are_fitted_each():
    parts = [
        panel_log([ILL * f], 500, k, dead=2).with_columns(site=pl.lit(s), e=pl.col("e") + 1000 * k)
        for k, (s, f) in enumerate((("x", 1.0), ("y", 0.5)))
    ]
    found = rates_of(estimate(pl.concat(parts), by="site", **OPTIONS))
    for k, part in enumerate(parts):
        alone = rates_of(estimate(part, **OPTIONS))[0]
        np.testing.assert_allclose(found[k], alone, atol=1e-4)


def test_dates_need_a_unit_and_rates_are_per_it():
    log = panel_log([ILL], 300, 8, dead=2)
    dated = log.with_columns(
        t=pl.datetime(2000, 1, 1)
        + pl.duration(microseconds=(pl.col("t") * 365.2425 * 86400e6).cast(int))
    )
    options = {**OPTIONS, "discount": None, "interest": "3%/year"}
    year = rates_of(estimate(dated, **{**options, "step": "continuous/year"}))
    month = rates_of(estimate(dated, **{**options, "step": "continuous/month"}))
    plain = rates_of(estimate(log, **OPTIONS))
    np.testing.assert_allclose(year, plain, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(12 * month, year, rtol=1e-3, atol=1e-9)
    values = [
        drmdp.solve(
            estimate(dated, **{**options, "step": f"continuous/{u}"}), drmdp.Wasserstein(0.0)
        ).value[0]
        for u in ("year", "month")
    ]
    assert values[1] == pytest.approx(12 * values[0], rel=1e-3)  # 1 per month, at the same interest
    with pytest.raises(
        InputError,
        match=r"the times are dates, so say what rates and costs are per: 'continuous/year'",
    ):
        estimate(dated, **OPTIONS)
    with pytest.raises(InputError, match="the times are numbers, so give 'continuous'"):
        estimate(log, **{**OPTIONS, "step": "continuous/year"})


def test_costs_of_a_column_are_per_unit_of_time():
    log = panel_log([ILL], 200, 9, dead=2)
    log = log.with_columns(
        cost=4.0 * (pl.col("t").shift(-1) - pl.col("t")).over("e").fill_null(0.0)
    )
    model = estimate(log, cost="cost", **{k: v for k, v in OPTIONS.items() if k != "costs"})
    one = estimate(log, **{**OPTIONS, "costs": "4"})
    np.testing.assert_allclose(model.costs, one.costs, rtol=1e-9)


# ---------------------------------------------------------------------- what is refused or told


def test_a_rate_without_a_jump_is_told_and_drawn():
    stayed = small(*[(9000 + k, t, "ill", "b") for k in range(6) for t in (0.0, 1.0)])
    never = pl.concat([panel_log([ILL], 300, 10, dead=2), stayed])
    options = {**OPTIONS, "unvisited": "unavailable"}
    model = estimate(never, **options)
    assert rates_of(model)[0, 1, 1, 2] == 0
    told = next(note for note in model.notes if "not estimable" in note)
    assert "dead after b when ill (0 of 6 rows)" in told
    draws = rates_of(estimate(never, by="posterior", n_kernels=200, **options))[:, 1, 1, 2]
    assert draws.min() > 0
    assert 0.1 < draws.mean() < 0.25  # 1/T, T = 6


def test_rows_that_no_jumps_lead_to_are_refused_with_their_line():
    log = panel_log([ILL], 30, 11, dead=2)
    bad = pl.concat([log, small((999, 0.0, "ill", "a"), (999, 1.0, "well", "a"))])
    jumps = {"well": ["ill", "dead"], "ill": "dead"}
    first = next(
        k
        for k, (s, t, e) in enumerate(
            zip(bad["state"], bad["state"][1:], bad["e"].diff()[1:], strict=False)
        )
        if (s, t, e) == ("ill", "well", 0)
    )
    with pytest.raises(
        InputError,
        match=rf"row {first + 1}, column 'state': 'ill' is followed by 'well', where no jumps lead; .*`jumps`",
    ):
        estimate(bad, jumps=jumps, **OPTIONS)
    found = check_log(
        bad, **{k: v for k, v in OPTIONS.items() if k not in ("costs", "discount")}, jumps=jumps
    )
    assert found.refused
    assert "where no jumps lead" in str(found)


def test_too_few_rows_for_a_rate_are_refused_unless_the_pair_is_left_out():
    log = panel_log([ILL], 300, 12, dead=2)
    bad = pl.concat([log, small((999, 0.0, "well", "b"), (999, 1.0, "ill", "a"))])
    with pytest.raises(
        InputError,
        match=rf"row {log.height + 1}, column 'state': 1 row of 'b' when 'well' do not tell .*`min_count=2`",
    ):
        estimate(bad, unvisited="unavailable", **OPTIONS)
    model = estimate(bad, min_count=2, **OPTIONS)
    assert model.available.tolist() == [[True, False], [True, False], [False, False]]


def test_times_that_do_not_rise_are_refused():
    log = pl.concat(
        [panel_log([ILL], 20, 13, dead=2), small((99, 1.0, "well", "a"), (99, 1.0, "ill", "a"))]
    )
    with pytest.raises(
        InputError,
        match=r"has two rows at 1.0 that differ: their order is unknown; `duplicates='last'`",
    ):
        estimate(log, **OPTIONS)
    few = check_log(
        small(
            *[
                (e, t, s, "a")
                for e in range(5)
                for t, s in ((0.0, "well"), (0.0, "ill"), (1.0, "ill"), (2.0, "dead"))
            ]
        ),
        **{k: v for k, v in OPTIONS.items() if k not in ("costs", "discount")},
    )
    assert [finding.kind for finding in few.findings][:1] == ["same time"]
    kept = estimate(log, duplicates="last", **OPTIONS)
    assert kept.n_states == 3
    shuffled = panel_log([ILL], 20, 13, dead=2).sample(fraction=1.0, shuffle=True, seed=1)
    np.testing.assert_allclose(
        rates_of(estimate(shuffled, **OPTIONS)),
        rates_of(estimate(panel_log([ILL], 20, 13, dead=2), **OPTIONS)),
        rtol=1e-6,
    )


def test_an_action_that_changes_where_no_state_was_seen_is_refused():
    rows = [(99, 0.0, "well", "a"), (99, 1.0, None, "b"), (99, 2.0, "ill", "a")]
    log = pl.concat([panel_log([ILL, ILL], 60, 14, dead=2), small(*rows)])
    with pytest.raises(
        InputError, match=r"the action changes from 'a' to 'b' where no state was seen"
    ):
        estimate(log, **OPTIONS)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"gaps": "fill"}, "takes no `gaps='fill'`"),
        ({"within": 0.1}, "takes no `within=0.1`"),
        ({"weights": "counts", "by": "e"}, "takes no `weights='counts'`"),
        ({"unvisited": "prior"}, "takes no `unvisited='prior'`"),
        ({"exact": "ill"}, "`exact`: state 'ill' is not terminal"),
        ({"exact": "gone"}, "exact: unknown state 'gone'"),
        ({"jumps": [("well", "ill")]}, "`jumps`: expected a mapping"),
        ({"jumps": {"dead": ["well"]}}, "state 'dead' is terminal"),
        ({"jumps": {"well": ["well"]}}, "cannot jump to itself"),
        ({"step": 1, "gaps": "cut"}, "`exact` is for rows that may be far apart"),
        (
            {"step": 1, "gaps": "fill", "jumps": {"well": "ill"}, "exact": None},
            "`jumps` is for rates",
        ),
    ],
)
def test_what_rates_do_not_go_with(more, message):
    with pytest.raises(InputError, match=re.escape(message)):
        estimate(panel_log([ILL], 30, 15, dead=2), **{**OPTIONS, **more})


def test_a_log_in_which_nothing_happens_has_no_rate():
    rows = [(e, t, "well", "a") for e in range(5) for t in (0.0, 1.0)]
    with pytest.raises(InputError, match="no state is ever left"):
        estimate(small(*rows), **{**OPTIONS, "terminal": None, "exact": None, "states": None})


@pytest.mark.fuzz
def test_draws_cover_rates_and_probabilities_as_often_as_promised():
    truth, year = ILL[[0, 0, 1, 1], [1, 2, 0, 2]], linalg.expm(ILL)[1, 2]
    inside, covers = np.zeros(4), 0
    for seed in range(100):
        log = panel_log([ILL], 150, 1000 + seed, dead=2)
        drawn = rates_of(estimate(log, by="posterior", n_kernels=200, **OPTIONS))[:, :, 0]
        low, high = np.quantile(drawn[:, [0, 0, 1, 1], [1, 2, 0, 2]], [0.025, 0.975], axis=0)
        inside += (low <= truth) & (truth <= high)
        low, high = np.quantile([linalg.expm(q)[1, 2] for q in drawn], [0.025, 0.975])
        covers += low <= year <= high
    assert (inside >= 88).all()
    assert covers >= 88
