"""The command line as a process of its own: `drmdp`, and `python -m drmdp`."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress


def run() -> None:
    """Run a command; where it was interrupted, the process ends with what is registered for its
    end.

    A library that was cut short while it loaded, as Ray may be, can crash when Python takes it
    apart.
    """
    codes: list[int] = []
    atexit.register(_end, codes)  # before anything else is, so that it comes last
    from drmdp.cli import main
    from drmdp.cli.options import INTERRUPTED

    try:
        main()
    except SystemExit as end:
        codes += [INTERRUPTED] if end.code == INTERRUPTED else []
        raise


def _end(codes: list[int]) -> None:
    for code in codes:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    run()
