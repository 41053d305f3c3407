"""Solutions and plans: status, history, bounds and policy, and the file a solution
is kept in.
"""

from drmdp.solution.plan import HorizonSolution
from drmdp.solution.results import Record, Solution, Status, check_solution, choice, reached

__all__ = ["HorizonSolution", "Record", "Solution", "Status"]
__all__ += ["check_solution", "choice", "reached"]
