"""The compiled routines (`native/`): what Python calls.

Arrays are read out of the tuples of drmdp (`Layout`, `Point`, `Memory`, …) by their places; one of a wrong type, shape or order is a
ValueError that names it. A call works on the states start … stop − 1, writes to their places alone, and releases the interpreter's lock.
"""

from typing import Any

def routines() -> list[str]:
    """Names of sets, as the functions below take them."""

def check_functions(functions: Any) -> None:
    """Three LowLevelCallables for the rows of a set (`drmdp.sets.outside`): a ValueError names the one that has another signature."""

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
    extra: Any,
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
    extra: Any,
) -> None:
    """Write nature's rows after a sweep."""

def prove(
    name: str,
    start: int,
    stop: int,
    layout: Any,
    view: Any,
    claim: Any,
    bounds: Any,
    n_mean: int,
    extra: Any,
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

def count_above(order: Any, t: float, tau: float) -> int:
    """How many u of an `Order` have t u > tau."""

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

def first_order_look(
    start: int, stop: int, layout: Any, y: Any, norm: str, order: float, mean: Any, apart: Any
) -> None:
    """Mean rows of an iterate, and how far it is from the data."""

def ends(vector: Any) -> tuple[float, float]:
    """The least and the largest number; no numbers if one is none."""

def is_finite(vector: Any) -> bool:
    """Whether all numbers are finite."""

def fill_around(value: Any, u: Any) -> float:
    """A value without its level, the middle of its range, which is returned."""

def both_steps(
    u: Any,
    level: float,
    discount: float,
    terminal: Any,
    lower: Any,
    upper: Any,
    low: Any,
    high: Any,
    middle: Any,
) -> None:
    """Bounds on F(u) as steps on F(v) − v, v = u + level, rounded away from the truth, and F(v) midway."""

def survey(value: Any, lower_step: Any, upper_step: Any) -> tuple[float, float, float, float]:
    """What a look at a sweep tells; see `drmdp.core.vectors.ResidualStats`."""

def extent(lower: Any, upper: Any) -> tuple[float, float, float]:
    """What a look at bounds tells; see `drmdp.core.vectors.Extent`."""

def fill_block_sums(a: Any, b: Any, length: int, out: Any) -> None:
    """Sums of products over blocks of so many numbers."""

def are_distributions(policy: Any, available: Any, terminal: Any, slack: float) -> bool:
    """Whether the rows of a policy are distributions of available actions."""

def look(value: Any, discount: float, u: Any) -> tuple[float, float]:
    """The top and the span of v as a sweep sees it; fills (v − top)/span if there is room."""

def fill_order(common: Any, states: Any, u: Any, sum1: Any, sum2: Any, below: Any) -> float:
    """The arrays of an `Order` from states in descending order; returns the largest u below 0."""

def judge_rises(down: Any, rise: Any, rise2: Any) -> None:
    """R₁ and R₂ of `drmdp.certificate.sums`."""

def product(start: int, stop: int, parts: Any, z: Any, sums: Any, out: Any) -> None:
    """Products of compact rows with a vector; see `drmdp.core.compact`."""

def spell(start: int, parts: Any, states: Any, u: Any, out: Any) -> None:
    """Compact rows written out, onto zeros."""

def add_rows(data: Any, indptr: Any, weights: Any, total: Any) -> None:
    """Add the weighted rows of the kernels of all pairs."""

def eliminate(a: Any, b: Any, limit: int) -> bool:
    """Solve a system whose diagonal dominates, in place; False once it takes more products than `limit`."""

def fill_lists(
    where: Any, indptr: Any, indices: Any, stored: Any, places: Any, dense: bool, out: Any
) -> int:
    """Where the mass of each entry can go within its pair; how long the lists are together."""

class EventRows:
    """Work space that turns the laws of events into rows."""

    def __init__(self, events: int, kernels: int) -> None: ...
    @property
    def is_full(self) -> bool:
        """Whether it has met as many different rows as it remembers."""

def fill_event_rows(rows: EventRows, asked: Any, laws: Any, merged: bool, block: Any) -> int:
    """Rows of some states; how many entries they have."""

def fill_suffix_sums(p: Any, classes: int, events: int, tail: Any) -> None:
    """Sums of the laws from each event on."""

def mean_law_update(
    asked: Any, mean: Any, discount: float, prices: Any, u: Any, policy: Any, stake: Any
) -> None:
    """The best actions against the mean law."""

def mean_law_product(there: Any, classes: Any, mean: Any, z: Any, out: Any) -> None:
    """Expected numbers under the mean law."""
