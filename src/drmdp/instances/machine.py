"""Machine replacement: when to repair a machine that wears out."""

from __future__ import annotations

import numpy as np

from drmdp.core.validation import integer
from drmdp.instances._build import kernel_of
from drmdp.instances._source import Drawn, ProblemSource, family


@family
def machine(n_states: int, discount: float = 0.8, *, sparse: bool = False) -> ProblemSource:
    """Machine replacement problem, one kernel.

    States "1" (as new) to "S−2" (worst) are conditions of a working machine, "R1" and "R2" a short
    and a long repair. Costs are those of the current state: 0, but 20 in the worst condition, 2 in
    R1 and 10 in R2.

    ============== ============== ===========================
    from           no repair      repair
    ============== ============== ===========================
    s = 1 … S−3    s .2, s+1 .8   s+1 .3, R1 .6, R2 .1
    S−2            S−2 1          S−2 .3, R1 .6, R2 .1
    R1             1 .8, R1 .2    R1 1
    R2             R2 1           R1 .6, R2 .4
    ============== ============== ===========================

    Source: Delage & Mannor (2010), "Percentile optimization for Markov decision processes with
    parameter uncertainty", Operations Research 58(1), 203–213. The paper draws the transitions in
    figures, which the text-only source lacks; this table is the one that public encodings of the
    problem share.

    Parameters
    ----------
    n_states : int, at least 4
        How many states.
    discount : float in [0, 1]
        What a cost of the next step is worth now.
    sparse : bool
        How kernels are given back; the numbers are the same.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.machine(4)
    >>> model.states, model.actions
    (('1', '2', 'R1', 'R2'), ('no repair', 'repair'))
    >>> model.kernels[0, :, 1]
    array([[0. , 0.3, 0.6, 0.1],
           [0. , 0.3, 0.6, 0.1],
           [0. , 0. , 1. , 0. ],
           [0. , 0. , 0.6, 0.4]])
    """
    S = integer("n_states", n_states, 4)
    worst, short, long = S - 3, S - 2, S - 1
    stay, repair = 0, 1
    special = {worst: 20, short: 2, long: 10}

    def draw(lo: int, hi: int) -> Drawn:
        working = np.arange(lo, min(hi, S - 2))
        worse = np.minimum(working + 1, worst)
        moves = [
            (working, stay, working, 0.2),
            (working, stay, worse, 0.8),
            (working, repair, worse, 0.3),
            (working, repair, short, 0.6),
            (working, repair, long, 0.1),
            (short, stay, 0, 0.8),
            (short, stay, short, 0.2),
            (short, repair, short, 1.0),
            (long, stay, long, 1.0),
            (long, repair, short, 0.6),
            (long, repair, long, 0.4),
        ]
        costs = np.zeros((hi - lo, 2))
        for s, cost in special.items():
            if lo <= s < hi:
                costs[s - lo] = cost
        repairs = {short: "R1", long: "R2"}
        names = [repairs.get(s, str(s + 1)) for s in range(lo, hi)]
        return Drawn(kernel_of(lo, hi, S, 2, moves), costs, names)

    return ProblemSource(S, 2, 1, 3, discount, sparse, draw, actions=["no repair", "repair"])
