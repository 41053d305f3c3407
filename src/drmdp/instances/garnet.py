"""Garnet: random problems with a chosen number of next states."""

from __future__ import annotations

from drmdp.core.random import Seed
from drmdp.core.validation import integer
from drmdp.instances._build import n_successors, random_kernel, subsets
from drmdp.instances._source import Drawn, ProblemSource, family, streams

TOP = 10.0
"""Costs, or rewards, go up to it."""


@family
def garnet(
    n_states: int,
    n_actions: int,
    branching: float = 0.2,
    seed: Seed = 0,
    discount: float = 0.8,
    *,
    rewards: bool = False,
    sparse: bool = False,
) -> ProblemSource:
    """Random problem with one kernel.

    Each pair (s, a) reaches max(1, ⌈branching · S⌉) distinct states, drawn uniformly; their
    probabilities are the gaps between sorted uniform cuts of [0, 1]. Costs c(s, a) are uniform in
    [0, 10], or rewards are.

    Source: Archibald, McKinnon & Thomas (1995), "On the generation of Markov decision processes",
    J. Oper. Res. Soc. 46(3), 354–361, in the form of the paper, which uses branching .2, rewards
    and the radius √(branching · A).

    Parameters
    ----------
    n_states, n_actions : int
        How many states and actions.
    branching : float in (0, 1], or int from 1 to S
        A float is the share of states that a pair reaches, an int their number: 1.0 is all, 1 is
        one.
    seed : int or numpy.random.Generator
        Of the random draws.
    discount : float in [0, 1]
        What a cost of the next step is worth now.
    rewards : bool
        Draw rewards instead of costs, as the paper does. For the same seed a reward is 10 minus the
        cost: one problem at two levels, with the same policies. A method that reads the level of
        the values, as Algorithm 1 does, takes other steps.
    sparse : bool
        How kernels are given back; the numbers are the same.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.garnet(20, 3, branching=0.2, seed=1)
    >>> (model.kernels > 0).sum(axis=3).ravel()[:5].tolist()
    [4, 4, 4, 4, 4]
    >>> instances.garnet(1000, 4, branching=8, sparse=True).kernels[0].nnz
    32000
    >>> costly, paid = (instances.garnet(20, 3, seed=1, rewards=flag) for flag in (False, True))
    >>> paid.maximise, float((10 + paid.costs - costly.costs).max().round(9))
    (True, 0.0)
    """
    S, A = integer("n_states", n_states, 1), integer("n_actions", n_actions, 1)
    k = n_successors(branching, S)
    stream = streams(seed, "garnet")

    def draw(lo: int, hi: int) -> Drawn:
        rng = stream(lo)
        kernel = random_kernel(rng, S, A, subsets(rng, (hi - lo) * A, S, k))
        drawn = rng.uniform(0, TOP, (hi - lo, A))
        return Drawn(kernel, TOP - drawn if rewards else drawn)

    return ProblemSource(S, A, 1, k, discount, sparse, draw, maximise=rewards)
