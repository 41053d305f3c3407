"""Pictures of models, solutions and radius paths, in one style.

Each function draws on the axes it is given, or on new ones, and returns them. They need matplotlib
(``pip install '.[plot]'`` in a clone), which is imported when the first picture is drawn. Names of
states and actions are drawn as they are, never read as mathematics.

Examples
--------
>>> import drmdp, matplotlib
>>> matplotlib.use("agg")
>>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
>>> solution = drmdp.solve(model, drmdp.Wasserstein(0.5))
>>> ax = drmdp.plot.policy(solution)
>>> [tick.get_text() for tick in ax.get_xticklabels()]
['no repair', 'repair']
>>> matplotlib.pyplot.close(ax.figure)
"""

from drmdp.plot.curves import choice, convergence, radius, sets
from drmdp.plot.maps import map
from drmdp.plot.nature import kernel, measure_next, prices, transitions
from drmdp.plot.plans import plan
from drmdp.plot.sensitivity import (
    acceptability,
    acceptability_curve,
    cost_effectiveness,
    over_kernels,
    shares,
    tornado,
)
from drmdp.plot.states import policy, values

__all__ = ["acceptability", "acceptability_curve", "choice", "convergence", "cost_effectiveness"]
__all__ += ["kernel", "map", "measure_next", "over_kernels", "plan", "policy", "prices", "radius"]
__all__ += ["sets", "shares", "tornado", "transitions", "values"]


def __dir__() -> list[str]:
    return __all__
