"""What a proof file says of contamination: means of such rows are all that are at least (1 − θ) ȳ,
which are intervals.
"""

import numpy as np

from drmdp.proof import responses
from drmdp.proof.states import written
from drmdp.proof.witnesses import SetWitness


class Shares(SetWitness):
    mean = True

    def about(self, ambiguity):
        return {"family": "intervals"}

    def row(self, states, s, a, p):
        row, share = states.row(s, a, 1.0), min(states.radii[s], 1.0)
        return responses.Row(
            row.g, np.stack([(1 - share) * row.y[0], np.ones(row.g.size)]), row.states, row.columns
        )

    def more(self, states, s, acts):
        rows = [self.row(states, s, a, 1.0) for a in acts]
        return {"r": 0} | {
            name: [written(row.states, row.y[k], row.columns) for row in rows]
            for k, name in enumerate(("lo", "hi"))
        }

    def above(self, ambiguity, rows, weights, radius):
        return {"eta": [responses.pivot(row.g, *row.y) for row in rows]}

    def below(self, states, s, acts):
        return {"y": [states.rows(s, a)[0] for a in acts]}


SHARES = Shares()
