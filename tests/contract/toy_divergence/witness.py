"""What a proof file says of Hellinger's balls around the mean: a price κ and thresholds η, of which
`region` proves a bound.
"""

from drmdp.proof import responses
from drmdp.proof.witnesses import SetWitness
from toy_divergence.functions import sums, threshold


class Balls(SetWitness):
    mean = True

    def about(self, ambiguity):
        return {"family": "hellinger"}

    def above(self, ambiguity, rows, weights, radius):
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
        return {
            "kappa": kappa,
            "eta": [[kappa * f] for f in (thresholds(kappa) if kappa else [0.0] * len(rows))],
        }


BALLS = Balls()
