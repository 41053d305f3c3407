"""Steps that last: averages per unit of time against enumerated policies and fractions, times until
the end, files and proofs.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import drmdp
import drmdp_check
from criteria_cases import deck, exact_steps
from drmdp.model import changed
from drmdp.model.rates import at_rate
from drmdp.solution import Status

SETS = {
    "l1": drmdp.Wasserstein(0.2, "l1"),
    "l2": drmdp.Wasserstein(0.2),
    "l2 sa": drmdp.Wasserstein(0.2, rectangular="sa"),
    "kl": drmdp.Divergence(0.1),
    "reweighting": drmdp.Reweighting(0.2),
    "linf": drmdp.Wasserstein(0.1, "linf"),
}


def problem(seed, **more):
    """A model of up to five states, whose steps last from .01 to 100, or nearly the same."""
    rng = np.random.default_rng(seed)
    S, A, N = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    K = rng.dirichlet(np.full(S, 0.5), (N, S, A))
    lasts = 10 ** rng.uniform(-2, 2, (S, A)) if seed % 2 else rng.uniform(0.5, 2, (S, A))
    costs = rng.uniform(-3, 5, (S, A, S) if seed % 3 == 0 else (S, A))
    return drmdp.Model(
        K,
        **{"rewards" if seed % 5 == 0 else "costs": costs, "discount": 0.9, "sojourn": lasts}
        | more,
    )


@pytest.mark.parametrize("seed", range(10))
def test_without_doubt_it_is_the_best_policy_of_all(seed):
    model = problem(seed)
    S, A = model.available.shape
    P = np.tensordot(model.weights, model.kernels, 1)
    costs = model.costs if model.costs.ndim == 2 else (P * model.costs).sum(axis=2)
    best = np.inf
    for x in itertools.product(range(A), repeat=S):
        rows = np.arange(S), np.array(x)
        system = np.vstack([np.eye(S) - P[rows].T, np.ones(S)])
        share = np.linalg.lstsq(system, np.r_[np.zeros(S), 1], rcond=None)[0]
        best = min(best, share @ costs[rows] / (share @ model.sojourn[rows]))
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), criterion="average", rtol=1e-9)
    best = -best if model.maximise else best
    off = 1e-10 * found.scale
    assert found.status is Status.solved
    assert found.lower[0] - off <= best <= found.upper[0] + off
    frame = found.to_frame()
    np.testing.assert_allclose(frame["nominal_value"], best, rtol=1e-4, atol=1e-4 * found.scale)


@pytest.mark.parametrize("seed", range(12))
def test_certificates_hold_in_fractions(seed):
    """With any rate r, costs less r a unit of time: what the largest step is, divided by the least
    or the longest time.
    """
    mid, low, high, costs = deck(seed)
    rng = np.random.default_rng(seed)
    model = drmdp.Model(
        mid[None],
        costs=costs,
        discount=0.9,
        sojourn=rng.choice([0.125, 1.0, 3.0, 50.0], costs.shape),
    )
    found = drmdp.solve(
        model, drmdp.Intervals(low, high), criterion="average", max_iters=60, threads=1
    )
    lasts = [[Fraction(float(x)) for x in row] for row in model.sojourn]
    shortest, longest = (end(x for row in lasts for x in row) for end in (min, max))
    exact = Exact(model, lasts, Fraction(found.rate))
    below, above = found.sweeps
    least = min(exact_steps(exact, low, high, below.value))
    most = max(exact_steps(exact, low, high, above.value, above.update.policy))
    lower = exact.rate + least / (longest if least > 0 else shortest)
    upper = exact.rate + most / (shortest if most > 0 else longest)
    limits = [
        Fraction(float(c)) / t
        for row, own in zip(costs, lasts, strict=True)
        for c, t in zip(row, own, strict=True)
    ]
    assert Fraction(float(found.lower[0])) <= max(lower, min(*limits, 0))
    assert Fraction(float(found.upper[0])) >= min(upper, max(*limits, 0))


class Exact:
    """A model whose costs are less a rate of the time, in fractions."""

    def __init__(self, model, lasts, rate):
        self.n_states, self.n_actions, self.terminal, self.rate = (
            model.n_states,
            model.n_actions,
            model.terminal,
            rate,
        )
        rows = zip(model.costs.tolist(), lasts, strict=True)
        each = [[Fraction(c) - rate * t for c, t in zip(*row, strict=True)] for row in rows]
        self.costs = np.array(each, dtype=object)


@pytest.mark.parametrize("seed", range(20))
def test_costs_that_cancel_leave_no_false_digit(seed):
    """Round in a circle: the cost per unit of time is a fraction, and costs less a rate of the time
    are mostly rounding.
    """
    rng = np.random.default_rng(seed)
    lasts = rng.choice([0.1, 0.3, 0.7, 3.0, 1e3], size=3) * rng.uniform(0.9, 1.1, 3)
    costs = (0.1 + 1e-9 * rng.normal(size=3)) * lasts * 10.0 ** rng.integers(-3, 7)
    circle = np.roll(np.eye(3), 1, axis=1)[:, None]
    found = drmdp.solve(
        drmdp.Model(circle[None], costs=costs, discount=0.9, sojourn=lasts),
        drmdp.Wasserstein(0.0),
        criterion="average",
        rtol=1e-14,
    )
    exact = sum(map(Fraction, costs.tolist())) / sum(map(Fraction, lasts.tolist()))
    assert Fraction(float(found.lower[0])) <= exact <= Fraction(float(found.upper[0]))
    assert found.gap <= 1e-9 * found.scale


@pytest.mark.parametrize("name", SETS)
def test_rates_of_sets(name, tmp_path):
    """Solved, evaluated and proved; the average of costs less the rate is 0; files keep how long
    steps last.
    """
    for seed, nature in ((1, "adversarial"), (2, "cooperative"), (3, "adversarial")):
        model, ambiguity = problem(seed), SETS[name]
        found = drmdp.solve(model, ambiguity, criterion="average", nature=nature)
        assert found.status is Status.solved
        assert np.ptp(found.value) == 0
        worth = drmdp.evaluate(model, ambiguity, found, criterion="average", nature=nature)
        assert worth.lower[0] <= found.upper[0]
        assert found.lower[0] <= worth.upper[0]
        sign = -1 if model.maximise else 1
        rest = drmdp.solve(
            changed(at_rate(model, sign * found.value[0]), sojourn=None),
            ambiguity,
            criterion="average",
            nature=nature,
        )
        assert abs(rest.value[0]) <= 1e-5 * model.sojourn.max() * found.scale
        drmdp.write(model, tmp_path / "m.npz")
        for result in (found, worth):
            result.proof(tmp_path / "p")
            for more in ([], ["--interval"]):
                assert drmdp_check.main([str(tmp_path / "p"), str(tmp_path / "m.npz"), *more]) == 0
        if nature == "adversarial":
            shown = drmdp.certify(model, ambiguity, found, criterion="average")
            assert shown.lower[0] <= found.upper[0]
            assert found.lower[0] <= shown.upper[0]


def test_a_proof_is_of_its_times(tmp_path):
    """Another model, a rate without times, or times that are not positive are refused."""
    model = problem(4)
    drmdp.write(model, tmp_path / "m.npz")
    drmdp.solve(model, drmdp.Wasserstein(0.2), criterion="average").proof(tmp_path / "p")
    other = np.array(model.sojourn)
    other[0, 0] = np.nextafter(other[0, 0], 9)
    drmdp.write(changed(model, sojourn=other), tmp_path / "o.npz")
    with pytest.raises(drmdp_check.Refused, match="not the one"):
        drmdp_check.check(tmp_path / "p", tmp_path / "o.npz")
    drmdp.write(changed(model, sojourn=None), tmp_path / "n.npz")
    with pytest.raises(drmdp_check.Refused, match="rate: goes with"):
        drmdp_check.check(tmp_path / "p", tmp_path / "n.npz")
    drmdp.write(changed(model, sojourn=0 * other), tmp_path / "z.npz")
    with pytest.raises(drmdp_check.Refused, match="sojourn: not positive"):
        drmdp_check.check(tmp_path / "p", tmp_path / "z.npz")


def test_times_until_the_end(tmp_path):
    """Two parts that last 5 and 10 days: the total is of costs, `time` of days, and costs below 0
    are proved to arrive.
    """
    K = np.zeros((1, 3, 1, 3))
    K[0, 0, 0], K[0, 1, 0], K[0, 2, 0] = [0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]
    for costs in ([1.0, 2.0, 0.0], [1.0, -2.0, 0.0]):
        given = {"costs": costs, "discount": 1.0, "terminal": [2]}
        model = drmdp.Model(K, **given, sojourn=[5.0, 10.0, 1.0])
        found = drmdp.solve(model, drmdp.Wasserstein(0.0))
        assert found.value[:2] == pytest.approx([2 * sum(costs), 2 * costs[1]], rel=1e-6)
        assert found.time[:2] == pytest.approx([30, 20], rel=2e-2)
        assert (found.time[:2] >= np.array([30, 20]) * (1 - 1e-12)).all()
        assert drmdp.solve(drmdp.Model(K, **given), drmdp.Wasserstein(0.0)).time[
            0
        ] == pytest.approx(4, rel=2e-2)
        drmdp.write(model, tmp_path / "m.npz")
        found.proof(tmp_path / "p")
        assert drmdp_check.main([str(tmp_path / "p"), str(tmp_path / "m.npz")]) == 0


def test_rates_of_continuous_time():
    """Up for 10 days, down for 1 at 5 a day: 5/11 a day, whatever the interest; and 10 days until
    it fails.
    """
    rates = np.array([[[-0.1, 0.1]], [[1.0, -1.0]]])
    for interest in (0.0, 0.3):
        model = drmdp.Model.from_rates(rates, costs=[0, 5], interest=interest)
        found = drmdp.solve(model, drmdp.Wasserstein(0.0), criterion="average", rtol=1e-9)
        assert found.value[0] == pytest.approx(5 / 11, rel=1e-8)
    jumps = drmdp.Model.from_rates(rates, jump_costs=[[0, 22.0], [0, 0]], interest=0)
    assert drmdp.solve(jumps, drmdp.Wasserstein(0.0), criterion="average").value[
        0
    ] == pytest.approx(2, rel=1e-6)
    ends = drmdp.Model.from_rates(rates, costs=[3.0, 0], interest=0, terminal=[1])
    found = drmdp.solve(ends, drmdp.Wasserstein(0.0))
    assert (found.value[0], found.time[0]) == pytest.approx((30, 10), rel=2e-2)


def test_words_files_and_what_does_not_go_together(tmp_path):
    model = problem(2, states=None)
    found = drmdp.solve(model, drmdp.Wasserstein(0.1), criterion="average")
    found.save(tmp_path / "s.npz")
    for result in (found, drmdp.Solution.load(tmp_path / "s.npz")):
        assert "per unit of time in the long run" in repr(result)
    least, most = model.sojourn.min(), model.sojourn.max()
    assert f"steps last from {least:g} to {most:g}" in repr(model)
    for path in (tmp_path / "m.npz", tmp_path / "m.drmdp"):
        drmdp.write(model, path)
        again = drmdp.read(path)
        assert again == model
        np.testing.assert_array_equal(again.sojourn, model.sojourn)
    assert changed(model, sojourn=None) != model
    with pytest.raises(drmdp.InputError, match="lengths of steps"):
        drmdp.write(
            drmdp.Model([[[1.0]]], costs=[1.0], discount=0.9, sojourn=2.0), tmp_path / "m.csv"
        )
    with pytest.raises(drmdp.InputError, match="lasts 1 in 0 and 2 in 1"):
        drmdp.stack(
            [
                drmdp.Model([[[1.0]]], costs=[1.0], discount=0.9, **own)
                for own in ({}, {"sojourn": 2.0})
            ]
        )
    both = drmdp.stack([model, model])
    np.testing.assert_array_equal(both.sojourn, model.sojourn)


def test_what_an_action_costs_beyond_the_average():
    """Q(s, a) = c − rτ + y·h: no action that is played is beyond the value, which is the bias."""
    model = problem(4)
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), criterion="average", rtol=1e-9)
    best = found.q_values.min(axis=1)
    np.testing.assert_allclose(best, found.bias, atol=1e-7 * max(1.0, np.abs(found.bias).max()))
