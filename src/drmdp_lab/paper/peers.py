"""Other people's solvers: ordinary MDPs at radius 0, and Bellman updates as a user would write them
by hand.

A peer that is not installed raises `Missing`; its rows say so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.model import Model
from drmdp.operators.build import build
from drmdp.sets import Wasserstein
from drmdp_lab.paper import baseline
from drmdp_lab.paper.clocks import REPEATS

ACCURACY = 1e-3
"""Of an update of the baseline: .1 (1−λ) tol at the paper's λ and ε, what the exact operators are
asked for as well.
"""


class Missing(ImportError):  # noqa: N818
    """The peer is not installed here."""


# ---------------------------------------------------------------------- ordinary MDPs


def nominal(
    name: str, model: Model, tol: float
) -> tuple[Callable[[], Any], Callable[[Any], Array]]:
    """A call that solves the MDP of the mean kernel, and a function from its result to the policy
    (S, A).
    """
    try:
        return NOMINAL[name](model, tol)
    except ImportError as error:
        raise Missing(f"{name} is not installed") from error


def _one_hot(model: Model, actions: Any) -> Array:
    return np.asarray(np.eye(model.n_actions)[np.asarray(actions, dtype=int)])


def _quantecon(model: Model, tol: float) -> tuple[Callable[[], Any], Callable[[Any], Array]]:
    from drmdp.formats.quantecon import to_quantecon

    problem = to_quantecon(model, kernel="mean")
    return lambda: problem.solve(method="policy_iteration"), lambda found: _one_hot(
        model, found.sigma
    )


def _mdpsolver(model: Model, tol: float) -> tuple[Callable[[], Any], Callable[[Any], Array]]:
    import mdpsolver

    rewards, kernel = (-np.asarray(model.costs)).tolist(), np.asarray(model.mean_kernel).tolist()

    def fresh() -> Any:
        problem = mdpsolver.model()
        problem.mdp(discount=model.discount, rewards=rewards, tranMatWithZeros=kernel)
        return problem

    unused = [
        fresh() for _ in range(REPEATS + 1)
    ]  # one that has been solved starts from its solution

    def call() -> Any:
        problem = unused.pop()
        problem.solve(algorithm="mpi", tolerance=tol, parallel=False, verbose=False)
        return problem.getPolicy()

    return call, lambda found: _one_hot(model, found)


def _toolbox(model: Model, tol: float) -> tuple[Callable[[], Any], Callable[[Any], Array]]:
    """Its policy iteration, whose systems are solved directly; its value iterations are slower."""
    toolbox: Any = importlib.import_module("mdptoolbox.mdp")
    kernel, rewards = np.asarray(model.mean_kernel).swapaxes(0, 1), -np.asarray(model.costs)
    given = kernel, rewards, model.discount
    unused = [toolbox.PolicyIteration(*given) for _ in range(REPEATS + 1)]

    def call() -> Any:
        solved = unused.pop()
        solved.run()
        return solved.policy

    return call, lambda found: _one_hot(model, found)


NOMINAL = {"quantecon": _quantecon, "mdpsolver": _mdpsolver, "pymdptoolbox": _toolbox}


# ---------------------------------------------------------------------- Bellman updates


def updater(name: str, model: Model, ambiguity: Wasserstein) -> Callable[[Array, int], float]:
    """A function (value, state) → F(v) of that state, costs minimised."""
    if name == "conic":
        operator = build(model, ambiguity, "conic", 1)
        return lambda value, s: float(operator.update(value, s, s + 1).value[0])
    if name == "baseline-2023":
        return lambda value, s: baseline.bellman(model, ambiguity, value, s, ACCURACY)
    return _cvxpy(model, ambiguity, name.removeprefix("cvxpy-").upper())


def _cvxpy(model: Model, ambiguity: Wasserstein, solver: str) -> Callable[[Array, int], float]:
    """The (l2, 2) update as the epigraph of its max-min form, v a parameter so that CVXPY compiles
    a state once.
    """
    try:
        cp: Any = importlib.import_module("cvxpy")
    except ImportError as error:
        raise Missing("cvxpy is not installed") from error
    if solver not in cp.installed_solvers():
        raise Missing(f"{solver.lower()} is not installed")
    compiled: dict[int, tuple[Any, Any]] = {}
    N, A = model.n_kernels, model.n_actions

    def build_state(s: int) -> tuple[Any, Any]:
        rows = (
            model.blocks.dense(s, s + 1)[0].swapaxes(0, 1).reshape(N * A, -1)
        )  # (N·A, S), kernel by kernel
        costs = model.costs[s]
        y, level, v = (
            cp.Variable(rows.shape, nonneg=True),
            cp.Variable(),
            cp.Parameter(model.n_states),
        )
        mean = np.kron(model.weights, np.eye(A))  # (A, N·A)
        inside = (
            cp.sum_squares(cp.multiply(np.sqrt(np.repeat(model.weights, A))[:, None], y - rows))
            <= ambiguity.radius**2
        )
        rules = [cp.sum(y, axis=1) == 1, costs + model.discount * (mean @ (y @ v)) >= level, inside]
        return cp.Problem(cp.Maximize(level), rules), v

    def update(value: Array, s: int) -> float:
        if s not in compiled:
            compiled[s] = build_state(s)
        problem, v = compiled[s]
        v.value = value
        problem.solve(solver=solver)
        return float(problem.value)

    return update
