"""Sensitivity to which kernel is true: policies, and the best one, under each kernel alone.

Costs; rewards are mirrored. With weights w_i, v[p, i] is what policy p costs from the start if
kernel i is true, best[i] the least that any policy costs then, regret = v − best ≥ 0, and

    acceptability[p] = Σ_i w_i [p is best of those given],    share[s, a] = Σ_i w_i [a is optimal],

where equals (`kernel_problems.TIE`) share. Knowing the kernel before deciding is worth on average
the **expected value of perfect information**

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

from collections.abc import Mapping
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.core import threads as pool
from drmdp.core import validation as checks
from drmdp.core.compact import DENSE
from drmdp.core.random import Seed, generator
from drmdp.criteria import named, posed
from drmdp.errors import InputError, refuse_given
from drmdp.model import check_model
from drmdp.policies import fixed_kernel as fixed
from drmdp.policies.kernel_problems import Large, Optimum, Staged, Stationary
from drmdp.policies.sensitivity_result import Sensitivity, exceeds, mean_over, members
from drmdp.solution import HorizonSolution
from drmdp.solvers.horizon import stages as horizon
from drmdp.ui.progress import counted, showing
from drmdp.ui.text import count

CANDIDATES, WORK, FEW = 100, 3e11, 20
"""Optima that are candidates at most, operations beyond which none are, and draws that are few."""
ALONE = "the model has one kernel: there is nothing to compare, and EVPI says nothing"
"""What there is to say of a model with one kernel of positive weight."""
DESCRIBED = ("weights", "kernel_names", "states", "actions", "maximise")


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
    if policies is not None and not isinstance(policies, Mapping):
        policies = {"policy": policies}
    ends = {"final": final, "costs": costs, "discount": discount}
    problem, x = _posed(model, policies, criterion, stages, ends)
    first, notes = problem.model, list[str]()
    N, w, used = first.n_kernels, first.weights, np.flatnonzero(first.weights > 0)
    groups = None if labels is None else tuple(labels)
    if groups is not None:
        if len(groups) != N:
            raise InputError(f"labels: expected one for each of {N:,} kernels, got {len(groups):,}")
        few = min(map(len, members([groups[i] for i in used]).values()))
        note = f"a label has {count(few, 'kernel')}; of fewer than {FEW} draws it is too high"
        notes += [f"evppi: {note}"] if few < FEW else []
    tried = _candidates(used, problem.work, seed, notes)
    nominal = problem.optimum(problem.kernel(None), None)
    if x is None:
        x = np.where(first.terminal[:, None], 0.0, np.eye(first.n_actions)[nominal.actions])[None]
    optima, values = dict[int, Optimum](), np.empty((len(x), N))

    def solve(i: int, kernel: Any) -> None:
        name = f"kernel {first.kernel_names[i]!r}"
        optima[i] = optima.get(i) or problem.optimum(kernel, nominal.actions, name)

    def judge(i: int, kernel: Any) -> None:
        solve(i, kernel)
        values[:, i] = problem.values(kernel, x)
        others[:, i] = problem.candidates(kernel, optima[i], actions) if tried.size else 0.0

    def each(numbers: IntArray, do: Any) -> None:
        def part(lo: int, hi: int) -> None:
            for i in numbers[lo:hi].tolist():
                do(i, problem.kernel(i))
                step()

        work = np.arange(numbers.size + 1) * min(first.n_states**3, 10**9)
        pool.run(part, work, 0, numbers.size, pool.count(threads))

    with showing(progress), counted("kernels", N + tried.size) as step:
        each(tried, solve)
        actions = tried
        if tried.size:
            actions = np.unique([optima[i].actions for i in tried.tolist()], axis=0)
        others = np.empty((len(actions), N))
        each(np.arange(N), judge)
    best = np.array([optima[i].value for i in range(N)])
    optimal = np.stack([optima[i].optimal for i in range(N)])
    equal = optimal / np.maximum(optimal.sum(axis=-1, keepdims=True), 1)
    least, sign = mean_over(np.vstack([values, others]), w).min(), -1.0 if first.maximise else 1.0
    return Sensitivity(
        names=("nominal",) if policies is None else tuple(map(str, policies)),
        values=sign * values,
        best=sign * best,
        share=np.minimum(np.tensordot(w, equal, 1), 1.0),
        reached=np.minimum(np.tensordot(w, [optima[i].reached for i in range(N)], 1), 1.0),
        evpi=exceeds(least, w @ best),
        labels=groups,
        policies=x,
        criterion=problem.criterion,
        notes=tuple(notes),
        problem=problem,
        **{name: getattr(first, name) for name in DESCRIBED},
    )


def _candidates(used: IntArray, work: float, seed: Seed, notes: list[str]) -> IntArray:
    """Kernels whose optima are candidates for `evpi`."""
    if used.size == 1:
        notes.append(f"{ALONE}; drmdp.estimate makes more with by='posterior', n_kernels=200")
    if used.size * work > WORK:
        notes.append("evpi: only the policies given count, for all optima would take too long")
        return used[:0]
    if used.size <= CANDIDATES:
        return used
    notes.append(f"evpi: beside the policies given, {CANDIDATES} of {used.size:,} optima count")
    return np.sort(generator(seed, "sensitivity").choice(used, CANDIDATES, replace=False))


def _posed(
    model: Any, policies: Any, criterion: Any, stages: int | None, ends: dict[str, Any]
) -> Any:
    """The N problems, and the policies."""
    plans = [policy for policy in (policies or {}).values() if horizon.is_plan(policy)]
    if not (horizon.is_sequence(model) or plans or stages is not None):
        refuse_given(ends, "goes with stages=…, or with a plan among the policies")
        check_model(model)
        model, name = posed(model, criterion), named(model, criterion)
        small = model.n_states <= DENSE and model.available.size * model.n_states <= fixed.ENTRIES
        return (Stationary if small else Large)(model, name), _checked(policies, model.policy)
    if criterion is not None:
        raise InputError("criterion: finitely many stages have none; leave it out")
    T = horizon.length_of(model, plans[0] if plans else None) if stages is None else stages
    solved = [plan for plan in plans if isinstance(plan, HorizonSolution)]
    solved = [plan for plan in solved if plan.noun != "probability"]  # that has no costs
    for name in ends if solved else ():
        if ends[name] is None and not (name == "costs" and horizon.is_sequence(model)):
            ends[name] = getattr(solved[0], name)
            if not all(np.array_equal(getattr(plan, name), ends[name]) for plan in solved):
                raise InputError(f"policies: the plans have different {name}; say which, {name}=…")
    T = checks.integer("stages", T, 1)
    models = horizon.models_of(model, T, ends["costs"], ends["discount"])[1]
    problem = Staged(models, horizon.final_of(models[-1], ends["final"]))
    return problem, _checked(policies, lambda policy: horizon.policies_of(models, policy))


def _checked(policies: Any, check: Any) -> Array | None:
    """Policies as an array (P, …); None if there are none."""
    if policies is None:
        return None
    arrays = []
    for name, policy in policies.items():
        with checks.placed(f"policies: {name!r}"):
            arrays.append(check(policy))
    if not arrays:
        raise InputError("policies: expected at least one, or None for the nominal one, got none")
    return np.stack(arrays)
