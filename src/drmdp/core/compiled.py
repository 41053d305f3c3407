"""How the kernels are compiled.

Numba counts references to arrays. Passing or slicing an array costs two atomic instructions; they took up to 40 % of a sweep. Kernels that never
allocate need no counting, so we switch it off (`_nrt`, which Numba itself uses but does not document). Python makes the work space; a kernel and all that
it calls only work in it, and one that allocates does not compile.

**The same bits every time.** An object of Numba holds weak copies of the functions that its own calls, each optimised once more there, and a process
uses the first copy it has seen. Under `FAST` the copies add in different orders, so that bits would depend on what was compiled or loaded
before. `OwnCopies` makes each copy private to its object: a kernel gives the same bits in the process that compiles it and in all that load it.

What is kept belongs to this version and to this file: Numba itself looks at the file of a function, not at those of its callees or at how all are compiled.

Numba tells when it compiles one of our kernels, and `drmdp.core.clock` stops meanwhile.

What was compiled is kept beside the sources, or in the user's cache, or where NUMBA_CACHE_DIR says. Where none of them can be written to, as for
a user without a home in a container, a process keeps it in a temporary folder of its own. So this module is imported before any kernel.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drmdp._version import __version__
from drmdp.core import clock
from drmdp.core.environment import check_threads

check_threads("NUMBA_NUM_THREADS")

import numba  # noqa: E402  (looks at the environment)
from numba.core import event  # noqa: E402
from numba.core.ccallback import CFunc  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler  # noqa: E402


class _Library(JITCodeLibrary):
    """What Numba makes of one function and all that it calls."""

    def _finalize_final_module(self) -> None:
        """Keep the callees private just before machine code is made; callers link a copy in which they are not."""
        shared = self._final_module.clone()
        for function in shared.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"
        self._shared_module = shared
        for function in self._final_module.functions:
            if function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        super()._finalize_final_module()  # type: ignore[no-untyped-call]


class OwnCopies(Compiler):
    """Numba's compiler, with our library."""

    def define_pipelines(self) -> Any:
        """Numba's own; it takes a library that is there."""
        state = self.state
        if state.library is None:
            state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
            state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-untyped-call]


KERNEL: dict[str, Any] = {
    "cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False, "pipeline_class": OwnCopies,
}  # fmt: skip
"""For functions that Python calls."""

LEAN: dict[str, Any] = KERNEL | {"no_cpython_wrapper": True}
"""For those that only compiled code calls: a wrapper would take a quarter of the time to compile."""

INLINE: dict[str, Any] = LEAN | {"inline": "always"}
"""For those called from one or two places: to become part of the caller saves their own machine code, a third of the time again."""


FAST = {"reassoc", "contract", "nsz", "arcp"}
"""For loops whose sums may be vectorised (`fastmath`); NaN and inf keep their meaning."""

STAMP = f"{__version__} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
"""Of the version, and of how kernels are compiled."""


def _keep() -> None:
    """Make a folder for what is compiled, if Numba finds none; it is gone when the process ends."""
    try:
        numba.njit(cache=True)(_keep)  # looks for a place, and compiles nothing yet
    except RuntimeError:
        numba.config.CACHE_DIR = tempfile.mkdtemp(prefix="drmdp-")  # type: ignore[attr-defined]
        atexit.register(shutil.rmtree, numba.config.CACHE_DIR, ignore_errors=True)  # type: ignore[attr-defined]


_keep()


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's decorator, for all our kernels; what is kept is stamped."""

    def decorate(function: Callable[..., Any]) -> Any:
        return _stamped(numba.njit(**options)(function))

    return decorate


def _stamped(compiled: Any) -> Any:
    """Let what was kept by another version, or compiled in another way, be compiled again."""
    if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT leaves functions as they are
        file = compiled._cache._cache_file
        file._source_stamp = (file._source_stamp, STAMP)
    return compiled


def wall(function: Callable[..., Any], result: Any, *examples: Any) -> Any:
    """`function` compiled for a result and arguments like the examples, to be handed to kernels that call it by its address.

    A kernel is optimised again with all that it calls, in each of its callers; what is behind a wall is compiled once.
    """
    kind: Any = numba.typeof
    made: Any = CFunc(
        function, (tuple(map(kind, examples)), kind(result)), {}, {"error_model": "numpy"}, pipeline_class=OwnCopies
    )
    made.enable_caching()
    _stamped(made)
    clock.begin_compiling()
    done = False
    try:
        made.compile()
        done = made.cache_hits > 0
    finally:
        clock.end_compiling(counts=not done)
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
