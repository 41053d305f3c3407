"""Value of more data: where more rows lower the worst case most.

Radii that stand for the error of n rows shrink like n^(−1/2), and divergences, which are of degree
2 in distances, like 1/n. With m more rows of (s, a) that look like those there are, θ_sa becomes
θ' = θ_sa (n/(n + m))^(degree/2), and the value from the start improves by

    o(s) [F_s − min(Q_sa(θ'), min_{b≠a} Q_sb)]⁺,

to first order in what the update of s gains, o being the visits of the pair (policy, nature)
(`drmdp.policies.radius_prices`). One sweep at the smaller radii has it for all pairs. An action
that is not played counts as far as it would be taken up. Where the actions of a state share a
radius, rows are those of the state, shared among its actions as they are now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.core.names import same
from drmdp.core.validation import Names, integer, numbers
from drmdp.errors import InputError, clean, unexpected
from drmdp.model import Model
from drmdp.policies.radius_prices import responses
from drmdp.policies.values import known_model
from drmdp.sets import AmbiguitySet, Reweighting, check_problem
from drmdp.solution import HorizonSolution, Solution, check_solution
from drmdp.solution.rows import columns
from drmdp.ui.text import count

SHOWN = 5


@dataclass(frozen=True, eq=False)
class Measurements:
    """Improvements by more rows of each state and action, or of each state.

    Attributes
    ----------
    gains : (S, A), or (S,) where the actions of a state share a radius
        By how much the certified value from the start improves, estimated, never negative; NaN
        where no row was seen, of which nothing can be told.
    counts : as gains
        Rows there are.
    radii : as gains
        Radii there are.
    rows : int
        m, how many rows more.
    costs : as gains
        What a row costs; 1 by default.
    states, actions : sequences
        Names, as in the model.
    """

    gains: Array
    counts: Array
    radii: Array
    rows: int
    costs: Array
    states: Names = field(repr=False)
    actions: Names = field(repr=False)

    @property
    def order(self) -> IntArray:
        """Numbers of state and action, (n, 2), or of the state, (n, 1), the most worth while first.

        What gains nothing is left out.
        """
        worth = np.where(self.gains > 0, self.gains / self.costs, 0.0)
        first = np.argsort(-worth, axis=None, kind="stable")[: np.count_nonzero(worth)]
        return np.stack(np.unravel_index(first, worth.shape), axis=1)

    def to_frame(self) -> Any:
        """A polars table: state, action, rows, radius, gain, gain_per_cost; in `order`."""
        place = self.order.T
        table = {"rows": self.counts, "radius": self.radii, "gain": self.gains}
        table["gain_per_cost"] = self.gains / (self.rows * self.costs)
        names = {"state": self.states} | ({"action": self.actions} if len(place) == 2 else {})
        return columns(names, place, {name: values[tuple(place)] for name, values in table.items()})

    def __repr__(self) -> str:
        lines = [f"Measurements: what {count(self.rows, 'more row')} would improve, the most first"]
        for place in self.order[:SHOWN].tolist():
            where = tuple(place)
            named = zip((self.states, self.actions), place, strict=False)
            name = ", ".join(str(names[k]) for names, k in named)
            lines.append(f"  {name}: {self.gains[where]:.4g}, {self.counts[where]:g} rows so far")
        return clean("\n".join(lines if len(lines) > 1 else [*lines, "  nothing, anywhere"]))


def measure_next(
    model: Model,
    ambiguity: AmbiguitySet,
    solution: Solution | HorizonSolution,
    rows: int = 100,
    cost: ArrayLike = None,
) -> Measurements:
    """Where more rows of data would improve the certified value most.

    The radius of a pair is taken to shrink with its number of rows n like n^(−1/2), and that of a
    divergence like 1/n, from what it is. The gain is an estimate, to first order, for rows that
    look like those there are: others change the kernel, too. It may be more than there is to gain;
    the page about a solution solves again for the first of them.

    Parameters
    ----------
    model : Model
        What was solved, with `counts`.
    ambiguity : set
        What it was solved for. With a budget for each action (rectangular="sa") pairs are
        compared, else states.
    solution : Solution or HorizonSolution
        What was found. Of a plan over stages all have the same model and set.
    rows : int
        How many rows more.
    cost : number or (S, A), or (S,), optional
        What a row costs; the order is then by what is gained for that.

    Examples
    --------
    >>> import numpy as np, drmdp
    >>> kernels = np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.5, 0.5], [0.2, 0.8]]])
    >>> counts = np.array([[[9, 1], [80, 20]], [[50, 50], [10, 40]]])
    >>> names = {"states": ["fine", "worn"], "actions": ["wait", "act"]}
    >>> costs = [[0, 1], [8, 9]]
    >>> model = drmdp.Model(kernels[None], costs=costs, discount=0.9, counts=counts, **names)
    >>> feared = drmdp.Divergence(3 / model.pair_counts, "burg", rectangular="sa")
    >>> drmdp.radius.measure_next(model, feared, drmdp.solve(model, feared))
    Measurements: what 100 more rows would improve, the most first
      fine, wait: 11.38, 10 rows so far
      fine, act: 5.18, 100 rows so far
      worn, wait: 1.386, 100 rows so far
    """
    plan = isinstance(solution, HorizonSolution)
    check_problem(model, ambiguity)
    if not plan:
        check_solution(solution)
    more = integer("rows", rows, 1)
    counts = np.where(model.available, _rows(model, ambiguity, solution), 0.0)
    n = counts if ambiguity.by_pair else counts.sum(axis=1)
    price = np.ones(n.shape) if cost is None else numbers("cost", cost)
    if price.shape not in ((), n.shape) or not ((price > 0) & np.isfinite(price)).all():
        raise unexpected("cost", f"positive numbers, one or an array {n.shape}", cost)
    shrink = (n / (n + more)) ** (ambiguity.degree / 2)
    radii = ambiguity.radii(model)
    gains, available = np.zeros(n.shape), model.available
    for visits, response in responses(solution, model, ambiguity):
        gains -= visits.reshape(-1, *[1] * (n.ndim - 1)) * response.change(radii * shrink)
        available = response.model.available  # not where a target ends it
    unseen = (n == 0) & (available if ambiguity.by_pair else available.any(axis=1))
    gains = np.where(unseen, np.nan, np.maximum(gains, 0.0))
    costs = np.broadcast_to(price, n.shape)
    return Measurements(gains, n, radii, more, costs, model.states, model.actions)


def _rows(model: Model, ambiguity: AmbiguitySet, solution: Any) -> Array:
    """Rows of each pair; refuse models without them, sets without a radius that they shrink, and
    solutions of another problem.
    """
    plan, counts = isinstance(solution, HorizonSolution), model.pair_counts
    if counts is None:
        cure = "drmdp.estimate keeps its counts, and drmdp.Model takes them, counts=…"
        raise InputError(f"counts: the model does not say how many rows it rests on; {cure}")
    ambiguity.check_sized()
    if isinstance(ambiguity, Reweighting):
        why = "rows of a pair do not settle the weights of kernels; take drmdp.Divergence"
        raise InputError(f"{ambiguity.short}: {why}")
    if solution.settings["nature"] != "adversarial":
        raise InputError("nature: with more rows one that helps can do less: nothing is gained")
    stages = solution.settings["sets"] if plan else [solution.settings["ambiguity"]]
    if plan:
        known = solution.fingerprints == (model.fingerprint,)
    elif solution.criterion == "reach":  # whose model has other ends
        known = same(model.states, solution.states) and same(model.actions, solution.actions)
    else:
        known = known_model(solution, model) is not None
    if not known or list(stages) != [repr(ambiguity)]:
        raise InputError("solution: it is of another model or set, or its stages differ")
    return counts
