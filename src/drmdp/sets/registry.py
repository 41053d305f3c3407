"""The registry of sets: the parts of each, one file per layer, imported when they are needed.

A set of kernels is described in `drmdp.sets`, answered in `drmdp.operators`, proved in
`drmdp.certificate`, stated for a conic solver in `drmdp.operators.conic` and projected on in
`drmdp.prox`. No layer knows another one's file: each asks `entry_of(ambiguity)` for its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from drmdp.errors import InputError


class Keeps(NamedTuple):
    """Numbers of a state that a sweep keeps beside one for each action; the certificate reads them
    as a claim.
    """

    by_kernel: bool  # a number for each kernel
    by_row: bool  # and one for each action and kernel
    # numbers for each action instead of one for each kernel; with by_kernel so many for each action
    # and kernel
    width: int = 0
    by_pair: bool = False  # all of it for each action on its own


@dataclass(frozen=True)
class SetEntry:
    """The parts of a set; "module" or "module:name"."""

    response: str  # how nature answers: a `drmdp.operators.native.NativeFamily`
    certificate: str  # bounds from a claim: a `drmdp.certificate.native.NativeProof`
    keeps: Keeps
    program: str = ""  # a conic program of one state; without it there is no conic backend
    projection: str = ""  # a `prox.registry.ProxFamily`; without it there is no first-order method
    entropy: str = ""  # the same with the relative entropy for the distance, where it is cheap
    # makes the data that its kernels read, `(model, ambiguity) -> Layout`; without it they read the
    # kernels of the model
    layout: str = ""
    witness: str = ""  # its part of a proof file; without it none is written
    # searches a tuple with a given mean; without it means are attained by fractions
    nearest: str = ""
    functions: Any = None  # of rows, where they come from outside (`drmdp.sets.outside`)

    @property
    def by_pair(self) -> SetEntry:
        """The entry of the same set with a budget for each action: all its parts are asked action
        by action.
        """
        return replace(self, keeps=self.keeps._replace(by_pair=True), projection="", entropy="")


ENTRIES: dict[Hashable, SetEntry] = {}
"""Every set that can be solved, by its key."""
DIVERGENCES = ("kl", "burg", "chi2", "tv")
MIXTURES = ("kl", "burg", "chi2", "tv", "cvar", "any")
MAKERS = {
    "wasserstein": "drmdp.sets.wasserstein:Wasserstein",
    **dict.fromkeys(DIVERGENCES, "drmdp.sets.divergence:Divergence"),
    **{f"reweight-{kind}": "drmdp.sets.reweighting:Reweighting" for kind in MIXTURES},
    "intervals": "drmdp.sets.intervals:Intervals",
}
"""Every class of sets by its names on the command line."""


def entry_of(ambiguity: Any) -> SetEntry:
    """The entry of a set."""
    if ambiguity.key not in ENTRIES:
        raise InputError(f"{ambiguity.short}: nobody solves this set yet")
    entry = ENTRIES[ambiguity.key]
    if ambiguity.moves == "events":  # of what needs kernels, nothing
        entry = replace(entry, projection="", entropy="", nearest="")
    return entry.by_pair if ambiguity.by_pair else entry


@cache
def load(where: str) -> Any:
    """Import the part "module" or "module:name" of an entry."""
    path, _, name = where.partition(":")
    module: Any = import_module(path)
    return getattr(module, name) if name else module


def part_of(where: str, ambiguity: Any) -> Any:
    """A part of an entry for this set: a part that depends on more than the key of a set has
    `of(ambiguity)`.
    """
    part = load(where)
    return part.of(ambiguity) if hasattr(part, "of") else part


def _native(name: str, keeps: Keeps, program: str, witness: str, **parts: str) -> SetEntry:
    """The entry of a set whose compiled routines have this name."""
    return SetEntry(
        f"drmdp.operators.native:{name}",
        f"drmdp.certificate.native:{name}",
        keeps,
        f"drmdp.operators.conic.{program}",
        witness=f"drmdp.proof.witnesses:{witness}",
        **{part: where and f"drmdp.{where}" for part, where in parts.items()},
    )


KERNELS, ROWS = Keeps(True, False), Keeps(True, True)
ACTIONS = Keeps(False, True, width=3)
CONE, POWER = "cone:ConeProgram", "cone:PowerProgram"
SQUARES = "certificate.membership_squares:least_squares"
POWERS = "certificate.membership_squares:powers"
SHARES = "certificate.membership_linear:linear"
for metric, order, name, keeps, program, projection, nearest in (
    ("l1", 1, "L1", ACTIONS, "linear:LinearProgram", "L1_SHARED", ""),
    ("l2", 2, "L2", ACTIONS, CONE, "L2_SHARED", SQUARES),
    ("linf", 1, "LINF", KERNELS, "linear:LinfShared", "LINF_SHARED", SHARES),
    ("l1", math.inf, "L1_INF", ROWS, "linear:L1Each", "L1_EACH", SHARES),
    ("l2", math.inf, "L2_ORDERS", KERNELS, CONE, "L2_EACH", SQUARES),
    ("linf", math.inf, "LINF", KERNELS, "linear:LinfEach", "LINF_EACH", SHARES),
    ("l1", "p", "L1_ORDERS", ROWS, POWER, "", SHARES),
    ("l2", "p", "L2_ORDERS", KERNELS, POWER, "", POWERS),
    ("linf", "p", "LINF", KERNELS, POWER, "", SHARES),
):
    parts = {"projection": projection and f"prox.registry:{projection}", "nearest": nearest}
    if projection == "LINF_EACH":
        parts["entropy"] = "prox.registry:ENTROPY_EACH"
    witness = "NORM_MEAN" if name == "L1" else "NORM"
    ENTRIES[metric, order] = _native(name, keeps, program, witness, **parts)
NOTHING, layout = Keeps(False, False), "layout.layout:lay_out_intervals"
ENTRIES["intervals"] = _native("INTERVALS", NOTHING, "direct:Boxes", "INTERVALS", layout=layout)
PROGRAMS = {"kl": "cone:Kl", "burg": "cone:Burg", "chi2": "cone:Chi2", "tv": "linear:Tv"}
for kind, program in PROGRAMS.items():
    name, nearest = kind.upper(), "" if kind == "tv" else "certificate.membership:tilted"
    ENTRIES[kind, "mean"] = _native(name, ACTIONS, program, "DIVERGENCE_MEAN")
    ENTRIES[kind, "kernels"] = _native(name, ACTIONS, program, "DIVERGENCE", nearest=nearest)
PLANS, layout = ROWS._replace(width=3), "layout.transport_layout:lay_out"
for order, name, keeps, program, witness in (
    (1, "TRANSPORT", ACTIONS, "linear:TransportProgram", "TRANSPORT_MEAN"),
    (math.inf, "TRANSPORT_INF", PLANS, "linear:TransportEach", "TRANSPORT"),
):
    ENTRIES["transport", order] = _native(name, keeps, program, witness, layout=layout)
for kind in MIXTURES:
    ENTRIES["reweighting", kind] = _native("MIXTURES", KERNELS, "direct:Mixing", "MIXTURES")
