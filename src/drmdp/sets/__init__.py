"""Ambiguity sets: sets of kernels around the observed ones.

`base` says what every set offers, `registry` where each one is solved and proved; `norms` holds the
distances.
"""

from drmdp.sets.base import AmbiguitySet, check_problem
from drmdp.sets.divergence import Divergence
from drmdp.sets.intervals import Intervals
from drmdp.sets.reweighting import Reweighting
from drmdp.sets.wasserstein import PAIRS, Wasserstein

__all__ = ["PAIRS", "AmbiguitySet", "Divergence", "Intervals", "Reweighting", "Wasserstein"]
__all__ += ["check_problem"]
