"""Sets of mixtures: nature re-weights the N kernels.

    y = Σ_i q_i ŷ_i,        q a distribution on the kernels of positive weight with D(q ‖ w) ≤ ρ,

    kl     Σ q log(q/w)              tv    ½ Σ |q − w|
    burg   Σ w log(w/q)              cvar  q ≤ w/level: the worst `level` of the kernels
    chi2   Σ (q − w)²/w              any   every mixture

With "s" one q serves all actions of a state, with "sa" each action has its own. Nature chooses q
anew in every state and at every visit; that one kernel holds for ever is another problem, and
NP-hard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.errors import InputError, one_of, shown
from drmdp.model import Model, check_model
from drmdp.sets.base import RECTANGULAR, AmbiguitySet, checked_radius
from drmdp.sets.confinement import SLACK, Leaving

FARTHEST: dict[str, Callable[[Any], Any]] = {
    "kl": lambda share: -np.log(share),
    "burg": lambda share: np.where(share < 1, math.inf, 0.0),
    "chi2": lambda share: 1 / share - 1,
    "tv": lambda share: 1 - share,
    "cvar": lambda share: share,
    "any": lambda share: 0.0 * share,
}
"""Size from which all may be given to kernels that have a share of the weights, of each kind."""
WORDS = {
    "kl": "relative entropy Σ q log(q/w)",
    "burg": "Burg's entropy Σ w log(w/q)",
    "chi2": "χ², Σ (q − w)²/w",
    "tv": "total variation ½ Σ |q − w|",
    "cvar": "q ≤ w/level: the worst kernels",
    "any": "any mixture",
}


@dataclass(frozen=True, eq=False, repr=False)
class Reweighting(AmbiguitySet):
    """All mixtures of the kernels near that of their weights.

    Parameters
    ----------
    radius : float or (S,) array, with "sa" also (S, A)
        How far the mixture may be from the weights; not for "cvar" and "any".
    kind : "kl", "burg", "chi2", "tv", "cvar" or "any"
        Σ q log(q/w), Σ w log(w/q), Σ (q − w)²/w (no ½), ½ ‖q − w‖₁, the worst kernels, or any
        mixture.
    rectangular : "s" or "sa"
        One mixture for all actions of a state, or one for each action.
    level : float or (S,) array, with "sa" also (S, A)
        For "cvar": nature may take the worst kernels that together weigh this much. 1 is the mean
        kernel; the smaller, the worse.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.perturb(drmdp.instances.machine(8), n_kernels=5)
    >>> solution = drmdp.solve(model, drmdp.Reweighting(kind="cvar", level=0.4))
    >>> solution.weights.shape, bool(solution.weights.max() <= 0.5 + 1e-12)
    ((8, 5), True)
    """

    radius: Any = None
    kind: str = "kl"
    rectangular: str = "s"
    level: Any = None

    support = "observed"
    by_kernel = False
    reach = "to no other kernel than a mixture of the N"

    def __post_init__(self) -> None:
        one_of("kind", self.kind, WORDS)
        one_of("rectangular", self.rectangular, RECTANGULAR)
        if self.kind == "any":
            self._refuse("radius", "level")
            object.__setattr__(self, "radius", 0.0)
            return
        cvar = self.kind == "cvar"
        name, other = ("level", "radius") if cvar else ("radius", "level")
        if not (cvar and np.array_equal(self.radius, self.level)):  # as `replace` hands them on
            self._refuse(other)
        if getattr(self, name) is None:
            raise InputError(f"{name}: kind={self.kind!r} needs one")
        size = checked_radius(getattr(self, name), name, by_pair=self.by_pair)
        if cvar and np.any(np.asarray(size) > 1):
            raise InputError(f"level: expected a share from 0 to 1, got {float(np.max(size))!r}")
        self.__dict__.update({"radius": size, name: size})

    def _refuse(self, *names: str) -> None:
        for name in names:
            if (value := getattr(self, name)) is not None:
                raise InputError(f"{name}: kind={self.kind!r} has none, got {shown(value)}")

    @property
    def key(self) -> tuple[str, str]:
        """Key of the set in the registry."""
        return "reweighting", self.kind

    @property
    def sized(self) -> bool:  # type: ignore[override]
        """Whether it has a radius, or a level."""
        return self.kind != "any"

    @property
    def size_name(self) -> str:  # type: ignore[override]
        """Level or radius."""
        return "level" if self.kind == "cvar" else "radius"

    @property
    def degree(self) -> int:  # type: ignore[override]
        """2 for divergences."""
        return 2 if self.kind in ("kl", "burg", "chi2") else 1

    @property
    def short(self) -> str:
        """Kind and rectangularity."""
        return f"reweighting {self.kind}" + ("" if self.rectangular == "s" else " sa")

    @property
    def size_words(self) -> str:
        """Radius or level; nothing for "any"."""
        return super().size_words if self.sized else ""

    @property
    def words(self) -> str:
        """The same."""
        return f"reweighting {self.kind}, rectangular {self.rectangular}"

    def facts(self) -> dict[str, str]:
        """The set in words."""
        whose = "a mixture for each action" if self.by_pair else "one mixture for all actions"
        return {"set": f"the kernels are weighted anew, {whose}", "kind": WORDS[self.kind]}

    @property
    def certain(self) -> bool:
        """Whether nature cannot choose other weights: at radius 0, and at the level 1."""
        return bool(np.all(self.radius == 1.0)) if self.kind == "cvar" else super().certain

    def covered(self, n: int) -> str:
        """Mixtures of the kernels."""
        which = f" whose weights are within {self.range_text} of theirs ({self.kind})"
        if self.kind == "cvar":
            share = f"its weight divided by {self.range_text}"
            which = f" that gives none of them more than {share}"
        which = "" if self.kind == "any" else which
        return f"mixture of those {f'{n:,} ' if n else ''}kernels{which} makes"

    @property
    def meaning(self) -> str:
        """How much weight total variation moves."""
        if self.kind != "tv" or np.ndim(self.radius) or not 0 < self.radius < 1:
            return ""
        return f"up to {100 * self.radius:.3g} % of the weight goes to other kernels"

    def with_radius(self, radius: Any) -> Self:
        """The same set with another radius; for "cvar" with another level."""
        self.check_sized()
        size = {"radius": None, "level": radius} if self.kind == "cvar" else {"radius": radius}
        return replace(self, **size)

    def fitted(self, model: Model) -> Self:
        """The set itself, after checking its size."""
        self.radii(model)
        return self

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Radius of each state from which any mixture is allowed, (S,), for "cvar" the level down
        to which not all are; 0 in terminal states.
        """
        check_model(model)
        self.check_sized()
        far = float(FARTHEST[self.kind](float(model.weights[model.weights > 0].min())))
        radii = np.where(model.terminal, 0.0, far)
        return radii if states is None else np.asarray(radii[np.asarray(states)])

    def least_radius(self, rows: Leaving) -> Array:
        """Radius, or level, from which all may be given to the kernels whose rows are inside, (G,);
        infinite, or −1, if there are none.
        """
        out = rows.gathered(rows.total(rows.outside & (rows.rows > 0))) > 0  # (N, G)
        share = np.where(out.any(axis=0), (rows.weights @ ~out) / rows.weights.sum(), 1.0)
        never = -1.0 if self.kind == "cvar" else np.inf
        with np.errstate(divide="ignore"):
            return np.where(share > 0, FARTHEST[self.kind](share), never)

    def keeps(self, rows: Leaving) -> BoolArray:
        """Whether nature can keep rows inside, (G,): the smaller a level, the more."""
        if self.kind == "cvar":
            return np.asarray(self.least_radius(rows) >= rows.radius * (1 - SLACK))
        return super().keeps(rows)

    def share(self, size: Any, saturation: float) -> Any:
        """The same; a level goes from 1, the mean kernel, down to the saturation."""
        down = self.kind == "cvar"
        return super().share(1 - size, 1 - saturation) if down else super().share(size, saturation)

    def longest(self, saturation: float) -> float:
        """Where a path over its sizes ends: of "cvar" at the level 1."""
        return 1.0 if self.kind == "cvar" else super().longest(saturation)

    def spread(self, model: Model, states: Any) -> Array:
        """NaN: distances are those of mixtures."""
        return np.full(np.size(states), math.nan)

    def room(self, model: Model) -> BoolArray:
        """In which states there is something to mix, (S,)."""
        return np.asarray(model.available.any(axis=1) & (np.count_nonzero(model.weights) > 1))

    def remarks(self, model: Model) -> tuple[str, ...]:
        """A remark that there is nothing to mix, if so."""
        if self.room(model).any():
            return ()
        why = f"only {np.count_nonzero(model.weights)} kernel has a weight"
        return (f"{why}, so that any re-weighting is the same as none",)

    def __repr__(self) -> str:
        size = f"{self.size_name}={self.radius_text}, " if self.sized else ""
        return f"Reweighting({size}kind={self.kind!r}, rectangular={self.rectangular!r})"
