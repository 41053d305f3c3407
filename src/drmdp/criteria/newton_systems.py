"""The linear systems (I − λP) δ = r of Newton's method.

P is the chain of a pair. I − λP is diagonally dominant by rows, so that elimination needs no
pivots. A plain matrix is solved directly: up to `SMALL` states by elimination, and so is one with
few numbers that are not 0, as long as that takes few products; one that mixes fast by products
(`relax`), and others by LAPACK. A sparse one, or one that only knows its product with a vector, by
BiCGStab (van der Vorst, 1992), two products and a few vector operations a step, whose error
Newton's next step corrects; where it breaks down, GMRES goes on from the best point seen. The start
is the constant mean(r)/(1−λ), which is exact for a constant r as rows of P sum to 1, unless
terminal states, whose rows are 0, spoil it.

Without a discount (`arriving`) I − P is singular unless the chain leaves the states that it goes on
from; then it is an M-matrix still. Expected times may be any number of steps, and what is left of r
must be small in every state, not on average. A sparse chain that arrives soon is solved by
BiCGStab, which says so within a few steps. Others are eliminated in the order of least degrees
(SuperLU); where states cannot be numbered so that steps are short, that would fill in nearly all
numbers, and it is done incompletely, with at most `FILL` for each that there is. Products correct
what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import _native
from drmdp._typing import Array
from drmdp.core.levels import EPS
from drmdp.core.vectors import by_state, dot, dots, like, mean

SMALL, THIN, FILLED = 64, 10, 200
"""States up to which systems are eliminated. Beyond, the share of numbers that are not 0 with which
that is tried, 1/THIN, and the share of n³ products after which it is given up, 1/FILLED."""
EXACT, RATE, SLACK, PRODUCTS = 2e-13, 0.5, 10.0, 50
"""Of `relax`: what may be left, relative to δ; what a step must leave at most, in the long run, and
by how much it may be behind.
"""
TIGHT, LOOSE, FEW = 1e-3, 0.03, 5
"""Share of r that may be left: in the first `FEW` steps, and later. Newton's next step takes it
along; what costs few products saves sweeps, and what costs many does not (docs/methods.md)."""
ROUNDING = 1e-14  # a share of r that is none
WILD = 1e8  # a residual that grew as much has lost its digits
STEPS = 1000
RESTART, CYCLES = 40, 25  # of GMRES


def solve(
    chain: Any, discount: float, right: Array, checkpoint: Callable[[], None] = lambda: None
) -> Array:
    """δ with (I − λP) δ = r; `checkpoint` is called before every product and raises when time is
    up.
    """
    if discount == 1:
        arrived = arriving(chain, [np.asarray(right)])
        return np.full_like(right, np.nan) if arrived is None else arrived[0]
    if isinstance(chain, np.ndarray):
        found: Array = like(right, direct(chain, discount, np.asarray(right, dtype=np.float64)))
        return found

    def apply(z: Any) -> Any:
        checkpoint()
        return by_state(_minus, z, discount, chain @ z)

    first = np.full_like(right, mean(right) / (1 - discount))
    left = right - apply(first)
    square, whole = dots((left, left), (right, right))
    if square > whole:
        first, left, square = np.zeros_like(right), right, whole
    if square <= ROUNDING**2 * whole:
        return first
    goal = LOOSE * math.sqrt(square)
    step, rest, far = bicgstab(apply, left, square)
    if far > goal:
        from scipy.sparse.linalg import LinearOperator, gmres  # takes a tenth of a second

        def plain(z: Any) -> Any:
            return np.asarray(apply(like(right, z)))

        system = LinearOperator((len(right), len(right)), plain, dtype=np.float64)
        most = {"restart": RESTART, "maxiter": CYCLES}
        found = gmres(system, np.asarray(rest), rtol=0.0, atol=goal, **most)[0]
        step = step + like(right, found)
    return first + step


def chain_of(model: Any, update: Any) -> Any:
    """The chain P of a sweep's pair; where discounts differ, that with λP = Σ_a x_a δ_a y_a, λ the
    largest, whose rows may sum to less than 1.
    """
    if model.discounts is None:
        return update.chain
    return update.nature.chain(update.policy * (model.discounts / model.discount))


FILL, DROP, LEFT, CORRECTIONS = 30.0, 1e-4, 1e-3, 200
"""Of `arriving`: what incomplete elimination may fill in and what it drops; and what may be left of
r, in the largest number.
"""
WIDE, PACE = 20.0, 0.8
"""The longest step, in √n numbers, of a chain that is eliminated completely; and what a step of
BiCGStab must leave, in the long run, to go on.
"""


def arriving(
    chain: Any, rights: Sequence[Array], skipped: int | None = None, left: float = LEFT
) -> list[Array] | None:
    """δ with (I − P) δ = r for several r; None if some state never leaves. What is `left` of r may
    be as much in a large system; 0: what rounding leaves.

    P is without the column of a state that is `skipped`: then the last δ is how often, roughly,
    states are visited between two visits of that one.
    """
    n = rights[0].size
    if isinstance(chain, np.ndarray):
        system = np.eye(n) - chain
        if skipped is not None:
            system[:, skipped] = np.arange(n) == skipped
        try:
            found = list(np.ascontiguousarray(np.linalg.solve(system, np.stack(rights, axis=1)).T))
            if skipped is not None:
                found.append(np.linalg.solve(system.T, system[:, skipped]))
        except np.linalg.LinAlgError:
            return None
    else:
        found = _eliminated(chain, rights, skipped, left)
    return found if all(np.isfinite(z).all() for z in found) else None


def matrix_of(chain: Any) -> Any:
    """The entries of a sparse chain, or of other rows; what is not listed is left out."""
    if not hasattr(chain, "n_columns"):
        return chain.matrix()
    mass = np.asarray(chain.entry_mass, dtype=np.float64)
    shape = chain.entry_ptr.size - 1, chain.n_columns
    return sparse.csr_array((mass, chain.entry_state, chain.entry_ptr), shape=shape)


def _eliminated(
    chain: Any, rights: Sequence[Array], skipped: int | None, left: float
) -> list[Array]:
    """The same of a sparse chain; what is not a number says that it failed."""
    n = rights[0].size
    going = np.ones(n)
    if skipped is not None:
        going[skipped] = 0.0
    matrix = matrix_of(chain)

    def apply(z: Array) -> Array:
        return np.asarray(z - matrix @ (going * z))

    if skipped is None and left:
        soon = [_soon(apply, right) for right in rights]
        if not any(z is None for z in soon):
            return soon
    system = sparse.csc_array(sparse.eye_array(n) - matrix @ sparse.diags_array(going))
    try:
        factors = _factors(system)
    except RuntimeError:  # exactly singular
        return [np.full(n, np.nan)]
    found = [_corrected(apply, factors, right, left) for right in rights]
    return found if skipped is None else [*found, factors.solve(1 - going, "T")]


def _soon(apply: Callable[[Array], Array], right: Array) -> Any:
    """The solution of a chain that arrives soon; None of others."""
    square, size = dot(right, right), LEFT * float(np.abs(right).max(initial=0.0))
    if square == 0:
        return np.zeros_like(right)
    z, rest, _ = bicgstab(apply, right, square, LEFT / 10)
    return z if np.abs(rest).max() <= size else None


def _factors(system: Any) -> Any:
    """What elimination makes of a sparse matrix."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee
    from scipy.sparse.linalg import spilu, splu

    n = system.shape[0]
    place = np.empty(n, dtype=np.int64)
    place[reverse_cuthill_mckee(sparse.csr_matrix(system))] = np.arange(n)
    entries = system.tocoo()
    how: Any = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0}
    how |= {"options": {"SymmetricMode": True}}
    if np.abs(place[entries.row] - place[entries.col]).max(initial=0) ** 2 <= WIDE**2 * n:
        return splu(system, **how)
    return spilu(system, drop_tol=DROP, fill_factor=FILL, **how)


def _corrected(apply: Callable[[Array], Array], factors: Any, right: Array, part: float) -> Array:
    """The solution that factors give, corrected as long as that helps."""
    from scipy.sparse.linalg import LinearOperator, gmres

    shape, z, least = (right.size, right.size), np.asarray(factors.solve(right)), np.inf
    system = LinearOperator(shape, apply, dtype=np.float64)
    inverse = LinearOperator(shape, factors.solve, dtype=np.float64)
    enough = part * float(np.abs(right).max())
    for _ in range(CORRECTIONS):
        left = right - apply(z)
        far = float(np.abs(left).max())
        if not max(enough, 8 * EPS * float(np.abs(z).max())) < far < 0.9 * least:
            break
        least = far
        z = np.asarray(z + gmres(system, left, rtol=1e-2, restart=20, maxiter=1, M=inverse)[0])
    return z


def direct(chain: Array, discount: float, right: Array) -> Array:
    """The same for a plain matrix, up to rounding."""
    n = right.size
    thin = n <= SMALL or THIN * np.count_nonzero(chain) <= n * n
    if thin:
        found, most = right.copy(), n**3 if n <= SMALL else n**3 // FILLED
        if _native.eliminate(np.eye(n) - discount * chain, found, most):
            return found
    close: Any = relax(sparse.csr_array(chain) if thin else chain, discount, right)
    if close is None:
        close = np.linalg.solve(np.eye(n) - discount * chain, right)
    return np.asarray(close, dtype=np.float64)


def relax(chain: Any, discount: float, right: Array, enough: float = EXACT) -> Array | None:
    """The same by products, if the chain mixes fast; what may be `enough` is left, relative to δ.

    With r = m + d, m its mean, δ = m/(1−λ) + d leaves λPd, whose differences are smaller than those
    of d by what a step of the chain evens out, whatever λ is: the rest shrinks by the second
    eigenvalue of λP a product. Where terminal states take mass away, the constant is wrong and what
    is left says so.
    """
    first = float(np.abs(right).max())
    for n, (found, left) in enumerate(relaxing(chain, discount, right, PRODUCTS)):
        size = float(np.abs(left).max())
        if size <= enough * float(np.abs(found).max()):
            return found
        if not size <= SLACK * RATE**n * first:
            return None
    return None


def relaxing(chain: Any, discount: float, right: Array, n: int) -> Iterator[tuple[Array, Array]]:
    """The n first points of that method, and what they leave."""
    found, left = np.zeros_like(right), right
    for _ in range(n):
        yield found, left
        step = left + left.mean() * (discount / (1 - discount))
        found = found + step
        left = left - step + discount * (chain @ step)


def bicgstab(
    apply: Callable[[Array], Array], right: Array, square: float, left: float | None = None
) -> tuple[Array, Array, float]:
    """δ with |r − (I − λP) δ| small enough, that residual and its norm; on a breakdown, the best
    found before. `square` is r·r.

    Small enough is `left` of |r|, if that is given; then it also ends where steps leave more than
    `PACE` in the long run.
    """
    x, r, shadow, p = np.zeros_like(right), right, right, right
    rho, begin = square, math.sqrt(square)
    best, least = (x, r, begin), np.inf
    for k in range(STEPS):
        ap = apply(p)
        down = dot(shadow, ap)
        if not abs(down) > 1e-300:
            break
        alpha = rho / down
        s = by_state(_minus, r, alpha, ap)
        at = apply(s)
        size, along = dots((at, at), (at, s))
        omega = along / size if size > 0.0 else 0.0
        x = by_state(_plus, x, alpha, p, omega, s)
        r = by_state(_minus, s, omega, at)
        square, new = dots((r, r), (shadow, r))
        far = math.sqrt(square)
        if not far <= (WILD if left is None else SLACK * PACE**k) * begin:
            break
        if far < least:
            best, least = (x, r, far), far
        if far <= ((TIGHT if k < FEW else LOOSE) if left is None else left) * begin:
            break
        if not (abs(new) > 1e-300 and abs(omega) > 1e-300):
            break
        p = by_state(_turn, r, (new / rho) * (alpha / omega), p, omega, ap)
        rho = new
    return best


def _minus(a: Array, x: float, b: Array) -> Array:
    return a - x * b


def _plus(a: Array, x: float, b: Array, y: float, c: Array) -> Array:
    return a + (x * b + y * c)


def _turn(a: Array, x: float, b: Array, y: float, c: Array) -> Array:
    return a + x * (b - y * c)
