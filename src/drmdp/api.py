"""The verbs: solve, bellman, evaluate, certify. Signs are the user's on this side, costs on the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.bellman.build import DEFAULT_BACKEND, build
from drmdp.bellman.nominal import NominalOperator
from drmdp.bellman.operator import Operator
from drmdp.certificate import membership
from drmdp.core import clock, levels
from drmdp.core.files import check_path
from drmdp.core.progress import showing
from drmdp.core.signs import outward, pessimistic, sides, value_of
from drmdp.core.tolerance import RTOL, Tolerance
from drmdp.core.validation import limits, numbers
from drmdp.core.vectors import dot
from drmdp.criteria import criterion_of, named, near, posed
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import Solution, Status
from drmdp.solution.rows import notes_of
from drmdp.solvers.asked import arriving, bias_of, check_ends, check_method, check_unread, remarks, time_of
from drmdp.solvers.evaluation import evaluation_of
from drmdp.solvers.horizon import has_stages, second_outcome, worst_case
from drmdp.solvers.loop import Callback, Outcome, run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Method, Problem, of_mean_kernel
from drmdp.solvers.reach import asked
from drmdp.solvers.reach_given import arrivals
from drmdp.solvers.registry import resolve, settings_of
from drmdp.solvers.sojourn import run_at_rates


def solve(
    model: Model | str | os.PathLike[str],
    ball: AmbiguitySet,
    method: str | Method = "auto",
    tol: float | None = None,
    rtol: float = RTOL,
    max_iters: int | None = None,
    max_seconds: float | None = None,
    start: ArrayLike = None,
    callback: Callback | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    backend: str | None = None,
    cluster: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    nature: str = "adversarial",
    criterion: str | None = None,
) -> Solution:
    """Find the policy with the least worst-case cost (greatest worst-case reward) over the ball, and prove it.

    Parameters
    ----------
    model : Model, or path
        What is known: N kernels, costs or rewards, a discount. The path of a `.drmdp` directory is solved without reading it whole. With `cluster`,
        a model of events whose function has a name that workers can import is asked by them, each for its range.
    ball : Wasserstein, Divergence, Reweighting or Intervals
        What is feared: the kernels that nature may take instead.
    method : name or object
        "auto" (policy iteration), a name in `drmdp.METHODS`, or an object such as ``drmdp.Anderson(memory=3)``.
    tol : float, optional
        Absolute, in the unit of the costs: stop when upper − lower ≤ tol in every state. `rtol` is then ignored.
    rtol : float
        Relative: without `tol`, stop when upper − lower ≤ rtol · max(max|value|, max|c|) in every state.
    max_iters : int, optional
        Most iterations; then the best certified result so far is returned. Without it each method has a finite cap.
    max_seconds : float, optional
        Most seconds from the call on, held to within a sweep; then the best certified result so far is returned.
    start : (S,) value, (S, A) policy or `Solution`, optional
        Where to begin; a policy stands for its value under the mean kernel.
    callback : callable, optional
        Called with a `Record` after every check; returning True stops the run.
    threads : int, optional
        Of the exact operators; the answer does not depend on it. By default ``DRMDP_THREADS`` in the environment, or one
        per core.
    progress : bool, optional
        Say on standard error what is being done, if it takes more than a second; by default on a terminal and in a notebook.
    backend : str, optional
        What computes the robust Bellman operator, "exact" or "conic"; that of the method by default.
    cluster : `drmdp.cluster.Local`, `Ray` or `Mpi`, optional
        What solves the model of a path; the answer does not depend on it. By default this process, range after range.
    checkpoint : path, optional
        Of a path: a folder for what `drmdp.resume` needs to go on with the same bits.
    out : path, optional
        Of a path: a folder for the result, whose arrays then stay in files.
    nature : "adversarial" or "cooperative"
        Whether nature makes things as bad as the set allows, or as good: then the best action is played with the best that the set allows to it.
    criterion : str, optional
        What is optimised. "discounted" if the model's discount is below 1. "total" if it is 1: the expected cost until a terminal state of policies that are
        sure to end, whatever nature does. "average": the cost a step in the long run, per unit of time if the model says how long steps last;
        `lower` and `upper` hold from every start, and the discount is not used.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> solution = drmdp.solve(model, drmdp.Wasserstein(0.5))
    >>> bool(solution.status == "solved" and solution.gap <= 1e-6 * abs(solution.value).max())
    True
    """
    name, chosen = resolve(method)
    if backend is not None:
        chosen = replace(chosen, backend=backend)  # type: ignore[type-var]
    tolerance = Tolerance.of(tol, rtol)
    limits(max_iters, max_seconds, callback)
    by_workers = cluster is not None and isinstance(model, EventModel)
    if by_workers or (not isinstance(model, Model) and isinstance(model, str | os.PathLike)):
        check_unread(model, ball, nature, start, criterion)
        from drmdp.cluster import Local
        from drmdp.cluster import solve as past

        task = past.Task(
            model, ball, chosen, tolerance, max_iters, max_seconds,
            Local(threads=threads) if cluster is None else cluster, None if out is None else os.fspath(out),
        )  # fmt: skip
        with showing(progress):
            return past.solve(task, checkpoint, callback)
    for option, given in (("cluster", cluster), ("checkpoint", checkpoint), ("out", out)):
        if given is not None:
            raise InputError(f"{option}: goes with the path of a .drmdp directory instead of a model in memory")
    check_problem(model, ball)
    ball = ball.facing(nature)
    seen = posed(model, criterion)
    check_method(named(model, criterion), name, chosen, model.discounts is not None)
    begin, deadline = clock.now(), clock.deadline(max_seconds)
    with showing(progress):
        first = _start(model, start, deadline)
        check_ends(seen, ball)
        ends: Any = {"max_iters": max_iters, "deadline": deadline, "tolerance": tolerance, "callback": callback}
        make = partial(build, ball=ball, backend=chosen.backend, threads=threads)
        problem, found = run_at_rates(chosen, make, seen, named(model, criterion), start=first, **ends)
        goal, setup = problem.criterion, clock.now() - begin - found.seconds
        found = arriving(problem, found, tolerance)
    lower, upper = sides(model, found.lower, found.upper)
    own = None if isinstance(method, str) else settings_of(chosen)  # an object of somebody else's may change

    def settings() -> dict[str, Any]:
        said = own or settings_of(chosen)
        ends = {"max_iters": max_iters, "max_seconds": max_seconds}
        timed = {"sojourn": True} if goal.name == "average" and model.sojourn is not None else {}
        return {"method": name, **said, **vars(tolerance), **ends, "ball": repr(ball), "nature": ball.nature, **timed}

    later: Any = {"kernel": found.best.make_kernel, "duality_gap": lambda: dot(model.initial, upper - lower)}
    value = pessimistic(model, lower, upper)
    later |= {"settings": settings, "fingerprint": lambda: seen.fingerprint}
    known = value if goal.name == "discounted" or (found.status is Status.solved and seen is model) else None
    later |= {"notes": lambda: (*notes_of(model, ball, found.policy, known), *remarks(model, problem, found))}
    later |= {"time": lambda: time_of(problem, found)}
    told = {name: getattr(found, name) for name in ("policy", "status", "history", "seconds")}
    told |= {name: getattr(found.best.nature, name, None) for name in ("kernels", "weights")}
    told |= {"setup_seconds": setup, "scale": found.best.scale, "states": model.states, "actions": tuple(model.actions)}
    told |= {"problem": (model, ball), "sweep": found.best.sweep, "sweeps": found.best.sweeps, "rate": found.best.rate}
    told |= {"criterion": goal.name, "bias": bias_of(model, problem, found)}
    return Solution._of(later, value=value, lower=lower, upper=upper, **told)


def resume(
    path: str | os.PathLike[str], cluster: Any = None, callback: Callback | None = None, progress: bool | None = None
) -> Solution:
    """Go on with a run that was checkpointed in a folder, and end with the bits that it would have had undisturbed.

    `cluster` may be another one than it began with. A model, a version or a processor that does not fit is refused with what differs.

    Parameters
    ----------
    path : path
        The folder that was `checkpoint` of `drmdp.solve`.
    cluster : `drmdp.cluster.Local`, `Ray` or `Mpi`, optional
        Who goes on; the one that it began with by default.
    callback : callable, optional
        Called with a `Record` after every check; returning True stops the run.
    progress : bool, optional
        Whether to say what is being done, as for `drmdp.solve`.
    """
    from drmdp.cluster import solve as past

    check_path(path)
    with showing(progress):
        return past.resume(path, cluster, callback)


@dataclass(frozen=True)
class BellmanStep:
    """One robust Bellman update, in the user's sign: lower ≤ F(v) ≤ upper, (S,) each.

    Attributes
    ----------
    value : (S,)
        F(v), as near as the operator computes it.
    policy : (S, A)
        The policy that attains it.
    lower, upper : (S,)
        Certified bounds on F(v).
    kernel : (S, A, S)
        Nature's mean kernel.
    """

    value: Array
    policy: Array
    lower: Array
    upper: Array
    kernel: Any


def bellman(
    model: Model, ball: AmbiguitySet, value: ArrayLike, backend: str = DEFAULT_BACKEND, nature: str = "adversarial"
) -> BellmanStep:
    """Apply the robust Bellman operator once: min over the policy, max over nature (min, if she is "cooperative"), at `value` (S,).

    The bounds are re-derived from the data, as those of a solution are.

    Parameters
    ----------
    model : Model
        What is known.
    ball : set
        What is feared.
    value : (S,)
        Where the operator is applied.
    backend : str
        What computes it, "exact" or "conic".
    nature : "adversarial" or "cooperative"
        Whether nature is at her worst, or helps.
    """
    check_problem(model, ball)
    v = value_of(model, value)
    update = Problem(build(model, ball.facing(nature), backend)).proved(v)
    low, high = (levels.beyond(v, step, side) for step, side in ((update.lower_step, -1), (update.upper_step, +1)))
    lower, upper = sides(model, low, high)
    found = np.clip(outward(model, update.value), lower, upper)
    return BellmanStep(found, update.policy, lower, upper, update.kernel)


def evaluate(
    model: Any,
    ball: Any,
    policy: ArrayLike,
    tol: float | None = None,
    rtol: float = RTOL,
    backend: str = DEFAULT_BACKEND,
    max_seconds: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    nature: str = "adversarial",
    final: ArrayLike = None,
    costs: ArrayLike = None,
    discount: float | None = None,
    criterion: str | None = None,
    target: ArrayLike = None,
    avoid: ArrayLike = None,
    minimise: bool = False,
    rewards: ArrayLike = None,
    half_cycle: bool | None = None,
) -> Any:
    """Worst-case value of a policy, an `Evaluation`, or of a plan, a `HorizonSolution`.

    Parameters
    ----------
    model : Model, or a sequence of T models
        What is known; several models are those of the stages of a plan, as for `drmdp.finite_horizon`.
    ball : set, or a sequence of T sets
        What is feared.
    policy : (S, A) probabilities, (S,) action numbers, a mapping by names, a table, or a `Solution`
        (T, S, A), a list of policies or a `HorizonSolution` is a plan, whose worst case is that over its T stages. With several models a
        policy without stages is played at each.
    tol, rtol, backend, max_seconds, threads, progress, nature : optional
        As for `solve`; with a cooperative nature it is the best case.
    final, discount, half_cycle : optional
        Of a plan, as for `drmdp.finite_horizon`; those of a `HorizonSolution` by default.
    costs, rewards : (S, A), (S, A, S), of a plan also (T, S, A) or (T, S, A, S), optional
        Another outcome of the same policy, such as years of life: `costs` in the model's sense (rewards, if it has rewards), or `rewards`, of which the worst
        case is the least. Values of terminal states and after the last stage are those of the model's outcome, and do not count unless `final` says so.
    criterion : str, optional
        As for `solve`; or "reach", the probability that the policy reaches `target`.
    target, avoid, minimise : optional
        As for `drmdp.reach`: what is to be reached, what must not be before, and whether the policy is meant to keep away from it, so that the worst case is
        the largest probability.
    """
    if costs is not None and rewards is not None:
        raise InputError("give one of costs and rewards, got both")
    if criterion != "reach" and (target is not None or avoid is not None or minimise):
        raise InputError("target, avoid, minimise: go with criterion='reach'")
    if has_stages(model, policy):
        ends = {"tol": tol, "rtol": rtol, "max_seconds": max_seconds, "threads": threads, "progress": progress}
        own: Any = {"final": final, "costs": costs, "discount": discount, "rewards": rewards, "half_cycle": half_cycle}
        return worst_case(model, ball, policy, backend, ends, nature=nature, **own)
    for name, given in (("final", final), ("discount", discount), ("half_cycle", half_cycle)):
        if given is not None:
            raise InputError(f"{name}: goes with a plan over finitely many stages, and this policy has none")
    check_problem(model, ball)
    if costs is not None or rewards is not None:
        model = second_outcome(model, costs, rewards)
    tolerance = Tolerance.of(tol, rtol)
    limits(None, max_seconds)
    deadline = clock.deadline(max_seconds)
    if criterion == "reach":
        m, faced = asked(model, ball, target, avoid, minimise), ball.facing(nature)
        x = m.policy(policy)
        with showing(progress):
            found = arrivals(m, faced, x, tolerance, deadline, threads)
        return evaluation_of(m, faced, x, found, "reach")
    x = model.policy(policy)
    with showing(progress):
        check_ends(seen := posed(model, criterion), ball)
        make = partial(build, ball=ball.facing(nature), backend=backend, threads=threads)
        found = _evaluate(make, seen, x, tolerance, named(model, criterion), deadline=deadline)
    return evaluation_of(model, ball.facing(nature), x, found, named(model, criterion))


@dataclass(frozen=True)
class Certificate:
    """Bounds from scratch, (S,) each: lower ≤ optimum ≤ upper, in the user's sign.

    Attributes
    ----------
    lower, upper : (S,)
        Certified bounds on the optimum.
    duality_gap : float
        The paper's (DG): upper − lower, weighted by the start distribution.
    """

    lower: Array
    upper: Array
    duality_gap: float

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return float((self.upper - self.lower).max())


def certify(
    model: Model,
    ball: AmbiguitySet,
    policy: ArrayLike,
    kernel: ArrayLike = None,
    backend: str = DEFAULT_BACKEND,
    nature: str = "adversarial",
    criterion: str | None = None,
) -> Certificate:
    """Bound the optimum from a policy and a kernel, trusting neither.

    One side is the worst-case value of `policy`; the other is the value of the best policy against `kernel`, an N-tuple
    (N, S, A, S) or a mean kernel (S, A, S). A tuple outside the ball is pulled towards the data until it is inside; for a
    mean kernel the nearest tuple with that mean is computed first. For `Reweighting` it may be nature's
    mixtures instead, (S, N), with "sa" (S, A, N). With a `Solution` as policy, the kernel is its own by default.

    Parameters
    ----------
    model : Model
        What is known.
    ball : set
        What is feared.
    policy : as for `drmdp.evaluate`
        What shall be shown to be good.
    kernel : (N, S, A, S), (S, A, S) or mixtures, optional
        What nature shall play against it.
    backend : str
        What computes the worst case of the policy, "exact" or "conic".
    nature : str
        "adversarial"; a kernel proves nothing of a nature that helps.
    criterion : str, optional
        As for `solve`.
    """
    check_problem(model, ball)
    if ball.facing(nature).nature != "adversarial":
        raise InputError(
            "nature: a kernel shows what an adversary can do, and of one that helps it proves nothing; `solve` and `evaluate` prove their own bounds"
        )
    if ball.moves == "events":
        raise InputError(
            "moves='events': a kernel does not tell which law it was made of; `solve` and `evaluate` prove their own bounds"
        )
    if kernel is None and isinstance(policy, Solution):
        kernel = policy.kernel if policy.weights is None else policy.weights
    if kernel is None:
        raise InputError(
            "kernel: give the kernel that shows how good the policy is, or a Solution as policy, which has one"
        )
    x = model.policy(policy)
    y = membership.inside(model, ball.fitted(model), numbers("kernel", kernel))
    seen, name = posed(model, criterion), named(model, criterion)
    tolerance = near(criterion_of(seen, name), 1e-10)  # as tight as rounding allows
    worst = _evaluate(partial(build, ball=ball, backend=backend), seen, x, tolerance, name, inner=True)
    own: Any = {"tolerance": tolerance, "inner": True, "title": "answering the kernel"}
    best = run_at_rates(PolicyIteration(), lambda m: NominalOperator(m, y), seen, name, **own)[1]
    lower, upper = sides(model, best.lower, worst.upper)
    return Certificate(lower, upper, float(model.initial @ (upper - lower)))


# ---------------------------------------------------------------------- parts


def _evaluate(
    make: Callable[[Model], Operator],
    model: Model,
    policy: Array,
    tolerance: Tolerance,
    criterion: str,
    **settings: Any,
) -> Outcome:
    settings |= {"tolerance": tolerance, "title": "evaluating the policy"}
    problem, found = run_at_rates(PolicyIteration(), make, model, criterion, policy, **settings)
    return arriving(problem, found, tolerance)


def _policy_value(model: Model, policy: Array, deadline: float) -> Array:
    """Value of a policy under the mean kernel."""
    nominal = of_mean_kernel(model, policy)
    ends: Any = {"max_iters": 2, "deadline": deadline, "inner": True, "proof": False, "title": "evaluating the start"}
    return run(PolicyIteration(), nominal, start=None, tolerance=Tolerance(0.0), **ends).middle


def _start(model: Model, start: ArrayLike, deadline: float) -> Array | None:
    if start is None:
        return None
    if isinstance(start, Solution):
        return value_of(model, start.value, "start")
    given = numbers("start", start)
    return _policy_value(model, model.policy(start), deadline) if given.ndim == 2 else value_of(model, given, "start")
