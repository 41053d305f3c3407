"""Sets from counts: coverage by simulation, formulas against independent ones, radii of models row
by row, and what is refused.
"""

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, sparse, stats

import drmdp
from drmdp import Divergence, InputError, Intervals, Wasserstein, radius
from drmdp.sets import concentration
from drmdp.sets.concentration import LIMITS, METHODS, Draws, box

NORM = {"l1": 1, "l2": 2, "linf": np.inf}
PROMISED = [("row", name) for name in METHODS["row"]] + [("log", "burg")]
BURG = Divergence(0, "burg", rectangular="sa", support="state")


def drawn(counts, K=None, places=None):
    """Rows of counts (R, K) as the formulas take them, on a line from 0 to 1."""
    counts = np.atleast_2d(counts)
    row, column = np.nonzero(counts)
    R, n = len(counts), counts.sum(axis=1).astype(float)
    K = counts.shape[1] if K is None else K
    x = np.linspace(0, 1, counts.shape[1]) if places is None else np.asarray(places)
    ends = np.tile([x.min(), x.max()], (R, 1))
    return Draws(
        n,
        np.full(R, float(K)),
        row,
        counts[row, column].astype(float),
        np.full(R, np.ptp(x)),
        x[column],
        ends,
    )


def radii(method, name, counts, delta, **given):
    draws = drawn(counts, **given)
    return np.minimum(
        METHODS[method][name](draws, np.full(draws.n.size, delta)), LIMITS.get(name, np.inf)
    )


def apart(name, p, counts):
    """Distance of the law p from rows of counts (R, K), by its definition."""
    q = counts / counts.sum(axis=1, keepdims=True)
    if name in NORM:
        return np.linalg.norm(q - p, NORM[name], axis=1)
    if name == "burg":
        return stats.entropy(q, np.broadcast_to(p, q.shape), axis=1)
    if name == "kl":
        K = p.size
        centre = (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + K / 2)
        return stats.entropy(np.broadcast_to(p, q.shape), centre, axis=1)
    if name == "transport":
        return np.abs(np.cumsum(q - p, axis=1))[:, :-1].sum(axis=1) / (p.size - 1)
    return np.abs(q - p).sum(axis=1) / 2


def laws(K):
    halves = 0.5 ** np.arange(1, K + 1)
    nearly = np.append(0.98, np.full(K - 1, 0.02 / (K - 1)))
    return {"uniform": np.full(K, 1 / K), "skewed": halves / halves.sum(), "nearly certain": nearly}


def shortfall(p, q, v):
    """Least divergence KL(q‖y) of a y with y·v ≥ p·v, for rows q (R, K): max over 0 ≤ l ≤ 1 of Σ q
    log(1 − l (v − p·v)/(max v − p·v)).
    """
    x = (v - p @ v) / (v.max() - p @ v)
    low, high, golden = np.zeros(len(q)), np.ones(len(q)), (math.sqrt(5) - 1) / 2
    for _ in range(45):
        parts = high - golden * (high - low), low + golden * (high - low)
        left, right = (
            np.where(q > 0, q * np.log(np.maximum(1 - x_[:, None] * x, 1e-300)), 0).sum(axis=1)
            for x_ in parts
        )
        low, high = np.where(left > right, low, parts[0]), np.where(left > right, parts[1], high)
    z = 1 - (low + high)[:, None] / 2 * x
    return np.where(q > 0, q * np.log(np.maximum(z, 1e-300)), 0).sum(axis=1)


def covered(n, K, p, M, rng):
    """Share of M draws in which each promise at 95 % holds."""
    counts, delta = rng.multinomial(n, p, M), 0.05
    found = {}
    for method, name in PROMISED:
        found[method, name] = (
            apart(name, p, counts) <= radii(method, name, counts, delta) * (1 + 1e-12)
        ).mean()
    draws = drawn(counts)
    low, high, rest = box(draws, np.full(M, delta))
    wide = np.zeros(counts.shape), np.broadcast_to(rest[:, None], counts.shape).copy()
    for ends, part in zip(wide, (low, high), strict=True):
        ends[np.nonzero(counts)] = part
    found["intervals"] = ((wide[0] <= p + 1e-12) & (p <= wide[1] + 1e-12)).all(axis=1).mean()
    for v in (np.linspace(0, 1, K), np.arange(K) == K - 1, rng.random(K)):
        found["value", v[0], v[-1]] = (
            shortfall(p, counts / n, v * 1.0) <= radii("value", "burg", counts, delta) + 1e-9
        ).mean()
    return found


@pytest.mark.parametrize("n", [5, 100])
@pytest.mark.parametrize("law", ["uniform", "skewed", "nearly certain"])
def test_promises_are_kept(n, law):
    rng = np.random.default_rng(n)
    for K in (2, 5):
        assert min(covered(n, K, laws(K)[law], 2000, rng).values()) >= 0.95 - 3 * math.sqrt(
            0.05 * 0.95 / 2000
        )


@pytest.mark.fuzz
@pytest.mark.parametrize("n", [5, 20, 100, 500])
@pytest.mark.parametrize("K", [2, 5, 20, 50])
@pytest.mark.parametrize("law", ["uniform", "skewed", "nearly certain"])
def test_promises_are_kept_everywhere(n, K, law):
    found = covered(n, K, laws(K)[law], 10_000, np.random.default_rng([n, K]))
    assert min(found.values()) >= 0.9435, found


def test_a_log_may_stop_where_it_likes():
    """Whoever stops when the truth falls outside breaks the promise for a number of draws that was
    fixed, not that for all of them.
    """
    rng, p = np.random.default_rng(1), np.array([0.2, 0.8])
    seen = np.cumsum(rng.random((600, 300)) < p[0], axis=1)
    missed = {"row": np.zeros(600, bool), "log": np.zeros(600, bool)}
    for n in range(5, 301):
        counts = np.stack([seen[:, n - 1], n - seen[:, n - 1]], axis=1)
        for method, bad in missed.items():
            bad |= apart("burg", p, counts) > radii(method, "burg", counts, 0.05)
    assert missed["row"].mean() > 0.07
    assert missed["log"].mean() < 0.05


# ---------------------------------------------------------------------- formulas


def any_counts(rng, K=None, n=None):
    K = int(rng.integers(2, 51)) if K is None else K
    n = int(10 ** rng.uniform(0, 4)) if n is None else n
    return rng.multinomial(n, rng.dirichlet(np.full(K, rng.choice([0.05, 0.3, 1, 10]))))


def agrawal(K, delta):
    """The root of e^{−x}(ex/(K−1))^{K−1} = δ, by bisection."""
    m = K - 1
    return optimize.brentq(
        lambda x: -x + m + m * math.log(x / m) - math.log(delta), m, m * 50 - 50 * math.log(delta)
    )


def check_log(seed):
    rng = np.random.default_rng(seed)
    counts, delta = any_counts(rng), 10 ** rng.uniform(-6, -0.1)
    n, K = counts.sum(), counts.size
    assert radii("log", "burg", counts, delta)[0] * n <= agrawal(K, delta) + 0.5 * (
        K - 1
    ) * math.log(n)


def test_all_n_at_once_cost_half_a_logarithm():
    for seed in range(200):
        check_log(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_all_n_at_once_cost_half_a_logarithm_everywhere(first):
    for seed in range(first, first + 500):
        check_log(seed)


@pytest.mark.parametrize(("n", "K"), [(1, 2), (7, 3), (5, 4)])
def test_the_mixture_is_a_law_of_logs(n, K):
    """Its probabilities over all counts sum to 1, each being that of a sequence times how many
    sequences have these counts.
    """
    total = 0.0
    for counts in itertools.product(range(n + 1), repeat=K):
        if sum(counts) == n:
            likelihood = sum(c * math.log(c / n) for c in counts if c)
            mixture = math.exp(
                math.log(20)
                + likelihood
                - n * METHODS["log"]["burg"](drawn(counts), np.array([0.05]))[0]
            )
            total += mixture * math.factorial(n) / math.prod(map(math.factorial, counts))
    assert total == pytest.approx(1, rel=1e-12)


def test_half_of_the_mixture_is_for_rows_that_are_nearly_certain():
    counts = np.array([98, 1, 1] + 17 * [0])
    ways = stats.multinomial.logpmf(counts, 100, np.full(20, 1 / 20)) + 100 * math.log(20)
    halves = [
        stats.dirichlet_multinomial.logpmf(counts, np.full(20, alpha), 100) - ways
        for alpha in (0.5, 1 / 20)
    ]
    likelihood = 98 * math.log(0.98) + 2 * math.log(0.01)
    want = math.log(20) + likelihood - np.logaddexp(*halves) + math.log(2)
    assert radii("log", "burg", counts, 0.05)[0] * 100 == pytest.approx(want, rel=1e-9)
    assert want < 0.6 * (math.log(20) + likelihood - halves[0])


def test_two_radii_share_what_may_go_wrong():
    """The smaller of a bound by n and K and one by the counts, with δ/2 each: of a row that is
    nearly certain, and of one that is not.
    """
    for counts in ([97, 1, 1, 1], [30, 20, 25, 25]):
        draws, half = drawn(np.array(counts)), np.array([0.025])
        blind = draws._replace(counts=None, row=None)
        for name, seeing in (
            ("l1", concentration._l1_box),
            ("l2", concentration._l2_box),
            ("transport", concentration._gaps),
        ):
            want = min(METHODS["row"][name](blind, half)[0], seeing(draws, half)[0])
            assert radii("row", name, np.array(counts), 0.05)[0] == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize(("n", "K"), [(1, 2), (12, 3), (40, 10), (3, 50)])
def test_burg_takes_the_least_of_three(n, K, delta):
    counts = np.zeros(K, int)
    counts[0] = n
    types = math.log(math.comb(n + K - 1, K - 1)) - math.log(delta)
    chain = (K - 1) * math.log(2) + stats.gamma.isf(delta, K - 1)
    assert METHODS["row"]["burg"](drawn(counts), np.array([delta]))[0] * n == pytest.approx(
        min(types, chain, agrawal(K, delta)), rel=1e-9
    )
    assert radii("asymptotic", "burg", counts, delta)[0] == pytest.approx(
        min(stats.chi2.isf(delta, K - 1) / (2 * n), 50)
    )


def ends(counts, delta):
    """Clopper–Pearson by the tails of binomials, all next states listed, tightened one by one."""
    n, K = int(counts.sum()), counts.size
    share = delta if K == 2 else delta / K
    low, high = np.zeros(K), np.ones(K)
    for k, c in enumerate(counts.tolist()):
        if c:
            low[k] = optimize.brentq(
                lambda p, c=c: stats.binom.sf(c - 1, n, p) - share / 2, 0, c / n, xtol=1e-14
            )
        if c < n:
            high[k] = optimize.brentq(
                lambda p, c=c: stats.binom.cdf(c, n, p) - share / 2, c / n, 1, xtol=1e-14
            )
    others = [np.arange(K) != k for k in range(K)]
    return (
        np.array([max(low[k], 1 - high[others[k]].sum()) for k in range(K)]),
        np.array([min(high[k], 1 - low[others[k]].sum()) for k in range(K)]),
    )


@pytest.mark.parametrize("seed", range(25))
def test_radii_hold_all_rows_of_the_box(seed):
    """Intervals are those of exact tails; radii from them are at least what linear programs find
    far away.
    """
    rng = np.random.default_rng(seed)
    K, delta = int(rng.integers(2, 7)), 10 ** rng.uniform(-3, -0.5)
    counts = any_counts(rng, K, int(rng.integers(1, 60)))
    low, high = ends(counts, delta)
    found = Intervals.from_counts(np.tile(counts, (K, 1, 1)), 1 - delta, support="all")
    np.testing.assert_allclose(found.lower[0, 0], low, atol=1e-9)
    np.testing.assert_allclose(found.upper[0, 0], high, atol=1e-9)
    q, draws, share = counts / counts.sum(), drawn(counts), np.array([delta])
    x = np.sort(rng.random(K))
    farthest = dict.fromkeys(("l1", "l2", "linf", "kl"), 0.0)
    for v in [*rng.normal(size=(30, K)), *np.eye(K), *-np.eye(K)]:
        y = optimize.linprog(
            v, A_eq=np.ones((1, K)), b_eq=[1.0], bounds=np.stack([low, high], axis=1)
        ).x
        for name in farthest:
            farthest[name] = max(farthest[name], apart(name, np.maximum(y, 0), counts[None])[0])
    for name, bound in (("l1", concentration._l1_box), ("l2", concentration._l2_box)):
        assert bound(draws, share)[0] >= farthest[name] - 1e-9
    assert METHODS["row"]["linf"](draws, share)[0] == pytest.approx(farthest["linf"], abs=1e-9)
    assert METHODS["row"]["kl"](draws, share)[0] >= farthest["kl"] - 1e-9
    left, n = np.cumsum(counts)[:-1], counts.sum()
    cuts = [stats.binomtest(int(c), int(n)).proportion_ci(1 - delta / (K - 1)) for c in left]
    far = [max(ci.high - c / n, c / n - ci.low) for ci, c in zip(cuts, left, strict=True)]
    line = concentration._gaps(drawn(counts, places=x), share)[0]
    assert line == pytest.approx(np.diff(x) @ far, rel=1e-7)
    shuffled = rng.permutation(K)
    again = concentration._gaps(drawn(counts[shuffled], places=x[shuffled]), share)[0]
    assert again == pytest.approx(line, rel=1e-12)
    assert q.sum() == pytest.approx(1)


def test_statements_of_n_alone():
    n, K, delta = np.array([40.0]), np.array([6.0]), np.array([0.01])
    log = math.log(100)
    blind = Draws(n, K, diameter=np.array([3.0]))
    weissman = math.sqrt(2 * (math.log(62) + log) / 40)
    mcdiarmid = (math.sqrt(5) + math.sqrt(2 * log)) / math.sqrt(40)
    assert METHODS["row"]["l1"](blind, delta)[0] == pytest.approx(min(weissman, mcdiarmid))
    assert METHODS["row"]["tv"](blind, delta)[0] == pytest.approx(min(weissman, mcdiarmid) / 2)
    assert METHODS["row"]["l2"](blind, delta)[0] == pytest.approx(
        (math.sqrt(5 / 6) + math.sqrt(log)) / math.sqrt(40)
    )
    assert METHODS["row"]["linf"](blind, delta)[0] == pytest.approx(math.sqrt(math.log(1200) / 80))
    assert METHODS["row"]["transport"](blind, delta)[0] == pytest.approx(
        3 * min(weissman, mcdiarmid) / 2
    )
    line = blind._replace(ends=np.array([[0.0, 3.0]]))
    assert METHODS["row"]["transport"](line, delta)[0] == pytest.approx(
        3 * math.sqrt(math.log(200) / 80)
    )
    many = Draws(n, np.array([400.0]))
    assert METHODS["row"]["l1"](many, delta)[0] == 2.0  # of order √(K/n)
    assert METHODS["row"]["l1"](many._replace(n=n * 1e6), delta)[0] == pytest.approx(
        (math.sqrt(399) + math.sqrt(2 * log)) / math.sqrt(40e6)
    )


# ---------------------------------------------------------------------- radii of models


def log_model(seed, N=1, S=4, A=2, sparse_=False, available=None, most=60, zeros=False):
    """A model whose rows are the shares of counts, those of each kernel its own."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, most, (N, S, A))
    if zeros:
        n[:, 0, 1] = 0
    counts = np.array(
        [
            [
                [rng.multinomial(n[i, s, a], rng.dirichlet(np.ones(S))) for a in range(A)]
                for s in range(S)
            ]
            for i in range(N)
        ]
    )
    rows = np.where(n[..., None] > 0, counts / np.maximum(n, 1)[..., None], 1 / S)
    given = counts
    if sparse_:
        rows, given = (
            [sparse.csr_array(part.reshape(S * A, S)) for part in table] for table in (rows, counts)
        )
    weights = rng.dirichlet(np.ones(N))
    model = drmdp.Model(
        rows,
        costs=rng.random((S, A)),
        discount=0.9,
        counts=given,
        weights=weights,
        available=available,
        terminal=np.arange(S) == S - 1,
    )
    return model, counts


SETS = [
    Wasserstein(0, "l1", rectangular="sa", support="all"),
    Wasserstein(0, "l1", math.inf, support="all"),
    Wasserstein(0, "l2", math.inf, rectangular="sa", support="state"),
    Wasserstein(0, "l2", support="state"),
    Wasserstein(0, "l2", 3, support="all"),
    Wasserstein(0, "linf", support="all"),
    Wasserstein(0, "linf", 1, rectangular="sa", support="state"),
    Divergence(0, "tv", support="all"),
    Divergence(0, "tv", around="kernels", support="state", rectangular="sa"),
    Divergence(0, "burg", support="all"),
    BURG,
    Wasserstein(0, "transport", support="all", ground=("line", [0.0, 2.0, 1.0, 5.0])),
    Wasserstein(
        0, "transport", math.inf, support="state", rectangular="sa", ground=1.0 - np.eye(4)
    ),
]


def by_hand(model, counts, ambiguity, delta, joint, method):
    """Row by row, and added up as the set does."""
    S, A = model.available.shape
    used = np.flatnonzero(model.weights > 0)
    w, name = model.weights[used], ambiguity.key[0]
    allowed = np.array([ambiguity.allowed(model, s, s + 1)[0] for s in range(S)])
    live = allowed.sum(axis=2) > 1
    around_mean = (
        ambiguity.key in (("l1", 1), ("transport", 1)) or getattr(ambiguity, "around", "") == "mean"
    )
    pooled = len(used) == 1 and around_mean
    assert pooled or len(used) > 1 or not around_mean
    out = np.zeros((S, A, len(used)))
    for s, a in np.argwhere(live):
        share = live.sum() if joint else 1 if ambiguity.by_pair else live[s].sum()
        split = 2 if ambiguity.key == ("l2", 2) and (len(used) > 1 or not ambiguity.by_pair) else 1
        places = np.flatnonzero(allowed[s, a])
        limit = LIMITS.get(name)
        if name == "transport":
            limit = ambiguity.ground.between(places, places).max()
        for k, i in enumerate(used):
            c = counts[i, s, a][places]
            out[s, a, k] = limit
            if c.sum():
                line = (
                    ambiguity.ground.data[places]
                    if name == "transport" and ambiguity.ground.kind == "line"
                    else None
                )
                draws = drawn(c, places=line)
                if name == "transport":
                    draws = draws._replace(
                        diameter=np.array([limit]), ends=None if line is None else draws.ends
                    )
                here = np.array([delta / share / len(used) / split])
                out[s, a, k] = min(limit, METHODS[method][name](draws, here)[0])
    if not ambiguity.by_pair:
        out = np.linalg.norm(out, NORM.get(name, 1), axis=1)
    order = getattr(ambiguity, "order", 1)
    found = out.max(axis=-1) if order == math.inf else (out**order @ w) ** (1 / order)
    if ambiguity.key == ("l2", 2) and not ambiguity.by_pair:
        for s in np.flatnonzero(live.any(axis=1)):
            n, K = counts[used, s].sum(axis=-1).T, allowed[s].sum(axis=1)[:, None]  # (A, N)
            mask = live[s][:, None]
            share = delta / 2 / (live.any(axis=1).sum() if joint else 1)
            parts = [
                (np.where(mask, w * part / n, 0)).sum() for part in (1 - 1 / np.maximum(K, 1), 1)
            ]
            found[s] = min(found[s], math.sqrt(parts[0]) + math.sqrt(-math.log(share) * parts[1]))
    return found


@pytest.mark.parametrize("ambiguity", SETS, ids=lambda ambiguity: ambiguity.short)
@pytest.mark.parametrize("N", [1, 3])
def test_radii_of_a_model_are_those_of_its_rows(ambiguity, N):
    for seed in range(4):
        available = np.array([[1, 1], [1, 0], [1, 1], [1, 1]], bool) if seed % 2 else None
        model, counts = log_model(
            seed, N, sparse_=seed > 1, available=available, zeros=ambiguity.by_pair
        )
        for joint in (False, True):
            level = 1 - 10.0 ** -(1 + seed % 3)
            method = "log" if ambiguity.key[0] == "burg" else "row"
            found = radius.from_counts(model, ambiguity, level, joint=joint)
            np.testing.assert_allclose(
                found, by_hand(model, counts, ambiguity, 1 - level, joint, method), rtol=1e-9
            )
            assert (found[3] == 0).all()  # terminal
    drmdp.solve(model, ambiguity.with_radius(found))


def test_the_truth_is_in_the_set_as_often_as_promised():
    """All pairs at once, through the whole call."""
    rng, S, A, n = np.random.default_rng(0), 3, 2, 30
    truth = rng.dirichlet(np.ones(S), (S, A))
    for ambiguity in (replace(BURG, support="all"), Wasserstein(0, "l1", support="all")):
        missed = 0
        for _ in range(100):
            counts = np.array([[rng.multinomial(n, row) for row in rows] for rows in truth])
            model = drmdp.Model(counts / n, costs=np.zeros((S, A)), discount=0.5, counts=counts)
            r = radius.from_counts(model, ambiguity, 0.8, joint=True)
            y, nominal = truth[:, :, None], counts[:, :, None] / n
            if ambiguity.by_pair:
                y, nominal = y[:, :, None], nominal[:, :, None]
            missed += (ambiguity.apart(y, nominal, np.ones(1))[..., 0] > r).any()
        assert missed <= 20


def test_pairs_without_data_may_be_anything():
    model, _ = log_model(0, zeros=True)
    assert radius.from_counts(model, BURG)[0, 1] == 50
    assert radius.from_counts(model, replace(BURG, kind="tv"))[0, 1] == 1
    assert (
        radius.from_counts(model, Wasserstein(0, "l1", rectangular="sa", support="all"))[0, 1] == 2
    )
    message = (
        r"state 0, action 1 was never tried, and with rectangular='s' .*: take rectangular='sa'"
    )
    with pytest.raises(InputError, match=message):
        radius.from_counts(model, replace(BURG, rectangular="s"))


def test_value_needs_no_number_of_next_states():
    model, counts = log_model(1)
    r = radius.from_counts(model, BURG, 0.95, "value")
    np.testing.assert_allclose(r[:3], math.log(20) / counts[0].sum(axis=-1)[:3])
    assert Divergence.from_counts(model) == BURG.with_radius(r)
    joint = radius.from_counts(model, BURG, 0.95, "value", joint=True)
    np.testing.assert_allclose(joint[:3], math.log(20 * 6) / counts[0].sum(axis=-1)[:3])
    places = BURG.places(model)[:3]
    ratio = radius.from_counts(model, BURG, 0.95, "asymptotic")[:3] / r[:3]
    np.testing.assert_allclose(ratio, stats.chi2.isf(0.05, places - 1) / (2 * math.log(20)))


def test_kl_needs_a_centre_that_has_everything():
    model, counts = log_model(2)
    feared = Divergence(0, "kl", rectangular="sa")
    with pytest.raises(
        InputError, match=r"kl sa: no radius around the shares .*: take burg, or make the kernel"
    ):
        radius.from_counts(model, feared)
    n = counts[0].sum(axis=-1, keepdims=True)
    smooth = drmdp.Model(
        (counts[0] + 0.5) / (n + 2), costs=np.zeros((4, 2)), discount=0.9, counts=counts[0]
    )
    for method in ("row", "value", "asymptotic"):
        found = radius.from_counts(smooth, feared, method=method)
        want = [radii(method, "kl", counts[0, s, a], 0.05)[0] for s in range(4) for a in range(2)]
        np.testing.assert_allclose(found.ravel(), want, rtol=1e-9)
    with pytest.raises(InputError, match="is not the share of its counts"):
        radius.from_counts(smooth, BURG)


def test_what_was_not_seen_is_told():
    model, _ = log_model(3, most=4)
    with pytest.warns(
        drmdp.Notice, match=r"support='observed': state ., action . was seen to lead to"
    ):
        found = radius.from_counts(model, replace(BURG, support="observed"))
    assert np.array_equal(found, radius.from_counts(model, BURG))


LOG = {
    "state": [0, 0, 0, 1, 1, 1] * 30,
    "action": [0, 1, 0, 0, 1, 1] * 30,
    "next_state": ([0, 1, 1, 0, 0, 1] * 29 + [1, 0, 0, 1, 1, 0]),
    "place": ["a"] * 60 + ["b"] * 120,
    "cost": [1.0] * 180,
}


def test_kernels_that_share_data_are_no_counts():
    given = {"cost": "cost", "discount": 0.9}
    plain = drmdp.estimate(LOG, **given)
    for by in ("posterior", "bootstrap", "folds"):
        model = drmdp.estimate(LOG, by=by, n_kernels=5, **given)
        for ambiguity in (BURG, Wasserstein(0, support="all")):
            with pytest.raises(
                InputError, match=r"estimate one kernel of all data.*radius\.credible"
            ):
                radius.from_counts(model, ambiguity)
    pooled = drmdp.estimate(LOG, by="place", weights="counts", **given)
    np.testing.assert_allclose(
        radius.from_counts(pooled, BURG), radius.from_counts(plain, BURG), rtol=1e-12
    )
    groups = drmdp.estimate(LOG, by="place", **given)
    assert (radius.from_counts(groups, BURG) > radius.from_counts(plain, BURG)).all()
    with pytest.raises(
        InputError,
        match=r"method='value' is about one kernel .* has 2: estimate one kernel of all data",
    ):
        radius.from_counts(groups, BURG, method="value")


STUCK = Wasserstein(0, "transport", rectangular="sa", support="all", ground=sparse.eye_array(4) * 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m: radius.from_counts(m, Divergence(0, "chi2")),
            "chi2: no radius is known to suffice: .* take burg",
        ),
        (
            lambda m: radius.from_counts(m, drmdp.Reweighting(0.1)),
            "no mixture of kernels: take burg",
        ),
        (
            lambda m: radius.from_counts(m, Intervals.of(m)),
            r"drmdp\.Intervals\.from_counts makes them",
        ),
        (
            lambda m: radius.from_counts(m, Divergence(0, "burg", moves="events")),
            "moves='events': this model has no laws of events",
        ),
        (
            lambda m: radius.from_counts(m, Wasserstein(0, "transport", ground=("line", [0, 1]))),
            "ground: expected costs between 4 states, got 2",
        ),
        (lambda m: radius.from_counts(m, 0.1), r"expected a set such as drmdp\.Wasserstein"),
        (
            lambda m: radius.from_counts(m, BURG, method="wilson"),
            "method is 'row', 'log', 'value', 'asymptotic', or None, got 'wilson'",
        ),
        (
            lambda m: radius.from_counts(m, Divergence(0, "tv"), method="log"),
            "method='log': tv has 'row'; or take",
        ),
        (
            lambda m: radius.from_counts(m, BURG, level=1),
            "level: expected a number between 0 and 1, got 1.0",
        ),
        (
            lambda m: radius.from_counts(drmdp.instances.machine(5), BURG),
            r"model\.counts is None: drmdp\.estimate keeps",
        ),
        (lambda m: radius.sufficient(m, Divergence(0), 10), "kl: no radius around the shares"),
        (
            lambda m: radius.from_counts(m, STUCK),
            "ground: mass cannot move between some next states",
        ),
        (
            lambda m: Intervals.from_counts(m, level=0),
            r"level: expected a number between 0 and 1, got 0\.0",
        ),
        (
            lambda m: Intervals.from_counts(m, support="some"),
            "support is 'observed', 'state' or 'all', got 'some'",
        ),
        (
            lambda m: Intervals.from_counts([[[1.5, 1]], [[0, 1]]]),
            r"counts: state 0, action 0 has 1\.5, not a whole number of draws",
        ),
        (
            lambda m: Intervals.from_counts([[[1, -1]], [[0, 1]]]),
            r"state 0, action 0, next state 1 has -1\.0, expected a finite number",
        ),
        (lambda m: Intervals.from_counts(np.ones((2, 2))), r"counts: expected shape \(S, A, S\)"),
        (
            lambda m: Intervals.from_counts(sparse.eye_array(3, 2)),
            r"counts: table 0: expected a sparse matrix \(2, 2\), got \(3, 2\)",
        ),
        (lambda m: Intervals.from_counts(drmdp.instances.machine(5)), r"model\.counts is None"),
        (
            lambda m: Intervals.contaminated(m, 1.5),
            r"share: expected a number from 0 to 1, got 1\.5",
        ),
        (lambda m: Intervals.cvar(m, 0), "level: expected a share above 0"),
        (lambda m: Intervals.cvar(m, 0.5, -1), r"weight: expected a number from 0 to 1, got -1\.0"),
        (
            lambda m: radius.credible(m, BURG),
            "burg sa: expected a set around two or more posterior draws, got 1",
        ),
        (lambda m: radius.credible(m, BURG, 0), "level: expected a number between 0 and 1"),
    ],
)
def test_what_cannot_be_promised_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(log_model(0)[0])


def test_weighted_counts_prove_nothing():
    counts = np.array([[[1.5, 1.5]], [[0, 3]]])
    model = drmdp.Model(counts / 3, costs=np.zeros((2, 1)), discount=0.9, counts=counts)
    with pytest.raises(
        InputError,
        match=r"counts: state 0, action 0 has 1\.5, not a whole number of draws: .*'value'",
    ):
        radius.from_counts(model, BURG)
    assert radius.from_counts(model, BURG, method="value")[0, 0] == pytest.approx(math.log(20) / 3)


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize("support", ["state", "all", "observed"])
@pytest.mark.parametrize("joint", [False, True])
def test_intervals_of_counts_are_those_of_their_rows(support, joint):
    rng = np.random.default_rng(4)
    S, A = 5, 2
    counts = rng.poisson(rng.choice([0, 0.3, 4], (S, A, S)))
    counts[2, 0], counts[3] = 0, 0  # never tried, and never seen
    counts[4] = 0
    counts[4, :, 1] = 7  # always the same
    found = Intervals.from_counts(counts, 0.9, support=support, joint=joint)
    places = {
        "state": np.repeat((counts > 0).any(axis=1, keepdims=True), A, axis=1),
        "observed": counts > 0,
    }
    allowed = places.get(support, np.ones(counts.shape, bool)).copy()
    allowed[~allowed.any(axis=2)] = True
    delta = 0.1 / ((allowed.sum(axis=2) > 1).sum() if joint else 1)
    for s, a in np.ndindex(S, A):
        here, c = allowed[s, a], counts[s, a]
        low, high = np.zeros(S), np.zeros(S)
        if c.sum() == 0:
            high[here] = 1
        elif here.sum() == 1:
            low[here] = high[here] = 1
        else:
            low[here], high[here] = ends(c[here], delta)
        np.testing.assert_allclose(found.lower[s, a], low, atol=1e-9)
        np.testing.assert_allclose(found.upper[s, a], high, atol=1e-9)
    listed = Intervals.from_counts(
        sparse.csr_array(counts.reshape(S * A, S)), 0.9, support=support, joint=joint
    )
    assert sparse.issparse(listed.lower)
    assert listed == found
    n = counts.sum(axis=2, keepdims=True)
    rows = np.where(n > 0, counts / np.maximum(n, 1), 1 / S)
    model = drmdp.Model(
        rows,
        costs=rng.random((S, A)),
        discount=0.9,
        counts=counts,
        available=(n > 0)[..., 0] | True,
    )
    if support == "all":
        assert Intervals.from_counts(model, 0.9, support=support, joint=joint) == found
    assert drmdp.solve(model, found).gap < 1e-4


def test_rows_without_counts_may_be_anything_on_two_next_states_too():
    found = Intervals.from_counts([[[0, 0], [1, 1]], [[0, 2], [0, 0]]])
    assert found.lower[0, 0].tolist() == [0, 0]
    assert found.upper[0, 0].tolist() == [1, 1]
    assert found.upper[1, 1].tolist() == [0, 1]  # all that the state was seen to lead to


def test_intervals_of_a_model_leave_unavailable_pairs_out():
    available = np.array([[1, 1], [1, 0], [1, 1], [1, 1]], bool)
    model, counts = log_model(1, available=available)
    found = Intervals.from_counts(model)
    assert (found.upper[~model.available] == 0).all()
    counts = np.where(model.available[..., None], counts[0], 0)
    whole = Intervals.from_counts(counts)
    assert np.array_equal(found.upper[model.available], whole.upper[model.available])
    groups, counts = log_model(1, N=3, sparse_=True)
    found, added = Intervals.from_counts(groups), Intervals.from_counts(counts.sum(axis=0))
    assert sparse.issparse(found.upper)
    dense = found.upper.toarray().reshape(4, 2, 4)
    assert np.array_equal(dense[groups.available], added.upper[groups.available])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drmdp.solve(groups, found)


def worst(lower, upper, z):
    bounds = np.stack([lower, upper], axis=1)
    return -optimize.linprog(-z, A_eq=np.ones((1, z.size)), b_eq=[1.0], bounds=bounds).fun


@pytest.mark.parametrize("seed", range(8))
def test_contamination_and_nested_risk_by_their_definitions(seed):
    """max over q of (1 − ε) p·z + ε q·z; CVaR as min over t of t + E(z − t)⁺/α (Rockafellar,
    Uryasev), with and without the mean.
    """
    rng = np.random.default_rng(seed)
    S, A, N = 5, 2, 3
    kernels = rng.dirichlet(np.full(S, 0.4), (N, S, A))
    kernels = np.where(kernels < 0.03, 0, kernels)
    kernels /= kernels.sum(axis=-1, keepdims=True)
    given = [sparse.csr_array(k.reshape(S * A, S)) for k in kernels] if seed % 2 else kernels
    sign = "rewards" if seed % 3 == 0 else "costs"
    model = drmdp.Model(
        given, **{sign: rng.random((S, A))}, discount=0.9, weights=rng.dirichlet(np.ones(N))
    )
    p = np.einsum("i,isat->sat", model.weights, kernels)
    v = rng.normal(size=S)
    z = (1 if sign == "costs" else -1) * model.discount * v
    costs = np.asarray(model.costs if sign == "costs" else -np.asarray(model.rewards))
    share, level, weight = rng.uniform(0.01, 1, 3)

    def step(ambiguity):
        return (1 if sign == "costs" else -1) * drmdp.bellman(model, ambiguity, v).value

    for support, allowed in (
        ("all", np.ones(p.shape, bool)),
        ("observed", p > 0),
        ("state", np.repeat((p > 0).any(axis=1, keepdims=True), A, axis=1)),
    ):
        q = costs + (1 - share) * p @ z + share * np.where(allowed, z, -np.inf).max(axis=2)
        np.testing.assert_allclose(
            step(Intervals.contaminated(model, share, support)), q.min(axis=1), atol=1e-9
        )

    def cvar(row):
        return min(t + row @ np.maximum(z - t, 0) / level for t in z[row > 0])

    risk = np.array([[cvar(p[s, a]) for a in range(A)] for s in range(S)])
    np.testing.assert_allclose(
        step(Intervals.cvar(model, level)), (costs + risk).min(axis=1), atol=1e-9
    )
    mixed = costs + (1 - weight) * p @ z + weight * risk
    np.testing.assert_allclose(
        step(Intervals.cvar(model, level, weight)), mixed.min(axis=1), atol=1e-9
    )
    s = seed % S
    by_program = worst(np.zeros(S), np.minimum(p[s, 0] / level, 1), z)
    assert risk[s, 0] == pytest.approx(by_program, abs=1e-8)
    np.testing.assert_allclose(
        step(Intervals.cvar(model, 1)), (costs + p @ z).min(axis=1), atol=1e-12
    )
    np.testing.assert_allclose(
        step(Intervals.contaminated(model, 0)), (costs + p @ z).min(axis=1), atol=1e-12
    )


# ---------------------------------------------------------------------- posterior draws


DRAWS = [
    Divergence(0, "tv", rectangular="sa"),
    Divergence(0, "kl"),
    Divergence(0, "burg", rectangular="sa", support="all"),
    Wasserstein(0, "l1"),
    Wasserstein(0, "l2", rectangular="sa"),
    Wasserstein(0, "l2"),
    Wasserstein(0, "linf"),
    Wasserstein(0, "transport", rectangular="sa", ground=("line", [0.0, 1.0, 3.0])),
]


@pytest.mark.parametrize("ambiguity", DRAWS, ids=lambda ambiguity: ambiguity.short)
@pytest.mark.parametrize("N", [20, 120])
def test_credible_radii_hold_their_share_of_the_draws(ambiguity, N):
    rng = np.random.default_rng(N)
    S, A = 3, 2
    if ambiguity.ground is not None if isinstance(ambiguity, Wasserstein) else False:
        N = min(N, 20)  # linear programs
    kernels = rng.dirichlet(rng.integers(1, 9, S), (N, S, A))
    weights = rng.dirichlet(np.full(N, 5.0))
    available = np.array([[1, 1], [1, 0], [0, 0]], bool)
    model = drmdp.Model(
        kernels,
        costs=np.zeros((S, A)),
        discount=0.5,
        weights=weights,
        available=available,
        terminal=[2],
    )
    found = radius.credible(model, ambiguity, 0.8)
    around_mean = isinstance(ambiguity, Divergence) or ambiguity.key in (
        ("l1", 1),
        ("transport", 1),
    )
    for s in range(S):
        groups = (
            [[a] for a in range(A)]
            if ambiguity.by_pair
            else [[a for a in range(A) if available[s, a]]]
        )
        for group in groups:
            r = found[s, group[0]] if ambiguity.by_pair else found[s]
            if not group or not available[s, group].all():
                assert r == 0
                continue
            far = np.zeros(N)
            for j in range(N):
                w = np.where((np.arange(N) == j) & (N < 100), 0, weights)
                w = w / w.sum()
                y, around = (
                    kernels[j, s, group],
                    kernels[:, s, group].swapaxes(0, 1),
                )  # (A', S), (A', N, S)
                if around_mean:
                    around, w = np.einsum("i,aik->ak", w, around)[:, None], np.ones(1)
                far[j] = ambiguity.apart(np.broadcast_to(y[:, None], around.shape), around, w).max()
            assert weights[far <= r * (1 + 1e-9)].sum() >= 0.8 - 1e-12
            assert weights[far < r * (1 - 1e-9)].sum() < 0.8
    drmdp.solve(model, ambiguity.with_radius(found))


def test_draws_that_lack_a_next_state_have_no_burg_radius():
    kernels = np.array([[[[0.5, 0.5]], [[0, 1]]], [[[1, 0]], [[0, 1]]], [[[0.2, 0.8]], [[0, 1]]]])
    model = drmdp.Model(kernels, costs=np.zeros((2, 1)), discount=0.5)
    with pytest.raises(
        InputError, match=r"burg sa: state 0: no radius holds 0\.9 of the draws: some draws lack"
    ):
        radius.credible(model, BURG)
    assert radius.credible(model, replace(BURG, kind="tv"))[0, 0] > 0.3
