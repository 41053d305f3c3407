"""Sampled kernels around a nominal one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from drmdp.core.random import Seed
from drmdp.core.storage import Kernels, compress_sparse, offsets
from drmdp.core.validation import integer, numbers
from drmdp.errors import InputError
from drmdp.instances._build import SPREAD, cuts, log_normal, n_successors, resample, subsets
from drmdp.instances._source import Drawn, ProblemSource, of_model, streams
from drmdp.model import Model

SHARE, BRANCHING = 0.05, 0.05  # the paper's
WIDEST = 10.0  # beyond it, factors exp(spread · z) leave the range of probabilities


def perturb(
    model: Model,
    n_kernels: int,
    seed: Seed = 0,
    *,
    same_support: bool = False,
    spread: float | None = None,
) -> Model:
    """Replace the kernel y⁰ of a model by N random kernels around it; all else stays.

    By default, as in the paper (appendix on the simulations), ŷ_i = .95 y⁰ + .05 g_i, where the g_i
    are independent Garnet kernels with branching .05: each row has max(1, ⌈.05 S⌉) distinct next
    states. Large sparse models would fill up; for them, ``same_support=True`` multiplies each
    probability by exp(spread · z), z standard normal, and normalises the row. The kernels have
    equal weights, and the first ones do not depend on how many there are.

    Parameters
    ----------
    model : Model
        With one kernel. Unavailable pairs and terminal states are left alone.
    n_kernels : int
        How many kernels are drawn.
    seed : int or numpy.random.Generator
        Equal seeds of the model and of `perturb` give independent draws.
    same_support : bool
        Draw on the next states of y⁰ only. Needed if the costs of other transitions are unknown.
    spread : float in (0, 10], optional
        With ``same_support``; 0.3 by default, so that a typical factor lies between .74 and 1.35.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.perturb(instances.machine(10), n_kernels=5, seed=1)
    >>> model.kernels.shape
    (5, 10, 2, 10)
    >>> large = instances.garnet(1000, 2, branching=8, sparse=True)
    >>> [kernel.nnz for kernel in instances.perturb(large, 3, same_support=True).kernels]
    [16000, 16000, 16000]
    """
    return perturbed(of_model(model), n_kernels, seed, same_support, spread).model()


def perturbed(
    nominal: ProblemSource,
    n_kernels: int,
    seed: Seed = 0,
    same_support: bool = False,
    spread: float | None = None,
) -> ProblemSource:
    """The problem of `perturb`, to be drawn block by block."""
    N, S = integer("n_kernels", n_kernels, 1), nominal.n_states
    if nominal.n_kernels != 1:
        raise InputError(f"perturb: expected a model with one kernel, got {nominal.n_kernels}")
    if spread is not None and not same_support:
        raise InputError("spread: has a meaning only with same_support=True")
    width = SPREAD if spread is None else _spread(spread)
    if nominal.costs_missing and not same_support:
        rule = "a sample may have any transition, but the costs of some are unknown"
        raise InputError(f"perturb: {rule}; use same_support=True")
    stream = streams(seed, "perturb")

    def draw(lo: int, hi: int) -> Drawn:
        block, rng = nominal.draw(lo, hi), stream(lo)
        if same_support:
            return replace(block, kernels=resample(block.kernels, N, log_normal(rng, width)))
        return replace(block, kernels=_mixed(block, nominal.n_actions, N, rng))

    added = 0 if same_support else N * n_successors(BRANCHING, S)
    most = min(nominal.successors + added, S)
    return replace(nominal, n_kernels=N, successors=most, draw=draw, kernel_names=None)


def _mixed(block: Drawn, A: int, n_kernels: int, rng: np.random.Generator) -> Kernels:
    """Compute .95 y⁰ + .05 g_i for independent Garnet kernels g_i on the available pairs of some
    states.
    """
    kernel = block.kernels
    S, pairs = kernel.n_states, kernel.indptr.size - 1
    k = n_successors(BRANCHING, S)
    available = np.ones((pairs // A, A), dtype=bool) if block.available is None else block.available
    rows, indptr = int(available.sum()), offsets(k * available.ravel())
    nominal = kernel.matrix(kernel.entries(0))

    def sample() -> csr_array:
        successors, probabilities = subsets(rng, rows, S, k), cuts(rng, rows, k)
        noise = csr_array((probabilities.ravel(), successors.ravel(), indptr), shape=(pairs, S))
        return (1 - SHARE) * nominal + SHARE * noise

    return compress_sparse([sample() for _ in range(n_kernels)], available)


def _spread(spread: float) -> float:
    value = numbers("spread", spread)
    if value.ndim != 0 or not 0 < value <= WIDEST:
        raise InputError(f"spread: expected a number in (0, {WIDEST:g}], got {spread!r}")
    return float(value)
