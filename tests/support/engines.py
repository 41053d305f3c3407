"""Jobs for every engine: models with all features, every registered set, and their digests on the
ranks of an MPI job.

`mpiexec -n 2 python engines.py FOLDER OUT` solves the deck of a folder and writes the digests that
each rank found, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import drmdp
import ranges
from drmdp import formats
from drmdp.sets import PAIRS
from drmdp.sets.registry import ENTRIES

SUPPORTS = ("observed", "state", "all")
RTOL = 1e-4
ORDERS = {"l1": (2, 300), "l2": (1, 3), "linf": (2,)}
"""Some that share a solver."""


def _sets(key):
    """Sets of a key of the registry by what they are called: for a model, whether mass may go
    anywhere, a radius.
    """
    if key in PAIRS:
        for support in SUPPORTS:
            yield (
                f"{key[0]}-{key[1]:g} {support}",
                lambda model, r, own=support: drmdp.Wasserstein(r, *key, support=own),
            )
    elif key[0] == "transport":
        for support in SUPPORTS:
            yield (
                f"transport {key[1]:g} {support}",
                lambda model, r, own=support: _transport(model, r, key[1], own),
            )
    elif key[1] == "p":
        for order in ORDERS[key[0]]:
            yield f"{key[0]}-{order:g}", lambda model, r, p=order: drmdp.Wasserstein(r, key[0], p)
    elif key == "intervals":
        yield "intervals", lambda model, r: drmdp.Intervals.of(model, 0.05)
    elif key[0] == "reweighting":
        for rect in ("s", "sa"):
            yield (
                f"{key[1]} of weights {rect}",
                lambda model, r, own=rect: _reweighting(key[1], own, r),
            )
    elif key[1] in ("mean", "kernels"):
        for rect in ("s", "sa"):
            yield (
                f"{key[0]} around {key[1]} {rect}",
                lambda model, r, own=rect: drmdp.Divergence(r, *key, rectangular=own),
            )
    else:
        raise LookupError(f"{key!r} is registered: say here how such a set is made")


def _transport(model, r, order, support):
    ground = ("line", np.arange(model.n_states) / 4)
    return drmdp.Wasserstein(r, "transport", order, support, ground=ground)


def _reweighting(kind, rect, r):
    size = {"any": {}, "cvar": {"level": 0.5}}.get(kind, {"radius": r})
    return drmdp.Reweighting(kind=kind, rectangular=rect, **size)


def sets(keys=None):
    """Every registered set, or those of some keys, as functions of a model and a radius."""
    return {name: make for key in (ENTRIES if keys is None else keys) for name, make in _sets(key)}


BALLS = sets(PAIRS)
OTHERS = sets([key for key in ENTRIES if key not in PAIRS])

MANY = ("terminal", "unavailable", "rewards")
MODELS = {
    **{
        name: (features, {"S": 24, "seed": k})
        for k, (name, features) in enumerate(ranges.FEATURES.items())
    },
    "dense": (("dense",), {"S": 9, "seed": 20}),
    "dense with everything": ((*MANY, "zero weights", "next", "dense"), {"S": 9, "seed": 21}),
    "dense float32": (("dense", "float32", "terminal"), {"S": 12, "seed": 22}),
    "a radius for each state": (("each radius",), {"S": 30, "seed": 23}),
    "a radius for each state, and the rest": (
        (*MANY, "zero weights", "each radius"),
        {"S": 40, "seed": 24},
    ),
    "four actions, one kernel": (("terminal",), {"S": 24, "A": 4, "N": 1, "seed": 25}),
    "one action": (("next", "float32"), {"S": 24, "A": 1, "N": 4, "seed": 26}),
    "an odd number of states": ((*MANY, "initial"), {"S": 131, "A": 2, "N": 2, "seed": 27}),
    "slow": (("unavailable", "float32"), {"S": 50, "A": 2, "N": 2, "seed": 28, "discount": 0.99}),
    "sparse chains": ((*MANY, "each radius"), {"S": ranges.LARGE, "A": 2, "N": 2, "seed": 29}),
}
FEW = ("everything", "dense float32", "sparse chains")


def deck(models, makers):
    """Models in files would be called 0.drmdp, 1.drmdp, …: (number, set) of all that go together,
    and the models.
    """
    jobs, made = [], [_model(*MODELS[name]) for name in models]
    for k, (name, model) in enumerate(zip(models, made, strict=True)):
        features = MODELS[name][0]
        for ambiguity in makers:
            if "seen" in features and _everywhere(ambiguity):
                continue  # such costs leave nature nowhere else to go
            jobs.append((k, ambiguity))
    return jobs, made


def _everywhere(ambiguity):
    return ambiguity.endswith((" all", " state")) or "intervals" in ambiguity


def _model(features, settings):
    return ranges.model(*features, **{"discount": 0.8} | settings)


def ambiguity_of(name, model, each):
    """A set of a deck."""
    radius = ranges.radius_for_each(model.n_states) if each else 0.1
    return (BALLS | OTHERS)[name](model, radius)


def write(folder, models, makers):
    """A deck in a folder."""
    jobs, made = deck(models, makers)
    for k, model in enumerate(made):
        formats.write(model, folder / f"{k}.drmdp")
    each = ["each radius" in MODELS[name][0] for name in models]
    (folder / "deck.json").write_text(json.dumps({"jobs": jobs, "each": each}))


def read(folder):
    """Jobs of a deck: name, path, model, set."""
    told = json.loads((folder / "deck.json").read_text())
    models = {k: drmdp.read(folder / f"{k}.drmdp") for k in {k for k, _ in told["jobs"]}}
    for k, name in told["jobs"]:
        yield (
            f"{k} {name}",
            folder / f"{k}.drmdp",
            models[k],
            ambiguity_of(name, models[k], told["each"][k]),
        )


def digests(folder, **settings):
    """Of every job of a deck: on a cluster, or of the models in memory without one."""
    found = {}
    for name, path, model, ambiguity in read(folder):
        given = path if "cluster" in settings else model
        solution = drmdp.solve(given, ambiguity, rtol=RTOL, **settings)
        found[name] = ranges.digest(solution)
        assert np.isfinite(solution.gap)
    return found


if __name__ == "__main__":
    from mpi4py import MPI

    from drmdp.cluster import Mpi

    answers = MPI.COMM_WORLD.gather(digests(Path(sys.argv[1]), cluster=Mpi()))
    if MPI.COMM_WORLD.rank == 0:
        Path(sys.argv[2]).write_text(json.dumps(answers))
