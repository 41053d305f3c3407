"""Functions from outside: what they are given, whatever made them, and what is said of those that
are wrong.
"""

import ctypes
import math
import re
import shutil
import subprocess
from ctypes import CFUNCTYPE, POINTER, c_double, c_int64, c_void_p
from pathlib import Path

import numpy as np
import pytest
from scipy import LowLevelCallable

import drmdp
from drmdp import _native
from drmdp.sets import divergence, registry
from drmdp.sets.outside import by_address
from recorded import record

ROW = POINTER(c_double)
TYPES = {
    "row": (c_double, ROW, ROW, c_int64, ROW, ROW),
    "bound": (c_double, ROW, ROW, c_int64, c_double),
    "cost": (ROW, ROW, c_int64, c_double, c_double),
}
EPS = 2.0**-52
TV = r"""
#include <math.h>
#include <stdint.h>
double row(double t, const double *y, const double *u, int64_t K, double *z, double *more, void *data) {
    double top = 0.0, unit = *(double *)data;
    for (int64_t j = 0; j < K; ++j) z[j] = t * u[j] < -unit ? 0.0 : y[j], top += y[j] - z[j];
    return top;
}
double bound(double t, const double *y, const double *u, int64_t K, double off, void *data) {
    double total = 0.0, unit = *(double *)data;
    for (int64_t j = 0; j < K; ++j) total += y[j] * fmax(t * u[j], -unit);
    return total * (1.0 - (off + K + 4) * 0x1p-52);
}
double cost(const double *y, const double *z, int64_t K, double top, double off, void *data) {
    double total = top, unit = *(double *)data;
    for (int64_t j = 0; j < K; ++j) total += fabs(z[j] - y[j]);
    return unit * (total / 2 + (off + K + 4) * 0x1p-52);
}
"""


def row(t, y, u, K, z, more):
    top = 0.0
    for j in range(K):
        z[j] = 0.0 if t * u[j] < -1.0 else y[j]
        top += y[j] - z[j]
    return top


def bound(t, y, u, K, off):
    return sum(y[j] * max(t * u[j], -1.0) for j in range(K)) * (1.0 - (off + K + 4) * EPS)


def cost(y, z, K, top, off):
    return (top + sum(abs(z[j] - y[j]) for j in range(K))) / 2 + (off + K + 4) * EPS


def by_ctypes(**others):
    given = {"row": row, "bound": bound, "cost": cost} | others
    return [CFUNCTYPE(c_double, *TYPES[name])(given[name]) for name in TYPES]


@pytest.fixture
def solved(monkeypatch):
    """Solves by the functions of total variation, or others."""

    def solve(functions, radius=0.3, **settings):
        monkeypatch.setitem(divergence.KINDS, "own", divergence.KINDS["tv"])
        for around in ("mean", "kernels"):
            monkeypatch.setitem(registry.ENTRIES, ("own", around), by_address(*functions))
        return drmdp.solve(MODEL, drmdp.Divergence(radius, "own", **settings), tol=1e-9)

    return solve


MODEL = drmdp.instances.perturb(drmdp.instances.garnet(12, 3, seed=3), 3, seed=4)
VARIANTS = [
    {"around": a, "rectangular": r, "support": s}
    for a in ("mean", "kernels")
    for r, s in (("s", "observed"), ("sa", "all"))
]


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
def test_functions_of_python_are_solved_and_proved(solved, settings):
    want = drmdp.solve(MODEL, drmdp.Divergence(0.3, "tv", **settings), tol=1e-9)
    found = solved(by_ctypes(), **settings)
    assert found.status == "solved"
    np.testing.assert_allclose(found.value, want.value, rtol=0, atol=2e-9)
    again = solved([LowLevelCallable(own) for own in by_ctypes()], **settings)
    assert found.lower.tobytes() == again.lower.tobytes()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("tv")
    (folder / "tv.c").write_text(TV)
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", folder / "tv.so", folder / "tv.c", "-lm"],
        check=True,
    )
    return ctypes.CDLL(str(folder / "tv.so"))


def test_functions_of_c_have_data_of_their_own(solved, library):
    """What is moved costs `unit` of each: a radius of 0.6 at a unit of 2 is one of 0.3."""
    unit = c_double(2.0)
    for name, types in TYPES.items():
        own = getattr(library, name)
        own.restype, own.argtypes = c_double, (*types, c_void_p)
    data = ctypes.cast(ctypes.pointer(unit), c_void_p)
    functions = [LowLevelCallable(getattr(library, name), data) for name in TYPES]
    found = solved(functions, 0.6)
    np.testing.assert_allclose(
        found.value, drmdp.solve(MODEL, drmdp.Divergence(0.3, "tv"), tol=1e-9).value, atol=2e-9
    )
    several = drmdp.solve(MODEL, drmdp.Divergence(0.6, "own"), tol=1e-9, threads=2)
    assert several.lower.tobytes() == found.lower.tobytes()


@pytest.mark.parametrize(
    "given",
    [row, 4711, None, ctypes.CDLL(None).abs],
    ids=["Python", "number", "nothing", "untyped"],
)
def test_what_is_no_function_is_refused(given):
    with pytest.raises(
        drmdp.InputError,
        match="cost: expected a LowLevelCallable, a function of ctypes with argtypes",
    ):
        by_address(*by_ctypes()[:2], given)


def test_a_signature_is_checked():
    fine = by_ctypes()
    with pytest.raises(
        drmdp.InputError,
        match=r"bound: expected double \(double, double \*, .*got double \(double\)$",
    ):
        by_address(fine[0], CFUNCTYPE(c_double, c_double)(abs), fine[2])
    with pytest.raises(
        drmdp.InputError, match=r"row: expected .*got double \(double \*, double \*, long"
    ):
        by_address(*fine[::-1])
    with pytest.raises(drmdp.InputError, match="cost: expected a LowLevelCallable"):
        by_address(*fine[:2], CFUNCTYPE(c_double, *TYPES["cost"])(0))
    for wrong in (
        None,
        (),
        (1.0, None),
        (1.0, None, fine),
        (1.0, None, (fine[0],)),
        (1.0, None, (None,) * 3),
    ):
        with pytest.raises(ValueError, match=r"^\w+: expected"):
            _native.check_functions(wrong)


def test_a_routine_without_its_functions_is_refused(solved):
    given = [
        call
        for call in record(lambda: solved(by_ctypes()))
        if call[0] in ("sweep", "respond", "prove")
    ]
    assert {name for name, _ in given} >= {"sweep", "prove"}
    for name, arguments in given:
        for wrong in (
            None,
            (1.0, None),
            (1.0, None, ()),
            (1.0, None, arguments[-1][2][::-1]),
            (1.0, None, (None,) * 3),
        ):
            with pytest.raises(ValueError, match=r"^\w+: expected"):
                getattr(_native, name)(*arguments[:-1], wrong)


WRONG = {
    "row: expected probabilities that add up to 1": {
        "nothing written": {"row": lambda t, y, u, K, z, more: 0.0},
        "an error": {"row": lambda *given: 1 // 0},
        "half of it": {"row": lambda t, y, u, K, z, more: row(t, y, u, K, z, more) / 2 + 0.1},
        "a negative top": {"row": lambda t, y, u, K, z, more: row(t, y, u, K, z, more) - 1.0},
        "a slope": {
            "row": lambda t, y, u, K, z, more: [
                row(t, y, u, K, z, more),
                more.__setitem__(0, math.nan),
            ][0]
        },
    },
    "cost: expected 0 at the data and more elsewhere, got": {
        "nan": {"cost": lambda *given: math.nan},
        "less than 0": {"cost": lambda *given: -1.0},
        "nothing": {"cost": lambda *given: 0.0},
    },
    "bound: expected at least what the row has that `row` writes, got": {
        "nan": {"bound": lambda *given: math.nan},
        "false": {"bound": lambda t, y, u, K, off: t * sum(y[j] * u[j] for j in range(K)) - 1e-6},
    },
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("words", WRONG)
def test_what_a_function_must_not_do_is_said(solved, words):
    for name, wrong in WRONG[words].items():
        with pytest.raises(
            drmdp.InputError, match=words + r".*y = \[.*\], [uz] = \[.*\], (size|top) = "
        ) as told:
            solved(by_ctypes(**wrong))
        assert told.value, name


def test_a_poor_function_makes_no_bound_false(solved):
    """Rows that are not the best, and a bound of 0."""
    want = drmdp.solve(MODEL, drmdp.Divergence(0.3, "tv"), tol=1e-9)

    def poor(t, y, u, K, z, more):
        return row(t / 2, y, u, K, z, more)

    for others in ({"row": poor}, {"bound": lambda *given: 0.0}):
        found = solved(by_ctypes(**others))
        assert (found.lower <= want.upper).all()
        assert (found.upper >= want.lower).all()


def test_the_example_of_the_docs_is_that_of_the_package(monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text("utf-8")
    [code] = [
        cell
        for cell in re.findall(r"```\{code-cell\}\n(.*?)```", page, flags=re.DOTALL)
        if "by_address" in cell
    ]
    monkeypatch.setattr(divergence, "KINDS", dict(divergence.KINDS))
    monkeypatch.setattr(registry, "ENTRIES", dict(registry.ENTRIES))
    exec(code, {"drmdp": drmdp})
    own, want = capsys.readouterr().out.splitlines()
    assert own.split(",")[0] == want.split(",")[0]
