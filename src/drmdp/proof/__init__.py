"""Proof files: witnesses with which `drmdp_check`, which shares no line with this package, checks
the bounds of a result.

A file is a line of JSON for the problem, one for every sweep (v and the claimed bounds), and one
for every state: the policy, nature's rows and the multipliers that bound every kernel
(`responses`). `docs/proofs.md` describes the format. All values are costs: rewards are negated.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp._version import __version__
from drmdp.errors import InputError
from drmdp.io.files import check_file, write_whole
from drmdp.model import Model, changed
from drmdp.model.events.lifted_model import seen_by
from drmdp.model.rates import at_rate
from drmdp.proof.states import END, States, Sweep, digest, encoded, numbers_of, vector_lines
from drmdp.sets import AmbiguitySet
from drmdp.sets.base import SUPPORTS
from drmdp.sets.registry import entry_of, load

FORMATS = "drmdp proof 1", "drmdp proof 2"
"""Of discounted costs, and of other criteria."""
SIDES = {(0,): "lower", (1,): "upper", (0, 1): "both"}
SLACK = 1e-6
"""Share by which bounds on expected steps are raised, so that a further step confirms them."""
AGAIN = "has no witnesses; they are found by solving in memory, from here on"
NO_SWEEP = (
    "proof: there is no sweep of the robust operator that proves these bounds; solve again from "
    "them, not by 'first-order': drmdp.solve(model, ambiguity, start=solution).proof(path)"
)
ProvedSweep = tuple[dict[str, Any], Model, AmbiguitySet, Sweep]
"""The entries in which the header of a sweep differs, its model and set, and the sweep."""
NO_TIME = (
    "proof: costs below 0 do not show that the policy arrives, and its expected steps have no bound"
)


def write(path: str | os.PathLike[str], result: Any, policy: Array | None = None) -> int:
    """Write the proof of a `Solution` or, with its policy, of an `Evaluation`; returns the bytes
    written.
    """
    if result.problem is None and getattr(result, "held", None) is not None:
        return int(result.held.write_proof(path, result.fingerprint))
    if result.problem is None:
        call = "drmdp.solve(model, ambiguity, start=solution).proof(path)"
        raise InputError(f"proof: a result that was loaded {AGAIN}: {call}")
    model, ambiguity = result.problem
    head: dict[str, Any] = {"model": digest(seen_by(ambiguity.moves, model))}
    head |= about_set(fitted_to(model, ambiguity))
    head |= {"fingerprint": model.fingerprint, "kind": "optimum" if policy is None else "policy"}
    discounted = result.criterion == "discounted"
    sweeps = _joint(result, policy) if discounted else _apart(result, policy)
    if not sweeps:
        raise InputError(NO_SWEEP)
    if not discounted:
        head |= {"criterion": result.criterion, "sweeps": [SIDES[sweep.sides] for sweep in sweeps]}
        head |= goal_of(model) if result.criterion == "reach" else {}
        model = changed(model, discount=1.0, discounts=None)
        if result.criterion == "average" and result.rate:
            head["rate"], model = result.rate, at_rate(model, result.rate)
    return _write(path, head, [({}, model, ambiguity, sweep) for sweep in sweeps])


def _joint(result: Any, policy: Array | None) -> list[Sweep]:
    """The sweep that proves both bounds of a result."""
    value, nature = result.sweep
    if value is None:
        return []
    sides = sides_of(result.problem[0], result.lower, result.upper)
    return [Sweep(value, result.policy if policy is None else policy, nature, *sides)]


def _apart(result: Any, policy: Array | None) -> list[Sweep]:
    """The sweeps that prove a side each, from below first; none for a side without a bound."""
    model, sweeps = result.problem[0], []
    bounds = sides_of(model, result.lower, result.upper)
    for k, side in enumerate(result.sweeps):
        if side is None or not np.isfinite(bounds[k]).all():
            continue
        update, steps = side.update, None
        level = ~((2 * k - 1) * side.value < 0) if result.criterion == "reach" else None
        if k == 1 and result.criterion == "total" and model.cost_range[0] < 0:
            steps = _steps_of(result)
        nature = getattr(update.claim, "nature", update.nature)
        played = update.policy if policy is None else policy
        sweeps.append(Sweep(side.value, played, nature, *bounds, (k,), level, steps))
    return sweeps


def _steps_of(result: Any) -> Array:
    """Bounds on the expected steps of a policy, (S,), which show that it arrives where costs below
    0 do not.
    """
    steps = result.time
    if steps is None:
        raise InputError(NO_TIME)
    model = result.problem[0]
    least = 1.0 if model.sojourn is None else float(model.sojourn[model.available].min())
    return (1 + SLACK) / least * np.asarray(steps)


def goal_of(model: Model) -> dict[str, Any]:
    """Header of the probability of reaching states; empty if the model is not of this form."""
    ends, worth = model.ends, -1.0 if model.maximise else 1.0
    if ends is None or model.discount != 1 or any(model.cost_range):
        return {}
    if not np.isin(ends, (0.0, worth)).all():
        return {}
    avoid = np.flatnonzero(model.terminal & (ends == 0)).tolist()
    return {"target": np.flatnonzero(ends).tolist(), "avoid": avoid, "minimise": not model.maximise}


def write_plan(path: str | os.PathLike[str], plan: Any) -> int:
    """Write the proof of a `HorizonSolution`, from the last stage to the first; returns the bytes
    written.
    """
    natures = plan.natures
    if natures is None:
        call = "drmdp.evaluate(model, ambiguity, plan).proof(path)"
        raise InputError(f"proof: a plan that was loaded {AGAIN}: {call}")
    stages = natures.stages
    known: dict[Any, dict[str, Any]] = {}

    def about_stage(t: int) -> dict[str, Any]:
        """Header of the model of a stage, as the user gave it, and of its set."""
        source, ambiguity = stages.given[t], fitted_to(stages.models[t], stages.sets[t])
        key = id(source), id(stages.sets[t]), ambiguity.support
        if key not in known:
            known[key] = {"model": digest(seen_by(ambiguity.moves, source)), **about_set(ambiguity)}
        return known[key]

    def sweeps() -> Iterator[ProvedSweep]:
        for t, update in natures.again():
            sides = sides_of(stages.models[t], plan.lower[t], plan.upper[t])
            sweep = Sweep(natures.swept[t], plan.policy[t], update.nature, *sides)
            changes = {name: x for name, x in about_stage(t).items() if x != first[name]}
            yield changes, stages.models[t], stages.sets[t], sweep

    first = about_stage(0)
    head = first | {"fingerprint": stages.given[0].fingerprint}
    head |= {"kind": "optimum" if plan.optimal else "policy", "stages": len(stages)}
    head |= {"discount": stages.first.discount, "final": stages.final.tolist()}
    if plan.costs is not None or plan.half_cycle:
        head["costs"] = "of stages"
    if goal := goal_of(stages.first):
        head |= {"criterion": "reach", **goal}
    return _write(path, head, sweeps())


def sides_of(model: Any, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds as costs."""
    return (-upper, -lower) if model.maximise else (lower, upper)


def _write(path: str | os.PathLike[str], head: Any, sweeps: Iterable[ProvedSweep]) -> int:
    """Write the proofs of sweeps; returns the bytes written."""
    target = Path(path)
    check_file(target)

    def fill(stream: Any) -> None:
        stream.write(encoded(header(head)))
        for changes, model, ambiguity, sweep in sweeps:
            vectors = {"v": sweep.value}
            vectors |= {("lower", "upper")[k]: (sweep.lower, sweep.upper)[k] for k in sweep.sides}
            vectors |= {} if sweep.steps is None else {"w": sweep.steps}
            texts = {name: numbers_of(vector) for name, vector in vectors.items()}
            stream.writelines(vector_lines(texts, changes))
            lifted, fitted = seen_by(ambiguity.moves, model), fitted_to(model, ambiguity)
            states = States(lifted, fitted, witness_of(ambiguity), sweep, head["kind"] == "optimum")
            stream.writelines(lines(states))
        stream.write(END)

    write_whole(target, fill)
    return target.stat().st_size


def witness_of(ambiguity: AmbiguitySet) -> Any:
    """The witness of a set: its parts of a proof file."""
    where = entry_of(ambiguity).witness
    if not where:
        raise InputError(f"proof: cannot be written for {ambiguity.short} yet: no witness")
    return load(where)


def header(head: dict[str, Any]) -> dict[str, Any]:
    """The first line."""
    return {"format": FORMATS["criterion" in head], "version": __version__, **head}


def fitted_to(model: Model, ambiguity: AmbiguitySet) -> AmbiguitySet:
    """The set that operators of the model take, in the hands of the same nature."""
    return ambiguity.fitted(model).facing(ambiguity.nature)


def about_set(ambiguity: AmbiguitySet) -> dict[str, Any]:
    """Header of a set, which is fitted to its model."""
    support = ambiguity.support if ambiguity.support in SUPPORTS else "all"
    line = {"set": witness_of(ambiguity).about(ambiguity), "support": support}
    line |= {"rectangular": "sa" if ambiguity.by_pair else "s", "moves": ambiguity.moves}
    return line | {"nature": ambiguity.nature}


def lines(states: States) -> Iterator[bytes]:
    """The lines of states, one after the other."""
    counted = None if states.sweep.steps is None else states.counted
    for s in np.flatnonzero(~states.model.terminal).tolist():
        more = {} if counted is None or states.helps else {"time": counted.line(s)["up"]}
        yield encoded(states.line(s) | more)
