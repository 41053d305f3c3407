"""From a log to a decision, judged by the truth: whether promises are kept, and what they cost.

    python -m drmdp_lab.logs [LOGS [ROWS ...]]     prints tables in Markdown

There are 40 logs of 1,000, 4,000 and 16,000 rows of each problem unless told otherwise.

A log has episodes of 5 steps that begin in any state; the first action is tried half of the time,
the next one half of the rest, and so on. `drmdp.estimate` makes one kernel of it, without the pairs
that were seen fewer than 5 times, and refuses logs with a state that is left without any; rewards
count as negative costs, and costs are known. With V the worst case that a set promises its policy x
from a start in any state, v(x) the true cost of x and v* the true optimum, a promise is kept if V ≥
v(x); it is (V − v*)/span above the optimum, and x loses (v(x) − v*)/span, where span is how far the
best policy is from the worst.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import drmdp

LENGTH = 5
"""Steps of an episode."""
ROWS = (1_000, 4_000, 16_000)
SETS: dict[str, Callable[[Any], Any]] = {
    "nominal": lambda model: drmdp.Wasserstein(0),
    "burg, value, 50 %": lambda model: drmdp.Divergence.from_counts(model, 0.5),
    "**burg, value, 95 %** (`--set counts`)": drmdp.Divergence.from_counts,
    "burg, log, 95 %": lambda model: _sized(
        model, drmdp.Divergence(0, "burg", rectangular="sa", support="state")
    ),
    "Intervals, 95 %": drmdp.Intervals.from_counts,
    "Intervals, 95 % jointly": lambda model: drmdp.Intervals.from_counts(model, joint=True),
    "tv, 95 %": lambda model: _sized(
        model, drmdp.Divergence(0, "tv", rectangular="sa", support="state")
    ),
    "transport on the line, 95 %": lambda model: _sized(
        model,
        drmdp.Wasserstein(
            0,
            "transport",
            rectangular="sa",
            support="state",
            ground=("line", np.arange(model.n_states, dtype=float)),
        ),
    ),
}
"""What is feared, by its row of the table, from a model with counts."""


def _sized(model: Any, ambiguity: Any) -> Any:
    return ambiguity.with_radius(drmdp.radius.from_counts(model, ambiguity))


def queue(seed: int, longest: int = 12) -> Any:
    """A counter that serves slowly, at normal speed or fast, and a room that may be full."""
    arrives = np.random.default_rng(seed).uniform(0.3, 0.5)
    kernel, S = np.zeros((longest + 1, 3, longest + 1)), longest + 1
    n = np.arange(S)
    for a, serves in enumerate((0.35, 0.5, 0.7)):
        up, down = arrives * (1 - serves), serves * (1 - arrives)
        for there, p in (
            (np.minimum(n + 1, longest), up),
            (np.maximum(n - 1, 0), down),
            (n, 1 - up - down),
        ):
            kernel[n, a, there] += p
    costs = 0.2 * n[:, None] + 5.0 * (n == longest)[:, None] + np.array([0.0, 0.6, 1.8])
    return drmdp.Model(kernel[None], costs=costs, discount=0.95)


PROBLEMS: dict[str, Callable[[int], Any]] = {
    "machine": lambda seed: drmdp.instances.machine(10),
    "forest": lambda seed: drmdp.instances.forest(10),
    "reservoir": lambda seed: drmdp.instances.reservoir(
        15, n_kernels=1, seed=seed, discount=0.95, months=None
    ),
    "queue": queue,
}


def log_of(model: Any, n_rows: int, rng: np.random.Generator) -> dict[str, list[int]]:
    """So many rows of a log of a model with one kernel."""
    kernel, steps = np.asarray(model.kernels)[0].cumsum(axis=-1), []
    state = 0
    for t in range(n_rows):
        if t % LENGTH == 0:
            state = int(rng.integers(model.n_states))
        actions = np.flatnonzero(model.available[state])
        action = int(actions[min(rng.geometric(0.5), actions.size) - 1])
        there = min(
            int(np.searchsorted(kernel[state, action], rng.random(), side="right")),
            model.n_states - 1,
        )
        steps.append((state, action, there))
        state = there
    return dict(
        zip(("state", "action", "next_state"), map(list, zip(*steps, strict=True)), strict=True)
    )


def estimated(truth: Any, costs: Any, n_rows: int, rng: np.random.Generator) -> Any:
    """What is made of a log: one kernel with its counts."""
    return drmdp.estimate(
        log_of(truth, n_rows, rng),
        costs=costs,
        discount=truth.discount,
        unvisited="unavailable",
        min_count=5,
        states=list(range(truth.n_states)),
        actions=list(range(truth.n_actions)),
        initial="uniform",
    )


def true_value(truth: Any, costs: Any, policy: Any) -> float:
    """Cost of a policy under the truth, mean over all starts."""
    chain = np.einsum("sa,sat->st", policy, np.asarray(truth.kernels)[0])
    value = np.linalg.solve(
        np.eye(truth.n_states) - truth.discount * chain, (policy * costs).sum(axis=1)
    )
    return float(value.mean())


def outcomes(name: str, n_rows: int, logs: int) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Whether promises are kept, how far above the optimum they are, what policies lose."""
    for seed in range(logs):
        truth = PROBLEMS[name](seed)
        sign = -1.0 if truth.maximise else 1.0
        costs = sign * np.where(
            truth.available, np.asarray(truth.rewards if truth.maximise else truth.costs), 0.0
        )
        plain = drmdp.Model(
            truth.kernels, costs=costs, discount=truth.discount, available=truth.available
        )
        best, worst = (sign * _optimum(plain, sign) for sign in (1.0, -1.0))
        try:
            model = estimated(plain, costs, n_rows, np.random.default_rng([seed, n_rows]))
        except drmdp.InputError:  # a state of which no action was seen 5 times
            continue
        for row, feared in SETS.items():
            solution = drmdp.solve(model, feared(model))
            promised, true = float(solution.value.mean()), true_value(plain, costs, solution.policy)
            span = worst - best
            yield (
                row,
                (
                    float(promised >= true - 1e-9 * span),
                    (promised - best) / span,
                    (true - best) / span,
                ),
            )


def _optimum(model: Any, sign: float) -> float:
    """The least cost of any policy, or of costs of the other sign."""
    other = drmdp.Model(
        model.kernels, costs=sign * model.costs, discount=model.discount, available=model.available
    )
    return float(drmdp.solve(other, drmdp.Wasserstein(0), rtol=1e-9).value.mean())


def table(n_rows: int, logs: int) -> str:
    """All problems: promise kept / promised above the optimum / loss, the latter in % of the
    span.
    """
    cells: dict[str, list[str]] = {row: [] for row in SETS}
    heads = []
    for name in PROBLEMS:
        results: dict[str, list[tuple[float, float, float]]] = {row: [] for row in SETS}
        for row, outcome in outcomes(name, n_rows, logs):
            results[row].append(outcome)
        for row, each in results.items():
            kept, above, loss = np.mean(each, axis=0) * (1, 100, 100)
            cells[row].append(f"{kept:.2f} / {above:.1f} / {abs(loss):.1f}")
        heads.append(f"{name} ({len(each)} logs)")
    head = f"| {n_rows:,} rows | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads)
    return "\n".join(
        [head, *(f"| {row} | " + " | ".join(each) + " |" for row, each in cells.items())]
    )


def main(*given: str) -> None:
    """Print a table for each length of the logs."""
    logs, rows = int(given[0]) if given else 40, tuple(map(int, given[1:])) or ROWS
    warnings.simplefilter("ignore", drmdp.Notice)
    for n_rows in rows:
        sys.stdout.write(f"{table(n_rows, logs)}\n\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
