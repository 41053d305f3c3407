"""How much it matters which kernel is true: policies, and the best one, under each kernel of a model.

Costs; rewards are mirrored. With weights w_i, v[p, i] is what policy p costs from the start if kernel i is true, best[i] the least that any policy costs then, and

    regret = v − best ≥ 0,    acceptability[p] = Σ_i w_i [p is the best of those given],    share[s, a] = Σ_i w_i [a is optimal in s],

where equals (`ordinary.TIE`) share. Knowing the kernel before deciding is worth, on average over the kernels, the **expected value of perfect information**

    min_π Σ_i w_i v[π, i] − Σ_i w_i best[i]  ≤  evpi = min_p Σ_i w_i v[p, i] − Σ_i w_i best[i],

p among the policies given and the optima of the kernels. The minimum over all stationary policies π is a hard problem (a multi-model MDP), hence *at most*; whoever
learns while acting has less to gain still. For whoever chooses among the policies given, and is told the kernel, or a label g of it, it is exactly

    evpi_given = min_p Σ_i w_i v[p, i] − Σ_i w_i min_p v[p, i],    evppi = min_p Σ_i w_i v[p, i] − Σ_g min_p Σ_{i∈g} w_i v[p, i],

0 ≤ evppi ≤ evpi_given ≤ min_p Σ_i w_i regret[p, i]. `evpi_given` may exceed `evpi`, if an optimum of some kernel is better on average than all policies given.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core import threads as pool
from drmdp.core import validation as checks
from drmdp.core.compact import DENSE
from drmdp.core.progress import counted, showing
from drmdp.core.random import Seed, generator
from drmdp.core.text import amount, count, measured
from drmdp.criteria import named, posed
from drmdp.errors import InputError, brief, clean, imported, repeated, shown
from drmdp.model import check_model
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.ordinary import ROUNDING, TIE, Large, Optimum, Staged, Stationary
from drmdp.policies.single import noun_of
from drmdp.solution import HorizonSolution, tables
from drmdp.solvers.horizon.stages import final_of, is_plan, is_sequence, length_of, models_of, policies_of

CANDIDATES, WORK, FEW = 100, 3e11, 20
"""Optima that are candidates at most; floating point operations, about a minute, beyond which none are; draws of a label below which `evppi` is too high."""
TABLES = ("kernels", "policies", "actions")
LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False)
class Tornado:
    """What the value of a policy becomes if one part of the mean kernel is replaced, parts that matter most first; user's sign.

    Attributes
    ----------
    base : float
        Its value under the mean kernel.
    names : sequence
        The parts: states, kernels or labels.
    low, high : (K,)
        Weighted 5 % and 95 % quantiles over the kernels that replace it; of a single kernel, between `base` and its value.
    """

    base: float
    names: Sequence[Any]
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Policies under each kernel, beside the best one of it; means over the start, in the user's sign.

    Attributes
    ----------
    names : sequence of P texts
        What the policies are called.
    values : (P, N)
        Expected cost (reward) of each policy under each kernel.
    best : (N,)
        The optimum of each kernel.
    share : (S, A)
        Weight of the kernels whose optimum plays the action; 0 in terminal states. Of plans (T, S, A).
    reached : (S,)
        Weight of the kernels under whose optimum the start leads to the state; elsewhere `share` says nothing about the costs. Of plans (T, S).
    evpi : float
        Knowing the kernel before deciding is worth at most this much on average.
    weights : (N,)
        Of the kernels.
    labels : sequence of N labels or None
        What kernels have in common.
    policies : (P, S, A)
        As they were judged; of plans (P, T, S, A).
    kernel_names, states, actions : sequences
        Names, as in the model.
    maximise : bool
        Whether values are rewards.
    criterion : str
        "discounted", "total", "average", or "stages" for plans.
    notes : tuple of str
        What there is to say of these figures.
    """

    names: tuple[str, ...]
    values: Array
    best: Array
    share: Array
    reached: Array
    evpi: float
    weights: Array
    labels: tuple[Any, ...] | None
    policies: Array
    kernel_names: Sequence[Any]
    states: Sequence[Any]
    actions: Sequence[Any]
    maximise: bool
    criterion: str
    notes: tuple[str, ...]
    problem: Any = field(repr=False)

    @property
    def _costs(self) -> Array:
        return -self.values if self.maximise else self.values

    @property
    def regret(self) -> Array:
        """What each policy costs more (earns less) than the optimum of each kernel, (P, N)."""
        return np.maximum(self._costs + (self.best if self.maximise else -self.best), 0.0)

    @property
    def mean(self) -> Array:
        """Weighted mean of the values over the kernels, (P,)."""
        return np.asarray(_mean(self.values, self.weights))

    @property
    def first(self) -> Array:
        """Share of each policy in being the best of those given under each kernel, (P, N): columns sum to 1."""
        least = self._costs.min(axis=0)
        equal = self._costs <= least + TIE * np.abs(least)
        return np.asarray(equal / equal.sum(axis=0))

    @property
    def acceptability(self) -> Array:
        """Weight of the kernels under which a policy is the best of those given, (P,)."""
        return np.asarray(self.first @ self.weights)

    @property
    def evpi_given(self) -> float:
        """What knowing the kernel is worth on average to whoever chooses among the policies given."""
        return self._gain(range(self.weights.size))

    @property
    def evppi(self) -> float:
        """What knowing the label of the kernel is worth on average to whoever chooses among the policies given."""
        if self.labels is None:
            raise InputError("evppi: the kernels have no labels; give drmdp.sensitivity labels=…")
        return self._gain(self.labels)

    def _gain(self, groups: Sequence[Any]) -> float:
        """The least mean over all kernels, and over those of each group."""
        apart = sum(_mean(self._costs[:, own], self.weights[own]).min() for own in _members(groups).values())
        return _above(_mean(self._costs, self.weights).min(), apart)

    @property
    def worst(self) -> Any:
        """Number of the kernel of positive weight that is worst for each policy, (P,)."""
        return np.where(self.weights > 0, self._costs, -np.inf).argmax(axis=1)

    def quantiles(self, levels: ArrayLike = LEVELS) -> Array:
        """Weighted quantiles of the values over the kernels, (P, L): the smallest value that so much weight is not above.

        Parameters
        ----------
        levels : (L,)
            Between 0 and 1.
        """
        return np.stack([quantiles(own, self.weights, levels) for own in self.values])

    def tornado(self, by: str = "state", policy: str | int = 0) -> Tornado:
        """What moves the value of a policy most, one part of the mean kernel replaced at a time.

        Parameters
        ----------
        by : "state", "kernel" or "label"
            Replace the rows of one state by those of a kernel; or all rows by those of a kernel; the same, put together by labels.
        policy : str or int
            Name or number of the policy; the first one by default.
        """
        p, sign, w = self._number(policy), -1.0 if self.maximise else 1.0, self.weights
        if by not in ("state", "kernel", "label"):
            raise InputError(f"by: expected 'state', 'kernel' or 'label', got {shown(by)}")
        if by == "label" and self.labels is None:
            raise InputError("by: the kernels have no labels; give drmdp.sensitivity labels=…")
        if by == "state":
            if isinstance(self.problem, Large):
                raise InputError(f"by: rows are replaced in models of up to {DENSE:,} states; take 'kernel' or 'label'")
            mean, moved = self.problem.by_state(self.policies[p])
            groups: dict[Any, Array] = dict(zip(self.states, sign * moved, strict=True))
            ends = {name: quantiles(own, w, (0.05, 0.95)) for name, own in groups.items()}
        else:
            mean = float(self.problem.values(self.problem.kernel(None), self.policies[[p]])[0])
            members = _members(self.labels if by == "label" else self.kernel_names)
            heavy = {name: own for name, own in members.items() if w[own].sum() > 0}
            ends = {name: quantiles(self.values[p, own], w[own], (0.05, 0.95)) for name, own in heavy.items()}
        base = sign * mean
        low, high = np.array([*ends.values()]).T
        if by == "kernel":
            low, high = np.minimum(low, base), np.maximum(high, base)
        order = np.argsort(np.minimum(low, base) - np.maximum(high, base), kind="stable")
        names = list(ends)
        return Tornado(base, [names[k] for k in order], low[order], high[order])

    def _number(self, policy: str | int) -> int:
        if isinstance(policy, str):
            return checks.find(checks.lookup(self.names), policy, "policy", "policy")
        return checks.whole("policy", policy, 0, len(self.names) - 1)

    def to_frame(self, table: str = "kernels") -> Any:
        """A polars table.

        Parameters
        ----------
        table : "kernels", "policies" or "actions"
            Every policy under every kernel: value, best, regret; every policy over the kernels: mean, quantiles, worst, regret, acceptability; how often
            each action is optimal in each state.
        """
        if table not in TABLES:
            raise InputError(f"table: expected one of {', '.join(map(repr, TABLES))}, got {shown(table)}")
        pl = imported("polars", "data")
        if table == "actions":
            frame = tables.frame(self.states, self.actions, self.share, {"reached": self.reached})
            return frame.rename({"probability": "share"})
        P, N = self.values.shape
        names = tables.named_column(pl, "kernel_names", self.kernel_names, np.arange(N))
        if table == "policies":
            low, middle, high = self.quantiles().T
            regret = self.regret
            return pl.DataFrame(
                {
                    "policy": self.names, "mean": self.mean, "q05": low, "median": middle, "q95": high,
                    "worst": self.values[np.arange(P), self.worst], "worst_kernel": names[self.worst],
                    "mean_regret": _mean(regret, self.weights), "largest_regret": _largest(regret, self.weights),
                    "acceptability": self.acceptability,
                }
            )  # fmt: skip
        own = {} if self.labels is None else {"label": pl.Series([str(label) for label in self.labels] * P)}
        columns = {
            "policy": np.repeat(self.names, N),
            "kernel": pl.concat([names] * P),
            "weight": np.tile(self.weights, P),
        }
        values = {"value": self.values.ravel(), "best": np.tile(self.best, P), "regret": self.regret.ravel()}
        return pl.DataFrame({**columns, **own, **values})

    def facts(self) -> dict[str, str]:
        """What there is to say, in words."""
        low, _, high = self.quantiles().T
        noun = noun_of(self.kernel_names)
        lines = {}
        for p, name in enumerate(self.names):
            worst = int(self.worst[p])
            where = str(self.kernel_names[worst]) if noun == "draw" else f"{noun} {self.kernel_names[worst]}"
            lines[name] = (
                f"{amount(self.mean[p])} on average, {amount(low[p])} … {amount(high[p])} under 90 % of the {noun}s, "
                f"worst {amount(self.values[p, worst])} ({where}); mean regret {amount(_mean(self.regret[p], self.weights))}"
                + (f"; the best of these under {self.acceptability[p]:.1%}" if len(self.names) > 1 else "")
            )
        lines["optimum"] = f"{amount(_mean(self.best, self.weights))} on average, if the {noun} were known each time"
        lines["evpi"] = f"knowing the {noun} before deciding is worth at most {amount(self.evpi)} on average"
        if len(self.names) > 1:
            told = f"to whoever chooses among these policies it is worth {amount(self.evpi_given)}"
            lines["of these"] = told + ("" if self.labels is None else f", knowing its label {amount(self.evppi)}")
        return lines

    def __repr__(self) -> str:
        noun = measured(self.criterion, "reward" if self.maximise else "cost")
        P, N = self.values.shape
        head = f"Sensitivity: {_counted(P, 'policy', 'policies')} under {count(N, noun_of(self.kernel_names))}, {noun}"
        width = max(10, *(len(brief(name, 24)) for name in self.names))
        lines = {brief(name, 24): text for name, text in self.facts().items()}
        told = [f"  {name:{width}} {text}" for name, text in lines.items()]
        return clean("\n".join([head, *told, *(f"  {'note':{width}} {brief(note, 1000)}" for note in self.notes)]))


def _counted(n: int, noun: str, nouns: str) -> str:
    return f"{n:,} {noun if n == 1 else nouns}"


def quantiles(values: Array, weights: Array, levels: ArrayLike) -> Array:
    """Smallest values (N,) that the weight of a share `levels` (L,) is not above; kernels of weight 0 do not count."""
    asked = np.asarray(levels, dtype=np.float64)
    if not ((asked >= 0) & (asked <= 1)).all():
        raise InputError(f"levels: expected numbers between 0 and 1, got {shown(levels)}")
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0]
    sums = np.cumsum(weights[order])
    at = np.searchsorted(sums, asked * sums[-1] * (1 - 1e-12), side="left")
    return np.asarray(values[order[np.minimum(at, order.size - 1)]])


def _mean(values: Array, weights: Array) -> Any:
    """Weighted mean over the last axis; what weighs nothing may be infinite."""
    return np.where(weights > 0, values, 0.0) @ weights


def _above(one: float, other: float) -> float:
    """By how much a number exceeds another; 0 for what is rounding."""
    return float(one - other) if one - other > ROUNDING * abs(other) else 0.0


def _largest(values: Array, weights: Array) -> Array:
    return np.asarray(np.where(weights > 0, values, -np.inf).max(axis=-1))


def _members(labels: Sequence[Any]) -> dict[Any, list[int]]:
    """Numbers by label, in the order met."""
    found: dict[Any, list[int]] = {}
    for i, label in enumerate(labels):
        found.setdefault(label, []).append(i)
    return found


def sensitivity(
    model: Any,
    policies: Any = None,
    labels: Any = None,
    *,
    criterion: str | None = None,
    stages: int | None = None,
    final: ArrayLike = None,
    costs: ArrayLike = None,
    discount: float | None = None,
    seed: Seed = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> Sensitivity:
    """Judge policies under each of the N kernels alone, beside the best policy of each: N ordinary problems.

    Kernels are taken for what may be true, with their weights for probabilities: draws of a posterior, sources, years. Those of weight 0 are judged, too, but
    count for nothing. Each is solved from the optimum of the mean kernel on.

    Parameters
    ----------
    model : Model, or a sequence of T models
        What is known; of each stage, the first one first. Kernel i is then that of every stage.
    policies : mapping from names to policies, or a policy, optional
        What is judged: anything that `drmdp.evaluate` takes, plans included. By default the policy that is best for the mean kernel.
    labels : sequence of N labels, or a mapping from names of kernels, optional
        What kernels have in common: a source, a value of a parameter.
    criterion : optional
        As for `drmdp.solve`.
    stages, final, costs, discount : optional
        Of finitely many stages, as for `drmdp.finite_horizon`; what is not given is that of a `HorizonSolution` among the policies.
    seed : int or Generator
        Of the optima that are candidates for `Sensitivity.evpi`, where the kernels are more than 100.
    threads, progress : optional
        As for `drmdp.solve`.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> robust = drmdp.solve(model, drmdp.Wasserstein(0.5))
    >>> result = drmdp.sensitivity(model, {"robust": robust, "never repair": [0] * 8})
    >>> result.values.shape, result.acceptability.round(2).tolist()
    ((2, 5), [1.0, 0.0])
    """
    given = None if policies is None else _named(model, policies)
    problem, x = _posed(model, given, criterion, stages, final, costs, discount)
    first = problem.model
    N, w = first.n_kernels, first.weights
    groups = None if labels is None else _labels(first, labels)
    used, notes = np.flatnonzero(w > 0), list[str]()
    tried = used if used.size <= CANDIDATES else np.sort(generator(seed, "sensitivity").choice(used, CANDIDATES, False))
    if used.size * problem.work(tried.size) > WORK:
        tried = used[:0]
        notes.append("evpi: only the policies given are compared, for optima of the kernels would take too long")
    elif tried.size < used.size:
        notes.append(
            f"evpi: of {used.size:,} optima of the kernels, {tried.size} at random are compared with the policies given"
        )
    if groups is not None and (few := min(len(own) for own in _members([groups[i] for i in used]).values())) < FEW:
        notes.append(
            f"evppi: a label has only {count(few, 'kernel')}; if kernels are draws, what fewer than {FEW} of them tell is too much"
        )
    nominal = problem.optimum(problem.kernel(None), None)
    x = np.where(first.terminal[:, None], 0.0, np.eye(first.n_actions)[nominal.actions])[None] if x is None else x
    optima: list[Optimum | None] = [None] * N
    values, best = np.empty((len(x), N)), np.empty(N)

    def solve(i: int, kernel: Any) -> Optimum:
        done = optima[i]
        if done is None:
            done = optima[i] = problem.optimum(kernel, nominal.actions, f"kernel {first.kernel_names[i]!r}")
        return done

    def each(numbers: Any, judge: Any) -> None:
        """Do something for some kernels."""

        def some(lo: int, hi: int) -> None:
            for i in numbers[lo:hi].tolist():
                judge(i, problem.kernel(i))
                step()

        work = np.arange(numbers.size + 1) * int(min(first.n_states**3, 1e12))
        pool.run(some, work, 0, numbers.size, pool.count(threads))

    def judge(i: int, kernel: Any) -> None:
        own = solve(i, kernel)
        best[i], values[:, i] = own.value, problem.values(kernel, x)
        if tried.size:
            others[:, i] = problem.candidates(kernel, own, actions)

    with showing(progress), counted("kernels", N + tried.size) as step:
        each(tried, solve)
        actions = np.unique(np.stack([optima[i].actions for i in tried]), axis=0) if tried.size else nominal.actions[:0]  # type: ignore[union-attr]
        others = np.empty((len(actions), N))
        each(np.arange(N), judge)
    known: list[Any] = optima
    optimal = np.stack([own.optimal for own in known])
    share = np.tensordot(w, optimal / np.maximum(optimal.sum(axis=-1, keepdims=True), 1), 1)
    reached = np.tensordot(w, np.stack([own.reached for own in known]), 1)
    least = min(_mean(table, w).min() for table in (values, others) if len(table))
    sign = -1.0 if first.maximise else 1.0
    return Sensitivity(
        names=("nominal",) if given is None else tuple(given), values=sign * values, best=sign * best, share=share, reached=reached,
        evpi=_above(least, w @ best), weights=w, labels=groups, policies=x, kernel_names=first.kernel_names, states=first.states,
        actions=first.actions, maximise=first.maximise, criterion=problem.criterion, notes=tuple(notes), problem=problem,
    )  # fmt: skip


def _posed(
    model: Any, given: Any, criterion: str | None, stages: int | None, final: Any, costs: Any, discount: Any
) -> Any:
    """The N problems, and the policies as arrays (P, …); None if there are none."""
    several = [] if given is None else list(given.values())
    plans = [own for own in several if is_plan(own)]
    if is_sequence(model) or plans or stages is not None:
        if criterion is not None:
            raise InputError("criterion: finitely many stages have none; leave it out")
        ends = [own for own in plans if isinstance(own, HorizonSolution)]
        T = length_of(model, plans[0] if plans else None) if stages is None else checks.whole("stages", stages, 1)
        if ends:
            final = ends[0].final if final is None else final
            costs = ends[0].costs if costs is None and not is_sequence(model) else costs
            discount = ends[0].discount if discount is None else discount
            for own in ends[1:]:
                if own.discount != ends[0].discount or not np.array_equal(own.final, ends[0].final):
                    raise InputError(
                        "policies: plans with other discounts or final values than the first one's: give discount=… and final=…"
                    )
        models = models_of(model, T, costs, discount)[1]
        problem: Any = Staged(models, final_of(models[-1], final))
        return problem, _checked(given, lambda own: policies_of(models, own))
    for option, value in (("final", final), ("costs", costs), ("discount", discount)):
        if value is not None:
            raise InputError(f"{option}: goes with stages=…, or a plan among the policies")
    check_model(model)
    seen, name = posed(model, criterion), named(model, criterion)
    small = seen.n_states <= DENSE and seen.available.size * seen.n_states <= fixed.ENTRIES
    return (Stationary if small else Large)(seen, name), _checked(given, seen.policy)


def _checked(given: Any, check: Any) -> Array | None:
    if given is None:
        return None
    found = []
    for name, own in given.items():
        try:
            found.append(check(own))
        except InputError as error:
            raise InputError(f"policies: {name!r}: {error}") from None
    return np.stack(found)


def _named(model: Any, policies: Any) -> dict[str, Any]:
    """Policies by name; one alone is called so. A mapping from states to actions is a policy."""
    states = getattr(model[0] if isinstance(model, Sequence) and model else model, "states", ())
    if not isinstance(policies, Mapping):
        return {"policy": policies}
    is_state = checks.lookup(states) if len(states) else {}
    plain = all(
        key in is_state
        and not isinstance(own, list | np.ndarray)
        and not hasattr(own, "policy")
        and not hasattr(own, "columns")
        for key, own in policies.items()
    )
    if policies and plain:
        return {"policy": policies}
    found = {str(name): own for name, own in policies.items()}
    if not found or len(found) < len(policies):
        twice = shown(repeated(str(name) for name in policies))
        raise InputError("policies: expected at least one" if not found else f"policies: two are called {twice}")
    return found


def _labels(model: Any, labels: Any) -> tuple[Any, ...]:
    """A label for each kernel."""
    if isinstance(labels, Mapping):
        for name in model.kernel_names:
            if name not in labels:
                raise InputError(f"labels: kernel {name!r} is missing")
        names = checks.lookup(model.kernel_names)
        for name in labels:
            checks.find(names, name, "labels", "kernel")
        labels = [labels[name] for name in model.kernel_names]
    found = labels.tolist() if hasattr(labels, "tolist") else labels
    if isinstance(found, str) or not isinstance(found, Sequence) or len(found) != model.n_kernels:
        raise InputError(f"labels: expected one for each of {count(model.n_kernels, 'kernel')}, got {shown(labels)}")
    for i, label in enumerate(found):
        if not isinstance(label, Hashable):
            raise InputError(
                f"labels: that of kernel {model.kernel_names[i]!r} is {shown(label)}; take texts or numbers"
            )
    return tuple(found)
