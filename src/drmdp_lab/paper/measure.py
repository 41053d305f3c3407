"""One run: only the solve is timed, after one of a tiny instance; whatever came out is judged by
the same certificate outside the timed region.

Conic methods whose time is foreseen to exceed the limit, and peers that are written as a Bellman
update, are extrapolated: seconds of a few states' updates near the optimum, each from the last
solution, × states × sweeps, the sweeps counted with exact updates. The first sweep, from v = 0,
needs no program and is not counted (of a first pass of Gauss–Seidel, its first state). Such rows
have the status "extrapolated" and no gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Any

import numpy as np

from drmdp import instances
from drmdp._typing import Array
from drmdp.api import certify, evaluate, solve
from drmdp.core.tolerance import Tolerance
from drmdp.errors import MissingExtra
from drmdp.model import Model
from drmdp.operators.build import build
from drmdp.operators.nominal import NominalOperator
from drmdp.sets import Wasserstein
from drmdp.solution import Solution
from drmdp.solvers import loop
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem
from drmdp.solvers.value_iteration import ValueIteration
from drmdp.ui import clock
from drmdp_lab.paper import interval_models, nested, peers
from drmdp_lab.paper.blocks import GARNETS, Run
from drmdp_lab.paper.clocks import Cost, clocked, timed
from drmdp_lab.paper.methods import METHODS, rule
from drmdp_lab.paper.passes import Passes
from drmdp_lab.paper.provenance import here
from drmdp_lab.paper.records import REACHED, Row

SLOW_TO_JUDGE = (("l2", math.inf),)
"""Balls for which finding N kernels behind a mean kernel takes minutes: there the bounds that
`solve` re-derived are kept.
"""
PROBED = 2
"""States whose updates are timed for an extrapolation."""
LONG = 0.1
"""Updates that take more than so many seconds are timed twice, not three times."""
PATIENCE = 3.0
"""A run that was foreseen to fit the limit may take so many times that."""
EXACT = 1e-6
"""Accuracy of true values, as a share of the tolerance."""
MAX_STEPS = 9_500
POINTS = 60
"""Of a convergence curve."""


def measure(run: Run) -> Row:
    """Do it, and say what came out."""
    settings = {name: "inf" if value == math.inf else value for name, value in asdict(run).items()}
    try:
        found = TASKS[run.task](run)
    except (peers.Missing, MissingExtra) as error:
        found = {"status": "missing", "reason": str(error)}
    return {"key": run.key, **settings, "threads": 1, **found, **here()}


@lru_cache(maxsize=1)
def _model(family: str, S: int, A: int, N: int, discount: float, seed: int) -> Model:
    """The paper's instance: N kernels around a nominal one; garnet's nominal kernel changes with
    the seed too.
    """
    if family in GARNETS:
        nominal = instances.garnet(
            S, A, seed=seed, discount=discount, rewards=family == "garnet-rewards"
        )
    else:
        nominal = instances.FAMILIES[family](S, discount=discount)
    return nominal if N == 1 else instances.perturb(nominal, N, seed=seed)


def problem(run: Run) -> tuple[Model, Wasserstein]:
    """Model and ball of a run."""
    model = _model(run.family, run.n_states, run.n_actions, run.n_kernels, run.discount, run.seed)
    return model, Wasserstein(run.radius, run.metric, run.order, support="all")


# ---------------------------------------------------------------------- solving


def _solve(run: Run) -> Row:
    kind = METHODS[run.method].kind
    if kind == "nominal":
        return _nominal(run)
    if kind in ("conic", "update"):
        return _foreseen(run)
    model, ambiguity = problem(run)
    return _judged(model, ambiguity, *timed(lambda: _call(run, model, ambiguity, run.limit)))


def _call(
    run: Run, model: Model, ambiguity: Wasserstein, limit: float | None, backend: str = "exact"
) -> Solution:
    model.cache.clear()  # set-up is part of every call
    _, factor = rule(run.method, run.rule)
    entry, method = METHODS[run.method], _method(run, backend)
    start = (
        np.random.default_rng(run.seed).uniform(0, 1, model.n_states)
        if entry.random_start
        else None
    )
    return solve(
        model, ambiguity, method, tol=factor * run.tol, max_seconds=limit, start=start, threads=1
    )


def _method(run: Run, backend: str = "exact") -> Any:
    entry, (stop, _) = METHODS[run.method], rule(run.method, run.rule)
    make = entry.printed if run.rule == "printed" and entry.printed else entry.make
    return make(stop=stop) if backend == "exact" else make(stop=stop, backend=backend)


def _judged(model: Model, ambiguity: Wasserstein, found: Solution, cost: Cost) -> Row:
    """Row of a solution, judged from its policy and kernel alone wherever that takes less than
    minutes.
    """
    whole = (ambiguity.metric, ambiguity.order) not in SLOW_TO_JUDGE
    proof: Any = (
        certify(model, ambiguity, found.policy, np.asarray(found.kernel)) if whole else found
    )
    return {
        "status": str(found.status),
        "gap": proof.gap,
        "duality_gap": proof.duality_gap,
        "judge": "certify" if whole else "solve",
        "own_gap": found.gap,
        "own_duality_gap": found.duality_gap,
        "n_iters": found.n_iters,
        "kernel_passes": found.kernel_passes,
        **cost.cells(),
    }


def _foreseen(run: Run) -> Row:
    """Foresee the time of a method with slow updates; run it if it fits, extrapolate otherwise."""
    model, ambiguity = problem(run)
    twin = _call(run, model, ambiguity, None)  # the same steps with exact updates
    free = (
        1 / model.n_states if isinstance(_method(run), Passes) else 1.0
    )  # at v = 0 no program is solved
    sweeps = max(twin.kernel_passes - free, 0.0)
    own = "conic" if METHODS[run.method].kind == "conic" else run.method
    each = _probe(own, run.instance, model, ambiguity)
    foreseen = {name: each[name] * model.n_states * sweeps for name in ("seconds", "cpu_seconds")}
    probe = {
        "probed_states": PROBED,
        "update_cpu_seconds": each["cpu_seconds"],
        "update_error": each["error"],
    }
    if own == "conic" and foreseen["seconds"] <= run.limit:
        row = _judged(
            model,
            ambiguity,
            *timed(lambda: _call(run, model, ambiguity, PATIENCE * run.limit, "conic")),
        )
        return {**row, **probe, "foreseen_cpu_seconds": foreseen["cpu_seconds"]}
    work = {"n_iters": twin.n_iters, "kernel_passes": twin.kernel_passes}
    status = "extrapolated" if twin.status in REACHED else str(twin.status)  # some diverge
    return {
        "status": status,
        "gap": None,
        "duality_gap": None,
        **work,
        **foreseen,
        **probe,
        "memory_mb": None,
    }


_probed: dict[tuple[str, str], dict[str, float]] = {}


def _probe(own: str, instance: str, model: Model, ambiguity: Wasserstein) -> dict[str, float]:
    """Seconds of a state's update near the optimum, the mean over a few states spread over the
    chain; kept for the methods of one instance.
    """
    if (own, instance) not in _probed:
        if any(other != instance for _, other in _probed):
            _probed.clear()
        best = solve(model, ambiguity, tol=EXACT, threads=1).value
        v = -best if model.maximise else best
        states = [int(s) for s in np.linspace(0, model.n_states - 1, PROBED + 2)[1:-1].round()]
        update = peers.updater(own, model, ambiguity)
        costs, errors = [], []
        for s in states:
            new, cost = _warm(_in_state(update, s), v)
            costs.append(cost)
            errors.append(abs(new - _exact(model, ambiguity, v, s)))
        mean = {
            name: float(np.mean([cost[name] for cost in costs]))
            for name in ("seconds", "cpu_seconds")
        }
        _probed[own, instance] = {**mean, "error": max(errors)}
    return _probed[own, instance]


def _in_state(update: Callable[[Array, int], float], s: int) -> Callable[[Array], float]:
    return lambda value: update(value, s)


def _warm(update: Callable[[Array], Any], value: Array) -> tuple[Any, dict[str, float]]:
    """Result at a value and seconds of an update on the way there, each from the last solution;
    never the same point twice.
    """
    update(0.85 * value)  # builds the program
    found = [clocked(partial(update, 0.9 * value))]
    shares = (1.0,) if found[0][1] > LONG else (0.95, 1.0)
    found += [clocked(partial(update, share * value)) for share in shares]
    wall, cpu = np.median(np.array([own[1:] for own in found]), axis=0)
    return found[-1][0], {"seconds": float(wall), "cpu_seconds": float(cpu)}


def _exact(model: Model, ambiguity: Wasserstein, value: Array, s: int) -> float:
    operator = build(model, ambiguity, "exact", 1)
    return float(operator.update(value, s, s + 1).value[0])


def _nominal(run: Run) -> Row:
    """A solver of ordinary MDPs, at radius 0."""
    model, ambiguity = problem(run)
    call, policy = peers.nominal(run.method, model, run.tol)
    found, cost = timed(call)
    proof = certify(model, ambiguity, policy(found), np.asarray(model.mean_kernel))
    return {
        "status": "solved",
        "gap": proof.gap,
        "duality_gap": proof.duality_gap,
        "n_iters": None,
        **cost.cells(),
    }


def _stop(run: Run) -> Row:
    """A run as in `solve`, and how far its value and its policy truly are from the optimum."""
    model, ambiguity = problem(run)
    found, cost = timed(lambda: _call(run, model, ambiguity, run.limit))
    best, own = (
        solve(model, ambiguity, tol=EXACT * run.tol, threads=1),
        evaluate(model, ambiguity, found.policy, tol=EXACT * run.tol),
    )
    loss = float((best.upper - own.lower if model.maximise else own.upper - best.lower).max())
    residual = next((r.residual for r in reversed(found.history) if not np.isnan(r.residual)), 0.0)
    bound = residual / (1 - model.discount)  # ‖v − v*‖ can be this large
    return {
        **_judged(model, ambiguity, found, cost),
        "loss": max(loss, 0.0),
        "residual_bound": bound,
    }


# ---------------------------------------------------------------------- the duality gap


def _gap(run: Run) -> Row:
    """Time to compute (DG) of a given pair, the uniform policy and the mean kernel, each value to
    the tolerance.
    """
    model, ambiguity = problem(run)
    policy = model.available / model.available.sum(axis=1, keepdims=True)
    kernel = np.asarray(model.mean_kernel)
    exact = run.method == "gap-exact"
    method: Any = PolicyIteration() if exact else ValueIteration()

    def call(backend: str, limit: float) -> tuple[loop.Outcome, loop.Outcome]:
        model.cache.clear()
        worst = Problem(build(model, ambiguity, backend, 1), policy)
        best = Problem(NominalOperator(model, kernel))
        limits: dict[str, Any] = {
            "start": None,
            "tolerance": Tolerance(run.tol),
            "deadline": clock.deadline(limit),
        }
        return loop.run(method, worst, **limits), loop.run(method, best, **limits)

    if exact:
        (worst, best), cost = timed(lambda: call("exact", run.limit))
        return _pair(model, worst, best, cost.cells())
    twin, nominal = call("exact", math.inf)
    sweeps = twin.history[-1].kernel_passes - 1
    operator = build(model, ambiguity, "conic", 1)
    value, s = twin.middle, model.n_states // 2
    _, each = _warm(lambda point: operator.evaluate(point, policy, s, s + 1), value)
    foreseen = {name: each[name] * model.n_states * sweeps for name in ("seconds", "cpu_seconds")}
    if foreseen["seconds"] > run.limit:
        return _pair(model, twin, nominal, {**foreseen, "memory_mb": None}) | {
            "status": "extrapolated"
        }
    (worst, best), cost = timed(lambda: call("conic", PATIENCE * run.limit))
    return _pair(model, worst, best, cost.cells()) | {
        "foreseen_cpu_seconds": foreseen["cpu_seconds"]
    }


def _pair(model: Model, worst: loop.Outcome, best: loop.Outcome, cost: dict[str, Any]) -> Row:
    """Row of a computed (DG); the gap is its error."""
    error = float((worst.upper - worst.lower).max() + (best.upper - best.lower).max())
    last = worst.history[-1]
    found = {
        "status": str(worst.status),
        "gap": error,
        "duality_gap": float(model.initial @ (worst.upper - best.lower)),
    }
    return {**found, "n_iters": last.iteration, "kernel_passes": last.kernel_passes, **cost}


# ---------------------------------------------------------------------- the theory of Algorithm 1


def _curve(run: Run) -> Row:
    """(DG) against steps."""
    model, ambiguity = problem(run)
    method = _method(run)
    limits: dict[str, Any] = {
        "tol": run.tol,
        "max_iters": MAX_STEPS,
        "max_seconds": run.limit,
        "threads": 1,
    }
    found, cost = timed(lambda: solve(model, ambiguity, method, **limits))
    checked = [
        r for r in found.history if r.iteration > 0 and not np.isnan(r.residual)
    ]  # the last may be between two checks
    points = [(r.iteration, r.upper - r.lower) for r in checked if r.upper - r.lower > 1e-6]
    marks = np.unique(np.geomspace(1, max(len(points), 1), POINTS).round().astype(int) - 1)
    curve = [[points[k][0], float(f"{points[k][1]:.6g}")] for k in marks if k < len(points)]
    return {**_judged(model, ambiguity, found, cost), "curve": curve}


def _step(run: Run) -> Row:
    """CPU time of a step of Algorithm 1, certificates left out."""
    model, ambiguity = problem(run)
    method = METHODS[run.method].make()
    work = Problem(build(model, ambiguity, "exact", 1))
    state = method.init(work, None)
    for _ in range(14):  # three epochs
        state = method.step(work, state)
    costs = []
    for _ in range(14):  # of the sixteen steps of the fourth, the last of which certifies
        state, *cost = clocked(partial(method.step, work, state))
        costs.append(cost)
    wall, cpu = zip(*costs, strict=True)
    done = {"status": "solved", "gap": None, "duality_gap": None, "n_iters": len(costs)}
    return {**done, **Cost(float(np.median(wall)), cpu, None).cells()}


def _map(run: Run) -> Row:
    """How much a proximal map evaluates: rows by bisection, multipliers by Newton's method; the
    tolerance is its accuracy.
    """
    count = nested.evaluations if run.method == "map-bisection" else nested.multipliers
    return {
        "status": "solved",
        "gap": None,
        "duality_gap": None,
        "n_iters": count(*problem(run), run.tol),
    }


TASKS: dict[str, Callable[[Run], Row]] = {
    "solve": _solve,
    "stop": _stop,
    "gap": _gap,
    "curve": _curve,
    "step": _step,
    "map": _map,
    "reach": interval_models.solve,
    "total": interval_models.solve,
}
