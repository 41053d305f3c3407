"""What a run found: how it ended, what it went through, its bounds and its policy, and the file it is kept in."""

from drmdp.solution.plan import HorizonSolution
from drmdp.solution.results import (
    Record,
    Solution,
    Status,
    check_solution,
    check_target,
    choice,
    reached,
)

__all__ = [
    "HorizonSolution",
    "Record",
    "Solution",
    "Status",
    "check_solution",
    "check_target",
    "choice",
    "reached",
]
