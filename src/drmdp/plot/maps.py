"""States that are places: what is done in each, or what it is worth, where it lies.

Coordinates are whole numbers on a grid, row and column, the first row on top: a cell for each
state. Other numbers are x to the right and y upwards: a point for each state. Two states at one
place are refused. Actions that are called by a direction are arrows as long as they are likely.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array, ArrayLike
from drmdp.core.names import coordinates as in_names
from drmdp.core.validation import numbers
from drmdp.errors import InputError, shown, unexpected
from drmdp.plot._axes import WIDTH, axes, bar, kind, model_of, side
from drmdp.plot.plans import GREY, colours, palette_legend
from drmdp.plot.style import BLACK
from drmdp.solution import HorizonSolution, Solution, check_solution

COLOURS = "cividis"
SPARSE = 4
"""A grid may have so many cells for each state."""
ARROWS = 900
"""In more states they could not be seen."""
ARROW: Any = {"angles": "xy", "scale_units": "xy", "scale": 1, "color": BLACK, "width": 0.006}
ARROW |= {"headwidth": 5, "headlength": 5, "headaxislength": 4.5, "minshaft": 1.8, "minlength": 0}
ARROW |= {"edgecolor": "white", "linewidth": 0.5}
WAYS = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
WAYS |= dict(zip(("west", "east", "north", "south"), WAYS.values(), strict=True))
"""Directions as rows and columns."""


class Places(NamedTuple):
    """Coordinates of states."""

    at: Array  # (S, 2)
    axes: tuple[str, str]  # names of the two numbers
    grid: bool

    @property
    def xy(self) -> tuple[Array, Array]:
        """To the right and upwards; on a grid, to the right and downwards."""
        first, second = self.at.T
        return (second, first) if self.grid else (first, second)


def map(
    solution: Solution | HorizonSolution,
    coordinates: ArrayLike = None,
    by: str = "policy",
    ax: Any = None,
    stage: int | str = 0,
) -> Any:
    """States where they lie, coloured by what is done there, or by what it is worth; returns the
    axes.

    Parameters
    ----------
    solution : Solution or HorizonSolution
        The result of `drmdp.solve` or `drmdp.finite_horizon`.
    coordinates : (S, 2), or a shape (rows, columns), optional
        Whole numbers are rows, from the top, and columns of a grid; other numbers are x and y. A
        shape stands for a grid whose states are numbered row by row, as in gymnasium:
        ``env.unwrapped.desc.shape``. By default the two numbers that states are named by.
    by : "policy" or "values"
        Colours are the likeliest actions, fainter where the policy draws, or the certified
        worst-case values.
    ax : matplotlib axes, optional
        Where to draw; new ones by default.
    stage : int or str
        Of a plan.
    """
    policy, value, noun = _of(solution, stage)
    if by not in ("policy", "values"):
        raise InputError(f'by: expected "policy" or "values", got {shown(by)}')
    places = places_of(solution.states, coordinates)
    if places is None:
        cure = "give (S, 2) numbers, or the shape (rows, columns) of a grid"
        raise InputError(f"coordinates: states are not named by two numbers each; {cure}")
    x, y = places.xy
    with axes(ax, _height(places)) as ax:
        if by == "policy":
            cells, used = colours(policy)
            _draw(ax, places, cells)
            palette_legend(ax, solution.actions, used, policy)
        else:
            image = _draw(ax, places, value)
            bar(ax, image, noun if noun == "value" else f"{side(solution)}-case {noun}")
        if places.grid and len(x) <= ARROWS:
            _arrows(ax, solution.actions, policy, x, y)
        ylabel, xlabel = places.axes if places.grid else places.axes[::-1]
        ax.set(ylabel=ylabel, xlabel=xlabel)
        for axis in (ax.xaxis, ax.yaxis) if places.grid else ():
            axis.get_major_locator().set_params(integer=True)
        ax.grid(False)
    return ax


def _of(solution: Any, stage: int | str) -> tuple[Array, Array, str]:
    """Policy, values and their noun, of a solution or of a stage of a plan."""
    if isinstance(solution, HorizonSolution):
        t = solution._number(stage)
        return solution.policy[t], solution.value[t], solution.noun
    check_solution(solution)
    if stage != 0:
        raise InputError(f"stage: a solution is the same at every stage, got {shown(stage)}")
    return np.asarray(solution.policy), solution.value, kind(model_of(solution, None))


def places_of(states: Any, coordinates: ArrayLike = None) -> Places | None:
    """Where states are, as given or as their names say; None if they do not."""
    S = len(states)
    if coordinates is None:
        for known in ([0], range(S)):  # the others are not read if the first has no place
            parts = in_names(states, known)
            if parts is None or parts[0].shape[1] != 2:
                return None
        at, axes = parts[0], tuple(parts[1])  # type: ignore[index]
    else:
        at, axes = numbers("coordinates", coordinates), ("x1", "x2")
        if at.shape == (2,) and (at >= 1).all() and (at == np.round(at)).all():
            if at.prod() != S:
                grid = f"a grid of {at[0]:g} × {at[1]:g} has {at.prod():g} places"
                raise InputError(f"coordinates: {grid}, the model {S:,} states")
            at = np.stack(np.divmod(np.arange(S), int(at[1])), axis=1).astype(float)
            axes = "row", "column"
    if at.shape != (S, 2) or not np.isfinite(at).all():
        expected = f"{S:,} pairs of finite numbers, or the shape of a grid"
        raise unexpected("coordinates", expected, coordinates)
    order = np.lexsort(at.T)
    double = np.flatnonzero((np.diff(at[order], axis=0) == 0).all(axis=1))
    if double.size and coordinates is None:
        return None  # other parts of the names tell them apart
    if double.size:
        pair = sorted(order[double[0] : double[0] + 2].tolist())
        names, (x, y) = " and ".join(shown(states[s]) for s in pair), at[pair[0]]
        raise InputError(f"coordinates: states {names} are both at {x:g}, {y:g}")
    return Places(at, axes, _is_grid(at))


def _is_grid(at: Array) -> bool:
    cells = np.prod(np.ptp(at, axis=0) + 1)
    return bool((at == np.round(at)).all() and cells <= SPARSE * len(at) + 100)


def _height(places: Places) -> float:
    high, wide = np.ptp(places.at, axis=0)[:: 1 if places.grid else -1] + (1 if places.grid else 0)
    return float(np.clip(1.2 + (WIDTH - 0.8) * (high / wide if wide > 0 else 1), 2.4, 1.5 * WIDTH))


def _draw(ax: Any, places: Places, cells: Array) -> Any:
    """Cells or points of values (S,) or colours (S, 4)."""
    x, y = places.xy
    if not places.grid:
        edge = 0.0 if len(x) > ARROWS else 0.6  # dark points are seen on dark ground, too
        look: Any = {"linewidths": edge, "edgecolors": GREY, "rasterized": not edge}
        look |= {"cmap": COLOURS} if cells.ndim == 1 else {}
        return ax.scatter(x, y, c=cells, s=float(np.clip(20_000 / len(x), 3, 60)), **look)
    low = places.at.min(axis=0).astype(int)
    high, wide = (np.ptp(places.at, axis=0) + 1).astype(int)
    image = np.full((high, wide, *cells.shape[1:]), np.nan if cells.ndim == 1 else 0.0)
    image[tuple((places.at.astype(int) - low).T)] = cells
    extent = (low[1] - 0.5, low[1] + wide - 0.5, low[0] + high - 0.5, low[0] - 0.5)
    return ax.imshow(image, cmap=COLOURS, extent=extent, interpolation="nearest", aspect="equal")


def _arrows(ax: Any, actions: Any, policy: Array, x: Array, y: Array) -> None:
    """Directions, as long as they are likely."""
    for a, name in enumerate(actions):
        down, right = WAYS.get(str(name).lower(), (0, 0))
        if down or right:
            played = policy[:, a] > 0.02
            long = 0.4 * policy[played, a]
            ax.quiver(x[played], y[played], right * long, down * long, **ARROW)
