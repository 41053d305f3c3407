"""Ctrl-C at a moment that suits, and other signals like it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, with which systems end a job, do what Ctrl-C does: what is found is kept, nothing is left half done."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*given: Any) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # a job in the background ignores Ctrl-C, but not this
        raise KeyboardInterrupt
    handler(*given)


@contextmanager
def put_off() -> Iterator[None]:
    """Let Ctrl-C wait until the block is left, for code that would take it for something else.

    Signals reach the main thread only; elsewhere nothing is done, nor where Ctrl-C is ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    caught: list[Any] = []
    signal.signal(signal.SIGINT, lambda *given: caught.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if caught:
            before(*caught[0])
