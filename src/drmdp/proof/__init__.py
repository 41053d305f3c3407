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
from drmdp.core.files import check_file, write_whole
from drmdp.errors import InputError
from drmdp.model import Model, changed
from drmdp.model.lifted import seen_by
from drmdp.model.pace import at_rate
from drmdp.proof import text
from drmdp.proof.identity import digest
from drmdp.proof.states import States, Sweep
from drmdp.sets import AmbiguitySet
from drmdp.sets.base import SUPPORTS
from drmdp.sets.registry import entry_of, load

FORMATS = "drmdp proof 1", "drmdp proof 2"
"""Of discounted costs, and of other criteria."""
SIDES = {(0,): "lower", (1,): "upper", (0, 1): "both"}
SLACK = 1e-6
"""Share by which bounds on steps are raised, so that another step shows that they are some."""
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
    told = {"model": digest(seen_by(ball.moves, model)), **about_set(fitted_to(model, ball))}
    told |= {"fingerprint": model.fingerprint, "kind": "optimum" if policy is None else "policy"}
    sweeps = _joint(result, policy) if result.criterion == "discounted" else _apart(result, policy)
    if not sweeps:
        raise InputError(NO_SWEEP)
    if result.criterion != "discounted":
        told |= {"criterion": result.criterion, "sweeps": [SIDES[sweep.sides] for sweep in sweeps]}
        told |= goal_of(model) if result.criterion == "reach" else {}
        model = changed(model, discount=1.0, discounts=None)
        if result.criterion == "average" and result.rate:
            told["rate"], model = result.rate, at_rate(model, result.rate)
    return _write(path, told, [({}, Stage(model, ball, sweep)) for sweep in sweeps])


def _joint(result: Any, policy: Array | None) -> list[Sweep]:
    """The sweep that proves both bounds of a result."""
    value, nature = result.sweep
    sides = sides_of(result.problem[0], result.lower, result.upper)
    return [] if value is None else [Sweep(value, result.policy if policy is None else policy, nature, *sides)]


def _apart(result: Any, policy: Array | None) -> list[Sweep]:
    """Those that prove a side each, from below first; a side that is not bounded has none."""
    model, found = result.problem[0], []
    bounds = sides_of(model, result.lower, result.upper)
    for k, side in enumerate(result.sweeps):
        if side is None or not np.isfinite(bounds[k]).all():
            continue
        way, own, steps = 2 * k - 1, side.update, None
        level = ~(way * side.value < 0) if result.criterion == "reach" else None
        if k == 1 and result.criterion == "total" and model.cost_range[0] < 0:
            steps = _steps_of(result)
        nature = getattr(own.claim, "nature", own.nature)
        found.append(Sweep(side.value, own.policy if policy is None else policy, nature, *bounds, (k,), level, steps))
    return found


def _steps_of(result: Any) -> Array:
    """Bounds on the expected steps of a policy, (S,), which show that it arrives where costs below 0 do not."""
    found = result.time
    if found is None:
        raise InputError(
            "proof: costs below 0 do not show that the policy arrives, and its expected steps have no bound"
        )
    model = result.problem[0]
    least = 1.0 if model.sojourn is None else float(model.sojourn[model.available].min())
    return (1 + SLACK) / least * np.asarray(found)


def goal_of(model: Model) -> dict[str, Any]:
    """What a file says of the question how probable it is to reach states; nothing if a model asks for something else."""
    ends, worth = model.ends, -1.0 if model.maximise else 1.0
    if ends is None or model.discount != 1 or any(model.cost_range) or not np.isin(ends, (0.0, worth)).all():
        return {}
    avoid = np.flatnonzero(model.terminal & (ends == 0)).tolist()
    return {"target": np.flatnonzero(ends).tolist(), "avoid": avoid, "minimise": not model.maximise}


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
        "discount": stages.first.discount, "final": stages.final.tolist(), **({} if plan.costs is None and not plan.half_cycle else {"costs": "of stages"}),
    }  # fmt: skip
    goal = goal_of(stages.first)
    return _write(path, more | ({"criterion": "reach", **goal} if goal else {}), sweeps())


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
    check_file(target)

    def fill(stream: Any) -> None:
        stream.write(text.encoded(header(told)))
        for own, (model, ball, sweep) in sweeps:
            sides = {"v": sweep.value} | {
                name: getattr(sweep, name) for k, name in enumerate(("lower", "upper")) if k in sweep.sides
            }
            sides |= {} if sweep.steps is None else {"w": sweep.steps}
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
    return {"format": FORMATS["criterion" in told], "version": __version__, **told}


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
    counted = None if states.sweep.steps is None else states.counted
    for s in np.flatnonzero(~states.model.terminal).tolist():
        more = {} if counted is None or states.helps else {"time": counted.line(s)["up"]}
        yield text.encoded(states.line(s) | more)
