"""`drmdp convert`: a model in another format."""

from __future__ import annotations

from typing import Any

import click

from drmdp.cli.option_groups import Registered, flag, option
from drmdp.cli.options import check_outputs, command, files_of
from drmdp.cli.show import fields, print_written

KNOWN = Registered("drmdp.formats:FORMATS")


@command(
    [click.Argument(["source"]), click.Argument(["target"]), "discount", "progress"],
    from_format=option("Format of SOURCE; by default from its suffix.", "--from", type=KNOWN),
    to_format=option("Format of TARGET; by default from its suffix.", "--to", type=KNOWN),
    base=option("First number of states in craam files.", type=click.IntRange(0, 1), default=0),
    initial="craam file with the start distribution; by default SOURCE.initial.csv, if any.",
    parameters="craam file with the discount; by default SOURCE.parameters.csv, if any.",
    normalize=flag("Scale rows to sum to 1: for tables with few digits."),
    as_json="Print one JSON document.",
)
def convert(asked: Any) -> None:
    """Write a model in another format.

    Suffixes: .npz and .drmdp (ours), .csv (craam), .tra (PRISM), .umb (PRISM and Storm).
    """
    from drmdp import formats

    source, target = asked.source, asked.target
    formats.check_target(target, asked.to_format)
    inputs = {"SOURCE": formats.files_of(source, asked.from_format)}
    inputs |= files_of(asked, "initial", "parameters")
    check_outputs({"TARGET": formats.files_of(target, asked.to_format)}, inputs)
    reading = fields(asked, "discount", "base", "initial", "parameters", "normalize")
    model = formats.read(source, asked.from_format, **reading)
    formats.write(model, target, asked.to_format)
    print_written(model, target, asked.as_json)
