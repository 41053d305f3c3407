"""The result of `drmdp.sensitivity`: policies under each kernel, beside the best of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.core import validation as checks
from drmdp.core.compact import DENSE
from drmdp.errors import InputError, brief, clean, imported, shown
from drmdp.policies.kernel_problems import ROUNDING, TIE, Large
from drmdp.policies.single_kernels import noun_of
from drmdp.solution import rows as tables
from drmdp.ui.text import amount, count, measured

TABLES = ("kernels", "policies", "actions")
LEVELS = (0.05, 0.5, 0.95)


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
        return mean_over(self.values, self.weights)

    @property
    def mean_regret(self) -> Array:
        """Weighted mean of the regret, (P,)."""
        return mean_over(self.regret, self.weights)

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
        apart = sum(mean_over(self._costs[:, i], self.weights[i]).min() for i in parts)
        return exceeds(mean_over(self._costs, self.weights).min(), apart)

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
        return np.stack([_quantiles(row, self.weights, levels) for row in self.values])

    def tornado(self, by: str = "state", policy: str | int = 0) -> Tornado:
        """The value of a policy with one part of the mean kernel replaced at a time.

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
        p, problem = checks.integer("policy", p, 0, len(self.names) - 1), self.problem
        x = self.policies[p]
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
            parts = {name: kernels for name, kernels in groups.items() if w[kernels].any()}
            moved = np.tile(self.values[p], (len(parts), 1))
        else:
            raise InputError(f"by: expected 'state', 'kernel' or 'label', got {shown(by)}")
        rows = zip(moved, parts.values(), strict=True)
        low, high = np.array([_quantiles(row[i], w[i], (0.05, 0.95)) for row, i in rows]).T
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
        """The noun of values: cost or reward, of what."""
        noun = measured(self.criterion, "reward" if self.maximise else "cost")
        return f"{noun} over {count(len(self.share), 'stage')}" if self.share.ndim == 3 else noun

    def facts(self) -> dict[str, str]:
        """The figures in words, by policy and subject."""
        noun, lines, several = noun_of(self.kernel_names), dict[str, str](), len(self.names) > 1
        for p, (low, high) in enumerate(self.quantiles((0.05, 0.95))):
            worst = self.values[p, i := self.worst[p]]
            where = f"{'' if noun == 'draw' else 'kernel '}{self.kernel_names[i]}"
            used = self.values[p, self.weights > 0]
            which = "90 % of the" if used.min() < low or high < used.max() else f"all {used.size:,}"
            line = f"{amount(self.mean[p])} on average, {amount(low)} … {amount(high)} under "
            line += f"{which} {noun}s, worst {amount(worst)} ({where})"
            line += f"; on average {amount(self.mean_regret[p])} worse than the optimum"
            line += f"; best of these under {self.acceptability[p]:.1%}" if several else ""
            lines[self.names[p]] = line
        mean = float(mean_over(self.best, self.weights))
        lines["Optimum"] = f"{amount(mean)} on average, if the {noun} were known each time"
        share = self.share.reshape(-1, self.share.shape[-1]).max(axis=1)
        part, live = int((share > 1 - TIE).sum()), int((share > 0).sum())
        lines["Actions"] = f"one alone is best under every {noun} in {part:,} of {live:,} states"
        lines["Actions"] += " and stages" if self.share.ndim == 3 else ""
        known = f"knowing the {noun} before deciding is worth"
        lines["EVPI"] = f"{known} at most {amount(self.evpi)} on average"
        if several:
            label = "" if self.labels is None else f", knowing its label {amount(self.evppi)}"
            worth = f"{known} {amount(self.evpi_given)} to whoever chooses among these policies"
            more = "; that is more, for without knowing they do worse than others would"
            lines["Of these"] = worth + (more if self.evpi_given > self.evpi else "") + label
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
    groups: dict[Any, list[int]] = {}
    for i, label in enumerate(labels):
        groups.setdefault(label, []).append(i)
    return groups


def _quantiles(values: Array, weights: Array, levels: ArrayLike) -> Array:
    shares = checks.numbers("levels", levels)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise InputError(f"levels: expected numbers between 0 and 1, got {shown(levels)}")
    order = np.argsort(values, kind="stable")
    order = order[weights[order] > 0]
    sums = np.cumsum(weights[order])
    at = np.searchsorted(sums, shares * sums[-1] * (1 - 1e-12))
    return np.asarray(values[order[at]])


def mean_over(values: Array, weights: Array) -> Array:
    """Weighted mean over the last axis; values of weight 0 may be infinite."""
    return np.asarray(np.where(weights > 0, values, 0.0) @ weights)


def exceeds(high: float, low: float) -> float:
    """Difference of two numbers; 0 where the first is less, or they differ by rounding."""
    gain = float(high) - float(low)
    return 0.0 if gain <= ROUNDING * abs(low) else gain
