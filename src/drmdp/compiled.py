"""How the kernels are compiled."""

from collections.abc import Callable
from typing import Any

INNER: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""For functions that only compiled code calls: the wrappers Python would need take a quarter of the time to compile."""

OUTER: dict[str, Any] = INNER | {"no_cpython_wrapper": False}
"""For kernels that Python calls; nothing else does."""

INLINE: dict[str, Any] = INNER | {"inline": "always"}
"""For those called from one or two places: to become part of the caller saves their own machine code, a third of the time again."""


def wall(function: Callable[..., Any], result: Any, *examples: Any) -> Any:
    """`function` compiled for a result and arguments like the examples, to be handed to kernels that call it by its address.

    A kernel is optimised again with all that it calls, in each of its callers; what is behind a wall is compiled once.
    """
    from numba import cfunc, typeof

    kind: Any = typeof
    return cfunc(kind(result)(*map(kind, examples)), cache=True, error_model="numpy")(function)
