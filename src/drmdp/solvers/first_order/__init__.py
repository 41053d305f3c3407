"""The first-order method of Grand-Clément and Kroer (Algorithm 1), corrected.

Epoch ℓ = 1, 2, … holds v and takes ℓ^q primal-dual steps (`drmdp.solvers.first_order.players`) on the saddle problems of F(v), from
where the last epoch ended. Step t since the beginning weighs t^p. Then, with the epoch's averages x̄ and ȳ,

    v_s ← F^{x̄,ȳ}(v)_s = Σ_a x̄_a (c_a + λ ȳ_a·v),

and the answer is the average of all policies and kernels so far. The paper's theorem 1 bounds the gap of Bellman's equation by O(T^−2/3)
after T steps for q = 2; its remark 5 implies O(T^−q/(q+1)), whatever p. Measured slopes are steeper (`drmdp_lab.bench.first_order`).

**Certificate.** At the end of some epochs the answer (x̄, ȳ) is judged by true values: from above by the worst-case
value of x̄, policy iteration of nature with the exact operator, and from below by the value of the best policy against ȳ, an
ordinary MDP. ȳ is first pulled towards the mean of the data by what the averaged distance, rounding included, exceeds the radius (`pull`).
Where the N kernels of ȳ are known, the claim holds a copy of them: the proof then measures a tuple instead of searching for one.
No program is solved on the way, and in the proof only without these kernels. Weighted by the start distribution the gap is the
paper's (DG): `stop="duality-gap"`.
With `check_every="auto"` the gap is forecast: the players' regrets, summed along the chain, times the ratio (gap / forecast) of the
last certificate. A certificate is computed when the forecast is below the tolerance, or after 1.5 times the steps of the last one.

An iteration is one step in all states, as the paper counts; kernel passes count it once, Mirror Prox twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.nominal import NominalOperator
from drmdp.bellman.operator import Update
from drmdp.certificate import Pair
from drmdp.core.levels import EPS
from drmdp.core.validation import whole
from drmdp.core.vectors import dot
from drmdp.errors import InputError, shown
from drmdp.layout.layout import Layout, lay_out_all
from drmdp.solvers.first_order import pull
from drmdp.solvers.first_order.players import Average, Players, Scheme, power
from drmdp.solvers.problem import Problem, State, of_mean_kernel

OUTPUTS = ("average", "epoch", "last")
STEPS = ("primal-dual", "mirror-prox", "mirror-descent")
SETUPS = ("euclidean", "entropy", "entropy-nature", "entropy-both")
ORIGINS = ("zero", "nominal")
LEAN = 0.25
"""Share of the first policy that plays the least costs, with the nominal origin."""
PATIENCE = 16, 1.5
"""Automatic certificates: the steps after which the first is made in any case, and the factor from one to the next."""
FLOOR = 0.1
"""No forecast is below this share of the tolerance."""
PRECISION = 0.01
"""Error of the values in a certificate, as a share of the last gap, while that is more than the loop asks for."""


@dataclass
class _Epochs(State):
    value: Array
    update: Update | None
    layout: Layout
    players: Players
    answer: Average  # policy, mean kernel, distance and, if asked for, all kernels
    epoch: Average  # policy, stakes
    last: bool  # the answer is the last step
    number: int = 0  # of the epoch
    left: int = 0  # steps of the epoch
    steps: int = 0  # taken
    gap: float = np.inf  # at the last certificate
    trust: float = 1.0  # gap at the last certificate over its forecast
    next_check: float = PATIENCE[0]  # steps after which there is a certificate whatever the forecast
    change: Array | None = None  # of v in the last epoch: what records call the residual
    forecast: float = 0.0  # of the gap at the last certificate, 0 if there was none

    @property
    def kernels(self) -> Array | None:
        """All kernels of the answer, (N·nnz,), where they were averaged or the iterate holds them."""
        if len(self.answer.parts) > 3:
            return self.answer.parts[3]
        return self.players.kernels if self.last else None

    def swept(self, problem: Problem) -> State:
        """The same, ready to be certified."""
        self.update = _claim(problem, self)
        return self

    def learn(self, problem: Problem, weighted: bool) -> None:
        """Read what the loop found of the last answer."""
        if self.update is None or problem.verdict is None:
            return
        bounds = problem.verdict.bounds
        self.gap = bounds.gap
        found = dot(problem.model.initial, bounds.upper - bounds.lower) if weighted else self.gap
        self.trust = found / self.forecast if self.forecast > 0 else 1.0


@dataclass(frozen=True)
class FirstOrder:
    """Algorithm 1 of the paper; the defaults are the paper's, `FirstOrder.fast()` is the variant to use.

    Parameters
    ----------
    epoch_power, weight_power : float
        q and p: epoch ℓ has ℓ^q steps, step t weighs t^p.
    step_ratio : float or "ball"
        Multiplies the paper's step of the policy and divides nature's; "ball": balanced for the size of the ball.
    centre : bool
        Step sizes from v without its mean instead of from v: longer steps, which rows that sum to 1 allow.
    output : "average", "epoch" or "last"
        The answer: the average of all steps, that of the current epoch with t counted from its beginning (a restart), or the last step.
    steps : "primal-dual", "mirror-prox" or "mirror-descent"
        Mirror Prox needs two projections a step and holds the iterate twice. Mirror Descent is slower; the paper's remark 2 says so.
    setup : "euclidean", "entropy", "entropy-nature" or "entropy-both"
        Proximal set-up: distances, or the relative entropy for the policy, nature's kernels (metric "linf", order inf only) or both.
    check_every : int or "auto"
        Epochs between certificates.
    origin : "zero" or "nominal"
        As in the paper, v = 0 (unless `solve` is given a start) and the uniform policy; or v after two sweeps with the mean kernel,
        and a policy that leans to the actions of least cost.
    keep_kernels : bool
        Average all N kernels too, N·A·S² numbers more, and return them as `Solution.kernels`; a mean kernel needs none of them. With the last
        step as the answer they are there anyway.
    backend, stop
        Operator that evaluates the policy in certificates, and stopping rule.
    """

    backend: str = "exact"
    stop: str = "certified"
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
            whole("check_every", self.check_every, 1)
        if not isinstance(self.keep_kernels, bool):
            raise InputError(f"keep_kernels: expected True or False, got {shown(self.keep_kernels)}")
        for name, least in (("epoch_power", 0), ("weight_power", 0), ("step_ratio", 1e-9)):
            value = getattr(self, name)
            if name == "step_ratio" and value == "ball":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value < np.inf:
                raise InputError(f"{name}: expected a finite number of at least {least}, got {shown(value)}")
        if self.stop in ("puterman", "paper"):
            raise InputError(f"stop: {self.stop!r} needs ‖F(v) − v‖, which the first-order method does not compute")
        for name, known in (("output", OUTPUTS), ("steps", STEPS), ("setup", SETUPS), ("origin", ORIGINS)):
            if getattr(self, name) not in known:
                raise InputError(f"{name}: expected one of {', '.join(known)}, got {shown(getattr(self, name))}")

    @classmethod
    def fast(cls, **settings: Any) -> FirstOrder:
        """The fastest variant on every domain tried; `settings` override it.

        From the nominal origin, the last step is the answer, v moves after each one, and steps are centred and balanced for the
        ball. No theorem covers it; the certificate does.
        """
        preset = {
            "epoch_power": 0, "step_ratio": "ball", "centre": True, "output": "last", "check_every": "auto",
            "origin": "nominal",
        }  # fmt: skip
        return cls(**{**preset, **settings})

    def init(self, problem: Problem, value: Array | None) -> _Epochs:
        """Start at `value` or the origin, and the data."""
        model, ball, operator = problem.model, problem.operator.ball, problem.operator
        assert ball is not None
        assert problem.policy is None
        full = model.n_states * int(model.available.sum())
        if model.is_sparse and ball.support == "all" and model.blocks.indices.size < full:
            N, A, S = int((model.weights > 0).sum()), model.n_actions, model.n_states
            raise InputError(
                f'first-order with support "all" holds N·A·S² = {N}·{A}·{S}² = {N * A * S * S:.3g} numbers, '
                f"{8 * N * A * S * S / 1e9:.3g} GB, which a sparse model does not: "
                'use support "observed" or another method'
            )
        layout = lay_out_all(model, ball)
        ratio = None if self.step_ratio == "ball" else float(self.step_ratio)
        policy, nature = self.setup in ("entropy", "entropy-both"), self.setup in ("entropy-nature", "entropy-both")
        scheme = Scheme(self.centre, policy, nature, self.steps, ratio)
        players = Players(layout, ball, scheme, operator.threads)
        origin = np.zeros(model.n_states)
        if self.origin == "nominal":
            nominal = of_mean_kernel(model)
            first = nominal.sweep(origin)
            players.lean(LEAN, first.policy)
            origin = nominal.sweep(first.value).value
        value = origin if value is None else value
        answer = Average(*self._parts(players))
        answer.add(1.0, *self._parts(players))
        state = _Epochs(value, None, layout, players, answer, Average(), self.output == "last")
        if self.check_every == "auto":
            low, high = problem.criterion.range
            state.gap = high - low
        else:
            state.swept(problem)
        answer.weight = 0.0
        return state

    def _parts(self, players: Players) -> tuple[Array, ...]:
        parts = players.policy, players.mean, players.apart
        return (*parts, players.kernels) if self.keep_kernels else parts

    def step(self, problem: Problem, state: _Epochs) -> _Epochs:
        """One step in every state; at the end of an epoch a new v, and at times a certificate."""
        state.learn(problem, self.stop == "duality-gap")
        state.update = None
        players = state.players
        if state.left == 0:
            state.number += 1
            state.left = max(1, round(state.number**self.epoch_power))
            state.epoch = Average(players.policy, players.stakes)
            if self.output == "epoch":
                state.answer.weight = 0.0
            players.face(state.value, state.left)
        players.step()
        problem.kernel_passes += 2 if self.steps == "mirror-prox" else 1
        state.steps += 1
        state.left -= 1
        self._average(state)
        if state.left == 0:
            x, stakes = state.epoch.parts
            new = np.where(problem.model.terminal, 0.0, (x * stakes).sum(axis=1))
            state.change, state.value = new - state.value, new
            if self.check_every == "auto":
                self._look(problem, state)
            elif state.number % int(self.check_every) == 0:
                state.swept(problem)
        return state

    def _look(self, problem: Problem, state: _Epochs) -> None:
        """Certify if the forecast says that it is time."""
        size, weighted, goal = state.players.forecast(), self.stop == "duality-gap", problem.goal
        forecast = max(dot(problem.model.initial, size) if weighted else float(size.max()), FLOOR * goal)
        if state.trust * forecast > goal and state.steps < state.next_check:
            return
        state.gap = min(state.gap, max(state.trust * forecast, goal))  # how precise the values need to be
        state.forecast = forecast
        state.swept(problem)
        state.next_check = PATIENCE[1] * (state.steps + 1)

    def _average(self, state: _Epochs) -> None:
        players = state.players
        weight = float(state.steps) ** self.weight_power
        state.epoch.add(weight, players.policy, players.stakes)
        if self.output == "last":
            state.answer.weight = 0.0
        if self.output == "epoch":
            inside = max(1, round(state.number**self.epoch_power)) - state.left
            weight = float(inside) ** self.weight_power
        state.answer.add(weight, *self._parts(players))


# ---------------------------------------------------------------------- the certificate


def _claim(problem: Problem, state: _Epochs) -> Update:
    """The answer, to be judged by its own values."""
    model, layout, ball = problem.model, state.layout, problem.operator.ball
    policy, mean, apart, *_ = state.answer.parts
    policy = policy / np.maximum(policy.sum(axis=1, keepdims=True), EPS)
    far = apart.max(axis=1) ** (1 / power(ball))  # order ∞: of the farthest kernel
    share = pull.shares(layout, far, state.steps)
    kernel = pull.mean_kernel(model, layout, mean, share)
    kernels = None if state.kernels is None else pull.kernels(model, layout, state.kernels, share)
    change = np.full(model.n_states, np.nan) if state.change is None else state.change
    pair = Pair(policy, kernel, kernels, PRECISION * state.gap)
    return Update(state.value, change, change, policy, NominalOperator(model, kernel).nature, pair)
