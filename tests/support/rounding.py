"""Data that round the wrong way.

Random rounding errors cancel, so data are *biased*: number by number, of several candidates the one
is taken whose rounding goes the wrong way most.
"""

import math

import numpy as np


def biased(rng, n, sign, block=None):
    """Positive numbers whose sum, computed in blocks one after the other, is off in the direction
    `sign` by about n/8 ulps.
    """
    found, total, part = np.empty(n), 0.0, 0.0
    for k in range(n):
        if block and k % block == 0:
            total, part = total + part, 0.0
        tried = (0.5 + rng.random(16)) / n
        new = part + tried
        own = new - part
        lost = (part - (new - own)) + (tried - own)  # exactly
        found[k] = tried[np.argmin(sign * lost)]
        part += float(found[k])
    return found


def uneven(rng, K, sign, u):
    """A row of K entries for which Σ ŷ u, summed in blocks and divided by the sum of the row, is
    off in the direction `sign`; u is 0 or −1.

    Both sums are off, in opposite directions.
    """
    found, part, part_u = np.empty(K), 0.0, 0.0
    for k in range(K):
        if k % 64 == 0:
            part = part_u = 0.0
        tried = (0.5 + rng.random(32)) / K
        errors = np.zeros(32)
        for total, factor in ((part, -sign), (part_u, 2 * sign if u[k] else 0)):
            new = total + tried
            own = new - total
            errors -= factor * ((total - (new - own)) + (tried - own))
        found[k] = tried[np.argmin(errors)]
        part += float(found[k])
        part_u += float(found[k]) if u[k] else 0.0
    return found


def swallowed(n, first, part):
    """Numbers that sum to 1: the first, `part` of its last bit again and again, and the rest.

    One by one, parts below 1/2 are lost, and those above it count as 1.
    """
    found = np.full(n, part * np.spacing(first))
    found[0], found[-1] = first, 0
    found[-1] = 1 - math.fsum(found)
    return found
