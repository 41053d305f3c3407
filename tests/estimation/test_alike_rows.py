"""Rows that are alike: one row for an action, like another state, and the pooled prior."""

import numpy as np
import pytest
from scipy.special import gammaln

from drmdp import InputError, check_log, estimate
from drmdp.estimation.log.shared_rows import GRID, weights

STATES = ["good", "fair", "poor"]


def machines(n=3000, seed=0):
    """`replace` was never tried when good, and leads to good or, now and then, to fair, from any
    state.
    """
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 3, n)
    action = np.where((state > 0) & (rng.random(n) < 0.3), 1, 0)
    run = np.array([[0.8, 0.2, 0], [0, 0.7, 0.3], [0, 0, 1.0]]).cumsum(axis=1)
    there = (rng.random(n)[:, None] > run[state]).sum(axis=1)
    there = np.where(action == 1, rng.random(n) < 0.1, there)
    names = np.array(STATES)
    return {
        "state": names[state].tolist(),
        "action": np.array(["run", "replace"])[action].tolist(),
        "next_state": names[there].tolist(),
        "cost": (10.0 * state + 100 * action).tolist(),
        "e": (np.arange(n) // 10).tolist(),
    }


OPTIONS = {"states": STATES, "actions": ["run", "replace"], "cost": "cost", "discount": 0.9}


def shares(log, action, states=STATES):
    found = np.zeros(3)
    for s, a, t in zip(log["state"], log["action"], log["next_state"], strict=True):
        found[STATES.index(t)] += a == action and s in states
    return found


def test_one_row_for_an_action_is_that_of_all_its_rows():
    log = machines()
    model = estimate(log, same_row="replace", **OPTIONS)
    row = shares(log, "replace")
    for s in range(3):
        np.testing.assert_allclose(model.kernels[0, s, 1], row / row.sum(), atol=1e-12)
        np.testing.assert_allclose(model.counts[s, 1], row)
        own = shares(log, "run", [STATES[s]])
        np.testing.assert_allclose(model.kernels[0, s, 0], own / own.sum(), atol=1e-12)
    assert model.costs[1, 1] == pytest.approx(110)  # costs stay those of the state …
    mean = np.mean([c for c, a in zip(log["cost"], log["action"], strict=True) if a == "replace"])
    assert model.costs[0, 1] == pytest.approx(
        mean
    )  # … and are those of the action where it was never seen
    assert (
        f"replace has one row, whatever the state: that of its {row.sum():,.0f} rows" in model.notes
    )


@pytest.mark.parametrize("by", ["posterior", "bootstrap", "parts", "e"])
def test_one_row_is_one_in_every_kernel(by):
    log = machines(400)
    n = {"e": None}.get(by, 4)
    model = estimate(
        log, same_row=["replace"], by=by, n_kernels=n, episode="e", partial="pooled", **OPTIONS
    )
    np.testing.assert_array_equal(model.kernels[:, 0, 1], model.kernels[:, 1, 1])
    np.testing.assert_array_equal(model.kernels[:, 2, 1], model.kernels[:, 1, 1])
    assert model.kernels[:, 0, 1].std(axis=0).max() > 0
    if (
        by == "posterior"
    ):  # the prior is on what was seen from the state in which it was done most often
        assert (model.kernels[:, 0, 1, 2] > 0).all()


def test_one_row_where_gaps_are_filled():
    rng = np.random.default_rng(1)
    rows = {"e": [], "t": [], "state": [], "action": []}
    for e in range(400):
        s, a = 0, 0
        for month in range(12):
            if month == 0 or rng.random() < 0.6:
                a = int(s > 0 and rng.random() < 0.4)
                for name, value in zip(
                    rows, (e, month, STATES[s], ("run", "replace")[a]), strict=True
                ):
                    rows[name].append(value)
            s = int(rng.random() < 0.2) if a else min(2, s + int(rng.random() < 0.3))
    options = {
        **OPTIONS,
        "cost": None,
        "costs": "1",
        "episode": "e",
        "time": "t",
        "step": 1,
        "gaps": "fill",
    }
    model = estimate(rows, same_row="replace", **options)
    after = [
        rows["state"][k + 1]
        for k in range(len(rows["e"]) - 1)
        if rows["action"][k] == "replace" and rows["e"][k] == rows["e"][k + 1]
    ]
    own = [after.count(name) / len(after) for name in STATES]  # P = 1rᵀ has P^k = P
    np.testing.assert_allclose(model.kernels[0, :, 1], [own] * 3, atol=1e-9)
    np.testing.assert_allclose(model.kernels[0, 0, 0], [0.7, 0.3, 0], atol=0.05)
    draws = estimate(rows, same_row="replace", by="posterior", n_kernels=30, **options).kernels
    np.testing.assert_array_equal(draws[:, 0, 1], draws[:, 2, 1])
    assert np.abs(draws.mean(axis=0) - model.kernels[0]).max() < 0.05


def test_pairs_never_seen_may_be_like_those_of_another_state():
    log = machines()
    model = estimate(log, unvisited="like:fair", **OPTIONS)
    np.testing.assert_array_equal(model.kernels[0, 0, 1], model.kernels[0, 1, 1])
    assert model.costs[0, 1] == pytest.approx(110)
    assert not np.array_equal(model.kernels[0, 2, 1], model.kernels[0, 1, 1])
    assert (
        "1 pair was never seen, and taken to lead where its action leads from fair: replace when good"
        in model.notes
    )
    assert not any("never seen: like" in note for note in model.notes)
    assert not any("replace when good" in note and "seen fewer" in note for note in model.notes)
    draws = estimate(log, unvisited="like:fair", by="posterior", n_kernels=5, **OPTIONS).kernels
    np.testing.assert_array_equal(draws[:, 0, 1], draws[:, 1, 1])


def test_pairs_that_borrow_a_row_were_not_seen():
    log = {
        "state": list("aaabbbbbbb"),
        "action": list("xxxyyyyyyy"),
        "next_state": list("abaabababa"),
    }
    model = estimate(log, unvisited="like:a", same_row="y", costs="1", discount=0.9)
    assert any("seen fewer than 5 times: x when a (3 times)" in note for note in model.notes)
    assert not any("x when b (" in note for note in model.notes)
    thin = [
        own
        for own in check_log(log, unvisited="like:a", same_row="y").findings
        if own.kind == "thin"
    ]
    assert [str(place) for own in thin for place in own.places] == [
        "state 'a', action 'x': seen 3 times"
    ]


def test_numbers_are_states_too():
    log = {
        "state": [0, 0, 1],
        "action": ["a", "b", "a"],
        "next_state": [1, 0, 0],
        "cost": [1, 2, 3],
    }
    model = estimate(log, unvisited="like:0", cost="cost", discount=0.9)
    np.testing.assert_array_equal(model.kernels[0, 1, 1], [1, 0])


def test_what_cannot_be_alike_is_said():
    log = machines(200)
    with pytest.raises(
        InputError,
        match="state 'good', action 'replace' was never seen, nor in state 'good'; choose a rule",
    ):
        estimate(log, unvisited="like:good", **OPTIONS)
    with pytest.raises(InputError, match="unknown state in `unvisited='like:bad'` 'bad'"):
        estimate(log, unvisited="like:bad", **OPTIONS)
    with pytest.raises(InputError, match="`same_row`: unknown action 'swap'"):
        estimate(log, same_row="swap", **OPTIONS)
    with pytest.raises(InputError, match=r"`unvisited` is one of .*like:STATE; got 'same'"):
        estimate(log, unvisited="same", **OPTIONS)
    found = check_log(log, states=STATES, cost="cost", same_row="replace")
    assert not found.refused
    with pytest.raises(InputError, match="takes no `by='bootstrap'`"):
        estimate(
            log, prior="pooled", by="bootstrap", n_kernels=3, unvisited="unavailable", **OPTIONS
        )


# ---------------------------------------------------------------------- pooled prior


def drugs(alike, seed, rows=(3, 3, 5, 5, 10, 10, 30, 100, 300, 1000), K=5):
    """Ten actions in one state, with rows drawn about a pooled one, and few counts for most."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_gamma(alike * rng.dirichlet(np.ones(K)) + 1e-3, (len(rows), K))
    truth /= truth.sum(axis=1, keepdims=True)
    counts = [rng.multinomial(n, p) for n, p in zip(rows, truth, strict=True)]
    action, there = zip(
        *((a, t) for a, c in enumerate(counts) for t in range(K) for _ in range(c[t])), strict=True
    )
    return (
        truth,
        np.array(counts),
        {"state": [0] * len(action), "action": list(action), "next_state": list(there)},
    )


PRIOR = {"costs": "1", "discount": 0.9, "states": range(5), "terminal": [1, 2, 3, 4]}


def test_the_weights_are_leave_one_out_likelihoods():
    counts = np.array([[3.0, 0, 1], [1, 1, 0], [0, 5, 2], [40, 20, 9]])
    share, parameters = weights(counts)
    own = []
    for k, w in enumerate(GRID):
        n = counts.sum(axis=1)
        e = counts * np.minimum(1, w * np.log(1 + n / w) / n)[:, None]
        total = 0.0
        for i in range(4):
            m = 1 / 3 + np.delete(e, i, axis=0).sum(axis=0)
            alpha = w * m / m.sum()
            total += gammaln(alpha.sum()) - gammaln(alpha.sum() + n[i])
            total += (gammaln(alpha + counts[i]) - gammaln(alpha)).sum()
        own.append(total)
        np.testing.assert_allclose(parameters[k], 1 / 3 + e.sum(axis=0))
    own = np.exp(np.array(own) - max(own))
    np.testing.assert_allclose(share, own / own.sum(), rtol=1e-8)


def test_thin_rows_are_drawn_to_the_pooled_row_where_rows_agree_and_left_alone_where_not():
    error = {}
    for alike in (500, 0.5):
        for prior in ("pooled", 1.0):
            off = []
            for seed in range(12):
                truth, counts, log = drugs(alike, seed)
                kernel = estimate(log, prior=prior, **PRIOR).kernels[0, 0]
                np.testing.assert_allclose(
                    kernel[-1], counts[-1] / 1000, atol=0.03
                )  # rows of many counts stay
                off.append(np.abs(kernel - truth)[:6].sum(axis=1).mean())
            error[alike, prior] = np.mean(off)
    assert error[500, "pooled"] < 0.5 * error[500, 1.0]
    assert error[0.5, "pooled"] < 1.4 * error[0.5, 1.0]


def test_draws_of_the_pooled_prior_cover_thin_rows():
    inside = []
    for seed in range(15):
        truth, _, log = drugs(50, seed)
        draws = estimate(log, prior="pooled", by="posterior", n_kernels=150, **PRIOR).kernels[
            :, 0, :6
        ]
        far = np.abs(draws - draws.mean(axis=0)).sum(axis=-1) / 2
        own = np.abs(truth[:6] - draws.mean(axis=0)).sum(axis=-1) / 2
        inside.append(own <= np.quantile(far, 0.95, axis=0))
    assert np.mean(inside) >= 0.85


def test_the_pooled_prior_is_told_and_needs_several_rows():
    _, _, log = drugs(50, 0)
    told = [
        note for note in estimate(log, prior="pooled", **PRIOR).notes if note.startswith("prior")
    ]
    assert len(told) == 1
    assert told[0].startswith(
        "prior: rows of 1 state are drawn to the pooled row of the state's actions, which weighs"
    )
    few = {"state": [0, 0, 0, 0], "action": [0, 0, 1, 1], "next_state": [1, 0, 1, 1]}
    model = estimate(few, prior="pooled", costs="1", discount=0.9, terminal=[1])
    np.testing.assert_allclose(model.kernels[0, 0], [[1.5 / 3, 1.5 / 3], [0.5 / 3, 2.5 / 3]])
    assert any("have a prior of one row" in note for note in model.notes)
    np.testing.assert_array_equal(model.counts[0], [[1, 1], [0, 2]])
