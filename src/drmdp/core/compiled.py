"""How the kernels are compiled.

Numba counts references to arrays. Passing or slicing an array costs two atomic instructions; they took up to 40 % of a sweep. Kernels that never
allocate need no counting, so we switch it off (`_nrt`, which Numba itself uses but does not document). Python makes the work space; a kernel and all that
it calls only work in it, and one that allocates does not compile.

Numba tells when it compiles one of our kernels, and `drmdp.core.clock` stops meanwhile.

What was compiled is kept beside the sources, or in the user's cache, or where NUMBA_CACHE_DIR says. Where none of them can be written to, as for
a user without a home in a container, a process keeps it in a temporary folder of its own. So this module is imported before any kernel.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from drmdp.core import clock
from drmdp.core.environment import check_threads

check_threads("NUMBA_NUM_THREADS")

from numba import cfunc, config, njit, typeof  # noqa: E402  (looks at the environment)
from numba.core import event  # noqa: E402

KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
"""For functions that Python calls."""

LEAN: dict[str, Any] = KERNEL | {"no_cpython_wrapper": True}
"""For those that only compiled code calls: a wrapper would take a quarter of the time to compile."""

INLINE: dict[str, Any] = LEAN | {"inline": "always"}
"""For those called from one or two places: to become part of the caller saves their own machine code, a third of the time again."""


FAST = {"reassoc", "contract", "nsz", "arcp"}
"""For loops whose sums may be vectorised (`fastmath`); NaN and inf keep their meaning."""


def _keep() -> None:
    """Make a folder for what is compiled, if Numba finds none; it is gone when the process ends."""
    try:
        njit(cache=True)(_keep)  # looks for a place, and compiles nothing yet
    except RuntimeError:
        config.CACHE_DIR = tempfile.mkdtemp(prefix="drmdp-")  # type: ignore[attr-defined]
        atexit.register(shutil.rmtree, config.CACHE_DIR, ignore_errors=True)  # type: ignore[attr-defined]


_keep()


def wall(function: Callable[..., Any], result: Any, *examples: Any) -> Any:
    """`function` compiled for a result and arguments like the examples, to be handed to kernels that call it by its address.

    A kernel is optimised again with all that it calls, in each of its callers; what is behind a wall is compiled once.
    """
    kind: Any = typeof
    made: Any = None
    clock.begin_compiling()
    try:
        made = cfunc(kind(result)(*map(kind, examples)), cache=True, error_model="numpy")(function)
    finally:
        clock.end_compiling(counts=made is None or made.cache_hits == 0)
    return made


class _Listener(event.Listener):
    """Stops the clock while a kernel of ours is compiled; Numba tells of the end even if that fails."""

    def on_start(self, event: Any) -> None:
        if _ours(event):
            clock.begin_compiling()

    def on_end(self, event: Any) -> None:
        if _ours(event):
            clock.end_compiling()


def _ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("drmdp.")


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
