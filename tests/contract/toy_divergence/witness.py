"""What a proof file says of Hellinger's balls around the mean, and how the checker reads it.

At a price κ a row gains η + κ Σ ŷ s/(1 − s), s = (g − η)/κ, for every η ≥ −κ.
"""

from decimal import Context

from drmdp.proof import responses
from drmdp.proof.witnesses import Witness
from drmdp_check import __main__ as checker
from toy_divergence.functions import sums, threshold


class Balls(Witness):
    mean = True

    def told(self, ball):
        return {"family": "hellinger"}

    def above(self, ball, rows, weights, radius):
        if not radius > 0:
            return {}
        unit = responses.scale(rows)

        def thresholds(kappa):
            return [threshold(unit / kappa, row.y[0], row.g / unit, row.g.size) for row in rows]

        def spent(kappa):
            total = 0.0
            for row, f in zip(rows, thresholds(kappa), strict=True):
                d, y = 1 + f - row.g / kappa, row.y[0]
                total += 1 - min(sums(unit / kappa, f, y, row.g / unit, row.g.size)[0], 1.0)
                total += float((y[y > 0] * (1 / d[y > 0] - 1) ** 2).sum())
            return total

        kappa = responses.bisect(spent, radius, unit)
        return {"kappa": kappa, "eta": [[kappa * f] for f in (thresholds(kappa) if kappa else [0.0] * len(rows))]}


class Region(checker.Divergence):
    def __init__(self, given, support, number):
        checker.Region.__init__(self, support, True)
        self.kind = "burg"  # mass may go where nothing was seen

    def conjugate(self, number, s, y):
        checker.need(checker.high(s) < 1, "kappa, eta: out of range")
        return y * (s / (number.one - s))

    def cost(self, number, y, base):
        both = checker.low(y * base)
        return y + base - number(2) * (number._bound(Context.sqrt, both, up=False) if both > 0 else number.zero)


BALLS = Balls()
