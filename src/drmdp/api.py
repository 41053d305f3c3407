"""The public verbs: solve, resume, bellman, evaluate, certify; values in the user's sign."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.certificate import membership
from drmdp.certificate.dense import Bounds
from drmdp.core import levels
from drmdp.core.signs import outward, pessimistic, sides, value_of
from drmdp.core.tolerance import RTOL, Tolerance
from drmdp.core.validation import limits, numbers
from drmdp.core.vectors import dot
from drmdp.criteria import criterion_of, named, near, posed
from drmdp.errors import InputError, refuse_given
from drmdp.io.files import check_path
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.operators.build import DEFAULT_BACKEND, build
from drmdp.operators.nominal import NominalOperator
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import Solution, Status
from drmdp.solution.rows import notes_of
from drmdp.solvers import criterion_results
from drmdp.solvers.evaluation import evaluation_of
from drmdp.solvers.horizon import worst_case
from drmdp.solvers.horizon.stages import has_stages, is_plan, second_outcome
from drmdp.solvers.loop import Callback, Outcome, run
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Method, Problem, of_mean_kernel
from drmdp.solvers.reachability.reach import arrivals, asked, reached_within
from drmdp.solvers.registry import resolve, settings_of
from drmdp.solvers.sojourn import run_at_rates
from drmdp.ui import clock
from drmdp.ui.progress import showing


def solve(
    model: Model | str | os.PathLike[str],
    ambiguity: AmbiguitySet,
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
    """Find the policy with the least worst-case cost (greatest worst-case reward) over the
    ambiguity set, and prove it.

    Parameters
    ----------
    model : Model, or path
        The data: N kernels, costs or rewards, a discount. The path of a `.drmdp` directory is
        solved without reading it whole. With `cluster`, a model of events whose function has a name
        that workers can import is asked by them, each for its range.
    ambiguity : Wasserstein, Divergence, Reweighting or Intervals
        The ambiguity set: the kernels that nature may take instead.
    method : name or object
        "auto" (policy iteration), a name in `drmdp.METHODS`, or an object such as
        ``drmdp.Anderson(memory=3)``.
    tol : float, optional
        Absolute, in the unit of the costs: stop when upper − lower ≤ tol in every state. `rtol` is
        then ignored.
    rtol : float
        Relative: without `tol`, stop when upper − lower ≤ rtol · max(max|value|, max|c|) in every
        state.
    max_iters : int, optional
        Most iterations; then the best certified result so far is returned. Without it each method
        has a finite cap.
    max_seconds : float, optional
        Most seconds from the call on, held to within a sweep; then the best certified result so far
        is returned.
    start : (S,) value, (S, A) policy or `Solution`, optional
        Where to begin; a policy stands for its value under the mean kernel.
    callback : callable, optional
        Called with a `Record` after every check; returning True stops the run.
    threads : int, optional
        Of the exact operators; the answer does not depend on it. By default ``DRMDP_THREADS`` in
        the environment, or one per core.
    progress : bool, optional
        Say on standard error what is being done, if it takes more than a second; by default on a
        terminal and in a notebook.
    backend : str, optional
        What computes the robust Bellman operator, "exact" or "conic"; that of the method by
        default.
    cluster : `drmdp.cluster.Local`, `Ray` or `Mpi`, optional
        What solves the model of a path; the answer does not depend on it. By default this process,
        range after range.
    checkpoint : path, optional
        Of a path: a folder for what `drmdp.resume` needs to go on with the same bits.
    out : path, optional
        Of a path: a folder for the result, whose arrays then stay in files.
    nature : "adversarial" or "cooperative"
        Whether nature makes things as bad as the set allows, or as good: then the best action is
        played with the best that the set allows to it.
    criterion : str, optional
        What is optimised. "discounted" if the model's discount is below 1. "total" if it is 1: the
        expected cost until a terminal state of policies that are sure to end, whatever nature does.
        "average": the cost a step in the long run, per unit of time if the model says how long
        steps last; `lower` and `upper` hold from every start, and the discount is not used.

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
        criterion_results.check_unread(model, ambiguity, nature, start, criterion)
        from drmdp.cluster import Local
        from drmdp.cluster import solve as past

        cluster = Local(threads=threads) if cluster is None else cluster
        folder = None if out is None else os.fspath(out)
        limit = (tolerance, max_iters, max_seconds)
        with showing(progress):
            task = past.Task(model, ambiguity, chosen, *limit, cluster, folder)
            return past.solve(task, checkpoint, callback)
    rule = "goes with the path of a .drmdp directory instead of a model in memory"
    refuse_given({"cluster": cluster, "checkpoint": checkpoint, "out": out}, rule)
    check_problem(model, ambiguity)
    ambiguity = ambiguity.facing(nature)
    posed_model, criterion = posed(model, criterion), named(model, criterion)
    criterion_results.check_method(criterion, name, chosen, model.discounts is not None)
    begin, deadline = clock.now(), clock.deadline(max_seconds)
    with showing(progress):
        ends: Any = {"start": _start(model, start, deadline), "deadline": deadline}
        ends |= {"max_iters": max_iters, "tolerance": tolerance, "callback": callback}
        criterion_results.check_ends(posed_model, ambiguity)
        make = partial(build, ambiguity=ambiguity, backend=chosen.backend, threads=threads)
        problem, outcome = run_at_rates(chosen, make, posed_model, criterion, **ends)
        setup = clock.now() - begin - outcome.seconds
        outcome = criterion_results.arriving(problem, outcome, tolerance)
    lower, upper = sides(model, outcome.lower, outcome.upper)
    value, best, goal = pessimistic(model, lower, upper), outcome.best, problem.criterion.name
    copy = None if isinstance(method, str) else settings_of(chosen)  # an object may change

    def settings() -> dict[str, Any]:
        timed = {"sojourn": True} if goal == "average" and model.sojourn is not None else {}
        limits = {"max_iters": max_iters, "max_seconds": max_seconds}
        nature = {"ambiguity": repr(ambiguity), "nature": ambiguity.nature}
        chosen_settings = copy or settings_of(chosen)
        return {"method": name, **chosen_settings, **vars(tolerance), **limits, **nature, **timed}

    final = outcome.status is Status.solved and posed_model is model
    known = value if goal == "discounted" or final else None

    def notes() -> tuple[str, ...]:
        rows = notes_of(model, ambiguity, outcome.policy, known)
        return (*rows, *criterion_results.remarks(model, problem, outcome))

    later: Any = {"kernel": best.make_kernel, "settings": settings, "notes": notes}
    later |= {"duality_gap": lambda: dot(model.initial, upper - lower)}
    later |= {"fingerprint": lambda: posed_model.fingerprint}
    later |= {"time": lambda: criterion_results.time_of(problem, outcome)}
    fields = {name: getattr(outcome, name) for name in ("policy", "status", "history", "seconds")}
    fields |= {name: getattr(best, name) for name in ("scale", "sweep", "sweeps", "rate")}
    fields |= {name: getattr(best.nature, name, None) for name in ("kernels", "weights")}
    fields |= {"states": model.states, "actions": tuple(model.actions), "setup_seconds": setup}
    fields |= {"criterion": goal, "bias": criterion_results.bias_of(model, problem, outcome)}
    fields |= {"problem": (model, ambiguity), "value": value, "lower": lower, "upper": upper}
    return Solution._of(later, **fields)


def resume(
    path: str | os.PathLike[str],
    cluster: Any = None,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Solution:
    """Go on with a run that was checkpointed in a folder, and end with the bits that it would have
    had undisturbed.

    `cluster` may be another one than it began with. A model, a version or a processor that does not
    fit is refused with what differs.

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
    model: Model,
    ambiguity: AmbiguitySet,
    value: ArrayLike,
    backend: str = DEFAULT_BACKEND,
    nature: str = "adversarial",
) -> BellmanStep:
    """Apply the robust Bellman operator once: min over the policy, max over nature (min, if she is
    "cooperative"), at `value` (S,).

    The bounds are re-derived from the data, as those of a solution are.

    Parameters
    ----------
    model : Model
        The data.
    ambiguity : set
        The ambiguity set.
    value : (S,)
        Where the operator is applied.
    backend : str
        What computes it, "exact" or "conic".
    nature : "adversarial" or "cooperative"
        Whether nature is at her worst, or helps.
    """
    check_problem(model, ambiguity)
    v = value_of(model, value)
    update = Problem(build(model, ambiguity.facing(nature), backend)).proved(v)
    low, high = levels.beyond(v, update.lower_step, -1), levels.beyond(v, update.upper_step, +1)
    lower, upper = sides(model, low, high)
    image = np.clip(outward(model, update.value), lower, upper)
    return BellmanStep(image, update.policy, lower, upper, update.kernel)


def evaluate(
    model: Any,
    ambiguity: Any,
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
    within: int | None = None,
) -> Any:
    """Worst-case value of a policy, an `Evaluation`, or of a plan, a `HorizonSolution`.

    Parameters
    ----------
    model : Model, or a sequence of T models
        The data; several models are those of the stages of a plan, as for
        `drmdp.finite_horizon`.
    ambiguity : set, or a sequence of T sets
        The ambiguity set.
    policy : (S, A) probabilities, (S,) action numbers, a mapping by names, a table, or a `Solution`
        (T, S, A), a list of policies or a `HorizonSolution` is a plan, whose worst case is that
        over its T stages. With several models a policy without stages is played at each.
    tol, rtol, backend, max_seconds, threads, progress, nature : optional
        As for `solve`; with a cooperative nature it is the best case.
    final, discount, half_cycle : optional
        Of a plan, as for `drmdp.finite_horizon`; those of a `HorizonSolution` by default.
    costs, rewards : (S, A), (S, A, S), of a plan also (T, S, A) or (T, S, A, S), optional
        Another outcome of the same policy, such as years of life: `costs` in the model's sense
        (rewards, if it has rewards), or `rewards`, of which the worst case is the least. Values of
        terminal states and after the last stage are those of the model's outcome, and do not count
        unless `final` says so.
    criterion : str, optional
        As for `solve`; or "reach", the probability that the policy reaches `target`.
    target, avoid, minimise : optional
        As for `drmdp.reach`: what is to be reached, what must not be before, and whether the policy
        is meant to keep away from it, so that the worst case is the largest probability.
    within : int, optional
        In at most so many steps, in each of which the policy is played; a plan has as many as it
        has stages. The result is a `HorizonSolution`.
    """
    if costs is not None and rewards is not None:
        raise InputError("give one of costs and rewards, got both")
    question = target, avoid, minimise
    if criterion != "reach" and (minimise or any(x is not None for x in (target, avoid, within))):
        raise InputError("target, avoid, minimise, within: go with criterion='reach'")
    staged: Any = {"final": final, "discount": discount, "half_cycle": half_cycle}
    ends = {"tol": tol, "rtol": rtol, "max_seconds": max_seconds}
    ends |= {"threads": threads, "progress": progress}
    if criterion == "reach":
        refuse_given(staged, "a probability has none")
        if within is not None or is_plan(policy):
            steps: Any = (within, nature, backend, ends)
            return reached_within(model, ambiguity, policy, question, *steps)
    elif has_stages(model, policy):
        staged |= {"costs": costs, "rewards": rewards, "nature": nature}
        return worst_case(model, ambiguity, policy, backend, ends, **staged)
    refuse_given(staged, "goes with a plan over finitely many stages, and this policy has none")
    check_problem(model, ambiguity)
    if costs is not None or rewards is not None:
        model = second_outcome(model, costs, rewards)
    tolerance = Tolerance.of(tol, rtol)
    limits(None, max_seconds)
    deadline = clock.deadline(max_seconds)
    if criterion == "reach":
        m, faced = asked(model, ambiguity, *question), ambiguity.facing(nature)
        x = m.policy(policy)
        told: Any = {"title": "evaluating the policy", "tolerance": tolerance}
        with showing(progress):
            result = arrivals(m, faced, x, threads, deadline=deadline, **told)
        return evaluation_of(m, faced, x, result, "reach")
    x, faced = model.policy(policy), ambiguity.facing(nature)
    posed_model, criterion = posed(model, criterion), named(model, criterion)
    with showing(progress):
        criterion_results.check_ends(posed_model, ambiguity)
        make = partial(build, ambiguity=faced, backend=backend, threads=threads)
        result = _evaluate(make, posed_model, x, criterion, tolerance=tolerance, deadline=deadline)
    return evaluation_of(model, faced, x, result, criterion)


@dataclass(frozen=True)
class Certificate(Bounds):
    """Bounds from scratch, (S,) each: lower ≤ optimum ≤ upper, in the user's sign.

    Attributes
    ----------
    lower, upper : (S,)
        Certified bounds on the optimum.
    duality_gap : float
        The paper's (DG): upper − lower, weighted by the start distribution.
    """

    duality_gap: float


def certify(
    model: Model,
    ambiguity: AmbiguitySet,
    policy: ArrayLike,
    kernel: ArrayLike = None,
    backend: str = DEFAULT_BACKEND,
    nature: str = "adversarial",
    criterion: str | None = None,
) -> Certificate:
    """Bound the optimum from a policy and a kernel, trusting neither.

    One side is the worst-case value of `policy`; the other is the value of the best policy against
    `kernel`, an N-tuple (N, S, A, S) or a mean kernel (S, A, S). A tuple outside the ball is pulled
    towards the data until it is inside; for a mean kernel the nearest tuple with that mean is
    computed first. For `Reweighting` it may be nature's mixtures instead, (S, N), with "sa" (S, A,
    N). With a `Solution` as policy, its kernel is the default.

    Parameters
    ----------
    model : Model
        The data.
    ambiguity : set
        The ambiguity set.
    policy : as for `drmdp.evaluate`
        The policy that is to be shown to be good.
    kernel : (N, S, A, S), (S, A, S) or mixtures, optional
        The kernel of nature against it.
    backend : str
        What computes the worst case of the policy, "exact" or "conic".
    nature : str
        "adversarial"; a kernel proves nothing of a nature that helps.
    criterion : str, optional
        As for `solve`.
    """
    check_problem(model, ambiguity)
    cure = "`solve` and `evaluate` prove their own bounds"
    if ambiguity.facing(nature).nature != "adversarial":
        rule = "a kernel shows what an adversary can do, and of one that helps it proves nothing"
        raise InputError(f"nature: {rule}; {cure}")
    if ambiguity.moves == "events":
        raise InputError(f"moves='events': a kernel does not tell which law it was made of; {cure}")
    if kernel is None and isinstance(policy, Solution):
        kernel = policy.kernel if policy.weights is None else policy.weights
    if kernel is None:
        cure = "give the kernel that shows how good the policy is"
        raise InputError(f"kernel: {cure}, or a Solution as policy, which has one")
    x = model.policy(policy)
    y = membership.inside(model, ambiguity.fitted(model), numbers("kernel", kernel))
    posed_model, name = posed(model, criterion), named(model, criterion)
    tolerance = near(criterion_of(posed_model, name), 1e-10)  # as tight as rounding allows
    make = partial(build, ambiguity=ambiguity, backend=backend)
    settings: Any = {"tolerance": tolerance, "inner": True}
    worst = _evaluate(make, posed_model, x, name, **settings)
    problem = lambda m: NominalOperator(m, y), posed_model, name
    best = run_at_rates(PolicyIteration(), *problem, **settings, title="answering the kernel")[1]
    lower, upper = sides(model, best.lower, worst.upper)
    return Certificate(lower, upper, float(model.initial @ (upper - lower)))


# ---------------------------------------------------------------------- parts


def _evaluate(make: Any, model: Model, policy: Array, criterion: str, **ends: Any) -> Outcome:
    ends |= {"title": "evaluating the policy"}
    problem, outcome = run_at_rates(PolicyIteration(), make, model, criterion, policy, **ends)
    return criterion_results.arriving(problem, outcome, ends["tolerance"])


def _start(model: Model, start: ArrayLike, deadline: float) -> Array | None:
    """Values to begin with; of a policy those under the mean kernel."""
    if start is None:
        return None
    array = start.value if isinstance(start, Solution) else numbers("start", start)
    if array.ndim != 2:
        return value_of(model, array, "start")
    nominal = of_mean_kernel(model, model.policy(start))
    ends: Any = {"max_iters": 2, "deadline": deadline, "tolerance": Tolerance(0.0)}
    kind: Any = {"inner": True, "proof": False, "title": "evaluating the start"}
    return run(PolicyIteration(), nominal, start=None, **ends, **kind).middle
