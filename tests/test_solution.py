"""`Status`, `Record`, `Solution`: how they print, and that what is saved is what is loaded, or an
error.
"""

import contextlib
import copy
import dataclasses
import gc
import io
import json
import math
import os
import pickle
import stat
import sys
import tempfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import drmdp
from drmdp import instances
from drmdp.core import compact as rows

S, A = 3, 2
ARRAYS = ("value", "policy", "lower", "upper", "kernel")


def hand_made(**change):
    """Build a solution by hand, with numbers that are hard to write down."""
    rng = np.random.default_rng(0)
    lower = np.array([-0.0, 1 / 3, 5e-324])
    upper = np.array([0.1 + 0.2, np.nextafter(1 / 3, 1), 1.7976931348623157e308])
    history = (
        drmdp.Record(0, 0.0, math.nan, -math.inf, math.inf, math.inf, 0.0),
        drmdp.Record(1, 1 / 3, 1e-17, 0.1, np.float64(0.30000000000000004), 5e-324, 1.5),
    )
    parts = {
        "value": upper,
        "policy": rng.dirichlet(np.ones(A), S),
        "lower": lower,
        "upper": upper,
        "kernel": rng.dirichlet(np.ones(S), (S, A)),
        "duality_gap": 2 / 3,
        "status": drmdp.Status.precision_limit,
        "history": history,
        "settings": {
            "method": "anderson",
            "backend": "conic",
            "tol": 1e-6,
            "rtol": 1e-6,
            "ambiguity": "a ball",
        },
        "states": ("ö\ud800'\"", 10**38, ""),
        "actions": (0, -1),
        "fingerprint": "f" * 64,
        "seconds": 0.1,
        "scale": 1e308,
        "setup_seconds": 1e-9,
    }
    return drmdp.Solution(**(parts | change))


def assert_same_bits(a, b):
    assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())


def assert_same(one, other):
    for field in dataclasses.fields(drmdp.Solution):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, rows.MeanKernel):
            for name in rows.STORED:
                assert_same_bits(getattr(a.compact, name), getattr(b.compact, name))
            assert a.shape == b.shape
        elif field.name in ARRAYS:
            assert_same_bits(a, b)
        elif field.name == "kernels":
            assert a is None  # not saved
        elif field.name == "history":
            assert [list(map(float.hex, map(float, dataclasses.astuple(r)))) for r in a] == [
                list(map(float.hex, map(float, dataclasses.astuple(r)))) for r in b
            ]
        else:
            assert a == b, field.name


# ---------------------------------------------------------------------- looks


def test_status_is_a_string_with_a_sentence():
    expected = {
        "solved",
        "iteration_limit",
        "time_limit",
        "precision_limit",
        "diverged",
        "unbounded",
        "interrupted",
        "stopped",
    }
    assert {str(status) for status in drmdp.Status} == expected
    assert drmdp.Status.solved == "solved"
    assert drmdp.Status("time_limit") is drmdp.Status.time_limit
    assert f"{drmdp.Status.solved}" == "solved"
    assert json.dumps(drmdp.Status.solved) == '"solved"'
    assert len({status.sentence for status in drmdp.Status}) == len(expected)
    assert all(" " in status.sentence for status in drmdp.Status)


def test_derived_numbers_and_looks():
    bounds = {
        "upper": np.array([1.0, 2.0, 4.0]),
        "lower": np.array([0.5, 2.0, 3.75]),
        "value": np.array([1.0, 2, 4]),
    }
    solution = hand_made(**bounds, scale=4.0)
    assert solution.gap == 0.5
    assert solution.n_iters == 1
    assert solution.kernel_passes == 1.5
    assert repr(solution).splitlines() == [
        f"Solution: precision_limit — {drmdp.Status.precision_limit.sentence}",
        "  gap        0.5, relative 0.12 (tol 1e-06), duality gap 0.667",
        "  value      1 … 4 over 3 states",
        "  work       1 iteration, 1.5 kernel passes, 0.1 s",
        "  method     anderson, backend conic",
        "  set        a ball",
    ]
    other = hand_made(**bounds, scale=4.0, settings=solution.settings | {"tol": None})
    assert "gap        0.5, relative 0.12 (rtol 1e-06)" in repr(other)
    assert (solution.tolerance, other.tolerance) == (1e-6, 4e-6)
    assert "value      2\n" in repr(hand_made(value=np.full(3, 2.0)))


def test_a_solution_is_frozen():
    solution = hand_made()
    with pytest.raises(dataclasses.FrozenInstanceError):
        solution.value = 0
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(solution, name)[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        solution.history[0].gap = 0


# ---------------------------------------------------------------------- there and back


def test_saving_is_lossless(tmp_path):
    solution = hand_made()
    solution.save(tmp_path / "solution.npz")
    loaded = drmdp.Solution.load(tmp_path / "solution.npz")
    assert_same(loaded, solution)
    assert type(loaded.status) is drmdp.Status
    assert type(loaded.history[0]) is drmdp.Record
    assert repr(loaded) == repr(solution)
    loaded.save(str(tmp_path / "again.npz"))
    assert_same(drmdp.Solution.load(str(tmp_path / "again.npz")), solution)


def thin():
    """Build a solution with a sparse kernel."""
    kernel = sparse.csr_array(np.random.default_rng(1).dirichlet(np.ones(S), S * A))
    kernel.data[[0, 4]] = 0.0, 1e-320
    return hand_made(kernel=rows.of_matrix(kernel, A))


def test_a_sparse_kernel_stays_sparse(tmp_path):
    thin().save(tmp_path / "solution.npz")
    loaded = drmdp.Solution.load(tmp_path / "solution.npz")
    assert isinstance(loaded.kernel, rows.MeanKernel)
    assert_same(loaded, thin())
    full = np.asarray(loaded.kernel)
    np.testing.assert_array_equal(loaded.kernel.rows(2), full[2])
    np.testing.assert_allclose(loaded.kernel @ np.arange(S), full @ np.arange(S), rtol=1e-14)
    with pytest.raises(drmdp.errors.InputError, match=f"0 to {S - 1}, got {S}"):
        loaded.kernel.rows(S)


def test_saving_a_run_on_a_sparse_model_that_had_no_time(tmp_path):
    model = drmdp.Model(
        [sparse.csr_array(np.full((S * A, S), 1 / S))], costs=np.zeros((S, A)), discount=0.5
    )
    solution = drmdp.solve(model, drmdp.Wasserstein(0.5, support="all"), max_seconds=0)
    solution.save(tmp_path / "solution.npz")
    assert_same(drmdp.Solution.load(tmp_path / "solution.npz"), solution)


@pytest.mark.parametrize("maximise", [False, True], ids=["costs", "rewards"])
def test_saving_what_solve_returned(tmp_path, maximise):
    y = np.random.default_rng(0).dirichlet(np.ones(S), (2, S, A))
    c = {"rewards" if maximise else "costs": np.arange(6.0).reshape(S, A)}
    model = drmdp.Model(y, **c, discount=0.5, states=["a", "b", "c"], terminal=["c"])
    solution = drmdp.solve(
        model, drmdp.Wasserstein([0, 0.5, 1], "l1", math.inf, support="all"), tol=1e-6
    )
    solution.save(tmp_path / "solution.npz")
    loaded = drmdp.Solution.load(tmp_path / "solution.npz")
    assert_same(loaded, solution)
    assert loaded.states == ("a", "b", "c")
    assert loaded.fingerprint == model.fingerprint


def test_settings_of_every_kind(tmp_path):
    given = {
        "method": "anderson",
        "backend": "exact",
        "ambiguity": "a ball",
        "tol": np.float64(0.1),
        "rtol": 1e-6,
        "inf": math.inf,
        "none": None,
        "flag": True,
        "text": "ü",
        "number": 10**30,
        "minus": -math.inf,
        "numpy int": np.int32(-3),
        "numpy bool": np.bool_(True),
        "float32": np.float32(0.1),
        "order": np.float64("inf"),
        "nested": {"memory": np.int64(5), "list": [1, None, np.float32(0.5)]},
    }
    hand_made(settings=given, duality_gap=np.float32(0.1), seconds=np.int64(3)).save(
        tmp_path / "solution.npz"
    )
    loaded = drmdp.Solution.load(tmp_path / "solution.npz")
    assert loaded.settings == given
    assert type(loaded.settings["number"]) is int
    assert type(loaded.settings["numpy bool"]) is bool
    assert (loaded.duality_gap, loaded.seconds) == (np.float32(0.1), 3)


@pytest.mark.parametrize(
    "change", [{"settings": {"tol": object()}}, {"kernel": np.full((S, A, S), None)}]
)
def test_what_cannot_be_saved_without_pickle_is_refused(tmp_path, change):
    path = tmp_path / "solution.npz"
    with pytest.raises((TypeError, ValueError), match="object"):
        hand_made(**change).save(path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_pickled(tmp_path, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads"):
        monkeypatch.setattr(pickle, name, never)
    path = tmp_path / "solution.npz"
    hand_made().save(path)
    assert_same(drmdp.Solution.load(path), hand_made())
    with np.load(path, allow_pickle=False) as stored:
        assert {name: stored[name].dtype.kind for name in stored} == dict.fromkeys(ARRAYS, "f") | {
            "meta": "u",
            "states": "u",
            "states_ends": "i",
        }


def test_nothing_is_made_for_each_state(tmp_path):
    """Neither for the names 0, 1, 2, … nor for those in a file."""
    S = 20_000
    y = sparse.csr_array((np.ones(S), (np.arange(S), (np.arange(S) + 1) % S)), shape=(S, S))
    drmdp.write(drmdp.Model([y], costs=np.ones((S, 1)), discount=0.5), tmp_path / "numbers.drmdp")
    names = [f"state {s}" for s in range(S)]
    drmdp.write(
        drmdp.Model([y], costs=np.ones((S, 1)), discount=0.5, states=names),
        tmp_path / "names.drmdp",
    )
    del names
    drmdp.solve(instances.machine(5), drmdp.Wasserstein(0.1))  # what is made once
    for kind, last in (("numbers", S - 1), ("names", f"state {S - 1}")):
        gc.collect()
        before = sys.getallocatedblocks()
        model = drmdp.read(tmp_path / f"{kind}.drmdp")
        solution = drmdp.solve(model, drmdp.Wasserstein(0.1))
        solution.save(tmp_path / "s.npz")
        loaded = drmdp.Solution.load(tmp_path / "s.npz")
        assert repr(solution)
        assert repr(loaded)
        assert solution._repr_html_()
        assert (model.states[-1], solution.states[-1], loaded.states[-1]) == (last,) * 3
        assert drmdp.evaluate(model, drmdp.Wasserstein(0.1), loaded).value.shape == (S,)
        gc.collect()
        assert sys.getallocatedblocks() - before < S / 10


# ---------------------------------------------------------------------- copies


def same_kernel(one, other):
    assert type(one) is type(other)
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "ambiguity",
    [
        drmdp.Wasserstein(0.3),
        drmdp.Wasserstein(0.3, "l1", 1),
        drmdp.Wasserstein(0.1, "linf", math.inf),
    ],
    ids=str,
)
def test_solutions_evaluations_and_plans_can_be_pickled(ambiguity, thin):
    y = np.random.default_rng(0).dirichlet(np.ones(S), (2, S, A))
    kernels = [sparse.csr_array(one.reshape(S * A, S)) for one in y] if thin else y
    model = drmdp.Model(
        kernels, costs=np.arange(6.0).reshape(S, A), discount=0.5, weights=[0.25, 0.75]
    )
    solution = drmdp.solve(model, ambiguity)
    for make in (lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy):
        again = make(solution)
        assert repr(again) == repr(solution)
        same_kernel(again.kernel, solution.kernel)
        assert len(again.kernels) == len(solution.kernels) == 2
        for one, other in zip(again.kernels, solution.kernels, strict=True):
            same_kernel(one, other)
        assert again.problem[0] == model
        assert repr(again.problem[1]) == repr(ambiguity)
        for array in (again.value, again.problem[0].weights, again.problem[0].blocks.data):
            assert not array.flags.writeable
        judged = drmdp.evaluate(model, ambiguity, solution.policy)
        same_kernel(make(judged).kernel, judged.kernel)
        step = drmdp.bellman(model, ambiguity, solution.value)
        same_kernel(make(step).kernel, step.kernel)
        plan = drmdp.finite_horizon(model, ambiguity, 2)
        np.testing.assert_array_equal(make(plan).policy, plan.policy)


@pytest.mark.parametrize(
    "method", [drmdp.FirstOrder(keep_kernels=True), drmdp.ValueIteration(backend="conic")]
)
def test_solutions_of_other_engines_can_be_pickled(method):
    model = drmdp.instances.perturb(drmdp.instances.machine(4), 2)
    solution = drmdp.solve(model, drmdp.Wasserstein(0.3), method, max_iters=3)
    again = pickle.loads(pickle.dumps(solution))
    same_kernel(again.kernel, solution.kernel)
    assert (again.kernels is None) == (solution.kernels is None)


# ---------------------------------------------------------------------- never half a file


@pytest.mark.parametrize("where", ["before", "middle", "after"])
@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_a_failed_save_leaves_no_file_and_keeps_the_old_one(tmp_path, monkeypatch, where, kind):
    fresh, old = tmp_path / "fresh.npz", tmp_path / "old.npz"
    hand_made().save(old)
    before = old.read_bytes()
    savez = np.savez

    def failing(stream, **arrays):
        if where == "middle":
            stream.write(before[: len(before) // 2])
        if where == "after":
            savez(stream, **arrays)
        raise kind("no space left")

    monkeypatch.setattr(np, "savez", failing)
    for path in (fresh, old):
        with pytest.raises(kind):
            hand_made(duality_gap=1.0).save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["old.npz"]
    assert old.read_bytes() == before


def test_a_directory_is_not_replaced_by_a_solution(tmp_path):
    (tmp_path / "taken.npz").mkdir()
    with pytest.raises(drmdp.InputError, match=r"taken.npz: is a directory, not a file"):
        hand_made().save(tmp_path / "taken.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.npz"]


def test_saving_replaces_the_old_file_with_the_usual_permissions(tmp_path):
    path = tmp_path / "solution.npz"
    hand_made(duality_gap=1.0).save(path)
    hand_made(duality_gap=2.0).save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["solution.npz"]
    assert drmdp.Solution.load(path).duality_gap == 2.0
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize(
    ("name", "cure"),
    [("x.txt", "x.npz"), ("x", "x.npz"), ("x.json", "x.npz"), (".hidden", ".hidden.npz")],
)
def test_a_solution_is_saved_under_a_name_that_says_so(tmp_path, name, cure):
    with pytest.raises(
        drmdp.InputError, match=f"{name}: a solution is saved in an .npz file; name it {cure}"
    ):
        hand_made().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_written_under_a_name_that_says_so(tmp_path):
    with pytest.raises(
        drmdp.InputError, match=r"x.pdf: a report is a page of HTML; name it x\.html"
    ):
        hand_made().report(tmp_path / "x.pdf")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- files that are no solutions


def stored_bytes(solution=None, **change):
    """Bytes of a saved solution; arrays replaced or, where None, left out; `meta` entries by
    name.
    """
    with tempfile.TemporaryDirectory() as folder:
        (solution or hand_made()).save(Path(folder, "x.npz"))
        with np.load(Path(folder, "x.npz")) as file:
            arrays = dict(file)
    meta = json.loads(arrays["meta"].tobytes())
    arrays |= {name: value for name, value in change.items() if name in arrays}
    meta |= {
        name: value for name, value in change.items() if name not in arrays and name != "without"
    }
    meta.pop(change.get("without"), None)
    if "meta" not in change:
        arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **{name: value for name, value in arrays.items() if value is not None})
    return stream.getvalue()


def npy_bytes():
    stream = io.BytesIO()
    np.save(stream, np.eye(3))
    return stream.getvalue()


def zip_bytes():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("readme.txt", "hello")
    return stream.getvalue()


def text(value):
    return np.frombuffer(value.encode(), np.uint8)


def with_members(**members):
    """Return a saved solution with some members of the archive replaced by bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as new, zipfile.ZipFile(io.BytesIO(stored_bytes())) as old:
        for name in old.namelist():
            new.writestr(name, members.get(name.removesuffix(".npy"), old.read(name)))
    return stream.getvalue()


EMPTY = (
    b"\x93NUMPY\x01\x00\x76\x00"
    + b"{'descr': '<U0', 'fortran_order': False, 'shape': (200000000,), }".ljust(117)
    + b"\n"
)

FOREIGN = {
    "empty": b"",
    "text": b"hello",
    "pickle": pickle.dumps({"value": 1}),
    "npy": npy_bytes(),
    "zip": zip_bytes(),
    "truncated": stored_bytes()[:-100],
    "half": stored_bytes()[:1000],
    "no kernel": stored_bytes(kernel=None),
    "no meta": stored_bytes(meta=None),
    "meta no json": stored_bytes(meta=text("{")),
    "meta no utf-8": stored_bytes(meta=np.array([255, 255], np.uint8)),
    "meta a list": stored_bytes(meta=text("[1]")),
    "meta a number": stored_bytes(meta=text("1")),
    "meta deep": stored_bytes(meta=text("[" * 100_000)),
    "format": stored_bytes(format="drmdp solution 99"),
    "no format": stored_bytes(without="format"),
    "status": stored_bytes(status="fine"),
    "no status": stored_bytes(without="status"),
    "field missing": stored_bytes(without="seconds"),
    "field unknown": stored_bytes(surprise=1),
    "no history": stored_bytes(history=[]),
    "history no list": stored_bytes(history=3),
    "history field": stored_bytes(history=[{"iteration": 0}]),
    "history text": stored_bytes(
        history=[dict.fromkeys([f.name for f in dataclasses.fields(drmdp.Record)], "x")]
    ),
    "states": stored_bytes(states=["a"]),
    "states number": stored_bytes(states=3),
    "settings": stored_bytes(settings=[]),
    "duality gap": stored_bytes(duality_gap="small"),
    "seconds": stored_bytes(seconds=None),
    "fingerprint": stored_bytes(fingerprint=7),
    "value shape": stored_bytes(value=np.zeros(4)),
    "policy shape": stored_bytes(policy=np.zeros((A, S))),
    "kernel shape": stored_bytes(kernel=np.zeros((S, A))),
    "dtype": stored_bytes(lower=np.zeros(S, np.float32)),
    "text array": stored_bytes(lower=np.array(["a"] * S)),
    "object array": stored_bytes(lower=np.full(S, None)),
    "states twice as many": stored_bytes(states=list(range(2 * S))),
    "crossed bounds": stored_bytes(lower=np.full(S, 1e300)),
    "value outside": stored_bytes(value=np.full(S, -1.0)),
    "NaN bounds": stored_bytes(upper=np.full(S, np.nan)),
    "NaN policy": stored_bytes(policy=np.full((S, A), np.nan)),
    "policy sums": stored_bytes(policy=np.full((S, A), 0.4)),
    "negative policy": stored_bytes(policy=np.array([[2.0, -1.0]] * S)),
    "NaN kernel": stored_bytes(kernel=np.full((S, A, S), np.nan)),
    "huge kernel": stored_bytes(kernel=np.full((S, A, S), 7.0)),
    "no settings": stored_bytes(settings={}),
    "settings tol": stored_bytes(
        settings={"method": "a", "backend": "b", "ambiguity": "c", "tol": "<b>"}
    ),
    "settings method": stored_bytes(
        settings={"method": None, "backend": "b", "ambiguity": "c", "tol": 1.0}
    ),
    "names twice in meta": stored_bytes(
        meta=text('{"format": "drmdp solution 1", "format": "drmdp solution 1"}')
    ),
    "number of 5000 digits": stored_bytes(meta=text('{"format": ' + "9" * 5000 + "}")),
    "empty strings": with_members(lower=EMPTY),
    "sparse kernel, NaN": stored_bytes(thin(), **{"kernel.entry_mass": np.full(18, np.nan)}),
    "sparse kernel, index": stored_bytes(
        thin(), **{"kernel.entry_state": np.full(18, 3, np.int32)}
    ),
    "sparse kernel, pointer": stored_bytes(
        thin(), **{"kernel.entry_ptr": np.array([0, 9, 0, 9, 12, 15, 18], np.int32)}
    ),
    "sparse kernel, short": stored_bytes(
        thin(), **{"kernel.entry_ptr": np.array([0, 3, 6, 9, 12, 15, 17], np.int32)}
    ),
    "sparse kernel, size": stored_bytes(thin(), **{"kernel.entry_mass": np.zeros(17)}),
    "sparse kernel, dtype": stored_bytes(thin(), **{"kernel.entry_state": np.zeros(18)}),
    "sparse kernel, no pointer": stored_bytes(
        thin(), **{"kernel.entry_ptr": np.array([], np.int32)}
    ),
    "sparse kernel, part missing": stored_bytes(thin(), **{"kernel.entry_mass": None}),
    "header too large": with_members(
        lower=npy_bytes().replace(b"(3, 3), }" + b" " * 9, b"(999999999999,), }")
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_refused_with_their_path(tmp_path, kind):
    path = tmp_path / "some file.npz"
    path.write_bytes(FOREIGN[kind])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(drmdp.InputError) as error:
            drmdp.Solution.load(path)
    assert str(error.value).startswith(f"{path}: not a saved solution: ")
    assert len(str(error.value)) < 700
    assert not {"pickled", "allow_pickle", "unsafely", "trust"} & set(str(error.value).split())
    assert "\n" not in str(error.value)
    assert not caught


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (b"import drmdp\n", "a text"),
        (b"\n <!DOCTYPE html><html>", "a page of HTML"),
        (b' {"a": 1}', "JSON"),
        (npy_bytes(), "one array (.npy)"),
        (pickle.dumps({"value": 1}), "a pickle, which is never opened"),
        (b"PAR1" + bytes(100), "a Parquet table"),
        (zip_bytes(), "a zip archive of other things"),
        (stored_bytes()[:-100], "a damaged zip archive"),
        (b"\xff\x00\x01" * 100, "a file of another kind"),
        (("é" * 3000).encode()[1:], "a file of another kind"),
        (("xé" * 3000).encode(), "a text"),  # cut in the middle of a letter
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_loading_says_what_the_file_is(tmp_path, content, what):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(drmdp.InputError) as error:
        drmdp.Solution.load(path)
    assert str(error.value) == f"{path}: not a saved solution: it is {what}"


def test_models_and_solutions_know_each_other(tmp_path):
    drmdp.write(drmdp.instances.machine(4), tmp_path / "m.npz")
    with pytest.raises(drmdp.InputError, match=r"m.npz: not a saved solution: it is a model$"):
        drmdp.Solution.load(tmp_path / "m.npz")
    hand_made().save(tmp_path / "s.npz")
    with pytest.raises(
        drmdp.InputError, match=r"s.npz: not a readable .npz file: it is a saved solution$"
    ):
        drmdp.read(tmp_path / "s.npz")


def test_large_arrays_in_small_files_are_refused_before_they_are_read(tmp_path, monkeypatch):
    """Unknown arrays, and known ones that do not fit."""
    path = tmp_path / "s.npz"
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(4_000_000))
    bytes_ = io.BytesIO()
    np.save(bytes_, np.zeros(32_000_000, dtype=np.uint8))
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
        zipfile.ZipFile(io.BytesIO(stored_bytes())) as old,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
        new.writestr("surprise.npy", zeros.getvalue())
    other = tmp_path / "t.npz"
    other.write_bytes(with_members(meta=bytes_.getvalue()))
    tracemalloc.start()
    with pytest.raises(drmdp.InputError, match=r"unknown array 'surprise'"):
        drmdp.Solution.load(path)
    monkeypatch.setattr("drmdp.io.archives.memory_limit", lambda: 32_000_000 * 40)
    with pytest.raises(
        drmdp.InputError, match=r"needs 128000\d+ bytes, which do not fit in memory"
    ):
        drmdp.Solution.load(other)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_numbers_of_another_byte_order_are_read(tmp_path):
    path, good = tmp_path / "s.npz", thin()
    good.save(path)
    with np.load(path) as stored:
        swapped = {
            name: array.astype(array.dtype.newbyteorder(">")) for name, array in stored.items()
        }
    np.savez(path, **swapped)
    found = drmdp.Solution.load(path)
    np.testing.assert_array_equal(found.policy, good.policy)
    np.testing.assert_array_equal(found.kernel.rows(1), good.kernel.rows(1))
    np.testing.assert_array_equal(found.kernel @ np.arange(S), good.kernel @ np.arange(S))


class Trap:
    """Sets a flag when it is unpickled."""

    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_a_pickle_in_the_file_is_not_run(tmp_path):
    path = tmp_path / "solution.npz"
    path.write_bytes(stored_bytes(lower=np.full(S, Trap())))
    with pytest.raises(drmdp.InputError, match="not a saved solution"):
        drmdp.Solution.load(path)
    assert not Trap.sprung


def test_a_missing_file_and_a_directory_are_refused_with_their_path(tmp_path):
    with pytest.raises(drmdp.InputError, match=r"gone.npz: No such file or directory"):
        drmdp.Solution.load(tmp_path / "gone.npz")
    with pytest.raises(
        drmdp.InputError, match=f"{tmp_path.name}: solution.json: No such file or directory"
    ):
        drmdp.Solution.load(tmp_path)


def test_an_unchanged_copy_is_accepted(tmp_path):
    path = tmp_path / "copy.npz"
    path.write_bytes(stored_bytes())
    assert_same(drmdp.Solution.load(path), hand_made())


GOOD = {"dense": stored_bytes(), "sparse": stored_bytes(thin())}


@st.composite
def spoiled(draw, kind):
    """Draw bytes of a saved solution with some changed, taken out, put in or moved."""
    data = bytearray(GOOD[kind])
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        size = draw(st.integers(1, 8))
        match draw(st.sampled_from(["flip", "set", "cut", "insert", "truncate", "swap"])):
            case "flip":
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "set":
                data[at : at + size] = draw(st.binary(min_size=size, max_size=size))
            case "cut":
                del data[at : at + size]
            case "insert":
                data[at:at] = draw(st.binary(min_size=1, max_size=size))
            case "truncate":
                del data[max(at, 1) :]
            case "swap":
                other = draw(st.integers(0, len(data) - 1))
                data[at], data[other] = data[other], data[at]
    return bytes(data)


@pytest.mark.parametrize("kind", GOOD)
@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(data=st.data())
def test_spoiled_bytes_give_the_same_solution_or_an_error(kind, data):
    spoilt = data.draw(spoiled(kind))
    handle, path = tempfile.mkstemp()
    try:
        os.write(handle, spoilt)
        os.close(handle)
        with contextlib.suppress(drmdp.InputError):
            assert_same(drmdp.Solution.load(path), hand_made() if kind == "dense" else thin())
    finally:
        os.unlink(path)


# ---------------------------------------------------------------------- made later


def test_the_kernel_is_made_once_and_only_if_somebody_asks(monkeypatch):
    from drmdp.operators.nature_rows import SweepNature

    made, usual = [], SweepNature.kernel
    monkeypatch.setattr(SweepNature, "kernel", lambda self: (made.append(1), usual(self))[1])
    found = drmdp.solve(drmdp.instances.machine(5), drmdp.Wasserstein(0.3))
    repr(found)
    assert not made
    again = pickle.loads(pickle.dumps(found))
    assert found.kernel is found.kernel
    assert len(made) == 1
    np.testing.assert_array_equal(again.kernel, found.kernel)
    assert not found.kernel.flags.writeable
    assert not again.kernel.flags.writeable
    with pytest.raises(AttributeError, match="kernal"):
        found.kernal  # noqa: B018
