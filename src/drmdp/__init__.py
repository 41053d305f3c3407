"""Exact, certified solvers for distributionally robust Markov decision processes.

A name is imported when it is first used: `import drmdp` alone brings neither NumPy nor SciPy.
Type checkers read the imports below; the package reads them as text, to know where each name comes from.
"""

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drmdp import cluster, formats, instances, plot, policies, radius
    from drmdp._version import __version__
    from drmdp.api import BellmanStep, Certificate, bellman, certify, evaluate, resume, solve
    from drmdp.core.grid import Grid
    from drmdp.errors import InputError, MissingExtra, Notice
    from drmdp.estimate import LogCheck, check_log, estimate
    from drmdp.formats import read, write
    from drmdp.model import Model
    from drmdp.model.stack import stack
    from drmdp.policies.sensitivity import sensitivity
    from drmdp.policies.sensitivity_result import Sensitivity
    from drmdp.policies.trajectories import Trajectories, simulate
    from drmdp.prox.project import project
    from drmdp.sets import Divergence, Intervals, Reweighting, Wasserstein
    from drmdp.solution import HorizonSolution, Record, Solution, Status
    from drmdp.solvers.accelerated import Accelerated
    from drmdp.solvers.anderson import Anderson
    from drmdp.solvers.evaluation import Evaluation
    from drmdp.solvers.first_order import FirstOrder
    from drmdp.solvers.gauss_seidel import GaussSeidel
    from drmdp.solvers.horizon import finite_horizon
    from drmdp.solvers.policy_iteration import PolicyIteration
    from drmdp.solvers.reach import reach
    from drmdp.solvers.registry import METHODS
    from drmdp.solvers.value_iteration import ValueIteration

__all__ = [
    "METHODS", "Accelerated", "Anderson", "BellmanStep", "Certificate", "Divergence", "Evaluation", "FirstOrder", "GaussSeidel", "Grid",
    "HorizonSolution", "InputError", "Intervals", "LogCheck", "MissingExtra", "Model", "Notice", "PolicyIteration", "Record", "Reweighting",
    "Sensitivity", "Solution", "Status", "Trajectories", "ValueIteration", "Wasserstein", "__version__", "bellman", "certify", "check_log", "cluster",
    "estimate", "evaluate", "finite_horizon", "formats", "instances", "plot", "policies", "project", "radius", "reach", "read", "resume",
    "sensitivity", "simulate", "solve", "stack", "write",
]  # fmt: skip

_lines = ast.walk(ast.parse(Path(__file__).read_text("utf-8")))
_HOMES = {alias.name: str(line.module) for line in _lines if isinstance(line, ast.ImportFrom) for alias in line.names}
_PARTS = {name for name, home in _HOMES.items() if home == "drmdp"}


class _Package(ModuleType):
    """The package itself. `bellman` and `estimate` are functions, although parts of the package have these names too."""

    def __getattr__(self, name: str) -> object:
        """Import a public name, or a part of the package."""
        if name in __all__ and name not in _PARTS:
            value: object = getattr(import_module(_HOMES[name]), name)
        elif not name.startswith("_") and find_spec(f"drmdp.{name}"):
            value = import_module(f"drmdp.{name}")
        else:
            raise AttributeError(f"module 'drmdp' has no attribute {name!r}")
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, ModuleType) or name in _PARTS or name not in __all__:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return __all__


sys.modules[__name__].__class__ = _Package
