"""`drmdp verify`: check a proof with the checker that shares no line with this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import click

from drmdp._version import __version__
from drmdp.cli.option_groups import flag
from drmdp.cli.options import command
from drmdp.cli.screen import say
from drmdp.errors import InputError
from drmdp.io.archives import describe

FILES = click.Argument(["files"], metavar="MODEL…", nargs=-1, required=True)


@command(
    [click.Argument(["proof"], metavar="PROOF"), FILES, "progress"],
    interval=flag("Calculate in floats that are rounded outwards, for large models."),
)
def verify(asked: Any) -> int:
    """Check a proof that `drmdp solve --proof` wrote, and print the bounds that hold.

    MODEL is the .npz file or .drmdp directory that was solved. Of a plan it is the model of all
    stages, or one for each, the first stage first; costs that the stages have on their own follow
    as an .npy file. The exit code is 0 only if all claimed bounds hold, 1 if weaker ones do, and 3
    if floats (--interval) are too coarse to tell. The same is done by `python -m drmdp_check`,
    which needs nothing but Python.
    """
    import drmdp_check

    if is_zipfile(asked.proof) or (Path(asked.proof) / "model.json").exists():
        what = describe(asked.proof) if Path(asked.proof).is_file() else "a model"
        raise InputError(f"PROOF comes first, then MODEL: {asked.proof} is {what}")
    checker: Any = drmdp_check
    try:
        verdict = checker.check(asked.proof, list(asked.files), asked.interval)
    except checker.Refused as error:
        raise InputError(str(error)) from None
    code: int = checker.show(verdict)
    wrote = str(verdict.header.get("version"))[:40]
    if wrote != __version__:
        who = f"drmdp {wrote} wrote the proof and this is drmdp {__version__}"
        say(f"{who}; neither was asked, so that it makes no difference")
    return code
