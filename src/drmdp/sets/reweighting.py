"""Nature re-weights the kernels: what is feared is another mixture of the N kernels than that of their weights.

    y = Σ_i q_i ŷ_i,        q a distribution on the kernels of positive weight with D(q ‖ w) ≤ ρ,

    kl     Σ q log(q/w)              tv    ½ Σ |q − w|
    burg   Σ w log(w/q)              cvar  q ≤ w/level: the worst `level` of the kernels
    chi2   Σ (q − w)²/w              any   every mixture

With "s" one q serves all actions of a state, with "sa" each action has its own. Nature chooses q anew in every state and at every visit; that one kernel holds
for ever is another problem, and NP-hard.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.errors import InputError, shown
from drmdp.model import Model, check_model
from drmdp.sets.base import AmbiguitySet, checked_radius
from drmdp.sets.keeping import SLACK, Leaving

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
        Σ q log(q/w), Σ w log(w/q), Σ (q − w)²/w (no ½), ½ ‖q − w‖₁, the worst kernels, or any mixture.
    rectangular : "s" or "sa"
        One mixture for all actions of a state, or one for each action.
    level : float or (S,) array, with "sa" also (S, A)
        For "cvar": nature may take the worst kernels that together weigh this much. 1 is the mean kernel; the smaller, the worse.

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
        if not isinstance(self.kind, str) or self.kind not in WORDS:
            raise InputError(f"kind is {', '.join(map(repr, WORDS))}, got {shown(self.kind)}")
        if not isinstance(self.rectangular, str) or self.rectangular not in ("s", "sa"):
            raise InputError(f"rectangular is 's' or 'sa', got {shown(self.rectangular)}")
        if self.kind == "any":
            self._refuse("radius", "level")
            object.__setattr__(self, "radius", 0.0)
            return
        name, other = ("level", "radius") if self.kind == "cvar" else ("radius", "level")
        if not (self.kind == "cvar" and np.array_equal(self.radius, self.level)):  # as it comes from its own fields
            self._refuse(other)
        given = getattr(self, name)
        if given is None:
            raise InputError(f"{name}: kind={self.kind!r} needs one")
        size = checked_radius(given, name, by_pair=self.by_pair)
        if self.kind == "cvar" and np.any(np.asarray(size) > 1):
            raise InputError(f"level: expected a share from 0 to 1, got {float(np.max(size))!r}")
        object.__setattr__(self, "radius", size)
        if self.kind == "cvar":
            object.__setattr__(self, "level", size)

    def _refuse(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(f"{name}: kind={self.kind!r} has none, got {shown(getattr(self, name))}")

    @property
    def key(self) -> tuple[str, str]:
        """What the registry knows it by."""
        return "reweighting", self.kind

    @property
    def sized(self) -> bool:  # type: ignore[override]
        """Whether it has a radius, or a level."""
        return self.kind != "any"

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
        return {"any": "", "cvar": f"level {self.radius_text}"}.get(self.kind, super().size_words)

    @property
    def words(self) -> str:
        """The same."""
        return f"reweighting {self.kind}, rectangular {self.rectangular}"

    def facts(self) -> dict[str, str]:
        """What it is."""
        whose = "one mixture for all actions" if self.rectangular == "s" else "a mixture for each action"
        return {"set": f"the kernels are weighted anew, {whose}", "kind": WORDS[self.kind]}

    @property
    def certain(self) -> bool:
        """Whether nature cannot choose other weights: at radius 0, and at the level 1."""
        return bool(np.all(self.radius == 1.0)) if self.kind == "cvar" else super().certain

    def covered(self, n: int) -> str:
        """Mixtures of the kernels."""
        size = self.range_text
        which = {"any": "", "cvar": f" that gives none of them more than its weight divided by {size}"}
        own = which.get(self.kind, f" whose weights are within {size} of theirs ({self.kind})")
        return f"mixture of those {f'{n:,} ' if n else ''}kernels{own} makes"

    @property
    def meaning(self) -> str:
        """How much weight total variation moves."""
        told = self.kind == "tv" and not np.ndim(self.radius) and 0 < self.radius < 1
        return f"up to {100 * self.radius:.3g} % of the weight goes to other kernels" if told else ""

    def with_radius(self, radius: Any) -> Self:
        """The same set with another radius; for "cvar" with another level."""
        self.check_sized()
        if self.kind == "cvar":
            return replace(self, radius=None, level=radius)
        return replace(self, radius=radius)

    def fitted(self, model: Model) -> Self:
        """The set itself, after checking its size."""
        self.radii(model)
        return self

    def saturation(self, model: Model, states: Any = None) -> Array:
        """Radius of each state from which any mixture is allowed, (S,), for "cvar" the level down to which some is not; 0 in terminal states."""
        check_model(model)
        self.check_sized()
        far = float(FARTHEST[self.kind](float(model.weights[model.weights > 0].min())))
        out = np.where(model.terminal, 0.0, far)
        return out if states is None else np.asarray(out[np.asarray(states)])

    def least_radius(self, rows: Leaving) -> Array:
        """Radius, or level, from which all may be given to the kernels whose rows are inside, (G,); infinite, or −1, if there are none."""
        out = rows.gathered(rows.total(rows.outside & (rows.rows > 0))) > 0  # (N, G)
        share = np.where(out.any(axis=0), (rows.weights @ ~out) / rows.weights.sum(), 1.0)
        nobody = -1.0 if self.kind == "cvar" else np.inf
        with np.errstate(divide="ignore"):
            return np.where(share > 0, FARTHEST[self.kind](share), nobody)

    def keeps(self, rows: Leaving) -> BoolArray:
        """Whether she can, (G,): the smaller a level, the more."""
        if self.kind == "cvar":
            return np.asarray(self.least_radius(rows) >= rows.radius * (1 - SLACK))
        return super().keeps(rows)

    def longest(self, saturation: float) -> float:
        """Where a path over its sizes ends: of "cvar" at the level 1."""
        return 1.0 if self.kind == "cvar" else super().longest(saturation)

    def farthest(self, y: Array, allowed: BoolArray, w: Array) -> float:
        """Not asked: `saturation` needs the weights only."""
        raise NotImplementedError

    def apart(self, y: Array, nominal: Array, weights: Array) -> Array:
        """Not asked: what is compared are mixtures (`drmdp.certificate.reweighting`)."""
        raise NotImplementedError

    def spread(self, model: Model, states: Any) -> Array:
        """No such thing: distances are those of mixtures."""
        return np.full(np.size(states), math.nan)

    def room(self, model: Model) -> BoolArray:
        """In which states there is something to mix, (S,)."""
        return np.asarray(model.available.any(axis=1) & (np.count_nonzero(model.weights) > 1))

    def remarks(self, model: Model) -> tuple[str, ...]:
        """That there is nothing to mix, if so."""
        if self.room(model).any():
            return ()
        return (
            f"only {np.count_nonzero(model.weights)} kernel has a weight, so that any re-weighting is the same as none",
        )

    def __repr__(self) -> str:
        size = {"any": "", "cvar": f"level={self.radius_text}, "}.get(self.kind, f"radius={self.radius_text}, ")
        return f"Reweighting({size}kind={self.kind!r}, rectangular={self.rectangular!r})"
