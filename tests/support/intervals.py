"""Certified intervals of every set on a long deck, by whichever drmdp is imported, and how those of
two versions compare.

    python tests/support/intervals.py OUT.npz [--problems 5000] [--seed 40] [--against OTHER.npz]
    [SET ...]

A problem is one of `decks`, and now and then one of money (costs of 1e6 with a discount of .9999)
or one whose kernels are stored in float32. Of each the step F(v) − v of an update and of a policy
is bounded from below and from above, cold, against both natures; one state is one case. A case is
*open* if its bounds are more than `OPEN` apart, in units of what is at stake in its state, and
*disjoint* if the bounds that another version proved contradict them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import cases
import decks
import drmdp
from drmdp.operators.cooperative import CooperativeOperator
from drmdp.operators.exact import ExactOperator
from drmdp.solvers.problem import Problem

OPEN = 1e-9
ORDERS = [
    (metric, order) for metric in ("l1", "l2", "linf") for order in (1, 1.01, 1.5, 2, 3, 32, np.inf)
]
SETS = decks.SETS | {
    f"{metric}-{order:g}{'-sa' * (rectangular == 'sa')}": decks.wasserstein(
        metric, order, rectangular
    )
    for rectangular in ("s", "sa")
    for metric, order in ORDERS
}
"""Every set of `decks`, and balls of more orders."""
KINDS = ("plain", "plain", "plain", "float32", "money", "float32 money")
SUPPORTS = (
    "all",
    "observed",
    *["state"] * ('"state"' in str(drmdp.Wasserstein.__doc__)),
)  # 0.2 had two
OPERATORS = (ExactOperator, CooperativeOperator)


class Interval(NamedTuple):
    """Bounds on one step of one state."""

    problem: int
    helping: int
    fixed: int  # whether a policy was given
    state: int
    lower: float
    upper: float
    unit: float  # range of the stakes
    rounding: float  # what it takes of costs and values


def problems(name: str, n: int, seed: int) -> Iterator[tuple[int, cases.Case]]:
    """The problems of a set that this version can state, with their numbers."""
    sizes, kinds = (
        cases.dealt(np.random.default_rng([seed, k]), own)
        for k, own in ((99, decks.KINDS), (98, KINDS))
    )
    for number, (rng, draw, model, value, support) in enumerate(cases.problems(n, seed)):
        size, special = next(sizes), next(kinds)
        if support not in SUPPORTS:
            continue
        model, value = _special(model, value, special)
        ambiguity = SETS[name].make(model, decks.sized(rng, size, model, SETS[name].pairs), support)
        words = f"{name}-{seed}-size-{size}-{special}-{cases.named(number, draw, model, ambiguity)}"
        yield number, cases.Case(words, model, ambiguity, value)


def _special(model, value, special):
    if "float32" in special:
        model = model.astype(np.float32)
    if "money" in special:
        given = {"weights": model.weights, "available": model.available, "terminal": model.terminal}
        costs = 1e6 * model.costs
        model = drmdp.Model(
            model.kernels, costs=costs, discount=0.9999, dtype=model.blocks.data.dtype, **given
        )
        value = 1e10 * value / (1.0 + np.abs(value).max())
    return model, value


def judged(number: int, case: cases.Case) -> Iterator[Interval]:
    """Bounds on all steps of one problem; raises if nature's rows or the policy are no
    distributions.
    """
    model, ambiguity = case.model, case.ambiguity.fitted(case.model)
    x = decks.any_policy(np.random.default_rng(number), model)
    units = _units(model, case.value)
    for helping, operator in enumerate(OPERATORS):
        for fixed, policy in enumerate((None, x)):
            found = Problem(operator(model, ambiguity, 1)).proved(case.value, policy)
            decks.distributions(model, found)
            for s in np.flatnonzero(~model.terminal):
                yield Interval(
                    number, helping, fixed, s, found.lower_step[s], found.upper_step[s], *units[s]
                )


def _units(model, value):
    """Range of the stakes of each state, and what rounding takes, (S, 2)."""
    units = np.ones((model.n_states, 2))
    for s in np.flatnonzero(~model.terminal):
        z = model.stakes(value, s, s + 1)[0][model.available[s]]
        z = z[np.isfinite(z)]
        size = np.abs(value).max() + np.abs(z).max()
        units[s] = max(float(np.ptp(z)), 1e-3 * size, 1e-250), 1e-12 * size
    return units


def run(name: str, n: int, seed: int) -> np.ndarray:
    """All intervals of a set, a row of `Interval` each."""
    return np.array(
        [one for number, case in problems(name, n, seed) for one in judged(number, case)]
    )


class Tally(NamedTuple):
    """How a set went."""

    cases: int
    crossed: int  # lower above upper
    open: int
    widest: float
    compared: int
    disjoint: int


def tally(rows: np.ndarray, other: np.ndarray | None = None) -> Tally:
    """Count; `other` are the intervals of another version for the same deck."""
    own = Interval(*rows.T)
    gap = (own.upper - own.lower - own.rounding) / own.unit
    compared = disjoint = 0
    if other is not None:
        mine, its = _common(rows, other)
        apart = np.maximum(mine.lower - its.upper, its.lower - mine.upper)
        compared, disjoint = apart.size, int((apart > 0).sum())
    crossed, wide = int((own.lower > own.upper).sum()), int((gap > OPEN).sum())
    return Tally(len(rows), crossed, wide, float(gap.max()), compared, disjoint)


def _common(rows, other):
    """Rows of the same cases."""
    keys = [{tuple(row[:4]): k for k, row in enumerate(one)} for one in (rows, other)]
    both = [key for key in keys[0] if key in keys[1]]
    return [
        Interval(*one[[of[key] for key in both]].T)
        for one, of in zip((rows, other), keys, strict=True)
    ]


def main() -> None:
    """Write the intervals of some sets, or of all, and say how each went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--problems", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=40)
    parser.add_argument("--against")
    given = parser.parse_intermixed_args()
    others = dict(np.load(given.against)) if given.against else {}
    found = {}
    sys.stdout.write("\t".join(["set", *Tally._fields, "seconds\n"]))
    for name in given.sets or SETS:
        begun = time.process_time()
        found[name] = run(name, given.problems, given.seed)
        done = (*tally(found[name], others.get(name)), time.process_time() - begun)
        sys.stdout.write(
            "\t".join(
                [name, *(f"{one:.3g}" if isinstance(one, float) else str(one) for one in done)]
            )
            + "\n"
        )
        sys.stdout.flush()
        np.savez_compressed(given.out, **found)


if __name__ == "__main__":
    main()
