"""The compiled routines (`native/`): what Python calls.

Arrays are read out of the tuples of drmdp (`Layout`, `Point`, `Memory`, …) by their places; one of a wrong type, shape or order is a
ValueError that names it. A call works on the states start … stop − 1, writes to their places alone, and releases the interpreter's lock.
"""

from typing import Any

def routines() -> list[str]:
    """Names of sets, as the functions below take them."""

def sweep(
    name: str,
    fixed: bool,
    by_pair: bool,
    start: int,
    stop: int,
    layout: Any,
    point: Any,
    memory: Any,
    found: Any,
    tol: float,
    extra: Any = None,
) -> None:
    """Minimise over the policy, or keep the one in found.policy (`fixed`), and let nature maximise; `by_pair`: a budget for each action."""

def respond(
    name: str,
    by_pair: bool,
    start: int,
    stop: int,
    layout: Any,
    point: Any,
    memory: Any,
    question: Any,
    extra: Any = None,
) -> None:
    """Write nature's rows after a sweep."""

def prove(
    name: str, start: int, stop: int, layout: Any, view: Any, claim: Any, bounds: Any, n_mean: int, extra: Any = None
) -> None:
    """Bounds from what a sweep claims."""

def pull(name: str, sizes: Any, weights: Any, mixtures: Any) -> None:
    """Bring mixtures of the kernels, a row each, into balls of some sizes around the weights."""

def elementary(name: str, numbers: Any, found: Any) -> None:
    """exp, expm1, log or log1p, as the routines take them."""

def power(numbers: Any, exponent: float, found: Any) -> None:
    """Powers of numbers ≥ 0, as the routines take them."""

def lane_sum(numbers: Any) -> float:
    """A sum in eight lanes, as the routines add."""

def count_above(order: Any, states: int, t: float, tau: float) -> int:
    """How many u of an `Order` of so many states have t u > tau."""
