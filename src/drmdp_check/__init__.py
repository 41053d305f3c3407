"""A checker of proofs that shares no line with drmdp; see `drmdp_check.__main__`, which also runs
as a single file.
"""

from typing import Any

__all__ = ["Refused", "check", "main", "show"]


def __getattr__(name: str) -> Any:
    """Import from `__main__` on demand, which `python -m drmdp_check` must be the first to do."""
    if name not in __all__:
        raise AttributeError(f"module 'drmdp_check' has no attribute {name!r}")
    from drmdp_check import __main__ as checker

    return getattr(checker, name)
