"""Prices of doubt: what a little more, or a little less, of a radius costs.

    F_s(v; θ_s) = min_x max_{y ∈ U_s(θ_s)} Σ_a x_a (c_a + λ y_a·v),        V = F(V; θ),

    d(μ·V)/dθ_s = o(s) ∂F_s/∂θ_s,        o = (I − λ Pᵀ)⁻¹ μ,

o the visits of the pair (policy, nature), whose chain is P, from the start μ. *Proof.* U_s(θ) is
{C ≤ θ} with C convex, so that the largest value of a linear function over it is concave and
nondecreasing in θ, and so is the least of such functions over x. Where the saddle point is unique,
∂F/∂V = λP (envelope theorem), and dV = (I − λP)⁻¹ ∂F/∂θ dθ (implicit functions). ∎

* Budgets of pairs: F_s = min_a Q_sa(θ_sa). One sweep has all Q, and what a single pair changes is
  min(Q_sa', min_{b≠a} Q_sb) − F_s: nothing for actions that are not played, nor, to the right, for
  those that tie.
* Differences of F to θ ± h bracket its derivatives, forward ≤ right ≤ left ≤ backward, against an
  adversarial nature. h = 1e-5 θ, or at least a distance of 1e-8 (a divergence of 1e-12).
* A total has λ = 1. An average has π = ε (I − (1 − ε) Pᵀ)⁻¹ μ, ε = 1e-8, the shares of time.
  Stage t of a horizon has o_{t+1} = λ P_tᵀ o_t, o_0 = μ. States that never reach a target lead
  nowhere else: their rows are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.core import levels
from drmdp.core.compact import MeanKernel, rows_of
from drmdp.core.signs import inward, outward
from drmdp.criteria import newton_systems
from drmdp.errors import InputError
from drmdp.io.files import require
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.model.rates import at_rate
from drmdp.operators.build import DEFAULT_BACKEND, build
from drmdp.policies.values import known_model, pair_values
from drmdp.sets import AmbiguitySet
from drmdp.solution import HorizonSolution
from drmdp.solution.results import reached

STEP = 1e-5
"""Of a difference, relative to the radius."""
LEAST = {1: 1e-8, 2: 1e-12}
"""The least step, by the degree of the radius in distances."""
NOISE, ROOT = 1e-13, 10.0
"""Differences below, relative to the span of values, are rounding. At radius 0 of degree 2, those
that are so many times what a slope could make are a root's."""
SELDOM = 1e-14
"""Shares of the visits that are rounding."""
PATIENT = 1e-8
"""ε of an average."""
EXACT, ROUNDS, PRODUCTS = 1e-12, 30, 2000
"""What may be left of a linear system, how often it is corrected, and products for shares."""
WIDE, CLOSER = 0.1, "solve with more iterations or seconds, or another tolerance"
"""Gaps of a larger share of the scale tell too little."""


class Response:
    """One update at v, or that of a policy, as a function of the radii."""

    def __init__(self, model: Model, ambiguity: AmbiguitySet, v: Array, policy: Any = None) -> None:
        ambiguity.check_sized()
        self.model, self.ambiguity, self._v, self._policy = model, ambiguity, v, policy
        self.radii = ambiguity.radii(model)
        moving = float(np.ptp(model.cost_range)) if model.next_costs else 0.0
        self.span = model.discount * float(np.ptp(v)) + moving
        self._base, self._nature = self._sweep(self.radii)

    def _sweep(self, radii: Array) -> tuple[Array, Any]:
        """F − v of each state, or what each pair costs, and nature's answer."""
        model, v, S = self.model, self._v, self.model.n_states
        ambiguity = self.ambiguity.with_radius(radii).facing(self.ambiguity.nature)
        operator = build(model, ambiguity, DEFAULT_BACKEND)
        chosen = self._policy is None
        update = operator.update(v, 0, S) if chosen else operator.evaluate(v, self._policy, 0, S)
        nature: Any = update.nature
        if not ambiguity.by_pair:
            return (update.lower_step + update.upper_step) / 2, nature
        if isinstance(model, EventModel) and model.priced:  # kernels do not tell: a sweep an action
            rows = model.available * np.eye(model.n_actions)[:, None]
            steps = (operator.evaluate(v, row, 0, S) for row in rows)
            q = np.stack([v + (step.lower_step + step.upper_step) / 2 for step in steps], axis=1)
        else:
            kernel = MeanKernel(S, model.n_actions, nature.pairs)
            q = pair_values(model, kernel, v - levels.level(v, model), model.factor)
        return np.where(model.available, q, np.inf), nature

    def change(self, radii: Array) -> Array:
        """Change of F in its state if the radius of one state, or pair, alone is that."""
        base, (new, _) = self._base, self._sweep(radii)
        with np.errstate(invalid="ignore"):
            if base.ndim == 1:
                difference = new - base
            elif self._policy is not None:
                difference = self._policy * (new - base)
            else:
                first, best = base.min(axis=1, keepdims=True), base.argmin(axis=1)[:, None]
                chosen = np.arange(base.shape[1]) == best
                second = np.where(chosen, np.inf, base).min(axis=1, keepdims=True)
                difference = np.minimum(new, np.where(chosen, second, first)) - first
        known = np.abs(difference) > NOISE * self.span  # not where terminal or unavailable: NaN
        return np.where(known, difference, 0.0)

    def onward(self, policy: Array, share: Any = 1.0) -> Any:
        """Transposed chain of a policy and her answer, rows (S,) times a share; it has `@`."""
        each = self.model.discounts
        x = policy if each is None else policy * (each / self.model.discount)
        chain, S = self._nature.chain(np.ascontiguousarray(x)), policy.shape[0]
        scale = np.broadcast_to(np.asarray(share, dtype=np.float64), (S,))
        if isinstance(chain, np.ndarray):
            return np.ascontiguousarray((scale[:, None] * chain).T)
        if chain.prefix_length.size:  # rows that list all states
            require(16.0 * S * S, f"transitions between {S:,} states")
            matrix = sparse.csr_array(chain.dense())
        else:
            matrix = newton_systems.matrix_of(chain)
        return rows_of(sparse.csr_array((sparse.diags_array(scale) @ matrix).T))


Visited = tuple[Array, Response]
"""Visits (S,) from the start, and the update there."""


def responses(solution: Any, model: Any = None, ambiguity: Any = None) -> Iterator[Visited]:
    """Visits (S,) and the update of a solution, or of each stage of a plan.

    One that was loaded needs its model and set.
    """
    if isinstance(solution, HorizonSolution):
        yield from _stages(solution)
        return
    if solution.problem is not None:
        model, ambiguity = known_model(solution, None), solution.problem[1]
    elif model is None or ambiguity is None:
        cure = "solve with start=solution, which takes little"
        raise InputError(f"prices: a loaded solution holds neither its model nor its set; {cure}")
    else:
        model = known_model(solution, model)
        ambiguity = ambiguity.facing(solution.settings["nature"])
    value, share = solution.value, np.ones(model.n_states)
    if not solution.gap <= WIDE * solution.scale:
        raise InputError(f"prices: the certified gap, {solution.gap:.3g}, is too wide; {CLOSER}")
    long_run = solution.criterion == "average"
    if long_run:
        if solution.bias is None or not reached(solution):
            raise InputError("prices: the long-run average may differ between states")
        value, share = solution.bias, share * (1 - PATIENT)
    elif solution.criterion == "reach":
        share = np.where(np.abs(value) <= solution.upper - solution.lower, 0.0, 1.0)
    timed = at_rate(model, float(inward(model, solution.value).mean())) if long_run else model
    response = Response(timed, ambiguity, inward(model, value))
    onward, start = response.onward(np.asarray(solution.policy), share), model.initial
    visits = _shares(onward, start) if long_run else _visits(onward, model.discount, start)
    if long_run and model.sojourn is not None:  # per unit of time
        visits = visits / (visits @ (np.asarray(solution.policy) * model.sojourn).sum(axis=1))
    yield visits, response


def _shares(onward: Any, start: Array) -> Array:
    """Shares of the time: by products if a sparse chain mixes fast, else by elimination."""
    shares = np.asarray(start)
    for _ in range(0 if isinstance(onward, np.ndarray) else PRODUCTS):
        after = onward @ shares
        after = after / after.sum()
        if np.abs(after - shares).sum() <= EXACT:
            return np.asarray(after)
        shares = (shares + after) / 2
    return PATIENT * _visits(onward, 1.0, start)


def _visits(onward: Any, discount: float, start: Array) -> Array:
    """(I − λ Pᵀ)⁻¹ μ, corrected until nothing is left."""
    total, residual, before = np.zeros(start.size), np.asarray(start), np.inf
    for _ in range(ROUNDS):
        total = total + newton_systems.solve(onward, discount, residual)
        residual = start - total + discount * (onward @ total)
        size = float(np.abs(residual).sum())
        if not EXACT < size < before / 2:
            break
        before = size
    if not np.isfinite(total).all():
        raise InputError("prices: from some states the process never ends under nature's kernel")
    return np.where(total > SELDOM * total.sum(), total, 0.0)


def _stages(plan: HorizonSolution) -> Iterator[Visited]:
    natures = plan.natures
    if getattr(natures, "swept", None) is None:
        raise InputError("prices: a loaded plan holds neither models nor sets; make it again")
    if natures.reached:
        raise InputError(f"prices: stage {natures.reached - 1} was not reached: give it more time")
    visits, stages = np.asarray(plan.initial), natures.stages
    for t, (model, ambiguity) in enumerate(zip(stages.models, stages.sets, strict=True)):
        policy = None if natures.policy is None else plan.policy[t]
        response = Response(model, ambiguity, natures.swept[t], policy)
        yield visits, response
        visits = model.discount * (response.onward(plan.policy[t]) @ visits)


def less(solution: Any) -> Array:
    """`Solution.prices_less`: by one that shrinks; infinite, or 0, where it cannot."""
    saved, other = priced(solution, -1), solution.prices
    endless = np.where(other == 0, 0.0, np.copysign(np.inf, other))
    saved = np.where(np.isnan(saved), endless, saved)
    if solution.settings["nature"] == "adversarial":  # F is concave: only rounding says otherwise
        saved = np.where(np.abs(saved) < np.abs(other), other, saved)
    saved.setflags(write=False)
    return saved


def priced(solution: Any, side: int = +1) -> Array:
    """`Solution.prices`: derivative by a radius that grows, or (−1) shrinks."""
    prices: list[Array] = []
    for visits, response in responses(solution):
        slope = _slope(response, side)
        often = visits.reshape(-1, *[1] * (slope.ndim - 1))
        with np.errstate(invalid="ignore"):
            price = np.where((often == 0) | (slope == 0), 0.0, often * slope)
        prices.append(outward(response.model, price) + 0.0)
        if slope.ndim != prices[0].ndim:
            raise InputError(f"prices: stage 0 and stage {len(prices) - 1} differ in `rectangular`")
    array = np.stack(prices) if isinstance(solution, HorizonSolution) else prices[0]
    array.setflags(write=False)
    return array


def _slope(response: Response, side: int) -> Array:
    """Difference of F by the radius, (S,) or (S, A); NaN where that cannot be less."""
    ambiguity, radii = response.ambiguity, response.radii
    ground, level = getattr(ambiguity, "ground", None), getattr(ambiguity, "level", None)
    least = LEAST[ambiguity.degree] * (1.0 if ground is None else ground.largest)
    towards = side if level is None else -side  # the smaller a level, the more doubt
    new = radii + towards * np.maximum(STEP * radii, least)
    new = np.clip(new, 0.0, None if level is None else 1.0)
    step, change = new - radii, response.change(new)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(step == 0, 0.0 if side > 0 else np.nan, change / step)
    if side < 0 or ambiguity.degree < 2:
        return slope
    root = (radii == 0) & (np.abs(change) > ROOT * least * response.span)
    return np.where(root, np.copysign(np.inf, change), slope)
