"""Total cost until a terminal state, discount 1, of policies that arrive: whoever goes on for ever
with positive probability costs +∞.

Let T be the terminal states with their values g, and U = L = g there. For a stationary policy x and
a stationary kernel y of the set,

    F^x(U) ≤ U − ε in every other state, ε > 0       ⇒   whatever nature does, x costs at most U, if it arrives,
    F_y(L) ≥ L                                        ⇒   whatever is played, arriving costs at least L.

*Proof.* Add up E[c_k + U(s_{k+1})] ≤ F^x(U)(s_k) ≤ U(s_k) − ε over k < n: costs are at most U(s) −
E[U(s_n); not arrived] − ε E[steps so far]. Arriving takes finitely many steps on average, so the
middle term goes to 0. If costs are not negative, they are at least min(g, 0) in all, so that
E[steps] ≤ (U(s) − min(U, 0))/ε is finite: x arrives. Otherwise a second sweep shows it: w ≥ 1 +
F^x(w) with costs 0 bounds the steps. From below E[L(s_n); not arrived] → 0 likewise, for whoever
arrives. ∎ Nothing is assumed of the model, and one sweep proves one side.

**How they are found.** Newton's method on the game in which every step costs ε more ends at U = v +
ε w, w the expected steps of the pair, whose sweep is below by ε; then on the game in which it costs
ε less, at L = v − ε w. ε = goal/(4 max w), or what proofs can tell from 0. Where costs may be 0 or
less, waiting may be free; then ε begins at the size of the costs, so that whoever is best arrives,
and comes down. A pair that does not arrive has no w: then steps are worth only 1 − 10⁻³, 1 − 10⁻⁴,
… of the step before, until the agent has seen what it costs to stay; after `PATIENCE` such steps
nature, or falling costs, can keep the process from ending.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core.levels import EPS, beyond, ended
from drmdp.criteria import newton_systems
from drmdp.criteria.base import Criterion, Sides
from drmdp.criteria.end_components import backward_graph
from drmdp.model import Model
from drmdp.operators.operator import Update
from drmdp.solution import Status

PATIENCE = 9
"""Pairs in a row that do not arrive, after which the run ends."""
TRIES = 5
"""Points from below, where waiting may be free, after which only equal values can help
(`drmdp.solvers.free_waiting`).
"""
LONGEST = 1e13
"""Expected steps that are as good as infinitely many."""
PART = 0.25
"""Share of the goal that ε takes on each side."""
DOWN, NEAR = 0.1, 4.0
"""How fast a raise comes down, and how many ε a residual may be for the other side to be looked
for.
"""
ROUNDS = 100


class Stranded(Exception):  # noqa: N818
    """States from which no next states that were seen lead to an end; its argument is their
    numbers.
    """


class Total(Criterion):
    """The criterion of a model with discount 1 and terminal states."""

    name = "total"

    def __init__(self, model: Model) -> None:
        self._model, self._live = model, ~np.asarray(model.terminal)
        least, most = model.cost_range
        final = 0.0 if model.ends is None else float(model.ends.min())
        self.range = min(0.0, final) if least >= 0 else -np.inf, np.inf
        self.waits: Any = ()  # states that can wait for nothing, where that was looked at
        self.steps: Array | None = None  # expected, of the last pair that arrived
        self.share = 1.0
        self._paid = least > 0  # every step costs something
        # what a step costs more, so far
        self._raised = 0.0 if self._paid else max(most, -least, 1.0)
        # which sides the last sweep bounds
        self._known: tuple[bool, bool, Any] = (False, False, None)
        self._side, self._tries = 1, 0  # what is looked for, and how often from below
        self._lost = 0

    def bounds(self, value: Array, update: Update) -> Sides:
        """The sides whose steps all have the right sign."""
        live, model = self._live, self._model
        low, high = update.lower_step[live], update.upper_step[live]
        self.guess = float(np.abs(value).max())
        lower = ended(model, beyond(value, update.lower_step, -1)) if (low >= 0).all() else None
        upper = ended(model, beyond(value, update.upper_step, +1)) if (high < 0).all() else None
        self._known = lower is not None, upper is not None, update
        return lower, upper

    @property
    def free(self) -> bool:
        """Whether bounds from below may need equal values: waiting may cost nothing."""
        return not self._paid

    def widen(self, update: Update) -> None:
        """Learn from a proof that was too wide."""
        width = float((update.upper_step - update.lower_step)[self._live].max())
        self.width = max(self.width, 2 * width)

    def direction(self, problem: Any, value: Array, update: Update) -> Array:
        """Newton's step on the game whose steps cost ε more, until that bounds from above; then of
        the one where they cost ε less.
        """
        problem.checkpoint()
        live, chain = self._live.astype(float), newton_systems.chain_of(self._model, update)
        right = update.residual * live
        found = newton_systems.arriving(chain, [right, live])
        if found is None or not ((found[1] >= 0.5) | ~self._live).all() or self._endless(found[1]):
            self._lost += 1
            if self._lost > PATIENCE or self._tries:
                self.over = Status.precision_limit if self._tries else Status.unbounded
            rate, right = 1 - 10.0 ** -(2 + self._lost), right + self._raised * live
            return newton_systems.solve(chain, rate, right, problem.checkpoint)
        step, steps = found
        longest = self._learn(steps)
        self._lost = 0
        off = float((update.upper_step - update.lower_step).max())
        least = max(self.width, off) + 4 * EPS * float(np.abs(value).max())
        epsilon: float = max(PART * problem.goal / longest, least)
        if self._raised > epsilon:
            self._raised *= DOWN
            if self._raised < EPS * EPS:  # nothing costs anything
                self.over = Status.precision_limit
            return step + max(self._raised, epsilon) * steps
        known = self._known[2] is update and self._known[self._side > 0]  # not of a held policy
        if known and float(np.abs(right).max()) <= NEAR * epsilon:
            self._side, self._tries = -self._side, 0
        self._tries += self._side < 0
        if self._tries > TRIES and not self._paid:
            self.over = Status.precision_limit
        return step + self._side * epsilon * steps

    @staticmethod
    def _endless(steps: Array) -> bool:
        return not steps.max(initial=0.0) <= LONGEST

    def _learn(self, steps: Array) -> float:
        """Keep the expected steps of a pair; the longest, at least 1."""
        longest = max(1.0, float(steps.max(initial=0.0)))
        self.steps, self.share = steps, 1 / longest
        return longest

    def start(self, problem: Any) -> Array | None:
        """The optimum of the mean kernel, or the value of the policy under it, from a policy that
        arrives.
        """
        nominal = problem if problem.operator.ambiguity is None else problem.of_mean_kernel()
        matrix = getattr(getattr(nominal.operator, "fixed", None), "matrix", None)
        if matrix is None:
            return None
        live, policy = self._live.astype(float), problem.policy
        value: Array = ended(self._model, np.zeros(live.size))
        if policy is None:
            try:
                policy = towards_the_end(self._model, matrix)
            except Stranded:  # but nature may help
                return value
        update = nominal.evaluate(value, policy)
        for _ in range(ROUNDS):
            problem.checkpoint()
            chain, right = newton_systems.chain_of(self._model, update), update.residual * live
            found = newton_systems.arriving(chain, [right + self._raised * live, live])
            if found is None or found[1].min(initial=0.0) < 0 or self._endless(found[1]):
                break
            value = value + found[0]
            self._learn(found[1])
            new = nominal.sweep(value)
            if problem.policy is not None or np.array_equal(new.policy, update.policy):
                break
            update = new
        self.guess = float(np.abs(value).max())
        return value


def towards_the_end(model: Model, matrix: Any) -> Array:
    """A policy (S, A) under which every state arrives that can, where a matrix (S·A, S) says how
    probable next states are.

    Each state goes to the next on a shortest way to a terminal state as probably as it can.
    """
    from scipy.sparse.csgraph import breadth_first_order  # takes a tenth of a second

    S, A = model.available.shape
    entries = sparse.coo_array(matrix)
    own = model.available.ravel()[entries.row] & (entries.data > 0)
    pair, there, mass = entries.row[own], entries.col[own], entries.data[own]
    terminal = np.asarray(model.terminal)
    graph = backward_graph(pair // A, there, terminal)
    before = breadth_first_order(graph, S, directed=True)[1][:S]  # of a state: where to go
    if (lost := np.flatnonzero((before < 0) & ~terminal)).size:
        raise Stranded(lost)
    nearer = np.zeros(S * A)
    hits = there == before[pair // A]
    nearer[pair[hits]] = mass[hits]
    best = np.where(model.available, nearer.reshape(S, A), -1.0).argmax(axis=1)
    policy = np.zeros((S, A))
    policy[np.arange(S), best] = ~terminal
    return policy
