"""`drmdp convert`: a model in another format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.option_groups import Registered, flag, option
from drmdp.cli.options import check_outputs, command, files_of
from drmdp.cli.show import fields, print_written
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.model import Model

KNOWN = Registered("drmdp.formats:FORMATS")


@command(
    [click.Argument(["source"]), click.Argument(["target"]), "progress"],
    from_format=option("Format of SOURCE; by default from its suffix.", "--from", type=KNOWN),
    to_format=option("Format of TARGET; by default from its suffix.", "--to", type=KNOWN),
    base=option("First number of states in craam files.", type=click.IntRange(0, 1), default=0),
    initial="craam file with the start distribution; by default SOURCE.initial.csv, if any.",
    parameters="craam file with the discount; by default SOURCE.parameters.csv, if any.",
    discount="For files that hold none (.csv, .tra, .umb), or in place of that of the others.",
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
    if held := formats.holds_discount(source, asked.from_format):
        reading["discount"] = None
    model = formats.read(source, asked.from_format, **reading)
    if held and asked.discount is not None:
        model = _discounted(model, asked.discount)
    formats.write(model, target, asked.to_format)
    print_written(model, target, asked.as_json)


def _discounted(model: Model, discount: float) -> Model:
    """The model with another discount, which `drmdp redo` takes, too."""
    from drmdp.core.validation import discount_of
    from drmdp.model import changed

    discount = discount_of(discount)
    if model.discounts is not None:
        raise InputError("discount: the model has one for each pair, which stay as they are")
    origin, note = model.origin, f"discount {discount:g} in place of {model.discount:g}"
    if origin is not None:
        origin = {**origin, "estimate": {**origin["estimate"], "discount": discount}}
    return changed(model, discount=discount, origin=origin, notes=(*model.notes, note))
