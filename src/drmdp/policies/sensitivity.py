"""How much it matters which kernel is true: policies, and the best one, under each kernel alone.

Costs; rewards are mirrored. With weights w_i, v[p, i] is what policy p costs from the start if
kernel i is true, best[i] the least that any policy costs then, regret = v − best ≥ 0, and

    acceptability[p] = Σ_i w_i [p is best of those given],    share[s, a] = Σ_i w_i [a is optimal],

where equals (`ordinary.TIE`) share. Knowing the kernel before deciding is worth on average the
**expected value of perfect information**

    min_π Σ_i w_i v[π, i] − Σ_i w_i best[i]  ≤  evpi = min_p Σ_i w_i v[p, i] − Σ_i w_i best[i],

p among the policies given and the optima of the kernels. The minimum over all stationary policies π
is a hard problem (a multi-model MDP), hence *at most*; whoever learns while acting has less to gain
still. To whoever chooses among the policies given, knowing the kernel, or its label g, is worth

    evpi_given = min_p Σ_i w_i v[p, i] − Σ_i w_i min_p v[p, i],
    evppi      = min_p Σ_i w_i v[p, i] − Σ_g min_p Σ_{i∈g} w_i v[p, i],

0 ≤ evppi ≤ evpi_given ≤ min_p Σ_i w_i regret[p, i]. `evpi_given` may exceed `evpi`: where an
optimum of some kernel is better on average than all policies given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.core import threads as pool
from drmdp.core import validation as checks
from drmdp.core.compact import DENSE
from drmdp.core.progress import counted, showing
from drmdp.core.random import Seed, generator
from drmdp.core.text import amount, count, measured
from drmdp.criteria import named, posed
from drmdp.errors import InputError, brief, clean, imported, shown
from drmdp.model import check_model
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.ordinary import ROUNDING, TIE, Large, Optimum, Staged, Stationary
from drmdp.policies.single import noun_of
from drmdp.solution import HorizonSolution, tables
from drmdp.solvers.horizon import stages as horizon

CANDIDATES, WORK, FEW = 100, 3e11, 20
"""Optima that are candidates at most, operations beyond which none are, and draws that are few."""
TABLES = ("kernels", "policies", "actions")
LEVELS = (0.05, 0.5, 0.95)
SEEN = ("weights", "kernel_names", "states", "actions", "maximise")


@dataclass(frozen=True, eq=False)
class Tornado:
    """Value of a policy if one part of the mean kernel is replaced, what matters most first.

    Attributes
    ----------
    base : float
        Under the mean kernel.
    names : sequence
        The parts: states, kernels or labels.
    low, high : (K,)
        Weighted 5 % and 95 % quantiles over the kernels that replace it; of one kernel its value.
    """

    base: float
    names: Sequence[Any]
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Policies under each kernel, beside the optimum of each; over the start, in the user's sign.

    Attributes
    ----------
    names : sequence of P texts
        What the policies are called.
    values : (P, N)
        Expected cost (reward) of each policy under each kernel.
    best : (N,)
        The optimum of each kernel.
    share : (S, A)
        Weight of the kernels whose optimum plays the action, 0 where all ends. Of plans (T, S, A).
    reached : (S,)
        Weight of the kernels under whose optimum the start leads to the state. Of plans (T, S).
    evpi : float
        What knowing the kernel before deciding is worth on average, at most.
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
    problem : object
        The N problems, for `tornado`.
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
    def regret(self) -> Array:
        """What each policy costs more (earns less) than the optimum of each kernel, (P, N)."""
        return np.maximum(self._costs - (-self.best if self.maximise else self.best), 0.0)

    @property
    def _costs(self) -> Array:
        return -self.values if self.maximise else self.values

    @property
    def mean(self) -> Array:
        """Weighted mean of the values over the kernels, (P,)."""
        return _mean(self.values, self.weights)

    @property
    def mean_regret(self) -> Array:
        """Weighted mean of the regret, (P,)."""
        return _mean(self.regret, self.weights)

    @property
    def worst(self) -> IntArray:
        """Number of the kernel of positive weight that is worst for each policy, (P,)."""
        return np.asarray(np.where(self.weights > 0, self._costs, -np.inf).argmax(axis=1))

    @property
    def first(self) -> Array:
        """Which policy is the best of those given under each kernel, equals sharing, (P, N)."""
        least = self._costs.min(axis=0)
        equal = self._costs <= least + TIE * np.abs(least)
        return np.asarray(equal / equal.sum(axis=0))

    @property
    def acceptability(self) -> Array:
        """Weight of the kernels under which a policy is the best of those given, (P,)."""
        return self.first @ self.weights

    @property
    def evpi_given(self) -> float:
        """What knowing the kernel is worth to whoever chooses among the policies given."""
        return self._worth(range(self.weights.size))

    @property
    def evppi(self) -> float:
        """What knowing the label is worth to whoever chooses among the policies given."""
        return self._worth(self._labels)

    def _worth(self, groups: Sequence[Any]) -> float:
        parts = members(groups).values()
        apart = sum(_mean(self._costs[:, own], self.weights[own]).min() for own in parts)
        return _above(_mean(self._costs, self.weights).min(), apart)

    @property
    def _labels(self) -> Sequence[Any]:
        if self.labels is None:
            raise InputError("labels: the kernels have none; give drmdp.sensitivity labels=…")
        return self.labels

    def quantiles(self, levels: ArrayLike = LEVELS) -> Array:
        """Weighted quantiles over the kernels, (P, L): least values that such a share is not above.

        Parameters
        ----------
        levels : (L,)
            Between 0 and 1.
        """
        return np.stack([_quantiles(own, self.weights, levels) for own in self.values])

    def tornado(self, by: str = "state", policy: str | int = 0) -> Tornado:
        """What moves the value of a policy most, one part of the mean kernel replaced at a time.

        Parameters
        ----------
        by : "state", "kernel" or "label"
            Replace the rows of one state by those of each kernel; or all rows by those of one
            kernel, or of each kernel with one label.
        policy : str or int
            Name or number of the policy; the first one by default.
        """
        lookup, w, sign = checks.lookup(self.names), self.weights, -1.0 if self.maximise else 1.0
        p = checks.find(lookup, policy, "policy", "policy") if isinstance(policy, str) else policy
        x, problem = self.policies[checks.whole("policy", p, 0, len(self.names) - 1)], self.problem
        base = sign * float(problem.values(problem.kernel(None), x[None])[0])
        if not np.isfinite(base):
            raise InputError("policy: under the mean kernel, to be changed, it never ends")
        if by == "state":
            if isinstance(problem, Large):
                raise InputError(f"by: rows are replaced in models of up to {DENSE:,} states")
            moved = sign * problem.by_state(x)
            parts: dict[Any, Any] = dict.fromkeys(range(len(self.states)), w > 0)
        elif by in ("kernel", "label"):
            groups = members(self._labels if by == "label" else self.kernel_names)
            parts = {name: own for name, own in groups.items() if w[own].any()}
            moved = np.tile(self.values[p], (len(parts), 1))
        else:
            raise InputError(f"by: expected 'state', 'kernel' or 'label', got {shown(by)}")
        rows = zip(moved, parts.values(), strict=True)
        low, high = np.array([_quantiles(row[own], w[own], (0.05, 0.95)) for row, own in rows]).T
        order = np.argsort(np.minimum(low, base) - np.maximum(high, base), kind="stable")
        names = self.states if by == "state" else list(parts)
        return Tornado(base, [names[k] for k in order], low[order], high[order])

    def to_frame(self, table: str = "kernels") -> Any:
        """A polars table.

        Parameters
        ----------
        table : "kernels", "policies" or "actions"
            Each policy under each kernel; each over all kernels; how often actions are optimal.
        """
        pl = imported("polars", "data")
        P, N = self.values.shape
        names = tables.named_column(pl, "kernel_names", self.kernel_names, np.arange(N))
        if table == "actions":
            frame = tables.frame(self.states, self.actions, self.share, {"reached": self.reached})
            return frame.rename({"probability": "share"})
        if table == "policies":
            columns = {"policy": self.names, "mean": self.mean}
            columns |= dict(zip(("q05", "median", "q95"), self.quantiles().T, strict=True))
            columns |= {"worst": self.values[range(P), self.worst], "kernel": names[self.worst]}
            columns |= {"mean_regret": self.mean_regret, "acceptability": self.acceptability}
        elif table == "kernels":
            columns = {"policy": np.repeat(self.names, N), "kernel": pl.concat([names] * P)}
            columns |= {} if self.labels is None else {"label": [*map(str, self.labels)] * P}
            columns |= {"weight": np.tile(self.weights, P), "value": self.values.ravel()}
            columns |= {"best": np.tile(self.best, P), "regret": self.regret.ravel()}
        else:
            raise InputError(f"table: expected one of {', '.join(TABLES)}, got {shown(table)}")
        return pl.DataFrame(columns)

    @property
    def noun(self) -> str:
        """What values are."""
        noun = measured(self.criterion, "reward" if self.maximise else "cost")
        return f"{noun} over {count(len(self.share), 'stage')}" if self.share.ndim == 3 else noun

    def facts(self) -> dict[str, str]:
        """What there is to say, in words, by policy and subject."""
        noun, lines, several = noun_of(self.kernel_names), dict[str, str](), len(self.names) > 1
        for p, (low, high) in enumerate(self.quantiles((0.05, 0.95))):
            worst = self.values[p, i := self.worst[p]]
            where = f"{'' if noun == 'draw' else 'kernel '}{self.kernel_names[i]}"
            told = f"{amount(self.mean[p])} on average, {amount(low)} … {amount(high)} under 90 % "
            told += f"of the {noun}s, worst {amount(worst)} ({where})"
            told += f"; on average {amount(self.mean_regret[p])} worse than the optimum"
            told += f"; best of these under {self.acceptability[p]:.1%}" if several else ""
            lines[self.names[p]] = told
        mean = float(_mean(self.best, self.weights))
        lines["Optimum"] = f"{amount(mean)} on average, if the {noun} were known each time"
        share = self.share.reshape(-1, self.share.shape[-1]).max(axis=1)
        part, live = int((share > 1 - TIE).sum()), int((share > 0).sum())
        lines["Actions"] = f"one alone is best under every {noun} in {part:,} of {live:,} states"
        lines["Actions"] += " and stages" if self.share.ndim == 3 else ""
        known = f"knowing the {noun} before deciding is worth"
        lines["EVPI"] = f"{known} at most {amount(self.evpi)} on average"
        if several:
            label = "" if self.labels is None else f", knowing its label {amount(self.evppi)}"
            told = f"{known} {amount(self.evpi_given)} to whoever chooses among these policies"
            lines["Of these"] = told + label
        return lines

    def __repr__(self) -> str:
        P, N = self.values.shape
        noun = f"{count(N, noun_of(self.kernel_names))}, {self.noun}"
        facts = [*self.facts().items(), *(("note", note) for note in self.notes)]
        width = max(len(brief(name, 24)) for name, _ in facts)
        lines = [f"  {brief(name, 24):{width}}  {brief(text, 1000)}" for name, text in facts]
        head = f"Sensitivity: {P:,} {'policy' if P == 1 else 'policies'} under {noun}"
        return clean("\n".join([head, *lines]))


def members(labels: Sequence[Any]) -> dict[Any, list[int]]:
    """Numbers by label, in the order met."""
    found: dict[Any, list[int]] = {}
    for i, label in enumerate(labels):
        found.setdefault(label, []).append(i)
    return found


def _quantiles(values: Array, weights: Array, levels: ArrayLike) -> Array:
    asked = checks.numbers("levels", levels)
    if not ((asked >= 0) & (asked <= 1)).all():
        raise InputError(f"levels: expected numbers between 0 and 1, got {shown(levels)}")
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0]
    sums = np.cumsum(weights[order])
    at = np.searchsorted(sums, asked * sums[-1] * (1 - 1e-12))
    return np.asarray(values[order[at]])


def _mean(values: Array, weights: Array) -> Array:
    """Weighted mean over the last axis; what weighs nothing may be infinite."""
    return np.asarray(np.where(weights > 0, values, 0.0) @ weights)


def _above(high: float, low: float) -> float:
    """By how much a number exceeds another; 0 for what is rounding."""
    gain = float(high) - float(low)
    return 0.0 if gain <= ROUNDING * abs(low) else gain


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
    """Judge policies under each of the N kernels alone, beside the optimum of each.

    Kernels are taken for what may be true, and weights for their probabilities: draws of a
    posterior, sources, years. Kernels of weight 0 are judged, but count for nothing. Each of the N
    ordinary problems is solved from the optimum of the mean kernel on, so that results do not
    depend on the number of threads.

    Parameters
    ----------
    model : Model, or a sequence of T models
        What is known; of each stage, the first one first. Kernel i is then that of every stage.
    policies : mapping from names to policies, or a policy, optional
        What `drmdp.evaluate` takes, plans included; by default what is best for the mean kernel.
    labels : sequence of N labels, optional
        What kernels have in common: a source, a value of a parameter.
    criterion : optional
        As for `drmdp.solve`.
    stages, final, costs, discount : optional
        As for `drmdp.finite_horizon`; by default those of a `HorizonSolution` among the policies.
    seed : int or Generator
        Of the optima that are candidates for `evpi`, where the kernels are more than 100.
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
    given = policies if policies is None or isinstance(policies, Mapping) else {"policy": policies}
    ends = {"final": final, "costs": costs, "discount": discount}
    problem, x = _posed(model, given, criterion, stages, ends)
    seen, notes = problem.model, list[str]()
    N, w, used = seen.n_kernels, seen.weights, np.flatnonzero(seen.weights > 0)
    groups = None if labels is None else tuple(labels)
    if groups is not None:
        if len(groups) != N:
            raise InputError(f"labels: expected one for each of {N:,} kernels, got {len(groups):,}")
        few = min(map(len, members([groups[i] for i in used]).values()))
        told = f"a label has {count(few, 'kernel')}; of fewer than {FEW} draws it is too high"
        notes += [f"evppi: {told}"] if few < FEW else []
    tried = used
    if used.size * problem.work > WORK:
        tried = used[:0]
        notes.append("evpi: only the policies given count, for all optima would take too long")
    elif used.size > CANDIDATES:
        tried = np.sort(generator(seed, "sensitivity").choice(used, CANDIDATES, replace=False))
        notes.append(f"evpi: beside the policies given, {CANDIDATES} of {used.size:,} optima count")
    nominal = problem.optimum(problem.kernel(None), None)
    if x is None:
        x = np.where(seen.terminal[:, None], 0.0, np.eye(seen.n_actions)[nominal.actions])[None]
    optima, values = dict[int, Optimum](), np.empty((len(x), N))

    def solve(i: int, kernel: Any) -> None:
        name = f"kernel {seen.kernel_names[i]!r}"
        optima[i] = optima.get(i) or problem.optimum(kernel, nominal.actions, name)

    def judge(i: int, kernel: Any) -> None:
        solve(i, kernel)
        values[:, i] = problem.values(kernel, x)
        others[:, i] = problem.candidates(kernel, optima[i], actions) if tried.size else 0.0

    def each(numbers: IntArray, do: Any) -> None:
        def some(lo: int, hi: int) -> None:
            for i in numbers[lo:hi].tolist():
                do(i, problem.kernel(i))
                step()

        work = np.arange(numbers.size + 1) * min(seen.n_states**3, 10**9)
        pool.run(some, work, 0, numbers.size, pool.count(threads))

    with showing(progress), counted("kernels", N + tried.size) as step:
        each(tried, solve)
        actions = np.unique([optima[i].actions for i in tried.tolist()], axis=0) if tried.size else tried
        others = np.empty((len(actions), N))
        each(np.arange(N), judge)
    best = np.array([optima[i].value for i in range(N)])
    optimal = np.stack([optima[i].optimal for i in range(N)])
    equal = optimal / np.maximum(optimal.sum(axis=-1, keepdims=True), 1)
    least, sign = _mean(np.vstack([values, others]), w).min(), -1.0 if seen.maximise else 1.0
    return Sensitivity(
        names=("nominal",) if given is None else tuple(map(str, given)),
        values=sign * values,
        best=sign * best,
        share=np.minimum(np.tensordot(w, equal, 1), 1.0),
        reached=np.minimum(np.tensordot(w, [optima[i].reached for i in range(N)], 1), 1.0),
        evpi=_above(least, w @ best),
        labels=groups,
        policies=x,
        criterion=problem.criterion,
        notes=tuple(notes),
        problem=problem,
        **{name: getattr(seen, name) for name in SEEN},
    )


def _posed(model: Any, given: Any, criterion: Any, stages: int | None, ends: dict[str, Any]) -> Any:
    """The N problems, and the policies."""
    plans = [own for own in (given or {}).values() if horizon.is_plan(own)]
    if not (horizon.is_sequence(model) or plans or stages is not None):
        for name, value in ends.items():
            if value is not None:
                raise InputError(f"{name}: goes with stages=…, or with a plan among the policies")
        check_model(model)
        seen, name = posed(model, criterion), named(model, criterion)
        small = seen.n_states <= DENSE and seen.available.size * seen.n_states <= fixed.ENTRIES
        return (Stationary if small else Large)(seen, name), _checked(given, seen.policy)
    if criterion is not None:
        raise InputError("criterion: finitely many stages have none; leave it out")
    T = horizon.length_of(model, plans[0] if plans else None) if stages is None else stages
    for name in ends:
        told = [getattr(own, name) for own in plans if isinstance(own, HorizonSolution)]
        if ends[name] is None and told and not (name == "costs" and horizon.is_sequence(model)):
            ends[name] = told[0]
            if not all(np.array_equal(own, told[0]) for own in told):
                raise InputError(f"policies: the plans have different {name}; say which, {name}=…")
    T = checks.whole("stages", T, 1)
    models = horizon.models_of(model, T, ends["costs"], ends["discount"])[1]
    problem = Staged(models, horizon.final_of(models[-1], ends["final"]))
    return problem, _checked(given, lambda own: horizon.policies_of(models, own))


def _checked(given: Any, check: Any) -> Array | None:
    """Policies as an array (P, …); None if there are none."""
    if given is None:
        return None
    found = []
    for name, own in given.items():
        try:
            found.append(check(own))
        except InputError as error:
            raise InputError(f"policies: {name!r}: {error}") from None
    if not found:
        raise InputError("policies: expected at least one, or None for the nominal one, got none")
    return np.stack(found)
