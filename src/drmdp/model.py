"""What is known: costs, N weighted kernels, discount, start distribution, names.

A distributionally robust MDP has states s, actions a, next states t, a discount λ in [0, 1), costs c(s, a) or
c(s, a, t), and N observed kernels ŷ_i with weights w_i. Inside the package **the agent minimises cost and nature
maximises it**; rewards are negated here and negated back where results leave.

An unavailable pair (s, a) is never played and its rows are never read. A terminal state has value 0 and no action:
the process ends there, so nature has nothing to move in it. Nature may still change how likely it is to be reached.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, BoolArray
from drmdp.core import distributions, storage
from drmdp.core import html as _html
from drmdp.core import text as words
from drmdp.core import validation as checks
from drmdp.core.mapped import check_unchanged
from drmdp.core.progress import stage
from drmdp.core.shapes import kernel_shape
from drmdp.core.storage import Kernels
from drmdp.core.validation import Names
from drmdp.errors import InputError, brief, clean, described, shown


class Model:
    """A Markov decision process with N observed kernels; validated once, immutable.

    Parameters
    ----------
    kernels : (N, S, A, S) or (S, A, S) array, or a sequence of N scipy.sparse matrices (S·A, S)
        A shape that can be read in two ways, such as (2, 2, 2), is refused with both. Row s·A + a of a sparse matrix is the
        distribution of the next state. Rows whose sum differs from 1 by at most
        1e-9 (1e-6 if given in float32) are renormalised, and `notes` says so; the bits of all others are kept.
        Negative numbers of at least −1e-12 are 0.
    costs, rewards : (S,), (S, A) or (S, A, S) array, or a sparse (S·A, S) matrix
        Exactly one of the two. With (S, A, S) the cost depends on the next state and nature moves it with the mass;
        NaN means "unknown" and is legal only for transitions that no kernel has; such a model needs
        ``support="observed"``. So does one with a sparse matrix, which is read only where some kernel has the
        transition (and is 0 there if it holds nothing).
    discount : float in [0, 1)
    weights : (N,) array, optional
        Weights of the kernels, summing to 1, also as a mapping from names of kernels; equal by default.
    initial : (S,) array or mapping from state to probability, optional
        Start distribution; uniform by default. Used only for averages over states.
    states, actions : sequences of names, optional
        Distinct strings or integers (of up to 128 bits); 0, 1, 2, … by default.
    available : (S, A) bool array or mapping from state to the actions it has, optional
        All by default; in a mapping, states not mentioned have all actions.
    terminal : (S,) bool array or collection of state names, optional
    dtype : float64 or float32, optional
        How kernels are stored; arithmetic is in float64 always. float32 halves the memory of a model whose rows are then
        the rounded ones, divided by their sum.
    kernel_names : sequence of N names, optional
        Where each kernel comes from: a year, a machine, a hospital. Distinct strings or integers; 0, 1, 2, … by default.
    notes : sequence of texts
        What was assumed on the way to this model. They go where the model goes: files, reports, summaries.
    normalize : bool
        Scale every row to sum to 1, for tables with few digits and for probabilities that were float32 once. Negative
        numbers of at least −1e-9 are then 0. A note tells the largest correction.

    Examples
    --------
    >>> import numpy as np, drmdp
    >>> stay, go = np.eye(2), np.full((2, 2), 0.5)
    >>> drmdp.Model([np.stack([stay, go], axis=1)], costs=[[0.0, 1.0], [2.0, 3.0]], discount=0.9)
    Model: 2 states × 2 actions × 1 kernel, discount 0.9
      costs (S, A) in [0, 3]
      dense, 75% of the probabilities stored, 222 bytes
    """

    n_states: int
    n_actions: int
    n_kernels: int
    discount: float
    weights: Array
    initial: Array
    states: Names
    actions: Names
    available: BoolArray
    terminal: BoolArray
    kernel_names: Names
    _blocks: Kernels
    mean: Array
    _costs: Array
    is_sparse: bool
    maximise: bool
    notes: tuple[str, ...]

    @stage("checking the model")
    def __init__(
        self,
        kernels: ArrayLike,
        *,
        costs: ArrayLike = None,
        rewards: ArrayLike = None,
        discount: float,
        weights: ArrayLike = None,
        initial: ArrayLike = None,
        states: Names | None = None,
        actions: Names | None = None,
        available: ArrayLike = None,
        terminal: ArrayLike = None,
        dtype: Any = None,
        kernel_names: Names | None = None,
        notes: Sequence[str] = (),
        normalize: bool = False,
    ) -> None:
        if (costs is None) == (rewards is None):
            raise InputError(f"give exactly one of costs and rewards, got {'neither' if costs is None else 'both'}")
        given = costs if rewards is None else rewards
        others = {"costs": costs, "rewards": rewards, "available": available, "actions": actions}
        others |= {"kernel_names": kernel_names, "weights": weights}
        source, N, S, A, row_sum_tol = kernel_shape(kernels, others)
        state_names, action_names = checks.names_of("states", states, S), checks.names_of("actions", actions, A)
        labels = distributions.Labels(checks.names_of("kernel_names", kernel_names, N), state_names, action_names)
        end = checks.terminal_flags(terminal, state_names)
        open_pairs = checks.available_flags(available, state_names, action_names) & ~end[:, None]
        stuck = ~open_pairs.any(axis=1) & ~end
        if stuck.any():
            raise InputError(f"state {state_names[int(np.argmax(stuck))]!r} has no available action")
        slack = storage.NEGATIVE_NORMALIZED if normalize else storage.NEGATIVE
        if isinstance(source, Kernels):
            blocks = source
        elif isinstance(source, np.ndarray):
            blocks = storage.compress_dense(source, open_pairs, slack)
        else:
            blocks = storage.compress_sparse(source, open_pairs, slack)
        blocks, corrected = distributions.check(blocks, open_pairs, labels, row_sum_tol, normalize)
        if dtype is not None:
            blocks = blocks.astype(checks.storage_dtype(dtype))
        self._set(
            n_states=S,
            n_actions=A,
            n_kernels=N,
            discount=checks.discount_of(discount),
            weights=checks.distribution("weights", weights, labels.kernels, "kernel"),
            initial=checks.distribution("initial", initial, state_names, "state"),
            states=state_names,
            actions=action_names,
            available=open_pairs,
            terminal=end,
            kernel_names=labels.kernels,
            _blocks=blocks,
            is_sparse=blocks.is_sparse,
            maximise=rewards is not None,
            notes=(*checks.notes_of(notes), *corrected),
        )
        name = "costs" if rewards is None else "rewards"
        value = checks.costs_of(name, given, self)
        self._set(_costs=0.0 - value if self.maximise else value)  # never −0.0, which would be another fingerprint
        self._set(mean=blocks.mean(self.weights))

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies are read-only too."""
        self._set(**state)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Model is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Model is immutable: cannot delete {name!r}")

    def astype(self, dtype: Any) -> Model:
        """The same model with its kernels stored in float64 or float32."""
        blocks = self.blocks.astype(checks.storage_dtype(dtype))
        return changed(self, _blocks=blocks, mean=blocks.mean(self.weights))

    @property
    def blocks(self) -> Kernels:
        """The probabilities as they are stored; if that is in a file, it must be the file that was read."""
        check_unchanged(self._blocks.data)
        return self._blocks

    # ------------------------------------------------------------------ what the user gave

    @property
    def costs(self) -> Any:
        """Costs, or negated rewards, (S, A); (S, A, S) or sparse (S·A, S) when they depend on the next state."""
        return self._blocks.matrix(self._costs) if self._costs.ndim == 1 else self._costs

    @property
    def rewards(self) -> Any:
        """Rewards, or negated costs, in the shape of `costs`."""
        rewards = 0.0 - self._costs
        return self._blocks.matrix(rewards) if rewards.ndim == 1 else rewards

    @property
    def kernels(self) -> Any:
        """The N kernels, (N, S, A, S) or a list of N sparse (S·A, S) matrices; unavailable rows are zero."""
        if not self.is_sparse:
            return np.ascontiguousarray(self.blocks.dense(0, self.n_states).transpose(2, 0, 1, 3))
        blocks = self.blocks
        return [_no_zeros(blocks.matrix(blocks.entries(i))) for i in range(self.n_kernels)]

    @property
    def mean_kernel(self) -> Any:
        """Σ_i w_i ŷ_i, (S, A, S) or sparse (S·A, S)."""
        matrix = self._blocks.matrix(self.mean)
        shape = (self.n_states, self.n_actions, self.n_states)
        return _no_zeros(matrix) if self.is_sparse else matrix.toarray().reshape(shape)

    # ------------------------------------------------------------------ what the operators need

    @property
    def next_costs(self) -> bool:
        """Whether costs depend on the next state."""
        return self._costs.ndim != 2

    @property
    def cost_range(self) -> tuple[float, float]:
        """Smallest and largest known cost of the available pairs; zeros if there are none."""
        known = self._costs if self._costs.ndim == 1 else self._costs[self.available]
        return (float(np.nanmin(known)), float(np.nanmax(known))) if known.size else (0.0, 0.0)

    @property
    def costs_missing(self) -> bool:
        """Whether some transition that no kernel has lacks a cost."""
        if self._costs.ndim == 2:
            return False
        if self._costs.ndim == 1:
            return bool((self._blocks.lengths < self.n_states)[self.available.ravel()].any())
        return bool(np.isnan(self._costs).any())

    def stakes(self, value: Array, start: int, stop: int) -> Array:
        """Stakes z = c(s, a, t) + λ v(t) for the states start … stop − 1, (n, A, S); NaN where the cost is unknown."""
        future = self.discount * value
        if self._costs.ndim == 2:
            return np.asarray(self._costs[start:stop, :, None] + future)
        if self._costs.ndim == 3:
            return np.asarray(self._costs[start:stop] + future)
        z = np.full((stop - start, self.n_actions, self.n_states), np.nan)
        lo, hi = self._blocks.indptr[start * self.n_actions], self._blocks.indptr[stop * self.n_actions]
        mask = self._blocks.mask(start, stop)
        z[mask] = self._costs[lo:hi]
        return z + future

    def listed_costs(self) -> Array:
        """Next-state costs in the order of the stored columns, (nnz,)."""
        if self._costs.ndim == 1:
            return self._costs
        pair = np.repeat(np.arange(self.n_states * self.n_actions), self._blocks.lengths)
        flat = self._costs.reshape(-1, self.n_states)
        return np.asarray(flat[pair, self._blocks.indices])

    def observed(self, start: int, stop: int) -> BoolArray:
        """Which next states some kernel with positive weight reaches, (n, A, S)."""
        if (self.weights > 0).all():
            return self._blocks.mask(start, stop)
        return np.asarray((self.blocks.dense(start, stop)[:, :, self.weights > 0] > 0).any(axis=2))

    def policy(self, policy: ArrayLike) -> Array:
        """Check a policy and return it as (S, A), rows summing to 1, zero in terminal states.

        `policy` is an (S, A) array of probabilities, an (S,) array of action numbers, a mapping from every state
        that is not terminal to an action or to a mapping from actions to probabilities, or a result that has a policy,
        such as a `Solution`.
        """
        S, A = self.n_states, self.n_actions
        tol = storage.ROW_SUM_TOL
        policy = checks.policy_of(policy, self)
        if isinstance(policy, Mapping):
            x = self._policy_from_mapping(policy)
        elif isinstance(policy, list | tuple) and policy and all(isinstance(name, str) for name in policy):
            raise InputError(
                f"policy: names of actions go with those of states, {{state: action}}, got {shown(policy)}"
            )
        else:
            x, tol = checks.numbers_with_slack("policy", policy)
            if x.shape == (S,):
                x = self._policy_from_actions(x)
            elif x.shape != (S, A):
                staged = (
                    f": it has a policy for each of {len(x):,} stages: give one of them"
                    if x.shape[1:] == (S, A)
                    else ""
                )
                raise InputError(f"policy: expected shape {(S, A)} or {(S,)}, got {x.shape}{staged}")
        x = np.where(self.terminal[:, None], 0.0, x)
        for bad, rule in (
            (~np.isfinite(x), "probabilities must be finite"),
            (x < 0, "probabilities must not be negative"),
            ((x > 0) & ~self.available, "an unavailable action is played"),
        ):
            if bad.any():
                s, a = np.argwhere(bad)[0]
                where = f"state {self.states[s]!r}, action {self.actions[a]!r}"
                raise InputError(f"policy: {rule}: {where} has {float(x[s, a])!r}")
        with np.errstate(over="ignore"):
            total = x.sum(axis=1)
        off = np.where(self.terminal, 0, np.abs(total - 1))
        if off.max() > tol:
            s = int(np.argmax(off > tol))
            raise InputError(f"policy: state {self.states[s]!r} sums to {float(total[s])!r}, not 1")
        return x / np.where(self.terminal, 1, total)[:, None]

    def _policy_from_actions(self, chosen: Array) -> Array:
        x = np.zeros((self.n_states, self.n_actions))
        for s in np.flatnonzero(~self.terminal).tolist():
            a = float(chosen[s])
            if not (0 <= a < self.n_actions and a == int(a)):
                rule = f"expected action numbers 0 … {self.n_actions - 1}"
                raise InputError(f"policy: {rule}: state {self.states[s]!r} has {a!r}")
            x[s, int(a)] = 1
        return x

    def _policy_from_mapping(self, policy: Mapping[Any, Any]) -> Array:
        x = np.zeros((self.n_states, self.n_actions))
        rows, columns = checks.lookup(self.states), checks.lookup(self.actions)
        missing = ~self.terminal
        for state, choice in policy.items():
            s = checks.find(rows, state, "policy", "state")
            missing[s] = False
            where = f"policy: state {self.states[s]!r}"
            for action, probability in choice.items() if isinstance(choice, Mapping) else ((choice, 1.0),):
                a = checks.find(columns, action, where, "action")
                x[s, a] = checks.number(f"{where}, action {self.actions[a]!r}", probability)
        if missing.any():
            raise InputError(f"policy: state {self.states[int(np.argmax(missing))]!r} is missing")
        return x

    # ------------------------------------------------------------------ looks

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        held = (self._costs, self.mean, self.weights, self.initial, self.available, self.terminal)
        return self._blocks.nbytes + sum(array.nbytes for array in held)

    @cached_property
    @stage("hashing the model")
    def fingerprint(self) -> str:
        """Hash of everything that defines the problem, names included and notes not; equal models, and only they, share it."""
        digest = hashlib.sha256()
        blocks = self.blocks
        for array in (
            blocks.indptr, blocks.indices, blocks.data, self._costs, self.weights, self.initial,
            self.available, self.terminal, np.array([self.discount, self.maximise], dtype=float),
        ):  # fmt: skip
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
        names = [list(self.states), list(self.actions)]
        if not isinstance(self.kernel_names, range):
            names.append(list(self.kernel_names))
        digest.update(repr(tuple(names)).encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        S, A, N = self.n_states, self.n_actions, self.n_kernels
        lo, hi = self.cost_range
        if self.maximise:
            lo, hi = 0.0 - hi, 0.0 - lo
        name = "rewards" if self.maximise else "costs"
        shape = "(S, A, S)" if self.next_costs else "(S, A)"
        share = self._blocks.indices.size / (S * A * S)
        kind = "sparse" if self.is_sparse else "dense"
        lines = [
            f"Model: {words.count(S, 'state')} × {words.count(A, 'action')} × {words.count(N, 'kernel')}, "
            f"discount {words.discount(self.discount)}",
            f"  {name} {shape} in [{lo:g}, {hi:g}]",
            f"  {kind}, {f'{share:.2g}' if share < 0.01 else f'{share:.0%}'} of the probabilities stored, "
            f"{words.memory(self.nbytes)}",
        ]
        if not isinstance(self.kernel_names, range):
            lines.append(f"  kernels {words.some(self.kernel_names)}")
        closed = int((~self.available[~self.terminal]).sum())
        if closed or self.terminal.any():
            ends = int(self.terminal.sum())
            lines.append(f"  {words.count(closed, 'unavailable pair')}, {words.count(ends, 'terminal state')}")
        return clean("\n".join(lines + [f"  note: {brief(note, 1000)}" for note in self.notes]))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        first, *others = repr(self).removeprefix("Model: ").splitlines()
        head = {"size": first, "data": "; ".join(line.strip() for line in others if "note: " not in line)}
        head |= {"notes": "; ".join(self.notes)} if self.notes else {}
        sign = -1.0 if self.maximise else 1.0
        rows = []
        for s in range(min(self.n_states, _html.ROWS)):
            own = np.flatnonzero(self.available[s])
            names = ", ".join(str(self.actions[a]) for a in own[:8]) + (", …" if own.size > 8 else "")
            rows.append([self.states[s], names or "(end)"])
            if not self.next_costs:
                level = sorted({float(0.0 + sign * self._costs[s, a]) for a in own})
                rows[-1].append(
                    " … ".join(f"{cost:.6g}" for cost in (level[0], level[-1])[: len(level)]) if level else ""
                )
        columns = ["state", "actions"] + ([] if self.next_costs else ["reward" if self.maximise else "cost"])
        return _html.facts("Model", head) + _html.table(columns, rows, self.n_states)


def _no_zeros(matrix: Any) -> Any:
    if matrix.data.all():
        return matrix
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    return matrix


def check_model(given: Any, name: str = "model") -> None:
    """Refuse what is not a model, with what was probably meant."""
    if isinstance(given, Model):
        return
    cure = ""
    if isinstance(given, str | os.PathLike):
        cure = f": read it with drmdp.read({os.fspath(given)!r})"
    elif np.ndim(given) if isinstance(given, np.ndarray) else isinstance(given, list | tuple):
        cure = ": make one with drmdp.Model(kernels, costs=…, discount=…)"
    raise InputError(f"{name}: expected a drmdp.Model, got {described(given)}{cure}")


def changed(model: Model, **fields: Any) -> Model:
    """The same model with other fields, which are not checked: what makes them knows what it does."""
    other = object.__new__(Model)
    other._set(**{name: getattr(model, name) for name in Model.__annotations__} | fields)
    return other
