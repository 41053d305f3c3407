"""Where the command line writes: everything but JSON and help passes through here, and `clean` with it.

Names, notes and messages come from files of strangers. Whoever prints one takes `say`, or a console or table of this module.
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
    """Write to standard output; once nobody reads it any more, as after `| head`, the rest goes nowhere and the command goes on."""
    try:
        yield
    except BrokenPipeError:
        unread()


def unread() -> None:
    """Let standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def console(stderr: bool = False) -> Any:
    """A Rich console on standard output, or error."""
    found, _ = _classes()
    return found(stderr=stderr, markup=False, highlight=False, emoji=False)


def table(**settings: Any) -> Any:
    """A Rich table."""
    _, found = _classes()
    return found(**settings)


@cache
def _classes() -> tuple[Any, Any]:
    from rich.console import Console
    from rich.table import Table

    class Screen(Console):
        def print(self, *objects: Any, **settings: Any) -> None:
            super().print(*_cleaned(objects), **settings)

        def on_broken_pipe(self) -> None:
            unread()

    class Cells(Table):
        def add_row(self, *cells: Any, **settings: Any) -> None:
            super().add_row(*_cleaned(cells), **settings)

    return Screen, Cells


def _cleaned(objects: tuple[Any, ...]) -> list[Any]:
    return [clean(given) if isinstance(given, str) else given for given in objects]
