"""How the kernels are compiled.

An array that is handed on or cut into a slice is counted, by atomic instructions that took up to 40 % of a sweep. Functions that allocate nothing
need no counting (`_nrt`, which Numba itself uses but does not document): Python makes the scratch memory, and a kernel and all that it calls only work in it.
"""

from collections.abc import Callable
from typing import Any

KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
"""For functions that Python calls."""

LEAN: dict[str, Any] = KERNEL | {"no_cpython_wrapper": True}
"""For those that only compiled code calls: a wrapper would take a quarter of the time to compile."""

INNER: dict[str, Any] = LEAN | {"_nrt": True}
"""Like LEAN, for those that allocate."""

INLINE: dict[str, Any] = LEAN | {"inline": "always"}
"""For those called from one or two places: to become part of the caller saves their own machine code, a third of the time again."""


def wall(function: Callable[..., Any], result: Any, *examples: Any) -> Any:
    """`function` compiled for a result and arguments like the examples, to be handed to kernels that call it by its address.

    A kernel is optimised again with all that it calls, in each of its callers; what is behind a wall is compiled once.
    """
    from numba import cfunc, typeof

    kind: Any = typeof
    return cfunc(kind(result)(*map(kind, examples)), cache=True, error_model="numpy")(function)
