"""Environment variables of the packages we stand on: a number of threads that is none would end the process with their traceback."""

from __future__ import annotations

import os
import warnings

from drmdp.errors import Notice, shown


def check_threads(name: str) -> None:
    """Forget a variable that holds no number of threads, and say so."""
    text = os.environ.get(name)
    if text is None or (text.strip().isdigit() and 0 < int(text) < 10_000):
        return
    del os.environ[name]
    warnings.warn(f"{name}={shown(text)} is no number of threads and is ignored", Notice, stacklevel=2)
