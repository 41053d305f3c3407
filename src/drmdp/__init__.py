"""Exact, certified solvers for distributionally robust Markov decision processes.

A name is imported when it is first used: `import drmdp` alone brings neither NumPy nor SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drmdp import cluster, formats, instances, plot, policies, radius
    from drmdp._version import __version__
    from drmdp.api import BellmanStep, Certificate, bellman, certify, evaluate, resume, solve
    from drmdp.errors import InputError, MissingExtra, Notice
    from drmdp.estimation import LogCheck, check_log, estimate
    from drmdp.formats import read, write
    from drmdp.model import Model
    from drmdp.model.grid import Grid
    from drmdp.model.stack import stack
    from drmdp.policies.kernel_sensitivity import sensitivity
    from drmdp.policies.sensitivity_result import Sensitivity
    from drmdp.policies.trajectories import Trajectories, simulate
    from drmdp.prox.project import project
    from drmdp.sets import Divergence, Intervals, Reweighting, Wasserstein
    from drmdp.solution import HorizonSolution, Record, Solution, Status
    from drmdp.solvers.anderson import Anderson
    from drmdp.solvers.evaluation import Evaluation
    from drmdp.solvers.first_order import FirstOrder
    from drmdp.solvers.horizon import finite_horizon
    from drmdp.solvers.policy_iteration import PolicyIteration
    from drmdp.solvers.reachability.reach import reach
    from drmdp.solvers.registry import METHODS
    from drmdp.solvers.value_iteration import Accelerated, GaussSeidel, ValueIteration

_PARTS = ("cluster", "formats", "instances", "plot", "policies", "radius")
_HOMES = {
    "drmdp._version": "__version__",
    "drmdp.api": "BellmanStep Certificate bellman certify evaluate resume solve",
    "drmdp.model.grid": "Grid",
    "drmdp.errors": "InputError MissingExtra Notice",
    "drmdp.estimation": "LogCheck check_log estimate",
    "drmdp.formats": "read write",
    "drmdp.model": "Model",
    "drmdp.model.stack": "stack",
    "drmdp.policies.kernel_sensitivity": "Sensitivity sensitivity",
    "drmdp.policies.trajectories": "Trajectories simulate",
    "drmdp.prox.project": "project",
    "drmdp.sets": "Divergence Intervals Reweighting Wasserstein",
    "drmdp.solution": "HorizonSolution Record Solution Status",
    "drmdp.solvers.evaluation": "Evaluation",
    "drmdp.solvers.horizon": "finite_horizon",
    "drmdp.solvers.reachability.reach": "reach",
    "drmdp.solvers.registry": "METHODS Accelerated Anderson FirstOrder GaussSeidel PolicyIteration "
    "ValueIteration",
}
"""Modules and the public names in them."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = ["METHODS", "Accelerated", "Anderson", "BellmanStep", "Certificate", "Divergence"]
__all__ += ["Evaluation", "FirstOrder", "GaussSeidel", "Grid", "HorizonSolution", "InputError"]
__all__ += ["Intervals", "LogCheck", "MissingExtra", "Model", "Notice", "PolicyIteration", "Record"]
__all__ += ["Reweighting", "Sensitivity", "Solution", "Status", "Trajectories", "ValueIteration"]
__all__ += ["Wasserstein", "__version__"]
__all__ += ["bellman", "certify", "check_log", "cluster", "estimate", "evaluate", "finite_horizon"]
__all__ += ["formats", "instances", "plot", "policies", "project", "radius", "reach", "read"]
__all__ += ["resume", "sensitivity", "simulate", "solve", "stack", "write"]


if not TYPE_CHECKING:  # where names are known, others are errors

    def __getattr__(name: str) -> object:
        """Import a public name, or a part of the package."""
        if name in _HOME_OF:
            value: object = getattr(import_module(_HOME_OF[name]), name)
        elif name in _PARTS or name == "errors":
            value = import_module(f"drmdp.{name}")
        else:
            raise AttributeError(f"module 'drmdp' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
