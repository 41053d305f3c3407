"""A checker of proofs that shares no line with drmdp; see `drmdp_check.__main__`, which also runs as a single file."""

from drmdp_check.__main__ import Refused, check, main, show

__all__ = ["Refused", "check", "main", "show"]
