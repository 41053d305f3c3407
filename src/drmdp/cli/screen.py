"""Standard output and error: everything but JSON and help passes through here, and `clean` with it.

Names, notes and messages come from files of strangers. Whoever prints one takes `say`, or a console
or table of this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import click

from drmdp.errors import clean


def say(text: str, err: bool = False) -> None:
    """Write text to standard output, or error."""
    with piped():
        click.echo(clean(text), err=err)


@contextmanager
def piped() -> Iterator[None]:
    """Write to standard output, and go on silently once nobody reads it, as after `| head`."""
    try:
        yield
    except BrokenPipeError:
        unread()


@contextmanager
def heard() -> Iterator[None]:
    """End the command, without a failure, where nobody reads its help any more."""
    try:
        yield
    except BrokenPipeError:
        unread()
        raise click.exceptions.Exit(0) from None


def unread() -> None:
    """Let standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def console(stderr: bool = False) -> Any:
    """A Rich console on standard output, or error."""
    screen_class, _ = _classes()
    return screen_class(stderr=stderr, markup=False, highlight=False, emoji=False)


def table(**settings: Any) -> Any:
    """A Rich table."""
    _, table_class = _classes()
    return table_class(**settings)


@cache
def _classes() -> tuple[Any, Any]:
    from rich.console import Console
    from rich.table import Table

    class Screen(Console):
        def print(self, *objects: Any, **settings: Any) -> None:
            super().print(*_cleaned(objects), **settings)

        def on_broken_pipe(self) -> None:
            unread()

    class CellLines(Table):
        def add_row(self, *cells: Any, **settings: Any) -> None:
            super().add_row(*_cleaned(cells), **settings)

    return Screen, CellLines


def _cleaned(objects: tuple[Any, ...]) -> list[Any]:
    return [clean(item) if isinstance(item, str) else item for item in objects]
