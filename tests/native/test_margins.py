"""Bounds hold of the operator to the last bit, on the scale of its rounding, and would not without
their margins.

One kernel and one action, so that F(v) at a state is the largest value of a row near another: by
its formula, or by a root, in 300 bits.
"""

import math
import re
import sys
import warnings
from fractions import Fraction
from functools import partial
from itertools import chain, product
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy import sparse
from test_builds import V3, built

import drmdp
import recorded
from drmdp import _native
from drmdp.certificate import compressed
from drmdp.criteria import discounted
from drmdp.layout.layout import lay_out
from drmdp.operators.exact import ExactOperator
from rounding import biased, swallowed, uneven

mpmath.mp.prec = 300
SIZES = (3, 10, 30)


def moved(y, z, mass):
    """The mass of the lowest stakes goes to the highest."""
    order = sorted(range(len(y)), key=lambda j: z[j])
    value, top = mpmath.fdot(y, z), max(z)
    for j in order:
        part = min(mass, y[j])
        value, mass = value + part * (top - z[j]), mass - part
    return value


def boxed(y, z, r):
    """As much as allowed on the highest stakes."""
    low, high = [max(p - r, mpf(0)) for p in y], [min(p + r, mpf(1)) for p in y]
    left, value = 1 - mpmath.fsum(low), mpmath.fdot(low, z)
    for j in sorted(range(len(y)), key=lambda j: -z[j]):
        part = min(left, high[j] - low[j])
        value, left = value + part * z[j], left - part
    return value


def straight(y, z, r, size):
    """Along the stakes, as long as nothing becomes negative; `size` is of a row's own measure."""
    inside, step = size(y, z)
    assert min(p + r * d for p, d in zip(y, step, strict=True)) >= 0
    return mpmath.fdot(y, z) + r * inside


def by_l2(y, z):
    mean = mpmath.fsum(z) / len(z)
    far = mpmath.sqrt(mpmath.fsum((x - mean) ** 2 for x in z))
    return far, [(x - mean) / far for x in z]


def by_chi2(y, z):
    mean = mpmath.fdot(y, z)
    far = mpmath.sqrt(mpmath.fsum(p * (x - mean) ** 2 for p, x in zip(y, z, strict=True)))
    return far, [p * (x - mean) / far for p, x in zip(y, z, strict=True)]


def tilted(y, z, r, row, cost, low, high):
    """The row of a parameter at which its cost is r."""

    def off(t):
        return mpmath.fsum(map(cost, row(y, z, mpmath.exp(t)), y)) - r

    a, b = mpf(low), mpf(high)
    for _ in range(12):
        middle = (a + b) / 2
        a, b = (middle, b) if off(middle) < 0 else (a, middle)
    t = mpmath.findroot(off, (a, b), solver="secant", tol=1e-120)
    assert a <= t <= b
    return mpmath.fdot(row(y, z, mpmath.exp(t)), z)


def scaled(x):
    total = mpmath.fsum(x)
    return [p / total for p in x]


def by_kl(y, z, t):
    return scaled([p * mpmath.exp(t * (x - max(z))) for p, x in zip(y, z, strict=True)])


def by_burg(y, z, t):
    return scaled([p / (1 + t * (max(z) - x)) for p, x in zip(y, z, strict=True)])


SETS = {
    "l1": (lambda m, r: drmdp.Wasserstein(r, "l1", 1), lambda y, z, r: moved(y, z, r / 2)),
    **{
        f"l1-{order:g}": (
            lambda m, r, order=order: drmdp.Wasserstein(r, "l1", order),
            lambda y, z, r: moved(y, z, r / 2),
        )
        for order in (1.5, np.inf)
    },
    "tv": (lambda m, r: drmdp.Divergence(r, "tv"), moved),
    **{
        f"transport-{order:g}": (
            lambda m, r, order=order: drmdp.Wasserstein(
                r, "transport", order, ground=1 - np.eye(m.n_states)
            ),
            moved,
        )
        for order in (1, np.inf)
    },
    **{
        f"linf-{order:g}": (lambda m, r, order=order: drmdp.Wasserstein(r, "linf", order), boxed)
        for order in (1, 2, np.inf)
    },
    "intervals": (lambda m, r: drmdp.Intervals.of(m, r), boxed),
    **{
        f"l2-{order:g}": (
            lambda m, r, order=order: drmdp.Wasserstein(r / m.n_states, "l2", order),
            lambda y, z, r: straight(y, z, mpf(float(r) / len(y)), by_l2),
        )
        for order in (1, 1.5, 2, 3, np.inf)
    },
    "chi2": (
        lambda m, r: drmdp.Divergence(r / 10, "chi2"),
        lambda y, z, r: straight(y, z, mpmath.sqrt(mpf(float(r) / 10)), by_chi2),
    ),
    "kl": (
        lambda m, r: drmdp.Divergence(r, "kl"),
        lambda y, z, r: tilted(y, z, r, by_kl, lambda q, p: q * mpmath.log(q / p), -20, 20),
    ),
    "burg": (
        lambda m, r: drmdp.Divergence(r, "burg"),
        lambda y, z, r: tilted(y, z, r, by_burg, lambda q, p: p * mpmath.log(p / q), -20, 20),
    ),
}


def false_bounds(name, n):
    """How many lower and upper bounds of the states of n models a size are false; nature cannot
    move in every other model.
    """
    make, largest = SETS[name]
    lower = upper = 0
    for seed in range(n):
        for size in SIZES:
            rng = np.random.default_rng([seed, size])
            kernel = (0.2 + rng.random((1, size, 1, size))) / size
            kernel /= kernel.sum(axis=-1, keepdims=True)
            costs, discount, radius = (
                rng.normal(size=(size, 1)),
                0.9,
                0.0 if seed % 2 else 0.02 * float(rng.random()),
            )
            model, value = (
                drmdp.Model(kernel, costs=costs, discount=discount),
                10 * rng.normal(size=size),
            )
            ambiguity = make(model, radius).fitted(model)
            operator = ExactOperator(model, ambiguity, 1)
            operator.update(value, 0, size)
            update = operator.update(value, 0, size)
            found = compressed.derive(
                ambiguity, lay_out(model, ambiguity), value, update.policy, update.claim, False
            )
            for s in range(size):
                row = [Fraction(p) for p in kernel[0, s, 0].tolist()]
                y = [mpf(p.numerator) / p.denominator for p in (q / sum(row) for q in row)]
                z = [mpf(costs[s, 0]) + mpf(discount) * mpf(v) for v in value.tolist()]
                exact = largest(y, z, mpf(radius)) if radius else mpmath.fdot(y, z)
                assert abs(exact - found.low[s]) < 1e-9 * 100
                lower, upper = lower + (found.low[s] > exact), upper + (found.high[s] < exact)
    return lower, upper


@pytest.mark.parametrize("name", SETS)
def test_bounds_hold_to_the_last_bit(name):
    assert false_bounds(name, 2) == (0, 0)


def test_rows_of_many_tiny_entries_that_round_up():
    """The mass of a row was added up one by one, and what a row costs was too small by as much."""
    K, left = 100_000, mpf("0.001")
    row = np.full(K, 0.3 * np.spacing(0.999))
    row[0], row[-1] = 0.4, 0.0
    row[-1] = 1 - math.fsum(row)
    bad = mpf(row[-1]) / total(row)
    model = one_state(row[None, None], np.where(np.arange(K) < K - 1, 0.0, -1.0))
    for kind in ("kl", "chi2", "burg"):
        r = float(COSTS[kind](left, bad) + COSTS[kind](1 - left, 1 - bad))
        low, high = proof_of(model, drmdp.Divergence(r, kind, around="kernels"))()
        assert low <= two_levels(kind, bad, mpf(r)) <= high


# ---------------------------------------------------------------------- without margins

JUDGE = Path(__file__).parents[2] / "native" / "judge"
MARGINS = [
    (path.name, number)
    for path in sorted(JUDGE.rglob("*.hpp"))
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if re.search(r"(?<![:\w])EPSILON", line.split("//")[0]) and "#define" not in line
]
"""Files and lines."""
EPS = 2.0**-52


@pytest.fixture(scope="module")
def module():
    """The build of which margins can be switched off; it stands for the module here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its classes are known already
        own = recorded.loaded(built("g++", V3, "-DDRMDP_MARGINS"))
    places = [
        part
        for name, part in sys.modules.items()
        if name.startswith("drmdp") and vars(part).get("_native") is _native
    ]
    with pytest.MonkeyPatch.context() as patch:
        for place in places:
            patch.setattr(place, "_native", own)
        yield own


def one_state(rows, stakes, weights=None):
    """State 0 of a model whose other states are terminal: rows (N, A, K), stakes (K,) or (A, K)."""
    _, A, K = rows.shape
    where, shape = (np.repeat(np.arange(A), K), np.tile(np.arange(K), A)), (K * A, K)
    costs = sparse.csr_array((np.broadcast_to(stakes, (A, K)).ravel(), where), shape=shape)
    kernels = [sparse.csr_array((row.ravel(), where), shape=shape) for row in rows]
    return drmdp.Model(
        kernels, costs=costs, discount=0.5, terminal=np.arange(K) > 0, weights=weights
    )


def proof_of(
    model,
    ambiguity,
    policy=None,
    value=None,
    change=lambda layout: layout,
    played=None,
    claimed=None,
):
    """What proves bounds of state 0 when it is called; `played` and `claimed` are claimed instead
    of what is found.
    """
    ambiguity, S = ambiguity.fitted(model), model.n_states
    value = np.zeros(S) if value is None else value
    operator = ExactOperator(model, ambiguity, 1)
    for _ in range(2):
        update = (
            operator.update(value, 0, S)
            if policy is None
            else operator.evaluate(value, policy, 0, S)
        )
    layout, x = change(lay_out(model, ambiguity)), update.policy if policy is None else policy
    x, claim = x if played is None else np.array(played), update.claim
    if claimed is not None:
        claim.by_kernel[0] = claimed

    def prove():
        found = compressed.derive(ambiguity, layout, value, x, claim, policy is not None)
        return found.low[0], found.high[0]

    return prove


def total(numbers):
    return mpmath.fsum(map(mpf, numbers.tolist()))


COSTS = {
    "kl": lambda q, p: q * mpmath.log(q / p),
    "burg": lambda q, p: p * mpmath.log(p / q),
    "chi2": lambda q, p: (q - p) ** 2 / p,
    "tv": lambda q, p: abs(q - p) / 2,
}


def two_levels(kind, bad, r):
    """The value where the stakes are −1, with the mass `bad`, and 0."""
    low, high = mpf(10) ** -40, bad
    for _ in range(320 if r else 0):
        middle = (low + high) / 2
        spent = COSTS[kind](middle, bad) + COSTS[kind](1 - middle, 1 - bad)
        low, high = (middle, high) if spent > r else (low, middle)
    return -high


def means_off(sign):
    """The mean kernel was made before, and may be off by 4 (K + N + 4) ε."""
    for K in (2, 64, 400):
        stakes, row = (
            np.where(np.arange(K) % 2, -1.0, 0.0),
            0.5 + np.random.default_rng(K).random(K),
        )
        row /= row.sum()
        model, bad = one_state(row[None, None], stakes), total(row[1::2]) / total(row)
        factor = 1 + sign * 3.9 * (K + 5) * EPS * np.where(stakes == 0, 1, -1)
        off = partial(
            proof_of,
            model,
            change=lambda layout, factor=factor: layout._replace(mean=layout.mean * factor),
        )
        for kind, r in product(COSTS, (0.0, 1e-6, 0.3)):
            yield off(drmdp.Divergence(r, kind)), two_levels(kind, bad, mpf(r))
        yield off(drmdp.Wasserstein(0.0, "l2", 1.5)), -bad
        for r in (0.0, 0.1):
            yield off(drmdp.Wasserstein(r, "transport", 1, ground=1 - np.eye(K))), mpf(r) - bad
    two = one_state(np.stack([row, row])[None], np.stack([stakes + 1e-9, stakes]))
    both = np.tile(factor, 2)
    yield (
        proof_of(
            two,
            drmdp.Divergence(0.0, "kl"),
            change=lambda own: own._replace(mean=own.mean * both),
            played=np.tile([1.0, 0.0], (K, 1)),
        ),
        -bad,
    )


def certain_rows(sign):
    """Costs and values of any size, next states known: nothing but the scale."""
    for seed in range(100):
        rng = np.random.default_rng([seed, sign + 1])
        kernels, following = np.zeros((1, 6, 3, 6)), rng.integers(6, size=(6, 3))
        np.put_along_axis(kernels[0], following[:, :, None], 1.0, axis=2)
        costs, value, x = (
            10 * rng.normal(size=(6, 3)),
            100 * rng.normal(size=6),
            rng.dirichlet(np.ones(3), size=6),
        )
        each = [
            mpf(c) + mpf(0.9) * mpf(v) for c, v in zip(costs[0], value[following[0]], strict=True)
        ]
        exact = mpmath.fdot(map(mpf, x[0].tolist()), each) / total(x[0])
        yield (
            proof_of(
                drmdp.Model(kernels, costs=costs, discount=0.9),
                drmdp.Divergence(0.0, "kl"),
                x,
                value,
            ),
            exact,
        )


def many_actions(sign):
    """Costs of 20 000 actions added up; of most a part is lost, or counted twice."""
    x, stakes = swallowed(20_000, 0.5, 0.5 + 0.01 * sign)[None], np.ones((20_000, 1))
    stakes[-1] = 0
    exact = mpmath.fdot(map(mpf, x[0].tolist()), map(mpf, stakes[:, 0].tolist())) / total(x[0])
    yield (
        proof_of(one_state(np.ones((1, 20_000, 1)), stakes), drmdp.Divergence(0.0, "kl"), x),
        exact,
    )


def many_kernels(sign):
    """Weights whose sum is off when it is added up; every other kernel is the bad one."""
    for seed in range(1, 3):
        w = 0.5 * biased(np.random.default_rng([seed, 3000]), 3000, sign)
        w[-1] = 1 - float(np.sum(w[:-1]))
        rows = np.zeros((3000, 1, 2))
        rows[np.arange(3000), 0, np.arange(3000) % 2] = 1
        model, bad = one_state(rows, np.array([0.0, -1.0]), w), total(w[1::2]) / total(w)
        yield proof_of(model, drmdp.Reweighting(0.3, "tv")), two_levels("tv", bad, mpf(0.3))
        for level in (0.9, 0.5, 0.2):
            exact = -max(mpf(0), 1 - (1 - bad) / mpf(level))
            yield proof_of(model, drmdp.Reweighting(kind="cvar", level=level)), exact


def long_rows(sign):
    """Rows whose sums are off when they are added up."""
    stakes = np.where(np.arange(20_000) % 2, -1.0, 0.0)
    row = 0.5 * uneven(np.random.default_rng(20_000), 20_000, sign, stakes)
    row[-2:] = 0
    rest = 1 - math.fsum(row)
    row[-2:] = rest / 4, rest - rest / 4
    model, bad = one_state(row[None, None], stakes), total(row[1::2]) / total(row)
    yield proof_of(model, drmdp.Intervals.of(model, 0.0)), -bad
    yield proof_of(model, drmdp.Reweighting(0.1, "tv")), -bad


def boxed_groups(y, u, n, r):
    """As `boxed`, where n entries are y and u."""
    low, high = [max(p - r, mpf(0)) for p in y], [min(p + r, mpf(1)) for p in y]
    left = 1 - mpmath.fdot(low, n)
    value = mpmath.fsum(a * b * c for a, b, c in zip(low, u, n, strict=True))
    for j in sorted(range(len(y)), key=lambda j: -u[j]):
        part = min(left, n[j] * (high[j] - low[j]))
        value, left = value + part * u[j], left - part
    return value


def swallowed_rows(sign):
    """Entries that are lost when a row is added up in blocks, or counted twice; stakes of the
    first, of those and of the last.
    """
    K = 100_000
    for first, part, u in (
        (0.5, 0.49, (-1.0, 0.0, 0.0)),
        (0.5, 0.49, (-1.0, -1.0, 0.0)),
        (0.9995, 0.51, (-1.0, 0.0, 0.0)),
    ):
        row, n, stakes = swallowed(K, first, part / 64), (1, K - 2, 1), np.full(K, u[1])
        stakes[0], stakes[-1] = u[0], u[2]
        model, whole = one_state(row[None, None], stakes), total(row)
        y = [mpf(p) for p in (row[0], row[1], row[-1])]
        bad = -mpmath.fsum(a * b * c for a, b, c in zip(y, u, n, strict=True)) / whole
        if first > 0.9:
            yield (
                proof_of(model, drmdp.Divergence(1e-9, "kl", around="kernels")),
                two_levels("kl", bad, mpf(1e-9)),
            )
            continue
        for r in (0.0, 1e-3):
            yield proof_of(model, drmdp.Wasserstein(r, "l1", 1.5)), mpf(r) / 2 - bad
            for order in (1, np.inf):
                exact = boxed_groups([p / whole for p in y], u, n, mpf(r))
                yield proof_of(model, drmdp.Wasserstein(r, "linf", order)), exact
        yield proof_of(model, drmdp.Intervals.of(model, 0.0)), boxed_groups(y, u, n, mpf(0))
        yield proof_of(model, drmdp.Reweighting(0.1, "kl")), -bad
        for order in (2, np.inf):
            yield (
                proof_of(model, drmdp.Wasserstein(1e-3, "l2", order)),
                l2_groups(y, u, n, whole, mpf(1e-3)),
            )


def l2_groups(y, u, n, whole, r):
    """The largest value within r of a row of three groups of entries, by the multiplier at which it
    is as far as that.
    """
    y = [p / whole for p in y]

    def row(t):
        order = sorted(range(3), key=lambda j: -(y[j] + t * u[j]))
        for k in (1, 2, 3):
            tau = (mpmath.fsum(n[j] * (y[j] + t * u[j]) for j in order[:k]) - 1) / sum(
                n[j] for j in order[:k]
            )
            if k == 3 or y[order[k]] + t * u[order[k]] <= tau:
                return [max(y[j] + t * u[j] - tau, mpf(0)) for j in range(3)]

    low, high = mpf(0), mpf(1e6)
    for _ in range(320):
        middle = (low + high) / 2
        far = mpmath.sqrt(mpmath.fsum(n[j] * (z - y[j]) ** 2 for j, z in enumerate(row(middle))))
        low, high = (middle, high) if far < r else (low, middle)
    return mpmath.fsum(n[j] * z * u[j] for j, z in enumerate(row(low)))


def swallowed_weights(sign):
    """The same for the weights of kernels of one entry each: −1 where a kernel is bad."""
    N = 2000
    for first, part, (a, b, c) in (
        (0.5, 0.49, (1, 1, 0)),
        (0.5, 0.49, (0, 0, 1)),
        (0.5, 0.51, (1, 1, 0)),
        (0.96, 0.51, (0, 0, 1)),
    ):
        w, bad = swallowed(N, first, part), np.full(N, b)
        bad[0], bad[-1] = a, c
        rows = np.zeros((N, 1, 2))
        rows[np.arange(N), 0, bad] = 1
        model, lost = one_state(rows, np.array([0.0, -1.0]), w), total(w[bad == 1]) / total(w)
        for r in (0.0, 0.1):
            yield proof_of(model, drmdp.Wasserstein(r, "l1", np.inf)), -lost * (1 - mpf(r) / 2)
        for kind in ("kl", "tv"):
            yield proof_of(model, drmdp.Reweighting(0.0, kind)), -lost
        yield (
            proof_of(model, drmdp.Reweighting(kind="cvar", level=0.9)),
            -max(mpf(0), 1 - (1 - lost) / mpf(0.9)),
        )
    w = swallowed(N, 0.899, 0.51)
    rows[:, 0] = 1, 0
    rows[-1, 0] = 0, 1
    z, least = w / 0.9, 1 - (1 - mpf(w[-1]) / total(w)) / mpf(0.9)
    z[-1] = float(least) - 0.9 * (float(np.add.accumulate(z[:-1])[-1]) - math.fsum(z[:-1]))
    model = one_state(rows, np.array([0.0, -1.0]), w)
    yield proof_of(model, drmdp.Reweighting(kind="cvar", level=0.9), claimed=z), -least


def handed_out(sign):
    """A mass that is handed out in equal parts, each of which is rounded the same way."""
    K, r = 65_536, 6.488773049831544e-06
    stakes = np.where(np.arange(K) % 2, -1.0, -0.85)
    stakes[0] = 0
    exact = boxed_groups(
        [mpf(1) / K] * 3, (mpf(0), mpf(-0.85), mpf(-1)), (1, K // 2 - 1, K // 2), mpf(r)
    )
    yield (
        proof_of(one_state(np.full((1, 1, K), 1 / K), stakes), drmdp.Wasserstein(r, "linf", 2)),
        exact,
    )


def prices_far_apart(sign):
    """A norm of prices to which the largest one adds nothing, but is what all are divided by before
    powers are taken.
    """
    model = one_state(np.full((2, 1, 2), 0.5), np.array([0.0, -1.0]), np.array([1e-300, 1.0]))
    for high in np.logspace(85, 98, 40) * (1 + 0.1 * sign):
        ambiguity = drmdp.Wasserstein(0.9, "l1", 1.51)
        yield proof_of(model, ambiguity, claimed=np.array([high, 0.5])), mpf(0.9) / 2 - mpf(0.5)


CASES = (
    means_off,
    certain_rows,
    many_actions,
    many_kernels,
    long_rows,
    swallowed_rows,
    swallowed_weights,
    handed_out,
    prices_far_apart,
)


@pytest.mark.builds
def test_margins_are_needed_one_by_one(module):
    needed = set()
    cases = [case(sign) for case in CASES for sign in (-1, 1)]
    for prove, exact in chain(*cases):
        module.judge_without("no file", 0)
        low, high = prove()
        assert low <= exact <= high
        assert high - low < 1e-8 * (1 + abs(exact))
        for margin in set(MARGINS) - needed:
            module.judge_without(*margin)
            low, high = prove()
            if not low <= exact <= high:
                needed.add(margin)
    module.judge_without("no file", 0)
    assert not set(MARGINS) - needed, "margins without which all bounds hold"


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_bounds_from_steps_hold_and_would_not_without_their_margin(side, monkeypatch):
    rng = np.random.default_rng(0)
    value, step = rng.normal(size=(2, 1000))
    further, terminal = float(rng.normal()), np.zeros(1000, dtype=bool)

    def holds():
        found = discounted._bound(
            value, step, step, terminal, abs(further), further, side * np.inf, side
        )
        return all(
            side * Fraction(x) >= side * (Fraction(v) + Fraction(d) + Fraction(further))
            for x, v, d in zip(*map(np.ndarray.tolist, (found, value, step)), strict=True)
        )

    assert holds()
    monkeypatch.setattr(discounted, "EPS", 0.0)
    assert not holds()


@pytest.mark.builds
@pytest.mark.parametrize("name", SETS)
def test_margins_are_needed(name, module):
    module.judge_without("*", 0)
    lower, upper = false_bounds(name, 2)
    module.judge_without("no file", 0)
    assert lower > 0
    assert upper > 0
