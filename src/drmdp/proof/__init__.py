"""Proof files: what a stranger needs to check the bounds of a result with `drmdp_check`, which shares no line with this package.

A file is a line of JSON for the problem, one for every sweep (v and the bounds that are claimed), and one for every state: the policy, nature's rows and the
multipliers that show that no kernel does more (`responses`). `docs/proofs.md` describes the format. All values are costs: rewards are negated.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.core.files import check_parent, write_whole
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.proof.states import States, Sweep, costs_of
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load

FORMAT = "drmdp proof 1"
AGAIN = "has no witnesses; they are found by solving in memory, from here on"


def write(path: str | os.PathLike[str], result: Any, policy: Array | None = None) -> int:
    """Write the proof of a `Solution` or, with its policy, of an `Evaluation`; returns the bytes written."""
    if result.problem is None:
        raise InputError(
            f"proof: a result that was loaded, or whose model was not read whole, {AGAIN}: drmdp.solve(model, ball, start=solution).proof(path)"
        )
    model, ball = result.problem
    value, nature = result.sweep
    if value is None:
        raise InputError(
            "proof: there is no sweep of the robust operator that proves these bounds; solve with another method than "
            "'first-order', or longer"
        )
    sides = sides_of(model, result.lower, result.upper)
    sweep = Sweep(value, result.policy if policy is None else policy, nature, *sides)
    return write_sweeps(path, model, ball, [sweep], {"kind": "optimum" if policy is None else "policy"})


def write_plan(path: str | os.PathLike[str], plan: Any) -> int:
    """Write the proof of a `HorizonSolution`, from the last stage to the first; returns the bytes written."""
    natures = plan.natures
    if natures is None:
        raise InputError(f"proof: a plan that was loaded {AGAIN}: drmdp.evaluate(model, ball, plan).proof(path)")
    stages = natures.stages
    if len(stages.distinct) > 1:
        raise InputError("proof: cannot be written for stages with models, costs or sets of their own yet")
    model, ball = stages.distinct[0]

    def sweeps() -> Iterator[Sweep]:
        for t, update in natures.again():
            yield Sweep(natures.swept[t], plan.policy[t], update.nature, *sides_of(model, plan.lower[t], plan.upper[t]))

    more = {
        "kind": "optimum" if plan.optimal else "policy", "model": digest(stages.given[0]), "fingerprint": stages.given[0].fingerprint,
        "stages": len(stages), "discount": model.discount, "final": stages.final.tolist(),
    }  # fmt: skip
    return write_sweeps(path, model, ball, sweeps(), more)


def sides_of(model: Model, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds as costs."""
    return (-upper, -lower) if model.maximise else (lower, upper)


def write_sweeps(
    path: str | os.PathLike[str], model: Model, ball: AmbiguitySet, sweeps: Iterable[Sweep], more: dict[str, Any]
) -> int:
    """Write what several sweeps prove, and what else the first line says; returns the bytes written."""
    target = Path(path)
    check_parent(target)
    ball = ball.fitted(model).facing(ball.nature)
    where = entry_of(ball).witness
    if not where:
        raise InputError(f"proof: cannot be written for {ball.short} yet")
    witness = load(where)
    header = {
        "format": FORMAT, "version": __version__, "model": digest(model), "fingerprint": model.fingerprint,
        "set": witness.told(ball), "support": "observed" if ball.support == "observed" else "all",
        "rectangular": "sa" if ball.by_pair else "s", "nature": ball.nature, **more,
    }  # fmt: skip

    def lines() -> Iterator[dict[str, Any]]:
        yield header
        for sweep in sweeps:
            yield {"v": sweep.value.tolist(), "lower": sweep.lower.tolist(), "upper": sweep.upper.tolist()}
            states = States(model, ball, witness, sweep, more["kind"] == "optimum")
            yield from map(states.line, np.flatnonzero(~model.terminal).tolist())
        yield {"end": True}

    def fill(stream: Any) -> None:
        for line in lines():
            stream.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    write_whole(target, fill)
    return target.stat().st_size


def digest(model: Model) -> str:
    """SHA-256 of the numbers of a model, pair by pair, as `drmdp_check` computes it from a file."""
    N, S, A, blocks = model.n_kernels, model.n_states, model.n_actions, model.blocks
    weights = np.asarray(model.weights, dtype="<f8")
    found = hashlib.sha256(struct.pack("<qqqd", N, S, A, model.discount) + weights.tobytes())
    for k in np.flatnonzero(model.available.ravel()).tolist():
        lo, hi = int(blocks.indptr[k]), int(blocks.indptr[k + 1])
        costs = costs_of(model, k // A, k % A, lo, hi) + 0.0
        found.update(struct.pack("<qqq", k // A, k % A, hi - lo))
        found.update(np.asarray(blocks.indices[lo:hi], dtype="<i4").tobytes())
        found.update(np.asarray(blocks.data[N * lo : N * hi], dtype="<f8").tobytes())
        found.update(np.asarray(costs, dtype="<f8").tobytes())
    return found.hexdigest()
