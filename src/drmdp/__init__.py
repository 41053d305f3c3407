"""Exact, certified solvers for distributionally robust Markov decision processes."""

from drmdp import cluster, formats, instances, plot, policies, radius
from drmdp._version import __version__
from drmdp.api import BellmanStep, Certificate, Evaluation, bellman, certify, evaluate, resume, solve
from drmdp.core.grid import Grid
from drmdp.errors import InputError, MissingExtra, Notice
from drmdp.estimate import LogCheck, check_log, estimate
from drmdp.formats import read, write
from drmdp.model import Model
from drmdp.model.stack import stack
from drmdp.policies.trajectories import Trajectories, simulate
from drmdp.prox.project import project
from drmdp.sets import Divergence, Intervals, Reweighting, Wasserstein
from drmdp.solution import HorizonSolution, Record, Solution, Status
from drmdp.solvers.accelerated import Accelerated
from drmdp.solvers.anderson import Anderson
from drmdp.solvers.first_order import FirstOrder
from drmdp.solvers.gauss_seidel import GaussSeidel
from drmdp.solvers.horizon import finite_horizon
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.registry import METHODS
from drmdp.solvers.value_iteration import ValueIteration

__all__ = [
    "METHODS", "Accelerated", "Anderson", "BellmanStep", "Certificate", "Divergence", "Evaluation", "FirstOrder", "GaussSeidel", "Grid",
    "HorizonSolution", "InputError", "Intervals", "LogCheck", "MissingExtra", "Model", "Notice", "PolicyIteration", "Record", "Reweighting", "Solution",
    "Status", "Trajectories", "ValueIteration", "Wasserstein", "__version__", "bellman", "certify", "check_log", "cluster", "estimate", "evaluate",
    "finite_horizon", "formats", "instances", "plot", "policies", "project", "radius", "read", "resume", "simulate", "solve", "stack", "write",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
