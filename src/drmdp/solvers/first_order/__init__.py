"""The first-order method of Grand-Clément and Kroer (Algorithm 1), corrected.

Epoch ℓ = 1, 2, … holds v and takes ℓ^q primal-dual steps (`drmdp.solvers.first_order.players`) on
the saddle problems of F(v), from where the last epoch ended. Step t since the beginning weighs t^p.
Then, with the epoch's averages x̄ and ȳ,

    v_s ← F^{x̄,ȳ}(v)_s = Σ_a x̄_a (c_a + λ ȳ_a·v),

and the answer is the average of all policies and kernels so far. The paper's theorem 1 bounds the
gap of Bellman's equation by O(T^−2/3) after T steps for q = 2; its remark 5 implies O(T^−q/(q+1)),
whatever p. Measured slopes are steeper (`drmdp_lab.bench.first_order`).

**Certificate.** At the end of some epochs the answer (x̄, ȳ) is bounded by its values: from above
by the worst-case value of x̄, policy iteration of nature with the exact operator, and from below by
the value of the best policy against ȳ, an ordinary MDP. ȳ is first pulled towards the mean of the
data by what the averaged distance, rounding included, exceeds the radius (`_pulled_share`). Where
the N kernels of ȳ are known, the claim holds a copy of them: the proof then measures a tuple
instead of searching for one. No program is solved on the way, and in the proof only without these
kernels. Weighted by the start distribution the gap is the paper's (DG): `stop="duality-gap"`. With
`check_every="auto"` the gap is forecast: the players' regrets, summed along the chain, times the
ratio (gap / forecast) of the last certificate. A certificate is computed when the forecast is below
the tolerance, or after 1.5 times the steps of the last one.

An iteration is one step in all states, as the paper counts; kernel passes count it once, Mirror
Prox twice.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from drmdp._typing import Array
from drmdp.certificate import PairClaim
from drmdp.certificate.dense import share_within
from drmdp.core.levels import EPS
from drmdp.core.validation import integer
from drmdp.core.vectors import dot
from drmdp.errors import InputError, unexpected
from drmdp.layout.layout import Layout, lay_out_all
from drmdp.model import Model
from drmdp.operators.nominal import NominalOperator
from drmdp.operators.operator import ENGINES, Update
from drmdp.solvers.first_order.players import PlayerTuple, WeightedAverage, power
from drmdp.solvers.problem import MethodSettings, MethodState, Problem, of_mean_kernel
from drmdp.solvers.stopping import RULES

OUTPUTS = ("average", "epoch", "last")
STEPS = ("primal-dual", "mirror-prox", "mirror-descent")
SETUPS = ("euclidean", "entropy", "entropy-nature", "entropy-both")
ORIGINS = ("zero", "nominal")
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "fast": {"epoch_power": 0, "step_ratio": "ball", "centre": True, "output": "last"}
    | {"check_every": "auto", "origin": "nominal"},
    "centred": {"centre": True},
    "last": {"output": "last"},
    "restart": {"output": "epoch"},
    "mirror-prox": {"steps": "mirror-prox"},
    "mirror-descent": {"steps": "mirror-descent"},
    "entropy": {"setup": "entropy"},
    "entropy-nature": {"setup": "entropy-nature"},
}
"""Settings by name: the paper's, the fastest, and the paper's with one thing changed."""
LEAN = 0.25
"""Share of the first policy that plays the least costs, with the nominal origin."""
PATIENCE = 16, 1.5
"""Automatic certificates: the steps after which the first is made in any case, and the factor from
one to the next.
"""
STEEPEST = 6
"""The largest power q: a tenth epoch has a million steps then."""
FLOOR = 0.1
"""No forecast is below this share of the tolerance."""
PRECISION = 0.01
"""Error of the values in a certificate, as a share of the last gap, while that is more than the
loop asks for.
"""


@dataclass
class EpochState(MethodState):
    """A point of the method within an epoch."""

    layout: Layout
    players: PlayerTuple
    answer: WeightedAverage  # policy, mean kernel, distance and, if asked for, all kernels
    epoch: WeightedAverage  # policy, stakes
    last: bool  # the answer is the last step
    number: int = 0  # of the epoch
    remaining: int = 0  # steps of the epoch
    steps: int = 0  # taken
    gap: float = np.inf  # at the last certificate
    trust: float = 1.0  # gap at the last certificate over its forecast
    next_check: float = PATIENCE[0]  # steps after which a certificate is computed in any case
    change: Array | None = None  # of v in the last epoch, the residual of records
    forecast: float = 0.0  # of the gap at the last certificate, 0 if there was none

    @property
    def kernels(self) -> Array | None:
        """All kernels of the answer, (N·nnz,), where they were averaged or the iterate holds
        them.
        """
        if len(self.answer.parts) > 3:
            return self.answer.parts[3]
        return self.players.kernels if self.last else None

    def swept(self, problem: Problem) -> MethodState:
        """The same with its claim."""
        self.update = _claim(problem, self)
        return self

    def learn(self, problem: Problem, weighted: bool) -> None:
        """Read the bounds of the last answer."""
        if self.update is None or problem.verdict is None:
            return
        bounds = problem.verdict.bounds
        self.gap = bounds.gap
        gap = dot(problem.model.initial, bounds.upper - bounds.lower) if weighted else self.gap
        self.trust = gap / self.forecast if self.forecast > 0 else 1.0


@dataclass(frozen=True)
class FirstOrder(MethodSettings):
    """Algorithm 1 of the paper; the defaults are the paper's, `FirstOrder.fast()` is the variant to
    use.

    The paper lets nature move mass to every state, Δ(S): `Wasserstein(…, support="all")`, which is
    not the default of a ball. Its balls are (ℓ1, 1), (ℓ2, 2), (ℓ∞, 1), and those of order ∞. It
    stops where (DG) ≤ ε/2: `stop="duality-gap"`, and `tol=ε/2` in `solve`.

    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(6), n_kernels=3)
    >>> ball = drmdp.Wasserstein(0.5, support="all")
    >>> paper = drmdp.FirstOrder(stop="duality-gap")
    >>> print(drmdp.solve(model, ball, paper, tol=0.5).status)
    solved

    Parameters
    ----------
    epoch_power, weight_power : float
        q and p: epoch ℓ has ℓ^q steps, step t weighs t^p.
    step_ratio : float or "ball"
        Multiplies the paper's step of the policy and divides nature's; "ball": balanced for the
        size of the ball.
    centre : bool
        Step sizes from v without its mean instead of from v: longer steps, which rows that sum to 1
        allow.
    output : "average", "epoch" or "last"
        The answer: the average of all steps, that of the current epoch with t counted from its
        beginning (a restart), or the last step.
    steps : "primal-dual", "mirror-prox" or "mirror-descent"
        Mirror Prox needs two projections a step and holds the iterate twice. Mirror Descent is
        slower; the paper's remark 2 says so.
    setup : "euclidean", "entropy", "entropy-nature" or "entropy-both"
        Proximal set-up: distances, or the relative entropy for the policy, nature's kernels (metric
        "linf", order inf only) or both.
    check_every : int or "auto"
        Epochs between certificates.
    origin : "zero" or "nominal"
        As in the paper, v = 0 (unless `solve` is given a start) and the uniform policy; or v after
        two sweeps with the mean kernel, and a policy that leans to the actions of least cost.
    keep_kernels : bool
        Average all N kernels too, N·A·S² numbers more, and return them as `Solution.kernels`; a
        mean kernel needs none of them. With the last step as the answer they are there anyway.
    backend : "exact" or "conic"
        Operator that evaluates the policy in certificates.
    stop : "certified" or "duality-gap"
        What the tolerance is compared with: the certified gap in every state, or its mean over the
        start, the paper's (DG).
    """

    epoch_power: float = 2
    weight_power: float = 1
    step_ratio: float | str = 1.0
    centre: bool = False
    output: str = "average"
    steps: str = "primal-dual"
    setup: str = "euclidean"
    check_every: int | str = 1
    origin: str = "zero"
    keep_kernels: bool = False
    max_iters: ClassVar[int] = 200_000

    def __post_init__(self) -> None:
        if self.check_every != "auto":
            integer("check_every", self.check_every, 1)
        if not isinstance(self.keep_kernels, bool):
            raise unexpected("keep_kernels", "True or False", self.keep_kernels)
        for name, least in (("epoch_power", 0), ("weight_power", 0), ("step_ratio", 1e-9)):
            value = getattr(self, name)
            if name == "step_ratio" and value == "ball":
                continue
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not number or not least <= value < np.inf:
                raise unexpected(name, f"a finite number of at least {least}", value)
        if self.epoch_power > STEEPEST:
            what = f"epoch ℓ has ℓ^q steps, so it is q, at most {STEEPEST}, not a number of epochs"
            raise InputError(f"epoch_power: {what}; got {self.epoch_power!r}")
        if self.stop in ("puterman", "paper"):
            need = "needs ‖F(v) − v‖, which the first-order method does not compute; the paper "
            need += "stops it by 'duality-gap'"
            raise InputError(f"stop: {self.stop!r} {need}")
        choices: dict[str, Collection[str]] = {"backend": ENGINES, "stop": RULES, "output": OUTPUTS}
        choices |= {"steps": STEPS, "setup": SETUPS, "origin": ORIGINS}
        for name, known in choices.items():
            if not isinstance(value := getattr(self, name), str) or value not in known:
                raise unexpected(name, f"one of {', '.join(known)}", value)

    @classmethod
    def fast(cls, **settings: Any) -> FirstOrder:
        """The fastest variant on every domain tried; `settings` override it.

        From the nominal origin, the last step is the answer, v moves after each one, and steps are
        centred and balanced for the ball. No theorem covers it; the certificate does.
        """
        return cls(**{**VARIANTS["fast"], **settings})

    def init(self, problem: Problem, value: Array | None) -> EpochState:
        """Start at `value` or the origin, and the data."""
        model, ambiguity, operator = problem.model, problem.operator.ambiguity, problem.operator
        assert ambiguity is not None
        assert problem.policy is None
        full = model.n_states * int(model.available.sum())
        if model.is_sparse and ambiguity.support == "all" and model.blocks.indices.size < full:
            N, A, S = int((model.weights > 0).sum()), model.n_actions, model.n_states
            size = N * A * S * S
            held = f"N·A·S² = {N}·{A}·{S}² = {size:.3g} numbers, {8 * size / 1e9:.3g} GB"
            rule = f'first-order with support "all" holds {held}, which a sparse model does not'
            raise InputError(f'{rule}: use support "observed" or another method')
        layout = lay_out_all(model, ambiguity)
        players = PlayerTuple(layout, ambiguity, self, operator.threads)
        origin = np.zeros(model.n_states)
        if self.origin == "nominal":
            nominal = of_mean_kernel(model)
            first = nominal.sweep(origin)
            players.lean(LEAN, first.policy)
            origin = nominal.sweep(first.value).value
        value = origin if value is None else value
        answer = WeightedAverage(*self._parts(players))
        answer.add(1.0, *self._parts(players))
        last = self.output == "last"
        state = EpochState(value, None, layout, players, answer, WeightedAverage(), last)
        if self.check_every == "auto":
            low, high = problem.criterion.range
            state.gap = high - low
        else:
            state.swept(problem)
        answer.weight = 0.0
        return state

    def _parts(self, players: PlayerTuple) -> tuple[Array, ...]:
        parts = players.policy, players.mean, players.apart
        return (*parts, players.kernels) if self.keep_kernels else parts

    def step(self, problem: Problem, state: EpochState) -> EpochState:
        """One step in every state; at the end of an epoch a new v, and at times a certificate."""
        state.learn(problem, self.stop == "duality-gap")
        state.update = None
        players = state.players
        if state.remaining == 0:
            state.number += 1
            state.remaining = max(1, round(state.number**self.epoch_power))
            state.epoch = WeightedAverage(players.policy, players.stakes)
            if self.output == "epoch":
                state.answer.weight = 0.0
            players.face(state.value, state.remaining)
        players.step()
        problem.kernel_passes += 2 if self.steps == "mirror-prox" else 1
        state.steps += 1
        state.remaining -= 1
        self._average(state)
        if state.remaining == 0:
            x, stakes = state.epoch.parts
            new = np.where(problem.model.terminal, 0.0, (x * stakes).sum(axis=1))
            state.change, state.value = new - state.value, new
            if self.check_every == "auto":
                self._certify(problem, state)
            elif state.number % int(self.check_every) == 0:
                state.swept(problem)
        return state

    def _certify(self, problem: Problem, state: EpochState) -> None:
        """Certify if the forecast is near the tolerance."""
        size, weighted, goal = state.players.forecast(), self.stop == "duality-gap", problem.goal
        gap = dot(problem.model.initial, size) if weighted else float(size.max())
        forecast = max(gap, FLOOR * goal)
        if state.trust * forecast > goal and state.steps < state.next_check:
            return
        # decides how precise the values need to be
        state.gap = min(state.gap, max(state.trust * forecast, goal))
        state.forecast = forecast
        state.swept(problem)
        state.next_check = PATIENCE[1] * (state.steps + 1)

    def _average(self, state: EpochState) -> None:
        players = state.players
        weight = float(state.steps) ** self.weight_power
        state.epoch.add(weight, players.policy, players.stakes)
        if self.output == "last":
            state.answer.weight = 0.0
        if self.output == "epoch":
            inside = max(1, round(state.number**self.epoch_power)) - state.remaining
            weight = float(inside) ** self.weight_power
        state.answer.add(weight, *self._parts(players))


# ---------------------------------------------------------------------- the certificate


def _claim(problem: Problem, state: EpochState) -> Update:
    """The answer as a claim, to be bounded by its values."""
    model, layout, ambiguity = problem.model, state.layout, problem.operator.ambiguity
    policy, mean, apart, *_ = state.answer.parts
    policy = policy / np.maximum(policy.sum(axis=1, keepdims=True), EPS)
    far = apart.max(axis=1) ** (1 / power(ambiguity))  # order ∞: of the farthest kernel
    share = _pulled_share(layout, far, state.steps)
    kernel = _pulled_mean(model, layout, mean, share)
    y = state.kernels
    kernels = None if y is None else _pulled_kernels(model, layout, y, share)
    change = np.full(model.n_states, np.nan) if state.change is None else state.change
    pair = PairClaim(policy, kernel, kernels, PRECISION * state.gap)
    return Update(state.value, change, change, policy, NominalOperator(model, kernel).nature, pair)


def _pulled_share(layout: Layout, far: Array, n_steps: int) -> Array:
    """Share of the way from the data that is surely in the ball, (S,); `far` (S,) is a distance,
    averaged over so many steps.
    """
    S, A = layout.available.shape
    slack = A * (2 * S + 64 + n_steps) * EPS
    return share_within(np.maximum(layout.radius - slack, 0.0), far)


def _pulled_mean(model: Model, layout: Layout, mean: Array, share: Array) -> Any:
    """The mean kernel of rows (nnz,), pulled: (S, A, S), or a sparse (S·A, S) matrix."""
    n_pairs = layout.indptr.size - 1
    pair = np.repeat(np.arange(n_pairs), np.diff(layout.indptr))
    rows = layout.mean + share[pair // model.n_actions] * (np.maximum(mean, 0.0) - layout.mean)
    total = np.bincount(pair, weights=rows, minlength=n_pairs)
    return _kernel(model, layout, rows / total[pair])


def _pulled_kernels(model: Model, layout: Layout, y: Array, share: Array) -> Any:
    """The N kernels of rows (N·nnz,), pulled: (N, S, A, S), or N sparse matrices; those of weight 0
    stay.
    """
    used = model.weights > 0
    every: list[Any] = [None] * model.n_kernels if used.all() else list(model.kernels)
    lengths, N = np.diff(layout.indptr), layout.weights.size
    pair = np.repeat(np.arange(lengths.size), lengths)
    part, entry = share[pair // model.n_actions], np.arange(pair.size)
    before = ((N - 1) * layout.indptr[:-1])[pair] + entry  # entries of other kernels
    filled = lengths[lengths > 0]
    starts = np.cumsum(filled) - filled

    def scaled(rows: Array) -> Array:
        return np.asarray(rows / np.repeat(np.add.reduceat(rows, starts), filled))

    for i, k in enumerate(np.flatnonzero(used)):
        at = before + (i * lengths)[pair]
        centre = scaled(layout.data[at].astype(np.float64))
        pulled = centre + part * (np.maximum(scaled(y[at]), 0.0) - centre)
        every[k] = _kernel(model, layout, scaled(pulled))
    return tuple(every) if model.is_sparse else np.stack(every)


def _kernel(model: Model, layout: Layout, rows: Array) -> Any:
    S, A = layout.available.shape
    if rows.size == S * A * S and not model.is_sparse:
        return rows.reshape(S, A, S)
    matrix = sparse.csr_array((rows, layout.indices, layout.indptr), shape=(S * A, S))
    return matrix if model.is_sparse else matrix.toarray().reshape(S, A, S)
