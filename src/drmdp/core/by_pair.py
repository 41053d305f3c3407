"""Numbers for each pair of a state and an action: discounts, and how long steps last."""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.validation import discount_of, numbers
from drmdp.errors import InputError


def discounts_of(given: Any, available: BoolArray, labels: Any) -> tuple[float, Array | None]:
    """A discount, or the largest of one for each pair (S, A) and these, 0 where a pair is not available; those that are all the same are one."""
    if not isinstance(given, list | tuple | np.ndarray):
        return discount_of(given), None
    each = numbers("discount", given)
    if each.shape != available.shape:
        raise InputError(
            f"discount: expected a number in [0, 1], or one for each pair, shape {available.shape}; got {each.shape}"
        )
    each = _by_pair(each, (each >= 0) & (each <= 1), available, labels, "discount must be in [0, 1]")
    known = each[available]
    largest = float(known.max(initial=0.0))
    return largest, None if (known == largest).all() else each


def sojourn_of(given: Any, available: BoolArray, labels: Any) -> Array | None:
    """How long steps last on average, (S, A), 0 where a pair is not available; None: all last 1."""
    if given is None:
        return None
    lasts = numbers("sojourn", given)
    if lasts.shape not in ((), available.shape[:1], available.shape):
        raise InputError(
            f"sojourn: expected a number, one for each state, or shape {available.shape}; got {lasts.shape}"
        )
    each = np.broadcast_to(lasts[:, None] if lasts.ndim == 1 else lasts, available.shape)
    return _by_pair(each, (each > 0) & (each < np.inf), available, labels, "sojourn must be positive and finite")


def _by_pair(each: Array, fine: BoolArray, available: BoolArray, labels: Any, rule: str) -> Array:
    """Numbers (S, A) that keep to a rule, and 0 where a pair is not available."""
    if not (fine | ~available).all():
        k = int(np.argmax(available & ~fine))
        raise InputError(f"{rule}: {labels.pair(k)} has {float(each.flat[k])!r}")
    return np.where(available, each, 0.0)
