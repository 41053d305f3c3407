"""How the kernels are compiled.

Numba counts references to arrays. Passing or slicing an array costs two atomic instructions; they took up to 40 % of a sweep. Kernels that never
allocate need no counting, so we switch it off (`_nrt`, which Numba itself uses but does not document). Python makes the work space; a kernel and all that
it calls only work in it, and one that allocates does not compile.

**The same bits every time.** An object of Numba holds weak copies of the functions that its own calls, each optimised once more there, and a process
uses the first copy it has seen. Under `FAST` the copies add in different orders, so that bits would depend on what was compiled or loaded
before. `OwnCopies` makes each copy private to its object: a kernel gives the same bits in the process that compiles it and in all that load it.
A function has the `fastmath` that it asks for, or none: Numba would give it that of whoever calls it first, and a sum that makes up for rounding would
be simplified away. `OwnCopies` also names what it compiles by its content. Numba counts instead, so that two closures of one name that are kept by two
processes could both be number 57.

What was compiled is kept; `drmdp.core.kept` says where, and for whom.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from typing import Any

from drmdp.core.environment import check_threads

check_threads("NUMBA_NUM_THREADS")

import numba  # noqa: E402  (looks at the environment)
from numba.core import cgutils, types  # noqa: E402
from numba.core.ccallback import CFunc  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.dispatcher import Dispatcher  # noqa: E402
from numba.core.typing.typeof import typeof_impl  # noqa: E402
from numba.experimental.function_type import FunctionModel  # noqa: E402
from numba.extending import NativeValue, register_model, unbox  # noqa: E402

from drmdp.core.content import Content, UnknownError  # noqa: E402
from drmdp.core.kept import Kept  # noqa: E402


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
    """Numba's compiler, with our library and our names."""

    def define_pipelines(self) -> Any:
        """Numba's own; it takes a library that is there."""
        state = self.state
        with contextlib.suppress(UnknownError):  # then it is not kept, and the number is as good
            text = str(Content(state.func_id.func, state.args))
            state.func_id.unique_id = hashlib.sha256(text.encode()).hexdigest()[:16]
        if state.library is None:
            state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
            state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-untyped-call]


KERNEL: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False, "pipeline_class": OwnCopies,
}  # fmt: skip
"""For functions that Python calls."""

LEAN: dict[str, Any] = KERNEL | {"no_cpython_wrapper": True}
"""For those that only compiled code calls: a wrapper would take a quarter of the time to compile."""

INLINE: dict[str, Any] = LEAN | {"inline": "always"}
"""For those called from one or two places: to become part of the caller saves their own machine code, a third of the time again."""


FAST = {"reassoc", "contract", "nsz", "arcp"}
"""For loops whose sums may be vectorised (`fastmath`); NaN and inf keep their meaning."""

_codes = [f.__code__ for f in (_Library._finalize_final_module, OwnCopies.define_pipelines)]
HOW = "".join(f"{code.co_code.hex()} {code.co_consts} {code.co_names}" for code in _codes)
"""What is done to every kernel belongs to the key of each."""


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Numba's decorator, for all our kernels, with our cache; a function without `fastmath` has none, and not that of the first who calls it."""
    options = {"fastmath": False} | options

    def decorate(function: Callable[..., Any]) -> Any:
        compiled: Any = numba.njit(**options)(function)
        if issubclass(type(compiled), Dispatcher):  # not where NUMBA_DISABLE_JIT leaves functions as they are
            compiled._cache = Kept(function, options, HOW)
        return compiled

    return decorate


class Wall(CFunc):
    """A function that kernels call by its address."""

    kind: Any = None


class WallType(types.FunctionType):
    """Its type: Numba's own would import a module and call Python twice for every wall of every call, which took 15 µs each."""


register_model(WallType)(FunctionModel)


@unbox(WallType)  # type: ignore[untyped-decorator, no-untyped-call]
def _unbox(kind: Any, wall: Any, c: Any) -> Any:
    """The address is read, and nothing else."""
    made = cgutils.create_struct_proxy(kind)(c.context, c.builder)  # type: ignore[no-untyped-call]
    address = c.pyapi.object_getattr_string(wall, "_wrapper_address")
    made.c_addr = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(made._getvalue())  # type: ignore[no-untyped-call]


class Walls(tuple[Any, ...]):
    """Walls, and settings beside them, for a kernel; the type is made once, and not at each call, which took 80 µs."""

    kind: Any = None


@typeof_impl.register(Wall)
@typeof_impl.register(Walls)
def _type_of(given: Any, context: Any) -> Any:
    if given.kind is None:
        known: Any = numba.typeof
        given.kind = known(tuple(given)) if isinstance(given, Walls) else WallType(given._sig)
    return given.kind


def wall(function: Callable[..., Any], result: Any, *examples: Any) -> Any:
    """`function` compiled for a result and arguments like the examples, to be handed to kernels that call it by its address.

    A kernel is optimised again with all that it calls, in each of its callers; what is behind a wall is compiled once.
    """
    kind: Any = numba.typeof
    options = {"error_model": "numpy", "fastmath": False}
    made: Any = Wall(function, (tuple(map(kind, examples)), kind(result)), {}, options, pipeline_class=OwnCopies)
    made._cache = Kept(function, {"wall": True} | options, HOW)
    made.compile()
    return made


if hasattr(os, "register_at_fork"):
    # a fork waits for who compiles: in the child nobody would end it, and nothing could be compiled there
    done: Any = global_compiler_lock.release
    os.register_at_fork(before=global_compiler_lock.acquire, after_in_parent=done, after_in_child=done)
