"""How the kernels are compiled.

An array that is handed on or cut into a slice is counted, by atomic instructions that took up to 40 % of a sweep. Functions that allocate nothing
need no counting (`_nrt`): Python makes the scratch memory, and a kernel and all that it calls only work in it.
"""

from typing import Any

KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
"""For functions that Python calls."""

LEAN: dict[str, Any] = KERNEL | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For those that only compiled code calls: wrappers would take a quarter of the time to compile."""

INNER: dict[str, Any] = LEAN | {"_nrt": True}
"""The same for those that allocate."""

INLINE: dict[str, Any] = LEAN | {"inline": "always"}
"""For those called from one or two places: to become part of the caller saves their own machine code, a third of the time again."""
