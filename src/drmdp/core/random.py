"""Seeds and generators of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.core.validation import integer

Seed = int | np.random.Generator


def generator(seed: Any, purpose: str) -> np.random.Generator:
    """Turn a seed into a generator.

    Each purpose has its own stream: a model and its perturbations, both drawn with seed 0, are
    independent.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    key = tuple(purpose.encode())
    return np.random.default_rng(np.random.SeedSequence(integer("seed", seed, 0), spawn_key=key))
