"""`drmdp instance`: make a problem."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click

from drmdp.cli.options import PROGRESS, asked_back
from drmdp.cli.screen import say
from drmdp.cli.show import print_json, sizes
from drmdp.core.progress import stage
from drmdp.errors import InputError

if TYPE_CHECKING:
    from drmdp.instances._source import Source


def _branching(context: click.Context, option: click.Parameter, text: str | None) -> float | int | None:
    if text is None:
        return None
    try:
        return float(text) if any(mark in text for mark in ".eE") else int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a share such as 0.2 nor a number of next states") from None


@click.command()
@click.argument("family")
@click.option("--states", "n_states", type=int, required=True, help="Number of states.")
@click.option("--actions", "n_actions", type=int, help="Number of actions (garnet: as many as states; grid: 4).")
@click.option("--kernels", "n_kernels", type=int, help="Number of kernels, sampled around the nominal one if need be.")
@click.option("--branching", callback=_branching, help="Next states of a pair in garnet: 0.2 is a share, 8 a number.")
@click.option("--rewards", is_flag=True, default=None, help="Garnet with rewards in [0, 10], not costs.")
@click.option("--seed", type=int, help="Of everything random; 0 by default.")
@click.option("--discount", type=float, callback=asked_back, help="In [0, 1]; each family has its own.")
@click.option("--sparse", is_flag=True, help="Store the kernels as sparse ones.")
@click.option(
    "--same-support", is_flag=True, help="Sample kernels on the next states of the nominal one; for large ones."
)
@click.option("--float32", is_flag=True, help="Store the kernels in single precision, in half the space.")
@click.option("--out", required=True, help="File to write: .npz, or .drmdp for a directory of mapped arrays.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@PROGRESS
def instance(
    family: str, n_states: int, sparse: bool, same_support: bool, float32: bool, out: str, as_json: bool, **given: Any
) -> None:
    """Write a test problem.

    FAMILY is garnet, machine, forest, ring, cycle, grid or reservoir. A .drmdp directory is written block by block: its size is
    limited by the disk, not by memory.
    """
    from drmdp import formats

    formats.check_target(out)
    dtype = "float32" if float32 else "float64"
    options = {name: value for name, value in given.items() if value is not None}
    with stage("making the instance"):
        source = _source(family, n_states, sparse, same_support, options)
        if formats.is_directory(out):
            formats.directory.write_drawn(source, out, dtype)
            model: Any = formats.directory.open_stored(out)
        else:
            model = source.model(dtype)
            formats.write(model, out)
    if as_json:
        print_json({"path": out, **sizes(model)})
    else:
        say(f"{model!r}\nwritten to {out}")


def _source(family: str, n_states: int, sparse: bool, same_support: bool, given: dict[str, Any]) -> Source:
    """Call a family with the options it knows; sample kernels around a model that has but one."""
    from drmdp.instances import SOURCES
    from drmdp.instances.perturb import perturbed

    if family not in SOURCES:
        raise InputError(f"unknown family {family!r}; known: {', '.join(SOURCES)}")
    known = inspect.signature(SOURCES[family]).parameters
    if "n_actions" in known and known["n_actions"].default is inspect.Parameter.empty:
        given = {"n_actions": n_states, **given}
    own = {name: value for name, value in given.items() if name in known}
    extra = {name: value for name, value in given.items() if name == "n_kernels" and name not in known}
    if extra and "seed" in given:
        extra["seed"] = given["seed"]
    for name in sorted(given.keys() - own.keys() - extra.keys()):
        hint = " unless --kernels are sampled" if name == "seed" else ""
        raise InputError(f"{family} has no --{name.removeprefix('n_')}{hint}")
    if same_support and not extra:
        raise InputError("--same-support: has a meaning only where --kernels are sampled around one")
    nominal = SOURCES[family](n_states, sparse=sparse, **own)
    return perturbed(nominal, same_support=same_support, **extra) if extra else nominal
