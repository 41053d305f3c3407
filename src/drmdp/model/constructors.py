"""Constructors of models from functions, rates of continuous time, and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from drmdp._typing import ArrayLike
from drmdp.core import validation as checks
from drmdp.core.distributions import labels_of
from drmdp.core.validation import Names
from drmdp.errors import InputError, shown
from drmdp.model.functions import explore
from drmdp.model.rates import interest_of, jumps, priced, uniformised
from drmdp.model.state_ranges import open_pairs_of
from drmdp.ui.progress import showing


class ModelConstructors:
    """Alternative constructors of `drmdp.Model`."""

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
        """A model of plain Python functions; states are whatever can be hashed, and all that can be
        reached are visited, breadth first.

        Parameters
        ----------
        initial : collection of states, or mapping from state to probability
            Where to begin; they are also the start distribution.
        actions : collection of actions, or function of the state
            Actions are numbered in the order met; what a state does not have is not available
            there.
        transition : function (state, action)
            Gives ``{next: p}`` or ``[(next, p), …]``; for N kernels ``{next: [p_1, …, p_N]}`` or a
            list of N of the first two. What is given twice is added up.
        cost, rewards : function (state, action) or (state, action, next)
            Exactly one of the two.
        discount, weights, kernel_names
            As for a model of arrays.
        terminal : states, mapping from state to final cost (reward), or function of state, optional
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
        >>> actions = ["run", "repair"]
        >>> drmdp.Model.from_functions(["up"], actions, transition, cost, discount=0.9).states
        ('up', 'down')
        """
        name, price = checks.only_one(cost=cost, rewards=rewards)
        for what, function in (("transition", transition), (name, price)):
            if not callable(function):
                raise InputError(f"{what}: expected a function, got {shown(function)}")
        checks.common_discount(discount, "a model of functions")
        checks.integer("limit", limit, 1)
        with showing(progress):
            explored = explore(initial, actions, transition, price, name, terminal, limit)
            given: Any = {"discount": discount, "weights": weights, "kernel_names": kernel_names}
            return cls(**explored, **given)

    @classmethod
    def from_rates(
        cls,
        rates: ArrayLike,
        *,
        costs: ArrayLike = None,
        rewards: ArrayLike = None,
        jump_costs: ArrayLike = None,
        jump_rewards: ArrayLike = None,
        interest: float,
        states: Names | None = None,
        actions: Names | None = None,
        available: ArrayLike = None,
        terminal: Any = None,
        kernel_names: Names | None = None,
        **others: Any,
    ) -> Self:
        """A model of continuous time, by uniformisation: at radius 0 values solve interest · V =
        min_a c + Q_a V.

        A step is a moment at which something may happen, the same for all kernels: `notes` say how
        often that is. With interest 0 and terminal states the total until the end is solved, and
        `Solution.time` is a time. With interest 0 and none, solve with ``criterion="average"``: per
        unit of time.

        Parameters
        ----------
        rates : (S, A, S) or (N, S, A, S) array
            Jumps per unit of time; rows sum to 0, so that what is on the diagonal is minus the rate
            at which a state is left.
        costs, rewards : (S,) or (S, A) array, optional
            Per unit of time.
        jump_costs, jump_rewards : (S, S) or (S, A, S) array, optional
            Of a jump, when it happens. Of the four, costs or rewards, not both.
        interest : float
            Per unit of time, at least 0: what comes at time t counts exp(−interest · t).
        states, actions, available, terminal, kernel_names
            As for a model of arrays, and so are `weights`, `initial`, `notes`, `dtype` in `others`.

        Examples
        --------
        A machine fails once in ten days and is repaired in one, which costs 5 a day, discounted by
        1 % a day:

        >>> import numpy as np, drmdp
        >>> rates = np.array([[[-0.1, 0.1]], [[1.0, -1.0]]])
        >>> model = drmdp.Model.from_rates(rates, costs=[0, 5], interest=0.01)
        >>> np.linalg.solve(0.01 * np.eye(2) - rates[:, 0], [0, 5]).round(4)
        array([45.045 , 49.5495])
        >>> drmdp.solve(model, drmdp.Wasserstein(0.0)).value.round(4)
        array([45.045 , 49.5495])
        """
        by_name = {"costs": (costs, jump_costs), "rewards": (rewards, jump_rewards)}
        given = [name for name, pair in by_name.items() if any(part is not None for part in pair)]
        if len(given) != 1:
            count = "both" if given else "neither"
            raise InputError(f"give costs or rewards, jump_costs or jump_rewards, got {count}")
        (name,) = given
        N, S, A, _ = jumps(rates).shape
        labels = labels_of((S, A, N), states, actions, kernel_names)
        kernels, fastest = uniformised(rates, open_pairs_of(terminal, available, labels)[2], labels)
        interest = interest_of(interest)
        step, discount = 1 / (fastest + interest), fastest / (fastest + interest)
        often = f"{fastest:.6g} steps per unit of time, in which something may happen"
        note = f"continuous time: {often}; interest {interest:g}"
        return cls(  # type: ignore[call-arg]
            kernels,
            **{name: priced(name, *by_name[name], step, discount, S, A)},
            **{"discount": discount, "sojourn": step, "states": states, "actions": actions},
            **{"available": available, "terminal": terminal, "kernel_names": kernel_names},
            notes=(*others.pop("notes", ()), note),
            **others,
        )

    @classmethod
    def from_events(
        cls,
        states: Any,
        actions: Any,
        events: Any,
        transition: Callable[..., Any],
        laws: ArrayLike,
        *,
        discount: float,
        costs: ArrayLike = None,
        rewards: ArrayLike = None,
        law: Any = None,
        weights: ArrayLike = None,
        available: Any = None,
        terminal: ArrayLike = None,
        initial: ArrayLike = None,
        names: Names | None = None,
        kernel_names: Names | None = None,
        store: bool | None = None,
    ) -> Any:
        """A model of events: the next state is transition(state, action, event), and N laws say how
        likely events are. No kernel is stored.

        Parameters
        ----------
        states : int or `drmdp.Grid`
            How many there are, or their digits.
        actions, events : int, or sequence of names
            How many there are, or what they are called.
        transition : function (state, action, event) of numbers
            Of NumPy arrays, (n, 1, 1), (1, A, 1) and (1, 1, E), or compiled with ``numba.njit``. It
            returns the next state, or (next state, cost). A compiled function (state, action, next,
            cost) fills the arrays of all events of a pair instead.
        laws : (N, E) or (C, N, E) array
            N laws of the events, for each of C classes.
        discount, weights, initial, kernel_names
            As for a model of arrays.
        costs, rewards : (S, A) or (S,) array, optional
            If transition tells none. Costs of events are what nature moves with them;
            ``rewards=True`` says that they are rewards.
        law : (S, A) array or function (state, action), optional
            Class of laws of each pair, if there are several.
        available : (S, A) bool array, mapping, or function (state, action), optional
            Which actions a state has; all by default.
        terminal : (S,) bool array, states or mapping to final costs (rewards), optional
            Where the process ends.
        names : sequence of names of the states, optional
            What states are called; numbers by default.
        store : bool, optional
            Whether to keep next states and costs in a table; by default if it fits in a quarter of
            memory. Otherwise transition is asked in every sweep.

        Examples
        --------
        >>> import drmdp, numpy as np
        >>> def transition(stock, order, demand):
        ...     left = np.maximum(stock + order - demand, 0)
        ...     short = np.maximum(demand - stock - order, 0)
        ...     return np.minimum(left, 9), 2.0 * order + 5.0 * short + left
        >>> laws = [[0.2, 0.5, 0.3], [0.1, 0.4, 0.5]]  # of demand, one a year
        >>> model = drmdp.Model.from_events(10, 4, 3, transition, laws, discount=0.95)
        >>> bool(drmdp.solve(model, drmdp.Wasserstein(0.1)).gap < 1e-3)
        True
        """
        arguments = dict(locals())
        from drmdp.model.events.construction import build

        return build(arguments)
