"""The proof: U = Σ_a x_a (1 − θ) ȳ·u needs no witness; L is the value of rows that lose the claimed share, cut off at θ."""

import numpy as np
from drmdp.certificate.sums import EPS, finish, mean_worth, normalise
from drmdp.core.compiled import KERNEL, njit


@njit(**KERNEL)
def states(start, stop, layout, view, claim, bounds, work):
    A, N = layout.available.shape[1], layout.weights.size
    for s in range(start, stop):
        base, unit = normalise(layout, view, s, work)
        if not base < np.inf:
            continue
        theta, x = min(layout.radius[s], 1.0), claim.policy[s]
        moved = 0.0
        for i in range(N):
            asked = claim.memory.by_kernel[s, i]
            most = theta * (1.0 - 8.0 * EPS)
            usable = asked > 0.0 and asked < np.inf
            bounds.share[s, i] = (most / asked if asked > most else 1.0) if usable else 0.0
            moved += layout.weights[i] * bounds.share[s, i] * asked if usable else 0.0
        above = 0.0
        for a in range(A):
            if layout.available[s, a]:
                K = layout.indptr[s * A + a + 1] - layout.indptr[s * A + a]
                nominal, off = mean_worth(layout, s, a, work), 16.0 * (K + N + 8) * EPS
                work.worth[a] = (1.0 - moved) * nominal - off
                above += x[a] * ((1.0 - theta) * nominal * (1.0 - off) + (A + 8) * EPS)
        finish(s, base, unit, min(above, 0.0), layout, view, claim, bounds, work)
