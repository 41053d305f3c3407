"""Contamination: in every row nature replaces at most a share θ of the mass, y ≥ (1 − θ) ŷ."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp.sets import AmbiguitySet


@dataclass(frozen=True, eq=False)
class Contamination(AmbiguitySet):
    """Every row is (1 − θ) ŷ + θ q, with any q on the allowed next states."""

    radius: Any
    support: str = "observed"

    key = "contamination"
    short = "contamination"
    by_kernel = True

    def __post_init__(self):
        self.check_size()

    @property
    def words(self):
        return f"contamination, support {self.support}"

    def facts(self):
        return {"set": "contamination: a share of every row is replaced"}

    def farthest(self, y, allowed, w):
        return 1.0

    def apart(self, y, nominal, weights):
        lost = np.where(nominal > 0, 1 - y / np.where(nominal > 0, nominal, 1.0), 0.0)
        return np.maximum(lost, 0.0).max(axis=(-3, -1))
