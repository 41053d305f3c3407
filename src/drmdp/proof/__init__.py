"""Proof files: what a stranger needs to check the bounds of a result with `drmdp_check`, which shares no line with this package.

A file is a line of JSON for the problem, one for every sweep (v and the bounds that are claimed), and one for every state: the policy, nature's rows and the
multipliers that show that no kernel does more (`responses`). `docs/proofs.md` describes the format. All values are costs: rewards are negated.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.core.files import check_parent, write_whole
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.lifted import seen_by
from drmdp.proof import text
from drmdp.proof.identity import digest
from drmdp.proof.states import States, Sweep
from drmdp.sets import AmbiguitySet
from drmdp.sets.base import SUPPORTS
from drmdp.sets.registry import entry_of, load

FORMAT = "drmdp proof 1"
AGAIN = "has no witnesses; they are found by solving in memory, from here on"
NO_SWEEP = "proof: there is no sweep of the robust operator that proves these bounds; solve with another method than 'first-order', or longer"


def write(path: str | os.PathLike[str], result: Any, policy: Array | None = None) -> int:
    """Write the proof of a `Solution` or, with its policy, of an `Evaluation`; returns the bytes written."""
    if result.problem is None and getattr(result, "held", None) is not None:
        return int(result.held.write_proof(path, result.fingerprint))
    if result.problem is None:
        raise InputError(
            f"proof: a result that was loaded {AGAIN}: drmdp.solve(model, ball, start=solution).proof(path)"
        )
    model, ball = result.problem
    value, nature = result.sweep
    if value is None:
        raise InputError(NO_SWEEP)
    sides = sides_of(model, result.lower, result.upper)
    stage = Stage(model, ball, Sweep(value, result.policy if policy is None else policy, nature, *sides))
    told = {"model": digest(seen_by(ball.moves, model)), **about_set(fitted_to(model, ball))}
    told |= {"fingerprint": model.fingerprint, "kind": "optimum" if policy is None else "policy"}
    return _write(path, told, [({}, stage)])


def write_plan(path: str | os.PathLike[str], plan: Any) -> int:
    """Write the proof of a `HorizonSolution`, from the last stage to the first; returns the bytes written."""
    natures = plan.natures
    if natures is None:
        raise InputError(f"proof: a plan that was loaded {AGAIN}: drmdp.evaluate(model, ball, plan).proof(path)")
    stages, optimal = natures.stages, plan.optimal
    known: dict[Any, dict[str, Any]] = {}

    def told(t: int) -> dict[str, Any]:
        """What the file says of the model of a stage, as it was given, and of its set."""
        given, ball = stages.given[t], fitted_to(stages.models[t], stages.balls[t])
        key = id(given), id(stages.balls[t]), ball.support
        if key not in known:
            known[key] = {"model": digest(seen_by(ball.moves, given)), **about_set(ball)}
        return known[key]

    def sweeps() -> Iterator[tuple[dict[str, Any], Stage]]:
        for t, update in natures.again():
            sides = sides_of(stages.models[t], plan.lower[t], plan.upper[t])
            sweep = Sweep(natures.swept[t], plan.policy[t], update.nature, *sides)
            own = {name: x for name, x in told(t).items() if x != first[name]}
            yield own, Stage(stages.models[t], stages.balls[t], sweep)

    first = told(0)
    more = first | {
        "fingerprint": stages.given[0].fingerprint, "kind": "optimum" if optimal else "policy", "stages": len(stages),
        "discount": stages.first.discount, "final": stages.final.tolist(), **({} if plan.costs is None else {"costs": "of stages"}),
    }  # fmt: skip
    return _write(path, more, sweeps())


class Stage(NamedTuple):
    """A model, a set and a sweep."""

    model: Model
    ball: AmbiguitySet
    sweep: Any


def sides_of(model: Any, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds as costs."""
    return (-upper, -lower) if model.maximise else (lower, upper)


def _write(path: str | os.PathLike[str], told: dict[str, Any], sweeps: Iterable[tuple[dict[str, Any], Stage]]) -> int:
    """Write what several sweeps prove, and what the lines of each say that the first line does not; returns the bytes written."""
    target = Path(path)
    check_parent(target)

    def fill(stream: Any) -> None:
        stream.write(text.encoded(header(told)))
        for own, (model, ball, sweep) in sweeps:
            sides = {"v": sweep.value, "lower": sweep.lower, "upper": sweep.upper}
            stream.writelines(text.vectors({name: text.numbers(vector) for name, vector in sides.items()}, own))
            seen, fitted = seen_by(ball.moves, model), fitted_to(model, ball)
            states = States(seen, fitted, witness_of(ball), sweep, told["kind"] == "optimum")
            stream.writelines(lines(states))
        stream.write(text.END)

    write_whole(target, fill)
    return target.stat().st_size


def witness_of(ball: AmbiguitySet) -> Any:
    """What a proof file says of a set."""
    where = entry_of(ball).witness
    if not where:
        raise InputError(f"proof: cannot be written for {ball.short} yet")
    return load(where)


def header(told: dict[str, Any]) -> dict[str, Any]:
    """The first line."""
    return {"format": FORMAT, "version": __version__, **told}


def fitted_to(model: Model, ball: AmbiguitySet) -> AmbiguitySet:
    """The set that operators of the model take, in the hands of the same nature."""
    return ball.fitted(model).facing(ball.nature)


def about_set(ball: AmbiguitySet) -> dict[str, Any]:
    """What a file says of a set, which is fitted to its model."""
    return {
        "set": witness_of(ball).told(ball), "support": ball.support if ball.support in SUPPORTS else "all",
        "rectangular": "sa" if ball.by_pair else "s", "moves": ball.moves, "nature": ball.nature,
    }  # fmt: skip


def lines(states: States) -> Iterator[bytes]:
    """The lines of states, one after the other."""
    for s in np.flatnonzero(~states.model.terminal).tolist():
        yield text.encoded(states.line(s))
