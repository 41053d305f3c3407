"""Where the parts of a set are: one file per layer, joined in one entry here, and imported when they are needed.

A set of kernels is described in `drmdp.sets`, answered in `drmdp.bellman`, proved in `drmdp.certificate`, stated for a conic solver in
`drmdp.bellman.conic` and projected on in `drmdp.prox`. No layer knows another one's file: each asks `entry_of(ball)` for its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from drmdp.errors import InputError


class Kept(NamedTuple):
    """What a sweep keeps of a state beside a number for each action; the certificate reads it as a claim."""

    by_kernel: bool  # a number for each kernel
    by_row: bool  # and one for each action and kernel
    width: int = (
        0  # numbers for each action instead of one for each kernel; with by_kernel so many for each action and kernel
    )
    by_pair: bool = False  # all of it for each action on its own


@dataclass(frozen=True)
class Entry:
    """The parts of a set; "module" or "module:name"."""

    response: str  # how nature answers: a `drmdp.bellman.native.NativeFamily`
    certificate: str  # bounds from a claim: a `drmdp.certificate.native.NativeProof`
    keeps: Kept
    program: str = ""  # a conic program of one state; without it there is no conic backend
    projection: str = ""  # a `prox.registry.Family`; without it there is no first-order method
    entropy: str = ""  # the same with the relative entropy for the distance, where it is cheap
    layout: str = ""  # makes the data that its kernels read, `(model, ball) -> Layout`; without it they read the kernels of the model
    witness: str = ""  # what a proof file says of it; without it none is written
    nearest: str = ""  # searches a tuple with a given mean; without it means are attained by fractions
    functions: Any = None  # of rows, where they come from outside (`drmdp.sets.outside`)

    @property
    def by_pair(self) -> Entry:
        """The entry of the same set with a budget for each action: all its parts are asked action by action."""
        return replace(self, keeps=self.keeps._replace(by_pair=True), projection="", entropy="")


ENTRIES: dict[Hashable, Entry] = {}
"""Every set that can be solved, by its key."""
MAKERS = {"wasserstein": "drmdp.sets.wasserstein:Wasserstein"}
MAKERS |= dict.fromkeys(("kl", "burg", "chi2", "tv"), "drmdp.sets.divergence:Divergence")
MAKERS |= {
    f"reweight-{kind}": "drmdp.sets.reweighting:Reweighting" for kind in ("kl", "burg", "chi2", "tv", "cvar", "any")
}
MAKERS["intervals"] = "drmdp.sets.intervals:Intervals"
"""Every class of sets by its names on the command line."""


def entry_of(ball: Any) -> Entry:
    """The entry of a set."""
    if ball.key not in ENTRIES:
        raise InputError(f"{ball.short}: nobody solves this set yet")
    entry = ENTRIES[ball.key]
    if ball.moves == "events":  # of what needs kernels, nothing
        entry = replace(entry, projection="", entropy="", nearest="")
    return entry.by_pair if ball.by_pair else entry


@cache
def load(where: str) -> Any:
    """What an entry's "module" or "module:name" stands for."""
    module, _, name = where.partition(":")
    found: Any = import_module(module)
    return getattr(found, name) if name else found


def part_of(where: str, ball: Any) -> Any:
    """What a part of an entry stands for, for this set: a part that depends on more than the key of a set has `of(ball)`."""
    found, of = _loaded(where)
    return found if of is None else of(ball)


@cache
def _loaded(where: str) -> tuple[Any, Any]:
    found = load(where)
    return found, getattr(found, "of", None)


def _wasserstein(
    pair: str, metric: str, program: str, keeps: Kept, projection: str, witness: str, **others: str
) -> Entry:
    where = {name: f"drmdp.{path}" for name, path in others.items()}
    return Entry(
        f"drmdp.bellman.{pair}", f"drmdp.certificate.{metric}", keeps, f"drmdp.bellman.conic.{program}",
        f"drmdp.prox.registry:{projection}", witness=f"{WITNESSES}:{witness}", **where,
    )  # fmt: skip


CONE = "cone:ConeProgram"
WITNESSES = "drmdp.proof.witnesses"
SQUARES, SHARES = "certificate.membership_squares:least_squares", "certificate.membership_linear:linear"
ENTRIES |= {
    ("l1", 1): _wasserstein(
        "native:L1", "native:L1", "linear:L1Shared", Kept(False, True, width=3), "L1_SHARED", "L1_MEAN"
    ),
    ("l2", 2): _wasserstein(
        "native:L2", "native:L2", CONE, Kept(False, True, width=3), "L2_SHARED", "L2", nearest=SQUARES
    ),
    ("linf", 1): _wasserstein(
        "native:LINF_1", "native:LINF_1", "linear:LinfShared", Kept(True, False), "LINF_SHARED", "LINF", nearest=SHARES
    ),
    ("l1", math.inf): _wasserstein(
        "native:L1_INF", "native:L1_INF", "linear:L1Each", Kept(True, True), "L1_EACH", "L1", nearest=SHARES
    ),
    ("l2", math.inf): _wasserstein(
        "native:L2_INF", "native:L2_INF", CONE, Kept(True, False), "L2_EACH", "L2", nearest=SQUARES
    ),
    ("linf", math.inf): _wasserstein(
        "native:LINF_INF",
        "native:LINF_INF",
        "linear:LinfEach",
        Kept(True, False),
        "LINF_EACH",
        "LINF",
        nearest=SHARES,
        entropy="prox.registry:ENTROPY_EACH",
    ),
}
ENTRIES |= {
    (metric, "p"): Entry(
        f"drmdp.bellman.native:{metric.upper()}_ORDERS",
        f"drmdp.certificate.native:{metric.upper()}_ORDERS",
        Kept(True, metric == "l1"),
        "drmdp.bellman.conic.power:PowerProgram",
        witness=f"{WITNESSES}:{metric.upper()}",
        nearest="drmdp." + ("certificate.membership_squares:powers" if metric == "l2" else SHARES),
    )
    for metric in ("l1", "l2", "linf")
}
ENTRIES["intervals"] = Entry(
    "drmdp.bellman.native:INTERVALS", "drmdp.certificate.intervals:PROOF", Kept(False, False), "drmdp.bellman.conic.boxes:Boxes",
    layout="drmdp.layout.bounded:lay_out", witness=f"{WITNESSES}:INTERVALS",
)  # fmt: skip
DIVERGENCES = ("kl", "burg", "chi2", "tv")
PROGRAMS = {"kl": "entropy:Kl", "burg": "entropy:Burg", "chi2": "cone:Chi2", "tv": "linear:Tv"}
ENTRIES |= {
    (kind, around): Entry(
        f"drmdp.bellman.native:{name}",
        f"drmdp.certificate.native:{name}",
        Kept(False, True, width=3),
        f"drmdp.bellman.conic.{PROGRAMS[kind]}",
        witness=f"{WITNESSES}:{name}",
        nearest="" if around == "mean" else "drmdp.certificate.membership_tilted:tilted",
    )
    for kind in DIVERGENCES
    for around, name in (("mean", f"{kind.upper()}_MEAN"), ("kernels", kind.upper()))
}
for around, name in (("mean", "TV_MEAN"), ("kernels", "TV")):  # half the ℓ1 distance
    ENTRIES["tv", around] = replace(
        ENTRIES["tv", around],
        response=f"drmdp.bellman.native:{name}",
        certificate="drmdp.certificate.native:TV",
        nearest="",
    )
ENTRIES |= {
    ("transport", order): Entry(
        f"drmdp.bellman.native:{name}",
        f"drmdp.certificate.native:{name}",
        Kept(each, True, width=3),
        f"drmdp.bellman.conic.transport:{proof}",
        layout="drmdp.layout.grounded:lay_out",
        witness=f"{WITNESSES}:{witness}",
    )
    for order, name, proof, each, witness in (
        (1, "TRANSPORT", "MEAN", False, "TRANSPORT_MEAN"),
        (math.inf, "TRANSPORT_INF", "EACH", True, "TRANSPORT"),
    )
}
ENTRIES |= {
    ("reweighting", kind): Entry(
        f"drmdp.bellman.reweighting:{kind.upper()}",
        f"drmdp.certificate.reweighting:{kind.upper()}_PROOF",
        Kept(True, False),
        "drmdp.bellman.conic.mixing:Mixing",
        witness=f"{WITNESSES}:MIX_{kind.upper()}",
    )
    for kind in (*DIVERGENCES, "cvar", "any")
}
