"""Sets from outside: three functions of a row, by their addresses, make an entry of the registry.

C(z | ŷ) is what a row z costs against the data ŷ: convex, 0 at ŷ and more elsewhere. A row has K
next states with stakes u in [−1, 0], and nature always has one of stake 0, the top, listed or not.
A function is a LowLevelCallable of SciPy, a function of ctypes, or a `numba.cfunc`:

    double row(double size, double *y, double *u, int64_t K, double *z, double *more)
    double bound(double size, double *y, double *u, int64_t K, double off)
    double cost(double *y, double *z, int64_t K, double top, double off)

with `void *` for a last argument if it has data of its own. `size` is a price t ≤ 1e14, or with
`by_kernel` a radius that every row has for itself.

* `row` writes the K numbers z that maximise t z·u − C(z | ŷ), or z·u where C(z | ŷ) ≤ radius; it
  returns what a top has that is not listed, and may write the slope d(z·u)/dt to more[0], which is
  0 before: with it fewer prices are tried.
* `bound` is at least that maximum, and `cost` at least C(z | ŷ), `top` being what z has at a top
  that is not listed, whatever rounding does: they are the proof. Each y and z is off by at most
  `off`·2⁻⁵², relatively.

They are called from several threads and without the lock of the interpreter, which functions of
ctypes take themselves.
"""

from __future__ import annotations

from typing import Any

from drmdp import _native
from drmdp.errors import InputError, shown
from drmdp.sets.registry import Keeps, SetEntry

NAMES = ("row", "bound", "cost")


def by_address(row: Any, bound: Any, cost: Any, by_kernel: bool = False) -> SetEntry:
    """The entry of a set with one budget for the rows of a state, or (`by_kernel`) one for each
    row.
    """
    functions = tuple(map(_callable, NAMES, (row, bound, cost)))
    try:
        _native.check_functions(functions)
    except ValueError as fault:
        raise InputError(str(fault)) from None
    keeps = Keeps(by_kernel, not by_kernel, width=0 if by_kernel else 3)
    response, certificate = "drmdp.operators.native:OUTSIDE", "drmdp.certificate.native:OUTSIDE"
    return SetEntry(response, certificate, keeps, functions=functions)


def _callable(name: str, function: Any) -> Any:
    from scipy import LowLevelCallable

    if isinstance(function, LowLevelCallable):
        return function
    try:
        return LowLevelCallable(getattr(function, "ctypes", function))
    except (TypeError, ValueError, AttributeError):
        kinds = "a LowLevelCallable, a function of ctypes with argtypes and restype"
        what = f"expected {kinds}, or a numba.cfunc, got {shown(function)}"
        raise InputError(f"{name}: {what}") from None
