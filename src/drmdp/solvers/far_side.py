"""Upper bounds on probabilities, where players may go round in circles for ever and no step is strict.

For every option of a state (an action, where the agent is free; all that is played, where nature is and the policy is not) what comes after it is bounded from
above, by a proved sweep or by rule E (`drmdp.certificate.plateau`), whichever is less. p is a bound if after no option it is more than before.

The search is for such a p near the least one. States of an end component of the free players share one number: from there they may go wherever one of its
options may lead. So the unknowns q are one for each component and one for each other state, and

    q_C = max { what comes after an option that cannot stay in C, p at an exit of one that can },

whose options all lead on: it is solved by policy iteration. Where nature mixes kernels, exits are not free: she leaves by one of the kernels that lead out, and
an exit is the mean of p over where that leads outside. Components guide, and no bound rests on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.bellman.operator import Update
from drmdp.certificate import explicit, plateau
from drmdp.core.cached import cached_property
from drmdp.core.compact import DENSE, Rows, rows_of
from drmdp.core.levels import EPS, beyond
from drmdp.criteria import linear
from drmdp.criteria.components import Options, end_components, entries_of
from drmdp.layout.layout import lay_out, lay_out_all
from drmdp.sets.keeping import keeps
from drmdp.sets.reweighting import Reweighting
from drmdp.solvers.problem import Problem

ROUNDS, ROUNDING = 60, 4 * EPS
"""Of policy iteration; and what systems that are solved directly are off by."""
ALL = slice(None)
NEVER = 1 - 2.0**-45
"""A chain that never leads on is cut off after so many steps; components leave none."""


class Players(Protocol):
    """Who is free, and what comes after their options."""

    options: Options
    kernels: Any  # (N, n) rows behind the entries of options, where nature mixes kernels; else None

    def after(self, p: Array) -> tuple[Array, Array]:
        """Bounds from above on p after each option, (O,): by a sum, and by comparison."""

    def rows(self, options: IntArray) -> Any:
        """Where some options lead as they were last answered, an array or a sparse matrix (n, S)."""


class Agent:
    """Nature has moved: a kernel, sparse (S·A, S), of which pairs (S, A) can be played."""

    def __init__(self, matrix: Any, played: BoolArray) -> None:
        self._rows, self.kernels = matrix[np.flatnonzero(played)], None
        self.options = Options.of_kernel(matrix, played, True)

    def after(self, p: Array) -> tuple[Array, Array]:
        """What an explicit row leads to."""
        return explicit.after(self._rows, p)

    def rows(self, options: IntArray) -> Any:
        """They are known."""
        return self._rows[options]


class _Free:
    """Nature is free: options lead wherever her set allows."""

    def __init__(self, problem: Problem, pairs: IntArray, together: bool) -> None:
        self.problem, ball = problem, problem.operator.ball
        assert ball is not None
        layout = lay_out(problem.model, ball)
        if layout.unlisted and problem.model.n_states <= DENSE:
            layout = lay_out_all(problem.model, ball)
        self._whole = layout.unlisted  # any state may be next, and none is listed
        A = problem.model.n_actions
        at, lengths = entries_of(layout.indptr, pairs)
        owner, of = np.unique(pairs // A, return_inverse=True) if together else (pairs // A, np.arange(pairs.size))
        counts = np.bincount(of, lengths, minlength=owner.size).astype(np.int64)
        first = np.flatnonzero(np.diff(of, prepend=-1))
        ends = np.append(first[1:], pairs.size)
        self._layout, self._at, self._of, self._lengths = layout, at, of, lengths

        def stays(label: IntArray, some: IntArray) -> BoolArray:
            asked, _ = entries_of(np.concatenate([first, ends[-1:]]), some) if pairs.size else (some, None)
            return keeps(ball, layout, label, pairs[asked], together)

        self.options = Options(owner, np.concatenate([[0], np.cumsum(counts)]), layout.indices[at], stays)

    def top(self, p: Array) -> Array:
        """What rule E says of each option."""
        options, ball = self.options, self.problem.operator.ball
        if self._whole:
            return np.full(options.owner.size, p.max())
        top = plateau.tops(options.indptr, options.indices, p)
        if isinstance(ball, Reweighting):
            fine = plateau.by_kernel(options.indptr, options.indices, self.kernels, p, options.owner)
            top = np.where(fine, np.minimum(top, p[options.owner]), top)
        return top

    @cached_property
    def kernels(self) -> Any:
        """The rows of the N kernels behind each option, (N, n), as much as they are played."""
        if not isinstance(self.problem.operator.ball, Reweighting):
            return None
        layout, N = self._layout, self._layout.weights.size
        pairs = np.repeat(np.arange(layout.available.size), np.diff(layout.indptr))[self._at]
        lengths, first = np.diff(layout.indptr)[pairs], layout.indptr[pairs]
        share = np.asarray(self._share)[pairs]
        return np.stack([share * layout.data[self._at + (N - 1) * first + i * lengths] for i in range(N)])

    _share: Any = None  # (S·A,) how much pairs are played


class Nature(_Free):
    """A policy (S, A) is fixed, nature is free."""

    def __init__(self, problem: Problem, policy: Array) -> None:
        self.policy = policy
        super().__init__(problem, np.flatnonzero(policy > 0), together=True)
        self._share = policy.ravel()
        self._update: Update | None = None

    def after(self, p: Array) -> tuple[Array, Array]:
        """By a proved sweep of the policy."""
        self._update = self.problem.proved(p, self.policy)
        return beyond(p, self._update.upper_step, +1)[self.options.owner], self.top(p)

    def rows(self, options: IntArray) -> Any:
        """Where the policy leads."""
        assert self._update is not None
        return chosen(self._update.nature.chain(self.policy), self.options.owner[options])


class Both(_Free):
    """Agent and nature are free, and both want to arrive."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, np.flatnonzero(problem.model.available), together=False)
        self._share = np.ones(problem.model.available.size)
        self._pairs = np.flatnonzero(problem.model.available)
        self._update: Update | None = None

    def after(self, p: Array) -> tuple[Array, Array]:
        """By a proved sweep, pair by pair."""
        value = 0.0 - p
        self._update = self.problem.sweep(value)
        prover: Any = self.problem.operator.prover  # type: ignore[attr-defined]
        return -prover.each(value, self._update.claim).ravel()[self._pairs], self.top(p)

    def rows(self, options: IntArray) -> Any:
        """Where the best of nature's rows lead."""
        assert self._update is not None
        model = self.problem.model
        policy = np.zeros(model.available.size)
        policy[self._pairs[options]] = 1.0
        chain = self._update.nature.chain(policy.reshape(model.available.shape))
        return chosen(chain, self.options.owner[options])


def chosen(chain: Any, states: IntArray | slice = ALL) -> Any:
    """Rows of a chain, an array or a sparse matrix."""
    if isinstance(chain, Rows):
        if chain.prefix_ptr[-1]:
            return chain.dense()[states]
        shape = (chain.entry_ptr.size - 1, chain.n_columns)
        chain = sparse.csr_array((chain.entry_mass, chain.entry_state, chain.entry_ptr), shape=shape)
    return chain if states is ALL else chain[states]


def solved(chain: Any, right: Array) -> Array:
    """(I − P)⁻¹ r; what is not a number says that it failed."""
    matrix = sparse.csr_array(chain)
    n = right.size
    if n <= DENSE:
        found: Array = linear.solve(matrix.toarray(), NEVER, right)
        return found
    left = linear.arriving(rows_of(matrix), [right])
    return np.full(n, np.nan) if left is None else left[0]


@dataclass
class Bound:
    """What was found: p (S,), whether it is a bound, and how often options were looked at."""

    p: Array
    holds: bool
    rounds: int


def bound(
    players: Players, live: BoolArray, p: Array, margin: float, checkpoint: Callable[[], None] = lambda: None, box: tuple[float, float] = (0.0, 1.0),
    near: float = 0.0,
) -> Bound:  # fmt: skip
    """A bound near p, (S,), which has the values of all that is not live; `margin` is added to what leads on, for systems are not solved exactly.

    Bounds are looked for in a box.
    """
    options = players.options
    label, stays = end_components(options, live)
    names = np.unique(np.where(label >= 0, label, live.size + np.arange(live.size)), return_inverse=True)[1]
    n, owner, source = int(names.max()) + 1, options.owner, options.source
    out = stays[source] & (label[options.indices] != label[owner[source]])  # exits of what stays
    exits, doors = _doors(options, out, players.kernels, live.size)
    leading = np.flatnonzero(~stays)
    fixed = np.zeros(n, dtype=bool)
    fixed[names[~live]] = True
    q = np.full(n, -np.inf)
    np.maximum.at(q, names, p)
    going = np.zeros(n, dtype=bool)
    going[names[owner[leading]]] = going[names[exits]] = True
    q, going = np.where(going | fixed, q, 0.0), going & ~fixed  # a component without any exit leads nowhere
    classes = np.concatenate([names[owner[leading]], names[exits]])
    merge = sparse.csr_array((np.ones(names.size), (np.arange(names.size), names)), shape=(names.size, n))
    rows, more, least = sparse.csr_array((n, n)), np.full(n, -np.inf), np.inf
    for k in range(ROUNDS):
        checkpoint()
        sure_one = going & (q >= box[1] - near)
        q, going = np.where(sure_one, box[1], q), going & ~sure_one
        p = q[names]
        sure, top = players.after(p)
        if (np.minimum(sure, top) <= p[owner]).all():
            return Bound(p, True, k + 1)
        value = np.concatenate([np.minimum(sure + margin, top)[leading], doors @ p])
        best = _argmax(value, classes, n)
        held = rows @ q + more
        new = going & (best >= 0) & (value[best] > np.where(held == -np.inf, held, np.maximum(held, q) + margin))
        by_row, by_door = (np.flatnonzero(new & own) for own in (best < leading.size, best >= leading.size))
        lines = sparse.vstack([sparse.csr_array(players.rows(leading[best[by_row]])), doors[best[by_door] - leading.size]])
        at = np.concatenate([by_row, by_door])
        rows = _replaced(rows, at, sparse.csr_array(lines @ merge))
        more[at] = value[best[at]] - (rows[at] @ q)
        step = np.where(going, rows @ q + more - q, 0.0)
        some = np.flatnonzero(going)
        found = solved(rows[some][:, some], step[some])
        if not (np.isfinite(found).all() and np.abs(found).max(initial=0.0) <= 2 * (box[1] - box[0])):
            found = step[some]
        q[some] = np.clip(q[some] + found, *box)
    return Bound(p, False, ROUNDS)


def _replaced(rows: Any, at: IntArray, lines: Any) -> Any:
    """Rows with some of them replaced."""
    kept = np.ones(rows.shape[0])
    kept[at] = 0.0
    here = sparse.csr_array((np.ones(at.size), (at, np.arange(at.size))), shape=(rows.shape[0], at.size))
    return sparse.csr_array(sparse.diags_array(kept) @ rows + here @ lines)


def _doors(options: Options, out: BoolArray, kernels: Any, S: int) -> tuple[IntArray, Any]:
    """Whose each way out of a component is, and where it leads, rows (n, S): single states, or what one kernel has outside."""
    source, there = options.source[out], np.asarray(options.indices)[out]
    if kernels is None:
        return options.owner[source], sparse.csr_array(
            (np.ones(there.size), (np.arange(there.size), there)), shape=(there.size, S)
        )
    each = sparse.vstack(
        [sparse.csr_array((own[out], (source, there)), shape=(options.owner.size, S)) for own in kernels]
    ).tocsr()
    mass = np.asarray(each.sum(axis=1))
    used = np.flatnonzero(mass > 0)
    rise = 1 + 256 * EPS  # beyond the margin of rule E
    return options.owner[used % options.owner.size], sparse.diags_array(rise / mass[used]) @ each[used]


def _argmax(value: Array, classes: IntArray, n: int) -> IntArray:
    """Where each class has its largest value, (n,); −1 where it has none."""
    order = np.lexsort((value, classes))
    last = np.append(np.diff(classes[order]) > 0, True) if order.size else np.zeros(0, dtype=bool)
    best = np.full(n, -1)
    best[classes[order[last]]] = order[last]
    return best
