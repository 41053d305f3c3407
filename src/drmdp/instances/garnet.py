"""Garnet: random problems with a chosen number of next states."""

from __future__ import annotations

from drmdp.instances._build import Seed, generator, n_successors, random_kernel, subsets, whole
from drmdp.model import Model


def garnet(
    n_states: int,
    n_actions: int,
    branching: float = 0.2,
    seed: Seed = 0,
    discount: float = 0.8,
    *,
    sparse: bool = False,
) -> Model:
    """Random problem with one kernel.

    Each pair (s, a) reaches max(1, ⌈branching · S⌉) distinct states, drawn uniformly; their probabilities are the gaps
    between sorted uniform cuts of [0, 1]. Costs c(s, a) are uniform in [0, 10].

    Source: Archibald, McKinnon & Thomas (1995), "On the generation of Markov decision processes", J. Oper. Res. Soc.
    46(3), 354–361, in the form of the paper, which uses S = A, branching .2 and the radius √(branching · A).

    Parameters
    ----------
    n_states, n_actions : int
    branching : float in (0, 1], or int from 1 to S
        A float is the share of states that a pair reaches, an int their number: 1.0 is all, 1 is one.
    seed : int or numpy.random.Generator
    discount : float in [0, 1)
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
    """
    S, A = whole("n_states", n_states, 1), whole("n_actions", n_actions, 1)
    k = n_successors(branching, S)
    rng = generator(seed, "garnet")
    kernel = random_kernel(rng, A, subsets(rng, S * A, S, k), sparse)
    return Model(kernel, costs=rng.uniform(0, 10, (S, A)), discount=discount)
