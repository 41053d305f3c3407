"""Rule E is true in fractions, and exact where values are equal."""

from fractions import Fraction

import numpy as np

from drmdp.certificate import plateau
from drmdp.core.storage import over_rows


def exact(rows, value, s):
    """Σ y v − v(s) for rows that count as divided by their sum."""
    return sum(
        Fraction(y) * (Fraction(v) - Fraction(value[s]))
        for y, v in zip(rows, value.tolist(), strict=True)
    )


def test_extremes_of_rows():
    indptr, indices, value = np.array([0, 2, 2, 3]), np.array([0, 2, 1]), np.array([3.0, 1.0, 2.0])
    assert plateau.tops(indptr, indices, value).tolist() == [3.0, -np.inf, 1.0]
    assert over_rows(np.minimum, value[indices], indptr, np.inf).tolist() == [2.0, np.inf, 1.0]


def test_by_kernel_is_never_wrong_and_sees_ties():
    rng, told, tied = np.random.default_rng(0), 0, 0
    for _ in range(400):
        S, N = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        value = rng.choice([0.1, 0.3, 0.3 + 2.0**-54, 0.7, 1 / 3], S)
        rows = rng.dirichlet(np.ones(S), N) * (rng.random((N, S)) < 0.6)
        s = np.array([rng.integers(S)])
        for side in (1, -1):
            fine = plateau.by_kernel(np.array([0, S]), np.arange(S), rows, value, s, side)[0]
            true = all(side * exact(row, value, s[0]) <= 0 for row in rows.tolist())
            assert true or not fine
            level = (np.where(rows > 0, value == value[s], True)).all()
            assert fine or not level
            told, tied = told + fine, tied + level
    assert told > tied > 5


def test_a_rise_by_one_ulp_is_seen():
    value = np.array([0.3, np.nextafter(0.3, 1), 0.1])
    indptr, indices = np.array([0, 2]), np.array([0, 1])
    assert plateau.tops(indptr, indices, value)[0] > value[0]
    assert not plateau.by_kernel(indptr, indices, np.array([[0.5, 0.5]]), value, np.array([0]))[0]
