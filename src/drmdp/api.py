"""The verbs: solve, bellman, evaluate, certify. Signs are the user's on this side, costs on the other."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from drmdp import certificate, clock, membership
from drmdp._typing import Array, ArrayLike
from drmdp.ambiguity import Wasserstein, check_problem
from drmdp.bellman.nominal import NominalOperator
from drmdp.bellman.operator import Operator, known_backends
from drmdp.checks import number, numbers
from drmdp.errors import InputError, shown
from drmdp.instances._build import whole
from drmdp.mapped import check_unchanged
from drmdp.model import Model
from drmdp.progress import showing, stage
from drmdp.solution import Solution, Status
from drmdp.solvers.best import value_range
from drmdp.solvers.loop import Callback, Outcome, run
from drmdp.solvers.policy_iteration import PolicyIteration, of_mean_kernel
from drmdp.solvers.problem import Method, Problem
from drmdp.solvers.registry import resolve
from drmdp.tolerance import RTOL, Tolerance, scale_of

DEFAULT_BACKEND = "exact"


def solve(
    model: Model,
    ball: Wasserstein,
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
) -> Solution:
    """Find the policy with the least worst-case cost (greatest worst-case reward) over the ball, and prove it.

    Parameters
    ----------
    model, ball
        What is known and what is feared.
    method : name or object
        "auto" (policy iteration), a name in `drmdp.METHODS`, or an object such as ``drmdp.Anderson(memory=3)``.
    tol : float, optional
        Absolute, in the unit of the costs: stop when upper − lower ≤ tol in every state. `rtol` is then ignored.
    rtol : float
        Relative: without `tol`, stop when upper − lower ≤ rtol · max(max|value|, max|c|) in every state.
    max_iters, max_seconds : optional
        Limits; the best certified result so far is returned. Without max_iters each method has a finite cap. The seconds count from the call on,
        held to within a sweep; compiling kernels, once per machine, is not counted.
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

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> solution = drmdp.solve(model, drmdp.Wasserstein(0.5))
    >>> bool(solution.status == "solved" and solution.gap <= 1e-6 * abs(solution.value).max())
    True
    """
    check_problem(model, ball)
    name, chosen = resolve(method)
    if backend is not None:
        chosen = replace(chosen, backend=backend)  # type: ignore[type-var]
    tolerance = Tolerance.of(tol, rtol)
    _limits(max_iters, max_seconds, callback)
    begin, compiled, deadline = clock.now(), clock.compiled(), clock.deadline(max_seconds)
    with showing(progress):
        first = _start(model, start, deadline)
        problem = Problem(build(model, ball, chosen.backend, threads))
        setup = clock.now() - begin
        limits: Any = {"max_iters": max_iters, "deadline": deadline}
        found = run(chosen, problem, start=first, tolerance=tolerance, callback=callback, **limits)
    lower, upper = _sides(model, found.lower, found.upper)
    solution = Solution(
        value=lower if model.maximise else upper,
        policy=found.policy,
        lower=lower,
        upper=upper,
        kernel=found.kernel,
        duality_gap=float(model.initial @ (upper - lower)),
        status=found.status,
        history=found.history,
        settings={
            "method": name,
            **asdict(chosen),  # type: ignore[call-overload]
            **asdict(tolerance),
            "max_iters": max_iters,
            "max_seconds": max_seconds,
            "ball": repr(ball),
        },
        states=tuple(model.states),
        actions=tuple(model.actions),
        fingerprint=model.fingerprint,
        scale=scale_of(model, found.upper),
        seconds=found.seconds,
        setup_seconds=setup,
        compile_seconds=clock.compiled() - compiled,
        kernels=found.kernels,
        notes=(*model.notes, *ball.remarks(model)),
    )
    object.__setattr__(solution, "problem", (model, ball))
    return solution


@dataclass(frozen=True)
class BellmanStep:
    """One robust Bellman update, in the user's sign: lower ≤ F(v) ≤ upper, (S,) each."""

    value: Array
    policy: Array  # (S, A)
    lower: Array
    upper: Array
    kernel: Any  # nature's mean kernel, (S, A, S)


def bellman(model: Model, ball: Wasserstein, value: ArrayLike, backend: str = DEFAULT_BACKEND) -> BellmanStep:
    """Apply the robust Bellman operator once: min over the policy, max over nature, at `value` (S,).

    The bounds are re-derived from the data, as those of a solution are.
    """
    check_problem(model, ball)
    v = _value(model, value)
    operator = build(model, ball, backend)
    update = operator.certify(v, Problem(operator).sweep(v), False)
    low, high = (certificate.beyond(v, step, side) for step, side in ((update.lower_step, -1), (update.upper_step, +1)))
    lower, upper = _sides(model, low, high)
    sign = -1.0 if model.maximise else 1.0
    return BellmanStep(sign * update.value, update.policy, lower, upper, update.kernel)


@dataclass(frozen=True)
class Evaluation:
    """Worst-case value of a given policy: lower ≤ it ≤ upper, (S,) each; `value` is the pessimistic side."""

    value: Array
    lower: Array
    upper: Array
    kernel: Any  # nature's best response, (S, A, S); unplayed actions keep the mean kernel
    status: Status
    scale: float  # max(max|value|, max|c|)

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return float((self.upper - self.lower).max())


def evaluate(
    model: Model,
    ball: Wasserstein,
    policy: ArrayLike,
    tol: float | None = None,
    rtol: float = RTOL,
    backend: str = DEFAULT_BACKEND,
    max_seconds: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Worst-case value of a policy: (S, A) probabilities, (S,) action numbers, a mapping by names, or a `Solution`.

    Tolerance, limit, threads and progress are those of `solve`.
    """
    check_problem(model, ball)
    tolerance, x = Tolerance.of(tol, rtol), model.policy(policy)
    _limits(None, max_seconds)
    deadline = clock.deadline(max_seconds)
    with showing(progress):
        found = _evaluate(build(model, ball, backend, threads), x, tolerance, deadline=deadline)
    lower, upper = _sides(model, found.lower, found.upper)
    scale = scale_of(model, found.upper)
    return Evaluation(lower if model.maximise else upper, lower, upper, found.kernel, found.status, scale)


@dataclass(frozen=True)
class Certificate:
    """Bounds from scratch, (S,) each: lower ≤ optimum ≤ upper, in the user's sign."""

    lower: Array
    upper: Array
    duality_gap: float  # the paper's (DG), weighted by the start distribution

    @property
    def gap(self) -> float:
        """Largest upper − lower over the states."""
        return float((self.upper - self.lower).max())


def certify(
    model: Model, ball: Wasserstein, policy: ArrayLike, kernel: ArrayLike = None, backend: str = DEFAULT_BACKEND
) -> Certificate:
    """Bound the optimum from a policy and a kernel, trusting neither.

    One side is the worst-case value of `policy`; the other is the value of the best policy against `kernel`, an N-tuple
    (N, S, A, S) or a mean kernel (S, A, S). A tuple outside the ball is pulled towards the data until it is inside; for a
    mean kernel the nearest tuple with that mean is computed first (`drmdp.membership`). With a `Solution` as policy, the
    kernel is its own by default.
    """
    check_problem(model, ball)
    if kernel is None and isinstance(policy, Solution):
        kernel = policy.kernel
    x = model.policy(policy)
    y = membership.inside(model, ball.fitted(model), numbers("kernel", kernel))
    tolerance = Tolerance(
        1e-10 * max(*map(abs, value_range(model)), np.finfo(float).tiny)
    )  # as tight as rounding allows
    worst = _evaluate(build(model, ball, backend), x, tolerance, inner=True)
    nominal = Problem(NominalOperator(model, y))
    best = run(PolicyIteration(), nominal, start=None, tolerance=tolerance, inner=True, title="answering the kernel")
    lower, upper = _sides(model, best.lower, worst.upper)
    return Certificate(lower, upper, float(model.initial @ (upper - lower)))


# ---------------------------------------------------------------------- parts


def build(model: Model, ball: Wasserstein, backend: str, threads: int | None = None) -> Operator:
    """Make the operator of a backend, after checking that model and ball fit."""
    check_problem(model, ball)
    ball = ball.fitted(model)
    known = known_backends()
    if not isinstance(backend, str) or backend not in known:
        raise InputError(f"unknown backend {shown(backend)}; known: {', '.join(known)}")
    with stage("laying out the kernels", f"({ball.metric}, {ball.order:g})"):
        operator: Operator = known[backend](model, ball, threads)
    return operator


def _evaluate(operator: Operator, policy: Array, tolerance: Tolerance, **settings: Any) -> Outcome:
    title = "evaluating the policy"
    return run(PolicyIteration(), Problem(operator, policy), start=None, tolerance=tolerance, title=title, **settings)


def _policy_value(model: Model, policy: Array, deadline: float) -> Array:
    """Value of a policy under the mean kernel."""
    nominal = of_mean_kernel(model, policy)
    limits: Any = {"max_iters": 2, "deadline": deadline, "inner": True, "title": "evaluating the start"}
    return run(PolicyIteration(), nominal, start=None, tolerance=Tolerance(0.0), **limits).middle


def _sides(model: Model, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Bounds in the user's sign, if they are of the data that was read."""
    check_unchanged(model.blocks.data)
    return (0.0 - upper, 0.0 - lower) if model.maximise else (lower, upper)  # never −0.0


def _value(model: Model, value: ArrayLike, name: str = "value") -> Array:
    v = numbers(name, value)
    if v.shape != (model.n_states,):
        raise InputError(f"{name}: expected shape {(model.n_states,)}, got {v.shape}")
    if not np.isfinite(v).all():
        s = int(np.argmax(~np.isfinite(v)))
        raise InputError(f"{name} must be finite: state {model.states[s]!r} has {float(v[s])!r}")
    return np.where(model.terminal, 0.0, -v if model.maximise else v)


def _start(model: Model, start: ArrayLike, deadline: float) -> Array | None:
    if start is None:
        return None
    if isinstance(start, Solution):
        return _value(model, start.value, "start")
    given = numbers("start", start)
    return _policy_value(model, model.policy(start), deadline) if given.ndim == 2 else _value(model, given, "start")


def _limits(max_iters: int | None, max_seconds: float | None, callback: Any = None) -> None:
    if callback is not None and not callable(callback):
        raise InputError(f"callback: expected a function, got {shown(callback)}")
    if max_iters is not None:
        whole("max_iters", max_iters, 0)
    if max_seconds is not None and not number("max_seconds", max_seconds) >= 0:
        raise InputError(f"max_seconds must not be negative, got {max_seconds!r}")
