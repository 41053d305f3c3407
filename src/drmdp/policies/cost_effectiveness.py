"""Cost-effectiveness: costs and effects of the same policies under each kernel.

With weights w_i of N kernels, C[p, i] and E[p, i] are the expected cost and effect of policy p from
the start if kernel i is true. At a *threshold* k, what a unit of effect may cost, the net benefit
is k E − C, and

    acceptability[p] = Σ_i w_i [p has the greatest net benefit of those given under kernel i],

where equals share. Against a reference r the *incremental cost-effectiveness ratio* is (C̄_p −
C̄_r)/(Ē_p − Ē_r) of the weighted means. Kernels that are draws (`by="posterior"`, "bootstrap") make
this the probabilistic analysis of health economics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core.validation import find, lookup, numbers
from drmdp.errors import InputError, imported
from drmdp.policies.values import by_kernel
from drmdp.solvers.horizon.stages import is_sequence


@dataclass(frozen=True, eq=False)
class CostEffectiveness:
    """What policies cost and achieve under each kernel, mean over the start.

    Attributes
    ----------
    names : tuple of P texts
        What the policies are called.
    costs, effects : (P, N)
        Of each policy under each kernel.
    weights : (N,)
        Of the kernels.
    reference : int
        Number of the policy that others are compared with.
    """

    names: tuple[str, ...]
    costs: Array = field(repr=False)
    effects: Array = field(repr=False)
    weights: Array = field(repr=False)
    reference: int

    def acceptability(self, thresholds: ArrayLike) -> Array:
        """Weight of the kernels under which each policy has the greatest net benefit, (P, K).

        Parameters
        ----------
        thresholds : number or (K,)
            What a unit of effect may cost.
        """
        k = np.atleast_1d(numbers("thresholds", thresholds))
        benefit = k * self.effects[..., None] - self.costs[..., None]  # (P, N, K)
        most = benefit.max(axis=0)
        first = benefit >= most - 1e-9 * np.abs(most)
        return np.asarray(np.einsum("n,pnk->pk", self.weights, first / first.sum(axis=0)))

    def to_frame(self) -> Any:
        """A polars table with a row for each policy: mean cost and effect, what they are more than
        the reference's, and `icer`, the ratio of these.
        """
        means = {"cost": self.costs @ self.weights, "effect": self.effects @ self.weights}
        more = {f"more_{name}": values - values[self.reference] for name, values in means.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            icer = np.divide(more["more_cost"], more["more_effect"])
        columns = {"policy": list(self.names), **means, **more, "icer": icer}
        return imported("polars", "data").DataFrame(columns)


def cost_effectiveness(
    model: Any,
    policies: Mapping[str, Any],
    *,
    effects: ArrayLike = None,
    costs: ArrayLike = None,
    reference: str | None = None,
) -> CostEffectiveness:
    """What policies or plans cost and achieve under each kernel of a model, or of the models of
    stages.

    Parameters
    ----------
    model : Model, or a sequence of models
        With costs, to which `effects` are given, or with rewards, which are the effects, to which
        `costs` are given.
    policies : mapping from names
        What is compared: anything that `drmdp.evaluate` takes, plans included.
    effects, costs : (S, A), (S, A, S), of plans also (T, S, A) or (T, S, A, S), optional
        The other outcome, such as years of life.
    reference : str, optional
        Name of the policy that others are compared with; the first by default.

    Examples
    --------
    >>> import numpy as np, drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> running = np.ones((8, 2))
    >>> running[-1] = 0
    >>> rules = {"never repair": [0] * 8, "repair when worn": [0] * 4 + [1] * 4}
    >>> found = drmdp.policies.cost_effectiveness(model, rules, effects=running)
    >>> found.costs.shape, found.acceptability([0.0, 100.0]).sum(axis=0)
    ((2, 5), array([1., 1.]))
    """
    first = model[0] if is_sequence(model) else model
    name, outcome, spare = "effects", effects, costs
    if first.maximise:
        name, outcome, spare = "costs", costs, effects
    if outcome is None or spare is not None or not isinstance(policies, Mapping) or not policies:
        has = "rewards, which are the effects" if first.maximise else "costs"
        expected = "a mapping from names to policies"
        raise InputError(f"expected {expected} and, as the model has {has}, `{name}` alone")
    names, sign = tuple(map(str, policies)), -1.0 if first.maximise else 1.0

    def under(**outcome: Any) -> Array:
        # (P, N, [T + 1,] S)
        values = np.stack([by_kernel(model, policy, **outcome) for policy in policies.values()])
        return np.asarray((values[:, :, 0] if values.ndim == 4 else values) @ first.initial)

    main = under()
    other = sign * under(rewards=sign * numbers(name, outcome))  # costs: the other sign
    paid, achieved = (other, main) if first.maximise else (main, other)
    chosen = 0 if reference is None else find(lookup(names), reference, "reference", "policy")
    return CostEffectiveness(names, paid, achieved, first.weights, chosen)
