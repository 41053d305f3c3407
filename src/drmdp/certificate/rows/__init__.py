"""Proofs about single rows: what no row can gain at a price, and what a row costs.

The models are those of `drmdp.bellman.rows`, written anew; neither side imports the other. A module has three compiled functions. ŷ = scale·y is the row
of the data, which stands for itself divided by its sum; stakes are −1 ≤ u ≤ 0, and nature has a top of stake 0, listed or not.

    dual(t, y, scale, u, off)           -> bound   ≥ h(t) = max_z t z·u − C(z | ŷ), by weak duality at a threshold of its own, margin included
    point(t, y, scale, u, z)            -> top     a row near the one that attains it, t = ∞ included; whatever it is, its cost is measured next
    cost(z, top, mass, y, scale, off)   -> bound   ≥ C(z/mass | ŷ) by definition, margin included; inf where z is nothing that the model allows

Any 0 ≤ t < ∞ is a price, and a wrong one gives a poor bound, not a false one. z (K,) holds masses ≥ 0 of the listed states, `top` is that of a top that is
not listed, and `mass` their sum. ŷ may be off by `off` ε, relatively, beyond the sum behind its scale, as a mean is; what is above 0 in a mean may
also be too large by LEAST (`drmdp.core.sums`), which a dual, a bound from above, need not know. Margins are in terms of
n = depth(K) + 16 + off, the roundings that a number meets in a sum (`drmdp.certificate.sums`), with ε = 2⁻⁵²; exp, log and their kin are right up to
2 ε, relatively.
"""

FLAT = 1e-13
"""Stakes this near to the top are plateaus for `point`, as they are for the response: what they are worth differs by no more, and leaving them costs."""
