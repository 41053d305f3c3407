"""Plans over finitely many stages: what was found, and how it is shown and kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from drmdp._typing import Array
from drmdp.core import html as _html
from drmdp.core.files import check_path, naming
from drmdp.core.text import count
from drmdp.core.text import discount as discount_text
from drmdp.core.validation import Names, whole
from drmdp.errors import InputError, brief, clean
from drmdp.solution import tables
from drmdp.solution.priced import Priced
from drmdp.solution.results import Certified, Status, check_target, choice

ARRAYS = ("value", "policy", "lower", "upper", "initial", "costs")


@dataclass(frozen=True, eq=False)
class HorizonSolution(Certified, Priced):
    """Policies and certified values of T stages, stage 0 first; signs are the user's.

    Attributes
    ----------
    value : (T + 1, S)
        Certified worst-case value of the policies from each stage on; the last row are the final values.
    policy : (T, S, A)
        Probabilities of the actions at each stage.
    lower, upper : (T + 1, S)
        Bounds on the optimum, or on the worst case of a plan that was given.
    kernel_passes : float
        Reads of all N kernels.
    status : Status
        How the run ended.
    scale : float
        max(max|value|, max|c|), what a relative gap is relative to.
    states, actions : sequences
        Names, as in the models.
    initial : (S,)
        Distribution of the first state.
    discount : float
        Of the stages, 1 included.
    maximise : bool
        Whether values are rewards.
    optimal : bool
        Whether the plan was sought, or given to `drmdp.evaluate`.
    certain : bool
        Whether no doubt about the data was considered, as at radius 0.
    settings : dict
        Sets, nature, backend, tolerance and limit.
    fingerprints : tuple of str
        Of the models as they were given: one, or one a stage.
    notes : tuple of str
        Those of the models and sets.
    seconds : float
        Time of the run.
    costs : (T, S, A), (T, S, A, S) or None
        Costs of the stages, if they were given apart from the models.
    kernels : sequence
        Nature's T mean kernels, each made when it is asked for.
    """

    value: Array
    policy: Array
    lower: Array
    upper: Array
    kernel_passes: float
    status: Status
    scale: float
    states: Names = field(repr=False)
    actions: tuple[Any, ...] = field(repr=False)
    initial: Array
    discount: float
    maximise: bool
    optimal: bool
    certain: bool
    settings: dict[str, Any]
    fingerprints: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    costs: Any = None
    kernels: Any = field(default=None, repr=False)
    natures: ClassVar[Any] = None  # what makes them, set by `finite_horizon`, not saved

    arrays = ARRAYS

    @property
    def n_stages(self) -> int:
        """T, how many decisions."""
        return len(self.policy)

    @property
    def stage_names(self) -> list[str] | None:
        """What the stages are called, if they have names."""
        found: list[str] | None = self.settings.get("stage_names")
        return found

    @property
    def half_cycle(self) -> bool:
        """Whether half of each stage is spent in the state after it."""
        return bool(self.settings.get("half_cycle", False))

    def stage_name(self, t: int) -> str:
        """What stage t is called."""
        return f"stage {t}" if self.stage_names is None else self.stage_names[t]

    @property
    def stage_labels(self) -> tuple[str, list[str]]:
        """A word for stages, and what they are called beside it: ("age", ["40", "41", …])."""
        names = self.stage_names or [f"stage {t}" for t in range(self.n_stages)]
        words = {name.rpartition(" ")[0] for name in names}
        if len(words) > 1 or "" in words:
            return "stage", names
        return words.pop(), [name.rpartition(" ")[2] for name in names]

    def _number(self, stage: int | str) -> int:
        names = self.stage_names or []
        if isinstance(stage, str):
            if stage not in names:
                raise InputError(f"stage: expected one of {', '.join(names) or 'its numbers'}, got {stage!r}")
            return names.index(stage)
        return whole("stage", stage, 0, self.n_stages - 1)

    @property
    def final(self) -> Array:
        """Values after the last stage, (S,)."""
        found: Array = self.value[-1]
        return found

    @property
    def noun(self) -> str:
        """What values are made of."""
        if self.settings.get("criterion") == "reach":
            return "probability"
        return "reward" if self.maximise else "cost"

    @property
    def value_noun(self) -> str:
        """What values are, in words."""
        if self.certain:
            return f"{self.noun} under the mean kernel"
        return f"{'best' if self.settings['nature'] == 'cooperative' else 'worst'}-case {self.noun}"

    @property
    def value_in_words(self) -> str:
        """The value of the first stage, over the start distribution."""
        return f"{float(self.initial @ self.value[0]):.6g} {self.value_noun}, mean over the start distribution"

    @property
    def ball_in_words(self) -> str:
        """The set, or the first and the last of them."""
        balls = self.settings["balls"]
        return str(balls[0]) if len(balls) == 1 else f"{balls[0]} … {balls[-1]}, one a stage"

    def kernel(self, stage: int | str) -> Any:
        """Nature's mean kernel (S, A, S) at a stage: her side of the saddle point, or her best response to a plan that was given.

        It is made by sweeping the stage again; of a sparse model it has `.rows(s)`.

        Parameters
        ----------
        stage : int or str
            From 0, the first decision, or its name.
        """
        t = self._number(stage)
        if self.kernels is None:
            raise InputError(
                "kernel: the file holds no kernels, for they were too many; `drmdp.evaluate(model, ball, plan)` makes them again"
            )
        return self.kernels[t]

    def __repr__(self) -> str:
        sizes = " × ".join(
            count(n, noun) for n, noun in zip(self.policy.shape, ("stage", "state", "action"), strict=True)
        )
        names = self.stage_names
        lines = [
            f"HorizonSolution: {self.status} — {self.status.sentence}",
            f"  plan       {sizes}, discount {discount_text(self.discount)}, {'optimised' if self.optimal else 'given'}",
            *([] if names is None else [f"  stages     {names[0]} … {names[-1]}"]),
            f"  value      {self.value_in_words}",
            f"  gap        {self.gap_in_words}",
            f"  work       {self.kernel_passes:.4g} kernel passes, {self.seconds:.3g} s",
            f"  ball       {self.ball_in_words}",
        ]
        return clean("\n".join(lines + [f"  note       {brief(note, 1000)}" for note in self.notes]))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        first, *others = repr(self).splitlines()
        head = {line[2:11].strip(): line[11:].strip() for line in others}
        rows = [
            (self.states[s], *(choice(self.policy[t, s], self.actions) for t in self._shown), f"{self.value[0, s]:.6g}")
            for s in range(min(len(self.states), _html.ROWS))
        ]
        columns = ("state", *(self.stage_name(t) for t in self._shown), self.value_noun)
        return _html.facts(first, head) + _html.table(columns, rows, len(self.states))

    @property
    def _shown(self) -> list[int]:
        """First, middle and last stages."""
        T = self.n_stages
        return sorted({0, T // 4, T // 2, 3 * T // 4, T - 1})

    # ------------------------------------------------------------------ tables and files

    def to_frame(self) -> Any:
        """A polars table with the columns stage, state, action, probability, value, lower, upper: a row for each action that is played.

        If stages have names, the column stage_name is the second.
                If the models have counts, the column rows tells on how many observed transitions it rests, unless the plan was loaded.
        """
        values = {name: getattr(self, name)[:-1] for name in ("value", "lower", "upper")}
        seen = [] if self.natures is None else [model.pair_counts for model in self.natures.stages.given]
        rows = np.stack(seen) if seen and all(own is not None for own in seen) else None
        return tables.frame(self.states, self.actions, self.policy, values, rows, self.stage_names)

    def to_dict(self, stage: int | str) -> dict[Any, Any]:
        """The policy of a stage as {state: action}, or {state: {action: probability}} where it draws."""
        return tables.choices(self.states, self.actions, self.policy[self._number(stage)])

    def report(
        self,
        path: str | os.PathLike[str],
        title: str | None = None,
        command: str | None = None,
        *,
        models: Any = None,
        ball: Any = None,
        baseline: Any = None,
        unit: str = "",
        sweep: Mapping[float, HorizonSolution] | None = None,
    ) -> None:
        """Write one self-contained HTML page about the plan; it needs no network and no script, and the extra `report`.

        The plan is compared with `baseline` and with the one that is best for the mean kernels, which is made for that, unless the models are very large.

        Parameters
        ----------
        path : path
            Written completely or not at all.
        title : str, optional
            Of the page.
        command : str, optional
            How the result was made, shown for whoever wants it again.
        models, ball : optional
            For a plan that was loaded: it does not hold them. What needs them is left out of the page otherwise.
        baseline : plan or policy, optional
            Current practice, in any form that `drmdp.evaluate` takes.
        unit : str
            Of costs and rewards, as in "€".
        sweep : mapping, optional
            Plans of other radii for the same models, {radius: plan}: the page can be switched between them.
        """
        from drmdp.report import write_plan

        about: Any = {"title": title, "command": command, "baseline": baseline, "unit": unit, "sweep": sweep}
        write_plan(self, path, models, ball, **about)

    def proof(self, path: str | os.PathLike[str]) -> int:
        """Write what is needed to check the bounds of all stages, and return its bytes; every stage is swept again. See `Solution.proof`."""
        from drmdp import proof

        return proof.write_plan(path, self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file, completely or not at all; models and sets are not stored, nature's kernels are while they are not too many.

        Parameters
        ----------
        path : path
            An .npz file.
        """
        from drmdp.solution import file as saved

        check_target(path)
        saved.write_plan(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> HorizonSolution:
        """Read what `save` wrote; an `InputError` says what anything else is, and nothing in it is ever run.

        Parameters
        ----------
        path : path
            An .npz file.
        """
        from drmdp.solution import file as saved

        check_path(path)
        with naming(path):
            return saved.read_plan(path)
