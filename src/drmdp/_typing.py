"""Aliases for arrays; shapes are given in the docstrings."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
ArrayLike = Any
"""Anything `numpy.asarray` takes, a scipy sparse matrix where said, or a mapping where said."""
