"""Model files: exact round trips, strangers' files, and every kind of damage."""

import enum
import io
import json
import os
import re
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import drmdp
from cases import cases
from drmdp import InputError, Model, formats, instances
from drmdp.core.storage import Kernels
from drmdp.formats import _fields
from drmdp.formats.directory import files as directory_files
from drmdp.formats.directory import stored as _stored

SUFFIXES = ("npz", "drmdp")


# ---------------------------------------------------------------------- models of every kind


def rows(seed, *shape):
    """Distributions with some zeros, (*shape,)."""
    y = np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), shape[:-1])
    y[y < 0.2] = 0
    y[..., 0] += y.sum(axis=-1) == 0
    return y / y.sum(axis=-1, keepdims=True)


def unseen(kernels, seed=1):
    """Next-state costs that are unknown where no kernel has mass, (S, A, S)."""
    costs = np.random.default_rng(seed).normal(size=kernels.shape[1:])
    costs[(kernels == 0).all(axis=0)] = np.nan
    return costs


def matrices(kernels):
    S = kernels.shape[-1]
    return [sparse.csr_array(kernel.reshape(-1, S)) for kernel in kernels]


def variety():
    """Name and model of everything that a file has to hold."""
    y = rows(0, 3, 4, 2, 4)
    c = np.random.default_rng(2).normal(size=(4, 2))
    listed = sparse.csr_array(np.nan_to_num(unseen(y)).reshape(8, 4))
    closed = np.array([[True, False], [True, True], [False, True], [True, True]])
    garbage = np.where(closed[:, :, None], y, np.nan)
    sparse_y = matrices(y)
    yield "dense", Model(y, costs=c, discount=0.9)
    yield "one kernel", Model(y[0], costs=c, discount=0.9)
    yield "one state", Model(np.ones((1, 1, 1)), costs=[0.0], discount=0.0)
    yield "state costs", Model(y, costs=c[:, 0], discount=0.5)
    yield "rewards", Model(y, rewards=np.where(c > 0, c, 0), discount=0.9)
    yield (
        "next-state costs",
        Model(y, costs=np.random.default_rng(3).random((4, 2, 4)), discount=0.9),
    )
    yield "unknown costs", Model(y, costs=unseen(y), discount=0.9)
    yield "unknown rewards", Model(y, rewards=unseen(y), discount=0.9)
    yield (
        "weights",
        Model(y, costs=c, discount=0.9, weights=[0.5, 0.0, 0.5], initial=[0.1, 0.2, 0.3, 0.4]),
    )
    yield "unavailable", Model(garbage, costs=c, discount=0.9, available=closed)
    yield (
        "terminal",
        Model(
            garbage, rewards=c, discount=0.9, available=closed, terminal=[True, False, False, True]
        ),
    )
    yield "only terminal", Model(y, costs=c, discount=0.9, terminal=np.ones(4, dtype=bool))
    yield (
        "only terminal, sparse",
        Model(sparse_y, costs=c, discount=0.9, terminal=np.ones(4, dtype=bool)),
    )
    yield (
        "strings",
        Model(y, costs=c, discount=0.9, states=["", "ünï", "😀", "[red]"], actions=["a b", "a\nb"]),
    )
    yield "integers", Model(y, costs=c, discount=0.9, states=[-5, 2**63 - 1, 0, 7], actions=[1, 0])
    yield (
        "mixed",
        Model(y, costs=c, discount=0.9, states=["1", 1, 10**30, "nul\0"], actions=[2, "1"]),
    )
    yield "large integers", Model(y, costs=c, discount=0.9, states=[2**63, -(2**63), 2**100, 0])
    yield "trailing nul", Model(y, costs=c, discount=0.9, states=["a\0", "a", "b", "c"])
    yield "surrogate", Model(y, costs=c, discount=0.9, states=["\ud800", "b", "c", "d"])
    yield "float32", Model(y.astype(np.float32), costs=c.astype(np.float32), discount=0.9)
    yield "rounded", Model(y * (1 + 5e-10), costs=c, discount=0.9)
    yield (
        "kernel names",
        Model(y, costs=c, discount=0.9, kernel_names=["Press-01", "Press-02", "Press-03"]),
    )
    yield (
        "mixed kernel names",
        Model(sparse_y, costs=c, discount=0.9, kernel_names=[2019, "2019", "nul\0"]),
    )
    yield (
        "notes",
        Model(
            y,
            costs=c,
            discount=0.9,
            notes=["7 rows pooled", "ünï", "nul\0"],
            states=["a", "b", "c", "d"],
        ),
    )
    yield "zeros", Model(y, costs=np.array([[0.0, -0.0]] * 4), discount=0.9)
    yield "sparse", Model(sparse_y, costs=c, discount=0.9)
    yield (
        "sparse rewards",
        Model(sparse_y, rewards=c, discount=0.9, available=closed, actions=["x", "y"]),
    )
    yield "listed costs", Model(sparse_y, costs=listed, discount=0.9)
    yield "listed rewards", Model(sparse_y, rewards=listed, discount=0.9, terminal=[1, 2])
    yield "dense, listed costs", Model(y, costs=listed, discount=0.9)
    # as many stored columns as states: costs by state and costs by column have the same shape
    shift = sparse.csr_array(np.roll(np.eye(4), 1, axis=1))
    yield "deterministic", Model([shift], costs=np.arange(4.0), discount=0.9)
    yield "deterministic, listed costs", Model([shift], costs=shift * 3, discount=0.9)
    full = Model(y, costs=c, discount=0.9).blocks
    padded = Kernels(
        4,
        2,
        3,
        np.arange(0, 33, 4),
        np.tile(np.arange(4, dtype=np.int32), 8),
        np.ascontiguousarray(y.transpose(1, 2, 0, 3)).ravel(),
        is_sparse=False,
    )
    assert padded.indices.size > full.indices.size
    yield "stored zeros", Model(padded, costs=c, discount=0.9)
    for family, make in instances.FAMILIES.items():
        sizes = {"n_actions": 3} if family == "garnet" else {}
        yield family, make(9, **sizes)
        yield f"{family}, sparse", make(9, **sizes, sparse=True)


MODELS = dict(variety())


def same(a, b):
    """Assert that two models agree in everything, bit by bit."""
    assert a == b
    assert (a.is_sparse, a.maximise) == (b.is_sparse, b.maximise)
    for kind in ("states", "actions", "kernel_names", "notes"):
        assert repr(list(getattr(a, kind))) == repr(list(getattr(b, kind)))
    for name in ("indptr", "indices", "data"):
        x, y = getattr(a.blocks, name), getattr(b.blocks, name)
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    dense = [m.costs.toarray() if sparse.issparse(m.costs) else m.costs for m in (a, b)]
    assert dense[0].tobytes() == dense[1].tobytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", MODELS)
def test_round_trip_is_exact(name, suffix, tmp_path):
    path = tmp_path / f"model.{suffix}"
    drmdp.write(MODELS[name], path)
    found = drmdp.read(path)
    same(found, MODELS[name])
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip_of_the_operators_cases(suffix, tmp_path):
    for case in cases(("l2", 2), 40):
        drmdp.write(case.model, tmp_path / f"model.{suffix}")
        same(drmdp.read(tmp_path / f"model.{suffix}"), case.model)


def test_a_solution_of_the_reread_model_has_the_same_fingerprint(tmp_path):
    drmdp.write(instances.machine(5), tmp_path / "m.drmdp")
    solution = drmdp.solve(drmdp.read(tmp_path / "m.drmdp"), drmdp.Wasserstein(0.1, support="all"))
    assert solution.fingerprint == instances.machine(5).fingerprint


def test_names_that_are_not_plain_come_back_as_texts(tmp_path):
    kind = enum.IntEnum("Kind", ["good", "bad"])
    model = Model(rows(0, 1, 2, 1, 2), costs=[1.0, 2.0], discount=0.5, states=list(kind))
    for suffix in SUFFIXES:
        drmdp.write(model, tmp_path / f"m.{suffix}")
        again = drmdp.read(tmp_path / f"m.{suffix}")
        assert list(again.states) == ["<Kind.good: 1>", "<Kind.bad: 2>"]
        assert again == model


# ---------------------------------------------------------------------- what the files are


def test_a_dense_file_is_plain_arrays(tmp_path):
    model = MODELS["terminal"]
    drmdp.write(model, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as stored:
        want = {
            "format",
            "kernels",
            "rewards",
            "discount",
            "weights",
            "initial",
            "available",
            "terminal",
        }
        assert set(stored) == want
        np.testing.assert_array_equal(stored["kernels"], model.kernels)
        np.testing.assert_array_equal(stored["rewards"], -model.costs)
        assert stored["discount"] == 0.9


def test_large_dense_models_are_written_compressed(tmp_path, monkeypatch):
    monkeypatch.setattr(_fields, "PLAIN_ENTRIES", 100)
    drmdp.write(instances.machine(8), tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        assert "kernels" not in stored
    same(drmdp.read(tmp_path / "m.npz"), instances.machine(8))


def stranger(**changes):
    """Arrays of a plain model as someone else might save it; None leaves one out."""
    y = rows(0, 3, 4, 2, 4)
    arrays = {"kernels": y, "costs": np.arange(8.0).reshape(4, 2), "discount": 0.9} | changes
    return {name: array for name, array in arrays.items() if array is not None}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kernels": rows(0, 3, 4, 2, 4)[0]},
        {"kernels": np.asfortranarray(rows(0, 3, 4, 2, 4))},
        {"kernels": rows(0, 3, 4, 2, 4).astype(">f8"), "discount": np.float32(0.5)},
        {"kernels": rows(0, 3, 4, 2, 4).astype(np.float32)},
        {"kernels": np.eye(4, dtype=np.int8)[:, None, :], "costs": np.arange(4)},
        {"costs": None, "rewards": np.ones((4, 2, 4))},
        {"states": np.array(list("abcd")), "actions": np.array([5, 7], dtype=np.uint8)},
        {"states": json.dumps(["a", 1, "b", 2])},
        {"weights": [0.2, 0.3, 0.5], "terminal": np.array([True, False, False, False])},
    ],
    ids=lambda changes: ",".join(changes) or "bare",
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_of_strangers_are_read(changes, save, tmp_path):
    arrays = stranger(**changes)
    save(tmp_path / "m.npz", **arrays)
    names = {
        name: json.loads(arrays.pop(name))
        for name in ("states",)
        if isinstance(arrays.get(name), str)
    }
    same(drmdp.read(str(tmp_path / "m.npz")), Model(**arrays, **names))


def test_probabilities_of_a_directory_stay_on_disk(tmp_path):
    drmdp.write(instances.grid(2500, n_kernels=20, sparse=True), tmp_path / "m.drmdp")
    tracemalloc.start()
    model = drmdp.read(tmp_path / "m.drmdp")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for array in (model.blocks.data, model.costs):
        while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
            array = array.base
        assert isinstance(array, np.memmap)
    for name in ("data", "indices", "indptr"):
        assert not getattr(model.blocks, name).flags.writeable
    assert peak < model.blocks.data.nbytes  # 13 MB; what is made on the way is smaller


def test_a_model_can_be_written_over_the_directory_it_is_mapped_from(tmp_path):
    path = tmp_path / "m.drmdp"
    drmdp.write(MODELS["sparse"], path)
    model = drmdp.read(path)
    drmdp.write(model, path)
    same(drmdp.read(path), MODELS["sparse"])
    same(model, MODELS["sparse"])
    assert os.listdir(tmp_path) == ["m.drmdp"]


def test_a_link_to_a_directory_stays_one(tmp_path):
    drmdp.write(MODELS["sparse"], tmp_path / "m.drmdp")
    (tmp_path / "link").symlink_to("m.drmdp")
    drmdp.write(MODELS["dense"], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    same(drmdp.read(tmp_path / "m.drmdp"), MODELS["dense"])


# ---------------------------------------------------------------------- choosing a format


def test_the_path_chooses_the_format(tmp_path):
    model = MODELS["dense"]
    (tmp_path / "empty").mkdir()
    for path in ("a.npz", "a.NPZ", "a.drmdp", "b/", "empty"):
        drmdp.write(model, os.path.join(tmp_path, path))
        assert (tmp_path / path).is_file() == path.lower().endswith("npz")
        same(drmdp.read(os.path.join(tmp_path, path)), model)
    drmdp.write(model, tmp_path / "odd.name", format="npz")
    same(drmdp.read(tmp_path / "odd.name", format="npz"), model)


@pytest.mark.parametrize("path", ["model", "model.mat"])
def test_an_unknown_suffix_lists_the_known_ones(path, tmp_path):
    for call in (
        lambda p: drmdp.read(p),
        lambda p: drmdp.write(MODELS["dense"], p),
        formats.check_target,
    ):
        with pytest.raises(
            InputError, match=rf"{path}: unknown suffix '.*'; known: \.npz, \.drmdp"
        ):
            call(tmp_path / path)
    with pytest.raises(InputError, match="unknown format 'csv'; known: npz, drmdp, craam, prism"):
        drmdp.read(tmp_path / path, format="csv")


# ---------------------------------------------------------------------- writing


def failing(function, after):
    """Give a stand-in that fails as a full disk does, after so many calls."""
    calls = iter(range(after))

    def call(*args, **settings):
        if next(calls, None) is None:
            raise OSError(28, "No space left on device")
        return function(*args, **settings)

    return call


def contents(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("existing", [False, True])
def test_a_write_that_fails_in_the_middle_leaves_what_was_there(
    suffix, existing, after, tmp_path, monkeypatch
):
    if existing:
        drmdp.write(MODELS["rewards"], tmp_path / f"m.{suffix}")
    before = contents(tmp_path)
    monkeypatch.setattr(np.lib.format, "write_array", failing(np.lib.format.write_array, after))
    monkeypatch.setattr(np, "save", failing(np.save, after))
    monkeypatch.setattr(directory_files._Column, "add", failing(directory_files._Column.add, after))
    with pytest.raises(OSError, match="No space left"):
        drmdp.write(MODELS["dense"], tmp_path / f"m.{suffix}")
    assert contents(tmp_path) == before
    assert len(os.listdir(tmp_path)) == existing


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interrupted_write_leaves_nothing(suffix, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        drmdp.write(MODELS["dense"], tmp_path / f"m.{suffix}")
    assert not os.listdir(tmp_path)


def test_only_a_model_is_overwritten_by_a_directory(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")
    with pytest.raises(
        InputError, match=r"home: is a directory but not a model \(holds 'thesis.tex'\), and is not"
    ):
        drmdp.write(MODELS["dense"], home)
    (home / "thesis.tex").rename(home / "data.npy")
    with pytest.raises(InputError, match=r"not a model \(has no model.json\)"):
        drmdp.write(MODELS["dense"], home)
    drmdp.write(MODELS["sparse"], tmp_path / "m.drmdp")
    (tmp_path / "m.drmdp" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'notes\.txt'"):
        drmdp.write(MODELS["dense"], tmp_path / "m.drmdp")
    same(
        drmdp.read(tmp_path / "m.drmdp"), MODELS["sparse"]
    )  # beside the arrays, other files do not matter
    assert (home / "data.npy").read_text() == "years of work"


def test_targets_that_cannot_be_written_are_refused_with_their_path(tmp_path):
    (tmp_path / "file.drmdp").write_text("")
    for path, message in (
        ("nowhere/m.npz", "nowhere/m.npz: cannot be written: .*nowhere: No such file or directory"),
        ("nowhere/m.drmdp", "m.drmdp: cannot be written: .*nowhere: No such file or directory"),
        ("file.drmdp/m.npz", "cannot be written: .*file.drmdp: Not a directory"),
        ("file.drmdp", "file.drmdp: is a file, not a directory"),
    ):
        for call in (formats.check_target, lambda p: drmdp.write(MODELS["dense"], p)):
            with pytest.raises(InputError, match=message):
                call(tmp_path / path)
    with pytest.raises(InputError, match="is a directory"):
        drmdp.write(MODELS["dense"], tmp_path, format="npz")
    assert os.listdir(tmp_path) == ["file.drmdp"]


# ---------------------------------------------------------------------- bad files


def refused(path, *parts):
    """Assert that a file is refused with a message that begins with its path and holds the parts;
    return it.
    """
    with pytest.raises(InputError) as caught:
        drmdp.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    for part in parts:
        assert part in message
    return message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernels": None}, "kernels: missing"),
        ({"discount": None}, "discount: missing"),
        (
            {"costs": None},
            "costs, rewards, next_costs, next_rewards: expected exactly one, got none",
        ),
        ({"rewards": np.ones(4)}, "expected exactly one, got costs and rewards"),
        ({"weight": [0.2, 0.3, 0.5]}, "weight: unknown array; known: kernels, "),
        (
            {"indptr": np.arange(9)},
            "indptr: belongs to the compressed layout, but `kernels` is given too",
        ),
        (
            {"next_costs": np.arange(9), "costs": None},
            "next_costs: belongs to the compressed layout",
        ),
        ({"kernels": np.ones((4, 4))}, "kernels: expected 3 or 4 dimensions, got shape (4, 4)"),
        ({"kernels": np.ones((3, 4, 2, 5))}, "kernels: expected shape (N, S, A, S) or (S, A, S)"),
        ({"kernels": np.ones((0, 4, 2, 4))}, "kernels: expected shape"),
        (
            {"kernels": np.ones((3, 4, 2, 4), dtype=complex)},
            "kernels: expected bool or integer or float, got dtype comp",
        ),
        (
            {"kernels": rows(0, 3, 4, 2, 4) * 1.1},
            "kernels: kernel 0, state 0, action 0 sums to 1.1",
        ),
        (
            {"costs": np.array([["a"] * 2] * 4)},
            "costs: expected bool or integer or float, got dtype <U1",
        ),
        (
            {"costs": np.full((4, 2), None)},
            "costs: expected bool or integer or float, got dtype object",
        ),
        ({"costs": np.full((4, 2), np.nan)}, "costs must be finite: state 0, action 0 has nan"),
        ({"costs": np.ones((4, 3))}, "costs: expected shape (4, 2)"),
        ({"discount": [0.9]}, "discount: expected 0 dimensions, got shape (1,)"),
        ({"discount": 1.5}, "discount"),
        ({"discount": "0.9"}, "discount: expected bool or integer or float"),
        ({"weights": [0.5, 0.5]}, "weights: expected shape (3,), got (2,)"),
        ({"initial": [1.0]}, "initial: expected shape (4,), got (1,)"),
        ({"states": ["a", "a", "b", "c"]}, "states: the name 'a' is given twice"),
        ({"states": [0.5, 1.0, 2.0, 3.0]}, "states: expected integer or string, got dtype float64"),
        ({"states": [b"a", b"b", b"c", b"d"]}, "states: expected integer or string, got dtype |S1"),
        ({"states": "abcd"}, "states: expected a JSON list of names"),
        ({"states": '{"a": 1}'}, "states: expected a list of names, got dict"),
        ({"states": "[" * 100_000}, "states: expected a JSON list of names"),
        ({"actions": ["a"]}, "actions: expected 2 names, got 1"),
        ({"available": np.ones((4, 2))}, "available: expected bool, got dtype float64"),
        (
            {"available": np.ones((2, 4), dtype=bool)},
            "available: expected a bool array of shape (4, 2)",
        ),
        ({"terminal": np.ones(3, dtype=bool)}, "terminal: expected a bool array of shape (4,)"),
        ({"format": "drmdp model 9"}, "format: expected 'drmdp model 1', got 'drmdp model 9'"),
    ],
    ids=lambda value: ",".join(f"{k}" for k in value) if isinstance(value, dict) else value[:40],
)
def test_bad_arrays_are_refused_by_name(changes, message, tmp_path):
    np.savez(tmp_path / "m.npz", **stranger(**changes))
    refused(tmp_path / "m.npz", message)


COMPRESSED = {
    "shape": [2, 2, 1],
    "indptr": np.array([0, 2, 3]),
    "indices": np.array([0, 1, 1]),
    "data": np.array([0.5, 0.5, 0.1, 0.9, 1.0, 1.0]),
    "next_costs": np.array([1.0, 2.0, 3.0]),
    "weights": [0.5, 0.5],
    "discount": 0.5,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"shape": None},
            "shape: missing; the compressed layout needs shape, indptr, indices, data, weights",
        ),
        ({"weights": None}, "weights: missing; the compressed layout needs"),
        ({"data": None}, "data: missing"),
        ({"shape": [2, 2]}, "shape: expected three positive whole numbers N, S, A, got shape (2,)"),
        ({"shape": [2, 2, 0]}, "shape: expected three positive whole numbers"),
        ({"shape": [1, 2, 1]}, "data: expected 3 numbers for N, S, A = 1, 2, 1, got 6"),
        ({"shape": [2, 10**12, 10**6]}, "indptr: expected 1000000000000000001 numbers"),
        ({"indptr": np.array([0, 2])}, "indptr: expected 3 numbers"),
        (
            {"indptr": np.array([0, 2, 2])},
            "indices, data: expected 2 indices and 4 probabilities, got 3 and 6",
        ),
        ({"indptr": np.array([0, -1, 3])}, "indptr: expected 3 ascending numbers from 0"),
        (
            {"indptr": np.array([0, 2**62 + 1, -(2**62)])},
            "indptr: expected 3 ascending numbers from 0",
        ),
        ({"indptr": np.array([0.0, 2.0, 3.0])}, "indptr: expected integer, got dtype float64"),
        (
            {"indices": np.array([0, 2, 1])},
            "indices: entry 1 is 2, expected ascending states below 2",
        ),
        ({"indices": np.array([1, 0, 1])}, "indices: entry 1 is 0"),
        ({"data": np.ones(6)}, "kernels: kernel 0, state 0, action 0 sums to 2.0, not 1"),
        (
            {"data": np.full(6, np.nan)},
            "kernels: probabilities must be finite: kernel 0, state 0, action 0",
        ),
        ({"data": np.full(6, 1e308)}, "sums to inf, not 1"),
        ({"data": np.full(6, np.longdouble("1e4000"))}, "kernels: probabilities must be finite"),
        ({"data": np.ones(6, dtype=int)}, "data: expected float, got dtype int64"),
        ({"next_costs": np.ones(2)}, "next_costs: expected shape (3,) like indices, got (2,)"),
        (
            {"next_costs": np.array([1, np.inf, 3])},
            "costs must be finite: state 0, action 0, next state 1 has inf",
        ),
        (
            {"next_costs": None, "costs": np.ones(3)},
            "costs: expected shape (2, 1), (2,) or (2, 1, 2), got (3,)",
        ),
        ({"sparse": np.array(1)}, "sparse: expected bool, got dtype int64"),
        ({"available": np.array([[True], [False]])}, "state 1 has no available action"),
        (
            {"available": np.ones((3, 1), dtype=bool)},
            "available: expected a bool array of shape (2, 1), got bool (3, 1)",
        ),
        ({"terminal": np.array([False, True])}, "is not available but has stored rows"),
        (
            {"terminal": np.array([False])},
            "terminal: expected a bool array of shape (2,), got bool (1,)",
        ),
    ],
    ids=lambda value: ",".join(f"{k}" for k in value) if isinstance(value, dict) else value[:40],
)
def test_bad_compressed_arrays_are_refused_by_name(changes, message, tmp_path):
    arrays = {name: array for name, array in (COMPRESSED | changes).items() if array is not None}
    np.savez(tmp_path / "m.npz", **arrays)
    refused(tmp_path / "m.npz", message)


def test_good_compressed_arrays_are_read(tmp_path):
    np.savez(tmp_path / "m.npz", **COMPRESSED)
    found = drmdp.read(tmp_path / "m.npz")
    kernels = [sparse.csr_array([[0.5, 0.5], [0, 1]]), sparse.csr_array([[0.1, 0.9], [0, 1]])]
    same(found, Model(kernels, costs=sparse.csr_array([[1.0, 2.0], [0, 3.0]]), discount=0.5))


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def header(shape, descr="<f8", version=1):
    """Bytes of an .npy header without anything behind it."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text


def pack(path, files, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def unpack(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


PLAIN = {f"{name}.npy": npy(array) for name, array in stranger().items()}


@pytest.mark.parametrize(
    "shape",
    ["(1000000, 1000, 1, 1000)", "(4000000000, 4000000000, 4000000000, 4)", "(-1, 4, 2, 4)"],
)
def test_a_header_that_promises_too_much_is_refused_before_allocating(shape, tmp_path):
    tracemalloc.start()
    pack(tmp_path / "m.npz", PLAIN | {"kernels.npy": header(shape) + bytes(64)})
    refused(tmp_path / "m.npz", "kernels: ", shape)
    unpack(
        tmp_path / "m.drmdp",
        PLAIN | {"kernels.npy": header(shape) + bytes(64), "model.json": b'{"discount": 0.5}'},
    )
    (tmp_path / "m.drmdp" / "discount.npy").unlink()
    refused(tmp_path / "m.drmdp", "kernels: ", shape)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_negative_sizes_are_refused_even_if_their_product_is_right(tmp_path):
    pack(tmp_path / "m.npz", PLAIN | {"costs.npy": header("(-4, -2)") + bytes(64)})
    refused(tmp_path / "m.npz", "costs: expected 1 or 2 or 3 dimensions, got shape (-4, -2)")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    honest = header("(1, 1000, 1, 1000)") + bytes(8_000_000)
    pack(path, PLAIN | {"kernels.npy": honest}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 20_000
    for member in (
        honest + b"\0",
        honest[:-1],
        PLAIN["kernels.npy"] + bytes(8_000_000),
    ):  # more or less than its header says
        pack(path, PLAIN | {"kernels.npy": member}, zipfile.ZIP_DEFLATED)
        tracemalloc.start()
        refused(path, "kernels: dtype float64 and shape", "but the file holds")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
        tracemalloc.stop()
    pack(path, PLAIN | {"kernels.npy": honest}, zipfile.ZIP_DEFLATED)
    refused(path, "kernels: kernel 0, state 0, action 0 sums to 0.0, not 1")
    monkeypatch.setattr("drmdp.io.archives.memory_limit", lambda: 19_000_000)
    refused(
        path,
        "needs 20000180 bytes, which do not fit in memory; kernels in a .drmdp directory need not",
    )


def test_rows_that_do_not_fit_in_memory_are_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "m.npz", **COMPRESSED)
    monkeypatch.setattr("drmdp.formats._fields.memory_limit", lambda: 31)
    refused(tmp_path / "m.npz", "shape: N·S·A = 4 rows do not fit in memory")


def test_running_out_of_memory_is_an_input_error(tmp_path, monkeypatch):
    def hungry(*_, **__):
        raise MemoryError

    drmdp.write(MODELS["dense"], tmp_path / "m.npz")
    monkeypatch.setattr("drmdp.formats.npz.to_model", hungry)
    refused(tmp_path / "m.npz", "does not fit in memory")


def test_files_that_are_not_archives_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    refused(path, "No such file or directory")
    for content in (b"", b"PK", b"kernels", npy(np.ones(3)), b"\x80\x04K\x01.", bytes(1000)):
        path.write_bytes(content)
        refused(path, "not a readable .npz file")
    drmdp.write(MODELS["dense"], path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 37):
        path.write_bytes(whole[:size])
        refused(path, "not a readable .npz file")
    flipped = bytearray(whole)
    flipped[whole.index(b"NUMPY", whole.index(b"kernels.npy")) + 200] ^= 1
    path.write_bytes(flipped)
    refused(path, "kernels: cannot be read: Bad CRC-32")


def test_odd_archives_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        pack(path, PLAIN, compression)
        refused(path, "kernels: compression")
    pack(path, PLAIN | {"readme.txt": b"hello"})
    refused(path, "readme.txt: not an .npy array")
    pack(path, PLAIN)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("costs.npy", PLAIN["costs.npy"])
    refused(path, "costs: given twice")
    magic = b"\x93NUMPY"
    for content in (
        b"",
        magic,
        magic + b"\x09\x00",
        header("(4, 2)")[:-3],
        header("(4, 2"),
        header("nonsense"),
    ):
        pack(path, PLAIN | {"costs.npy": content})
        refused(path, "costs: cannot be read")
    pack(path, PLAIN | {"costs.npy": header("1 " * 2500)})
    assert len(refused(path, "costs: cannot be read")) < 200 + len(str(path))
    pack(path, PLAIN | {"costs.npy": header("(4, 2)", version=3) + bytes(64)})
    refused(path, "costs: cannot be read: version 3.0 of the .npy format")
    pack(path, PLAIN | {"costs.npy": header("(4, 2)", version=2) + bytes(64)})
    assert not drmdp.read(path).costs.any()
    pack(path, PLAIN | {"costs.npy": header("(4L, 2L)") + bytes(64)})  # as Python 2 wrote it
    assert not drmdp.read(path).costs.any()


def test_nothing_is_ever_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    bomb = np.array([Bomb()], dtype=object)
    for name in ("kernels", "costs", "states", "extra"):
        pack(tmp_path / "m.npz", PLAIN | {f"{name}.npy": npy(bomb)})
        refused(tmp_path / "m.npz", name)
    unpack(
        tmp_path / "m.drmdp",
        {
            "model.json": b'{"discount": 0.5}',
            "kernels.npy": npy(bomb),
            "costs.npy": PLAIN["costs.npy"],
        },
    )
    refused(tmp_path / "m.drmdp", "kernels: expected bool or integer or float, got dtype object")
    assert not (tmp_path / "exploded").exists()


def test_bad_directories_are_refused(tmp_path):
    path = tmp_path / "m.drmdp"
    refused(path, "no such directory")
    path.mkdir()
    refused(path, "model.json: missing")
    plain = {name: PLAIN[name] for name in ("kernels.npy", "costs.npy")}
    for index, message in (
        (b"", "model.json: cannot be read"),
        (b"[1]", "model.json: expected an object, got list"),
        (b"\xff\xfe", "model.json: cannot be read"),
        (b"[" * 100_000, "model.json: cannot be read"),
        (b'{"discont": 0.5}', "model.json: unknown entry 'discont'; known: format, shape"),
        (b"{}", "discount: missing"),
        (b'{"discount": "x"}', "discount"),
        (b'{"discount": NaN}', "discount"),
        (b'{"discount": 1e999}', "discount"),
        (b'{"discount": 0.5, "states": {"a": 1}}', "states: expected a list of names, got dict"),
        (b'{"discount": 0.5, "states": [[], {}, null, 1]}', "states: "),
        (b'{"discount": 0.5, "format": ["drmdp model 1"]}', "format: expected 'drmdp model 1'"),
        (b'{"discount": 0.5, "shape": [1, 2, 3]}', "shape: belongs to the compressed layout"),
    ):
        unpack(path, plain | {"model.json": index})
        refused(path, message)
    unpack(path, plain | {"model.json": b'{"discount": 0.5}'})
    assert drmdp.read(path).discount == 0.5
    for name, content, message in (
        ("weight.npy", npy([1.0]), "weight: unknown array"),
        ("discount.npy", npy(0.5), "discount: belongs in model.json, not in a file of its own"),
        (
            "costs.npy",
            npy(np.ones((4, 2)))[:-1],
            "costs: dtype float64 and shape (4, 2) make 64 bytes, but the file holds 63",
        ),
        (
            "costs.npy",
            npy(np.ones((4, 2))) + b"\0",
            "costs: dtype float64 and shape (4, 2) make 64 bytes",
        ),
        ("costs.npy", b"", "costs: cannot be read"),
    ):
        unpack(path, {name: content})
        refused(path, message)
        (path / name).unlink()
    refused(path, "expected exactly one, got none")
    (path / "costs.npy").mkdir()
    refused(path, "Is a directory")


# ---------------------------------------------------------------------- damage at random

BASES = (
    "dense",
    "mixed",
    "terminal",
    "unknown rewards",
    "sparse rewards",
    "listed rewards",
    "only terminal, sparse",
)
SPECIAL = (0, 1, -1, 0.5, 1 + 1e-10, np.nan, np.inf, -np.inf, 1e308, 1e-320, 2**31, 2**62, -(2**63))
NUMERIC = ("f8", ">f8", "f4", "f2", "g", "i8", "i4", ">i2", "u8", "?")
DTYPES = (*NUMERIC, "U3", "U0", "S2", "O", "c16", "M8[s]", "V3", "i4,f4")
NAMES = (
    *_fields.ARRAYS,
    *_fields.SMALL,
    *_stored.FIELDS,
    "weight",
    "",
    "../kernels",
    "kernels.npy",
)

jsons = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["drmdp model 1", 10**400]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def damaged(draw, content):
    """Flip, cut, insert or repeat some bytes."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "end", "remove"]))
        if kind == "flip" and at < len(content):
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "end":
            del content[at:]
        elif kind == "remove":
            del content[at : at + draw(st.integers(1, 40))]
        else:
            content[at:at] = draw(st.binary(max_size=20))
    return bytes(content)


def array(draw):
    """Any small array of any dtype."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    return np.zeros(shape, dtype=draw(st.sampled_from(DTYPES)))


def altered(draw, found, content):
    """Change an array, and the content of its file: a value, its type, its shape, its header."""
    kind = draw(st.sampled_from(["poke", "cast", "shape", "header", "resize"]))
    if kind == "poke" and found.size and found.dtype.kind in "biuf":
        found = found.copy()
        with np.errstate(all="ignore"):
            value = np.array(draw(st.sampled_from(SPECIAL)), dtype=float).astype(found.dtype)
        found.flat[draw(st.integers(0, found.size - 1))] = value
    elif kind == "cast" and found.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            found = found.astype(draw(st.sampled_from(NUMERIC)))
    elif kind == "shape":
        found = draw(
            st.sampled_from(
                [found.T, found[None], found.ravel(), found[:0] if found.ndim else found]
            )
        )
    elif kind == "resize":
        found = np.resize(
            found, draw(st.lists(st.integers(0, 5), min_size=found.ndim, max_size=found.ndim))
        )
    else:
        shape = tuple(
            draw(st.lists(st.sampled_from([-1, 0, 1, 2, 4, 8, 2**31, 2**62, 10**30]), max_size=4))
        )
        text = content[10:].split(b"\n")[0].decode("latin1")
        swapped = re.sub(r"'shape': \(.*?\)", f"'shape': {shape}", text).strip()
        swapped = swapped.replace(
            "<f8", draw(st.sampled_from(["<f8", "<f4", "|O", "<U1", "<m8", "bogus"]))
        )
        data = content[10 + len(text) + 1 :]
        return b"\x93NUMPY\x01\x00" + len(swapped).to_bytes(2, "little") + swapped.encode() + data
    return npy(found)


def changed(draw, index):
    """Give an entry of a JSON object any value."""
    if not isinstance(index, dict):
        return b"{}"
    index[draw(st.sampled_from(sorted({*index, "states", "actions", "weight"})))] = draw(jsons)
    return json.dumps(index).encode()


def mutated(draw, files):
    """Damage one or two files of a model that is a mapping from names to bytes."""
    files = dict(files)
    for _ in range(draw(st.integers(1, 2))):
        if not files:
            break
        name = draw(st.sampled_from(sorted(files)))
        kind = draw(
            st.sampled_from(["drop", "rename", "copy", "bytes", "array", "alter", "alter", "alter"])
        )
        if kind in ("drop", "rename", "copy"):
            content = files[name] if kind == "copy" else files.pop(name)
            if kind != "drop":
                files[draw(st.sampled_from(NAMES)).replace("/", "_") + ".npy"] = content
        elif kind == "bytes":
            files[name] = damaged(draw, files[name])
        elif kind == "array":
            files[name] = npy(array(draw))
        else:
            try:
                found = (
                    json.loads(files[name])
                    if name == "model.json"
                    else np.load(io.BytesIO(files[name]))
                )
            except Exception:  # damaged before
                files[name] = b""
            else:
                files[name] = (
                    changed(draw, found)
                    if name == "model.json"
                    else altered(draw, found, files[name])
                )
    return files


def model_or_input_error(path):
    """Read a file; whatever it is, the answer is a usable model or an `InputError` that begins with
    the path.
    """
    try:
        model = drmdp.read(path)
    except InputError:
        assert len(refused(path)) < 1000
        return False
    assert isinstance(model, Model)
    assert repr(model)
    assert model == replace_names(model)
    np.testing.assert_allclose(model.weights.sum(), 1)
    sums = np.add.reduce(model.blocks.dense(0, model.n_states), axis=3)  # (S, A, N)
    np.testing.assert_allclose(sums[model.available], 1, rtol=0, atol=1e-12)
    assert np.isfinite(model.cost_range).all()
    return True


def replace_names(model):
    """Make the model again from its parts; a damaged one that was let in would not survive."""
    given = {
        "rewards" if model.maximise else "costs": 0.0 - model.costs
        if model.maximise
        else model.costs
    }
    names = ("discount", "weights", "initial", "states", "actions", "available", "terminal")
    if sparse.issparse(model.costs) and model.maximise:
        given = {"rewards": model.blocks.matrix(0.0 - model.costs.data)}
    return Model(replace(model.blocks), **given, **{name: getattr(model, name) for name in names})


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Files of the base models, by format and name."""
    folder = tmp_path_factory.mktemp("bases")
    found = {}
    for base in BASES:
        drmdp.write(MODELS[base], folder / "m.npz")
        with zipfile.ZipFile(folder / "m.npz") as archive:
            found["npz", base] = {name: archive.read(name) for name in archive.namelist()}
        drmdp.write(MODELS[base], folder / "m.drmdp")
        found["drmdp", base] = {
            file.name: file.read_bytes() for file in (folder / "m.drmdp").iterdir()
        }
    return found


EXAMPLES = pytest.mark.parametrize("examples", [100, pytest.param(2000, marks=pytest.mark.fuzz)])


def often(check, examples):
    """Run a check of something drawn so many times."""
    own = settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    own(given(data=st.data())(lambda data: check(data.draw)))()


@EXAMPLES
def test_damaged_npz_files_give_a_model_or_an_input_error(examples, parts, tmp_path):
    path = tmp_path / "damaged.npz"

    def check(draw):
        files = parts["npz", draw(st.sampled_from(BASES))]
        if draw(st.integers(0, 3)) == 0:
            pack(path, files)
            path.write_bytes(damaged(draw, path.read_bytes()))
        else:
            compression = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
            pack(path, mutated(draw, files), compression)
        model_or_input_error(path)

    often(check, examples)


@EXAMPLES
def test_damaged_directories_give_a_model_or_an_input_error(examples, parts, tmp_path):
    path = tmp_path / "damaged.drmdp"

    def check(draw):
        unpack(path, {})
        for file in path.iterdir():
            file.unlink()
        unpack(path, mutated(draw, parts["drmdp", draw(st.sampled_from(BASES))]))
        model_or_input_error(path)

    often(check, examples)


def test_undamaged_parts_are_models(parts, tmp_path):
    """The fuzz tests would pass on bases that are refused already."""
    for (suffix, base), files in parts.items():
        path = tmp_path / f"{base}.{suffix}"
        pack(path, files) if suffix == "npz" else unpack(path, files)
        assert model_or_input_error(path)


# ---------------------------------------------------------------------- small files that ask for
# much


def peak_of(path, message):
    """Peak of the memory that a refusal takes."""
    tracemalloc.start()
    refused(path, message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_strings_of_no_letters_are_refused_whatever_their_number(tmp_path):
    empty = header("(200000000,)").replace(b"'<f8'", b"'<U0'")
    for name in ("states", "actions", "kernel_names", "notes"):
        pack(tmp_path / "m.npz", PLAIN | {f"{name}.npy": empty})
        assert (tmp_path / "m.npz").stat().st_size < 2000
        assert (
            peak_of(
                tmp_path / "m.npz",
                f"{name}: strings of no letters, dtype <U0 and shape (200000000,)",
            )
            < 1_000_000
        )


def test_more_names_than_things_are_refused_before_they_are_read(tmp_path):
    many = npy(np.zeros(1_000_000, dtype="U1"))
    for name, most in (("states", 4), ("actions", 2), ("kernel_names", 3)):
        pack(tmp_path / "m.npz", PLAIN | {f"{name}.npy": many}, zipfile.ZIP_DEFLATED)
        assert (
            peak_of(tmp_path / "m.npz", f"{name}: 1000000 names, but there are at most {most} ")
            < 1_000_000
        )
    compressed = {f"{name}.npy": npy(np.asarray(value)) for name, value in COMPRESSED.items()}
    for name in ("states", "actions", "kernel_names"):
        pack(tmp_path / "m.npz", compressed | {f"{name}.npy": many}, zipfile.ZIP_DEFLATED)
        assert (
            peak_of(tmp_path / "m.npz", f"{name}: 1000000 names, but there are at most") < 1_000_000
        )
    pack(
        tmp_path / "m.npz",
        compressed | {"shape.npy": npy(np.zeros(1_000_000, dtype=np.int8))},
        zipfile.ZIP_DEFLATED,
    )
    assert peak_of(tmp_path / "m.npz", "shape: expected three positive whole numbers") < 1_000_000


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.float32, np.float64, ">f8"])
def test_numbers_count_as_what_they_become(dtype, tmp_path, monkeypatch):
    """A byte in a file is a double in a model."""
    monkeypatch.setattr("drmdp.io.archives.memory_limit", lambda: 20 * 2_000_000)
    y = np.zeros((1, 1000, 2, 1000), dtype=dtype)
    pack(tmp_path / "m.npz", PLAIN | {"kernels.npy": npy(y)}, zipfile.ZIP_DEFLATED)
    assert (
        peak_of(tmp_path / "m.npz", "needs 40000180 bytes, which do not fit in memory") < 1_000_000
    )
    unpack(
        tmp_path / "m.drmdp",
        {
            "model.json": b'{"discount": 0.5}',
            "kernels.npy": npy(y),
            "costs.npy": PLAIN["costs.npy"],
        },
    )
    assert peak_of(tmp_path / "m.drmdp", "bytes, which do not fit in memory") < 1_000_000


def test_probabilities_of_a_directory_take_no_memory(tmp_path, monkeypatch):
    drmdp.write(instances.garnet(60, 4, branching=1.0, sparse=True), tmp_path / "m.drmdp")
    monkeypatch.setattr("drmdp.io.files.memory_limit", lambda: 150_000)  # 115 kB of them
    assert drmdp.read(tmp_path / "m.drmdp").n_states == 60
    with pytest.raises(
        InputError, match=r"m.drmdp: rows that are to be scaled need 5.* kB of memory"
    ):
        drmdp.read(tmp_path / "m.drmdp", normalize=True)
    monkeypatch.setattr(
        "drmdp.io.files.memory_limit", lambda: 100_000
    )  # twice 58 kB of next states
    refused(tmp_path / "m.drmdp", "states, actions and next states need 119 kB of memory")


@pytest.mark.parametrize("name", ["m.csv", "m.tra"])
def test_text_that_does_not_fit_is_refused_before_it_is_read(name, tmp_path, monkeypatch):
    drmdp.write(Model(np.ones((1, 1, 1)), rewards=[1.0], discount=0.5), tmp_path / name)
    monkeypatch.setattr("drmdp.formats._text.memory_limit", lambda: 100)
    with pytest.raises(InputError, match=r"bytes of text do not fit in memory"):
        drmdp.read(tmp_path / name, discount=0.5)


@pytest.mark.parametrize(
    "name", ["m.npz", "m.csv", "m.tra", "m.drmdp/model.json", "m.drmdp/data.npy", "s.npz"]
)
def test_pipes_and_devices_are_refused_at_once(name, tmp_path):
    path = tmp_path / name
    drmdp.write(MODELS["dense"], tmp_path / "m.drmdp")
    path.unlink(missing_ok=True)
    read = (
        drmdp.Solution.load
        if name == "s.npz"
        else lambda path: drmdp.read(path, discount=0.9 if name == "m.tra" else None)
    )
    os.mkfifo(path)
    with pytest.raises(
        InputError, match="is a pipe, not a file; write what it gives to a file first"
    ):
        read(tmp_path / name.split("/")[0])
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is a device, not a file"):
        read(tmp_path / name.split("/")[0])


def test_small_integers_that_point_far_are_read(tmp_path):
    """N · indptr need not fit in the type that indptr was written in."""
    N = 200
    y = rows(0, N, 4, 2, 4)
    model = Model(matrices(y), costs=np.zeros((4, 2)), discount=0.5)
    drmdp.write(model, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as stored:
        arrays = dict(stored)
    for name in ("indptr", "indices"):
        arrays[name] = arrays[name].astype(np.int8)
    np.savez(tmp_path / "m.npz", **arrays)
    same(drmdp.read(tmp_path / "m.npz"), model)


def test_entries_given_twice_are_refused(tmp_path):
    drmdp.write(MODELS["dense"], tmp_path / "m.drmdp")
    index = tmp_path / "m.drmdp" / "model.json"
    index.write_text('{"discount": 0.1, ' + index.read_text().strip()[1:])
    refused(tmp_path / "m.drmdp", "model.json: cannot be read: 'discount' is given twice")
    index.write_text('{"discount": ' + "9" * 5000 + "}")
    refused(tmp_path / "m.drmdp", "model.json: cannot be read: Exceeds the limit")
