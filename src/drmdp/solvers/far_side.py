"""Upper bounds on probabilities, where players may go round in circles for ever and no step is strict.

For every option of a state (an action, where the agent is free; all that is played, where nature is and the policy is not) what comes after it is bounded from
above, by a proved sweep or by rule E (`drmdp.certificate.plateau`), whichever is less. p is a bound if after no option it is more than before.

The search is for such a p near the least one. States of an end component of the free players share one number: from there they may go wherever one of its
options may lead. So the unknowns q are one for each component and one for each other state, and

    q_C = max { what comes after an option that cannot stay in C, p at an exit of one that can },

whose options all lead on: it is solved by policy iteration. What is played is changed only where no bound holds otherwise:
at ties, and where values are nearly equal, players would go round for very long, and what that takes times the margin is what
a bound is off by. Where nature mixes kernels, exits are not free: she leaves by one of the kernels that lead out, and an exit
is the mean of p over where that leads outside. Components guide, and no bound rests on them.
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
PLAIN = 300
"""States up to which systems are plain arrays."""
ALL = slice(None)
NEVER = 1 - 2.0**-45
"""A chain that never leads on is cut off after so many steps; components leave none."""


class Players(Protocol):
    """Who is free, and what comes after their options."""

    options: Options

    @property
    def kernels(self) -> Any:
        """Rows (N, n) behind the entries of options, where nature mixes kernels; else None."""

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


class Free:
    """Nature is free, and the agent is, too, unless there is a policy (S, A): options lead wherever her set allows."""

    def __init__(self, problem: Problem, policy: Array | None) -> None:
        model, ball, together = problem.model, problem.operator.ball, policy is not None
        assert ball is not None
        self.problem, self.policy = problem, policy
        self._side = -1.0 if model.maximise else 1.0  # of values
        self._share = np.ones(model.available.shape) if policy is None else policy
        self._pairs = pairs = np.flatnonzero(model.available if policy is None else policy > 0)
        layout = lay_out(model, ball)
        if layout.unlisted and model.n_states <= DENSE:
            layout = lay_out_all(model, ball)
        self._whole = layout.unlisted  # any state may be next, and none is listed
        at, lengths = entries_of(layout.indptr, pairs)
        states = pairs // model.n_actions
        owner, of = np.unique(states, return_inverse=True) if together else (states, np.arange(pairs.size))
        counts = np.bincount(of, lengths, minlength=owner.size).astype(np.int64)
        first = np.flatnonzero(np.diff(of, prepend=-1))
        ends = np.append(first, pairs.size)
        self._layout, self._at = layout, at
        self._update: Update | None = None

        def stays(label: IntArray, some: IntArray) -> BoolArray:
            return keeps(ball, layout, label, pairs[entries_of(ends, some)[0]], together)

        self.options = Options(owner, np.concatenate([[0], np.cumsum(counts)]), layout.indices[at], stays)

    def after(self, p: Array) -> tuple[Array, Array]:
        """By a proved sweep, of the policy or pair by pair."""
        value = self._side * p + 0.0
        if self.policy is None:
            self._update = self.problem.sweep(value)
            prover: Any = self.problem.operator.prover  # type: ignore[attr-defined]
            sure = -prover.each(value, self._update.claim).ravel()[self._pairs]
        else:
            self._update = self.problem.proved(value, self.policy)
            step = self._update.upper_step if self._side > 0 else self._update.lower_step
            sure = self._side * beyond(value, step, int(self._side))[self.options.owner]
        return sure, self._top(p)

    def _top(self, p: Array) -> Array:
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
        share = self._share.ravel()[pairs]
        return np.stack([share * layout.data[self._at + (N - 1) * first + i * lengths] for i in range(N)])

    def rows(self, options: IntArray) -> Any:
        """Where nature's best rows lead."""
        assert self._update is not None
        played = self._share
        if self.policy is None:
            played = np.zeros(self._share.shape)
            played.flat[self._pairs[options]] = 1.0
        return chosen(self._update.nature.chain(played), self.options.owner[options])


def chosen(chain: Any, states: IntArray | slice = ALL) -> Any:
    """Rows of a chain, an array or a sparse matrix."""
    if isinstance(chain, Rows):
        if chain.prefix_ptr[-1]:
            return chain.dense()[states]
        shape = (chain.entry_ptr.size - 1, chain.n_columns)
        chain = sparse.csr_array((chain.entry_mass, chain.entry_state, chain.entry_ptr), shape=shape)
    return chain if states is ALL else chain[states]


def solved(chain: Any, *rights: Array, left: float = linear.LEFT) -> list[Array]:
    """(I − P)⁻¹ r; what is not a number says that it failed."""
    matrix, n = sparse.csr_array(chain), rights[0].size
    if n <= PLAIN:
        plain = matrix.toarray()
        return [linear.solve(plain, NEVER, right) for right in rights]
    return linear.arriving(rows_of(NEVER * matrix), rights, left=left) or [np.full(n, np.nan) for _ in rights]


@dataclass
class Bound:
    """What was found: p (S,), whether it is a bound, and how often options were looked at."""

    p: Array
    holds: bool
    rounds: int


def bound(
    players: Players, live: BoolArray, p: Array, checkpoint: Callable[[], None] = lambda: None,
    box: tuple[float, float] = (0.0, 1.0), near: float = 0.0, margin: float = ROUNDING,
) -> Bound:  # fmt: skip
    """A bound near p, (S,), which has the values of all that is not live; `margin` is added to what leads on, for systems are not solved exactly.

    Bounds are looked for in a box, and are at its end where they are that `near`.
    """
    options = players.options
    label, stays = end_components(options, live)
    names = np.unique(np.where(label >= 0, label, live.size + np.arange(live.size)), return_inverse=True)[1]
    n, owner, source = int(names.max()) + 1, options.owner, options.source
    out = stays[source] & (label[options.indices] != label[owner[source]])  # exits of what stays
    exits, doors = _doors(options, out, players.kernels, live.size)
    leading = np.flatnonzero(~stays)
    classes = np.concatenate([names[owner[leading]], names[exits]])
    merge = sparse.csr_array((np.ones(names.size), (np.arange(names.size), names)), shape=(names.size, n))
    fixed, going, q = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.full(n, -np.inf)
    fixed[names[~live]] = going[classes] = True
    np.maximum.at(q, names, p)
    q = np.where(going | fixed, np.where(going & (q >= box[1] - near), box[1], q), 0.0)  # without any exit it is 0
    some = np.flatnonzero(going & ~fixed & (q < box[1]))
    rows, more = sparse.csr_array((n, n)), np.full(n, -np.inf)  # what is played is worth rows @ q + more
    for k in range(ROUNDS):
        checkpoint()
        p = q[names]
        sure, top = players.after(p)
        if (np.minimum(sure, top) <= p[owner]).all():
            return Bound(p, True, k + 1)
        value = np.concatenate([np.minimum(sure + margin, top)[leading], doors @ p])
        best = _argmax(value, classes, n)[some]
        held = (rows @ q + more)[some]
        other = value[best] > np.where(held == -np.inf, held, np.maximum(held, q[some]) + margin)
        if not other.any():  # what is left is rounding: a little more than that, and it is gone
            other = value[best] > q[some]
            value = value + 256 * EPS * np.abs(q).max()
        by_row, by_door = (np.flatnonzero(other & own) for own in (best < leading.size, best >= leading.size))
        lead = sparse.csr_array(players.rows(leading[best[by_row]])), doors[best[by_door] - leading.size]
        at = np.concatenate([by_row, by_door])
        rows = _replaced(rows, some[at], sparse.csr_array(sparse.vstack(lead) @ merge))
        more[some[at]] = value[best[at]] - rows[some[at]] @ q
        step = (rows @ q + more - q)[some]
        found = solved(rows[some][:, some], step, left=0.0)[0]
        if not (np.isfinite(found).all() and np.abs(found).max(initial=0.0) <= 2 * (box[1] - box[0])):
            found = step
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
