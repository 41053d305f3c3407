"""Choice of the radius by kernels that were not used.

Each radius has a candidate policy. Its value under kernels held out, mean over the start
distribution, is a sample of how it fares in the next year, hospital or fold; the radius whose
sample is best in the mean, in a quantile or in the worst case is chosen, the smallest of equals.

* `choose`: the held-out kernels are given.
* `cross_validate`: the N kernels of a model are dealt into folds; the kernels of each are held out
  in turn, and candidates come from a path around the others, with their weights rescaled. With
  kernels from ``drmdp.estimate(table, by="parts", episode=…)``, which share no trajectory, this is
  k-fold cross-validation on trajectories; with ``by="hospital"``, one hospital is left out at a
  time. Kernels that share data (bootstrap, folds, posterior) make every radius look better than it
  is. Rows filled by a rule rather than by data count as data; where the model has counts of each
  kernel, a `drmdp.Notice` says how many they are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core.random import Seed, generator
from drmdp.core.tolerance import RTOL
from drmdp.core.validation import integer, limits
from drmdp.criteria import posed
from drmdp.errors import InputError, Notice, shown
from drmdp.model import Model, changed
from drmdp.policies import fixed_kernel as fixed
from drmdp.radius.path import PathPoint, RadiusPath, check_path, path, radii_of
from drmdp.sets import AmbiguitySet, check_problem
from drmdp.solution import Status
from drmdp.ui import clock
from drmdp.ui.progress import counted, showing


@dataclass(frozen=True, eq=False)
class Choice:
    """Out-of-sample values of the candidate of each radius, user's sign.

    Attributes
    ----------
    radii : (K,)
        Radii that were compared.
    fractions : (K,)
        The same as shares of the largest saturation.
    samples : (K, M)
        Value of the policy of radius k under held-out kernel m, mean over the start distribution.
    maximise : bool
        Whether values are rewards.
    by : "mean", "worst" or a level
        What decided.
    status : Status
        "time_limit" if some folds were left out.
    """

    radii: Array
    fractions: Array
    samples: Array
    maximise: bool
    by: str | float
    status: Status = Status.solved

    @property
    def mean(self) -> Array:
        """Mean over the held-out kernels, (K,)."""
        return np.asarray(self.samples.mean(axis=1))

    @property
    def worst(self) -> Array:
        """Worst held-out kernel of each candidate, (K,)."""
        return np.asarray(self.samples.min(axis=1) if self.maximise else self.samples.max(axis=1))

    def quantile(self, level: float) -> Array:
        """Value that a share `level` of the held-out kernels is no worse than, (K,)."""
        return np.asarray(np.quantile(self.samples, 1 - level if self.maximise else level, axis=1))

    @property
    def scores(self) -> Array:
        """What was compared, (K,)."""
        named = {"mean": self.mean, "worst": self.worst}
        return named[self.by] if isinstance(self.by, str) else self.quantile(self.by)

    @property
    def best(self) -> int:
        """Number of the chosen radius."""
        return int(np.argmax(self.scores) if self.maximise else np.argmin(self.scores))

    @property
    def radius(self) -> float:
        """The chosen radius."""
        return float(self.radii[self.best])


def choose(radius_path: RadiusPath, held_out: ArrayLike, by: str | float = "mean") -> Choice:
    """Compare the policies of a path under held-out kernels.

    `held_out` is an (M, S, A, S) array, a `Model` with the same states and actions, or a list of
    kernels; `by` is "mean", "worst" or a level such as 0.9 for that quantile.

    Parameters
    ----------
    radius_path : RadiusPath
        The result of `drmdp.radius.path`.
    held_out : M kernels, or a Model
        Kernels that judge the policies.
    by : "mean", "worst" or a level
        What decides.
    """
    check_path(radius_path, "radius_path")
    by = judged_by(by)
    samples = _samples(radius_path, fixed.matrices_of(radius_path.model, held_out, "held_out"))
    return Choice(radius_path.radii, radius_path.fractions, samples, radius_path.model.maximise, by)


def cross_validate(
    model: Model,
    ambiguity: AmbiguitySet,
    radii: ArrayLike = 20,
    folds: int | None = None,
    by: str | float = "mean",
    tol: float | None = None,
    rtol: float = RTOL,
    seed: Seed = 0,
    callback: Callable[[PathPoint], Any] | None = None,
    threads: int | None = None,
    max_seconds: float | None = None,
    progress: bool | None = None,
    nature: str = "adversarial",
    criterion: str | None = None,
) -> Choice:
    """Hold out the kernels of a model in turn; by default one at a time, else dealt at random into
    `folds`.

    Tolerance, threads, progress, nature and criterion are those of `drmdp.solve`. When
    `max_seconds` are over, the kernels of the folds that are done decide, and `status` says so;
    without a single one there is no answer and an `InputError`. Ctrl-C is passed on.

    Parameters
    ----------
    model : Model
        Its kernels are held out in turn.
    ambiguity : set
        What is feared; its radius is replaced.
    radii : sequence of numbers, or how many
        Candidates, as for `drmdp.radius.path`.
    folds : int, optional
        Parts that the kernels are dealt into; one kernel each by default.
    by : "mean", "worst" or a level
        What decides, over the kernels held out.
    tol, rtol : float
        Certified gap of each solution, absolute or relative.
    seed : int or Generator
        Of the deal.
    callback : callable, optional
        Called with each `PathPoint` when it is solved.
    threads, progress, nature, criterion : optional
        As for `drmdp.solve`.
    max_seconds : float, optional
        Stop after so many seconds, to within a solve.
    """
    check_problem(model, ambiguity)
    limits(None, max_seconds, callback)
    deadline = clock.deadline(max_seconds)
    model, by = posed(model, criterion), judged_by(by)
    used, n = folds_of(model, folds)
    if borrowed := _borrowed(model, used):
        warnings.warn(borrowed, Notice, stacklevel=2)
    limit = float(ambiguity.saturation(model).max())
    grid = radii_of(radii)
    fold = generator(seed, "cross_validate").permutation(np.arange(used.size) % n)
    settings: Any = {"callback": callback, "threads": threads, "nature": nature}
    settings["criterion"] = criterion

    def trace(part: Model, radii: Any) -> RadiusPath | None:
        rest = None if max_seconds is None else max(0.0, deadline - clock.now())
        traced = path(part, ambiguity, radii, tol, rtol, max_seconds=rest, **settings)
        if traced.status is Status.interrupted:
            raise KeyboardInterrupt
        return None if traced.status is Status.time_limit else traced

    with showing(progress), counted("folds", n) as step:
        if isinstance(grid, int):  # where decisions change with all kernels
            first = trace(model, grid)
            grid = np.zeros(0) if first is None else first.radii
        samples = np.full((grid.size, fold.size), np.nan)  # in the order of the kernels
        for k in range(n if grid.size else 0):
            out = used[fold == k]
            traced = trace(_without(model, out), grid)
            if traced is None:
                break
            matrices = [fixed.matrix_of(model, int(i)) for i in out]
            samples[:, fold == k] = _samples(traced, matrices, deadline)
            step()
    done = np.isfinite(samples).all(axis=0) & (grid.size > 0)
    if not done.any():
        raise InputError(f"max_seconds: {max_seconds!r} s are too short to finish a single fold")
    fractions = ambiguity.share(grid, limit)
    status = Status.solved if done.all() else Status.time_limit
    return Choice(grid, fractions, samples[:, done], model.maximise, by, status)


def judged_by(by: Any) -> str | float:
    """What decides, checked."""
    if isinstance(by, str) and by in ("mean", "worst"):
        return by
    if isinstance(by, float | int) and not isinstance(by, bool) and 0 < by < 1:
        return float(by)
    raise InputError(f'by: expected "mean", "worst" or a level between 0 and 1, got {shown(by)}')


def _samples(radius_path: RadiusPath, matrices: list[Any], deadline: float = math.inf) -> Array:
    model, policies = radius_path.model, [point.policy for point in radius_path.points]
    values = (fixed.values(model, policy, matrices, deadline) for policy in policies)
    return np.stack([by_kernel @ model.initial for by_kernel in values])


def folds_of(model: Model, folds: int | None) -> tuple[Any, int]:
    """Numbers of the kernels with weight, and how many folds to deal them into."""
    used = np.flatnonzero(model.weights > 0)
    if used.size < 2:
        what = "the model has one kernel with positive weight, nothing can be held out"
        raise InputError(f"cross_validate: {what}")
    return used, used.size if folds is None else integer("folds", folds, 2, used.size)


def _borrowed(model: Model, used: Any) -> str:
    """Words on rows of the kernels that rest on no data of their own; none if there are none, or it
    is not known.
    """
    table = model._counts
    if table is None or table.n_kernels != model.n_kernels:
        return ""
    rows = table.sums().reshape(-1, model.n_kernels)[model.available.ravel()][:, used]
    empty, kind = int((rows == 0).sum()), "rewards" if model.maximise else "costs"
    what = f"{empty:,} of {rows.size:,} rows of the kernels held out have no data of their own"
    what += ", but what a rule gave also to others"
    return f"{what}: held-out {kind} look better than they are" if empty else ""


def _without(model: Model, kernels: Any) -> Model:
    """The model without some kernels: their weights are 0."""
    weights = model.weights.copy()
    weights[kernels] = 0
    return changed(model, weights=weights / weights.sum())
