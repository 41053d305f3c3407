"""How the kernels are compiled."""

from typing import Any

INNER: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""For functions that only compiled code calls: the wrappers Python would need take a quarter of the time to compile."""

INLINE: dict[str, Any] = INNER | {"inline": "always"}
"""For those called from one or two places: to become part of the caller saves their own machine code, a third of the time again."""
