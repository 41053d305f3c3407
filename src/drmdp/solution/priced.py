"""Prices of doubt of solutions and plans, made when they are first asked for."""

from __future__ import annotations

from drmdp._typing import Array
from drmdp.core.cached import cached_property


class Priced:
    """What has a value that depends on radii."""

    @cached_property
    def prices(self) -> Array:
        """Derivative of initial · value by the radius of each state, (S,), or pair, (S, A).

        What a little more doubt there costs: the difference to a radius that is larger by 1e-5 of
        it, weighted with the visits of the policy under nature's kernel. It is 0 where doubt costs
        nothing, and infinite where a divergence has radius 0. For rewards, and for a nature that
        helps, the sign is the other one. Of "cvar" it is the derivative by the level, of which less
        is more doubt. It takes two sweeps and a linear system, once. See `drmdp.plot.prices`.

        Of a plan it is by stage, (T, S) or (T, S, A), and takes two sweeps for each; the sum over
        the stages is the price of a radius that all of them share.
        """
        from drmdp.policies import prices

        return prices.more(self)

    @cached_property
    def prices_less(self) -> Array:
        """The same to a smaller radius: what a little less doubt saves.

        Against an adversarial nature it is never less than `prices`, in size; where it is more, her
        answer or the policy turns at this radius. Infinite at radius 0, which cannot be less, where
        more doubt would cost something.
        """
        from drmdp.policies import prices

        return prices.less(self)
