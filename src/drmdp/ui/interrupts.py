"""Ctrl-C put off or made sure of, and SIGTERM treated alike."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, with which systems end a job, do what Ctrl-C does: results are saved, files are
    complete.
    """
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
    """Let Ctrl-C wait until the block ends, for code that would misread it.

    Signals reach the main thread only; elsewhere nothing is done, nor where Ctrl-C is ignored.
    """
    before = _handler()
    if before is None:
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


@contextmanager
def not_lost() -> Iterator[None]:
    """Let Ctrl-C end the block also where a library swallows it or makes another error of it, as
    loading Ray may: at the latest at its end.

    What Python itself swallows, as in callbacks, is not reported on standard error.
    """
    before = _handler()
    if before is None:
        yield
        return
    caught: list[Any] = []

    def handle(*given: Any) -> None:
        caught.append(given)
        before(*given)

    def report(event: Any) -> None:
        if not (caught and isinstance(event.exc_value, KeyboardInterrupt)):
            hook(event)

    hook, sys.unraisablehook = sys.unraisablehook, report
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    except BaseException:
        if not caught:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook
    if caught:
        raise KeyboardInterrupt


def _handler() -> Any:
    """The handler of Ctrl-C; None where it is ignored, or where no signal comes."""
    handler = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    return handler if is_main and callable(handler) else None
