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

def project(
    norm: str,
    each: bool,
    start: int,
    stop: int,
    layout: Any,
    push: Any,
    y: Any,
    trace: Any,
    accuracy: float,
    inside: bool,
) -> None:
    """Project the pushed rows of an iterate on balls, in place; see `drmdp.prox.registry`."""

def project_rows(rows: Any) -> None:
    """Replace each row by its projection on the simplex."""

def mix(part: float, mean: Any, point: Any) -> None:
    """Move a mean by a part of the way to a point."""

def first_order_begin(start: int, stop: int, layout: Any, mix: float, y: Any) -> None:
    """Set an iterate to the data, mixed with the uniform rows by a share, or by the radius if that is less."""

def first_order_measure(layout: Any, value: Any, centred: bool, largest: bool, norm: Any, top: Any) -> None:
    """Norms of the stakes of each state, l2 or (`largest`) linf, without their middle if `centred`, and the largest stakes."""

def first_order_act(start: int, stop: int, available: Any, stakes: Any, tau: Any, entropy: bool, policy: Any) -> None:
    """The policy's step."""

def first_order_look(
    start: int, stop: int, layout: Any, y: Any, norm: str, order: float, mean: Any, apart: Any
) -> None:
    """Mean rows of an iterate, and how far it is from the data."""

def first_order_weigh(start: int, stop: int, layout: Any, value: Any, mean: Any, stakes: Any) -> None:
    """Costs of the actions against mean rows."""

def first_order_foresee(layout: Any, policy: Any, mean: Any, gain: Any, total: Any) -> None:
    """What gains add up to along the chain, by a few sweeps in place."""

def first_order_pull(layout: Any, y: Any, share: Any, rows: Any) -> None:
    """Rows of an iterate, pulled towards the data to a share, kernel by kernel."""
