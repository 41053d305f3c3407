"""Work space of the kernels of (ℓ1, ∞) and (ℓ∞, 1), and what they read of the last policy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.piecewise.columns import Basis, make_basis
from drmdp.bellman.qp import Program, make_program
from drmdp.core.compiled import LEAN, njit

PLAYED = 1e-12  # a smaller probability of the last policy does not count


class Solver(NamedTuple):
    """The problem of `drmdp.bellman.piecewise.method` for up to A actions and N kernels; amounts have A rows, or one if joint."""

    head: Array  # (A,) c
    x: Array  # (A,)
    best_x: Array  # (A,)
    q: Array  # (A,)
    vectors: Array  # (6, A)
    H: Array  # (A, A)
    program: Program
    segment: Any  # (A, N)
    end: Any  # (A,)
    free: Any  # (N,)
    amounts: Array  # (A or 1, N), m
    centre: Array  # the same, m⁰
    best: Array  # the same
    mu: Array  # (N,), or its first number if joint
    exact: Array  # (N,)
    best_mu: Array  # (N,)
    eps: Array  # (N,)


class Method(NamedTuple):
    """What `rounds` and `finish` take."""

    solver: Solver
    basis: Basis
    points: Array  # (A + 1, A or 1, N), amounts of the columns of the basis


def make_solver(A: int, N: int, joint: bool) -> Solver:
    """Work space of the method."""
    rows = 1 if joint else A
    return Solver(
        np.empty(A), np.empty(A), np.empty(A), np.empty(A), np.empty((6, A)), np.empty((A, A)), make_program(A),
        np.ones((A, N), dtype=np.int64), np.zeros(A, dtype=np.int64), np.zeros(N, dtype=np.bool_),
        np.empty((rows, N)), np.empty((rows, N)), np.empty((rows, N)), np.empty(N), np.empty(N), np.empty(N), np.empty(N),
    )  # fmt: skip


def make_method(A: int, N: int, joint: bool) -> Method:
    """Work space of `rounds` and `finish`."""
    return Method(make_solver(A, N, joint), make_basis(A), np.empty((A + 1, 1 if joint else A, N)))


@njit(**LEAN)
def read_last_policy(policy, state, member):
    """Read the last policy as a warm start.

    Entries up to PLAYED, or of actions that cannot be optimal, are set to 0.

    reads   state: cost, nominal
    fills   policy (A,); member (A,): False
    returns the only action still played or −1, and the sum of the probabilities that are kept
    """
    only = -1
    total = 0.0
    for a in range(policy.size):
        member[a] = False
        value = state.cost[a] + state.nominal[a]
        if policy[a] > PLAYED and policy[a] <= 1.0 and value < 0.0:
            only = a if total == 0.0 else -1
            total += policy[a]
        else:
            policy[a] = 0.0
    return only, total
