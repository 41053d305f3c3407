"""Directories opened without being read, range by range, and written block by block."""

import json
import os
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from test_formats import MODELS, same

import drmdp
from drmdp import InputError, Model, instances
from drmdp.core import storage
from drmdp.core.names import StoredNames
from drmdp.formats import Writer
from drmdp.formats.directory import files, open_stored
from drmdp.model import state_ranges


def large(n=40, **more):
    """Make a model of n states with names, terminal states and unavailable actions, which is larger
    than a block.
    """
    y = instances.perturb(
        instances.garnet(n, 3, branching=4, seed=2, sparse=True), 4, same_support=True
    ).kernels
    available = np.arange(n * 3).reshape(n, 3) % 5 != 0
    given = {
        "states": [f"s{s}" for s in range(n)],
        "terminal": [f"s{n - 1}"],
        "available": available,
    }
    return Model(y, **{"costs": np.arange(3.0 * n).reshape(n, 3), "discount": 0.9} | given | more)


@pytest.fixture
def path(tmp_path):
    """A directory with a large model."""
    drmdp.write(large(), tmp_path / "m.drmdp")
    return tmp_path / "m.drmdp"


def poke(path, name, where, value):
    """Change one number of an array on the disk."""
    array = np.lib.format.open_memmap(path / f"{name}.npy", mode="r+")
    array[where] = value
    array.flush()
    del array


# ---------------------------------------------------------------------- ranges


def test_the_head_of_a_directory_is_that_of_the_model(path):
    found, model = open_stored(path), large()
    for name in (
        "n_kernels",
        "n_states",
        "n_actions",
        "discount",
        "maximise",
        "is_sparse",
        "dtype",
        "costs",
        "notes",
    ):
        assert getattr(found.head, name) == getattr(model.head, name)
    assert list(found.head.weights) == list(model.weights)
    assert list(found.states) == list(model.states)


@pytest.mark.parametrize(
    "name", ["strings", "mixed", "terminal", "unknown rewards", "sparse rewards", "listed rewards"]
)
@pytest.mark.parametrize("cuts", [[], [1], [2, 3]], ids=str)
def test_ranges_are_the_states_of_the_model_and_give_its_fingerprint(
    name, cuts, tmp_path, monkeypatch
):
    monkeypatch.setattr(state_ranges, "BLOCK", 2)
    model = MODELS[name]
    drmdp.write(model, tmp_path / "m.drmdp")
    found = open_stored(tmp_path / "m.drmdp")
    digests = []
    for lo, hi in pairwise([0, *cuts, model.n_states]):
        part, own = found.read(lo, hi), model.span(lo, hi)
        np.testing.assert_array_equal(part.blocks.dense(0, hi - lo), own.blocks.dense(0, hi - lo))
        for field in ("costs", "available", "terminal", "initial"):
            np.testing.assert_array_equal(getattr(part, field), getattr(own, field))
        assert list(part.names) == list(own.names)
        digests += state_ranges.digests(found, lo, hi)
    assert state_ranges.fingerprint(found.head, digests) == Model.fingerprint.func(model)


def test_opening_takes_the_same_memory_whatever_the_number_of_states(tmp_path):
    peaks = []
    for n in (1000, 50_000):
        drmdp.write(instances.garnet(n, 2, branching=3, sparse=True), tmp_path / f"{n}.drmdp")
        open_stored(tmp_path / f"{n}.drmdp")
        tracemalloc.start()
        found = open_stored(tmp_path / f"{n}.drmdp")
        found.read(100, 110)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 40_000  # less than a byte for each of the other states


AT = int(large().blocks.indptr[35 * 3 + 2])
DAMAGE = {
    "probability": (
        "data",
        4 * AT,
        np.nan,
        "kernels: probabilities must be finite: kernel 0, state 's35'",
    ),
    "negative": (
        "data",
        4 * AT,
        -0.1,
        "kernels: probabilities must not be negative: kernel 0, state 's35'",
    ),
    "sum": ("data", 4 * AT, 0.999, "kernels: kernel 0, state 's35', action 2 sums to "),
    "cost": ("costs", (35, 1), np.inf, "costs must be finite: state 's35', action 1 has inf"),
    "closed": (
        "costs",
        (35, 0),
        1.0,
        "costs: state 's35', action 0 is not available but costs something",
    ),
    "column": (
        "indices",
        AT,
        77,
        f"indices: state 's35', action 2, entry {AT} is 77, expected ascending states below 40",
    ),
    "pointer": (
        "indptr",
        36 * 3,
        3,
        "indptr: expected ascending numbers from 0 to 372 at state 's35', action 2",
    ),
    "stuck": ("available", 35, False, "state 's35' has no available action"),
    "rows": (
        "terminal",
        35,
        True,
        "kernels: state 's35', action 1 is not available but has stored rows",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_by_whoever_reads_its_range_and_by_nobody_else(kind, path):
    name, where, value, message = DAMAGE[kind]
    poke(path, name, where, value)
    found = open_stored(path)
    found.read(0, 34)
    for read in (lambda: found.read(30, 40), found.model, lambda: drmdp.read(path)):
        with pytest.raises(InputError) as caught:
            read()
        assert message in str(caught.value)


def test_a_row_that_rounding_does_not_explain_is_refused_and_scaled_on_request(path):
    poke(path, "data", slice(0, 3), np.load(path / "data.npy")[:3] * (1 + 1e-10))
    with pytest.raises(
        InputError,
        match=r"kernel 0, state 's0', action 1 sums to 1.0000000000.*; normalize=True scales",
    ):
        drmdp.read(path)
    model = drmdp.read(path, normalize=True)
    np.testing.assert_allclose(model.blocks.data, large().blocks.data, rtol=1e-9)
    drmdp.write(model, path)
    same(drmdp.read(path), model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"shape": [4, 40, 2]},
            "indptr: expected shape (81,) for N, S, A = 4, 40, 2 and 372 next states, got (121,)",
        ),
        ({"shape": [5, 40, 3]}, "weights: expected a list of 5 numbers"),
        ({"shape": [10**30, 40, 3]}, "weights: expected a list of 1"),
        ({"maximise": 1}, "maximise: expected true or false, got 1"),
        ({"weights": [1, 1, 1, 1]}, "weights must sum to 1"),
        ({"discount": 2}, "discount: expected a number in [0, 1], got 2"),
        ({"actions": ["a", "a", "b"]}, "actions: the name 'a' is given twice"),
        ({"colour": 1}, "model.json: unknown entry 'colour'"),
        ({"format": "drmdp directory 3"}, "made by hand or by an older version"),
    ],
)
def test_heads_that_do_not_fit_are_refused(change, message, path):
    index = json.loads((path / "model.json").read_text())
    (path / "model.json").write_text(json.dumps(index | change))
    with pytest.raises(InputError) as caught:
        open_stored(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


# ---------------------------------------------------------------------- names


NAMES = ["", "ö", "\ud800", 'quo"te', "line\nfeed", 7, -(10**38), "7", "\0"]


def named(names):
    return Model(
        [np.eye(len(names))[:, None]], costs=np.ones((len(names), 1)), discount=0.5, states=names
    )


def test_names_come_back_one_by_one(tmp_path):
    drmdp.write(named(NAMES), tmp_path / "m.drmdp")
    found = drmdp.read(tmp_path / "m.drmdp").states
    assert isinstance(found, StoredNames)
    assert found == NAMES == list(found) == [found[k] for k in range(len(NAMES))]
    assert (tuple(NAMES), found[-1], found[2:4]) == (found, NAMES[-1], NAMES[2:4])
    assert (found != NAMES[:-1], found != [*NAMES[:-1], "x"], found.index(7)) == (True, True, 5)
    assert drmdp.read(tmp_path / "m.drmdp") == named(NAMES)


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [
        ("states", 0, 0x20),
        ("states", 2, 0xFF),
        ("states", 2, 0x5B),
        ("states_ends", 1, 0),
        ("states_ends", 3, 99),
        ("states", 3, 0x0A),
    ],
)
def test_damaged_names_are_refused(name, where, value, tmp_path):
    drmdp.write(named(["", "ö", "x"]), tmp_path / "m.drmdp")
    poke(tmp_path / "m.drmdp", name, where, value)
    with pytest.raises(InputError, match=r"m.drmdp: states: "):
        drmdp.read(tmp_path / "m.drmdp")


# ---------------------------------------------------------------------- writing block by block


def appended(model, path, step, dtype=np.float64):
    """Write a model by its public parts, `step` states at a time."""
    S, A = model.n_states, model.n_actions
    kinds = {
        "discount": model.discount,
        "weights": model.weights,
        "actions": model.actions,
        "notes": model.notes,
    }
    kinds["kernel_names"] = model.kernel_names
    matrices = model.kernels
    costs = (0.0 - model.costs) if model.maximise else model.costs
    with Writer(
        path, n_states=S, n_actions=A, n_kernels=model.n_kernels, dtype=dtype, **kinds
    ) as writer:
        for lo in range(0, S, step):
            hi = min(lo + step, S)
            rows = slice(lo * A, hi * A)
            own = {
                "rewards" if model.maximise else "costs": costs[
                    rows if costs.shape[0] == S * A else slice(lo, hi)
                ]
            }
            part = [matrix[rows] for matrix in matrices] if model.is_sparse else matrices[:, lo:hi]
            if not isinstance(model.states, range):
                own["states"] = model.states[lo:hi]
            flags = {"available": model.available[lo:hi], "terminal": model.terminal[lo:hi]}
            writer.append(part, initial=model.initial[lo:hi], **flags, **own)
    return drmdp.read(path)


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize("name", MODELS)
def test_any_blocks_make_the_same_model(name, step, tmp_path):
    model = MODELS[name]
    if name == "stored zeros":
        return  # which matrices and arrays do not show
    same(appended(model, tmp_path / "m.drmdp", step), model)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_stored_in_the_dtype_that_is_asked_for(dtype, tmp_path):
    same(appended(large(), tmp_path / "m.drmdp", 7, dtype), large(dtype=dtype))


def start(path, **more):
    return Writer(path, **{"n_states": 4, "n_actions": 2, "n_kernels": 1, "discount": 0.5} | more)


ROWS = np.full((1, 2, 2, 4), 0.25)
BLOCKS = {
    "sum": ({"kernels": ROWS * 0.99}, "kernels: kernel 0, state 2, action 0 sums to 0.99, not 1"),
    "negative": (
        {"kernels": -ROWS},
        "kernels: probabilities must not be negative: kernel 0, state 2, action 0",
    ),
    "named": (
        {"kernels": ROWS * 2, "states": ["c", "d"]},
        "kernels: kernel 0, state 'c', action 0 sums to 2.0",
    ),
    "shape": (
        {"kernels": ROWS[:, :, :, :3]},
        "kernels: expected those of n states for N, S, A = 1, 4, 2, got shape (1, 2, 2, 3)",
    ),
    "actions": ({"kernels": np.full((1, 4, 1, 4), 0.25)}, "kernels: expected those of n states"),
    "many": ({"kernels": np.full((1, 3, 2, 4), 0.25)}, "5 states, but n_states is 4"),
    "costs": ({"costs": [[1, 2], [np.nan, 1]]}, "costs must be finite: state 3, action 0 has nan"),
    "both": ({"rewards": np.ones((2, 2))}, "give exactly one of costs and rewards, got both"),
    "stuck": (
        {"available": np.array([[True, True], [False, False]])},
        "state 3 has no available action",
    ),
    "initial": ({"initial": [0.5, -0.5]}, "initial: state 3 has -0.5, expected a probability"),
    "start": ({"initial": [0.5, 0.5]}, "initial: not as in the blocks before state 2"),
    "dimensions": (
        {"costs": np.ones((2, 2, 4))},
        "the dimensions of the costs: not as in the blocks before state 2",
    ),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_bad_block_is_refused_and_the_next_one_taken(kind, tmp_path):
    change, message = BLOCKS[kind]
    with start(tmp_path / "m.drmdp") as writer:
        writer.append(ROWS, costs=np.ones((2, 2)))
        with pytest.raises(InputError) as caught:
            writer.append(**{"kernels": ROWS, "costs": np.ones((2, 2))} | change)
        assert message in str(caught.value)
        writer.append(ROWS, costs=np.ones((2, 2)))
    assert drmdp.read(tmp_path / "m.drmdp").n_states == 4


def test_nothing_is_left_of_a_writer_that_failed_or_ended_early(tmp_path):
    with (
        pytest.raises(InputError, match=r"2 states were written, but n_states is 4"),
        start(tmp_path / "m.drmdp") as writer,
    ):
        writer.append(ROWS, costs=np.ones((2, 2)))
    with pytest.raises(ZeroDivisionError), start(tmp_path / "m.drmdp") as writer:
        writer.append(ROWS, costs=np.ones((2, 2)) / (1 // 0))
    with pytest.raises(InputError, match="the writer was closed"):
        writer.append(ROWS, costs=np.ones((2, 2)))
    for names, masses, message in (
        (["a", "b"], [0.25, 0.25], "'a' is given twice"),
        (["c", "d"], [0.5, 0.5], "sum to 1"),
    ):
        writer = start(tmp_path / "m.drmdp")
        writer.append(ROWS, costs=np.ones((2, 2)), states=["b", "a"], initial=[0.25, 0.25])
        writer.append(ROWS, costs=np.ones((2, 2)), states=names, initial=masses)
        with pytest.raises(InputError, match=message):
            writer.close()
    assert not os.listdir(tmp_path)


def test_what_is_written_does_not_look_like_a_model_before_its_end(tmp_path):
    with start(tmp_path / "m.drmdp") as writer:
        writer.append(ROWS, costs=np.ones((2, 2)))
        (hidden,) = os.listdir(tmp_path)
        assert hidden.startswith(".m.drmdp.")
        with pytest.raises(InputError, match=r"model.json: missing"):
            drmdp.read(tmp_path / hidden, "drmdp")
        writer.append(ROWS, costs=np.ones((2, 2)))
    assert os.listdir(tmp_path) == ["m.drmdp"]


def test_rows_and_masses_that_rounding_put_out_are_scaled(tmp_path):
    with start(tmp_path / "m.drmdp") as writer:
        for _ in range(2):
            writer.append(
                ROWS * (1 + 1e-10), costs=np.ones((2, 2)), initial=np.full(2, 0.25 + 1e-11)
            )
    model = drmdp.read(tmp_path / "m.drmdp")
    assert model.notes == ("8 rows renormalised; the largest deviation from 1 was 1.0e-10",)
    assert abs(model.blocks.sums() - 1).max() < storage.rounding(4)
    assert model.initial.sum() == pytest.approx(1, abs=1e-15)


def test_equal_hashes_of_different_names_are_no_clash(tmp_path, monkeypatch):
    monkeypatch.setattr(files.texts, "key", lambda _: 7)
    drmdp.write(large(), tmp_path / "m.drmdp")
    assert list(drmdp.read(tmp_path / "m.drmdp").states) == [f"s{s}" for s in range(40)]
