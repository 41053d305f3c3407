"""Kernels as they are stored: in pieces, in float32, with sums that are 1 up to rounding. What
large models go through, on small ones.
"""

from fractions import Fraction

import numpy as np
import pytest

import drmdp
from drmdp.core import compact as rows
from drmdp.core import storage
from drmdp.sets import PAIRS

S, A, N = 7, 2, 3
EPS = np.finfo(float).eps


def kernels(seed=0):
    """Rows of which many have zeros."""
    rng = np.random.default_rng(seed)
    y = (
        rng.dirichlet(np.ones(S), (N, S, A)) * (rng.random((N, S, A, S)) < 0.7)
        + 0.1 * np.eye(S)[:, None]
    )
    return y / y.sum(axis=3, keepdims=True)


def model(y, **given):
    return drmdp.Model(y, costs=np.arange(S * A, dtype=float).reshape(S, A), discount=0.9, **given)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("piece", [1, 4, 5, 12, 41])
def test_a_model_does_not_depend_on_the_pieces_it_is_gone_through(piece, normalize, monkeypatch):
    y = kernels()
    y[:, ::2] *= 1 + np.random.default_rng(1).uniform(
        -1e-10, 1e-10, (N, (S + 1) // 2, A, 1)
    )  # to be divided out
    whole = model(y, normalize=normalize)
    monkeypatch.setattr(storage, "PIECE", piece)
    parts = model(y, normalize=normalize)
    assert len(list(parts.blocks.pieces())) > 1
    assert parts == whole
    assert parts.notes == whole.notes
    assert "renormalised" in whole.notes[0]
    np.testing.assert_array_equal(parts.mean, whole.mean)


@pytest.mark.parametrize(
    ("entry", "message"), [(2.0, "sums to"), (-2.0, "not be negative"), (np.nan, "be finite")]
)
def test_a_wrong_row_is_named_in_whatever_piece_it_is(entry, message, monkeypatch):
    monkeypatch.setattr(storage, "PIECE", 5)
    for i, s, a in np.ndindex(N, S, A):
        y = kernels()
        y[i, s, a, 3] += entry
        with pytest.raises(drmdp.InputError, match=message) as told:
            model(y)
        assert f"kernel {i}, state {s}, action {a}" in str(told.value)


@pytest.mark.parametrize("n", [1, 3, 40])
@pytest.mark.parametrize("excess", [-40, -3, 3, 40])
def test_rows_are_kept_only_if_rounding_explains_their_sums(n, excess):
    """The certificate supposes that a row of n numbers sums to 1 up to 2 (n + 2) ε, or was divided
    by its sum.
    """
    rng = np.random.default_rng(n)
    y = rng.dirichlet(np.ones(n), (1, n, 1)) * (1 + excess * 2 * (n + 2) * EPS)
    found = drmdp.Model(y, costs=np.zeros((n, 1)), discount=0.5)
    for row in found.kernels[0, :, 0]:
        assert abs(sum(map(Fraction, row.tolist())) - 1) <= Fraction(2 * (n + 2) * EPS)
    y = rng.dirichlet(np.ones(n), (1, n, 1))
    np.testing.assert_array_equal(drmdp.Model(y, costs=np.zeros((n, 1)), discount=0.5).kernels, y)


@pytest.mark.parametrize("support", ["all", "observed"])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_the_saturation_of_float32_rows_is_that_of_the_rows_they_stand_for(pair, support):
    single = model(kernels()).astype("float32")
    double = model(single.kernels)
    ambiguity = drmdp.Wasserstein(0, *pair, support)
    np.testing.assert_allclose(
        ambiguity.saturation(single), ambiguity.saturation(double), rtol=4e-16
    )


def parts():
    """What is stored of a sparse kernel with unlisted states."""
    given = {
        name: np.zeros(0, dtype=np.float64 if rows.KINDS[name] == "f" else np.int32)
        for name in rows.STORED
    }
    ptr = np.arange(S * A + 1, dtype=np.int64)
    states, u = np.arange(S, dtype=np.int32), np.linspace(0, -1, S)
    each = np.ones(S * A)
    return given | {
        "entry_ptr": 0 * ptr,
        "prefix_ptr": ptr,
        "prefix_length": np.full(S * A, S, dtype=np.int32),
        "prefix_slope": 0 * each,
        "prefix_level": each / S,
        "states": states,
        "u": u,
    }


def test_a_stored_kernel_may_reach_all_states_and_no_further():
    found = np.asarray(rows.restored(S, A, parts()))
    np.testing.assert_allclose(found, 1 / S, rtol=1e-15)
    for bad in (S + 1, -1):
        given = parts()
        given["prefix_length"][3] = bad
        with pytest.raises(ValueError, match=r"kernel\.prefix_length is out of range"):
            rows.restored(S, A, given)


def test_the_first_wrong_column_is_found_wherever_blocks_end(monkeypatch):
    rng = np.random.default_rng(0)
    for block in (1, 2, 7):
        monkeypatch.setattr(storage, "ENTRIES", block)
        for _ in range(500):
            rows = [
                np.sort(rng.choice(6, rng.integers(4), replace=False))
                for _ in range(rng.integers(1, 6))
            ]
            indptr = np.append(0, np.cumsum([row.size for row in rows]))
            indices = np.concatenate(rows).astype(np.int32)
            if indices.size and rng.random() < 0.6:
                indices[rng.integers(indices.size)] = rng.integers(-1, 8)
            starts = set(indptr.tolist())
            wrong = [
                k
                for k, column in enumerate(indices)
                if not 0 <= column < 6 or (k not in starts and column <= indices[k - 1])
            ]
            assert storage.wrong_column(indptr, indices, 6) == (wrong[0] if wrong else -1)
