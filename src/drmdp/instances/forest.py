"""Forest management: when to cut a forest that may burn."""

from __future__ import annotations

import numpy as np

from drmdp.core.validation import integer
from drmdp.instances._build import kernel_of
from drmdp.instances._source import Drawn, ProblemSource, family


@family
def forest(n_states: int, discount: float = 0.8, *, sparse: bool = False) -> ProblemSource:
    """Forest management problem with rewards, one kernel.

    States are ages, youngest first. *wait* leads to the next age (the oldest stays) with .9 and, by
    fire, to the youngest with .1; *cut* leads to the youngest. Waiting earns 4 at the oldest age
    and 0 before; cutting earns 0 at the youngest, 2 at the oldest and 1 between.

    Source: the `forest` example of pymdptoolbox with its default numbers, after Possingham & Tuck
    (1997), "Application of stochastic dynamic programming to optimal fire management of a spatially
    structured threatened species", MODSIM.

    Parameters
    ----------
    n_states : int, at least 2
        How many states.
    discount : float in [0, 1]
        What a cost of the next step is worth now.
    sparse : bool
        How kernels are given back; the numbers are the same.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.forest(3)
    >>> model.states, model.actions
    (('age 1', 'age 2', 'age 3'), ('wait', 'cut'))
    >>> model.kernels[0, :, 0]
    array([[0.1, 0.9, 0. ],
           [0.1, 0. , 0.9],
           [0.1, 0. , 0.9]])
    >>> model.costs[:, 1]
    array([ 0., -1., -2.])
    """
    S = integer("n_states", n_states, 2)
    wait, cut = 0, 1

    def draw(lo: int, hi: int) -> Drawn:
        age = np.arange(lo, hi)
        older = np.minimum(age + 1, S - 1)
        moves = [(age, wait, older, 0.9), (age, wait, 0, 0.1), (age, cut, 0, 1.0)]
        rewards = np.zeros((hi - lo, 2))
        rewards[age > 0, cut] = 1
        rewards[age == S - 1] = 4, 2
        return Drawn(kernel_of(lo, hi, S, 2, moves), rewards, [f"age {s + 1}" for s in age])

    return ProblemSource(S, 2, 1, 2, discount, sparse, draw, maximise=True, actions=["wait", "cut"])
