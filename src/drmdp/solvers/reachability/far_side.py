"""Upper bounds on probabilities, where players may go round in circles for ever and no step is
strict.

For every option of a state (an action, where the agent is free; all that is played, where nature is
and the policy is not) what comes after it is bounded from above, by a proved sweep or by rule E
(`drmdp.certificate.explicit`), whichever is less. p is a bound if after no option it is more than
before.

The search is for such a p near the least one. States of an end component of the free players share
one number: from there they may go wherever one of its options may lead. So the unknowns q are one
for each component and one for each other state, and

    q_C = max { what comes after an option that cannot stay in C, p at an exit of one that can },

whose options all lead on: it is solved by policy iteration. What is played is changed only where no
bound holds otherwise: at ties, and where values are nearly equal, players would go round for very
long, and what that takes times the margin is what a bound is off by. Unknowns that players go round
and round in all the same, for ever or for `LONGEST` steps at values that hardly differ, become one:
then rule E bounds what stays there, without a margin. Where nature mixes kernels,
exits are not free: she leaves by one of the kernels that lead out, and an exit is the mean of p
over where that leads outside. Components guide, and no bound rests on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.certificate import explicit, plateau
from drmdp.core.cached import cached_property
from drmdp.core.compact import DENSE, CompactRows, rows_of
from drmdp.core.levels import EPS, beyond
from drmdp.core.storage import kernel_entries, row_entries
from drmdp.criteria import newton_systems
from drmdp.criteria.end_components import StateOptions, end_components, graph_of
from drmdp.layout.layout import lay_out, lay_out_all
from drmdp.model import Model
from drmdp.sets.confinement import keeps
from drmdp.sets.reweighting import Reweighting
from drmdp.solvers.problem import Problem

ROUNDS, ROUNDING = 60, 4 * EPS
"""Of policy iteration; and what systems that are solved directly are off by."""
PLAIN = 300
"""States up to which systems are plain arrays."""
NEVER = 1 - 2.0**-45
"""A chain that never leads on is cut off after so many steps; components leave none."""
LONGEST, TIE = 1e9, 2.0**-8
"""Expected steps from which on players are taken to go round in circles, and what share of `near`
values may differ by from one step to the next there.
"""


class Agent:
    """The agent is free, and nature has moved: a kernel, sparse (S·A, S), of which pairs (S, A) can
    be played.
    """

    kernels: Any = None
    """Rows (N, n) behind the entries of options, where nature mixes kernels."""

    def __init__(self, matrix: Any, played: BoolArray) -> None:
        self._rows = matrix[np.flatnonzero(played)]
        self.options = StateOptions.of_kernel(matrix, played)

    def after(self, p: Array) -> tuple[Array, Array]:
        """Bounds from above on p after each option, (O,): by a sum, and by comparison."""
        return explicit.after(self._rows, p)

    def rows(self, options: IntArray) -> Any:
        """Where options lead as they were last answered, an array or a sparse matrix (n, S)."""
        return self._rows[options]


class Free:
    """Nature is free, and the agent is, too, unless there is a policy (S, A): options lead wherever
    her set allows.
    """

    def __init__(self, problem: Problem, policy: Array | None) -> None:
        model, together = problem.model, policy is not None
        ambiguity: Any = problem.operator.ambiguity
        self.problem, self.policy = problem, policy
        self._side = -1.0 if model.maximise else 1.0  # of values
        self._share = np.ones(model.available.shape) if policy is None else policy
        self._pairs = pairs = np.flatnonzero(model.available if policy is None else policy > 0)
        layout = listed_layout(model, ambiguity)
        self._whole = layout.unlisted and bool(layout.radius.any())  # any state may be next
        at, lengths = row_entries(layout.indptr, pairs)
        if layout.ground is None:  # without a radius no mass moves
            of, by_state = np.repeat(np.arange(pairs.size), lengths), (model.n_states, -1)
            radius = np.broadcast_to(layout.radius.reshape(by_state), model.available.shape)
            massive = (kernel_entries(layout, at, pairs[of]) > 0).any(axis=0)  # in the data
            held = (radius.ravel()[pairs][of] > 0) | massive
            at, lengths = at[held], np.bincount(of[held], minlength=pairs.size)
        owner, of = pairs // model.n_actions, np.arange(pairs.size)
        if together:
            owner, of = np.unique(owner, return_inverse=True)
        ends = np.append(np.flatnonzero(np.diff(of, prepend=-1)), pairs.size)
        counts = np.bincount(of, lengths, minlength=owner.size).astype(np.int64)
        self._layout, self._at = layout, at
        self._update: Any = None  # the last sweep

        def stays(label: IntArray, some: IntArray) -> BoolArray:
            return keeps(ambiguity, layout, label, pairs[row_entries(ends, some)[0]], together)

        indptr = np.append(0, np.cumsum(counts))
        self.options = StateOptions(owner, indptr, layout.indices[at], stays)

    def after(self, p: Array) -> tuple[Array, Array]:
        """The same bounds, by a proved sweep of the policy or pair by pair, and by rule E."""
        value, operator = self._side * p + 0.0, self.problem.operator
        if self.policy is None:
            self._update = self.problem.sweep(value)
            prover: Any = operator.prover  # type: ignore[attr-defined]
            sure = -prover.each(value, self._update.claim).ravel()[self._pairs]
        else:
            self._update = self.problem.proved(value, self.policy)
            step = self._update.upper_step if self._side > 0 else self._update.lower_step
            sure = self._side * beyond(value, step, int(self._side))[self.options.owner]
        return sure, self._top(p)

    def _top(self, p: Array) -> Array:
        """What rule E says of each option."""
        owner, lists = self.options.owner, (self.options.indptr, self.options.indices)
        if self._whole:
            return np.full(owner.size, p.max())
        top = plateau.tops(*lists, p)
        if self.kernels is not None:
            fine = plateau.by_kernel(*lists, self.kernels, p, owner)
            top = np.where(fine, np.minimum(top, p[owner]), top)
        return top

    @cached_property
    def kernels(self) -> Any:
        """The rows of the N kernels behind each option, (N, n), as much as they are played."""
        if not isinstance(self.problem.operator.ambiguity, Reweighting):
            return None
        layout = self._layout
        pairs = np.repeat(np.arange(layout.available.size), np.diff(layout.indptr))[self._at]
        return self._share.ravel()[pairs] * kernel_entries(layout, self._at, pairs)

    def rows(self, options: IntArray) -> Any:
        """Where nature's best rows lead."""
        played = self._share
        if self.policy is None:
            played = np.zeros(self._share.shape)
            played.flat[self._pairs[options]] = 1.0
        return entries(self._update.nature.chain(played))[self.options.owner[options]]


def listed_layout(model: Model, ambiguity: Any) -> Any:
    """The layout of a model, with all next states listed where they are few."""
    layout = lay_out(model, ambiguity)
    listed = not layout.unlisted or model.n_states > DENSE
    return layout if listed else lay_out_all(model, ambiguity)


def entries(chain: Any) -> Any:
    """All entries of a chain, or of other rows: an array or a sparse matrix."""
    if not isinstance(chain, CompactRows):
        return chain
    return chain.dense() if chain.prefix_ptr[-1] else newton_systems.matrix_of(chain)


def solved(chain: Any, *rights: Array, left: float = newton_systems.LEFT) -> list[Array]:
    """(I − P)⁻¹ r for several r; what is not a number says that it failed."""
    matrix, n = sparse.csr_array(chain), rights[0].size
    if n <= PLAIN:
        plain = matrix.toarray()
        return [newton_systems.solve(plain, NEVER, right) for right in rights]
    steps = newton_systems.arriving(rows_of(NEVER * matrix), rights, left=left)
    return [np.full(n, np.nan)] * len(rights) if steps is None else steps


@dataclass
class Bound:
    """What was found: p (S,), and whether it is a bound."""

    p: Array
    holds: bool


def bound(
    players: Agent | Free,
    live: BoolArray,
    p: Array,
    checkpoint: Callable[[], None] = lambda: None,
    box: tuple[float, float] = (0.0, 1.0),
    near: float = 0.0,
    margin: float = ROUNDING,
) -> Bound:
    """A bound near p, (S,), which has the values of all that is not live; `margin` is added to what
    leads on, for systems are not solved exactly.

    Bounds are looked for in a box, and are at its end where they are that `near`.
    """
    search = Unknowns(players, live, p, box, near)
    owner = players.options.owner
    for _ in range(ROUNDS):
        checkpoint()
        p = search.q[search.names]
        sure, top = players.after(p)
        if (np.minimum(sure, top) <= p[owner]).all():
            return Bound(p, holds=True)
        search.improve(np.minimum(sure + margin, top), margin)
    return Bound(p, holds=False)


class Unknowns:
    """The unknowns of a search, and policy iteration for them."""

    def __init__(
        self,
        players: Agent | Free,
        live: BoolArray,
        p: Array,
        box: tuple[float, float],
        near: float,
    ) -> None:
        options = players.options
        self.players, self.live, self.box, self.near = players, live, box, near
        label, self.stays = end_components(options, live)
        self.label = np.where(label >= 0, label, live.size + np.arange(live.size))
        self.here, self.there = options.owner[options.source], np.asarray(options.indices)
        names = np.unique(self.label, return_inverse=True)[1]
        n = int(names.max()) + 1
        # what is played is worth rows @ q + more
        self.rows, self.more, q = sparse.csr_array((n, n)), np.full(n, -np.inf), np.full(n, -np.inf)
        np.maximum.at(q, names, p)
        self._name(names, q)

    def _name(self, names: IntArray, q: Array) -> None:
        """Set the unknown of each state, (S,), and all that follows from it."""
        options, n = self.players.options, q.size
        leaves = names[self.there] != names[self.here]
        leading = np.bincount(options.source[leaves], minlength=options.owner.size) > 0
        out = (
            self.stays[options.source] & (self.label[self.there] != self.label[self.here]) & leaves
        )
        exits, self.doors = _doors(options, out, self.players.kernels, names.size)
        self.leading = np.flatnonzero(~self.stays & leading)
        self.classes = np.append(names[options.owner[self.leading]], names[exits])
        states = np.ones(names.size), (np.arange(names.size), names)
        self.merge = sparse.csr_array(states, shape=(names.size, n))
        fixed, going = np.zeros((2, n), dtype=bool)
        fixed[names[~self.live]] = going[self.classes] = True
        q[~going & ~fixed] = 0.0  # without any exit
        q[going & (q >= self.box[1] - self.near)] = self.box[1]
        self.names, self.q, self.some = names, q, np.flatnonzero(going & ~fixed & (q < self.box[1]))

    def improve(self, worth: Array, margin: float) -> None:
        """Play what is better, where options are worth so much, (O,)."""
        q, some, n = self.q, self.some, self.q.size
        value = np.append(worth[self.leading], self.doors @ q[self.names])
        best = _argmax(value, self.classes, n)[some]
        held = (self.rows @ q + self.more)[some]
        other = held == -np.inf  # what was united, and at first all
        if not other.any():
            other = value[best] > np.maximum(held, q[some]) + margin
        if not other.any():  # what is left is rounding: a little more than that, and it is gone
            other = value[best] > q[some]
            value = value + 256 * EPS * np.abs(q).max()
        by_row = np.flatnonzero(other & (best < self.leading.size))
        by_door = np.flatnonzero(other & (best >= self.leading.size))
        lines = sparse.csr_array(self.players.rows(self.leading[best[by_row]]))
        lines = sparse.vstack([lines, self.doors[best[by_door] - self.leading.size]]) @ self.merge
        at = np.append(by_row, by_door)
        rows = _replaced(self.rows, some[at], sparse.csr_array(lines))
        more = self.more.copy()
        more[some[at]] = value[best[at]] - rows[some[at]] @ q
        self.rows, self.more = rows, more
        step = (rows @ q + more - q)[some]
        far, steps = solved(rows[some][:, some], step, np.ones(some.size), left=0.0)
        if steps.max(initial=0.0) > LONGEST and self._united(steps > LONGEST):
            return
        if np.abs(far).max(initial=0.0) <= 2 * (self.box[1] - self.box[0]):  # it may be no number
            step = far
        q[some] = np.clip(q[some] + step, *self.box)

    def _united(self, stuck: BoolArray) -> bool:
        """Make one unknown of those that what is played leads round and round in, for ever, or at
        values that are nearly the same; whether there are any.
        """
        from scipy.sparse.csgraph import connected_components  # takes a tenth of a second

        n = self.q.size
        inside = np.zeros(n, dtype=bool)
        inside[self.some[stuck]] = True
        played = sparse.coo_array(self.rows)
        used = inside[played.row] & (played.data > 0)
        source, target = played.row[used], played.col[used]
        label = connected_components(graph_of(source, target, n), connection="strong")[1]
        leave = np.bincount(label[source[label[source] != label[target]]], minlength=n) > 0
        here, there = self.names[self.here], self.names[self.there]
        near = np.abs(self.q[here] - self.q[there]) <= TIE * self.near
        near &= inside[here] & inside[there] & (here != there)
        closed = ~leave[label[source]]
        edges = np.append(source[closed], here[near]), np.append(target[closed], there[near])
        count, united = connected_components(graph_of(*edges, n), connection="strong")
        if count == n:
            return False
        several = np.bincount(united, minlength=count)[united] > 1
        onto = sparse.csr_array((np.ones(n), (np.arange(n), united)), shape=(n, count))
        kept = sparse.diags_array((~several).astype(float))
        rows, q, more = (
            sparse.csr_array(onto.T @ kept @ self.rows @ onto),
            *np.full((2, count), -np.inf),
        )
        np.maximum.at(q, united, self.q)
        more[united[~several]] = self.more[~several]
        self.rows, self.more = rows, more
        self._name(united[self.names], q)
        return True


def _replaced(rows: Any, at: IntArray, lines: Any) -> Any:
    """Rows with some of them replaced."""
    kept, shape = np.ones(rows.shape[0]), (rows.shape[0], at.size)
    kept[at] = 0.0
    here = sparse.csr_array((np.ones(at.size), (at, np.arange(at.size))), shape=shape)
    return sparse.csr_array(sparse.diags_array(kept) @ rows + here @ lines)


def _doors(options: StateOptions, out: BoolArray, kernels: Any, S: int) -> tuple[IntArray, Any]:
    """Whose each way out of a component is, and where it leads, rows (n, S): single states, or what
    one kernel has outside.
    """
    source, there, n = options.source[out], np.asarray(options.indices)[out], options.owner.size
    if kernels is None:
        single = np.ones(there.size), (np.arange(there.size), there)
        return options.owner[source], sparse.csr_array(single, shape=(there.size, S))
    outside = [(own[out], (source, there)) for own in kernels]
    each = sparse.vstack([sparse.csr_array(own, shape=(n, S)) for own in outside]).tocsr()
    mass = np.asarray(each.sum(axis=1))
    used = np.flatnonzero(mass > 0)
    rise = 1 + 256 * EPS  # beyond the margin of rule E
    return options.owner[used % n], sparse.diags_array(rise / mass[used]) @ each[used]


def _argmax(value: Array, classes: IntArray, n: int) -> IntArray:
    """Where each class has its largest value, (n,); −1 where it has none."""
    order = np.lexsort((value, classes))
    last = np.append(np.diff(classes[order]) > 0, True) if order.size else np.zeros(0, dtype=bool)
    best = np.full(n, -1)
    best[classes[order[last]]] = order[last]
    return best
