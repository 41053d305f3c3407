"""`drmdp verify`: check a proof with the checker that shares no line with this package."""

from __future__ import annotations

from typing import Any

import click

from drmdp._version import __version__
from drmdp.cli.options import options
from drmdp.cli.screen import say
from drmdp.errors import InputError


@click.command()
@click.argument("proof", metavar="PROOF")
@click.argument("files", metavar="MODEL…", nargs=-1, required=True)
@options("progress")
@click.option("--interval", is_flag=True, help="Calculate in floats that are rounded outwards, for large models.")
def verify(proof: str, files: tuple[str, ...], interval: bool) -> int:
    """Check a proof that `drmdp solve --proof` wrote, and print the bounds that hold.

    MODEL is the .npz file or .drmdp directory that was solved. Of a plan it is the model of all stages, or one for each, the first stage first; costs
    that the stages have on their own follow as an .npy file. The exit code is 0 only if all claimed bounds hold, 1 if weaker ones do, and 3 if
    floats (--interval) are too coarse to tell. The same is done by `python -m drmdp_check`, which needs nothing but Python.
    """
    import drmdp_check

    checker: Any = drmdp_check
    try:
        found = checker.check(proof, list(files), interval)
    except checker.Refused as error:
        raise InputError(str(error)) from None
    code: int = checker.show(found)
    wrote = str(found.header.get("version"))[:40]
    if wrote != __version__:
        say(
            f"drmdp {wrote} wrote the proof and this is drmdp {__version__}; neither was asked, so that it makes no difference"
        )
    return code
