"""How the checker reads Hellinger's balls around the mean, without drmdp.

At a price κ a row gains η + κ Σ ŷ s/(1 − s), s = (g − η)/κ, for every η ≥ −κ.
"""

from decimal import Context

from drmdp_check import __main__ as checker


class Region(checker.DivergenceBall):
    def __init__(self, given, support, number):
        checker.AmbiguitySet.__init__(self, support, True)
        self.kind = "burg"  # mass may go where nothing was seen

    def conjugate(self, number, s, y):
        checker.need(checker.high(s) < 1, "kappa, eta: out of range")
        return y * (s / (number.one - s))

    def term(self, number, y, base):
        both = checker.low(y * base)
        return (
            y
            + base
            - number(2) * (number._bound(Context.sqrt, both, up=False) if both > 0 else number.zero)
        )
