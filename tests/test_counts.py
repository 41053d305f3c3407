"""Counts of transitions: what a model keeps of the data behind it, everywhere it goes, without a
change of the decision problem.
"""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

import drmdp
import drmdp_check
from drmdp.errors import InputError
from drmdp.model import changed

KERNELS = np.array(
    [[[[0.5, 0.5], [1, 0]], [[0, 1], [1, 0]]], [[[0.25, 0.75], [1, 0]], [[0, 1], [1, 0]]]]
)  # (2, 2, 2, 2)
COUNTS = np.array([[[[2, 2], [1, 0]], [[0, 3], [0, 0]]], [[[1, 3], [4, 0]], [[0, 1], [2.5, 0]]]])
PAIRS = [[8, 5], [4, 2.5]]


def model(counts=COUNTS, listed=False, **given):
    own = {"states": ["new", "old"], "actions": ["run", "stop"], "kernel_names": ["a", "b"]} | given
    kernels = [sparse.csr_array(kernel.reshape(4, 2)) for kernel in KERNELS] if listed else KERNELS
    return drmdp.Model(kernels, costs=[[0.0, 1], [2, 3]], discount=0.9, counts=counts, **own)


def plain(counts):
    """Counts as one array, (S, A, S) or (N, S, A, S)."""
    if isinstance(counts, list):
        return np.array([table.toarray().reshape(2, 2, 2) for table in counts])
    return counts.toarray().reshape(2, 2, 2) if sparse.issparse(counts) else counts


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("counts", [COUNTS, COUNTS.sum(axis=0)], ids=["by kernel", "together"])
def test_a_model_gives_its_counts_back(counts, listed):
    given = counts
    if listed:
        tables = [sparse.coo_array(table.reshape(4, 2)) for table in counts.reshape(-1, 2, 2, 2)]
        given = tables if counts.ndim == 4 else tables[0]
    found = model(given, listed)
    assert np.array_equal(plain(found.counts), counts)
    assert isinstance(
        found.counts,
        list if listed and counts.ndim == 4 else sparse.csr_array if listed else np.ndarray,
    )
    assert found.pair_counts.tolist() == PAIRS
    assert not found.pair_counts.flags.writeable
    assert found == model(None, listed)
    assert found.fingerprint == model(None, listed).fingerprint
    assert "counts of 19.5 transitions" in repr(found)
    again = changed(found, start="as 3 episodes began")
    for other in (
        pickle.loads(pickle.dumps(again)),
        copy.deepcopy(again),
        again.astype("float32"),
        changed(again, discount=0.5),
    ):
        assert np.array_equal(plain(other.counts), counts)
        assert other.start == "as 3 episodes began"


def test_counts_that_are_unknown():
    assert model(None).counts is None
    assert model(None).pair_counts is None
    assert model().start is None


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (
            np.where(COUNTS == 2.5, -1, COUNTS),
            "counts: kernel 'b', state 'old', action 'stop', next state 'new' has -1.0",
        ),
        (
            np.where(COUNTS == 3, np.nan, COUNTS)[0],
            "counts: state 'old', action 'run', next state 'old' has nan",
        ),
        (
            np.where(COUNTS == 4, np.inf, COUNTS),
            "kernel 'b', state 'new', action 'stop', next state 'new' has inf",
        ),
        (
            COUNTS[:, :1],
            r"expected shape \(S, A, S\) = \(2, 2, 2\), or \(N, S, A, S\).*, got \(2, 1, 2, 2\)",
        ),
        (
            np.concatenate([COUNTS, COUNTS]),
            "expected those of 2 kernels, or of all together, got 4",
        ),
        ([[1, 2], [3, 4]], r"got \(2, 2\)"),
        ("many", "counts: expected an array of numbers"),
        (
            [sparse.csr_array(COUNTS[0].reshape(4, 2)), 3],
            r"counts: table 1: expected a sparse matrix \(4, 2\), got \(\)",
        ),
        (
            [sparse.csr_array((3, 2))],
            r"counts: table 0: expected a sparse matrix \(4, 2\), got \(3, 2\)",
        ),
    ],
)
def test_wrong_counts_are_refused_with_their_place(counts, message):
    with pytest.raises(InputError, match=message):
        model(counts)


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(
    "counts", [COUNTS, COUNTS[0], 0 * COUNTS[0]], ids=["by kernel", "together", "nothing seen"]
)
@pytest.mark.parametrize("name", ["m.npz", "m.drmdp"])
def test_our_files_keep_counts_and_where_the_start_is_from(tmp_path, name, counts, listed):
    closed = {"available": [[True, False], [True, True]], "initial": [0.25, 0.75]}
    given = changed(model(counts, listed, **closed), start="as 4 episodes began")
    path = tmp_path / name
    drmdp.write(given, path)
    for found in (drmdp.read(path), drmdp.read(path, normalize=True)):
        assert found == given
        assert np.array_equal(plain(found.counts), plain(given.counts))
        assert found.start == given.start
    drmdp.write(drmdp.read(path), tmp_path / f"again.{name}")
    assert np.array_equal(plain(drmdp.read(tmp_path / f"again.{name}").counts), plain(given.counts))
    drmdp.write(model(None, listed), path)
    assert drmdp.read(path).counts is None


def test_counts_written_in_blocks(tmp_path):
    path = tmp_path / "walk.drmdp"
    with drmdp.formats.Writer(path, n_states=4, n_actions=1, n_kernels=2, discount=0.9) as writer:
        for lo in (0, 2):
            step = np.zeros((2, 2, 1, 4))
            step[:, [0, 1], 0, [lo, lo + 1]] = 1
            writer.append(step, costs=np.ones((2, 1)), counts=(lo + 1) * step)
    found = drmdp.read(path)
    assert found.counts.shape == (2, 4, 1, 4)
    assert found.pair_counts.tolist() == [[2], [2], [6], [6]]
    wanted = pytest.raises(InputError, match="counts: not as in the blocks before state 2")
    with wanted, drmdp.formats.Writer(path, n_states=4, n_actions=1, discount=0.9) as writer:
        writer.append(step[:1], costs=np.ones((2, 1)))
        writer.append(step[:1], costs=np.ones((2, 1)), counts=step[:1])


def test_arrays_of_counts_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    drmdp.write(model(), path)
    good = dict(np.load(path))
    for name, value, message in (
        ("counts_data", None, "counts_data: missing"),
        (
            "counts_data",
            -good["counts_data"],
            "counts: kernel 'a', state 'new', action 'run', next state 'new' has -2.0",
        ),
        ("counts_data", good["counts_data"][1:], "counts_indices, data: expected"),
        ("counts_indices", good["counts_indices"] + 9, "counts_indices: entry 0 is 9"),
        (
            "counts_indptr",
            good["counts_indptr"][:-1],
            "counts_indptr: expected 5 ascending numbers",
        ),
    ):
        np.savez(
            path, **{key: own for key, own in (good | {name: value}).items() if own is not None}
        )
        with pytest.raises(InputError, match=message):
            drmdp.read(path)
    drmdp.write(model(), tmp_path / "m.drmdp")
    (tmp_path / "m.drmdp" / "counts_indices.npy").unlink()
    with pytest.raises(InputError, match="counts_indices: missing"):
        drmdp.read(tmp_path / "m.drmdp")


def test_stacked_models_keep_counts():
    one, two = model(), model(2 * COUNTS)
    assert np.array_equal(drmdp.stack([one, two]).counts, np.concatenate([COUNTS, 2 * COUNTS]))
    both = drmdp.stack([one, model(COUNTS[0])])  # of two kernels together: nobody knows whose
    assert np.array_equal(both.counts, COUNTS.sum(axis=0) + COUNTS[0])
    assert both.pair_counts.sum() == COUNTS.sum() + COUNTS[0].sum()
    assert drmdp.stack([one, model(None)]).counts is None
    listed = drmdp.stack([model(listed=True), one])
    assert np.array_equal(plain(listed.counts), np.concatenate([COUNTS, COUNTS]))
    began = [changed(one, start="as they began"), changed(two, start="as they began")]
    assert drmdp.stack(began).start == "as they began"
    assert drmdp.stack([began[0], one]).start is None


def test_a_table_of_events_keeps_where_its_start_is_from(tmp_path):
    def transition(s, a, e):
        return np.minimum(s + e, 3), 1.0 * s

    events = drmdp.Model.from_events(4, 1, 2, transition, [[0.5, 0.5]], discount=0.5)
    assert events.counts is None
    drmdp.write(changed(events, start="as 2 episodes began"), tmp_path / "e.drmdp")
    assert drmdp.read(tmp_path / "e.drmdp").start == "as 2 episodes began"
    assert drmdp.read(tmp_path / "e.drmdp").stored().start == "as 2 episodes began"


@pytest.mark.parametrize("name", ["m.npz", "m.drmdp"])
def test_proofs_do_not_look_at_counts(tmp_path, name):
    drmdp.write(changed(model(), start="as 4 episodes began"), tmp_path / name)
    drmdp.solve(model(None), drmdp.Wasserstein(0.1)).proof(tmp_path / "p.proof")
    assert not list(drmdp_check.check(tmp_path / "p.proof", tmp_path / name).failures())
