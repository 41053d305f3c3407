"""Progress on standard error: work that takes more than a second says what it does.

Work is cut into stages, one inside the other: ``with stage("reading model.npz"):``. A thread looks
at them ten times a second. On a terminal or in a notebook it keeps one line up to date, which
disappears when the outermost stage ends. Elsewhere it writes one line for a stage that has lasted a
second, and never again for that stage.

Shown or not: `showing(True)` and `showing(False)` decide for what they enclose. With None, the
default, stages are shown on a terminal and in a notebook, and on the command line everywhere.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import Any

from drmdp.errors import clean
from drmdp.ui import clock

DELAY = 1.0
"""Seconds that a stage lasts before it is mentioned."""
PERIOD = 0.1
BAR, NARROW = 12, 80
"""Columns of a bar, and of a terminal that does not say."""

_wanted: ContextVar[bool | None] = ContextVar("wanted", default=None)
_command: ContextVar[bool] = ContextVar("command", default=False)


class Stage(ContextDecorator):
    """A piece of work in progress, reported if it takes long; its fields may change meanwhile."""

    detail: Callable[[], str] = str  # more about it, computed for display
    share: Callable[[], float] | None = None  # share that is done
    begin = 0.0
    announced = False
    kind: str | None = None  # "live" or "lines", if it is shown

    def __init__(self, text: str, hint: str | None = None) -> None:
        self.text = text
        self.hint = hint  # a line for terminals

    def __enter__(self) -> Stage:
        self.kind = _kind()
        if self.kind is not None:
            self.begin = clock.now()
            _display.enter(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self.kind is not None:
            _display.leave(self)

    def _recreate_cm(self) -> Stage:
        """A new stage for each call of a decorated function."""
        return Stage(self.text, self.hint)

    @property
    def long(self) -> bool:
        """Whether it has lasted long enough to be mentioned."""
        return clock.now() - self.begin >= DELAY

    def __str__(self) -> str:
        detail = self.detail()
        return f"{self.text}: {detail}" if detail else self.text


stage = Stage  # ``with stage("reading model.npz"):``


@contextmanager
def counted(text: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A stage of `total` steps; yields a function to be called after each."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1

    with stage(text) as work:
        work.detail = lambda: f"{done:,} of {total:,}" if total else f"{done:,}"
        if total:
            work.share = lambda: done / total
        yield step


@contextmanager
def showing(wanted: bool | None) -> Iterator[None]:
    """Show the stages inside, or do not; with None as before."""
    token = _wanted.set(_wanted.get() if wanted is None else wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


@contextmanager
def on_command_line() -> Iterator[None]:
    """Show stages also where standard error is no terminal."""
    token, wanted = _command.set(True), _wanted.set(None)
    try:
        yield
    finally:
        _command.reset(token)
        _wanted.reset(wanted)


def choose(wanted: bool | None) -> None:
    """Show stages or do not, until the command ends."""
    _wanted.set(wanted)


def line(text: str) -> None:
    """Write a line of a log; nothing on a terminal, where stages say it."""
    if _kind() == "lines":
        _write(f"drmdp: {_one_line(text)}\n")


def _kind() -> str | None:
    """The kind of display: "live", "lines", or None."""
    wanted, stream = _wanted.get(), sys.stderr
    if wanted is False or stream is None or stream.closed:
        return None
    if stream.isatty() or _in_notebook():
        return "live"
    return "lines" if wanted or _command.get() else None


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    module = sys.modules.get("IPython")
    return module is not None and hasattr(module.get_ipython(), "kernel")


class _Display:
    """The stages that are shown, and the thread that does it."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._stages: list[Stage] = []
        self._line = ""  # on the screen
        self._thread: threading.Thread | None = None
        self._over = False

    def enter(self, work: Stage) -> None:
        with self._lock:
            self._stages.append(work)
            if self._thread is None and not self._over:
                settings: Any = {"name": "drmdp progress", "daemon": True}
                self._thread = threading.Thread(target=self._watch, **settings)
                self._thread.start()

    def leave(self, work: Stage) -> None:
        with self._lock:
            self._stages = [each for each in self._stages if each is not work]
            if work.announced:  # its time has been accounted for
                for outer in self._stages:
                    outer.begin += clock.now() - work.begin
            if not self._stages:
                self._clear()

    def stop(self) -> None:
        """Stop: the interpreter ends."""
        with self._lock:
            self._over = True
            self._lock.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(1)

    def _watch(self) -> None:
        idle = 0
        with self._lock:
            while not self._over and idle < 10:
                idle = 0 if self._stages else idle + 1
                if self._stages:
                    self._update()
                self._lock.wait(PERIOD)
            self._thread = None

    def _update(self) -> None:
        stages, root = self._stages, self._stages[0]
        if stages[-1].kind == "live":
            if root.long or self._line:
                if not self._line and root.hint:
                    _write(f"{root.hint}\n")
                self._draw(_line(stages), clock.now() - root.begin)
        else:
            work = next((each for each in reversed(stages) if each.announced or each.long), root)
            if work.long and not work.announced:
                work.announced = True
                _write(f"drmdp: {_one_line(work.text)} …\n")

    def _draw(self, text: str, seconds: float) -> None:
        width = _width() - 1
        end = f" {seconds:.0f} s"
        line = _one_line(f"drmdp: {text}")[: max(width - len(end), 1)] + end
        _write("\r" + line.ljust(len(self._line)))
        self._line = line

    def _clear(self) -> None:
        if self._line:
            _write("\r" + " " * len(self._line) + "\r")
            self._line = ""

    def renew(self) -> None:
        """Begin anew in a forked child, which has neither the thread nor the lock."""
        self.__init__()  # type: ignore[misc]


def _line(stages: list[Stage]) -> str:
    shares = [work.share() for work in stages if work.share is not None]
    done = round(BAR * min(max(shares[0], 0.0), 1.0)) if shares else 0
    bar = f"[{'#' * done}{'.' * (BAR - done)}] " if shares else ""
    return bar + " · ".join(map(str, stages))


def _one_line(text: str) -> str:
    """Text that only fills a line of a terminal."""
    return clean(text).replace("\n", " ")


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or NARROW
    except (OSError, ValueError, AttributeError):
        return NARROW


def _write(text: str) -> None:
    stream: Any = sys.stderr
    try:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except (OSError, ValueError, AttributeError):  # nobody listens any more
        pass


_display = _Display()
atexit.register(_display.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_display.renew)
