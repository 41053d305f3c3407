"""Work space of the kernels of (ℓ1, ∞) and (ℓ∞, 1), and what they read of the last policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from drmdp._typing import Array
from drmdp.bellman.piecewise.budget_per_kernel import Tables, make_tables
from drmdp.bellman.piecewise.columns import Basis, make_basis
from drmdp.bellman.piecewise.warm_l1 import Held, make_held
from drmdp.bellman.qp import Program, make_program
from drmdp.core.compiled import LEAN
from drmdp.layout.layout import Layout
from drmdp.layout.point import Point, Scratch, scratch
from drmdp.layout.sorting import SortSpace, sort_space

JOIN = 3  # actions at a time
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
    basis: Basis
    points: Array  # (A + 1, A or 1, N), amounts of its columns


class Prices(NamedTuple):
    """Actions that are priced, not solved for."""

    member: Any  # (A,) whether an action needs no price
    joined: Any  # (JOIN,) the lowest
    values: Array  # (JOIN,) their values


class Work(NamedTuple):
    """Work space for states of A actions, N kernels and up to K entries in all."""

    state: Scratch
    sort: SortSpace
    solver: Solver
    tables: Tables
    held: Held  # what the last sweep held, if that is asked for
    prices: Prices
    action: Any  # (A,) of each table
    radius: Array  # (N,)
    slopes: Array  # (2, N)
    gain: Array  # (N,)
    mass: Array  # (K + 1,)
    index: Any  # (K + 1,)
    unit: Array  # (1,) 1, the scale of the mean row


def make_solver(A: int, N: int, joint: bool) -> Solver:
    """Work space of the method."""
    rows = 1 if joint else A
    return Solver(
        np.empty(A), np.empty(A), np.empty(A), np.empty(A), np.empty((6, A)), np.empty((A, A)), make_program(A),
        np.ones((A, N), dtype=np.int64), np.zeros(A, dtype=np.int64), np.zeros(N, dtype=np.bool_),
        np.empty((rows, N)), np.empty((rows, N)), np.empty((rows, N)), np.empty(N), np.empty(N), np.empty(N), np.empty(N),
        make_basis(A), np.empty((A + 1, rows, N)),
    )  # fmt: skip


def make_work(
    layout: Layout, point: Point, start: int, stop: int, lines: Callable[[int, int], int], joint: bool
) -> Work:  # fmt: skip
    """Work space for a range of states; the tables of a kernel's rows have lines(K, A) lines."""
    state = scratch(layout, start, stop)
    (A, N), K = state.scale.shape, state.u.size
    whole: Any = np.int64
    return Work(
        state, sort_space(layout, point, start, stop, K), make_solver(A, N, joint), make_tables(A, N, N * lines(K, A)),
        make_held(0 if joint else A, N), Prices(np.empty(A, np.bool_), np.empty(JOIN, whole), np.empty(JOIN)),
        np.empty(A, whole), np.empty(N), np.empty((2, N)), np.empty(N), np.empty(K + 1), np.empty(K + 1, whole), np.ones(1),
    )  # fmt: skip


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
