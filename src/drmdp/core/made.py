"""Models that are not given as arrays: what `drmdp.Model` offers besides its constructor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from drmdp._typing import ArrayLike
from drmdp.core import validation as checks
from drmdp.core.explore import explore
from drmdp.core.progress import showing
from drmdp.core.validation import Names
from drmdp.errors import InputError, shown


class Made:
    """Makers of models; see `drmdp.Model`."""

    @classmethod
    def from_functions(
        cls,
        initial: Any,
        actions: Any,
        transition: Callable[..., Any],
        cost: Callable[..., Any] | None = None,
        *,
        rewards: Callable[..., Any] | None = None,
        discount: float,
        terminal: Any = None,
        weights: ArrayLike = None,
        kernel_names: Names | None = None,
        limit: int = 1_000_000,
        progress: bool | None = None,
    ) -> Self:
        """A model of plain Python functions; states are whatever can be hashed, and all that can be reached are visited, breadth first.

        Parameters
        ----------
        initial : collection of states, or mapping from state to probability
        actions : collection of actions, or function of the state
            Actions are numbered in the order met; what a state does not have is not available there.
        transition : function (state, action)
            Gives ``{next: p}`` or ``[(next, p), …]``; for N kernels ``{next: [p_1, …, p_N]}`` or a list of N of the first two. What is given twice is added up.
        cost, rewards : function (state, action) or (state, action, next)
            Exactly one of the two.
        discount, weights, kernel_names
            As for a model of arrays.
        terminal : collection of states, or function of the state, optional
            Where the process ends; no other function is asked there.
        limit : int
            Most states to visit.
        progress : bool, optional
            As for `solve`.

        Examples
        --------
        A machine that was observed in two years:

        >>> import drmdp
        >>> def transition(state, action):
        ...     if action == "repair":
        ...         return {"up": [1, 1]}
        ...     return {"up": [0.9, 0.7], "down": [0.1, 0.3]} if state == "up" else {"down": [1, 1]}
        >>> def cost(state, action):
        ...     return 4 * (action == "repair") + 10 * (state == "down")
        >>> drmdp.Model.from_functions(["up"], ["run", "repair"], transition, cost, discount=0.9).states
        ('up', 'down')
        """
        if (cost is None) == (rewards is None):
            raise InputError(f"give exactly one of cost and rewards, got {'neither' if cost is None else 'both'}")
        name, price = ("cost", cost) if rewards is None else ("rewards", rewards)
        for what, function in (("transition", transition), (name, price)):
            if not callable(function):
                raise InputError(f"{what}: expected a function, got {shown(function)}")
        checks.discount_of(discount)
        checks.whole("limit", limit, 1)
        with showing(progress):
            found = explore(initial, actions, transition, price, name, terminal, limit)  # type: ignore[arg-type]
            return cls(  # type: ignore[call-arg]
                found.blocks,
                **{"costs" if rewards is None else "rewards": found.costs},
                discount=discount,
                weights=weights,
                initial=found.initial,
                states=found.states,
                actions=found.actions,
                available=found.available,
                terminal=found.terminal,
                kernel_names=kernel_names,
            )
