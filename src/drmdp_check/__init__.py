"""A checker of proofs that shares no line with drmdp; see `drmdp_check.__main__`, which also runs as a single file."""

__all__ = ["Refused", "check", "main", "show"]


def __getattr__(name):
    """What is asked for, from there; `python -m drmdp_check` must be the first to bring it."""
    if name not in __all__:
        raise AttributeError(f"module 'drmdp_check' has no attribute {name!r}")
    from drmdp_check import __main__ as checker

    return getattr(checker, name)
