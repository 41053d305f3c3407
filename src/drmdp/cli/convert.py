"""`drmdp convert`: a model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.options import OPTIONS, PROGRESS, check_outputs
from drmdp.cli.screen import say
from drmdp.cli.show import print_json, sizes

if TYPE_CHECKING:
    pass


@click.command()
@click.argument("source")
@click.argument("target")
@click.option(
    "--from", "from_format", help="Format of SOURCE: npz, drmdp, craam, prism or umb; by default from its suffix."
)
@click.option("--to", "to_format", help="Format of TARGET.")
@OPTIONS["discount"]
@click.option("--base", type=int, default=0, show_default=True, help="First number of states in craam files: 0 or 1.")
@click.option("--initial", help="craam file with the start distribution; by default SOURCE.initial.csv, if any.")
@click.option("--parameters", help="craam file with the discount; by default SOURCE.parameters.csv, if any.")
@click.option("--normalize", is_flag=True, help="Scale rows to sum to 1: for tables with few digits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@PROGRESS
def convert(
    source: str, target: str, from_format: str | None, to_format: str | None, as_json: bool, **given: Any
) -> None:
    """Write a model in another format.

    Suffixes: .npz and .drmdp (ours), .csv (craam), .tra (PRISM), .umb (PRISM and Storm).
    """
    from drmdp import formats

    formats.check_target(target, to_format)
    beside = {f"--{name}": [Path(given[name])] for name in ("initial", "parameters") if given[name] is not None}
    inputs = {"SOURCE": formats.files_of(source, from_format), **beside}
    check_outputs({"TARGET": formats.files_of(target, to_format)}, inputs)
    model = formats.read(source, from_format, **given)
    formats.write(model, target, to_format)
    if as_json:
        print_json({"path": target, **sizes(model)})
    else:
        say(f"{model!r}\nwritten to {target}")
