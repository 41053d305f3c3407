"""`drmdp instance`: make a problem."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.option_groups import OUTPUT, Registered, flag, integer, option
from drmdp.cli.options import command
from drmdp.cli.show import fields, print_written
from drmdp.errors import InputError
from drmdp.ui.progress import stage

if TYPE_CHECKING:
    from drmdp.instances._source import ProblemSource


def _branching(context: Any, option: Any, text: str | None) -> float | int | None:
    if text is None:
        return None
    try:
        return float(text) if any(mark in text for mark in ".eE") else int(text)
    except ValueError:
        what = f"{text!r} is neither a share such as 0.2 nor a number of next states"
        raise click.BadParameter(what) from None


FAMILY = Registered("drmdp.instances:FAMILIES")


@command(
    [click.Argument(["family"], metavar="FAMILY", type=FAMILY), "progress"],
    n_states=integer("Number of states.", "--states", required=True),
    n_actions=integer("Number of actions (garnet: as many as states; grid: 4).", "--actions"),
    n_kernels=integer("Number of kernels, sampled around the nominal one if need be.", "--kernels"),
    branching=option(
        "Next states of a pair in garnet: 0.2 is a share, 8 a number.", callback=_branching
    ),
    rewards=flag("Garnet with rewards in [0, 10], not costs.", default=None),
    seed=integer("Of everything random; 0 by default."),
    discount="In [0, 1]; each family has its own.",
    sparse=flag("Store the kernels as sparse ones."),
    same_support=flag("Sample kernels on the next states of the nominal one; for large ones."),
    float32=flag("Store the kernels in single precision, in half the space."),
    out=option(
        "File to write: .npz, or .drmdp for a directory of mapped arrays.",
        heading=OUTPUT,
        required=True,
    ),
    as_json="Print one JSON document.",
)
def instance(asked: Any) -> None:
    """Write a test problem.

    FAMILY is garnet, machine, forest, ring, cycle, grid or reservoir. A .drmdp directory is written
    block by block: its size is limited by the disk, not by memory.
    """
    from drmdp import formats

    out, dtype = asked.out, "float32" if asked.float32 else "float64"
    formats.check_target(out)
    with stage("making the instance"):
        source = _source(asked)
        if formats.is_directory(out):
            formats.directory.write_drawn(source, out, dtype)
            model: Any = formats.directory.open_stored(out)
        else:
            model = source.model(dtype)
            formats.write(model, out)
    print_written(model, out, asked.as_json)


def _source(asked: Any) -> ProblemSource:
    """Call a family with the options it knows; sample kernels around a model that has but one."""
    from drmdp.instances import SOURCES
    from drmdp.instances.perturb import perturbed

    family, n_states = asked.family, asked.n_states
    given = fields(asked, "n_actions", "n_kernels", "branching", "rewards", "seed", "discount")
    arguments = {name: value for name, value in given.items() if value is not None}
    known = inspect.signature(SOURCES[family]).parameters
    if "n_actions" in known and known["n_actions"].default is inspect.Parameter.empty:
        arguments = {"n_actions": n_states, **arguments}
    family_arguments = {name: value for name, value in arguments.items() if name in known}
    extra = {}
    if "n_kernels" in arguments and "n_kernels" not in known:
        extra = {name: arguments[name] for name in ("n_kernels", "seed") if name in arguments}
    for name in sorted(arguments.keys() - family_arguments.keys() - extra.keys()):
        hint = " unless --kernels are sampled" if name == "seed" else ""
        raise InputError(f"{family} has no --{name.removeprefix('n_')}{hint}")
    if asked.same_support and not extra:
        needs = "has a meaning only where --kernels are sampled around one"
        raise InputError(f"--same-support: {needs}")
    nominal = SOURCES[family](n_states, sparse=asked.sparse, **family_arguments)
    return perturbed(nominal, same_support=asked.same_support, **extra) if extra else nominal
